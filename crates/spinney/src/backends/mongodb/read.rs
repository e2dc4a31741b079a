//! Reading a state. Owns how versions become records, and when a state is too old to be read.
//!
//! A record of state n is its newest version of state n or before. Versions are never changed, so what
//! is found is right as long as none was missing: whoever deletes versions has first made a commit that
//! says from which state on all are kept. That is asked for after each read; no clock is trusted.

use std::cmp::Ordering;
use std::collections::VecDeque;
use std::ops::Bound;
use std::sync::Arc;

use mongodb::bson::{Document, RawDocument, doc};
use spinney_core::backend::{Bounds, Direction, RecordKey, is_empty_range};
use spinney_core::{Error, Result};

use super::commit::{Commit, Fields, decode_version};
use super::key;
use super::shared::Shared;
use crate::network::server::{Failure, Floor, Limit, Record, Reply, State, Stretch, Until, View};

/// Versions that a search for one record asks for first; then four times as many.
const FIRST_VERSIONS: i64 = 4;

/// Versions that are asked for at once.
const VERSIONS_MAX: usize = 128;

/// A key and what a version or a commit says of it; `None` is deleted.
type Entry = (RecordKey, Option<Arc<[u8]>>);

impl Shared {
    /// The commit that lies over the versions of a state: its own as long as it may be pending.
    async fn overlay(&self, state: State) -> Reply<Option<Arc<Commit>>> {
        let mut newest = self.known().newest();
        if state > newest.state {
            // Another connection of the caller's has seen more.
            newest = self.look().await?;
        }
        match state.cmp(&newest.state) {
            // A later commit says that all versions of this state are there.
            Ordering::Less => Ok(None),
            Ordering::Equal => Ok(Some(newest)),
            Ordering::Greater => Err(Failure::Expired),
        }
    }

    /// Fails when versions that a state needs may have been missing, or when there is a newer one and
    /// nobody has a lease on it.
    async fn check_kept(&self, state: State, is_leased: bool) -> Reply<()> {
        let newest = self.commits.find_one(doc! {}).sort(doc! { "_id": -1 });
        let newest = self.ask(newest.projection(doc! { "low": 1 })).await?;
        let Some(newest) = newest else {
            return Err(Error::corrupted(format!(
                "{}: the store's commits are gone; restore it from a backup",
                self.shown
            ))
            .into());
        };
        let fields = Fields(&newest);
        let (newest, low) = (fields.number("_id")?, fields.number("low")?);
        let may_be_read = state == newest || is_leased && state >= low;
        if may_be_read { Ok(()) } else { Err(Failure::Expired) }
    }

    /// See [`crate::network::server::Server::floor`].
    pub async fn floor(&self, view: View, lower: &[u8], key: &[u8]) -> Reply<Floor> {
        let (state, is_leased) = (view.state, self.renew(view).await?);
        let overlay = self.overlay(state).await?;
        if lower > key {
            return Ok(Floor { record: None, until: Until::Key(successor(key)) });
        }
        let last = self.last(state, lower, key, overlay.as_deref());
        let next = self.next_key(key);
        let (record, next) = tokio::try_join!(last, next)?;
        self.check_kept(state, is_leased).await?;
        let after = (Bound::Excluded(key), Bound::Unbounded);
        let pending = overlay.as_ref().and_then(|commit| {
            let mut changes = commit.changes.range::<[u8], _>(after);
            changes.find(|(_, value)| value.is_some()).map(|(key, _)| key.clone())
        });
        let next = [next, pending].into_iter().flatten().min();
        Ok(Floor { record, until: next.map_or(Until::End, Until::Key) })
    }

    async fn last(
        &self,
        state: State,
        lower: &[u8],
        key: &[u8],
        overlay: Option<&Commit>,
    ) -> Reply<Option<Record>> {
        let between = (Bound::Included(lower), Bound::Included(key));
        let pending = overlay.and_then(|commit| {
            let mut changes = commit.changes.range::<[u8], _>(between).rev();
            changes.find_map(|(key, value)| Some((key.clone(), Arc::clone(value.as_ref()?))))
        });
        // What lies before the pending record is not looked at.
        let lowest = key::before(pending.as_ref().map_or(lower, |(key, _)| key));
        let (mut end, mut limit) = (key::after(key), FIRST_VERSIONS);
        loop {
            let filter = versions(&lowest, &end, state);
            let find = self.pages.find(filter).sort(doc! { "_id": -1 }).limit(limit);
            let mut cursor = self.ask(find.batch_size(limit as u32)).await?;
            let (mut count, mut seen) = (0, String::new());
            while self.ask(cursor.advance()).await? {
                count += 1;
                let document = cursor.current();
                let (text, key) = version_key(document)?;
                if text == seen {
                    continue;
                }
                seen = text;
                let is_pending = overlay.is_some_and(|commit| commit.changes.contains_key(&key));
                if let (false, Some(value)) = (is_pending, decode_version(document)?) {
                    return Ok(Some((key, value)));
                }
            }
            if count < limit {
                return Ok(pending);
            }
            end = key::before_encoded(seen);
            limit = (limit * 4).min(VERSIONS_MAX as i64);
        }
    }

