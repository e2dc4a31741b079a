//! Metadata and bytes as JSON, and back.

use spinney_core::ErrorKind;

use super::random::Random;
use super::{Event, Fidelity, JSON, JSON5, Layout, TAGGED, events, print, refusal};

#[test]
fn forms() {
    let meta = |name: &str, value: &str| Event::Meta(name.to_owned(), value.to_owned());
    let open = Event::Open(spinney_core::Container::Map);
    for (tree, text) in [
        (vec![Event::Bytes(vec![1, 2])], r#"{"$spinney:bytes":"AQI="}"#),
        (
            vec![meta("a", "b"), meta("c", "\n"), Event::Null],
            r#"{"$spinney:meta":{"a":"b","c":"\n"},"$spinney:value":null}"#,
        ),
        (
            vec![meta("a", "b"), Event::Bytes(vec![])],
            r#"{"$spinney:meta":{"a":"b"},"$spinney:value":{"$spinney:bytes":""}}"#,
        ),
        (
            vec![
                meta("a", "b"),
                open.clone(),
                Event::Key("x".into()),
                meta("c", "d"),
                open.clone(),
                Event::Close,
                Event::Close,
            ],
            r#"{"$spinney:meta":{"a":"b"},"$spinney:value":{"x":{"$spinney:meta":{"c":"d"},"$spinney:value":{}}}}"#,
        ),
        (
            vec![
                open.clone(),
                Event::Key("$spinney:bytes".into()),
                Event::Null,
                Event::Key("$spinney:".into()),
                Event::Null,
                Event::Close,
            ],
            r#"{"$spinney:$spinney:bytes":null,"$spinney:$spinney:":null}"#,
        ),
    ] {
        assert_eq!(print(&tree, Layout::Compact, Fidelity::Tagged).expect("it prints"), text);
        assert_eq!(events(text, TAGGED).expect("it is accepted"), tree);
        let pretty = print(&tree, Layout::Pretty, Fidelity::Tagged).expect("it prints");
        assert_eq!(events(pretty, TAGGED).expect("it is accepted"), tree);
    }
}

#[test]
fn random_trees_come_back() {
    let mut random = Random { rng: fastrand::Rng::with_seed(3), tagged: true };
    for _ in 0..2000 {
        let tree = random.tree();
        for layout in [Layout::Compact, Layout::Pretty] {
            let text = print(&tree, layout, Fidelity::Tagged).expect("it prints");
            let peer = serde_json::from_str::<serde_json::Value>(&text);
            let is_refused = |error: serde_json::Error| !error.to_string().contains("out of range");
            assert!(!peer.is_err_and(is_refused), "{text}");
            assert_eq!(events(&text, TAGGED).expect("it is accepted"), tree, "{text}");
            assert_eq!(
                events(&text, super::How { tagged: true, ..JSON5 }).expect("it is accepted"),
                tree
            );
        }
        let has_more = tree.iter().any(|event| matches!(event, Event::Meta(..) | Event::Bytes(_)));
        let refused = print(&tree, Layout::Compact, Fidelity::Refuse);
        assert_eq!(refused.is_err(), has_more);
        assert!(refused.err().is_none_or(|error| error.kind() == ErrorKind::Unsupported));
        let lossy = print(&tree, Layout::Compact, Fidelity::Lossy).expect("it prints");
        let lost = events(lossy, JSON).expect("it is accepted");
        assert_eq!(
            lost.len(),
            tree.iter().filter(|event| !matches!(event, Event::Meta(..))).count()
        );
    }
}

#[test]
fn without_the_option_forms_are_ordinary() {
    assert_eq!(events(r#"{"$spinney:bytes":"AQI="}"#, JSON).expect("it is accepted").len(), 4);
}

#[test]
fn malformed_forms_are_refused() {
    for text in [
        r#"{"$spinney:bytes":"AQI"}"#,
        r#"{"$spinney:bytes":1}"#,
        r#"{"$spinney:bytes":{}}"#,
        r#"{"$spinney:bytes":["AQI="]}"#,
        r#"{"$spinney:bytes":"AQI=","a":1}"#,
        r#"{"a":1,"$spinney:bytes":"AQI="}"#,
        r#"{"$spinney:meta":1}"#,
        r#"{"$spinney:meta":[]}"#,
        r#"{"$spinney:meta":{"a":1},"$spinney:value":1}"#,
        r#"{"$spinney:meta":{"a":{}},"$spinney:value":1}"#,
        r#"{"$spinney:meta":{}}"#,
        r#"{"$spinney:meta":{},"a":1}"#,
        r#"{"$spinney:meta":{},"$spinney:value":1,"a":1}"#,
        r#"{"$spinney:meta":{},"$spinney:value":[1],"a":1}"#,
        r#"{"$spinney:meta":{},"$spinney:value":{"$spinney:meta":{},"$spinney:value":1}}"#,
        r#"{"$spinney:value":1}"#,
        r#"{"$spinney:":1}"#,
        r#"{"$spinney:new":1}"#,
    ] {
        assert!(refusal(text, TAGGED).starts_with("invalid input: line 1, column "), "{text}");
    }
}

#[test]
fn depth_counts_the_tree_and_not_the_forms() {
    let wrapped = r#"{"$spinney:meta":{"a":"b"},"$spinney:value":["#;
    let nested = |depth: usize| wrapped.repeat(depth) + &"]}".repeat(depth);
    let bytes = nested(512)
        .replace("[]", r#"[{"$spinney:meta":{"a":"b"},"$spinney:value":{"$spinney:bytes":""}}]"#);
    assert!(events(nested(512), TAGGED).is_ok());
    assert!(events(bytes, TAGGED).is_ok());
    assert!(refusal(nested(513), TAGGED).starts_with("limit exceeded: "));
    assert!(refusal("[".repeat(513), TAGGED).starts_with("limit exceeded: "));
}
