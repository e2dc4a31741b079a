//! Whether an index that a change is laid over holds what spinney's keywords ask for.

use spinney_core::error::{Error, Result};
use spinney_core::varint;
use spinney_core::{Path, Value};

use super::keys::constraint_of;
use super::trail::Trail;
use super::{Entries, REFERENCE, Rule, UNIQUE};
use crate::report::{Report, VIOLATIONS_MAX, Violation, describe};
use crate::schema::Schema;

/// Makes the new content of a key of the old one.
pub type ChangeContent<'c> = &'c mut dyn FnMut(&[u8], &mut Vec<u8>) -> Result<()>;

impl Entries {
    /// Lays the entries over an index and says whether the constraints hold then. For each key, in
    /// their order, `change` is called with what makes the new content of the old one; an empty content
    /// is that of a key that is not there.
    ///
    /// # Errors
    /// Those of `change`; `Corrupted` when a content is not what was put.
    pub fn judge(
        &self,
        schema: &Schema,
        mut change: impl FnMut(&[u8], ChangeContent<'_>) -> Result<()>,
    ) -> Result<Report> {
        let mut report = Report::default();
        for same in self.occurrences.chunk_by(|a, b| a.key == b.key) {
            let key = &*same[0].key;
            let sum = |is_target| {
                let counted = same.iter().filter(|it| it.is_target == is_target);
                counted.map(|it| it.sign).sum::<i64>()
            };
            let (more_users, more_targets) = (sum(false), sum(true));
            if more_users == 0 && more_targets == 0 {
                continue;
            }
            let (mut users, mut targets) = (0, 0);
            change(key, &mut |old, new| {
                let (old_users, old_targets) = decode(key, old)?;
                users = total(key, old_users, more_users)?;
                targets = total(key, old_targets, more_targets)?;
                if users > 0 || targets > 0 {
                    varint::write(users, new);
                    varint::write(targets, new);
                }
                Ok(())
            })?;
            let example = |is_target, sign| {
                same.iter().find(|it| it.is_target == is_target && it.sign == sign)
            };
            let constraint = &schema.constraints[constraint_of(key)];
            let violation = match &constraint.rule {
                Rule::Reference(target) if users > 0 && targets == 0 => {
                    let what = if target.keys { "key" } else { "value" };
                    let way = target.text();
                    Some(match example(false, 1) {
                        Some(added) => {
                            let expected = format!("a {what} that exists at `{way}`");
                            (added, REFERENCE, expected, shown(&added.value(&constraint.rule))?)
                        }
                        None => {
                            let removed = example(true, -1).ok_or_else(|| damaged(key))?;
                            let expected = match users {
                                1 => format!("the {what} `{way}` that a node refers to"),
                                _ => format!("the {what} `{way}` that {users} nodes refer to"),
                            };
                            let found = format!(
                                "nothing that is {}",
                                shown(&removed.value(&constraint.rule))?
                            );
                            (removed, REFERENCE, expected, found)
                        }
                    })
                }
                Rule::Unique(fields) if users > 1 => {
                    let added = example(false, 1).ok_or_else(|| damaged(key))?;
                    let found = format!(
                        "{}, which another member has",
                        shown(&added.value(&constraint.rule))?
                    );
                    Some((added, UNIQUE, differing(fields), found))
                }
                _ => None,
            };
            if let Some((node, keyword, expected, found)) = violation {
                report.add(&node.trail, keyword, &constraint.location, expected, found);
            }
        }
        for (id, trail, value) in &self.repeated {
            let constraint = &schema.constraints[*id];
            let Rule::Unique(fields) = &constraint.rule else { continue };
            let found = format!("{}, which another member has", shown(value)?);
            report.add(trail, UNIQUE, &constraint.location, differing(fields), found);
        }
        Ok(report)
    }
}

/// A value for people.
fn shown(values: &[Value]) -> Result<String> {
    let shown = values.iter().map(|value| describe(&value));
    Ok(shown.collect::<Result<Vec<_>>>()?.join(" and "))
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
        trail: &Trail,
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

fn decode(key: &[u8], content: &[u8]) -> Result<(u64, u64)> {
    if content.is_empty() {
        return Ok((0, 0));
    }
    let mut at = 0;
    let mut read = || varint::read(content, &mut at);
    let counts = read().zip(read());
    counts.filter(|_| at == content.len()).ok_or_else(|| damaged(key))
}

fn total(key: &[u8], stored: u64, more: i64) -> Result<u64> {
    stored.checked_add_signed(more).ok_or_else(|| damaged(key))
}

fn damaged(key: &[u8]) -> Error {
    Error::corrupted(format!(
        "the index of constraint {} does not agree with the tree; remove the schema and set it again",
        constraint_of(key)
    ))
}
