//! Random commits over random schemas: what the change says, what the whole document says and what
//! the `jsonschema` crate says is the same.
//!
//! `SPINNEY_TEST_SCHEMA_EDITS` sets how many commits there are, `SPINNEY_TEST_SEED` the seed.

mod common;
#[path = "common/random.rs"]
mod random;

use common::{json, value};
use fastrand::Rng;
use spinney_core::backend::{Backend, Snapshot};
use spinney_core::transaction::Transaction;
use spinney_core::view::View;
use spinney_core::{Memory, Value};
use spinney_schema::{Changes, Documents, Options, Schema, Stored};

/// Commits in `make test`.
const EDITS: usize = 200_000;
/// Commits that one schema sees.
const EDITS_PER_SCHEMA: usize = 100;
const THREADS: u64 = 2;

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|text| text.parse().expect("a number"))
}

#[derive(Default)]
struct Seen {
    schemas: usize,
    /// Nodes of all documents.
    nodes: usize,
    valid: usize,
    invalid: usize,
}

#[test]
fn incremental_verdict_is_the_full_one() {
    let seed = number("SPINNEY_TEST_SEED").unwrap_or_else(|| fastrand::u64(..));
    let edits = number("SPINNEY_TEST_SCHEMA_EDITS").map_or(EDITS, |edits| edits as usize);
    println!("seed {seed}, {edits} commits");
    let seen: Vec<Seen> = std::thread::scope(|scope| {
        let run = |thread| move || run(&mut Rng::with_seed(seed ^ thread), edits / THREADS as usize);
        let threads: Vec<_> = (0..THREADS).map(|thread| scope.spawn(run(thread))).collect();
        threads.into_iter().map(|thread| thread.join().expect("no difference")).collect()
    });
    for Seen { schemas, nodes, valid, invalid } in seen {
        let nodes = nodes / (valid + invalid);
        println!("{schemas} schemas, {valid} valid and {invalid} refused commits of {nodes} nodes");
        assert!(valid > invalid / 10 && invalid > valid / 10, "one verdict hardly occurs");
    }
}

fn run(rng: &mut Rng, edits: usize) -> Seen {
    let mut seen = Seen::default();
    while seen.valid + seen.invalid < edits {
        let seed = rng.u64(..);
        let mut rng = Rng::with_seed(seed);
        let json = random::schema(&mut rng);
        // What would never end is refused, and the oracle would overflow.
        let Ok(schema) = Schema::compile(&value(&json), &Documents::new(), Options::default()) else {
            continue;
        };
        let Some(start) = valid_document(&mut rng, &schema) else { continue };
        let oracle = jsonschema::options().build(&json).expect("a schema");
        seen.schemas += 1;
        let mut session = Session::new(&schema, &oracle, &start);
        for _ in 0..EDITS_PER_SCHEMA {
            seen.nodes += paths(&session.document).len();
            match session.commit(&mut rng) {
                Ok(true) => seen.valid += 1,
                Ok(false) => seen.invalid += 1,
                Err(difference) => panic!("schema {json} of seed {seed}: {difference}"),
            }
        }
    }
    seen
}

/// The largest of some random documents that fit; none when most do, which tells little.
fn valid_document(rng: &mut Rng, schema: &Schema) -> Option<Value> {
    const TRIED: usize = 40;
    let documents = (0..TRIED).map(|_| value(&random::document(rng, 4)));
    let valid: Vec<Value> = documents
        .filter(|document| schema.validate(&document).expect("reads").is_valid())
        .collect();
    match valid.len() {
        few if few <= TRIED / 2 => valid.into_iter().max_by_key(|document| paths(document).len()),
        _ => None,
    }
}

/// A store whose `/doc` is always valid.
struct Session<'s> {
    schema: &'s Schema,
    oracle: &'s jsonschema::Validator,
    store: Memory,
    document: Value,
}

impl<'s> Session<'s> {
    fn new(schema: &'s Schema, oracle: &'s jsonschema::Validator, start: &Value) -> Session<'s> {
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
    fn commit(&mut self, rng: &mut Rng) -> Result<bool, String> {
        let mut transaction = Transaction::begin(&self.store).expect("begins");
        let mut document = self.document.clone();
        for _ in 0..rng.u32(1..4) {
            edit(rng, &mut transaction, &document);
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

fn stored<'s>(store: &Memory, snapshot: &'s dyn Snapshot) -> Option<Stored<'s>> {
    let view = View { snapshot, key_len_max: store.capabilities().key_len_max };
    let slot = view.resolve("/doc").expect("resolves");
    slot.map(|slot| Stored::new(view, slot).expect("a node"))
}

/// Every path of a document, the root's first.
fn paths(document: &Value) -> Vec<String> {
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

fn edit(rng: &mut Rng, transaction: &mut Transaction<'_>, document: &Value) {
    let paths = paths(document);
    // The whole document is not replaced often, unless there is little of it.
    let any = |rng: &mut Rng| match rng.u32(..paths.len().min(20) as u32) {
        0 => String::new(),
        _ => paths[rng.usize(1..paths.len())].clone(),
    };
    let inside = |rng: &mut Rng| {
        let container = any(rng);
        match document.pointer(&container) {
            Some(Value::Map(_)) => Some((false, format!("{container}/{}", random::key(rng)))),
            Some(Value::List(list)) => {
                Some((true, format!("{container}/{}", rng.usize(..=list.len()))))
            }
            _ => None,
        }
    };
    let depth = if paths.len() < 5 { 4 } else { rng.u32(..3) };
    let value = value(&random::document(rng, depth));
    let doc = |path: &str| format!("/doc{path}");
    // An edit that cannot be made, such as a move into itself, changes nothing.
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
