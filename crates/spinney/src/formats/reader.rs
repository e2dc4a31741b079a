//! The streaming reader of JSON: a loop over tokens with an explicit stack.
//!
//! It owns the grammar of RFC 8259. What only JSON5 has is asked for where JSON would be refused
//! (see [`super::json5`]), so strict reading pays nothing for it. Places are offsets into the
//! window; a token is reported from its start, which stays in the window until it is done.

use std::io::BufRead;

use spinney_core::limits::{DEPTH_MAX, KEY_LEN_MAX, NUMBER_LEN_MAX, VALUE_LEN_MAX};
use spinney_core::number::NumError;
use spinney_core::{Container, Error, Key, Num, Result, Scalar, Text, Visitor};

use super::unescape::unescape;
use super::window::Window;
use super::{Dialect, Framing, ReadOptions, digits, scan};

/// Reads values from one input.
pub(super) struct Reader<'a, R> {
    pub(super) window: Window<'a, R>,
    /// The text of a string or number that does not stand in the window as it is.
    pub(super) scratch: String,
    pub(super) open: Vec<Container>,
    depth_max: usize,
    pub(super) dialect: Dialect,
    framing: Framing,
    /// The byte values that are skipped between tokens, as [`scan::SPACE`].
    pub(super) space: u64,
}

/// Where reading goes on.
pub(super) enum Next {
    /// A value is expected here.
    Value(usize),
    /// A value ended here.
    After(usize),
}

impl<'a, R: BufRead> Reader<'a, R> {
    pub(super) fn new(source: R, options: ReadOptions<'a>, window_len: usize) -> Self {
        Reader {
            window: Window::new(source, window_len, options.progress),
            scratch: String::new(),
            open: Vec::new(),
            // A value may be wrapped for its metadata, and bytes for being bytes.
            depth_max: if options.tagged { 2 * DEPTH_MAX + 2 } else { DEPTH_MAX },
            dialect: options.dialect,
            framing: options.framing,
            space: match options.dialect {
                Dialect::Json => scan::SPACE,
                Dialect::Json5 => scan::SPACE | 1 << 0x0b | 1 << 0x0c,
            },
        }
    }

    /// Reads the whole input.
    pub(super) fn read(&mut self, visitor: &mut (impl Visitor + ?Sized)) -> Result<()> {
        match self.framing {
            Framing::One => {
                let at = self.value(0, visitor)?;
                let at = self.significant(at)?;
                match self.window.is_finished(at) {
                    true => Ok(()),
                    false => Err(self.window.expected(at, "the end of the input")),
                }
            }
            Framing::Lines => self.lines(visitor),
        }
    }

    fn lines(&mut self, visitor: &mut (impl Visitor + ?Sized)) -> Result<()> {
        let all_space = self.space;
        let line_space = all_space & !(1 << b'\n');
        self.open(0, Container::List, visitor)?;
        self.open.clear();
        self.depth_max -= 1;
        let mut at = 0;
        loop {
            self.space = all_space;
            at = self.significant(at)?;
            if self.window.is_finished(at) {
                return visitor.close().map_err(|error| self.window.locate(at, error));
            }
            self.space = line_space;
            at = self.value(at, visitor)?;
            at = self.significant(at)?;
            if !self.window.is_finished(at) && self.window.text().as_bytes()[at] != b'\n' {
                return Err(self.window.expected(at, "the end of the line"));
            }
        }
    }

    /// Reads one value that begins at or after `at`; returns where it ended.
    fn value<V: Visitor + ?Sized>(&mut self, at: usize, visitor: &mut V) -> Result<usize> {
        let mut next = Next::Value(at);
        loop {
            next = match next {
                Next::Value(at) => self.any(at, visitor)?,
                Next::After(at) if self.open.is_empty() => return Ok(at),
                Next::After(at) => self.after(at, visitor)?,
            }
        }
    }

    /// Reads a scalar or the start of a container.
    #[inline(always)]
    fn any<V: Visitor + ?Sized>(&mut self, at: usize, visitor: &mut V) -> Result<Next> {
        let (at, byte) = self.token(at)?;
        match byte {
            b'"' => self.string(at, visitor),
            b'{' => {
                self.open(at, Container::Map, visitor)?;
                let (at, byte) = self.token(at + 1)?;
                match byte {
                    b'"' => self.key(at, visitor),
                    b'}' => self.close(at, visitor),
                    _ => self.other_key(at, "a key in `\"` or `}`", visitor),
                }
            }
            b'[' => {
                self.open(at, Container::List, visitor)?;
                let (at, byte) = self.token(at + 1)?;
                match byte {
                    b']' => self.close(at, visitor),
                    _ => Ok(Next::Value(at)),
                }
            }
            b'-' | b'0'..=b'9' => self.number(at, visitor),
            b't' => self.word(at, "true", Scalar::Bool(true), visitor),
            b'f' => self.word(at, "false", Scalar::Bool(false), visitor),
            b'n' => self.word(at, "null", Scalar::Null, visitor),
            _ => self.other_value(at, visitor),
        }
    }

