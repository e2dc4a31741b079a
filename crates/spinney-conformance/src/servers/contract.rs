//! What every adapter of a server must do with requests, below the cache and the tree.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use fastrand::Rng;
use spinney::network::server::{Answer, Failure, Limit, Server, State, Stretch, Until, View};
use spinney_core::backend::{Batch, Bounds, Change, Direction, RecordKey, is_empty_range};
use spinney_core::layout;

/// A lease that no case outlives.
const LONG_LEASE: Duration = Duration::from_secs(300);

const ALL: Bounds<'static> = (Bound::Unbounded, Bound::Unbounded);
const NO_LIMIT: Limit = Limit { records: usize::MAX >> 12, bytes: usize::MAX >> 12 };

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// What the contract is run with.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    /// How long the leases of the clients are; the case about leases that end waits for it.
    pub leased: Duration,
    /// Batches of the comparison with a model.
    pub random_batches: usize,
}

/// Runs every case, each on two clients of an empty store of its own, with leases of the time asked for.
///
/// # Panics
/// When the adapter breaks the contract.
pub fn server_contract(factory: &dyn Fn(Duration) -> [Box<dyn Server>; 2], terms: Terms) {
    println!("server: states are made one by one, and only once for each commit id");
    idempotent_commits(&factory(LONG_LEASE));
    println!("server: what changed since a state is told");
    changes_are_told(&factory(LONG_LEASE));
    println!("server: ranges stop at their limits");
    limits(&factory(LONG_LEASE));
    println!("server: a lease that ended is told");
    leases_end(&factory(terms.leased), terms.leased);
    println!("server: the lock of writers");
    locks(&factory(LONG_LEASE));
    println!("server: waiting");
    waiting(factory(LONG_LEASE));
    println!("server: random batches, read at older states");
    random_batches(&factory(LONG_LEASE), terms.random_batches);
}

fn put(key: &[u8], value: &[u8]) -> Change {
    Change::Put(key.into(), value.into())
}

fn delete(key: &[u8]) -> Change {
    Change::Delete(key.into())
}

fn batch(changes: Vec<Change>) -> Batch {
    Batch { commit_id: fastrand::u128(..), changes, ..Batch::default() }
}

/// The answer to a request, which may be sent again when its connection is lost: a signal is enough for that.
fn answered<T>(ask: impl Fn() -> Result<T, Failure>) -> T {
    let mut tries = 0;
    loop {
        match ask() {
            Err(Failure::Lost(_) | Failure::Undone(_)) if tries < 3 => tries += 1,
            answer => return answer.expect("an answer"),
        }
    }
}

fn newest(server: &dyn Server) -> State {
    answered(|| server.newest(0, None, &[])).state
}

fn commit(server: &dyn Server, changes: Vec<Change>) -> State {
    let (base, batch) = (newest(server), batch(changes));
    match answered(|| server.commit(Some(base), &batch, &[])) {
        Answer::Committed(state) => state,
        other => panic!("{other:?}"),
    }
}

fn get(server: &dyn Server, view: View, key: &[u8]) -> Option<Arc<[u8]>> {
    answered(|| server.floor(view, key, key)).record.map(|(_, value)| value)
}

fn now(server: &dyn Server) -> View {
    View { state: newest(server), lease: None }
}

fn idempotent_commits(servers: &[Box<dyn Server>; 2]) {
    let [first, second] = [&*servers[0], &*servers[1]];
    assert_eq!(first.store_id(), second.store_id());
    let base = newest(first);
    assert_eq!(first.newest(base, None, &[]).expect("newest").changed, Some(Vec::new()));
    let head = layout::head_key(0);
    let one = batch(vec![put(b"a", b"1"), put(&head, b"head")]);
    let made = |answer: Answer| match answer {
        Answer::Committed(state) => state,
        other => panic!("{other:?}"),
    };
    let state = made(first.commit(Some(base), &one, &[]).expect("a commit"));
    assert_ne!(state, base);
    let newest_now = second.newest(base, None, &[]).expect("newest");
    assert_eq!((newest_now.state, newest_now.head.as_deref()), (state, Some(&b"head"[..])));
    // The same again, by the same and another connection, changes nothing.
    assert_eq!(made(first.commit(Some(base), &one, &[]).expect("again")), state);
    assert_eq!(made(second.commit(Some(base), &one, &[]).expect("again")), state);
    assert_eq!(newest(first), state);
    let late = batch(vec![put(b"a", b"2")]);
    assert!(matches!(second.commit(Some(base), &late, &[]).expect("late"), Answer::Moved));
    assert_eq!(get(second, now(second), b"a").as_deref(), Some(&b"1"[..]));
    // Maintenance is on no state, and as unique.
    let upkeep = batch(vec![put(b"m", b"1")]);
    let kept = made(first.commit(None, &upkeep, &[]).expect("maintenance"));
    commit(second, vec![put(b"m", b"2")]);
    assert_eq!(made(first.commit(None, &upkeep, &[]).expect("again")), kept);
    assert_eq!(get(first, now(first), b"m").as_deref(), Some(&b"2"[..]));
    assert_eq!(made(first.commit(Some(base), &one, &[]).expect("much later")), state);
}

