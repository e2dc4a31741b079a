//! Random commits whose verdicts are compared: by the change, by the whole document, by the oracle.

use fastrand::Rng;
use spinney_core::backend::{Backend, Snapshot};
use spinney_core::read::Stored;
use spinney_core::transaction::Transaction;
use spinney_core::view::View;
use spinney_core::{Memory, Value};
use spinney_schema::{Changes, Document, Schema};

use super::json;

/// A store whose `/doc` is always valid.
pub struct Session<'s> {
    schema: &'s Schema,
    oracle: &'s jsonschema::Validator,
    store: Memory,
    /// What is stored.
    pub document: Value,
}

/// Where edits take new keys and values from.
pub trait Supply {
    /// A key for a map.
    fn key(&self, rng: &mut Rng) -> String;
    /// A value, a large one if that is wanted.
    fn value(&self, rng: &mut Rng, large: bool) -> Value;
}

impl<'s> Session<'s> {
    /// Stores a valid document.
    pub fn new(
        schema: &'s Schema,
        oracle: &'s jsonschema::Validator,
        start: &Value,
    ) -> Session<'s> {
        // Small pages, so that containers have several.
        let store = Memory::with_sizes(256, 64, 1 << 20);
        let session = Session { schema, oracle, store, document: start.clone() };
        session.put_back();
        session
    }

    fn put_back(&self) {
        let mut transaction = Transaction::begin(&self.store).expect("begins");
        transaction.set("/doc", &self.document).expect("sets");
        transaction.commit(0).expect("commits");
    }

    /// Makes one to three edits; tells whether the document is still valid, or how verdicts differ.
    pub fn commit(&mut self, rng: &mut Rng, supply: &impl Supply) -> Result<bool, String> {
        let mut transaction = Transaction::begin(&self.store).expect("begins");
        let mut document = self.document.clone();
        for _ in 0..rng.u32(1..4) {
            edit(rng, supply, &mut transaction, &document);
            document = transaction.get("/doc").expect("reads").expect("is there");
        }
        let before = self.store.snapshot().expect("a snapshot");
        let diff = transaction.commit(0).expect("commits").diff;
        let after = self.store.snapshot().expect("a snapshot");
        let [before, after] = [&before, &after].map(|snapshot| stored(&self.store, &**snapshot));
        let changes = Changes::of_diff(&diff, "/doc").expect("a diff");

        let incremental = self.schema.validate_change(before.as_ref(), after.as_ref(), &changes);
        let incremental = incremental.expect("reads");
        let full = self.schema.validate(&after.as_ref().expect("is there").clone()).expect("reads");
        let in_memory = self.schema.validate(&&document).expect("reads");
        let oracle = self.oracle.is_valid(&json(&document));
        let verdicts = [incremental.is_valid(), full.is_valid(), in_memory.is_valid(), oracle];
        if verdicts.iter().any(|verdict| *verdict != oracle) || full != in_memory {
            return Err(format!(
                "{:?} -> {document:?}: incremental, full, full in memory, oracle: {verdicts:?}\n{changes:?}\n{incremental}\n{full}",
                self.document
            ));
        }
        match oracle {
            true => self.document = document,
            false => self.put_back(),
        }
        Ok(oracle)
    }
}

/// The stored `/doc` at a state.
pub fn stored<'s>(store: &Memory, snapshot: &'s dyn Snapshot) -> Option<Document<Stored<'s>>> {
    let view = View { snapshot, key_len_max: store.capabilities().key_len_max };
    let slot = view.resolve("/doc").expect("resolves");
    let document = |slot| Document::new(Stored::new(view, slot)?);
    slot.map(|slot| document(slot).expect("a node"))
}

/// Every path of a document, the root's first.
pub fn paths(document: &Value) -> Vec<String> {
    let mut found = vec![String::new()];
    let mut at = 0;
    while let Some(path) = found.get(at).cloned() {
        at += 1;
        match document.pointer(&path).expect("it is there") {
            Value::Map(map) => found.extend(map.iter().map(|(key, _)| format!("{path}/{key}"))),
            Value::List(list) => found.extend((0..list.len()).map(|at| format!("{path}/{at}"))),
            _ => {}
        }
    }
    found
}

/// Makes a random edit below `/doc`; one that cannot be made changes nothing.
pub fn edit(
    rng: &mut Rng,
    supply: &impl Supply,
    transaction: &mut Transaction<'_>,
    document: &Value,
) {
    let paths = paths(document);
    // The whole document is not replaced often, unless there is little of it.
    let any = |rng: &mut Rng| match rng.u32(..paths.len().min(20) as u32) {
        0 => String::new(),
        _ => paths[rng.usize(1..paths.len())].clone(),
    };
    let inside = |rng: &mut Rng| {
        let container = any(rng);
        match document.pointer(&container) {
            Some(Value::Map(_)) => Some((false, format!("{container}/{}", supply.key(rng)))),
            Some(Value::List(list)) => {
                Some((true, format!("{container}/{}", rng.usize(..=list.len()))))
            }
            _ => None,
        }
    };
    let value = supply.value(rng, paths.len() < 5);
    let doc = |path: &str| format!("/doc{path}");
    match rng.u32(..10) {
        0..=2 => drop(transaction.set(&doc(&any(rng)), &value)),
        3..=5 => match inside(rng) {
            Some((true, path)) => drop(transaction.insert(&doc(&path), &value)),
            Some((false, path)) => drop(transaction.set(&doc(&path), &value)),
            None => {}
        },
        6 | 7 => {
            let path = any(rng);
            if !path.is_empty() {
                drop(transaction.remove(&doc(&path)));
            }
        }
        8 => {
            let from = any(rng);
            if let Some((_, to)) = inside(rng)
                && !from.is_empty()
            {
                drop(transaction.mv(&doc(&from), &doc(&to)));
            }
        }
        _ => {
            if let Some((_, to)) = inside(rng) {
                drop(transaction.copy(&doc(&any(rng)), &doc(&to)));
            }
        }
    }
}
