//! Commits: learning of new ones, making the next. Owns the rules of the chain.
//!
//! 1. The commit that makes state n + 1 is inserted under that number, so one client succeeds.
//! 2. It is inserted only when all versions that state n made are in `pages`. So only the newest
//!    commit can be pending, and its document carries everything it changed: readers lay it over.
//! 3. Who inserts has seen that state n is the newest within [`FRESH`], and numbers are not free again
//!    for an hour (see `trim`), so a number that is taken is never inserted anew.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use mongodb::bson::{RawDocumentBuf, doc};
use spinney_core::backend::{Batch, Change, Direction, RecordKey};
use spinney_core::layout::head_key;

use super::commit::{Commit, Fields, Lock, encode_version};
use super::failure::{are_duplicates, failure, is_duplicate};
use super::known::{Moment, RECENT_MAX};
use super::shared::Shared;
use crate::network::server::{Answer, Failure, LeaseId, Limit, Newest, Reply, State};

/// How long what was the newest state is taken for it without asking.
const FRESH: Duration = Duration::from_secs(30);

/// Times that a commit without a base is tried anew when others come first.
const TRIES_MAX: u32 = 256;

/// How much of a range that is deleted is looked at in one go.
const DELETED: Limit = Limit { records: 1_024, bytes: 4 << 20 };

/// What became of an insertion.
pub enum Inserted {
    /// It is the newest commit.
    Made(Arc<Commit>),
    /// Another client made that state.
    Taken,
}

impl Shared {
    /// The newest commit on the server.
    pub async fn look(&self) -> Reply<Arc<Commit>> {
        let before = self.known().newest();
        let looked = Moment::now();
        let newer = doc! { "_id": { "$gt": before.state as i64 } };
        let found = self.ask(self.commits.find_one(newer).sort(doc! { "_id": -1 })).await?;
        let Some(document) = found else {
            self.known().confirm(before.state, looked);
            return Ok(self.known().newest());
        };
        let newest = Arc::new(Commit::decode(&document)?);
        let between = self.keys_between(before.state, newest.state).await?;
        let mut known = self.known();
        known.learn(&newest, between, looked, self.network.lease);
        Ok(known.newest())
    }

    /// The commits between two states without their values; none when they are too many.
    async fn keys_between(&self, after: State, before: State) -> Reply<Vec<Commit>> {
        if before <= after + 1 || before - after > RECENT_MAX {
            return Ok(Vec::new());
        }
        let between = doc! { "_id": { "$gt": after as i64, "$lt": before as i64 } };
        let find = self.commits.find(between).sort(doc! { "_id": 1 });
        let mut cursor = self.ask(find.projection(doc! { "values": 0 })).await?;
        let mut commits = Vec::new();
        while self.ask(cursor.advance()).await? {
            commits.push(Commit::decode(cursor.current())?);
        }
        Ok(commits)
    }

    /// See [`crate::network::server::Server::newest`].
    pub async fn newest(
        &self,
        known: State,
        lease: Option<LeaseId>,
        released: &[LeaseId],
    ) -> Reply<Newest> {
        self.release(released).await?;
        self.look().await?;
        let (newest, changed) = {
            let learnt = self.known();
            (learnt.newest(), learnt.changed_since(known))
        };
        if let Some(lease) = lease {
            self.grant(lease);
        }
        Ok(Newest { state: newest.state, head: newest.head(), changed })
    }

    /// Puts the versions that a commit made into `pages`, unless they are known to be there. Those that
    /// are there already stay as they are.
    pub async fn apply(&self, commit: &Commit) -> Reply<()> {
        let mut applied = self.applied.lock().await;
        if *applied >= commit.state {
            return Ok(());
        }
        let version = |(key, value): (&RecordKey, &Option<Arc<[u8]>>)| {
            encode_version(key, commit.state, value.as_deref())
        };
        let versions: Vec<RawDocumentBuf> = commit.changes.iter().map(version).collect();
        if !versions.is_empty() {
            let inserted = self.answer(self.pages.insert_many(versions).ordered(false)).await?;
            match inserted {
                Err(error) if !are_duplicates(&error) => {
                    return Err(failure(&self.shown, &error));
                }
                _ => {}
            }
        }
        *applied = commit.state;
        Ok(())
    }

    /// Makes a commit of a batch; see [`crate::network::server::Server::commit`].
    pub async fn commit(&self, base: Option<State>, batch: &Batch) -> Reply<Answer> {
        self.try_commit(base, batch).await.map_err(|failure| {
            let is_sent = self.known().unsure(batch.commit_id).is_some();
            if is_sent { failure } else { failure.unsent() }
        })
    }

