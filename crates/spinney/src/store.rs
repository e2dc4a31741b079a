//! Opening stores by URL, and reading and writing them. How a write goes is in `writing.rs`.

mod writing;

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Weak};
use std::time::{Duration, SystemTime};

use spinney_core::attempts::try_again;
use spinney_core::backend::{self, Backend, Capabilities, Revision};
use spinney_core::diff::Diff;
use spinney_core::history::{self, Note, Retention};
use spinney_core::reclaim;
use spinney_core::transaction::Transaction;
use spinney_core::view::View;
use spinney_core::{Error, ErrorKind, Memory, Result};

use crate::access::{Principal, Right, Seat, Sight};
#[cfg(feature = "json")]
use crate::backends::json::Take;
use crate::datastores::{self, Providers, Timer};
use crate::feed::{Bookmark, Changes, Source};
use crate::forest::{Apart, Forest, Reading, Trees};
use crate::janitor::Janitor;
use crate::locks::{self, Locks, Passes};
#[cfg(any(feature = "mongodb", feature = "redis"))]
use crate::network::{Network, Server, ServerOptions};
use crate::network::{NetworkOptions, redacted};
use crate::owners::{OwnerId, Owners, OwnersFile, Presence};
#[cfg(feature = "schema")]
use crate::schemas;
use crate::snapshot::{Origin, Recent, Snapshot};
use crate::store_limits::Limits;
#[cfg(feature = "lmdb")]
use crate::subscribers::Registry;
use crate::subscribers::Subscribers;

/// Revisions after which somebody looks whether the log takes more than it may.
const LOOK_AT_LOG_EVERY: Revision = 64;

/// What a commit has survived when it is answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// Everything, power loss included: it is synced.
    #[default]
    Durable,
    /// The end of this process, however it comes; not a power failure, until a sync that starts at
    /// the latest 50 ms later. A backend without this level syncs instead.
    Process,
    /// Nothing yet: it is visible in this process, and is written and synced from 50 ms later on. A
    /// crash may lose the last commits, in their order from the end, and never damages the store.
    None,
}

/// How to open a store.
#[derive(Clone, Debug)]
pub struct OpenOptions {
    create: bool,
    read_only: bool,
    durability: Durability,
    limits: Limits,
    retention: Retention,
    note: Note,
    owner: Option<OwnerId>,
    #[cfg(feature = "json")]
    take: Option<Take>,
    network: NetworkOptions,
}

impl Default for OpenOptions {
    fn default() -> OpenOptions {
        OpenOptions {
            create: true,
            read_only: false,
            durability: Durability::default(),
            limits: Limits::DEFAULT,
            retention: Retention::DEFAULT,
            note: Note::default(),
            owner: None,
            #[cfg(feature = "json")]
            take: None,
            network: NetworkOptions::DEFAULT,
        }
    }
}

impl OpenOptions {
    /// Creates a store that does not exist, syncs each commit.
    pub fn new() -> OpenOptions {
        OpenOptions::default()
    }

    /// Whether a store that does not exist is made (default: yes).
    pub fn create(mut self, create: bool) -> OpenOptions {
        self.create = create;
        self
    }

    /// Whether writes are refused (default: no); works where the medium cannot be written.
    pub fn read_only(mut self, read_only: bool) -> OpenOptions {
        self.read_only = read_only;
        self
    }

    /// What commits survive unless they say otherwise (default: [`Durability::Durable`]).
    pub fn durability(mut self, durability: Durability) -> OpenOptions {
        self.durability = durability;
        self
    }

    /// How much waits in the journal of a store in LMDB or fjall, and for how long (default:
    /// [`Limits::DEFAULT`]).
    pub fn limits(mut self, limits: Limits) -> OpenOptions {
        self.limits = limits;
        self
    }

    /// How much history this process lets the store keep when it writes (default:
    /// [`Retention::DEFAULT`]).
    pub fn retention(mut self, retention: Retention) -> OpenOptions {
        self.retention = retention;
        self
    }

