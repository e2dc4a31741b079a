//! Who reads which state of the engine, and how much of the file old states keep from being used
//! again.
//!
//! A snapshot has a slot in LMDB's table of readers, a file that all processes map; LMDB uses a page
//! again when no slot names a state that has it. The layout is that of LMDB 0.9 on Linux with 64 bits
//! (`mdb.c`: `MDB_txninfo`, `MDB_reader`). This module only reads, but in tests.

use std::io;
use std::os::fd::BorrowedFd;

const MAGIC: u32 = 0xBEEF_C0DE;
const LINE_LEN: usize = 64;
/// Bytes of a mutex of the C library, of which the header has two.
const MUTEX_LEN: usize = if cfg!(target_arch = "aarch64") { 48 } else { 40 };
const COUNT_AT: usize = 16;
const SLOTS_AT: usize =
    (24 + MUTEX_LEN).next_multiple_of(LINE_LEN) + MUTEX_LEN.next_multiple_of(LINE_LEN);
/// A slot that nobody reads in now.
const NO_TRANSACTION: u64 = u64::MAX;

/// A snapshot of whichever process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reader {
    /// The engine's transaction that made the state it reads.
    pub transaction: u64,
    /// The process's number.
    pub process: u32,
}

/// The snapshots of a moment, and what they keep.
#[derive(Debug, Default)]
pub struct Pinned {
    /// The oldest first.
    pub readers: Vec<Reader>,
    /// How many bytes each transaction has freed that are not used again.
    freed: Vec<(u64, u64)>,
}

impl Pinned {
    pub fn new(mut readers: Vec<Reader>, freed: Vec<(u64, u64)>) -> Pinned {
        readers.sort_unstable();
        Pinned { readers, freed }
    }

    /// Bytes that are free but for snapshots of a state or older ones.
    pub fn len_behind(&self, transaction: u64) -> u64 {
        let behind = self.freed.iter().filter(|(freed, _)| *freed > transaction);
        behind.map(|(_, len)| len).sum()
    }

    /// Bytes that are free but for snapshots.
    pub fn len(&self) -> u64 {
        self.readers.first().map_or(0, |oldest| self.len_behind(oldest.transaction))
    }

    /// The readers that keep more than `len_max`.
    pub fn too_old(&self, len_max: u64) -> impl Iterator<Item = &Reader> {
        self.readers.iter().take_while(move |reader| self.len_behind(reader.transaction) > len_max)
    }
}

/// The snapshots that are open, in no order.
pub fn read(table: BorrowedFd<'_>) -> io::Result<Vec<Reader>> {
    let mut bytes = vec![0; rustix::fs::fstat(table)?.st_size as usize];
    let len = rustix::io::pread(table, &mut bytes, 0)?;
    bytes.truncate(len);
    let u32_at = |at: usize| {
        bytes.get(at..at + 4).map(|b| u32::from_ne_bytes(b.try_into().expect("4 bytes")))
    };
    let u64_at = |at: usize| {
        bytes.get(at..at + 8).map(|b| u64::from_ne_bytes(b.try_into().expect("8 bytes")))
    };
    if u32_at(0) != Some(MAGIC) {
        return Ok(Vec::new());
    }
    let slots =
        (0..u32_at(COUNT_AT).unwrap_or_default() as usize).map(|at| SLOTS_AT + at * LINE_LEN);
    let readers = slots.filter_map(|at| {
        let (transaction, process) = (u64_at(at)?, u32_at(at + 8)?);
        (process != 0 && transaction != NO_TRANSACTION).then_some(Reader { transaction, process })
    });
    Ok(readers.collect())
}

/// Sets the last transaction that snapshots are told of.
#[cfg(test)]
pub fn write_last(table: BorrowedFd<'_>, transaction: u64) -> io::Result<()> {
    const LAST_AT: u64 = 8;
    Ok(rustix::io::pwrite(table, &transaction.to_ne_bytes(), LAST_AT).map(drop)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_readers_keep_was_freed_behind_them() {
        let reader = |transaction| Reader { transaction, process: 1 };
        let freed = vec![(3, 10), (5, 20), (9, 40)];
        let pinned = Pinned::new([9, 2, 5, 4].map(reader).to_vec(), freed);
        assert_eq!(pinned.len(), 70);
        assert_eq!([2, 3, 4, 5, 9].map(|at| pinned.len_behind(at)), [70, 60, 60, 40, 0]);
        let too_old =
            |len| pinned.too_old(len).map(|reader| reader.transaction).collect::<Vec<_>>();
        assert_eq!(
            [too_old(70), too_old(60), too_old(59), too_old(0)],
            [vec![], vec![2], vec![2, 4], vec![2, 4, 5]]
        );
        assert_eq!(Pinned::default().len(), 0);
    }
}
