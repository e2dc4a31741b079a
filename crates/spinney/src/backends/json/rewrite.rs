//! Printing the file anew, while commits go on.
//!
//! A new generation of the journal begins with the state that is printed. The content is announced in
//! the journal, durably, before it takes the place of the old one: whatever a crash leaves, the
//! journal knows it.

use std::sync::Arc;
use std::time::Instant;

use spinney_core::backend::{Backend, Snapshot};
use spinney_core::diff::Diff;
use spinney_core::history::Entry;
use spinney_core::view::View;
use spinney_core::{Error, Result};

use super::notes::{Content, Note};
use super::print::print_into;
use super::store::{Printed, Store};

impl Store {
    /// Brings the file to the newest revision.
    pub fn rewrite(&self) -> Result<()> {
        if self.is_read_only() {
            return Err(Error::read_only(format!(
                "`{}` was opened read-only; open it to write",
                self.files.file.display()
            )));
        }
        let mut printed = self.file();
        self.look_at(&mut printed)?;
        let tail = self.tail();
        let next = tail.journal.end().generation + 1;
        let is_behind = printed.must_print || tail.revision != tail.content.revision;
        drop(tail);
        if printed.is_free && is_behind {
            // The next generation is understood only behind the present one.
            self.sync_all()?;
            // Commits would wait for the new file otherwise.
            self.segments().reserve(next, 1)?;
        }

        let mut tail = self.landed_tail();
        self.refuse_after_failure(&tail)?;
        if !is_behind && tail.revision == tail.content.revision {
            return Ok(());
        }
        if printed.is_free {
            if let Err(error) = tail.start() {
                return Err(tail.fail(error, self.group.synced()));
            }
            printed.is_free = false;
        }
        let snapshot = self.memory.snapshot()?;
        let revision = tail.revision;
        let diffs = tail.take_diffs();
        drop(tail);

        let replaced = self
            .announce(&printed, &*snapshot, revision, &diffs)
            .and_then(|content| self.replace(&mut printed, content, snapshot));
        let mut tail = self.tail();
        let content = match replaced {
            Ok(content) => content,
            Err(error) => {
                tail.give_back(diffs);
                return Err(error);
            }
        };
        tail.content = content.clone();
        tail.note(&Note::Replaced(content.clone()), self.group.synced())?;
        drop(tail);
        printed.is_free = true;
        printed.since = Instant::now();
        // An edit of what is there now must not look like one behind commits.
        self.sync_all()?;
        self.files.put_side(&content.side)
    }

    /// Writes the text of a state beside the file, and its content to the journal, durably.
    fn announce(
        &self,
        printed: &Printed,
        snapshot: &dyn Snapshot,
        revision: u64,
        diffs: &[Arc<[u8]>],
    ) -> Result<Content> {
        let known = self.known_text(printed)?;
        let known = known.ok_or_else(|| Error::conflict("it was edited just now"))?;
        let text = self.print(printed, Some(&known), snapshot, diffs)?;
        let side = self.place.side(snapshot, self.key_len_max(), text.len())?.print()?;
        let content = Content::new(&text, side, revision);
        self.files.prepare(&text)?;
        let mut tail = self.tail();
        tail.note(&Note::Announced(content.clone()), self.group.synced())?;
        let end = tail.journal.end();
        drop(tail);
        self.sync_until(end)?;
        Ok(content)
    }

    /// Puts what was announced in the place of the file. Where only the sync fails it is there.
    fn replace(
        &self,
        printed: &mut Printed,
        content: Content,
        snapshot: Box<dyn Snapshot>,
    ) -> Result<Content> {
        self.files.replace()?;
        printed.on_disk = content.clone();
        printed.base = Some(snapshot);
        printed.must_print = false;
        printed.stamp = self.files.stamp()?;
        self.files.sync_folder()?;
        Ok(content)
    }

    /// The text in the file; `None` when it is another one than this store knows.
    pub fn known_text(&self, printed: &Printed) -> Result<Option<Vec<u8>>> {
        let text = self.files.read()?.unwrap_or_default();
        Ok(Content::new(&text, Vec::new(), 0).is_same(&printed.on_disk).then_some(text))
    }

    /// The text of a state, before which these diffs came behind the text in the file: made of that
    /// one, as far as it is known and is of a state of this store.
    pub fn print(
        &self,
        printed: &Printed,
        known: Option<&[u8]>,
        snapshot: &dyn Snapshot,
        diffs: &[Arc<[u8]>],
    ) -> Result<Vec<u8>> {
        let key_len_max = self.key_len_max();
        match (&printed.base, known) {
            (Some(base), Some(text)) => {
                let now = View { snapshot, key_len_max };
                let before = View { snapshot: &**base, key_len_max };
                print_into(text, &before, &now, &self.place.0, &decoded(diffs, &self.place.0)?)
            }
            _ => self.place.print(snapshot, key_len_max),
        }
    }

    /// Looks whether a person has edited the file, and has come to an end: the second look that finds
    /// the same reads it.
    pub fn look(&self) -> Result<()> {
        let mut printed = self.file();
        let stamp = self.files.stamp()?;
        let is_settled = printed.seen.replace(stamp) == Some(stamp);
        if !is_settled || printed.refused.is_some() && printed.refused == stamp {
            return Ok(());
        }
        let looked = self.look_at(&mut printed);
        // Once is enough; a rewrite says it again.
        printed.refused = if looked.is_err() { stamp } else { None };
        let must_print = printed.must_print;
        drop(printed);
        looked?;
        if must_print { self.rewrite() } else { Ok(()) }
    }

    fn look_at(&self, printed: &mut Printed) -> Result<()> {
        let stamp = self.files.stamp()?;
        if stamp == printed.stamp {
            return Ok(());
        }
        let text = self.files.read()?;
        let found = Content::new(text.as_deref().unwrap_or_default(), Vec::new(), 0);
        if !found.is_same(&printed.on_disk) {
            self.take_over(printed, text.as_deref())?;
        }
        printed.stamp = stamp;
        Ok(())
    }
}

fn decoded(diffs: &[Arc<[u8]>], place: &str) -> Result<Vec<Diff>> {
    let decode = |entry: &Arc<[u8]>| {
        let mut diff = Entry::decode(entry)?.diff;
        diff.begin_below(place);
        Ok(diff)
    };
    diffs.iter().map(decode).collect()
}
