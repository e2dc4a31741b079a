//! `remove`, `insert`, `move` and `copy`: changes of what is there.

use clap::Args;
use spinney::formats::ReadOptions;
use spinney::layers::LayerEdit;
use spinney::path::Display;
use spinney::value::ValueBuilder;
use spinney::{Error, Result, Store, Transaction};

use crate::condition::Condition;
use crate::global::{Global, Write};
use crate::input::Input;
use crate::place::Place;

/// `spinney remove`.
#[derive(Args)]
#[command(after_help = "\
Examples:
  spinney remove /people/42
  spinney remove /people/42/phones/0
  spinney remove /cache --if-exists")]
pub struct Remove {
    /// Path of the node
    path: String,

    /// Succeed if there is no node
    #[arg(long)]
    if_exists: bool,

    #[command(flatten)]
    condition: Condition,

    #[command(flatten)]
    place: Place,

    #[command(flatten)]
    write: Write,
}

impl Remove {
    pub fn run(self, global: &Global) -> Result<()> {
        let condition = self.condition.ready("remove")?;
        if !self.place.is_store() {
            condition.refuse()?;
            let store = global.open_to_change(&self.write)?;
            let remove = |edit: &mut LayerEdit<'_, '_>| edit.remove(&self.path);
            let was_there = self.place.edit(&store, &self.write, remove)?;
            return self.checked(was_there);
        }
        change(global, &self.write, |transaction| {
            condition.check(transaction, &self.path)?;
            self.checked(transaction.remove(&self.path)?)
        })
    }

    fn checked(&self, was_there: bool) -> Result<()> {
        match was_there || self.if_exists {
            true => Ok(()),
            false => {
                let path = Display(&self.path);
                Err(Error::not_found(format!("remove {path}: there is no node")))
            }
        }
    }
}

/// `spinney insert`.
#[derive(Args)]
#[command(after_help = "\
The element that stands at the position, and all behind it, move up.

Examples:
  spinney insert /people/42/phones/0 '\"+43 1 234\"'
  spinney insert /people/42/phones/- '\"+43 1 567\"'
  spinney insert /queue/- @job.json")]
pub struct Insert {
    /// Path whose last segment is a position, or `-` for the end
    path: String,

    /// The value as JSON; `@FILE` reads it from a file, `-` from stdin
    #[arg(value_name = "JSON|@FILE|-", allow_negative_numbers = true)]
    value: String,

    #[command(flatten)]
    write: Write,
}

impl Insert {
    pub fn run(self, global: &Global) -> Result<()> {
        let input = Input::of_value(&self.value);
        let mut builder = ValueBuilder::default();
        input
            .parse(input.open()?, ReadOptions::default(), &mut builder)
            .map_err(|error| error.at(format!("insert {}", Display(&self.path))))?;
        let value = builder.finish().expect("the reader gives exactly one value");
        change(global, &self.write, |transaction| transaction.insert(&self.path, &value))
    }
}

/// `spinney move`.
#[derive(Args)]
#[command(after_help = "\
However much is below the node, it is not copied. At the target a map's member is replaced; a list \
gets one more element, and its positions are those without the element that moves.

Examples:
  spinney move /people/42 /people/43
  spinney move /queue/7 /queue/0")]
pub struct Move {
    /// Path of the node
    from: String,

    /// Its new path
    to: String,

    #[command(flatten)]
    write: Write,
}

impl Move {
    pub fn run(self, global: &Global) -> Result<()> {
        transfer(global, &self.write, &self.to, |transaction| transaction.mv(&self.from, &self.to))
    }
}

/// `spinney copy`.
#[derive(Args)]
#[command(after_help = "\
At the target a map's member is replaced; a list gets one more element.

Examples:
  spinney copy /people/42 /people/43
  spinney copy /templates/person /people/44")]
pub struct Copy {
    /// Path of the node
    from: String,

    /// Path of the copy
    to: String,

    #[command(flatten)]
    write: Write,
}

impl Copy {
    pub fn run(self, global: &Global) -> Result<()> {
        transfer(global, &self.write, &self.to, |transaction| {
            transaction.copy(&self.from, &self.to)
        })
    }
}

/// Brings a node to a place.
fn transfer(
    global: &Global,
    write: &Write,
    to: &str,
    edit: impl FnMut(&mut Transaction<'_>) -> Result<()>,
) -> Result<()> {
    let store = global.open_to_change(write)?;
    global.note_new_root(&store, to)?;
    finish(&store, edit)
}

/// Changes a store that exists.
pub fn change(
    global: &Global,
    write: &Write,
    edit: impl FnMut(&mut Transaction<'_>) -> Result<()>,
) -> Result<()> {
    finish(&global.open_to_change(write)?, edit)
}

fn finish(store: &Store, edit: impl FnMut(&mut Transaction<'_>) -> Result<()>) -> Result<()> {
    store.write(edit)?;
    store.wait_until_reclaimed();
    Ok(())
}
