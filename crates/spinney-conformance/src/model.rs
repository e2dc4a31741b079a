//! The tree as a plain value in memory, and random histories that a store must follow step by step.

use std::collections::VecDeque;

use fastrand::Rng;
use spinney_core::backend::{Backend, Revision};
use spinney_core::build::Builder;
use spinney_core::diff::Diff;
use spinney_core::transaction::Transaction;
use spinney_core::value::ValueBuilder;
use spinney_core::view::View;
use spinney_core::{ErrorKind, Map, Number, Path, Result, Value};

use spinney_core::check::{check, check_snapshot};

/// How long and how wild a history is.
#[derive(Clone, Debug)]
pub struct History {
    /// Seeds all choices; printed when a history fails.
    pub seed: u64,
    /// Edits in all.
    pub operations: usize,
    /// Edits of one transaction, at most.
    pub batch_max: usize,
    /// Different keys at one level, at most; more make larger maps.
    pub keys_max: u32,
    /// Whether each diff is applied, inverted and applied again beside the store.
    pub diffs: bool,
}

/// Runs a random history on a store and on a plain value and compares them.
///
/// # Panics
/// When they differ, naming the seed.
pub fn run(backend: &dyn Backend, history: &History) {
    let mut state = State {
        rng: Rng::with_seed(history.seed),
        model: Value::map(),
        history,
        other: None,
        past: VecDeque::new(),
    };
    let mirror = spinney_core::Memory::new();
    if history.diffs {
        state.other = Some(&mirror);
    }
    let mut done = 0;
    let mut commits = 0u32;
    while done < history.operations {
        done += state.transaction(backend).unwrap_or_else(|error| {
            panic!("seed {}: after {done} operations: {error}", history.seed)
        });
        commits += 1;
        if commits.is_multiple_of(16) || done >= history.operations {
            state.compare(backend, done);
            state.look_back(backend);
        }
        let is_done = done >= history.operations;
        if commits.is_multiple_of(64) || is_done {
            if is_done {
                spinney_core::history::trim(backend, Revision::MAX).expect("forgets");
            }
            while spinney_core::reclaim::step(backend, &trees(backend)).expect("reclaims") > 0 {}
            let report = check(backend).expect("the store can be read");
            assert!(
                report.is_sound(),
                "seed {}: after {done} operations: {report:?}",
                history.seed
            );
        }
    }
}

/// The trees of a store, the catalogue first.
pub fn trees(backend: &dyn Backend) -> Vec<u32> {
    spinney_core::check::trees(&*backend.snapshot().expect("a snapshot")).expect("the heads read")
}

/// The whole store as a value.
pub fn load(backend: &dyn Backend) -> Result<Value> {
    let snapshot = backend.snapshot()?;
    load_view(View { snapshot: &*snapshot, key_len_max: backend.capabilities().key_len_max })
}

fn load_view(view: View<'_>) -> Result<Value> {
    let mut builder = ValueBuilder::default();
    view.walk(&view.root()?, &mut builder)?;
    Ok(builder.finish().expect("the walk is one value"))
}

struct State<'h> {
    rng: Rng,
    model: Value,
    history: &'h History,
    other: Option<&'h dyn Backend>,
    /// Some of the last revisions, with what the store held.
    past: VecDeque<(Revision, Value)>,
}

/// Revisions that the log of a history keeps.
const REVISIONS_MAX: u64 = 40;

