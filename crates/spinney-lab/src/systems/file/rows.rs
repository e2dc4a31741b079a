//! The rows of the suite `datastore` as edits of a document.

use std::collections::HashSet;
use std::fs;

use serde_json::{Map, Value, json};
use spinney_core::{Error, Result};

use super::model::{below, judge, nodes};
use super::{Store, io, missing, parse};
use crate::answer::Answer;
use crate::datastore::document::{item_key, leaf_text, numbered, write_item_path};
use crate::system::{Delivery, Effect, System, Told, Undo, undo_by_edit};

impl System for Store {
    fn import(&mut self, json: &[u8]) -> Result<Effect> {
        let root = parse(json)?;
        if self.is_judged {
            judge(&root)?;
        }
        self.file.write(json)?;
        if self.told.is_heard() {
            let _: Effect = self.told.tell(Delivery::created(nodes(&root)));
        }
        Ok(Effect::Changed)
    }

    fn judge(&mut self) -> Result<()> {
        self.is_judged = true;
        Ok(())
    }

    fn told(&mut self) -> Option<&mut Told> {
        Some(&mut self.told)
    }

    fn replace(&mut self, json: &[u8]) -> Result<()> {
        self.file.write(json)?;
        self.keep(self.keeps)
    }

    fn keep(&mut self, kept: bool) -> Result<()> {
        self.keeps = kept;
        self.kept = if kept { Some(self.file.read()?) } else { None };
        Ok(())
    }

    fn undo(&mut self, undo: Undo, json: &[u8]) -> Result<()> {
        // Writing the old text is cheaper than the edit, which would parse it first.
        if self.keeps { undo_by_edit(self, undo, json) } else { self.replace(json) }
    }

    fn leaf(&mut self, i: usize) -> Result<String> {
        self.look(|root| {
            root.get("cont")?.get("lst")?.get(item_key(i))?.get("l")?.as_str().map(str::to_owned)
        })
    }

    fn item_tree(&mut self, i: usize) -> Result<Answer> {
        let key = item_key(i);
        let item = self.look(|root| root.get("cont")?.get("lst")?.get(&key).cloned())?;
        Ok(Answer::Json(json!({ "cont": { "lst": { key: item } } })))
    }

    fn query_tree(&mut self, i: usize) -> Result<Answer> {
        let (key, item) =
            self.look(|root| find(root, i).map(|(key, item)| (key.clone(), item.clone())))?;
        Ok(Answer::Json(json!({ "cont": { "lst": { key: item } } })))
    }

    fn query_item(&mut self, i: usize) -> Result<String> {
        self.look(|root| find(root, i)?.1.get("l")?.as_str().map(str::to_owned))
    }

    fn range(&mut self, i: usize, count: usize) -> Result<Answer> {
        let first = item_key(i);
        self.look(|root| {
            // The map of serde_json is sorted by the texts of its keys, and has no ranges.
            let list = root.get("cont")?.get("lst")?.as_object()?;
            let items = list.iter().filter(|(key, _)| **key >= first).take(count);
            let items = items.map(|(key, item)| (key.clone(), item.clone())).collect();
            Some(Answer::Json(Value::Object(items)))
        })
    }

    fn ordered_tree(&mut self) -> Result<Answer> {
        match &self.kept {
            Some(_) => self.look(|root| root.get("cont").cloned()).map(Answer::Json),
            None => {
                let mut root = self.file.read()?;
                root.get_mut("cont").map(|cont| Answer::Json(cont.take())).ok_or_else(missing)
            }
        }
    }

    fn element(&mut self, position: usize) -> Result<Answer> {
        self.look(|root| root.get("cont")?.get("usr-lst")?.get(position).cloned()).map(Answer::Json)
    }

    fn create_batch(&mut self, n: usize) -> Result<Effect> {
        let items: Map<String, Value> = (0..n).map(|i| (item_key(i), item(i))).collect();
        self.change(|root| {
            let is_new = root.get("cont").is_none();
            let new = items.values().map(nodes).sum::<u64>() + u64::from(is_new);
            member(member(root, "cont")?, "lst")?
                .as_object_mut()
                .expect("`lst` is an object")
                .extend(items);
            Ok(Delivery::created(new))
        })
    }

    fn create_paths(&mut self, n: usize) -> Result<Effect> {
        self.change(|root| {
            let mut new = u64::from(root.get("cont").is_none());
            member(member(root, "cont")?, "lst")?;
            let mut path = String::new();
            for i in 0..n {
                write_item_path(i, &mut path);
                let (parent, key) = path.rsplit_once('/').expect("a path has a last segment");
                let list = root.pointer_mut(parent).and_then(Value::as_object_mut);
                let key = key.replace("~1", "/").replace("~0", "~");
                let item = item(i);
                new += nodes(&item);
                list.ok_or_else(missing)?.insert(key, item);
            }
            Ok(Delivery::created(new))
        })
    }

