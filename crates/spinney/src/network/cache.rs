//! What a client knows of one state of a store on a server: stretches of keys with all their records.
//!
//! It must not know where a stretch comes from. What is not known is never answered, and what is known
//! stays right while commits of this client and of others come in ([`Cache::apply`],
//! [`Cache::forget`]).

use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use imbl::OrdMap;
use spinney_core::backend::{Bounds, Change, Direction, RecordKey};

use super::server::{Floor, Record, Stretch, Until};

/// Bytes that a known record takes besides its key and value, about.
const RECORD_OVERHEAD: usize = 160;

/// Of all stretches, a 16th part goes when there are too many.
const EVICTED_PART: usize = 16;

/// What the cache says to a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Known<T> {
    /// This is the answer.
    Is(T),
    /// Only the server knows.
    Not,
}

/// A key and what is known of the keys from it on: its record, and that no other comes before `until`.
struct Stretched {
    value: Option<Arc<[u8]>>,
    until: Until,
    /// Read since the cache was last searched for what to forget.
    is_used: AtomicBool,
}

/// Known stretches of one state.
///
/// # Complexity
/// O(1) to clone, O(log n) for a question or a change, O(n) for n records learnt.
#[derive(Clone, Default)]
pub struct Cache {
    stretches: OrdMap<RecordKey, Arc<Stretched>>,
    len_bytes: usize,
    /// Where the search for what to forget goes on.
    hand: RecordKey,
}

/// The first key behind this one.
pub fn successor(key: &[u8]) -> RecordKey {
    [key, &[0]].concat().into()
}

/// A range as the first key in it and the end behind it.
fn half_open(bounds: Bounds<'_>) -> (RecordKey, Until) {
    let from = match bounds.0 {
        Bound::Included(key) => key.into(),
        Bound::Excluded(key) => successor(key),
        Bound::Unbounded => RecordKey::default(),
    };
    let until = match bounds.1 {
        Bound::Included(key) => Until::Key(successor(key)),
        Bound::Excluded(key) => Until::Key(key.into()),
        Bound::Unbounded => Until::End,
    };
    (from, until)
}

impl Until {
    /// Whether all keys before `key` lie before this end.
    fn reaches(&self, key: &[u8]) -> bool {
        match self {
            Until::Key(end) => **end >= *key,
            Until::End => true,
        }
    }

    /// Whether a key lies before this end.
    fn is_behind(&self, key: &[u8]) -> bool {
        match self {
            Until::Key(end) => **end > *key,
            Until::End => true,
        }
    }

    /// Whether this end is not before the other one.
    fn covers(&self, other: &Until) -> bool {
        match other {
            Until::Key(key) => self.reaches(key),
            Until::End => *self == Until::End,
        }
    }
}

impl Stretched {
    fn new(value: Option<Arc<[u8]>>, until: Until) -> Arc<Stretched> {
        Arc::new(Stretched { value, until, is_used: AtomicBool::new(true) })
    }

    fn len_bytes(&self, key: &RecordKey) -> usize {
        RECORD_OVERHEAD + key.len() + self.value.as_ref().map_or(0, |value| value.len())
    }

    fn record(&self, key: &RecordKey) -> Option<Record> {
        self.is_used.store(true, Ordering::Relaxed);
        self.value.as_ref().map(|value| (key.clone(), Arc::clone(value)))
    }
}

impl Cache {
    /// Bytes that it takes, about.
    pub fn len_bytes(&self) -> usize {
        self.len_bytes
    }

    /// The last record whose key is at least `lower` and at most `key`.
    pub fn floor(&self, lower: &[u8], key: &[u8]) -> Known<Option<Record>> {
        self.last(lower, &successor(key))
    }

