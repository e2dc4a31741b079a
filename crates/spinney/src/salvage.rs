//! Reading what can still be read of a damaged store, and telling what cannot.
//!
//! Damage inside one page loses only what that page holds. Nothing here recurses, and nothing here
//! knows where the output goes.

use std::collections::HashSet;
use std::ops::ControlFlow;

use spinney_core::backend::TreeId;
use spinney_core::check::trees;
use spinney_core::limits::DEPTH_MAX;
use spinney_core::node::{self, LongForm, Node};
use spinney_core::view::{Cursor, Slot, View};
use spinney_core::{Container, Error, Key, Path, Result, Scalar, Text, Visitor};

use crate::Snapshot;

/// Errors of one container after which the rest of it is given up: an engine that no longer moves
/// on would give the same one for ever.
const FAILURES_MAX: u32 = 1 << 20;

/// Something that could not be read.
#[derive(Clone, Debug)]
pub struct Loss {
    /// Where: the node, or the container of which members are lost. Positions of a list count the
    /// elements that were read.
    pub path: Path,
    /// What is lost and why.
    pub error: Error,
}

impl Snapshot {
    /// Drives a visitor over everything that can be read, leaves out the rest, and tells `lost`
    /// what that is.
    ///
    /// Trees whose names are lost follow under `lost tree N`.
    ///
    /// # Errors
    /// Those of the visitor; `Denied` to who may not read everything; `Unsupported` where trees are kept apart: open the damaged one alone.
    pub fn salvage(
        &self,
        visitor: &mut (impl Visitor + ?Sized),
        lost: &mut dyn FnMut(Loss),
    ) -> Result<()> {
        if self.apart("").is_some() {
            return Err(crate::forest::refusal());
        }
        self.require_whole()?;
        let view = self.view();
        let mut salvage = Salvage {
            view,
            visitor,
            lost,
            path: Path::root(),
            stack: Vec::new(),
            seen: HashSet::new(),
            trees: HashSet::from([0]),
            root_losses: 0,
        };
        salvage.run()
    }
}

struct Salvage<'s, 'v, V: ?Sized> {
    view: View<'s>,
    visitor: &'v mut V,
    lost: &'v mut dyn FnMut(Loss),
    path: Path,
    stack: Vec<Frame<'s>>,
    /// Containers in pages that were read, so that damage cannot make a circle.
    seen: HashSet<(TreeId, u64)>,
    trees: HashSet<TreeId>,
    /// Losses in the store's root itself.
    root_losses: u64,
}

/// A container that is being read.
struct Frame<'s> {
    slot: Slot<'s>,
    cursor: Cursor<'s>,
    /// Members that were read or whose own loss was told.
    members: u64,
    /// The key before, where it is a map.
    last: Option<String>,
    /// What was met since that key.
    gap: Option<Error>,
    has_gaps: bool,
    /// Whether its end was reached and what is missing was told.
    is_told: bool,
    failures: u32,
}

/// A node that reads.
struct Found<'s> {
    slot: Slot<'s>,
    body: Body<'s>,
}

enum Body<'s> {
    Scalar,
    Long(LongForm, Vec<u8>),
    Container(Container, Box<Cursor<'s>>),
}

