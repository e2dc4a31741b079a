//! What JSON5 adds to JSON (spec.json5.org, version 1.0.0), asked for where JSON ends.

use std::io::BufRead;

use spinney_core::limits::{KEY_LEN_MAX, NUMBER_LEN_MAX};
use spinney_core::{Container, Key, Num, Result, Scalar, Visitor};

use super::Dialect;
use super::reader::{Next, Reader};
use super::unescape::escape;

impl<R: BufRead> Reader<'_, R> {
    /// Skips a comment or one character of white space that JSON does not have.
    pub(super) fn comment_or_space(&mut self, mut at: usize) -> Result<Option<usize>> {
        if self.dialect == Dialect::Json {
            return Ok(None);
        }
        if self.window.text().as_bytes()[at] == b'/' {
            if self.window.end() - at < 2 {
                self.window.fill(at)?;
                at = 0;
            }
            let after = match self.window.text().as_bytes()[at + 1] {
                b'/' => self.line_comment(at + 2),
                b'*' => self.block_comment(at + 2),
                _ => Err(self.window.expected(at + 1, "`//` or `/*`")),
            };
            return after.map(Some);
        }
        let char = self.window.text()[at..].chars().next();
        Ok(char.filter(|&char| is_space(char)).map(|char| at + char.len_utf8()))
    }

    fn line_comment(&mut self, mut at: usize) -> Result<usize> {
        loop {
            let rest = &self.window.text()[at..self.window.end()];
            if let Some(len) = rest.find(is_line_end) {
                return Ok(at + len);
            }
            let more = self.window.fill(self.window.end())?;
            at = 0;
            if !more {
                return Ok(0);
            }
        }
    }

    fn block_comment(&mut self, mut at: usize) -> Result<usize> {
        loop {
            let rest = &self.window.text()[at..self.window.end()];
            if let Some(len) = rest.find("*/") {
                return Ok(at + len + 2);
            }
            // The first half of the end may be the last byte of the window.
            let keep = self.window.end() - usize::from(rest.ends_with('*'));
            let more = self.window.fill(keep)?;
            at = 0;
            if !more {
                return Err(self.window.expected(self.window.end(), "`*/`"));
            }
        }
    }

    /// Skips what JSON does not have between tokens; `what` is expected instead.
    #[cold]
    pub(super) fn skip_other(&mut self, at: usize, what: &str) -> Result<usize> {
        match self.comment_or_space(at)? {
            Some(after) => Ok(after),
            None => Err(self.window.expected(at, what)),
        }
    }

    /// Reads where a value is expected and JSON has none.
    #[cold]
    pub(super) fn other_value<V: Visitor + ?Sized>(
        &mut self,
        at: usize,
        visitor: &mut V,
    ) -> Result<Next> {
        if self.dialect == Dialect::Json {
            return Err(self.window.expected(at, "a value"));
        }
        match self.window.text().as_bytes()[at] {
            b'\'' => self.difficult_string(at, b'\'', visitor),
            b'+' | b'.' | b'I' | b'N' => {
                let at = self.whole_number(at)?;
                self.number5(at, visitor)
            }
            // After a comma, or after a comment in an empty list.
            b']' if self.open.last() == Some(&Container::List) => self.close(at, visitor),
            _ => self.skip_other(at, "a value").map(Next::Value),
        }
    }

    /// Reads where a key is expected that does not start with `"`.
    #[cold]
    pub(super) fn other_key<V: Visitor + ?Sized>(
        &mut self,
        at: usize,
        what: &str,
        visitor: &mut V,
    ) -> Result<Next> {
        if self.dialect == Dialect::Json {
            return Err(self.window.expected(at, what));
        }
        let at = self.significant(at)?;
        match self.window.text().as_bytes()[at] {
            quote @ (b'"' | b'\'') => self.difficult_key(at, quote, visitor),
            b'}' => self.close(at, visitor),
            _ => self.identifier(at, visitor),
        }
    }

    /// Reads an unquoted key: an `IdentifierName` of ECMAScript.
    fn identifier<V: Visitor + ?Sized>(&mut self, at: usize, visitor: &mut V) -> Result<Next> {
        let (at, end) = self.whole_identifier(at)?;
        let raw = &self.window.text()[at..end];
        self.scratch.clear();
        let mut from = 0;
        while let Some(char) = raw[from..].chars().next() {
            let (start, char_at) = (self.scratch.len(), at + from);
            from += match char {
                '\\' if raw[from..].starts_with("\\u") => {
                    escape(&raw[from..], self.dialect, &mut self.scratch)
                        .map_err(|message| self.window.invalid(at + from, message))?
                }
                char => {
                    self.scratch.push(char);
                    char.len_utf8()
                }
            };
            let is_valid = match start {
                0 => self.scratch.starts_with(starts_identifier),
                _ => self.scratch[start..].starts_with(continues_identifier),
            };
            if !is_valid {
                return Err(self.window.expected(char_at, "a character of an unquoted key"));
            }
        }
        if self.scratch.is_empty() {
            return Err(self.window.expected(at, "a key or `}`"));
        }
        if self.scratch.len() > KEY_LEN_MAX {
            return Err(self.too_long(at, "a key", KEY_LEN_MAX));
        }
        let key = Key::new(&self.scratch);
        visitor.key(key).map_err(|error| self.window.locate(at, error))?;
        self.colon(end)
    }

    /// Where the identifier and its escapes start and end, all in the window.
    fn whole_identifier(&mut self, mut at: usize) -> Result<(usize, usize)> {
        let mut len = 0;
        loop {
            let rest = &self.window.text()[at + len..self.window.end()];
            let is_part = |char: char| char == '\\' || continues_identifier(char);
            len += rest.find(|char| !is_part(char)).unwrap_or(rest.len());
            // An escape is six times as long as what it stands for.
            if at + len < self.window.end() || len > 6 * KEY_LEN_MAX {
                return Ok((at, at + len));
            }
            let more = self.window.fill(at)?;
            at = 0;
            if !more {
                return Ok((0, len));
            }
        }
    }

    /// Reads a number; all of it is in the window.
    pub(super) fn number5<V: Visitor + ?Sized>(
        &mut self,
        at: usize,
        visitor: &mut V,
    ) -> Result<Next> {
        let text = &self.window.text()[at..self.window.end()];
        let sign_len = usize::from(text.starts_with(['+', '-']));
        let (sign, unsigned) = text.split_at(sign_len);
        self.scratch.clear();
        if sign == "-" {
            self.scratch.push('-');
        }
        for word in ["Infinity", "NaN"] {
            if unsigned.starts_with(word) {
                let message = format!("expected a finite number, found `{sign}{word}`");
                return Err(self.window.invalid(at, &message));
            }
        }
        let len = match unsigned.as_bytes() {
            [b'0', b'x' | b'X', ..] => sign_len + self.hexadecimal(at + sign_len)?,
            _ => {
                let len = sign_len + decimal(unsigned, &mut self.scratch);
                match Num::scan(self.scratch.as_bytes()) {
                    Ok(_) => len,
                    // The texts are the same but for the sign and a point at either end.
                    Err(error) => {
                        let dropped = sign_len - usize::from(sign == "-");
                        return Err(self.bad_number(at + dropped, error));
                    }
                }
            }
        };
        let num = Num::parse(&self.scratch).map_err(|error| self.window.locate(at, error))?;
        visitor.scalar(Scalar::Number(num)).map_err(|error| self.window.locate(at, error))?;
        Ok(Next::After(at + len))
    }

    /// Appends the decimal text of the hexadecimal number at `at`; returns its length.
    fn hexadecimal(&mut self, at: usize) -> Result<usize> {
        let text = &self.window.text()[at + 2..self.window.end()];
        let len = text.bytes().take_while(u8::is_ascii_hexdigit).count();
        if len == 0 {
            return Err(self.window.expected(at + 2, "a hexadecimal digit"));
        }
        let digits = text[..len].trim_start_matches('0');
        if digits.len() > 16 || len > NUMBER_LEN_MAX {
            let message = "a hexadecimal number is above 2^64 - 1; write it in decimal digits";
            return Err(self.window.locate(at, spinney_core::Error::limit_exceeded(message)));
        }
        let value = digits.chars().fold(0u64, |value, digit| {
            value << 4 | u64::from(digit.to_digit(16).expect("a hexadecimal digit"))
        });
        self.scratch.push_str(itoa::Buffer::new().format(value));
        Ok(2 + len)
    }
}

