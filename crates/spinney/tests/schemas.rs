//! Schemas of a store: what breaks one is refused with why, and changes nothing; indexes follow.
#![cfg(feature = "schema")]

use spinney::schemas::SchemaOptions;
use spinney::{Error, ErrorKind, Store, Value, formats};
use spinney_conformance::folder;
use tempfile::TempDir;

fn value(text: &str) -> Value {
    formats::parse(text).expect("JSON")
}

/// In a JSON file, and [`in_pages`].
fn everywhere(test: impl Fn(&Store, &Store)) {
    let folder = folder::temporary();
    let json = spinney::open(&json_url(&folder)).expect("a store");
    test(&json, &json);
    in_pages(test);
}

/// In memory, and on LMDB with a second handle that shares nothing but the files.
fn in_pages(test: impl Fn(&Store, &Store)) {
    let memory = spinney::open("memory:").expect("a store");
    test(&memory, &memory);
    let folder = folder::temporary();
    let url = format!("lmdb:{}", folder.path().join("store").display());
    let first = spinney::open(&url).expect("a store");
    test(&first, &spinney::open(&url).expect("a store"));
    let report = spinney::open(&url).and_then(|store| store.read()?.check()).expect("checks");
    assert!(report.is_sound(), "{report:?}");
}

fn json_url(folder: &TempDir) -> String {
    format!("json:{}", folder.path().join("all.json").display())
}

fn set(store: &Store, path: &str, text: &str) -> Result<(), Error> {
    store.write(|tx| tx.set(path, &value(text))).map(drop)
}

fn refusal(result: Result<(), Error>) -> String {
    let error = result.expect_err("refused");
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    error.to_string()
}

const NETWORK: &str = r#"{
    "type": "object",
    "properties": {
        "interfaces": {
            "additionalProperties": { "required": ["address"] },
            "x-spinney-unique": [["/address"]]
        },
        "routes": {
            "items": { "properties": { "via": { "x-spinney-reference": { "key": "/interfaces/*" } } } }
        }
    }
}"#;

fn network(store: &Store) {
    let text = r#"{ "interfaces": { "a": { "address": 1 }, "b": { "address": 2 } }, "routes": [{ "via": "a" }] }"#;
    set(store, "/net", text).expect("sets");
    store.set_schema("/net", &value(NETWORK), SchemaOptions::default()).expect("attaches");
}

