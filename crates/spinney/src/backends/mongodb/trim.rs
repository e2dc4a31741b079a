//! What is done behind commits: putting their versions in place, and deleting what nobody may read any
//! more. Owns the thread that does it.
//!
//! Deleting goes in two steps, each for at most [`STEP`] commits at a time, oldest first:
//!
//! 1. **Trim**, once a commit says that no state before its own is read: what it replaced goes, and
//!    then, from its document, the values.
//! 2. **Forget**, an hour and [`KEPT_MIN`] commits later: its marks of deleted records and its document
//!    go. Until then a client that was held up finds the number of its commit taken, and a version that
//!    it inserts too late lies below a newer one or below a mark.

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use mongodb::bson::{DateTime, Document, doc};
use spinney_core::backend::RecordKey;
use tokio::runtime::Handle;

use super::commit::{Commit, Fields};
use super::key;
use super::shared::Shared;
use crate::network::server::{Reply, State};

/// Commits that are trimmed or forgotten together; fewer are not worth the requests.
pub const STEP: u64 = 64;

/// Commits that are never forgotten.
const KEPT_MIN: u64 = 256;

/// How long no commit is forgotten.
const KEPT: Duration = Duration::from_secs(3_600);

/// Keys whose old versions one request deletes.
const KEYS_AT_ONCE: usize = 256;

/// Steps after one commit: more than commits give cause for, so that arrears end.
const STEPS_MAX: u32 = 4;

/// How far deleting has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// The newest commit that is trimmed.
    pub trimmed: State,
    /// The newest commit that is forgotten.
    pub forgotten: State,
}

impl Progress {
    /// Reads it from the first document of a store.
    pub fn decode(fields: &Fields<'_>) -> spinney_core::Result<Progress> {
        Ok(Progress {
            trimmed: fields.number_or_0("trimmed")?,
            forgotten: fields.number_or_0("forgotten")?,
        })
    }
}

/// Which commits, and what of them goes.
struct Step {
    commits: Vec<Commit>,
    last: State,
}

impl Shared {
    /// Deletes what may be, in some steps; how far that has come.
    async fn trim(&self, mut progress: Progress) -> Reply<Progress> {
        for _ in 0..STEPS_MAX {
            let newest = self.known().newest();
            if newest.low < progress.trimmed + STEP {
                break;
            }
            // Others may have done it.
            progress = self.progress().await?;
            self.trim_step(&mut progress, newest.low).await?;
            self.forget_step(&mut progress, newest.state).await?;
            self.forget_leases().await?;
        }
        Ok(progress)
    }

    /// How far deleting has come, on the server.
    pub async fn progress(&self) -> Reply<Progress> {
        let first = self.ask(self.commits.find_one(doc! { "_id": 0_i64 })).await?;
        Ok(first.map(|first| Progress::decode(&Fields(&first))).transpose()?.unwrap_or_default())
    }

    async fn set_progress(&self, field: &str, state: State) -> Reply<()> {
        let first = doc! { "_id": 0_i64 };
        let set = doc! { "$max": { field: state as i64 } };
        self.ask(self.commits.update_one(first, set)).await?;
        Ok(())
    }

    async fn trim_step(&self, progress: &mut Progress, low: State) -> Reply<()> {
        let filter = doc! { "_id": { "$gt": progress.trimmed as i64, "$lte": low as i64 } };
        let Some(step) = self.step(filter).await? else { return Ok(()) };
        let replaced = step
            .commits
            .iter()
            .flat_map(|commit| commit.changes.keys().map(|key| older(key, commit.state)));
        self.delete_versions(replaced).await?;
        let done = doc! { "_id": { "$gt": progress.trimmed as i64, "$lte": step.last as i64 } };
        let values = doc! { "$unset": { "put": "", "values": "" } };
        self.ask(self.commits.update_many(done, values)).await?;
        progress.trimmed = step.last;
        self.set_progress("trimmed", step.last).await
    }

