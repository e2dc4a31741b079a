//! The schemas of a state, compiled once for as long as they stay the same.

use std::collections::HashMap;
use std::sync::Arc;

use spinney_core::view::{Slot, View};
use spinney_core::{Error, Map, Path, Result, Value};
use spinney_schema::{Documents, Options, Schema};

use super::{NAME, Place, TREE};
use crate::datastores::{Datastore, finding_operational};
use crate::layers::{Finding, StackId, finding_kept};
use crate::tree_cache::{TreeCache, value_at};

/// A compiled schema and where it belongs.
pub struct Attached {
    /// Its key in the tree of schemas, which its index has, too.
    pub id: u64,
    /// What it judges.
    pub place: Place,
    /// How the layers of that are found, when it is of a stack.
    pub stack: Option<Finding>,
    pub schema: Schema,
}

/// The schemas that were used last.
pub type Cache = TreeCache<Vec<Attached>>;

impl Cache {
    /// The schemas of a committed state with this root.
    pub fn of<'s>(&self, view: &View<'s>, root: &Slot<'s>) -> Result<Arc<Vec<Attached>>> {
        self.at(view, root, NAME, read)
    }
}

/// The tree of schemas of a state; `None` when there is none.
pub fn entries(view: &View<'_>) -> Result<Option<Value>> {
    value_at(view, TREE)
}

/// The tree of schemas of a state, for a file that has it beside a document: paths begin at `base`.
pub fn carry(view: &View<'_>, base: &str) -> Result<Option<Value>> {
    let below = |place: &str| place.strip_prefix(base).map(str::to_owned);
    entries(view)?
        .filter(|entries| !is_empty(entries))
        .map(|entries| moved(entries, below))
        .transpose()
}

/// The tree of schemas that such a file has.
#[cfg(feature = "json")]
pub fn carried(schemas: Option<&Value>, base: &str) -> Result<Option<Value>> {
    let above = |path: &str| Some([base, path].concat());
    schemas.map(|schemas| moved(schemas.clone(), above)).transpose()
}

fn is_empty(entries: &Value) -> bool {
    matches!(entries, Value::Map(entries) if entries.is_empty())
}

/// The entries with other paths.
fn moved(entries: Value, path: impl Fn(&str) -> Option<String>) -> Result<Value> {
    let Value::Map(entries) = entries else { return Err(malformed(TREE)) };
    let mut all = Map::new();
    for (key, entry) in entries.iter() {
        let Value::Map(members) = entry else { return Err(malformed(TREE)) };
        let mut members = members.clone();
        let place = entry.pointer("/path").and_then(Value::as_str).and_then(&path);
        members.insert("path", place.ok_or_else(|| malformed(&format!("{TREE}/{key}")))?);
        all.insert(&key, members);
    }
    Ok(all.into())
}

/// Reads and compiles the schemas of a state.
///
/// # Errors
/// `InvalidInput` and `Unsupported` as compiling has them; those of reading.
pub fn read(view: &View<'_>) -> Result<Vec<Attached>> {
    let Some(entries) = entries(view)? else { return Ok(Vec::new()) };
    let Value::Map(entries) = &entries else { return Err(malformed(TREE)) };
    let mut attached: Vec<Attached> = Vec::new();
    let mut places: HashMap<Place, u64> = HashMap::new();
    for (key, entry) in entries.iter() {
        let place = format!("{TREE}/{key}");
        let (id, judged, schema) = parts(&key, entry).ok_or_else(|| malformed(&place))?;
        judged.check().map_err(|error| error.at(&place))?;
        if let Some(other) = places.insert(judged.clone(), id) {
            return Err(Error::invalid_input(format!(
                "`{TREE}/{other}` and `{place}` are of one path"
            )));
        }
        let stack = match &judged.stack {
            None | Some(StackId::Fixed(_)) => None,
            Some(StackId::Kept(name)) => Some(finding_kept(name)),
            Some(StackId::Datastore(_)) => Some(finding_operational()),
        };
        let assert_formats = match entry.pointer("/formats") {
            None => None,
            Some(Value::Bool(assert_formats)) => Some(*assert_formats),
            Some(_) => return Err(malformed(&place)),
        };
        let options = Options { assert_formats, ..Options::default() };
        let schema = Schema::compile(schema, &Documents::new(), options)?;
        attached.push(Attached { id, place: judged, stack, schema });
    }
    Ok(attached)
}

fn parts<'e>(key: &str, entry: &'e Value) -> Option<(u64, Place, &'e Value)> {
    Some((key.parse().ok()?, place_of(entry)?, entry.pointer("/schema")?))
}

/// What the schema of an entry judges; `None` when the entry does not say so.
pub fn place_of(entry: &Value) -> Option<Place> {
    let path = Path::parse(entry.pointer("/path")?.as_str()?).ok()?;
    let name = |member: &str| match entry.pointer(member) {
        None => Some(None),
        Some(name) => name.as_str().map(|name| Some(name.to_owned())),
    };
    let stack = match (name("/stack")?, name("/datastore")?) {
        (None, None) => None,
        (Some(name), None) => Some(StackId::Kept(name)),
        // All others are trees.
        (None, Some(name)) if name == Datastore::Operational.name() => {
            Some(StackId::Datastore(name))
        }
        _ => return None,
    };
    Some(Place { stack, path })
}

fn malformed(place: &str) -> Error {
    Error::invalid_input(format!(
        "`{place}` is not a schema with its path as `schema set` writes it; attach schemas with that"
    ))
}
