//! SQLite in the suite `documents`.
//!
//! Design: a row a document, its number the integer primary key. Whole documents are JSON text, which
//! serde_json prints and parses; what reads or changes parts of them works on JSONB in a table of its own,
//! by `->`, `jsonb_set` and `json_tree`. A phase of reads is one transaction, each call one prepared
//! statement. A document is one value, so that nothing sets its leaves one by one or steps from one sibling
//! to the next.

use std::ops::RangeInclusive;

use rusqlite::{Connection, Row, types::ValueRef};
use serde_json::{Map, Value};
use spinney_core::{Error, Result};

use super::{failed, text};
use crate::answer::Answer;
use crate::documents::collection::{By, Collection, Each, Found, Reading};
use crate::documents::rows::Operation;
use crate::documents::set::{Set, parsed};

/// What a report says of it.
pub const DESIGN: &str = "a row a document, its number the primary key: JSON text for whole documents, \
    JSONB for what reads or changes leaves (`->`, `jsonb_set`, `json_tree`); prepared statements, one \
    transaction a commit or a phase of reads; serde_json parses and prints";

/// Its tables.
pub const SCHEMA: &str = "
    CREATE TABLE whole(k INTEGER PRIMARY KEY, document TEXT NOT NULL);
    CREATE TABLE parts(k INTEGER PRIMARY KEY, document BLOB NOT NULL);";

const TREE: &str = "SELECT k, id, parent, key, type, atom FROM parts, json_tree(document)";

/// A database with a row a document.
pub struct Documents {
    database: Connection,
}

impl Documents {
    /// A database without documents.
    pub fn new(database: Connection) -> Documents {
        Documents { database }
    }

    /// One transaction.
    fn within(&self, work: impl FnOnce(&Connection) -> Result<()>) -> Result<()> {
        let transaction = self.database.unchecked_transaction().map_err(failed)?;
        work(&transaction)?;
        transaction.commit().map_err(failed)
    }

    /// What `json_tree` gives of each document, put together again.
    fn by_leaves(&self, sql: &str, numbers: &[Option<i64>], each: Each<'_>) -> Result<()> {
        self.within(|database| {
            let mut statement = database.prepare_cached(sql).map_err(failed)?;
            for number in numbers {
                let mut rows =
                    statement.query(rusqlite::params_from_iter(number)).map_err(failed)?;
                let mut present: Option<(usize, Tree)> = None;
                while let Some(row) = rows.next().map_err(failed)? {
                    let number = number_of(row)?;
                    if present.as_ref().is_none_or(|(present, _)| *present != number)
                        && let Some((number, tree)) = present.replace((number, Tree::default()))
                    {
                        each(number, Answer::Json(tree.finish()))?;
                    }
                    let (_, tree) = present.as_mut().expect("it was made above");
                    tree.add(row)?;
                }
                if let Some((number, tree)) = present {
                    each(number, Answer::Json(tree.finish()))?;
                }
            }
            Ok(())
        })
    }
}

impl Collection for Documents {
    fn lacks(&self, operation: Operation) -> Option<String> {
        match operation {
            Operation::Set(By::Leaf, _) => Some("its documents are set whole".to_owned()),
            Operation::Get(Reading::Nested) => {
                Some("a document is one value, which has no siblings to step over".to_owned())
            }
            _ => None,
        }
    }

    fn set(&mut self, by: By, set: &Set, numbers: RangeInclusive<usize>) -> Result<()> {
        let sql = match by {
            By::Document => "INSERT INTO whole VALUES (?1, ?2)",
            By::Leaf => "INSERT INTO parts VALUES (?1, jsonb(?2))",
        };
        self.within(|database| {
            let mut insert = database.prepare_cached(sql).map_err(failed)?;
            for number in numbers {
                let text = set.copy(number).json.to_string();
                insert.execute((key(number), text)).map_err(failed)?;
            }
            Ok(())
        })
    }

    fn replace(&mut self, set: &Set, numbers: RangeInclusive<usize>) -> Result<()> {
        self.within(|database| {
            let sql = "UPDATE whole SET document = ?2 WHERE k = ?1";
            let mut update = database.prepare_cached(sql).map_err(failed)?;
            for number in numbers {
                let text = set.changed(number).json.to_string();
                update.execute((key(number), text)).map_err(failed)?;
            }
            Ok(())
        })
    }

    fn find(&mut self, set: &Set, each: Found<'_>) -> Result<()> {
        self.within(|database| {
            let sql = "SELECT k FROM parts WHERE document -> ?1 = json(?2) ORDER BY k";
            let mut select = database.prepare_cached(sql).map_err(failed)?;
            let mut rows = select.query((path(set), set.wanted().to_string())).map_err(failed)?;
            while let Some(row) = rows.next().map_err(failed)? {
                each(number_of(row)?)?;
            }
            Ok(())
        })
    }

    fn clear(&mut self) -> Result<()> {
        let sql = "DELETE FROM whole; DELETE FROM parts;";
        self.within(|database| database.execute_batch(sql).map_err(failed))
    }

