//! How a text is laid out, so that what is printed into it looks like what is there.

use std::cell::Cell;
use std::ops::Range;

use super::scan::{Member, end_of_value};

/// The layout of a whole text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Style {
    /// The end of a line; empty when the text is one line.
    pub line_end: &'static str,
    /// One level of indentation.
    pub indent: String,
    /// Between a key and its value.
    pub colon: String,
    /// Between two members on one line.
    pub comma: String,
    /// Whether short containers stand on one line, and scalars of a long list share lines.
    pub folds: bool,
}

/// Bytes of a compact text that are one line.
const LINE_LEN_MAX: usize = 72;

/// Lines are filled with the scalars of a list up to so many bytes.
const FILLED_LEN_MAX: usize = 96;

/// Bytes of a text that are looked at for containers on one line.
const LOOK_LEN_MAX: usize = 64 << 10;

impl Style {
    /// The layout of a text that is printed from scratch.
    pub fn usual() -> Style {
        Style::of(b"{}", &(0..2), &[])
    }

    /// The layout that a text shows; two spaces where it shows nothing.
    pub fn of(text: &[u8], root: &Range<usize>, top: &[Member]) -> Style {
        let inside = &text[root.clone()];
        let line_end = match memchr::memchr(b'\n', inside) {
            None if top.is_empty() => "\n",
            None => "",
            Some(at) if at > 0 && inside[at - 1] == b'\r' => "\r\n",
            Some(_) => "\n",
        };
        let between =
            |from: usize, to: usize| String::from_utf8_lossy(&text[from..to]).into_owned();
        let indent = top.first().and_then(|first| {
            let line = text[..first.whole().start].iter().rposition(|&byte| byte == b'\n')?;
            (line > root.start).then(|| between(line + 1, first.whole().start))
        });
        let last = top.last().filter(|last| !last.key.is_empty());
        let colon = last.map(|last| between(last.key.end, last.value.start));
        let is_compact = line_end.is_empty() && !inside.contains(&b' ');
        let default =
            |spaced: &str, compact: &str| if is_compact { compact } else { spaced }.to_owned();
        Style {
            line_end,
            indent: indent.filter(|indent| !indent.is_empty()).unwrap_or_else(|| "  ".to_owned()),
            colon: colon.unwrap_or_else(|| default(": ", ":")),
            comma: default(", ", ","),
            folds: top.is_empty() || has_one_line(&inside[1..]),
        }
    }

    /// Lays out a compact text; `indent` is that of the line where it begins, `None` for one line.
    pub fn lay_out(&self, compact: &[u8], indent: Option<&str>, out: &mut Vec<u8>) {
        let indent = indent.filter(|_| !self.line_end.is_empty());
        let folds = self.folds && indent.is_some();
        let mut open: Vec<u8> = Vec::new();
        let line_start = Cell::new(out.len());
        let new_line = |depth: usize, out: &mut Vec<u8>| {
            let Some(indent) = indent else { return };
            out.extend_from_slice(self.line_end.as_bytes());
            line_start.set(out.len());
            out.extend_from_slice(indent.as_bytes());
            (0..depth).for_each(|_| out.extend_from_slice(self.indent.as_bytes()));
        };
        let mut at = 0;
        while at < compact.len() {
            let byte = compact[at];
            at += 1;
            match byte {
                b'"' => {
                    let end = end_of_value(compact, at - 1);
                    out.extend_from_slice(&compact[at - 1..end]);
                    at = end;
                }
                b'{' | b'[' if compact[at] == byte + 2 => {
                    out.extend_from_slice(&[byte, byte + 2]);
                    at += 1;
                }
                b'{' | b'[' => match short_end(compact, at - 1).filter(|_| folds) {
                    Some(end) => {
                        self.lay_out(&compact[at - 1..end], None, out);
                        at = end;
                    }
                    None => {
                        out.push(byte);
                        open.push(byte);
                        new_line(open.len(), out);
                    }
                },
                b'}' | b']' => {
                    open.pop();
                    new_line(open.len(), out);
                    out.push(byte);
                }
                b':' => out.extend_from_slice(self.colon.as_bytes()),
                b',' => {
                    let is_filled = folds && open.last() == Some(&b'[') && is_between(compact, at);
                    let len = || end_of_value(compact, at) - at;
                    if indent.is_none()
                        || is_filled && out.len() - line_start.get() + len() <= FILLED_LEN_MAX
                    {
                        out.extend_from_slice(self.comma.as_bytes());
                    } else {
                        out.push(b',');
                        new_line(open.len(), out);
                    }
                }
                _ => out.push(byte),
            }
        }
    }
}

