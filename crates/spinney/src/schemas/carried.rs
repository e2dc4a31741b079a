//! Schemas on their way to another store. Their paths are those of users on the way, wherever the two
//! stores keep them.

use spinney_core::view::View;
use spinney_core::{Map, Path, Result, Value};

use super::{TREE, attached};
use crate::Transaction;
use crate::snapshot::Snapshot;

/// A schema with its path and options, and the id that it has where it comes from.
pub type Carried = (String, Map);

/// The schemas of a state; of trees that are kept apart, those of all.
pub fn carried_by(state: &Snapshot) -> Result<Vec<Carried>> {
    let mut entries = Vec::new();
    if state.apart("").is_none() {
        add(&state.view(), state.base_path(), &mut entries)?;
        return Ok(entries);
    }
    for tree in state.list("", None, None)?.unwrap_or_default() {
        if let Some(tree) = state.holder(&Path::root().child(&tree.segment))? {
            add(&tree.view(), "", &mut entries)?;
        }
    }
    Ok(entries)
}

fn add(view: &View<'_>, base: &str, entries: &mut Vec<Carried>) -> Result<()> {
    let Some(Value::Map(found)) = attached::carry(view, base)? else { return Ok(()) };
    entries.extend(found.iter().filter_map(|(id, entry)| match entry {
        Value::Map(entry) => Some((id.to_string(), entry.clone())),
        _ => None,
    }));
    Ok(())
}

/// Attaches those that are at a path or below it, in a store whose users' paths begin at `base`, under the
/// ids that they have where these are free.
pub fn attach(
    transaction: &mut Transaction<'_>,
    base: &str,
    path: &str,
    entries: &[Carried],
) -> Result<()> {
    for (id, entry) in entries {
        let place = entry.get("path").and_then(Value::as_str).unwrap_or_default();
        let mut moved = entry.clone();
        if is_of_layers(entry) {
            // Its path begins where the layers do, wherever they lie.
            if !path.is_empty() {
                continue;
            }
        } else {
            let below = place.strip_prefix(path);
            if !below.is_some_and(|below| below.is_empty() || below.starts_with('/')) {
                continue;
            }
            moved.insert("path", [base, place].concat().as_str());
        }
        transaction.at_root(|transaction| {
            let mut place = format!("{TREE}/{id}");
            if transaction.exists(&place)? {
                place = format!("{TREE}/{}", next_id(transaction)?);
            }
            transaction.set(&place, &Value::Map(moved))
        })?;
    }
    Ok(())
}

/// Whether a schema judges layers that are read as one.
pub fn is_of_layers(entry: &Map) -> bool {
    entry.get("stack").is_some() || entry.get("datastore").is_some()
}

/// The id of a schema that is attached next.
pub fn next_id(transaction: &Transaction<'_>) -> Result<u64> {
    // Nothing else has this revision, so ids do not come again; but a copy has many of one.
    let own = transaction.base() + 1;
    let Some(Value::Map(entries)) = transaction.get(TREE)? else { return Ok(own) };
    let last = entries.iter().filter_map(|(id, _)| id.parse::<u64>().ok()).max();
    Ok(last.map_or(own, |last| own.max(last + 1)))
}
