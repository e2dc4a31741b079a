//! One row done once on one system: put the state back, operate, check what came out.

use std::time::{Duration, Instant};

use spinney_core::{Error, Result};

use crate::canonical;
use crate::datastore::document::{
    Documents, RANGE_LEN, State, element_text, item_tree_text, leaf_text,
};
use crate::datastore::rows::{ROUNDS, TENTH, storm_len};
use crate::datastore::{Operation, Row};
use crate::suite::{Outcome, changed};
use crate::system::{Delivery, Effect, System, Undo};

/// How long a series of commits may take.
const SERIES_MAX: Duration = Duration::from_secs(5);

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
        Operation::QueryTree => Outcome::Answer(system.query_tree(m)?),
        Operation::QueryItem => Outcome::Text(system.query_item(m)?),
        Operation::Range => Outcome::Answer(system.range(m, RANGE_LEN)?),
        Operation::OrderedTree => Outcome::Answer(system.ordered_tree()?),
        Operation::ProvidedTree => Outcome::Answer(system.provided_tree(n)?),
        Operation::Element => Outcome::Answer(system.element(m)?),
        Operation::Export => {
            buffer.clear();
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
        Operation::MoveElement => Outcome::Effect(system.move_last(m, n)?),
        Operation::InsertSeries(len) => Outcome::Series(insert_series(system, m, n, len)?),
        Operation::TellSubscribers => Outcome::Told(tell_subscribers(system, n)?),
        Operation::CommitLeaf | Operation::CommitTenth => {
            Outcome::Effect(system.commit_candidate()?)
        }
        Operation::Reclaim => Outcome::Settled(system.settle()?),
    })
}

fn insert_series(
    system: &mut dyn System,
    after: usize,
    new: usize,
    len: usize,
) -> Result<Vec<f64>> {
    let begin = Instant::now();
    let mut times = Vec::with_capacity(len);
    for new in new..new + len {
        if begin.elapsed() > SERIES_MAX {
            return Err(Error::unsupported(format!(
                "{len} commits take longer than {} s",
                SERIES_MAX.as_secs()
            )));
        }
        let one = Instant::now();
        changed(system.insert_after(after, new)?, "insert storm")?;
        times.push(one.elapsed().as_nanos() as f64 / 1e3);
    }
    Ok(times)
}

fn tell_subscribers(system: &mut dyn System, n: usize) -> Result<Vec<Delivery>> {
    for _ in 0..ROUNDS {
        changed(system.create_paths(n)?, "many oper change_subs")?;
        changed(system.remove_items()?, "many oper change_subs")?;
    }
    system.deliveries()
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
    if standing != Standing::At(start) {
        take_back(row, system, documents, standing)?;
    }
    if let Some(count) = operation.candidate_len(n) {
        let item = |at| if operation == Operation::CommitLeaf { m } else { at * TENTH };
        system.stage_candidate(&mut (0..count).map(item), "l1")?;
    }
    Ok(Standing::At(start))
}

/// Puts the start state back after a try, or loads it.
fn take_back(
    row: &Row,
    system: &mut dyn System,
    documents: &Documents,
    standing: Standing,
) -> Result<()> {
    let operation = row.operation;
    let (n, m) = (documents.size(), documents.middle());
    let undo = match operation {
        _ if standing != Standing::After(operation) => Undo::Load,
        Operation::CreateLeaf => Undo::RemoveLeaf(m),
        Operation::ModifyLeaf | Operation::CommitLeaf => Undo::ModifyLeaf(m),
        Operation::RemoveLeaf => Undo::CreateLeaf(m),
        Operation::InsertMiddle => Undo::RemoveElement { position: m + 1, key: n },
        Operation::Import
        | Operation::CreateBatch
        | Operation::CreatePaths
        | Operation::CreateOrdered
        | Operation::TellSubscribers => Undo::RemoveTree,
        _ => Undo::Load,
    };
    system.undo(undo, &documents.text(operation.start()))?;
    // After one entry the store goes on as in daily use; after a bulk its cleaning is not the
    // next try's cost.
    if matches!(undo, Undo::Load | Undo::RemoveTree) {
        system.settle()?;
    }
    Ok(())
}

/// Whether a try did what it had to: a write that changed nothing is an error, and so is a subscriber
/// that was not given all that changed.
///
/// # Errors
/// `InvalidInput` when it did not; `Unsupported` when there was nothing to do; what the system reports.
pub fn check(
    row: &Row,
    system: &mut dyn System,
    documents: &Documents,
    outcome: &Outcome,
) -> Result<()> {
    match outcome {
        Outcome::Effect(effect) => {
            changed(*effect, row.id)?;
            check_deliveries(row, documents, &system.deliveries()?)
        }
        Outcome::Told(deliveries) => check_deliveries(row, documents, deliveries),
        Outcome::Settled(None) => Err(Error::unsupported("no background work to finish")),
        _ => Ok(()),
    }
}

/// Whether each subscriber was given all that a try has changed.
fn check_deliveries(row: &Row, documents: &Documents, given: &[Delivery]) -> Result<()> {
    let Some(expected) = row.delivery(documents.size()) else { return Ok(()) };
    match given.iter().find(|given| **given != expected) {
        None => Ok(()),
        Some(given) => Err(Error::invalid_input(format!(
            "a try of `{}` gave a subscriber {given:?}; it must be {expected:?}",
            row.id
        ))),
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
        (Outcome::Answer(answer), Operation::ItemTree | Operation::QueryTree) => {
            (answer.to_json()?, small(item_tree_text(m)))
        }
        (Outcome::Answer(answer), Operation::Range) => {
            (answer.to_json()?, small(documents.range_text()))
        }
        (Outcome::Answer(answer), Operation::Element) => {
            (answer.to_json()?, small(element_text(m)))
        }
        (Outcome::Answer(answer), operation) => {
            let state = match operation {
                Operation::ProvidedTree => State::Items,
                _ => State::Ordered,
            };
            ([b"{\"cont\":", &*answer.to_json()?, b"}"].concat(), whole(state))
        }
        (Outcome::Exported, _) => (buffer.clone(), whole(State::Items)),
        (_, operation) => {
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
