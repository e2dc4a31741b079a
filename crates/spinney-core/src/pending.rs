//! Records that a transaction has made and not yet committed, over the state it started from.
//!
//! It hands out ids, keeps the heads of the trees that are touched, and writes large new containers
//! ahead in bounded maintenance batches, detached, so that memory stays bounded. It knows records,
//! not nodes.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::backend::{Backend, Batch, Change, Outcome, Revision, Snapshot, TreeId};
use crate::error::{Error, Result};
use crate::layout::{RecordKind, head_key};
use crate::overlay::{Layered, Overlay};
use crate::reclaim;
use crate::record::Head;
use crate::view::View;

/// Bytes of new records that are kept in memory before they are written ahead.
pub const WRITE_AHEAD_LEN: usize = 8 << 20;

/// The sizes that decide where data lies, from the backend's capabilities.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// Bytes of a page record.
    pub page_len_max: usize,
    /// Bytes of the body of a container that is stored inside its parent.
    pub inline_len_max: usize,
    /// Bytes of a string or bytes value that is stored inside a page.
    pub value_len_max: usize,
    /// Bytes of a chunk record.
    pub chunk_len_max: usize,
    /// Bytes of an engine key.
    pub key_len_max: usize,
}

impl Sizes {
    fn of(backend: &dyn Backend) -> Sizes {
        let capabilities = backend.capabilities();
        let page_len_max = capabilities.page_size;
        Sizes {
            page_len_max,
            inline_len_max: page_len_max / 8,
            value_len_max: page_len_max / 2,
            chunk_len_max: page_len_max * 8,
            key_len_max: capabilities.key_len_max,
        }
    }
}

/// The records of one transaction, over the snapshot it reads.
pub struct Pending<'b> {
    backend: &'b dyn Backend,
    layered: Layered<Box<dyn Snapshot>>,
    base: Revision,
    /// Where data lies.
    pub sizes: Sizes,
    heads: BTreeMap<TreeId, Head>,
    /// The first id of each tree that this transaction gave out.
    first_new_ids: BTreeMap<TreeId, u64>,
    unwritten_len: usize,
    reclaims: bool,
}

impl<'b> Pending<'b> {
    /// Starts from the newest state of a backend.
    ///
    /// # Errors
    /// Those of taking a snapshot; `Corrupted` when the store's head is damaged.
    pub fn new(backend: &'b dyn Backend) -> Result<Pending<'b>> {
        let snapshot = backend.snapshot()?;
        let base = snapshot.revision()?;
        Ok(Pending {
            backend,
            layered: Overlay::default().over(snapshot),
            base,
            sizes: Sizes::of(backend),
            heads: BTreeMap::new(),
            first_new_ids: BTreeMap::new(),
            unwritten_len: 0,
            reclaims: false,
        })
    }

    /// The backend.
    pub fn backend(&self) -> &'b dyn Backend {
        self.backend
    }

    /// The revision that the transaction reads.
    pub fn base(&self) -> Revision {
        self.base
    }

