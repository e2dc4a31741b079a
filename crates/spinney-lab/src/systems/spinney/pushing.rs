//! The state that a connection pushes over the configuration, in the store or, where it is one tree,
//! in memory beside it.

use std::time::Duration;

use spinney::datastores::{Datastore, Datastores, Pushed};
use spinney::layers::{Layer, Provider, Stack};
use spinney::{Snapshot, Store, Value};
use spinney_core::{Error, ErrorKind, Result};

use super::TREE;
use super::edit::Edit;
use super::subscriber::Counting;

/// How long a provider may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// The name of what is pushed, as the origin of values.
const NAME: &str = "pushed";
/// The tree in memory that holds it where a store is one tree.
const TREE_IN_MEMORY: &str = "/pushed";

/// What a connection pushes.
pub enum Pushing {
    /// Into the store.
    Datastore(Datastores, Pushed),
    /// Into memory, as a layer over the store.
    Memory(Store, Stack),
}

impl Pushing {
    /// Begins over an empty configuration.
    ///
    /// # Errors
    /// `Unsupported` where what is pushed lives in memory and commits must survive more.
    pub fn begin(store: &Store, survives: bool) -> Result<Pushing> {
        match store.datastores() {
            Ok(datastores) => {
                let pushed = datastores.push(NAME, None)?;
                Ok(Pushing::Datastore(datastores, pushed))
            }
            Err(error) if error.kind() != ErrorKind::Unsupported => Err(error),
            Err(_) if survives => Err(Error::unsupported("what is pushed over it is in memory")),
            Err(_) => {
                let memory = spinney::open("memory:")?;
                let pushed = Layer::new(NAME, &memory, TREE_IN_MEMORY)?;
                let stack = Stack::new(vec![pushed, Layer::new("running", store, TREE)?])?;
                Ok(Pushing::Memory(memory, stack))
            }
        }
    }

    /// Changes it; whether it is another one afterwards.
    ///
    /// # Errors
    /// Those of the closure and of the commit.
    pub fn write(&self, mut edit: impl FnMut(&mut Edit<'_, '_, '_>) -> Result<()>) -> Result<bool> {
        let committed = match self {
            Pushing::Datastore(_, pushed) => pushed.edit(|layer| edit(&mut Edit::Layer(layer)))?,
            Pushing::Memory(_, stack) => {
                stack.write(NAME, |layer| edit(&mut Edit::Layer(layer)))?
            }
        };
        Ok(!committed.diff.is_empty())
    }

    /// The state that the configuration and what is pushed make together.
    ///
    /// # Errors
    /// Those of reading.
    pub fn read(&self) -> Result<Snapshot> {
        match self {
            Pushing::Datastore(datastores, _) => datastores.read(Datastore::Operational),
            Pushing::Memory(_, stack) => stack.read(),
        }
    }

    /// `/cont` as a provider makes it: one that begins now, is asked, and ends.
    ///
    /// # Errors
    /// Those of providing and reading.
    pub fn provided(&self, provider: impl Provider + 'static) -> Result<Option<Value>> {
        const PROVIDER: &str = "provider";
        match self {
            Pushing::Datastore(datastores, _) => {
                let provision = datastores.provide(PROVIDER, "/cont", PATIENCE, provider)?;
                let tree = datastores.read(Datastore::Operational)?.get("/cont");
                drop(provision);
                tree
            }
            Pushing::Memory(_, stack) => {
                stack.clone().provide(PROVIDER, "/cont", PATIENCE, provider)?.read()?.get("/cont")
            }
        }
    }

    /// Has what is pushed counted.
    ///
    /// # Errors
    /// Those of subscribing.
    pub fn subscribe(&self) -> Result<Counting> {
        match self {
            Pushing::Datastore(datastores, _) => {
                Counting::new(datastores.store(), spinney::datastores::PUSHED_TREE)
            }
            Pushing::Memory(memory, _) => Counting::new(memory, TREE_IN_MEMORY),
        }
    }
}
