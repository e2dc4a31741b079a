//! What is said of a store on a server never holds its password.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use spinney_conformance::servers::redis::RedisServer;

const PASSWORD: &str = "s3cret";

/// Runs the command with a store, and asserts that it ends as it should and tells no password.
fn run(home: &Path, store: &str, args: &[&str], code: i32) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_spinney"))
        .args(args)
        .current_dir(home)
        .env("SPINNEY_STORE", store)
        .stdin(Stdio::null())
        .output();
    let Output { status, stdout, stderr } = output.expect("it runs");
    let said = format!("{}{}", String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert_eq!(status.code(), Some(code), "{args:?}: {said}");
    assert!(!said.contains(PASSWORD), "{args:?}: {said}");
    said
}

#[test]
fn no_verb_prints_the_password_of_a_store() {
    let settings = ["--requirepass", PASSWORD, "--appendonly", "yes", "--appendfsync", "always"];
    let Some(server) = RedisServer::start(&settings) else { return };
    let home = tempfile::tempdir().expect("a folder");
    let home = home.path();
    let url = |name: &str| server.url(name).replace("redis://", &format!("redis://:{PASSWORD}@"));
    let (store, copy) = (url("t"), url("copy"));
    let socket = format!("redis+unix:{}?pass={PASSWORD}&store=t", server.socket());

    run(home, &store, &["set", "/a", "1"], 0);
    for store in [&store, &socket] {
        assert!(run(home, store, &["stats"], 0).contains("***"));
        assert!(run(home, store, &["get", "--help"], 0).contains("SPINNEY_STORE"));
    }
    assert!(run(home, &store, &["copy-store", &store, &copy], 0).contains("it is the same"));
    run(home, &store, &["copy-store", &store, &copy], 4);
    run(home, &store, &["stack", "set", "s", &format!("other={copy}#/a")], 0);
    assert!(run(home, &store, &["stack", "list"], 0).contains("other=redis://:***@"));
    run(home, &store, &["stack", "set", "s", &format!("other={copy}#a")], 2);
    run(home, &store, &["stack", "set", "s", &format!("{copy}#/a")], 2);
}

#[test]
fn what_is_no_url_of_a_store_is_not_told_with_its_password() {
    let home = tempfile::tempdir().expect("a folder");
    for scheme in ["Redis", "s3", "postgres"] {
        let url = format!("{scheme}://ada:{PASSWORD}@host/0");
        let said = run(home.path(), &url, &["set", "/a", "1"], 2);
        assert!(said.contains(&format!("unknown kind of store `{scheme}`")), "{said}");
    }
    let left = std::fs::read_dir(home.path()).expect("it reads").count();
    assert_eq!(left, 0, "no folder is made of such a URL");
}
