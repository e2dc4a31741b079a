//! The contract on every backend and every wrapper.

use std::panic::{AssertUnwindSafe, catch_unwind};

use spinney_conformance::contract::{commit, contract};
use spinney_conformance::fault::{self, Fault};
use spinney_conformance::folder::Stores;
use spinney_conformance::mirror::Mirror;
use spinney_conformance::mutant::{self, Mutant};
use spinney_conformance::strict::Strict;
use spinney_core::backend::{Backend, Change};
use spinney_core::{ErrorKind, Memory, layout};

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
fn fjall() {
    let stores = Stores::default();
    contract(&|| Box::new(stores.fjall()));
}

#[test]
fn strict_mirror_of_memory_and_fjall_that_folds() {
    let stores = Stores::default();
    contract(&|| Box::new(Strict::new(Mirror::new(Memory::new(), stores.folding_fjall()))));
}

#[test]
fn json() {
    let stores = Stores::default();
    contract(&|| Box::new(stores.json()));
}

#[test]
fn strict_mirror_of_memory_and_json() {
    let stores = Stores::default();
    contract(&|| Box::new(Strict::new(Mirror::new(Memory::new(), stores.json()))));
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

#[test]
fn the_contract_notices_damage() {
    let damaged = || {
        let mutant = Mutant::new(Memory::new());
        mutant.set_plan(mutant::Plan::Seeded { seed: 1, one_in: 50 });
        Box::new(mutant) as Box<dyn Backend>
    };
    assert!(catch_unwind(AssertUnwindSafe(|| contract(&damaged))).is_err());
}

#[test]
fn a_mutant_damages_one_bit() {
    let mutant = Mutant::new(Memory::new());
    let head = layout::head_key(0);
    commit(&mutant, vec![]);
    mutant.set_plan(mutant::Plan::Exact { key: head.into(), byte: 0, bit: 7 });
    let snapshot = mutant.snapshot().expect("snapshot");
    let damaged = snapshot.get(&head).expect("get").map(Vec::from);
    assert_eq!(damaged, Some(vec![0x80, 0, 0, 0, 0, 0, 0, 1]));
    assert_eq!(mutant.flips(), 1);
}

#[test]
fn a_fault_fails_the_call_that_was_planned() {
    use fault::{Operation, Plan};
    let fault = Fault::new(Memory::new());
    let put = |name: &[u8]| Change::Put(name.into(), (*b"value").into());
    let head =
        |revision: u64| Change::Put(layout::head_key(0).into(), revision.to_be_bytes().into());
    let batch = |revision, names: &[&[u8]]| spinney_core::backend::Batch {
        bases: vec![(1, revision - 1)],
        revision,
        changes: names.iter().map(|name| put(name)).chain([head(revision)]).collect(),
        ..Default::default()
    };
    let plan = |operation, nth| fault.set_plan(Some(Plan { operation, nth, kind: ErrorKind::Io }));

    plan(Operation::Put, 4);
    fault.commit(batch(1, &[b"a", b"b"])).expect("three puts");
    let failed = fault.commit(batch(2, &[b"c", b"d"])).expect_err("the fifth put");
    assert_eq!(failed.kind(), ErrorKind::Io);
    let snapshot = fault.snapshot().expect("snapshot");
    assert_eq!(snapshot.get(b"c").expect("get"), None, "the batch failed as a whole");
    plan(Operation::Get, 1);
    snapshot.get(b"a").expect("the first get");
    assert!(snapshot.get(b"a").is_err());
    assert!(snapshot.get(b"a").is_ok(), "a plan fails one call");
    plan(Operation::Snapshot, 0);
    assert!(fault.snapshot().is_err());

    plan(Operation::Sync, 0);
    fault.commit(batch(2, &[b"c"])).expect("commit");
    assert_eq!(fault.sync(2).expect_err("sync").kind(), ErrorKind::Io);
    assert_eq!(fault.commit(batch(3, &[b"d"])).expect_err("closed").kind(), ErrorKind::Closed);
    assert_eq!(fault.write_guard(0).err().expect("closed").kind(), ErrorKind::Closed);
    assert!(fault.snapshot().is_ok(), "reads go on");
    assert_eq!(fault.failures(), 4);
    fault.into_inner().commit(batch(3, &[b"d"])).expect("reopened");
}
