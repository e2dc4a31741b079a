//! What a read returned: an owned copy, turned into text only after the clock stopped.

use spinney_core::{Container, Key, Result, Scalar, Value, Visitor};

use crate::canonical::write_string;

/// An owned copy of what a read returned.
#[derive(Clone, Debug)]
pub enum Answer {
    /// A tree of serde_json.
    Json(serde_json::Value),
    /// A tree of spinney.
    Tree(Value),
}

impl Answer {
    /// The answer as JSON text.
    ///
    /// # Errors
    /// `Unsupported` when it holds bytes, for which JSON has no form.
    pub fn to_json(&self) -> Result<Vec<u8>> {
        match self {
            Answer::Json(value) => Ok(value.to_string().into_bytes()),
            Answer::Tree(value) => {
                let mut printer = Printer::default();
                value.visit(&mut printer)?;
                Ok(printer.out)
            }
        }
    }
}

#[derive(Default)]
struct Printer {
    out: Vec<u8>,
    open: Vec<Container>,
    after_key: bool,
}

impl Printer {
    fn separate(&mut self) {
        let first = matches!(self.out.last(), None | Some(b'{' | b'['));
        if !std::mem::take(&mut self.after_key) && !first {
            self.out.push(b',');
        }
    }
}

impl Visitor for Printer {
    fn open(&mut self, container: Container) -> Result<()> {
        self.separate();
        self.out.push(if container == Container::Map { b'{' } else { b'[' });
        self.open.push(container);
        Ok(())
    }

    fn key(&mut self, key: Key<'_>) -> Result<()> {
        self.separate();
        write_string(&key.text(), &mut self.out);
        self.out.push(b':');
        self.after_key = true;
        Ok(())
    }

    fn scalar(&mut self, scalar: Scalar<'_>) -> Result<()> {
        self.separate();
        match scalar {
            Scalar::Null => self.out.extend_from_slice(b"null"),
            Scalar::Bool(value) => self.out.extend_from_slice(value.to_string().as_bytes()),
            Scalar::Number(number) => number.write(&mut self.out),
            Scalar::String(text) => write_string(text.text, &mut self.out),
            Scalar::Bytes(_) => {
                return Err(spinney_core::Error::unsupported("JSON has no form for bytes"));
            }
        }
        Ok(())
    }

    fn close(&mut self) -> Result<()> {
        let container = self.open.pop().expect("close comes after open");
        self.out.push(if container == Container::Map { b'}' } else { b']' });
        Ok(())
    }

    fn meta(&mut self, _name: &str, _value: &str) -> Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kinds_print_the_same_text() {
        let text = r#"{"a":[],"b":[1,"x\n",{"c":null,"d":{}}],"e":-1.5}"#;
        let json: serde_json::Value = serde_json::from_str(text).expect("JSON");
        let number = spinney_core::Number::parse("-1.5").expect("a number");
        let inner: spinney_core::Map =
            [("d", Value::map()), ("c", Value::Null)].into_iter().collect();
        let list = Value::from(vec![Value::from(1), Value::from("x\n"), Value::from(inner)]);
        let tree: spinney_core::Map =
            [("e", Value::Number(number)), ("b", list), ("a", Value::list())].into_iter().collect();
        assert_eq!(Answer::Json(json).to_json().expect("prints"), text.as_bytes());
        assert_eq!(Answer::Tree(tree.into()).to_json().expect("prints"), text.as_bytes());
    }
}
