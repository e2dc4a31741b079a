//! A compiled schema: an arena of nodes that refer to each other by index, so that loops of
//! references cost nothing.

use std::collections::HashMap;

use spinney_core::{Number, Value};

use crate::decimal::Divisor;
use crate::format::Format;
use crate::pattern::Pattern;
use crate::resources::ResourceId;
use crate::vocabulary::{Constraint, ConstraintId, Known};
use spinney_core::node::NodeKind;

/// The index of a node in [`Schema`].
pub type NodeId = usize;

/// A schema, ready to judge documents. Cheap to share between threads, immutable.
#[derive(Clone, Debug)]
pub struct Schema {
    pub(crate) nodes: Vec<Node>,
    pub(crate) root: NodeId,
    /// What `$dynamicRef` leads to, by the name's index, in a resource of the dynamic scope.
    pub(crate) dynamic: HashMap<(usize, ResourceId), NodeId>,
    /// What spinney's own keywords ask for.
    pub(crate) constraints: Vec<Constraint>,
    /// Where in documents they apply.
    pub(crate) sites: Known,
    /// As [`crate::Options::glance_steps`].
    pub(crate) glance_steps: u64,
}

/// One schema object or boolean.
#[derive(Clone, Debug, Default)]
pub(crate) struct Node {
    /// The resource that it belongs to, for the dynamic scope.
    pub resource: ResourceId,
    /// Its absolute location for people.
    pub location: String,
    /// What it says of everything, when it is a boolean.
    pub verdict: Option<bool>,
    pub assertions: Vec<Assertion>,
    /// Cheap ones first; those that need the annotations of others last.
    pub applicators: Vec<Applicator>,
    /// Whether members or elements may be covered by one branch and not by another, so that an
    /// `unevaluated...` keyword here must look at everything again when anything changes.
    pub whole_when_changed: bool,
    /// What spinney's own keywords ask for here.
    pub constraints: Vec<ConstraintId>,
    /// Whether spinney's own keywords stand here or below.
    pub leads_to_constraint: bool,
}

impl Node {
    /// Whether it says nothing, so that nothing needs to be read.
    pub fn accepts_all(&self) -> bool {
        self.verdict != Some(false) && self.assertions.is_empty() && self.applicators.is_empty()
    }

    /// Whether it reads no members or elements.
    pub fn is_shallow(&self) -> bool {
        self.applicators.is_empty()
    }

    /// Whether one of its keywords wants to know what others have evaluated.
    pub fn wants_coverage(&self) -> bool {
        let wants = |applicator: &Applicator| {
            matches!(
                applicator,
                Applicator::UnevaluatedProperties(_) | Applicator::UnevaluatedItems(_)
            )
        };
        self.applicators.iter().any(wants)
    }
}

/// A keyword that looks at one node only.
#[derive(Clone, Debug)]
pub(crate) struct Assertion {
    pub keyword: &'static str,
    pub check: Check,
}

#[derive(Clone, Debug)]
pub(crate) enum Check {
    Type(Types),
    Const(Value),
    Enum(Vec<Value>),
    MultipleOf(Divisor, Number),
    Minimum(Number),
    Maximum(Number),
    ExclusiveMinimum(Number),
    ExclusiveMaximum(Number),
    MinLength(u64),
    MaxLength(u64),
    Pattern(Pattern),
    Format(Format),
    MinItems(u64),
    MaxItems(u64),
    UniqueItems,
    MinProperties(u64),
    MaxProperties(u64),
    Required(Vec<String>),
    DependentRequired(Vec<(String, Vec<String>)>),
}

/// The types that a `type` keyword names.
#[derive(Clone, Debug, Default)]
pub(crate) struct Types {
    pub kinds: Vec<NodeKind>,
    /// Whether integers are accepted where not every number is.
    pub integer: bool,
    /// Whether `1.0` is an integer, too: not so in draft 4.
    pub by_value: bool,
}

