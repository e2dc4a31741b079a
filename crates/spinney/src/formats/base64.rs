//! Base64 with the standard alphabet and padding (RFC 4648 section 4), canonical texts only.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Appends the text for `bytes`: four characters for each three bytes begun.
pub(super) fn encode(bytes: &[u8], out: &mut Vec<u8>) {
    for chunk in bytes.chunks(3) {
        let mut wide = [0; 4];
        wide[1..=chunk.len()].copy_from_slice(chunk);
        let bits = u32::from_be_bytes(wide);
        let digits = [18, 12, 6, 0].map(|shift| ALPHABET[(bits >> shift) as usize & 63]);
        out.extend_from_slice(&digits[..=chunk.len()]);
        out.resize(out.len() + 3 - chunk.len(), b'=');
    }
}

/// The bytes that [`encode`] gives `text` for, or `None`.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(4) {
        return None;
    }
    let digits = text.trim_end_matches('=');
    let padding_len = text.len() - digits.len();
    let mut out = Vec::with_capacity(text.len() / 4 * 3);
    for chunk in digits.as_bytes().chunks(4) {
        let mut bits = 0;
        for &digit in chunk {
            bits = bits << 6 | u32::from(value(digit)?);
        }
        let missing = 4 - chunk.len();
        let bytes = (bits << (6 * missing)).to_be_bytes();
        let (used, unused) = bytes[1..].split_at(3 - missing.min(3));
        // One digit holds no byte; bits that no byte takes must be zero.
        if missing > 2 || unused.iter().any(|&byte| byte != 0) {
            return None;
        }
        out.extend_from_slice(used);
    }
    (padding_len == (4 - digits.len() % 4) % 4).then_some(out)
}

fn value(digit: u8) -> Option<u8> {
    Some(match digit {
        b'A'..=b'Z' => digit - b'A',
        b'a'..=b'z' => digit - b'a' + 26,
        b'0'..=b'9' => digit - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(bytes: &[u8]) -> String {
        let mut out = Vec::new();
        encode(bytes, &mut out);
        String::from_utf8(out).expect("base64 is ASCII")
    }

    #[test]
    fn vectors_of_rfc_4648() {
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(encoded(bytes.as_bytes()), text);
            assert_eq!(decode(text).as_deref(), Some(bytes.as_bytes()));
        }
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(decode(&encoded(&all)), Some(all));
    }

    #[test]
    fn texts_that_encode_never_writes_are_refused() {
        for bad in
            ["=", "====", "Z", "Zg", "Zg=", "Zh==", "Zm9=", "Zg==Zg==", "Z===", "Zm 9", "Zm9-"]
        {
            assert_eq!(decode(bad), None, "{bad}");
        }
    }
}
