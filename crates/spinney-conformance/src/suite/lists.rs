//! Lists: positions, ids that stay, and growth at any place.

use spinney::ErrorKind::{InvalidInput, NotFound};
use spinney::Value;
use spinney_core::diff::{Diff, Step};

use super::Case;
use crate::subject::{Subject, json};

pub(super) const CASES: &[Case] = &[
    ("front, middle, end and `-`", positions),
    ("elements keep their ids when they move", ids_survive_moves),
    ("ids in a list of pages", ids_in_pages),
    ("a list follows a plain vector", follows_a_vector),
    ("lists of lists", nested),
    ("elements removed from the front, the end and the middle", emptied),
];

fn positions(s: &Subject) {
    s.set("/l", "[]");
    s.write(|tx| tx.insert("/l/0", &"b".into()));
    s.write(|tx| tx.insert("/l/0", &"a".into()));
    s.write(|tx| tx.insert("/l/2", &"d".into()));
    s.write(|tx| tx.insert("/l/2", &"c".into()));
    s.write(|tx| tx.insert("/l/-", &"e".into()));
    s.write(|tx| tx.set("/l/-", &"f".into()));
    s.write(|tx| tx.set("/l/0", &"A".into()));
    assert_eq!(s.get("/l"), Some(json(r#"["A", "b", "c", "d", "e", "f"]"#)));
    s.refused(InvalidInput, "`/l/7`", |tx| tx.insert("/l/7", &1.into()));
    s.refused(InvalidInput, "`/l/6`", |tx| tx.set("/l/6", &1.into()));
    s.refused(NotFound, "`/none/0`", |tx| tx.insert("/none/0", &1.into()));
    s.set("/m", "{}");
    s.refused(InvalidInput, "`/m/0`", |tx| tx.insert("/m/0", &1.into()));
    assert!(s.write(|tx| tx.remove("/l/5")).value);
    assert!(s.write(|tx| tx.remove("/l/0")).value);
    assert!(s.write(|tx| tx.remove("/l/1")).value);
    assert_eq!(s.get("/l"), Some(json(r#"["b", "d", "e"]"#)));
}

/// The ids that a diff takes out of and puts into lists.
fn ids(diff: &Diff) -> (Vec<u64>, Vec<u64>) {
    let (mut taken, mut put) = (Vec::new(), Vec::new());
    for op in &diff.ops {
        let Some(Step::Element { id, .. }) = op.path.last() else { continue };
        if op.new.is_none() {
            taken.push(*id);
        }
        if op.old.is_none() {
            put.push(*id);
        }
    }
    (taken, put)
}

/// The id of an element, as the diff of a replacement names it.
fn id_at(s: &Subject, path: &str) -> u64 {
    let value = s.get(path).expect("an element");
    let diff = s.write(|tx| tx.set(path, &"probe".into())).diff;
    s.write(|tx| tx.set(path, &value));
    match diff.ops[0].path.last() {
        Some(Step::Element { id, .. }) => *id,
        step => panic!("an element's step is {step:?}"),
    }
}

fn moves_keep_ids(s: &Subject, list: &str, len: u64) {
    let path = |position: u64| format!("{list}/{position}");
    for (from, to) in [(0, len - 1), (len - 1, 0), (len / 2, 1), (1, len / 2), (0, 1)] {
        let (id, neighbour) = (id_at(s, &path(from)), id_at(s, &path(len / 3)));
        let value = s.get(&path(from));
        let diff = s.write(|tx| tx.mv(&path(from), &path(to))).diff;
        let (taken, put) = ids(&diff);
        assert!(taken.len() == 1 && taken == put, "{from} to {to}: {taken:?}, {put:?}");
        // Of two neighbours that change places either one may be said to have moved.
        assert!(taken[0] == id || from.abs_diff(to) == 1, "{from} to {to}: {taken:?}");
        assert_eq!((s.get(&path(to)), id_at(s, &path(to))), (value, id), "{from} to {to}");
        let places = [len / 3 - 1, len / 3, len / 3 + 1];
        let stayed = places.iter().any(|&place| id_at(s, &path(place)) == neighbour);
        assert!(stayed || [from, to].contains(&(len / 3)), "a neighbour keeps its id");
    }
    let revision = s.revision();
    s.write(|tx| tx.mv(&path(1), &path(1)));
    assert_eq!(s.revision(), revision, "to where it is");
    let removed = id_at(s, &path(0));
    s.write(|tx| tx.remove(&path(0)));
    s.write(|tx| tx.insert(&path(0), &"new".into()));
    assert_ne!(id_at(s, &path(0)), removed, "an id is not given out again");
}

fn ids_survive_moves(s: &Subject) {
    s.set("/a/l", "[10, 11, 12, 13, 14, 15, 16]");
    moves_keep_ids(s, "/a/l", 7);
    // An insert and a removal elsewhere change positions, never ids.
    let id = id_at(s, "/a/l/3");
    s.write(|tx| tx.insert("/a/l/0", &0.into()));
    assert_eq!(id_at(s, "/a/l/4"), id);
    s.write(|tx| tx.remove("/a/l/1"));
    assert_eq!(id_at(s, "/a/l/3"), id);
    // Removed at the end: the newest id is still not given out again.
    let (last, len) = (s.count("/a/l").expect("a list") - 1, s.count("/a/l").expect("a list"));
    let id = id_at(s, &format!("/a/l/{last}"));
    s.write(|tx| tx.remove(&format!("/a/l/{last}")));
    s.write(|tx| tx.set("/a/l/-", &"new".into()));
    assert_ne!(id_at(s, &format!("/a/l/{}", len - 1)), id);
}

fn ids_in_pages(s: &Subject) {
    let list: Vec<Value> = (0..2_000_u64).map(Value::from).collect();
    s.write(|tx| tx.set("/a/l", &list.clone().into()));
    moves_keep_ids(s, "/a/l", 2_000);
    assert_eq!(s.count("/a/l"), Some(2_000));
}

fn follows_a_vector(s: &Subject) {
    let mut random = fastrand::Rng::with_seed(3);
    let mut model: Vec<Value> = Vec::new();
    s.set("/l", "[]");
    for step in 0..400_u64 {
        let edits = random.usize(1..20);
        let mut after = model.clone();
        let seed = random.u64(..);
        s.store
            .write(|tx| {
                let mut random = fastrand::Rng::with_seed(seed);
                after = model.clone();
                for _ in 0..edits {
                    edit(&mut random, tx, &mut after, step < 250)?;
                }
                Ok(())
            })
            .expect("edits");
        model = after;
        assert_eq!(s.count("/l"), Some(model.len() as u64));
        if !model.is_empty() {
            let at = random.usize(..model.len());
            assert_eq!(s.get(&format!("/l/{at}")).as_ref(), Some(&model[at]));
        }
        if step % 50 == 0 {
            assert_eq!(s.get("/l"), Some(model.clone().into()));
            s.check();
        }
    }
    assert_eq!(s.get("/l"), Some(model.into()));
}

fn edit(
    random: &mut fastrand::Rng,
    tx: &mut spinney::Transaction<'_>,
    model: &mut Vec<Value>,
    grows: bool,
) -> spinney::Result<()> {
    let value = Value::from("x".repeat(random.usize(..120)) + &random.u32(..).to_string());
    let at = random.usize(..=model.len());
    match random.u8(..if grows { 10 } else { 20 }) {
        0..6 => {
            tx.insert(&format!("/l/{at}"), &value)?;
            model.insert(at, value);
        }
        6..8 if at < model.len() => {
            tx.set(&format!("/l/{at}"), &value)?;
            model[at] = value;
        }
        8 if at < model.len() => {
            let moved = model.remove(at);
            let to = random.usize(..=model.len());
            tx.mv(&format!("/l/{at}"), &format!("/l/{to}"))?;
            model.insert(to, moved);
        }
        9.. if at < model.len() => {
            assert!(tx.remove(&format!("/l/{at}"))?);
            model.remove(at);
        }
        _ => {}
    }
    Ok(())
}

fn nested(s: &Subject) {
    s.set("/a", "[[[]], [1, [2, 3]], {}]");
    s.write(|tx| tx.insert("/a/0/0/0", &5.into()));
    s.write(|tx| tx.insert("/a/1/1/1", &"x".into()));
    s.write(|tx| tx.mv("/a/1/1", "/a/0/-"));
    s.write(|tx| tx.set("/a/2/k/l", &7.into()));
    s.write(|tx| tx.mv("/a/0", "/a/2"));
    assert_eq!(s.text("/a"), r#"[[1],{"k":{"l":7}},[[5],[2,"x",3]]]"#);
}

fn emptied(s: &Subject) {
    for order in 0..3 {
        let list: Vec<Value> = (0..1_500_u64).map(Value::from).collect();
        s.store.write(|tx| tx.set("/l", &list.clone().into())).expect("sets");
        for left in (0..1_500_u64).rev().step_by(10) {
            s.store
                .write(|tx| {
                    for left in (left - 9..=left).rev() {
                        let at = [0, left, left / 2][order];
                        assert!(tx.remove(&format!("/l/{at}"))?);
                    }
                    Ok(())
                })
                .expect("removes");
            assert_eq!(s.count("/l"), Some(left - 9));
        }
        assert_eq!(s.text("/l"), "[]");
        s.check();
    }
}