    /// Who makes the commits of this handle, unless they say otherwise.
    pub fn author(mut self, author: impl Into<String>) -> OpenOptions {
        self.note.author = author.into();
        self
    }

    /// Why the commits of this handle are made, unless they say otherwise.
    pub fn message(mut self, message: impl Into<String>) -> OpenOptions {
        self.note.message = message.into();
        self
    }

    /// Writes for an owner of locks besides itself: what that one has locked, this handle may change, too.
    pub fn owner(mut self, owner: Option<OwnerId>) -> OpenOptions {
        self.owner = owner;
        self
    }

    /// What to do with a `json:` file that was edited while its journal has commits that it lacks
    /// (default: refuse to open it).
    #[cfg(feature = "json")]
    pub fn take(mut self, take: Option<Take>) -> OpenOptions {
        self.take = take;
        self
    }

    /// How to deal with a server (default: [`NetworkOptions::DEFAULT`]).
    pub fn network(mut self, network: NetworkOptions) -> OpenOptions {
        self.network = network;
        self
    }

    /// Opens a store: `lmdb:DIR`, `fjall:DIR`, `json:FILE`, `memory:`, just a directory, which is LMDB, or
    /// one on a server: `redis://HOST`, `rediss://HOST`, `redis+unix:SOCKET`, `redis+cluster://HOST`,
    /// `rediss+cluster://HOST`, `mongodb://HOST`, `mongodb+srv://HOST`.
    ///
    /// A `json:` file is one tree, and paths begin at its root, whatever that is.
    ///
    /// # Errors
    /// `InvalidInput` for an unknown scheme, a directory that is no store, and [`Limits`] or
    /// [`NetworkOptions`] that make no sense; `NotFound` when it does not exist and may not be made;
    /// `Denied` when a server wants another password; `Corrupted`, `Unsupported` (a newer format), `Io`.
    pub fn open(&self, url: &str) -> Result<Store> {
        self.limits.check()?;
        self.network.check()?;
        let (scheme, rest) = match url.split_once(':') {
            Some((scheme, rest)) if scheme.len() > 1 && scheme.bytes().all(is_scheme_byte) => {
                (scheme, rest)
            }
            // No folder that anybody means is called so.
            Some((scheme, rest)) if rest.starts_with("//") => (scheme, rest),
            _ => ("lmdb", url),
        };
        match scheme {
            "memory" if rest.is_empty() => Ok(self.over(Arc::new(Memory::new()), None)),
            "memory" => Err(Error::invalid_input(format!(
                "`{url}`: a store in memory has no name; write `memory:`"
            ))),
            "lmdb" => self.open_lmdb(Path::new(rest)),
            "json" => self.open_json(Path::new(rest)),
            "fjall" => self.open_fjall(Path::new(rest)),
            "redis" | "rediss" | "redis+unix" => self.open_redis(url),
            "redis+cluster" | "rediss+cluster" => self.open_redis_cluster(url),
            "mongodb" | "mongodb+srv" => self.open_mongodb(url),
            _ => Err(Error::invalid_input(format!(
                "`{}`: unknown kind of store `{scheme}`; write `lmdb:DIR`, `fjall:DIR`, `json:FILE`, \
                 `redis://HOST`, `mongodb://HOST` or `memory:`",
                redacted(url)
            ))),
        }
    }

    #[cfg(feature = "lmdb")]
    fn open_lmdb(&self, dir: &Path) -> Result<Store> {
        if dir.as_os_str().is_empty() {
            return Err(Error::invalid_input("`lmdb:` needs a directory; write `lmdb:DIR`"));
        }
        let options = crate::backends::lmdb::Options {
            create: self.create && !self.read_only,
            read_only: self.read_only,
            limits: self.limits,
        };
        let backend = crate::backends::lmdb::Lmdb::open(dir, options)?;
        let subscribers = Subscribers::with(Registry::new(dir, Arc::clone(&backend)));
        let root = spinney_core::Path::root();
        let owners = Some(OwnersFile::new(&dir.canonicalize().unwrap_or_else(|_| dir.to_owned())));
        let place = Place { scratch_dir: Some(dir.to_owned()), owners, ..Place::default() };
        Ok(self.placed(Arc::new(backend), place, root, subscribers))
    }

