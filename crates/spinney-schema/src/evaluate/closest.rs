//! Which of several alternatives a node nearly fits, for people: what to mend is told by that one.
//!
//! It decides nothing; the verdict stands before it is asked.

use std::cmp::Reverse;

use spinney_core::error::Result;
use spinney_core::{Path, path};

use super::frame::Job;
use super::{Evaluation, NO_CHANGES};
use crate::instance::Instance;
use crate::report::Violation;
use crate::schema::NodeId;

/// Steps that are worth taking to look at one alternative.
const STEPS_MAX: u64 = 10_000;

/// Steps that are worth taking to look at all alternatives of one report.
pub(super) const ALL_STEPS_MAX: u64 = 100_000;

/// Violations of one alternative that are counted.
const COUNTED_MAX: usize = 16;

impl<I: Instance> Evaluation<'_, I> {
    /// What to say of the running frame's node, which fits none of these schemas.
    pub(super) fn fits_none(&mut self, alternatives: &[NodeId]) -> Result<String> {
        let none = "which fits none".to_owned();
        if self.steps_to_explain == 0 || self.frame().job.quiet || !self.has_room() {
            return Ok(none);
        }
        let Some((index, violation)) = self.closest(alternatives)? else { return Ok(none) };
        let (above, _) = self.place();
        let place = Path::parse(&[&*above, &*violation.instance].concat())?;
        let (number, place) = (index + 1, path::Display(&place));
        let Violation { expected, found, .. } = violation;
        Ok(format!(
            "{none}; alternative {number} comes closest, but {place}: expected {expected}, found {found}"
        ))
    }

    /// The schema that holds but for the least, and the first reason why it does not: before all, one that does not
    /// miss a constant, since that often names the kind of a thing; then the one that is right down to the
    /// greatest depth; then the one with the fewest reasons.
    fn closest(&mut self, alternatives: &[NodeId]) -> Result<Option<(usize, Violation)>> {
        let mut candidates = Vec::new();
        for (index, &node) in alternatives.iter().enumerate() {
            let mut evaluation = Evaluation::new(self.schema, &NO_CHANGES, COUNTED_MAX);
            evaluation.scope.clone_from(&self.scope);
            let steps = STEPS_MAX.min(self.steps_to_explain);
            evaluation.budget = Some(steps);
            evaluation.steps_to_explain = 0;
            let subject = self.frame().job.subject.clone();
            evaluation.run(Job::of(node, subject))?;
            self.steps_to_explain -= steps - evaluation.budget.unwrap_or_default();
            let violations = evaluation.report.violations;
            let misses_constant = violations.iter().any(|found| found.keyword.ends_with("/const"));
            let depth = |found: &Violation| found.instance.matches('/').count();
            let right_depth = violations.iter().map(depth).min();
            let score = (misses_constant, Reverse(right_depth), violations.len());
            candidates.extend(violations.into_iter().next().map(|first| (score, index, first)));
        }
        let closest = candidates.into_iter().min_by_key(|&(score, index, _)| (score, index));
        Ok(closest.map(|(_, index, first)| (index, first)))
    }
}
