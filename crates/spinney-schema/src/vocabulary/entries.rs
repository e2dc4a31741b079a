//! What a change takes from an index and puts into it.

use std::borrow::Cow;
use std::collections::HashSet;
use std::rc::Rc;

use sha2::{Digest, Sha256};
use spinney_core::Value;
use spinney_core::error::Result;

use super::trail::Trail;
use super::{ConstraintId, Rule, Sites};
use crate::changes::{Change, Changes, Inside};
use crate::decimal::Decimal;
use crate::instance::{Instance, Leaf};
use crate::schema::Schema;
use spinney_core::node::NodeKind;

/// Bytes of a value or path that an index key holds as they are; longer ones by their SHA-256, so
/// that keys fit every engine.
const EXACT_LEN_MAX: usize = 64;

/// Few index keys are longer.
const KEY_LEN_USUAL: usize = 32;

/// A node that stands for a key of an index, and comes or goes.
#[derive(Debug)]
pub(crate) struct Occurrence {
    /// The constraint, and the value.
    pub key: Vec<u8>,
    /// Whether it is a value that others refer to; else it refers to one, or is a member with the
    /// same fields.
    pub is_target: bool,
    /// 1 or -1.
    pub sign: i64,
    /// Where, for messages.
    pub trail: Rc<Trail>,
    /// The value, for messages.
    pub value: Vec<Value>,
}

/// What a change takes from an index and puts into it; empty when it does not matter to it.
#[derive(Debug, Default)]
pub struct Entries {
    /// In the order of the keys.
    pub(crate) occurrences: Vec<Occurrence>,
    /// Containers in lists, which are looked through instead: their elements must differ.
    pub(crate) repeated: Vec<(ConstraintId, Rc<Trail>, Vec<Value>)>,
}

impl Schema {
    /// Whether it has keywords that need an index.
    pub fn needs_index(&self) -> bool {
        !self.constraints.is_empty()
    }

    /// What a change takes from the index of this schema and puts into it. With nothing before, that
    /// is all of it.
    ///
    /// # Errors
    /// Those of reading.
    ///
    /// # Complexity
    /// That of the change: added, removed and replaced containers are read where a keyword may apply.
    pub fn entries<I: Instance>(
        &self,
        before: Option<&I>,
        after: Option<&I>,
        changes: &Changes,
    ) -> Result<Entries> {
        let mut collector =
            Collector { schema: self, entries: Entries::default(), pending: vec![] };
        if let Some(change) = changes.root()
            && self.needs_index()
        {
            let sites = Sites::root(self);
            collector.change(change, before.cloned(), after.cloned(), sites, Trail::root());
        }
        while let Some(visit) = collector.pending.pop() {
            match visit {
                Visit::Whole { node, sign, sites, trail } => {
                    collector.whole(&node, sign, &sites, &trail)?;
                }
                Visit::Inside { before, after, inside, sites, trail } => {
                    let inside = changes.inside(inside);
                    collector.inside(&before, &after, inside, &sites, &trail)?;
                }
            }
        }
        collector.entries.occurrences.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(collector.entries)
    }
}

/// A node that is still to be looked at.
enum Visit<I> {
    /// All of it comes or goes.
    Whole { node: I, sign: i64, sites: Rc<Sites>, trail: Rc<Trail> },
    /// Something inside of it changed.
    Inside { before: I, after: I, inside: usize, sites: Rc<Sites>, trail: Rc<Trail> },
}

struct Collector<'s, I> {
    schema: &'s Schema,
    entries: Entries,
    pending: Vec<Visit<I>>,
}

