//! What a keyword applies when nothing is known of the node.

use std::rc::Rc;

use spinney_core::error::Result;

use super::{Evaluation, Frame, Job, Source, Start, Step, Subject, Via};
use crate::instance::Instance;
use crate::schema::{Applicator, Items, NodeId, Properties};
use spinney_core::node::NodeKind;

impl<I: Instance> Evaluation<'_, I> {
    pub(super) fn start_full(&self, applicator: &Applicator) -> Result<Start<I>> {
        let frame = self.frame();
        let jobs = |jobs| Ok(Start::Jobs(jobs, 0));
        match applicator {
            Applicator::Ref(keyword, node) => {
                jobs(vec![frame.in_place(*node, Via::keyword(keyword), None)])
            }
            Applicator::DynamicRef(keyword, initial, name) => {
                let node = self.dynamic_target(*initial, *name);
                jobs(vec![frame.in_place(node, Via::keyword(keyword), None)])
            }
            Applicator::AllOf(nodes) => jobs(frame.branches("allOf", nodes)),
            Applicator::AnyOf(nodes) => jobs(quiet(frame.branches("anyOf", nodes))),
            Applicator::OneOf(nodes) => jobs(quiet(frame.branches("oneOf", nodes))),
            Applicator::Not(node) => {
                jobs(quiet(vec![frame.in_place(*node, Via::keyword("not"), None)]))
            }
            Applicator::If { condition, .. } => jobs(vec![frame.condition(*condition)]),
            _ => match frame.job.subject.node() {
                Some(node) => self.start_members(applicator, node),
                None => Ok(Start::Skip),
            },
        }
    }

    /// Keywords that look into maps and lists.
    fn start_members(&self, applicator: &Applicator, node: &I) -> Result<Start<I>> {
        let frame = self.frame();
        let kind = node.kind()?;
        let source = match (applicator, kind) {
            (Applicator::DependentSchemas(keyword, dependents), NodeKind::Map) => {
                let mut jobs = Vec::new();
                for (key, dependent) in dependents {
                    if node.member(key)?.is_some() {
                        jobs.push(frame.in_place(*dependent, Via::text(keyword, &**key), None));
                    }
                }
                return Ok(Start::Jobs(jobs, 0));
            }
            (Applicator::Properties(properties), NodeKind::Map) => {
                let all = !properties.patterns.is_empty() || properties.additional.is_some();
                let source = if all { Source::Members(node.members()?) } else { Source::None };
                return Ok(Start::Source(self.named_jobs(properties, node)?, source));
            }
            (Applicator::UnevaluatedProperties(_), NodeKind::Map) if !frame.valid => Source::None,
            (
                Applicator::UnevaluatedProperties(_) | Applicator::PropertyNames(_),
                NodeKind::Map,
            ) => Source::Members(node.members()?),
            (Applicator::UnevaluatedItems(_), NodeKind::List) if !frame.valid => Source::None,
            (
                Applicator::Items(_) | Applicator::Contains(_) | Applicator::UnevaluatedItems(_),
                NodeKind::List,
            ) => Source::Elements(node.elements(0)?, 0),
            _ => return Ok(Start::Skip),
        };
        Ok(Start::Source(Vec::new(), source))
    }

    /// Jobs for the members that `properties` names. Those that are decided at one look come first:
    /// they often tell which of several branches a document means.
    fn named_jobs(&self, properties: &Properties, node: &I) -> Result<Vec<Job<I>>> {
        let (mut shallow, mut deep) = (Vec::new(), Vec::new());
        if node.count()? == 0 {
            return Ok(shallow);
        }
        for (key, schema) in &properties.named {
            if !self.schema.nodes[*schema].accepts_all()
                && let Some(member) = node.member(key)?
            {
                let key: Rc<str> = key.as_str().into();
                let via = Via::text("properties", Rc::clone(&key));
                let job = self.frame().below(*schema, via, Step::Key(key), Subject::Node(member));
                let is_shallow = self.schema.nodes[*schema].is_shallow();
                if is_shallow { &mut shallow } else { &mut deep }.push(job);
            }
        }
        shallow.append(&mut deep);
        Ok(shallow)
    }

    /// What a keyword applies to a member, beyond what `properties` names.
    pub(super) fn member_jobs(
        &self,
        applicator: &Applicator,
        key: &Rc<str>,
        value: I,
    ) -> Vec<Job<I>> {
        let frame = self.frame();
        let schemas = match applicator {
            Applicator::Properties(properties) => properties.unnamed(key),
            Applicator::UnevaluatedProperties(node) => {
                match frame.coverage.covers_member(self.schema, key) {
                    true => Vec::new(),
                    false => vec![(Via::text("unevaluatedProperties", Rc::clone(key)), *node)],
                }
            }
            Applicator::PropertyNames(node) => {
                let subject = Subject::Name(Rc::clone(key));
                let via = Via::keyword("propertyNames");
                return vec![frame.below(*node, via, Step::Name, subject)];
            }
            _ => Vec::new(),
        };
        let apply = |(via, node)| {
            frame.below(node, via, Step::Key(Rc::clone(key)), Subject::Node(value.clone()))
        };
        let asserted =
            schemas.into_iter().filter(|(_, node)| !self.schema.nodes[*node].accepts_all());
        asserted.map(apply).collect()
    }

    /// What a keyword applies to an element.
    pub(super) fn element_jobs(
        &self,
        applicator: &Applicator,
        position: u64,
        value: I,
    ) -> Vec<Job<I>> {
        let frame = self.frame();
        let (via, node, is_quiet) = match applicator {
            Applicator::Items(items) => match items.schema(position) {
                Some((via, node)) => (via, node, false),
                None => return Vec::new(),
            },
            Applicator::Contains(contains) => (Via::keyword("contains"), contains.node, true),
            Applicator::UnevaluatedItems(node) if !frame.coverage.covers_element(position) => {
                (Via::keyword("unevaluatedItems"), *node, false)
            }
            _ => return Vec::new(),
        };
        if !is_quiet && self.schema.nodes[node].accepts_all() {
            return Vec::new();
        }
        let mut job = frame.below(node, via, Step::Element(position), Subject::Node(value));
        job.quiet |= is_quiet;
        vec![job]
    }

    /// Where a dynamic reference leads: the outermost resource of the scope that has the anchor.
    pub(super) fn dynamic_target(&self, initial: NodeId, name: usize) -> NodeId {
        let anchored = |&resource| self.schema.dynamic.get(&(name, resource)).copied();
        self.scope.iter().find_map(anchored).unwrap_or(initial)
    }
}

