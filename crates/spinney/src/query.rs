//! JSONPath (RFC 9535) on snapshots. What a query means is the business of `spinney-query`.

use std::time::{Duration, Instant};

use spinney_core::node::NodeKind;
use spinney_core::read::Reached;
use spinney_core::value::ValueBuilder;
use spinney_core::{Error, Result, Value, Visitor, path};
use spinney_query::Deadline;
pub use spinney_query::{Access, Budget, Explained, Location, Matches, Node, Query, Step};

use crate::Snapshot;

/// The most that one query may take; without a word there is no bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueryLimits {
    /// Nodes that it may visit, those within filters included.
    pub steps_max: Option<u64>,
    /// Nodes that it may find.
    pub results_max: Option<u64>,
    /// How long it may take, from the moment it is begun.
    pub time_max: Option<Duration>,
}

impl QueryLimits {
    /// The limits of a run that begins now.
    pub fn budget(&self) -> Budget {
        let begun = Instant::now();
        let deadline = self.time_max.map(|time_max| {
            Deadline::new(move || begun.elapsed() >= time_max, format_args!("{time_max:?}"))
        });
        Budget { steps_max: self.steps_max, results_max: self.results_max, deadline }
    }
}

/// The nodes that a query finds, one after another.
pub struct Found<N: Node> {
    matches: Matches<N>,
    is_over: bool,
}

/// A node that a query found.
#[derive(Clone)]
pub struct Match<N>(N);

impl Snapshot {
    /// The nodes that a query finds, of which the root `$` is the node at a path.
    ///
    /// ```
    /// use spinney::query::{Query, QueryLimits};
    ///
    /// let store = spinney::open("memory:")?;
    /// let people = spinney::formats::parse(r#"{"ada": {"age": 36}, "alan": {"age": 41}}"#)?;
    /// store.write(|tx| tx.set("/people", &people))?;
    /// let snapshot = store.read()?;
    /// let query = Query::parse("$[?@.age > 40].age")?;
    /// let mut found = snapshot.query("/people", &query, QueryLimits::default())?;
    /// while let Some(node) = found.next() {
    ///     assert_eq!(node?.value()?, 41.into());
    ///     assert_eq!(found.location()?.to_string(), "$['alan']['age']");
    /// }
    /// # Ok::<(), spinney::Error>(())
    /// ```
    ///
    /// # Errors
    /// `NotFound` when there is no node at the path; `Unsupported` for the root where trees are kept apart; as
    /// [`Snapshot::get`].
    ///
    /// # Complexity
    /// As [`Query::run`]; nothing is read before the first node is asked for.
    pub fn query(
        &self,
        path: &str,
        query: &Query,
        limits: QueryLimits,
    ) -> Result<Found<Reached<'_>>> {
        Ok(Found::new(query, self.root(path)?, limits))
    }

    /// How a query would read what is at a path, a line for each segment.
    ///
    /// # Errors
    /// As [`Snapshot::query`].
    pub fn explain_query(&self, path: &str, query: &Query) -> Result<Vec<Explained>> {
        query.explain(&self.root(path)?)
    }

    /// The node at a path, to be read.
    fn root(&self, path: &str) -> Result<Reached<'_>> {
        let no_node =
            || Error::not_found(format!("query {}: there is no node", path::Display(path)));
        self.node(path)?.ok_or_else(no_node)
    }
}

impl<N: Node> Found<N> {
    /// The nodes that a query finds below any root: a value in memory, for one.
    pub fn new(query: &Query, root: N, limits: QueryLimits) -> Found<N> {
        Found { matches: query.run(root, limits.budget()), is_over: false }
    }

    /// Where the node lies that was given last, below the root of the query.
    ///
    /// # Errors
    /// `Corrupted` when a key does not read.
    pub fn location(&self) -> Result<Location> {
        self.matches.location()
    }

    /// How many nodes were visited so far.
    pub fn steps(&self) -> u64 {
        self.matches.steps()
    }
}

impl<N: Node> Iterator for Found<N> {
    type Item = Result<Match<N>>;

    /// An error is the last item: `LimitExceeded` for a limit, `Corrupted` for damage.
    fn next(&mut self) -> Option<Result<Match<N>>> {
        if self.is_over {
            return None;
        }
        let next = self.matches.next().transpose();
        self.is_over = !matches!(next, Some(Ok(_)));
        next.map(|found| found.map(Match))
    }
}

impl<N: Node> Match<N> {
    /// What it is.
    ///
    /// # Errors
    /// `Corrupted` for damage.
    pub fn kind(&self) -> Result<NodeKind> {
        self.0.kind()
    }

    /// The value with all below it.
    ///
    /// # Errors
    /// `Corrupted` for damage.
    pub fn value(&self) -> Result<Value> {
        let mut builder = ValueBuilder::default();
        self.visit(&mut builder)?;
        builder.finish().ok_or_else(|| Error::corrupted("a stored value is not complete"))
    }

    /// Drives a visitor over the node and all below it.
    ///
    /// # Errors
    /// `Corrupted` for damage; the visitor's.
    pub fn visit(&self, visitor: &mut dyn Visitor) -> Result<()> {
        self.0.visit(visitor)
    }
}
