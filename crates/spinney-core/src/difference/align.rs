//! Which elements of two lists belong together.
//!
//! Elements are told apart by a fingerprint, so two different ones may be taken for the same; whoever
//! uses the result compares what it puts together.

use std::hash::Hasher;

use similar::{Algorithm, DiffOp, capture_diff_slices};
use twox_hash::XxHash3_64;

use crate::error::Result;
use crate::key::Key;
use crate::visit::{Container, Scalar, Visitor};

use crate::read::{Node, Reached};

/// What happens to an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// It stays, and may have changed; afterwards it is at `new`.
    Both { old: usize, new: usize },
    /// It goes from where it is by now.
    Remove { old: usize, at: usize },
    /// It comes.
    Insert { new: usize },
}

/// The steps that lead from one list to the other, from the first position on.
pub struct Steps {
    ops: std::vec::IntoIter<DiffOp>,
    /// The operation that is under way, and how many of its steps are done.
    current: Option<(DiffOp, usize)>,
}

impl Steps {
    /// Aligns two lists: few elements come and go, by Myers with the bounds of git.
    pub fn align(old: &[Reached<'_>], new: &[Reached<'_>]) -> Result<Steps> {
        // One element to one needs no look.
        let ops = match (old.len(), new.len()) {
            (0 | 1, 0 | 1) => vec![DiffOp::Replace {
                old_index: 0,
                old_len: old.len(),
                new_index: 0,
                new_len: new.len(),
            }],
            _ => {
                let fingerprints = |sides: &[Reached<'_>]| -> Result<Vec<u64>> {
                    sides.iter().map(fingerprint).collect()
                };
                capture_diff_slices(Algorithm::Myers, &fingerprints(old)?, &fingerprints(new)?)
            }
        };
        Ok(Steps { ops: ops.into_iter(), current: None })
    }
}

impl Iterator for Steps {
    type Item = Step;

    fn next(&mut self) -> Option<Step> {
        loop {
            if let Some((op, done)) = &mut self.current
                && let Some(step) = step(op, *done)
            {
                *done += 1;
                return Some(step);
            }
            self.current = Some((self.ops.next()?, 0));
        }
    }
}

/// A step of an operation: what can stay comes first.
fn step(op: &DiffOp, index: usize) -> Option<Step> {
    let (_, old, new) = op.as_tag_tuple();
    let both = old.len().min(new.len());
    let (from, to) = (old.start + index, new.start + index);
    match index {
        _ if index < both => Some(Step::Both { old: from, new: to }),
        _ if from < old.end => Some(Step::Remove { old: from, at: new.end }),
        _ if to < new.end => Some(Step::Insert { new: to }),
        _ => None,
    }
}

/// A number that is the same for identical values.
fn fingerprint(side: &Reached<'_>) -> Result<u64> {
    let mut fingerprint = Fingerprint { hasher: XxHash3_64::default(), number: Vec::new() };
    side.visit(&mut fingerprint)?;
    Ok(fingerprint.hasher.finish())
}

struct Fingerprint {
    hasher: XxHash3_64,
    number: Vec<u8>,
}

impl Fingerprint {
    fn put(&mut self, tag: u8, bytes: &[u8]) {
        self.hasher.write(&[tag]);
        self.hasher.write(&(bytes.len() as u64).to_le_bytes());
        self.hasher.write(bytes);
    }
}

impl Visitor for Fingerprint {
    fn open(&mut self, container: Container) -> Result<()> {
        self.hasher.write(match container {
            Container::Map => b"{",
            Container::List => b"[",
        });
        Ok(())
    }

    fn key(&mut self, key: Key<'_>) -> Result<()> {
        self.put(b'k', &key.encoded());
        Ok(())
    }

    fn scalar(&mut self, scalar: Scalar<'_>) -> Result<()> {
        match scalar {
            Scalar::Null => self.hasher.write(b"n"),
            Scalar::Bool(true) => self.hasher.write(b"t"),
            Scalar::Bool(false) => self.hasher.write(b"f"),
            Scalar::Number(num) => {
                let mut text = std::mem::take(&mut self.number);
                text.clear();
                num.write(&mut text);
                self.put(b'#', &text);
                self.number = text;
            }
            Scalar::String(text) => self.put(b'"', text.text.as_bytes()),
            Scalar::Bytes(bytes) => self.put(b'x', bytes),
        }
        Ok(())
    }

    fn close(&mut self) -> Result<()> {
        self.hasher.write(b"]");
        Ok(())
    }

    fn meta(&mut self, name: &str, value: &str) -> Result<()> {
        self.put(b'm', name.as_bytes());
        self.put(b'm', value.as_bytes());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Value;

    fn steps(old: &[i64], new: &[i64]) -> Vec<Step> {
        let values = |numbers: &[i64]| -> Vec<Value> {
            numbers.iter().map(|&number| Value::from(number)).collect()
        };
        let (old, new) = (values(old), values(new));
        let sides = |values: &'static [Value]| -> Vec<Reached<'static>> {
            values.iter().map(Reached::Value).collect()
        };
        Steps::align(&sides(old.leak()), &sides(new.leak())).expect("values read").collect()
    }

    #[test]
    fn what_stays_is_found() {
        use Step::{Both, Insert, Remove};
        assert_eq!(steps(&[], &[]), []);
        assert_eq!(steps(&[1], &[2]), [Both { old: 0, new: 0 }]);
        assert_eq!(
            steps(&[1, 2, 3], &[1, 3]),
            [Both { old: 0, new: 0 }, Remove { old: 1, at: 1 }, Both { old: 2, new: 1 }]
        );
        assert_eq!(
            steps(&[1, 3], &[0, 1, 2, 3]).iter().filter(|s| matches!(s, Insert { .. })).count(),
            2
        );
    }

    /// In the stack of a test's thread, and in a moment.
    #[test]
    fn long_lists_in_another_order_align_too() {
        let old: Vec<i64> = (0..100_000).collect();
        let mut random = fastrand::Rng::with_seed(5);
        let mut shuffled = old.clone();
        random.shuffle(&mut shuffled);
        let reversed: Vec<i64> = old.iter().rev().copied().collect();
        let few: Vec<i64> = (0..100_000).map(|_| random.i64(..3)).collect();
        let other: Vec<i64> = (0..100_000).map(|_| random.i64(..3)).collect();
        for (old, new) in [(&old, &shuffled), (&old, &reversed), (&few, &other)] {
            let steps = steps(old, new);
            let kept = steps.iter().filter(|step| matches!(step, Step::Both { .. })).count();
            let gone = steps.iter().filter(|step| matches!(step, Step::Remove { .. })).count();
            assert_eq!(kept + gone, old.len());
        }
    }
}
