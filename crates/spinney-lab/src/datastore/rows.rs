//! The rows of the suite as data: each with the question that it answers.

use super::document::State;

/// What stands inside the clock of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// The text at `/cont/lst/M,strM/l`.
    Leaf,
    /// `l` of item M with its ancestors and both keys, as an owned copy.
    ItemTree,
    /// All of `/cont` with its ordered list, as an owned copy.
    OrderedTree,
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
    /// N / 10 items of `usr-lst`, each directly after element M, in one commit.
    InsertStorm,
    /// Background cleaning after `cont` was removed.
    Reclaim,
}

/// Whether a decoded tree may be kept in the process between tries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// An open handle without a decoded tree.
    Open,
    /// A decoded tree may be kept.
    Kept,
}

/// One row of the suite.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// The name, which is the test's in the published tables.
    pub id: &'static str,
    /// The number in the published tables; rows of our own have none.
    pub number: Option<u8>,
    /// What a reader learns from it.
    pub question: &'static str,
    /// What is measured.
    pub operation: Operation,
    /// What may be kept between tries.
    pub access: Access,
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
            && !matches!(self, Operation::Import | Operation::InsertStorm)
    }

    /// The state before each try.
    pub fn start(self) -> State {
        match self {
            Operation::Leaf
            | Operation::ItemTree
            | Operation::Export
            | Operation::RemoveItems
            | Operation::RemoveTree
            | Operation::ModifyLeaf
            | Operation::RemoveLeaf => State::Items,
            Operation::OrderedTree
            | Operation::Element
            | Operation::InsertMiddle
            | Operation::InsertStorm => State::Ordered,
            Operation::Import
            | Operation::CreateBatch
            | Operation::CreatePaths
            | Operation::CreateOrdered
            | Operation::Reclaim => State::Empty,
            Operation::CreateLeaf => State::ItemsWithout,
        }
    }

    /// The state after each try.
    pub fn end(self) -> State {
        match self {
            Operation::Leaf | Operation::ItemTree | Operation::Export => State::Items,
            Operation::OrderedTree | Operation::Element => State::Ordered,
            Operation::Import | Operation::CreateBatch | Operation::CreatePaths => State::Items,
            Operation::CreateOrdered => State::Ordered,
            Operation::RemoveItems => State::EmptyCont,
            Operation::RemoveTree | Operation::Reclaim => State::Empty,
            Operation::CreateLeaf => State::ItemsWith("l0"),
            Operation::ModifyLeaf => State::ItemsWith("l1"),
            Operation::RemoveLeaf => State::ItemsWithout,
            Operation::InsertMiddle => State::OrderedInserted,
            Operation::InsertStorm => State::OrderedStorm,
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
            Operation::InsertStorm => storm_len(size),
            _ => 1,
        }
    }
}

/// How many items a storm inserts at N = `size`.
pub fn storm_len(size: usize) -> usize {
    size.div_ceil(10)
}

const fn row(
    number: u8,
    id: &'static str,
    operation: Operation,
    access: Access,
    question: &'static str,
) -> Row {
    let number = if number == 0 { None } else { Some(number) };
    Row { id, number, question, operation, access }
}

use Access::{Kept, Open};

/// The rows in the order in which they run: those with equal start states stand together.
#[rustfmt::skip]
pub const ROWS: &[Row] = &[
    row(0,  "leaf",                       Operation::Leaf,          Open, "what does one value cost, read by path at a fresh snapshot?"),
    row(3,  "get tree hash",              Operation::ItemTree,      Open, "what does one item cost, read by path as an owned tree?"),
    row(0,  "export",                     Operation::Export,        Open, "how fast does the store become JSON text?"),
    row(13, "create an item",             Operation::CreateLeaf,    Open, "what does one new leaf cost in a tree of N items?"),
    row(15, "modify an item",             Operation::ModifyLeaf,    Open, "what does one changed leaf cost in a tree of N items?"),
    row(16, "remove an item",             Operation::RemoveLeaf,    Open, "what does one removed leaf cost in a tree of N items?"),
    row(11, "remove all items",           Operation::RemoveItems,   Open, "does emptying a list cost what it holds?"),
    row(12, "remove whole subtree",       Operation::RemoveTree,    Open, "does removing a subtree cost what it holds?"),
    row(0,  "reclaim",                    Operation::Reclaim,       Open, "what does cleaning up a removed subtree cost in the background?"),
    row(0,  "import",                     Operation::Import,        Open, "how fast does JSON text become a durable store?"),
    row(6,  "create batch",               Operation::CreateBatch,   Open, "what do N items cost, built in memory and merged?"),
    row(8,  "create all items",           Operation::CreatePaths,   Open, "what do N path sets in one commit cost?"),
    row(7,  "create user ordered items",  Operation::CreateOrdered, Open, "does the user's order cost more than sorted keys?"),
    row(4,  "get user ordered tree",      Operation::OrderedTree,   Open, "how fast is a whole ordered list read as an owned copy?"),
    row(0,  "position",                   Operation::Element,       Open, "is an element found by its position without visiting the others?"),
    row(0,  "insert middle",              Operation::InsertMiddle,  Open, "does an insert in the middle cost one entry? (A1)"),
    row(0,  "insert storm in one transaction", Operation::InsertStorm, Open, "do N / 10 inserts at one spot cost one entry each?"),
    row(17, "get tree hash cached",       Operation::ItemTree,      Kept, "as `get tree hash`, with a decoded tree kept in the process"),
    row(20, "create an item cached",      Operation::CreateLeaf,    Kept, "as `create an item`, with a decoded tree kept in the process"),
    row(21, "modify an item cached",      Operation::ModifyLeaf,    Kept, "as `modify an item`, with a decoded tree kept in the process"),
    row(22, "remove an item cached",      Operation::RemoveLeaf,    Kept, "as `remove an item`, with a decoded tree kept in the process"),
    row(18, "remove all items cached",    Operation::RemoveItems,   Kept, "as `remove all items`, with a decoded tree kept in the process"),
    row(19, "remove whole subtree cached", Operation::RemoveTree,   Kept, "as `remove whole subtree`, with a decoded tree kept in the process"),
];

/// Published rows that wait for a feature, each with the reason.
pub const LEFT_OUT: &[(&str, &str)] = &[
    ("1 get tree, 2 get item", "need queries"),
    ("5 get oper tree", "needs providers of runtime values"),
    ("9 create all items oper, 14 create an item oper", "need layers with origins"),
    ("10 many oper change_subs", "needs subscribers"),
    ("A2 move, A3 insert storm", "need moves and a series of commits"),
    ("A4 candidate to running", "needs layers and validation"),
    ("A5 cold open", "needs a new process for each try"),
    ("A6 cost of a commit", "counted for each row instead: syncs and bytes of one commit"),
    ("A7 concurrent readers", "needs readers in several threads"),
    ("A8 medium reads", "needs key ranges"),
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
        let mut numbers: Vec<u8> = ROWS.iter().filter_map(|row| row.number).collect();
        numbers.sort_unstable();
        assert_eq!(numbers, [3, 4, 6, 7, 8, 11, 12, 13, 15, 16, 17, 18, 19, 20, 21, 22]);
        assert!(ROWS.iter().all(|row| row.question.contains('?') || row.access == Kept));
    }
}