    async fn forget_step(&self, progress: &mut Progress, newest: State) -> Reply<()> {
        let last = progress.trimmed.min(newest.saturating_sub(KEPT_MIN));
        let made_before = DateTime::from_millis(self.now() - KEPT.as_millis() as i64);
        let filter = doc! {
            "_id": { "$gt": progress.forgotten as i64, "$lte": last as i64 },
            "at": { "$lt": made_before },
        };
        let Some(step) = self.step(filter).await? else { return Ok(()) };
        // What is left in a document that was trimmed are the keys that it deleted.
        let keys = |commit: &Commit| -> Vec<(RecordKey, State)> {
            commit.changes.keys().map(|key| (key.clone(), commit.state)).collect()
        };
        let marks: Vec<(RecordKey, State)> = step.commits.iter().flat_map(keys).collect();
        // A mark goes after what lies below it.
        self.delete_versions(marks.iter().map(|(key, state)| older(key, *state))).await?;
        let mark = |(key, state): &(RecordKey, State)| doc! { "_id": key::version(key, *state) };
        self.delete_versions(marks.iter().map(mark)).await?;
        let done = doc! { "_id": { "$gt": progress.forgotten as i64, "$lte": step.last as i64 } };
        self.ask(self.commits.delete_many(done)).await?;
        progress.forgotten = step.last;
        self.set_progress("forgotten", step.last).await
    }

    /// The next commits of a filter, with their keys.
    async fn step(&self, filter: Document) -> Reply<Option<Step>> {
        let find = self.commits.find(filter).sort(doc! { "_id": 1 }).limit(STEP as i64);
        let mut cursor = self.ask(find.projection(doc! { "values": 0, "head": 0 })).await?;
        let mut commits = Vec::new();
        while self.ask(cursor.advance()).await? {
            commits.push(Commit::decode(cursor.current())?);
        }
        let last = commits.last().map(|commit| commit.state);
        Ok(last.map(|last| Step { commits, last }))
    }

    async fn delete_versions(&self, filters: impl Iterator<Item = Document>) -> Reply<()> {
        let filters: Vec<Document> = filters.collect();
        for some in filters.chunks(KEYS_AT_ONCE) {
            self.ask(self.pages.delete_many(doc! { "$or": some.to_vec() })).await?;
        }
        Ok(())
    }
}

/// Selects the versions of a key before the one that `state` made.
fn older(key: &[u8], state: State) -> Document {
    doc! { "_id": { "$gte": key::before(key), "$lt": key::version(key, state) } }
}

/// The thread behind commits.
pub struct Worker {
    made: Option<Sender<State>>,
    thread: Option<JoinHandle<()>>,
}

impl Worker {
    /// Starts it.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn start(
        shared: Arc<Shared>,
        runtime: Handle,
        progress: Progress,
    ) -> std::io::Result<Worker> {
        let (made, commits) = mpsc::channel();
        let thread = std::thread::Builder::new()
            .name("spinney-mongodb".to_owned())
            .spawn(move || work(&shared, &runtime, &commits, progress))?;
        Ok(Worker { made: Some(made), thread: Some(thread) })
    }

    /// Tells it of a commit.
    pub fn tell(&self, state: State) {
        if let Some(made) = &self.made {
            // A thread that has ended left its work to the next client.
            let _ = made.send(state);
        }
    }

    /// Ends it, when what it is doing is done.
    pub fn end(&mut self) {
        self.made = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn work(shared: &Shared, runtime: &Handle, commits: &Receiver<State>, mut progress: Progress) {
    while let Ok(mut state) = commits.recv() {
        while let Ok(newer) = commits.try_recv() {
            state = newer;
        }
        let newest = shared.known().newest();
        let done = runtime.block_on(async {
            // Where there is a newer one, its versions are in place.
            if newest.state == state {
                shared.apply(&newest).await?;
            }
            shared.look_for_wishes().await?;
            shared.plan_low().await?;
            shared.trim(progress).await
        });
        match done {
            Ok(done) => progress = done,
            // The next commit does it, of this client or another.
            Err(failure) => log::debug!("{}: {failure:?}", shared.shown),
        }
    }
}
