//! `set`: one value, from the command line, a file or stdin.

use clap::Args;
use spinney::formats::{Dialect, ReadOptions};
use spinney::path::Display;
use spinney::value::ValueBuilder;
use spinney::{Error, Existing, Result, Scalar, Store, Visitor};

use crate::condition::Condition;
use crate::global::{Global, Write};
use crate::input::{Input, Opened};
use crate::place::Place;

/// `spinney set`.
#[derive(Args)]
#[command(after_help = "\
Maps that are missing on the way are made. In a list the last segment is a position that exists, \
or `-` to append.

Examples:
  spinney set /people/42/name '\"Ada\"'
  spinney set /people @people.json
  curl -s https://example.org/x.json | spinney set /x -
  spinney set /people/42/photo @photo.jpg --bytes
  spinney set /stock/42 4 --if-value 5
  spinney set --datastore candidate /interfaces/eth0/mtu 9000")]
pub struct Set {
    /// Path of the node
    path: String,

    /// The value as JSON; `@FILE` reads it from a file, `-` from stdin
    #[arg(value_name = "JSON|@FILE|-", allow_negative_numbers = true)]
    value: String,

    /// Fail if there is a node already
    #[arg(long, conflicts_with_all = ["stack", "datastore"])]
    create: bool,

    /// Fail unless there is a node already
    #[arg(long, conflicts_with_all = ["create", "stack", "datastore"])]
    replace: bool,

    #[command(flatten)]
    condition: Condition,

    /// Store the argument, file or stdin as bytes, not as JSON
    #[arg(long, conflicts_with_all = ["json5", "tagged"])]
    bytes: bool,

    /// Read JSON5: comments, trailing commas, unquoted keys
    #[arg(long)]
    json5: bool,

    /// Read the members that start with `$spinney:` as metadata and bytes
    #[arg(long, conflicts_with_all = ["stack", "datastore"])]
    tagged: bool,

    #[command(flatten)]
    place: Place,

    #[command(flatten)]
    write: Write,
}

impl Set {
    pub fn run(self, global: &Global) -> Result<()> {
        spinney::path::check(&self.path)?;
        let condition = self.condition.ready("set")?;
        let input = Input::of_value(&self.value);
        // What cannot be opened makes no store.
        let mut opened = Some(input.open()?);
        if let (Input::Text(_), false) = (&input, self.bytes) {
            // A store that did not exist is not made for a typing error.
            self.parse(&input, input.open()?, &mut Ignore)
                .map_err(|error| error.at(format!("set {}", Display(&self.path))))?;
        }
        let store = global.open_or_create(&self.write)?;
        if !self.place.is_store() {
            condition.refuse()?;
            return self.set_in_layer(&store, &input, opened.take());
        }
        global.note_new_root(&store, &self.path)?;
        store.write(|transaction| {
            condition.check(transaction, &self.path)?;
            transaction.set_with(&self.path, self.existing(), |visitor| {
                let opened = reopen(&input, &mut opened)?;
                match self.bytes {
                    true => visitor.scalar(Scalar::Bytes(&input.read_bytes(opened)?)),
                    false => self.parse(&input, opened, visitor),
                }
            })
        })?;
        store.wait_until_reclaimed();
        Ok(())
    }

    fn set_in_layer(&self, store: &Store, input: &Input, opened: Option<Opened>) -> Result<()> {
        let mut builder = ValueBuilder::default();
        let opened = opened.map_or_else(|| input.open(), Ok)?;
        match self.bytes {
            true => builder.scalar(Scalar::Bytes(&input.read_bytes(opened)?))?,
            false => self
                .parse(input, opened, &mut builder)
                .map_err(|error| error.at(format!("set {}", Display(&self.path))))?,
        }
        let value = builder.finish().expect("the reader gives exactly one value");
        self.place.edit(store, &self.write, |edit| edit.set(&self.path, &value))
    }

    fn existing(&self) -> Existing {
        match (self.create, self.replace) {
            (true, _) => Existing::MustNot,
            (_, true) => Existing::Must,
            _ => Existing::Any,
        }
    }

    fn parse(
        &self,
        input: &Input,
        opened: Opened,
        visitor: &mut (impl Visitor + ?Sized),
    ) -> Result<()> {
        let dialect = if self.json5 { Dialect::Json5 } else { Dialect::Json };
        let options = ReadOptions { dialect, tagged: self.tagged, ..ReadOptions::default() };
        input.parse(opened, options, visitor)
    }
}

/// The input from its beginning, again where another writer came first.
pub fn reopen(input: &Input, opened: &mut Option<Opened>) -> Result<Opened> {
    match (opened.take(), input) {
        (Some(opened), _) => Ok(opened),
        (None, Input::Stdin) => Err(Error::conflict(
            "the store changed while stdin was read, which can be read only once; try again",
        )),
        (None, _) => input.open(),
    }
}

/// Takes a value and keeps nothing.
struct Ignore;

impl Visitor for Ignore {
    fn open(&mut self, _: spinney::Container) -> Result<()> {
        Ok(())
    }
    fn key(&mut self, _: spinney::Key<'_>) -> Result<()> {
        Ok(())
    }
    fn scalar(&mut self, _: Scalar<'_>) -> Result<()> {
        Ok(())
    }
    fn close(&mut self) -> Result<()> {
        Ok(())
    }
    fn meta(&mut self, _: &str, _: &str) -> Result<()> {
        Ok(())
    }
}
