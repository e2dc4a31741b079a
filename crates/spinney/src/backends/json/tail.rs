//! The journal's end, and what was committed since the file was last printed.

use std::sync::Arc;

use spinney_core::backend::{Batch, Revision};
use spinney_core::{Error, Result};

use super::notes::{Content, Note, encode_start};
use crate::journal::{Ends, Entry, Failure, Holder, Journal, Position};

/// With more bytes buffered a commit writes them before it answers.
const BUFFER_LEN_MAX: usize = 1 << 20;

/// What commits add to.
pub struct Tail {
    pub journal: Journal,
    /// The newest revision.
    pub revision: Revision,
    /// What the file holds.
    pub content: Content,
    /// The diffs of the commits that the file lacks.
    pub diffs: Vec<Arc<[u8]>>,
    pub diffs_len: usize,
    ends: Ends,
    pub failure: Failure,
    body: Vec<u8>,
}

impl Holder for Tail {
    fn journal(&mut self) -> &mut Journal {
        &mut self.journal
    }
}

impl Tail {
    pub fn new(journal: Journal, content: Content, revision: Revision) -> Tail {
        Tail {
            journal,
            revision,
            content,
            diffs: Vec::new(),
            diffs_len: 0,
            ends: Ends::default(),
            failure: Failure::default(),
            body: Vec::new(),
        }
    }

    /// Makes room for a commit, so that adding it does not wait for the disk.
    pub fn make_room(&mut self, batch: &Batch) -> Result<()> {
        self.begin()?;
        self.journal.reserve(1 + batch.diff.len()).map(drop)
    }

    /// Adds a commit; nothing has changed after an error.
    pub fn append(&mut self, batch: &Batch, synced: Position) -> Result<()> {
        self.append_note(&Note::Diff(&batch.diff), batch.revision, batch.commit_id, synced)?;
        self.revision = batch.revision;
        self.diffs.push(Arc::clone(&batch.diff));
        self.diffs_len += batch.diff.len();
        self.ends.push(batch.revision, self.journal.end(), synced);
        Ok(())
    }

    /// Notes a content of the file.
    pub fn note(&mut self, note: &Note<'_>, synced: Position) -> Result<()> {
        self.append_note(note, self.revision, fastrand::u128(..), synced)
    }

    fn append_note(
        &mut self,
        note: &Note<'_>,
        revision: Revision,
        commit_id: u128,
        synced: Position,
    ) -> Result<()> {
        self.begin()?;
        self.body.clear();
        note.encode_into(&mut self.body);
        self.journal.append(&Entry { revision, commit_id, body: &self.body }, synced)
    }

    /// Begins the generation that nothing was added to yet.
    fn begin(&mut self) -> Result<()> {
        if self.journal.end().offset == 0 { self.start() } else { Ok(()) }
    }

    /// Begins the next generation, in the place of the one before the present.
    pub fn start(&mut self) -> Result<()> {
        self.journal.start(&encode_start(self.revision, &self.content))
    }

    pub fn is_full(&self) -> bool {
        self.journal.buffered_len() > BUFFER_LEN_MAX
    }

    /// Up to where the journal must be durable so that a revision is.
    pub fn end_of(&self, revision: Revision) -> Option<Position> {
        self.ends.end_of(revision)
    }

    /// The newest revision that is durable when all before a position is.
    pub fn durable(&self, synced: Position) -> Revision {
        self.ends.first_behind(synced).map_or(self.revision, |first| first - 1)
    }

    /// Takes the diffs that the file lacks; they come back when it could not be replaced.
    pub fn take_diffs(&mut self) -> Vec<Arc<[u8]>> {
        self.diffs_len = 0;
        std::mem::take(&mut self.diffs)
    }

    pub fn give_back(&mut self, mut diffs: Vec<Arc<[u8]>>) {
        self.diffs_len += diffs.iter().map(|diff| diff.len()).sum::<usize>();
        diffs.append(&mut self.diffs);
        self.diffs = diffs;
    }

    /// Refuses writes from now on.
    pub fn fail(&mut self, cause: Error, synced: Position) -> Error {
        let lost_from = self.ends.first_behind(synced).unwrap_or(self.revision + 1);
        self.failure.keep(cause, lost_from)
    }
}
