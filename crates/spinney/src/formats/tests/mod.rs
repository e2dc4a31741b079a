//! Tests of the formats together. Every text is read through windows and reads of many sizes, and
//! all must agree, to the words of the error.

mod differential;
mod errors;
mod grammar;
mod json5;
mod lines;
mod printing;
mod random;
mod tagged;

use std::io::{BufReader, Read};

use spinney_core::{Container, Error, Key, Num, Number, Result, Scalar, Visitor};

use super::{Dialect, Fidelity, Framing, JsonWriter, Layout, ReadOptions, read_windowed};

/// One visitor call, owned.
#[derive(Clone, Debug, PartialEq)]
enum Event {
    Open(Container),
    Close,
    Key(String),
    Null,
    Bool(bool),
    Number(Number),
    /// The text and whether it was called plain.
    String(String, bool),
    Bytes(Vec<u8>),
    Meta(String, String),
}

#[derive(Default)]
struct Events(Vec<Event>);

impl Visitor for Events {
    fn open(&mut self, container: Container) -> Result<()> {
        self.0.push(Event::Open(container));
        Ok(())
    }
    fn key(&mut self, key: Key<'_>) -> Result<()> {
        assert_eq!(key, Key::new(&key.text()), "a key is classified");
        self.0.push(Event::Key(key.text().into_owned()));
        Ok(())
    }
    fn scalar(&mut self, scalar: Scalar<'_>) -> Result<()> {
        self.0.push(match scalar {
            Scalar::Null => Event::Null,
            Scalar::Bool(value) => Event::Bool(value),
            Scalar::Number(num) => {
                assert_eq!(Num::parse(&num.to_string()).expect("it prints a number"), num);
                Event::Number(num.to_owned())
            }
            Scalar::String(text) => Event::String(text.text.to_owned(), text.plain),
            Scalar::Bytes(bytes) => Event::Bytes(bytes.to_vec()),
        });
        Ok(())
    }
    fn close(&mut self) -> Result<()> {
        self.0.push(Event::Close);
        Ok(())
    }
    fn meta(&mut self, name: &str, value: &str) -> Result<()> {
        self.0.push(Event::Meta(name.to_owned(), value.to_owned()));
        Ok(())
    }
}

/// Makes the calls again.
fn play(events: &[Event], visitor: &mut impl Visitor) -> Result<()> {
    for event in events {
        match event {
            Event::Open(container) => visitor.open(*container)?,
            Event::Close => visitor.close()?,
            Event::Key(key) => visitor.key(Key::new(key))?,
            Event::Null => visitor.scalar(Scalar::Null)?,
            Event::Bool(value) => visitor.scalar(Scalar::Bool(*value))?,
            Event::Number(number) => visitor.scalar(Scalar::Number(number.as_num()))?,
            Event::String(text, plain) => {
                visitor.scalar(Scalar::String(spinney_core::Text { text, plain: *plain }))?
            }
            Event::Bytes(bytes) => visitor.scalar(Scalar::Bytes(bytes))?,
            Event::Meta(name, value) => visitor.meta(name, value)?,
        }
    }
    Ok(())
}

fn print(events: &[Event], layout: Layout, fidelity: Fidelity) -> Result<String> {
    let mut writer = JsonWriter::new(Vec::new(), layout, fidelity);
    play(events, &mut writer)?;
    Ok(String::from_utf8(writer.finish()?).expect("printed from texts"))
}

/// Gives at most so many bytes at once.
struct Trickle<'a>(&'a [u8], usize);

impl Read for Trickle<'_> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let len = self.0.len().min(self.1);
        (&self.0[..len]).read(out).inspect(|&len| self.0 = &self.0[len..])
    }
}

/// How a text is read in a test.
#[derive(Clone, Copy, Default)]
struct How {
    dialect: Dialect,
    framing: Framing,
    tagged: bool,
}

const JSON: How = How { dialect: Dialect::Json, framing: Framing::One, tagged: false };
const JSON5: How = How { dialect: Dialect::Json5, ..JSON };
const LINES: How = How { framing: Framing::Lines, ..JSON };
const TAGGED: How = How { tagged: true, ..JSON };

fn once(text: &[u8], how: How, step: usize, window_len: usize) -> Result<Vec<Event>, Error> {
    let How { dialect, framing, tagged } = how;
    let mut events = Events::default();
    let options = ReadOptions { dialect, framing, tagged, progress: None };
    read_windowed(BufReader::new(Trickle(text, step)), options, window_len, &mut events)?;
    Ok(events.0)
}

/// Reads through windows of many sizes.
fn events(text: impl AsRef<[u8]>, how: How) -> Result<Vec<Event>, Error> {
    let text = text.as_ref();
    let whole = once(text, how, usize::MAX, 1 << 18);
    for (step, window_len) in [(1, 4), (7, 4), (7, 5), (3, 16), (1000, 9), (1000, 64)] {
        let pieces = once(text, how, step, window_len);
        let place = format!("{:?} by {step} through {window_len}", String::from_utf8_lossy(text));
        match (&whole, &pieces) {
            (Ok(whole), Ok(pieces)) => assert_eq!(whole, pieces, "{place}"),
            (Err(whole), Err(pieces)) => {
                assert_eq!(
                    (whole.kind(), whole.context()),
                    (pieces.kind(), pieces.context()),
                    "{place}"
                );
            }
            _ => panic!("{place}: {whole:?} but {pieces:?}"),
        }
    }
    whole
}

/// The compact text of what was read.
fn canonical(text: impl AsRef<[u8]>, how: How) -> Result<String, Error> {
    print(&events(text, how)?, Layout::Compact, Fidelity::Refuse)
}

#[track_caller]
fn assert_reads(text: &str, how: How, expected: &str) {
    assert_eq!(canonical(text, how).expect("it is accepted"), expected, "{text}");
}

/// The text of the error; panics when the text is accepted.
#[track_caller]
fn refusal(text: impl AsRef<[u8]>, how: How) -> String {
    let text = text.as_ref();
    match events(text, how) {
        Ok(_) => panic!("{:?} is accepted", String::from_utf8_lossy(text)),
        Err(error) => format!("{}: {error}", error.kind()),
    }
}
