//! A query as it is run: routes of segments, and filters as code for a small machine.
//!
//! Nothing here nests: routes and filters lie in vectors and name each other by their place.

use std::ops::Range;

use spinney_core::Number;

use crate::pattern::{Extent, Pattern};
use crate::slice::Slice;
use spinney_core::read::{Leaf, Name};

/// Where a [`Route`] lies in its program.
pub type RouteId = usize;

/// A whole query.
#[derive(Debug, Default)]
pub struct Program {
    /// The query itself is the last one; the others stand in filters.
    pub routes: Vec<Route>,
    /// Code of the filters.
    pub filters: Vec<Vec<Op>>,
    /// What filters compare with.
    pub literals: Vec<Literal>,
    /// The regular expressions that are literals; `None` where one is none.
    pub patterns: Vec<Option<Pattern>>,
    /// What is allowed and surely not meant.
    pub warnings: Vec<String>,
}

impl Program {
    /// The query itself.
    pub fn main(&self) -> RouteId {
        self.routes.len() - 1
    }
}

/// A query, or one within a filter: where it begins and how it goes on.
#[derive(Debug)]
pub struct Route {
    /// Whether it begins at the root, and not at the node that a filter looks at.
    pub is_absolute: bool,
    /// Whether it finds one node at most, by the form of its segments.
    pub is_singular: bool,
    /// From each node to others.
    pub segments: Vec<Segment>,
}

/// From a node to some of its children or descendants.
#[derive(Debug)]
pub struct Segment {
    /// Whether the selectors apply to all descendants, too.
    pub descends: bool,
    /// What is selected of each node, in this order.
    pub selectors: Vec<Selector>,
    /// Where it stands in the text.
    pub source: Range<usize>,
}

impl Segment {
    /// Whether it finds one node at most.
    pub fn is_singular(&self) -> bool {
        !self.descends && matches!(self.selectors[..], [Selector::Name(_) | Selector::Index(_)])
    }
}

/// Selects children of a node.
#[derive(Debug)]
pub enum Selector {
    /// The member of a name.
    Name(Name),
    /// The element at a position, from the end when it is negative.
    Index(i64),
    /// Elements.
    Slice(Slice),
    /// All.
    Wildcard,
    /// Those for which this filter's code comes out true.
    Filter(usize),
}

/// A step of a filter's code: operands go to a stack, one truth value to a register.
#[derive(Clone, Copy, Debug)]
pub enum Op {
    /// Pushes a literal.
    Literal(usize),
    /// Pushes the node of a singular route, or nothing.
    Node(RouteId),
    /// `value()`: pushes the only node of a route; nothing when there are none or several.
    Value(RouteId),
    /// `count()`: pushes how many nodes a route finds.
    Count(RouteId),
    /// `length()`: replaces an operand by its length, or nothing.
    Length,
    /// Compares two operands.
    Compare(Comparison),
    /// Compares the value that a singular route from the child finds with a literal, without the stack:
    /// what most filters do.
    CompareLiteral(Comparison, RouteId, usize),
    /// `match()` and `search()`: an operand with a literal pattern, or else with the operand above it.
    Match(Extent, Option<usize>),
    /// Whether a route finds a node.
    Exists(RouteId),
    /// Turns the truth value round.
    Not,
    /// Goes on elsewhere when the truth value is this.
    JumpIf(bool, usize),
}

/// How two operands are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
}

impl Comparison {
    /// The same comparison with its sides exchanged.
    pub fn mirrored(self) -> Comparison {
        match self {
            Comparison::Less => Comparison::Greater,
            Comparison::LessOrEqual => Comparison::GreaterOrEqual,
            Comparison::Greater => Comparison::Less,
            Comparison::GreaterOrEqual => Comparison::LessOrEqual,
            same => same,
        }
    }
}

/// A value that stands in a query.
#[derive(Debug)]
pub enum Literal {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number.
    Number(Number),
    /// A text.
    String(String),
}

impl Literal {
    /// The value.
    #[inline]
    pub fn leaf(&self) -> Leaf<'_> {
        match self {
            Literal::Null => Leaf::Null,
            Literal::Bool(value) => Leaf::Bool(*value),
            Literal::Number(number) => Leaf::Number(number.as_num()),
            Literal::String(text) => Leaf::String(text),
        }
    }
}
