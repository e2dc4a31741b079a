//! A tree as a principal sees it, on its way to whoever receives it.

use super::permissions::{Permissions, Standing};
use super::rules::Right;
use crate::error::Result;
use crate::key::{EncodedKey, Key, StoredKey, not_a_key};
use crate::view::StoredMap;
use crate::visit::{Container, Scalar, StoredText, Visitor};

/// Hands on what may be read. A map that only leads to something is shown without metadata, with those
/// members; everything else that may not be read is not there, and a list whose elements may not be read
/// is empty.
pub struct Veil<'p, 'v, V: ?Sized> {
    visitor: &'v mut V,
    permissions: &'p Permissions,
    /// The containers that are shown, from the outermost on. A list has the standing of its elements.
    open: Vec<(Container, Standing)>,
    /// Of the value that follows.
    next: Standing,
    /// Of the value that follows, when it is known only then whether it is shown.
    key: Option<EncodedKey>,
    within: Within,
}

/// Where all is of one kind.
#[derive(Clone, Copy)]
enum Within {
    /// It is not.
    Nothing,
    /// In so many containers that are not shown.
    Hidden(usize),
    /// In so many containers of which everything is shown.
    Whole(usize),
}

/// What becomes of the value that follows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Coming {
    Whole,
    Shown,
    /// Shown if it is a map.
    IfMap,
    Hidden,
}

impl<'p, 'v, V: Visitor + ?Sized> Veil<'p, 'v, V> {
    /// For a value at a place of which something may be shown.
    pub fn new(
        visitor: &'v mut V,
        permissions: &'p Permissions,
        standing: &Standing,
    ) -> Veil<'p, 'v, V> {
        Veil {
            visitor,
            permissions,
            open: Vec::new(),
            next: standing.clone(),
            key: None,
            within: Within::Nothing,
        }
    }

    fn coming(&self) -> Coming {
        let standing = match self.open.last() {
            Some((Container::List, element)) if !element.may(Right::Read) => return Coming::Hidden,
            Some((Container::List, element)) => element,
            _ => &self.next,
        };
        match () {
            () if standing.may_all(Right::Read) => Coming::Whole,
            () if standing.may(Right::Read) => Coming::Shown,
            () if standing.may_some(Right::Read) => Coming::IfMap,
            () => Coming::Hidden,
        }
    }

    /// Whether what is called now goes on as it is.
    fn passes(&self) -> bool {
        match self.within {
            Within::Whole(_) => true,
            Within::Hidden(_) => false,
            Within::Nothing => matches!(self.coming(), Coming::Whole | Coming::Shown),
        }
    }

    fn open_judged(&mut self, container: Container) -> Result<()> {
        match self.coming() {
            Coming::Whole => self.within = Within::Whole(1),
            Coming::Hidden => {
                self.within = Within::Hidden(1);
                return Ok(());
            }
            Coming::IfMap if container != Container::Map => {
                self.within = Within::Hidden(1);
                return Ok(());
            }
            Coming::IfMap | Coming::Shown => {
                if let Some(key) = self.key.take() {
                    self.visitor.key(Key::decode(&key).ok_or_else(not_a_key)?)?;
                }
                let standing = match self.open.last() {
                    Some((Container::List, element)) => element.clone(),
                    _ => self.next.clone(),
                };
                self.open.push(match container {
                    Container::Map => (container, standing),
                    Container::List => (container, self.permissions.element(&standing)),
                });
            }
        }
        self.visitor.open(container)
    }
}

impl<V: Visitor + ?Sized> Visitor for Veil<'_, '_, V> {
    fn open(&mut self, container: Container) -> Result<()> {
        match &mut self.within {
            Within::Nothing => self.open_judged(container),
            Within::Hidden(depth) => {
                *depth += 1;
                Ok(())
            }
            Within::Whole(depth) => {
                *depth += 1;
                self.visitor.open(container)
            }
        }
    }

    fn key(&mut self, key: Key<'_>) -> Result<()> {
        match self.within {
            Within::Hidden(_) => return Ok(()),
            Within::Whole(_) => return self.visitor.key(key),
            Within::Nothing => {}
        }
        if let Some((_, map)) = self.open.last() {
            self.next = self.permissions.member(map, &key.text());
        }
        self.key = None;
        match self.coming() {
            Coming::Whole | Coming::Shown => self.visitor.key(key),
            Coming::IfMap => {
                self.key = Some(key.encoded());
                Ok(())
            }
            Coming::Hidden => Ok(()),
        }
    }

    fn scalar(&mut self, scalar: Scalar<'_>) -> Result<()> {
        if self.passes() { self.visitor.scalar(scalar) } else { Ok(()) }
    }

    fn close(&mut self) -> Result<()> {
        match &mut self.within {
            Within::Nothing => drop(self.open.pop()),
            Within::Hidden(depth) => {
                *depth -= 1;
                if *depth == 0 {
                    self.within = Within::Nothing;
                }
                return Ok(());
            }
            Within::Whole(depth) => {
                *depth -= 1;
                if *depth == 0 {
                    self.within = Within::Nothing;
                }
            }
        }
        self.visitor.close()
    }

    fn meta(&mut self, name: &str, value: &str) -> Result<()> {
        if self.passes() { self.visitor.meta(name, value) } else { Ok(()) }
    }

    fn stored_key(&mut self, key: StoredKey<'_>) -> Result<()> {
        match self.within {
            Within::Hidden(_) => Ok(()),
            Within::Whole(_) => self.visitor.stored_key(key),
            Within::Nothing => self.key(Key::decode(&key.bytes()).ok_or_else(not_a_key)?),
        }
    }

    fn stored_text(&mut self, text: StoredText<'_>) -> Result<()> {
        if self.passes() { self.visitor.stored_text(text) } else { Ok(()) }
    }

    /// What is hidden is not read.
    fn stored_map(&mut self, map: &StoredMap<'_>) -> Result<bool> {
        let coming = match self.within {
            Within::Nothing => self.coming(),
            Within::Hidden(_) => Coming::Hidden,
            Within::Whole(_) => Coming::Whole,
        };
        match coming {
            Coming::Hidden => Ok(true),
            Coming::Whole => self.visitor.stored_map(map),
            Coming::Shown | Coming::IfMap => Ok(false),
        }
    }

    fn wants_element_ids(&self) -> bool {
        self.visitor.wants_element_ids()
    }

    fn element(&mut self, id: u64) {
        if self.passes() {
            self.visitor.element(id);
        }
    }
}
