//! The tables in pages of the repository are what `bench --splice` makes of the records that they name.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const PAGES: [&str; 2] = ["README.md", "docs/benchmarks.md"];

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A copy of the pages and of what they are made of.
fn copy() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let measured = folder.path().join("docs/measured");
    fs::create_dir_all(&measured).expect("a folder");
    for page in PAGES {
        fs::copy(repository().join(page), folder.path().join(page)).expect("a page");
    }
    for entry in fs::read_dir(repository().join("docs/measured")).expect("records") {
        let entry = entry.expect("records");
        fs::copy(entry.path(), measured.join(entry.file_name())).expect("records");
    }
    folder
}

fn splice(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_spinney"));
    command.current_dir(folder).args(["bench", "--splice"]).args(arguments);
    command.output().expect("it runs")
}

fn text(folder: &Path, page: &str) -> String {
    fs::read_to_string(folder.join(page)).expect("a page")
}

#[test]
fn pages_hold_what_their_records_say() {
    let folder = copy();
    let output = splice(folder.path(), &PAGES);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    for page in PAGES {
        let (spliced, here) = (text(folder.path(), page), text(&repository(), page));
        assert!(
            spliced == here,
            "`{page}` is not what its records say: spinney bench --splice {page}"
        );
        assert!(here.contains(&format!("renewed by: spinney bench --splice {page} -->")), "{page}");
    }
    assert!(text(&repository(), "README.md").lines().count() <= 150);
}

#[test]
fn a_changed_table_is_made_anew_and_the_rest_stays() {
    let folder = copy();
    let path = folder.path().join("README.md");
    let here = text(folder.path(), "README.md");
    let start = here.find("| export |").expect("a row");
    let end = start + here[start..].find('\n').expect("a line");
    fs::write(&path, format!("{}| export | 1 ns |{}", &here[..start], &here[end..]))
        .expect("writes");
    let output = splice(folder.path(), &["README.md"]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "README.md: renewed\n");
    assert_eq!(text(folder.path(), "README.md"), here);
}

#[test]
fn records_that_do_not_fit_change_nothing() {
    let folder = copy();
    fs::write(folder.path().join("docs/none.jsonl"), "").expect("writes");
    fs::write(folder.path().join("plain.md"), "# No block\n").expect("writes");
    let before = text(folder.path(), "README.md");
    let cases: [(&[&str], &str); 3] = [
        (&["README.md", "--from", "docs/none.jsonl"], "there are no records"),
        (&["docs/benchmarks.md", "--from", "README.md"], "must lie below the folder of the page"),
        (&["plain.md"], "it has no block"),
    ];
    for (arguments, expected) in cases {
        let output = splice(folder.path(), arguments);
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && message.contains(expected), "{message}");
    }
    assert_eq!(text(folder.path(), "README.md"), before);
}
