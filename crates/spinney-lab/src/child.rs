//! Work that is measured in a process of its own: this program again, with arguments that no user writes.

use std::path::Path;
use std::process::Command;

use spinney_core::{Error, Result};

use crate::{cold, memory};

/// The first argument of every child.
const CHILD: &str = "--child-of-bench";

/// Does a child's work when the arguments ask for it; the program then ends with this code.
///
/// The program calls it first with its arguments, its own name left out.
pub fn serve(arguments: &[String]) -> Option<u8> {
    let [child, task, rest @ ..] = arguments else { return None };
    if child != CHILD {
        return None;
    }
    let rest: Vec<&str> = rest.iter().map(String::as_str).collect();
    let done = match (&**task, &*rest) {
        ("import", [url, file]) => memory::import(url, Path::new(file)),
        ("nothing", []) => Ok(String::new()),
        ("read", [url, path]) => cold::read(url, path),
        ("commit", [url, level, path]) => cold::commit_until_killed(url, level, path),
        _ => Err(Error::invalid_input("a child of `bench` was not told what to do")),
    };
    Some(match done {
        Ok(answer) => {
            println!("{answer}");
            0
        }
        Err(error) => {
            eprintln!("{error}");
            1
        }
    })
}

/// A child that will do `task`.
///
/// # Errors
/// `Io` when this program cannot be found.
pub(crate) fn command(task: &str, arguments: &[&str]) -> Result<Command> {
    let program = std::env::current_exe()
        .map_err(|error| Error::io("this program cannot be found").with_source(error))?;
    let mut command = Command::new(program);
    command.arg(CHILD).arg(task).args(arguments);
    Ok(command)
}
