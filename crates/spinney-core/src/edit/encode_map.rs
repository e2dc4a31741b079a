//! Turning the edits of a map into an inline body or into changed pages.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::Arc;

use crate::backend::{Direction, Record, TreeId};
use crate::diff::{MemberChange, MemberDelta, Step};
use crate::edit::{Base, Body, Edit, Edits, Outcome, Work, outcome};
use crate::error::{Error, Result};
use crate::fill::{
    Filler, PAGE_HEADER_LEN, page_record, put_page, shortest_separator, write_page_header,
};
use crate::key::EncodedKey;
use crate::layout::{PREFIX_LEN, RecordKind, prefix};
use crate::members::Members;
use crate::node::{self, Node};
use crate::page::{self, Entry, Measure, Page};
use crate::pending::{Pending, StoredPage};
use crate::rank::{self, Rank};
use crate::record::{ContainerHead, seal};
use crate::separator::{self, tie_of};
use crate::view::PageRecord;
use crate::visit::Container;

/// The key of a member and what becomes of it.
type Fresh<'a> = (&'a [u8], Option<Cow<'a, [u8]>>);

/// What the edits of a map come to.
struct Changes<'a> {
    fresh: Vec<Fresh<'a>>,
    added: u64,
    removed: u64,
    members: Vec<MemberDelta>,
}

impl<'a> Changes<'a> {
    fn with_capacity(edits: usize) -> Changes<'a> {
        // On the way to an edit there is often nothing fresh.
        Changes { fresh: Vec::new(), added: 0, removed: 0, members: Vec::with_capacity(edits) }
    }

    fn note(&mut self, key: &EncodedKey, tree: TreeId, change: MemberChange) {
        self.members.push(MemberDelta { step: Step::Key(key.clone()), tree, change });
    }

    /// What changed in a member is told by what changed below it.
    fn note_below(&mut self, key: &EncodedKey, node: usize, nodes: &[Work]) {
        if nodes[node].changed {
            self.note(key, nodes[node].tree, MemberChange::Below { node, meta: None });
        }
    }

    fn set(&mut self, key: &'a [u8], value: Cow<'a, [u8]>, existed: bool) {
        self.added += u64::from(!existed);
        self.fresh.push((key, Some(value)));
    }

    fn remove(&mut self, key: &'a [u8]) {
        self.removed += 1;
        self.fresh.push((key, None));
    }
}

/// Encodes the edits of an opened map; everything opened below it has been encoded.
pub fn encode(edits: &mut Edits, pending: &mut Pending<'_>, index: usize) -> Result<()> {
    let Body::Map(map) = &mut edits.nodes[index].body else { unreachable!("it is a map") };
    let staged = std::mem::take(&mut map.edits);
    let (base, catalogue) = (map.base.clone(), map.catalogue);
    let (tree, changed) = (edits.nodes[index].tree, edits.nodes[index].changed);
    let changes = match catalogue {
        true => catalogue_changes(edits, pending, &staged)?,
        false => member_changes(edits, pending, index, &staged)?,
    };
    let Changes { fresh, added, removed, members } = changes;
    let encoded = match (fresh.is_empty(), &base) {
        (true, Base::Inline(body)) if !body.is_empty() || !changed => None,
        (true, Base::Paged(_)) => None,
        (_, Base::Inline(body)) => Some(encode_inline(pending, tree, body, &fresh)?),
        (_, Base::Paged(id)) => encode_paged(pending, tree, *id, &fresh, added, removed)?,
    };
    drop(fresh);
    let work = &mut edits.nodes[index];
    work.encoded = encoded;
    work.delta.members = members;
    if let Body::Map(map) = &mut work.body {
        map.edits = staged;
    }
    Ok(())
}

/// The changes of any map but the catalogue.
fn member_changes<'a>(
    edits: &'a Edits,
    pending: &Pending<'_>,
    index: usize,
    staged: &'a Members<Edit>,
) -> Result<Changes<'a>> {
    let work = &edits.nodes[index];
    let Body::Map(map) = &work.body else { unreachable!("it is a map") };
    let empty = matches!(&map.base, Base::Inline(body) if body.is_empty());
    let mut changes = Changes::with_capacity(staged.len());
    for (key, edit) in staged.iter() {
        if let Some((child, root)) = in_place(&edits.nodes, edit) {
            changes.note_below(key, child, &edits.nodes);
            root.into_iter().for_each(|root| changes.set(key, root, true));
            continue;
        }
        let stored = match empty {
            true => None,
            false => edits.stored_member(pending, index, key)?,
        };
        let outcome = outcome(&edits.nodes, edit, stored.as_deref())?;
        if work.in_diff || stored.is_some() {
            let change = member_change(&edits.nodes, edit, stored.as_deref(), &outcome)?;
            change.into_iter().for_each(|change| changes.note(key, work.tree, change));
        }
        match outcome {
            Outcome::Same => {}
            Outcome::Gone => changes.remove(key),
            Outcome::Is(value) => changes.set(key, value, stored.is_some()),
        }
    }
    Ok(changes)
}

