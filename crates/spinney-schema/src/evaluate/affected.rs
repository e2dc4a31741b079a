//! Whether a change can make any difference to what a schema says.

use std::collections::HashSet;

use crate::changes::{Change, Changes, Inside};
use crate::schema::{Applicator, Check, NodeId, Properties, Schema};

/// Whether the verdict of a schema on a container may differ from the one before, or what it covers.
///
/// It looks at the schema and the change only, never at the document; in doubt it says yes.
///
/// # Complexity
/// O(keywords that the change reaches).
pub(crate) fn affected(schema: &Schema, changes: &Changes, node: NodeId, inside: usize) -> bool {
    let mut search = Search { schema, pending: vec![(node, inside)] };
    let mut seen = HashSet::new();
    while let Some((node, index)) = search.pending.pop() {
        if !seen.insert((node, index)) {
            continue;
        }
        let (node, inside) = (&schema.nodes[node], changes.inside(index));
        if node.assertions.iter().any(|assertion| assertion.check.looks_at(inside))
            || node.applicators.iter().any(|applicator| search.reaches(applicator, index, inside))
        {
            return true;
        }
    }
    false
}

struct Search<'s> {
    schema: &'s Schema,
    /// Schemas to look at, each with the change of the node that it is applied to.
    pending: Vec<(NodeId, usize)>,
}

impl Search<'_> {
    /// Whether a keyword may say something else at once; otherwise notes which schemas decide.
    fn reaches(&mut self, applicator: &Applicator, index: usize, inside: &Inside) -> bool {
        let elements_changed = inside.shifts() || !inside.touched.is_empty();
        match applicator {
            Applicator::DynamicRef(..) => true,
            Applicator::PropertyNames(_) => inside.renames(),
            Applicator::Contains(_) | Applicator::UnevaluatedItems(_) => elements_changed,
            Applicator::UnevaluatedProperties(_) => !inside.members.is_empty(),
            Applicator::DependentSchemas(_, dependents)
                if dependents.iter().any(|(key, _)| inside.comes_or_goes(key)) =>
            {
                true
            }
            Applicator::Properties(properties) => inside
                .members
                .iter()
                .any(|(key, change)| self.reaches_member(properties, key, *change)),
            Applicator::Items(items) => {
                inside.shifts()
                    || inside.touched.iter().any(|(position, change)| {
                        match items.schema(*position) {
                            Some((_, node)) => self.reaches_below(node, *change),
                            None => false,
                        }
                    })
            }
            in_place => {
                self.pending.extend(in_place.in_place().into_iter().map(|node| (node, index)));
                false
            }
        }
    }

    fn reaches_member(&mut self, properties: &Properties, key: &str, change: Change) -> bool {
        let named = properties.named(key).into_iter();
        let unnamed = properties.unnamed(key).into_iter().map(|(_, node)| node);
        named.chain(unnamed).any(|node| self.reaches_below(node, change))
    }

    fn reaches_below(&mut self, node: NodeId, change: Change) -> bool {
        match change {
            _ if self.schema.nodes[node].accepts_all() => false,
            Change::Within(index) => {
                self.pending.push((node, index));
                false
            }
            Change::Added | Change::Removed | Change::Replaced => true,
        }
    }
}

impl Inside {
    /// Whether a member was added or removed.
    fn comes_or_goes(&self, key: &str) -> bool {
        matches!(self.members.get(key), Some(Change::Added | Change::Removed))
    }

    /// Whether any member was.
    fn renames(&self) -> bool {
        self.members.values().any(|change| matches!(change, Change::Added | Change::Removed))
    }
}

impl Check {
    /// Whether its verdict on a container depends on what changed inside.
    fn looks_at(&self, inside: &Inside) -> bool {
        let any = |names: &[String]| names.iter().any(|name| inside.comes_or_goes(name));
        match self {
            Check::Const(_) | Check::Enum(_) => true,
            Check::MinItems(_) | Check::MaxItems(_) => inside.shifts(),
            Check::UniqueItems => inside.shifts() || !inside.touched.is_empty(),
            Check::MinProperties(_) | Check::MaxProperties(_) => inside.renames(),
            Check::Required(names) => any(names),
            Check::DependentRequired(entries) => {
                entries.iter().any(|(key, names)| inside.comes_or_goes(key) || any(names))
            }
            _ => false,
        }
    }
}
