//! `meta`: the small texts that a node may carry beside its value.

use std::io::Write as _;

use clap::Args;
use spinney::path::Display;
use spinney::{Error, Result};

use super::edit::change;
use crate::global::{Global, Write};
use crate::message::one_line;
use crate::output::{at, cannot_write, no_node, stdout};

/// `spinney meta`.
#[derive(Args)]
#[command(after_help = "\
Without a key all entries are printed, one a line: the key, a tab, the value. Control characters are \
printed as escapes there; one value alone is printed as it is.

Examples:
  spinney meta /people/42 origin imported
  spinney meta /people/42
  spinney meta /people/42 origin
  spinney meta /people/42 origin --remove")]
pub struct Meta {
    /// Path of the node
    path: String,

    /// Name of the entry
    key: Option<String>,

    /// Its new text
    #[arg(allow_hyphen_values = true)]
    value: Option<String>,

    /// Remove the entry
    #[arg(long, requires = "key", conflicts_with = "value")]
    remove: bool,

    #[command(flatten)]
    write: Write,
}

impl Meta {
    pub fn run(self, global: &Global) -> Result<()> {
        match (&self.key, &self.value) {
            (Some(key), None) if self.remove => self.remove(global, key),
            (Some(key), Some(value)) => change(global, &self.write, |transaction| {
                transaction.set_meta(&self.path, key, Some(value))
            }),
            (key, _) => self.print(global, key.as_deref()),
        }
    }

    fn remove(&self, global: &Global, key: &str) -> Result<()> {
        change(global, &self.write, |transaction| {
            let entries = transaction.meta(&self.path)?;
            let entries = entries.ok_or_else(|| no_node("meta", &self.path))?;
            match entries.iter().any(|(name, _)| name == key) {
                true => transaction.set_meta(&self.path, key, None),
                false => Err(self.no_entry(key)),
            }
        })
    }

    fn print(&self, global: &Global, key: Option<&str>) -> Result<()> {
        let path = &self.path;
        let entries = global.read()?.meta(path).map_err(|error| at("meta", path, error))?;
        let entries = entries.ok_or_else(|| no_node("meta", path))?;
        let mut out = stdout();
        let printed = match key {
            None => entries.iter().try_for_each(|(name, value)| {
                writeln!(out, "{}\t{}", one_line(name), one_line(value))
            }),
            Some(key) => {
                let entry = entries.iter().find(|(name, _)| name == key);
                let (_, value) = entry.ok_or_else(|| self.no_entry(key))?;
                writeln!(out, "{value}")
            }
        };
        printed.and_then(|()| out.flush()).map_err(cannot_write)
    }

    fn no_entry(&self, key: &str) -> Error {
        let path = Display(&self.path);
        Error::not_found(format!("meta {path}: there is no entry `{key}`"))
    }
}
