//! The side file: metadata, which strings are bytes, and ids of list elements, by path, and the schemas
//! of the document; its form is in `docs/format.md`.

use std::collections::BTreeMap;

use spinney_core::{Container, Error, Key, Path, Result, Scalar, Value, Visitor};

use super::ids::Ids;
use crate::formats::{self, Fidelity, Layout, decode_base64};

/// The number of the form.
const FORM: u64 = 1;

/// Ids of elements may take so many bytes of the side file, or a quarter of the document's text.
const IDS_LEN_MIN: usize = 64 << 10;

/// Bytes of a node's entry beside its path and what it says.
const ENTRY_LEN: usize = 32;

/// What JSON leaves out of one node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Extra {
    is_bytes: bool,
    meta: Vec<(String, String)>,
    /// Of a list's elements, when they are not those that reading it gives.
    ids: Ids,
}

/// What JSON leaves out of a document, by JSON Pointer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Side {
    nodes: BTreeMap<String, Extra>,
    /// The ids of elements would take too much room, and are new when the file is read.
    pub lacks_ids: bool,
    /// The schemas of the document, by their ids.
    pub schemas: Option<Value>,
}

impl Side {
    pub fn is_empty(&self) -> bool {
        *self == Side::default()
    }

    /// Leaves out the ids of elements when they would be much beside a text of so many bytes.
    fn bound_ids(&mut self, text_len: usize) {
        let with_ids = self.nodes.iter().filter(|(_, extra)| !extra.ids.are_given());
        let len =
            |(path, extra): (&String, &Extra)| path.len() + extra.ids.print().len() + ENTRY_LEN;
        if with_ids.map(len).sum::<usize>() > IDS_LEN_MIN.max(text_len / 4) {
            self.nodes.values_mut().for_each(|extra| extra.ids = Ids::default());
            self.nodes.retain(|_, extra| *extra != Extra::default());
            self.lacks_ids = true;
        }
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
            if !extra.ids.are_given() {
                node.insert("ids", extra.ids.print());
            }
            node
        };
        let nodes: spinney_core::Map =
            self.nodes.iter().map(|(path, extra)| (path, node(extra))).collect();
        let mut all = spinney_core::Map::new();
        all.insert("form", FORM);
        all.insert("nodes", nodes);
        if self.lacks_ids {
            all.insert("ids", false);
        }
        if let Some(schemas) = &self.schemas {
            all.insert("schemas", schemas.clone());
        }
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
        let lacks_ids = value.pointer("/ids") == Some(&Value::Bool(false));
        let schemas = value.pointer("/schemas").cloned();
        let mut side = Side { lacks_ids, schemas, ..Side::default() };
        for (path, node) in nodes.iter() {
            let mut extra = Extra {
                is_bytes: node.pointer("/bytes") == Some(&Value::Bool(true)),
                ..Extra::default()
            };
            if let Some(ids) = node.pointer("/ids") {
                extra.ids = ids.as_str().and_then(Ids::parse).ok_or_else(malformed)?;
            }
            if let Some(Value::Map(meta)) = node.pointer("/meta") {
                for (name, value) in meta.iter() {
                    let value = value.as_str().ok_or_else(malformed)?;
                    extra.meta.push((name.into_owned(), value.to_owned()));
                }
            }
            side.nodes.insert(path.into_owned(), extra);
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
    /// Of each open container.
    ids: Vec<Ids>,
    side: Side,
}

impl Collect {
    /// What was gathered, to stand beside a text of so many bytes, and schemas.
    pub fn finish(mut self, text_len: usize, schemas: Option<Value>) -> Side {
        self.side.schemas = schemas;
        self.side.bound_ids(text_len);
        self.side
    }

    fn begin(&mut self, is_bytes: bool) {
        self.walked.begin();
        let meta = std::mem::take(&mut self.meta);
        if is_bytes || !meta.is_empty() {
            let extra = Extra { is_bytes, meta, ids: Ids::default() };
            self.side.nodes.insert(String::from(&*self.walked.path), extra);
        }
    }
}

impl Visitor for Collect {
    fn open(&mut self, container: Container) -> Result<()> {
        self.begin(false);
        self.walked.open(container);
        self.ids.push(Ids::default());
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
        if let Some(ids) = self.ids.pop().filter(|ids| !ids.are_given()) {
            self.side.nodes.entry(String::from(&*self.walked.path)).or_default().ids = ids;
        }
        self.walked.close();
        Ok(())
    }

