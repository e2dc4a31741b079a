//! Records that a transaction has made and not yet committed, over the state it started from.
//!
//! It hands out ids, keeps the heads of the trees that are touched, and writes large new containers
//! ahead in bounded maintenance batches, detached, so that memory stays bounded. It knows records,
//! not nodes.

use std::cell::RefCell;
use std::sync::Arc;

use crate::backend::{Backend, Batch, Change, Outcome, RecordKey, Revision, Snapshot, TreeId};
use crate::error::{Error, Result};
use crate::history::{self, History, Undo, log_key};
use crate::index::Derived;
use crate::layout::{self, PREFIX_LEN, RecordKind, head_key, prefix};
use crate::node;
use crate::overlay::{Layered, Overlay};
use crate::page::Page;
use crate::part::Part;
use crate::reclaim;
use crate::record::Head;
use crate::separator::{self, Separator};
use crate::view::{PageRecord, View};
use crate::visit::Container;

/// Bytes of new records that are kept in memory before they are written ahead.
pub const WRITE_AHEAD_LEN: usize = 8 << 20;

/// Revisions that are trimmed from the log at once.
pub const LOG_TRIM_LEN: u64 = 16;

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
    /// The heads of the trees that are touched, by tree.
    heads: Vec<OpenHead>,
    unwritten_len: usize,
    reclaims: bool,
    /// Of one that stays in memory, the newest state: what its commits have made lies in older states, too, where
    /// nothing refers to it, so their ids are taken.
    newest: Option<Box<dyn Snapshot>>,
    /// The page of a map that was read last.
    last_page: RefCell<Option<Arc<StoredPage>>>,
}

/// The head of a tree that is touched.
struct OpenHead {
    tree: TreeId,
    head: Head,
    /// Its record before; `None` when there was none.
    before: Option<Box<[u8]>>,
    /// The first id that this transaction gave out.
    first_new_id: u64,
}

/// A page of a map that was copied out, so that the pending records can change.
pub struct StoredPage {
    /// The engine key.
    pub key: RecordKey,
    /// The page body.
    pub body: Part,
    /// Bytes of the separator, when the key holds only its beginning.
    pub cut_len: Option<usize>,
}

impl OpenHead {
    /// The head of a tree; the ids that the newest state has given out are taken, if that is another one.
    fn load(
        snapshot: &dyn Snapshot,
        newest: Option<&dyn Snapshot>,
        tree: TreeId,
    ) -> Result<OpenHead> {
        let key = head_key(tree);
        let before = snapshot.get(&key)?;
        let mut head = match &before {
            Some(record) => Head::decode(&key, record)?,
            None => Head::default(),
        };
        head.next_id = head.next_id.max(1);
        if let Some(record) = newest.map(|newest| newest.get(&key)).transpose()?.flatten() {
            head.next_id = head.next_id.max(Head::decode(&key, &record)?.next_id);
        }
        let before = before.map(|record| record.into_owned().into());
        Ok(OpenHead { tree, first_new_id: head.next_id, head, before })
    }
}

impl StoredPage {
    /// Copies a page out.
    pub fn of(record: PageRecord<'_>) -> StoredPage {
        StoredPage {
            body: Part::from(&record.bytes[record.body]),
            cut_len: record.cut_len,
            key: record.key[..].into(),
        }
    }

    /// All keys of the page are at or above it.
    ///
    /// # Errors
    /// `Corrupted` when it does not read.
    pub fn separator(&self) -> Result<Separator<'_>> {
        Separator::new(&self.key, &self.body, self.cut_len)
    }

    /// Whether it is the map's first page.
    pub fn is_first(&self) -> bool {
        self.key.len() == PREFIX_LEN
    }

    /// Whether a key of a map lies between the first and the last of this page.
    fn covers(&self, tree: TreeId, id: u64, key: &[u8]) -> bool {
        self.key.starts_with(&prefix(tree, RecordKind::Page, id))
            && Page::parse(Container::Map, &self.body).is_some_and(|page| page.covers(key))
    }
}

