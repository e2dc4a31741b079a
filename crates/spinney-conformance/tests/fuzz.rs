//! Fuzz targets of what parses stored bytes and paths: nothing panics, what reads is canonical.
//!
//! `cargo test` runs them for a moment; `cargo bolero test node` for as long as one likes.

use std::cmp::Ordering;

use spinney::query::{Budget, Query};
use spinney_core::backend::TreeId;
use spinney_core::diff::Diff;
use spinney_core::expand::Contained;
use spinney_core::layout::{RecordKind, head_key, prefix};
use spinney_core::node::{self, Node};
use spinney_core::page::{self, Entry, Page};
use spinney_core::reclaim::{self, Item};
use spinney_core::record::{ContainerHead, Head, SEAL_LEN, seal};
use spinney_core::value::ValueBuilder;
use spinney_core::view::PageRecord;
use spinney_core::{Container, Key, Memory, Num, Path, key, path, rank, varint};

const CONTAINERS: [Container; 2] = [Container::Map, Container::List];

#[test]
fn paths() {
    bolero::check!().for_each(|bytes: &[u8]| {
        let Ok(text) = std::str::from_utf8(bytes) else { return };
        let Ok(parsed) = Path::parse(text) else { return };
        let mut again = Path::root();
        path::segments(text).for_each(|segment| again.push(&segment));
        assert_eq!(again, parsed);
        if let Some((parent, last)) = path::split_last(text) {
            let mut joined = Path::parse(parent).expect("a parent is a path");
            joined.push(&last);
            assert_eq!(joined, parsed);
        }
    });
}

#[test]
fn keys() {
    bolero::check!().for_each(|bytes: &[u8]| {
        if let Some(key) = Key::decode(bytes) {
            let mut again = Vec::new();
            key.encode(&mut again);
            assert_eq!(again, bytes, "what decodes is canonical");
            assert_eq!(Key::new(&key.text()), key);
        }
        let middle = bytes.len() / 2;
        let (a, b) = (std::str::from_utf8(&bytes[..middle]), std::str::from_utf8(&bytes[middle..]));
        if let (Ok(a), Ok(b)) = (a, b) {
            let encoded = |text: &str| {
                let mut out = Vec::new();
                Key::new(text).encode(&mut out);
                out
            };
            assert_eq!(encoded(a).cmp(&encoded(b)), key::compare(a, b), "{a:?} {b:?}");
            assert_eq!(key::compare(a, b) == Ordering::Equal, a == b);
        }
    });
}

/// Keys near integers are rare among random bytes.
#[test]
fn integer_keys() {
    bolero::check!().with_type::<(i64, i64, bool)>().for_each(|&(a, b, padded)| {
        let zero = if padded { "0" } else { "" };
        let (a_text, b_text) = (format!("{zero}{a}"), b.to_string());
        let encoded = |text: &str| {
            let mut out = Vec::new();
            Key::new(text).encode(&mut out);
            assert_eq!(Key::decode(&out).expect("decodes").text(), text);
            out
        };
        let order = encoded(&a_text).cmp(&encoded(&b_text));
        assert_eq!(order, key::compare(&a_text, &b_text));
        if !padded {
            assert_eq!(order, a.cmp(&b));
        }
    });
}

#[test]
fn nodes() {
    bolero::check!().for_each(|bytes: &[u8]| {
        let Some(annotated) = node::read(bytes) else { return };
        node::meta_entries(annotated.meta).for_each(drop);
        let _ = reclaim::references(bytes, |_| {});
        if let Node::Scalar(scalar) = annotated.node {
            let mut again = Vec::new();
            node::write_meta(annotated.meta, &mut again);
            node::write_scalar(scalar, &mut again);
            let once_more = node::read(&again).expect("what is written reads");
            assert_eq!(once_more.meta, annotated.meta);
            assert!(matches!(once_more.node, Node::Scalar(again) if again == scalar));
        }
        let mut builder = ValueBuilder::default();
        let _ = Contained(bytes).visit(&mut builder);
    });
}

