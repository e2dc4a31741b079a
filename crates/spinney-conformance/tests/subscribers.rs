//! Subscribers that other processes must ask, those processes killed and stopped, and failed syncs.
//!
//! Other processes are this binary again, which runs `child` with a role from the environment.

use std::path::Path;
use std::process::Child;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use spinney::layers::{Layer, Stack};
use spinney::{
    Answer, Durability, Edit, Ended, ErrorKind, OpenOptions, Proposal, Store, Subscriber,
    SubscriberOptions, Subscription, Value,
};
use spinney_conformance::child::{self, kill, said, say, signal, start};
use spinney_conformance::fault::{Fault, Operation, Plan};
use spinney_conformance::{folder, timed};
use spinney_core::Memory;

/// Long enough for whatever is to happen.
const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(300);
const WRITER_KILLS: u64 = 60;

fn open(dir: &Path) -> Store {
    spinney::open(&format!("lmdb:{}", dir.display())).expect("the store opens")
}

fn value(store: &Store, path: &str) -> Option<Value> {
    store.read().and_then(|snapshot| snapshot.get(path)).expect("it reads")
}

#[test]
fn child() {
    let Some((role, dir)) = child::role() else { return };
    let store = open(&dir);
    match role.as_str() {
        "judge" => stay_subscribed(&store, LONG),
        "judge of layers" => judge_layers(&store),
        "hasty judge" => stay_subscribed(&store, SHORT),
        "visitor" => visit(&store),
        "writer" => write_for_ever(&store),
        other => panic!("no role `{other}`"),
    }
}

/// Answers as the value at `/judged/verdict` of the state after says, and says what it sees.
struct Judge;

impl Subscriber for Judge {
    fn asked(&mut self, proposal: &Proposal) -> Answer {
        let after = |path: &str| proposal.after.get(path).expect("reads");
        let len = |state: &spinney::Snapshot| state.count("/judged/list").expect("counts");
        let ops: Vec<String> =
            proposal.diff.ops.iter().map(|op| op.pointer().to_string()).collect();
        let (before, len) = (len(&proposal.before), len(&proposal.after));
        say(format_args!("asked {} {} {before:?} {len:?}", proposal.note.author, ops.join(",")));
        match after("/judged/verdict") {
            Some(Value::String(verdict)) => match verdict.as_str() {
                "veto" => Answer::Veto("so it is judged".to_owned()),
                "amend" => Answer::Amend(vec![
                    Edit::Set("/judged/verdict".to_owned(), "amended".into()),
                    Edit::Set("/judged/by".to_owned(), vec![Value::Bytes(vec![7, 0])].into()),
                    Edit::Remove("/judged/draft".to_owned()),
                ]),
                "hang" => loop {
                    thread::park();
                },
                "panic" => panic!("an expected panic of a test"),
                _ => Answer::Pass,
            },
            _ => Answer::Pass,
        }
    }

    fn told(&mut self, number: u64, ended: &Ended) {
        match ended {
            Ended::Committed(revision) => say(format_args!("told {number} {revision}")),
            Ended::GivenUp(reason) => say(format_args!("told {number}: {reason}")),
        }
    }
}

fn stay_subscribed(store: &Store, timeout: Duration) {
    let options = SubscriberOptions::new("judge").timeout(timeout).required(true);
    let _subscription = store.before_commit("/judged", options, Judge).expect("subscribes");
    say("ready");
    loop {
        thread::park();
    }
}

/// The same about layers that are read as one.
fn judge_layers(store: &Store) {
    let layer = |name: &str| Layer::new(name, store, &format!("/{name}")).expect("a layer");
    let stack = Stack::new(vec![layer("user"), layer("system")]).expect("a stack");
    let options = SubscriberOptions::new("judge").timeout(LONG).required(true);
    let _subscription = stack.before_commit("/judged", options, Judge).expect("subscribes");
    say("ready");
    loop {
        thread::park();
    }
}

/// Subscribes and unsubscribes.
fn visit(store: &Store) {
    for _ in 0..20 {
        let options = SubscriberOptions::new("visitor").required(true);
        let pass = |_: &Proposal| Answer::Pass;
        drop(store.before_commit("", options, pass).expect("subscribes"));
    }
    say("gone");
}

/// A started judge and what it says.
fn judge(role: &str, dir: &Path) -> (Child, Receiver<String>) {
    let mut child = start(role, dir);
    let words = said(&mut child);
    let (says, heard) = channel();
    thread::spawn(move || words.for_each(|words| drop(says.send(words))));
    assert_eq!(next(&heard), "ready");
    (child, heard)
}

fn next(heard: &Receiver<String>) -> String {
    heard.recv_timeout(LONG).expect("it says something")
}

