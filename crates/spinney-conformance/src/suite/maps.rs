//! Maps: the collation, keys of every kind and length, growing and shrinking.

use std::collections::BTreeMap;

use spinney::ErrorKind::LimitExceeded;
use spinney::{Map, Path, Value};
use spinney_core::key;

use super::Case;
use crate::subject::Subject;

pub(super) const CASES: &[Case] = &[
    ("integers first, then bytewise", collation),
    ("keys of every kind", odd_keys),
    ("keys of 64 KiB, and one more", long_keys),
    ("long keys that differ late", keys_that_differ_late),
    ("grown and shrunk by one", grown_and_shrunk),
    ("emptied and filled again", emptied),
    ("keys that part around the cut", keys_that_part_around_the_cut),
    ("cut separators in every order", cut_separators),
];

const SORTED: [&str; 34] = [
    "-9223372036854775808",
    "-9223372036854775807",
    "-65536",
    "-256",
    "-255",
    "-10",
    "-9",
    "-1",
    "0",
    "1",
    "2",
    "9",
    "10",
    "255",
    "256",
    "65536",
    "9223372036854775807",
    "",
    "\0",
    "\0\0",
    "\u{1}",
    " ",
    "+1",
    "-",
    "-0",
    "00",
    "01",
    "1.0",
    "9223372036854775808",
    "A",
    "a",
    "a\0",
    "ab",
    "é",
];

fn path(parent: &str, key: &str) -> String {
    let mut path = Path::parse(parent).expect("a path");
    path.push(key);
    path.to_string().trim_matches('`').to_owned()
}

fn pointer(parent: &str, key: &str) -> String {
    format!("{parent}/{}", key.replace('~', "~0").replace('/', "~1"))
}

fn keys(s: &Subject, path: &str) -> Vec<String> {
    let members = s.store.read().and_then(|snapshot| snapshot.list(path, None, None));
    members.expect("lists").expect("a map").into_iter().map(|member| member.segment).collect()
}

fn collation(s: &Subject) {
    let mut shuffled = SORTED.to_vec();
    fastrand::Rng::with_seed(5).shuffle(&mut shuffled);
    for name in &shuffled {
        s.write(|tx| tx.set(&pointer("/a", name), &(*name).into()));
    }
    assert_eq!(keys(s, "/a"), SORTED);
    // The same in pages, where keys lie beside many others.
    s.write(|tx| {
        for name in &shuffled {
            tx.set(&pointer("/b", name), &"x".repeat(300).into())?;
        }
        (0..2_000).try_for_each(|n: i64| tx.set(&format!("/b/{}", (n - 1_000) * 7 + 3), &n.into()))
    });
    let mut expected: Vec<String> = SORTED.iter().map(|&name| name.to_owned()).collect();
    expected.extend((0..2_000).map(|n: i64| ((n - 1_000) * 7 + 3).to_string()));
    expected.sort_by(|a, b| key::compare(a, b));
    expected.dedup();
    assert_eq!(keys(s, "/b"), expected);
    assert_eq!(s.count("/b"), Some(expected.len() as u64));
}