fn changes_are_told(servers: &[Box<dyn Server>; 2]) {
    let [first, second] = [&*servers[0], &*servers[1]];
    let since = commit(first, vec![put(b"a", b"1"), put(b"b", b"1"), put(b"c", b"1")]);
    commit(second, vec![put(b"a", b"2"), delete(b"b")]);
    second.commit(None, &batch(vec![put(b"d", b"2")]), &[]).expect("maintenance");
    commit(second, vec![Change::DeleteRange((*b"c").into(), (*b"d").into())]);
    let told = first.newest(since, None, &[]).expect("newest");
    if let Some(mut changed) = told.changed {
        changed.sort();
        changed.dedup();
        let expected: [&[u8]; 4] = [b"a", b"b", b"c", b"d"];
        assert_eq!(changed, expected.map(RecordKey::from));
    }
    assert_eq!(first.newest(told.state, None, &[]).expect("newest").changed, Some(Vec::new()));
    assert_eq!(first.newest(told.state + 7, None, &[]).expect("newest").changed, None);
    // Of many thousands, all are told or none.
    let key = |i: u32| i.to_be_bytes();
    commit(first, (0..20_000).map(|i| put(&key(i), b"")).collect());
    if let Some(changed) = first.newest(told.state, None, &[]).expect("newest").changed {
        assert_eq!(changed.len(), 20_000);
    }
}

fn limits(servers: &[Box<dyn Server>; 2]) {
    let server = &*servers[0];
    let name = |i: usize| format!("{i:04}").into_bytes();
    commit(server, (0..500).map(|i| put(&name(i), &[7; 100])).collect());
    let view = now(server);
    let read = |records, bytes, direction| -> Stretch {
        server.range(view, ALL, direction, Limit { records, bytes }).expect("a range")
    };
    for direction in [Direction::Forward, Direction::Backward] {
        assert_eq!(read(1, usize::MAX >> 12, direction).records.len(), 1);
        assert_eq!(read(200, usize::MAX >> 12, direction).records.len(), 200);
        assert_eq!(read(200, 1, direction).records.len(), 1, "the first one always is");
        let some = read(500, 1_000, direction);
        assert!(some.more && (8..=11).contains(&some.records.len()), "{}", some.records.len());
        assert!(!read(500, usize::MAX >> 12, direction).more);
        assert!(read(499, usize::MAX >> 12, direction).more);
    }
    let floor = server.floor(view, b"", b"0007x").expect("floor");
    assert_eq!(floor.record.expect("a record").0, RecordKey::from(&name(7)[..]));
    if let Until::Key(until) = &floor.until {
        assert!(until[..] > b"0007x"[..] && until[..] <= name(8)[..], "{until:?}");
    } else {
        panic!("there are records behind it");
    }
    let floor = server.floor(view, b"0008", b"0007x").expect("floor");
    assert!(floor.record.is_none());
}

fn leases_end(servers: &[Box<dyn Server>; 2], leased: Duration) {
    let [first, second] = [&*servers[0], &*servers[1]];
    commit(first, vec![put(b"a", b"1"), put(b"b", b"1")]);
    let lease = |id| {
        let state = first.newest(0, Some(id), &[]).expect("newest").state;
        View { state, lease: Some(id) }
    };
    let (kept, left) = (lease(1), lease(2));
    let without = View { lease: None, ..kept };
    assert_eq!(get(first, without, b"a").as_deref(), Some(&b"1"[..]), "it is the newest");
    commit(second, vec![put(b"a", b"2"), delete(b"b")]);
    let is_expired = |view| matches!(first.floor(view, b"a", b"a"), Err(Failure::Expired));
    assert!(is_expired(without), "there is a newer one");
    // One is read under all the time, the other is not.
    let since = Instant::now();
    while since.elapsed() < leased * 2 {
        assert_eq!(get(first, kept, b"a").as_deref(), Some(&b"1"[..]));
        assert_eq!(get(first, kept, b"b").as_deref(), Some(&b"1"[..]));
        commit(second, vec![put(b"a", b"3")]);
        thread::sleep(leased / 20);
    }
    assert!(is_expired(left));
    assert_eq!(get(second, kept, b"b").as_deref(), Some(&b"1"[..]), "by whatever connection");
    first.newest(0, None, &[1]).expect("released");
    let late = lease(3);
    let base = Some(late.state);
    let answer = first.commit(base, &batch(vec![put(b"a", b"4"), put(b"b", b"4")]), &[3]);
    assert!(matches!(answer, Ok(Answer::Committed(_))), "{answer:?}");
    // A server that keeps each state for a time may still have them.
    if !is_expired(kept) {
        assert_eq!(get(first, kept, b"b").as_deref(), Some(&b"1"[..]));
    }
    if !is_expired(late) {
        assert_eq!(get(first, late, b"a").as_deref(), Some(&b"3"[..]));
    }
}

