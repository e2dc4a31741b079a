//! `checkpoint`, `compact` and `backup`: the store as a whole.

use std::path::PathBuf;

use clap::Args;
use spinney::Result;

use crate::global::{Global, Write};
use crate::progress;

/// `spinney checkpoint`.
#[derive(Args)]
#[command(after_help = "\
Commits are written to a journal first and folded into the store when it is long, when nobody commits \
for a second, and when the last program closes the store. This does it now.

Examples:
  spinney checkpoint
  spinney checkpoint --store lmdb:/var/lib/people")]
pub struct Checkpoint {}

impl Checkpoint {
    pub fn run(self, global: &Global) -> Result<()> {
        global.open_to_change(&Write::default())?.checkpoint()
    }
}

/// `spinney compact`.
#[derive(Args)]
#[command(after_help = "\
Removed content is reclaimed, so that new content takes its place. The file of LMDB itself never \
shrinks while it may be in use; `spinney backup` writes a small copy.

Examples:
  spinney compact
  spinney compact --store lmdb:/var/lib/people")]
pub struct Compact {}

impl Compact {
    pub fn run(self, global: &Global) -> Result<()> {
        let store = global.open_to_change(&Write::default())?;
        let bar = progress::activity("compacting", global.quiet);
        let compacted = store.reclaim().and_then(|records| Ok((records, store.compact()?)));
        bar.finish_and_clear();
        let (records, bytes) = compacted?;
        global.note(&format!("reclaimed {records} records, gave {bytes} bytes back to the system"));
        Ok(())
    }
}

/// `spinney backup`.
#[derive(Args)]
#[command(after_help = "\
The copy is one consistent state, however many others write meanwhile. It is a store of its own and \
holds no unused space.

Examples:
  spinney backup /backup/people-2026-01-31
  spinney get /people/42 --store /backup/people-2026-01-31")]
pub struct Backup {
    /// Directory of the copy; it must not exist
    target: PathBuf,
}

impl Backup {
    pub fn run(self, global: &Global) -> Result<()> {
        let store = global.open_to_read()?;
        let bar = progress::activity("copying", global.quiet);
        let copied = store.backup(&self.target);
        bar.finish_and_clear();
        copied?;
        global.note(&format!("the backup is in `{}`", self.target.display()));
        Ok(())
    }
}
