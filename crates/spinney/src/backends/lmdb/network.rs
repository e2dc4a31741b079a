//! Whether a folder lies where several machines may see it.
//!
//! Processes share a store by locks and by memory that all of them map, and LMDB relies on both. On a
//! file system of several machines neither reaches the others. FUSE and 9P are taken for local: they are
//! most often what a machine or a sandbox has of its own, and a mount that cannot be mapped says so itself.

use std::path::Path;

use rustix::fs::statfs;
use spinney_core::{Error, Result};

use crate::os_error::io_error;

/// File systems of several machines, by the number that Linux gives them (`statfs(2)`).
const NETWORK: [(u32, &str); 14] = [
    (0x6969, "NFS"),
    (0x517B, "SMB"),
    (0xFF53_4D42, "CIFS"),
    (0xFE53_4D42, "SMB2"),
    (0x5346_414F, "AFS"),
    (0x6B41_4653, "AFS"),
    (0x00C3_6400, "Ceph"),
    (0x7375_7245, "Coda"),
    (0x564C, "NCP"),
    (0x0BD0_0BD0, "Lustre"),
    (0x0116_1970, "GFS2"),
    (0x7461_636F, "OCFS2"),
    (0x4750_4653, "GPFS"),
    (0x2030_528D, "PVFS2"),
];

/// Refuses a folder on a network file system.
pub fn refuse(dir: &Path) -> Result<()> {
    let found = statfs(dir).map_err(|error| io_error("cannot look at", dir, error.into()))?;
    match name(found.f_type as u32) {
        None => Ok(()),
        Some(name) => Err(Error::unsupported(format!(
            "`{}` is on a network file system ({name}), where a store in LMDB could be damaged; use a \
             local one, or `json:`",
            dir.display()
        ))),
    }
}

fn name(kind: u32) -> Option<&'static str> {
    NETWORK.iter().find(|(network, _)| *network == kind).map(|(_, name)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_file_systems_are_no_network() {
        let (ext4, tmpfs, btrfs, xfs) = (0xEF53, 0x0102_1994, 0x9123_683E, 0x5846_5342);
        let (overlay, fuse, plan9) = (0x794C_7630, 0x6573_5546, 0x0102_1997);
        let local = [ext4, tmpfs, btrfs, xfs, overlay, fuse, plan9];
        assert!(local.into_iter().all(|kind| name(kind).is_none()));
        assert_eq!([0x6969, 0xFE53_4D42].map(name), [Some("NFS"), Some("SMB2")]);
        refuse(&std::env::temp_dir()).expect("a local file system");
    }
}
