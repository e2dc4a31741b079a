//! Long runs of `bench`, as processes: stopped, killed, resumed, and refused for lack of room.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

const PATIENCE: Duration = Duration::from_secs(60);

fn bench(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_spinney"));
    command.current_dir(folder).args(["bench", "--dir", "stores", "--records", "run.jsonl"]);
    command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// A run that has hours to go.
const LONG: [&str; 8] =
    ["--sizes", "50,60", "--tries", "1000000", "--backends", "memory,lmdb", "--peers", "file"];
/// The same run with few tries.
const SHORT: [&str; 10] = [
    "--sizes",
    "50,60",
    "--tries",
    "1",
    "--backends",
    "memory,lmdb",
    "--peers",
    "file",
    "--baseline",
    "file",
];

fn start(folder: &Path, arguments: &[&str]) -> Child {
    bench(folder, arguments).spawn().expect("it starts")
}

fn finish(folder: &Path, arguments: &[&str]) -> Output {
    bench(folder, arguments).output().expect("it runs")
}

fn records(folder: &Path) -> Vec<Value> {
    let text = fs::read_to_string(folder.join("run.jsonl")).unwrap_or_default();
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// Waits until a run has written records.
fn wait_for_records(folder: &Path, count: usize) {
    let begin = Instant::now();
    while records(folder).len() < count {
        assert!(begin.elapsed() < PATIENCE, "no {count} records after {PATIENCE:?}");
        std::thread::yield_now();
    }
}

fn folders(folder: &Path) -> usize {
    fs::read_dir(folder.join("stores")).expect("a folder").count()
}

fn end(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).expect("it lives");
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_stopped_run_prints_what_it_has_and_leaves_no_stores() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let folder = tempfile::tempdir().expect("a folder");
        let child = start(folder.path(), &LONG);
        // The limits come before the first row.
        wait_for_records(folder.path(), 4);
        end(&child, signal);
        let output = child.wait_with_output().expect("it ends");
        assert_eq!(output.status.code(), Some(code), "{}", text(&output.stderr));
        let printed = text(&output.stdout);
        assert!(printed.contains("left out: what comes after the run was stopped"), "{printed}");
        assert!(printed.contains("limits: fdatasync"), "{printed}");
        assert_eq!(folders(folder.path()), 0);
        assert!(records(folder.path()).len() >= 4);
    }
}

#[test]
fn a_run_goes_on_from_its_records() {
    let folder = tempfile::tempdir().expect("a folder");
    let first = finish(folder.path(), &[&SHORT[..], &["--rows", "leaf,15"]].concat());
    assert!(first.status.success(), "{}", text(&first.stderr));
    let before = records(folder.path());
    let whole = finish(folder.path(), &[&SHORT[..], &["--resume"]].concat());
    assert!(whole.status.success(), "{}", text(&whole.stderr));
    let after = records(folder.path());
    assert!(after.len() > before.len());
    let key = |record: &Value| ["test", "size", "system"].map(|field| record[field].to_string());
    for record in &before {
        let again: Vec<&Value> = after.iter().filter(|other| key(other) == key(record)).collect();
        assert_eq!(again.len(), 1, "{record}");
        assert_eq!(again[0]["time"], record["time"], "{record}");
        assert_eq!(again[0]["order_seed"], after[after.len() - 1]["order_seed"]);
    }
    let again = finish(folder.path(), &[&SHORT[..], &["--resume"]].concat());
    assert!(again.status.success(), "{}", text(&again.stderr));
    let times = |records: &[Value]| {
        let timed = records.iter().filter(|record| !record["median"].is_null());
        timed.map(|record| record["time"].to_string()).collect::<Vec<String>>()
    };
    assert_eq!(times(&records(folder.path())), times(&after), "nothing was left to measure");
}

#[test]
fn records_of_another_machine_are_no_beginning() {
    let folder = tempfile::tempdir().expect("a folder");
    let rows = [&SHORT[..], &["--rows", "leaf"]].concat();
    assert!(finish(folder.path(), &rows).status.success());
    let path = folder.path().join("run.jsonl");
    let here = fs::read_to_string(&path).expect("records");
    let cores = records(folder.path())[0]["machine"]["cores"].clone();
    let there = here.replace(&format!("\"cores\":{cores}"), "\"cores\":7000");
    fs::write(&path, &there).expect("writes");
    let output = finish(folder.path(), &[&rows[..], &["--resume"]].concat());
    assert_eq!(output.status.code(), Some(2));
    let message = text(&output.stderr);
    let expected = format!("its machine's `cores` is 7000, and here it is {cores};");
    assert!(message.contains(&expected), "{message}");
    assert_eq!(fs::read_to_string(&path).expect("records"), there, "nothing is changed");
}

#[test]
fn the_next_run_removes_what_a_killed_one_left_and_a_living_one_keeps_its_own() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut killed = start(folder.path(), &LONG);
    wait_for_records(folder.path(), 4);
    end(&killed, Signal::KILL);
    killed.wait().expect("it ends");
    assert_eq!(folders(folder.path()), 1);
    fs::remove_file(folder.path().join("run.jsonl")).expect("records");
    let living = start(folder.path(), &LONG);
    wait_for_records(folder.path(), 4);
    assert_eq!(folders(folder.path()), 1);
    let rows = ["--rows", "leaf", "--records", "other.jsonl"];
    let mut beside = Command::new(env!("CARGO_BIN_EXE_spinney"));
    beside.current_dir(folder.path()).args(["bench", "--dir", "stores"]).args(SHORT).args(rows);
    let beside = beside.output().expect("it runs");
    assert!(beside.status.success(), "{}", text(&beside.stderr));
    assert_eq!(folders(folder.path()), 1);
    end(&living, Signal::INT);
    assert_eq!(living.wait_with_output().expect("it ends").status.code(), Some(130));
    assert_eq!(folders(folder.path()), 0);
}

#[test]
fn a_run_that_has_no_room_does_not_begin() {
    let folder = tempfile::tempdir().expect("a folder");
    let sizes = ["--sizes", "1000000000000"];
    let mut child = start(folder.path(), &[&sizes[..], &["--rows", "leaf"]].concat());
    let stderr = BufReader::new(child.stderr.take().expect("piped"));
    let message: String = stderr.lines().map_while(Result::ok).collect();
    assert!(!child.wait().expect("it ends").success());
    assert!(message.contains("`stores` has") && message.contains("`--dir`"), "{message}");
    assert!(!folder.path().join("run.jsonl").exists() && folders(folder.path()) == 0);
}