/// Whether a place behind a comma is between two scalars.
fn is_between(compact: &[u8], at: usize) -> bool {
    !matches!(compact[at - 2], b'}' | b']') && !matches!(compact[at], b'{' | b'[')
}

/// Behind a short container at a place, if there is one.
fn short_end(compact: &[u8], start: usize) -> Option<usize> {
    let (mut at, mut depth) = (start, 0);
    while at - start < LINE_LEN_MAX {
        match compact[at] {
            b'"' => {
                at = end_of_value(compact, at);
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' if depth == 1 => return Some(at + 1),
            b'}' | b']' => depth -= 1,
            _ => {}
        }
        at += 1;
    }
    None
}

/// Whether a container with members begins on the line where it opens.
fn has_one_line(text: &[u8]) -> bool {
    let mut at = 0;
    while at + 1 < text.len().min(LOOK_LEN_MAX) {
        match text[at] {
            b'"' => at = end_of_value(text, at),
            b'{' | b'[' if !matches!(text[at + 1], b'\r' | b'\n' | b'}' | b']') => return true,
            _ => at += 1,
        }
    }
    false
}

/// The spaces that the line of a place begins with.
pub fn indent_at(text: &[u8], at: usize) -> String {
    let line = text[..at].iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
    let indent = text[line..at].iter().take_while(|byte| matches!(byte, b' ' | b'\t'));
    indent.map(|&byte| char::from(byte)).collect()
}

/// What stands between the members of one container.
pub struct Gaps {
    /// Before the first member.
    pub first: Vec<u8>,
    /// Between two members that were not there before, comma included.
    pub between: Vec<u8>,
    /// Behind the last member.
    pub last: Vec<u8>,
    /// Between a key and its value.
    pub colon: String,
    /// What the lines of new members begin with; `None` when they share one line.
    pub indent: Option<String>,
}

impl Gaps {
    /// Those of a container, from `range.start` to `range.end`.
    pub fn of(text: &[u8], range: &Range<usize>, members: &[Member], style: &Style) -> Gaps {
        let (Some(first), Some(last)) = (members.first(), members.last()) else {
            return Gaps::empty(&indent_at(text, range.start), style);
        };
        let first_gap = text[range.start + 1..first.whole().start].to_vec();
        let has_lines = first_gap.contains(&b'\n');
        let between = match members {
            [one, two, ..] => text[one.value.end..two.whole().start].to_vec(),
            _ if has_lines => [b",", &first_gap[..]].concat(),
            _ => style.comma.clone().into_bytes(),
        };
        let colon = match last.key.is_empty() {
            true => style.colon.clone(),
            false => String::from_utf8_lossy(&text[last.key.end..last.value.start]).into_owned(),
        };
        Gaps {
            indent: has_lines.then(|| indent_at(text, first.whole().start)),
            last: text[last.value.end..range.end - 1].to_vec(),
            first: first_gap,
            between,
            colon,
        }
    }

    /// Those of a container that had no members.
    fn empty(indent: &str, style: &Style) -> Gaps {
        let inner = format!("{indent}{}", style.indent);
        let line = |indent: &str| format!("{}{indent}", style.line_end).into_bytes();
        let is_one_line = style.line_end.is_empty();
        Gaps {
            first: if is_one_line { Vec::new() } else { line(&inner) },
            between: match is_one_line {
                true => style.comma.clone().into_bytes(),
                false => [b",", &line(&inner)[..]].concat(),
            },
            last: if is_one_line { Vec::new() } else { line(indent) },
            colon: style.colon.clone(),
            indent: (!is_one_line).then_some(inner),
        }
    }
}
