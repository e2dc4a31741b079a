//! Rust types go in and come back, in the form that JSON has of them.
#![cfg(feature = "serde")]

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use spinney::formats::{self, Fidelity, JsonWriter, Layout};
use spinney::{ErrorKind, Result, Store, Value};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
enum Shape {
    Point,
    Circle(f64),
    Line(i8, i8),
    Box { width: u32, height: u32 },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Everything {
    text: String,
    flag: bool,
    letter: char,
    least: i64,
    most: u64,
    wide: (i128, u128),
    floats: Vec<f64>,
    single: f32,
    nothing: Option<u8>,
    something: Option<u8>,
    unit: (),
    shapes: Vec<Shape>,
    by_number: BTreeMap<i16, String>,
    by_shape: BTreeMap<bool, u8>,
    nested: Option<Box<Everything>>,
}

fn everything() -> Everything {
    Everything {
        text: "\u{1F333} \"tree\"\n".into(),
        flag: true,
        letter: 'ß',
        least: i64::MIN,
        most: u64::MAX,
        wide: (i128::MIN, u128::MAX),
        floats: vec![0.1, -0.0, 1e300, f64::MIN_POSITIVE, 100.0],
        single: 0.1,
        nothing: None,
        something: Some(7),
        unit: (),
        shapes: vec![
            Shape::Point,
            Shape::Circle(2.5),
            Shape::Line(-1, 1),
            Shape::Box { width: 3, height: 4 },
        ],
        by_number: [(-2, "a".to_owned()), (10, "b".to_owned()), (9, String::new())].into(),
        by_shape: [(true, 1), (false, 0)].into(),
        nested: None,
    }
}

fn store() -> Result<Store> {
    spinney::open("memory:")
}

fn json(store: &Store, path: &str) -> Result<String> {
    let mut writer = JsonWriter::new(Vec::new(), Layout::Compact, Fidelity::Refuse);
    store.read()?.visit(path, &mut writer)?;
    Ok(String::from_utf8(writer.finish()?).expect("JSON is UTF-8"))
}

#[test]
fn types_come_back_as_they_went_in() -> Result<()> {
    let store = store()?;
    let mut inner = everything();
    inner.text = "inner".into();
    let whole = Everything { nested: Some(Box::new(inner)), ..everything() };
    store.write(|tx| {
        tx.set_as("/a/b", &whole)?;
        assert_eq!(tx.get_as("/a/b")?.as_ref(), Some(&whole));
        Ok(())
    })?;
    let snapshot = store.read()?;
    assert_eq!(snapshot.get_as("/a/b")?, Some(whole));
    assert_eq!(snapshot.get_as("/a/b/nested/text")?, Some("inner".to_owned()));
    assert_eq!(snapshot.get_as::<Everything>("/a/c")?, None);
    Ok(())
}

/// What is stored is what `serde_json` prints, but for what JSON has no form for.
#[test]
fn the_form_is_that_of_json() -> Result<()> {
    let store = store()?;
    let whole = everything();
    store.write(|tx| tx.set_as("/a", &whole))?;
    let ours = formats::parse(&json(&store, "/a")?)?;
    let theirs = formats::parse(&serde_json::to_string(&whole).expect("prints"))?;
    let (Value::Map(mut ours), Value::Map(mut theirs)) = (ours, theirs) else {
        panic!("a struct is a map")
    };
    // Other texts of the same floats.
    assert!(ours.remove("floats").is_some() && theirs.remove("floats").is_some());
    assert_eq!(ours, theirs);

    // Documents that any program has made read as types.
    let text = serde_json::to_string(&whole).expect("prints");
    store.write(|tx| tx.set("/b", &formats::parse(&text)?))?;
    assert_eq!(store.read()?.get_as("/b")?, Some(whole));
    Ok(())
}

#[test]
fn what_has_no_form_is_refused_and_changes_nothing() -> Result<()> {
    let store = store()?;
    store.write(|tx| tx.set_as("/a", &["kept"]))?;
    let refused = |set: &dyn Fn(&mut spinney::Transaction<'_>) -> Result<()>, said: &str| {
        let error = store.write(|tx| set(tx)).expect_err(said);
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
        assert!(error.to_string().contains(said), "{error}");
        assert_eq!(json(&store, "/a").expect("reads"), r#"["kept"]"#);
    };
    refused(&|tx| tx.set_as("/a", &[1.0, f64::NAN]), "NaN is no number of JSON");
    refused(&|tx| tx.set_as("/a", &[f32::INFINITY]), "inf is no number of JSON");
    refused(&|tx| tx.set_as("/a", &BTreeMap::from([(Some(1), 1), (None, 2)])), "null");
    refused(&|tx| tx.set_as("/a", &BTreeMap::from([(vec![1], 1)])), "is a list");
    refused(&|tx| tx.set_as("/a", &Twice), "stands twice");
    Ok(())
}

/// A map with a key that stands twice.
struct Twice;

impl Serialize for Twice {
    fn serialize<S: serde::Serializer>(
        &self,
        serializer: S,
    ) -> std::result::Result<S::Ok, S::Error> {
        serializer.collect_map([("k", 1), ("k", 2)])
    }
}

#[test]
fn another_type_is_an_error_that_tells_where_and_what() -> Result<()> {
    let store = store()?;
    let document =
        r#"{"text":"x","number":300,"huge":1e400,"deep":null,"shape":{"Circle":"round"}}"#;
    store.write(|tx| tx.set("/a", &formats::parse(document)?))?;
    let snapshot = store.read()?;
    let said = |error: spinney::Error| {
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        error.to_string()
    };
    let error = said(snapshot.get_as::<u8>("/a/text").expect_err("it is a string"));
    assert!(error.contains("/a/text") && error.contains("string \"x\", expected u8"), "{error}");
    let error = said(snapshot.get_as::<u8>("/a/number").expect_err("it is too large"));
    assert!(error.contains("300"), "{error}");
    let error = said(snapshot.get_as::<f64>("/a/huge").expect_err("no float is so large"));
    assert!(error.contains("1e400"), "{error}");
    let error = said(snapshot.get_as::<Shape>("/a/shape").expect_err("a text is no radius"));
    assert!(error.contains("round"), "{error}");
    let error = said(snapshot.get_as::<Shape>("/a").expect_err("no variant"));
    assert!(error.contains("the name of a variant"), "{error}");
    assert_eq!(snapshot.get_as("/a/deep")?, Some(()));
    Ok(())
}

#[test]
fn depth_is_bounded() -> Result<()> {
    let store = store()?;
    let nested = |levels: usize| format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
    for levels in [100, 400] {
        let text = nested(levels);
        store.write(|tx| tx.set("/a", &formats::parse(&text)?))?;
        let read = store.read()?.get_as::<serde_json::Value>("/a");
        match levels {
            100 => assert_eq!(read?.map(|value| value.to_string()), Some(text)),
            _ => assert_eq!(read.expect_err("too deep").kind(), ErrorKind::LimitExceeded),
        }
    }
    Ok(())
}
