//! What a commit changed, as a tree that is walked beside the document.

use std::collections::BTreeMap;

use spinney_core::diff::{Diff, Step, What};
use spinney_core::error::{Error, Result};
use spinney_core::key::Key;
use spinney_core::path;

/// How a node changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It was not there.
    Added,
    /// It is there no more.
    Removed,
    /// Another node is in its place.
    Replaced,
    /// It is the same container, with changes inside: an index into [`Changes`].
    Within(usize),
}

/// What changed inside of one container.
#[derive(Clone, Debug, Default)]
pub struct Inside {
    /// Members of a map.
    pub members: BTreeMap<String, Change>,
    /// Positions before, of elements that were taken out; ascending.
    pub taken: Vec<u64>,
    /// Positions after, of elements that were put in; ascending.
    pub put: Vec<u64>,
    /// Positions after, of elements that stayed and changed.
    pub touched: BTreeMap<u64, Change>,
}

impl Inside {
    /// Where an element that stayed was before.
    pub fn before(&self, after: u64) -> u64 {
        among(&self.taken, after - self.put.partition_point(|&put| put < after) as u64)
    }

    /// Where an element that stayed is after.
    pub fn after(&self, before: u64) -> u64 {
        among(&self.put, before - self.taken.partition_point(|&taken| taken < before) as u64)
    }

    /// Whether elements came or went.
    pub fn shifts(&self) -> bool {
        !self.taken.is_empty() || !self.put.is_empty()
    }
}

/// All that changed below one node.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    root: Option<Change>,
    inside: Vec<Inside>,
}

impl Changes {
    /// No changes at all.
    pub const NONE: Changes = Changes { root: None, inside: Vec::new() };

    /// Everything is new.
    pub fn everything() -> Changes {
        Changes { root: Some(Change::Added), inside: Vec::new() }
    }

    /// What a diff changed at a path and below; `None` in [`Changes::root`] when nothing did.
    ///
    /// # Errors
    /// `InvalidInput` when the path is malformed; `Unsupported` when it leads through a list, whose
    /// elements have no lasting path.
    pub fn of_diff(diff: &Diff, at: &str) -> Result<Changes> {
        path::check(at)?;
        let base: Vec<_> = path::segments(at).map(|text| Key::new(&text).encoded()).collect();
        let mut changes = Changes::default();
        'ops: for op in diff.ops.iter().filter(|op| op.what == What::Node) {
            let mut steps = op.path.iter();
            for key in &base {
                match steps.next() {
                    // A whole ancestor changed.
                    None => {
                        changes.root = Some(Change::Replaced);
                        return Ok(changes);
                    }
                    Some(Step::Key(step)) if step == key => {}
                    Some(Step::Key(_)) => continue 'ops,
                    Some(Step::Element { .. }) => {
                        return Err(Error::unsupported(format!(
                            "the path {} leads through a list, whose elements have no lasting path; attach the schema to the list",
                            path::Display(at)
                        )));
                    }
                }
            }
            let steps: Vec<&Step> = steps.collect();
            let change = match (&op.old, &op.new) {
                (None, _) => Change::Added,
                (Some(_), None) => Change::Removed,
                (Some(_), Some(_)) => Change::Replaced,
            };
            changes.add(&steps, change)?;
        }
        for inside in &mut changes.inside {
            inside.taken.sort_unstable();
            inside.put.sort_unstable();
        }
        Ok(changes)
    }

    fn add(&mut self, steps: &[&Step], change: Change) -> Result<()> {
        let Some((last, way)) = steps.split_last() else {
            self.root = Some(change);
            return Ok(());
        };
        let mut at = match self.root {
            Some(Change::Within(at)) => at,
            Some(_) => return Ok(()),
            None => {
                let at = self.enter();
                self.root = Some(Change::Within(at));
                at
            }
        };
        for step in way {
            let known = match step {
                Step::Key(key) => self.inside[at].members.get(&text(key)?).copied(),
                Step::Element { position, .. } => self.inside[at].touched.get(position).copied(),
            };
            at = match known {
                Some(Change::Within(below)) => below,
                // It is new as a whole already.
                Some(_) => return Ok(()),
                None => {
                    let below = self.enter();
                    let inside = &mut self.inside[at];
                    match step {
                        Step::Key(key) => {
                            inside.members.insert(text(key)?, Change::Within(below));
                        }
                        Step::Element { position, .. } => {
                            inside.touched.insert(*position, Change::Within(below));
                        }
                    }
                    below
                }
            };
        }
        let inside = &mut self.inside[at];
        match (last, change) {
            (Step::Key(key), change) => {
                inside.members.insert(text(key)?, change);
            }
            (Step::Element { position, .. }, Change::Added) => inside.put.push(*position),
            (Step::Element { position, .. }, Change::Removed) => inside.taken.push(*position),
            (Step::Element { position, .. }, change) => {
                inside.touched.insert(*position, change);
            }
        }
        Ok(())
    }

    fn enter(&mut self) -> usize {
        self.inside.push(Inside::default());
        self.inside.len() - 1
    }

    /// How the node itself changed; `None` when nothing did.
    pub fn root(&self) -> Option<Change> {
        self.root
    }

    /// What changed inside of a container.
    pub fn inside(&self, index: usize) -> &Inside {
        &self.inside[index]
    }
}

/// The position of the `rank`-th of all others, when `positions` are not counted.
fn among(positions: &[u64], rank: u64) -> u64 {
    let (mut low, mut high) = (0, positions.len());
    while low < high {
        let middle = (low + high) / 2;
        match positions[middle] - middle as u64 <= rank {
            true => low = middle + 1,
            false => high = middle,
        }
    }
    rank + low as u64
}

fn text(key: &[u8]) -> Result<String> {
    let key = Key::decode(key).ok_or_else(|| Error::corrupted("a key in a diff does not read"))?;
    Ok(key.text().into_owned())
}
