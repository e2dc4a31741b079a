//! The rows of the suite as data: each with the question that it answers. The size is k, texts in an item.

use crate::suite;

/// What stands inside the clock of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A push, then the length, again and again.
    Push,
    /// The same by so many clients at once.
    PushTogether(usize),
    /// The store is closed and opened again, until it tells the length.
    Restart,
    /// The length of an array with one item, again and again.
    Length,
    /// One text of its item, again and again.
    Text,
}

/// One row of the suite.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// The name.
    pub id: &'static str,
    /// What a reader learns from it.
    pub question: &'static str,
    /// What is measured.
    pub operation: Operation,
    /// The sizes at which it runs unless others are asked for.
    pub sizes: &'static [usize],
    /// At most so many iterations in a try.
    pub iterations_max: usize,
}

/// The sizes of the scenarios: tiny, small, medium and large.
pub const SIZES: [usize; 4] = [1, 100, 100_000, 10_000_000];
/// Clients of the row about several.
pub const CLIENTS: usize = 8;
/// Reads of the scenario that only reads.
const READS: usize = 200_000;
/// Pushes of the small scenarios.
const PUSHES_MAX: usize = 4_000;
/// Bytes of the stores of others.
const STORE_BYTES: usize = 36_000_000;

/// The rows in the order in which they run.
#[rustfmt::skip]
pub const ROWS: &[Row] = &[
    row("read+write",            Operation::Push,                  &SIZES,       "does a push cost its item, or the array that it is pushed to?"),
    row("stop and start again",  Operation::Restart,               &SIZES,       "how long until what was pushed is there again?"),
    row("read+write by 8 clients", Operation::PushTogether(CLIENTS), &[1, 100],    "do clients share what a durable commit costs?"),
    row("reads",                 Operation::Length,                &[10_000_000], "what does one number cost beside 90 MB?"),
    row("reads of texts",        Operation::Text,                  &[10_000_000], "and one text out of them?"),
];

const fn row(
    id: &'static str,
    operation: Operation,
    sizes: &'static [usize],
    question: &'static str,
) -> Row {
    Row { id, question, operation, sizes, iterations_max: usize::MAX }
}

impl Row {
    /// Items that the array holds before a try with items of `size` texts.
    pub fn items_before(&self, size: usize) -> usize {
        match self.operation {
            Operation::Push | Operation::PushTogether(_) => 0,
            Operation::Restart => self.iterations(size),
            Operation::Length | Operation::Text => 1,
        }
    }

    /// Iterations of one try with items of `size` texts; of a restart, those before it.
    pub fn iterations(&self, size: usize) -> usize {
        let iterations = match self.operation {
            Operation::Length | Operation::Text => READS,
            // As published, although 40 items are a little more than the others' bytes.
            _ if size == 100_000 => 40,
            _ => (STORE_BYTES / (9 * size + 2)).clamp(2, PUSHES_MAX),
        };
        iterations.min(self.iterations_max)
    }
}

impl suite::Row for Row {
    fn id(&self) -> &str {
        self.id
    }

    fn writes(&self) -> bool {
        matches!(self.operation, Operation::Push | Operation::PushTogether(_))
    }

    fn commits(&self) -> bool {
        self.writes()
    }

    fn commits_of_try(&self, size: usize) -> usize {
        let clients = self.commits_of_sync();
        self.iterations(size).div_ceil(clients) * clients
    }

    fn commits_of_sync(&self) -> usize {
        match self.operation {
            Operation::PushTogether(clients) => clients,
            _ => 1,
        }
    }

    fn short(&self) -> Row {
        Row { iterations_max: self.iterations_max.min(suite::SHORT), ..*self }
    }

    fn ops(&self, size: usize) -> usize {
        match self.operation {
            Operation::Restart => 1,
            _ => self.iterations(size),
        }
    }
}
