//! Stores on a Redis or Valkey server.
//!
//! It keeps the records of a store under a few keys of the server and changes them by scripts, each of
//! them one round trip and atomic. It must not know paths, pages or values. What each key holds is in
//! `docs/format.md`, why in [decision 19](../../../../../docs/decisions/0019-redis.md).

mod address;
mod cluster;
mod failure;
mod link;
mod news;
mod reply;
mod scripts;
mod servers;
mod settings;

use std::ops::Bound;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use spinney_core::backend::{Batch, Bounds, Capabilities, Change, Direction, RecordKey};
use spinney_core::{Error, ErrorKind, Result, layout};

use crate::backends::no_store;
pub use crate::network::ServerOptions as Options;
use crate::network::server::{
    Answer, Failure, Floor, LeaseId, Limit, Newest, Reply, Server, State, Stretch, Until, View,
};
use address::Address;
pub use cluster::Cluster;
use link::{Links, fact};
use news::News;
use reply::Told;
use servers::Servers;
use settings::Settings;

/// The version of the layout on the server.
const FORMAT: &str = "1";

/// The oldest server whose scripts can say what they do.
const VERSION_MIN: u32 = 7;

/// Bytes of the state that made a record, before its value.
const STAMP_LEN: usize = 8;

/// What a store on a server can do.
const CAPABILITIES: Capabilities = Capabilities {
    persistent: true,
    multi_process: true,
    versions: false,
    multi_tree_commit: true,
    // With its stamp and the header of a string it fills a size that the server's allocator has.
    page_size: 16_352,
    key_len_max: 511,
    // A script stops the whole server; this many bytes take a fraction of a second.
    commit_len_max: 32 << 20,
    push_wait: true,
    keeps_diffs: false,
};

/// A store on a Redis or Valkey server, or a tree of one on a cluster.
pub struct Redis {
    links: Arc<Links>,
    news: Arc<News>,
    settings: Mutex<Settings>,
    /// Names the store; another one where it was deleted and made again.
    id: String,
    /// Names this client to the lock of writers.
    client: String,
    lease_ms: String,
}

impl Redis {
    /// Opens the store that a `redis:`, `rediss:` or `redis+unix:` URL names, making it where it does
    /// not exist and may be made.
    ///
    /// # Errors
    /// `InvalidInput` for a malformed URL and for keys of the store's name that are none of its own,
    /// `NotFound` where there is no store and none may be made, `Denied` for a wrong password,
    /// `Unsupported` for a newer format, an older server than 7.0, one that throws away data, and one on which
    /// a store that is to be durable would have to be made and cannot be, `ReadOnly` on a replica, `Io` and
    /// `Busy` where the server cannot be reached.
    pub fn open(url: &str, options: Options) -> Result<Redis> {
        let address = Address::parse(url)?;
        if address.is_cluster {
            return Err(Error::invalid_input(format!(
                "{address}: a store on a cluster is no single server; open it as a store"
            )));
        }
        let servers = Arc::new(Servers::new(&address, options.network.timeout)?);
        Redis::connect(Arc::new(Links::new(address, servers)), options).map_err(into_error)
    }

    fn connect(links: Arc<Links>, options: Options) -> Reply<Redis> {
        let settings = Self::check_server(&links, &options)?;
        let new_id = format!("{:016x}", fastrand::u64(..));
        let may_make = options.may_make(|| durable(&links, &settings));
        let mut told = links.open_store(FORMAT, &new_id, matches!(may_make, Ok(true)))?;
        if told.status() == b"absent" {
            may_make?;
        }
        let id = Self::id_told(&links, &mut told)?;
        Ok(Redis {
            links,
            news: Arc::new(News::new()),
            settings: Mutex::new(settings),
            id,
            client: format!("{:016x}", fastrand::u64(..)),
            lease_ms: options.network.lease.as_millis().to_string(),
        })
    }

    fn check_server(links: &Links, options: &Options) -> Reply<Settings> {
        let text = |told: redis::Value| redis::from_redis_value::<String>(told).unwrap_or_default();
        let facts = text(links.command(&["INFO", "server"])?);
        let version = fact(&facts, "redis_version").unwrap_or_default();
        let major = version.split('.').next().and_then(|major| major.parse().ok());
        if major.is_none_or(|major: u32| major < VERSION_MIN) {
            return Err(Failure::Refused(Error::unsupported(format!(
                "{}: the server is of version `{version}`; {VERSION_MIN}.0 or newer is needed",
                links.address
            ))));
        }
        if !options.read_only {
            settings::check_eviction(links, &text(links.command(&["INFO", "memory"])?))?;
        }
        Settings::read(links)
    }

