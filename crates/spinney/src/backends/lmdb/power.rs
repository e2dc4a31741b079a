//! Power failures of whole stores: the engine at its old or its new committed state, the journal in
//! any state that its files may be in, and nothing of the shared page.
//!
//! The engine is LMDB itself, of which a failure leaves what its contract says: a transaction as a
//! whole or not at all until its commit has returned, and from then on as a whole. The journal is on a
//! simulated disk. `SPINNEY_TEST_STATES` sets how many states are tried, `SPINNEY_TEST_SEED` repeats a
//! run.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fastrand::Rng;
use spinney_core::Value;
use spinney_core::backend::Backend;

use super::directory::{Directory, Options};
use super::engine::{Access, DATA_FILE, Engine};
use super::shared::SHARED_FILE;
use super::staging::Store;
use super::{JOURNAL, Lmdb};
use crate::journal::simulated::{Action, Disk};
use crate::journal::{Segments, Sizes};
use crate::store_limits::Limits;
use crate::{Durability, OpenOptions, Result};

/// So small that a history fills some generations.
const LIMITS: Limits =
    Limits { generation_len_bytes: 4 << 10, journaled_len_max_bytes: 20_000, ..Limits::DEFAULT };
const SIZES: Sizes = Sizes { first: 4_096, step_max: 8_192 };
/// Leaves that the numbered changes set in turns.
const LEAVES: u64 = 60;
const LEVELS: [Durability; 3] = [Durability::Durable, Durability::Process, Durability::None];

/// What the test remembers of a moment.
#[derive(Clone)]
enum Mark {
    /// This change may be there from now on.
    Changed(u64),
    /// It must be.
    Durable(u64),
    /// From now on the engine may be at its next state, whatever else happens.
    Folding(What),
    /// The engine is at this state.
    Folded(What, Arc<[u8]>),
}

/// What a transaction of the engine takes over.
#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    /// The generation before the present one, while commits go on.
    Frozen,
    /// The whole journal, while nobody commits.
    All,
}

/// An open store, and what it lies on.
struct World {
    dir: PathBuf,
    disk: Disk<Mark>,
    inner: Arc<Store>,
    store: crate::Store,
    changes: u64,
}

impl World {
    fn open(dir: &Path, disk: &Disk<Mark>) -> Result<World> {
        let directory = Directory::open(dir, Options::CREATE)?;
        let engine = Engine::open(&directory.path, Access::ReadWrite, 64)?;
        let segments = Segments::new(Arc::new(disk.clone()), JOURNAL, SIZES);
        let inner = Store::new(directory, engine, segments, Access::ReadWrite, LIMITS)?;
        inner.keep_still();
        let backend: Arc<dyn Backend> = Lmdb::over(Arc::clone(&inner), false);
        let store = OpenOptions::new().over(backend, None);
        let changes = number(&store, "/t/n")?;
        Ok(World { dir: dir.to_owned(), disk: disk.clone(), inner, store, changes })
    }

    fn act(&mut self, random: &mut Rng) {
        match random.u8(..20) {
            0..=14 => self.change(random),
            15 => self.sync(),
            16 => self.inner.write().expect("writes"),
            17 => self.fold_frozen(),
            18 => self.checkpoint(),
            _ => self.change_much(),
        }
    }

    /// A small change: what the store holds follows from how many were made. None removes a tree or
    /// what is in pages of its own: reclaiming that would commit beside the history.
    fn change(&mut self, random: &mut Rng) {
        if self.inner.is_full() {
            // Who fills a second generation folds the first one.
            self.fold_frozen();
        }
        let was_frozen = self.inner.is_folding_due();
        self.changes += 1;
        let n = self.changes;
        self.disk.mark(Mark::Changed(n));
        let level = *random.choice(LEVELS.iter()).expect("three levels");
        let transactions = self.inner.engine.transactions();
        self.store.write_with(level, |tx| apply(tx, n)).expect("commits");
        assert_eq!(self.inner.engine.transactions(), transactions, "it went to the journal");
        if level == Durability::Durable {
            self.disk.mark(Mark::Durable(n));
        }
        if !was_frozen && self.inner.is_folding_due() {
            self.disk.mark(Mark::Folding(What::Frozen));
        }
    }

