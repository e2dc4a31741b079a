//! What an engine lacks: the journal as far as this process has read or written it, and its records
//! as an overlay.
//!
//! The overlay is a superset of what the engine lacks, and where both have a key the overlay's is the
//! same or newer. It must not know engines, locks, files or when to sync.

use std::mem;
use std::sync::Arc;

use spinney_core::Result;
use spinney_core::backend::{RecordKey, Revision};
use spinney_core::byte_diff;
use spinney_core::overlay::{Overlay, Staged};

use super::changes::{self, Due, Encoded};
#[cfg(feature = "lmdb")]
use crate::journal::Followed;
use crate::journal::{Checkpointed, Ends, Entry, Event, Holder, Journal, Position};

/// The tail, under the store's lock.
pub struct Tail {
    pub journal: Journal,
    layers: Layers,
    /// The newest checkpoint that was seen.
    checkpointed: Checkpointed,
    ends: Ends,
    /// The newest revision that was committed or read here.
    pub revision: Revision,
    unwritten: Unwritten,
    /// Counts the states that this process has seen.
    version: u64,
    body: Vec<u8>,
}

/// Commits that are visible here and not in the journal. They will share a record, in which only
/// the last value of a key stands.
#[derive(Default)]
struct Unwritten {
    changes: Vec<Due>,
    /// Bytes of the changes, at most.
    len: usize,
    commits: usize,
    first: Revision,
    last: Revision,
    last_id: u128,
}

/// The overlay, and apart from it the generation that a checkpoint is to take over.
#[derive(Default)]
struct Layers {
    overlay: Overlay,
    frozen: Option<Frozen>,
}

struct Frozen {
    upto: Checkpointed,
    overlay: Overlay,
    /// What was staged since.
    since: Overlay,
}

impl Tail {
    pub fn new(journal: Journal) -> Tail {
        Tail {
            journal,
            layers: Layers::default(),
            checkpointed: Checkpointed::default(),
            ends: Ends::default(),
            revision: 0,
            unwritten: Unwritten::default(),
            version: 0,
            body: Vec::new(),
        }
    }

    /// Everything staged.
    pub fn overlay(&self) -> &Overlay {
        &self.layers.overlay
    }

    /// Names what the overlay and the engine's last seen state are together.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The generation that waits for its checkpoint.
    pub fn frozen(&self) -> Option<(Checkpointed, Overlay)> {
        self.layers.frozen.as_ref().map(|frozen| (frozen.upto, frozen.overlay.clone()))
    }

    /// Whether the engine has everything.
    pub fn is_empty(&self) -> bool {
        self.journal.end().offset == 0
            && self.layers.frozen.is_none()
            && self.unwritten.commits == 0
    }

    /// Reads the journal after a crash, when nobody else has the store open.
    pub fn recover(&mut self, checkpointed: Checkpointed) -> Result<()> {
        self.checkpointed = checkpointed;
        let Tail { journal, layers, revision, .. } = self;
        journal.recover(checkpointed, &mut |event| layers.take(event, checkpointed, revision))?;
        self.ends.read(0, self.journal.end());
        Ok(())
    }

    /// Goes to the beginning of what a checkpoint lacks.
    pub fn restart(&mut self, checkpointed: Checkpointed) {
        self.version += 1;
        self.checkpointed = checkpointed;
        self.journal.restart(checkpointed);
        self.layers = Layers::default();
        self.unwritten = Unwritten::default();
        self.ends.clear();
    }

    /// Stages a commit, for which there is room in the journal then. `engine_lacks` tells whether a key
    /// is not in the engine's newest state.
    pub fn stage(
        &mut self,
        revision: Revision,
        commit_id: u128,
        changes: Vec<(RecordKey, Staged)>,
        engine_lacks: impl Fn(&[u8]) -> bool,
    ) -> Result<()> {
        let len = self.unwritten.len + changes::encoded_len(&changes);
        self.journal.reserve(len)?;
        self.version += 1;
        let unwritten = &mut self.unwritten;
        unwritten.changes.extend(changes.into_iter().map(|(key, staged)| {
            let base = self.layers.stage(key.clone(), staged.clone(), &engine_lacks);
            Due { key, staged, base }
        }));
        if unwritten.commits == 0 {
            unwritten.first = revision;
        }
        (unwritten.len, unwritten.last, unwritten.last_id) = (len, revision, commit_id);
        unwritten.commits += 1;
        self.revision = revision;
        Ok(())
    }

    /// Bytes of the commits that are not in the journal.
    pub fn unwritten_len(&self) -> usize {
        self.unwritten.len
    }

    /// Whether something is staged that is not written.
    #[cfg(feature = "lmdb")]
    pub fn is_unwritten(&self) -> bool {
        self.unwritten.commits > 0 || self.journal.buffered_len() > 0
    }

    /// Whether a revision is not in the journal.
    pub fn lacks(&self, revision: Revision) -> bool {
        self.unwritten.commits > 0 && self.unwritten.first <= revision
    }

    /// Begins the next generation. The one before the present one must be in the checkpoint.
    pub fn start(&mut self) -> Result<()> {
        let upto = self.journal.checkpoint();
        self.journal.start(&[])?;
        self.layers.freeze(upto);
        Ok(())
    }

    /// Drops what a checkpoint has.
    pub fn checkpoint(&mut self, upto: Checkpointed) {
        self.layers.checkpoint(upto);
    }