impl<I: Instance> Collector<'_, I> {
    fn change(
        &mut self,
        change: Change,
        before: Option<I>,
        after: Option<I>,
        sites: Rc<Sites>,
        trail: Rc<Trail>,
    ) {
        if sites.is_empty() {
            return;
        }
        match (change, before, after) {
            (Change::Within(inside), Some(before), Some(after)) => {
                self.pending.push(Visit::Inside { before, after, inside, sites, trail });
            }
            (_, before, after) => {
                for (node, sign) in [(before, -1), (after, 1)] {
                    if let Some(node) = node {
                        let (sites, trail) = (Rc::clone(&sites), Rc::clone(&trail));
                        self.pending.push(Visit::Whole { node, sign, sites, trail });
                    }
                }
            }
        }
    }

    /// A node that comes or goes with everything below.
    fn whole(&mut self, node: &I, sign: i64, sites: &Sites, trail: &Rc<Trail>) -> Result<()> {
        for &id in &sites.targets {
            let Rule::Reference(target) = &self.schema.constraints[id].rule else { continue };
            if target.keys {
                if let Some(key) = trail.key() {
                    self.add(id, Leaf::String(key.into()), sign, trail, true);
                }
            } else if let Some(leaf) = node.leaf()? {
                self.add(id, leaf, sign, trail, true);
            }
        }
        let uniques = self.own(node, sign, sites, trail)?;
        match node.kind()? {
            NodeKind::Map => {
                for member in node.members()? {
                    let (key, value) = member?;
                    let below = sites.member(self.schema, &key);
                    if uniques.is_empty() && below.is_empty() {
                        continue;
                    }
                    self.below(value, sign, below, trail.member(key), &uniques)?;
                }
            }
            NodeKind::List => {
                for (position, element) in node.elements(0)?.enumerate() {
                    let element = element?;
                    let below = sites.element(self.schema, position as u64);
                    if uniques.is_empty() && below.is_empty() {
                        continue;
                    }
                    let trail = trail.element(position as u64);
                    self.below(element, sign, below, trail, &uniques)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// A member that comes or goes with its container.
    fn below(
        &mut self,
        member: I,
        sign: i64,
        sites: Rc<Sites>,
        trail: Rc<Trail>,
        uniques: &[ConstraintId],
    ) -> Result<()> {
        let (change, before, after) = match sign < 0 {
            true => (Change::Removed, Some(member), None),
            false => (Change::Added, None, Some(member)),
        };
        self.member_change(change, before, after, sites, trail, uniques)
    }

    /// References that a node is, and the constraints on its members that are indexed.
    fn own(
        &mut self,
        node: &I,
        sign: i64,
        sites: &Sites,
        trail: &Rc<Trail>,
    ) -> Result<Vec<ConstraintId>> {
        let mut uniques = Vec::new();
        for &id in &sites.constraints {
            match &self.schema.constraints[id].rule {
                Rule::Reference(target) => {
                    if let Some(leaf) = node.leaf()? {
                        let leaf = if target.keys { as_key(leaf) } else { leaf };
                        self.add(id, leaf, sign, trail, false);
                    }
                }
                Rule::Unique(_) if !trail.in_list => uniques.push(id),
                Rule::Unique(fields) => {
                    if sign > 0 {
                        self.look_through(id, fields, node, trail)?;
                    }
                }
            }
        }
        Ok(uniques)
    }

    /// A container that stays, with changes inside.
    fn inside(
        &mut self,
        before: &I,
        after: &I,
        inside: &Inside,
        sites: &Rc<Sites>,
        trail: &Rc<Trail>,
    ) -> Result<()> {
        if inside.shifts() && sites.tells_positions(self.schema) {
            let (before, after) = (Some(before.clone()), Some(after.clone()));
            self.change(Change::Replaced, before, after, Rc::clone(sites), Rc::clone(trail));
            return Ok(());
        }
        let uniques = self.own(after, 1, sites, trail)?;
        for (key, change) in &inside.members {
            let below = sites.member(self.schema, key);
            if uniques.is_empty() && below.is_empty() {
                continue;
            }
            let (before, after) = (before.member(key)?, after.member(key)?);
            let trail = trail.member(key.clone());
            self.member_change(*change, before, after, below, trail, &uniques)?;
        }
        let taken = inside.taken.iter().map(|&at| (Change::Removed, Some(at), None));
        let put = inside.put.iter().map(|&at| (Change::Added, None, Some(at)));
        let touched = inside.touched.iter();
        let touched = touched.map(|(&at, change)| (*change, Some(inside.before(at)), Some(at)));
        for (change, earlier, now) in taken.chain(put).chain(touched) {
            let position = now.or(earlier).unwrap_or(0);
            let below = sites.element(self.schema, position);
            if uniques.is_empty() && below.is_empty() {
                continue;
            }
            let at = |list: &I, position: Option<u64>| match position {
                Some(position) => list.element(position),
                None => Ok(None),
            };
            let (before, after) = (at(before, earlier)?, at(after, now)?);
            self.member_change(change, before, after, below, trail.element(position), &uniques)?;
        }
        Ok(())
    }

    fn member_change(
        &mut self,
        change: Change,
        before: Option<I>,
        after: Option<I>,
        sites: Rc<Sites>,
        trail: Rc<Trail>,
        uniques: &[ConstraintId],
    ) -> Result<()> {
        if let Some(before) = &before {
            self.fields(uniques, before, -1, &trail)?;
        }
        if let Some(after) = &after {
            self.fields(uniques, after, 1, &trail)?;
        }
        self.change(change, before, after, sites, trail);
        Ok(())
    }

    fn add(
        &mut self,
        id: ConstraintId,
        leaf: Leaf<'_>,
        sign: i64,
        trail: &Rc<Trail>,
        is_target: bool,
    ) {
        let mut key = constraint_key(id);
        write_piece(&mut key, |key| write_leaf(&leaf, key));
        let (trail, value) = (Rc::clone(trail), vec![leaf.into_value()]);
        self.entries.occurrences.push(Occurrence { key, is_target, sign, trail, value });
    }

    /// The fields of a member; one that lacks a field differs from all.
    fn fields(
        &mut self,
        ids: &[ConstraintId],
        member: &I,
        sign: i64,
        trail: &Rc<Trail>,
    ) -> Result<()> {
        for &id in ids {
            let Rule::Unique(fields) = &self.schema.constraints[id].rule else { continue };
            let Some((pieces, value)) = field_values(fields, member)? else { continue };
            let container = trail.above().path();
            let mut key = constraint_key(id);
            write_piece(&mut key, |key| key.extend_from_slice(container.as_bytes()));
            write_piece(&mut key, |key| key.extend_from_slice(&pieces));
            let (is_target, trail) = (false, Rc::clone(trail));
            self.entries.occurrences.push(Occurrence { key, is_target, sign, trail, value });
        }
        Ok(())
    }

    /// Looks through a container that has no lasting path.
    fn look_through(
        &mut self,
        id: ConstraintId,
        fields: &[Vec<String>],
        container: &I,
        trail: &Rc<Trail>,
    ) -> Result<()> {
        let mut seen = HashSet::new();
        let members = container.members()?.map(|member| {
            let (key, value) = member?;
            Ok((trail.member(key), value))
        });
        let elements = container.elements(0)?.enumerate();
        let elements = elements.map(|(at, element)| Ok((trail.element(at as u64), element?)));
        for member in members.chain(elements) {
            let (trail, member): (Rc<Trail>, I) = member?;
            if let Some((pieces, value)) = field_values(fields, &member)?
                && !seen.insert(pieces)
            {
                self.entries.repeated.push((id, trail, value));
            }
        }
        Ok(())
    }
}

/// The values of a member's fields, as pieces and as they are; `None` when one is missing or a container.
fn field_values<I: Instance>(
    fields: &[Vec<String>],
    member: &I,
) -> Result<Option<(Vec<u8>, Vec<Value>)>> {
    let (mut pieces, mut values) = (Vec::new(), Vec::with_capacity(fields.len()));
    for field in fields {
        let mut at = Cow::Borrowed(member);
        for segment in field {
            match at.member(segment)? {
                Some(below) => at = Cow::Owned(below),
                None => return Ok(None),
            }
        }
        let Some(leaf) = at.leaf()? else { return Ok(None) };
        write_piece(&mut pieces, |pieces| write_leaf(&leaf, pieces));
        values.push(leaf.into_value());
    }
    Ok(Some((pieces, values)))
}

/// A number refers to the key that is its text.
fn as_key(leaf: Leaf<'_>) -> Leaf<'_> {
    match leaf {
        Leaf::Number(num) => Leaf::String(num.to_string().into()),
        other => other,
    }
}

fn constraint_key(id: ConstraintId) -> Vec<u8> {
    let mut key = Vec::with_capacity(KEY_LEN_USUAL);
    let id = u32::try_from(id).expect("a schema has fewer keywords");
    key.extend_from_slice(&id.to_be_bytes());
    key
}

/// The constraint of an index key.
pub(crate) fn constraint_of(key: &[u8]) -> ConstraintId {
    let id = key.first_chunk::<4>().expect("keys begin with the constraint");
    u32::from_be_bytes(*id) as ConstraintId
}

/// Bytes that equal values share and no others do.
fn write_leaf(leaf: &Leaf<'_>, out: &mut Vec<u8>) {
    match leaf {
        Leaf::Null => out.push(b'z'),
        Leaf::Bool(value) => out.push(if *value { b't' } else { b'f' }),
        Leaf::Number(num) => {
            out.push(b'n');
            Decimal::new(num).write(out);
        }
        Leaf::String(text) => {
            out.push(b's');
            out.extend_from_slice(text.as_bytes());
        }
        Leaf::Bytes(bytes) => {
            out.push(b'b');
            out.extend_from_slice(bytes);
        }
    }
}

/// Adds what `write` adds, behind its length; or its SHA-256, behind a byte that is no length.
fn write_piece(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let len_at = out.len();
    out.push(u8::MAX);
    write(out);
    let start = len_at + 1;
    match out.len() - start {
        len if len <= EXACT_LEN_MAX => out[len_at] = len as u8,
        _ => {
            let hash = Sha256::digest(&out[start..]);
            out.truncate(start);
            out.extend_from_slice(&hash);
        }
    }
}
