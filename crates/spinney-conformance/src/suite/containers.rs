//! Containers: empty ones, growing out of their parent, replaced by other kinds.

use spinney::{Map, Value};

use super::Case;
use crate::subject::{Subject, json};

pub(super) const CASES: &[Case] = &[
    ("empty containers stay", empty),
    ("one kind replaces another", replaced),
    ("inline, paged, inline again", outgrown),
    ("large containers inside large containers", nested),
    ("a change deep below", deep_change),
];

fn empty(s: &Subject) {
    s.set("/a", "{}");
    s.set("/b", "[]");
    s.set("/c", r#"{"m": {}, "l": [], "ll": [[], {}]}"#);
    assert_eq!(s.text(""), r#"{"a":{},"b":[],"c":{"l":[],"ll":[[],{}],"m":{}}}"#);
    assert_eq!((s.count("/a"), s.count("/b"), s.count("/c/ll/0")), (Some(0), Some(0), Some(0)));
    let revision = s.revision();
    s.set("/a", "{}");
    s.set("/c/ll/0", "[]");
    assert_eq!(s.revision(), revision, "nothing changed");
    s.set("/a", "[]");
    assert_eq!(s.revision(), revision + 1, "an empty list is no empty map");
}

fn large_map(count: u64) -> Value {
    (0..count).map(|n| (format!("k{n}"), Value::from(n))).collect::<Map>().into()
}

fn large_list(count: u64) -> Value {
    (0..count).map(Value::from).collect::<Vec<_>>().into()
}

fn replaced(s: &Subject) {
    let values = [
        large_map(1_500),
        large_list(1_500),
        1.into(),
        "x".repeat(100_000).into(),
        Value::map(),
        Value::list(),
        json("[[1], {}]"),
        Value::Bytes(vec![3; 70_000]),
    ];
    for path in ["/a", "/a/in", "/l/0", "/l/0/m"] {
        s.set("/a", "{}");
        s.set("/l", "[0]");
        for first in &values {
            for second in &values {
                if path == "/l/0/m" {
                    s.store.write(|tx| tx.set("/l/0", &Value::map())).expect("sets");
                }
                s.store.write(|tx| tx.set(path, first)).expect("sets");
                s.store.write(|tx| tx.set(path, second)).expect("replaces");
                assert!(s.get(path).as_ref() == Some(second), "{path}");
            }
        }
        // The same within one transaction.
        s.store
            .write(|tx| {
                values.iter().rev().chain(&values).try_for_each(|value| tx.set(path, value))
            })
            .expect("replaces");
        assert!(s.get(path).as_ref() == values.last(), "{path}");
        s.check();
    }
}

fn outgrown(s: &Subject) {
    let page = s.backend.capabilities().page_size;
    for text_len in [1, page / 40, page / 9, page / 3, page] {
        let text = "t".repeat(text_len.max(1));
        for (map, list) in [("/t/m", "/t/l"), ("/t/in/m", "/t/in/l")] {
            s.store
                .write(|tx| tx.set(map, &Value::map()).and_then(|()| tx.set(list, &Value::list())))
                .expect("sets");
            let count = (page / (text_len + 8)).clamp(3, 60) * 3;
            for n in 0..count {
                s.store
                    .write(|tx| {
                        tx.set(&format!("{map}/{n}"), &text.as_str().into())?;
                        tx.insert(&format!("{list}/{}", n / 2), &text.as_str().into())
                    })
                    .expect("grows");
            }
            assert_eq!((s.count(map), s.count(list)), (Some(count as u64), Some(count as u64)));
            s.check();
            for n in (0..count).rev() {
                s.store
                    .write(|tx| {
                        assert!(tx.remove(&format!("{map}/{n}"))?);
                        tx.remove(&format!("{list}/{}", n / 2)).map(|was| assert!(was))
                    })
                    .expect("shrinks");
            }
            assert_eq!((s.text(map).as_str(), s.text(list).as_str()), ("{}", "[]"));
            s.check();
        }
    }
}

fn nested(s: &Subject) {
    let inner: Map = (0..40).map(|n| (format!("i{n}"), large_map(200))).collect();
    let outer: Vec<Value> = vec![inner.into(), large_list(900), large_map(900)];
    let value = Value::from(outer);
    s.write(|tx| tx.set("/a/b", &value));
    assert!(s.get("/a/b") == Some(value));
    s.set("/a/b/0/i7/k9", "[]");
    s.write(|tx| tx.mv("/a/b/0/i7", "/a/b/1/450"));
    assert_eq!(s.get("/a/b/1/450/k9"), Some(Value::list()));
    assert_eq!(s.count("/a/b/0"), Some(39));
    s.write(|tx| tx.mv("/a/b/1", "/a/b/0/list"));
    assert_eq!(s.count("/a/b/0/list"), Some(901));
    assert_eq!(s.count("/a/b"), Some(2));
    s.write(|tx| tx.remove("/a/b/0"));
    s.check();
}

fn deep_change(s: &Subject) {
    let deep = "/d".to_owned() + &"/x".repeat(200);
    s.write(|tx| tx.set(&format!("{deep}/leaf"), &1.into()));
    s.write(|tx| tx.set(&format!("{deep}/leaf"), &2.into()));
    s.write(|tx| tx.set(&format!("{deep}/big"), &large_list(500)));
    s.write(|tx| tx.insert(&format!("{deep}/big/250"), &"in".into()));
    s.write(|tx| tx.mv("/d/x/x", "/d/y"));
    let moved = "/d/y".to_owned() + &"/x".repeat(198);
    assert_eq!(s.get(&format!("{moved}/leaf")), Some(2.into()));
    assert_eq!(s.get(&format!("{moved}/big/250")), Some("in".into()));
}
