//! The contract on every backend and every wrapper.

use std::cell::RefCell;

use spinney::backends::lmdb::{Lmdb, Options};
use spinney_conformance::contract::contract;
use spinney_conformance::fault::Fault;
use spinney_conformance::folder;
use spinney_conformance::mirror::Mirror;
use spinney_conformance::mutant::Mutant;
use spinney_conformance::strict::Strict;
use spinney_core::Memory;
use spinney_core::backend::Backend;

/// Makes LMDB stores in folders that go away with it.
#[derive(Default)]
struct Stores(RefCell<Vec<tempfile::TempDir>>);

impl Stores {
    fn lmdb(&self) -> impl Backend + use<> {
        let folder = folder::temporary();
        let options = Options { create: true, read_only: false };
        let lmdb = Lmdb::open(&folder.path().join("store"), options).expect("a new store");
        self.0.borrow_mut().push(folder);
        lmdb
    }
}

#[test]
fn memory() {
    contract(&|| Box::new(Memory::new()));
}

#[test]
fn memory_of_other_sizes() {
    contract(&|| Box::new(Memory::with_sizes(16_384, 1_024, 4 << 20)));
}

#[test]
fn lmdb() {
    let stores = Stores::default();
    contract(&|| Box::new(stores.lmdb()));
}

#[test]
fn mirror_of_memory_and_lmdb() {
    let stores = Stores::default();
    contract(&|| Box::new(Strict::new(Mirror::new(Memory::new(), stores.lmdb()))));
}

#[test]
fn strict_lmdb() {
    let stores = Stores::default();
    contract(&|| Box::new(Strict::new(stores.lmdb())));
}

#[test]
fn wrappers_without_a_plan() {
    contract(&|| Box::new(Fault::new(Mutant::new(Memory::new()))));
}
