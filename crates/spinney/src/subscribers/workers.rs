//! The threads on which subscribers are called: as few as get on with it.
//!
//! To wake a thread takes longer than most calls. So one thread does what is due for all subscribers, and looks for
//! more for a moment before it sleeps. Who waits behind a long call [hastens](Workers::hasten); where nobody
//! waits, a spare thread sees within [`WATCH`] that nothing gets on. It must not know what is called.

use std::collections::VecDeque;
use std::hint;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use spinney_core::Result;

use super::mailbox::Mailbox;
use crate::os_error::os_error;

/// How often a spare thread looks whether what is due gets on, while there is something.
const WATCH: Duration = Duration::from_millis(50);

/// How many threads sleep while there are subscribers: one for what comes, and one to watch it.
const SPARE: usize = 2;

/// The threads of a store's subscribers.
#[derive(Default)]
pub struct Workers {
    state: Mutex<State>,
    /// How much is due, for a look without the lock.
    due: AtomicUsize,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    due: VecDeque<Arc<Mailbox>>,
    /// How often something due was taken.
    taken: u64,
    /// Subscribers.
    members: usize,
    threads: usize,
    /// The threads that sleep, and how many of them were woken.
    asleep: usize,
    woken: usize,
    /// Those that sleep look up now and then.
    is_watched: bool,
}

impl Workers {
    /// Counts a subscriber, whose mailbox is then to be [pushed](Workers::push) when something is due.
    ///
    /// # Errors
    /// `Io` when the system starts no thread.
    pub fn enter(self: &Arc<Self>, name: &str) -> Result<()> {
        let mut state = self.state();
        while state.threads < SPARE {
            self.spawn(&mut state).map_err(|error| {
                os_error(&format!("no thread for the subscriber `{name}`"), error)
            })?;
        }
        state.members += 1;
        Ok(())
    }

    /// Takes back [`Workers::enter`]: nothing is due for that subscriber any more.
    pub fn leave(&self) {
        let mut state = self.state();
        state.members -= 1;
        if state.members == 0 {
            self.changed.notify_all();
        }
    }

    /// Has a mailbox run soon.
    pub fn push(self: &Arc<Self>, mailbox: Arc<Mailbox>) {
        let mut state = self.state();
        state.due.push_back(mailbox);
        self.due.store(state.due.len(), Ordering::Relaxed);
        // Those who are awake may be held up for longer than anybody has watched.
        if state.threads == state.asleep - state.woken || !state.is_watched {
            self.wake(&mut state);
        }
    }

    /// Has one more thread take what is due, if there is something.
    pub fn hasten(self: &Arc<Self>) {
        let mut state = self.state();
        if !state.due.is_empty() {
            self.wake(&mut state);
        }
    }

    /// Wakes a thread that sleeps, or starts one.
    fn wake(self: &Arc<Self>, state: &mut State) {
        if state.woken < state.asleep {
            state.woken += 1;
            self.changed.notify_one();
        } else if state.threads < state.members + SPARE
            && let Err(error) = self.spawn(state)
        {
            // Those that there are will come to it.
            log::warn!("no further thread for subscribers: {error}");
        }
    }

    fn spawn(self: &Arc<Self>, state: &mut State) -> std::io::Result<()> {
        let own = Arc::clone(self);
        let thread = thread::Builder::new().name("spinney-subscriber".into());
        thread.spawn(move || own.work())?;
        state.threads += 1;
        Ok(())
    }

    fn work(self: Arc<Self>) {
        let mut state = self.state();
        loop {
            if let Some(mailbox) = state.due.pop_front() {
                self.due.store(state.due.len(), Ordering::Relaxed);
                state.taken += 1;
                let was_watched = std::mem::replace(&mut state.is_watched, true);
                if state.asleep == state.woken || !was_watched {
                    self.wake(&mut state);
                }
                drop(state);
                mailbox.run();
                drop(mailbox);
                spin(|| self.due.load(Ordering::Relaxed) > 0);
                state = self.state();
            } else if state.members == 0 || state.asleep >= SPARE {
                state.threads -= 1;
                return;
            } else {
                state = self.sleep(state);
            }
        }
    }

    /// Sleeps until it is woken or, while there is something to watch, until nothing was taken for a while.
    fn sleep<'s>(&'s self, mut state: MutexGuard<'s, State>) -> MutexGuard<'s, State> {
        state.asleep += 1;
        while state.is_watched {
            let taken = state.taken;
            let waited = self.changed.wait_timeout(state, WATCH);
            let (woken, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
            state = woken;
            if !timeout.timed_out() || state.taken == taken {
                state.is_watched = state.taken != taken || !state.due.is_empty();
                return awake(state);
            }
        }
        awake(self.changed.wait(state).unwrap_or_else(PoisonError::into_inner))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn awake(mut state: MutexGuard<'_, State>) -> MutexGuard<'_, State> {
    state.asleep -= 1;
    state.woken = state.woken.saturating_sub(1);
    state
}

/// Looks for something that is about to come, without sleeping, for about as long as waking up takes; whether it
/// came.
pub fn spin(came: impl Fn() -> bool) -> bool {
    const SPIN: Duration = Duration::from_micros(50);
    static HELPS: LazyLock<bool> =
        LazyLock::new(|| thread::available_parallelism().is_ok_and(|cores| cores.get() > 1));
    let begin = HELPS.then(Instant::now);
    while let Some(begin) = begin
        && begin.elapsed() < SPIN
    {
        for _ in 0..16 {
            if came() {
                return true;
            }
            hint::spin_loop();
        }
        // What it waits for may need this very core.
        thread::yield_now();
    }
    came()
}
