//! The document as text and as a tree: the only part of this backend, with the rewriting, that knows
//! trees. It uses them as any user does.

use spinney_core::backend::{Backend, Revision, Snapshot};
use spinney_core::diff::Diff;
use spinney_core::history::Entry;
use spinney_core::index::Derived;
use spinney_core::transaction::{Commit, Existing, Proposed, Review, Transaction};
use spinney_core::view::View;
use spinney_core::{Error, ErrorKind, Memory, Path, Result};

use super::print::Style;
use super::side::{Annotate, Collect, Side};
use crate::formats::{self, Dialect, Fidelity, JsonWriter, Layout};
#[cfg(feature = "schema")]
use crate::{locks::Passes, schemas};

/// Where the document lies in the store below.
#[derive(Clone, Debug)]
pub struct Place(pub Path);

impl Place {
    /// Makes the tree that a text is. Returns whether there was anything in it to commit.
    pub fn load(&self, memory: &Memory, text: &[u8], side: &Side) -> Result<()> {
        let mut transaction = Transaction::begin(memory)?;
        transaction.set_base_path(self.0.clone());
        transaction.set_with("", Existing::Any, |visitor| match side.is_empty() {
            true => formats::read(text, Dialect::Json, visitor),
            false => formats::read(text, Dialect::Json, &mut Annotate::new(visitor, side)),
        })?;
        self.attach(&mut transaction, side)?;
        self.commit(transaction, 0, || Ok(())).map(drop)
    }

    /// Commits what the schemas of the document allow, after `before`.
    ///
    /// # Errors
    /// `Invalid` when they do not; those of `before` and of the commit. Nothing has changed then.
    pub fn commit(
        &self,
        transaction: Transaction<'_>,
        commit_id: u128,
        before: impl FnMut() -> Result<()>,
    ) -> Result<Commit> {
        #[cfg(feature = "schema")]
        let schemas = schemas::Cache::default();
        #[cfg(feature = "schema")]
        let mut guard = schemas::Guard::new(&schemas, &self.0, None, Passes::Nothing);
        let mut then = Then(before);
        let mut reviewers: Vec<&mut dyn Review> = Vec::new();
        #[cfg(feature = "schema")]
        reviewers.push(&mut guard);
        reviewers.push(&mut then);
        transaction.commit_reviewed(commit_id, Some(&mut reviewers))
    }

    /// Attaches the schemas that the side file has.
    #[cfg(feature = "schema")]
    fn attach(&self, transaction: &mut Transaction<'_>, side: &Side) -> Result<()> {
        let Some(schemas) = schemas::carried(side.schemas.as_ref(), &self.0)? else {
            return Ok(());
        };
        transaction.at_root(|transaction| transaction.set(schemas::TREE, &schemas))
    }

    #[cfg(not(feature = "schema"))]
    fn attach(&self, _transaction: &mut Transaction<'_>, side: &Side) -> Result<()> {
        match side.schemas {
            None => Ok(()),
            Some(_) => Err(Error::unsupported(
                "the side file has schemas, and this build judges none; build it with the feature `schema`",
            )),
        }
    }

    /// Makes commits again; returns the diff of all of them together. With `same_ids` the elements of
    /// lists have the ids that they had then, else they are found by their positions.
    pub fn replay(&self, memory: &Memory, diffs: &[Vec<u8>], same_ids: bool) -> Result<Diff> {
        let mut transaction = Transaction::begin(memory)?;
        for diff in diffs {
            let Entry { diff, .. } = Entry::decode(diff)?;
            match same_ids {
                true => transaction.apply(&diff)?,
                false => transaction.apply_by_position(&diff)?,
            }
        }
        Ok(self.commit(transaction, 0, || Ok(()))?.diff)
    }

    /// Prints a state from scratch.
    pub fn print(&self, snapshot: &dyn Snapshot, key_len_max: usize) -> Result<Vec<u8>> {
        let view = View { snapshot, key_len_max };
        let mut writer = JsonWriter::new(Vec::new(), Layout::Compact, Fidelity::Lossy);
        self.visit(&view, &mut writer)?;
        let compact = writer.finish()?;
        let mut text = Vec::with_capacity(compact.len() + compact.len() / 2);
        Style::usual().lay_out(&compact, Some(""), &mut text);
        text.push(b'\n');
        Ok(text)
    }

    /// What the text of a state, of so many bytes, leaves out.
    pub fn side(
        &self,
        snapshot: &dyn Snapshot,
        key_len_max: usize,
        text_len: usize,
    ) -> Result<Side> {
        let mut collect = Collect::default();
        let view = View { snapshot, key_len_max };
        self.visit(&view, &mut collect)?;
        #[cfg(feature = "schema")]
        let schemas = schemas::carry(&view, &self.0)?;
        #[cfg(not(feature = "schema"))]
        let schemas = None;
        Ok(collect.finish(text_len, schemas))
    }

    pub fn visit(&self, view: &View<'_>, visitor: &mut impl spinney_core::Visitor) -> Result<()> {
        let root =
            view.resolve(&self.0)?.ok_or_else(|| Error::corrupted("the document is gone"))?;
        view.walk(&root, visitor)
    }
}

/// Something that comes last before a commit is made.
struct Then<F>(F);

impl<F: FnMut() -> Result<()>> Review for Then<F> {
    fn review(&mut self, _: &Proposed<'_>, _: &mut Vec<Derived>) -> Result<()> {
        (self.0)()
    }
}

/// The newest revision of a store.
pub fn revision(memory: &Memory) -> Result<Revision> {
    memory.snapshot()?.revision()
}

/// Says which file a text came from.
pub fn in_file(file: &std::path::Path, error: Error) -> Error {
    match error.kind() {
        ErrorKind::InvalidInput => error.at(format_args!("`{}` is not JSON", file.display())),
        _ => error.at(format_args!("`{}`", file.display())),
    }
}
