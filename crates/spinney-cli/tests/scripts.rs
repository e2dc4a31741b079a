//! Runs the scripts in `tests/scripts`: command lines and what they must print, on each backend.
//!
//! A line that starts with `$ ` is run by `sh` in a folder of the script's own, and `> ` lines go
//! on with it. What it printed follows: stdout, then stderr, then `? CODE` if that is not 0. A `#`
//! starts a comment, `⏎` is an empty line of output, and
//! `$PWD` the folder. `UPDATE=1 cargo test` writes what is printed now into the scripts; read the
//! difference before you commit it.
//!
//! Without a word a script is about LMDB, in `spinney-store`; on another backend `SPINNEY_STORE` names
//! the store, and it must print the same. `# not on BACKEND, ..: WHY` and `# on lmdb alone: WHY` say where
//! it cannot.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use spinney_conformance::servers::mongodb::MongoServer;
use spinney_conformance::servers::redis::RedisServer;

/// The backend of a store that nobody has named.
const USUAL: &str = "lmdb";

#[test]
fn scripts_print_what_they_say() {
    run_all(USUAL, &|_| None);
}

#[test]
fn scripts_print_the_same_on_fjall() {
    run_all("fjall", &|_| Some("fjall:store".to_owned()));
}

#[test]
fn scripts_print_the_same_on_a_json_file() {
    run_all("json", &|_| Some("json:store.json".to_owned()));
}

#[test]
fn scripts_print_the_same_on_redis() {
    let Some(server) = RedisServer::start_durable() else { return };
    run_all("redis", &|script| Some(server.url(script)));
}

#[test]
fn scripts_print_the_same_on_mongodb() {
    let Some(server) = MongoServer::start() else { return };
    run_all("mongodb", &|script| Some(server.url(script)));
}

/// Runs each script on a store of its own, which `store` names.
fn run_all(backend: &str, store: &dyn Fn(&str) -> Option<String>) {
    let mut paths: Vec<PathBuf> = fs::read_dir(folder())
        .expect("the scripts are there")
        .map(|entry| entry.expect("reads").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "script"))
        .collect();
    paths.sort();
    assert!(paths.len() > 10, "only {} scripts", paths.len());
    let mut threads = Vec::new();
    for path in paths {
        let expected = fs::read_to_string(&path).expect("the script reads");
        let name = path.file_stem().and_then(|name| name.to_str()).expect("a name");
        if let Some(why) = kept_from(&expected, backend) {
            println!("skipped: the script {name} on {backend}: {why}");
            continue;
        }
        let store = store(name);
        threads.push(std::thread::spawn(move || {
            let found = run_script(&expected, store.as_deref());
            (expected, found, path)
        }));
    }
    let mut failures = String::new();
    for thread in threads {
        let (expected, found, path) = thread.join().expect("runs");
        if expected == found {
            continue;
        }
        if backend == USUAL && std::env::var_os("UPDATE").is_some() {
            fs::write(&path, found).expect("writes");
        } else {
            let _ = write!(failures, "{}:\n{}", path.display(), difference(&expected, &found));
        }
    }
    assert!(failures.is_empty(), "\non {backend}:\n{failures}");
}

/// Why a script is not for a backend, if it is not.
fn kept_from<'s>(script: &'s str, backend: &str) -> Option<&'s str> {
    script.lines().find_map(|line| {
        if let Some(why) = line.strip_prefix("# on lmdb alone: ") {
            return (backend != USUAL).then_some(why);
        }
        let (backends, why) = line.strip_prefix("# not on ")?.split_once(": ")?;
        backends.split(", ").any(|other| other == backend).then_some(why)
    })
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts")
}

/// A script as it would stand if what is printed now were right.
fn run_script(expected: &str, store: Option<&str>) -> String {
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
            found.push_str(&run(&command, home.path(), store));
            within_output = true;
        } else if line.is_empty() || line.starts_with('#') {
            let _ = writeln!(found, "{line}");
            within_output = false;
        } else {
            assert!(within_output, "no command before `{line}`");
        }
    }
    found
}

fn run(command: &str, home: &Path, store: Option<&str>) -> String {
    let binary = Path::new(env!("CARGO_BIN_EXE_spinney"));
    let mut path = binary.parent().expect("it is in a folder").as_os_str().to_owned();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    let mut sh = Command::new("sh");
    match store {
        Some(store) => sh.env("SPINNEY_STORE", store),
        None => sh.env_remove("SPINNEY_STORE"),
    };
    let output = sh
        .args(["-c", command])
        .current_dir(home)
        .env("PATH", path)
        .env("LC_ALL", "C")
        .env("COLUMNS", "100")
        .stdin(Stdio::null())
        .output()
        .expect("sh runs");
    let mut text = String::new();
    for stream in [&output.stdout, &output.stderr] {
        let home = home.to_str().expect("it is UTF-8");
        // Where the environment names a store, the usage of a command has it, too.
        let printed = String::from_utf8_lossy(stream).replace("--store <URL> ", "");
        for line in printed.replace(home, "$PWD").lines() {
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