    /// The first record of a range in its direction.
    pub fn first(&self, bounds: Bounds<'_>, direction: Direction) -> Known<Option<Record>> {
        let (from, until) = half_open(bounds);
        match (direction, until) {
            (Direction::Forward, until) => self.next(from, &until),
            (Direction::Backward, Until::Key(end)) => self.last(&from, &end),
            (Direction::Backward, Until::End) => match self.stretches.get_max() {
                Some((key, last)) if last.until == Until::End => match last.record(key) {
                    Some(record) if *record.0 >= *from => Known::Is(Some(record)),
                    Some(_) => Known::Is(None),
                    None => self.last(&from, key),
                },
                _ => Known::Not,
            },
        }
    }

    /// The last record from `lower` on and before `end`.
    fn last(&self, lower: &[u8], end: &[u8]) -> Known<Option<Record>> {
        let mut end: RecordKey = end.into();
        loop {
            if *end <= *lower {
                return Known::Is(None);
            }
            let Some((key, stretch)) = self.before(&end) else { return Known::Not };
            if !stretch.until.reaches(&end) {
                return Known::Not;
            }
            if **key < *lower {
                return Known::Is(None);
            }
            if let Some(record) = stretch.record(key) {
                return Known::Is(Some(record));
            }
            end = key.clone();
        }
    }

    /// The first record from `from` on and before `until`.
    fn next(&self, mut from: RecordKey, until: &Until) -> Known<Option<Record>> {
        loop {
            if !until.is_behind(&from) {
                return Known::Is(None);
            }
            let Some((key, stretch)) = self.at_or_before(&from) else { return Known::Not };
            if *key == from
                && let Some(record) = stretch.record(key)
            {
                return Known::Is(Some(record));
            }
            match &stretch.until {
                end if end.covers(until) => return Known::Is(None),
                Until::Key(end) if **end > *from => from = end.clone(),
                _ => return Known::Not,
            }
        }
    }

    fn before(&self, end: &RecordKey) -> Option<(&RecordKey, &Arc<Stretched>)> {
        self.stretches.range(..end.clone()).next_back()
    }

    fn at_or_before(&self, key: &RecordKey) -> Option<(&RecordKey, &Arc<Stretched>)> {
        self.stretches.get_prev(key)
    }

    /// Takes in what the server said to [`super::server::Server::floor`].
    pub fn learn_floor(&mut self, lower: &[u8], floor: &Floor) {
        match &floor.record {
            Some((key, value)) => {
                self.know(key.clone(), vec![(key.clone(), Arc::clone(value))], &floor.until)
            }
            None => self.know(lower.into(), Vec::new(), &floor.until),
        }
    }

    /// Takes in what the server said to [`super::server::Server::range`].
    pub fn learn(&mut self, bounds: Bounds<'_>, direction: Direction, stretch: &Stretch) {
        let (mut from, mut until) = half_open(bounds);
        let mut records = stretch.records.clone();
        if let Some((last, _)) = records.last().filter(|_| stretch.more) {
            match direction {
                Direction::Forward => until = Until::Key(successor(last)),
                Direction::Backward => from = last.clone(),
            }
        }
        if direction == Direction::Backward {
            records.reverse();
        }
        self.know(from, records, &until);
    }

    /// All records from a key to an end, in order.
    fn know(&mut self, from: RecordKey, records: Vec<Record>, until: &Until) {
        if !until.is_behind(&from) {
            return;
        }
        self.clear(&from, until);
        let starts_with_record = records.first().is_some_and(|(key, _)| *key == from);
        let mut open = (!starts_with_record).then_some((from, None));
        for (key, value) in records {
            if let Some((at, value)) = open.replace((key.clone(), Some(value))) {
                self.add(at, value, Until::Key(key));
            }
        }
        if let Some((at, value)) = open {
            self.add(at, value, until.clone());
        }
    }

    /// Adds what is known of a key; nothing that is there reaches over it.
    fn add(&mut self, key: RecordKey, value: Option<Arc<[u8]>>, until: Until) {
        if value.is_none()
            && let Some((before, stretch)) = self.before(&key)
            && stretch.until == Until::Key(key.clone())
        {
            let (before, value) = (before.clone(), stretch.value.clone());
            self.put(before, value, until);
            return;
        }
        self.put(key, value, until);
    }