    #[cfg(not(feature = "lmdb"))]
    fn open_lmdb(&self, _dir: &Path) -> Result<Store> {
        Err(Error::unsupported("this build has no LMDB; build it with the feature `lmdb`"))
    }

    #[cfg(feature = "fjall")]
    fn open_fjall(&self, dir: &Path) -> Result<Store> {
        use crate::backends::fjall::{Fjall, Options};
        if dir.as_os_str().is_empty() {
            return Err(Error::invalid_input("`fjall:` needs a directory; write `fjall:DIR`"));
        }
        let options = Options {
            create: self.create && !self.read_only,
            read_only: self.read_only,
            limits: self.limits,
            ..Options::EXISTING
        };
        Ok(self.over(Fjall::open(dir, options)?, Some(dir.to_owned())))
    }

    #[cfg(not(feature = "fjall"))]
    fn open_fjall(&self, _dir: &Path) -> Result<Store> {
        Err(Error::unsupported("this build has no fjall; build it with the feature `fjall`"))
    }

    #[cfg(feature = "json")]
    fn open_json(&self, file: &Path) -> Result<Store> {
        use crate::backends::json::{DOCUMENT, Json, Options};
        if file.as_os_str().is_empty() {
            return Err(Error::invalid_input("`json:` needs a file; write `json:FILE`"));
        }
        let base_path = spinney_core::Path::parse(DOCUMENT)?;
        let options = Options {
            create: self.create && !self.read_only,
            read_only: self.read_only,
            take: self.take,
            base_path: base_path.clone(),
        };
        Ok(self.based(Json::open(file, options)?, None, base_path, Subscribers::default()))
    }

    #[cfg(not(feature = "json"))]
    fn open_json(&self, _file: &Path) -> Result<Store> {
        Err(Error::unsupported("this build has no JSON files; build it with the feature `json`"))
    }

    #[cfg(feature = "redis")]
    fn open_redis(&self, url: &str) -> Result<Store> {
        let options = self.server_options();
        Ok(self.on_server(crate::backends::redis::Redis::open(url, options)?))
    }

    #[cfg(not(feature = "redis"))]
    fn open_redis(&self, _url: &str) -> Result<Store> {
        Err(Error::unsupported("this build has no Redis; build it with the feature `redis`"))
    }

    #[cfg(feature = "redis")]
    fn open_redis_cluster(&self, url: &str) -> Result<Store> {
        use crate::backends::redis::Cluster;
        let cluster = Cluster::open(url, self.server_options())?;
        let Some(tree) = cluster.only_tree().map(str::to_owned) else {
            return Ok(self.over_trees(Arc::new(cluster)));
        };
        let may_make = self.create && !self.read_only;
        match cluster.open(&tree, may_make)? {
            Some(backend) => Ok(self.over_tree(backend, &tree)),
            None => Err(Error::not_found(format!("{cluster}: there is no tree `{tree}`"))),
        }
    }

    #[cfg(not(feature = "redis"))]
    fn open_redis_cluster(&self, url: &str) -> Result<Store> {
        self.open_redis(url)
    }

    #[cfg(feature = "mongodb")]
    fn open_mongodb(&self, url: &str) -> Result<Store> {
        let options = self.server_options();
        Ok(self.on_server(crate::backends::mongodb::MongoDb::open(url, options)?))
    }

    #[cfg(not(feature = "mongodb"))]
    fn open_mongodb(&self, _url: &str) -> Result<Store> {
        Err(Error::unsupported("this build has no MongoDB; build it with the feature `mongodb`"))
    }

    #[cfg(any(feature = "mongodb", feature = "redis"))]
    fn server_options(&self) -> ServerOptions {
        let OpenOptions { create, read_only, network, .. } = *self;
        let durable = self.durability == Durability::Durable;
        ServerOptions { create, read_only, durable, network }
    }

