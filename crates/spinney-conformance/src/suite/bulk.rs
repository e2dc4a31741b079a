//! Many of one kind: long keys that differ at their end, and inserts at one spot.

use spinney::Value;

use super::Case;
use crate::subject::Subject;

pub(super) const CASES: &[Case] = &[
    ("keys of 60 KiB that differ at the end", |s| long_keys(s, 150)),
    ("1 000 inserts at one spot, a commit each", |s| one_spot(s, 1_000, 1)),
    ("20 000 inserts at one spot", |s| one_spot(s, 20_000, 500)),
    ("10 000 sets in one transaction", many_sets),
];

/// Sets `count` keys of 60 KiB ascending, descending and shuffled, and removes them again.
///
/// # Panics
/// When one is not found where it belongs.
pub fn long_keys(s: &Subject, count: u32) {
    let stem = "k".repeat(60 * 1024);
    let key = |n: u32| format!("/m/{stem}{n:05}");
    let ascending: Vec<u32> = (0..count).collect();
    let descending: Vec<u32> = (0..count).rev().collect();
    let mut shuffled = ascending.clone();
    fastrand::Rng::with_seed(17).shuffle(&mut shuffled);
    for order in [ascending, descending, shuffled] {
        for chunk in order.chunks(50) {
            s.store
                .write(|tx| chunk.iter().try_for_each(|&n| tx.set(&key(n), &n.to_string().into())))
                .expect("sets");
        }
        assert_eq!(s.count("/m"), Some(u64::from(count)));
        let snapshot = s.store.read().expect("reads");
        for n in 0..count {
            assert_eq!(snapshot.get(&key(n)).expect("reads"), Some(n.to_string().into()), "{n}");
        }
        assert_eq!(snapshot.get(&key(count)).expect("reads"), None);
        let members = snapshot.list("/m", Some(&key(count / 2)[3..]), None).expect("lists");
        assert_eq!(members.expect("a map").len() as u32, count - count / 2);
        drop(snapshot);
        s.check();
        for chunk in order.chunks(60) {
            s.store
                .write(|tx| {
                    chunk.iter().try_for_each(|&n| tx.remove(&key(n)).map(|was| assert!(was)))
                })
                .expect("removes");
        }
        assert_eq!(s.count("/m"), Some(0));
    }
}

fn one_spot(s: &Subject, count: u64, batch: u64) {
    let list: Vec<Value> = (0..1_000_u64).map(Value::from).collect();
    s.store.write(|tx| tx.set("/l", &list.clone().into())).expect("sets");
    for first in (0..count).step_by(batch as usize) {
        s.store
            .write(|tx| {
                (first..first + batch).try_for_each(|n| tx.insert("/l/500", &(10_000 + n).into()))
            })
            .expect("inserts");
    }
    let mut expected: Vec<Value> = (0..500_u64).map(Value::from).collect();
    expected.extend((0..count).rev().map(|n| Value::from(10_000 + n)));
    expected.extend((500..1_000_u64).map(Value::from));
    assert!(s.get("/l") == Some(expected.into()));
    assert_eq!(s.get("/l/500"), Some((10_000 + count - 1).into()));
    assert_eq!(s.get(&format!("/l/{}", 500 + count)), Some(500.into()));
    s.check();
    longest_key_is_short(s);
}

/// Ranks stay at 16 bytes behind the 13 of the key's beginning and the level of a count node.
fn longest_key_is_short(s: &Subject) {
    use spinney_core::backend::Direction;
    use std::ops::Bound;
    let snapshot = s.backend.snapshot().expect("a snapshot");
    let all = (Bound::Unbounded, Bound::Unbounded);
    let records = snapshot.range(all, Direction::Forward).expect("a range");
    let longest = records.map(|record| record.expect("a record").0.len()).max();
    assert!(longest <= Some(13 + 1 + 16), "{longest:?}");
}

fn many_sets(s: &Subject) {
    let mut order: Vec<u64> = (0..10_000).collect();
    fastrand::Rng::with_seed(23).shuffle(&mut order);
    s.store
        .write(|tx| {
            order.iter().try_for_each(|n| tx.set(&format!("/m/{}/k{n}", n % 7), &(*n).into()))
        })
        .expect("sets");
    assert!(order.iter().all(|n| s.get(&format!("/m/{}/k{n}", n % 7)) == Some((*n).into())));
    assert_eq!((s.revision(), s.count("/m")), (1, Some(7)));
}
