//! The rows of the suite as statements.

use std::io::Write;

use serde_json::{Map, Value, json};
use spinney_core::{Error, Result};

use super::{GAP, Store, failed, missing};
use crate::answer::Answer;
use crate::canonical::write_string;
use crate::datastore::document::{item_key, leaf_text, numbered};
use crate::system::{Delivery, Effect, System, Told};

/// Puts entries with these keys and texts where the `n`-th of them is so many steps after entry `$1`;
/// nothing, where the gap after it is too small.
const INSERT_AFTER: &str = "
    WITH place AS (SELECT a.rank, coalesce((SELECT (min(b.rank) - a.rank) / ($2::bigint + 1) \
        FROM usr_lst b WHERE b.rank > a.rank), 1048576) AS step FROM usr_lst a WHERE a.k = $1) \
    INSERT INTO usr_lst SELECT new.k, place.rank + place.step * new.at, new.entry::jsonb \
    FROM place, unnest($3::bigint[], $4::bigint[], $5::text[]) AS new(k, at, entry) \
    WHERE place.step > 0";

/// The same for an entry that is there.
const MOVE_AFTER: &str = "
    WITH place AS (SELECT a.rank, coalesce((SELECT (min(b.rank) - a.rank) / 2 \
        FROM usr_lst b WHERE b.rank > a.rank), 1048576) AS step FROM usr_lst a WHERE a.k = $1) \
    UPDATE usr_lst SET rank = place.rank + place.step FROM place WHERE k = $2 AND place.step > 0";

const SPREAD: &str = "
    UPDATE usr_lst SET rank = new FROM (SELECT k AS which, \
        row_number() OVER (ORDER BY rank) * 1048576 AS new FROM usr_lst) AS spread WHERE k = which";

impl System for Store {
    fn import(&mut self, json: &[u8]) -> Result<Effect> {
        let document: Value = serde_json::from_slice(json)
            .map_err(|error| Error::invalid_input("the text is not JSON").with_source(error))?;
        let Some(cont) = document.get("cont") else { return Ok(Effect::Unchanged) };
        let items = cont["lst"].as_object().into_iter().flatten();
        let items = items.map(|(name, item)| (name.clone(), item.to_string(), nodes(item)));
        let entries = cont["usr-lst"].as_array().into_iter().flatten().zip(1..);
        let entries = entries.map(|(entry, at)| (entry["k"].as_i64(), at, entry));
        let mut lines = Vec::new();
        for (k, at, entry) in entries {
            let k = k.ok_or_else(|| Error::invalid_input("an entry has no `k`"))?;
            lines.push((format!("{k}\t{}", at * GAP), entry.to_string(), nodes(entry)));
        }
        self.commit(|store| {
            let mut new = store.create_cont()?;
            new += store.copy("COPY lst FROM STDIN", items)?;
            new += store.copy("COPY usr_lst FROM STDIN", lines.into_iter())?;
            Ok(Delivery::created(new))
        })
    }

    fn judge(&mut self) -> Result<()> {
        self.link.client.batch_execute(include_str!("model.sql")).map_err(failed)
    }

    fn told(&mut self) -> Option<&mut Told> {
        Some(&mut self.told)
    }

    fn leaf(&mut self, i: usize) -> Result<String> {
        let sql = "SELECT item ->> 'l' FROM lst WHERE name = $1";
        let leaf: Option<String> = self.link.row(sql, &[&item_key(i)])?.get(0);
        leaf.ok_or_else(missing)
    }

    fn item_tree(&mut self, i: usize) -> Result<Answer> {
        let key = item_key(i);
        let row = self.link.row("SELECT item::text FROM lst WHERE name = $1", &[&key])?;
        tree(&key, row.get(0))
    }

    fn query_tree(&mut self, i: usize) -> Result<Answer> {
        let sql = "SELECT name, item::text FROM lst WHERE item @> $1::text::jsonb";
        let row = self.link.row(sql, &[&keys(i)])?;
        tree(row.get(0), row.get(1))
    }

    fn query_item(&mut self, i: usize) -> Result<String> {
        let sql = "SELECT item ->> 'l' FROM lst WHERE item @> $1::text::jsonb";
        let leaf: Option<String> = self.link.row(sql, &[&keys(i)])?.get(0);
        leaf.ok_or_else(missing)
    }

    fn range(&mut self, i: usize, count: usize) -> Result<Answer> {
        let sql = "SELECT name, item::text FROM lst WHERE name >= $1 ORDER BY name LIMIT $2";
        let rows = self.link.rows(sql, &[&item_key(i), &(count as i64)])?;
        let items = rows.iter().map(|row| Ok((row.get(0), parse(row.get(1))?)));
        Ok(Answer::Json(Value::Object(items.collect::<Result<Map<String, Value>>>()?)))
    }

