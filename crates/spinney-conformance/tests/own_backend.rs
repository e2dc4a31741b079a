//! The example of `docs/backends.md`, as a third party would test a backend of its own.

use std::sync::Arc;

use spinney_conformance::strict::Strict;
use spinney_conformance::{suite, timed};

#[allow(dead_code)]
#[path = "../examples/own_backend.rs"]
mod example;

#[test]
fn it_passes_the_suite() {
    let backend = || Arc::new(Strict::new(example::SortedMap::default()));
    timed("suite on the example backend", || suite(&|| backend()));
}

#[test]
fn the_document_shows_what_is_compiled() {
    let document = include_str!("../../../docs/backends.md");
    let example = include_str!("../examples/own_backend.rs");
    let shown = format!("```rust\n{example}```\n");
    assert!(document.contains(&shown), "docs/backends.md shows another text than the example has");
}
