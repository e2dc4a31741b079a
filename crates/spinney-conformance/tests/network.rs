//! What all backends of servers share, over a server in this process.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use spinney::formats::{self, Fidelity, Layout};
use spinney::history::Retention;
use spinney::layers::{Layer, Stack};
use spinney::network::{Network, NetworkOptions};
use spinney::{ErrorKind, OpenOptions, Result, Store, Transaction, Value};
use spinney_conformance::contract::contract;
use spinney_conformance::mirror::Mirror;
use spinney_conformance::servers::flaky::{Flaky, Luck};
use spinney_conformance::servers::reference::Reference;
use spinney_conformance::strict::Strict;
use spinney_conformance::{suite, timed};
use spinney_core::Memory;
use spinney_core::backend::Backend;

fn network(server: Reference) -> Network<Reference> {
    Network::new(server, NetworkOptions::DEFAULT)
}

fn store(server: Reference) -> Store {
    OpenOptions::new().over(Arc::new(network(server)), None)
}

/// So few bytes that most of what was read is forgotten at once.
fn tiny_cache() -> NetworkOptions {
    NetworkOptions { cache_len_max: 20_000, ..NetworkOptions::DEFAULT }
}

fn flaky(seed: u64) -> Network<Flaky<Reference>> {
    Network::new(Flaky::new(Reference::new(), Luck::OneOf(60), seed), tiny_cache())
}

fn text(value: &Value) -> String {
    formats::print(value, Layout::Compact, Fidelity::Refuse).expect("print")
}

#[test]
fn the_contract_holds() {
    timed("contract over a server", || contract(&|| Box::new(network(Reference::new()))));
}

#[test]
fn the_suite_passes() {
    timed("suite over a server", || suite(&|| Arc::new(network(Reference::new()))));
}

#[test]
fn a_tiny_cache_forgets_and_is_right() {
    let tiny = || Network::new(Reference::new(), tiny_cache());
    timed("suite on a mirror of memory and a server with a tiny cache", || {
        suite(&|| Arc::new(Strict::new(Mirror::new(Memory::new(), tiny()))));
    });
}

#[test]
fn lost_answers_are_asked_for_again() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let seeds = AtomicU64::new(seed);
    timed("contract over a server with lost answers", || {
        contract(&|| Box::new(flaky(seeds.fetch_add(1, Ordering::Relaxed))));
    });
}

/// Each client adds to its own leaf and to one that all share: a lost update or one made twice shows.
#[test]
fn eight_clients_lose_no_update() {
    const CLIENTS: u64 = 8;
    const ROUNDS: u64 = 200;
    let server = Reference::new();
    let first = store(server.another());
    first.write(|tx| tx.set("/t/sum", &0.into())).expect("begin");
    thread::scope(|scope| {
        for client in 0..CLIENTS {
            let server = Flaky::new(server.another(), Luck::OneOf(50), client);
            let backend = Network::new(server, NetworkOptions::DEFAULT);
            let store = OpenOptions::new().over(Arc::new(backend), None);
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    let written = store.write(|tx| {
                        let sum = tx.get("/t/sum")?.unwrap_or_else(|| 0.into());
                        let sum: u64 = text(&sum).parse().expect("a number");
                        tx.set("/t/sum", &(sum + 1).into())?;
                        tx.set(&format!("/t/client{client}"), &round.into())
                    });
                    written.expect("write");
                }
            });
        }
    });
    let sum = first.read().expect("read").get("/t/sum").expect("get");
    assert_eq!(sum, Some((CLIENTS * ROUNDS).into()));
}

#[test]
fn a_decision_by_an_old_state_is_made_again() {
    let server = Reference::new();
    let (ours, theirs) = (store(server.another()), store(server.another()));
    ours.write(|tx| tx.set("/t/a", &1.into())).expect("write");
    theirs.write(|tx| tx.set("/t/b", &2.into())).expect("write");
    // This client has heard nothing of `b`.
    let seen = ours.write(|tx| tx.get("/t/b")).expect("look");
    assert_eq!(seen.value, Some(2.into()));
    theirs.write(|tx| tx.set("/t/c", &3.into())).expect("write");
    let refused = ours.write(|tx| match tx.exists("/t/c")? {
        true => Ok(()),
        false => Err(spinney::Error::not_found("no c")),
    });
    refused.expect("the second look sees it");
}

