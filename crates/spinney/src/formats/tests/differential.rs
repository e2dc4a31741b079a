//! The same documents through serde_json.
//!
//! Known differences: serde_json takes the last of duplicate keys, refuses more than 127 levels and
//! numbers beyond f64, and keeps no number texts.

use serde_json::Value as Peer;

use super::random::Random;
use super::{Event, Fidelity, JSON, Layout, events, once, print};

/// The document with its numbers as the strings that stand for them, and keys in order.
fn peer_events(value: &Peer, out: &mut Vec<String>) {
    match value {
        Peer::Array(elements) => {
            out.push("[".into());
            elements.iter().for_each(|element| peer_events(element, out));
            out.push("]".into());
        }
        Peer::Object(members) => {
            out.push("{".into());
            for (key, value) in members {
                out.push(key.clone());
                peer_events(value, out);
            }
            out.push("}".into());
        }
        Peer::String(text) => out.push(text.clone()),
        Peer::Number(number) => out.push(format!("{:?}", number.as_f64())),
        other => out.push(other.to_string()),
    }
}

fn own_events(text: &[u8]) -> Option<Vec<String>> {
    let read = events(text, JSON).ok()?;
    let text = print(&read, Layout::Compact, Fidelity::Refuse).expect("it prints");
    let peer: Peer = serde_json::from_str(&text).expect("what is printed is JSON");
    let mut out = Vec::new();
    peer_events(&peer, &mut out);
    Some(out)
}

fn assert_agrees(text: &[u8]) {
    let peer: Result<Peer, _> = serde_json::from_slice(text);
    let shown = String::from_utf8_lossy(text);
    match peer {
        Ok(peer) => {
            let mut expected = Vec::new();
            peer_events(&peer, &mut expected);
            assert_eq!(own_events(text), Some(expected), "{shown}");
        }
        Err(error) if error.to_string().contains("out of range") => {}
        Err(error) => {
            assert!(events(text, JSON).is_err(), "{shown}: serde_json says {error}");
        }
    }
}

#[test]
fn random_documents_are_read_alike() {
    let mut random = Random { rng: fastrand::Rng::with_seed(1), tagged: false };
    for _ in 0..2000 {
        let tree = random.tree();
        let layout = [Layout::Compact, Layout::Pretty][random.rng.usize(..2)];
        let text = print(&tree, layout, Fidelity::Refuse).expect("it prints");
        assert_eq!(events(&text, JSON).expect("it is accepted"), tree, "{text}");
        assert_agrees(text.as_bytes());
    }
}

#[test]
fn mutated_documents_are_accepted_or_refused_alike() {
    let mut random = Random { rng: fastrand::Rng::with_seed(2), tagged: false };
    for _ in 0..6000 {
        let tree = random.tree();
        let text = print(&tree, Layout::Compact, Fidelity::Refuse).expect("it prints");
        let mutated = random.mutate(&text);
        assert_agrees(&mutated);
    }
}

#[test]
fn short_texts_of_every_kind_are_accepted_or_refused_alike() {
    let pieces =
        ["{", "}", "[", "]", ",", ":", "\"", "a", "\\n", "1", "-", ".", "e", "0", " ", "null"];
    for number in 0..pieces.len().pow(4) {
        let digits = [0, 1, 2, 3].map(|place| number / pieces.len().pow(place) % pieces.len());
        let text: String = digits.map(|digit| pieces[digit]).concat();
        let own = once(text.as_bytes(), JSON, 3, 4);
        match serde_json::from_str::<Peer>(&text) {
            Ok(_) => assert!(own.is_ok(), "{text}: {own:?}"),
            Err(error) if error.to_string().contains("out of range") => {}
            Err(_) => assert!(own.is_err(), "{text}: {own:?}"),
        }
    }
}

#[test]
fn published_files_are_read_alike_and_their_numbers_kept() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/json");
    for name in ["canada", "citm_catalog", "twitter"] {
        let path = folder.join(name).with_extension("json");
        let Ok(text) = std::fs::read(&path) else {
            println!("skipped: `{}` is not there", path.display());
            continue;
        };
        let read = once(&text, JSON, usize::MAX, 1 << 18).expect("it is accepted");
        for (step, window_len) in [(4099, 1000), (70_001, 1 << 16)] {
            assert!(once(&text, JSON, step, window_len).expect("it is accepted") == read);
        }
        let peer: Peer = serde_json::from_slice(&text).expect("it is accepted");
        let printed = print(&read, Layout::Compact, Fidelity::Refuse).expect("it prints");
        assert!(serde_json::from_str::<Peer>(&printed).expect("it is JSON") == peer, "{name}");
        let pretty = print(&read, Layout::Pretty, Fidelity::Refuse).expect("it prints");
        assert!(once(pretty.as_bytes(), JSON, usize::MAX, 1 << 18).expect("it is JSON") == read);
        let source = String::from_utf8(text).expect("it is UTF-8");
        let in_order = read.iter().filter_map(|event| match event {
            Event::Number(number) => Some(number.to_string()),
            _ => None,
        });
        let mut from = 0;
        for number in in_order {
            from += source[from..].find(&number).expect("the text is kept") + number.len();
        }
    }
}