fn odd_keys(s: &Subject) {
    let odd =
        ["", "/", "~", "~1", "a/b", "a~b", "\0", "x\0y", "é", "日本語", "\u{10ffff}", "\n", "-"];
    for (index, name) in odd.iter().enumerate() {
        s.write(|tx| tx.set(&pointer("", name), &(index as u64).into()));
        s.write(|tx| tx.set(&pointer("/m/n", name), &(index as u64).into()));
    }
    for (index, name) in odd.iter().enumerate() {
        assert_eq!(s.get(&pointer("", name)), Some((index as u64).into()), "{name:?}");
        assert_eq!(s.get(&pointer("/m/n", name)), Some((index as u64).into()), "{name:?}");
    }
    assert_eq!(path("/a", "b"), "/a/b");
    assert_eq!((s.count(""), s.count("/m/n")), (Some(14), Some(13)));
    for name in odd {
        assert!(s.write(|tx| tx.remove(&pointer("/m/n", name))).value, "{name:?}");
    }
    assert_eq!(s.text("/m"), r#"{"n":{}}"#);
}

fn long_keys(s: &Subject) {
    let longest = "k".repeat(64 * 1024);
    for parent in ["", "/m"] {
        let path = format!("{parent}/{longest}");
        s.write(|tx| tx.set(&path, &1.into()));
        assert_eq!(s.get(&path), Some(1.into()));
        s.write(|tx| tx.set(&format!("{path}/x"), &2.into()).or_else(|_| tx.set(&path, &2.into())));
        let above = format!("{path}k");
        s.refused(LimitExceeded, "65537", |tx| tx.set(&above, &1.into()));
        let map: Map = [(format!("{longest}k"), Value::Null)].into_iter().collect();
        s.refused(LimitExceeded, "key", |tx| tx.set("/m/below", &map.clone().into()));
        let snapshot = s.store.read().expect("reads");
        match snapshot.get(&above) {
            Ok(found) => assert_eq!(found, None),
            Err(error) => assert_eq!(error.kind(), LimitExceeded, "{error}"),
        }
        assert!(s.write(|tx| tx.remove(&path)).value);
    }
    // Multi-byte keys count bytes, not characters.
    s.write(|tx| tx.set(&format!("/m/{}", "é".repeat(32 * 1024)), &1.into()));
    s.refused(LimitExceeded, "key", |tx| {
        tx.set(&format!("/m/{}x", "é".repeat(32 * 1024)), &1.into())
    });
}

fn keys_that_differ_late(s: &Subject) {
    let stem = "s".repeat(5_000);
    for n in [3, 1, 2, 9, 0, 5, 4, 8, 7, 6] {
        s.write(|tx| tx.set(&format!("/m/{stem}{n}"), &n.into()));
    }
    assert_eq!(keys(s, "/m"), (0..10).map(|n| format!("{stem}{n}")).collect::<Vec<_>>());
    for n in 0..10 {
        assert_eq!(s.get(&format!("/m/{stem}{n}")), Some(n.into()));
        assert_eq!(s.get(&format!("/m/{stem}{n}x")), None);
    }
    assert_eq!(s.get(&format!("/m/{stem}")), None);
    for n in [5, 0, 9, 1, 2, 3, 4, 6, 7] {
        assert!(s.write(|tx| tx.remove(&format!("/m/{stem}{n}"))).value);
    }
    assert_eq!(keys(s, "/m"), [format!("{stem}8")]);
}

fn grown_and_shrunk(s: &Subject) {
    let page = s.backend.capabilities().page_size;
    let count = (page / 10).max(60) as u64;
    let key = |n: u64| format!("/m/key-{:04}", (n * 7_919) % count);
    for n in 0..count {
        s.store.write(|tx| tx.set(&key(n), &n.into())).expect("sets");
        assert_eq!(s.count("/m"), Some(n + 1));
    }
    s.check();
    for n in 0..count {
        assert_eq!(s.get(&key(n)), Some(n.into()));
    }
    for n in 0..count {
        assert!(s.store.write(|tx| tx.remove(&key(n))).expect("removes").value);
        assert_eq!(s.count("/m"), Some(count - n - 1));
        if n % 64 == 0 {
            s.check();
        }
    }
    assert_eq!(s.text(""), r#"{"m":{}}"#);
}

fn emptied(s: &Subject) {
    for round in 0..3 {
        s.store
            .write(|tx| (0..1_000).try_for_each(|n| tx.set(&format!("/m/{round}k{n}"), &n.into())))
            .expect("fills");
        assert_eq!(s.count("/m"), Some(1_000));
        s.store
            .write(|tx| {
                (0..1_000)
                    .try_for_each(|n| tx.remove(&format!("/m/{round}k{n}")).map(|was| assert!(was)))
            })
            .expect("empties");
        assert_eq!(s.text(""), r#"{"m":{}}"#);
        s.check();
    }
}

/// Keys that part within the cut, at it and behind it, so that pages with cut separators lose their
/// first keys to keys that part earlier.
fn keys_that_part_around_the_cut(s: &Subject) {
    let key_len = s.backend.capabilities().key_len_max;
    let value = "v".repeat(s.backend.capabilities().page_size / 12);
    let mut random = fastrand::Rng::with_seed(31);
    let mut expected: BTreeMap<String, Value> = BTreeMap::new();
    for round in 0..60 {
        let growing = round % 20 < 12;
        let batch: Vec<(String, Option<Value>)> = (0..25)
            .map(|n| {
                let known = expected.keys().nth(random.usize(..expected.len().max(1)));
                if let (Some(key), false) = (known, growing && random.u8(..5) > 0) {
                    return (key.clone(), None);
                }
                let common = match random.bool() {
                    true => random.usize(..key_len + 20),
                    false => key_len - random.usize(..60),
                };
                let rest: String = (0..random.usize(1..30)).map(|_| random.alphabetic()).collect();
                let value = format!("{round} {n} {value}");
                (format!("{}{rest}", "m".repeat(common)), Some(value.into()))
            })
            .collect();
        s.store
            .write(|tx| {
                batch.iter().try_for_each(|(key, value)| match value {
                    Some(value) => tx.set(&format!("/m/{key}"), value),
                    None => tx.remove(&format!("/m/{key}")).map(drop),
                })
            })
            .expect("edits");
        for (key, value) in batch {
            match value {
                Some(value) => expected.insert(key, value),
                None => expected.remove(&key),
            };
        }
        s.check();
        for (key, value) in &expected {
            assert_eq!(s.get(&format!("/m/{key}")).as_ref(), Some(value));
            assert_eq!(s.get(&format!("/m/{key}~0")), None);
        }
        assert!(keys(s, "/m").iter().eq(expected.keys()));
    }
}

/// Separators longer than the engine's keys, so that many pages share a cut beginning.
fn cut_separators(s: &Subject) {
    let key_len = s.backend.capabilities().key_len_max;
    let stem = "c".repeat(key_len + 5);
    let mut random = fastrand::Rng::with_seed(11);
    let mut order: Vec<u32> = (0..300).collect();
    let fill = "v".repeat(s.backend.capabilities().page_size / 5);
    let key = |n: u32| format!("/m/{stem}{n:03}");
    let (mut ascending, mut descending) = (order.clone(), order.clone());
    ascending.sort_unstable();
    descending.reverse();
    random.shuffle(&mut order);
    for order in [ascending, descending, order] {
        for chunk in order.chunks(7) {
            s.store
                .write(|tx| {
                    chunk.iter().try_for_each(|&n| tx.set(&key(n), &format!("{n}{fill}").into()))
                })
                .expect("sets");
        }
        s.check();
        for n in 0..300 {
            assert_eq!(s.get(&key(n)), Some(format!("{n}{fill}").into()));
            assert_eq!(s.get(&format!("{}x", key(n))), None);
        }
        assert_eq!(keys(s, "/m").len(), 300);
        for (index, chunk) in order.chunks(11).enumerate() {
            s.store
                .write(|tx| chunk.iter().try_for_each(|&n| tx.remove(&key(n)).map(drop)))
                .expect("removes");
            if index % 8 == 0 {
                s.check();
            }
        }
        assert_eq!(s.count("/m"), Some(0));
        s.check();
    }
}
