//! The tries of one system in one row: how many, when warm, when enough.

use std::time::{Duration, Instant};

use spinney_core::Result;

use crate::clock::{Clock, Elapsed};
use crate::options::Mode;
use crate::suite::{Bench, Outcome, Row};
use crate::system::Effect;
use crate::{process, statistics};

/// Below this an unchanging operation is measured in batches, so that the clock does not dominate.
const BATCHED_BELOW_US: f64 = 100.0;
/// How long a batch takes.
const BATCH_US: f64 = 1_000.0;
/// Single operations behind the 99th percentile of batched rows.
const SINGLES: usize = 1_000;
/// Tries that a time budget never cuts.
const TRIES_MIN: usize = 3;
/// Tries of the published procedure.
pub const COMPAT_TRIES: usize = 10;
/// Medians over this many tries are compared to see whether a system is warm.
const WARM_WINDOW: usize = 5;
/// Tries after which a system counts as warm in any case.
const WARM_UP_MAX: usize = 25;
/// Below this first try there is a warm-up.
const WARM_UP_BELOW_US: f64 = 10_000.0;

/// How many tries a lane makes.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Exactly so many, whatever they take.
    pub tries: Option<usize>,
    /// Time for all tries, restoring included.
    pub budget: Option<Duration>,
    /// How tries are made.
    pub mode: Mode,
}

/// The tries of one system in one row.
pub struct Lane {
    limits: Limits,
    /// Tries kept.
    pub kept: Vec<Elapsed>,
    /// Single operations of a batched row, in microseconds.
    pub singles: Vec<f64>,
    /// One operation of the first and of the last tenth of each try that is a series.
    first_tenths: Vec<f64>,
    last_tenths: Vec<f64>,
    /// The first try, in microseconds.
    pub first: Option<f64>,
    /// Bytes written by each try kept.
    pub written: Vec<f64>,
    /// Operations of a batch.
    pub batch: usize,
    /// Whether the budget cut the tries.
    pub cut: bool,
    /// Tries that changed nothing, as the published procedure has them.
    pub noops: usize,
    /// The highest use of memory in a try.
    pub peak_rss_bytes: Option<u64>,
    /// What the last try gave back.
    pub last: Option<Outcome>,
    /// Why there is nothing to measure.
    pub unsupported: Option<String>,
    warming: Vec<f64>,
    is_warm: bool,
    spent: Duration,
}

impl Lane {
    /// No tries yet.
    pub fn new(limits: Limits) -> Lane {
        Lane {
            limits,
            kept: Vec::new(),
            singles: Vec::new(),
            first_tenths: Vec::new(),
            last_tenths: Vec::new(),
            first: None,
            written: Vec::new(),
            batch: 1,
            cut: false,
            noops: 0,
            peak_rss_bytes: None,
            last: None,
            unsupported: None,
            warming: Vec::new(),
            is_warm: false,
            spent: Duration::ZERO,
        }
    }

    /// One try: the first, one of the warm-up or one that is kept.
    ///
    /// # Errors
    /// What the system reports.
    pub fn turn<R: Row>(&mut self, row: &R, bench: &mut dyn Bench<Row = R>) -> Result<()> {
        let begin = Instant::now();
        let measured = self.measure(row, bench);
        self.spent += begin.elapsed();
        let (elapsed, written) = measured?;
        self.keep(row, elapsed, written);
        Ok(())
    }

    fn measure<R: Row>(
        &mut self,
        row: &R,
        bench: &mut dyn Bench<Row = R>,
    ) -> Result<(Elapsed, Option<u64>)> {
        let is_repeated = self.repeats(row) && self.first.is_some();
        if !is_repeated {
            bench.prepare(row)?;
        }
        // Asking the system empties caches, which operations of microseconds would feel.
        let is_short = self.kept.last().is_some_and(|last| last.wall_us < BATCHED_BELOW_US);
        let before = match is_short {
            true => None,
            false => {
                process::reset_peak_rss();
                process::written_bytes()
            }
        };
        let mut total = Elapsed::default();
        if self.batch == 1 {
            let (elapsed, outcome) = attempt(row, bench)?;
            total = elapsed;
            match outcome {
                Outcome::Effect(Effect::Unchanged) if is_repeated => self.noops += 1,
                _ => bench.check(row, &outcome)?,
            }
            self.last = Some(outcome);
        } else {
            let clock = Clock::start();
            for _ in 0..self.batch {
                let outcome = bench.perform(row)?;
                self.last = Some(std::hint::black_box(outcome));
            }
            let elapsed = clock.stop();
            total.wall_us = elapsed.wall_us / self.batch as f64;
            total.cpu_us = elapsed.cpu_us / self.batch as f64;
        }
        if is_short {
            return Ok((total, None));
        }
        self.peak_rss_bytes = self.peak_rss_bytes.max(process::peak_rss_bytes());
        let written = process::written_bytes().zip(before).map(|(after, before)| after - before);
        Ok((total, written))
    }