fn set_verdict(store: &Store, verdict: &str) -> spinney::Result<u64> {
    let set = |tx: &mut spinney::Transaction<'_>| tx.set("/judged/verdict", &verdict.into());
    store.write(set).map(|committed| committed.revision)
}

#[test]
fn another_process_is_asked_about_layers() {
    let dir = folder::temporary();
    let store = open(dir.path());
    store.write(|tx| tx.set("/user/judged/list/0", &1.into())).expect("nobody is asked");
    let (child, heard) = judge("judge of layers", dir.path());
    let set = |path: &str, value: Value| store.write(|tx| tx.set(path, &value)).map(drop);
    set("/other", 1.into()).expect("it does not concern it");
    set("/system/judged/list/1", 2.into()).expect("it passes");
    assert_eq!(next(&heard), "asked  `/judged/list/1` Some(1) Some(2)");
    assert!(next(&heard).starts_with("told 1 "));
    set("/user/judged/verdict", "fine".into()).expect("it passes");
    assert_eq!(next(&heard), "asked  `/judged/verdict` Some(2) Some(2)");
    assert!(next(&heard).starts_with("told 2 "));
    set("/system/judged/verdict", "veto".into()).expect("it does not show through");
    let refused = store.write(|tx| tx.remove("/user/judged/verdict")).expect_err("it does now");
    assert_eq!(refused.kind(), ErrorKind::Denied, "{refused}");
    assert!(refused.to_string().contains("so it is judged"), "{refused}");
    assert_eq!(next(&heard), "asked  `/judged/verdict` Some(2) Some(2)");
    kill(child);
    store.write(|tx| tx.remove("/user/judged/verdict")).expect("nobody is asked any more");
}

fn assert_refused(store: &Store, verdict: &str, kind: ErrorKind, parts: &[&str]) {
    let revision = || store.read().and_then(|snapshot| snapshot.revision()).expect("reads");
    let (before, state) = (revision(), value(store, ""));
    let refused = set_verdict(store, verdict).expect_err(verdict);
    assert_eq!(refused.kind(), kind, "{refused}");
    let said = refused.to_string();
    assert!(parts.iter().all(|part| said.contains(part)) && !said.contains('\n'), "{said}");
    assert_eq!(revision(), before);
    assert!(value(store, "") == state, "{said}");
}

fn registrations(dir: &Path) -> usize {
    std::fs::read_dir(dir.join("subscribers")).expect("a directory").count()
}

#[test]
fn another_process_passes_refuses_and_amends() {
    let folder = folder::temporary();
    let dir = folder.path().join("store");
    let store = open(&dir);
    store.write(|tx| tx.set("/judged", &Value::map())).expect("sets");
    // Staged in this process alone until the other one is asked.
    let before =
        |tx: &mut spinney::Transaction<'_>| tx.set("/judged/list", &vec![Value::Null; 3].into());
    let (process, heard) = judge("judge", &dir);
    store.write_with(Durability::None, before).expect("sets");
    assert_eq!(next(&heard), "asked  `/judged/list` None Some(3)");
    assert_eq!(next(&heard), "told 1 2");
    // More than is written ahead.
    let big: Vec<Value> =
        (0..150_u64).map(|n| format!("{n}{}", "x".repeat(80_000)).into()).collect();
    store
        .write_with(Durability::None, |tx| {
            tx.set_author("ann")?;
            tx.set("/elsewhere", &1.into())?;
            tx.set("/judged/list", &big.clone().into())
        })
        .expect("sets");
    assert_eq!(next(&heard), "asked ann `/judged/list` Some(3) Some(150)");
    assert_eq!(next(&heard), "told 2 3");
    let named = format!("the subscriber `judge` of `/judged` in process {}", process.id());
    assert_refused(&store, "veto", ErrorKind::Denied, &[&named, "so it is judged"]);
    assert_eq!(next(&heard), "asked  `/judged/verdict` Some(150) Some(150)");
    assert!(next(&heard).starts_with("told 3: "));
    assert_refused(&store, "panic", ErrorKind::Busy, &[&named, "an expected panic of a test"]);
    assert!(next(&heard).starts_with("asked ") && next(&heard).starts_with("told 4: "));
    store.write(|tx| tx.set("/elsewhere", &2.into())).expect("it is not asked");
    let committed = store.write(|tx| {
        tx.set("/judged/draft", &1.into())?;
        tx.set("/judged/verdict", &"amend".into())
    });
    assert_eq!(committed.expect("sets").diff.ops.len(), 2);
    // The second question may come before the end of the first.
    let mut words: Vec<String> = (0..4).map(|_| next(&heard)).collect();
    assert!(words.remove(0).starts_with("asked  `/judged/draft`,`/judged/verdict`"));
    assert_eq!(words.pop().as_deref(), Some("told 6 5"));
    words.sort();
    assert!(words[0].starts_with("asked  `/judged/by`,`/judged/verdict`"), "{words:?}");
    assert!(words[1].starts_with("told 5: "), "{words:?}");
    assert_eq!(value(&store, "/judged/by"), Some(vec![Value::Bytes(vec![7, 0])].into()));
    store.write(|tx| tx.remove("/judged")).expect("removes");
    assert_eq!(next(&heard), "asked  `/judged` Some(150) None");
    assert_eq!(next(&heard), "told 7 6");
    kill(process);
    assert!(heard.recv().is_err(), "and nothing else");
}

