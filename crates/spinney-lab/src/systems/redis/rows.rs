//! The rows of the suite as commands.

use std::io::Write;

use serde_json::{Value, json};
use spinney_core::{Error, Result};

use super::{CONT, GAP, LST, Store, USR, USR_LST, failed, leaf, missing, value};
use crate::answer::Answer;
use crate::canonical::write_string;
use crate::datastore::document::{item_key, leaf_text, numbered};
use crate::system::{Delivery, Effect, System, Told};

impl System for Store {
    fn import(&mut self, json: &[u8]) -> Result<Effect> {
        let document: Value = serde_json::from_slice(json)
            .map_err(|error| Error::invalid_input("the text is not JSON").with_source(error))?;
        let Some(cont) = document.get("cont") else { return Ok(Effect::Unchanged) };
        let text = |item: &Value| value(item["l"].as_str());
        let items = cont["lst"].as_object().into_iter().flatten();
        let items: Vec<_> = items.map(|(key, item)| (key.clone(), text(item))).collect();
        let entries = cont["usr-lst"].as_array().into_iter().flatten();
        let entries = entries.map(|entry| Some((entry["k"].as_u64()? as usize, text(entry))));
        let entries: Option<Vec<_>> = entries.collect();
        let wrong = || Error::invalid_input("an entry has no `k`");
        self.put(&items, &entries.ok_or_else(wrong)?, GAP)
    }

    /// Names and values of fields have no room for what the model forbids.
    fn judge(&mut self) -> Result<()> {
        Ok(())
    }

    fn told(&mut self) -> Option<&mut Told> {
        Some(&mut self.told)
    }

    fn leaf(&mut self, i: usize) -> Result<String> {
        let value: Option<String> = self.ask(::redis::cmd("HGET").arg(LST).arg(item_key(i)))?;
        value.as_deref().and_then(leaf).map(str::to_owned).ok_or_else(missing)
    }

    fn item_tree(&mut self, i: usize) -> Result<Answer> {
        let key = item_key(i);
        let value: Option<String> = self.ask(::redis::cmd("HGET").arg(LST).arg(&key))?;
        tree(&key, &value.ok_or_else(missing)?)
    }

    fn query_tree(&mut self, i: usize) -> Result<Answer> {
        let (key, value) = self.find(i)?;
        tree(&key, &value)
    }

    fn query_item(&mut self, i: usize) -> Result<String> {
        let (_, value) = self.find(i)?;
        leaf(&value).map(str::to_owned).ok_or_else(missing)
    }

    fn range(&mut self, _i: usize, _count: usize) -> Result<Answer> {
        Err(Error::unsupported("fields of a hash have no order, so there is no range"))
    }

    fn ordered_tree(&mut self) -> Result<Answer> {
        let entries: Vec<Value> =
            self.entries()?.iter().map(|(k, value)| entry(*k, value)).collect();
        Ok(Answer::Json(json!({ "usr-lst": entries })))
    }

    fn element(&mut self, position: usize) -> Result<Answer> {
        let command = ::redis::cmd("ZRANGE").arg(USR_LST).arg(position).arg(position).clone();
        let keys: Vec<usize> = self.ask(&command)?;
        let k = *keys.first().ok_or_else(missing)?;
        let value: Option<String> = self.ask(::redis::cmd("HGET").arg(USR).arg(k))?;
        Ok(Answer::Json(entry(k, &value.ok_or_else(missing)?)))
    }

    fn create_batch(&mut self, n: usize) -> Result<Effect> {
        let items: Vec<_> = (0..n).map(|i| (item_key(i), value(Some(&leaf_text(i))))).collect();
        self.put(&items, &[], GAP)
    }

    fn create_paths(&mut self, n: usize) -> Result<Effect> {
        self.create_batch(n)
    }

    fn create_ordered(&mut self, n: usize) -> Result<Effect> {
        let entries: Vec<_> = (0..n).map(|i| (i, value(Some(&leaf_text(i))))).collect();
        let mut known = ::redis::pipe();
        known.cmd("ZREVRANGE").arg(USR_LST).arg(0).arg(0).arg("WITHSCORES");
        known.cmd("EXISTS").arg(USR_LST);
        let (last, is_there): (Vec<(usize, f64)>, u64) = self.ask_all(&known)?;
        if is_there > 0 {
            self.refuse_known(&entries)?;
        }
        let last = last.first().map_or(0, |(_, rank)| *rank as u64);
        self.put(&[], &entries, last + GAP)
    }

    fn remove_items(&mut self) -> Result<Effect> {
        let nodes = self.item_nodes()?;
        let _: u64 = self.ask(::redis::cmd("UNLINK").arg(LST))?;
        Ok(self.told.tell(Delivery::removed(nodes)))
    }

    fn remove_tree(&mut self) -> Result<Effect> {
        let items = self.item_nodes()?;
        let mut commit = ::redis::pipe();
        commit.atomic().cmd("UNLINK").arg(CONT).cmd("UNLINK").arg(LST).ignore();
        commit.cmd("UNLINK").arg(USR_LST).ignore().cmd("UNLINK").arg(USR).ignore();
        let (was_there,): (u64,) = self.ask_all(&commit)?;
        Ok(self.told.tell(Delivery::removed(was_there + items)))
    }

    fn create_leaf(&mut self, i: usize, text: &str) -> Result<Effect> {
        let created = self.set(i, "create", Some(text))?;
        Ok(self.told.tell(Delivery::created(created)))
    }

    fn modify_leaf(&mut self, i: usize, text: &str) -> Result<Effect> {
        let changed = self.set(i, "modify", Some(text))?;
        Ok(self.told.tell(Delivery::changed(changed)))
    }

