//! The way to a node, as diffs hold it.

use std::sync::Arc;

use crate::key::EncodedKey;

/// One step of the way to a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// The encoded key of a map member.
    Key(EncodedKey),
    /// An element of a list.
    Element {
        /// The id that it keeps when it moves.
        id: u64,
        /// Where it is when the operation applies.
        position: u64,
    },
}

/// The way from the store's root: the steps to a node's container, which all its members share, and
/// the last one. The root's has none.
#[derive(Clone, Debug, Default)]
pub struct Steps {
    container: Arc<[Step]>,
    last: Option<Step>,
}

impl Steps {
    /// The way to a member of a container.
    pub fn below(container: &Arc<[Step]>, last: Step) -> Steps {
        Steps { container: Arc::clone(container), last: Some(last) }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.container.len() + usize::from(self.last.is_some())
    }

    /// Whether it is the root's.
    pub fn is_empty(&self) -> bool {
        self.last.is_none()
    }

    /// From the first on.
    pub fn iter(&self) -> impl Iterator<Item = &Step> {
        self.container.iter().chain(&self.last)
    }

    /// The step from the container to the node; `None` for the root.
    pub fn last(&self) -> Option<&Step> {
        self.last.as_ref()
    }

    /// The steps to the container.
    pub fn container(&self) -> &Arc<[Step]> {
        &self.container
    }

    /// How many steps two ways begin with that are the same.
    pub fn shared_len(&self, other: &Steps) -> usize {
        if Arc::ptr_eq(&self.container, &other.container) {
            let is_same = self.last.is_some() && self.last == other.last;
            return self.container.len() + usize::from(is_same);
        }
        self.iter().zip(other.iter()).take_while(|(a, b)| a == b).count()
    }
}

impl From<Vec<Step>> for Steps {
    fn from(mut steps: Vec<Step>) -> Steps {
        let last = steps.pop();
        Steps { container: steps.into(), last }
    }
}

impl PartialEq for Steps {
    fn eq(&self, other: &Steps) -> bool {
        self.len() == other.len() && self.iter().eq(other.iter())
    }
}

impl Eq for Steps {}