#[test]
fn a_killed_process_is_asked_no_more() {
    let folder = folder::temporary();
    let dir = folder.path().join("store");
    let store = open(&dir);
    timed("killed while it is idle, and while it is asked", || {
        for round in 0..10_u64 {
            let (process, heard) = judge("judge", &dir);
            set_verdict(&store, &format!("pass {round}")).expect("it passes");
            assert!(next(&heard).starts_with("asked ") && next(&heard).starts_with("told 1 "));
            if round % 2 == 0 {
                kill(process);
                set_verdict(&store, "veto").expect("nobody is asked");
            } else {
                let other = store.clone();
                let writer = thread::spawn(move || set_verdict(&other, "hang"));
                assert!(next(&heard).starts_with("asked "));
                let begun = Instant::now();
                kill(process);
                writer.join().expect("writes").expect("the commit goes on");
                assert!(begun.elapsed() < LONG / 2, "it waited for a dead process");
            }
            set_verdict(&store, &format!("again {round}")).expect("nobody is asked");
            assert_eq!(registrations(&dir), 0, "what it has left is removed");
        }
    });
}

#[test]
fn a_stopped_process_keeps_commits_below_its_path_busy() {
    let folder = folder::temporary();
    let dir = folder.path().join("store");
    let store = open(&dir);
    let (process, heard) = judge("hasty judge", &dir);
    set_verdict(&store, "pass").expect("it passes");
    assert!(next(&heard).starts_with("asked ") && next(&heard).starts_with("told 1 "));
    signal(&process, "-STOP");
    let named = format!("the subscriber `judge` of `/judged` in process {}", process.id());
    for verdict in ["one", "two", "three"] {
        let begun = Instant::now();
        assert_refused(&store, verdict, ErrorKind::Busy, &[&named, "did not answer within 300ms"]);
        assert!(SHORT <= begun.elapsed() && begun.elapsed() < LONG / 2, "{:?}", begun.elapsed());
    }
    // Those questions are about a state that will be gone.
    store.write(|tx| tx.set("/elsewhere", &1.into())).expect("it is not asked");
    signal(&process, "-CONT");
    // It may still have to get rid of them.
    let begun = Instant::now();
    while let Err(refused) = set_verdict(&store, "four") {
        assert_eq!(refused.kind(), ErrorKind::Busy, "{refused}");
        assert!(begun.elapsed() < LONG, "it does not answer any more");
    }
    assert_eq!(value(&store, "/judged/verdict"), Some("four".into()));
    let (mut asked, mut told) = (0, 0);
    let last = loop {
        let word = next(&heard);
        match word.starts_with("asked ") {
            true => asked += 1,
            false => told += 1,
        }
        if word.starts_with("told ") && !word.contains(':') {
            break word;
        }
    };
    assert_eq!(asked, told, "each question once, each end once");
    let revision = store.read().and_then(|snapshot| snapshot.revision()).expect("reads");
    assert!(last.ends_with(&format!(" {revision}")), "{last}");
    kill(process);
}

#[test]
fn a_process_that_hangs_in_its_answer() {
    let folder = folder::temporary();
    let dir = folder.path().join("store");
    let store = open(&dir);
    let (process, heard) = judge("hasty judge", &dir);
    let named = format!("the subscriber `judge` of `/judged` in process {}", process.id());
    for _ in 0..2 {
        assert_refused(&store, "hang", ErrorKind::Busy, &[&named, "did not answer"]);
    }
    assert!(next(&heard).starts_with("asked "), "once: the second question was withdrawn");
    kill(process);
    assert!(heard.recv().is_err(), "and nothing else");
    set_verdict(&store, "hang").expect("nobody is asked");
}

#[test]
fn subscriptions_that_come_and_go_disturb_nobody() {
    let folder = folder::temporary();
    let dir = folder.path().join("store");
    let store = open(&dir);
    timed("three processes subscribe and unsubscribe", || {
        let mut children: Vec<Child> = (0..3).map(|_| start("visitor", &dir)).collect();
        let mut n = 0_u64;
        while children.iter_mut().any(|child| child.try_wait().expect("waits").is_none()) {
            n += 1;
            store.write_with(Durability::Process, |tx| tx.set("/n", &n.into())).expect("commits");
        }
        for child in &mut children {
            assert!(child.wait().expect("waits").success());
        }
        println!("{n} commits meanwhile");
        store.write(|tx| tx.set("/n", &0.into())).expect("commits");
        assert_eq!(registrations(&dir), 0);
    });
}

