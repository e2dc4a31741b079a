//! Random pairs of values: the patch between them leads from one to the other and back, also by way
//! of a commit's diff, and another implementation agrees.

use fastrand::Rng;
use spinney::difference::{Metadata, PatchWriter, differences};
use spinney::formats::{self, Fidelity, JsonWriter, Layout};
use spinney::patch::Patch;
use spinney::read::Reached;
use spinney::{Error, Number, Result, Store, Value};
use spinney_conformance::timed;

/// Numbers that are equal to others, or beyond any float.
const NUMBERS: [&str; 12] =
    ["0", "-0", "1", "1.0", "10e-1", "2", "1.10", "1e400", "-7", "9007199254740993", "0.1", "1E2"];

const KEYS: [&str; 9] = ["a", "b", "c", "", "~", "a/b", "0", "-1", "10"];

fn scalar(random: &mut Rng) -> Value {
    match random.u8(..6) {
        0 => Value::Null,
        1 => Value::from(random.bool()),
        2 | 3 => {
            Value::Number(Number::parse(NUMBERS[random.usize(..NUMBERS.len())]).expect("a number"))
        }
        4 => Value::from(["", "x", "y", "ü\n\""][random.usize(..4)]),
        _ => Value::from(random.i64(0..4)),
    }
}

fn value(random: &mut Rng, depth: usize) -> Value {
    let len = random.usize(..6);
    match random.u8(..if depth == 0 { 4 } else { 8 }) {
        0..4 => scalar(random),
        4 | 5 => (0..len).map(|_| value(random, depth - 1)).collect::<Vec<_>>().into(),
        _ => Value::Map(
            (0..len)
                .map(|_| (KEYS[random.usize(..KEYS.len())], value(random, depth - 1)))
                .collect(),
        ),
    }
}

/// A value with some edits: members and elements come, go, change and move.
fn edited(random: &mut Rng, mut edited: Value) -> Value {
    for _ in 0..random.usize(..4) {
        let depth = random.usize(..3);
        let place = somewhere(random, &mut edited, depth);
        edit(random, place);
    }
    edited
}

/// A node at most so deep in a value.
fn somewhere<'v>(random: &mut Rng, place: &'v mut Value, depth: usize) -> &'v mut Value {
    let key = KEYS[random.usize(..KEYS.len())];
    let goes_on = depth > 0
        && match &place {
            Value::Map(map) => map.get(key).is_some(),
            Value::List(list) => !list.is_empty(),
            _ => false,
        };
    if !goes_on {
        return place;
    }
    match place {
        Value::Map(map) => somewhere(random, map.get_mut(key).expect("it is there"), depth - 1),
        Value::List(list) => {
            let at = random.usize(..list.len());
            somewhere(random, &mut list[at], depth - 1)
        }
        _ => unreachable!("it has members"),
    }
}

fn edit(random: &mut Rng, place: &mut Value) {
    let fresh = value(random, 2);
    match place {
        Value::Map(map) => {
            let key = KEYS[random.usize(..KEYS.len())];
            match random.bool() {
                true => drop(map.insert(key, fresh)),
                false => drop(map.remove(key)),
            }
        }
        Value::List(list) if !list.is_empty() => {
            let (from, to) = (random.usize(..list.len()), random.usize(..list.len()));
            match random.u8(..5) {
                0 => drop(list.remove(from)),
                1 => list.insert(from, fresh),
                2 => list[from] = fresh,
                3 => list.swap(from, to),
                _ => {
                    let moved = list.remove(from);
                    list.insert(to, moved);
                }
            }
        }
        Value::List(list) => list.push(fresh),
        scalar => *scalar = fresh,
    }
}

fn text(value: &Value) -> String {
    formats::print(value, Layout::Compact, Fidelity::Refuse).expect("JSON")
}

/// The patch as whoever receives it as text reads it.
fn patch_text(old: &Reached<'_>, new: &Reached<'_>) -> Result<String> {
    let mut printer = JsonWriter::new(Vec::new(), Layout::Compact, Fidelity::Refuse);
    let mut writer = PatchWriter::new(&mut printer, Metadata::Refuse)?;
    differences(old, new, &mut |path, change| writer.write(path, &change))?;
    writer.finish()?;
    Ok(String::from_utf8(printer.finish()?).expect("UTF-8"))
}

fn pair(random: &mut Rng) -> (Value, Value) {
    let old = value(random, 3);
    let new = match random.u8(..4) {
        0 => value(random, 3),
        _ => edited(random, old.clone()),
    };
    (old, new)
}

/// There and back in one transaction, which is given up.
fn there_and_back(store: &Store, old: &Value, new: &Value) {
    let (there, back) =
        (Patch::between(old, new).expect("differs"), Patch::between(new, old).expect("differs"));
    assert_eq!(there.operations.is_empty(), old == new);
    let given_up = store.write(|tx| {
        tx.set("/doc", old)?;
        tx.patch("/doc", &there)?;
        assert_eq!(tx.get("/doc")?.as_ref(), Some(new), "{there:?}");
        tx.patch("/doc", &back)?;
        assert_eq!(tx.get("/doc")?.as_ref(), Some(old), "{back:?}");
        Err::<(), _>(Error::closed("given up"))
    });
    assert_eq!(given_up.expect_err("it is given up").to_string(), "given up");
}

