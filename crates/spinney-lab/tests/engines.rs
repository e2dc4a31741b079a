//! What each engine must do, where it is installed: put, get, scan, delete, clear, fail, several
//! threads, and open again, at each level that it has.

use spinney_core::{Error, Result};
use spinney_lab::engine::{Engine, EngineFactory, Reader, TABLES};
use spinney_lab::engines;
use spinney_lab::system::Durability;

const THREADS: u64 = 4;
const ROUNDS: u64 = 20;

#[test]
fn every_engine_keeps_the_contract_at_its_levels() {
    for factory in engines::all() {
        for level in [Durability::Durable, Durability::Process, Durability::None] {
            let name = format!("{} at `{}`", factory.name(), level.name());
            if let Some(reason) = factory.lacks(level) {
                println!("skipped: {name}: {reason}");
                continue;
            }
            contract(&*factory, level).unwrap_or_else(|error| panic!("{name}: {error:?}"));
        }
    }
}

fn contract(factory: &dyn EngineFactory, level: Durability) -> Result<()> {
    let folder = tempfile::tempdir().expect("a folder");
    let engine = factory.open(folder.path(), level)?;
    assert_eq!(records(&*engine, 0, b"")?, []);
    assert_eq!((get(&*engine, 0, b"a")?, last(&*engine, 0)?), (None, None));
    engine.write(&mut |records| {
        for table in 0..TABLES {
            for key in [&b"b"[..], b"a", b"a\0", b"\xff\xff", b"c"] {
                records.put(table, key, &[key, &[table as u8]].concat())?;
            }
        }
        records.put(0, b"empty", b"")
    })?;
    assert_eq!(get(&*engine, 2, b"b")?, Some(b"b\x02".to_vec()));
    assert_eq!(get(&*engine, 0, b"empty")?, Some(Vec::new()));
    assert_eq!(get(&*engine, 1, b"empty")?, None);
    assert_eq!(keys(&*engine, 1, b"")?, [&b"a"[..], b"a\0", b"b", b"c", b"\xff\xff"]);
    assert_eq!(keys(&*engine, 1, b"a\0")?.len(), 4);
    assert_eq!(keys(&*engine, 1, b"bb")?, [&b"c"[..], b"\xff\xff"]);
    assert_eq!(last(&*engine, 3)?, Some(b"\xff\xff".to_vec()));
    engine.write(&mut |records| {
        let mut value = Vec::new();
        assert!(records.get(0, b"b", &mut value)?);
        records.put(0, b"b", b"new")?;
        records.delete(0, b"a")?;
        records.delete(0, b"not there")?;
        records.clear(1)
    })?;
    assert_eq!(get(&*engine, 0, b"b")?, Some(b"new".to_vec()));
    assert_eq!(keys(&*engine, 0, b"")?, [&b"a\0"[..], b"b", b"c", b"empty", b"\xff\xff"]);
    assert_eq!(records(&*engine, 1, b"")?, []);
    let refused = engine.write(&mut |records| {
        records.put(0, b"b", b"never")?;
        records.clear(2)?;
        Err(Error::invalid_input("on purpose"))
    });
    assert!(refused.is_err_and(|error| error.to_string().contains("on purpose")));
    assert_eq!(get(&*engine, 0, b"b")?, Some(b"new".to_vec()));
    assert_eq!(records(&*engine, 2, b"")?.len(), 5);
    stops_when_told(&*engine)?;
    counts_by_threads(&*engine)?;
    keeps_many(&*engine)?;
    engine.settle()?;
    let kept = records(&*engine, 1, b"")?;
    drop(engine);
    let engine = factory.open(folder.path(), level)?;
    assert_eq!(get(&*engine, 0, b"b")?, Some(b"new".to_vec()));
    assert_eq!(records(&*engine, 1, b"")?, kept);
    Ok(())
}

fn stops_when_told(engine: &dyn Engine) -> Result<()> {
    let mut seen = 0;
    engine.read(&mut |reader| {
        reader.scan(0, b"", &mut |_, _| {
            seen += 1;
            Ok(seen < 2)
        })
    })?;
    assert_eq!(seen, 2);
    let failed = engine
        .read(&mut |reader| reader.scan(0, b"", &mut |_, _| Err(Error::not_found("on purpose"))));
    assert!(failed.is_err_and(|error| error.to_string().contains("on purpose")));
    assert_eq!(get(engine, 0, b"c")?, Some(b"c\0".to_vec()));
    Ok(())
}

/// Threads add to one number: a lost update shows.
fn counts_by_threads(engine: &dyn Engine) -> Result<()> {
    std::thread::scope(|scope| {
        let count = || -> Result<()> {
            for _ in 0..ROUNDS {
                engine.write(&mut |records| {
                    let mut value = Vec::new();
                    let old = match records.get(3, b"count", &mut value)? {
                        true => u64::from_le_bytes(value[..].try_into().expect("8 bytes")),
                        false => 0,
                    };
                    records.put(3, b"count", &(old + 1).to_le_bytes())
                })?;
            }
            Ok(())
        };
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(count)).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("no panic"))
    })?;
    assert_eq!(get(engine, 3, b"count")?, Some((THREADS * ROUNDS).to_le_bytes().to_vec()));
    Ok(())
}

/// More than fits into one buffer, with values of very different lengths.
fn keeps_many(engine: &dyn Engine) -> Result<()> {
    let record = |i: u32| (i.to_be_bytes(), vec![i as u8; (i as usize * 37) % 5_000]);
    engine.write(&mut |records| {
        (0..3_000).map(record).try_for_each(|(key, value)| records.put(1, &key, &value))
    })?;
    let expected: Vec<_> =
        (1_000..3_000).map(record).map(|(key, value)| (key.to_vec(), value)).collect();
    assert!(records(engine, 1, &1_000_u32.to_be_bytes())? == expected);
    assert_eq!(last(engine, 1)?, Some(2_999_u32.to_be_bytes().to_vec()));
    Ok(())
}

type Found = Vec<(Vec<u8>, Vec<u8>)>;

fn records(engine: &dyn Engine, table: usize, from: &[u8]) -> Result<Found> {
    let mut found = Vec::new();
    engine.read(&mut |reader| {
        reader.scan(table, from, &mut |key, value| {
            found.push((key.to_vec(), value.to_vec()));
            Ok(true)
        })
    })?;
    Ok(found)
}

fn keys(engine: &dyn Engine, table: usize, from: &[u8]) -> Result<Vec<Vec<u8>>> {
    Ok(records(engine, table, from)?.into_iter().map(|(key, _)| key).collect())
}

fn get(engine: &dyn Engine, table: usize, key: &[u8]) -> Result<Option<Vec<u8>>> {
    read(engine, |reader, value| reader.get(table, key, value))
}

fn last(engine: &dyn Engine, table: usize) -> Result<Option<Vec<u8>>> {
    read(engine, |reader, key| reader.last(table, key))
}

fn read(
    engine: &dyn Engine,
    ask: impl Fn(&dyn Reader, &mut Vec<u8>) -> Result<bool>,
) -> Result<Option<Vec<u8>>> {
    let (mut out, mut found) = (b"old".to_vec(), false);
    engine.read(&mut |reader| {
        found = ask(reader, &mut out)?;
        Ok(())
    })?;
    Ok(found.then_some(out))
}
