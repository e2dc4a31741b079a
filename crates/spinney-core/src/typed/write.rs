//! From a type to the calls of a visitor.

use std::fmt::Display;

use serde_core::ser::{self, Serialize};

use super::Failed;
use crate::error::Error;
use crate::key::Key;
use crate::number::{Num, Number};
use crate::visit::{Container, Scalar, Text, Visitor};

type Outcome<T = ()> = Result<T, Failed>;

/// Writes one value.
pub struct Writer<'v> {
    pub visitor: &'v mut dyn Visitor,
}

/// An open container, and for how many levels `end` closes.
pub struct Open<'v> {
    visitor: &'v mut dyn Visitor,
    levels: usize,
}

impl<'v> Writer<'v> {
    fn scalar(self, scalar: Scalar<'_>) -> Outcome {
        Ok(self.visitor.scalar(scalar)?)
    }

    fn integer(self, value: impl Display) -> Outcome {
        let text = value.to_string();
        self.scalar(Scalar::Number(Num::parse(&text)?))
    }

    fn open(self, container: Container) -> Outcome<Open<'v>> {
        self.visitor.open(container)?;
        Ok(Open { visitor: self.visitor, levels: 1 })
    }

    /// The container of a variant's fields, as the only member of a map.
    fn open_variant(self, variant: &str, container: Container) -> Outcome<Open<'v>> {
        self.visitor.open(Container::Map)?;
        self.visitor.key(Key::new(variant))?;
        Ok(Open { levels: 2, ..self.open(container)? })
    }
}

impl<'v> ser::Serializer for Writer<'v> {
    type Ok = ();
    type Error = Failed;
    type SerializeSeq = Open<'v>;
    type SerializeTuple = Open<'v>;
    type SerializeTupleStruct = Open<'v>;
    type SerializeTupleVariant = Open<'v>;
    type SerializeMap = Open<'v>;
    type SerializeStruct = Open<'v>;
    type SerializeStructVariant = Open<'v>;

    fn serialize_bool(self, value: bool) -> Outcome {
        self.scalar(Scalar::Bool(value))
    }

    fn serialize_i8(self, value: i8) -> Outcome {
        self.serialize_i64(value.into())
    }

    fn serialize_i16(self, value: i16) -> Outcome {
        self.serialize_i64(value.into())
    }

    fn serialize_i32(self, value: i32) -> Outcome {
        self.serialize_i64(value.into())
    }

    fn serialize_i64(self, value: i64) -> Outcome {
        self.scalar(Scalar::Number(Number::from(value).as_num()))
    }

    fn serialize_i128(self, value: i128) -> Outcome {
        self.integer(value)
    }

    fn serialize_u8(self, value: u8) -> Outcome {
        self.serialize_u64(value.into())
    }

    fn serialize_u16(self, value: u16) -> Outcome {
        self.serialize_u64(value.into())
    }

    fn serialize_u32(self, value: u32) -> Outcome {
        self.serialize_u64(value.into())
    }

    fn serialize_u64(self, value: u64) -> Outcome {
        self.scalar(Scalar::Number(Number::from(value).as_num()))
    }

    fn serialize_u128(self, value: u128) -> Outcome {
        self.integer(value)
    }

    fn serialize_f32(self, value: f32) -> Outcome {
        // Its own shortest text, and not that of the double next to it.
        match value.is_finite() {
            true => self.integer(format_args!("{value:?}")),
            false => Err(not_finite(value.into())),
        }
    }

    fn serialize_f64(self, value: f64) -> Outcome {
        let number = Number::from_f64(value).ok_or_else(|| not_finite(value))?;
        self.scalar(Scalar::Number(number.as_num()))
    }

    fn serialize_char(self, value: char) -> Outcome {
        self.serialize_str(value.encode_utf8(&mut [0; 4]))
    }

    fn serialize_str(self, value: &str) -> Outcome {
        self.scalar(Scalar::String(Text::new(value)))
    }

    fn serialize_bytes(self, value: &[u8]) -> Outcome {
        self.scalar(Scalar::Bytes(value))
    }

