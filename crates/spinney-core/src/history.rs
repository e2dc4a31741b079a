//! The change log: what each commit changed, by whom and when, and how to undo it.
//!
//! A log record holds the commit's [`Entry`] and, for each record that the commit changed, what was
//! there before: an older state is the newest one with these laid over it. Records of ids that the
//! commit itself gave out need none, since nothing older refers to them; and what it removed stays
//! stored until its log record is trimmed (see [`crate::reclaim`]).

use std::collections::HashMap;
use std::ops::Bound;
use std::sync::Arc;

use crate::attempts;
use crate::backend::{Backend, Change, Direction, RecordKey, Revision, Snapshot};
use crate::byte_diff;
use crate::check;
use crate::diff::Diff;
use crate::error::{Error, Result};
use crate::layout::{PREFIX_LEN, RecordKind, prefix};
use crate::overlay::{Layered, Overlay};
use crate::reclaim;
use crate::record::{SEAL_LEN, damaged, seal, unseal};
use crate::varint;
use crate::view::View;

/// How much history a store keeps: whatever comes first.
///
/// Bytes are those of the log, and of what removals have left for older states to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Revisions; up to 15 more stay until the next trim (default: 1 000). With 0 nothing is logged, and
    /// what was is forgotten.
    pub revisions_max: u64,
    /// Bytes (default: 64 MiB). Below it, history never takes more than the data itself, or 1 MiB;
    /// but the last [`KEPT_MIN`] revisions stay, so that what was just removed can come back.
    pub len_max_bytes: u64,
    /// Age in milliseconds (default: any).
    pub age_max_ms: Option<u64>,
}

/// The last revisions that stay though there is less data than history.
pub const KEPT_MIN: usize = 16;

/// Bytes up to which history is kept whatever the data takes.
const LEN_MIN: u64 = 1 << 20;

impl Retention {
    /// What fits most stores.
    pub const DEFAULT: Retention =
        Retention { revisions_max: 1_000, len_max_bytes: 64 << 20, age_max_ms: None };

    /// The first revision that stays.
    fn first(&self, commits: &[Kept], live_len: u64, now_ms: u64) -> Revision {
        let soft_max = self.len_max_bytes.min(live_len.max(LEN_MIN));
        let mut len = 0;
        for (newer, commit) in commits.iter().enumerate() {
            len += commit.len;
            let is_old =
                self.age_max_ms.is_some_and(|max| commit.time_ms.saturating_add(max) < now_ms);
            let len_max = if newer < KEPT_MIN { self.len_max_bytes } else { soft_max };
            if newer as u64 >= self.revisions_max || is_old || len > len_max {
                return commit.revision + 1;
            }
        }
        0
    }
}

/// A logged commit and what it keeps.
struct Kept {
    revision: Revision,
    time_ms: u64,
    len: u64,
}

/// Bytes of an author and of a message.
pub const NOTE_LEN_MAX: usize = 4_096;

/// What a commit says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Note {
    /// Names the commit, so that one whose answer was lost can be recognised.
    pub commit_id: u128,
    /// When it was made, in milliseconds since 1970; 0 where nobody said.
    pub time_ms: u64,
    /// Who made it; empty where nobody said.
    pub author: String,
    /// Why; empty where nobody said.
    pub message: String,
}

/// What a commit did: what batches carry, and the log keeps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// What it says of itself.
    pub note: Note,
    /// What it changed.
    pub diff: Diff,
}

impl Entry {
    /// The encoded form: see `docs/format.md`.
    pub fn encode(note: &Note, diff: &Diff) -> Vec<u8> {
        let mut out = Vec::with_capacity(64 + 64 * diff.ops.len());
        out.extend_from_slice(&note.commit_id.to_be_bytes());
        varint::write(note.time_ms, &mut out);
        varint::write_bytes(note.author.as_bytes(), &mut out);
        varint::write_bytes(note.message.as_bytes(), &mut out);
        diff.encode_into(&mut out);
        out
    }

