//! Schemas that are attached to paths: a commit that would break one is refused.
//!
//! They are data, in the tree [`TREE`]: a commit attaches or removes them, so they have a history,
//! other processes see them, and a snapshot has those of its state. `attached` reads them, `guard`
//! judges commits. What a schema means is the business of `spinney-schema`.

mod attached;
mod guard;

use spinney_core::{Error, ErrorKind, Map, Path, Result, Value, path};
pub use spinney_schema::{Cost, Explained, Report, Violation};

use crate::store::{Committed, Store};

pub(crate) use attached::Cache;
pub(crate) use guard::Guard;

/// The tree that holds the schemas of a store, each under its id: `path`, `schema` and, unless the
/// draft decides, `formats`.
pub const TREE: &str = "/.schemas";

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
    /// `Unsupported` in a `json:` file. Those of [`Store::write`].
    ///
    /// # Complexity
    /// That of what is at the path.
    pub fn set_schema(
        &self,
        path: &str,
        schema: &Value,
        options: SchemaOptions,
    ) -> Result<Committed<()>> {
        self.can_hold_schemas()?;
        check_path(path)?;
        self.write(|transaction| {
            let old = entry_at(transaction.get(TREE)?.as_ref(), path);
            if let Some(old) = old {
                transaction.remove(&old)?;
            }
            // Nothing else has this revision, so ids never come again.
            let id = transaction.base() + 1;
            let mut entry = Map::new();
            entry.insert("path", path);
            entry.insert("schema", schema.clone());
            if let Some(assert_formats) = options.assert_formats {
                entry.insert("formats", assert_formats);
            }
            transaction.set(&format!("{TREE}/{id}"), &Value::Map(entry))
        })
        .map_err(|error| error.at(format_args!("schema set {}", path::Display(path))))
    }

    /// Takes the schema of a path away.
    ///
    /// # Errors
    /// `NotFound` when there is none; those of [`Store::write`].
    pub fn remove_schema(&self, path: &str) -> Result<Committed<()>> {
        check_path(path)?;
        self.write(|transaction| match entry_at(transaction.get(TREE)?.as_ref(), path) {
            Some(entry) => transaction.remove(&entry).map(drop),
            None => Err(no_schema(path)),
        })
        .map_err(|error| error.at(format_args!("schema remove {}", path::Display(path))))
    }

    /// The paths that have a schema, with it, in the order in which they were attached.
    ///
    /// # Errors
    /// Those of [`Store::read`].
    pub fn schemas(&self) -> Result<Vec<(Path, Value)>> {
        let entries = self.read()?.get(TREE)?;
        let Some(Value::Map(entries)) = &entries else { return Ok(Vec::new()) };
        let read = |entry: &Value| {
            let path = Path::parse(entry.pointer("/path")?.as_str()?).ok()?;
            Some((path, entry.pointer("/schema")?.clone()))
        };
        Ok(entries.iter().filter_map(|(_, entry)| read(entry)).collect())
    }

    /// Judges all of what is at a path by its schema: nothing but what is wrong with the schema's
    /// index or the store itself can make it invalid.
    ///
    /// # Errors
    /// `NotFound` when it has none; those of reading.
    pub fn check_schema(&self, path: &str) -> Result<Report> {
        check_path(path)?;
        let snapshot = self.read()?;
        guard::check(&snapshot.view(), path)?.ok_or_else(|| no_schema(path))
    }

    /// What each keyword of a path's schema looks at when something changes.
    ///
    /// # Errors
    /// `NotFound` when it has none.
    pub fn explain_schema(&self, path: &str) -> Result<Vec<Explained>> {
        check_path(path)?;
        let snapshot = self.read()?;
        let attached = attached::read(&snapshot.view())?;
        let found = attached.iter().find(|attached| *attached.path == *path);
        found.map(|attached| attached.schema.explain()).ok_or_else(|| no_schema(path))
    }

    fn can_hold_schemas(&self) -> Result<()> {
        match self.base_path().is_empty() {
            true => Ok(()),
            false => Err(Error::unsupported(
                "a `json:` file has no place for schemas; import it into a store such as `lmdb:DIR`",
            )),
        }
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