    fn remove_leaf(&mut self, i: usize) -> Result<Effect> {
        let removed = self.set(i, "set", None)?;
        Ok(self.told.tell(Delivery::removed(removed)))
    }

    fn insert_after(&mut self, after: usize, new: usize) -> Result<Effect> {
        self.insert_storm(after, new, 1)
    }

    fn insert_storm(&mut self, after: usize, new: usize, count: usize) -> Result<Effect> {
        let new = (new..new + count).map(|k| (k, value(Some(&leaf_text(k)))));
        self.place(after, new)?;
        Ok(self.told.tell(Delivery::created(3 * count as u64)))
    }

    fn move_last(&mut self, after: usize, n: usize) -> Result<Effect> {
        self.place(after, [(n - 1, "moved".to_owned())].into_iter())?;
        Ok(self.told.tell(Delivery::changed(1)))
    }

    fn remove_element(&mut self, _position: usize, key: usize) -> Result<()> {
        let mut commit = ::redis::pipe();
        commit.atomic().cmd("ZREM").arg(USR_LST).arg(key).cmd("HDEL").arg(USR).arg(key);
        let _: (u64, u64) = self.ask_all(&commit)?;
        Ok(())
    }

    fn export(&mut self, out: &mut Vec<u8>) -> Result<()> {
        let is_there: bool = self.ask(::redis::cmd("EXISTS").arg(CONT))?;
        if !is_there {
            out.extend_from_slice(b"{}");
            return Ok(());
        }
        let items: Vec<(String, String)> = self.ask(::redis::cmd("HGETALL").arg(LST))?;
        let entries = self.entries()?;
        out.extend_from_slice(b"{\"cont\":{");
        for (at, (key, value)) in items.iter().enumerate() {
            out.extend_from_slice(if at == 0 { b"\"lst\":{" } else { b"," });
            let (k1, k2) = keys(key)?;
            write_string(key, out);
            write!(out, ":{{\"k1\":{k1},\"k2\":").expect("a vector takes every write");
            write_string(k2, out);
            write_leaf(value, out);
        }
        out.extend_from_slice(if items.is_empty() { b"" } else { b"}" });
        out.extend_from_slice(if items.is_empty() || entries.is_empty() { b"" } else { b"," });
        for (at, (k, value)) in entries.iter().enumerate() {
            out.extend_from_slice(if at == 0 { b"\"usr-lst\":[" } else { b"," });
            write!(out, "{{\"k\":{k}").expect("a vector takes every write");
            write_leaf(value, out);
        }
        out.extend_from_slice(if entries.is_empty() { b"}}" } else { b"]}}" });
        Ok(())
    }

    fn processes(&self) -> Vec<u32> {
        self.link.server.processes()
    }

    fn memory_bytes(&self) -> Option<u64> {
        self.link.memory_bytes()
    }
}

impl Store {
    /// Item `i`, found by its keys among all.
    fn find(&mut self, i: usize) -> Result<(String, String)> {
        let k2 = numbered("str", i);
        let items: Vec<(String, String)> = self.ask(::redis::cmd("HGETALL").arg(LST))?;
        let is_meant = |key: &str| keys(key).is_ok_and(|found| found == (i as u32, &*k2));
        items.into_iter().find(|(key, _)| is_meant(key)).ok_or_else(missing)
    }

    /// How many fields have changed.
    fn set(&mut self, i: usize, how: &str, leaf: Option<&str>) -> Result<u64> {
        let key = item_key(i);
        let mut call = self.edit.key(LST);
        call.arg(&key).arg(how).arg(value(leaf));
        match call.invoke::<i64>(&mut self.link.connection).map_err(failed)? {
            -1 => Err(missing()),
            -2 => Err(Error::already_exists(format!("item {i} has `l`"))),
            changed => Ok(changed as u64),
        }
    }

    fn place(
        &mut self,
        after: usize,
        entries: impl Iterator<Item = (usize, String)>,
    ) -> Result<()> {
        let mut call = self.insert.key(USR_LST);
        call.key(USR).arg(after).arg(GAP);
        entries.for_each(|(k, value)| {
            call.arg(k).arg(value);
        });
        match call.invoke::<i64>(&mut self.link.connection).map_err(failed)? {
            -1 => Err(missing()),
            _ => Ok(()),
        }
    }

    /// An error, where one of these stands in the list.
    fn refuse_known(&mut self, entries: &[(usize, String)]) -> Result<()> {
        for (k, _) in entries {
            if self.ask::<bool>(::redis::cmd("HEXISTS").arg(USR).arg(*k))? {
                return Err(Error::already_exists(format!("entry {k} stands in `usr-lst`")));
            }
        }
        Ok(())
    }
}

fn tree(key: &str, value: &str) -> Result<Answer> {
    let (k1, k2) = keys(key)?;
    let item = with_leaf(json!({ "k1": k1, "k2": k2 }), value);
    Ok(Answer::Json(json!({ "cont": { "lst": { key: item } } })))
}

fn entry(k: usize, value: &str) -> Value {
    with_leaf(json!({ "k": k }), value)
}

fn with_leaf(mut json: Value, value: &str) -> Value {
    if let Some(leaf) = leaf(value) {
        json["l"] = leaf.into();
    }
    json
}

/// Appends `l`, if there is one, and closes the object that stands open.
fn write_leaf(value: &str, out: &mut Vec<u8>) {
    if let Some(leaf) = leaf(value) {
        out.extend_from_slice(b",\"l\":");
        write_string(leaf, out);
    }
    out.push(b'}');
}

/// The keys of an item by its member name.
fn keys(name: &str) -> Result<(u32, &str)> {
    let keys = name.split_once(',').and_then(|(k1, k2)| Some((k1.parse().ok()?, k2)));
    keys.ok_or_else(|| Error::corrupted(format!("the field `{name}` is no item")))
}
