//! The verbs, a file a group; each is the definition of its options and what it does.

mod access;
mod bench;
mod check;
mod copy_store;
mod datastore;
mod describe;
mod diff;
mod edit;
mod export;
mod history;
mod import;
mod locks;
mod meta;
mod patch;
mod query;
mod read;
mod salvage;
mod schema;
mod set;
mod stack;
mod stats;
mod store;

use std::process::ExitCode;

use clap::Subcommand;
use spinney::Result;

use crate::global::Global;

/// What the user can ask for.
#[derive(Subcommand)]
pub enum Verb {
    /// Print the value at a path as JSON
    Get(read::Get),
    /// Set the value at a path, making the maps on the way
    Set(set::Set),
    /// Remove the node at a path and all below it
    Remove(edit::Remove),
    /// Insert an element into a list
    Insert(edit::Insert),
    /// Move or rename a node with all below it
    Move(edit::Move),
    /// Copy a node with all below it
    Copy(edit::Copy),
    /// Apply a JSON Patch (RFC 6902)
    Patch(patch::Patch),
    /// Merge a document into a node (RFC 7396)
    Merge(patch::Merge),
    /// Print what a JSONPath query (RFC 9535) finds, one value a line
    Query(query::Query),
    /// Print the members of a map or list, one a line
    List(read::List),
    /// Print how many members a map or list has
    Count(read::Count),
    /// Print the hash of the value at a path
    Hash(read::Hash),
    /// Print what differs between two nodes or files
    Diff(diff::Diff),
    /// Print, set or remove metadata of a node
    Meta(meta::Meta),
    /// Replace the node at a path by the content of a file
    Import(import::Import),
    /// Print the tree, or a part of it, as JSON
    Export(export::Export),
    /// Print what was committed, the newest first
    Log(history::Log),
    /// Print each commit as it is made
    Watch(history::Watch),
    /// Undo one commit
    Revert(history::Revert),
    /// Bring the state of an older revision back
    Restore(history::Restore),
    /// Forget old commits and give back what only they held
    Forget(history::Forget),
    /// Attach JSON Schemas to paths, and see what they cost
    Schema(schema::Schema),
    /// Say who may see, change and administer what
    Access(access::Access),
    /// Read several trees as one, each value with the layer that it comes from
    Stack(stack::Stack),
    /// Commit, confirm, discard or copy the datastores: startup, running, candidate and others
    Datastore(datastore::DatastoreVerb),
    /// Keep others from changing a path while a command runs
    Lock(locks::Lock),
    /// Print what is locked, and who has it
    Locks(locks::Locks),
    /// Break a lock
    Unlock(locks::Unlock),
    /// Print facts about the store
    Stats(stats::Stats),
    /// Read everything and tell what is damaged
    Check(check::Check),
    /// Fold the journal into the store now
    Checkpoint(store::Checkpoint),
    /// Give back the space of what was removed
    Compact(store::Compact),
    /// Copy the store, consistently, while others use it
    Backup(store::Backup),
    /// Copy everything in a store to another one, on any backend
    CopyStore(copy_store::CopyStore),
    /// Print all that can be read of a damaged store and tell what is lost
    Salvage(salvage::Salvage),
    /// Measure spinney beside what you would use instead
    Bench(bench::Bench),
    /// Print a script that completes commands in your shell
    Completions(describe::Completions),
    /// Print the manual page
    Man(describe::Man),
}

impl Verb {
    /// Does it; the exit code of success is not always 0.
    pub fn run(self, global: &Global) -> Result<ExitCode> {
        match self {
            Verb::Get(verb) => verb.run(global),
            Verb::Set(verb) => verb.run(global),
            Verb::Remove(verb) => verb.run(global),
            Verb::Insert(verb) => verb.run(global),
            Verb::Move(verb) => verb.run(global),
            Verb::Copy(verb) => verb.run(global),
            Verb::Patch(verb) => verb.run(global),
            Verb::Merge(verb) => verb.run(global),
            Verb::Query(verb) => verb.run(global),
            Verb::List(verb) => verb.run(global),
            Verb::Count(verb) => verb.run(global),
            Verb::Hash(verb) => verb.run(global),
            Verb::Diff(verb) => return verb.run(global),
            Verb::Meta(verb) => verb.run(global),
            Verb::Import(verb) => verb.run(global),
            Verb::Export(verb) => verb.run(global),
            Verb::Log(verb) => verb.run(global),
            Verb::Watch(verb) => verb.run(global),
            Verb::Revert(verb) => verb.run(global),
            Verb::Restore(verb) => verb.run(global),
            Verb::Forget(verb) => verb.run(global),
            Verb::Schema(verb) => verb.run(global),
            Verb::Access(verb) => return verb.run(global),
            Verb::Stack(verb) => verb.run(global),
            Verb::Datastore(verb) => verb.run(global),
            Verb::Lock(verb) => return verb.run(global),
            Verb::Locks(verb) => verb.run(global),
            Verb::Unlock(verb) => verb.run(global),
            Verb::Stats(verb) => verb.run(global),
            Verb::Check(verb) => return verb.run(global),
            Verb::Checkpoint(verb) => verb.run(global),
            Verb::Compact(verb) => verb.run(global),
            Verb::Backup(verb) => verb.run(global),
            Verb::CopyStore(verb) => verb.run(global),
            Verb::Salvage(verb) => return verb.run(global),
            Verb::Bench(verb) => return verb.run(global),
            Verb::Completions(verb) => verb.run(),
            Verb::Man(verb) => verb.run(),
        }
        .map(|()| ExitCode::SUCCESS)
    }
}
