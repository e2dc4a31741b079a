//! What a client has learnt of a store's commits. Owns what is remembered and for how long; asks
//! nobody.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use spinney_core::backend::RecordKey;

use super::commit::Commit;
use crate::network::server::State;

/// Commits whose keys are remembered.
pub const RECENT_MAX: u64 = 64;

/// Keys of one commit that are remembered; of one with more, that there are too many.
const KEYS_MAX: usize = 4_096;

/// Samples of when states were made, within the time that old ones are kept.
const SAMPLES: i64 = 16;

/// A point in time that no pause of this process or machine makes younger than it is.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    instant: Instant,
    wall: SystemTime,
}

impl Moment {
    pub fn now() -> Moment {
        Moment { instant: Instant::now(), wall: SystemTime::now() }
    }

    /// The time since, by the clock that says more: one stops while a machine sleeps, the other may
    /// be set.
    pub fn age(&self) -> Duration {
        let wall = self.wall.elapsed().unwrap_or(Duration::MAX);
        self.instant.elapsed().max(wall)
    }
}

/// The keys that a commit changed; `None` when they are too many.
type Keys = Option<Arc<[RecordKey]>>;

/// A commit that others follow, or the newest.
struct Recent {
    state: State,
    id: u128,
    keys: Keys,
}

/// What a client knows of the chain of commits.
pub struct Known {
    newest: Arc<Commit>,
    looked: Moment,
    recent: VecDeque<Recent>,
    times: VecDeque<(State, i64)>,
    unsure: HashMap<u128, State>,
    planned_low: State,
    pause: Option<Instant>,
}

impl Known {
    /// Begins with the newest commit, asked for at `looked`.
    pub fn new(newest: Commit, looked: Moment) -> Known {
        let times = VecDeque::from([(newest.state, newest.at)]);
        let newest = Arc::new(newest);
        let (recent, unsure, planned_low) = (VecDeque::new(), HashMap::new(), 0);
        Known { newest, looked, recent, times, unsure, planned_low, pause: None }
    }

    /// The newest commit that this client has seen.
    pub fn newest(&self) -> Arc<Commit> {
        Arc::clone(&self.newest)
    }

    /// How long ago it was certainly the newest.
    pub fn age(&self) -> Duration {
        self.looked.age()
    }

    /// Notes that at `looked` nothing was newer than `state`.
    pub fn confirm(&mut self, state: State, looked: Moment) {
        if state == self.newest.state && looked.instant > self.looked.instant {
            self.looked = looked;
        }
    }

    /// Takes note of a newer commit, and of those between the last known and it, as far as they were
    /// asked for.
    pub fn learn(
        &mut self,
        newest: &Arc<Commit>,
        between: impl IntoIterator<Item = Commit>,
        looked: Moment,
        kept: Duration,
    ) {
        for commit in between {
            self.remember(&commit);
        }
        self.remember(newest);
        if newest.state <= self.newest.state {
            return;
        }
        self.newest = Arc::clone(newest);
        self.looked = looked;
        let apart = kept.as_millis() as i64 / SAMPLES;
        if self.times.back().is_none_or(|&(_, at)| newest.at >= at + apart) {
            self.times.push_back((newest.state, newest.at));
        }
    }

    fn remember(&mut self, commit: &Commit) {
        let last = self.recent.back().map_or(self.newest.state, |recent| recent.state);
        if commit.state <= last {
            return;
        }
        if commit.state != last + 1 {
            self.recent.clear();
        }
        let keys = (commit.changes.len() <= KEYS_MAX).then(|| commit.keys());
        self.recent.push_back(Recent { state: commit.state, id: commit.id, keys });
        if self.recent.len() as u64 > RECENT_MAX {
            self.recent.pop_front();
        }
    }

    /// The keys that were changed after `state`; `None` when that is not known.
    pub fn changed_since(&self, state: State) -> Option<Vec<RecordKey>> {
        if state == self.newest.state {
            return Some(Vec::new());
        }
        let first = self.recent.front()?.state;
        if state + 1 < first || state > self.newest.state {
            return None;
        }
        let mut changed = Vec::new();
        for commit in self.recent.iter().filter(|commit| commit.state > state) {
            changed.extend_from_slice(commit.keys.as_deref()?);
        }
        changed.sort_unstable();
        changed.dedup();
        Some(changed)
    }

