//! The `spinney` command: parses what the user asked for, runs it, tells what went wrong.
//!
//! It owns the exit code and the form of messages, and knows nothing of what a verb does.

#![forbid(unsafe_code)]

mod condition;
mod global;
mod input;
mod message;
mod output;
mod place;
mod principal;
mod progress;
mod verbs;

use std::process::ExitCode;

use clap::Parser;

use global::Global;
use verbs::Verb;

/// A store for trees: JSON documents and configuration, read and changed by path.
///
/// A path is a JSON Pointer (RFC 6901): `/people/42/name` is the member `name` of the member `42`
/// of the tree `people`. In a list a segment is a position, and `-` is the end. `~1` stands for a
/// `/` inside a key and `~0` for a `~`. No path at all is the root.
#[derive(Parser)]
#[command(name = "spinney", version, max_term_width = 100, after_help = EXAMPLES)]
pub struct Cli {
    #[command(flatten)]
    global: Global,

    #[command(subcommand)]
    verb: Verb,
}

const EXAMPLES: &str = "\
Examples:
  spinney set /people/42 '{\"name\": \"Ada\"}'
  spinney get /people/42/name
  spinney import people.json /people && spinney list /people

Exit codes: 0 success, 1 `diff` found a difference, 2 invalid input, 3 not found, 4 already exists, \
5 conflict, 6 refused by a schema, 7 denied, 8 busy, 9 read-only, 10 limit exceeded, \
11 unsupported, 12 corrupted, 13 closed, 14 input/output.";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let Some(code) = spinney_lab::child::serve(&arguments) {
        return ExitCode::from(code);
    }
    let Cli { global, verb } = Cli::parse();
    message::print_warnings();
    match verb.run(&global) {
        Ok(code) => code,
        Err(error) if message::is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            message::print_error(&error);
            ExitCode::from(error.kind().exit_code())
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::{Command, CommandFactory};

    use super::Cli;

    /// Columns of a terminal that is not wide.
    const WIDTH: usize = 80;

    /// A line that is printed on two is nothing to copy.
    #[test]
    fn usage_and_examples_fit_in_a_line() {
        let mut cli = Cli::command();
        cli.build();
        let mut commands = vec![&mut cli];
        let mut too_long = Vec::new();
        while let Some(command) = commands.pop() {
            let usage = command.render_usage().to_string();
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            let examples = help.lines().filter(|line| line.starts_with("  "));
            let long = usage.lines().chain(examples).filter(|line| line.chars().count() > WIDTH);
            too_long.extend(long.map(str::to_owned));
            commands.extend(command.get_subcommands_mut().collect::<Vec<&mut Command>>());
        }
        assert_eq!(too_long, Vec::<String>::new());
    }
}
