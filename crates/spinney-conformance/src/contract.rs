//! The byte-level suite: what every backend must do with keys, batches and snapshots.
//!
//! It must not know trees or pages; it writes the head records itself, as the tree layer does.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use fastrand::Rng;
use spinney_core::ErrorKind;
use spinney_core::backend::{
    Backend, Batch, Bounds, Change, Direction, Outcome, Revision, Snapshot, TreeId,
};
use spinney_core::layout::{self, RecordKind};

/// How much is tried.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    /// Bytes of the biggest batches, where the backend takes as many.
    pub batch_len_max: usize,
    /// Batches of the comparison with a model.
    pub random_batches: usize,
}

impl Extent {
    /// What takes a local backend some seconds.
    pub const FULL: Extent = Extent { batch_len_max: 8 << 20, random_batches: 20_000 };
}

/// Makes an empty store.
pub type Factory<'f> = &'f dyn Fn() -> Box<dyn Backend>;

type Case<'c> = &'c dyn Fn(&dyn Backend);

/// Runs every case, each on a store of its own.
///
/// # Panics
/// When the backend breaks the contract.
pub fn contract(factory: Factory<'_>) {
    contract_of(factory, Extent::FULL);
}

/// As [`contract`], as far as said; for servers that are far away or slow.
///
/// # Panics
/// When the backend breaks the contract.
pub fn contract_of(factory: Factory<'_>, extent: Extent) {
    let big_batches = |backend: &dyn Backend| big_batches(backend, extent.batch_len_max);
    let random_batches = |backend: &dyn Backend| random_batches(backend, extent.random_batches);
    let cases: [(&str, Case<'_>); 20] = [
        ("an empty store is empty", &empty_store),
        ("put, get, delete", &put_get_delete),
        ("ranges in both directions", &ranges),
        ("empty and inverted ranges", &empty_ranges),
        ("floor", &floors),
        ("range deletes", &range_deletes),
        ("later changes win", &later_changes_win),
        ("empty and long values", &values),
        ("longest keys", &longest_keys),
        ("refused keys and batches", &refusals),
        ("big batches", &big_batches),
        ("snapshots do not change", &snapshot_isolation),
        ("snapshots go to other threads", &snapshots_are_send),
        ("versions name states", &versions),
        ("conflicts", &conflicts),
        ("trees conflict apart", &tree_conflicts),
        ("maintenance", &maintenance),
        ("wait", &wait),
        ("writers take turns", &writers_take_turns),
        ("random batches", &random_batches),
    ];
    for (name, case) in cases {
        println!("contract: {name}");
        case(&*factory());
    }
}

/// A key of the suite: no head record.
fn key(text: &str) -> Vec<u8> {
    let mut key = layout::prefix(1, RecordKind::Page, 1).to_vec();
    key.extend_from_slice(text.as_bytes());
    key
}

fn put(key: &[u8], value: &[u8]) -> Change {
    Change::Put(key.into(), value.into())
}

fn delete(key: &[u8]) -> Change {
    Change::Delete(key.into())
}

/// The batch that makes the revision after `base`, with the heads of the trees that it touches.
pub fn batch_after(base: Revision, trees: &[TreeId], mut changes: Vec<Change>) -> Batch {
    let revision = base + 1;
    for &tree in trees.iter().filter(|&&tree| tree != 0).chain([&0]) {
        changes.push(put(&layout::head_key(tree), &revision.to_be_bytes()));
    }
    let bases = trees.iter().map(|&tree| (tree, base)).collect();
    let commit_id = fastrand::u128(..);
    Batch { bases, revision, commit_id, changes, diff: Arc::from(&b"diff"[..]) }
}

/// Commits changes of tree 1 at the newest revision.
///
/// # Panics
/// When that does not succeed.
pub fn commit(backend: &dyn Backend, changes: Vec<Change>) -> Revision {
    let _guard = backend.write_guard(0).expect("write guard");
    let base = backend.snapshot().expect("snapshot").revision().expect("revision");
    let outcome = backend.commit(batch_after(base, &[1], changes)).expect("commit");
    assert_eq!(outcome, Outcome::Committed(base + 1));
    base + 1
}

fn maintain(backend: &dyn Backend, changes: Vec<Change>) {
    let revision = now(backend).revision().expect("revision");
    let batch = Batch { revision, changes, ..Batch::default() };
    assert_eq!(backend.commit(batch).expect("commit"), Outcome::Committed(revision));
}

fn now(backend: &dyn Backend) -> Box<dyn Snapshot> {
    backend.snapshot().expect("snapshot")
}

fn get(snapshot: &dyn Snapshot, key: &[u8]) -> Option<Vec<u8>> {
    snapshot.get(key).expect("get").map(Vec::from)
}

type Pairs = Vec<(Vec<u8>, Vec<u8>)>;

fn range(snapshot: &dyn Snapshot, bounds: Bounds<'_>, direction: Direction) -> Pairs {
    let records = snapshot.range(bounds, direction).expect("range");
    records.map(|record| record.expect("record")).map(|(k, v)| (k.into(), v.into())).collect()
}

/// The texts of the suite's keys in a range.
fn texts(snapshot: &dyn Snapshot, bounds: Bounds<'_>, direction: Direction) -> Vec<String> {
    let text =
        |(key, _): (Vec<u8>, _)| String::from_utf8_lossy(&key[layout::PREFIX_LEN..]).into_owned();
    range(snapshot, bounds, direction).into_iter().map(text).collect()
}

fn empty_store(backend: &dyn Backend) {
    let snapshot = now(backend);
    assert_eq!(snapshot.revision().expect("revision"), 0);
    assert_eq!(get(&*snapshot, &key("a")), None);
    assert_eq!(get(&*snapshot, b""), None);
    let all = (Bound::Unbounded, Bound::Unbounded);
    assert_eq!(range(&*snapshot, all, Direction::Forward), []);
    assert_eq!(range(&*snapshot, all, Direction::Backward), []);
    assert!(snapshot.floor(&[], &key("a")).expect("floor").is_none());
    backend.sync(0).expect("sync of nothing");
    backend.stats().expect("stats");
}

fn put_get_delete(backend: &dyn Backend) {
    let first = commit(backend, vec![put(&key("a"), b"1"), put(&key("b"), b"2")]);
    assert_eq!(first, 1);
    assert_eq!(now(backend).revision().expect("revision"), 1);
    assert_eq!(get(&*now(backend), &key("a")).as_deref(), Some(&b"1"[..]));
    backend.sync(first).expect("sync");
    assert_eq!(get(&*now(backend), &key("a")).as_deref(), Some(&b"1"[..]));
    let second = commit(backend, vec![delete(&key("a")), delete(&key("absent"))]);
    assert_eq!(get(&*now(backend), &key("a")), None);
    backend.sync(second).expect("sync");
    assert_eq!(get(&*now(backend), &key("a")), None);
    assert_eq!(get(&*now(backend), &key("b")).as_deref(), Some(&b"2"[..]));
    backend.sync(first).expect("an older revision is synced already");
}

/// Half of the keys synced, half of them staged, one staged over a synced one, one deleted.
fn mixed(backend: &dyn Backend) {
    let synced = ["a", "b", "c", "d", "x"];
    let revision = commit(backend, synced.iter().map(|text| put(&key(text), b"old")).collect());
    backend.sync(revision).expect("sync");
    commit(backend, vec![put(&key("bb"), b"new"), put(&key("c"), b"new"), delete(&key("x"))]);
    commit(backend, vec![put(&key("e"), b"new"), delete(&key("d")), put(&key("ab"), b"new")]);
}

fn ranges(backend: &dyn Backend) {
    mixed(backend);
    let snapshot = now(backend);
    let (b, c, low, high) = (key("b"), key("c"), key(""), key("~"));
    let cases: [(Bounds<'_>, &[&str]); 9] = [
        ((Bound::Included(&low), Bound::Included(&high)), &["a", "ab", "b", "bb", "c", "e"]),
        ((Bound::Included(&b), Bound::Included(&c)), &["b", "bb", "c"]),
        ((Bound::Included(&b), Bound::Excluded(&c)), &["b", "bb"]),
        ((Bound::Excluded(&b), Bound::Included(&c)), &["bb", "c"]),
        ((Bound::Excluded(&b), Bound::Excluded(&c)), &["bb"]),
        ((Bound::Excluded(&low), Bound::Excluded(&b)), &["a", "ab"]),
        ((Bound::Included(&b), Bound::Included(&b)), &["b"]),
        ((Bound::Excluded(&c), Bound::Unbounded), &["e"]),
        ((Bound::Included(&c), Bound::Excluded(&high)), &["c", "e"]),
    ];
    for (bounds, expected) in cases {
        let forward = texts(&*snapshot, bounds, Direction::Forward);
        assert_eq!(forward, expected, "{bounds:?}");
        let mut backward = texts(&*snapshot, bounds, Direction::Backward);
        backward.reverse();
        assert_eq!(backward, expected, "{bounds:?}, backward");
    }
    // The heads of trees 0 and 1 come before all of the suite's keys.
    let all = range(&*snapshot, (Bound::Unbounded, Bound::Unbounded), Direction::Forward);
    assert_eq!(all.len(), 8);
    let none: &[u8] = &[];
    for lower in [Bound::Included(none), Bound::Excluded(none)] {
        assert_eq!(range(&*snapshot, (lower, Bound::Unbounded), Direction::Forward), all);
    }
    let newest = all.iter().filter(|(_, value)| **value == *b"new").count();
    assert_eq!(newest, 4, "staged values count");
}

fn empty_ranges(backend: &dyn Backend) {
    mixed(backend);
    let snapshot = now(backend);
    let (a, b, none) = (key("a"), key("b"), Vec::new());
    let empty: [Bounds<'_>; 8] = [
        (Bound::Included(&b), Bound::Included(&a)),
        (Bound::Excluded(&b), Bound::Excluded(&a)),
        (Bound::Included(&a), Bound::Excluded(&a)),
        (Bound::Excluded(&a), Bound::Included(&a)),
        (Bound::Excluded(&a), Bound::Excluded(&a)),
        (Bound::Unbounded, Bound::Excluded(&none)),
        (Bound::Unbounded, Bound::Included(&none)),
        (Bound::Included(&none), Bound::Included(&none)),
    ];
    for bounds in empty {
        for direction in [Direction::Forward, Direction::Backward] {
            assert_eq!(range(&*snapshot, bounds, direction), [], "{bounds:?} {direction:?}");
        }
    }
}

fn floors(backend: &dyn Backend) {
    mixed(backend);
    let snapshot = now(backend);
    let cases = [
        ("", "a", Some("a")),
        ("", "aa", Some("a")),
        ("", "az", Some("ab")),
        ("", "b", Some("b")),
        ("", "bz", Some("bb")),
        ("", "d", Some("c")),
        ("", "dz", Some("c")),
        ("", "z", Some("e")),
        ("d", "dz", None),
        ("c", "c", Some("c")),
        ("b", "a", None),
        ("f", "z", None),
    ];
    for (lower, upper, expected) in cases {
        let found = snapshot.floor(&key(lower), &key(upper)).expect("floor");
        let expected = expected.map(key);
        assert_eq!(found.map(|(key, _)| key.into_owned()), expected, "{lower} to {upper}");
    }
    let (_, value) = snapshot.floor(&key(""), &key("cc")).expect("floor").expect("record");
    assert_eq!(*value, *b"new");
}

fn range_deletes(backend: &dyn Backend) {
    mixed(backend);
    let delete_range = |from: &str, to: &str| Change::DeleteRange(key(from).into(), key(to).into());
    let all = (Bound::Included(&key("")[..]), Bound::Unbounded);
    commit(backend, vec![delete_range("ab", "c")]);
    assert_eq!(texts(&*now(backend), all, Direction::Forward), ["a", "c", "e"]);
    commit(backend, vec![put(&key("m"), b"1"), delete_range("b", "z"), put(&key("n"), b"2")]);
    assert_eq!(texts(&*now(backend), all, Direction::Backward), ["n", "a"]);
    commit(backend, vec![delete_range("z", "a"), delete_range("a", "a")]);
    let revision = commit(backend, vec![delete_range("o", "p")]);
    assert_eq!(texts(&*now(backend), all, Direction::Forward), ["a", "n"]);
    backend.sync(revision).expect("sync");
    assert_eq!(texts(&*now(backend), all, Direction::Forward), ["a", "n"]);
}

fn later_changes_win(backend: &dyn Backend) {
    let (a, b) = (key("a"), key("b"));
    commit(backend, vec![put(&a, b"1"), put(&a, b"2"), put(&b, b"1"), delete(&b)]);
    assert_eq!(get(&*now(backend), &a).as_deref(), Some(&b"2"[..]));
    assert_eq!(get(&*now(backend), &b), None);
    let revision = commit(backend, vec![delete(&a), put(&a, b"3")]);
    backend.sync(revision).expect("sync");
    assert_eq!(get(&*now(backend), &a).as_deref(), Some(&b"3"[..]));
}

fn values(backend: &dyn Backend) {
    let page_size = backend.capabilities().page_size;
    let lens = [0, 1, page_size - 1, page_size, page_size + 1, 65_536, 1 << 20];
    let value = |len: usize| -> Vec<u8> { (0..len).map(|i| (i * 31 + len) as u8).collect() };
    let name = |len: usize| key(&format!("{len:08}"));
    for sync_each in [true, false] {
        for len in lens {
            let revision = commit(backend, vec![put(&name(len), &value(len))]);
            if sync_each {
                backend.sync(revision).expect("sync");
            }
        }
        let snapshot = now(backend);
        for len in lens {
            assert!(get(&*snapshot, &name(len)) == Some(value(len)), "value of {len} bytes");
        }
    }
}

fn longest_keys(backend: &dyn Backend) {
    let max = backend.capabilities().key_len_max;
    let mut longest = key("");
    longest.resize(max, b'k');
    let mut greatest = longest.clone();
    *greatest.last_mut().expect("a byte") = b'l';
    let revision = commit(backend, vec![put(&longest, b"1"), put(&greatest, b"2")]);
    for _ in 0..2 {
        let snapshot = now(backend);
        assert_eq!(get(&*snapshot, &longest).as_deref(), Some(&b"1"[..]));
        let (found, _) = snapshot.floor(&key(""), &greatest).expect("floor").expect("record");
        assert_eq!(*found, *greatest);
        let mut longer = longest.clone();
        longer.push(b'a');
        assert_eq!(get(&*snapshot, &longer), None, "a key that cannot be stored is not there");
        let bounds = (Bound::Excluded(&longer[..]), Bound::Unbounded);
        assert_eq!(range(&*snapshot, bounds, Direction::Forward).len(), 1);
        backend.sync(revision).expect("sync");
    }
}

fn refusals(backend: &dyn Backend) {
    let capabilities = backend.capabilities().clone();
    let refused = |changes: Vec<Change>| {
        let error = backend.commit(batch_after(0, &[1], changes)).expect_err("refused");
        assert_eq!(now(backend).revision().expect("revision"), 0, "a refused batch left a trace");
        error.kind()
    };
    let too_long = vec![b'k'; capabilities.key_len_max + 1];
    assert_eq!(refused(vec![put(b"", b"value")]), ErrorKind::InvalidInput);
    assert_eq!(refused(vec![put(&key("a"), b"1"), delete(b"")]), ErrorKind::InvalidInput);
    assert_eq!(refused(vec![put(&key("a"), b"1"), put(&too_long, b"1")]), ErrorKind::LimitExceeded);
    if capabilities.commit_len_max <= 64 << 20 {
        let too_big = vec![0; capabilities.commit_len_max];
        assert_eq!(refused(vec![put(&key("a"), &too_big)]), ErrorKind::LimitExceeded);
    }
    assert_eq!(get(&*now(backend), &key("a")), None);
}

/// Batches up to the longest one: ascending, over staged records, overwriting, with range deletes.
fn big_batches(backend: &dyn Backend, len_max: usize) {
    let len_max = backend.capabilities().commit_len_max.min(len_max);
    let name = |i: usize| key(&format!("{i:06}"));
    let count = (len_max - 4_096) / (4_000 + name(0).len());
    let puts = |value: u8| (0..count).map(|i| put(&name(i), &[value; 4_000])).collect::<Vec<_>>();
    commit(backend, vec![put(&name(1), b"staged"), put(&name(count + 1), b"staged")]);
    let before = now(backend);
    let mut changes = vec![Change::DeleteRange(name(count).into(), key("~").into())];
    changes.extend(puts(1));
    commit(backend, changes);
    let after = now(backend);
    let revision = commit(backend, puts(2).into_iter().rev().collect());
    backend.sync(revision).expect("sync");
    let all = (Bound::Included(&key("")[..]), Bound::Unbounded);
    assert_eq!(range(&*before, all, Direction::Forward).len(), 2);
    assert_eq!(range(&*after, all, Direction::Forward).len(), count);
    assert_eq!(get(&*after, &name(1)), Some(vec![1; 4_000]));
    let newest = range(&*now(backend), all, Direction::Backward);
    assert_eq!(newest.len(), count);
    assert!(newest.iter().all(|(_, value)| *value == [2; 4_000]));
}

fn snapshot_isolation(backend: &dyn Backend) {
    let mut pinned = vec![now(backend)];
    for i in 1..=50_u64 {
        let revision = commit(
            backend,
            vec![put(&key("same"), &i.to_be_bytes()), put(&key(&format!("{i:03}")), b"own")],
        );
        if i % 7 == 0 {
            backend.sync(revision).expect("sync");
        }
        pinned.push(now(backend));
    }
    commit(backend, vec![Change::DeleteRange(key("").into(), key("~").into())]);
    for (i, snapshot) in pinned.iter().enumerate() {
        assert_eq!(snapshot.revision().expect("revision"), i as u64);
        let same = get(&**snapshot, &key("same"));
        assert_eq!(same, (i > 0).then(|| (i as u64).to_be_bytes().to_vec()));
        let all = (Bound::Included(&key("")[..]), Bound::Unbounded);
        let expected = if i == 0 { 0 } else { i + 1 };
        assert_eq!(range(&**snapshot, all, Direction::Forward).len(), expected);
    }
}

fn snapshots_are_send(backend: &dyn Backend) {
    commit(backend, vec![put(&key("a"), b"1")]);
    let (first, second) = (now(backend), now(backend));
    let value = thread::spawn(move || get(&*first, &key("a"))).join().expect("thread");
    assert_eq!(value, get(&*second, &key("a")));
}

/// Two snapshots with the same version hold the same, whatever was committed between them.
fn versions(backend: &dyn Backend) {
    let state = |snapshot: &dyn Snapshot| {
        range(snapshot, (Bound::Unbounded, Bound::Unbounded), Direction::Forward)
    };
    let mut seen = BTreeMap::new();
    for i in 0..30_u64 {
        match i % 3 {
            0 => drop(commit(backend, vec![put(&key("a"), &i.to_be_bytes())])),
            1 => maintain(backend, vec![put(&key("b"), &i.to_be_bytes())]),
            _ => backend.sync(now(backend).revision().expect("revision")).expect("sync"),
        }
        for _ in 0..2 {
            let snapshot = now(backend);
            if let Some(version) = snapshot.version() {
                let state = state(&*snapshot);
                assert_eq!(*seen.entry(version).or_insert_with(|| state.clone()), state);
            }
        }
    }
}

fn conflicts(backend: &dyn Backend) {
    let first = batch_after(0, &[1], vec![put(&key("a"), b"1")]);
    let same = first.clone();
    assert_eq!(backend.commit(first).expect("commit"), Outcome::Committed(1));
    assert_eq!(backend.commit(same).expect("commit"), Outcome::Conflict);
    let early = batch_after(3, &[1], vec![put(&key("a"), b"4")]);
    assert_eq!(backend.commit(early).expect("commit"), Outcome::Conflict, "a revision is skipped");
    let mut stale = batch_after(1, &[1], vec![put(&key("a"), b"2")]);
    stale.bases = vec![(1, 0)];
    assert_eq!(backend.commit(stale).expect("commit"), Outcome::Conflict, "tree 1 is at 1");
    let snapshot = now(backend);
    assert_eq!(snapshot.revision().expect("revision"), 1);
    assert_eq!(get(&*snapshot, &key("a")).as_deref(), Some(&b"1"[..]));
    let next = batch_after(1, &[1], vec![put(&key("a"), b"2")]);
    assert_eq!(backend.commit(next).expect("commit"), Outcome::Committed(2));
}

/// A base that is older than the store's revision conflicts only if its own tree changed since.
fn tree_conflicts(backend: &dyn Backend) {
    if !backend.capabilities().multi_tree_commit {
        println!("skipped: one sequence for all trees needs `multi_tree_commit`");
        return;
    }
    let commit = |bases: &[(TreeId, Revision)], base, trees: &[TreeId]| {
        let mut batch = batch_after(base, trees, vec![put(&key("a"), b"1")]);
        batch.bases = bases.to_vec();
        backend.commit(batch).expect("commit")
    };
    assert_eq!(commit(&[(1, 0)], 0, &[1]), Outcome::Committed(1));
    assert_eq!(commit(&[(2, 0)], 1, &[2]), Outcome::Committed(2), "tree 2 is unchanged since 0");
    assert_eq!(commit(&[(2, 1), (1, 1)], 2, &[1]), Outcome::Conflict, "tree 2 changed at 2");
    assert_eq!(commit(&[(2, 2), (1, 0)], 2, &[2]), Outcome::Conflict, "tree 1 changed at 1");
    assert_eq!(commit(&[(2, 2), (1, 1)], 2, &[2]), Outcome::Committed(3));
}

fn maintenance(backend: &dyn Backend) {
    let revision = commit(backend, vec![put(&key("a"), b"1"), put(&key("b"), b"1")]);
    let before = now(backend);
    maintain(backend, vec![delete(&key("a")), put(&key("c"), b"moved")]);
    backend.sync(revision).expect("sync");
    maintain(backend, vec![Change::DeleteRange(key("b").into(), key("c").into())]);
    let big: Vec<_> = (0..500).map(|i| put(&key(&format!("m{i:04}")), &[7; 4_000])).collect();
    maintain(backend, big);
    let after = now(backend);
    assert_eq!(after.revision().expect("revision"), revision);
    assert_eq!(get(&*before, &key("a")).as_deref(), Some(&b"1"[..]));
    assert_eq!((get(&*after, &key("a")), get(&*after, &key("b"))), (None, None));
    assert_eq!(get(&*after, &key("c")).as_deref(), Some(&b"moved"[..]));
    assert_eq!(get(&*after, &key("m0499")), Some(vec![7; 4_000]));
    let head = put(&layout::head_key(0), &(revision + 1).to_be_bytes());
    let moves = Batch { revision, changes: vec![head], ..Batch::default() };
    let refused = backend.commit(moves).expect_err("maintenance must not change a revision");
    assert_eq!(refused.kind(), ErrorKind::InvalidInput);
    assert_eq!(commit(backend, vec![put(&key("d"), b"1")]), revision + 1);
}

fn wait(backend: &dyn Backend) {
    assert_eq!(backend.wait(0, Duration::ZERO).expect("wait"), 0);
    let revision = commit(backend, vec![put(&key("a"), b"1")]);
    assert_eq!(backend.wait(0, Duration::from_secs(60)).expect("wait"), revision);
    thread::scope(|scope| {
        let waiting = scope.spawn(|| backend.wait(revision, Duration::from_secs(60)));
        thread::sleep(Duration::from_millis(5));
        commit(backend, vec![put(&key("a"), b"2")]);
        assert_eq!(waiting.join().expect("thread").expect("wait"), revision + 1);
    });
    thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            let began = Instant::now();
            let revision = backend.wait(revision + 1, Duration::from_millis(60)).expect("wait");
            (revision, began.elapsed() >= Duration::from_millis(60))
        });
        maintain(backend, vec![put(&key("b"), b"1")]);
        let answer = waiting.join().expect("thread");
        assert_eq!(answer, (revision + 1, true), "maintenance wakes nobody");
    });
}

