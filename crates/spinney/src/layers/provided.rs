//! Layers that programs make when they are read: nothing of them is stored.

use std::cell::OnceCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use spinney_core::read::Reached;
use spinney_core::{Error, ErrorKind, Map, Path, Result, Value, path};

use super::{Stack, check_name, name_taken, overlaps};
use crate::os_error::os_error;
use crate::subscribers::TIMEOUT_MAX;

/// Makes what is at its path of a stack, whenever somebody reads it.
///
/// It runs on a thread of its own, one reader after the other. It must not read what it provides:
/// that would wait for itself.
///
/// A closure `FnMut() -> Result<Option<Value>>` is one.
pub trait Provider: Send {
    /// What is there now; `None` for nothing.
    ///
    /// # Errors
    /// Whatever keeps it from knowing: the reader then gets this error, with the provider's name and path.
    fn provided(&mut self) -> Result<Option<Value>>;
}

impl<F: FnMut() -> Result<Option<Value>> + Send> Provider for F {
    fn provided(&mut self) -> Result<Option<Value>> {
        self()
    }
}

/// How one provider is asked.
pub(crate) struct Source {
    pub name: String,
    path: Path,
    timeout: Duration,
    asks: SyncSender<Ask>,
    thread: ThreadId,
}

/// A question: where the answer goes, and until when somebody waits for it.
struct Ask {
    answer: SyncSender<Result<Option<Value>>>,
    deadline: Instant,
}

/// How many readers may wait for one provider without being kept from asking.
const QUEUE_LEN: usize = 64;

impl Stack {
    /// The same under a layer that a program makes whenever somebody reads what is at a path, below it or above it:
    /// once for each state that is read, and only when a read leads there. It may be part of a map that other layers
    /// have, too, and it is in no commit: feeds, subscribers and writes do not see it.
    ///
    /// A reader that gets no answer within the timeout fails with `Busy`, which names the provider; so does one whose
    /// provider panics.
    ///
    /// # Errors
    /// `InvalidInput` for a malformed path, a name that no layer can have or another one has, and a timeout of nothing
    /// or above [`TIMEOUT_MAX`]; `Io` when no thread starts.
    pub fn provide(
        mut self,
        name: &str,
        path: &str,
        timeout: Duration,
        provider: impl Provider + 'static,
    ) -> Result<Stack> {
        let layers = self.layers.iter().map(|layer| &layer.name);
        let mut names = layers.chain(self.provided.iter().map(|source| &source.name));
        if names.any(|taken| taken == name) {
            return Err(name_taken(name));
        }
        self.provided.insert(0, Source::start(name, path, timeout, provider)?);
        Ok(self)
    }
}

/// Answers until nobody can ask any more.
fn work(asked: &Receiver<Ask>, mut provider: impl Provider) {
    for Ask { answer, deadline } in asked {
        // Who has waited long enough has gone on.
        if Instant::now() >= deadline {
            continue;
        }
        let made = catch_unwind(AssertUnwindSafe(|| provider.provided()));
        let made = made.unwrap_or_else(|_| Err(Error::new(ErrorKind::Busy, "it panicked")));
        let _ = answer.send(made);
    }
}

impl Source {
    /// Starts a provider's thread.
    ///
    /// # Errors
    /// As [`Stack::provide`].
    pub fn start(
        name: &str,
        path: &str,
        timeout: Duration,
        provider: impl Provider + 'static,
    ) -> Result<Arc<Source>> {
        check_name(name)?;
        let path = Path::parse(path)?;
        if timeout.is_zero() || timeout > TIMEOUT_MAX {
            return Err(Error::invalid_input(format!(
                "the provider `{name}` has a timeout of {timeout:?}; it must be above 0 and at most {TIMEOUT_MAX:?}"
            )));
        }
        let (asks, asked) = mpsc::sync_channel(QUEUE_LEN);
        let started = thread::Builder::new().name("spinney-provider".into());
        let started = started
            .spawn(move || work(&asked, provider))
            .map_err(|error| os_error(&format!("no thread for the provider `{name}`"), error))?;
        let thread = started.thread().id();
        Ok(Arc::new(Source { name: name.to_owned(), path, timeout, asks, thread }))
    }

    /// Whether this is the provider's own thread.
    pub fn is_own_thread(&self) -> bool {
        self.thread == thread::current().id()
    }

    fn ask(&self) -> Result<Option<Value>> {
        let deadline = Instant::now() + self.timeout;
        let (answer, answered) = mpsc::sync_channel(1);
        let late = || {
            let text = format!("it did not answer within {:?}", self.timeout);
            Err(Error::new(ErrorKind::Busy, text))
        };
        let made = match self.asks.try_send(Ask { answer, deadline }) {
            Err(_) => late(),
            Ok(()) => answered.recv_timeout(self.timeout).unwrap_or_else(|_| late()),
        };
        made.map_err(|error| {
            error.at(format_args!("provider `{}` of {}", self.name, path::Display(&self.path)))
        })
    }
}

/// What a provider answers to the readers of one state.
pub(crate) struct Provided {
    pub source: Arc<Source>,
    /// The answer within the maps that lead there.
    tree: OnceCell<Option<Value>>,
}

impl Provided {
    /// Nobody has been asked yet.
    pub fn of(source: Arc<Source>) -> Provided {
        Provided { source, tree: OnceCell::new() }
    }

    /// The root of what is provided; `None` when it is nothing, or nothing that a read of a checked path comes by.
    pub fn root(&self, path: &str) -> Result<Option<Reached<'_>>> {
        let own = &*self.source.path;
        if !overlaps(path, own) {
            return Ok(None);
        }
        if self.tree.get().is_none() {
            let mut tree = self.source.ask()?;
            let segments: Vec<_> = path::segments(own).collect();
            for segment in segments.iter().rev() {
                tree = tree.map(|value| {
                    let mut map = Map::new();
                    map.insert(segment, value);
                    Value::Map(map)
                });
            }
            let _ = self.tree.set(tree);
        }
        Ok(self.tree.get().and_then(Option::as_ref).map(Reached::Value))
    }
}
