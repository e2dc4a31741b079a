//! Reads of one place after the other: what a store remembers of a read must not show in the next.

use spinney::{Durability, Map, OpenOptions, Store, Value};
use spinney_conformance::folder;

const MEMBERS: u32 = 3_000;

fn path(i: u32) -> String {
    format!("/tree/a~1b/{i:05}~0/leaf")
}

fn leaf(i: u32) -> Value {
    Value::from(format!("text {i}"))
}

/// A container of many pages below a small one.
fn fill(store: &Store) {
    let member =
        |i: u32| (format!("{i:05}~"), Value::Map([("leaf", leaf(i))].into_iter().collect()));
    let members: Map = (0..MEMBERS).map(member).collect();
    let tree: Map = [("a/b", Value::Map(members))].into_iter().collect();
    store.write(|tx| tx.set("/tree", &Value::Map(tree.clone()))).expect("fills");
}

fn get(store: &Store, path: &str) -> Option<Value> {
    store.read().expect("a snapshot").get(path).expect(path)
}

#[test]
fn repeated_reads_of_a_page_answer_as_the_first() {
    let folder = folder::temporary();
    let url = format!("lmdb:{}", folder.path().join("store").display());
    let store = OpenOptions::new().durability(Durability::None).open(&url).expect("opens");
    fill(&store);
    for round in 0..3 {
        for i in [0, 1, MEMBERS / 2, MEMBERS - 1] {
            for _ in 0..4 {
                assert_eq!(get(&store, &path(i)), Some(leaf(i)), "{i} in round {round}");
            }
            // The first stays within the page, the others lie before and behind all pages.
            for absent in [&*format!("{i:05}~0x"), "", "!", "99999", "99999/leaf/deeper"] {
                assert_eq!(get(&store, &format!("/tree/a~1b/{absent}")), None, "{absent}");
            }
            assert_eq!(get(&store, &format!("{}/deeper", path(i))), None);
            let whole = get(&store, &path(i)[..path(i).len() - 5]);
            assert_eq!(whole, Some(Value::Map([("leaf", leaf(i))].into_iter().collect())));
        }
        let malformed = store.read().expect("a snapshot").get("/tree/a~1b/00001~2/leaf");
        assert!(malformed.expect_err("malformed").to_string().contains("/tree/a~1b/00001~2/leaf"));
    }
}

#[test]
fn a_read_after_a_commit_sees_it() {
    let folder = folder::temporary();
    let url = format!("lmdb:{}", folder.path().join("store").display());
    let store = OpenOptions::new().durability(Durability::None).open(&url).expect("opens");
    fill(&store);
    let (path, before) = (path(MEMBERS / 2), store.read().expect("a snapshot"));
    for text in ["one", "two", "three"] {
        store.write(|tx| tx.set(&path, &Value::from(text))).expect("sets");
        for _ in 0..4 {
            assert_eq!(get(&store, &path), Some(Value::from(text)));
            assert_eq!(before.get(&path).expect("reads"), Some(leaf(MEMBERS / 2)));
        }
    }
    store.write(|tx| tx.remove(&path)).expect("removes");
    for _ in 0..4 {
        assert_eq!(get(&store, &path), None);
    }
}
