//! Reads the text of a query into a program, checking that it is well-typed.
//!
//! A stack of frames takes the place of recursion, so that neither brackets nor parentheses can be
//! too deep for it; a limit on them is there to name. `segments` reads routes, `logic` filters,
//! `functions` calls.

mod functions;
mod logic;
mod scan;
mod segments;

use spinney_core::error::{Error, Result};
use spinney_core::limits::PATH_LEN_MAX;

use crate::program::{Op, Program, RouteId};
use functions::CallFrame;
use logic::LogicFrame;
use scan::Scanner;
use segments::RouteFrame;

/// Filters, parentheses, calls and queries within each other.
const NESTING_MAX: usize = 512;

/// Reads a query.
///
/// # Errors
/// `InvalidInput` saying where the text is not well-formed or not well-typed; `LimitExceeded` when it
/// is too long or nests too deep.
pub fn parse(text: &str) -> Result<Program> {
    if text.len() > PATH_LEN_MAX {
        let len = text.len();
        return Err(Error::limit_exceeded(format!(
            "a query has {len} bytes; at most {PATH_LEN_MAX}"
        )));
    }
    let mut scanner = Scanner { text, at: 0 };
    if !scanner.eat("$") {
        return Err(scanner.expected("`$`, with which every query begins"));
    }
    let mut parser =
        Parser { scanner, frames: Vec::new(), codes: Vec::new(), program: Program::default() };
    let mut next = parser.open_route(true)?;
    while let Some(state) = next {
        next = match state {
            State::Segment => parser.segment()?,
            State::Selector => parser.selector()?,
            State::SelectorRead => parser.selector_read()?,
            State::Operand => parser.operand()?,
            State::OperandRead(operand) => parser.operand_read(operand)?,
            State::TestRead => parser.test_read()?,
        };
    }
    Ok(parser.program)
}

/// What is to be read next, in the frame that was opened last.
enum State {
    /// A segment, or what follows the last.
    Segment,
    /// A selector.
    Selector,
    /// A `,` or `]`.
    SelectorRead,
    /// An operand of a comparison, a test, or an argument.
    Operand,
    /// What makes an operand a comparison, a test, or an argument.
    OperandRead(Operand),
    /// A `&&`, a `||`, or the end of a condition.
    TestRead,
}

/// Something that has a value or finds nodes.
struct Operand {
    /// Where it begins.
    at: usize,
    form: Form,
}

enum Form {
    /// A place among the literals.
    Literal(usize),
    /// Another query.
    Route(RouteId),
    /// A call whose code is written: its value is on the stack.
    Value,
    /// A call whose code is written: its truth value is in the register.
    Truth,
}

/// What has begun and not ended.
enum Frame {
    Route(RouteFrame),
    Logic(LogicFrame),
    Call(CallFrame),
}

struct Parser<'t> {
    scanner: Scanner<'t>,
    frames: Vec<Frame>,
    /// Code of the filters that have begun.
    codes: Vec<Vec<Op>>,
    program: Program,
}

impl Parser<'_> {
    fn open(&mut self, frame: Frame) -> Result<()> {
        if self.frames.len() == NESTING_MAX {
            let what = format!("the query nests deeper than {NESTING_MAX}; write it flatter");
            return Err(Error::limit_exceeded(self.scanner.place(self.scanner.at, &what)));
        }
        self.frames.push(frame);
        Ok(())
    }

    /// The code of the filter that was begun last.
    fn code(&mut self) -> &mut Vec<Op> {
        self.codes.last_mut().expect("operands stand in filters")
    }

    fn emit(&mut self, op: Op) {
        self.code().push(op);
    }
}

#[cfg(test)]
mod tests;
