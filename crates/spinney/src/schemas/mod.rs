//! Schemas that are attached to paths: a commit that would break one is refused.
//!
//! They are data, in the tree [`TREE`]: a commit attaches or removes them, so they have a history,
//! other processes see them, and a snapshot has those of its state. `attached` reads them, `guard`
//! judges commits. What a schema means is the business of `spinney-schema`.

mod attached;
mod carried;
mod guard;

use spinney_core::{Error, ErrorKind, Map, Path, Result, Value, path};
pub use spinney_schema::{Cost, Explained, Report, Violation};

use crate::Transaction;
use crate::access::Right;
use crate::layers::{Stack, StackId};
use crate::store::{Committed, Store};

pub(crate) use attached::Cache;
#[cfg(feature = "json")]
pub(crate) use attached::{carried, carry};
pub(crate) use carried::{Carried, attach, carried_by, is_of_layers};
pub(crate) use guard::Guard;

/// The tree that holds the schemas of a store, each under its id: `path`, `schema`, for a path of layers read as
/// one `stack` or `datastore` and, unless the draft decides, `formats`.
pub const TREE: &str = "/.schemas";

/// The name of [`TREE`].
pub(crate) const NAME: &str = ".schemas";

/// How a schema is attached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SchemaOptions {
    /// Whether `format` asserts; without a word it does up to draft 7.
    pub assert_formats: Option<bool>,
}

/// A schema that is attached.
#[derive(Clone, Debug, PartialEq)]
pub struct SchemaEntry {
    /// The stack that the path is in; without one, it is in the store.
    pub stack: Option<StackId>,
    /// What it judges.
    pub path: Path,
    /// The schema.
    pub schema: Value,
}

impl Store {
    /// Attaches a schema to a path, in place of one that is there. From then on every commit must
    /// leave what is at the path valid; nothing need be there.
    ///
    /// # Errors
    /// `Invalid` listing what does not fit, when what is stored does not; `InvalidInput` for what is
    /// no schema, and `Unsupported` for what it uses and spinney does not: both say where.
    /// Those of [`Store::write`].
    ///
    /// # Complexity
    /// That of what is at the path.
    pub fn set_schema(
        &self,
        path: &str,
        schema: &Value,
        options: SchemaOptions,
    ) -> Result<Committed<()>> {
        let place = self.schema_place(path)?;
        self.require(path, Right::Admin)?;
        self.holding_or_new(path)?.attach(&place, schema, options)
    }

    /// Takes the schema of a path away.
    ///
    /// # Errors
    /// `NotFound` when there is none; those of [`Store::write`].
    pub fn remove_schema(&self, path: &str) -> Result<Committed<()>> {
        let place = self.schema_place(path)?;
        self.require(path, Right::Admin)?;
        self.holding(path)?.detach(&place)
    }

