//! What operations cost, counted in records that are read and written: what they change, whatever lies beside.

use std::cell::Cell;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use spinney::datastores::{CandidateCommit, Datastore};
use spinney::feed::Event;
use spinney::history::log_key;
use spinney::layers::{Layer, Stack};
use spinney::schemas::SchemaOptions;
use spinney::{Map, OpenOptions, Store, Value, formats};
use spinney_core::backend::{
    Backend, Batch, Bounds, Capabilities, Direction, Outcome, Records, Revision, Snapshot,
    WriteGuard,
};
use spinney_core::{Memory, Result};

/// Records.
#[derive(Clone, Copy)]
struct Cost {
    reads: u64,
    writes: u64,
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} read, {} written", self.reads, self.writes)
    }
}

thread_local! {
    /// What this thread has read and written so far; others tidy up meanwhile.
    static SEEN: Cell<Cost> = const { Cell::new(Cost { reads: 0, writes: 0 }) };
}

fn note(reads: u64, writes: u64) {
    let seen = SEEN.get();
    SEEN.set(Cost { reads: seen.reads + reads, writes: seen.writes + writes });
}

/// What some work reads and writes.
fn cost(work: impl FnOnce()) -> Cost {
    let before = SEEN.get();
    work();
    let now = SEEN.get();
    Cost { reads: now.reads - before.reads, writes: now.writes - before.writes }
}

/// A backend in memory that counts.
struct Counting(Memory);

struct CountingSnapshot(Box<dyn Snapshot>);

impl Backend for Counting {
    fn capabilities(&self) -> &Capabilities {
        self.0.capabilities()
    }

    fn snapshot(&self) -> Result<Box<dyn Snapshot>> {
        Ok(Box::new(CountingSnapshot(self.0.snapshot()?)))
    }

    fn write_guard(&self, conflicts: u32) -> Result<Box<dyn WriteGuard + '_>> {
        self.0.write_guard(conflicts)
    }

    fn commit(&self, batch: Batch) -> Result<Outcome> {
        note(0, batch.changes.len() as u64);
        self.0.commit(batch)
    }

    fn wait(&self, after: Revision, timeout: Duration) -> Result<Revision> {
        self.0.wait(after, timeout)
    }
}

impl Snapshot for CountingSnapshot {
    fn range<'s>(&'s self, bounds: Bounds<'_>, direction: Direction) -> Result<Records<'s>> {
        // One for what is looked for, found or not.
        note(1, 0);
        Ok(Box::new(self.0.range(bounds, direction)?.inspect(|_| note(1, 0))))
    }
}

/// A store with so many items in `/running`.
struct Large {
    backend: Arc<Counting>,
    store: Store,
    count: usize,
}

fn items(count: usize) -> Value {
    let item = |n: usize| {
        let mut item = Map::new();
        item.insert("name", format!("item {n}"));
        item.insert("n", n as u64);
        (format!("item{n}"), Value::Map(item))
    };
    Value::Map((0..count).map(item).collect())
}

impl Large {
    fn new(count: usize) -> Large {
        let backend = Arc::new(Counting(Memory::new()));
        let store = OpenOptions::new().over(Arc::clone(&backend) as Arc<dyn Backend>, None);
        let large = Large { backend, store, count };
        large.fill("running");
        large
    }

    fn fill(&self, tree: &str) {
        self.store.write(|tx| tx.set(&format!("/{tree}"), &items(self.count))).expect("sets");
    }

    fn leaf(&self) -> String {
        format!("/item{}/name", self.count / 2)
    }

    fn in_running(&self) -> String {
        format!("/running{}", self.leaf())
    }
}

/// What costs the same among 1 000 items and 100 000, but for levels of pages.
fn costs_what_it_changes(what: &str, work: impl Fn(&Large) -> Cost) {
    let [few, many] = [1_000, 100_000].map(|count| work(&Large::new(count)));
    println!("{what}: {few}; among 100 000: {many}");
    assert!(many.reads <= few.reads + 20 && many.reads < 400, "{what}: {few}; {many}");
    assert!(many.writes <= few.writes + 4 && many.writes < 60, "{what}: {few}; {many}");
}

#[test]
fn comparing_revisions_and_going_back() {
    let changed = |large: &Large| {
        large.store.write(|tx| tx.set(&large.in_running(), &"other".into())).expect("sets").revision
    };
    costs_what_it_changes("two revisions that differ in a leaf", |large| {
        let revision = changed(large);
        cost(|| {
            let between = large.store.between(revision - 1, revision).expect("it is kept");
            let mut found = Vec::new();
            let tell = &mut |path: &spinney::Path, _: spinney::difference::Change<'_>| {
                found.push(path.to_string());
                Ok(())
            };
            between.changes(tell).expect("reads");
            assert_eq!(found, [format!("`{}`", large.in_running())]);
        })
    });
    costs_what_it_changes("an older state", |large| {
        let revision = changed(large);
        cost(|| {
            let old = large.store.at(revision - 1).expect("it is kept");
            let name = format!("item {}", large.count / 2);
            assert_eq!(old.get(&large.in_running()).expect("reads"), Some(name.into()));
        })
    });
    costs_what_it_changes("a commit undone", |large| {
        let revision = changed(large);
        cost(|| drop(large.store.revert(revision).expect("it is undone")))
    });
    costs_what_it_changes("a state restored", |large| {
        let revision = changed(large);
        cost(|| drop(large.store.restore(revision - 1).expect("it is restored")))
    });
}

