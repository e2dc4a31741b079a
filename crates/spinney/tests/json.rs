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
    let printed = "{\n  \"people\": {\"42\": {\"name\": \"Ada\"}}\n}\n";
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

/// Lines that differ between two texts of as many lines.
fn changed_lines(before: &str, after: &str) -> Vec<String> {
    assert_eq!(before.lines().count(), after.lines().count(), "{after}");
    let pairs = before.lines().zip(after.lines());
    pairs.filter(|(before, after)| before != after).map(|(_, after)| after.to_owned()).collect()
}

const BY_HAND: &str = r#"{
    "zebra" : 1.50,
    "name": "a\u0062c",   "list": [ 1,2,  3 ],

    "people": [
        { "name": "Ada",  "born": 1815 },
        { "name": "Alan", "born": 1912 }
    ],
    "empty": {},
    "deep": {"a": {"b": [true, null, 1e2]}},
    "lines": {
        "one": 1
    }
}
"#;

/// What an edit makes of the text that a person has laid out.
fn edited(
    text: &str,
    edit: impl Fn(&mut spinney::Transaction<'_>) -> spinney::Result<()>,
) -> String {
    let place = Place::with(text);
    let store = place.open();
    store.write(&edit).expect("edits");
    let value = get(&store, "").expect("a root");
    store.checkpoint().expect("prints");
    assert_eq!(json(&place.text()), value, "{}", place.text());
    place.text()
}

#[test]
fn one_changed_leaf_is_one_changed_line() {
    for (path, value, line) in [
        ("/zebra", "2", "    \"zebra\" : 2,"),
        ("/people/1/born", "1913", "        { \"name\": \"Alan\", \"born\": 1913 }"),
        ("/deep/a/b/1", "false", "    \"deep\": {\"a\": {\"b\": [true, false, 1e2]}},"),
        ("/list/1", "[]", "    \"name\": \"a\\u0062c\",   \"list\": [ 1,[],  3 ],"),
        ("/lines/one", "\"x\"", "        \"one\": \"x\""),
    ] {
        let after = edited(BY_HAND, |tx| tx.set(path, &json(value)));
        assert_eq!(changed_lines(BY_HAND, &after), [line]);
    }
}

#[test]
fn a_container_stands_on_one_line_where_others_do() {
    let value = json("{\"a\": [1, 2], \"b\": {\"c\": {}}}");
    let spread = "{\n  \"x\": [\n    1\n  ]\n}\n";
    let after = edited(spread, |tx| tx.set("/y", &value));
    let member = "\"y\": {\n    \"a\": [\n      1,\n      2\n    ],\n    \"b\": {\n      \"c\": {}\n    }\n  }";
    assert_eq!(after, spread.replace("  ]\n", &format!("  ],\n  {member}\n")));
    let folded = "{\n  \"x\": [1]\n}\n";
    let after = edited(folded, |tx| tx.set("/y", &value));
    let member = "\"y\": {\"a\": [1, 2], \"b\": {\"c\": {}}}";
    assert_eq!(after, folded.replace("[1]\n", &format!("[1],\n  {member}\n")));
    let long = json(&format!("[{}{{}}, 8, 9]", "1000000,".repeat(20)));
    let line = |count| vec!["1000000"; count].join(", ");
    let expected = format!("[\n  {},\n  {},\n  {{}},\n  8, 9\n]", line(10), line(10));
    assert_eq!(edited("{}", |tx| tx.set("", &long)), expected);
}

#[test]
fn a_file_and_what_is_beside_it_stay_small() {
    let place = Place::new();
    let store = place.open();
    let item = |i: u64| {
        format!("\"{i},str{i}\": {{\"k1\": {i}, \"k2\": \"str{i}\", \"l\": [\"l{i}\", {{}}]}}")
    };
    let items: Vec<String> = (0..30_000).map(item).collect();
    set(&store, "/items", &format!("{{{}}}", items.join(",")));
    set(&store, "/list", &format!("[{}]", "1234,".repeat(200_000) + "8"));
    store
        .write(|tx| {
            (0..500).try_for_each(|at| tx.insert(&format!("/list/{}", 300 * at), &9.into()))
        })
        .expect("inserts");
    let value = get(&store, "").expect("a root");
    drop(store);
    let compact = formats::print(&value, Default::default(), Default::default()).expect("prints");
    let on_disk: u64 = place
        .names()
        .iter()
        .map(|name| fs::metadata(place.folder.path().join(name)).expect("is there").len())
        .sum();
    let ratio = on_disk as f64 / compact.len() as f64;
    println!("{ratio:.2} of {} bytes", compact.len());
    assert!(compact.len() > 1 << 20 && ratio < 1.5, "{ratio:.2}");
}

#[test]
fn members_come_and_go_like_their_siblings() {
    for (path, value, from, to) in [
        ("/lines/two", "[1]", "\"one\": 1\n", "\"one\": 1,\n        \"two\": [1]\n"),
        ("/empty/x", "1", "\"empty\": {}", "\"empty\": {\n        \"x\": 1\n    }"),
        ("/deep/a/c", "{\"d\":[1,2]}", "1e2]}}", "1e2], \"c\": {\"d\": [1, 2]}}}"),
        ("/list/-", "4", "3 ]", "3,4 ]"),
        (
            "/new",
            "{\"a\":1}",
            "        \"one\": 1\n    }\n}",
            "        \"one\": 1\n    },\n    \"new\": {\"a\": 1}\n}",
        ),
        ("/people/-", "7", "1912 }\n", "1912 },\n        7\n"),
    ] {
        let after = edited(BY_HAND, |tx| tx.set(path, &json(value)));
        assert_eq!(after, BY_HAND.replace(from, to), "{path}");
    }
    for (path, from, to) in [
        ("/lines/one", "{\n        \"one\": 1\n    }", "{}"),
        ("/zebra", "    \"zebra\" : 1.50,\n", ""),
        ("/lines", ",\n    \"lines\": {\n        \"one\": 1\n    }\n", "\n"),
        ("/list/1", "[ 1,2,  3 ]", "[ 1,  3 ]"),
        ("/people/0", "        { \"name\": \"Ada\",  \"born\": 1815 },\n", ""),
    ] {
        let after = edited(BY_HAND, |tx| tx.remove(path).map(drop));
        assert_eq!(after, BY_HAND.replace(from, to), "{path}");
    }
    let after = edited(BY_HAND, |tx| tx.insert("/people/0", &json("{\"x\": 1}")));
    let ada = "        { \"name\": \"Ada\"";
    let new = "        {\"x\": 1},\n";
    assert_eq!(after, BY_HAND.replace(ada, &format!("{new}{ada}")));
    let after = edited(BY_HAND, |tx| tx.mv("/people/1", "/people/0"));
    let (ada, alan) =
        ("{ \"name\": \"Ada\",  \"born\": 1815 }", "{ \"name\": \"Alan\", \"born\": 1912 }");
    assert_eq!(after, BY_HAND.replace(ada, "#").replace(alan, ada).replace('#', alan));
    assert_eq!(
        edited("{\"a\":1,\"c\":[]}", |tx| tx.set("/b", &json("[1,{}]"))),
        "{\"a\":1,\"b\":[1,{}],\"c\":[]}"
    );
    assert_eq!(edited(" 7 \n", |tx| tx.set("", &8.into())), " 8 \n");
}

/// Needs `../shared/data/json` beside the repository, or the folder that `SPINNEY_TEST_DATA` names.
#[test]
fn a_real_file_keeps_its_lines() {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data/json");
    let named = std::env::var_os("SPINNEY_TEST_DATA");
    let folder = named.map_or_else(|| beside.into(), std::path::PathBuf::from);
    if !folder.is_dir() {
        return println!("skipped: no real files in `{}`", folder.display());
    }
    for (name, path) in [
        ("canada.json", "/features/0/geometry/coordinates/5/20/1"),
        ("citm_catalog.json", "/performances/100/prices/0/amount"),
        ("twitter.json", "/statuses/50/user/name"),
    ] {
        let before = fs::read_to_string(folder.join(name)).expect("reads");
        let after = edited(&before, |tx| tx.set(path, &"a changed leaf".into()));
        let changed = changed_lines(&before, &after);
        assert!(changed.len() == 1 && changed[0].contains("\"a changed leaf\""), "{name}");
    }
}

/// Random edits, printed into the text again and again, against the same edits in memory.
#[test]
fn random_edits_print_what_the_store_holds() {
    let seed = std::env::var("SPINNEY_TEST_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or_else(|| fastrand::u64(..1 << 32));
    println!("SPINNEY_TEST_SEED={seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let values = ["1", "\"x\"", "{}", "[]", "{\"a\":[1,2,{\"b\":null}]}", "[[1],[2],[3]]"];
    for round in 0..30 {
        let place = Place::with(BY_HAND);
        let mut store = place.open();
        for step in 0..40 {
            let mut edit = |tx: &mut spinney::Transaction<'_>| {
                for _ in 0..random.usize(1..4) {
                    let mut path = String::new();
                    for _ in 0..random.usize(1..4) {
                        let names = ["people", "list", "deep", "a", "b", "0", "1", "-", "z\"\n"];
                        path = format!("{path}/{}", names[random.usize(..names.len())]);
                    }
                    let value = json(values[random.usize(..values.len())]);
                    // What has no place is refused, and leaves nothing.
                    let _ = match random.u8(..8) {
                        0..4 => tx.set(&path, &value),
                        4 => tx.remove(&path.replace('-', "0")).map(drop),
                        5 => tx.insert(&path, &value),
                        6 => tx.mv(&path, "/people/0"),
                        _ => tx.mv("/people/1", "/people/0"),
                    };
                }
                Ok(())
            };
            store.write(&mut edit).expect("commits");
            if step % 3 == 0 {
                store.checkpoint().expect("prints");
                let held = get(&store, "").expect("a root");
                assert_eq!(json(&place.text()), held, "round {round}: {}", place.text());
            }
            if step % 16 == 15 {
                let held = get(&store, "");
                drop(store);
                store = place.open();
                assert_eq!(get(&store, ""), held, "round {round}");
            }
        }
    }
}

/// A store whose last process died: what is beside the file stays there.
fn left_behind(place: &Place, from: &Place) {
    for name in from.names() {
        fs::copy(from.folder.path().join(&name), place.folder.path().join(&name)).expect("copies");
    }
}

/// A file with two commits behind it, as a crash leaves it.
fn crashed(text: &str) -> Place {
    let place = Place::with(text);
    let store = place.open();
    set(&store, "/a", "1");
    set(&store, "/b", "2");
    let left = Place::new();
    left_behind(&left, &place);
    assert_eq!(left.text(), text, "the file is not printed yet");
    fs::remove_file(left.folder.path().join("a.json.lock")).expect("removes");
    left
}

#[test]
fn the_journal_brings_back_what_the_file_lacks() {
    let place = crashed("{\"a\": 0}\n");
    let reader = OpenOptions::new().read_only(true).open(&place.url()).expect("opens");
    assert_eq!(get(&reader, ""), Some(json("{\"a\": 1, \"b\": 2}")));
    let store = place.open();
    assert_eq!(get(&store, ""), Some(json("{\"a\": 1, \"b\": 2}")));
    assert_eq!(store.read().and_then(|snapshot| snapshot.revision()).expect("reads"), 3);
    drop((store, reader));
    assert_eq!(place.text(), "{\"a\": 1, \"b\": 2}\n");
    assert_eq!(place.names(), ["a.json"]);
}

#[test]
fn an_edit_while_nobody_has_it_open_is_taken() {
    let place = Place::with("{\"a\": 0}");
    drop(place.open());
    fs::write(place.file(), "{\"a\": 7}").expect("writes");
    assert_eq!(get(&place.open(), "/a"), Some(7.into()));

    // With a journal whose commits are all in the file, as a crash behind a rewrite leaves it.
    let first = Place::with("{\"a\": 0}");
    let store = first.open();
    set(&store, "/a", "1");
    store.checkpoint().expect("prints");
    let place = Place::new();
    left_behind(&place, &first);
    fs::write(place.file(), "{\"a\": 2, \"c\": []}").expect("writes");
    let store = place.open();
    assert_eq!(get(&store, ""), Some(json("{\"a\": 2, \"c\": []}")));
    assert_eq!(store.read().and_then(|snapshot| snapshot.revision()).expect("reads"), 3);
    set(&store, "/c/-", "1");
    let second = Place::new();
    left_behind(&second, &place);
    assert_eq!(get(&second.open(), ""), Some(json("{\"a\": 2, \"c\": [1]}")));
}

#[test]
fn an_edit_behind_commits_is_a_choice() {
    use spinney::backends::json::Take;
    let edited = "{\"a\": 0, \"hand\": true}";
    let crashed = || {
        let place = crashed("{\"a\": 0}");
        fs::write(place.file(), edited).expect("writes");
        place
    };
    let place = crashed();
    for options in [OpenOptions::new(), OpenOptions::new().read_only(true)] {
        let error = options.open(&place.url()).map(drop).expect_err("refused");
        assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
        assert!(
            error.to_string().contains("2 commits") && error.to_string().contains("--take file")
        );
    }
    assert_eq!(place.text(), edited);
    let names = place.names();
    for (take, shown) in
        [(Take::File, edited), (Take::Journal, "{\"a\": 1, \"b\": 2, \"hand\": true}")]
    {
        let reader = OpenOptions::new().read_only(true).take(Some(take));
        let reader = reader.open(&place.url()).expect("opens");
        assert_eq!(get(&reader, ""), Some(json(shown)));
        drop(reader);
        assert_eq!((place.names(), &*place.text()), (names.clone(), edited), "nothing is written");
    }
    let take = |place: &Place, take| {
        let store = OpenOptions::new().take(Some(take)).open(&place.url()).expect("opens");
        get(&store, "")
    };
    assert_eq!(take(&place, Take::File), Some(json(edited)));
    assert_eq!(place.text(), edited);
    assert!(place.names()[1].starts_with("a.json.journal.1.set-aside-"), "{:?}", place.names());
    let place = crashed();
    let both = json("{\"a\": 1, \"b\": 2, \"hand\": true}");
    assert_eq!(take(&place, Take::Journal), Some(both.clone()));
    assert_eq!(json(&place.text()), both);
}

#[test]
fn an_edit_while_it_is_open_is_merged() {
    let place = Place::with(BY_HAND);
    let store = place.open();
    // Nothing is behind the file: its text stays.
    let edited = BY_HAND.replace("1815", "1816").replace("1,2,", "1,");
    fs::write(place.file(), &edited).expect("writes");
    store.checkpoint().expect("looks");
    assert_eq!(get(&store, "/people/0/born"), Some(1816.into()));
    assert_eq!(get(&store, "/list"), Some(json("[1, 3]")));
    assert_eq!(place.text(), edited);
    set(&store, "/zebra", "2");
    store.checkpoint().expect("prints");
    assert_eq!(changed_lines(&edited, &place.text()), ["    \"zebra\" : 2,"]);

    // Commits that the file lacks, elsewhere.
    set(&store, "/zebra", "3");
    fs::write(place.file(), place.text().replace("1912", "1913")).expect("writes");
    store.checkpoint().expect("merges");
    let merged = json(&place.text());
    assert_eq!(merged.pointer("/people/1/born"), Some(&1913.into()));
    assert_eq!(merged.pointer("/zebra"), Some(&3.into()));
    assert_eq!(get(&store, ""), Some(merged));

    // And in the same place.
    set(&store, "/zebra", "4");
    let edited = place.text().replace("\"zebra\": 3", "\"zebra\": 5");
    fs::write(place.file(), &edited).expect("writes");
    store.checkpoint().expect("prints");
    assert_eq!(json(&place.text()).pointer("/zebra"), Some(&4.into()));
    let aside = place.folder.path().join("a.json.edited-1");
    assert_eq!(fs::read_to_string(&aside).expect("is kept"), edited);

    // What is no JSON is not taken, and stays until it is.
    let whole = place.text();
    fs::write(place.file(), "{\"half").expect("writes");
    let error = store.checkpoint().expect_err("refused");
    assert!(error.to_string().contains("is not JSON"), "{error}");
    set(&store, "/zebra", "6");
    assert!(store.checkpoint().is_err());
    assert_eq!(place.text(), "{\"half");
    fs::write(place.file(), &whole).expect("writes");
    store.checkpoint().expect("prints");
    assert_eq!(json(&place.text()).pointer("/zebra"), Some(&6.into()));
    fs::remove_file(place.file()).expect("removes");
    drop(store);
    assert_eq!(json(&place.text()).pointer("/zebra"), Some(&6.into()));
}

#[test]
fn an_edit_is_noticed_by_itself() {
    let place = Place::with("{\"a\": 0}");
    let store = place.open();
    fs::write(place.file(), "{\"a\": 1}").expect("writes");
    let revision = store.wait(1, std::time::Duration::from_secs(20)).expect("waits");
    assert_eq!((revision, get(&store, "/a")), (2, Some(1.into())));
    // Written bit by bit, slowly: taken when it has come to rest, and no half of it.
    let mut file = fs::File::create(place.file()).expect("opens");
    for part in ["{\"a\": [1", ", 2, 3", "]}"] {
        std::io::Write::write_all(&mut file, part.as_bytes()).expect("writes");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    store.wait(2, std::time::Duration::from_secs(20)).expect("waits");
    assert_eq!(get(&store, "/a"), Some(json("[1, 2, 3]")));
}

/// The journal cut at every byte, and with flipped bytes, through the open path: an earlier state, or
/// an error that says so.
#[test]
fn a_damaged_journal_gives_an_earlier_state_or_an_error() {
    let place = Place::with("{\"n\": 0}");
    let store = place.open();
    for n in 1..=6 {
        let level = if n % 2 == 0 { Durability::Durable } else { Durability::Process };
        store.write_with(level, |tx| tx.set("/n", &n.into())).expect("sets");
    }
    let name = "a.json.journal.1";
    let whole = fs::read(place.folder.path().join(name)).expect("reads");
    let used = whole.iter().rposition(|&byte| byte != 0).expect("it is used") + 1;
    assert!(used < 2_000, "{used}");
    let damaged = Place::new();
    let mut seen = std::collections::BTreeSet::new();
    let mut look = |bytes: &[u8], may_refuse: bool| {
        fs::write(damaged.file(), "{\"n\": 0}").expect("writes");
        fs::write(damaged.folder.path().join(name), bytes).expect("writes");
        match OpenOptions::new().read_only(true).open(&damaged.url()) {
            Ok(store) => {
                let value = get(&store, "/n").expect("a number");
                seen.insert(
                    formats::print(&value, Default::default(), Default::default()).unwrap(),
                );
            }
            Err(error) => {
                assert!(may_refuse, "{error}");
                assert_eq!(error.kind(), ErrorKind::Corrupted, "{error}");
                seen.insert("refused".into());
            }
        }
    };
    for at in 0..=used {
        // As long as it was, with nothing behind the cut: what a power failure leaves.
        let mut bytes = whole.clone();
        bytes[at..].fill(0);
        look(&bytes, false);
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << (at % 8);
        look(&bytes, true);
        if at % 16 == 0 {
            look(&whole[..at], true);
        }
    }
    for state in ["0", "1", "5", "6", "refused"] {
        assert!(seen.contains(state), "{seen:?}");
    }
}

/// Runs a test of this binary in another process, as a user who is not root if this one is.
fn as_a_user(test: &str, url: &str) -> Option<String> {
    use std::os::unix::process::CommandExt;
    let mut child = std::process::Command::new(std::env::current_exe().expect("this binary"));
    child.args([test, "--exact", "--nocapture"]).env("SPINNEY_TEST_URL", url);
    if rustix::process::geteuid().is_root() {
        child.uid(65_534).gid(65_534);
    }
    match child.output() {
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
            Some(said)
        }
        Err(error) => {
            println!("skipped: no process of another user: {error}");
            None
        }
    }
}

#[test]
fn what_may_not_be_written_is_read() {
    use std::os::unix::fs::PermissionsExt;
    let set_mode = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("sets");
    };
    for (folder_mode, file_mode) in [(0o777, 0o444), (0o555, 0o666), (0o555, 0o444)] {
        let place = crashed("{\"n\": 0}");
        let names = place.names();
        for name in &names {
            set_mode(&place.folder.path().join(name), file_mode);
        }
        set_mode(place.folder.path(), folder_mode);
        as_a_user("child_reads_what_it_may_not_write", &place.url());
        set_mode(place.folder.path(), 0o777);
        assert_eq!(place.names(), names);
        assert_eq!(place.text(), "{\"n\": 0}");
    }
}

