//! A subscriber in another process: when it knows of a durable commit, counted from when the writer
//! begins it, and what it costs while nothing happens.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use spinney::feed::Event;
use spinney::{Durability, Limits};
use spinney_core::{Error, Result};

use super::{Bench, Found, io, stores};
use crate::claims::{Claim, Unit};
use crate::statistics::median;

/// The first argument of a child.
pub const CHILD: &str = "--follow";

const COMMITS: usize = 500;
const IDLE: Duration = Duration::from_secs(10);
/// Between two commits, so that the subscriber sleeps when they come.
const PAUSE: Duration = Duration::from_millis(3);

pub fn measure(bench: &Bench<'_>) -> Result<Found> {
    let items = bench.options.items;
    let store = stores::filled(bench.folder, Durability::Durable, Limits::DEFAULT, items)?;
    let program = std::env::current_exe().map_err(|error| io(error, bench.folder))?;
    let mut child = Command::new(&program)
        .args([CHILD.as_ref(), bench.folder.as_os_str()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| io(error, &program))?;
    let mut said = BufReader::new(child.stdout.take().expect("it is piped")).lines();
    let mut hear = || -> Result<f64> {
        let line = said.next().and_then(|line| line.ok());
        let number = line.and_then(|line| line.parse().ok());
        number.ok_or_else(|| Error::io("the child that follows has failed"))
    };
    hear()?;
    let (mut told, mut answered) = (Vec::new(), Vec::new());
    for commit in 0..COMMITS {
        thread::sleep(PAUSE);
        let path = stores::leaf_path(commit * 7_919 % items);
        let begin = now_us();
        store.write(|transaction| transaction.set(&path, &format!("{commit}").into()))?;
        answered.push(now_us() - begin);
        told.push(hear()? - begin);
    }
    thread::sleep(IDLE);
    drop(child.stdin.take());
    let busy = hear()? * 1e6;
    if !child.wait().is_ok_and(|status| status.success()) {
        return Err(Error::io("the child that follows has failed"));
    }
    let [told, answered] = [median(&told), median(&answered)].map(Option::unwrap_or_default);
    let latency = "from a durable commit to a subscriber in another process, p50";
    let idle = "processor time of an idle subscriber in a second";
    Ok(Found {
        claims: vec![
            Claim::value(latency, "lmdb", Some(items), told, Unit::Microseconds).at_most(2_000.0),
            Claim::value(idle, "lmdb", Some(items), busy, Unit::Microseconds).at_most(2_000.0),
        ],
        facts: vec![format!("the writer has its answer after {answered:.0} us")],
    })
}

/// A child: says when it is told of each commit, and at the end what share of a core the time took in
/// which it was told of none.
pub fn serve(folder: &str) -> Result<()> {
    let store = stores::open(folder.as_ref(), Durability::Durable, Limits::DEFAULT)?;
    let mut changes = store.changes("", store.read()?.revision()?)?;
    let mut out = std::io::stdout();
    let mut say = |number: f64| {
        let said = writeln!(out, "{number}").and_then(|()| out.flush());
        said.map_err(|error| Error::io("nobody listens").with_source(error))
    };
    say(0.0)?;
    for _ in 0..COMMITS {
        match changes.next(Duration::from_secs(60))? {
            Some(Event::Change(_)) => say(now_us())?,
            _ => return Err(Error::io("a commit was not told")),
        }
    }
    // The journal is folded a second after the last commit.
    thread::sleep(Duration::from_secs(2));
    let (busy, begin) = (processor_us(), now_us());
    changes.next(IDLE - Duration::from_secs(4))?;
    say((processor_us() - busy) / (now_us() - begin))
}

/// The same clock in all processes.
fn now_us() -> f64 {
    microseconds(ClockId::Monotonic)
}

fn processor_us() -> f64 {
    microseconds(ClockId::ProcessCPUTime)
}

fn microseconds(clock: ClockId) -> f64 {
    let time = clock_gettime(clock);
    time.tv_sec as f64 * 1e6 + time.tv_nsec as f64 / 1e3
}
