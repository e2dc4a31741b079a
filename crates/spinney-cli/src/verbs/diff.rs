//! `diff`: what leads from one tree to another, for people or as a JSON Patch.

use std::io::{self, BufWriter, Write};
use std::path::Path as FilePath;
use std::process::ExitCode;
use std::rc::Rc;

use anstyle::{AnsiColor, Style};
use clap::{Args, ValueEnum};
use spinney::datastores::Datastore;
use spinney::difference::{
    Change, Conflict, Counts, Found, Metadata, PatchWriter, differences, merge,
};
use spinney::formats::{Fidelity, JsonWriter, Layout, ReadOptions};
use spinney::path::Display;
use spinney::read::{Entries, Node as _, Reached};
use spinney::undo::Between;
use spinney::{Error, Existing, NodeKind, Path, Result, Snapshot, Visitor};

use super::import::Format;
use crate::global::{Global, to_read};
use crate::input::Input;
use crate::message::one_line;
use crate::output::{at, cannot_write, no_node, stdout};

/// The exit code when there are differences, as that of diff(1).
const DIFFERENT: u8 = 1;

/// Bytes of a value that a line shows.
const SHOWN_LEN_MAX: usize = 72;

const REMOVED: Style = AnsiColor::Red.on_default();
const ADDED: Style = AnsiColor::Green.on_default();
const CHANGED: Style = AnsiColor::Yellow.on_default();

/// Hands over all changes.
type Changes<'c> = dyn FnMut(&mut Found<'_>) -> Result<()> + 'c;

/// `spinney diff`.
#[derive(Args)]
#[command(after_help = "\
What starts with `/`, or is empty, is a path in the store; a number is a revision of it; `-` is \
stdin, all else a file (`@/tmp/x.json` is one with an absolute path). A revision alone is compared with the \
newest state; two cost what was committed between them, however large the store is. Two datastores are \
compared as they are read, at a path that one of them has. Numbers are compared by their text: 1 is not 1.0.

A line says what becomes of a path below the operands: `+` added, `-` removed, `~` changed. Positions \
in lists are those at the time when the lines above it are done.

Of three operands, the second and the third have both come from the first: what the third has changed since \
is told as changes of the second, so that `patch` makes a merge of it. A place that both have changed, to \
different ends, is told with `!`, and fails (exit code 5), unless one side is preferred. Lists count as \
one value.

The exit code is 0 when there is no difference and 1 when there is one.

Examples:
  spinney diff /a /b
  spinney diff -d running -d candidate
  spinney diff -d startup -d running /interfaces
  spinney diff old.json new.json
  spinney diff 17 18
  spinney diff base.json /running theirs.json --patch | spinney patch /running -
  spinney diff /running new.json --patch | spinney patch /running -")]
pub struct Diff {
    /// What was before: a path, a file, a revision or `-`; with two datastores, the path in both
    #[arg(required_unless_present = "datastore")]
    old: Option<String>,

    /// What is now; the newest state, when a revision was before
    new: Option<String>,

    /// A third tree: what it has changed since OLD is told as changes of NEW
    #[arg(conflicts_with = "datastore")]
    other: Option<String>,

    /// Of places that both have changed, to different ends, take what this one has
    #[arg(long, value_enum, value_name = "WHICH", requires = "other")]
    prefer: Option<Prefer>,

    /// Paths are those of this stack, read as one
    #[arg(long, value_name = "NAME", conflicts_with = "datastore")]
    stack: Option<String>,

    /// Paths are those of this datastore; named twice, the first is compared with the second
    #[arg(long, short, value_name = "NAME", action = clap::ArgAction::Append)]
    datastore: Vec<Datastore>,

    /// Print a JSON Patch (RFC 6902) that makes the new of the old
    #[arg(long)]
    patch: bool,

    /// Print the patch with a line for each member, indented
    #[arg(long, requires = "patch")]
    pretty: bool,

    /// Leave metadata out, and bytes in a patch become base64 text
    #[arg(long, conflicts_with = "tagged")]
    lossy: bool,

    /// Keep bytes, as members that start with `$spinney:`; files may hold metadata, too
    #[arg(long)]
    tagged: bool,
}

/// Which side has its way.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Prefer {
    New,
    Other,
}

