//! The documents of the suite: copies of one document, numbered from 1.

use std::fs;
use std::path::Path as FilePath;

use spinney::Value;
use spinney::formats::{self, Dialect};
use spinney_core::read::Leaves;
use spinney_core::value::ValueBuilder;
use spinney_core::{Error, Path, Result};

use super::collection::Calls;
use crate::answer::Answer;
use crate::canonical;

/// Bytes of a file's copies, as long as it has one document.
const FILE_BYTES: usize = 10_000_000;
/// Copies of a file with one document.
const COPIES_MAX: usize = 10_000;

/// What a document is made of.
#[derive(Clone, Debug)]
pub struct Source {
    /// The first word of its rows.
    pub name: String,
    /// The documents, which the copies repeat in turn; of those that were published there is one.
    pub documents: Vec<Value>,
    /// The leaf that single reads and writes are about; empty where the document is one.
    pub leaf: String,
    /// The numbers of copies that were published.
    pub sizes: Vec<usize>,
}

impl Source {
    /// `{hello:'world'}`.
    pub fn hello() -> Source {
        Source::published("hello", r#"{"hello":"world"}"#, "/hello", &[100, 50_000])
    }

    /// The person of the published pages, 5 leaves.
    pub fn person() -> Source {
        let text = r#"{"name":"Rob Tweed","address":{"houseNo":9,"city":"Redhill","county":"Surrey"},
            "telephone":"0790123456"}"#;
        Source::published("person", text, "/address/city", &[100, 10_000, 200_000])
    }

    /// One text and nothing around it.
    pub fn kv() -> Source {
        Source::published("kv", r#""hello world""#, "", &[1_000, 1_000_000])
    }

    fn published(name: &str, text: &str, leaf: &str, sizes: &[usize]) -> Source {
        let document = formats::parse(text).expect("a published document is JSON");
        Source {
            name: name.to_owned(),
            documents: vec![document],
            leaf: leaf.to_owned(),
            sizes: sizes.to_vec(),
        }
    }

    /// The document of a JSON or JSON5 file, or those of the lines of a `.jsonl` file. The leaf is
    /// chosen by `seed` among those that every document has at the same path.
    ///
    /// # Errors
    /// `Io` when the file cannot be read; `InvalidInput` when it is not JSON, holds no document, or its
    /// documents have no leaf in common.
    pub fn file(path: &FilePath, seed: u64) -> Result<Source> {
        let at = |error: Error| error.at(path.display());
        let text = fs::read(path).map_err(|error| {
            Error::io(format!("cannot read `{}`", path.display())).with_source(error)
        })?;
        let mut builder = ValueBuilder::default();
        let is_lines = path.extension().is_some_and(|extension| extension == "jsonl");
        match is_lines {
            true => formats::read_lines(&*text, &mut builder),
            false => formats::read(&*text, Dialect::Json5, &mut builder),
        }
        .map_err(at)?;
        let documents = match builder.finish() {
            Some(Value::List(lines)) if is_lines => lines.iter().cloned().collect(),
            document => Vec::from_iter(document),
        };
        let leaf = common_leaf(&documents, seed)?.ok_or_else(|| {
            at(Error::invalid_input(
                "the documents have no text, number, `true`, `false` or `null` at \
                a common path, which single reads and writes need",
            ))
        })?;
        let copies = match documents.len() {
            1 => (FILE_BYTES / text.len().max(1)).clamp(1, COPIES_MAX),
            many => many,
        };
        let name = path.file_name().map_or("file".into(), |name| name.to_string_lossy());
        Ok(Source { name: name.into_owned(), documents, leaf, sizes: vec![copies] })
    }
}

/// Copies of one document, as the systems take them.
pub struct Set {
    source: Source,
    len: usize,
    /// Those that are repeated in turn, or each.
    copies: Vec<Copy>,
}

/// One document in the forms that systems take.
pub struct Copy {
    /// As spinney takes it.
    pub value: Value,
    /// As plain libraries take it.
    pub json: serde_json::Value,
    /// As compact text.
    pub text: String,
    /// What makes the document when it is set, one after the other.
    pub steps: Vec<Step>,
    shape: Shape,
}

/// Something that is set.
pub struct Step {
    /// From the document on; elements of lists are appended.
    pub path: Path,
    /// A leaf, or an empty container.
    pub value: Value,
    /// Whether it is a leaf, and not what later ones stand in.
    pub is_leaf: bool,
}

/// What a document consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shape {
    /// I: containers with members.
    inner: u64,
    /// L: scalars, and containers without members.
    leaves: u64,
}

