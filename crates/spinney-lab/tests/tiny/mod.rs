//! A run of a suite in a folder of its own, on what needs no server.

use spinney_lab::{Options, Report, run, systems};

pub fn measure(base: Options, change: impl FnOnce(&mut Options)) -> Report {
    let folder = tempfile::tempdir().expect("a folder");
    let mut options = Options {
        backends: ["memory", "lmdb", "json", "fjall"].map(str::to_owned).to_vec(),
        peers: ["file", "sqlite", "lmdb-raw", "redb"].map(str::to_owned).to_vec(),
        tries: Some(2),
        dir: Some(folder.path().to_owned()),
        seed: Some(7),
        count_syncs: false,
        progress: false,
        ..base
    };
    change(&mut options);
    let systems = systems::all(&options.backends, &options.peers).expect("all are known");
    run(&options, systems).expect("a run")
}
