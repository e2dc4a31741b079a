//! What every backend must do: the byte-level contract, and the tree over it.
//!
//! A case is a function of one behaviour on a store of its own. It asks [`Capabilities`] where
//! backends may differ, and says what it therefore skips.
//!
//! [`Capabilities`]: spinney_core::backend::Capabilities

mod access;
mod basics;
pub mod bulk;
mod commits;
mod containers;
mod datastores;
mod following;
mod history;
mod imports;
mod judged_layers;
mod layers;
mod limits;
mod lists;
mod locks;
mod maps;
mod moves;
mod patches;
mod removal;
mod scalars;
mod subscribers;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use spinney_core::backend::Backend;

use crate::contract::contract;
use crate::subject::Subject;
use crate::timed;

/// Makes an empty store.
pub type Factory<'f> = &'f dyn Fn() -> Arc<dyn Backend>;

/// A behaviour and its name.
type Case = (&'static str, fn(&Subject));

/// Runs the contract and every case of the tree, each on a store of its own.
///
/// # Panics
/// When the backend breaks the contract.
pub fn suite(factory: Factory<'_>) {
    timed("contract", || contract(&|| Box::new(factory())));
    tree(factory);
}

/// Runs the cases of the tree alone; a case that fails does not keep the others from running.
///
/// # Panics
/// When a case fails.
pub fn tree(factory: Factory<'_>) {
    tree_groups(factory, |_| true);
}

/// As [`tree`], of the groups that are chosen by their names; for servers that are far away or slow.
///
/// # Panics
/// When a case fails.
pub fn tree_groups(factory: Factory<'_>, is_chosen: impl Fn(&str) -> bool) {
    let groups: &[(&str, &[Case])] = &[
        ("basics", basics::CASES),
        ("scalars", scalars::CASES),
        ("maps", maps::CASES),
        ("lists", lists::CASES),
        ("containers", containers::CASES),
        ("moves", moves::CASES),
        ("limits", limits::CASES),
        ("commits", commits::CASES),
        ("patches", patches::CASES),
        ("removal", removal::CASES),
        ("history", history::CASES),
        ("imports", imports::CASES),
        ("subscribers", subscribers::CASES),
        ("layers", layers::CASES),
        ("following", following::CASES),
        ("datastores", datastores::CASES),
        ("judged layers", judged_layers::CASES),
        ("locks", locks::CASES),
        ("access", access::CASES),
        ("bulk", bulk::CASES),
    ];
    let mut failed: Vec<&str> = Vec::new();
    for &(group, cases) in groups.iter().filter(|(group, _)| is_chosen(group)) {
        timed(group, || {
            for (name, case) in cases {
                println!("{group}: {name}");
                let run = || {
                    let subject = Subject::new(factory());
                    case(&subject);
                    subject.check();
                };
                if catch_unwind(AssertUnwindSafe(run)).is_err() {
                    println!("failed: {group}: {name}");
                    failed.push(name);
                }
            }
        });
    }
    assert!(failed.is_empty(), "{} cases failed: {failed:#?}", failed.len());
}

/// Prints a case, or a part of one, that a backend cannot run, and why.
fn skipped(what: &str, why: &str) {
    println!("skipped: {what}: {why}");
}
