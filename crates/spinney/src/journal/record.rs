//! One record of a segment: its header, its body and its checksum.
//!
//! It must not know of files, nor of what a body means. All numbers are little-endian.

use twox_hash::XxHash3_64;

/// The first bytes of every record.
const MAGIC: [u8; 4] = *b"spj1";

/// Bytes before the body.
pub const HEADER_LEN: usize = 64;

/// Bytes after the padded body.
const CHECKSUM_LEN: usize = 8;

/// Records begin at multiples of it.
pub const ALIGNMENT: usize = 8;

/// Capacities of segments are multiples of it.
pub const CAPACITY_UNIT: u64 = 4_096;

/// Marks the record that starts a generation; its body is the journal's own.
pub const START: u32 = 1;

/// What a record carries for its owner.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Entry<'b> {
    /// The revision that the commit makes, or the one it leaves as it is.
    pub revision: u64,
    /// Names the commit. No two have the same, so that no two records have the same checksum, and a
    /// record that a crash took back is not taken for the next one's predecessor.
    pub commit_id: u128,
    /// What the owner needs to make the commit again.
    pub body: &'b [u8],
}

/// Where a record stands among the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The segment's generation.
    pub generation: u64,
    /// Where the record begins in the segment.
    pub offset: u64,
    /// The checksum of the record before it.
    pub previous: u64,
    /// Below this offset of the segment everything was synced when the record was written.
    pub synced: u64,
    /// Bytes of the segment's file, synced before the record was written.
    pub capacity: u64,
}

/// A record as it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'b> {
    pub entry: Entry<'b>,
    pub place: Place,
    pub is_start: bool,
    pub checksum: u64,
    /// Bytes from this record to the next.
    pub len: usize,
}

/// Bytes that a record takes.
pub fn record_len(body_len: usize) -> usize {
    HEADER_LEN + body_len.next_multiple_of(ALIGNMENT) + CHECKSUM_LEN
}

/// Adds a record to `bytes` and returns its checksum.
pub fn encode(place: &Place, flags: u32, entry: &Entry<'_>, bytes: &mut Vec<u8>) -> u64 {
    let begin = bytes.len();
    bytes.reserve(record_len(entry.body.len()));
    bytes.extend_from_slice(&MAGIC);
    // `Journal::append` refuses longer bodies.
    bytes.extend_from_slice(&(entry.body.len() as u32).to_le_bytes());
    bytes.extend_from_slice(&place.generation.to_le_bytes());
    bytes.extend_from_slice(&entry.revision.to_le_bytes());
    bytes.extend_from_slice(&entry.commit_id.to_le_bytes());
    bytes.extend_from_slice(&place.previous.to_le_bytes());
    bytes.extend_from_slice(&place.synced.to_le_bytes());
    bytes.extend_from_slice(&flags.to_le_bytes());
    bytes.extend_from_slice(&((place.capacity / CAPACITY_UNIT) as u32).to_le_bytes());
    bytes.extend_from_slice(entry.body);
    bytes.resize(bytes.len().next_multiple_of(ALIGNMENT), 0);
    let checksum = checksum(place.offset, &bytes[begin..]);
    bytes.extend_from_slice(&checksum.to_le_bytes());
    checksum
}

/// Reads the record at the beginning of `bytes`, which lie at `offset` of a segment of
/// `generation`; `None` when there is no whole record of it.
pub fn decode(bytes: &[u8], generation: u64, offset: u64) -> Option<Record<'_>> {
    if !is_header(bytes, generation) {
        return None;
    }
    let body_len = u32_at(bytes, 4) as usize;
    let len = record_len(body_len);
    let (sealed, stored) = bytes.get(..len)?.split_at(len - CHECKSUM_LEN);
    let checksum = checksum(offset, sealed);
    if checksum != u64_at(stored, 0) {
        return None;
    }
    let commit_id = u128::from(u64_at(bytes, 24)) | u128::from(u64_at(bytes, 32)) << 64;
    Some(Record {
        entry: Entry {
            revision: u64_at(bytes, 16),
            commit_id,
            body: &sealed[HEADER_LEN..HEADER_LEN + body_len],
        },
        place: Place {
            generation,
            offset,
            previous: u64_at(bytes, 40),
            synced: synced(bytes),
            capacity: u64::from(u32_at(bytes, 60)) * CAPACITY_UNIT,
        },
        is_start: u32_at(bytes, 56) & START != 0,
        checksum,
        len,
    })
}

/// Whether the bytes begin as a record of the generation does.
pub fn is_header(bytes: &[u8], generation: u64) -> bool {
    bytes.len() >= HEADER_LEN && bytes[..4] == MAGIC && u64_at(bytes, 8) == generation
}

/// The generation that a header names, of whatever record it is.
pub fn generation(bytes: &[u8]) -> Option<u64> {
    (bytes.len() >= HEADER_LEN && bytes[..4] == MAGIC).then(|| u64_at(bytes, 8))
}

/// The offset known to be synced, from a header.
pub fn synced(header: &[u8]) -> u64 {
    u64_at(header, 48)
}

/// Covers the place, so that a record found anywhere else is none.
fn checksum(offset: u64, sealed: &[u8]) -> u64 {
    XxHash3_64::oneshot(sealed) ^ XxHash3_64::oneshot(&offset.to_le_bytes())
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes"))
}

pub fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_round_trip_and_every_changed_byte_shows() {
        let place =
            Place { generation: 7, offset: 24, previous: 99, synced: 16, capacity: 3 * 4_096 };
        for body_len in [0, 1, 8, 100] {
            let body = vec![0xAB; body_len];
            let entry = Entry { revision: 5, commit_id: 1 << 100 | 3, body: &body };
            let mut bytes = Vec::new();
            let checksum = encode(&place, 0, &entry, &mut bytes);
            assert_eq!(bytes.len(), record_len(body_len));
            let record = decode(&bytes, 7, 24).expect("a record");
            assert_eq!((record.entry, record.place), (entry, place));
            assert_eq!((record.checksum, record.len), (checksum, bytes.len()));
            assert_eq!(decode(&bytes, 8, 24), None);
            assert_eq!(decode(&bytes, 7, 32), None);
            for at in 0..bytes.len() {
                assert_eq!(decode(&bytes[..at], 7, 24), None);
                bytes[at] ^= 1 << (at % 8);
                assert_eq!(decode(&bytes, 7, 24), None, "byte {at}");
                bytes[at] ^= 1 << (at % 8);
            }
        }
    }
}