impl Properties {
    /// What `patternProperties` and `additionalProperties` say of a member.
    pub(super) fn unnamed(&self, key: &str) -> Vec<(Via, NodeId)> {
        let matching = self.patterns.iter().filter(|(pattern, _)| pattern.is_match(key));
        let mut schemas: Vec<_> = matching
            .map(|(pattern, node)| (Via::text("patternProperties", &*pattern.source), *node))
            .collect();
        if let Some(node) = self.additional
            && schemas.is_empty()
            && self.named(key).is_none()
        {
            schemas.push((Via::keyword("additionalProperties"), node));
        }
        schemas
    }
}

impl Items {
    /// The schema of an element.
    pub(super) fn schema(&self, position: u64) -> Option<(Via, NodeId)> {
        match usize::try_from(position).ok().filter(|&at| at < self.prefix.len()) {
            Some(at) => Some((Via::index(self.prefix_keyword, at), self.prefix[at])),
            None => self.rest.map(|node| (Via::keyword(self.rest_keyword), node)),
        }
    }
}

impl<I: Instance> Frame<I> {
    /// Jobs for the schemas of a list.
    pub(super) fn branches(&self, keyword: &'static str, nodes: &[NodeId]) -> Vec<Job<I>> {
        let branch = |(index, &node)| self.in_place(node, Via::index(keyword, index), None);
        nodes.iter().enumerate().map(branch).collect()
    }

    pub(super) fn condition(&self, node: NodeId) -> Job<I> {
        let job = self.in_place(node, Via::keyword("if"), None);
        Job { quiet: true, is_condition: true, ..job }
    }
}

/// The same jobs, of which only the verdict is wanted.
fn quiet<I>(mut jobs: Vec<Job<I>>) -> Vec<Job<I>> {
    for job in &mut jobs {
        job.quiet = true;
    }
    jobs
}
