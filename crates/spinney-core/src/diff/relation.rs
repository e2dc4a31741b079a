//! How operations lie to a path.

use crate::diff::{Diff, Op, Step, What};
use crate::key::Key;
use crate::path;

/// How an operation lies to a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// It changes what is there or below, or what the path leads to.
    Concerns,
    /// It replaces something above, which may have held it or hold it now.
    Above,
    /// It is elsewhere.
    Apart,
}

impl Op {
    /// How the operation lies to a path, by its segments.
    pub fn relation_to(&self, segments: &[String]) -> Relation {
        let depth = self.path.len();
        for (index, step) in self.path.iter().enumerate() {
            let Some(segment) = segments.get(index) else { return Relation::Concerns };
            let is_here = match step {
                Step::Key(key) => Key::decode(key).is_some_and(|key| key.text() == **segment),
                Step::Element { position, .. } => match path::position(segment) {
                    // An element that comes or goes moves those behind it.
                    Some(wanted)
                        if index + 1 == depth && (self.old.is_none() || self.new.is_none()) =>
                    {
                        return if *position <= wanted {
                            Relation::Concerns
                        } else {
                            Relation::Apart
                        };
                    }
                    wanted => wanted == Some(*position),
                },
            };
            if !is_here {
                return Relation::Apart;
            }
        }
        match depth == segments.len() {
            true => Relation::Concerns,
            // The metadata of what is above is not its own.
            false if self.what == What::Meta => Relation::Apart,
            false => Relation::Above,
        }
    }
}

impl Diff {
    /// Leaves out what lies neither at nor below nor above a path.
    pub fn retain_concerning(&mut self, path: &str) {
        let segments: Vec<String> = path::segments(path).map(Into::into).collect();
        self.ops.retain(|op| op.relation_to(&segments) != Relation::Apart);
    }
}