    /// Reads the encoded form.
    ///
    /// # Errors
    /// `Corrupted` when the bytes are no entry.
    pub fn decode(bytes: &[u8]) -> Result<Entry> {
        let mut at = 16;
        let mut note = || {
            let commit_id = u128::from_be_bytes(*bytes.first_chunk()?);
            let time_ms = varint::read(bytes, &mut at)?;
            let mut text = || {
                let text = varint::read_bytes(bytes, &mut at)?;
                Some(std::str::from_utf8(text).ok()?.to_owned())
            };
            Some(Note { commit_id, time_ms, author: text()?, message: text()? })
        };
        let note = note().ok_or_else(|| Error::corrupted("the note of a commit does not read"))?;
        Ok(Entry { note, diff: Diff::decode(&bytes[at..])? })
    }
}

/// What a record was before a commit.
enum Before<'a> {
    Absent,
    Whole(&'a [u8]),
    /// As a [`byte_diff`] of what the commit made of it.
    Patch(&'a [u8]),
}

/// Collects what a commit's records were before.
pub struct Undo {
    encoded: Vec<u8>,
}

/// Bytes that there is room for at first: what a small commit takes.
const UNDO_LEN_USUAL: usize = 512;

impl Default for Undo {
    fn default() -> Undo {
        Undo { encoded: Vec::with_capacity(UNDO_LEN_USUAL) }
    }
}

impl Undo {
    /// Notes what a record was before; nothing, where it neither was nor is.
    pub fn add(&mut self, key: &[u8], before: Option<&[u8]>, after: Option<&[u8]>) {
        let out = &mut self.encoded;
        let Some(before) = before else {
            if after.is_some() {
                varint::write_bytes(key, out);
                out.push(0);
            }
            return;
        };
        varint::write_bytes(key, out);
        let tag_at = out.len();
        out.push(2);
        let mut patch = Vec::with_capacity(UNDO_LEN_USUAL / 2);
        match after.is_some_and(|after| byte_diff::encode(after, before, &mut patch)) {
            true => varint::write_bytes(&patch, out),
            false => {
                out[tag_at] = 1;
                varint::write_bytes(before, out);
            }
        }
    }

    /// As [`Undo::add`], for a record that may be gone by the time it is undone.
    pub fn add_whole(&mut self, key: &[u8], before: Option<&[u8]>) {
        varint::write_bytes(key, &mut self.encoded);
        self.encoded.push(u8::from(before.is_some()));
        if let Some(before) = before {
            varint::write_bytes(before, &mut self.encoded);
        }
    }
}

fn read_before<'a>(bytes: &'a [u8], at: &mut usize) -> Option<(&'a [u8], Before<'a>)> {
    let key = varint::read_bytes(bytes, at)?;
    let tag = *bytes.get(*at)?;
    *at += 1;
    let before = match tag {
        0 => Before::Absent,
        1 => Before::Whole(varint::read_bytes(bytes, at)?),
        2 => Before::Patch(varint::read_bytes(bytes, at)?),
        _ => return None,
    };
    Some((key, before))
}

/// The engine key of a revision's log record.
pub fn log_key(revision: Revision) -> [u8; PREFIX_LEN] {
    prefix(0, RecordKind::Log, revision)
}

/// The sealed log record of a revision.
pub fn encode_record(revision: Revision, entry: &[u8], undo: &Undo) -> Vec<u8> {
    let mut record = Vec::with_capacity(SEAL_LEN + 10 + entry.len() + undo.encoded.len());
    record.extend_from_slice(&[0; SEAL_LEN]);
    varint::write_bytes(entry, &mut record);
    record.extend_from_slice(&undo.encoded);
    seal(&log_key(revision), &mut record);
    record
}

/// The entry and the undo part of a log record.
fn open_record<'r>(key: &[u8], record: &'r [u8]) -> Result<(&'r [u8], &'r [u8])> {
    let mut at = unseal(key, record)?;
    match varint::read_bytes(record, &mut at) {
        Some(entry) => Ok((entry, &record[at..])),
        None => Err(damaged(key, "its entry does not read")),
    }
}

