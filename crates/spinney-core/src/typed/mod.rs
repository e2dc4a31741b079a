//! Rust types in place of [`Value`]s, by `serde`, in the usual form of JSON.
//!
//! A struct is a map, a sequence or tuple a list, `None` and `()` are null, a variant without fields is its name and
//! one with fields a map of one member. Unlike in JSON, bytes are bytes, and 128-bit integers keep every digit.
//! Keys that are no strings are written as their text. NaN and infinities are refused.

mod read;
mod write;

use std::fmt;

use serde_core::{de, ser};

use crate::error::{Error, Result};
use crate::key::{Key, StoredKey};
use crate::value::{Value, ValueBuilder};
use crate::visit::{Container, Scalar, Visitor};

/// Drives a visitor over a value of any type, without a [`Value`] in between.
///
/// # Errors
/// `InvalidInput` for what has no form here, such as NaN or a key that is a list; the visitor's; what the type says.
pub fn write<T: ser::Serialize + ?Sized>(value: &T, visitor: &mut dyn Visitor) -> Result<()> {
    value.serialize(write::Writer { visitor }).map_err(|Failed(error)| error)
}

/// A value of any type as a [`Value`].
///
/// # Errors
/// As [`write()`].
pub fn to_value<T: ser::Serialize + ?Sized>(value: &T) -> Result<Value> {
    let mut builder = ValueBuilder::default();
    write(value, &mut builder)?;
    Ok(builder.finish().expect("a type that is written is one value"))
}

/// Levels of a value that may be read as a type, which takes some of the stack for each.
pub const READ_DEPTH_MAX: usize = 128;

/// A value as a type.
///
/// # Errors
/// `InvalidInput` when it is none: what was expected and what there is; `LimitExceeded` when it is deeper than
/// [`READ_DEPTH_MAX`].
pub fn read<T: de::DeserializeOwned>(value: Value) -> Result<T> {
    value.visit(&mut Depth(0))?;
    T::deserialize(read::Reader(value)).map_err(|Failed(error)| error)
}

/// Counts open containers.
struct Depth(usize);

impl Visitor for Depth {
    fn open(&mut self, _: Container) -> Result<()> {
        self.0 += 1;
        match self.0 > READ_DEPTH_MAX {
            true => Err(Error::limit_exceeded(format!(
                "the value is deeper than the {READ_DEPTH_MAX} levels that a type may have; read it as a `Value`"
            ))),
            false => Ok(()),
        }
    }

    fn close(&mut self) -> Result<()> {
        self.0 -= 1;
        Ok(())
    }

    fn key(&mut self, _: Key<'_>) -> Result<()> {
        Ok(())
    }

    fn stored_key(&mut self, _: StoredKey<'_>) -> Result<()> {
        Ok(())
    }

    fn scalar(&mut self, _: Scalar<'_>) -> Result<()> {
        Ok(())
    }

    fn meta(&mut self, _: &str, _: &str) -> Result<()> {
        Ok(())
    }
}

/// The error, for `serde`.
#[derive(Debug)]
pub struct Failed(Error);

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Failed {}

impl ser::Error for Failed {
    fn custom<T: fmt::Display>(message: T) -> Failed {
        Failed(Error::invalid_input(message.to_string()))
    }
}

impl de::Error for Failed {
    fn custom<T: fmt::Display>(message: T) -> Failed {
        Failed(Error::invalid_input(message.to_string()))
    }
}

impl From<Error> for Failed {
    fn from(error: Error) -> Failed {
        Failed(error)
    }
}
