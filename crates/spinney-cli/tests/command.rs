//! What scripts cannot say: kills, time, terminals, and what holds for every verb.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

const VERBS: [&str; 26] = [
    "get",
    "set",
    "remove",
    "insert",
    "move",
    "copy",
    "patch",
    "merge",
    "query",
    "list",
    "count",
    "hash",
    "diff",
    "meta",
    "import",
    "export",
    "stats",
    "check",
    "checkpoint",
    "compact",
    "backup",
    "copy-store",
    "salvage",
    "bench",
    "completions",
    "man",
];

fn spinney(home: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_spinney"));
    command.current_dir(home).env_remove("SPINNEY_STORE").stdin(Stdio::null());
    command
}

fn run(home: &Path, args: &[&str]) -> Output {
    spinney(home).args(args).output().expect("it runs")
}

fn stdout(home: &Path, args: &[&str]) -> String {
    let output = run(home, args);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {stderr}");
    String::from_utf8(output.stdout).expect("it prints UTF-8")
}

/// `count` items as members of one object, without the closing brace.
fn items(count: usize) -> String {
    let item = |i| format!("\"item{i}\":{{\"name\":\"the name of item {i}\",\"list\":[1,2,{i}]}}");
    format!("{{{}", (0..count).map(item).collect::<Vec<_>>().join(","))
}