impl State<'_> {
    /// Reads one of the last states again, in full.
    fn look_back(&mut self, backend: &dyn Backend) {
        let Some((revision, expected)) = self.rng.choice(self.past.iter()) else { return };
        let seed = self.history.seed;
        let old = backend
            .snapshot()
            .and_then(|newest| spinney_core::history::at(newest, *revision))
            .unwrap_or_else(|error| panic!("seed {seed}: revision {revision}: {error}"));
        let view = View { snapshot: &old, key_len_max: backend.capabilities().key_len_max };
        let found = load_view(view).expect("the old state reads");
        let difference = difference(&found, expected);
        assert!(found == *expected, "seed {seed}: revision {revision} differs: {difference}");
        let report = check_snapshot(view).expect("the old state can be read");
        assert!(report.damaged.is_empty(), "seed {seed}: revision {revision}: {report:?}");
    }

    fn transaction(&mut self, backend: &dyn Backend) -> Result<usize> {
        let guard = backend.write_guard(0)?;
        let before = backend.snapshot()?;
        let mut transaction = Transaction::begin(backend)?;
        if self.rng.u8(..) < 40 {
            transaction.set_builder(Builder::with_buffer_len_max(self.rng.usize(300..6000)));
        }
        let old_model = self.model.clone();
        let count = self.rng.usize(1..=self.history.batch_max);
        for _ in 0..count {
            self.operation(&mut transaction)?;
        }
        if self.rng.u8(..) < 16 {
            // Given up: nothing must have changed.
            self.model = old_model;
            return Ok(count);
        }
        transaction.set_revisions_max(REVISIONS_MAX);
        let committed = transaction.commit(u128::from(self.rng.u64(..)))?;
        self.past.retain(|(revision, _)| revision + REVISIONS_MAX > committed.revision);
        if self.rng.u8(..) < 64 {
            self.past.push_back((committed.revision, self.model.clone()));
        }
        drop(guard);
        backend.sync(committed.revision)?;
        if let Some(other) = self.other {
            let after = backend.snapshot()?;
            let key_len_max = backend.capabilities().key_len_max;
            let diff = committed.diff.expand(
                &View { snapshot: &*before, key_len_max },
                &View { snapshot: &*after, key_len_max },
            )?;
            let diff = Diff::decode(&diff.encode())?;
            self.follow(other, &diff, &old_model);
        }
        Ok(count)
    }

    /// Applies a diff to a second store, undoes it, and applies it again.
    fn follow(&mut self, other: &dyn Backend, diff: &Diff, old_model: &Value) {
        let apply = |diff: &Diff| {
            let mut transaction = Transaction::begin(other).expect("begins");
            transaction.apply(diff).expect("the diff applies");
            transaction.commit(0).expect("commits");
            load(other).expect("reads")
        };
        let seed = self.history.seed;
        let check = |value: Value, expected: &Value, what: &str| {
            let difference = difference(&value, expected);
            assert!(value == *expected, "seed {seed}: {what}: {difference}; {diff:?}");
        };
        check(apply(diff), &self.model, "apply(a, diff(a, b)) is not b");
        if self.rng.bool() {
            check(apply(&diff.invert()), old_model, "the inverse does not undo");
            check(apply(diff), &self.model, "the diff does not apply again");
        }
    }

    fn compare(&mut self, backend: &dyn Backend, done: usize) {
        let stored = load(backend).expect("the store reads");
        assert!(
            stored == self.model,
            "seed {}: after {done} operations the store differs: {}",
            self.history.seed,
            difference(&stored, &self.model)
        );
        let path = self.any_path();
        let snapshot = backend.snapshot().expect("a snapshot");
        let view = View { snapshot: &*snapshot, key_len_max: backend.capabilities().key_len_max };
        let slot = view.resolve(&path).expect("resolves");
        let expected = self.model.pointer(&path);
        assert_eq!(slot.is_some(), expected.is_some(), "seed {}: {path}", self.history.seed);
        if let (Some(slot), Some(expected)) = (slot, expected) {
            let count = match expected {
                Value::Map(map) => Some(map.len() as u64),
                Value::List(list) => Some(list.len() as u64),
                _ => None,
            };
            assert_eq!(
                view.count(&slot).expect("counts"),
                count,
                "seed {}: {path}",
                self.history.seed
            );
        }
    }

    fn operation(&mut self, transaction: &mut Transaction<'_>) -> Result<()> {
        let path = self.any_path();
        match self.rng.u8(0..100) {
            0..45 => self.set(transaction, &path),
            45..60 => self.insert(transaction, &path),
            60..78 => self.remove(transaction, &path),
            78..88 => self.mv(transaction, &path),
            88..91 => self.copy(transaction, &path),
            91 => self.give_up(transaction, &path),
            92..96 => {
                let meta = format!("{}", self.rng.u8(0..3));
                match transaction.set_meta(&path, "note", (meta != "0").then_some(&meta)) {
                    Ok(()) => Ok(()),
                    Err(error) => expected(error, &[ErrorKind::NotFound, ErrorKind::InvalidInput]),
                }
            }
            _ => {
                let read = transaction.get(&path)?;
                assert!(
                    read.as_ref() == self.model.pointer(&path),
                    "seed {}: a read in the transaction differs at {path}",
                    self.history.seed
                );
                Ok(())
            }
        }
    }

    fn set(&mut self, transaction: &mut Transaction<'_>, path: &str) -> Result<()> {
        let value = self.value();
        match transaction.set(path, &value) {
            Ok(()) => {
                set_in_model(&mut self.model, path, value);
                Ok(())
            }
            Err(error) => expected(error, &[ErrorKind::InvalidInput]),
        }
    }

    fn insert(&mut self, transaction: &mut Transaction<'_>, path: &str) -> Result<()> {
        let value = self.value();
        match transaction.insert(path, &value) {
            Ok(()) => {
                let (list, position) =
                    list_place(&mut self.model, path).expect("the store found a list");
                list.insert(position, value);
                Ok(())
            }
            Err(error) => expected(error, &[ErrorKind::InvalidInput, ErrorKind::NotFound]),
        }
    }

    fn remove(&mut self, transaction: &mut Transaction<'_>, path: &str) -> Result<()> {
        if path.is_empty() {
            return Ok(());
        }
        let removed = transaction.remove(path)?;
        assert_eq!(
            removed,
            remove_in_model(&mut self.model, path).is_some(),
            "seed {}",
            self.history.seed
        );
        Ok(())
    }

    fn mv(&mut self, transaction: &mut Transaction<'_>, from: &str) -> Result<()> {
        let to = self.any_path();
        let mut after = self.model.clone();
        let moved =
            remove_in_model(&mut after, from).and_then(|value| put_moved(&mut after, &to, value));
        let below = to.strip_prefix(from).is_some_and(|rest| rest.starts_with('/'));
        if moved.is_none() || below || from.is_empty() || to.is_empty() {
            return Ok(());
        }
        let both_trees = [from, &to].iter().all(|path| path.matches('/').count() == 1);
        if both_trees && self.model.pointer(&to).is_some() && *from != *to {
            return Ok(());
        }
        if *from != *to {
            transaction.mv(from, &to)?;
            self.model = after;
        }
        Ok(())
    }

    fn copy(&mut self, transaction: &mut Transaction<'_>, from: &str) -> Result<()> {
        let to = self.any_path();
        let Some(value) = self.model.pointer(from).cloned() else { return Ok(()) };
        if to.is_empty() || size(&value) > 400 {
            return Ok(());
        }
        let mut after = self.model.clone();
        if put_moved(&mut after, &to, value).is_none() {
            return Ok(());
        }
        transaction.copy(from, &to)?;
        self.model = after;
        Ok(())
    }

    /// Makes a node, takes some of it elsewhere, and removes the rest.
    fn give_up(&mut self, transaction: &mut Transaction<'_>, path: &str) -> Result<()> {
        self.set(transaction, path)?;
        for _ in 0..self.rng.usize(1..4) {
            if let Some(member) = self.member_of(path) {
                self.mv(transaction, &member)?;
            }
        }
        self.remove(transaction, path)
    }

    /// The path of any member of a container.
    fn member_of(&mut self, path: &str) -> Option<String> {
        let segment = match self.model.pointer(path)? {
            Value::Map(map) if !map.is_empty() => {
                map.iter().nth(self.rng.usize(0..map.len()))?.0.into_owned()
            }
            Value::List(list) if !list.is_empty() => self.rng.usize(0..list.len()).to_string(),
            _ => return None,
        };
        let mut path = Path::parse(path).ok()?;
        path.push(&segment);
        Some(String::from(&*path))
    }

    /// A path that often exists, and sometimes ends just beside.
    fn any_path(&mut self) -> String {
        let mut path = Path::root();
        let mut value = Some(&self.model);
        let depth = self.rng.usize(1..6);
        for level in 0..depth {
            let fresh = self.rng.u8(..) < 50;
            let segment = match value {
                Some(Value::List(list)) => match self.rng.u8(0..10) {
                    0 => "-".to_owned(),
                    _ => self.rng.usize(0..=list.len()).to_string(),
                },
                Some(Value::Map(map)) if !map.is_empty() && !fresh => {
                    let at = self.rng.usize(0..map.len());
                    map.iter().nth(at).expect("it has as many").0.into_owned()
                }
                Some(Value::Map(_)) | None => key(&mut self.rng, self.history.keys_max, level),
                Some(_) if self.rng.u8(..) < 250 => break,
                Some(_) => key(&mut self.rng, self.history.keys_max, level),
            };
            path.push(&segment);
            value = value.and_then(|value| match value {
                Value::Map(map) => map.get(&segment),
                Value::List(list) => segment.parse().ok().and_then(|at: usize| list.get(at)),
                _ => None,
            });
        }
        String::from(&*path)
    }

    fn key(&mut self, level: usize) -> String {
        key(&mut self.rng, self.history.keys_max, level)
    }

    fn value(&mut self) -> Value {
        match self.rng.u8(0..30) {
            0..8 => Value::Number(Number::from(self.rng.i64(-300..70_000))),
            8..10 => Value::Number(
                Number::parse(["1.10", "-0", "1e400", "-65.613616999999977"][self.rng.usize(0..4)])
                    .expect("a number"),
            ),
            10..15 => Value::from("x".repeat(self.rng.usize(0..90)).as_str()),
            15 => Value::from("y\n".repeat(self.rng.usize(0..6000)).as_str()),
            16 => Value::Bytes(vec![7; self.rng.usize(0..3000)]),
            17 => Value::Null,
            18 => Value::Bool(self.rng.bool()),
            19..22 => Value::map(),
            22..25 => Value::list(),
            25..27 => {
                let n = self.rng.usize(0..self.history.keys_max as usize);
                Value::from((0..n).map(|_| self.small()).collect::<Vec<_>>())
            }
            _ => {
                let n = self.rng.usize(0..self.history.keys_max as usize);
                Value::Map((0..n).map(|_| (self.key(1), self.small())).collect::<Map>())
            }
        }
    }

    fn small(&mut self) -> Value {
        match self.rng.u8(0..10) {
            0 => {
                Value::Map([("a", Value::from(1)), ("b", Value::from("two"))].into_iter().collect())
            }
            1 => Value::from(vec![Value::from(1), Value::Null]),
            2..5 => Value::from("z".repeat(self.rng.usize(0..60)).as_str()),
            _ => Value::Number(Number::from(self.rng.i64(0..1000))),
        }
    }
}

