//! The MongoDB backend: what every backend must do, and what bad luck may do to it.
//!
//! FerretDB, on which this runs unless there is a MongoDB, looks through whole collections for every
//! range, so stores are small here, and times say nothing.

use std::cell::Cell;
use std::iter;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use mongodb::bson::{Bson, DateTime, Document, doc};
use spinney::backends::mongodb::{MongoDb, Options};
use spinney::network::server::{Answer, Failure, Server, View};
use spinney::network::{Network, NetworkOptions};
use spinney::{ErrorKind, OpenOptions, Store, Value};
use spinney_conformance::child;
use spinney_conformance::contract::{Extent, contract_of};
use spinney_conformance::mirror::Mirror;
use spinney_conformance::model::{History, run};
use spinney_conformance::servers::PATIENT;
use spinney_conformance::servers::contract::{Terms, server_contract};
use spinney_conformance::servers::figures::mongodb::documents_of_a_commit;
use spinney_conformance::servers::mongodb::{MongoServer, USER};
use spinney_conformance::servers::mongodb_proxy::{Lost, Proxy, Then};
use spinney_conformance::strict::Strict;
use spinney_conformance::suite::tree_groups;
use spinney_conformance::timed;
use spinney_core::Memory;
use spinney_core::backend::{Backend, Batch, Change};

/// The groups of the suite whose stores are small.
const ON_FERRETDB: [&str; 3] = ["basics", "removal", "patches"];

/// Names stores of one server.
#[derive(Default)]
struct Names(AtomicU64);

impl Names {
    fn next(&self) -> String {
        format!("s{}", self.0.fetch_add(1, Ordering::Relaxed))
    }
}

fn open(url: &str) -> MongoDb {
    open_with(url, Options::CREATE)
}

fn open_with(url: &str, options: Options) -> MongoDb {
    MongoDb::open(url, options).unwrap_or_else(|error| panic!("{error}"))
}

fn with_lease(lease: Duration) -> Options {
    Options { network: NetworkOptions { lease, ..NetworkOptions::DEFAULT }, ..Options::CREATE }
}

fn network(url: &str) -> Network<MongoDb> {
    Network::new(open_with(url, Options { network: PATIENT, ..Options::CREATE }), PATIENT)
}

fn store(url: &str) -> Store {
    spinney::open(url).unwrap_or_else(|error| panic!("{error}"))
}

fn number_at(store: &Store, path: &str) -> u64 {
    match store.read().and_then(|snapshot| snapshot.get(path)).expect("it reads") {
        Some(Value::Number(number)) => number.as_u64().expect("a small number"),
        None => 0,
        other => panic!("{other:?} is no number"),
    }
}

fn assert_sound(store: &Store) {
    let report = store.read().and_then(|snapshot| snapshot.check()).expect("checks");
    assert!(report.is_sound(), "{report:?}");
}

fn kind_of(opened: spinney::Result<MongoDb>) -> (ErrorKind, String) {
    let error = opened.err().expect("an error");
    assert!(!error.to_string().contains(USER.1), "{error}");
    assert!(!error.to_string().contains('\n'), "{error}");
    (error.kind(), error.to_string())
}

/// The state that made a version.
fn state_of(page: &Document) -> i64 {
    page.get_i64("state").expect("a state")
}

#[test]
fn the_adapter_does_what_every_server_must() {
    let Some(server) = MongoServer::start() else { return };
    let leased = Duration::from_millis(1_500);
    let stores = Cell::new(0);
    timed("the contract of servers on MongoDB", || {
        let two = |lease| {
            stores.set(stores.get() + 1);
            let url = server.url(&format!("s{}", stores.get()));
            [(); 2].map(|()| Box::new(open_with(&url, with_lease(lease))) as Box<dyn Server>)
        };
        server_contract(&two, Terms { leased, random_batches: 60 });
    });
}

#[test]
fn the_contract_holds() {
    let Some(server) = MongoServer::start() else { return };
    let names = Names::default();
    timed("contract on MongoDB", || {
        let stores = || Box::new(network(&server.url(&names.next()))) as Box<dyn Backend>;
        contract_of(&stores, Extent { batch_len_max: 300_000, random_batches: 60 });
    });
}

