//! A backend in one sorted map, complete: `cargo run --example own_backend` runs the suite on it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use spinney_core::backend::*;
use spinney_core::{Result, layout};

type Map = BTreeMap<Vec<u8>, Arc<[u8]>>;

/// The newest state; snapshots share it, and whoever changes it while they do changes a copy.
pub struct SortedMap {
    capabilities: Capabilities,
    writer: Mutex<()>,
    newest: Mutex<State>,
    committed: Condvar,
}

#[derive(Clone, Default)]
struct State(Arc<Map>);

impl Snapshot for State {
    fn revision(&self) -> Result<Revision> {
        layout::head_revision(self.get(&layout::head_key(0))?.as_deref())
    }

    fn get(&self, key: &[u8]) -> Result<Option<Cow<'_, [u8]>>> {
        Ok(self.0.get(key).map(|value| Cow::Borrowed(&**value)))
    }

    fn range<'s>(&'s self, bounds: Bounds<'_>, direction: Direction) -> Result<Records<'s>> {
        if is_empty_range(bounds) {
            return Ok(Box::new(std::iter::empty()));
        }
        let range = self.0.range::<[u8], _>(bounds);
        let range = range.map(|(key, value)| Ok((Cow::from(&key[..]), Cow::from(&value[..]))));
        Ok(match direction {
            Direction::Forward => Box::new(range),
            Direction::Backward => Box::new(range.rev()),
        })
    }
}

impl Backend for SortedMap {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn snapshot(&self) -> Result<Box<dyn Snapshot>> {
        Ok(Box::new(self.newest.lock().unwrap().clone()))
    }

    fn write_guard(&self, _conflicts: u32) -> Result<Box<dyn WriteGuard + '_>> {
        Ok(Box::new(self.writer.lock().unwrap_or_else(|poisoned| poisoned.into_inner())))
    }

    fn commit(&self, batch: Batch) -> Result<Outcome> {
        batch.check_limits(&self.capabilities)?;
        let mut newest = self.newest.lock().unwrap();
        if !batch.applies_to(&*newest)? {
            return Ok(Outcome::Conflict);
        }
        let map = Arc::make_mut(&mut newest.0);
        for change in batch.changes {
            match change {
                Change::Put(key, value) => drop(map.insert(key.to_vec(), value)),
                Change::Delete(key) => drop(map.remove(&*key)),
                Change::DeleteRange(from, to) => {
                    map.retain(|key, _| **key < *from || *to <= **key);
                }
            }
        }
        self.committed.notify_all();
        Ok(Outcome::Committed(newest.revision()?))
    }

    fn sync(&self, _revision: Revision) -> Result<()> {
        Ok(()) // It promises to survive nothing, and says so: `persistent` is false.
    }

    fn wait(&self, after: Revision, timeout: Duration) -> Result<Revision> {
        let is_old = |newest: &mut State| newest.revision().is_ok_and(|now| now <= after);
        let newest = self.newest.lock().unwrap();
        self.committed.wait_timeout_while(newest, timeout, is_old).unwrap().0.revision()
    }
}

impl Default for SortedMap {
    fn default() -> SortedMap {
        let capabilities = Capabilities {
            persistent: false,
            multi_process: false,
            versions: true,
            multi_tree_commit: true,
            page_size: 4_080,
            key_len_max: 511,
            commit_len_max: 1 << 30,
            push_wait: true,
            keeps_diffs: false,
        };
        let (writer, newest, committed) = Default::default();
        SortedMap { capabilities, writer, newest, committed }
    }
}

fn main() {
    spinney_conformance::suite(&|| Arc::new(SortedMap::default()));
}
