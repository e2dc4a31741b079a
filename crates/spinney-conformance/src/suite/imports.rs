//! Large values in one piece: beyond the buffers, unsorted, and given up half-way.

use spinney::ErrorKind::InvalidInput;
use spinney::{
    Container, Error, Existing, Key, Map, Receiver, Result, Scalar, Transaction, Value, Visitor,
};
use spinney_core::backend::Backend;
use spinney_core::build::Builder;

use super::Case;
use crate::subject::Subject;

pub(super) const CASES: &[Case] = &[
    ("unsorted members beyond the buffer", unsorted),
    ("a key that stands twice, across runs", duplicates),
    ("nested containers beyond the buffer", nested),
    ("written ahead, then given up", given_up),
    ("written ahead beside other trees, then given up", given_up_beside),
    ("several large trees at the root, given up", given_up_at_the_root),
    ("written ahead and committed", committed),
];

fn unsorted_members(count: u64, visitor: &mut dyn Visitor) -> Result<()> {
    visitor.open(Container::Map)?;
    for n in 0..count {
        let key = (n * 7_919 + 13) % count;
        visitor.key(Key::new(&format!("key {key}")))?;
        visitor.scalar(Scalar::String(spinney::Text::new(&format!("value {key}"))))?;
    }
    visitor.close()
}

fn expected(count: u64) -> Map {
    (0..count).map(|n| (format!("key {n}"), Value::from(format!("value {n}")))).collect()
}

fn unsorted(s: &Subject) {
    for (count, buffer) in [(3_000, 500), (3_000, 20_000), (700, 64), (5_000, 1 << 20)] {
        let committed = s.store.write(|tx| {
            tx.set_builder(Builder::with_buffer_len_max(buffer));
            tx.set_with("/a/m", Existing::Any, |visitor| unsorted_members(count, visitor))
        });
        committed.expect("imports");
        assert_eq!(s.count("/a/m"), Some(count));
        assert!(s.get("/a/m") == Some(expected(count).into()), "{count} members, {buffer} bytes");
    }
}

fn duplicates(s: &Subject) {
    s.set("/a", "{}");
    for (count, buffer) in [(10, 1 << 20), (2_000, 500), (2_000, 100)] {
        s.refused(InvalidInput, "key 7", |tx| {
            tx.set_builder(Builder::with_buffer_len_max(buffer));
            tx.set_with("/a/m", Existing::Any, |visitor| {
                visitor.open(Container::Map)?;
                for n in (0..count).chain([7]) {
                    visitor.key(Key::new(&format!("key {n}")))?;
                    visitor.scalar(Scalar::Null)?;
                }
                visitor.close()
            })
        });
    }
}

fn nested(s: &Subject) {
    let inner = |n: u64| -> Value {
        let list: Vec<Value> = (0..n % 90).map(|at| (at * n).into()).collect();
        let mut map = expected(n % 50);
        map.insert("list", list);
        map.into()
    };
    let value: Map = (0..120).map(|n| (format!("{}", (n * 37) % 120), inner(n))).collect();
    let lists: Vec<Value> = (0..60).map(inner).collect();
    for buffer in [300, 2_000, 1 << 20] {
        s.store
            .write(|tx| {
                tx.set_builder(Builder::with_buffer_len_max(buffer));
                tx.set("/a/map", &value.clone().into())?;
                tx.set("/a/lists", &lists.clone().into())
            })
            .expect("imports");
        assert!(s.get("/a/map") == Some(value.clone().into()), "{buffer}");
        assert!(s.get("/a/lists") == Some(lists.clone().into()), "{buffer}");
        s.check();
    }
}

/// About `megabytes` of list elements; whether to fail at the end.
fn bulk(megabytes: usize, fails: bool) -> impl Fn(&mut Receiver<'_, '_>) -> Result<()> {
    move |visitor| {
        visitor.open(Container::List)?;
        let text = "bulk ".repeat(100);
        for n in 0..megabytes * 2_000 {
            visitor.scalar(Scalar::String(spinney::Text::new(&format!("{n} {text}"))))?;
        }
        match fails {
            true => Err(Error::invalid_input("the source broke")),
            false => visitor.close(),
        }
    }
}

