//! The contract of a system of this suite: a collection of numbered documents.
//!
//! A system stores and reads them in its own best way; it knows nothing of clocks, tries or records.

use std::ops::RangeInclusive;

use serde_json::{Value as Json, json};
use spinney_core::Result;

use super::Set;
use super::rows::Operation;
use crate::answer::Answer;

/// How a document travels, where a system has a choice. It is also the layout that rows work on: a
/// system that keeps documents and leaves apart keeps what was put this way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum By {
    /// In one call, as a native value.
    Document,
    /// One call a leaf.
    Leaf,
}

/// How a document is read back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reading {
    /// In one call, as a native value.
    Whole,
    /// Node by node: at each level one sibling after the other, and each leaf by a call of its own.
    Nested,
    /// By one cursor over the leaves of the document.
    Cursor,
}

/// Takes what is read, a document or a leaf after the other, with its number.
pub type Each<'a> = &'a mut dyn FnMut(usize, Answer) -> Result<()>;

/// Takes the numbers of documents that are found, in their order.
pub type Found<'a> = &'a mut dyn FnMut(usize) -> Result<()>;

/// An open store with one collection, empty at first. Each write is one commit, acknowledged at the
/// level of the store on return.
///
/// # Errors
/// All operations: whatever the store reports; `Unsupported` drops the row for this system with the
/// text as the reason.
pub trait Collection {
    /// Why it has no such row: its documents, or what it can be asked, are of another kind.
    fn lacks(&self, operation: Operation) -> Option<String> {
        let _ = operation;
        None
    }

    /// Does a whole row over the first `len` documents at once, and how many that were: for a store with a
    /// language of its own, which documents do not leave. `None` where a row is the calls below.
    fn perform(&mut self, operation: Operation, set: &Set, len: usize) -> Result<Option<usize>> {
        let _ = (operation, set, len);
        Ok(None)
    }

    /// Stores these documents in one commit; they were not there.
    fn set(&mut self, by: By, set: &Set, numbers: RangeInclusive<usize>) -> Result<()>;

    /// Replaces these documents, stored whole, by [`Set::changed`], in one commit.
    fn replace(&mut self, set: &Set, numbers: RangeInclusive<usize>) -> Result<()>;

    /// Removes all documents; never measured.
    fn clear(&mut self) -> Result<()>;

    /// Rebuilds each document, by its number, of one state; no more of it is kept between calls than
    /// the handle.
    fn get(&mut self, reading: Reading, set: &Set, each: Each<'_>) -> Result<()>;

    /// All documents in the order of their numbers, by one cursor: over leaves, or whole.
    fn scan(&mut self, by: By, set: &Set, each: Each<'_>) -> Result<()>;

    /// The leaf of [`Set::leaf`] of each document, by path, of one state.
    fn get_leaves(&mut self, set: &Set, each: Each<'_>) -> Result<()>;

    /// Changes that leaf of these documents, and nothing else, in one commit.
    fn set_leaves(&mut self, set: &Set, numbers: RangeInclusive<usize>) -> Result<()>;

    /// The documents whose leaf at [`Set::leaf`] is [`Set::wanted`], found by looking at each.
    fn find(&mut self, set: &Set, each: Found<'_>) -> Result<()>;

    /// The calls to the store since the last question; `None` where no leaves or nodes are called for.
    fn calls(&mut self) -> Option<Calls> {
        None
    }

    /// Finishes all background work; never measured.
    fn settle(&mut self) -> Result<()> {
        Ok(())
    }

    /// The processes besides this one that sync what it commits.
    fn processes(&self) -> Vec<u32> {
        Vec::new()
    }

    /// The bytes of a store that keeps nothing in its folder.
    fn memory_bytes(&self) -> Option<u64> {
        None
    }
}

/// Calls to a store, as the published pages count them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Calls {
    /// A leaf is set.
    pub set: u64,
    /// An empty list, or an element that is a container, is made for leaves to stand in.
    pub make: u64,
    /// A leaf is read.
    pub get: u64,
    /// A node is asked for what it is.
    pub def: u64,
    /// A level is begun, or a sibling found.
    pub nxt: u64,
    /// A level has ended, which the published pages do not count.
    pub nxt_end: u64,
    /// A leaf is moved to.
    pub nxq: u64,
    /// There was none left, which they do not count either.
    pub nxq_end: u64,
    /// A cursor is made.
    pub cur: u64,
}

impl Calls {
    /// Both together.
    pub(crate) fn plus(self, more: Calls) -> Calls {
        Calls {
            set: self.set + more.set,
            make: self.make + more.make,
            get: self.get + more.get,
            def: self.def + more.def,
            nxt: self.nxt + more.nxt,
            nxt_end: self.nxt_end + more.nxt_end,
            nxq: self.nxq + more.nxq,
            nxq_end: self.nxq_end + more.nxq_end,
            cur: self.cur + more.cur,
        }
    }

    /// Moves of a cursor over leaves: one that ends with its document says so, one that does not
    /// oversteps to a leaf of the next.
    pub fn leaf_moves(&self) -> u64 {
        self.nxq + self.nxq_end
    }

    /// Whether the same work was done: cursors, and what lists are made of, are each system's own.
    pub(crate) fn agrees(&self, expected: &Calls) -> bool {
        let common = |calls: &Calls| (calls.set, calls.get, calls.def, calls.nxt, calls.nxt_end);
        common(self) == common(expected) && self.leaf_moves() == expected.leaf_moves()
    }

    /// As the field `counts` of records.
    pub(crate) fn to_json(self) -> Json {
        let Calls { set, make, get, def, nxt, nxt_end, nxq, nxq_end, cur } = self;
        json!({
            "set": set, "make": make, "get": get, "def": def, "nxt": nxt, "nxt_end": nxt_end,
            "nxq": nxq, "nxq_end": nxq_end, "cur": cur,
        })
    }
}
