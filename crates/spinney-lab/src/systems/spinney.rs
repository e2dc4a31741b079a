//! Spinney itself, a factory a backend, through its public interface and with its defaults.
//!
//! Design: the document is the tree `/running`. Each read takes a fresh snapshot and parses its
//! path. Each write is one transaction; its paths are built and parsed inside the clock. A batch is
//! one `Value`, built in the clock, where `lst` is absent, and item by item where it is not. The
//! ordered list is a list of entries, and keeping `k` unique is left to the writer: it holds the
//! keys that it knows in a hash set, filled from the stored list, for the time of the transaction.
//! Nothing decoded is kept, so `cached` rows do the same as the others. The store reclaims removed
//! subtrees by itself in the background; `settle` waits for that.

use std::collections::{BTreeSet, HashSet};
use std::fmt::Write as _;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use spinney::formats::{self, Dialect, Fidelity, JsonWriter, Layout};
use spinney::{Existing, Map, OpenOptions, Transaction, Value};
use spinney_core::{Error, Result};

use crate::answer::Answer;
use crate::datastore::document::{item_key, leaf_text, numbered, push_item_key};
use crate::system::{Durability, Effect, Factory, Kind, System};

const DESIGN: &str = "the tree `/running`; reads: a fresh snapshot, a path text; writes: one \
    transaction of path texts; the list is user-ordered, the writer keeps `k` unique with a hash \
    set; nothing decoded is kept; reclaim runs in the background";

/// The tree that holds the document.
const TREE: &str = "/running";
const ITEMS: &str = "/running/cont/lst";
const ENTRIES: &str = "/running/cont/usr-lst";

/// Makes stores on one backend.
pub struct Spinney {
    backend: Backend,
}

#[derive(Clone, PartialEq, Eq)]
enum Backend {
    Memory,
    Lmdb,
    Fjall,
    Json,
    Server {
        name: &'static str,
        /// Where stores may be made, `bench-1` and so on; they must be empty, and are emptied again.
        url: Option<String>,
    },
}

impl Spinney {
    /// Stores that live in this process.
    pub fn memory() -> Spinney {
        Spinney { backend: Backend::Memory }
    }

    /// Stores in a folder, on LMDB.
    pub fn lmdb() -> Spinney {
        Spinney { backend: Backend::Lmdb }
    }

    /// Stores in a folder, on fjall.
    pub fn fjall() -> Spinney {
        Spinney { backend: Backend::Fjall }
    }

    /// Stores on a server; without a URL it is skipped.
    pub fn server(name: &'static str, url: Option<&str>) -> Spinney {
        Spinney { backend: Backend::Server { name, url: url.map(str::to_owned) } }
    }

    /// Documents in memory with a journal, beside a JSON file in a folder.
    pub fn json() -> Spinney {
        Spinney { backend: Backend::Json }
    }
}

impl Factory for Spinney {
    fn name(&self) -> &str {
        match self.backend {
            Backend::Memory => "memory",
            Backend::Lmdb => "lmdb",
            Backend::Fjall => "fjall",
            Backend::Json => "json",
            Backend::Server { name, .. } => name,
        }
    }

    fn label(&self) -> Option<&str> {
        matches!(self.backend, Backend::Server { .. }).then_some("socket")
    }

    fn kind(&self) -> Kind {
        Kind::Backend
    }

    fn design(&self) -> &str {
        DESIGN
    }

    fn settings(&self, durability: Durability) -> Vec<(String, String)> {
        let answer = match (&self.backend, durability) {
            (Backend::Memory, _) => "in memory",
            (Backend::Server { .. }, Durability::Durable) => "the server says that it is durable",
            (Backend::Server { .. }, _) => "the server has it",
            (_, Durability::None) => "staged in memory, written and synced from 50 ms later on",
            (_, Durability::Process) => "written to the journal, synced from 50 ms later on",
            _ => "synced",
        };
        vec![("answered when".into(), answer.into())]
    }

    fn versions(&self) -> Vec<(String, String)> {
        Vec::new()
    }

    fn lacks(&self, durability: Durability) -> Option<String> {
        match (&self.backend, durability) {
            (Backend::Server { name, url: None }, _) => {
                Some(format!("no server was named; write `{name}=URL`"))
            }
            (Backend::Memory, Durability::Durable | Durability::Process) => {
                Some("it lives in memory".to_owned())
            }
            _ => None,
        }
    }

