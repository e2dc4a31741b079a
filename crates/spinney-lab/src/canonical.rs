//! Result hashes: SHA-256 over JSON by RFC 8785, so that equal answers hash equal whatever made
//! them. Knows nothing of systems or rows.

use sha2::{Digest, Sha256};
use spinney_core::{Error, Num, Result};

/// The first 16 hex digits of the SHA-256 of `text`.
pub fn hash(text: &[u8]) -> String {
    Sha256::digest(text).iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// Prints `json` by RFC 8785: members sorted by UTF-16, no spaces, shortest numbers.
///
/// # Errors
/// `InvalidInput` when `json` is not JSON or deeper than the 128 levels of serde_json.
pub fn canonical(json: &[u8]) -> Result<Vec<u8>> {
    // The check makes the walk below safe to be simple, and bounds its recursion.
    let text = serde_json::from_slice::<serde_json::Value>(json)
        .map_err(|error| Error::invalid_input("a result is not JSON").with_source(error))
        .map(|_| std::str::from_utf8(json).expect("JSON is UTF-8"))?;
    let mut out = Vec::with_capacity(json.len());
    Walk { text, at: 0 }.value(&mut out);
    Ok(out)
}

/// A walk over a text that is known to be JSON. The texts of numbers are read here, because
/// serde_json rounds some floats to a neighbour.
struct Walk<'a> {
    text: &'a str,
    at: usize,
}

impl Walk<'_> {
    fn value(&mut self, out: &mut Vec<u8>) {
        match self.peek() {
            b'{' => self.object(out),
            b'[' => self.array(out),
            b'"' => {
                let text = self.string();
                write_string(&text, out);
            }
            _ => {
                let start = self.at;
                let rest = &self.text[start..];
                let len = rest.find([',', ']', '}', ' ', '\n', '\r', '\t']);
                self.at += len.unwrap_or(rest.len());
                write_literal(&self.text[start..self.at], out);
            }
        }
    }

    fn array(&mut self, out: &mut Vec<u8>) {
        out.push(b'[');
        self.at += 1;
        while self.peek() != b']' {
            if self.peek() == b',' {
                self.at += 1;
                out.push(b',');
            }
            self.value(out);
        }
        self.at += 1;
        out.push(b']');
    }

    fn object(&mut self, out: &mut Vec<u8>) {
        self.at += 1;
        let mut members: Vec<(String, std::ops::Range<usize>)> = Vec::new();
        let mut values = Vec::new();
        while self.peek() != b'}' {
            if self.peek() == b',' {
                self.at += 1;
                self.peek();
            }
            let key = self.string();
            self.peek();
            self.at += 1;
            let start = values.len();
            self.value(&mut values);
            members.push((key, start..values.len()));
        }
        self.at += 1;
        members.sort_by(|(a, _), (b, _)| a.encode_utf16().cmp(b.encode_utf16()));
        out.push(b'{');
        for (at, (key, value)) in members.into_iter().enumerate() {
            if at > 0 {
                out.push(b',');
            }
            write_string(&key, out);
            out.push(b':');
            out.extend_from_slice(&values[value]);
        }
        out.push(b'}');
    }

    fn string(&mut self) -> String {
        let bytes = self.text.as_bytes();
        let start = self.at;
        self.at += 1;
        while bytes[self.at] != b'"' {
            self.at += if bytes[self.at] == b'\\' { 2 } else { 1 };
        }
        self.at += 1;
        serde_json::from_str(&self.text[start..self.at]).expect("it is a JSON string")
    }

    /// The next byte that is no white space.
    fn peek(&mut self) -> u8 {
        let bytes = self.text.as_bytes();
        while bytes[self.at].is_ascii_whitespace() {
            self.at += 1;
        }
        bytes[self.at]
    }
}

/// Integers print exactly, also those beyond 2^53 that RFC 8785 cannot carry; so do numbers beyond
/// the range of floats.
fn write_literal(text: &str, out: &mut Vec<u8>) {
    let float = match Num::parse(text) {
        Ok(Num::Decimal(_) | Num::Text(_)) if !is_large_integer(text) => text.parse::<f64>().ok(),
        _ => None,
    };
    match float.filter(|value| value.is_finite()) {
        Some(value) => {
            out.extend_from_slice(ryu_js::Buffer::new().format_finite(value).as_bytes());
        }
        None => out.extend_from_slice(text.as_bytes()),
    }
}

fn is_large_integer(text: &str) -> bool {
    text != "-0" && !text.contains(['.', 'e', 'E'])
}

/// Appends a JSON string; serde_json escapes exactly what RFC 8785 does.
pub fn write_string(text: &str, out: &mut Vec<u8>) {
    serde_json::to_writer(out, text).expect("a vector takes every write");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_hashes() {
        assert_eq!(hash(b"{\"cont\":{}}"), "8d26788ea39342db");
        assert_eq!(hash(b"{}"), "44136fa355b3678a");
    }

    #[test]
    fn the_example_of_rfc_8785() {
        let text = r#"{"numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
            "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/", "literals": [null, true, false]}"#;
        assert_eq!(
            String::from_utf8(canonical(text.as_bytes()).expect("JSON")).expect("UTF-8"),
            "{\"literals\":[null,true,false],\"numbers\":[333333333.3333333,1e+30,4.5,0.002,1e-27],\
             \"string\":\"€$\\u000f\\nA'B\\\"\\\\\\\\\\\"/\"}"
        );
    }

    #[test]
    fn members_sort_by_utf_16_and_large_integers_stay_exact() {
        let text = "{\"\u{fb33}\":1,\"\u{1f600}\":18446744073709551615, \"b\" : 1.0,\"a\":-0.0}";
        assert_eq!(
            String::from_utf8(canonical(text.as_bytes()).expect("JSON")).expect("UTF-8"),
            "{\"a\":0,\"b\":1,\"\u{1f600}\":18446744073709551615,\"\u{fb33}\":1}"
        );
    }
}
