//! The contract of a system under test: a backend of spinney or a peer.
//!
//! A system does the work of the rows in its own best way; it knows nothing of clocks, tries or
//! records. Item i of `lst` has the member name `i,stri` and `{"k1":i,"k2":"stri","l":"li"}`;
//! entry i of `usr-lst` is `{"k":i,"l":"li"}`.

mod delivery;
mod transport;

use std::path::Path;

use spinney_core::{Error, Result};

use crate::answer::Answer;
use crate::datastore::document::leaf_text;
use crate::datastore::rows::Place;
use crate::documents::Collection;
use crate::throughput::Array;
pub use delivery::{Delivery, Told};
pub use transport::Transport;

/// What an acknowledged commit survives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Durability {
    /// A power loss: synced before the acknowledgement.
    Durable,
    /// The end of the process, not a power loss.
    Process,
    /// Nothing: it may be lost when the process dies.
    None,
}

impl Durability {
    /// The word of options and records.
    pub fn name(self) -> &'static str {
        match self {
            Durability::Durable => "durable",
            Durability::Process => "process",
            Durability::None => "none",
        }
    }

    /// The level of a word.
    pub fn of_name(name: &str) -> Option<Durability> {
        let all = [Durability::Durable, Durability::Process, Durability::None];
        all.into_iter().find(|level| level.name() == name)
    }
}

impl From<Durability> for spinney::Durability {
    fn from(level: Durability) -> spinney::Durability {
        match level {
            Durability::Durable => spinney::Durability::Durable,
            Durability::Process => spinney::Durability::Process,
            Durability::None => spinney::Durability::None,
        }
    }
}

/// What a system is in the records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Spinney on a backend.
    Backend,
    /// What people would use instead.
    Peer,
    /// A bound of the machine or of plain libraries.
    Limit,
}

impl Kind {
    /// The word of records.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Backend => "backend",
            Kind::Peer => "peer",
            Kind::Limit => "limit",
        }
    }

    /// The kind of a word.
    pub fn of_name(name: &str) -> Option<Kind> {
        [Kind::Backend, Kind::Peer, Kind::Limit].into_iter().find(|kind| kind.name() == name)
    }
}

/// What a write did. A measured write that changed nothing is an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Effect {
    /// The store differs from before.
    Changed,
    /// There was nothing to do.
    Unchanged,
}

impl From<bool> for Effect {
    fn from(changed: bool) -> Effect {
        if changed { Effect::Changed } else { Effect::Unchanged }
    }
}

/// How the change of a try is taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Undo {
    /// Remove `l` of this item.
    RemoveLeaf(usize),
    /// Give `l` of this item its first text, where it now has another one.
    ModifyLeaf(usize),
    /// Give `l` of this item its first text, where it now has none.
    CreateLeaf(usize),
    /// Remove the element of `usr-lst` at `position`, which has `k` = `key`.
    RemoveElement {
        /// Counted from 0.
        position: usize,
        /// Its `k`.
        key: usize,
    },
    /// Remove `cont`.
    RemoveTree,
    /// Put the whole document back.
    Load,
}

/// Makes systems of one kind.
pub trait Factory {
    /// The name in options, tables and records.
    fn name(&self) -> &str;

    /// How it is asked.
    fn transport(&self) -> Transport {
        Transport::Embedded
    }

    /// Backend or peer.
    fn kind(&self) -> Kind;

    /// How it does the work, in sentences.
    fn design(&self) -> &str;

    /// How it does the work of another suite than `datastore`.
    fn design_in(&self, suite: &str) -> &str {
        let _ = suite;
        self.design()
    }

    /// Settings as name and value, at this level.
    fn settings(&self, durability: Durability) -> Vec<(String, String)>;

    /// Names and versions of the software.
    fn versions(&self) -> Vec<(String, String)>;

    /// Why it cannot give this level; `None` when it can.
    fn lacks(&self, durability: Durability) -> Option<String>;

    /// The URL of the store of spinney in a folder, for what is measured of its handle alone.
    fn url(&self, folder: &Path) -> Option<String> {
        let _ = folder;
        None
    }

