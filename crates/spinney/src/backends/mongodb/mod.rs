//! A store in MongoDB: `mongodb://HOST/DATABASE?store=NAME`. Owns how records and batches become
//! documents; it must not know what records hold.
//!
//! It needs no transactions over several documents, so it works alike on one server, a replica set and
//! through `mongos`: a commit is one document, inserted under the number of the state that it makes
//! (`chain`); a record is a document for each version, never changed (`read`); what is superseded goes
//! later (`trim`). `docs/decisions/0020-mongodb.md` says why.

mod chain;
mod commit;
mod failure;
mod key;
mod known;
mod leases;
mod place;
mod read;
mod shared;
mod topology;
mod trim;
mod turns;

use std::sync::atomic::AtomicI64;
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use mongodb::Client;
use mongodb::bson::{Bson, RawDocumentBuf, doc, rawdoc};
use spinney_core::backend::{Batch, Bounds, Capabilities, Direction};
use spinney_core::{Error, Result};
use tokio::runtime::Runtime;

use self::commit::{Commit, FORMAT, Fields, KIND};
use self::known::{Known, Moment};
use self::place::Place;
use self::shared::Shared;
use self::topology::Topology;
use self::trim::{Progress, Worker};
use crate::backends::no_store;
pub use crate::network::ServerOptions as Options;
use crate::network::server::{
    Answer, Failure, Floor, LeaseId, Limit, Newest, Reply, Server, State, Stretch, View,
};

/// Bytes of a page. A lookup reads one page whatever its size, and a commit writes each changed one
/// twice, so small ones cost least.
const PAGE_SIZE: usize = 8_176;

/// Bytes of the longest key, as in LMDB, so that stores can be copied.
const KEY_LEN_MAX: usize = 511;

/// Bytes of keys and values in one batch: three quarters of what a document may hold, for what its fields
/// take besides.
const COMMIT_LEN_MAX: usize = 12 << 20;

/// The first and the longest pause between looks for a newer state.
const POLL: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(200));

/// A store in MongoDB.
///
/// # Durability
/// Commits are written with the write concern `majority` and journalled, unless the URL asks for less.
pub struct MongoDb {
    shared: Arc<Shared>,
    capabilities: Capabilities,
    store_id: String,
    topology: Topology,
    // Ends before the runtime does.
    worker: Worker,
    runtime: Option<Runtime>,
}

impl MongoDb {
    /// Opens a store, or makes it.
    ///
    /// # Errors
    /// `InvalidInput` for a URL that cannot be read, and for collections that hold anything else;
    /// `Denied` for a wrong password, `NotFound` when there is no store and none may be made,
    /// `Unsupported` for a newer format, and where a store that is to be durable would have to be made and
    /// cannot be; `Io` when no server answers in time.
    pub fn open(url: &str, options: Options) -> Result<MongoDb> {
        let no_thread = |error| Error::io("mongodb: no thread can be started").with_source(error);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("spinney-mongodb-io")
            .enable_all()
            .build()
            .map_err(no_thread)?;
        let url = url.to_owned();
        let opened = wait(&runtime, async move { Ok(open(&url, options).await) });
        let opened = opened.and_then(|opened| opened);
        let opened = match opened {
            Ok(opened) => opened,
            Err(failure) => {
                runtime.shutdown_background();
                return Err(match failure {
                    Failure::Lost(error) | Failure::Undone(error) | Failure::Refused(error) => {
                        error
                    }
                    Failure::Expired => {
                        Error::io("mongodb: the store changes too fast to be opened")
                    }
                });
            }
        };
        let shared = Arc::new(opened.shared);
        let handle = runtime.handle().clone();
        let worker =
            Worker::start(Arc::clone(&shared), handle, opened.progress).map_err(no_thread)?;
        let capabilities = Capabilities {
            persistent: true,
            multi_process: true,
            versions: false,
            multi_tree_commit: true,
            page_size: PAGE_SIZE,
            key_len_max: KEY_LEN_MAX,
            commit_len_max: COMMIT_LEN_MAX,
            push_wait: opened.topology.has_change_streams,
            keeps_diffs: false,
        };
        let (store_id, topology) = (opened.store_id, opened.topology);
        Ok(MongoDb { shared, capabilities, store_id, topology, worker, runtime: Some(runtime) })
    }

    /// What a request comes to; it runs on the runtime's thread, so that callers may have one of their
    /// own.
    fn run<T, F>(&self, request: impl FnOnce(Arc<Shared>) -> F) -> Reply<T>
    where
        T: Send + 'static,
        F: Future<Output = Reply<T>> + Send + 'static,
    {
        let runtime = self.runtime.as_ref().expect("it is there until the store is dropped");
        wait(runtime, request(Arc::clone(&self.shared)))
    }
}

