//! Conditions of filters (RFC 9535, section 2.3.5), as code that jumps over what need not be asked.

use spinney_core::error::Result;

use super::{Form, Frame, Operand, Parser, State};
use crate::program::{Comparison, Literal, Op, Selector};

/// A condition that is being read: a filter's, or one in parentheses.
pub struct LogicFrame {
    scope: Scope,
    /// Whether `!` stands before what is read next.
    is_negated: bool,
    /// The comparison whose left side is read.
    comparison: Option<Comparison>,
    /// Jumps to the end of the terms that `&&` joins.
    ands: Vec<usize>,
    /// Jumps to the end of the condition.
    ors: Vec<usize>,
}

/// Where a condition ends.
enum Scope {
    /// With its selector.
    Filter,
    /// At `)`.
    Parentheses { is_negated: bool },
}

const OPERAND: &str = "a query that begins with `@` or `$`, a literal or a function";

const COMPARISONS: [(&str, Comparison); 6] = [
    ("==", Comparison::Equal),
    ("!=", Comparison::NotEqual),
    ("<=", Comparison::LessOrEqual),
    (">=", Comparison::GreaterOrEqual),
    ("<", Comparison::Less),
    (">", Comparison::Greater),
];

impl Parser<'_> {
    /// Behind `?`.
    pub(super) fn open_filter(&mut self) -> Result<Option<State>> {
        self.codes.push(Vec::new());
        self.open_logic(Scope::Filter)
    }

    fn open_logic(&mut self, scope: Scope) -> Result<Option<State>> {
        let (ands, ors) = (Vec::new(), Vec::new());
        let frame = LogicFrame { scope, is_negated: false, comparison: None, ands, ors };
        self.open(Frame::Logic(frame))?;
        Ok(Some(State::Operand))
    }

    /// The condition that is read, unless it is an argument.
    fn logic(&mut self) -> Option<&mut LogicFrame> {
        match self.frames.last_mut() {
            Some(Frame::Logic(logic)) => Some(logic),
            _ => None,
        }
    }

    pub(super) fn operand(&mut self) -> Result<Option<State>> {
        let at = self.scanner.at;
        let next = self.scanner.peek();
        let logic = self.logic();
        let is_negated = logic.as_ref().is_some_and(|logic| logic.is_negated);
        // A comparison or an argument needs an operand, a `!` a test.
        let may_be_condition = logic.as_ref().is_some_and(|logic| logic.comparison.is_none());
        match (next, logic) {
            (Some('!'), Some(logic)) if may_be_condition && !is_negated => {
                logic.is_negated = true;
                self.scanner.at += 1;
                self.scanner.skip_space();
                return Ok(Some(State::Operand));
            }
            (Some('('), Some(logic)) if may_be_condition => {
                logic.is_negated = false;
                self.scanner.at += 1;
                self.scanner.skip_space();
                return self.open_logic(Scope::Parentheses { is_negated });
            }
            (Some(origin @ ('$' | '@')), _) => {
                self.scanner.at += 1;
                return self.open_route(origin == '$');
            }
            _ => {}
        }
        let literal = match next {
            Some('\'' | '"') => Some(Literal::String(self.scanner.string()?)),
            Some('-' | '0'..='9') => Some(Literal::Number(self.scanner.number()?)),
            Some('a'..='z') => {
                let word = self.scanner.take_while(|char| {
                    char.is_ascii_lowercase() || char.is_ascii_digit() || char == '_'
                });
                if self.scanner.eat("(") {
                    return self.open_call(at, word);
                }
                match word {
                    "null" => Some(Literal::Null),
                    "true" => Some(Literal::Bool(true)),
                    "false" => Some(Literal::Bool(false)),
                    _ => None,
                }
            }
            _ => None,
        };
        let Some(literal) = literal else {
            self.scanner.at = at;
            return Err(self.scanner.expected(match is_negated {
                true => "a query, a function or `(` after `!`",
                false => OPERAND,
            }));
        };
        if is_negated {
            return Err(self
                .scanner
                .wrong(at, "a literal is no condition, so `!` cannot stand before it"));
        }
        self.program.literals.push(literal);
        let form = Form::Literal(self.program.literals.len() - 1);
        Ok(Some(State::OperandRead(Operand { at, form })))
    }

    pub(super) fn operand_read(&mut self, operand: Operand) -> Result<Option<State>> {
        if matches!(self.frames.last(), Some(Frame::Call(_))) {
            return self.argument_read(operand);
        }
        if let Some(comparison) = self.logic().and_then(|logic| logic.comparison.take()) {
            self.emit_value(operand, "a comparison")?;
            self.emit_comparison(comparison);
            return Ok(Some(State::TestRead));
        }
        let behind = self.scanner.at;
        self.scanner.skip_space();
        let comparison = COMPARISONS.into_iter().find(|(sign, _)| self.scanner.eat(sign));
        let is_negated = self.logic().is_some_and(|logic| std::mem::take(&mut logic.is_negated));
        if let Some((sign, comparison)) = comparison {
            if is_negated {
                let what = format!("`!` binds closer than `{sign}`; write `!(...)`");
                return Err(self.scanner.wrong(operand.at, &what));
            }
            self.scanner.skip_space();
            self.emit_value(operand, "a comparison")?;
            self.logic().expect("it is a condition").comparison = Some(comparison);
            return Ok(Some(State::Operand));
        }
        self.scanner.at = behind;
        match operand.form {
            Form::Route(route) => self.emit(Op::Exists(route)),
            Form::Truth => {}
            Form::Literal(_) | Form::Value => {
                self.scanner.skip_space();
                return Err(self
                    .scanner
                    .expected("a comparison such as `==`, as a value is no condition"));
            }
        }
        if is_negated {
            self.emit(Op::Not);
        }
        Ok(Some(State::TestRead))
    }

    /// Compares the two operands whose code was written last.
    fn emit_comparison(&mut self, comparison: Comparison) {
        let (fused, route) = match self.code()[..] {
            [.., Op::Node(route), Op::Literal(literal)] => {
                (Op::CompareLiteral(comparison, route, literal), route)
            }
            [.., Op::Literal(literal), Op::Node(route)] => {
                (Op::CompareLiteral(comparison.mirrored(), route, literal), route)
            }
            _ => return self.emit(Op::Compare(comparison)),
        };
        // What begins at the root is known after the first child and needs no more seeks.
        if self.program.routes[route].is_absolute {
            return self.emit(Op::Compare(comparison));
        }
        let code = self.code();
        code.truncate(code.len() - 2);
        code.push(fused);
    }

    /// Puts the value of an operand onto the stack.
    pub(super) fn emit_value(&mut self, operand: Operand, user: &str) -> Result<()> {
        match operand.form {
            Form::Literal(literal) => self.emit(Op::Literal(literal)),
            Form::Value => {}
            Form::Route(route) if self.program.routes[route].is_singular => {
                self.emit(Op::Node(route));
            }
            Form::Route(_) => {
                let what = format!(
                    "{user} needs a query that finds one node at most, of names and indexes only; \
                     `value()` makes one value of others"
                );
                return Err(self.scanner.wrong(operand.at, &what));
            }
            Form::Truth => {
                let what =
                    format!("{user} needs a value, and the function gives true or false only");
                return Err(self.scanner.wrong(operand.at, &what));
            }
        }
        Ok(())
    }

    pub(super) fn test_read(&mut self) -> Result<Option<State>> {
        let behind = self.scanner.at;
        self.scanner.skip_space();
        let here = self.code().len();
        if self.scanner.eat("&&") {
            self.logic().expect("it is a condition").ands.push(here);
            self.emit(Op::JumpIf(false, usize::MAX));
            self.scanner.skip_space();
            return Ok(Some(State::Operand));
        }
        if self.scanner.eat("||") {
            let logic = self.logic().expect("it is a condition");
            logic.ors.push(here);
            let ands = std::mem::take(&mut logic.ands);
            self.land(&ands, here);
            self.emit(Op::JumpIf(true, usize::MAX));
            self.scanner.skip_space();
            return Ok(Some(State::Operand));
        }
        self.scanner.at = behind;
        let Some(Frame::Logic(LogicFrame { scope, ands, ors, .. })) = self.frames.pop() else {
            unreachable!("it is a condition")
        };
        self.land(&ands, here);
        self.land(&ors, here);
        match scope {
            Scope::Filter => {
                let code = self.codes.pop().expect("it has code");
                self.program.filters.push(code);
                self.add_selector(Selector::Filter(self.program.filters.len() - 1))
            }
            Scope::Parentheses { is_negated } => {
                self.scanner.skip_space();
                if !self.scanner.eat(")") {
                    return Err(self.scanner.expected("`&&`, `||` or `)`"));
                }
                if is_negated {
                    self.emit(Op::Not);
                }
                Ok(Some(State::TestRead))
            }
        }
    }

    /// Makes jumps lead to a place.
    fn land(&mut self, jumps: &[usize], place: usize) {
        for &jump in jumps {
            if let Op::JumpIf(_, target) = &mut self.code()[jump] {
                *target = place;
            }
        }
    }
}