#[test]
fn the_suite_passes() {
    let Some(server) = MongoServer::start() else { return };
    let names = Names::default();
    let is_chosen = |group: &str| server.has_indexes() || ON_FERRETDB.contains(&group);
    timed("suite on MongoDB", || {
        tree_groups(&|| Arc::new(network(&server.url(&names.next()))), is_chosen);
    });
    if !server.has_indexes() {
        println!(
            "of the suite only these groups, since FerretDB reads everything for each range: {ON_FERRETDB:?}"
        );
    }
}

#[test]
fn random_histories_are_those_of_memory() {
    let Some(server) = MongoServer::start() else { return };
    let names = Names::default();
    let seed = fastrand::u64(..1 << 32);
    println!("SPINNEY_TEST_SEED={seed}");
    timed("random histories on MongoDB", || {
        for (seed, operations, batch_max, keys_max) in [(seed, 60, 4, 12), (seed + 1, 300, 25, 60)]
        {
            let second = network(&server.url(&names.next()));
            let mirror = Strict::new(Mirror::new(Memory::new(), second));
            let history = History { seed, operations, batch_max, keys_max, diffs: true };
            run(&mirror, &history);
        }
    });
}

#[test]
fn a_small_commit_writes_its_pages_and_one_document() {
    let Some(server) = MongoServer::start() else { return };
    let written = documents_of_a_commit(&server, 2_000);
    println!("a commit of one leaf: {written:?}");
    assert_eq!(written.documents, written.records + 1);
}

#[test]
fn who_may_not_enter_is_told() {
    let Some(server) = MongoServer::start_with_users() else { return };
    let wrong = server.url("s").replace(USER.1, "wr0ng");
    let (kind, text) = kind_of(MongoDb::open(&wrong, Options::CREATE));
    assert_eq!(kind, ErrorKind::Denied, "{text}");
    assert!(!text.contains("wr0ng") && !text.contains(USER.0), "{text}");
}

#[test]
fn a_server_that_is_not_there_is_told_in_time() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let network = NetworkOptions { timeout: Duration::from_secs(1), ..NetworkOptions::DEFAULT };
    let options = Options { network, ..Options::CREATE };
    // One that never answers, and none at all.
    for listener in [Some(listener), None] {
        let since = Instant::now();
        let url = format!("mongodb://{}:{}@127.0.0.1:{port}/x", USER.0, USER.1);
        let (kind, text) = kind_of(MongoDb::open(&url, options));
        assert_eq!(kind, ErrorKind::Io, "{text}");
        assert!(since.elapsed() < Duration::from_secs(8), "{:?}", since.elapsed());
        drop(listener);
    }
}

#[test]
fn what_is_no_store_is_refused_and_left_alone() {
    let Some(server) = MongoServer::start() else { return };
    let refused = |store: &str, expected, options| {
        let (kind, text) = kind_of(MongoDb::open(&server.url(store), options));
        assert_eq!(kind, expected, "{text}");
        text
    };
    let missing = Options { create: false, ..Options::CREATE };
    refused("none", ErrorKind::NotFound, missing);
    assert!(server.documents("none.commits").is_empty());

    server.insert("a.commits", doc! { "_id": "mine", "value": 7 });
    server.insert("b.pages", doc! { "_id": 0_i64 });
    server.insert("c.commits", doc! { "_id": 0_i64, "kind": "something else" });
    for name in ["a", "b", "c"] {
        let text = refused(name, ErrorKind::InvalidInput, Options::CREATE);
        assert!(text.contains(&format!("`{name}.")), "{text}");
    }
    for collection in ["a.commits", "b.pages", "c.commits"] {
        assert_eq!(server.documents(collection).len(), 1, "{collection}");
    }

    drop(open(&server.url("d")));
    let reader = OpenOptions::new().read_only(true).open(&server.url("d")).expect("a store");
    let refused_write = reader.write(|tx| tx.set("/a", &1.into())).expect_err("it is read-only");
    assert_eq!(refused_write.kind(), ErrorKind::ReadOnly);
    drop(reader);
    server.update("d.commits", doc! { "_id": 0_i64 }, doc! { "$set": { "format": 2_i64 } });
    refused("d", ErrorKind::Unsupported, Options::CREATE);

    let damaged = store(&server.url("e"));
    damaged.write(|tx| tx.set("/t/a", &1.into())).expect("write");
    drop(damaged);
    let newest = doc! { "_id": { "$gt": 0_i64 } };
    server.update("e.commits", newest, doc! { "$set": { "low": "none" } });
    let text = refused("e", ErrorKind::Corrupted, Options::CREATE);
    assert!(text.contains("`low`"), "{text}");
}

