//! Answering what other processes ask a subscriber of this one.

use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use spinney_core::backend::{Backend, Revision};
use spinney_core::history::History;
use spinney_core::{Error, Result};

use super::mailbox::{Mailbox, Reply, Said};
use super::parties::Terms;
use super::registry::Registration;
use super::wire::{self, Question, Timed, read_frame, write_frame};
use super::{Answer, Ended, Proposal};
use crate::os_error::os_error;
use crate::snapshot::{Origin, Snapshot};

/// Questions that are open at once; who asks beyond them is not answered.
const OPEN_MAX: usize = 64;

/// What answers for a subscriber.
pub struct Server {
    pub backend: Arc<dyn Backend>,
    pub origin: Arc<Origin>,
    pub mailbox: Arc<Mailbox>,
    /// What it is asked about: the store, or the tree that layers are read as.
    pub terms: Terms,
    pub open: AtomicUsize,
}

impl Server {
    /// Answers on threads of its own until the listener is shut down.
    ///
    /// # Errors
    /// `Io` when the system starts no thread.
    pub fn start(self: Arc<Self>, listener: UnixListener) -> Result<()> {
        let thread = thread::Builder::new().name("spinney-required".into());
        let serving = thread.spawn(move || {
            while let Some(stream) = Registration::accept(&listener) {
                if self.open.fetch_add(1, Ordering::Relaxed) < OPEN_MAX {
                    let server = Arc::clone(&self);
                    let thread = thread::Builder::new().name("spinney-question".into());
                    if thread.spawn(move || server.answer_and_count(&stream)).is_ok() {
                        continue;
                    }
                }
                self.open.fetch_sub(1, Ordering::Relaxed);
            }
        });
        serving.map(drop).map_err(|error| os_error("no thread for a required subscriber", error))
    }

    fn answer_and_count(&self, stream: &UnixStream) {
        self.answer(stream);
        self.open.fetch_sub(1, Ordering::Relaxed);
    }

    /// One question, from the first word to how it ended. Whatever goes wrong, the other side sees
    /// the end of the stream.
    fn answer(&self, stream: &UnixStream) {
        let until = || Timed::new(stream, Instant::now() + self.terms.options.timeout);
        let Some(question) = read_frame(until()).ok().and_then(|bytes| Question::decode(&bytes))
        else {
            return;
        };
        let (base, commit_id) = (question.base, question.entry.note.commit_id);
        let proposal = match self.proposal(question) {
            Ok(Some(proposal)) => self.concerning(proposal),
            // Who asked has gone on long ago.
            Ok(None) => return,
            Err(error) => Err(error),
        };
        let Reply { said, number } = match proposal {
            Ok(Some(proposal)) => self.mailbox.ask(proposal, self.terms.options.timeout),
            Ok(None) => Reply { said: Said::Answer(Answer::Pass), number: None },
            Err(error) => Reply { said: Said::Failed(error.to_string()), number: None },
        };
        let answered = write_frame(until(), &wire::encode_said(&said));
        let Some(number) = number else { return };
        let told = answered.ok().and_then(|()| {
            // It takes what the commit takes; if that process dies, the stream ends.
            stream.set_read_timeout(None).ok()?;
            wire::decode_ended(&read_frame(stream).ok()?)
        });
        self.mailbox.end(number, told.unwrap_or_else(|| self.look(base, commit_id)));
    }

    /// `None` when the store is not at the revision that the commit rests on.
    fn proposal(&self, question: Question) -> Result<Option<Proposal>> {
        let Question { base, entry, staged } = question;
        let (before, below) = (self.backend.snapshot()?, self.backend.snapshot()?);
        if before.revision()? != base || below.revision()? != base {
            return Ok(None);
        }
        let snapshot = |records| Snapshot::new(records, Arc::clone(&self.origin));
        Ok(Some(Proposal {
            number: 0,
            base,
            note: entry.note,
            diff: entry.diff,
            before: snapshot(before),
            after: snapshot(Box::new(staged.over(below))),
        }))
    }

    /// What of a commit concerns the subscriber; other processes do not know which layers that depends on.
    fn concerning(&self, proposal: Proposal) -> Result<Option<Proposal>> {
        let Some(stack) = &self.terms.stack else { return Ok(Some(proposal)) };
        let (before, after) = (proposal.before.view(), proposal.after.view());
        let moved = stack.moved(&proposal.diff, before, after)?;
        proposal.of_layers(&moved, &self.terms.segments)
    }

    /// How a commit ended whose process has not told.
    fn look(&self, base: Revision, commit_id: u128) -> Ended {
        let logged = || {
            let snapshot = self.backend.snapshot()?;
            let logged = History::of(&*snapshot).since(base + 1)?.next().transpose()?;
            Ok(logged.is_some_and(|logged| {
                (logged.revision, logged.entry.note.commit_id) == (base + 1, commit_id)
            }))
        };
        match logged() {
            Ok(true) => Ended::Committed(base + 1),
            Ok(false) => Ended::GivenUp("the process that asked has ended".to_owned()),
            Err(error) => {
                let error: Error = error;
                Ended::GivenUp(format!("the process that asked has ended: {error}"))
            }
        }
    }
}
