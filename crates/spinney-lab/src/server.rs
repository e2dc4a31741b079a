//! A server that the lab starts for a store of its own, on a socket in a folder, and ends with it.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};
use spinney_core::{Error, Result};
use tempfile::TempDir;

/// How long a server may take until it answers.
const PATIENCE: Duration = Duration::from_secs(30);

/// Begin of the names of folders for sockets; the process that made one comes next, then `-`.
const SOCKETS: &str = "spinney-lab-";

/// A user and its group.
pub type User = (u32, u32);

/// A running server.
pub struct Server {
    process: Child,
    /// Where its socket is: its path must be short, which that of a run may not be.
    sockets: TempDir,
}

impl Server {
    /// Starts `program` as `user`, with what `arguments` makes of the folder for its socket, and waits
    /// until `answers`. It keeps its log in `folder`.
    ///
    /// # Errors
    /// `Io` when it does not start or does not answer in time, with its log.
    pub fn start(
        program: &Path,
        user: Option<User>,
        folder: &Path,
        arguments: impl FnOnce(&Path, &mut Command),
        mut answers: impl FnMut(&Path) -> bool,
    ) -> Result<Server> {
        let failed = |error| io(error, program);
        remove_left(&std::env::temp_dir());
        let prefix = format!("{SOCKETS}{}-", std::process::id());
        let sockets = tempfile::Builder::new().prefix(&prefix).tempdir().map_err(failed)?;
        if let Some(user) = user {
            give(sockets.path(), user).map_err(failed)?;
        }
        let log = folder.join("log");
        let output = File::create(&log).map_err(failed)?;
        let mut command = command(program, user);
        arguments(sockets.path(), &mut command);
        command.stdin(Stdio::null()).stdout(output.try_clone().map_err(failed)?).stderr(output);
        let process = command.spawn().map_err(failed)?;
        let mut server = Server { process, sockets };
        let begin = Instant::now();
        while !answers(server.sockets.path()) {
            let has_ended = server.process.try_wait().map_err(failed)?.is_some();
            if has_ended || begin.elapsed() > PATIENCE {
                let log = fs::read_to_string(&log).unwrap_or_default();
                return Err(Error::io(format!("`{}` does not answer: {log}", program.display())));
            }
            thread::sleep(Duration::from_millis(5));
        }
        Ok(server)
    }

    /// The folder of its socket.
    pub fn sockets(&self) -> &Path {
        self.sockets.path()
    }

    /// The process and those that it has started.
    pub fn processes(&self) -> Vec<u32> {
        let mut all = vec![self.process.id()];
        let mut at = 0;
        while at < all.len() {
            let process = all[at];
            let children = fs::read_to_string(format!("/proc/{process}/task/{process}/children"));
            let children = children.unwrap_or_default();
            all.extend(children.split_whitespace().filter_map(|child| child.parse::<u32>().ok()));
            at += 1;
        }
        all
    }

    /// What its own process holds in memory.
    pub fn memory_bytes(&self) -> Option<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.process.id())).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
        Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Both fail only when it is gone already.
        let _ = rustix::process::kill_process(Pid::from_child(&self.process), Signal::INT);
        let _ = self.process.wait();
    }
}

