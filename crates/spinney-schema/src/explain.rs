//! What a keyword has to look at when something changes, for people who write schemas.

use std::fmt;

use crate::schema::{Applicator, Check, Node, Schema};
use crate::vocabulary::Rule;

/// How much of a document a keyword looks at again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cost {
    /// The changed node itself, whatever its size: a scalar, a count, a look for a few keys.
    Local,
    /// The members and elements that changed, and those on the way to them.
    Changed,
    /// The whole list, map or value that it stands for, when the change can matter to it.
    Whole,
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Cost::Local => "local",
            Cost::Changed => "changed members",
            Cost::Whole => "whole subtree",
        })
    }
}

/// One keyword and what it costs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explained {
    /// Where the keyword stands.
    pub location: String,
    /// What it looks at.
    pub cost: Cost,
    /// Why.
    pub why: &'static str,
}

impl fmt::Display for Explained {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`: {}: {}", self.location, self.cost, self.why)
    }
}

impl Schema {
    /// Every keyword that asserts something, with what it looks at after a change. Sorted by location.
    pub fn explain(&self) -> Vec<Explained> {
        let mut explained = Vec::new();
        for node in &self.nodes {
            let mut add = |keyword: &str, (cost, why)| {
                let location = format!("{}/{keyword}", node.location);
                explained.push(Explained { location, cost, why });
            };
            for assertion in &node.assertions {
                add(assertion.keyword, of_check(&assertion.check));
            }
            for applicator in &node.applicators {
                for keyword in keywords(applicator) {
                    add(keyword, of_applicator(node, applicator));
                }
            }
        }
        for constraint in &self.constraints {
            let location = constraint.location.clone();
            let (cost, why) = of_rule(&constraint.rule);
            explained.push(Explained { location, cost, why });
        }
        explained.sort_by(|a, b| a.location.cmp(&b.location));
        explained
    }
}

fn of_check(check: &Check) -> (Cost, &'static str) {
    match check {
        Check::Const(_) | Check::Enum(_) => {
            (Cost::Local, "compared to the first difference, at most as far as the constant goes")
        }
        Check::MinItems(_) | Check::MaxItems(_) => (Cost::Local, "lists keep their count"),
        Check::MinProperties(_) | Check::MaxProperties(_) => (Cost::Local, "maps keep their count"),
        Check::Required(_) | Check::DependentRequired(_) => {
            (Cost::Local, "only when one of its keys comes or goes")
        }
        Check::UniqueItems => (
            Cost::Whole,
            "an element that is put in or changes is compared to all others of its list; `x-spinney-unique` is not",
        ),
        _ => (Cost::Local, "looks at the value only"),
    }
}

fn of_rule(rule: &Rule) -> (Cost, &'static str) {
    match rule {
        Rule::Reference(_) => (Cost::Changed, "an index counts who refers to what"),
        Rule::Unique(_) => (
            Cost::Changed,
            "an index counts members with the same fields; a container in a list is looked through as a whole",
        ),
    }
}

fn keywords(applicator: &Applicator) -> Vec<&'static str> {
    match applicator {
        Applicator::Properties(properties) => [
            (!properties.named.is_empty(), "properties"),
            (!properties.patterns.is_empty(), "patternProperties"),
            (properties.additional.is_some(), "additionalProperties"),
        ]
        .into_iter()
        .filter_map(|(is_there, keyword)| is_there.then_some(keyword))
        .collect(),
        Applicator::Items(items) => [
            (!items.prefix.is_empty(), items.prefix_keyword),
            (items.rest.is_some(), items.rest_keyword),
        ]
        .into_iter()
        .filter_map(|(is_there, keyword)| is_there.then_some(keyword))
        .collect(),
        other => vec![other.keyword()],
    }
}

fn of_applicator(node: &Node, applicator: &Applicator) -> (Cost, &'static str) {
    match applicator {
        Applicator::UnevaluatedProperties(_) | Applicator::UnevaluatedItems(_)
            if node.whole_when_changed =>
        {
            (
                Cost::Whole,
                "what is evaluated depends on which branches hold, so all is looked at again",
            )
        }
        _ if node.whole_when_changed => {
            (Cost::Whole, "an `unevaluated...` keyword beside it depends on which branches hold")
        }
        Applicator::UnevaluatedProperties(_) | Applicator::UnevaluatedItems(_) => {
            (Cost::Changed, "what is evaluated follows from the schema alone")
        }
        Applicator::Ref(..) | Applicator::DynamicRef(..) | Applicator::AllOf(_) => {
            (Cost::Changed, "held before, so it is followed to what changed")
        }
        Applicator::DependentSchemas(..) => {
            (Cost::Changed, "followed to what changed; the whole map when its key is added")
        }
        Applicator::Properties(_) => (Cost::Changed, "members that did not change still fit"),
        Applicator::PropertyNames(_) => (Cost::Changed, "keys that were not added still fit"),
        Applicator::Items(_) => {
            (Cost::Changed, "elements that did not change and kept their schema still fit")
        }
        Applicator::Contains(_) => (
            Cost::Changed,
            "matches are counted among what changed; the whole list when a limit may be crossed",
        ),
        Applicator::AnyOf(_) | Applicator::OneOf(_) => (
            Cost::Whole,
            "when a branch looks at what changed; only what changed where scalars tell which branch held",
        ),
        Applicator::Not(_) => {
            (Cost::Whole, "when its schema looks at what changed, until a part of it does not fit")
        }
        Applicator::If { .. } => (
            Cost::Whole,
            "the condition, when it looks at what changed; what it leads to only where it changed, unless the condition did",
        ),
    }
}