impl Diff {
    pub fn run(self, global: &Global) -> Result<ExitCode> {
        let (old, new) = self.operands()?;
        let other = self.other.as_deref().map(Operand::of);
        let operands = || [Some(&old), new.as_ref(), other.as_ref()].into_iter().flatten();
        let is_revision = |operand: &Operand| matches!(operand, Operand::Revision(_));
        if self.tree(0) != Tree::Store && operands().any(is_revision) {
            return Err(Error::invalid_input(
                "diff: a revision is one of the store, not of a stack or datastore; leave that out",
            ));
        }
        let is_stdin = |operand: &&Operand| matches!(operand, Operand::Input(Input::Stdin));
        if operands().filter(is_stdin).count() > 1 {
            return Err(Error::invalid_input("diff: stdin can be read only once; name a file"));
        }
        let Some(new) = new else {
            let Operand::Revision(from) = old else {
                return Err(Error::invalid_input(
                    "diff: with what is it to be compared? Only a revision stands alone",
                ));
            };
            return self.print_between(global, from, None);
        };
        if let (Operand::Revision(from), Operand::Revision(to), None) = (&old, &new, &other) {
            return self.print_between(global, *from, Some(*to));
        }
        // Two paths of one tree are those of one state.
        let mut states: Vec<(Tree<'_>, Rc<Snapshot>)> = Vec::new();
        let mut load = |operand: Operand, tree| match operand {
            Operand::Path(path) => {
                let snapshot = match states.iter().find(|known| known.0 == tree) {
                    Some((_, snapshot)) => Rc::clone(snapshot),
                    None => Rc::new(tree.read(global)?),
                };
                states.push((tree, Rc::clone(&snapshot)));
                Ok(Loaded { snapshot, path })
            }
            Operand::Revision(revision) => {
                let snapshot = Rc::new(global.open_to_read()?.at(revision)?);
                Ok(Loaded { snapshot, path: String::new() })
            }
            Operand::Input(input) => load_input(&input, self.tagged),
        };
        let (old, new) = (load(old, self.tree(0))?, load(new, self.tree(1))?);
        if let Some(other) = other {
            return self.print_merge(&[old, new, load(other, self.tree(0))?]);
        }
        // A datastore may be empty, or lack what another one has; a path that is in neither is a slip.
        let may_lack = self.datastore.len() == 2;
        match (old.find()?, new.find()?) {
            (Some(old), Some(new)) => self.print(&mut |found| differences(&old, &new, found)),
            (None, Some(new)) if may_lack => {
                self.print(&mut |found| found(&Path::root(), Change::Added(new.clone())))
            }
            (Some(old), None) if may_lack => {
                self.print(&mut |found| found(&Path::root(), Change::Removed(old.clone())))
            }
            (None, None) if may_lack && old.path.is_empty() => self.print(&mut |_| Ok(())),
            (None, _) => Err(no_node("diff", &old.path)),
            (_, None) => Err(no_node("diff", &new.path)),
        }
    }

    /// What the third tree has changed since the first, as changes of the second.
    fn print_merge(&self, trees: &[Loaded; 3]) -> Result<ExitCode> {
        let [old, new, other] = trees;
        let (old, new, other) = (old.require()?, new.require()?, other.require()?);
        let trees = [&old, &new, &other];
        let counts = if self.lossy { Counts::Values } else { Counts::Metadata };
        let mut conflicts = Vec::new();
        let mut note = |path: &Path, place: &Conflict<'_>| {
            if self.prefer.is_none() {
                conflicts.push((path.clone(), conflict_line(path, place)?));
            }
            Ok(self.prefer == Some(Prefer::Other))
        };
        if self.patch && self.prefer.is_none() {
            // A patch of a part would be taken for the whole.
            merge(trees, counts, &mut |_, _| Ok(()), &mut note)?;
        } else {
            let code = self.print(&mut |found| merge(trees, counts, found, &mut note))?;
            if conflicts.is_empty() {
                return Ok(code);
            }
        }
        if conflicts.is_empty() {
            return self.print(&mut |found| merge(trees, counts, found, &mut |_, _| Ok(false)));
        }
        let mut out = stdout();
        for (_, line) in conflicts.iter().filter(|_| !self.patch) {
            writeln!(out, "{line}").map_err(cannot_write)?;
        }
        out.flush().map_err(cannot_write)?;
        let places: Vec<_> =
            conflicts.iter().take(3).map(|(path, _)| Display(path).to_string()).collect();
        let more = match conflicts.len() {
            0..=3 => String::new(),
            count => format!(" and {} more", count - 3),
        };
        Err(Error::conflict(format!(
            "diff: {}{more}: changed on both sides, to different ends; prefer one of them, with `--prefer new` or \
             `--prefer other`",
            places.join(", ")
        )))
    }

    /// What is compared; a revision may stand alone.
    fn operands(&self) -> Result<(Operand, Option<Operand>)> {
        match (&*self.datastore, &self.old, &self.new) {
            ([_, _], path, None) => {
                let path = path.as_deref().unwrap_or_default();
                match (Operand::of(path), Operand::of(path)) {
                    (old @ Operand::Path(_), new) => Ok((old, Some(new))),
                    _ => Err(Error::invalid_input("diff: two datastores are compared at a path")),
                }
            }
            ([] | [_], Some(old), new) => Ok((Operand::of(old), new.as_deref().map(Operand::of))),
            _ => Err(Error::invalid_input(
                "diff: write two datastores and perhaps a path, or one and two paths",
            )),
        }
    }