    /// The nodes of the state with the pending records.
    pub fn view(&self) -> View<'_> {
        View { snapshot: &self.layered, key_len_max: self.sizes.key_len_max }
    }

    /// The records of the state with the pending ones.
    pub fn snapshot(&self) -> &dyn Snapshot {
        &self.layered
    }

    /// The same records, to be read while this one is written.
    ///
    /// # Errors
    /// `Conflict` when the backend's newest state is no longer the one this started from.
    pub fn fork(&self) -> Result<Layered<Box<dyn Snapshot>>> {
        let snapshot = self.backend.snapshot()?;
        self.check_base(&*snapshot)?;
        Ok(self.layered.overlay().clone().over(snapshot))
    }

    fn check_base(&self, snapshot: &dyn Snapshot) -> Result<()> {
        match snapshot.revision()? == self.base {
            true => Ok(()),
            false => Err(Error::conflict("the store changed while a transaction was open")),
        }
    }

    /// The head of a tree, to change.
    pub fn head(&mut self, tree: TreeId) -> Result<&mut Head> {
        use std::collections::btree_map::Entry;
        match self.heads.entry(tree) {
            Entry::Occupied(entry) => Ok(entry.into_mut()),
            Entry::Vacant(entry) => {
                let mut head = Head::load(&self.layered, tree)?.unwrap_or_default();
                head.next_id = head.next_id.max(1);
                self.first_new_ids.insert(tree, head.next_id);
                Ok(entry.insert(head))
            }
        }
    }

    /// A new id for a container or a long value.
    pub fn new_id(&mut self, tree: TreeId) -> Result<u64> {
        let head = self.head(tree)?;
        let id = head.next_id;
        head.next_id += 1;
        Ok(id)
    }

    /// Whether this transaction gave out an id.
    pub fn is_new(&self, tree: TreeId, id: u64) -> bool {
        self.first_new_ids.get(&tree).is_some_and(|&first| id >= first)
    }

    /// The trees whose heads were loaded to be changed.
    pub fn trees(&self) -> Vec<TreeId> {
        self.heads.keys().copied().collect()
    }

    /// Sets a record.
    pub fn put(&mut self, key: &[u8], record: &[u8]) {
        self.unwritten_len += key.len() + record.len();
        self.layered.overlay_mut().stage(key.into(), Some(Arc::from(record)));
    }

    /// Removes a record.
    pub fn delete(&mut self, key: &[u8]) {
        self.layered.overlay_mut().stage(key.into(), None);
    }

    /// Writes the pending records ahead when they are many. Only for records of new ids: nothing
    /// refers to them before the commit, and they are reclaimed when it does not come.
    ///
    /// # Errors
    /// Those of the backend; `Conflict` when the store has changed.
    pub fn write_ahead(&mut self, tree: TreeId) -> Result<()> {
        if self.unwritten_len < WRITE_AHEAD_LEN {
            return Ok(());
        }
        self.head(tree)?;
        self.head(0)?.building =
            self.first_new_ids.iter().map(|(&tree, &first)| (tree, first)).collect();
        let trees = self.trees();
        let changes = self.take_changes(&trees);
        let batch = Batch { revision: self.base, changes, ..Batch::default() };
        match self.backend.commit(batch)? {
            Outcome::Committed(_) => {}
            Outcome::Conflict => {
                return Err(Error::conflict("the store changed during a big write"));
            }
        }
        let snapshot = self.backend.snapshot()?;
        self.check_base(&*snapshot)?;
        self.layered = Overlay::default().over(snapshot);
        Ok(())
    }

    /// All changes, with the heads of some trees; the pending records are gone after.
    fn take_changes(&mut self, trees: &[TreeId]) -> Vec<Change> {
        self.unwritten_len = 0;
        let overlay = std::mem::take(self.layered.overlay_mut());
        let mut changes: Vec<Change> = Vec::with_capacity(overlay.len() + trees.len());
        for tree in trees {
            if let Some(head) = self.heads.get(tree) {
                let record = head.encode(*tree);
                changes.push(Change::Put((&head_key(*tree)[..]).into(), record.into()));
            }
        }
        changes.extend(overlay.iter().map(|(key, staged)| match staged {
            Some(record) => Change::Put((&**key).into(), Arc::clone(record)),
            None => Change::Delete((&**key).into()),
        }));
        changes
    }

    /// The batch that commits everything as `revision`.
    pub fn into_batch(
        mut self,
        revision: Revision,
        commit_id: u128,
        diff: Arc<[u8]>,
    ) -> Result<Batch> {
        self.head(0)?.building.clear();
        let mut trees = self.trees();
        // A tree that is gone keeps a head without a root until everything in it is reclaimed; one
        // that never came to be needs none.
        trees.retain(|tree| {
            *tree == 0 || {
                let head = &self.heads[tree];
                !head.root.is_empty() || head.revision > 0 || head.next_id > 1
            }
        });
        for tree in &trees {
            self.head(*tree)?.revision = revision;
        }
        let mut bases: Vec<(TreeId, Revision)> = vec![(0, self.base)];
        bases.extend(trees.iter().filter(|&&tree| tree != 0).map(|&tree| (tree, self.base)));
        Ok(Batch { bases, revision, commit_id, changes: self.take_changes(&trees), diff })
    }

    /// Takes over what a builder that died has left: its records go to the reclaim queue.
    ///
    /// The caller holds the write guard, so no builder can be alive.
    ///
    /// # Errors
    /// Those of the backend.
    pub fn recover(mut self) -> Result<Pending<'b>> {
        let building = std::mem::take(&mut self.head(0)?.building);
        if building.is_empty() {
            return Ok(self);
        }
        for (tree, first) in building {
            let what = reclaim::What::Ids { end: self.head(tree)?.next_id };
            self.reclaim(&reclaim::Item { tree, id: first, what, except: Vec::new() });
        }
        let changes = self.take_changes(&[0]);
        let batch = Batch { revision: self.base, changes, ..Batch::default() };
        match self.backend.commit(batch)? {
            Outcome::Committed(_) => Pending::new(self.backend),
            Outcome::Conflict => Err(Error::conflict("the store changed during recovery")),
        }
    }

    /// Whether there is something to reclaim: an entry of the queue, or a tree without a root.
    pub fn reclaims(&self) -> bool {
        self.reclaims || self.heads.iter().any(|(&tree, head)| tree != 0 && head.root.is_empty())
    }

    /// Puts a container or long value into the reclaim queue.
    pub fn reclaim(&mut self, item: &reclaim::Item) {
        self.reclaims = true;
        self.put(&item.key(), &item.encode());
    }

    /// Stores the encoded diff of a revision and trims the log to `keep` revisions.
    pub fn log(&mut self, revision: Revision, diff: &[u8], keep: u64) {
        let key = |revision| crate::layout::prefix(0, RecordKind::Log, revision);
        self.put(&key(revision), diff);
        if let Some(old) = revision.checked_sub(keep).filter(|&old| old > 0) {
            self.delete(&key(old));
        }
    }
}
