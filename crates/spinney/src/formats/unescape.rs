//! What stands between the quotes of a string becomes its text.

use super::Dialect;

/// Why an escape is refused: the offset of its backslash and what is wrong with it.
pub(super) type Refused = (usize, &'static str);

const BAD_ESCAPE: &str =
    "expected an escape: `\\` and one of `\"\\/bfnrt`, or `\\u` and four hexadecimal digits";
const LONE_SURROGATE: &str =
    "expected a pair of surrogates: a lone one is not a character and UTF-8 cannot hold it";

/// Appends the text that `raw` stands for.
pub(super) fn unescape(raw: &str, dialect: Dialect, out: &mut String) -> Result<(), Refused> {
    let mut rest = raw;
    while let Some(at) = memchr::memchr(b'\\', rest.as_bytes()) {
        out.push_str(&rest[..at]);
        let offset = raw.len() - rest.len() + at;
        let len = escape(&rest[at..], dialect, out).map_err(|message| (offset, message))?;
        rest = &rest[at + len..];
    }
    out.push_str(rest);
    Ok(())
}

/// Appends the character of the escape at the start of `text` and returns the escape's length.
pub(super) fn escape(
    text: &str,
    dialect: Dialect,
    out: &mut String,
) -> Result<usize, &'static str> {
    let char = match text.as_bytes().get(1) {
        Some(b'"') => '"',
        Some(b'\\') => '\\',
        Some(b'/') => '/',
        Some(b'b') => '\u{8}',
        Some(b'f') => '\u{c}',
        Some(b'n') => '\n',
        Some(b'r') => '\r',
        Some(b't') => '\t',
        Some(b'u') => return unicode(text, out),
        _ if dialect == Dialect::Json5 => return escape5(text, out),
        _ => return Err(BAD_ESCAPE),
    };
    out.push(char);
    Ok(2)
}

fn unicode(text: &str, out: &mut String) -> Result<usize, &'static str> {
    let (code, len) = match hex(text, 2, 4).ok_or(BAD_ESCAPE)? {
        high @ 0xd800..=0xdbff => {
            let low = match text.get(6..8) {
                Some("\\u") => hex(text, 8, 4),
                _ => None,
            };
            match low {
                Some(low @ 0xdc00..=0xdfff) => {
                    (0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00), 12)
                }
                _ => return Err(LONE_SURROGATE),
            }
        }
        code => (code, 6),
    };
    out.push(char::from_u32(code).ok_or(LONE_SURROGATE)?);
    Ok(len)
}

/// The escapes that only JSON5 has (section 5.1, "Escapes").
fn escape5(text: &str, out: &mut String) -> Result<usize, &'static str> {
    let char = text[1..].chars().next().ok_or("expected a character after `\\`")?;
    let escaped = match char {
        'v' => '\u{b}',
        '\r' if text[2..].starts_with('\n') => return Ok(3),
        '\r' | '\n' | '\u{2028}' | '\u{2029}' => return Ok(1 + char.len_utf8()),
        'x' => {
            let code = hex(text, 2, 2).ok_or("expected two hexadecimal digits after `\\x`")?;
            out.push(char::from_u32(code).expect("below 256"));
            return Ok(4);
        }
        '0' if !text[2..].starts_with(|char: char| char.is_ascii_digit()) => '\0',
        '0'..='9' => return Err("expected no digit after `\\`: octal escapes are not JSON5"),
        other => other,
    };
    out.push(escaped);
    Ok(1 + char.len_utf8())
}

fn hex(text: &str, at: usize, len: usize) -> Option<u32> {
    let digits = text.as_bytes().get(at..at + len)?;
    digits.iter().try_fold(0, |code, &digit| Some(code << 4 | char::from(digit).to_digit(16)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(raw: &str, dialect: Dialect) -> Result<String, usize> {
        let mut out = String::new();
        unescape(raw, dialect, &mut out).map_err(|(at, _)| at)?;
        Ok(out)
    }

    #[test]
    fn escapes_of_json() {
        assert_eq!(
            text(r#"\"\\\/\b\f\n\r\t"#, Dialect::Json).as_deref(),
            Ok("\"\\/\u{8}\u{c}\n\r\t")
        );
        assert_eq!(text(r"a\u00e9\u0000b\u20AC", Dialect::Json).as_deref(), Ok("aé\0b€"));
        assert_eq!(text(r"\ud83d\ude00\uD83D\uDE00", Dialect::Json).as_deref(), Ok("😀😀"));
        assert_eq!(text(r"\uffff", Dialect::Json).as_deref(), Ok("\u{ffff}"));
    }

    #[test]
    fn what_is_not_an_escape_is_refused_where_it_stands() {
        for (raw, at) in [
            (r"ab\x", 2),
            (r"\n\'", 2),
            (r"\u12", 0),
            (r"\u12g4", 0),
            (r"\u+123", 0),
            (r"é\uéé", 2),
            (r"\ud800", 0),
            (r"x\ud800\n", 1),
            (r"\ud800\ud800", 0),
            (r"\ud800A", 0),
            (r"\ud800é", 0),
            (r"\udc00", 0),
            (r"\udc00\ud800", 0),
            ("\\\n", 0),
            ("\\0", 0),
        ] {
            assert_eq!(text(raw, Dialect::Json), Err(at), "{raw}");
        }
    }

    #[test]
    fn escapes_of_json5() {
        assert_eq!(text(r"\'\v\0\x41\xff\q\é", Dialect::Json5).as_deref(), Ok("'\u{b}\0A\u{ff}qé"));
        assert_eq!(
            text("a\\\nb\\\r\nc\\\rd\\\u{2028}e\\\u{2029}f", Dialect::Json5).as_deref(),
            Ok("abcdef")
        );
        for raw in [r"\1", r"\9", r"\00", r"\x4", r"\xg0", r"\u12", r"\ud800"] {
            assert_eq!(text(raw, Dialect::Json5), Err(0), "{raw}");
        }
    }
}
