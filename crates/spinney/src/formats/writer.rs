//! The printer of JSON: visitor calls become text in a buffer.
//!
//! It knows what JSON cannot say (metadata and bytes) and nothing of where values come from.

use std::fmt;
use std::io::Write;
use std::ops::Range;

use spinney_core::key::{StoredKey, StoredKeyForm};
use spinney_core::stretch::Stretch;
use spinney_core::visit::StoredText;
use spinney_core::{Container, Error, Key, Num, Path, Result, Scalar, Text, Value, Visitor};

use super::buffer::{self, Buffer, SHORT};
use super::tagged::{BYTES, META, PREFIX, VALUE};
use super::{base64, numerals, quote};

/// The buffer goes to the output when it holds this much.
const FLUSH_LEN: usize = 64 * 1024;

/// Longer texts are printed in pieces, so that the buffer stays small.
const PIECE_LEN: usize = 16 * 1024;

/// How the text is laid out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Layout {
    /// No white space.
    #[default]
    Compact,
    /// A line for each member, two spaces for each level, `"key": value`, `{}` and `[]`.
    Pretty,
}

/// What happens to metadata and bytes, for which JSON has no form.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Fidelity {
    /// The first of them is an `Unsupported` error that names its JSON Pointer (RFC 6901).
    #[default]
    Refuse,
    /// Metadata is left out, bytes become a base64 string (RFC 4648 section 4).
    Lossy,
    /// They take forms that [`ReadOptions::tagged`](super::ReadOptions::tagged) turns back:
    /// `{"$spinney:bytes":"BASE64"}`, `{"$spinney:meta":{...},"$spinney:value":...}`; a key that
    /// starts with `$spinney:` is written with one more `$spinney:` before it. Bytes above 768 MiB
    /// become a string that is too long to be read.
    Tagged,
}

/// Prints one value as JSON text (RFC 8259).
///
/// Strings escape `"`, `\` and characters below U+0020, with the short escape where there is one;
/// all others stand as they are. Numbers keep their texts.
pub struct JsonWriter<W> {
    out: W,
    buffer: Buffer,
    layout: Layout,
    fidelity: Fidelity,
    /// Whether keys are printed as they are, without spaces.
    usual: bool,
    /// Where the value stands, for errors.
    base: Path,
    open: Vec<Open>,
    /// The innermost container, as in `open`; `Map` at the root, where nothing comes before a value.
    within: Container,
    /// Whether a member stands before the next one.
    needs_comma: bool,
    /// Whether metadata of the next value has begun.
    in_meta: bool,
    /// Whether the buffer holds bytes that were not checked to be UTF-8.
    unchecked: bool,
    /// Members begun in the innermost container.
    count: u64,
    /// Where the last key stands in `buffer`, between its quotes.
    key: Range<usize>,
    /// The keys of `open` that are no longer in the buffer, as printed.
    keys: Vec<u8>,
}

struct Open {
    container: Container,
    /// Whether a form must be closed behind it.
    wrapped: bool,
    /// What `count` was outside.
    outer_count: u64,
    /// Where its key stands, as printed; only kept for [`Fidelity::Refuse`].
    key: Range<usize>,
    /// Whether that is in `keys` and not in the buffer.
    key_moved: bool,
}

/// Prints a value into a text of its own.
///
/// # Errors
/// `Unsupported` for bytes under [`Fidelity::Refuse`].
pub fn print(value: &Value, layout: Layout, fidelity: Fidelity) -> Result<String> {
    let mut writer = JsonWriter::new(Vec::new(), layout, fidelity);
    value.visit(&mut writer)?;
    Ok(String::from_utf8(writer.finish()?).expect("printed from texts"))
}

impl<W: Write> JsonWriter<W> {
    /// A printer to `out`; it needs no buffer of its own.
    pub fn new(out: W, layout: Layout, fidelity: Fidelity) -> Self {
        JsonWriter {
            out,
            buffer: Buffer::with_capacity(FLUSH_LEN + FLUSH_LEN / 4),
            layout,
            fidelity,
            usual: layout == Layout::Compact && fidelity != Fidelity::Tagged,
            base: Path::root(),
            open: Vec::new(),
            within: Container::Map,
            needs_comma: false,
            in_meta: false,
            unchecked: false,
            count: 0,
            key: 0..0,
            keys: Vec::new(),
        }
    }

    /// Says where the value stands, so that errors name whole paths; the default is the root.
    pub fn with_base(mut self, path: Path) -> Self {
        self.base = path;
        self
    }

    /// Writes out what is buffered and gives `out` back. No line feed is added.
    ///
    /// # Errors
    /// `Io`; `Corrupted` when a stored text or key was not UTF-8.
    pub fn finish(mut self) -> Result<W> {
        self.write_out()?;
        Ok(self.out)
    }

