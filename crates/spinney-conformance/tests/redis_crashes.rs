//! The Redis backend when processes and servers are killed and connections are cut.
//!
//! Other processes are this binary again, which runs `child` with a role from the environment.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use spinney::{Durability, ErrorKind, OpenOptions, Result, Store, Transaction, Value};
use spinney_conformance::child::{self, kill, said, say, start};
use spinney_conformance::servers::proxy::{Cuts, Proxy};
use spinney_conformance::servers::redis::RedisServer;
use spinney_conformance::subject::number;
use spinney_conformance::timed;

/// Megabytes of the import that is cut, unless `SPINNEY_TEST_IMPORT_MB` says otherwise.
const IMPORT_MB: usize = 100;

/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(60);

fn open(url: &str) -> Store {
    OpenOptions::new().open(url).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn child() {
    let Some((role, url)) = child::role() else { return };
    let store = open(url.to_str().expect("a URL"));
    match role.as_str() {
        "write" => loop {
            say(write_next(&store).expect("writes"));
        },
        "import" => {
            say("begins");
            let strings = (0..import_mb() * 1_000).map(|i| format!("{i} {}", "x".repeat(1_000)));
            let value: Value = strings.map(Value::from).collect::<Vec<_>>().into();
            store.write(|tx| tx.set("/big", &value)).expect("imports");
            say("is done");
        }
        other => panic!("no role `{other}`"),
    }
}

fn import_mb() -> usize {
    let set = std::env::var("SPINNEY_TEST_IMPORT_MB").ok();
    set.and_then(|mb| mb.parse().ok()).unwrap_or(IMPORT_MB)
}

/// The change that follows the last one: what the store holds says how many were made.
fn change(tx: &mut Transaction<'_>, n: u64) -> Result<()> {
    tx.set("/n", &n.into())?;
    tx.set(&format!("/numbers/{n}"), &n.into())?;
    match n % 4 {
        1 => tx.set(&format!("/imports/{}", n % 5), &vec![Value::from(n); 900].into())?,
        3 => drop(tx.remove(&format!("/imports/{}", (n + 3) % 5))?),
        _ => tx.set(&format!("/texts/{}", n % 7), &format!("{n} ").repeat(9_000).into())?,
    }
    tx.set("/twin", &n.into())
}

fn write_next(store: &Store) -> Result<u64> {
    let write = store.write(|tx| {
        let n = number(tx.get("/n")?) + 1;
        change(tx, n)?;
        Ok(n)
    });
    Ok(write?.value)
}

/// Everything until the last change is there once, nothing is half there, and no record is damaged.
/// Returns the last one.
fn check(store: &Store) -> u64 {
    let snapshot = store.read().expect("reads");
    let n = number(snapshot.get("/n").expect("n"));
    assert_eq!(number(snapshot.get("/twin").expect("twin")), n, "half a commit");
    assert_eq!(
        snapshot.count("/numbers").expect("count").unwrap_or(0),
        n,
        "one is lost or made twice"
    );
    assert_eq!(snapshot.revision().expect("revision"), n, "one commit a change");
    let report = snapshot.check().expect("checks");
    assert!(report.damaged.is_empty(), "{report:?}");
    n
}

#[test]
fn processes_are_killed_while_they_write() {
    const KILLS: usize = 12;
    let Some(server) = RedisServer::start_durable() else { return };
    let url = server.url("t");
    timed("processes killed while they write to Redis", || {
        for _ in 0..KILLS {
            let mut writer = start("write", Path::new(&url));
            let mut lines = said(&mut writer);
            let first = lines.next().expect("it writes");
            thread::sleep(Duration::from_micros(fastrand::u64(..200_000)));
            kill(writer);
            let last = lines.last().unwrap_or(first).parse::<u64>().expect("a number");
            let store = open(&url);
            let n = check(&store);
            assert!(n == last || n == last + 1, "{last} was acknowledged, {n} is there");
        }
        let store = open(&url);
        write_next(&store).expect("the store is as good as ever");
        store.forget_before(u64::MAX).expect("forgets");
        store.reclaim().expect("reclaims");
        let report = store.read().and_then(|snapshot| snapshot.check()).expect("checks");
        assert!(report.is_sound() && report.queued == 0, "{report:?}");
    });
}

#[test]
fn a_server_is_killed_while_clients_write() {
    const KILLS: usize = 5;
    let Some(mut server) = RedisServer::start_durable() else { return };
    let url = server.url("t");
    let (is_over, acknowledged) = (AtomicBool::new(false), AtomicU64::new(0));
    timed("a Redis server killed while clients write", || {
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    let store = open(&url);
                    while !is_over.load(Ordering::Relaxed) {
                        let n = write_next(&store).expect("nothing is reported failed");
                        acknowledged.fetch_max(n, Ordering::Relaxed);
                    }
                });
            }
            for _ in 0..KILLS {
                let before = acknowledged.load(Ordering::Relaxed);
                thread::sleep(Duration::from_millis(fastrand::u64(50..300)));
                server.kill();
                thread::sleep(Duration::from_millis(fastrand::u64(..100)));
                server.resume();
                let since = Instant::now();
                while acknowledged.load(Ordering::Relaxed) <= before + 1 {
                    assert!(since.elapsed() < PATIENCE, "nobody writes any more");
                    thread::sleep(Duration::from_millis(10));
                }
            }
            is_over.store(true, Ordering::Relaxed);
        });
        let n = check(&open(&url));
        let last = acknowledged.load(Ordering::Relaxed);
        assert_eq!(n, last, "each change was acknowledged, and is there");
        println!("{n} changes by 3 clients over {KILLS} kills of the server");
    });
}

