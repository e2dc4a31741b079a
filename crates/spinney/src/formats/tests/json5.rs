//! JSON5: the examples and the grammar of spec.json5.org.

use super::{JSON, JSON5, assert_reads, events, refusal};

#[test]
fn the_example_of_the_specification() {
    let text = r#"
        // comments
        {
          unquoted: 'and you can quote me on that',
          singleQuotes: 'I can use "double quotes" here',
          lineBreaks: "Look, Mom! \
No \\n's!",
          hexadecimal: 0xdecaf,
          leadingDecimalPoint: .8675309, andTrailing: 8675309.,
          positiveSign: +1,
          trailingComma: 'in objects', andIn: ['arrays',],
          "backwardsCompatible": "with JSON",
        }
    "#;
    let expected = concat!(
        r#"{"unquoted":"and you can quote me on that","#,
        r#""singleQuotes":"I can use \"double quotes\" here","lineBreaks":"Look, Mom! No \\n's!","#,
        r#""hexadecimal":912559,"leadingDecimalPoint":0.8675309,"andTrailing":8675309,"#,
        r#""positiveSign":1,"trailingComma":"in objects","andIn":["arrays"],"#,
        r#""backwardsCompatible":"with JSON"}"#,
    );
    assert_reads(text, JSON5, expected);
}

