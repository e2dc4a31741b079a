//! Opening: the file and its journal become one state, whatever a crash or an editor did to them.
//!
//! The journal says which contents the file has had ([`Content`]). The file is one of them, and then
//! the commits behind it are made again; or it is another one, and then a person has edited it.

use std::sync::Arc;

use spinney_core::backend::{Backend, Revision, Snapshot};
use spinney_core::history::{self, Entry};
use spinney_core::{Error, Memory, Result};

use super::document::{self, Place, in_file};
use super::files::Files;
use super::notes::{self, Content, Note};
use super::side::Side;
use crate::journal::{Checkpointed, Event, Found, Journal};

/// Which one to take when the file was edited and the journal has commits that it lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Take {
    /// The file; the journal is set aside under another name.
    File,
    /// Both: the journal's commits are made again on the edited file. A commit that finds nothing
    /// where it belongs refuses the opening.
    Journal,
}

/// What opening has found.
pub struct Opened {
    pub memory: Memory,
    pub journal: Journal,
    pub content: Content,
    /// The state that the file holds.
    pub base: Box<dyn Snapshot>,
    /// What was made again on it; empty for nothing.
    pub diff: Vec<u8>,
    /// The journal does not say yet that the file has its content.
    pub is_replaced: bool,
    /// The files of the journal belong under other names.
    pub is_set_aside: bool,
    /// The generation before the present one is in the file.
    pub is_free: bool,
}

/// A commit of the journal.
struct Logged {
    generation: u64,
    revision: Revision,
    diff: Vec<u8>,
}

/// The journal as it is read.
#[derive(Default)]
struct History {
    contents: Vec<Content>,
    /// The newest revision that the file is known to have had.
    replaced: Revision,
    logged: Vec<Logged>,
    generation: u64,
    /// The newest revision of all.
    revision: Revision,
}

/// Puts the file and the journal together. Nothing is written.
pub fn recover(
    files: &Files,
    place: &Place,
    mut journal: Journal,
    text: &[u8],
    take: Option<Take>,
) -> Result<Opened> {
    let mut content = Content::new(text, Vec::new(), 0);
    let history = read(&mut journal, &content)?;
    let known = history.known(&content).cloned();
    let first = history.first(&content);
    if !history.is_gapless_behind(first) && (known.is_some() || take != Some(Take::File)) {
        return Err(Error::corrupted(format!(
            "the journal of `{}` lacks the commits behind revision {first}; restore a backup",
            files.file.display()
        )));
    }
    let is_new_content = known.is_none() && !history.contents.is_empty();
    let is_replaced = is_new_content || history.replaced < first;
    let mut revision = history.revision;
    let mut is_set_aside = false;
    let mut behind: Vec<Logged> = Vec::new();
    behind.extend(history.logged.into_iter().filter(|logged| logged.revision > first));
    content.side = match &known {
        Some(known) => known.side.clone(),
        None => files.read_side()?,
    };
    if known.is_none() && !behind.is_empty() {
        match take {
            None => return Err(edited(files, behind.len())),
            Some(Take::File) => {
                journal.restart(Checkpointed::default());
                is_set_aside = true;
                behind.clear();
            }
            Some(Take::Journal) => {}
        }
    }

    let side = Side::parse(&content.side)
        .map_err(|error| error.at(format_args!("`{}`", files.side().display())))?;
    let memory = Memory::new().keeping_diffs();
    place.load(&memory, text, &side).map_err(|error| in_file(&files.file, error))?;
    content.revision = match (&known, behind.is_empty()) {
        (Some(_), _) | (None, false) => first,
        (None, true) if is_new_content => revision + 1,
        (None, true) => document::revision(&memory)?,
    };
    revision = revision.max(content.revision);
    let base = memory.snapshot()?;
    let is_free = !behind.iter().any(|logged| logged.generation < history.generation);
    let diffs: Vec<Vec<u8>> = behind.into_iter().map(|logged| logged.diff).collect();
    let same_ids = known.is_some() && !side.lacks_ids;
    let diff = place.replay(&memory, &diffs, same_ids).map_err(|error| {
        error.at(format_args!("the journal of `{}` does not fit it", files.file.display()))
    })?;
    if document::revision(&memory)? != revision {
        memory.renumber(revision)?;
    }
    let is_same = diff.is_empty();
    let diff = if is_same { Vec::new() } else { Entry::encode(&history::Note::default(), &diff) };
    Ok(Opened { memory, journal, content, base, diff, is_replaced, is_set_aside, is_free })
}

/// Reads what is behind a content of the file: the newest generation of the journal, and the one
/// before it only when that is needed, since otherwise the next one may have begun in its place.
fn read(journal: &mut Journal, content: &Content) -> Result<History> {
    let mut found = journal.found()?;
    loop {
        let checkpointed = match found.pop() {
            None => Checkpointed::default(),
            // Without its first record, recovery tells a torn generation from a damaged one.
            Some(Found { generation, before }) => {
                before.unwrap_or(Checkpointed { generation: generation - 1, checksum: 0 })
            }
        };
        let mut history = History::default();
        journal.recover(checkpointed, &mut |event| history.take(event))?;
        if found.is_empty() || history.is_gapless_behind(history.first(content)) {
            return Ok(history);
        }
    }
}

impl History {
    fn take(&mut self, event: Event<'_>) -> Result<()> {
        match event {
            Event::Start { generation, note, .. } => {
                self.generation = generation;
                let (revision, content) = notes::decode_start(note)?;
                self.revision = self.revision.max(revision);
                self.replaced(content);
            }
            Event::Entry(entry) => match Note::decode(entry.body)? {
                Note::Diff(diff) => {
                    self.revision = self.revision.max(entry.revision);
                    self.logged.push(Logged {
                        generation: self.generation,
                        revision: entry.revision,
                        diff: diff.to_vec(),
                    });
                }
                Note::Announced(content) => self.contents.push(content),
                Note::Replaced(content) => self.replaced(content),
            },
        }
        Ok(())
    }

    /// A content that the file has had before, by its bytes.
    fn known(&self, content: &Content) -> Option<&Content> {
        self.contents.iter().rev().find(|known| known.is_same(content))
    }

    /// The revision behind which commits are made again on a content of the file: on an unknown one
    /// those that the file has never had.
    fn first(&self, content: &Content) -> Revision {
        self.known(content).map_or(self.replaced, |known| known.revision)
    }

    fn is_gapless_behind(&self, first: Revision) -> bool {
        let behind = self.logged.iter().map(|logged| logged.revision);
        behind.filter(|revision| *revision > first).eq(first + 1..=self.revision)
    }

    fn replaced(&mut self, content: Content) {
        self.replaced = content.revision;
        self.revision = self.revision.max(content.revision);
        self.contents.push(content);
    }
}

#[cold]
fn edited(files: &Files, commits: usize) -> Error {
    let commits = match commits {
        1 => "a commit".to_owned(),
        _ => format!("{commits} commits"),
    };
    Error::conflict(format!(
        "`{}` was edited, and its journal has {commits} that the file lacks; choose `--take \
         file` (the journal is set aside) or `--take journal` (what it has is made again on the file)",
        files.file.display()
    ))
}

/// The diffs of a state that was put together, as commits are kept.
impl Opened {
    pub fn diffs(&self) -> Vec<Arc<[u8]>> {
        match self.diff.is_empty() {
            true => Vec::new(),
            false => vec![Arc::from(&*self.diff)],
        }
    }
}