    fn put(&mut self, key: RecordKey, value: Option<Arc<[u8]>>, until: Until) {
        let stretch = Stretched::new(value, until);
        self.len_bytes += stretch.len_bytes(&key);
        if let Some(old) = self.stretches.insert(key.clone(), stretch) {
            self.len_bytes -= old.len_bytes(&key);
        }
    }

    fn take(&mut self, key: &RecordKey) -> Option<Arc<Stretched>> {
        let stretch = self.stretches.remove(key)?;
        self.len_bytes -= stretch.len_bytes(key);
        Some(stretch)
    }

    /// Forgets everything from a key to an end.
    fn clear(&mut self, from: &RecordKey, until: &Until) {
        let mut reached = None;
        if let Some((key, stretch)) = self.before(from)
            && stretch.until.is_behind(from)
        {
            let (key, value) = (key.clone(), stretch.value.clone());
            reached = Some(stretch.until.clone());
            self.put(key, value, Until::Key(from.clone()));
        }
        while let Some((key, _)) = self.stretches.range(from.clone()..).next()
            && until.is_behind(key)
        {
            let key = key.clone();
            reached = self.take(&key).map(|stretch| stretch.until.clone());
        }
        // What is known behind the end stays known.
        if let (Until::Key(end), Some(reached)) = (until, reached)
            && reached.is_behind(end)
        {
            self.put(end.clone(), None, reached);
        }
    }

    /// Forgets what it knows of a key.
    pub fn forget(&mut self, key: &RecordKey) {
        self.clear(key, &Until::Key(successor(key)));
    }

    /// The cache of the state that a batch makes.
    pub fn apply(&mut self, changes: &[Change]) {
        for change in changes {
            match change {
                Change::Put(key, value) => {
                    let record = (key.clone(), Arc::clone(value));
                    let until = Until::Key(successor(key));
                    self.know(key.clone(), vec![record], &until);
                    self.join(key);
                }
                Change::Delete(key) => {
                    self.know(key.clone(), Vec::new(), &Until::Key(successor(key)));
                    self.join(&successor(key));
                }
                Change::DeleteRange(from, to) => {
                    let from = RecordKey::from(&**from);
                    self.know(from, Vec::new(), &Until::Key(RecordKey::from(&**to)));
                }
            }
        }
    }

    /// Joins what is known of no record behind a key to the stretch in front of it.
    fn join(&mut self, key: &RecordKey) {
        let gap = match self.stretches.get(key) {
            Some(stretch) if stretch.value.is_none() => key.clone(),
            Some(_) => successor(key),
            None => return,
        };
        if self.stretches.get(&gap).is_some_and(|stretch| stretch.value.is_none())
            && let Some(stretch) = self.take(&gap)
        {
            self.add(gap, None, stretch.until.clone());
        }
    }

