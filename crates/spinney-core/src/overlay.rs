//! Staged changes laid over a snapshot: a persistent ordered map of keys, each put or deleted.
//!
//! Cloning is O(1), so every snapshot takes the staged changes of its moment with it. It must not
//! know who stages them or what is below: LMDB lays it over the engine, the memory backend over
//! [`Nothing`].

use std::borrow::Cow;
use std::iter::Peekable;
use std::ops::Bound;
use std::sync::Arc;

use imbl::OrdMap;
use imbl::ordmap::RangedIter;
use imbl::shared_ptr::DefaultSharedPtr;

use crate::backend::{
    Bounds, Change, Direction, Record, RecordKey, Records, Revision, Snapshot, is_empty_range,
};
use crate::error::Result;
use crate::short_bytes::Probe;

/// What is staged for a key: a value, or its absence.
pub type Staged = Option<Arc<[u8]>>;

/// An ordered map of staged changes.
///
/// # Complexity
/// O(1) to clone and drop a shared one, O(log n) a change; a change copies the nodes that a clone
/// still shares, at most 16 entries a level.
#[derive(Clone, Default)]
pub struct Overlay {
    entries: OrdMap<RecordKey, Staged>,
}

impl Overlay {
    /// Whether nothing is staged.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The keys that are staged, deleted ones included.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Stages a value, or with `None` the absence of one; returns what was staged before.
    #[inline]
    pub fn stage(&mut self, key: RecordKey, staged: Staged) -> Option<Staged> {
        self.entries.insert(key, staged)
    }

    /// Takes a key out, so that what is below shows again; returns what was staged.
    pub fn forget(&mut self, key: &[u8]) -> Option<Staged> {
        self.entries.remove(&Probe::new(key))
    }

    /// What is staged for a key; `None` when nothing is.
    #[inline]
    pub fn staged(&self, key: &[u8]) -> Option<&Staged> {
        self.entries.get(&Probe::new(key))
    }

    /// Everything staged, in the order of the keys.
    pub fn iter(&self) -> impl Iterator<Item = (&RecordKey, &Staged)> {
        self.entries.iter()
    }

    /// As [`Overlay::iter`], taking them out.
    pub fn into_changes(self) -> impl Iterator<Item = (RecordKey, Staged)> {
        self.entries.into_iter()
    }

    /// The staged keys of a range, deleted ones included.
    pub fn keys(
        &self,
        bounds: Bounds<'_>,
        direction: Direction,
    ) -> impl Iterator<Item = &RecordKey> {
        let entries = (!is_empty_range(bounds)).then(|| self.staged_range(bounds, direction));
        entries.into_iter().flatten().map(|(key, _)| key)
    }

    fn staged_range(&self, bounds: Bounds<'_>, direction: Direction) -> StagedRange<'_> {
        let probes = (bounds.0.map(Probe::new), bounds.1.map(Probe::new));
        StagedRange { entries: self.entries.range::<_, Probe<'_>>(probes), direction }
    }

    /// Stages a batch's changes; a range delete becomes a deletion of each key that it finds here
    /// or in `base`.
    ///
    /// # Errors
    /// Those of reading `base`.
    pub fn apply(&mut self, changes: &[Change], base: &dyn Snapshot) -> Result<()> {
        for change in changes {
            match change {
                Change::Put(key, value) => {
                    self.stage(key.clone(), Some(Arc::clone(value)));
                }
                Change::Delete(key) => {
                    self.stage(key.clone(), None);
                }
                Change::DeleteRange(from, to) => {
                    let bounds = (Bound::Included(&**from), Bound::Excluded(&**to));
                    let doomed: Vec<RecordKey> = self
                        .range_over(base, bounds, Direction::Forward)?
                        .map(|record| record.map(|(key, _)| RecordKey::from(&*key)))
                        .collect::<Result<_>>()?;
                    for key in doomed {
                        self.stage(key, None);
                    }
                }
            }
        }
        Ok(())
    }

    /// The changes as point changes, in an order that gives the same state.
    ///
    /// # Errors
    /// Those of reading `base`.
    pub fn expand(changes: Vec<Change>, base: &dyn Snapshot) -> Result<Vec<(RecordKey, Staged)>> {
        if changes.iter().any(|change| matches!(change, Change::DeleteRange(..))) {
            let mut overlay = Overlay::default();
            overlay.apply(&changes, base)?;
            return Ok(overlay.entries.into_iter().collect());
        }
        let point = |change| match change {
            Change::Put(key, value) => Some((key, Some(value))),
            Change::Delete(key) => Some((key, None)),
            Change::DeleteRange(..) => None,
        };
        Ok(changes.into_iter().filter_map(point).collect())
    }

    /// Lays the overlay over a snapshot.
    pub fn over<S: Snapshot>(self, base: S) -> Layered<S> {
        Layered { overlay: self, base, version: None }
    }

    fn get_over<'s>(&'s self, base: &'s dyn Snapshot, key: &[u8]) -> Result<Option<Cow<'s, [u8]>>> {
        match self.staged(key) {
            Some(staged) => Ok(staged.as_deref().map(Cow::Borrowed)),
            None => base.get(key),
        }
    }

    fn range_over<'s>(
        &'s self,
        base: &'s dyn Snapshot,
        bounds: Bounds<'_>,
        direction: Direction,
    ) -> Result<Records<'s>> {
        if is_empty_range(bounds) {
            return Ok(Box::new(std::iter::empty()));
        }
        if self.entries.is_empty() {
            return base.range(bounds, direction);
        }
        Ok(Box::new(Merge {
            staged: self.staged_range(bounds, direction).peekable(),
            base: base.range(bounds, direction)?.peekable(),
            direction,
        }))
    }

