//! A store for trees: JSON documents and configuration, where the cost of every operation follows
//! the size of the change.
//!
//! [`open`] a store by its URL, [`Store::read`] a snapshot, [`Store::write`] a transaction. What is
//! not here: the command line (`spinney-cli`) and measurements (`spinney-lab`).
//!
//! ```
//! let store = spinney::open("memory:")?;
//! store.write(|tx| tx.set("/people/42/name", &"Ada".into()))?;
//! let name = store.read()?.get("/people/42/name")?;
//! assert_eq!(name, Some("Ada".into()));
//! # Ok::<(), spinney::Error>(())
//! ```

pub mod access;
pub mod backends;
pub mod condition;
pub mod copy;
pub mod datastores;
pub mod feed;
mod file_scratch;
mod file_system;
pub mod forest;
pub mod formats;
pub mod hash;
mod janitor;
pub mod journal;
pub mod layers;
pub mod locks;
pub mod network;
mod os_error;
pub mod owners;
#[cfg(feature = "query")]
pub mod query;
pub mod salvage;
#[cfg(feature = "schema")]
pub mod schemas;
pub mod snapshot;
pub mod store;
mod store_limits;
pub mod subscribers;
mod tree_cache;
pub mod undo;

pub use condition::{Expect, Expected};
pub use hash::ValueHash;
pub use locks::{Lock, LockInfo, LockOptions};
pub use owners::OwnerId;
pub use snapshot::{Member, Snapshot};
pub use spinney_core::node::NodeKind;
pub use spinney_core::transaction::{Commit, Existing, Receiver, Transaction};
pub use spinney_core::*;
pub use store::{Committed, Durability, OpenOptions, Store, open};
pub use store_limits::Limits;
pub use subscribers::{Answer, Edit, Ended, Proposal, Subscriber, SubscriberOptions, Subscription};