    /// The handle of a store of spinney in a folder.
    ///
    /// # Errors
    /// Those of opening it.
    fn store(&self, folder: &Path, durability: Durability) -> Result<Option<spinney::Store>> {
        let open =
            |url: String| spinney::OpenOptions::new().durability(durability.into()).open(&url);
        self.url(folder).map(open).transpose()
    }

    /// A new, empty store in `folder`, which exists and is empty.
    fn open(&self, folder: &Path, durability: Durability) -> Result<Box<dyn System>>;

    /// A new store in `folder` with one empty collection, for the suite `documents`.
    ///
    /// # Errors
    /// `Unsupported` where it does not take part; those of opening it.
    fn collection(&self, folder: &Path, durability: Durability) -> Result<Box<dyn Collection>> {
        let _ = (folder, durability);
        Err(Error::unsupported("it takes no part in this suite"))
    }

    /// The store in `folder` with one array, which is new and empty where the folder is empty, for the suite `throughput`.
    ///
    /// # Errors
    /// As [`Factory::collection`].
    fn array(&self, folder: &Path, durability: Durability) -> Result<Box<dyn Array>> {
        let _ = (folder, durability);
        Err(Error::unsupported("it takes no part in this suite"))
    }
}

/// An open store. Each write is one commit, acknowledged at the level of the store on return.
///
/// # Errors
/// All operations: whatever the store reports; `Unsupported` drops the row for this system with
/// the text as the reason.
pub trait System {
    /// Puts the JSON text into the empty store, checking that it is JSON.
    fn import(&mut self, json: &[u8]) -> Result<Effect>;

    /// Replaces all content by `json`, in the cheapest way; never measured.
    fn replace(&mut self, json: &[u8]) -> Result<()> {
        let _: Effect = self.remove_tree()?;
        let _: Effect = self.import(json)?;
        Ok(())
    }

    /// Allows or forbids a decoded tree in the process between operations; never measured.
    fn keep(&mut self, kept: bool) -> Result<()> {
        let _ = kept;
        Ok(())
    }

    /// Has each commit of configuration judged from now on: types, required and unknown members, and
    /// keys that are unique; asked for once, of an empty store.
    fn judge(&mut self) -> Result<()> {
        Err(Error::unsupported("nothing judges what it is given"))
    }

    /// Goes on at another place, which is then empty, as is the one before; never measured.
    fn move_to(&mut self, place: Place) -> Result<()> {
        match place {
            Place::Running => Ok(()),
            Place::Operational => Err(Error::unsupported("it keeps no state of connections")),
        }
    }

    /// Where it keeps what a function that stands for all subscribers is called with.
    fn told(&mut self) -> Option<&mut Told> {
        None
    }

    /// Has so many subscribers be given each commit of the present place, in place of those before, each
    /// of which counts the nodes that changed; never measured.
    fn subscribe(&mut self, count: usize) -> Result<()> {
        match (self.told(), count) {
            (Some(told), _) => told.listen(count > 0),
            (None, 0) => {}
            _ => return Err(Error::unsupported("nobody is given what changed")),
        }
        Ok(())
    }

    /// What each subscriber was given since the last call, as soon as all were told how each commit
    /// ended.
    fn deliveries(&mut self) -> Result<Vec<Delivery>> {
        Ok(self.told().and_then(Told::take).into_iter().collect())
    }

    /// Makes a candidate of the configuration in which `l` of these items is `text`; never measured.
    fn stage_candidate(
        &mut self,
        items: &mut dyn Iterator<Item = usize>,
        text: &str,
    ) -> Result<()> {
        let _ = (items, text);
        Err(Error::unsupported("it has no candidate"))
    }

    /// Makes the candidate the configuration.
    fn commit_candidate(&mut self) -> Result<Effect> {
        Err(Error::unsupported("it has no candidate"))
    }

    /// Takes back one try, so that the content is `json` again; never measured.
    fn undo(&mut self, undo: Undo, json: &[u8]) -> Result<()> {
        undo_by_edit(self, undo, json)
    }

    /// The text at `/cont/lst/i,stri/l`, read by path at a fresh snapshot.
    fn leaf(&mut self, i: usize) -> Result<String>;

    /// Item i of `lst` with its ancestors, from `{"cont":` on: an owned copy, read by path.
    fn item_tree(&mut self, i: usize) -> Result<Answer>;

    /// As [`System::item_tree`], found by comparing `k1` and `k2` of all items, without an index.
    fn query_tree(&mut self, i: usize) -> Result<Answer>;

