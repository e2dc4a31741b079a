//! What an evaluation stacks: schemas that are being applied to nodes, and what comes next of each.

use std::collections::VecDeque;
use std::rc::Rc;

use spinney_core::error::Result;

use crate::coverage::Coverage;
use crate::instance::{Instance, Leaf};
use crate::report;
use crate::schema::NodeId;
use spinney_core::node::NodeKind;

/// What a schema is applied to.
#[derive(Clone)]
pub(super) enum Subject<I> {
    /// A node of the document.
    Node(I),
    /// The key of a member, for `propertyNames`.
    Name(Rc<str>),
}

impl<I: Instance> Subject<I> {
    pub fn kind(&self) -> Result<NodeKind> {
        match self {
            Subject::Node(node) => node.kind(),
            Subject::Name(_) => Ok(NodeKind::String),
        }
    }

    pub fn leaf<'a>(&'a self, long: &'a mut Vec<u8>) -> Result<Option<Leaf<'a>>> {
        match self {
            Subject::Node(node) => node.leaf(long),
            Subject::Name(name) => Ok(Some(Leaf::String((&**name).into()))),
        }
    }

    pub fn node(&self) -> Option<&I> {
        match self {
            Subject::Node(node) => Some(node),
            Subject::Name(_) => None,
        }
    }

    pub fn describe(&self) -> Result<String> {
        match self {
            Subject::Node(node) => report::describe(node),
            Subject::Name(name) => Ok(format!("the key `{}`", report::shortened(name))),
        }
    }
}

/// The way from a frame's node to that of the next.
#[derive(Clone)]
pub(super) enum Step {
    /// The same node.
    InPlace,
    Key(Rc<str>),
    Element(u64),
    /// The key itself.
    Name,
}

/// The way from a frame's schema to that of the next.
#[derive(Clone)]
pub(super) struct Via {
    pub keyword: &'static str,
    pub token: Option<Token>,
}

#[derive(Clone)]
pub(super) enum Token {
    Index(usize),
    Text(Rc<str>),
}

impl Via {
    pub fn keyword(keyword: &'static str) -> Via {
        Via { keyword, token: None }
    }

    pub fn index(keyword: &'static str, index: usize) -> Via {
        Via { keyword, token: Some(Token::Index(index)) }
    }

    pub fn text(keyword: &'static str, text: impl Into<Rc<str>>) -> Via {
        Via { keyword, token: Some(Token::Text(text.into())) }
    }
}

/// A schema that is to be applied to a node.
pub(super) struct Job<I> {
    pub node: NodeId,
    pub subject: Subject<I>,
    /// The state before and what changed inside of it, when the node was valid there.
    pub before: Option<(I, usize)>,
    pub step: Step,
    pub via: Via,
    /// Whether only the verdict is wanted.
    pub quiet: bool,
    /// Whether it is wanted what was evaluated.
    pub tracks: bool,
    /// The `if` of its keyword.
    pub is_condition: bool,
}

impl<I> Job<I> {
    pub fn root(node: NodeId, document: I, before: Option<(I, usize)>) -> Job<I> {
        Job { before, ..Job::of(node, Subject::Node(document)) }
    }

    /// A schema for a subject of which nothing is known.
    pub fn of(node: NodeId, subject: Subject<I>) -> Job<I> {
        Job {
            node,
            subject,
            before: None,
            step: Step::InPlace,
            via: Via::keyword(""),
            quiet: false,
            tracks: false,
            is_condition: false,
        }
    }
}

/// Where further jobs of a keyword come from.
pub(super) enum Source<I: Instance> {
    None,
    Members(I::Members),
    Elements(I::Elements, u64),
}

/// A schema that is being applied to a node.
pub(super) struct Frame<I: Instance> {
    pub job: Job<I>,
    /// Not yet disproved.
    pub valid: bool,
    /// The keyword that runs or comes next.
    pub applicator: usize,
    /// Whether it runs.
    pub started: bool,
    pub queue: VecDeque<Job<I>>,
    pub source: Source<I>,
    /// How many jobs of the keyword were valid.
    pub passed: u64,
    /// Whether the `if` that runs was valid before; `None` when it is as it was.
    pub condition_was: Option<bool>,
    pub coverage: Coverage,
    pub scope_len: usize,
    /// Frames on the same node below.
    pub in_place: usize,
}

/// What a keyword begins with.
pub(super) enum Start<I: Instance> {
    /// It holds, whatever its schemas say.
    Skip,
    /// Jobs, and how many others are known to be valid.
    Jobs(Vec<Job<I>>, u64),
    /// Jobs for all members or elements.
    Source(Vec<Job<I>>, Source<I>),
}

impl<I: Instance> Frame<I> {
    /// A job for another schema on the same node.
    pub fn in_place(&self, node: NodeId, via: Via, before: Option<(I, usize)>) -> Job<I> {
        Job {
            node,
            subject: self.job.subject.clone(),
            before,
            step: Step::InPlace,
            via,
            quiet: self.job.quiet,
            tracks: self.job.tracks,
            is_condition: false,
        }
    }

    /// A job for a member, an element or a key.
    pub fn below(&self, node: NodeId, via: Via, step: Step, subject: Subject<I>) -> Job<I> {
        Job {
            node,
            subject,
            before: None,
            step,
            via,
            quiet: self.job.quiet,
            tracks: false,
            is_condition: false,
        }
    }
}
