//! `log`, `watch`, `revert`, `restore` and `forget`: what was committed, and going back.

use std::io::Write as _;
use std::time::Duration;

use clap::Args;
use jiff::Timestamp;
use spinney::diff::{Diff, Op, What};
use spinney::expand::Contained;
use spinney::feed::{Bookmark, Change, Changes, Event};
use spinney::history::{Entry, Logged, Note};
use spinney::value::ValueBuilder;
use spinney::{Committed, Result, Store, Value};

use crate::global::{Global, Write};
use crate::message::one_line;
use crate::output::{cannot_write, stdout};
use crate::place::Tree;

/// Paths that a line of the log shows.
const SHOWN_PATHS_MAX: usize = 3;

/// `spinney log`.
#[derive(Args)]
#[command(after_help = "\
The newest commit comes first: its revision, when and by whom it was made, what it changed (`+` added, \
`-` removed, `~` changed) and why. How far back the log goes is bounded; `spinney forget` makes it shorter.

Examples:
  spinney log
  spinney log /people/42 -n 5
  spinney log -d operational /interfaces
  spinney diff 17 18")]
pub struct Log {
    /// Only commits that concern this path
    #[arg(default_value = "", hide_default_value = true)]
    path: String,

    #[command(flatten)]
    tree: Tree,

    /// Print at most so many commits
    #[arg(long, short = 'n', value_name = "N")]
    limit: Option<usize>,

    /// Print a JSON object for each commit
    #[arg(long)]
    json: bool,
}

impl Log {
    pub fn run(self, global: &Global) -> Result<()> {
        spinney::path::check(&self.path).map_err(|error| error.at("log"))?;
        let store = global.open_to_read()?;
        let mut out = stdout();
        let mut left = self.limit.unwrap_or(usize::MAX);
        let mut print = |change: Change| -> Result<bool> {
            if left == 0 {
                return Ok(false);
            }
            left -= 1;
            let line = if self.json { json(&change, None) } else { line(&change) };
            writeln!(out, "{line}").map_err(cannot_write)?;
            Ok(true)
        };
        match self.tree.followed(&store).map_err(|error| error.at("log"))? {
            Some(stack) => stack.log(&self.path, &mut print)?,
            None => self.each(&store, &mut print)?,
        }
        out.flush().map_err(cannot_write)
    }

    /// Hands over the commits of the store, the newest first, until `found` answers false.
    fn each(&self, store: &Store, found: &mut dyn FnMut(Change) -> Result<bool>) -> Result<()> {
        for logged in store.holding(&self.path)?.read()?.log()? {
            let Logged { revision, entry: Entry { note, mut diff } } = logged?;
            diff.retain_concerning(&self.path);
            if !diff.is_empty() && !found(Change { revision, note, diff })? {
                break;
            }
        }
        Ok(())
    }
}

/// `spinney watch`.
#[derive(Args)]
#[command(after_help = "\
A line for each commit, once it is durable, in order, until the command is stopped. With `--json` small new \
values stand in it; `spinney get PATH --at REVISION` reads large ones. Who was away goes on \
from a revision, or from the `bookmark` of the last line of `--json`. Where commits are missing because \
the log does not have them any more, a line says from which revision to start anew.

Examples:
  spinney watch /people
  spinney watch -d operational /interfaces
  spinney watch --since 17 --json
  spinney watch --since 0f8c4ae1b2d94d3c8a6e57f1029bd4e7:17 --json --count 1")]
pub struct Watch {
    /// Only commits that concern this path
    #[arg(default_value = "", hide_default_value = true)]
    path: String,

    #[command(flatten)]
    tree: Tree,

    /// Begin behind this revision or bookmark; without it, behind the newest
    #[arg(long, value_name = "REVISION|BOOKMARK")]
    since: Option<String>,

    /// Print a JSON object for each commit
    #[arg(long)]
    json: bool,

    /// Stop after so many commits
    #[arg(long, value_name = "N")]
    count: Option<u64>,