    fn open(&self, folder: &Path, durability: Durability) -> Result<Box<dyn System>> {
        let level = match durability {
            Durability::Durable => spinney::Durability::Durable,
            Durability::Process => spinney::Durability::Process,
            Durability::None => spinney::Durability::None,
        };
        let is_shared = matches!(self.backend, Backend::Server { .. });
        let place = is_shared.then(Place::take);
        let url = match &self.backend {
            Backend::Memory => "memory:".to_owned(),
            Backend::Lmdb => format!("lmdb:{}", folder.display()),
            Backend::Fjall => format!("fjall:{}", folder.display()),
            Backend::Server { url, .. } => {
                let url = url.as_deref().ok_or_else(missing)?;
                let separator = if url.contains('?') { '&' } else { '?' };
                format!("{url}{separator}store=bench-{}", place.as_ref().map_or(0, |place| place.0))
            }
            Backend::Json => format!("json:{}", folder.join("store.json").display()),
        };
        let opened = OpenOptions::new().durability(level).open(&url)?;
        if is_shared && opened.read()?.count("")? != Some(0) {
            return Err(Error::already_exists(format!(
                "the store `{}` is not empty; the lab writes and empties it",
                spinney::network::redacted(&url)
            )));
        }
        let mut store = Store {
            store: opened,
            in_memory: self.backend == Backend::Memory,
            place,
            path: String::new(),
        };
        store.replace(b"{}")?;
        Ok(Box::new(store))
    }
}

/// The number of a store on a server, which no other one has while it is open.
struct Place(u32);

static TAKEN: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());

impl Place {
    fn take() -> Place {
        let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
        let free = (1..).find(|number| !taken.contains(number)).unwrap_or_default();
        taken.insert(free);
        Place(free)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        TAKEN.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.0);
    }
}

struct Store {
    store: spinney::Store,
    in_memory: bool,
    /// It lives on a server, where nothing may be left.
    place: Option<Place>,
    /// Takes each path text, so that no read or write allocates for it.
    path: String,
}

impl Drop for Store {
    fn drop(&mut self) {
        if self.place.is_some() {
            // A server that is gone has nothing to be cleaned.
            let _ = self.store.write(|transaction| transaction.remove(TREE));
            let _ = self.store.forget_before(u64::MAX).and_then(|_| self.store.reclaim());
        }
    }
}

impl Store {
    fn write(
        &mut self,
        mut edit: impl FnMut(&mut Transaction<'_>, &mut String) -> Result<()>,
    ) -> Result<Effect> {
        let path = &mut self.path;
        let committed = self.store.write(|transaction| edit(transaction, path))?;
        Ok((!committed.diff.is_empty()).into())
    }

    /// Bytes of the engine's pages in use, or `None` where there are no pages.
    fn used_bytes(&self) -> Result<Option<u64>> {
        let stats = self.store.stats()?;
        let number = |wanted: &str| {
            let (_, text) = stats.iter().find(|(name, _)| name == wanted)?;
            text.parse::<u64>().ok()
        };
        Ok((|| {
            let pages = number("engine pages")? - number("engine pages free")?;
            Some(pages * number("engine page bytes")?)
        })())
    }
}

impl System for Store {
    fn import(&mut self, json: &[u8]) -> Result<Effect> {
        self.write(|transaction, _| {
            transaction.set_with(TREE, Existing::Any, |visitor| {
                formats::read(json, Dialect::Json, visitor)
            })
        })
    }

    fn replace(&mut self, json: &[u8]) -> Result<()> {
        let _: Effect = self.import(json)?;
        Ok(())
    }

    fn leaf(&mut self, i: usize) -> Result<String> {
        write_leaf_path(i, &mut self.path);
        match self.store.read()?.get(&self.path)? {
            Some(Value::String(text)) => Ok(text),
            _ => Err(missing()),
        }
    }

    fn item_tree(&mut self, i: usize) -> Result<Answer> {
        write_path(i, &mut self.path);
        let item = self.store.read()?.get(&self.path)?.ok_or_else(missing)?;
        let within = |key: &str, value: Value| {
            let mut map = Map::new();
            map.insert(key, value);
            Value::Map(map)
        };
        Ok(Answer::Tree(within("cont", within("lst", within(&item_key(i), item)))))
    }

    fn ordered_tree(&mut self) -> Result<Answer> {
        self.store.read()?.get("/running/cont")?.map(Answer::Tree).ok_or_else(missing)
    }

    fn element(&mut self, position: usize) -> Result<Answer> {
        write_element_path(position, &mut self.path);
        self.store.read()?.get(&self.path)?.map(Answer::Tree).ok_or_else(missing)
    }

    fn create_batch(&mut self, n: usize) -> Result<Effect> {
        let items = Value::Map((0..n).map(|i| (item_key(i), item(i))).collect());
        self.write(|transaction, path| {
            let Value::Map(members) = &items else { unreachable!("it was made above") };
            if !transaction.exists(ITEMS)? {
                return transaction.set(ITEMS, &items);
            }
            for (key, item) in members.iter() {
                path.clear();
                write!(path, "{ITEMS}/{key}").expect("strings take all");
                transaction.set(path, item)?;
            }
            Ok(())
        })
    }