/// The changes of the catalogue, whose members' nodes are the roots of their own trees: an entry
/// only names its tree, and the root goes to the tree's head.
fn catalogue_changes<'a>(
    edits: &'a Edits,
    pending: &mut Pending<'_>,
    staged: &'a Members<Edit>,
) -> Result<Changes<'a>> {
    let live = OnceCell::new();
    let live = || live.get_or_init(|| live_trees(edits, staged));
    let mut changes = Changes::with_capacity(staged.len());
    for (key, edit) in staged.iter() {
        if let Some((child, root)) = in_place(&edits.nodes, edit) {
            changes.note_below(key, child, &edits.nodes);
            if let Some(root) = root {
                pending.head(edits.nodes[child].tree)?.root = root.into();
            }
            continue;
        }
        let stored = edits.stored_member(pending, 0, key)?;
        let stored_tree = edits.stored_tree(pending, key)?;
        let own_tree = edits.member_tree(pending, 0, key)?;
        if stored_tree == own_tree {
            let Some(tree) = own_tree else { continue };
            let outcome = outcome(&edits.nodes, edit, stored.as_deref())?;
            let change = member_change(&edits.nodes, edit, stored.as_deref(), &outcome)?;
            change.into_iter().for_each(|change| changes.note(key, tree, change));
            match outcome {
                Outcome::Same => {}
                Outcome::Is(root) => pending.head(tree)?.root = root.into(),
                Outcome::Gone => {
                    if !live().contains(&tree) {
                        pending.head(tree)?.root = Vec::new();
                    }
                    changes.remove(key);
                }
            }
            continue;
        }
        // Another tree takes the name, or none does: the stored one went elsewhere or is gone.
        let existed = stored.is_some();
        if let (Some(tree), Some(old)) = (stored_tree, stored) {
            if !live().contains(&tree) {
                pending.head(tree)?.root = Vec::new();
            }
            changes.note(key, tree, MemberChange::Node { old: Some((*old).into()), new: None });
        }
        match (own_tree, outcome(&edits.nodes, edit, None)?) {
            (Some(tree), Outcome::Is(root)) => {
                let new = Some(root[..].into());
                changes.note(key, tree, MemberChange::Node { old: None, new });
                pending.head(tree)?.root = root.into();
                let mut reference = Vec::new();
                node::write_tree(tree, &mut reference);
                changes.set(key, reference.into(), existed);
            }
            _ if existed => changes.remove(key),
            _ => {}
        }
    }
    Ok(changes)
}

/// The trees that have a name after the edits of the catalogue.
fn live_trees(edits: &Edits, staged: &Members<Edit>) -> BTreeSet<TreeId> {
    let named = |key: &EncodedKey| !matches!(staged.get(key), Some(Edit::Removed));
    edits.trees.iter().filter(|(key, _)| named(key)).map(|(_, &tree)| tree).collect()
}

/// Of a container that is where it is stored: its index, and its encoded node when that is another
/// now.
fn in_place<'a>(nodes: &'a [Work], edit: &Edit) -> Option<(usize, Option<Cow<'a, [u8]>>)> {
    let Edit::Open { meta, node, in_place: true } = edit else { return None };
    let is_new = |encoded: &Vec<u8>| !nodes[*node].is_stored_as(encoded);
    let fresh = nodes[*node].encoded.as_ref().is_some_and(is_new);
    Some((*node, fresh.then(|| nodes[*node].fresh(meta))))
}