/// What a client leaves that died while it put versions in place: any part of them.
#[test]
fn a_commit_that_is_half_in_place_is_read_and_completed() {
    let Some(server) = MongoServer::start() else { return };
    let url = server.url("s");
    let first = store(&url);
    first
        .write(|tx| (0..400).try_for_each(|i| tx.set(&format!("/t/{i:03}"), &0.into())))
        .expect("write");
    for round in 1..=6_u64 {
        first
            .write(|tx| {
                tx.remove(&format!("/t/{:03}", round * 7))?;
                (0..400).step_by(9).try_for_each(|i| tx.set(&format!("/t/x{i:03}"), &round.into()))
            })
            .expect("write");
        let newest = server.documents("s.commits").pop().expect("a commit");
        let state = newest.get_i64("_id").expect("_id");
        // Whatever its own thread is about to put there comes in between, as another client's would.
        let versions = server.documents("s.pages");
        let of_newest = versions.iter().filter(|page| state_of(page) == state);
        for (i, page) in of_newest.enumerate() {
            if round == 1 || (i as u64 + round).is_multiple_of(2) {
                server.delete("s.pages", doc! { "_id": page.get("_id").cloned() });
            }
        }
        let second = store(&url);
        assert_eq!(number_at(&second, "/t/x009"), round);
        assert_sound(&second);
        second.write(|tx| tx.set("/n", &round.into())).expect("write");
        let third = store(&url);
        assert_eq!((number_at(&third, "/t/x009"), number_at(&third, "/n")), (round, round));
        assert_eq!(
            third.read().and_then(|s| s.get(&format!("/t/{:03}", round * 7))).expect("read"),
            None
        );
        assert_sound(&third);
    }
}

#[test]
fn what_was_superseded_goes() {
    let Some(server) = MongoServer::start() else { return };
    let lease = Duration::from_millis(100);
    let url = server.url("s");
    let adapter = open_with(&url, with_lease(lease));
    let keys: Vec<Vec<u8>> = (0..3).map(|i| format!("key{i}").into_bytes()).collect();
    let mut state = adapter.newest(0, None, &[]).expect("newest").state;
    let mut commit = |changes: Vec<Change>| {
        let batch = Batch { commit_id: fastrand::u128(..), changes, ..Batch::default() };
        match adapter.commit(Some(state), &batch, &[]).expect("a commit") {
            Answer::Committed(made) => state = made,
            other => panic!("{other:?}"),
        }
        state
    };
    let put = |key: &[u8], i: u64| Change::Put(key.into(), i.to_be_bytes().as_slice().into());
    commit(vec![put(b"deleted", 0)]);
    commit(vec![Change::Delete(b"deleted".as_slice().into())]);
    for i in 0..330_u64 {
        let state = commit(keys.iter().map(|key| put(key, i)).collect());
        if i % 100 == 0 {
            let view = View { state, lease: None };
            let read = adapter.floor(view, &keys[0], &keys[0]).expect("read").record;
            assert_eq!(read.expect("a record").1[..], i.to_be_bytes());
        }
    }
    // An hour later.
    let long_ago = DateTime::from_millis(DateTime::now().timestamp_millis() - 4_000_000);
    server.update("s.commits", doc! {}, doc! { "$set": { "at": long_ago } });
    thread::sleep(lease * 2);
    let has_value = |page: &Document| page.contains_key("value");
    // Deleting goes on behind commits, at the pace of the server.
    let mut newest = 0;
    for pause in iter::repeat_n(2, 190).chain(iter::repeat_n(1_000, 40)) {
        newest += 1;
        commit(vec![put(&keys[0], newest)]);
        thread::sleep(Duration::from_millis(pause));
        let is_done = |pages: &[Document]| pages.len() < 600 && pages.iter().all(has_value);
        if pause > 2
            && server.documents("s.commits").len() < 500
            && is_done(&server.documents("s.pages"))
        {
            break;
        }
    }
    drop(adapter);
    let (commits, pages) = (server.documents("s.commits"), server.documents("s.pages"));
    println!("{} commits and {} versions are left", commits.len(), pages.len());
    assert_eq!(commits[0].get_i64("_id").ok(), Some(0));
    assert!((256..500).contains(&commits.len()), "{} commits", commits.len());
    assert!(pages.len() < 600, "{} versions", pages.len());
    let id = |page: &Document| page.get_str("_id").expect("_id").to_owned();
    assert!(pages.iter().all(has_value), "a mark of what was deleted is left");
    assert!(!pages.is_empty() && pages.iter().all(|page| id(page).contains('!')));
    let again = open(&url);
    let found = again.newest(0, None, &[]).expect("newest");
    let view = View { state: found.state, lease: None };
    for (i, key) in keys.iter().enumerate() {
        let read = again.floor(view, key, key).expect("read").record.expect("a record").1;
        assert_eq!(read[..], if i == 0 { newest } else { 329 }.to_be_bytes());
    }
    assert!(again.floor(view, b"deleted", b"deleted").expect("read").record.is_none());
}

