//! Few bytes read and appended without a call: most keys and texts have so many that a copy of any length costs
//! more than the bytes.

/// At most so many bytes follow another in [`push_with`].
pub const PUSHED_LEN_MAX: usize = 7;

/// At most eight bytes as a number, the first of them lowest, with zeros behind.
#[inline]
pub fn word(bytes: &[u8]) -> u64 {
    let len = bytes.len();
    // Two reads that may overlap cover 4 to 8 bytes, three of one byte 1 to 3.
    if let (Some(first), Some(last)) = (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        let (first, last) = (u32::from_le_bytes(*first), u32::from_le_bytes(*last));
        return u64::from(first) | u64::from(last) << (8 * (len - 4));
    }
    let (Some(&first), Some(&last)) = (bytes.first(), bytes.last()) else { return 0 };
    let middle = u64::from(bytes[len / 2]) << (8 * (len / 2));
    u64::from(first) | middle | u64::from(last) << (8 * (len - 1))
}

/// Appends a byte and at most [`PUSHED_LEN_MAX`] after it.
#[inline]
pub fn push_with(first: u8, bytes: &[u8], out: &mut Vec<u8>) {
    let len = bytes.len();
    debug_assert!(len <= PUSHED_LEN_MAX);
    let end = out.len() + 1 + len;
    out.extend_from_slice(&(word(bytes) << 8 | u64::from(first)).to_le_bytes());
    out.truncate(end);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_length_is_read_and_appended_whole() {
        let bytes: Vec<u8> = (0xf1..=0xf8).collect();
        for len in 0..=8 {
            if len <= PUSHED_LEN_MAX {
                let mut out = vec![7];
                push_with(0x80, &bytes[..len], &mut out);
                assert_eq!((&out[..2], &out[2..]), (&[7, 0x80][..], &bytes[..len]));
            }
            let mut padded = [0; 8];
            padded[..len].copy_from_slice(&bytes[..len]);
            assert_eq!(word(&bytes[..len]).to_le_bytes(), padded);
        }
    }
}
