//! `schema`: what must hold at a path, for good.

use std::io::Write as _;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use spinney::formats::ReadOptions;
use spinney::path::Display;
use spinney::schemas::SchemaOptions;
use spinney::value::ValueBuilder;
use spinney::{Error, ErrorKind, Result};

use crate::global::{Global, Write};
use crate::input::Input;
use crate::output::{cannot_write, stdout};

/// `spinney schema`.
#[derive(Args)]
pub struct Schema {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Attach a JSON Schema to a path; commits that would break it are refused from then on
    Set(Set),
    /// Judge all of what is at a path by its schema
    Check(Check),
    /// Take the schema of a path away
    Remove(Remove),
    /// Tell what each keyword looks at when something changes
    Explain(Explain),
    /// Print the paths that have a schema
    List,
}

#[derive(Args)]
#[command(after_help = "\
The schema may be of draft 4, 6, 7, 2019-09 or 2020-12, which is the default. Nothing is fetched that it
refers to. When what is stored does not fit, nothing is attached and all that is wrong is told.

Examples:
  spinney schema set /people people.schema.json
  spinney schema set /settings - <settings.schema.json")]
struct Set {
    /// Path that it is attached to
    path: String,

    /// The file with the schema; `-` reads stdin
    file: PathBuf,

    /// Whether the keyword `format` refuses; without this it does up to draft 7
    #[arg(long, value_name = "BOOL")]
    formats: Option<bool>,

    #[command(flatten)]
    write: Write,
}

#[derive(Args)]
struct Check {
    /// Path that the schema is attached to
    path: String,
}

#[derive(Args)]
struct Remove {
    /// Path that the schema is attached to
    path: String,

    #[command(flatten)]
    write: Write,
}

#[derive(Args)]
struct Explain {
    /// Path that the schema is attached to
    path: String,
}

impl Schema {
    pub fn run(self, global: &Global) -> Result<()> {
        match self.verb {
            Verb::Set(verb) => verb.run(global),
            Verb::Check(verb) => verb.run(global),
            Verb::Remove(verb) => verb.run(global),
            Verb::Explain(verb) => verb.run(global),
            Verb::List => list(global),
        }
    }
}

impl Set {
    fn run(self, global: &Global) -> Result<()> {
        let input = Input::of_file(&self.file);
        let mut builder = ValueBuilder::default();
        input
            .parse(input.open()?, ReadOptions::default(), &mut builder)
            .map_err(|error| error.at(format!("schema set {}", Display(&self.path))))?;
        let schema = builder.finish().expect("the reader gives exactly one value");
        let store = global.open_or_create(&self.write)?;
        let options = SchemaOptions { assert_formats: self.formats };
        store.set_schema(&self.path, &schema, options).map(drop)
    }
}

impl Check {
    fn run(self, global: &Global) -> Result<()> {
        let report = global.open_to_read()?.check_schema(&self.path)?;
        if report.is_valid() {
            global.note(&format!("{} fits its schema", Display(&self.path)));
            return Ok(());
        }
        let mut out = stdout();
        writeln!(out, "{report}").and_then(|()| out.flush()).map_err(cannot_write)?;
        let text = format!("{} does not fit its schema", Display(&self.path));
        Err(Error::new(ErrorKind::Invalid, text))
    }
}

impl Remove {
    fn run(self, global: &Global) -> Result<()> {
        global.open_to_change(&self.write)?.remove_schema(&self.path).map(drop)
    }
}

impl Explain {
    fn run(self, global: &Global) -> Result<()> {
        let mut out = stdout();
        for explained in global.open_to_read()?.explain_schema(&self.path)? {
            let (location, cost, why) = (explained.location, explained.cost, explained.why);
            writeln!(out, "{location}\t{cost}\t{why}").map_err(cannot_write)?;
        }
        out.flush().map_err(cannot_write)
    }
}

fn list(global: &Global) -> Result<()> {
    let mut out = stdout();
    for (path, _) in global.open_to_read()?.schemas()? {
        writeln!(out, "{}", &*path).map_err(cannot_write)?;
    }
    out.flush().map_err(cannot_write)
}
