//! The documented limits: what is just inside works, what is just outside is refused.

use spinney::ErrorKind::LimitExceeded;
use spinney::{Container, Key, Receiver, Result, Scalar, Value, Visitor};

use super::Case;
use crate::subject::Subject;

pub(super) const CASES: &[Case] = &[
    ("paths as deep as allowed", deep_paths),
    ("values as deep as allowed", deep_values),
    ("moves into the depth", deep_moves),
    ("copies into the depth", deep_copies),
    ("values beyond memory of a depth", very_deep_values),
];

/// The deepest path that can be set: each container on the way is a level, the node included.
fn deepest(s: &Subject) -> usize {
    let works = |levels: usize| {
        let path = "/x".repeat(levels);
        let set = s.store.write(|tx| tx.set(&path, &1.into()));
        if set.is_ok() {
            assert_eq!(s.get(&path), Some(1.into()));
        }
        s.store.write(|tx| tx.remove("/x")).expect("removes");
        set
    };
    let deepest = (509..=514).rev().find(|&levels| works(levels).is_ok()).expect("a depth");
    let error = works(deepest + 1).expect_err("too deep");
    assert_eq!(error.kind(), LimitExceeded, "{error}");
    assert!(error.to_string().contains("512"), "{error}");
    deepest
}

fn deep_paths(s: &Subject) {
    let deepest = deepest(s);
    println!("the deepest path has {deepest} segments");
    assert!((511..=513).contains(&deepest), "512 levels, the root or the leaf beside");
    let path = "/x".repeat(deepest - 1);
    s.write(|tx| tx.set(&format!("{path}/l"), &1.into()));
    s.write(|tx| tx.set_meta(&format!("{path}/l"), "n", Some("v")));
    assert_eq!(s.get(&format!("{path}/l")), Some(1.into()));
    s.write(|tx| tx.remove(&format!("{path}/l")));
    s.refused(LimitExceeded, "deep", |tx| tx.set(&"/x".repeat(100_000), &1.into()));
    assert_eq!(s.get(&"/x".repeat(100_000)), None);
    assert!(!s.write(|tx| tx.remove(&"/y".repeat(100_000))).value);
}

/// Drives `levels` nested lists with a number inside.
fn nested(levels: usize) -> impl Fn(&mut Receiver<'_, '_>) -> Result<()> {
    move |visitor| {
        (0..levels).try_for_each(|_| visitor.open(Container::List))?;
        visitor.scalar(Scalar::Bool(true))?;
        (0..levels).try_for_each(|_| visitor.close())
    }
}

fn set_nested(s: &Subject, path: &str, levels: usize) -> Result<()> {
    let any = spinney::Existing::Any;
    s.store.write(|tx| tx.set_with(path, any, nested(levels))).map(drop)
}

fn deep_values(s: &Subject) {
    let deepest = (508..=514).rev().find(|&levels| set_nested(s, "/t", levels).is_ok());
    let deepest = deepest.expect("a depth");
    println!("the deepest value below a tree has {deepest} containers");
    assert!((510..=512).contains(&deepest));
    assert_eq!(s.get(&format!("/t{}", "/0".repeat(deepest))), Some(true.into()));
    for (path, levels) in [("/t", deepest + 1), ("/u/v", deepest), ("/t", 100_000)] {
        let (before, revision) = (s.text(""), s.revision());
        let error = set_nested(s, path, levels).expect_err("too deep");
        assert_eq!(error.kind(), LimitExceeded, "{error}");
        assert!(error.to_string().contains(path), "names the path: {error}");
        assert_eq!((s.text(""), s.revision()), (before, revision));
    }
    set_nested(s, "/u/v", deepest - 1).expect("one level above it, one less inside");
    let value = s.get("/u").expect("a value");
    s.write(|tx| tx.set("/copy", &value));
    s.write(|tx| tx.remove("/u"));
    s.write(|tx| tx.set("/t/0/0", &Value::Null));
}

fn deep_moves(s: &Subject) {
    set_nested(s, "/t/a", 300).expect("sets");
    let way = "/t/b".to_owned() + &"/x".repeat(250);
    let error = s.store.write(|tx| tx.mv("/t/a", &way)).expect_err("too deep");
    assert_eq!(error.kind(), LimitExceeded, "{error}");
    assert!(s.get("/t/a").is_some());
    let way = "/t/b".to_owned() + &"/x".repeat(150);
    s.write(|tx| tx.mv("/t/a", &way));
    assert_eq!(s.get(&(way.clone() + &"/0".repeat(300))), Some(true.into()));
    // From another tree, and a whole tree.
    let deeper = "/u".to_owned() + &"/y".repeat(240);
    assert_eq!(s.store.write(|tx| tx.mv(&way, &deeper)).expect_err("deep").kind(), LimitExceeded);
    assert_eq!(
        s.store.write(|tx| tx.mv("/t", "/u/v/w".repeat(25).as_str())).expect_err("deep").kind(),
        LimitExceeded
    );
    assert!(s.get(&way).is_some());
}

fn deep_copies(s: &Subject) {
    set_nested(s, "/t/a", 300).expect("sets");
    for way in ["/t/b".to_owned() + &"/x".repeat(250), "/u".to_owned() + &"/x".repeat(250)] {
        let before = s.text("");
        let error = s.store.write(|tx| tx.copy("/t/a", &way)).expect_err("too deep");
        assert_eq!(error.kind(), LimitExceeded, "{error}");
        assert_eq!(s.text(""), before);
    }
    s.write(|tx| tx.copy("/t/a", "/t/c"));
}

/// Stops what never closes.
struct Endless;

impl Endless {
    fn drive(&self, visitor: &mut dyn Visitor) -> Result<()> {
        loop {
            visitor.open(Container::Map)?;
            visitor.key(Key::Text("k"))?;
        }
    }
}

fn very_deep_values(s: &Subject) {
    let any = spinney::Existing::Any;
    s.refused(LimitExceeded, "deep", |tx| tx.set_with("/t", any, |v| Endless.drive(v)));
    s.refused(LimitExceeded, "deep", |tx| tx.set_with("/t/a/b", any, |v| Endless.drive(v)));
}
