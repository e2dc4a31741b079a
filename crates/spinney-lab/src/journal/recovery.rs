//! Opening a store whose writer was killed with 64 MB in the journal.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use spinney::{Durability, Limits};
use spinney_core::{Error, Result};

use super::{Bench, Found, io, stores, wrong};
use crate::claims::{Claim, Unit};
use crate::statistics::median;

/// The first argument of a child.
pub const CHILD: &str = "--commit-without-folding";

const TAIL_LEN_BYTES: u64 = 64_000_000;
const ITEMS: usize = 100_000;
const RUNS: usize = 5;
/// Nothing is folded before the child is killed.
const LIMITS: Limits = Limits {
    generation_len_bytes: 1 << 30,
    fold_after: Duration::from_secs(3_600),
    ..Limits::DEFAULT
};
const LAST: &str = "/last";

pub fn measure(bench: &Bench<'_>) -> Result<Found> {
    let mut samples = Vec::new();
    let mut commits = 0;
    for run in 0..RUNS {
        let folder = bench.folder.join(run.to_string());
        commits = run_child(&folder)?;
        let begin = Instant::now();
        let store = stores::open(&folder, Durability::Durable, LIMITS)?;
        let last = stores::number_at(&store, LAST)?;
        samples.push(begin.elapsed().as_secs_f64() * 1e6);
        if last < commits {
            return Err(wrong(format!("commit {last} and not {commits}")));
        }
    }
    let opened = median(&samples).unwrap_or_default();
    let promise = format!("opening with {} MB in the journal", TAIL_LEN_BYTES / 1_000_000);
    let claim = Claim::value(promise, "lmdb", Some(ITEMS), opened, Unit::Microseconds);
    let facts = vec![format!("{commits} commits were in the journal that was recovered")];
    Ok(Found { claims: vec![claim.at_most(1e6)], facts })
}

/// Returns the last commit that the child has answered.
fn run_child(folder: &Path) -> Result<u64> {
    let program = std::env::current_exe().map_err(|error| io(error, folder))?;
    let mut child = Command::new(&program)
        .arg(CHILD)
        .arg(folder)
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| io(error, &program))?;
    let mut line = String::new();
    let said = child.stdout.take().expect("it is piped");
    BufReader::new(said).read_line(&mut line).map_err(|error| io(error, folder))?;
    child.kill().and_then(|()| child.wait()).map_err(|error| io(error, &program))?;
    line.trim().parse().map_err(|_| Error::io("a child that commits has failed"))
}

/// A child: commits until the journal is long enough, says the last commit, and waits to be killed.
pub fn serve(folder: &str) -> Result<()> {
    let store = stores::filled(folder.as_ref(), Durability::Process, LIMITS, ITEMS)?;
    let mut random = fastrand::Rng::with_seed(3);
    let mut commits = 0;
    while journal_len(folder.as_ref())? < TAIL_LEN_BYTES {
        for _ in 0..2_000 {
            commits += 1;
            store.write(|transaction| {
                let path = stores::leaf_path(random.usize(..ITEMS));
                transaction.set(&path, &commits.into())?;
                transaction.set(LAST, &commits.into())
            })?;
        }
    }
    println!("{commits}");
    loop {
        std::thread::sleep(Duration::from_secs(3_600));
    }
}

/// Bytes of the journal's files up to the last record: they are preallocated.
fn journal_len(folder: &Path) -> Result<u64> {
    let mut len = 0;
    for name in ["journal.0", "journal.1"] {
        let path = folder.join(name);
        if path.exists() {
            let bytes = std::fs::read(&path).map_err(|error| io(error, &path))?;
            len += bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last as u64 + 1);
        }
    }
    Ok(len)
}
