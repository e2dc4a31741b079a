//! The rows of the suite as data: each with the question that it answers.

use super::document::State;
use crate::system::Delivery;

/// What stands inside the clock of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// The text at `/cont/lst/M,strM/l`.
    Leaf,
    /// `l` of item M with its ancestors and both keys, as an owned copy.
    ItemTree,
    /// The same, found by a filter over all items.
    QueryTree,
    /// The text `l` of item M, found by a filter over all items.
    QueryItem,
    /// At most 100 items by key range from item M, as an owned copy.
    Range,
    /// All of `/cont` with its ordered list, as an owned copy.
    OrderedTree,
    /// All of `/cont`, N items of which are made by a provider when they are asked for.
    ProvidedTree,
    /// The element at position M of `usr-lst`.
    Element,
    /// The whole store as JSON text.
    Export,
    /// JSON text into the empty store.
    Import,
    /// N items of `lst`, built in memory and staged as one merge.
    CreateBatch,
    /// N items of `lst`, each set by its path text.
    CreatePaths,
    /// N items appended to `usr-lst`, each by its path text.
    CreateOrdered,
    /// N items created and removed in ten rounds, until each of twelve subscribers was told of each.
    TellSubscribers,
    /// All entries of `lst`, so that `cont` stays, empty.
    RemoveItems,
    /// `cont` with all below it.
    RemoveTree,
    /// `l` of item M = `l0`, which must not exist.
    CreateLeaf,
    /// `l` of item M = `l1`.
    ModifyLeaf,
    /// `l` of item M goes.
    RemoveLeaf,
    /// Item N of `usr-lst` directly after element M.
    InsertMiddle,
    /// The last item of `usr-lst` directly after element M.
    MoveElement,
    /// N / 10 items of `usr-lst`, each directly after element M, in one commit.
    InsertStorm,
    /// So many items of `usr-lst`, each directly after element M, each in a commit of its own.
    InsertSeries(usize),
    /// The candidate with one changed leaf becomes running.
    CommitLeaf,
    /// The candidate with N / 10 changed leaves becomes running.
    CommitTenth,
    /// Background cleaning after `cont` was removed.
    Reclaim,
}

/// Whether a decoded tree may be kept in the process between tries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// An open handle without a decoded tree.
    Open,
    /// A decoded tree may be kept.
    Kept,
}

/// Where a row works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The configuration, which is valid after each commit.
    Running,
    /// The state that a connection pushes over it: not judged, and gone with the connection.
    Operational,
}

/// One row of the suite.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// The name, which is the test's in the published tables.
    pub id: &'static str,
    /// Its number in the published tables, or among the added rows (`A1`); rows of our own have none.
    pub number: Option<&'static str>,
    /// What a reader learns from it.
    pub question: &'static str,
    /// What is measured.
    pub operation: Operation,
    /// What may be kept between tries.
    pub access: Access,
    /// Where it works.
    pub place: Place,
    /// Whether it belongs to the whole suite alone, and not to a short run.
    pub is_long: bool,
}

impl Row {
    /// Its number where it stands in the published tables.
    pub fn published(&self) -> Option<u8> {
        self.number?.parse().ok()
    }

    /// Whether its tries after the first change nothing in the published procedure (`†`).
    pub fn is_dagger(&self) -> bool {
        use Operation::{ModifyLeaf, RemoveItems, RemoveLeaf, RemoveTree};
        matches!(self.operation, ModifyLeaf | RemoveItems | RemoveLeaf | RemoveTree)
    }

    /// What each subscriber must be given in one try at N = `size`; `None` where nobody looks.
    pub fn delivery(&self, size: usize) -> Option<Delivery> {
        let n = size as u64;
        Some(match self.operation {
            Operation::CreateBatch | Operation::CreatePaths => Delivery::created(1 + 4 * n),
            Operation::CreateOrdered => Delivery::created(1 + 3 * n),
            Operation::TellSubscribers => {
                let (rounds, all) = (ROUNDS as u64, 4 * n * ROUNDS as u64);
                let (commits, told) = (2 * rounds, 2 * rounds);
                Delivery { created: 1 + all, removed: all, changed: 0, commits, told }
            }
            Operation::RemoveItems => Delivery::removed(4 * n),
            Operation::RemoveTree => Delivery::removed(1 + 4 * n),
            Operation::CreateLeaf => Delivery::created(1),
            Operation::ModifyLeaf | Operation::CommitLeaf => Delivery::changed(1),
            Operation::CommitTenth => Delivery::changed(tenth_len(size) as u64),
            Operation::RemoveLeaf => Delivery::removed(1),
            Operation::InsertMiddle => Delivery::created(3),
            Operation::InsertStorm => Delivery::created(3 * storm_len(size) as u64),
            _ => return None,
        })
    }
}

impl Operation {
    /// Whether it changes the store, so that the state is put back before each try.
    pub fn writes(self) -> bool {
        self.start() != self.end() || self == Operation::Reclaim
    }

