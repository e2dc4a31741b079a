//! What is refused, with which words and where.

use std::io::BufReader;

use spinney_core::{ErrorKind, Result};

use super::{Dialect, Events, JSON, Trickle, refusal};

#[track_caller]
fn assert_refuses(text: impl AsRef<[u8]>, message: &str) {
    assert_eq!(refusal(text, JSON), format!("invalid input: {message}"));
}

#[test]
fn structure() {
    for (text, message) in [
        ("", "line 1, column 1: expected a value, found the end of the input"),
        (" \n ", "line 2, column 2: expected a value, found the end of the input"),
        ("[1,]", "line 1, column 4: expected a value, found `]`"),
        ("[,1]", "line 1, column 2: expected a value, found `,`"),
        ("[1 2]", "line 1, column 4: expected `,` or `]`, found `2`"),
        ("[1}", "line 1, column 3: expected `,` or `]`, found `}`"),
        ("[\n1,\n  é]", "line 3, column 3: expected a value, found `é`"),
        ("[\"éé\" x]", "line 1, column 7: expected `,` or `]`, found `x`"),
        ("[", "line 1, column 2: expected a value, found the end of the input"),
        ("[1", "line 1, column 3: expected `,` or `]`, found the end of the input"),
        ("{", "line 1, column 2: expected a key in `\"` or `}`, found the end of the input"),
        ("{a:1}", "line 1, column 2: expected a key in `\"` or `}`, found `a`"),
        ("{1:1}", "line 1, column 2: expected a key in `\"` or `}`, found `1`"),
        ("{\"a\" 1}", "line 1, column 6: expected `:`, found `1`"),
        ("{\"a\"", "line 1, column 5: expected `:`, found the end of the input"),
        ("{\"a\":}", "line 1, column 6: expected a value, found `}`"),
        ("{\"a\":1,}", "line 1, column 8: expected a key in `\"`, found `}`"),
        ("{\"a\":1 \"b\":2}", "line 1, column 8: expected `,` or `}`, found `\"`"),
        ("{\"a\":1]", "line 1, column 7: expected `,` or `}`, found `]`"),
        ("1 2", "line 1, column 3: expected the end of the input, found `2`"),
        ("[]]", "line 1, column 3: expected the end of the input, found `]`"),
        ("nul", "line 1, column 4: expected `null`, found the end of the input"),
        ("[nulx]", "line 1, column 5: expected `null`, found `x`"),
        ("nullx", "line 1, column 5: expected the end of the input, found `x`"),
        ("[tru]", "line 1, column 5: expected `true`, found `]`"),
        ("falſe", "line 1, column 4: expected `false`, found `ſ`"),
        ("NaN", "line 1, column 1: expected a value, found `N`"),
        ("Infinity", "line 1, column 1: expected a value, found `I`"),
        ("'a'", "line 1, column 1: expected a value, found `'`"),
        ("[1/**/]", "line 1, column 3: expected `,` or `]`, found `/`"),
        ("// x\n1", "line 1, column 1: expected a value, found `/`"),
        ("\u{a0}1", "line 1, column 1: expected a value, found U+00A0"),
        ("\u{b}1", "line 1, column 1: expected a value, found U+000B"),
        ("1\0", "line 1, column 2: expected the end of the input, found U+0000"),
        ("[\0]", "line 1, column 2: expected a value, found U+0000"),
        ("[`]", "line 1, column 2: expected a value, found a backquote"),
        ("\u{feff}\u{feff}1", "line 1, column 1: expected a value, found `\u{feff}`"),
        ("[1]\u{feff}", "line 1, column 4: expected the end of the input, found `\u{feff}`"),
    ] {
        assert_refuses(text, message);
    }
}

#[test]
fn numbers() {
    for (text, message) in [
        ("-", "line 1, column 2: expected a digit, found the end of the input"),
        ("-a", "line 1, column 2: expected a digit, found `a`"),
        ("+1", "line 1, column 1: expected a value, found `+`"),
        (".5", "line 1, column 1: expected a value, found `.`"),
        ("[5.]", "line 1, column 4: expected a digit after the decimal point, found `]`"),
        ("01", "line 1, column 2: expected no digit after a leading zero, found `1`"),
        ("-01", "line 1, column 3: expected no digit after a leading zero, found `1`"),
        ("1e", "line 1, column 3: expected a digit of the exponent, found the end of the input"),
        ("1e+", "line 1, column 4: expected a digit of the exponent, found the end of the input"),
        ("1.e5", "line 1, column 3: expected a digit after the decimal point, found `e`"),
        ("0x10", "line 1, column 2: expected the end of the input, found `x`"),
        ("1.2.3", "line 1, column 4: expected the end of the input, found `.`"),
        ("[1-2]", "line 1, column 3: expected `,` or `]`, found `-`"),
    ] {
        assert_refuses(text, message);
    }
    let long_exponent = format!("1e{}", "1".repeat(19));
    assert!(refusal(long_exponent, JSON).starts_with("limit exceeded: line 1, column 1: a number"));
}

