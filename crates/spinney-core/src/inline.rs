//! Reading what lies in one record in document order: nodes, and small containers within each other.
//!
//! A frame is a place in one container; frames stack, so depth is no recursion. What lies in other
//! records is handed back as a [`Reference`]; this module knows no engine.

use std::ops::Range;

use crate::backend::TreeId;
use crate::error::{Error, Result};
use crate::key::{Key, StoredKey};
use crate::limits::DEPTH_MAX;
use crate::node::{self, Annotated, Long, Node, damaged_node};
use crate::page::{Layout, Page, RawEntry};
use crate::stretch::Stretch;
use crate::visit::{Container, Visitor};

/// A node whose content lies in other records.
#[derive(Clone, Copy, Debug)]
pub enum Reference {
    /// The chunks of a long value.
    Long(Long),
    /// The pages of a container, under this id.
    Paged(Container, u64),
    /// Another tree.
    Tree(TreeId),
}

/// What visiting one node came to.
pub enum Visited {
    /// The node was a scalar.
    Scalar,
    /// A container is open; its frame is on the stack.
    Opened,
    /// The node is elsewhere.
    Elsewhere(Reference),
}

/// The open containers of one record and of the records that lead to it, outermost first.
#[derive(Default)]
pub struct Frames(Vec<Frame>);

struct Frame {
    layout: Layout,
    /// Where the page body lies in its record.
    body: Range<usize>,
    /// One above the member that it stands at.
    index: usize,
}

impl Frames {
    /// How many containers are open.
    pub fn depth(&self) -> usize {
        self.0.len()
    }

    /// Opens a frame before the first member of a page that lies in `record` at `body`.
    ///
    /// # Errors
    /// `Corrupted` when the page does not read, or lies deeper than any page can.
    pub fn push(&mut self, container: Container, record: &[u8], body: Range<usize>) -> Result<()> {
        let page = Page::parse(container, &record[body.clone()]).ok_or_else(damaged_page)?;
        self.push_frame(Frame { layout: page.layout, body, index: 0 })
    }

    fn push_frame(&mut self, frame: Frame) -> Result<()> {
        if self.0.len() >= 2 * DEPTH_MAX {
            return Err(Error::corrupted("the tree is deeper than it can be"));
        }
        self.0.push(frame);
        Ok(())
    }

    /// Moves the innermost frame before the first member of the next page of its container.
    ///
    /// # Errors
    /// `Corrupted` when the page does not read.
    pub fn turn(&mut self, record: &[u8], body: Range<usize>) -> Result<()> {
        let frame = self.0.last_mut().expect("a container is open");
        let page = Page::parse(frame.layout.container, &record[body.clone()]);
        *frame = Frame { layout: page.ok_or_else(damaged_page)?.layout, body, index: 0 };
        Ok(())
    }

    /// Closes the innermost frame.
    pub fn pop(&mut self) {
        self.0.pop();
    }

    /// Visits a node of `record`; a container's frame is pushed.
    ///
    /// # Errors
    /// `Corrupted`, and the visitor's.
    #[cold]
    pub fn enter(
        &mut self,
        record: &[u8],
        encoded: &[u8],
        visitor: &mut (impl Visitor + ?Sized),
    ) -> Result<Visited> {
        let Annotated { meta, node } = node::read(encoded).ok_or_else(damaged_node)?;
        for entry in node::meta_entries(meta) {
            let (name, value) = entry.ok_or_else(damaged_node)?;
            visitor.meta(name, value)?;
        }
        Ok(Visited::Elsewhere(match node {
            Node::Scalar(scalar) => {
                visitor.scalar(scalar)?;
                return Ok(Visited::Scalar);
            }
            Node::Inline(container, body) => {
                visitor.open(container)?;
                self.push(container, record, range_in(record, body))?;
                return Ok(Visited::Opened);
            }
            Node::Long(long) => Reference::Long(long),
            Node::Paged(container, id) => Reference::Paged(container, id),
            Node::Tree(tree) => Reference::Tree(tree),
        }))
    }

