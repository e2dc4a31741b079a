//! What a commit of layers changes in the tree that they are read as.
//!
//! The commit's diff says where to look; at each of these places the layers as they were are compared with the
//! layers as they are. It must not know how the layers of a stack are found.

mod touched;
mod walk;

use crate::diff::Diff;
use crate::error::Result;
use crate::path::Path;
use crate::read::{Merged, Node, Stored};
use crate::view::View;

use touched::Touched;
use walk::{Trace, Walk};

/// A stack of layers of one store: where each is, the highest first.
///
/// No path is given twice, and none leads into another.
#[derive(Clone, Copy)]
pub struct StackState<'s> {
    /// The state that they are read from.
    pub view: View<'s>,
    /// The paths of the layers, from the store's root.
    pub layers: &'s [Path],
}

impl<'s> StackState<'s> {
    /// The node at a checked path of the tree that the layers are read as; `None` when there is none.
    ///
    /// # Errors
    /// `Corrupted` for damage.
    pub fn node(&self, path: &str) -> Result<Option<Merged<Stored<'s>>>> {
        let numbers: Vec<&Path> = self.layers.iter().collect();
        let Some(root) = self.merged(&numbers)? else { return Ok(None) };
        Ok(root.descend(path)?.found())
    }

    /// The root of the tree that the layers are read as, each layer with its place in `numbers`.
    fn merged(&self, numbers: &[&Path]) -> Result<Option<Merged<Stored<'s>>>> {
        let mut roots = Vec::with_capacity(self.layers.len());
        for path in self.layers {
            if let Some(slot) = self.view.resolve(path)? {
                let number = numbers.iter().position(|known| *known == path);
                roots.push((number.unwrap_or_default(), Stored::new(self.view, slot)?));
            }
        }
        Merged::new(roots)
    }
}

impl Diff {
    /// What a commit changes in the tree that layers are read as: this is the commit's diff, from the store's
    /// root, and the answer's paths begin at the root of the stack.
    ///
    /// A container that one layer alone has is one operation, by reference; one that layers share comes or
    /// goes as an empty map and its members. Where layers are the same list before and after, its operations
    /// are the commit's; any other list that changes is replaced.
    ///
    /// # Errors
    /// `Corrupted` for damage.
    ///
    /// # Complexity
    /// O(layers x depth) for each operation that layers have; that of the members of what one of several
    /// layers at a place replaces there as a whole; that of both trees when the layers change their order.
    pub fn of_stack(&self, before: &StackState<'_>, after: &StackState<'_>) -> Result<Diff> {
        let mut numbers: Vec<&Path> = before.layers.iter().collect();
        numbers.extend(after.layers.iter().filter(|path| !before.layers.contains(path)));
        let kept = |of: &'_ [Path], other: &[Path]| -> Vec<Path> {
            of.iter().filter(|path| other.contains(path)).cloned().collect()
        };
        let is_in_order = kept(before.layers, after.layers) == kept(after.layers, before.layers);
        let mut touched = Vec::with_capacity(numbers.len());
        for path in &numbers {
            let is_kept = before.layers.contains(path) && after.layers.contains(path);
            touched.push(match is_kept && is_in_order {
                true => Touched::of(self, path),
                false => Touched::all(),
            });
        }
        let traces: Vec<Trace> = touched.iter().map(Touched::root).collect();
        if traces.iter().all(|trace| *trace == Trace::Same) {
            return Ok(Diff::default());
        }
        Walk::run(&touched, traces, before.merged(&numbers)?, after.merged(&numbers)?)
    }
}
