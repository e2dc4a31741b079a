//! Real files and hard numbers go in and come out as equal JSON, every number with its text.

use std::path::PathBuf;

use spinney::formats::{self, Dialect, Fidelity, JsonWriter, Layout};
use spinney::{Existing, Store};
use spinney_conformance::{folder, timed};

/// `../shared/data/json` beside the repository, or the folder that `SPINNEY_TEST_DATA` names.
fn data() -> PathBuf {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data/json");
    std::env::var_os("SPINNEY_TEST_DATA").map_or_else(|| beside.into(), PathBuf::from)
}

fn import(store: &Store, path: &str, text: &str) {
    store
        .write(|tx| {
            tx.set_with(path, Existing::Any, |visitor| {
                formats::read(text.as_bytes(), Dialect::Json, visitor)
            })
        })
        .expect("imports");
}

fn export(store: &Store, path: &str, layout: Layout) -> String {
    let mut writer = JsonWriter::new(Vec::new(), layout, Fidelity::Refuse);
    assert!(store.read().and_then(|snapshot| snapshot.visit(path, &mut writer)).expect("exports"));
    String::from_utf8(writer.finish().expect("it prints")).expect("a text")
}

/// The texts of all numbers, found without a parser: what starts one outside of a string.
fn numbers(text: &str) -> Vec<&str> {
    let (mut found, mut start, mut quoted, mut escaped) = (Vec::new(), None, false, false);
    for (at, byte) in text.bytes().chain([b' ']).enumerate() {
        let inside = !quoted && matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
        match start {
            Some(from) if !inside => {
                found.push(&text[from..at]);
                start = None;
            }
            None if inside && (byte == b'-' || byte.is_ascii_digit()) => start = Some(at),
            _ => {}
        }
        quoted ^= byte == b'"' && !escaped;
        escaped = quoted && byte == b'\\' && !escaped;
    }
    // Maps are sorted by the store, so only their order may differ.
    found.sort_unstable();
    found
}

fn round_trip(store: &Store, name: &str, text: &str) {
    import(store, "/data", text);
    for layout in [Layout::Compact, Layout::Pretty] {
        let out = export(store, "/data", layout);
        assert!(numbers(&out) == numbers(text), "{name}: a number's text has changed");
        let values = [text, &out].map(|text| formats::parse(text).expect("JSON"));
        assert!(values[0] == values[1], "{name}: not the same value");
        let oracle = [text, &out].map(serde_json::from_str::<serde_json::Value>);
        if let [Ok(before), Ok(after)] = oracle {
            assert!(before == after, "{name}: the oracle sees another value");
        }
    }
    let report = store.read().and_then(|snapshot| snapshot.check()).expect("checks");
    assert!(report.is_sound(), "{name}: {report:?}");
}

fn everywhere(name: &str, text: &str) {
    round_trip(&spinney::open("memory:").expect("a store"), name, text);
    let folder = folder::temporary();
    let url = format!("lmdb:{}", folder.path().join("store").display());
    round_trip(&spinney::open(&url).expect("a store"), name, text);
    // And again after it was closed.
    let out = export(&spinney::open(&url).expect("a store"), "/data", Layout::Compact);
    assert!(numbers(&out) == numbers(text), "{name}: changed by closing");
}

#[test]
fn files() {
    let folder = data();
    let Ok(entries) = std::fs::read_dir(&folder) else {
        println!("skipped: 1: real files: no folder `{}`", folder.display());
        return;
    };
    let mut count = 0;
    for entry in entries {
        let path = entry.expect("an entry").path();
        if path.extension().is_some_and(|extension| extension == "json") {
            let name = path.display().to_string();
            let text = std::fs::read_to_string(&path).expect("a text");
            timed(&name, || everywhere(&name, &text));
            count += 1;
        }
    }
    println!("{count} files");
    assert!(count > 0);
}

#[test]
fn hard_numbers() {
    let mut random = fastrand::Rng::with_seed(29);
    let mut texts: Vec<String> = [
        "0",
        "-0",
        "0.0",
        "1.10",
        "1e400",
        "-1e-400",
        "9007199254740993",
        "1E+05",
        "1e05",
        "18446744073709551616",
        "0.30000000000000004",
        "5e-324",
        "100000000000000000000000000000",
    ]
    .map(String::from)
    .into();
    for _ in 0..20_000 {
        let mut digits = |most: usize| -> String {
            (0..random.usize(1..=most)).map(|_| char::from(b'0' + random.u8(..10))).collect()
        };
        let (whole, fraction, exponent) = (digits(25), digits(20), digits(4));
        let whole = match whole.trim_start_matches('0') {
            "" => "0",
            whole => whole,
        };
        let sign = if random.bool() { "-" } else { "" };
        let exponent_sign = ["e", "E", "e+", "e-", "E-"][random.usize(..5)];
        texts.push(match random.u8(..6) {
            0 => format!("{sign}{whole}"),
            1 => format!("{sign}{whole}.{fraction}"),
            2 => format!("{sign}{whole}{exponent_sign}{exponent}"),
            3 => format!("{sign}{whole}.{fraction}{exponent_sign}{exponent}"),
            4 => format!("{:?}", f64::from_bits(random.u64(..) & !(1 << 62))),
            _ => random.i64(..).to_string(),
        });
    }
    texts.retain(|text| !text.contains("NaN") && !text.contains("inf"));
    timed("hard numbers", || everywhere("hard numbers", &format!("[{}]", texts.join(","))));
}