impl<'b> Pending<'b> {
    /// Starts from the newest state of a backend.
    ///
    /// # Errors
    /// Those of taking a snapshot; `Corrupted` when the store's head is damaged.
    pub fn new(backend: &'b dyn Backend) -> Result<Pending<'b>> {
        Pending::over(backend, backend.snapshot()?, None)
    }

    /// Starts from a state of a backend that need not be the newest: nothing of it can be committed.
    ///
    /// # Errors
    /// As [`Pending::new`].
    pub fn detached(backend: &'b dyn Backend, snapshot: Box<dyn Snapshot>) -> Result<Pending<'b>> {
        Pending::over(backend, snapshot, Some(backend.snapshot()?))
    }

    fn over(
        backend: &'b dyn Backend,
        snapshot: Box<dyn Snapshot>,
        newest: Option<Box<dyn Snapshot>>,
    ) -> Result<Pending<'b>> {
        let layered = Overlay::default().over(snapshot);
        let mut heads = Vec::with_capacity(4);
        heads.push(OpenHead::load(&layered, newest.as_deref(), 0)?);
        Ok(Pending {
            backend,
            layered,
            base: heads[0].head.revision,
            sizes: Sizes::of(backend),
            heads,
            unwritten_len: 0,
            reclaims: false,
            newest,
            last_page: RefCell::default(),
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

    /// The encoded root of the catalogue, as it was when the transaction began.
    pub fn catalogue(&self) -> Part {
        match self.heads.first().map_or(&[][..], |open| &open.head.root) {
            [] => {
                let mut empty = Vec::new();
                node::write_inline(Container::Map, &[], &mut empty);
                Part::from(&empty[..])
            }
            root => Part::from(root),
        }
    }

    /// The nodes of the state with the pending records.
    pub fn view(&self) -> View<'_> {
        View { snapshot: &self.layered, key_len_max: self.sizes.key_len_max }
    }

    /// The nodes of the state that the transaction reads.
    pub fn view_before(&self) -> View<'_> {
        View { snapshot: &**self.layered.base(), key_len_max: self.sizes.key_len_max }
    }

    /// Makes the heads of the trees part of what [`Pending::view`] shows.
    pub fn stage_heads(&mut self) {
        for open in &self.heads {
            let record = open.head.encode(open.tree);
            self.layered.overlay_mut().stage(head_key(open.tree)[..].into(), Some(record.into()));
        }
    }

    /// Sets and removes records of derived state.
    pub fn put_derived(&mut self, derived: Vec<Derived>) {
        for (key, record) in derived {
            self.unwritten_len += key.len() + record.as_ref().map_or(0, |record| record.len());
            self.layered.overlay_mut().stage(key, record);
        }
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
        Ok(self.layered.overlay().clone().over(self.fork_before()?))
    }

    /// As [`Pending::fork`], without the pending records.
    ///
    /// # Errors
    /// As [`Pending::fork`].
    pub fn fork_before(&self) -> Result<Box<dyn Snapshot>> {
        let snapshot = self.backend.snapshot()?;
        self.check_base(&*snapshot)?;
        Ok(snapshot)
    }

    /// The pending records that are not written ahead.
    pub fn staged(&self) -> &Overlay {
        self.layered.overlay()
    }

    fn check_base(&self, snapshot: &dyn Snapshot) -> Result<()> {
        match snapshot.revision()? == self.base {
            true => Ok(()),
            false => Err(Error::conflict("the store changed while a transaction was open")),
        }
    }

    /// The head of a tree, to change.
    pub fn head(&mut self, tree: TreeId) -> Result<&mut Head> {
        let at = match self.heads.binary_search_by_key(&tree, |open| open.tree) {
            Ok(at) => at,
            Err(at) => {
                let open = OpenHead::load(&self.layered, self.newest.as_deref(), tree)?;
                self.heads.insert(at, open);
                at
            }
        };
        Ok(&mut self.heads[at].head)
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
        self.heads.iter().any(|open| open.tree == tree && id >= open.first_new_id)
    }

    /// The trees whose heads were loaded to be changed.
    pub fn trees(&self) -> Vec<TreeId> {
        self.heads.iter().map(|open| open.tree).collect()
    }

    /// The page of a map that a key belongs to.
    ///
    /// # Errors
    /// `Corrupted` when the page is missing or damaged.
    ///
    /// # Complexity
    /// One engine lookup, and none between keys of the page that was read last.
    pub fn map_page(&self, tree: TreeId, id: u64, key: &[u8]) -> Result<Arc<StoredPage>> {
        let mut last = self.last_page.borrow_mut();
        if let Some(page) = &*last
            && page.covers(tree, id, key)
        {
            return Ok(Arc::clone(page));
        }
        let page = Arc::new(StoredPage::of(separator::page_of(&self.view(), tree, id, key)?));
        *last = Some(Arc::clone(&page));
        Ok(page)
    }

    /// Takes a page for the one that was read last: keys that it covers are looked for next.
    pub fn remember_page(&self, page: Arc<StoredPage>) {
        *self.last_page.borrow_mut() = Some(page);
    }

    /// Forgets the page that was read last, when it is the one that changes.
    fn forget_page(&mut self, key: &[u8]) {
        let last = self.last_page.get_mut();
        if last.as_ref().is_some_and(|page| *page.key == *key) {
            *last = None;
        }
    }

    /// Sets a record.
    pub fn put(&mut self, key: &[u8], record: &[u8]) {
        self.put_shared(key, record.into());
    }

    /// As [`Pending::put`], without copying the record.
    pub fn put_shared(&mut self, key: &[u8], record: Arc<[u8]>) {
        self.forget_page(key);
        self.unwritten_len += key.len() + record.len();
        self.layered.overlay_mut().stage(key.into(), Some(record));
    }

    /// Removes a record.
    pub fn delete(&mut self, key: &[u8]) {
        self.forget_page(key);
        self.layered.overlay_mut().stage(key.into(), None);
    }

    /// Writes the pending records ahead when they are many. Only for records of new ids: nothing
    /// refers to them before the commit, and they are reclaimed when it does not come.
    ///
    /// # Errors
    /// Those of the backend; `Conflict` when the store has changed.
    pub fn write_ahead(&mut self, tree: TreeId) -> Result<()> {
        if self.unwritten_len < WRITE_AHEAD_LEN || self.newest.is_some() {
            return Ok(());
        }
        self.head(tree)?;
        self.head(0)?.building =
            self.heads.iter().map(|open| (open.tree, open.first_new_id)).collect();
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
        for OpenHead { tree, head, .. } in
            self.heads.iter().filter(|open| trees.contains(&open.tree))
        {
            changes.push(Change::Put(head_key(*tree).into(), head.encode(*tree).into()));
        }
        let staged = overlay.into_changes().filter(|(key, _)| layout::head_tree(key).is_none());
        changes.extend(staged.map(|(key, staged)| Change::point(key, staged)));
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
        // A tree that is gone keeps a head without a root until everything in it is reclaimed; one
        // that never came to be needs none.
        self.heads.retain(|OpenHead { tree, head, .. }| {
            *tree == 0 || !head.root.is_empty() || head.revision > 0 || head.next_id > 1
        });
        for open in &mut self.heads {
            open.head.revision = revision;
        }
        let trees = self.trees();
        let bases = trees.iter().map(|&tree| (tree, self.base)).collect();
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
            self.reclaim(&reclaim::Item::new(tree, first, what));
        }
        let changes = self.take_changes(&[0]);
        let batch = Batch { revision: self.base, changes, ..Batch::default() };
        match self.backend.commit(batch)? {
            Outcome::Committed(_) => Pending::new(self.backend),
            Outcome::Conflict => Err(Error::conflict("the store changed during recovery")),
        }
    }

    /// The state with the pending records, heads included.
    pub fn into_state(mut self) -> Layered<Box<dyn Snapshot>> {
        self.stage_heads();
        self.layered
    }

    /// Whether there is something to reclaim: an entry of the queue, or a tree without a root.
    pub fn reclaims(&self) -> bool {
        self.reclaims || self.heads.iter().any(|open| open.tree != 0 && open.head.root.is_empty())
    }

    /// Puts a container or long value into the reclaim queue.
    pub fn reclaim(&mut self, item: &reclaim::Item) {
        self.reclaims = true;
        self.put(&item.key(), &item.encode());
    }

    /// Logs the entry of a revision, with what its records were before, and trims the log, some
    /// revisions at a time, to `keep` and at most 15 more; with 0 nothing is logged.
    ///
    /// # Errors
    /// Those of reading what the records were.
    pub fn log(&mut self, revision: Revision, entry: &[u8], keep: u64) -> Result<()> {
        if keep == 0 {
            return self.forget_log();
        }
        let record = history::encode_record(revision, entry, &self.undo()?);
        self.put_shared(&log_key(revision), record.into());
        if revision.is_multiple_of(LOG_TRIM_LEN) {
            let end = (revision + 1).saturating_sub(keep);
            self.reclaims |= end > 1;
            for old in end.saturating_sub(LOG_TRIM_LEN).max(1)..end {
                self.delete(&log_key(old));
            }
        }
        Ok(())
    }

    /// Deletes what is logged, so that no commit is missing between two that are.
    fn forget_log(&mut self) -> Result<()> {
        for revision in History::of(&self.layered).revisions()? {
            self.delete(&log_key(revision));
            self.reclaims = true;
        }
        Ok(())
    }

    /// What the records were that the pending ones replace, as far as older states need them.
    fn undo(&self) -> Result<Undo> {
        let mut undo = Undo::default();
        let before = self.layered.base();
        for open in &self.heads {
            // Reclaim may delete the head of a tree that is gone.
            undo.add_whole(&head_key(open.tree), open.before.as_deref());
        }
        for (key, after) in self.layered.overlay().iter() {
            let Some((tree, kind, id)) = layout::split_prefix(key) else { continue };
            let is_content = RecordKind::CONTENT.contains(&kind);
            if is_content && !self.is_new(tree, id) {
                undo.add(key, before.get(key)?.as_deref(), after.as_deref());
            }
        }
        Ok(undo)
    }
}
