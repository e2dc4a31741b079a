//! Feeds of trees that layers are read as: what they tell makes the next state of the last one, and back.

use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fastrand::Rng;
use spinney::ErrorKind::{Denied, InvalidInput, NotFound, Unsupported};
use spinney::datastores::Datastore::{Candidate, Operational, Running};
use spinney::difference::Change as Told;
use spinney::feed::{Change, Changes, Event};
use spinney::formats::{self, ReadOptions};
use spinney::layers::{Layer, LayerSpec, Stack};
use spinney::read::{Node as _, Reached, marks};
use spinney::{
    Answer, Edit, Ended, Existing, OpenOptions, Path, Proposal, Receiver, Result, Snapshot, Store,
    Subscriber, SubscriberOptions, Value,
};
use spinney_core::Memory;
use spinney_core::backend::Revision;
use spinney_core::diff::{Diff, Op, Step, What};
use spinney_core::key::Key;

use super::{Case, skipped};
use crate::servers::refused;
use crate::subject::{Subject, assert_normalised, json, text_of};

pub(super) const CASES: &[Case] = &[
    ("a commit of a layer is told as what it changes in the merged tree", told),
    ("what a layer hides is not told", hidden),
    ("a container of one layer is told by reference", by_reference),
    ("one layer alone is told as its tree is", alone),
    ("a stack that is changed", redefined),
    ("operational state that comes and goes is told", operational),
    ("subscribers are asked about the merged tree", subscribers),
    ("subscribers of operational state see what feeds tell", asked_and_told),
    ("feeds of layers go on where they were", resumed),
    ("differences of stacks", differences),
    ("stacks that cannot be followed", refusals),
    ("a random history of layers is told", random),
];

const NAMES: [&str; 3] = ["user", "system", "default"];

fn stack(s: &Subject) -> Stack {
    let layer = |name: &str| Layer::new(name, &s.store, &format!("/{name}")).expect("a layer");
    Stack::new(NAMES.map(layer).to_vec()).expect("a stack")
}

fn next(changes: &mut Changes) -> Option<Change> {
    match changes.next(Duration::ZERO).expect("the feed reads") {
        None => None,
        Some(Event::Change(change)) => Some(change),
        Some(Event::Gap(gap)) => panic!("{gap:?}"),
    }
}

/// The operations of a diff in words.
fn words(diff: &Diff) -> String {
    let word = |op: &Op| {
        let mark = match (op.what, &op.old, &op.new) {
            (What::Meta, ..) => '@',
            (_, None, _) => '+',
            (_, _, None) => '-',
            _ => '~',
        };
        format!("{mark}{}", &*op.pointer())
    };
    diff.ops.iter().map(word).collect::<Vec<_>>().join(" ")
}

/// A copy of a merged tree, which is changed by what is told and by nothing else.
struct Copy(Store);

impl Copy {
    /// Within a tree, so that it may be anything, and nothing.
    const PLACE: [&str; 2] = ["copies", "one"];

    fn place() -> Path {
        Copy::PLACE.iter().fold(Path::root(), |place, name| place.child(name))
    }

    fn of(text: &str) -> Copy {
        let copy = Copy(OpenOptions::new().over(Arc::new(Memory::new()), None));
        copy.0.write(|tx| tx.set("/copies", &json("{}"))).expect("the copy begins");
        if text != "nothing" {
            let options = || ReadOptions { tagged: true, ..ReadOptions::default() };
            let read = |visitor: &mut Receiver<'_, '_>| {
                formats::read_with(text.as_bytes(), options(), visitor)
            };
            copy.0
                .write(|tx| tx.set_with(&Copy::place(), Existing::Any, read))
                .expect("the copy imports");
        }
        copy
    }

    fn text(&self) -> String {
        text_of(&self.0.read().expect("a state"), &Copy::place())
    }

