//! This machine and its processes, as the system tells of them.

use std::fs;
use std::sync::OnceLock;

use rustix::process::{Pid, test_kill_process};

/// Names the running system and the space of process numbers that this process sees; empty where the
/// system does not tell.
pub fn this() -> &'static str {
    static THIS: OnceLock<String> = OnceLock::new();
    THIS.get_or_init(|| {
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id");
        let processes = fs::read_link("/proc/self/ns/pid");
        match (boot, processes) {
            (Ok(boot), Ok(processes)) => format!("{} {}", boot.trim(), processes.display()),
            _ => String::new(),
        }
    })
}

/// What this machine is called.
pub fn host() -> &'static str {
    static HOST: OnceLock<String> = OnceLock::new();
    HOST.get_or_init(|| rustix::system::uname().nodename().to_string_lossy().into_owned())
}

/// When a process started, in ticks since the system did; `None` when it has ended or the system does
/// not tell.
pub fn started(process: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The second field is a name in parentheses that may hold anything.
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    match fields.next()? {
        "Z" | "X" => None,
        _ => fields.nth(18)?.parse().ok(),
    }
}

/// Whether the process that had a number and started then lives; `None` when the system does not tell.
pub fn lives(process: u32, then: u64) -> Option<bool> {
    let pid = i32::try_from(process).ok().and_then(Pid::from_raw)?;
    if test_kill_process(pid) == Err(rustix::io::Errno::SRCH) {
        return Some(false);
    }
    match started(process) {
        Some(started) => Some(started == then),
        // It has ended and nobody has asked how, or it is hidden from this user.
        None if fs::metadata(format!("/proc/{process}/stat")).is_ok() => Some(false),
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_lives_from_its_start_to_its_end() {
        let own = std::process::id();
        let then = started(own).expect("it runs");
        assert_eq!(lives(own, then), Some(true));
        assert_eq!(lives(own, then + 1), Some(false), "another one has its number");
        assert!(!this().is_empty() && !host().is_empty());
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("starts");
        let then = started(child.id()).expect("it runs");
        assert_eq!(lives(child.id(), then), Some(true));
        child.kill().expect("kills");
        // It has ended, at the latest when it was waited for; until then it keeps its number.
        let waits = std::time::Instant::now();
        while lives(child.id(), then) != Some(false) {
            assert!(waits.elapsed().as_secs() < 60, "it is dead and not known to be");
        }
        child.wait().expect("waits");
        assert_eq!(lives(child.id(), then), Some(false));
    }
}
