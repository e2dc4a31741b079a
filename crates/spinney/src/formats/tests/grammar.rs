//! The grammar of RFC 8259.

use std::io::BufReader;

use spinney_core::limits::{KEY_LEN_MAX, NUMBER_LEN_MAX};
use spinney_core::{Container, ErrorKind};

use super::{Event, JSON, assert_reads, events, once, refusal};

#[test]
fn values_and_white_space() {
    for text in
        ["null", "true", "false", "0", r#""""#, r#""a""#, "[]", "{}", r#"[1,"a",[{}],{"k":[]}]"#]
    {
        assert_reads(text, JSON, text);
        assert_reads(&format!(" \t\r\n{text}\n\n            \n  "), JSON, text);
        assert_reads(&format!("\u{feff}{text}"), JSON, text);
    }
    assert_reads(" { \"a\" : [ 1 , 2 ] , \"b\" : { } }", JSON, r#"{"a":[1,2],"b":{}}"#);
    assert_reads("{\n        \"a\":\n        1\n}", JSON, r#"{"a":1}"#);
}

#[test]
fn number_texts_are_kept() {
    for text in [
        "0",
        "-0",
        "1",
        "-1",
        "1.10",
        "-0.0",
        "1e400",
        "1E+5",
        "0e0",
        "1.5e-7",
        "9223372036854775807",
        "-9223372036854775808",
        "18446744073709551615",
        "18446744073709551616",
        "-65.613616999999977",
        "123456789012345678901234567890.5",
        "0.00000000000000000000000000001",
    ] {
        for around in ["", " "] {
            assert_reads(&format!("{around}{text}{around}"), JSON, text);
            assert_reads(&format!("[{text}{around},{text}]"), JSON, &format!("[{text},{text}]"));
        }
    }
    let long = "7".repeat(NUMBER_LEN_MAX);
    for (step, window_len) in [(usize::MAX, 1 << 18), (1000, 64)] {
        let number = once(long.as_bytes(), JSON, step, window_len).expect("within the limit");
        assert!(matches!(&number[..], [Event::Number(number)] if number.to_string() == long));
        let error = once((long.clone() + "7").as_bytes(), JSON, step, window_len);
        assert_eq!(error.expect_err("too long").kind(), ErrorKind::LimitExceeded);
    }
}

#[test]
fn strings_tell_whether_they_are_plain() {
    for (text, expected, plain) in [
        (r#""abc""#, "abc", true),
        (r#""é€😀 and more than eight bytes""#, "é€😀 and more than eight bytes", true),
        (r#""http:\/\/x""#, "http://x", true),
        (r#""\u0041\u00e9""#, "Aé", true),
        (r#""\ud83d\ude00""#, "😀", true),
        (r#""a\nb""#, "a\nb", false),
        (r#""a\"b""#, "a\"b", false),
        (r#""\\""#, "\\", false),
        (r#""\u0000""#, "\0", false),
        ("\"\u{7f}\u{80}\u{2028}\"", "\u{7f}\u{80}\u{2028}", true),
    ] {
        let read = events(text, JSON).expect("it is accepted");
        assert_eq!(read, [Event::String(expected.to_owned(), plain)], "{text}");
        let key = format!("{{{text} :1}}");
        let read = events(key, JSON).expect("it is accepted");
        assert_eq!(read[1], Event::Key(expected.to_owned()), "{text}");
    }
}

#[test]
fn keys_have_a_limit() {
    let map = |len: usize, part: &str| format!("{{\"{}\":1}}", part.repeat(len));
    for part in ["k", "\\u0041", "\\n"] {
        for (step, window_len) in [(usize::MAX, 1 << 18), (500, 64)] {
            let read = |len| once(map(len, part).as_bytes(), JSON, step, window_len);
            assert!(read(KEY_LEN_MAX).is_ok(), "{part}");
            let error = read(KEY_LEN_MAX + 1).expect_err("too long");
            assert_eq!(error.kind(), ErrorKind::LimitExceeded);
            assert_eq!(error.context(), "line 1, column 2: a key is longer than 65536 bytes");
        }
    }
}

#[test]
fn strings_longer_than_the_window() {
    let long = "0123456789é".repeat(60_000);
    let text = format!("[\"{long}\", \"{long}\\n\"]");
    let read = once(text.as_bytes(), JSON, usize::MAX, 1 << 18).expect("it is accepted");
    assert_eq!(read[1], Event::String(long.clone(), true));
    assert_eq!(read[2], Event::String(long + "\n", false));
}

#[test]
fn depth_has_a_limit_that_is_met_at_once() {
    /// Fails the test when the reader goes on.
    struct Endless(usize);
    impl std::io::Read for Endless {
        fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
            self.0 += 1;
            assert!(self.0 < 3, "the reader goes on");
            out.fill(b'[');
            Ok(out.len())
        }
    }
    let mut visitor = super::Events::default();
    let error = crate::formats::read(BufReader::new(Endless(0)), Default::default(), &mut visitor);
    assert_eq!(error.expect_err("too deep").kind(), ErrorKind::LimitExceeded);
    assert_eq!(visitor.0.len(), 512);

    let nested =
        |depth: usize, open: &str, close: &str| open.repeat(depth) + "1" + &close.repeat(depth);
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        let read = events(nested(512, open, close), JSON).expect("within the limit");
        assert_eq!(read.iter().filter(|event| matches!(event, Event::Open(_))).count(), 512);
        let column = 512 * open.len() + 1;
        assert_eq!(
            refusal(nested(513, open, close), JSON),
            format!(
                "limit exceeded: line 1, column {column}: containers are nested deeper than 512 levels"
            )
        );
    }
    let wide = format!("[{}[]]", "[],{},".repeat(1000));
    let opened = events(wide, JSON).expect("width is not depth");
    assert_eq!(opened.iter().filter(|event| **event == Event::Open(Container::List)).count(), 1002);
}

#[test]
fn the_value_builder_refuses_duplicate_keys_with_the_place() {
    let error = crate::formats::parse("{\"a\":1,\n \"a\":2}").expect_err("a key stands twice");
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(error.context().starts_with("line 2, column 6: the key `a` stands twice"), "{error}");
}
