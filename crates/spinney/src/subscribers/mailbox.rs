//! The thread of a subscriber: one question at a time, and how each ended.
//!
//! It knows neither commits nor who asks.

use std::any::Any;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use spinney_core::Result;

use super::{Answer, Ended, Proposal, Subscriber};
use crate::os_error::os_error;

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

/// Between a subscriber's thread and those who ask.
pub struct Mailbox {
    state: Mutex<State>,
    changed: Condvar,
    thread: OnceLock<ThreadId>,
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
}

enum Work {
    Ask(Proposal),
    Tell(u64, Ended),
}

impl Mailbox {
    /// Starts the thread.
    ///
    /// # Errors
    /// `Io` when the system starts none.
    pub fn start(name: &str, subscriber: Box<dyn Subscriber>) -> Result<Arc<Mailbox>> {
        let (state, changed, thread) = (Mutex::default(), Condvar::new(), OnceLock::new());
        let mailbox = Arc::new(Mailbox { state, changed, thread });
        let own = Arc::clone(&mailbox);
        let thread = thread::Builder::new().name("spinney-subscriber".into());
        thread
            .spawn(move || own.work(subscriber))
            .map_err(|error| os_error(&format!("no thread for the subscriber `{name}`"), error))?;
        Ok(mailbox)
    }

    /// Asks, and waits for the answer at most for a time.
    pub fn ask(&self, question: Proposal, timeout: Duration) -> Reply {
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
    pub fn put(&self, question: Proposal, deadline: Instant) -> std::result::Result<u64, Reply> {
        if self.thread.get() == Some(&thread::current().id()) {
            return Err(Reply { said: Said::Itself, number: None });
        }
        let mut state = self.state();
        while state.is_asking && !state.is_closed {
            state = match self.wait(state, deadline) {
                Ok(state) => state,
                Err(_) => return Err(Reply { said: Said::Nothing, number: None }),
            };
        }
        if state.is_closed {
            return Err(Reply { said: Said::Gone, number: None });
        }
        state.is_asking = true;
        state.number += 1;
        let number = state.number;
        state.question = Some(Proposal { number, ..question });
        self.changed.notify_all();
        Ok(number)
    }

    /// Waits for the answer to a question that was put. What the subscriber has not begun with by then is withdrawn.
    pub fn hear(&self, number: u64, deadline: Instant) -> Reply {
        let mut state = self.state();
        let mut said = None;
        while said.is_none() {
            if let Some((_, answer)) = state.answer.take_if(|answer| answer.0 == number) {
                said = Some(answer);
            } else if state.is_closed {
                said = Some(Said::Gone);
            } else {
                match self.wait(state, deadline) {
                    Ok(woken) => state = woken,
                    Err(woken) => {
                        state = woken;
                        let answer = state.answer.take_if(|answer| answer.0 == number);
                        said = Some(answer.map_or(Said::Nothing, |(_, said)| said));
                    }
                }
            }
        }
        state.is_asking = false;
        let withdrawn = state.question.take();
        drop(state);
        self.changed.notify_all();
        let number = withdrawn.is_none().then_some(number);
        Reply { said: said.expect("the loop has ended"), number }
    }

    /// Notes how the question of a number ended; the subscriber is told when it is idle.
    pub fn end(&self, number: u64, ended: Ended) {
        let mut state = self.state();
        if let Some(begun) = state.begun.iter_mut().find(|begun| begun.0 == number) {
            begun.1 = Some(ended);
        }
        drop(state);
        self.changed.notify_all();
    }

    /// Asks no more. The thread ends when the subscriber was told all ends.
    pub fn close(&self) {
        self.state().is_closed = true;
        self.changed.notify_all();
    }

    fn work(&self, mut subscriber: Box<dyn Subscriber>) {
        self.thread.get_or_init(|| thread::current().id());
        while let Some(work) = self.next() {
            match work {
                Work::Tell(number, ended) => {
                    let told = catch_unwind(AssertUnwindSafe(|| subscriber.told(number, &ended)));
                    if let Err(panic) = told {
                        log::warn!(
                            "a subscriber that was told how a commit ended panicked: {}",
                            panic_text(&*panic)
                        );
                    }
                }
                Work::Ask(question) => {
                    let asked = catch_unwind(AssertUnwindSafe(|| subscriber.asked(&question)));
                    let said = match asked {
                        Ok(answer) => Said::Answer(answer),
                        Err(panic) => Said::Failed(format!("it panicked: {}", panic_text(&*panic))),
                    };
                    let number = question.number;
                    // Its snapshots go before the commit goes on.
                    drop(question);
                    self.answer(number, said);
                }
            }
        }
    }

    fn next(&self) -> Option<Work> {
        let mut state = self.state();
        loop {
            if state.begun.front().is_some_and(|begun| begun.1.is_some())
                && let Some((number, Some(ended))) = state.begun.pop_front()
            {
                return Some(Work::Tell(number, ended));
            }
            if state.is_closed && state.begun.is_empty() {
                return None;
            }
            if !state.is_closed
                && let Some(question) = state.question.take()
            {
                state.begun.push_back((question.number, None));
                return Some(Work::Ask(question));
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn answer(&self, number: u64, said: Said) {
        let mut state = self.state();
        // Who has waited long enough has gone on.
        if state.is_asking && state.number == number {
            state.answer = Some((number, said));
        }
        drop(state);
        self.changed.notify_all();
    }

    /// Waits for a change; `Err` when the time is up.
    fn wait<'s>(
        &'s self,
        state: MutexGuard<'s, State>,
        deadline: Instant,
    ) -> std::result::Result<MutexGuard<'s, State>, MutexGuard<'s, State>> {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(state);
        }
        let waited = self.changed.wait_timeout(state, left);
        Ok(waited.unwrap_or_else(PoisonError::into_inner).0)
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
