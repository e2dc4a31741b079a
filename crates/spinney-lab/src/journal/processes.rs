//! Durable commits of two processes of four threads, beside those of one thread: each counts one up
//! and sets a leaf of its own, so that a lost update shows.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use spinney::{Durability, Limits, Store};
use spinney_core::{Error, Result};

use super::{Bench, Found, io, stores, wrong};
use crate::claims::{Claim, Side, Unit};
use crate::statistics::median;

/// The first argument of a child.
pub const CHILD: &str = "--count-up-in-threads";

const PROCESSES: usize = 2;
const THREADS: usize = 4;
const ROUNDS: usize = 7;
const TURN: Duration = Duration::from_millis(500);
const COUNTER: &str = "/counter";

pub fn measure(bench: &Bench<'_>) -> Result<Found> {
    let items = bench.options.items;
    let store = stores::filled(bench.folder, Durability::Durable, Limits::DEFAULT, items)?;
    let mut others = Vec::new();
    for number in 0..PROCESSES {
        others.push(Other::start(bench, number)?);
    }
    let mut total = 0;
    let (mut alone, mut together) = (Vec::new(), Vec::new());
    // The first round warms up.
    for round in 0..=ROUNDS {
        let begin = Instant::now();
        let commits = count_up(&store, 1, "alone", TURN)?;
        let one = begin.elapsed().as_secs_f64() * 1e6 / commits as f64;
        let (mut counted, begin) = (0, Instant::now());
        for other in &mut others {
            other.begin()?;
        }
        for other in &mut others {
            counted += other.end()?;
        }
        let all = begin.elapsed().as_secs_f64() * 1e6 / counted as f64;
        total += commits + counted;
        if round > 0 {
            alone.push(one);
            together.push(all);
        }
    }
    others.into_iter().try_for_each(Other::stop)?;
    let counter = stores::number_at(&store, COUNTER)?;
    if counter != total {
        return Err(wrong(format!("the counter is at {counter} after {total} commits")));
    }
    let parts = [median(&alone), median(&together)].map(Option::unwrap_or_default);
    let promise =
        format!("durable commits a second: {PROCESSES} processes of {THREADS} threads against one");
    let claim = Claim::ratio(promise, "lmdb", Some(items), parts, Unit::Microseconds)
        .bounded(Side::AtLeast, 3.0);
    Ok(Found { claims: vec![claim], facts: vec![format!("{total} commits counted, none lost")] })
}

/// Counts up in some threads for a while; returns the number of commits.
fn count_up(store: &Store, threads: usize, name: &str, time: Duration) -> Result<u64> {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let is_over = &is_over;
        let writers: Vec<_> = (0..threads)
            .map(|at| {
                let own = format!("/writers/{name}-{at}");
                scope.spawn(move || {
                    let mut commits = 0_u64;
                    while !is_over.load(Ordering::Relaxed) {
                        store.write(|transaction| {
                            let next = stores::number(transaction.get(COUNTER)?) + 1;
                            transaction.set(COUNTER, &next.into())?;
                            transaction.set(&own, &next.into())
                        })?;
                        commits += 1;
                    }
                    Ok(commits)
                })
            })
            .collect();
        thread::sleep(time);
        is_over.store(true, Ordering::Relaxed);
        writers.into_iter().map(|writer| writer.join().expect("a writer")).sum()
    })
}

/// Another process of this program.
struct Other {
    child: Child,
    asked: ChildStdin,
    said: BufReader<ChildStdout>,
}

impl Other {
    fn start(bench: &Bench<'_>, number: usize) -> Result<Other> {
        let program = std::env::current_exe().map_err(|error| io(error, bench.folder))?;
        let mut child = Command::new(&program)
            .arg(CHILD)
            .arg(bench.folder)
            .arg(number.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| io(error, &program))?;
        let asked = child.stdin.take().expect("it is piped");
        let said = BufReader::new(child.stdout.take().expect("it is piped"));
        let mut other = Other { child, asked, said };
        other.end()?;
        Ok(other)
    }

    fn begin(&mut self) -> Result<()> {
        writeln!(self.asked).map_err(|error| Error::io("a child is gone").with_source(error))
    }

    fn end(&mut self) -> Result<u64> {
        let mut line = String::new();
        let read = self.said.read_line(&mut line);
        let number = read.ok().and_then(|_| line.trim().parse().ok());
        number.ok_or_else(|| Error::io("a child that commits has failed"))
    }

    fn stop(mut self) -> Result<()> {
        drop(self.asked);
        match self.child.wait() {
            Ok(status) if status.success() => Ok(()),
            _ => Err(Error::io("a child that commits has failed")),
        }
    }
}

/// A child: commits for a while for each line that it reads, and says how many commits it made.
pub fn serve(folder: &str, name: &str) -> Result<()> {
    let store = stores::open(folder.as_ref(), Durability::Durable, Limits::DEFAULT)?;
    println!("0");
    for line in std::io::stdin().lines() {
        line.map_err(|error| Error::io("cannot read what is asked").with_source(error))?;
        println!("{}", count_up(&store, THREADS, name, TURN)?);
    }
    Ok(())
}
