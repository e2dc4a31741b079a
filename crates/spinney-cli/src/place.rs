//! Which tree a path is in: the store itself, a stack of layers, or a datastore.

use clap::Args;
use spinney::datastores::Datastore;
use spinney::layers::{LayerEdit, LayerSpec, Stack};
use spinney::{Error, Result, Snapshot, Store};

use crate::global::{Global, Write, to_read};

/// The options of verbs that read.
#[derive(Args)]
pub struct At {
    /// Read the state at this revision; without it, the newest
    #[arg(long, value_name = "REVISION", conflicts_with_all = ["stack", "datastore"])]
    at: Option<u64>,

    #[command(flatten)]
    tree: Tree,
}

/// The tree that a path is in.
#[derive(Args)]
pub struct Tree {
    /// Read the layers of this stack as one; paths begin at its root
    #[arg(long, value_name = "NAME")]
    stack: Option<String>,

    /// Read this datastore: startup, running, candidate, operational or factory-default
    #[arg(long, short, value_name = "NAME", conflicts_with = "stack")]
    datastore: Option<Datastore>,
}

impl Tree {
    /// Whether it is this datastore.
    pub fn is(&self, datastore: Datastore) -> bool {
        self.datastore == Some(datastore)
    }

    /// The layers to be followed, when it is not the store itself.
    pub fn followed(&self, store: &Store) -> Result<Option<Stack>> {
        match self {
            Tree { stack: Some(stack), .. } => store.stack_with(stack, |_| to_read()).map(Some),
            Tree { datastore: Some(datastore), .. } => {
                store.datastores()?.followed(*datastore).map(Some)
            }
            Tree { .. } => Ok(None),
        }
    }
}

impl At {
    /// The state that is meant, to read a path of a store that exists.
    pub fn read(&self, global: &Global, path: &str) -> Result<Snapshot> {
        let store = global.open_to_read()?;
        match self {
            At { at: Some(revision), .. } => store.holding(path)?.at(*revision),
            At { tree: Tree { stack: Some(stack), .. }, .. } => {
                store.stack_with(stack, |_| to_read())?.read()
            }
            At { tree: Tree { datastore: Some(datastore), .. }, .. } => {
                store.datastores()?.read(*datastore)
            }
            At { .. } => store.read(),
        }
    }
}

/// The options of verbs that write one node.
#[derive(Args)]
pub struct Place {
    /// Change a layer of this stack; paths begin at its root
    #[arg(long, value_name = "NAME", requires = "layer")]
    stack: Option<String>,

    /// The layer of the stack that is changed
    #[arg(long, value_name = "NAME", requires = "stack")]
    layer: Option<String>,

    /// Change this datastore: startup, running, candidate, operational or factory-default
    #[arg(long, short, value_name = "NAME", conflicts_with = "stack")]
    datastore: Option<Datastore>,
}

impl Place {
    /// Whether it is the store itself.
    pub fn is_store(&self) -> bool {
        self.stack.is_none() && self.datastore.is_none()
    }

    /// Changes the layer or datastore of a store.
    pub fn edit<T>(
        &self,
        store: &Store,
        write: &Write,
        edit: impl FnMut(&mut LayerEdit<'_, '_>) -> Result<T>,
    ) -> Result<T> {
        let committed = match (self, &self.layer) {
            (Place { datastore: Some(datastore), .. }, _) => {
                store.datastores()?.edit(*datastore, edit)?
            }
            (Place { stack: Some(stack), .. }, Some(layer)) => {
                // Only what is written is made.
                let options = |spec: &LayerSpec| write.options().create(spec.name == *layer);
                store.stack_with(stack, options)?.write(layer, edit)?
            }
            _ => return Err(Error::invalid_input("name a stack with a layer, or a datastore")),
        };
        store.wait_until_reclaimed();
        Ok(committed.value)
    }
}
