//! Writing to a store whose trees are kept apart: the first path of a transaction decides which tree
//! it is about, and from there on it is a write of that tree's store.

use std::cell::{Cell, OnceCell};

use spinney_core::diff::Diff;
use spinney_core::scratch::{MemoryScratch, Scratch};
use spinney_core::transaction::Transaction;
use spinney_core::{Error, Result};

use super::Forest;
use crate::store::{Committed, Durability, Store};

impl Forest {
    /// One try of a write; `None` when another writer came first.
    pub fn try_write<T>(
        &self,
        durability: Durability,
        conflicts: u32,
        edit: &mut impl FnMut(&mut Transaction<'_>) -> Result<T>,
    ) -> Result<Option<Committed<T>>> {
        let new_scratch = || -> Result<Box<dyn Scratch>> { Ok(Box::<MemoryScratch>::default()) };
        let home: OnceCell<Store> = OnceCell::new();
        let attempt = Cell::new(None);
        let route = |tree: &str| {
            let store = self.tree(tree, true)?.ok_or_else(|| not_made(tree))?;
            let shared = home.get_or_init(|| store).shared();
            attempt.set(Some(shared.attempt(durability, conflicts)?));
            shared.begin(&new_scratch)
        };
        let mut transaction = Transaction::routed(&self.nowhere, &route)?;
        let value = edit(&mut transaction);
        let begun = transaction.begun();
        let Some((home, attempt)) = home.get().zip(attempt.take()) else {
            // No tree was named, or it could not be begun.
            return value
                .map(|value| Some(Committed { revision: 0, diff: Diff::default(), value }));
        };
        let edited = value.and_then(|value| Ok((value, begun.ok_or_else(cannot_begin)?)));
        home.shared().finish(attempt, &new_scratch, edited, edit)
    }
}

fn not_made(tree: &str) -> Error {
    Error::not_found(format!("there is no tree `{tree}`, and none may be made"))
}

/// The closure went on after its tree could not be opened.
fn cannot_begin() -> Error {
    Error::closed("the transaction could not be begun, and that error was passed over; return it")
}
