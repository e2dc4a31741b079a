//! Runs the code of filters.
//!
//! It follows singular queries itself. Where an operation needs a walk, the judgement is suspended
//! with its place in the code, and goes on with the answer.

use spinney_core::error::Result;

use crate::budget::Meter;
use crate::compare::{Operand, holds, holds_for};
use crate::level::select;
use crate::pattern::{Extent, Pattern};
use crate::program::{Comparison, Op, Program, Route, RouteId};
use spinney_core::read::{Leaf, Node};

/// How far a filter's code was run for a node.
pub struct Progress {
    filter: usize,
    /// The place in the code.
    at: usize,
    truth: bool,
}

impl Progress {
    /// At the beginning of the code.
    #[inline]
    pub fn new(filter: usize) -> Progress {
        Progress { filter, at: 0, truth: false }
    }
}

/// A filter that waits for a walk.
pub struct Judgement<N> {
    /// The node that it is asked about.
    pub candidate: N,
    /// How far it came.
    pub progress: Progress,
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
        progress: &mut Progress,
        answer: Answer<N>,
    ) {
        if program.routes[route].is_absolute {
            self.known[route] = Some(answer.clone());
        }
        self.take(progress, answer);
    }

    #[inline]
    fn take(&mut self, progress: &mut Progress, answer: Answer<N>) {
        match answer {
            Answer::Exists(exists) => progress.truth = exists,
            Answer::Operand(operand) => self.operands.push(operand),
        }
    }

    #[inline]
    fn pop(&mut self) -> Operand<N> {
        self.operands.pop().expect("the parser counts operands")
    }

    /// Runs a filter from where it is.
    ///
    /// # Errors
    /// Those of reading, and of the meter.
    pub fn run(
        &mut self,
        program: &Program,
        root: &N,
        candidate: &N,
        progress: &mut Progress,
        meter: &mut Meter,
    ) -> Result<Outcome> {
        let code = &program.filters[progress.filter];
        while let Some(&op) = code.get(progress.at) {
            progress.at += 1;
            match op {
                Op::Literal(literal) => self.operands.push(Operand::Literal(literal)),
                Op::Node(route) | Op::Exists(route) | Op::Count(route) | Op::Value(route) => {
                    let Some(answer) = self.look(program, root, candidate, op, meter)? else {
                        let purpose = match op {
                            Op::Count(_) => Purpose::Count,
                            Op::Value(_) => Purpose::Value,
                            _ => Purpose::Exists,
                        };
                        return Ok(Outcome::Needs(route, purpose));
                    };
                    self.take(progress, answer);
                }
                Op::Length => {
                    let operand = self.pop();
                    let length = self.length(program, &operand)?;
                    self.operands.push(length);
                }
                Op::Compare(comparison) => {
                    let (b, a) = (self.pop(), self.pop());
                    progress.truth = holds(comparison, (&a, &b), program, &mut self.long, meter)?;
                }
                Op::CompareLiteral(comparison, route, literal) => {
                    let compared = (comparison, route, literal);
                    progress.truth = self.compare_literal(program, candidate, compared, meter)?;
                }
                Op::Match(extent, pattern) => {
                    progress.truth = self.matches(program, extent, pattern)?;
                }
                Op::Not => progress.truth = !progress.truth,
                Op::JumpIf(truth, target) => {
                    if progress.truth == truth {
                        progress.at = target;
                    }
                }
            }
        }
        Ok(Outcome::Decided(progress.truth))
    }

    #[inline]
    fn compare_literal(
        &mut self,
        program: &Program,
        candidate: &N,
        (comparison, route, literal): (Comparison, RouteId, usize),
        meter: &mut Meter,
    ) -> Result<bool> {
        let mut node = candidate.clone();
        let value = match follow(&program.routes[route], &mut node, meter)? {
            true => node.leaf(&mut self.long[0])?,
            false => None,
        };
        Ok(holds_for(comparison, value, &program.literals[literal]))
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
        if !route.is_singular || !matches!(op, Op::Node(_) | Op::Exists(_)) {
            return Ok(None);
        }
        let mut node = if route.is_absolute { root } else { candidate }.clone();
        let answer = match (op, follow(route, &mut node, meter)?) {
            (Op::Exists(_), exists) => Answer::Exists(exists),
            (_, true) => Answer::Operand(Operand::Node(node)),
            (_, false) => Answer::Operand(Operand::Nothing),
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

/// Moves to the node that a singular route finds; false when there is none.
#[inline]
fn follow<N: Node>(route: &Route, node: &mut N, meter: &mut Meter) -> Result<bool> {
    for segment in &route.segments {
        meter.step()?;
        if !select(node, &segment.selectors[0])? {
            return Ok(false);
        }
    }
    Ok(true)
}
