//! What a subscriber is asked and told: one question at a time, and how each ended.
//!
//! It knows neither commits nor who asks.

use std::any::Any;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use spinney_core::Result;

use super::workers::{Workers, spin};
use super::{Answer, Ended, Proposal, Subscriber};

/// How long who asks waits for the subscriber to begin, before there is one more thread.
const PATIENCE: Duration = Duration::from_millis(1);

/// What became of a question.
pub enum Said {
    Answer(Answer),
    /// The subscriber panicked, or its process has no answer, and why.
    Failed(String),
    /// The time was up.
    Nothing,
    /// It is subscribed no more.
    Gone,
    /// Who asks is the subscriber itself.
    Itself,
}

/// What became of a question, and its number where the subscriber has begun with it: then it is to be
/// told how it ended, by [`Mailbox::end`].
pub struct Reply {
    pub said: Said,
    pub number: Option<u64>,
}

/// Between a subscriber and those who ask.
pub struct Mailbox {
    state: Mutex<State>,
    changed: Condvar,
    /// The number of the last question that was answered.
    answered: AtomicU64,
    /// Until it was told all ends after it was closed.
    subscriber: Mutex<Option<Box<dyn Subscriber>>>,
    workers: Arc<Workers>,
}

#[derive(Default)]
struct State {
    /// Somebody asks.
    is_asking: bool,
    /// The question, until the subscriber begins with it.
    question: Option<Proposal>,
    answer: Option<(u64, Said)>,
    /// The number of the last question.
    number: u64,
    /// What the subscriber has begun with and was not told the end of, in order; `None` where it is
    /// not known yet.
    begun: VecDeque<(u64, Option<Ended>)>,
    is_closed: bool,
    /// It was closed, and nothing comes any more.
    is_over: bool,
    /// It is to run, or runs.
    is_due: bool,
    /// The thread that it runs on.
    thread: Option<ThreadId>,
    /// Threads that wait for a change.
    waiting: usize,
}

enum Work {
    Ask(Proposal),
    Tell(u64, Ended),
    End,
}

impl State {
    /// What is to be done next.
    fn next(&mut self) -> Option<Work> {
        if self.begun.front().is_some_and(|begun| begun.1.is_some())
            && let Some((number, Some(ended))) = self.begun.pop_front()
        {
            return Some(Work::Tell(number, ended));
        }
        if self.is_closed {
            let ends = self.begun.is_empty() && !self.is_over;
            self.is_over |= ends;
            return ends.then_some(Work::End);
        }
        let question = self.question.take()?;
        self.begun.push_back((question.number, None));
        Some(Work::Ask(question))
    }

    fn has_next(&self) -> bool {
        match self.begun.front() {
            Some((_, Some(_))) => true,
            _ if !self.is_closed => self.question.is_some(),
            Some(_) => false,
            None => !self.is_over,
        }
    }
}

impl Mailbox {
    /// That of a subscriber, which is called on the threads of `workers`, on one at a time.
    ///
    /// # Errors
    /// `Io` when the system starts no thread.
    pub fn new(
        workers: &Arc<Workers>,
        name: &str,
        subscriber: Box<dyn Subscriber>,
    ) -> Result<Arc<Mailbox>> {
        workers.enter(name)?;
        Ok(Arc::new(Mailbox {
            state: Mutex::default(),
            changed: Condvar::new(),
            answered: AtomicU64::new(0),
            subscriber: Mutex::new(Some(subscriber)),
            workers: Arc::clone(workers),
        }))
    }

    /// Asks, and waits for the answer at most for a time.
    #[cfg(feature = "lmdb")]
    pub fn ask(self: &Arc<Self>, question: Proposal, timeout: Duration) -> Reply {
        let deadline = Instant::now() + timeout;
        match self.put(question, deadline) {
            Ok(number) => self.hear(number, deadline),
            Err(reply) => reply,
        }
    }

