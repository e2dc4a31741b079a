//! Reading with the edits of a transaction laid over the state that it started from.

use crate::access::{Right, Veil};
use crate::compare::{Compared, Comparison, Relation};
use crate::edit::Body;
use crate::edit::read::{self, Found};
use crate::error::{Error, Result};
use crate::node::{self};
use crate::path::{self, Display};
use crate::value::{Value, ValueBuilder};
use crate::visit::{Container, Visitor};

use super::access::{Members, Seen};
use super::{Transaction, encoded_key};

impl Transaction<'_> {
    /// The node at a path of a user as its principal sees it, when the transaction is the one that reads
    /// it.
    fn found(&self, path: &str) -> Result<Option<(Found<'_>, Seen<'_>)>> {
        path::check(path)?;
        let whole = self.below_base(path);
        let found = || match self.found_at(&whole)? {
            Some(found) => Ok(self.shown(&whole, &found)?.map(|seen| (found, seen))),
            None => Ok(None),
        };
        found().map_err(|error: Error| error.at(Display(path)))
    }

    /// How much its principal sees of what is found at a checked path from the store's root; `None` for nothing.
    fn shown(&self, whole: &str, found: &Found<'_>) -> Result<Option<Seen<'_>>> {
        Ok(match self.veil_at(whole)? {
            Seen::Hidden => None,
            Seen::Part(permissions, standing) => {
                let is_map = || Ok(self.container_of(found)? == Some(Container::Map));
                standing.shows(is_map)?.then_some(Seen::Part(permissions, standing))
            }
            Seen::Whole => Some(Seen::Whole),
        })
    }

    fn found_at(&self, path: &str) -> Result<Option<Found<'_>>> {
        read::resolve(&self.edits, &self.pending.view(), path)
    }

    /// Whether there is a node at a checked path from the store's root.
    pub(super) fn exists_at(&self, path: &str) -> Result<bool> {
        Ok(self.found_at(path)?.is_some())
    }

    /// The value at a path, with the edits so far; `None` when there is none.
    ///
    /// # Errors
    /// `InvalidInput` for a malformed path, `Corrupted` for damage.
    pub fn get(&self, path: &str) -> Result<Option<Value>> {
        let mut builder = ValueBuilder::default();
        Ok(if self.visit(path, &mut builder)? { builder.finish() } else { None })
    }

    /// As [`Transaction::get`], as a type that [`crate::typed`] reads.
    ///
    /// # Errors
    /// As [`Transaction::get`]; `InvalidInput` when the value is not of that type.
    #[cfg(feature = "serde")]
    pub fn get_as<T: serde_core::de::DeserializeOwned>(&self, path: &str) -> Result<Option<T>> {
        let read = self.get(path)?.map(crate::typed::read).transpose();
        read.map_err(|error| error.at(Display(path)))
    }

    /// Drives a visitor over the node at a path; false when there is none.
    ///
    /// # Errors
    /// As [`Transaction::get`], and the visitor's.
    pub fn visit(&self, path: &str, visitor: &mut (impl Visitor + ?Sized)) -> Result<bool> {
        let this = self.reading(path)?;
        let Some((found, seen)) = this.found(path)? else { return Ok(false) };
        match seen {
            Seen::Part(permissions, standing) => {
                let mut veil = Veil::new(visitor, permissions, &standing);
                this.visit_found(Some(found), &mut veil)
            }
            Seen::Whole | Seen::Hidden => this.visit_found(Some(found), visitor),
        }
    }

    /// As [`Transaction::visit`], at a checked path from the store's root.
    pub(super) fn visit_at(
        &self,
        path: &str,
        visitor: &mut (impl Visitor + ?Sized),
    ) -> Result<bool> {
        self.visit_found(self.found_at(path)?, visitor)
    }

    fn visit_found(
        &self,
        found: Option<Found<'_>>,
        visitor: &mut (impl Visitor + ?Sized),
    ) -> Result<bool> {
        match found {
            None => Ok(false),
            Some(found) => {
                read::walk(&self.edits, &self.pending.view(), found, visitor)?;
                Ok(true)
            }
        }
    }

    /// Compares the node at a path, with the edits so far, with a value; metadata is not looked at.
    ///
    /// # Errors
    /// As [`Transaction::get`].
    ///
    /// # Complexity
    /// O(size of the value), and the members of containers that this transaction has opened.
    pub fn compare(&self, path: &str, value: &Value, relation: Relation) -> Result<Compared> {
        let mut comparison = Comparison::new(value, relation);
        let visited = self.visit(path, &mut comparison);
        comparison.outcome(visited)
    }

    /// Whether there is a node at a path.
    ///
    /// # Errors
    /// As [`Transaction::get`].
    pub fn exists(&self, path: &str) -> Result<bool> {
        Ok(self.reading(path)?.found(path)?.is_some())
    }

    /// Whether a tree has a name, or had it when the transaction began; for reviewers, whoever edits.
    ///
    /// # Errors
    /// `LimitExceeded` for a name that is too long; those of reading.
    pub fn knows_tree(&self, name: &str) -> Result<bool> {
        let key = encoded_key(name)?;
        let is_edited = match &self.edits.nodes[0].body {
            Body::Map(map) => map.edits.get(&key).is_some(),
            Body::List(_) => false,
        };
        Ok(is_edited || self.edits.stored_tree(&self.pending, &key)?.is_some())
    }

    /// Whether a tree may have a name that begins like this, or may have had it when the transaction began; a
    /// cheaper question than [`Transaction::knows_tree`] before several of it.
    ///
    /// # Errors
    /// As [`Transaction::knows_tree`].
    pub fn may_know_trees(&self, beginning: &str) -> Result<bool> {
        let beginning = encoded_key(beginning)?;
        let Body::Map(map) = &self.edits.nodes[0].body else { return Ok(false) };
        let mut edited = map.edits.iter_from(&beginning);
        Ok(edited.next().is_some_and(|(key, _)| key.starts_with(&beginning))
            || map.base.may_hold(&beginning)?)
    }

    /// What container stands at a path; `None` when there is none.
    ///
    /// # Errors
    /// As [`Transaction::get`].
    pub fn container(&self, path: &str) -> Result<Option<Container>> {
        let this = self.reading(path)?;
        match this.found(path)? {
            None => Ok(None),
            Some((found, _)) => this.container_of(&found),
        }
    }

    /// As [`Transaction::container`], at a checked path from the store's root.
    pub(super) fn container_at(&self, path: &str) -> Result<Option<Container>> {
        match self.found_at(path)? {
            None => Ok(None),
            Some(found) => self.container_of(&found),
        }
    }

    fn container_of(&self, found: &Found<'_>) -> Result<Option<Container>> {
        Ok(match found {
            Found::Open { node, .. } => Some(self.edits.nodes[*node].container()),
            Found::Stored(slot) => slot.read()?.node.container(),
        })
    }

    /// How many members the container at a path has; `None` when there is none or it is a scalar.
    ///
    /// # Errors
    /// As [`Transaction::get`].
    pub fn count(&self, path: &str) -> Result<Option<u64>> {
        let this = self.reading(path)?;
        let Some((found, seen)) = this.found(path)? else { return Ok(None) };
        if let Seen::Part(permissions, standing) = &seen {
            let is_container = this.container_of(&found)?.is_some();
            let mut members = Members::default();
            let mut veil = Veil::new(&mut members, permissions, standing);
            this.visit_found(Some(found), &mut veil)?;
            return Ok(is_container.then_some(members.count));
        }
        read::count(&this.edits, &this.pending.view(), &found)
            .map_err(|error| error.at(Display(path)))
    }

    /// The metadata of a node, in the order of the names; `None` when there is no node.
    ///
    /// # Errors
    /// As [`Transaction::get`].
    pub fn meta(&self, path: &str) -> Result<Option<Vec<(String, String)>>> {
        let this = self.reading(path)?;
        let Some((found, seen)) = this.found(path)? else { return Ok(None) };
        let entries = this.meta_of(&found, &seen)?;
        let entries = entries.map(|entry| entry.map(|(n, v)| (n.to_owned(), v.to_owned())));
        entries.collect::<Option<_>>().map(Some).ok_or_else(meta_damaged)
    }

    /// What stands on the way to a path: of the node at its first `from` bytes and of each after it down to
    /// the path's own, what container it is, if it is one, and its metadata of one name. It ends where there is
    /// no node.
    ///
    /// # Errors
    /// As [`Transaction::get`].
    ///
    /// # Complexity
    /// That of the path.
    pub fn way(
        &self,
        path: &str,
        from: usize,
        name: &str,
    ) -> Result<Vec<(Option<Container>, Option<String>)>> {
        let this = self.reading(path)?;
        path::check(path)?;
        let whole = this.below_base(path);
        let mut end = whole.len() - path.len() + from;
        let mut parts = path::parts(&whole[end..]);
        let mut way = Vec::new();
        let mut walk = || -> Result<()> {
            let mut next = this.found_at(&whole[..end])?;
            while let Some(found) = next {
                let Some(seen) = this.shown(&whole[..end], &found)? else { break };
                let meta = this.meta_named(&found, &seen, name)?.map(str::to_owned);
                way.push((this.container_of(&found)?, meta));
                let Some(part) = parts.next() else { break };
                end += 1 + part.len();
                let segment = path::unescape(part);
                next = read::member(&this.edits, &this.pending.view(), &found, &segment)?;
            }
            Ok(())
        };
        walk().map_err(|error| error.at(Display(path)))?;
        Ok(way)
    }

    fn meta_named<'f>(
        &self,
        found: &'f Found<'_>,
        seen: &Seen<'_>,
        name: &str,
    ) -> Result<Option<&'f str>> {
        for entry in self.meta_of(found, seen)? {
            let (entry_name, value) = entry.ok_or_else(meta_damaged)?;
            if entry_name == name {
                return Ok(Some(value));
            }
        }
        Ok(None)
    }

    /// The metadata that a principal sees of a node.
    fn meta_of<'f>(
        &self,
        found: &'f Found<'_>,
        seen: &Seen<'_>,
    ) -> Result<impl Iterator<Item = Option<(&'f str, &'f str)>>> {
        let meta = match (seen, found) {
            (Seen::Part(_, standing), _) if !standing.may(Right::Read) => &[][..],
            (_, Found::Open { meta, .. }) => *meta,
            (_, Found::Stored(slot)) => slot.read()?.meta,
        };
        Ok(node::meta_entries(meta))
    }
}

fn meta_damaged() -> Error {
    Error::corrupted("stored metadata does not read")
}
