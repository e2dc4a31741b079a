//! `get`, `list`, `count` and `hash`: what stands at a path.

use std::io::Write;

use clap::Args;
use spinney::path::Display;
use spinney::read::Node as _;
use spinney::{Error, NodeKind, Path, Result, Snapshot, Value};

use crate::global::Global;
use crate::message::one_line;
use crate::output::{Form, at, cannot_write, no_node, stdout};
use crate::place::At;

/// `spinney get`.
#[derive(Args)]
#[command(after_help = "\
Examples:
  spinney get /people/42
  spinney get /people --pretty
  spinney get /people/42 --at 17
  spinney get --stack settings --origin /editor
  spinney get /people/42/photo --bytes > photo.jpg")]
pub struct Get {
    /// Path of the node; without it the whole store
    #[arg(default_value = "", hide_default_value = true)]
    path: String,

    #[command(flatten)]
    form: Form,

    /// Print a string or bytes as they are, without quotes and without a line feed
    #[arg(long, conflicts_with_all = ["pretty", "lossy", "tagged"])]
    bytes: bool,

    /// Print a line for each value of a stack or datastore: its layer, path and JSON
    #[arg(long, conflicts_with_all = ["bytes", "pretty"])]
    origin: bool,

    #[command(flatten)]
    at: At,
}

impl Get {
    pub fn run(self, global: &Global) -> Result<()> {
        let snapshot = self.at.read(global, &self.path)?;
        match () {
            () if self.bytes => self.print_bytes(&snapshot),
            () if self.origin => self.print_origins(&snapshot),
            () => self.form.print("get", &snapshot, &self.path, &mut stdout()),
        }
    }

    fn print_origins(&self, snapshot: &Snapshot) -> Result<()> {
        let mut out = stdout();
        let told = snapshot.each_source(&self.path, &mut |found, node| {
            let mut writer = self.form.writer(Vec::new(), found.path.parse()?);
            node.visit(&mut writer)?;
            let path = if found.path.is_empty() { "\"\"" } else { found.path };
            write!(out, "{}\t{}\t", found.layer, one_line(path)).map_err(cannot_write)?;
            out.write_all(&writer.finish()?).and_then(|()| writeln!(out)).map_err(cannot_write)
        });
        match told.map_err(|error| at("get", &self.path, error))? {
            true => out.flush().map_err(cannot_write),
            false => Err(no_node("get", &self.path)),
        }
    }

    fn print_bytes(&self, snapshot: &Snapshot) -> Result<()> {
        let path = &self.path;
        let kind = snapshot.kind(path).map_err(|error| at("get", path, error))?;
        let value = match kind {
            None => return Err(no_node("get", path)),
            Some(NodeKind::String | NodeKind::Bytes) => snapshot.get(path)?,
            Some(kind) => {
                return Err(Error::invalid_input(format!(
                    "get {}: it is a {}, and only strings and bytes print as they are; leave \
                     `--bytes` out",
                    Display(path),
                    kind.name()
                )));
            }
        };
        let bytes: &[u8] = match &value {
            Some(Value::String(text)) => text.as_bytes(),
            Some(Value::Bytes(bytes)) => bytes,
            _ => &[],
        };
        let mut out = stdout();
        out.write_all(bytes).and_then(|()| out.flush()).map_err(cannot_write)
    }
}

/// `spinney list`.
#[derive(Args)]
#[command(after_help = "\
Keys are printed as they stand in a path: `~1` for `/`, `~0` for `~`; control characters as escapes. \
Integers come first, in their order, then all other keys, in the order of their UTF-8 bytes.

Examples:
  spinney list
  spinney list /people --from 42 --limit 10
  spinney list /people --long")]
pub struct List {
    /// Path of a map or list; without it the trees of the store
    #[arg(default_value = "", hide_default_value = true)]
    path: String,

    /// Begin at this key, or where it would stand; in a list, at this position
    #[arg(long, value_name = "KEY", allow_hyphen_values = true)]
    from: Option<String>,

    /// Print at most so many members
    #[arg(long, value_name = "N")]
    limit: Option<u64>,

    /// Print kind and number of members too
    #[arg(long, short)]
    long: bool,

    #[command(flatten)]
    at: At,
}

impl List {
    pub fn run(self, global: &Global) -> Result<()> {
        let snapshot = self.at.read(global, &self.path)?;
        let path = &self.path;
        let mut out = stdout();
        let mut print = |member: spinney::Member| {
            let mut segment = Path::root();
            segment.push(&member.segment);
            let name = one_line(&segment[1..]);
            if !self.long {
                return writeln!(out, "{name}").map_err(cannot_write);
            }
            let count = match member.kind {
                NodeKind::Map | NodeKind::List => {
                    snapshot.count(&format!("{path}{}", &*segment))?
                }
                _ => None,
            };
            let count = count.map_or_else(|| "-".to_owned(), |count| count.to_string());
            writeln!(out, "{:<6}  {count:>9}  {name}", member.kind.name()).map_err(cannot_write)
        };
        let listed = snapshot.list_with(path, self.from.as_deref(), self.limit, &mut print);
        match listed.map_err(|error| at("list", path, error))? {
            true => out.flush().map_err(cannot_write),
            false => Err(no_node("list", path)),
        }
    }
}

/// `spinney count`.
#[derive(Args)]
#[command(after_help = "\
The count is stored: it takes as long for a million members as for one.

Examples:
  spinney count /people
  spinney count")]
pub struct Count {
    /// Path of a map or list; without it the number of trees
    #[arg(default_value = "", hide_default_value = true)]
    path: String,

    #[command(flatten)]
    at: At,
}

impl Count {
    pub fn run(self, global: &Global) -> Result<()> {
        let snapshot = self.at.read(global, &self.path)?;
        let path = &self.path;
        let count = match snapshot.count(path).map_err(|error| at("count", path, error))? {
            Some(count) => count,
            None => {
                let kind = snapshot.kind(path)?.ok_or_else(|| no_node("count", path))?;
                return Err(Error::invalid_input(format!(
                    "count {}: it is a {}, not a map or list",
                    Display(path),
                    kind.name()
                )));
            }
        };
        writeln!(stdout(), "{count}").map_err(cannot_write)
    }
}

/// `spinney hash`.
#[derive(Args)]
#[command(after_help = "\
It is the SHA-256 of what `spinney get PATH --tagged` prints, without the line feed: nodes have the \
same hash when they are identical, numbers by their text, metadata included.

Examples:
  spinney hash /people/42
  spinney set /people/42 '{}' --if-hash \"$(spinney hash /people/42)\"
  spinney hash -d candidate /interfaces")]
pub struct Hash {
    /// Path of the node; without it the whole store
    #[arg(default_value = "", hide_default_value = true)]
    path: String,

    #[command(flatten)]
    at: At,
}

impl Hash {
    pub fn run(self, global: &Global) -> Result<()> {
        let path = &self.path;
        let state = self.at.read(global, path)?;
        let hash = state.hash(path).map_err(|error| at("hash", path, error))?;
        let hash = hash.ok_or_else(|| no_node("hash", path))?;
        writeln!(stdout(), "{hash}").map_err(cannot_write)
    }
}
