//! The official suite of JSONPath (RFC 9535), as `scripts/prepare-jsonpath-suite` fetches it: over values,
//! and over the same documents in pages, which must give the same answers.

use std::path::PathBuf;

use serde_json::Value as Json;
use spinney::query::{Budget, Node, Query, QueryLimits};
use spinney::value::ValueBuilder;
use spinney::{ErrorKind, Memory, OpenOptions, Store, Value, formats};

/// `target/jsonpath-suite`, or the folder that `SPINNEY_TEST_QUERIES` names.
fn suite() -> PathBuf {
    let fetched = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/jsonpath-suite");
    std::env::var_os("SPINNEY_TEST_QUERIES").map_or_else(|| fetched.into(), PathBuf::from)
}

fn value(json: &Json) -> Value {
    formats::parse(&json.to_string()).expect("JSON")
}

/// What a query finds in any tree, with the normalized paths.
fn run<N: Node>(query: &Query, root: N) -> (Vec<Value>, Vec<String>) {
    let mut matches = query.run(root, Budget::default());
    let (mut values, mut paths) = (Vec::new(), Vec::new());
    while let Some(node) = matches.next().expect("it reads") {
        let mut builder = ValueBuilder::default();
        node.visit(&mut builder).expect("it reads");
        values.push(builder.finish().expect("a value"));
        paths.push(matches.location().expect("it reads").to_string());
    }
    (values, paths)
}

fn run_stored(store: &Store, document: &Value, query: &Query) -> (Vec<Value>, Vec<String>) {
    store.write(|tx| tx.set("/doc", document)).expect("sets");
    let snapshot = store.read().expect("reads");
    let mut found = snapshot.query("/doc", query, QueryLimits::default()).expect("there is a node");
    let (mut values, mut paths) = (Vec::new(), Vec::new());
    while let Some(node) = found.next() {
        values.push(node.expect("it reads").value().expect("it reads"));
        paths.push(found.location().expect("it reads").to_string());
    }
    (values, paths)
}

/// One of the allowed results, and the paths that belong to it.
fn allowed(case: &Json) -> Vec<(Vec<Value>, Vec<String>)> {
    let lists = |one: &str, several: &str| match (case.get(one), case.get(several)) {
        (Some(only), _) => vec![only.clone()],
        (_, Some(several)) => several.as_array().expect("results").clone(),
        _ => panic!("no {one}: {case}"),
    };
    let text = |path: &Json| path.as_str().expect("a path").to_owned();
    let paths = lists("result_paths", "results_paths");
    let results = lists("result", "results").into_iter().zip(paths);
    results
        .map(|(values, paths)| {
            let values = values.as_array().expect("values").iter().map(value).collect();
            (values, paths.as_array().expect("paths").iter().map(text).collect())
        })
        .collect()
}

#[test]
fn official_suite() {
    let file = suite().join("cts.json");
    if !file.is_file() {
        println!("skipped: 1: official suite of JSONPath: no file `{}`", file.display());
        return;
    }
    let text = std::fs::read_to_string(&file).expect("cts.json");
    let suite: Json = serde_json::from_str(&text).expect("JSON");
    let cases = suite["tests"].as_array().expect("tests");
    let folder = tempfile::tempdir().expect("a folder");
    let tiny = Memory::with_sizes(512, 64, 1 << 20);
    let stores = [
        OpenOptions::new().over(std::sync::Arc::new(tiny), None),
        spinney::open("memory:").expect("a store"),
        spinney::open(&format!("lmdb:{}", folder.path().display())).expect("a store"),
    ];
    let mut valid = 0;
    for case in cases {
        let selector = case["selector"].as_str().expect("a query");
        if case["invalid_selector"] == Json::Bool(true) {
            let error = Query::parse(selector).expect_err(selector);
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{selector}: {error}");
            assert!(error.to_string().contains("character "), "{selector}: {error}");
            continue;
        }
        valid += 1;
        let query = Query::parse(selector).unwrap_or_else(|error| panic!("{selector}: {error}"));
        let document = value(&case["document"]);
        let allowed = allowed(case);
        let found = run(&query, &document);
        assert!(allowed.contains(&found), "{case}\n{found:?}");
        for store in &stores {
            assert_eq!(run_stored(store, &document, &query), found, "{case}");
        }
    }
    println!("{} cases, {valid} of them of valid queries", cases.len());
    assert!(cases.len() > 680, "only {} cases", cases.len());
}
