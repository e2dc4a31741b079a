//! Keys as `_id`s. Owns an encoding whose order as text is the order of the bytes; BSON compares
//! binary values by their length first.
//!
//! Six bits a character, of an alphabet that ascends in ASCII, so the simple collation, which compares
//! UTF-8 by bytes, orders texts as it would the keys. A version of a key is the key, `!`, which comes
//! before the alphabet, and the state that made it.

use spinney_core::backend::RecordKey;

use crate::network::server::State;

const ALPHABET: &[u8; 64] = b"-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz";

/// Between a key and a state: below every character of the alphabet, so that all versions of a key
/// come before the longer keys that begin with it.
const BEFORE: char = '!';

/// The next character: after all versions of a key and before the next key.
const AFTER: char = '"';

/// The text of a key.
pub fn encode(key: &[u8]) -> String {
    let mut text = String::with_capacity((key.len() * 4).div_ceil(3) + 12);
    for group in key.chunks(3) {
        let mut bits = [0; 4];
        bits[1..=group.len()].copy_from_slice(group);
        let bits = u32::from_be_bytes(bits);
        for digit in 0..=group.len() {
            text.push(ALPHABET[(bits >> (18 - 6 * digit)) as usize & 63] as char);
        }
    }
    text
}

/// The key of a text that [`encode`] made; `None` for any other.
pub fn decode(text: &str) -> Option<RecordKey> {
    let mut key = Vec::with_capacity(text.len() * 3 / 4);
    for group in text.as_bytes().chunks(4) {
        let mut bits = 0;
        for (position, byte) in group.iter().enumerate() {
            let digit = ALPHABET.binary_search(byte).ok()? as u32;
            bits |= digit << (18 - 6 * position);
        }
        let bytes = bits.to_be_bytes();
        let len = group.len() - 1;
        if len == 0 || bytes[1 + len..].iter().any(|&byte| byte != 0) {
            return None;
        }
        key.extend_from_slice(&bytes[1..=len]);
    }
    Some(RecordKey::from(key))
}

/// The `_id` of the version of a key that `state` made.
pub fn version(key: &[u8], state: State) -> String {
    let mut id = before(key);
    id.push_str(&encode(&state.to_be_bytes()));
    id
}

/// Key, as text, and state of a version.
pub fn split_version(id: &str) -> Option<(&str, State)> {
    let (key, state) = id.split_once(BEFORE)?;
    let state = decode(state)?;
    Some((key, State::from_be_bytes(*state.first_chunk()?)))
}

/// What all versions of `key` and of the keys after it are not below.
pub fn before(key: &[u8]) -> String {
    before_encoded(encode(key))
}

/// As [`before`], of a key's text.
pub fn before_encoded(key: impl Into<String>) -> String {
    let mut text = key.into();
    text.push(BEFORE);
    text
}

/// What all versions of `key` and of the keys before it are below.
pub fn after(key: &[u8]) -> String {
    let mut text = encode(key);
    text.push(AFTER);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples() -> Vec<Vec<u8>> {
        let mut random = fastrand::Rng::with_seed(5);
        let mut keys: Vec<Vec<u8>> = Vec::new();
        for _ in 0..2_000 {
            let len = random.usize(0..9);
            // Few values, so that many keys begin alike.
            keys.push(
                (0..len).map(|_| *random.choice(&[0, 1, 63, 64, 127, 128, 255]).unwrap()).collect(),
            );
        }
        keys
    }

    #[test]
    fn what_was_encoded_is_decoded() {
        for key in samples() {
            assert_eq!(decode(&encode(&key)).as_deref(), Some(&*key));
        }
        for text in ["-", "--z", "!", "a b"] {
            assert!(decode(text).is_none(), "{text}");
        }
    }

    #[test]
    fn versions_are_ordered_as_their_keys_and_then_by_state() {
        let keys = samples();
        let states = [0, 1, 255, 256, u64::MAX];
        for pair in keys.windows(2) {
            let (left, right) = (&pair[0], &pair[1]);
            for a in states {
                for b in states {
                    let expected = left.cmp(right).then(a.cmp(&b));
                    assert_eq!(
                        version(left, a).cmp(&version(right, b)),
                        expected,
                        "{left:?} {right:?}"
                    );
                }
                let id = version(left, a);
                assert_eq!(split_version(&id), Some((&*encode(left), a)));
                assert_eq!(before(right) <= id, right <= left);
                assert_eq!(id < after(right), left <= right);
            }
        }
    }

    #[test]
    fn a_key_takes_a_third_more_than_its_bytes() {
        assert_eq!(encode(&[0; 13]).len(), 18);
        assert_eq!(version(&[0; 23], 1).len(), 31 + 1 + 11);
    }
}
