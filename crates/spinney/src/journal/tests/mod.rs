//! The journal on a simulated disk.

mod damage;
mod group;
mod power;

use std::sync::Arc;

use spinney_core::{ErrorKind, Result};

use super::simulated::Disk;
use super::{
    Checkpointed, Entry, Event, Followed, Group, Holder, Journal, Landing, Position, Recovered,
    Segments, Sizes,
};

/// Small files, so that they grow within a short history.
const SIZES: Sizes = Sizes { first: 4_096, step_max: 8_192 };

/// Before the first checkpoint.
const NONE: Checkpointed = Checkpointed { generation: 0, checksum: 0 };

fn journal<M: Clone + Send + 'static>(disk: &Disk<M>) -> Journal {
    Journal::new(Segments::new(Arc::new(disk.clone()), "journal", SIZES))
}

impl Holder for Journal {
    fn journal(&mut self) -> &mut Journal {
        self
    }
}

fn append(journal: &mut Journal, revision: u64, body: &[u8]) -> Result<()> {
    let entry = Entry { revision, commit_id: u128::from(revision) << 70 | 1, body };
    journal.append(&entry, Position::default())
}

/// What a recovery reads: revisions and bodies, and the notes of starts.
#[derive(Debug, Default, PartialEq, Eq)]
struct Read {
    entries: Vec<(u64, Vec<u8>)>,
    notes: Vec<(u64, Vec<u8>)>,
}

impl Read {
    fn take(&mut self, event: Event<'_>) -> Result<()> {
        match event {
            Event::Start { generation, note, .. } => self.notes.push((generation, note.to_vec())),
            Event::Entry(entry) => self.entries.push((entry.revision, entry.body.to_vec())),
        }
        Ok(())
    }

    fn revisions(&self) -> Vec<u64> {
        self.entries.iter().map(|(revision, _)| *revision).collect()
    }
}

fn recover<M: Clone + Send + 'static>(
    disk: &Disk<M>,
    checkpointed: Checkpointed,
) -> Result<(Journal, Recovered, Read)> {
    let (mut journal, mut read) = (journal(disk), Read::default());
    let recovered = journal.recover(checkpointed, &mut |event| read.take(event))?;
    Ok((journal, recovered, read))
}

#[test]
fn what_was_written_is_read_again() -> Result<()> {
    let disk = Disk::<()>::new();
    let (mut journal, recovered, read) = recover(&disk, NONE)?;
    assert_eq!((recovered.end, read), (Position { generation: 1, offset: 0 }, Read::default()));
    append(&mut journal, 1, b"one")?;
    append(&mut journal, 2, &[2; 9_000])?;
    assert_eq!(recover(&disk, NONE)?.2, Read::default(), "nothing is written yet");
    journal.write()?;
    assert_eq!(journal.written(), journal.end());
    let first = journal.checkpoint();
    journal.start(b"note")?;
    append(&mut journal, 3, b"")?;
    journal.write()?;

    let (again, recovered, read) = recover(&disk, NONE)?;
    assert_eq!((again.end(), recovered.cut), (journal.end(), None));
    assert_eq!(read.revisions(), [1, 2, 3]);
    assert_eq!((&*read.entries[0].1, read.entries[1].1.len()), (&b"one"[..], 9_000));
    assert_eq!(read.notes, [(1, vec![]), (2, b"note".to_vec())]);
    assert_eq!(recover(&disk, first)?.2.revisions(), [3]);
    assert!(recover(&disk, journal.checkpoint())?.2.revisions().is_empty());
    let another = Checkpointed { checksum: first.checksum + 1, ..first };
    assert!(recover(&disk, another)?.2.revisions().is_empty(), "it follows another end");
    assert!(journal.segments().disk_len()? > 9_000);
    journal.segments().remove()?;
    let end = recover(&disk, journal.checkpoint())?.0.end();
    assert_eq!(end, Position { generation: 3, offset: 0 });
    Ok(())
}

