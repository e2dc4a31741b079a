//! Where in a document spinney's keywords apply, as far as the schema tells alone.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use spinney_core::error::{Error, Result};

use super::{Constraint, ConstraintId, Rule, Segment};
use crate::schema::{Applicator, Items, NodeId, Properties, Schema};

/// How many sites a schema keeps between two documents; few have more than a hundred.
const SITES_MAX: usize = 1024;

/// The index of a site in [`Sites`].
pub(crate) type SiteId = usize;

/// What applies to the nodes of documents: found when it is first asked for, the same for all nodes to
/// which the same applies.
#[derive(Debug, Default)]
pub(crate) struct Sites {
    all: Vec<Site>,
    known: HashMap<Arc<Applied>, SiteId>,
}

/// What applies to one node of a document.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Applied {
    /// Schemas with all that they always apply, without those that lead to no keyword of spinney.
    nodes: BTreeSet<NodeId>,
    /// Constraints and how many segments of their way lie behind.
    ways: Vec<(ConstraintId, usize)>,
}

/// A node of a document, as far as something applies to it.
#[derive(Debug)]
struct Site {
    applied: Arc<Applied>,
    constraints: Arc<[ConstraintId]>,
    targets: Arc<[ConstraintId]>,
    /// Whether members have schemas by patterns.
    has_patterns: bool,
    /// Elements that have schemas by their position.
    prefix_len: u64,
    /// The members of which more is said than of others, in the order of their keys.
    named: Vec<(String, Option<SiteId>)>,
    /// All other members.
    unnamed: Option<SiteId>,
    /// Elements that no schema is for alone.
    rest: Option<SiteId>,
}

impl Sites {
    /// That of the root, which is found first.
    pub fn root(&mut self, schema: &Schema) -> SiteId {
        if self.all.is_empty() {
            let references = schema.constraints.iter().enumerate();
            let ways = references.filter_map(|(id, constraint)| match constraint.rule {
                Rule::Reference(_) => Some((id, 0)),
                Rule::Unique(_) => None,
            });
            let ways = ways.collect();
            self.intern(schema, Applied { nodes: closure(schema, [schema.root]), ways });
        }
        0
    }

    /// The constraints that apply to a node.
    pub fn constraints(&self, site: SiteId) -> Arc<[ConstraintId]> {
        Arc::clone(&self.all[site].constraints)
    }

    /// The references whose target is a node.
    pub fn targets(&self, site: SiteId) -> Arc<[ConstraintId]> {
        Arc::clone(&self.all[site].targets)
    }

    /// Whether nothing applies to a node or below.
    pub fn is_empty(&self, site: SiteId) -> bool {
        let applied = &self.all[site].applied;
        applied.nodes.is_empty() && applied.ways.is_empty()
    }

    /// Whether elements have schemas by their position.
    pub fn tells_positions(&self, site: SiteId) -> bool {
        self.all[site].prefix_len > 0
    }

    /// That of a member.
    pub fn member(&mut self, schema: &Schema, site: SiteId, key: &str) -> SiteId {
        let Site { applied, has_patterns, named, unnamed, .. } = &self.all[site];
        let name = named.binary_search_by(|(name, _)| name.as_str().cmp(key)).ok();
        let known = match name {
            _ if *has_patterns => None,
            Some(name) => named[name].1,
            None => *unnamed,
        };
        if let Some(known) = known {
            return known;
        }
        let below = applied.member(schema, key);
        let below = self.intern(schema, below);
        let site = &mut self.all[site];
        match name {
            _ if site.has_patterns => {}
            Some(name) => site.named[name].1 = Some(below),
            None => site.unnamed = Some(below),
        }
        below
    }