    #[cfg(any(feature = "mongodb", feature = "redis"))]
    fn on_server(&self, server: impl Server + 'static) -> Store {
        self.over(Arc::new(Network::opened(server, &self.server_options())), None)
    }

    /// A store over a backend of the caller's; imports that do not fit in memory go to `scratch_dir`.
    pub fn over(&self, backend: Arc<dyn Backend>, scratch_dir: Option<PathBuf>) -> Store {
        let root = spinney_core::Path::root();
        self.based(backend, scratch_dir, root, Subscribers::default())
    }

    /// A store whose trees are kept apart, each in a backend of its own.
    pub fn over_trees(&self, trees: Arc<dyn Trees>) -> Store {
        let forest = Arc::new(Forest::new(Arc::clone(&trees), self.clone()));
        let root = spinney_core::Path::root();
        let place = Place { forest: Some(forest), ..Place::default() };
        self.placed(Arc::new(Apart(trees)), place, root, Subscribers::default())
    }

    /// A store of the one tree that a backend holds under its name.
    pub fn over_tree(&self, backend: Arc<dyn Backend>, tree: &str) -> Store {
        let place = Place { tree: Some(tree.to_owned()), ..Place::default() };
        let root = spinney_core::Path::root();
        self.placed(backend, place, root, Subscribers::default())
    }

    fn based(
        &self,
        backend: Arc<dyn Backend>,
        scratch_dir: Option<PathBuf>,
        base_path: spinney_core::Path,
        subscribers: Subscribers,
    ) -> Store {
        self.placed(backend, Place { scratch_dir, ..Place::default() }, base_path, subscribers)
    }

    fn placed(
        &self,
        backend: Arc<dyn Backend>,
        mut place: Place,
        base_path: spinney_core::Path,
        subscribers: Subscribers,
    ) -> Store {
        let key_len_max = backend.capabilities().key_len_max;
        let presence = match (place.owners.take(), backend.capabilities().multi_process) {
            (_, false) => Presence::OneProcess,
            (Some(file), true) => Presence::SharedFile(file),
            (None, true) => Presence::Network,
        };
        let locks =
            Locks { cache: locks::Cache::default(), owners: Owners::new(presence, self.owner) };
        let origin = Origin { key_len_max, base_path, recent: Recent::default() };
        Store {
            shared: Arc::new(Shared {
                backend,
                janitor: Janitor::new(self.retention),
                note: self.note.clone(),
                revisions_max: self.retention.revisions_max,
                durability: self.durability,
                place,
                origin: Arc::new(origin),
                subscribers,
                confirms: Timer::default(),
                providers: Providers::default(),
                locks,
                #[cfg(feature = "schema")]
                schemas: schemas::Cache::default(),
                process: fastrand::u64(..),
                commits: AtomicU64::new(0),
            }),
            seat: None,
        }
    }
}

fn is_scheme_byte(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte == b'+'
}

/// Opens a store, making it when it does not exist: `lmdb:DIR`, `fjall:DIR`, `json:FILE`, `memory:`, just
/// a directory, which is LMDB, or one on a server: `redis://HOST`, `mongodb://HOST`.
///
/// # Errors
/// As [`OpenOptions::open`].
pub fn open(url: &str) -> Result<Store> {
    OpenOptions::new().open(url)
}

/// Where a store is among others.
#[derive(Default)]
struct Place {
    /// Imports that do not fit in memory go there.
    scratch_dir: Option<PathBuf>,
    /// The one tree that it holds; any, when there is none.
    tree: Option<String>,
    /// Its trees, when they are kept apart.
    forest: Option<Arc<Forest>>,
    /// Where processes that share it see that owners live, when there is such a place.
    owners: Option<OwnersFile>,
}

pub(crate) struct Shared {
    // Dropped first, so that the thread is told before the backend goes.
    janitor: Janitor,
    backend: Arc<dyn Backend>,
    durability: Durability,
    note: Note,
    revisions_max: u64,
    place: Place,
    origin: Arc<Origin>,
    subscribers: Subscribers,
    /// Who watches a commit that waits for its confirmation.
    pub(crate) confirms: Timer,
    /// Who makes operational state when it is read.
    providers: Providers,
    locks: Locks,
    #[cfg(feature = "schema")]
    schemas: schemas::Cache,
    process: u64,
    commits: AtomicU64,
}

