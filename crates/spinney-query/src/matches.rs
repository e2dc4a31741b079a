//! A query on its way through a tree: walks, and within filters walks within walks, on one stack.

use std::sync::Arc;

use spinney_core::error::{ErrorKind, Result};

use crate::budget::{Budget, Meter};
use crate::compare::Operand;
use crate::judge::{Answer, Judge, Judgement, Outcome, Purpose};
use crate::level::{Candidate, Context, Level};
use crate::location::Location;
use crate::program::{Program, RouteId};
use spinney_core::read::Node;

/// The nodes that a query finds, one after another.
pub struct Matches<N: Node> {
    program: Arc<Program>,
    root: N,
    /// The query's own, then one for each suspended judgement.
    walks: Vec<Walk<N>>,
    /// Judgements that wait for the walk of the same place, counted without the query's own.
    suspended: Vec<Judgement<N>>,
    judge: Judge<N>,
    meter: Meter,
    /// Room of walks that have ended.
    spare: Vec<Vec<Level<N>>>,
}

/// A route on its way.
struct Walk<N: Node> {
    route: RouteId,
    /// Where it begins; taken by the first step.
    start: Option<N>,
    /// One for each segment that has begun.
    levels: Vec<Level<N>>,
    purpose: Purpose,
    /// How many nodes were found, and the first of them where that is wanted.
    count: u64,
    value: Option<N>,
}

impl<N: Node> Matches<N> {
    /// A query before its first node.
    pub(crate) fn new(program: Arc<Program>, root: N, budget: Budget) -> Matches<N> {
        let judge = Judge::new(&program);
        let main = Walk::new(program.main(), root.clone(), Purpose::Value, Vec::new());
        let (suspended, spare, meter) = (Vec::new(), Vec::new(), Meter::new(budget));
        Matches { program, root, walks: vec![main], suspended, judge, meter, spare }
    }

    /// The next node; `None` when there are no more.
    ///
    /// # Errors
    /// `LimitExceeded` naming the budget that is used up; `Corrupted` naming the place.
    #[allow(clippy::should_implement_trait, reason = "an error does not end an iterator")]
    pub fn next(&mut self) -> Result<Option<N>> {
        self.advance().map_err(|error| match (error.kind(), self.location()) {
            (ErrorKind::Corrupted, Ok(location)) => error.at(format_args!("near `{location}`")),
            _ => error,
        })
    }

    /// Where the node lies that was given last.
    ///
    /// # Errors
    /// `Corrupted` when a key does not read.
    pub fn location(&self) -> Result<Location> {
        let main = &self.walks[0];
        let segments = &self.program.routes[main.route].segments;
        let mut steps = Vec::new();
        for (level, segment) in main.levels.iter().zip(segments) {
            level.steps_into(segment, &mut steps)?;
        }
        Ok(Location(steps))
    }

    /// How many nodes were visited so far, those within filters included.
    pub fn steps(&self) -> u64 {
        self.meter.steps()
    }

    fn advance(&mut self) -> Result<Option<N>> {
        loop {
            let walk = self.walks.last_mut().expect("the query's own walk stays");
            let context = &mut Context {
                program: &self.program,
                root: &self.root,
                judge: &mut self.judge,
                meter: &mut self.meter,
            };
            let mut selected = match walk.next(context)? {
                Candidate::Selected(node) => Some(node),
                Candidate::Pending(judgement, route, purpose) => {
                    self.suspend(judgement, route, purpose);
                    None
                }
                Candidate::End if self.walks.len() == 1 => return Ok(None),
                Candidate::End => self.answer()?,
            };
            // A node that decides a walk may let the candidate of the walk below pass, and so on.
            while let Some(node) = selected.take() {
                let is_own = self.walks.len() == 1;
                let walk = self.walks.last_mut().expect("the query's own walk stays");
                if walk.levels.len() < self.program.routes[walk.route].segments.len() {
                    walk.levels.push(Level::new(node));
                } else if is_own {
                    self.meter.result()?;
                    return Ok(Some(node));
                } else if walk.is_decided_by(node) {
                    selected = self.answer()?;
                }
            }
        }
    }

    /// Begins the walk that a judgement needs.
    fn suspend(&mut self, judgement: Judgement<N>, route: RouteId, purpose: Purpose) {
        let from = match self.program.routes[route].is_absolute {
            true => self.root.clone(),
            false => judgement.candidate.clone(),
        };
        let levels = self.spare.pop().unwrap_or_default();
        self.walks.push(Walk::new(route, from, purpose, levels));
        self.suspended.push(judgement);
    }

    /// Ends the last walk and goes on with the judgement that waits for it; gives the candidate when that
    /// passes.
    fn answer(&mut self) -> Result<Option<N>> {
        let (Some(mut walk), Some(mut judgement)) = (self.walks.pop(), self.suspended.pop()) else {
            unreachable!("a judgement waits for each walk but the query's own")
        };
        let answer = match walk.purpose {
            Purpose::Exists => Answer::Exists(walk.count > 0),
            Purpose::Count => Answer::Operand(Operand::Number(walk.count)),
            Purpose::Value => {
                Answer::Operand(match walk.value.take().filter(|_| walk.count == 1) {
                    Some(node) => Operand::Node(node),
                    None => Operand::Nothing,
                })
            }
        };
        walk.levels.clear();
        self.spare.push(walk.levels);
        let Judgement { candidate, progress } = &mut judgement;
        self.judge.answer(&self.program, walk.route, progress, answer);
        match self.judge.run(&self.program, &self.root, candidate, progress, &mut self.meter)? {
            Outcome::Decided(true) => Ok(Some(judgement.candidate)),
            Outcome::Decided(false) => Ok(None),
            Outcome::Needs(route, purpose) => {
                self.suspend(judgement, route, purpose);
                Ok(None)
            }
        }
    }
}

impl<N: Node> Walk<N> {
    fn new(route: RouteId, start: N, purpose: Purpose, levels: Vec<Level<N>>) -> Walk<N> {
        Walk { route, start: Some(start), levels, purpose, count: 0, value: None }
    }

    /// What the innermost segment comes upon next; levels that have ended are left.
    #[inline]
    fn next(&mut self, context: &mut Context<'_, N>) -> Result<Candidate<N>> {
        if let Some(start) = self.start.take() {
            context.meter.step()?;
            return Ok(Candidate::Selected(start));
        }
        let segments = &context.program.routes[self.route].segments;
        while let Some(at) = self.levels.len().checked_sub(1) {
            match self.levels[at].next(&segments[at], context)? {
                Candidate::End => drop(self.levels.pop()),
                candidate => return Ok(candidate),
            }
        }
        Ok(Candidate::End)
    }

    /// Takes a node that was found; true when no more need be looked for.
    fn is_decided_by(&mut self, node: N) -> bool {
        self.count += 1;
        match self.purpose {
            Purpose::Exists => true,
            Purpose::Count => false,
            Purpose::Value if self.count == 1 => {
                self.value = Some(node);
                false
            }
            Purpose::Value => true,
        }
    }
}
