//! The printer.

use std::io::Write;

use spinney_core::{Container, ErrorKind, Key, Scalar, Text, Value, Visitor};

use super::{Event, Fidelity, JSON, JsonWriter, Layout, events, print};

#[test]
fn pretty_is_laid_out_as_documented() {
    let text = r#"{"a":[1,{"b":{},"c":[]},[]],"d":"x"}"#;
    let pretty = "{\n  \"a\": [\n    1,\n    {\n      \"b\": {},\n      \"c\": []\n    },\n    []\n  ],\n  \"d\": \"x\"\n}";
    let tree = events(text, JSON).expect("it is accepted");
    assert_eq!(print(&tree, Layout::Pretty, Fidelity::Refuse).expect("it prints"), pretty);
    assert_eq!(print(&tree, Layout::Compact, Fidelity::Refuse).expect("it prints"), text);
    let peer: serde_json::Value = serde_json::from_str(text).expect("it is JSON");
    assert_eq!(serde_json::to_string_pretty(&peer).expect("it prints"), pretty);
}

#[test]
fn refusal_names_the_first_value_that_would_lose_something() {
    let within = |path: &[&str], last: Event| {
        let mut tree = Vec::new();
        for segment in path {
            match segment.parse::<usize>() {
                Ok(before) => {
                    tree.push(Event::Open(Container::List));
                    tree.extend((0..before).flat_map(|_| {
                        [
                            Event::Open(Container::Map),
                            Event::Key("q".into()),
                            Event::Null,
                            Event::Close,
                        ]
                    }));
                }
                Err(_) => {
                    tree.push(Event::Open(Container::Map));
                    for other in ["other", "another"] {
                        tree.extend([
                            Event::Key(other.into()),
                            Event::Open(Container::List),
                            Event::Null,
                            Event::Close,
                        ]);
                    }
                    tree.push(Event::Key((*segment).to_owned()));
                }
            }
        }
        tree.push(last);
        tree
    };
    let meta = Event::Meta("a".into(), "b".into());
    for (path, shown) in [
        (&[][..], "the root"),
        (&["a"], "`/a`"),
        (&["0"], "`/0`"),
        (&["3", "0", "k"], "`/3/0/k`"),
        (&["a/b", "2", "x~\n\"é", "-"], "`/a~1b/2/x~0\n\"é/-`"),
    ] {
        for (event, what) in [(Event::Bytes(vec![1]), "the bytes"), (meta.clone(), "the metadata")]
        {
            let error = print(&within(path, event), Layout::Compact, Fidelity::Refuse);
            let error = error.expect_err("it would lose something");
            assert_eq!(error.kind(), ErrorKind::Unsupported);
            assert_eq!(
                error.context(),
                format!(
                    "JSON has no form for {what} of {shown}; `--lossy` drops it, `--tagged` keeps it"
                )
            );
        }
    }
}

#[test]
fn bytes_are_base64_when_loss_is_allowed() {
    for len in [0, 1, 2, 3, 100, 12_288, 12_289, 100_000] {
        let bytes: Vec<u8> = (0..len).map(|at| at as u8).collect();
        let text =
            super::super::print(&Value::Bytes(bytes.clone()), Layout::Compact, Fidelity::Lossy);
        let text = text.expect("it prints");
        assert_eq!(super::super::base64::decode(text.trim_matches('"')), Some(bytes));
    }
}

#[test]
fn long_texts_pass_in_pieces() {
    struct Pieces(Vec<u8>, usize);
    impl Write for Pieces {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.1 = self.1.max(bytes.len());
            self.0.extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let plain = "plain é€😀 ".repeat(50_000);
    let special = "special \n\0é ".repeat(50_000);
    let mut writer = JsonWriter::new(Pieces(Vec::new(), 0), Layout::Compact, Fidelity::Refuse);
    writer.open(Container::List).expect("it prints");
    for text in [&plain, &special] {
        writer.scalar(Scalar::String(Text::new(text))).expect("it prints");
    }
    writer.open(Container::Map).expect("it prints");
    for key in 0..20_000 {
        writer.key(Key::Int(key)).expect("it prints");
        writer.scalar(Scalar::Null).expect("it prints");
    }
    writer.close().expect("it prints");
    writer.close().expect("it prints");
    let Pieces(text, longest) = writer.finish().expect("it prints");
    assert!(longest < 256 * 1024, "{longest}");
    let peer: serde_json::Value = serde_json::from_slice(&text).expect("it is JSON");
    assert!(peer[0] == plain && peer[1] == special);
    assert_eq!(peer[2].as_object().map(serde_json::Map::len), Some(20_000));
}

#[test]
fn values_one_after_the_other_do_not_disturb_each_other() {
    let mut writer = JsonWriter::new(Vec::new(), Layout::Compact, Fidelity::Refuse);
    let long = "x".repeat(70_000);
    for _ in 0..3 {
        writer.open(Container::Map).expect("it prints");
        writer.key(Key::Text("a")).expect("it prints");
        writer.scalar(Scalar::String(Text::new(&long))).expect("it prints");
        writer.close().expect("it prints");
    }
    let expected = format!("{{\"a\":\"{long}\"}}").repeat(3);
    assert!(writer.finish().expect("it prints") == expected.as_bytes());
}

#[test]
fn a_broken_output_is_an_error() {
    #[derive(Debug)]
    struct Full;
    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut writer = JsonWriter::new(Full, Layout::Compact, Fidelity::Refuse);
    writer.scalar(Scalar::Null).expect("it is buffered");
    assert_eq!(writer.finish().expect_err("nothing can be written").kind(), ErrorKind::Io);
}
