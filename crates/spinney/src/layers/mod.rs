//! Layers: trees read as one, the highest first, each value with the layer that it comes from.
//!
//! A [`Stack`] is read through a [`Snapshot`] like any other state, and written one layer at a time
//! ([`Stack::write`]). What a layer says of its nodes beyond their values (deleted here, replaces,
//! locked) is in their metadata: [`spinney_core::read::marks`]. `datastores` and Elektra's namespaces
//! ([`cascade`]) are stacks with known names.

mod filter;
mod finding;
mod fold;
mod following;
mod kept;
mod provided;
mod reading;
mod writing;

use std::sync::Arc;

use spinney_core::backend::Revision;
use spinney_core::read::{Merged, Reached};
use spinney_core::{Error, ErrorKind, Path, Result, path};

use crate::Transaction;
use crate::datastores;
use crate::feed::{self, Bookmark, Change, Changes};
use crate::snapshot::Snapshot;
use crate::store::{Committed, Durability, Store};

pub use finding::StackId;
pub(crate) use finding::{Finding, Moved};
pub(crate) use fold::{Changed, Fold, refuse_conflicts};
pub use fold::{LayerConflict, Prefer};
pub(crate) use following::Following;
#[cfg(feature = "schema")]
pub(crate) use kept::finding as finding_kept;
pub use kept::{CASCADE, LayerSpec, TREE, cascade};
pub use provided::Provider;
pub(crate) use provided::Source;
pub(crate) use reading::Layers;
pub use reading::Sourced;
pub use writing::LayerEdit;

/// One of the trees that are read as one.
#[derive(Clone)]
pub struct Layer {
    name: String,
    store: Store,
    path: Path,
    at: Option<Revision>,
    /// Why it cannot be written.
    read_only: Option<String>,
}

impl Layer {
    /// A layer of a name, which is what is at a path of a store; nothing need be there.
    ///
    /// # Errors
    /// `InvalidInput` for an empty name or one with a control character, and for a malformed path.
    pub fn new(name: impl Into<String>, store: &Store, path: &str) -> Result<Layer> {
        let name = name.into();
        check_name(&name)?;
        let path = Path::parse(path)?;
        Ok(Layer { name, store: store.clone(), path, at: None, read_only: None })
    }

    /// As it was at a revision, and not to be written.
    #[must_use]
    pub fn at(mut self, revision: Revision) -> Layer {
        self.at = Some(revision);
        self.read_only = Some(format!("it is a state of the past, at revision {revision}"));
        self
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where it is in its store.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether one state serves both.
    fn is_same_state(&self, other: &Layer) -> bool {
        self.store.is_same(&other.store) && self.at == other.at
    }

    fn state(&self) -> Result<Snapshot> {
        match self.at {
            None => self.store.read(),
            Some(revision) => self.store.holding(&self.path)?.at(revision),
        }
    }
}

/// Refuses what cannot be the name of a layer.
pub(crate) fn check_name(name: &str) -> Result<()> {
    match name.is_empty() || name.contains(char::is_control) {
        true => Err(Error::invalid_input(format!(
            "{name:?} is no name of a layer; write a word, such as `user`"
        ))),
        false => Ok(()),
    }
}

fn name_taken(name: &str) -> Error {
    Error::invalid_input(format!("two layers have the name `{name}`; give each its own"))
}

/// Layers that are read as one, the highest first.
#[derive(Clone)]
pub struct Stack {
    layers: Vec<Layer>,
    /// How its layers are found in other states of the store; without it, they stay the same.
    finding: Option<Finding>,
    /// What is read above them and stored nowhere, the highest first.
    provided: Vec<Arc<Source>>,
}

impl Stack {
    /// A stack of layers, the highest first.
    ///
    /// ```
    /// use spinney::layers::{Layer, Stack};
    ///
    /// let store = spinney::open("memory:")?;
    /// let stack = Stack::new(vec![
    ///     Layer::new("user", &store, "/user")?,
    ///     Layer::new("system", &store, "/system")?,
    /// ])?;
    /// stack.write("system", |layer| layer.set("/editor/tab", &4.into()))?;
    /// stack.write("user", |layer| layer.set("/editor/font", &"serif".into()))?;
    /// let state = stack.read()?;
    /// assert_eq!(state.get("/editor/tab")?, Some(4.into()));
    /// assert_eq!(state.sources("/editor/font")?, Some(vec!["user"]));
    /// # Ok::<(), spinney::Error>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidInput` when there is none, two have one name, or one lies within another.
    pub fn new(layers: Vec<Layer>) -> Result<Stack> {
        if layers.is_empty() {
            return Err(Error::invalid_input("a stack needs a layer; write `NAME=PATH`"));
        }
        for (at, layer) in layers.iter().enumerate() {
            for above in &layers[..at] {
                if above.name == layer.name {
                    return Err(name_taken(&layer.name));
                }
                if above.is_same_state(layer) && overlaps(&above.path, &layer.path) {
                    return Err(Error::invalid_input(format!(
                        "the layers `{}` and `{}` overlap: {} and {}; give each a tree of its own",
                        above.name,
                        layer.name,
                        path::Display(&above.path),
                        path::Display(&layer.path)
                    )));
                }
            }
        }
        Ok(Stack { layers, finding: None, provided: Vec::new() })
    }

