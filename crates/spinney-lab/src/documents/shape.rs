//! What a document consists of: the calls that make it leaf by leaf, and how many calls each phase makes.

use spinney::Value;
use spinney_core::read::Leaves;
use spinney_core::{Path, Result};

use super::collection::Calls;

/// Something that is set.
pub struct Step {
    /// From the document on; elements of lists are appended.
    pub path: Path,
    /// A leaf, or an empty container.
    pub value: Value,
    /// Whether it is a leaf, and not what later ones stand in.
    pub is_leaf: bool,
}

/// What a document consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    /// I: containers with members.
    inner: u64,
    /// L: scalars, and containers without members.
    leaves: u64,
}

impl Shape {
    pub(super) fn calls(self, phase: Phase) -> Calls {
        let Shape { inner, leaves } = self;
        let edges = inner + leaves - 1;
        match phase {
            Phase::Set => Calls { set: leaves, ..Calls::default() },
            Phase::Nested => Calls {
                get: leaves,
                def: 1 + edges,
                nxt: inner + edges,
                nxt_end: inner,
                ..Calls::default()
            },
            Phase::Cursor => Calls { def: 1, nxt: 1, nxq: leaves, nxq_end: 1, ..Calls::default() },
        }
    }
}

/// A phase whose calls are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Each leaf is set.
    Set,
    /// Each node is looked at, its siblings one after the other.
    Nested,
    /// Each leaf is moved to.
    Cursor,
}

impl Shape {
    pub(super) fn of(document: &Value) -> Result<Shape> {
        let (mut inner, mut leaves) = (0, 0);
        let mut cursor = Leaves::new(document);
        while let Some(kept) = cursor.advance()? {
            let known = if leaves == 0 { 0 } else { kept + 1 };
            inner += (cursor.depth() - known) as u64;
            leaves += 1;
        }
        Ok(Shape { inner, leaves })
    }
}

/// The calls that make a document, in its order.
pub(super) fn steps(document: &Value) -> Result<Vec<Step>> {
    let mut steps = Vec::new();
    let (mut cursor, mut path) = (Leaves::new(document), Way::default());
    while let Some(kept) = cursor.advance()? {
        path.turn(&cursor, kept, &mut steps)?;
        let value = (*cursor.node()).clone();
        steps.push(Step { path: path.text(true), value, is_leaf: true });
    }
    Ok(steps)
}

/// The path of a leaf, as it is while the document is made.
#[derive(Default)]
pub(super) struct Way {
    /// A key, or how many elements come before.
    segments: Vec<std::result::Result<String, usize>>,
}

impl Way {
    /// Follows a cursor to its next leaf; notes the lists and elements that are made for it.
    pub(super) fn turn(
        &mut self,
        cursor: &Leaves<&Value>,
        kept: usize,
        steps: &mut Vec<Step>,
    ) -> Result<()> {
        let before = match self.segments.get(kept) {
            Some(Err(position)) => Some(*position),
            _ => None,
        };
        let is_first = steps.is_empty();
        self.segments.truncate(kept);
        for segment in kept..cursor.depth() {
            let key = cursor.key(segment, &mut Vec::new())?.map(|key| key.text().into_owned());
            let is_new = is_first || segment > kept;
            let in_list = matches!(self.segments.last(), Some(Err(_)));
            if is_new && (key.is_none() || in_list) {
                let value = if key.is_none() { Value::list() } else { Value::map() };
                steps.push(Step { path: self.text(true), value, is_leaf: false });
            }
            self.segments.push(key.ok_or_else(|| match before.filter(|_| segment == kept) {
                Some(position) => position + 1,
                None => 0,
            }));
        }
        Ok(())
    }

    /// With the last element as the one that is appended, or by its position.
    pub(super) fn text(&self, appends: bool) -> Path {
        let mut path = Path::root();
        for (at, segment) in self.segments.iter().enumerate() {
            let is_last = at + 1 == self.segments.len();
            match segment {
                Ok(key) => path.push(key),
                Err(_) if is_last && appends => path.push("-"),
                Err(position) => path.push(&position.to_string()),
            }
        }
        path
    }
}
