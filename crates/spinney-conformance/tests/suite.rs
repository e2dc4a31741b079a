//! The whole suite on every backend and wrapper.

use std::sync::Arc;

use spinney_conformance::folder::Stores;
use spinney_conformance::mirror::Mirror;
use spinney_conformance::strict::Strict;
use spinney_conformance::subject::Subject;
use spinney_conformance::{suite, timed};
use spinney_core::Memory;
use spinney_core::backend::Backend;

#[test]
fn memory() {
    timed("suite on memory", || suite(&|| Arc::new(Memory::new())));
}

#[test]
fn memory_with_tiny_pages() {
    let tiny = || Arc::new(Memory::with_sizes(256, 64, 1 << 30)) as Arc<dyn Backend>;
    timed("suite on memory with tiny pages", || suite::tree(&tiny));
}

#[test]
fn strict_memory() {
    timed("suite on strict memory", || suite(&|| Arc::new(Strict::new(Memory::new()))));
}

#[test]
fn lmdb() {
    let stores = Stores::default();
    timed("suite on LMDB", || suite(&|| stores.lmdb()));
}

#[test]
fn mirror_of_memory_and_lmdb() {
    let stores = Stores::default();
    let mirror = || Arc::new(Strict::new(Mirror::new(Memory::new(), stores.lmdb())));
    timed("suite on a mirror of memory and LMDB", || suite(&|| mirror()));
}

#[test]
fn fjall() {
    let stores = Stores::default();
    timed("suite on fjall", || suite(&|| stores.fjall()));
}

#[test]
fn mirror_of_memory_and_fjall_that_folds() {
    let stores = Stores::default();
    let mirror = || Arc::new(Strict::new(Mirror::new(Memory::new(), stores.folding_fjall())));
    timed("suite on a mirror of memory and fjall", || suite(&|| mirror()));
}

#[test]
fn json() {
    let stores = Stores::default();
    timed("suite on a JSON file", || suite(&|| stores.json()));
}

/// `SPINNEY_TEST_KEYS=10000` runs it with as many.
#[test]
fn thousands_of_long_keys_in_memory() {
    let keys = std::env::var("SPINNEY_TEST_KEYS").ok().and_then(|keys| keys.parse().ok());
    let keys = keys.unwrap_or(2_000);
    timed(&format!("{keys} keys of 60 KiB in memory"), || {
        suite::bulk::long_keys(&Subject::new(Arc::new(Memory::new())), keys);
    });
}
