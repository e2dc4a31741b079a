//! The questions about one write: who is asked, what is to be amended, who is to be told.

use std::sync::Arc;

use spinney_core::backend::Revision;
use spinney_core::history::Note;
use spinney_core::transaction::{Derived, Proposed, Review, Transaction};
use spinney_core::{Error, ErrorKind, Result, path};

use super::concern::concerning;
use super::mailbox::{Mailbox, Reply, Said};
use super::{AMENDMENTS_MAX, Answer, Edit, Ended, Member, Proposal, Subscribers, Terms};
use crate::snapshot::{Origin, Snapshot};

/// Asks the subscribers about one try of a write, and tells those whom it has asked how it ended, at
/// the latest when it is dropped.
pub struct Questions {
    origin: Arc<Origin>,
    members: Arc<Vec<Arc<Member>>>,
    asked: Vec<Asked>,
    amendments: Vec<Amendment>,
    /// The last round has added to the amendments.
    is_amended: bool,
}

/// Who was asked and not told yet.
struct Asked {
    mailbox: Arc<Mailbox>,
    number: u64,
}

struct Amendment {
    member: Arc<Member>,
    edits: Vec<Edit>,
}

impl Questions {
    /// `None` when nobody is subscribed.
    pub fn new(subscribers: &Subscribers, origin: &Arc<Origin>) -> Option<Questions> {
        let members = subscribers.members()?;
        Some(Questions {
            origin: Arc::clone(origin),
            members,
            asked: Vec::new(),
            amendments: Vec::new(),
            is_amended: false,
        })
    }

    /// Makes the changes that the subscribers want on top of a write's own.
    ///
    /// # Errors
    /// Those of the changes, naming who wants them.
    pub fn amend(&mut self, transaction: &mut Transaction<'_>) -> Result<()> {
        self.is_amended = false;
        for Amendment { member, edits } in &self.amendments {
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
                    let text = format!("an amendment by {}: {error}", member.terms.shown());
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
        for Asked { mailbox, number } in self.asked.drain(..) {
            mailbox.end(number, ended.clone());
        }
    }

    fn ask(&mut self, member: &Arc<Member>, proposed: &Proposed<'_>) -> Result<()> {
        let Terms { segments, options, .. } = &member.terms;
        let mut diff = concerning(proposed.diff, segments, &proposed.before, &proposed.after)?;
        if diff.is_empty() {
            return Ok(());
        }
        diff.begin_below(path::segments(&self.origin.base_path).count());
        let snapshot = |records| Snapshot::new(records, Arc::clone(&self.origin));
        let question = Proposal {
            number: 0,
            base: proposed.base,
            note: Note::clone(proposed.note),
            diff,
            before: snapshot(proposed.fork_before()?),
            after: snapshot(Box::new(proposed.fork_after()?)),
        };
        let Reply { said, number } = member.mailbox.ask(question, options.timeout);
        let mailbox = &member.mailbox;
        self.asked.extend(number.map(|number| Asked { mailbox: Arc::clone(mailbox), number }));
        let shown = member.terms.shown();
        match said {
            Said::Gone | Said::Answer(Answer::Pass) => Ok(()),
            Said::Answer(Answer::Amend(edits)) if edits.is_empty() => Ok(()),
            Said::Answer(Answer::Amend(edits)) => self.take(member, edits),
            Said::Answer(Answer::Veto(reason)) => {
                Err(Error::new(ErrorKind::Denied, format!("{shown} refuses the commit: {reason}")))
            }
            Said::Panicked(text) => Err(Error::busy(format!(
                "{shown} panicked, so the commit is not made; mend or end it: {text}"
            ))),
            Said::Nothing => Err(Error::busy(format!(
                "{shown} did not answer within {:?}, so the commit is not made; try again, or end it",
                options.timeout
            ))),
            Said::Itself => Err(Error::invalid_input(format!(
                "{shown} writes to what it is asked about from its own thread; let another one write"
            ))),
        }
    }

    /// Notes changes that a subscriber wants, and ends this round.
    fn take(&mut self, member: &Arc<Member>, edits: Vec<Edit>) -> Result<()> {
        let is_by = |amendment: &&Amendment| Arc::ptr_eq(&amendment.member, member);
        let shown = member.terms.shown();
        if self.amendments.iter().filter(is_by).count() == AMENDMENTS_MAX {
            return Err(Error::limit_exceeded(format!(
                "{shown} amended the commit {AMENDMENTS_MAX} times and wants to again; mend or end it"
            )));
        }
        self.amendments.push(Amendment { member: Arc::clone(member), edits });
        self.is_amended = true;
        Err(Error::busy(format!("{shown} amended the commit; everyone is asked again")))
    }
}

impl Review for Questions {
    fn review(&mut self, proposed: &Proposed<'_>, _derived: &mut Vec<Derived>) -> Result<()> {
        let members = Arc::clone(&self.members);
        let asked = members.iter().try_for_each(|member| self.ask(member, proposed));
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

impl Terms {
    /// Who it is, for errors.
    fn shown(&self) -> String {
        format!("the subscriber `{}` of {}", self.options.name, path::Display(&self.path))
    }
}