#[test]
fn strings() {
    let escape =
        "expected an escape: `\\` and one of `\"\\/bfnrt`, or `\\u` and four hexadecimal digits";
    let lone =
        "expected a pair of surrogates: a lone one is not a character and UTF-8 cannot hold it";
    for (text, message) in [
        ("\"", "line 1, column 2: expected `\"`, found the end of the input".to_owned()),
        ("[\"aé", "line 1, column 5: expected `\"`, found the end of the input".to_owned()),
        ("\"a\\", "line 1, column 4: expected `\"`, found the end of the input".to_owned()),
        ("\"a\\\"", "line 1, column 5: expected `\"`, found the end of the input".to_owned()),
        (
            "\"a\nb\"",
            "line 1, column 3: expected `\"`; controls must be escaped, found the end of the line"
                .to_owned(),
        ),
        (
            "\"a\tb\"",
            "line 1, column 3: expected `\"`; controls must be escaped, found U+0009".to_owned(),
        ),
        (
            "\"a\0b\"",
            "line 1, column 3: expected `\"`; controls must be escaped, found U+0000".to_owned(),
        ),
        (
            "{\"a\u{1f}\":1}",
            "line 1, column 4: expected `\"`; controls must be escaped, found U+001F".to_owned(),
        ),
        ("\"éa\\x41\"", format!("line 1, column 4: {escape}")),
        ("\"\\u12\"", format!("line 1, column 2: {escape}")),
        ("\"\\u12x4\"", format!("line 1, column 2: {escape}")),
        ("{\"\\'\":1}", format!("line 1, column 3: {escape}")),
        ("\"\\\r\n\"", format!("line 1, column 2: {escape}")),
        ("\"a\\ud800\"", format!("line 1, column 3: {lone}")),
        ("\"\\ud800\\n\"", format!("line 1, column 2: {lone}")),
        ("\"\\udc00\"", format!("line 1, column 2: {lone}")),
        ("[1,\n\"\\ud800\\ud800\"]", format!("line 2, column 2: {lone}")),
    ] {
        assert_refuses(text, &message);
    }
}

#[test]
fn bytes_that_are_not_utf8() {
    for (text, message) in [
        (&b"\"a\xff\""[..], "line 1, column 3: expected `\"`"),
        (b"[\n \xc3\x28]", "line 2, column 2: expected a value"),
        (b"\"\xed\xa0\x80\"", "line 1, column 2: expected `\"`"),
        (b"\"\xe2\x82", "line 1, column 2: expected `\"`"),
        (b"1 \xf0\x9f", "line 1, column 3: expected the end of the input"),
        (b"\xfe\xff\x001", "line 1, column 1: expected a value"),
        (b"{\"k\xc0\x80\":1}", "line 1, column 4: expected `\"`"),
        (b"tr\x80e", "line 1, column 3: expected `true`"),
        (b"[12\x80]", "line 1, column 4: expected `,` or `]`"),
        (b"-\x80", "line 1, column 2: expected a digit"),
        (b"{\"a\"\x80", "line 1, column 5: expected `:`"),
    ] {
        let byte = text.iter().find(|&&byte| byte > 0x7f).expect("one is there");
        assert_refuses(text, &format!("{message}, found byte 0x{byte:02x}, which is not UTF-8"));
    }
    assert_eq!(
        refusal(b"1\n\x80", super::LINES),
        "invalid input: line 2, column 1: expected a value, found byte 0x80, which is not UTF-8"
    );
    assert_eq!(
        refusal(b"1 \x80", super::LINES),
        "invalid input: line 1, column 3: expected the end of the line, found byte 0x80, which is not UTF-8"
    );
    assert_refuses(b"[1 2 \xff", "line 1, column 4: expected `,` or `]`, found `2`");
}

#[test]
fn positions_count_lines_and_characters_over_many_windows() {
    let lines = "  \"é€😀\",\n".repeat(3000);
    for tail in ["?", "\"é\" ?", "\n\n \"x\n"] {
        let text = format!("[\n{lines}{tail}");
        let message = refusal(&text, JSON);
        let (line, column) = match tail {
            "?" => (3002, 1),
            "\"é\" ?" => (3002, 5),
            _ => (3004, 4),
        };
        assert!(message.contains(&format!("line {line}, column {column}: ")), "{message}");
    }
    let one_line = format!("[{} ?]", "1, ".repeat(200_000));
    let error = crate::formats::parse(&one_line).expect_err("it is malformed");
    assert!(error.context().starts_with("line 1, column 600003: "), "{error}");
}

#[test]
fn errors_of_the_source_and_the_visitor_come_through() {
    struct Broken;
    impl std::io::Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            Err(std::io::Error::other("the cable is out"))
        }
    }
    let error = crate::formats::read(BufReader::new(Broken), Dialect::Json, &mut Events::default());
    let error = error.expect_err("nothing can be read");
    assert_eq!(error.kind(), ErrorKind::Io);
    assert!(std::error::Error::source(&error).is_some());
}

#[test]
fn progress_tells_the_bytes_read() -> Result<()> {
    let text = format!("[{}1]", "1,".repeat(500));
    let mut seen = Vec::new();
    let mut progress = |len| seen.push(len);
    let options =
        crate::formats::ReadOptions { progress: Some(&mut progress), ..Default::default() };
    let trickle = BufReader::new(Trickle(text.as_bytes(), 100));
    crate::formats::read_with(trickle, options, &mut Events::default())?;
    assert!(seen.is_sorted() && seen[0] == 100, "{seen:?}");
    assert_eq!(seen.last(), Some(&(text.len() as u64)));
    Ok(())
}