    /// Stop when nothing has come for so many seconds
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<u64>,
}

impl Watch {
    pub fn run(self, global: &Global) -> Result<()> {
        let store = global.open_to_read()?;
        let mut changes = self.begin(&store).map_err(|error| error.at("watch"))?;
        let timeout = self.timeout.map_or(Duration::MAX, Duration::from_secs);
        let mut left = self.count.unwrap_or(u64::MAX);
        while left > 0 {
            let Some(event) = changes.next(timeout)? else { break };
            let line = match &event {
                Event::Change(change) if self.json => json(change, Some(&changes.bookmark())),
                Event::Change(change) => line(change),
                Event::Gap(gap) if self.json => {
                    let members = [("gap_after", gap.after), ("resume", gap.resume)];
                    print_value(&Value::Map(members.into_iter().collect()))
                }
                Event::Gap(gap) => format!(
                    "gap: commits after revision {} are not kept any more; start anew from revision {}",
                    gap.after, gap.resume
                ),
            };
            let mut out = stdout();
            writeln!(out, "{line}").and_then(|()| out.flush()).map_err(cannot_write)?;
            left -= u64::from(matches!(event, Event::Change(_)));
        }
        Ok(())
    }

    fn begin(&self, store: &Store) -> Result<Changes> {
        let since = match &self.since {
            None => Since::Revision(store.holding(&self.path)?.read()?.revision()?),
            Some(since) => match since.parse() {
                Ok(revision) => Since::Revision(revision),
                Err(_) => Since::Bookmark(since.parse()?),
            },
        };
        match (self.tree.followed(store)?, since) {
            (None, Since::Revision(revision)) => store.changes(&self.path, revision),
            (None, Since::Bookmark(bookmark)) => store.changes_from(&self.path, &bookmark),
            (Some(stack), Since::Revision(revision)) => stack.changes(&self.path, revision),
            (Some(stack), Since::Bookmark(bookmark)) => stack.changes_from(&self.path, &bookmark),
        }
    }
}

/// Where a feed begins.
enum Since {
    Revision(u64),
    Bookmark(Bookmark),
}

/// `spinney revert`.
#[derive(Args)]
#[command(after_help = "\
What came after the commit stays. Where that has changed the same paths again, nothing is undone and the \
first of them is named. The undoing is a commit of its own, and can be undone.

Examples:
  spinney revert 17
  spinney restore 16")]
pub struct Revert {
    /// The revision whose commit is to be undone
    revision: u64,

    #[command(flatten)]
    write: Write,
}

impl Revert {
    pub fn run(self, global: &Global) -> Result<()> {
        let store = global.open_to_change(&self.write)?;
        let reverted = store.revert(self.revision);
        tell_undone(global, "revert", self.revision, reverted, "undone")
    }
}

/// `spinney restore`.
#[derive(Args)]
#[command(after_help = "\
Everything that was committed since is undone, as one commit, which can be undone.

Examples:
  spinney restore 16
  spinney get /people --at 16")]
pub struct Restore {
    /// The revision whose state is to come back
    revision: u64,

    #[command(flatten)]
    write: Write,
}

impl Restore {
    pub fn run(self, global: &Global) -> Result<()> {
        let store = global.open_to_change(&self.write)?;
        let restored = store.restore(self.revision);
        tell_undone(global, "restore", self.revision, restored, "restored")
    }
}

fn tell_undone(
    global: &Global,
    verb: &str,
    revision: u64,
    made: Result<Committed<()>>,
    done: &str,
) -> Result<()> {
    let made = made.map_err(|error| error.at(format_args!("{verb} {revision}")))?;
    global.note(&format!("{done} as revision {}", made.revision));
    Ok(())
}

/// `spinney forget`.
#[derive(Args)]
#[command(after_help = "\
States before the revision cannot be read any more, and the space of what they alone held is used again. \
Feeds that have not come so far are told of a gap.