    fn keep(&mut self, row: &impl Row, elapsed: Elapsed, written: Option<u64>) {
        if self.limits.mode == Mode::Compat {
            self.first.get_or_insert(elapsed.wall_us);
            self.kept.push(elapsed);
            return;
        }
        let Some(first) = self.first else {
            self.first = Some(elapsed.wall_us);
            // What came before, such as loading the document, is paid once and not by tries.
            self.spent = Duration::ZERO;
            self.is_warm = elapsed.wall_us >= WARM_UP_BELOW_US;
            return;
        };
        if !self.is_warm {
            self.warming.push(elapsed.wall_us);
            self.is_warm = self.steady();
            if self.is_warm && !row.writes() {
                let typical = statistics::median(&self.warming).unwrap_or(first);
                if typical < BATCHED_BELOW_US {
                    self.batch = ((BATCH_US / typical.max(0.01)) as usize).clamp(2, 100_000);
                }
            }
            return;
        }
        self.kept.push(elapsed);
        if let Some(Outcome::Series(times)) = &mut self.last {
            let tenth = times.len() / 10;
            self.first_tenths.extend(statistics::mean(&times[..tenth]));
            self.last_tenths.extend(statistics::mean(&times[times.len() - tenth..]));
            self.singles.append(times);
        }
        self.written.extend(written.map(|bytes| bytes as f64));
    }

    /// The medians of the tenths.
    pub fn tenths(&self) -> Option<[f64; 2]> {
        let [first, last] =
            [&self.first_tenths, &self.last_tenths].map(|all| statistics::median(all));
        Some([first?, last?])
    }

    /// Whether tries after the first find what it left, as in the published procedure.
    fn repeats(&self, row: &impl Row) -> bool {
        self.limits.mode == Mode::Compat && row.is_dagger()
    }

    /// Whether the median of the last tries is that of the tries before, within a tenth.
    fn steady(&self) -> bool {
        let window =
            if self.limits.tries.is_some_and(|tries| tries < 10) { 1 } else { WARM_WINDOW };
        let patience = self.limits.budget.map_or(Duration::MAX, |budget| budget / 4);
        if self.warming.len() >= WARM_UP_MAX || self.spent > patience {
            return true;
        }
        let Some(split) = self.warming.len().checked_sub(window) else { return false };
        let (before, now) = self.warming.split_at(split);
        match (statistics::median(&before[split.saturating_sub(window)..]), statistics::median(now))
        {
            (Some(before), Some(now)) => (now / before - 1.0).abs() < 0.1,
            _ => false,
        }
    }

    /// Whether there are tries enough.
    pub fn is_done(&mut self) -> bool {
        if self.unsupported.is_some() {
            return true;
        }
        let kept = self.kept.len();
        let tries = match self.limits.mode {
            Mode::Compat => Some(self.limits.tries.unwrap_or(COMPAT_TRIES)),
            Mode::Honest => self.limits.tries,
        };
        if let Some(tries) = tries {
            return kept >= tries;
        }
        let Some(typical) = self.kept.last().map(|elapsed| elapsed.wall_us) else { return false };
        let wanted = match typical * self.batch as f64 {
            _ if self.batch > 1 => 30,
            us if us < 1e3 => 200,
            us if us < 1e5 => 30,
            _ => 10,
        };
        if kept >= wanted {
            return true;
        }
        self.cut = self.limits.budget.is_some_and(|budget| self.spent > budget);
        self.cut && kept >= TRIES_MIN
    }

    /// Times single operations of a batched row for its 99th percentile.
    ///
    /// # Errors
    /// What the system reports.
    pub fn measure_singles<R: Row>(
        &mut self,
        row: &R,
        bench: &mut dyn Bench<Row = R>,
    ) -> Result<()> {
        if self.batch == 1 {
            return Ok(());
        }
        for _ in 0..SINGLES {
            let begin = Instant::now();
            let outcome = bench.perform(row)?;
            let nanoseconds = begin.elapsed().as_nanos();
            drop(outcome);
            self.singles.push(nanoseconds as f64 / 1e3);
        }
        Ok(())
    }
}

/// Does a row once within a clock.
///
/// # Errors
/// What the system reports.
pub fn attempt<R: Row>(row: &R, bench: &mut dyn Bench<Row = R>) -> Result<(Elapsed, Outcome)> {
    bench.arm(row)?;
    let clock = Clock::start();
    let outcome = bench.perform(row);
    let elapsed = clock.stop();
    Ok((elapsed, outcome?))
}
