//! Reading a store whose trees are kept apart: one state of each tree, from when it is first read.

use std::cell::OnceCell;
use std::sync::Arc;

use spinney_core::check::Report;
use spinney_core::node::NodeKind;
use spinney_core::{Container, Key, Memory, Path, Result, Value, Visitor, path};

use super::Forest;
use crate::snapshot::{Member, Snapshot};
use crate::store::OpenOptions;

/// The states of the trees that were read.
pub(crate) struct Reading {
    forest: Arc<Forest>,
    first: OnceCell<Box<Opened>>,
    /// Which trees there are: a store in memory with a node of the same kind for each.
    catalogue: OnceCell<Snapshot>,
}

/// The state of a tree that was read, and what was read after it.
struct Opened {
    name: String,
    snapshot: Option<Snapshot>,
    next: OnceCell<Box<Opened>>,
}

impl Drop for Reading {
    fn drop(&mut self) {
        // One by one, however many there are.
        let mut next = self.first.take();
        while let Some(mut opened) = next {
            next = opened.next.take();
        }
    }
}

impl Reading {
    pub fn new(forest: Arc<Forest>) -> Reading {
        Reading { forest, first: OnceCell::new(), catalogue: OnceCell::new() }
    }

    /// What answers for a path: the state of its tree, or the catalogue for the root. `None` when
    /// there is no such tree.
    pub fn holder(&self, path: &str) -> Result<Option<&Snapshot>> {
        path::check(path)?;
        match path::segments(path).next() {
            Some(name) => self.tree(&name),
            None => self.catalogue().map(Some),
        }
    }

    fn tree(&self, name: &str) -> Result<Option<&Snapshot>> {
        let mut place = &self.first;
        while let Some(opened) = place.get() {
            if opened.name == name {
                return Ok(opened.snapshot.as_ref());
            }
            place = &opened.next;
        }
        let store = self.forest.tree(name, false)?;
        let snapshot = store.map(|store| store.read()).transpose()?;
        let opened = Opened { name: name.to_owned(), snapshot, next: OnceCell::new() };
        Ok(place.get_or_init(|| Box::new(opened)).snapshot.as_ref())
    }

    fn catalogue(&self) -> Result<&Snapshot> {
        if let Some(known) = self.catalogue.get() {
            return Ok(known);
        }
        let mut found = Vec::new();
        for name in self.forest.trees.names()? {
            let path = Path::root().child(&name);
            let Some(snapshot) = self.tree(&name)? else { continue };
            // One that was removed, or never written to, is not shown.
            if let Some(kind) = snapshot.kind(&path)? {
                found.push((path, kind));
            }
        }
        let store = OpenOptions::new().over(Arc::new(Memory::new()), None);
        store.write(|tx| found.iter().try_for_each(|(path, kind)| tx.set(path, &some(*kind))))?;
        let snapshot = store.read()?;
        Ok(self.catalogue.get_or_init(|| snapshot))
    }

    /// The trees that there are, each with its path and state.
    fn trees(&self) -> Result<Vec<(Member, Path, &Snapshot)>> {
        let mut trees = Vec::new();
        for member in self.catalogue()?.list("", None, None)?.unwrap_or_default() {
            let path = Path::root().child(&member.segment);
            let snapshot = self.tree(&member.segment)?;
            trees.push((member, path, snapshot.expect("a tree of the catalogue was read")));
        }
        Ok(trees)
    }

    /// Drives a visitor over all trees, one after the other.
    pub fn visit(&self, visitor: &mut (impl Visitor + ?Sized)) -> Result<()> {
        visitor.open(Container::Map)?;
        for (member, path, snapshot) in self.trees()? {
            visitor.key(Key::new(&member.segment))?;
            snapshot.visit(&path, visitor)?;
        }
        visitor.close()
    }

    /// Checks all trees, those that hold nothing any more, too.
    pub fn check(&self) -> Result<Report> {
        let mut sum = Report {
            nodes: 0,
            pages: 0,
            damaged: vec![],
            orphans: 0,
            ahead: 0,
            queued: 0,
            logged: 0,
        };
        for name in self.forest.trees.names()? {
            let Some(snapshot) = self.tree(&name)? else { continue };
            let report = snapshot.check()?;
            sum.nodes += report.nodes;
            sum.pages += report.pages;
            sum.damaged.extend(report.damaged);
            sum.orphans += report.orphans;
            sum.ahead += report.ahead;
            sum.queued += report.queued;
            sum.logged += report.logged;
        }
        Ok(sum)
    }
}

/// A value of a kind.
fn some(kind: NodeKind) -> Value {
    match kind {
        NodeKind::Map => Value::Map(Default::default()),
        NodeKind::List => Value::List(Default::default()),
        NodeKind::String => "".into(),
        NodeKind::Number => 0.into(),
        NodeKind::Bool => false.into(),
        NodeKind::Bytes => Value::Bytes(Vec::new()),
        NodeKind::Null => Value::Null,
    }
}
