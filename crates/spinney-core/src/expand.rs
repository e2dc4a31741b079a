//! Diffs that contain what they refer to, so that they apply anywhere.

use std::borrow::Cow;
use std::sync::Arc;

use crate::diff::{Diff, Op, What};
use crate::error::{Error, Result};
use crate::inline::{Frames, Visited};
use crate::key::Key;
use crate::node;
use crate::page::{self, Entry};
use crate::reclaim::references;
use crate::view::{Slot, View};
use crate::visit::{Container, Scalar, Visitor};

impl Diff {
    /// The same diff with every container and long value taken in: read before the commit from
    /// `before`, after it from `after`.
    ///
    /// # Errors
    /// Those of reading; `LimitExceeded` when one node does not fit 4 GiB.
    pub fn expand(&self, before: &View<'_>, after: &View<'_>) -> Result<Diff> {
        let take_in = |view: &View<'_>, op: &Op, side: &Option<Arc<[u8]>>| match side {
            Some(encoded) if op.what == What::Node => {
                let mut contained = ContainedBuilder::default();
                view.walk(&Slot::owned(op.tree, encoded), &mut contained)?;
                Ok(Some(contained.finish()))
            }
            other => Ok(other.clone()),
        };
        let mut ops = Vec::with_capacity(self.ops.len());
        for op in &self.ops {
            let (old, new) = (take_in(before, op, &op.old)?, take_in(after, op, &op.new)?);
            ops.push(Op { old, new, ..op.clone() });
        }
        Ok(Diff { ops })
    }

    /// The same diff with every new container and long value taken in, as it is read from `after`.
    /// It applies anywhere; what it replaces may stay a reference, so it cannot be inverted.
    ///
    /// # Errors
    /// As [`Diff::expand`].
    ///
    /// # Complexity
    /// That of what is new; nothing is copied when nothing refers to records.
    pub fn contained(&self, after: &View<'_>) -> Result<Cow<'_, Diff>> {
        let mut contained = Cow::Borrowed(self);
        for (index, op) in self.ops.iter().enumerate() {
            let (What::Node, Some(new)) = (op.what, &op.new) else { continue };
            let mut refers = false;
            references(new, |_| refers = true)
                .ok_or_else(|| Error::corrupted("a node in a diff does not read"))?;
            if refers {
                let mut builder = ContainedBuilder::default();
                after.walk(&Slot::owned(op.tree, new), &mut builder)?;
                contained.to_mut().ops[index].new = Some(builder.finish());
            }
        }
        Ok(contained)
    }
}

/// An encoded node that refers to nothing outside itself.
pub struct Contained<'a>(pub &'a [u8]);

impl Contained<'_> {
    /// Drives a visitor over the node.
    ///
    /// # Errors
    /// `Unsupported` when it refers to something outside; `Corrupted` when it does not read.
    pub fn visit(&self, visitor: &mut (impl Visitor + ?Sized)) -> Result<()> {
        let mut frames = Frames::default();
        let mut visited = || match frames.enter(self.0, self.0, visitor)? {
            Visited::Scalar => Ok(None),
            Visited::Elsewhere(reference) => Ok(Some(reference)),
            Visited::Opened => match frames.visit(0, self.0, visitor)? {
                None => visitor.close().map(|()| None),
                elsewhere => Ok(elsewhere),
            },
        };
        match visited()? {
            None => Ok(()),
            Some(_) => {
                Err(Error::unsupported("the diff holds a container by reference; expand it first"))
            }
        }
    }
}

/// An open container, with its members as encoded key or id, and node.
struct OpenContainer {
    container: Container,
    meta: Vec<u8>,
    /// Its own id, in a list.
    id: u64,
    members: Vec<(Vec<u8>, u64, Vec<u8>)>,
}

/// Encodes a node with everything inline, whatever its size.
#[derive(Default)]
pub(crate) struct ContainedBuilder {
    open: Vec<OpenContainer>,
    keys: Vec<Vec<u8>>,
    meta: Vec<(String, String)>,
    done: Vec<u8>,
    /// The id of the element that follows, in a list.
    id: u64,
}

impl ContainedBuilder {
    pub(crate) fn finish(self) -> Arc<[u8]> {
        self.done.into()
    }

    fn take_meta(&mut self) -> Vec<u8> {
        let meta = std::mem::take(&mut self.meta);
        node::encode_meta(meta.iter().map(|(name, value)| (&**name, &**value)))
    }

    fn add(&mut self, encoded: Vec<u8>) {
        match self.open.last_mut() {
            None => self.done = encoded,
            Some(OpenContainer { container: Container::Map, members, .. }) => {
                let key = self.keys.pop().expect("a key comes before each member");
                members.push((key, 0, encoded));
            }
            Some(OpenContainer { members, .. }) => members.push((Vec::new(), self.id, encoded)),
        }
    }
}

impl Visitor for ContainedBuilder {
    fn open(&mut self, container: Container) -> Result<()> {
        let meta = self.take_meta();
        self.open.push(OpenContainer { container, meta, id: self.id, members: Vec::new() });
        Ok(())
    }

    fn key(&mut self, key: Key<'_>) -> Result<()> {
        let mut encoded = Vec::new();
        key.encode(&mut encoded);
        self.keys.push(encoded);
        Ok(())
    }

    fn scalar(&mut self, scalar: Scalar<'_>) -> Result<()> {
        let mut encoded = Vec::new();
        node::write_meta(&self.take_meta(), &mut encoded);
        node::write_scalar(scalar, &mut encoded);
        self.add(encoded);
        Ok(())
    }

    fn close(&mut self) -> Result<()> {
        let OpenContainer { container, meta, id, members } =
            self.open.pop().expect("close comes after open");
        self.id = id;
        let mut body = Vec::new();
        let entry = |index: usize| {
            let (key, id, value) = &members[index];
            Entry { key, id: *id, value }
        };
        page::encode(container, members.len(), entry, None, &mut body);
        if body.len() > u32::MAX as usize {
            return Err(Error::limit_exceeded("a node is larger than 4 GiB; it stays a reference"));
        }
        let mut encoded = Vec::new();
        node::write_meta(&meta, &mut encoded);
        node::write_inline(container, &body, &mut encoded);
        self.add(encoded);
        Ok(())
    }

    fn meta(&mut self, name: &str, value: &str) -> Result<()> {
        self.meta.push((name.to_owned(), value.to_owned()));
        Ok(())
    }

    fn wants_element_ids(&self) -> bool {
        true
    }

    fn element(&mut self, id: u64) {
        self.id = id;
    }
}
