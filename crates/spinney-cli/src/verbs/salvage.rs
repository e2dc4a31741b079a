//! `salvage`: what can still be read of a damaged store.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use spinney::path::Display;
use spinney::{ErrorKind, Path, Result};

use crate::global::Global;
use crate::message;
use crate::output::{Form, cannot_write, write_to};

/// `spinney salvage`.
#[derive(Args)]
#[command(after_help = "\
The export keeps metadata and bytes (`import --tagged` reads it). Each place where something is lost \
is named on stderr with the reason; the exit code is then 12. Elements of a list close up behind a \
loss.

Examples:
  spinney salvage -o salvaged.json
  spinney import salvaged.json --tagged --store lmdb:new-store")]
pub struct Salvage {
    /// Write to this file, which is replaced once the export is complete; `-` is stdout
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl Salvage {
    pub fn run(self, global: &Global) -> Result<ExitCode> {
        let snapshot = global.read_damaged()?;
        let form = Form { pretty: false, lossy: false, tagged: true };
        let mut losses = 0_u64;
        write_to(self.output.as_deref(), |out| {
            let mut writer = form.writer(out, Path::root());
            snapshot.salvage(&mut writer, &mut |loss| {
                losses += 1;
                let path = Display(&loss.path);
                message::print_note(&format!("lost at {path}: {}", message::text(&loss.error)));
            })?;
            let out = writer.finish()?;
            out.write_all(b"\n").and_then(|()| out.flush()).map_err(cannot_write)
        })?;
        match losses {
            0 => {
                global.note("nothing is lost");
                Ok(ExitCode::SUCCESS)
            }
            _ => {
                global.note("what is named above is lost; all else is saved");
                Ok(ExitCode::from(ErrorKind::Corrupted.exit_code()))
            }
        }
    }
}
