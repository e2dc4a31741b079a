//! `datastore`: startup, running, candidate, operational and factory-default.

use std::io::Write as _;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use spinney::datastores::{CandidateCommit, CandidateState, Datastore, Datastores};
use spinney::formats::{Fidelity, Layout, print};
use spinney::layers::Prefer;
use spinney::{Result, Value};

use crate::global::{Global, Write};
use crate::output::{cannot_write, stdout};

/// `spinney datastore`.
#[derive(Args)]
#[command(after_help = "\
The datastores are trees of the store. `candidate` shows `running` until it is changed, and keeps \
its changes over `running` as it then was. `operational` is `running` with what is pushed over it. \
Who locks `/candidate` has it alone, and what is not committed then goes with the lock.

Examples:
  spinney set --datastore candidate /interfaces/eth0/mtu 9000
  spinney datastore conflicts
  spinney datastore commit --confirmed 60
  spinney datastore confirm
  spinney datastore copy running startup
  spinney lock /candidate -- sh -c './edit.sh && spinney datastore commit'")]
pub struct DatastoreVerb {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Tell whether the candidate has changes, and whether a commit waits for its confirmation
    Status,
    /// Make running what the candidate is
    Commit(Commit),
    /// Confirm the commit that waits for it
    Confirm(Named),
    /// Roll back the commit that waits for its confirmation
    Cancel(Named),
    /// Forget the candidate's changes
    Discard(Written),
    /// Tell whether the candidate could become running
    Validate,
    /// Print where both the candidate and running were changed, a JSON object a line
    Conflicts,
    /// Make the candidate rest on running as it is now
    Rebase(Rebase),
    /// Make a datastore what another one is
    Copy(Copy),
    /// Make startup and running what factory-default is; what waits for its confirmation is forgotten
    Reset(Written),
}

/// Which side wins where both were changed.
#[derive(Clone, Copy, ValueEnum)]
enum Side {
    Running,
    Candidate,
}

fn prefer(side: Option<Side>) -> Prefer {
    match side {
        None => Prefer::Neither,
        Some(Side::Running) => Prefer::Lower,
        Some(Side::Candidate) => Prefer::Layer,
    }
}

#[derive(Args)]
struct Commit {
    /// Roll back by itself unless it is confirmed within so many seconds; survives the end of this
    /// command: whoever opens the store next rolls back
    #[arg(long, value_name = "SECONDS", value_parser = crate::verbs::query::seconds)]
    confirmed: Option<Duration>,

    /// A name that `confirm`, `cancel` or the next commit has to give
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
    name: String,

    /// Which one wins where both were changed; without it nothing is committed then
    #[arg(long, value_enum, value_name = "WHICH")]
    prefer: Option<Side>,

    #[command(flatten)]
    write: Write,
}

#[derive(Args)]
struct Named {
    /// The name that the commit was given
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
    name: String,

    #[command(flatten)]
    write: Write,
}

#[derive(Args)]
struct Written {
    #[command(flatten)]
    write: Write,
}

#[derive(Args)]
struct Rebase {
    /// Which one wins where both were changed; without it nothing is done then
    #[arg(long, value_enum, value_name = "WHICH")]
    prefer: Option<Side>,

    #[command(flatten)]
    write: Write,
}

#[derive(Args)]
struct Copy {
    /// The datastore that is copied
    from: Datastore,

    /// The datastore that becomes it
    to: Datastore,

    #[command(flatten)]
    write: Write,
}

impl DatastoreVerb {
    pub fn run(self, global: &Global) -> Result<()> {
        match self.verb {
            Verb::Status => status(&global.open_to_read()?.datastores()?),
            Verb::Commit(verb) => {
                let Commit { confirmed, name, prefer: side, write } = verb;
                let options = CandidateCommit { prefer: prefer(side), confirmed, name };
                change(global, &write, |all| all.commit(&options).map(drop))
            }
            Verb::Confirm(verb) => {
                change(global, &verb.write, |all| all.confirm(&verb.name).map(drop))
            }
            Verb::Cancel(verb) => {
                change(global, &verb.write, |all| all.cancel(&verb.name).map(drop))
            }
            Verb::Discard(verb) => change(global, &verb.write, |all| all.discard().map(drop)),
            Verb::Validate => {
                change(global, &Write::default(), Datastores::validate)?;
                global.note("the candidate can become running");
                Ok(())
            }
            Verb::Conflicts => conflicts(&global.open_to_read()?.datastores()?),
            Verb::Rebase(verb) => {
                change(global, &verb.write, |all| all.rebase(prefer(verb.prefer)).map(drop))
            }
            Verb::Copy(verb) => {
                change(global, &verb.write, |all| all.copy(verb.from, verb.to).map(drop))
            }
            Verb::Reset(verb) => {
                change(global, &verb.write, |all| all.reset_to_factory_default().map(drop))
            }
        }
    }
}

fn change(
    global: &Global,
    write: &Write,
    run: impl FnOnce(&Datastores) -> Result<()>,
) -> Result<()> {
    let store = global.open_to_change(write)?;
    run(&store.datastores()?)?;
    store.wait_until_reclaimed();
    Ok(())
}

fn status(all: &Datastores) -> Result<()> {
    let mut out = stdout();
    match all.candidate()? {
        CandidateState::Unchanged => writeln!(out, "candidate: shows running"),
        CandidateState::Changed(base) => {
            writeln!(out, "candidate: changed, over running at revision {base}")
        }
    }
    .map_err(cannot_write)?;
    if let Some(waiting) = all.unconfirmed()? {
        let name = if waiting.name.is_empty() { "-" } else { &*waiting.name };
        writeln!(
            out,
            "unconfirmed: {name}, goes back to revision {} in {} s",
            waiting.before,
            waiting.left.as_millis().div_ceil(1_000)
        )
        .map_err(cannot_write)?;
    }
    out.flush().map_err(cannot_write)
}

fn conflicts(all: &Datastores) -> Result<()> {
    let mut out = stdout();
    for conflict in all.conflicts()? {
        let members = [
            ("path", Some(Value::from(&*conflict.path))),
            ("base", conflict.base),
            ("running", conflict.lower),
            ("candidate", conflict.layer),
        ];
        // What is not there has no member.
        let found = members.into_iter().filter_map(|(name, value)| Some((name, value?)));
        let line = print(&Value::Map(found.collect()), Layout::Compact, Fidelity::Lossy)?;
        writeln!(out, "{line}").map_err(cannot_write)?;
    }
    out.flush().map_err(cannot_write)
}
