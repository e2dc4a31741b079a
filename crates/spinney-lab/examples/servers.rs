//! Starts servers, measures what stores on them cost and stand, and prints the claims: Redis, a cluster
//! of it, and MongoDB. What cannot be started is `skipped`.
//!
//! `servers [--items N] [--rounds N]`; Redis is Valkey where `SPINNEY_TEST_REDIS_SERVER` names that.

use std::time::Duration;

use spinney_conformance::servers::figures::{cluster, mongodb, redis};
use spinney_conformance::servers::mongodb::MongoServer;
use spinney_conformance::servers::redis::RedisServer;
use spinney_conformance::servers::redis_cluster::RedisCluster;
use spinney_lab::claims::{Claim, Side, Unit};
use spinney_lab::system::Durability;
use spinney_lab::{Options, render_claims, run, systems};

type Failed = Box<dyn std::error::Error>;
type Claims = Result<Vec<Claim>, Failed>;

/// The longest that one of eight writers, or a client of a master that is down, may wait.
const WAIT_MAX: Duration = Duration::from_secs(15);

fn main() -> Result<(), Failed> {
    let (mut items, mut rounds) = (100_000, 1_000);
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let value = arguments.next().ok_or_else(|| format!("`{name}` needs a value"))?;
        match &*name {
            "--items" => items = value.parse()?,
            "--rounds" => rounds = value.parse()?,
            _ => return Err(format!("`{name}` is no argument").into()),
        }
    }
    let mut claims = of_requests(items)?;
    claims.extend(beside_a_file(items)?);
    claims.extend(of_many_clients(items, rounds)?);
    claims.extend(of_mongodb(items)?);
    claims.extend(of_a_cluster()?);
    anstream::print!("{}", render_claims(&claims));
    Ok(())
}

/// A server that keeps nothing on disk: requests and bytes are the same on all.
fn of_requests(items: usize) -> Claims {
    let Some(server) = RedisServer::start(&[]) else { return Ok(Vec::new()) };
    let trips = redis::round_trips(&server, items);
    let memory = redis::memory(&server, items);
    let count = |what: &str, count: u64| {
        Claim::value(what, "redis", Some(items), count as f64, Unit::Count)
    };
    let [used, text, left] = [memory.used, memory.text_len, memory.left].map(|len| len as f64);
    let bytes = |what: &str, parts| Claim::ratio(what, "redis", Some(items), parts, Unit::Bytes);
    Ok(vec![
        count("requests of a commit of one leaf", trips.known).at_most(1.0),
        count("the same where its page is not cached", trips.unknown).at_most(2.0),
        count("the same where another client came first", trips.overtaken).at_most(8.0),
        bytes("memory of the server against the compact text", [used, text]).at_most(3.0),
        bytes("what is left of it after it was removed", [left, text]).at_most(0.2),
    ])
}

/// Rows of the suite `datastore` on a server that syncs each write, beside a file.
fn beside_a_file(items: usize) -> Claims {
    let Some(server) = RedisServer::start_durable() else { return Ok(Vec::new()) };
    let (tree, filtered) = ("get user ordered tree", "get tree");
    let (ordered, sorted) = ("create user ordered items", "create all items");
    let options = Options {
        sizes: vec![items],
        backends: vec![format!("redis={}", server.url("lab"))],
        peers: vec!["file".to_owned()],
        rows: [tree, filtered, ordered, sorted].map(str::to_owned).to_vec(),
        tries: Some(10),
        durability: vec![Durability::Durable],
        count_syncs: false,
        ..Options::default()
    };
    let report = run(&options, systems::all(&options.backends, &options.peers)?)?;
    let time = |test, system| {
        let found = report.find(test, items, system).and_then(|record| record.median());
        found.ok_or_else(|| format!("`{test}` was not measured on `{system}`"))
    };
    let ratio =
        |what: &str, parts| Claim::ratio(what, "redis", Some(items), parts, Unit::Microseconds);
    let read = |what, test| -> Result<Claim, Failed> {
        Ok(ratio(what, [time(test, "redis")?, time(test, "file")?]).at_most(1.0))
    };
    let created = [time(ordered, "redis")?, time(sorted, "redis")?];
    let created = ratio("creating in the user's order against creating sorted", created);
    Ok(vec![
        read("whole tree read against the file", tree)?,
        read("whole tree looked through by a filter against the file", filtered)?,
        created.at_most(1.2),
    ])
}

fn of_many_clients(items: usize, rounds: u64) -> Claims {
    let Some(server) = RedisServer::start(&[]) else { return Ok(Vec::new()) };
    let mut revisions = redis::exports_amid_commits(&server, items).revisions;
    revisions.dedup();
    let what = "exports amid commits without pause, each of one revision of its own";
    let exports = Claim::value(what, "redis", Some(items), revisions.len() as f64, Unit::Count);
    let longest = redis::eight_writers(&server, rounds).as_secs_f64() * 1e6;
    let what = "the longest commit of eight clients of one tree, no update lost";
    let size = Some(8 * rounds as usize);
    let longest = Claim::value(what, "redis", size, longest, Unit::Microseconds);
    Ok(vec![exports.bounded(Side::AtLeast, 5.0), longest.at_most(WAIT_MAX.as_secs_f64() * 1e6)])
}

fn of_mongodb(items: usize) -> Claims {
    let Some(server) = MongoServer::start_indexed() else { return Ok(Vec::new()) };
    let written = mongodb::documents_of_a_commit(&server, items);
    let what = "documents written by a commit of one leaf, against its records and two";
    let written = Claim::value(what, "mongodb", Some(items), written.documents as f64, Unit::Count)
        .at_most(written.records as f64 + 2.0);
    Ok(vec![written])
}

fn of_a_cluster() -> Claims {
    let Some(mut cluster) = RedisCluster::start_durable() else { return Ok(Vec::new()) };
    let survived = cluster::a_master_is_killed(&mut cluster);
    let value = |what: &str, value, unit| {
        Claim::value(what, "redis+cluster", Some(cluster::TREES), value, unit)
    };
    let masters = survived.trees.iter().filter(|&&trees| trees > 0).count() as f64;
    let lost =
        format!("of {} acknowledged commits lost, a master killed and back", survived.acknowledged);
    let refused = survived.refused_after.as_secs_f64() * 1e6;
    Ok(vec![
        value("masters that 64 trees lie on", masters, Unit::Count).bounded(Side::AtLeast, 3.0),
        value("a tree whose master is down says so after", refused, Unit::Microseconds)
            .at_most(WAIT_MAX.as_secs_f64() * 1e6),
        value(&lost, survived.lost as f64, Unit::Count).at_most(0.0),
    ])
}