/// A reader whose clock stood still, as it does while a machine sleeps, believes in its lease for longer
/// than the others.
#[test]
fn a_state_that_was_trimmed_is_told_and_never_mixed() {
    let Some(server) = MongoServer::start() else { return };
    let url = server.url("s");
    let writer = open_with(&url, with_lease(Duration::from_millis(50)));
    let commit = |i: u64| {
        let key =
            |name: &str| Change::Put(name.as_bytes().into(), i.to_be_bytes().as_slice().into());
        let changed = if i == 1 { "c" } else { "a" };
        let changes = vec![key(changed), key(&format!("b{i}"))];
        let base = writer.newest(0, None, &[]).expect("newest").state;
        let batch = Batch { commit_id: fastrand::u128(..), changes, ..Batch::default() };
        assert!(matches!(writer.commit(Some(base), &batch, &[]), Ok(Answer::Committed(_))));
    };
    commit(0);
    // The newest commit is known to the reader without the versions.
    commit(1);
    let reader = open_with(&url, with_lease(Duration::from_secs(300)));
    let view =
        View { state: reader.newest(0, Some(7), &[]).expect("newest").state, lease: Some(7) };
    let mut was_read = 0;
    for i in 2..=200 {
        commit(i);
        match reader.floor(view, b"a", b"a") {
            Ok(floor) => {
                let (_, value) = floor.record.expect("a record");
                assert_eq!(value[..], 0_u64.to_be_bytes());
                was_read += 1;
            }
            Err(Failure::Expired) => {
                println!("it was read {was_read} times");
                assert!(was_read > 0);
                return;
            }
            Err(failure) => panic!("{failure:?}"),
        }
    }
    panic!("nothing was trimmed");
}

/// Each request of a few commits is lost once, or its answer is: nothing is lost or made twice.
#[test]
fn connections_may_be_cut_at_any_request() {
    let Some(server) = MongoServer::start_own() else { return };
    let proxy = Proxy::start(server.port());
    let ours = store(&server.url_through(proxy.port(), "s"));
    ours.write(|tx| tx.set("/t/sum", &0.into())).expect("write");
    let mut sum = 0;
    timed("commits with connections cut", || {
        for lost in [Lost::Request, Lost::Answer] {
            for after in 0..12 {
                proxy.cut(after, lost, Then::GoOn);
                for _ in 0..3 {
                    sum += 1;
                    ours.write(|tx| {
                        let Some(Value::Number(was)) = tx.get("/t/sum")? else { panic!("no sum") };
                        let was = was.as_u64().expect("a small number");
                        tx.set("/t/sum", &(was + 1).into())
                    })
                    .unwrap_or_else(|error| panic!("{lost:?} after {after}: {error}"));
                }
            }
        }
    });
    assert_eq!(number_at(&store(&server.url("s")), "/t/sum"), sum);
    assert_sound(&ours);
}

#[test]
fn child() {
    let Some((role, url)) = child::role() else { return };
    let store = store(url.to_str().expect("a URL"));
    match role.as_str() {
        "count" => {
            let from = number_at(&store, "/t/n");
            child::say(format!("began {from}"));
            for n in from + 1.. {
                store
                    .write(|tx| {
                        tx.set("/t/n", &n.into())?;
                        tx.set(&format!("/t/list{}", n % 3), &vec![Value::from(n); 700].into())
                    })
                    .expect("write");
                child::say(n);
            }
        }
        "import" => {
            child::say("began");
            // More than one batch may hold, and then more than there is time for.
            let part = Value::from("x".repeat(40_000));
            let edited = store.write(|tx| {
                (0..600).try_for_each(|i| tx.set(&format!("/big/{i}"), &part))?;
                loop {
                    thread::park();
                }
                #[expect(unreachable_code)]
                Ok(())
            });
            edited.expect("write");
        }
        other => panic!("no role `{other}`"),
    }
}