#[test]
fn a_snapshot_is_one_state_while_others_write() {
    let server = Reference::new();
    let (ours, theirs) = (store(server.another()), store(server.another()));
    ours.write(|tx| {
        for i in 0..5_000 {
            tx.set(&format!("/t/{i:05}"), &"before".into())?;
        }
        Ok(())
    })
    .expect("write");
    // A client that knows nothing yet.
    let reader = store(server.another());
    let snapshot = reader.read().expect("read");
    theirs
        .write(|tx| {
            tx.remove("/t/00001")?;
            for i in (0..5_000).step_by(7) {
                tx.set(&format!("/t/{i:05}"), &"after".into())?;
            }
            Ok(())
        })
        .expect("write");
    let value = snapshot.get("/t").expect("get").expect("t");
    let text = text(&value);
    assert_eq!(text.matches("before").count(), 5_000);
    assert!(!text.contains("after"));
    drop(snapshot);
    assert_eq!(reader.read().expect("read").get("/t/00007").expect("get"), Some("after".into()));
}

#[test]
fn a_lease_that_ended_is_an_error_and_no_mixed_state() {
    let server = Reference::new();
    let (ours, theirs) = (store(server.another()), store(server.another()));
    theirs.write(|tx| tx.set("/t/a", &1.into())).expect("write");
    let snapshot = ours.read().expect("read");
    theirs.write(|tx| tx.set("/t/a", &2.into())).expect("write");
    server.end_leases();
    let error = snapshot.get("/t/a").expect_err("the state is gone");
    assert_eq!(error.kind(), ErrorKind::Busy);
    assert_eq!(ours.read().expect("read").get("/t/a").expect("get"), Some(2.into()));
}

#[test]
fn states_that_nobody_reads_are_not_kept() {
    let server = Reference::new();
    let ours = store(server.another());
    for i in 0..200 {
        drop(ours.read().expect("read"));
        ours.write(|tx| tx.set("/t/a", &i.into())).expect("write");
    }
    drop(ours.read().expect("read"));
    drop(ours.read().expect("read"));
    assert!(server.states_len() <= 3, "{} states", server.states_len());
}

/// Who only commits gives back with that what it has read before.
#[test]
fn commits_give_leases_back() {
    let server = Reference::new();
    let ours = store(server.another());
    ours.write(|tx| tx.set("/t/a", &0.into())).expect("write");
    drop((0..20).map(|_| ours.read().expect("read")).collect::<Vec<_>>());
    for i in 0..3 {
        ours.write(|tx| tx.set("/t/a", &i.into())).expect("write");
    }
    assert_eq!(server.states_len(), 1);
}

#[test]
fn a_wait_is_told_of_the_commit_of_another_client() {
    let server = Reference::new();
    let (ours, theirs) = (store(server.another()), store(server.another()));
    let waiter = thread::spawn(move || ours.wait(0, Duration::from_secs(30)));
    theirs.write(|tx| tx.set("/t/a", &1.into())).expect("write");
    assert_eq!(waiter.join().expect("thread").expect("wait"), 1);
}

#[test]
fn a_small_commit_is_one_request() {
    let server = Reference::new();
    let theirs = store(server.another());
    let members = |tx: &mut Transaction<'_>| {
        (0..5_000).try_for_each(|i| tx.set(&format!("/t/{i:05}"), &"before".into()))
    };
    theirs.write(members).expect("write");
    let backend = Arc::new(network(server.another()));
    let ours = OpenOptions::new().over(Arc::clone(&backend) as Arc<dyn Backend>, None);
    let requests = |path: &str, value: &str| {
        let before = backend.server().requests_len();
        ours.write(|tx| tx.set(path, &value.into())).expect("write");
        backend.server().requests_len() - before
    };
    println!("requests of a first commit: {}", requests("/t/00100", "ours"));
    assert_eq!(requests("/t/00100", "again"), 1);
    assert_eq!(requests("/t/00101", "a neighbour"), 1);
    assert!(requests("/t/04000", "another page") <= 2);
    // The last page and the count of members are new to it.
    assert!(requests("/t/new", "one more") <= 3);
    assert_eq!(requests("/t/newer", "one more"), 1);
}

/// A value that is written ahead in several steps.
fn big() -> Value {
    (0..12_000_u64)
        .map(|i| format!("{i} {}", "x".repeat(2_000)).into())
        .collect::<Vec<Value>>()
        .into()
}

