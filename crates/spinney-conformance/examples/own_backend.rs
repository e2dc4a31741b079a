//! A backend in one sorted map, complete: `cargo run --example own_backend` runs the suite on it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use spinney_core::Result;
use spinney_core::backend::*;

/// A state; snapshots share it, and whoever changes it while they do changes a copy.
#[derive(Clone, Default)]
struct State(Arc<BTreeMap<Vec<u8>, Arc<[u8]>>>);

/// The newest state, and who may change it.
#[derive(Default)]
pub struct SortedMap {
    newest: Mutex<State>,
    writer: Mutex<()>,
}

impl Snapshot for State {
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
        &Capabilities::IN_MEMORY
    }

    fn snapshot(&self) -> Result<Box<dyn Snapshot>> {
        Ok(Box::new(self.newest.lock().unwrap().clone()))
    }

    fn write_guard(&self, _conflicts: u32) -> Result<Box<dyn WriteGuard + '_>> {
        Ok(Box::new(self.writer.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    fn commit(&self, batch: Batch) -> Result<Outcome> {
        batch.check_limits(self.capabilities())?;
        let mut newest = self.newest.lock().unwrap();
        if !batch.applies_to(&*newest)? {
            return Ok(Outcome::Conflict);
        }
        let map = Arc::make_mut(&mut newest.0);
        for change in batch.changes {
            match change {
                Change::Put(key, value) => drop(map.insert(key.to_vec(), value)),
                Change::Delete(key) => drop(map.remove(&*key)),
                Change::DeleteRange(from, to) => map.retain(|key, _| **key < *from || *to <= **key),
            }
        }
        Ok(Outcome::Committed(newest.revision()?))
    }
}

fn main() {
    spinney_conformance::suite(&|| Arc::new(SortedMap::default()));
}
