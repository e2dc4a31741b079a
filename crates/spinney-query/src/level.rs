//! One segment applied to one node: its children or descendants that are selected, one by one.

use spinney_core::error::Result;

use crate::budget::Meter;
use crate::location::Step;
use crate::node::Node;
use crate::program::{Segment, Selector};
use crate::slice;
use crate::sweep::{Run, Sweep};

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
}

/// What a segment came upon.
pub enum Candidate<N> {
    /// A node that is selected.
    Selected(N),
    /// A node that is, if this filter lets it pass.
    Filtered(N, usize),
    /// There are no more.
    End,
}

impl<N: Node> Level<N> {
    /// Before the first node.
    pub fn new(base: N) -> Level<N> {
        Level { base, selector: 0, sweep: None, descent: Vec::new() }
    }

    /// The next node.
    #[inline]
    pub fn next(&mut self, segment: &Segment, meter: &mut Meter) -> Result<Candidate<N>> {
        loop {
            if let Some(sweep) = &mut self.sweep {
                if let Some(child) = sweep.next()? {
                    meter.step()?;
                    return Ok(match segment.selectors[self.selector - 1] {
                        Selector::Filter(filter) => Candidate::Filtered(child, filter),
                        _ => Candidate::Selected(child),
                    });
                }
                self.sweep = None;
            }
            if let Some(selector) = segment.selectors.get(self.selector) {
                self.selector += 1;
                match selector {
                    Selector::Name(_) | Selector::Index(_) => {
                        meter.step()?;
                        if let Some(child) = select(&self.base, selector)? {
                            return Ok(Candidate::Selected(child));
                        }
                    }
                    Selector::Slice(slice) => self.sweep = Sweep::slice(&self.base, slice)?,
                    Selector::Wildcard | Selector::Filter(_) => {
                        self.sweep = Sweep::all(&self.base)?;
                    }
                }
            } else if !segment.descends || !self.descend(meter)? {
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
            match run.next()? {
                None => drop(self.descent.pop()),
                Some(child) => {
                    meter.step()?;
                    // Nothing is selected of a scalar.
                    if child.is_container()? {
                        (self.base, self.selector) = (child, 0);
                        return Ok(true);
                    }
                }
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

/// The child that a name or an index selects.
#[inline]
pub fn select<N: Node>(node: &N, selector: &Selector) -> Result<Option<N>> {
    match selector {
        Selector::Name(name) => node.member(name),
        &Selector::Index(index @ 0..) => node.element(index.unsigned_abs()),
        &Selector::Index(index) => {
            let count = node.count()?;
            match slice::position(index, || count) {
                Some(position) => node.element(position),
                None => Ok(None),
            }
        }
        _ => unreachable!("the route is singular"),
    }
}
