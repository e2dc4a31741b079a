//! A commit's changes as the body of a journal record.
//!
//! Each is `key_len u16 | value_len u32 | key | value`, little-endian; a value length of all ones
//! stands for the absence of a value, and its highest bit for a [`patch`] of the value that the
//! generation has for the key. See `docs/format.md`.

use spinney_core::overlay::{Overlay, Staged, StagedKey};
use spinney_core::{Error, Result};

use super::patch;

const HEAD_LEN: usize = 2 + 4;
const ABSENT: u32 = u32::MAX;
const IS_PATCH: u32 = 1 << 31;

/// Bytes that the changes take in a body, at most.
pub fn encoded_len_max(changes: &[(StagedKey, Staged)]) -> usize {
    let value_len = |staged: &Staged| staged.as_ref().map_or(0, |value| value.len());
    changes.iter().map(|(key, staged)| HEAD_LEN + key.len() + value_len(staged)).sum()
}

/// Leaves of the changes of each key the last one.
pub fn dedup(changes: &mut Vec<(StagedKey, Staged)>) {
    changes.reverse();
    changes.sort_by(|(a, _), (b, _)| a.cmp(b));
    changes.dedup_by(|(a, _), (b, _)| a == b);
}

/// Adds the changes, each of another key, to a body; `before` is what the generation has.
pub fn encode(changes: &[(StagedKey, Staged)], before: &Overlay, body: &mut Vec<u8>) {
    for (key, staged) in changes {
        // `Batch::check_limits` has refused longer keys, and longer batches are not journaled.
        body.extend_from_slice(&(key.len() as u16).to_le_bytes());
        let len_at = body.len();
        body.extend_from_slice(&ABSENT.to_le_bytes());
        body.extend_from_slice(key);
        let Some(value) = staged else { continue };
        let value_at = body.len();
        let known = before.staged(key).and_then(Option::as_deref);
        let flag = match known {
            Some(known) if patch::encode(known, value, body) => IS_PATCH,
            _ => {
                body.extend_from_slice(value);
                0
            }
        };
        let len = (body.len() - value_at) as u32 | flag;
        body[len_at..len_at + 4].copy_from_slice(&len.to_le_bytes());
    }
}

/// What a body says of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coded<'b> {
    Absent,
    Value(&'b [u8]),
    Patch(&'b [u8]),
}

impl Coded<'_> {
    /// What is to be staged where `before` is staged by the generation.
    pub fn over(self, before: Option<&Staged>) -> Result<Staged> {
        match self {
            Coded::Absent => Ok(None),
            Coded::Value(value) => Ok(Some(value.into())),
            Coded::Patch(patch) => {
                let known = before.and_then(Option::as_deref);
                let value = known.and_then(|known| patch::apply(known, patch));
                value.map(|value| Some(value.into())).ok_or_else(damaged)
            }
        }
    }
}

/// Gives each change of a body, in order.
pub fn decode<'b>(
    mut body: &'b [u8],
    mut each: impl FnMut(&'b [u8], Coded<'b>) -> Result<()>,
) -> Result<()> {
    while !body.is_empty() {
        let ((key, coded), rest) = decode_one(body).ok_or_else(damaged)?;
        each(key, coded)?;
        body = rest;
    }
    Ok(())
}

type Change<'b> = (&'b [u8], Coded<'b>);

fn decode_one(body: &[u8]) -> Option<(Change<'_>, &[u8])> {
    let (head, rest) = body.split_at_checked(HEAD_LEN)?;
    let key_len = u16::from_le_bytes([head[0], head[1]]);
    let len = u32::from_le_bytes([head[2], head[3], head[4], head[5]]);
    let (key, rest) = rest.split_at_checked(usize::from(key_len))?;
    if len == ABSENT {
        return Some(((key, Coded::Absent), rest));
    }
    let (bytes, rest) = rest.split_at_checked((len & !IS_PATCH) as usize)?;
    let coded = if len & IS_PATCH == 0 { Coded::Value(bytes) } else { Coded::Patch(bytes) };
    Some(((key, coded), rest))
}

#[cold]
fn damaged() -> Error {
    Error::corrupted("a record of the journal does not hold changes; restore a backup")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_round_trip_and_cut_ones_are_damage() {
        let changes: Vec<(StagedKey, Staged)> = vec![
            ((*b"key").into(), Some((*b"value").into())),
            ((*b"gone").into(), None),
            ((*b"empty").into(), Some((*b"").into())),
        ];
        let mut body = Vec::new();
        encode(&changes, &Overlay::default(), &mut body);
        assert_eq!(read(&body, &Overlay::default()).expect("decodes"), changes);
        let whole = [0, 14, 24, body.len()];
        for len in 0..body.len() {
            let read = read(&body[..len], &Overlay::default());
            assert_eq!(read.is_ok(), whole.contains(&len), "{len}");
        }
    }

    #[test]
    fn what_the_generation_has_is_patched_and_needed_again() {
        let page = |byte: u8| -> Staged {
            Some([vec![7; 2_000], vec![byte], vec![8; 2_000]].concat().into())
        };
        let key: StagedKey = (*b"page").into();
        let mut before = Overlay::default();
        before.stage(key.clone(), page(1));
        let changes = vec![(key.clone(), page(2))];
        let mut body = Vec::new();
        encode(&changes, &before, &mut body);
        assert!(body.len() < 40, "{}", body.len());
        assert_eq!(read(&body, &before).expect("decodes"), changes);
        assert!(read(&body, &Overlay::default()).is_err(), "there is nothing to patch");
        before.stage(key, None);
        assert!(read(&body, &before).is_err(), "it was removed");
    }

    fn read(body: &[u8], before: &Overlay) -> Result<Vec<(StagedKey, Staged)>> {
        let mut read = Vec::new();
        decode(body, |key, coded| {
            read.push((key.into(), coded.over(before.staged(key))?));
            Ok(())
        })?;
        Ok(read)
    }
}