Examples:
  spinney forget 1000
  spinney forget --all")]
pub struct Forget {
    /// Forget the commits before this revision
    #[arg(required_unless_present = "all")]
    revision: Option<u64>,

    /// Forget all commits
    #[arg(long, conflicts_with = "revision")]
    all: bool,

    #[command(flatten)]
    write: Write,
}

impl Forget {
    pub fn run(self, global: &Global) -> Result<()> {
        let store = global.open_to_change(&self.write)?;
        let forgotten = store.forget_before(self.revision.unwrap_or(u64::MAX))?;
        store.wait_until_reclaimed();
        global.note(&format!("forgot {forgotten} commits"));
        Ok(())
    }
}

/// A commit in a line for people.
fn line(change: &Change) -> String {
    let Change { revision, note: Note { author, message, .. }, diff } = change;
    let author = if author.is_empty() { "-" } else { author };
    let mut shown: Vec<String> = diff.ops.iter().take(SHOWN_PATHS_MAX).map(operation).collect();
    if diff.ops.len() > SHOWN_PATHS_MAX {
        shown.push(format!("and {} more", diff.ops.len() - SHOWN_PATHS_MAX));
    }
    let mut line = format!("{revision}\t{}\t{author}\t{}", time(&change.note), shown.join(", "));
    if !message.is_empty() {
        line.push('\t');
        line.push_str(message);
    }
    line.split('\t').map(one_line).collect::<Vec<_>>().join("\t")
}

fn operation(op: &Op) -> String {
    let path = op.pointer();
    let path = if path.is_empty() { "(root)" } else { &path };
    format!("{} {path}", mark(op).0)
}

fn mark(op: &Op) -> (char, &'static str) {
    match (op.what, &op.old, &op.new) {
        (What::Meta, ..) => ('~', "annotate"),
        (_, None, _) => ('+', "add"),
        (_, _, None) => ('-', "remove"),
        _ => ('~', "replace"),
    }
}

/// A commit as a JSON object.
fn json(change: &Change, bookmark: Option<&Bookmark>) -> String {
    let Change { revision, note, diff } = change;
    let mut members: Vec<(&str, Value)> = vec![
        ("revision", (*revision).into()),
        ("time", time(note).into()),
        ("author", (&*note.author).into()),
        ("message", (&*note.message).into()),
        ("changes", changed(diff)),
    ];
    members.extend(bookmark.map(|bookmark| ("bookmark", bookmark.to_string().into())));
    print_value(&Value::Map(members.into_iter().collect()))
}

fn changed(diff: &Diff) -> Value {
    let change = |op: &Op| {
        let mut members: Vec<(&str, Value)> =
            vec![("op", mark(op).1.into()), ("path", (*op.pointer()).into())];
        members.extend(value(op).map(|value| ("value", value)));
        Value::Map(members.into_iter().collect())
    };
    diff.ops.iter().map(change).collect::<Vec<Value>>().into()
}

/// The new value, unless it is a large one that the log refers to.
fn value(op: &Op) -> Option<Value> {
    let new = op.new.as_deref().filter(|_| op.what == What::Node)?;
    let mut builder = ValueBuilder::default();
    Contained(new).visit(&mut builder).ok()?;
    builder.finish()
}

fn print_value(value: &Value) -> String {
    let mut writer = spinney::formats::JsonWriter::new(
        Vec::new(),
        spinney::formats::Layout::Compact,
        spinney::formats::Fidelity::Lossy,
    );
    let printed = value.visit(&mut writer).and_then(|()| writer.finish());
    String::from_utf8(printed.unwrap_or_default()).unwrap_or_default()
}

fn time(note: &Note) -> String {
    let millisecond = i64::try_from(note.time_ms).unwrap_or_default();
    match (note.time_ms, Timestamp::from_millisecond(millisecond)) {
        (0, _) | (_, Err(_)) => "-".to_owned(),
        (_, Ok(time)) => format!("{time:.3}"),
    }
}
