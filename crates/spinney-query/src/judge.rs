//! Runs the code of filters.
//!
//! It follows singular queries itself. Where an operation needs a walk, the judgement is suspended
//! with its place in the code, and goes on with the answer.

use spinney_core::error::Result;

use crate::budget::Meter;
use crate::compare::{Operand, holds};
use crate::level::select;
use crate::node::{Leaf, Node};
use crate::pattern::{Extent, Pattern};
use crate::program::{Op, Program, Route, RouteId};

/// A filter that is being asked about a node.
pub struct Judgement<N> {
    /// The node.
    pub candidate: N,
    filter: usize,
    /// The place in the code.
    at: usize,
    truth: bool,
}

impl<N> Judgement<N> {
    /// At the beginning of the code.
    pub fn new(candidate: N, filter: usize) -> Judgement<N> {
        Judgement { candidate, filter, at: 0, truth: false }
    }
}

/// What a walk is made for within a filter.
#[derive(Clone, Copy)]
pub enum Purpose {
    /// Whether it finds a node.
    Exists,
    /// How many nodes it finds.
    Count,
    /// Which node it finds, if it is only one.
    Value,
}

/// What is known of a route.
#[derive(Clone)]
pub enum Answer<N> {
    /// Whether it finds a node.
    Exists(bool),
    /// A value for the stack.
    Operand(Operand<N>),
}

/// How far a judgement came.
pub enum Outcome {
    /// To its end.
    Decided(bool),
    /// To an operation that needs this walk.
    Needs(RouteId, Purpose),
}

/// What all judgements of a run share.
pub struct Judge<N> {
    /// Of all judgements that have begun, one above the other.
    operands: Vec<Operand<N>>,
    /// What routes from the root came to, which is the same for all candidates.
    known: Vec<Option<Answer<N>>>,
    /// The last pattern that came from the tree.
    pattern: Option<(String, Extent, Option<Pattern>)>,
    long: [Vec<u8>; 2],
}

impl<N: Node> Judge<N> {
    /// Before the first judgement.
    pub fn new(program: &Program) -> Judge<N> {
        let known = program.routes.iter().map(|_| None).collect();
        Judge { operands: Vec::new(), known, pattern: None, long: Default::default() }
    }

    /// Takes the answer that a suspended judgement waits for.
    pub fn answer(
        &mut self,
        program: &Program,
        route: RouteId,
        judgement: &mut Judgement<N>,
        answer: Answer<N>,
    ) {
        if program.routes[route].is_absolute {
            self.known[route] = Some(answer.clone());
        }
        self.take(judgement, answer);
    }

    #[inline]
    fn take(&mut self, judgement: &mut Judgement<N>, answer: Answer<N>) {
        match answer {
            Answer::Exists(exists) => judgement.truth = exists,
            Answer::Operand(operand) => self.operands.push(operand),
        }
    }

    #[inline]
    fn pop(&mut self) -> Operand<N> {
        self.operands.pop().expect("the parser counts operands")
    }

    /// Runs a judgement from where it is.
    ///
    /// # Errors
    /// Those of reading, and of the meter.
    pub fn run(
        &mut self,
        program: &Program,
        root: &N,
        judgement: &mut Judgement<N>,
        meter: &mut Meter,
    ) -> Result<Outcome> {
        let code = &program.filters[judgement.filter];
        while let Some(&op) = code.get(judgement.at) {
            judgement.at += 1;
            match op {
                Op::Literal(literal) => self.operands.push(Operand::Literal(literal)),
                Op::Node(route) | Op::Exists(route) | Op::Count(route) | Op::Value(route) => {
                    let Some(answer) = self.look(program, root, &judgement.candidate, op, meter)?
                    else {
                        let purpose = match op {
                            Op::Count(_) => Purpose::Count,
                            Op::Value(_) => Purpose::Value,
                            _ => Purpose::Exists,
                        };
                        return Ok(Outcome::Needs(route, purpose));
                    };
                    self.take(judgement, answer);
                }
                Op::Length => {
                    let operand = self.pop();
                    let length = self.length(program, &operand)?;
                    self.operands.push(length);
                }
                Op::Compare(comparison) => {
                    let (b, a) = (self.pop(), self.pop());
                    judgement.truth = holds(comparison, (&a, &b), program, &mut self.long, meter)?;
                }
                Op::Match(extent, pattern) => {
                    judgement.truth = self.matches(program, extent, pattern)?;
                }
                Op::Not => judgement.truth = !judgement.truth,
                Op::JumpIf(truth, target) => {
                    if judgement.truth == truth {
                        judgement.at = target;
                    }
                }
            }
        }
        Ok(Outcome::Decided(judgement.truth))
    }

