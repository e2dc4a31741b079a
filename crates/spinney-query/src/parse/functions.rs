//! Calls of functions (RFC 9535, section 2.4).

use spinney_core::error::Result;

use super::{Form, Frame, Operand, Parser, State};
use crate::pattern::{Extent, Pattern};
use crate::program::{Literal, Op, RouteId};

/// A call that is being read.
pub struct CallFrame {
    /// Where it begins.
    begun: usize,
    function: &'static Function,
    /// How many arguments are read.
    read: usize,
    /// The argument of a function that takes nodes.
    nodes: Option<RouteId>,
    /// The pattern, when it is a literal.
    pattern: Option<usize>,
}

struct Function {
    name: &'static str,
    action: Action,
    /// How many arguments it takes.
    arity: usize,
}

#[derive(Clone, Copy)]
enum Action {
    Length,
    Count,
    Value,
    Match(Extent),
}

const FUNCTIONS: [Function; 5] = [
    Function { name: "length", action: Action::Length, arity: 1 },
    Function { name: "count", action: Action::Count, arity: 1 },
    Function { name: "match", action: Action::Match(Extent::Whole), arity: 2 },
    Function { name: "search", action: Action::Match(Extent::Part), arity: 2 },
    Function { name: "value", action: Action::Value, arity: 1 },
];

impl Parser<'_> {
    /// Behind `name(`.
    pub(super) fn open_call(&mut self, begun: usize, name: &str) -> Result<Option<State>> {
        let Some(function) = FUNCTIONS.iter().find(|function| function.name == name) else {
            let what = format!(
                "there is no function `{name}`; there are `length`, `count`, `match`, `search` and `value`"
            );
            return Err(self.scanner.wrong(begun, &what));
        };
        self.open(Frame::Call(CallFrame { begun, function, read: 0, nodes: None, pattern: None }))?;
        self.scanner.skip_space();
        match self.scanner.eat(")") {
            true => self.close_call(),
            false => Ok(Some(State::Operand)),
        }
    }

    fn call(&mut self) -> &mut CallFrame {
        match self.frames.last_mut() {
            Some(Frame::Call(call)) => call,
            _ => unreachable!("arguments stand in calls"),
        }
    }

    pub(super) fn argument_read(&mut self, operand: Operand) -> Result<Option<State>> {
        let call = self.call();
        call.read += 1;
        let (Function { name, action, .. }, read) = (call.function, call.read);
        match (action, &operand.form) {
            (Action::Count | Action::Value, Form::Route(route)) => call.nodes = Some(*route),
            (Action::Count | Action::Value, _) => {
                let what = format!("`{name}()` needs a query that begins with `@` or `$`");
                return Err(self.scanner.wrong(operand.at, &what));
            }
            (Action::Match(extent), Form::Literal(literal)) if read == 2 => {
                self.literal_pattern(*extent, *literal, operand.at)?;
            }
            _ => self.emit_value(operand, &format!("`{name}()`"))?,
        }
        self.scanner.skip_space();
        if self.scanner.eat(",") {
            self.scanner.skip_space();
            return Ok(Some(State::Operand));
        }
        match self.scanner.eat(")") {
            true => self.close_call(),
            false => Err(self.scanner.expected("`,` or `)`")),
        }
    }

    /// Compiles a pattern once and for all. One that is none matches nothing, as RFC 9535 wants it;
    /// as nobody means that, it is a warning.
    fn literal_pattern(&mut self, extent: Extent, literal: usize, at: usize) -> Result<()> {
        let refused = match &self.program.literals[literal] {
            Literal::String(source) => match Pattern::new(source, extent)? {
                Ok(pattern) => Ok(pattern),
                Err(why) => Err(format!(
                    "`{source}` is no regular expression of RFC 9485 and matches nothing: at its \
                     character {}, expected {}",
                    why.character, why.expected
                )),
            },
            _ => Err("the pattern is no string and matches nothing".to_owned()),
        };
        let pattern = match refused {
            Ok(pattern) => Some(pattern),
            Err(what) => {
                self.program.warnings.push(self.scanner.place(at, &what));
                None
            }
        };
        self.program.patterns.push(pattern);
        self.call().pattern = Some(self.program.patterns.len() - 1);
        Ok(())
    }

    fn close_call(&mut self) -> Result<Option<State>> {
        let Some(Frame::Call(call)) = self.frames.pop() else { unreachable!("a call ends") };
        let CallFrame { begun, function: &Function { name, action, arity }, read, .. } = call;
        if read != arity {
            let s = if arity == 1 { "" } else { "s" };
            let what = format!("`{name}()` takes {arity} argument{s} and has {read}");
            return Err(self.scanner.wrong(begun, &what));
        }
        let nodes = || call.nodes.expect("the argument was checked");
        self.emit(match action {
            Action::Length => Op::Length,
            Action::Count => Op::Count(nodes()),
            Action::Value if self.program.routes[nodes()].is_singular => Op::Node(nodes()),
            Action::Value => Op::Value(nodes()),
            Action::Match(extent) => Op::Match(extent, call.pattern),
        });
        let form = match action {
            Action::Match(_) => Form::Truth,
            _ => Form::Value,
        };
        Ok(Some(State::OperandRead(Operand { at: begun, form })))
    }
}
