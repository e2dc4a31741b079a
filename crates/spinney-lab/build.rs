//! Tells the records which compiler, flags and libraries made the program.

use std::process::Command;

fn main() {
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    let version = Command::new(rustc).arg("--version").output();
    let version = version.ok().and_then(|output| String::from_utf8(output.stdout).ok());
    println!("cargo::rustc-env=LAB_RUSTC={}", version.as_deref().unwrap_or("unknown").trim());
    for (name, variable) in
        [("LAB_OPT_LEVEL", "OPT_LEVEL"), ("LAB_RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS")]
    {
        let value = std::env::var(variable).unwrap_or_default().replace('\u{1f}', " ");
        println!("cargo::rustc-env={name}={value}");
    }
    let lock = concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.lock");
    let packages = std::fs::read_to_string(lock).unwrap_or_default();
    for (name, package) in
        [("LAB_SERDE_JSON", "serde_json"), ("LAB_FJALL", "fjall"), ("LAB_REDB", "redb")]
    {
        let version = packages.split(&format!("name = \"{package}\"\nversion = \"")).nth(1);
        let version = version.and_then(|rest| rest.split('"').next());
        println!("cargo::rustc-env={name}={}", version.unwrap_or("unknown"));
    }
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={lock}");
}