    fn get(&mut self, reading: Reading, set: &Set, each: Each<'_>) -> Result<()> {
        if reading == Reading::Cursor {
            let numbers: Vec<Option<i64>> =
                (1..=set.len()).map(|number| Some(key(number))).collect();
            return self.by_leaves(&format!("{TREE} WHERE k = ?1"), &numbers, each);
        }
        let sql = "SELECT document FROM whole WHERE k = ?1";
        self.within(|database| {
            let mut select = database.prepare_cached(sql).map_err(failed)?;
            for number in 1..=set.len() {
                let mut rows = select.query([key(number)]).map_err(failed)?;
                let row = rows.next().map_err(failed)?.ok_or_else(missing)?;
                each(number, Answer::Json(parsed(text(row, 0)?.as_bytes())?))?;
            }
            Ok(())
        })
    }

    fn scan(&mut self, by: By, _set: &Set, each: Each<'_>) -> Result<()> {
        if by == By::Leaf {
            return self.by_leaves(&format!("{TREE} ORDER BY k"), &[None], each);
        }
        self.within(|database| {
            let sql = "SELECT k, document FROM whole ORDER BY k";
            let mut select = database.prepare_cached(sql).map_err(failed)?;
            let mut rows = select.query([]).map_err(failed)?;
            while let Some(row) = rows.next().map_err(failed)? {
                let document = parsed(text(row, 1)?.as_bytes())?;
                each(number_of(row)?, Answer::Json(document))?;
            }
            Ok(())
        })
    }

    fn get_leaves(&mut self, set: &Set, each: Each<'_>) -> Result<()> {
        let path = path(set);
        self.within(|database| {
            let sql = "SELECT document -> ?2 FROM parts WHERE k = ?1";
            let mut select = database.prepare_cached(sql).map_err(failed)?;
            for number in 1..=set.len() {
                let mut rows = select.query((key(number), &path)).map_err(failed)?;
                let row = rows.next().map_err(failed)?.ok_or_else(missing)?;
                each(number, Answer::Json(parsed(text(row, 0)?.as_bytes())?))?;
            }
            Ok(())
        })
    }

    fn set_leaves(&mut self, set: &Set, numbers: RangeInclusive<usize>) -> Result<()> {
        let path = path(set);
        self.within(|database| {
            let sql = "UPDATE parts SET document = jsonb_set(document, ?2, json(?3)) WHERE k = ?1";
            let mut update = database.prepare_cached(sql).map_err(failed)?;
            for number in numbers {
                let value = set.leaf_json(number, true).to_string();
                update.execute((key(number), &path, value)).map_err(failed)?;
            }
            Ok(())
        })
    }
}

/// A document that is put together from the rows of `json_tree`, which come depth first.
#[derive(Default)]
struct Tree {
    /// Containers that are open: their id, their own key, and what they hold so far.
    open: Vec<(i64, String, Value)>,
    done: Value,
}

impl Tree {
    fn add(&mut self, row: &Row<'_>) -> Result<()> {
        let parent: Option<i64> = row.get(2).map_err(failed)?;
        while self.open.last().is_some_and(|(id, ..)| Some(*id) != parent) {
            self.close();
        }
        let key = match row.get_ref(3).map_err(failed)? {
            ValueRef::Text(key) => String::from_utf8_lossy(key).into_owned(),
            _ => String::new(),
        };
        let value = match text(row, 4)? {
            "object" | "array" => {
                let is_map = text(row, 4)? == "object";
                let empty =
                    if is_map { Value::Object(Map::new()) } else { Value::Array(Vec::new()) };
                self.open.push((row.get(1).map_err(failed)?, key, empty));
                return Ok(());
            }
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            "integer" => Value::from(row.get::<_, i64>(5).map_err(failed)?),
            "real" => Value::from(row.get::<_, f64>(5).map_err(failed)?),
            "text" => Value::from(text(row, 5)?),
            _ => Value::Null,
        };
        self.put(key, value);
        Ok(())
    }

    fn put(&mut self, key: String, value: Value) {
        match self.open.last_mut() {
            Some((_, _, Value::Object(members))) => drop(members.insert(key, value)),
            Some((_, _, Value::Array(elements))) => elements.push(value),
            _ => self.done = value,
        }
    }

    fn close(&mut self) {
        if let Some((_, key, value)) = self.open.pop() {
            self.put(key, value);
        }
    }

    fn finish(mut self) -> Value {
        while !self.open.is_empty() {
            self.close();
        }
        self.done
    }
}

/// The path of the leaf, as SQLite writes it.
fn path(set: &Set) -> String {
    let mut node = &set.copy(1).json;
    let mut path = "$".to_owned();
    for segment in set.leaf().split('/').skip(1) {
        let segment = segment.replace("~1", "/").replace("~0", "~");
        match node {
            Value::Array(elements) => {
                path.push_str(&format!("[{segment}]"));
                node = segment.parse().ok().and_then(|at: usize| elements.get(at)).unwrap_or(node);
            }
            _ => {
                path.push_str(&format!(".\"{segment}\""));
                node = node.get(&segment).unwrap_or(node);
            }
        }
    }
    path
}

/// The number of a document as SQLite has it.
fn key(number: usize) -> i64 {
    number as i64
}

fn number_of(row: &Row<'_>) -> Result<usize> {
    let number: i64 = row.get(0).map_err(failed)?;
    usize::try_from(number).map_err(|_| missing())
}

fn missing() -> Error {
    Error::not_found("the database does not hold what was put there")
}
