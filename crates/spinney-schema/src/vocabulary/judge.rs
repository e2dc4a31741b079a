//! Whether an index that a change is laid over holds what spinney's keywords ask for.

use std::rc::Rc;

use spinney_core::Path;
use spinney_core::error::{Error, Result};
use spinney_core::varint;

use super::entries::{Count, Trail, constraint_of};
use super::{Entries, REFERENCE, Rule, UNIQUE};
use crate::report::{Report, VIOLATIONS_MAX, Violation};
use crate::schema::Schema;

/// A record of the index: its key, and its content unless it is removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// At most 160 bytes.
    pub key: Vec<u8>,
    /// `None` when nothing stands for the key any more.
    pub content: Option<Vec<u8>>,
}

/// What a change means for the constraints of a schema.
#[derive(Debug, Default)]
pub struct Judged {
    /// What does not hold.
    pub report: Report,
    /// The records that the index must take in when the change is made.
    pub records: Vec<Record>,
}

impl Entries {
    /// Lays the entries over the records that are stored and says whether the constraints hold.
    ///
    /// # Errors
    /// Those of `stored`; `Corrupted` when a record is not what was put.
    ///
    /// # Complexity
    /// One look-up for each changed key, in the order of keys.
    pub fn judge(
        &self,
        schema: &Schema,
        mut stored: impl FnMut(&[u8]) -> Result<Option<Vec<u8>>>,
    ) -> Result<Judged> {
        let mut judged = Judged::default();
        for (key, entry) in &self.by_key {
            let (users, targets) = decode(key, stored(key)?.as_deref())?;
            let users = total(key, users, &entry.users)?;
            let targets = total(key, targets, &entry.targets)?;
            let constraint = &schema.constraints[constraint_of(key)];
            let violation = match &constraint.rule {
                Rule::Reference(target) if users > 0 && targets == 0 => {
                    let what = if target.keys { "key" } else { "value" };
                    let way = target.text();
                    Some(match (&entry.users.added, &entry.targets.removed) {
                        (Some(added), _) => {
                            let expected = format!("a {what} that exists at `{way}`");
                            (added, REFERENCE, expected, entry.shown.clone())
                        }
                        (None, removed) => {
                            let removed = removed.as_ref().ok_or_else(|| damaged(key))?;
                            let expected = match users {
                                1 => format!("the {what} `{way}` that a node refers to"),
                                _ => format!("the {what} `{way}` that {users} nodes refer to"),
                            };
                            let found = format!("nothing that is {}", entry.shown);
                            (removed, REFERENCE, expected, found)
                        }
                    })
                }
                Rule::Unique(fields) if users > 1 => {
                    let added = entry.users.added.as_ref().ok_or_else(|| damaged(key))?;
                    let found = format!("{}, which another member has", entry.shown);
                    Some((added, UNIQUE, differing(fields), found))
                }
                _ => None,
            };
            if let Some((trail, keyword, expected, found)) = violation {
                judged.report.add(trail, keyword, &constraint.location, expected, found);
            }
            let content = (users > 0 || targets > 0).then(|| {
                let mut content = Vec::new();
                varint::write(users, &mut content);
                varint::write(targets, &mut content);
                content
            });
            judged.records.push(Record { key: key.clone(), content });
        }
        for (id, trail, shown) in &self.repeated {
            let constraint = &schema.constraints[*id];
            let Rule::Unique(fields) = &constraint.rule else { continue };
            let found = format!("{shown}, which another member has");
            judged.report.add(trail, UNIQUE, &constraint.location, differing(fields), found);
        }
        Ok(judged)
    }
}

fn differing(fields: &[Vec<String>]) -> String {
    let names = fields.iter().map(|field| {
        let mut path = Path::root();
        field.iter().for_each(|segment| path.push(segment));
        format!("`{}`", &*path)
    });
    format!("another {} than its siblings", names.collect::<Vec<_>>().join(" and "))
}

impl Report {
    fn add(
        &mut self,
        trail: &Rc<Trail>,
        keyword: &str,
        location: &str,
        expected: String,
        found: String,
    ) {
        if self.violations.len() >= VIOLATIONS_MAX {
            self.more += 1;
            return;
        }
        let mut way = Path::root();
        way.push(keyword);
        let location = location.to_owned();
        self.violations.push(Violation {
            instance: trail.path(),
            keyword: way,
            location,
            expected,
            found,
        });
    }
}

fn decode(key: &[u8], content: Option<&[u8]>) -> Result<(u64, u64)> {
    let Some(content) = content else { return Ok((0, 0)) };
    let mut at = 0;
    let mut read = || varint::read(content, &mut at);
    let counts = read().zip(read());
    counts.filter(|_| at == content.len()).ok_or_else(|| damaged(key))
}

fn total(key: &[u8], stored: u64, count: &Count) -> Result<u64> {
    stored.checked_add_signed(count.more).ok_or_else(|| damaged(key))
}

fn damaged(key: &[u8]) -> Error {
    Error::corrupted(format!(
        "the index of constraint {} does not agree with the tree; remove the schema and set it again",
        constraint_of(key)
    ))
}