#[test]
fn files_are_used_again() -> Result<()> {
    let disk = Disk::<()>::new();
    let (mut journal, ..) = recover(&disk, NONE)?;
    let (mut revision, mut before, mut checkpointed) = (0, NONE, NONE);
    for generation in 1..=7 {
        if generation > 1 {
            (checkpointed, before) = (before, journal.checkpoint());
            journal.start(b"")?;
        }
        for _ in 0..40 - 3 * generation {
            revision += 1;
            append(&mut journal, revision, &vec![0; 50 * generation as usize])?;
            journal.write()?;
            let (again, recovered, read) = recover(&disk, checkpointed)?;
            assert_eq!((again.end(), recovered.cut), (journal.end(), None));
            assert_eq!(read.entries.last().expect("an entry").0, revision);
        }
    }
    let beyond = Checkpointed::beyond(7);
    journal.restart(beyond);
    append(&mut journal, revision + 1, b"")?;
    journal.write()?;
    assert_eq!(recover(&disk, beyond)?.2.revisions(), [revision + 1]);
    assert_eq!(recover(&disk, before).err().map(|error| error.kind()), Some(ErrorKind::Corrupted));
    Ok(())
}

#[test]
fn another_process_follows() -> Result<()> {
    let disk = Disk::<()>::new();
    let (mut writer, ..) = recover(&disk, NONE)?;
    let (mut reader, mut read) = (journal(&disk), Read::default());
    reader.restart(NONE);
    let mut follow = |reader: &mut Journal, to| reader.follow(to, &mut |event| read.take(event));
    for revision in 1..=30 {
        if revision % 7 == 0 {
            writer.start(b"")?;
        }
        append(&mut writer, revision, &[3; 700])?;
        writer.write()?;
        if revision % 3 != 0 {
            assert_eq!(follow(&mut reader, writer.end())?, Followed::Reached, "{revision}");
        }
    }
    assert_eq!(follow(&mut reader, writer.end())?, Followed::Reached);
    assert_eq!(reader.end(), writer.end());
    let beyond = Checkpointed::beyond(writer.end().generation);
    writer.restart(beyond);
    append(&mut writer, 31, b"")?;
    writer.write()?;
    assert_eq!(follow(&mut reader, writer.end())?, Followed::Gone);
    reader.restart(beyond);
    assert_eq!(follow(&mut reader, writer.end())?, Followed::Reached);
    assert_eq!(read.revisions(), (1..=31).collect::<Vec<_>>());
    Ok(())
}

/// Whoever takes over goes on at what was published; what a dead writer left behind that is not read.
#[test]
fn what_a_dead_writer_did_not_publish_is_overwritten() -> Result<()> {
    for next_generation in [false, true] {
        let disk = Disk::<()>::new();
        let (mut dead, ..) = recover(&disk, NONE)?;
        append(&mut dead, 1, b"published")?;
        dead.write()?;
        let published = dead.end();
        for revision in 2..6 {
            append(&mut dead, revision, &[1; 120])?;
        }
        dead.write()?;
        let mut heir = journal(&disk);
        heir.restart(NONE);
        assert_eq!(heir.follow(published, &mut |_| Ok(()))?, Followed::Reached);
        let mut follower = journal(&disk);
        follower.restart(NONE);
        if next_generation {
            heir.start(b"")?;
        }
        append(&mut heir, 2, &[2; 120])?;
        heir.write()?;
        let mut read = Read::default();
        let followed = follower.follow(heir.end(), &mut |event| read.take(event))?;
        assert_eq!(followed, Followed::Reached);
        assert_eq!((read.revisions(), read.entries[1].1[0]), (vec![1, 2], 2));
        let (again, _, read) = recover(&disk, NONE)?;
        assert_eq!((read.revisions(), read.entries[1].1[0]), (vec![1, 2], 2));
        assert_eq!(again.end(), heir.end());
    }
    Ok(())
}

#[test]
fn positions_pack_in_order() {
    let positions =
        [(0, 0), (1, 0), (1, 8), (1, super::GENERATION_LEN_MAX - 8), (2, 0), (1 << 35, 64)];
    let positions = positions.map(|(generation, offset)| Position { generation, offset });
    assert!(positions.is_sorted() && positions.map(Position::pack).is_sorted());
    assert_eq!(positions.map(|position| Position::unpack(position.pack())), positions);
}