    /// Reads what follows a value inside a container.
    #[inline(always)]
    fn after<V: Visitor + ?Sized>(&mut self, at: usize, visitor: &mut V) -> Result<Next> {
        let (at, byte) = self.token(at)?;
        match (self.open.last(), byte) {
            (Some(Container::Map), b',') => {
                let (at, byte) = self.token(at + 1)?;
                match byte {
                    b'"' => self.key(at, visitor),
                    _ => self.other_key(at, "a key in `\"`", visitor),
                }
            }
            (Some(Container::Map), b'}') => self.close(at, visitor),
            (Some(Container::List), b',') => Ok(Next::Value(at + 1)),
            (Some(Container::List), b']') => self.close(at, visitor),
            (Some(Container::Map), _) => Ok(Next::After(self.skip_other(at, "`,` or `}`")?)),
            _ => Ok(Next::After(self.skip_other(at, "`,` or `]`")?)),
        }
    }

    /// Skips white space; returns the byte that follows it, 0 at the end of the input.
    #[inline(always)]
    pub(super) fn token(&mut self, at: usize) -> Result<(usize, u8)> {
        let bytes = self.window.text().as_bytes();
        let byte = bytes[at];
        if byte > b' ' {
            return Ok((at, byte));
        }
        let at = scan::skip_space(bytes, at, self.space);
        let byte = bytes[at];
        if byte != 0 {
            return Ok((at, byte));
        }
        let at = self.significant(at)?;
        Ok((at, self.window.text().as_bytes()[at]))
    }

    /// Skips white space, and comments where they are allowed, over the ends of windows.
    #[cold]
    pub(super) fn significant(&mut self, mut at: usize) -> Result<usize> {
        loop {
            at = scan::skip_space(self.window.text().as_bytes(), at, self.space);
            if at == self.window.end() {
                let more = self.window.fill(at)?;
                at = 0;
                if !more {
                    return Ok(0);
                }
            } else if let Some(after) = self.comment_or_space(at)? {
                at = after;
            } else {
                return Ok(at);
            }
        }
    }

    #[inline(always)]
    fn open<V: Visitor + ?Sized>(
        &mut self,
        at: usize,
        container: Container,
        visitor: &mut V,
    ) -> Result<()> {
        if self.open.len() >= self.depth_max {
            return Err(self.too_deep(at));
        }
        self.open.push(container);
        visitor.open(container).map_err(|error| self.window.locate(at, error))
    }

    #[inline(always)]
    pub(super) fn close<V: Visitor + ?Sized>(
        &mut self,
        at: usize,
        visitor: &mut V,
    ) -> Result<Next> {
        visitor.close().map_err(|error| self.window.locate(at, error))?;
        self.open.pop();
        Ok(Next::After(at + 1))
    }

    /// Reads a key that starts with `"`, and its colon.
    #[inline(always)]
    fn key<V: Visitor + ?Sized>(&mut self, at: usize, visitor: &mut V) -> Result<Next> {
        let text = self.window.text();
        let stop = scan::string_stop(text.as_bytes(), at + 1, b'"');
        if text.as_bytes()[stop] != b'"' || stop - at > KEY_LEN_MAX {
            return self.difficult_key(at, b'"', visitor);
        }
        let key = Key::new(&text[at + 1..stop]);
        visitor.key(key).map_err(|error| self.window.locate(at, error))?;
        match self.window.text().as_bytes()[stop + 1] {
            b':' => Ok(Next::Value(stop + 2)),
            _ => self.colon(stop + 1),
        }
    }

    #[inline(always)]
    fn string<V: Visitor + ?Sized>(&mut self, at: usize, visitor: &mut V) -> Result<Next> {
        let text = self.window.text();
        let stop = scan::string_stop(text.as_bytes(), at + 1, b'"');
        if text.as_bytes()[stop] != b'"' || stop - at > VALUE_LEN_MAX {
            return self.difficult_string(at, b'"', visitor);
        }
        let string = Scalar::String(Text { text: &text[at + 1..stop], plain: true });
        visitor.scalar(string).map_err(|error| self.window.locate(at, error))?;
        Ok(Next::After(stop + 1))
    }