impl Set {
    /// `len` copies; `vary` appends the number of the copy to each of its texts.
    ///
    /// # Errors
    /// `InvalidInput` when copies are to differ and hold no text; `Unsupported` for bytes.
    pub fn new(source: Source, len: usize, vary: bool) -> Result<Set> {
        let copies: Vec<Copy> = match vary {
            false => source.documents.iter().cloned().map(Copy::new).collect::<Result<_>>()?,
            true => (1..=len)
                .map(|number| {
                    Copy::new(varied(
                        &source.documents[(number - 1) % source.documents.len()],
                        number,
                    )?)
                })
                .collect::<Result<_>>()?,
        };
        if vary && len > 1 && copies[0].text == copies[1].text {
            return Err(Error::invalid_input(format!(
                "the document `{}` holds no text, so that its copies cannot differ; leave `--vary` out",
                source.name
            )));
        }
        Ok(Set { source, len, copies })
    }

    /// n, the count of copies.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The first word of its rows.
    pub fn name(&self) -> &str {
        &self.source.name
    }

    /// The path of the leaf that single reads and writes are about.
    pub fn leaf(&self) -> &str {
        &self.source.leaf
    }

    /// Copy `number`, counted from 1.
    pub fn copy(&self, number: usize) -> &Copy {
        &self.copies[(number - 1) % self.copies.len()]
    }

    /// The leaf of copy `number`, or what it is changed to.
    pub fn leaf_of(&self, number: usize, is_changed: bool) -> Value {
        let leaf = self.copy(number).value.pointer(self.leaf()).cloned().unwrap_or(Value::Null);
        match leaf {
            Value::String(text) if is_changed => format!("{text}*").into(),
            _ if is_changed => "changed".into(),
            leaf => leaf,
        }
    }

    /// The compact text of copy `number`, or with its leaf changed.
    ///
    /// # Errors
    /// Those of printing.
    pub fn text_of(&self, number: usize, is_changed: bool) -> Result<Vec<u8>> {
        let copy = self.copy(number);
        if !is_changed {
            return Ok(copy.text.clone().into_bytes());
        }
        let mut json = copy.json.clone();
        let leaf = json.pointer_mut(self.leaf()).ok_or_else(|| missing(self.leaf()))?;
        *leaf = parsed(&Answer::Tree(self.leaf_of(number, true)).to_json()?)?;
        Ok(json.to_string().into_bytes())
    }

    /// The calls that a phase over all copies makes, where a system goes leaf by leaf.
    pub fn calls(&self, phase: Phase) -> Calls {
        (1..=self.len)
            .map(|number| self.copy(number).shape.calls(phase))
            .fold(Calls::default(), Calls::plus)
    }
}

impl Shape {
    fn calls(self, phase: Phase) -> Calls {
        let Shape { inner, leaves } = self;
        let edges = inner + leaves - 1;
        match phase {
            Phase::Set => Calls { set: leaves, ..Calls::default() },
            Phase::Nested => Calls {
                get: leaves,
                def: 1 + edges,
                nxt: inner + edges,
                nxt_end: inner,
                ..Calls::default()
            },
            Phase::Cursor => Calls { def: 1, nxt: 1, nxq: leaves, nxq_end: 1, ..Calls::default() },
        }
    }
}

/// A phase whose calls are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Each leaf is set.
    Set,
    /// Each node is looked at, its siblings one after the other.
    Nested,
    /// Each leaf is moved to.
    Cursor,
}

impl Copy {
    fn new(value: Value) -> Result<Copy> {
        let text =
            String::from_utf8(canonical::canonical(&Answer::Tree(value.clone()).to_json()?)?)
                .map_err(|error| Error::invalid_input("a text is not UTF-8").with_source(error))?;
        let json = parsed(text.as_bytes())?;
        let steps = steps(&value)?;
        let shape = Shape::of(&value)?;
        Ok(Copy { value, json, text, steps, shape })
    }
}

