//! Repeats one operation for a profiler: `profile ROW [SIZE] [SECONDS] [none]` on `lmdb`, with
//! `ROW` as in the suite, or `import:FILE` and `export:FILE`; or, of the other suites, `person set whole`,
//! `person set whole in one commit`, `person leaf set in one commit` and `read+write`. What is to be seen
//! runs below `profiled`, or `profiled_series`.

use std::path::Path;
use std::time::{Duration, Instant};

use spinney_lab::datastore::document::{Documents, State};
use spinney_lab::documents::Set;
use spinney_lab::documents::collection::By;
use spinney_lab::documents::source::Source;
use spinney_lab::system::{Durability, Factory, System};
use spinney_lab::systems;
use spinney_lab::throughput::Item;
use spinney_lab::throughput::item::Fill;

type Failed = Box<dyn std::error::Error>;

/// Pushes of one series.
const PUSHES: usize = 4_000;

fn main() -> Result<(), Failed> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let row = arguments.first().ok_or("name a row")?;
    let number = |at: usize, default: usize| {
        arguments.get(at).map_or(Ok(default), |text| text.parse::<usize>())
    };
    let size = number(1, 100_000)?;
    let limit = Duration::from_secs(number(2, 5)? as u64);
    let level = match arguments.get(3) {
        Some(_) => Durability::None,
        None => Durability::Durable,
    };
    let folder = tempfile::tempdir_in(".")?;
    let factory = systems::all(&["lmdb".to_owned()], &[])?.remove(0);
    if row == "read+write" || row.starts_with("person ") {
        return repeat_series(row, size, limit, &*factory, folder.path(), level);
    }
    let mut system = factory.open(folder.path(), level)?;
    let documents = Documents::new(size);
    let text = match row.split_once(':') {
        Some((_, file)) => std::fs::read(file)?,
        None => documents.text(State::Items).to_vec(),
    };
    let ordered = documents.text(State::Ordered);
    let (n, m) = (size, size / 2);
    let name = row.split(':').next().unwrap_or(row);
    let is_ordered = matches!(name, "position" | "insert middle" | "insert storm" | "ordered");
    let is_bulk = matches!(name, "import" | "paths" | "batch" | "create ordered" | "insert storm");
    system.replace(if is_ordered { &ordered } else { &text })?;
    system.settle()?;
    let (mut took, mut runs, mut out) = (Vec::new(), 0, Vec::new());
    let begin = Instant::now();
    while begin.elapsed() < limit {
        if is_bulk {
            system.replace(if is_ordered { &ordered } else { b"{}" })?;
            system.settle()?;
        }
        runs += 1;
        out.clear();
        let clock = Instant::now();
        let new = n + runs;
        let value = if runs % 2 == 0 { "l1" } else { "l2" };
        profiled(&mut *system, &mut |system| match name {
            "import" => system.import(&text).map(drop),
            "export" => system.export(&mut out),
            "paths" => system.create_paths(n).map(drop),
            "batch" => system.create_batch(n).map(drop),
            "create ordered" => system.create_ordered(n).map(drop),
            "insert storm" => system.insert_storm(m, n, n / 10).map(drop),
            "leaf" => (0..1_000).try_for_each(|_| system.leaf(m).map(drop)),
            "position" => (0..1_000).try_for_each(|_| system.element(m).map(drop)),
            "ordered" => system.ordered_tree().map(drop),
            "modify" => system.modify_leaf(m, value).map(drop),
            "insert middle" => system.insert_after(m, new).map(drop),
            _ => panic!("`{name}` is no row"),
        })?;
        took.push(clock.elapsed().as_nanos() as f64 / 1e3);
    }
    took.sort_unstable_by(f64::total_cmp);
    eprintln!("{row}: {runs} runs, p50 {:.1} us, min {:.1} us", took[took.len() / 2], took[0]);
    Ok(())
}

#[inline(never)]
fn profiled(
    system: &mut dyn System,
    work: &mut dyn FnMut(&mut dyn System) -> spinney_core::Result<()>,
) -> spinney_core::Result<()> {
    std::hint::black_box(work(system))
}

#[inline(never)]
fn profiled_series(
    series: &mut dyn FnMut() -> spinney_core::Result<()>,
) -> spinney_core::Result<()> {
    series()
}

/// Rows of the suites `documents` and `throughput`.
fn repeat_series(
    row: &str,
    size: usize,
    limit: Duration,
    factory: &dyn Factory,
    folder: &Path,
    level: Durability,
) -> Result<(), Failed> {
    let (item, set) = (Item::new(size, Fill::Const), Set::new(Source::person(), size, false)?);
    let by = if row.contains("leaf") { By::Leaf } else { By::Document };
    let (mut array, mut collection) = (None, None);
    match row {
        "read+write" => array = Some(factory.array(folder, level)?),
        _ => collection = Some(factory.collection(folder, level)?),
    }
    let begin = Instant::now();
    while begin.elapsed() < limit {
        if let Some(array) = &mut array {
            array.clear()?;
            array.settle()?;
        }
        if let Some(collection) = &mut collection {
            collection.clear()?;
            if by == By::Leaf {
                collection.set(by, &set, 1..=size)?;
            }
            collection.settle()?;
        }
        let clock = Instant::now();
        let mut ops = size;
        profiled_series(&mut || match (row, &mut array, &mut collection) {
            (_, Some(array), _) => {
                ops = PUSHES;
                (0..PUSHES)
                    .try_for_each(|_| array.push(&item).and_then(|()| array.count().map(drop)))
            }
            ("person set whole", _, Some(documents)) => {
                (1..=size).try_for_each(|at| documents.set(by, &set, at..=at))
            }
            ("person set whole in one commit", _, Some(documents)) => {
                documents.set(by, &set, 1..=size)
            }
            ("person leaf set in one commit", _, Some(documents)) => {
                documents.set_leaves(&set, 1..=size)
            }
            _ => panic!("`{row}` is no row"),
        })?;
        eprintln!("{row}: {:.0} a second", ops as f64 / clock.elapsed().as_secs_f64());
    }
    Ok(())
}
