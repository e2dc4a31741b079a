//! Metadata and bytes as ordinary JSON, and back.
//!
//! | value | form |
//! |---|---|
//! | bytes | `{"$spinney:bytes": "BASE64"}` |
//! | a value with metadata | `{"$spinney:meta": {"name": "text", ...}, "$spinney:value": ...}` |
//! | a key that starts with `$spinney:` | the key with one more `$spinney:` before it |
//!
//! So a key that starts with one `$spinney:` only belongs to a form, and every tree has exactly one
//! text. This module sees visitor calls and no text.

use spinney_core::limits::DEPTH_MAX;
use spinney_core::{Container, Error, Key, Result, Scalar, Visitor};

use super::base64;

/// What keys of forms start with, and what escapes ordinary keys that start with it.
pub(super) const PREFIX: &str = "$spinney:";
pub(super) const BYTES: &str = "$spinney:bytes";
pub(super) const META: &str = "$spinney:meta";
pub(super) const VALUE: &str = "$spinney:value";

/// Turns the forms of [`Fidelity::Tagged`](super::Fidelity::Tagged) into metadata and bytes for
/// another visitor. It holds back one `open` and nothing else.
pub struct Untag<'v, V: ?Sized> {
    inner: &'v mut V,
    open: Vec<Open>,
    depth: usize,
    state: State,
    /// The name of the metadata entry whose text is next.
    name: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Open {
    /// A container of the tree.
    Ordinary,
    /// The map around a value with metadata.
    Wrapper,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Ordinary,
    /// A map began; its first key tells what it is. The flag: it has metadata already.
    Began(bool),
    /// The text of bytes is next.
    Bytes,
    /// The end of the map of bytes is next.
    BytesEnd,
    /// The map of metadata is next.
    Meta,
    /// A name, or the end of the metadata, is next.
    Name,
    /// The text of a metadata entry is next.
    Entry,
    /// The key of the value is next.
    ValueKey,
    /// The value is next.
    Value,
    /// The end of the wrapper is next.
    WrapperEnd,
}

impl<'v, V: Visitor + ?Sized> Untag<'v, V> {
    /// Wraps `inner`.
    pub fn new(inner: &'v mut V) -> Self {
        Untag { inner, open: Vec::new(), depth: 0, state: State::Ordinary, name: String::new() }
    }

    /// The state after a value.
    fn after(&self) -> State {
        match self.open.last() {
            Some(Open::Wrapper) => State::WrapperEnd,
            _ => State::Ordinary,
        }
    }

    fn forward_open(&mut self, container: Container) -> Result<()> {
        if self.depth == DEPTH_MAX {
            let message = format!("containers are nested deeper than {DEPTH_MAX} levels");
            return Err(Error::limit_exceeded(message));
        }
        self.depth += 1;
        self.open.push(Open::Ordinary);
        self.state = State::Ordinary;
        self.inner.open(container)
    }

    #[cold]
    fn malformed(&self) -> Error {
        Error::invalid_input(match self.state {
            State::Bytes | State::BytesEnd => {
                "a map with `$spinney:bytes` must hold one base64 string and nothing else"
            }
            State::Meta | State::Name | State::Entry => {
                "`$spinney:meta` must be a map of names to strings"
            }
            State::Began(true) => "a value has `$spinney:meta` twice",
            State::ValueKey | State::Value | State::WrapperEnd => {
                "a map with `$spinney:meta` must go on with `$spinney:value` and then end"
            }
            State::Began(false) | State::Ordinary => {
                "a key that starts with `$spinney:` must be `$spinney:bytes` or `$spinney:meta` \
                 and come first; an ordinary key of that kind has one more `$spinney:` before it"
            }
        })
    }
}

impl<V: Visitor + ?Sized> Visitor for Untag<'_, V> {
    fn open(&mut self, container: Container) -> Result<()> {
        match (self.state, container) {
            (State::Ordinary, Container::Map) => self.state = State::Began(false),
            (State::Value, Container::Map) => self.state = State::Began(true),
            (State::Ordinary | State::Value, Container::List) => self.forward_open(container)?,
            (State::Meta, Container::Map) => self.state = State::Name,
            _ => return Err(self.malformed()),
        }
        Ok(())
    }

    fn key(&mut self, key: Key<'_>) -> Result<()> {
        let tag = match key {
            Key::Text(text) if text.starts_with(PREFIX) => text,
            _ => "",
        };
        self.state = match (self.state, tag) {
            (State::Began(_), BYTES) => State::Bytes,
            (State::Began(false), META) => State::Meta,
            (State::Name, _) => {
                self.name.clear();
                self.name.push_str(&key.text());
                State::Entry
            }
            (State::ValueKey, VALUE) => State::Value,
            (State::Ordinary | State::Began(_), _) => {
                let key = match tag.strip_prefix(PREFIX) {
                    None => key,
                    Some(rest) if rest.starts_with(PREFIX) => Key::Text(rest),
                    Some(_) => return Err(self.malformed()),
                };
                if self.state != State::Ordinary {
                    self.forward_open(Container::Map)?;
                }
                return self.inner.key(key);
            }
            _ => return Err(self.malformed()),
        };
        Ok(())
    }

    fn scalar(&mut self, scalar: Scalar<'_>) -> Result<()> {
        match (self.state, scalar) {
            (State::Ordinary | State::Value, _) => {
                self.state = self.after();
                self.inner.scalar(scalar)
            }
            (State::Bytes, Scalar::String(text)) => {
                let bytes = base64::decode(text.text).ok_or_else(|| self.malformed())?;
                self.state = State::BytesEnd;
                self.inner.scalar(Scalar::Bytes(&bytes))
            }
            (State::Entry, Scalar::String(text)) => {
                self.state = State::Name;
                self.inner.meta(&self.name, text.text)
            }
            _ => Err(self.malformed()),
        }
    }

    fn close(&mut self) -> Result<()> {
        match self.state {
            State::BytesEnd => self.state = self.after(),
            State::Name => {
                self.state = State::ValueKey;
                self.open.push(Open::Wrapper);
            }
            State::WrapperEnd => {
                self.open.pop();
                self.state = self.after();
            }
            State::Began(_) | State::Ordinary => {
                if self.state != State::Ordinary {
                    self.forward_open(Container::Map)?;
                }
                self.depth -= 1;
                self.open.pop();
                self.state = self.after();
                self.inner.close()?;
            }
            _ => return Err(self.malformed()),
        }
        Ok(())
    }

    fn meta(&mut self, name: &str, value: &str) -> Result<()> {
        self.inner.meta(name, value)
    }
}
