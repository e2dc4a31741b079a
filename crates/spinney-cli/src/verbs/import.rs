//! `import`: a file becomes a part of the tree, as a stream.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use spinney::formats::{Dialect, Framing, ReadOptions};
use spinney::path::Display;
use spinney::{Existing, Result};

use super::set::reopen;
use crate::global::{Global, Write};
use crate::input::Input;
use crate::progress;

/// `spinney import`.
#[derive(Args)]
#[command(after_help = "\
The file is read as a stream, so it may be larger than memory. It replaces what stands at the path, \
all at once: until it is complete, and if anything in it is wrong, others see the old content. \
Without a path it replaces the whole store, and must be an object: its members are the trees.

Examples:
  spinney import people.json /people
  spinney import settings.json5 /settings
  zcat log.jsonl.gz | spinney import - /log --format jsonl")]
pub struct Import {
    /// The file; `-` reads stdin
    file: PathBuf,

    /// Path that it replaces; without it the whole store
    #[arg(default_value = "", hide_default_value = true)]
    path: String,

    /// What the file holds; without it the file's extension tells, or else it is JSON
    #[arg(long, value_enum)]
    format: Option<Format>,

    /// Read the members that start with `$spinney:` as metadata and bytes
    #[arg(long)]
    tagged: bool,

    #[command(flatten)]
    write: Write,
}

/// A format of files.
#[derive(Clone, Copy, ValueEnum)]
pub enum Format {
    /// RFC 8259
    Json,
    /// JSON with comments, trailing commas, unquoted keys
    Json5,
    /// JSON Lines: one value a line, which become a list
    Jsonl,
}

impl Import {
    pub fn run(self, global: &Global) -> Result<()> {
        spinney::path::check(&self.path)?;
        let input = Input::of_file(&self.file);
        let mut opened = Some(input.open()?);
        let len = opened.as_ref().and_then(|opened| opened.len);
        let store = global.open_or_create(&self.write)?;
        global.note_new_root(&store, &self.path)?;
        let bar = progress::bytes("importing", len, global.quiet);
        let mut read_bytes = 0;
        let written = store.write(|transaction| {
            transaction.set_with(&self.path, Existing::Any, |visitor| {
                let opened = reopen(&input, &mut opened)?;
                let mut progress = |bytes| {
                    read_bytes = bytes;
                    bar.set_position(bytes);
                };
                let options = self.options(&mut progress);
                input.parse(opened, options, visitor)
            })
        });
        bar.finish_and_clear();
        let revision = written?.revision;
        let bar = progress::activity("reclaiming what was replaced", global.quiet);
        store.wait_until_reclaimed();
        bar.finish_and_clear();
        let path = Display(&self.path);
        global.note(&format!("imported {read_bytes} bytes to {path}, revision {revision}"));
        Ok(())
    }

    fn options<'a>(&self, progress: &'a mut dyn FnMut(u64)) -> ReadOptions<'a> {
        let input = Input::of_file(&self.file);
        let (dialect, framing) = self.format.unwrap_or_else(|| Format::of(&input)).grammar();
        ReadOptions { dialect, framing, tagged: self.tagged, progress: Some(progress) }
    }
}

impl Format {
    /// What the extension of a file tells, or else JSON.
    pub fn of(input: &Input) -> Format {
        let extension = match input {
            Input::File(path) => path.extension().map(|extension| extension.to_ascii_lowercase()),
            _ => None,
        };
        match extension.as_ref().and_then(|extension| extension.to_str()) {
            Some("json5" | "jsonc") => Format::Json5,
            Some("jsonl" | "ndjson") => Format::Jsonl,
            _ => Format::Json,
        }
    }

    /// As the reader calls it.
    pub fn grammar(self) -> (Dialect, Framing) {
        match self {
            Format::Json => (Dialect::Json, Framing::One),
            Format::Json5 => (Dialect::Json5, Framing::One),
            Format::Jsonl => (Dialect::Json, Framing::Lines),
        }
    }
}