/// The client is killed at each request of its commits: before it arrives, and when it was done.
#[test]
fn writers_may_be_killed_at_any_stage() {
    let Some(server) = MongoServer::start_own() else { return };
    let direct = server.url("s");
    let survivor = store(&direct);
    survivor.write(|tx| tx.set("/t/n", &0.into())).expect("write");
    timed("writers killed at each request", || {
        for (after, lost) in (0..12).flat_map(|i| [(i, Lost::Request), (i, Lost::Answer)]) {
            let proxy = Proxy::start(server.port());
            let url = server.url_through(proxy.port(), "s");
            let mut writer = child::start("count", Path::new(&url));
            let mut said = child::said(&mut writer);
            said.next().expect("it begins");
            proxy.cut(after, lost, Then::Nothing);
            assert!(proxy.wait_for_cut(Duration::from_secs(30)), "after {after} {lost:?}");
            child::kill(writer);
            let told = said.filter_map(|n| n.parse().ok()).last();
            let stored = number_at(&survivor, "/t/n");
            let told: u64 = told.unwrap_or(stored);
            assert!(
                stored == told || stored == told + 1,
                "after {after} {lost:?}: {told}, {stored}"
            );
            if after % 4 == 0 {
                assert_sound(&store(&direct));
            }
        }
    });
    let n = number_at(&survivor, "/t/n");
    survivor.write(|tx| tx.set("/t/n", &(n + 1).into())).expect("write");
    assert_eq!(number_at(&store(&direct), "/t/n"), n + 1);
}

#[test]
fn an_import_that_is_killed_leaves_nothing() {
    // FerretDB takes minutes to read megabytes.
    let Some(server) = MongoServer::start_indexed() else { return };
    let direct = server.url("s");
    let survivor = store(&direct);
    survivor.write(|tx| tx.set("/t/a", &1.into())).expect("write");
    let mut writer = child::start("import", Path::new(&direct));
    let mut said = child::said(&mut writer);
    assert_eq!(said.next().as_deref(), Some("began"));
    let since = Instant::now();
    let commits_len = || server.documents("s.commits").len();
    let before = commits_len();
    // Some of it is written ahead.
    while commits_len() < before + 2 {
        assert!(since.elapsed() < Duration::from_secs(60), "nothing is written ahead");
        thread::sleep(Duration::from_millis(10));
    }
    child::kill(writer);
    assert_eq!(survivor.read().and_then(|s| s.get("/big")).expect("read"), None);
    survivor.write(|tx| tx.set("/t/b", &2.into())).expect("write");
    // Reclaim works in the background, in small steps.
    let live = || {
        let mut chunks = std::collections::BTreeMap::new();
        for page in server.documents("s.pages") {
            let id = page.get_str("_id").expect("_id").to_owned();
            let (key, _) = id.split_once('!').expect("a version");
            let len = page.get_binary_generic("value").map_or(0, |value| value.len());
            chunks.insert(key.to_owned(), len);
        }
        chunks.values().sum::<usize>()
    };
    while live() > 100_000 {
        assert!(since.elapsed() < Duration::from_secs(120), "{} bytes are left", live());
        survivor.write(|tx| tx.set("/t/b", &fastrand::u64(..).into())).expect("write");
        thread::sleep(Duration::from_millis(100));
    }
    assert_sound(&store(&direct));
}