    /// The same, whose layers may be others in other states of the store.
    pub(crate) fn found_by(self, finding: Finding) -> Stack {
        Stack { finding: Some(finding), ..self }
    }

    /// The same under what programs provide, the highest first.
    pub(crate) fn under(self, provided: Vec<Arc<Source>>) -> Stack {
        Stack { provided, ..self }
    }

    /// The layers, the highest first.
    pub fn layers(&self) -> &[Layer] {
        &self.layers
    }

    /// The newest state: one of each store that the layers are in.
    ///
    /// # Errors
    /// As [`Store::read`].
    pub fn read(&self) -> Result<Snapshot> {
        Ok(Snapshot::of_layers(Layers::read(&self.layers, &self.provided)?))
    }

    /// The commits after a revision that change what is at a path of the tree that the layers are read as,
    /// those to come included. Changes of the stack itself are told as what becomes of that tree.
    ///
    /// # Errors
    /// `Unsupported` when the layers are in several stores, or in the past; as [`Store::changes`].
    pub fn changes(&self, path: &str, since: Revision) -> Result<Changes> {
        Changes::new(feed::Source::of_stack(self)?, path, since)
    }

    /// As [`Stack::changes`], from where another feed was; one of another store begins with a gap.
    ///
    /// # Errors
    /// As [`Stack::changes`].
    pub fn changes_from(&self, path: &str, bookmark: &Bookmark) -> Result<Changes> {
        Changes::resume(feed::Source::of_stack(self)?, path, bookmark)
    }

    /// The commits that have changed what is at a path of the tree that the layers are read as, from the newest
    /// to the oldest that is kept, until `found` answers false.
    ///
    /// # Errors
    /// As [`Stack::changes`]; `Corrupted` for damage; those of `found`.
    ///
    /// # Complexity
    /// That of the log.
    pub fn log(&self, path: &str, found: &mut dyn FnMut(Change) -> Result<bool>) -> Result<()> {
        let path = Path::parse(path)?;
        for change in self.following()?.all_commits()?.rev() {
            let mut change = change?;
            change.diff.retain_concerning(&path);
            if !change.diff.is_empty() && !found(change)? {
                break;
            }
        }
        Ok(())
    }