    /// The text `l` of item i, found in the same way.
    fn query_item(&mut self, i: usize) -> Result<String>;

    /// Up to `count` items in the order of their keys as texts, from item i on: an owned copy.
    fn range(&mut self, i: usize, count: usize) -> Result<Answer>;

    /// The node `/cont`, whose N items a provider makes on a thread of its own when it is asked.
    fn provided_tree(&mut self, n: usize) -> Result<Answer> {
        let _ = n;
        Err(Error::unsupported("it asks no providers"))
    }

    /// The node `/cont` with its ordered list, in the user's order: an owned copy.
    fn ordered_tree(&mut self) -> Result<Answer>;

    /// The element of `usr-lst` at `position`, by position: an owned copy.
    fn element(&mut self, position: usize) -> Result<Answer>;

    /// Builds items 0 to n - 1 of `lst` in memory and merges them in one commit.
    fn create_batch(&mut self, n: usize) -> Result<Effect>;

    /// Sets items 0 to n - 1 of `lst` one by one, each by its path text where the system has
    /// paths, in one commit.
    fn create_paths(&mut self, n: usize) -> Result<Effect>;

    /// Appends entries 0 to n - 1 to `usr-lst` one by one, each by path text where the system has
    /// paths, in one commit; `k` stays unique.
    fn create_ordered(&mut self, n: usize) -> Result<Effect>;

    /// Removes `/cont/lst`; `cont` stays.
    fn remove_items(&mut self) -> Result<Effect>;

    /// Removes `/cont`.
    fn remove_tree(&mut self) -> Result<Effect>;

    /// Sets `l` of item i, which must not have one.
    fn create_leaf(&mut self, i: usize, text: &str) -> Result<Effect>;

    /// Sets `l` of item i, which must have one.
    fn modify_leaf(&mut self, i: usize, text: &str) -> Result<Effect>;

    /// Removes `l` of item i; the item and its keys stay.
    fn remove_leaf(&mut self, i: usize) -> Result<Effect>;

    /// Inserts entry `new` directly after entry `after` of `usr-lst`. Entry `after` stands at
    /// position `after` and has `k` = `after`; a system may use either.
    fn insert_after(&mut self, after: usize, new: usize) -> Result<Effect>;

    /// Inserts entries `new` to `new + count - 1`, in this order, each directly after entry `after`
    /// as in [`System::insert_after`], in one commit.
    fn insert_storm(&mut self, after: usize, new: usize, count: usize) -> Result<Effect>;

    /// Moves the last of `n` entries of `usr-lst` directly after entry `after`, as in
    /// [`System::insert_after`].
    fn move_last(&mut self, after: usize, n: usize) -> Result<Effect>;

    /// Removes the element at `position`, which has `k` = `key`; never measured.
    fn remove_element(&mut self, position: usize, key: usize) -> Result<()>;

    /// Appends the whole store as JSON text, without spaces; members in any order.
    fn export(&mut self, out: &mut Vec<u8>) -> Result<()>;

    /// Finishes all background work; the bytes cleaned up, or `None` where there is no such work.
    fn settle(&mut self) -> Result<Option<u64>> {
        Ok(None)
    }

    /// The processes besides this one that sync what it commits.
    fn processes(&self) -> Vec<u32> {
        Vec::new()
    }

    /// The bytes of a store that keeps nothing in its folder.
    fn memory_bytes(&self) -> Option<u64> {
        None
    }
}

/// Takes a try back with the operations of the contract itself.
pub fn undo_by_edit<S: System + ?Sized>(system: &mut S, undo: Undo, json: &[u8]) -> Result<()> {
    let _: Effect = match undo {
        Undo::RemoveLeaf(i) => system.remove_leaf(i)?,
        Undo::ModifyLeaf(i) => system.modify_leaf(i, &leaf_text(i))?,
        Undo::CreateLeaf(i) => system.create_leaf(i, &leaf_text(i))?,
        Undo::RemoveTree => system.remove_tree()?,
        Undo::RemoveElement { position, key } => {
            system.remove_element(position, key)?;
            Effect::Changed
        }
        Undo::Load => {
            system.replace(json)?;
            Effect::Changed
        }
    };
    Ok(())
}
