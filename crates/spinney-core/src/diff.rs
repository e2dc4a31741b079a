//! Differences between two states: what is validated, logged, published and undone.
//!
//! A diff is a sequence of operations; each position refers to the state that the operations before
//! it have made. It is normalised (at most one operation a node, none without effect) and
//! invertible. Large containers are held by reference until [`Diff::expand`] takes them in.

mod relation;
mod steps;

use std::sync::Arc;

use crate::backend::TreeId;
use crate::error::{Error, Result};
use crate::key::{EncodedKey, Key};
use crate::path::{self, Path};
use crate::varint;

pub use relation::Relation;
pub use steps::{Step, Steps};

/// What an operation changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// The node itself: added, removed or replaced.
    Node,
    /// Only the metadata of a container.
    Meta,
}

/// One changed node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Op {
    /// The way from the store's root.
    pub path: Steps,
    /// What changes.
    pub what: What,
    /// The tree that the ids in `old` and `new` belong to.
    pub tree: TreeId,
    /// The encoded node before, or encoded metadata; `None` when it is added.
    pub old: Option<Arc<[u8]>>,
    /// The encoded node after, or encoded metadata; `None` when it is removed.
    pub new: Option<Arc<[u8]>>,
}

impl Op {
    /// The path for people: list elements by their position.
    pub fn pointer(&self) -> Path {
        let mut path = Path::root();
        for step in self.path.iter() {
            match step {
                Step::Key(key) => path.push(&Key::decode(key).unwrap_or(Key::Text("?")).text()),
                Step::Element { position, .. } => path.push(&position.to_string()),
            }
        }
        path
    }
}

/// All that a commit changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diff {
    /// In the order in which they apply.
    pub ops: Vec<Op>,
}

/// What changed in one container, before paths are put to it.
#[derive(Clone, Debug, Default)]
pub struct Delta {
    /// Members of a map, or replaced elements of a list, in order.
    pub members: Vec<MemberDelta>,
    /// Elements taken out of a list, in descending stored positions.
    pub taken: Vec<ElementDelta>,
    /// Elements put into a list, in ascending final positions.
    pub put: Vec<ElementDelta>,
}

/// A changed or opened member.
#[derive(Clone, Debug)]
pub struct MemberDelta {
    /// Its key, or its id and final position.
    pub step: Step,
    /// The tree that its ids belong to.
    pub tree: TreeId,
    /// What changed in the member itself.
    pub change: MemberChange,
}

/// What changed in a member itself.
#[derive(Clone, Debug)]
pub enum MemberChange {
    /// The whole node.
    Node {
        /// Before.
        old: Option<Arc<[u8]>>,
        /// After.
        new: Option<Arc<[u8]>>,
    },
    /// Something below an opened container, and perhaps its metadata.
    Below {
        /// Index of the opened container.
        node: usize,
        /// The metadata before and after, when it changed.
        meta: Option<MetaChange>,
    },
}

/// Encoded metadata before and after.
pub type MetaChange = (Arc<[u8]>, Arc<[u8]>);

/// An element that was taken out or put in.
#[derive(Clone, Debug)]
pub struct ElementDelta {
    /// Its id.
    pub id: u64,
    /// Its position.
    pub position: u64,
    /// Its encoded node.
    pub value: Arc<[u8]>,
}

impl Diff {
    /// Whether nothing changed.
    pub fn is_empty(&self) -> bool {
        self.ops.is_empty()
    }

    /// Keeps what is at a path of map members, above it or below it, and makes paths begin there.
    pub fn begin_below(&mut self, base: &str) {
        if base.is_empty() {
            return;
        }
        let base: Vec<Step> =
            path::segments(base).map(|key| Step::Key(Key::new(&key).encoded())).collect();
        // Operations on one container come together.
        let mut known: Option<Arc<[Step]>> = None;
        let mut stripped: Option<Arc<[Step]>> = None;
        self.ops.retain_mut(|op| {
            let Some(last) = op.path.last().filter(|_| op.path.len() > base.len()) else {
                let is_above = op.path.iter().zip(&base).all(|(step, key)| step == key);
                op.path = Steps::default();
                return is_above;
            };
            let whole = op.path.container();
            if !known.as_ref().is_some_and(|known| Arc::ptr_eq(known, whole)) {
                stripped = whole.strip_prefix(&base[..]).map(Arc::from);
                known = Some(Arc::clone(whole));
            }
            let Some(stripped) = &stripped else { return false };
            op.path = Steps::below(stripped, last.clone());
            true
        });
    }

    /// The diff that undoes this one.
    pub fn invert(&self) -> Diff {
        let swap = |op: &Op| Op { old: op.new.clone(), new: op.old.clone(), ..op.clone() };
        Diff { ops: self.ops.iter().rev().map(swap).collect() }
    }

