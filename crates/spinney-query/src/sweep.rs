//! Several children of one node, one after another: all, or those of a slice.

use spinney_core::error::{Error, Result};
use spinney_core::node::NodeKind;

use crate::location::Step;
use crate::slice::{Positions, Slice};
use spinney_core::read::{Children, Node};

/// Elements that are read together where they are wanted in another order than they lie.
const BLOCK_LEN: u64 = 64;

/// A run over children in their order, which knows where it is.
pub struct Run<N: Node> {
    children: N::Children,
    /// One above the position of the child that was given last.
    end: u64,
    /// Children to pass over before the next one.
    skip: u64,
    /// From one child to the next.
    step: u64,
    /// How many more it gives.
    left: u64,
}

impl<N: Node> Run<N> {
    /// All children.
    pub fn all(children: N::Children) -> Run<N> {
        Run { children, end: 0, skip: 0, step: 1, left: u64::MAX }
    }

    /// The children that follow, of which the first one is at `first`.
    fn some(children: N::Children, first: u64, step: u64, left: u64) -> Run<N> {
        Run { children, end: first, skip: 0, step, left }
    }

    /// Puts the next child into `child`; false when there is none.
    #[inline]
    pub fn next(&mut self, child: &mut N) -> Result<bool> {
        if self.left == 0 {
            return Ok(false);
        }
        for _ in 0..self.skip {
            self.children.next(child)?;
        }
        self.left -= 1;
        self.end += self.skip + 1;
        self.skip = self.step - 1;
        self.children.next(child)
    }

    /// The way to the child that was given last.
    pub fn step(&self) -> Result<Step> {
        let mut buffer = Vec::new();
        Ok(match self.children.key(&mut buffer)? {
            Some(key) => Step::Name(key.text().into_owned()),
            None => Step::Position(self.end - 1),
        })
    }
}

/// Elements that do not simply follow each other.
pub struct Scattered<N> {
    list: N,
    /// Not read yet.
    positions: Positions,
    /// Read, with their positions; the next one is the last.
    block: Vec<N>,
    /// The position of the one that was given last.
    at: u64,
}

impl<N: Node> Scattered<N> {
    fn next(&mut self, child: &mut N) -> Result<bool> {
        let Positions { first, step, .. } = self.positions;
        if self.block.is_empty() {
            self.load()?;
            self.at = first;
        } else {
            self.at = self.at.wrapping_add_signed(step);
        }
        let next = self.block.pop();
        let found = next.is_some();
        *child = next.unwrap_or_else(|| child.clone());
        Ok(found)
    }

    /// Reads the next positions, as many as lie close together.
    fn load(&mut self) -> Result<()> {
        let Positions { first, step, count } = &mut self.positions;
        let distance = step.unsigned_abs();
        let together = match *step < 0 {
            true => BLOCK_LEN.div_ceil(distance).min(*count),
            false => (*count).min(1),
        };
        if together == 0 {
            return Ok(());
        }
        let lowest = *first - (together - 1) * distance;
        let gone = || Error::corrupted("a list is shorter than its count");
        let mut element = self.list.clone();
        if together == 1 {
            if !element.enter_position(lowest)? {
                return Err(gone());
            }
            self.block.push(element);
        } else {
            let children = self.list.elements(lowest)?.ok_or_else(gone)?;
            let mut run = Run::<N>::some(children, lowest, distance, together);
            for _ in 0..together {
                if !run.next(&mut element)? {
                    return Err(gone());
                }
                self.block.push(element.clone());
            }
        }
        *first = first.wrapping_add_signed(step.wrapping_mul(together as i64));
        *count -= together;
        Ok(())
    }
}

/// What a wildcard, a filter or a slice goes through.
pub enum Sweep<N: Node> {
    /// In the order of the children.
    Run(Run<N>),
    /// Otherwise.
    Scattered(Scattered<N>),
}

impl<N: Node> Sweep<N> {
    /// All children of a node; `None` when it is no container.
    pub fn all(node: &N) -> Result<Option<Sweep<N>>> {
        Ok(node.children()?.map(|children| Sweep::Run(Run::all(children))))
    }

    /// The elements that a slice selects; `None` when the node is no list.
    pub fn slice(node: &N, slice: &Slice) -> Result<Option<Sweep<N>>> {
        let positions = slice.positions(node.count()?);
        let Positions { first, step, count } = positions;
        Ok(match u64::try_from(step) {
            // Reading what lies between is cheaper than looking again.
            Ok(step @ 1..=BLOCK_LEN) => node
                .elements(first)?
                .map(|children| Sweep::Run(Run::some(children, first, step, count))),
            _ if node.kind()? != NodeKind::List => None,
            _ => {
                let list = node.clone();
                Some(Sweep::Scattered(Scattered { list, positions, block: Vec::new(), at: 0 }))
            }
        })
    }

    /// Puts the next child into `child`; false when there is none.
    #[inline]
    pub fn next(&mut self, child: &mut N) -> Result<bool> {
        match self {
            Sweep::Run(run) => run.next(child),
            Sweep::Scattered(scattered) => scattered.next(child),
        }
    }

    /// The way to the child that was given last.
    pub fn step(&self) -> Result<Step> {
        match self {
            Sweep::Run(run) => run.step(),
            Sweep::Scattered(scattered) => Ok(Step::Position(scattered.at)),
        }
    }
}