    /// Visits what is left of the innermost container and of those around it in `record`, up to the
    /// next reference, which the caller visits, or to the end of the container at `base`, which the
    /// caller closes.
    ///
    /// # Errors
    /// `Corrupted`, and the visitor's.
    pub fn visit(
        &mut self,
        base: usize,
        record: &[u8],
        visitor: &mut (impl Visitor + ?Sized),
    ) -> Result<Option<Reference>> {
        'frames: while let Some(frame) = self.0.last_mut() {
            let page = Page::with_layout(frame.layout, &record[frame.body.clone()]);
            for entry in page.entries_from(frame.index) {
                let entry = entry.ok_or_else(damaged_page)?;
                let (.., encoded) = entry;
                if node::is_scalar(encoded) {
                    visit_scalars(record, &page, &mut frame.index, visitor)?;
                    continue 'frames;
                }
                frame.index += 1;
                begin_member(record, &page, entry, visitor)?;
                if let Some((container, body)) = node::inline_body(encoded) {
                    visitor.open(container)?;
                    let page = Page::parse(container, body).ok_or_else(damaged_page)?;
                    let mut index = 0;
                    let visited = visit_scalars(record, &page, &mut index, visitor);
                    // Most small containers hold scalars only, so they need no frame.
                    if visited.is_ok() && index == page.count() {
                        visitor.close()?;
                        continue;
                    }
                    let (layout, body) = (page.layout, range_in(record, body));
                    self.push_frame(Frame { layout, body, index })?;
                    visited?;
                    continue 'frames;
                }
                match self.enter(record, encoded, visitor)? {
                    Visited::Elsewhere(reference) => return Ok(Some(reference)),
                    Visited::Scalar | Visited::Opened => continue 'frames,
                }
            }
            if self.0.len() == base + 1 {
                break;
            }
            visitor.close()?;
            self.0.pop();
        }
        Ok(None)
    }

    /// The path segment that a frame stands at, for errors; in a list that has more pages than
    /// this one only the element's id is known.
    pub fn segment(&self, depth: usize, record: &[u8], in_pages: bool) -> Option<String> {
        let Frame { layout, body, index } = self.0.get(depth)?;
        let page = Page::with_layout(*layout, record.get(body.clone())?);
        let index = index.checked_sub(1)?;
        Some(match layout.container {
            Container::Map => {
                let mut key = Vec::new();
                page.key_into(index, &mut key)?;
                Key::decode(&key)?.to_string()
            }
            Container::List if in_pages => format!("(element id {})", page.element(index)?.0),
            Container::List => index.to_string(),
        })
    }
}

/// Visits the members of a page from `index` on as long as they are scalars.
fn visit_scalars(
    record: &[u8],
    page: &Page<'_>,
    index: &mut usize,
    visitor: &mut (impl Visitor + ?Sized),
) -> Result<()> {
    for entry in page.entries_from(*index) {
        let entry = entry.ok_or_else(damaged_page)?;
        let (.., encoded) = entry;
        if !node::is_scalar(encoded) {
            break;
        }
        *index += 1;
        begin_member(record, page, entry, visitor)?;
        node::visit_scalar(record, encoded, visitor)?;
    }
    Ok(())
}

/// Visits what stands before the value of a member.
#[inline(always)]
fn begin_member(
    record: &[u8],
    page: &Page<'_>,
    (suffix, id, _): RawEntry<'_>,
    visitor: &mut (impl Visitor + ?Sized),
) -> Result<()> {
    match page.layout.container {
        Container::Map => visitor.stored_key(StoredKey {
            prefix: page.prefix(),
            suffix: Stretch::new(record, suffix),
        })?,
        Container::List if visitor.wants_element_ids() => visitor.element(id),
        Container::List => {}
    }
    Ok(())
}

/// Where `part`, a slice of `record`, lies in it.
#[inline]
pub fn range_in(record: &[u8], part: &[u8]) -> Range<usize> {
    let start = part.as_ptr() as usize - record.as_ptr() as usize;
    start..start + part.len()
}

#[cold]
pub(crate) fn damaged_page() -> Error {
    Error::corrupted("a stored page does not read; run `check` to find what is damaged")
}
