//! What is wrong with a document, for people and programs.

use std::fmt;

use spinney_core::error::Result;
use spinney_core::{Path, path};

use crate::instance::{Instance, Leaf};
use spinney_core::node::NodeKind;

/// How many violations a report lists unless it is told otherwise.
pub const VIOLATIONS_MAX: usize = 100;

/// One reason why a document does not fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Where in the document.
    pub instance: Path,
    /// The way through the schema to the keyword, references included.
    pub keyword: Path,
    /// Where the keyword stands: the URI of its schema, if it has one, and a pointer.
    pub location: String,
    /// What would fit.
    pub expected: String,
    /// What is there.
    pub found: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Violation { instance, location, expected, found, .. } = self;
        let instance = path::Display(instance);
        write!(f, "{instance}: expected {expected}, found {found} (schema `{location}`)")
    }
}

/// The verdict on a document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The first violations, as many as were asked for.
    pub violations: Vec<Violation>,
    /// How many more there are.
    pub more: u64,
}

impl Report {
    /// Whether the document fits.
    pub fn is_valid(&self) -> bool {
        self.count() == 0
    }

    /// Adds what another report says.
    pub fn append(&mut self, other: Report) {
        let free = VIOLATIONS_MAX.saturating_sub(self.violations.len());
        self.more += other.more + other.violations.len().saturating_sub(free) as u64;
        self.violations.extend(other.violations.into_iter().take(free));
    }

    /// How many violations there are, listed or not.
    pub fn count(&self) -> u64 {
        self.violations.len() as u64 + self.more
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, violation) in self.violations.iter().enumerate() {
            let line_end = if index == 0 { "" } else { "\n" };
            write!(f, "{line_end}{violation}")?;
        }
        match self.more {
            0 => Ok(()),
            more => write!(f, "\nand {more} more"),
        }
    }
}

/// Characters of a text that a message repeats.
const SHOWN_LEN_MAX: usize = 60;

/// A node for people: scalars by their text, containers by their size.
pub fn describe<I: Instance>(node: &I) -> Result<String> {
    Ok(match (node.kind()?, node.leaf(&mut Vec::new())?) {
        (_, Some(leaf)) => describe_leaf(&leaf),
        (NodeKind::Map, None) => counted("an object with", node.count()?, "member"),
        (_, None) => counted("a list of", node.count()?, "element"),
    })
}

fn counted(before: &str, count: u64, what: &str) -> String {
    match count {
        0 => format!("{before} no {what}s"),
        1 => format!("{before} 1 {what}"),
        count => format!("{before} {count} {what}s"),
    }
}

/// A scalar for people.
pub fn describe_leaf(leaf: &Leaf<'_>) -> String {
    match leaf {
        Leaf::Null => "null".to_owned(),
        Leaf::Bool(value) => value.to_string(),
        Leaf::Number(num) => format!("the number {}", shortened(&num.to_string())),
        Leaf::String(text) => format!("the string `{}`", shortened(text)),
        Leaf::Bytes(bytes) => format!("{} bytes, which are of no type of JSON", bytes.len()),
    }
}

/// The beginning of a text, on one line.
pub fn shortened(text: &str) -> String {
    let mut shown: String = text.chars().take(SHOWN_LEN_MAX).flat_map(char::escape_debug).collect();
    if text.chars().nth(SHOWN_LEN_MAX).is_some() {
        shown.push('…');
    }
    shown.replace("\\\"", "\"").replace("\\'", "'")
}
