//! `export`: the tree, or a part of it, as JSON, as a stream.

use std::path::PathBuf;

use clap::Args;
use spinney::Result;

use crate::global::Global;
use crate::output::{Form, write_to};
use crate::place::At;

/// `spinney export`.
#[derive(Args)]
#[command(after_help = "\
JSON has no form for metadata and bytes: where the tree holds some, the export fails unless \
`--lossy` drops them or `--tagged` keeps them, which `import --tagged` reads back.

Examples:
  spinney export > all.json
  spinney export /people -o people.json --pretty
  spinney export --tagged -o everything.json")]
pub struct Export {
    /// Path of the node; without it the whole store
    #[arg(default_value = "", hide_default_value = true)]
    path: String,

    /// Write to this file, which is replaced once the export is complete; `-` is stdout
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,

    #[command(flatten)]
    form: Form,

    #[command(flatten)]
    at: At,
}

impl Export {
    pub fn run(self, global: &Global) -> Result<()> {
        let snapshot = self.at.read(global, &self.path)?;
        write_to(self.output.as_deref(), |out| {
            self.form.print("export", &snapshot, &self.path, out)
        })
    }
}