    /// The tree that the paths of an operand are in.
    fn tree(&self, operand: usize) -> Tree<'_> {
        match (&*self.datastore, &self.stack) {
            ([], None) => Tree::Store,
            ([], Some(stack)) => Tree::Stack(stack),
            (datastores, _) => Tree::Datastore(datastores[operand.min(datastores.len() - 1)]),
        }
    }

    /// What commits have changed together.
    fn print_between(&self, global: &Global, from: u64, to: Option<u64>) -> Result<ExitCode> {
        let store = global.open_to_read()?;
        let to = to.map_or_else(|| store.read()?.revision(), Ok)?;
        let between = match from <= to {
            true => store.between(from, to),
            false => store.between(to, from).map(Between::inverted),
        };
        let between = between.map_err(|error| at("diff", "", error))?;
        self.print(&mut |found| between.changes(found))
    }

    fn print(&self, changes: &mut Changes<'_>) -> Result<ExitCode> {
        let found = match self.patch {
            true => self.print_patch(changes),
            false => self.print_lines(changes),
        };
        match found.map_err(|error| at("diff", "", error))? {
            false => Ok(ExitCode::SUCCESS),
            true => Ok(ExitCode::from(DIFFERENT)),
        }
    }

    /// Prints a line for each change; true when there is one.
    fn print_lines(&self, changes: &mut Changes<'_>) -> Result<bool> {
        // Escapes for colours are left out where nobody sees them.
        let mut out = BufWriter::new(anstream::AutoStream::auto(io::stdout().lock()));
        let mut found = false;
        self.each(changes, &mut |path, change| {
            found = true;
            let path = if path.is_empty() { "(root)".to_owned() } else { one_line(path) };
            let (style, mark, text) = match &change {
                Change::Added(new) => (ADDED, '+', short(new)?),
                Change::Removed(old) => (REMOVED, '-', short(old)?),
                Change::Replaced(old, new) => {
                    (CHANGED, '~', format!("{} -> {}", short(old)?, short(new)?))
                }
                Change::Annotated(old, new) => {
                    let text = format!("metadata {} -> {}", annotation(old)?, annotation(new)?);
                    (CHANGED, '~', text)
                }
            };
            writeln!(out, "{style}{mark} {path}:{style:#} {text}").map_err(cannot_write)
        })?;
        out.flush().map_err(cannot_write)?;
        Ok(found)
    }

    /// Prints a JSON Patch, which is empty when there is no difference.
    fn print_patch(&self, changes: &mut Changes<'_>) -> Result<bool> {
        let layout = if self.pretty { Layout::Pretty } else { Layout::Compact };
        let fidelity = match (self.lossy, self.tagged) {
            (true, _) => Fidelity::Lossy,
            (_, true) => Fidelity::Tagged,
            _ => Fidelity::Refuse,
        };
        let mut printer = JsonWriter::new(stdout(), layout, fidelity);
        let metadata = if self.lossy { Metadata::LeaveOut } else { Metadata::Refuse };
        let mut writer = PatchWriter::new(&mut printer, metadata)?;
        let mut found = false;
        self.each(changes, &mut |path, change| {
            found = true;
            writer.write(path, &change)
        })?;
        writer.finish()?;
        let mut out = printer.finish()?;
        out.write_all(b"\n").and_then(|()| out.flush()).map_err(cannot_write)?;
        Ok(found)
    }

    /// Hands over the differences that count.
    fn each(
        &self,
        changes: &mut Changes<'_>,
        found: &mut dyn FnMut(&Path, Change<'_>) -> Result<()>,
    ) -> Result<()> {
        changes(&mut |path, change| match change {
            Change::Annotated(..) if self.lossy => Ok(()),
            change => found(path, change),
        })
    }
}

/// What paths are paths in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tree<'d> {
    Store,
    Stack(&'d str),
    Datastore(Datastore),
}

impl Tree<'_> {
    fn read(self, global: &Global) -> Result<Snapshot> {
        match self {
            Tree::Store => global.read(),
            Tree::Stack(name) => global.open_to_read()?.stack_with(name, |_| to_read())?.read(),
            Tree::Datastore(datastore) => global.open_to_read()?.datastores()?.read(datastore),
        }
    }
}

/// One of the two trees, as an argument names it.
enum Operand {
    Path(String),
    Revision(u64),
    Input(Input),
}

/// An operand that is open.
struct Loaded {
    snapshot: Rc<Snapshot>,
    path: String,
}

