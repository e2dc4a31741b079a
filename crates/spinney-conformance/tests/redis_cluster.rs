//! The Redis backend on a cluster of three masters.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use spinney::backends::redis::{Cluster, Options, Redis};
use spinney::network::{Network, NetworkOptions, Server};
use spinney::{Durability, ErrorKind, OpenOptions, Store, Transaction, Value};
use spinney_conformance::contract::contract;
use spinney_conformance::mirror::Mirror;
use spinney_conformance::model::{self, History};
use spinney_conformance::servers::contract::{Terms, server_contract};
use spinney_conformance::servers::figures::cluster::{self as figures, IMPATIENT};
use spinney_conformance::servers::redis::RedisServer;
use spinney_conformance::servers::redis_cluster::RedisCluster;
use spinney_conformance::servers::{PATIENT, refused};
use spinney_conformance::strict::Strict;
use spinney_conformance::subject::number;
use spinney_conformance::{suite, timed};
use spinney_core::Memory;

/// A store whose commits need not survive the end of the servers.
fn options() -> OpenOptions {
    OpenOptions::new().durability(Durability::Process)
}

fn store(cluster: &RedisCluster) -> Store {
    options().open(&cluster.url("t")).unwrap_or_else(|error| panic!("{error}"))
}

/// Makes trees of one store, each with a name of its own.
struct Trees<'c> {
    cluster: &'c RedisCluster,
    count: Cell<u64>,
}

impl Trees<'_> {
    fn of(cluster: &RedisCluster) -> Trees<'_> {
        Trees { cluster, count: Cell::new(0) }
    }

    fn next_name(&self) -> String {
        self.count.set(self.count.get() + 1);
        format!("tree}} {}", self.count.get())
    }

    fn connect(&self, name: &str, network: NetworkOptions) -> Redis {
        let options = Options { network, ..Options::CREATE };
        let cluster = Cluster::open(&self.cluster.url("t"), options).expect("a cluster");
        cluster.connect(name, true).expect("a tree").expect("it was made")
    }

    fn backend(&self) -> Network<Redis> {
        Network::new(self.connect(&self.next_name(), PATIENT), PATIENT)
    }
}

#[test]
fn a_tree_does_what_every_server_must() {
    let Some(cluster) = RedisCluster::start(&[]) else { return };
    let trees = Trees::of(&cluster);
    let leased = Duration::from_secs(2);
    let clients = |lease| {
        let (name, network) = (trees.next_name(), NetworkOptions { lease, ..Default::default() });
        [(); 2].map(|()| Box::new(trees.connect(&name, network)) as Box<dyn Server>)
    };
    timed("contract of servers on a cluster", || {
        server_contract(&clients, Terms { leased, random_batches: 500 });
    });
}

#[test]
fn a_tree_holds_the_contract_and_passes_the_suite() {
    let Some(cluster) = RedisCluster::start_durable() else { return };
    let trees = Trees::of(&cluster);
    timed("contract on a cluster", || contract(&|| Box::new(trees.backend())));
    timed("suite on a cluster", || suite(&|| Arc::new(trees.backend())));
}

