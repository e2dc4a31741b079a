//! The rows of the suite as data: each with the question that it answers.

use super::collection::{By, Reading};
use super::shape::Phase;
use super::source::Source;
use crate::suite;

/// What stands inside the clock of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// All documents are stored.
    Set(By, Batch),
    /// All are read back, by their numbers.
    Get(Reading),
    /// All are read back in one pass.
    Scan(By),
    /// One leaf of each is read.
    GetLeaf,
    /// One leaf of each is changed.
    SetLeaf(Batch),
    /// Each is replaced by another, in one call.
    Replace(Batch),
    /// Those with a certain leaf are found by looking at all.
    Find,
}

/// How many documents share a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Batch {
    /// None: each has one of its own.
    One,
    /// A thousand.
    Thousand,
    /// All.
    All,
}

impl Batch {
    /// Documents in one commit, of `len`.
    pub fn len(self, len: usize) -> usize {
        match self {
            Batch::One => 1,
            Batch::Thousand => 1_000,
            Batch::All => len.max(1),
        }
    }
}

/// One row of the suite.
#[derive(Clone, Debug)]
pub struct Row {
    /// The name: the document and what is done.
    pub id: String,
    /// What a reader learns from it.
    pub question: &'static str,
    /// What is measured.
    pub operation: Operation,
    /// Which of the documents it is about.
    pub source: usize,
    /// At most so many documents in a try.
    pub len_max: usize,
}

impl Row {
    /// Documents in one try, of `size`.
    pub fn len(&self, size: usize) -> usize {
        size.min(self.len_max)
    }
}

impl Operation {
    /// The layout that the row works on, where a system has several.
    pub fn layout(self) -> By {
        match self {
            Operation::Set(by, _) | Operation::Scan(by) => by,
            Operation::Get(Reading::Whole) | Operation::Replace(_) => By::Document,
            Operation::Get(_) | Operation::GetLeaf | Operation::SetLeaf(_) | Operation::Find => {
                By::Leaf
            }
        }
    }

    /// The phase whose calls are known.
    pub fn phase(self) -> Option<Phase> {
        match self {
            Operation::Set(By::Leaf, _) => Some(Phase::Set),
            Operation::Get(Reading::Nested) => Some(Phase::Nested),
            Operation::Get(Reading::Cursor) => Some(Phase::Cursor),
            _ => None,
        }
    }

    /// How many documents share a commit; `None` for reads.
    pub fn batch(self) -> Option<Batch> {
        match self {
            Operation::Set(_, batch) | Operation::SetLeaf(batch) | Operation::Replace(batch) => {
                Some(batch)
            }
            Operation::Get(_) | Operation::Scan(_) | Operation::GetLeaf | Operation::Find => None,
        }
    }

    /// Whether it belongs to the published rows.
    pub fn is_published(self) -> bool {
        use Operation::{Get, Set};
        matches!(self, Set(By::Leaf, Batch::One) | Get(Reading::Nested | Reading::Cursor))
    }
}

impl suite::Row for Row {
    fn id(&self) -> &str {
        &self.id
    }

    fn writes(&self) -> bool {
        self.operation.batch().is_some()
    }

    fn commits(&self) -> bool {
        self.writes()
    }

    fn commits_of_try(&self, size: usize) -> usize {
        let len = self.len(size);
        self.operation.batch().map_or(1, |batch| len.div_ceil(batch.len(len)))
    }

    fn short(&self) -> Row {
        let len_max = match self.operation.batch() {
            Some(Batch::One) => suite::SHORT,
            _ => usize::MAX,
        };
        Row { len_max, ..self.clone() }
    }

    /// One a document.
    fn ops(&self, size: usize) -> usize {
        size
    }
}

const SET: &str = "what does a document cost, set leaf by leaf?";
const SET_WHOLE: &str = "what does a document cost, set in one call?";

/// What is done with documents: its name, its operation and its question. Rows with equal layouts stand
/// together.
#[rustfmt::skip]
const DONE: &[(&str, Operation, &str)] = &[
    ("set",                      Operation::Set(By::Leaf, Batch::One),           SET),
    ("set by 1 000",             Operation::Set(By::Leaf, Batch::Thousand),      SET),
    ("set in one commit",        Operation::Set(By::Leaf, Batch::All),           SET),
    ("get (nested next)",        Operation::Get(Reading::Nested),      "what does it cost to iterate over each level of a document?"),
    ("get_q (leaf cursor)",      Operation::Get(Reading::Cursor),      "is one cursor over the leaves faster than iterating over levels?"),
    ("scan of leaves",           Operation::Scan(By::Leaf),            "what do the leaves of all documents cost in one pass?"),
    ("leaf get",                 Operation::GetLeaf,                   "what does one leaf cost, without the rest of its document?"),
    ("leaf set",                 Operation::SetLeaf(Batch::One),       "what does a change of one leaf cost, without the rest of its document?"),
    ("leaf set in one commit",   Operation::SetLeaf(Batch::All),       "and where all changes share one commit?"),
    ("query (walking)",          Operation::Find,                      "what does a query cost that looks at each document?"),
    ("set whole",                Operation::Set(By::Document, Batch::One), SET_WHOLE),
    ("set whole by 1 000",       Operation::Set(By::Document, Batch::Thousand), SET_WHOLE),
    ("set whole in one commit",  Operation::Set(By::Document, Batch::All), SET_WHOLE),
    ("get whole",                Operation::Get(Reading::Whole),       "what does a document cost, read in one call?"),
    ("scan of documents",        Operation::Scan(By::Document),        "what do all documents cost in one pass?"),
    ("replace",                  Operation::Replace(Batch::One),       "what does another document in the place of one cost?"),
    ("replace in one commit",    Operation::Replace(Batch::All),       "and where all share one commit?"),
];

/// As [`DONE`], with one text and nothing around it.
#[rustfmt::skip]
const DONE_KV: &[(&str, Operation, &str)] = &[
    ("set",                      Operation::Set(By::Document, Batch::One), "what does a key with a text cost?"),
    ("set in one commit",        Operation::Set(By::Document, Batch::All), "and where all share one commit?"),
    ("get",                      Operation::Get(Reading::Whole),       "what does the text of a key cost?"),
    ("next",                     Operation::Scan(By::Document),        "what does a step from key to key cost?"),
];

/// Every row about these documents, in the order in which they run.
pub fn rows(sources: &[Source]) -> Vec<Row> {
    let of = |(source, about): (usize, &Source)| {
        let done = if about.leaf.is_empty() { DONE_KV } else { DONE };
        let name = about.name.clone();
        done.iter().map(move |&(what, operation, question)| Row {
            id: format!("{name} {what}"),
            question,
            operation,
            source,
            len_max: usize::MAX,
        })
    };
    sources.iter().enumerate().flat_map(of).collect()
}
