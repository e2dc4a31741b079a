//! Reading a tree with a transaction's edits laid over it.

use crate::edit::list::Now;
use crate::edit::{Body, Edit, Edits};
use crate::error::{Error, Result};
use crate::key::Key;
use crate::node;
use crate::path;
use crate::view::{Slot, View};
use crate::visit::{Container, Visitor};

/// A node as the transaction sees it.
#[derive(Clone)]
pub enum Found<'s> {
    /// Encoded, with no edits below.
    Stored(Slot<'s>),
    /// An opened container.
    Open {
        /// Its encoded metadata.
        meta: &'s [u8],
        /// Its index.
        node: usize,
    },
}

/// The node at a checked path.
pub fn resolve<'s>(edits: &'s Edits, view: &View<'s>, path: &str) -> Result<Option<Found<'s>>> {
    let mut found = Found::Open { meta: &[], node: 0 };
    for segment in path::segments(path) {
        match member(edits, view, &found, &segment)? {
            Some(member) => found = member,
            None => return Ok(None),
        }
    }
    Ok(Some(found))
}

/// The member of a node that a segment names.
pub fn member<'s>(
    edits: &'s Edits,
    view: &View<'s>,
    found: &Found<'s>,
    segment: &str,
) -> Result<Option<Found<'s>>> {
    let node = match found {
        Found::Stored(slot) => {
            let mut slot = slot.clone();
            let found = view.enter(&mut slot, segment, &mut Vec::new())?;
            return Ok(found.then_some(Found::Stored(slot)));
        }
        Found::Open { node, .. } => *node,
    };
    let work = &edits.nodes[node];
    match &work.body {
        Body::Map(map) => {
            let key = Key::new(segment).encoded();
            match map.edits.get(&key) {
                Some(edit) => Ok(edited(edits, node, &key, edit)),
                None => {
                    let mut slot: Slot<'s> = base_slot(edits, node);
                    if !view.enter_key(&mut slot, &key)? {
                        return Ok(None);
                    }
                    view.follow(&mut slot)?;
                    Ok(Some(Found::Stored(slot)))
                }
            }
        }
        Body::List(_) => match path::position(segment) {
            Some(position) => element(edits, view, node, position),
            None => Ok(None),
        },
    }
}

/// The container as it is stored, before the transaction.
fn base_slot(edits: &Edits, node: usize) -> Slot<'static> {
    let work = &edits.nodes[node];
    let mut encoded = Vec::new();
    work.write_base(&mut encoded);
    Slot::owned(work.tree, &encoded)
}

fn edited<'s>(edits: &'s Edits, node: usize, key: &[u8], edit: &'s Edit) -> Option<Found<'s>> {
    let work = &edits.nodes[node];
    match edit {
        Edit::Removed => None,
        Edit::Open { meta, node, .. } => Some(Found::Open { meta, node: *node }),
        Edit::Set(encoded) => {
            let tree = match &work.body {
                Body::Map(map) if map.catalogue => {
                    edits.trees.get(key).copied().unwrap_or(work.tree)
                }
                _ => work.tree,
            };
            Some(Found::Stored(Slot::owned(tree, encoded)))
        }
    }
}

fn element<'s>(
    edits: &'s Edits,
    view: &View<'s>,
    node: usize,
    position: u64,
) -> Result<Option<Found<'s>>> {
    let work = &edits.nodes[node];
    let Body::List(list) = &work.body else { return Ok(None) };
    if position >= list.len() {
        return Ok(None);
    }
    let Some((rank, index)) = list.counts.clone().find(view.snapshot, position)? else {
        return Ok(None);
    };
    match list.pages.get(&rank) {
        Some(page) => {
            let element = list.element_of(page, index as usize)?;
            Ok(element.and_then(|element| element_found(edits, node, element)))
        }
        None => {
            let crate::edit::Base::Paged(id) = list.base else { return Ok(None) };
            let record = view.list_page(work.tree, id, rank)?;
            let page = record.page(Container::List)?;
            Ok(page.value(index as usize).map(|value| Found::Stored(Slot::owned(work.tree, value))))
        }
    }
}

fn element_found<'s>(edits: &'s Edits, node: usize, element: Now<'s>) -> Option<Found<'s>> {
    match element {
        Now::Edited(edit) => edited(edits, node, &[], edit),
        Now::Stored(bytes) => Some(Found::Stored(Slot::owned(edits.nodes[node].tree, bytes))),
    }
}

