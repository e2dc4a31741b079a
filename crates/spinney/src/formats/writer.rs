//! The printer of JSON: visitor calls become text in a buffer.
//!
//! It knows what JSON cannot say (metadata and bytes) and nothing of where values come from.

use std::fmt;
use std::io::Write;

use spinney_core::{Container, Error, Key, Path, Result, Scalar, Text, Value, Visitor};

use super::tagged::{BYTES, META, PREFIX, VALUE};
use super::{base64, quote};

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
    buffer: Vec<u8>,
    layout: Layout,
    fidelity: Fidelity,
    /// Where the value stands, for errors.
    base: Path,
    open: Vec<Open>,
    /// The innermost container, as in `open`; `Map` at the root, where nothing comes before a value.
    within: Container,
    /// Whether a member stands before the next one.
    needs_comma: bool,
    /// Whether metadata of the next value has begun.
    in_meta: bool,
    /// Members begun in the innermost container.
    count: u64,
    /// Where the last key stands in `buffer`, between its quotes.
    key: std::ops::Range<usize>,
    /// The keys of the maps on the way, as printed; only kept for [`Fidelity::Refuse`].
    keys: Vec<u8>,
}

struct Open {
    container: Container,
    /// Whether a form must be closed behind it.
    wrapped: bool,
    /// What `count` and the length of `keys` were outside.
    outer_count: u64,
    outer_keys_len: usize,
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
            buffer: Vec::with_capacity(FLUSH_LEN + FLUSH_LEN / 4),
            layout,
            fidelity,
            base: Path::root(),
            open: Vec::new(),
            within: Container::Map,
            needs_comma: false,
            in_meta: false,
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
    /// `Io`.
    pub fn finish(mut self) -> Result<W> {
        self.flush()?;
        self.out.flush().map_err(cannot_write)?;
        Ok(self.out)
    }

    #[cold]
    fn flush(&mut self) -> Result<()> {
        self.out.write_all(&self.buffer).map_err(cannot_write)?;
        self.buffer.clear();
        Ok(())
    }

    /// Prints what stands between the last member and the next.
    #[inline(always)]
    fn begin_member(&mut self) {
        self.count += 1;
        if self.needs_comma {
            self.buffer.push(b',');
        }
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
        let len = self.buffer.len() + 2 * self.open.len();
        self.buffer.resize(len, b' ');
    }

    fn colon(&mut self) {
        let colon: &[u8] = if self.layout == Layout::Pretty { b": " } else { b":" };
        self.buffer.extend_from_slice(colon);
    }

    /// A name of a form, which needs no escaping.
    fn tag(&mut self, name: &str) {
        self.buffer.push(b'"');
        self.buffer.extend_from_slice(name.as_bytes());
        self.buffer.push(b'"');
        self.colon();
    }

    fn end_meta(&mut self) {
        self.buffer.extend_from_slice(b"},");
        if self.layout == Layout::Pretty {
            self.buffer.push(b' ');
        }
        self.tag(VALUE);
    }

    #[inline(always)]
    fn string(&mut self, text: Text<'_>) -> Result<()> {
        if text.text.len() > PIECE_LEN {
            return self.long_string(text);
        }
        self.buffer.push(b'"');
        match text.plain {
            true => self.buffer.extend_from_slice(text.text.as_bytes()),
            false => quote::escape(text.text, &mut self.buffer),
        }
        self.buffer.push(b'"');
        Ok(())
    }

    #[cold]
    fn long_string(&mut self, text: Text<'_>) -> Result<()> {
        self.buffer.push(b'"');
        let mut rest = text.text;
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(rest.floor_char_boundary(PIECE_LEN));
            match text.plain {
                true => self.buffer.extend_from_slice(piece.as_bytes()),
                false => quote::escape(piece, &mut self.buffer),
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
            base64::encode(piece, &mut self.buffer);
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
                    let end =
                        self.open.get(level + 2).map_or(self.keys.len(), |o| o.outer_keys_len);
                    quote::unquote(&self.keys[inner.outer_keys_len..end])
                }
                (Container::Map, None) => quote::unquote(&self.buffer[self.key.clone()]),
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
    #[inline]
    fn open(&mut self, container: Container) -> Result<()> {
        let outer_keys_len = self.keys.len();
        if self.fidelity == Fidelity::Refuse && self.within == Container::Map {
            self.keys.extend_from_slice(&self.buffer[self.key.clone()]);
        }
        self.begin_value();
        self.buffer.push(if container == Container::Map { b'{' } else { b'[' });
        let (wrapped, outer_count) = (self.in_meta, self.count);
        self.open.push(Open { container, wrapped, outer_count, outer_keys_len });
        self.within = container;
        self.needs_comma = false;
        self.in_meta = false;
        self.count = 0;
        Ok(())
    }

    #[inline]
    fn key(&mut self, key: Key<'_>) -> Result<()> {
        self.begin_member();
        self.buffer.push(b'"');
        let start = self.buffer.len();
        match key {
            Key::Int(value) => {
                let mut digits = itoa::Buffer::new();
                self.buffer.extend_from_slice(digits.format(value).as_bytes());
            }
            Key::Text(text) => {
                if self.fidelity == Fidelity::Tagged && text.starts_with(PREFIX) {
                    self.buffer.extend_from_slice(PREFIX.as_bytes());
                }
                quote::checked(text, &mut self.buffer);
            }
        }
        self.key = start..self.buffer.len();
        match self.layout {
            Layout::Compact => self.buffer.extend_from_slice(b"\":"),
            Layout::Pretty => self.buffer.extend_from_slice(b"\": "),
        }
        Ok(())
    }

    #[inline]
    fn scalar(&mut self, scalar: Scalar<'_>) -> Result<()> {
        if self.fidelity == Fidelity::Refuse && matches!(scalar, Scalar::Bytes(_)) {
            return Err(self.refused("the bytes"));
        }
        self.begin_value();
        match scalar {
            Scalar::String(text) => self.string(text)?,
            Scalar::Number(num) => num.write(&mut self.buffer),
            Scalar::Null => self.buffer.extend_from_slice(b"null"),
            Scalar::Bool(true) => self.buffer.extend_from_slice(b"true"),
            Scalar::Bool(false) => self.buffer.extend_from_slice(b"false"),
            Scalar::Bytes(bytes) => self.bytes(bytes)?,
        }
        if self.in_meta {
            self.in_meta = false;
            self.buffer.push(b'}');
        }
        self.end_value()
    }

    #[inline]
    fn close(&mut self) -> Result<()> {
        let closed = self.open.pop().expect("close comes after open");
        if self.layout == Layout::Pretty && self.needs_comma {
            self.new_line();
        }
        self.buffer.push(if closed.container == Container::Map { b'}' } else { b']' });
        if closed.wrapped {
            self.buffer.push(b'}');
        }
        self.within = self.open.last().map_or(Container::Map, |outer| outer.container);
        self.count = closed.outer_count;
        self.keys.truncate(closed.outer_keys_len);
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
        self.string(Text::new(name))?;
        self.colon();
        self.string(Text::new(value))
    }
}

impl<W> fmt::Debug for JsonWriter<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JsonWriter").field("depth", &self.open.len()).finish_non_exhaustive()
    }
}