impl Shape {
    fn of(document: &Value) -> Result<Shape> {
        let (mut inner, mut leaves) = (0, 0);
        let mut cursor = Leaves::new(document);
        while let Some(kept) = cursor.advance()? {
            let known = if leaves == 0 { 0 } else { kept + 1 };
            inner += (cursor.depth() - known) as u64;
            leaves += 1;
        }
        Ok(Shape { inner, leaves })
    }
}

/// A path at which every document has a scalar, chosen by `seed`.
fn common_leaf(documents: &[Value], seed: u64) -> Result<Option<String>> {
    let mut common: Vec<Path> = Vec::new();
    for (at, document) in documents.iter().enumerate() {
        if at > 0 {
            common.retain(|path| document.pointer(path).is_some_and(is_scalar));
            continue;
        }
        let (mut cursor, mut way) = (Leaves::new(document), Way::default());
        while let Some(kept) = cursor.advance()? {
            way.turn(&cursor, kept, &mut Vec::new())?;
            if is_scalar(cursor.node()) && cursor.depth() > 0 {
                common.push(way.text(false));
            }
        }
    }
    let mut random = fastrand::Rng::with_seed(seed);
    Ok(random.choice(&common).map(|path| (**path).to_owned()))
}

fn is_scalar(value: &Value) -> bool {
    !matches!(value, Value::Map(_) | Value::List(_))
}

/// The calls that make a document, in its order.
fn steps(document: &Value) -> Result<Vec<Step>> {
    let mut steps = Vec::new();
    let (mut cursor, mut path) = (Leaves::new(document), Way::default());
    while let Some(kept) = cursor.advance()? {
        path.turn(&cursor, kept, &mut steps)?;
        let value = (*cursor.node()).clone();
        steps.push(Step { path: path.text(true), value, is_leaf: true });
    }
    Ok(steps)
}

/// The path of a leaf, as it is while the document is made.
#[derive(Default)]
struct Way {
    /// A key, or how many elements come before.
    segments: Vec<std::result::Result<String, usize>>,
}

impl Way {
    /// Follows a cursor to its next leaf; notes the lists and elements that are made for it.
    fn turn(&mut self, cursor: &Leaves<&Value>, kept: usize, steps: &mut Vec<Step>) -> Result<()> {
        let before = match self.segments.get(kept) {
            Some(Err(position)) => Some(*position),
            _ => None,
        };
        let is_first = steps.is_empty();
        self.segments.truncate(kept);
        for segment in kept..cursor.depth() {
            let key = cursor.key(segment, &mut Vec::new())?.map(|key| key.text().into_owned());
            let is_new = is_first || segment > kept;
            let in_list = matches!(self.segments.last(), Some(Err(_)));
            if is_new && (key.is_none() || in_list) {
                let value = if key.is_none() { Value::list() } else { Value::map() };
                steps.push(Step { path: self.text(true), value, is_leaf: false });
            }
            self.segments.push(key.ok_or_else(|| match before.filter(|_| segment == kept) {
                Some(position) => position + 1,
                None => 0,
            }));
        }
        Ok(())
    }

    /// With the last element as the one that is appended, or by its position.
    fn text(&self, appends: bool) -> Path {
        let mut path = Path::root();
        for (at, segment) in self.segments.iter().enumerate() {
            let is_last = at + 1 == self.segments.len();
            match segment {
                Ok(key) => path.push(key),
                Err(_) if is_last && appends => path.push("-"),
                Err(position) => path.push(&position.to_string()),
            }
        }
        path
    }
}

/// The document with the number appended to each of its texts.
fn varied(document: &Value, number: usize) -> Result<Value> {
    let mut json = parsed(&Answer::Tree(document.clone()).to_json()?)?;
    let mut below = vec![&mut json];
    while let Some(node) = below.pop() {
        match node {
            serde_json::Value::String(text) => text.push_str(&number.to_string()),
            serde_json::Value::Array(elements) => below.extend(elements),
            serde_json::Value::Object(members) => below.extend(members.values_mut()),
            _ => {}
        }
    }
    formats::parse(&json.to_string())
}

/// A JSON text as plain libraries have it.
pub fn parsed(text: &[u8]) -> Result<serde_json::Value> {
    serde_json::from_slice(text)
        .map_err(|error| Error::invalid_input("a document is not JSON").with_source(error))
}

