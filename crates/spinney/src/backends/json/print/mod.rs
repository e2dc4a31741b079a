//! Printing a new state into the text of an old one: what has not changed is copied as it stands.
//!
//! The old text is scanned only along the paths that have changed. Members keep their order; new ones
//! go to the end, or where they belong when the keys of their object are sorted.

mod changed;
mod scan;
mod style;

use std::collections::HashMap;
use std::ops::Range;

use spinney_core::diff::Diff;
use spinney_core::node::Node;
use spinney_core::reclaim::references;
use spinney_core::view::{Slot, View};
use spinney_core::{Container, Error, Key, Path, Result};

use crate::formats::{self, Fidelity, JsonWriter, Layout};
use changed::{Changed, Name};
use scan::Member;
pub use style::Style;
use style::{Gaps, indent_at};

/// The text of the state `now` of the document at a path, from that of the state `before`, behind
/// which the commits with these diffs, from there on, came.
///
/// # Errors
/// Those of reading; `Corrupted` when the text is not that of `before`.
pub fn print_into(
    text: &[u8],
    before: &View<'_>,
    now: &View<'_>,
    place: &Path,
    diffs: &[Diff],
) -> Result<Vec<u8>> {
    let root = scan::root(text);
    let top = match text[root.start] {
        b'{' | b'[' => scan::container(text, root.start),
        _ => Vec::new(),
    };
    let style = Style::of(text, &root, &top);
    let mut printer = Printer { text, style, before, now, edits: Vec::new(), work: Vec::new() };
    let changed = Changed::new(diffs);
    let slot = |view: &View<'_>| view.resolve(place)?.ok_or_else(unlike).map(|slot| own(&slot));
    let (old, new) = (slot(before)?, slot(now)?);
    match changed.is_whole {
        true => printer.replace(root, &old, &new)?,
        false => printer.work.push(Work { range: root, old, new, changed: &changed }),
    }
    while let Some(work) = printer.work.pop() {
        printer.container(work)?;
    }
    Ok(printer.finish())
}

#[cold]
fn unlike() -> Error {
    Error::corrupted("the text is not that of the state it is taken for")
}

fn own(slot: &Slot<'_>) -> Slot<'static> {
    Slot::owned(slot.tree, slot.encoded())
}

struct Printer<'a> {
    text: &'a [u8],
    style: Style,
    before: &'a View<'a>,
    now: &'a View<'a>,
    edits: Vec<(Range<usize>, Vec<u8>)>,
    /// Containers that have changed below themselves.
    work: Vec<Work<'a>>,
}

/// A container that has changed below itself.
struct Work<'a> {
    range: Range<usize>,
    old: Slot<'static>,
    new: Slot<'static>,
    changed: &'a Changed,
}

/// What comes next in a container.
enum Item {
    /// A member that stands in the text.
    Old(usize),
    /// Another text.
    New(Vec<u8>),
}

impl<'a> Printer<'a> {
    fn container(&mut self, work: Work<'a>) -> Result<()> {
        let members = scan::container(self.text, work.range.start);
        let gaps = Gaps::of(self.text, &work.range, &members, &self.style);
        let items = match work.new.read()?.node {
            Node::Inline(Container::Map, _) | Node::Paged(Container::Map, _) => {
                self.map(&work, &members, &gaps)?
            }
            Node::Inline(Container::List, _) | Node::Paged(Container::List, _) => {
                self.list(&work, &members, &gaps)?
            }
            _ => return Err(unlike()),
        };
        self.arrange(&work.range, &members, &gaps, items);
        Ok(())
    }

