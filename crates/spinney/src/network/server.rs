//! The contract of a server that keeps the records of a store: what an adapter of Redis or MongoDB
//! must do, and all it has to.
//!
//! A store's batches are numbered: each makes the next [`State`], maintenance too, which changes no
//! revision. A server keeps what it replaced as long as a lease on an older state needs it, so a
//! reader sees one state however many commits come in between.

use std::sync::Arc;
use std::time::Duration;

use spinney_core::backend::{Batch, Bounds, Capabilities, Direction, RecordKey};
use spinney_core::{Error, Result};

/// Numbers the states of a store on a server: 0 is the empty one, and each batch makes the next.
pub type State = u64;

/// Names a lease; no other client of the store has the same.
pub type LeaseId = u64;

/// Why a server did not do what it was asked.
#[derive(Debug)]
pub enum Failure {
    /// It was not done: no server was reached, or the one that was could not just then. It may be sent
    /// again.
    Undone(Error),
    /// The connection was lost or the time was up: whether it was done is not known. Every request
    /// may be sent again as it is.
    Lost(Error),
    /// The server holds a state no longer: it was asked for without a lease, or the lease has ended.
    Expired,
    /// Anything else; asking again would not help.
    Refused(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Refused(error)
    }
}

impl Failure {
    /// The same of a request that had not been sent yet.
    pub fn unsent(self) -> Failure {
        match self {
            Failure::Lost(error) => Failure::Undone(error),
            other => other,
        }
    }
}

/// What a server answers.
pub type Reply<T> = std::result::Result<T, Failure>;

/// What a client learns of the newest state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Newest {
    /// Its number.
    pub state: State,
    /// The value of the record that holds the store's revision ([`spinney_core::layout::head_key`]
    /// of tree 0), so that a client learns the revision without asking once more.
    pub head: Option<Arc<[u8]>>,
    /// The keys that were put or deleted after the state that the client knew; `None` when they are
    /// too many or not known any more, so that the client forgets everything it knew.
    pub changed: Option<Vec<RecordKey>>,
}

/// The state to read, and the lease that keeps it.
#[derive(Clone, Copy, Debug)]
pub struct View {
    /// Its number.
    pub state: State,
    /// The lease under which it was opened; `None` reads it only as long as it is the newest.
    pub lease: Option<LeaseId>,
}

/// A key and its value.
pub type Record = (RecordKey, Arc<[u8]>);

/// How much of a range is wanted at once.
#[derive(Clone, Copy, Debug)]
pub struct Limit {
    /// Records; at least 1.
    pub records: usize,
    /// Bytes of keys and values after which no further record is added; the first one always is.
    pub bytes: usize,
}

/// The end of what is known after a record or key: no other record lies before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Until {
    /// The key of the next record, or any key up to which there is none.
    Key(RecordKey),
    /// There is no record after it.
    End,
}

/// The last record at or before a key.
#[derive(Clone, Debug)]
pub struct Floor {
    /// It; `None` when there is none between the lower bound and the key.
    pub record: Option<Record>,
    /// The first key after the one asked for that a record has, as far as it was easy to tell; at
    /// the least the key asked for with a zero byte behind it.
    pub until: Until,
}

/// A part of a range: what follows each other in the direction asked for.
#[derive(Clone, Debug, Default)]
pub struct Stretch {
    /// The records.
    pub records: Vec<Record>,
    /// Whether the range holds more than these.
    pub more: bool,
}

/// What became of a batch.
#[derive(Clone, Debug)]
pub enum Answer {
    /// It made this state, now or when it was sent before.
    Committed(State),
    /// The newest state is not the one that the batch was made for; nothing has changed.
    Moved,
    /// Another client holds the lock of writers; nothing has changed.
    Locked,
}

/// A server that keeps a store's records.
///
/// Every request is idempotent, so that one whose answer was lost can be sent again. An adapter
/// opens connections as it needs them, gives up on an answer after its timeout, and never shows a
/// password.
pub trait Server: Send + Sync {
    /// What the store can do on this server.
    fn capabilities(&self) -> &Capabilities;

    /// Names the sequence of commits; made once, when the store is.
    fn store_id(&self) -> String;

    /// The newest state, to be kept under `lease` until it is released, or has not been read under for
    /// the lease's time (60 seconds, unless the store was opened with another). `known` is the state
    /// that the client's cache is of; 0 when it knows nothing, so that it need not be told what has changed. Leases in `released` end.
    fn newest(&self, known: State, lease: Option<LeaseId>, released: &[LeaseId]) -> Reply<Newest>;

    /// The last record of a state whose key is at least `lower` and at most `key`.
    fn floor(&self, view: View, lower: &[u8], key: &[u8]) -> Reply<Floor>;

    /// The first records of a range of a state.
    fn range(
        &self,
        view: View,
        bounds: Bounds<'_>,
        direction: Direction,
        limit: Limit,
    ) -> Reply<Stretch>;

    /// Applies a batch if the newest state is `base`; any, when that is `None`, as it is for
    /// maintenance. Atomically, in one round trip, and only once for each commit id, which is looked
    /// for first. Answers when the batch is as durable as [`Server::durable`] can promise. Leases in
    /// `released` end, whatever becomes of the batch.
    fn commit(&self, base: Option<State>, batch: &Batch, released: &[LeaseId]) -> Reply<Answer>;

    /// Keeps the commits of other clients away, maintenance excepted, until [`Server::unlock`] or for
    /// `duration`; `false` when another client does already.
    fn lock(&self, duration: Duration) -> Reply<bool>;

    /// Ends the lock if this client holds it.
    fn unlock(&self) -> Reply<()>;

    /// Ends leases, for a client that will ask and commit no more.
    fn release(&self, leases: &[LeaseId]) -> Reply<()> {
        self.newest(0, None, leases).map(drop)
    }

    /// Whether a commit that is answered survives a power failure of the server.
    ///
    /// # Errors
    /// `Unsupported`, saying which setting of the server stands against it and what to do.
    fn durable(&self) -> Result<()>;

    /// Returns when there may be a newer state than `known`, at the latest when the time is up.
    fn await_newer(&self, known: State, timeout: Duration) -> Reply<()>;

    /// Bytes that the store takes on the server; `None` where only reading everything would tell.
    fn len_bytes(&self) -> Reply<Option<u64>> {
        Ok(None)
    }

    /// Facts for `stats`, as pairs of name and value.
    fn stats(&self) -> Reply<Vec<(String, String)>>;
}