fn locks(servers: &[Box<dyn Server>; 2]) {
    let [first, second] = [&*servers[0], &*servers[1]];
    let long = Duration::from_secs(60);
    assert!(first.lock(long).expect("lock"));
    assert!(first.lock(long).expect("lock"), "it is its own");
    assert!(!second.lock(long).expect("lock"));
    let base = newest(second);
    let change = batch(vec![put(b"a", b"1")]);
    assert!(matches!(second.commit(Some(base), &change, &[]).expect("commit"), Answer::Locked));
    assert!(matches!(second.commit(None, &change, &[]).expect("commit"), Answer::Committed(_)));
    second.unlock().expect("unlock");
    assert!(!second.lock(long).expect("lock"), "it was not its own");
    commit(first, vec![put(b"a", b"2")]);
    first.unlock().expect("unlock");
    commit(second, vec![put(b"a", b"3")]);
    assert!(first.lock(Duration::from_millis(50)).expect("lock"));
    thread::sleep(Duration::from_millis(80));
    commit(second, vec![put(b"a", b"4")]);
}

fn waiting(servers: [Box<dyn Server>; 2]) {
    let [first, second] = servers;
    let wait = Duration::from_secs(20);
    thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            for _ in 0..20 {
                let known = newest(&*first);
                if known >= 20 {
                    break;
                }
                let since = Instant::now();
                while newest(&*first) == known {
                    first.await_newer(known, wait).expect("wait");
                    assert!(since.elapsed() < wait, "nobody told of a commit");
                }
            }
        });
        while !waiter.is_finished() {
            commit(&*second, vec![put(b"a", b"1")]);
            thread::sleep(Duration::from_millis(10));
        }
    });
    let (known, since) = (newest(&*first), Instant::now());
    while since.elapsed() < Duration::from_millis(300) {
        first.await_newer(known, Duration::from_millis(300)).expect("wait");
    }
    assert!(since.elapsed() < wait / 2, "the time was up long ago");
}