    fn attach(
        &self,
        place: &Place,
        schema: &Value,
        options: SchemaOptions,
    ) -> Result<Committed<()>> {
        let attach = |transaction: &mut Transaction<'_>| {
            let old = entry_at(transaction.get(TREE)?.as_ref(), place);
            if let Some(old) = old {
                transaction.remove(&old)?;
            }
            let id = carried::next_id(transaction)?;
            let mut entry = Map::new();
            entry.insert("path", &*place.path);
            match &place.stack {
                Some(StackId::Kept(name)) => drop(entry.insert("stack", &**name)),
                Some(StackId::Datastore(name)) => drop(entry.insert("datastore", &**name)),
                Some(StackId::Fixed(_)) | None => {}
            }
            entry.insert("schema", schema.clone());
            if let Some(assert_formats) = options.assert_formats {
                entry.insert("formats", assert_formats);
            }
            transaction.set(&format!("{TREE}/{id}"), &Value::Map(entry))
        };
        self.unrestricted()
            .write(|transaction| transaction.at_root(attach))
            .map_err(|error| error.at(format_args!("schema set {}", place.shown(self.base_path()))))
    }

    fn detach(&self, place: &Place) -> Result<Committed<()>> {
        let remove = |transaction: &mut Transaction<'_>| match entry_at(
            transaction.get(TREE)?.as_ref(),
            place,
        ) {
            Some(entry) => transaction.remove(&entry).map(drop),
            None => Err(no_schema(&place.shown(self.base_path()))),
        };
        self.unrestricted().write(|transaction| transaction.at_root(remove)).map_err(|error| {
            error.at(format_args!("schema remove {}", place.shown(self.base_path())))
        })
    }

    /// The schemas, in the order in which they were attached: those of what may be read with everything below it;
    /// those of stacks are for who may read all.
    ///
    /// # Errors
    /// Those of [`Store::read`].
    pub fn schemas(&self) -> Result<Vec<SchemaEntry>> {
        if let Some(forest) = self.forest() {
            let all: Result<Vec<_>> =
                forest.all()?.iter().map(|(_, tree)| tree.schemas()).collect();
            return Ok(all?.into_iter().flatten().collect());
        }
        let snapshot = self.read()?;
        let entries = attached::entries(&snapshot.view())?;
        let Some(Value::Map(entries)) = &entries else { return Ok(Vec::new()) };
        let read = |entry: &Value| {
            let Place { stack, path } = attached::place_of(entry)?;
            let path = match stack {
                Some(_) => path,
                None => Path::parse(path.strip_prefix(self.base_path())?).ok()?,
            };
            let read_of = if stack.is_some() { "" } else { &*path };
            let is_told = snapshot.permits(read_of, Right::Read).is_ok_and(|is_told| is_told);
            let schema = entry.pointer("/schema")?.clone();
            is_told.then_some(SchemaEntry { stack, path, schema })
        };
        Ok(entries.iter().filter_map(|(_, entry)| read(entry)).collect())
    }

    /// Judges all of what is at a path by its schema: nothing but what is wrong with the schema's
    /// index or the store itself can make it invalid.
    ///
    /// # Errors
    /// `NotFound` when it has none; those of reading.
    pub fn check_schema(&self, path: &str) -> Result<Report> {
        let place = self.schema_place(path)?;
        self.require(path, Right::Read)?;
        self.holding(path)?.check(&place)
    }

    /// What each keyword of a path's schema looks at when something changes.
    ///
    /// # Errors
    /// `NotFound` when it has none.
    pub fn explain_schema(&self, path: &str) -> Result<Vec<Explained>> {
        let place = self.schema_place(path)?;
        self.require(path, Right::Read)?;
        self.holding(path)?.explain(&place)
    }

    fn check(&self, place: &Place) -> Result<Report> {
        let snapshot = self.read()?;
        guard::check(&snapshot.view(), place, self.base_path())?
            .ok_or_else(|| no_schema(&place.shown(self.base_path())))
    }

    fn explain(&self, place: &Place) -> Result<Vec<Explained>> {
        let snapshot = self.read()?;
        let attached = attached::read(&snapshot.view())?;
        let found = attached.iter().find(|attached| attached.place == *place);
        found
            .map(|attached| attached.schema.explain())
            .ok_or_else(|| no_schema(&place.shown(self.base_path())))
    }

    /// A user's path as one from the store's root, when there may be a schema.
    fn schema_place(&self, path: &str) -> Result<Place> {
        path::check(path)?;
        let path = Path::parse(&[self.base_path(), path].concat())?;
        let place = Place { stack: None, path };
        place.check()?;
        Ok(place)
    }
}

impl Stack {
    /// Attaches a schema to a path of the tree that the layers are read as, in place of one that is there: from
    /// then on a commit to any of the layers, and one that changes which layers there are, must leave it
    /// valid. The store must know the stack: [`Store::stack`] and [`crate::datastores::Datastores::stack`] give such.
    ///
    /// State that ends with its owner is not refused, whatever it leaves; further commits are judged by what they
    /// change.
    ///
    /// # Errors
    /// `Unsupported` for layers in several stores, in the past, or put together by a program; as
    /// [`Store::set_schema`].
    ///
    /// # Complexity
    /// That of what is at the path.
    pub fn set_schema(
        &self,
        path: &str,
        schema: &Value,
        options: SchemaOptions,
    ) -> Result<Committed<()>> {
        match self.schema_place(path)? {
            (store, Place { stack: None, path }) => store.set_schema(&path, schema, options),
            (store, place) => {
                store.require("", Right::Admin)?;
                store.attach(&place, schema, options)
            }
        }
    }