#[test]
fn child_reads_what_it_may_not_write() {
    let Ok(url) = std::env::var("SPINNEY_TEST_URL") else { return };
    let refused = spinney::open(&url).map(drop).expect_err("refused");
    assert_eq!(refused.kind(), ErrorKind::ReadOnly, "{refused}");
    assert!(refused.to_string().contains("open it read-only"), "{refused}");
    let reader = OpenOptions::new().read_only(true).open(&url).expect("opens");
    assert_eq!(get(&reader, ""), Some(json("{\"a\": 1, \"b\": 2, \"n\": 0}")));
    assert_eq!(reader.checkpoint().expect_err("refused").kind(), ErrorKind::ReadOnly);
    // Of a choice, too, nothing is written.
    let taken = OpenOptions::new().read_only(true).take(Some(spinney::backends::json::Take::File));
    assert_eq!(get(&taken.open(&url).expect("opens"), "/a"), Some(1.into()));
}

/// The ids of the elements of `/list`, from what an edit of each one says.
fn element_ids(store: &Store) -> Vec<u64> {
    use spinney::diff::Step;
    let len = get(store, "/list").map_or(0, |list| match list {
        Value::List(list) => list.len(),
        _ => 0,
    });
    let edit = |tx: &mut spinney::Transaction<'_>| {
        (0..len).try_for_each(|at| tx.set_meta(&format!("/list/{at}"), "seen", Some("x")))
    };
    let diff = store.write(edit).expect("edits").diff;
    let mut found: Vec<(u64, u64)> = Vec::new();
    for op in &diff.ops {
        if let Some(Step::Element { id, position }) = op.path.last() {
            found.push((*position, *id));
        }
    }
    store
        .write(|tx| (0..len).try_for_each(|at| tx.set_meta(&format!("/list/{at}"), "seen", None)))
        .expect("edits");
    found.sort();
    found.into_iter().map(|(_, id)| id).collect()
}