#[test]
fn pages() {
    bolero::check!().for_each(|bytes: &[u8]| {
        for container in CONTAINERS {
            let Some(page) = Page::parse(container, bytes) else { continue };
            let _ = page.next_id_or_derived();
            for index in (0..page.count().min(200)).chain([page.count(), usize::MAX]) {
                let _ = (page.value(index), page.element(index), page.suffix_and_value(index));
                let mut key = Vec::new();
                if page.key_into(index, &mut key).is_some() {
                    let _ = page.search(&key);
                }
            }
            for key in [&b""[..], b"\x0a", b"key", bytes] {
                let _ = page.search(key);
            }
        }
    });
}

/// Pages of real entries: all are found, and nothing beside them.
#[test]
fn pages_of_entries() {
    type Entries = Vec<(Vec<u8>, u16)>;
    bolero::check!().with_type::<Entries>().for_each(|entries| {
        let members: std::collections::BTreeMap<Vec<u8>, Vec<u8>> = entries
            .iter()
            .map(|(key, value)| (key.clone(), vec![1; usize::from(*value % 300)]))
            .collect();
        let members: Vec<_> = members.into_iter().collect();
        let entry =
            |index: usize| Entry { key: &members[index].0, id: 0, value: &members[index].1 };
        let mut body = Vec::new();
        page::encode(Container::Map, members.len(), entry, None, &mut body);
        let page = Page::parse(Container::Map, &body).expect("it parses");
        assert_eq!(page.count(), members.len());
        for (index, (key, value)) in members.iter().enumerate() {
            assert_eq!(page.search(key), Some(Ok(index)));
            assert_eq!(page.value(index), Some(&value[..]));
            let mut longer = key.clone();
            longer.push(0);
            let is_next = members.get(index + 1).is_some_and(|(next, _)| *next == longer);
            let expected = if is_next { Ok(index + 1) } else { Err(index + 1) };
            assert_eq!(page.search(&longer), Some(expected));
        }
    });
}

#[test]
fn diffs() {
    bolero::check!().for_each(|bytes: &[u8]| {
        let Ok(diff) = Diff::decode(bytes) else { return };
        assert_eq!(Diff::decode(&diff.encode()).expect("it reads back"), diff);
        assert_eq!(diff.invert().invert(), diff);
        for op in &diff.ops {
            let _ = op.pointer();
        }
        let memory = Memory::new();
        let mut transaction = spinney::Transaction::begin(&memory).expect("begins");
        let _ = transaction.apply(&diff);
    });
}

/// Records whose checksum is right and whose fields are not.
#[test]
fn sealed_records() {
    use spinney_core::backend::{Backend, Batch, Change};
    bolero::check!().for_each(|bytes: &[u8]| {
        let with = |key: &[u8], record: Vec<u8>| {
            let memory = Memory::new();
            let changes = vec![Change::Put(key.into(), record.into())];
            memory.commit(Batch { changes, ..Batch::default() }).map(|_| memory)
        };
        let sealed = |key: &[u8]| {
            let mut record = vec![0; SEAL_LEN];
            record.extend_from_slice(bytes);
            seal(key, &mut record);
            record
        };
        let key = ContainerHead::key(1, 1);
        let memory = with(&key, sealed(&key)).expect("commits");
        let snapshot = memory.snapshot().expect("a snapshot");
        if let Ok(head) = ContainerHead::load(&*snapshot, 1, 1) {
            let _ = spinney_core::view::open_counts(1, 1, &head);
        }
        let key = prefix(1, RecordKind::Page, 1);
        if let Ok(record) = PageRecord::open(&key, sealed(&key).into()) {
            for container in CONTAINERS {
                let _ = record.page(container).map(|page| page.count());
            }
        }
        let key = prefix(1, RecordKind::Reclaim, 1);
        if let Ok(item) = Item::decode(&key, &sealed(&key)) {
            assert_eq!(Item::decode(&key, &item.encode()).expect("it reads back"), item);
        }
        if let Ok(memory) = with(&head_key(1), bytes.to_vec()) {
            let _ = Head::load(&*memory.snapshot().expect("a snapshot"), 1);
        }
    });
}

