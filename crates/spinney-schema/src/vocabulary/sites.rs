//! Where in a document spinney's keywords apply, as far as the schema tells alone.

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::rc::Rc;

use spinney_core::error::{Error, Result};

use super::{Constraint, ConstraintId, Rule, Segment};
use crate::schema::{Applicator, NodeId, Properties, Schema};

/// What applies to one node of a document: schemas, and targets whose way leads through it.
#[derive(Debug)]
pub(crate) struct Sites {
    /// Schemas with all that they always apply, without those that lead to no keyword of spinney.
    nodes: BTreeSet<NodeId>,
    /// Constraints and how many segments of their way lie behind.
    ways: Vec<(ConstraintId, usize)>,
    /// The constraints that apply to this node.
    pub constraints: Vec<ConstraintId>,
    /// The references whose target is this node.
    pub targets: Vec<ConstraintId>,
    /// Those of members that the schema names, as far as they were asked for.
    named: RefCell<HashMap<String, Rc<Sites>>>,
    /// Those of all members that it does not name.
    unnamed: OnceCell<Rc<Sites>>,
    /// Those of elements that no schema is for alone.
    rest: OnceCell<Rc<Sites>>,
}

impl Sites {
    /// Those of the root.
    pub fn root(schema: &Schema) -> Rc<Sites> {
        let references = schema.constraints.iter().enumerate();
        let ways = references.filter_map(|(id, constraint)| match constraint.rule {
            Rule::Reference(_) => Some((id, 0)),
            Rule::Unique(_) => None,
        });
        Sites::new(schema, ways.collect(), [schema.root])
    }

    fn new(
        schema: &Schema,
        ways: Vec<(ConstraintId, usize)>,
        start: impl IntoIterator<Item = NodeId>,
    ) -> Rc<Sites> {
        let nodes = closure(schema, start);
        let constraints = nodes.iter().flat_map(|node| &schema.nodes[*node].constraints).copied();
        let constraints: BTreeSet<ConstraintId> = constraints.collect();
        let is_end =
            |(id, behind): &(ConstraintId, usize)| target(schema, *id).way.len() == *behind;
        let targets = ways.iter().copied().filter(is_end).map(|(id, _)| id).collect();
        let constraints = constraints.into_iter().collect();
        Rc::new(Sites {
            nodes,
            ways,
            constraints,
            targets,
            named: RefCell::default(),
            unnamed: OnceCell::new(),
            rest: OnceCell::new(),
        })
    }

    /// Whether nothing applies to the node or below.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty() && self.ways.is_empty()
    }

    /// Those of a member.
    pub fn member(&self, schema: &Schema, key: &str) -> Rc<Sites> {
        if self.has_patterns(schema) {
            return self.new_member(schema, key);
        }
        if !self.names(schema, key) {
            return Rc::clone(self.unnamed.get_or_init(|| self.new_member(schema, key)));
        }
        if let Some(known) = self.named.borrow().get(key) {
            return Rc::clone(known);
        }
        let sites = self.new_member(schema, key);
        self.named.borrow_mut().insert(key.to_owned(), Rc::clone(&sites));
        sites
    }

    fn new_member(&self, schema: &Schema, key: &str) -> Rc<Sites> {
        let mut below = Vec::new();
        for properties in self.properties(schema) {
            let patterns = properties.patterns.iter();
            let matching = patterns.filter(|(pattern, _)| pattern.is_match(key));
            let before = below.len();
            below.extend(properties.named(key));
            below.extend(matching.map(|(_, node)| *node));
            if below.len() == before {
                below.extend(properties.additional);
            }
        }
        Sites::new(schema, self.ways(schema, |segment| segment.matches_key(key)), below)
    }

    /// Whether anything says more of a member than of those that nothing names.
    fn names(&self, schema: &Schema, key: &str) -> bool {
        self.properties(schema).any(|properties| properties.named(key).is_some())
            || self.ways.iter().any(|(id, behind)| {
                let segment = target(schema, *id).way.get(*behind);
                segment.is_some_and(|segment| *segment != Segment::Any && segment.matches_key(key))
            })
    }

    fn has_patterns(&self, schema: &Schema) -> bool {
        self.properties(schema).any(|properties| !properties.patterns.is_empty())
    }

    /// Those of an element.
    pub fn element(&self, schema: &Schema, position: u64) -> Rc<Sites> {
        let items = self.applicators(schema).filter_map(|applicator| match applicator {
            Applicator::Items(items) => Some(items),
            _ => None,
        });
        let new = || {
            let ways = self.ways(schema, |segment| *segment == Segment::Any);
            Sites::new(schema, ways, items.clone().filter_map(|items| items.at(position)))
        };
        match items.clone().any(|items| position < items.prefix.len() as u64) {
            true => new(),
            false => Rc::clone(self.rest.get_or_init(new)),
        }
    }

    fn ways(
        &self,
        schema: &Schema,
        matches: impl Fn(&Segment) -> bool,
    ) -> Vec<(ConstraintId, usize)> {
        let goes_on = self
            .ways
            .iter()
            .filter(|(id, behind)| target(schema, *id).way.get(*behind).is_some_and(&matches));
        goes_on.map(|(id, behind)| (*id, behind + 1)).collect()
    }

    /// Whether elements have schemas by their position.
    pub fn tells_positions(&self, schema: &Schema) -> bool {
        self.applicators(schema).any(|applicator| match applicator {
            Applicator::Items(items) => !items.prefix.is_empty(),
            _ => false,
        })
    }

    fn take_below(&mut self) -> Vec<Rc<Sites>> {
        let named = std::mem::take(self.named.get_mut()).into_values();
        named.chain(self.unnamed.take()).chain(self.rest.take()).collect()
    }

    fn applicators<'s>(
        &'s self,
        schema: &'s Schema,
    ) -> impl Iterator<Item = &'s Applicator> + Clone {
        self.nodes.iter().flat_map(|node| &schema.nodes[*node].applicators)
    }

    fn properties<'s>(&'s self, schema: &'s Schema) -> impl Iterator<Item = &'s Properties> {
        self.applicators(schema).filter_map(|applicator| match applicator {
            Applicator::Properties(properties) => Some(properties),
            _ => None,
        })
    }
}

/// Without recursion, however deep the document was.
impl Drop for Sites {
    fn drop(&mut self) {
        let mut pending = self.take_below();
        while let Some(below) = pending.pop() {
            if let Some(mut sites) = Rc::into_inner(below) {
                pending.append(&mut sites.take_below());
            }
        }
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
