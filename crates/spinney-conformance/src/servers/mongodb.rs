//! A server of a test that speaks the protocol of MongoDB.
//!
//! MongoDB itself is not packaged by Debian, so it is FerretDB with SQLite behind it, unless
//! `SPINNEY_TEST_MONGODB_URL` names a server. FerretDB has no transactions over several documents and
//! looks at whole collections for a range: it proves what is right and says nothing of speed. What it
//! lacks, SecantusDB has: it is the one member of a replica set, with change streams, TLS and users, on
//! MongoDB's own storage engine.

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use mongodb::bson::{Document, doc};
use mongodb::{Client, Database};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::folder;

/// The variable that names a server, without a database and options.
pub const URL: &str = "SPINNEY_TEST_MONGODB_URL";

/// FerretDB, from this crate's folder on; `scripts/prepare-ferretdb` builds it.
const FERRETDB: &str = "../../target/ferretdb/ferretdb";

/// The packages of SecantusDB, from this crate's folder on; `scripts/prepare-secantusdb` installs them.
const SECANTUSDB: &str = "../../target/secantusdb/packages";

/// How long a server may take until it answers.
const PATIENCE: Duration = Duration::from_secs(30);

/// Who may enter a server with users.
pub const USER: (&str, &str) = ("ada", "s3cret");

/// A server, and a database of it that is deleted in the end.
pub struct MongoServer {
    own: Option<Own>,
    base: String,
    database: String,
    runtime: Runtime,
}

struct Own {
    program: Program,
    folder: TempDir,
    port: u16,
    has_users: bool,
    /// Settings as on the command line.
    settings: Vec<String>,
    process: Option<Child>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Program {
    FerretDb,
    SecantusDb,
}

impl MongoServer {
    /// A server; `None`, with a line that says so, where there is none.
    ///
    /// # Panics
    /// When a server that is there does not start.
    pub fn start() -> Option<MongoServer> {
        match std::env::var(URL) {
            Ok(base) => Some(MongoServer::at(base.trim_end_matches('/').to_owned(), None)),
            Err(_) => MongoServer::start_own(),
        }
    }

    /// Whether the server can look up a range without reading everything.
    pub fn has_indexes(&self) -> bool {
        self.own.as_ref().is_none_or(|own| own.program != Program::FerretDb)
    }

    /// A server that the test may kill.
    ///
    /// # Panics
    /// As [`MongoServer::start`].
    pub fn start_own() -> Option<MongoServer> {
        MongoServer::start_program(Program::FerretDb, false, &[])
    }

    /// A server that asks for [`USER`], and lets nobody in: its last answer to who knows the password is
    /// not the one that the driver expects.
    ///
    /// # Panics
    /// As [`MongoServer::start`].
    pub fn start_with_users() -> Option<MongoServer> {
        MongoServer::start_program(Program::FerretDb, true, &[])
    }

    /// A server that finds ranges by an index: the one that the environment names, or a member of a
    /// replica set.
    ///
    /// # Panics
    /// As [`MongoServer::start`].
    pub fn start_indexed() -> Option<MongoServer> {
        match std::env::var(URL) {
            Ok(_) => MongoServer::start(),
            Err(_) => MongoServer::start_member(&[]),
        }
    }

    /// The primary of a replica set, with settings as on its command line, which syncs each write.
    ///
    /// # Panics
    /// As [`MongoServer::start`].
    pub fn start_member(settings: &[&str]) -> Option<MongoServer> {
        MongoServer::start_program(Program::SecantusDb, false, settings)
    }

    /// As [`MongoServer::start_member`], for [`USER`] alone.
    ///
    /// # Panics
    /// As [`MongoServer::start`].
    pub fn start_member_with_users() -> Option<MongoServer> {
        let mut server = MongoServer::start_member(&[])?;
        let (name, password) = USER;
        let user = doc! { "createUser": name, "pwd": password, "roles": ["root"] };
        server.on("admin", async |admin| admin.run_command(user).await).expect("a user");
        server.kill();
        server.base = server.base.replace("mongodb://", &format!("mongodb://{name}:{password}@"));
        let own = server.own.as_mut().expect("it is one of its own");
        own.has_users = true;
        own.settings.push("--auth".into());
        server.resume();
        Some(server)
    }

