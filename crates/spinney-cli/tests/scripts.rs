//! Runs the scripts in `tests/scripts`: command lines and what they must print.
//!
//! A line that starts with `$ ` is run by `sh` in a folder of the script's own, and `> ` lines go
//! on with it. What it printed follows: stdout, then stderr, then `? CODE` if that is not 0. A `#`
//! starts a comment, `⏎` is an empty line of output, and
//! `$PWD` the folder. `UPDATE=1 cargo test` writes what is printed now into the scripts; read the
//! difference before you commit it.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

#[test]
fn scripts_print_what_they_say() {
    let mut paths: Vec<PathBuf> = fs::read_dir(folder())
        .expect("the scripts are there")
        .map(|entry| entry.expect("reads").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "script"))
        .collect();
    paths.sort();
    assert!(paths.len() > 10, "only {} scripts", paths.len());
    let threads: Vec<_> = paths
        .into_iter()
        .map(|path| std::thread::spawn(move || (run_script(&path), path)))
        .collect();
    let mut failures = String::new();
    for thread in threads {
        let ((expected, found), path) = thread.join().expect("runs");
        if expected == found {
            continue;
        }
        if std::env::var_os("UPDATE").is_some() {
            fs::write(&path, found).expect("writes");
        } else {
            let _ = write!(failures, "{}:\n{}", path.display(), difference(&expected, &found));
        }
    }
    assert!(failures.is_empty(), "\n{failures}");
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts")
}

/// The script as it stands, and as it would stand if what is printed now were right.
fn run_script(path: &Path) -> (String, String) {
    let expected = fs::read_to_string(path).expect("the script reads");
    let home = tempfile::tempdir().expect("a folder");
    let mut found = String::new();
    let mut lines = expected.lines().peekable();
    let mut within_output = false;
    while let Some(line) = lines.next() {
        if let Some(first) = line.strip_prefix("$ ") {
            let mut command = first.to_owned();
            let _ = writeln!(found, "{line}");
            while let Some(line) = lines.next_if(|line| line.starts_with("> ")) {
                let _ = writeln!(found, "{line}");
                command = command + "\n" + &line[2..];
            }
            found.push_str(&run(&command, home.path()));
            within_output = true;
        } else if line.is_empty() || line.starts_with('#') {
            let _ = writeln!(found, "{line}");
            within_output = false;
        } else {
            assert!(within_output, "{}: no command before `{line}`", path.display());
        }
    }
    (expected, found)
}

fn run(command: &str, home: &Path) -> String {
    let binary = Path::new(env!("CARGO_BIN_EXE_spinney"));
    let mut path = binary.parent().expect("it is in a folder").as_os_str().to_owned();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    let output = Command::new("sh")
        .args(["-c", command])
        .current_dir(home)
        .env("PATH", path)
        .env("LC_ALL", "C")
        .env("COLUMNS", "100")
        .env_remove("SPINNEY_STORE")
        .stdin(Stdio::null())
        .output()
        .expect("sh runs");
    let mut text = String::new();
    for stream in [&output.stdout, &output.stderr] {
        let home = home.to_str().expect("it is UTF-8");
        for line in String::from_utf8_lossy(stream).replace(home, "$PWD").lines() {
            text.push_str(if line.is_empty() { "⏎" } else { line });
            text.push('\n');
        }
    }
    match output.status.code() {
        Some(0) => {}
        Some(code) => {
            let _ = writeln!(text, "? {code}");
        }
        None => text.push_str("? killed\n"),
    }
    text
}

fn difference(expected: &str, found: &str) -> String {
    let mut text = String::new();
    let same = expected.lines().zip(found.lines()).take_while(|(a, b)| a == b).count();
    for line in expected.lines().take(same).skip(same.saturating_sub(3)) {
        let _ = writeln!(text, "  {line}");
    }
    for (mark, side) in [("-", expected), ("+", found)] {
        for line in side.lines().skip(same).take(8) {
            let _ = writeln!(text, "{mark} {line}");
        }
    }
    text
}
