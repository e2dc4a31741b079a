//! Leases: for how long an owner lives in the eyes of those who cannot ask for its process.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread;
use std::time::Duration;

use spinney_core::view::View;
use spinney_core::{Result, Value};

use super::{Owner, OwnerId, TREE, number_at};
use crate::Transaction;
use crate::store::{Durability, WeakStore, now_ms};

/// How long an owner is taken to live after it was last heard of. It is heard of three times as often.
pub const LEASE: Duration = Duration::from_secs(30);

/// Extends the lease of an owner; paths begin at the store's root.
pub fn extend(transaction: &mut Transaction<'_>, id: OwnerId) -> Result<()> {
    let until = now_ms() + LEASE.as_millis() as u64;
    transaction.set(&format!("{TREE}/{id}/until"), &until.into())
}

/// Gives the lease of an owner up, if it has one.
pub fn end(transaction: &mut Transaction<'_>, id: OwnerId) -> Result<()> {
    transaction.remove(&format!("{TREE}/{id}")).map(drop)
}

/// Whether the lease of an owner runs in a state.
pub fn runs(view: &View<'_>, id: OwnerId) -> Result<bool> {
    let Some(slot) = view.resolve(&format!("{TREE}/{id}"))? else { return Ok(false) };
    let mut builder = spinney_core::value::ValueBuilder::default();
    view.walk(&slot, &mut builder)?;
    let lease = builder.finish().unwrap_or(Value::Null);
    Ok(number_at(&lease, "/until").is_some_and(|until| until > now_ms()))
}

/// The thread that renews the lease of an owner while it holds something. It starts when it first does,
/// and stops with the store.
pub struct Renewal {
    store: WeakStore,
    /// Dropped to stop the thread.
    stop: Mutex<Option<Sender<()>>>,
    started: AtomicBool,
}

impl Renewal {
    pub fn new(store: WeakStore) -> Renewal {
        Renewal { store, stop: Mutex::default(), started: AtomicBool::new(false) }
    }

    /// Renews the lease of this owner from now on.
    pub fn start(&self, owner: &Arc<Owner>) {
        if self.started.swap(true, Ordering::Relaxed) {
            return;
        }
        let (stop, stopped) = channel();
        let (store, owner) = (self.store.clone(), Arc::downgrade(owner));
        let renew = move || {
            while stopped.recv_timeout(LEASE / 3) == Err(RecvTimeoutError::Timeout) {
                renew(&store, &owner);
            }
        };
        let thread = thread::Builder::new().name("spinney-lease".into());
        match thread.spawn(renew) {
            Ok(_) => *self.stop.lock().unwrap_or_else(PoisonError::into_inner) = Some(stop),
            // Others see what it holds until its first lease has run out.
            Err(error) => {
                log::warn!("no thread renews leases, so locks are lost after {LEASE:?}: {error}")
            }
        }
    }
}

fn renew(store: &WeakStore, owner: &Weak<Owner>) {
    let (Some(store), Some(owner)) = (store.upgrade(), owner.upgrade()) else { return };
    if owner.holds() == 0 {
        return;
    }
    let id = owner.record.id;
    let extended = store.write_with(Durability::Process, |transaction| {
        transaction.set_message("renew the lease of an owner")?;
        // It may have given up what it held meanwhile, or be taken for dead.
        transaction.at_root(|transaction| match transaction.exists(&format!("{TREE}/{id}"))? {
            true => extend(transaction, id),
            false => Ok(()),
        })
    });
    if let Err(error) = extended {
        log::warn!("the lease of what is held here was not renewed: {error}");
    }
}
