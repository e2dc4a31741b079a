//! What a keyword applies when the node was valid before and only some of it has changed.

use std::collections::BTreeMap;
use std::rc::Rc;

use spinney_core::error::Result;

use super::{Evaluation, Job, Source, Start, Step, Subject, Via, affected};
use crate::changes::{Change, Inside};
use crate::coverage::Coverage;
use crate::instance::Instance;
use crate::schema::{Applicator, Contains, NodeId, Properties};

impl<I: Instance> Evaluation<'_, I> {
    pub(super) fn start_delta(
        &mut self,
        applicator: &Applicator,
        before: &I,
        index: usize,
    ) -> Result<Start<I>> {
        let changes = self.changes;
        let inside = changes.inside(index);
        let Some(after) = self.frame().job.subject.node().cloned() else { return Ok(Start::Skip) };
        let was = || Some((before.clone(), index));
        let assert = |jobs| Ok(Start::Jobs(jobs, 0));
        match applicator {
            Applicator::Ref(..) | Applicator::DynamicRef(..) | Applicator::AllOf(_) => {
                match self.start_full(applicator)? {
                    Start::Jobs(mut jobs, passed) => {
                        for job in &mut jobs {
                            job.before = was();
                        }
                        Ok(Start::Jobs(jobs, passed))
                    }
                    other => Ok(other),
                }
            }
            Applicator::DependentSchemas(keyword, dependents) => {
                let mut jobs = Vec::new();
                for (key, node) in dependents {
                    if after.member(key)?.is_some() {
                        let held = inside.members.get(key) != Some(&Change::Added);
                        let before = if held { was() } else { None };
                        jobs.push(self.frame().in_place(*node, Via::text(keyword, &**key), before));
                    }
                }
                assert(jobs)
            }
            Applicator::AnyOf(nodes) => self.branches_delta("anyOf", nodes, before, &after, index),
            Applicator::OneOf(nodes) => self.branches_delta("oneOf", nodes, before, &after, index),
            Applicator::Not(node) if affected(self.schema, changes, *node, index) => {
                self.start_full(applicator)
            }
            Applicator::Not(_) => Ok(Start::Skip),
            Applicator::If { condition, then, otherwise } => {
                let affected = |node: &NodeId| affected(self.schema, changes, *node, index);
                if affected(condition) {
                    let condition_was = self.judge(*condition, before.clone(), None)?;
                    self.frame_mut().condition_was = condition_was;
                } else if [then, otherwise].into_iter().flatten().any(affected) {
                    self.frame_mut().condition_was = None;
                } else {
                    return Ok(Start::Skip);
                }
                self.start_full(applicator)
            }
            Applicator::Properties(properties) => {
                assert(self.changed_members(before, &after, inside, |key| properties.all(key))?)
            }
            Applicator::UnevaluatedProperties(node) => {
                let fixed = Coverage::fixed(self.schema, self.frame().job.node);
                let rest = |key: &Rc<str>| match fixed.covers_member(self.schema, key) {
                    true => Vec::new(),
                    false => vec![(Via::text("unevaluatedProperties", Rc::clone(key)), *node)],
                };
                assert(self.changed_members(before, &after, inside, rest)?)
            }
            Applicator::PropertyNames(node) => {
                let added = inside.members.iter().filter(|(_, change)| **change == Change::Added);
                let name = |key: &String| {
                    let subject = Subject::Name(key.as_str().into());
                    self.frame().below(*node, Via::keyword("propertyNames"), Step::Name, subject)
                };
                assert(added.map(|(key, _)| name(key)).collect())
            }
            Applicator::Items(items) => {
                let prefix_len = items.prefix.len() as u64;
                let schema = |position| items.schema(position);
                assert(self.changed_elements(before, &after, inside, prefix_len, schema)?)
            }
            Applicator::UnevaluatedItems(node) => {
                let fixed = Coverage::fixed(self.schema, self.frame().job.node);
                let prefix_len = fixed.prefix();
                let rest = |position| match fixed.covers_element(position) {
                    true => None,
                    false => Some((Via::keyword("unevaluatedItems"), *node)),
                };
                assert(self.changed_elements(before, &after, inside, prefix_len, rest)?)
            }
            Applicator::Contains(contains) => {
                match self.contains_still_holds(contains, before, &after, inside)? {
                    true => Ok(Start::Skip),
                    false => Ok(Start::Source(Vec::new(), Source::Elements(after.elements(0)?, 0))),
                }
            }
        }
    }

    /// Jobs for what was added, replaced or changed inside, by the schemas of each key.
    fn changed_members(
        &self,
        before: &I,
        after: &I,
        inside: &Inside,
        schemas: impl Fn(&Rc<str>) -> Vec<(Via, NodeId)>,
    ) -> Result<Vec<Job<I>>> {
        let mut jobs = Vec::new();
        for (key, change) in &inside.members {
            if *change == Change::Removed {
                continue;
            }
            let name: Rc<str> = key.as_str().into();
            let mut schemas = schemas(&name);
            schemas.retain(|(_, node)| !self.schema.nodes[*node].accepts_all());
            if schemas.is_empty() {
                continue;
            }
            let Some(member) = after.member(key)? else { continue };
            let was = match change {
                Change::Within(index) => before.member(key)?.map(|member| (member, *index)),
                _ => None,
            };
            for (via, node) in schemas {
                let (step, subject) = (Step::Key(Rc::clone(&name)), Subject::Node(member.clone()));
                let job = self.frame().below(node, via, step, subject);
                jobs.push(Job { before: was.clone(), ..job });
            }
        }
        Ok(jobs)
    }

    /// Jobs for what was put in or changed, and for elements whose new position is another schema's:
    /// only the first `prefix_len` have one each.
    fn changed_elements(
        &self,
        before: &I,
        after: &I,
        inside: &Inside,
        prefix_len: u64,
        schema: impl Fn(u64) -> Option<(Via, NodeId)>,
    ) -> Result<Vec<Job<I>>> {
        let node_at = |position| schema(position).map(|(_, node)| node);
        let stays = |after: u64| node_at(after) == node_at(inside.before(after));
        // Each with what changed inside, when that is all that changed.
        let mut positions: BTreeMap<u64, Option<usize>> = BTreeMap::new();
        positions.extend(inside.put.iter().map(|&position| (position, None)));
        if inside.shifts() {
            let count = after.count()?;
            for position in 0..prefix_len.min(count.max(before.count()?)) {
                let here = inside.put.binary_search(&position).is_err().then_some(position);
                let from_here = inside.taken.binary_search(&position).is_err();
                let there = from_here.then(|| inside.after(position));
                for position in here.into_iter().chain(there) {
                    if position < count && !stays(position) {
                        positions.insert(position, None);
                    }
                }
            }
        }
        for (&position, change) in &inside.touched {
            let within = match change {
                Change::Within(index) if stays(position) => Some(*index),
                _ => None,
            };
            positions.insert(position, within);
        }
        let mut jobs = Vec::new();
        for (position, within) in positions {
            let Some((via, node)) = schema(position) else { continue };
            if self.schema.nodes[node].accepts_all() {
                continue;
            }
            let Some(element) = after.element(position)? else { continue };
            let was = match within {
                Some(index) => before.element(inside.before(position))?.map(|was| (was, index)),
                None => None,
            };
            let step = Step::Element(position);
            let job = self.frame().below(node, via, step, Subject::Node(element));
            jobs.push(Job { before: was, ..job });
        }
        Ok(jobs)
    }

    /// `anyOf` and `oneOf`: nothing when no branch looks at what changed; otherwise branches that a
    /// glance decides are not read, and the one that must have held before is read where it changed.
    fn branches_delta(
        &self,
        keyword: &'static str,
        nodes: &[NodeId],
        before: &I,
        after: &I,
        index: usize,
    ) -> Result<Start<I>> {
        let affected: Vec<bool> =
            nodes.iter().map(|&node| affected(self.schema, self.changes, node, index)).collect();
        if !affected.contains(&true) {
            return Ok(Start::Skip);
        }
        let glance = Some(self.schema.glance_steps);
        let was_valid = nodes
            .iter()
            .map(|&node| self.judge(node, before.clone(), glance))
            .collect::<Result<Vec<_>>>()?;
        // The node was valid, so the only branch that could hold did.
        let only = was_valid.iter().filter(|was| **was != Some(false)).count() == 1;
        let (mut jobs, mut passed) = (Vec::new(), 0);
        for (branch, &node) in nodes.iter().enumerate() {
            let was = was_valid[branch].or(only.then_some(true));
            let is_valid = match was {
                was if !affected[branch] => was,
                Some(true) => None,
                _ => self.judge(node, after.clone(), glance)?,
            };
            match is_valid {
                Some(is_valid) => passed += u64::from(is_valid),
                None => {
                    let before = (was == Some(true)).then(|| (before.clone(), index));
                    let job = self.frame().in_place(node, Via::index(keyword, branch), before);
                    jobs.push(Job { quiet: true, ..job });
                }
            }
        }
        // The one that is read where it changed comes first: it may decide.
        jobs.sort_by_key(|job| job.before.is_none());
        Ok(Start::Jobs(jobs, passed))
    }

    /// Whether `contains` holds because as many elements match as before, or more, or fewer, as its
    /// limits allow.
    fn contains_still_holds(
        &self,
        contains: &Contains,
        before: &I,
        after: &I,
        inside: &Inside,
    ) -> Result<bool> {
        let matches = |list: &I, position: u64| -> Result<i64> {
            Ok(match list.element(position)? {
                Some(element) => i64::from(self.judge(contains.node, element, None)? == Some(true)),
                None => 0,
            })
        };
        let mut more = 0;
        for &position in &inside.taken {
            more -= matches(before, position)?;
        }
        for &position in &inside.put {
            more += matches(after, position)?;
        }
        for &position in inside.touched.keys() {
            more += matches(after, position)? - matches(before, inside.before(position))?;
        }
        Ok(more == 0 || (more > 0 && contains.max.is_none()) || (more < 0 && contains.min == 0))
    }
}

impl Properties {
    /// Every schema that a member must fit.
    fn all(&self, key: &Rc<str>) -> Vec<(Via, NodeId)> {
        let named = self.named(key).map(|node| (Via::text("properties", Rc::clone(key)), node));
        named.into_iter().chain(self.unnamed(key)).collect()
    }
}
