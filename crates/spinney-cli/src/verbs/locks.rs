//! `lock`, `locks` and `unlock`: keeping others from changing a path.

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitCode};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use clap::Args;
use jiff::{SignedDuration, Timestamp};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;
use spinney::formats::{Fidelity, JsonWriter, Layout};
use spinney::path::Display;
use spinney::{Error, LockInfo, LockOptions, Map, Result, Value};

use crate::global::{Global, OWNER, STORE, Write};
use crate::message::one_line;
use crate::output::{cannot_write, stdout};

/// `spinney lock`.
#[derive(Args)]
#[command(after_help = "\
While a path is locked, others are refused (exit code 8) what would change something at it, above it or below \
it; they read freely. The lock ends with COMMAND, whose exit code is passed on, or without one when stdin is \
closed or Ctrl-C is pressed; however it ends, nothing stays locked. COMMAND finds in its environment which store \
that was, and who may change what is locked: `spinney set` within it may.

Examples:
  spinney lock /people -- sh -c 'spinney set /people/1 1; ./more.sh'
  spinney lock /net --name deploy --wait 30s -- ./deploy.sh
  spinney lock /net --lease 10m")]
pub struct Lock {
    /// Path that is locked; nothing need be there
    path: String,

    /// What it is for, so that others know
    #[arg(long, default_value = "", hide_default_value = true, value_name = "NAME")]
    name: String,

    /// Give it up after this time, such as `10m`, whatever happens
    #[arg(long, value_parser = duration, value_name = "TIME")]
    lease: Option<Duration>,

    /// Wait for others as long as this, such as `30s`; without it, not at all
    #[arg(long, value_parser = duration, value_name = "TIME")]
    wait: Option<Duration>,

    #[command(flatten)]
    write: Write,

    /// What is run while the path is locked
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// `spinney locks`.
#[derive(Args)]
#[command(after_help = "\
Examples:
  spinney locks
  spinney locks --json")]
pub struct Locks {
    /// Print a JSON object for each lock
    #[arg(long)]
    json: bool,
}

/// `spinney unlock`.
#[derive(Args)]
#[command(after_help = "\
Whoever has a path locked unlocks it by ending. This takes the lock away while its holder lives: what that one \
changes from then on is judged like anyone's, and the log keeps who has broken whose lock.

Examples:
  spinney unlock --break /people -m 'the deploy hangs'")]
pub struct Unlock {
    /// Path that is locked
    path: String,

    /// Take the lock away from whoever has it
    #[arg(long = "break", required = true)]
    _is_broken: bool,