/// A store of trees. Clones are handles of the same store.
#[derive(Clone)]
pub struct Store {
    shared: Arc<Shared>,
    /// Whose handle it is; without, the store's owner's, who may do everything.
    seat: Option<Arc<Seat>>,
}

/// A store that may be closed.
#[derive(Clone)]
pub(crate) struct WeakStore(Weak<Shared>);

impl WeakStore {
    /// The store, while somebody has it open.
    pub fn upgrade(&self) -> Option<Store> {
        self.0.upgrade().map(|shared| Store { shared, seat: None })
    }
}

/// What a write did.
#[derive(Clone, Debug)]
pub struct Committed<T> {
    /// The revision that it made, or the one it read when it changed nothing.
    pub revision: Revision,
    /// What changed; empty when nothing did.
    pub diff: Diff,
    /// What the closure returned.
    pub value: T,
}

impl Store {
    /// The newest committed state.
    ///
    /// A snapshot of this process may see commits that are not yet synced. Of a store whose trees are
    /// kept apart it is one state of each tree, from when that is first read.
    ///
    /// # Errors
    /// `Busy` when all reader slots of all processes are taken; those of the backend.
    pub fn read(&self) -> Result<Snapshot> {
        if let Some(forest) = self.forest() {
            let reading = Reading::new(Arc::clone(forest));
            return Ok(Snapshot::of_trees(reading, Arc::clone(&self.shared.origin)));
        }
        let state = self.snapshot_of(self.shared.backend.snapshot()?);
        let sight = self.sight(&state.view())?;
        Ok(state.seen_with(sight))
    }

    /// This store as a principal has it: the access rules bind what that one reads and writes through the
    /// handle and its clones. Where there are no rules, it may do everything.
    #[must_use]
    pub fn as_principal(&self, principal: Principal) -> Store {
        Store { shared: Arc::clone(&self.shared), seat: Some(Arc::new(Seat::new(principal))) }
    }

    /// Whose handle it is; `None` when access rules do not bind it.
    pub fn principal(&self) -> Option<&Principal> {
        self.seat().map(|seat| &seat.principal)
    }

    /// Another store as the same principal has it.
    pub(crate) fn with_seat_of(self, other: &Store) -> Store {
        match other.principal() {
            Some(principal) => self.as_principal(principal.clone()),
            None => self,
        }
    }

    /// The store as its owner has it, to do what was permitted.
    pub(crate) fn unrestricted(&self) -> Store {
        Store { shared: Arc::clone(&self.shared), seat: None }
    }

    pub(crate) fn seat(&self) -> Option<&Arc<Seat>> {
        self.seat.as_ref()
    }

    /// What this handle's principal may see, by the rules of a state.
    pub(crate) fn sight(&self, view: &View<'_>) -> Result<Option<Arc<Sight>>> {
        let permissions = match &self.seat {
            Some(seat) if self.base_path().is_empty() => seat.permissions(view)?,
            _ => None,
        };
        let backend = || Arc::clone(&self.shared.backend);
        Ok(permissions.map(|permissions| Arc::new(Sight { permissions, backend: backend() })))
    }

    /// The store of the tree that a path leads into: itself, but of a store whose trees are kept apart
    /// the one of that tree, with revisions, a log and older states of its own. The root's is itself.
    ///
    /// # Errors
    /// `NotFound` when trees are kept apart and there is none of that name.
    pub fn holding(&self, path: &str) -> Result<Store> {
        self.held(path, false)
    }

    /// As [`Store::holding`]; makes a tree that does not exist.
    pub(crate) fn holding_or_new(&self, path: &str) -> Result<Store> {
        self.held(path, true)
    }