    /// Changes one layer, as [`Store::write`] changes a store.
    ///
    /// # Errors
    /// `NotFound` when there is no layer of the name; `ReadOnly` for one at an older revision; those of
    /// [`LayerEdit`] and [`Store::write`].
    pub fn write<T>(
        &self,
        layer: &str,
        mut edit: impl FnMut(&mut LayerEdit<'_, '_>) -> Result<T>,
    ) -> Result<Committed<T>> {
        let at = self.writable(layer)?;
        let store = &self.layers[at].store;
        store.write(|transaction| edit(&mut LayerEdit::new(&self.layers, at, transaction)?))
    }

    /// As [`Stack::write`], with a durability of its own.
    ///
    /// # Errors
    /// As [`Stack::write`].
    pub fn write_with<T>(
        &self,
        durability: Durability,
        layer: &str,
        mut edit: impl FnMut(&mut LayerEdit<'_, '_>) -> Result<T>,
    ) -> Result<Committed<T>> {
        let at = self.writable(layer)?;
        let store = &self.layers[at].store;
        store.write_with(durability, |transaction| {
            edit(&mut LayerEdit::new(&self.layers, at, transaction)?)
        })
    }

    /// A view of a transaction as an edit of one layer, for changes of several layers in one commit.
    ///
    /// # Errors
    /// As [`Stack::write`].
    pub fn edit<'e, 't>(
        &'e self,
        layer: &str,
        transaction: &'e mut Transaction<'t>,
    ) -> Result<LayerEdit<'e, 't>> {
        LayerEdit::new(&self.layers, self.writable(layer)?, transaction)
    }

    /// The number of a layer that can be written.
    fn writable(&self, name: &str) -> Result<usize> {
        let Some(at) = self.layers.iter().position(|layer| layer.name == name) else {
            let names: Vec<_> = self.layers.iter().map(|layer| &*layer.name).collect();
            return Err(Error::not_found(format!(
                "there is no layer `{name}`; there are {}",
                names.join(", ")
            )));
        };
        match &self.layers[at].read_only {
            None => Ok(at),
            Some(reason) => Err(Error::new(
                ErrorKind::ReadOnly,
                format!("the layer `{name}` cannot be written: {reason}"),
            )),
        }
    }
}

impl Snapshot {
    /// The layers that the node at a path comes from, the highest first: one, or those whose maps are
    /// merged. `None` when there is no node; none of a snapshot that is not one of a stack.
    ///
    /// # Errors
    /// As [`Snapshot::get`].
    pub fn sources(&self, path: &str) -> Result<Option<Vec<&str>>> {
        match self.layers() {
            Some(layers) => layers.sources(path),
            None => Ok(self.kind(path)?.map(|_| Vec::new())),
        }
    }

    /// Tells for each value at a path and below which layer it comes from, in order: scalars, lists and
    /// empty maps. False when there is no node.
    ///
    /// # Errors
    /// `Unsupported` when it is not a snapshot of a stack; as [`Snapshot::get`], and those of `found`.
    pub fn each_source(
        &self,
        path: &str,
        found: &mut dyn FnMut(Sourced<'_>, &Merged<Reached<'_>>) -> Result<()>,
    ) -> Result<bool> {
        match self.layers() {
            Some(layers) => layers.each_source(path, found),
            None => Err(Error::unsupported(
                "only values of a stack or datastore come from layers; name one",
            )),
        }
    }
}

/// The path whose access rules are those of a layer: its own, but all that one owner pushes is as `/operational` is.
pub(crate) fn ruled_as(layer: &str) -> &str {
    match datastores::is_pushed(layer) {
        true => "/operational",
        false => layer,
    }
}

/// Whether one path is the other one, or leads into it.
fn overlaps(one: &str, other: &str) -> bool {
    leads_to(one, other) || leads_to(other, one)
}

/// Whether one path is the other one, or above it.
fn leads_to(above: &str, path: &str) -> bool {
    path.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Why there are no pages of a stack.
pub(crate) fn refusal() -> Error {
    Error::unsupported(
        "layers read as one have no pages of their own; do this with the store of one layer",
    )
}
