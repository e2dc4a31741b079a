//! Reads that begin at a container which an earlier read of the same state led through.
//!
//! It must not know who keeps a [`Waypoint`], or for how long.

use std::sync::Arc;

use super::{Absent, Bytes, KEY_LEN_USUAL, Slot, View};
use crate::error::Result;
use crate::key::Key;
use crate::path;

/// A container in pages that a path led through.
#[derive(Clone, Debug)]
pub struct Passed<'s> {
    path_len: usize,
    container: Slot<'s>,
    /// The body of the page that holds the next member of the path, or would, when it is a map.
    pub(super) page: Option<Slot<'s>>,
}

impl<'s> Passed<'s> {
    pub(super) fn through(path_len: usize, container: Slot<'s>) -> Passed<'s> {
        Passed { path_len, container, page: None }
    }

    /// Bytes of the path up to it.
    pub fn path_len(&self) -> usize {
        self.path_len
    }

    /// Where the page that was read lies in memory; 0 when there is none. Only as good as a guess
    /// whether two reads used the same page.
    pub fn page_address(&self) -> usize {
        self.page.as_ref().map_or(0, |page| page.bytes.as_ptr() as usize)
    }

    /// The container for other reads, with a copy of the page if that is wanted.
    pub fn waypoint(&self, with_page: bool) -> Waypoint {
        let container = Slot::owned(self.container.tree, self.container.encoded());
        let page = self.page.as_ref().filter(|_| with_page);
        let page = page.map(|page| Arc::from(page.encoded()));
        Waypoint { path_len: self.path_len, container, page }
    }
}

/// A container in pages, kept, and perhaps one of its pages.
#[derive(Debug)]
pub struct Waypoint {
    /// Bytes of the path up to it.
    pub path_len: usize,
    container: Slot<'static>,
    /// The body of a page of a map, whose checksum was checked when it was read.
    page: Option<Arc<[u8]>>,
}

impl<'s> View<'s> {
    /// The node at a path that leads through a container of the same state to a member of it or
    /// below. Otherwise as [`View::descend`].
    ///
    /// # Errors
    /// As [`View::resolve`].
    #[inline]
    pub fn descend_from(
        &self,
        waypoint: &Waypoint,
        path: &str,
        passed: &mut Option<Passed<'s>>,
    ) -> Result<Option<Slot<'s>>> {
        let from = waypoint.path_len;
        let mut key = Vec::with_capacity(KEY_LEN_USUAL);
        if let Some(page) = &waypoint.page
            && let Some(part) = path::parts(&path[from..]).next()
        {
            Key::new(&path::unescape(part)).encode(&mut key);
            let tree = waypoint.container.tree;
            let mut slot =
                Slot { tree, range: 0..page.len(), bytes: Bytes::Shared(Arc::clone(page)) };
            match slot.enter_page(&key)? {
                Ok(()) => {
                    self.follow(&mut slot)?;
                    let from = from + 1 + part.len();
                    return self.descend_with(slot, path, from, passed, &mut key);
                }
                Err(Absent::Within) => return Ok(None),
                Err(Absent::Beside) => {}
            }
        }
        self.descend_with(waypoint.container.clone(), path, from, passed, &mut key)
    }
}
