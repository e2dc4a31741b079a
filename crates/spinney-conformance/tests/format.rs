//! Stores of released formats open and hold what they held; encodings do not change.
//!
//! `SPINNEY_WRITE_FIXTURES=1 cargo test --test format` makes the fixture of the present format anew.

use std::fs;
use std::path::{Path, PathBuf};

use spinney::formats::{self, Fidelity, JsonWriter, Layout, ReadOptions};
use spinney::{Map, OpenOptions, Store, Value};
use spinney_conformance::folder;
use spinney_conformance::subject::json;
use spinney_core::page::{self, Entry};
use spinney_core::{Container, Key, Num, Scalar, Text, node};

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/format-1")
}

fn tagged(store: &Store) -> String {
    let mut writer = JsonWriter::new(Vec::new(), Layout::Pretty, Fidelity::Tagged);
    store.read().and_then(|snapshot| snapshot.visit("", &mut writer)).expect("it reads");
    String::from_utf8(writer.finish().expect("it prints")).expect("a text") + "\n"
}

/// All kinds of nodes; containers of each size; keys whose separators are cut.
fn fill(store: &Store) -> spinney::Result<()> {
    let numbers = "[0, -0, 1.10, 1e400, 9007199254740993, 18446744073709551616, 5e-324, 63, 64]";
    let list: Vec<Value> = (0..2_500_u64).map(Value::from).collect();
    let map: Map = (0..700).map(|n| (format!("key/{n}"), format!("value {n}"))).collect();
    let cut: Map = (0..24).map(|n| (format!("{}{n:02}", "separator".repeat(70)), n)).collect();
    store.write(|tx| {
        tx.set(
            "/scalars",
            &json(r#"{"null": null, "yes": true, "no": false, "": "", "10": "é\u0000"}"#),
        )?;
        tx.set("/scalars/numbers", &json(numbers))?;
        tx.set("/scalars/bytes", &Value::Bytes((0..=255).collect()))?;
        tx.set("/containers/list", &list.clone().into())?;
        tx.set("/containers/map", &map.clone().into())?;
        tx.set("/containers/cut", &cut.clone().into())?;
        tx.set("/containers/empty", &json(r#"{"map": {}, "list": []}"#))?;
        tx.set("/long/text", &"long text, ".repeat(1_000).into())?;
        tx.set("/long/escaped", &"\"line\"\n".repeat(700).into())?;
        tx.set("/long/bytes", &Value::Bytes(vec![0xa5; 9_000]))
    })?;
    // Ids and ranks that only edits make.
    store.write(|tx| {
        (0..40_u64).try_for_each(|n| tx.insert("/containers/list/1250", &n.into()))?;
        tx.mv("/containers/list/3", "/containers/list/2000")?;
        tx.remove("/containers/list/0")?;
        tx.set("/containers/small", &json("[1, [2, {}], 3]"))?;
        tx.mv("/containers/small/0", "/containers/small/2")?;
        tx.set_meta("/containers/map", "origin", Some("fixture"))?;
        tx.set_meta("/scalars/null", "note", Some("é"))
    })?;
    store.write(|tx| tx.set("/gone", &list.clone().into()))?;
    store.write(|tx| tx.mv("/scalars", "/renamed").and_then(|()| tx.remove("/gone").map(drop)))?;
    Ok(())
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).expect("mkdir");
    for entry in fs::read_dir(from).expect("the fixture") {
        let entry = entry.expect("an entry");
        fs::copy(entry.path(), to.join(entry.file_name())).expect("copies");
    }
}

fn write_fixture() {
    let folder = folder::temporary();
    let dir = folder.path().join("store");
    let store = spinney::open(&format!("lmdb:{}", dir.display())).expect("a store");
    fill(&store).expect("fills");
    store.wait_until_reclaimed();
    let small = folder.path().join("small");
    store.backup(&small).expect("a compact copy");
    let target = fixture();
    let _ = fs::remove_dir_all(target.join("store"));
    fs::create_dir_all(target.join("store")).expect("mkdir");
    for name in ["data.mdb", "spinney"] {
        fs::copy(small.join(name), target.join("store").join(name)).expect("copies");
    }
    fs::write(target.join("expected.json"), tagged(&store)).expect("writes");
}

#[test]
fn a_store_of_format_1_reads() {
    if std::env::var_os("SPINNEY_WRITE_FIXTURES").is_some() {
        write_fixture();
    }
    let folder = folder::temporary();
    let dir = folder.path().join("store");
    copy(&fixture().join("store"), &dir);
    let len = fs::metadata(dir.join("data.mdb")).expect("metadata").len();
    assert!(len < 300_000, "a fixture of {len} bytes");
    let url = format!("lmdb:{}", dir.display());
    let store = OpenOptions::new().create(false).open(&url).expect("the store opens");
    let expected = fs::read_to_string(fixture().join("expected.json")).expect("a text");
    assert!(tagged(&store) == expected, "the store holds something else");
    let report = store.read().and_then(|snapshot| snapshot.check()).expect("checks");
    assert!(report.is_sound(), "{report:?}");
    assert!(report.nodes > 3_000 && report.pages > 10, "{report:?}");
    // It can be written, and what is written is the same text in a new store.
    store.write(|tx| tx.insert("/containers/list/7", &"new".into())).expect("writes");
    store.write(|tx| tx.remove("/containers/list/7")).expect("writes");
    assert!(tagged(&store) == expected, "an edit and its opposite");
    let other = spinney::open("memory:").expect("a store");
    let options = ReadOptions { tagged: true, ..ReadOptions::default() };
    let mut options = Some(options);
    other
        .write(|tx| {
            tx.set_with("", spinney::Existing::Any, |visitor| {
                formats::read_with(expected.as_bytes(), options.take().expect("one try"), visitor)
            })
        })
        .expect("imports");
    assert!(tagged(&other) == expected);
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn node_hex(scalar: Scalar<'_>) -> String {
    let mut out = Vec::new();
    node::write_scalar(scalar, &mut out);
    hex(&out)
}

/// Everything whose bytes are part of the format, as lines of name and hex.
fn encodings() -> String {
    let mut lines = Vec::new();
    for text in ["", "0", "7", "-1", "256", "-257", "9223372036854775807", "01", "a", "\u{1}", "é"]
    {
        let mut out = Vec::new();
        Key::new(text).encode(&mut out);
        lines.push(format!("key {text:?}: {}", hex(&out)));
    }
    for text in
        ["0", "63", "64", "-1", "65536", "-0", "1.10", "0.5", "1e400", "18446744073709551616"]
    {
        let number = Num::parse(text).expect("a number");
        lines.push(format!("number {text}: {}", node_hex(Scalar::Number(number))));
    }
    lines.push(format!("null: {}", node_hex(Scalar::Null)));
    lines.push(format!("true: {}", node_hex(Scalar::Bool(true))));
    lines.push(format!("bytes: {}", node_hex(Scalar::Bytes(&[1, 2]))));
    for text in ["", "text", "\"escaped\"", &"s".repeat(70)] {
        lines.push(format!("string {text:?}: {}", node_hex(Scalar::String(Text::new(text)))));
    }
    let values: Vec<Vec<u8>> = (0..3_u8).map(|n| vec![0x40 + n]).collect();
    let keys = ["stem a", "stem b", "stem c"];
    let map = |index: usize| Entry { key: keys[index].as_bytes(), id: 0, value: &values[index] };
    let ids = [4, 2, 9];
    let list = |index: usize| Entry { key: &[], id: ids[index], value: &values[index] };
    let mut body = Vec::new();
    page::encode(Container::Map, 3, map, None, &mut body);
    lines.push(format!("map page: {}", hex(&body)));
    body.clear();
    page::encode(Container::List, 3, list, None, &mut body);
    lines.push(format!("list page: {}", hex(&body)));
    lines.join("\n") + "\n"
}

#[test]
fn encodings_of_format_1_stay() {
    let file = fixture().join("encodings.txt");
    if std::env::var_os("SPINNEY_WRITE_FIXTURES").is_some() {
        fs::create_dir_all(fixture()).expect("mkdir");
        fs::write(&file, encodings()).expect("writes");
    }
    assert_eq!(encodings(), fs::read_to_string(file).expect("a text"));
}
