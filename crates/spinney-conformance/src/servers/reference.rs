//! A server in this process: what every adapter of a real one must be like.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use imbl::OrdMap;
use spinney::network::server::{
    Answer, Failure, Floor, LeaseId, Limit, Newest, Reply, Server, State, Stretch, Until, View,
};
use spinney_core::Result;
use spinney_core::backend::{
    Batch, Bounds, Capabilities, Change, Direction, RecordKey, is_empty_range,
};
use spinney_core::layout::head_key;

type Records = OrdMap<RecordKey, Arc<[u8]>>;

/// A client of a server in this process.
pub struct Reference {
    kept: Arc<Kept>,
    client: u64,
    capabilities: Capabilities,
    requests: AtomicU64,
}

#[derive(Default)]
struct Kept {
    store: Mutex<Store>,
    committed: Condvar,
}

#[derive(Default)]
struct Store {
    newest: State,
    /// The newest state, and those that a lease needs.
    states: BTreeMap<State, Records>,
    changed: BTreeMap<State, BTreeSet<RecordKey>>,
    commits: HashMap<u128, State>,
    leases: HashMap<LeaseId, State>,
    lock: Option<(u64, Instant)>,
    clients: u64,
}

impl Reference {
    /// The first client of an empty store.
    pub fn new() -> Reference {
        Reference::of(Arc::default())
    }

    /// Another client of the same store.
    pub fn another(&self) -> Reference {
        Reference::of(Arc::clone(&self.kept))
    }

    fn of(kept: Arc<Kept>) -> Reference {
        let capabilities = Capabilities {
            persistent: false,
            multi_process: false,
            versions: false,
            multi_tree_commit: true,
            page_size: 4_080,
            key_len_max: 511,
            commit_len_max: 1 << 30,
            push_wait: true,
            keeps_diffs: false,
        };
        let client = {
            let mut store = kept.store.lock().unwrap_or_else(PoisonError::into_inner);
            store.clients += 1;
            store.clients
        };
        Reference { kept, client, capabilities, requests: AtomicU64::new(0) }
    }

    fn store(&self) -> MutexGuard<'_, Store> {
        self.kept.store.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn asked(&self) -> MutexGuard<'_, Store> {
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.store()
    }

    /// Ends all leases, as time does.
    pub fn end_leases(&self) {
        let mut store = self.store();
        store.leases.clear();
        store.trim();
    }

    /// How many requests this client made.
    pub fn requests_len(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// How many states are kept.
    pub fn states_len(&self) -> usize {
        self.store().states.len()
    }
}

impl Default for Reference {
    fn default() -> Reference {
        Reference::new()
    }
}

impl Store {
    fn records(&self) -> Records {
        self.states.get(&self.newest).cloned().unwrap_or_default()
    }

    fn view(&self, view: View) -> Reply<Records> {
        if let Some(lease) = view.lease
            && self.leases.get(&lease) != Some(&view.state)
        {
            return Err(Failure::Expired);
        }
        match self.states.get(&view.state) {
            Some(records) => Ok(records.clone()),
            None if view.state == 0 && self.newest == 0 => Ok(Records::default()),
            None => Err(Failure::Expired),
        }
    }

    fn trim(&mut self) {
        let needed: BTreeSet<State> = self.leases.values().copied().chain([self.newest]).collect();
        self.states.retain(|state, _| needed.contains(state));
    }

    fn apply(&mut self, changes: &[Change]) {
        let mut records = self.records();
        let mut changed = BTreeSet::new();
        for change in changes {
            match change {
                Change::Put(key, value) => {
                    records.insert(key.clone(), Arc::clone(value));
                    changed.insert(key.clone());
                }
                Change::Delete(key) => {
                    records.remove(key);
                    changed.insert(key.clone());
                }
                Change::DeleteRange(from, to) => {
                    let doomed: Vec<RecordKey> = records
                        .range::<_, [u8]>((Bound::Included(&**from), Bound::Excluded(&**to)))
                        .map(|(key, _)| key.clone())
                        .collect();
                    for key in doomed {
                        records.remove(&key);
                        changed.insert(key);
                    }
                }
            }
        }
        self.newest += 1;
        self.states.insert(self.newest, records);
        self.changed.insert(self.newest, changed);
        self.trim();
    }
}

