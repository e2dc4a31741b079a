//! The Redis backend on servers of its own.

use std::cell::Cell;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use spinney::backends::redis::{Options, Redis};
use spinney::network::{Network, NetworkOptions, Server};
use spinney::{Durability, ErrorKind, OpenOptions, Store, Transaction};
use spinney_conformance::child::{self, child_command};
use spinney_conformance::contract::contract;
use spinney_conformance::mirror::Mirror;
use spinney_conformance::model::{self, History};
use spinney_conformance::servers::certificate::Certificate;
use spinney_conformance::servers::contract::{Terms, server_contract};
use spinney_conformance::servers::figures::{items, redis as figures};
use spinney_conformance::servers::redis::{RedisServer, free_port};
use spinney_conformance::servers::{PATIENT, refused};
use spinney_conformance::strict::Strict;
use spinney_conformance::subject::number;
use spinney_conformance::{suite, timed};
use spinney_core::Memory;

fn open(url: &str, options: Options) -> Redis {
    Redis::open(url, options).unwrap_or_else(|error| panic!("{error}"))
}

fn network(url: &str) -> Network<Redis> {
    let options = Options { network: PATIENT, ..Options::CREATE };
    Network::new(open(url, options), PATIENT)
}

/// A store whose commits need not survive the end of the server.
fn options() -> OpenOptions {
    OpenOptions::new().durability(Durability::Process)
}

fn store(server: &RedisServer) -> Store {
    options().open(&server.url("t")).unwrap_or_else(|error| panic!("{error}"))
}

/// Makes stores of one server, each with a name of its own.
struct Stores<'s> {
    server: &'s RedisServer,
    count: Cell<u64>,
}

impl Stores<'_> {
    fn of(server: &RedisServer) -> Stores<'_> {
        Stores { server, count: Cell::new(0) }
    }

    fn next_url(&self) -> String {
        self.count.set(self.count.get() + 1);
        self.server.url(&format!("s{}", self.count.get()))
    }

    fn backend(&self) -> Network<Redis> {
        network(&self.next_url())
    }
}

#[test]
fn the_adapter_does_what_every_server_must() {
    let Some(server) = RedisServer::start(&[]) else { return };
    let stores = Stores::of(&server);
    let leased = Duration::from_secs(2);
    let clients = |lease| {
        let network = NetworkOptions { lease, ..NetworkOptions::DEFAULT };
        let options = Options { network, ..Options::CREATE };
        let url = stores.next_url();
        [open(&url, options), open(&url, options)].map(|redis| Box::new(redis) as Box<dyn Server>)
    };
    timed("contract of servers on Redis", || {
        server_contract(&clients, Terms { leased, random_batches: 1_500 });
    });
}

/// The first durable one of all tests: a server that syncs takes all that others take.
#[test]
fn the_contract_holds() {
    let Some(server) = RedisServer::start_durable() else { return };
    let stores = Stores::of(&server);
    timed("contract on Redis", || contract(&|| Box::new(stores.backend())));
}

#[test]
fn the_suite_passes() {
    let Some(server) = RedisServer::start_durable() else { return };
    let stores = Stores::of(&server);
    timed("suite on Redis", || suite(&|| Arc::new(stores.backend())));
}

