//! Counts the syncs and system calls of commits with `strace`, attached to this process and to those of
//! servers, in a pass without a clock.
//!
//! Counted as syncs are fsync, fdatasync, msync with `MS_SYNC`, and writes to files that were opened with
//! `O_SYNC` or `O_DSYNC`.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::fs::Access;
use rustix::process::{Pid, Signal};
use spinney_core::{Error, Result};

/// Begin of the paths whose (failing) look-up marks a place in the trace.
const MARK: &str = "/spinney-lab-mark";
const ATTACH_MAX: Duration = Duration::from_secs(3);
/// `O_DSYNC`, which `O_SYNC` contains.
const O_DSYNC: u32 = 0o10_000;

/// A running `strace` of this process and of others.
pub struct Tracer {
    child: Child,
    path: PathBuf,
    marked: Vec<Option<Key>>,
    synchronous: Vec<HashSet<u32>>,
}

/// System calls between two marks, of all threads of the processes that are watched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Those that sync.
    pub syncs: u64,
    /// All.
    pub calls: u64,
}

/// Test and system.
type Key = (String, String);

impl Tracer {
    /// Attaches to this process and to `servers`; `None` where `strace` is not installed or the kernel forbids it.
    pub fn attach(folder: &Path, servers: &[u32]) -> Option<Tracer> {
        let path = folder.join("trace");
        // An earlier trace would look as if this one had begun.
        let _ = fs::remove_file(&path);
        let child = Command::new("strace")
            .args(["-f", "-qq", "-e", "signal=none", "-s", "64", "-p"])
            .arg(std::process::id().to_string())
            .args(servers.iter().flat_map(|server| ["-p".to_owned(), server.to_string()]))
            .arg("-o")
            .arg(&path)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let mut tracer = Tracer { child, path, marked: Vec::new(), synchronous: Vec::new() };
        let begin = Instant::now();
        while begin.elapsed() < ATTACH_MAX {
            mark("attach");
            if begin_of(&tracer.path).is_ok_and(|text| text.contains(MARK)) {
                return Some(tracer);
            }
            if tracer.child.try_wait().ok()?.is_some() {
                return None;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        tracer.stop();
        None
    }

    /// A commit of `system` in `test` begins. What a server writes does not go by the descriptors of
    /// this process.
    pub fn begin(&mut self, test: &str, system: &str, is_server: bool) {
        self.synchronous.push(if is_server { HashSet::new() } else { synchronous_files() });
        mark(&self.marked.len().to_string());
        self.marked.push(Some((test.to_owned(), system.to_owned())));
    }

    /// The commit was acknowledged.
    pub fn end(&mut self) {
        mark("end");
    }

    /// The commit was refused, and does not count.
    pub fn refuse(&mut self) {
        mark("end");
        if let Some(last) = self.marked.last_mut() {
            *last = None;
        }
    }

    /// Detaches and counts.
    ///
    /// # Errors
    /// `Io` when the trace cannot be read.
    pub fn finish(mut self) -> Result<HashMap<Key, Count>> {
        self.stop();
        let trace = fs::read_to_string(&self.path)
            .map_err(|error| Error::io("cannot read the trace of `strace`").with_source(error))?;
        let counts = count(&trace, &self.synchronous);
        Ok(self
            .marked
            .into_iter()
            .zip(counts)
            .filter_map(|(key, count)| Some((key?, count)))
            .collect())
    }

    fn stop(&mut self) {
        let pid = Pid::from_child(&self.child);
        // Both fail only when it is gone already.
        let _ = rustix::process::kill_process(pid, Signal::INT);
        let _ = self.child.wait();
    }
}

fn mark(name: &str) {
    let _ = rustix::fs::access(format!("{MARK}/{name}"), Access::EXISTS);
}

/// As much of a trace as there is now: reading it is traced, too, so its end moves while it is read.
fn begin_of(trace: &Path) -> std::io::Result<String> {
    let file = File::open(trace)?;
    let len = file.metadata()?.len();
    let mut text = String::new();
    file.take(len).read_to_string(&mut text)?;
    Ok(text)
}

/// What stands between each numbered mark and the end mark after it.
fn count(trace: &str, synchronous: &[HashSet<u32>]) -> Vec<Count> {
    let mut counts = vec![Count::default(); synchronous.len()];
    let mut open = None;
    for line in trace.lines() {
        if let Some((_, mark)) = line.split_once(MARK) {
            let name = mark[1..].split('"').next().unwrap_or_default();
            open = name.parse::<usize>().ok().filter(|&at| at < counts.len());
        } else if let Some((at, (name, arguments))) = open.zip(call(line)) {
            counts[at].calls += 1;
            counts[at].syncs += u64::from(is_sync(name, arguments, &synchronous[at]));
        }
    }
    counts
}

/// The name and the arguments of a call that begins in this line.
fn call(line: &str) -> Option<(&str, &str)> {
    let call = line.trim_start_matches(|letter: char| letter.is_ascii_digit()).trim_start();
    let is_name =
        |name: &str| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    call.split_once('(').filter(|(name, _)| is_name(name))
}

fn is_sync(name: &str, arguments: &str, synchronous: &HashSet<u32>) -> bool {
    match name {
        "fsync" | "fdatasync" => true,
        "msync" => arguments.contains("MS_SYNC"),
        "write" | "pwrite64" | "writev" | "pwritev" | "pwritev2" => {
            let file = arguments.split(',').next().and_then(|file| file.parse().ok());
            file.is_some_and(|file| synchronous.contains(&file))
        }
        _ => false,
    }
}

/// Descriptors of this process whose writes are synced.
fn synchronous_files() -> HashSet<u32> {
    let Ok(entries) = fs::read_dir("/proc/self/fdinfo") else { return HashSet::new() };
    entries
        .flatten()
        .filter(|entry| {
            let text = fs::read_to_string(entry.path()).unwrap_or_default();
            let flags = text.lines().find_map(|line| line.strip_prefix("flags:"));
            let flags = flags.and_then(|flags| u32::from_str_radix(flags.trim(), 8).ok());
            flags.is_some_and(|flags| flags & O_DSYNC != 0)
        })
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn syncs_between_marks_count_by_kind() {
        let trace = "\
17 fsync(3) = 0
17 access(\"/spinney-lab-mark/0\", F_OK) = -1 ENOENT (No such file or directory)
17 fdatasync(3 <unfinished ...>
18 pwrite64(7, \"\\0\"..., 48, 0) = 48
17 <... fdatasync resumed>) = 0
17 pwrite64(8, \"\\0\"..., 48, 0) = 48
17 access(\"/spinney-lab-mark/end\", F_OK) = -1 ENOENT (No such file or directory)
17 fsync(3) = 0
17 faccessat2(AT_FDCWD, \"/spinney-lab-mark/1\", F_OK, 0) = -1 ENOENT
17 msync(0x7f, 4096, MS_SYNC) = 0
17 msync(0x7f, 4096, MS_ASYNC) = 0
17 write(7, \"\", 0) = 0
";
        let counts = [Count { syncs: 2, calls: 3 }, Count { syncs: 1, calls: 3 }];
        assert_eq!(count(trace, &[HashSet::from([7]), HashSet::new()]), counts);
    }
}
