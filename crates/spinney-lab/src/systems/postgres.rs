//! The peer `postgres`: a row an item, as JSONB, on a cluster that the lab makes and starts.
//!
//! Design: `lst(name, item)` has each item whole under its member name, in the order of bytes, and
//! `usr_lst(k, rank, entry)` each entry with a rank with gaps of 2^20; the presence of `cont` is a row. A
//! commit is one statement, or a transaction where it is more; many rows come by `COPY`, and all go by
//! `TRUNCATE`. Where the configuration is judged, the tables have `CHECK`s; who subscribed is called with
//! what each statement changes, and reads the items that a `TRUNCATE` removes. No index answers the query
//! for an item. Between the tries of a row the tables are vacuumed and analysed.
//! `process` has `fsync` off, so that what is committed is in files and outlives the server; `none` does not
//! wait for that either.

mod array;
mod documents;
mod rows;

use std::collections::HashMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, OnceLock};

use ::postgres::types::ToSql;
use ::postgres::{Client, Config, NoTls, Row, Statement};
use spinney_core::{Error, Result};

use crate::documents::Collection;
use crate::server::{self, Server, User};
use crate::system::{Delivery, Durability, Effect, Factory, Kind, System, Told, Transport};
use crate::throughput::Array;

/// Where Debian has the programs of each version.
const DEBIAN_FOLDER: &str = "/usr/lib/postgresql";

/// Distance between the ranks of appended entries.
const GAP: i64 = 1 << 20;

const DESIGN: &str = "a cluster of its own on a Unix socket; a row per item: lst(name COLLATE \"C\", item \
    JSONB whole), usr_lst(k, rank with gaps and an index, entry JSONB), presence of `cont` as a row; \
    prepared statements, COPY for many rows, TRUNCATE for all";

/// Makes clusters.
pub struct Postgres;

impl Factory for Postgres {
    fn name(&self) -> &str {
        "postgres"
    }

    fn transport(&self) -> Transport {
        Transport::Socket
    }

    fn kind(&self) -> Kind {
        Kind::Peer
    }

    fn design(&self) -> &str {
        DESIGN
    }

    fn settings(&self, durability: Durability) -> Vec<(String, String)> {
        let settings = settings(durability).into_iter();
        settings.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    fn versions(&self) -> Vec<(String, String)> {
        let version = programs().and_then(|folder| server::version(folder.join("postgres")));
        let number = version.as_deref().and_then(|text| text.split(' ').nth(2).map(str::trim));
        number.map(|number| ("postgres".to_owned(), number.to_owned())).into_iter().collect()
    }

    fn lacks(&self, _durability: Durability) -> Option<String> {
        programs().is_none().then(|| {
            "not installed; `scripts/prepare-peers` installs Debian's `postgresql`".to_owned()
        })
    }

    fn design_in(&self, suite: &str) -> &str {
        match suite {
            "documents" => documents::DESIGN,
            "throughput" => array::DESIGN,
            _ => DESIGN,
        }
    }

    fn open(&self, folder: &Path, durability: Durability) -> Result<Box<dyn System>> {
        let link = Link::start(folder, durability, include_str!("postgres/schema.sql"))?;
        Ok(Box::new(Store { link, told: Told::default() }))
    }

    fn collection(&self, folder: &Path, durability: Durability) -> Result<Box<dyn Collection>> {
        let link = Link::start(folder, durability, documents::SCHEMA)?;
        Ok(Box::new(documents::Documents::new(link)))
    }

    fn array(&self, folder: &Path, durability: Durability) -> Result<Box<dyn Array>> {
        Ok(Box::new(array::Array::new(Link::start(folder, durability, array::SCHEMA)?)))
    }
}

fn settings(durability: Durability) -> Vec<(&'static str, &'static str)> {
    let (fsync, synchronous_commit) = match durability {
        Durability::Durable => ("on", "on"),
        Durability::Process => ("off", "on"),
        Durability::None => ("off", "off"),
    };
    vec![
        ("fsync", fsync),
        ("synchronous_commit", synchronous_commit),
        ("shared_buffers", "256MB"),
        ("max_connections", "20"),
    ]
}

/// The folder of the newest version.
fn programs() -> Option<&'static Path> {
    static FOLDER: OnceLock<Option<PathBuf>> = OnceLock::new();
    let found = || {
        let versions = fs::read_dir(DEBIAN_FOLDER).into_iter().flatten().flatten();
        let number = |path: &PathBuf| path.file_name()?.to_str()?.parse::<u32>().ok();
        let mut versions: Vec<PathBuf> = versions.map(|entry| entry.path()).collect();
        versions.sort_by_key(|path| std::cmp::Reverse(number(path)));
        let folders: Vec<PathBuf> = versions.iter().map(|version| version.join("bin")).collect();
        let initdb = server::find("initdb", &folders)?;
        Some(initdb.parent()?.to_owned())
    };
    FOLDER.get_or_init(found).as_deref()
}

/// Who owns the cluster, where this process is root, as whom PostgreSQL does not run.
fn other_user() -> Option<User> {
    if !rustix::process::geteuid().is_root() {
        return None;
    }
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let ids = |name: &str| {
        let line = users.lines().find(|line| line.split(':').next() == Some(name))?;
        let mut ids = line.split(':').skip(2).map(|id| id.parse::<u32>().ok());
        Some((ids.next()??, ids.next()??))
    };
    Some(ids("postgres").or_else(|| ids("nobody")).unwrap_or((65_534, 65_534)))
}

