//! What processes say to each other about a commit: frames of a length and what it counts.
//!
//! Whoever reads them trusts nothing: bytes that are no message are an error.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use spinney_core::backend::{RecordKey, Revision};
use spinney_core::history::Entry;
use spinney_core::overlay::Overlay;
use spinney_core::value::ValueBuilder;
use spinney_core::{Error, Result, Value, varint};

use super::mailbox::Said;
use super::{Answer, Edit, Ended};
use crate::formats::{self, Fidelity, Layout, ReadOptions};

/// Bytes of a message. A commit that changes more cannot be asked about in another process.
pub const FRAME_LEN_MAX: usize = 64 << 20;

/// Bytes of a reason that is passed on.
const REASON_LEN_MAX: usize = 4_096;

/// The version of the messages, the first byte of a question.
const VERSION: u8 = 1;

/// A commit that another process is asked about.
pub struct Question {
    /// The revision that it rests on.
    pub base: Revision,
    /// What it says of itself, and what of it concerns the subscriber.
    pub entry: Entry,
    /// What makes the records after of those before.
    pub staged: Overlay,
}

impl Question {
    /// The message of a question.
    ///
    /// # Errors
    /// `LimitExceeded` above [`FRAME_LEN_MAX`] bytes.
    pub fn encode(base: Revision, entry: &[u8], staged: &Overlay) -> Result<Vec<u8>> {
        let mut out = vec![VERSION];
        varint::write(base, &mut out);
        varint::write_bytes(entry, &mut out);
        for (key, record) in staged.iter() {
            varint::write_bytes(key, &mut out);
            out.push(u8::from(record.is_some()));
            if let Some(record) = record {
                varint::write_bytes(record, &mut out);
            }
            if out.len() > FRAME_LEN_MAX {
                return Err(Error::limit_exceeded(format!(
                    "it changes more than {FRAME_LEN_MAX} bytes of records; commit it in parts"
                )));
            }
        }
        Ok(out)
    }

    /// Reads the message; `None` when it is none of this version.
    pub fn decode(bytes: &[u8]) -> Option<Question> {
        let (&VERSION, bytes) = bytes.split_first()? else { return None };
        let mut at = 0;
        let base = varint::read(bytes, &mut at)?;
        let entry = Entry::decode(varint::read_bytes(bytes, &mut at)?).ok()?;
        let mut staged = Overlay::default();
        while at < bytes.len() {
            let key = RecordKey::from(varint::read_bytes(bytes, &mut at)?);
            let is_put = *bytes.get(at)? != 0;
            at += 1;
            let record = match is_put {
                true => Some(varint::read_bytes(bytes, &mut at)?.into()),
                false => None,
            };
            staged.stage(key, record);
        }
        Some(Question { base, entry, staged })
    }
}

/// The message of what became of a question.
pub fn encode_said(said: &Said) -> Vec<u8> {
    let mut out = Vec::new();
    match said {
        Said::Answer(Answer::Pass) => out.push(0),
        Said::Answer(Answer::Veto(reason)) => write_text(1, reason, &mut out),
        Said::Answer(Answer::Amend(edits)) => {
            out.push(2);
            if let Err(error) = edits.iter().try_for_each(|edit| write_edit(edit, &mut out)) {
                out.clear();
                write_text(3, &format!("its amendment cannot be passed on: {error}"), &mut out);
            }
        }
        Said::Failed(text) => write_text(3, text, &mut out),
        Said::Nothing | Said::Itself => out.push(4),
        Said::Gone => out.push(5),
    }
    out
}

/// Reads what [`encode_said`] has written; `None` when it is nothing of that.
pub fn decode_said(bytes: &[u8]) -> Option<Said> {
    let (&tag, rest) = bytes.split_first()?;
    Some(match (tag, rest) {
        (0, []) => Said::Answer(Answer::Pass),
        (1, reason) => Said::Answer(Answer::Veto(read_text(reason)?)),
        (2, edits) => {
            let (mut at, mut read) = (0, Vec::new());
            while at < edits.len() {
                read.push(read_edit(edits, &mut at)?);
            }
            Said::Answer(Answer::Amend(read))
        }
        (3, text) => Said::Failed(read_text(text)?),
        (4, []) => Said::Nothing,
        (5, []) => Said::Gone,
        _ => return None,
    })
}

/// The message of how a commit ended.
pub fn encode_ended(ended: &Ended) -> Vec<u8> {
    let mut out = Vec::new();
    match ended {
        Ended::Committed(revision) => {
            out.push(0);
            varint::write(*revision, &mut out);
        }
        Ended::GivenUp(reason) => write_text(1, reason, &mut out),
    }
    out
}

