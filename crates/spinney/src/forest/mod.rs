//! Stores whose trees are kept apart: each tree in a backend of its own, with its own revisions.
//!
//! Everything that has a path goes to the store of its tree ([`Store::holding`]), and what is left is
//! refused by `apart::Apart`, on which the whole stands. It must not know what keeps the trees.

mod apart;
mod reading;
mod write;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use spinney_core::backend::{Backend, Capabilities};
use spinney_core::{Error, Memory, Path, Result, path};

use crate::store::{OpenOptions, Store};

pub(crate) use apart::{Apart, NoState, refusal};
pub(crate) use reading::Reading;

/// Trees that stay open when nobody uses them.
const OPEN_MAX: usize = 256;

/// What keeps each tree of a store in a backend of its own.
pub trait Trees: Send + Sync {
    /// What the store can do as a whole.
    fn capabilities(&self) -> &Capabilities;

    /// The names of all trees, in any order; a tree that holds nothing may be among them.
    ///
    /// # Errors
    /// `NotFound` when there is no store; those of the medium.
    fn names(&self) -> Result<Vec<String>>;

    /// The backend of a tree, which holds at its root nothing but the tree, under its name. `None` when
    /// there is none and none may be made; one that is made is listed first, so that none is forgotten.
    ///
    /// # Errors
    /// Those of the medium.
    fn open(&self, name: &str, create: bool) -> Result<Option<Arc<dyn Backend>>>;

    /// Facts about the store as a whole, as pairs of name and value.
    ///
    /// # Errors
    /// Those of the medium.
    fn stats(&self) -> Result<Vec<(String, String)>>;
}

/// The stores of the trees that were used.
pub(crate) struct Forest {
    trees: Arc<dyn Trees>,
    options: OpenOptions,
    open: Mutex<BTreeMap<String, Store>>,
    /// What transactions stand on until they know their tree.
    nowhere: Memory,
}

impl Forest {
    pub fn new(trees: Arc<dyn Trees>, options: OpenOptions) -> Forest {
        Forest { trees, options, open: Mutex::default(), nowhere: Memory::new() }
    }

    fn open(&self) -> MutexGuard<'_, BTreeMap<String, Store>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The store of a tree; `None` when there is none and none is to be made.
    pub fn tree(&self, name: &str, create: bool) -> Result<Option<Store>> {
        if let Some(store) = self.open().get(name) {
            return Ok(Some(store.clone()));
        }
        // Others need not wait while this one is looked for.
        let Some(backend) = self.trees.open(name, create)? else { return Ok(None) };
        let mut open = self.open();
        if open.len() >= OPEN_MAX {
            open.retain(|_, store| store.is_used());
        }
        let of_tree = || self.options.over_tree(backend, name);
        Ok(Some(open.entry(name.to_owned()).or_insert_with(of_tree).clone()))
    }

    /// The store of the tree that a path leads into; `None` for the root.
    ///
    /// # Errors
    /// `NotFound` when there is no such tree and none is to be made.
    pub fn holding(&self, path: &str, create: bool) -> Result<Option<Store>> {
        path::check(path)?;
        let Some(name) = path::segments(path).next() else { return Ok(None) };
        let shown = || Path::root().child(&*name);
        let found = self.tree(&name, create)?;
        found.map(Some).ok_or_else(|| Error::not_found(format!("there is no tree {}", shown())))
    }

    /// The stores of all trees, with the paths of these.
    pub fn all(&self) -> Result<Vec<(Path, Store)>> {
        let mut found = Vec::new();
        for name in self.trees.names()? {
            if let Some(store) = self.tree(&name, false)? {
                found.push((Path::root().child(&name), store));
            }
        }
        Ok(found)
    }

    /// Waits until the background is done in all trees that this handle has written to.
    pub fn wait_until_reclaimed(&self) {
        let open: Vec<Store> = self.open().values().cloned().collect();
        open.iter().for_each(Store::wait_until_reclaimed);
    }
}