    fn ordered_tree(&mut self) -> Result<Answer> {
        let rows = self.link.rows("SELECT entry::text FROM usr_lst ORDER BY rank", &[])?;
        let entries = rows.iter().map(|row| parse(row.get(0))).collect::<Result<Vec<Value>>>()?;
        Ok(Answer::Json(json!({ "usr-lst": entries })))
    }

    fn element(&mut self, position: usize) -> Result<Answer> {
        let sql = "SELECT entry::text FROM usr_lst ORDER BY rank LIMIT 1 OFFSET $1";
        let row = self.link.row(sql, &[&(position as i64)])?;
        parse(row.get(0)).map(Answer::Json)
    }

    fn create_batch(&mut self, n: usize) -> Result<Effect> {
        let items = (0..n).map(|i| {
            let text = format!("{{\"k1\":{i},\"k2\":\"str{i}\",\"l\":\"l{i}\"}}");
            (item_key(i), text, 4)
        });
        self.commit(|store| {
            let cont = store.create_cont()?;
            Ok(Delivery::created(cont + store.copy("COPY lst FROM STDIN", items)?))
        })
    }

    fn create_paths(&mut self, n: usize) -> Result<Effect> {
        self.create_batch(n)
    }

    fn create_ordered(&mut self, n: usize) -> Result<Effect> {
        self.commit(|store| {
            let cont = store.create_cont()?;
            let last: i64 =
                store.link.row("SELECT coalesce(max(rank), 0) FROM usr_lst", &[])?.get(0);
            let entries =
                (0..n).map(|i| (format!("{i}\t{}", last + (i as i64 + 1) * GAP), entry(i), 3));
            Ok(Delivery::created(cont + store.copy("COPY usr_lst FROM STDIN", entries)?))
        })
    }

    fn remove_items(&mut self) -> Result<Effect> {
        self.commit(|store| {
            let nodes = store.item_nodes()?;
            store.link.run("TRUNCATE lst", &[])?;
            Ok(Delivery::removed(nodes))
        })
    }

    fn remove_tree(&mut self) -> Result<Effect> {
        self.commit(|store| {
            let items = store.item_nodes()?;
            let cont = store.link.run("DELETE FROM cont", &[])?;
            store.link.run("TRUNCATE lst, usr_lst", &[])?;
            Ok(Delivery::removed(cont + items))
        })
    }

    fn create_leaf(&mut self, i: usize, text: &str) -> Result<Effect> {
        let sql = "UPDATE lst SET item = jsonb_set(item, '{l}', to_jsonb($2::text)) \
             WHERE name = $1 AND NOT item ? 'l'";
        match self.link.run(sql, &[&item_key(i), &text])? {
            0 => Err(Error::already_exists(format!("item {i} has `l` or does not exist"))),
            _ => Ok(self.told.tell(Delivery::created(1))),
        }
    }

    fn modify_leaf(&mut self, i: usize, text: &str) -> Result<Effect> {
        let sql = "UPDATE lst SET item = jsonb_set(item, '{l}', to_jsonb($2::text)) \
             WHERE name = $1 AND item ->> 'l' <> $2";
        let changed = self.link.run(sql, &[&item_key(i), &text])?;
        Ok(self.told.tell(Delivery::changed(changed)))
    }

    fn remove_leaf(&mut self, i: usize) -> Result<Effect> {
        let sql = "UPDATE lst SET item = item - 'l' WHERE name = $1 AND item ? 'l'";
        let removed = self.link.run(sql, &[&item_key(i)])?;
        Ok(self.told.tell(Delivery::removed(removed)))
    }

    fn insert_after(&mut self, after: usize, new: usize) -> Result<Effect> {
        self.insert_storm(after, new, 1)
    }

    fn insert_storm(&mut self, after: usize, new: usize, count: usize) -> Result<Effect> {
        let keys: Vec<i64> = (new..new + count).map(|k| k as i64).collect();
        let steps: Vec<i64> = (1..=count as i64).rev().collect();
        let entries: Vec<String> = (new..new + count).map(entry).collect();
        let n = count as i64;
        self.put_in_gap(count, |store| {
            store.link.run(INSERT_AFTER, &[&(after as i64), &n, &keys, &steps, &entries])
        })?;
        Ok(self.told.tell(Delivery::created(3 * count as u64)))
    }

