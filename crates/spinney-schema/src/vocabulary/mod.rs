//! spinney's own keywords: what a value elsewhere, or a sibling, has to do with this one.
//!
//! `x-spinney-reference` says that a value exists as a key or a value elsewhere, `x-spinney-unique`
//! that members differ in some fields. Both are judged by an index of [`entries`] that follows each
//! change; this module says what an index holds and never where it lies.

mod entries;
mod judge;
mod keys;
mod sites;
mod trail;

use spinney_core::error::{Error, Result};
use spinney_core::{Map, Value, path};

pub use entries::Entries;
pub use judge::ChangeContent;
pub(crate) use sites::{Known, SiteId, Sites, mark};

/// The keyword of references.
pub(crate) const REFERENCE: &str = "x-spinney-reference";
/// The keyword of members that differ.
pub(crate) const UNIQUE: &str = "x-spinney-unique";

/// What the names of all of them begin with.
const PREFIX: &str = "x-spinney-";

/// The index of a constraint in its schema.
pub(crate) type ConstraintId = usize;

/// What one of spinney's keywords asks for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Constraint {
    /// Where the keyword stands.
    pub location: String,
    pub rule: Rule,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Rule {
    /// The value exists elsewhere.
    Reference(Target),
    /// No two members have the same values in all of these fields, each a path below a member.
    Unique(Vec<Vec<String>>),
}

/// What references lead to.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Target {
    /// From the node that the schema is attached to.
    pub way: Vec<Segment>,
    /// Whether the keys at the end of the way are meant, or the values.
    pub keys: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Segment {
    /// One member.
    Key(String),
    /// Each member or element, written `*`.
    Any,
}

impl Segment {
    fn matches_key(&self, key: &str) -> bool {
        match self {
            Segment::Key(wanted) => wanted == key,
            Segment::Any => true,
        }
    }
}

impl Target {
    /// The way as it was written.
    pub fn text(&self) -> String {
        let mut text = path::Path::root();
        for segment in &self.way {
            match segment {
                Segment::Key(key) => text.push(key),
                Segment::Any => text.push("*"),
            }
        }
        (*text).to_owned()
    }
}

/// Reads spinney's keywords of one schema object.
///
/// # Errors
/// `InvalidInput` when one of them is malformed, or is none.
pub(crate) fn read(map: &Map, location: &str) -> Result<Vec<Constraint>> {
    for (keyword, _) in map.iter() {
        if keyword.starts_with(PREFIX) && ![REFERENCE, UNIQUE].contains(&&*keyword) {
            return Err(Error::invalid_input(format!(
                "`{keyword}` is no keyword; there are `{REFERENCE}` and `{UNIQUE}`"
            )));
        }
    }
    let mut constraints = Vec::new();
    let mut add = |keyword: &str, rule| {
        constraints.push(Constraint { location: format!("{location}/{keyword}"), rule });
    };
    if let Some(value) = map.get(REFERENCE) {
        add(REFERENCE, Rule::Reference(target(value).map_err(|error| error.at(REFERENCE))?));
    }
    if let Some(value) = map.get(UNIQUE) {
        let Value::List(lists) = value else { return Err(not_fields(value).at(UNIQUE)) };
        for fields in lists.iter() {
            add(UNIQUE, Rule::Unique(fields_of(fields).map_err(|error| error.at(UNIQUE))?));
        }
    }
    Ok(constraints)
}

fn target(value: &Value) -> Result<Target> {
    let bad = || {
        Error::invalid_input(
            "expected `{\"key\": PATH}` or `{\"value\": PATH}` with a path such as `/interfaces/*`",
        )
    };
    let Value::Map(map) = value else { return Err(bad()) };
    let (keys, text) = match (map.len(), map.get("key"), map.get("value")) {
        (1, Some(Value::String(text)), None) => (true, text),
        (1, None, Some(Value::String(text))) => (false, text),
        _ => return Err(bad()),
    };
    path::check(text)?;
    let way: Vec<Segment> = path::segments(text)
        .map(|segment| match &*segment {
            "*" => Segment::Any,
            key => Segment::Key(key.to_owned()),
        })
        .collect();
    if way.is_empty() {
        return Err(bad());
    }
    Ok(Target { way, keys })
}

fn fields_of(value: &Value) -> Result<Vec<Vec<String>>> {
    let Value::List(fields) = value else { return Err(not_fields(value)) };
    let field = |field: &Value| match field {
        Value::String(text) => {
            path::check(text)?;
            Ok(path::segments(text).map(|segment| segment.into_owned()).collect())
        }
        other => Err(not_fields(other)),
    };
    match fields.is_empty() {
        true => Err(not_fields(value)),
        false => fields.iter().map(field).collect(),
    }
}

fn not_fields(value: &Value) -> Error {
    Error::invalid_input(format!(
        "a {} is not what was expected: a list of lists of paths below a member, such as `[[\"/address\", \"/port\"]]`",
        value.kind()
    ))
}