fn expected(error: spinney_core::Error, kinds: &[ErrorKind]) -> Result<()> {
    if kinds.contains(&error.kind()) { Ok(()) } else { Err(error) }
}

fn size(value: &Value) -> usize {
    match value {
        Value::Map(map) => map.iter().map(|(_, value)| size(value)).sum::<usize>() + 1,
        Value::List(list) => list.iter().map(size).sum::<usize>() + 1,
        _ => 1,
    }
}

/// Where two values first differ.
fn difference(a: &Value, b: &Value) -> String {
    match (a, b) {
        (Value::Map(x), Value::Map(y)) => {
            let keys: std::collections::BTreeSet<String> =
                x.iter().chain(y.iter()).map(|(key, _)| key.into_owned()).collect();
            for key in keys {
                match (x.get(&key), y.get(&key)) {
                    (Some(x), Some(y)) if x == y => {}
                    (Some(x), Some(y)) => return format!("/{key:.20}{}", difference(x, y)),
                    (x, y) => {
                        return format!(
                            "/{key:.40}: stored {}, expected {}",
                            x.is_some(),
                            y.is_some()
                        );
                    }
                }
            }
            String::new()
        }
        (Value::List(x), Value::List(y)) if x.len() == y.len() => {
            let at = x.iter().zip(y.iter()).position(|(x, y)| x != y).unwrap_or(0);
            format!("/{at}{}", difference(&x[at], &y[at]))
        }
        _ => format!(": stored {:.200}, expected {:.200}", format!("{a:?}"), format!("{b:?}")),
    }
}

