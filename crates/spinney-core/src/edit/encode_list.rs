//! Turning the edits of a list into an inline body or into changed pages and counts.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::backend::{Snapshot, TreeId};
use crate::diff::{Delta, ElementDelta, MemberDelta, Step};
use crate::edit::encode_map::member_change;
use crate::edit::list::{ElementValue, ListWork, Now, OpenPage, damaged, gone_pages, rank_between};
use crate::edit::{Base, Body, Edit, Edits, Outcome, Work, outcome};
use crate::error::{Error, Result};
use crate::fill::{Filler, PAGE_HEADER_LEN, page_record, put_page};
use crate::layout::{RecordKind, prefix};
use crate::node;
use crate::page::{self, Entry, Measure, Page};
use crate::part::Part;
use crate::pending::Pending;
use crate::rank::Rank;
use crate::record::ContainerHead;
use crate::visit::Container;

/// Encodes the edits of an opened list; everything opened below it has been encoded.
pub fn encode(edits: &mut Edits, pending: &mut Pending<'_>, index: usize) -> Result<()> {
    let tree = edits.nodes[index].tree;
    let empty = Body::List(Box::new(ListWork::open(pending, tree, Base::Inline(Part::default()))?));
    let Body::List(mut list) = std::mem::replace(&mut edits.nodes[index].body, empty) else {
        unreachable!("it is a list")
    };
    let values = Values::of(&list, &edits.nodes)?;
    let delta = delta(&mut list, &values, &edits.nodes, pending)?;
    let encoded = match list.base {
        Base::Inline(ref body) => {
            let fresh = encode_inline(pending, tree, &list, &values)?;
            let mut stored = Vec::new();
            node::write_inline(Container::List, body, &mut stored);
            (fresh != stored).then_some(fresh)
        }
        Base::Paged(id) => encode_paged(pending, tree, id, &mut list, &values)?,
    };
    let work = &mut edits.nodes[index];
    work.encoded = encoded;
    work.delta = delta;
    work.body = Body::List(list);
    Ok(())
}

/// The new encoded nodes of opened elements, by id.
struct Values(BTreeMap<u64, Arc<[u8]>>);

impl Values {
    fn of(list: &ListWork, nodes: &[Work]) -> Result<Values> {
        let mut values = BTreeMap::new();
        for page in list.pages.values() {
            for element in &page.touched {
                if let ElementValue::Edited(edit @ Edit::Open { .. }) = &element.value
                    && let Outcome::Is(value) = outcome(nodes, edit, None)?
                {
                    values.insert(element.id, value[..].into());
                }
            }
        }
        Ok(Values(values))
    }

    fn entry<'a>(&'a self, (id, now): (u64, Now<'a>)) -> Entry<'a> {
        let value = match now {
            Now::Edited(Edit::Set(encoded)) => encoded,
            Now::Edited(_) => &self.0[&id],
            Now::Stored(stored) => stored,
        };
        Entry { key: &[], id, value }
    }

    /// All elements of an opened page.
    fn entries<'a>(&'a self, list: &'a ListWork, page: &'a OpenPage) -> Result<Vec<Entry<'a>>> {
        Ok(list.elements(page, 0)?.into_iter().map(|element| self.entry(element)).collect())
    }

    /// Those that are not as they are stored.
    fn touched<'a>(
        &'a self,
        list: &'a ListWork,
        page: &'a OpenPage,
    ) -> impl Iterator<Item = Entry<'a>> {
        page.touched.iter().map(|element| self.entry((element.id, list.now(&element.value))))
    }
}

/// An element as it is stored: id, position, encoded node.
type Before<'a> = (u64, u64, &'a [u8]);

/// An element as it is now: id, position, value.
type After<'a> = (u64, u64, Now<'a>);