/// Small commits of another client come while a large one is built ahead, in the same tree and in another.
#[test]
fn an_import_amid_commits_of_others_loses_nothing() {
    let server = Reference::new();
    let (ours, theirs) = (store(server.another()), store(server.another()));
    theirs.write(|tx| tx.set("/t/n", &0.into())).expect("write");
    let (big, mut others) = (big(), 0_u64);
    let mut tries = 0;
    let written = ours.write(|tx| {
        tries += 1;
        for part in 0..3 {
            // The second try keeps others away.
            if tries == 1 {
                others += 1;
                theirs.write(|tx| tx.set("/t/n", &others.into())).expect("write");
                theirs.write(|tx| tx.set("/u", &others.into())).expect("write");
            }
            tx.set(&format!("/t/big{part}"), &big)?;
        }
        Ok(())
    });
    written.expect("write");
    assert_eq!(tries, 2);
    for store in [&ours, &theirs, &store(server.another())] {
        let snapshot = store.read().expect("read");
        assert_eq!(snapshot.get("/t/n").expect("get"), Some(others.into()), "an update is lost");
        assert_eq!(snapshot.get("/u").expect("get"), Some(others.into()), "an update is lost");
        assert_eq!(snapshot.revision().expect("revision"), 1 + 2 * others + 1);
        for part in 0..3 {
            assert_eq!(snapshot.count(&format!("/t/big{part}")).expect("count"), Some(12_000));
        }
    }
    theirs.forget_before(u64::MAX).expect("forgets");
    theirs.wait_until_reclaimed();
    theirs.reclaim().expect("reclaims");
    let report = theirs.read().and_then(|snapshot| snapshot.check()).expect("checks");
    assert!(report.is_sound() && report.queued == 0, "{report:?}");
}

/// Looks at a store while another client commits: as long as it has not made 200 commits, and 200 times at least.
fn look_amid_commits(retention: Retention, look: impl Fn(&Store) -> Result<()>) -> Result<()> {
    let server = Reference::new();
    let options = OpenOptions::new().retention(retention);
    let [ours, theirs] = [(); 2].map(|()| options.over(Arc::new(network(server.another())), None));
    ours.write(|tx| tx.set("/t/n", &0.into())).expect("write");
    let (made, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| {
            for n in (1..100_000_u64).take_while(|_| !is_over.load(Ordering::Relaxed)) {
                theirs.write(|tx| tx.set("/t/n", &n.into())).expect("write");
                made.store(n, Ordering::Relaxed);
            }
        });
        let told = (0..100_000)
            .take_while(|looks| *looks < 200 || made.load(Ordering::Relaxed) < 200)
            .try_for_each(|_| look(&ours));
        is_over.store(true, Ordering::Relaxed);
        told
    })
}

/// However fast others commit, there is one state to look at several times.
#[test]
fn who_compares_amid_commits_of_others_is_not_told_of_them() {
    let told = look_amid_commits(Retention::DEFAULT, |store| {
        let newest = store.read()?.revision()?;
        let mut changes = 0;
        store.between(newest.saturating_sub(2), newest)?.changes(&mut |_, _| {
            changes += 1;
            Ok(())
        })?;
        assert_eq!(changes, 1);
        Ok(())
    });
    told.expect("nobody is told of a conflict");
}

/// Each commit forgets the oldest: what is told begins with the one that is the oldest then.
#[test]
fn the_log_of_a_stack_is_told_while_others_forget() {
    let retention = Retention { revisions_max: 5, ..Retention::DEFAULT };
    let told = look_amid_commits(retention, |store| {
        let stack = Stack::new(vec![Layer::new("t", store, "/t")?])?;
        let mut commits = 0;
        stack.log("", &mut |_| {
            commits += 1;
            Ok(true)
        })?;
        assert!(commits > 0);
        Ok(())
    });
    told.expect("it is told");
}

/// What is tidied up or judged meanwhile is tried again, as writes are; nobody is told of a conflict.
#[test]
fn who_forgets_reclaims_or_looks_amid_commits_of_others_is_not_told_of_them() {
    let server = Reference::new();
    let (ours, theirs) = (store(server.another()), store(server.another()));
    ours.write(|tx| tx.set("/t/n", &0.into())).expect("write");
    // It has heard of one commit, and forgets all.
    for n in 1..4 {
        theirs.write(|tx| tx.set("/t/n", &n.into())).expect("write");
    }
    assert_eq!(ours.forget_before(u64::MAX).expect("forgets"), 4);
    let members: Value = (0..200).map(Value::from).collect::<Vec<_>>().into();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            for n in (4..4_000).take_while(|_| !is_over.load(Ordering::Relaxed)) {
                theirs.write(|tx| tx.set("/t/big", &members)).expect("write");
                theirs.write(|tx| tx.set("/t/n", &n.into())).expect("write");
            }
        });
        let (mut forgotten, mut rounds) = (0, 0);
        while forgotten == 0 || rounds < 10 {
            forgotten += ours.forget_before(u64::MAX).expect("forgets");
            ours.reclaim().expect("reclaims");
            ours.validate(|tx| tx.set("/t/ours", &1.into())).expect("judges");
            rounds += 1;
            assert!(rounds < 10_000, "nothing was forgotten");
        }
        is_over.store(true, Ordering::Relaxed);
        println!("{forgotten} commits were forgotten amid others, in {rounds} rounds");
    });
    // What is tidied up in the background is over.
    theirs.wait_until_reclaimed();
    ours.forget_before(u64::MAX).expect("forgets");
    ours.wait_until_reclaimed();
    ours.reclaim().expect("reclaims");
    let report = ours.read().and_then(|snapshot| snapshot.check()).expect("checks");
    assert!(report.is_sound() && report.queued == 0, "{report:?}");
}

