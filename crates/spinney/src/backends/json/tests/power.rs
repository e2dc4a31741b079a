//! Power failures: histories of commits, rewrites, closes, kills and edits by people, whose every
//! write, sync and name is recorded, opened from each state that a failure may leave.
//!
//! `SPINNEY_TEST_STATES` sets how many states are tried, `SPINNEY_TEST_SEED` repeats a run.

use std::fmt;

use fastrand::Rng;
use spinney_core::transaction::Transaction;
use spinney_core::{ErrorKind, Value};

use super::*;
use crate::formats;
use crate::journal::medium::Folder;
use crate::journal::simulated::Action;

/// A state of the document.
#[derive(Debug)]
struct State {
    /// Stands in it as `/n`; no other state has it.
    number: u64,
    /// Without what JSON leaves out.
    plain: Value,
    /// `None` for one that a person has made.
    whole: Option<String>,
}

/// What may be there, and what must be.
#[derive(Clone)]
struct Expected {
    /// The states that were committed, in their order.
    line: Vec<Arc<State>>,
    /// How many of the first ones must not be the last.
    durable: usize,
    is_created: bool,
    /// A person has saved the file without a sync.
    may_be_torn: bool,
}

impl fmt::Debug for Expected {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let numbers: Vec<u64> = self.line.iter().map(|state| state.number).collect();
        write!(out, "{numbers:?}, the first {} durable", self.durable + 1)
    }
}

impl Expected {
    fn position(&self, number: u64) -> usize {
        let found = self.line.iter().position(|state| state.number == number);
        found.unwrap_or_else(|| panic!("state {number} was never committed: {self:?}"))
    }
}

/// An open document, and what should be in it.
struct Writer<'s> {
    disk: Disk<Expected>,
    store: Arc<Store>,
    expected: Expected,
    simulation: &'s mut Simulation,
}

struct Simulation {
    random: Rng,
    numbers: u64,
    states: u64,
    edits: u64,
}

impl Writer<'_> {
    fn act(&mut self) -> Result<()> {
        match self.simulation.random.u8(..32) {
            0..=15 => self.commit()?,
            16..=18 => drop(self.store.write()?),
            19..=23 => {
                self.store.sync_all()?;
                self.all_is_durable();
            }
            24..=27 => {
                self.store.rewrite()?;
                self.all_is_durable();
            }
            28 => self.close()?,
            29 => self.kill()?,
            _ => self.edit_by_hand()?,
        }
        Ok(())
    }

    fn commit(&mut self) -> Result<()> {
        self.simulation.numbers += 1;
        let (number, random) = (self.simulation.numbers, &mut self.simulation.random);
        let mut transaction = Transaction::begin(&*self.store)?;
        transaction.set_base_path(base_path());
        transaction.set("/n", &number.into())?;
        for _ in 0..random.usize(..3) {
            let path = ["/a", "/b", "/b/0", "/b/-", "/b/1/c", "/c/d"][random.usize(..6)];
            let value = match random.u8(..6) {
                0 => Value::Bytes(vec![7; random.usize(..9)]),
                1 => Value::from(vec![Value::Null, Value::from("x")]),
                2 => Value::from("y".repeat(random.usize(..2_000))),
                _ => Value::from(random.u64(..)),
            };
            // What has no place is refused, and leaves nothing.
            let _ = match random.u8(..8) {
                0..4 => transaction.set(path, &value),
                4 => transaction.remove(path).map(drop),
                5 => transaction.insert(path, &value),
                6 => transaction.mv("/b", "/a"),
                _ => transaction.set_meta(path, "m", random.bool().then_some("text")),
            };
        }
        transaction.commit(random.u128(..))?;
        self.committed(number);
        Ok(())
    }

    /// The store's state is a new one.
    fn committed(&mut self, number: u64) {
        self.expected.may_be_torn = false;
        let snapshot = self.store.snapshot().expect("a snapshot");
        let text = self.store.place.print(&*snapshot, self.store.key_len_max()).expect("prints");
        let plain = parse(&text);
        self.expected.line.push(Arc::new(State { number, plain, whole: Some(whole(&self.store)) }));
        self.disk.mark(self.expected.clone());
    }

    fn all_is_durable(&mut self) {
        self.expected.durable = self.expected.line.len() - 1;
        self.disk.mark(self.expected.clone());
    }

    fn close(&mut self) -> Result<()> {
        self.store.close()?;
        self.all_is_durable();
        assert!(!files(&self.disk).has("journal.0") && !files(&self.disk).has("journal.1"));
        if self.simulation.random.bool() {
            self.save_by_hand()?;
        }
        self.reopen()
    }

    /// The process ends without a word.
    fn kill(&mut self) -> Result<()> {
        self.reopen()
    }

    fn reopen(&mut self) -> Result<()> {
        self.store = open(&self.disk)?;
        let at = self.expected.position(number_of(&self.store));
        self.expected.line.truncate(at);
        self.committed(number_of(&self.store));
        assert!(at >= self.expected.durable, "{:?}", self.expected);
        Ok(())
    }

    /// A person saves the file while nothing is behind it, and the store takes it over.
    fn edit_by_hand(&mut self) -> Result<()> {
        self.store.rewrite()?;
        self.all_is_durable();
        self.save_by_hand()?;
        if self.simulation.random.u8(..8) == 0 {
            return self.reopen();
        }
        self.store.look()?;
        self.store.look()?;
        // The ids of elements in what was taken over are known a record later than the rest.
        self.expected.may_be_torn = false;
        self.disk.mark(self.expected.clone());
        Ok(())
    }

    fn save_by_hand(&mut self) -> Result<()> {
        self.simulation.numbers += 1;
        self.simulation.edits += 1;
        let number = self.simulation.numbers;
        let text = self.disk.read(FILE).expect("reads").expect("a document");
        let text = String::from_utf8(text).expect("UTF-8");
        let text = match text.find("\"n\":") {
            None => format!("{{\"n\": {number}}}"),
            Some(at) => {
                let (before, rest) = text.split_at(at + 4);
                let rest = rest.trim_start_matches(|c: char| c == ' ' || c.is_ascii_digit());
                format!("{before} {number}{rest}")
            }
        };
        let plain = parse(text.as_bytes());
        self.expected.line.push(Arc::new(State { number, plain, whole: None }));
        let may_be_torn = self.simulation.random.bool();
        self.expected.may_be_torn = may_be_torn;
        self.disk.mark(self.expected.clone());
        self.disk.remove("a.json~").expect("removes");
        let saved = match may_be_torn {
            true => self
                .disk
                .open("a.json~", true)
                .and_then(|file| file.expect("is made").write_at(text.as_bytes(), 0)),
            false => self.disk.write_new("a.json~", text.as_bytes(), FILE),
        };
        saved.and_then(|()| self.disk.rename("a.json~", FILE)).expect("saves");
        Ok(())
    }
}