#[test]
fn histories_are_as_in_memory() {
    let Some(server) = RedisServer::start_durable() else { return };
    let stores = Stores::of(&server);
    let seed = std::env::var("SPINNEY_TEST_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or_else(|| fastrand::u64(..1 << 32));
    println!("SPINNEY_TEST_SEED={seed}");
    timed("random histories on a mirror of memory and Redis", || {
        for (batch_max, keys_max, diffs) in
            [(4, 12, true), (12, 60, true), (60, 300, false), (25, 600, false)]
        {
            let history = History { seed, operations: 4_000, batch_max, keys_max, diffs };
            println!("{history:?}");
            let memory = Memory::with_sizes(16_352, 511, 32 << 20);
            model::run(&Strict::new(Mirror::new(memory, stores.backend())), &history);
        }
    });
}

#[test]
fn a_commit_of_one_leaf_is_one_round_trip() {
    let Some(server) = RedisServer::start(&[]) else { return };
    let trips = figures::round_trips(&server, 20_000);
    println!("{trips:?}");
    assert_eq!(trips.known, 1);
    assert!(trips.first <= 6 && trips.unknown <= 2 && trips.overtaken <= 8);
}

#[test]
fn a_hundred_thousand_items_take_little_memory() {
    let Some(server) = RedisServer::start(&[]) else { return };
    let memory = figures::memory(&server, 100_000);
    println!("{memory:?}");
    assert!(memory.used <= 3 * memory.text_len);
    assert!(memory.left < memory.text_len / 5);
}

#[test]
fn an_export_is_one_revision_while_another_client_commits() {
    let Some(server) = RedisServer::start(&[]) else { return };
    let exports = figures::exports_amid_commits(&server, 100_000);
    println!("{exports:?}");
    assert!(exports.revisions.windows(2).all(|pair| pair[0] < pair[1]), "it never paused");
    println!("{} records are kept for older states", server.ask::<u64>(&["HLEN", "{export}:undo"]));
}

#[test]
fn eight_clients_starve_nobody_and_lose_nothing() {
    let Some(server) = RedisServer::start(&[]) else { return };
    let longest = figures::eight_writers(&server, 100);
    println!("timed: the longest wait of eight writers: {:.3} s", longest.as_secs_f64());
    assert!(longest < Duration::from_secs(15), "somebody starved: {longest:?}");
}

#[test]
fn a_wait_is_told_of_a_commit_at_once() {
    let Some(server) = RedisServer::start(&[]) else { return };
    let (ours, theirs) = (store(&server), store(&server));
    let before = figures::requests(&server);
    thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            (0..5).map(|after| ours.wait(after, Duration::from_secs(30)).expect("wait")).max()
        });
        thread::sleep(Duration::from_millis(300));
        for n in 0..5_u64 {
            thread::sleep(Duration::from_millis(20));
            theirs.write(|tx| tx.set("/n", &n.into())).expect("write");
        }
        assert_eq!(waiter.join().expect("the waiter"), Some(5));
    });
    let asked = figures::requests(&server) - before;
    assert!(asked < 40, "{asked} requests: it was not told, but asked again and again");
}

/// A user who may not subscribe looks from time to time.
#[test]
fn a_wait_without_subscriptions_looks_by_itself() {
    let Some(server) = RedisServer::start(&[]) else { return };
    let words =
        ["ACL", "SETUSER", "shy", "on", ">pw", "~*", "resetchannels", "+@all", "-subscribe"];
    server.ask::<String>(&words);
    let url = server.url("t").replace("redis://", "redis://shy:pw@");
    let (ours, theirs) = (options().open(&url).expect("open"), options().open(&url).expect("open"));
    thread::scope(|scope| {
        let waiter = scope.spawn(|| ours.wait(0, Duration::from_secs(30)).expect("wait"));
        thread::sleep(Duration::from_millis(200));
        theirs.write(|tx| tx.set("/n", &1.into())).expect("write");
        let since = Instant::now();
        assert_eq!(waiter.join().expect("the waiter"), 1);
        assert!(since.elapsed() < Duration::from_secs(5));
    });
}

#[test]
fn what_is_no_store_is_refused_and_left_as_it_is() {
    let Some(server) = RedisServer::start(&[]) else { return };
    let open = |name: &str| options().open(&server.url(name));
    server.ask::<String>(&["SET", "{a}:meta", "somebody's"]);
    refused(ErrorKind::InvalidInput, "`{a}:meta` holds something else", open("a"));
    server.ask::<u64>(&["HSET", "{b}:meta", "id", "1"]);
    refused(ErrorKind::InvalidInput, "`{b}:meta` holds something else", open("b"));
    server.ask::<u64>(&["HSET", "{c}:values", "x", "1"]);
    refused(ErrorKind::InvalidInput, "`{c}:values` holds something else", open("c"));
    server.ask::<u64>(&["ZADD", "{d}:changed", "1", "1"]);
    refused(ErrorKind::InvalidInput, "`{d}:changed` holds something else", open("d"));
    server.ask::<u64>(&["HSET", "{e}:meta", "spinney", "2", "id", "1"]);
    refused(ErrorKind::Unsupported, "format `2`", open("e"));
    assert_eq!(server.ask::<u64>(&["DBSIZE"]), 5, "nothing was added");
    let nothing = options().create(false).open(&server.url("f"));
    refused(ErrorKind::NotFound, "no store", nothing);
    refused(ErrorKind::NotFound, "no store", options().read_only(true).open(&server.url("f")));
    let far = server.url("t").replace("/0?", "/9999?");
    refused(ErrorKind::InvalidInput, "no database of that number", options().open(&far));
    refused(ErrorKind::InvalidInput, "unknown option", options().open(&server.url("t&x=s3cret")));
    // Another database is another place.
    let other = server.url("t").replace("/0?", "/3?");
    options().open(&other).expect("open").write(|tx| tx.set("/a", &1.into())).expect("write");
    let here = options().create(false).open(&server.url("t"));
    refused(ErrorKind::NotFound, "no store", here);
}

