//! The peer `file`: one JSON file, changed by reading, parsing, editing, printing and replacing it.
//!
//! Design: compact JSON in `store.json`, parsed by serde_json to its `Value`. The user-ordered list
//! is an array, the keyed list an object. A commit writes `store.json.new`, syncs it, renames it
//! over the old file and syncs the folder, so that a crash leaves the old or the new document;
//! below `durable` it leaves both syncs out. Import parses the text as a check and stores it as it
//! came; export copies the file. In `cached` rows the parsed tree stays in memory, and a commit
//! prints and writes only. Where the configuration is judged, each commit walks the whole document
//! once, and who subscribed is called with what was removed and put there. What survives the process does so at each level: `none` is `process`.

use std::collections::HashSet;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use spinney_core::{Error, Result};

use crate::answer::Answer;
use crate::datastore::document::{item_key, leaf_text, numbered, write_item_path};
use crate::system::{Delivery, Durability, Effect, Factory, Kind, System, Undo, undo_by_edit};

mod documents;
mod model;

use crate::documents::Collection;
use documents::Documents;
use model::{below, judge, nodes};

const DESIGN: &str = "one JSON file: read, parse with serde_json, change, print compact, write a \
    temporary file, fsync, rename, fsync the folder; below `durable` without the two syncs";

/// Makes stores that are one JSON file.
pub struct File;

impl Factory for File {
    fn name(&self) -> &str {
        "file"
    }

    fn kind(&self) -> Kind {
        Kind::Peer
    }

    fn design(&self) -> &str {
        DESIGN
    }

    fn settings(&self, durability: Durability) -> Vec<(String, String)> {
        let syncs = match durability {
            Durability::Durable => "file and folder",
            Durability::Process | Durability::None => "none; a commit survives the process",
        };
        vec![("syncs".into(), syncs.into())]
    }

    fn versions(&self) -> Vec<(String, String)> {
        vec![("serde_json".into(), crate::SERDE_JSON_VERSION.into())]
    }

    fn lacks(&self, _durability: Durability) -> Option<String> {
        None
    }

    fn open(&self, folder: &Path, durability: Durability) -> Result<Box<dyn System>> {
        let store = Store {
            file: Place::new(folder, durability)?,
            keeps: false,
            kept: None,
            is_judged: false,
            given: None,
        };
        store.file.write(b"{}")?;
        Ok(Box::new(store))
    }

    fn design_in(&self, suite: &str) -> &str {
        match suite {
            "documents" => documents::DESIGN,
            _ => DESIGN,
        }
    }

    fn collection(&self, folder: &Path, durability: Durability) -> Result<Box<dyn Collection>> {
        Ok(Box::new(Documents::new(Place::new(folder, durability)?)?))
    }
}

/// Where the file is, and how it is replaced.
struct Place {
    path: PathBuf,
    temporary: PathBuf,
    folder: fs::File,
    durability: Durability,
}

impl Place {
    fn new(folder: &Path, durability: Durability) -> Result<Place> {
        Ok(Place {
            path: folder.join("store.json"),
            temporary: folder.join("store.json.new"),
            folder: fs::File::open(folder).map_err(|error| io(error, "open the folder"))?,
            durability,
        })
    }

    fn read(&self) -> Result<Value> {
        let text = fs::read(&self.path).map_err(|error| io(error, "read the file"))?;
        parse(&text)
    }

    fn write(&self, text: &[u8]) -> Result<()> {
        let syncs = self.durability == Durability::Durable;
        let written = fs::File::create(&self.temporary).and_then(|mut file| {
            file.write_all(text)?;
            if syncs { file.sync_all() } else { Ok(()) }
        });
        written.map_err(|error| io(error, "write the temporary file"))?;
        fs::rename(&self.temporary, &self.path).map_err(|error| io(error, "rename the file"))?;
        if syncs {
            self.folder.sync_all().map_err(|error| io(error, "sync the folder"))?;
        }
        Ok(())
    }
}

struct Store {
    file: Place,
    keeps: bool,
    kept: Option<Value>,
    is_judged: bool,
    /// What its subscriber was given.
    given: Option<Delivery>,
}

impl Store {
    fn look<T>(&self, answer: impl Fn(&Value) -> Option<T>) -> Result<T> {
        let answer = match &self.kept {
            Some(root) => answer(root),
            None => answer(&self.file.read()?),
        };
        answer.ok_or_else(missing)
    }

    /// One commit of an edit, which says what it has changed.
    fn change(&mut self, edit: impl FnOnce(&mut Value) -> Result<Delivery>) -> Result<Effect> {
        let mut root = match self.kept.take() {
            Some(root) => root,
            None => self.file.read()?,
        };
        let edited = edit(&mut root)?;
        let effect = Effect::from(!edited.is_empty());
        if effect == Effect::Changed {
            if self.is_judged {
                judge(&root)?;
            }
            let text = serde_json::to_vec(&root).expect("a `Value` prints");
            self.file.write(&text)?;
            self.tell(edited);
        }
        if self.keeps {
            self.kept = Some(root);
        }
        Ok(effect)
    }

    fn tell(&mut self, edited: Delivery) {
        if let Some(given) = &mut self.given {
            given.add(edited);
        }
    }
}

impl System for Store {
    fn import(&mut self, json: &[u8]) -> Result<Effect> {
        let root = parse(json)?;
        if self.is_judged {
            judge(&root)?;
        }
        self.file.write(json)?;
        if self.given.is_some() {
            self.tell(Delivery::created(nodes(&root)));
        }
        Ok(Effect::Changed)
    }

    fn judge(&mut self) -> Result<()> {
        self.is_judged = true;
        Ok(())
    }

    fn subscribe(&mut self, count: usize) -> Result<()> {
        self.given = (count > 0).then(Delivery::default);
        Ok(())
    }

    fn deliveries(&mut self) -> Result<Vec<Delivery>> {
        Ok(self.given.iter_mut().map(std::mem::take).collect())
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

fn parse(text: &[u8]) -> Result<Value> {
    serde_json::from_slice(text)
        .map_err(|error| Error::invalid_input("the text is not JSON").with_source(error))
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

fn missing() -> Error {
    Error::not_found("the file does not hold the node; load the document first")
}

fn io(error: std::io::Error, action: &str) -> Error {
    Error::io(format!("peer `file` could not {action}")).with_source(error)
}
