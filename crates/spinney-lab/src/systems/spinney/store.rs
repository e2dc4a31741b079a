//! An open store as a system under test.

use std::collections::HashSet;
use std::fmt::Write as _;

use spinney::datastores::{CandidateCommit, Datastore};
use spinney::formats::{self, Dialect, Fidelity, JsonWriter, Layout};
use spinney::query::{Query, QueryLimits};
use spinney::schemas::SchemaOptions;
use spinney::{Existing, Map, Snapshot, Transaction, Value};
use spinney_core::{Error, Result};

use super::TREE;
use super::edit::Edit;
use super::opened::Opened;
use super::pushing::Pushing;
use super::shape::{
    ENTRIES, Entry, ITEMS, Item, entry, item, with_ancestors, write_element_path, write_leaf_path,
    write_path,
};
use super::subscriber::Counting;
use crate::answer::Answer;
use crate::datastore::document::item_key;
use crate::datastore::rows::Place;
use crate::system::{Delivery, Durability, Effect, System};

/// The model of the suite: types, required and unknown members; `k1` and `k2` are unique as a key,
/// `k` by a keyword.
const MODEL: &str = include_str!("model.json");

/// An open store.
pub struct Store {
    opened: Opened,
    durability: Durability,
    /// A schema is attached.
    is_judged: bool,
    counting: Vec<Counting>,
    /// What it writes to instead of the tree.
    pushing: Option<Pushing>,
    /// Takes each path text, so that no read or write allocates for it.
    path: String,
}

impl Drop for Store {
    fn drop(&mut self) {
        // Both write to the store, which is emptied after them.
        self.counting.clear();
        drop(self.pushing.take());
    }
}

impl Store {
    /// A store that is empty, and holds an empty document from now on.
    ///
    /// # Errors
    /// Those of writing.
    pub fn new(opened: Opened, durability: Durability) -> Result<Store> {
        let mut store = Store {
            opened,
            durability,
            is_judged: false,
            counting: Vec::new(),
            pushing: None,
            path: String::new(),
        };
        let _: Effect = store.import(b"{}")?;
        Ok(store)
    }

    fn write(
        &mut self,
        mut edit: impl FnMut(&mut Edit<'_, '_, '_>, &mut String) -> Result<()>,
    ) -> Result<Effect> {
        let path = &mut self.path;
        let changed = match &self.pushing {
            Some(pushing) => pushing.write(|layer| edit(layer, path))?,
            None => {
                let committed = self
                    .opened
                    .store
                    .write(|transaction| edit(&mut Edit::Tree(transaction), path))?;
                !committed.diff.is_empty()
            }
        };
        Ok(changed.into())
    }

    /// What is made of the one node that a query for item i finds, and of its path in the tree.
    fn query<T>(
        &self,
        i: usize,
        make: impl FnOnce(&Snapshot, &str, Value) -> Result<T>,
    ) -> Result<T> {
        let query = Query::parse(&format!("$.cont.lst[?@.k1=={i} && @.k2==\"str{i}\"].l"))?;
        let state = self.opened.store.read()?;
        let mut found = state.query(TREE, &query, QueryLimits::default())?;
        let node = found.next().ok_or_else(missing)??.value()?;
        let place = found.location()?.pointer();
        match found.next() {
            None => make(&state, &place, node),
            Some(_) => Err(Error::already_exists(format!("several items are item {i}"))),
        }
    }
}

impl System for Store {
    fn import(&mut self, json: &[u8]) -> Result<Effect> {
        let text = std::str::from_utf8(json)
            .map_err(|error| Error::invalid_input("the text is not UTF-8").with_source(error))?;
        self.write(|edit, _| match edit {
            Edit::Tree(transaction) => transaction.set_with(TREE, Existing::Any, |visitor| {
                formats::read(json, Dialect::Json, visitor)
            }),
            // What is pushed is small, or restored outside the clock.
            Edit::Layer(layer) => layer.set("", &formats::parse(text)?),
        })
    }

    fn judge(&mut self) -> Result<()> {
        self.opened.store.set_schema(TREE, &formats::parse(MODEL)?, SchemaOptions::default())?;
        self.is_judged = true;
        Ok(())
    }

    fn move_to(&mut self, place: Place) -> Result<()> {
        let _: Effect = self.import(b"{}")?;
        self.pushing = match place {
            Place::Running => None,
            Place::Operational => {
                Some(Pushing::begin(&self.opened.store, self.durability != Durability::None)?)
            }
        };
        Ok(())
    }

