//! `query`: what a JSONPath query finds, in a store or a file.

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use spinney::formats::ReadOptions;
use spinney::query::{self, Found, Match, Node, QueryLimits};
use spinney::value::ValueBuilder;
use spinney::{Container, Error, Path, Result, Scalar, Text, Value, Visitor};

use super::import::Format;
use crate::global::Global;
use crate::input::Input;
use crate::output::{Form, at, cannot_write, stdout};
use crate::place::At;

/// `spinney query`.
#[derive(Args)]
#[command(after_help = "\
Put the query between single quotes, so that the shell leaves `$` alone. Names and positions are \
found at once, whatever lies beside them; `*`, `..` and filters read what they go through. \
Functions: length, count, value, match (the whole text) and search (a part of it).

Examples:
  spinney query '$.people[?@.age > 40].name'
  spinney query '$..price' --path /shop --count
  spinney query '$.people[?search(@.name, \"^A\")]' --paths
  spinney query '$[-3:]' --file events.jsonl --array")]
pub struct Query {
    /// What to look for; `$` is the root
    #[arg(value_name = "JSONPATH")]
    query: String,

    /// Path of the node that is `$`; without it the whole store
    #[arg(long, value_name = "PATH", default_value = "", hide_default_value = true)]
    path: String,

    /// Look in a file of JSON and not in a store; `-` is stdin
    #[arg(long, value_name = "FILE", conflicts_with_all = ["at", "path"])]
    file: Option<PathBuf>,

    /// Print one list
    #[arg(long)]
    array: bool,

    /// Print where the nodes are (normalized paths), and not what they are
    #[arg(long)]
    paths: bool,

    /// Print how many nodes there are
    #[arg(long, conflicts_with_all = ["array", "paths", "explain"])]
    count: bool,

    /// Print how the query would read the tree, a line for each segment
    #[arg(long, conflicts_with_all = ["array", "paths"])]
    explain: bool,

    /// Stop after so many nodes
    #[arg(long, value_name = "N")]
    limit: Option<u64>,

    /// Fail when it finds more nodes
    #[arg(long, value_name = "N")]
    results_max: Option<u64>,

    /// Fail when it visits more nodes
    #[arg(long, value_name = "N")]
    steps_max: Option<u64>,

    /// Fail when it takes longer
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    time_max: Option<Duration>,

    #[command(flatten)]
    form: Form,

    #[command(flatten)]
    at: At,
}

/// A length of time in seconds.
pub fn seconds(text: &str) -> Result<Duration, String> {
    let duration = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    duration.ok_or_else(|| "expected seconds, as in `2.5`".to_owned())
}

impl Query {
    pub fn run(self, global: &Global) -> Result<()> {
        let query = query::Query::parse(&self.query).map_err(|error| error.at("query"))?;
        query.warnings().iter().for_each(|warning| global.note(&format!("warning: {warning}")));
        let done = match &self.file {
            Some(file) => {
                let value = read_file(&Input::of_file(file))?;
                match self.explain {
                    true => print_plan(&query.explain(&&value)?),
                    false => self.print(Found::new(&query, &value, self.limits())),
                }
            }
            None => {
                let snapshot = self.at.read(global, &self.path)?;
                match self.explain {
                    true => print_plan(&snapshot.explain_query(&self.path, &query)?),
                    false => self.print(snapshot.query(&self.path, &query, self.limits())?),
                }
            }
        };
        done.map_err(|error| at("query", &self.path, error))
    }

    fn limits(&self) -> QueryLimits {
        let &Query { steps_max, results_max, time_max, .. } = self;
        QueryLimits { steps_max, results_max, time_max }
    }

    fn print<N: Node>(&self, mut found: Found<N>) -> Result<()> {
        match self {
            Query { count: true, .. } => {
                let mut count = 0;
                self.each(&mut found, |_, _| {
                    count += 1;
                    Ok(())
                })?;
                writeln!(stdout(), "{count}").map_err(cannot_write)
            }
            Query { paths: true, array: false, .. } => {
                let mut out = stdout();
                self.each(&mut found, |found, _| {
                    writeln!(out, "{}", found.location()?).map_err(cannot_write)?;
                    show(&mut out)
                })?;
                out.flush().map_err(cannot_write)
            }
            _ => self.print_json(found),
        }
    }

    fn print_json<N: Node>(&self, mut found: Found<N>) -> Result<()> {
        let mut writer = self.form.writer(stdout(), Path::root());
        if self.array {
            writer.open(Container::List)?;
        }
        self.each(&mut found, |found, node| {
            if self.paths {
                let path = found.location()?.to_string();
                writer.scalar(Scalar::String(Text::new(&path)))?;
            } else {
                let printed = node.visit(&mut writer);
                printed.map_err(|error| self.with_place(found, node, error))?;
            }
            if !self.array {
                writer.end_line()?;
            }
            if is_watched() { writer.write_out() } else { Ok(()) }
        })?;
        if self.array {
            writer.close()?;
            writer.end_line()?;
        }
        writer.finish().map(drop)
    }

    /// Hands over each node that is wanted, and what tells where it lies.
    fn each<N: Node>(
        &self,
        found: &mut Found<N>,
        mut take: impl FnMut(&Found<N>, &Match<N>) -> Result<()>,
    ) -> Result<()> {
        let mut left = self.limit.unwrap_or(u64::MAX);
        while left > 0
            && let Some(node) = found.next().transpose()?
        {
            take(found, &node)?;
            left -= 1;
        }
        Ok(())
    }

    /// The error of printing a node, with the place that only a second look tells.
    fn with_place<N: Node>(&self, found: &Found<N>, node: &Match<N>, error: Error) -> Error {
        let Ok(location) = found.location() else { return error };
        let place: Result<Path> = [&*self.path, &location.pointer()].concat().parse();
        let Ok(place) = place else { return error };
        node.visit(&mut self.form.writer(io::sink(), place)).err().unwrap_or(error)
    }
}

/// Whether someone looks on, who wants to see each node when it is found.
fn is_watched() -> bool {
    io::stdout().is_terminal()
}

fn show(out: &mut impl Write) -> Result<()> {
    if is_watched() { out.flush().map_err(cannot_write) } else { Ok(()) }
}

fn print_plan(plan: &[query::Explained]) -> Result<()> {
    let mut out = stdout();
    for line in plan {
        writeln!(out, "{line}").map_err(cannot_write)?;
    }
    out.flush().map_err(cannot_write)
}

fn read_file(input: &Input) -> Result<Value> {
    let (dialect, framing) = Format::of(input).grammar();
    let options = ReadOptions { dialect, framing, ..ReadOptions::default() };
    let mut builder = ValueBuilder::default();
    let read = input.open().and_then(|opened| input.parse(opened, options, &mut builder));
    read.map_err(|error| error.at("query"))?;
    builder.finish().ok_or_else(|| Error::invalid_input("query: the file holds no value"))
}