/// What changed: only opened pages can hold it.
fn delta(
    list: &mut ListWork,
    values: &Values,
    nodes: &[Work],
    pending: &Pending<'_>,
) -> Result<Delta> {
    let mut delta = Delta::default();
    if !list.pages.values().any(|page| page.changed) && gone_pages(list).is_empty() {
        return Ok(delta);
    }
    let (stored_starts, starts) = page_starts(list, pending.snapshot())?;
    // An element that was moved may come from where nothing was touched.
    let untouched = |page: &OpenPage| if list.moved.is_empty() { page.untouched() } else { 0 };
    let before = stored_elements(list, &stored_starts, untouched)?;
    let mut after: Vec<After<'_>> = Vec::new();
    for (page, start) in list.pages.values().zip(starts) {
        let from = untouched(page);
        let positions = start + from as u64..;
        let elements = list.elements(page, from)?.into_iter().zip(positions);
        after.extend(elements.map(|((id, now), position)| (id, position, now)));
    }
    let kept = (!list.moved.is_empty()).then(|| kept_ids(&list.moved, &before, &after));
    let is_kept = |id: u64| match &kept {
        Some(kept) => kept.contains(&id),
        None => id < list.stored_next_id,
    };
    // What was kept is in the same order on both sides.
    let mut stored = before.iter();
    for (id, position, value) in after {
        if !is_kept(id) {
            let value = match value {
                Now::Edited(Edit::Set(encoded)) => Arc::clone(encoded),
                Now::Edited(_) => Arc::clone(&values.0[&id]),
                Now::Stored(stored) => stored.into(),
            };
            delta.put.push(ElementDelta { id, position, value });
            continue;
        }
        let old = loop {
            let &(stored_id, position, old) = stored.next().ok_or_else(damaged)?;
            if stored_id == id {
                break old;
            }
            delta.taken.push(ElementDelta { id: stored_id, position, value: old.into() });
        };
        let Now::Edited(edit) = value else { continue };
        let what = outcome(nodes, edit, Some(old))?;
        if let Some(change) = member_change(nodes, edit, Some(old), &what)? {
            let step = Step::Element { id, position };
            delta.members.push(MemberDelta { step, tree: 0, change });
        }
    }
    let rest = stored.map(|&(id, position, old)| ElementDelta { id, position, value: old.into() });
    delta.taken.extend(rest);
    delta.taken.reverse();
    Ok(delta)
}

/// Where the opened pages start: as they are stored, and as they are now.
fn page_starts(list: &mut ListWork, snapshot: &dyn Snapshot) -> Result<(Vec<u64>, Vec<u64>)> {
    let (mut stored, mut now) = (Vec::new(), Vec::new());
    for &rank in list.stored.keys() {
        stored.push(list.stored_counts.position_of(snapshot, rank)?);
    }
    for &rank in list.pages.keys() {
        now.push(list.counts.position_of(snapshot, rank)?);
    }
    Ok((stored, now))
}

/// The elements of the opened pages as they are stored, but for those of each that are `untouched`.
fn stored_elements<'a>(
    list: &'a ListWork,
    starts: &[u64],
    untouched: impl Fn(&OpenPage) -> usize,
) -> Result<Vec<Before<'a>>> {
    let mut before = Vec::new();
    for ((rank, &source), start) in list.stored.iter().zip(starts) {
        let page = Page::parse(Container::List, &list.sources[source]).ok_or_else(damaged)?;
        for index in list.pages.get(rank).map_or(0, &untouched)..page.count() {
            let (id, value) = page.element(index).ok_or_else(damaged)?;
            before.push((id, start + index as u64, value));
        }
    }
    Ok(before)
}

/// The ids that stayed where they were in relation to all others: those that were not moved, and
/// moved ones when everything came back to where it was.
fn kept_ids(moved: &BTreeSet<u64>, before: &[Before<'_>], after: &[After<'_>]) -> BTreeSet<u64> {
    let stored: BTreeMap<u64, u64> =
        before.iter().map(|&(id, position, _)| (id, position)).collect();
    let back = |&(id, position, _): &After<'_>| stored.get(&id) == Some(&position);
    let all_back = before.len() == after.len() && after.iter().all(back);
    let kept = |id: &u64| stored.contains_key(id) && (all_back || !moved.contains(id));
    after.iter().map(|&(id, ..)| id).filter(kept).collect()
}

