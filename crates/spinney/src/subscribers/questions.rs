//! The questions about one write: who is asked, what is to be amended, who is to be told.

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use spinney_core::backend::Revision;
use spinney_core::diff::Diff;
use spinney_core::index::Derived;
use spinney_core::transaction::{Proposed, Review, Transaction};
use spinney_core::{Error, ErrorKind, Result};

use super::concern::concerning;
#[cfg(feature = "lmdb")]
use super::link::{self, Link};
use super::mailbox::{Mailbox, Said};
use super::parties::Terms;
use super::{AMENDMENTS_MAX, Answer, Edit, Ended, Party, Proposal, Subscribers};
use crate::layers::{Moved, StackId};
use crate::snapshot::{Origin, Snapshot};

/// Asks the subscribers about one try of a write, and tells those whom it has asked how it ended, at
/// the latest when it is dropped.
pub struct Questions {
    origin: Arc<Origin>,
    parties: Arc<Vec<Party>>,
    asked: Vec<Asked>,
    amendments: Vec<Amendment>,
    /// The last round has added to the amendments.
    is_amended: bool,
    /// The commit is made whatever they answer.
    is_overruling: bool,
    /// What the commit changes in the trees that layers are read as.
    moved: Vec<(StackId, Arc<Moved>)>,
}

/// Who was asked and not told yet.
enum Asked {
    Own(Arc<Mailbox>, u64),
    #[cfg(feature = "lmdb")]
    Other(Link),
}

struct Amendment {
    /// Which of the parties wants it.
    by: usize,
    edits: Vec<Edit>,
}

impl Questions {
    /// `None` when nobody is subscribed. The caller holds the write guard.
    ///
    /// # Errors
    /// Those of reading what other processes have registered.
    pub fn new(subscribers: &Subscribers, origin: &Arc<Origin>) -> Result<Option<Questions>> {
        Ok(subscribers.parties()?.map(|parties| Questions {
            origin: Arc::clone(origin),
            parties,
            asked: Vec::new(),
            amendments: Vec::new(),
            is_amended: false,
            is_overruling: false,
            moved: Vec::new(),
        }))
    }

    /// Asks them, so that they know, but makes the commit whatever they answer.
    pub fn overrule(&mut self) {
        self.is_overruling = true;
    }

    /// Makes the changes that the subscribers want on top of a write's own.
    ///
    /// # Errors
    /// Those of the changes, naming who wants them.
    pub fn amend(&mut self, transaction: &mut Transaction<'_>) -> Result<()> {
        self.is_amended = false;
        for Amendment { by, edits } in &self.amendments {
            for edit in edits {
                let amended = match edit {
                    Edit::Set(path, value) => transaction.set(path, value),
                    Edit::Insert(path, value) => transaction.insert(path, value),
                    Edit::Remove(path) => transaction.remove(path).map(drop),
                };
                amended.map_err(|error| {
                    // A conflict would be tried again, and this is none with another writer.
                    let kind = match error.kind() {
                        ErrorKind::Conflict => ErrorKind::InvalidInput,
                        kind => kind,
                    };
                    let text =
                        format!("an amendment by {}: {error}", self.parties[*by].terms().shown());
                    Error::new(kind, text)
                })?;
            }
        }
        Ok(())
    }

    /// Whether the review has failed only to begin again with more amendments.
    pub fn is_amended(&self) -> bool {
        self.is_amended
    }

    /// Tells all who were asked that the commit was made.
    pub fn committed(mut self, revision: Revision) {
        self.end(&Ended::Committed(revision));
    }

    /// Tells all who were asked that the commit was not made.
    pub fn given_up(mut self, reason: &str) {
        self.end(&Ended::GivenUp(reason.to_owned()));
    }

    fn end(&mut self, ended: &Ended) {
        for asked in self.asked.drain(..) {
            match asked {
                Asked::Own(mailbox, number) => mailbox.end(number, ended.clone()),
                #[cfg(feature = "lmdb")]
                Asked::Other(link) => link.end(ended),
            }
        }
    }

    fn ask_all(&mut self, proposed: &Proposed<'_>) -> Result<()> {
        let parties = Arc::clone(&self.parties);
        let priority = |party: &Party| party.terms().options.priority;
        let mut from = 0;
        while let Some(first) = parties.get(from) {
            let rest = &parties[from..];
            let end = from + rest.partition_point(|party| priority(party) == priority(first));
            self.ask_together(from..end, proposed)?;
            from = end;
        }
        Ok(())
    }

