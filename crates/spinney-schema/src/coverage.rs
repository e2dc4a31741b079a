//! Which members and elements a schema has evaluated: what `unevaluatedProperties` and
//! `unevaluatedItems` ask.
//!
//! Coverage is kept as rules of the schema and not as lists of keys, so it stays small however large
//! the document is.

use std::collections::{BTreeSet, HashSet};

use spinney_core::error::{Error, Result};

use crate::schema::{Applicator, NodeId, Schema};

/// What of one map or list was evaluated.
#[derive(Clone, Debug, Default)]
pub(crate) struct Coverage {
    all_members: bool,
    /// Nodes whose `properties` and `patternProperties` cover the members that they name.
    tables: Vec<NodeId>,
    all_elements: bool,
    /// How many elements from the first on.
    prefix: u64,
    /// Elements that `contains` found.
    found: BTreeSet<u64>,
}

impl Coverage {
    /// Adds what another schema evaluated of the same node.
    pub fn merge(&mut self, other: Coverage) {
        self.all_members |= other.all_members;
        self.tables.extend(other.tables);
        self.all_elements |= other.all_elements;
        self.prefix = self.prefix.max(other.prefix);
        self.found.extend(other.found);
    }

    /// Adds what a valid keyword of a node evaluated by itself.
    pub fn add(&mut self, node: NodeId, applicator: &Applicator) {
        match applicator {
            Applicator::Properties(properties) => match properties.additional {
                Some(_) => self.all_members = true,
                None => self.tables.push(node),
            },
            Applicator::UnevaluatedProperties(_) => self.all_members = true,
            Applicator::Items(items) => {
                self.all_elements |= items.rest.is_some();
                self.prefix = self.prefix.max(items.prefix.len() as u64);
            }
            Applicator::UnevaluatedItems(_) => self.all_elements = true,
            _ => {}
        }
    }

    /// How many elements from the first on were evaluated, whatever is behind them.
    pub fn prefix(&self) -> u64 {
        self.prefix
    }

    /// Adds an element that `contains` found.
    pub fn add_found(&mut self, position: u64) {
        self.found.insert(position);
    }

    /// Whether a member was evaluated.
    pub fn covers_member(&self, schema: &Schema, key: &str) -> bool {
        let names = |&node: &NodeId| {
            schema.nodes[node].applicators.iter().any(|applicator| match applicator {
                Applicator::Properties(properties) => properties.covers(key),
                _ => false,
            })
        };
        self.all_members || self.tables.iter().any(names)
    }

    /// Whether an element was evaluated.
    pub fn covers_element(&self, position: u64) -> bool {
        self.all_elements || position < self.prefix || self.found.contains(&position)
    }

    /// What a valid node covers whatever the document is: that of its own keywords and of those that
    /// it always applies.
    pub fn fixed(schema: &Schema, node: NodeId) -> Coverage {
        let mut coverage = Coverage::default();
        let (mut pending, mut seen) = (vec![node], HashSet::new());
        while let Some(at) = pending.pop().filter(|&at| seen.insert(at)) {
            for applicator in &schema.nodes[at].applicators {
                let own = at == node && is_unevaluated(applicator);
                if !own {
                    coverage.add(at, applicator);
                }
                if let Applicator::Ref(..) | Applicator::AllOf(_) = applicator {
                    pending.extend(applicator.in_place());
                }
            }
        }
        coverage
    }
}

fn is_unevaluated(applicator: &Applicator) -> bool {
    matches!(applicator, Applicator::UnevaluatedProperties(_) | Applicator::UnevaluatedItems(_))
}

/// Marks the nodes whose `unevaluated...` keywords depend on which branches hold.
pub(crate) fn mark(schema: &mut Schema) {
    for node in 0..schema.nodes.len() {
        for applicator in 0..schema.nodes[node].applicators.len() {
            let members = match schema.nodes[node].applicators[applicator] {
                Applicator::UnevaluatedProperties(_) => true,
                Applicator::UnevaluatedItems(_) => false,
                _ => continue,
            };
            let depends = depends_on_branches(schema, node, members);
            schema.nodes[node].whole_when_changed |= depends;
        }
    }
}

/// Whether something that a node applies only at times may cover members, or elements.
fn depends_on_branches(schema: &Schema, node: NodeId, members: bool) -> bool {
    let mut pending = vec![(node, false)];
    let mut seen = HashSet::new();
    while let Some((at, at_times)) = pending.pop() {
        if !seen.insert((at, at_times)) {
            continue;
        }
        for applicator in &schema.nodes[at].applicators {
            let depends = match applicator {
                Applicator::Properties(_) | Applicator::UnevaluatedProperties(_) => {
                    members && at_times
                }
                Applicator::Items(_) | Applicator::UnevaluatedItems(_) => !members && at_times,
                Applicator::Contains(contains) => !members && contains.covers,
                Applicator::DynamicRef(..) => true,
                _ => false,
            };
            if depends {
                return true;
            }
            let always = matches!(applicator, Applicator::Ref(..) | Applicator::AllOf(_));
            if !matches!(applicator, Applicator::Not(_)) {
                let below = applicator.in_place().into_iter();
                pending.extend(below.map(|below| (below, at_times || !always)));
            }
        }
    }
    false
}

/// Refuses references that come back to where they began without going down into the document.
///
/// # Errors
/// `InvalidInput` naming a schema on the circle.
pub(crate) fn refuse_endless(schema: &Schema) -> Result<()> {
    /// What a search in depth knows of a node.
    #[derive(Clone, Copy, PartialEq)]
    enum Mark {
        New,
        Open,
        Done,
    }
    let below = |node: NodeId| -> Vec<NodeId> {
        let applicators = schema.nodes[node].applicators.iter();
        // Where a dynamic reference leads is only known when it is followed.
        let fixed =
            applicators.filter(|applicator| !matches!(applicator, Applicator::DynamicRef(..)));
        fixed.flat_map(Applicator::in_place).collect()
    };
    let mut marks = vec![Mark::New; schema.nodes.len()];
    for start in 0..schema.nodes.len() {
        if marks[start] != Mark::New {
            continue;
        }
        marks[start] = Mark::Open;
        let mut stack = vec![(start, below(start))];
        while let Some((node, rest)) = stack.last_mut() {
            match rest.pop() {
                None => {
                    marks[*node] = Mark::Done;
                    stack.pop();
                }
                Some(next) if marks[next] == Mark::Open => {
                    return Err(Error::invalid_input(format!(
                        "the schema at `{}` refers to itself without going down into the document, so it would never end",
                        schema.nodes[next].location
                    )));
                }
                Some(next) if marks[next] == Mark::New => {
                    marks[next] = Mark::Open;
                    stack.push((next, below(next)));
                }
                Some(_) => {}
            }
        }
    }
    Ok(())
}