fn encode_inline(
    pending: &mut Pending<'_>,
    tree: TreeId,
    list: &ListWork,
    values: &Values,
) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    let mut elements: Vec<Entry<'_>> = Vec::new();
    for page in list.pages.values() {
        elements.append(&mut values.entries(list, page)?);
    }
    if let Some(body) = small_body(pending, &elements, list.next_id) {
        node::write_inline(Container::List, &body, &mut out);
        return Ok(out);
    }
    let id = pending.new_id(tree)?;
    let mut filler = Filler::new(Container::List, tree, id).without_writing_ahead();
    filler.set_next_id(list.next_id);
    filler.finish_with(pending, elements.len(), |index| elements[index])?;
    node::write_paged(Container::List, id, &mut out);
    Ok(out)
}

fn small_body(pending: &Pending<'_>, elements: &[Entry<'_>], next_id: u64) -> Option<Vec<u8>> {
    let limit = pending.sizes.inline_len_max;
    if elements.iter().map(|entry| entry.value.len()).sum::<usize>() > limit {
        return None;
    }
    let mut body = Vec::new();
    page::encode(
        Container::List,
        elements.len(),
        |index| elements[index],
        Some(next_id),
        &mut body,
    );
    (body.len() <= limit).then_some(body)
}

fn encode_paged(
    pending: &mut Pending<'_>,
    tree: TreeId,
    id: u64,
    list: &mut ListWork,
    values: &Values,
) -> Result<Option<Vec<u8>>> {
    let fits = pending.sizes.page_len_max - PAGE_HEADER_LEN;
    let large = join_small(pending, list, values, fits)?;
    split_large(pending, list, values, fits, large)?;
    let page_key = |rank: Rank| {
        let mut key = prefix(tree, RecordKind::Page, id).to_vec();
        crate::rank::write(rank, &mut key);
        key
    };
    for rank in gone_pages(list) {
        pending.delete(&page_key(rank));
    }
    if let Some(inline) = inlined(pending, list, values)? {
        for &rank in list.pages.keys() {
            pending.delete(&page_key(rank));
        }
        pending.delete(&ContainerHead::key(tree, id));
        for (key, _) in list.counts.save() {
            pending.delete(&key);
        }
        return Ok(Some(inline));
    }
    for (&rank, page) in list.pages.iter().filter(|(_, page)| page.changed) {
        let key = page_key(rank);
        if extend_record(pending, &key, list, values, page)? {
            continue;
        }
        let entries = values.entries(list, page)?;
        let record =
            page_record(Container::List, &key, None, entries.len(), |index| entries[index]);
        pending.put(&key, &record);
    }
    if !list.counts.is_dirty() {
        return Ok(None);
    }
    for (key, record) in list.counts.save() {
        match record {
            Some(record) => pending.put(&key, &record),
            None => pending.delete(&key),
        }
    }
    let (height, counts) = list.counts.root();
    let head = ContainerHead {
        container: Container::List,
        count: list.len(),
        next_id: list.next_id,
        height,
        counts,
    };
    pending.put(&ContainerHead::key(tree, id), &head.encode(tree, id));
    Ok(None)
}

/// Writes a page by copying what is untouched; false when that is not enough.
fn extend_record(
    pending: &mut Pending<'_>,
    key: &[u8],
    list: &ListWork,
    values: &Values,
    page: &OpenPage,
) -> Result<bool> {
    if page.untouched() == 0 {
        return Ok(false);
    }
    let stored = list.stored_page(page)?;
    let touched: Vec<Entry<'_>> = values.touched(list, page).collect();
    Ok(put_page(pending, key, |record| {
        page::extend(&stored, page.untouched(), &touched, record).is_some()
    }))
}

/// At most this many bytes of body.
fn body_len_max(list: &ListWork, values: &Values, page: &OpenPage) -> Result<usize> {
    let untouched = match page.untouched() {
        0 => Some(Measure::default()),
        count => Measure::of_first(&list.stored_page(page)?, count),
    };
    let measure = values
        .touched(list, page)
        .fold(untouched.ok_or_else(damaged)?, |measure, entry| measure.with(&[], &entry));
    Ok(measure.body_len_max())
}

