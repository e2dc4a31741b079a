//! Random histories of the tree against a plain value in memory.

use spinney_conformance::model::{History, run};
use spinney_core::Memory;

fn histories(operations: usize) -> [History; 4] {
    let seed = std::env::var("SPINNEY_TEST_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or_else(|| fastrand::u64(..1 << 32));
    println!("SPINNEY_TEST_SEED={seed}");
    let history = |n, batch_max, keys_max, diffs| History {
        seed: seed + n,
        operations,
        batch_max,
        keys_max,
        diffs,
    };
    [
        history(0, 4, 12, true),
        history(1, 12, 60, true),
        history(2, 60, 300, false),
        history(3, 1, 600, false),
    ]
}

#[test]
fn memory_follows_a_plain_value() {
    for history in histories(20_000) {
        println!("{history:?}");
        run(&Memory::new(), &history);
    }
}

#[test]
fn memory_with_tiny_pages_follows_a_plain_value() {
    for history in histories(20_000) {
        println!("{history:?}");
        run(&Memory::with_sizes(256, 64, 1 << 30), &history);
    }
}
