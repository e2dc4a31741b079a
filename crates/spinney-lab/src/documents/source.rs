//! What the documents of the suite are copies of: those that were published, or a file's.

use std::fs;
use std::path::Path as FilePath;

use spinney::Value;
use spinney::formats::{self, Dialect};
use spinney_core::path::segments;
use spinney_core::read::Leaves;
use spinney_core::value::ValueBuilder;
use spinney_core::{Error, Path, Result};

use super::shape::Way;
use crate::answer::Answer;

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
        let text = read(path)?;
        check(path)?;
        let documents = match parse(path, &text)? {
            Value::List(lines) if is_lines(path) => lines.iter().cloned().collect(),
            document => vec![document],
        };
        if documents.is_empty() {
            return Err(at(Error::invalid_input("it holds no documents")));
        }
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

/// A file as one JSON text: as it stands there, or, of JSON5 and of lines, which become an array, printed
/// anew.
///
/// # Errors
/// `Io` when it cannot be read; `InvalidInput` when it is none of them.
pub fn json_text(path: &FilePath) -> Result<Vec<u8>> {
    let text = read(path)?;
    match serde_json::from_slice::<serde_json::Value>(&text) {
        Ok(_) if !is_lines(path) => Ok(text),
        _ => Answer::Tree(parse(path, &text)?).to_json(),
    }
}

/// Whether a file can be measured beside a plain JSON library, before anything is.
///
/// # Errors
/// Those of [`json_text`]; `InvalidInput` for a number or a depth that the library does not take.
pub fn check(path: &FilePath) -> Result<()> {
    let text = json_text(path)?;
    let read: std::result::Result<serde_json::Value, _> = serde_json::from_slice(&text);
    read.map(drop).map_err(|error| {
        let wrong = "serde_json, beside which it would be measured, cannot read it";
        Error::invalid_input(wrong).with_source(error).at(path.display())
    })
}

fn is_lines(path: &FilePath) -> bool {
    path.extension().is_some_and(|extension| extension == "jsonl")
}

fn read(path: &FilePath) -> Result<Vec<u8>> {
    fs::read(path)
        .map_err(|error| Error::io(format!("cannot read `{}`", path.display())).with_source(error))
}

/// What a file holds; its lines as a list.
fn parse(path: &FilePath, text: &[u8]) -> Result<Value> {
    let mut builder = ValueBuilder::default();
    match is_lines(path) {
        true => formats::read_lines(text, &mut builder),
        false => formats::read(text, Dialect::Json5, &mut builder),
    }
    .map_err(|error| error.at(path.display()))?;
    builder.finish().ok_or_else(|| Error::invalid_input("it holds no document").at(path.display()))
}

/// A path at which every document has a scalar, chosen by `seed`.
fn common_leaf(documents: &[Value], seed: u64) -> Result<Option<String>> {
    let mut common: Vec<Path> = Vec::new();
    for (at, document) in documents.iter().enumerate() {
        if at > 0 {
            common.retain(|path| has_scalar(document, &documents[0], path));
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

/// Whether a document has a scalar at `path`, on the way to which lists and maps stand as in the first.
fn has_scalar(document: &Value, first: &Value, path: &str) -> bool {
    let (mut node, mut first) = (document, first);
    for segment in segments(path) {
        let below = ["/", &segment.replace('~', "~0").replace('/', "~1")].concat();
        match (node.pointer(&below), first.pointer(&below)) {
            _ if matches!(node, Value::List(_)) != matches!(first, Value::List(_)) => return false,
            (Some(child), Some(first_child)) => (node, first) = (child, first_child),
            _ => return false,
        }
    }
    is_scalar(node)
}

fn is_scalar(value: &Value) -> bool {
    !matches!(value, Value::Map(_) | Value::List(_))
}

#[cfg(test)]
mod tests {
    use super::super::set::Set;
    use super::super::shape::Phase;
    use super::*;

    #[test]
    fn a_file_gives_its_documents_and_a_leaf_that_all_have() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("own.jsonl");
        fs::write(&path, "{\"a\":{\"b\":1},\"c\":2}\n{\"a\":{\"b\":\"x\"}}\n").expect("writes");
        let source = Source::file(&path, 1).expect("a source");
        assert_eq!((&*source.leaf, &*source.sizes), ("/a/b", &[2][..]));
        let set = Set::new(source, 3, false).expect("a set");
        assert_eq!(set.text_of(3, false), r#"{"a":{"b":1},"c":2}"#);
        assert_eq!(set.calls(Phase::Set, 3).set, 2 + 1 + 2);
        for lines in ["{\"a\":1}\n{\"b\":1}\n", "{\"a\":[1]}\n{\"a\":{\"0\":1}}\n"] {
            fs::write(&path, lines).expect("writes");
            let error = Source::file(&path, 1).expect_err("nothing in common");
            assert!(error.to_string().contains("common path"), "{error}");
        }
    }
}
