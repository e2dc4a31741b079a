//! Asking a subscriber of another process: one connection a question, from the question to how it ended.

use std::io;
use std::os::unix::net::UnixStream;
use std::time::Instant;

use spinney_core::Result;
use spinney_core::diff::Diff;
use spinney_core::history::Entry;
use spinney_core::transaction::Proposed;

use super::Ended;
use super::mailbox::Said;
use super::registry::Registered;
use super::wire::{self, Question, Timed, is_timeout, read_frame, write_frame};

/// A subscriber that is to be told how the commit ended.
pub struct Link(UnixStream);

/// Asks; a process that dies meanwhile is subscribed no more.
///
/// # Errors
/// `LimitExceeded` when the commit is too big to be passed on; those of showing the other process what
/// it rests on, and of looking whether that lives.
pub fn ask(
    registered: &Registered,
    proposed: &Proposed<'_>,
    diff: &Diff,
) -> Result<(Said, Option<Link>)> {
    let shown = |error: spinney_core::Error| error.at(registered.terms.shown());
    let entry = Entry::encode(proposed.note, diff);
    let question = Question::encode(proposed.base, &entry, proposed.staged()).map_err(shown)?;
    registered.publish()?;
    let deadline = Instant::now() + registered.terms.options.timeout;
    let mut link = None;
    let mut talk = || -> io::Result<Vec<u8>> {
        let stream = &link.insert(Link(registered.connect()?)).0;
        write_frame(Timed::new(stream, deadline), &question)?;
        read_frame(Timed::new(stream, deadline))
    };
    let said = match talk() {
        Ok(answer) => wire::decode_said(&answer)
            .unwrap_or_else(|| Said::Failed("its process sent no answer that reads".to_owned())),
        Err(error) => {
            // Whoever hung up is dead or dies, unless time only passes.
            let until = match is_timeout(&error) {
                true => Instant::now(),
                false if hung_up(&error) => deadline,
                false => return Ok((Said::Failed(error.to_string()), link)),
            };
            match registered.is_gone_until(until).map_err(shown)? {
                true => Said::Gone,
                false => Said::Nothing,
            }
        }
    };
    Ok((said, link))
}

/// Whether an error says that nobody is at the other end any more.
fn hung_up(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionRefused, ConnectionReset, NotFound, UnexpectedEof};
    matches!(
        error.kind(),
        NotFound | ConnectionRefused | ConnectionReset | BrokenPipe | UnexpectedEof
    )
}

impl Link {
    /// Tells how the commit ended; never waits.
    pub fn end(self, ended: &Ended) {
        // Who hung up looks for itself how it ended.
        let _ = self.0.set_nonblocking(true);
        let _ = write_frame(&self.0, &wire::encode_ended(ended));
    }
}
