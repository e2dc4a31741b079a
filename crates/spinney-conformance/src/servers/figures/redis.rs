//! Figures of a store on one Redis server, which no other test uses meanwhile.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use spinney::formats::{self, Fidelity, Layout};
use spinney::network::NetworkOptions;
use spinney::{Durability, OpenOptions, Transaction, Value};

use super::{items, open};
use crate::servers::redis::RedisServer;
use crate::subject::number;

/// Commands of commits of one leaf, whatever commands, as the server has heard them.
#[derive(Clone, Copy, Debug)]
pub struct RoundTrips {
    /// By a client that knows nothing of the store.
    pub first: u64,
    /// Of a leaf on a page that is known.
    pub known: u64,
    /// Of a leaf on a page that is not.
    pub unknown: u64,
    /// After a commit of another client.
    pub overtaken: u64,
}

/// Counts the commands of commits to a list.
///
/// # Panics
/// When a commit fails.
pub fn round_trips(server: &RedisServer, items_len: usize) -> RoundTrips {
    let url = server.url("trips");
    let theirs = open(&url);
    theirs.write(|tx| tx.set("/list", &items(items_len))).expect("write");
    let ours = open(&url);
    let mut heard = server.monitor();
    let mut trips = |i: usize, value: &str| {
        heard.commands();
        ours.write(|tx| tx.set(&format!("/list/{i}/name"), &value.into())).expect("write");
        heard.commands().len() as u64
    };
    let first = trips(10, "ours");
    let known = trips(10, "again").max(trips(11, "a neighbour"));
    let unknown = trips(items_len / 4 * 3, "another page");
    theirs.write(|tx| tx.set("/list/12/name", &"theirs".into())).expect("write");
    RoundTrips { first, known, unknown, overtaken: trips(13, "ours") }
}

/// How many scripts the server was asked to run.
pub fn requests(server: &RedisServer) -> u64 {
    server.calls("evalsha") + server.calls("eval")
}

/// Bytes of the server's memory.
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    /// Of the compact text of a list.
    pub text_len: u64,
    /// That the list takes.
    pub used: u64,
    /// That are left when it was removed, and other commits came.
    pub left: u64,
}

/// Stores a list and removes it again.
///
/// # Panics
/// When that fails.
pub fn memory(server: &RedisServer, items_len: usize) -> Memory {
    let store = open(&server.url("memory"));
    let empty = server.info("memory", "used_memory");
    let value = items(items_len);
    store.write(|tx| tx.set("/list", &value)).expect("write");
    let text = formats::print(&value, Layout::Compact, Fidelity::Refuse).expect("a text");
    let used = server.info("memory", "used_memory") - empty;
    store.write(|tx| tx.remove("/list")).expect("remove");
    store.forget_before(u64::MAX).expect("forget");
    store.reclaim().expect("reclaim");
    // What readers needed goes with later commits.
    for i in 0..200_u64 {
        store.write(|tx| tx.set("/other", &i.into())).expect("write");
    }
    let left = server.info("memory", "used_memory").saturating_sub(empty);
    Memory { text_len: text.len() as u64, used, left }
}

/// Exports of a whole store while another client commits without pause.
#[derive(Clone, Debug)]
pub struct Exports {
    /// The revision of each.
    pub revisions: Vec<u64>,
    /// How many commits were made meanwhile.
    pub commits: u64,
}

/// Reads all of a list five times while it is changed.
///
/// # Panics
/// When one is not of one revision.
pub fn exports_amid_commits(server: &RedisServer, items_len: usize) -> Exports {
    let url = server.url("export");
    let theirs = open(&url);
    let begin = |tx: &mut Transaction<'_>| {
        tx.set("/a", &0.into())?;
        tx.set("/list", &items(items_len))?;
        tx.set("/z", &0.into())
    };
    theirs.write(begin).expect("write");
    let (is_done, len) = (AtomicBool::new(false), items_len as u64);
    thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut n = 0_u64;
            while !is_done.load(Ordering::Relaxed) {
                n += 1;
                let change = |tx: &mut Transaction<'_>| {
                    tx.set("/a", &n.into())?;
                    tx.set("/z", &n.into())?;
                    tx.set(&format!("/list/{}/number", n * 7_919 % len), &n.into())?;
                    tx.remove(&format!("/list/{}", n * 31 % (len / 10 * 9)))?;
                    tx.insert("/list/500", &Value::map())
                };
                theirs.write(change).expect("write");
            }
            n
        });
        // A small cache, so that nearly all comes from the server, long after the snapshot.
        let network = NetworkOptions { cache_len_max: 100_000, ..NetworkOptions::DEFAULT };
        let reader = OpenOptions::new().durability(Durability::Process).network(network);
        let reader = reader.open(&url).expect("open");
        let mut revisions = Vec::new();
        for _ in 0..5 {
            let snapshot = reader.read().expect("read");
            let revision = snapshot.revision().expect("revision");
            let value = snapshot.get("").expect("an export").expect("a store");
            let Value::Map(trees) = &value else { panic!("no map") };
            let (a, z) = (number(trees.get("a").cloned()), number(trees.get("z").cloned()));
            assert_eq!((a, z), (revision - 1, revision - 1), "one revision");
            let Some(Value::List(list)) = trees.get("list") else { panic!("no list") };
            assert_eq!(list.len(), items_len);
            revisions.push(revision);
        }
        is_done.store(true, Ordering::Relaxed);
        Exports { revisions, commits: writer.join().expect("the writer") }
    })
}

/// Lets eight clients commit `rounds` times each to leaves of their own of one tree; how long the longest
/// commit took.
///
/// # Panics
/// When an update is lost.
pub fn eight_writers(server: &RedisServer, rounds: u64) -> Duration {
    let url = server.url("eight");
    let first = open(&url);
    first.write(|tx| tx.set("/list", &items(8 * rounds as usize))).expect("write");
    let client = |client: u64| {
        let store = open(&url);
        let mut longest = Duration::ZERO;
        for round in 0..rounds {
            let began = Instant::now();
            let path = format!("/list/{}/number", client * rounds + round);
            let write = store.write(|tx| {
                let sum = number(tx.get(&format!("/sums/{client}"))?);
                tx.set(&format!("/sums/{client}"), &(sum + 1).into())?;
                tx.set(&path, &(1_000_000 + round).into())
            });
            write.expect("write");
            longest = longest.max(began.elapsed());
        }
        longest
    };
    let longest = thread::scope(|scope| {
        let clients: Vec<_> = (0..8).map(|i| scope.spawn(move || client(i))).collect();
        clients.into_iter().map(|client| client.join().expect("a client")).max()
    });
    let snapshot = first.read().expect("read");
    for client in 0..8 {
        assert_eq!(number(snapshot.get(&format!("/sums/{client}")).expect("get")), rounds);
        for round in 0..rounds {
            let path = format!("/list/{}/number", client * rounds + round);
            assert_eq!(number(snapshot.get(&path).expect("get")), 1_000_000 + round);
        }
    }
    longest.expect("eight")
}