    fn move_last(&mut self, after: usize, n: usize) -> Result<Effect> {
        self.put_in_gap(1, |store| {
            store.link.run(MOVE_AFTER, &[&(after as i64), &(n as i64 - 1)])
        })?;
        Ok(self.told.tell(Delivery::changed(1)))
    }

    fn remove_element(&mut self, _position: usize, key: usize) -> Result<()> {
        self.link.run("DELETE FROM usr_lst WHERE k = $1", &[&(key as i64)])?;
        Ok(())
    }

    fn export(&mut self, out: &mut Vec<u8>) -> Result<()> {
        let is_there: bool = self.link.row("SELECT EXISTS (SELECT 1 FROM cont)", &[])?.get(0);
        if !is_there {
            out.extend_from_slice(b"{}");
            return Ok(());
        }
        let items = self.link.rows("SELECT name, item::text FROM lst ORDER BY name", &[])?;
        let entries = self.link.rows("SELECT entry::text FROM usr_lst ORDER BY rank", &[])?;
        out.extend_from_slice(b"{\"cont\":{");
        for (at, row) in items.iter().enumerate() {
            out.extend_from_slice(if at == 0 { b"\"lst\":{" } else { b"," });
            write_string(row.get(0), out);
            write!(out, ":{}", row.get::<_, &str>(1)).expect("a vector takes every write");
        }
        out.extend_from_slice(if items.is_empty() { b"" } else { b"}" });
        out.extend_from_slice(if items.is_empty() || entries.is_empty() { b"" } else { b"," });
        for (at, row) in entries.iter().enumerate() {
            out.extend_from_slice(if at == 0 { b"\"usr-lst\":[" } else { b"," });
            out.extend_from_slice(row.get::<_, &str>(0).as_bytes());
        }
        out.extend_from_slice(if entries.is_empty() { b"}}" } else { b"]}}" });
        Ok(())
    }

    fn settle(&mut self) -> Result<Option<u64>> {
        self.link.client.batch_execute("VACUUM (ANALYZE) lst, usr_lst").map_err(failed)?;
        Ok(None)
    }

    fn processes(&self) -> Vec<u32> {
        self.link.server.processes()
    }
}

impl Store {
    fn create_cont(&mut self) -> Result<u64> {
        self.link.run("INSERT INTO cont VALUES (true) ON CONFLICT DO NOTHING", &[])
    }

    /// Puts rows, each the text of its columns before the document, the document and its nodes; all
    /// nodes.
    /// Adds items or entries; their nodes.
    fn copy(
        &mut self,
        sql: &'static str,
        rows: impl Iterator<Item = (String, String, u64)>,
    ) -> Result<u64> {
        let mut nodes = 0;
        let rows = rows.map(|(columns, document, new)| {
            nodes += new;
            [columns, document]
        });
        self.link.copy(sql, rows)?;
        Ok(nodes)
    }

    /// Reads each item for who subscribed, and counts its nodes; without one, tells whether there is any.
    fn item_nodes(&mut self) -> Result<u64> {
        if !self.told.is_heard() {
            let any: bool = self.link.row("SELECT EXISTS (SELECT 1 FROM lst)", &[])?.get(0);
            return Ok(any.into());
        }
        let rows = self.link.rows("SELECT item::text FROM lst", &[])?;
        rows.iter().map(|row| Ok(nodes(&parse(row.get(0))?))).sum()
    }

    /// Does what needs a gap, and does it again with all ranks spread where there was none.
    fn put_in_gap(&mut self, count: usize, put: impl Fn(&mut Store) -> Result<u64>) -> Result<()> {
        if put(self)? > 0 {
            return Ok(());
        }
        if count as i64 >= GAP {
            return Err(Error::unsupported("more entries at one spot than a gap holds"));
        }
        self.link.run(SPREAD, &[])?;
        match put(self)? {
            0 => Err(missing()),
            _ => Ok(()),
        }
    }
}

/// Nodes of an item or entry: itself and its members.
fn nodes(document: &Value) -> u64 {
    1 + document.as_object().map_or(0, Map::len) as u64
}

fn entry(k: usize) -> String {
    format!("{{\"k\":{k},\"l\":\"{}\"}}", leaf_text(k))
}

/// What an item must contain to be item `i`.
fn keys(i: usize) -> String {
    format!("{{\"k1\":{i},\"k2\":\"{}\"}}", numbered("str", i))
}

fn tree(key: &str, item: &str) -> Result<Answer> {
    Ok(Answer::Json(json!({ "cont": { "lst": { key: parse(item)? } } })))
}

fn parse(text: &str) -> Result<Value> {
    serde_json::from_str(text)
        .map_err(|error| Error::corrupted("a document is not JSON").with_source(error))
}
