//! The words of a query: names, strings, integers, space; and errors that say where.

use spinney_core::error::{Error, Result};
use spinney_core::number::NumError;
use spinney_core::{Num, Number};

use crate::slice::INTEGER_MAX;

/// A text and how far it is read.
pub struct Scanner<'t> {
    /// The whole text.
    pub text: &'t str,
    /// Bytes that are read.
    pub at: usize,
}

impl<'t> Scanner<'t> {
    /// What is not read yet.
    pub fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    /// The next character.
    pub fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    /// Goes on behind a word, if it is next.
    pub fn eat(&mut self, word: &str) -> bool {
        let is_next = self.rest().starts_with(word);
        self.at += if is_next { word.len() } else { 0 };
        is_next
    }

    /// Goes on behind blank space.
    pub fn skip_space(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start_matches([' ', '\t', '\n', '\r']).len();
    }

    /// Takes all characters of a kind that are next.
    pub fn take_while(&mut self, is_of_kind: impl Fn(char) -> bool) -> &'t str {
        let rest = self.rest();
        let len = rest.find(|char| !is_of_kind(char)).unwrap_or(rest.len());
        self.at += len;
        &rest[..len]
    }

    /// A name without quotes, if one is next.
    pub fn shorthand(&mut self) -> Option<&'t str> {
        let is_first = |char: char| char.is_ascii_alphabetic() || char == '_' || !char.is_ascii();
        match self.peek() {
            Some(char) if is_first(char) => {
                Some(self.take_while(|char| is_first(char) || char.is_ascii_digit()))
            }
            _ => None,
        }
    }

    /// An integer, if one is next.
    ///
    /// # Errors
    /// `InvalidInput` for a leading zero, `-0`, and what is beyond the range of I-JSON.
    pub fn integer(&mut self) -> Result<Option<i64>> {
        let begun = self.at;
        let negative = self.eat("-");
        let digits = self.take_while(|char| char.is_ascii_digit());
        if digits.is_empty() {
            return match negative {
                true => Err(self.expected("a digit")),
                false => Ok(None),
            };
        }
        if digits.starts_with('0') && (negative || digits.len() > 1) {
            return Err(self.wrong(begun, "an integer has no leading zeros, and 0 no sign"));
        }
        match digits.parse::<i64>() {
            Ok(value) if value <= INTEGER_MAX => Ok(Some(if negative { -value } else { value })),
            _ => Err(self.wrong(
                begun,
                &format!("the integer is beyond {INTEGER_MAX}, the largest that JSON keeps exact"),
            )),
        }
    }

    /// The number that is next.
    ///
    /// # Errors
    /// `InvalidInput` when none is; `LimitExceeded` when it is too long.
    pub fn number(&mut self) -> Result<Number> {
        match Num::scan(self.rest().as_bytes()) {
            Ok((num, len)) => {
                self.at += len;
                Ok(num.to_owned())
            }
            Err(NumError::Syntax(at, what)) => {
                self.at += at;
                Err(self.expected(what))
            }
            Err(error @ NumError::Limit) => Err(error.into_error(&[])),
        }
    }

    /// The string that is next, from its quote on.
    ///
    /// # Errors
    /// `InvalidInput` for control characters, escapes that are none, and a missing quote.
    pub fn string(&mut self) -> Result<String> {
        let quote = if self.eat("'") { '\'' } else { '"' };
        self.at += usize::from(self.rest().starts_with('"') && quote == '"');
        let mut out = String::new();
        loop {
            out.push_str(self.take_while(|char| char != quote && char != '\\' && char >= ' '));
            match self.peek() {
                Some(char) if char == quote => {
                    self.at += 1;
                    return Ok(out);
                }
                Some('\\') => {
                    self.at += 1;
                    out.push(self.escaped(quote)?);
                }
                Some(_) => return Err(self.expected("an escape such as `\\n` or `\\u000a`")),
                None => return Err(self.expected(&format!("a closing `{quote}`"))),
            }
        }
    }

    /// The character that an escape means, behind its backslash.
    fn escaped(&mut self, quote: char) -> Result<char> {
        let char = match self.peek() {
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some(char @ ('/' | '\\')) => char,
            Some(char) if char == quote => char,
            Some('u') => return self.unicode_escape(),
            _ => {
                return Err(self.expected(&format!(
                    "one of `b`, `f`, `n`, `r`, `t`, `u`, `/`, `\\` and `{quote}` after `\\`"
                )));
            }
        };
        self.at += 1;
        Ok(char)
    }

    /// At the `u` of an escape.
    fn unicode_escape(&mut self) -> Result<char> {
        let begun = self.at;
        let first = self.code_unit()?;
        let units = match first {
            0xd800..0xdc00 if self.eat("\\") => vec![first, self.code_unit()?],
            _ => vec![first],
        };
        let mut chars = char::decode_utf16(units);
        match (chars.next(), chars.next()) {
            (Some(Ok(char)), None) => Ok(char),
            _ => Err(self.wrong(begun, "half of a surrogate pair is no character")),
        }
    }

    fn code_unit(&mut self) -> Result<u16> {
        if !self.eat("u") {
            return Err(self.expected("`u` and the other half of the surrogate pair"));
        }
        let digits =
            self.rest().get(..4).filter(|text| text.bytes().all(|b| b.is_ascii_hexdigit()));
        match digits.and_then(|digits| u16::from_str_radix(digits, 16).ok()) {
            Some(unit) => {
                self.at += 4;
                Ok(unit)
            }
            None => Err(self.expected("four hexadecimal digits")),
        }
    }

    /// The error for what is next.
    #[cold]
    pub fn expected(&self, what: &str) -> Error {
        let found = match self.peek() {
            Some(char) if char < ' ' => format!("U+{:04X}", u32::from(char)),
            Some(char) => format!("`{char}`"),
            None => "the end".to_owned(),
        };
        self.wrong(self.at, &format!("expected {what}, found {found}"))
    }

    /// The error for what stands somewhere.
    #[cold]
    pub fn wrong(&self, at: usize, what: &str) -> Error {
        Error::invalid_input(self.place(at, what))
    }

    /// Says where.
    pub fn place(&self, at: usize, what: &str) -> String {
        let character = self.text[..at].chars().count() + 1;
        format!("JSONPath, character {character}: {what}")
    }
}
