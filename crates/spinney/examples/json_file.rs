//! Figures of `json:FILE`: `json_file FILE [FOLDER]` opens a copy of a JSON file, changes leaves at
//! each level, and makes a journal again.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::time::Instant;

use spinney::{Durability, OpenOptions, Result};

const TIMES: usize = 2_000;
const REPLAYED: usize = 50_000;

fn main() -> Result<()> {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let source = arguments.next().expect("a JSON file");
    let folder = arguments.next().unwrap_or_else(|| PathBuf::from("."));
    let file = folder.join("json_file_example.json");
    let url = format!("json:{}", file.display());
    fs::copy(&source, &file).expect("copies");

    let text = fs::read(&file).expect("reads");
    let parse = best(5, || drop(serde_json::from_slice::<serde_json::Value>(&text).expect("JSON")));
    let open = best(5, || drop(OpenOptions::new().read_only(true).open(&url).expect("opens")));
    println!("parse {parse:.1} ms, open {open:.1} ms: {:.2}x", open / parse);

    let raw = fs::File::create(folder.join("json_file_example.raw")).expect("creates");
    raw.write_all_at(&vec![1; 1 << 20], 0).and_then(|()| raw.sync_all()).expect("writes");
    let mut block = 0;
    let sync = median(TIMES, || {
        block = (block + 1) % 256;
        raw.write_all_at(&[2; 4096], block * 4096).and_then(|()| raw.sync_data()).expect("syncs");
    });
    println!("raw fdatasync of 4 kB: {sync:.1} us");

    let store = spinney::open(&url)?;
    store.write(|tx| tx.set("", &spinney::Value::map()))?;
    let leaf = |n: usize| (format!("/leaf/{}", n % 1_000), spinney::Value::from(n as u64));
    for level in [Durability::Durable, Durability::Process, Durability::None] {
        let mut n = 0;
        let time = median(TIMES, || {
            n += 1;
            let (path, value) = leaf(n);
            store.write_with(level, |tx| tx.set(&path, &value)).expect("commits");
        });
        println!("{level:?}: {time:.1} us, {:.2}x raw", time / sync);
    }
    store.checkpoint()?;
    for n in 0..REPLAYED {
        let (path, value) = leaf(n * 7 + 1);
        store.write_with(Durability::Process, |tx| tx.set(&path, &value))?;
    }
    let copy = folder.join("json_file_example.copy.json");
    for suffix in ["", ".journal.0", ".journal.1"] {
        let path = |file: &PathBuf| PathBuf::from(format!("{}{suffix}", file.display()));
        let _ = fs::copy(path(&file), path(&copy));
    }
    let copy_url = format!("json:{}", copy.display());
    let open = best(3, || drop(OpenOptions::new().read_only(true).open(&copy_url).expect("opens")));
    println!(
        "{REPLAYED} commits again: {open:.1} ms, {:.0} a second",
        REPLAYED as f64 / open * 1e3
    );
    drop(store);
    for name in fs::read_dir(&folder).expect("reads").flatten() {
        if name.file_name().to_string_lossy().starts_with("json_file_example.") {
            fs::remove_file(name.path()).expect("removes");
        }
    }
    Ok(())
}

/// The fastest of some runs, in milliseconds.
fn best(times: usize, mut run: impl FnMut()) -> f64 {
    let timed = |_| {
        let begun = Instant::now();
        run();
        begun.elapsed().as_secs_f64() * 1e3
    };
    (0..times).map(timed).fold(f64::MAX, f64::min)
}

/// The median of some runs, in microseconds.
fn median(times: usize, mut run: impl FnMut()) -> f64 {
    let mut all: Vec<f64> = Vec::with_capacity(times);
    for _ in 0..times {
        let begun = Instant::now();
        run();
        all.push(begun.elapsed().as_secs_f64() * 1e6);
    }
    all.sort_by(f64::total_cmp);
    all[times / 2]
}