#[test]
fn a_killed_import_leaves_the_old_content_and_its_pages_are_reclaimed() {
    let home = tempfile::tempdir().expect("a folder");
    let home = home.path();
    stdout(home, &["set", "/big", r#"{"old": "content"}"#]);
    // Sorted keys are written as they come; others wait in a scratch file. Both are killed.
    for text in [items(400_000), items(400_000).replace("\"item1", "\"entry")] {
        for len in [text.len() / 3, text.len()] {
            let mut import = spinney(home)
                .args(["import", "-", "/big"])
                .stdin(Stdio::piped())
                .spawn()
                .expect("it runs");
            let mut stdin = import.stdin.take().expect("it is piped");
            stdin.write_all(&text.as_bytes()[..len]).expect("it reads");
            import.kill().expect("it is killed");
            import.wait().expect("it ends");
            assert_eq!(stdout(home, &["get", "/big"]), "{\"old\":\"content\"}\n");
            let found = stdout(home, &["check"]);
            assert!(found.starts_with("sound: "), "{found}");
            assert!(found.contains(" 0 damaged, 0 left over"), "{found}");
        }
    }
    stdout(home, &["compact"]);
    stdout(home, &["set", "/after", "1"]);
    let found = stdout(home, &["check"]);
    assert!(found.ends_with("0 damaged, 0 left over, 0 to reclaim\n"), "{found}");
    let records = stdout(home, &["stats"]);
    let records = records.lines().find_map(|line| line.strip_prefix("engine records"));
    let records: u64 = records.expect("it is told").trim().parse().expect("a number");
    assert!(records < 100, "{records} records are left of an import that was killed");
    let leftovers: Vec<_> = fs::read_dir(home.join("spinney-store"))
        .expect("it lists")
        .map(|entry| entry.expect("it lists").file_name())
        .collect();
    assert!(leftovers.len() <= 6, "{leftovers:?}");
}

#[test]
fn a_killed_copy_leaves_its_target_empty_or_complete() {
    let home = tempfile::tempdir().expect("a folder");
    let home = home.path();
    fs::write(home.join("big.json"), items(40_000) + "}").expect("it writes");
    stdout(home, &["import", "big.json", "/big"]);
    let hash = stdout(home, &["hash"]);
    for to in ["lmdb:to", "fjall:to.fjall", "json:to.json"] {
        let is_whole = || match run(home, &["get", "--store", to, "--pretty"]) {
            // It was killed before there was a store.
            output if output.status.code() == Some(3) => false,
            output if output.stdout == b"{}\n" => false,
            output => {
                assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
                assert_eq!(stdout(home, &["hash", "--store", to]), hash, "half a copy in {to}");
                true
            }
        };
        let mut kills = 0;
        // Ever longer, so that some kill comes late however slow this machine is.
        for pause_ms in std::iter::successors(Some(5_u64), |pause| Some(pause * 3 / 2 + 1)) {
            let mut copy = spinney(home);
            copy.args(["copy-store", "spinney-store", to]).stderr(Stdio::null());
            let mut copy = copy.spawn().expect("it runs");
            std::thread::sleep(Duration::from_millis(pause_ms));
            let has_ended = copy.try_wait().expect("it waits").is_some();
            copy.kill().expect("it is killed");
            copy.wait().expect("it ends");
            if is_whole() || has_ended {
                break;
            }
            kills += 1;
        }
        if !is_whole() {
            stdout(home, &["copy-store", "spinney-store", to]);
        }
        assert!(is_whole() && kills > 0, "{to}: {kills} kills");
        let found = stdout(home, &["check", "--store", to]);
        assert!(found.contains(" 0 damaged, 0 left over"), "{to}: {found}");
        let again = run(home, &["copy-store", "spinney-store", to]);
        assert_eq!(again.status.code(), Some(4), "{}", String::from_utf8_lossy(&again.stderr));
    }
}

#[test]
fn an_import_shows_no_progress_where_stderr_is_no_terminal() {
    let home = tempfile::tempdir().expect("a folder");
    fs::write(home.path().join("big.json"), items(100_000) + "}").expect("it writes");
    let output = run(home.path(), &["import", "big.json", "/big"]);
    let stderr = String::from_utf8(output.stderr).expect("it is UTF-8");
    let len = fs::metadata(home.path().join("big.json")).expect("it is there").len();
    assert_eq!(stderr, format!("spinney: imported {len} bytes to `/big`, revision 1\n"));
    assert!(output.stdout.is_empty());
    assert_eq!(stdout(home.path(), &["count", "/big"]), "100000\n");
}

#[test]
fn depth_is_refused_at_once() {
    let home = tempfile::tempdir().expect("a folder");
    stdout(home.path(), &["set", "/x", "1"]);
    fs::write(home.path().join("deep.json"), "[".repeat(100_000)).expect("it writes");
    let mut fastest = Duration::MAX;
    for _ in 0..5 {
        let start = Instant::now();
        let output = run(home.path(), &["set", "/x", "@deep.json"]);
        fastest = fastest.min(start.elapsed());
        assert_eq!(output.status.code(), Some(10));
    }
    assert!(
        fastest < Duration::from_millis(100),
        "it took {fastest:?}, start of the process included"
    );
    assert_eq!(stdout(home.path(), &["get", "/x"]), "1\n");
}

#[test]
fn a_closed_pipe_is_silent() {
    let home = tempfile::tempdir().expect("a folder");
    fs::write(home.path().join("big.json"), items(50_000) + "}").expect("it writes");
    stdout(home.path(), &["import", "big.json", "/big"]);
    for args in [&["list", "/big"][..], &["get"], &["export", "--pretty"], &["salvage", "--quiet"]]
    {
        let mut child = spinney(home.path())
            .args(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it runs");
        drop(child.stdout.take());
        let output = child.wait_with_output().expect("it ends");
        assert!(output.status.success(), "{args:?}: {}", output.status);
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{args:?}");
    }
}

#[test]
fn a_folder_that_cannot_be_written_is_told() {
    let home = tempfile::tempdir().expect("a folder");
    stdout(home.path(), &["set", "/x", "1"]);
    let shut = home.path().join("shut");
    fs::create_dir(&shut).expect("it is made");
    let mut permissions = fs::metadata(&shut).expect("it is there").permissions();
    permissions.set_readonly(true);
    fs::set_permissions(&shut, permissions).expect("it is shut");
    if fs::write(shut.join("probe"), "").is_ok() {
        println!("skipped: this user may write into read-only folders (root)");
        return;
    }
    let failed = |args: &[&str]| {
        let output = run(home.path(), args);
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
        (output.status.code(), stderr)
    };
    let (code, stderr) = failed(&["set", "/x", "1", "--store", "shut/store"]);
    assert!(stderr.contains("shut/store"), "{stderr}");
    assert_ne!(code, Some(0));
    let (code, stderr) = failed(&["export", "-o", "shut/all.json"]);
    assert!(stderr.starts_with("spinney: cannot write `shut/all.json`"), "{stderr}");
    assert_eq!(code, Some(9));
}

#[test]
fn each_verb_has_help_with_examples() {
    let home = tempfile::tempdir().expect("a folder");
    let top = stdout(home.path(), &["--help"]);
    for verb in VERBS {
        assert!(top.contains(&format!("\n  {verb} ")), "{verb} is missing in\n{top}");
        for flag in ["--help", "-h"] {
            let help = stdout(home.path(), &[verb, flag]);
            assert!(help.contains("Examples:\n  "), "{help}");
            assert!(help.matches(&format!("spinney {verb}")).count() >= 2, "{help}");
        }
    }
}

#[test]
fn completions_and_man_pages_hold_every_verb() {
    let home = tempfile::tempdir().expect("a folder");
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = stdout(home.path(), &["completions", shell]);
        assert!(VERBS.iter().all(|verb| script.contains(verb)), "{shell}");
    }
    let page = stdout(home.path(), &["man"]);
    assert!(page.contains(".TH spinney 1") && page.contains("JSON Pointer"), "{page}");
    stdout(home.path(), &["man", "--dir", "."]);
    for verb in VERBS {
        let page = fs::read_to_string(home.path().join(format!("spinney-{verb}.1")));
        assert!(page.expect("it is there").contains("Examples:"), "{verb}");
    }
}
