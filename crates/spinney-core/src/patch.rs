//! JSON Patch (RFC 6902): its operations, and reading them from a document.
//!
//! It knows values and paths; what an operation does to a tree is the transaction's matter.

use std::fmt;

use crate::error::{Error, Result};
use crate::key::{Key, StoredKey};
use crate::path::{Display, Path};
use crate::value::{Map, Value, ValueBuilder};
use crate::visit::{Container, Scalar, Visitor};

const NAMES: &str = "`add`, `remove`, `replace`, `move`, `copy` or `test`";

/// Operations that apply one after the other, or none of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Patch {
    /// In their order.
    pub operations: Vec<Operation>,
}

/// One operation of a patch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// Where, from the root of the document.
    pub path: Path,
    /// What happens there.
    pub action: Action,
}

/// What an operation does at its path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Inserts an element, or sets a member.
    Add(Value),
    /// Removes what is there.
    Remove,
    /// Replaces what is there.
    Replace(Value),
    /// Takes what stands at another path and adds it.
    Move(Path),
    /// Adds what stands at another path, too.
    Copy(Path),
    /// Fails unless the value there is equal: numbers by their value, not by their text.
    Test(Value),
}

impl Action {
    /// The name that stands in `op`.
    pub fn name(&self) -> &'static str {
        match self {
            Action::Add(_) => "add",
            Action::Remove => "remove",
            Action::Replace(_) => "replace",
            Action::Move(_) => "move",
            Action::Copy(_) => "copy",
            Action::Test(_) => "test",
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, path) = (self.action.name(), Display(&self.path));
        match &self.action {
            Action::Move(from) | Action::Copy(from) => {
                write!(f, "{name} {} to {path}", Display(from))
            }
            _ => write!(f, "{name} {path}"),
        }
    }
}

impl Patch {
    /// Reads the JSON form.
    ///
    /// # Errors
    /// `InvalidInput` naming the operation: no list of objects, a missing or malformed member, an
    /// unknown operation, a path that is no JSON Pointer.
    pub fn from_value(value: &Value) -> Result<Patch> {
        let mut operations = Vec::new();
        value.visit(&mut PatchReader::new(&mut |_, operation| {
            operations.push(operation);
            Ok(())
        }))?;
        Ok(Patch { operations })
    }
}

impl Operation {
    /// Reads the JSON form; members that the operation does not have are ignored.
    fn from_value(value: Value) -> Result<Operation> {
        let Value::Map(mut members) = value else {
            return Err(Error::invalid_input(format!(
                "it is a {}; an operation is an object",
                value.kind()
            )));
        };
        let op = text(&members, "op")
            .map_err(|error| Error::invalid_input(format!("{}; write {NAMES}", error.context())))?;
        let action = match op {
            "add" => Action::Add(take_value(&mut members)?),
            "remove" => Action::Remove,
            "replace" => Action::Replace(take_value(&mut members)?),
            "move" => Action::Move(pointer(&members, "from")?),
            "copy" => Action::Copy(pointer(&members, "from")?),
            "test" => Action::Test(take_value(&mut members)?),
            unknown => {
                let shown: String = unknown.chars().take(40).collect();
                return Err(Error::invalid_input(format!("`op` is {shown:?}; write {NAMES}")));
            }
        };
        Ok(Operation { path: pointer(&members, "path")?, action })
    }
}

fn text<'m>(members: &'m Map, name: &str) -> Result<&'m str> {
    match members.get(name) {
        Some(Value::String(text)) => Ok(text),
        Some(other) => {
            let kind = other.kind();
            Err(Error::invalid_input(format!("`{name}` is a {kind}, not a string")))
        }
        None => Err(Error::invalid_input(format!("the member `{name}` is missing"))),
    }
}

fn pointer(members: &Map, name: &str) -> Result<Path> {
    Path::parse(text(members, name)?).map_err(|error| error.at(format_args!("`{name}`")))
}

fn take_value(members: &mut Map) -> Result<Value> {
    let missing = || Error::invalid_input("the member `value` is missing");
    members.remove("value").ok_or_else(missing)
}

/// Names an operation in an error: the patch's own pointer to it.
pub(crate) fn at_operation(index: usize, error: Error) -> Error {
    error.at(format_args!("operation `/{index}`"))
}

/// Hands each operation over as soon as the visit of the document has come to its end, with its
/// position; memory is needed for one operation at a time.
pub struct PatchReader<'f> {
    found: &'f mut dyn FnMut(usize, Operation) -> Result<()>,
    index: usize,
    /// Open containers, the list of operations included.
    depth: usize,
    operation: ValueBuilder,
}