    fn serialize_none(self) -> Outcome {
        self.scalar(Scalar::Null)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Outcome {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Outcome {
        self.scalar(Scalar::Null)
    }

    fn serialize_unit_struct(self, _: &'static str) -> Outcome {
        self.scalar(Scalar::Null)
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Outcome {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Outcome {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Outcome {
        let mut open = self.open(Container::Map)?;
        open.member(variant, value)?;
        open.close()
    }

    fn serialize_seq(self, _: Option<usize>) -> Outcome<Open<'v>> {
        self.open(Container::List)
    }

    fn serialize_tuple(self, _: usize) -> Outcome<Open<'v>> {
        self.open(Container::List)
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Outcome<Open<'v>> {
        self.open(Container::List)
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Outcome<Open<'v>> {
        self.open_variant(variant, Container::List)
    }

    fn serialize_map(self, _: Option<usize>) -> Outcome<Open<'v>> {
        self.open(Container::Map)
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Outcome<Open<'v>> {
        self.open(Container::Map)
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Outcome<Open<'v>> {
        self.open_variant(variant, Container::Map)
    }
}

impl Open<'_> {
    fn value<T: Serialize + ?Sized>(&mut self, value: &T) -> Outcome {
        value.serialize(Writer { visitor: self.visitor })
    }

    fn member<T: Serialize + ?Sized>(&mut self, key: &str, value: &T) -> Outcome {
        self.visitor.key(Key::new(key))?;
        self.value(value)
    }

    fn close(self) -> Outcome {
        (0..self.levels).try_for_each(|_| Ok(self.visitor.close()?))
    }
}

impl ser::SerializeSeq for Open<'_> {
    type Ok = ();
    type Error = Failed;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Outcome {
        self.value(value)
    }

    fn end(self) -> Outcome {
        self.close()
    }
}

impl ser::SerializeTuple for Open<'_> {
    type Ok = ();
    type Error = Failed;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Outcome {
        self.value(value)
    }

    fn end(self) -> Outcome {
        self.close()
    }
}

impl ser::SerializeTupleStruct for Open<'_> {
    type Ok = ();
    type Error = Failed;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, value: &T) -> Outcome {
        self.value(value)
    }

    fn end(self) -> Outcome {
        self.close()
    }
}

impl ser::SerializeTupleVariant for Open<'_> {
    type Ok = ();
    type Error = Failed;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, value: &T) -> Outcome {
        self.value(value)
    }

    fn end(self) -> Outcome {
        self.close()
    }
}

impl ser::SerializeMap for Open<'_> {
    type Ok = ();
    type Error = Failed;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Outcome {
        let mut text = KeyText(None);
        key.serialize(Writer { visitor: &mut text })?;
        match text.0 {
            Some(text) => Ok(self.visitor.key(Key::new(&text))?),
            None => Err(no_key("null")),
        }
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Outcome {
        self.value(value)
    }

    fn end(self) -> Outcome {
        self.close()
    }
}

impl ser::SerializeStruct for Open<'_> {
    type Ok = ();
    type Error = Failed;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, key: &'static str, value: &T) -> Outcome {
        self.member(key, value)
    }

    fn end(self) -> Outcome {
        self.close()
    }
}

impl ser::SerializeStructVariant for Open<'_> {
    type Ok = ();
    type Error = Failed;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, key: &'static str, value: &T) -> Outcome {
        self.member(key, value)
    }

    fn end(self) -> Outcome {
        self.close()
    }
}

/// Takes the text of a key.
struct KeyText(Option<String>);

impl Visitor for KeyText {
    fn scalar(&mut self, scalar: Scalar<'_>) -> crate::Result<()> {
        self.0 = Some(match scalar {
            Scalar::String(text) => text.text.to_owned(),
            Scalar::Bool(value) => value.to_string(),
            Scalar::Number(number) => {
                let mut text = Vec::new();
                number.write(&mut text);
                String::from_utf8(text).expect("numbers are ASCII")
            }
            Scalar::Null => return Err(no_key("null").0),
            Scalar::Bytes(_) => return Err(no_key("bytes").0),
        });
        Ok(())
    }

    fn open(&mut self, container: Container) -> crate::Result<()> {
        let what = if container == Container::Map { "a map" } else { "a list" };
        Err(no_key(what).0)
    }

    fn key(&mut self, _: Key<'_>) -> crate::Result<()> {
        unreachable!("no container is opened")
    }

    fn close(&mut self) -> crate::Result<()> {
        unreachable!("no container is opened")
    }

    fn meta(&mut self, _: &str, _: &str) -> crate::Result<()> {
        Ok(())
    }
}

#[cold]
fn no_key(what: &str) -> Failed {
    Failed(Error::invalid_input(format!(
        "a key of a map is {what}; it must be a string, number or bool"
    )))
}

#[cold]
fn not_finite(value: f64) -> Failed {
    Failed(Error::invalid_input(format!(
        "{value} is no number of JSON; store null or a string in its place"
    )))
}
