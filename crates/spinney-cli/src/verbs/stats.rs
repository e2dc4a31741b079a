//! `stats`: facts about the store.

use std::io::{self, Write};

use clap::Args;
use spinney::{ErrorKind, LockInfo, Member, NodeKind, Path, Result};

use crate::global::Global;
use crate::message::one_line;
use crate::output::{cannot_write, stdout};

/// `spinney stats`.
#[derive(Args)]
#[command(after_help = "\
Examples:
  spinney stats
  spinney stats --store lmdb:/var/lib/people")]
pub struct Stats {}

impl Stats {
    pub fn run(self, global: &Global) -> Result<()> {
        let store = global.open_to_read()?;
        let snapshot = store.read()?;
        let revision = match snapshot.revision() {
            Err(error) if error.kind() == ErrorKind::Unsupported => "one for each tree".to_owned(),
            revision => revision?.to_string(),
        };
        let mut facts = vec![
            ("url".to_owned(), spinney::network::redacted(&global.store)),
            ("revision".to_owned(), revision),
        ];
        facts.extend(store.stats()?);
        let mut trees = Vec::new();
        let mut add = |member: Member| {
            let mut path = Path::root();
            path.push(&member.segment);
            let members = match member.kind {
                NodeKind::Map | NodeKind::List => snapshot.count(&path)?,
                _ => None,
            };
            let members = members.map(|count| count.to_string());
            trees.push((one_line(&path), member.kind.name(), members.unwrap_or_default()));
            Ok(())
        };
        // The root of a JSON file need not be a map of trees.
        if snapshot.kind("")? == Some(NodeKind::Map) {
            snapshot.list_with("", None, None, &mut add)?;
        }
        let locks = store.locks()?;
        facts.insert(2, ("trees".to_owned(), trees.len().to_string()));
        facts.insert(3, ("locks".to_owned(), locks.len().to_string()));
        let width = facts.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        let mut out = stdout();
        let mut print = || {
            for (name, value) in &facts {
                writeln!(out, "{name:width$}  {}", one_line(value))?;
            }
            if trees.is_empty() {
                return print_locks(&mut out, &locks);
            }
            let width = trees.iter().map(|(path, ..)| path.chars().count()).max().unwrap_or(0);
            let width = width.clamp(4, 60);
            writeln!(out, "\n{:width$}  {:6}  {:>9}", "tree", "kind", "members")?;
            for (path, kind, members) in &trees {
                let line = format!("{path:width$}  {kind:6}  {members:>9}");
                writeln!(out, "{}", line.trim_end())?;
            }
            print_locks(&mut out, &locks)
        };
        print().map_err(cannot_write)
    }
}

fn print_locks(out: &mut impl Write, locks: &[LockInfo]) -> io::Result<()> {
    if !locks.is_empty() {
        writeln!(out, "\nlock")?;
    }
    for lock in locks {
        writeln!(out, "{}", one_line(&lock.to_string()))?;
    }
    out.flush()
}