// Writers that are killed in the middle.

fn write_for_ever(store: &Store) {
    // What is answered at the third level may be lost with its writer.
    let levels = [Durability::Durable, Durability::Process];
    say("writes");
    for n in 0_u64.. {
        let durability = fastrand::choice(levels).expect("two levels");
        let path = format!("/written/{}", n % 300);
        let written = store.write_with(durability, |tx| tx.set(&path, &fastrand::u64(..).into()));
        written.expect("it passes");
    }
}

struct Ledger(std::sync::mpsc::Sender<(u64, Option<Ended>)>);

impl Subscriber for Ledger {
    fn asked(&mut self, proposal: &Proposal) -> Answer {
        let _ = self.0.send((proposal.number, None));
        Answer::Pass
    }

    fn told(&mut self, number: u64, ended: &Ended) {
        let _ = self.0.send((number, Some(ended.clone())));
    }
}

#[test]
fn of_killed_writers_it_is_told_what_became_of_their_commits() {
    let folder = folder::temporary();
    let dir = folder.path().join("store");
    let store = open(&dir);
    let (sees, seen) = channel();
    let options = SubscriberOptions::new("ledger").timeout(LONG).required(true);
    let subscription: Subscription =
        store.before_commit("/written", options, Ledger(sees)).expect("subscribes");
    timed("kills of writers that ask", || {
        for kill_number in 0..WRITER_KILLS {
            let mut writer = start("writer", &dir);
            assert_eq!(said(&mut writer).next().as_deref(), Some("writes"));
            // However slow this machine is, it gets to write.
            let before = store.read().and_then(|snapshot| snapshot.revision()).expect("reads");
            assert!(store.wait(before, LONG).expect("waits") > before, "it does not write");
            thread::sleep(Duration::from_micros(kill_number * 7_919 % 30_000));
            kill(writer);
        }
    });
    store.write(|tx| tx.set("/written/last", &1.into())).expect("sets");
    drop(subscription);
    let (mut asked, mut told, mut committed, mut given_up) = (0, 0, 0, 0);
    // The channel ends when the subscriber was told everything.
    loop {
        match seen.recv_timeout(LONG) {
            Ok((number, None)) => {
                asked += 1;
                assert_eq!(number, asked, "no question twice");
            }
            Ok((number, Some(ended))) => {
                told += 1;
                assert!(number == told && told <= asked, "each in its turn");
                match ended {
                    Ended::Committed(revision) => {
                        committed += 1;
                        assert_eq!(revision, committed, "each commit once, in order");
                    }
                    Ended::GivenUp(_) => given_up += 1,
                }
            }
            Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => break,
            Err(error) => panic!("{error}: asked {asked} times, told {told} times"),
        }
    }
    println!("{asked} questions: {committed} commits, {given_up} given up");
    let revision = store.read().and_then(|snapshot| snapshot.revision()).expect("reads");
    assert_eq!((told, committed), (asked, revision), "all that was asked about was told");
    assert!(committed > WRITER_KILLS && given_up > 0, "the writers hardly wrote");
}

#[test]
fn a_commit_whose_sync_fails_is_told_as_given_up() {
    let backend = Arc::new(Fault::new(Memory::new()));
    let store = OpenOptions::new().over(Arc::clone(&backend) as _, None);
    let (sees, seen) = channel();
    let options = SubscriberOptions::new("ledger");
    let _subscription = store.before_commit("", options, Ledger(sees)).expect("subscribes");
    store.write(|tx| tx.set("/a", &1.into())).expect("sets");
    for operation in [Operation::Commit, Operation::Sync] {
        backend.set_plan(Some(Plan { operation, nth: 0, kind: ErrorKind::Io }));
        store.write(|tx| tx.set("/a", &fastrand::u64(..).into())).expect_err("it fails");
    }
    let seen: Vec<_> = std::iter::from_fn(|| seen.recv_timeout(LONG).ok()).take(6).collect();
    let committed = seen.iter().filter(|seen| matches!(seen.1, Some(Ended::Committed(1)))).count();
    let given_up = |seen: &&(u64, Option<Ended>)| match &seen.1 {
        Some(Ended::GivenUp(reason)) => reason.contains("failed by plan"),
        _ => false,
    };
    assert_eq!((seen.len(), committed), (6, 1), "{seen:?}");
    assert_eq!(seen.iter().filter(given_up).count(), 2, "{seen:?}");
}
