//! Scalars come back as they were: number texts, texts, bytes, at every size.

use spinney::ErrorKind::LimitExceeded;
use spinney::{Number, Value};

use super::Case;
use crate::subject::Subject;

pub(super) const CASES: &[Case] = &[
    ("numbers keep their texts", numbers),
    ("the longest number", longest_number),
    ("texts and bytes", texts_and_bytes),
    ("sizes around the limits", sizes),
    ("a text replaced by a longer and a shorter one", replaced),
    ("identical is not equal", identical),
];

/// Texts that a careless store would change.
pub const NUMBERS: [&str; 30] = [
    "0",
    "-0",
    "0.0",
    "-0.0",
    "1.10",
    "1e400",
    "-1e400",
    "1E5",
    "1e+5",
    "1e-5",
    "1e05",
    "0.1",
    "9007199254740992",
    "9007199254740993",
    "-9007199254740993",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "-9223372036854775809",
    "18446744073709551615",
    "18446744073709551616",
    "1234567890123456789012345678901234567890",
    "-1234567890123456789012345678901234567890",
    "0.1000000000000000055511151231257827",
    "5e-324",
    "4.9e-324",
    "1.7976931348623157e308",
    "1e1000000000000",
    "123456.789e-10",
    "100",
];

fn number(text: &str) -> Value {
    Value::Number(Number::parse(text).expect("a number"))
}

fn numbers(s: &Subject) {
    s.set("/n", "[]");
    s.write(|tx| NUMBERS.iter().try_for_each(|text| tx.set("/n/-", &number(text))));
    assert_eq!(s.text("/n"), format!("[{}]", NUMBERS.join(",")));
    for (index, text) in NUMBERS.iter().enumerate() {
        s.write(|tx| tx.set("/one", &number(text)));
        assert_eq!(s.text("/one"), *text);
        assert_eq!(s.get(&format!("/n/{index}")), Some(number(text)));
    }
    // As keys they are texts, whatever they look like.
    s.set("/keys", "{}");
    s.write(|tx| NUMBERS.iter().try_for_each(|text| tx.set(&format!("/keys/{text}"), &1.into())));
    assert_eq!(s.count("/keys"), Some(NUMBERS.len() as u64));
    assert!(NUMBERS.iter().all(|text| s.get(&format!("/keys/{text}")).is_some()));
}

fn longest_number(s: &Subject) {
    let digits = "7".repeat(spinney_core::limits::NUMBER_LEN_MAX);
    s.write(|tx| tx.set("/a/n", &number(&digits)));
    assert_eq!(s.text("/a/n"), digits);
    let error = Number::parse(&(digits + "7")).expect_err("too long");
    assert_eq!(error.kind(), LimitExceeded, "{error}");
}

fn texts_and_bytes(s: &Subject) {
    let texts = ["", "\0", "a\0b", "\"\\/\u{8}\n", "é", "日本", "\u{10ffff}", "\u{feff}x", "  "];
    for text in texts {
        s.write(|tx| tx.set("/a/text", &text.into()));
        assert_eq!(s.get("/a/text"), Some(text.into()));
    }
    for bytes in [&b""[..], b"\0", b"\xff\xfe", &[0x80; 300]] {
        s.write(|tx| tx.set("/a/bytes", &Value::Bytes(bytes.to_vec())));
        assert_eq!(s.get("/a/bytes"), Some(Value::Bytes(bytes.to_vec())));
    }
    s.write(|tx| tx.set("/a/same", &"abc".into()));
    s.write(|tx| tx.set("/a/same", &Value::Bytes(b"abc".to_vec())));
    assert_eq!(s.get("/a/same"), Some(Value::Bytes(b"abc".to_vec())), "bytes are no text");
}

/// Lengths one below, at and one above where a value changes its place.
pub fn interesting_lengths(page_size: usize) -> Vec<usize> {
    let places = [page_size / 8, page_size / 2, page_size, page_size * 8, page_size * 24];
    places.into_iter().flat_map(|at| (at - 12..at - 8).chain(at - 5..at + 2)).collect()
}

fn sizes(s: &Subject) {
    for len in interesting_lengths(s.backend.capabilities().page_size) {
        let text: String = (0..len).map(|at| char::from(b'a' + (at % 26) as u8)).collect();
        let bytes: Vec<u8> = (0..len).map(|at| (at * 7) as u8).collect();
        s.write(|tx| {
            tx.set("/a/text", &text.as_str().into())?;
            tx.set(
                "/a/list",
                &vec![Value::Bytes(bytes.clone()), "é\"".repeat(len / 3).into()].into(),
            )
        });
        assert_eq!(s.get("/a/text"), Some(text.into()), "{len}");
        assert_eq!(s.get("/a/list/0"), Some(Value::Bytes(bytes)), "{len}");
        assert_eq!(s.get("/a/list/1"), Some("é\"".repeat(len / 3).into()), "{len}");
    }
}

fn replaced(s: &Subject) {
    let page = s.backend.capabilities().page_size;
    for len in [1, page * 30, page, page * 9, 3, page * 30, 0] {
        s.write(|tx| tx.set("/a/x", &"y".repeat(len).into()));
        assert_eq!(s.get("/a/x"), Some("y".repeat(len).into()));
    }
    s.write(|tx| tx.remove("/a"));
    s.check();
}

fn identical(s: &Subject) {
    s.set("/a", "1.0");
    let revision = s.set("/a", "1").revision;
    assert_eq!(revision, 2, "1 is another text than 1.0");
    assert_eq!(s.set("/a", "1").revision, revision, "the same text changes nothing");
    assert_eq!(s.set("/a", "1e0").revision, 3);
    assert_eq!(s.set("/a", "\"1e0\"").revision, 4);
}
