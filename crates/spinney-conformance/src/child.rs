//! Other processes of a test: its binary again, which runs the test `child` in a role from the
//! environment.

use std::fmt::Display;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// The variable that holds the role.
pub const ROLE: &str = "SPINNEY_TEST_ROLE";

/// The variable that holds the path of the store.
pub const STORE: &str = "SPINNEY_TEST_STORE";

/// The role of this process and the store that it is for; `None` when it is no child.
pub fn role() -> Option<(String, PathBuf)> {
    Some((std::env::var(ROLE).ok()?, std::env::var_os(STORE)?.into()))
}

/// A child that is not started yet.
///
/// # Panics
/// When the system does not tell the path of this binary.
pub fn child_command(role: &str, dir: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("the test binary"));
    command.args(["child", "--exact", "--nocapture", "--test-threads=1"]);
    command.env(ROLE, role).env(STORE, dir).stdout(Stdio::piped());
    command
}

/// Starts a child.
///
/// # Panics
/// When that fails.
pub fn start(role: &str, dir: &Path) -> Child {
    child_command(role, dir).spawn().expect("a child process")
}

/// What the child says, as it comes.
///
/// # Panics
/// When it is asked for a second time.
pub fn said(child: &mut Child) -> impl Iterator<Item = String> + use<> {
    let lines = BufReader::new(child.stdout.take().expect("stdout")).lines();
    lines.map_while(Result::ok).filter_map(|line| {
        let (_, words) = line.split_once("said:")?;
        Some(words.trim().to_owned())
    })
}

/// Says something to the parent.
pub fn say(words: impl Display) {
    let mut stdout = std::io::stdout().lock();
    // Who listened may have heard enough and be about to kill this process.
    let _ = writeln!(stdout, "said: {words}").and_then(|()| stdout.flush());
}

/// Sends a signal, such as `-STOP`.
///
/// # Panics
/// When that fails.
pub fn signal(child: &Child, signal: &str) {
    let status = Command::new("kill").args([signal, &child.id().to_string()]).status();
    assert!(status.expect("kill runs").success());
}

/// Ends a child without a chance to clean up.
///
/// # Panics
/// When that fails.
pub fn kill(mut child: Child) {
    child.kill().expect("kill");
    child.wait().expect("wait");
}
