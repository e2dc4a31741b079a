//! Spinney on its backends, and the peers, a file each.

pub mod file;
pub mod spinney;
pub mod sqlite;

use spinney_core::{Error, Result};

use crate::system::{Factory, Kind};

/// Spinney on every backend of this build, then every peer.
fn known() -> Vec<Box<dyn Factory>> {
    vec![
        Box::new(spinney::Spinney::memory()),
        Box::new(spinney::Spinney::lmdb()),
        Box::new(spinney::Spinney::json()),
        Box::new(file::File),
        Box::new(sqlite::Sqlite),
    ]
}

/// Every peer that this build holds.
pub fn peers() -> Vec<Box<dyn Factory>> {
    known().into_iter().filter(|factory| factory.kind() == Kind::Peer).collect()
}

/// The backends and peers of these names, in the order of the names.
///
/// # Errors
/// `InvalidInput` for a name that is not known, with those that are.
pub fn all(backends: &[String], peers: &[String]) -> Result<Vec<Box<dyn Factory>>> {
    let mut chosen = Vec::new();
    for (names, kind) in [(backends, Kind::Backend), (peers, Kind::Peer)] {
        let mut known = known();
        known.retain(|factory| factory.kind() == kind);
        for name in names {
            let Some(at) = known.iter().position(|factory| factory.name() == name) else {
                return Err(unknown(name, kind));
            };
            chosen.push(known.swap_remove(at));
        }
    }
    Ok(chosen)
}

fn unknown(name: &str, kind: Kind) -> Error {
    let known = known();
    let names: Vec<&str> =
        known.iter().filter(|factory| factory.kind() == kind).map(|known| known.name()).collect();
    let kind = kind.name();
    Error::invalid_input(format!(
        "`{name}` is no {kind} of this build; choose from: {}",
        names.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn systems_are_chosen_by_name_and_unknown_names_refused_with_the_choice() {
        let names = |names: &[&str]| -> Vec<String> {
            names.iter().map(|name| (*name).to_owned()).collect()
        };
        let chosen = all(&names(&["lmdb", "memory"]), &names(&["sqlite"])).expect("all are known");
        let chosen: Vec<&str> = chosen.iter().map(|factory| factory.name()).collect();
        assert_eq!(chosen, ["lmdb", "memory", "sqlite"]);
        let refused = all(&names(&["file"]), &[]).err().expect("a peer is no backend");
        assert_eq!(
            refused.to_string(),
            "`file` is no backend of this build; choose from: memory, lmdb, json"
        );
    }
}