    /// Puts a question, whose answer is then to be [heard](Mailbox::hear); its number.
    ///
    /// # Errors
    /// What became of it, when it could not be put.
    pub fn put(
        self: &Arc<Self>,
        question: Proposal,
        deadline: Instant,
    ) -> std::result::Result<u64, Reply> {
        let mut state = self.state();
        if state.thread == Some(thread::current().id()) {
            return Err(Reply { said: Said::Itself, number: None });
        }
        while state.is_asking && !state.is_closed {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(Reply { said: Said::Nothing, number: None });
            }
            state = self.wait(state, left);
        }
        if state.is_closed {
            return Err(Reply { said: Said::Gone, number: None });
        }
        state.is_asking = true;
        state.number += 1;
        let number = state.number;
        state.question = Some(Proposal { number, ..question });
        self.run_soon(state);
        Ok(number)
    }

    /// Waits for the answer to a question that was put. What the subscriber has not begun with by then is withdrawn.
    pub fn hear(&self, number: u64, deadline: Instant) -> Reply {
        spin(|| self.answered.load(Ordering::Acquire) == number);
        let mut state = self.state();
        let said = loop {
            if let Some((_, said)) = state.answer.take_if(|answer| answer.0 == number) {
                break said;
            }
            if state.is_closed {
                break Said::Gone;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break Said::Nothing;
            }
            let has_begun = state.question.is_none();
            state = self.wait(state, if has_begun { left } else { left.min(PATIENCE) });
            // Another subscriber may keep the thread that would come to this one.
            if state.question.is_some() {
                self.workers.hasten();
            }
        };
        state.is_asking = false;
        let withdrawn = state.question.take();
        self.notify(state);
        Reply { said, number: withdrawn.is_none().then_some(number) }
    }

    /// Notes how the question of a number ended; the subscriber is told when it is idle.
    pub fn end(self: &Arc<Self>, number: u64, ended: Ended) {
        let mut state = self.state();
        if let Some(begun) = state.begun.iter_mut().find(|begun| begun.0 == number) {
            begun.1 = Some(ended);
        }
        self.run_soon(state);
    }

    /// Asks no more. The subscriber is dropped when it was told all ends.
    pub fn close(self: &Arc<Self>) {
        self.state().is_closed = true;
        self.changed.notify_all();
        self.run_soon(self.state());
    }

    fn run_soon(self: &Arc<Self>, mut state: MutexGuard<'_, State>) {
        if !state.is_due && state.has_next() {
            state.is_due = true;
            drop(state);
            self.workers.push(Arc::clone(self));
        }
    }

    /// Does what is due, on the present thread.
    pub fn run(&self) {
        let mut subscriber = self.subscriber.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(work) = self.next() {
            let Some(called) = subscriber.as_mut() else { return };
            match work {
                Work::Tell(number, ended) => {
                    let told = catch_unwind(AssertUnwindSafe(|| called.told(number, &ended)));
                    if let Err(panic) = told {
                        log::warn!(
                            "a subscriber that was told how a commit ended panicked: {}",
                            panic_text(&*panic)
                        );
                    }
                }
                Work::Ask(question) => {
                    let asked = catch_unwind(AssertUnwindSafe(|| called.asked(&question)));
                    let said = match asked {
                        Ok(answer) => Said::Answer(answer),
                        Err(panic) => Said::Failed(format!("it panicked: {}", panic_text(&*panic))),
                    };
                    let number = question.number;
                    // Its snapshots go before the commit goes on.
                    drop(question);
                    self.answer(number, said);
                }
                Work::End => {
                    *subscriber = None;
                    self.workers.leave();
                }
            }
        }
    }

    fn next(&self) -> Option<Work> {
        let mut state = self.state();
        let work = state.next();
        state.is_due = work.is_some();
        state.thread = state.is_due.then(|| thread::current().id());
        work
    }

    fn answer(&self, number: u64, said: Said) {
        let mut state = self.state();
        // Who has waited long enough has gone on.
        if state.is_asking && state.number == number {
            state.answer = Some((number, said));
            self.answered.store(number, Ordering::Release);
        }
        self.notify(state);
    }

    /// Waits for a change, at most for a time.
    fn wait<'s>(
        &'s self,
        mut state: MutexGuard<'s, State>,
        left: Duration,
    ) -> MutexGuard<'s, State> {
        state.waiting += 1;
        let waited = self.changed.wait_timeout(state, left);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        state.waiting -= 1;
        state
    }

    fn notify(&self, state: MutexGuard<'_, State>) {
        let is_awaited = state.waiting > 0;
        drop(state);
        if is_awaited {
            self.changed.notify_all();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "without a text".to_owned())
}