    /// Ends the line of a value, so that another one can follow: JSON Lines.
    ///
    /// # Errors
    /// As [`JsonWriter::finish`].
    pub fn end_line(&mut self) -> Result<()> {
        self.buffer.push(b'\n');
        self.end_value()
    }

    /// Writes out what is buffered, while a value or a line is not complete or another one follows.
    ///
    /// # Errors
    /// As [`JsonWriter::finish`].
    pub fn write_out(&mut self) -> Result<()> {
        self.flush()?;
        self.out.flush().map_err(cannot_write)
    }

    #[cold]
    fn flush(&mut self) -> Result<()> {
        let text = self.buffer.as_slice();
        // The buffer holds whole texts, so it is UTF-8 when each of them is: one look at all of
        // them costs less than one at each.
        if self.unchecked && simdutf8::basic::from_utf8(text).is_err() {
            return Err(Error::corrupted("a stored text before this place is not UTF-8"));
        }
        for open in self.open.iter_mut().filter(|open| !open.key_moved) {
            let start = self.keys.len();
            self.keys.extend_from_slice(&text[open.key.clone()]);
            (open.key, open.key_moved) = (start..self.keys.len(), true);
        }
        self.out.write_all(text).map_err(cannot_write)?;
        self.buffer.clear();
        self.unchecked = false;
        Ok(())
    }

    /// Prints what stands between the last member and the next.
    #[inline(always)]
    fn begin_member(&mut self) {
        self.count += 1;
        self.buffer.spare()[0] = b',';
        self.buffer.advance(usize::from(self.needs_comma));
        if self.layout == Layout::Pretty {
            self.new_line();
        }
    }

    #[inline(always)]
    fn begin_value(&mut self) {
        if self.in_meta {
            self.end_meta();
        } else if self.within == Container::List {
            self.begin_member();
        }
    }

    /// The key is read back from the buffer, so only the end of a value writes it out.
    #[inline(always)]
    fn end_value(&mut self) -> Result<()> {
        self.needs_comma = true;
        match self.buffer.len() >= FLUSH_LEN {
            true => self.flush(),
            false => Ok(()),
        }
    }

    fn new_line(&mut self) {
        self.buffer.push(b'\n');
        self.buffer.fill(2 * self.open.len(), b' ');
    }

    /// Prints the key of a member, in two pieces.
    #[inline(always)]
    fn member(&mut self, first: &[u8], rest: Stretch<'_>) {
        let (first_len, rest_len) = (first.len(), rest.bytes().len());
        if !self.usual || first_len > SHORT || rest_len > SHORT {
            return self.unusual_member(first, rest.bytes());
        }
        let comma = usize::from(self.needs_comma);
        let before = self.buffer.len();
        let spare = self.buffer.spare();
        spare[0] = b',';
        spare[comma] = b'"';
        let start = comma + 1;
        let mut end = start + first_len;
        let mut escaped = first_len > 0 && buffer::put_bytes(first, spare, start);
        escaped |= buffer::put(rest, spare, end);
        if escaped {
            return self.unusual_member(first, rest.bytes());
        }
        end += rest_len;
        spare[end] = b'"';
        spare[end + 1] = b':';
        self.count += 1;
        self.key = before + start..before + end;
        self.buffer.advance(end + 2);
    }

    /// Prints any key.
    #[cold]
    #[inline(never)]
    fn unusual_member(&mut self, first: &[u8], rest: &[u8]) {
        let key = [first, rest].concat();
        self.begin_member();
        self.buffer.push(b'"');
        let start = self.buffer.len();
        if self.fidelity == Fidelity::Tagged && key.starts_with(PREFIX.as_bytes()) {
            self.buffer.extend(PREFIX.as_bytes());
        }
        self.buffer.append(|out| quote::escape(&key, out));
        self.key = start..self.buffer.len();
        self.end_key(0);
    }

    #[inline(never)]
    fn other_stored_key(&mut self, prefix: &[u8], record: &[u8], suffix: &[u8]) -> Result<()> {
        // The parts of the key, since those of up to two words go in registers.
        let key = StoredKey { prefix, suffix: Stretch::new(record, suffix) };
        match key.form()? {
            StoredKeyForm::Text(first, rest) => {
                self.unchecked = true;
                self.member(first, rest);
            }
            StoredKeyForm::Int(value) => self.integer_key(value),
        }
        Ok(())
    }

    #[inline]
    fn integer_key(&mut self, value: i64) {
        self.begin_member();
        let key = self.buffer.len() + 1;
        let spare = self.buffer.spare();
        spare[0] = b'"';
        let end = numerals::put_int(value, spare, 1);
        self.key = key..key + end - 1;
        self.end_key(end);
    }

