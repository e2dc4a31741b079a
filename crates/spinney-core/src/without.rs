//! A tree without some members of its root, on its way to whoever receives it.

use crate::error::Result;
use crate::key::{Key, StoredKey, not_a_key};
use crate::visit::{Container, Scalar, StoredText, Visitor};

/// Hands on what it is told but the root's members of some names.
pub struct Without<'v, V: ?Sized> {
    visitor: &'v mut V,
    names: &'v [&'v str],
    depth: usize,
    /// Within a member that is left out.
    leaves_out: bool,
}

impl<'v, V: Visitor + ?Sized> Without<'v, V> {
    /// Leaves out the members of these names.
    pub fn new(visitor: &'v mut V, names: &'v [&'v str]) -> Without<'v, V> {
        Without { visitor, names, depth: 0, leaves_out: false }
    }

    /// A value is complete. Whether the visitor is to be told of it.
    fn end_value(&mut self) -> bool {
        match self.depth {
            1 => !std::mem::take(&mut self.leaves_out),
            _ => !self.leaves_out,
        }
    }
}

impl<V: Visitor + ?Sized> Visitor for Without<'_, V> {
    #[inline]
    fn open(&mut self, container: Container) -> Result<()> {
        self.depth += 1;
        if self.leaves_out { Ok(()) } else { self.visitor.open(container) }
    }

    #[inline]
    fn key(&mut self, key: Key<'_>) -> Result<()> {
        if self.depth == 1 {
            self.leaves_out = self.names.contains(&&*key.text());
        }
        if self.leaves_out { Ok(()) } else { self.visitor.key(key) }
    }

    #[inline]
    fn scalar(&mut self, scalar: Scalar<'_>) -> Result<()> {
        if self.end_value() { self.visitor.scalar(scalar) } else { Ok(()) }
    }

    #[inline]
    fn close(&mut self) -> Result<()> {
        self.depth -= 1;
        if self.end_value() { self.visitor.close() } else { Ok(()) }
    }

    #[inline]
    fn meta(&mut self, name: &str, value: &str) -> Result<()> {
        if self.leaves_out { Ok(()) } else { self.visitor.meta(name, value) }
    }

    #[inline]
    fn stored_key(&mut self, key: StoredKey<'_>) -> Result<()> {
        match (self.depth, self.leaves_out) {
            (1, _) => self.key(Key::decode(&key.bytes()).ok_or_else(not_a_key)?),
            (_, true) => Ok(()),
            (_, false) => self.visitor.stored_key(key),
        }
    }

    #[inline]
    fn stored_text(&mut self, text: StoredText<'_>) -> Result<()> {
        if self.end_value() { self.visitor.stored_text(text) } else { Ok(()) }
    }

    fn wants_element_ids(&self) -> bool {
        self.visitor.wants_element_ids()
    }

    #[inline]
    fn element(&mut self, id: u64) {
        if !self.leaves_out {
            self.visitor.element(id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::{Map, Value, ValueBuilder};

    #[test]
    fn only_members_of_the_root_are_left_out() {
        let mut inner = Map::new();
        inner.insert("x", vec![Value::map(), 1.into()]);
        let mut root = Map::new();
        for name in ["a", "x", "y", "z"] {
            root.insert(name, inner.clone());
        }
        root.insert("scalar", 1);
        let whole = Value::Map(root.clone());
        let without = |names: &[&str]| {
            let mut builder = ValueBuilder::default();
            whole.visit(&mut Without::new(&mut builder, names)).expect("visits");
            builder.finish().expect("a value")
        };
        assert_eq!(without(&[]), whole);
        for name in ["x", "z", "scalar"] {
            root.remove(name);
        }
        assert_eq!(without(&["scalar", "x", "z", "none"]), Value::Map(root));
    }
}