#[test]
fn histories_of_trees_are_as_in_memory() {
    let Some(cluster) = RedisCluster::start_durable() else { return };
    let trees = Trees::of(&cluster);
    let seed = std::env::var("SPINNEY_TEST_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or_else(|| fastrand::u64(..1 << 32));
    println!("SPINNEY_TEST_SEED={seed}");
    timed("random histories on a mirror of memory and a cluster", || {
        for (batch_max, keys_max, diffs) in [(4, 12, true), (60, 300, false)] {
            let history = History { seed, operations: 2_000, batch_max, keys_max, diffs };
            println!("{history:?}");
            let memory = Memory::with_sizes(16_352, 511, 32 << 20);
            model::run(&Strict::new(Mirror::new(memory, trees.backend())), &history);
        }
    });
}

/// A commit is one request to one master, and a read of something known is none of a page.
#[test]
fn a_commit_is_one_round_trip() {
    let Some(cluster) = RedisCluster::start(&[]) else { return };
    let store = store(&cluster);
    let asked = || -> u64 {
        let of = |master: &RedisServer| master.calls("evalsha") + master.calls("eval");
        cluster.masters.iter().map(of).sum()
    };
    let other = |master: &RedisServer| master.calls("cluster|slots");
    for tree in ["/a", "/b", "/c", "/d"] {
        store.write(|tx| tx.set(&format!("{tree}/n"), &1.into())).expect("write");
    }
    let maps: u64 = cluster.masters.iter().map(other).sum();
    assert_eq!(maps, 1, "which master has which slots is asked once");
    for n in 2..20_u64 {
        let before = asked();
        let tree = ["/a", "/b", "/c", "/d"][n as usize % 4];
        store.write(|tx| tx.set(&format!("{tree}/n"), &n.into())).expect("write");
        assert_eq!(asked() - before, 1);
    }
}

#[test]
fn sixty_four_trees_on_three_masters_one_of_which_is_killed() {
    let Some(mut cluster) = RedisCluster::start_durable() else { return };
    let survived = figures::a_master_is_killed(&mut cluster);
    println!("{survived:?}");
    assert!(survived.trees.iter().all(|&trees| trees >= 8), "every range of slots is used");
    assert_eq!(survived.lost, 0);
    assert!(survived.refused_after < Duration::from_secs(20), "it is asked too long");
}

/// The slot of a tree is moved to another master and back while it is written and read.
#[test]
fn a_slot_moves_while_its_tree_is_written() {
    let Some(cluster) = RedisCluster::start_durable() else { return };
    let ours = OpenOptions::new().open(&cluster.url("t")).expect("open");
    let list: Value = (0..3_000_u64).map(Value::from).collect::<Vec<_>>().into();
    ours.write(|tx| tx.set("/moving/list", &list)).expect("write");
    ours.write(|tx| tx.set("/still/n", &1.into())).expect("write");
    let (slot, from) = cluster.place_of("t", "moving");
    let (to, is_done) = ((from + 1) % 3, AtomicBool::new(false));
    let written = thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut written = 0_u64;
            while !is_done.load(Ordering::Relaxed) {
                let next = written + 1;
                let commit = ours.write(|tx| {
                    assert_eq!(
                        number(tx.get("/moving/n")?),
                        written,
                        "a commit is lost or doubled"
                    );
                    tx.set("/moving/n", &next.into())?;
                    tx.set("/moving/twin", &next.into())
                });
                commit.expect("write");
                written = next;
            }
            written
        });
        let reader = scope.spawn(|| {
            let theirs = OpenOptions::new().open(&cluster.url("t")).expect("open");
            let mut last = 0;
            while !is_done.load(Ordering::Relaxed) {
                let snapshot = theirs.read().expect("read");
                let both = snapshot.get("/moving/n").and_then(|n| {
                    let twin = snapshot.get("/moving/twin")?;
                    Ok((number(n), number(twin)))
                });
                // A state of before a move is not kept by the new master.
                let (n, twin) = match both {
                    Ok(both) => both,
                    Err(error) => {
                        assert_eq!(error.kind(), ErrorKind::Busy, "{error}");
                        continue;
                    }
                };
                assert_eq!(twin, n, "two states are mixed");
                assert!(n >= last, "{n} after {last}");
                last = n;
            }
        });
        for (from, to) in [(from, to), (to, from), (from, to)] {
            thread::sleep(Duration::from_millis(300));
            cluster.move_slot(slot, from, to, Duration::from_millis(40));
        }
        thread::sleep(Duration::from_millis(300));
        is_done.store(true, Ordering::Relaxed);
        reader.join().expect("the reader");
        writer.join().expect("the writer")
    });
    println!("{written} commits, the slot {slot} has moved three times");
    assert!(written > 20);
    assert_eq!(cluster.place_of("t", "moving"), (slot, to));
    let snapshot = ours.holding("/moving").and_then(|tree| tree.read()).expect("read");
    assert_eq!(snapshot.revision().expect("revision"), written + 1);
    assert_eq!(number(snapshot.get("/moving/n").expect("get")), written);
    assert_eq!(snapshot.count("/moving/list").expect("count"), Some(3_000));
    assert!(snapshot.check().expect("check").is_sound());
}

