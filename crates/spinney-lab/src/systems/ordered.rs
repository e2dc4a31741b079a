//! Every engine of ordered keys as a peer: one record an item.
//!
//! Design: `lst` has its items under their member names, so that they are in the order of their keys
//! as texts; `usr-lst` has its entries under ranks with gaps of 2^40, eight bytes with the highest
//! first, so that a scan is in the user's order and an insert in the middle is one record; a third
//! table has the rank of each `k`, and keeps it unique. When a gap is used up all ranks are spread again.
//! The presence of `cont` is a record. A list without records and no list are the same. Records are
//! typed (see `record.rs`), so that what the model forbids cannot be stored; who subscribed is called
//! with what each commit changes, and reads the records that a removal of all of them removes.

mod array;
mod documents;
mod record;
mod rows;

use std::collections::HashSet;
use std::path::Path;

use serde_json::Value;
use spinney_core::{Error, Result};

use crate::datastore::document::{item_key, leaf_text, numbered};
use crate::documents::Collection;
use crate::engine::{Engine, EngineFactory, Reader, Records};
use crate::system::{Delivery, Durability, Effect, Factory, Kind, System, Told, Transport};
use crate::throughput::Array;
use documents::Documents;
use record::{Entry, Item};

/// Items by member name.
const LST: usize = 0;
/// Entries by rank.
const USR_LST: usize = 1;
/// Ranks by `k`.
const RANKS: usize = 2;
/// The record of `cont`.
const CONT: usize = 3;

const CONT_KEY: &[u8] = b"cont";

/// Distance between the ranks of appended entries.
const GAP: u64 = 1 << 40;

/// Makes stores of an engine.
pub struct Ordered {
    engine: Box<dyn EngineFactory>,
    design: String,
    documents_design: String,
    array_design: String,
}

impl Ordered {
    /// Stores of this engine.
    pub fn new(engine: Box<dyn EngineFactory>) -> Ordered {
        let design = format!(
            "a typed record per item: `lst` by member name, `usr-lst` by rank with gaps, the rank of \
             each `k`, presence of `cont`; {}",
            engine.design()
        );
        let with_engine = |design: &str| format!("{design}; {}", engine.design());
        let documents_design = with_engine(documents::DESIGN);
        let array_design = with_engine(array::DESIGN);
        Ordered { engine, design, documents_design, array_design }
    }
}

impl Factory for Ordered {
    fn name(&self) -> &str {
        self.engine.name()
    }

    fn transport(&self) -> Transport {
        self.engine.transport()
    }

    fn kind(&self) -> Kind {
        Kind::Peer
    }

    fn design(&self) -> &str {
        &self.design
    }

    fn design_in(&self, suite: &str) -> &str {
        match suite {
            "documents" => &self.documents_design,
            "throughput" => &self.array_design,
            _ => &self.design,
        }
    }

    fn settings(&self, durability: Durability) -> Vec<(String, String)> {
        self.engine.settings(durability)
    }

    fn versions(&self) -> Vec<(String, String)> {
        self.engine.versions()
    }

    fn lacks(&self, durability: Durability) -> Option<String> {
        self.engine.lacks(durability)
    }

    fn open(&self, folder: &Path, durability: Durability) -> Result<Box<dyn System>> {
        Ok(Box::new(Store { engine: self.engine.open(folder, durability)?, told: Told::default() }))
    }

    fn collection(&self, folder: &Path, durability: Durability) -> Result<Box<dyn Collection>> {
        Ok(Box::new(Documents::new(self.engine.open(folder, durability)?)))
    }

    fn array(&self, folder: &Path, durability: Durability) -> Result<Box<dyn Array>> {
        Ok(Box::new(array::Array::new(self.engine.open(folder, durability)?)))
    }
}

struct Store {
    engine: Box<dyn Engine>,
    /// What its subscriber was given.
    told: Told,
}

impl Store {
    /// One commit of an edit, which says what it has changed.
    fn commit(
        &mut self,
        mut edit: impl FnMut(&mut dyn Records) -> Result<Delivery>,
    ) -> Result<Effect> {
        let mut edited = Delivery::default();
        self.engine.write(&mut |records| {
            edited = edit(records)?;
            Ok(())
        })?;
        Ok(self.told.tell(edited))
    }

    fn read<T>(&self, mut ask: impl FnMut(&dyn Reader) -> Result<T>) -> Result<T> {
        let mut answer = None;
        self.engine.read(&mut |reader| {
            answer = Some(ask(reader)?);
            Ok(())
        })?;
        Ok(answer.expect("an engine does the work once"))
    }

    fn insert_items(&mut self, n: usize) -> Result<Effect> {
        self.commit(|records| {
            let mut new = create_cont(records)?;
            let mut bytes = Vec::new();
            for i in 0..n {
                let (k2, l) = (numbered("str", i), leaf_text(i));
                let item = Item { k1: i as u32, k2: &k2, l: Some(&l) };
                item.write(&mut bytes);
                records.put(LST, item_key(i).as_bytes(), &bytes)?;
                new += item.nodes();
            }
            Ok(Delivery::created(new))
        })
    }