/// A logged commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Logged {
    /// The revision that it made.
    pub revision: Revision,
    /// What it did.
    pub entry: Entry,
}

/// The change log of one state.
#[derive(Clone, Copy)]
pub struct History<'s> {
    snapshot: &'s dyn Snapshot,
}

impl<'s> History<'s> {
    /// Of a state.
    pub fn of(snapshot: &'s dyn Snapshot) -> History<'s> {
        History { snapshot }
    }

    /// The first revision that is logged; `None` when none is.
    ///
    /// # Errors
    /// Those of the backend.
    pub fn first(&self) -> Result<Option<Revision>> {
        match self.records(0, Direction::Forward)?.next() {
            None => Ok(None),
            Some(record) => Ok(Some(revision_of(&record?.0)?)),
        }
    }

    /// The revisions that are logged, in order.
    ///
    /// # Errors
    /// Those of the backend.
    pub fn revisions(&self) -> Result<Vec<Revision>> {
        self.records(0, Direction::Forward)?.map(|record| revision_of(&record?.0)).collect()
    }

    /// The logged commits from a revision on, in order.
    ///
    /// # Errors
    /// Those of the backend; `Corrupted` for each one that is damaged.
    pub fn since(&self, first: Revision) -> Result<impl Iterator<Item = Result<Logged>> + use<'s>> {
        Ok(self.records(first, Direction::Forward)?.map(|record| logged(record?)))
    }

    /// Hands over the commits behind a revision, in order, until `each` answers false.
    ///
    /// # Errors
    /// `NotFound` when the log does not reach back so far; as [`History::since`], and those of `each`.
    pub fn each_since(
        &self,
        since: Revision,
        each: &mut dyn FnMut(Logged) -> Result<bool>,
    ) -> Result<()> {
        let newest = self.snapshot.revision()?;
        let mut next = since + 1;
        for logged in self.since(next)? {
            let logged = logged?;
            if logged.revision != next {
                break;
            }
            if !each(logged)? {
                return Ok(());
            }
            next += 1;
        }
        match next > newest {
            true => Ok(()),
            false => Err(Error::not_found(format!(
                "what was committed after revision {since} is not kept any more; read it again"
            ))),
        }
    }

