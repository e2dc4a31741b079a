//! Whether the engine's file is as long as its metadata says.
//!
//! LMDB does not look: it would find out by a signal that ends the process, when it reads a missing
//! page. A file may rightly be shorter than its last page number says, when the last pages were
//! allocated and freed in one transaction and so never written; they are then in the list of free
//! pages, which is a B+tree of its own. The layout is that of LMDB 0.9, 64 bits, little-endian as
//! the machine (`mdb.c`: `MDB_meta`, `MDB_page`, `MDB_node`).

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

const MAGIC: u32 = 0xBEEF_C0DE;
const PAGE_HEADER_LEN: usize = 16;
const META_LEN: usize = PAGE_HEADER_LEN + 136;
const NODE_HEADER_LEN: usize = 8;
const NO_PAGE: u64 = u64::MAX;
const BRANCH: u16 = 0x01;
const LEAF: u16 = 0x02;
const BIG_VALUE: u16 = 0x01;
/// A tree of free pages is never deeper; a damaged one may have loops.
const DEPTH_MAX: usize = 32;

/// What the newest metadata says.
struct Meta {
    transaction: u64,
    free_root: u64,
    last_page: u64,
}

/// The file and its page length.
pub struct Pages<'f> {
    pub file: &'f File,
    pub page_len: u64,
}

impl Pages<'_> {
    /// How long the file must be for the state of `transaction`, which a reader has pinned, when it
    /// is shorter than that; `None` when all is there.
    pub fn missing_len(&self, transaction: u64) -> io::Result<Option<u64>> {
        let Some(meta) = self.meta(transaction)? else {
            // Two commits since the reader began: writers are at work, so the file is whole.
            return Ok(None);
        };
        let expected = (meta.last_page + 1) * self.page_len;
        let pages = self.file.metadata()?.len() / self.page_len;
        if pages > meta.last_page {
            return Ok(None);
        }
        let mut free = BTreeSet::new();
        let mut note = |_, list: &[u8]| {
            free.extend(pages_of(list).filter(|page| *page >= pages));
        };
        let is_readable = match self.each_free(meta.free_root, DEPTH_MAX, &mut note) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => false,
            collected => collected.map(|()| true)?,
        };
        let is_whole = is_readable && (pages..=meta.last_page).all(|page| free.contains(&page));
        Ok((!is_whole).then_some(expected))
    }

    /// How many bytes each transaction up to a pinned one has freed that are not used again; `None`
    /// when there are newer ones.
    pub fn freed(&self, transaction: u64) -> io::Result<Option<Vec<(u64, u64)>>> {
        let Some(meta) = self.meta(transaction)? else { return Ok(None) };
        let mut freed = Vec::new();
        self.each_free(meta.free_root, DEPTH_MAX, &mut |transaction, list| {
            freed.push((transaction, pages_of(list).count() as u64 * self.page_len));
        })?;
        Ok(Some(freed))
    }

    fn meta(&self, transaction: u64) -> io::Result<Option<Meta>> {
        for page in 0..2 {
            let mut bytes = [0; META_LEN];
            self.file.read_exact_at(&mut bytes, page * self.page_len)?;
            let meta = &bytes[PAGE_HEADER_LEN..];
            let found = Meta {
                free_root: u64_at(meta, 24 + 40),
                last_page: u64_at(meta, 24 + 2 * 48),
                transaction: u64_at(meta, 24 + 2 * 48 + 8),
            };
            if u32_at(meta, 0) == MAGIC && found.transaction == transaction {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// Gives each transaction and its list of pages in a page of the tree and those below it.
    fn each_free(
        &self,
        page: u64,
        depth: usize,
        each: &mut dyn FnMut(u64, &[u8]),
    ) -> io::Result<()> {
        if page == NO_PAGE || depth == 0 {
            return Ok(());
        }
        let mut bytes = vec![0; self.page_len as usize];
        self.file.read_exact_at(&mut bytes, page * self.page_len)?;
        let (flags, lower) = (u16_at(&bytes, 10), usize::from(u16_at(&bytes, 12)));
        for slot in (PAGE_HEADER_LEN..lower.min(bytes.len())).step_by(2) {
            let node = bytes.get(usize::from(u16_at(&bytes, slot))..).unwrap_or_default();
            if node.len() < NODE_HEADER_LEN {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let low = u64::from(u32_at(node, 0));
            if flags & BRANCH != 0 {
                let child = low | u64::from(u16_at(node, 4)) << 32;
                self.each_free(child, depth - 1, each)?;
            } else if flags & LEAF != 0 {
                let key_len = usize::from(u16_at(node, 6));
                let value = node.get(NODE_HEADER_LEN + key_len..).unwrap_or_default();
                let list = self.value(value, low as usize, u16_at(node, 4))?;
                each(u64_at(node, NODE_HEADER_LEN), &list);
            }
        }
        Ok(())
    }

    fn value(&self, inline: &[u8], len: usize, flags: u16) -> io::Result<Vec<u8>> {
        if flags & BIG_VALUE == 0 {
            let value = inline.get(..len).ok_or(io::ErrorKind::UnexpectedEof)?;
            return Ok(value.to_vec());
        }
        let page = inline.first_chunk().map(|page| u64::from_ne_bytes(*page));
        let page = page.ok_or(io::ErrorKind::UnexpectedEof)?;
        if len as u64 > self.file.metadata()?.len() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut value = vec![0; len];
        self.file.read_exact_at(&mut value, page * self.page_len + PAGE_HEADER_LEN as u64)?;
        Ok(value)
    }
}

/// A list begins with its length.
fn pages_of(list: &[u8]) -> impl Iterator<Item = u64> {
    list.chunks_exact(8).skip(1).map(|page| u64_at(page, 0))
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |bytes| u16::from_ne_bytes(*bytes))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |bytes| u32::from_ne_bytes(*bytes))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |bytes| u64::from_ne_bytes(*bytes))
}
