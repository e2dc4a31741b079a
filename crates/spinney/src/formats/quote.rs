//! Texts go into JSON strings: copied when they need no escaping, else escaped.

use super::Dialect;
use super::scan::{is_special, specials};
use super::unescape::unescape;

const HEX: &[u8; 16] = b"0123456789abcdef";

/// Appends a text and escapes what must be.
pub(super) fn escape(text: &[u8], out: &mut Vec<u8>) {
    let mut rest = text;
    loop {
        let plain_len = plain_len(rest);
        out.extend_from_slice(&rest[..plain_len]);
        let Some(&byte) = rest.get(plain_len) else { return };
        let short = match byte {
            b'"' => b'"',
            b'\\' => b'\\',
            b'\n' => b'n',
            b'\r' => b'r',
            b'\t' => b't',
            0x08 => b'b',
            0x0c => b'f',
            _ => b'u',
        };
        out.extend_from_slice(&[b'\\', short]);
        if short == b'u' {
            let digits = [HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]];
            out.extend_from_slice(b"00");
            out.extend_from_slice(&digits);
        }
        rest = &rest[plain_len + 1..];
    }
}

/// The text that was printed between quotes.
pub(super) fn unquote(printed: &[u8]) -> String {
    let printed = std::str::from_utf8(printed).expect("printed from a text");
    let mut text = String::with_capacity(printed.len());
    unescape(printed, Dialect::Json, &mut text).expect("printed with the escapes of JSON");
    text
}

fn plain_len(bytes: &[u8]) -> usize {
    let mut at = 0;
    while let Some(chunk) = bytes[at..].first_chunk() {
        let hits = specials(u64::from_le_bytes(*chunk));
        if hits != 0 {
            return at + hits.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    at + bytes[at..].iter().take_while(|&&byte| !is_special(byte)).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_what_must_be_and_nothing_else() {
        let text: String =
            (0..0x100).filter_map(char::from_u32).chain("€😀\u{2028}".chars()).collect();
        for from in 0..40 {
            let text = &text[from..];
            let mut out = Vec::new();
            escape(text.as_bytes(), &mut out);
            let expected = serde_json::to_string(text).expect("prints");
            assert_eq!(format!("\"{}\"", String::from_utf8_lossy(&out)), expected);
        }
    }
}
