//! Text formats: they read and print trees through [`Visitor`] and know nothing of stores.
//!
//! | format | reading | printing |
//! |---|---|---|
//! | JSON (RFC 8259) | [`read`], [`parse`] | [`JsonWriter`], [`print`](fn@print) |
//! | JSON Lines (jsonlines.org) | [`read_lines`] | |
//! | JSON5 (spec.json5.org) | [`read`] with [`Dialect::Json5`] | |
//!
//! Nothing here recurses. Reading needs a window of 256 KiB and the longest token, printing a
//! buffer of 64 KiB, however long the text is.

mod base64;
mod buffer;
mod digits;
mod json5;
mod numerals;
mod quote;
mod reader;
mod scan;
mod tagged;
mod unescape;
mod window;
mod writer;

#[cfg(test)]
mod tests;

use std::io::BufRead;

use spinney_core::value::ValueBuilder;
use spinney_core::{Result, Value, Visitor};

#[cfg(feature = "json")]
pub(crate) use base64::decode as decode_base64;
pub use tagged::Untag;
pub use window::WINDOW_LEN;
pub use writer::{Fidelity, JsonWriter, Layout, print};

/// Which grammar a text follows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// RFC 8259, to the letter.
    #[default]
    Json,
    /// JSON5: comments, trailing commas, unquoted keys, single quotes and more numbers.
    ///
    /// Numbers become JSON texts: a leading `+` is dropped, `.5` is `0.5`, `5.` is `5`, hexadecimal
    /// integers are decimal and at most 2^64 - 1 in magnitude. `Infinity` and `NaN` are refused.
    Json5,
}

/// How a text is cut into values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Framing {
    /// One value, with only white space around it.
    #[default]
    One,
    /// One value a line, read as one list; blank lines are skipped.
    Lines,
}

/// What [`read_with`] may be told.
#[derive(Default)]
pub struct ReadOptions<'a> {
    /// The grammar.
    pub dialect: Dialect,
    /// One value or one a line.
    pub framing: Framing,
    /// Whether the forms of [`Fidelity::Tagged`] become metadata and bytes again.
    pub tagged: bool,
    /// Called with the bytes read so far, once for each piece of at most 256 KiB.
    pub progress: Option<&'a mut dyn FnMut(u64)>,
}

/// Reads exactly one value; a byte order mark before it is skipped. A slice is read where it lies; for a file take
/// a `BufReader` of [`WINDOW_LEN`] bytes.
///
/// # Errors
/// `InvalidInput` with `line L, column C: expected X, found Y` (columns count characters from 1);
/// `LimitExceeded` beyond the limits of [`spinney_core::limits`]; `Io` from `input`; errors of
/// `visitor` with the place put before them. What the visitor received before stays received.
///
/// # Complexity
/// O(n) time for n bytes; memory for the window, the longest token and 512 levels.
pub fn read(
    input: impl BufRead,
    dialect: Dialect,
    visitor: &mut (impl Visitor + ?Sized),
) -> Result<()> {
    read_with(input, ReadOptions { dialect, ..ReadOptions::default() }, visitor)
}

/// Reads JSON Lines as one list.
///
/// # Errors
/// As [`read`]; also `InvalidInput` when a value goes on after its line.
pub fn read_lines(input: impl BufRead, visitor: &mut (impl Visitor + ?Sized)) -> Result<()> {
    read_with(input, ReadOptions { framing: Framing::Lines, ..ReadOptions::default() }, visitor)
}

/// Reads with every option.
///
/// # Errors
/// As [`read`] and [`read_lines`]; also `InvalidInput` for a malformed tagged form.
pub fn read_with(
    input: impl BufRead,
    options: ReadOptions<'_>,
    visitor: &mut (impl Visitor + ?Sized),
) -> Result<()> {
    read_windowed(input, options, WINDOW_LEN, visitor)
}

/// Parses a JSON text.
///
/// # Errors
/// As [`read`]; also `InvalidInput` for a key that stands twice in one object.
///
/// # Examples
/// ```
/// use spinney::formats::{self, Fidelity, Layout};
///
/// let value = formats::parse(r#"{"b": [1.10, 1e400], "a": {}}"#)?;
/// let text = formats::print(&value, Layout::Compact, Fidelity::Refuse)?;
/// assert_eq!(text, r#"{"a":{},"b":[1.10,1e400]}"#);
/// # Ok::<(), spinney_core::Error>(())
/// ```
pub fn parse(text: &str) -> Result<Value> {
    let mut builder = ValueBuilder::default();
    let window_len = text.len().min(WINDOW_LEN);
    read_windowed(text.as_bytes(), ReadOptions::default(), window_len, &mut builder)?;
    Ok(builder.finish().expect("the reader gives exactly one value"))
}

fn read_windowed(
    input: impl BufRead,
    options: ReadOptions<'_>,
    window_len: usize,
    visitor: &mut (impl Visitor + ?Sized),
) -> Result<()> {
    let tagged = options.tagged;
    let mut reader = reader::Reader::new(input, options, window_len);
    match tagged {
        true => reader.read(&mut Untag::new(visitor)),
        false => reader.read(visitor),
    }
}
