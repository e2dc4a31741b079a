//! JSON Lines.

use super::{LINES, assert_reads, refusal};

#[test]
fn lines_become_a_list() {
    assert_reads("", LINES, "[]");
    assert_reads("\n \n\r\n", LINES, "[]");
    assert_reads("1\n{\"a\": [2]}\n\n\"x\"", LINES, r#"[1,{"a":[2]},"x"]"#);
    assert_reads("\u{feff}1\r\n  2 \r\n\t\n3\n", LINES, "[1,2,3]");
    assert_reads("1\n2\n", LINES, "[1,2]");
}

#[test]
fn a_line_holds_one_value() {
    for (text, message) in [
        ("1\n2 3\n", "line 2, column 3: expected the end of the line, found `3`"),
        ("1\n[2,\n3]\n", "line 2, column 4: expected a value, found the end of the line"),
        ("[1\n]", "line 1, column 3: expected `,` or `]`, found the end of the line"),
        (
            "{\n\"a\":1}",
            "line 1, column 2: expected a key in `\"` or `}`, found the end of the line",
        ),
        ("{\"a\"\n:1}", "line 1, column 5: expected `:`, found the end of the line"),
        ("\n\n{\"a\"", "line 3, column 5: expected `:`, found the end of the input"),
        ("1\n\n]", "line 3, column 1: expected a value, found `]`"),
    ] {
        assert_eq!(refusal(text, LINES), format!("invalid input: {message}"));
    }
}

#[test]
fn the_list_is_a_level() {
    let nested = |depth: usize| format!("1\n{}{}\n", "[".repeat(depth), "]".repeat(depth));
    assert!(super::events(nested(511), LINES).is_ok());
    assert!(refusal(nested(512), LINES).starts_with("limit exceeded: line 2, column 512: "));
}
