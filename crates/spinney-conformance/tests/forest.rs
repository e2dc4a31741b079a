//! Stores whose trees are kept apart, over trees in memory.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use spinney::forest::Trees;
use spinney::formats::parse;
use spinney::{
    Answer, ErrorKind, Expect, Expected, LockOptions, OpenOptions, Proposal, Result, Store,
    SubscriberOptions, Value, ValueHash,
};
use spinney_core::Memory;
use spinney_core::backend::{Backend, Capabilities};

/// Trees that are each in memory.
struct InMemory {
    capabilities: Capabilities,
    trees: Mutex<BTreeMap<String, Arc<Memory>>>,
}

impl Trees for InMemory {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn names(&self) -> Result<Vec<String>> {
        Ok(self.trees.lock().unwrap().keys().cloned().collect())
    }

    fn open(&self, name: &str, create: bool) -> Result<Option<Arc<dyn Backend>>> {
        let mut trees = self.trees.lock().unwrap();
        if create {
            trees.entry(name.to_owned()).or_default();
        }
        Ok(trees.get(name).map(|tree| -> Arc<dyn Backend> { Arc::clone(tree) as _ }))
    }

    fn stats(&self) -> Result<Vec<(String, String)>> {
        Ok(vec![("backend".into(), "trees in memory".into())])
    }
}

fn store() -> Store {
    let capabilities = Memory::new().capabilities().clone();
    let capabilities = Capabilities { multi_tree_commit: false, ..capabilities };
    OpenOptions::new().over_trees(Arc::new(InMemory { capabilities, trees: Mutex::default() }))
}

fn json(text: &str) -> Value {
    parse(text).expect(text)
}

fn refused<T>(kind: ErrorKind, part: &str, tried: Result<T>) {
    let Err(error) = tried else { panic!("it was not refused: {part}") };
    assert_eq!(error.kind(), kind, "{error}");
    assert!(error.to_string().contains(part), "`{error}` does not say `{part}`");
}

