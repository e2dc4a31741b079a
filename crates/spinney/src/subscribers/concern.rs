//! Which operations of a diff concern what is at a path or below it.

use spinney_core::diff::{Diff, Relation};
use spinney_core::{Path, Result};

/// The operations that concern a path; `has` tells whether there is a node at a path, or was one.
///
/// # Errors
/// Those of `has`, which is asked at most once.
///
/// # Complexity
/// That of the diff.
pub fn concerning(
    diff: &Diff,
    segments: &[String],
    has: impl Fn(&str) -> Result<bool>,
) -> Result<Diff> {
    let mut is_there: Option<bool> = None;
    let mut ops = Vec::new();
    for op in &diff.ops {
        let concerns = match op.relation_to(segments) {
            Relation::Concerns => true,
            Relation::Apart => false,
            Relation::Above => match is_there {
                Some(is_there) => is_there,
                None => *is_there.insert(has(&pointer(segments))?),
            },
        };
        if concerns {
            ops.push(op.clone());
        }
    }
    Ok(Diff { ops })
}

fn pointer(segments: &[String]) -> Path {
    let mut path = Path::root();
    segments.iter().for_each(|segment| path.push(segment));
    path
}

#[cfg(test)]
mod tests {
    use crate::{Result, Transaction};

    fn concerns(path: &str, edit: impl FnMut(&mut Transaction<'_>) -> Result<()>) -> bool {
        let store = crate::open("memory:").expect("opens");
        let tree = r#"{"m": {"x": {"y": 1}, "~/": 2}, "l": [[0], [1], [2]], "s": 1}"#;
        let tree = crate::formats::parse(tree).expect("JSON");
        store.write(|tx| tx.set("/t", &tree)).expect("sets");
        let before = store.read().expect("reads");
        let diff = store.write(edit).expect("writes").diff;
        let after = store.read().expect("reads");
        let segments: Vec<String> =
            crate::path::segments(path).map(std::borrow::Cow::into_owned).collect();
        let has = |path: &str| Ok(before.kind(path)?.is_some() || after.kind(path)?.is_some());
        let diff = super::concerning(&diff, &segments, has);
        !diff.expect("reads").is_empty()
    }

    #[test]
    fn what_is_below_at_and_above() {
        type Edit = fn(&mut Transaction<'_>) -> Result<()>;
        let set_y: Edit = |tx| tx.set("/t/m/x/y", &2.into());
        for (path, yes) in [
            ("", true),
            ("/t", true),
            ("/t/m/x", true),
            ("/t/m/x/y", true),
            ("/t/m/x/y/z", false),
            ("/t/m/x/z", false),
            ("/t/m/xx", false),
            ("/t/l", false),
        ] {
            assert_eq!(concerns(path, set_y), yes, "{path}");
        }
        let remove_tree: Edit = |tx| tx.remove("/t").map(drop);
        assert!(concerns("/t/m/x/y", remove_tree), "it held it");
        assert!(!concerns("/t/m/none", remove_tree), "it held none");
        let replace: Edit = |tx| tx.set("/t/s", &crate::Value::map());
        assert!(!concerns("/t/s/below", replace));
        assert!(concerns("/t/m/~0~1", |tx| tx.set("/t/m/~0~1", &3.into())));
        let meta: Edit = |tx| tx.set_meta("/t/m", "note", Some("text"));
        assert!(concerns("/t/m", meta) && concerns("/t", meta));
        assert!(!concerns("/t/m/x", meta), "metadata is of its own node");
    }

    #[test]
    fn positions_move() {
        assert!(concerns("/t/l/1/0", |tx| tx.insert("/t/l/0", &9.into())));
        assert!(concerns("/t/l/1", |tx| tx.remove("/t/l/1").map(drop)));
        assert!(!concerns("/t/l/1", |tx| tx.remove("/t/l/2").map(drop)));
        assert!(!concerns("/t/l/1", |tx| tx.insert("/t/l/3", &9.into())));
        assert!(concerns("/t/l/1", |tx| tx.set("/t/l/1/0", &9.into())));
        assert!(!concerns("/t/l/1", |tx| tx.set("/t/l/2/0", &9.into())));
        assert!(!concerns("/t/l/x", |tx| tx.remove("/t/l/0").map(drop)));
    }
}