    /// Whether the level of durability is part of what it measures.
    pub fn commits(self) -> bool {
        self.writes() && self != Operation::Reclaim
    }

    /// Whether it changes one entry and not N.
    pub fn is_single(self) -> bool {
        self.commits()
            && self.ops(2) == 1
            && !matches!(self, Operation::Import | Operation::InsertStorm | Operation::CommitTenth)
    }

    /// How many subscribers there are.
    pub fn subscribers(self) -> usize {
        if self == Operation::TellSubscribers { 12 } else { 1 }
    }

    /// Leaves that the candidate has changed at N = `size`, for the rows about it.
    pub fn candidate_len(self, size: usize) -> Option<usize> {
        match self {
            Operation::CommitLeaf => Some(1),
            Operation::CommitTenth => Some(tenth_len(size)),
            _ => None,
        }
    }

    /// The state before each try.
    pub fn start(self) -> State {
        match self {
            Operation::Leaf
            | Operation::ItemTree
            | Operation::QueryTree
            | Operation::QueryItem
            | Operation::Range
            | Operation::Export
            | Operation::RemoveItems
            | Operation::RemoveTree
            | Operation::ModifyLeaf
            | Operation::RemoveLeaf
            | Operation::CommitLeaf
            | Operation::CommitTenth => State::Items,
            Operation::OrderedTree
            | Operation::Element
            | Operation::InsertMiddle
            | Operation::MoveElement
            | Operation::InsertStorm
            | Operation::InsertSeries(_) => State::Ordered,
            Operation::ProvidedTree
            | Operation::Import
            | Operation::CreateBatch
            | Operation::CreatePaths
            | Operation::CreateOrdered
            | Operation::TellSubscribers
            | Operation::Reclaim => State::Empty,
            Operation::CreateLeaf => State::ItemsWithout,
        }
    }

    /// The state after each try.
    pub fn end(self) -> State {
        match self {
            Operation::Leaf
            | Operation::ItemTree
            | Operation::QueryTree
            | Operation::QueryItem
            | Operation::Range
            | Operation::Export => State::Items,
            Operation::OrderedTree | Operation::Element => State::Ordered,
            Operation::Import | Operation::CreateBatch | Operation::CreatePaths => State::Items,
            Operation::CreateOrdered => State::Ordered,
            Operation::RemoveItems | Operation::TellSubscribers => State::EmptyCont,
            Operation::ProvidedTree | Operation::RemoveTree | Operation::Reclaim => State::Empty,
            Operation::CreateLeaf => State::ItemsWith("l0"),
            Operation::ModifyLeaf | Operation::CommitLeaf => State::ItemsWith("l1"),
            Operation::RemoveLeaf => State::ItemsWithout,
            Operation::InsertMiddle => State::OrderedInserted,
            Operation::MoveElement => State::OrderedMoved,
            Operation::InsertStorm => State::OrderedStorm,
            Operation::InsertSeries(_) => State::OrderedSeries,
            Operation::CommitTenth => State::ItemsTenth,
        }
    }

    /// Operations inside one try, at N = `size`.
    pub fn ops(self, size: usize) -> usize {
        match self {
            Operation::CreateBatch
            | Operation::CreatePaths
            | Operation::CreateOrdered
            | Operation::RemoveItems
            | Operation::RemoveTree => size,
            Operation::TellSubscribers => ROUNDS * size,
            Operation::InsertStorm => storm_len(size),
            Operation::InsertSeries(len) => len,
            Operation::CommitTenth => tenth_len(size),
            _ => 1,
        }
    }
}

/// Rounds of the row about subscribers.
pub const ROUNDS: usize = 10;
/// Commits of the row that inserts at one spot again and again.
pub const SERIES_LEN: usize = 1_000;
/// One of so many leaves is changed in a large candidate.
pub const TENTH: usize = 10;

/// How many items a storm inserts at N = `size`.
pub fn storm_len(size: usize) -> usize {
    size.div_ceil(10)
}

/// How many leaves a large candidate changes at N = `size`.
pub fn tenth_len(size: usize) -> usize {
    size.div_ceil(TENTH)
}

const fn row(
    number: &'static str,
    id: &'static str,
    operation: Operation,
    question: &'static str,
) -> Row {
    let number = if number.is_empty() { None } else { Some(number) };
    Row { id, number, question, operation, access: Open, place: Place::Running, is_long: false }
}

const fn kept(number: &'static str, id: &'static str, operation: Operation) -> Row {
    let question = "as the row without `cached`, with a decoded tree kept in the process";
    Row { access: Kept, ..row(number, id, operation, question) }
}

const fn pushed(
    number: &'static str,
    id: &'static str,
    operation: Operation,
    question: &'static str,
) -> Row {
    Row { place: Place::Operational, is_long: true, ..row(number, id, operation, question) }
}

