//! What a change takes from an index and puts into it.

use std::borrow::Cow;
use std::collections::HashSet;
use std::rc::Rc;

use spinney_core::Value;
use spinney_core::backend::RecordKey;
use spinney_core::error::Result;

use super::keys::{begin_key, is_text, texts, write_leaf, write_piece};
use super::trail::Trail;
use super::{ConstraintId, Rule, SiteId, Sites};
use crate::changes::{Change, Changes, Inside};
use crate::instance::{Instance, Leaf};
use crate::schema::Schema;
use spinney_core::node::NodeKind;

/// A node that stands for a key of an index, and comes or goes.
#[derive(Debug)]
pub(crate) struct Occurrence {
    /// The constraint, and the value.
    pub key: RecordKey,
    /// Whether it is a value that others refer to; else it refers to one, or is a member with the
    /// same fields.
    pub is_target: bool,
    /// 1 or -1.
    pub sign: i64,
    /// Where, for messages.
    pub trail: Rc<Trail>,
    /// The value, for messages, where the key does not tell it.
    untold: Option<Box<[Value]>>,
}

impl Occurrence {
    /// The value, for messages.
    pub fn value(&self, rule: &Rule) -> Cow<'_, [Value]> {
        match &self.untold {
            Some(value) => Cow::Borrowed(value),
            None => texts(&self.key, rule).into_iter().map(Value::from).collect(),
        }
    }
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
        let Some(change) = changes.root().filter(|_| self.needs_index()) else {
            return Ok(Entries::default());
        };
        let mut collector = Collector {
            schema: self,
            sites: self.sites.take(),
            entries: Entries::default(),
            pending: Vec::new(),
            key: Vec::new(),
        };
        let root = collector.sites.root(self);
        collector.change(change, before.cloned(), after.cloned(), root, Trail::root())?;
        while let Some(visit) = collector.pending.pop() {
            match visit {
                Visit::Members { of, sign, site, trail, uniques } => {
                    collector.members(&of, sign, site, &trail, &uniques)?;
                }
                Visit::Inside { before, after, inside, site, trail } => {
                    let inside = changes.inside(inside);
                    collector.inside(&before, &after, inside, site, &trail)?;
                }
            }
        }
        self.sites.give_back(collector.sites);
        collector.entries.occurrences.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(collector.entries)
    }
}

/// A node that is still to be looked at.
enum Visit<I> {
    /// All members or elements come or go.
    Members { of: I, sign: i64, site: SiteId, trail: Rc<Trail>, uniques: Vec<ConstraintId> },
    /// Something inside of it changed.
    Inside { before: I, after: I, inside: usize, site: SiteId, trail: Rc<Trail> },
}

struct Collector<'s, I> {
    schema: &'s Schema,
    sites: Sites,
    entries: Entries,
    pending: Vec<Visit<I>>,
    /// For index keys.
    key: Vec<u8>,
}

