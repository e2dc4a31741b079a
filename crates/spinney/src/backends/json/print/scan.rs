//! Where things stand in a JSON text that is known to be valid.

use std::ops::Range;

/// A member of an object, or an element of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// The key with its quotes; empty in a list.
    pub key: Range<usize>,
    pub value: Range<usize>,
}

impl Member {
    /// From the key, or the value in a list, to the end of the value.
    pub fn whole(&self) -> Range<usize> {
        let start = if self.key.is_empty() { self.value.start } else { self.key.start };
        start..self.value.end
    }
}

/// The one value of a text.
pub fn root(text: &[u8]) -> Range<usize> {
    let start = skip_space(text, text.strip_prefix(b"\xEF\xBB\xBF").map_or(0, |_| 3));
    start..end_of_value(text, start)
}

/// The members of the container that begins at `start`.
pub fn container(text: &[u8], start: usize) -> Vec<Member> {
    let is_object = text[start] == b'{';
    let mut members = Vec::new();
    let mut at = skip_space(text, start + 1);
    while !matches!(text[at], b'}' | b']') {
        let key_start = at;
        let mut key_end = at;
        if is_object {
            key_end = end_of_string(text, at);
            at = skip_space(text, skip_space(text, key_end) + 1);
        }
        let end = end_of_value(text, at);
        members.push(Member { key: key_start..key_end, value: at..end });
        at = skip_space(text, end);
        if text[at] == b',' {
            at = skip_space(text, at + 1);
        }
    }
    members
}

pub fn skip_space(text: &[u8], mut at: usize) -> usize {
    while matches!(text.get(at), Some(b' ' | b'\t' | b'\n' | b'\r')) {
        at += 1;
    }
    at
}

fn end_of_string(text: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    loop {
        let found = memchr::memchr2(b'"', b'\\', &text[at..]);
        at += found.expect("a string ends");
        if text[at] == b'"' {
            return at + 1;
        }
        at += 2;
    }
}

/// Where the value that begins at `start` ends.
pub fn end_of_value(text: &[u8], start: usize) -> usize {
    match text[start] {
        b'"' => end_of_string(text, start),
        b'{' | b'[' => end_of_container(text, start),
        _ => {
            let is_end =
                |byte: &u8| matches!(byte, b',' | b'}' | b']' | b' ' | b'\t' | b'\n' | b'\r');
            text[start..].iter().position(is_end).map_or(text.len(), |len| start + len)
        }
    }
}

fn end_of_container(text: &[u8], start: usize) -> usize {
    let (mut at, mut depth) = (start, 0_usize);
    loop {
        match text[at] {
            b'"' => {
                at = end_of_string(text, at);
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth -= 1;
                if depth == 0 {
                    return at + 1;
                }
            }
            _ => {}
        }
        at += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_found_with_their_places() {
        let text = br#" {"a" : [1, {"b]": "}\""}], "c\"": -1.5e3 , "d":{} } "#;
        let all = root(text);
        let part = |range: &Range<usize>| std::str::from_utf8(&text[range.clone()]).unwrap();
        assert_eq!(part(&all), std::str::from_utf8(text).unwrap().trim());
        let scanned = container(text, all.start);
        let found: Vec<_> =
            scanned.iter().map(|member| (part(&member.key), part(&member.value))).collect();
        assert_eq!(
            found,
            [("\"a\"", r#"[1, {"b]": "}\""}]"#), (r#""c\"""#, "-1.5e3"), ("\"d\"", "{}")]
        );
        let list = container(text, scanned[0].value.start);
        assert_eq!(part(&list[1].whole()), r#"{"b]": "}\""}"#);
        assert_eq!(container(text, scanned[2].value.start), []);
        assert_eq!(root(b"\xEF\xBB\xBF 12\n"), 4..6);
    }
}
