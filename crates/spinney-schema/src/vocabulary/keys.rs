//! The bytes of index keys: `constraint u32 | piece...`, each piece a value, or values, or a path.
//!
//! A piece is `len u8 | bytes` or, where the bytes are many, `255 | SHA-256`.

use sha2::{Digest, Sha256};

use super::{ConstraintId, Rule};
use crate::decimal::Decimal;
use crate::instance::Leaf;

/// Bytes of a value or path that an index key holds as they are; longer ones by their SHA-256, so
/// that keys fit every engine.
const EXACT_LEN_MAX: usize = 64;

/// Bytes of a SHA-256.
const HASH_LEN: usize = 32;

/// What stands for the length of a piece that is a SHA-256.
const HASHED: u8 = u8::MAX;

/// Whether a key tells the value as it is.
pub fn is_text(leaf: &Leaf<'_>) -> bool {
    matches!(leaf, Leaf::String(_))
}

/// Empties a buffer for a key of a constraint.
pub fn begin_key(key: &mut Vec<u8>, id: ConstraintId) -> &mut Vec<u8> {
    let id = u32::try_from(id).expect("a schema has fewer keywords");
    key.clear();
    key.extend_from_slice(&id.to_be_bytes());
    key
}

/// The constraint of an index key.
pub fn constraint_of(key: &[u8]) -> ConstraintId {
    let id = key.first_chunk().expect("keys begin with the constraint");
    u32::from_be_bytes(*id) as ConstraintId
}

/// The value of an index key that consists of texts, none of which is hashed.
pub fn texts<'k>(key: &'k [u8], rule: &Rule) -> Vec<&'k str> {
    let (mut pieces, mut texts) = (&key[size_of::<u32>()..], Vec::new());
    if let Rule::Unique(_) = rule {
        // Before the fields is their container.
        take_piece(&mut pieces);
        pieces = take_piece(&mut pieces);
    }
    while !pieces.is_empty() {
        let text = str::from_utf8(&take_piece(&mut pieces)[1..]);
        texts.push(text.expect("it was a text"));
    }
    texts
}

/// Bytes that equal values share and no others do.
pub fn write_leaf(leaf: &Leaf<'_>, out: &mut Vec<u8>) {
    match leaf {
        Leaf::Null => out.push(b'z'),
        Leaf::Bool(value) => out.push(if *value { b't' } else { b'f' }),
        Leaf::Number(num) => {
            out.push(b'n');
            Decimal::new(num).write(out);
        }
        Leaf::String(text) => {
            out.push(b's');
            out.extend_from_slice(text.as_bytes());
        }
        Leaf::Bytes(bytes) => {
            out.push(b'b');
            out.extend_from_slice(bytes);
        }
    }
}

/// Adds what `write` adds, behind its length; or its SHA-256, behind a byte that is no length, and then
/// is false.
pub fn write_piece(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) -> bool {
    let len_at = out.len();
    out.push(HASHED);
    write(out);
    let start = len_at + 1;
    let is_exact = out.len() - start <= EXACT_LEN_MAX;
    match is_exact {
        true => out[len_at] = (out.len() - start) as u8,
        false => {
            let hash = Sha256::digest(&out[start..]);
            out.truncate(start);
            out.extend_from_slice(&hash);
        }
    }
    is_exact
}

/// Takes the first piece off.
fn take_piece<'k>(pieces: &mut &'k [u8]) -> &'k [u8] {
    let len = if pieces[0] == HASHED { HASH_LEN } else { usize::from(pieces[0]) };
    let (piece, rest) = pieces[1..].split_at(len);
    *pieces = rest;
    piece
}
