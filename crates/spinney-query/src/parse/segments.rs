//! Segments and selectors (RFC 9535, sections 2.3 and 2.5).

use spinney_core::error::Result;

use super::{Form, Frame, Operand, Parser, State};
use crate::program::{Route, Segment, Selector};
use crate::slice::Slice;
use spinney_core::read::Name;

/// A query that is being read.
pub struct RouteFrame {
    /// Where it begins.
    begun: usize,
    is_absolute: bool,
    segments: Vec<Segment>,
    /// The segment that is being read.
    open: Segment,
}

const SELECTOR: &str = "a selector: a quoted name, an index, a slice, `*` or `?`";

fn segment(begun: usize, descends: bool) -> Segment {
    Segment { descends, selectors: Vec::new(), source: begun..begun }
}

impl Parser<'_> {
    /// Behind the `$` or `@` of a query.
    pub(super) fn open_route(&mut self, is_absolute: bool) -> Result<Option<State>> {
        let begun = self.scanner.at - 1;
        let open = segment(begun, false);
        self.open(Frame::Route(RouteFrame { begun, is_absolute, segments: Vec::new(), open }))?;
        Ok(Some(State::Segment))
    }

    fn route(&mut self) -> &mut RouteFrame {
        match self.frames.last_mut() {
            Some(Frame::Route(route)) => route,
            _ => unreachable!("selectors stand in queries"),
        }
    }

    pub(super) fn segment(&mut self) -> Result<Option<State>> {
        let before_space = self.scanner.at;
        self.scanner.skip_space();
        let begun = self.scanner.at;
        let descends = self.scanner.eat("..");
        if !descends && !self.scanner.rest().starts_with(['.', '[']) {
            self.scanner.at = before_space;
            return self.close_route();
        }
        self.route().open = segment(begun, descends);
        if self.scanner.eat("[") {
            self.scanner.skip_space();
            return Ok(Some(State::Selector));
        }
        if !descends {
            self.scanner.eat(".");
        }
        let selector = match self.scanner.eat("*") {
            true => Selector::Wildcard,
            false => match self.scanner.shorthand() {
                Some(name) => Selector::Name(Name::new(name)),
                None if descends => return Err(self.scanner.expected("a name, `*` or `[`")),
                None => return Err(self.scanner.expected("a name or `*`")),
            },
        };
        self.route().open.selectors.push(selector);
        self.close_segment()
    }

    fn close_segment(&mut self) -> Result<Option<State>> {
        let end = self.scanner.at;
        let route = self.route();
        let mut open = std::mem::replace(&mut route.open, segment(end, false));
        open.source.end = end;
        route.segments.push(open);
        Ok(Some(State::Segment))
    }

    fn close_route(&mut self) -> Result<Option<State>> {
        let Some(Frame::Route(RouteFrame { begun, is_absolute, segments, .. })) = self.frames.pop()
        else {
            unreachable!("a query ends")
        };
        let is_singular = segments.iter().all(Segment::is_singular);
        self.program.routes.push(Route { is_absolute, is_singular, segments });
        if self.frames.is_empty() {
            return match self.scanner.peek() {
                None => Ok(None),
                Some(_) => Err(self.scanner.expected("`.`, `..`, `[` or the end of the query")),
            };
        }
        let form = Form::Route(self.program.main());
        Ok(Some(State::OperandRead(Operand { at: begun, form })))
    }

    pub(super) fn selector(&mut self) -> Result<Option<State>> {
        let selector = match self.scanner.peek() {
            Some('\'' | '"') => Selector::Name(Name::new(self.scanner.string()?)),
            Some('*') => {
                self.scanner.at += 1;
                Selector::Wildcard
            }
            Some('?') => {
                self.scanner.at += 1;
                self.scanner.skip_space();
                return self.open_filter();
            }
            Some('-' | ':' | '0'..='9') => self.index_or_slice()?,
            _ => return Err(self.scanner.expected(SELECTOR)),
        };
        self.add_selector(selector)
    }

    /// Adds a selector that is read.
    pub(super) fn add_selector(&mut self, selector: Selector) -> Result<Option<State>> {
        self.route().open.selectors.push(selector);
        Ok(Some(State::SelectorRead))
    }

    pub(super) fn selector_read(&mut self) -> Result<Option<State>> {
        self.scanner.skip_space();
        if self.scanner.eat(",") {
            self.scanner.skip_space();
            return Ok(Some(State::Selector));
        }
        match self.scanner.eat("]") {
            true => self.close_segment(),
            false => Err(self.scanner.expected("`,` or `]`")),
        }
    }

    fn index_or_slice(&mut self) -> Result<Selector> {
        let start = self.scanner.integer()?;
        let behind = self.scanner.at;
        self.scanner.skip_space();
        if !self.scanner.eat(":") {
            self.scanner.at = behind;
            return Ok(Selector::Index(start.expect("an integer or a colon is next")));
        }
        self.scanner.skip_space();
        let end = self.scanner.integer()?;
        self.scanner.skip_space();
        let mut step = None;
        if self.scanner.eat(":") {
            self.scanner.skip_space();
            step = self.scanner.integer()?;
        }
        Ok(Selector::Slice(Slice { start, end, step: step.unwrap_or(1) }))
    }
}
