//! Power failures: histories whose every write and sync is recorded, and recovered from each state
//! that a failure may leave.
//!
//! `SPINNEY_TEST_STATES` sets how many states are tried, `SPINNEY_TEST_SEED` repeats a run.

use std::sync::Mutex;

use fastrand::Rng;

use super::super::simulated::Action;
use super::*;

/// What the test remembers of a moment.
#[derive(Clone, Copy, Debug)]
enum Mark {
    /// So many records were appended.
    Appended(usize),
    /// So many of them must be there.
    Durable(usize),
    Checkpoint(Checkpoint),
}

/// The checkpoint, which is somewhere else and atomic.
#[derive(Clone, Copy, Debug, Default)]
struct Checkpoint {
    upto: Checkpointed,
    /// Records that it holds.
    records: usize,
}

/// A store: a checkpoint, a journal, and what should be in them.
struct Store {
    disk: Disk<Mark>,
    journal: Mutex<Journal>,
    group: Group,
    checkpoint: Checkpoint,
    bodies: Vec<Vec<u8>>,
    /// The end of the generation before the present one.
    frozen: Checkpoint,
}

impl Store {
    fn journal(&mut self) -> &mut Journal {
        self.journal.get_mut().expect("no panic")
    }

    fn act(&mut self, random: &mut Rng) -> Result<()> {
        match random.u8(..16) {
            0..=7 => {
                let len =
                    if random.u8(..8) == 0 { random.usize(..3_000) } else { random.usize(..200) };
                let body: Vec<u8> = std::iter::repeat_with(|| random.u8(..)).take(len).collect();
                self.bodies.push(body);
                let (revision, body) = (self.bodies.len() as u64, self.bodies.last().expect("one"));
                self.disk.mark(Mark::Appended(self.bodies.len()));
                let entry = Entry { revision, commit_id: random.u128(..), body };
                let journal = self.journal.get_mut().expect("no panic");
                journal.append(&entry, self.group.synced())?;
            }
            8 | 9 => self.journal().write()?,
            10..=12 => {
                let journal = self.journal();
                let (end, segments) = (journal.end(), Arc::clone(journal.segments()));
                let sync = |synced| {
                    let held = self.journal.lock().expect("no panic");
                    Landing::default().sync_behind(&segments, &self.journal, held, synced)
                };
                self.group.sync(end, sync)?;
                self.disk.mark(Mark::Durable(self.bodies.len()));
            }
            13 => {
                let is_free = self.frozen.upto.generation <= self.checkpoint.upto.generation;
                if self.journal().end().offset > 0 && is_free {
                    let upto = self.journal().checkpoint();
                    self.frozen = self.present(upto);
                    self.journal().start(&[5; 20])?;
                }
            }
            14 if self.frozen.upto.generation > self.checkpoint.upto.generation => {
                self.checkpoint(self.frozen);
            }
            15 if random.u8(..4) == 0 => self.checkpoint_all(),
            _ => {}
        }
        Ok(())
    }

    fn present(&self, upto: Checkpointed) -> Checkpoint {
        Checkpoint { upto, records: self.bodies.len() }
    }

    fn checkpoint_all(&mut self) {
        let beyond = Checkpointed::beyond(self.journal().end().generation);
        self.checkpoint(self.present(beyond));
        self.journal().restart(beyond);
    }

    fn checkpoint(&mut self, checkpoint: Checkpoint) {
        self.checkpoint = checkpoint;
        self.disk.mark(Mark::Checkpoint(checkpoint));
        self.disk.mark(Mark::Durable(checkpoint.records));
    }
}

struct Simulation {
    random: Rng,
    states: u64,
    cuts: u64,
}

impl Simulation {
    /// Makes a history on a disk, then recovers from states of each of its moments; from some of
    /// them the history goes on.
    fn run(
        &mut self,
        disk: Disk<Mark>,
        durable: usize,
        checkpoint: Checkpoint,
        bodies: Vec<Vec<u8>>,
        depth: u32,
    ) {
        let since = disk.copy();
        let (journal, ..) = recover(&disk, checkpoint.upto).expect("recovers");
        let mut store = Store {
            disk,
            journal: Mutex::new(journal),
            group: Group::default(),
            checkpoint,
            frozen: checkpoint,
            bodies,
        };
        // A recovery may have found two generations; where the older one ended it does not say.
        if store.journal().end().generation > checkpoint.upto.generation + 1 {
            store.checkpoint_all();
        }
        let began_with = store.bodies.len();
        for _ in 0..self.random.usize(5..60) {
            store.act(&mut self.random).expect("acts");
        }

        let mut replay = store.disk.replay(&since);
        let (mut durable, mut checkpoint, mut appended) = (durable, checkpoint, began_with);
        while let Some(action) = replay.step() {
            match action {
                Action::Mark(Mark::Appended(records)) => appended = records,
                Action::Mark(Mark::Durable(records)) => durable = records,
                Action::Mark(Mark::Checkpoint(made)) => checkpoint = made,
                _ => {}
            }
            for _ in 0..3 {
                let left = replay.after_power_failure(&mut self.random);
                let case = || format!("{checkpoint:?}, {durable} durable of {appended}");
                let (_, recovered, read) = recover(&left, checkpoint.upto)
                    .unwrap_or_else(|error| panic!("{error}: {}", case()));
                self.states += 1;
                self.cuts += u64::from(recovered.cut.is_some());
                let there = checkpoint.records + read.entries.len();
                assert!(there >= durable && there <= appended, "{there}: {}", case());
                for (at, (revision, body)) in (checkpoint.records..).zip(&read.entries) {
                    assert_eq!((*revision, body), (at as u64 + 1, &store.bodies[at]), "{}", case());
                }
                if depth > 0 && self.random.u8(..100) == 0 {
                    let bodies = store.bodies[..there].to_vec();
                    self.run(left, durable, checkpoint, bodies, depth - 1);
                }
            }
        }
    }
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

#[test]
fn nothing_durable_is_lost_and_every_state_opens() {
    let seed = number("SPINNEY_TEST_SEED").unwrap_or_else(|| fastrand::u64(..));
    let states_min = number("SPINNEY_TEST_STATES").unwrap_or(100_000);
    println!("SPINNEY_TEST_SEED={seed}");
    let mut simulation = Simulation { random: Rng::with_seed(seed), states: 0, cuts: 0 };
    while simulation.states < states_min {
        simulation.run(Disk::new(), 0, Checkpoint::default(), Vec::new(), 3);
    }
    println!("{} states after a power failure, {} torn tails", simulation.states, simulation.cuts);
    assert!(simulation.cuts > states_min / 100);
}
