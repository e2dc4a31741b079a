//! `startup`, `running`, `candidate`, `operational` and `factory-default`.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::sleep;
use std::time::{Duration, Instant};

use spinney::ErrorKind::{
    AlreadyExists, Busy, Conflict, Invalid, InvalidInput, NotFound, Unsupported,
};
use spinney::datastores::Datastore::{Candidate, FactoryDefault, Operational, Running, Startup};
use spinney::datastores::{CandidateCommit, CandidateState, Datastore, Datastores};
use spinney::history::Retention;
use spinney::layers::Prefer;
use spinney::schemas::SchemaOptions;
use spinney::{
    Answer, Ended, Error, LockOptions, OpenOptions, Proposal, Result, Subscriber,
    SubscriberOptions, Value,
};

use super::{Case, skipped};
use crate::servers::refused;
use crate::subject::{Subject, json, text_of};

pub(super) const CASES: &[Case] = &[
    ("a candidate shows running until it is changed", candidate),
    ("a candidate becomes running", committing),
    ("what both have changed is a conflict", conflicts),
    ("a candidate that is locked goes with its lock", locked),
    ("a candidate is judged by the schema of running", judged),
    ("a commit is rolled back unless it is confirmed", confirmed),
    ("nobody can refuse that a commit is rolled back", overruled),
    ("what a commit is rolled back by is not forgotten", kept_to_roll_back),
    ("what waits for its confirmation waits in its store alone, and once", waits_nowhere_else),
    ("a candidate that is imported rests on what came with it", imported),
    ("datastores are copied and reset", copies),
    ("what is pushed is there as long as who pushes", pushed),
    ("what is provided is made when it is read", provided),
    ("a provider that fails is named", failing),
    ("a candidate whose base is forgotten", forgotten),
    ("a random history of candidates", random),
];

fn datastores(s: &Subject) -> Option<Datastores> {
    if !s.store.capabilities().multi_tree_commit {
        refused(Unsupported, "several trees", s.store.datastores());
        skipped("datastores", "trees do not change together");
        return None;
    }
    Some(s.store.datastores().expect("datastores"))
}

fn text(all: &Datastores, datastore: Datastore) -> String {
    let state = all.read(datastore).expect("a state");
    match state.kind("").expect("an answer") {
        None => String::new(),
        Some(_) => text_of(&state, ""),
    }
}

fn set(all: &Datastores, datastore: Datastore, path: &str, value: &str) {
    all.edit(datastore, |edit| edit.set(path, &json(value))).expect("it can be set");
}

fn remove(all: &Datastores, datastore: Datastore, path: &str) -> bool {
    all.edit(datastore, |edit| edit.remove(path)).expect("it can be removed").value
}

fn commit(all: &Datastores) -> Result<()> {
    all.commit(&CandidateCommit::default()).map(drop)
}

