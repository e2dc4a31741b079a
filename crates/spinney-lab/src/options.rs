//! What a run measures, and the levels at which it does.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use spinney_core::{Error, Result};

use crate::suite::{Name, Row};
use crate::system::{Durability, Factory};
use crate::systems::name_and_url;
use crate::throughput::item::Fill;

/// Size of the promises about a large tree.
pub(crate) const LARGE: usize = 1_000_000;
/// Size of the promises about a usual tree.
pub(crate) const USUAL: usize = 100_000;
/// Size against which growth is measured.
pub(crate) const SMALL: usize = 1_000;

/// How the tries of a row are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The state is put back before each try, and the figure is the median.
    Honest,
    /// As published: ten tries, nothing put back in the rows that then change nothing, and the mean.
    Compat,
}

impl Mode {
    /// The word of records.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Honest => "honest",
            Mode::Compat => "compat",
        }
    }

    /// The mode of a word.
    pub fn of_name(name: &str) -> Option<Mode> {
        [Mode::Honest, Mode::Compat].into_iter().find(|mode| mode.name() == name)
    }
}

/// What holds for the commits of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rules {
    /// Nothing: stores alone are measured.
    None,
    /// Each is judged by the model of the suite and given to subscribers.
    Model,
}

impl Rules {
    /// The word of records.
    pub fn name(self) -> &'static str {
        match self {
            Rules::None => "none",
            Rules::Model => "model",
        }
    }

    /// The rules of a word.
    pub fn of_name(name: &str) -> Option<Rules> {
        [Rules::None, Rules::Model].into_iter().find(|rules| rules.name() == name)
    }
}

/// Which systems take part in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Backends and peers.
    All,
    /// Backends alone.
    Backends,
    /// None.
    Nothing,
}

/// What a run measures. The default finishes within a minute on backends `memory` and `lmdb`.
#[derive(Clone, Debug)]
pub struct Options {
    /// What is measured.
    pub suite: Name,
    /// N: counts of items; none, but in `datastore`, means those that were published.
    pub sizes: Vec<usize>,
    /// Names of the backends of spinney; of a server `NAME=URL`.
    pub backends: Vec<String>,
    /// Names of the peers.
    pub peers: Vec<String>,
    /// Tries kept of each row and system; without it 10, 30 below 100 ms and 200 below 1 ms.
    pub tries: Option<usize>,
    /// Time for one row and system, which cuts tries down to 3; `tries` is never cut.
    pub budget: Option<Duration>,
    /// Levels at which writes are measured.
    pub durability: Vec<Durability>,
    /// Whether levels after the first measure every write; otherwise only those of one entry.
    pub all_levels: bool,
    /// Ids or numbers of rows; none means all, of a short run those that are not long.
    pub rows: Vec<String>,
    /// Whether all rows of the suite are measured, and not those of a short run.
    pub whole_suite: bool,
    /// What holds for commits.
    pub rules: Rules,
    /// How tries are made.
    pub mode: Mode,
    /// Whether the copies of a document differ, where the suite has copies.
    pub vary: bool,
    /// What the items of `throughput` are filled with.
    pub fill: Fill,
    /// At most so many iterations in a try of `throughput`.
    pub iterations_max: Option<usize>,
    /// The system against which ratios stand.
    pub baseline: String,
    /// Whether to measure only what the promises need, at the sizes that they name, and longer.
    pub claims: bool,
    /// JSON files to import into and export from each persistent backend.
    pub data: Vec<PathBuf>,
    /// Items in the files whose import is watched for its peak memory; it runs in child processes,
    /// for which the program calls [`crate::child::serve`].
    pub memory_sizes: Vec<usize>,
    /// How long each count of readers is measured beside a writer; none are when it is zero.
    pub readers_turn: Duration,
    /// Whether new processes open stores, for which the program calls [`crate::child::serve`].
    pub children: bool,
    /// Ends the run after the present tries when it becomes true; what was measured is reported.
    pub stop: Arc<AtomicBool>,
    /// Where to write records, one JSON object a line.
    pub records: Option<PathBuf>,
    /// Whether to go on with the run whose records stand in that file.
    pub resume: bool,
    /// Where stores live while they are measured; without it `target/` below the current folder.
    pub dir: Option<PathBuf>,
    /// Seed of the order in which systems take turns; without it a new one, which is recorded.
    pub seed: Option<u64>,
    /// Whether to count the syncs of a commit with `strace`, in an unmeasured pass.
    pub count_syncs: bool,
    /// Whether to show progress on stderr when that is a terminal.
    pub progress: bool,
}

impl Default for Options {
    fn default() -> Options {
        let names = |names: [&str; 2]| names.map(str::to_owned).to_vec();
        Options {
            suite: Name::Datastore,
            sizes: vec![1_000, 50_000],
            backends: names(["memory", "lmdb"]),
            peers: names(["file", "sqlite"]),
            tries: None,
            budget: Some(Duration::from_millis(60)),
            durability: vec![Durability::Durable, Durability::None],
            all_levels: false,
            rows: Vec::new(),
            whole_suite: false,
            rules: Rules::None,
            mode: Mode::Honest,
            vary: false,
            fill: Fill::Const,
            iterations_max: None,
            baseline: "file".to_owned(),
            claims: false,
            data: Vec::new(),
            memory_sizes: Vec::new(),
            readers_turn: Duration::ZERO,
            children: false,
            stop: Arc::default(),
            records: None,
            resume: false,
            dir: None,
            seed: None,
            count_syncs: true,
            progress: true,
        }
    }
}

