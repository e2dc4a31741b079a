//! The members of a map, or edits of them, in memory: a sorted vector while they are few or come in order,
//! a tree otherwise.
//!
//! Most maps are records of a few members, for which a tree's node is mostly empty; and many members mostly
//! come in the order of their keys, so that each goes behind the last.

use std::collections::{BTreeMap, btree_map};
use std::slice;

use crate::key::EncodedKey;

/// With more members a map becomes a tree, as soon as one does not go behind the last.
const FEW_MAX: usize = 16;

/// Values by encoded key, in order.
#[derive(Clone)]
pub enum Members<V> {
    /// At most 16, or any number that came in order.
    Vector(Vec<(EncodedKey, V)>),
    /// Any number in any order.
    Tree(BTreeMap<EncodedKey, V>),
}

impl<V> Default for Members<V> {
    fn default() -> Members<V> {
        Members::Vector(Vec::new())
    }
}

impl<V> Members<V> {
    /// How many there are.
    pub fn len(&self) -> usize {
        match self {
            Members::Vector(vector) => vector.len(),
            Members::Tree(tree) => tree.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value of a key.
    pub fn get(&self, key: &EncodedKey) -> Option<&V> {
        match self {
            Members::Vector(vector) => find(vector, key).ok().map(|at| &vector[at].1),
            Members::Tree(tree) => tree.get(key),
        }
    }

    /// The value of a key, to change.
    pub fn get_mut(&mut self, key: &EncodedKey) -> Option<&mut V> {
        match self {
            Members::Vector(vector) => find(vector, key).ok().map(|at| &mut vector[at].1),
            Members::Tree(tree) => tree.get_mut(key),
        }
    }

    /// Sets the value of a key and returns the one that it replaces.
    pub fn insert(&mut self, key: EncodedKey, value: V) -> Option<V> {
        match self {
            Members::Vector(vector) => match find(vector, &key) {
                Ok(at) => Some(std::mem::replace(&mut vector[at].1, value)),
                Err(at) if at == vector.len() || vector.len() < FEW_MAX => {
                    vector.insert(at, (key, value));
                    None
                }
                Err(_) => self.grown().insert(key, value),
            },
            Members::Tree(tree) => tree.insert(key, value),
        }
    }

    /// Takes a key out.
    pub fn remove(&mut self, key: &EncodedKey) -> Option<V> {
        match self {
            Members::Vector(vector) => match find(vector, key) {
                Ok(at) if at + 1 == vector.len() || vector.len() <= FEW_MAX => {
                    Some(vector.remove(at).1)
                }
                Ok(_) => self.grown().remove(key),
                Err(_) => None,
            },
            Members::Tree(tree) => tree.remove(key),
        }
    }

    /// The tree that it becomes.
    fn grown(&mut self) -> &mut BTreeMap<EncodedKey, V> {
        if let Members::Vector(vector) = self {
            *self = Members::Tree(std::mem::take(vector).into_iter().collect());
        }
        match self {
            Members::Tree(tree) => tree,
            Members::Vector(_) => unreachable!("it became a tree"),
        }
    }

    /// All of them, in order.
    pub fn iter(&self) -> Iter<'_, V> {
        match self {
            Members::Vector(vector) => Iter::Vector(vector.iter()),
            Members::Tree(tree) => Iter::Tree(tree.iter()),
        }
    }

    /// Those from a key on, or from where it would be, in order.
    pub fn iter_from(&self, key: &EncodedKey) -> Iter<'_, V> {
        match self {
            Members::Vector(vector) => {
                let (Ok(at) | Err(at)) = find(vector, key);
                Iter::Vector(vector[at..].iter())
            }
            Members::Tree(tree) => Iter::Rest(tree.range::<EncodedKey, _>(key..)),
        }
    }

    /// All of them, in order.
    pub fn into_vec(self) -> Vec<(EncodedKey, V)> {
        match self {
            Members::Vector(vector) => vector,
            Members::Tree(tree) => tree.into_iter().collect(),
        }
    }

    /// Moves all values behind those of `values`.
    pub fn move_values_to(self, values: &mut Vec<V>) {
        match self {
            Members::Vector(vector) => values.extend(vector.into_iter().map(|(_, value)| value)),
            Members::Tree(tree) => values.extend(tree.into_values()),
        }
    }
}

#[inline]
fn find<V>(vector: &[(EncodedKey, V)], key: &EncodedKey) -> Result<usize, usize> {
    // Records are read and made in the order of their keys.
    match vector.last() {
        Some((last, _)) if last < key => Err(vector.len()),
        _ => vector.binary_search_by(|(found, _)| found.cmp(key)),
    }
}