#[test]
fn a_store_that_went_away_is_not_written_over() {
    let Some(mut server) = RedisServer::start(&[]) else { return };
    let store = store(&server);
    store.write(|tx| tx.set("/a", &1.into())).expect("write");
    server.kill();
    server.resume();
    let gone = store.write(|tx| tx.set("/a", &2.into()));
    refused(ErrorKind::Closed, "is not there any more", gone);
    refused(ErrorKind::Closed, "is not there any more", store.read());
    assert_eq!(server.ask::<u64>(&["DBSIZE"]), 0);
}

#[test]
fn passwords_are_asked_for_and_never_shown() {
    let Some(server) = RedisServer::start(&["--requirepass", "s3cret"]) else { return };
    let with = |user: &str| server.url("t").replace("redis://", &format!("redis://{user}"));
    refused(ErrorKind::Denied, "wants a password", options().open(&with("")));
    refused(ErrorKind::Denied, "user and password", options().open(&with(":s3cret2@")));
    refused(ErrorKind::Denied, "user and password", options().open(&with("bob:s3cret@")));
    let store = options().open(&with(":s3cret@")).expect("open");
    store.write(|tx| tx.set("/a", &1.into())).expect("write");
    let stats = format!("{:?}", store.stats().expect("stats"));
    assert!(!stats.contains("s3cret"), "{stats}");
    let socket = format!("redis+unix:{}?pass=s3cret&store=t", server.socket());
    let store = options().create(false).open(&socket).expect("by its socket");
    assert_eq!(number(store.read().expect("read").get("/a").expect("get")), 1);
    // Who may not write is told so.
    let unreachable = "redis://:s3cret@127.0.0.1:1/0";
    let network = NetworkOptions { patience: Duration::from_millis(50), ..NetworkOptions::DEFAULT };
    refused(ErrorKind::Io, "cannot be reached", options().network(network).open(unreachable));
}

#[test]
fn durability_is_what_the_server_gives() {
    let Some(server) = RedisServer::start(&[]) else { return };
    let set = |tx: &mut Transaction<'_>| tx.set("/a", &1.into());
    // No store is made that cannot be what it is to be.
    refused(ErrorKind::Unsupported, "`appendonly no`", OpenOptions::new().open(&server.url("t")));
    assert_eq!(server.ask::<u64>(&["DBSIZE"]), 0);
    drop(store(&server));
    let durable = OpenOptions::new().open(&server.url("t")).expect("open");
    refused(ErrorKind::Unsupported, "`appendonly no`", durable.write(set));
    assert_eq!(durable.read().expect("read").revision().expect("revision"), 0, "before it commits");
    durable.write_with(Durability::Process, set).expect("it asks for less");
    server.ask::<String>(&["CONFIG", "SET", "appendonly", "yes", "appendfsync", "everysec"]);
    let durable = OpenOptions::new().open(&server.url("t")).expect("open");
    refused(ErrorKind::Unsupported, "`appendfsync everysec`", durable.write(set));
    server.ask::<String>(&["CONFIG", "SET", "appendfsync", "always"]);
    let durable = OpenOptions::new().open(&server.url("t")).expect("open");
    durable.write(|tx| tx.set("/a", &2.into())).expect("a durable write");
    let stats = durable.stats().expect("stats");
    let survives = stats.iter().find(|(name, _)| name == "a commit survives");
    assert!(survives.is_some_and(|(_, what)| what.starts_with("power failures")), "{stats:?}");
}

#[test]
fn a_server_that_is_full_or_a_replica_or_forgetful_is_named() {
    let Some(server) = RedisServer::start(&[]) else { return };
    let mut store_ = store(&server);
    let set = |tx: &mut Transaction<'_>| tx.set("/a", &items(2_000));
    store_.write(set).expect("write");
    server.ask::<String>(&["CONFIG", "SET", "maxmemory", "1mb"]);
    refused(ErrorKind::LimitExceeded, "`maxmemory`", store_.write(|tx| tx.set("/b", &1.into())));
    // Reading goes on, for new clients, too.
    store_ = store(&server);
    assert_eq!(store_.read().expect("read").count("/a").expect("count"), Some(2_000));
    server.ask::<String>(&["CONFIG", "SET", "maxmemory", "1gb", "maxmemory-policy", "allkeys-lru"]);
    let evicted = options().open(&server.url("t"));
    refused(ErrorKind::Unsupported, "`maxmemory-policy allkeys-lru`", evicted);
    server.ask::<String>(&["CONFIG", "SET", "maxmemory-policy", "noeviction", "maxmemory", "0"]);
    store_.write(|tx| tx.set("/b", &2.into())).expect("there is place again");

    let Some(replica) =
        RedisServer::start(&["--replicaof", "127.0.0.1", &server.port().to_string()])
    else {
        return;
    };
    let since = Instant::now();
    while replica.ask::<u64>(&["DBSIZE"]) == 0 {
        assert!(since.elapsed() < Duration::from_secs(20), "the replica does not follow");
        thread::sleep(Duration::from_millis(10));
    }
    refused(ErrorKind::ReadOnly, "replica", options().open(&replica.url("t")));
}