impl Server for Reference {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn store_id(&self) -> String {
        "reference".into()
    }

    fn newest(&self, known: State, lease: Option<LeaseId>, released: &[LeaseId]) -> Reply<Newest> {
        let mut store = self.asked();
        for lease in released {
            store.leases.remove(lease);
        }
        let state = store.newest;
        store.states.entry(state).or_default();
        if let Some(lease) = lease {
            store.leases.insert(lease, state);
        }
        store.trim();
        let changes = store.changed.range(known + 1..).flat_map(|(_, keys)| keys.iter().cloned());
        let changed: BTreeSet<RecordKey> = changes.collect();
        let head = store.records().get(head_key(0).as_slice()).cloned();
        Ok(Newest { state, head, changed: Some(changed.into_iter().collect()) })
    }

    fn floor(&self, view: View, lower: &[u8], key: &[u8]) -> Reply<Floor> {
        let records = self.asked().view(view)?;
        let found = records
            .range::<_, [u8]>((Bound::Included(lower), Bound::Included(key)))
            .next_back()
            .map(|(key, value)| (key.clone(), Arc::clone(value)));
        let behind = records.range::<_, [u8]>((Bound::Excluded(key), Bound::Unbounded)).next();
        let until = behind.map_or(Until::End, |(key, _)| Until::Key(key.clone()));
        Ok(Floor { record: found, until })
    }

    fn range(
        &self,
        view: View,
        bounds: Bounds<'_>,
        direction: Direction,
        limit: Limit,
    ) -> Reply<Stretch> {
        let records = self.asked().view(view)?;
        let mut stretch = Stretch::default();
        if is_empty_range(bounds) {
            return Ok(stretch);
        }
        let mut range = records.range::<_, [u8]>(bounds);
        let mut bytes = 0;
        while let Some((key, value)) = match direction {
            Direction::Forward => range.next(),
            Direction::Backward => range.next_back(),
        } {
            if stretch.records.len() == limit.records || bytes >= limit.bytes {
                stretch.more = true;
                break;
            }
            bytes += key.len() + value.len();
            stretch.records.push((key.clone(), Arc::clone(value)));
        }
        Ok(stretch)
    }

    fn commit(&self, base: Option<State>, batch: &Batch, released: &[LeaseId]) -> Reply<Answer> {
        let mut store = self.asked();
        store.leases.retain(|lease, _| !released.contains(lease));
        if let Some(&state) = store.commits.get(&batch.commit_id) {
            return Ok(Answer::Committed(state));
        }
        if let Some(base) = base {
            let is_locked =
                |&(client, until): &(u64, Instant)| client != self.client && until > Instant::now();
            if store.lock.as_ref().is_some_and(is_locked) {
                return Ok(Answer::Locked);
            }
            if base != store.newest {
                return Ok(Answer::Moved);
            }
        }
        store.apply(&batch.changes);
        let state = store.newest;
        store.commits.insert(batch.commit_id, state);
        self.kept.committed.notify_all();
        Ok(Answer::Committed(state))
    }

    fn lock(&self, duration: Duration) -> Reply<bool> {
        let mut store = self.asked();
        let now = Instant::now();
        let is_held =
            store.lock.is_some_and(|(client, until)| client != self.client && until > now);
        if !is_held {
            store.lock = Some((self.client, now + duration));
        }
        Ok(!is_held)
    }

    fn unlock(&self) -> Reply<()> {
        let mut store = self.asked();
        if store.lock.is_some_and(|(client, _)| client == self.client) {
            store.lock = None;
        }
        Ok(())
    }

    fn durable(&self) -> Result<()> {
        Ok(())
    }

    fn await_newer(&self, known: State, timeout: Duration) -> Reply<()> {
        let is_old = |store: &mut Store| store.newest <= known;
        drop(self.kept.committed.wait_timeout_while(self.asked(), timeout, is_old));
        Ok(())
    }

    fn len_bytes(&self) -> Reply<Option<u64>> {
        let len = |(key, value): (&RecordKey, &Arc<[u8]>)| (key.len() + value.len()) as u64;
        Ok(Some(self.asked().records().iter().map(len).sum()))
    }

    fn stats(&self) -> Reply<Vec<(String, String)>> {
        Ok(vec![("states".into(), self.states_len().to_string())])
    }
}