/// What the diff says of a member.
pub fn member_change(
    nodes: &[Work],
    edit: &Edit,
    stored: Option<&[u8]>,
    outcome: &Outcome<'_>,
) -> Result<Option<MemberChange>> {
    // An opened container that was there before is described by what changed below it.
    if let (Edit::Open { meta, node, .. }, Some(stored)) = (edit, stored)
        && nodes[*node].is_stored_as(stored)
    {
        let (old_meta, _) = node::split_meta(stored)
            .ok_or_else(|| Error::corrupted("a stored node does not read"))?;
        let meta = (old_meta != &**meta).then(|| (old_meta.into(), meta[..].into()));
        let changed = nodes[*node].changed || meta.is_some();
        return Ok(changed.then_some(MemberChange::Below { node: *node, meta }));
    }
    Ok(match outcome {
        Outcome::Same => None,
        Outcome::Gone => Some(MemberChange::Node { old: stored.map(Into::into), new: None }),
        Outcome::Is(new) => {
            let new = match edit {
                Edit::Set(encoded) => Arc::clone(encoded),
                _ => new[..].into(),
            };
            Some(MemberChange::Node { old: stored.map(Into::into), new: Some(new) })
        }
    })
}

impl Work {
    /// Whether this container was opened from an encoded node, metadata aside.
    fn is_stored_as(&self, stored: &[u8]) -> bool {
        let base = match &self.body {
            Body::Map(map) => &map.base,
            Body::List(list) => &list.base,
        };
        let stored = node::read(stored).map(|annotated| annotated.node);
        match (stored, base) {
            (Some(Node::Inline(container, body)), Base::Inline(base)) => {
                container == self.container() && *body == **base
            }
            (Some(Node::Paged(container, id)), Base::Paged(base)) => {
                container == self.container() && id == *base
            }
            _ => false,
        }
    }
}

/// The stored entries with the fresh ones laid over them, in order.
fn merged<'a>(page: &Page<'a>, keys: &'a Keys, fresh: &'a [Fresh<'a>]) -> Option<Vec<Entry<'a>>> {
    let mut entries = Vec::with_capacity(page.count() + fresh.len());
    let mut fresh = fresh.iter().peekable();
    for (index, key) in keys.iter().enumerate() {
        let value = page.value(index)?;
        while let Some((fresh_key, fresh_value)) =
            fresh.next_if(|(fresh_key, _)| **fresh_key < *key)
        {
            entries.extend(fresh_value.as_deref().map(|value| Entry {
                key: fresh_key,
                id: 0,
                value,
            }));
        }
        match fresh.next_if(|(fresh_key, _)| **fresh_key == *key) {
            None => entries.push(Entry { key, id: 0, value }),
            Some((_, None)) => {}
            Some((_, Some(value))) => entries.push(Entry { key, id: 0, value }),
        }
    }
    for (key, value) in fresh {
        entries.extend(value.as_deref().map(|value| Entry { key, id: 0, value }));
    }
    Some(entries)
}

/// The whole keys of a page, in one buffer.
#[derive(Default)]
struct Keys {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Keys {
    fn of(page: &Page<'_>) -> Result<Keys> {
        let mut keys = Keys::default();
        keys.ends.reserve(page.count());
        for index in 0..page.count() {
            page.key_into(index, &mut keys.bytes).ok_or_else(damaged)?;
            keys.ends.push(keys.bytes.len());
        }
        Ok(keys)
    }

    fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, &end)| &self.bytes[start..end])
    }

    fn last(&self) -> Option<&[u8]> {
        let (&end, before) = self.ends.split_last()?;
        Some(&self.bytes[before.last().copied().unwrap_or(0)..end])
    }
}

fn damaged() -> Error {
    Error::corrupted("a stored map does not read; run `check` to find what is damaged")
}

