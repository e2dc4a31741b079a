//! Result hashes: SHA-256 over JSON by RFC 8785, so that equal answers hash equal whatever made
//! them. Knows nothing of systems or rows.

use serde_json::Value;
use sha2::{Digest, Sha256};
use spinney_core::{Error, Result};

/// The first 16 hex digits of the SHA-256 of `text`.
pub fn hash(text: &[u8]) -> String {
    Sha256::digest(text).iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// Parses `json` and prints it by RFC 8785: members sorted by UTF-16, no spaces, shortest numbers.
///
/// # Errors
/// `InvalidInput` when `json` is not JSON.
pub fn canonical(json: &[u8]) -> Result<Vec<u8>> {
    let value: Value = serde_json::from_slice(json)
        .map_err(|error| Error::invalid_input("a result is not JSON").with_source(error))?;
    let mut out = Vec::with_capacity(json.len());
    write(&value, &mut out);
    Ok(out)
}

/// Appends `value` by RFC 8785. serde_json parses at most 128 levels, which bounds the recursion.
pub fn write(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Null => out.extend_from_slice(b"null"),
        Value::Bool(value) => out.extend_from_slice(value.to_string().as_bytes()),
        Value::Number(number) => write_number(number, out),
        Value::String(text) => write_string(text, out),
        Value::Array(elements) => {
            out.push(b'[');
            for (at, element) in elements.iter().enumerate() {
                separate(at, out);
                write(element, out);
            }
            out.push(b']');
        }
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_by(|(a, _), (b, _)| a.encode_utf16().cmp(b.encode_utf16()));
            out.push(b'{');
            for (at, (key, value)) in members.into_iter().enumerate() {
                separate(at, out);
                write_string(key, out);
                out.push(b':');
                write(value, out);
            }
            out.push(b'}');
        }
    }
}

/// Appends a JSON string; serde_json escapes exactly what RFC 8785 does.
pub fn write_string(text: &str, out: &mut Vec<u8>) {
    serde_json::to_writer(out, text).expect("a vector takes every write");
}

fn separate(at: usize, out: &mut Vec<u8>) {
    if at > 0 {
        out.push(b',');
    }
}

/// Integers print exactly, also those beyond 2^53 that RFC 8785 cannot carry.
fn write_number(number: &serde_json::Number, out: &mut Vec<u8>) {
    if number.is_f64() {
        let value = number.as_f64().expect("serde_json holds finite floats");
        out.extend_from_slice(ryu_js::Buffer::new().format_finite(value).as_bytes());
    } else {
        out.extend_from_slice(number.to_string().as_bytes());
    }
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
        let text = "{\"\u{fb33}\":1,\"\u{1f600}\":18446744073709551615,\"b\":1.0,\"a\":-0.0}";
        assert_eq!(
            String::from_utf8(canonical(text.as_bytes()).expect("JSON")).expect("UTF-8"),
            "{\"a\":0,\"b\":1,\"\u{1f600}\":18446744073709551615,\"\u{fb33}\":1}"
        );
    }
}
