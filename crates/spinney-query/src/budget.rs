//! What a query may cost. This crate has no clock: whoever has one passes a [`Deadline`].

use std::fmt;

use spinney_core::error::{Error, Result};

/// Steps between two looks at the clock.
const STEPS_UNCHECKED: u64 = 1_024;

/// The most that one run of a query may take; without a word there is no bound.
#[derive(Default)]
pub struct Budget {
    /// Nodes that it may visit, those within filters included.
    pub steps_max: Option<u64>,
    /// Nodes that it may find.
    pub results_max: Option<u64>,
    /// How long it may take.
    pub deadline: Option<Deadline>,
}

/// When a query's time is up.
pub struct Deadline {
    is_over: Box<dyn Fn() -> bool + Send>,
    shown: String,
}

impl Deadline {
    /// Asks `is_over` once for each thousand nodes or so; `shown` is the time in words, for the error.
    pub fn new(is_over: impl Fn() -> bool + Send + 'static, shown: impl fmt::Display) -> Deadline {
        Deadline { is_over: Box::new(is_over), shown: shown.to_string() }
    }
}

/// Counts what a run has cost.
pub struct Meter {
    steps: u64,
    /// Up to how many steps nothing needs to be looked at.
    unchecked: u64,
    results: u64,
    budget: Budget,
}

impl Meter {
    pub fn new(budget: Budget) -> Meter {
        Meter { steps: 0, unchecked: 0, results: 0, budget }
    }

    /// Nodes visited so far.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// A node is visited.
    ///
    /// # Errors
    /// `LimitExceeded` when it is one too many, or the time is up.
    #[inline]
    pub fn step(&mut self) -> Result<()> {
        self.steps += 1;
        if self.steps > self.unchecked { self.check() } else { Ok(()) }
    }

    #[cold]
    fn check(&mut self) -> Result<()> {
        let Budget { steps_max, deadline, .. } = &self.budget;
        let steps_max = steps_max.unwrap_or(u64::MAX);
        if self.steps > steps_max {
            return Err(exceeded(format_args!("visits more than {steps_max} nodes"), "steps-max"));
        }
        if let Some(Deadline { shown, .. }) =
            deadline.as_ref().filter(|deadline| (deadline.is_over)())
        {
            return Err(exceeded(format_args!("takes longer than {shown}"), "time-max"));
        }
        self.unchecked = (self.steps + STEPS_UNCHECKED).min(steps_max);
        Ok(())
    }

    /// A node is found.
    ///
    /// # Errors
    /// `LimitExceeded` when it is one too many.
    pub fn result(&mut self) -> Result<()> {
        self.results += 1;
        match self.budget.results_max {
            Some(max) if self.results > max => {
                Err(exceeded(format_args!("finds more than {max} nodes"), "results-max"))
            }
            _ => Ok(()),
        }
    }
}

#[cold]
fn exceeded(what: fmt::Arguments<'_>, option: &str) -> Error {
    let field = option.replace('-', "_");
    Error::limit_exceeded(format!(
        "the query {what}, its budget; ask for less, or raise `{field}` (`--{option}`)"
    ))
}