    /// A change that goes to the engine directly.
    fn change_much(&mut self) {
        self.changes += 1;
        let n = self.changes;
        self.disk.mark(Mark::Changed(n));
        self.disk.mark(Mark::Folding(What::All));
        let text = "x".repeat(60);
        let edit = |tx: &mut crate::Transaction<'_>| {
            for member in 0..600 {
                tx.set(&format!("/t/many/{member}"), &format!("{n} {text}").as_str().into())?;
            }
            apply(tx, n)
        };
        let transactions = self.inner.engine.transactions();
        self.store.write_with(Durability::None, edit).expect("commits");
        assert_eq!(self.inner.engine.transactions(), transactions + 1, "it went to the engine");
        self.folded(n);
    }

    fn sync(&mut self) {
        self.inner.flush().expect("syncs");
        self.disk.mark(Mark::Durable(self.changes));
    }

    fn fold_frozen(&mut self) {
        if self.inner.is_folding_due() {
            self.inner.fold_frozen().expect("folds");
            self.disk.mark(Mark::Folded(What::Frozen, self.engine()));
        }
    }

    fn checkpoint(&mut self) {
        self.disk.mark(Mark::Folding(What::All));
        self.inner.checkpoint().expect("folds");
        self.folded(self.changes);
    }

    fn folded(&self, durable: u64) {
        self.disk.mark(Mark::Folded(What::All, self.engine()));
        self.disk.mark(Mark::Durable(durable));
    }

    fn engine(&self) -> Arc<[u8]> {
        fs::read(self.dir.join(DATA_FILE)).expect("the engine's file").into()
    }
}

fn apply(tx: &mut crate::Transaction<'_>, n: u64) -> Result<()> {
    tx.set("/t/n", &n.into())?;
    let text = format!("{n} {}", "x".repeat((n % 90) as usize));
    tx.set(&format!("/t/leaves/{}", n % LEAVES), &(&*text).into())?;
    match n % 7 {
        3 => tx.set("/t/list", &vec![Value::from(n); 30].into()),
        5 => tx.remove("/t/list").map(drop),
        _ => Ok(()),
    }
}

fn number(store: &crate::Store, path: &str) -> Result<u64> {
    match store.read()?.get(path)? {
        Some(Value::Number(number)) => Ok(number.as_u64().expect("a small number")),
        _ => Ok(0),
    }
}

/// What the store holds is what the first `n` changes make, and nothing is damaged.
fn check(store: &crate::Store, n: u64) {
    let snapshot = store.read().expect("a snapshot");
    for leaf in 0..LEAVES {
        let last = (n.saturating_sub(LEAVES - 1)..=n).find(|n| n % LEAVES == leaf && *n > 0);
        let read = snapshot.get(&format!("/t/leaves/{leaf}")).expect("it reads");
        let text = last.map(|n| format!("{n} {}", "x".repeat((n % 90) as usize)));
        assert_eq!(read, text.as_deref().map(Value::from), "leaf {leaf} after {n} changes");
    }
    let list = (1..=n).rev().find_map(|n| match n % 7 {
        3 => Some(Some(Value::from(vec![Value::from(n); 30]))),
        5 => Some(None),
        _ => None,
    });
    assert!(snapshot.get("/t/list").expect("it reads") == list.flatten(), "after {n} changes");
    let report = snapshot.check().expect("it reads");
    assert!(report.damaged.is_empty(), "{report:?}");
}

/// What a failure may find.
#[derive(Clone)]
struct Moment {
    changed: u64,
    durable: u64,
    engine: Arc<[u8]>,
    next_engine: Option<Arc<[u8]>>,
}

struct Simulation {
    folder: PathBuf,
    random: Rng,
    states: u64,
    new_engines: u64,
}

