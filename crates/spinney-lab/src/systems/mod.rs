//! Spinney on its backends, and the peers, a file each.

pub mod file;
pub mod gtm;
pub mod ordered;
#[cfg(feature = "postgres")]
pub mod postgres;
pub mod redis;
pub mod spinney;
pub mod sqlite;

use spinney_core::{Error, Result};

use crate::engines;
use crate::system::{Factory, Kind};

/// Spinney on every backend, then every peer; a server is asked at `url`.
fn known(url: Option<&str>) -> Vec<Box<dyn Factory>> {
    let mut known: Vec<Box<dyn Factory>> = vec![
        Box::new(spinney::Spinney::memory()),
        Box::new(spinney::Spinney::lmdb()),
        Box::new(spinney::Spinney::fjall()),
        Box::new(spinney::Spinney::json()),
        Box::new(spinney::Spinney::server("redis", url)),
        Box::new(spinney::Spinney::server("mongodb", url)),
        Box::new(file::File),
        Box::new(sqlite::Sqlite),
    ];
    let ordered = |engine| Box::new(ordered::Ordered::new(engine)) as Box<dyn Factory>;
    known.extend(engines::all().into_iter().map(ordered));
    known.push(Box::new(redis::Redis));
    known.push(Box::new(gtm::Gtm));
    #[cfg(feature = "postgres")]
    known.push(Box::new(postgres::Postgres));
    known
}

/// Every peer that this build holds.
pub fn peers() -> Vec<Box<dyn Factory>> {
    known(None).into_iter().filter(|factory| factory.kind() == Kind::Peer).collect()
}

/// The name of a system, and where its server is, as in `redis=redis://localhost`.
pub(crate) fn name_and_url(text: &str) -> (&str, Option<&str>) {
    text.split_once('=').map_or((text, None), |(name, url)| (name, Some(url)))
}

/// The backends and peers of these names, in the order of the names; that of a server says where it
/// is, as `NAME=URL`, or else the run starts one of Redis, and rows of others are skipped.
///
/// # Errors
/// `InvalidInput` for a name that is not known, with those that are, and for a URL of what has no
/// server.
pub fn all(backends: &[String], peers: &[String]) -> Result<Vec<Box<dyn Factory>>> {
    let mut chosen = Vec::new();
    for (names, kind) in [(backends, Kind::Backend), (peers, Kind::Peer)] {
        for text in names {
            let (name, url) = name_and_url(text);
            let mut meant = known(url).into_iter().filter(|it| it.kind() == kind);
            let Some(factory) = meant.find(|factory| factory.name() == name) else {
                return Err(unknown(name, kind));
            };
            if url.is_some() && (kind == Kind::Peer || !factory.transport().is_apart()) {
                return Err(Error::invalid_input(format!(
                    "`{name}` has no server, and its stores are made by the run; write just `{name}`"
                )));
            }
            chosen.push(factory);
        }
    }
    Ok(chosen)
}

fn unknown(name: &str, kind: Kind) -> Error {
    let known = known(None);
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
    use crate::system::Transport;

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
            "`file` is no backend of this build; choose from: memory, lmdb, fjall, json, redis, mongodb"
        );
        let refused = all(&names(&["lmdb=folder"]), &[]).err().expect("it has no server");
        assert!(refused.to_string().contains("no server"), "{refused}");
    }

    #[test]
    fn a_server_that_is_not_named_is_skipped_and_a_named_one_is_not() {
        let names = ["mongodb".to_owned(), "redis=redis://localhost".to_owned()];
        let chosen = all(&names, &[]).expect("both are known");
        let lacks: Vec<Option<String>> =
            chosen.iter().map(|factory| factory.lacks(crate::system::Durability::None)).collect();
        assert_eq!(lacks, [Some("no server was named; write `mongodb=URL`".to_owned()), None]);
        assert!(chosen.iter().all(|factory| factory.transport() == Transport::Socket));
    }
}
