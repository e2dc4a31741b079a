//! A commit's changes as the body of a journal record.
//!
//! Each is `key_len u16 | value_len u32 | key | value`, little-endian; a value length of all ones
//! stands for the absence of a value. See `docs/format.md`.

use spinney_core::backend::RecordKey;
use spinney_core::overlay::Staged;
use spinney_core::{Error, Result};

const HEAD_LEN: usize = 2 + 4;
const ABSENT: u32 = u32::MAX;

/// Bytes that the changes take in a body.
pub fn encoded_len(changes: &[(RecordKey, Staged)]) -> usize {
    let value_len = |staged: &Staged| staged.as_ref().map_or(0, |value| value.len());
    changes.iter().map(|(key, staged)| HEAD_LEN + key.len() + value_len(staged)).sum()
}

/// Leaves of the changes of each key the last one.
pub fn dedup(changes: &mut Vec<(RecordKey, Staged)>) {
    changes.reverse();
    changes.sort_by(|(a, _), (b, _)| a.cmp(b));
    changes.dedup_by(|(a, _), (b, _)| a == b);
}

/// Adds the changes to a body.
pub fn encode(changes: &[(RecordKey, Staged)], body: &mut Vec<u8>) {
    for (key, staged) in changes {
        let value = staged.as_deref();
        // `Batch::check_limits` has refused longer keys, and longer batches are not journaled.
        body.extend_from_slice(&(key.len() as u16).to_le_bytes());
        body.extend_from_slice(&value.map_or(ABSENT, |value| value.len() as u32).to_le_bytes());
        body.extend_from_slice(key);
        body.extend_from_slice(value.unwrap_or_default());
    }
}

/// Gives each change of a body, in order.
pub fn decode(mut body: &[u8], mut stage: impl FnMut(RecordKey, Staged)) -> Result<()> {
    while !body.is_empty() {
        let (change, rest) = decode_one(body).ok_or_else(|| {
            Error::corrupted("a record of the journal does not hold changes; restore a backup")
        })?;
        stage(change.0.into(), change.1.map(Into::into));
        body = rest;
    }
    Ok(())
}

type Change<'b> = (&'b [u8], Option<&'b [u8]>);

fn decode_one(body: &[u8]) -> Option<(Change<'_>, &[u8])> {
    let (head, rest) = body.split_at_checked(HEAD_LEN)?;
    let key_len = u16::from_le_bytes([head[0], head[1]]);
    let value_len = u32::from_le_bytes([head[2], head[3], head[4], head[5]]);
    let (key, rest) = rest.split_at_checked(usize::from(key_len))?;
    if value_len == ABSENT {
        return Some(((key, None), rest));
    }
    let (value, rest) = rest.split_at_checked(value_len as usize)?;
    Some(((key, Some(value)), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_round_trip_and_cut_ones_are_damage() {
        let changes: Vec<(RecordKey, Staged)> = vec![
            ((*b"key").into(), Some((*b"value").into())),
            ((*b"gone").into(), None),
            ((*b"empty").into(), Some((*b"").into())),
        ];
        let mut body = Vec::new();
        encode(&changes, &mut body);
        let read = |body: &[u8]| {
            let mut read = Vec::new();
            decode(body, |key, staged| read.push((key, staged))).map(|()| read)
        };
        assert_eq!(read(&body).expect("decodes"), changes);
        let whole = [0, 14, 24, body.len()];
        for len in 0..body.len() {
            assert_eq!(read(&body[..len]).is_ok(), whole.contains(&len), "{len}");
        }
    }
}
