//! Trying again what another writer came before: one rule for commits, for maintenance and for looks.
//!
//! It must not know what is tried.

use crate::backend::{Backend, Batch, Change, Outcome, Snapshot};
use crate::error::{Error, Result};

/// Conflicts after which a write gives up.
const CONFLICTS_MAX: u32 = 64;

/// Tries until no other writer came first, which a try tells by `None`; it is given how often that was so.
///
/// # Errors
/// Those of a try; `Conflict` after 64 of them.
pub fn try_again<T>(mut try_once: impl FnMut(u32) -> Result<Option<T>>) -> Result<T> {
    for conflicts in 0..CONFLICTS_MAX {
        if let Some(done) = try_once(conflicts)? {
            return Ok(done);
        }
    }
    Err(Error::conflict(format!("the store changed under {CONFLICTS_MAX} tries of a write")))
}

/// What a try came to that no commit has confirmed, an error too; `None` when the state it has seen is not the
/// newest. The caller still holds the write guard.
///
/// # Errors
/// The try's; those of [`Backend::is_newest`].
pub fn if_newest<T>(backend: &dyn Backend, tried: Result<T>) -> Result<Option<T>> {
    match backend.is_newest()? {
        true => tried.map(Some),
        false => Ok(None),
    }
}

/// Commits the maintenance that a plan finds to do in the newest state, if it finds any, and returns what else the
/// plan has told.
///
/// # Errors
/// The plan's; those of the backend; `Conflict` after 64 tries.
pub fn maintain<T>(
    backend: &dyn Backend,
    mut plan: impl FnMut(&dyn Snapshot) -> Result<(Vec<Change>, T)>,
) -> Result<T> {
    try_again(|conflicts| {
        let _guard = backend.write_guard(conflicts)?;
        let planned = backend.snapshot().and_then(|snapshot| {
            let (changes, told) = plan(&*snapshot)?;
            Ok((Batch { revision: snapshot.revision()?, changes, ..Batch::default() }, told))
        });
        match planned {
            Ok((batch, told)) if !batch.changes.is_empty() => match backend.commit(batch)? {
                Outcome::Committed(_) => Ok(Some(told)),
                Outcome::Conflict => Ok(None),
            },
            unconfirmed => if_newest(backend, unconfirmed.map(|(_, told)| told)),
        }
    })
}
