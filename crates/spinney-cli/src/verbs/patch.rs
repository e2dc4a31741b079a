//! `patch` and `merge`: changes that are documents themselves.

use std::path::PathBuf;

use clap::Args;
use spinney::Result;
use spinney::formats::ReadOptions;
use spinney::path::Display;
use spinney::value::ValueBuilder;

use super::set::reopen;
use crate::condition::Condition;
use crate::global::{Global, Write};
use crate::input::Input;

/// `spinney patch`.
#[derive(Args)]
#[command(after_help = "\
The file is a JSON Patch (RFC 6902): a list of operations `add`, `remove`, `replace`, `move`, `copy` \
and `test`, whose paths begin at PATH. If one fails, nothing has changed. `test` compares numbers by \
their value: 1 equals 1.0.

Examples:
  echo '[{\"op\": \"remove\", \"path\": \"/phone\"}]' | spinney patch /people/42 -
  spinney patch \"\" changes.json
  spinney diff /running new.json --patch | spinney patch /running -")]
pub struct Patch {
    /// Path of the document that is changed; `""` is the whole store
    path: String,

    /// The patch; `-` reads stdin
    file: PathBuf,

    /// Read values that start with `$spinney:` as bytes
    #[arg(long)]
    tagged: bool,

    #[command(flatten)]
    condition: Condition,

    #[command(flatten)]
    write: Write,
}

impl Patch {
    pub fn run(self, global: &Global) -> Result<()> {
        spinney::path::check(&self.path)?;
        let condition = self.condition.ready("patch")?;
        let input = Input::of_file(&self.file);
        let mut opened = Some(input.open()?);
        let store = global.open_to_change(&self.write)?;
        store.write(|transaction| {
            condition.check(transaction, &self.path)?;
            transaction.patch_with(&self.path, |visitor| {
                let options = ReadOptions { tagged: self.tagged, ..ReadOptions::default() };
                input.parse(reopen(&input, &mut opened)?, options, visitor)
            })
        })?;
        store.wait_until_reclaimed();
        Ok(())
    }
}

/// `spinney merge`.
#[derive(Args)]
#[command(after_help = "\
The file is a JSON Merge Patch (RFC 7396): objects are merged member by member, a member that is `null` \
is removed, and all else replaces what is there, lists as a whole. What it does not name stays, and \
what it does not change is not written.

Examples:
  echo '{\"city\": \"London\", \"phone\": null}' | spinney merge /people/42 -
  spinney merge \"\" settings.json")]
pub struct Merge {
    /// Path of the node that it is merged into; `""` is the whole store
    path: String,

    /// The merge patch; `-` reads stdin
    file: PathBuf,

    #[command(flatten)]
    condition: Condition,

    #[command(flatten)]
    write: Write,
}

impl Merge {
    pub fn run(self, global: &Global) -> Result<()> {
        spinney::path::check(&self.path)?;
        let condition = self.condition.ready("merge")?;
        let input = Input::of_file(&self.file);
        let mut builder = ValueBuilder::default();
        input
            .parse(input.open()?, ReadOptions::default(), &mut builder)
            .map_err(|error| error.at(format_args!("merge {}", Display(&self.path))))?;
        let patch = builder.finish().expect("the reader gives exactly one value");
        let store = global.open_or_create(&self.write)?;
        global.note_new_root(&store, &self.path)?;
        store.write(|transaction| {
            condition.check(transaction, &self.path)?;
            transaction.merge(&self.path, &patch)
        })?;
        store.wait_until_reclaimed();
        Ok(())
    }
}