impl Options {
    /// The suite `datastore`, whole: every row at three levels, commits judged and told to subscribers.
    pub fn datastore() -> Options {
        Options {
            sizes: vec![1_000, 10_000, 100_000],
            budget: None,
            durability: vec![Durability::Durable, Durability::Process, Durability::None],
            all_levels: true,
            whole_suite: true,
            rules: Rules::Model,
            readers_turn: Duration::from_secs(5),
            children: true,
            ..Options::default()
        }
    }

    /// The suite `datastore` as it was published: its rows in the order of their numbers, without syncs.
    pub fn compat() -> Options {
        Options {
            durability: vec![Durability::None],
            mode: Mode::Compat,
            readers_turn: Duration::ZERO,
            children: false,
            count_syncs: false,
            ..Options::datastore()
        }
    }

    /// The suite `documents`: every row at the published sizes but the largest.
    pub fn documents() -> Options {
        Options {
            suite: Name::Documents,
            sizes: Vec::new(),
            budget: Some(Duration::from_secs(1)),
            durability: vec![Durability::Durable, Durability::Process, Durability::None],
            baseline: "sqlite".to_owned(),
            ..Options::default()
        }
    }

    /// The suite `documents` as it was published: three rows without syncs, one try, milliseconds.
    pub fn documents_compat() -> Options {
        Options {
            durability: vec![Durability::None],
            tries: Some(1),
            mode: Mode::Compat,
            count_syncs: false,
            ..Options::documents()
        }
    }

    /// The suite `throughput`: every scenario with a fixed count of iterations.
    pub fn throughput() -> Options {
        Options { suite: Name::Throughput, ..Options::documents() }
    }

    /// The suite `throughput` as it was published: as many iterations as a second holds.
    pub fn throughput_compat() -> Options {
        Options {
            mode: Mode::Compat,
            tries: Some(5),
            durability: vec![Durability::None],
            count_syncs: false,
            ..Options::throughput()
        }
    }

    /// What the promises need: `lmdb` beside the peers at three sizes, with more tries.
    pub fn claims() -> Options {
        Options {
            sizes: vec![SMALL, USUAL, LARGE],
            backends: vec!["lmdb".to_owned()],
            budget: Some(Duration::from_secs(1)),
            claims: true,
            memory_sizes: vec![LARGE, 10 * LARGE],
            count_syncs: false,
            ..Options::default()
        }
    }

    /// Whether a system of this name is asked for.
    pub fn takes_part(&self, system: &str) -> bool {
        self.backends.iter().chain(&self.peers).any(|text| name_and_url(text).0 == system)
    }

    /// Whether the run is to end.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Of the rows of a suite, those that are asked for by name, or all.
    ///
    /// # Errors
    /// `InvalidInput` for a name that none has.
    pub(crate) fn choose<R: Row>(&self, mut rows: Vec<R>) -> Result<Vec<R>> {
        if let Some(name) = self.rows.iter().find(|name| rows.iter().all(|row| row.id() != **name))
        {
            let ids: Vec<&str> = rows.iter().map(Row::id).collect();
            return Err(unknown_row(name, &ids));
        }
        rows.retain(|row| self.wants(row.id()));
        Ok(rows)
    }

    /// Whether something besides the suite's rows is measured.
    pub(crate) fn wants(&self, extra: &str) -> bool {
        self.rows.is_empty() || self.rows.iter().any(|name| name == extra)
    }

    /// The factories that are asked for: backends first, then peers.
    ///
    /// # Errors
    /// `InvalidInput` for a name that none of `systems` has, and for empty lists.
    pub(crate) fn selected_systems<'a>(
        &self,
        systems: &'a [Box<dyn Factory>],
    ) -> Result<Vec<&'a dyn Factory>> {
        let chosen: Vec<&dyn Factory> = self
            .backends
            .iter()
            .chain(&self.peers)
            .map(|text| {
                let (name, _) = name_and_url(text);
                systems.iter().map(|factory| &**factory).find(|factory| factory.name() == name)
                    .ok_or_else(|| {
                        let names: Vec<&str> = systems.iter().map(|system| system.name()).collect();
                        Error::invalid_input(format!(
                            "`{name}` is neither a backend nor a peer of this build; choose from: {}",
                            names.join(", ")
                        ))
                    })
            })
            .collect::<Result<_>>()?;
        if chosen.is_empty()
            || self.durability.is_empty()
            || self.suite == Name::Datastore && self.sizes.is_empty()
        {
            return Err(Error::invalid_input(
                "a run needs at least one system, one size and one level of durability",
            ));
        }
        for (what, count) in [("try of each row", self.tries), ("iteration", self.iterations_max)] {
            if count == Some(0) {
                return Err(Error::invalid_input(format!("a run needs at least one {what}")));
            }
        }
        if self.suite == Name::Datastore && self.sizes.iter().any(|&size| size < 2) {
            return Err(Error::invalid_input("a size must be at least 2 items"));
        }
        Ok(chosen)
    }
}

/// The error for a row that a suite does not have.
pub(crate) fn unknown_row(name: &str, ids: &[&str]) -> Error {
    Error::invalid_input(format!(
        "`{name}` is no row of the suite; choose from: {}",
        ids.join(", ")
    ))
}
