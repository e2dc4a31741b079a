//! Judging a document by a schema, with a stack of its own instead of recursion.
//!
//! A *frame* is one schema applied to one node. It runs through the keywords; each keyword gives
//! *jobs*, which are the frames above it, and is finished when they are. A frame that knows the
//! state *before* looks only at what changed; such a frame takes for granted that the node was valid
//! there ([`delta`]). All others look at everything ([`full`]).

mod affected;
mod check;
mod closest;
mod delta;
mod frame;
mod full;

use std::collections::VecDeque;

use spinney_core::Path;
use spinney_core::error::{Error, Result};

use crate::changes::{Change, Changes};
use crate::coverage::Coverage;
use crate::instance::Instance;
use crate::report::{Report, VIOLATIONS_MAX, Violation};
use crate::resources::ResourceId;
use crate::schema::{Applicator, NodeId, Schema};

use affected::affected;
use frame::{Frame, Job, Source, Start, Step, Subject, Token, Via};

impl Schema {
    /// Judges a whole document.
    ///
    /// # Errors
    /// Those of reading.
    ///
    /// # Complexity
    /// That of the document, and of the schema for each node.
    pub fn validate<I: Instance>(&self, document: &I) -> Result<Report> {
        self.validate_at_most(document, VIOLATIONS_MAX)
    }

    /// As [`Schema::validate`], with a limit on how many violations are listed.
    ///
    /// # Errors
    /// Those of reading.
    pub fn validate_at_most<I: Instance>(&self, document: &I, limit: usize) -> Result<Report> {
        let mut evaluation = Evaluation::new(self, &NO_CHANGES, limit);
        evaluation.run(Job::root(self.root, document.clone(), None))?;
        Ok(evaluation.report)
    }

    /// Judges a document after a change, given that it was valid before.
    ///
    /// The verdict is that of [`Schema::validate`]; violations are listed where the change made them.
    ///
    /// # Errors
    /// Those of reading.
    ///
    /// # Complexity
    /// That of the change and, for each changed node, of its depth. Keywords that must look at a
    /// whole list or map again are told by [`Schema::explain`].
    pub fn validate_change<I: Instance>(
        &self,
        before: Option<&I>,
        after: Option<&I>,
        changes: &Changes,
    ) -> Result<Report> {
        let (Some(after), Some(change)) = (after, changes.root()) else {
            return Ok(Report::default());
        };
        let before = match (before, change) {
            (Some(before), Change::Within(inside)) => Some((before.clone(), inside)),
            _ => None,
        };
        let mut evaluation = Evaluation::new(self, changes, VIOLATIONS_MAX);
        evaluation.run(Job::root(self.root, after.clone(), before))?;
        Ok(evaluation.report)
    }
}

static NO_CHANGES: Changes = Changes::NONE;

/// Gives up when it has read too much.
struct Exhausted;

struct Evaluation<'e, I: Instance> {
    schema: &'e Schema,
    changes: &'e Changes,
    stack: Vec<Frame<I>>,
    /// The resources that were entered, outermost first.
    scope: Vec<ResourceId>,
    report: Report,
    violations_max: usize,
    /// How many more steps may be made.
    budget: Option<u64>,
    /// How many more steps may be made to tell which alternatives come closest.
    steps_to_explain: u64,
}

impl<'e, I: Instance> Evaluation<'e, I> {
    fn new(schema: &'e Schema, changes: &'e Changes, violations_max: usize) -> Self {
        Evaluation {
            schema,
            changes,
            stack: Vec::with_capacity(4),
            scope: Vec::with_capacity(4),
            report: Report::default(),
            violations_max,
            budget: None,
            steps_to_explain: closest::ALL_STEPS_MAX,
        }
    }

    /// Whether a schema holds for a node, in the scope of the running frame; `None` when that takes
    /// more than `budget` steps.
    fn judge(&self, node: NodeId, subject: I, budget: Option<u64>) -> Result<Option<bool>> {
        let mut evaluation = Evaluation::new(self.schema, &NO_CHANGES, 0);
        evaluation.scope.clone_from(&self.scope);
        evaluation.budget = budget;
        evaluation.run(Job { quiet: true, ..Job::root(node, subject, None) })
    }

    fn run(&mut self, root: Job<I>) -> Result<Option<bool>> {
        if let Err(Exhausted) = self.enter(root)? {
            return Ok(None);
        }
        loop {
            let frame = self.stack.last_mut().expect("the root's frame ends the loop");
            let applicators = &self.schema.nodes[frame.job.node].applicators;
            if frame.applicator == applicators.len() || (frame.job.quiet && !frame.valid) {
                let done = self.stack.pop().expect("it was there");
                self.scope.truncate(done.scope_len);
                match self.stack.last_mut() {
                    None => return Ok(Some(done.valid)),
                    Some(below) => receive(self.schema, below, done),
                }
                continue;
            }
            if !frame.started {
                self.start()?;
            }
            match self.next_job()? {
                Ok(Some(job)) => {
                    if let Err(Exhausted) = self.enter(job)? {
                        return Ok(None);
                    }
                }
                Ok(None) => self.finish()?,
                Err(Exhausted) => return Ok(None),
            }
        }
    }

