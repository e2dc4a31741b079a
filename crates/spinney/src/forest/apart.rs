//! The root of a store whose trees are kept apart: no state, no revisions, only why there are none.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use spinney_core::backend::{
    self, Backend, Batch, Bounds, Capabilities, Direction, Outcome, Records, Revision, WriteGuard,
};
use spinney_core::{Error, Result};

use super::Trees;

/// Refuses what needs one state of all trees.
pub(crate) struct Apart(pub Arc<dyn Trees>);

/// Why there is no state of everything.
pub(crate) fn refusal() -> Error {
    Error::unsupported(
        "each tree of this store has its own revisions, and the root has none; name a tree, by a path such as \
         `/people`, or open it alone, by `tree=people` in the URL",
    )
}

impl Backend for Apart {
    fn capabilities(&self) -> &Capabilities {
        self.0.capabilities()
    }

    fn snapshot(&self) -> Result<Box<dyn backend::Snapshot>> {
        Err(refusal())
    }

    fn write_guard(&self, _conflicts: u32) -> Result<Box<dyn WriteGuard + '_>> {
        Err(refusal())
    }

    fn commit(&self, _batch: Batch) -> Result<Outcome> {
        Err(refusal())
    }

    fn sync(&self, _revision: Revision) -> Result<()> {
        Err(refusal())
    }

    fn wait(&self, _after: Revision, _timeout: Duration) -> Result<Revision> {
        Err(refusal())
    }

    fn stats(&self) -> Result<Vec<(String, String)>> {
        self.0.stats()
    }
}

/// What stands for one state of the backend where there is none, and why.
pub(crate) struct NoState {
    refusal: fn() -> Error,
}

impl NoState {
    /// One that refuses everything.
    pub fn because(refusal: fn() -> Error) -> Box<dyn backend::Snapshot> {
        Box::new(NoState { refusal })
    }
}

impl backend::Snapshot for NoState {
    fn revision(&self) -> Result<Revision> {
        Err((self.refusal)())
    }

    fn get(&self, _key: &[u8]) -> Result<Option<Cow<'_, [u8]>>> {
        Err((self.refusal)())
    }

    fn range<'s>(&'s self, _bounds: Bounds<'_>, _direction: Direction) -> Result<Records<'s>> {
        Err((self.refusal)())
    }
}
