//! Applying a JSON Merge Patch (RFC 7396) as edits.

use crate::compare::{Compared, Relation};
use crate::error::Result;
use crate::key::{EncodedKey, Key, not_a_key};
use crate::path::{self, Display, Path};
use crate::value::Value;
use crate::visit::{Container, Scalar, Visitor};

use super::{Existing, Transaction};

impl Transaction<'_> {
    /// Merges a value into the node at a path (RFC 7396): objects member by member, where `null`
    /// removes one; all else replaces what is there, lists as a whole.
    ///
    /// Whatever comes out as it was is not written: a merge that changes nothing makes no revision.
    ///
    /// # Errors
    /// As [`Transaction::set`]; after one the transaction cannot be committed any more.
    ///
    /// # Complexity
    /// O(size of the patch) times O(log n).
    pub fn merge(&mut self, path: &str, patch: &Value) -> Result<()> {
        path::check(path)?;
        let merged = self
            .try_merge(path, patch)
            .map_err(|error| error.at(format_args!("merge {}", Display(path))));
        self.or_break(merged)
    }

    fn try_merge(&mut self, path: &str, patch: &Value) -> Result<()> {
        let mut place = Path::parse(path)?;
        let mut open = Vec::new();
        let mut next = Some(patch);
        loop {
            if let Some(value) = next.take() {
                match value {
                    Value::Map(map) if self.container(&place)? == Some(Container::Map) => {
                        open.push(map.iter());
                    }
                    Value::Map(_) => {
                        self.merge_new(&place, value)?;
                        place.pop();
                    }
                    value => {
                        self.merge_leaf(&place, value, open.is_empty())?;
                        place.pop();
                    }
                }
            }
            let Some(members) = open.last_mut() else { return Ok(()) };
            match members.next() {
                Some((key, value)) => {
                    place.push(&key);
                    next = Some(value);
                }
                None => {
                    open.pop();
                    place.pop();
                }
            }
        }
    }

    /// A list or a scalar; `null` removes what is there, but for the whole document.
    fn merge_leaf(&mut self, path: &str, value: &Value, is_document: bool) -> Result<()> {
        if *value == Value::Null && !is_document {
            return self.remove(path).map(drop);
        }
        match self.compare(path, value, Relation::Identical)? {
            Compared::Same => Ok(()),
            _ => self.set(path, value),
        }
    }

    /// An object where there was none.
    fn merge_new(&mut self, path: &str, object: &Value) -> Result<()> {
        self.set_with(path, Existing::Any, |visitor| {
            object.visit(&mut WithoutNulls { inner: visitor, lists: 0, key: None })
        })
    }
}

/// Leaves out the members of objects that are `null`; lists stay as they are.
struct WithoutNulls<'v> {
    inner: &'v mut dyn Visitor,
    /// Open containers from the outermost list on; nothing in it is left out.
    lists: usize,
    /// The key of the value that follows, until it is known to be no `null`.
    key: Option<EncodedKey>,
}

impl WithoutNulls<'_> {
    fn begin_value(&mut self) -> Result<()> {
        match self.key.take() {
            Some(key) => self.inner.key(Key::decode(&key).ok_or_else(not_a_key)?),
            None => Ok(()),
        }
    }
}

impl Visitor for WithoutNulls<'_> {
    fn open(&mut self, container: Container) -> Result<()> {
        self.begin_value()?;
        self.lists += usize::from(self.lists > 0 || container == Container::List);
        self.inner.open(container)
    }

    fn key(&mut self, key: Key<'_>) -> Result<()> {
        if self.lists > 0 {
            return self.inner.key(key);
        }
        self.key = Some(key.encoded());
        Ok(())
    }

    fn scalar(&mut self, scalar: Scalar<'_>) -> Result<()> {
        if scalar == Scalar::Null && self.lists == 0 {
            self.key = None;
            return Ok(());
        }
        self.begin_value()?;
        self.inner.scalar(scalar)
    }

    fn close(&mut self) -> Result<()> {
        self.lists = self.lists.saturating_sub(1);
        self.inner.close()
    }

    fn meta(&mut self, name: &str, value: &str) -> Result<()> {
        self.inner.meta(name, value)
    }
}
