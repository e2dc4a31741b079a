//! What twelve subscribers of operational state cost: a commit of one leaf, and ten times that all items come and
//! go, of which each counts every change.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use spinney::datastores::{Datastore, Datastores};
use spinney::difference::Change;
use spinney::read::{Node, Reached};
use spinney::{
    Answer, Container, Durability, Ended, Key, Limits, Proposal, Result, Scalar, Subscriber,
    SubscriberOptions, Subscription, Value, Visitor,
};
use spinney_core::Error;

use super::{Bench, Found, stores, wrong};
use crate::claims::{Claim, Unit};
use crate::datastore::document::push_item_key;
use crate::statistics::median;

const SUBSCRIBERS: usize = 12;
const BLOCKS: usize = 20;
const COMMITS: usize = 50;
const ROUNDS: u64 = 10;

/// What a subscriber has counted.
#[derive(Default)]
struct Counts {
    come: AtomicU64,
    gone: AtomicU64,
    asked: AtomicU64,
    told: AtomicU64,
}

struct Counting(Arc<Counts>);

impl Subscriber for Counting {
    fn asked(&mut self, proposal: &Proposal) -> Answer {
        let (mut come, mut gone) = (0, 0);
        let counted = proposal.diff.changes(
            &proposal.before.view(),
            &proposal.after.view(),
            &mut |_, change| match change {
                Change::Added(new) => nodes(&new).map(|count| come += count),
                Change::Removed(old) => nodes(&old).map(|count| gone += count),
                _ => Ok(()),
            },
        );
        self.0.come.fetch_add(come, Ordering::Relaxed);
        self.0.gone.fetch_add(gone, Ordering::Relaxed);
        self.0.asked.fetch_add(1, Ordering::Relaxed);
        match counted {
            Ok(()) => Answer::Pass,
            Err(error) => Answer::Veto(error.to_string()),
        }
    }

    fn told(&mut self, _: u64, ended: &Ended) {
        if matches!(ended, Ended::Committed(_)) {
            self.0.told.fetch_add(1, Ordering::Release);
        }
    }
}

/// How many nodes there are, each decoded.
fn nodes(node: &Reached<'_>) -> Result<u64> {
    struct Count(u64);
    impl Visitor for Count {
        fn open(&mut self, _: Container) -> Result<()> {
            self.0 += 1;
            Ok(())
        }
        fn key(&mut self, _: Key<'_>) -> Result<()> {
            Ok(())
        }
        fn scalar(&mut self, _: Scalar<'_>) -> Result<()> {
            self.0 += 1;
            Ok(())
        }
        fn close(&mut self) -> Result<()> {
            Ok(())
        }
        fn meta(&mut self, _: &str, _: &str) -> Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    node.visit(&mut count)?;
    Ok(count.0)
}

pub fn measure(bench: &Bench<'_>) -> Result<Found> {
    let items = bench.options.items;
    let store = stores::filled(bench.folder, Durability::None, Limits::DEFAULT, items)?;
    let all = store.datastores()?;
    let mut found = Found::default();
    found.claims.push(one_leaf(&all, items, &mut found.facts)?);
    found.claims.push(change_subscribers(&all, items)?);
    Ok(found)
}

fn subscribe(all: &Datastores, count: usize) -> Result<Vec<(Subscription, Arc<Counts>)>> {
    let one = |number: usize| {
        let counts = Arc::new(Counts::default());
        let options =
            SubscriberOptions::new(&format!("counts {number}")).timeout(Duration::from_secs(60));
        let counting = Counting(Arc::clone(&counts));
        Ok((all.before_commit(Datastore::Operational, "/cont", options, counting)?, counts))
    };
    (0..count).map(one).collect()
}

/// A leaf of `running`, seen through `operational`, with no, one and all subscribers in turn.
fn one_leaf(all: &Datastores, items: usize, facts: &mut Vec<String>) -> Result<Claim> {
    let mut times = [Vec::new(), Vec::new(), Vec::new()];
    let mut random = fastrand::Rng::with_seed(12);
    for block in 0..BLOCKS {
        for (count, times) in [0, 1, SUBSCRIBERS].into_iter().zip(&mut times) {
            let subscribers = subscribe(all, count)?;
            for commit in 0..COMMITS {
                let path = stores::leaf_path(random.usize(..items));
                let value = format!("{block} {count} {commit}").into();
                let begin = Instant::now();
                all.edit(Datastore::Running, |edit| edit.set(&path["/running".len()..], &value))?;
                times.push(begin.elapsed().as_secs_f64() * 1e6);
            }
            for (_, counts) in &subscribers {
                if counts.asked.load(Ordering::Relaxed) != COMMITS as u64 {
                    return Err(wrong("a subscriber"));
                }
            }
        }
    }
    let [none, one, twelve] = times.map(|times| median(&times).unwrap_or_default());
    facts.push(format!(
        "a commit of one leaf takes {none:.0} us, with one subscriber {one:.0}, with {SUBSCRIBERS} {twelve:.0}"
    ));
    let promise = "what twelve subscribers of operational state add to a commit of one leaf";
    let added = Claim::value(promise, "lmdb", Some(items), twelve - none, Unit::Microseconds);
    Ok(added.at_most(60.0))
}

/// Row 10 of the suite `datastore`.
fn change_subscribers(all: &Datastores, items: usize) -> Result<Claim> {
    all.edit(Datastore::Running, |edit| edit.set("/cont", &Value::map()))?;
    let subscribers = subscribe(all, SUBSCRIBERS)?;
    let pushed = all.push("items", None)?;
    let begin = Instant::now();
    for _ in 0..ROUNDS {
        pushed.edit(|edit| (0..items).try_for_each(|item| set_item(edit, item)))?;
        pushed.edit(|edit| edit.remove("/cont/lst"))?;
    }
    for (_, counts) in &subscribers {
        while counts.told.load(Ordering::Acquire) < 2 * ROUNDS {
            std::thread::yield_now();
        }
    }
    let took = begin.elapsed().as_secs_f64() * 1e6;
    // The map of all, and four nodes for each.
    let nodes = ROUNDS * (1 + 4 * items as u64);
    for (_, Counts { come, gone, .. }) in subscribers.iter().map(|(s, counts)| (s, &**counts)) {
        if [come, gone].map(|count| count.load(Ordering::Relaxed)) != [nodes, nodes] {
            return Err(Error::corrupted("a subscriber has not seen every change"));
        }
    }
    let promise = "ten times all items come and go, twelve subscribers count every change";
    let claim = Claim::value(promise, "lmdb", Some(items), took, Unit::Microseconds);
    Ok(claim.at_most(6_000_000.0))
}

/// Sets an item by the text of its path.
pub(super) fn set_item(edit: &mut spinney::layers::LayerEdit<'_, '_>, item: usize) -> Result<()> {
    let mut path = "/cont/lst/".to_owned();
    push_item_key(item, &mut path);
    let mut value = spinney::Map::new();
    value.insert("k1", item as i64);
    value.insert("k2", format!("str{item}"));
    value.insert("l", format!("l{item}"));
    edit.set(&path, &Value::Map(value))
}
