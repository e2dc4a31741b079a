//! Who writes through a client: what it has seen of the store, and whether it keeps others away.
//!
//! It must not know what a batch holds, but for the head of tree 0, which every commit changes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, ThreadId};
use std::time::Instant;

use super::server::State;

/// The record of the head of tree 0; none in an empty store.
pub type Head = Option<Arc<[u8]>>;

/// A thread that writes, as long as it holds the guard.
#[derive(Clone)]
pub struct Writing {
    thread: ThreadId,
    /// How often other writers came first.
    pub conflicts: u32,
    /// The state that was guessed.
    pub guessed: Option<State>,
    /// The head that it saw when it began, or has put since. Nothing of its may follow another one: a
    /// commit changes it, and so does who begins to build ahead or ends what others have built.
    pub head: Option<Head>,
    /// Other clients are kept away until then.
    pub locked_until: Option<Instant>,
    /// The state that it looks at is not the newest, or not kept any longer.
    pub is_outdated: Arc<AtomicBool>,
}

impl Writing {
    /// This thread, which writes after so many conflicts.
    pub fn new(conflicts: u32) -> Writing {
        Writing {
            thread: thread::current().id(),
            conflicts,
            guessed: None,
            head: None,
            locked_until: None,
            is_outdated: Arc::default(),
        }
    }

    /// Whether this thread is the one.
    pub fn is_own(&self) -> bool {
        self.thread == thread::current().id()
    }

    /// Whether its looks may be guesses: its commit confirms them.
    pub fn may_guess(&self) -> bool {
        self.conflicts == 0
    }

    /// Another writer came first.
    pub fn outdate(&mut self) {
        self.is_outdated.store(true, Ordering::Release);
    }

    /// Whether it has to look again.
    pub fn is_outdated(&self) -> bool {
        self.is_outdated.load(Ordering::Acquire)
    }
}