    /// Applies a diff that contains what it refers to.
    fn apply(&self, diff: &Diff) {
        let below = |op: &Op| {
            let place = Copy::PLACE.map(|name| Step::Key(Key::new(name).encoded()));
            let path: Vec<Step> = place.into_iter().chain(op.path.iter().cloned()).collect();
            Op { path: path.into(), ..op.clone() }
        };
        let diff = Diff { ops: diff.ops.iter().map(below).collect() };
        self.0
            .write(|tx| tx.apply_by_position(&diff))
            .unwrap_or_else(|error| panic!("{error}: {diff:?}"));
    }
}

/// Proves that a diff leads from one text to another, and back.
fn leads(s: &Subject, revision: Revision, diff: &Diff, from: &str, to: &str) {
    assert_normalised(diff);
    let state = |revision| s.store.at(revision).expect("a state");
    let (before, after) = (state(revision - 1), state(revision));
    let contained = diff.expand(&before.view(), &after.view()).expect("it expands");
    let copy = Copy::of(from);
    copy.apply(&contained);
    assert_eq!(copy.text(), to, "{} leads to it", words(diff));
    copy.apply(&contained.invert());
    assert_eq!(copy.text(), from, "{} leads back", words(diff));
}

/// Commits, and proves what a feed tells of it; returns that in words.
fn tells<T>(s: &Subject, stack: &Stack, write: impl FnOnce() -> T) -> String {
    let text = || text_of(&stack.read().expect("a state"), "");
    let (from, revision) = (text(), s.revision());
    write();
    s.store.sync().expect("it syncs");
    let to = text();
    let mut changes = stack.changes("", revision).expect("a feed");
    match next(&mut changes) {
        None => {
            assert_eq!(from, to, "it was not told");
            String::new()
        }
        Some(change) => {
            assert_eq!(change.revision, revision + 1);
            leads(s, change.revision, &change.diff, &from, &to);
            assert_eq!(next(&mut changes), None);
            words(&change.diff)
        }
    }
}

fn set(stack: &Stack, layer: &str, path: &str, text: &str) {
    stack.write(layer, |edit| edit.set(path, &json(text))).expect("it can be set");
}

