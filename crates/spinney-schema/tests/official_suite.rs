//! The official test suite of JSON Schema, file by file: every required test passes, and how many
//! optional ones do is printed.

mod common;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use common::{read, value};
use serde_json::Value as Json;
use spinney_schema::{Documents, Draft, Options, Schema};

/// `target/json-schema-suite`, where `scripts/prepare-schema-suite` puts it, or the folder that
/// `SPINNEY_TEST_SCHEMA_SUITE` names.
fn suite() -> PathBuf {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/json-schema-suite");
    std::env::var_os("SPINNEY_TEST_SCHEMA_SUITE").map_or_else(|| beside.into(), PathBuf::from)
}

/// What a folder of the suite is called.
fn folder(draft: Draft) -> &'static str {
    match draft {
        Draft::Draft4 => "draft4",
        Draft::Draft6 => "draft6",
        Draft::Draft7 => "draft7",
        Draft::Draft201909 => "draft2019-09",
        Draft::Draft202012 => "draft2020-12",
    }
}

/// All JSON files below a folder, sorted.
fn files(folder: &Path) -> Vec<PathBuf> {
    let (mut found, mut pending) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = pending.pop() {
        for entry in std::fs::read_dir(&folder).expect("the folder reads") {
            let path = entry.expect("the entry reads").path();
            match path.is_dir() {
                true => pending.push(path),
                false if path.extension().is_some_and(|end| end == "json") => found.push(path),
                false => {}
            }
        }
    }
    found.sort();
    found
}

/// What the suite's references lead to: files under `http://localhost:1234`.
fn remotes(suite: &Path) -> Documents {
    let mut documents = Documents::new();
    let root = suite.join("remotes");
    for file in files(&root) {
        let name = file.strip_prefix(&root).expect("it is below").to_str().expect("UTF-8");
        documents
            .add(&format!("http://localhost:1234/{name}"), value(&read(&file)))
            .expect("a URI");
    }
    documents
}

/// The schema of a case, in the draft of its folder unless it names one itself.
fn in_draft(schema: &Json, draft: Draft) -> Json {
    let mut schema = schema.clone();
    if let Json::Object(members) = &mut schema
        && !members.contains_key("$schema")
    {
        members.insert("$schema".to_owned(), Json::String(draft.uri().to_owned()));
    }
    schema
}

#[derive(Default)]
struct Count {
    passed: usize,
    failed: Vec<String>,
}

fn run(file: &Path, draft: Draft, remotes: &Documents, options: Options, count: &mut Count) {
    let name = file.file_name().and_then(|name| name.to_str()).expect("UTF-8");
    for case in read(file).as_array().expect("a list of cases") {
        let schema = value(&in_draft(&case["schema"], draft));
        let compiled = Schema::compile(&schema, remotes, options);
        for test in case["tests"].as_array().expect("a list of tests") {
            let expected = test["valid"].as_bool().expect("a verdict");
            let data = value(&test["data"]);
            let verdict = match &compiled {
                Ok(compiled) => compiled.validate(&&data).map(|report| report.is_valid()),
                Err(error) => Err(error.clone()),
            };
            let what = || format!("{name}: {}: {}", case["description"], test["description"]);
            match verdict {
                Ok(verdict) if verdict == expected => count.passed += 1,
                Ok(verdict) => count.failed.push(format!("{}: {verdict}", what())),
                Err(error) => count.failed.push(format!("{}: {error}", what())),
            }
        }
    }
}

#[test]
fn required_and_optional_tests() {
    let suite = suite();
    if !suite.join("tests").is_dir() {
        println!(
            "skipped: 1: the suite is not in {}; run scripts/prepare-schema-suite",
            suite.display()
        );
        return;
    }
    let remotes = remotes(&suite);
    let mut failed = Vec::new();
    for draft in Draft::ALL {
        let folder = suite.join("tests").join(folder(draft));
        let mut required: BTreeMap<String, Count> = BTreeMap::new();
        let mut optional: BTreeMap<String, Count> = BTreeMap::new();
        for file in files(&folder) {
            let name = file.strip_prefix(&folder).expect("it is below").display().to_string();
            let is_optional = name.starts_with("optional");
            // Up to draft 7, the suite takes formats for annotations; spinney asserts them.
            let assert_formats = match name.as_str() {
                "optional/format-assertion.json" => None,
                name => Some(name.starts_with("optional/format/")),
            };
            let count = if is_optional { &mut optional } else { &mut required };
            let options = Options { assert_formats, ..Options::default() };
            run(&file, draft, &remotes, options, count.entry(name).or_default());
        }
        for (kind, counts) in [("required", &required), ("optional", &optional)] {
            let passed: usize = counts.values().map(|count| count.passed).sum();
            let missed: usize = counts.values().map(|count| count.failed.len()).sum();
            println!("{draft:?} {kind}: {passed} of {} tests pass", passed + missed);
            for (file, count) in counts.iter().filter(|(_, count)| !count.failed.is_empty()) {
                println!("  {file}: {} of {}", count.passed, count.passed + count.failed.len());
                if kind == "required" || std::env::var_os("SPINNEY_TEST_VERBOSE").is_some() {
                    count.failed.iter().for_each(|failure| println!("    {failure}"));
                }
            }
        }
        assert!(required.len() > 25, "{draft:?}: the suite is not complete");
        failed.extend(required.into_values().flat_map(|count| count.failed));
    }
    assert!(failed.is_empty(), "{} required tests fail", failed.len());
}
