//! The schemas of a state, compiled once for as long as they stay the same.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use spinney_core::backend::Revision;
use spinney_core::layout::head_key;
use spinney_core::layout::head_revision;
use spinney_core::value::ValueBuilder;
use spinney_core::view::View;
use spinney_core::{Error, Path, Result, Value};
use spinney_schema::{Documents, Options, Schema};

use super::{TREE, check_path};

/// A compiled schema and where it belongs.
pub struct Attached {
    /// Its key in the tree of schemas, which its index has, too.
    pub id: u64,
    /// What it judges.
    pub path: Path,
    pub schema: Schema,
}

/// The schemas that were used last.
#[derive(Default)]
pub struct Cache {
    known: Mutex<Option<(Revision, Arc<Vec<Attached>>)>>,
}

impl Cache {
    /// The schemas of a committed state.
    pub fn at(&self, view: &View<'_>) -> Result<Arc<Vec<Attached>>> {
        let Some(slot) = view.resolve(TREE)? else { return Ok(Arc::default()) };
        let changed = head_revision(view.snapshot.get(&head_key(slot.tree))?.as_deref())?;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        match &*known {
            Some((revision, attached)) if *revision == changed => Ok(Arc::clone(attached)),
            _ => {
                let attached = Arc::new(read(view)?);
                *known = Some((changed, Arc::clone(&attached)));
                Ok(attached)
            }
        }
    }
}

/// Reads and compiles the schemas of a state.
///
/// # Errors
/// `InvalidInput` and `Unsupported` as compiling has them; those of reading.
pub fn read(view: &View<'_>) -> Result<Vec<Attached>> {
    let Some(slot) = view.resolve(TREE)? else { return Ok(Vec::new()) };
    let mut builder = ValueBuilder::default();
    view.walk(&slot, &mut builder)?;
    let entries = builder.finish().expect("a walk gives one value");
    let Value::Map(entries) = &entries else { return Err(malformed(TREE)) };
    let mut attached: Vec<Attached> = Vec::new();
    let mut paths: HashMap<Path, u64> = HashMap::new();
    for (key, entry) in entries.iter() {
        let place = format!("{TREE}/{key}");
        let (id, path, schema) = parts(&key, entry).ok_or_else(|| malformed(&place))?;
        check_path(&path).map_err(|error| error.at(&place))?;
        if let Some(other) = paths.insert(path.clone(), id) {
            return Err(Error::invalid_input(format!(
                "`{TREE}/{other}` and `{place}` are of one path"
            )));
        }
        let assert_formats = match entry.pointer("/formats") {
            None => None,
            Some(Value::Bool(assert_formats)) => Some(*assert_formats),
            Some(_) => return Err(malformed(&place)),
        };
        let options = Options { assert_formats, ..Options::default() };
        let schema = Schema::compile(schema, &Documents::new(), options)?;
        attached.push(Attached { id, path, schema });
    }
    Ok(attached)
}

fn parts<'e>(key: &str, entry: &'e Value) -> Option<(u64, Path, &'e Value)> {
    let path = Path::parse(entry.pointer("/path")?.as_str()?).ok()?;
    Some((key.parse().ok()?, path, entry.pointer("/schema")?))
}

fn malformed(place: &str) -> Error {
    Error::invalid_input(format!(
        "`{place}` is not a schema with its path as `schema set` writes it; attach schemas with that"
    ))
}