#[test]
fn connections_are_cut_in_the_middle_of_commits() {
    const CHANGES: u64 = 300;
    let Some(server) = RedisServer::start_durable() else { return };
    // The first of the answers tell the client what server it is.
    let cuts = Cuts { requests: 500..40_000, answers: 700..2_500 };
    let proxy = Proxy::start(server.port(), cuts);
    let url = server.url("t").replace(&server.port().to_string(), &proxy.port().to_string());
    timed("connections to Redis cut", || {
        // Opening is not tried again by itself: who mistyped a host does not want to wait.
        let store = loop {
            match OpenOptions::new().open(&url) {
                Ok(store) => break store,
                Err(error) => assert_eq!(error.kind(), ErrorKind::Io, "{error}"),
            }
        };
        for n in 1..=CHANGES {
            assert_eq!(write_next(&store).expect("nothing is reported failed"), n, "made twice");
        }
        assert_eq!(check(&open(&server.url("t"))), CHANGES);
    });
    println!("{CHANGES} changes, {} connections cut", proxy.cuts_len());
    assert!(proxy.cuts_len() > 10, "hardly any connection was cut");
}

#[test]
fn an_import_is_cut_and_leaves_nothing() {
    let Some(server) = RedisServer::start(&[]) else { return };
    let store = OpenOptions::new().durability(Durability::Process).open(&server.url("t"));
    let store = store.expect("opens");
    store.write(|tx| tx.set("/small", &1.into())).expect("writes");
    let empty = server.info("memory", "used_memory");
    // It asks for more than this server gives, unless it is told that it does.
    server.ask::<String>(&["CONFIG", "SET", "appendonly", "yes", "appendfsync", "always"]);
    let mut importer = start("import", Path::new(&server.url("t")));
    let mut lines = said(&mut importer);
    assert_eq!(lines.next().as_deref(), Some("begins"));
    let since = Instant::now();
    while server.info("memory", "used_memory") < empty + ((import_mb() as u64) << 19) {
        assert!(since.elapsed() < PATIENCE, "it does not import");
        thread::sleep(Duration::from_millis(1));
    }
    kill(importer);
    assert_eq!(lines.next(), None, "it was too fast; set SPINNEY_TEST_IMPORT_MB to more");
    let snapshot = store.read().expect("reads");
    assert_eq!(snapshot.get("/big").expect("get"), None);
    let left = snapshot.check().expect("checks");
    assert!(left.is_sound() && left.ahead > 100, "{left:?}");
    drop(snapshot);
    let deleted = store.reclaim().expect("reclaims");
    assert!(deleted >= left.ahead, "{deleted} of {} records were given back", left.ahead);
    store.write(|tx| tx.set("/small", &2.into())).expect("writes");
    let report = store.read().and_then(|snapshot| snapshot.check()).expect("checks");
    assert!(report.is_sound() && report.queued == 0 && report.ahead == 0, "{report:?}");
    let records = server.ask::<u64>(&["HLEN", "{t}:values"]);
    assert!(records < 20, "{records} records are left");
    println!("the import left {deleted} records, which were reclaimed");
}

/// What a large write builds ahead is no commit: others that come in between stay, and it begins anew.
#[test]
fn an_import_amid_commits_of_others_loses_nothing() {
    let Some(server) = RedisServer::start_durable() else { return };
    let url = server.url("t");
    let (importer, is_done) = (open(&url), AtomicBool::new(false));
    let part: Value = (0..9_000)
        .map(|i| Value::from(format!("{i} {}", "x".repeat(1_000))))
        .collect::<Vec<_>>()
        .into();
    timed("an import to Redis while others write", || {
        thread::scope(|scope| {
            let writers: Vec<_> = (0..2)
                .map(|writer| {
                    let (url, is_done) = (&url, &is_done);
                    scope.spawn(move || {
                        let (store, mut n) = (open(url), 0_u64);
                        while !is_done.load(Ordering::Relaxed) {
                            n += 1;
                            let path = format!("/writer{writer}/{n}");
                            store.write(|tx| tx.set(&path, &n.into())).expect("writes");
                        }
                        n
                    })
                })
                .collect();
            let mut tries = 0;
            let imported = importer.write(|tx| {
                tries += 1;
                (0..3).try_for_each(|i| tx.set(&format!("/writer0/big{i}"), &part))
            });
            is_done.store(true, Ordering::Relaxed);
            imported.expect("imports");
            let store = open(&url);
            let mut sum = 1;
            for (writer, thread) in writers.into_iter().enumerate() {
                let made = thread.join().expect("a writer");
                let bigs = if writer == 0 { 3 } else { 0 };
                let snapshot = store.read().expect("reads");
                let count = snapshot.count(&format!("/writer{writer}")).expect("count");
                assert_eq!(count, Some(made + bigs), "an update is lost");
                sum += made;
            }
            assert_eq!(store.read().and_then(|all| all.revision()).expect("revision"), sum);
            println!("{tries} tries, {} commits of others", sum - 1);
        });
    });
    importer.forget_before(u64::MAX).expect("forgets");
    importer.wait_until_reclaimed();
    importer.reclaim().expect("reclaims");
    let report = importer.read().and_then(|snapshot| snapshot.check()).expect("checks");
    assert!(report.is_sound() && report.queued == 0, "{report:?}");
}
