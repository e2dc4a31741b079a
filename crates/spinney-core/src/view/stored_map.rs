//! A map in pages as a whole, for who copies it: pages that refer to nothing are the same under
//! another id.

use std::ops::Bound;

use smallvec::{SmallVec, smallvec};

use super::{PageRecord, View, damaged_page};
use crate::backend::TreeId;
use crate::error::Result;
use crate::layout::{PREFIX_LEN, RecordKind, prefix};
use crate::node::{self, Node};
use crate::page::Page;
use crate::record::{ContainerHead, SEAL_LEN, seal};
use crate::visit::Container;

/// A map in pages.
pub struct StoredMap<'s> {
    view: View<'s>,
    tree: TreeId,
    id: u64,
}

impl<'s> StoredMap<'s> {
    pub(super) fn new(view: View<'s>, tree: TreeId, id: u64) -> StoredMap<'s> {
        StoredMap { view, tree, id }
    }

    /// How many levels of containers its members have; `None` when something lies outside of its pages.
    ///
    /// # Errors
    /// `Corrupted` for damage.
    ///
    /// # Complexity
    /// O(size), up to the first reference.
    pub fn levels(&self) -> Result<Option<usize>> {
        let first = prefix(self.tree, RecordKind::Page, self.id);
        let mut levels = 0;
        for record in self.view.pages(self.tree, self.id, Bound::Included(&first))? {
            let (key, value) = record?;
            let record = PageRecord::open(key, value)?;
            match levels_of(&record.page(Container::Map)?).ok_or_else(damaged_page)? {
                None => return Ok(None),
                Some(found) => levels = levels.max(found),
            }
        }
        Ok(Some(levels))
    }

    /// Hands over its records as those of a map of another id; [`StoredMap::levels`] has said that they
    /// refer to nothing.
    ///
    /// # Errors
    /// `Corrupted` for damage; those of `put`.
    pub fn copy(
        &self,
        tree: TreeId,
        id: u64,
        mut put: impl FnMut(&[u8], &[u8]) -> Result<()>,
    ) -> Result<()> {
        let first = prefix(self.tree, RecordKind::Page, self.id);
        let mut copy = Vec::new();
        let mut new_key = Vec::new();
        for record in self.view.pages(self.tree, self.id, Bound::Included(&first))? {
            let (key, value) = record?;
            new_key.clear();
            new_key.extend_from_slice(&prefix(tree, RecordKind::Page, id));
            new_key.extend_from_slice(&key[PREFIX_LEN..]);
            copy.clear();
            copy.extend_from_slice(&value);
            copy[..SEAL_LEN].fill(0);
            seal(&new_key, &mut copy);
            put(&new_key, &copy)?;
        }
        let head = ContainerHead::load(self.view.snapshot, self.tree, self.id)?;
        put(&ContainerHead::key(tree, id), &head.encode(tree, id))
    }
}

/// The levels of containers in a page's members; the inner `None` for a reference to something outside,
/// the outer for damage.
fn levels_of(page: &Page<'_>) -> Option<Option<usize>> {
    let mut levels = 0;
    let mut pages: SmallVec<[(Page<'_>, usize); 8]> = smallvec![(*page, 1)];
    while let Some((page, level)) = pages.pop() {
        for entry in page.entries_from(0) {
            let (.., value) = entry?;
            // Most members of records are.
            if node::is_scalar(value) {
                continue;
            }
            match node::read(value)?.node {
                Node::Scalar(_) => {}
                Node::Inline(container, body) => {
                    levels = levels.max(level);
                    pages.push((Page::parse(container, body)?, level + 1));
                }
                _ => return Some(None),
            }
        }
    }
    Some(Some(levels))
}