impl<'s, V: Visitor + ?Sized> Salvage<'s, '_, V> {
    fn run(&mut self) -> Result<()> {
        match self.view.root().and_then(|root| self.find(root)) {
            Ok(root) => self.enter(root)?,
            Err(error) => {
                self.lose(error);
                let mut empty = Vec::new();
                node::write_inline(Container::Map, &[], &mut empty);
                let root = self.find(Slot::owned(0, &empty))?;
                self.enter(root)?;
            }
        }
        while !self.stack.is_empty() {
            self.step()?;
        }
        Ok(())
    }

    fn lose(&mut self, error: Error) {
        if self.stack.len() <= 1 {
            self.root_losses += 1;
        }
        (self.lost)(Loss { path: self.path.clone(), error });
    }

    /// Reads the next member of the innermost container, or ends it.
    fn step(&mut self) -> Result<()> {
        let frame = self.stack.last_mut().expect("a container is open");
        let segment = match frame.next() {
            ControlFlow::Break(()) => return self.leave(),
            ControlFlow::Continue(None) => return Ok(()),
            ControlFlow::Continue(Some(segment)) => segment,
        };
        let container = frame.cursor.container();
        if let Some(error) = frame.gap.take() {
            let between = frame.between(Some(&segment));
            self.lose(error.at(between));
        }
        let frame = self.stack.last_mut().expect("a container is open");
        frame.members += 1;
        frame.last = (container == Container::Map).then(|| segment.clone());
        let slot = frame.cursor.slot();
        self.path.push(&segment);
        match slot.and_then(|slot| self.find(slot)) {
            Ok(found) => {
                if container == Container::Map {
                    self.visitor.key(Key::new(&segment))?;
                }
                self.enter(found)
            }
            Err(error) => {
                self.lose(error);
                self.path.pop();
                Ok(())
            }
        }
    }

    /// Reads a node as far as it must be read before anything of it is told.
    fn find(&mut self, mut slot: Slot<'s>) -> Result<Found<'s>> {
        if let Node::Tree(tree) = slot.read()?.node {
            self.trees.insert(tree);
        }
        self.view.follow(&mut slot)?;
        let annotated = slot.read()?;
        if node::meta_entries(annotated.meta).any(|entry| entry.is_none()) {
            return Err(Error::corrupted("its metadata does not read"));
        }
        let body = match annotated.node {
            Node::Scalar(_) => Body::Scalar,
            Node::Tree(_) => return Err(Error::corrupted("a tree's root refers to a tree")),
            Node::Long(long) => {
                let bytes = self.view.long(slot.tree, long)?;
                if long.form != LongForm::Bytes && std::str::from_utf8(&bytes).is_err() {
                    return Err(Error::corrupted("a long text is not UTF-8"));
                }
                Body::Long(long.form, bytes)
            }
            Node::Inline(container, _) | Node::Paged(container, _) => {
                if self.stack.len() > DEPTH_MAX {
                    return Err(Error::corrupted("the tree is deeper than it can be"));
                }
                if let Node::Paged(_, id) = annotated.node
                    && !self.seen.insert((slot.tree, id))
                {
                    return Err(Error::corrupted("its container belongs to another node"));
                }
                let cursor = self.view.cursor(&slot)?;
                Body::Container(container, Box::new(cursor.expect("a container has a cursor")))
            }
        };
        Ok(Found { slot, body })
    }

    /// Tells a node that reads; the members of a container follow.
    fn enter(&mut self, found: Found<'s>) -> Result<()> {
        let annotated = found.slot.read()?;
        for (name, value) in node::meta_entries(annotated.meta).flatten() {
            self.visitor.meta(name, value)?;
        }
        match (found.body, annotated.node) {
            (Body::Container(container, cursor), _) => {
                self.visitor.open(container)?;
                let slot = found.slot.clone();
                self.stack.push(Frame::new(slot, *cursor));
                return Ok(());
            }
            (Body::Scalar, Node::Scalar(scalar)) => self.visitor.scalar(scalar)?,
            (Body::Scalar, _) => unreachable!("`find` has read a scalar"),
            (Body::Long(form, bytes), _) => self.visitor.scalar(match form {
                LongForm::Bytes => Scalar::Bytes(&bytes),
                _ => Scalar::String(Text::new(std::str::from_utf8(&bytes).unwrap_or_default())),
            })?,
        }
        self.path.pop();
        Ok(())
    }

    /// Ends the innermost container.
    fn leave(&mut self) -> Result<()> {
        self.tell_missing();
        if self.stack.len() == 1 && self.root_losses > 0 && self.enter_unnamed_tree()? {
            return Ok(());
        }
        self.visitor.close()?;
        self.stack.pop();
        self.path.pop();
        Ok(())
    }

    /// Tells what of the innermost container is lost, once it has ended.
    fn tell_missing(&mut self) {
        let frame = self.stack.last_mut().expect("a container is open");
        if std::mem::replace(&mut frame.is_told, true) {
            return;
        }
        let gap = frame.gap.take().map(|error| error.at(frame.between(None)));
        let (members, has_gaps) = (frame.members, frame.has_gaps);
        let count = self.view.count(&frame.slot);
        if let Some(error) = gap {
            self.lose(error);
        }
        match count {
            Ok(Some(count)) if count > members => {
                let missing = count - members;
                self.lose(Error::corrupted(format!(
                    "in all, {missing} of {count} members are lost"
                )));
            }
            Err(error) if !has_gaps => {
                self.lose(error.at("whether members are lost is not known"));
            }
            _ => {}
        }
    }

    /// Goes on with a tree that no member of the root refers to.
    fn enter_unnamed_tree(&mut self) -> Result<bool> {
        for tree in trees(self.view.snapshot).unwrap_or_default() {
            if !self.trees.insert(tree) {
                continue;
            }
            let name = format!("lost tree {tree}");
            self.path.push(&name);
            match self.view.tree_root(tree).and_then(|root| root.map(|r| self.find(r)).transpose())
            {
                Ok(Some(root)) => {
                    self.visitor.key(Key::new(&name))?;
                    self.enter(root)?;
                    return Ok(true);
                }
                Ok(None) => {}
                Err(error) => self.lose(error),
            }
            self.path.pop();
        }
        Ok(false)
    }
}

impl<'s> Frame<'s> {
    fn new(slot: Slot<'s>, cursor: Cursor<'s>) -> Frame<'s> {
        Frame {
            slot,
            cursor,
            members: 0,
            last: None,
            gap: None,
            has_gaps: false,
            is_told: false,
            failures: 0,
        }
    }

    /// The segment of the next member; nothing where one does not read; the end.
    fn next(&mut self) -> ControlFlow<(), Option<String>> {
        if self.is_told {
            return ControlFlow::Break(());
        }
        let segment = match self.cursor.advance() {
            Ok(false) => return ControlFlow::Break(()),
            Ok(true) => self.segment(),
            Err(error) => Err(error),
        };
        match segment {
            Ok(segment) => ControlFlow::Continue(Some(segment)),
            Err(_) if self.failures == FAILURES_MAX => ControlFlow::Break(()),
            Err(error) => {
                self.failures += 1;
                self.has_gaps = true;
                self.gap.get_or_insert(error);
                ControlFlow::Continue(None)
            }
        }
    }

    fn segment(&self) -> Result<String> {
        Ok(match self.cursor.container() {
            Container::Map => self.cursor.key(&mut Vec::new())?.to_string(),
            Container::List => self.members.to_string(),
        })
    }

    /// Where a gap lies that ends before the member `next`.
    fn between(&self, next: Option<&str>) -> String {
        let after = match self.cursor.container() {
            Container::Map => self.last.as_ref().map(|key| format!(" after `{key}`")),
            Container::List => self.members.checked_sub(1).map(|last| format!(" after `{last}`")),
        };
        let before = next
            .filter(|_| self.cursor.container() == Container::Map)
            .map(|key| format!(" before `{key}`"));
        format!("members{}{}", after.unwrap_or_default(), before.unwrap_or_default())
    }
}
