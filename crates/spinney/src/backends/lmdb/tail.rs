//! What the engine lacks, and since when this process knows it.

use std::ops::{Deref, DerefMut};

use spinney_core::{Error, Result};

use super::engine::{EngineSnapshot, Owner};
use super::shared::Shared;
use super::turnstile::Hold;
use crate::backends::staged;
use crate::journal::{Holder, Journal, Position};

/// The tail, under the store's lock.
pub struct Tail {
    staged: staged::Tail,
    /// The engine's transaction that the newest checkpoint was seen in.
    transaction: usize,
    /// Since which taking of the writer's lock the engine is known to show what it has.
    pub settled: u64,
    /// The writer's lock, while anything is unwritten.
    pub hold: Option<Hold>,
}

impl Tail {
    pub fn new(journal: Journal) -> Tail {
        let staged = staged::Tail::new(journal);
        Tail { staged, transaction: usize::MAX, settled: 0, hold: None }
    }

    /// Compares with a state of the engine; whether the journal must be read on before the overlay
    /// belongs over it.
    pub fn is_behind<O: Owner>(&mut self, engine: &EngineSnapshot<O>) -> Result<bool> {
        if engine.transaction() == self.transaction {
            return Ok(false);
        }
        let checkpointed = engine.checkpoint()?;
        self.transaction = engine.transaction();
        Ok(self.staged.learn(checkpointed))
    }

    /// Forgets what is not published, and what was read, so that it is read again.
    pub fn reset(&mut self) {
        self.staged.reset();
        self.hold = None;
    }

    /// Hands the commits that are not in the journal to the system, and tells the other processes;
    /// `synced` is a position known to be synced.
    pub fn write(&mut self, shared: &Shared, synced: Position) -> Result<()> {
        if self.is_unwritten() {
            self.staged.write(synced)?;
            shared.publish(self.journal.end());
        }
        Ok(())
    }

    /// The writer's lock, when it is not needed any more: the caller drops it outside of the tail's.
    pub fn release(&mut self) -> Option<Hold> {
        if self.is_unwritten() { None } else { self.hold.take() }
    }

    /// The error for published records that are neither in the journal nor in the engine.
    #[cold]
    pub fn lost(&self) -> Error {
        let end = self.journal.end();
        let path = self.journal.segments().path(end.generation);
        Error::corrupted(format!(
            "`{}` is damaged at byte {}, or was replaced while it was open; restore a backup",
            path.display(),
            end.offset
        ))
    }
}

impl Holder for Tail {
    fn journal(&mut self) -> &mut Journal {
        &mut self.staged.journal
    }
}

impl Deref for Tail {
    type Target = staged::Tail;

    fn deref(&self) -> &staged::Tail {
        &self.staged
    }
}

impl DerefMut for Tail {
    fn deref_mut(&mut self) -> &mut staged::Tail {
        &mut self.staged
    }
}
