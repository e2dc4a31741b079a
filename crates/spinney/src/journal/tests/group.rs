//! Shared syncs, and syncs that fail.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use super::*;

#[test]
fn syncs_are_shared() -> Result<()> {
    let disk = Disk::<()>::new();
    let journal = Mutex::new(recover(&disk, NONE)?.0);
    let (group, landing, revisions) = (Group::default(), Landing::default(), AtomicU64::new(0));
    let segments = Arc::clone(journal.lock().expect("no panic").segments());
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..500 {
                    let mut appender = journal.lock().expect("no panic");
                    let revision = revisions.fetch_add(1, Ordering::Relaxed) + 1;
                    append(&mut appender, revision, &[0; 20]).expect("room");
                    let end = appender.end();
                    drop(appender);
                    if revision % 7 == 0 {
                        landing.lock(&journal).write().expect("writes");
                    }
                    let sync = |synced| {
                        let held = journal.lock().expect("no panic");
                        landing.sync_behind(&segments, &journal, held, synced)
                    };
                    group.sync(end, sync).expect("syncs");
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
    for writes_through in [false, true] {
        let (mut journal, ..) = recover(&disk, NONE)?;
        append(&mut journal, 1, b"")?;
        let (group, landing, end) = (Group::default(), Landing::default(), journal.end());
        if writes_through {
            group.advance(journal.written());
        }
        let segments = Arc::clone(journal.segments());
        let journal = Mutex::new(journal);
        let sync = || {
            let behind = |synced| {
                let held = journal.lock().expect("no panic");
                landing.sync_behind(&segments, &journal, held, synced)
            };
            group.sync(end, behind)
        };
        disk.set_fails_syncs(true);
        assert_eq!(sync().expect_err("fails").kind(), ErrorKind::Io);
        disk.set_fails_syncs(false);
        assert!(sync().is_err() && group.failure().is_some() && group.synced() < end);
        // Who would write does not wait for what will not land.
        drop(landing.lock(&journal));
    }
    Ok(())
}
