//! Files that are cut short or changed behind the journal's back.

use super::*;

/// Twelve records in two generations; each but the last of its sync knows the one before as synced.
fn sample() -> Result<Disk<()>> {
    let disk = Disk::new();
    let (mut journal, ..) = recover(&disk, NONE)?;
    let mut synced = Position::default();
    for revision in 1..=12 {
        if revision == 8 {
            journal.start(b"n")?;
        }
        let body = vec![revision as u8; 40 * revision as usize];
        journal.append(&Entry { revision, commit_id: 9, body: &body }, synced)?;
        journal.write()?;
        if revision % 3 == 0 {
            synced = journal.end();
        }
    }
    Ok(disk)
}

fn assert_prefix(read: &Read, at_least: u64, case: &str) {
    let revisions = read.revisions();
    assert_eq!(revisions, (1..=revisions.len() as u64).collect::<Vec<_>>(), "{case}");
    assert!(revisions.len() as u64 >= at_least, "{case}: {} are left", revisions.len());
    for (revision, body) in &read.entries {
        assert_eq!(*body, vec![*revision as u8; 40 * *revision as usize], "{case}");
    }
}

#[test]
fn truncation_at_any_byte_is_found() -> Result<()> {
    let sample = sample()?;
    assert_prefix(&recover(&sample, NONE)?.2, 12, "whole");
    for name in ["journal.0", "journal.1"] {
        for len in 1..sample.with_file(name, |file| file.len()) {
            let disk = sample.copy();
            disk.with_file(name, |file| file.truncate(len));
            let error =
                recover(&disk, NONE).err().unwrap_or_else(|| panic!("{name} of {len} bytes"));
            assert_eq!(error.kind(), ErrorKind::Corrupted, "{error}");
            let message = error.to_string();
            assert!(message.contains(name), "{message}");
        }
    }
    // Without the first generation, which was synced, the second is not taken for the state.
    let disk = sample.copy();
    disk.with_file("journal.1", Vec::clear);
    assert_eq!(recover(&disk, NONE).err().map(|error| error.kind()), Some(ErrorKind::Corrupted));
    Ok(())
}

/// Revisions up to 9 are known to be synced by a later record; 10 to 12 are the tail.
#[test]
fn a_changed_byte_is_damage_or_cuts_the_tail() -> Result<()> {
    let sample = sample()?;
    let (mut cuts, mut damages) = (0, 0);
    for name in ["journal.0", "journal.1"] {
        for at in 0..sample.with_file(name, |file| file.len()) {
            let disk = sample.copy();
            disk.with_file(name, |file| file[at] ^= 1 << (at % 8));
            let case = format!("{name}, byte {at}");
            match recover(&disk, NONE) {
                Ok((_, recovered, read)) => {
                    assert_prefix(&read, 9, &case);
                    cuts += usize::from(recovered.cut.is_some());
                }
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Corrupted, "{case}");
                    assert!(error.to_string().contains(name), "{case}: {error}");
                    damages += 1;
                }
            }
        }
    }
    println!("{damages} changed bytes are damage, {cuts} cut the tail");
    assert!(damages > 2_000 && cuts > 500);
    Ok(())
}

#[test]
fn a_full_disk_refuses_and_leaves_the_journal() -> Result<()> {
    let disk = Disk::<()>::new();
    let (mut journal, ..) = recover(&disk, NONE)?;
    disk.set_room(6_000);
    let mut revision = 0;
    let refused = loop {
        let before = journal.end();
        if let Err(error) = append(&mut journal, revision + 1, &[7; 300]) {
            assert_eq!(journal.end(), before);
            break error;
        }
        revision += 1;
    };
    assert_eq!(refused.kind(), ErrorKind::Io);
    journal.write()?;
    assert_eq!(recover(&disk, NONE)?.2.revisions().len() as u64, revision);
    disk.set_room(u64::MAX);
    append(&mut journal, revision + 1, &[7; 300])?;
    journal.write()?;
    assert_eq!(recover(&disk, NONE)?.2.revisions().len() as u64, revision + 1);
    Ok(())
}
