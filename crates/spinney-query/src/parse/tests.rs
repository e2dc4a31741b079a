use spinney_core::ErrorKind;

use super::parse;

fn refused(text: &str) -> (ErrorKind, String) {
    let error = parse(text).expect_err(text);
    (error.kind(), error.to_string())
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    for (text, said) in [
        ("", "character 1: expected `$`, with which every query begins, found the end"),
        ("$.", "character 3: expected a name or `*`, found the end"),
        ("$..", "character 4: expected a name, `*` or `[`, found the end"),
        ("$ ", "character 2: expected `.`, `..`, `[` or the end of the query, found ` `"),
        ("$['ä", "character 5: expected a closing `'`, found the end"),
        ("$['ä'", "character 6: expected `,` or `]`, found the end"),
        ("$[\"\\x\"]", "character 5: expected one of"),
        ("$['\\ud800']", "half of a surrogate pair"),
        ("$['\\ud800\\u0041']", "half of a surrogate pair"),
        ("$['\\ud800\\n']", "expected `u` and the other half"),
        ("$['\\u12g4']", "four hexadecimal digits"),
        ("$['\n']", "found U+000A"),
        ("$[9007199254740992]", "character 3: the integer is beyond 9007199254740991"),
        ("$[-99999999999999999999]", "beyond 9007199254740991"),
        ("$[01]", "no leading zeros"),
        ("$[-0]", "no leading zeros"),
        ("$[1:2:-]", "expected a digit, found `]`"),
        ("$[?@.a == 1.]", "expected a digit after the decimal point, found `]`"),
        ("$[?@.a == 01]", "no digit after a leading zero"),
        ("$[?@.a = 1]", "character 8: expected `,` or `]`, found `=`"),
        ("$[?1]", "expected a comparison such as `==`, as a value is no condition, found `]`"),
        ("$[?count(@.*)]", "as a value is no condition"),
        ("$[?!1]", "a literal is no condition"),
        ("$[?!@.a == 1]", "`!` binds closer than `==`"),
        ("$[?!!@.a]", "expected a query, a function or `(` after `!`, found `!`"),
        ("$[?@.* == 1]", "character 4: a comparison needs a query that finds one node at most"),
        ("$[?@..a == 1]", "finds one node at most"),
        ("$[?match(@.a, 'x') == true]", "the function gives true or false only"),
        ("$[?(@.a", "expected `&&`, `||` or `)`, found the end"),
        ("$[?(@.a) == 1]", "expected `,` or `]`, found `=`"),
        ("$[?@.a &&]", "expected a query that begins with `@` or `$`, a literal or a function"),
        ("$[?length(@.*) > 1]", "`length()` needs a query that finds one node at most"),
        ("$[?length() > 1]", "`length()` takes 1 argument and has 0"),
        ("$[?match(@.a)]", "`match()` takes 2 arguments and has 1"),
        ("$[?count(1) > 1]", "`count()` needs a query"),
        ("$[?count(@.a && @.b) > 1]", "expected `,` or `)`, found `&`"),
        ("$[?lengths(@.a) > 1]", "there is no function `lengths`; there are `length`"),
        ("$[?True == true]", "found `T`"),
        ("$[?@.a == 'x' 'y']", "expected `,` or `]`, found `'`"),
    ] {
        let (kind, message) = refused(text);
        assert_eq!(kind, ErrorKind::InvalidInput, "{text}: {message}");
        assert!(message.contains(said), "{text}: {message}");
        assert!(message.contains("character "), "{text}: {message}");
    }
}

#[test]
fn what_is_too_much_is_refused_whatever_it_is() {
    for text in [
        "$[?".to_owned() + &"(".repeat(100_000),
        "$[?".to_owned() + &"@[?".repeat(100_000),
        format!("$[?{}", "length(".repeat(100_000)),
        format!("$[?{}", "count(@[?".repeat(100_000)),
        format!("$.{}", "a".repeat(1 << 20)),
        format!("$[?match(@, '{}')]", "(".repeat(100_000)),
        "$[?search(@, '((a{1000}){1000}){1000}')]".to_owned(),
    ] {
        assert_eq!(refused(&text).0, ErrorKind::LimitExceeded, "{}", &text[..20]);
    }
}

#[test]
fn what_is_deep_and_within_the_limit_is_read() {
    let parentheses = format!("$[?{}@.a{}]", "(".repeat(500), ")".repeat(500));
    let filters = format!("$[?{}{}]", "@[?".repeat(250), "@.a".to_owned() + &"]".repeat(250));
    let calls = format!("$[?{}@.a{} == 1]", "length(".repeat(500), ")".repeat(500));
    for text in [parentheses, filters, calls, "$".to_owned() + &".a".repeat(100_000)] {
        parse(&text).unwrap_or_else(|error| panic!("{error}: {}", &text[..20]));
    }
}

#[test]
fn what_nobody_means_is_a_warning() {
    for (text, said) in [
        (r"$[?match(@.a, '\\d+')]", "character 15: `\\d+` is no regular expression of RFC 9485"),
        ("$[?search(@.a, 1)]", "the pattern is no string"),
    ] {
        let program = parse(text).expect(text);
        assert!(program.warnings[0].contains(said), "{:?}", program.warnings);
    }
    assert!(parse("$[?match(@.a, '[0-9]+')]").expect("a query").warnings.is_empty());
}
