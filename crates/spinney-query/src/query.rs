//! A query that is parsed, ready to be run on any tree.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use spinney_core::error::{Error, Result};

use crate::budget::Budget;
use crate::explain::{Explained, explain};
use crate::matches::Matches;
use crate::parse::parse;
use crate::program::Program;
use spinney_core::read::Node;

/// A JSONPath query (RFC 9535), cheap to clone. Its `Display` is its text.
#[derive(Clone, Debug)]
pub struct Query {
    text: Arc<str>,
    program: Arc<Program>,
}

impl Query {
    /// Reads a query and checks all that can be checked without a tree.
    ///
    /// # Errors
    /// `InvalidInput` saying at which character the text is not well-formed or not well-typed, and what
    /// was expected; `LimitExceeded` when it is longer than 1 MiB, nests deeper than 512 or holds too
    /// large a regular expression.
    ///
    /// # Complexity
    /// O(length of the text), and what regular expressions take to compile.
    pub fn parse(text: &str) -> Result<Query> {
        Ok(Query { text: text.into(), program: Arc::new(parse(text)?) })
    }

    /// The nodes that it finds below a root, in the order of RFC 9535; the members of a map come in the
    /// order of the model. A node that is found twice comes twice.
    ///
    /// # Complexity
    /// Names and indexes are seeks, O(log n) each. Wildcards, filters and slices read the children that
    /// they go through, and `..` all that is below.
    pub fn run<N: Node>(&self, root: N, budget: Budget) -> Matches<N> {
        Matches::new(Arc::clone(&self.program), root, budget)
    }

    /// How it reads a tree, a line for each segment.
    ///
    /// # Errors
    /// Those of reading the nodes up to the first segment that may find several.
    pub fn explain<N: Node>(&self, root: &N) -> Result<Vec<Explained>> {
        explain(&self.program, &self.text, root)
    }

    /// What RFC 9535 allows and nobody means, such as a regular expression that is none.
    pub fn warnings(&self) -> &[String] {
        &self.program.warnings
    }
}

impl fmt::Display for Query {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for Query {
    type Err = Error;

    fn from_str(text: &str) -> Result<Query> {
        Query::parse(text)
    }
}
