//! A reference system in memory, which does each row in the plainest way, for the lab's own tests.

use std::path::Path;

use serde_json::{Value, json};
use spinney_core::{Error, Result};
use spinney_lab::answer::Answer;
use spinney_lab::datastore::document::{item_key, leaf_text};
use spinney_lab::system::{Durability, Effect, Factory, Kind, System};

/// What a reference does wrong on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing.
    None,
    /// It forgets one item of a batch.
    ForgetsItem,
    /// It acknowledges changes that it does not make.
    ChangesNothing,
    /// It calls commits durable that it does not sync.
    NeverSyncs,
}

/// Makes references.
pub struct Reference(pub Fault);

impl Factory for Reference {
    fn name(&self) -> &str {
        "reference"
    }

    fn kind(&self) -> Kind {
        Kind::Backend
    }

    fn design(&self) -> &str {
        "a serde_json value in memory"
    }

    fn settings(&self, _durability: Durability) -> Vec<(String, String)> {
        Vec::new()
    }

    fn versions(&self) -> Vec<(String, String)> {
        Vec::new()
    }

    fn lacks(&self, durability: Durability) -> Option<String> {
        (durability != Durability::None && self.0 != Fault::NeverSyncs)
            .then(|| "not persistent".to_owned())
    }

    fn open(&self, _folder: &Path, _durability: Durability) -> Result<Box<dyn System>> {
        Ok(Box::new(Store { root: json!({}), fault: self.0, removed: None }))
    }
}

struct Store {
    root: Value,
    fault: Fault,
    removed: Option<Value>,
}

impl Store {
    fn item(&mut self, i: usize) -> Result<&mut serde_json::Map<String, Value>> {
        let item = self.root["cont"]["lst"][item_key(i)].as_object_mut();
        item.ok_or_else(|| Error::not_found("no such item"))
    }

    fn list(&mut self) -> &mut Vec<Value> {
        let list = &mut self.root["cont"]["usr-lst"];
        if list.is_null() {
            *list = json!([]);
        }
        list.as_array_mut().expect("a list")
    }
}

fn entry(i: usize) -> Value {
    json!({ "k": i, "l": leaf_text(i) })
}

impl System for Store {
    fn import(&mut self, json: &[u8]) -> Result<Effect> {
        self.replace(json)?;
        Ok(Effect::Changed)
    }

    fn replace(&mut self, json: &[u8]) -> Result<()> {
        self.root = serde_json::from_slice(json).expect("JSON");
        Ok(())
    }

    fn leaf(&mut self, i: usize) -> Result<String> {
        Ok(self.item(i)?["l"].as_str().expect("a text").to_owned())
    }

    fn item_tree(&mut self, i: usize) -> Result<Answer> {
        let item = self.item(i)?.clone();
        Ok(Answer::Json(json!({ "cont": { "lst": { item_key(i): item } } })))
    }

    fn query_tree(&mut self, i: usize) -> Result<Answer> {
        self.item_tree(i)
    }

    fn query_item(&mut self, i: usize) -> Result<String> {
        self.leaf(i)
    }

    fn range(&mut self, i: usize, count: usize) -> Result<Answer> {
        let list = self.root["cont"]["lst"].as_object().expect("a map");
        let items = list.iter().filter(|(key, _)| **key >= item_key(i)).take(count);
        let items = items.map(|(key, item)| (key.clone(), item.clone())).collect();
        Ok(Answer::Json(Value::Object(items)))
    }

    fn ordered_tree(&mut self) -> Result<Answer> {
        Ok(Answer::Json(self.root["cont"].clone()))
    }

    fn element(&mut self, position: usize) -> Result<Answer> {
        Ok(Answer::Json(self.list()[position].clone()))
    }

    fn create_batch(&mut self, n: usize) -> Result<Effect> {
        let n = if self.fault == Fault::ForgetsItem { n - 1 } else { n };
        for i in 0..n {
            let item = json!({ "k1": i, "k2": format!("str{i}"), "l": leaf_text(i) });
            self.root["cont"]["lst"][item_key(i)] = item;
        }
        Ok(Effect::Changed)
    }

    fn create_paths(&mut self, n: usize) -> Result<Effect> {
        self.create_batch(n)
    }

    fn create_ordered(&mut self, n: usize) -> Result<Effect> {
        self.list().extend((0..n).map(entry));
        Ok(Effect::Changed)
    }

    fn remove_items(&mut self) -> Result<Effect> {
        Ok(self.root["cont"].as_object_mut().expect("a map").remove("lst").is_some().into())
    }

    fn remove_tree(&mut self) -> Result<Effect> {
        self.removed = self.root.as_object_mut().expect("a map").remove("cont");
        Ok(self.removed.is_some().into())
    }

    fn create_leaf(&mut self, i: usize, text: &str) -> Result<Effect> {
        Ok(self.item(i)?.insert("l".into(), text.into()).is_none().into())
    }

    fn modify_leaf(&mut self, i: usize, text: &str) -> Result<Effect> {
        if self.fault == Fault::ChangesNothing {
            return Ok(Effect::Unchanged);
        }
        Ok(self.item(i)?.insert("l".into(), text.into()).is_some().into())
    }

    fn remove_leaf(&mut self, i: usize) -> Result<Effect> {
        Ok(self.item(i)?.remove("l").is_some().into())
    }

    fn insert_after(&mut self, after: usize, new: usize) -> Result<Effect> {
        self.list().insert(after + 1, entry(new));
        Ok(Effect::Changed)
    }

    fn insert_storm(&mut self, after: usize, new: usize, count: usize) -> Result<Effect> {
        for new in new..new + count {
            self.list().insert(after + 1, entry(new));
        }
        Ok(Effect::Changed)
    }

    fn move_last(&mut self, after: usize, n: usize) -> Result<Effect> {
        let last = self.list().remove(n - 1);
        self.list().insert(after + 1, last);
        Ok(Effect::Changed)
    }

    fn remove_element(&mut self, position: usize, _key: usize) -> Result<()> {
        self.list().remove(position);
        Ok(())
    }

    fn export(&mut self, out: &mut Vec<u8>) -> Result<()> {
        out.extend_from_slice(self.root.to_string().as_bytes());
        Ok(())
    }

    fn settle(&mut self) -> Result<Option<u64>> {
        Ok(Some(self.removed.take().map_or(0, |value| value.to_string().len() as u64)))
    }

    fn memory_bytes(&self) -> Option<u64> {
        Some(self.root.to_string().len() as u64)
    }
}
