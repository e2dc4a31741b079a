//! Flipped bits in every kind of record: the right answer, or `Corrupted` at the path.

use std::ops::Bound;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use fastrand::Rng;
use spinney::formats::{Fidelity, JsonWriter, Layout};
use spinney::{ErrorKind, Map, OpenOptions, Snapshot, Value, path};
use spinney_conformance::mutant::{Mutant, Plan};
use spinney_conformance::timed;
use spinney_core::Memory;
use spinney_core::backend::{Backend, Direction};
use spinney_core::layout::RecordKind;
use spinney_core::reclaim;
use spinney_core::transaction::Transaction;

const MUTANTS: usize = 12_000;

/// All kinds of nodes, small and large.
fn value() -> Value {
    let list: Vec<Value> = (0..1_200_u64).map(Value::from).collect();
    let map: Map = (0..900).map(|n| (format!("key {n}"), Value::from(n))).collect();
    let long: Map =
        (0..20).map(|n| (format!("{}{n}", "stem".repeat(300)), Value::from(n))).collect();
    let mut root = Map::new();
    root.insert("list", list.clone());
    root.insert("map", map);
    root.insert("long keys", long);
    root.insert("text", "long \"text\" ".repeat(9_000));
    root.insert("bytes", Value::Bytes(vec![7; 50_000]));
    root.insert("small", vec![Value::Null, true.into(), "x".into(), Value::list()]);
    root.insert("nested", vec![Value::from(list.clone()), list.into()]);
    root.into()
}

fn store(backend: Arc<dyn Backend>) -> spinney::Store {
    OpenOptions::new().over(backend, None)
}

/// Every key of the newest state, with the length of its value.
fn keys(backend: &dyn Backend) -> Vec<(Box<[u8]>, usize)> {
    let snapshot = backend.snapshot().expect("a snapshot");
    let all = (Bound::Unbounded, Bound::Unbounded);
    let records = snapshot.range(all, Direction::Forward).expect("a range");
    records.map(|record| record.expect("a record")).map(|(k, v)| ((*k).into(), v.len())).collect()
}

fn random_plan(random: &mut Rng, keys: &[(Box<[u8]>, usize)]) -> Plan {
    let (key, len) = &keys[random.usize(..keys.len())];
    // Half of the flips hit the beginning, where headers lie.
    let end = if random.bool() { (*len).min(16) } else { *len };
    Plan::Exact { key: key.clone(), byte: random.usize(..end.max(1)), bit: random.u8(..8) }
}

fn print(snapshot: &Snapshot, path: &str) -> spinney::Result<String> {
    let mut writer = JsonWriter::new(Vec::new(), Layout::Compact, Fidelity::Tagged);
    snapshot.visit(path, &mut writer)?;
    Ok(String::from_utf8(writer.finish()?).expect("a text"))
}

/// The right answer, or damage that names the path.
fn judge<T: PartialEq>(answer: spinney::Result<T>, expected: &T, path: &str, plan: &Plan) -> bool {
    match answer {
        Ok(answer) => {
            assert!(answer == *expected, "{plan:?}: a wrong value at {path}");
            false
        }
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Corrupted, "{plan:?}: {path}: {error}");
            let (said, name) = (error.to_string(), path::Display(path).to_string());
            assert!(said.contains(&name), "{plan:?}: `{said}` does not name {name}");
            true
        }
    }
}

const PATHS: [&str; 16] = [
    "/a/list",
    "/a/list/0",
    "/a/list/600",
    "/a/list/1199",
    "/a/map",
    "/a/map/key 7",
    "/a/map/key 899",
    "/a/text",
    "/a/bytes",
    "/a/small",
    "/a/small/2",
    "/a/nested/1/1000",
    "/a",
    "/b",
    "/b/2",
    "",
];

