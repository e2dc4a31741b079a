//! One edit of the place where a store works: a tree, or a layer that a connection pushes.

use serde::Serialize;
use spinney::layers::LayerEdit;
use spinney::{Transaction, Value};
use spinney_core::{Error, Result};

use super::TREE;

/// What a write changes. Paths begin with the tree that holds the document, wherever it is.
pub enum Edit<'a, 'e, 't> {
    /// The tree itself.
    Tree(&'a mut Transaction<'t>),
    /// What is pushed over it.
    Layer(&'a mut LayerEdit<'e, 't>),
}

impl<'t> Edit<'_, '_, 't> {
    /// Sets the node at a path.
    pub fn set(&mut self, path: &str, value: &Value) -> Result<()> {
        match self {
            Edit::Tree(transaction) => transaction.set(path, value),
            Edit::Layer(layer) => layer.set(below(path), value),
        }
    }

    /// Sets the node at a path to a value of any type.
    pub fn set_as(&mut self, path: &str, value: &impl Serialize) -> Result<()> {
        match self {
            Edit::Tree(transaction) => transaction.set_as(path, value),
            Edit::Layer(layer) => layer.set_as(below(path), value),
        }
    }

    /// Sets the node at a path, which must not exist in a tree.
    pub fn create(&mut self, path: &str, value: &Value) -> Result<()> {
        match self {
            Edit::Tree(transaction) => transaction.create(path, value),
            Edit::Layer(layer) => layer.set(below(path), value),
        }
    }

    /// Removes the node at a path.
    pub fn remove(&mut self, path: &str) -> Result<()> {
        match self {
            Edit::Tree(transaction) => transaction.remove(path).map(drop),
            Edit::Layer(layer) => layer.remove(below(path)).map(drop),
        }
    }

    /// The transaction, for what is done to trees alone.
    pub fn tree(&mut self) -> Result<&mut Transaction<'t>> {
        match self {
            Edit::Tree(transaction) => Ok(transaction),
            Edit::Layer(_) => Err(Error::unsupported("no row does this to what is pushed")),
        }
    }
}

/// The path in a layer, which has the tree as its root.
fn below(path: &str) -> &str {
    path.strip_prefix(TREE).unwrap_or(path)
}
