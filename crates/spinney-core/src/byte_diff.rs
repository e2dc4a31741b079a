//! A value as its differences from the value before, which is most often the same page with one entry
//! changed.
//!
//! `len | (copy_from | copy_len | literal_len | literal)*`, numbers as varints: each part takes some
//! bytes of the old value and then some of its own. It must not know what values mean.

use crate::page::common_prefix_len;
use crate::varint;

/// Shorter equal runs are not worth three numbers.
const COPY_LEN_MIN: usize = 8;

/// Adds what makes `new` of `old` to `out`; leaves `out` as it is and returns false when that would
/// take more than half of `new`.
pub fn encode(old: &[u8], new: &[u8], out: &mut Vec<u8>) -> bool {
    let begin = out.len();
    let len_max = begin + new.len() / 2;
    let is_short = write_parts(old, new, len_max, out) && out.len() <= len_max;
    if !is_short {
        out.truncate(begin);
    }
    is_short
}

/// Gives up when `out` gets longer than `len_max`.
fn write_parts(old: &[u8], new: &[u8], len_max: usize, out: &mut Vec<u8>) -> bool {
    varint::write(new.len() as u64, out);
    // What lies behind a change has moved by as much as the value has grown.
    let grown = new.len() as isize - old.len() as isize;
    let (mut copy_from, mut copy_len, mut literal_at, mut at) = (0, 0, 0, 0);
    while at < new.len() {
        let in_place = look(old, new, at, at as isize);
        let moved =
            |here: usize| look(old, new, at, at as isize - grown).map_err(|there| here.min(there));
        match in_place.or_else(moved) {
            Ok(from) => {
                write_part(copy_from, copy_len, &new[literal_at..at], out);
                (copy_from, copy_len) = (from, common_prefix_len(&old[from..], &new[at..]));
                at += copy_len;
                literal_at = at;
            }
            Err(nearest) => at = nearest.min(new.len()),
        }
        if out.len() + at - literal_at > len_max {
            return false;
        }
    }
    write_part(copy_from, copy_len, &new[literal_at..], out);
    true
}

fn write_part(copy_from: usize, copy_len: usize, literal: &[u8], out: &mut Vec<u8>) {
    if copy_len + literal.len() > 0 {
        varint::write(copy_from as u64, out);
        varint::write(copy_len as u64, out);
        varint::write_bytes(literal, out);
    }
}

/// Compares what is at `at` in the new value with what is at `from` in the old one, where negative places
/// are before its beginning. Answers `from` when enough is equal to be worth a part, else the first place of
/// the new value where that may be so.
fn look(old: &[u8], new: &[u8], at: usize, from: isize) -> Result<usize, usize> {
    let from = usize::try_from(from).map_err(|_| at + from.unsigned_abs())?;
    let eight = |bytes: &[u8], at: usize| {
        bytes.get(at..)?.first_chunk::<COPY_LEN_MIN>().map(|bytes| u64::from_le_bytes(*bytes))
    };
    let (Some(a), Some(b)) = (eight(old, from), eight(new, at)) else { return Err(usize::MAX) };
    // Whatever begins before the last differing byte has it.
    match COPY_LEN_MIN - (a ^ b).leading_zeros() as usize / 8 {
        0 => Ok(from),
        differing => Err(at + differing),
    }
}

/// Makes the new value of the old one; `None` when the patch is damaged or not of this value.
pub fn apply(old: &[u8], patch: &[u8]) -> Option<Vec<u8>> {
    let mut at = 0;
    let len = usize::try_from(varint::read(patch, &mut at)?).ok()?;
    let mut new = Vec::with_capacity(len.min(old.len() + patch.len()));
    while at < patch.len() {
        let from = usize::try_from(varint::read(patch, &mut at)?).ok()?;
        let copy_len = usize::try_from(varint::read(patch, &mut at)?).ok()?;
        if copy_len > len - new.len() {
            return None;
        }
        new.extend_from_slice(old.get(from..from.checked_add(copy_len)?)?);
        let literal = varint::read_bytes(patch, &mut at)?;
        if literal.len() > len - new.len() {
            return None;
        }
        new.extend_from_slice(literal);
    }
    (new.len() == len).then_some(new)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn random(random: &mut fastrand::Rng, len: usize) -> Vec<u8> {
        std::iter::repeat_with(|| random.u8(..)).take(len).collect()
    }

    #[test]
    fn patches_of_edited_values_are_short_and_make_them_again() {
        let mut rng = fastrand::Rng::with_seed(1);
        for _ in 0..2_000 {
            let len = rng.usize(500..4_000);
            let old = random(&mut rng, len);
            let mut new = old.clone();
            for _ in 0..rng.usize(0..3) {
                let at = rng.usize(..len / 2);
                new[at] ^= 1;
            }
            let at = rng.usize(..len);
            let (removed, added) = (rng.usize(..20).min(len - at), rng.usize(..20));
            new.splice(at..at + removed, random(&mut rng, added));
            let mut patch = b"before".to_vec();
            assert!(encode(&old, &new, &mut patch));
            assert!(patch.len() < 130, "{}", patch.len());
            assert_eq!(apply(&old, &patch[6..]), Some(new));
        }
    }

    #[test]
    fn values_with_little_in_common_are_not_patched() {
        let mut rng = fastrand::Rng::with_seed(2);
        for (old_len, new_len) in [(0, 1), (1, 1), (0, 100), (100, 100), (4_000, 3_000)] {
            let (old, new) = (random(&mut rng, old_len), random(&mut rng, new_len));
            let mut patch = b"before".to_vec();
            assert!(!encode(&old, &new, &mut patch));
            assert_eq!(patch, b"before");
        }
        let mut patch = Vec::new();
        assert!(!encode(b"some", b"", &mut patch));
    }

    #[test]
    fn damaged_patches_never_panic() {
        let mut rng = fastrand::Rng::with_seed(3);
        let old = random(&mut rng, 1_000);
        let mut new = old.clone();
        new.splice(300..310, *b"something longer");
        let mut patch = Vec::new();
        assert!(encode(&old, &new, &mut patch));
        for at in 0..patch.len() {
            assert_ne!(apply(&old, &patch[..at]).as_ref(), Some(&new));
            for bit in 0..8 {
                let mut damaged = patch.clone();
                damaged[at] ^= 1 << bit;
                let _ = apply(&old, &damaged);
                let _ = apply(&old[..500], &damaged);
            }
        }
    }
}