    fn floor_over<'s>(
        &'s self,
        base: &'s dyn Snapshot,
        lower: &[u8],
        key: &[u8],
    ) -> Result<Option<Record<'s>>> {
        if self.is_empty() {
            return base.floor(lower, key);
        }
        let nearest = self
            .entries
            .get_prev(&Probe::new(key))
            .filter(|(staged_key, _)| ***staged_key >= *lower);
        let Some((staged_key, staged)) = nearest else { return base.floor(lower, key) };
        match staged {
            // Nothing is between.
            Some(value) if **staged_key == *key => {
                Ok(Some((Cow::Borrowed(staged_key), Cow::Borrowed(value))))
            }
            // Nothing staged lies between here and `key`, so the base alone can come nearer.
            Some(value) => match base.floor(lower, key)? {
                Some(found) if *found.0 > **staged_key => Ok(Some(found)),
                _ => Ok(Some((Cow::Borrowed(staged_key), Cow::Borrowed(value)))),
            },
            None => {
                let bounds = (Bound::Included(lower), Bound::Included(key));
                self.range_over(base, bounds, Direction::Backward)?.next().transpose()
            }
        }
    }
}

/// A snapshot with staged changes on top.
pub struct Layered<S> {
    overlay: Overlay,
    base: S,
    version: Option<u64>,
}

impl<S> Layered<S> {
    /// The staged changes.
    pub fn overlay(&self) -> &Overlay {
        &self.overlay
    }

    /// The staged changes, to stage more.
    pub fn overlay_mut(&mut self) -> &mut Overlay {
        self.version = None;
        &mut self.overlay
    }

    /// Names the state (see [`Snapshot::version`]).
    pub fn named(self, version: u64) -> Self {
        Layered { version: Some(version), ..self }
    }

    /// The snapshot below.
    pub fn base(&self) -> &S {
        &self.base
    }

    /// The snapshot below, without what was on top.
    pub fn into_base(self) -> S {
        self.base
    }
}

impl<S: Snapshot> Snapshot for Layered<S> {
    #[inline]
    fn version(&self) -> Option<u64> {
        match self.overlay.is_empty() {
            true => self.version.or_else(|| self.base.version()),
            false => self.version,
        }
    }

    #[inline]
    fn get(&self, key: &[u8]) -> Result<Option<Cow<'_, [u8]>>> {
        self.overlay.get_over(&self.base, key)
    }

    fn range<'s>(&'s self, bounds: Bounds<'_>, direction: Direction) -> Result<Records<'s>> {
        self.overlay.range_over(&self.base, bounds, direction)
    }

    fn floor(&self, lower: &[u8], key: &[u8]) -> Result<Option<Record<'_>>> {
        self.overlay.floor_over(&self.base, lower, key)
    }
}

/// The empty state.
pub struct Nothing;

impl Snapshot for Nothing {
    fn revision(&self) -> Result<Revision> {
        Ok(0)
    }

    fn get(&self, _key: &[u8]) -> Result<Option<Cow<'_, [u8]>>> {
        Ok(None)
    }

    fn range<'s>(&'s self, _: Bounds<'_>, _: Direction) -> Result<Records<'s>> {
        Ok(Box::new(std::iter::empty()))
    }

    fn floor(&self, _lower: &[u8], _key: &[u8]) -> Result<Option<Record<'_>>> {
        Ok(None)
    }
}

/// The staged entries of a range, in either direction.
struct StagedRange<'s> {
    entries: RangedIter<'s, RecordKey, Staged, DefaultSharedPtr>,
    direction: Direction,
}

impl<'s> Iterator for StagedRange<'s> {
    type Item = (&'s RecordKey, &'s Staged);

    fn next(&mut self) -> Option<Self::Item> {
        match self.direction {
            Direction::Forward => self.entries.next(),
            Direction::Backward => self.entries.next_back(),
        }
    }
}

/// Both layers in order; of equal keys the staged one counts, and a staged absence hides both.
struct Merge<'s> {
    staged: Peekable<StagedRange<'s>>,
    base: Peekable<Records<'s>>,
    direction: Direction,
}

/// Which layer has the next key.
enum Next {
    Staged,
    Base,
    Both,
}

