//! Each call of a scripted history fails once: the store is at the old or the new revision.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use spinney::backends::fjall::{self, Fjall};
use spinney::backends::lmdb::{Lmdb, Options};
use spinney::backends::mongodb::{self, MongoDb};
use spinney::backends::redis::{self, Redis};
use spinney::formats::{Fidelity, JsonWriter, Layout};
use spinney::network::Network;
use spinney::{ErrorKind, Existing, Receiver, Result, Transaction, Value};
use spinney_conformance::fault::{Fault, Operation, Plan};
use spinney_conformance::servers::PATIENT;
use spinney_conformance::servers::mongodb::MongoServer;
use spinney_conformance::servers::redis::RedisServer;
use spinney_conformance::{folder, timed};
use spinney_core::backend::{Backend, Revision};
use spinney_core::check::check;
use spinney_core::view::View;
use spinney_core::{Container, Memory, Scalar, Text, Visitor, history, reclaim};

/// One step of a history: an edit that is committed and synced.
type Step = fn(&mut Transaction<'_>) -> Result<()>;

fn numbers(range: Range<u64>) -> Value {
    range.map(Value::from).collect::<Vec<_>>().into()
}

/// Every kind of change, small enough to fail each call of it.
const SMALL: &[Step] = &[
    |tx| tx.set("/a", &numbers(0..5)),
    |tx| tx.set("/b/m/x", &"first".into()),
    |tx| tx.set("/b/list", &numbers(0..1_500)),
    |tx| tx.insert("/b/list/700", &"in".into()).and_then(|()| tx.mv("/b/list/3", "/b/list/900")),
    |tx| (0..300).try_for_each(|n| tx.set(&format!("/b/m/key {n}"), &n.into())),
    |tx| tx.set("/b/text", &"long ".repeat(20_000).into()),
    |tx| tx.mv("/b/list", "/a/0").and_then(|()| tx.set_meta("/a/1", "note", Some("x"))),
    |tx| tx.mv("/b", "/c").and_then(|()| tx.set("/b", &1.into())),
    |tx| tx.remove("/c/m").and_then(|_| tx.set("/a/0/7", &numbers(0..400))),
    |tx| tx.remove("/a").map(drop),
];

/// Changes that are written ahead in several batches.
const LARGE: &[Step] = &[
    |tx| tx.set("/a/list", &numbers(0..2_000)),
    |tx| tx.set_with("/a/big", Existing::Any, bulk),
    |tx| tx.remove("/a/big").and_then(|_| tx.remove("/a/list")).map(drop),
];

fn bulk(visitor: &mut Receiver<'_, '_>) -> Result<()> {
    visitor.open(Container::List)?;
    let text = "bulk ".repeat(150);
    for n in 0..12_500 {
        visitor.scalar(Scalar::String(Text::new(&format!("{n} {text}"))))?;
    }
    visitor.close()
}

fn write(backend: &dyn Backend, step: Step) -> Result<()> {
    let guard = backend.write_guard(0)?;
    let mut transaction = Transaction::begin(backend)?;
    step(&mut transaction)?;
    let revision = transaction.commit(fastrand::u128(..))?.revision;
    drop(guard);
    backend.sync(revision)
}

fn reclaim_all(backend: &dyn Backend) -> Result<()> {
    history::trim(backend, Revision::MAX)?;
    let trees = spinney_core::check::trees(&*backend.snapshot()?)?;
    while reclaim::step(backend, &trees)? > 0 {}
    Ok(())
}

fn text(backend: &dyn Backend) -> String {
    let snapshot = backend.snapshot().expect("a snapshot");
    let view = View { snapshot: &*snapshot, key_len_max: backend.capabilities().key_len_max };
    let mut writer = JsonWriter::new(Vec::new(), Layout::Compact, Fidelity::Tagged);
    view.walk(&view.root().expect("a root"), &mut writer).expect("it reads");
    String::from_utf8(writer.finish().expect("it prints")).expect("a text")
}

/// The texts before the first and after each step.
fn texts(steps: &[Step]) -> Vec<String> {
    let memory = Memory::new();
    let mut texts = vec![text(&memory)];
    for &step in steps {
        write(&memory, step).expect("the history runs");
        texts.push(text(&memory));
    }
    texts
}

/// Where a history is run: a store that can be opened again.
trait Place {
    fn open(&self) -> Arc<dyn Backend>;
}

struct InMemory(Arc<Memory>);

impl Place for InMemory {
    fn open(&self) -> Arc<dyn Backend> {
        Arc::clone(&self.0) as Arc<dyn Backend>
    }
}

struct InLmdb<'f>(&'f Path);

impl Place for InLmdb<'_> {
    fn open(&self) -> Arc<dyn Backend> {
        Lmdb::open(&self.0.join("store"), Options::CREATE).expect("the store opens")
    }
}

struct InFjall<'f>(&'f Path);

impl Place for InFjall<'_> {
    fn open(&self) -> Arc<dyn Backend> {
        Fjall::open(&self.0.join("store"), fjall::Options::CREATE).expect("the store opens")
    }
}

struct InRedis(String);