    fn id_told(links: &Links, told: &mut Told) -> Result<String> {
        let address = &links.address;
        if told.status() == b"absent" {
            return Err(no_store(address));
        }
        let word = String::from_utf8_lossy(&told.bytes()?.unwrap_or_default()).into_owned();
        match told.status() {
            b"ok" => Ok(word),
            b"foreign" => Err(Error::invalid_input(format!(
                "{address}: the key `{word}` holds something else than a store; nothing was changed; give the store \
                 another name, as in `?store=NAME`"
            ))),
            b"format" => Err(Error::unsupported(format!(
                "{address}: the store has the format `{word}`, this build knows `{FORMAT}`; use a newer spinney"
            ))),
            _ => Err(told.unexpected()),
        }
    }

    fn call(&self, script: &scripts::Script, args: &[&[u8]]) -> Reply<Told> {
        self.links.call(&self.id, script, args, None)
    }

    fn settings(&self) -> Reply<Settings> {
        let mut settings = self.settings.lock().unwrap_or_else(PoisonError::into_inner);
        if !settings.is_fresh(&self.links) {
            match Settings::read(&self.links) {
                Ok(read) => *settings = read,
                // A server that is just not there answers no commit either.
                Err(Failure::Lost(_) | Failure::Undone(_)) => {}
                Err(failure) => return Err(failure),
            }
        }
        Ok(settings.clone())
    }

    /// The records of a range, and the key that follows `behind`.
    fn read(
        &self,
        view: View,
        bounds: (Vec<u8>, Vec<u8>),
        direction: Direction,
        limit: Limit,
        behind: &[u8],
    ) -> Reply<(Stretch, Option<RecordKey>)> {
        let state = view.state.to_string();
        let lease = view.lease.map(|lease| lease.to_string()).unwrap_or_default();
        let (records_max, bytes_max) = (limit.records.to_string(), limit.bytes.to_string());
        let (command, mut from, to) = match direction {
            Direction::Forward => ("ZRANGEBYLEX", bounds.0, bounds.1),
            Direction::Backward => ("ZREVRANGEBYLEX", bounds.1, bounds.0),
        };
        let mut behind = behind;
        let mut next = None;
        loop {
            let args = |time| -> [&[u8]; 9] {
                let (state, lease) = (state.as_bytes(), lease.as_bytes());
                let (records, bytes) = (records_max.as_bytes(), bytes_max.as_bytes());
                [state, lease, time, command.as_bytes(), &from, &to, records, bytes, behind]
            };
            let (renewing, as_it_is) = (args(self.lease_ms.as_bytes()), args(&[]));
            let instead = Some((&*scripts::RANGE_WITHOUT_LEASE, &as_it_is[..]));
            let mut told = self.links.call(&self.id, &scripts::RANGE, &renewing, instead)?;
            match told.status() {
                b"ok" => {}
                b"expired" => return Err(Failure::Expired),
                b"damaged" => {
                    let address = &self.links.address;
                    return Err(Failure::Refused(Error::corrupted(format!(
                        "{address}: what a record was in state {state} is missing, though it was leased"
                    ))));
                }
                _ => return Err(told.unexpected().into()),
            }
            let ended = told.bytes()?.unwrap_or_default();
            let follows = told.bytes()?;
            if !behind.is_empty() {
                next = follows.map(|key| RecordKey::from(&key[..]));
            }
            let mut records = Vec::with_capacity(told.len() / 2);
            while told.len() > 0 {
                let (Some(key), Some(value)) = (told.bytes()?, told.bytes()?) else {
                    return Err(told.unexpected().into());
                };
                let Some((_, value)) = value.split_at_checked(STAMP_LEN) else {
                    return Err(told.unexpected().into());
                };
                records.push((RecordKey::from(&key[..]), Arc::from(value)));
            }
            match &ended[..] {
                b"end" => return Ok((Stretch { records, more: false }, next)),
                b"more" => return Ok((Stretch { records, more: true }, next)),
                _ if !records.is_empty() => return Ok((Stretch { records, more: true }, next)),
                _ => from = ended,
            }
            behind = &[];
        }
    }
}

