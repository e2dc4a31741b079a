//! Comparisons of filters (RFC 9535, section 2.3.5.2.2): numbers by their exact value, strings by
//! their characters, containers in depth.

use std::cmp::Ordering;

use spinney_core::Num;
use spinney_core::error::Result;

use crate::budget::Meter;
use crate::program::{Comparison, Literal, Program};
use spinney_core::read::{Children, Leaf, Node};

/// What operations of a filter work on.
#[derive(Clone)]
pub enum Operand<N> {
    /// The absence of a value.
    Nothing,
    /// A literal of the program.
    Literal(usize),
    /// What `length()` or `count()` gave.
    Number(u64),
    /// A node.
    Node(N),
}

impl<N: Node> Operand<N> {
    /// The value, when it is no container; `long` is a buffer.
    #[inline]
    pub fn leaf<'a>(
        &'a self,
        program: &'a Program,
        long: &'a mut Vec<u8>,
    ) -> Result<Option<Leaf<'a>>> {
        Ok(match self {
            Operand::Nothing => None,
            Operand::Literal(literal) => Some(program.literals[*literal].leaf()),
            &Operand::Number(number) => Some(Leaf::Number(match i64::try_from(number) {
                Ok(number) => Num::Int(number),
                Err(_) => Num::Uint(number),
            })),
            Operand::Node(node) => return node.leaf(long),
        })
    }
}

/// How two operands relate.
enum Relation {
    /// In this order, which only numbers and strings have.
    Ordered(Ordering),
    /// The same, and without an order.
    Same,
    /// Not the same, and without an order.
    Different,
}

/// Whether a comparison holds. `long` are buffers.
///
/// # Errors
/// Those of reading, and of the meter.
pub fn holds<N: Node>(
    comparison: Comparison,
    (a, b): (&Operand<N>, &Operand<N>),
    program: &Program,
    long: &mut [Vec<u8>; 2],
    meter: &mut Meter,
) -> Result<bool> {
    let [long_a, long_b] = long;
    let relation = match (a.leaf(program, long_a)?, b.leaf(program, long_b)?) {
        (Some(a), Some(b)) => relate(a, b),
        (None, None) => match (a, b) {
            (Operand::Node(a), Operand::Node(b)) => {
                let needs_equality = !matches!(comparison, Comparison::Less | Comparison::Greater);
                match needs_equality && are_equal(a, b, meter)? {
                    true => Relation::Same,
                    false => Relation::Different,
                }
            }
            (Operand::Nothing, Operand::Nothing) => Relation::Same,
            _ => Relation::Different,
        },
        _ => Relation::Different,
    };
    Ok(relation.satisfies(comparison))
}

/// Whether a comparison of a value with a literal holds; `None` is a container, or nothing.
#[inline]
pub fn holds_for(comparison: Comparison, value: Option<Leaf<'_>>, literal: &Literal) -> bool {
    let relation = value.map_or(Relation::Different, |value| relate(value, literal.leaf()));
    relation.satisfies(comparison)
}

impl Relation {
    #[inline]
    fn satisfies(&self, comparison: Comparison) -> bool {
        let is_same = matches!(self, Relation::Same | Relation::Ordered(Ordering::Equal));
        let is = |order| matches!(self, Relation::Ordered(found) if *found == order);
        match comparison {
            Comparison::Equal => is_same,
            Comparison::NotEqual => !is_same,
            Comparison::Less => is(Ordering::Less),
            Comparison::LessOrEqual => is_same || is(Ordering::Less),
            Comparison::Greater => is(Ordering::Greater),
            Comparison::GreaterOrEqual => is_same || is(Ordering::Greater),
        }
    }
}

#[inline]
fn relate(a: Leaf<'_>, b: Leaf<'_>) -> Relation {
    match (a, b) {
        (Leaf::Number(a), Leaf::Number(b)) => Relation::Ordered(a.compare(&b)),
        // The order of UTF-8 is that of the characters.
        (Leaf::String(a), Leaf::String(b)) => Relation::Ordered(a.cmp(b)),
        (a, b) if a == b => Relation::Same,
        _ => Relation::Different,
    }
}

/// Whether two nodes are equal with all below them.
fn are_equal<N: Node>(a: &N, b: &N, meter: &mut Meter) -> Result<bool> {
    let mut open: Vec<(N::Children, N::Children)> = Vec::new();
    let mut next = Some((a.clone(), b.clone()));
    let (mut long, mut keys) = ([Vec::new(), Vec::new()], [Vec::new(), Vec::new()]);
    loop {
        if let Some((a, b)) = next.take() {
            meter.step()?;
            let [long_a, long_b] = &mut long;
            let is_same = match (a.leaf(long_a)?, b.leaf(long_b)?) {
                (Some(a), Some(b)) => {
                    matches!(relate(a, b), Relation::Same | Relation::Ordered(Ordering::Equal))
                }
                (None, None) => a.kind()? == b.kind()? && a.count()? == b.count()?,
                _ => false,
            };
            if !is_same {
                return Ok(false);
            }
            open.extend(a.children()?.zip(b.children()?));
        }
        let Some((left, right)) = open.last_mut() else { return Ok(true) };
        let (mut child_a, mut child_b) = (a.clone(), b.clone());
        let [key_a, key_b] = &mut keys;
        if !(left.next(&mut child_a)? && right.next(&mut child_b)?) {
            open.pop();
        } else if left.key(key_a)? != right.key(key_b)? {
            return Ok(false);
        } else {
            next = Some((child_a, child_b));
        }
    }
}
