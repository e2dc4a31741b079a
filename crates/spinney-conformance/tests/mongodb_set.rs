//! The MongoDB backend on the primary of a replica set: change streams, TLS, users, and the parts of the
//! suite that need a server with an index.
//!
//! Replication itself is not tested: the set has one member.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use spinney::backends::mongodb::{MongoDb, Options};
use spinney::network::server::Server;
use spinney::network::{Network, NetworkOptions};
use spinney::{ErrorKind, Store};
use spinney_conformance::servers::PATIENT;
use spinney_conformance::servers::certificate::Certificate;
use spinney_conformance::servers::contract::{Terms, server_contract};
use spinney_conformance::servers::mongodb::{MongoServer, USER};
use spinney_conformance::suite::tree_groups;
use spinney_conformance::timed;
use spinney_core::backend::Backend;

/// The groups of the suite that FerretDB is too slow for and that are no matter of minutes here.
const GROUPS: [&str; 4] = ["layers", "datastores", "locks", "history"];

fn open(url: &str, network: NetworkOptions) -> MongoDb {
    let options = Options { network, ..Options::CREATE };
    MongoDb::open(url, options).unwrap_or_else(|error| panic!("{error}"))
}

fn network(url: &str) -> Network<MongoDb> {
    Network::new(open(url, PATIENT), PATIENT)
}

fn store(url: &str) -> Store {
    spinney::open(url).unwrap_or_else(|error| panic!("{error}"))
}

/// Gives each store of a server a name.
#[derive(Default)]
struct Names(AtomicU64);

impl Names {
    fn next(&self) -> String {
        format!("s{}", self.0.fetch_add(1, Ordering::Relaxed))
    }
}

#[test]
fn the_adapter_does_what_every_server_must() {
    let Some(server) = MongoServer::start_member(&[]) else { return };
    let (names, leased) = (Names::default(), Duration::from_millis(1_500));
    timed("the contract of servers on a replica set", || {
        let two = |lease| {
            let url = server.url(&names.next());
            let options = NetworkOptions { lease, ..NetworkOptions::DEFAULT };
            [(); 2].map(|()| Box::new(open(&url, options)) as Box<dyn Server>)
        };
        server_contract(&two, Terms { leased, random_batches: 60 });
    });
}

#[test]
fn the_suite_passes() {
    let Some(server) = MongoServer::start_member(&[]) else { return };
    let names = Names::default();
    timed("suite on a replica set", || {
        let stores = || Arc::new(network(&server.url(&names.next()))) as Arc<dyn Backend>;
        tree_groups(&stores, |group| GROUPS.contains(&group));
    });
}

/// The server tells of commits; it is not asked again and again.
#[test]
fn a_wait_is_told_of_a_commit() {
    let Some(server) = MongoServer::start_member(&[]) else { return };
    let (writer, waiter) = (store(&server.url("s")), network(&server.url("s")));
    writer.write(|tx| tx.set("/t/n", &0.into())).expect("write");
    assert!(waiter.capabilities().push_wait);
    for n in 1..=5_u64 {
        let known = waiter.snapshot().expect("a state").revision().expect("a revision");
        thread::scope(|scope| {
            let told = scope.spawn(|| waiter.wait(known, Duration::from_secs(60)));
            writer.write(|tx| tx.set("/t/n", &n.into())).expect("write");
            assert_eq!(told.join().expect("joins").expect("waits"), known + 1);
        });
    }
    let known = waiter.snapshot().expect("a state").revision().expect("a revision");
    // It looks after what it wrote.
    drop(writer);
    let asked = |timeout| {
        let before = server.queries();
        assert_eq!(waiter.wait(known, timeout).expect("waits"), known);
        server.queries() - before
    };
    let (short, long) = (asked(Duration::from_millis(100)), asked(Duration::from_secs(3)));
    // Once a second it looks whether something was missed; without a stream, five times.
    assert!(long <= short + 8, "{short} queries in a tenth of a second, {long} in three seconds");
}

#[test]
fn who_is_known_is_let_in_and_nobody_else() {
    let Some(server) = MongoServer::start_member_with_users() else { return };
    let url = server.url("s");
    store(&url).write(|tx| tx.set("/t/n", &1.into())).expect("write");
    let wrong = url.replace(USER.1, "wr0ng");
    let (place, _) = url.split_once('?').expect("options");
    let nobody = format!("{place}?store=s").replace(&format!("{}:{}@", USER.0, USER.1), "");
    for url in [wrong, nobody] {
        let error = MongoDb::open(&url, Options::CREATE).err().expect("an error");
        assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
        let text = error.to_string();
        assert!(!text.contains("wr0ng") && !text.contains(USER.0), "{text}");
    }
    assert_eq!(store(&url).read().and_then(|s| s.get("/t/n")).expect("read"), Some(1.into()));
}

#[test]
fn tls_is_spoken_with_a_server_that_is_trusted() {
    let Some(made) = Certificate::make() else { return };
    let settings = ["--tls-cert-file", &made.certificate, "--tls-key-file", &made.key];
    let Some(server) = MongoServer::start_member(&settings) else { return };
    let tls = format!("{}&tls=true", server.url("s").replace("127.0.0.1", "localhost"));
    let trusted = format!("{tls}&tlsCAFile={}", made.certificate);
    store(&trusted).write(|tx| tx.set("/t/n", &1.into())).expect("write");
    let short = NetworkOptions { timeout: Duration::from_secs(2), ..NetworkOptions::DEFAULT };
    let options = Options { network: short, ..Options::CREATE };
    let error = MongoDb::open(&tls, options).err().expect("nobody vouches for it");
    assert_eq!(error.kind(), ErrorKind::Io, "{error}");
    assert!(error.to_string().contains("certificate is not trusted"), "{error}");
}
