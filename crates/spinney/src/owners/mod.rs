//! Who holds something in a store that must not outlive it, and whether they still live.
//!
//! An `Owner` belongs to an open store, and is made when it first holds something. What it holds is
//! data in a reserved tree, such as `/.locks`, with the owner's `Record` in it, so other processes see
//! it. Whoever meets it asks `Owners::is_alive`, and treats what a dead owner has left as absent. What
//! is held is the business of others.

mod lease;
mod machine;
mod presence;
mod record;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use spinney_core::diff::{Op, Step};
use spinney_core::view::View;
use spinney_core::{Key, Result, Value};

use crate::Transaction;
use crate::store::{Store, now_ms};
use lease::Renewal;
use presence::{Byte, living};

pub use lease::LEASE;
pub(crate) use presence::{OwnersFile, Presence};
pub use record::OwnerId;
pub(crate) use record::Record;

/// The tree that holds the leases of owners that others may not be able to see, each under its id.
pub const TREE: &str = "/.owners";

/// The name of [`TREE`].
pub(crate) const NAME: &str = ".owners";

/// The owners of a store, as one handle of it sees them.
pub(crate) struct Owners {
    presence: Presence,
    /// For whom the handle writes besides itself.
    adopted: Option<OwnerId>,
    own: Mutex<Option<Arc<Owner>>>,
}

/// A handle that holds something.
pub(crate) struct Owner {
    pub record: Record,
    holdings: AtomicUsize,
    renewal: Option<Renewal>,
    /// Locked while it lives.
    _byte: Option<Byte>,
}

/// Keeps an owner's lease renewed for as long as it holds something.
pub(crate) struct Holding(Arc<Owner>);

impl Owners {
    pub fn new(presence: Presence, adopted: Option<OwnerId>) -> Owners {
        Owners { presence, adopted, own: Mutex::default() }
    }

    fn own(&self) -> MutexGuard<'_, Option<Arc<Owner>>> {
        self.own.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the handle writes for an owner.
    pub fn is_own(&self, id: OwnerId) -> bool {
        self.adopted == Some(id) || self.own().as_ref().is_some_and(|own| own.record.id == id)
    }

    /// Whether an owner that was met in a state lives.
    ///
    /// # Errors
    /// `Io` where the system does not tell; those of reading the state.
    pub fn is_alive(&self, owner: &Record, view: &View<'_>) -> Result<bool> {
        match self.presence.ask(owner)? {
            Some(is_alive) => Ok(is_alive),
            None => lease::runs(view, owner.id),
        }
    }
}

impl Owner {
    /// Notes that something is about to be held.
    pub fn holding(self: &Arc<Self>) -> Holding {
        self.holdings.fetch_add(1, Ordering::Relaxed);
        if let Some(renewal) = &self.renewal {
            renewal.start(self);
        }
        Holding(Arc::clone(self))
    }

    /// Whether others who cannot ask for its process still take it to live.
    ///
    /// # Errors
    /// Those of reading the state.
    pub fn is_heard_of(&self, view: &View<'_>) -> Result<bool> {
        match self.renewal {
            Some(_) => lease::runs(view, self.record.id),
            None => Ok(true),
        }
    }

    fn holds(&self) -> usize {
        self.holdings.load(Ordering::Relaxed)
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        living().remove(&self.record.id);
    }
}

impl Holding {
    pub fn owner(&self) -> &Owner {
        &self.0
    }

    /// What is to be in the commit that begins to hold something; paths begin at the store's root.
    ///
    /// # Errors
    /// Those of writing.
    pub fn begin(&self, transaction: &mut Transaction<'_>) -> Result<()> {
        match self.0.renewal {
            Some(_) => lease::extend(transaction, self.0.record.id),
            None => Ok(()),
        }
    }

    /// What is to be in the commit that gives it up.
    ///
    /// # Errors
    /// Those of writing.
    pub fn end(&self, transaction: &mut Transaction<'_>) -> Result<()> {
        match self.0.renewal {
            Some(_) if self.0.holds() == 1 => lease::end(transaction, self.0.record.id),
            _ => Ok(()),
        }
    }
}

impl Drop for Holding {
    fn drop(&mut self) {
        self.0.holdings.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Store {
    /// Who this handle is when it holds something.
    ///
    /// # Errors
    /// `ReadOnly` and `Io` when its life cannot be shown to others.
    pub(crate) fn owner(&self) -> Result<Arc<Owner>> {
        let owners = self.owners();
        let mut own = owners.own();
        if let Some(own) = &*own {
            return Ok(Arc::clone(own));
        }
        // Who may not write leaves no trace.
        drop(self.backend().write_guard(0)?);
        let (id, byte) = owners.presence.show()?;
        living().insert(id);
        let is_leased = owners.presence.is_leased();
        let record = Record::of_this_process(id, self.author(), now_ms(), is_leased);
        let renewal = is_leased.then(|| Renewal::new(self.downgrade()));
        let owner = Owner { record, holdings: AtomicUsize::new(0), renewal, _byte: byte };
        Ok(Arc::clone(own.insert(Arc::new(owner))))
    }
}

/// Removes what is known of a dead owner; paths begin at the store's root.
///
/// # Errors
/// Those of writing.
pub(crate) fn forget(transaction: &mut Transaction<'_>, id: OwnerId) -> Result<()> {
    lease::end(transaction, id)
}

/// The trees of what owners hold and of their leases, of what waits for its confirmation, and of who may do what: they
/// are of the store, not of its content, so they do not go along with copies, nor come and go with older states and
/// imports.
pub(crate) const RESERVED: &[&str] = &[
    crate::locks::NAME,
    NAME,
    crate::datastores::PUSHED_NAME,
    crate::datastores::UNCONFIRMED_NAME,
    crate::access::NAME,
];

/// The reserved tree that an operation is in.
pub(crate) fn reserved(op: &Op) -> Option<&'static str> {
    let Some(Step::Key(key)) = op.path.iter().next() else { return None };
    let name = Key::decode(key)?.text();
    RESERVED.iter().copied().find(|reserved| *reserved == name)
}

/// A member of an entry that is a number.
pub(crate) fn number_at(entry: &Value, path: &str) -> Option<u64> {
    match entry.pointer(path) {
        Some(Value::Number(number)) => number.as_u64(),
        _ => None,
    }
}