/// A commit is published on one master and heard by who listens on another one.
#[test]
fn a_wait_is_told_of_a_commit() {
    let Some(cluster) = RedisCluster::start(&[]) else { return };
    let theirs = store(&cluster);
    for tree in ["/a", "/b", "/c"] {
        theirs.write(|tx| tx.set(tree, &0.into())).expect("write");
        let ours = store(&cluster).holding(tree).expect("a tree");
        thread::scope(|scope| {
            let waiter = scope.spawn(|| {
                (1..4).map(|after| ours.wait(after, Duration::from_secs(30)).expect("wait")).max()
            });
            for n in 1..4_u64 {
                thread::sleep(Duration::from_millis(150));
                theirs.write(|tx| tx.set(tree, &n.into())).expect("write");
            }
            assert_eq!(waiter.join().expect("the waiter"), Some(4));
        });
    }
}

#[test]
fn what_concerns_two_trees_is_refused_and_changes_nothing() {
    let Some(cluster) = RedisCluster::start(&[]) else { return };
    let store = store(&cluster);
    assert!(!store.capabilities().multi_tree_commit);
    store.write(|tx| tx.set("/a/x", &1.into())).expect("write");
    let two = store.write(|tx| {
        tx.set("/a/x", &2.into())?;
        tx.set("/b/x", &2.into())
    });
    refused(ErrorKind::Unsupported, "one commit changes one tree", two);
    let moved = store.write(|tx| tx.mv("/a/x", "/b/x"));
    refused(ErrorKind::Unsupported, "and this one is about `/a`, not `/b/x`", moved);
    refused(ErrorKind::Unsupported, "name a tree", store.write(|tx| tx.set("", &list_of_trees())));
    refused(ErrorKind::Unsupported, "has its own revisions", store.at(1));
    refused(ErrorKind::Unsupported, "has its own revisions", store.revert(1));
    refused(ErrorKind::Unsupported, "has its own revisions", store.changes("", 0));
    let snapshot = store.read().expect("read");
    refused(ErrorKind::Unsupported, "`tree=people` in the URL", snapshot.revision());
    assert_eq!(spinney::formats::parse(r#"{"a": {"x": 1}}"#).ok(), snapshot.get("").expect("get"));
    // One tree by itself has all that a store has.
    let tree = options().open(&format!("{}&tree=a", cluster.url("t"))).expect("open");
    tree.write(|tx| tx.set("/a/x", &3.into())).expect("write");
    assert_eq!(tree.revert(2).expect("revert").revision, 3);
    assert_eq!(number(store.read().and_then(|all| all.get("/a/x")).expect("get")), 1);
    refused(ErrorKind::Unsupported, "not `/b`", tree.write(|tx| tx.set("/b", &1.into())));
    let none = options().create(false).open(&format!("{}&tree=c", cluster.url("t")));
    refused(ErrorKind::NotFound, "there is no tree `c`", none);
}

fn list_of_trees() -> Value {
    spinney::formats::parse(r#"{"a": 1, "b": 2}"#).expect("JSON")
}

#[test]
fn a_store_is_copied_to_a_cluster_and_back() {
    let Some(cluster) = RedisCluster::start_durable() else { return };
    let source = spinney::open("memory:").expect("open");
    let numbers: Value = (0..5_000_u64).map(Value::from).collect::<Vec<_>>().into();
    source
        .write(|tx| {
            tx.set("/numbers", &numbers)?;
            tx.set("/a~1b}%", &spinney::formats::parse(r#"{"x": [1.10, "y"]}"#)?)?;
            tx.set("/7", &true.into())?;
            tx.set_meta("/numbers/3", "note", Some("odd"))
        })
        .expect("write");
    let from = source.read().expect("read");
    let there = OpenOptions::new().open(&cluster.url("copy")).expect("open");
    let copied = there.copy_from(&from, &mut |_| ()).expect("copy");
    assert_eq!(Some(copied.hash), from.hash("").expect("hash"));
    let again = there.copy_from(&from, &mut |_| ());
    refused(ErrorKind::AlreadyExists, "not empty", again);
    let back = spinney::open("memory:").expect("open");
    let copied_back = back.copy_from(&there.read().expect("read"), &mut |_| ()).expect("copy");
    assert_eq!(copied_back.hash, copied.hash);
}

#[test]
fn what_is_no_cluster_or_no_store_is_refused() {
    let Some(server) = RedisServer::start(&[]) else { return };
    let plain = format!("redis+cluster://127.0.0.1:{}", server.port());
    refused(ErrorKind::InvalidInput, "no part of a cluster", options().open(&plain));
    drop(server);

    let Some(cluster) = RedisCluster::start(&[]) else { return };
    // One server of a cluster is not the store.
    let master = &cluster.masters[0];
    let outside = (0..).map(|i| format!("s{i}")).find(|name| {
        let slot: u16 = master.ask(&["CLUSTER", "KEYSLOT", name]);
        slot > 6_000
    });
    let said = options().open(&master.url(&outside.expect("there is one")));
    refused(ErrorKind::Unsupported, "write `redis+cluster:`", said);

    let create = options().create(false).open(&cluster.url("none")).expect("nobody asked yet");
    refused(ErrorKind::NotFound, "no store", create.read().and_then(|all| all.count("")));
    assert_eq!(create.read().and_then(|all| all.get("/a")).expect("get"), None);
    refused(ErrorKind::NotFound, "no store", create.write(|tx| tx.set("/a", &1.into())));

    // Keys that are somebody else's.
    let on_owner = |key: &str, words: &[&str]| {
        let (_, owner) = cluster.place_of_key(key);
        cluster.masters[owner].ask::<redis::Value>(&[&[words[0], key], &words[1..]].concat());
    };
    on_owner("{a}:forest", &["SET", "somebody's"]);
    let store = options().open(&cluster.url("a")).expect("open");
    let set = |tx: &mut Transaction<'_>| tx.set("/x", &1.into());
    refused(ErrorKind::InvalidInput, "`{a}:forest` holds something else", store.write(set));
    on_owner("{b/x}:meta", &["SET", "somebody's"]);
    let store = options().open(&cluster.url("b")).expect("open");
    refused(ErrorKind::InvalidInput, "`{b/x}:meta` holds something else", store.write(set));
    store.write(|tx| tx.set("/y", &1.into())).expect("another tree");
    on_owner("{c}:forest", &["SET", "spinney 2"]);
    let store = options().open(&cluster.url("c")).expect("open");
    refused(ErrorKind::Unsupported, "format `2`", store.write(set));
}

#[test]
fn passwords_are_asked_for_and_never_shown() {
    let settings = ["--requirepass", "s3cret", "--masterauth", "s3cret"];
    let Some(server) = RedisServer::start(&settings) else { return };
    let url = |user: &str| format!("redis+cluster://{user}127.0.0.1:{}", server.port());
    refused(ErrorKind::Denied, "wants a password", options().open(&url("")));
    refused(ErrorKind::Denied, "user and password", options().open(&url(":s3cret2@")));
    refused(ErrorKind::InvalidInput, "no part of a cluster", options().open(&url(":s3cret@")));
    let unreachable = "redis+cluster://:s3cret@127.0.0.1:1,127.0.0.1:2";
    refused(ErrorKind::Io, "cannot be reached", options().network(IMPATIENT).open(unreachable));
}

/// `durable` is judged on the master that has the tree.
#[test]
fn durability_is_what_the_master_of_the_tree_gives() {
    let Some(cluster) = RedisCluster::start_durable() else { return };
    cluster.masters[1].ask::<String>(&["CONFIG", "SET", "appendfsync", "everysec"]);
    let store = OpenOptions::new().open(&cluster.url("t")).expect("open");
    let mut seen = BTreeSet::new();
    for i in 0..12_u64 {
        let name = format!("tree{i}");
        let (_, master) = cluster.place_of("t", &name);
        seen.insert(master);
        let written = store.write(|tx| tx.set(&format!("/{name}"), &i.into()));
        match master {
            1 => refused(ErrorKind::Unsupported, "`appendfsync everysec`", written),
            _ => drop(written.expect("a durable write")),
        }
    }
    assert_eq!(seen.len(), 3);
    // What was refused is not there, not even as a name.
    let (_, catalogue) = cluster.place_of_key("{t}:trees");
    let listed: u64 = cluster.masters[catalogue].ask(&["ZCARD", "{t}:trees"]);
    assert_eq!(Some(listed), store.read().and_then(|all| all.count("")).expect("count"));
    assert!(cluster.masters[1].ask::<Vec<String>>(&["KEYS", "{t/*"]).is_empty());
    let stats = store.stats().expect("stats");
    let masters = stats.iter().filter(|(name, _)| name.starts_with("master 127.0.0.1:"));
    assert_eq!(masters.count(), 3, "{stats:?}");
}
