//! Datastores of several processes, killed in the middle, on LMDB.
//!
//! Other processes are this binary again, which runs `child` with a role from the environment.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use spinney::datastores::Datastore::{Candidate, Operational, Running};
use spinney::datastores::{CandidateCommit, CandidateState, Datastores};
use spinney::schemas::SchemaOptions;
use spinney::{ErrorKind, LockOptions, Store, Value};
use spinney_conformance::child::{self, kill, said, say, start};
use spinney_conformance::folder;
use spinney_conformance::subject::json;

/// Long enough for whatever is to happen.
const LONG: Duration = Duration::from_secs(60);

fn open(dir: &Path) -> Store {
    spinney::open(&format!("lmdb:{}", dir.display())).expect("a store")
}

fn at(all: &Datastores, datastore: spinney::datastores::Datastore, path: &str) -> Option<Value> {
    all.read(datastore).and_then(|state| state.get(path)).expect("an answer")
}

#[test]
fn child() {
    let Some((role, dir)) = child::role() else { return };
    let store = open(&dir);
    let all = store.datastores().expect("datastores");
    match role.as_str() {
        "pusher" => {
            let pushed = all.push("dhcp", None).expect("it can be pushed");
            pushed.edit(|edit| edit.set("/address", &"10.0.0.7".into())).expect("it is pushed");
            say("pushed");
            thread::sleep(LONG);
        }
        "editor" => {
            let _lock = store.lock("/candidate", LockOptions::default()).expect("it is locked");
            all.edit(Candidate, |edit| edit.set("/a", &2.into())).expect("it is changed");
            say("edited");
            thread::sleep(LONG);
        }
        "committer" => {
            all.edit(Candidate, |edit| edit.set("/a", &2.into())).expect("it is changed");
            let confirmed = Some(Duration::from_millis(1_500));
            let options = CandidateCommit { confirmed, ..CandidateCommit::default() };
            all.commit(&options).expect("it is committed");
            say("committed");
            thread::sleep(LONG);
        }
        other => panic!("no role `{other}`"),
    }
}

#[test]
fn what_the_dead_have_pushed_is_gone() {
    let dir = folder::temporary();
    let store = open(dir.path());
    let all = store.datastores().expect("datastores");
    all.edit(Running, |edit| edit.set("/name", &"x".into())).expect("it is set");
    for _ in 0..3 {
        let mut pusher = start("pusher", dir.path());
        said(&mut pusher).next().expect("it pushes");
        assert_eq!(at(&all, Operational, "/address"), Some("10.0.0.7".into()));
        let tried = all.push("dhcp", None).map(drop).expect_err("it is pushed");
        assert_eq!(tried.kind(), ErrorKind::AlreadyExists, "{tried}");
        kill(pusher);
        assert_eq!(at(&all, Operational, "/address"), None, "its owner is dead");
        assert_eq!(at(&all, Operational, "/name"), Some("x".into()));
        // And the next who pushes tidies up.
        let again = all.push("dhcp", None).expect("it can be pushed");
        assert_eq!(again.order(), 1);
    }
}

#[test]
fn a_candidate_that_the_dead_had_locked_is_gone() {
    let dir = folder::temporary();
    let store = open(dir.path());
    let all = store.datastores().expect("datastores");
    all.edit(Running, |edit| edit.set("/a", &1.into())).expect("it is set");
    for n in 0..3 {
        let mut editor = start("editor", dir.path());
        said(&mut editor).next().expect("it edits");
        assert_eq!(at(&all, Candidate, "/a"), Some(2.into()));
        let tried = all.edit(Candidate, |edit| edit.set("/b", &1.into())).map(drop);
        assert_eq!(tried.expect_err("it is locked").kind(), ErrorKind::Busy);
        kill(editor);
        assert_eq!(all.candidate().expect("an answer"), CandidateState::Unchanged);
        assert_eq!(at(&all, Candidate, "/a"), Some(1.into()), "its owner is dead");
        all.validate().expect("there is nothing to judge");
        // The next who changes it begins anew.
        all.edit(Candidate, |edit| edit.set("/b", &n.into())).expect("it is changed");
        assert_eq!(at(&all, Candidate, "/a"), Some(1.into()));
        all.commit(&CandidateCommit::default()).expect("it is committed");
        assert_eq!(at(&all, Running, "/a"), Some(1.into()));
        assert_eq!(at(&all, Running, "/b"), Some(n.into()));
    }
}

#[test]
fn a_commit_of_the_dead_is_rolled_back_whatever_schema_came_meanwhile() {
    let dir = folder::temporary();
    let store = open(dir.path());
    store.write(|tx| tx.set("/running/a", &1.into())).expect("it is set");
    let mut committer = start("committer", dir.path());
    said(&mut committer).next().expect("it commits");
    kill(committer);
    let schema = json(r#"{"properties": {"a": {"minimum": 2}}}"#);
    store.set_schema("/running", &schema, SchemaOptions::default()).expect("it fits");
    let end = |tx: &mut spinney::Transaction<'_>| tx.set("/.unconfirmed/deadline", &1.into());
    store.write(end).expect("its time is up");
    drop(store);
    let store = open(dir.path());
    let all = store.datastores().expect("datastores");
    assert_eq!(at(&all, Running, "/a"), Some(1.into()));
    assert_eq!(all.unconfirmed().expect("an answer"), None);
    let newest = store.read().expect("a state").log().expect("reads").next().expect("a commit");
    let message = newest.expect("reads").entry.note.message;
    assert!(message.contains("made nevertheless: the schema of `/running`"), "{message}");
    assert!(!store.check_schema("/running").expect("it is judged").is_valid());
}

#[test]
fn a_commit_of_the_dead_is_rolled_back_in_time() {
    let dir = folder::temporary();
    open(dir.path()).write(|tx| tx.set("/running/a", &1.into())).expect("it is set");
    // Who has the store open rolls back, whether from before the commit on or since, and who opens it when the time is up.
    for since in [Some("before"), Some("after"), None] {
        let watcher = since.map(|_| open(dir.path()));
        let watch = |when| {
            let watching = watcher.as_ref().filter(|_| since == Some(when));
            watching.map(|store| store.datastores().expect("datastores"))
        };
        let before = watch("before");
        let mut committer = start("committer", dir.path());
        said(&mut committer).next().expect("it commits");
        let watching = before.or_else(|| watch("after"));
        kill(committer);
        let begun = Instant::now();
        match &watcher {
            Some(store) => {
                let now = || store.read().and_then(|state| state.get("/running/a"));
                while now().expect("an answer") != Some(1.into()) {
                    assert!(begun.elapsed() < LONG, "nobody rolls back");
                    thread::sleep(Duration::from_millis(20));
                }
            }
            None => thread::sleep(Duration::from_millis(1_600)),
        }
        let all = watching.unwrap_or_else(|| open(dir.path()).datastores().expect("datastores"));
        assert_eq!(at(&all, Running, "/a"), Some(1.into()));
        assert_eq!(all.unconfirmed().expect("an answer"), None);
        assert_eq!(all.candidate().expect("an answer"), CandidateState::Unchanged);
    }
}