impl Simulation {
    /// Makes a history in a folder, then opens states of each of its moments; with some of them the
    /// history goes on.
    fn run(&mut self, dir: &Path, disk: &Disk<Mark>, depth: u32) {
        let since = disk.copy();
        let mut world = World::open(dir, disk).expect("opens");
        let mut moment = Moment {
            changed: world.changes,
            durable: world.changes,
            engine: world.engine(),
            next_engine: None,
        };
        for _ in 0..self.random.usize(5..120) {
            world.act(&mut self.random);
        }
        world.checkpoint();
        drop(world);
        let mut marks = disk.replay(&since);
        let mut engines = Vec::new();
        while let Some(action) = marks.step() {
            if let Action::Mark(Mark::Folded(what, engine)) = action {
                engines.push((what, engine));
            }
        }
        let mut engines = engines.into_iter().peekable();
        let mut replay = disk.replay(&since);
        while let Some(action) = replay.step() {
            match action {
                Action::Mark(Mark::Changed(n)) => moment.changed = n,
                Action::Mark(Mark::Durable(n)) => moment.durable = n,
                Action::Mark(Mark::Folding(what)) => {
                    let next = engines.peek().filter(|(next, _)| *next == what);
                    moment.next_engine = next.map(|(_, engine)| Arc::clone(engine));
                }
                Action::Mark(Mark::Folded(_, engine)) => {
                    engines.next();
                    moment.engine = engine;
                    moment.next_engine = None;
                }
                _ => {}
            }
            if self.random.u8(..4) == 0 {
                let left = replay.after_power_failure(&mut self.random);
                self.fail(&moment, &left, depth);
            }
        }
    }

    fn fail(&mut self, moment: &Moment, left: &Disk<Mark>, depth: u32) {
        self.states += 1;
        let dir = self.folder.join(self.states.to_string());
        let mut engine = &moment.engine;
        if let Some(next) = &moment.next_engine
            && self.random.bool()
        {
            self.new_engines += 1;
            engine = next;
        }
        fs::create_dir(&dir).expect("mkdir");
        fs::copy(self.folder.join("spinney"), dir.join("spinney")).expect("copy");
        fs::write(dir.join(DATA_FILE), engine).expect("write");
        if self.random.bool() {
            let garbage: Vec<u8> =
                std::iter::repeat_with(|| self.random.u8(..)).take(4_096).collect();
            fs::write(dir.join(SHARED_FILE), garbage).expect("write");
        }
        let goes_on = depth > 0 && self.random.u8(..100) == 0;
        let again = goes_on.then(|| (dir.with_extension("again"), left.copy()));
        if let Some((again, _)) = &again {
            fs::create_dir(again).expect("mkdir");
            for name in ["spinney", DATA_FILE] {
                fs::copy(dir.join(name), again.join(name)).expect("copy");
            }
        }
        let world = World::open(&dir, left).unwrap_or_else(|error| panic!("{error}"));
        let (there, Moment { changed, durable, .. }) = (world.changes, moment);
        assert!((*durable..=*changed).contains(&there), "{there} of {durable} to {changed}");
        check(&world.store, there);
        drop(world);
        fs::remove_dir_all(&dir).expect("remove");
        if let Some((again, left)) = again {
            self.run(&again, &left, depth - 1);
            fs::remove_dir_all(&again).expect("remove");
        }
    }
}

fn number_from(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

#[test]
fn a_store_opens_after_a_power_failure_with_all_that_was_durable() {
    let seed = number_from("SPINNEY_TEST_SEED").unwrap_or_else(|| fastrand::u64(..));
    // Opening an engine takes as long as many journals.
    let states_min = number_from("SPINNEY_TEST_STATES").unwrap_or(100_000) / 25;
    println!("SPINNEY_TEST_SEED={seed}");
    let folder = tempfile::tempdir().expect("a folder");
    let mut simulation = Simulation {
        folder: folder.path().to_owned(),
        random: Rng::with_seed(seed),
        states: 0,
        new_engines: 0,
    };
    let mut histories = 0;
    while simulation.states < states_min {
        histories += 1;
        let dir = folder.path().join(format!("history{histories}"));
        let made = Directory::open(&dir, Options::CREATE).expect("a store");
        fs::copy(made.path.join("spinney"), folder.path().join("spinney")).expect("copy");
        simulation.run(&dir, &Disk::new(), 2);
        fs::remove_dir_all(&dir).expect("remove");
    }
    let Simulation { states, new_engines, .. } = simulation;
    println!("{states} states after a power failure, {new_engines} with the engine's next state");
    assert!(new_engines > states / 100, "hardly any engine was ahead");
}