/// The opened pages that differ from what is stored.
fn changed_pages(list: &ListWork) -> Vec<Rank> {
    list.pages.iter().filter(|(_, page)| page.changed).map(|(&rank, _)| rank).collect()
}

/// Joins changed pages that have become small with the page behind them; those that have become too large.
fn join_small(
    pending: &Pending<'_>,
    list: &mut ListWork,
    values: &Values,
    fits: usize,
) -> Result<Vec<Rank>> {
    let view = pending.view();
    let mut large = Vec::new();
    for rank in changed_pages(list) {
        let Some(page) = list.pages.get(&rank) else { continue };
        let len = body_len_max(list, values, page)?;
        if len > fits {
            large.push(rank);
        }
        if len >= fits / 4 {
            continue;
        }
        let Some(next) = list.counts.next(view.snapshot, rank)? else { continue };
        list.open_page(&view, next)?;
        if len + body_len_max(list, values, &list.pages[&next])? > fits * 3 / 4 {
            continue;
        }
        let behind = list.take_page(next)?;
        list.counts.remove(view.snapshot, next)?;
        let page = list.pages.get_mut(&rank).expect("it is open");
        page.touched.extend(behind.touched);
        let count = page.len() as u64;
        list.counts.set(view.snapshot, rank, count)?;
    }
    Ok(large)
}

/// Splits pages that are too large until each fits its record.
fn split_large(
    pending: &Pending<'_>,
    list: &mut ListWork,
    values: &Values,
    fits: usize,
    mut pending_ranks: Vec<Rank>,
) -> Result<()> {
    let view = pending.view();
    while let Some(rank) = pending_ranks.pop() {
        let Some(page) = list.pages.get(&rank) else { continue };
        let len = body_len_max(list, values, page)?;
        if len <= fits || page.len() <= 1 {
            continue;
        }
        let next = list.counts.next(view.snapshot, rank)?;
        let Some(right_rank) = rank_between(rank, next) else {
            list.respread(&view, rank)?;
            pending_ranks = changed_pages(list);
            continue;
        };
        let target = match next {
            None => fits,
            Some(_) => (len / len.div_ceil(fits)).max(fits / 2),
        };
        let mut measure = Measure::default();
        let mut at = 0;
        for entry in &values.entries(list, page)? {
            let with = measure.with(&[], entry);
            let full = with.body_len_max() > fits || measure.body_len_max() >= target;
            if at > 0 && full {
                break;
            }
            measure = with;
            at += 1;
        }
        if at == page.len() {
            continue;
        }
        let right = list.split_off(rank, at)?;
        let (left_len, right_len) = (at as u64, right.len() as u64);
        list.pages.insert(right_rank, right);
        list.counts.set(view.snapshot, rank, left_len)?;
        list.counts.insert(view.snapshot, right_rank, right_len)?;
        pending_ranks.push(right_rank);
    }
    Ok(())
}

/// The list as an inline node when one small page, or none, is left.
fn inlined(pending: &Pending<'_>, list: &mut ListWork, values: &Values) -> Result<Option<Vec<u8>>> {
    let only = list.counts.last(pending.snapshot())?;
    let mut out = Vec::new();
    let elements: Vec<Entry<'_>> = match only {
        None => Vec::new(),
        Some(rank) => {
            let Some(page) = list.pages.get(&rank) else { return Ok(None) };
            if list.len() != page.len() as u64 || list.len() > 64 {
                return Ok(None);
            }
            values.entries(list, page)?
        }
    };
    match small_body(pending, &elements, list.next_id) {
        Some(body) if body.len() <= pending.sizes.inline_len_max / 2 => {
            node::write_inline(Container::List, &body, &mut out);
            Ok(Some(out))
        }
        _ if elements.is_empty() => Err(Error::corrupted("an empty list does not encode")),
        _ => Ok(None),
    }
}
