//! Figures of a store on a Redis Cluster, a master of which is killed and comes back.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use spinney::network::NetworkOptions;
use spinney::{ErrorKind, OpenOptions, Result, Store};

use crate::servers::redis_cluster::RedisCluster;
use crate::servers::refused;
use crate::subject::number;

/// Trees of the store.
pub const TREES: usize = 64;

/// How long a client asks again when a master is gone.
pub const IMPATIENT: NetworkOptions = NetworkOptions {
    timeout: Duration::from_secs(10),
    patience: Duration::from_millis(300),
    ..NetworkOptions::DEFAULT
};

/// What became of the trees.
#[derive(Clone, Copy, Debug)]
pub struct Survived {
    /// How many trees each master has.
    pub trees: [usize; 3],
    /// Commits that were acknowledged before the master was back.
    pub acknowledged: u64,
    /// How many of them are not there.
    pub lost: u64,
    /// How long it took at most until a tree without a master said so.
    pub refused_after: Duration,
}

/// The trees, each of which counts the commits that were acknowledged, whatever happens to its master.
struct Trees {
    url: String,
    /// The slot and the master of each.
    places: Vec<(u16, usize)>,
    acknowledged: Vec<AtomicU64>,
}

impl Trees {
    fn open(&self) -> Store {
        OpenOptions::new().network(IMPATIENT).open(&self.url).expect("open")
    }

    fn commit(&self, store: &Store, tree: usize) -> Result<u64> {
        let written = store.write(|tx| {
            let n = number(tx.get(&format!("{}/n", path(tree)))?) + 1;
            tx.set(&format!("{}/n", path(tree)), &n.into())?;
            tx.set(&format!("{}/all/{n}", path(tree)), &n.into())?;
            Ok(n)
        })?;
        self.acknowledged[tree].store(written.value, Ordering::Relaxed);
        Ok(written.value)
    }

    fn commit_to_each(&self, store: &Store) {
        for tree in 0..TREES {
            self.commit(store, tree).expect("a commit");
        }
    }

    fn acknowledged(&self, tree: usize) -> u64 {
        self.acknowledged[tree].load(Ordering::Relaxed)
    }
}

fn path(tree: usize) -> String {
    format!("/tree{tree}")
}

/// Writes to 64 trees, kills a master while it does, and looks what is there when it is back.
///
/// # Panics
/// When other trees than those of the dead master are hit, an error does not name it, or a tree is not
/// whole.
pub fn a_master_is_killed(cluster: &mut RedisCluster) -> Survived {
    let places = (0..TREES).map(|tree| cluster.place_of("t", &format!("tree{tree}"))).collect();
    let acknowledged = (0..TREES).map(|_| AtomicU64::new(0)).collect();
    let all = Trees { url: cluster.url("t"), places, acknowledged };
    let store = all.open();
    all.commit_to_each(&store);
    assert_eq!(store.read().and_then(|all| all.count("")).expect("count"), Some(TREES as u64));
    // The one with the catalogue: trees that exist do not need it.
    let (_, dead) = cluster.place_of_key("{t}:trees");
    kill_amid_commits(cluster, dead, &all);
    let refused_after = without_a_master(cluster, dead, &all, &store);
    cluster.masters[dead].resume();
    cluster.wait_until_agreed();
    let acknowledged = (0..TREES).map(|tree| all.acknowledged(tree)).sum();
    let lost = lost(&all, dead);
    // Handles that had given commits up go on as well as new ones.
    for store in [&store, &all.open()] {
        all.commit_to_each(store);
    }
    let on = |master| all.places.iter().filter(|place| place.1 == master).count();
    Survived { trees: [0, 1, 2].map(on), acknowledged, lost, refused_after }
}

fn kill_amid_commits(cluster: &mut RedisCluster, dead: usize, all: &Trees) {
    let is_done = AtomicBool::new(false);
    let unanswered = thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let store = all.open();
            let (mut unanswered, mut tree) = (BTreeSet::new(), 0);
            while !is_done.load(Ordering::Relaxed) {
                if !unanswered.contains(&tree) && all.commit(&store, tree).is_err() {
                    // It may have been made; what is acknowledged is not counted on.
                    unanswered.insert(tree);
                }
                tree = (tree + 1) % TREES;
            }
            unanswered
        });
        thread::sleep(Duration::from_millis(300));
        cluster.masters[dead].kill();
        thread::sleep(Duration::from_secs(3));
        is_done.store(true, Ordering::Relaxed);
        writer.join().expect("the writer")
    });
    println!("trees whose last commit was not answered: {unanswered:?}");
    assert!(unanswered.iter().all(|&tree| all.places[tree].1 == dead), "others were hit");
}

/// How long a tree of the dead master was asked for at most; the others are written and read.
fn without_a_master(cluster: &RedisCluster, dead: usize, all: &Trees, store: &Store) -> Duration {
    let server = |master: usize| format!("127.0.0.1:{}", cluster.masters[master].port());
    let mut longest = Duration::ZERO;
    for (tree, place) in all.places.iter().enumerate() {
        let since = Instant::now();
        match (place.1 == dead, all.commit(store, tree)) {
            (false, committed) => assert!(committed.is_ok(), "another master: {committed:?}"),
            (true, Ok(n)) => panic!("revision {n} of a master that is dead"),
            (true, Err(error)) => {
                assert!(matches!(error.kind(), ErrorKind::Io | ErrorKind::Busy), "{error:?}");
                assert!(error.to_string().contains(&server(dead)), "it is not named: {error}");
                longest = longest.max(since.elapsed());
            }
        }
    }
    // New clients, too, even if the first server that their URL names is the dead one.
    let url = format!("redis+cluster://{},{}?store=t", server(dead), server((dead + 1) % 3));
    let fresh = OpenOptions::new().network(IMPATIENT).open(&url).expect("open");
    let others = all.places.iter().enumerate().filter(|(_, place)| place.1 != dead);
    for (tree, place) in others.take(5) {
        let n = fresh.read().and_then(|all| all.get(&format!("{}/n", path(tree)))).expect("get");
        assert_eq!(number(n), all.acknowledged(tree), "{place:?}");
        all.commit(&fresh, tree).expect("another master");
    }
    let gone = format!("master {}: the server cannot be reached", server(dead));
    refused(ErrorKind::Io, &gone, fresh.write(|tx| tx.set("/new", &1.into())));
    let tree = all.places.iter().position(|place| place.1 == dead).expect("a tree of it");
    let read = fresh.read().and_then(|all| all.get(&path(tree)));
    refused(ErrorKind::Io, &format!("tree `/tree{tree}`, master {}", server(dead)), read);
    longest
}

/// How many commits that were acknowledged are not there, now that all masters are.
fn lost(all: &Trees, dead: usize) -> u64 {
    let store = all.open();
    let mut lost = 0;
    for tree in 0..TREES {
        let acknowledged = all.acknowledged(tree);
        let snapshot = store.read().expect("read");
        let n = number(snapshot.get(&format!("{}/n", path(tree))).expect("get"));
        lost += acknowledged.saturating_sub(n);
        // One whose answer was lost may be there.
        let most = acknowledged + u64::from(all.places[tree].1 == dead);
        assert!(n <= most, "tree {tree}: {acknowledged} were acknowledged, {n} are there");
        assert_eq!(snapshot.count(&format!("{}/all", path(tree))).expect("count"), Some(n));
        let snapshot = store.holding(&path(tree)).and_then(|tree| tree.read()).expect("read");
        assert_eq!(snapshot.revision().expect("revision"), n, "one commit each");
        assert!(snapshot.check().expect("check").is_sound());
    }
    lost
}
