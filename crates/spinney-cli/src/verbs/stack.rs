//! `stack`: trees that are read as one.

use std::io::Write as _;

use clap::{Args, Subcommand};
use spinney::Result;
use spinney::layers::{LayerSpec, cascade};

use crate::global::{Global, Write};
use crate::output::{cannot_write, stdout};

/// `spinney stack`.
#[derive(Args)]
pub struct Stack {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Keep layers under a name, to read them as one
    Set(Set),
    /// Print the stacks, a line for each, with their layers, the highest first
    List,
    /// Forget a stack; its layers stay
    Remove(Remove),
    /// Lock a node of a layer: higher layers cannot override it
    Lock(Node),
    /// Take a lock away
    Unlock(Node),
    /// Take away what a layer says of a node, deletions too: lower layers show through again
    Reset(Node),
}

#[derive(Args)]
#[command(after_help = "\
The first layer is the highest: what it has decides. Maps are merged member by member. A layer is \
a tree of this store, or one of another store, by its URL: `NAME=URL#PATH`.

Examples:
  spinney stack set settings user=/user system=/system default=/default
  spinney stack set app dir=json:.app.json# user=json:user.json# system=/app
  spinney stack set app --cascade dir=json:.app.json#
  spinney get --stack settings --origin /editor
  spinney set --stack settings --layer user /editor/tab 4
  spinney remove --stack settings --layer user /editor/font")]
struct Set {
    /// What the stack is called
    name: String,

    /// The layers, the highest first
    #[arg(required_unless_present = "cascade", value_name = "NAME=[URL#]PATH")]
    layers: Vec<String>,

    /// Elektra's cascade: `spec`, `proc`, `dir`, `user`, `system` and `default`, each the tree of its name
    /// unless it is among the layers
    #[arg(long)]
    cascade: bool,

    #[command(flatten)]
    write: Write,
}

#[derive(Args)]
struct Remove {
    /// What the stack is called
    name: String,

    #[command(flatten)]
    write: Write,
}

#[derive(Args)]
struct Node {
    /// What the stack is called
    stack: String,

    /// The layer
    layer: String,

    /// Path of the node, in the stack
    path: String,

    #[command(flatten)]
    write: Write,
}

impl Stack {
    pub fn run(self, global: &Global) -> Result<()> {
        match self.verb {
            Verb::Set(Set { name, layers, cascade: is_cascade, write }) => {
                let layers = layers.iter().map(|layer| layer.parse());
                let mut layers: Vec<LayerSpec> = layers.collect::<Result<_>>()?;
                if is_cascade {
                    layers = cascade(&layers)?;
                }
                global.open_or_create(&write)?.set_stack(&name, &layers).map(drop)
            }
            Verb::Remove(Remove { name, write }) => {
                global.open_to_change(&write)?.remove_stack(&name).map(drop)
            }
            Verb::List => list(global),
            Verb::Lock(node) => node.edit(global, |edit, path| edit.lock(path)),
            Verb::Unlock(node) => node.edit(global, |edit, path| match edit.unlock(path)? {
                true => Ok(()),
                false => Err(nothing("unlock", path, "it is not locked in this layer")),
            }),
            Verb::Reset(node) => node.edit(global, |edit, path| match edit.reset(path)? {
                true => Ok(()),
                false => Err(nothing("reset", path, "this layer says nothing of it")),
            }),
        }
    }
}

fn nothing(verb: &str, path: &str, why: &str) -> spinney::Error {
    spinney::Error::not_found(format!("stack {verb} {}: {why}", spinney::path::Display(path)))
}

impl Node {
    fn edit(
        &self,
        global: &Global,
        edit: impl Fn(&mut spinney::layers::LayerEdit<'_, '_>, &str) -> Result<()>,
    ) -> Result<()> {
        let store = global.open_to_change(&self.write)?;
        let stack = store.stack_with(&self.stack, |_| self.write.options().create(false))?;
        stack.write(&self.layer, |layer| edit(layer, &self.path)).map(drop)
    }
}

fn list(global: &Global) -> Result<()> {
    let mut out = stdout();
    for (name, layers) in global.open_to_read()?.stacks()? {
        let layers: Vec<String> = layers.iter().map(LayerSpec::to_string).collect();
        writeln!(out, "{name}\t{}", layers.join(" ")).map_err(cannot_write)?;
    }
    out.flush().map_err(cannot_write)
}