    fn create_paths(&mut self, n: usize) -> Result<Effect> {
        self.write(|transaction, path| {
            for i in 0..n {
                write_path(i, path);
                transaction.set(path, &item(i))?;
            }
            Ok(())
        })
    }

    fn create_ordered(&mut self, n: usize) -> Result<Effect> {
        self.write(|transaction, path| {
            if !transaction.exists(ENTRIES)? {
                transaction.set(ENTRIES, &Value::list())?;
            }
            let mut keys = known_keys(transaction)?;
            for i in 0..n {
                path.clear();
                write!(path, "{ENTRIES}/-").expect("strings take all");
                if !keys.insert(i as u64) {
                    return Err(Error::already_exists(format!("entry {i} stands in `usr-lst`")));
                }
                transaction.set(path, &entry(i))?;
            }
            Ok(())
        })
    }

    fn remove_items(&mut self) -> Result<Effect> {
        self.write(|transaction, _| transaction.remove(ITEMS).map(drop))
    }

    fn remove_tree(&mut self) -> Result<Effect> {
        self.write(|transaction, _| transaction.remove("/running/cont").map(drop))
    }

    fn create_leaf(&mut self, i: usize, text: &str) -> Result<Effect> {
        self.write(|transaction, path| {
            write_leaf_path(i, path);
            transaction.create(path, &text.into())
        })
    }

    fn modify_leaf(&mut self, i: usize, text: &str) -> Result<Effect> {
        self.write(|transaction, path| {
            write_leaf_path(i, path);
            transaction.replace(path, &text.into())
        })
    }

    fn remove_leaf(&mut self, i: usize) -> Result<Effect> {
        self.write(|transaction, path| {
            write_leaf_path(i, path);
            transaction.remove(path).map(drop)
        })
    }

    fn insert_after(&mut self, after: usize, new: usize) -> Result<Effect> {
        self.write(|transaction, path| {
            write_element_path(after + 1, path);
            transaction.insert(path, &entry(new))
        })
    }

    fn insert_storm(&mut self, after: usize, new: usize, count: usize) -> Result<Effect> {
        self.write(|transaction, path| {
            for new in new..new + count {
                write_element_path(after + 1, path);
                transaction.insert(path, &entry(new))?;
            }
            Ok(())
        })
    }

    fn remove_element(&mut self, position: usize, _key: usize) -> Result<()> {
        let _: Effect = self.write(|transaction, path| {
            write_element_path(position, path);
            transaction.remove(path).map(drop)
        })?;
        Ok(())
    }

    fn export(&mut self, out: &mut Vec<u8>) -> Result<()> {
        let snapshot = self.store.read()?;
        let mut writer = JsonWriter::new(out, Layout::Compact, Fidelity::Refuse);
        if !snapshot.visit(TREE, &mut writer)? {
            return Err(missing());
        }
        writer.finish()?;
        Ok(())
    }

    fn settle(&mut self) -> Result<Option<u64>> {
        // What is in the journal is not yet in the pages that are counted.
        self.store.checkpoint()?;
        let before = self.used_bytes()?;
        self.store.wait_until_reclaimed();
        self.store.reclaim()?;
        self.store.checkpoint()?;
        let after = self.used_bytes()?;
        Ok(Some(before.zip(after).map_or(0, |(before, after)| before.saturating_sub(after))))
    }

    fn memory_bytes(&self) -> Option<u64> {
        // What the records of the store hold is not counted.
        self.in_memory.then_some(0)
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

fn write_path(i: usize, path: &mut String) {
    path.clear();
    path.push_str(ITEMS);
    path.push('/');
    push_item_key(i, path);
}

fn write_leaf_path(i: usize, path: &mut String) {
    write_path(i, path);
    path.push_str("/l");
}

fn write_element_path(position: usize, path: &mut String) {
    path.clear();
    write!(path, "{ENTRIES}/{position}").expect("strings take all");
}

fn item(i: usize) -> Value {
    let mut map = Map::new();
    map.insert("k1", i as u64);
    map.insert("k2", numbered("str", i));
    map.insert("l", leaf_text(i));
    Value::Map(map)
}

fn entry(i: usize) -> Value {
    let mut map = Map::new();
    map.insert("k", i as u64);
    map.insert("l", leaf_text(i));
    Value::Map(map)
}

fn missing() -> Error {
    Error::not_found("the store does not hold the node; load the document first")
}
