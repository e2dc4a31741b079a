//! `copy-store`: everything in a store to another one, on whatever backends.

use clap::Args;
use spinney::Result;
use spinney::network::redacted;

use crate::global::{Global, Write, to_read};
use crate::progress;

/// `spinney copy-store`.
#[derive(Args)]
#[command(after_help = "\
Trees are copied with the ids of their list elements, metadata, bytes and attached schemas; history is \
not: that of the copy begins with it. Access rules and locks stay behind. FROM may be in use; one state of it is copied, as a stream.

TO is made, or must be empty. All of it becomes visible at once, when it is durable; then it is read \
back and compared. Whatever comes between, TO stays empty, and the command can be given again.

A JSON file is one tree, whose members are the trees of FROM or TO; its schemas are in its side file, \
and go along, too.

Examples:
  spinney copy-store people.store fjall:people.fjall
  spinney copy-store lmdb:people.store json:people.json")]
pub struct CopyStore {
    /// The store that is copied, as `--store` names one
    from: String,

    /// The store that becomes the copy
    to: String,

    #[command(flatten)]
    write: Write,
}

impl CopyStore {
    pub fn run(self, global: &Global) -> Result<()> {
        let from = global.seated(to_read().open(&self.from)?)?.read()?;
        let to = global.seated(self.write.options().open(&self.to)?)?;
        let bar = progress::bytes("copying", None, global.quiet);
        let copied = to.copy_from(&from, &mut |bytes| bar.set_position(bytes));
        bar.finish_and_clear();
        let to_url = redacted(&self.to);
        let copied = copied.map_err(|error| error.at(format_args!("copy to `{to_url}`")))?;
        // What a copy that was killed has built ahead.
        to.wait_until_reclaimed();
        let (bytes, revision) = (copied.text_len_bytes, copied.revision);
        global.note(&format!(
            "copied {bytes} bytes of text to `{to_url}`, revision {revision}; read back, it is the same"
        ));
        Ok(())
    }
}