#[test]
fn json_is_json5() {
    for text in
        ["null", "-0", "1e400", r#"{"a":[1,true,{}],"é\n":"\u0000"}"#, "[]", "{}", "[[],[]]"]
    {
        assert_eq!(events(text, JSON5).ok(), events(text, JSON).ok(), "{text}");
    }
}

#[test]
fn comments_and_white_space() {
    for text in [
        "/**/1",
        "/***/1",
        "/* * / **/1",
        "//\n1",
        "// x\r1",
        "//\u{2028}1",
        "1//",
        "1 // x\n // y",
        "1/*é*/",
        "\u{a0}\u{feff}\u{b}\u{c}\u{2003}\u{3000}\u{2029}1\u{1680}",
        "/*\n*//**/ 1 /*/*/",
    ] {
        assert_reads(text, JSON5, "1");
    }
    for text in [
        "[/**/1/**/,/**/2/**/]",
        "[1,2,]",
        "[1,2/**/,/**/]",
        "[1,//\n2,//]\n]",
        "\u{a0}[\u{a0}1\u{a0},2]",
    ] {
        assert_reads(text, JSON5, "[1,2]");
    }
    for text in
        ["{a:1}", "{/**/a/**/:/**/1/**/}", "{a:1,}", "{'a':1/**/,/**/}", "{\"a\"/**/:1,//}\n}"]
    {
        assert_reads(text, JSON5, r#"{"a":1}"#);
    }
    assert_reads("[/**/]", JSON5, "[]");
    assert_reads("{/**/}", JSON5, "{}");
    assert_reads(&format!("/*{}*/1", "x*".repeat(100_000)), JSON5, "1");
}

#[test]
fn keys() {
    for (text, key) in [
        ("{$:1}", "$"),
        ("{_a1$:1}", "_a1$"),
        ("{ünïcödé:1}", "ünïcödé"),
        ("{\\u0061b\\u{:1}", ""),
        ("{\\u0061b:1}", "ab"),
        ("{a\\u00e9:1}", "aé"),
        ("{a\u{200c}b\u{301}:1}", "a\u{200c}b\u{301}"),
        ("{null:1}", "null"),
        ("{Infinity:1}", "Infinity"),
        ("{'it\\'s':1}", "it's"),
        ("{'12':1}", "12"),
    ] {
        match key {
            "" => assert!(refusal(text, JSON5).contains("expected an escape"), "{text}"),
            key => assert_reads(text, JSON5, &format!("{{\"{key}\":1}}")),
        }
    }
}

#[test]
fn strings() {
    for (text, expected) in [
        (r#"'a"b'"#, r#""a\"b""#),
        (r#"'\'\"\v\0\x41\u0042\q'"#, r#""'\"\u000b\u0000ABq""#),
        ("'a\\\nb\\\r\nc\\\rd\\\u{2028}e'", r#""abcde""#),
        ("'tab\there\u{1}'", r#""tab\there\u0001""#),
        ("\"it's\u{2028}\"", "\"it's\u{2028}\""),
        ("''", r#""""#),
    ] {
        assert_reads(text, JSON5, expected);
    }
}

#[test]
fn numbers() {
    for (text, expected) in [
        ("+1", "1"),
        ("-1", "-1"),
        ("+0", "0"),
        ("-0", "-0"),
        (".5", "0.5"),
        ("-.5", "-0.5"),
        ("+.50", "0.50"),
        ("5.", "5"),
        ("-5.", "-5"),
        ("5.e3", "5e3"),
        (".5E-3", "0.5E-3"),
        ("0.", "0"),
        ("0x10", "16"),
        ("-0x0", "-0"),
        ("+0XfF", "255"),
        ("0xffffffffffffffff", "18446744073709551615"),
        ("-0xffffffffffffffff", "-18446744073709551615"),
        ("0x00000000000000000000001", "1"),
    ] {
        assert_reads(text, JSON5, expected);
        assert_reads(&format!("[{text},{text}]"), JSON5, &format!("[{expected},{expected}]"));
        assert_reads(&format!("{{a:{text}}}"), JSON5, &format!("{{\"a\":{expected}}}"));
    }
}

#[test]
fn what_json5_refuses() {
    for (text, message) in [
        ("", "line 1, column 1: expected a value, found the end of the input"),
        ("[,]", "line 1, column 2: expected a value, found `,`"),
        ("[1,,]", "line 1, column 4: expected a value, found `,`"),
        ("{,}", "line 1, column 2: expected a key or `}`, found `,`"),
        ("{a:]", "line 1, column 4: expected a value, found `]`"),
        ("{a:1,,}", "line 1, column 6: expected a key or `}`, found `,`"),
        ("{1:1}", "line 1, column 2: expected a character of an unquoted key, found `1`"),
        ("{a-b:1}", "line 1, column 3: expected `:`, found `-`"),
        ("{a b:1}", "line 1, column 4: expected `:`, found `b`"),
        ("{\\u002d:1}", "line 1, column 2: expected a character of an unquoted key, found `\\`"),
        ("{a\\n:1}", "line 1, column 3: expected a character of an unquoted key, found `\\`"),
        ("{a", "line 1, column 3: expected `:`, found the end of the input"),
        ("/*", "line 1, column 3: expected `*/`, found the end of the input"),
        ("/*/", "line 1, column 4: expected `*/`, found the end of the input"),
        ("1 /", "line 1, column 4: expected `//` or `/*`, found the end of the input"),
        ("/1", "line 1, column 2: expected `//` or `/*`, found `1`"),
        ("Infinity", "line 1, column 1: expected a finite number, found `Infinity`"),
        ("-Infinity", "line 1, column 1: expected a finite number, found `-Infinity`"),
        ("[+NaN]", "line 1, column 2: expected a finite number, found `+NaN`"),
        ("+", "line 1, column 2: expected a digit, found the end of the input"),
        ("+ 1", "line 1, column 2: expected a digit, found U+0020"),
        (".", "line 1, column 1: expected a digit, found `.`"),
        ("01", "line 1, column 2: expected no digit after a leading zero, found `1`"),
        ("0x", "line 1, column 3: expected a hexadecimal digit, found the end of the input"),
        ("0xg", "line 1, column 3: expected a hexadecimal digit, found `g`"),
        ("0x1.5", "line 1, column 4: expected the end of the input, found `.`"),
        ("1e", "line 1, column 3: expected a digit of the exponent, found the end of the input"),
        ("nul", "line 1, column 4: expected `null`, found the end of the input"),
        ("'a", "line 1, column 3: expected `'`, found the end of the input"),
        (
            "'a\nb'",
            "line 1, column 3: expected `'`; line ends must be escaped, found the end of the line",
        ),
        ("'\\1'", "line 1, column 2: expected no digit after `\\`: octal escapes are not JSON5"),
        ("'\\x4'", "line 1, column 2: expected two hexadecimal digits after `\\x`"),
        ("\u{85}1", "line 1, column 1: expected a value, found U+0085"),
    ] {
        assert_eq!(refusal(text, JSON5), format!("invalid input: {message}"), "{text}");
    }
    assert_eq!(
        refusal("0x10000000000000000", JSON5),
        "limit exceeded: line 1, column 1: a hexadecimal number is above 2^64 - 1; write it in decimal digits"
    );
}