impl Drop for MongoDb {
    fn drop(&mut self) {
        self.worker.end();
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

fn wait<T: Send + 'static>(
    runtime: &Runtime,
    request: impl Future<Output = Reply<T>> + Send + 'static,
) -> Reply<T> {
    let (sender, answer) = mpsc::sync_channel(1);
    runtime.spawn(async move {
        // Who asked waits for the answer below.
        let _ = sender.send(request.await);
    });
    let ended = |_| Failure::Refused(Error::closed("mongodb: the store is closed"));
    answer.recv().map_err(ended)?
}

struct Opened {
    shared: Shared,
    progress: Progress,
    store_id: String,
    topology: Topology,
}

async fn open(url: &str, options: Options) -> Reply<Opened> {
    let place = Place::parse(url, options.network.timeout).await?;
    let against = place.against_durable();
    let Place { options: client_options, database, store, shown } = place;
    let client =
        Client::with_options(client_options).map_err(|error| failure::failure(&shown, &error))?;
    let database = client.database(&database);
    let commits = database.collection::<RawDocumentBuf>(&format!("{store}.commits"));
    let pages = database.collection::<RawDocumentBuf>(&format!("{store}.pages"));
    let leased = database.collection::<RawDocumentBuf>(&format!("{store}.leases"));
    let mut shared = Shared {
        database,
        commits,
        pages,
        leased,
        shown,
        network: options.network,
        is_read_only: options.read_only,
        owner: random_id(),
        known: Mutex::new(Known::new(Commit::default(), Moment::now())),
        leases: Mutex::default(),
        applied: tokio::sync::Mutex::new(0),
        ahead: AtomicI64::new(0),
    };
    shared.set_clock().await?;
    let topology = Topology::ask(&shared, against).await?;
    let first = match first_document(&shared).await? {
        Some(first) => first,
        None if options.may_make(|| topology.durable(&shared.shown))? => make(&shared).await?,
        None => return Err(no_store(&shared.shown).into()),
    };
    let fields = Fields(&first);
    let format = fields.number("format")?;
    if format > FORMAT as u64 {
        return Err(Error::unsupported(format!(
            "{}: the store has format {format}, and this version knows {FORMAT}; open it with a newer one",
            shared.shown
        ))
        .into());
    }
    let progress = Progress::decode(&fields)?;
    let store_id = format!("{:032x}", fields.id("commit")?);
    shared.known = Mutex::new(Known::new(Commit::decode(&first)?, Moment::now()));
    shared.look().await?;
    shared.plan_low().await?;
    Ok(Opened { shared, progress, store_id, topology })
}

/// The document of state 0, which says that the collections are a store's.
async fn first_document(shared: &Shared) -> Reply<Option<RawDocumentBuf>> {
    let Some(first) = shared.ask(shared.commits.find_one(doc! { "_id": 0_i64 })).await? else {
        for collection in [&shared.commits, &shared.pages] {
            if shared.ask(collection.find_one(doc! {})).await?.is_some() {
                return Err(foreign(shared, collection.name()));
            }
        }
        return Ok(None);
    };
    if !first.get_str("kind").is_ok_and(|kind| kind == KIND) {
        return Err(foreign(shared, shared.commits.name()));
    }
    Ok(Some(first))
}

fn foreign(shared: &Shared, collection: &str) -> Failure {
    Failure::Refused(Error::invalid_input(format!(
        "{}: the collection `{collection}` holds documents that are no store's; name another store with `?store=NAME`",
        shared.shown
    )))
}

async fn make(shared: &Shared) -> Reply<RawDocumentBuf> {
    let first = Commit { id: random_id(), at: shared.now(), ..Commit::default() };
    let mut document = rawdoc! { "kind": KIND, "format": FORMAT };
    for field in first.encode()?.iter().flatten() {
        document.append(field.0, field.1);
    }
    match shared.answer(shared.commits.insert_one(document)).await? {
        // Another client may have made it at the same time.
        Err(error) if !failure::is_duplicate(&error) => {
            return Err(failure::failure(&shared.shown, &error));
        }
        _ => {}
    }
    let made = first_document(shared).await?;
    made.ok_or_else(|| Error::io(format!("{}: the new store is gone again", shared.shown)).into())
}

/// A number that nobody else has.
fn random_id() -> u128 {
    fastrand::u128(..)
}

impl Server for MongoDb {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn store_id(&self) -> String {
        self.store_id.clone()
    }

    fn newest(&self, known: State, lease: Option<LeaseId>, released: &[LeaseId]) -> Reply<Newest> {
        let released = released.to_vec();
        self.run(async move |shared| shared.newest(known, lease, &released).await)
    }

    fn floor(&self, view: View, lower: &[u8], key: &[u8]) -> Reply<Floor> {
        let (lower, key) = (lower.to_vec(), key.to_vec());
        self.run(async move |shared| shared.floor(view, &lower, &key).await)
    }

