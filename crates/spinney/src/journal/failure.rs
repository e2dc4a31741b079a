//! What a failed write or sync of a journal means for everybody who comes after it.

use std::path::Path;

use spinney_core::backend::Revision;
use spinney_core::{Error, Result};

/// The first write or sync that failed, if one has: nothing is written after it.
#[derive(Default)]
pub struct Failure(Option<Lost>);

struct Lost {
    cause: Error,
    /// No revision below it has been lost.
    from: Revision,
}

impl Failure {
    /// Remembers a failure if it is the first one; no revision below `lost_from` has been lost.
    /// Returns the cause of the first one.
    pub fn keep(&mut self, cause: Error, lost_from: Revision) -> Error {
        let lost = || Lost { cause: cause.at("sync"), from: lost_from };
        self.0.get_or_insert_with(lost).cause.clone()
    }

    /// Whether there has been one.
    pub fn is_some(&self) -> bool {
        self.0.is_some()
    }

    /// Refuses to promise a revision that may be lost.
    pub fn refuse_lost(&self, revision: Revision) -> Result<()> {
        match &self.0 {
            Some(lost) if lost.from <= revision => Err(lost.cause.clone()),
            _ => Ok(()),
        }
    }

    /// Refuses writes to the store at a path.
    pub fn refuse_writes(&self, path: &Path) -> Result<()> {
        match &self.0 {
            None => Ok(()),
            Some(lost) => Err(Error::closed(format!(
                "`{}` refuses writes after a failed sync; reopen the store",
                path.display()
            ))
            .with_source(lost.cause.clone())),
        }
    }
}