    fn spend(&mut self) -> Result<(), Exhausted> {
        match &mut self.budget {
            Some(0) => Err(Exhausted),
            Some(left) => {
                *left -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Opens a frame and checks what looks at the node only.
    fn enter(&mut self, mut job: Job<I>) -> Result<Result<(), Exhausted>> {
        if let Err(Exhausted) = self.spend() {
            return Ok(Err(Exhausted));
        }
        let node = &self.schema.nodes[job.node];
        if node.whole_when_changed {
            job.before = None;
        }
        job.tracks = job.before.is_none() && (job.tracks || node.wants_coverage());
        let scope_len = self.scope.len();
        if self.scope.last() != Some(&node.resource) {
            self.scope.push(node.resource);
        }
        let in_place = match (&job.step, self.stack.last()) {
            (Step::InPlace, Some(below)) => below.in_place + 1,
            _ => 0,
        };
        if in_place > 2 * self.schema.nodes.len() {
            return Err(Error::invalid_input(format!(
                "the schema at `{}` refers to itself without going down into the document, so it would never end",
                node.location
            )));
        }
        self.stack.push(Frame {
            job,
            valid: true,
            applicator: 0,
            started: false,
            queue: VecDeque::new(),
            source: Source::None,
            passed: 0,
            condition_was: None,
            coverage: Coverage::default(),
            scope_len,
            in_place,
        });
        self.check_node()?;
        Ok(Ok(()))
    }

    fn frame(&self) -> &Frame<I> {
        self.stack.last().expect("a frame is open")
    }

    fn frame_mut(&mut self) -> &mut Frame<I> {
        self.stack.last_mut().expect("a frame is open")
    }

    fn applicator(&self) -> &'e Applicator {
        let frame = self.frame();
        &self.schema.nodes[frame.job.node].applicators[frame.applicator]
    }

    fn start(&mut self) -> Result<()> {
        let applicator = self.applicator();
        let start = match self.frame().job.before.clone() {
            None => self.start_full(applicator)?,
            Some((before, inside)) => self.start_delta(applicator, &before, inside)?,
        };
        let frame = self.frame_mut();
        frame.started = true;
        frame.passed = 0;
        match start {
            Start::Skip => {
                frame.started = false;
                frame.applicator += 1;
            }
            Start::Jobs(jobs, passed) => {
                frame.queue = jobs.into();
                frame.passed = passed;
            }
            Start::Source(jobs, source) => {
                frame.queue = jobs.into();
                frame.source = source;
            }
        }
        Ok(())
    }

    /// The next job of the running keyword.
    fn next_job(&mut self) -> Result<Result<Option<Job<I>>, Exhausted>> {
        if !self.frame().started {
            return Ok(Ok(None));
        }
        let applicator = self.applicator();
        let asserts_members = applicator.asserts_members();
        loop {
            if self.is_decided(applicator) {
                let frame = self.frame_mut();
                frame.queue.clear();
                frame.source = Source::None;
                return Ok(Ok(None));
            }
            if let Some(job) = self.frame_mut().queue.pop_front() {
                // Most members are scalars that fit: they need no frame.
                if asserts_members
                    && job.before.is_none()
                    && self.schema.fits_at_once(job.node, &job.subject)? == Some(true)
                {
                    match self.spend() {
                        Ok(()) => continue,
                        Err(Exhausted) => return Ok(Err(Exhausted)),
                    }
                }
                return Ok(Ok(Some(job)));
            }
            if let Err(Exhausted) = self.spend() {
                return Ok(Err(Exhausted));
            }
            let jobs = match &mut self.frame_mut().source {
                Source::None => return Ok(Ok(None)),
                Source::Members(members) => match members.next().transpose()? {
                    Some((key, value)) => self.member_jobs(applicator, &key.into(), value),
                    None => return Ok(Ok(None)),
                },
                Source::Elements(elements, position) => match elements.next().transpose()? {
                    Some(element) => {
                        let at = *position;
                        *position += 1;
                        self.element_jobs(applicator, at, element)
                    }
                    None => return Ok(Ok(None)),
                },
            };
            self.frame_mut().queue.extend(jobs);
        }
    }

    /// Whether further jobs cannot change what the keyword says.
    fn is_decided(&self, applicator: &Applicator) -> bool {
        let frame = self.frame();
        match applicator {
            Applicator::AnyOf(_) => frame.passed > 0 && !frame.job.tracks,
            Applicator::OneOf(_) => frame.passed > 1,
            Applicator::Contains(contains) => match contains.max {
                Some(max) => frame.passed > max,
                None => frame.passed >= contains.min && !frame.job.tracks,
            },
            _ => false,
        }
    }

    /// Ends the running keyword; what its jobs have found is turned into a verdict.
    fn finish(&mut self) -> Result<()> {
        if !self.frame().started {
            return Ok(());
        }
        let applicator = self.applicator();
        let passed = self.frame().passed;
        match applicator {
            Applicator::AnyOf(nodes) if passed == 0 => {
                let expected = format!("what fits one of {} alternatives", nodes.len());
                let found = self.fits_none(nodes)?;
                self.fail("anyOf", expected, Some(&found))?;
            }
            Applicator::OneOf(nodes) if passed != 1 => {
                let expected = format!("what fits exactly one of {} alternatives", nodes.len());
                let found = match passed {
                    0 => self.fits_none(nodes)?,
                    _ => "which fits more than one".to_owned(),
                };
                self.fail("oneOf", expected, Some(&found))?;
            }
            Applicator::Not(_) if passed > 0 => {
                let expected = "anything that does not fit the schema of `not`".to_owned();
                self.fail("not", expected, Some("which fits it"))?;
            }
            Applicator::Contains(contains) if passed < contains.min => {
                let found = format!("in which {passed} do");
                let keyword = if contains.min == 1 { "contains" } else { "minContains" };
                let expected = format!("at least {} elements that fit `contains`", contains.min);
                self.fail(keyword, expected, Some(&found))?;
            }
            Applicator::Contains(contains) if contains.max.is_some_and(|max| passed > max) => {
                let max = contains.max.expect("there is one");
                let expected = format!("at most {max} elements that fit `contains`");
                self.fail("maxContains", expected, Some("in which more do"))?;
            }
            _ => {}
        }
        let frame = self.frame_mut();
        if frame.job.tracks && frame.valid {
            frame.coverage.add(frame.job.node, applicator);
        }
        frame.started = false;
        frame.source = Source::None;
        frame.applicator += 1;
        Ok(())
    }

    /// Marks the running frame as disproved and notes why.
    fn fail(&mut self, keyword: &str, expected: String, found_more: Option<&str>) -> Result<()> {
        let frame = self.frame_mut();
        frame.valid = false;
        if frame.job.quiet {
            return Ok(());
        }
        if !self.has_room() {
            self.report.more += 1;
            return Ok(());
        }
        let (instance, mut way) = self.place();
        let frame = self.frame();
        let mut location = self.schema.nodes[frame.job.node].location.clone();
        if !keyword.is_empty() {
            way.push(keyword);
            location.push('/');
            location.push_str(keyword);
        }
        let mut found = frame.job.subject.describe()?;
        if let Some(more) = found_more {
            found = format!("{found}, {more}");
        }
        self.report.violations.push(Violation {
            instance,
            keyword: way,
            location,
            expected,
            found,
        });
        Ok(())
    }

    /// Whether one more violation is listed.
    fn has_room(&self) -> bool {
        self.report.violations.len() < self.violations_max
    }

    /// Where the running frame is in the document, and the way through the schema to there.
    fn place(&self) -> (Path, Path) {
        let (mut instance, mut way) = (Path::root(), Path::root());
        for frame in &self.stack {
            match &frame.job.step {
                Step::Key(key) => instance.push(key),
                Step::Element(position) => instance.push(&position.to_string()),
                Step::InPlace | Step::Name => {}
            }
            if !frame.job.via.keyword.is_empty() {
                way.push(frame.job.via.keyword);
            }
            match &frame.job.via.token {
                Some(Token::Index(index)) => way.push(&index.to_string()),
                Some(Token::Text(text)) => way.push(text),
                None => {}
            }
        }
        (instance, way)
    }
}

/// Takes what a job has found into the frame that asked for it.
fn receive<I: Instance>(schema: &Schema, below: &mut Frame<I>, done: Frame<I>) {
    let applicator = &schema.nodes[below.job.node].applicators[below.applicator];
    let asserts = match applicator {
        Applicator::AnyOf(_)
        | Applicator::OneOf(_)
        | Applicator::Not(_)
        | Applicator::Contains(_) => false,
        Applicator::If { .. } => !done.job.is_condition,
        _ => true,
    };
    below.passed += u64::from(done.valid);
    below.valid &= done.valid || !asserts;
    if below.job.tracks && done.valid {
        match (done.job.step, applicator) {
            (_, Applicator::Not(_)) => {}
            (Step::InPlace, _) => below.coverage.merge(done.coverage),
            (Step::Element(position), Applicator::Contains(contains)) if contains.covers => {
                below.coverage.add_found(position);
            }
            _ => {}
        }
    }
    if let Applicator::If { then, otherwise, .. } = applicator
        && done.job.is_condition
        && let Some(node) = if done.valid { *then } else { *otherwise }
    {
        let keyword = if done.valid { "then" } else { "else" };
        let same = below.condition_was.is_none_or(|was| was == done.valid);
        let before = below.job.before.clone().filter(|_| same);
        let job = below.in_place(node, Via::keyword(keyword), before);
        below.queue.push_back(job);
    }
}
