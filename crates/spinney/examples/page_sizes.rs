//! What the size of a page does on fjall, beside LMDB: `page_sizes [ITEMS] [INSERTS] [FOLDER]
//! [WHAT,..]`, where WHAT is a size, `lmdb` or `raw`.
//!
//! Processor time of all threads, merging included, and bytes handed to the system, because a shared
//! machine's clock says little. The inserts are of random keys, a commit each, in tenths of the run, and
//! beside fjall itself.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use rustix::time::{ClockId, clock_gettime};
use spinney::backend::Backend;
use spinney::backends::fjall::{Fjall, Options};
use spinney::backends::lmdb::{self, Lmdb};
use spinney::formats::{self, Dialect, Fidelity, JsonWriter, Layout};
use spinney::{Durability, Existing, OpenOptions, Result, Store};

const LEAVES: u32 = 2_000;
const READS: u32 = 10_000;

/// Processor time so far, in microseconds.
fn cpu_us() -> f64 {
    let now = clock_gettime(ClockId::ProcessCPUTime);
    now.tv_sec as f64 * 1e6 + now.tv_nsec as f64 / 1e3
}

/// Bytes that this process has handed to the system.
fn written() -> f64 {
    let facts = fs::read_to_string("/proc/self/io").unwrap_or_default();
    let wchar = facts.lines().find_map(|line| line.strip_prefix("wchar: "));
    wchar.and_then(|bytes| bytes.parse().ok()).unwrap_or_default()
}

/// Bytes on disk below a folder.
fn disk(folder: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let len = |entry: fs::DirEntry| match entry.metadata() {
        Ok(found) if found.is_dir() => disk(&entry.path()),
        Ok(found) => found.blocks() * 512,
        Err(_) => 0,
    };
    entries.map(len).sum()
}

/// A number that looks random, another one for each `i`.
fn shuffled(i: u64) -> u64 {
    i.wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

fn text(items: u32) -> String {
    let item = |i: u32| format!("\"{i},str{i}\":{{\"k1\":{i},\"k2\":\"str{i}\",\"l\":\"l{i}\"}}");
    let items: Vec<String> = (0..items).map(item).collect();
    format!("{{\"lst\":{{{}}}}}", items.join(","))
}

/// Calls something so many times; prints processor time and bytes for one.
fn measure(name: &str, times: u32, mut act: impl FnMut(u32) -> Result<()>) -> Result<()> {
    let (cpu, bytes) = (cpu_us(), written());
    (0..times).try_for_each(&mut act)?;
    let each = |sum: f64| sum / f64::from(times);
    let (cpu, bytes) = (each(cpu_us() - cpu), each(written() - bytes));
    println!("  {name:<28}{cpu:>14.1} us{bytes:>14.0} bytes written");
    Ok(())
}

/// Inserts under random keys, a commit each, and prints each tenth.
fn insert(inserts: u32, mut put: impl FnMut(u64) -> Result<()>) -> Result<()> {
    let (mut cpus, mut longest, bytes) = (Vec::new(), 0.0_f64, written());
    for tenth in 0..10 {
        let cpu = cpu_us();
        for i in 0..inserts / 10 {
            let began = Instant::now();
            put(shuffled(u64::from(tenth * (inserts / 10) + i)))?;
            longest = longest.max(began.elapsed().as_secs_f64() * 1e3);
        }
        cpus.push((cpu_us() - cpu) / f64::from(inserts / 10));
    }
    let each: Vec<String> = cpus.iter().map(|cpu| format!("{cpu:.1}")).collect();
    let bytes = (written() - bytes) / f64::from(inserts);
    println!("  random inserts, us by tenth: {}", each.join(" "));
    println!("  {bytes:.0} bytes written an insert; the longest took {longest:.0} ms");
    Ok(())
}

fn run(name: &str, dir: &Path, items: u32, inserts: u32, backend: Arc<dyn Backend>) -> Result<()> {
    println!("{name}");
    let options = OpenOptions::new().durability(Durability::None);
    let store: Store = options.over(backend, Some(dir.to_owned()));
    let text = text(items);
    measure("import", 1, |_| {
        store.write(|tx| {
            tx.set_with("/t", Existing::Any, |visitor| {
                formats::read(text.as_bytes(), Dialect::Json, visitor)
            })
        })?;
        store.checkpoint()
    })?;
    store.compact()?;
    println!("  {:<28}{:>14} bytes of {} of text", "on disk", disk(dir), text.len());
    let leaf = |i: u32| {
        let item = shuffled(u64::from(i)) % u64::from(items);
        format!("/t/lst/{item},str{item}/l")
    };
    measure("leaf commit, durable", LEAVES, |i| {
        let set = |tx: &mut spinney::Transaction<'_>| tx.set(&leaf(i), &format!("new {i}").into());
        store.write_with(Durability::Durable, set).map(drop)
    })?;
    store.checkpoint()?;
    measure("leaf read", READS, |i| store.read()?.get(&leaf(i)).map(drop))?;
    measure("read of everything", 3, |_| {
        let mut writer = JsonWriter::new(Vec::new(), Layout::Compact, Fidelity::Refuse);
        store.read()?.visit("", &mut writer)?;
        writer.finish().map(drop)
    })?;
    insert(inserts, |key| {
        store.write(|tx| tx.set(&format!("/many/{key:016x}"), &key.into())).map(drop)
    })?;
    store.checkpoint()?;
    println!("  {:<28}{:>14} bytes", "on disk after them", disk(dir));
    Ok(())
}

/// fjall without anything on top: a record an insert.
fn raw(dir: &Path, inserts: u32) -> Result<()> {
    println!("fjall itself");
    let failed = |error: fjall::Error| spinney::Error::io(error.to_string());
    let database = fjall::Database::builder(dir).open().map_err(failed)?;
    let records =
        database.keyspace("records", fjall::KeyspaceCreateOptions::default).map_err(failed)?;
    insert(inserts, |key| {
        records.insert(format!("/many/{key:016x}"), key.to_string()).map_err(failed)
    })
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default| arguments.next().and_then(|n| n.parse().ok()).unwrap_or(default);
    let (items, inserts) = (number(100_000), number(100_000));
    let parent = arguments.next().unwrap_or_else(|| "target".into());
    let what = arguments.next().unwrap_or_else(|| "4080,8176,16368,32752,lmdb,raw".into());
    let folder = tempfile::tempdir_in(parent).expect("a folder");
    for what in what.split(',') {
        let dir = folder.path().join(what);
        let (name, backend): (_, Arc<dyn Backend>) = match what {
            "raw" => {
                raw(&dir, inserts)?;
                continue;
            }
            "lmdb" => ("LMDB".to_owned(), Lmdb::open(&dir, lmdb::Options::CREATE)?),
            size => {
                let page_size = size.parse().expect("a size, `lmdb` or `raw`");
                let options = Options { page_size, ..Options::CREATE };
                (format!("fjall, pages of {size} bytes"), Fjall::open(&dir, options)?)
            }
        };
        run(&name, &dir, items, inserts, backend)?;
    }
    Ok(())
}