    fn create_ordered(&mut self, n: usize) -> Result<Effect> {
        self.change(|root| {
            let mut new = u64::from(root.get("cont").is_none());
            let cont = member(root, "cont")?.as_object_mut().expect("`cont` is an object");
            cont.entry("usr-lst").or_insert_with(|| json!([]));
            let keys = |list: &Vec<Value>| list.iter().map(|entry| entry["k"].as_u64()).collect();
            let list = root.pointer("/cont/usr-lst").and_then(Value::as_array);
            let mut known: HashSet<Option<u64>> = list.map(keys).ok_or_else(missing)?;
            for i in 0..n {
                let path = "/cont/usr-lst/-";
                let (parent, _) = path.rsplit_once('/').expect("a path has a last segment");
                let list = root.pointer_mut(parent).and_then(Value::as_array_mut);
                if !known.insert(Some(i as u64)) {
                    return Err(Error::already_exists(format!("entry {i} stands in `usr-lst`")));
                }
                let entry = entry(i);
                new += nodes(&entry);
                list.ok_or_else(missing)?.push(entry);
            }
            Ok(Delivery::created(new))
        })
    }

    fn remove_items(&mut self) -> Result<Effect> {
        self.change(|root| {
            let cont = root.get_mut("cont").and_then(Value::as_object_mut).ok_or_else(missing)?;
            Ok(removed(cont, "lst"))
        })
    }

    fn remove_tree(&mut self) -> Result<Effect> {
        self.change(|root| Ok(removed(root.as_object_mut().ok_or_else(missing)?, "cont")))
    }

    fn create_leaf(&mut self, i: usize, text: &str) -> Result<Effect> {
        self.change(|root| match members(root, i)?.insert("l".into(), text.into()) {
            None => Ok(Delivery::created(1)),
            Some(_) => Err(Error::already_exists(format!("item {i} has `l`"))),
        })
    }

    fn modify_leaf(&mut self, i: usize, text: &str) -> Result<Effect> {
        self.change(|root| {
            let old = members(root, i)?.insert("l".into(), text.into()).ok_or_else(missing)?;
            Ok(Delivery::changed(u64::from(old != text)))
        })
    }

    fn remove_leaf(&mut self, i: usize) -> Result<Effect> {
        self.change(|root| Ok(removed(members(root, i)?, "l")))
    }

    fn insert_after(&mut self, after: usize, new: usize) -> Result<Effect> {
        self.insert_storm(after, new, 1)
    }

    fn insert_storm(&mut self, after: usize, new: usize, count: usize) -> Result<Effect> {
        // All at once: each for itself would move the rest of the array `count` times.
        let entries: Vec<Value> = (new..new + count).rev().map(entry).collect();
        self.change(|root| {
            let new = entries.iter().map(nodes).sum();
            list(root)?.splice(after + 1..after + 1, entries);
            Ok(Delivery::created(new))
        })
    }

    fn move_last(&mut self, after: usize, n: usize) -> Result<Effect> {
        self.change(|root| {
            let list = list(root)?;
            let last = list.remove(n - 1);
            list.insert(after + 1, last);
            Ok(Delivery::changed(1))
        })
    }

    fn remove_element(&mut self, position: usize, _key: usize) -> Result<()> {
        let _: Effect = self.change(|root| {
            let element = list(root)?.remove(position);
            Ok(Delivery::removed(nodes(&element)))
        })?;
        Ok(())
    }

    fn export(&mut self, out: &mut Vec<u8>) -> Result<()> {
        let file = fs::File::open(&self.file.path);
        file.and_then(|mut file| std::io::Read::read_to_end(&mut file, out))
            .map_err(|error| io(error, "read the file"))?;
        Ok(())
    }
}

/// Removes a member, if there is one.
fn removed(members: &mut Map<String, Value>, key: &str) -> Delivery {
    Delivery::removed(members.remove(key).map_or(0, |old| below(key, &old)))
}

/// Item `i` of `lst`, found by its keys among all.
fn find(root: &Value, i: usize) -> Option<(&String, &Value)> {
    let k2 = numbered("str", i);
    let list = root.get("cont")?.get("lst")?.as_object()?;
    list.iter().find(|(_, item)| item["k1"] == i && item["k2"] == *k2)
}

/// The member `key` of an object; an empty object when it is absent.
fn member<'a>(parent: &'a mut Value, key: &str) -> Result<&'a mut Value> {
    let parent = parent.as_object_mut().ok_or_else(missing)?;
    Ok(parent.entry(key).or_insert_with(|| json!({})))
}

fn members(root: &mut Value, i: usize) -> Result<&mut Map<String, Value>> {
    let list = root.get_mut("cont").and_then(|cont| cont.get_mut("lst"));
    list.and_then(|list| list.get_mut(item_key(i))?.as_object_mut()).ok_or_else(missing)
}

fn list(root: &mut Value) -> Result<&mut Vec<Value>> {
    root.pointer_mut("/cont/usr-lst").and_then(Value::as_array_mut).ok_or_else(missing)
}

fn item(i: usize) -> Value {
    json!({ "k1": i, "k2": numbered("str", i), "l": leaf_text(i) })
}

fn entry(i: usize) -> Value {
    json!({ "k": i, "l": leaf_text(i) })
}