impl<I: Instance> Collector<'_, I> {
    fn change(
        &mut self,
        change: Change,
        before: Option<I>,
        after: Option<I>,
        site: SiteId,
        trail: Rc<Trail>,
    ) -> Result<()> {
        if self.sites.is_empty(site) {
            return Ok(());
        }
        match (change, before, after) {
            (Change::Within(inside), Some(before), Some(after)) => {
                self.pending.push(Visit::Inside { before, after, inside, site, trail });
            }
            (_, before, after) => {
                for (node, sign) in [(before, -1), (after, 1)] {
                    if let Some(node) = node {
                        self.whole(node, sign, site, &trail)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// A node that comes or goes; what is below it comes later.
    fn whole(&mut self, node: I, sign: i64, site: SiteId, trail: &Rc<Trail>) -> Result<()> {
        for &id in &*self.sites.targets(site) {
            let Rule::Reference(target) = &self.schema.constraints[id].rule else { continue };
            if target.keys {
                if let Some(key) = trail.key() {
                    self.add(id, Leaf::String(key.into()), sign, trail, true);
                }
            } else if let Some(leaf) = node.leaf(&mut Vec::new())? {
                self.add(id, leaf, sign, trail, true);
            }
        }
        let uniques = self.own(&node, sign, site, trail)?;
        if let NodeKind::Map | NodeKind::List = node.kind()? {
            let trail = Rc::clone(trail);
            self.pending.push(Visit::Members { of: node, sign, site, trail, uniques });
        }
        Ok(())
    }

    /// What is in a container that comes or goes.
    fn members(
        &mut self,
        of: &I,
        sign: i64,
        site: SiteId,
        trail: &Rc<Trail>,
        uniques: &[ConstraintId],
    ) -> Result<()> {
        for member in of.members()? {
            let (key, value) = member?;
            let below = self.sites.member(self.schema, site, &key);
            if !uniques.is_empty() || !self.sites.is_empty(below) {
                self.below(value, sign, below, trail.member(key), uniques)?;
            }
        }
        for (position, element) in of.elements(0)?.enumerate() {
            let (position, element) = (position as u64, element?);
            let below = self.sites.element(self.schema, site, position);
            if !uniques.is_empty() || !self.sites.is_empty(below) {
                self.below(element, sign, below, trail.element(position), uniques)?;
            }
        }
        Ok(())
    }

    /// A member that comes or goes with its container.
    fn below(
        &mut self,
        member: I,
        sign: i64,
        site: SiteId,
        trail: Rc<Trail>,
        uniques: &[ConstraintId],
    ) -> Result<()> {
        let (change, before, after) = match sign < 0 {
            true => (Change::Removed, Some(member), None),
            false => (Change::Added, None, Some(member)),
        };
        self.member_change(change, before, after, site, trail, uniques)
    }

    /// References that a node is, and the constraints on its members that are indexed.
    fn own(
        &mut self,
        node: &I,
        sign: i64,
        site: SiteId,
        trail: &Rc<Trail>,
    ) -> Result<Vec<ConstraintId>> {
        let mut uniques = Vec::new();
        for &id in &*self.sites.constraints(site) {
            match &self.schema.constraints[id].rule {
                Rule::Reference(target) => {
                    if let Some(leaf) = node.leaf(&mut Vec::new())? {
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
        site: SiteId,
        trail: &Rc<Trail>,
    ) -> Result<()> {
        if inside.shifts() && self.sites.tells_positions(site) {
            let (before, after) = (Some(before.clone()), Some(after.clone()));
            return self.change(Change::Replaced, before, after, site, Rc::clone(trail));
        }
        let uniques = self.own(after, 1, site, trail)?;
        for (key, change) in &inside.members {
            let below = self.sites.member(self.schema, site, key);
            if uniques.is_empty() && self.sites.is_empty(below) {
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
            let below = self.sites.element(self.schema, site, position);
            if uniques.is_empty() && self.sites.is_empty(below) {
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
        site: SiteId,
        trail: Rc<Trail>,
        uniques: &[ConstraintId],
    ) -> Result<()> {
        if let Some(before) = &before {
            self.fields(uniques, before, -1, &trail)?;
        }
        if let Some(after) = &after {
            self.fields(uniques, after, 1, &trail)?;
        }
        self.change(change, before, after, site, trail)
    }

    fn add(
        &mut self,
        id: ConstraintId,
        leaf: Leaf<'_>,
        sign: i64,
        trail: &Rc<Trail>,
        is_target: bool,
    ) {
        let key = begin_key(&mut self.key, id);
        let is_told = write_piece(key, |key| write_leaf(&leaf, key)) && is_text(&leaf);
        let (key, trail) = (RecordKey::from(&key[..]), Rc::clone(trail));
        let untold = if is_told { None } else { Some([leaf.into_value()].into()) };
        self.entries.occurrences.push(Occurrence { key, is_target, sign, trail, untold });
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
            let (mut pieces, mut is_told) = (Vec::new(), true);
            let is_complete = each_field(fields, member, |leaf| {
                is_told &= write_piece(&mut pieces, |pieces| write_leaf(&leaf, pieces));
                is_told &= is_text(&leaf);
            });
            if !is_complete? {
                continue;
            }
            let container = trail.above().path();
            let key = begin_key(&mut self.key, id);
            write_piece(key, |key| key.extend_from_slice(container.as_bytes()));
            is_told &= write_piece(key, |key| key.extend_from_slice(&pieces));
            let (key, trail, is_target) = (RecordKey::from(&key[..]), Rc::clone(trail), false);
            let untold = match is_told {
                true => None,
                false => Some(field_values(fields, member)?.into()),
            };
            self.entries.occurrences.push(Occurrence { key, is_target, sign, trail, untold });
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
            let mut pieces = Vec::new();
            let is_complete = each_field(fields, &member, |leaf| {
                write_piece(&mut pieces, |pieces| write_leaf(&leaf, pieces));
            });
            if is_complete? && !seen.insert(pieces) {
                self.entries.repeated.push((id, trail, field_values(fields, &member)?));
            }
        }
        Ok(())
    }
}

/// Gives the values of a member's fields; false when one is missing or a container.
fn each_field<I: Instance>(
    fields: &[Vec<String>],
    member: &I,
    mut each: impl FnMut(Leaf<'_>),
) -> Result<bool> {
    for field in fields {
        let mut at = Cow::Borrowed(member);
        for segment in field {
            match at.member(segment)? {
                Some(below) => at = Cow::Owned(below),
                None => return Ok(false),
            }
        }
        match at.leaf(&mut Vec::new())? {
            Some(leaf) => each(leaf),
            None => return Ok(false),
        }
    }
    Ok(true)
}

/// The values of a member's fields.
fn field_values<I: Instance>(fields: &[Vec<String>], member: &I) -> Result<Vec<Value>> {
    let mut values = Vec::with_capacity(fields.len());
    each_field(fields, member, |leaf| values.push(leaf.into_value()))?;
    Ok(values)
}

/// A number refers to the key that is its text.
fn as_key(leaf: Leaf<'_>) -> Leaf<'_> {
    match leaf {
        Leaf::Number(num) => Leaf::String(num.to_string().into()),
        other => other,
    }
}