    /// Asks those of one priority: first all of this process at the same time, then others one by one. Their
    /// answers count in the order in which they subscribed.
    fn ask_together(&mut self, group: Range<usize>, proposed: &Proposed<'_>) -> Result<()> {
        let parties = Arc::clone(&self.parties);
        let mut questions = Vec::with_capacity(group.len());
        for by in group.clone() {
            let Some(member) = parties[by].own() else { continue };
            if let Some(question) = self.question(&member.terms, proposed)? {
                questions.push((by, member, question));
            }
        }
        // All are made before the first is put: making one and giving one back takes the same locks.
        let put = questions.into_iter().map(|(by, member, question)| {
            let deadline = Instant::now() + member.terms.options.timeout;
            (by, member, deadline, member.mailbox.put(question, deadline))
        });
        let put: Vec<_> = put.collect();
        let mut said = Vec::with_capacity(put.len());
        for (by, member, deadline, put) in put {
            let mailbox = &member.mailbox;
            let reply = put.map_or_else(|reply| reply, |number| mailbox.hear(number, deadline));
            self.asked.extend(reply.number.map(|n| Asked::Own(Arc::clone(mailbox), n)));
            said.push((by, reply.said));
        }
        said.into_iter().try_for_each(|(by, said)| self.judge(by, said))?;
        #[cfg(feature = "lmdb")]
        for by in group {
            let Party::Other(registered) = &parties[by] else { continue };
            let mut diff = self.concerning(&registered.terms, proposed.diff, proposed)?;
            if diff.is_empty() {
                continue;
            }
            diff.begin_below(&self.origin.base_path);
            let (said, link) = match link::ask(registered, proposed, &diff) {
                Err(_) if self.is_overruling => continue,
                asked => asked?,
            };
            self.asked.extend(link.map(Asked::Other));
            self.judge(by, said)?;
        }
        Ok(())
    }

    /// What a subscriber is asked; `None` when the commit does not concern it.
    fn question(&mut self, terms: &Terms, proposed: &Proposed<'_>) -> Result<Option<Proposal>> {
        let Some(stack) = &terms.stack else {
            let mut diff = self.concerning(terms, proposed.diff, proposed)?;
            diff.begin_below(&self.origin.base_path);
            return match diff.is_empty() {
                true => Ok(None),
                false => self.proposal(proposed, diff).map(Some),
            };
        };
        let id = stack.finding().id();
        let moved = match self.moved.iter().find(|(known, _)| known == id) {
            Some((_, moved)) => Arc::clone(moved),
            None => {
                let (before, after) = (proposed.before, proposed.after);
                let moved = Arc::new(stack.moved(proposed.diff, before, after)?);
                self.moved.push((id.clone(), Arc::clone(&moved)));
                moved
            }
        };
        if moved.diff.is_empty() {
            return Ok(None);
        }
        self.proposal(proposed, Diff::default())?.of_layers(&moved, &terms.segments)
    }

    /// What of a commit concerns a subscriber to the store.
    fn concerning(&self, terms: &Terms, diff: &Diff, proposed: &Proposed<'_>) -> Result<Diff> {
        concerning(diff, &terms.segments, |path| {
            Ok(proposed.before.resolve(path)?.is_some() || proposed.after.resolve(path)?.is_some())
        })
    }

    /// What an answer means for the commit.
    fn judge(&mut self, by: usize, said: Said) -> Result<()> {
        if self.is_overruling {
            return Ok(());
        }
        let parties = Arc::clone(&self.parties);
        let terms = parties[by].terms();
        let shown = terms.shown();
        match said {
            Said::Gone | Said::Answer(Answer::Pass) => Ok(()),
            Said::Answer(Answer::Amend(edits)) if edits.is_empty() => Ok(()),
            Said::Answer(Answer::Amend(edits)) => self.take(by, edits),
            Said::Answer(Answer::Veto(reason)) => {
                Err(Error::new(ErrorKind::Denied, format!("{shown} refuses the commit: {reason}")))
            }
            Said::Failed(text) => Err(Error::busy(format!(
                "{shown} failed, so the commit is not made; mend or end it: {text}"
            ))),
            Said::Nothing => Err(Error::busy(format!(
                "{shown} did not answer within {:?}, so the commit is not made; try again, or end it",
                terms.options.timeout
            ))),
            Said::Itself => Err(Error::invalid_input(format!(
                "{shown} writes to what it is asked about from its own thread; let another one write"
            ))),
        }
    }

    fn proposal(&self, proposed: &Proposed<'_>, diff: Diff) -> Result<Proposal> {
        let snapshot = |records| Snapshot::new(records, Arc::clone(&self.origin));
        Ok(Proposal {
            number: 0,
            base: proposed.base,
            note: proposed.note.clone(),
            diff,
            before: snapshot(proposed.fork_before()?),
            after: snapshot(Box::new(proposed.fork_after()?)),
        })
    }

    /// Notes changes that a subscriber wants, and ends this round.
    fn take(&mut self, by: usize, edits: Vec<Edit>) -> Result<()> {
        let shown = self.parties[by].terms().shown();
        if self.amendments.iter().filter(|other| other.by == by).count() == AMENDMENTS_MAX {
            return Err(Error::limit_exceeded(format!(
                "{shown} amended the commit {AMENDMENTS_MAX} times and wants to again; mend or end it"
            )));
        }
        self.amendments.push(Amendment { by, edits });
        self.is_amended = true;
        Err(Error::busy(format!("{shown} amended the commit; everyone is asked again")))
    }
}

impl Review for Questions {
    fn review(&mut self, proposed: &Proposed<'_>, _derived: &mut Vec<Derived>) -> Result<()> {
        self.moved.clear();
        let asked = self.ask_all(proposed);
        if self.is_amended
            && let Err(amended) = &asked
        {
            self.end(&Ended::GivenUp(amended.to_string()));
        }
        asked
    }
}

impl Drop for Questions {
    fn drop(&mut self) {
        self.end(&Ended::GivenUp("the write ended early".to_owned()));
    }
}
