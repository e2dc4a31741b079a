//! A server of a test that speaks the protocol of MongoDB.
//!
//! MongoDB itself is not packaged by Debian, so it is FerretDB with SQLite behind it, unless
//! `SPINNEY_TEST_MONGODB_URL` names a server. FerretDB has no transactions over several documents and
//! looks at whole collections for a range: it proves what is right and says nothing of speed.

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
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

/// The program, from this crate's folder on; `scripts/prepare-ferretdb` builds it.
const PROGRAM: &str = "../../target/ferretdb/ferretdb";

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
    folder: TempDir,
    port: u16,
    has_users: bool,
    process: Option<Child>,
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
        self.own.is_none()
    }

    /// A server that the test may kill.
    ///
    /// # Panics
    /// As [`MongoServer::start`].
    pub fn start_own() -> Option<MongoServer> {
        MongoServer::start_ferretdb(false)
    }

    /// A server that asks for [`USER`], and lets nobody in: its last answer to who knows the password is
    /// not the one that the driver expects.
    ///
    /// # Panics
    /// As [`MongoServer::start`].
    pub fn start_with_users() -> Option<MongoServer> {
        MongoServer::start_ferretdb(true)
    }

    fn start_ferretdb(has_users: bool) -> Option<MongoServer> {
        if !program().exists() {
            println!("skipped: FerretDB is missing; `scripts/prepare-ferretdb` builds it");
            return None;
        }
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let port = listener.local_addr().expect("an address").port();
        drop(listener);
        let own = Own { folder: folder::temporary(), port, has_users, process: None };
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
        let mut command = Command::new(program());
        // A server must not outlive a test that was killed.
        if let Ok(found) = Command::new("setpriv").arg("--version").output()
            && found.status.success()
        {
            command = Command::new("setpriv");
            command.args(["--pdeathsig", "KILL"]).arg(program());
        }
        let folder = own.folder.path().display();
        command.args(["--handler=sqlite", "--telemetry=disable", "--debug-addr=-"]);
        command.arg(format!("--sqlite-url=file:{folder}/"));
        command.arg(format!("--state-dir={folder}"));
        command.arg(format!("--listen-addr=127.0.0.1:{}", own.port));
        command.args(["--log-level=ERROR"]);
        if own.has_users {
            command.args(["--test-enable-new-auth", "--setup-database=admin"]);
            command.arg(format!("--setup-username={}", USER.0));
            command.arg(format!("--setup-password={}", USER.1));
        }
        let log = std::fs::File::create(own.folder.path().join("log")).expect("a log");
        command.stdin(Stdio::null()).stdout(log.try_clone().expect("a log")).stderr(log);
        own.process = Some(command.spawn().expect("FerretDB starts"));
        let log = own.folder.path().join("log");
        let (port, has_users, since) = (own.port, own.has_users, Instant::now());
        let answers = || match has_users {
            true => TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok(),
            false => self.try_run(doc! { "ping": 1 }).is_ok(),
        };
        while !answers() {
            let log = || std::fs::read_to_string(&log);
            assert!(since.elapsed() < PATIENCE, "FerretDB does not answer: {:?}", log());
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
        let url = format!("{}/?{}serverSelectionTimeoutMS=2000", self.base, self.options());
        self.runtime.block_on(async {
            let client = Client::with_uri_str(url).await?;
            let answer = request(client.database(&self.database)).await;
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

fn program() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(PROGRAM)
}