impl<'f> PatchReader<'f> {
    /// Calls `found` with each operation; its errors end the visit.
    pub fn new(found: &'f mut dyn FnMut(usize, Operation) -> Result<()>) -> PatchReader<'f> {
        PatchReader { found, index: 0, depth: 0, operation: ValueBuilder::default() }
    }

    /// A value within an operation, or a whole one, is complete.
    fn end_value(&mut self) -> Result<()> {
        if self.depth > 1 {
            return Ok(());
        }
        let value = std::mem::take(&mut self.operation).finish().expect("a value is complete");
        let index = self.index;
        self.index += 1;
        let operation = Operation::from_value(value).map_err(|error| at_operation(index, error))?;
        (self.found)(index, operation)
    }

    fn refuse_root(&self, found: &str) -> Result<()> {
        match self.depth {
            0 => Err(Error::invalid_input(format!(
                "a JSON Patch is a list of operations, not {found}"
            ))),
            _ => Ok(()),
        }
    }

    /// Puts the operation before an error that the builder of its value has.
    fn built(&self, built: Result<()>) -> Result<()> {
        built.map_err(|error| at_operation(self.index, error))
    }
}

impl Visitor for PatchReader<'_> {
    fn open(&mut self, container: Container) -> Result<()> {
        match (self.depth, container) {
            (0, Container::Map) => self.refuse_root("an object")?,
            (0, Container::List) => {}
            _ => self.operation.open(container)?,
        }
        self.depth += 1;
        Ok(())
    }

    fn key(&mut self, key: Key<'_>) -> Result<()> {
        self.operation.key(key)
    }

    fn stored_key(&mut self, key: StoredKey<'_>) -> Result<()> {
        self.operation.stored_key(key)
    }

    fn scalar(&mut self, scalar: Scalar<'_>) -> Result<()> {
        self.refuse_root("a scalar")?;
        let built = self.operation.scalar(scalar);
        self.built(built)?;
        self.end_value()
    }

    fn close(&mut self) -> Result<()> {
        self.depth -= 1;
        if self.depth == 0 {
            return Ok(());
        }
        let built = self.operation.close();
        self.built(built)?;
        self.end_value()
    }

    fn meta(&mut self, _name: &str, _value: &str) -> Result<()> {
        Err(Error::unsupported("a patch cannot set metadata; use `meta`"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(members: &[(&str, Value)]) -> Value {
        Value::Map(members.iter().cloned().collect())
    }

    fn patch(operation: Value) -> Result<Patch> {
        Patch::from_value(
            &vec![map(&[("op", "remove".into()), ("path", "/a".into())]), operation].into(),
        )
    }

    #[test]
    fn operations_read_in_any_order_of_their_members() {
        let read = patch(map(&[
            ("value", map(&[("deep", vec![Value::Null].into())])),
            ("path", "/a~1b".into()),
            ("op", "add".into()),
            ("comment", map(&[("op", "remove".into())])),
        ]))
        .expect("it reads");
        let deep = map(&[("deep", vec![Value::Null].into())]);
        let path = Path::parse("/a~1b").expect("a path");
        assert_eq!(read.operations[1], Operation { path, action: Action::Add(deep) });
    }

    #[test]
    fn malformed_operations_are_named() {
        let path = ("path", Value::from("/a"));
        for (operation, said) in [
            (Value::Null, "operation `/1`: it is a null; an operation is an object"),
            (
                map(std::slice::from_ref(&path)),
                "operation `/1`: the member `op` is missing; write `add`",
            ),
            (map(&[("op", 1.into()), path.clone()]), "`op` is a number, not a string; write `add`"),
            (
                map(&[("op", "spam".into()), path.clone()]),
                "`op` is \"spam\"; write `add`, `remove`",
            ),
            (map(&[("op", "add".into()), path.clone()]), "the member `value` is missing"),
            (map(&[("op", "move".into()), path.clone()]), "the member `from` is missing"),
            (map(&[("op", "remove".into())]), "the member `path` is missing"),
            (
                map(&[("op", "remove".into()), ("path", "a".into())]),
                "`path`: the path `a` does not",
            ),
            (map(&[("op", "remove".into()), ("path", Value::Null)]), "`path` is a null, not a"),
        ] {
            let error = patch(operation).expect_err(said);
            assert_eq!(error.kind(), crate::ErrorKind::InvalidInput);
            assert!(error.to_string().contains(said), "{error}");
        }
        let error = Patch::from_value(&Value::map()).expect_err("it is no list");
        assert!(error.to_string().contains("a list of operations, not an object"), "{error}");
    }
}
