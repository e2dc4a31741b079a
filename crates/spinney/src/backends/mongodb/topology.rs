//! What kind of server there is. Owns what follows from that: change streams, durability.

use mongodb::bson::doc;
use spinney_core::{Error, Result};

use super::shared::Shared;
use crate::network::server::Reply;

/// What to know of FerretDB, whose times say nothing of MongoDB's.
const LOOKS_THROUGH_ALL: &str = "; it looks through whole collections for each range: a proof of the protocol, and no measure of speed";

/// What a server, or several, can do.
pub struct Topology {
    /// Name, version and kind, for people.
    pub shown: String,
    /// Whether it tells of changes.
    pub has_change_streams: bool,
    /// Why commits may not survive a power failure.
    pub against_durable: Option<String>,
}

impl Topology {
    /// Whether commits survive a power failure.
    ///
    /// # Errors
    /// `Unsupported`, saying why not.
    pub fn durable(&self, shown: &str) -> Result<()> {
        match &self.against_durable {
            None => Ok(()),
            Some(reason) => Err(Error::unsupported(format!(
                "{shown}: commits may be lost in a power failure, because of {reason}; change that, or be content with less: `--durability process`"
            ))),
        }
    }

    /// Asks a server; `against_durable` is what the URL says against it.
    pub async fn ask(shared: &Shared, against_durable: Option<&str>) -> Reply<Topology> {
        let hello = shared.ask(shared.database.run_command(doc! { "hello": 1 })).await?;
        let is_router = hello.get_str("msg").is_ok_and(|text| text == "isdbgrid");
        let is_member = hello.contains_key("setName");
        let kind = match (is_router, is_member) {
            (true, _) => "sharded cluster",
            (_, true) => "replica set",
            _ => "one server",
        };
        // Who may not ask for these is not told; that is no reason to refuse the store.
        let build = shared.ask(shared.database.run_command(doc! { "buildInfo": 1 })).await;
        let build = build.unwrap_or_default();
        let status = shared.ask(shared.database.run_command(doc! { "serverStatus": 1 })).await;
        let status = status.unwrap_or_default();
        let is_volatile = status
            .get_document("storageEngine")
            .and_then(|engine| engine.get_bool("persistent"))
            .is_ok_and(|is_persistent| !is_persistent);
        let (name, version, but) = match build.get_str("ferretdbVersion") {
            Ok(version) => ("FerretDB", version, LOOKS_THROUGH_ALL),
            Err(_) => ("MongoDB", build.get_str("version").unwrap_or("of unknown version"), ""),
        };
        let against_durable = match against_durable {
            Some(reason) => Some(reason.to_owned()),
            None => is_volatile.then(|| "a storage engine in memory".to_owned()),
        };
        Ok(Topology {
            shown: format!("{name} {version}, {kind}{but}"),
            has_change_streams: is_router || is_member,
            against_durable,
        })
    }
}
