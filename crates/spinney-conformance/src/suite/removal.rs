//! Removing and reclaiming: nothing stays behind, whatever was dropped and however.

use spinney::{Map, Value};
use spinney_core::reclaim;

use super::Case;
use crate::subject::Subject;

pub(super) const CASES: &[Case] = &[
    ("a large subtree leaves nothing", subtree),
    ("a removal is a small commit", small_commit),
    ("trees leave nothing", trees),
    ("what one transaction makes and drops leaves nothing", made_and_dropped),
    ("reclaim in single steps, with writes between", stepwise),
    ("removed while parts are edited", edited_and_removed),
];

fn large(depth: u32) -> Value {
    let mut value: Value = (0..300_u64).map(Value::from).collect::<Vec<_>>().into();
    for _ in 0..depth {
        let mut map: Map = (0..150).map(|n| (format!("k{n}"), Value::from(n))).collect();
        map.insert("below", value);
        map.insert("text", "t".repeat(20_000));
        map.insert("bytes", Value::Bytes(vec![1; 9_000]));
        value = map.into();
    }
    value
}

fn subtree(s: &Subject) {
    s.set("/a", r#"{"stays": 1}"#);
    s.check();
    let records = s.records();
    s.store.write(|tx| tx.set("/a/big", &large(5))).expect("sets");
    assert!(s.records() > records + 10);
    s.store.write(|tx| tx.remove("/a/big")).expect("removes");
    s.check();
    assert_eq!(s.records(), records);
    assert_eq!(s.text(""), r#"{"a":{"stays":1}}"#);
}

fn small_commit(s: &Subject) {
    s.store.write(|tx| tx.set("/a/big", &large(5))).expect("sets");
    let committed = s.store.write(|tx| tx.remove("/a/big")).expect("removes");
    assert!(committed.diff.encode().len() < 1_000, "the diff refers to what was removed");
}

fn trees(s: &Subject) {
    for _ in 0..3 {
        s.store
            .write(|tx| (0..5).try_for_each(|n| tx.set(&format!("/t{n}"), &large(2))))
            .expect("sets");
        s.store
            .write(|tx| (0..5).try_for_each(|n| tx.remove(&format!("/t{n}")).map(drop)))
            .expect("removes");
        s.check();
        assert_eq!(s.text(""), "{}");
        assert_eq!(s.records(), 1, "nothing but the head of the catalogue is left");
    }
}

fn made_and_dropped(s: &Subject) {
    s.set("/a", "{}");
    s.check();
    let records = s.records();
    s.store
        .write(|tx| {
            tx.set("/a/x", &large(3))?;
            tx.set("/a/x/k7", &large(1))?;
            tx.set("/a/x", &large(2))?;
            tx.set("/a/x/below/below", &1.into())?;
            tx.copy("/a/x", "/a/y")?;
            tx.mv("/a/x", "/a/z")?;
            tx.remove("/a/y")?;
            tx.remove("/a/z")?;
            tx.set("/gone", &large(2))?;
            tx.remove("/gone")?;
            tx.set("/a/kept", &1.into())
        })
        .expect("commits");
    s.check();
    assert!(s.records() <= records + 2, "{} records, {records} before", s.records());
    assert_eq!(s.text(""), r#"{"a":{"kept":1}}"#);
}

fn stepwise(s: &Subject) {
    let trees = |s: &Subject| crate::model::trees(&*s.backend);
    s.store.write(|tx| tx.set("/a/big", &large(6))).expect("sets");
    let mut transaction = spinney::Transaction::begin(&*s.backend).expect("begins");
    transaction.remove("/a/big").expect("removes");
    let revision = transaction.commit(0).expect("commits").revision;
    s.backend.sync(revision).expect("syncs");
    assert_eq!(reclaim::step(&*s.backend, &trees(s)).expect("steps"), 0, "the log holds it");
    let before = s.store.at(revision - 1).expect("the state before");
    assert_eq!(before.get("/a/big").expect("reads"), Some(large(6)));
    drop(before);
    spinney_core::history::trim(&*s.backend, revision + 1).expect("forgets");
    for n in 0.. {
        let deleted = reclaim::step(&*s.backend, &trees(s)).expect("steps");
        if deleted == 0 {
            break;
        }
        assert!(deleted <= reclaim::STEP_RECORDS_MAX);
        assert_eq!(s.get("/a/big"), None);
        let report = s.store.read().and_then(|snapshot| snapshot.check()).expect("reads");
        assert!(report.is_sound(), "after {n} steps: {report:?}");
        if n < 5 {
            s.store.write(|tx| tx.set(&format!("/a/n{n}"), &large(1))).expect("sets");
        }
    }
    assert_eq!(s.count("/a"), s.store.read().expect("reads").count("/a").expect("counts"));
    assert!(s.get("/a/n0") == Some(large(1)));
}

fn edited_and_removed(s: &Subject) {
    s.store.write(|tx| tx.set("/a/big", &large(4))).expect("sets");
    s.store
        .write(|tx| {
            tx.set("/a/big/below/below/k3", &large(1))?;
            tx.remove("/a/big/below/text")?;
            tx.set("/a/big/below/below/below/below/5", &large(1))?;
            tx.mv("/a/big/below/below/below", "/a/big/moved")?;
            tx.set("/a/big/moved/new", &large(2))?;
            tx.remove("/a/big/below").map(drop)
        })
        .expect("edits");
    s.check();
    assert_eq!(s.get("/a/big/moved/below/5"), Some(large(1)));
    s.store
        .write(|tx| tx.set("/a/big/k1", &1.into()).and_then(|()| tx.remove("/a/big")))
        .expect("removes");
    s.check();
    assert_eq!(s.text(""), r#"{"a":{}}"#);
}