/// Removes the folders for sockets of processes that were killed; their servers died with them.
fn remove_left(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let rest = name.to_str().and_then(|name| name.strip_prefix(SOCKETS)?.split_once('-'));
        let owner = rest.and_then(|(owner, _)| owner.parse::<u32>().ok());
        if owner.is_some_and(|owner| !Path::new(&format!("/proc/{owner}")).exists()) {
            // What cannot be removed is somebody else's.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// A command that runs as `user` and does not outlive this process, where `setpriv` can see to that.
pub fn command(program: &Path, user: Option<User>) -> Command {
    let has_setpriv = Command::new("setpriv").arg("--version").output();
    if !has_setpriv.is_ok_and(|output| output.status.success()) {
        let mut command = Command::new(program);
        if let Some((user, group)) = user {
            std::os::unix::process::CommandExt::uid(&mut command, user);
            std::os::unix::process::CommandExt::gid(&mut command, group);
        }
        return command;
    }
    let mut command = Command::new("setpriv");
    if let Some((user, group)) = user {
        command.args([format!("--reuid={user}"), format!("--regid={group}")]).arg("--clear-groups");
    }
    command.args(["--pdeathsig", "KILL"]).arg(program);
    command
}

/// Makes a folder that of a user, for it alone.
///
/// # Errors
/// Those of the system.
pub fn give(folder: &Path, (user, group): User) -> std::io::Result<()> {
    fs::set_permissions(folder, fs::Permissions::from_mode(0o700))?;
    std::os::unix::fs::chown(folder, Some(user), Some(group))
}

/// Where a program is: in one of these folders, or in one of `PATH`.
pub fn find(program: &str, folders: &[PathBuf]) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(&path);
    let mut places = folders.iter().cloned().chain(on_path).map(|folder| folder.join(program));
    places.find(|place| place.is_file())
}

/// What a program prints when it is asked for its version; `None` where it is not there.
pub fn version(program: impl AsRef<OsStr>) -> Option<String> {
    let output = Command::new(program).arg("--version").output().ok()?;
    String::from_utf8(output.stdout).ok().filter(|_| output.status.success())
}

fn io(error: std::io::Error, program: &Path) -> Error {
    Error::io(format!("cannot start `{}`", program.display())).with_source(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_dead_processes_go_and_others_stay() {
        let parent = tempfile::tempdir().expect("a folder");
        let mut ended = Command::new("true").spawn().expect("it starts");
        ended.wait().expect("it ends");
        let own = std::process::id();
        let [dead, living, other] = [
            format!("{SOCKETS}{}-a", ended.id()),
            format!("{SOCKETS}{own}-a"),
            format!("{SOCKETS}a"),
        ]
        .map(|name| parent.path().join(name));
        for folder in [&dead, &living, &other] {
            fs::create_dir(folder).expect("a folder");
        }
        remove_left(parent.path());
        assert!(!dead.exists() && living.exists() && other.exists());
    }

    #[test]
    fn a_server_dies_with_the_process_that_started_it() {
        let folder = tempfile::tempdir().expect("a folder");
        // A shell that starts a server as the lab does, and is killed.
        let server = command(Path::new("sleep"), None);
        if server.get_program() == "sleep" {
            println!("skipped: `setpriv` is missing, so servers outlive a killed run");
            return;
        }
        let words: Vec<String> = std::iter::once(server.get_program())
            .chain(server.get_args())
            .map(|word| word.to_string_lossy().into_owned())
            .collect();
        let told = folder.path().join("told");
        let line = format!("{} 1000 & echo $! > {}; wait", words.join(" "), told.display());
        let mut shell = Command::new("sh").args(["-c", &line]).spawn().expect("it starts");
        let begin = Instant::now();
        let server = loop {
            let text = fs::read_to_string(&told).unwrap_or_default();
            let is_server = |id: &str| {
                let name = fs::read_to_string(format!("/proc/{id}/comm")).unwrap_or_default();
                name.trim() == "sleep"
            };
            match text.strip_suffix('\n').filter(|id| is_server(id)) {
                Some(id) => break id.to_owned(),
                None => assert!(begin.elapsed() < PATIENCE, "the server did not start"),
            }
            thread::yield_now();
        };
        shell.kill().expect("it lives");
        shell.wait().expect("it ends");
        let state = || fs::read_to_string(format!("/proc/{server}/stat")).unwrap_or_default();
        let lives = || !state().is_empty() && !state().contains(") Z ");
        while lives() {
            assert!(begin.elapsed() < PATIENCE, "the server lives on: {}", state());
            thread::yield_now();
        }
    }
}