    /// Forgets what was not read for longest, about, until it takes at most as many bytes.
    pub fn shrink(&mut self, max: usize) {
        if self.len_bytes <= max {
            return;
        }
        let target = max - max / EVICTED_PART;
        while self.len_bytes > target {
            let next = self.stretches.range(self.hand.clone()..).next();
            let Some((key, stretch)) = next else {
                if self.hand.is_empty() {
                    return;
                }
                self.hand = RecordKey::default();
                continue;
            };
            let key = key.clone();
            self.hand = successor(&key);
            if !stretch.is_used.swap(false, Ordering::Relaxed) {
                self.take(&key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use fastrand::Rng;

    use super::*;

    type Model = BTreeMap<Vec<u8>, Arc<[u8]>>;

    fn key(rng: &mut Rng) -> Vec<u8> {
        (0..rng.usize(0..3)).map(|_| rng.u8(0..4)).collect()
    }

    fn bound(rng: &mut Rng, key: &[u8]) -> Bound<Vec<u8>> {
        match rng.u8(0..4) {
            0 => Bound::Unbounded,
            1 => Bound::Excluded(key.into()),
            _ => Bound::Included(key.into()),
        }
    }

    fn in_order(model: &Model, bounds: Bounds<'_>, direction: Direction) -> Vec<Record> {
        if spinney_core::backend::is_empty_range(bounds) {
            return Vec::new();
        }
        let records =
            model.range::<[u8], _>(bounds).map(|(key, value)| ((&**key).into(), value.clone()));
        match direction {
            Direction::Forward => records.collect(),
            Direction::Backward => records.rev().collect(),
        }
    }

    fn change(rng: &mut Rng, model: &mut Model) -> Change {
        let at = key(rng);
        match rng.u8(0..8) {
            0 => {
                let to = key(rng);
                model.retain(|key, _| !(at <= *key && *key < to));
                Change::DeleteRange(at.into(), to.into())
            }
            1..4 => {
                model.remove(&at);
                Change::Delete(at.into())
            }
            _ => {
                let value: Arc<[u8]> = rng.u64(..).to_be_bytes().as_slice().into();
                model.insert(at.clone(), Arc::clone(&value));
                Change::Put(at.into(), value)
            }
        }
    }

    /// Whatever it says is so, and what it was just told it knows.
    #[test]
    fn what_is_known_is_right() {
        let seed = fastrand::u64(..);
        println!("seed {seed}");
        let mut rng = Rng::with_seed(seed);
        let (mut known, mut unknown) = (0, 0);
        for _ in 0..300 {
            let (mut model, mut cache) = (Model::new(), Cache::default());
            for _ in 0..300 {
                let (a, b) = (key(&mut rng), key(&mut rng));
                let (lower, upper) = (bound(&mut rng, &a), bound(&mut rng, &b));
                let bounds = (lower.as_ref().map(|key| &**key), upper.as_ref().map(|key| &**key));
                let direction = if rng.bool() { Direction::Forward } else { Direction::Backward };
                let is_empty = spinney_core::backend::is_empty_range(bounds);
                match rng.u8(0..8) {
                    0 => cache.apply(&[change(&mut rng, &mut model)]),
                    1 => {
                        if let Change::Put(key, _) | Change::Delete(key) =
                            change(&mut rng, &mut model)
                        {
                            cache.forget(&key);
                        } else {
                            cache = Cache::default();
                        }
                    }
                    2 if !is_empty => {
                        let mut records = in_order(&model, bounds, direction);
                        let more = records.len() > 3;
                        records.truncate(3);
                        let first = records.first().cloned();
                        cache.learn(bounds, direction, &Stretch { records, more });
                        assert_eq!(cache.first(bounds, direction), Known::Is(first));
                    }
                    3 => {
                        let record = in_order(
                            &model,
                            (Bound::Included(&a), Bound::Included(&b)),
                            Direction::Backward,
                        );
                        let behind =
                            model.range::<[u8], _>((Bound::Excluded(&*b), Bound::Unbounded)).next();
                        let until =
                            behind.map_or(Until::End, |(key, _)| Until::Key((&**key).into()));
                        if a <= b {
                            let floor = Floor { record: record.first().cloned(), until };
                            cache.learn_floor(&a, &floor);
                            assert_eq!(cache.floor(&a, &b), Known::Is(floor.record));
                        }
                    }
                    4 if rng.u8(0..8) == 0 => {
                        let max = rng.usize(0..2_000);
                        cache.shrink(max);
                        assert!(cache.len_bytes() <= max);
                    }
                    _ if !is_empty => match cache.first(bounds, direction) {
                        Known::Is(record) => {
                            known += 1;
                            assert_eq!(
                                record,
                                in_order(&model, bounds, direction).first().cloned()
                            );
                        }
                        Known::Not => unknown += 1,
                    },
                    _ => {}
                }
                let len: usize =
                    cache.stretches.iter().map(|(key, stretch)| stretch.len_bytes(key)).sum();
                assert_eq!(len, cache.len_bytes());
            }
        }
        assert!(known > 10_000 && unknown > 1_000, "{known} known, {unknown} unknown");
    }
}
