//! `json:FILE` through the public interface: what stands in the file, what a reopening finds.

use std::fs;
use std::path::{Path, PathBuf};

use spinney::{Durability, ErrorKind, OpenOptions, Store, Value, formats};

/// A folder and a file in it that tests open.
struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Place {
        Place { folder: tempfile::tempdir().expect("a folder") }
    }

    fn with(text: &str) -> Place {
        let place = Place::new();
        fs::write(place.file(), text).expect("writes");
        place
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("a.json")
    }

    fn url(&self) -> String {
        format!("json:{}", self.file().display())
    }

    fn open(&self) -> Store {
        spinney::open(&self.url()).expect("opens")
    }

    fn text(&self) -> String {
        fs::read_to_string(self.file()).expect("reads")
    }

    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(self.folder.path())
            .expect("reads")
            .map(|entry| entry.expect("reads").file_name().into_string().expect("UTF-8"))
            .collect();
        names.sort();
        names
    }
}

fn json(text: &str) -> Value {
    formats::parse(text).expect("JSON")
}

fn get(store: &Store, path: &str) -> Option<Value> {
    store.read().and_then(|snapshot| snapshot.get(path)).expect("reads")
}

fn set(store: &Store, path: &str, text: &str) {
    store.write(|tx| tx.set(path, &json(text))).expect("sets");
}

#[test]
fn a_new_file_is_an_empty_object_and_holds_what_was_set() {
    let place = Place::new();
    let store = place.open();
    assert_eq!(place.text(), "{}\n");
    assert_eq!(get(&store, ""), Some(json("{}")));
    set(&store, "/people/42/name", "\"Ada\"");
    assert_eq!(get(&store, "/people/42"), Some(json("{\"name\": \"Ada\"}")));
    drop(store);
    assert_eq!(place.names(), ["a.json"]);
    let printed = "{\n  \"people\": {\n    \"42\": {\n      \"name\": \"Ada\"\n    }\n  }\n}\n";
    assert_eq!(place.text(), printed);
    assert_eq!(get(&place.open(), "/people/42/name"), Some(Value::from("Ada")));
}

#[test]
fn the_root_may_be_anything() {
    for (text, path, value, after) in [
        ("[1, 2]", "/-", "3", "[1,2,3]"),
        ("7", "", "\"x\"", "\"x\""),
        ("{}", "", "[null]", "[null]"),
        ("[[]]", "/0/-", "{}", "[[{}]]"),
    ] {
        let place = Place::with(text);
        let store = place.open();
        let before = get(&store, "");
        let committed = store.write(|tx| tx.set(path, &json(value))).expect("sets");
        let changed = committed.diff.ops[0].pointer();
        assert!(changed.starts_with(path.trim_end_matches('-')), "{changed:?}");
        assert_eq!(before, Some(json(text)));
        drop(store);
        assert_eq!(json(&place.text()), json(after));
    }
}

#[test]
fn the_root_stays() {
    let place = Place::with("{\"a\": [1]}");
    let store = place.open();
    for error in [
        store.write(|tx| tx.remove("").map(drop)).expect_err("refused"),
        store.write(|tx| tx.mv("", "/a")).expect_err("refused"),
        store.write(|tx| tx.mv("/a", "")).expect_err("refused"),
        store.write(|tx| tx.copy("/a", "")).expect_err("refused"),
        store.write(|tx| tx.insert("", &Value::Null)).expect_err("refused"),
        store.write(|tx| tx.set("a", &Value::Null)).expect_err("refused"),
    ] {
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
        assert!(!error.to_string().contains("document"), "{error}");
    }
    store.write(|tx| tx.mv("/a", "/b")).expect("moves");
    store.write(|tx| tx.copy("/b/0", "/c")).expect("copies");
    assert_eq!(get(&store, ""), Some(json("{\"b\": [1], \"c\": 1}")));
}

#[test]
fn what_json_cannot_say_stands_beside_it() {
    let place = Place::new();
    let store = place.open();
    store
        .write(|tx| {
            tx.set("/a", &vec![Value::Bytes(vec![1, 2, 3]), Value::from("AQID")].into())?;
            tx.set_meta("/a", "origin", Some("web"))?;
            tx.set_meta("", "version", Some("1"))
        })
        .expect("sets");
    drop(store);
    assert_eq!(place.names(), ["a.json", "a.json.spinney"]);
    assert_eq!(json(&place.text()), json("{\"a\": [\"AQID\", \"AQID\"]}"));
    let store = place.open();
    assert_eq!(get(&store, "/a/0"), Some(Value::Bytes(vec![1, 2, 3])));
    assert_eq!(get(&store, "/a/1"), Some(Value::from("AQID")));
    let meta = |path| store.read().and_then(|snapshot| snapshot.meta(path)).expect("reads");
    assert_eq!(meta("/a"), Some(vec![("origin".into(), "web".into())]));
    assert_eq!(meta(""), Some(vec![("version".into(), "1".into())]));
    store
        .write(|tx| {
            tx.remove("/a")?;
            tx.set_meta("", "version", None)
        })
        .expect("removes");
    drop(store);
    assert_eq!(place.names(), ["a.json"]);
}

