//! The rows of the suite on records.

use std::io::Write;

use serde_json::{Map, Value, json};
use spinney_core::{Error, Result};

use super::record::{Entry, Item};
use super::{
    CONT, CONT_KEY, GAP, LST, RANKS, Store, USR_LST, create_cont, gap_after, item_nodes, missing,
    put_entry, rank_at, rank_of,
};
use crate::answer::Answer;
use crate::canonical::write_string;
use crate::datastore::document::{item_key, leaf_text, numbered};
use crate::engine::Reader;
use crate::system::{Delivery, Effect, System, Told};

impl System for Store {
    fn import(&mut self, json: &[u8]) -> Result<Effect> {
        let document = serde_json::from_slice(json)
            .map_err(|error| Error::invalid_input("the text is not JSON").with_source(error))?;
        self.insert_document(&document)
    }

    /// Records are typed and their keys unique: there is nothing that the model forbids.
    fn judge(&mut self) -> Result<()> {
        Ok(())
    }

    fn told(&mut self) -> Option<&mut Told> {
        Some(&mut self.told)
    }

    fn leaf(&mut self, i: usize) -> Result<String> {
        self.item(i, |item| Ok(item.l.ok_or_else(missing)?.to_owned()))
    }

    fn item_tree(&mut self, i: usize) -> Result<Answer> {
        self.item(i, |item| Ok(tree(&item_key(i), item)))
    }

    fn query_tree(&mut self, i: usize) -> Result<Answer> {
        self.find(i, |key, item| Ok(tree(key, item)))
    }

    fn query_item(&mut self, i: usize) -> Result<String> {
        self.find(i, |_, item| Ok(item.l.ok_or_else(missing)?.to_owned()))
    }

    fn range(&mut self, i: usize, count: usize) -> Result<Answer> {
        self.read(|reader| {
            let mut items = Map::new();
            reader.scan(LST, item_key(i).as_bytes(), &mut |key, value| {
                items.insert(member(key)?.to_owned(), Item::read(value)?.to_json());
                Ok(items.len() < count)
            })?;
            Ok(Answer::Json(Value::Object(items)))
        })
    }

    fn ordered_tree(&mut self) -> Result<Answer> {
        self.read(|reader| {
            let mut entries = Vec::new();
            reader.scan(USR_LST, b"", &mut |_, value| {
                entries.push(Entry::read(value)?.to_json());
                Ok(true)
            })?;
            Ok(Answer::Json(json!({ "usr-lst": entries })))
        })
    }

    fn element(&mut self, position: usize) -> Result<Answer> {
        self.read(|reader| {
            let (mut at, mut found) = (0, None);
            reader.scan(USR_LST, b"", &mut |_, value| {
                if at == position {
                    found = Some(Entry::read(value)?.to_json());
                }
                at += 1;
                Ok(found.is_none())
            })?;
            found.map(Answer::Json).ok_or_else(missing)
        })
    }

    fn create_batch(&mut self, n: usize) -> Result<Effect> {
        self.insert_items(n)
    }

    fn create_paths(&mut self, n: usize) -> Result<Effect> {
        self.insert_items(n)
    }

    fn create_ordered(&mut self, n: usize) -> Result<Effect> {
        self.commit(|records| {
            let mut new = create_cont(records)?;
            let mut bytes = Vec::new();
            let last = match records.last(USR_LST, &mut bytes)? {
                true => rank_at(&bytes)?,
                false => 0,
            };
            for i in 0..n {
                let entry = Entry { k: i as u32, l: Some(&leaf_text(i)) };
                new += put_entry(records, last + (i as u64 + 1) * GAP, entry, &mut bytes)?;
            }
            Ok(Delivery::created(new))
        })
    }

    fn remove_items(&mut self) -> Result<Effect> {
        let is_told = self.told.is_heard();
        self.commit(|records| {
            let nodes = item_nodes(records, is_told)?;
            records.clear(LST)?;
            Ok(Delivery::removed(nodes))
        })
    }

    fn remove_tree(&mut self) -> Result<Effect> {
        let is_told = self.told.is_heard();
        self.commit(|records| {
            if !records.get(CONT, CONT_KEY, &mut Vec::new())? {
                return Ok(Delivery::default());
            }
            let nodes = 1 + item_nodes(records, is_told)?;
            [LST, USR_LST, RANKS].into_iter().try_for_each(|table| records.clear(table))?;
            records.delete(CONT, CONT_KEY)?;
            Ok(Delivery::removed(nodes))
        })
    }

    fn create_leaf(&mut self, i: usize, text: &str) -> Result<Effect> {
        self.set_leaf(i, Some(text), |old| match old {
            None => Ok(Delivery::created(1)),
            Some(_) => Err(Error::already_exists(format!("item {i} has `l`"))),
        })
    }

    fn modify_leaf(&mut self, i: usize, text: &str) -> Result<Effect> {
        self.set_leaf(i, Some(text), |old| {
            let old = old.ok_or_else(missing)?;
            Ok(Delivery::changed(u64::from(old != text)))
        })
    }

    fn remove_leaf(&mut self, i: usize) -> Result<Effect> {
        self.set_leaf(i, None, |old| Ok(Delivery::removed(u64::from(old.is_some()))))
    }