fn split(path: &str) -> (Vec<String>, String) {
    let mut segments: Vec<String> =
        spinney_core::path::segments(path).map(|s| s.into_owned()).collect();
    let last = segments.pop().expect("not the root");
    (segments, last)
}

fn step<'v>(value: &'v mut Value, segment: &str) -> Option<&'v mut Value> {
    match value {
        Value::Map(map) => map.get_mut(segment),
        Value::List(list) => {
            let at = spinney_core::path::position(segment)? as usize;
            list.get_mut(at)
        }
        _ => None,
    }
}

/// What `set` does when it succeeds: the parents that are missing are made.
fn set_in_model(model: &mut Value, path: &str, value: Value) {
    let (parents, last) = split(path);
    let mut at = model;
    for parent in parents {
        if let Value::Map(map) = at
            && map.get(&parent).is_none()
        {
            map.insert(&parent, Value::map());
        }
        at = step(at, &parent).expect("the store found the way");
    }
    match at {
        Value::Map(map) => drop(map.insert(&last, value)),
        Value::List(list) if last == "-" => list.push(value),
        Value::List(list) => list[last.parse::<usize>().expect("a position")] = value,
        _ => panic!("the store set a member of a scalar"),
    }
}

fn list_place<'v>(model: &'v mut Value, path: &str) -> Option<(&'v mut Vec<Value>, usize)> {
    let (parents, last) = split(path);
    let parent = parents.iter().try_fold(model, |at, segment| step(at, segment))?;
    let Value::List(list) = parent else { return None };
    let position = match &*last {
        "-" => list.len(),
        last => last.parse().ok().filter(|&at| at <= list.len())?,
    };
    Some((list, position))
}

