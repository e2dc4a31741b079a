//! The scripts that the server runs: one for each kind of request, so that each is one round trip
//! and applies as a whole.

use std::sync::LazyLock;

/// A script, and the name by which the server finds one that it knows.
pub(super) struct Script {
    pub text: String,
    pub hash: String,
    /// Whether it may write; one that may not is run for who may only read, too.
    pub writes: bool,
}

/// What all scripts on records begin with.
const PRELUDE: &str = include_str!("prelude.lua");

/// How the server treats a script before it starts.
const ALWAYS: &str = "#!lua flags=allow-oom";
const UNLESS_FULL: &str = "#!lua";
const WITHOUT_WRITES: &str = "#!lua flags=no-writes";

macro_rules! scripts {
    ($($(#[$doc:meta])* $name:ident = $when:ident, $prelude:expr, $file:literal;)*) => {$(
        $(#[$doc])*
        pub(super) static $name: LazyLock<Script> = LazyLock::new(|| {
            let text = format!("{}\n{}{}", $when, $prelude, include_str!($file));
            let hash = redis::Script::new(&text).get_hash().to_owned();
            Script { text, hash, writes: $when != WITHOUT_WRITES }
        });
    )*};
}

scripts! {
    /// Makes the store, or tells what is there.
    OPEN = ALWAYS, "", "open.lua";
    /// Tells what is there.
    OPEN_EXISTING = WITHOUT_WRITES, "", "open.lua";
    /// Begins the numbers of states anew, far behind, after the server has started anew.
    BEGIN = ALWAYS, PRELUDE, "begin.lua";
    /// The newest state, and a lease on it.
    NEWEST = ALWAYS, PRELUDE, "newest.lua";
    /// As [`NEWEST`], without a lease, for a server that refuses writes, and who may only read.
    NEWEST_WITHOUT_LEASE = WITHOUT_WRITES, PRELUDE, "newest.lua";
    /// Records of a state.
    RANGE = ALWAYS, PRELUDE, "range.lua";
    /// As [`RANGE`], without renewing the lease, for those.
    RANGE_WITHOUT_LEASE = WITHOUT_WRITES, PRELUDE, "range.lua";
    /// Applies a batch.
    COMMIT = UNLESS_FULL, PRELUDE, "commit.lua";
    /// As [`COMMIT`], for a batch that makes room.
    COMMIT_MAKING_ROOM = ALWAYS, PRELUDE, "commit.lua";
    /// The trees of a store on a cluster.
    TREES = WITHOUT_WRITES, "", "trees.lua";
    /// Puts a tree among them.
    LIST = UNLESS_FULL, "", "list.lua";
    /// The lock of writers.
    LOCK = ALWAYS, PRELUDE, "lock.lua";
}