    /// Hands the commits that are not in the journal to the system, as one record; `synced` is a
    /// position known to be synced. Nothing may be lent.
    pub fn write(&mut self, synced: Position) -> Result<()> {
        self.append(synced)?;
        self.journal.write()
    }

    /// Adds the commits that are not in the journal to its buffer, as one record; `synced` is a position
    /// known to be synced.
    pub fn append(&mut self, synced: Position) -> Result<()> {
        let unwritten = &mut self.unwritten;
        if unwritten.commits == 0 {
            return Ok(());
        }
        if unwritten.commits > 1 {
            changes::dedup(&mut unwritten.changes);
        }
        self.body.clear();
        changes::encode(&unwritten.changes, &mut self.body);
        let entry =
            Entry { revision: unwritten.last, commit_id: unwritten.last_id, body: &self.body };
        self.journal.append(&entry, synced)?;
        self.ends.push(unwritten.first, self.journal.end(), synced);
        unwritten.changes.clear();
        (unwritten.len, unwritten.commits) = (0, 0);
        Ok(())
    }

    /// Up to where the journal must be durable so that a revision is; `None` when it is.
    pub fn end_of(&self, revision: Revision) -> Option<Position> {
        let end = self.ends.end_of(revision)?;
        (end.generation > self.checkpointed.generation).then_some(end)
    }

    /// The first revision that is not known to be durable.
    pub fn first_behind(&self, synced: Position) -> Revision {
        match self.ends.first_behind(synced) {
            Some(revision) => revision,
            None if self.unwritten.commits > 0 => self.unwritten.first,
            None => Revision::MAX,
        }
    }
}

impl Holder for Tail {
    fn journal(&mut self) -> &mut Journal {
        &mut self.journal
    }
}

/// What only processes that share a store need.
#[cfg(feature = "lmdb")]
impl Tail {
    /// Reads what other processes have published since. What is gone has been checkpointed, which
    /// [`Tail::learn`] will tell.
    pub fn catch_up(&mut self, published: Position) -> Result<Followed> {
        if published <= self.journal.written() {
            return Ok(Followed::Reached);
        }
        self.version += 1;
        let first = self.revision + 1;
        let Tail { journal, layers, checkpointed, revision, .. } = self;
        let mut take = |event: Event<'_>| layers.take(event, *checkpointed, revision);
        let followed = journal.follow(published, &mut take)?;
        self.ends.read(first, self.journal.end());
        Ok(followed)
    }

    /// Learns of a checkpoint that the engine has; whether the journal must be read on before the
    /// overlay belongs over it.
    pub fn learn(&mut self, checkpointed: Checkpointed) -> bool {
        self.version += 1;
        self.checkpointed = checkpointed;
        if checkpointed.generation < self.journal.end().generation {
            self.layers.checkpoint(checkpointed);
            return false;
        }
        self.restart(checkpointed);
        true
    }

    /// Forgets what is not published, and what was read, so that it is read again.
    pub fn reset(&mut self) {
        self.restart(self.checkpointed);
    }
}

impl Layers {
    /// Stages a change and returns the value that the present generation had for the key.
    ///
    /// Nothing needs to hide what neither the engine has nor a checkpoint is about to bring there: most
    /// of what comes and goes between two of them leaves no trace here.
    fn stage(
        &mut self,
        key: RecordKey,
        staged: Staged,
        engine_lacks: impl Fn(&[u8]) -> bool,
    ) -> Option<Arc<[u8]>> {
        match &mut self.frozen {
            None if staged.is_none() && engine_lacks(&key) => self.overlay.forget(&key)?,
            None => self.overlay.stage(key, staged)?,
            Some(frozen) => {
                self.overlay.stage(key.clone(), staged.clone());
                frozen.since.stage(key, staged)?
            }
        }
    }

    /// The value that the present generation has for a key.
    fn present(&self, key: &[u8]) -> Option<&[u8]> {
        let present = self.frozen.as_ref().map_or(&self.overlay, |frozen| &frozen.since);
        present.staged(key)?.as_deref()
    }

    fn take(
        &mut self,
        event: Event<'_>,
        checkpointed: Checkpointed,
        revision: &mut Revision,
    ) -> Result<()> {
        match event {
            Event::Start { before, .. } if before.generation <= checkpointed.generation => Ok(()),
            Event::Start { before, .. } => {
                self.freeze(before);
                Ok(())
            }
            Event::Entry(entry) => {
                *revision = entry.revision;
                changes::decode(entry.body, |key, encoded| {
                    let staged = match encoded {
                        Encoded::Absent => None,
                        Encoded::Whole(value) => Some(value.into()),
                        Encoded::Patch(patch) => {
                            let value =
                                self.present(key).and_then(|base| byte_diff::apply(base, patch));
                            Some(value.ok_or_else(changes::damaged)?.into())
                        }
                    };
                    self.stage(key.into(), staged, |_| false);
                    Ok(())
                })
            }
        }
    }

    /// Sets everything staged apart for a checkpoint; a generation begins only when the one before
    /// the last is in one.
    fn freeze(&mut self, upto: Checkpointed) {
        if let Some(frozen) = self.frozen.take() {
            self.overlay = frozen.since;
        }
        let overlay = self.overlay.clone();
        self.frozen = Some(Frozen { upto, overlay, since: Overlay::default() });
    }

    fn checkpoint(&mut self, upto: Checkpointed) {
        if let Some(frozen) =
            self.frozen.take_if(|frozen| frozen.upto.generation <= upto.generation)
        {
            drop(mem::replace(&mut self.overlay, frozen.since));
        }
    }
}