fn remove_in_model(model: &mut Value, path: &str) -> Option<Value> {
    if path.is_empty() {
        return None;
    }
    let (parents, last) = split(path);
    let parent = parents.iter().try_fold(model, |at, segment| step(at, segment))?;
    match parent {
        Value::Map(map) => map.remove(&last),
        Value::List(list) => {
            let at = spinney_core::path::position(&last)? as usize;
            (at < list.len()).then(|| list.remove(at))
        }
        _ => None,
    }
}

/// Puts a moved or copied value: into a list it is inserted. `None` when there is no such place.
fn put_moved(model: &mut Value, path: &str, value: Value) -> Option<()> {
    if path.is_empty() {
        return None;
    }
    let (parents, last) = split(path);
    let mut at = model;
    for parent in parents {
        if let Value::Map(map) = at
            && map.get(&parent).is_none()
        {
            map.insert(&parent, Value::map());
        }
        at = step(at, &parent)?;
    }
    match at {
        Value::Map(map) => drop(map.insert(&last, value)),
        Value::List(list) => {
            let position = match &*last {
                "-" => list.len(),
                last => last.parse().ok().filter(|&at| at <= list.len())?,
            };
            list.insert(position, value);
        }
        _ => return None,
    }
    Some(())
}

fn key(rng: &mut Rng, keys_max: u32, level: usize) -> String {
    if level == 0 {
        return format!("tree{}", rng.u8(0..3));
    }
    let n = rng.u32(0..keys_max);
    match rng.u8(0..20) {
        0 => String::new(),
        1 => format!("-{n}"),
        2 => format!("a/b~{n}"),
        3 => format!("{}{n}", "long".repeat(200)),
        4 => format!("é\0{n}"),
        5..10 => n.to_string(),
        10..15 => format!("common/prefix/{n:04}"),
        _ => format!("k{n}"),
    }
}