fn parse(text: &[u8]) -> Value {
    let text = std::str::from_utf8(text).expect("UTF-8");
    formats::parse(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn number_in(plain: &Value) -> u64 {
    match plain.pointer("/n") {
        Some(Value::Number(number)) => number.as_u64().expect("a whole number"),
        _ => 0,
    }
}

fn number_of(store: &Store) -> u64 {
    let snapshot = store.snapshot().expect("a snapshot");
    number_in(&parse(&store.place.print(&*snapshot, store.key_len_max()).expect("prints")))
}

impl Simulation {
    /// Makes a history on a disk, then opens states of each of its moments; from some of them the
    /// history goes on.
    fn run(&mut self, disk: Disk<Expected>, expected: Expected, depth: u32) {
        let since = disk.copy();
        let store = open(&disk).expect("opens");
        let steps = self.random.usize(5..40);
        let created = Expected { is_created: true, may_be_torn: false, ..expected.clone() };
        disk.mark(created.clone());
        let mut writer = Writer { disk: disk.clone(), store, expected: created, simulation: self };
        for _ in 0..steps {
            writer.act().expect("acts");
        }
        drop(writer);

        let mut replay = disk.replay(&since);
        let mut expected = expected;
        while let Some(action) = replay.step() {
            if let Action::Mark(mark) = action {
                expected = mark;
                continue;
            }
            for _ in 0..3 {
                let left = replay.after_power_failure(&mut self.random);
                self.states += 1;
                let Some(at) = self.check(&left.copy(), &expected) else { continue };
                if depth > 0 && self.random.u8(..100) == 0 {
                    let mut expected = expected.clone();
                    expected.line.truncate(at + 1);
                    self.run(left, expected, depth - 1);
                }
            }
        }
    }

    /// Opens what a power failure has left; returns which state it is, and `None` for none, since a
    /// person's text is torn.
    fn check(&mut self, left: &Disk<Expected>, expected: &Expected) -> Option<usize> {
        let text = left.read(FILE).expect("reads").unwrap_or_default();
        if expected.may_be_torn
            && std::str::from_utf8(&text).is_ok_and(|text| formats::parse(text).is_err())
        {
            let refused = open(left).map(drop).expect_err("it is not JSON");
            assert_eq!(refused.kind(), ErrorKind::InvalidInput, "{refused}");
            return None;
        }
        match left.read(FILE).expect("reads") {
            None => assert!(!expected.is_created, "the file is gone: {expected:?}"),
            Some(text) => {
                let plain = parse(&text);
                let at = expected.position(number_in(&plain));
                assert_eq!(plain, expected.line[at].plain, "the file, state {at}");
            }
        }
        let is_read = self.random.u8(..8) == 0 && expected.is_created;
        let opened = match is_read {
            true => Store::open_read_only(files(left), base_path(), None),
            false => open(left),
        };
        let store = opened.unwrap_or_else(|error| panic!("{error}: {expected:?}"));
        let at = expected.position(number_of(&store));
        assert!(at >= expected.durable, "{at}: {expected:?}");
        if let Some(committed) = &expected.line[at].whole {
            assert_eq!(whole(&store), *committed, "state {at}");
        }
        if !is_read && self.random.u8(..8) == 0 {
            store.close().expect("closes");
            let text = left.read(FILE).expect("reads").expect("a document");
            assert_eq!(parse(&text), expected.line[at].plain, "the file after a close, state {at}");
        }
        Some(at)
    }
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

#[test]
fn nothing_durable_is_lost_and_every_state_opens() {
    let seed = number("SPINNEY_TEST_SEED").unwrap_or_else(|| fastrand::u64(..));
    let states_min = number("SPINNEY_TEST_STATES").unwrap_or(30_000);
    println!("SPINNEY_TEST_SEED={seed}");
    let random = Rng::with_seed(seed);
    let mut simulation = Simulation { random, numbers: 0, states: 0, edits: 0 };
    let empty = Arc::new(State { number: 0, plain: parse(b"{}"), whole: Some("{}".into()) });
    let expected =
        Expected { line: vec![empty], durable: 0, is_created: false, may_be_torn: false };
    while simulation.states < states_min {
        simulation.run(Disk::new(), expected.clone(), 3);
    }
    println!("{} states after a power failure, {} edits", simulation.states, simulation.edits);
}
