//! A store under test, with a second store in memory that follows it by its diffs alone.

use std::collections::BTreeMap;
use std::sync::Arc;

use spinney::formats::{self, Fidelity, JsonWriter, Layout, ReadOptions};
use spinney::{
    Committed, ErrorKind, Existing, OpenOptions, Receiver, Result, Snapshot, Store, Transaction,
    Value,
};
use spinney_core::Memory;
use spinney_core::backend::{Backend, Revision};
use spinney_core::check::Report;
use spinney_core::diff::{Diff, Op, Step};

/// A store and what follows it.
pub struct Subject {
    /// What the store stands on.
    pub backend: Arc<dyn Backend>,
    /// The store.
    pub store: Store,
    follower: Store,
}

impl Subject {
    /// A store over an empty backend.
    pub fn new(backend: Arc<dyn Backend>) -> Subject {
        let store = OpenOptions::new().over(Arc::clone(&backend), None);
        let follower = OpenOptions::new().over(Arc::new(Memory::new()), None);
        Subject { backend, store, follower }
    }

    /// Commits an edit and proves its diff: it is normalised, it makes the same change elsewhere,
    /// its inverse undoes that, and its encoded form reads back.
    ///
    /// # Panics
    /// When the edit fails or the diff does not hold.
    pub fn write<T>(&self, edit: impl FnMut(&mut Transaction<'_>) -> Result<T>) -> Committed<T> {
        let before = self.store.read().expect("a snapshot");
        let old_text = self.catch_up();
        let committed = self.store.write(edit).expect("the edit succeeds");
        let after = self.store.read().expect("a snapshot");
        let diff = committed.diff.expand(&before.view(), &after.view()).expect("the diff expands");
        assert_eq!(Diff::decode(&diff.encode()).expect("the diff decodes"), diff);
        assert_normalised(&committed.diff);
        let moved = before.revision().expect("revision") != committed.revision;
        assert_eq!(moved, !diff.is_empty(), "a revision is made by a change and by nothing else");
        let new_text = text(&self.store);
        self.apply(&diff);
        assert_eq!(text(&self.follower), new_text, "apply(a, diff(a, b)) is b: {diff:?}");
        self.apply(&diff.invert());
        assert_eq!(text(&self.follower), old_text, "the inverse undoes: {diff:?}");
        self.apply(&diff);
        assert_eq!(text(&self.follower), new_text, "the diff applies again: {diff:?}");
        committed
    }

    /// Brings the follower to the store's state after commits that it did not see.
    fn catch_up(&self) -> String {
        let now = text(&self.store);
        if text(&self.follower) != now {
            let options = || ReadOptions { tagged: true, ..ReadOptions::default() };
            let read = |visitor: &mut Receiver<'_, '_>| {
                formats::read_with(now.as_bytes(), options(), visitor)
            };
            self.follower
                .write(|tx| tx.set_with("", Existing::Any, read))
                .expect("the follower imports");
        }
        now
    }

    fn apply(&self, diff: &Diff) {
        self.follower.write(|tx| tx.apply(diff)).expect("the diff applies");
    }

    /// Sets a path to a JSON text.
    ///
    /// # Panics
    /// As [`Subject::write`].
    pub fn set(&self, path: &str, text: &str) -> Committed<()> {
        let value = json(text);
        self.write(|tx| tx.set(path, &value))
    }

    /// Asserts that an edit is refused with a kind and a text, and that nothing has changed.
    ///
    /// # Panics
    /// When it is not so.
    pub fn refused<T>(
        &self,
        kind: ErrorKind,
        part: &str,
        edit: impl FnMut(&mut Transaction<'_>) -> Result<T>,
    ) {
        let (revision, before) = (self.revision(), text(&self.store));
        let Err(error) = self.store.write(edit) else { panic!("it was not refused: {part}") };
        assert_eq!(error.kind(), kind, "{error}");
        let said = error.to_string();
        assert!(said.contains(part), "`{said}` does not say `{part}`");
        assert!(!said.contains('\n') && said.len() < 1_000, "one short line: {said}");
        assert_eq!((self.revision(), text(&self.store)), (revision, before), "after {said}");
    }

    /// The newest revision.
    ///
    /// # Panics
    /// When the store cannot be read.
    pub fn revision(&self) -> Revision {
        self.store.read().and_then(|snapshot| snapshot.revision()).expect("a revision")
    }

    /// The value at a path.
    ///
    /// # Panics
    /// When the store cannot be read.
    pub fn get(&self, path: &str) -> Option<Value> {
        self.store.read().and_then(|snapshot| snapshot.get(path)).expect("it reads")
    }

    /// The value at a path as tagged JSON; `nothing` where there is none.
    pub fn text(&self, path: &str) -> String {
        text_at(&self.store, path)
    }

    /// How many members a container has.
    ///
    /// # Panics
    /// When the store cannot be read.
    pub fn count(&self, path: &str) -> Option<u64> {
        self.store.read().and_then(|snapshot| snapshot.count(path)).expect("it counts")
    }

    /// Forgets all history, reclaims everything and checks that the store is sound and nothing is left over.
    ///
    /// # Panics
    /// When it is not so.
    pub fn check(&self) -> Report {
        self.store.forget_before(Revision::MAX).expect("it forgets");
        self.store.wait_until_reclaimed();
        self.store.reclaim().expect("it reclaims");
        let report = self.store.read().and_then(|snapshot| snapshot.check()).expect("it reads");
        assert!(report.is_sound() && report.queued == 0, "{report:?}");
        report
    }

    /// Facts about the newest state's records: how many there are.
    ///
    /// # Panics
    /// When the backend cannot be read.
    pub fn records(&self) -> usize {
        use spinney_core::backend::Direction;
        use std::ops::Bound;
        let snapshot = self.backend.snapshot().expect("a snapshot");
        let all = (Bound::Unbounded, Bound::Unbounded);
        let records = snapshot.range(all, Direction::Forward).expect("a range");
        records.inspect(|record| assert!(record.is_ok())).count()
    }
}

/// A number of a test; 0 where there is none.
///
/// # Panics
/// When it is something else.
pub fn number(value: Option<Value>) -> u64 {
    match value {
        Some(Value::Number(number)) => number.as_u64().expect("a small number"),
        None => 0,
        other => panic!("{other:?} is no number"),
    }
}

/// The whole store as tagged JSON.
pub fn text(store: &Store) -> String {
    text_at(store, "")
}

fn text_at(store: &Store, path: &str) -> String {
    text_of(&store.read().expect("a snapshot"), path)
}

/// A node of a state as tagged JSON; `nothing` where there is none.
///
/// # Panics
/// When it cannot be read.
pub fn text_of(snapshot: &Snapshot, path: &str) -> String {
    let mut writer = JsonWriter::new(Vec::new(), Layout::Compact, Fidelity::Tagged);
    match snapshot.visit(path, &mut writer).expect("it reads") {
        false => "nothing".to_owned(),
        true => String::from_utf8(writer.finish().expect("it prints")).expect("it is a text"),
    }
}

/// Parses a JSON text of a test.
///
/// # Panics
/// When it is not JSON.
pub fn json(text: &str) -> Value {
    formats::parse(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// No operation is without effect, and no node has two. An element that moved is taken and put; a
/// name that another tree takes over loses one tree and gets the other.
///
/// # Panics
/// When it is not so.
pub fn assert_normalised(diff: &Diff) {
    let mut seen: BTreeMap<Vec<(Vec<u8>, u64)>, &Op> = BTreeMap::new();
    for op in &diff.ops {
        assert_ne!(op.old, op.new, "an operation without effect: {op:?}");
        let name = op.path.iter().map(|step| match step {
            Step::Key(key) => (key.to_vec(), 0),
            Step::Element { id, .. } => (Vec::new(), *id),
        });
        let name: Vec<_> = name.chain([(vec![op.what as u8], 0)]).collect();
        if let Some(other) = seen.insert(name, op) {
            let is_replaced = other.new.is_none() && op.old.is_none();
            let is_element = matches!(op.path.last(), Some(Step::Element { .. }));
            assert!(
                is_replaced && (is_element || other.tree != op.tree),
                "two operations on a node: {diff:?}"
            );
        }
    }
}
