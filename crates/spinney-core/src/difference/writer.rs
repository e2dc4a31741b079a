//! Changes as a JSON Patch (RFC 6902), for any visitor: a printer, or whoever applies it.

use crate::error::{Error, ErrorKind, Result};
use crate::key::{Key, StoredKey};
use crate::path::{Display, Path};
use crate::read::{Node as _, Reached};
use crate::visit::{Container, Scalar, StoredText, Text, Visitor};

use super::Change;

/// What becomes of metadata, which a JSON Patch has no form for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Metadata {
    /// The first of it is an `Unsupported` error.
    #[default]
    Refuse,
    /// It is left out.
    LeaveOut,
}

/// Writes changes as a list of operations, in the order in which they come.
pub struct PatchWriter<'v> {
    visitor: &'v mut dyn Visitor,
    metadata: Metadata,
}

impl<'v> PatchWriter<'v> {
    /// Begins the patch.
    ///
    /// # Errors
    /// The visitor's.
    pub fn new(visitor: &'v mut dyn Visitor, metadata: Metadata) -> Result<PatchWriter<'v>> {
        visitor.open(Container::List)?;
        Ok(PatchWriter { visitor, metadata })
    }

    /// Writes the operation for a change.
    ///
    /// # Errors
    /// `Unsupported` for metadata that is not left out; the visitor's.
    pub fn write(&mut self, path: &Path, change: &Change<'_>) -> Result<()> {
        match change {
            Change::Added(new) => self.operation("add", path, Some(new)),
            Change::Removed(_) => self.operation("remove", path, None),
            Change::Replaced(_, new) => self.operation("replace", path, Some(new)),
            Change::Annotated(..) if self.metadata == Metadata::LeaveOut => Ok(()),
            Change::Annotated(..) => Err(no_metadata(path)),
        }
    }

    /// Ends the patch.
    ///
    /// # Errors
    /// The visitor's.
    pub fn finish(self) -> Result<()> {
        self.visitor.close()
    }

    fn operation(&mut self, op: &str, path: &Path, value: Option<&Reached<'_>>) -> Result<()> {
        self.visitor.open(Container::Map)?;
        for (name, text) in [("op", op), ("path", path)] {
            self.visitor.key(Key::new(name))?;
            self.visitor.scalar(Scalar::String(Text::new(text)))?;
        }
        if let Some(side) = value {
            self.visitor.key(Key::new("value"))?;
            let (inner, metadata) = (&mut *self.visitor, self.metadata);
            let visited = side.visit(&mut WithoutMetadata { inner, metadata, path });
            visited.map_err(|error| match error.kind() {
                // A printer only knows where in the patch it is.
                ErrorKind::Unsupported => error.at(format_args!("the value of {}", Display(path))),
                _ => error,
            })?;
        }
        self.visitor.close()
    }
}

#[cold]
fn no_metadata(path: &Path) -> Error {
    Error::unsupported(format!(
        "a JSON Patch has no form for the metadata of {}; `--lossy` leaves it out",
        Display(path)
    ))
}

/// The value of an operation, which must have no metadata.
struct WithoutMetadata<'w> {
    inner: &'w mut dyn Visitor,
    metadata: Metadata,
    path: &'w Path,
}

impl Visitor for WithoutMetadata<'_> {
    fn open(&mut self, container: Container) -> Result<()> {
        self.inner.open(container)
    }

    fn key(&mut self, key: Key<'_>) -> Result<()> {
        self.inner.key(key)
    }

    fn scalar(&mut self, scalar: Scalar<'_>) -> Result<()> {
        self.inner.scalar(scalar)
    }

    fn close(&mut self) -> Result<()> {
        self.inner.close()
    }

    fn meta(&mut self, _name: &str, _value: &str) -> Result<()> {
        match self.metadata {
            Metadata::LeaveOut => Ok(()),
            Metadata::Refuse => Err(no_metadata(self.path)),
        }
    }

    fn stored_key(&mut self, key: StoredKey<'_>) -> Result<()> {
        self.inner.stored_key(key)
    }

    fn stored_text(&mut self, text: StoredText<'_>) -> Result<()> {
        self.inner.stored_text(text)
    }
}
