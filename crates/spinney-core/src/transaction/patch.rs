//! Applying a JSON Patch (RFC 6902) as edits.

use crate::compare::{Compared, Relation};
use crate::edit::Body;
use crate::error::{Error, Result};
use crate::key::Key;
use crate::patch::{Action, Operation, Patch, PatchReader, at_operation};
use crate::path::{self, Display};
use crate::value::{Value, ValueBuilder};
use crate::visit::{Container, Scalar, Visitor};

use super::access::Deed;
use super::change::no_parent;
use super::{Existing, Transaction, encoded_key};

impl Transaction<'_> {
    /// Applies a JSON Patch to the document at a path.
    ///
    /// It applies as a whole: after an error the transaction cannot be committed any more.
    ///
    /// # Errors
    /// They name the operation. `Conflict` when a `test` fails; `NotFound` when there is nothing to
    /// remove, replace, move, copy or test, or no container to add to; `InvalidInput` for a place
    /// that a container does not have; `LimitExceeded`; those of the backend.
    ///
    /// # Complexity
    /// O(log n) for each operation and O(size) of its value and of what it copies or tests,
    /// however large the document is.
    pub fn patch(&mut self, path: &str, patch: &Patch) -> Result<()> {
        path::check(path)?;
        let mut operations = patch.operations.iter().enumerate();
        let patched = operations.try_for_each(|(index, operation)| {
            self.patch_one(path, operation)
                .map_err(|error| at_operation(index, error))
                .map_err(|error| error.at(format_args!("patch {}", Display(path))))
        });
        self.or_break(patched)
    }

    /// As [`Transaction::patch`], with the JSON form of the patch that `source` drives into the
    /// visitor it is given; memory is needed for one operation at a time.
    ///
    /// # Errors
    /// As [`Transaction::patch`], those of the source, and `InvalidInput` when it is no patch.
    pub fn patch_with(
        &mut self,
        path: &str,
        source: impl FnOnce(&mut dyn Visitor) -> Result<()>,
    ) -> Result<()> {
        path::check(path)?;
        let mut apply = |index, operation: Operation| {
            self.patch_one(path, &operation).map_err(|error| at_operation(index, error))
        };
        let patched = source(&mut PatchReader::new(&mut apply))
            .map_err(|error| error.at(format_args!("patch {}", Display(path))));
        self.or_break(patched)
    }

    fn patch_one(&mut self, document: &str, operation: &Operation) -> Result<()> {
        let path = [document, &operation.path].concat();
        let entered = match &operation.action {
            Action::Test(_) => path::check(&path).and_then(|()| self.enter(&path)),
            _ => self.checked(&path, Deed::Changes).map(drop),
        };
        let applied = entered.and_then(|()| match &operation.action {
            Action::Add(value) => self.patch_add(document, &path, value),
            Action::Remove => self.patch_remove(&path),
            Action::Replace(value) => {
                let whole = self.below_base(&path);
                self.try_set(&whole, Existing::Must, |visitor| value.visit(visitor))
            }
            Action::Move(from) | Action::Copy(from) => {
                let is_move = matches!(operation.action, Action::Move(_));
                self.patch_move(document, from, &path, is_move)
            }
            Action::Test(value) => self.patch_test(document, &operation.path, value),
        });
        self.or_unmake(applied).map_err(|error| error.at(operation))
    }

    /// Adds a value: the document itself is replaced, or made where there is none.
    fn patch_add(&mut self, document: &str, path: &str, value: &Value) -> Result<()> {
        let whole = self.below_base(path);
        if path == document {
            return self.try_set(&whole, Existing::Any, |visitor| value.visit(visitor));
        }
        let (parent, last) = path::split_last(&whole).expect("it is below the document");
        let Some(parent) = self.open_again(parent, false)? else { return Err(no_parent()) };
        match &self.edits.nodes[parent].body {
            Body::Map(_) => {
                let key = encoded_key(&last)?;
                self.set_member(parent, &key, Existing::Any, |visitor| value.visit(visitor))
            }
            Body::List(list) => {
                let len = list.len();
                let position = self.position_to_insert(parent, &last, len)?;
                self.insert_into(parent, position, |visitor| value.visit(visitor))
            }
        }
    }

    fn patch_remove(&mut self, path: &str) -> Result<()> {
        let whole = self.checked_member(path, "the root cannot be removed; remove its members")?;
        match self.try_remove(&whole)? {
            true => Ok(()),
            false => Err(Error::not_found("there is no node to remove")),
        }
    }

    /// Moves or copies a node; nothing is made on the way to its place.
    fn patch_move(&mut self, document: &str, from: &str, to: &str, is_move: bool) -> Result<()> {
        let from = [document, from].concat();
        self.checked(&from, if is_move { Deed::Changes } else { Deed::Copies })?;
        if to.is_empty() {
            return self.patch_root(&from);
        }
        // An element would be inserted before a document that is one, and not take its place.
        let replaces = to == document && from != to;
        let replaced = if replaces { self.element_behind(to)? } else { None };
        let (from, to) = (self.below_base(&from), self.below_base(to));
        match is_move {
            _ if from == to && self.is_seen_at(&from)? => {}
            false => self.try_copy(&from, &to, false)?,
            true if from.is_empty() => {
                return Err(Error::invalid_input("the root cannot be moved"));
            }
            true => {
                // To a move, a tree in the place of another one is taken for a mistake.
                let is_tree = |path: &str| path::segments(path).count() == 1;
                if is_tree(&from) && is_tree(&to) && self.exists_at(&from)? {
                    self.try_remove(&to)?;
                }
                self.try_move(&from, &to, false)?;
            }
        }
        match replaced {
            Some(replaced) => self.try_remove(&self.below_base(&replaced)).map(drop),
            None => Ok(()),
        }
    }

    /// Where an element of a list will be once another one is inserted in its place.
    fn element_behind(&self, path: &str) -> Result<Option<String>> {
        let (parent, last) = path::split_last(path).expect("it is not the root");
        if self.container_at(&self.below_base(parent))? != Some(Container::List) {
            return Ok(None);
        }
        Ok(path::position(&last).map(|position| format!("{parent}/{}", position + 1)))
    }

    /// Replaces the root by what stands somewhere below it.
    fn patch_root(&mut self, from: &str) -> Result<()> {
        let mut value = PlainValue::default();
        if !self.visit(from, &mut value)? {
            return Err(Error::not_found("there is nothing to move or copy"));
        }
        let value = value.0.finish().expect("a node is one value");
        let whole = self.below_base("");
        self.try_set(&whole, Existing::Any, |visitor| value.visit(visitor))
    }

    /// Errors name the path within the document, as the operation does.
    fn patch_test(&mut self, document: &str, path: &str, value: &Value) -> Result<()> {
        match self.compare(&[document, path].concat(), value, Relation::Equal)? {
            Compared::Same => Ok(()),
            Compared::Different(mismatch) => Err(mismatch.into_error(path)),
            Compared::Absent => Err(Error::not_found("there is no node to test")),
        }
    }
}

/// A value without metadata, which it would lose.
#[derive(Default)]
struct PlainValue(ValueBuilder);

impl Visitor for PlainValue {
    fn open(&mut self, container: Container) -> Result<()> {
        self.0.open(container)
    }

    fn key(&mut self, key: Key<'_>) -> Result<()> {
        self.0.key(key)
    }

    fn scalar(&mut self, scalar: Scalar<'_>) -> Result<()> {
        self.0.scalar(scalar)
    }

    fn close(&mut self) -> Result<()> {
        self.0.close()
    }

    fn meta(&mut self, _name: &str, _value: &str) -> Result<()> {
        Err(Error::unsupported("a node with metadata below cannot become the root"))
    }
}