    /// Takes the schema of a path away.
    ///
    /// # Errors
    /// As [`Store::remove_schema`].
    pub fn remove_schema(&self, path: &str) -> Result<Committed<()>> {
        match self.schema_place(path)? {
            (store, Place { stack: None, path }) => store.remove_schema(&path),
            (store, place) => {
                store.require("", Right::Admin)?;
                store.detach(&place)
            }
        }
    }

    /// Judges all of what is at a path by its schema.
    ///
    /// # Errors
    /// As [`Store::check_schema`].
    pub fn check_schema(&self, path: &str) -> Result<Report> {
        match self.schema_place(path)? {
            (store, Place { stack: None, path }) => store.check_schema(&path),
            (store, place) => {
                store.require("", Right::Read)?;
                store.check(&place)
            }
        }
    }

    /// What each keyword of a path's schema looks at when something changes.
    ///
    /// # Errors
    /// As [`Store::explain_schema`].
    pub fn explain_schema(&self, path: &str) -> Result<Vec<Explained>> {
        match self.schema_place(path)? {
            (store, Place { stack: None, path }) => store.explain_schema(&path),
            (store, place) => {
                store.require("", Right::Read)?;
                store.explain(&place)
            }
        }
    }

    /// Where a schema of it is: a layer that is alone is a tree as any.
    fn schema_place(&self, path: &str) -> Result<(Store, Place)> {
        let path = Path::parse(path)?;
        let following = self.following()?;
        let store = following.store().clone();
        let place = match following.finding().id() {
            StackId::Fixed(layers) => match &**layers {
                [(_, layer)] => {
                    let path = Path::parse(&[layer, &*path].concat())?;
                    Place { stack: None, path }
                }
                _ => {
                    return Err(Error::unsupported(
                        "a schema is of a path of the store or of a stack that the store keeps by name; make one \
                         with `stack set`",
                    ));
                }
            },
            known => Place { stack: Some(known.clone()), path },
        };
        Ok((store, place))
    }
}

/// What a schema judges: what is at a path of the store or, of a stack, of the tree that its layers are read as.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Place {
    pub stack: Option<StackId>,
    /// From the store's root, or from that of the stack.
    pub path: Path,
}

impl Place {
    /// The schemas themselves, and the root with them, cannot have one.
    fn check(&self) -> Result<()> {
        let path = &*self.path;
        let is_own = path.is_empty() || path == TREE || path.starts_with(&format!("{TREE}/"));
        if is_own && self.stack.is_none() {
            return Err(Error::invalid_input(format!(
                "{} cannot have a schema; attach it to a tree or below, such as `/people`",
                path::Display(path)
            )));
        }
        Ok(())
    }

    /// As users write it, whose paths begin at `base`.
    fn shown(&self, base: &str) -> String {
        match &self.stack {
            None => path::Display(self.path.strip_prefix(base).unwrap_or(&self.path)).to_string(),
            Some(stack) => format!("{} of {stack}", path::Display(&self.path)),
        }
    }
}

/// Refuses to forget a stack that has a schema, which could not be reached then.
///
/// # Errors
/// `Invalid` when it has one.
pub(crate) fn refuse_stack_with_schema(transaction: &Transaction<'_>, name: &str) -> Result<()> {
    let Some(Value::Map(entries)) = transaction.get(TREE)? else { return Ok(()) };
    let places = entries.iter().filter_map(|(_, entry)| attached::place_of(entry));
    let is_of = |place: &Place| matches!(&place.stack, Some(StackId::Kept(stack)) if stack == name);
    match places.into_iter().find(is_of) {
        None => Ok(()),
        Some(Place { path, .. }) => Err(Error::new(
            ErrorKind::Invalid,
            format!(
                "the stack `{name}` has a schema at {}; take that away first, with `schema remove`",
                path::Display(&path)
            ),
        )),
    }
}

/// Where the schema of a place is.
fn entry_at(entries: Option<&Value>, place: &Place) -> Option<String> {
    let Some(Value::Map(entries)) = entries else { return None };
    let is_of = |entry: &Value| attached::place_of(entry).as_ref() == Some(place);
    let found = entries.iter().find(|(_, entry)| is_of(entry));
    found.map(|(id, _)| format!("{TREE}/{id}"))
}

fn no_schema(shown: &str) -> Error {
    Error::new(ErrorKind::NotFound, format!("{shown} has no schema"))
}