    /// What a route comes to that is known or can be followed without a walk.
    #[inline]
    fn look(
        &mut self,
        program: &Program,
        root: &N,
        candidate: &N,
        op: Op,
        meter: &mut Meter,
    ) -> Result<Option<Answer<N>>> {
        let (Op::Node(id) | Op::Exists(id) | Op::Count(id) | Op::Value(id)) = op else {
            unreachable!("the operation has a route")
        };
        let route = &program.routes[id];
        if route.is_absolute
            && let Some(answer) = &self.known[id]
        {
            return Ok(Some(answer.clone()));
        }
        let from = if route.is_absolute { root } else { candidate };
        let answer = match op {
            Op::Node(_) => match follow(route, from, meter)? {
                Some(node) => Answer::Operand(Operand::Node(node)),
                None => Answer::Operand(Operand::Nothing),
            },
            Op::Exists(_) if route.is_singular => {
                Answer::Exists(follow(route, from, meter)?.is_some())
            }
            _ => return Ok(None),
        };
        if route.is_absolute {
            self.known[id] = Some(answer.clone());
        }
        Ok(Some(answer))
    }

    fn length(&mut self, program: &Program, operand: &Operand<N>) -> Result<Operand<N>> {
        Ok(match (operand.leaf(program, &mut self.long[0])?, operand) {
            (Some(Leaf::String(text)), _) => Operand::Number(text.chars().count() as u64),
            (Some(Leaf::Bytes(bytes)), _) => Operand::Number(bytes.len() as u64),
            (None, Operand::Node(node)) => Operand::Number(node.count()?),
            _ => Operand::Nothing,
        })
    }

    fn matches(
        &mut self,
        program: &Program,
        extent: Extent,
        literal: Option<usize>,
    ) -> Result<bool> {
        let pattern = match literal {
            Some(literal) => program.patterns[literal].as_ref(),
            None => {
                let source = self.pop();
                match source.leaf(program, &mut self.long[0])? {
                    Some(Leaf::String(source)) => {
                        stored_pattern(&mut self.pattern, source, extent)?
                    }
                    _ => None,
                }
            }
        };
        let text = self.operands.pop().expect("the parser counts operands");
        Ok(match (pattern, text.leaf(program, &mut self.long[1])?) {
            (Some(pattern), Some(Leaf::String(text))) => pattern.is_match(text),
            _ => false,
        })
    }
}

/// Compiles a pattern from the tree, unless it is the last one again. One that is none matches nothing.
fn stored_pattern<'p>(
    last: &'p mut Option<(String, Extent, Option<Pattern>)>,
    source: &str,
    extent: Extent,
) -> Result<Option<&'p Pattern>> {
    let is_known = last.as_ref().is_some_and(|(text, of, _)| text == source && *of == extent);
    if !is_known {
        *last = Some((source.to_owned(), extent, Pattern::new(source, extent)?.ok()));
    }
    Ok(last.as_ref().and_then(|(_, _, pattern)| pattern.as_ref()))
}

/// The node that a singular route finds.
#[inline]
fn follow<N: Node>(route: &Route, from: &N, meter: &mut Meter) -> Result<Option<N>> {
    let mut node: Option<N> = None;
    for segment in &route.segments {
        meter.step()?;
        node = select(node.as_ref().unwrap_or(from), &segment.selectors[0])?;
        if node.is_none() {
            return Ok(None);
        }
    }
    Ok(Some(node.unwrap_or_else(|| from.clone())))
}