fn large() -> Value {
    (0..2_000_u64).map(Value::from).collect::<Vec<_>>().into()
}

fn given_up(s: &Subject) {
    s.set("/a/x", "1");
    let before = s.text("");
    s.refused(InvalidInput, "the source broke", |tx| {
        tx.set_with("/a/big", Existing::Any, bulk(20, true))
    });
    s.refused(InvalidInput, "the writer left", |tx| {
        tx.set_with("/a/big", Existing::Any, bulk(20, false))?;
        Err::<(), _>(Error::invalid_input("the writer left"))
    });
    // The next writer finds what was left and gives it to reclaim.
    s.store.write(|tx| tx.set("/a/x", &2.into())).expect("sets");
    s.store.write(|tx| tx.set("/a/y", &large())).expect("sets");
    s.check();
    assert!(s.get("/a/y") == Some(large()));
    s.store.write(|tx| tx.remove("/a/y").and_then(|_| tx.set("/a/x", &1.into()))).expect("sets");
    assert_eq!(s.text(""), before);
}

/// Records of other trees that wait in the same transaction are written ahead with the large one.
fn given_up_beside(s: &Subject) {
    s.set("/a/x", "1");
    s.set("/b/x", "1");
    s.refused(InvalidInput, "the writer left", |tx| {
        tx.set("/a/m", &expected(3_000).into())?;
        tx.set_with("/b/big", Existing::Any, bulk(20, false))?;
        tx.set_with("/c/big", Existing::Any, bulk(20, false))?;
        Err::<(), _>(Error::invalid_input("the writer left"))
    });
    s.store.write(|tx| tx.set("/a/other", &large())).expect("sets");
    s.store.write(|tx| tx.set("/c/other", &large())).expect("sets");
    s.check();
    assert!(s.get("/a/other") == Some(large()) && s.get("/c/other") == Some(large()));
    assert_eq!((s.count("/a"), s.count("/b"), s.count("/c")), (Some(2), Some(1), Some(1)));
}

fn given_up_at_the_root(s: &Subject) {
    if !s.backend.capabilities().multi_tree_commit {
        return super::skipped("several large trees at the root", "it has no multi_tree_commit");
    }
    s.set("/a/x", "1");
    s.refused(InvalidInput, "the source broke", |tx| {
        tx.set_with("", Existing::Any, |visitor| {
            visitor.open(Container::Map)?;
            for (name, fails) in [("a", false), ("b", false), ("c", true)] {
                visitor.key(Key::new(name))?;
                bulk(12, fails)(visitor)?;
            }
            visitor.close()
        })
    });
    s.store.write(|tx| tx.set("/b/other", &large())).expect("sets");
    s.check();
    assert_eq!(s.text("/a"), r#"{"x":1}"#);
    assert!(s.get("/b/other") == Some(large()));
}

fn committed(s: &Subject) {
    let mut transaction = Transaction::begin(&*s.backend).expect("begins");
    transaction.set("/a/small", &expected(500).into()).expect("sets");
    transaction.set_with("/b/big", Existing::Any, bulk(20, false)).expect("imports");
    transaction.set("/a/small/new", &1.into()).expect("sets");
    transaction.set_with("/a/big", Existing::Any, bulk(10, false)).expect("imports");
    let revision = transaction.commit(1).expect("commits").revision;
    s.backend.sync(revision).expect("syncs");
    assert_eq!(revision, 1);
    assert_eq!(
        (s.count("/a/small"), s.count("/b/big"), s.count("/a/big")),
        (Some(501), Some(40_000), Some(20_000))
    );
    s.check();
    s.store.write(|tx| tx.set("/b/big/20000", &"middle".into())).expect("sets");
    s.store.write(|tx| tx.remove("/b").and_then(|_| tx.remove("/a"))).expect("removes");
    s.check();
    assert_eq!(s.text(""), "{}");
}
