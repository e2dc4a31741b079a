//! The side file: metadata and which strings are bytes, by path; its form is in `docs/format.md`.

use std::collections::BTreeMap;

use spinney_core::{Container, Error, Key, Path, Result, Scalar, Value, Visitor};

use crate::formats::{self, Fidelity, Layout, decode_base64};

/// The number of the form.
const FORM: u64 = 1;

/// What JSON leaves out of one node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Extra {
    is_bytes: bool,
    meta: Vec<(String, String)>,
}

/// What JSON leaves out of a document, by JSON Pointer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Side(BTreeMap<String, Extra>);

impl Side {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The text of the side file; empty when there is nothing to say.
    pub fn print(&self) -> Result<Vec<u8>> {
        if self.is_empty() {
            return Ok(Vec::new());
        }
        let node = |extra: &Extra| {
            let mut node = spinney_core::Map::new();
            if extra.is_bytes {
                node.insert("bytes", true);
            }
            if !extra.meta.is_empty() {
                let meta: spinney_core::Map =
                    extra.meta.iter().map(|(name, value)| (name, &**value)).collect();
                node.insert("meta", meta);
            }
            node
        };
        let nodes: spinney_core::Map =
            self.0.iter().map(|(path, extra)| (path, node(extra))).collect();
        let members = [("form", Value::from(FORM)), ("nodes", Value::from(nodes))];
        let all: spinney_core::Map = members.into_iter().collect();
        let mut text = formats::print(&Value::from(all), Layout::Pretty, Fidelity::Refuse)?;
        text.push('\n');
        Ok(text.into_bytes())
    }

    /// Reads the text of a side file.
    ///
    /// # Errors
    /// `InvalidInput` when it is none; `Unsupported` for a newer form.
    pub fn parse(text: &[u8]) -> Result<Side> {
        if text.is_empty() {
            return Ok(Side::default());
        }
        let malformed =
            || Error::invalid_input("it is no side file; its form is in docs/format.md");
        let text = std::str::from_utf8(text).map_err(|_| malformed())?;
        let value = formats::parse(text)?;
        match value.pointer("/form") {
            Some(Value::Number(form)) if form.as_u64() == Some(FORM) => {}
            Some(Value::Number(_)) => {
                return Err(Error::unsupported("a newer spinney made it; open it with that one"));
            }
            _ => return Err(malformed()),
        }
        let Some(Value::Map(nodes)) = value.pointer("/nodes") else { return Err(malformed()) };
        let mut side = Side::default();
        for (path, node) in nodes.iter() {
            let mut extra = Extra {
                is_bytes: node.pointer("/bytes") == Some(&Value::Bool(true)),
                meta: Vec::new(),
            };
            if let Some(Value::Map(meta)) = node.pointer("/meta") {
                for (name, value) in meta.iter() {
                    let value = value.as_str().ok_or_else(malformed)?;
                    extra.meta.push((name.into_owned(), value.to_owned()));
                }
            }
            side.0.insert(path.into_owned(), extra);
        }
        Ok(side)
    }
}

/// The path of the value that comes next in a walk.
#[derive(Default)]
struct Walked {
    path: Path,
    /// Of each open container: the position of its next element; `None` for a map.
    open: Vec<Option<u64>>,
}

impl Walked {
    fn key(&mut self, key: Key<'_>) {
        self.path.push(&key.text());
    }

    /// A value begins: in a list its position is its segment.
    fn begin(&mut self) {
        if let Some(Some(position)) = self.open.last_mut() {
            self.path.push(&position.to_string());
            *position += 1;
        }
    }

    fn open(&mut self, container: Container) {
        self.open.push(match container {
            Container::Map => None,
            Container::List => Some(0),
        });
    }

    fn close(&mut self) {
        self.open.pop();
        self.end();
    }

    fn end(&mut self) {
        self.path.pop();
    }
}

/// Gathers what JSON leaves out.
#[derive(Default)]
pub struct Collect {
    walked: Walked,
    meta: Vec<(String, String)>,
    side: Side,
}

impl Collect {
    pub fn finish(self) -> Side {
        self.side
    }