    fn subscribe(&mut self, count: usize) -> Result<()> {
        self.counting.clear();
        for _ in 0..count {
            let counting = match &self.pushing {
                Some(pushing) => pushing.subscribe()?,
                None => Counting::new(&self.opened.store, TREE)?,
            };
            self.counting.push(counting);
        }
        Ok(())
    }

    fn deliveries(&mut self) -> Result<Vec<Delivery>> {
        self.counting.iter().map(Counting::take).collect()
    }

    fn stage_candidate(
        &mut self,
        items: &mut dyn Iterator<Item = usize>,
        text: &str,
    ) -> Result<()> {
        let items: Vec<usize> = items.collect();
        let path = &mut self.path;
        let text = Value::from(text);
        self.opened.store.datastores()?.edit(Datastore::Candidate, |layer| {
            let mut edit = Edit::Layer(layer);
            items.iter().try_for_each(|&i| {
                write_leaf_path(i, path);
                edit.set(path, &text)
            })
        })?;
        Ok(())
    }

    fn commit_candidate(&mut self) -> Result<Effect> {
        let committed = self.opened.store.datastores()?.commit(&CandidateCommit::default())?;
        Ok((!committed.diff.is_empty()).into())
    }

    fn replace(&mut self, json: &[u8]) -> Result<()> {
        let _: Effect = self.import(json)?;
        Ok(())
    }

    fn leaf(&mut self, i: usize) -> Result<String> {
        write_leaf_path(i, &mut self.path);
        match self.opened.store.read()?.get(&self.path)? {
            Some(Value::String(text)) => Ok(text),
            _ => Err(missing()),
        }
    }

    fn item_tree(&mut self, i: usize) -> Result<Answer> {
        write_path(i, &mut self.path);
        let item = self.opened.store.read()?.get(&self.path)?.ok_or_else(missing)?;
        Ok(Answer::Tree(with_ancestors(&item_key(i), item)))
    }

    fn query_tree(&mut self, i: usize) -> Result<Answer> {
        self.query(i, |state, place, _| {
            let place = place.strip_suffix("/l").ok_or_else(missing)?;
            let item = state.get(&[TREE, place].concat())?.ok_or_else(missing)?;
            let (_, key) = place.rsplit_once('/').ok_or_else(missing)?;
            Ok(Answer::Tree(with_ancestors(key, item)))
        })
    }

    fn query_item(&mut self, i: usize) -> Result<String> {
        self.query(i, |_, _, node| match node {
            Value::String(text) => Ok(text),
            _ => Err(missing()),
        })
    }

    fn range(&mut self, i: usize, count: usize) -> Result<Answer> {
        let state = self.opened.store.read()?;
        let members = state.list(ITEMS, Some(&item_key(i)), Some(count as u64))?;
        let mut items = Map::new();
        for member in members.ok_or_else(missing)? {
            self.path.clear();
            write!(self.path, "{ITEMS}/{}", member.segment).expect("strings take all");
            items.insert(&member.segment, state.get(&self.path)?.ok_or_else(missing)?);
        }
        Ok(Answer::Tree(Value::Map(items)))
    }

    fn provided_tree(&mut self, n: usize) -> Result<Answer> {
        let pushing = self.pushing.as_ref().ok_or_else(missing)?;
        let provider = move || {
            let items = Value::Map((0..n).map(|i| (item_key(i), item(i))).collect());
            Ok(Some(Value::Map([("lst", items)].into_iter().collect())))
        };
        pushing.provided(provider)?.map(Answer::Tree).ok_or_else(missing)
    }

    fn ordered_tree(&mut self) -> Result<Answer> {
        self.opened.store.read()?.get("/running/cont")?.map(Answer::Tree).ok_or_else(missing)
    }

    fn element(&mut self, position: usize) -> Result<Answer> {
        write_element_path(position, &mut self.path);
        self.opened.store.read()?.get(&self.path)?.map(Answer::Tree).ok_or_else(missing)
    }

    fn create_batch(&mut self, n: usize) -> Result<Effect> {
        let items = Value::Map((0..n).map(|i| (item_key(i), item(i))).collect());
        self.write(|edit, path| {
            let Value::Map(members) = &items else { unreachable!("it was made above") };
            if !edit.tree()?.exists(ITEMS)? {
                return edit.set(ITEMS, &items);
            }
            for (key, item) in members.iter() {
                path.clear();
                write!(path, "{ITEMS}/{key}").expect("strings take all");
                edit.set(path, item)?;
            }
            Ok(())
        })
    }