/// By way of commits: what is stored, read back as nodes, and the diff of the commit.
fn through_commits(store: &Store, old: &Value, new: &Value) {
    store.write(|tx| tx.set("/doc", old)).expect("sets");
    let before = store.read().expect("a snapshot");
    let patch = Patch::between(old, new).expect("differs");
    let committed = store.write(|tx| tx.patch("/doc", &patch)).expect("patches");
    let after = store.read().expect("a snapshot");
    assert_eq!(after.get("/doc").expect("reads").as_ref(), Some(new));
    // Its diff, printed, makes the same change.
    let mut printer = JsonWriter::new(Vec::new(), Layout::Compact, Fidelity::Refuse);
    let mut writer = PatchWriter::new(&mut printer, Metadata::Refuse).expect("begins");
    let found =
        &mut |path: &_, change: spinney::difference::Change<'_>| writer.write(path, &change);
    committed.diff.changes(&before.view(), &after.view(), found).expect("the diff reads");
    writer.finish().expect("ends");
    let printed = String::from_utf8(printer.finish().expect("prints")).expect("UTF-8");
    let again = Patch::from_value(&formats::parse(&printed).expect("JSON")).expect("a patch");
    store
        .write(|tx| {
            tx.set("/doc", old)?;
            tx.patch("", &again)
        })
        .unwrap_or_else(|error| panic!("{printed}: {error}"));
    assert_eq!(store.read().unwrap().get("/doc").unwrap().as_ref(), Some(new), "{printed}");
    // Nodes of two states differ as the values do.
    let (from, to) = (before.node("/doc").unwrap(), after.node("/doc").unwrap());
    let stored = patch_text(&from.expect("it is"), &to.expect("it is")).expect("prints");
    assert_eq!(stored, patch_text(&Reached::Value(old), &Reached::Value(new)).expect("prints"));
}

/// The same patch on the same document, by the crate `json-patch`.
fn by_another(old: &Value, new: &Value) {
    let printed = patch_text(&Reached::Value(old), &Reached::Value(new)).expect("prints");
    let parse = |text: &str| serde_json::from_str::<serde_json::Value>(text);
    // Numbers beyond its range are not for this oracle.
    let (Ok(mut document), Ok(expected)) = (parse(&text(old)), parse(&text(new))) else { return };
    let Ok(patch) = serde_json::from_str::<json_patch::Patch>(&printed) else { return };
    json_patch::patch(&mut document, &patch).unwrap_or_else(|e| panic!("{printed}: {e}"));
    assert_eq!(document, expected, "{printed}");
}

fn seed() -> u64 {
    let seed = std::env::var("SPINNEY_TEST_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or_else(|| fastrand::u64(..));
    println!("SPINNEY_TEST_SEED={seed}");
    seed
}

/// `SPINNEY_TEST_PAIRS=10000000` tries as many.
fn pairs() -> u64 {
    let pairs = std::env::var("SPINNEY_TEST_PAIRS").ok().and_then(|pairs| pairs.parse().ok());
    pairs.unwrap_or(100_000)
}

#[test]
fn apply_the_difference_and_its_inverse() {
    let (seed, count) = (seed(), pairs());
    // Of pages so small that most containers have some.
    let tiny = std::sync::Arc::new(spinney_core::Memory::with_sizes(256, 64, 1 << 30));
    let store = spinney::OpenOptions::new().over(tiny, None);
    timed(&format!("{count} random pairs"), || {
        for n in 0..count {
            let (old, new) = pair(&mut Rng::with_seed(seed.wrapping_add(n)));
            let run = || {
                there_and_back(&store, &old, &new);
                by_another(&old, &new);
                if n % 10 == 0 {
                    through_commits(&store, &old, &new);
                }
            };
            let ran = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run));
            if let Err(panic) = ran {
                println!("pair {n} of seed {seed}: from {} to {}", text(&old), text(&new));
                std::panic::resume_unwind(panic);
            }
        }
    });
}

/// Merging a value into another, by the definition in RFC 7396, without a store.
fn merged(target: Option<&Value>, patch: &Value) -> Value {
    let Value::Map(patch) = patch else { return patch.clone() };
    let mut map = match target {
        Some(Value::Map(map)) => map.clone(),
        _ => spinney::Map::new(),
    };
    for (key, value) in patch.iter() {
        match value {
            Value::Null => drop(map.remove(&key)),
            value => {
                let below = merged(map.get(&key), value);
                map.insert(&key, below);
            }
        }
    }
    Value::Map(map)
}

#[test]
fn merging_random_pairs() {
    let (seed, count) = (seed(), pairs() / 4);
    let store = spinney::open("memory:").expect("a store");
    timed(&format!("{count} random merges"), || {
        for n in 0..count {
            let (target, patch) = pair(&mut Rng::with_seed(seed.wrapping_add(n)));
            let expected = merged(Some(&target), &patch);
            let before = store.write(|tx| tx.set("/doc", &target)).expect("sets").revision;
            let written = store.write(|tx| tx.merge("/doc", &patch)).expect("merges");
            let said = format!("seed {seed}, pair {n}: {} into {}", text(&patch), text(&target));
            assert_eq!(
                store.read().unwrap().get("/doc").unwrap(),
                Some(expected.clone()),
                "{said}"
            );
            assert_eq!(written.revision == before, expected == target, "{said}");
        }
    });
}