    /// The oldest state that is still to be read after a commit at the time `now`: the newest one
    /// that was made `kept` ago or earlier.
    pub fn low(&mut self, now: i64, kept: Duration) -> State {
        let is_old = |at: i64| at.saturating_add(kept.as_millis() as i64) <= now;
        if is_old(self.newest.at) {
            return self.newest.state;
        }
        while self.times.get(1).is_some_and(|&(_, at)| is_old(at)) {
            self.times.pop_front();
        }
        let old = self.times.front().filter(|&&(_, at)| is_old(at));
        old.map_or(0, |&(state, _)| state).max(self.newest.low)
    }

    /// From which state on the next commit may say that states are kept.
    pub fn planned_low(&self) -> State {
        self.planned_low
    }

    /// Sets that.
    pub fn plan_low(&mut self, low: State) {
        self.planned_low = self.planned_low.max(low);
    }

    /// Notes that the next commit is to wait until then.
    pub fn pause_until(&mut self, until: Instant) {
        self.pause = Some(until);
    }

    /// Until when the next commit is to wait; the one after it need not.
    pub fn take_pause(&mut self) -> Option<Instant> {
        self.pause.take()
    }

    /// The state that a commit made, if it is one of the last.
    pub fn made(&self, id: u128) -> Option<State> {
        let made = self.recent.iter().rev().find(|commit| commit.id == id);
        made.map(|commit| commit.state)
    }

    /// The state that a commit may have made whose answer was lost.
    pub fn unsure(&self, id: u128) -> Option<State> {
        self.unsure.get(&id).copied()
    }

    /// Notes that a commit is sent to make `state`, or with `None` that its answer has come.
    pub fn set_unsure(&mut self, id: u128, state: Option<State>) {
        match state {
            Some(state) => self.unsure.insert(id, state),
            None => self.unsure.remove(&id),
        };
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    const KEPT: Duration = Duration::from_millis(1_600);

    fn commit(state: State) -> Arc<Commit> {
        let key = RecordKey::from(&state.to_be_bytes()[..]);
        let changes = BTreeMap::from([(key, None)]);
        Arc::new(Commit { state, at: state as i64 * 10, changes, ..Commit::default() })
    }

    fn learn(known: &mut Known, state: State) {
        known.learn(&commit(state), [], Moment::now(), KEPT);
    }

    #[test]
    fn changed_keys_are_known_without_a_gap_only() {
        let mut known = Known::new((*commit(3)).clone(), Moment::now());
        assert_eq!(known.changed_since(3), Some(vec![]));
        assert_eq!(known.changed_since(2), None);
        assert_eq!(known.changed_since(4), None);
        learn(&mut known, 4);
        learn(&mut known, 5);
        assert_eq!(known.changed_since(3).map(|keys| keys.len()), Some(2));
        assert_eq!(known.changed_since(4).map(|keys| keys.len()), Some(1));
        learn(&mut known, 7);
        assert_eq!(known.changed_since(5), None);
        assert_eq!(known.changed_since(6).map(|keys| keys.len()), Some(1));
        for state in 8..8 + RECENT_MAX {
            learn(&mut known, state);
        }
        assert_eq!(known.changed_since(6), None);
        assert_eq!(known.changed_since(7).map(|keys| keys.len() as u64), Some(RECENT_MAX));
    }

    #[test]
    fn states_are_kept_for_as_long_as_was_asked() {
        let mut known = Known::new((*commit(1)).clone(), Moment::now());
        for state in 2..=400 {
            learn(&mut known, state);
            let now = state as i64 * 10 + 5;
            let low = known.low(now, KEPT);
            // State n is superseded when n + 1 is made.
            assert!((low as i64) * 10 <= now - 1_600 || low == 0, "{low} at {now}");
            // And not kept for much longer.
            assert!((low as i64) * 10 + 1_600 + 200 >= now || state < 185, "{low} at {now}");
        }
        assert_eq!(known.low(400 * 10 + 1_600, KEPT), 400);
    }
}
