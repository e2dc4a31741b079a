//! Random commits over random schemas: what the change says, what the whole document says and what
//! the `jsonschema` crate says is the same.
//!
//! `SPINNEY_TEST_SCHEMA_EDITS` sets how many commits there are, `SPINNEY_TEST_SEED` the seed.

mod common;

use std::collections::BTreeSet;
use std::path::PathBuf;

use common::session::{Session, Supply, paths};
use common::{random, read, value};
use fastrand::Rng;
use spinney_core::{ErrorKind, Value};
use spinney_schema::{Documents, Draft, Options, Schema};

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
    /// Drafts that they are of.
    drafts: BTreeSet<String>,
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
        let run =
            |thread| move || run(&mut Rng::with_seed(seed ^ thread), edits / THREADS as usize);
        let threads: Vec<_> = (0..THREADS).map(|thread| scope.spawn(run(thread))).collect();
        threads.into_iter().map(|thread| thread.join().expect("no difference")).collect()
    });
    for Seen { schemas, drafts, nodes, valid, invalid } in seen {
        assert_eq!(drafts.len(), Draft::ALL.len(), "{drafts:?}");
        let nodes = nodes / (valid + invalid);
        println!("{schemas} schemas, {valid} valid and {invalid} refused commits of {nodes} nodes");
        assert!(valid > invalid / 10 && invalid > valid / 10, "one verdict hardly occurs");
    }
}

/// Values of the generator.
struct Generated;

impl Supply for Generated {
    fn key(&self, rng: &mut Rng) -> String {
        random::key(rng)
    }

    fn value(&self, rng: &mut Rng, large: bool) -> Value {
        let depth = if large { 4 } else { rng.u32(..3) };
        value(&random::document(rng, depth))
    }
}

fn run(rng: &mut Rng, edits: usize) -> Seen {
    let mut seen = Seen::default();
    while seen.valid + seen.invalid < edits {
        let seed = rng.u64(..);
        let mut rng = Rng::with_seed(seed);
        let json = random::schema(&mut rng);
        // With few steps, small documents take the ways of large ones.
        let glance_steps = if rng.bool() { rng.u64(..5) } else { Options::default().glance_steps };
        let options = Options { glance_steps, ..Options::default() };
        // What would never end is refused, and the oracle would overflow.
        let Ok(schema) = Schema::compile(&value(&json), &Documents::new(), options) else {
            continue;
        };
        let Some(start) = valid_document(&mut rng, &schema) else { continue };
        let oracle = jsonschema::options().build(&json).expect("a schema");
        seen.schemas += 1;
        seen.drafts.insert(json["$schema"].to_string());
        let mut session = Session::new(&schema, &oracle, &start);
        for _ in 0..EDITS_PER_SCHEMA {
            seen.nodes += paths(&session.document).len();
            match session.commit(&mut rng, &Generated) {
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

/// `../shared/data/schemas` beside the repository, or the folder that `SPINNEY_TEST_SCHEMAS` names.
fn real_schemas() -> PathBuf {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data/schemas");
    std::env::var_os("SPINNEY_TEST_SCHEMAS").map_or_else(|| beside.into(), PathBuf::from)
}

/// Keys and values of the documents of one schema.
struct Pieces {
    keys: Vec<String>,
    values: Vec<Value>,
}

impl Pieces {
    fn of(documents: &[Value]) -> Pieces {
        let (mut keys, mut values) = (Vec::new(), Vec::new());
        for document in documents {
            for path in paths(document) {
                values.push(document.pointer(&path).expect("it is there").clone());
                keys.extend(path.rsplit_once('/').map(|(_, key)| key.to_owned()));
            }
        }
        Pieces { keys, values }
    }
}

impl Supply for Pieces {
    fn key(&self, rng: &mut Rng) -> String {
        self.keys[rng.usize(..self.keys.len())].clone()
    }

    fn value(&self, rng: &mut Rng, _large: bool) -> Value {
        match rng.u32(..4) {
            0 => value(&random::scalar(rng)),
            _ => self.values[rng.usize(..self.values.len())].clone(),
        }
    }
}

#[test]
fn real_schemas_and_documents() {
    let folder = real_schemas();
    if !folder.is_dir() {
        println!(
            "skipped: 1: no schemas in {}; SPINNEY_TEST_SCHEMAS names another folder",
            folder.display()
        );
        return;
    }
    let seed = number("SPINNEY_TEST_SEED").unwrap_or_else(|| fastrand::u64(..));
    println!("seed {seed}");
    let mut folders: Vec<PathBuf> = std::fs::read_dir(&folder)
        .expect("the folder reads")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.join("schema.json").is_file())
        .collect();
    folders.sort();
    for folder in folders {
        let name = folder.file_name().expect("a name").display().to_string();
        let json = read(&folder.join("schema.json"));
        let schema = match Schema::compile(&value(&json), &Documents::new(), Options::default()) {
            Ok(schema) => schema,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Unsupported, "{name}: {error}");
                assert!(error.to_string().contains("look-around"), "{name}: {error}");
                println!("{name} is refused: {error}");
                continue;
            }
        };
        let [valid, invalid] = ["valid", "invalid"].map(|kind| documents(&folder.join(kind)));
        for (expected, documents) in [(true, &valid), (false, &invalid)] {
            for (file, document) in documents {
                let report = schema.validate(&document).expect("reads");
                assert_eq!(report.is_valid(), expected, "{name}/{file}: {report}");
            }
        }
        let oracle = jsonschema::options().should_validate_formats(true);
        let oracle = oracle.build(&json).expect("a schema");
        let all: Vec<Value> =
            valid.iter().chain(&invalid).map(|(_, value)| value.clone()).collect();
        let pieces = Pieces::of(&all);
        let mut rng = Rng::with_seed(seed);
        let (mut kept, mut refused) = (0, 0);
        for (file, start) in &valid {
            let mut session = Session::new(&schema, &oracle, start);
            for _ in 0..EDITS_PER_SCHEMA {
                match session.commit(&mut rng, &pieces) {
                    Ok(true) => kept += 1,
                    Ok(false) => refused += 1,
                    Err(difference) => panic!("{name}/{file}: {difference}"),
                }
            }
        }
        println!("{name}: {kept} valid and {refused} refused commits");
    }
}

fn documents(folder: &std::path::Path) -> Vec<(String, Value)> {
    let mut found: Vec<(String, Value)> = std::fs::read_dir(folder)
        .expect("the folder reads")
        .map(|entry| entry.expect("an entry").path())
        .map(|file| (file.display().to_string(), value(&read(&file))))
        .collect();
    found.sort_by(|a, b| a.0.cmp(&b.0));
    found
}
