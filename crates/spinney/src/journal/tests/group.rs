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

/// Who comes while a sync runs that began too early for him begins the next, and need not wait for the first. What ends
/// well after one has failed is not taken for done.
#[test]
fn a_sync_begins_while_one_runs() -> Result<()> {
    for first_fails in [false, true] {
        let disk = Disk::<()>::new();
        let (mut journal, ..) = recover(&disk, NONE)?;
        let group = Group::default();
        let segments = Arc::clone(journal.segments());
        let mut write = |revision| -> Result<Position> {
            append(&mut journal, revision, b"")?;
            journal.write()?;
            Ok(journal.end())
        };
        std::thread::scope(|scope| -> Result<()> {
            let sync = |end| {
                let (group, segments) = (&group, &segments);
                scope.spawn(move || group.sync(segments, end, || end))
            };
            // Making room syncs, too.
            let (end, (begun, end_first)) = (write(1)?, disk.hold_next_sync());
            let first = sync(end);
            begun.recv().expect("the first sync begins");
            let (end, (begun, end_second)) = (write(2)?, disk.hold_next_sync());
            let second = sync(end);
            begun.recv().expect("the second begins while the first runs");
            // A third would be one too many at once.
            let third = sync(write(3)?);
            match first_fails {
                false => {
                    end_second.send(true).expect("it waits");
                    second.join().expect("no panic")?;
                    assert!(group.synced() >= end);
                    end_first.send(true).expect("it waits");
                    first.join().expect("no panic")?;
                    third.join().expect("no panic")?;
                    assert_eq!(group.syncs(), 3);
                }
                true => {
                    end_first.send(false).expect("it waits");
                    assert!(first.join().expect("no panic").is_err());
                    assert!(third.join().expect("no panic").is_err());
                    end_second.send(true).expect("it waits");
                    assert!(second.join().expect("no panic").is_err());
                    assert!(group.failure().is_some() && group.synced() < end);
                }
            }
            Ok(())
        })?;
    }
    Ok(())
}