#[test]
fn heads() {
    use spinney_core::backend::{Backend, Batch, Change};
    type Fields = (u64, u64, Vec<(TreeId, u64)>, Vec<u8>);
    bolero::check!().with_type::<Fields>().for_each(|(revision, next_id, building, root)| {
        let building = building.iter().copied().filter(|&(_, id)| id != 0).collect();
        let head = Head { revision: *revision, next_id: *next_id, building, root: root.clone() };
        let changes = vec![
            Change::Put(head_key(0).into(), 1_u64.to_be_bytes().into()),
            Change::Put(head_key(7).into(), head.encode(7).into()),
        ];
        let memory = Memory::new();
        let batch = Batch { bases: vec![(7, 0)], revision: 1, changes, ..Batch::default() };
        memory.commit(batch).expect("commits");
        let snapshot = memory.snapshot().expect("a snapshot");
        assert_eq!(Head::load(&*snapshot, 7).expect("it reads"), Some(head));
    });
}

#[test]
fn varints_ranks_and_numbers() {
    bolero::check!().for_each(|bytes: &[u8]| {
        let mut at = 0;
        if let Some(value) = varint::read(bytes, &mut at) {
            let mut again = Vec::new();
            varint::write(value, &mut again);
            assert_eq!(
                (again.len(), varint::read(&again, &mut 0)),
                (varint::len(value), Some(value))
            );
        }
        let _ = varint::read_bytes(bytes, &mut 0);
        if let Some(rank) = rank::read(bytes) {
            let mut again = Vec::new();
            rank::write(rank, &mut again);
            assert_eq!(again, bytes);
            let next = rank::after(rank);
            assert!(next.is_none_or(|next| next > rank));
            assert!(rank::between(0, rank).is_none_or(|between| between > 0 && between < rank));
        }
        if let Some(number) = std::str::from_utf8(bytes).ok().and_then(|text| Num::parse(text).ok())
        {
            let mut again = Vec::new();
            number.write(&mut again);
            assert_eq!(again, bytes, "a number keeps its text");
        }
    });
}

/// Any text, and texts of words that queries are made of: what parses also runs, and each place that is
/// found is a query for the same node.
#[test]
fn queries() {
    const WORDS: [&str; 40] = [
        "$", "@", ".a", ".b", "..", "..a", "[", "]", "[*]", ".*", "[0]", "[-1]", "['a']", "?", "(",
        ")", "!", "&&", "||", "==", "<", ">=", "1", "1.0", "-1", ":", ",", "'x'", "\"y\"", "true",
        "null", " ", "length(", "count(", "value(", "match(", "search(", "[?@.a", "[?@", "@.b",
    ];
    let text =
        r#"{"a": [1, "x", {"a": {"b": 1.0}}, [[]]], "b": {"a": null, "'": true}, "0": "xy"}"#;
    let document = spinney::formats::parse(text).expect("JSON");
    bolero::check!().for_each(|bytes: &[u8]| {
        let words: String =
            bytes.iter().map(|&byte| WORDS[usize::from(byte) % WORDS.len()]).collect();
        for text in [format!("${}", String::from_utf8_lossy(bytes)), format!("${words}")] {
            let Ok(query) = Query::parse(&text) else { continue };
            let budget = Budget { steps_max: Some(10_000), ..Budget::default() };
            let mut matches = query.run(&document, budget);
            while let Ok(Some(node)) = matches.next() {
                let location = matches.location().expect("it reads");
                assert_eq!(document.pointer(&location.pointer()), Some(node), "{text}");
                let again = Query::parse(&location.to_string()).expect("a place is a query");
                let mut again = again.run(&document, Budget::default());
                assert_eq!(again.next().expect("it reads"), Some(node), "{text}");
                assert_eq!(again.next().expect("it reads"), None, "{text}");
            }
        }
    });
}
