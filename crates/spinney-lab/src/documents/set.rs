//! The documents of the suite: copies of one document, numbered from 1.

use serde_json::Value as Json;
use spinney::Value;
use spinney::formats;
use spinney_core::{Error, Result};

use super::collection::Calls;
use super::shape::{Phase, Shape, Step, steps};
use super::source::Source;
use crate::answer::Answer;
use crate::canonical;

/// Copies of one document, as the systems take them.
pub struct Set {
    source: Source,
    len: usize,
    /// Those that are repeated in turn, or each.
    copies: Vec<Copy>,
    /// The documents that have the leaf of the one in the middle.
    matching: Vec<usize>,
}

/// One document in the forms that systems take.
pub struct Copy {
    /// As spinney takes it.
    pub value: Value,
    /// As plain libraries take it.
    pub json: Json,
    /// As compact text.
    pub text: String,
    /// What makes the document when it is set, one after the other.
    pub steps: Vec<Step>,
    shape: Shape,
    changed: Changed,
}

/// A document whose leaf has another value.
pub struct Changed {
    /// As spinney takes it.
    pub value: Value,
    /// As plain libraries take it.
    pub json: Json,
    /// As compact text.
    pub text: String,
}

impl Set {
    /// `len` copies; `vary` appends the number of the copy to each of its texts.
    ///
    /// # Errors
    /// `InvalidInput` when copies are to differ and hold no text; `Unsupported` for bytes.
    pub fn new(source: Source, len: usize, vary: bool) -> Result<Set> {
        let copy = |document: Value| Copy::new(document, &source.leaf);
        let copies: Vec<Copy> = match vary {
            false => source.documents.iter().cloned().map(copy).collect::<Result<_>>()?,
            true => (0..len)
                .map(|at| copy(varied(&source.documents[at % source.documents.len()], at + 1)?))
                .collect::<Result<_>>()?,
        };
        if vary && len > 1 && copies[0].text == copies[1].text {
            return Err(Error::invalid_input(format!(
                "the document `{}` holds no text, so that its copies cannot differ; leave `--vary` out",
                source.name
            )));
        }
        let mut set = Set { source, len, copies, matching: Vec::new() };
        let (wanted, leaf) = (set.wanted(), set.leaf());
        let matches = |number: &usize| set.copy(*number).json.pointer(leaf) == Some(&wanted);
        set.matching = (1..=len).filter(matches).collect();
        Ok(set)
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

    /// Copy `number` with another leaf.
    pub fn changed(&self, number: usize) -> &Changed {
        &self.copy(number).changed
    }

    /// The leaf of copy `number`, or what it is changed to, as spinney takes it.
    pub fn leaf_of(&self, number: usize, is_changed: bool) -> Value {
        let copy = self.copy(number);
        let document = if is_changed { &copy.changed.value } else { &copy.value };
        document.pointer(self.leaf()).cloned().unwrap_or(Value::Null)
    }

    /// The same, as plain libraries take it.
    pub fn leaf_json(&self, number: usize, is_changed: bool) -> Json {
        let copy = self.copy(number);
        let document = if is_changed { &copy.changed.json } else { &copy.json };
        document.pointer(self.leaf()).cloned().unwrap_or(Json::Null)
    }

    /// The compact text of copy `number`, or with its leaf changed.
    pub fn text_of(&self, number: usize, is_changed: bool) -> &str {
        let copy = self.copy(number);
        if is_changed { &copy.changed.text } else { &copy.text }
    }

    /// The leaf that a query looks for: that of the document in the middle.
    pub fn wanted(&self) -> Json {
        self.leaf_json(self.len.div_ceil(2).max(1), false)
    }

    /// The documents that it finds.
    pub fn matching(&self) -> &[usize] {
        &self.matching
    }

    /// The calls that a phase over the first `len` copies makes, where a system goes leaf by leaf.
    pub fn calls(&self, phase: Phase, len: usize) -> Calls {
        (1..=len)
            .map(|number| self.copy(number).shape.calls(phase))
            .fold(Calls::default(), Calls::plus)
    }
}

impl Copy {
    /// `leaf` is the path of what is changed.
    fn new(value: Value, leaf: &str) -> Result<Copy> {
        let text =
            String::from_utf8(canonical::canonical(&Answer::Tree(value.clone()).to_json()?)?)
                .map_err(|error| Error::invalid_input("a text is not UTF-8").with_source(error))?;
        let json = parsed(text.as_bytes())?;
        let steps = steps(&value)?;
        let shape = Shape::of(&value)?;
        let changed = Changed::new(json.clone(), leaf)?;
        Ok(Copy { value, json, text, steps, shape, changed })
    }
}

impl Changed {
    fn new(mut json: Json, leaf: &str) -> Result<Changed> {
        match json.pointer_mut(leaf) {
            Some(Json::String(text)) => text.push('*'),
            Some(other) => *other = "changed".into(),
            None => {
                return Err(Error::not_found(format!("the document has nothing at `{leaf}`")));
            }
        }
        let text = json.to_string();
        Ok(Changed { value: formats::parse(&text)?, json, text })
    }
}

/// The document with the number appended to each of its texts.
fn varied(document: &Value, number: usize) -> Result<Value> {
    let mut json = parsed(&Answer::Tree(document.clone()).to_json()?)?;
    let mut below = vec![&mut json];
    while let Some(node) = below.pop() {
        match node {
            Json::String(text) => text.push_str(&number.to_string()),
            Json::Array(elements) => below.extend(elements),
            Json::Object(members) => below.extend(members.values_mut()),
            _ => {}
        }
    }
    formats::parse(&json.to_string())
}

/// A JSON text as plain libraries have it.
pub fn parsed(text: &[u8]) -> Result<Json> {
    serde_json::from_slice(text)
        .map_err(|error| Error::invalid_input("a document is not JSON").with_source(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(set: &Set) -> String {
        let mut lines = Vec::new();
        for number in 1..=set.len() {
            lines.extend(set.text_of(number, false).bytes());
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
        assert_eq!(hello.calls(Phase::Set, 100).set, 100);
        let nested = hello.calls(Phase::Nested, 100);
        assert_eq!((nested.def, nested.nxt, nested.get), (200, 200, 100));
        let person = Set::new(Source::person(), 1, false).expect("a set");
        let nested = person.calls(Phase::Nested, 1);
        assert_eq!((nested.def, nested.nxt, nested.get, nested.nxt_end), (7, 8, 5, 2));
        assert_eq!(person.calls(Phase::Cursor, 1).leaf_moves(), 6);
    }

    #[test]
    fn copies_differ_where_they_shall_and_can() {
        let set = Set::new(Source::person(), 2, true).expect("a set");
        let text = set.text_of(2, false);
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
        assert_eq!(set.text_of(1, true), r#"{"a":["changed",{}]}"#);
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
        assert_eq!(leaves as u64, set.calls(Phase::Set, 1).set);
    }
}
