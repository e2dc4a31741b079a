//! How a query reads a tree, for people.

use std::fmt;

use spinney_core::error::Result;

use crate::level::select;
use crate::program::{Op, Program, Segment, Selector};
use spinney_core::read::Node;

/// How a segment finds its nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// By name or position, whatever lies beside them.
    Seek,
    /// By reading children one after another.
    Walk,
    /// By reading all that is below.
    Descend,
}

/// One segment of a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explained {
    /// The segment as it stands in the query.
    pub segment: String,
    /// How it finds its nodes.
    pub access: Access,
    /// How many children the node has that it is applied to, where that is one node which can be found
    /// by seeks alone.
    pub children: Option<u64>,
    /// Queries that its filters follow by seeks, for each child.
    pub filter_seeks: usize,
    /// Queries of its filters that are walks, for each child.
    pub filter_walks: usize,
}

/// The segments of a query, in order.
pub fn explain<N: Node>(program: &Program, text: &str, root: &N) -> Result<Vec<Explained>> {
    let mut node = Some(root.clone());
    let mut explained = Vec::new();
    for segment in &program.routes[program.main()].segments {
        let children = node.as_ref().map(Node::count).transpose()?;
        explained.push(explain_segment(program, text, segment, children));
        let is_found = match &mut node {
            Some(node) if segment.is_singular() => select(node, &segment.selectors[0])?,
            _ => false,
        };
        node = node.filter(|_| is_found);
    }
    Ok(explained)
}

fn explain_segment(
    program: &Program,
    text: &str,
    segment: &Segment,
    children: Option<u64>,
) -> Explained {
    let is_seek = |selector: &Selector| matches!(selector, Selector::Name(_) | Selector::Index(_));
    let access = match segment {
        Segment { descends: true, .. } => Access::Descend,
        Segment { selectors, .. } if selectors.iter().all(is_seek) => Access::Seek,
        _ => Access::Walk,
    };
    let (mut filter_seeks, mut filter_walks) = (0, 0);
    for selector in &segment.selectors {
        let &Selector::Filter(filter) = selector else { continue };
        for op in &program.filters[filter] {
            if let &(Op::Node(route)
            | Op::Exists(route)
            | Op::Count(route)
            | Op::Value(route)
            | Op::CompareLiteral(_, route, _)) = op
            {
                // What begins at the root is followed once for all children.
                match (program.routes[route].is_absolute, op) {
                    (true, _) => {}
                    (_, Op::Node(_) | Op::CompareLiteral(..)) => filter_seeks += 1,
                    (_, Op::Exists(_)) if program.routes[route].is_singular => filter_seeks += 1,
                    _ => filter_walks += 1,
                }
            }
        }
    }
    let segment = text[segment.source.clone()].to_owned();
    Explained { segment, access, children, filter_seeks, filter_walks }
}

impl fmt::Display for Explained {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Explained { segment, access, children, filter_seeks, filter_walks } = self;
        write!(f, "{segment}: ")?;
        match (access, children) {
            (Access::Seek, Some(_)) => f.write_str("seek")?,
            (Access::Seek, None) => f.write_str("seek, in each node")?,
            (Access::Walk, Some(children)) => write!(f, "walk, {children} children")?,
            (Access::Walk, None) => f.write_str("walk, the children of each node")?,
            (Access::Descend, Some(children)) => {
                write!(f, "descend, {children} children and all below them")?;
            }
            (Access::Descend, None) => f.write_str("descend, all below each node")?,
        }
        let mut before = "; the filter of each child: ";
        for (count, what) in [(filter_seeks, "seek"), (filter_walks, "walk")] {
            if *count > 0 {
                let s = if *count == 1 { "" } else { "s" };
                write!(f, "{before}{count} {what}{s}")?;
                before = ", ";
            }
        }
        Ok(())
    }
}