#[test]
fn each_write_goes_to_its_tree_and_the_root_has_all() -> Result<()> {
    let store = store();
    assert_eq!(store.read()?.get("")?, Some(json("{}")));
    let first = store.write(|tx| tx.set("/b/x", &1.into()))?;
    assert_eq!((first.revision, first.diff.ops.len()), (1, 1));
    assert_eq!(store.write(|tx| tx.set("/10", &json("[1, 2]")))?.revision, 1);
    assert_eq!(store.write(|tx| tx.set("/9", &"nine".into()))?.revision, 1);
    assert_eq!(store.write(|tx| tx.set("/b/y", &2.into()))?.revision, 2);
    assert_eq!(store.write(|_| Ok(7))?.value, 7);
    let snapshot = store.read()?;
    let all = json(r#"{"9": "nine", "10": [1, 2], "b": {"x": 1, "y": 2}}"#);
    assert_eq!(snapshot.get("")?.as_ref(), Some(&all));
    assert_eq!(snapshot.hash("")?, Some(ValueHash::of(&all)));
    assert_eq!(snapshot.count("")?, Some(3));
    assert_eq!(snapshot.count("/b")?, Some(2));
    assert_eq!(snapshot.get("/none/x")?, None);
    let listed = snapshot.list("", Some("10"), None)?.expect("the root");
    let names: Vec<_> =
        listed.iter().map(|member| (&*member.segment, member.kind.name())).collect();
    assert_eq!(names, [("10", "list"), ("b", "map")]);
    assert!(snapshot.check()?.is_sound());
    // A tree that was removed is not shown, and can come back.
    store.write(|tx| tx.remove("/b"))?;
    assert_eq!(snapshot.count("/b")?, Some(2), "it was read before");
    assert_eq!(store.read()?.count("")?, Some(2));
    store.holding("/b")?.revert(3)?;
    assert_eq!(store.read()?.count("/b")?, Some(2));
    Ok(())
}

#[test]
fn a_transaction_reads_before_it_writes_and_stays_in_its_tree() -> Result<()> {
    let store = store();
    store.write(|tx| tx.set("/a/n", &1.into()))?;
    let written = store.write(|tx| {
        tx.set_message("first of all")?;
        tx.expect("/a/n", &Expected::Value(1.into()))?;
        assert_eq!(tx.base(), 1);
        let n = tx.get("/a/n")?.expect("it is there");
        tx.set("/a/m", &n)?;
        tx.set_meta("/a/m", "copied", Some("yes"))?;
        tx.insert("/a/list/-", &1.into()).unwrap_err();
        tx.set("/a/list", &json("[1]"))?;
        tx.mv("/a/list", "/a/moved")?;
        tx.count("/a")
    })?;
    assert_eq!(written.value, Some(3));
    let log: Result<Vec<_>> = store.holding("/a")?.read()?.log()?.collect();
    assert_eq!(log?[0].entry.note.message, "first of all");
    let one = "one commit changes one tree of this store";
    for refusal in [
        store.write(|tx| tx.set("/a/n", &2.into()).and_then(|()| tx.set("/b", &2.into()))),
        store.write(|tx| tx.get("/b").and_then(|_| tx.set("/a/n", &2.into()))),
        store.write(|tx| tx.copy("/a/n", "/b/n")),
        store.write(|tx| tx.mv("/a", "/b")),
        store.write(|tx| tx.set("", &json("{}"))),
        store.write(|tx| tx.merge("", &json(r#"{"a": {"n": 2}}"#))),
        store.write(|tx| tx.get("").map(drop)),
        store.holding("/a")?.write(|tx| tx.set("/b", &1.into())),
    ] {
        refused(ErrorKind::Unsupported, one, refusal);
    }
    let patch =
        |text: &str| store.write(|tx| tx.patch_with("", |visitor| json(text).visit(visitor)));
    let other =
        r#"[{"op": "add", "path": "/a/n", "value": 5}, {"op": "add", "path": "/b", "value": 5}]"#;
    refused(ErrorKind::Unsupported, one, patch(other));
    assert_eq!(store.read()?.get("/a/n")?, Some(1.into()), "nothing has changed");
    patch(
        r#"[{"op": "test", "path": "/a/n", "value": 1}, {"op": "copy", "from": "/a/n", "path": "/a/k"}]"#,
    )?;
    patch(r#"[{"op": "move", "from": "/a/moved", "path": "/a"}]"#)?;
    assert_eq!(store.read()?.get("/a")?, Some(json("[1]")));
    refused(
        ErrorKind::Conflict,
        "it is so",
        store.write(|tx| {
            tx.get("/a")?;
            Err::<(), _>(spinney::Error::conflict("it is so"))
        }),
    );
    Ok(())
}

#[test]
fn what_needs_one_history_names_the_tree_to_ask() -> Result<()> {
    let store = store();
    store.write(|tx| tx.set("/a/n", &1.into()))?;
    let why = "each tree of this store has its own revisions";
    refused(ErrorKind::Unsupported, why, store.at(1));
    refused(ErrorKind::Unsupported, why, store.between(0, 1));
    refused(ErrorKind::Unsupported, why, store.revert(1));
    refused(ErrorKind::Unsupported, why, store.restore(0));
    refused(ErrorKind::Unsupported, why, store.forget_before(1));
    refused(ErrorKind::Unsupported, why, store.changes("", 0));
    refused(ErrorKind::Unsupported, why, store.read()?.revision());
    refused(ErrorKind::Unsupported, why, store.read()?.node(""));
    refused(ErrorKind::NotFound, "there is no tree `/b`", store.holding("/b"));
    let mut feed = store.changes("/a", 0)?;
    assert!(feed.next(std::time::Duration::ZERO)?.is_some());
    assert!(store.read()?.node("/a")?.is_some());
    assert_eq!(store.holding("/a/n")?.at(0)?.get("/a")?, None);
    store.sync()?;
    store.reclaim()?;
    Ok(())
}

#[test]
fn subscribers_and_schemas_are_of_trees() -> Result<()> {
    let store = store();
    let options = || SubscriberOptions::new("no fives");
    let veto = |proposal: &Proposal| match proposal.after.get("/a/n") {
        Ok(Some(five)) if five == 5.into() => Answer::Veto("it is five".into()),
        _ => Answer::Pass,
    };
    let root = store.before_commit("", options(), veto);
    refused(ErrorKind::Unsupported, "subscribe to a tree", root.map(drop));
    let kept = store.before_commit("/a", options(), veto)?;
    store.write(|tx| tx.set("/a/n", &4.into()))?;
    refused(ErrorKind::Denied, "it is five", store.write(|tx| tx.set("/a/n", &5.into())));
    store.write(|tx| tx.set("/b/n", &5.into()))?;
    drop(kept);
    store.write(|tx| tx.set("/a/n", &5.into()))?;
    let schema = json(r#"{"properties": {"n": {"type": "number"}}}"#);
    store.set_schema("/a", &schema, Default::default())?;
    refused(ErrorKind::Invalid, "", store.write(|tx| tx.set("/a/n", &"x".into())));
    assert_eq!(store.schemas()?.len(), 1);
    assert_eq!(store.read()?.count("")?, Some(2), "schemas are no tree of their own");
    store.remove_schema("/a")?;
    store.write(|tx| tx.set("/a/n", &"x".into()))?;
    Ok(())
}

#[test]
fn copies_go_tree_by_tree() -> Result<()> {
    let (source, target) = (spinney::open("memory:")?, store());
    let all = json(r#"{"a": [1, 2.0], "b": {"x": "y"}}"#);
    source.write(|tx| tx.set("", &all))?;
    let copied = target.copy_from(&source.read()?, &mut |_| ())?;
    assert_eq!(Some(copied.hash), source.read()?.hash("")?);
    refused(ErrorKind::AlreadyExists, "not empty", target.copy_from(&source.read()?, &mut |_| ()));
    let back = spinney::open("memory:")?;
    assert_eq!(back.copy_from(&target.read()?, &mut |_| ())?.hash, copied.hash);
    Ok(())
}

#[test]
fn a_lock_is_of_one_tree() -> Result<()> {
    let capabilities = Memory::new().capabilities().clone();
    let trees = Arc::new(InMemory { capabilities, trees: Mutex::default() });
    let open = |author: &str| OpenOptions::new().author(author).over_trees(Arc::clone(&trees) as _);
    let (ann, bob) = (open("ann"), open("bob"));
    let lock = |store: &Store, path: &str| store.lock(path, LockOptions::default());
    let set = |store: &Store, path: &str| store.write(|tx| tx.set(path, &1.into())).map(drop);
    refused(ErrorKind::Unsupported, "lock a tree, such as `/people`", lock(&ann, "").map(drop));
    let locked = lock(&ann, "/a/x")?;
    refused(ErrorKind::Busy, "`/a/x` is locked by ann", set(&bob, "/a"));
    refused(ErrorKind::Busy, "`/a/x` is locked by ann", lock(&bob, "/a").map(drop));
    set(&bob, "/a/y")?;
    set(&bob, "/b")?;
    set(&ann, "/a/x")?;
    let other = lock(&bob, "/b")?;
    let paths: Vec<String> = ann.locks()?.iter().map(|lock| (*lock.path).to_owned()).collect();
    assert_eq!(paths, ["/a/x", "/b"]);
    let helper = OpenOptions::new().owner(Some(other.owner())).over_trees(Arc::clone(&trees) as _);
    set(&helper, "/b")?;
    refused(ErrorKind::Busy, "`/b` is locked by bob", ann.write(|tx| tx.remove("/b")));
    refused(ErrorKind::NotFound, "is not locked", bob.break_lock("").map(drop));
    bob.break_lock("/a/x")?;
    assert!(!locked.is_held() && other.is_held());
    set(&bob, "/a")?;
    drop((locked, other));
    assert!(ann.locks()?.is_empty());
    let copy = spinney::open("memory:")?;
    copy.copy_from(&ann.read()?, &mut |_| ())?;
    assert_eq!(copy.read()?.get("")?, Some(json(r#"{"a": 1, "b": 1}"#)));
    Ok(())
}
