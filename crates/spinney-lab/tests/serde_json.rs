//! The limit rows and the peer `file` stand for serde_json as people use it: default features only.

use std::process::Command;

use serde_json::Value;

#[test]
fn serde_json_behaves_as_with_default_features() {
    let parse = |text: &str| serde_json::from_str::<Value>(text).expect("JSON");
    let print = |text: &str| parse(text).to_string();
    // `arbitrary_precision` would keep both texts.
    assert_eq!(print("1.0000000000000000000001"), "1.0");
    assert!(parse("123456789012345678901234567890").is_f64());
    // `preserve_order` would keep the order.
    assert_eq!(print(r#"{"b":1,"a":2}"#), r#"{"a":2,"b":1}"#);
    // `float_roundtrip` would print 333333333.3333333.
    assert_eq!(print("333333333.33333329"), "333333333.33333325");
    // `unbounded_depth` has to be switched on for each parser, which the lab never does.
    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    assert!(serde_json::from_str::<Value>(&deep).is_err());
}

#[test]
fn serde_json_is_built_with_default_features() {
    let Ok(cargo) = std::env::var("CARGO") else {
        eprintln!("skipped: `cargo` is not there to list features");
        return;
    };
    let output = Command::new(cargo)
        .args(["tree", "--offline", "-p", "spinney-lab", "-e", "features", "-i", "serde_json"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    let tree = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(tree.contains("serde_json feature \"default\""), "{tree}");
    for feature in
        ["arbitrary_precision", "preserve_order", "float_roundtrip", "unbounded_depth", "raw_value"]
    {
        let line = format!("serde_json feature \"{feature}\"");
        assert!(!tree.contains(&line), "something switches `{feature}` on:\n{tree}");
    }
}
