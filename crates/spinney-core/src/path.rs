//! Paths: RFC 6901 JSON Pointers, parsed and built.
//!
//! A segment names a map key or, in a list, a position (`-` is the end). This module knows nothing
//! of what is stored.

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;
use std::str::FromStr;

use crate::error::{Error, Result};
use crate::limits::PATH_LEN_MAX;

/// A JSON Pointer that is known to be well-formed; it dereferences to its text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Path(String);

impl Path {
    /// The path of the root: the empty text.
    pub fn root() -> Path {
        Path::default()
    }

    /// Parses a JSON Pointer.
    ///
    /// # Errors
    /// `InvalidInput` when it is neither empty nor starts with `/`, or holds a `~` that is not `~0`
    /// or `~1`; `LimitExceeded` above 1 MiB.
    pub fn parse(text: &str) -> Result<Path> {
        check(text)?;
        Ok(Path(text.to_owned()))
    }

    /// Appends a segment, escaping it.
    pub fn push(&mut self, segment: &str) {
        self.0.push('/');
        escape_into(segment, &mut self.0);
    }

    /// This path and one segment more.
    pub fn child(&self, segment: impl fmt::Display) -> Path {
        let mut child = self.clone();
        child.push(&segment.to_string());
        child
    }

    /// Drops the last segment; the root stays the root.
    pub fn pop(&mut self) {
        self.0.truncate(self.0.rfind('/').unwrap_or(0));
    }
}

impl Deref for Path {
    type Target = str;
    fn deref(&self) -> &str {
        &self.0
    }
}

impl FromStr for Path {
    type Err = Error;
    fn from_str(text: &str) -> Result<Path> {
        Path::parse(text)
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Display(self).fmt(f)
    }
}

/// Shows a path in messages: in backticks, or `the root`.
pub struct Display<'a>(pub &'a str);

impl fmt::Display for Display<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            "" => f.write_str("the root"),
            path if path.len() > 200 => {
                let cut = (0..=200).rev().find(|&at| path.is_char_boundary(at)).unwrap_or(0);
                write!(f, "`{}…`", &path[..cut])
            }
            path => write!(f, "`{path}`"),
        }
    }
}

/// Checks that `text` is a JSON Pointer.
///
/// # Errors
/// As [`Path::parse`].
#[inline]
pub fn check(text: &str) -> Result<()> {
    check_from(text, 0)
}

/// As [`check`], when the first `from` bytes are a path that was checked.
///
/// # Errors
/// As [`Path::parse`].
#[inline]
pub fn check_from(text: &str, mut from: usize) -> Result<()> {
    if text.len() > PATH_LEN_MAX {
        return Err(Error::limit_exceeded(format!(
            "a path has {} bytes; at most {PATH_LEN_MAX} are allowed",
            text.len()
        )));
    }
    let bytes = text.as_bytes();
    if bytes.first().is_some_and(|&first| first != b'/') {
        return Err(Error::invalid_input(format!(
            "the path `{text}` does not start with `/`; write `/{text}`, or nothing for the root"
        )));
    }
    while let Some(found) = find(&text[from..], b'~') {
        let at = from + found;
        if !matches!(bytes.get(at + 1), Some(b'0' | b'1')) {
            return Err(Error::invalid_input(format!(
                "the path `{text}` has a `~` at byte {at} that is not `~0` or `~1`; write `~0` for `~`"
            )));
        }
        from = at + 1;
    }
    Ok(())
}

/// The segments of a checked path, unescaped.
#[inline]
pub fn segments(path: &str) -> impl Iterator<Item = Cow<'_, str>> {
    parts(path).map(unescape)
}

/// The segments of a checked path as they stand in it.
#[inline]
pub fn parts(path: &str) -> impl Iterator<Item = &str> {
    let mut rest = path.strip_prefix('/');
    std::iter::from_fn(move || {
        let text = rest?;
        let (part, behind) = match find(text, b'/') {
            Some(end) => (&text[..end], Some(&text[end + 1..])),
            None => (text, None),
        };
        rest = behind;
        Some(part)
    })
}

/// Where an ASCII byte is first.
#[inline]
fn find(text: &str, byte: u8) -> Option<usize> {
    let bytes = text.as_bytes();
    // Without an early end the compiler looks at all bytes of a chunk at once.
    let is_in =
        |chunk: &&[u8; 16]| chunk.iter().fold(false, |is_in, &other| is_in | (other == byte));
    let before = 16 * bytes.as_chunks().0.iter().take_while(|chunk| !is_in(chunk)).count();
    let rest = bytes[before..].iter().position(|&other| other == byte);
    rest.map(|at| before + at)
}

/// Splits a checked path into its parent and its last segment; `None` for the root.
pub fn split_last(path: &str) -> Option<(&str, Cow<'_, str>)> {
    // Segments are short: a loop finds their start before a search by words has begun.
    let at = path.bytes().rposition(|byte| byte == b'/')?;
    Some((&path[..at], unescape(&path[at + 1..])))
}

/// A segment as it stands in a path, without its escapes.
#[inline]
pub fn unescape(part: &str) -> Cow<'_, str> {
    match find(part, b'~') {
        None => Cow::Borrowed(part),
        Some(_) => Cow::Owned(part.replace("~1", "/").replace("~0", "~")),
    }
}

fn escape_into(segment: &str, out: &mut String) {
    if find(segment, b'~').is_none() && find(segment, b'/').is_none() {
        return out.push_str(segment);
    }
    for character in segment.chars() {
        match character {
            '~' => out.push_str("~0"),
            '/' => out.push_str("~1"),
            other => out.push(other),
        }
    }
}

/// A list position as a segment writes it: `0` or `[1-9][0-9]*` (RFC 6901 section 4).
#[inline]
pub fn position(segment: &str) -> Option<u64> {
    match segment.as_bytes() {
        [b'0'] => Some(0),
        [b'1'..=b'9', rest @ ..] if rest.iter().all(u8::is_ascii_digit) => segment.parse().ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn segments_round_trip() {
        let mut path = Path::root();
        for segment in ["a/b", "m~n", "", "~1", "é"] {
            path.push(segment);
        }
        assert_eq!(&*path, "/a~1b/m~0n//~01/é");
        assert_eq!(segments(&path).collect::<Vec<_>>(), ["a/b", "m~n", "", "~1", "é"]);
        path.pop();
        assert_eq!(&*path, "/a~1b/m~0n//~01");
        assert_eq!(segments("").count(), 0);
    }

    #[test]
    fn malformed_paths_say_what_to_write() {
        for (bad, hint) in [("a", "write `/a`"), ("/a~", "write `~0`"), ("/~2", "write `~0`")] {
            let error = Path::parse(bad).expect_err(bad);
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
            assert!(error.to_string().contains(hint), "{error}");
        }
    }

    #[test]
    fn positions_are_canonical() {
        assert_eq!(position("0"), Some(0));
        assert_eq!(position("10"), Some(10));
        for bad in ["", "-", "01", "+1", "1a", "99999999999999999999"] {
            assert_eq!(position(bad), None, "{bad}");
        }
    }
}