#[test]
fn reads_of_damaged_records() {
    let seed = seed();
    let backend = Arc::new(Mutant::new(Memory::new()));
    let store = store(backend.clone());
    store.write(|tx| tx.set("/a", &value())).expect("sets");
    store
        .write(|tx| tx.set("/b", &vec![Value::from(1), 2.into(), "x".into()].into()))
        .expect("sets");
    store.write(|tx| tx.set_meta("/a/map", "origin", Some("test"))).expect("annotates");
    let sound = store.read().expect("reads");
    let expected: Vec<_> = PATHS.iter().map(|path| sound.get(path).expect("reads")).collect();
    let counts: Vec<_> = PATHS.iter().map(|path| sound.count(path).expect("counts")).collect();
    let whole = print(&sound, "").expect("prints");
    let keys = keys(&*backend);
    let (mut damaged, mut slowest) = (0, Duration::ZERO);
    let mut random = Rng::with_seed(seed);
    timed("mutants", || {
        for mutant in 0..MUTANTS {
            let plan = random_plan(&mut random, &keys);
            backend.set_plan(plan.clone());
            let began = Instant::now();
            let snapshot = store.read().expect("a snapshot");
            for _ in 0..2 {
                let at = random.usize(..PATHS.len() - usize::from(mutant % 10 != 0));
                let path = PATHS[at];
                let found = judge(snapshot.get(path), &expected[at], path, &plan);
                damaged += usize::from(found);
                judge(snapshot.count(path), &counts[at], path, &plan);
            }
            if mutant % 20 == 0 {
                judge(print(&snapshot, ""), &whole, "", &plan);
                report_names(&snapshot, &plan);
            }
            slowest = slowest.max(began.elapsed());
        }
    });
    println!(
        "{MUTANTS} mutants, {damaged} reads noticed, {} flips, slowest {slowest:?}",
        backend.flips()
    );
    assert!(backend.flips() > 1_000 && damaged > 1_000);
}

/// `check` finds each damaged record that the tree refers to.
fn report_names(snapshot: &Snapshot, plan: &Plan) {
    let Plan::Exact { key, .. } = plan else { return };
    let report = snapshot.check();
    if [RecordKind::Log as u8, RecordKind::Reclaim as u8].contains(&key[4]) {
        return;
    }
    match report {
        Ok(report) => assert!(!report.is_sound(), "{plan:?}: check has not noticed"),
        Err(error) => assert_eq!(error.kind(), ErrorKind::Corrupted, "{error}"),
    }
}

#[test]
fn check_of_damaged_records_of_each_kind() {
    let backend = Arc::new(Mutant::new(Memory::new()));
    let store = store(backend.clone());
    store.write(|tx| tx.set("/a", &value())).expect("sets");
    let keys = keys(&*backend);
    let mut kinds = std::collections::BTreeMap::new();
    for (key, len) in &keys {
        let seen: &mut usize = kinds.entry(key[4]).or_default();
        *seen += 1;
        if *seen > 6 {
            continue;
        }
        for byte in 0..(*len).min(40) {
            let plan = Plan::Exact { key: key.clone(), byte, bit: (byte % 8) as u8 };
            backend.set_plan(plan.clone());
            report_names(&store.read().expect("a snapshot"), &plan);
        }
    }
    println!("records of each kind: {kinds:?}");
}

/// Edits over damage either fail or change what they say; they never make it worse in silence.
#[test]
fn writes_over_damaged_records() {
    let mut random = Rng::with_seed(seed());
    let mut refused = 0;
    for round in 0..1_500 {
        let backend = Arc::new(Mutant::new(Memory::with_sizes(512, 64, 1 << 30)));
        let list: Vec<Value> = (0..200_u64).map(Value::from).collect();
        let map: Map = (0..100).map(|n| (format!("key {n}"), Value::from(n))).collect();
        let mut transaction = Transaction::begin(&*backend).expect("begins");
        transaction.set("/a/list", &list.into()).expect("sets");
        transaction.set("/a/map", &map.into()).expect("sets");
        transaction.set("/a/gone", &vec![Value::from(3); 300].into()).expect("sets");
        transaction.commit(0).expect("commits");
        let mut transaction = Transaction::begin(&*backend).expect("begins");
        transaction.remove("/a/gone").expect("removes");
        transaction.commit(1).expect("commits");
        let plan = random_plan(&mut random, &keys(&*backend));
        backend.set_plan(plan.clone());
        let wrote = catch_unwind(AssertUnwindSafe(|| {
            let mut transaction = Transaction::begin(&*backend)?;
            transaction.set("/a/map/key 50", &"new".into())?;
            transaction.insert("/a/list/100", &"new".into())?;
            transaction.remove("/a/list/7")?;
            transaction.commit(2)?;
            while reclaim::step(&*backend, &[0, 1])? > 0 {}
            Ok::<_, spinney::Error>(())
        }));
        match wrote {
            Err(_) => panic!("round {round}: {plan:?}: a panic"),
            Ok(Err(error)) => {
                refused += 1;
                let kind = error.kind();
                assert!(
                    matches!(kind, ErrorKind::Corrupted | ErrorKind::Conflict),
                    "{plan:?}: {error}"
                );
            }
            Ok(Ok(())) => {}
        }
    }
    println!("1500 writes over damage, {refused} refused");
    assert!(refused > 200);
}

fn seed() -> u64 {
    let seed = std::env::var("SPINNEY_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or_else(|| fastrand::u64(..1 << 32));
    println!("SPINNEY_SEED={seed}");
    seed
}
