//! Fuzz targets of the formats: nothing panics, and what is accepted prints and reads back.
//!
//! `cargo test` runs them for a moment; `cargo bolero test json` for as long as one likes.

use spinney::formats::{self, Dialect, Fidelity, Framing, Layout, ReadOptions};
use spinney::value::ValueBuilder;
use spinney::{Result, Value};

fn value(text: &[u8], options: ReadOptions<'_>) -> Result<Value> {
    let mut builder = ValueBuilder::default();
    formats::read_with(text, options, &mut builder)?;
    Ok(builder.finish().expect("a reader that succeeds gives one value"))
}

fn assert_reads_back(value: &Value) {
    for layout in [Layout::Compact, Layout::Pretty] {
        let text = formats::print(value, layout, Fidelity::Refuse).expect("it came from JSON");
        let again = formats::parse(&text);
        // JSON Lines may nest as deep as the limit; anything else reads back.
        assert_eq!(&again.expect("what is printed is JSON"), value, "{text}");
    }
    let text = formats::print(value, Layout::Compact, Fidelity::Tagged).expect("it prints");
    let tagged = ReadOptions { tagged: true, ..ReadOptions::default() };
    assert_eq!(&self::value(text.as_bytes(), tagged).expect("it is tagged JSON"), value, "{text}");
}

#[test]
fn json() {
    bolero::check!().for_each(|text: &[u8]| {
        if let Ok(value) = value(text, ReadOptions::default()) {
            assert_reads_back(&value);
            let json5 = ReadOptions { dialect: Dialect::Json5, ..ReadOptions::default() };
            assert_eq!(self::value(text, json5).expect("JSON is JSON5"), value);
        }
    });
}

#[test]
fn json5() {
    bolero::check!().for_each(|text: &[u8]| {
        let json5 = ReadOptions { dialect: Dialect::Json5, ..ReadOptions::default() };
        if let Ok(value) = value(text, json5) {
            assert_reads_back(&value);
        }
    });
}

#[test]
fn lines() {
    bolero::check!().for_each(|text: &[u8]| {
        let lines = ReadOptions { framing: Framing::Lines, ..ReadOptions::default() };
        if let Ok(value) = value(text, lines) {
            assert_reads_back(&value);
        }
    });
}

#[test]
fn tagged() {
    bolero::check!().for_each(|text: &[u8]| {
        let tagged = ReadOptions { tagged: true, ..ReadOptions::default() };
        if let Ok(value) = value(text, tagged) {
            let text =
                formats::print(&value, Layout::Compact, Fidelity::Tagged).expect("it prints");
            let tagged = ReadOptions { tagged: true, ..ReadOptions::default() };
            assert_eq!(self::value(text.as_bytes(), tagged).expect("it reads back"), value);
        }
    });
}

/// Texts made of tokens reach deeper than random bytes do.
#[test]
fn tokens() {
    const TOKENS: [&str; 32] = [
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\"a\"",
        "'b'",
        "\"",
        "'",
        "\\u0041",
        "\\",
        "0",
        "-",
        "+",
        ".",
        "5.",
        ".5",
        "0x1f",
        "1e5",
        "null",
        "true",
        "NaN",
        "key",
        "$é",
        " ",
        "\n",
        "/*",
        "*/",
        "//",
        "\"$spinney:bytes\":\"\"",
        "\u{2028}",
    ];
    bolero::check!().for_each(|picks: &[u8]| {
        let text: String = picks.iter().map(|pick| TOKENS[usize::from(pick % 32)]).collect();
        for dialect in [Dialect::Json, Dialect::Json5] {
            if let Ok(value) =
                value(text.as_bytes(), ReadOptions { dialect, ..ReadOptions::default() })
            {
                assert_reads_back(&value);
            }
        }
    });
}
