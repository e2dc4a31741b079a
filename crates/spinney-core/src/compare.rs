//! Comparing a tree that is visited with a value in memory.

use std::fmt;

use crate::error::{Error, Result};
use crate::key::Key;
use crate::members;
use crate::path::{Display, Path};
use crate::value::Value;
use crate::visit::{Container, Scalar, Visitor};

/// Characters of a text that messages show.
const SHOWN_LEN_MAX: usize = 40;

/// When two numbers count as the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// They have the same text.
    Identical,
    /// They are the same number: `1`, `1.0` and `10e-1`.
    Equal,
}

/// What a comparison with a value came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Compared {
    /// There is no node.
    Absent,
    /// It is the same.
    Same,
    /// It is not.
    Different(Mismatch),
}

/// The first place where a tree is not what was expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// Where, from the node that was compared.
    pub path: Path,
    /// What was expected there, in words; long values are cut.
    pub expected: String,
    /// What is there.
    pub found: String,
}

impl Mismatch {
    /// The error of whoever needs the node at a path to be as expected.
    #[cold]
    pub fn into_error(self, path: &str) -> Error {
        unexpected(&[path, &self.path].concat(), self.found, self.expected)
    }
}

/// The error for a node that is not as expected; `missing` stands for none.
#[cold]
pub fn unexpected(path: &str, found: impl fmt::Display, expected: impl fmt::Display) -> Error {
    let path = Display(path);
    Error::conflict(format!("{path} is {found} and not, as expected, {expected}"))
}

/// Compares what it is told as a [`Visitor`] with a value; metadata is not looked at.
pub struct Comparison<'v> {
    relation: Relation,
    open: Vec<Open<'v>>,
    /// What the next call must be about; `None` behind the end of a container, and at the end.
    next: Option<&'v Value>,
    mismatch: Option<Mismatch>,
}

/// A container whose members are being compared.
enum Open<'v> {
    Map { members: members::Iter<'v, Value>, key: String },
    List { elements: std::slice::Iter<'v, Value>, begun: usize },
}

impl<'v> Comparison<'v> {
    /// Expects `value`.
    pub fn new(value: &'v Value, relation: Relation) -> Comparison<'v> {
        Comparison { relation, open: Vec::new(), next: Some(value), mismatch: None }
    }

    /// What came out of a visit that ended so, false when there was no node: the comparison itself
    /// ends it with an error at the first difference.
    ///
    /// # Errors
    /// Those of the visit.
    pub fn outcome(self, visited: Result<bool>) -> Result<Compared> {
        match (self.mismatch, visited) {
            (Some(mismatch), _) => Ok(Compared::Different(mismatch)),
            (None, Ok(true)) => Ok(Compared::Same),
            (None, Ok(false)) => Ok(Compared::Absent),
            (None, Err(error)) => Err(error),
        }
    }

    /// Moves on to the next element, when the visit is in a list.
    fn begin_value(&mut self) {
        if let Some(Open::List { elements, begun }) = self.open.last_mut() {
            self.next = elements.next();
            *begun += 1;
        }
    }

    #[cold]
    fn differ(&mut self, expected: impl fmt::Display, found: impl fmt::Display) -> Error {
        let mut path = Path::root();
        for open in &self.open {
            match open {
                Open::Map { key, .. } => path.push(key),
                Open::List { begun, .. } => path.push(&(begun - 1).to_string()),
            }
        }
        let (expected, found) = (expected.to_string(), found.to_string());
        self.mismatch = Some(Mismatch { path, expected, found });
        Error::conflict("it is not as expected")
    }

    fn differ_from(&mut self, found: impl fmt::Display) -> Error {
        match self.next {
            Some(expected) => self.differ(Shown(expected), found),
            None => self.differ("missing", found),
        }
    }
}

impl Visitor for Comparison<'_> {
    fn open(&mut self, container: Container) -> Result<()> {
        self.begin_value();
        let opened = match (self.next, container) {
            (Some(Value::Map(map)), Container::Map) => {
                Open::Map { members: map.entries(), key: String::new() }
            }
            (Some(Value::List(list)), Container::List) => {
                Open::List { elements: list.iter(), begun: 0 }
            }
            (_, Container::Map) => return Err(self.differ_from("a map")),
            (_, Container::List) => return Err(self.differ_from("a list")),
        };
        self.open.push(opened);
        Ok(())
    }

    fn key(&mut self, key: Key<'_>) -> Result<()> {
        let Some(Open::Map { members, key: current }) = self.open.last_mut() else {
            unreachable!("keys are a map's")
        };
        let expected = members.next();
        *current = key.to_string();
        match expected {
            Some((other, value)) if **other == *key.encoded() => {
                self.next = Some(value);
                Ok(())
            }
            // The members come sorted on both sides.
            Some((other, value)) if **other < *key.encoded() => {
                *current = Key::decode(other).map(|key| key.to_string()).unwrap_or_default();
                Err(self.differ(Shown(value), "missing"))
            }
            _ => Err(self.differ("missing", "there")),
        }
    }

    fn scalar(&mut self, scalar: Scalar<'_>) -> Result<()> {
        self.begin_value();
        let same = match (self.next, scalar) {
            (Some(Value::Null), Scalar::Null) => true,
            (Some(Value::Bool(a)), Scalar::Bool(b)) => *a == b,
            (Some(Value::Number(a)), Scalar::Number(b)) => match self.relation {
                Relation::Identical => a.as_num() == b,
                Relation::Equal => a.as_num().compare(&b).is_eq(),
            },
            (Some(Value::String(a)), Scalar::String(b)) => a == b.text,
            (Some(Value::Bytes(a)), Scalar::Bytes(b)) => a == b,
            _ => false,
        };
        match same {
            true => Ok(()),
            false => Err(self.differ_from(ShownScalar(scalar))),
        }
    }

    fn close(&mut self) -> Result<()> {
        let missing = match self.open.last_mut() {
            Some(Open::Map { members, key }) => members.next().map(|(missing, value)| {
                *key = Key::decode(missing).map(|key| key.to_string()).unwrap_or_default();
                value
            }),
            Some(Open::List { elements, begun }) => {
                *begun += 1;
                elements.next()
            }
            None => unreachable!("close comes after open"),
        };
        match missing {
            Some(value) => Err(self.differ(Shown(value), "missing")),
            None => {
                self.open.pop();
                Ok(())
            }
        }
    }

    fn meta(&mut self, _name: &str, _value: &str) -> Result<()> {
        Ok(())
    }
}

/// A value for messages: scalars themselves, containers by what they are.
pub struct Shown<'v>(pub &'v Value);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Value::Null => ShownScalar(Scalar::Null).fmt(f),
            Value::Bool(value) => value.fmt(f),
            Value::Number(number) => ShownScalar(Scalar::Number(number.as_num())).fmt(f),
            Value::String(text) => ShownText(text).fmt(f),
            Value::Bytes(bytes) => write!(f, "{} bytes", bytes.len()),
            Value::Map(map) => write!(f, "a map of {}", map.len()),
            Value::List(list) => write!(f, "a list of {}", list.len()),
        }
    }
}