    async fn try_commit(&self, base: Option<State>, batch: &Batch) -> Reply<Answer> {
        for _ in 0..TRIES_MAX {
            let unsure = self.known().unsure(batch.commit_id);
            let mut newest = self.fresh().await?;
            if base.is_some_and(|base| base > newest.state) {
                // Another connection of the caller's has seen more.
                newest = self.look().await?;
            }
            let made = self.known().made(batch.commit_id);
            if let Some(made) = made {
                return Ok(Answer::Committed(made));
            }
            let makes = base.map(|base| base + 1).or(unsure).unwrap_or(newest.state + 1);
            if makes != newest.state + 1 {
                // Somebody has made that state: this batch, when its answer was lost, or another.
                let is_made = self.made_by(makes).await? == Some(batch.commit_id);
                self.known().set_unsure(batch.commit_id, None);
                match (is_made, base) {
                    (true, _) => return Ok(Answer::Committed(makes)),
                    (false, Some(_)) => return Ok(Answer::Moved),
                    (false, None) => continue,
                }
            }
            if base.is_some() {
                self.give_way().await;
                if self.is_locked(&newest) {
                    // It may have been unlocked meanwhile, which moves the state.
                    let now = self.look().await?;
                    let is_same = now.state == newest.state;
                    return Ok(if is_same { Answer::Locked } else { Answer::Moved });
                }
            }
            let changes = self.resolve(newest.state, &batch.changes).await?;
            match self.insert(&newest, batch.commit_id, changes, self.carried(&newest)).await? {
                Inserted::Made(made) => return Ok(Answer::Committed(made.state)),
                Inserted::Taken => {
                    // By somebody else, or by this batch if an answer to it was lost before.
                    self.look().await?;
                    self.known().set_unsure(batch.commit_id, unsure);
                }
            }
        }
        Ok(Answer::Locked)
    }

    /// The newest commit, asked for only when it was not for a while.
    async fn fresh(&self) -> Reply<Arc<Commit>> {
        let is_fresh = self.known().age() < FRESH;
        if is_fresh { Ok(self.known().newest()) } else { self.look().await }
    }

    /// The id of the commit that made a state.
    async fn made_by(&self, state: State) -> Reply<Option<u128>> {
        let find = self.commits.find_one(doc! { "_id": state as i64 });
        let found = self.ask(find.projection(doc! { "commit": 1 })).await?;
        Ok(found.map(|document| Fields(&document).id("commit")).transpose()?)
    }

    /// Inserts the commit that follows `newest`.
    pub async fn insert(
        &self,
        newest: &Commit,
        id: u128,
        changes: BTreeMap<RecordKey, Option<Arc<[u8]>>>,
        lock: Option<Lock>,
    ) -> Reply<Inserted> {
        let at = self.now().max(newest.at);
        let low = self.known().planned_low().max(newest.low);
        let has_head = changes.contains_key(&head_key(0)[..]);
        let head = if has_head { None } else { newest.head() };
        let state = newest.state + 1;
        let commit = Arc::new(Commit { state, id, at, low, changes, head, lock });
        let document = commit.encode()?;
        self.apply(newest).await?;
        let looked = Moment::now();
        let unsure = self.known().unsure(id);
        self.known().set_unsure(id, Some(state));
        let inserted = self.answer(self.commits.insert_one(document)).await?;
        let failed = match inserted {
            Ok(_) => {
                let mut known = self.known();
                known.set_unsure(id, None);
                known.learn(&commit, [], looked, self.network.lease);
                return Ok(Inserted::Made(commit));
            }
            Err(error) if is_duplicate(&error) => return Ok(Inserted::Taken),
            Err(error) => failure(&self.shown, &error),
        };
        if let Failure::Refused(_) | Failure::Undone(_) = failed {
            self.known().set_unsure(id, unsure);
        }
        Err(failed)
    }

    /// Finds out from which state on the next commit may say that states are kept.
    pub async fn plan_low(&self) -> Reply<()> {
        let low = self.known().low(self.now(), self.network.lease);
        if low > self.known().planned_low() {
            let leased = self.oldest_leased().await?;
            self.known().plan_low(leased.map_or(low, |leased| leased.min(low)));
        }
        Ok(())
    }

    /// What a batch does to each key in the end.
    async fn resolve(
        &self,
        state: State,
        batch: &[Change],
    ) -> Reply<BTreeMap<RecordKey, Option<Arc<[u8]>>>> {
        let mut changes: BTreeMap<RecordKey, Option<Arc<[u8]>>> = BTreeMap::new();
        for change in batch {
            match change {
                Change::Put(key, value) => {
                    changes.insert(key.clone(), Some(Arc::clone(value)));
                }
                Change::Delete(key) => {
                    changes.insert(key.clone(), None);
                }
                Change::DeleteRange(from, to) => {
                    if from >= to {
                        continue;
                    }
                    let bounds = (Bound::Included(&**from), Bound::Excluded(&**to));
                    for (_, value) in changes.range_mut::<[u8], _>(bounds) {
                        *value = None;
                    }
                    let mut start: Box<[u8]> = from.clone();
                    loop {
                        let rest = (Bound::Included(&*start), Bound::Excluded(&**to));
                        // Were the state not complete any more, the insertion would find its number taken.
                        let stretch =
                            self.stretch(state, rest, Direction::Forward, DELETED).await?;
                        let Some((last, _)) = stretch.records.last() else { break };
                        start = [last, &[0][..]].concat().into();
                        changes.extend(stretch.records.into_iter().map(|(key, _)| (key, None)));
                        if !stretch.more {
                            break;
                        }
                    }
                }
            }
        }
        Ok(changes)
    }
}