    fn start_program(program: Program, has_users: bool, settings: &[&str]) -> Option<MongoServer> {
        if let Some(missing) = program.missing() {
            println!("skipped: {missing}");
            return None;
        }
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let port = listener.local_addr().expect("an address").port();
        drop(listener);
        let folder = folder::temporary();
        let settings = settings.iter().map(|&setting| setting.to_owned()).collect();
        let own = Own { program, folder, port, has_users, settings, process: None };
        let user = if has_users { format!("{}:{}@", USER.0, USER.1) } else { String::new() };
        let mut server = MongoServer::at(format!("mongodb://{user}127.0.0.1:{port}"), Some(own));
        server.resume();
        Some(server)
    }

    fn at(base: String, own: Option<Own>) -> MongoServer {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let database = format!("spinney-test-{:08x}", fastrand::u32(..));
        MongoServer { own, base, database, runtime: runtime.expect("a runtime") }
    }

    /// Starts a server of its own again, with what it kept.
    ///
    /// # Panics
    /// When it does not answer in time.
    pub fn resume(&mut self) {
        let own = self.own.as_mut().expect("a server of its own");
        let mut command = own.command();
        let log = std::fs::File::create(own.folder.path().join("log")).expect("a log");
        command.stdin(Stdio::null()).stdout(log.try_clone().expect("a log")).stderr(log);
        own.process = Some(command.spawn().expect("the server starts"));
        let log = own.folder.path().join("log");
        let (port, has_users, since) = (own.port, own.has_users, Instant::now());
        let is_closed =
            has_users || own.settings.iter().any(|setting| setting.starts_with("--tls"));
        let answers = || match is_closed {
            true => TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok(),
            false => self.try_run(doc! { "ping": 1 }).is_ok(),
        };
        while !answers() {
            let log = || std::fs::read_to_string(&log);
            assert!(since.elapsed() < PATIENCE, "the server does not answer: {:?}", log());
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Ends a server of its own without a chance to clean up.
    ///
    /// # Panics
    /// When that fails.
    pub fn kill(&mut self) {
        let own = self.own.as_mut().expect("a server of its own");
        if let Some(mut process) = own.process.take() {
            process.kill().expect("kill");
            process.wait().expect("wait");
        }
    }

    /// The port of a server of its own.
    ///
    /// # Panics
    /// When it is not.
    pub fn port(&self) -> u16 {
        self.own.as_ref().expect("a server of its own").port
    }

    /// The URL of a store in the server's database.
    pub fn url(&self, store: &str) -> String {
        format!("{}/{}?{}store={store}", self.base, self.database, self.options())
    }

    /// The URL of the same store through another port.
    ///
    /// # Panics
    /// When the server is not one of its own.
    pub fn url_through(&self, port: u16, store: &str) -> String {
        self.url(store).replace(&format!(":{}/", self.port()), &format!(":{port}/"))
    }

    fn options(&self) -> &'static str {
        match &self.own {
            Some(own) if own.has_users => "authSource=admin&authMechanism=SCRAM-SHA-256&",
            _ => "",
        }
    }

    /// How many queries the server has answered since it started.
    ///
    /// # Panics
    /// When it does not tell.
    pub fn queries(&self) -> i64 {
        let status = self.try_run(doc! { "serverStatus": 1 }).expect("a status");
        let counts = status.get_document("opcounters").expect("counts");
        counts
            .get_i64("query")
            .or_else(|_| counts.get_i32("query").map(i64::from))
            .expect("a count")
    }

    /// All documents of a collection, by their `_id`s.
    ///
    /// # Panics
    /// When they cannot be read.
    pub fn documents(&self, collection: &str) -> Vec<Document> {
        let documents = self.on_database(async |database| {
            let collection = database.collection::<Document>(collection);
            let mut cursor = collection.find(doc! {}).sort(doc! { "_id": 1 }).await?;
            let mut documents = Vec::new();
            while cursor.advance().await? {
                documents.push(cursor.deserialize_current()?);
            }
            Ok(documents)
        });
        documents.unwrap_or_else(|error| panic!("{collection}: {error}"))
    }

    /// Adds a document to a collection.
    ///
    /// # Panics
    /// When that fails.
    pub fn insert(&self, collection: &str, document: Document) {
        let inserted = self.on_database(async |database| {
            database.collection::<Document>(collection).insert_one(document).await
        });
        inserted.unwrap_or_else(|error| panic!("{collection}: {error}"));
    }

    /// Changes documents of a collection.
    ///
    /// # Panics
    /// When that fails.
    pub fn update(&self, collection: &str, filter: Document, update: Document) {
        let updated = self.on_database(async |database| {
            database.collection::<Document>(collection).update_many(filter, update).await
        });
        updated.unwrap_or_else(|error| panic!("{collection}: {error}"));
    }

    /// Deletes documents of a collection.
    ///
    /// # Panics
    /// When that fails.
    pub fn delete(&self, collection: &str, filter: Document) {
        let deleted = self.on_database(async |database| {
            database.collection::<Document>(collection).delete_many(filter).await
        });
        deleted.unwrap_or_else(|error| panic!("{collection}: {error}"));
    }

    fn try_run(&self, command: Document) -> mongodb::error::Result<Document> {
        self.on_database(async |database| database.run_command(command).await)
    }

    fn on_database<T>(
        &self,
        request: impl AsyncFnOnce(Database) -> mongodb::error::Result<T>,
    ) -> mongodb::error::Result<T> {
        self.on(&self.database, request)
    }

    fn on<T>(
        &self,
        database: &str,
        request: impl AsyncFnOnce(Database) -> mongodb::error::Result<T>,
    ) -> mongodb::error::Result<T> {
        let url = format!("{}/?{}serverSelectionTimeoutMS=2000", self.base, self.options());
        self.runtime.block_on(async {
            let client = Client::with_uri_str(url).await?;
            let answer = request(client.database(database)).await;
            client.shutdown().await;
            answer
        })
    }
}

impl Drop for MongoServer {
    fn drop(&mut self) {
        match &self.own {
            Some(_) => self.kill(),
            // A server that is not the test's keeps nothing of it.
            None => drop(self.try_run(doc! { "dropDatabase": 1 })),
        }
    }
}

impl Program {
    /// What there is to say when it is missing.
    fn missing(self) -> Option<&'static str> {
        let (path, text) = match self {
            Program::FerretDb => {
                (FERRETDB, "FerretDB is missing; `scripts/prepare-ferretdb` builds it")
            }
            Program::SecantusDb => {
                (SECANTUSDB, "SecantusDB is missing; `scripts/prepare-secantusdb` installs it")
            }
        };
        (!from_this_crate(path).exists()).then_some(text)
    }
}

impl Own {
    /// What starts the server.
    fn command(&self) -> Command {
        let (folder, port) = (self.folder.path().display(), self.port);
        let mut arguments: Vec<String> = Vec::new();
        match self.program {
            Program::FerretDb => {
                arguments.push(from_this_crate(FERRETDB).display().to_string());
                let fixed = [
                    "--handler=sqlite",
                    "--telemetry=disable",
                    "--debug-addr=-",
                    "--log-level=ERROR",
                ];
                arguments.extend(fixed.map(str::to_owned));
                arguments.push(format!("--sqlite-url=file:{folder}/"));
                arguments.push(format!("--state-dir={folder}"));
                arguments.push(format!("--listen-addr=127.0.0.1:{port}"));
                if self.has_users {
                    let fixed = ["--test-enable-new-auth", "--setup-database=admin"];
                    arguments.extend(fixed.map(str::to_owned));
                    arguments.push(format!("--setup-username={}", USER.0));
                    arguments.push(format!("--setup-password={}", USER.1));
                }
            }
            Program::SecantusDb => {
                let main = "from secantus.cli import main; main()";
                arguments.extend(["python3", "-c", main, "--sync-on-commit"].map(str::to_owned));
                arguments.extend(["--log-level".into(), "WARNING".into()]);
                arguments.extend(["--port".into(), port.to_string()]);
                arguments.extend(["--storage-path".into(), format!("{folder}/data")]);
            }
        }
        // A server must not outlive a test that was killed.
        let found = Command::new("setpriv").arg("--version").output();
        if found.is_ok_and(|found| found.status.success()) {
            arguments.splice(0..0, ["setpriv", "--pdeathsig", "KILL"].map(str::to_owned));
        }
        let mut command = Command::new(&arguments[0]);
        command.args(&arguments[1..]).args(&self.settings);
        command.env("PYTHONPATH", from_this_crate(SECANTUSDB)).env("PYTHONDONTWRITEBYTECODE", "1");
        command
    }
}

fn from_this_crate(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}
