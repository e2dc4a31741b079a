//! Where in a document spinney's keywords apply, as far as the schema tells alone.

use std::collections::{BTreeSet, HashSet};

use spinney_core::error::{Error, Result};

use super::{Constraint, ConstraintId, Rule};
use crate::schema::{Applicator, NodeId, Schema};

/// What applies to one node of a document: schemas, and targets whose way leads through it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Sites {
    /// Schemas with all that they always apply, without those that lead to no keyword of spinney.
    nodes: BTreeSet<NodeId>,
    /// Constraints and how many segments of their way lie behind.
    ways: Vec<(ConstraintId, usize)>,
}

impl Sites {
    /// Those of the root.
    pub fn root(schema: &Schema) -> Sites {
        let references = schema.constraints.iter().enumerate();
        let ways = references.filter_map(|(id, constraint)| match constraint.rule {
            Rule::Reference(_) => Some((id, 0)),
            Rule::Unique(_) => None,
        });
        Sites { ways: ways.collect(), nodes: closure(schema, [schema.root]) }
    }

    /// Whether nothing applies to the node or below.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty() && self.ways.is_empty()
    }

    /// Those of a member.
    pub fn member(&self, schema: &Schema, key: &str) -> Sites {
        let mut below = Vec::new();
        for applicator in self.applicators(schema) {
            if let Applicator::Properties(properties) = applicator {
                let patterns = properties.patterns.iter();
                let matching = patterns.filter(|(pattern, _)| pattern.is_match(key));
                let before = below.len();
                below.extend(properties.named(key));
                below.extend(matching.map(|(_, node)| *node));
                if below.len() == before {
                    below.extend(properties.additional);
                }
            }
        }
        let ways = self.ways(schema, |segment| segment.matches_key(key));
        Sites { nodes: closure(schema, below), ways }
    }

    /// Those of an element.
    pub fn element(&self, schema: &Schema, position: u64) -> Sites {
        let below: Vec<NodeId> = self
            .applicators(schema)
            .filter_map(|applicator| match applicator {
                Applicator::Items(items) => items.at(position),
                _ => None,
            })
            .collect();
        let ways = self.ways(schema, |segment| *segment == super::Segment::Any);
        Sites { nodes: closure(schema, below), ways }
    }

    fn ways(
        &self,
        schema: &Schema,
        matches: impl Fn(&super::Segment) -> bool,
    ) -> Vec<(ConstraintId, usize)> {
        let goes_on = self
            .ways
            .iter()
            .filter(|(id, behind)| target(schema, *id).way.get(*behind).is_some_and(&matches));
        goes_on.map(|(id, behind)| (*id, behind + 1)).collect()
    }

    /// The references whose target is this node.
    pub fn targets<'s>(
        &'s self,
        schema: &'s Schema,
    ) -> impl Iterator<Item = (ConstraintId, &'s super::Target)> {
        let ends = self.ways.iter().map(|(id, behind)| (*id, *behind, target(schema, *id)));
        ends.filter(|(_, behind, target)| target.way.len() == *behind)
            .map(|(id, _, target)| (id, target))
    }

    /// The constraints that apply to this node.
    pub fn constraints(&self, schema: &Schema) -> BTreeSet<ConstraintId> {
        self.nodes.iter().flat_map(|node| schema.nodes[*node].constraints.iter().copied()).collect()
    }

    /// Whether elements have schemas by their position.
    pub fn tells_positions(&self, schema: &Schema) -> bool {
        self.applicators(schema).any(|applicator| match applicator {
            Applicator::Items(items) => !items.prefix.is_empty(),
            _ => false,
        })
    }

    fn applicators<'s>(&'s self, schema: &'s Schema) -> impl Iterator<Item = &'s Applicator> {
        self.nodes.iter().flat_map(|node| &schema.nodes[*node].applicators)
    }
}

fn target(schema: &Schema, id: ConstraintId) -> &super::Target {
    match &schema.constraints[id].rule {
        Rule::Reference(target) => target,
        Rule::Unique(_) => unreachable!("only references have ways"),
    }
}

/// Schemas and all that they apply to the same node always.
fn closure(schema: &Schema, start: impl IntoIterator<Item = NodeId>) -> BTreeSet<NodeId> {
    let mut closure = BTreeSet::new();
    let mut pending: Vec<NodeId> = start.into_iter().collect();
    while let Some(node) = pending.pop() {
        if schema.nodes[node].leads_to_constraint && closure.insert(node) {
            for applicator in &schema.nodes[node].applicators {
                if let Applicator::Ref(..) | Applicator::AllOf(_) = applicator {
                    pending.extend(applicator.in_place());
                }
            }
        }
    }
    closure
}

/// Marks the nodes that lead to a keyword of spinney, and refuses those keywords where a schema
/// applies only at times: whether a reference holds must not depend on which branch does.
///
/// # Errors
/// `Unsupported` naming the keyword and what it stands under.
pub(crate) fn mark(schema: &mut Schema) -> Result<()> {
    if schema.constraints.is_empty() {
        return Ok(());
    }
    loop {
        let mut marked_more = false;
        for node in 0..schema.nodes.len() {
            let leads = |schema: &Schema, below: Vec<NodeId>| {
                below.into_iter().any(|below| schema.nodes[below].leads_to_constraint)
            };
            let this = &schema.nodes[node];
            if !this.leads_to_constraint
                && (!this.constraints.is_empty()
                    || this.applicators.iter().any(|it| leads(schema, it.schemas())))
            {
                schema.nodes[node].leads_to_constraint = true;
                marked_more = true;
            }
        }
        if !marked_more {
            break;
        }
    }
    for (applicator, node) in reachable(schema) {
        let always = matches!(
            applicator,
            Applicator::Ref(..)
                | Applicator::AllOf(_)
                | Applicator::Properties(_)
                | Applicator::Items(_)
        );
        let below = applicator.schemas();
        if !always && below.iter().any(|below| schema.nodes[*below].leads_to_constraint) {
            let Constraint { location, .. } = first_below(schema, &below);
            return Err(Error::unsupported(format!(
                "`{location}` is applied only at times, by `{}` of `{}`; put it where it always applies",
                applicator.keyword(),
                schema.nodes[node].location
            )));
        }
    }
    Ok(())
}

/// Every keyword that applies schemas and that the root leads to, with its node.
fn reachable(schema: &Schema) -> Vec<(&Applicator, NodeId)> {
    let (mut found, mut pending, mut seen) = (Vec::new(), vec![schema.root], HashSet::new());
    while let Some(node) = pending.pop() {
        if seen.insert(node) {
            for applicator in &schema.nodes[node].applicators {
                found.push((applicator, node));
                pending.extend(applicator.schemas());
            }
        }
    }
    found
}

/// A constraint that schemas lead to.
fn first_below<'s>(schema: &'s Schema, start: &[NodeId]) -> &'s Constraint {
    let (mut pending, mut seen) = (start.to_vec(), HashSet::new());
    while let Some(node) = pending.pop() {
        if let Some(&id) = schema.nodes[node].constraints.first() {
            return &schema.constraints[id];
        }
        if seen.insert(node) {
            pending.extend(schema.nodes[node].applicators.iter().flat_map(Applicator::schemas));
        }
    }
    unreachable!("the schemas lead to a constraint")
}
