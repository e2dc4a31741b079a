//! A commit's changes as the body of a journal record.
//!
//! Each is `key_len u16 | value_len u32 | key | value`, little-endian; a value length of all ones
//! stands for the absence of a value, and its highest bit for a [`byte_diff`]. See `docs/format.md`.

use std::sync::Arc;

use spinney_core::backend::RecordKey;
use spinney_core::overlay::Staged;
use spinney_core::{Error, Result};

use spinney_core::byte_diff;

const HEAD_LEN: usize = 2 + 4;
const ABSENT: u32 = u32::MAX;
const PATCH: u32 = 1 << 31;

/// A change that is not in the journal.
pub struct Due {
    pub key: RecordKey,
    pub staged: Staged,
    /// The value that the journal's present generation has for the key.
    pub base: Option<Arc<[u8]>>,
}

/// A value as a body has it.
pub enum Encoded<'b> {
    Absent,
    Whole(&'b [u8]),
    /// A patch of the value before.
    Patch(&'b [u8]),
}

/// Bytes that the changes take in a body, at most.
pub fn encoded_len(changes: &[(RecordKey, Staged)]) -> usize {
    let value_len = |staged: &Staged| staged.as_ref().map_or(0, |value| value.len());
    changes.iter().map(|(key, staged)| HEAD_LEN + key.len() + value_len(staged)).sum()
}

/// Leaves of the changes of each key the last one, over the base of the first one.
pub fn dedup(changes: &mut Vec<Due>) {
    changes.reverse();
    changes.sort_by(|a, b| a.key.cmp(&b.key));
    changes.dedup_by(|earlier, last| {
        let is_same = earlier.key == last.key;
        if is_same {
            last.base = earlier.base.take();
        }
        is_same
    });
}

/// Adds the changes to a body.
pub fn encode(changes: &[Due], body: &mut Vec<u8>) {
    for Due { key, staged, base } in changes {
        // `Batch::check_limits` has refused longer keys, and longer batches are not journaled.
        body.extend_from_slice(&(key.len() as u16).to_le_bytes());
        let len_at = body.len();
        body.extend_from_slice(&[0; 4]);
        body.extend_from_slice(key);
        let value_at = body.len();
        let is_patch = match (base, staged) {
            (Some(base), Some(value)) => byte_diff::encode(base, value, body),
            _ => false,
        };
        if !is_patch {
            body.extend_from_slice(staged.as_deref().unwrap_or_default());
        }
        let len = (body.len() - value_at) as u32;
        let value_len = match staged {
            None => ABSENT,
            Some(_) if is_patch => len | PATCH,
            Some(_) => len,
        };
        body[len_at..len_at + 4].copy_from_slice(&value_len.to_le_bytes());
    }
}

/// Gives each change of a body, in order.
pub fn decode(
    mut body: &[u8],
    mut take: impl FnMut(&[u8], Encoded<'_>) -> Result<()>,
) -> Result<()> {
    while !body.is_empty() {
        let (change, rest) = decode_one(body).ok_or_else(damaged)?;
        take(change.0, change.1)?;
        body = rest;
    }
    Ok(())
}

#[cold]
pub fn damaged() -> Error {
    Error::corrupted("a record of the journal does not hold changes; restore a backup")
}

type Change<'b> = (&'b [u8], Encoded<'b>);

fn decode_one(body: &[u8]) -> Option<(Change<'_>, &[u8])> {
    let (head, rest) = body.split_at_checked(HEAD_LEN)?;
    let key_len = u16::from_le_bytes([head[0], head[1]]);
    let value_len = u32::from_le_bytes([head[2], head[3], head[4], head[5]]);
    let (key, rest) = rest.split_at_checked(usize::from(key_len))?;
    if value_len == ABSENT {
        return Some(((key, Encoded::Absent), rest));
    }
    let (value, rest) = rest.split_at_checked((value_len & !PATCH) as usize)?;
    let is_patch = value_len & PATCH != 0;
    let encoded = if is_patch { Encoded::Patch(value) } else { Encoded::Whole(value) };
    Some(((key, encoded), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn due(key: &[u8], staged: Option<&[u8]>, base: Option<&[u8]>) -> Due {
        Due { key: key.into(), staged: staged.map(Into::into), base: base.map(Into::into) }
    }

    #[test]
    fn changes_round_trip_and_cut_ones_are_damage() {
        let (base, value) = ([7; 100], [&[7; 50][..], &[8], &[7; 49]].concat());
        let changes = [
            due(b"key", Some(b"value"), None),
            due(b"gone", None, Some(b"value")),
            due(b"empty", Some(b""), Some(b"full")),
            due(b"page", Some(&value), Some(&base)),
        ];
        let (mut body, mut ends) = (Vec::new(), vec![0]);
        for change in &changes {
            encode(std::slice::from_ref(change), &mut body);
            ends.push(body.len());
        }
        let read = |body: &[u8]| {
            let mut read = Vec::new();
            let taken = decode(body, |key, encoded| {
                let value = match encoded {
                    Encoded::Absent => None,
                    Encoded::Whole(value) => Some(value.to_vec()),
                    Encoded::Patch(patch) => {
                        Some(byte_diff::apply(&base, patch).ok_or_else(damaged)?)
                    }
                };
                read.push((key.to_vec(), value));
                Ok(())
            });
            taken.map(|()| read)
        };
        let staged =
            |change: &Due| (change.key.to_vec(), change.staged.as_ref().map(|v| v.to_vec()));
        assert_eq!(read(&body).expect("decodes"), changes.iter().map(staged).collect::<Vec<_>>());
        assert!(ends[4] - ends[3] < 40, "the page is a patch");
        for len in 0..body.len() {
            assert_eq!(read(&body[..len]).is_ok(), ends.contains(&len), "{len}");
        }
    }

    #[test]
    fn the_last_value_stands_over_what_the_journal_has() {
        let mut changes = vec![
            due(b"b", Some(b"1"), Some(b"0")),
            due(b"a", Some(b"1"), None),
            due(b"b", None, Some(b"1")),
            due(b"b", Some(b"2"), None),
            due(b"a", Some(b"2"), Some(b"1")),
        ];
        dedup(&mut changes);
        let first = |value: &Option<Arc<[u8]>>| value.as_ref().map(|value| value[0]);
        let left: Vec<_> =
            changes.iter().map(|due| (due.key[0], first(&due.staged), first(&due.base))).collect();
        assert_eq!(left, [(b'a', Some(b'2'), None), (b'b', Some(b'2'), Some(b'0'))]);
    }
}