/// Four threads that read, add one and commit under the guard never conflict and lose nothing.
fn writers_take_turns(backend: &dyn Backend) {
    const EACH: u64 = 100;
    thread::scope(|scope| {
        for thread in 0..4_u64 {
            scope.spawn(move || {
                for i in 0..EACH {
                    let _guard = backend.write_guard(0).expect("write guard");
                    let snapshot = now(backend);
                    let base = snapshot.revision().expect("revision");
                    let sum = get(&*snapshot, &key("sum"))
                        .map_or(0, |sum| u64::from_be_bytes(sum.try_into().expect("eight bytes")));
                    let changes = vec![put(&key("sum"), &(sum + 1).to_be_bytes())];
                    let outcome = backend.commit(batch_after(base, &[1], changes)).expect("commit");
                    assert_eq!(outcome, Outcome::Committed(base + 1));
                    if (i + thread) % 10 == 0 {
                        drop(_guard);
                        backend.sync(base + 1).expect("sync");
                    }
                }
            });
        }
    });
    let sum = get(&*now(backend), &key("sum"));
    assert_eq!(sum, Some((4 * EACH).to_be_bytes().to_vec()));
}

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// Random batches against a map, with snapshots that are checked later.
fn random_batches(backend: &dyn Backend, batches: usize) {
    let seed = std::env::var("SPINNEY_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or_else(|| fastrand::u64(..));
    println!("contract: random batches: SPINNEY_SEED={seed}");
    let mut random = Rng::with_seed(seed);
    let mut model = Model::new();
    let mut pinned: Vec<(Box<dyn Snapshot>, Model)> = Vec::new();
    for i in 0..batches {
        let changes = random_changes(&mut random, i % 2_500 == 2_499);
        changes.iter().for_each(|change| apply(&mut model, change));
        if random.u8(..10) == 0 {
            maintain(backend, changes);
        } else {
            let revision = commit(backend, changes);
            if random.u8(..100) == 0 {
                backend.sync(revision).expect("sync");
            }
        }
        let snapshot = now(backend);
        for _ in 0..3 {
            let key = random_key(&mut random);
            assert_eq!(get(&*snapshot, &key), model.get(&key).cloned(), "seed {seed}, batch {i}");
        }
        if i % 20 == 0 {
            check_ranges(&*snapshot, &model, &mut random, seed);
        }
        match random.u8(..100) {
            0..5 if pinned.len() < 8 => pinned.push((snapshot, model.clone())),
            5..10 if !pinned.is_empty() => {
                let (snapshot, model) = pinned.swap_remove(random.usize(..pinned.len()));
                check_ranges(&*snapshot, &model, &mut random, seed);
                check_all(&*snapshot, &model, seed);
            }
            _ => {}
        }
    }
    check_all(&*now(backend), &model, seed);
}

/// Keys of one to three of eight letters, so that they meet often; some long.
fn random_key(random: &mut Rng) -> Vec<u8> {
    let mut text: String = (0..random.usize(1..4)).map(|_| random.char('a'..='h')).collect();
    if random.u8(..20) == 0 {
        text.push_str(&"~".repeat(300));
    }
    key(&text)
}

fn random_changes(random: &mut Rng, is_big: bool) -> Vec<Change> {
    let count = if is_big { 400 } else { random.usize(1..8) };
    let change = |random: &mut Rng| match random.u8(..20) {
        0..13 => {
            let len = if is_big { 4_000 } else { random.usize(..40) };
            put(&random_key(random), &vec![random.u8(..); len])
        }
        13..19 => delete(&random_key(random)),
        _ => {
            let (from, to) = (random_key(random), random_key(random));
            Change::DeleteRange(from.into(), to.into())
        }
    };
    (0..count).map(|_| change(random)).collect()
}

fn apply(model: &mut Model, change: &Change) {
    match change {
        Change::Put(key, value) => drop(model.insert(key.to_vec(), value.to_vec())),
        Change::Delete(key) => drop(model.remove(&**key)),
        Change::DeleteRange(from, to) => model.retain(|key, _| **key < **from || **key >= **to),
    }
}

fn check_ranges(snapshot: &dyn Snapshot, model: &Model, random: &mut Rng, seed: u64) {
    for _ in 0..4 {
        let (from, to) = (random_key(random), random_key(random));
        let bound = |random: &mut Rng, key| match random.bool() {
            true => Bound::Included(key),
            false => Bound::Excluded(key),
        };
        let bounds = (bound(random, &from[..]), bound(random, &to[..]));
        let mut expected: Pairs = match spinney_core::backend::is_empty_range(bounds) {
            true => Vec::new(),
            false => model.range::<[u8], _>(bounds).map(|(k, v)| (k.clone(), v.clone())).collect(),
        };
        let found = range(snapshot, bounds, Direction::Forward);
        assert!(found == expected, "seed {seed}: {bounds:?}");
        expected.reverse();
        let found = range(snapshot, bounds, Direction::Backward);
        assert!(found == expected, "seed {seed}: {bounds:?}, backward");
        let found = snapshot.floor(&from, &to).expect("floor");
        let within = (from <= to).then(|| model.range(from.clone()..=to.clone()).next_back());
        let expected = within.flatten();
        let found = found.as_ref().map(|(key, value)| (&**key, &**value));
        assert!(found == expected.map(|(k, v)| (&**k, &**v)), "seed {seed}: floor");
    }
}

fn check_all(snapshot: &dyn Snapshot, model: &Model, seed: u64) {
    let all = (Bound::Included(&key("")[..]), Bound::Unbounded);
    let expected: Pairs = model.iter().map(|(k, v)| (k.clone(), v.clone())).collect();
    assert!(range(snapshot, all, Direction::Forward) == expected, "seed {seed}: all records");
}
