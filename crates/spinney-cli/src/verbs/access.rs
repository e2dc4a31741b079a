//! `access`: who may see, change and administer what.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use spinney::access::{AccessRule, AccessRules, Decision, Effect, Right, Rule, Subject};
use spinney::formats::{Dialect, Fidelity, JsonWriter, Layout, ReadOptions};
use spinney::value::ValueBuilder;
use spinney::{Error, ErrorKind, Path, Result};

use crate::global::{Global, Write};
use crate::input::Input;
use crate::message::one_line;
use crate::output::{cannot_write, stdout};
use crate::principal;

/// `spinney access`.
#[derive(Args)]
#[command(after_help = "\
A rule allows or denies a right to a user, to a group (`@staff`) or to everyone (`*`), at a path and below it. \
The rights are read, write and admin; who may do one may do those before it. The first rule that is about a \
right and leads to a node decides; once there are rules, what none is about is denied. What may not be read \
is not there: not in lists, counts, hashes, exports, history, nor in what errors say.

Examples:
  spinney access add allow admin root ''
  spinney access add deny read '*' '/people/*/salary'
  spinney access add allow write @staff /people
  spinney access list
  spinney access test ann /people/42 write
  spinney get /people --as ann")]
pub struct Access {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Print the rules, in their order
    List(List),
    /// Replace all rules by those of a file
    Set(Set),
    /// Add a rule, as the last or in a place
    Add(Add),
    /// Remove a rule
    Remove(Remove),
    /// Print which rule decides about a right; the exit code is 7 when it is denied
    Test(Test),
}

#[derive(Args)]
struct List {
    /// Print them as JSON, as `access set` takes them
    #[arg(long)]
    json: bool,
}

/// The options of verbs that change rules.
#[derive(Args)]
struct Change {
    /// Even if nobody is left who administers the root
    #[arg(long)]
    force: bool,

    #[command(flatten)]
    write: Write,
}

#[derive(Args)]
#[command(after_help = "\
The file is JSON or JSON5: a list of rules, each with `allow` or `deny` and a right, `to` and `path`. The \
empty list takes all rules away, and then everyone may do everything.

Examples:
  echo '[{\"allow\": \"admin\", \"to\": \"root\", \"path\": \"\"}]' | spinney access set -
  spinney access list --json >rules.json && spinney access set rules.json")]
struct Set {
    /// The file with the rules; `-` reads stdin
    file: PathBuf,

    #[command(flatten)]
    change: Change,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum What {
    Allow,
    Deny,
}

#[derive(Args)]
struct Add {
    /// Whether it allows or denies
    what: What,

    /// The right: read, write or admin
    right: Right,

    /// A user, `@GROUP`, or `*` for everyone
    to: Subject,

    /// Where it begins; `*` stands for any one member, and `''` is the root
    path: Path,

    /// Put it in this place, before what is there; without it, behind all others
    #[arg(long, value_name = "N")]
    at: Option<usize>,

    #[command(flatten)]
    change: Change,
}

#[derive(Args)]
struct Remove {
    /// The number that `access list` prints
    number: usize,

    #[command(flatten)]
    change: Change,
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  spinney access test ann /people/42
  spinney access test ann /people write && echo 'ann may write'")]
struct Test {
    /// Who
    user: String,

    /// Where
    path: String,

    /// The right: read, write or admin
    #[arg(default_value = "read")]
    right: Right,
}

impl Access {
    pub fn run(self, global: &Global) -> Result<ExitCode> {
        match self.verb {
            Verb::List(verb) => verb.run(global),
            Verb::Set(verb) => verb.run(global),
            Verb::Add(verb) => verb.run(global),
            Verb::Remove(verb) => verb.run(global),
            Verb::Test(verb) => return verb.run(global),
        }
        .map(|()| ExitCode::SUCCESS)
    }
}

impl List {
    fn run(self, global: &Global) -> Result<()> {
        let rules = global.open_to_read()?.access_rules()?;
        let mut out = stdout();
        if self.json {
            let mut writer = JsonWriter::new(&mut out, Layout::Pretty, Fidelity::Refuse);
            rules.to_value().visit(&mut writer)?;
            writer.finish()?;
            writeln!(out).map_err(cannot_write)?;
        } else {
            for (number, rule) in (1..).zip(&rules.0) {
                writeln!(out, "{number}\t{}", one_line(&rule.to_string())).map_err(cannot_write)?;
            }
        }
        out.flush().map_err(cannot_write)
    }
}

impl Set {
    fn run(self, global: &Global) -> Result<()> {
        let input = Input::of_file(&self.file);
        let mut builder = ValueBuilder::default();
        let options = ReadOptions { dialect: Dialect::Json5, ..ReadOptions::default() };
        let read = input.parse(input.open()?, options, &mut builder);
        read.map_err(|error| error.at("access set"))?;
        let value = builder.finish().expect("the reader gives exactly one value");
        let rules = AccessRules::of_value(&value).map_err(|error| error.at("access set"))?;
        let store = global.open_or_create(&self.change.write)?;
        store.set_access_rules(&rules, self.change.force).map(drop)
    }
}

impl Add {
    fn run(self, global: &Global) -> Result<()> {
        let effect = match self.what {
            What::Allow => Effect::Allow(self.right),
            What::Deny => Effect::Deny(self.right),
        };
        let rule = AccessRule { subject: self.to, rule: Rule { path: self.path, effect } };
        change(global, &self.change, |rules| {
            let end = rules.len() + 1;
            match self.at.unwrap_or(end) {
                at @ 1.. if at <= end => rules.insert(at - 1, rule),
                at => return Err(no_rule(at, end)),
            }
            Ok(())
        })
    }
}

impl Remove {
    fn run(self, global: &Global) -> Result<()> {
        change(global, &self.change, |rules| match self.number {
            number @ 1.. if number <= rules.len() => {
                rules.remove(number - 1);
                Ok(())
            }
            number => Err(no_rule(number, rules.len())),
        })
    }
}

fn no_rule(number: usize, end: usize) -> Error {
    Error::not_found(format!(
        "access: there is no place {number} among the rules; the last is {end}"
    ))
}

fn change(
    global: &Global,
    change: &Change,
    edit: impl FnOnce(&mut Vec<AccessRule>) -> Result<()>,
) -> Result<()> {
    let store = global.open_or_create(&change.write)?;
    let mut rules = store.access_rules()?;
    edit(&mut rules.0)?;
    store.set_access_rules(&rules, change.force).map(drop)
}

impl Test {
    fn run(self, global: &Global) -> Result<ExitCode> {
        let Test { user, path, right } = self;
        let decision =
            global.open_to_read()?.test_access(&principal::named(&user)?, &path, right)?;
        let Decision { is_allowed, rule, reason } = decision;
        let verdict = if is_allowed { "allowed" } else { "denied" };
        let why = match rule {
            Some((number, rule)) if reason.is_empty() => format!("rule {number}: {rule}"),
            Some((number, rule)) => format!("rule {number}: {rule}; but {reason}"),
            None => reason.to_owned(),
        };
        let mut out = stdout();
        writeln!(out, "{verdict}\t{}", one_line(&why))
            .and_then(|()| out.flush())
            .map_err(cannot_write)?;
        Ok(match is_allowed {
            true => ExitCode::SUCCESS,
            false => ExitCode::from(ErrorKind::Denied.exit_code()),
        })
    }
}