impl Server for Redis {
    fn capabilities(&self) -> &Capabilities {
        &CAPABILITIES
    }

    fn store_id(&self) -> String {
        self.id.clone()
    }

    fn newest(&self, known: State, lease: Option<LeaseId>, released: &[LeaseId]) -> Reply<Newest> {
        let head = layout::head_key(0);
        let known = known.to_string();
        let lease = lease.map(|lease| lease.to_string()).unwrap_or_default();
        let released: Vec<String> = released.iter().map(LeaseId::to_string).collect();
        let without: [&[u8]; 4] = [&head, known.as_bytes(), &[], &[]];
        let mut args: Vec<&[u8]> =
            vec![&head, known.as_bytes(), lease.as_bytes(), self.lease_ms.as_bytes()];
        args.extend(released.iter().map(String::as_bytes));
        let instead = Some((&*scripts::NEWEST_WITHOUT_LEASE, &without[..]));
        let mut told = self.links.call(&self.id, &scripts::NEWEST, &args, instead)?;
        if told.status() != b"ok" {
            return Err(told.unexpected().into());
        }
        let state = told.number()?;
        let head = match told.bytes()? {
            Some(value) if value.len() >= STAMP_LEN => Some(Arc::from(&value[STAMP_LEN..])),
            Some(_) => return Err(told.unexpected().into()),
            None => None,
        };
        let is_known = told.bytes()?.is_some_and(|word| word == b"some");
        let mut changed = Vec::new();
        while is_known && told.len() > 0 {
            let names = told.bytes()?.unwrap_or_default();
            let mut rest = &names[..];
            while let Some((len, behind)) = rest.split_first_chunk() {
                let len = usize::from(u16::from_be_bytes(*len));
                let (key, behind) =
                    behind.split_at_checked(len).ok_or_else(|| told.unexpected())?;
                changed.push(RecordKey::from(key));
                rest = behind;
            }
        }
        Ok(Newest { state, head, changed: is_known.then_some(changed) })
    }

    fn floor(&self, view: View, lower: &[u8], key: &[u8]) -> Reply<Floor> {
        let behind = after(key);
        let bounds = (at(lower), at(key));
        let limit = Limit { records: 1, bytes: 1 };
        let (stretch, next) = self.read(view, bounds, Direction::Backward, limit, &behind)?;
        let until = next.map_or(Until::End, Until::Key);
        Ok(Floor { record: stretch.records.into_iter().next(), until })
    }

    fn range(
        &self,
        view: View,
        bounds: Bounds<'_>,
        direction: Direction,
        limit: Limit,
    ) -> Reply<Stretch> {
        let bound = |bound: Bound<&[u8]>, unbounded: &[u8]| match bound {
            Bound::Included(key) => at(key),
            Bound::Excluded(key) => after(key),
            Bound::Unbounded => unbounded.to_vec(),
        };
        let bounds = (bound(bounds.0, b"-"), bound(bounds.1, b"+"));
        Ok(self.read(view, bounds, direction, limit, &[])?.0)
    }

    fn commit(&self, base: Option<State>, batch: &Batch, released: &[LeaseId]) -> Reply<Answer> {
        batch.check_limits(&CAPABILITIES)?;
        let commit_id = batch.commit_id.to_be_bytes();
        let base = base.map(|base| base.to_string()).unwrap_or_default();
        let channel = self.links.channel();
        let released: Vec<String> = released.iter().map(LeaseId::to_string).collect();
        let released_len = released.len().to_string();
        let mut args: Vec<&[u8]> = Vec::with_capacity(5 + released.len() + 3 * batch.changes.len());
        args.extend([self.client.as_bytes(), &commit_id, base.as_bytes(), channel.as_bytes()]);
        args.push(released_len.as_bytes());
        args.extend(released.iter().map(String::as_bytes));
        for change in &batch.changes {
            match change {
                Change::Put(key, value) => args.extend([b"put", &**key, &**value]),
                Change::Delete(key) => args.extend([&b"delete"[..], &**key]),
                Change::DeleteRange(from, to) => args.extend([&b"range"[..], &**from, &**to]),
            }
        }
        let script =
            if makes_room(batch) { &scripts::COMMIT_MAKING_ROOM } else { &scripts::COMMIT };
        let mut told = self.call(script, &args)?;
        match told.status() {
            b"committed" => Ok(Answer::Committed(told.number()?)),
            b"moved" => Ok(Answer::Moved),
            b"locked" => Ok(Answer::Locked),
            _ => Err(told.unexpected().into()),
        }
    }

