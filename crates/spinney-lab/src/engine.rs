//! The contract of a foreign store of ordered byte keys: LMDB, redb, fjall and their like.
//!
//! An engine knows nothing of the suites; a suite has one adapter over this contract, and thereby
//! every engine as a peer.

use std::path::Path;

use spinney_core::Result;

use crate::system::{Durability, Transport};

/// How many tables each store has, numbered from 0. What they hold is the affair of the adapter.
pub const TABLES: usize = 4;

/// Makes stores of one engine.
pub trait EngineFactory {
    /// The name in options, tables and records.
    fn name(&self) -> &'static str;

    /// How it is asked.
    fn transport(&self) -> Transport {
        Transport::Embedded
    }

    /// How it is used, in a sentence: tables, transactions, threads, processes.
    fn design(&self) -> &'static str;

    /// Settings as name and value, at this level.
    fn settings(&self, durability: Durability) -> Vec<(String, String)>;

    /// Names and versions of the software.
    fn versions(&self) -> Vec<(String, String)>;

    /// Why it cannot give this level or is not there, with what to install; `None` when it can.
    fn lacks(&self, durability: Durability) -> Option<String>;

    /// The store in `folder`, which exists; a new one where the folder is empty.
    ///
    /// # Errors
    /// Whatever the engine reports.
    fn open(&self, folder: &Path, durability: Durability) -> Result<Box<dyn Engine>>;
}

/// An open store, shared by threads. Writers may come from several threads at once; the engine lets
/// them wait for each other where it must.
///
/// # Errors
/// All operations: whatever the engine or `work` reports.
pub trait Engine: Send + Sync {
    /// One commit of what `work` puts and deletes, acknowledged at the level of the store on return;
    /// none of it, when `work` fails. No other write comes between what `work` reads and its commit.
    fn write(&self, work: &mut dyn FnMut(&mut dyn Records) -> Result<()>) -> Result<()>;

    /// Reads of one consistent state, that of the last commit or a later one.
    fn read(&self, work: &mut dyn FnMut(&dyn Reader) -> Result<()>) -> Result<()>;

    /// The processes besides this one that sync what it commits.
    fn processes(&self) -> Vec<u32> {
        Vec::new()
    }

    /// Finishes what the engine does in the background, where it offers to; never measured.
    fn settle(&self) -> Result<()> {
        Ok(())
    }
}

/// What [`Reader::scan`] gives each record to, as key and value; it says whether to go on.
pub type Each<'a> = &'a mut dyn FnMut(&[u8], &[u8]) -> Result<bool>;

/// Reads of one state.
///
/// # Errors
/// All operations: whatever the engine reports.
pub trait Reader {
    /// Puts the value of `key` into `value`, in place of what was there; whether there is one.
    fn get(&self, table: usize, key: &[u8], value: &mut Vec<u8>) -> Result<bool>;

    /// Gives the records from `from` on, in the order of their keys, to `each`.
    fn scan(&self, table: usize, from: &[u8], each: Each<'_>) -> Result<()>;

    /// Puts the greatest key into `key`, in place of what was there; whether there is one.
    fn last(&self, table: usize, key: &mut Vec<u8>) -> Result<bool>;
}

/// Writes of one commit. Its reads see the state before the commit, and may or may not see what it has
/// written itself; so it names each key at most once.
///
/// # Errors
/// All operations: whatever the engine reports.
pub trait Records: Reader {
    /// Gives `key` this value.
    fn put(&mut self, table: usize, key: &[u8], value: &[u8]) -> Result<()>;

    /// Removes `key`, if it is there.
    fn delete(&mut self, table: usize, key: &[u8]) -> Result<()>;

    /// Removes all records of a table, in the engine's cheapest way. The commit puts nothing into the
    /// table.
    fn clear(&mut self, table: usize) -> Result<()>;
}