#[test]
fn what_is_no_json_file_is_refused() {
    let place = Place::new();
    let error = |url: &str, options: OpenOptions| options.open(url).map(drop).expect_err("refused");
    for (text, part) in
        [("", "is not JSON"), ("{\"a\": 1", "line 1"), ("{\"a\":1,\"a\":2}", "twice")]
    {
        fs::write(place.file(), text).expect("writes");
        let refused = error(&place.url(), OpenOptions::new());
        assert_eq!(refused.kind(), ErrorKind::InvalidInput, "{refused}");
        assert!(refused.to_string().contains(part), "{refused}");
        assert_eq!(place.text(), text);
        assert_eq!(place.names(), ["a.json"]);
    }
    let folder = format!("json:{}", place.folder.path().display());
    assert!(error(&folder, OpenOptions::new()).to_string().contains("is a directory"));
    let absent = format!("{}x", place.url());
    for options in [OpenOptions::new().create(false), OpenOptions::new().read_only(true)] {
        assert_eq!(error(&absent, options).kind(), ErrorKind::NotFound);
    }
    assert_eq!(error("json:", OpenOptions::new()).kind(), ErrorKind::InvalidInput);
    let deep = format!("{}/b.json", absent);
    assert_eq!(error(&deep, OpenOptions::new()).kind(), ErrorKind::NotFound);
}

#[test]
fn readers_work_beside_a_writer() {
    let place = Place::with("{\"n\": 0}");
    let store = place.open();
    store.write_with(Durability::Process, |tx| tx.set("/n", &1.into())).expect("sets");
    let child = std::process::Command::new(std::env::current_exe().expect("this binary"))
        .args(["child_reads", "--exact", "--nocapture"])
        .env("SPINNEY_TEST_URL", place.url())
        .output()
        .expect("runs");
    assert!(child.status.success(), "{child:?}");
    // Another handle of this process is one of the same store.
    let other = OpenOptions::new().read_only(true).open(&place.url()).expect("opens");
    set(&store, "/n", "2");
    assert_eq!(get(&other, "/n"), Some(2.into()));
    let refused = other.write(|tx| tx.set("/n", &3.into())).expect_err("read-only");
    assert_eq!(refused.kind(), ErrorKind::ReadOnly);
}

#[test]
fn child_reads() {
    let Ok(url) = std::env::var("SPINNEY_TEST_URL") else { return };
    let reader = OpenOptions::new().read_only(true).open(&url).expect("opens");
    assert_eq!(get(&reader, "/n"), Some(1.into()));
    let busy = spinney::open(&url).map(drop).expect_err("busy");
    assert_eq!(busy.kind(), ErrorKind::Busy);
    assert!(busy.to_string().contains(&format!("process {}", std::os::unix::process::parent_id())));
}

#[test]
fn links_and_permissions_stay() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let place = Place::with("{}");
    fs::set_permissions(place.file(), fs::Permissions::from_mode(0o640)).expect("sets");
    let link = place.folder.path().join("link.json");
    symlink(Path::new("a.json"), &link).expect("links");
    let store = spinney::open(&format!("json:{}", link.display())).expect("opens");
    set(&store, "/a", "1");
    drop(store);
    assert!(link.is_symlink());
    assert_eq!(json(&place.text()), json("{\"a\": 1}"));
    let mode = fs::metadata(place.file()).expect("is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o640);
}

#[test]
fn a_checkpoint_prints_the_file_and_the_stats_say_so() {
    let place = Place::with("{\"a\": 1}");
    let store = place.open();
    set(&store, "/a", "2");
    store.checkpoint().expect("prints");
    assert_eq!(json(&place.text()), json("{\"a\": 2}"));
    let stats = store.stats().expect("stats");
    let fact = |name: &str| stats.iter().find(|(found, _)| found == name).expect(name).1.clone();
    assert_eq!(fact("journal bytes behind the file"), "0");
    assert_eq!(fact("file revision"), "2");
    assert_eq!(fact("commits"), "1");
}
