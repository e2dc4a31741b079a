//! Unsigned integers in 1 to 10 bytes, seven bits a byte, low bits first (LEB128).

/// Appends `value`.
#[inline]
pub fn write(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Reads a value at `at` and moves `at` behind it; `None` when the bytes end or overflow 64 bits.
#[inline]
pub fn read(bytes: &[u8], at: &mut usize) -> Option<u64> {
    let first = *bytes.get(*at)?;
    *at += 1;
    if first < 0x80 {
        return Some(u64::from(first));
    }
    let mut value = u64::from(first & 0x7f);
    for shift in (7..64).step_by(7) {
        let byte = *bytes.get(*at)?;
        *at += 1;
        let bits = u64::from(byte & 0x7f);
        if shift == 63 && bits > 1 {
            return None;
        }
        value |= bits << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

/// Reads a length and that many bytes.
#[inline]
pub fn read_bytes<'a>(bytes: &'a [u8], at: &mut usize) -> Option<&'a [u8]> {
    let len = usize::try_from(read(bytes, at)?).ok()?;
    let end = at.checked_add(len)?;
    let part = bytes.get(*at..end)?;
    *at = end;
    Some(part)
}

/// Appends a length and the bytes.
#[inline]
pub fn write_bytes(part: &[u8], out: &mut Vec<u8>) {
    write(part.len() as u64, out);
    out.extend_from_slice(part);
}

/// How many bytes [`write()`] needs.
#[inline]
pub fn len(value: u64) -> usize {
    (64 - (value | 1).leading_zeros() as usize).div_ceil(7)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_round_trips() {
        for bits in 0..64 {
            for value in [1u64 << bits, (1u64 << bits) - 1, u64::MAX >> bits] {
                let mut out = Vec::new();
                write(value, &mut out);
                assert_eq!(out.len(), len(value));
                let mut at = 0;
                assert_eq!(read(&out, &mut at), Some(value));
                assert_eq!(at, out.len());
                assert_eq!(read(&out[..out.len() - 1], &mut 0), None);
            }
        }
        assert_eq!(read(&[0xff; 10], &mut 0), None);
    }
}