#[test]
fn layers_and_datastores() {
    costs_what_it_changes("a leaf through five layers", |large| {
        let layer = |name: &str| Layer::new(name, &large.store, &format!("/{name}"));
        let layers: Result<_> = ["a", "b", "c", "d", "running"].map(layer).into_iter().collect();
        let stack = Stack::new(layers.expect("layers")).expect("a stack");
        for name in ["a", "b", "c", "d"] {
            let own = format!("/item{}", large.count / 2);
            large.fill(name);
            stack.write(name, |edit| edit.reset(&own)).expect("it is reset");
        }
        cost(|| {
            let state = stack.read().expect("a state");
            let sources = state.sources(&large.leaf()).expect("reads");
            assert_eq!(sources, Some(vec!["running"]));
        })
    });
    costs_what_it_changes("a candidate of a leaf becomes running", |large| {
        let all = large.store.datastores().expect("datastores");
        let edit = |value: &str| {
            all.edit(Datastore::Candidate, |edit| edit.set(&large.leaf(), &value.into()))
                .expect("it is set");
        };
        cost(|| {
            edit("other");
            all.commit(&CandidateCommit::default()).expect("it becomes running");
            let running = large.store.read().and_then(|state| state.get(&large.in_running()));
            assert_eq!(running.expect("reads"), Some("other".into()));
        })
    });
    costs_what_it_changes("a leaf of pushed state", |large| {
        let all = large.store.datastores().expect("datastores");
        let pushed = all.push("sensor", None).expect("pushes");
        pushed.edit(|edit| edit.set("", &items(large.count))).expect("it is pushed");
        let cost = cost(|| {
            pushed.edit(|edit| edit.set(&large.leaf(), &"other".into())).expect("it is pushed");
        });
        let state = all.read(Datastore::Operational).expect("a state");
        assert_eq!(state.get(&large.leaf()).expect("reads"), Some("other".into()));
        cost
    });
}

#[test]
fn a_schema_with_one_more_optional_property_rewrites_nothing() {
    let schema = |more: &str| {
        let text = format!(
            r#"{{"additionalProperties": {{"properties": {{"name": {{"type": "string"}}, "n": {{"type": "integer"}}{more}}}}}}}"#
        );
        formats::parse(&text).expect("JSON")
    };
    let attach = |large: &Large, more: &str| {
        let set = large.store.set_schema("/running", &schema(more), SchemaOptions::default());
        set.expect("it fits")
    };
    let [few, many] = [1_000, 100_000].map(|count| {
        let large = Large::new(count);
        attach(&large, "");
        let mut paths = Vec::new();
        let cost = cost(|| {
            let committed = attach(&large, r#", "note": {"type": "string"}"#);
            paths.extend(committed.diff.ops.iter().map(|op| op.pointer().to_string()));
        });
        assert!(paths.iter().all(|path| path.starts_with("`/.schemas/")), "{paths:?}");
        cost
    });
    assert!(many.writes == few.writes && many.writes < 20, "{few}; {many}");
}

#[test]
fn imports_and_removals_of_everything_are_small_in_the_log() {
    let large = Large::new(100_000);
    let imported = large.store.write(|tx| tx.set("/new", &items(100_000))).expect("sets").revision;
    let mut late = large.store.changes("/new", imported - 1).expect("a feed");
    let removed = large.store.write(|tx| tx.remove("/new")).expect("removes").revision;
    let snapshot = large.backend.snapshot().expect("a snapshot");
    for revision in [imported, removed] {
        let record = snapshot.get(&log_key(revision)).expect("reads").expect("it is logged");
        assert!(record.len() <= 4_096, "revision {revision} logs {} bytes", record.len());
    }
    // Who is behind still sees what was there.
    for revision in [imported, removed] {
        let Some(Event::Change(change)) = late.next(Duration::ZERO).expect("an event") else {
            panic!("a commit is not told");
        };
        assert_eq!(change.revision, revision);
    }
    let then = large.store.at(imported).expect("it is kept");
    assert_eq!(then.count("/new").expect("counts"), Some(100_000));
    assert_eq!(then.get("/new/item99999/n").expect("reads"), Some(99_999.into()));
}