/// Who has filled a server can make room on it.
#[test]
fn a_full_server_takes_what_makes_room() {
    let Some(server) = RedisServer::start(&[]) else { return };
    let store = store(&server);
    store.write(|tx| tx.set("/a", &items(40_000))).expect("write");
    store.write(|tx| tx.set("/a", &1.into())).expect("write");
    // What tidies up in the background holds leases while it looks.
    store.wait_until_reclaimed();
    let used = || server.info("memory", "used_memory");
    let full = used();
    server.ask::<String>(&["CONFIG", "SET", "maxmemory", &(full - 100_000).to_string()]);
    refused(ErrorKind::LimitExceeded, "make room", store.write(|tx| tx.set("/b", &1.into())));
    store.forget_before(3).expect("forget");
    store.reclaim().expect("reclaim");
    assert!(used() < full - 500_000, "{full} bytes before, and {} after", used());
    store.write(|tx| tx.set("/b", &1.into())).expect("there is place again");
    assert!(store.read().and_then(|state| state.check()).expect("check").is_sound());
}

#[test]
fn who_may_only_read_reads() {
    let Some(mut server) = RedisServer::start_durable() else { return };
    let url = |user: &str| server.url("t").replace("redis://", &format!("redis://{user}:pw@"));
    let urls = ["commands", "keys", "least", "none"].map(|user| (user, url(user)));
    let set_users = |server: &RedisServer| {
        let user = |words: &[&str]| {
            server
                .ask::<String>(&[&["ACL", "SETUSER", words[0], "on", ">pw"], &words[1..]].concat())
        };
        user(&["commands", "~*", "&*", "+@all", "-@write"]);
        user(&["keys", "%R~{t}:*", "&*", "+@all"]);
        user(&["least", "%R~{t}:*", "+@read", "+info", "+eval_ro", "+evalsha_ro"]);
        user(&["none", "~*", "&*", "+@all", "-@scripting"]);
    };
    set_users(&server);
    let ours = store(&server);
    ours.write(|tx| tx.set("/a", &items(2_000))).expect("write");
    let reading = |url: &str| options().create(false).read_only(true).open(url);
    for (user, url) in &urls {
        if *user == "none" {
            refused(ErrorKind::Denied, "the user may not do this", reading(url));
            continue;
        }
        let theirs = reading(url).expect("open");
        assert_eq!(theirs.read().and_then(|state| state.count("/a")).expect("count"), Some(2_000));
        let len = user.len() as u64;
        ours.write(|tx| tx.set("/b", &len.into())).expect("write");
        let read = theirs.read().and_then(|state| state.get("/b")).expect("get");
        assert_eq!(number(read), len);
        let before = server.ask::<u64>(&["HLEN", "{t}:values"]);
        let written = options().create(false).open(url);
        let written = written.and_then(|theirs| theirs.write(|tx| tx.set("/b", &0.into())));
        refused(ErrorKind::Denied, "the user may not do this", written);
        assert_eq!(server.ask::<u64>(&["HLEN", "{t}:values"]), before);
    }
    // Nobody who may write has met the new run of the server yet.
    server.kill();
    server.resume();
    set_users(&server);
    let theirs = reading(&urls[1].1).expect("open");
    assert_eq!(theirs.read().and_then(|state| state.count("/a")).expect("count"), Some(2_000));
}

/// A server that somebody else's script stops says so from some time on.
#[test]
fn a_server_that_is_busy_with_a_script_is_waited_for() {
    let Some(server) = RedisServer::start(&["--busy-reply-threshold", "20"]) else { return };
    let store = options().network(PATIENT).open(&server.url("t")).expect("open");
    store.write(|tx| tx.set("/a", &0.into())).expect("write");
    let script = "for i = 1, 200000000 do end return 7";
    thread::scope(|scope| {
        let slow = scope.spawn(|| server.ask::<u64>(&["EVAL", script, "0"]));
        while !slow.is_finished() {
            store.write(|tx| tx.set("/a", &1.into())).expect("it waits");
        }
        assert_eq!(slow.join().expect("the script"), 7);
    });
    println!("answered `BUSY`: {}", server.text("errorstats", "errorstat_BUSY"));
}