#[test]
fn ids_of_elements_survive() {
    let place = Place::with("{\"list\": [\"a\", \"b\", \"c\", \"d\"]}");
    let store = place.open();
    assert_eq!(element_ids(&store), [0, 1, 2, 3]);
    drop(store);
    assert_eq!(place.names(), ["a.json"], "what reading gives is not kept");
    let store = place.open();
    store
        .write(|tx| {
            tx.insert("/list/1", &"new".into())?;
            tx.remove("/list/3").map(drop)?;
            tx.mv("/list/0", "/list/-")
        })
        .expect("edits");
    let ids = element_ids(&store);
    assert_eq!(ids.len(), 4);
    let left = Place::new();
    left_behind(&left, &place);
    fs::remove_file(left.folder.path().join("a.json.lock")).expect("removes");
    drop(store);
    assert_eq!(place.names(), ["a.json", "a.json.spinney"]);
    let store = place.open();
    assert_eq!(element_ids(&store), ids, "after a close");
    assert_eq!(element_ids(&left.open()), ids, "after a crash");

    // What a person leaves as it is keeps its id while the store is open.
    let text = place.text();
    fs::write(place.file(), text.replace("\"new\"", "\"first\", \"new\"")).expect("writes");
    store.checkpoint().expect("looks");
    let merged = element_ids(&store);
    assert_eq!((merged.len(), &merged[1..]), (5, &ids[..]));
    drop(store);
    assert_eq!(element_ids(&place.open()), merged);
}