    fn held(&self, path: &str, create: bool) -> Result<Store> {
        let held = self.forest().map(|forest| forest.holding(path, create)).transpose()?;
        Ok(held.flatten().unwrap_or_else(|| self.clone()))
    }

    /// The trees, when they are kept apart.
    pub(crate) fn forest(&self) -> Option<&Arc<Forest>> {
        self.shared.place.forest.as_ref()
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
    }

    /// Whether both are handles of one store.
    pub(crate) fn is_same(&self, other: &Store) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    /// Whether anybody but the store that this tree belongs to has it.
    pub(crate) fn is_used(&self) -> bool {
        Arc::strong_count(&self.shared) > 1
    }

    /// Sums up something over all trees that are kept apart; `None` where they are not.
    fn over_all(&self, each: impl Fn(&Store) -> Result<u64>) -> Option<Result<u64>> {
        let forest = self.forest()?;
        Some(forest.all().and_then(|all| all.iter().map(|(_, store)| each(store)).sum()))
    }

    /// An older state, as long as the change log reaches back to it.
    ///
    /// # Errors
    /// `NotFound` when the revision is in the future or not kept any more; those of [`Store::read`].
    ///
    /// # Complexity
    /// That of what changed since; reading it costs what reading the newest state does.
    pub fn at(&self, revision: Revision) -> Result<Snapshot> {
        let newest = self.shared.backend.snapshot()?;
        let key_len_max = self.shared.origin.key_len_max;
        // Who may see what is not what it was then.
        let sight = self.sight(&View { snapshot: &*newest, key_len_max })?;
        let state = history::at(newest, revision)?;
        Ok(self.snapshot_of(Box::new(state)).seen_with(sight))
    }

    /// A state of this store as its users read it.
    pub(crate) fn snapshot_of(&self, state: Box<dyn backend::Snapshot>) -> Snapshot {
        Snapshot::new(state, Arc::clone(&self.shared.origin))
    }

    /// The commits after a revision that concern a path, those to come included.
    ///
    /// # Errors
    /// `InvalidInput` for a malformed path; those of the backend.
    pub fn changes(&self, path: &str, since: Revision) -> Result<Changes> {
        Changes::new(Source::Store(self.holding(path)?), path, since)
    }

    /// As [`Store::changes`], from where another feed was; one of another store begins with a gap.
    ///
    /// # Errors
    /// As [`Store::changes`].
    pub fn changes_from(&self, path: &str, bookmark: &Bookmark) -> Result<Changes> {
        Changes::resume(Source::Store(self.holding(path)?), path, bookmark)
    }

    /// Names the sequence of commits that revisions number: another one where the store's history does
    /// not outlive its handle.
    pub fn store_id(&self) -> String {
        let own = || format!("{:016x}", self.shared.process);
        self.shared.backend.store_id().unwrap_or_else(own)
    }

    /// Returns the newest durable revision as soon as it is above `after`, or when the time is up.
    ///
    /// # Errors
    /// Those of the backend.
    pub fn wait_durable(&self, after: Revision, timeout: Duration) -> Result<Revision> {
        self.shared.backend.wait_durable(after, timeout)
    }

    /// What the store stands on.
    pub(crate) fn backend(&self) -> &dyn Backend {
        &*self.shared.backend
    }

    /// Forgets the commits before a revision: states before it cannot be read any more, and what they
    /// alone held is reclaimed. Returns how many commits it forgot. What a commit of datastores that is not confirmed
    /// yet would go back by stays.
    ///
    /// # Errors
    /// `Denied` to who does not administer everything; those of the backend.
    pub fn forget_before(&self, first: Revision) -> Result<u64> {
        self.require("", Right::Admin)?;
        let backend = &*self.shared.backend;
        // What follows rests on what was heard of last: that is to be all that was committed by now.
        drop(backend.snapshot()?);
        let forgotten =
            history::trim_unneeded(backend, first, |state| datastores::first_needed(state))?;
        if forgotten > 0 {
            self.shared.janitor.wake(&self.shared.backend);
        }
        Ok(forgotten)
    }

