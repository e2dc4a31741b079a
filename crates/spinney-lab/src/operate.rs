//! One row done once on one system: put the state back, operate, check what came out.

use spinney_core::{Error, Result};

use crate::answer::Answer;
use crate::canonical;
use crate::clock::{Clock, Elapsed};
use crate::datastore::document::{Documents, State, element_text, item_tree_text, leaf_text};
use crate::datastore::rows::storm_len;
use crate::datastore::{Operation, Row};
use crate::system::{Effect, System, Undo};

/// What an operation gave back; dropped after the clock stopped.
pub enum Outcome {
    /// A write.
    Effect(Effect),
    /// A read as a tree.
    Answer(Answer),
    /// A read as a text.
    Text(String),
    /// An export, which stands in the buffer.
    Exported,
    /// Background work and its bytes, or none.
    Settled(Option<u64>),
}

/// Does `operation` once.
///
/// # Errors
/// What the system reports.
pub fn perform(
    operation: Operation,
    system: &mut dyn System,
    documents: &Documents,
    input: &[u8],
    buffer: &mut Vec<u8>,
) -> Result<Outcome> {
    let (n, m) = (documents.size(), documents.middle());
    Ok(match operation {
        Operation::Leaf => Outcome::Text(system.leaf(m)?),
        Operation::ItemTree => Outcome::Answer(system.item_tree(m)?),
        Operation::OrderedTree => Outcome::Answer(system.ordered_tree()?),
        Operation::Element => Outcome::Answer(system.element(m)?),
        Operation::Export => {
            system.export(buffer)?;
            Outcome::Exported
        }
        Operation::Import => Outcome::Effect(system.import(input)?),
        Operation::CreateBatch => Outcome::Effect(system.create_batch(n)?),
        Operation::CreatePaths => Outcome::Effect(system.create_paths(n)?),
        Operation::CreateOrdered => Outcome::Effect(system.create_ordered(n)?),
        Operation::RemoveItems => Outcome::Effect(system.remove_items()?),
        Operation::RemoveTree => Outcome::Effect(system.remove_tree()?),
        Operation::CreateLeaf => Outcome::Effect(system.create_leaf(m, "l0")?),
        Operation::ModifyLeaf => Outcome::Effect(system.modify_leaf(m, "l1")?),
        Operation::RemoveLeaf => Outcome::Effect(system.remove_leaf(m)?),
        Operation::InsertMiddle => Outcome::Effect(system.insert_after(m, n)?),
        Operation::InsertStorm => Outcome::Effect(system.insert_storm(m, n, storm_len(n))?),
        Operation::Reclaim => Outcome::Settled(system.settle()?),
    })
}

/// Where the state of a store stands between tries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Anything; the document has to be loaded.
    Unknown,
    /// This state.
    At(State),
    /// The end of a try of this operation.
    After(Operation),
}

/// Puts the start state of `row` back, without a clock.
///
/// # Errors
/// What the system reports.
pub fn prepare(
    row: &Row,
    system: &mut dyn System,
    documents: &Documents,
    standing: Standing,
) -> Result<Standing> {
    let operation = row.operation;
    let start = operation.start();
    let (n, m) = (documents.size(), documents.middle());
    if operation == Operation::Reclaim {
        system.replace(&documents.text(State::Items))?;
        system.settle()?;
        let _: Effect = system.remove_tree()?;
        return Ok(Standing::At(start));
    }
    if standing == Standing::At(start) {
        return Ok(standing);
    }
    let undo = match operation {
        _ if standing != Standing::After(operation) => Undo::Load,
        Operation::CreateLeaf => Undo::RemoveLeaf(m),
        Operation::ModifyLeaf => Undo::ModifyLeaf(m),
        Operation::RemoveLeaf => Undo::CreateLeaf(m),
        Operation::InsertMiddle => Undo::RemoveElement { position: m + 1, key: n },
        Operation::Import
        | Operation::CreateBatch
        | Operation::CreatePaths
        | Operation::CreateOrdered => Undo::RemoveTree,
        _ => Undo::Load,
    };
    system.undo(undo, &documents.text(start))?;
    // After one entry the store goes on as in daily use; after a bulk its cleaning is not the
    // next try's cost.
    if matches!(undo, Undo::Load | Undo::RemoveTree) {
        system.settle()?;
    }
    Ok(Standing::At(start))
}

/// Does `row` once within a clock; a write that changed nothing is an error.
///
/// # Errors
/// What the system reports; `InvalidInput` for a write without effect.
pub fn attempt(
    row: &Row,
    system: &mut dyn System,
    documents: &Documents,
    buffer: &mut Vec<u8>,
) -> Result<(Elapsed, Outcome)> {
    buffer.clear();
    // Only the import reads its input; for others making the text would be wasted.
    let input = (row.operation == Operation::Import).then(|| documents.text(State::Items));
    let input = input.as_deref().unwrap_or_default();
    let clock = Clock::start();
    let outcome = perform(row.operation, system, documents, input, buffer);
    let elapsed = clock.stop();
    match outcome? {
        Outcome::Effect(Effect::Unchanged) => {
            Err(Error::invalid_input(format!("a try of `{}` changed nothing", row.id)))
        }
        Outcome::Settled(None) => Err(Error::unsupported("no background work to finish")),
        outcome => Ok((elapsed, outcome)),
    }
}

/// The result hash and whether it is the expected one.
///
/// # Errors
/// What the system reports when it is dumped; `InvalidInput` when a result is not JSON.
pub fn verify(
    row: &Row,
    system: &mut dyn System,
    documents: &Documents,
    outcome: &Outcome,
    buffer: &mut Vec<u8>,
) -> Result<(String, bool)> {
    let m = documents.middle();
    let whole = |state: State| (documents.text(state).to_vec(), documents.hash(state));
    let small = |text: String| (text.clone().into_bytes(), canonical::hash(text.as_bytes()));
    let (got, (expected, expected_hash)) = match (outcome, row.operation) {
        (Outcome::Text(text), _) => {
            let mut json = Vec::new();
            canonical::write_string(text, &mut json);
            (json, small(format!("\"{}\"", leaf_text(m))))
        }
        (Outcome::Answer(answer), Operation::ItemTree) => {
            (answer.to_json()?, small(item_tree_text(m)))
        }
        (Outcome::Answer(answer), Operation::Element) => {
            (answer.to_json()?, small(element_text(m)))
        }
        (Outcome::Answer(answer), _) => {
            let text = [b"{\"cont\":", &*answer.to_json()?, b"}"].concat();
            (text, whole(State::Ordered))
        }
        (Outcome::Exported, _) => (buffer.clone(), whole(State::Items)),
        (Outcome::Effect(_) | Outcome::Settled(_), operation) => {
            buffer.clear();
            system.export(buffer)?;
            (buffer.clone(), whole(operation.end()))
        }
    };
    // Equal texts hash equal; canonical form is made only where they differ.
    if got == expected {
        return Ok((expected_hash, true));
    }
    let hash = canonical::hash(&canonical::canonical(&got)?);
    let is_expected = hash == expected_hash;
    Ok((hash, is_expected))
}
