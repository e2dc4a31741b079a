//! What a layer says about its nodes beyond their values, in their metadata.
//!
//! A mark counts only where every map above it in its layer has [`Marks::BELOW`]: a subtree without
//! it is read as it is, however large.

use std::fmt;

use super::Node;
use crate::error::{Error, Result};

/// The metadata name that marks stand under.
pub const NAME: &str = "@layer";

/// A set of marks; the metadata value is their words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks(u8);

const WORDS: [(Marks, &str); 5] = [
    (Marks::DELETED, "deleted"),
    (Marks::REPLACES, "replaces"),
    (Marks::LOCKED, "locked"),
    (Marks::BELOW, "marks-below"),
    (Marks::LOCKED_BELOW, "locks-below"),
];

impl Marks {
    /// Nothing is said.
    pub const NONE: Marks = Marks(0);
    /// What lower layers have here is deleted, and the node itself is not there.
    pub const DELETED: Marks = Marks(1);
    /// A map: the members of lower layers do not show through.
    pub const REPLACES: Marks = Marks(2);
    /// Higher layers may not override the node and what is below it.
    pub const LOCKED: Marks = Marks(4);
    /// A map: there may be marks below it.
    pub const BELOW: Marks = Marks(8);
    /// A map: there may be locked nodes below it, so higher layers can neither replace nor delete it.
    pub const LOCKED_BELOW: Marks = Marks(16);

    /// Whether all of some marks are among them.
    #[inline]
    pub fn has(self, marks: Marks) -> bool {
        self.0 & marks.0 == marks.0
    }

    /// These and others.
    #[must_use]
    pub fn with(self, marks: Marks) -> Marks {
        Marks(self.0 | marks.0)
    }

    /// These without others.
    #[must_use]
    pub fn without(self, marks: Marks) -> Marks {
        Marks(self.0 & !marks.0)
    }

    /// The marks that a metadata value means.
    ///
    /// # Errors
    /// `Corrupted` for a word that is none.
    pub fn parse(text: &str) -> Result<Marks> {
        text.split_ascii_whitespace().try_fold(Marks::NONE, |marks, word| {
            match WORDS.iter().find(|(_, known)| *known == word) {
                Some((mark, _)) => Ok(marks.with(*mark)),
                None => Err(Error::corrupted(format!(
                    "`{word}` in the metadata `{NAME}` is no mark of a layer; take it away with \
                     `spinney meta`"
                ))),
            }
        })
    }

    /// The marks of a node.
    ///
    /// # Errors
    /// As [`Marks::parse`]; `Corrupted` for damage.
    #[inline]
    pub fn of(node: &impl Node) -> Result<Marks> {
        let mut marks = Ok(Marks::NONE);
        node.meta(&mut |name, value| {
            if name == NAME {
                marks = Marks::parse(value);
            }
        })?;
        marks
    }
}

/// The metadata value.
impl fmt::Display for Marks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut words = WORDS.iter().filter(|(mark, _)| self.has(*mark)).map(|(_, word)| *word);
        f.write_str(words.next().unwrap_or_default())?;
        words.try_for_each(|word| write!(f, " {word}"))
    }
}

/// Keeps of the nodes that layers have at one place, the highest first, those that decide: one, or
/// several maps that are merged. Nothing is left where there is nothing to be seen. `of` tells whether
/// a node is a map that is there, and its marks.
///
/// # Errors
/// Those of `of`.
pub fn decide<T>(nodes: &mut Vec<T>, of: impl Fn(&T) -> Result<(bool, Marks)>) -> Result<()> {
    let mut lock = None;
    let mut lock_below = None;
    for (at, node) in nodes.iter().enumerate() {
        let (is_map, marks) = of(node)?;
        if marks.has(Marks::LOCKED) {
            lock = Some(at);
        }
        if is_map && marks.has(Marks::LOCKED_BELOW) {
            lock_below = Some(at);
        }
    }
    // The lowest lock leaves nothing above it, and what holds one can only be merged into.
    let first = lock.unwrap_or(0);
    let mut kept = 0;
    for at in first..nodes.len() {
        let (is_map, marks) = of(&nodes[at])?;
        let only_merges = lock_below.is_some_and(|below| at < below);
        if is_map || (kept == 0 && !only_merges && !marks.has(Marks::DELETED)) {
            nodes.swap(kept, at);
            kept += 1;
        }
        if !only_merges && (!is_map || marks.has(Marks::REPLACES)) {
            break;
        }
    }
    nodes.truncate(kept);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_round_trip() {
        for bits in 0..32 {
            let marks = Marks(bits);
            assert_eq!(Marks::parse(&marks.to_string()).unwrap(), marks);
        }
        assert_eq!(Marks::parse("locked removed").unwrap_err().kind(), crate::ErrorKind::Corrupted);
    }
}