const fn long(
    number: &'static str,
    id: &'static str,
    operation: Operation,
    question: &'static str,
) -> Row {
    Row { is_long: true, ..row(number, id, operation, question) }
}

use Access::{Kept, Open};

/// The rows in the order in which they run: those with equal start states stand together.
#[rustfmt::skip]
pub const ROWS: &[Row] = &[
    row("",   "leaf",                       Operation::Leaf,          "what does one value cost, read by path at a fresh snapshot?"),
    row("3",  "get tree hash",              Operation::ItemTree,      "what does one item cost, read by path as an owned tree?"),
    row("1",  "get tree",                   Operation::QueryTree,     "what does it cost to find one item by a filter over all?"),
    row("2",  "get item",                   Operation::QueryItem,     "what does it cost to find one value by a filter over all?"),
    row("A8", "medium reads",               Operation::Range,         "what do 100 items cost, read by a range of keys?"),
    row("",   "export",                     Operation::Export,        "how fast does the store become JSON text?"),
    row("13", "create an item",             Operation::CreateLeaf,    "what does one new leaf cost in a tree of N items?"),
    row("15", "modify an item",             Operation::ModifyLeaf,    "what does one changed leaf cost in a tree of N items?"),
    row("16", "remove an item",             Operation::RemoveLeaf,    "what does one removed leaf cost in a tree of N items?"),
    long("A4a", "candidate to running",     Operation::CommitLeaf,    "does a candidate with one changed leaf cost one leaf?"),
    long("A4b", "candidate to running, a tenth", Operation::CommitTenth, "what does a candidate with N / 10 changed leaves cost?"),
    row("11", "remove all items",           Operation::RemoveItems,   "does emptying a list cost what it holds?"),
    row("12", "remove whole subtree",       Operation::RemoveTree,    "does removing a subtree cost what it holds?"),
    row("",   "reclaim",                    Operation::Reclaim,       "what does cleaning up a removed subtree cost in the background?"),
    row("",   "import",                     Operation::Import,        "how fast does JSON text become a durable store?"),
    row("6",  "create batch",               Operation::CreateBatch,   "what do N items cost, built in memory and merged?"),
    row("8",  "create all items",           Operation::CreatePaths,   "what do N path sets in one commit cost?"),
    row("7",  "create user ordered items",  Operation::CreateOrdered, "does the user's order cost more than sorted keys?"),
    row("4",  "get user ordered tree",      Operation::OrderedTree,   "how fast is a whole ordered list read as an owned copy?"),
    row("",   "position",                   Operation::Element,       "is an element found by its position without visiting the others?"),
    row("A1", "insert middle",              Operation::InsertMiddle,  "does an insert in the middle cost one entry?"),
    long("A2", "move",                      Operation::MoveElement,   "does a move within the user's order cost one entry?"),
    row("",   "insert storm in one transaction", Operation::InsertStorm, "do N / 10 inserts at one spot cost one entry each?"),
    long("A3", "insert storm",              Operation::InsertSeries(SERIES_LEN), "do 1 000 commits at one spot cost the same from first to last?"),
    kept("17", "get tree hash cached",      Operation::ItemTree),
    kept("20", "create an item cached",     Operation::CreateLeaf),
    kept("21", "modify an item cached",     Operation::ModifyLeaf),
    kept("22", "remove an item cached",     Operation::RemoveLeaf),
    kept("18", "remove all items cached",   Operation::RemoveItems),
    kept("19", "remove whole subtree cached", Operation::RemoveTree),
    pushed("14", "create an item oper",     Operation::CreateLeaf,    "what does one leaf of pushed state cost beside one of configuration?"),
    pushed("9",  "create all items oper",   Operation::CreatePaths,   "what do N path sets of pushed state cost?"),
    pushed("10", "many oper change_subs",   Operation::TellSubscribers, "what does it cost to tell twelve subscribers of all changes?"),
    pushed("5",  "get oper tree",           Operation::ProvidedTree,  "what does state cost that a provider makes when it is asked for?"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_and_numbers_are_unique_and_questions_end_as_such() {
        let mut ids: Vec<&str> = ROWS.iter().map(|row| row.id).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), ROWS.len());
        let mut numbers: Vec<u8> = ROWS.iter().filter_map(Row::published).collect();
        numbers.sort_unstable();
        assert_eq!(numbers, (1..=22).collect::<Vec<u8>>());
        assert!(ROWS.iter().all(|row| row.question.contains('?') || row.access == Kept));
    }

    #[test]
    fn the_rows_that_change_nothing_again_are_the_eight_of_the_published_tables() {
        let mut daggers: Vec<u8> =
            ROWS.iter().filter(|row| row.is_dagger()).filter_map(Row::published).collect();
        daggers.sort_unstable();
        assert_eq!(daggers, [11, 12, 15, 16, 18, 19, 21, 22]);
    }
}
