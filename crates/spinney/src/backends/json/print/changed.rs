//! Which nodes of a document have changed, from the diffs of its commits.

use std::collections::HashMap;

use spinney_core::diff::{Diff, Op, Step, What};

/// Where a changed node is in its container: the encoded key, or the id of an element.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Name {
    Key(Box<[u8]>),
    Element(u64),
}

/// A node that has changed or that something below it has.
#[derive(Debug, Default)]
pub struct Changed {
    /// The node itself was added, removed or replaced.
    pub is_whole: bool,
    pub below: HashMap<Name, Changed>,
}

impl Changed {
    /// The changes of some commits.
    pub fn new(diffs: &[Diff]) -> Changed {
        let mut root = Changed::default();
        for op in diffs.iter().flat_map(|diff| &diff.ops) {
            // Metadata does not stand in the document.
            if op.what == What::Node {
                root.mark(op);
            }
        }
        root
    }

    fn mark(&mut self, op: &Op) {
        let mut node = self;
        for step in op.path.iter() {
            if node.is_whole {
                return;
            }
            node = node.below.entry(Name::of(step)).or_default();
        }
        node.is_whole = true;
        node.below.clear();
    }
}

impl Name {
    fn of(step: &Step) -> Name {
        match step {
            Step::Key(key) => Name::Key(Box::from(&key[..])),
            Step::Element { id, .. } => Name::Element(*id),
        }
    }
}