    #[inline(always)]
    fn number<V: Visitor + ?Sized>(&mut self, at: usize, visitor: &mut V) -> Result<Next> {
        let bytes = self.window.text().as_bytes();
        if let Some((num, after)) = digits::scan(bytes, at) {
            let scalar = Scalar::Number(num);
            visitor.scalar(scalar).map_err(|error| self.window.locate(at, error))?;
            return Ok(Next::After(after));
        }
        self.unusual_number(at, visitor)
    }

    #[inline(never)]
    fn unusual_number<V: Visitor + ?Sized>(&mut self, at: usize, visitor: &mut V) -> Result<Next> {
        let bytes = self.window.text().as_bytes();
        match Num::scan(&bytes[at..]) {
            // The padding may be where the number goes on; `x` may make it hexadecimal.
            Ok((num, len)) if !matches!(bytes[at + len], 0 | b'x' | b'X') => {
                let scalar = Scalar::Number(num);
                visitor.scalar(scalar).map_err(|error| self.window.locate(at, error))?;
                Ok(Next::After(at + len))
            }
            _ => self.difficult_number(at, visitor),
        }
    }

    #[inline(always)]
    fn word<V: Visitor + ?Sized>(
        &mut self,
        at: usize,
        word: &'static str,
        scalar: Scalar<'static>,
        visitor: &mut V,
    ) -> Result<Next> {
        let bytes = self.window.text().as_bytes();
        match bytes[at..].starts_with(word.as_bytes()) {
            true => {
                visitor.scalar(scalar).map_err(|error| self.window.locate(at, error))?;
                Ok(Next::After(at + word.len()))
            }
            false => self.difficult_word(at, word, scalar, visitor),
        }
    }

    #[cold]
    fn difficult_word<V: Visitor + ?Sized>(
        &mut self,
        at: usize,
        word: &'static str,
        scalar: Scalar<'static>,
        visitor: &mut V,
    ) -> Result<Next> {
        let at = self.expect_word(at, word)?;
        visitor.scalar(scalar).map_err(|error| self.window.locate(at, error))?;
        Ok(Next::After(at + word.len()))
    }

    /// Checks that `word` stands at `at`, which may move.
    pub(super) fn expect_word(&mut self, mut at: usize, word: &str) -> Result<usize> {
        let mut more = true;
        while more && self.window.end() - at < word.len() {
            more = self.window.fill(at)?;
            at = 0;
        }
        let bytes = &self.window.text().as_bytes()[at..];
        match word.bytes().zip(bytes).position(|(expected, &found)| expected != found) {
            None => Ok(at),
            Some(offset) => Err(self.window.expected(at + offset, &format!("`{word}`"))),
        }
    }

    #[cold]
    pub(super) fn colon(&mut self, at: usize) -> Result<Next> {
        let at = self.significant(at)?;
        match self.window.text().as_bytes()[at] {
            b':' => Ok(Next::Value(at + 1)),
            _ => Err(self.window.expected(at, "`:`")),
        }
    }

    /// Reads a key with escapes, other quotes, or the end of the window in it.
    #[cold]
    pub(super) fn difficult_key<V: Visitor + ?Sized>(
        &mut self,
        at: usize,
        quote: u8,
        visitor: &mut V,
    ) -> Result<Next> {
        let (at, after) = self.quoted(at, quote, KEY_LEN_MAX, "a key")?;
        let key = Key::new(&self.scratch);
        visitor.key(key).map_err(|error| self.window.locate(at, error))?;
        self.colon(after)
    }

    /// Reads a string with escapes, other quotes, or the end of the window in it.
    #[inline(never)]
    pub(super) fn difficult_string<V: Visitor + ?Sized>(
        &mut self,
        at: usize,
        quote: u8,
        visitor: &mut V,
    ) -> Result<Next> {
        let (at, after) = self.quoted(at, quote, VALUE_LEN_MAX, "a string")?;
        let text = &*self.scratch;
        let string = Scalar::String(Text { text, plain: scan::is_plain(text) });
        visitor.scalar(string).map_err(|error| self.window.locate(at, error))?;
        Ok(Next::After(after))
    }

