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
use crate::store::{Committed, Store};

pub(crate) use attached::{Cache, carried, carry};
pub(crate) use carried::{Carried, attach, carried_by};
pub(crate) use guard::Guard;

/// The tree that holds the schemas of a store, each under its id: `path`, `schema` and, unless the
/// draft decides, `formats`.
pub const TREE: &str = "/.schemas";

/// The name of [`TREE`].
pub(crate) const NAME: &str = ".schemas";

/// How a schema is attached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SchemaOptions {
    /// Whether `format` asserts; without a word it does up to draft 7.
    pub assert_formats: Option<bool>,
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
        let this = self.holding_or_new(path)?.unrestricted();
        let path = &*place;
        let attach = |transaction: &mut Transaction<'_>| {
            let old = entry_at(transaction.get(TREE)?.as_ref(), path);
            if let Some(old) = old {
                transaction.remove(&old)?;
            }
            let id = carried::next_id(transaction)?;
            let mut entry = Map::new();
            entry.insert("path", path);
            entry.insert("schema", schema.clone());
            if let Some(assert_formats) = options.assert_formats {
                entry.insert("formats", assert_formats);
            }
            transaction.set(&format!("{TREE}/{id}"), &Value::Map(entry))
        };
        this.write(|transaction| transaction.at_root(attach))
            .map_err(|error| error.at(format_args!("schema set {}", self.shown(path))))
    }

    /// Takes the schema of a path away.
    ///
    /// # Errors
    /// `NotFound` when there is none; those of [`Store::write`].
    pub fn remove_schema(&self, path: &str) -> Result<Committed<()>> {
        let place = self.schema_place(path)?;
        let remove = |transaction: &mut Transaction<'_>| match entry_at(
            transaction.get(TREE)?.as_ref(),
            &place,
        ) {
            Some(entry) => transaction.remove(&entry).map(drop),
            None => Err(no_schema(path)),
        };
        self.require(path, Right::Admin)?;
        self.holding(path)?
            .unrestricted()
            .write(|transaction| transaction.at_root(remove))
            .map_err(|error| error.at(format_args!("schema remove {}", path::Display(path))))
    }

    /// The paths that have a schema, with it, in the order in which they were attached; those that may be
    /// read with everything below them.
    ///
    /// # Errors
    /// Those of [`Store::read`].
    pub fn schemas(&self) -> Result<Vec<(Path, Value)>> {
        if let Some(forest) = self.forest() {
            let all: Result<Vec<_>> =
                forest.all()?.iter().map(|(_, tree)| tree.schemas()).collect();
            return Ok(all?.into_iter().flatten().collect());
        }
        let snapshot = self.read()?;
        let entries = attached::entries(&snapshot.view())?;
        let Some(Value::Map(entries)) = &entries else { return Ok(Vec::new()) };
        let read = |entry: &Value| {
            let place = entry.pointer("/path")?.as_str()?;
            let path = Path::parse(place.strip_prefix(self.base_path())?).ok()?;
            let is_told = snapshot.permits(&path, Right::Read).is_ok_and(|is_told| is_told);
            is_told.then_some((path, entry.pointer("/schema")?.clone()))
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
        let snapshot = self.holding(path)?.read()?;
        guard::check(&snapshot.view(), &place)?.ok_or_else(|| no_schema(path))
    }

    /// What each keyword of a path's schema looks at when something changes.
    ///
    /// # Errors
    /// `NotFound` when it has none.
    pub fn explain_schema(&self, path: &str) -> Result<Vec<Explained>> {
        let place = self.schema_place(path)?;
        self.require(path, Right::Read)?;
        let snapshot = self.holding(path)?.read()?;
        let attached = attached::read(&snapshot.view())?;
        let found = attached.iter().find(|attached| attached.path == place);
        found.map(|attached| attached.schema.explain()).ok_or_else(|| no_schema(path))
    }

    /// A user's path as one from the store's root, when there may be a schema.
    fn schema_place(&self, path: &str) -> Result<Path> {
        path::check(path)?;
        let place = [self.base_path(), path].concat();
        check_path(&place)?;
        Path::parse(&place)
    }

    fn shown<'p>(&self, place: &'p str) -> path::Display<'p> {
        path::Display(place.strip_prefix(self.base_path()).unwrap_or(place))
    }
}

/// The schemas themselves, and the root with them, cannot have one.
fn check_path(path: &str) -> Result<()> {
    path::check(path)?;
    if path.is_empty() || path == TREE || path.starts_with(&format!("{TREE}/")) {
        return Err(Error::invalid_input(format!(
            "{} cannot have a schema; attach it to a tree or below, such as `/people`",
            path::Display(path)
        )));
    }
    Ok(())
}

/// Where the schema of a path is.
fn entry_at(entries: Option<&Value>, path: &str) -> Option<String> {
    let Some(Value::Map(entries)) = entries else { return None };
    let is_of = |entry: &Value| entry.pointer("/path").and_then(Value::as_str) == Some(path);
    let found = entries.iter().find(|(_, entry)| is_of(entry));
    found.map(|(id, _)| format!("{TREE}/{id}"))
}

fn no_schema(path: &str) -> Error {
    Error::new(ErrorKind::NotFound, format!("{} has no schema", path::Display(path)))
}