#[test]
fn a_commit_that_breaks_a_schema_is_refused_and_changes_nothing() {
    everywhere(|store, other| {
        network(store);
        let revision = store.read().and_then(|snapshot| snapshot.revision()).expect("a revision");
        for handle in [store, other] {
            let text = refusal(set(handle, "/net/interfaces/c", "{}"));
            assert!(text.contains("`/interfaces/c`: expected the member `address`"), "{text}");
            refusal(set(handle, "/net/interfaces/c", r#"{ "address": 2.0 }"#));
            refusal(set(handle, "/net/routes/0/via", r#""c""#));
            refusal(handle.write(|tx| tx.remove("/net/interfaces/a")).map(drop));
            refusal(handle.write(|tx| tx.mv("/net/interfaces/a", "/net/interfaces/c")).map(drop));
            refusal(set(handle, "/net", "[]"));
        }
        let now = store.read().and_then(|snapshot| snapshot.revision()).expect("a revision");
        assert_eq!(now, revision);
        // With the reference, what it refers to may go.
        other
            .write(|tx| {
                tx.set("/net/routes/0/via", &"c".into())?;
                tx.mv("/net/interfaces/a", "/net/interfaces/c")
            })
            .expect("fits");
        refusal(store.write(|tx| tx.remove("/net/interfaces/c")).map(drop));
        store.write(|tx| tx.remove("/net")).expect("there need be nothing");
        set(
            other,
            "/net",
            r#"{ "interfaces": { "x": { "address": 2 } }, "routes": [{ "via": "x" }] }"#,
        )
        .expect("fits");
        refusal(store.write(|tx| tx.remove("/net/interfaces/x")).map(drop));
        assert!(store.check_schema("/net").expect("has one").is_valid());
    });
}

#[test]
fn what_is_stored_is_judged_before_a_schema_is_attached() {
    everywhere(|store, _| {
        set(
            store,
            "/net",
            r#"{ "interfaces": { "a": {} }, "routes": [{ "via": "b" }, { "via": "c" }] }"#,
        )
        .expect("sets");
        let error = store.set_schema("/net", &value(NETWORK), SchemaOptions::default());
        let text = refusal(error.map(drop));
        for wrong in ["`/interfaces/a`:", "`/routes/0/via`:", "`/routes/1/via`:"] {
            assert!(text.contains(wrong), "{text}");
        }
        assert!(store.schemas().expect("reads").is_empty());
        set(store, "/net/interfaces/a", r#""anything""#).expect("no schema holds");
    });
}

#[test]
fn a_schema_is_replaced_and_removed_with_its_index() {
    everywhere(|store, other| {
        network(store);
        let lax = r#"{ "properties": { "routes": { "maxItems": 1 } } }"#;
        other.set_schema("/net", &value(lax), SchemaOptions::default()).expect("replaces");
        store.write(|tx| tx.remove("/net/interfaces/a")).expect("is no longer referred to");
        refusal(set(store, "/net/routes", "[1, 2]"));
        // The old index is gone: set again, it is made anew.
        let error = store.set_schema("/net", &value(NETWORK), SchemaOptions::default());
        refusal(error.map(drop));
        set(store, "/net/routes", "[]").expect("fits");
        store.set_schema("/net", &value(NETWORK), SchemaOptions::default()).expect("fits");
        store.remove_schema("/net").expect("is there");
        set(other, "/net/routes", "[1, 2]").expect("no schema holds");
        let missing = store.remove_schema("/net").expect_err("there is none");
        assert_eq!(missing.kind(), ErrorKind::NotFound);
    });
}

#[test]
fn an_older_state_that_does_not_fit_is_not_brought_back() {
    everywhere(|store, _| {
        set(store, "/net", r#"{ "interfaces": { "a": {} } }"#).expect("sets");
        let revision =
            store.write(|tx| tx.set("/net/interfaces/a/address", &1.into())).expect("sets");
        store.set_schema("/net", &value(NETWORK), SchemaOptions::default()).expect("attaches");
        let text = refusal(store.revert(revision.revision).map(drop));
        assert!(text.contains("expected the member `address`"), "{text}");
    });
}

#[test]
fn schemas_that_are_written_by_hand_are_judged_like_others() {
    in_pages(|store, _| {
        network(store);
        let id = store.read().and_then(|snapshot| snapshot.get("/.schemas")).expect("reads");
        let Some(Value::Map(entries)) = id else { panic!("there is one") };
        let (id, _) = entries.iter().next().expect("there is one");
        let schema = format!("/.schemas/{id}/schema");
        refusal(set(store, &format!("{schema}/maxProperties"), "1"));
        set(store, &format!("{schema}/maxProperties"), "2").expect("fits");
        refusal(set(store, "/net/more", "1"));
        refusal(store.write(|tx| tx.remove("/net/interfaces/a")).map(drop));
        for (path, text) in [("/.schemas/7", "1"), (&*format!("{schema}/type"), r#""text""#)] {
            let error = set(store, path, text).expect_err("no schema");
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
        }
        store.write(|tx| tx.remove("/.schemas")).expect("all may go");
        set(store, "/net", "1").expect("no schema holds");
    });
}

#[test]
fn a_json_file_has_its_schemas_beside_it() {
    let folder = folder::temporary();
    let (url, file) = (json_url(&folder), folder.path().join("all.json"));
    let schema = value(r#"{ "type": "object", "properties": { "port": { "type": "integer" } } }"#);
    {
        let store = spinney::open(&url).expect("a store");
        network(&store);
        store.set_schema("", &schema, SchemaOptions::default()).expect("attaches");
        set(&store, "/port", "80").expect("sets");
        assert_eq!(store.schemas().expect("schemas").len(), 2);
    }
    let store = spinney::open(&url).expect("opens");
    let schemas = store.schemas().expect("schemas");
    let paths: Vec<&str> = schemas.iter().map(|schema| &*schema.path).collect();
    assert_eq!(paths, ["/net", ""]);
    let text = refusal(set(&store, "/port", "\"http\""));
    assert!(
        text.contains("the schema of the root ") && text.contains("`/port`: expected"),
        "{text}"
    );
    // The index of what is unique and referred to was made anew.
    refusal(set(&store, "/net/interfaces/c", r#"{ "address": 2 }"#));
    refusal(store.write(|tx| tx.remove("/net/interfaces/a")).map(drop));
    drop(store);

    let valid = std::fs::read_to_string(&file).expect("reads");
    std::fs::write(&file, valid.replace("80", "\"http\"")).expect("writes");
    let error = spinney::open(&url).err().expect("the edit is refused");
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    assert!(error.to_string().contains("all.json"), "{error}");
    std::fs::write(&file, valid.replace("80", "8080")).expect("writes");
    let store = spinney::open(&url).expect("opens");
    assert_eq!(store.read().and_then(|read| read.get("/port")).expect("gets"), Some(8080.into()));
    store.remove_schema("").expect("removes");
    set(&store, "/port", "\"http\"").expect("sets");
}

#[test]
fn an_edit_that_breaks_the_schema_of_an_open_json_file_is_kept_aside() {
    let folder = folder::temporary();
    let (url, file) = (json_url(&folder), folder.path().join("all.json"));
    let schema = value(r#"{ "properties": { "port": { "type": "integer" } } }"#);
    let store = spinney::open(&url).expect("a store");
    set(&store, "/port", "80").expect("sets");
    store.set_schema("", &schema, SchemaOptions::default()).expect("attaches");
    store.checkpoint().expect("prints");
    std::fs::write(&file, "{\"port\": \"http\"}").expect("writes");
    set(&store, "/other", "1").expect("sets");
    store.checkpoint().expect("prints");
    let printed = std::fs::read_to_string(&file).expect("reads");
    assert_eq!(formats::parse(&printed).expect("JSON"), value(r#"{"port": 80, "other": 1}"#));
    let aside = std::fs::read_dir(folder.path()).expect("a folder").filter_map(|entry| {
        let path = entry.expect("an entry").path();
        std::fs::read_to_string(path).ok().filter(|text| text.contains("http"))
    });
    assert_eq!(aside.count(), 1, "the edited file is kept");
}

#[test]
fn commits_of_a_journal_are_made_again_under_their_schemas() {
    let (folder, copy) = (folder::temporary(), folder::temporary());
    let store = spinney::open(&json_url(&folder)).expect("a store");
    network(&store);
    set(&store, "/net/interfaces/c", r#"{ "address": 3 }"#).expect("sets");
    // What a crash would leave.
    for entry in std::fs::read_dir(folder.path()).expect("a folder") {
        let entry = entry.expect("an entry");
        if !entry.file_name().to_string_lossy().contains("lock") {
            std::fs::copy(entry.path(), copy.path().join(entry.file_name())).expect("copies");
        }
    }
    let again = spinney::open(&json_url(&copy)).expect("opens");
    refusal(set(&again, "/net/interfaces/d", r#"{ "address": 3 }"#));
    set(&again, "/net/interfaces/d", r#"{ "address": 4 }"#).expect("sets");
}