    /// The logged commits from the newest to the oldest.
    ///
    /// # Errors
    /// As [`History::since`].
    pub fn backwards(&self) -> Result<impl Iterator<Item = Result<Logged>> + use<'s>> {
        Ok(self.records(0, Direction::Backward)?.map(|record| logged(record?)))
    }

    /// Looks at each log record and whether the revisions are without a gap; returns how many there
    /// are.
    ///
    /// # Errors
    /// `Corrupted` for the first that is damaged or missing.
    pub fn check(&self) -> Result<u64> {
        let (mut count, mut last) = (0, None);
        for record in self.records(0, Direction::Forward)? {
            let (key, record) = record?;
            let revision = revision_of(&key)?;
            if last.is_some_and(|last| last + 1 != revision) {
                return Err(damaged(&key, "the one before it is missing"));
            }
            let (entry, undo) = open_record(&key, &record)?;
            Entry::decode(entry)?;
            let mut at = 0;
            while at < undo.len() {
                read_before(undo, &mut at)
                    .ok_or_else(|| damaged(&key, "its undo part does not read"))?;
            }
            (count, last) = (count + 1, Some(revision));
        }
        Ok(count)
    }

    /// What differs in an older state, as records to lay over this one.
    ///
    /// # Errors
    /// `NotFound` when the revision is in the future or its log is trimmed; `Corrupted` for damage.
    ///
    /// # Complexity
    /// That of what changed since.
    pub fn undone_to(&self, revision: Revision) -> Result<Overlay> {
        let mut undone = Overlay::default();
        self.undo_to(revision, |_, _, overlay| {
            undone = overlay;
            Ok(())
        })?;
        Ok(undone)
    }

    /// Goes back to an older state, commit by commit: calls `undone` with the revision of each one, the
    /// newest first, with its encoded [`Entry`], and with what to lay over this state for the one
    /// before it.
    ///
    /// # Errors
    /// As [`History::undone_to`], and those of `undone`.
    pub fn undo_to(
        &self,
        revision: Revision,
        mut undone: impl FnMut(Revision, &[u8], Overlay) -> Result<()>,
    ) -> Result<()> {
        let newest = self.snapshot.revision()?;
        if revision > newest {
            return Err(in_future(revision, newest));
        }
        let mut overlay = Overlay::default();
        let mut next = newest;
        for record in self.records(revision + 1, Direction::Backward)? {
            let (key, record) = record?;
            if revision_of(&key)? != next {
                break;
            }
            let (entry, undo) = open_record(&key, &record)?;
            self.undo(&key, undo, &mut overlay)?;
            undone(next, entry, overlay.clone())?;
            next -= 1;
        }
        match next == revision {
            true => Ok(()),
            false => Err(trimmed(revision, next)),
        }
    }

    fn undo(&self, log_key: &[u8], undo: &[u8], overlay: &mut Overlay) -> Result<()> {
        let mut at = 0;
        while at < undo.len() {
            let bad = || damaged(log_key, "its undo part does not read");
            let (key, before) = read_before(undo, &mut at).ok_or_else(bad)?;
            let before: Option<Arc<[u8]>> = match before {
                Before::Absent => None,
                Before::Whole(bytes) => Some(bytes.into()),
                Before::Patch(patch) => {
                    let after = match overlay.staged(key) {
                        Some(staged) => staged.clone().map(|bytes| bytes.to_vec().into()),
                        None => self.snapshot.get(key)?,
                    };
                    let after = after.ok_or_else(|| damaged(key, "it is missing"))?;
                    Some(byte_diff::apply(&after, patch).ok_or_else(bad)?.into())
                }
            };
            overlay.stage(RecordKey::from(key), before);
        }
        Ok(())
    }

    fn records(
        &self,
        first: Revision,
        direction: Direction,
    ) -> Result<crate::backend::Records<'s>> {
        let (from, to) = (log_key(first), log_key(Revision::MAX));
        self.snapshot.range((Bound::Included(&from[..]), Bound::Included(&to[..])), direction)
    }
}

/// An older state of a store; reading it costs what reading the newest does.
///
/// # Errors
/// As [`History::undone_to`].
pub fn at(snapshot: Box<dyn Snapshot>, revision: Revision) -> Result<Layered<Box<dyn Snapshot>>> {
    let overlay = History::of(&*snapshot).undone_to(revision)?;
    Ok(overlay.over(snapshot))
}

/// Bytes from which on what was weighed is noted, so that it is not read again.
const NOTE_WEIGHTS_FROM: u64 = 64 << 10;