    fn insert_after(&mut self, after: usize, new: usize) -> Result<Effect> {
        self.insert_storm(after, new, 1)
    }

    fn insert_storm(&mut self, after: usize, new: usize, count: usize) -> Result<Effect> {
        // One by one each insert would halve the gap, and 40 of them renumber the list.
        let (rank, step) = gap_after(self, after, count)?;
        self.commit(|records| {
            let (mut nodes, mut bytes) = (0, Vec::new());
            for at in 0..count {
                let rank = rank + step * (count - at) as u64;
                let entry = Entry { k: (new + at) as u32, l: Some(&leaf_text(new + at)) };
                nodes += put_entry(records, rank, entry, &mut bytes)?;
            }
            Ok(Delivery::created(nodes))
        })
    }

    fn move_last(&mut self, after: usize, n: usize) -> Result<Effect> {
        let (rank, step) = gap_after(self, after, 1)?;
        self.commit(|records| {
            let old = rank_of(records, n - 1)?.to_be_bytes();
            let new = (rank + step).to_be_bytes();
            let mut value = Vec::new();
            if !records.get(USR_LST, &old, &mut value)? {
                return Err(missing());
            }
            records.delete(USR_LST, &old)?;
            records.put(USR_LST, &new, &value)?;
            records.put(RANKS, &(n as u32 - 1).to_be_bytes(), &new)?;
            Ok(Delivery::changed(1))
        })
    }

    fn remove_element(&mut self, _position: usize, key: usize) -> Result<()> {
        let _: Effect = self.commit(|records| {
            let rank = rank_of(records, key)?;
            records.delete(USR_LST, &rank.to_be_bytes())?;
            records.delete(RANKS, &(key as u32).to_be_bytes())?;
            Ok(Delivery::default())
        })?;
        Ok(())
    }

    fn export(&mut self, out: &mut Vec<u8>) -> Result<()> {
        self.read(|reader| {
            if !reader.get(CONT, CONT_KEY, &mut Vec::new())? {
                out.extend_from_slice(b"{}");
                return Ok(());
            }
            out.extend_from_slice(b"{\"cont\":{");
            let start = out.len();
            reader.scan(LST, b"", &mut |key, value| {
                out.extend_from_slice(if out.len() == start { b"\"lst\":{" } else { b"," });
                let item = Item::read(value)?;
                write_string(member(key)?, out);
                write!(out, ":{{\"k1\":{},\"k2\":", item.k1).expect("a vector takes every write");
                write_string(item.k2, out);
                write_leaf(item.l, out);
                Ok(true)
            })?;
            if out.len() > start {
                out.push(b'}');
            }
            export_entries(reader, start, out)?;
            out.extend_from_slice(b"}}");
            Ok(())
        })
    }

    fn settle(&mut self) -> Result<Option<u64>> {
        self.engine.settle().map(|()| None)
    }

    fn processes(&self) -> Vec<u32> {
        self.engine.processes()
    }
}

impl Store {
    fn item<T>(&self, i: usize, ask: impl Fn(Item<'_>) -> Result<T>) -> Result<T> {
        self.read(|reader| {
            let mut value = Vec::new();
            match reader.get(LST, item_key(i).as_bytes(), &mut value)? {
                true => ask(Item::read(&value)?),
                false => Err(missing()),
            }
        })
    }

    /// Item `i`, found by its keys among all.
    fn find<T>(&self, i: usize, ask: impl Fn(&str, Item<'_>) -> Result<T>) -> Result<T> {
        let k2 = numbered("str", i);
        let found = self.read(|reader| {
            let mut found = None;
            reader.scan(LST, b"", &mut |key, value| {
                let item = Item::read(value)?;
                if item.k1 == i as u32 && item.k2 == k2 {
                    found = Some(ask(member(key)?, item)?);
                }
                Ok(found.is_none())
            })?;
            Ok(found)
        })?;
        found.ok_or_else(missing)
    }
}

fn export_entries(reader: &dyn Reader, start: usize, out: &mut Vec<u8>) -> Result<()> {
    let mut first = true;
    reader.scan(USR_LST, b"", &mut |_, value| {
        if out.len() > start {
            out.push(b',');
        }
        if std::mem::take(&mut first) {
            out.extend_from_slice(b"\"usr-lst\":[");
        }
        let entry = Entry::read(value)?;
        write!(out, "{{\"k\":{}", entry.k).expect("a vector takes every write");
        write_leaf(entry.l, out);
        Ok(true)
    })?;
    if !first {
        out.push(b']');
    }
    Ok(())
}

/// Appends `l`, if there is one, and closes the object that stands open.
fn write_leaf(leaf: Option<&str>, out: &mut Vec<u8>) {
    if let Some(leaf) = leaf {
        out.extend_from_slice(b",\"l\":");
        write_string(leaf, out);
    }
    out.push(b'}');
}

fn tree(key: &str, item: Item<'_>) -> Answer {
    Answer::Json(json!({ "cont": { "lst": { key: item.to_json() } } }))
}

fn member(key: &[u8]) -> Result<&str> {
    std::str::from_utf8(key).map_err(|_| Error::corrupted("the key of a record is not UTF-8"))
}
