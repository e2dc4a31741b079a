//! `schema`: what must hold at a path, for good.

use std::io::Write as _;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use spinney::datastores::Datastore;
use spinney::formats::ReadOptions;
use spinney::layers::Stack;
use spinney::path::Display;
use spinney::schemas::{Explained, SchemaEntry, SchemaOptions};
use spinney::value::ValueBuilder;
use spinney::{Error, ErrorKind, Result, Store};

use crate::global::{Global, Write};
use crate::input::Input;
use crate::output::{cannot_write, stdout};
use crate::place::Tree;

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
    Check(Place),
    /// Take the schema of a path away
    Remove(Remove),
    /// Tell what each keyword looks at when something changes
    Explain(Place),
    /// Print the paths that have a schema, with the stack that they are in
    List,
}

#[derive(Args)]
#[command(after_help = "\
The schema may be of draft 4, 6, 7, 2019-09 or 2020-12, which is the default. Nothing is fetched that it \
refers to. When what is stored does not fit, nothing is attached and all that is wrong is told.

With --stack or --datastore it judges the tree that the layers are read as: whichever layer a commit changes, and \
one that changes which layers there are. Their paths begin at its root.

Examples:
  spinney schema set /people people.schema.json
  spinney schema set /settings - <settings.schema.json
  spinney schema set --stack settings /editor editor.schema.json
  spinney schema set --datastore operational '' state.schema.json")]
struct Set {
    #[command(flatten)]
    place: Place,

    /// The file with the schema; `-` reads stdin
    file: PathBuf,

    /// Whether the keyword `format` refuses; without this it does up to draft 7
    #[arg(long, value_name = "BOOL")]
    formats: Option<bool>,

    #[command(flatten)]
    write: Write,
}

#[derive(Args)]
struct Remove {
    #[command(flatten)]
    place: Place,

    #[command(flatten)]
    write: Write,
}

/// What a schema is attached to.
#[derive(Args)]
struct Place {
    /// Path that the schema is attached to
    path: String,

    #[command(flatten)]
    tree: Tree,
}

impl Place {
    /// The stack that the path is in; `None` when it is the store itself.
    fn stack(&self, store: &Store) -> Result<Option<Stack>> {
        if self.tree.is(Datastore::Candidate) {
            return Err(Error::unsupported(
                "the candidate is judged by the schemas of `running`, when it is committed and by `datastore \
                 validate`; attach the schema there: `-d running`",
            ));
        }
        self.tree.followed(store)
    }
}

impl Schema {
    pub fn run(self, global: &Global) -> Result<()> {
        match self.verb {
            Verb::Set(verb) => verb.run(global),
            Verb::Check(place) => check(&place, global),
            Verb::Remove(verb) => verb.run(global),
            Verb::Explain(place) => explain(&place, global),
            Verb::List => list(global),
        }
    }
}

impl Set {
    fn run(self, global: &Global) -> Result<()> {
        let input = Input::of_file(&self.file);
        let mut builder = ValueBuilder::default();
        let path = &self.place.path;
        input
            .parse(input.open()?, ReadOptions::default(), &mut builder)
            .map_err(|error| error.at(format!("schema set {}", Display(path))))?;
        let schema = builder.finish().expect("the reader gives exactly one value");
        let store = global.open_or_create(&self.write)?;
        let options = SchemaOptions { assert_formats: self.formats };
        match self.place.stack(&store)? {
            Some(stack) => stack.set_schema(path, &schema, options).map(drop),
            None => store.set_schema(path, &schema, options).map(drop),
        }
    }
}

fn check(place: &Place, global: &Global) -> Result<()> {
    let store = global.open_to_read()?;
    let report = match place.stack(&store)? {
        Some(stack) => stack.check_schema(&place.path)?,
        None => store.check_schema(&place.path)?,
    };
    if report.is_valid() {
        global.note(&format!("{} fits its schema", Display(&place.path)));
        return Ok(());
    }
    let mut out = stdout();
    writeln!(out, "{report}").and_then(|()| out.flush()).map_err(cannot_write)?;
    let text = format!("{} does not fit its schema", Display(&place.path));
    Err(Error::new(ErrorKind::Invalid, text))
}

impl Remove {
    fn run(self, global: &Global) -> Result<()> {
        let store = global.open_to_change(&self.write)?;
        match self.place.stack(&store)? {
            Some(stack) => stack.remove_schema(&self.place.path).map(drop),
            None => store.remove_schema(&self.place.path).map(drop),
        }
    }
}

fn explain(place: &Place, global: &Global) -> Result<()> {
    let store = global.open_to_read()?;
    let explained = match place.stack(&store)? {
        Some(stack) => stack.explain_schema(&place.path)?,
        None => store.explain_schema(&place.path)?,
    };
    let mut out = stdout();
    for Explained { location, cost, why } in explained {
        writeln!(out, "{location}\t{cost}\t{why}").map_err(cannot_write)?;
    }
    out.flush().map_err(cannot_write)
}

fn list(global: &Global) -> Result<()> {
    let mut out = stdout();
    for SchemaEntry { stack, path, .. } in global.open_to_read()?.schemas()? {
        match stack {
            Some(stack) => writeln!(out, "{}\t{stack}", &*path).map_err(cannot_write)?,
            None => writeln!(out, "{}", &*path).map_err(cannot_write)?,
        }
    }
    out.flush().map_err(cannot_write)
}