    /// Puts the text between quotes into `scratch`; returns where it starts now and what is after.
    fn quoted(
        &mut self,
        at: usize,
        quote: u8,
        len_max: usize,
        name: &str,
    ) -> Result<(usize, usize)> {
        let (at, close, escapes) = self.closing_quote(at, quote, len_max, name)?;
        let raw = &self.window.text()[at + 1..close];
        self.scratch.clear();
        match escapes {
            0 => self.scratch.push_str(raw),
            _ => unescape(raw, self.dialect, &mut self.scratch)
                .map_err(|(offset, message)| self.window.invalid(at + 1 + offset, message))?,
        }
        match self.scratch.len() > len_max {
            true => Err(self.too_long(at, name, len_max)),
            false => Ok((at, close + 1)),
        }
    }

    /// The start of the string, the place of its closing quote and the number of escapes.
    fn closing_quote(
        &mut self,
        mut at: usize,
        quote: u8,
        len_max: usize,
        name: &str,
    ) -> Result<(usize, usize, usize)> {
        let mut escapes = 0;
        let mut from = at + 1;
        loop {
            let bytes = self.window.text().as_bytes();
            let stop = scan::string_stop(bytes, from, quote);
            // An escape shortens the text by at most five bytes.
            if stop - at > len_max + 1 + 5 * escapes {
                return Err(self.too_long(at, name, len_max));
            }
            let escape_len = match bytes[stop..] {
                [b'\\', b'\r', b'\n', ..] => 3,
                // A line feed may follow; it would be part of the escape.
                [b'\\', b'\r', ..] if stop + 2 < self.window.end() => 2,
                [b'\\', b'\r', ..] => 3,
                [b'\\', ..] => 2,
                _ => 0,
            };
            if stop + escape_len.max(1) > self.window.end() {
                from = stop - at;
                let more = self.window.fill(at)?;
                at = 0;
                if !more {
                    let end = self.window.end();
                    return Err(self.window.expected(end, &format!("`{}`", char::from(quote))));
                }
            } else if escape_len > 0 {
                escapes += 1;
                from = stop + escape_len;
            } else if bytes[stop] == quote {
                return Ok((at, stop, escapes));
            } else if self.dialect == Dialect::Json5 && !matches!(bytes[stop], b'\n' | b'\r') {
                from = stop + 1;
            } else {
                let controls = if self.dialect == Dialect::Json { "controls" } else { "line ends" };
                let what = format!("`{}`; {controls} must be escaped", char::from(quote));
                return Err(self.window.expected(stop, &what));
            }
        }
    }

    /// Reads a number that is malformed, ends with the window, or is one of JSON5 only.
    #[cold]
    fn difficult_number<V: Visitor + ?Sized>(
        &mut self,
        at: usize,
        visitor: &mut V,
    ) -> Result<Next> {
        let at = self.whole_number(at)?;
        if self.dialect == Dialect::Json5 {
            return self.number5(at, visitor);
        }
        let bytes = &self.window.text().as_bytes()[at..self.window.end()];
        let (num, len) = Num::scan(bytes).map_err(|error| self.bad_number(at, error))?;
        visitor.scalar(Scalar::Number(num)).map_err(|error| self.window.locate(at, error))?;
        Ok(Next::After(at + len))
    }

    /// Reads on until the bytes that a number may consist of end inside the window.
    pub(super) fn whole_number(&mut self, mut at: usize) -> Result<usize> {
        let mut len = 0;
        loop {
            let bytes = &self.window.text().as_bytes()[at + len..self.window.end()];
            let is_part = |byte: &&u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
            len += bytes.iter().take_while(is_part).count();
            if at + len < self.window.end() || len > NUMBER_LEN_MAX {
                return Ok(at);
            }
            let more = self.window.fill(at)?;
            at = 0;
            if !more {
                return Ok(0);
            }
        }
    }

    #[cold]
    pub(super) fn bad_number(&self, at: usize, error: NumError) -> Error {
        match error {
            NumError::Syntax(offset, what) => self.window.expected(at + offset, what),
            NumError::Limit => self.window.locate(at, error.into_error(b"")),
        }
    }

    #[cold]
    pub(super) fn too_long(&self, at: usize, name: &str, len_max: usize) -> Error {
        let message = format!("{name} is longer than {len_max} bytes");
        self.window.locate(at, Error::limit_exceeded(message))
    }

    #[cold]
    fn too_deep(&self, at: usize) -> Error {
        let message = format!("containers are nested deeper than {DEPTH_MAX} levels");
        self.window.locate(at, Error::limit_exceeded(message))
    }
}
