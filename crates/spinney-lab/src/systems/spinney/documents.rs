//! Spinney in the suite `documents`.
//!
//! Design: documents are members of the map `/bmTest`, their numbers the keys. A phase of reads takes one
//! snapshot and finds the map once. Whole documents are one `set` of a `Value` and one `get` each; leaf by
//! leaf, each leaf is one `set` by its path text. Nested iteration asks a node for its children and each
//! child for what it is; the leaf cursor is [`Leaves`].

use std::fmt::Write as _;
use std::ops::RangeInclusive;

use spinney::NodeKind;
use spinney::Snapshot;
use spinney::query::{Query, QueryLimits};
use spinney_core::read::{Children, Leaves, Name, Node, Reached, ReachedChildren, Rebuild};
use spinney_core::value::ValueBuilder;
use spinney_core::{Container, Error, Result, Visitor};

use super::opened::Opened;
use crate::answer::Answer;
use crate::documents::collection::{By, Calls, Collection, Each, Found, Reading};
use crate::documents::set::Set;

/// What a report says of it.
pub const DESIGN: &str = "members of the map `/bmTest`; a phase of reads: one snapshot, one handle of \
    the map; whole: one `set` and one `get` of a `Value`; leaf by leaf: one `set` of a path text a leaf, \
    `children` of each node, or `Leaves` over a document";

/// The collection.
const ROOT: &str = "/bmTest";

/// A store whose documents are members of one map.
pub struct Documents {
    opened: Opened,
    calls: Calls,
}

impl Documents {
    /// A store that is empty.
    pub fn new(opened: Opened) -> Documents {
        Documents { opened, calls: Calls::default() }
    }

    /// Hands each document to `rebuild`.
    fn each<'s>(
        calls: &mut Calls,
        map: &Reached<'s>,
        set: &Set,
        each: Each<'_>,
        mut rebuild: impl FnMut(Reached<'s>, &mut ValueBuilder, &mut Calls) -> Result<()>,
    ) -> Result<()> {
        let mut buffer = itoa::Buffer::new();
        for number in 1..=set.len() {
            let mut document = map.clone();
            calls.def += 1;
            if !document.enter(&Name::new(buffer.format(number)))? {
                return Err(missing());
            }
            let mut builder = ValueBuilder::default();
            rebuild(document, &mut builder, calls)?;
            each(number, finished(builder)?)?;
        }
        Ok(())
    }
}

impl Collection for Documents {
    fn set(&mut self, by: By, set: &Set, numbers: RangeInclusive<usize>) -> Result<()> {
        let calls = &mut self.calls;
        let mut path = String::new();
        self.opened.store.write(|transaction| {
            for number in numbers.clone() {
                path.clear();
                write!(path, "{ROOT}/{number}").expect("strings take all");
                if by == By::Document {
                    transaction.set(&path, &set.copy(number).value)?;
                    continue;
                }
                let document = path.len();
                for step in &set.copy(number).steps {
                    path.truncate(document);
                    path.push_str(&step.path);
                    transaction.set(&path, &step.value)?;
                    *if step.is_leaf { &mut calls.set } else { &mut calls.make } += 1;
                }
            }
            Ok(())
        })?;
        Ok(())
    }

    fn replace(&mut self, set: &Set, numbers: RangeInclusive<usize>) -> Result<()> {
        let mut path = String::new();
        self.opened.store.write(|transaction| {
            numbers.clone().try_for_each(|number| {
                path.clear();
                write!(path, "{ROOT}/{number}").expect("strings take all");
                transaction.replace(&path, &set.changed(number).value)
            })
        })?;
        Ok(())
    }

    fn find(&mut self, set: &Set, each: Found<'_>) -> Result<()> {
        let query = Query::parse(&query_text(set))?;
        let state = self.opened.store.read()?;
        let mut found = state.query(ROOT, &query, QueryLimits::default())?;
        while let Some(document) = found.next() {
            document?;
            let place = found.location()?.pointer();
            let number = place.rsplit('/').next().and_then(|number| number.parse().ok());
            each(number.ok_or_else(missing)?)?;
        }
        Ok(())
    }

    fn clear(&mut self) -> Result<()> {
        self.opened.store.write(|transaction| transaction.remove(ROOT))?;
        Ok(())
    }

    fn get(&mut self, reading: Reading, set: &Set, each: Each<'_>) -> Result<()> {
        let state = self.opened.store.read()?;
        let map = collection(&state)?;
        let calls = &mut self.calls;
        match reading {
            Reading::Whole => Documents::each(calls, &map, set, each, |document, builder, _| {
                document.visit(builder)
            }),
            Reading::Nested => {
                let mut iteration = Nested::default();
                Documents::each(calls, &map, set, each, |document, builder, calls| {
                    iteration.run(document, builder, calls)
                })
            }
            Reading::Cursor => Documents::each(calls, &map, set, each, by_leaves),
        }
    }