    /// The first key after `key` that has any version; there is no record before it.
    async fn next_key(&self, key: &[u8]) -> Reply<Option<RecordKey>> {
        let find = self.pages.find_one(doc! { "_id": { "$gte": key::after(key) } });
        let found = self.ask(find.sort(doc! { "_id": 1 }).projection(doc! { "_id": 1 })).await?;
        Ok(found.map(|document| Ok::<_, Error>(version_key(&document)?.1)).transpose()?)
    }

    /// See [`crate::network::server::Server::range`].
    pub async fn range(
        &self,
        view: View,
        bounds: Bounds<'_>,
        direction: Direction,
        limit: Limit,
    ) -> Reply<Stretch> {
        let is_leased = self.renew(view).await?;
        let stretch = self.stretch(view.state, bounds, direction, limit).await?;
        self.check_kept(view.state, is_leased).await?;
        Ok(stretch)
    }

    /// The first records of a range, right as long as the state is kept.
    pub async fn stretch(
        &self,
        state: State,
        bounds: Bounds<'_>,
        direction: Direction,
        limit: Limit,
    ) -> Reply<Stretch> {
        let overlay = self.overlay(state).await?;
        if is_empty_range(bounds) {
            return Ok(Stretch::default());
        }
        let mut pending: VecDeque<Entry> = overlay
            .iter()
            .flat_map(|commit| {
                let changes = commit.changes.range::<[u8], _>(bounds);
                changes.map(|(key, value)| (key.clone(), value.clone()))
            })
            .collect();
        if direction == Direction::Backward {
            pending.make_contiguous().reverse();
        }
        let mut gather =
            Gather { direction, limit, pending, stretch: Stretch::default(), bytes: 0 };
        let order = if direction == Direction::Forward { 1 } else { -1 };
        let batch = limit.records.saturating_add(1).clamp(2, VERSIONS_MAX) as u32;
        let find = self.pages.find(versions_within(bounds, state)).sort(doc! { "_id": order });
        let mut cursor = self.ask(find.batch_size(batch)).await?;
        // Forward the last version of a key counts, backward the first.
        let mut held: Option<(String, Entry)> = None;
        while !gather.stretch.more && self.ask(cursor.advance()).await? {
            let document = cursor.current();
            let (text, key) = version_key(document)?;
            let is_same = held.as_ref().is_some_and(|(held, _)| *held == text);
            if is_same && direction == Direction::Backward {
                continue;
            }
            let entry = (key, decode_version(document)?);
            let before = held.replace((text, entry));
            if let (false, Some((_, entry))) = (is_same, before) {
                gather.add(entry);
            }
        }
        if let Some((_, entry)) = held {
            gather.add(entry);
        }
        gather.finish();
        Ok(gather.stretch)
    }
}

/// Puts together what is stored and what is pending over it, in the order of a range.
struct Gather {
    direction: Direction,
    limit: Limit,
    pending: VecDeque<Entry>,
    stretch: Stretch,
    bytes: usize,
}

impl Gather {
    fn add(&mut self, (key, value): Entry) {
        while let Some((first, _)) = self.pending.front() {
            let order = match self.direction {
                Direction::Forward => first.cmp(&key),
                Direction::Backward => key.cmp(first),
            };
            match order {
                Ordering::Less => self.push_pending(),
                // The pending one takes its place, at the next key.
                Ordering::Equal => return,
                Ordering::Greater => break,
            }
        }
        self.push((key, value));
    }

    fn finish(&mut self) {
        while !self.pending.is_empty() {
            self.push_pending();
        }
    }

    fn push_pending(&mut self) {
        if let Some(entry) = self.pending.pop_front() {
            self.push(entry);
        }
    }

    fn push(&mut self, (key, value): Entry) {
        let Some(value) = value else { return };
        let is_full =
            self.stretch.records.len() >= self.limit.records || self.bytes >= self.limit.bytes;
        if is_full && !self.stretch.records.is_empty() {
            self.stretch.more = true;
        }
        if !self.stretch.more {
            self.bytes += key.len() + value.len();
            self.stretch.records.push((key, value));
        }
    }
}

/// Selects the versions of a state between two ends.
fn versions(from: &str, to: &str, state: State) -> Document {
    doc! { "_id": { "$gte": from, "$lt": to }, "state": { "$lte": state as i64 } }
}

fn versions_within((lower, upper): Bounds<'_>, state: State) -> Document {
    let mut ids = Document::new();
    match lower {
        Bound::Included(key) => ids.insert("$gte", key::before(key)),
        Bound::Excluded(key) => ids.insert("$gte", key::after(key)),
        Bound::Unbounded => None,
    };
    match upper {
        Bound::Included(key) => ids.insert("$lt", key::after(key)),
        Bound::Excluded(key) => ids.insert("$lt", key::before(key)),
        Bound::Unbounded => None,
    };
    let mut filter = doc! { "state": { "$lte": state as i64 } };
    if !ids.is_empty() {
        filter.insert("_id", ids);
    }
    filter
}

/// The key of a version, as text and as it is.
fn version_key(document: &RawDocument) -> Result<(String, RecordKey)> {
    let id = document.get_str("_id").ok().and_then(key::split_version);
    let read = id.and_then(|(text, _)| Some((text.to_owned(), key::decode(text)?)));
    read.ok_or_else(|| Fields(document).damaged("_id"))
}

fn successor(key: &[u8]) -> RecordKey {
    RecordKey::from([key, &[0]].concat())
}
