//! One segment applied to one node: its children or descendants that are selected, one by one.

use spinney_core::error::Result;

use crate::budget::Meter;
use crate::judge::{Judge, Judgement, Outcome, Progress, Purpose};
use crate::location::Step;
use crate::program::{Program, RouteId, Segment, Selector};
use crate::slice;
use crate::sweep::{Run, Sweep};
use spinney_core::read::Node;

/// A segment on its way through a node.
pub struct Level<N: Node> {
    /// The node that selectors apply to: the one that it began at, or a descendant.
    base: N,
    /// The selector that comes next.
    selector: usize,
    /// What the selector before it goes through.
    sweep: Option<Sweep<N>>,
    /// The way from the node that it began at to `base`.
    descent: Vec<Run<N>>,
    /// The child that was come upon last.
    child: N,
}

/// What a segment came upon.
pub enum Candidate<N> {
    /// A node that is selected.
    Selected(N),
    /// A node whose filter needs a walk.
    Pending(Judgement<N>, RouteId, Purpose),
    /// There are no more.
    End,
}

/// What a run shares among its levels.
pub struct Context<'p, N> {
    pub program: &'p Program,
    pub root: &'p N,
    pub judge: &'p mut Judge<N>,
    pub meter: &'p mut Meter,
}

impl<N: Node> Level<N> {
    /// Before the first node.
    pub fn new(base: N) -> Level<N> {
        let child = base.clone();
        Level { base, selector: 0, sweep: None, descent: Vec::new(), child }
    }

    /// The next node.
    #[inline]
    pub fn next(
        &mut self,
        segment: &Segment,
        context: &mut Context<'_, N>,
    ) -> Result<Candidate<N>> {
        loop {
            if let Some(sweep) = &mut self.sweep {
                let selector = &segment.selectors[self.selector - 1];
                while sweep.next(&mut self.child)? {
                    context.meter.step()?;
                    let &Selector::Filter(filter) = selector else {
                        return Ok(Candidate::Selected(self.child.clone()));
                    };
                    let mut progress = Progress::new(filter);
                    match context.run(&self.child, &mut progress)? {
                        Outcome::Decided(true) => {
                            return Ok(Candidate::Selected(self.child.clone()));
                        }
                        Outcome::Decided(false) => {}
                        Outcome::Needs(route, purpose) => {
                            let judgement = Judgement { candidate: self.child.clone(), progress };
                            return Ok(Candidate::Pending(judgement, route, purpose));
                        }
                    }
                }
                self.sweep = None;
            }
            if let Some(selector) = segment.selectors.get(self.selector) {
                self.selector += 1;
                match selector {
                    Selector::Name(_) | Selector::Index(_) => {
                        context.meter.step()?;
                        let mut child = self.base.clone();
                        if select(&mut child, selector)? {
                            return Ok(Candidate::Selected(child));
                        }
                    }
                    Selector::Slice(slice) => self.sweep = Sweep::slice(&self.base, slice)?,
                    Selector::Wildcard | Selector::Filter(_) => {
                        self.sweep = Sweep::all(&self.base)?;
                    }
                }
            } else if !segment.descends || !self.descend(context.meter)? {
                return Ok(Candidate::End);
            }
        }
    }

    /// Moves to the next container below, in document order; false when there is none.
    fn descend(&mut self, meter: &mut Meter) -> Result<bool> {
        if let Some(children) = self.base.children()? {
            self.descent.push(Run::all(children));
        }
        while let Some(run) = self.descent.last_mut() {
            if !run.next(&mut self.child)? {
                self.descent.pop();
                continue;
            }
            meter.step()?;
            // Nothing is selected of a scalar.
            if self.child.is_container()? {
                self.base.clone_from(&self.child);
                self.selector = 0;
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The way from the node that it began at to the one that it gave last.
    pub fn steps_into(&self, segment: &Segment, steps: &mut Vec<Step>) -> Result<()> {
        for run in &self.descent {
            steps.push(run.step()?);
        }
        if let Some(sweep) = &self.sweep {
            steps.push(sweep.step()?);
            return Ok(());
        }
        match self.selector.checked_sub(1).map(|last| &segment.selectors[last]) {
            Some(Selector::Name(name)) => steps.push(Step::Name(name.text().to_owned())),
            Some(&Selector::Index(index)) => {
                let count = self.base.count()?;
                steps.extend(slice::position(index, || count).map(Step::Position));
            }
            _ => {}
        }
        Ok(())
    }
}

impl<N: Node> Context<'_, N> {
    /// Runs a filter from where it is.
    #[inline]
    pub fn run(&mut self, candidate: &N, progress: &mut Progress) -> Result<Outcome> {
        self.judge.run(self.program, self.root, candidate, progress, self.meter)
    }
}

/// Moves to the child that a name or an index selects; false when there is none.
#[inline]
pub fn select<N: Node>(node: &mut N, selector: &Selector) -> Result<bool> {
    match selector {
        Selector::Name(name) => node.enter(name),
        &Selector::Index(index @ 0..) => node.enter_position(index.unsigned_abs()),
        &Selector::Index(index) => {
            let count = node.count()?;
            match slice::position(index, || count) {
                Some(position) => node.enter_position(position),
                None => Ok(false),
            }
        }
        _ => unreachable!("the route is singular"),
    }
}