    fn range(
        &self,
        view: View,
        (lower, upper): Bounds<'_>,
        direction: Direction,
        limit: Limit,
    ) -> Reply<Stretch> {
        let (lower, upper) = (lower.map(<[u8]>::to_vec), upper.map(<[u8]>::to_vec));
        self.run(async move |shared| {
            let bounds = (lower.as_ref().map(|key| &**key), upper.as_ref().map(|key| &**key));
            shared.range(view, bounds, direction, limit).await
        })
    }

    fn commit(&self, base: Option<State>, batch: &Batch, released: &[LeaseId]) -> Reply<Answer> {
        let (batch, released) = (batch.clone(), released.to_vec());
        let answer = self.run(async move |shared| {
            let answer = shared.commit(base, &batch).await;
            if let Err(failure) = shared.release(&released).await {
                // They end by themselves.
                log::debug!("leases stay until their time is up: {failure:?}");
            }
            answer
        })?;
        if let Answer::Committed(state) = answer {
            self.worker.tell(state);
        }
        Ok(answer)
    }

    fn lock(&self, duration: Duration) -> Reply<bool> {
        self.run(async move |shared| shared.lock(duration).await)
    }

    fn unlock(&self) -> Reply<()> {
        self.run(async |shared| shared.unlock().await)
    }

    fn release(&self, leases: &[LeaseId]) -> Reply<()> {
        let leases = leases.to_vec();
        self.run(async move |shared| shared.release(&leases).await)
    }

    fn durable(&self) -> Result<()> {
        self.topology.durable(&self.shared.shown)
    }

    fn await_newer(&self, known: State, timeout: Duration) -> Reply<()> {
        let pushes = self.topology.has_change_streams;
        self.run(async move |shared| shared.await_newer(known, timeout, pushes).await)
    }

    fn len_bytes(&self) -> Reply<Option<u64>> {
        self.run(async |shared| shared.len_bytes().await)
    }

    fn stats(&self) -> Reply<Vec<(String, String)>> {
        let server = self.topology.shown.clone();
        self.run(async move |shared| shared.stats(server).await)
    }
}

impl Shared {
    async fn await_newer(&self, known: State, timeout: Duration, pushes: bool) -> Reply<()> {
        let until = Instant::now() + timeout;
        // Opened before the first look, so that nothing is made between the two unseen.
        let mut stream = match pushes {
            true => self.ask(self.commits.watch()).await.ok(),
            false => None,
        };
        let (mut pause, longest) = POLL;
        while self.look().await?.state <= known {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            match &mut stream {
                Some(changes) => {
                    // Nothing is told again and again, after as long as the server sees fit to wait.
                    let told = async {
                        loop {
                            match changes.next_if_any().await {
                                Ok(None) => {}
                                Ok(Some(_)) => return true,
                                Err(_) => return false,
                            }
                        }
                    };
                    if matches!(tokio::time::timeout(left, told).await, Ok(false)) {
                        stream = None;
                    }
                }
                None => {
                    tokio::time::sleep(pause.min(left)).await;
                    pause = (pause * 2).min(longest);
                }
            }
        }
        Ok(())
    }

    async fn len_bytes(&self) -> Reply<Option<u64>> {
        let mut sum = 0;
        for collection in [&self.commits, &self.pages] {
            let stats = self.database.run_command(doc! { "collStats": collection.name() });
            let stats = match self.answer(stats).await? {
                Ok(stats) => stats,
                Err(error) if failure::is_missing(&error) => continue,
                Err(error) => return Err(failure::failure(&self.shown, &error)),
            };
            for field in ["storageSize", "totalIndexSize"] {
                sum += match stats.get(field) {
                    Some(Bson::Int32(bytes)) => *bytes as u64,
                    Some(Bson::Int64(bytes)) => *bytes as u64,
                    Some(Bson::Double(bytes)) => *bytes as u64,
                    _ => return Ok(None),
                };
            }
        }
        Ok(Some(sum))
    }

    async fn stats(&self, server: String) -> Reply<Vec<(String, String)>> {
        let newest = self.look().await?;
        let progress = self.progress().await?;
        let commits = self.ask(self.commits.estimated_document_count()).await?;
        let versions = self.ask(self.pages.estimated_document_count()).await?;
        let fact = |name: &str, value: &dyn ToString| (name.to_owned(), value.to_string());
        Ok(vec![
            fact("backend", &"mongodb"),
            fact("server", &server),
            fact("address", &self.shown),
            fact("state", &newest.state),
            fact("oldest readable state", &newest.low),
            fact("trimmed state", &progress.trimmed),
            fact("commit documents", &commits),
            fact("version documents", &versions),
        ])
    }
}
