//! Which places of one layer a commit has touched.

use std::collections::BTreeMap;

use crate::diff::{Diff, Op, Relation, Step, What};
use crate::key::{EncodedKey, Key};
use crate::path;

use super::walk::Trace;

/// The places of a layer that a commit has touched, as a tree of their keys.
pub struct Touched<'d> {
    /// The root of the layer is the first.
    places: Vec<Place<'d>>,
}

/// A place on the way to something that was touched, or that itself.
#[derive(Default)]
struct Place<'d> {
    members: BTreeMap<EncodedKey, usize>,
    /// The node itself was added, removed or replaced.
    is_replaced: bool,
    /// Its metadata was changed.
    is_annotated: bool,
    /// Operations on elements of the list that is there, or below them.
    elements: Vec<&'d Op>,
}

impl<'d> Touched<'d> {
    /// What a commit has touched of the layer at a path of its store.
    pub fn of(diff: &'d Diff, layer: &str) -> Touched<'d> {
        let segments: Vec<String> = path::segments(layer).map(Into::into).collect();
        let base: Vec<Step> =
            segments.iter().map(|key| Step::Key(Key::new(key).encoded())).collect();
        let mut touched = Touched { places: vec![Place::default()] };
        for op in &diff.ops {
            let is_below =
                op.path.len() > base.len() && op.path.iter().zip(&base).all(|(a, b)| a == b);
            if is_below {
                touched.add(op, base.len());
                continue;
            }
            match (op.relation_to(&segments), op.what) {
                (Relation::Apart, _) => {}
                (_, What::Meta) if op.path.len() == base.len() => {
                    touched.places[0].is_annotated = true;
                }
                // Something above, or a layer within a list, where elements move.
                _ => touched.places[0].is_replaced = true,
            }
        }
        touched
    }

    /// That all of the layer comes or goes.
    pub fn all() -> Touched<'d> {
        Touched { places: vec![Place { is_replaced: true, ..Place::default() }] }
    }

    /// What is known of the root of the layer.
    pub fn root(&self) -> Trace {
        self.trace(0)
    }

    /// What is known of a member of a touched place.
    pub fn member(&self, place: usize, key: &EncodedKey) -> Trace {
        self.places[place].members.get(key).map_or(Trace::Same, |member| self.trace(*member))
    }

    /// The keys of the members that were touched.
    pub fn keys(&self, place: usize) -> impl Iterator<Item = &EncodedKey> {
        self.places[place].members.keys()
    }

    /// The operations on elements of the list at a place.
    pub fn elements(&self, place: usize) -> &[&'d Op] {
        &self.places[place].elements
    }

    fn trace(&self, at: usize) -> Trace {
        let place = &self.places[at];
        match place {
            Place { is_replaced: true, .. } => Trace::Replaced { here: true },
            Place { is_annotated: false, members, elements, .. }
                if members.is_empty() && elements.is_empty() =>
            {
                Trace::Same
            }
            _ => Trace::Touched(at),
        }
    }

    fn add(&mut self, op: &'d Op, from: usize) {
        let mut at = 0;
        for step in op.path.iter().skip(from) {
            let Step::Key(key) = step else {
                self.places[at].elements.push(op);
                return;
            };
            at = match self.places[at].members.get(key) {
                Some(member) => *member,
                None => {
                    let member = self.places.len();
                    self.places.push(Place::default());
                    self.places[at].members.insert(key.clone(), member);
                    member
                }
            };
        }
        match op.what {
            What::Node => self.places[at].is_replaced = true,
            What::Meta => self.places[at].is_annotated = true,
        }
    }
}