    /// Prints what stands behind a key that ends at `end` of the spare bytes.
    #[inline(always)]
    fn end_key(&mut self, end: usize) {
        let spare = self.buffer.spare();
        spare[end] = b'"';
        spare[end + 1] = b':';
        spare[end + 2] = b' ';
        self.buffer.advance(end + 2 + usize::from(self.layout == Layout::Pretty));
    }

    fn colon(&mut self) {
        let colon: &[u8] = if self.layout == Layout::Pretty { b": " } else { b":" };
        self.buffer.extend(colon);
    }

    /// A name of a form, which needs no escaping.
    fn tag(&mut self, name: &str) {
        self.buffer.push(b'"');
        self.buffer.extend(name.as_bytes());
        self.buffer.push(b'"');
        self.colon();
    }

    #[cold]
    fn end_meta(&mut self) {
        self.buffer.extend(b"},");
        if self.layout == Layout::Pretty {
            self.buffer.push(b' ');
        }
        self.tag(VALUE);
    }

    #[inline(always)]
    fn text(&mut self, text: Text<'_>) -> Result<()> {
        if text.text.len() > PIECE_LEN {
            return self.long_string(text);
        }
        self.string(text.text.as_bytes(), text.plain);
        Ok(())
    }

    /// Prints a text that is not long.
    #[inline(always)]
    fn string(&mut self, text: &[u8], plain: bool) {
        match plain && text.len() <= SHORT {
            true => self.short_string(text.into()),
            false => self.unusual_string(text, plain),
        }
    }

    /// Prints a plain text of at most [`SHORT`] bytes.
    #[inline(always)]
    fn short_string(&mut self, text: Stretch<'_>) {
        let len = text.bytes().len();
        let spare = self.buffer.spare();
        spare[0] = b'"';
        buffer::put(text, spare, 1);
        spare[len + 1] = b'"';
        self.buffer.advance(len + 2);
    }

    #[inline(never)]
    fn unusual_stored_text(&mut self, text: &[u8], plain: bool) -> Result<()> {
        if text.len() > PIECE_LEN || self.in_meta {
            let text = StoredText { bytes: text.into(), plain };
            return self.scalar(Scalar::String(text.check()?));
        }
        self.unchecked = true;
        self.begin_value();
        self.unusual_string(text, plain);
        self.end_value()
    }

    #[inline(never)]
    fn unusual_string(&mut self, text: &[u8], plain: bool) {
        self.buffer.push(b'"');
        match plain {
            true => self.buffer.extend(text),
            false => self.buffer.append(|out| quote::escape(text, out)),
        }
        self.buffer.push(b'"');
    }

    #[cold]
    fn unusual_number(&mut self, num: Num<'_>) {
        self.buffer.append(|out| num.write(out));
    }

    #[cold]
    fn long_string(&mut self, text: Text<'_>) -> Result<()> {
        self.buffer.push(b'"');
        let mut rest = text.text;
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(rest.floor_char_boundary(PIECE_LEN));
            match text.plain {
                true => self.buffer.extend(piece.as_bytes()),
                false => self.buffer.append(|out| quote::escape(piece.as_bytes(), out)),
            }
            if self.buffer.len() >= FLUSH_LEN {
                self.flush()?;
            }
            rest = after;
        }
        self.buffer.push(b'"');
        Ok(())
    }

    #[cold]
    fn bytes(&mut self, bytes: &[u8]) -> Result<()> {
        if self.fidelity == Fidelity::Tagged {
            self.buffer.push(b'{');
            self.tag(BYTES);
        }
        self.buffer.push(b'"');
        // A multiple of three, so that the pieces join without padding.
        for piece in bytes.chunks(3 * 4096) {
            self.buffer.append(|out| base64::encode(piece, out));
            if self.buffer.len() >= FLUSH_LEN {
                self.flush()?;
            }
        }
        self.buffer.push(b'"');
        if self.fidelity == Fidelity::Tagged {
            self.buffer.push(b'}');
        }
        Ok(())
    }

    /// The error for a value that would lose `what`.
    #[cold]
    fn refused(&self, what: &str) -> Error {
        let mut path = self.base.clone();
        for (level, open) in self.open.iter().enumerate() {
            let inner = self.open.get(level + 1);
            let segment = match (open.container, inner) {
                (Container::List, Some(inner)) => (inner.outer_count - 1).to_string(),
                (Container::List, None) => self.count.to_string(),
                (Container::Map, Some(inner)) => {
                    let text = if inner.key_moved { &self.keys } else { self.buffer.as_slice() };
                    quote::unquote(&text[inner.key.clone()])
                }
                (Container::Map, None) => quote::unquote(&self.buffer.as_slice()[self.key.clone()]),
            };
            path.push(&segment);
        }
        Error::unsupported(format!(
            "JSON has no form for {what} of {path}; `--lossy` drops it, `--tagged` keeps it"
        ))
    }
}

