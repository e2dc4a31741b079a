//! What must hold for a verb to write: the options, and looking within the transaction.

use clap::Args;
use spinney::formats::ReadOptions;
use spinney::path::Display;
use spinney::value::ValueBuilder;
use spinney::{Error, Expect, Expected, Result, Transaction, ValueHash};

use crate::input::Input;

/// The options of the verbs that may depend on what is there.
#[derive(Args)]
pub struct Condition {
    /// Fail unless the value at the path equals this one; numbers are compared by their value
    #[arg(long, value_name = "JSON|@FILE", allow_negative_numbers = true)]
    if_value: Option<String>,

    /// Fail unless the node at the path has this hash, as `spinney hash` prints it
    #[arg(long, value_name = "HASH")]
    if_hash: Option<ValueHash>,

    /// Fail when a commit after this revision concerns the path
    #[arg(long, value_name = "R")]
    if_unchanged_since: Option<u64>,

    /// Fail unless the store is at this revision
    #[arg(long, value_name = "R")]
    if_revision: Option<u64>,
}

/// A condition whose value is read.
pub struct Ready {
    verb: &'static str,
    expected: Vec<Expected>,
    revision: Option<u64>,
}

impl Condition {
    /// Reads the value that is expected, before a store is opened.
    pub fn ready(&self, verb: &'static str) -> Result<Ready> {
        let mut expected: Vec<Expected> = self.if_hash.map(Expected::Hash).into_iter().collect();
        if let Some(value) = &self.if_value {
            let input = Input::of_value(value);
            let mut builder = ValueBuilder::default();
            input
                .parse(input.open()?, ReadOptions::default(), &mut builder)
                .map_err(|error| error.at("--if-value"))?;
            let value = builder.finish().expect("the reader gives exactly one value");
            expected.push(Expected::Value(value));
        }
        expected.extend(self.if_unchanged_since.map(Expected::Unchanged));
        Ok(Ready { verb, expected, revision: self.if_revision })
    }
}

impl Ready {
    /// Refuses conditions on what is changed through layers: they are about nodes of the store itself.
    pub fn refuse(&self) -> Result<()> {
        match self.expected.is_empty() && self.revision.is_none() {
            true => Ok(()),
            false => Err(Error::unsupported(format!(
                "{}: a condition is about a node of the store itself; name it by its path there, without \
                 `--stack` and `--datastore`",
                self.verb
            ))),
        }
    }

    /// Goes on only if all that is expected at a path holds.
    pub fn check(&self, transaction: &Transaction<'_>, path: &str) -> Result<()> {
        let checked = match self.revision {
            Some(expected) => at_revision(transaction, path, expected),
            None => Ok(()),
        };
        let checked = checked.and_then(|()| {
            self.expected.iter().try_for_each(|expected| transaction.expect(path, expected))
        });
        checked.map_err(|error| error.at(format_args!("{} {}", self.verb, Display(path))))
    }
}

fn at_revision(transaction: &Transaction<'_>, path: &str, expected: u64) -> Result<()> {
    // Where trees are kept apart, the path tells which revision is meant.
    transaction.exists(path)?;
    match transaction.base() {
        found if found == expected => Ok(()),
        found => Err(Error::conflict(format!(
            "the store is at revision {found}, not {expected}; read it again"
        ))),
    }
}
