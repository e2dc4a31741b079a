//! The model of the suite over a document in memory: whether it is valid, and how many nodes it has.

use std::collections::HashSet;

use serde_json::{Map, Value};
use spinney_core::{Error, Result};

/// Judges the whole document: types, required and unknown members, and keys that are unique.
///
/// # Errors
/// `Invalid` saying where.
pub fn judge(root: &Value) -> Result<()> {
    let root = members(root, &["cont"], "the document")?;
    let Some(cont) = root.get("cont") else { return Ok(()) };
    let cont = members(cont, &["lst", "usr-lst"], "`/cont`")?;
    if let Some(list) = cont.get("lst") {
        let list = list.as_object().ok_or_else(|| invalid("`/cont/lst` is no object"))?;
        for (key, item) in list {
            let item = members(item, &["k1", "k2", "l"], key)?;
            let k1 = number(item.get("k1")).ok_or_else(|| invalid(key))?;
            let k2 = item.get("k2").and_then(Value::as_str).ok_or_else(|| invalid(key))?;
            let is_key = key.strip_suffix(k2).and_then(|rest| rest.strip_suffix(','));
            if is_key.and_then(|text| text.parse().ok()) != Some(k1) || !is_leaf(item) {
                return Err(invalid(key));
            }
        }
    }
    if let Some(list) = cont.get("usr-lst") {
        let list = list.as_array().ok_or_else(|| invalid("`/cont/usr-lst` is no array"))?;
        let mut known = HashSet::with_capacity(list.len());
        for entry in list {
            let entry = members(entry, &["k", "l"], "an entry")?;
            let k = number(entry.get("k")).ok_or_else(|| invalid("an entry"))?;
            if !known.insert(k) || !is_leaf(entry) {
                return Err(invalid(&format!("entry {k}")));
            }
        }
    }
    Ok(())
}

/// Nodes as sysrepo counts them: an entry of a list is one, the list itself is none.
pub fn nodes(value: &Value) -> u64 {
    match value {
        Value::Object(members) => {
            1 + members.iter().map(|(key, value)| below(key, value)).sum::<u64>()
        }
        Value::Array(elements) => 1 + elements.iter().map(nodes).sum::<u64>(),
        _ => 1,
    }
}

/// The nodes of a member.
pub fn below(key: &str, value: &Value) -> u64 {
    nodes(value) - u64::from(matches!(key, "lst" | "usr-lst"))
}

fn members<'a>(value: &'a Value, known: &[&str], place: &str) -> Result<&'a Map<String, Value>> {
    let members = value.as_object().ok_or_else(|| invalid(place))?;
    match members.keys().all(|key| known.contains(&&**key)) {
        true => Ok(members),
        false => Err(invalid(place)),
    }
}

fn number(value: Option<&Value>) -> Option<u32> {
    u32::try_from(value?.as_u64()?).ok()
}

fn is_leaf(item: &Map<String, Value>) -> bool {
    item.get("l").is_none_or(Value::is_string)
}

#[cold]
fn invalid(place: &str) -> Error {
    Error::invalid_input(format!("the model does not allow {place}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_the_model_does_not_allow_is_refused() {
        let item = json!({ "k1": 0, "k2": "str0", "l": "l0" });
        let good = json!({ "cont": { "lst": { "0,str0": item }, "usr-lst": [{ "k": 1 }] } });
        judge(&good).expect("it is valid");
        assert_eq!(nodes(&good["cont"]), 7);
        for (place, bad) in [
            ("/cont/lst/0,str0/k1", json!("0")),
            ("/cont/lst/0,str0/k1", json!(1)),
            ("/cont/lst/0,str0/l", json!(1)),
            ("/cont/usr-lst", json!([{ "k": 1 }, { "k": 1 }])),
            ("/cont/usr-lst/0", json!({ "k": 1, "m": 1 })),
            ("/cont/lst/0,str0", json!({ "k1": 0 })),
            ("/cont", json!({ "other": 1 })),
        ] {
            let mut document = good.clone();
            *document.pointer_mut(place).expect("it is there") = bad;
            judge(&document).expect_err(place);
        }
    }
}