    /// The members of a map in their new order.
    fn map(&mut self, work: &Work<'a>, members: &[Member], gaps: &Gaps) -> Result<Vec<Item>> {
        let keys: Vec<Vec<u8>> =
            members.iter().map(|member| self.key(member)).collect::<Result<_>>()?;
        let mut added: Vec<(&[u8], Slot<'static>)> = Vec::new();
        let mut seen: HashMap<&[u8], usize> = HashMap::with_capacity(keys.len());
        seen.extend(keys.iter().enumerate().map(|(index, key)| (&key[..], index)));
        let mut is_gone = vec![false; members.len()];
        for (name, changed) in &work.changed.below {
            let Name::Key(key) = name else { return Err(unlike()) };
            let new = member_of(self.now, &work.new, key)?;
            match (seen.get(&**key), new) {
                (None, None) => {}
                (None, Some(new)) => added.push((key, new)),
                (Some(&index), None) => is_gone[index] = true,
                (Some(&index), Some(new)) => {
                    let old = member_of(self.before, &work.old, key)?.ok_or_else(unlike)?;
                    self.member(members[index].value.clone(), old, new, changed)?;
                }
            }
        }
        added.sort_by_key(|(key, _)| *key);
        let is_sorted = keys.is_sorted();
        let mut added = added.into_iter().peekable();
        let mut items = Vec::with_capacity(members.len() + added.len());
        for (index, key) in keys.iter().enumerate() {
            while let Some((new_key, new)) =
                added.next_if(|(new_key, _)| is_sorted && *new_key < &key[..])
            {
                items.push(Item::New(self.entry(new_key, &new, gaps)?));
            }
            if !is_gone[index] {
                items.push(Item::Old(index));
            }
        }
        for (key, new) in added {
            items.push(Item::New(self.entry(key, &new, gaps)?));
        }
        Ok(items)
    }

    /// The elements of a list in their new order; those that stay are known by their ids.
    fn list(&mut self, work: &Work<'a>, members: &[Member], gaps: &Gaps) -> Result<Vec<Item>> {
        let old = elements(self.before, &work.old)?;
        if old.len() != members.len() {
            return Err(unlike());
        }
        let places: HashMap<u64, usize> =
            old.iter().enumerate().map(|(index, (id, _))| (*id, index)).collect();
        let mut items = Vec::new();
        let mut next_index = 0;
        for (id, new) in elements(self.now, &work.new)? {
            let changed = work.changed.below.get(&Name::Element(id));
            items.push(match places.get(&id) {
                // In its place.
                Some(&index) if index >= next_index => {
                    next_index = index + 1;
                    if let Some(changed) = changed {
                        let value = members[index].value.clone();
                        self.member(value, old[index].1.clone(), new, changed)?;
                    }
                    Item::Old(index)
                }
                Some(&index) if changed.is_none() || is_same(&old[index].1, &new)? => {
                    Item::New(self.text[members[index].value.clone()].to_vec())
                }
                _ => Item::New(self.value(&new, gaps.indent.as_deref())?),
            });
        }
        Ok(items)
    }

    /// A member that stays where it is.
    fn member(
        &mut self,
        range: Range<usize>,
        old: Slot<'static>,
        new: Slot<'static>,
        changed: &'a Changed,
    ) -> Result<()> {
        match changed.is_whole {
            true => self.replace(range, &old, &new),
            false => {
                self.work.push(Work { range, old, new, changed });
                Ok(())
            }
        }
    }

    /// Another value in the place of one.
    fn replace(&mut self, range: Range<usize>, old: &Slot<'_>, new: &Slot<'_>) -> Result<()> {
        if is_same(old, new)? {
            return Ok(());
        }
        let replaced = &self.text[range.clone()];
        let is_filled = matches!(replaced[0], b'{' | b'[') && replaced.len() > 2;
        let before = self.text[..range.start].iter().rposition(|&byte| byte == b'\n');
        let is_own_line = before.map_or(range.start == 0, |at| {
            !self.text[at..range.start].iter().any(|byte| matches!(byte, b',' | b'{' | b'['))
        });
        let has_lines = if is_filled { replaced.contains(&b'\n') } else { is_own_line };
        let indent = has_lines.then(|| indent_at(self.text, range.start));
        let value = self.value(new, indent.as_deref())?;
        self.edits.push((range, value));
        Ok(())
    }

    /// Puts the members of a container in order, leaving what stays untouched.
    fn arrange(&mut self, range: &Range<usize>, members: &[Member], gaps: &Gaps, items: Vec<Item>) {
        let mut before: Option<usize> = None;
        let mut added: Vec<Vec<u8>> = Vec::new();
        for item in items {
            match item {
                Item::New(text) => added.push(text),
                Item::Old(index) => {
                    self.gap(range, members, gaps, (before, Some(index)), &added);
                    added.clear();
                    before = Some(index);
                }
            }
        }
        self.gap(range, members, gaps, (before, None), &added);
    }

    /// What stands between two members that stay.
    fn gap(
        &mut self,
        range: &Range<usize>,
        members: &[Member],
        gaps: &Gaps,
        (before, after): (Option<usize>, Option<usize>),
        added: &[Vec<u8>],
    ) {
        let from = before.map_or(range.start + 1, |index| members[index].value.end);
        let to = after.map_or(range.end - 1, |index| members[index].whole().start);
        let is_untouched = after.unwrap_or(members.len()) == before.map_or(0, |index| index + 1);
        if added.is_empty() && is_untouched {
            return;
        }
        let start = if before.is_some() { &gaps.between } else { &gaps.first };
        let end = if after.is_some() { &gaps.between } else { &gaps.last };
        let text = match (added.is_empty(), before, after) {
            (true, None, None) => Vec::new(),
            (true, None, Some(_)) => gaps.first.clone(),
            (true, Some(_), None) => gaps.last.clone(),
            (true, Some(_), Some(index)) => self.text[members[index - 1].value.end..to].to_vec(),
            (false, ..) => [&start[..], &added.join(&gaps.between[..]), end].concat(),
        };
        self.edits.push((from..to, text));
    }

    fn entry(&self, key: &[u8], value: &Slot<'_>, gaps: &Gaps) -> Result<Vec<u8>> {
        let key = Key::decode(key).ok_or_else(unlike)?.text().into_owned();
        let mut text = formats::print(&key.into(), Layout::Compact, Fidelity::Refuse)?.into_bytes();
        text.extend_from_slice(gaps.colon.as_bytes());
        text.append(&mut self.value(value, gaps.indent.as_deref())?);
        Ok(text)
    }

    /// A value of the new state, printed like its neighbours.
    fn value(&self, slot: &Slot<'_>, indent: Option<&str>) -> Result<Vec<u8>> {
        let mut writer = JsonWriter::new(Vec::new(), Layout::Compact, Fidelity::Lossy);
        self.now.walk(&own(slot), &mut writer)?;
        let compact = writer.finish()?;
        let mut text = Vec::with_capacity(compact.len());
        self.style.lay_out(&compact, indent, &mut text);
        Ok(text)
    }

    /// The encoded key of a member.
    fn key(&self, member: &Member) -> Result<Vec<u8>> {
        let quoted = &self.text[member.key.clone()];
        let text = std::str::from_utf8(quoted).map_err(|_| unlike())?;
        let mut encoded = Vec::with_capacity(text.len());
        match text.contains('\\') {
            false => Key::new(&text[1..text.len() - 1]).encode(&mut encoded),
            true => {
                let unquoted = formats::parse(text)?;
                Key::new(unquoted.as_str().ok_or_else(unlike)?).encode(&mut encoded);
            }
        }
        Ok(encoded)
    }

    fn finish(mut self) -> Vec<u8> {
        self.edits.sort_by_key(|(range, _)| (range.start, range.end));
        let mut out = Vec::with_capacity(self.text.len() + self.text.len() / 16);
        let mut at = 0;
        for (range, text) in &self.edits {
            out.extend_from_slice(&self.text[at..range.start]);
            out.extend_from_slice(text);
            at = range.end;
        }
        out.extend_from_slice(&self.text[at..]);
        out
    }
}

/// Whether two nodes are the same without looking into what they refer to.
fn is_same(old: &Slot<'_>, new: &Slot<'_>) -> Result<bool> {
    let mut refers = false;
    references(new.encoded(), |_| refers = true).ok_or_else(unlike)?;
    Ok(!refers && old.encoded() == new.encoded())
}

fn member_of(view: &View<'_>, map: &Slot<'static>, key: &[u8]) -> Result<Option<Slot<'static>>> {
    let key = Key::decode(key).ok_or_else(unlike)?;
    let path = Path::root().child(key.text());
    Ok(view.descend(map.clone(), &path, 0, &mut None)?.map(|member| own(&member)))
}

/// The elements of a list with their ids.
fn elements(view: &View<'_>, list: &Slot<'static>) -> Result<Vec<(u64, Slot<'static>)>> {
    let mut cursor = view.cursor(&list.clone())?.ok_or_else(unlike)?;
    let mut elements = Vec::new();
    while cursor.advance()? {
        elements.push((cursor.id()?, own(&cursor.slot()?)));
    }
    Ok(elements)
}