#[test]
fn a_server_without_scripts_is_named() {
    let Some(server) = RedisServer::start(&["--rename-command", "EVALSHA", ""]) else { return };
    refused(ErrorKind::Unsupported, "lacks a command", options().open(&server.url("t")));
}

#[test]
fn who_is_no_redis_server_is_not_taken_for_one() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let open = move || options().open(&format!("redis://:s3cret@127.0.0.1:{port}"));
    let opening = thread::spawn(open);
    drop(listener.accept().expect("it connects"));
    refused(ErrorKind::Io, "is it a Redis or Valkey server", opening.join().expect("it ends"));
    refused(ErrorKind::Io, "is its name right", options().open("redis://:s3cret@nobody.invalid"));
}

#[test]
fn who_knows_nothing_is_not_told_what_has_changed() {
    let Some(server) = RedisServer::start(&[]) else { return };
    store(&server).write(|tx| tx.set("/a", &items(2_000))).expect("write");
    let newest = open(&server.url("t"), Options::CREATE).newest(0, None, &[]).expect("newest");
    assert_eq!(newest.changed, None);
}

#[test]
fn leases_end_with_who_has_them() {
    let Some(server) = RedisServer::start(&[]) else { return };
    let store = store(&server);
    store.write(|tx| tx.set("/a", &1.into())).expect("write");
    let read = store.read().expect("read");
    assert_eq!(number(read.get("/a").expect("get")), 1);
    let leases = || server.ask::<u64>(&["ZCARD", "{t}:leases"]);
    assert!(leases() > 0);
    // What a request that was refused should have ended ends with another one.
    drop(store.read().expect("read"));
    server.ask::<String>(&["CONFIG", "SET", "maxmemory", "1mb"]);
    store.write(|tx| tx.set("/a", &2.into())).expect_err("it is full");
    drop(store);
    assert_eq!(number(read.get("/a").expect("get")), 1);
    drop(read);
    assert_eq!(leases(), 0);
}

#[test]
fn a_server_that_cannot_save_is_read_and_not_written() {
    let Some(server) = RedisServer::start(&[]) else { return };
    let theirs = store(&server);
    theirs.write(|tx| tx.set("/a", &1.into())).expect("write");
    server.ask::<String>(&["CONFIG", "SET", "save", "3600 1"]);
    std::fs::create_dir(server.folder().join("dump.rdb")).expect("a folder in its way");
    server.ask::<String>(&["BGSAVE"]);
    let since = Instant::now();
    while server.text("persistence", "rdb_last_bgsave_status") != "err" {
        assert!(since.elapsed() < Duration::from_secs(20), "it saved");
        thread::sleep(Duration::from_millis(10));
    }
    let set = |tx: &mut Transaction<'_>| tx.set("/a", &2.into());
    refused(ErrorKind::ReadOnly, "cannot save its data", theirs.write(set));
    assert_eq!(number(theirs.read().expect("read").get("/a").expect("get")), 1);
    server.ask::<String>(&["CONFIG", "SET", "save", ""]);
    theirs.write(set).expect("write");
}

#[test]
fn tls_is_spoken_with_a_server_that_is_trusted() {
    let Some(made) = Certificate::make() else { return };
    let (key, certificate) = (&*made.key, &*made.certificate);
    let port = free_port().to_string();
    let settings = ["--tls-port", &port, "--tls-cert-file", certificate, "--tls-key-file", key];
    let settings =
        [&settings[..], &["--tls-ca-cert-file", certificate, "--tls-auth-clients", "no"]].concat();
    let Some(_server) = RedisServer::start(&settings) else { return };
    let url = format!("rediss://localhost:{port}?store=t");
    let run = |trusted: &str| {
        let mut child = child_command("tls", Path::new(&url));
        child.env("SSL_CERT_FILE", trusted).output().expect("a child")
    };
    let said = |trusted| String::from_utf8_lossy(&run(trusted).stdout).into_owned();
    assert!(said(certificate).contains("said: 1"), "{}", said(certificate));
    let untrusted = said("/dev/null");
    assert!(untrusted.contains("certificate is not trusted"), "{untrusted}");
}

/// Another process, whose environment says whom to trust.
#[test]
fn child() {
    let Some((_, url)) = child::role() else { return };
    match options().open(url.to_str().expect("a URL")) {
        Ok(store) => {
            store.write(|tx| tx.set("/n", &1.into())).expect("write");
            child::say(number(store.read().expect("read").get("/n").expect("get")));
        }
        Err(error) => child::say(error),
    }
}
