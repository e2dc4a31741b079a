//! The members of a map, or edits of them, in memory: a sorted vector while they are few, a tree
//! beyond.
//!
//! Most maps are records of a few members, for which a tree's node is mostly empty.

use std::collections::{BTreeMap, btree_map};
use std::slice;

use crate::key::EncodedKey;

/// With more members a map becomes a tree.
const FEW_MAX: usize = 16;

/// Values by encoded key, in order.
#[derive(Clone)]
pub enum Members<V> {
    /// At most 16.
    Few(Vec<(EncodedKey, V)>),
    /// Any number.
    Many(BTreeMap<EncodedKey, V>),
}

impl<V> Default for Members<V> {
    fn default() -> Members<V> {
        Members::Few(Vec::new())
    }
}

impl<V> Members<V> {
    /// How many there are.
    pub fn len(&self) -> usize {
        match self {
            Members::Few(few) => few.len(),
            Members::Many(many) => many.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value of a key.
    pub fn get(&self, key: &EncodedKey) -> Option<&V> {
        match self {
            Members::Few(few) => find(few, key).ok().map(|at| &few[at].1),
            Members::Many(many) => many.get(key),
        }
    }

    /// The value of a key, to change.
    pub fn get_mut(&mut self, key: &EncodedKey) -> Option<&mut V> {
        match self {
            Members::Few(few) => find(few, key).ok().map(|at| &mut few[at].1),
            Members::Many(many) => many.get_mut(key),
        }
    }

    /// Sets the value of a key and returns the one that it replaces.
    pub fn insert(&mut self, key: EncodedKey, value: V) -> Option<V> {
        match self {
            Members::Few(few) => match find(few, &key) {
                Ok(at) => return Some(std::mem::replace(&mut few[at].1, value)),
                Err(at) if few.len() < FEW_MAX => few.insert(at, (key, value)),
                Err(_) => {
                    let mut many: BTreeMap<_, _> = std::mem::take(few).into_iter().collect();
                    many.insert(key, value);
                    *self = Members::Many(many);
                }
            },
            Members::Many(many) => return many.insert(key, value),
        }
        None
    }

    /// Takes a key out.
    pub fn remove(&mut self, key: &EncodedKey) -> Option<V> {
        match self {
            Members::Few(few) => find(few, key).ok().map(|at| few.remove(at).1),
            Members::Many(many) => many.remove(key),
        }
    }

    /// All of them, in order.
    pub fn iter(&self) -> Iter<'_, V> {
        match self {
            Members::Few(few) => Iter::Few(few.iter()),
            Members::Many(many) => Iter::Many(many.iter()),
        }
    }

    /// Those from a key on, or from where it would be, in order.
    pub fn iter_from(&self, key: &EncodedKey) -> Iter<'_, V> {
        match self {
            Members::Few(few) => {
                let (Ok(at) | Err(at)) = find(few, key);
                Iter::Few(few[at..].iter())
            }
            Members::Many(many) => Iter::Rest(many.range::<EncodedKey, _>(key..)),
        }
    }

    /// All of them, in order.
    pub fn into_vec(self) -> Vec<(EncodedKey, V)> {
        match self {
            Members::Few(few) => few,
            Members::Many(many) => many.into_iter().collect(),
        }
    }

    /// Moves all values behind those of `values`.
    pub fn move_values_to(self, values: &mut Vec<V>) {
        match self {
            Members::Few(few) => values.extend(few.into_iter().map(|(_, value)| value)),
            Members::Many(many) => values.extend(many.into_values()),
        }
    }
}

#[inline]
fn find<V>(few: &[(EncodedKey, V)], key: &EncodedKey) -> Result<usize, usize> {
    // Records are read and made in the order of their keys.
    match few.last() {
        Some((last, _)) if last < key => Err(few.len()),
        _ => few.binary_search_by(|(found, _)| found.cmp(key)),
    }
}

impl<V> FromIterator<(EncodedKey, V)> for Members<V> {
    fn from_iter<I: IntoIterator<Item = (EncodedKey, V)>>(members: I) -> Members<V> {
        let members = members.into_iter();
        match members.size_hint() {
            (_, Some(0..=FEW_MAX)) => {
                let mut few = Members::Few(Vec::with_capacity(members.size_hint().0));
                members.for_each(|(key, value)| drop(few.insert(key, value)));
                few
            }
            _ => Members::Many(members.collect()),
        }
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
    Few(slice::Iter<'m, (EncodedKey, V)>),
    /// Of a tree.
    Many(btree_map::Iter<'m, EncodedKey, V>),
    /// Of a tree, from a key on.
    Rest(btree_map::Range<'m, EncodedKey, V>),
}

impl<V> Clone for Iter<'_, V> {
    fn clone(&self) -> Self {
        match self {
            Iter::Few(few) => Iter::Few(few.clone()),
            Iter::Many(many) => Iter::Many(many.clone()),
            Iter::Rest(rest) => Iter::Rest(rest.clone()),
        }
    }
}

impl<'m, V> Iterator for Iter<'m, V> {
    type Item = (&'m EncodedKey, &'m V);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Iter::Few(few) => few.next().map(|(key, value)| (key, value)),
            Iter::Many(many) => many.next(),
            Iter::Rest(rest) => rest.next(),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        match self {
            Iter::Few(few) => few.size_hint(),
            Iter::Many(many) => many.size_hint(),
            Iter::Rest(rest) => rest.size_hint(),
        }
    }
}

impl<V> DoubleEndedIterator for Iter<'_, V> {
    fn next_back(&mut self) -> Option<Self::Item> {
        match self {
            Iter::Few(few) => few.next_back().map(|(key, value)| (key, value)),
            Iter::Many(many) => many.next_back(),
            Iter::Rest(rest) => rest.next_back(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Value;

    #[test]
    fn few_and_many_are_one_map() {
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
        }
    }
}