impl Operand {
    fn of(argument: &str) -> Operand {
        match argument {
            "" => Operand::Path(String::new()),
            path if path.starts_with('/') => Operand::Path(path.to_owned()),
            number if number.bytes().all(|byte| byte.is_ascii_digit()) => match number.parse() {
                Ok(revision) => Operand::Revision(revision),
                Err(_) => Operand::Input(Input::of_file(FilePath::new(number))),
            },
            file => {
                let file = file.strip_prefix('@').unwrap_or(file);
                Operand::Input(Input::of_file(FilePath::new(file)))
            }
        }
    }
}

/// Reads a file as a tree in memory, which keeps metadata and needs less room than a value.
fn load_input(input: &Input, tagged: bool) -> Result<Loaded> {
    let mut opened = Some(input.open()?);
    let path = "/file".to_owned();
    let store = spinney::open("memory:")?;
    let mut failed = None;
    let written = store.write(|transaction| {
        transaction.set_with(&path, Existing::Any, |visitor| {
            let (dialect, framing) = Format::of(input).grammar();
            let options = ReadOptions { dialect, framing, tagged, ..ReadOptions::default() };
            let opened = opened.take().expect("nobody else writes");
            input.parse(opened, options, visitor).inspect_err(|error| failed = Some(error.clone()))
        })
    });
    match (failed, written) {
        // Without the path, which is of no concern to the user.
        (Some(error), _) => Err(error.at("diff")),
        (None, Err(error)) => Err(error.at("diff")),
        (None, Ok(_)) => Ok(Loaded { snapshot: Rc::new(store.read()?), path }),
    }
}

impl Loaded {
    fn require(&self) -> Result<Reached<'_>> {
        self.find()?.ok_or_else(|| no_node("diff", &self.path))
    }

    fn find(&self) -> Result<Option<Reached<'_>>> {
        self.snapshot.node(&self.path).map_err(|error| at("diff", &self.path, error))
    }
}

/// A place that both have changed: what it was, what it is now, and what it is to the other one.
fn conflict_line(path: &Path, place: &Conflict<'_>) -> Result<String> {
    let shown = |node: &Option<Reached<'_>>| match node {
        Some(node) => short(node),
        None => Ok("nothing".to_owned()),
    };
    let path = if path.is_empty() { "(root)".to_owned() } else { one_line(path) };
    let [old, new, other] = [shown(&place.base)?, shown(&place.ours)?, shown(&place.theirs)?];
    let is_map = |node: &Option<Reached<'_>>| match node {
        Some(node) => Ok(node.kind()? == NodeKind::Map),
        None => Ok(false),
    };
    // Of two maps it is told what is said of them: their members are places of their own.
    if new != other && !(is_map(&place.ours)? && is_map(&place.theirs)?) {
        return Ok(format!("! {path}: {old} -> {new} | {other}"));
    }
    let said = |node: &Option<Reached<'_>>| match node {
        Some(node) => annotation(&node.metadata()?),
        None => Ok("nothing".to_owned()),
    };
    let [old, new, other] = [said(&place.base)?, said(&place.ours)?, said(&place.theirs)?];
    Ok(format!("! {path}: metadata {old} -> {new} | {other}"))
}

/// A value in a few characters.
fn short(node: &Reached<'_>) -> Result<String> {
    beginning(|visitor| node.visit(visitor))
}

fn annotation(entries: &Entries) -> Result<String> {
    let map: spinney::Map = entries.iter().map(|(name, value)| (name, &**value)).collect();
    beginning(|visitor| spinney::Value::from(map).visit(visitor))
}

/// The beginning of a text that is printed as far as that.
fn beginning(visit: impl FnOnce(&mut dyn Visitor) -> Result<()>) -> Result<String> {
    let mut text = Beginning::default();
    let mut printer = JsonWriter::new(&mut text, Layout::Compact, Fidelity::Lossy);
    let printed = visit(&mut printer).and_then(|()| printer.finish().map(drop));
    match printed {
        Err(error) if !text.is_cut => return Err(error),
        _ => {}
    }
    let mut shown = String::from_utf8_lossy(&text.bytes).into_owned();
    if text.is_cut {
        // A character that is cut itself.
        shown.truncate(shown.trim_end_matches(char::REPLACEMENT_CHARACTER).len());
        shown.push('…');
    }
    Ok(shown)
}

/// Takes what a line shows and refuses the rest, so that no more is read.
#[derive(Default)]
struct Beginning {
    bytes: Vec<u8>,
    is_cut: bool,
}

impl Write for Beginning {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(SHOWN_LEN_MAX - self.bytes.len());
        self.bytes.extend_from_slice(&bytes[..taken]);
        self.is_cut |= taken < bytes.len();
        match self.is_cut {
            true => Err(io::Error::other("enough")),
            false => Ok(taken),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
