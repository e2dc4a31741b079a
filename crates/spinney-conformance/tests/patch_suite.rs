//! The official suite of JSON Patch, as `scripts/prepare-patch-suite` fetches it.

use std::path::PathBuf;

use serde_json::Value as Json;
use spinney::formats;
use spinney::{Result, Store, Value};

/// `target/json-patch-suite`, or the folder that `SPINNEY_TEST_PATCHES` names.
fn suite() -> PathBuf {
    let fetched = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/json-patch-suite");
    std::env::var_os("SPINNEY_TEST_PATCHES").map_or_else(|| fetched.into(), PathBuf::from)
}

fn value(json: &Json) -> Value {
    formats::parse(&json.to_string()).expect("JSON")
}

/// The document after the patch, or why it was refused.
fn patched(store: &Store, document: &Value, patch: &Json) -> Result<Value> {
    store.write(|tx| tx.set("/doc", document)).expect("sets");
    let text = patch.to_string();
    let written = store.write(|tx| {
        tx.patch_with("/doc", |visitor| {
            formats::read(text.as_bytes(), formats::Dialect::Json, visitor)
        })
    });
    let now = store.read().and_then(|snapshot| snapshot.get("/doc")).expect("reads");
    if written.is_err() {
        assert_eq!(now.as_ref(), Some(document), "a refused patch left something: {text}");
    }
    written.map(|_| now.expect("there is a document"))
}

#[test]
fn official_suite() {
    let folder = suite();
    if !folder.is_dir() {
        println!("skipped: 1: official suite of JSON Patch: no folder `{}`", folder.display());
        return;
    }
    let store = spinney::open("memory:").expect("a store");
    let (mut run, mut disabled) = (0, 0);
    for file in ["tests.json", "spec_tests.json"] {
        let text = std::fs::read_to_string(folder.join(file)).expect(file);
        let cases: Vec<Json> = serde_json::from_str(&text).expect(file);
        for case in &cases {
            let (Some(document), Some(patch)) = (case.get("doc"), case.get("patch")) else {
                continue;
            };
            if case["disabled"] == Json::Bool(true) {
                disabled += 1;
                continue;
            }
            run += 1;
            let outcome = patched(&store, &value(document), patch);
            match (case.get("error"), case.get("expected"), outcome) {
                (Some(error), _, Ok(now)) => panic!("not refused ({error}): {now:?}: {case}"),
                (Some(_), _, Err(_)) => {}
                (None, _, Err(error)) => panic!("{error}: {case}"),
                (None, Some(expected), Ok(now)) => assert_eq!(now, value(expected), "{case}"),
                (None, None, Ok(_)) => {}
            }
        }
    }
    println!("{run} cases, {disabled} that the suite has disabled");
    assert!(run > 80, "only {run} cases");
}