/// Reads what [`encode_ended`] has written; `None` when it is nothing of that.
pub fn decode_ended(bytes: &[u8]) -> Option<Ended> {
    let (&tag, rest) = bytes.split_first()?;
    let mut at = 0;
    match tag {
        0 => {
            let revision = varint::read(rest, &mut at)?;
            (at == rest.len()).then_some(Ended::Committed(revision))
        }
        1 => read_text(rest).map(Ended::GivenUp),
        _ => None,
    }
}

fn write_text(tag: u8, text: &str, out: &mut Vec<u8>) {
    let len = (0..=text.len().min(REASON_LEN_MAX)).rev().find(|&len| text.is_char_boundary(len));
    out.push(tag);
    out.extend_from_slice(&text.as_bytes()[..len.unwrap_or(0)]);
}

fn read_text(bytes: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(bytes).ok()?;
    (text.len() <= REASON_LEN_MAX).then(|| text.to_owned())
}

fn write_edit(edit: &Edit, out: &mut Vec<u8>) -> Result<()> {
    let (tag, path, value) = match edit {
        Edit::Set(path, value) => (0, path, Some(value)),
        Edit::Insert(path, value) => (1, path, Some(value)),
        Edit::Remove(path) => (2, path, None),
    };
    out.push(tag);
    varint::write_bytes(path.as_bytes(), out);
    if let Some(value) = value {
        let json = formats::print(value, Layout::Compact, Fidelity::Tagged)?;
        varint::write_bytes(json.as_bytes(), out);
    }
    Ok(())
}

fn read_edit(bytes: &[u8], at: &mut usize) -> Option<Edit> {
    let tag = *bytes.get(*at)?;
    *at += 1;
    let path = std::str::from_utf8(varint::read_bytes(bytes, at)?).ok()?.to_owned();
    let mut value = || read_value(varint::read_bytes(bytes, at)?);
    Some(match tag {
        0 => Edit::Set(path, value()?),
        1 => Edit::Insert(path, value()?),
        2 => Edit::Remove(path),
        _ => return None,
    })
}

fn read_value(json: &[u8]) -> Option<Value> {
    let mut builder = ValueBuilder::default();
    let options = ReadOptions { tagged: true, ..ReadOptions::default() };
    formats::read_with(json, options, &mut builder).ok()?;
    builder.finish()
}

/// A stream that is read and written until a moment, however slowly the other side goes on.
pub struct Timed<'s> {
    stream: &'s UnixStream,
    deadline: Instant,
}

impl<'s> Timed<'s> {
    /// A stream that gives up after a time.
    pub fn new(stream: &'s UnixStream, deadline: Instant) -> Timed<'s> {
        Timed { stream, deadline }
    }

    fn left(&self) -> io::Result<Duration> {
        match self.deadline.saturating_duration_since(Instant::now()) {
            Duration::ZERO => Err(io::ErrorKind::TimedOut.into()),
            left => Ok(left),
        }
    }
}

impl Read for Timed<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            self.stream.set_read_timeout(Some(self.left()?))?;
            match (&mut &*self.stream).read(buffer) {
                // The system's clock is coarse, and may be early.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                read => return read,
            }
        }
    }
}

impl Write for Timed<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            self.stream.set_write_timeout(Some(self.left()?))?;
            match (&mut &*self.stream).write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                written => return written,
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Whether an error only says that the time was up.
pub fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock)
}

/// Writes a message.
///
/// # Errors
/// Those of the stream.
pub fn write_frame(mut stream: impl Write, message: &[u8]) -> io::Result<()> {
    let len = u32::try_from(message.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    stream.write_all(&len.to_le_bytes())?;
    stream.write_all(message)
}

/// Reads a message.
///
/// # Errors
/// Those of the stream; `InvalidData` when it is longer than [`FRAME_LEN_MAX`].
pub fn read_frame(mut stream: impl Read) -> io::Result<Vec<u8>> {
    let mut len = [0; 4];
    stream.read_exact(&mut len)?;
    let len = u32::from_le_bytes(len);
    if len as usize > FRAME_LEN_MAX {
        let text = format!("a message of {len} bytes is too long; at most {FRAME_LEN_MAX}");
        return Err(io::Error::new(io::ErrorKind::InvalidData, text));
    }
    // Grows with what comes: a length alone takes no memory.
    let mut message = Vec::new();
    match stream.take(u64::from(len)).read_to_end(&mut message)? == len as usize {
        true => Ok(message),
        false => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}
