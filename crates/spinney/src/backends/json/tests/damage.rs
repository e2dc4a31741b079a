//! Full disks, failing syncs, and files that are cut short or changed behind the store's back.

use spinney_core::transaction::Transaction;
use spinney_core::{ErrorKind, Value};

use super::*;
use crate::journal::medium::Folder;

/// Sets `/n`, and something as long as that, in one commit.
fn commit(store: &Store, n: u64) -> Result<()> {
    let _guard = store.write_guard(0)?;
    let mut transaction = Transaction::begin(store)?;
    transaction.set_base_path(base_path());
    transaction.set("/n", &n.into())?;
    transaction.set(&format!("/{}", n % 5), &Value::Bytes(vec![7; 40 * n as usize]))?;
    transaction.commit(u128::from(n)).map(drop)
}

/// The last number that was set.
fn last(store: &Arc<Store>) -> u64 {
    let text = whole(store);
    let digits = text.split("\"n\":").nth(1).expect("a number");
    let end = digits.find(|c: char| !c.is_ascii_digit()).expect("more");
    digits[..end].parse().expect("digits")
}

/// A closed document, `/n` being 1.
fn sample() -> Result<Disk<()>> {
    let disk = Disk::new();
    let store = open(&disk)?;
    commit(&store, 1)?;
    store.close()?;
    Ok(disk)
}

/// Two generations of a journal behind the file; up to 9 known to be synced by a later record.
fn crashed() -> Result<Disk<()>> {
    let disk = sample()?;
    let store = open(&disk)?;
    for n in 2..=12 {
        commit(&store, n)?;
        match n {
            6 => store.rewrite()?,
            3 | 9 | 12 => store.sync_all()?,
            _ => drop(store.write()?),
        }
    }
    Ok(disk)
}

/// Twenty commits with a sync, every sixth with a rewrite, and a close. Returns the last commit that
/// was answered, the last one that was durable, and how many operations failed.
fn work(disk: &Disk<()>, mut before: impl FnMut(u64)) -> Result<(u64, u64, usize)> {
    let (mut answered, mut durable, mut failed) = (1, 1, 0);
    let mut count = |done: Result<()>| {
        if let Err(error) = &done {
            assert!(matches!(error.kind(), ErrorKind::Io | ErrorKind::Closed), "{error}");
            failed += 1;
        }
        done.is_ok()
    };
    let store = open(disk)?;
    for n in 2..=20 {
        before(n);
        let held = whole(&store);
        match count(commit(&store, n)) {
            true => answered = n,
            false => assert_eq!(whole(&store), held, "a failed commit is seen"),
        }
        let synced = if n % 6 == 0 { store.rewrite() } else { store.sync_all() };
        if count(synced) && store.tail().failure.refuse_lost(n).is_ok() {
            durable = answered;
        }
    }
    before(21);
    if count(store.close()) {
        before(22);
    }
    Ok((answered, durable, failed))
}

#[test]
fn a_full_disk_fails_what_needs_room_and_loses_nothing() -> Result<()> {
    let (mut refusals, mut failures) = (0, 0);
    for room in (0..40_000).step_by(256) {
        let disk = sample()?;
        disk.set_room(room);
        let answered = match work(&disk, |_| ()) {
            Ok((answered, durable, failed)) => {
                assert_eq!(answered, durable, "what is written needs no more room");
                failures += failed;
                answered
            }
            Err(error) => {
                assert!(error.to_string().contains("full"), "{error}");
                refusals += 1;
                1
            }
        };
        disk.set_room(u64::MAX);
        let store = open(&disk)?;
        assert_eq!(last(&store), answered, "room for {room} bytes");
        commit(&store, 30)?;
        store.close()?;
        assert_eq!(last(&open(&disk)?), 30);
    }
    println!("{failures} operations without room, {refusals} openings");
    assert!(failures > 100);
    Ok(())
}

#[test]
fn a_failed_sync_refuses_writes_and_loses_nothing_durable() -> Result<()> {
    let mut failures = 0;
    for bad in 2..=22 {
        let disk = sample()?;
        let (answered, durable, failed) = work(&disk, |n| disk.set_fails_syncs(n == bad))?;
        disk.set_fails_syncs(false);
        failures += failed;
        let found = last(&open(&disk)?);
        assert!((durable..=answered).contains(&found), "{durable} {found} {answered}");
    }
    assert!(failures > 20);
    Ok(())
}

/// Opens a damaged disk: the number there, or the kind of the error.
fn opened(disk: &Disk<()>, case: &str) -> std::result::Result<u64, ErrorKind> {
    let store = match open(disk) {
        Ok(store) => store,
        Err(error) => {
            assert!(error.to_string().contains(FILE), "{case}: {error}");
            return Err(error.kind());
        }
    };
    let found = last(&store);
    store.close().expect("closes");
    assert_eq!(last(&open(disk).expect("opens")), found, "{case}");
    Ok(found)
}

#[test]
fn a_journal_that_is_cut_or_changed_anywhere_is_found() -> Result<()> {
    let sample = crashed()?;
    assert_eq!(opened(&sample.copy(), "whole"), Ok(12));
    let (mut damages, mut cuts) = (0, 0);
    for name in ["a.json.journal.0", "a.json.journal.1"] {
        for at in 0..sample.with_file(name, |file| file.len()) {
            let case = format!("{name}, byte {at}");
            let disk = sample.copy();
            disk.with_file(name, |file| file[at] ^= 1 << (at % 8));
            match opened(&disk, &case) {
                // The file has six, and later ones know nine to be synced.
                Ok(found) => {
                    assert!((9..=12).contains(&found), "{case}: {found}");
                    cuts += usize::from(found < 12);
                }
                Err(kind) => {
                    assert_eq!(kind, ErrorKind::Corrupted, "{case}");
                    damages += 1;
                }
            }
            // Without a byte it is no journal, as if somebody had removed it.
            let disk = sample.copy();
            disk.with_file(name, |file| file.truncate(at.max(1)));
            match opened(&disk, &case) {
                Ok(found) if name.ends_with('1') => assert_eq!(found, 12, "it is not needed"),
                Ok(found) => assert!((9..=12).contains(&found), "{case}: {found}"),
                Err(kind) => assert_eq!(kind, ErrorKind::Corrupted, "{case}"),
            }
        }
    }
    println!("{damages} changed bytes are damage, {cuts} cut the tail");
    assert!(damages > 500 && cuts > 500);
    Ok(())
}

/// A changed document is one that a person has edited: never taken for the state of the journal.
#[test]
fn a_document_that_is_cut_or_changed_is_refused_behind_commits() -> Result<()> {
    let sample = crashed()?;
    let text = sample.read(FILE).expect("reads").expect("a document");
    for at in 0..text.len() {
        for cut in [false, true] {
            let disk = sample.copy();
            disk.with_file(FILE, |file| match cut {
                true => file.truncate(at),
                false => file[at] ^= 1,
            });
            let kind = opened(&disk, &format!("byte {at}")).expect_err("it is another text");
            assert!(matches!(kind, ErrorKind::Conflict | ErrorKind::InvalidInput), "{kind:?}");
            disk.with_file(FILE, |file| file.clone_from(&text));
            assert_eq!(opened(&disk, "put back"), Ok(12));
        }
    }
    Ok(())
}
