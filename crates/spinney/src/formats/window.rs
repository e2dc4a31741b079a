//! The stretch of input that the reader looks at: valid UTF-8, with positions for errors.
//!
//! It knows lines and characters, nothing of JSON.

use std::fmt;
use std::io::{BufRead, ErrorKind};

use spinney_core::{Error, ErrorKind as Kind, Result};

/// Bytes of input that are looked at at once; what buffers an input best holds as many.
pub const WINDOW_LEN: usize = 256 * 1024;

/// Follows the input, so that eight bytes can be loaded at any place and every scan stops.
const PADDING: &str = "\0\0\0\0\0\0\0\0";

/// Text from the input, always a whole number of characters, followed by eight NUL characters.
///
/// Places are byte offsets into [`Window::text`]; [`Window::fill`] moves them.
pub(super) struct Window<'a, R> {
    source: R,
    /// Bytes that are taken from the source at once, at most.
    window_len: usize,
    /// What was read but is not in `text`: the start of a character, or what comes from one on that is broken.
    begun: Vec<u8>,
    text: String,
    progress: Option<&'a mut dyn FnMut(u64)>,
    read_len: u64,
    state: State,
    /// Where `text` starts.
    start: Position,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Start,
    Open,
    Ended,
    /// After `text` comes a byte that is not UTF-8.
    Invalid(u8),
}

/// A place in the input; both numbers count from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Position {
    pub line: u64,
    pub column: u64,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

impl Position {
    fn after(self, text: &str) -> Position {
        match memchr::memrchr(b'\n', text.as_bytes()) {
            None => Position { column: self.column + chars(text), ..self },
            Some(last) => Position {
                line: self.line + memchr::memchr_iter(b'\n', text.as_bytes()).count() as u64,
                column: 1 + chars(&text[last + 1..]),
            },
        }
    }
}

fn chars(text: &str) -> u64 {
    match text.is_ascii() {
        true => text.len() as u64,
        false => text.chars().count() as u64,
    }
}

impl<'a, R: BufRead> Window<'a, R> {
    pub(super) fn new(
        source: R,
        window_len: usize,
        progress: Option<&'a mut dyn FnMut(u64)>,
    ) -> Self {
        // A window of one character must be possible.
        let window_len = window_len.max(4);
        let mut text = String::with_capacity(window_len + window_len / 16 + PADDING.len());
        text.push_str(PADDING);
        Window {
            source,
            window_len,
            begun: Vec::new(),
            text,
            progress,
            read_len: 0,
            state: State::Start,
            start: Position { line: 1, column: 1 },
        }
    }

    /// The text with its padding.
    #[inline(always)]
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Where the padding starts.
    #[inline(always)]
    pub(super) fn end(&self) -> usize {
        self.text.len() - PADDING.len()
    }

    /// Whether `at` is the end of the whole input, and not only of what is valid.
    pub(super) fn is_finished(&self, at: usize) -> bool {
        self.state == State::Ended && at == self.end()
    }

    /// Drops the text before `keep`, so that `keep` becomes 0, and reads more behind the rest.
    /// Returns false at the end of the input and before a byte that is not UTF-8.
    ///
    /// # Errors
    /// `Io`.
    #[cold]
    pub(super) fn fill(&mut self, keep: usize) -> Result<bool> {
        self.start = self.start.after(&self.text[..keep]);
        self.text.truncate(self.end());
        self.text.drain(..keep);
        let before = self.text.len();
        let more = self.append(before);
        self.text.push_str(PADDING);
        more
    }

    fn append(&mut self, before: usize) -> Result<bool> {
        while self.text.len() == before {
            if matches!(self.state, State::Ended | State::Invalid(_)) {
                return Ok(false);
            }
            let bytes = match self.source.fill_buf() {
                Ok(bytes) => &bytes[..bytes.len().min(self.window_len)],
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(Error::io("the input cannot be read").with_source(error)),
            };
            let len = match (bytes, self.begun.is_empty()) {
                ([], is_whole) => {
                    self.state =
                        if is_whole { State::Ended } else { State::Invalid(self.begun[0]) };
                    continue;
                }
                (bytes, true) => {
                    let len = bytes.len();
                    let rest = &bytes[decode(bytes, &mut self.state, &mut self.text)..];
                    self.begun.extend_from_slice(rest);
                    len
                }
                // A byte more of the character that is begun.
                (bytes, false) => {
                    self.begun.push(bytes[0]);
                    if decode(&self.begun, &mut self.state, &mut self.text) > 0 {
                        self.begun.clear();
                    }
                    1
                }
            };
            self.source.consume(len);
            self.read_len += len as u64;
            if let Some(progress) = &mut self.progress {
                progress(self.read_len);
            }
        }
        Ok(true)
    }

    /// Where the input stands that `at` points to.
    #[cold]
    pub(super) fn position(&self, at: usize) -> Position {
        self.start.after(&self.text[..at])
    }

    /// The error for a byte that does not fit; `what` was expected at `at`.
    #[cold]
    pub(super) fn expected(&self, at: usize, what: &str) -> Error {
        let end = self.end();
        let found = match self.text[at.min(end)..end].chars().next() {
            None => match self.state {
                State::Invalid(byte) => format!("byte 0x{byte:02x}, which is not UTF-8"),
                _ => "the end of the input".to_owned(),
            },
            Some('\n') => "the end of the line".to_owned(),
            Some('`') => "a backquote".to_owned(),
            Some(char) if char.is_control() || char.is_whitespace() => {
                format!("U+{:04X}", char as u32)
            }
            Some(char) => format!("`{char}`"),
        };
        self.invalid(at, &format!("expected {what}, found {found}"))
    }

    /// The error for malformed text at `at`.
    #[cold]
    pub(super) fn invalid(&self, at: usize, message: &str) -> Error {
        self.locate(at, Error::invalid_input(message))
    }

    /// Puts the position of `at` before an error that is about what stands there, and not about the store that it goes
    /// to.
    #[cold]
    pub(super) fn locate(&self, at: usize, error: Error) -> Error {
        match error.kind() {
            Kind::Io | Kind::Busy | Kind::Closed => error,
            _ => error.at(self.position(at)),
        }
    }
}

/// Adds the whole characters that bytes begin with to the text; returns how many bytes they have.
fn decode(bytes: &[u8], state: &mut State, text: &mut String) -> usize {
    let (valid, broken) = match simdutf8::compat::from_utf8(bytes) {
        Ok(valid) => (valid, None),
        Err(error) => {
            let valid = &bytes[..error.valid_up_to()];
            let valid = std::str::from_utf8(valid).expect("checked up to here");
            (valid, error.error_len().map(|_| bytes[valid.len()]))
        }
    };
    let mut fresh = valid;
    if *state == State::Start && !valid.is_empty() {
        *state = State::Open;
        fresh = valid.strip_prefix('\u{feff}').unwrap_or(valid);
    }
    text.push_str(fresh);
    if let Some(byte) = broken {
        *state = State::Invalid(byte);
    }
    valid.len()
}