/// A scalar for messages.
struct ShownScalar<'s>(Scalar<'s>);

impl fmt::Display for ShownScalar<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Scalar::Null => f.write_str("null"),
            Scalar::Bool(value) => value.fmt(f),
            Scalar::Number(num) => {
                let text = num.to_string();
                match text.get(..SHOWN_LEN_MAX) {
                    Some(beginning) if text.len() > SHOWN_LEN_MAX => write!(f, "{beginning}…"),
                    _ => f.write_str(&text),
                }
            }
            Scalar::String(text) => ShownText(text.text).fmt(f),
            Scalar::Bytes(bytes) => write!(f, "{} bytes", bytes.len()),
        }
    }
}

struct ShownText<'t>(&'t str);

impl fmt::Display for ShownText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.char_indices().nth(SHOWN_LEN_MAX) {
            Some((cut, _)) => write!(f, "{:?}…", &self.0[..cut]),
            None => write!(f, "{:?}", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::number::Number;

    fn number(text: &str) -> Value {
        Value::Number(Number::parse(text).expect(text))
    }

    fn compare(found: &Value, expected: &Value, relation: Relation) -> Option<Mismatch> {
        let mut comparison = Comparison::new(expected, relation);
        let visited = found.visit(&mut comparison).map(|()| true);
        match comparison.outcome(visited).expect("a value visits") {
            Compared::Absent => panic!("there is a node"),
            Compared::Same => None,
            Compared::Different(mismatch) => Some(mismatch),
        }
    }

    fn map(members: &[(&str, Value)]) -> Value {
        Value::Map(members.iter().cloned().collect())
    }

    #[test]
    fn numbers_are_compared_by_text_or_by_value() {
        let (a, b) = (Value::from(vec![number("1")]), Value::from(vec![number("10e-1")]));
        assert_eq!(compare(&a, &b, Relation::Equal), None);
        let mismatch = compare(&a, &b, Relation::Identical).expect("another text");
        assert_eq!((&*mismatch.path, &*mismatch.expected, &*mismatch.found), ("/0", "10e-1", "1"));
    }

    #[test]
    fn the_first_difference_is_told_with_its_place() {
        let list =
            |texts: &[&str]| Value::from(texts.iter().map(|t| number(t)).collect::<Vec<_>>());
        for (found, expected, path, said) in [
            (list(&["1", "2"]), list(&["1", "3"]), "/1", "`/x/1` is 2 and not, as expected, 3"),
            (list(&["1"]), list(&["1", "3"]), "/1", "is missing and not, as expected, 3"),
            (list(&["1", "3"]), list(&["1"]), "/1", "is 3 and not, as expected, missing"),
            (map(&[("a", list(&[]))]), map(&[("a", Value::Null)]), "/a", "is a list and not"),
            (map(&[("a", Value::Null)]), map(&[]), "/a", "is there and not, as expected, missing"),
            (
                map(&[]),
                map(&[("a", Value::map())]),
                "/a",
                "missing and not, as expected, a map of 0",
            ),
            (map(&[("b", 1.into())]), map(&[("a", 1.into())]), "/a", "is missing and not"),
            (Value::from("x"), Value::from("y".repeat(50)), "", "`/x` is \"x\" and not"),
        ] {
            let mismatch = compare(&found, &expected, Relation::Equal).expect("they differ");
            assert_eq!(&*mismatch.path, path);
            let error = mismatch.into_error("/x").to_string();
            assert!(error.contains(said), "{error}");
            assert_eq!(compare(&found, &found, Relation::Identical), None);
        }
    }
}