    /// That of an element.
    pub fn element(&mut self, schema: &Schema, site: SiteId, position: u64) -> SiteId {
        let Site { applied, prefix_len, rest, .. } = &self.all[site];
        let is_own = position < *prefix_len;
        if let Some(rest) = rest
            && !is_own
        {
            return *rest;
        }
        let below = applied.element(schema, position);
        let below = self.intern(schema, below);
        if !is_own {
            self.all[site].rest = Some(below);
        }
        below
    }

    /// The site to which this applies.
    fn intern(&mut self, schema: &Schema, applied: Applied) -> SiteId {
        if let Some(&known) = self.known.get(&applied) {
            return known;
        }
        let applied = Arc::new(applied);
        self.all.push(Site::new(schema, Arc::clone(&applied)));
        self.known.insert(applied, self.all.len() - 1);
        self.all.len() - 1
    }
}

impl Site {
    fn new(schema: &Schema, applied: Arc<Applied>) -> Site {
        let own = |node: &NodeId| schema.nodes[*node].constraints.iter().copied();
        let constraints: BTreeSet<ConstraintId> = applied.nodes.iter().flat_map(own).collect();
        let ways = || applied.ways.iter().map(|&(id, behind)| (id, target(schema, id), behind));
        let targets = ways().filter(|(_, target, behind)| target.way.len() == *behind);
        let next = ways().filter_map(|(_, target, behind)| match target.way.get(behind) {
            Some(Segment::Key(key)) => Some(key),
            _ => None,
        });
        let named = applied.properties(schema).flat_map(|properties| &properties.named);
        let named: BTreeSet<&String> = named.map(|(key, _)| key).chain(next).collect();
        let has_patterns = applied.properties(schema).any(|it| !it.patterns.is_empty());
        let prefixes = applied.items(schema).map(|items| items.prefix.len() as u64);
        let prefix_len = prefixes.max().unwrap_or(0);
        Site {
            constraints: constraints.into_iter().collect(),
            targets: targets.map(|(id, ..)| id).collect(),
            has_patterns,
            prefix_len,
            named: named.into_iter().map(|key| (key.clone(), None)).collect(),
            unnamed: None,
            rest: None,
            applied,
        }
    }
}

impl Applied {
    fn member(&self, schema: &Schema, key: &str) -> Applied {
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
        let ways = self.ways(schema, |segment| segment.matches_key(key));
        Applied { nodes: closure(schema, below), ways }
    }

    fn element(&self, schema: &Schema, position: u64) -> Applied {
        let below = self.items(schema).filter_map(|items| items.at(position));
        let ways = self.ways(schema, |segment| *segment == Segment::Any);
        Applied { nodes: closure(schema, below), ways }
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

    fn applicators<'s>(&'s self, schema: &'s Schema) -> impl Iterator<Item = &'s Applicator> {
        self.nodes.iter().flat_map(|node| &schema.nodes[*node].applicators)
    }

    fn properties<'s>(&'s self, schema: &'s Schema) -> impl Iterator<Item = &'s Properties> {
        self.applicators(schema).filter_map(|applicator| match applicator {
            Applicator::Properties(properties) => Some(properties),
            _ => None,
        })
    }

    fn items<'s>(&'s self, schema: &'s Schema) -> impl Iterator<Item = &'s Items> {
        self.applicators(schema).filter_map(|applicator| match applicator {
            Applicator::Items(items) => Some(items),
            _ => None,
        })
    }
}

/// The sites of a schema that documents had so far. Whoever walks one takes them and gives them back;
/// who comes meanwhile finds its own.
#[derive(Debug, Default)]
pub(crate) struct Known(Mutex<Sites>);

impl Known {
    /// Those that nobody uses.
    pub fn take(&self) -> Sites {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Keeps sites for the next document.
    pub fn give_back(&self, sites: Sites) {
        if sites.all.len() <= SITES_MAX {
            *self.0.lock().unwrap_or_else(PoisonError::into_inner) = sites;
        }
    }
}

/// A clone finds its own.
impl Clone for Known {
    fn clone(&self) -> Known {
        Known::default()
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