fn missing(path: &str) -> Error {
    Error::not_found(format!("the document has nothing at `{path}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(set: &Set) -> String {
        let mut lines = Vec::new();
        for number in 1..=set.len() {
            lines.extend(set.text_of(number, false).expect("prints"));
            lines.push(b'\n');
        }
        canonical::hash(&lines)
    }

    #[test]
    fn the_published_sets_have_their_hashes() {
        let hash = |source: Source, len| lines(&Set::new(source, len, false).expect("a set"));
        assert_eq!(hash(Source::hello(), 50_000), "8f90de4b0cc278a1");
        assert_eq!(hash(Source::person(), 10_000), "12e1fef340b86743");
        assert_eq!(hash(Source::person(), 200_000), "6f0a0fb4b3bfde9a");
    }

    #[test]
    fn calls_are_those_of_the_published_log() {
        let hello = Set::new(Source::hello(), 100, false).expect("a set");
        assert_eq!(hello.calls(Phase::Set).set, 100);
        let nested = hello.calls(Phase::Nested);
        assert_eq!((nested.def, nested.nxt, nested.get), (200, 200, 100));
        let person = Set::new(Source::person(), 1, false).expect("a set");
        let nested = person.calls(Phase::Nested);
        assert_eq!((nested.def, nested.nxt, nested.get, nested.nxt_end), (7, 8, 5, 2));
        assert_eq!(person.calls(Phase::Cursor).leaf_moves(), 6);
    }

    #[test]
    fn copies_differ_where_they_shall_and_can() {
        let set = Set::new(Source::person(), 2, true).expect("a set");
        let text = set.text_of(2, false).expect("prints");
        let text = String::from_utf8(text).expect("UTF-8");
        assert!(text.contains(r#""city":"Redhill2""#) && text.contains(r#""houseNo":9"#), "{text}");
        let document = formats::parse(r#"{"a":[1,{}]}"#).expect("JSON");
        let source = Source {
            name: "own".into(),
            documents: vec![document],
            leaf: "/a/0".into(),
            sizes: vec![],
        };
        assert!(Set::new(source.clone(), 2, true).is_err());
        let set = Set::new(source, 2, false).expect("a set");
        assert_eq!(set.text_of(1, true).expect("prints"), br#"{"a":["changed",{}]}"#);
    }

    #[test]
    fn a_file_gives_its_documents_and_a_leaf_that_all_have() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("own.jsonl");
        fs::write(&path, "{\"a\":{\"b\":1},\"c\":2}\n{\"a\":{\"b\":\"x\"}}\n").expect("writes");
        let source = Source::file(&path, 1).expect("a source");
        assert_eq!((&*source.leaf, &*source.sizes), ("/a/b", &[2][..]));
        let set = Set::new(source, 3, false).expect("a set");
        assert_eq!(set.text_of(3, false).expect("prints"), br#"{"a":{"b":1},"c":2}"#);
        assert_eq!(set.calls(Phase::Set).set, 2 + 1 + 2);
        fs::write(&path, "{\"a\":1}\n{\"b\":1}\n").expect("writes");
        let error = Source::file(&path, 1).expect_err("nothing in common");
        assert!(error.to_string().contains("common path"), "{error}");
    }

    #[test]
    fn steps_make_the_document() {
        let text = r#"{"a":[[1,[]],{"b":{"c":2,"d":{}}},3],"e":"x","f":{"g":[{}]}}"#;
        let document = formats::parse(text).expect("JSON");
        let source = Source {
            name: "own".into(),
            documents: vec![document],
            leaf: "/e".into(),
            sizes: vec![],
        };
        let set = Set::new(source, 1, false).expect("a set");
        let store = spinney::open("memory:").expect("opens");
        store
            .write(|transaction| {
                set.copy(1).steps.iter().try_for_each(|step| {
                    transaction.set(&["/documents/1", &*step.path].concat(), &step.value)
                })
            })
            .expect("every step is possible after those before");
        let made = store.read().expect("reads").get("/documents/1").expect("reads");
        assert_eq!(made.as_ref(), Some(&set.copy(1).value));
        let leaves = set.copy(1).steps.iter().filter(|step| step.is_leaf).count();
        assert_eq!(leaves as u64, set.calls(Phase::Set).set);
    }
}