fn told(s: &Subject) {
    let stack = stack(s);
    let tells = |write: &dyn Fn()| tells(s, &stack, write);
    assert_eq!(tells(&|| set(&stack, "default", "", r#"{"a": {"b": 1, "c": 2}}"#)), "+");
    assert_eq!(tells(&|| set(&stack, "user", "/a/b", "10")), "~/a/b");
    assert_eq!(tells(&|| set(&stack, "user", "/a/d", "{}")), "+/a/d");
    assert_eq!(tells(&|| set(&stack, "system", "/a/b", "5")), "", "user has it");
    let reset = || drop(stack.write("user", |edit| edit.reset("/a/b")).expect("it is reset"));
    assert_eq!(tells(&reset), "~/a/b");
    let remove = || drop(stack.write("user", |edit| edit.remove("/a/c")).expect("it is removed"));
    assert_eq!(tells(&remove), "-/a/c");
    assert_eq!(tells(&|| set(&stack, "user", "/a/c", "3")), "+/a/c");
    assert_eq!(tells(&|| set(&stack, "system", "/l", "[1, 2]")), "+/l");
    assert_eq!(tells(&|| set(&stack, "system", "/l/-", "3")), "+/l/2");
    assert_eq!(tells(&|| set(&stack, "user", "/l/0", "7")), "~/l", "it is another list");
    // What is removed with a mark takes all of it away, what several layers have member by member.
    let remove = || drop(stack.write("user", |edit| edit.remove("/a")).expect("it is removed"));
    assert_eq!(tells(&remove), "-/a/b -/a/c -/a/d -/a");
    let meta = || drop(s.store.write(|tx| tx.set_meta("/default", "note", Some("text"))));
    assert_eq!(tells(&meta), "@");
}

fn hidden(s: &Subject) {
    let stack = stack(s);
    let tells = |write: &dyn Fn()| tells(s, &stack, write);
    s.set("/default", r#"{"a": {"b": 1, "c": {"d": 2}}, "x": [1]}"#);
    set(&stack, "system", "/a", r#"{"own": 1}"#);
    assert_eq!(tells(&|| set(&stack, "default", "/a/b", "2")), "");
    assert_eq!(tells(&|| set(&stack, "default", "/a/c/d", "3")), "");
    assert_eq!(tells(&|| set(&stack, "default", "/y", "3")), "+/y");
    stack.write("system", |edit| edit.lock("/a/own")).expect("it can be locked");
    assert_eq!(tells(&|| s.set("/user", r#"{"a": {"own": 2, "new": 3}}"#).value), "+/a/new");
    let unlock = || drop(stack.write("system", |edit| edit.unlock("/a/own")).expect("unlocked"));
    assert_eq!(tells(&unlock), "~/a/own");
    let lock = || drop(stack.write("system", |edit| edit.lock("/a")).expect("locked"));
    assert_eq!(tells(&lock), "-/a/new ~/a/own");
}

fn by_reference(s: &Subject) {
    let stack = stack(s);
    let many = Value::Map((0..3_000).map(|n| (format!("k{n}"), Value::from(n))).collect());
    let put = |layer, path: &str| {
        let put = stack.write(layer, |edit| edit.set(path, &many));
        drop(put.expect("it can be set"));
    };
    assert_eq!(tells(s, &stack, || put("default", "/a/m")), "+");
    assert_eq!(tells(s, &stack, || put("user", "/n")), "+/n");
    let size = |since| {
        let change = next(&mut stack.changes("", since).expect("a feed")).expect("a change");
        change.diff.encode().len()
    };
    assert!(size(s.revision() - 1) < 100, "it is not in the diff");
    // It replaces what one other layer has, and what two have together.
    let revision = s.revision();
    assert_eq!(tells(s, &stack, || set(&stack, "user", "/a/m/k5", "50")), "~/a/m/k5");
    assert_eq!(tells(s, &stack, || put("system", "/a/m")), "", "it is as it was");
    let remove = || drop(stack.write("user", |edit| edit.remove("/n")).expect("it is removed"));
    assert_eq!(tells(s, &stack, remove), "-/n");
    assert!(size(revision) < 100 && size(s.revision() - 1) < 100);
}

fn alone(s: &Subject) {
    let layer = Layer::new("only", &s.store, "/only").expect("a layer");
    let stack = Stack::new(vec![layer]).expect("a stack");
    let mut random = Rng::with_seed(7);
    s.set("/only", "{}");
    let mut changes = stack.changes("", s.revision()).expect("a feed");
    for _ in 0..150 {
        let from = text_of(&stack.read().expect("a state"), "");
        let (path, value) = (place(&mut random), value(&mut random));
        let path = format!("/only{path}");
        let written = s.store.write(|tx| match random.u8(..4) {
            0 => tx.remove(&path).map(drop),
            _ => tx.set(&path, &value),
        });
        let Ok(written) = written else { continue };
        let mut diff = written.diff;
        diff.begin_below("/only");
        s.store.sync().expect("it syncs");
        match diff.is_empty() {
            true => assert_eq!(next(&mut changes), None),
            false => {
                let change = next(&mut changes).expect("it is told");
                leads(
                    s,
                    change.revision,
                    &change.diff,
                    &from,
                    &text_of(&stack.read().unwrap(), ""),
                );
                assert_eq!(words(&change.diff), words(&diff));
            }
        }
    }
}

fn redefined(s: &Subject) {
    let specs = |text: &str| -> Vec<LayerSpec> {
        text.split(' ').map(|name| format!("{name}=/{name}").parse().expect("a layer")).collect()
    };
    s.set("/user", r#"{"a": {"b": 1}, "u": [1], "same": {"x": 1}}"#);
    s.set("/system", r#"{"a": {"b": 2, "c": 3}, "s": 2, "same": {"x": 1}}"#);
    s.store.set_stack("kept", &specs("user")).expect("it is kept");
    let redefine = |layers: &str| {
        let before = s.store.stack("kept").expect("a stack");
        let (from, revision) = (text_of(&before.read().expect("a state"), ""), s.revision());
        s.store.set_stack("kept", &specs(layers)).expect("it is kept");
        s.store.sync().expect("it syncs");
        let after = s.store.stack("kept").expect("a stack");
        let change = next(&mut before.changes("", revision).expect("a feed")).expect("a change");
        let to = text_of(&after.read().expect("a state"), "");
        leads(s, change.revision, &change.diff, &from, &to);
        words(&change.diff)
    };
    assert_eq!(redefine("user system"), "+/a/c +/s");
    assert_eq!(redefine("system user"), "~/a/b");
    assert_eq!(redefine("system"), "-/u");
    s.store.remove_stack("kept").expect("it is removed");
    refused(NotFound, "no stack", s.store.stack("kept"));
}

fn operational(s: &Subject) {
    if !s.store.capabilities().multi_tree_commit {
        return skipped("feeds of datastores", "trees do not change together");
    }
    let all = s.store.datastores().expect("datastores");
    let begin = s.revision();
    let set = |datastore, path: &str, text: &str| {
        all.edit(datastore, |edit| edit.set(path, &json(text))).expect("it can be set");
    };
    set(Running, "/cont", r#"{"x": 1}"#);
    let pushed = all.push("dhcp", None).expect("it can be pushed");
    pushed.edit(|edit| edit.set("/cont/lst/a", &1.into())).expect("it is pushed");
    pushed.edit(|edit| edit.remove("/cont/x")).expect("it is hidden");
    set(Operational, "/cont/lst/b", "2");
    set(Candidate, "/cont/x", "2");
    set(Running, "/cont/x", "3");
    pushed.end().expect("it is taken back");
    s.store.sync().expect("it syncs");
    let mut changes = all.changes(Operational, "", begin).expect("a feed");
    let mut told = Vec::new();
    let mut at = "nothing".to_owned();
    while let Some(change) = next(&mut changes) {
        told.push(words(&change.diff));
        let copy = Copy::of(&at);
        let (before, after) = (s.store.at(change.revision - 1), s.store.at(change.revision));
        let (before, after) = (before.expect("a state"), after.expect("a state"));
        copy.apply(&change.diff.expand(&before.view(), &after.view()).expect("it expands"));
        at = copy.text();
    }
    assert_eq!(told, ["+", "+/cont/lst", "-/cont/x", "+/cont/lst/b", "-/cont/lst/a +/cont/x"]);
    assert_eq!(at, text_of(&all.read(Operational).expect("a state"), ""));
    let mut below = all.changes(Operational, "/cont/lst/b", begin).expect("a feed");
    let mut revisions = 0;
    while next(&mut below).is_some() {
        revisions += 1;
    }
    assert_eq!(revisions, 3, "what is above it comes, too");
    let mut logged = Vec::new();
    let log = |change: Change| {
        logged.push(words(&change.diff));
        Ok(logged.len() < 2)
    };
    all.stack(Operational).and_then(|stack| stack.log("", &mut { log })).expect("a log");
    assert_eq!(logged, ["-/cont/lst/a +/cont/x", "+/cont/lst/b"]);
    refused(Unsupported, "candidate", all.changes(Candidate, "", begin));
}

fn subscribers(s: &Subject) {
    let stack = stack(s);
    s.set("/default", r#"{"a": {"b": 1, "c": 2}, "d": 3}"#);
    let (asks, asked) = channel();
    let witness = move |proposal: &Proposal| {
        let at = |state: &Snapshot| state.get("/a/b").expect("reads");
        let (before, after) = (at(&proposal.before), at(&proposal.after));
        let _ = asks.send((words(&proposal.diff), before, after.clone()));
        match after {
            Some(Value::Number(n)) if n.as_u64() == Some(13) => Answer::Veto("unlucky".to_owned()),
            Some(Value::Number(n)) if n.as_u64() == Some(7) => {
                Answer::Amend(vec![Edit::Set("/user/a/b".to_owned(), 8.into())])
            }
            _ => Answer::Pass,
        }
    };
    let options = SubscriberOptions::new("witness").timeout(Duration::from_secs(60));
    let subscription = stack.before_commit("/a/b", options.clone(), witness).expect("subscribes");
    let next = || asked.try_recv().expect("it was asked");
    let number = |n: i64| Some(Value::from(n));
    set(&stack, "system", "/a/b", "2");
    assert_eq!(next(), ("~/a/b".to_owned(), number(1), number(2)));
    set(&stack, "default", "/a/b", "5");
    set(&stack, "user", "/a/c", "5");
    set(&stack, "user", "/d", "5");
    s.set("/elsewhere", "5");
    assert!(asked.try_recv().is_err(), "it does not change there");
    let refused_set = stack.write("user", |edit| edit.set("/a/b", &13.into()));
    refused(Denied, "unlucky", refused_set);
    assert_eq!(next(), ("~/a/b".to_owned(), number(2), number(13)));
    set(&stack, "user", "/a/b", "7");
    assert_eq!(next(), ("~/a/b".to_owned(), number(2), number(7)));
    assert_eq!(next(), ("~/a/b".to_owned(), number(2), number(8)), "it is asked about the whole");
    stack.write("user", |edit| edit.remove("/a")).expect("it can be removed");
    assert_eq!(next().2, None);
    set(&stack, "user", "/a", "{}");
    assert!(asked.try_recv().is_err(), "there was and is nothing at its path");
    drop(subscription);
    set(&stack, "user", "/a/b", "1");
    assert!(asked.try_recv().is_err(), "it has unsubscribed");
}

/// What one subscriber has seen: the operations of each change, and how many leaves each told.
#[derive(Default)]
struct Seen {
    changes: Vec<(String, u64, u64)>,
    done: Vec<Ended>,
}

struct Counts(Arc<Mutex<Seen>>);

impl Subscriber for Counts {
    fn asked(&mut self, proposal: &Proposal) -> Answer {
        let (mut come, mut gone) = (0, 0);
        let leaves = |node: &Reached<'_>| node.count().expect("counts").max(1);
        let count = &mut |_: &Path, change: Told<'_>| {
            match change {
                Told::Added(new) => come += leaves(&new),
                Told::Removed(old) => gone += leaves(&old),
                Told::Replaced(..) | Told::Annotated(..) => {}
            }
            Ok(())
        };
        let (before, after) = (proposal.before.view(), proposal.after.view());
        proposal.diff.changes(&before, &after, count).expect("the diff reads");
        self.0.lock().expect("a lock").changes.push((words(&proposal.diff), come, gone));
        Answer::Pass
    }

    fn told(&mut self, _: u64, ended: &Ended) {
        self.0.lock().expect("a lock").done.push(ended.clone());
    }
}

fn asked_and_told(s: &Subject) {
    if !s.store.capabilities().multi_tree_commit {
        return skipped("subscribers of datastores", "trees do not change together");
    }
    let all = s.store.datastores().expect("datastores");
    all.edit(Running, |edit| edit.set("/cont", &json("{}"))).expect("it can be set");
    let seen: Vec<Arc<Mutex<Seen>>> = (0..3).map(|_| Arc::default()).collect();
    let subscribe = |seen: &Arc<Mutex<Seen>>| {
        let options = SubscriberOptions::new("counts").timeout(Duration::from_secs(60));
        let counts = Counts(Arc::clone(seen));
        all.before_commit(Operational, "/cont", options, counts).expect("subscribes")
    };
    let subscriptions: Vec<_> = seen.iter().map(subscribe).collect();
    let pushed = all.push("items", None).expect("it can be pushed");
    let begin = s.revision();
    let many = Value::Map((0..2_000).map(|n| (format!("k{n}"), Value::from(n))).collect());
    for _ in 0..3 {
        pushed.edit(|edit| edit.set("/cont/lst", &many)).expect("it is pushed");
        pushed.edit(|edit| edit.remove("/cont/lst")).expect("it is removed");
    }
    s.store.sync().expect("it syncs");
    drop(subscriptions);
    let mut changes = all.changes(Operational, "/cont", begin).expect("a feed");
    let mut told = Vec::new();
    while let Some(change) = next(&mut changes) {
        told.push((words(&change.diff), Ended::Committed(change.revision)));
    }
    assert_eq!(told.len(), 6);
    for seen in seen {
        // It is told the last end after it has unsubscribed.
        while seen.lock().expect("a lock").done.len() < told.len() {
            std::thread::yield_now();
        }
        let Seen { changes, done } = std::mem::take(&mut *seen.lock().expect("a lock"));
        let counted: Vec<_> = changes.iter().map(|(_, come, gone)| (*come, *gone)).collect();
        assert_eq!(counted, [(2_000, 0), (0, 2_000)].repeat(3));
        let words = changes.into_iter().map(|(words, ..)| words);
        assert_eq!(words.zip(done).collect::<Vec<_>>(), told);
    }
}

fn resumed(s: &Subject) {
    let stack = stack(s);
    s.set("/default", r#"{"a": 1}"#);
    let begin = s.revision();
    for n in 0..20 {
        set(&stack, NAMES[n % 3], &format!("/n{}", n % 7), &n.to_string());
        s.set("/elsewhere", &n.to_string());
    }
    s.store.sync().expect("it syncs");
    let all = |mut changes: Changes| {
        let mut all = Vec::new();
        while let Some(change) = next(&mut changes) {
            all.push((change, changes.bookmark()));
        }
        all
    };
    let whole = all(stack.changes("", begin).expect("a feed"));
    assert!(whole.len() > 5, "{}", whole.len());
    for (at, (_, bookmark)) in whole.iter().enumerate() {
        let rest = all(stack.changes_from("", bookmark).expect("a feed"));
        assert_eq!(rest, whole[at + 1..]);
    }
    s.store.forget_before(begin + 10).expect("it forgets");
    let mut late = stack.changes("", begin).expect("a feed");
    match late.next(Duration::ZERO).expect("the feed reads") {
        Some(Event::Gap(gap)) => assert_eq!((gap.after, gap.resume), (begin, s.revision())),
        other => panic!("{other:?}"),
    }
}

fn differences(s: &Subject) {
    let stack = stack(s);
    s.set("/default", r#"{"a": {"b": 1, "c": 2}, "l": [1, 2, 3]}"#);
    let before = stack.read().expect("a state");
    set(&stack, "user", "/a/b", "2");
    set(&stack, "system", "/l/1", "9");
    set(&stack, "user", "/a/d", "{}");
    let after = stack.read().expect("a state");
    let node = |state: &'static _| -> spinney::read::Reached<'static> {
        spinney::Snapshot::node(state, "").expect("reads").expect("it is there")
    };
    let (before, after) = (Box::leak(Box::new(before)), Box::leak(Box::new(after)));
    let mut found = Vec::new();
    let tell = &mut |path: &Path, change: Told<'_>| {
        let mark = match change {
            Told::Added(_) => '+',
            Told::Removed(_) => '-',
            Told::Replaced(..) => '~',
            Told::Annotated(..) => '@',
        };
        found.push(format!("{mark}{}", &**path));
        Ok(())
    };
    spinney::difference::differences(&node(before), &node(after), tell).expect("reads");
    assert_eq!(found, ["~/a/b", "+/a/d", "~/l/1"]);
}

fn refusals(s: &Subject) {
    let other = spinney::open("memory:").expect("opens");
    let two = |second: Layer| {
        let first = Layer::new("here", &s.store, "/here").expect("a layer");
        Stack::new(vec![first, second]).expect("a stack")
    };
    let elsewhere = two(Layer::new("there", &other, "/t").expect("a layer"));
    refused(Unsupported, "the layer `there` is in a store of its own", elsewhere.changes("", 0));
    s.set("/t", "1");
    let past = two(Layer::new("past", &s.store, "/t").expect("a layer").at(s.revision()));
    refused(Unsupported, "the layer `past` is a state of the past", past.changes("", 0));
    refused(InvalidInput, "path", stack(s).changes("a", 0));
}

fn place(random: &mut Rng) -> String {
    let count = [0, 1, 1, 2, 2, 2, 3, 3, 1, 2, 3, 4][random.usize(..12)];
    let segment = |_| ["/a", "/b", "/c", "/k3", "/1", "/-"][random.usize(..6)];
    (0..count).map(segment).collect()
}

fn value(random: &mut Rng) -> Value {
    match random.u8(..8) {
        0 | 5 => json(r#"{"a": {"b": 1}, "c": [1, {"a": 2}]}"#),
        1 => json("{}"),
        2 => json(r#"[0, {"b": "x"}]"#),
        3 => json("null"),
        4 => {
            let count = random.u16(..300);
            Value::Map((0..i32::from(count)).map(|n| (format!("k{n}"), Value::from(n))).collect())
        }
        _ => Value::from(random.i64(..4)),
    }
}

/// One commit to one layer or several, through the stack or past it; refused ones change nothing.
fn write(s: &Subject, stack: &Stack, random: &mut Rng) -> Result<()> {
    let (layer, path, value) = (NAMES[random.usize(..3)], place(random), value(random));
    let whole = format!("/{layer}{path}");
    let other = format!("/{}{}", NAMES[random.usize(..3)], place(random));
    match random.u8(..30) {
        0..8 => stack.write(layer, |edit| edit.set(&path, &value)).map(drop),
        8..12 => stack.write(layer, |edit| edit.remove(&path)).map(drop),
        12..14 => stack.write(layer, |edit| edit.reset(&path)).map(drop),
        14 => stack.write(layer, |edit| edit.lock(&path)).map(drop),
        15..17 => stack.write(layer, |edit| edit.unlock(&path)).map(drop),
        17..20 => s.store.write(|tx| tx.set(&whole, &value)).map(drop),
        20 => s.store.write(|tx| tx.remove(&whole)).map(drop),
        21 => s.store.write(|tx| tx.mv(&whole, &other)).map(drop),
        22 => s.store.write(|tx| tx.copy(&whole, &other)).map(drop),
        23 => s.store.write(|tx| tx.set_meta(&whole, "note", Some("x"))).map(drop),
        24 => s.store.write(|tx| tx.set_meta(&whole, "note", None)).map(drop),
        25 => {
            let replaces = Some("replaces marks-below");
            s.store.write(|tx| tx.set_meta(&format!("/{layer}"), marks::NAME, replaces)).map(drop)
        }
        26 => s.store.write(|tx| tx.remove(&format!("/{layer}"))).map(drop),
        27 => s.store.write(|tx| tx.insert(&whole, &value)).map(drop),
        _ => {
            let both = s.store.write(|tx| {
                stack.edit(layer, tx)?.set(&path, &value)?;
                stack.edit("system", tx)?.remove("/a")?;
                stack.edit("default", tx)?.set("/b", &1.into())
            });
            both.map(drop)
        }
    }
}

fn random(s: &Subject) {
    let mut random = Rng::with_seed(0xfeed);
    let stack = stack(s);
    let (mut told, mut refusals) = (0, 0);
    for round in 0..400 {
        // Where a scalar hides all there is little to tell.
        if round % 16 == 0 {
            tells(s, &stack, || {
                s.store.write(|tx| {
                    tx.remove("/user")?;
                    tx.set("/system", &json(r#"{"a": {"a": {"b": 2}}, "c": {"b": 3}}"#))?;
                    tx.set("/default", &json(r#"{"a": {"k3": [1]}, "b": {"c": {}}, "1": 2}"#))
                })
            });
        }
        let mut failed = false;
        let said = tells(s, &stack, || failed = write(s, &stack, &mut random).is_err());
        refusals += u32::from(failed);
        told += u32::from(!said.is_empty());
    }
    assert!(told > 100 && refusals < 250, "{told} told, {refusals} refused");
}