fn make_cluster(programs: &Path, data: &Path, user: Option<User>) -> Result<()> {
    let io = |error| Error::io("cannot make the cluster of `postgres`").with_source(error);
    fs::create_dir(data).map_err(io)?;
    if let Some(user) = user {
        server::give(data, user).map_err(io)?;
        let reached = server::command(Path::new("test"), Some(user)).arg("-w").arg(data).status();
        if !reached.is_ok_and(|status| status.success()) {
            return Err(Error::unsupported(format!(
                "it does not run as root, and no other user reaches `{}`; choose another `--dir`",
                data.display()
            )));
        }
    }
    let output = server::command(&programs.join("initdb"), user)
        .arg("-D")
        .arg(data)
        .args(["-U", "spinney", "--auth=trust", "-E", "UTF8", "--locale=C", "--no-sync"])
        .current_dir("/")
        .output()
        .map_err(io)?;
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(Error::io(format!("`initdb` failed: {}", why.trim())));
    }
    Ok(())
}

/// A connection to a cluster, which ends with the last of them.
struct Link {
    client: Client,
    server: Arc<Server>,
    statements: HashMap<&'static str, Statement>,
}

struct Store {
    link: Link,
    /// What its subscriber was given.
    told: Told,
}

/// The values of a statement.
type Values<'a> = &'a [&'a (dyn ToSql + Sync)];

impl Link {
    /// The cluster in `folder`; a new one with these tables where there is none.
    fn start(folder: &Path, durability: Durability, schema: &str) -> Result<Link> {
        let programs = programs().ok_or_else(|| Error::unsupported("not installed"))?;
        let user = other_user();
        let data = folder.join("data");
        let is_new = !data.exists();
        if is_new {
            make_cluster(programs, &data, user)?;
        }
        let arguments = |sockets: &Path, command: &mut Command| {
            command.arg("-D").arg(&data).arg("-k").arg(sockets).args(["-c", "listen_addresses="]);
            for (name, value) in settings(durability) {
                command.arg("-c").arg(format!("{name}={value}"));
            }
        };
        let answers = |sockets: &Path| connect(sockets).is_ok();
        let server = Server::start(&programs.join("postgres"), user, folder, arguments, answers)?;
        let mut link = Link::to(Arc::new(server))?;
        if is_new {
            link.client.batch_execute(schema).map_err(failed)?;
        }
        Ok(link)
    }

    fn to(server: Arc<Server>) -> Result<Link> {
        let client = connect(server.sockets()).map_err(failed)?;
        Ok(Link { client, server, statements: HashMap::new() })
    }

    fn run(&mut self, sql: &'static str, values: Values<'_>) -> Result<u64> {
        let statement = self.prepared(sql)?;
        self.client.execute(&statement, values).map_err(failed)
    }

    fn rows(&mut self, sql: &'static str, values: Values<'_>) -> Result<Vec<Row>> {
        let statement = self.prepared(sql)?;
        self.client.query(&statement, values).map_err(failed)
    }

    /// The only row.
    fn row(&mut self, sql: &'static str, values: Values<'_>) -> Result<Row> {
        self.rows(sql, values)?.pop().ok_or_else(missing)
    }

    fn prepared(&mut self, sql: &'static str) -> Result<Statement> {
        if let Some(statement) = self.statements.get(sql) {
            return Ok(statement.clone());
        }
        let statement = self.client.prepare(sql).map_err(failed)?;
        self.statements.insert(sql, statement.clone());
        Ok(statement)
    }

    /// Adds rows with these texts as columns; their number.
    fn copy(&mut self, sql: &'static str, rows: impl Iterator<Item = [String; 2]>) -> Result<u64> {
        let statement = self.prepared(sql)?;
        let mut writer = self.client.copy_in(&statement).map_err(failed)?;
        let io = |error| Error::io("peer `postgres` failed").with_source(error);
        let mut count = 0;
        for [columns, document] in rows {
            // `COPY` has backslashes for what would end a column.
            let document = document.replace('\\', "\\\\");
            writeln!(writer, "{columns}\t{document}").map_err(io)?;
            count += 1;
        }
        writer.finish().map_err(failed)?;
        Ok(count)
    }
}

fn connect(sockets: &Path) -> std::result::Result<Client, ::postgres::Error> {
    Config::new().host_path(sockets).user("spinney").dbname("postgres").connect(NoTls)
}

impl Store {
    /// One commit of an edit, which says what it has changed.
    fn commit(&mut self, edit: impl FnOnce(&mut Self) -> Result<Delivery>) -> Result<Effect> {
        self.link.client.batch_execute("BEGIN").map_err(failed)?;
        match edit(self) {
            Ok(edited) => {
                self.link.client.batch_execute("COMMIT").map_err(failed)?;
                Ok(self.told.tell(edited))
            }
            Err(error) => {
                self.link.client.batch_execute("ROLLBACK").map_err(failed)?;
                Err(error)
            }
        }
    }
}

fn missing() -> Error {
    Error::not_found("the database does not hold the entry; load the document first")
}

#[cold]
fn failed(error: ::postgres::Error) -> Error {
    Error::io("peer `postgres` failed").with_source(error)
}
