//! Whole values in document order: frames in one record, and levels from record to record.

use std::ops::Bound;

use super::{Bytes, PageRecord, Slot, StoredMap, View};
use crate::Path;
use crate::backend::{Records, TreeId};
use crate::error::{Error, ErrorKind, Result};
use crate::inline::{Frames, Reference, Visited};
use crate::layout::{RecordKind, prefix};
use crate::node::Node;
use crate::visit::{Container, Visitor};

/// A container that begins in a record of its own, or a node that was asked for.
struct Level<'s> {
    tree: TreeId,
    /// The record that is being read.
    bytes: Bytes<'s>,
    /// The pages behind it.
    pages: Option<Records<'s>>,
    /// Its own frame; those of the containers in the same record follow.
    base: usize,
}

impl<'s> View<'s> {
    /// Drives `visitor` over a node and all below it, in order.
    ///
    /// # Errors
    /// `Corrupted` naming the path of the damage below `slot`; whatever the visitor returns.
    pub fn walk(&self, slot: &Slot<'s>, visitor: &mut (impl Visitor + ?Sized)) -> Result<()> {
        let mut walk = Walk { view: *self, levels: Vec::new(), frames: Frames::default() };
        walk.run(slot, visitor).map_err(|error| match error.kind() {
            ErrorKind::Corrupted => error.at(format_args!("at {} below it", walk.trail())),
            _ => error,
        })
    }
}

struct Walk<'s> {
    view: View<'s>,
    levels: Vec<Level<'s>>,
    frames: Frames,
}

impl<'s> Walk<'s> {
    fn run(&mut self, slot: &Slot<'s>, visitor: &mut (impl Visitor + ?Sized)) -> Result<()> {
        self.enter(slot, visitor)?;
        while let Some(level) = self.levels.last_mut() {
            let tree = level.tree;
            match self.frames.visit(level.base, &level.bytes, visitor)? {
                Some(reference) => self.follow(tree, reference, visitor)?,
                None if level.next_page(&mut self.frames)? => {}
                None => {
                    visitor.close()?;
                    self.frames.pop();
                    self.levels.pop();
                }
            }
        }
        Ok(())
    }

    fn enter(&mut self, slot: &Slot<'s>, visitor: &mut (impl Visitor + ?Sized)) -> Result<()> {
        let base = self.frames.depth();
        match self.frames.enter(&slot.bytes, slot.encoded(), visitor)? {
            Visited::Scalar => Ok(()),
            Visited::Elsewhere(reference) => self.follow(slot.tree, reference, visitor),
            Visited::Opened => {
                let bytes = slot.bytes.clone();
                self.levels.push(Level { tree: slot.tree, bytes, pages: None, base });
                Ok(())
            }
        }
    }

    fn follow(
        &mut self,
        tree: TreeId,
        reference: Reference,
        visitor: &mut (impl Visitor + ?Sized),
    ) -> Result<()> {
        match reference {
            Reference::Long(long) => self.view.visit_long(tree, long, visitor),
            Reference::Paged(Container::Map, id)
                if visitor.stored_map(&StoredMap::new(self.view, tree, id))? =>
            {
                Ok(())
            }
            Reference::Paged(container, id) => {
                visitor.open(container)?;
                let first = prefix(tree, RecordKind::Page, id);
                let pages = Some(self.view.pages(tree, id, Bound::Included(&first))?);
                let base = self.frames.depth();
                self.frames.push(container, &[], 0..0)?;
                let bytes = Bytes::Borrowed(&[]);
                self.levels.push(Level { tree, bytes, pages, base });
                Ok(())
            }
            Reference::Tree(tree) => {
                let root = self.view.existing_root(tree)?;
                match root.read()?.node {
                    Node::Tree(_) => Err(Error::corrupted("a tree's root refers to a tree")),
                    _ => self.enter(&root, visitor),
                }
            }
        }
    }

    /// The path that it stands at.
    fn trail(&self) -> Path {
        let mut path = Path::root();
        let ends = self.levels.iter().skip(1).map(|level| level.base);
        for (level, end) in self.levels.iter().zip(ends.chain([self.frames.depth()])) {
            for depth in level.base..end {
                let in_pages = depth == level.base && level.pages.is_some();
                match self.frames.segment(depth, &level.bytes, in_pages) {
                    Some(segment) => path.push(&segment),
                    None => return path,
                }
            }
        }
        path
    }
}

impl Level<'_> {
    /// Goes on to the next page of the container; false when there is none.
    fn next_page(&mut self, frames: &mut Frames) -> Result<bool> {
        let Some(record) = self.pages.as_mut().and_then(Iterator::next) else { return Ok(false) };
        let (key, value) = record?;
        let page = PageRecord::open(key, value)?;
        frames.turn(&page.bytes, page.body)?;
        self.bytes = page.bytes;
        Ok(true)
    }
}