    fn begin(&mut self, is_bytes: bool) {
        self.walked.begin();
        let meta = std::mem::take(&mut self.meta);
        if is_bytes || !meta.is_empty() {
            self.side.0.insert(String::from(&*self.walked.path), Extra { is_bytes, meta });
        }
    }
}

impl Visitor for Collect {
    fn open(&mut self, container: Container) -> Result<()> {
        self.begin(false);
        self.walked.open(container);
        Ok(())
    }

    fn key(&mut self, key: Key<'_>) -> Result<()> {
        self.walked.key(key);
        Ok(())
    }

    fn scalar(&mut self, scalar: Scalar<'_>) -> Result<()> {
        self.begin(matches!(scalar, Scalar::Bytes(_)));
        self.walked.end();
        Ok(())
    }

    fn close(&mut self) -> Result<()> {
        self.walked.close();
        Ok(())
    }

    fn meta(&mut self, name: &str, value: &str) -> Result<()> {
        self.meta.push((name.to_owned(), value.to_owned()));
        Ok(())
    }
}

/// Adds what the side file says to what is read from the document. What no longer fits there, since
/// a person has edited it, is left out.
pub struct Annotate<'a> {
    inner: &'a mut dyn Visitor,
    side: &'a Side,
    walked: Walked,
}

impl<'a> Annotate<'a> {
    pub fn new(inner: &'a mut dyn Visitor, side: &'a Side) -> Annotate<'a> {
        Annotate { inner, side, walked: Walked::default() }
    }

    fn begin(&mut self) -> Result<Option<&'a Extra>> {
        self.walked.begin();
        let extra = self.side.0.get(&*self.walked.path);
        for (name, value) in extra.iter().flat_map(|extra| &extra.meta) {
            self.inner.meta(name, value)?;
        }
        Ok(extra)
    }
}

impl Visitor for Annotate<'_> {
    fn open(&mut self, container: Container) -> Result<()> {
        self.begin()?;
        self.walked.open(container);
        self.inner.open(container)
    }

    fn key(&mut self, key: Key<'_>) -> Result<()> {
        self.walked.key(key);
        self.inner.key(key)
    }

    fn scalar(&mut self, scalar: Scalar<'_>) -> Result<()> {
        let extra = self.begin()?;
        self.walked.end();
        let is_bytes = extra.is_some_and(|extra| extra.is_bytes);
        match scalar {
            Scalar::String(text) if is_bytes => match decode_base64(text.text) {
                Some(bytes) => self.inner.scalar(Scalar::Bytes(&bytes)),
                None => self.inner.scalar(scalar),
            },
            _ => self.inner.scalar(scalar),
        }
    }

    fn close(&mut self) -> Result<()> {
        self.walked.close();
        self.inner.close()
    }

    fn meta(&mut self, name: &str, value: &str) -> Result<()> {
        self.inner.meta(name, value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_json_leaves_out_comes_back() {
        let mut collect = Collect::default();
        collect.open(Container::Map).unwrap();
        collect.key(Key::Text("a/b")).unwrap();
        collect.meta("origin", "web").unwrap();
        collect.open(Container::List).unwrap();
        collect.scalar(Scalar::Null).unwrap();
        collect.scalar(Scalar::Bytes(b"xy")).unwrap();
        collect.close().unwrap();
        collect.close().unwrap();
        let side = collect.finish();
        assert_eq!(side.0.keys().collect::<Vec<_>>(), ["/a~1b", "/a~1b/1"]);
        assert_eq!(Side::parse(&side.print().unwrap()).unwrap(), side);
        assert_eq!(Side::default().print().unwrap(), b"");

        let mut again = Collect::default();
        let text = br#"{"a/b": [null, "eHk="]}"#;
        formats::read(&text[..], formats::Dialect::Json, &mut Annotate::new(&mut again, &side))
            .unwrap();
        assert_eq!(again.finish(), side);
        for bad in ["[]", "{\"form\": 1}", "{\"form\": 2, \"nodes\": {}}", "x"] {
            assert!(Side::parse(bad.as_bytes()).is_err(), "{bad}");
        }
    }
}
