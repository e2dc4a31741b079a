//! Which keys a small map may have, in memory: what tells that a layer has nothing to say without asking
//! the engine (B. H. Bloom, Space/time trade-offs in hash coding with allowable errors, 1970).

use std::hash::{DefaultHasher, Hash, Hasher};

use spinney_core::read::{Children, Node};
use spinney_core::{Key, Result};

/// Maps with more members are not small.
const MEMBERS_MAX: u64 = 4_096;

/// With so many bits a member, one question in 300 is answered with yes in vain.
const BITS_PER_MEMBER: usize = 16;

/// A set of keys that answers no only when that is true.
pub(super) struct Filter {
    words: Vec<u64>,
}

/// The hash of a key, for any filter.
#[derive(Clone, Copy)]
pub(super) struct KeyHash(u64);

impl KeyHash {
    pub fn of(key: Key<'_>) -> KeyHash {
        let mut hasher = DefaultHasher::new();
        key.hash(&mut hasher);
        KeyHash(hasher.finish())
    }

    /// The places of its bits among so many words, a power of two.
    fn bits(self, words: usize) -> impl Iterator<Item = (usize, u64)> {
        let mask = words * 64 - 1;
        let step = (self.0 >> 32) | 1;
        (0..4u64).map(move |n| {
            let bit = self.0.wrapping_add(step.wrapping_mul(n)) as usize & mask;
            (bit / 64, 1 << (bit % 64))
        })
    }
}

impl Filter {
    /// The keys of a map; `None` when it is not small.
    ///
    /// # Errors
    /// `Corrupted` for damage.
    pub fn of<N: Node>(map: &N) -> Result<Option<Filter>> {
        let count = map.count()?;
        if count > MEMBERS_MAX {
            return Ok(None);
        }
        let Some(mut children) = map.children()? else { return Ok(None) };
        let len = (count as usize * BITS_PER_MEMBER / 64).next_power_of_two();
        let mut words = vec![0; len];
        let mut child = map.clone();
        let mut buffer = Vec::new();
        while children.next(&mut child)? {
            let Some(key) = children.key(&mut buffer)? else { return Ok(None) };
            for (word, bit) in KeyHash::of(key).bits(len) {
                words[word] |= bit;
            }
        }
        Ok(Some(Filter { words }))
    }

    /// Whether a key may be among them.
    #[inline]
    pub fn may_have(&self, key: KeyHash) -> bool {
        key.bits(self.words.len()).all(|(word, bit)| self.words[word] & bit != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use spinney_core::{Map, Value};

    #[test]
    fn what_is_there_is_never_denied() -> Result<()> {
        let mut in_vain = 0;
        for count in [0, 1, 7, 100, 4_096] {
            let map: Map = (0..count).map(|n| (format!("k{n}"), n)).collect();
            let filter = Filter::of(&&Value::Map(map))?.expect("it is small");
            let may = |n: i64| filter.may_have(KeyHash::of(Key::new(&format!("k{n}"))));
            assert!((0..count).all(may));
            in_vain += (count..count + 1_000).filter(|n| may(*n)).count();
        }
        assert!(in_vain < 100, "{in_vain} of 5 000 in vain");
        let many: Map = (0..4_097).map(|n| (n.to_string(), n)).collect();
        assert!(Filter::of(&&Value::Map(many))?.is_none());
        Ok(())
    }
}
