//! PostgreSQL in the suite `documents`.
//!
//! Design: a row a document, its number the primary key, as JSONB, which `#>` and `jsonb_set` read and change
//! the leaves of. A commit is one statement, or a transaction where it is more; many documents come by `COPY`.
//! Each document that is read is one statement, as text that serde_json parses. It has no cursor over the
//! leaves of a document and no siblings to step over.

use std::ops::RangeInclusive;

use serde_json::Value;
use spinney_core::{Error, Result};

use super::{Link, failed};
use crate::answer::Answer;
use crate::documents::collection::{By, Collection, Each, Found, Reading};
use crate::documents::rows::Operation;
use crate::documents::set::{Set, parsed};

/// What a report says of it.
pub const DESIGN: &str = "a cluster of its own on a Unix socket; a row a document, its number the primary key, \
    as JSONB (`#>`, `jsonb_set`); prepared statements, a transaction where a commit is several, COPY for many \
    rows, TRUNCATE for all";

/// Its table.
pub const SCHEMA: &str = "CREATE TABLE documents(k bigint PRIMARY KEY, document jsonb NOT NULL)";

/// Documents of one statement; more are copied.
const SINGLE: usize = 1;

/// A cluster with a row a document.
pub struct Documents {
    link: Link,
}

impl Documents {
    /// A cluster without documents.
    pub fn new(link: Link) -> Documents {
        Documents { link }
    }

    /// One statement a document, in one commit.
    fn each_in_one_commit(
        &mut self,
        numbers: RangeInclusive<usize>,
        mut run: impl FnMut(&mut Link, usize) -> Result<u64>,
    ) -> Result<()> {
        let is_single = numbers.clone().count() == SINGLE;
        if !is_single {
            self.link.client.batch_execute("BEGIN").map_err(failed)?;
        }
        for number in numbers {
            if run(&mut self.link, number)? != 1 {
                return Err(missing());
            }
        }
        match is_single {
            true => Ok(()),
            false => self.link.client.batch_execute("COMMIT").map_err(failed),
        }
    }
}

impl Collection for Documents {
    fn lacks(&self, operation: Operation) -> Option<String> {
        let reason = match operation {
            Operation::Set(By::Leaf, _) => "its documents are set whole",
            Operation::Get(Reading::Nested) => {
                "a document is one value, which has no siblings to step over"
            }
            Operation::Get(Reading::Cursor) | Operation::Scan(By::Leaf) => {
                "it has no cursor over the leaves of a document"
            }
            _ => return None,
        };
        Some(reason.to_owned())
    }

    fn set(&mut self, _by: By, set: &Set, numbers: RangeInclusive<usize>) -> Result<()> {
        if numbers.clone().count() == SINGLE {
            let sql = "INSERT INTO documents VALUES ($1, $2::text::jsonb)";
            return self.each_in_one_commit(numbers, |link, number| {
                link.run(sql, &[&key(number), &set.copy(number).json.to_string()])
            });
        }
        let rows = numbers.map(|number| [number.to_string(), set.copy(number).json.to_string()]);
        self.link.copy("COPY documents FROM STDIN", rows).map(drop)
    }

    fn replace(&mut self, set: &Set, numbers: RangeInclusive<usize>) -> Result<()> {
        let sql = "UPDATE documents SET document = $2::text::jsonb WHERE k = $1";
        self.each_in_one_commit(numbers, |link, number| {
            link.run(sql, &[&key(number), &set.changed(number).json.to_string()])
        })
    }

    fn clear(&mut self) -> Result<()> {
        self.link.client.batch_execute("TRUNCATE documents").map_err(failed)
    }

    fn get(&mut self, _reading: Reading, set: &Set, each: Each<'_>) -> Result<()> {
        for number in 1..=set.len() {
            let sql = "SELECT document::text FROM documents WHERE k = $1";
            let rows = self.link.rows(sql, &[&key(number)])?;
            let text: &str = rows.first().ok_or_else(missing)?.get(0);
            each(number, Answer::Json(parsed(text.as_bytes())?))?;
        }
        Ok(())
    }

    fn scan(&mut self, _by: By, _set: &Set, each: Each<'_>) -> Result<()> {
        for row in self.link.rows("SELECT k, document::text FROM documents ORDER BY k", &[])? {
            let text: &str = row.get(1);
            each(number(row.get(0))?, Answer::Json(parsed(text.as_bytes())?))?;
        }
        Ok(())
    }

    fn get_leaves(&mut self, set: &Set, each: Each<'_>) -> Result<()> {
        let path = path(set);
        for number in 1..=set.len() {
            let sql = "SELECT (document #> $2)::text FROM documents WHERE k = $1";
            let rows = self.link.rows(sql, &[&key(number), &path])?;
            let leaf: Option<&str> = rows.first().ok_or_else(missing)?.get(0);
            let leaf: Value = parsed(leaf.ok_or_else(missing)?.as_bytes())?;
            each(number, Answer::Json(leaf))?;
        }
        Ok(())
    }

    fn set_leaves(&mut self, set: &Set, numbers: RangeInclusive<usize>) -> Result<()> {
        let path = path(set);
        let sql =
            "UPDATE documents SET document = jsonb_set(document, $2, $3::text::jsonb) WHERE k = $1";
        self.each_in_one_commit(numbers, |link, number| {
            link.run(sql, &[&key(number), &path, &set.leaf_json(number, true).to_string()])
        })
    }

    fn find(&mut self, set: &Set, each: Found<'_>) -> Result<()> {
        let sql = "SELECT k FROM documents WHERE document #> $1 = $2::text::jsonb ORDER BY k";
        for row in self.link.rows(sql, &[&path(set), &set.wanted().to_string()])? {
            each(number(row.get(0))?)?;
        }
        Ok(())
    }

    fn settle(&mut self) -> Result<()> {
        self.link.client.batch_execute("VACUUM (ANALYZE) documents").map_err(failed)
    }

    fn processes(&self) -> Vec<u32> {
        self.link.server.processes()
    }
}

/// The path of the leaf as PostgreSQL has it.
fn path(set: &Set) -> Vec<String> {
    spinney_core::path::segments(set.leaf()).map(|segment| segment.into_owned()).collect()
}

/// The number of a document as PostgreSQL has it.
fn key(number: usize) -> i64 {
    number as i64
}

fn number(key: i64) -> Result<usize> {
    usize::try_from(key).map_err(|_| missing())
}

fn missing() -> Error {
    Error::not_found("the database does not hold what was put there")
}