/// At most this many bytes of body.
fn body_len_max(entries: &[Entry<'_>]) -> usize {
    Measure::of_sorted(entries).body_len_max()
}

fn encode_inline(
    pending: &mut Pending<'_>,
    tree: TreeId,
    body: &[u8],
    fresh: &[Fresh<'_>],
) -> Result<Vec<u8>> {
    let page = Page::parse(Container::Map, body).ok_or_else(damaged)?;
    let mut out = Vec::new();
    let mut spliced = Vec::new();
    if let [(key, value)] = fresh
        && page::splice(&page, key, value.as_deref(), &mut spliced).is_some()
        && spliced.len() <= pending.sizes.inline_len_max
    {
        out.reserve(spliced.len() + 4);
        node::write_inline(Container::Map, &spliced, &mut out);
        return Ok(out);
    }
    let keys = Keys::of(&page)?;
    let entries = merged(&page, &keys, fresh).ok_or_else(damaged)?;
    if let Some(body) = small_body(pending, &entries) {
        node::write_inline(Container::Map, &body, &mut out);
        return Ok(out);
    }
    let id = pending.new_id(tree)?;
    let filler = Filler::new(Container::Map, tree, id).without_writing_ahead();
    filler.finish_with(pending, entries.len(), |index| entries[index])?;
    node::write_paged(Container::Map, id, &mut out);
    Ok(out)
}

/// The body of a map that is small enough to be stored inside its parent.
fn small_body(pending: &Pending<'_>, entries: &[Entry<'_>]) -> Option<Vec<u8>> {
    let limit = pending.sizes.inline_len_max;
    if entries.iter().map(|entry| entry.value.len()).sum::<usize>() > limit {
        return None;
    }
    let mut body = Vec::new();
    page::encode(Container::Map, entries.len(), |index| entries[index], None, &mut body);
    (body.len() <= limit).then_some(body)
}

fn encode_paged(
    pending: &mut Pending<'_>,
    tree: TreeId,
    id: u64,
    fresh: &[Fresh<'_>],
    added: u64,
    removed: u64,
) -> Result<Option<Vec<u8>>> {
    let mut pages = Pages { tree, id };
    let mut done = 0;
    while done < fresh.len() {
        done += pages.apply(pending, &fresh[done..])?;
    }
    if added == removed {
        return Ok(None);
    }
    let mut head = ContainerHead::load(pending.snapshot(), tree, id)?;
    head.count = (head.count + added).checked_sub(removed).ok_or_else(damaged)?;
    if removed > 0
        && head.count < 64
        && let Some(inline) = pages.inlined(pending)?
    {
        return Ok(Some(inline));
    }
    pending.put(&ContainerHead::key(tree, id), &head.encode(tree, id));
    Ok(None)
}

/// Sets or removes one member by copying what stays of its page; false when that is not enough.
fn splice_record(
    pending: &mut Pending<'_>,
    at: &StoredPage,
    page: &Page<'_>,
    key: &[u8],
    value: Option<&[u8]>,
) -> bool {
    let len_max = pending.sizes.page_len_max;
    put_page(pending, &at.key, |record| {
        // A page that grows too large or small is to be split or joined.
        page::splice(page, key, value, record).is_some()
            && record.len() <= len_max
            && (value.is_some() || record.len() >= len_max / 4)
    })
}

/// The pages of one map.
struct Pages {
    tree: TreeId,
    id: u64,
}

impl Pages {
    /// Applies the first edits, those of one page; returns how many.
    fn apply(&mut self, pending: &mut Pending<'_>, fresh: &[Fresh<'_>]) -> Result<usize> {
        let copied = pending.map_page(self.tree, self.id, fresh[0].0)?;
        let page = Page::parse(Container::Map, &copied.body).ok_or_else(damaged)?;
        if let [(key, value)] = fresh
            && copied.cut_len.is_none()
            && splice_record(pending, &copied, &page, key, value.as_deref())
        {
            return Ok(1);
        }
        let keys = Keys::of(&page)?;
        let mut next: Option<Option<Arc<StoredPage>>> = None;
        let mut count = 1;
        while count < fresh.len() {
            let key = &fresh[count].0;
            if keys.last().is_none_or(|last| *last < **key) {
                if next.is_none() {
                    let behind = self.beside(pending, &copied.key, Direction::Forward)?;
                    next = Some(behind.map(Arc::new));
                }
                if let Some(Some(next)) = &next
                    && next.separator()?.is_at_or_below(key)
                {
                    pending.remember_page(Arc::clone(next));
                    break;
                }
            }
            count += 1;
        }
        let entries = merged(&page, &keys, &fresh[..count]).ok_or_else(damaged)?;
        let appended = keys.last().is_some_and(|last| *fresh[0].0 > *last);
        self.write(pending, &copied, &entries, appended)?;
        Ok(count)
    }

    /// The page before or after the one with an engine key.
    fn beside(
        &self,
        pending: &Pending<'_>,
        key: &[u8],
        direction: Direction,
    ) -> Result<Option<StoredPage>> {
        match self.record_beside(pending, key, direction)? {
            None => Ok(None),
            Some((key, record)) => Ok(Some(StoredPage::of(PageRecord::open(key, record)?))),
        }
    }

    fn record_beside<'p>(
        &self,
        pending: &'p Pending<'_>,
        key: &[u8],
        direction: Direction,
    ) -> Result<Option<Record<'p>>> {
        let (first, end) = (
            prefix(self.tree, RecordKind::Page, self.id),
            prefix(self.tree, RecordKind::Page, self.id + 1),
        );
        let bounds = match direction {
            Direction::Forward => (Bound::Excluded(key), Bound::Excluded(&end[..])),
            Direction::Backward => (Bound::Included(&first[..]), Bound::Excluded(key)),
        };
        pending.snapshot().range(bounds, direction)?.next().transpose()
    }

    /// Writes the entries of a page: in place, joined with a neighbour, or split.
    fn write(
        &mut self,
        pending: &mut Pending<'_>,
        at: &StoredPage,
        entries: &[Entry<'_>],
        appended: bool,
    ) -> Result<()> {
        let fits = pending.sizes.page_len_max - PAGE_HEADER_LEN;
        if entries.is_empty() && !at.is_first() {
            pending.delete(&at.key);
            return Ok(());
        }
        let len = body_len_max(entries);
        if len < fits / 4 && self.join(pending, at, entries, fits)? {
            return Ok(());
        }
        if len <= fits || entries.len() == 1 {
            self.replace(pending, at, entries)?;
            return Ok(());
        }
        self.split(pending, at, entries, appended, len)
    }

    /// Writes the entries over those of a page; returns the engine key that they get.
    ///
    /// A cut separator is the beginning of the first key. Where the first key no longer starts with
    /// it, the separator rises to the shortest beginning that is above it.
    fn replace(
        &self,
        pending: &mut Pending<'_>,
        at: &StoredPage,
        entries: &[Entry<'_>],
    ) -> Result<Vec<u8>> {
        let (mut key, mut cut_len) = (at.key.to_vec(), at.cut_len);
        if let (Some(_), Some(first)) = (cut_len, entries.first()) {
            let separator = at.separator()?.raised(first.key);
            cut_len = Some(separator.len());
            if separator.len() <= separator::len_max(pending.sizes.key_len_max) {
                pending.delete(&key);
                (key, cut_len) = (separator::page_key(self.tree, self.id, separator), None);
            }
        }
        self.put(pending, &key, cut_len, entries);
        Ok(key)
    }

    fn put(
        &self,
        pending: &mut Pending<'_>,
        key: &[u8],
        cut_len: Option<usize>,
        entries: &[Entry<'_>],
    ) {
        let entry = |index: usize| entries[index];
        let record = page_record(Container::Map, key, cut_len, entries.len(), entry);
        pending.put_shared(key, record.into());
    }

    /// Joins a small page with the next or the previous one, when both fit well into one.
    fn join(
        &self,
        pending: &mut Pending<'_>,
        at: &StoredPage,
        entries: &[Entry<'_>],
        fits: usize,
    ) -> Result<bool> {
        for direction in [Direction::Forward, Direction::Backward] {
            let Some(other) = self.beside(pending, &at.key, direction)? else { continue };
            let page = Page::parse(Container::Map, &other.body).ok_or_else(damaged)?;
            let keys = Keys::of(&page)?;
            let theirs = merged(&page, &keys, &[]).ok_or_else(damaged)?;
            let (left, right, both) = match direction {
                Direction::Forward => (at, &other, [entries, &theirs].concat()),
                Direction::Backward => (&other, at, [&theirs, entries].concat()),
            };
            if body_len_max(&both) <= fits * 3 / 4 || entries.is_empty() {
                self.replace(pending, left, &both)?;
                pending.delete(&right.key);
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Splits entries over several pages: full ones when they were appended, else even ones.
    fn split(
        &mut self,
        pending: &mut Pending<'_>,
        at: &StoredPage,
        entries: &[Entry<'_>],
        appended: bool,
        len: usize,
    ) -> Result<()> {
        let fits = pending.sizes.page_len_max - PAGE_HEADER_LEN;
        let target = if appended { fits } else { (len / len.div_ceil(fits)).max(fits / 2) };
        let mut pieces: Vec<&[Entry<'_>]> = Vec::new();
        let mut start = 0;
        let mut measure = Measure::default();
        for (index, entry) in entries.iter().enumerate() {
            let with = measure.with(entries[start].key, entry);
            let full = with.body_len_max() > fits || measure.body_len_max() >= target;
            if measure.count() > 0 && full {
                pieces.push(&entries[start..index]);
                start = index;
                measure = Measure::default().with(entry.key, entry);
            } else {
                measure = with;
            }
        }
        pieces.push(&entries[start..]);
        let mut left_key = self.replace(pending, at, pieces[0])?;
        for pair in pieces.windows(2) {
            let separator = shortest_separator(pair[0][pair[0].len() - 1].key, pair[1][0].key);
            let (key, cut_len) = self.new_key(pending, &left_key, separator)?;
            self.put(pending, &key, cut_len, pair[1]);
            left_key = key;
        }
        Ok(())
    }

    /// The engine key of a new page with a separator, and the separator's length when it is cut;
    /// `left` is the key of the page before it.
    fn new_key(
        &mut self,
        pending: &mut Pending<'_>,
        left: &[u8],
        separator: &[u8],
    ) -> Result<(Vec<u8>, Option<usize>)> {
        let key_len_max = pending.sizes.key_len_max;
        if separator.len() <= separator::len_max(key_len_max) {
            return Ok((separator::page_key(self.tree, self.id, separator), None));
        }
        let cut_len = PREFIX_LEN + separator::len_max(key_len_max);
        let with_tie = |tie| separator::cut_key(self.tree, self.id, separator, tie, key_len_max);
        let same_cut = with_tie(0);
        let tie_if_same =
            |key: &[u8]| tie_of(key, key_len_max).filter(|_| key[..cut_len] == same_cut[..cut_len]);
        let low = tie_if_same(left);
        let next = self.record_beside(pending, left, Direction::Forward)?;
        let high = next.and_then(|(next, _)| tie_if_same(&next));
        let tie = match (low, high) {
            (None, None) => Some(Rank::MAX / 2 + 1),
            (Some(low), None) => rank::after(low),
            (low, Some(high)) => rank::between(low.unwrap_or(0), high),
        };
        let tie = match tie {
            Some(tie) => tie,
            None => self.respread(pending, left, cut_len, low)?,
        };
        Ok((with_tie(tie), Some(separator.len())))
    }

    /// Makes room behind the page `left` among the pages that share its cut: moves those behind it
    /// to evenly spread tie-breaks, and returns a free one before them.
    fn respread(
        &self,
        pending: &mut Pending<'_>,
        left: &[u8],
        cut_len: usize,
        low: Option<Rank>,
    ) -> Result<Rank> {
        let key_len_max = pending.sizes.key_len_max;
        let low = low.unwrap_or(0);
        let mut moved: Vec<StoredPage> = Vec::new();
        let mut from = left.to_vec();
        let mut window = 32;
        let high = loop {
            let next = self.beside(pending, &from, Direction::Forward)?;
            let tie = next.as_ref().and_then(|next| {
                let same = moved.first().is_none_or(|first| {
                    next.key[..cut_len.min(next.key.len())] == first.key[..cut_len]
                });
                tie_of(&next.key, key_len_max).filter(|_| same)
            });
            match (next, tie) {
                (Some(next), Some(tie)) => {
                    if moved.len() >= window {
                        if (tie - low) / (moved.len() as Rank + 2) >= 1 << 32 {
                            break tie;
                        }
                        window *= 2;
                    }
                    from = next.key.to_vec();
                    moved.push(next);
                }
                _ => break Rank::MAX,
            }
        };
        let ties = rank::spread(low, high, moved.len() + 1)
            .ok_or_else(|| Error::limit_exceeded("a map has no tie-breaks left"))?;
        for page in &moved {
            pending.delete(&page.key);
        }
        for (page, &tie) in moved.iter().zip(&ties[1..]) {
            let mut key = page.key[..cut_len].to_vec();
            key.extend_from_slice(&tie.to_be_bytes());
            let mut record = Vec::with_capacity(PAGE_HEADER_LEN + 10 + page.body.len());
            write_page_header(page.cut_len, &mut record);
            record.extend_from_slice(&page.body);
            seal(&key, &mut record);
            pending.put_shared(&key, record.into());
        }
        Ok(ties[0])
    }

    /// The map as an inline node when one small page is left; its records are deleted then.
    fn inlined(&self, pending: &mut Pending<'_>) -> Result<Option<Vec<u8>>> {
        let first = prefix(self.tree, RecordKind::Page, self.id);
        let copied = pending.map_page(self.tree, self.id, &[])?;
        if copied.body.len() > pending.sizes.inline_len_max / 2
            || self.beside(pending, &copied.key, Direction::Forward)?.is_some()
        {
            return Ok(None);
        }
        pending.delete(&first);
        pending.delete(&ContainerHead::key(self.tree, self.id));
        let mut out = Vec::new();
        let empty = Page::parse(Container::Map, &copied.body).ok_or_else(damaged)?.count() == 0;
        node::write_inline(Container::Map, if empty { &[] } else { &copied.body }, &mut out);
        Ok(Some(out))
    }
}
