//! What Linux tells about this process and a folder: memory, bytes written, blocks on disk.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Size of the block that `stat` counts, whatever the file system's own is.
const STAT_BLOCK_BYTES: u64 = 512;

/// Lets the high-water mark of resident memory start again from the present use.
pub fn reset_peak_rss() {
    // Where the kernel refuses, the mark of the whole run is reported instead.
    let _ = fs::write("/proc/self/clear_refs", "5");
}

/// The high-water mark of resident memory.
pub fn peak_rss_bytes() -> Option<u64> {
    let text = fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().trim_end_matches(" kB").parse::<u64>().ok()? * 1024)
}

/// Bytes that this process has passed to write calls; writes through a memory map do not count.
pub fn written_bytes() -> Option<u64> {
    let text = fs::read_to_string("/proc/self/io").ok()?;
    text.lines().find_map(|line| line.strip_prefix("wchar: "))?.parse().ok()
}

/// Allocated bytes of all files below `folder`.
pub fn disk_bytes(folder: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(folder) else { return 0 };
    entries
        .flatten()
        .map(|entry| match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => disk_bytes(&entry.path()),
            Ok(metadata) => metadata.blocks() * STAT_BLOCK_BYTES,
            Err(_) => 0,
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_written_file_shows_in_blocks_and_bytes() {
        let folder = tempfile::tempdir().expect("a folder");
        let before = written_bytes().expect("Linux counts");
        fs::create_dir(folder.path().join("below")).expect("a folder");
        let path = folder.path().join("below/file");
        fs::write(&path, vec![1; 100_000]).expect("writes");
        fs::File::open(&path).expect("opens").sync_all().expect("syncs");
        assert!(written_bytes().expect("Linux counts") - before >= 100_000);
        assert!((100_000..200_000).contains(&disk_bytes(folder.path())));
        assert!(peak_rss_bytes().expect("Linux counts") > 1 << 20);
    }
}