    fn scan(&mut self, by: By, _set: &Set, each: Each<'_>) -> Result<()> {
        let state = self.opened.store.read()?;
        let map = collection(&state)?;
        let mut key = Vec::new();
        if by == By::Document {
            let mut children = map.children()?.ok_or_else(missing)?;
            let mut document = map.clone();
            while children.next(&mut document)? {
                let number = children.key(&mut key)?;
                each(number_of(number)?, Answer::Tree(document.to_value()?))?;
            }
            return Ok(());
        }
        let (mut leaves, mut rebuild) = (Leaves::new(map), Rebuild::below(1));
        let (mut builder, mut present) = (ValueBuilder::default(), None);
        while let Some(kept) = leaves.advance()? {
            if kept == 0 && leaves.depth() > 0 {
                if let Some(number) = present {
                    rebuild.finish(&mut builder)?;
                    each(number, finished(std::mem::take(&mut builder))?)?;
                }
                present = Some(number_of(leaves.key(0, &mut key)?)?);
            }
            rebuild.leaf(&leaves, kept, &mut builder)?;
        }
        rebuild.finish(&mut builder)?;
        present.map_or(Ok(()), |number| each(number, finished(builder)?))
    }

    fn get_leaves(&mut self, set: &Set, each: Each<'_>) -> Result<()> {
        let state = self.opened.store.read()?;
        let mut path = String::new();
        for number in 1..=set.len() {
            write_leaf_path(set, number, &mut path);
            each(number, Answer::Tree(state.get(&path)?.ok_or_else(missing)?))?;
        }
        Ok(())
    }

    fn set_leaves(&mut self, set: &Set, numbers: RangeInclusive<usize>) -> Result<()> {
        let mut path = String::new();
        self.opened.store.write(|transaction| {
            numbers.clone().try_for_each(|number| {
                write_leaf_path(set, number, &mut path);
                transaction.replace(&path, &set.leaf_of(number, true))
            })
        })?;
        Ok(())
    }

    fn calls(&mut self) -> Option<Calls> {
        Some(std::mem::take(&mut self.calls))
    }

    fn settle(&mut self) -> Result<()> {
        self.opened.settle().map(drop)
    }

    fn processes(&self) -> Vec<u32> {
        self.opened.processes()
    }

    fn memory_bytes(&self) -> Option<u64> {
        self.opened.memory_bytes()
    }
}

/// Iteration over the levels of a document, one sibling after the other.
#[derive(Default)]
struct Nested<'s> {
    levels: Vec<ReachedChildren<'s>>,
    buffer: Vec<u8>,
}

impl<'s> Nested<'s> {
    fn run(
        &mut self,
        mut node: Reached<'s>,
        builder: &mut ValueBuilder,
        calls: &mut Calls,
    ) -> Result<()> {
        loop {
            match node.children()? {
                // Without members it is a leaf.
                Some(_) if node.count()? == 0 => {
                    node.visit(builder)?;
                    calls.get += 1;
                }
                Some(children) => {
                    builder.open(container(&node)?)?;
                    self.levels.push(children);
                    calls.nxt += 1;
                    calls.cur += 1;
                }
                None => {
                    let leaf = node.leaf(&mut self.buffer)?.ok_or_else(missing)?;
                    builder.scalar(leaf.scalar())?;
                    calls.get += 1;
                }
            }
            while let Some(children) = self.levels.last_mut() {
                if children.next(&mut node)? {
                    calls.nxt += 1;
                    calls.def += 1;
                    if let Some(key) = children.key(&mut self.buffer)? {
                        builder.key(key)?;
                    }
                    break;
                }
                calls.nxt_end += 1;
                self.levels.pop();
                builder.close()?;
            }
            if self.levels.is_empty() {
                return Ok(());
            }
        }
    }
}

fn by_leaves(document: Reached<'_>, builder: &mut ValueBuilder, calls: &mut Calls) -> Result<()> {
    let (mut leaves, mut rebuild) = (Leaves::new(document), Rebuild::default());
    calls.cur += 1;
    calls.nxt += 1;
    while let Some(kept) = leaves.advance()? {
        calls.nxq += 1;
        rebuild.leaf(&leaves, kept, builder)?;
    }
    calls.nxq_end += 1;
    rebuild.finish(builder)
}

fn container(node: &Reached<'_>) -> Result<Container> {
    Ok(if node.kind()? == NodeKind::List { Container::List } else { Container::Map })
}

fn collection(state: &Snapshot) -> Result<Reached<'_>> {
    state.node(ROOT)?.ok_or_else(missing)
}

fn finished(builder: ValueBuilder) -> Result<Answer> {
    builder.finish().map(Answer::Tree).ok_or_else(missing)
}

fn number_of(key: Option<spinney::Key<'_>>) -> Result<usize> {
    match key {
        Some(spinney::Key::Int(number)) => usize::try_from(number).map_err(|_| missing()),
        _ => Err(missing()),
    }
}

/// `$[?@["address"]["city"] == "Redhill"]`.
fn query_text(set: &Set) -> String {
    let mut text = "$[?@".to_owned();
    let mut node = &set.copy(1).value;
    for segment in spinney_core::path::segments(set.leaf()) {
        match node {
            spinney::Value::List(_) => write!(text, "[{segment}]"),
            _ => write!(text, "[{}]", serde_json::Value::from(&*segment)),
        }
        .expect("strings take all");
        let below = spinney_core::Path::root().child(&segment);
        node = node.pointer(&below).unwrap_or(node);
    }
    write!(text, " == {}]", set.wanted()).expect("strings take all");
    text
}

fn write_leaf_path(set: &Set, number: usize, path: &mut String) {
    path.clear();
    write!(path, "{ROOT}/{number}{}", set.leaf()).expect("strings take all");
}

fn missing() -> Error {
    Error::not_found("the collection does not hold what was put there")
}