#[cold]
fn cannot_write(error: std::io::Error) -> Error {
    Error::io("the output cannot be written").with_source(error)
}

impl<W: Write> Visitor for JsonWriter<W> {
    #[inline(always)]
    fn open(&mut self, container: Container) -> Result<()> {
        self.begin_value();
        self.buffer.push(if container == Container::Map { b'{' } else { b'[' });
        let key = match (self.fidelity, self.within) {
            (Fidelity::Refuse, Container::Map) => self.key.clone(),
            _ => 0..0,
        };
        let (wrapped, outer_count) = (self.in_meta, self.count);
        self.open.push(Open { container, wrapped, outer_count, key, key_moved: false });
        self.within = container;
        self.needs_comma = false;
        self.in_meta = false;
        self.count = 0;
        Ok(())
    }

    #[inline]
    fn key(&mut self, key: Key<'_>) -> Result<()> {
        match key {
            Key::Int(value) => self.integer_key(value),
            Key::Text(text) => self.member(&[], text.as_bytes().into()),
        }
        Ok(())
    }

    #[inline(always)]
    fn stored_key(&mut self, key: StoredKey<'_>) -> Result<()> {
        match key.plain_text() {
            Some(text) => {
                self.unchecked = true;
                self.member(&[], text);
                Ok(())
            }
            None => self.other_stored_key(key.prefix, key.suffix.record(), key.suffix.bytes()),
        }
    }

    #[inline(always)]
    fn scalar(&mut self, scalar: Scalar<'_>) -> Result<()> {
        if self.fidelity == Fidelity::Refuse && matches!(scalar, Scalar::Bytes(_)) {
            return Err(self.refused("the bytes"));
        }
        self.begin_value();
        match scalar {
            Scalar::String(text) => self.text(text)?,
            Scalar::Number(num) => match numerals::put(num, self.buffer.spare(), 0) {
                Some(len) => self.buffer.advance(len),
                None => self.unusual_number(num),
            },
            Scalar::Null => self.buffer.word(b"null    ", 4),
            Scalar::Bool(true) => self.buffer.word(b"true    ", 4),
            Scalar::Bool(false) => self.buffer.word(b"false   ", 5),
            Scalar::Bytes(bytes) => self.bytes(bytes)?,
        }
        if self.in_meta {
            self.in_meta = false;
            self.buffer.push(b'}');
        }
        self.end_value()
    }

    #[inline(always)]
    fn stored_text(&mut self, text: StoredText<'_>) -> Result<()> {
        if !text.plain || text.bytes.bytes().len() > SHORT || self.in_meta {
            return self.unusual_stored_text(text.bytes.bytes(), text.plain);
        }
        self.unchecked = true;
        self.begin_value();
        self.short_string(text.bytes);
        self.end_value()
    }

    #[inline(always)]
    fn close(&mut self) -> Result<()> {
        let closed = self.open.pop().expect("close comes after open");
        if self.layout == Layout::Pretty && self.needs_comma {
            self.new_line();
        }
        let spare = self.buffer.spare();
        spare[0] = if closed.container == Container::Map { b'}' } else { b']' };
        spare[1] = b'}';
        self.buffer.advance(1 + usize::from(closed.wrapped));
        self.within = self.open.last().map_or(Container::Map, |outer| outer.container);
        self.count = closed.outer_count;
        if closed.key_moved {
            self.keys.truncate(closed.key.start);
        }
        if self.open.is_empty() {
            self.key = 0..0;
        }
        self.end_value()
    }

    fn meta(&mut self, name: &str, value: &str) -> Result<()> {
        match self.fidelity {
            Fidelity::Refuse => return Err(self.refused("the metadata")),
            Fidelity::Lossy => return Ok(()),
            Fidelity::Tagged => {}
        }
        if self.in_meta {
            self.buffer.push(b',');
            if self.layout == Layout::Pretty {
                self.buffer.push(b' ');
            }
        } else {
            self.begin_value();
            self.in_meta = true;
            self.buffer.push(b'{');
            self.tag(META);
            self.buffer.push(b'{');
        }
        self.text(Text::new(name))?;
        self.colon();
        self.text(Text::new(value))
    }
}

impl<W> fmt::Debug for JsonWriter<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JsonWriter").field("depth", &self.open.len()).finish_non_exhaustive()
    }
}