    fn create_paths(&mut self, n: usize) -> Result<Effect> {
        self.write(|edit, path| {
            for i in 0..n {
                write_path(i, path);
                edit.set_as(path, &Item::new(i))?;
            }
            Ok(())
        })
    }

    fn create_ordered(&mut self, n: usize) -> Result<Effect> {
        let is_judged = self.is_judged;
        self.write(|edit, path| {
            let transaction = edit.tree()?;
            if !transaction.exists(ENTRIES)? {
                transaction.set(ENTRIES, &Value::list())?;
            }
            let mut keys = match is_judged {
                true => None,
                false => Some(known_keys(transaction)?),
            };
            for i in 0..n {
                path.clear();
                write!(path, "{ENTRIES}/-").expect("strings take all");
                if keys.as_mut().is_some_and(|keys| !keys.insert(i as u64)) {
                    return Err(Error::already_exists(format!("entry {i} stands in `usr-lst`")));
                }
                transaction.set_as(path, &Entry::new(i))?;
            }
            Ok(())
        })
    }

    fn remove_items(&mut self) -> Result<Effect> {
        self.write(|edit, _| edit.remove(ITEMS))
    }

    fn remove_tree(&mut self) -> Result<Effect> {
        self.write(|edit, _| edit.remove("/running/cont"))
    }

    fn create_leaf(&mut self, i: usize, text: &str) -> Result<Effect> {
        self.write(|edit, path| {
            write_leaf_path(i, path);
            edit.create(path, &text.into())
        })
    }

    fn modify_leaf(&mut self, i: usize, text: &str) -> Result<Effect> {
        self.write(|edit, path| {
            write_leaf_path(i, path);
            edit.tree()?.replace(path, &text.into())
        })
    }

    fn remove_leaf(&mut self, i: usize) -> Result<Effect> {
        self.write(|edit, path| {
            write_leaf_path(i, path);
            edit.remove(path)
        })
    }

    fn insert_after(&mut self, after: usize, new: usize) -> Result<Effect> {
        self.write(|edit, path| {
            write_element_path(after + 1, path);
            edit.tree()?.insert(path, &entry(new))
        })
    }

    fn insert_storm(&mut self, after: usize, new: usize, count: usize) -> Result<Effect> {
        self.write(|edit, path| {
            for new in new..new + count {
                write_element_path(after + 1, path);
                edit.tree()?.insert(path, &entry(new))?;
            }
            Ok(())
        })
    }

    fn move_last(&mut self, after: usize, n: usize) -> Result<Effect> {
        let from = format!("{ENTRIES}/{}", n - 1);
        self.write(|edit, path| {
            write_element_path(after + 1, path);
            edit.tree()?.mv(&from, path)
        })
    }

    fn remove_element(&mut self, position: usize, _key: usize) -> Result<()> {
        let _: Effect = self.write(|edit, path| {
            write_element_path(position, path);
            edit.remove(path)
        })?;
        Ok(())
    }

    fn export(&mut self, out: &mut Vec<u8>) -> Result<()> {
        let (state, root) = match &self.pushing {
            Some(pushing) => (pushing.read()?, ""),
            None => (self.opened.store.read()?, TREE),
        };
        let mut writer = JsonWriter::new(out, Layout::Compact, Fidelity::Refuse);
        if !state.visit(root, &mut writer)? {
            return Err(missing());
        }
        writer.finish()?;
        Ok(())
    }

    fn settle(&mut self) -> Result<Option<u64>> {
        self.opened.settle().map(Some)
    }

    fn processes(&self) -> Vec<u32> {
        self.opened.processes()
    }

    fn memory_bytes(&self) -> Option<u64> {
        self.opened.memory_bytes()
    }
}

/// The `k` of all entries that are stored.
fn known_keys(transaction: &Transaction<'_>) -> Result<HashSet<u64>> {
    let entries = transaction.get(ENTRIES)?;
    let Some(Value::List(entries)) = &entries else { return Err(missing()) };
    entries
        .iter()
        .map(|entry| match entry.pointer("/k") {
            Some(Value::Number(key)) => key.as_u64().ok_or_else(missing),
            _ => Err(missing()),
        })
        .collect()
}

fn missing() -> Error {
    Error::not_found("the store does not hold the node; load the document first")
}
