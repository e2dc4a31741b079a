//! How a text is laid out, so that what is printed into it looks like what is there.

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
}

impl Style {
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
        }
    }

    /// Lays out a compact text; `indent` is that of the line where it begins, `None` for one line.
    pub fn lay_out(&self, compact: &[u8], indent: Option<&str>, out: &mut Vec<u8>) {
        let indent = indent.filter(|_| !self.line_end.is_empty());
        let mut depth = 0;
        let mut at = 0;
        let new_line = |depth: usize, out: &mut Vec<u8>| {
            let Some(indent) = indent else { return };
            out.extend_from_slice(self.line_end.as_bytes());
            out.extend_from_slice(indent.as_bytes());
            (0..depth).for_each(|_| out.extend_from_slice(self.indent.as_bytes()));
        };
        while at < compact.len() {
            let byte = compact[at];
            match byte {
                b'"' => {
                    let end = end_of_value(compact, at);
                    out.extend_from_slice(&compact[at..end]);
                    at = end;
                    continue;
                }
                b'{' | b'[' => {
                    out.push(byte);
                    if compact[at + 1] == byte + 2 {
                        out.push(byte + 2);
                        at += 2;
                        continue;
                    }
                    depth += 1;
                    new_line(depth, out);
                }
                b'}' | b']' => {
                    depth -= 1;
                    new_line(depth, out);
                    out.push(byte);
                }
                b':' => out.extend_from_slice(self.colon.as_bytes()),
                b',' if indent.is_some() => {
                    out.push(b',');
                    new_line(depth, out);
                }
                b',' => out.extend_from_slice(self.comma.as_bytes()),
                _ => out.push(byte),
            }
            at += 1;
        }
    }
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