impl Merge<'_> {
    fn next_layer(&mut self) -> Option<Next> {
        use std::cmp::Ordering::{Equal, Greater, Less};
        let staged_key = match (self.staged.peek(), self.base.peek()) {
            (None, None) => return None,
            (Some(_), None) => return Some(Next::Staged),
            // An error of the base comes out before anything behind it.
            (None, Some(_)) | (Some(_), Some(Err(_))) => return Some(Next::Base),
            (Some((staged_key, _)), Some(Ok((base_key, _)))) => {
                let order = (***staged_key).cmp(&**base_key);
                if self.direction == Direction::Forward { order } else { order.reverse() }
            }
        };
        Some(match staged_key {
            Less => Next::Staged,
            Equal => Next::Both,
            Greater => Next::Base,
        })
    }
}

impl<'s> Iterator for Merge<'s> {
    type Item = Result<Record<'s>>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.next_layer()? {
                Next::Base => return self.base.next(),
                Next::Staged => {}
                Next::Both => drop(self.base.next()),
            }
            if let (key, Some(value)) = self.staged.next()? {
                return Some(Ok((Cow::Borrowed(key), Cow::Borrowed(value))));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    type Model = BTreeMap<Vec<u8>, Vec<u8>>;

    fn pairs(snapshot: &dyn Snapshot, bounds: Bounds<'_>, direction: Direction) -> Vec<Vec<u8>> {
        let records = snapshot.range(bounds, direction).unwrap();
        records
            .map(|record| [&*record.as_ref().unwrap().0, &*record.as_ref().unwrap().1].concat())
            .collect()
    }

    /// Three layers, each with random puts and deletes, against one map.
    #[test]
    fn layers_are_one_map() {
        let mut random = fastrand::Rng::with_seed(1);
        for _ in 0..300 {
            let mut model = Model::new();
            let mut layers = [Overlay::default(), Overlay::default(), Overlay::default()];
            for layer in &mut layers {
                for _ in 0..random.usize(..30) {
                    let (key, value) = ([random.u8(..40)], [random.u8(..)]);
                    let is_put = random.bool();
                    layer.stage(key.as_slice().into(), is_put.then(|| value.as_slice().into()));
                    match is_put {
                        true => drop(model.insert(key.into(), value.into())),
                        false => drop(model.remove(key.as_slice())),
                    }
                }
            }
            let [lowest, middle, highest] = layers;
            let state = highest.over(middle.over(lowest.over(Nothing)));
            for _ in 0..30 {
                let (from, to) = ([random.u8(..40)], [random.u8(..40)]);
                assert_eq!(
                    state.get(&from).unwrap().as_deref(),
                    model.get(&from[..]).map(|v| &**v)
                );
                let bounds = (Bound::Included(&from[..]), Bound::Excluded(&to[..]));
                let mut expected: Vec<Vec<u8>> = match is_empty_range(bounds) {
                    true => Vec::new(),
                    false => {
                        model.range::<[u8], _>(bounds).map(|(k, v)| [&**k, &**v].concat()).collect()
                    }
                };
                assert_eq!(pairs(&state, bounds, Direction::Forward), expected);
                expected.reverse();
                assert_eq!(pairs(&state, bounds, Direction::Backward), expected);
                let floor = state.floor(&from, &to).unwrap().map(|(key, _)| key.into_owned());
                let within =
                    (from <= to).then(|| model.range(from.to_vec()..=to.to_vec()).next_back());
                assert_eq!(floor.as_ref(), within.flatten().map(|(key, _)| key));
            }
        }
    }

    #[test]
    fn a_clone_does_not_see_later_changes() {
        let mut overlay = Overlay::default();
        overlay.stage((*b"a").into(), Some((*b"1").into()));
        let earlier = overlay.clone();
        overlay.stage((*b"a").into(), None);
        overlay.forget(b"b");
        assert_eq!(earlier.over(Nothing).get(b"a").unwrap().as_deref(), Some(&b"1"[..]));
        assert_eq!(overlay.len(), 1);
        assert_eq!(overlay.over(Nothing).get(b"a").unwrap(), None);
    }

    #[test]
    fn expanded_changes_name_each_key_of_a_range() {
        let mut below = Overlay::default();
        for name in [b"a", b"b", b"c", b"d"] {
            below.stage((*name).as_slice().into(), Some((*b"1").into()));
        }
        let changes = vec![
            Change::Put((*b"bb").into(), (*b"2").into()),
            Change::DeleteRange((*b"b").into(), (*b"d").into()),
            Change::Put((*b"c").into(), (*b"3").into()),
        ];
        let expanded = Overlay::expand(changes, &below.over(Nothing)).unwrap();
        let staged: Vec<_> =
            expanded.iter().map(|(key, value)| (&**key, value.as_deref())).collect();
        assert_eq!(staged, [(&b"b"[..], None), (b"bb", None), (b"c", Some(&b"3"[..]))]);
    }
}
