//! Pages made of others by copying what stays.

use super::{Entry, HAS_FIRST_ID, HAS_PREFIX, Layout, Page};
use crate::varint;

/// Appends the body of a map's page with one member set, or with `None` removed, by copying what
/// stays.
///
/// `None`, and perhaps a part of it, when that is not enough: the page is empty, the key does not
/// start with the common prefix, the offsets become wider, the last member goes, or there is
/// nothing to remove. The prefix may be shorter than it could be.
pub fn splice(page: &Page<'_>, key: &[u8], value: Option<&[u8]>, out: &mut Vec<u8>) -> Option<()> {
    let flags = *page.body.first()?;
    let suffix = key.strip_prefix(page.prefix())?;
    let (index, exists) = match page.search(key)? {
        Ok(index) => (index, true),
        Err(index) => (index, false),
    };
    let Layout { count, width, entries_at, .. } = page.layout;
    let (width, entries_at) = (usize::from(width), entries_at as usize);
    let start = page.offset(index)?;
    let end = if exists { page.offset(index + 1)? } else { start };
    let entry_len =
        value.map_or(0, |value| varint::len(suffix.len() as u64) + suffix.len() + value.len());
    let count_after = (count + usize::from(value.is_some())).checked_sub(usize::from(exists))?;
    let entries_len = page.body.len() - entries_at - (end - start) + entry_len;
    if count_after == 0 || (!exists && value.is_none()) || entries_len >> (8 * width) != 0 {
        return None;
    }
    out.reserve(entries_at + width + 2 + entries_len);
    out.push(flags);
    varint::write(count_after as u64, out);
    if flags & HAS_PREFIX != 0 {
        varint::write_bytes(page.prefix(), out);
    }
    // Offsets up to the change stay, those behind it move by what the change adds or takes.
    let offsets = page.body.get(page.layout.offsets_at as usize..entries_at)?;
    let kept = (index + usize::from(value.is_some())).saturating_sub(1).min(count_after - 1);
    let stored = kept.min(count.saturating_sub(1));
    out.extend_from_slice(&offsets[..stored * width]);
    let moved = &offsets[(kept + count).saturating_sub(count_after) * width..];
    let moved_by = entry_len.wrapping_sub(end - start) as u32;
    // No offset is stored of the first entry, nor of the end.
    let unstored = match index {
        0 if !exists => Some(entry_len),
        _ if kept > stored => Some(start - entries_at),
        _ => None,
    };
    if let Some(offset) = unstored {
        out.extend_from_slice(&(offset as u32).to_le_bytes()[..width]);
    }
    let moved_at = out.len();
    out.extend_from_slice(moved);
    let moved = &mut out[moved_at..];
    match width {
        1 => moved.iter_mut().for_each(|offset| *offset = offset.wrapping_add(moved_by as u8)),
        2 => moved.as_chunks_mut().0.iter_mut().for_each(|offset| {
            *offset = u16::from_le_bytes(*offset).wrapping_add(moved_by as u16).to_le_bytes();
        }),
        _ => moved.as_chunks_mut().0.iter_mut().for_each(|offset| {
            *offset = u32::from_le_bytes(*offset).wrapping_add(moved_by).to_le_bytes();
        }),
    }
    out.extend_from_slice(page.body.get(entries_at..start)?);
    if let Some(value) = value {
        varint::write_bytes(suffix, out);
        out.extend_from_slice(value);
    }
    out.extend_from_slice(page.body.get(end..)?);
    Some(())
}

