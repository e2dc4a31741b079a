//! Shared syncs, and syncs that fail.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use super::*;

#[test]
fn syncs_are_shared() -> Result<()> {
    let disk = Disk::<()>::new();
    let journal = Mutex::new(recover(&disk, NONE)?.0);
    let (group, revisions) = (Group::default(), AtomicU64::new(0));
    let segments = Arc::clone(journal.lock().expect("no panic").segments());
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..500 {
                    let mut appender = journal.lock().expect("no panic");
                    let revision = revisions.fetch_add(1, Ordering::Relaxed) + 1;
                    append(&mut appender, revision, &[0; 20]).expect("room");
                    appender.write().expect("writes");
                    let end = appender.end();
                    drop(appender);
                    let written = || journal.lock().expect("no panic").written();
                    group.sync(&segments, end, written).expect("syncs");
                    assert!(group.synced() >= end);
                }
            });
        }
    });
    assert!(group.syncs() <= 4_000);
    assert_eq!(recover(&disk, NONE)?.2.revisions(), (1..=4_000).collect::<Vec<_>>());
    Ok(())
}

#[test]
fn a_failed_sync_is_final() -> Result<()> {
    let disk = Disk::<()>::new();
    let (mut journal, ..) = recover(&disk, NONE)?;
    append(&mut journal, 1, b"")?;
    journal.write()?;
    let (group, end) = (Group::default(), journal.end());
    disk.set_fails_syncs(true);
    let sync = || group.sync(journal.segments(), end, || end);
    assert_eq!(sync().expect_err("fails").kind(), ErrorKind::Io);
    disk.set_fails_syncs(false);
    assert!(sync().is_err() && group.failure().is_some() && group.synced() < end);
    Ok(())
}