    /// Puts what a document holds into the empty store.
    fn insert_document(&mut self, document: &Value) -> Result<Effect> {
        let Some(cont) = document.get("cont") else {
            return self.commit(|_| Ok(Delivery::default()));
        };
        let wrong = || Error::invalid_input("the document is not of the model of the suite");
        self.commit(|records| {
            let mut bytes = Vec::new();
            let mut new = create_cont(records)?;
            for (key, item) in cont["lst"].as_object().into_iter().flatten() {
                let item = Item::of_json(item).ok_or_else(wrong)?;
                item.write(&mut bytes);
                records.put(LST, key.as_bytes(), &bytes)?;
                new += item.nodes();
            }
            for (at, entry) in cont["usr-lst"].as_array().into_iter().flatten().enumerate() {
                let entry = Entry::of_json(entry).ok_or_else(wrong)?;
                new += put_entry(records, (at as u64 + 1) * GAP, entry, &mut bytes)?;
            }
            Ok(Delivery::created(new))
        })
    }

    /// Gives item `i` this text as `l`, or none, if `change` says for the present one what that changes.
    fn set_leaf(
        &mut self,
        i: usize,
        text: Option<&str>,
        change: impl Fn(Option<&str>) -> Result<Delivery>,
    ) -> Result<Effect> {
        let key = item_key(i);
        self.commit(|records| {
            let (mut old, mut new) = (Vec::new(), Vec::new());
            if !records.get(LST, key.as_bytes(), &mut old)? {
                return Err(missing());
            }
            let item = Item::read(&old)?;
            let changed = change(item.l)?;
            if !changed.is_empty() {
                Item { l: text, ..item }.write(&mut new);
                records.put(LST, key.as_bytes(), &new)?;
            }
            Ok(changed)
        })
    }
}

/// Makes `cont`, if it is not there; the nodes that are new.
fn create_cont(records: &mut dyn Records) -> Result<u64> {
    if records.get(CONT, CONT_KEY, &mut Vec::new())? {
        return Ok(0);
    }
    records.put(CONT, CONT_KEY, b"")?;
    Ok(1)
}

/// Puts an entry, whose `k` must not be there, under a rank; its nodes.
fn put_entry(
    records: &mut dyn Records,
    rank: u64,
    entry: Entry<'_>,
    bytes: &mut Vec<u8>,
) -> Result<u64> {
    if records.get(RANKS, &entry.k.to_be_bytes(), bytes)? {
        return Err(Error::already_exists(format!("entry {} stands in `usr-lst`", entry.k)));
    }
    entry.write(bytes);
    records.put(USR_LST, &rank.to_be_bytes(), bytes)?;
    records.put(RANKS, &entry.k.to_be_bytes(), &rank.to_be_bytes())?;
    Ok(entry.nodes())
}

/// Reads each item for who subscribed, and counts its nodes; without one, tells whether there is any.
fn item_nodes(reader: &dyn Reader, is_told: bool) -> Result<u64> {
    let mut nodes = 0;
    reader.scan(LST, b"", &mut |_, value| {
        nodes += Item::read(value)?.nodes();
        Ok(is_told)
    })?;
    Ok(nodes)
}

fn rank_of(reader: &dyn Reader, k: usize) -> Result<u64> {
    let mut rank = Vec::new();
    match reader.get(RANKS, &(k as u32).to_be_bytes(), &mut rank)? {
        true => rank_at(&rank),
        false => Err(missing()),
    }
}

fn rank_at(bytes: &[u8]) -> Result<u64> {
    let bytes = bytes.try_into().map_err(|_| Error::corrupted("a rank is not 8 bytes long"))?;
    Ok(u64::from_be_bytes(bytes))
}

/// The rank of entry `k`, and a step of which `count` end before the next entry; spreads all ranks in
/// a commit of their own when there is none.
fn gap_after(store: &mut Store, k: usize, count: usize) -> Result<(u64, u64)> {
    loop {
        let (rank, next) = store.read(|reader| {
            let rank = rank_of(reader, k)?;
            let mut next = None;
            reader.scan(USR_LST, &(rank + 1).to_be_bytes(), &mut |key, _| {
                next = Some(rank_at(key)?);
                Ok(false)
            })?;
            Ok((rank, next))
        })?;
        let count = count as u64;
        match next {
            None => return Ok((rank, GAP)),
            Some(next) if next - rank > count => return Ok((rank, (next - rank) / (count + 1))),
            Some(_) if count >= GAP => {
                return Err(Error::unsupported("more entries at one spot than a gap holds"));
            }
            Some(_) => spread_ranks(store)?,
        }
    }
}

fn spread_ranks(store: &mut Store) -> Result<()> {
    let mut entries = Vec::new();
    store.read(|reader| {
        reader.scan(USR_LST, b"", &mut |key, value| {
            entries.push((key.to_vec(), value.to_vec()));
            Ok(true)
        })
    })?;
    let rank = |at: usize| (at as u64 + 1) * GAP;
    let new: HashSet<[u8; 8]> = (0..entries.len()).map(|at| rank(at).to_be_bytes()).collect();
    let _: Effect = store.commit(|records| {
        for (old, _) in entries.iter().filter(|(old, _)| !new.contains(&**old)) {
            records.delete(USR_LST, old)?;
        }
        for (at, (_, value)) in entries.iter().enumerate() {
            let rank = rank(at).to_be_bytes();
            records.put(USR_LST, &rank, value)?;
            records.put(RANKS, &Entry::read(value)?.k.to_be_bytes(), &rank)?;
        }
        Ok(Delivery::default())
    })?;
    Ok(())
}

fn missing() -> Error {
    Error::not_found("the store does not hold the entry; load the document first")
}
