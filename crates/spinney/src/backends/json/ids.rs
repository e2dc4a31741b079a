//! The ids of a list's elements, in their order, as runs that count up.

use std::fmt::Write as _;
use std::ops::Range;

/// No list has so many elements in its life that one gets a greater id.
const ID_MAX: u64 = 1 << 62;

/// Ids in the order of the elements.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ids(Vec<Range<u64>>);

impl Ids {
    /// Adds the id of the next element.
    pub fn push(&mut self, id: u64) {
        match self.0.last_mut() {
            Some(run) if run.end == id => run.end += 1,
            _ => self.0.push(id..id + 1),
        }
    }

    /// Whether reading a list gives these ids by itself.
    pub fn are_given(&self) -> bool {
        match &*self.0 {
            [] => true,
            [run] => run.start == 0,
            _ => false,
        }
    }

    /// `0-3,9,4-8` for the ids 0 to 3, then 9, then 4 to 8.
    pub fn print(&self) -> String {
        let mut text = String::new();
        for run in &self.0 {
            let separator = if text.is_empty() { "" } else { "," };
            let _ = match run.end - run.start {
                1 => write!(text, "{separator}{}", run.start),
                _ => write!(text, "{separator}{}-{}", run.start, run.end - 1),
            };
        }
        text
    }

    /// Reads what was printed; `None` when it is something else, or has an id twice.
    pub fn parse(text: &str) -> Option<Ids> {
        let run = |text: &str| {
            let (first, last) = text.split_once('-').unwrap_or((text, text));
            let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
            (first <= last && last <= ID_MAX).then(|| first..last + 1)
        };
        let runs: Vec<Range<u64>> = text.split(',').map(run).collect::<Option<_>>()?;
        let mut sorted = runs.clone();
        sorted.sort_by_key(|run| run.start);
        sorted.is_sorted_by(|before, after| before.end <= after.start).then_some(Ids(runs))
    }

    /// The ids, and then new ones without end, for a list that has become longer.
    pub fn assigned(&self) -> impl Iterator<Item = u64> + '_ {
        let free = self.0.iter().map(|run| run.end).max().unwrap_or(0);
        self.0.iter().cloned().flatten().chain(free..)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_round_trip_as_runs() {
        let of = |ids: &[u64]| {
            let mut made = Ids::default();
            ids.iter().for_each(|id| made.push(*id));
            made
        };
        for (ids, text) in
            [(&[0, 1, 2, 3, 9, 4, 5][..], "0-3,9,4-5"), (&[7], "7"), (&[2, 1, 0], "2,1,0")]
        {
            let ids = of(ids);
            assert!(!ids.are_given());
            assert_eq!((&*ids.print(), Ids::parse(text)), (text, Some(ids)));
        }
        assert!(of(&[]).are_given() && of(&[0, 1, 2]).are_given());
        assert_eq!(of(&[3, 9, 4]).assigned().take(5).collect::<Vec<_>>(), [3, 9, 4, 10, 11]);
        for bad in ["", "x", "1-", "3-1", "1,,2", "18446744073709551615", "1-4,3"] {
            assert_eq!(Ids::parse(bad), None, "{bad}");
        }
    }
}
