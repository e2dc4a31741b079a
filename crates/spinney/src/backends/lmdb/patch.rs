//! The difference of a value to the one before, for the journal: a changed leaf changes few of the
//! bytes of its page.
//!
//! `base_len | suffix_len | (same | fresh_len | fresh bytes) ...`, numbers as varints. The new value is,
//! run by run, `same` bytes of the base at the same place and then the fresh bytes; last come the
//! base's last `suffix_len` bytes. This module must not know what the bytes mean.

use std::iter;

use spinney_core::varint;

/// Bytes that are compared at once, and that a run has at least.
const WORD_LEN: usize = 8;

/// Appends the difference when it takes at most half of the value; false, and nothing, when not.
pub fn write(base: &[u8], value: &[u8], out: &mut Vec<u8>) -> bool {
    let begin = out.len();
    let suffix_len = common_suffix_len(base, value);
    varint::write(base.len() as u64, out);
    varint::write(suffix_len as u64, out);
    let front = &value[..value.len() - suffix_len];
    let base_front = &base[..base.len() - suffix_len];
    let (words, _) = front.as_chunks::<WORD_LEN>();
    let (base_words, _) = base_front.as_chunks::<WORD_LEN>();
    let mut alike = words.iter().zip(base_words).map(|(a, b)| a == b).chain(iter::repeat(false));
    let (mut at, words_len) = (0, front.len().div_ceil(WORD_LEN));
    let mut is_same = alike.next() == Some(true);
    let mut run = |wanted: bool, at: &mut usize| {
        let from = *at;
        while *at < words_len && is_same == wanted {
            *at += 1;
            is_same = alike.next() == Some(true);
        }
        (from * WORD_LEN).min(front.len())..(*at * WORD_LEN).min(front.len())
    };
    while at < words_len {
        let same = run(true, &mut at);
        let fresh = run(false, &mut at);
        varint::write(same.len() as u64, out);
        varint::write_bytes(&front[fresh], out);
        if out.len() - begin > value.len() / 2 {
            out.truncate(begin);
            return false;
        }
    }
    let is_short = out.len() - begin <= value.len() / 2;
    if !is_short {
        out.truncate(begin);
    }
    is_short
}

/// The new value; `None` when the patch does not read or belongs to another base.
pub fn apply(base: &[u8], patch: &[u8]) -> Option<Vec<u8>> {
    let mut at = 0;
    let number = |at: &mut usize| usize::try_from(varint::read(patch, at)?).ok();
    if number(&mut at)? != base.len() {
        return None;
    }
    let suffix_len = number(&mut at)?;
    let mut value = Vec::with_capacity(base.len() + patch.len());
    while at < patch.len() {
        let same = number(&mut at)?;
        value.extend_from_slice(base.get(value.len()..)?.get(..same)?);
        value.extend_from_slice(varint::read_bytes(patch, &mut at)?);
    }
    value.extend_from_slice(base.get(base.len().checked_sub(suffix_len)?..)?);
    Some(value)
}

fn common_suffix_len(a: &[u8], b: &[u8]) -> usize {
    let words =
        a.as_rchunks::<WORD_LEN>().1.iter().rev().zip(b.as_rchunks::<WORD_LEN>().1.iter().rev());
    let len = words.take_while(|(a, b)| a == b).count() * WORD_LEN;
    let (a, b) = (&a[..a.len() - len], &b[..b.len() - len]);
    len + a.iter().rev().zip(b.iter().rev()).take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patched(base: &[u8], value: &[u8]) -> Option<usize> {
        let mut patch = b"before".to_vec();
        if !write(base, value, &mut patch) {
            assert_eq!(patch, b"before");
            return None;
        }
        let patch = &patch[6..];
        assert_eq!(apply(base, patch).as_deref(), Some(value));
        assert_eq!(apply(&[base, b"x"].concat(), patch), None, "another base");
        for len in 0..patch.len() {
            let cut = apply(base, &patch[..len]);
            assert!(cut.is_none_or(|cut| cut != value), "cut at {len}");
        }
        Some(patch.len())
    }

    #[test]
    fn small_changes_take_few_bytes() {
        let base: Vec<u8> = (0..4_000_u32).map(|i| (i * i % 251) as u8).collect();
        let mut value = base.clone();
        value[3] ^= 1;
        value[2_000] ^= 1;
        assert!(patched(&base, &value).is_some_and(|len| len < 40));
        value.splice(2_500..2_500, *b"more");
        assert!(patched(&base, &value).is_some_and(|len| len < 700));
        value.drain(3_000..3_700);
        assert!(patched(&base, &value).is_some());
        assert!(patched(&base, &base).is_some_and(|len| len < 8));
        let other: Vec<u8> = base.iter().map(|byte| byte ^ 0x55).collect();
        assert_eq!(patched(&base, &other), None, "nothing in common");
        assert_eq!(patched(&[], &base), None);
        assert_eq!(patched(&base, &[]), None);
    }

    #[test]
    fn any_value_comes_back() {
        let mut random = fastrand::Rng::with_seed(5);
        let mut patches = 0;
        for _ in 0..20_000 {
            let base: Vec<u8> = (0..random.usize(..80)).map(|_| random.u8(..3)).collect();
            let mut value = base.clone();
            for _ in 0..random.usize(..4) {
                let at = random.usize(..=value.len());
                match random.u8(..3) {
                    0 => value.truncate(at),
                    1 => drop(value.splice(at..at, [random.u8(..3); 5])),
                    _ => value.iter_mut().skip(at).take(3).for_each(|byte| *byte ^= 1),
                }
            }
            patches += usize::from(patched(&base, &value).is_some());
        }
        assert!(patches > 5_000, "{patches}");
    }
}
