//! A run of a suite in a folder of its own, on what needs no server.

use std::os::unix::fs::PermissionsExt;

use spinney_lab::system::Durability;
use spinney_lab::{Options, Report, run, systems};

/// Names of what has a server and is installed: the backend of Redis, and peers.
pub fn servers() -> [Vec<String>; 2] {
    let is_here = |names: &[&str], backend: bool| -> Vec<String> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let known = |name: &String| {
            let alone = std::slice::from_ref(name);
            let chosen = if backend { systems::all(alone, &[]) } else { systems::all(&[], alone) };
            let lacks = match chosen {
                Ok(chosen) => chosen[0].lacks(Durability::Durable).or_else(|| {
                    // A build without its backend tells only when a store is opened.
                    let folder = folder();
                    let opened = chosen[0].collection(folder.path(), Durability::Durable);
                    opened.err().map(|error| error.to_string())
                }),
                Err(error) => Some(error.to_string()),
            };
            lacks.iter().for_each(|reason| println!("skipped: {name}: {reason}"));
            lacks.is_none()
        };
        names.into_iter().filter(known).collect()
    };
    [is_here(&["redis"], true), is_here(&["redis-direct", "postgres"], false)]
}

/// A folder that others may pass through: PostgreSQL runs as another user where this one is root.
fn folder() -> tempfile::TempDir {
    let reachable = std::fs::Permissions::from_mode(0o711);
    tempfile::Builder::new().permissions(reachable).tempdir().expect("a folder")
}

pub fn measure(base: Options, change: impl FnOnce(&mut Options)) -> Report {
    let folder = folder();
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