/// A keyword that applies schemas.
#[derive(Clone, Debug)]
pub(crate) enum Applicator {
    Ref(&'static str, NodeId),
    /// A reference that the dynamic scope may redirect, and the index of its name.
    DynamicRef(&'static str, NodeId, usize),
    AllOf(Vec<NodeId>),
    AnyOf(Vec<NodeId>),
    OneOf(Vec<NodeId>),
    Not(NodeId),
    If {
        condition: NodeId,
        then: Option<NodeId>,
        otherwise: Option<NodeId>,
    },
    DependentSchemas(&'static str, Vec<(String, NodeId)>),
    Properties(Properties),
    PropertyNames(NodeId),
    Items(Items),
    Contains(Contains),
    UnevaluatedProperties(NodeId),
    UnevaluatedItems(NodeId),
}

/// `properties`, `patternProperties` and `additionalProperties`, which belong together.
#[derive(Clone, Debug, Default)]
pub(crate) struct Properties {
    /// Sorted by key.
    pub named: Vec<(String, NodeId)>,
    pub patterns: Vec<(Pattern, NodeId)>,
    pub additional: Option<NodeId>,
}

impl Properties {
    /// The schema of a name.
    pub fn named(&self, key: &str) -> Option<NodeId> {
        let found = self.named.binary_search_by(|(name, _)| name.as_str().cmp(key)).ok()?;
        Some(self.named[found].1)
    }

    /// Whether a member is looked at by name or pattern.
    pub fn covers(&self, key: &str) -> bool {
        self.named(key).is_some() || self.patterns.iter().any(|(pattern, _)| pattern.is_match(key))
    }
}

/// `prefixItems` and `items`, or `items` and `additionalItems` in earlier drafts.
#[derive(Clone, Debug)]
pub(crate) struct Items {
    pub prefix_keyword: &'static str,
    pub prefix: Vec<NodeId>,
    pub rest_keyword: &'static str,
    pub rest: Option<NodeId>,
}

impl Items {
    /// The schema of an element.
    pub fn at(&self, position: u64) -> Option<NodeId> {
        let first = usize::try_from(position).ok().and_then(|at| self.prefix.get(at));
        first.copied().or(self.rest)
    }
}

/// `contains` with its limits.
#[derive(Clone, Debug)]
pub(crate) struct Contains {
    pub node: NodeId,
    pub min: u64,
    pub max: Option<u64>,
    /// Whether the elements that match count as evaluated: since 2020-12.
    pub covers: bool,
}

impl Applicator {
    /// The keyword, or the first of those that belong together.
    pub fn keyword(&self) -> &'static str {
        match self {
            Applicator::Ref(keyword, _)
            | Applicator::DynamicRef(keyword, ..)
            | Applicator::DependentSchemas(keyword, _) => keyword,
            Applicator::AllOf(_) => "allOf",
            Applicator::AnyOf(_) => "anyOf",
            Applicator::OneOf(_) => "oneOf",
            Applicator::Not(_) => "not",
            Applicator::If { .. } => "if",
            Applicator::Properties(_) => "properties",
            Applicator::PropertyNames(_) => "propertyNames",
            Applicator::Items(_) => "items",
            Applicator::Contains(_) => "contains",
            Applicator::UnevaluatedProperties(_) => "unevaluatedProperties",
            Applicator::UnevaluatedItems(_) => "unevaluatedItems",
        }
    }

    /// Whether it holds when each member that it looks at fits, and asks nothing else of them.
    pub fn asserts_members(&self) -> bool {
        matches!(
            self,
            Applicator::Properties(_)
                | Applicator::PropertyNames(_)
                | Applicator::Items(_)
                | Applicator::UnevaluatedProperties(_)
                | Applicator::UnevaluatedItems(_)
        )
    }

    /// All schemas that it applies, to the node or below.
    pub fn schemas(&self) -> Vec<NodeId> {
        match self {
            Applicator::Properties(properties) => {
                let named = properties.named.iter().map(|(_, node)| *node);
                let patterns = properties.patterns.iter().map(|(_, node)| *node);
                named.chain(patterns).chain(properties.additional).collect()
            }
            Applicator::Items(items) => items.prefix.iter().copied().chain(items.rest).collect(),
            Applicator::Contains(contains) => vec![contains.node],
            Applicator::PropertyNames(node)
            | Applicator::UnevaluatedProperties(node)
            | Applicator::UnevaluatedItems(node) => vec![*node],
            in_place => in_place.in_place(),
        }
    }

    /// The schemas that it applies to the node itself, not to members.
    pub fn in_place(&self) -> Vec<NodeId> {
        match self {
            Applicator::Ref(_, node) | Applicator::Not(node) => vec![*node],
            Applicator::DynamicRef(_, node, _) => vec![*node],
            Applicator::AllOf(nodes) | Applicator::AnyOf(nodes) | Applicator::OneOf(nodes) => {
                nodes.clone()
            }
            Applicator::If { condition, then, otherwise } => {
                [Some(*condition), *then, *otherwise].into_iter().flatten().collect()
            }
            Applicator::DependentSchemas(_, schemas) => {
                schemas.iter().map(|(_, node)| *node).collect()
            }
            _ => Vec::new(),
        }
    }
}