/// An encoded key, empty in a list, the element's id, 0 in a map, and the node.
type Member<'s> = (Vec<u8>, u64, Found<'s>);

/// The members of an opened container, in order; keys are empty in a list.
fn members<'s>(edits: &'s Edits, view: &View<'s>, node: usize) -> Result<Vec<Member<'s>>> {
    let work = &edits.nodes[node];
    let mut members = Vec::new();
    match &work.body {
        Body::Map(map) => {
            let mut fresh = map.edits.iter().peekable();
            let add = |members: &mut Vec<_>, key: &[u8], edit: &'s Edit| {
                members
                    .extend(edited(edits, node, key, edit).map(|found| (key.to_vec(), 0, found)));
            };
            let mut cursor = view.cursor(&base_slot(edits, node))?.expect("a map has a cursor");
            while cursor.advance()? {
                let mut key = Vec::new();
                cursor.key(&mut Vec::new())?.encode(&mut key);
                while let Some((fresh_key, edit)) =
                    fresh.next_if(|(fresh_key, _)| ***fresh_key < *key)
                {
                    add(&mut members, fresh_key, edit);
                }
                match fresh.next_if(|(fresh_key, _)| ***fresh_key == *key) {
                    Some((_, edit)) => add(&mut members, &key, edit),
                    None => {
                        let mut slot = cursor.slot()?;
                        view.follow(&mut slot)?;
                        members.push((key, 0, Found::Stored(slot)));
                    }
                }
            }
            for (key, edit) in fresh {
                add(&mut members, key, edit);
            }
        }
        Body::List(list) => {
            for (rank, _) in list.counts.clone().pages(view.snapshot)? {
                if let Some(page) = list.pages.get(&rank) {
                    for (id, element) in list.elements(page, 0)? {
                        let found = element_found(edits, node, element);
                        members.extend(found.map(|found| (Vec::new(), id, found)));
                    }
                } else if let crate::edit::Base::Paged(id) = list.base {
                    let record = view.list_page(work.tree, id, rank)?;
                    let page = record.page(Container::List)?;
                    for index in 0..page.count() {
                        let (id, value) = page.element(index).ok_or_else(damaged)?;
                        let found = Found::Stored(Slot::owned(work.tree, value));
                        members.push((Vec::new(), id, found));
                    }
                }
            }
        }
    }
    Ok(members)
}

/// How many members a node has; `None` for one that is no container.
pub fn count(edits: &Edits, view: &View<'_>, found: &Found<'_>) -> Result<Option<u64>> {
    match found {
        Found::Stored(slot) => {
            let slot = Slot::owned(slot.tree, slot.encoded());
            view.count(&slot)
        }
        Found::Open { node, .. } => match &edits.nodes[*node].body {
            Body::List(list) => Ok(Some(list.len())),
            Body::Map(_) => Ok(Some(members(edits, view, *node)?.len() as u64)),
        },
    }
}

/// Drives `visitor` over a node and all below it.
pub fn walk<'s>(
    edits: &'s Edits,
    view: &View<'s>,
    found: Found<'s>,
    visitor: &mut (impl Visitor + ?Sized),
) -> Result<()> {
    let mut stack: Vec<(Container, std::vec::IntoIter<Member<'s>>)> = Vec::new();
    let mut next = Some(found);
    loop {
        match next.take() {
            Some(Found::Stored(slot)) => view.walk(&slot, visitor)?,
            Some(Found::Open { meta, node }) => {
                for entry in node::meta_entries(meta) {
                    let (name, value) = entry.ok_or_else(damaged)?;
                    visitor.meta(name, value)?;
                }
                let container = edits.nodes[node].container();
                visitor.open(container)?;
                stack.push((container, members(edits, view, node)?.into_iter()));
            }
            None => {}
        }
        let Some((container, rest)) = stack.last_mut() else { return Ok(()) };
        match rest.next() {
            Some((key, id, found)) => {
                match container {
                    Container::Map => visitor.key(Key::decode(&key).ok_or_else(damaged)?)?,
                    Container::List => visitor.element(id),
                }
                next = Some(found);
            }
            None => {
                visitor.close()?;
                stack.pop();
            }
        }
    }
}

#[cold]
fn damaged() -> Error {
    Error::corrupted("a stored container does not read; run `check` to find what is damaged")
}
