//! What stands in the journal: diffs, and which contents the file has had.
//!
//! A body is a byte for its kind and what belongs to it; `docs/format.md` has the details.

use spinney_core::{Error, Result};
use twox_hash::XxHash3_64;

/// The diff of a commit.
const DIFF: u8 = 0;

/// A content that the file is about to get.
const ANNOUNCED: u8 = 1;

/// A content that the file has.
const REPLACED: u8 = 2;

/// Bytes of a content before its side file.
const CONTENT_LEN: usize = 24;

/// A content of the file, and the revision that it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Content {
    pub len: u64,
    /// XXH3-64 of all bytes.
    pub hash: u64,
    pub revision: u64,
    /// The text of the side file that belongs to it; empty for none.
    pub side: Vec<u8>,
}

/// A record of the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note<'b> {
    Diff(&'b [u8]),
    Announced(Content),
    Replaced(Content),
}

impl Content {
    pub fn new(bytes: &[u8], side: Vec<u8>, revision: u64) -> Content {
        Content { len: bytes.len() as u64, hash: XxHash3_64::oneshot(bytes), revision, side }
    }

    /// Whether a file holds the same bytes, whatever the revision.
    pub fn is_same(&self, other: &Content) -> bool {
        (self.len, self.hash) == (other.len, other.hash)
    }

    pub fn encode(&self) -> Vec<u8> {
        let numbers = [self.len, self.hash, self.revision];
        let mut out: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        out.extend_from_slice(&self.side);
        out
    }

    pub fn decode(bytes: &[u8]) -> Result<Content> {
        let (numbers, side) = bytes
            .split_at_checked(CONTENT_LEN)
            .ok_or_else(|| Error::corrupted("a note in the journal does not read"))?;
        let number = |at: usize| {
            u64::from_le_bytes(numbers[8 * at..8 * at + 8].try_into().expect("8 bytes"))
        };
        Ok(Content { len: number(0), hash: number(1), revision: number(2), side: side.to_vec() })
    }
}

/// The note of a generation's start: the newest revision, and what the file holds.
pub fn encode_start(revision: u64, content: &Content) -> Vec<u8> {
    [&revision.to_le_bytes()[..], &content.encode()].concat()
}

/// Reads the note of a generation's start.
pub fn decode_start(note: &[u8]) -> Result<(u64, Content)> {
    let (revision, content) = note
        .split_first_chunk()
        .ok_or_else(|| Error::corrupted("the start of the journal does not read"))?;
    Ok((u64::from_le_bytes(*revision), Content::decode(content)?))
}

impl Note<'_> {
    pub fn encode_into(&self, out: &mut Vec<u8>) {
        match self {
            Note::Diff(diff) => {
                out.push(DIFF);
                out.extend_from_slice(diff);
            }
            Note::Announced(content) => {
                out.push(ANNOUNCED);
                out.extend_from_slice(&content.encode());
            }
            Note::Replaced(content) => {
                out.push(REPLACED);
                out.extend_from_slice(&content.encode());
            }
        }
    }

    pub fn decode(body: &[u8]) -> Result<Note<'_>> {
        match body.split_first() {
            Some((&DIFF, diff)) => Ok(Note::Diff(diff)),
            Some((&ANNOUNCED, rest)) => Ok(Note::Announced(Content::decode(rest)?)),
            Some((&REPLACED, rest)) => Ok(Note::Replaced(Content::decode(rest)?)),
            _ => Err(Error::unsupported(
                "the journal has a note of a newer spinney; open it with that one",
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_round_trip() {
        let content = Content::new(b"{}", b"side".to_vec(), 7);
        let notes = [Note::Diff(b"abc"), Note::Announced(content.clone()), Note::Replaced(content)];
        for note in notes {
            let mut body = Vec::new();
            note.encode_into(&mut body);
            assert_eq!(Note::decode(&body).expect("reads"), note);
        }
        assert!(Note::decode(&[1, 2]).is_err() && Note::decode(&[]).is_err());
    }
}