    #[command(flatten)]
    write: Write,
}

fn duration(text: &str) -> Result<Duration, String> {
    let parsed = text.parse::<SignedDuration>().ok().and_then(|time| time.try_into().ok());
    parsed.ok_or_else(|| "expected a time such as `500ms`, `30s`, `10m` or `1h30m`".to_owned())
}

impl Lock {
    pub fn run(self, global: &Global) -> Result<ExitCode> {
        let store = global.open_to_change(&self.write)?;
        let Lock { path, name, lease, wait, command, .. } = self;
        // Until here a signal ends this, and nothing is locked.
        let lock = store.lock(&path, LockOptions { name, lease, wait })?;
        let signals = Signals::new([SIGHUP, SIGINT, SIGQUIT, SIGTERM])
            .map_err(|error| Error::io("cannot wait for signals").with_source(error))?;
        let code = match command.split_first() {
            Some((program, arguments)) => {
                let mut command = Command::new(program);
                command.args(arguments);
                command.env(STORE, &global.store).env(OWNER, lock.owner().to_string());
                run(command, signals)?
            }
            None => {
                let shown = Display(&path);
                global
                    .note(&format!("{shown} is locked; close stdin or press Ctrl-C to unlock it"));
                wait_for_end(signals);
                ExitCode::SUCCESS
            }
        };
        if !lock.unlock()? {
            global.note(&format!("{} was not locked any more at the end", Display(&path)));
        }
        Ok(code)
    }
}

/// Returns when stdin is closed or a signal comes.
fn wait_for_end(mut signals: Signals) {
    let (ends, end) = channel();
    let ended = ends.clone();
    thread::spawn(move || {
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        let _ = ended.send(());
    });
    thread::spawn(move || signals.forever().try_for_each(|_| ends.send(())));
    // An error would mean that both have ended.
    let _ = end.recv();
}

/// Runs a command to its end; what is to end this process ends that one first.
fn run(mut command: Command, mut signals: Signals) -> Result<ExitCode> {
    let program = command.get_program().to_string_lossy().into_owned();
    let cannot_run = |error: io::Error| {
        let text = format!("cannot run `{program}`");
        match error.kind() {
            io::ErrorKind::NotFound => {
                Error::not_found(format!("{text}: there is no such command"))
            }
            _ => Error::io(text).with_source(error),
        }
    };
    let mut child = command.spawn().map_err(&cannot_run)?;
    let pid = Pid::from_child(&child);
    let process = pidfd_open(pid, PidfdFlags::empty()).map_err(|error| cannot_run(error.into()))?;
    thread::spawn(move || {
        for signal in signals.forever() {
            // The others come from a terminal, and go to both.
            let signal = match signal {
                SIGHUP => Signal::HUP,
                SIGTERM => Signal::TERM,
                _ => continue,
            };
            let _ = pidfd_send_signal(&process, signal);
        }
    });
    let status = child.wait().map_err(&cannot_run)?;
    // As a shell tells of a command that a signal has ended.
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    Ok(ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX)))
}

impl Locks {
    pub fn run(self, global: &Global) -> Result<()> {
        let locks = global.open_to_read()?.locks()?;
        let mut out = stdout();
        let mut print = || {
            for lock in &locks {
                let line = if self.json { json(lock)? } else { line(lock) };
                writeln!(out, "{line}")?;
            }
            out.flush()
        };
        print().map_err(cannot_write)
    }
}

/// A lock in one line: the path, what it is for, who has it, since when and until when.
fn line(lock: &LockInfo) -> String {
    let LockInfo { path, name, user, process, host, since_ms, expires_ms, .. } = lock;
    let user = if user.is_empty() { String::new() } else { format!("{user}, ") };
    let expires = expires_ms.map_or_else(|| "-".to_owned(), time);
    let holder = format!("{user}process {process} on {host}");
    let fields = [Display(path).to_string(), name.clone(), holder, time(*since_ms), expires];
    fields.map(|field| one_line(&field)).join("\t")
}

fn time(ms: u64) -> String {
    let time = i64::try_from(ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
    time.map_or_else(|| "-".to_owned(), |time| time.to_string())
}

fn json(lock: &LockInfo) -> io::Result<String> {
    let mut members = Map::new();
    members.insert("path", &*lock.path);
    members.insert("name", &*lock.name);
    members.insert("user", &*lock.user);
    members.insert("process", u64::from(lock.process));
    members.insert("host", &*lock.host);
    members.insert("owner", lock.owner.to_string());
    members.insert("since", time(lock.since_ms));
    members.insert("expires", lock.expires_ms.map_or(Value::Null, |ms| time(ms).into()));
    let mut writer = JsonWriter::new(Vec::new(), Layout::Compact, Fidelity::Refuse);
    let printed = Value::Map(members).visit(&mut writer).and_then(|()| writer.finish());
    let printed = printed.map_err(io::Error::other)?;
    String::from_utf8(printed).map_err(io::Error::other)
}

impl Unlock {
    pub fn run(self, global: &Global) -> Result<()> {
        let broken = global.open_to_change(&self.write)?.break_lock(&self.path)?;
        global.note(&format!("broken: {}", broken.value));
        Ok(())
    }
}