/// Trims the log to what a retention keeps; returns how many commits it forgot.
///
/// # Errors
/// Those of the backend.
///
/// # Complexity
/// O(commits in the log), and the size of what was removed and not weighed yet.
pub fn keep(
    backend: &dyn Backend,
    retention: &Retention,
    now_ms: u64,
    needed: impl Fn(&View<'_>) -> Result<Revision>,
) -> Result<u64> {
    let snapshot = backend.snapshot()?;
    let history = History::of(&*snapshot);
    let mut held: HashMap<Revision, u64> = HashMap::new();
    let (mut weighed, mut weighed_len) = (Vec::new(), 0);
    for tree in check::trees(&*snapshot)? {
        for item in reclaim::held(&*snapshot, tree)? {
            let of_revision = held.entry(item.removed).or_default();
            match item.weight {
                Some(weight) => *of_revision += weight,
                None => {
                    let weight = reclaim::weigh(&*snapshot, &item)?;
                    *of_revision += weight;
                    weighed_len += weight;
                    weighed.push(reclaim::Item { weight: Some(weight), ..item });
                }
            }
        }
    }
    let mut commits = Vec::new();
    for record in history.records(0, Direction::Backward)? {
        let (key, record) = record?;
        let revision = revision_of(&key)?;
        let time_ms = match retention.age_max_ms {
            None => 0,
            Some(_) => Entry::decode(open_record(&key, &record)?.0)?.note.time_ms,
        };
        let len = (key.len() + record.len()) as u64 + held.get(&revision).copied().unwrap_or(0);
        commits.push(Kept { revision, time_ms, len });
    }
    let history_len: u64 = commits.iter().map(|commit| commit.len).sum();
    let live_len = match history_len <= LEN_MIN {
        true => 0,
        false => len_of(backend, &*snapshot)?.saturating_sub(history_len),
    };
    let first = retention.first(&commits, live_len, now_ms);
    drop(snapshot);
    weighed.retain(|item| item.removed >= first);
    if weighed_len >= NOTE_WEIGHTS_FROM && !weighed.is_empty() {
        reclaim::note_weights(backend, &weighed)?;
    }
    if first == 0 { Ok(0) } else { trim_unneeded(backend, first, needed) }
}

/// Bytes that a store takes.
fn len_of(backend: &dyn Backend, snapshot: &dyn Snapshot) -> Result<u64> {
    if let Some(len) = backend.len_bytes()? {
        return Ok(len);
    }
    let mut len = 0;
    for record in snapshot.range((Bound::Unbounded, Bound::Unbounded), Direction::Forward)? {
        let (key, value) = record?;
        len += (key.len() + value.len()) as u64;
    }
    Ok(len)
}

/// Trims the log to a first revision; returns how many commits it forgot.
///
/// # Errors
/// Those of the backend.
pub fn trim(backend: &dyn Backend, first: Revision) -> Result<u64> {
    trim_unneeded(backend, first, |_| Ok(Revision::MAX))
}

/// As [`trim`], but no further than to the first revision that is needed of the state.
///
/// # Errors
/// Those of the backend, and of `needed`.
pub fn trim_unneeded(
    backend: &dyn Backend,
    first: Revision,
    needed: impl Fn(&View<'_>) -> Result<Revision>,
) -> Result<u64> {
    let key_len_max = backend.capabilities().key_len_max;
    attempts::maintain(backend, |snapshot| {
        let newest = snapshot.revision()?;
        let first = first.min(newest + 1).min(needed(&View { snapshot, key_len_max })?);
        let mut changes = Vec::new();
        for record in History::of(snapshot).records(0, Direction::Forward)? {
            let (key, _) = record?;
            if revision_of(&key)? >= first {
                break;
            }
            changes.push(Change::Delete((&*key).into()));
        }
        let trimmed = changes.len() as u64;
        Ok((changes, trimmed))
    })
}

fn revision_of(key: &[u8]) -> Result<Revision> {
    match key.strip_prefix(&log_key(0)[..PREFIX_LEN - 8]).and_then(|rest| rest.first_chunk()) {
        Some(revision) => Ok(Revision::from_be_bytes(*revision)),
        None => Err(damaged(key, "it is no key of the log")),
    }
}

fn logged((key, record): crate::backend::Record<'_>) -> Result<Logged> {
    let (entry, _) = open_record(&key, &record)?;
    let entry = Entry::decode(entry).map_err(|_| damaged(&key, "its entry does not read"))?;
    Ok(Logged { revision: revision_of(&key)?, entry })
}

/// The error for a revision that nobody has made yet.
#[cold]
pub fn in_future(revision: Revision, newest: Revision) -> Error {
    let text = format!("revision {revision} does not exist yet; the newest is {newest}");
    Error::not_found(text)
}

#[cold]
fn trimmed(revision: Revision, first: Revision) -> Error {
    Error::not_found(format!(
        "revision {revision} is not kept any more; the oldest that is kept is {first}"
    ))
}
