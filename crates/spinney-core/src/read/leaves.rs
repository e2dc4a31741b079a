//! A cursor over the leaves below a node: depth first, one after the other, each with where it lies.

use super::{Children, Leaf, Node};
use crate::error::Result;
use crate::key::Key;
use crate::visit::{Container, Visitor};

/// Runs over the leaves below a node in the order of the model: scalars, and containers without
/// members. A node that is itself one has it as its only leaf.
pub struct Leaves<N: Node> {
    /// Children of the containers that lead to the leaf, the outermost first.
    levels: Vec<N::Children>,
    node: N,
    has_begun: bool,
}

impl<N: Node> Leaves<N> {
    /// A cursor before the first leaf.
    pub fn new(node: N) -> Leaves<N> {
        Leaves { levels: Vec::new(), node, has_begun: false }
    }

    /// Moves to the next leaf; how many segments of its path from the start are the containers of the
    /// leaf before, or `None` behind the last.
    ///
    /// # Errors
    /// Those of reading.
    ///
    /// # Complexity
    /// O(1) for each container that is left or entered.
    pub fn advance(&mut self) -> Result<Option<usize>> {
        let mut kept = 0;
        if std::mem::replace(&mut self.has_begun, true) {
            loop {
                let Some(innermost) = self.levels.last_mut() else { return Ok(None) };
                if innermost.next(&mut self.node)? {
                    break;
                }
                self.levels.pop();
            }
            kept = self.levels.len() - 1;
        }
        while let Some(mut children) = self.node.children()? {
            if !children.next(&mut self.node)? {
                break;
            }
            self.levels.push(children);
        }
        Ok(Some(kept))
    }

    /// The leaf.
    pub fn node(&self) -> &N {
        &self.node
    }

    /// How many segments its path from the start has.
    pub fn depth(&self) -> usize {
        self.levels.len()
    }

    /// A segment of that path: a key, or `None` where it is the position in a list. `buffer` holds it
    /// where it is not in one piece.
    ///
    /// # Errors
    /// `Corrupted` for damage.
    ///
    /// # Panics
    /// When the path is shorter.
    pub fn key<'k>(&'k self, segment: usize, buffer: &'k mut Vec<u8>) -> Result<Option<Key<'k>>> {
        self.levels[segment].key(buffer)
    }
}

/// Puts together again what a [`Leaves`] gives leaf by leaf: a visitor is driven as by the node itself.
#[derive(Default)]
pub struct Rebuild {
    /// Containers that are open, and how many segments lead to the outermost.
    open: usize,
    base: usize,
    buffer: Vec<u8>,
}

impl Rebuild {
    /// Of what lies at paths of `base` segments from the start of the cursor.
    pub fn below(base: usize) -> Rebuild {
        Rebuild { base, ..Rebuild::default() }
    }

    /// Takes the leaf on which the cursor stands, of whose path `kept` segments are as before.
    ///
    /// # Errors
    /// Those of reading and of the visitor.
    pub fn leaf<N: Node>(
        &mut self,
        leaves: &Leaves<N>,
        kept: usize,
        visitor: &mut (impl Visitor + ?Sized),
    ) -> Result<()> {
        let kept = kept.max(self.base);
        self.close(kept + 1 - self.base, visitor)?;
        for segment in kept..leaves.depth() {
            let key = leaves.key(segment, &mut self.buffer)?;
            if segment - self.base >= self.open {
                visitor.open(if key.is_some() { Container::Map } else { Container::List })?;
                self.open += 1;
            }
            if let Some(key) = key {
                visitor.key(key)?;
            }
        }
        let node = leaves.node();
        match node.leaf(&mut self.buffer)?.map(Leaf::scalar) {
            Some(scalar) => visitor.scalar(scalar),
            None => node.visit(visitor),
        }
    }

    /// Closes what is open, when the last leaf was taken.
    ///
    /// # Errors
    /// Those of the visitor.
    pub fn finish(&mut self, visitor: &mut (impl Visitor + ?Sized)) -> Result<()> {
        self.close(0, visitor)
    }

    fn close(&mut self, left: usize, visitor: &mut (impl Visitor + ?Sized)) -> Result<()> {
        while self.open > left {
            visitor.close()?;
            self.open -= 1;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::{Map, Value, ValueBuilder};

    fn map<const N: usize>(members: [(&str, Value); N]) -> Value {
        Value::Map(members.into_iter().collect::<Map>())
    }

    fn sample() -> Value {
        let list = Value::from(vec![
            1.into(),
            Value::list(),
            Value::from(vec![map([("x", Value::Null)]), true.into()]),
        ]);
        map([("a", map([("b", "c".into()), ("d", Value::map())])), ("e", list), ("f", 2.into())])
    }

    #[test]
    fn leaves_come_in_order_with_what_is_kept_of_their_paths() {
        let value = sample();
        let mut leaves = Leaves::new(&value);
        let mut found = Vec::new();
        while let Some(kept) = leaves.advance().expect("memory reads") {
            found.push((kept, leaves.depth()));
        }
        assert_eq!(found, [(0, 2), (1, 2), (0, 2), (1, 2), (1, 4), (2, 3), (0, 1)]);
        assert_eq!(leaves.advance().expect("memory reads"), None);
    }

    #[test]
    fn what_leaves_give_is_put_together_as_it_was() {
        for value in [sample(), Value::map(), Value::list(), "text".into(), Value::Null] {
            let (mut builder, mut rebuild) = (ValueBuilder::default(), Rebuild::default());
            let mut leaves = Leaves::new(&value);
            while let Some(kept) = leaves.advance().expect("memory reads") {
                rebuild.leaf(&leaves, kept, &mut builder).expect("builds");
            }
            rebuild.finish(&mut builder).expect("builds");
            assert_eq!(builder.finish(), Some(value));
        }
    }

    #[test]
    fn parts_are_put_together_one_by_one() {
        let value = sample();
        let mut leaves = Leaves::new(&value);
        let (mut parts, mut rebuild, mut builder) =
            (Vec::new(), Rebuild::below(1), ValueBuilder::default());
        while let Some(kept) = leaves.advance().expect("memory reads") {
            if kept == 0 {
                rebuild.finish(&mut builder).expect("builds");
                parts.extend(std::mem::take(&mut builder).finish());
            }
            rebuild.leaf(&leaves, kept, &mut builder).expect("builds");
        }
        rebuild.finish(&mut builder).expect("builds");
        parts.extend(builder.finish());
        let expected = ["/a", "/e", "/f"].map(|path| value.pointer(path).cloned());
        assert_eq!(parts.into_iter().map(Some).collect::<Vec<_>>(), expected);
    }
}