#[test]
fn a_backup_is_a_document_of_its_own() {
    let place = Place::with(BY_HAND);
    let store = place.open();
    store
        .write(|tx| {
            tx.set("/zebra", &2.into())?;
            tx.set_meta("/zebra", "origin", Some("web"))
        })
        .expect("sets");
    let target = place.folder.path().join("copy.json");
    store.backup(&target).expect("backs up");
    assert_eq!(place.text(), BY_HAND, "the file waits");
    set(&store, "/zebra", "3");
    let copied = fs::read_to_string(&target).expect("reads");
    assert_eq!(changed_lines(BY_HAND, &copied), ["    \"zebra\" : 2,"]);
    let copy = spinney::open(&format!("json:{}", target.display())).expect("opens");
    assert_eq!(get(&copy, "/zebra"), Some(2.into()));
    let meta = copy.read().and_then(|snapshot| snapshot.meta("/zebra")).expect("reads");
    assert_eq!(meta, Some(vec![("origin".into(), "web".into())]));
    for target in [target, place.file()] {
        let refused = store.backup(&target).expect_err("it exists");
        assert_eq!(refused.kind(), ErrorKind::AlreadyExists, "{refused}");
    }
    let reader = OpenOptions::new().read_only(true).open(&place.url()).expect("opens");
    reader.backup(&place.folder.path().join("read.json")).expect("backs up");
}