    fn meta(&mut self, name: &str, value: &str) -> Result<()> {
        self.meta.push((name.to_owned(), value.to_owned()));
        Ok(())
    }

    fn wants_element_ids(&self) -> bool {
        true
    }

    fn element(&mut self, id: u64) {
        if let Some(ids) = self.ids.last_mut() {
            ids.push(id);
        }
    }
}

/// Adds what the side file says to what is read from the document. What no longer fits there, since
/// a person has edited it, is left out.
pub struct Annotate<'a> {
    inner: &'a mut dyn Visitor,
    side: &'a Side,
    walked: Walked,
    /// Of each open container: the ids of the elements that follow, when the side file has them.
    ids: Vec<Option<Box<dyn Iterator<Item = u64> + 'a>>>,
}

impl<'a> Annotate<'a> {
    pub fn new(inner: &'a mut dyn Visitor, side: &'a Side) -> Annotate<'a> {
        Annotate { inner, side, walked: Walked::default(), ids: Vec::new() }
    }

    fn begin(&mut self) -> Result<Option<&'a Extra>> {
        self.walked.begin();
        if let Some(id) = self.ids.last_mut().and_then(|ids| ids.as_mut()?.next()) {
            self.inner.element(id);
        }
        let extra = self.side.nodes.get(&*self.walked.path);
        for (name, value) in extra.iter().flat_map(|extra| &extra.meta) {
            self.inner.meta(name, value)?;
        }
        Ok(extra)
    }
}

impl Visitor for Annotate<'_> {
    fn open(&mut self, container: Container) -> Result<()> {
        let ids = self.begin()?.map(|extra| &extra.ids);
        let ids = ids.filter(|ids| container == Container::List && !ids.are_given());
        self.ids.push(ids.map(|ids| Box::new(ids.assigned()) as Box<_>));
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
        self.ids.pop();
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
    fn ids_are_left_out_when_they_are_much_beside_the_text() {
        let gathered = |text_len| {
            let mut collect = Collect::default();
            collect.open(Container::List).unwrap();
            for id in (0..20_000).rev() {
                collect.element(id);
                collect.scalar(Scalar::Null).unwrap();
            }
            collect.close().unwrap();
            collect.finish(text_len, None)
        };
        let (kept, left_out) = (gathered(1 << 20), gathered(100_000));
        assert!(!kept.lacks_ids && kept.print().unwrap().len() > 100_000);
        assert!(left_out.lacks_ids && left_out.print().unwrap().len() < 100);
        assert_eq!(Side::parse(&left_out.print().unwrap()).unwrap(), left_out);
    }

    #[test]
    fn what_json_leaves_out_comes_back() {
        let mut collect = Collect::default();
        collect.open(Container::Map).unwrap();
        collect.key(Key::Text("a/b")).unwrap();
        collect.meta("origin", "web").unwrap();
        collect.open(Container::List).unwrap();
        collect.element(4);
        collect.scalar(Scalar::Null).unwrap();
        collect.element(2);
        collect.scalar(Scalar::Bytes(b"xy")).unwrap();
        collect.close().unwrap();
        collect.close().unwrap();
        let side = collect.finish(0, None);
        assert_eq!(side.nodes.keys().collect::<Vec<_>>(), ["/a~1b", "/a~1b/1"]);
        assert_eq!(Side::parse(&side.print().unwrap()).unwrap(), side);
        assert_eq!(Side::default().print().unwrap(), b"");

        let mut again = Collect::default();
        let text = br#"{"a/b": [null, "eHk="]}"#;
        formats::read(&text[..], formats::Dialect::Json, &mut Annotate::new(&mut again, &side))
            .unwrap();
        assert_eq!(again.finish(0, None), side);
        for bad in ["[]", "{\"form\": 1}", "{\"form\": 2, \"nodes\": {}}", "x"] {
            assert!(Side::parse(bad.as_bytes()).is_err(), "{bad}");
        }
    }
}