/// Appends the body of a list's page that has the first `kept` elements of a page, by copying them, and others
/// behind them.
///
/// `None`, and perhaps a part of it, when that is not enough: nothing is kept, the page knows its next id, ids
/// are to be stored that were not, or the offsets become wider.
pub fn extend(page: &Page<'_>, kept: usize, others: &[Entry<'_>], out: &mut Vec<u8>) -> Option<()> {
    let flags = *page.body.first()?;
    let Layout { count, width, entries_at, explicit_ids, first_id, next_id_at, .. } = page.layout;
    let (width, entries_at) = (usize::from(width), entries_at as usize);
    if kept == 0 || kept > count || next_id_at != 0 {
        return None;
    }
    let id_len = |id: u64| if explicit_ids { varint::len(id) } else { 0 };
    let kept_entries = page.body.get(entries_at..page.offset(kept)?)?;
    let others_len: usize = others.iter().map(|entry| id_len(entry.id) + entry.value.len()).sum();
    let next_ids = first_id + kept as u64..;
    let goes_on = explicit_ids || others.iter().zip(next_ids).all(|(entry, id)| entry.id == id);
    if !goes_on || (kept_entries.len() + others_len) >> (8 * width) != 0 {
        return None;
    }
    out.push(flags);
    varint::write((kept + others.len()) as u64, out);
    if flags & HAS_FIRST_ID != 0 {
        varint::write(first_id, out);
    }
    // No offset is stored of the first entry.
    let offsets_at = page.layout.offsets_at as usize;
    out.extend_from_slice(page.body.get(offsets_at..offsets_at + (kept - 1) * width)?);
    let mut offset = kept_entries.len();
    for entry in others {
        out.extend_from_slice(&(offset as u32).to_le_bytes()[..width]);
        offset += id_len(entry.id) + entry.value.len();
    }
    out.extend_from_slice(kept_entries);
    for entry in others {
        if explicit_ids {
            varint::write(entry.id, out);
        }
        out.extend_from_slice(entry.value);
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::tests::map_body;
    use crate::page::{Measure, encode};
    use crate::visit::Container;

    #[test]
    fn splicing_gives_the_entries_that_encoding_gives() {
        let texts: Vec<String> = (0..40).map(|i| format!("common/{:03}", i * 2)).collect();
        for n in [1, 2, 3, 39] {
            let keys: Vec<&[u8]> = texts[..n].iter().map(|text| text.as_bytes()).collect();
            let body = map_body(&keys);
            let page = Page::parse(Container::Map, &body).expect("parses");
            for at in 0..2 * n + 1 {
                let key = format!("common/{at:03}");
                for value in [Some(&b"a longer value than before"[..]), Some(b""), None] {
                    let exists = at % 2 == 0 && at / 2 < n;
                    let mut spliced = Vec::new();
                    if splice(&page, key.as_bytes(), value, &mut spliced).is_none() {
                        assert!(n == 1 || value.is_none() && !exists, "{n} {key}");
                        continue;
                    };
                    let spliced = Page::parse(Container::Map, &spliced).expect("parses");
                    let expected = keys.len() + usize::from(value.is_some()) - usize::from(exists);
                    assert_eq!(spliced.count(), expected);
                    let found = spliced.search(key.as_bytes()).expect("reads");
                    assert_eq!(found.ok().and_then(|index| spliced.value(index)), value);
                    for other in keys.iter().filter(|other| **other != key.as_bytes()) {
                        let index = spliced.search(other).expect("reads").expect("is there");
                        assert_eq!(spliced.value(index), Some(*other));
                    }
                }
            }
        }
    }

    #[test]
    fn extending_gives_the_elements_that_encoding_gives() {
        let mut random = fastrand::Rng::with_seed(5);
        let (mut copied, mut refused) = (0, 0);
        for _ in 0..20_000 {
            let first = random.u64(..3) * random.u64(..200);
            let (steps, len_max) = (random.u64(1..3), if random.bool() { 5 } else { 60 });
            let mut id = first;
            let mut elements: Vec<(u64, Vec<u8>)> = Vec::new();
            for _ in 0..random.usize(1..40) {
                elements.push((id, vec![random.u8(..); random.usize(..len_max)]));
                id += random.u64(1..=steps);
            }
            let entries: Vec<Entry<'_>> =
                elements.iter().map(|(id, value)| Entry { key: &[], id: *id, value }).collect();
            let (stored, others) = entries.split_at(random.usize(..=entries.len()));
            let mut body = Vec::new();
            encode(Container::List, stored.len(), |index| stored[index], None, &mut body);
            let page = Page::parse(Container::List, &body).expect("parses");
            let kept = random.usize(..=stored.len());
            let mut extended = Vec::new();
            if extend(&page, kept, others, &mut extended).is_none() {
                refused += 1;
                continue;
            }
            copied += 1;
            let expected = [&stored[..kept], others].concat();
            let extended = Page::parse(Container::List, &extended).expect("parses");
            assert_eq!(extended.count(), expected.len());
            for (index, entry) in expected.iter().enumerate() {
                assert_eq!(extended.element(index), Some((entry.id, entry.value)));
            }
            let measure = Measure::of_first(&page, kept).expect("reads");
            let measure = others.iter().fold(measure, |measure, entry| measure.with(&[], entry));
            let mut encoded = Vec::new();
            encode(Container::List, expected.len(), |index| expected[index], None, &mut encoded);
            assert!(encoded.len().max(extended.body.len()) <= measure.body_len_max());
        }
        assert!(copied > 5_000 && refused > 1_000, "{copied} {refused}");
    }
}