/// Appends the number at the start of `text` with a digit on both sides of its point, or with no
/// point when no digit follows it; returns the length in `text`.
fn decimal(text: &str, out: &mut String) -> usize {
    let digits = |from: usize| text[from..].bytes().take_while(u8::is_ascii_digit).count();
    let integer_len = digits(0);
    let has_point = text[integer_len..].starts_with('.');
    let fraction_len = if has_point { digits(integer_len + 1) } else { 0 };
    let mut len = integer_len;
    if has_point && integer_len + fraction_len > 0 {
        len += 1 + fraction_len;
        out.push_str(if integer_len == 0 { "0" } else { &text[..integer_len] });
        if fraction_len > 0 {
            out.push_str(&text[integer_len..len]);
        }
    } else {
        out.push_str(&text[..integer_len]);
    }
    if text[len..].starts_with(['e', 'E']) {
        let sign_len = usize::from(text[len + 1..].starts_with(['+', '-']));
        let exponent_len = 1 + sign_len + digits(len + 1 + sign_len);
        out.push_str(&text[len..len + exponent_len]);
        len += exponent_len;
    }
    len
}

/// `LineTerminator` of ECMAScript.
fn is_line_end(char: char) -> bool {
    matches!(char, '\n' | '\r' | '\u{2028}' | '\u{2029}')
}

/// White space of JSON5 (section 8) that is not ASCII.
fn is_space(char: char) -> bool {
    char as u32 > 0x7f && (char == '\u{feff}' || (char.is_whitespace() && char != '\u{85}'))
}

fn starts_identifier(char: char) -> bool {
    matches!(char, '$' | '_') || unicode_ident::is_xid_start(char)
}

fn continues_identifier(char: char) -> bool {
    matches!(char, '$' | '\u{200c}' | '\u{200d}') || unicode_ident::is_xid_continue(char)
}
