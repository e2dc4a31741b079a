//! Figures of a store in MongoDB.

use std::thread;
use std::time::Duration;

use super::open;
use crate::servers::mongodb::MongoServer;

/// What one commit writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// Records that it changes.
    pub records: usize,
    /// Documents that are there afterwards and were not before.
    pub documents: usize,
}

/// Counts the documents of a commit of one leaf among `leaves`.
///
/// # Panics
/// When a commit fails.
pub fn documents_of_a_commit(server: &MongoServer, leaves: usize) -> Written {
    let store = open(&server.url("documents"));
    let fill = |tx: &mut spinney::Transaction<'_>| {
        (0..leaves).try_for_each(|i| tx.set(&format!("/t/{i:06}"), &"before".into()))
    };
    store.write(fill).expect("write");
    store.write(|tx| tx.set("/t/000100", &"once".into())).expect("write");
    let before = settled(server);
    store.write(|tx| tx.set("/t/000101", &"twice".into())).expect("write");
    let after = settled(server);
    assert_eq!(after.state, before.state + 1);
    Written { records: after.records, documents: after.documents - before.documents }
}

/// A state whose pages are all in place.
struct Settled {
    state: i64,
    records: usize,
    documents: usize,
}

fn settled(server: &MongoServer) -> Settled {
    loop {
        let (commits, pages) =
            (server.documents("documents.commits"), server.documents("documents.pages"));
        let newest = commits.last().expect("a commit");
        let keys = |field| newest.get_array(field).expect("an array").len();
        let (records, state) = (keys("put") + keys("deleted"), newest.get_i64("_id").expect("_id"));
        let applied = pages.iter().filter(|page| page.get_i64("state").ok() == Some(state)).count();
        if applied == records {
            return Settled { state, records, documents: commits.len() + pages.len() };
        }
        thread::sleep(Duration::from_millis(5));
    }
}