/// How much history there is decides what is kept of it; that a client has found out, the next one need not.
#[test]
fn what_history_holds_is_weighed_once() {
    let server = Reference::new();
    let first = store(server.another());
    // 24 MB, which stay below the data.
    first
        .write(|tx| tx.set("/live", &big()).and_then(|()| tx.set("/t/big", &big())))
        .expect("write");
    for n in 0..3_u64 {
        first
            .write(|tx| tx.set(&format!("/t/small{n}"), &vec![Value::from(n); 3_000].into()))
            .expect("write");
    }
    first.write(|tx| tx.remove("/t/big")).expect("remove");
    first.wait_until_reclaimed();
    let removal = |n: u64| {
        let backend = Arc::new(network(server.another()));
        let ours = OpenOptions::new().over(Arc::clone(&backend) as Arc<dyn Backend>, None);
        ours.write(|tx| tx.remove(&format!("/t/small{n}"))).expect("remove");
        ours.wait_until_reclaimed();
        backend.server().requests_len()
    };
    let requests = [0, 1, 2].map(removal);
    println!("requests of a removal by new clients: {requests:?}");
    assert!(requests.iter().all(|&requests| requests < 30), "{requests:?}");
    let back = first.at(4).and_then(|state| state.count("/t/big"));
    assert_eq!(back.expect("it is kept"), Some(12_000));
    let report = first.read().and_then(|snapshot| snapshot.check()).expect("checks");
    assert!(report.is_sound() && report.queued > 0, "{report:?}");
}

/// A client that has no patience, and how to make a server unreachable for it.
fn impatient(server: &Reference) -> (Arc<Network<Flaky<Reference>>>, Store) {
    let options = NetworkOptions { patience: Duration::from_millis(30), ..NetworkOptions::DEFAULT };
    let flaky = Flaky::new(server.another(), Luck::OneOf(u32::MAX), 0);
    let backend = Arc::new(Network::new(flaky, options));
    (Arc::clone(&backend), OpenOptions::new().over(backend, None))
}

#[test]
fn a_commit_that_was_never_sent_is_a_plain_error() {
    let server = Reference::new();
    let (backend, ours) = impatient(&server);
    ours.write(|tx| tx.set("/t/a", &1.into())).expect("write");
    backend.server().set_luck(Luck::Unreachable);
    for _ in 0..2 {
        let error = ours.write(|tx| tx.set("/t/a", &2.into())).expect_err("nobody is there");
        assert_eq!(error.to_string(), "the server cannot be reached by plan");
    }
    backend.server().set_luck(Luck::OneOf(u32::MAX));
    let requests = backend.server().inner().requests_len();
    assert_eq!(ours.write(|tx| tx.set("/t/a", &3.into())).expect("write").revision, 2);
    assert_eq!(
        backend.server().inner().requests_len() - requests,
        1,
        "nothing was to be found out"
    );
}

/// Whether it was made or not, the next write comes behind it, and it is not made later.
#[test]
fn a_commit_whose_answer_was_lost_is_settled_by_the_next_one() {
    for (luck, is_made) in [(Luck::LosesRequests, false), (Luck::LosesAnswers, true)] {
        let server = Reference::new();
        let (backend, ours) = impatient(&server);
        let theirs = store(server.another());
        let add = |tx: &mut Transaction<'_>| {
            let sum = tx.get("/t/sum")?.map_or(0, |sum| text(&sum).parse().expect("a number"));
            tx.set("/t/sum", &(sum + 1_u64).into())
        };
        ours.write(add).expect("write");
        backend.server().set_luck(luck);
        let error = ours.write(add).expect_err("nobody answers");
        assert_eq!(error.kind(), ErrorKind::Io);
        assert!(error.to_string().contains("whether it was made is not known"), "{error}");
        // As long as nobody knows, nothing is written, and nothing else is said.
        let error = ours.write(add).expect_err("nobody answers");
        assert_eq!(error.to_string(), "the connection was cut by plan");
        backend.server().set_luck(Luck::OneOf(u32::MAX));
        let sum = |store: &Store| store.read().and_then(|all| all.get("/t/sum")).expect("read");
        assert_eq!(sum(&ours), Some((1 + u64::from(is_made)).into()));
        ours.write(add).expect("write");
        theirs.write(add).expect("write");
        let made = 3 + u64::from(is_made);
        assert_eq!((sum(&ours), sum(&theirs)), (Some(made.into()), Some(made.into())));
        assert_eq!(theirs.read().and_then(|all| all.revision()).expect("read"), made);
    }
}