impl Place for InRedis {
    fn open(&self) -> Arc<dyn Backend> {
        let options = redis::Options { network: PATIENT, ..redis::Options::CREATE };
        Arc::new(Network::new(Redis::open(&self.0, options).expect("the store opens"), PATIENT))
    }
}

struct InMongoDb(String);

impl Place for InMongoDb {
    fn open(&self) -> Arc<dyn Backend> {
        let options = mongodb::Options { network: PATIENT, ..mongodb::Options::CREATE };
        Arc::new(Network::new(MongoDb::open(&self.0, options).expect("the store opens"), PATIENT))
    }
}

/// Runs a history whose planned call fails; false when the call never came.
fn fails(place: &dyn Place, steps: &[Step], texts: &[String], plan: Plan) -> bool {
    let fault = Fault::new(place.open());
    fault.set_plan(Some(plan));
    let mut done = 0;
    let mut failed = None;
    for (index, &step) in steps.iter().enumerate() {
        let ran = write(&fault, step).and_then(|()| reclaim_all(&fault));
        if let Err(error) = ran {
            assert_eq!(error.kind(), ErrorKind::Io, "{plan:?}: {error}");
            failed = Some(index);
            break;
        }
    }
    let Some(index) = failed else {
        assert_eq!(fault.failures(), 0, "{plan:?}: a failure was not noticed");
        return false;
    };
    fault.set_plan(None);
    drop(fault);
    let backend = place.open();
    let now = text(&*backend);
    for (state, text) in texts.iter().enumerate().skip(index).take(2) {
        if *text == now {
            done = state;
        }
    }
    assert!(texts[done] == now && done >= index, "{plan:?}: step {index} is neither old nor new");
    for &step in &steps[done..] {
        write(&*backend, step).unwrap_or_else(|error| panic!("{plan:?}: reopened: {error}"));
    }
    assert!(text(&*backend) == texts[steps.len()], "{plan:?}: the history does not go on");
    reclaim_all(&*backend).expect("reclaims");
    let report = check(&*backend).expect("checks");
    assert!(report.is_sound() && report.queued == 0, "{plan:?}: {report:?}");
    true
}

/// Makes an empty place, runs a history there and gives its answer.
type InPlace<'f> = &'f dyn Fn(&dyn Fn(&dyn Place) -> bool) -> bool;

/// Fails the calls `0, stride, 2 * stride, ...` of each operation.
fn every_call(steps: &[Step], strides: [u64; 5], run: InPlace<'_>) {
    let texts = texts(steps);
    use Operation::{Commit, Get, Put, Snapshot, Sync};
    for (operation, stride) in [Put, Commit, Sync, Snapshot, Get].into_iter().zip(strides) {
        let mut runs = 0;
        while run(&|place| {
            let plan = Plan { operation, nth: runs * stride, kind: ErrorKind::Io };
            fails(place, steps, &texts, plan)
        }) {
            runs += 1;
        }
        println!("{operation:?}: {runs} failures, every {stride}");
        assert!(runs > 0, "{operation:?} never came");
    }
}

fn in_memory(run: &dyn Fn(&dyn Place) -> bool) -> bool {
    run(&InMemory(Arc::new(Memory::new())))
}

fn in_lmdb(run: &dyn Fn(&dyn Place) -> bool) -> bool {
    let folder = folder::temporary();
    run(&InLmdb(folder.path()))
}

fn in_fjall(run: &dyn Fn(&dyn Place) -> bool) -> bool {
    let folder = folder::temporary();
    run(&InFjall(folder.path()))
}

#[test]
fn memory() {
    timed("faults in memory", || every_call(SMALL, [1, 1, 1, 1, 1], &in_memory));
}

#[test]
fn lmdb() {
    timed("faults in LMDB", || every_call(SMALL, [3, 1, 1, 1, 7], &in_lmdb));
}

#[test]
fn fjall() {
    timed("faults in fjall", || every_call(SMALL, [9, 1, 1, 3, 31], &in_fjall));
}

#[test]
fn redis() {
    let Some(server) = RedisServer::start_durable() else { return };
    let stores = AtomicU64::new(0);
    let next_url = || server.url(&format!("s{}", stores.fetch_add(1, Ordering::Relaxed)));
    timed("faults on Redis", || {
        every_call(SMALL, [9, 1, 1, 3, 31], &|run| run(&InRedis(next_url())));
    });
}

#[test]
fn mongodb() {
    let Some(server) = MongoServer::start_indexed() else { return };
    let stores = AtomicU64::new(0);
    let next_url = || server.url(&format!("s{}", stores.fetch_add(1, Ordering::Relaxed)));
    timed("faults on MongoDB", || {
        every_call(SMALL, [29, 3, 2, 13, 131], &|run| run(&InMongoDb(next_url())));
    });
}

#[test]
fn large_writes_in_fjall() {
    timed("faults of large writes in fjall", || every_call(LARGE, [997, 3, 1, 3, 41], &in_fjall));
}

#[test]
fn large_writes_in_memory() {
    timed("faults of large writes in memory", || {
        every_call(LARGE, [97, 1, 1, 1, 3], &in_memory);
    });
}

#[test]
fn large_writes_in_lmdb() {
    timed("faults of large writes in LMDB", || every_call(LARGE, [197, 1, 1, 1, 11], &in_lmdb));
}