#[test]
fn a_server_that_is_killed_under_load_loses_nothing() {
    let Some(mut server) = MongoServer::start_own() else { return };
    let url = server.url("s");
    store(&url).write(|tx| tx.set("/t/a", &0.into())).expect("write");
    const WRITERS: u64 = 3;
    let made: Vec<AtomicU64> = (0..WRITERS).map(|_| AtomicU64::new(0)).collect();
    let over = AtomicU64::new(0);
    timed("writers while their server is killed", || {
        thread::scope(|scope| {
            for (writer, made) in made.iter().enumerate() {
                let (url, over) = (&url, &over);
                scope.spawn(move || {
                    let mut ours = store(url);
                    while over.load(Ordering::Relaxed) == 0 {
                        let n = made.load(Ordering::Relaxed) + 1;
                        let path = format!("/t/writer{writer}");
                        match ours.write(|tx| tx.set(&path, &n.into())) {
                            Ok(_) => made.store(n, Ordering::Relaxed),
                            // It had not the patience; what became of the commit shows below.
                            Err(error) => {
                                let kind = error.kind();
                                assert!(
                                    matches!(kind, ErrorKind::Io | ErrorKind::Closed),
                                    "{error}"
                                );
                                ours = store(url);
                            }
                        }
                    }
                });
            }
            for _ in 0..3 {
                thread::sleep(Duration::from_millis(700));
                server.kill();
                thread::sleep(Duration::from_millis(200));
                server.resume();
            }
            thread::sleep(Duration::from_millis(300));
            over.store(1, Ordering::Relaxed);
        });
    });
    let (after, mut sum) = (store(&url), 0);
    for (writer, made) in made.iter().enumerate() {
        let (told, stored) =
            (made.load(Ordering::Relaxed), number_at(&after, &format!("/t/writer{writer}")));
        println!("writer {writer}: {told} commits");
        assert!(stored == told || stored == told + 1, "{told}, {stored}");
        sum += told;
    }
    assert!(sum > 0);
    assert_sound(&after);
}

#[test]
fn several_clients_lose_no_update() {
    let Some(server) = MongoServer::start() else { return };
    let url = server.url("s");
    store(&url).write(|tx| tx.set("/t/sum", &0.into())).expect("write");
    const CLIENTS: u64 = 4;
    const ROUNDS: u64 = 15;
    let longest = AtomicU64::new(0);
    timed("clients that write one leaf", || {
        thread::scope(|scope| {
            for client in 0..CLIENTS {
                let (url, longest) = (&url, &longest);
                scope.spawn(move || {
                    let store = store(url);
                    for round in 0..ROUNDS {
                        let since = Instant::now();
                        let written = store.write(|tx| {
                            let Some(Value::Number(sum)) = tx.get("/t/sum")? else {
                                panic!("no sum")
                            };
                            let sum = sum.as_u64().expect("a small number");
                            tx.set("/t/sum", &(sum + 1).into())?;
                            tx.set(&format!("/t/client{client}"), &round.into())
                        });
                        written.expect("write");
                        longest.fetch_max(since.elapsed().as_millis() as u64, Ordering::Relaxed);
                    }
                });
            }
        });
    });
    println!("timed: the longest wait of a writer: {} ms", longest.load(Ordering::Relaxed));
    let after = store(&url);
    assert_eq!(number_at(&after, "/t/sum"), CLIENTS * ROUNDS);
    assert_sound(&after);
}

#[test]
fn what_the_server_says_is_told() {
    let Some(server) = MongoServer::start() else { return };
    let adapter = open(&server.url("s"));
    adapter.durable().expect("it syncs");
    let stats = adapter.stats().expect("stats");
    let fact =
        |name: &str| stats.iter().find(|(fact, _)| fact == name).map(|(_, value)| value.clone());
    println!("{}", fact("server").expect("a server"));
    assert_eq!(fact("state").as_deref(), Some("0"));
    assert!(adapter.len_bytes().expect("bytes").is_some());
    let weak = open(&format!("{}&journal=false", server.url("s")));
    let error = weak.durable().expect_err("it may be lost");
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("journal=false"), "{error}");
    let missing = OpenOptions::new().open(&format!("{}&journal=false", server.url("other")));
    assert_eq!(missing.err().expect("it cannot be durable").kind(), ErrorKind::Unsupported);
    assert!(server.documents("other.commits").is_empty(), "no store was made");
    let store =
        OpenOptions::new().over(Arc::new(Network::new(weak, NetworkOptions::DEFAULT)), None);
    let refused = store.write(|tx| tx.set("/t/a", &1.into())).expect_err("durable");
    assert_eq!(refused.kind(), ErrorKind::Unsupported);
    assert_eq!(server.documents("s.commits").len(), 1, "nothing was committed");
    let first = server.documents("s.commits").remove(0);
    assert_eq!(first.get("kind"), Some(&Bson::from("spinney store")));
}