    /// Makes a change: all of it or, on any error, nothing. The closure runs again when another
    /// writer came first.
    ///
    /// # Errors
    /// Those of the closure; `ReadOnly`, `Conflict` after 64 tries, `Closed`, `Io`.
    ///
    /// # Durability
    /// As the store was opened. Concurrent durable writes share one sync.
    ///
    /// A write inside the closure of another one on the same thread waits for itself: do not nest.
    ///
    /// Where trees are kept apart, all paths of one write lead into one tree; another one is
    /// `Unsupported`.
    pub fn write<T>(
        &self,
        edit: impl FnMut(&mut Transaction<'_>) -> Result<T>,
    ) -> Result<Committed<T>> {
        self.write_with(self.shared.durability, edit)
    }

    /// As [`Store::write`], with a durability of its own.
    ///
    /// # Errors
    /// As [`Store::write`].
    pub fn write_with<T>(
        &self,
        durability: Durability,
        mut edit: impl FnMut(&mut Transaction<'_>) -> Result<T>,
    ) -> Result<Committed<T>> {
        try_again(|conflicts| match self.forest() {
            None => self.shared.try_write(self.seat(), durability, conflicts, &mut edit),
            Some(forest) => forest.try_write(durability, conflicts, &mut edit),
        })
    }

    /// As [`Store::write`], of what something does not keep from being made.
    pub(crate) fn write_passing<T>(
        &self,
        passes: Passes,
        mut edit: impl FnMut(&mut Transaction<'_>) -> Result<T>,
    ) -> Result<Committed<T>> {
        try_again(|conflicts| {
            self.shared.try_passing(passes, self.shared.durability, conflicts, &mut edit)
        })
    }

    /// Who makes the commits of this handle.
    pub(crate) fn author(&self) -> &str {
        &self.shared.note.author
    }

    /// Why it makes them.
    pub(crate) fn message(&self) -> &str {
        &self.shared.note.message
    }

    pub(crate) fn locks_and_owners(&self) -> &Locks {
        &self.shared.locks
    }

    pub(crate) fn owners(&self) -> &Owners {
        &self.shared.locks.owners
    }

    /// Tells whether an edit would be allowed: what it refuses itself, and what schemas do. Nothing is
    /// changed, and subscribers are not asked.
    ///
    /// # Errors
    /// As [`Store::write`], but for those of subscribers.
    ///
    /// # Complexity
    /// That of the change.
    pub fn validate(&self, mut edit: impl FnMut(&mut Transaction<'_>) -> Result<()>) -> Result<()> {
        if self.forest().is_some() {
            return Err(crate::forest::refusal());
        }
        try_again(|conflicts| self.shared.try_validate(self.seat(), conflicts, &mut edit))
    }

    /// The newest state, several times: what others commit while they are taken is undone in those behind the first.
    ///
    /// # Errors
    /// `Conflict` when others forget commits as fast as they make them; as [`Store::read`].
    pub(crate) fn same_states<const N: usize>(&self) -> Result<[Box<dyn backend::Snapshot>; N]> {
        try_again(|_| {
            let mut states: Vec<Box<dyn backend::Snapshot>> = Vec::with_capacity(N);
            let mut first = None;
            for _ in 0..N {
                let state = self.shared.backend.snapshot()?;
                let revision = state.revision()?;
                let first = *first.get_or_insert(revision);
                states.push(match revision == first {
                    true => state,
                    false => match history::at(state, first) {
                        Ok(older) => Box::new(older),
                        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
                        Err(error) => return Err(error),
                    },
                });
            }
            Ok(states.try_into().ok())
        })
    }

    /// A handle that does not keep the store open.
    pub(crate) fn downgrade(&self) -> WeakStore {
        WeakStore(Arc::downgrade(&self.shared))
    }

    pub(crate) fn providers(&self) -> &Providers {
        &self.shared.providers
    }

    pub(crate) fn subscribers(&self) -> &Subscribers {
        &self.shared.subscribers
    }

    /// What the store and its snapshots stand on.
    #[cfg(feature = "lmdb")]
    pub(crate) fn foundation(&self) -> (Arc<dyn Backend>, Arc<Origin>) {
        (Arc::clone(&self.shared.backend), Arc::clone(&self.shared.origin))
    }

    /// What the paths of this store begin below.
    pub(crate) fn base_path(&self) -> &str {
        &self.shared.origin.base_path
    }

    /// Returns when everything committed so far survives a power failure.
    ///
    /// # Errors
    /// Those of the backend; after a failed sync it refuses writes until it is opened again.
    pub fn sync(&self) -> Result<()> {
        if let Some(synced) = self.over_all(|tree| tree.sync().map(|()| 0)) {
            return synced.map(drop);
        }
        let revision = self.shared.backend.snapshot()?.revision()?;
        self.shared.backend.sync(revision)
    }

    /// Returns the newest revision as soon as it is above `after`, or when the time is up.
    ///
    /// # Errors
    /// Those of the backend.
    pub fn wait(&self, after: Revision, timeout: Duration) -> Result<Revision> {
        self.shared.backend.wait(after, timeout)
    }

    /// Reclaims everything that was removed until now; returns how many records it deleted.
    ///
    /// It also runs by itself, in the background, after each write that removed something.
    ///
    /// # Errors
    /// `Denied` to who does not administer everything; those of the backend.
    pub fn reclaim(&self) -> Result<u64> {
        self.require("", Right::Admin)?;
        if let Some(deleted) = self.over_all(Store::reclaim) {
            return deleted;
        }
        // A write begins by queueing what a writer that died while it built has left.
        self.unrestricted().write_with(Durability::None, |_| Ok(()))?;
        let state = self.shared.backend.snapshot()?;
        let trees = spinney_core::check::trees(&*state)?;
        let end = state.revision()?.saturating_add(1);
        drop(state);
        let mut deleted = 0;
        loop {
            match reclaim::step_before(&*self.shared.backend, &trees, end)? {
                0 => return Ok(deleted),
                records => deleted += records as u64,
            }
        }
    }

    /// Waits until the background has reclaimed what this handle's writes removed.
    pub fn wait_until_reclaimed(&self) {
        if let Some(forest) = self.forest() {
            forest.wait_until_reclaimed();
        }
        self.shared.janitor.wait_until_idle();
    }

    /// What the backend can do.
    pub fn capabilities(&self) -> &Capabilities {
        self.shared.backend.capabilities()
    }

    /// Whether it has several trees that change together.
    pub(crate) fn has_several_trees(&self) -> bool {
        self.base_path().is_empty() && self.capabilities().multi_tree_commit
    }

    /// Facts about the store, as pairs of name and value; none for whom may not read everything, as they
    /// tell how much that is.
    ///
    /// # Errors
    /// Those of the backend.
    pub fn stats(&self) -> Result<Vec<(String, String)>> {
        match self.permits("", Right::Read)? {
            true => self.shared.backend.stats(),
            false => Ok(Vec::new()),
        }
    }

    /// Folds what the journal holds into the store behind it, as it also happens by itself.
    ///
    /// # Errors
    /// Those of the backend.
    pub fn checkpoint(&self) -> Result<()> {
        self.shared.backend.checkpoint()
    }

    /// Reclaims everything and gives space back to the operating system where the engine can;
    /// returns the bytes given back.
    ///
    /// # Errors
    /// As [`Store::reclaim`].
    pub fn compact(&self) -> Result<u64> {
        if let Some(freed) = self.over_all(Store::compact) {
            return freed;
        }
        self.reclaim()?;
        self.checkpoint()?;
        self.shared.backend.compact()
    }

    /// Writes a consistent copy of the live store to `target`, which must not exist.
    ///
    /// # Errors
    /// `AlreadyExists`, `Unsupported`, `Io`; `Denied` to who does not administer everything.
    pub fn backup(&self, target: &Path) -> Result<()> {
        self.require("", Right::Admin)?;
        self.shared.backend.backup(target)
    }
}

/// Milliseconds since 1970.
pub(crate) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