    fn lock(&self, duration: Duration) -> Reply<bool> {
        let duration = duration.as_millis().max(1).to_string();
        let told = self.call(&scripts::LOCK, &[self.client.as_bytes(), duration.as_bytes()])?;
        match told.status() {
            b"ok" => Ok(true),
            b"held" => Ok(false),
            _ => Err(told.unexpected().into()),
        }
    }

    fn unlock(&self) -> Reply<()> {
        self.call(&scripts::LOCK, &[self.client.as_bytes(), b"0"]).map(drop)
    }

    fn release(&self, leases: &[LeaseId]) -> Reply<()> {
        // A server that was lost is not waited for.
        match self.links.is_connected() {
            true => self.newest(0, None, leases).map(drop),
            false => Ok(()),
        }
    }

    fn durable(&self) -> Result<()> {
        self.settings().and_then(|settings| durable(&self.links, &settings)).map_err(into_error)
    }

    fn await_newer(&self, known: State, timeout: Duration) -> Reply<()> {
        self.news.wait(&self.links, known, timeout);
        Ok(())
    }

    fn len_bytes(&self) -> Reply<Option<u64>> {
        let mut len = 0;
        for key in self.links.keys() {
            let words = ["MEMORY", "USAGE", key, "SAMPLES", "100"];
            let Ok(told) = self.links.try_command(&words)? else { return Ok(None) };
            len += redis::from_redis_value::<Option<u64>>(told).ok().flatten().unwrap_or(0);
        }
        Ok(Some(len))
    }

    fn stats(&self) -> Reply<Vec<(String, String)>> {
        let told = self.links.command(&["INFO", "server"])?;
        let facts: String = redis::from_redis_value(told).unwrap_or_default();
        let version = match fact(&facts, "valkey_version") {
            Some(version) => format!("Valkey {version}"),
            None => format!("Redis {}", fact(&facts, "redis_version").unwrap_or_default()),
        };
        let count = |command: &str, part: usize| -> Reply<String> {
            let told = self.links.command(&[command, &self.links.keys()[part]])?;
            Ok(redis::from_redis_value::<u64>(told).unwrap_or(0).to_string())
        };
        let survives = self.settings()?.survives();
        let facts = [
            ("backend", "redis".to_owned()),
            ("server", version),
            ("address", self.links.address.to_string()),
            ("a commit survives", survives),
            ("records", count("HLEN", 2)?),
            ("records kept for older states", count("HLEN", 3)?),
            ("leases", count("ZCARD", 5)?),
        ];
        Ok(facts.map(|(name, value)| (name.to_owned(), value)).into())
    }
}

/// Whether commits to a server of these settings survive a power failure.
fn durable(links: &Links, settings: &Settings) -> Reply<()> {
    Ok(settings.durable().map_err(|error| error.at(&links.address))?)
}

/// Whether a server takes a batch even when its memory is full: maintenance that puts no more than what it deletes may
/// hold, and about a page.
fn makes_room(batch: &Batch) -> bool {
    let (mut put_len, mut deleted) = (0, 1);
    for change in &batch.changes {
        match change {
            Change::Put(key, value) => put_len += key.len() + value.len(),
            Change::Delete(_) | Change::DeleteRange(..) => deleted += 1,
        }
    }
    batch.is_maintenance() && put_len <= deleted * CAPABILITIES.page_size
}

/// A bound that includes a key, as `ZRANGEBYLEX` has it.
fn at(key: &[u8]) -> Vec<u8> {
    [b"[", key].concat()
}

/// A bound that excludes a key.
fn after(key: &[u8]) -> Vec<u8> {
    [b"(", key].concat()
}

/// What whoever opens a store is told; nothing is tried again there.
fn into_error(failure: Failure) -> Error {
    match failure {
        Failure::Lost(error) | Failure::Undone(error) | Failure::Refused(error) => error,
        Failure::Expired => Error::new(ErrorKind::Closed, "a lease has ended"),
    }
}