/// Random batches against a map, with older states that are leased and read.
fn random_batches(servers: &[Box<dyn Server>; 2], count: usize) {
    let seed = std::env::var("SPINNEY_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or_else(|| fastrand::u64(..));
    println!("server: SPINNEY_SEED={seed}");
    let mut random = Rng::with_seed(seed);
    let (mut model, mut state) = (Model::new(), newest(&*servers[0]));
    let mut leased: Vec<(View, Model)> = Vec::new();
    let mut released = Vec::new();
    for i in 0..count {
        let server = &*servers[random.usize(..2)];
        let changes = random_changes(&mut random);
        changes.iter().for_each(|change| apply(&mut model, change));
        let base = (random.u8(..5) > 0).then_some(state);
        let batch = batch(changes);
        state = match answered(|| server.commit(base, &batch, &[])) {
            Answer::Committed(made) => made,
            other => panic!("seed {seed}, batch {i}: {other:?}"),
        };
        let view = View { state, lease: None };
        check(server, view, &model, &mut random, seed);
        match random.u8(..20) {
            0..3 if leased.len() < 12 => {
                let id = random.u64(..);
                let found = server.newest(state, Some(id), &released).expect("newest");
                released.clear();
                assert_eq!((found.state, found.changed), (state, Some(Vec::new())));
                leased.push((View { state, lease: Some(id) }, model.clone()));
            }
            3..6 if !leased.is_empty() => {
                let (view, model) = leased.swap_remove(random.usize(..leased.len()));
                check_all(server, view, &model, seed);
                released.extend(view.lease);
            }
            _ => {}
        }
        if let Some((view, model)) = leased.get(random.usize(..leased.len().max(1))) {
            check(server, *view, model, &mut random, seed);
        }
    }
    leased.iter().for_each(|(view, model)| check_all(&*servers[0], *view, model, seed));
    check_all(&*servers[1], View { state, lease: None }, &model, seed);
}

/// Keys of one to three of six letters, so that they meet often; some long, some that begin as others.
fn random_key(random: &mut Rng) -> Vec<u8> {
    let mut key: Vec<u8> = (0..random.usize(1..4)).map(|_| random.u8(b'a'..=b'f')).collect();
    match random.u8(..20) {
        0 => key.extend([0xff; 300]),
        1 => key.extend([0; 9]),
        _ => {}
    }
    key
}

fn random_changes(random: &mut Rng) -> Vec<Change> {
    let change = |random: &mut Rng| match random.u8(..20) {
        0..13 => {
            let len = random.usize(..40);
            put(&random_key(random), &vec![random.u8(..); len])
        }
        13..19 => delete(&random_key(random)),
        _ => {
            let (from, to) = (random_key(random), random_key(random));
            Change::DeleteRange(from.into(), to.into())
        }
    };
    (0..random.usize(1..8)).map(|_| change(random)).collect()
}

fn apply(model: &mut Model, change: &Change) {
    match change {
        Change::Put(key, value) => drop(model.insert(key.to_vec(), value.to_vec())),
        Change::Delete(key) => drop(model.remove(&**key)),
        Change::DeleteRange(from, to) => model.retain(|key, _| **key < **from || **key >= **to),
    }
}

/// A key, a floor and a range of a state.
fn check(server: &dyn Server, view: View, model: &Model, random: &mut Rng, seed: u64) {
    let (from, to) = (random_key(random), random_key(random));
    let said = |what: &str| format!("seed {seed}: {what} {from:?} {to:?} in {view:?}");
    assert_eq!(
        get(server, view, &from).as_deref(),
        model.get(&from).map(|v| &v[..]),
        "{}",
        said("get")
    );
    let found = server.floor(view, &from, &to).expect("floor");
    let within = (from <= to).then(|| model.range(from.clone()..=to.clone()).next_back()).flatten();
    let record = found.record.as_ref().map(|(key, value)| (&**key, &**value));
    assert_eq!(record, within.map(|(k, v)| (&**k, &**v)), "{}", said("floor"));
    let next = model.range::<Vec<u8>, _>((Bound::Excluded(&to), Bound::Unbounded)).next();
    match (&found.until, next) {
        (Until::End, next) => assert_eq!(next, None, "{}", said("until the end")),
        (Until::Key(until), next) => {
            assert!(until[..] > to[..], "{}", said("until"));
            assert!(next.is_none_or(|(key, _)| until[..] <= key[..]), "{}", said("until"));
        }
    }
    let bound = |random: &mut Rng, key| match random.bool() {
        true => Bound::Included(key),
        false => Bound::Excluded(key),
    };
    let bounds = (bound(random, &from[..]), bound(random, &to[..]));
    let mut expected: Vec<(&[u8], &[u8])> = match is_empty_range(bounds) {
        true => Vec::new(),
        false => model.range::<[u8], _>(bounds).map(|(k, v)| (&k[..], &v[..])).collect(),
    };
    let direction = match random.bool() {
        true => Direction::Forward,
        false => Direction::Backward,
    };
    if direction == Direction::Backward {
        expected.reverse();
    }
    let limit = Limit { records: random.usize(1..6), bytes: random.usize(1..200) };
    let found = server.range(view, bounds, direction, limit).expect("a range");
    let records: Vec<_> = found.records.iter().map(|(k, v)| (&k[..], &v[..])).collect();
    assert!(expected.starts_with(&records), "{} {bounds:?}", said("range"));
    assert!(!records.is_empty() || !found.more, "{} {bounds:?}", said("range"));
    assert!(found.more || records.len() == expected.len(), "{} {bounds:?}", said("all of range"));
}

fn check_all(server: &dyn Server, view: View, model: &Model, seed: u64) {
    for direction in [Direction::Forward, Direction::Backward] {
        let found = server.range(view, ALL, direction, NO_LIMIT).expect("a range");
        let mut records: Vec<_> =
            found.records.into_iter().map(|(k, v)| (k.to_vec(), v.to_vec())).collect();
        if direction == Direction::Backward {
            records.reverse();
        }
        let expected: Vec<_> = model.iter().map(|(k, v)| (k.clone(), v.clone())).collect();
        assert!(records == expected && !found.more, "seed {seed}: all of {view:?}");
    }
}