    /// The encoded form that batches carry and the change log keeps: see `docs/format.md`.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(64 * self.ops.len());
        self.encode_into(&mut out);
        out
    }

    /// As [`Diff::encode`], behind what `out` has.
    pub fn encode_into(&self, out: &mut Vec<u8>) {
        varint::write(self.ops.len() as u64, out);
        let mut previous = &Steps::default();
        for op in &self.ops {
            let shared = op.path.shared_len(previous);
            let flags = u8::from(op.old.is_some())
                | u8::from(op.new.is_some()) << 1
                | u8::from(op.what == What::Meta) << 2;
            out.push(flags);
            varint::write(u64::from(op.tree), out);
            varint::write(shared as u64, out);
            varint::write((op.path.len() - shared) as u64, out);
            for step in op.path.iter().skip(shared) {
                match step {
                    Step::Key(key) => varint::write_bytes(key, out),
                    Step::Element { id, position } => {
                        varint::write(0, out);
                        varint::write(*id, out);
                        varint::write(*position, out);
                    }
                }
            }
            for side in [&op.old, &op.new].into_iter().flatten() {
                varint::write_bytes(side, out);
            }
            previous = &op.path;
        }
    }

    /// Reads the encoded form.
    ///
    /// # Errors
    /// `Corrupted` when the bytes are not a diff.
    pub fn decode(bytes: &[u8]) -> Result<Diff> {
        let mut at = 0;
        let mut read = || {
            let count = varint::read(bytes, &mut at)?;
            let mut ops: Vec<Op> = Vec::new();
            for _ in 0..count {
                let flags = *bytes.get(at)?;
                at += 1;
                let tree = TreeId::try_from(varint::read(bytes, &mut at)?).ok()?;
                let shared = usize::try_from(varint::read(bytes, &mut at)?).ok()?;
                let rest = varint::read(bytes, &mut at)?;
                let previous = ops.last().map(|op| op.path.clone()).unwrap_or_default();
                let path = match rest {
                    1 if shared == previous.container().len() => {
                        Steps::below(previous.container(), read_step(bytes, &mut at)?)
                    }
                    _ if shared > previous.len() => return None,
                    _ => {
                        let mut path: Vec<Step> = previous.iter().take(shared).cloned().collect();
                        for _ in 0..rest {
                            path.push(read_step(bytes, &mut at)?);
                        }
                        path.into()
                    }
                };
                let mut side = |present: bool| match present {
                    false => Some(None),
                    true => Some(Some(varint::read_bytes(bytes, &mut at)?.into())),
                };
                let (old, new) = (side(flags & 1 != 0)?, side(flags & 2 != 0)?);
                let what = if flags & 4 != 0 { What::Meta } else { What::Node };
                ops.push(Op { path, what, tree, old, new });
            }
            (at == bytes.len()).then_some(Diff { ops })
        };
        read().ok_or_else(|| Error::corrupted("an encoded diff does not read"))
    }
}

fn read_step(bytes: &[u8], at: &mut usize) -> Option<Step> {
    Some(match varint::read_bytes(bytes, at)? {
        [] => {
            let id = varint::read(bytes, at)?;
            Step::Element { id, position: varint::read(bytes, at)? }
        }
        key => Step::Key(EncodedKey::from(key)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encoding_and_inversion_round_trip() {
        let key = |text: &str| Step::Key(Key::new(text).encoded());
        let op = |path: Vec<Step>, old: Option<&[u8]>, new: Option<&[u8]>| Op {
            path: path.into(),
            what: What::Node,
            tree: 7,
            old: old.map(Into::into),
            new: new.map(Into::into),
        };
        let element = Step::Element { id: 5, position: 300 };
        let diff = Diff {
            ops: vec![
                op(vec![key("a"), key("b/c")], None, Some(b"x")),
                op(vec![key("a"), element.clone()], Some(b"x"), None),
                op(vec![key("a"), element, key("10")], Some(b"x"), Some(b"y")),
            ],
        };
        assert_eq!(Diff::decode(&diff.encode()).expect("reads"), diff);
        assert_eq!(diff.invert().invert(), diff);
        assert_eq!(&*diff.ops[2].pointer(), "/a/300/10");
        let mut root = Diff { ops: vec![op(vec![key("a")], Some(b"x"), Some(b"y"))] };
        root.begin_below("/a");
        assert_eq!(root.ops[0].path, Steps::default());
        let mut below = diff.clone();
        below.begin_below("/a");
        assert_eq!(&*below.ops[2].pointer(), "/300/10");
        below.begin_below("/300");
        assert_eq!(below.ops.len(), 0);
        assert_eq!(Diff::decode(&root.encode()).expect("reads"), root);
        let encoded = diff.encode();
        for len in 0..encoded.len() {
            assert!(Diff::decode(&encoded[..len]).is_err());
        }
    }
}
