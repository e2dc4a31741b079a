//! The ordered index: what is derived from a tree, as keys with contents, in runs of neighbours.
//!
//! A run is one record. Its engine key ends in its separator: every key of the run is at or above it,
//! every key of the run before is below; that of the first is empty. So many changes write few
//! records. It must not know what keys and contents mean, nor who reads them.

mod run;

use std::ops::Bound;

use crate::backend::{Direction, RecordKey, Snapshot, TreeId};
use crate::error::Result;
use crate::layout::{PREFIX_LEN, RecordKind, prefix};
use crate::overlay::Staged;

use run::Run;

/// A changed record of derived state, such as a run of an index: its key, and `None` to remove it. It
/// is committed with what it is derived from.
pub type Derived = (RecordKey, Staged);

/// The index that a tree has for an owner, such as a schema, at one state, to be changed.
pub struct Index<'s> {
    snapshot: &'s dyn Snapshot,
    start: [u8; PREFIX_LEN],
    end: [u8; PREFIX_LEN],
    /// Whether nothing is stored.
    is_new: bool,
    run: Option<Run<'s>>,
    changed: Vec<Derived>,
}

impl<'s> Index<'s> {
    /// The index of a state.
    pub fn of(snapshot: &'s dyn Snapshot, tree: TreeId, owner: u64) -> Index<'s> {
        Index {
            snapshot,
            start: prefix(tree, RecordKind::Derived, owner),
            end: prefix(tree, RecordKind::Derived, owner + 1),
            is_new: false,
            run: None,
            changed: Vec::new(),
        }
    }

    /// As [`Index::of`], where nothing is stored yet, as the caller knows.
    pub fn new(snapshot: &'s dyn Snapshot, tree: TreeId, owner: u64) -> Index<'s> {
        Index { is_new: true, ..Index::of(snapshot, tree, owner) }
    }

    /// Changes the content of a key, which is above that of the call before. `change` gets the content
    /// and writes the new one; an empty one stands for a key that is not there.
    ///
    /// # Errors
    /// Those of `change` and of reading; `Corrupted` when a run does not read.
    ///
    /// # Complexity
    /// A lookup for each run, whose entries are then gone through once.
    pub fn change(
        &mut self,
        key: &[u8],
        change: impl FnOnce(&[u8], &mut Vec<u8>) -> Result<()>,
    ) -> Result<()> {
        let is_within = match &mut self.run {
            Some(run) => run.seek(key)? || self.is_new || run.reaches(key),
            None => false,
        };
        if !is_within {
            self.open(key)?;
        }
        self.run.as_mut().expect("it was opened").change(key, change)
    }

    /// Opens the run that a key belongs to, unless that is the open one, whose entries are all below it.
    fn open(&mut self, key: &[u8]) -> Result<()> {
        let stored = match self.is_new {
            true => None,
            false => self.snapshot.floor(&self.start, &[&self.start, key].concat())?,
        };
        let found = stored.as_ref().map_or(&self.start[..], |(key, _)| &key[..]);
        if let Some(run) = self.run.as_mut().filter(|run| run.is(found)) {
            return run.find_end(self.snapshot, &self.end);
        }
        let mut run = match stored {
            Some((key, record)) => Run::stored(key[..].into(), record)?,
            None => Run::new(found.into()),
        };
        run.seek(key)?;
        self.close()?;
        self.run = Some(run);
        Ok(())
    }

    fn close(&mut self) -> Result<()> {
        match self.run.take() {
            Some(run) => run.finish(&mut self.changed),
            None => Ok(()),
        }
    }

    /// The records that change.
    ///
    /// # Errors
    /// `Corrupted` when a run does not read.
    pub fn finish(mut self) -> Result<Vec<Derived>> {
        self.close()?;
        Ok(self.changed)
    }

    /// Removes the whole index.
    ///
    /// # Errors
    /// Those of reading.
    pub fn remove(self) -> Result<Vec<Derived>> {
        let bounds = (Bound::Included(&self.start[..]), Bound::Excluded(&self.end[..]));
        let records = self.snapshot.range(bounds, Direction::Forward)?;
        records.map(|record| Ok((record?.0[..].into(), None))).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::overlay::{Nothing, Overlay};

    const TREE: TreeId = 3;

    /// Random changes, few and many at once, against a map; what is in between never shows.
    #[test]
    fn an_index_is_a_map() {
        for seed in 0..40 {
            let mut random = fastrand::Rng::with_seed(seed);
            let mut model: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
            let mut state = Overlay::default();
            // Those of neighbours are not to be touched.
            for owner in [6, 8] {
                let mut other = Index::new(&Nothing, TREE, owner);
                other.change(b"k", put(&[1])).unwrap();
                for (key, record) in other.finish().unwrap() {
                    state.stage(key, record);
                }
            }
            for round in 0..60 {
                let keys: std::collections::BTreeSet<Vec<u8>> =
                    (0..[1, 3, 400][random.usize(..3)]).map(|_| key(&mut random)).collect();
                let is_growing = random.u8(..3) > 0;
                let layered = state.clone().over(Nothing);
                let mut index = match round {
                    0 => Index::new(&layered, TREE, 7),
                    _ => Index::of(&layered, TREE, 7),
                };
                for key in keys {
                    let new: Vec<u8> = match is_growing || random.u8(..4) == 0 {
                        true => std::iter::repeat_n(random.u8(..), random.usize(1..20)).collect(),
                        false => Vec::new(),
                    };
                    index
                        .change(&key, |old, out| {
                            assert_eq!(old, model.get(&key).map_or(&[][..], |old| old), "{seed}");
                            out.extend_from_slice(&new);
                            Ok(())
                        })
                        .unwrap();
                    match new.is_empty() {
                        true => drop(model.remove(&key)),
                        false => drop(model.insert(key, new)),
                    }
                }
                for (key, record) in index.finish().unwrap() {
                    state.stage(key, record);
                }
                let layered = state.clone().over(Nothing);
                let records: Vec<_> = state.iter().filter(|(_, record)| record.is_some()).collect();
                assert!(records.len() <= 3 + model.len() / 4, "{seed}: {}", records.len());
                let mut index = Index::of(&layered, TREE, 7);
                for (key, content) in &model {
                    let same = |old: &[u8], out: &mut Vec<u8>| {
                        assert_eq!(old, content, "{seed}: {key:?}");
                        put(old)(old, out)
                    };
                    index.change(key, same).unwrap();
                }
                assert_eq!(index.finish().unwrap(), [], "what stays the same is not written");
            }
            let layered = state.clone().over(Nothing);
            for (key, record) in Index::of(&layered, TREE, 7).remove().unwrap() {
                state.stage(key, record);
            }
            assert_eq!(state.iter().filter(|(_, record)| record.is_some()).count(), 2);
        }
    }

    /// Makes a content of any other.
    fn put(content: &[u8]) -> impl FnOnce(&[u8], &mut Vec<u8>) -> Result<()> + '_ {
        |_, new| {
            new.extend_from_slice(content);
            Ok(())
        }
    }

    fn key(random: &mut fastrand::Rng) -> Vec<u8> {
        let start = [&b""[..], b"items/", b"items/more/"][random.usize(..3)];
        let rest = (0..random.usize(1..4)).map(|_| random.u8(..6));
        start.iter().copied().chain(rest).collect()
    }

    #[test]
    fn damage_is_an_error() {
        let mut index = Index::new(&Nothing, TREE, 7);
        for i in 0..30 {
            index.change(&[i], put(&[i])).unwrap();
        }
        let [(run_key, Some(record))] = &index.finish().unwrap()[..] else { panic!("one run") };
        for at in 0..record.len() {
            let mut damaged = record.to_vec();
            damaged[at] ^= 1;
            let mut state = Overlay::default();
            state.stage(run_key.clone(), Some(damaged.into()));
            let layered = state.over(Nothing);
            let changed = Index::of(&layered, TREE, 7).change(&[29], |_, _| Ok(()));
            assert_eq!(changed.unwrap_err().kind(), crate::ErrorKind::Corrupted);
        }
    }
}
