//! How the layers of a stack are found in each state of the store that they are in.

use std::fmt;
use std::sync::Arc;

use spinney_core::diff::Diff;
#[cfg(feature = "schema")]
use spinney_core::diff::Relation;
use spinney_core::difference::StackState;
#[cfg(feature = "schema")]
use spinney_core::path;
use spinney_core::view::View;
use spinney_core::{Error, ErrorKind, Path, Result};

use super::reading::Layers;
use super::ruled_as;
use crate::access::Right;
use crate::snapshot::Snapshot;

/// Which stack it is, of all those of one store: equal ones have the same layers in each state.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum StackId {
    /// One that the store keeps by name ([`super::TREE`]).
    Kept(String),
    /// The layers of a datastore, by its name.
    Datastore(String),
    /// Layers that stay the same: the name of each and where it is, the highest first.
    Fixed(Vec<(String, Path)>),
}

impl fmt::Display for StackId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StackId::Kept(name) => write!(f, "the stack `{name}`"),
            StackId::Datastore(name) => write!(f, "the datastore `{name}`"),
            StackId::Fixed(layers) => {
                let names: Vec<_> = layers.iter().map(|(name, _)| &**name).collect();
                write!(f, "the layers {}", names.join(", "))
            }
        }
    }
}

/// Tells which layers there are in a state of a store, the highest first: the name of each, and where it is.
type FindLayers = dyn Fn(&View<'_>) -> Result<Vec<(String, Path)>> + Send + Sync;

/// The layers of a stack of one store, in each state of that.
#[derive(Clone)]
pub(crate) struct Finding {
    id: StackId,
    find: Arc<FindLayers>,
}

impl Finding {
    /// What finds the layers of a stack.
    pub fn new(
        id: StackId,
        find: impl Fn(&View<'_>) -> Result<Vec<(String, Path)>> + Send + Sync + 'static,
    ) -> Finding {
        Finding { id, find: Arc::new(find) }
    }

    /// Layers that stay the same.
    pub fn fixed(layers: Vec<(String, Path)>) -> Finding {
        let id = StackId::Fixed(layers.clone());
        Finding::new(id, move |_| Ok(layers.clone()))
    }

    /// Which stack it is.
    pub fn id(&self) -> &StackId {
        &self.id
    }

    /// The layers in a state, in a store whose paths begin at `base`.
    ///
    /// # Errors
    /// Those of finding them.
    pub fn of(&self, view: &View<'_>, base: &str) -> Result<Found> {
        let layers = (self.find)(view)?;
        let whole = |(_, path): &(String, Path)| Path::parse(&[base, path].concat());
        let paths = layers.iter().map(whole).collect::<Result<_>>()?;
        let named = layers.iter().map(|(name, path)| (Arc::from(&**name), Arc::from(&**path)));
        Ok(Found { named: named.collect(), paths })
    }

    /// What a commit, given by its diff from the store's root, changes in the tree that the layers are read as.
    ///
    /// # Errors
    /// As [`Diff::of_stack`], and those of finding the layers.
    #[cfg(feature = "schema")]
    pub fn moved(
        &self,
        diff: &Diff,
        before: View<'_>,
        after: View<'_>,
        base: &str,
    ) -> Result<Moved> {
        let (from, to) = (self.of(&before, base)?, self.of(&after, base)?);
        Moved::of(diff, (before, from), (after, to))
    }
}

/// The layers of a stack in one state.
pub(crate) struct Found {
    /// As users name them: the name of each, and where it is.
    named: Vec<(Arc<str>, Arc<str>)>,
    /// Where they are, from the store's root.
    paths: Vec<Path>,
}

impl Found {
    /// The tree that they are read as in a state.
    pub fn state<'s>(&'s self, view: View<'s>) -> StackState<'s> {
        StackState { view, layers: &self.paths }
    }

    /// A state of the store as the tree that they are read as.
    pub fn read(&self, state: Snapshot) -> Snapshot {
        Snapshot::of_layers(Layers::of(state, &self.named))
    }

    /// The same without the layers of which a reader may see nothing.
    ///
    /// # Errors
    /// `Denied` when there is one that may be read in part; those of reading.
    pub fn seen(mut self, reader: &Snapshot) -> Result<Found> {
        let mut is_seen = Vec::with_capacity(self.named.len());
        for (_, path) in &self.named {
            is_seen.push(may_follow(reader, path)?);
        }
        let mut seen = is_seen.iter();
        self.named.retain(|_| *seen.next().unwrap_or(&true));
        let mut seen = is_seen.iter();
        self.paths.retain(|_| *seen.next().unwrap_or(&true));
        Ok(self)
    }

    /// The names and paths, from the store's root, of those that a diff is about.
    #[cfg(feature = "schema")]
    pub fn concerned<'f>(&'f self, diff: &'f Diff) -> impl Iterator<Item = (&'f str, &'f Path)> {
        let layers = self.named.iter().zip(&self.paths);
        layers.map(|((name, _), path)| (&**name, path)).filter(|(_, path)| {
            let segments: Vec<String> = path::segments(path).map(Into::into).collect();
            diff.ops.iter().any(|op| op.relation_to(&segments) != Relation::Apart)
        })
    }
}

/// Whether the reader of a state may follow a layer: what comes and goes of the tree that layers are read as is not
/// known of a part of one.
///
/// # Errors
/// `Denied` for a part; those of reading.
fn may_follow(reader: &Snapshot, layer: &str) -> Result<bool> {
    let layer = ruled_as(layer);
    match (reader.permits(layer, Right::Read)?, reader.may_show(layer)?) {
        (true, _) => Ok(true),
        (false, false) => Ok(false),
        (false, true) => Err(Error::new(
            ErrorKind::Denied,
            "a layer of it may be read by you in part, and what changes in layers is told to whom may read all of \
             them; follow the store, which tells what you may read",
        )),
    }
}

/// What a commit changes in the tree that layers are read as.
pub(crate) struct Moved {
    pub diff: Diff,
    pub before: Found,
    pub after: Found,
}

impl Moved {
    /// What a commit changes, given by its diff from the store's root and the layers before and after it.
    ///
    /// # Errors
    /// As [`Diff::of_stack`].
    pub fn of(
        diff: &Diff,
        (before, from): (View<'_>, Found),
        (after, to): (View<'_>, Found),
    ) -> Result<Moved> {
        let diff = diff.of_stack(&from.state(before), &to.state(after))?;
        Ok(Moved { diff, before: from, after: to })
    }

    /// Whether there was a node at a path, or is one.
    ///
    /// # Errors
    /// `Corrupted` for damage.
    pub fn has(&self, path: &str, before: View<'_>, after: View<'_>) -> Result<bool> {
        Ok(self.before.state(before).node(path)?.is_some()
            || self.after.state(after).node(path)?.is_some())
    }
}