fn candidate(s: &Subject) {
    let Some(all) = datastores(s) else { return };
    assert_eq!(text(&all, Candidate), "");
    set(&all, Running, "/if/eth0/mtu", "1500");
    assert_eq!(text(&all, Candidate), r#"{"if":{"eth0":{"mtu":1500}}}"#);
    assert_eq!(all.candidate().expect("an answer"), CandidateState::Unchanged);
    let base = s.revision();
    set(&all, Candidate, "/if/eth0/mtu", "9000");
    assert_eq!(all.candidate().expect("an answer"), CandidateState::Changed(base));
    set(&all, Running, "/if/eth1", "{}");
    assert_eq!(text(&all, Candidate), r#"{"if":{"eth0":{"mtu":9000}}}"#);
    assert_eq!(text(&all, Running), r#"{"if":{"eth0":{"mtu":1500},"eth1":{}}}"#);
    let state = all.read(Candidate).expect("a state");
    assert_eq!(state.sources("/if/eth0/mtu").expect("an answer"), Some(vec!["candidate"]));
    assert_eq!(state.sources("/if/eth0").expect("an answer"), Some(vec!["candidate", "running"]));
    all.discard().expect("it can be discarded");
    assert_eq!(text(&all, Candidate), text(&all, Running));
    assert_eq!(all.candidate().expect("an answer"), CandidateState::Unchanged);
}

fn committing(s: &Subject) {
    let Some(all) = datastores(s) else { return };
    commit(&all).expect("nothing changes");
    set(&all, Running, "/a", r#"{"b": {"x": 1, "y": 2}, "c": [1], "d": true, "z": {"q": 1}}"#);
    set(&all, Candidate, "/a/b/x", "10");
    assert!(remove(&all, Candidate, "/a/d"));
    set(&all, Candidate, "/a/c/-", "2");
    set(&all, Candidate, "/a/new/deep", r#"{"k": null}"#);
    set(&all, Candidate, "/a/z", r#"{"w": 1}"#);
    // What only running has changed stays.
    set(&all, Running, "/a/b/y", "20");
    set(&all, Running, "/other", "1");
    commit(&all).expect("it becomes running");
    let whole =
        r#"{"a":{"b":{"x":10,"y":20},"c":[1,2],"new":{"deep":{"k":null}},"z":{"w":1}},"other":1}"#;
    assert_eq!(text(&all, Running), whole);
    assert_eq!(text(&all, Candidate), whole);
    assert_eq!(all.candidate().expect("an answer"), CandidateState::Unchanged);
    assert_eq!(s.get("/candidate"), None);
    let marked = s.store.read().expect("a state").meta("/running/a/z").expect("an answer");
    assert_eq!(marked, Some(vec![]), "marks are the layer's alone");
    assert!(remove(&all, Candidate, ""));
    assert_eq!(text(&all, Candidate), "");
    commit(&all).expect("it becomes running");
    assert_eq!(text(&all, Running), "");
    // A commit of one leaf changes one leaf.
    set(&all, Running, "/n", r#"{"a": 1, "b": 2}"#);
    set(&all, Candidate, "/n/a", "3");
    let committed = all.commit(&CandidateCommit::default()).expect("it becomes running");
    let running = |path: &str| path.starts_with("/running");
    let changed: Vec<_> = committed.diff.ops.iter().map(|op| op.pointer()[..].to_owned()).collect();
    assert_eq!(changed.iter().filter(|path| running(path)).count(), 1, "{changed:?}");
}

fn conflicts(s: &Subject) {
    let Some(all) = datastores(s) else { return };
    set(&all, Running, "/a", r#"{"x": 1, "y": 2, "m": {"k": 1}, "same": 1, "gone": {"k": 1}}"#);
    set(&all, Candidate, "/a/x", "10");
    set(&all, Candidate, "/a/same", "5");
    set(&all, Candidate, "/a/m", "{}");
    set(&all, Candidate, "/a/gone/new", "1");
    set(&all, Running, "/a/x", "11");
    set(&all, Running, "/a/same", "5");
    set(&all, Running, "/a/m/k", "2");
    assert!(remove(&all, Running, "/a/gone"));
    let before = text(&all, Running);
    let found = all.conflicts().expect("an answer");
    let shown: Vec<_> = found
        .iter()
        .map(|found| {
            (&found.path[..], found.base.clone(), found.lower.clone(), found.layer.clone())
        })
        .collect();
    assert_eq!(
        shown,
        [
            ("/a/gone", Some(json(r#"{"k": 1}"#)), None, Some(json(r#"{"new": 1}"#))),
            ("/a/m", Some(json(r#"{"k": 1}"#)), Some(json(r#"{"k": 2}"#)), Some(json("{}"))),
            ("/a/x", Some(1.into()), Some(11.into()), Some(10.into())),
        ]
    );
    let tried = commit(&all);
    refused(Conflict, "`/a/gone`, `/a/m`, `/a/x`: changed by others", tried);
    assert_eq!(text(&all, Running), before);
    refused(Conflict, "`/a/x`", all.rebase(Prefer::Neither));
    refused(Conflict, "`/a/x`", all.validate());
    let preferring = |prefer| CandidateCommit { prefer, ..CandidateCommit::default() };
    all.commit(&preferring(Prefer::Lower)).expect("running is preferred");
    assert_eq!(text(&all, Running), before);
    set(&all, Candidate, "/a/x", "12");
    set(&all, Running, "/a/x", "13");
    all.rebase(Prefer::Lower).expect("running is preferred");
    assert_eq!(text(&all, Candidate), text(&all, Running));
    set(&all, Candidate, "/a/x", "14");
    set(&all, Running, "/a/x", "15");
    all.rebase(Prefer::Layer).expect("the candidate is preferred");
    assert_eq!(all.conflicts().expect("an answer"), []);
    commit(&all).expect("it becomes running");
    assert_eq!(s.get("/running/a/x"), Some(14.into()));
    set(&all, Candidate, "/a/x", "16");
    set(&all, Running, "/a", "17");
    refused(Conflict, "`/a`", commit(&all));
    all.commit(&preferring(Prefer::Layer)).expect("the candidate is preferred");
    assert_eq!(text(&all, Running), r#"{"a":{"x":16}}"#);
}

fn locked(s: &Subject) {
    let Some(all) = datastores(s) else { return };
    let lock = || s.store.lock("/candidate", LockOptions::default()).expect("it is free");
    set(&all, Running, "/a", "1");
    // What was begun without a lock does not go with one.
    set(&all, Candidate, "/a", "2");
    let held = lock();
    refused(Busy, "before it was locked", all.edit(Candidate, |edit| edit.set("/a", &3.into())));
    all.discard().expect("it is discarded");
    set(&all, Candidate, "/a", "3");
    set(&all, Candidate, "/b", "3");
    assert_eq!(text(&all, Candidate), r#"{"a":3,"b":3}"#);
    set(&all, Running, "/c", "1");
    all.rebase(Prefer::Neither).expect("it is rebased");
    assert_eq!(text(&all, Candidate), r#"{"a":3,"b":3,"c":1}"#);
    commit(&all).expect("it becomes running");
    all.copy(Startup, Candidate).expect("it is copied");
    assert_eq!(text(&all, Candidate), "");
    set(&all, Candidate, "/d", "4");
    held.unlock().expect("it is unlocked");
    assert_eq!(all.candidate().expect("an answer"), CandidateState::Unchanged);
    let running = r#"{"a":3,"b":3,"c":1}"#;
    assert_eq!((text(&all, Candidate), text(&all, Running)), (running.into(), running.into()));
    assert_eq!(all.conflicts().expect("an answer"), []);
    all.rebase(Prefer::Neither).expect("there is nothing to do");
    commit(&all).expect("there is nothing to do");
    assert_eq!(s.get("/candidate"), None, "a commit removes what is left");
    // Under another lock it begins anew, and a commit without changes of its own takes none.
    let held = lock();
    set(&all, Candidate, "/e", "5");
    drop(held);
    let held = lock();
    assert_eq!(text(&all, Candidate), running);
    set(&all, Candidate, "/f", "6");
    assert_eq!(text(&all, Candidate), r#"{"a":3,"b":3,"c":1,"f":6}"#);
    drop(held);
    set(&all, Candidate, "/g", "7");
    assert_eq!(text(&all, Candidate), r#"{"a":3,"b":3,"c":1,"g":7}"#);
}

fn judged(s: &Subject) {
    let Some(all) = datastores(s) else { return };
    let schema = r#"{"properties": {"n": {"type": "integer"}}, "required": ["n"]}"#;
    set(&all, Running, "", r#"{"n": 1}"#);
    s.store.set_schema("/running", &json(schema), SchemaOptions::default()).expect("a schema");
    refused(Invalid, "n", all.edit(Running, |edit| edit.set("/n", &"x".into())));
    set(&all, Candidate, "/n", "\"x\"");
    let before = s.revision();
    refused(Invalid, "integer", all.validate());
    refused(Invalid, "integer", commit(&all));
    assert_eq!((s.revision(), text(&all, Running)), (before, r#"{"n":1}"#.to_owned()));
    set(&all, Candidate, "/n", "2");
    all.validate().expect("it is valid");
    assert_eq!(text(&all, Running), r#"{"n":1}"#);
    commit(&all).expect("it becomes running");
    assert_eq!(text(&all, Running), r#"{"n":2}"#);
}

fn confirmed(s: &Subject) {
    let Some(all) = datastores(s) else { return };
    let within = |name: &str, seconds: f64| CandidateCommit {
        confirmed: Some(Duration::from_secs_f64(seconds)),
        name: name.to_owned(),
        ..CandidateCommit::default()
    };
    set(&all, Running, "/a", "1");
    set(&all, Candidate, "/a", "2");
    all.commit(&within("", 600.0)).expect("it becomes running");
    assert_eq!(text(&all, Running), r#"{"a":2}"#);
    let waiting = all.unconfirmed().expect("an answer").expect("one");
    assert!(waiting.left > Duration::from_secs(500));
    refused(Busy, "without a name", all.confirm("x"));
    all.confirm("").expect("it is confirmed");
    refused(NotFound, "no commit waits", all.confirm(""));
    refused(NotFound, "no commit waits", all.cancel(""));
    // One goes on with another, and both are cancelled.
    set(&all, Candidate, "/a", "3");
    all.commit(&within("n", 600.0)).expect("it becomes running");
    set(&all, Candidate, "/a", "4");
    refused(Busy, "named `n`", commit(&all));
    all.commit(&within("n", 600.0)).expect("it goes on");
    set(&all, Running, "/b", "1");
    set(&all, Startup, "/kept", "1");
    all.cancel("n").expect("it is cancelled");
    assert_eq!(
        (text(&all, Running), text(&all, Startup)),
        (r#"{"a":2}"#.into(), r#"{"kept":1}"#.into())
    );
    // A commit of the same name without a time confirms.
    set(&all, Candidate, "/a", "5");
    all.commit(&within("n", 600.0)).expect("it becomes running");
    all.commit(&CandidateCommit { name: "n".into(), ..CandidateCommit::default() })
        .expect("it confirms");
    assert_eq!(all.unconfirmed().expect("an answer"), None);
    // The time is up while nobody does anything.
    set(&all, Candidate, "/a", "6");
    all.commit(&within("", 0.2)).expect("it becomes running");
    let begun = Instant::now();
    while s.get("/running/a") != Some(5.into()) {
        assert!(begun.elapsed() < Duration::from_secs(60), "it is not rolled back");
        sleep(Duration::from_millis(20));
    }
    assert_eq!(all.unconfirmed().expect("an answer"), None);
    set(&all, Candidate, "/a", "7");
    refused(InvalidInput, "at most", all.commit(&within("", 1e9)));
}

fn within_minutes() -> CandidateCommit {
    CandidateCommit { confirmed: Some(Duration::from_secs(600)), ..CandidateCommit::default() }
}

/// Ends the time of what is to be confirmed.
fn expire(s: &Subject) {
    let path = "/.unconfirmed/deadline";
    s.store.write(|tx| tx.set(path, &1.into())).expect("its time is up");
}

/// A schema that came meanwhile does not allow what was before, and a subscriber is against everything.
fn overruled(s: &Subject) {
    let Some(all) = datastores(s) else { return };
    set(&all, Running, "/n", "1");
    set(&all, Candidate, "/n", "\"x\"");
    all.commit(&within_minutes()).expect("it becomes running");
    let schema = r#"{"properties": {"n": {"type": "string"}, "m": {"type": "integer"}}}"#;
    s.store.set_schema("/running", &json(schema), SchemaOptions::default()).expect("a schema");
    refused(Invalid, "expected a string", all.cancel(""));
    let (told, ends) = mpsc::channel();
    let options = SubscriberOptions::new("stubborn").timeout(Duration::from_secs(60));
    let stubborn = s.store.before_commit("/running", options, Stubborn(told)).expect("subscribes");
    let locks = LockOptions { name: "work".into(), ..LockOptions::default() };
    let lock = s.store.lock("/running", locks).expect("a lock");
    expire(s);
    let all = s.store.datastores().expect("it is rolled back");
    assert_eq!(
        (text(&all, Running), all.unconfirmed().expect("an answer")),
        (r#"{"n":1}"#.into(), None)
    );
    let newest = s.store.read().expect("a state").log().expect("reads").next().expect("a commit");
    let message = newest.expect("reads").entry.note.message;
    assert!(message.starts_with("rolled back: the commit was not confirmed"), "{message}");
    assert!(message.contains("made nevertheless"), "{message}");
    let made = Ended::Committed(s.revision());
    while ends.recv_timeout(Duration::from_secs(60)).expect("it is told") != made {}
    drop(stubborn);
    // What does not fit is told, and what comes next is judged by what it changes.
    let report = s.store.check_schema("/running").expect("it is judged");
    assert!(report.to_string().contains("expected a string"), "{report}");
    set(&all, Running, "/m", "2");
    refused(Invalid, "`/m`", all.edit(Running, |edit| edit.set("/m", &"x".into())));
    lock.unlock().expect("it is unlocked");
}

/// Refuses all, and passes on how it ended.
struct Stubborn(mpsc::Sender<Ended>);

impl Subscriber for Stubborn {
    fn asked(&mut self, _: &Proposal) -> Answer {
        Answer::Veto("never".to_owned())
    }

    fn told(&mut self, _: u64, ended: &Ended) {
        let _ = self.0.send(ended.clone());
    }
}

/// However little history is kept, by whom and for how many commits.
fn kept_to_roll_back(s: &Subject) {
    let Some(all) = datastores(s) else { return };
    set(&all, Running, "", r#"{"a": 1, "b": {"c": 2}}"#);
    set(&all, Candidate, "/a", "2");
    assert!(remove(&all, Candidate, "/b"));
    all.commit(&within_minutes()).expect("it becomes running");
    let retention = Retention { revisions_max: 3, ..Retention::DEFAULT };
    for retention in [retention, Retention { revisions_max: 0, ..retention }] {
        let store = OpenOptions::new().retention(retention).over(Arc::clone(&s.backend), None);
        for n in 0..40 {
            store.write(|tx| tx.set("/others/n", &n.into())).expect("sets");
        }
        store.wait_until_reclaimed();
    }
    s.store.forget_before(u64::MAX).expect("forgets");
    s.store.reclaim().expect("reclaims");
    let logged = || s.store.read().expect("a state").log().expect("reads").count();
    assert!(logged() > 80, "{} commits are kept", logged());
    expire(s);
    let all = s.store.datastores().expect("it is rolled back");
    assert_eq!(text(&all, Running), r#"{"a":1,"b":{"c":2}}"#);
    // And then it may go.
    s.store.forget_before(u64::MAX).expect("forgets");
    assert_eq!(logged(), 0);
    s.check();
}

/// It waits in its store alone, and only once.
fn waits_nowhere_else(s: &Subject) {
    let Some(all) = datastores(s) else { return };
    set(&all, Running, "/a", "1");
    set(&all, Candidate, "/a", "2");
    all.commit(&within_minutes()).expect("it becomes running");
    let waiting = s.revision();
    set(&all, Candidate, "/b", "3");
    // A copy has other revisions: what waits is left behind, and the candidate rests on what was copied with it.
    let copy = spinney::open("memory:").expect("a store");
    for n in 0..20 {
        copy.write(|tx| tx.set("/n", &n.into())).expect("sets");
    }
    copy.write(|tx| tx.remove("/n")).expect("it is empty again");
    copy.copy_from(&s.store.read().expect("a state"), &mut |_| ()).expect("a copy");
    let copied = copy.datastores().expect("datastores");
    assert_eq!(copied.unconfirmed().expect("an answer"), None);
    assert_eq!(text(&copied, Candidate), r#"{"a":2,"b":3}"#);
    set(&copied, Running, "/b", "4");
    refused(Conflict, "`/b`", commit(&copied));
    assert_eq!(copied.conflicts().expect("an answer").len(), 1);
    // What was confirmed does not wait again in an older state that comes back.
    all.confirm("").expect("it is confirmed");
    set(&all, Running, "/a", "5");
    s.store.restore(waiting).expect("it is restored");
    assert_eq!(
        (all.unconfirmed().expect("an answer"), text(&all, Running)),
        (None, r#"{"a":2}"#.into())
    );
    // After a reset nothing of before comes back.
    all.discard().expect("discarded");
    set(&all, FactoryDefault, "/new", "true");
    set(&all, Candidate, "/a", "6");
    all.commit(&within_minutes()).expect("it becomes running");
    all.reset_to_factory_default().expect("a reset");
    assert_eq!(all.unconfirmed().expect("an answer"), None);
    // A clock that was wrong, or is set back by more than a commit may wait, does not keep it in force.
    set(&all, Candidate, "/a", "7");
    all.commit(&within_minutes()).expect("it becomes running");
    let far = Value::from(u64::MAX / 2);
    s.store.write(|tx| tx.set("/.unconfirmed/deadline", &far)).expect("sets");
    let all = s.store.datastores().expect("it is rolled back");
    assert_eq!(text(&all, Running), r#"{"new":true}"#);
}

fn imported(s: &Subject) {
    let Some(all) = datastores(s) else { return };
    set(&all, Running, "/a", "1");
    set(&all, Candidate, "/a", "2");
    let exported = s.store.read().and_then(|state| state.get("")).expect("reads").expect("a root");
    commit(&all).expect("it becomes running");
    set(&all, Running, "", r#"{"other": true}"#);
    s.write(|tx| tx.set("", &exported));
    assert_eq!(all.candidate().expect("an answer"), CandidateState::Changed(s.revision()));
    set(&all, Running, "/b", "3");
    assert_eq!(text(&all, Candidate), r#"{"a":2}"#);
    assert_eq!(all.conflicts().expect("an answer"), []);
    commit(&all).expect("nobody has changed the same");
    assert_eq!(text(&all, Running), r#"{"a":2,"b":3}"#);
    let wrong = json(r#"{".datastores": {"candidate": 7}}"#);
    refused(InvalidInput, "`/.datastores` has no `base`", s.store.write(|tx| tx.set("", &wrong)));
}

fn copies(s: &Subject) {
    let Some(all) = datastores(s) else { return };
    set(&all, FactoryDefault, "", r#"{"name": "device", "ports": [1, 2]}"#);
    all.reset_to_factory_default().expect("a reset");
    assert_eq!(text(&all, Running), r#"{"name":"device","ports":[1,2]}"#);
    set(&all, Running, "/name", "\"mine\"");
    all.copy(Running, Startup).expect("a copy");
    assert_eq!(text(&all, Startup), r#"{"name":"mine","ports":[1,2]}"#);
    set(&all, Candidate, "/name", "\"other\"");
    all.copy(Candidate, Startup).expect("a copy");
    assert_eq!(text(&all, Startup), r#"{"name":"other","ports":[1,2]}"#);
    all.copy(Running, Candidate).expect("a copy");
    assert_eq!(all.candidate().expect("an answer"), CandidateState::Unchanged);
    all.copy(FactoryDefault, Candidate).expect("a copy");
    assert_eq!(text(&all, Candidate), text(&all, FactoryDefault));
    set(&all, Candidate, "/ports/-", "3");
    commit(&all).expect("it becomes running");
    assert_eq!(text(&all, Running), r#"{"name":"device","ports":[1,2,3]}"#);
    assert!(remove(&all, Startup, ""));
    all.copy(Startup, Candidate).expect("a copy of nothing");
    assert_eq!(text(&all, Candidate), "");
    commit(&all).expect("it becomes running");
    assert_eq!(text(&all, Running), "");
    set(&all, Operational, "/state", "1");
    set(&all, Running, "/config", "2");
    assert_eq!(text(&all, Operational), r#"{"config":2,"state":1}"#);
    all.copy(Operational, Startup).expect("a copy");
    assert_eq!(text(&all, Startup), r#"{"config":2,"state":1}"#);
    refused(InvalidInput, "two datastores", all.copy(Running, Running));
    refused(InvalidInput, "two datastores", all.copy(Running, Operational));
    refused(InvalidInput, "no datastore", "run".parse::<Datastore>());
}

fn pushed(s: &Subject) {
    let Some(all) = datastores(s) else { return };
    set(&all, Running, "/if", r#"{"eth0": {"mtu": 1500}, "eth1": {"mtu": 1500}}"#);
    let dhcp = all.push("dhcp", None).expect("it can be pushed");
    let link = all.push("link", None).expect("it can be pushed");
    assert_eq!((dhcp.order(), link.order()), (1, 2));
    dhcp.edit(|edit| edit.set("/if/eth0/address", &"10.0.0.7".into())).expect("it is pushed");
    link.edit(|edit| {
        edit.set("/if/eth0/mtu", &9000.into())?;
        edit.set("/if/eth0/address", &"10.0.0.8".into())?;
        edit.remove("/if/eth1").map(drop)
    })
    .expect("it is pushed");
    assert_eq!(text(&all, Operational), r#"{"if":{"eth0":{"address":"10.0.0.8","mtu":9000}}}"#);
    assert_eq!(text(&all, Running), r#"{"if":{"eth0":{"mtu":1500},"eth1":{"mtu":1500}}}"#);
    let state = all.read(Operational).expect("a state");
    assert_eq!(state.sources("/if/eth0/address").expect("an answer"), Some(vec!["link"]));
    refused(AlreadyExists, "in the order 1", all.push("other", Some(1)));
    refused(AlreadyExists, "`dhcp`", all.push("dhcp", Some(7)));
    refused(InvalidInput, "name of a datastore", all.push("running", None));
    let low = all.push("low", Some(0)).expect("it can be pushed");
    low.edit(|edit| edit.set("/if/eth0/address", &"none".into())).expect("it is pushed");
    assert_eq!(
        all.read(Operational).and_then(|s| s.get("/if/eth0/address")).expect("an answer"),
        Some("10.0.0.8".into())
    );
    // What was pushed goes with its owner, and does not come back with the past.
    let before = s.revision();
    link.end().expect("it ends");
    assert_eq!(
        text(&all, Operational),
        r#"{"if":{"eth0":{"address":"10.0.0.7","mtu":1500},"eth1":{"mtu":1500}}}"#
    );
    drop((dhcp, low));
    assert_eq!(text(&all, Operational), text(&all, Running));
    s.store.restore(before).expect("it is restored");
    assert_eq!(text(&all, Operational), text(&all, Running));
    let again = all.push("dhcp", None).expect("it can be pushed");
    assert_eq!(again.order(), 1);
}

fn provided(s: &Subject) {
    let Some(all) = datastores(s) else { return };
    set(&all, Running, "/system", r#"{"name": "spruce", "uptime": "unknown"}"#);
    let asked = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&asked);
    let own = all.clone();
    let uptime = all.provide("clock", "/system/uptime", Duration::from_secs(60), move || {
        // It sees what is there without it.
        assert_eq!(own.read(Operational)?.get("/system/uptime")?, Some("unknown".into()));
        Ok(Some((count.fetch_add(1, Ordering::Relaxed) + 1).into()))
    });
    let uptime = uptime.expect("provides");
    let state = all.read(Operational).expect("a state");
    assert_eq!(state.get("/system/name").expect("reads"), Some("spruce".into()));
    assert_eq!(asked.load(Ordering::Relaxed), 0, "the read did not lead there");
    // Once for a state, whatever is read of it and however.
    for _ in 0..2 {
        assert_eq!(state.get("/system/uptime").expect("reads"), Some(1.into()));
        assert_eq!(text_of(&state, ""), r#"{"system":{"name":"spruce","uptime":1}}"#);
        assert_eq!(state.count("/system").expect("counts"), Some(2));
        assert_eq!(state.get("/system/uptime/below").expect("reads"), None);
    }
    assert_eq!(state.sources("/system/uptime").expect("sources"), Some(vec!["clock"]));
    assert_eq!(text(&all, Operational), r#"{"system":{"name":"spruce","uptime":2}}"#);
    assert_eq!(text(&all, Running), r#"{"system":{"name":"spruce","uptime":"unknown"}}"#);
    // The last to begin is the highest, and nothing is nothing.
    let nothing = all.provide("mute", "", Duration::from_secs(60), || Ok(None)).expect("provides");
    let second = Duration::from_secs(60);
    let whole = all.provide("whole", "/system", second, || Ok(Some(json(r#"{"load": [1, 2]}"#))));
    let whole = whole.expect("provides");
    assert_eq!(text(&all, Operational), r#"{"system":{"load":[1,2],"name":"spruce","uptime":3}}"#);
    drop((whole, nothing, uptime));
    assert_eq!(text(&all, Operational), text(&all, Running));
}

fn failing(s: &Subject) {
    let Some(all) = datastores(s) else { return };
    set(&all, Running, "/a", "1");
    let long = Duration::from_secs(60);
    let provide = |name, path, timeout| all.provide(name, path, timeout, || Ok(None));
    refused(InvalidInput, "no name", provide("", "/x", long).map(drop));
    refused(InvalidInput, "name of a datastore", provide("running", "/x", long).map(drop));
    refused(InvalidInput, "timeout", provide("x", "/x", Duration::ZERO).map(drop));
    refused(InvalidInput, "x", provide("x", "x", long).map(drop));
    let held = provide("x", "/x", long).expect("provides");
    refused(AlreadyExists, "provider `x`", provide("x", "/y", long).map(drop));
    drop(held);
    let read = |path: &str| all.read(Operational).and_then(|state| state.get(path));
    let broken = all.provide("broken", "/b", long, || Err(Error::new(NotFound, "no sensor")));
    let broken = broken.expect("provides");
    refused(NotFound, "provider `broken` of `/b`: no sensor", read("/b/c"));
    refused(NotFound, "provider `broken`", read(""));
    // What it does not provide is there.
    assert_eq!(read("/a").expect("reads"), Some(1.into()));
    drop(broken);
    let panics = all.provide("panics", "/b", long, || panic!("on purpose")).expect("provides");
    refused(Busy, "provider `panics` of `/b`: it panicked", read("/b"));
    refused(Busy, "it panicked", read("/b"));
    drop(panics);
    let (hold, held) = mpsc::channel::<()>();
    let slow = all.provide("slow", "/b", Duration::from_millis(20), move || {
        let _ = held.recv();
        Ok(None)
    });
    let slow = slow.expect("provides");
    refused(Busy, "provider `slow` of `/b`: it did not answer within 20ms", read("/b"));
    drop(hold);
    drop(slow);
    assert_eq!(read("").expect("reads"), Some(json(r#"{"a": 1}"#)));
}

fn forgotten(s: &Subject) {
    let Some(all) = datastores(s) else { return };
    set(&all, Running, "/a", "1");
    set(&all, Candidate, "/a", "2");
    set(&all, Running, "/b", "1");
    s.store.forget_before(s.revision() + 1).expect("it is forgotten");
    refused(Conflict, "not kept any more", all.read(Candidate));
    refused(Conflict, "not kept any more", commit(&all));
    refused(Conflict, "not kept any more", all.conflicts());
    refused(Conflict, "not kept any more", all.edit(Candidate, |edit| edit.set("/c", &1.into())));
    all.rebase(Prefer::Layer).expect("the candidate is preferred");
    assert_eq!(text(&all, Candidate), r#"{"a":2,"b":1}"#);
    commit(&all).expect("it becomes running");
    assert_eq!(text(&all, Running), r#"{"a":2,"b":1}"#);
}

/// A candidate is a copy of running that is edited and put back, as far as anybody can see who does not
/// look at what it costs.
fn random(s: &Subject) {
    let Some(all) = datastores(s) else { return };
    let copy = s.store.clone();
    let mut random = fastrand::Rng::with_seed(0xcad);
    let value = |random: &mut fastrand::Rng| -> Value {
        match random.u8(..6) {
            0 => json(r#"{"a": {"b": 1}, "c": [1, {"a": 2}]}"#),
            1 => json("{}"),
            2 => json(r#"[0, {"b": "x"}]"#),
            _ => Value::from(random.i64(..100)),
        }
    };
    set(&all, Running, "", r#"{"a": {"a": {"c": 5}}, "b": [1, 2], "c": {"b": 1}}"#);
    for round in 0..40 {
        copy.write(|tx| tx.copy("/running", "/copy")).expect("a copy");
        for _ in 0..random.u8(1..6) {
            let path: String = (0..random.u8(1..4))
                .map(|_| ["/a", "/b", "/c", "/1", "/-"][random.usize(..5)])
                .collect();
            let value = value(&mut random);
            let place = format!("/copy{path}");
            let (one, other) = match random.bool() {
                true => (
                    all.edit(Candidate, |edit| edit.set(&path, &value)).map(drop),
                    copy.write(|tx| tx.set(&place, &value)).map(drop),
                ),
                false => (
                    all.edit(Candidate, |edit| edit.remove(&path)).map(drop),
                    copy.write(|tx| tx.remove(&place)).map(drop),
                ),
            };
            assert_eq!(one.is_ok(), other.is_ok(), "round {round}: {path} {one:?} {other:?}");
        }
        assert_eq!(text(&all, Candidate), s.text("/copy"), "round {round}");
        commit(&all).expect("it becomes running");
        assert_eq!(s.text("/running"), s.text("/copy"), "round {round}");
    }
}