impl<V> FromIterator<(EncodedKey, V)> for Members<V> {
    fn from_iter<I: IntoIterator<Item = (EncodedKey, V)>>(members: I) -> Members<V> {
        let members: Vec<_> = members.into_iter().collect();
        if members.is_sorted_by(|(one, _), (next, _)| one < next) {
            return Members::Vector(members);
        }
        if members.len() > FEW_MAX {
            return Members::Tree(members.into_iter().collect());
        }
        let mut few = Members::Vector(Vec::with_capacity(members.len()));
        members.into_iter().for_each(|(key, value)| drop(few.insert(key, value)));
        few
    }
}

impl<V: PartialEq> PartialEq for Members<V> {
    fn eq(&self, other: &Members<V>) -> bool {
        self.len() == other.len() && self.iter().eq(other.iter())
    }
}

impl<V: Eq> Eq for Members<V> {}

/// Runs over members in order.
pub enum Iter<'m, V> {
    /// Of a vector.
    Vector(slice::Iter<'m, (EncodedKey, V)>),
    /// Of a tree.
    Tree(btree_map::Iter<'m, EncodedKey, V>),
    /// Of a tree, from a key on.
    Rest(btree_map::Range<'m, EncodedKey, V>),
}

impl<V> Clone for Iter<'_, V> {
    fn clone(&self) -> Self {
        match self {
            Iter::Vector(vector) => Iter::Vector(vector.clone()),
            Iter::Tree(tree) => Iter::Tree(tree.clone()),
            Iter::Rest(rest) => Iter::Rest(rest.clone()),
        }
    }
}

impl<'m, V> Iterator for Iter<'m, V> {
    type Item = (&'m EncodedKey, &'m V);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Iter::Vector(vector) => vector.next().map(|(key, value)| (key, value)),
            Iter::Tree(tree) => tree.next(),
            Iter::Rest(rest) => rest.next(),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        match self {
            Iter::Vector(vector) => vector.size_hint(),
            Iter::Tree(tree) => tree.size_hint(),
            Iter::Rest(rest) => rest.size_hint(),
        }
    }
}

impl<V> DoubleEndedIterator for Iter<'_, V> {
    fn next_back(&mut self) -> Option<Self::Item> {
        match self {
            Iter::Vector(vector) => vector.next_back().map(|(key, value)| (key, value)),
            Iter::Tree(tree) => tree.next_back(),
            Iter::Rest(rest) => rest.next_back(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Value;

    #[test]
    fn vectors_and_trees_are_one_map() {
        let mut random = fastrand::Rng::with_seed(3);
        let mut model = BTreeMap::new();
        let mut members = Members::default();
        for round in 0..2_000_u32 {
            // The number of keys rises and falls, so that both forms are met.
            let key = EncodedKey::from([random.u8(..if round % 500 < 250 { 12 } else { 60 })]);
            match random.u8(..3) {
                0 => assert_eq!(members.remove(&key), model.remove(&key)),
                _ => {
                    let value = Value::from(i64::from(round));
                    assert_eq!(
                        members.insert(key.clone(), value.clone()),
                        model.insert(key.clone(), value)
                    );
                }
            }
            assert_eq!(members.get(&key), model.get(&key));
            assert_eq!(members.len(), model.len());
            assert!(members.iter().eq(model.iter()));
            let from = model.range::<EncodedKey, _>(&key..);
            assert!(members.iter_from(&key).eq(from));
            assert!(members.iter().rev().eq(model.iter().rev()));
            let again: Members<Value> = model.clone().into_iter().collect();
            assert!(again == members);
            let backwards: Members<Value> = model.clone().into_iter().rev().collect();
            assert!(backwards == members);
        }
    }

    #[test]
    fn many_in_order_are_a_vector_until_one_is_not() {
        let key = |number: u32| EncodedKey::from(number.to_be_bytes());
        let mut members = Members::default();
        for number in (0..1_000).map(|number| number * 2) {
            assert_eq!(members.insert(key(number), number), None);
        }
        assert!(matches!(&members, Members::Vector(vector) if vector.len() == 1_000));
        assert_eq!(members.insert(key(500), 1), Some(500));
        assert_eq!(members.remove(&key(1_998)), Some(1_998));
        assert_eq!(members.remove(&key(1_999)), None);
        assert!(matches!(&members, Members::Vector(vector) if vector.len() == 999));
        assert_eq!(members.clone().insert(key(501), 501), None);
        let mut less = members.clone();
        assert_eq!(less.remove(&key(500)), Some(1));
        assert!(matches!(&less, Members::Tree(tree) if tree.len() == 998));
        members.insert(key(501), 501);
        assert!(matches!(&members, Members::Tree(tree) if tree.len() == 1_000));
        assert!(members.iter().is_sorted_by_key(|(key, _)| key));
    }
}
