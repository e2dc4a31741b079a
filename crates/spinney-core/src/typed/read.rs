//! From a value to a type.

use serde_core::de::value::{MapDeserializer, SeqDeserializer};
use serde_core::de::{self, IntoDeserializer, Unexpected, VariantAccess, Visitor};
use serde_core::forward_to_deserialize_any;

use super::Failed;
use crate::number::{Num, Number};
use crate::value::{Map, Value};

/// Reads one value.
pub struct Reader(pub Value);

/// The key of a member, which is a text and may be meant as a number or bool.
struct KeyReader(String);

impl<'de> de::Deserializer<'de> for Reader {
    type Error = Failed;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failed> {
        match self.0 {
            Value::Null => visitor.visit_unit(),
            Value::Bool(value) => visitor.visit_bool(value),
            Value::Number(number) => visit_number(&number, visitor),
            Value::String(text) => visitor.visit_string(text),
            Value::Bytes(bytes) => visitor.visit_byte_buf(bytes),
            Value::List(mut list) => {
                let elements = std::mem::take(&mut *list).into_iter();
                let mut elements = SeqDeserializer::new(elements.map(Reader));
                let read = visitor.visit_seq(&mut elements)?;
                elements.end()?;
                Ok(read)
            }
            Value::Map(map) => {
                let mut members = MapDeserializer::new(members(map));
                let read = visitor.visit_map(&mut members)?;
                members.end()?;
                Ok(read)
            }
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failed> {
        match self.0 {
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Failed> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Failed> {
        let (name, fields) = match self.0 {
            Value::String(name) => (name, None),
            Value::Map(map) if map.len() == 1 => {
                let (name, fields) = members(map).next().expect("it has one");
                (name.0, Some(fields.0))
            }
            other => {
                let expected = &"the name of a variant, or a map with it as the only key";
                return Err(de::Error::invalid_type(unexpected(&other), expected));
            }
        };
        visitor.visit_enum(Variant { name, fields })
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct
        seq tuple tuple_struct map struct identifier ignored_any
    }
}

impl IntoDeserializer<'_, Failed> for Reader {
    type Deserializer = Reader;
    fn into_deserializer(self) -> Reader {
        self
    }
}

fn members(map: Map) -> impl Iterator<Item = (KeyReader, Reader)> {
    map.into_members().map(|(key, value)| (KeyReader(key), Reader(value)))
}

fn visit_number<'de, V: Visitor<'de>>(number: &Number, visitor: V) -> Result<V::Value, Failed> {
    match number.as_num() {
        Num::Int(value) => return visitor.visit_i64(value),
        Num::Uint(value) => return visitor.visit_u64(value),
        _ => {}
    }
    let text = number.as_num().to_string();
    if let Ok(value) = text.parse() {
        return visitor.visit_i128(value);
    }
    if let Ok(value) = text.parse() {
        return visitor.visit_u128(value);
    }
    match number.as_f64() {
        value if value.is_finite() => visitor.visit_f64(value),
        _ => Err(de::Error::custom(format_args!("the number {text} is too large for a float"))),
    }
}

impl<'de> de::Deserializer<'de> for KeyReader {
    type Error = Failed;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failed> {
        visitor.visit_string(self.0)
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failed> {
        match &*self.0 {
            "true" => visitor.visit_bool(true),
            "false" => visitor.visit_bool(false),
            _ => visitor.visit_string(self.0),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failed> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Failed> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Failed> {
        visitor.visit_enum(Variant { name: self.0, fields: None })
    }

    fn deserialize_i8<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failed> {
        self.number(visitor)
    }

    fn deserialize_i16<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failed> {
        self.number(visitor)
    }

    fn deserialize_i32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failed> {
        self.number(visitor)
    }

    fn deserialize_i64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failed> {
        self.number(visitor)
    }

    fn deserialize_i128<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failed> {
        self.number(visitor)
    }

    fn deserialize_u8<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failed> {
        self.number(visitor)
    }

    fn deserialize_u16<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failed> {
        self.number(visitor)
    }

    fn deserialize_u32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failed> {
        self.number(visitor)
    }

    fn deserialize_u64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failed> {
        self.number(visitor)
    }

    fn deserialize_u128<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failed> {
        self.number(visitor)
    }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failed> {
        self.number(visitor)
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failed> {
        self.number(visitor)
    }

    forward_to_deserialize_any! {
        char str string bytes byte_buf unit unit_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

impl KeyReader {
    fn number<'de, V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failed> {
        match Number::parse(&self.0) {
            Ok(number) => visit_number(&number, visitor),
            Err(_) => visitor.visit_string(self.0),
        }
    }
}

impl IntoDeserializer<'_, Failed> for KeyReader {
    type Deserializer = KeyReader;
    fn into_deserializer(self) -> KeyReader {
        self
    }
}

/// A variant by name, and its fields.
struct Variant {
    name: String,
    fields: Option<Value>,
}

impl<'de> de::EnumAccess<'de> for Variant {
    type Error = Failed;
    type Variant = Fields;

    fn variant_seed<V: de::DeserializeSeed<'de>>(
        self,
        seed: V,
    ) -> Result<(V::Value, Fields), Failed> {
        let read = seed.deserialize(KeyReader(self.name))?;
        Ok((read, Fields(self.fields)))
    }
}

/// What a variant holds.
struct Fields(Option<Value>);

impl Fields {
    fn there(self) -> Result<Reader, Failed> {
        let missing = || de::Error::invalid_type(Unexpected::UnitVariant, &"a variant with fields");
        self.0.map(Reader).ok_or_else(missing)
    }
}

impl<'de> VariantAccess<'de> for Fields {
    type Error = Failed;

    fn unit_variant(self) -> Result<(), Failed> {
        match self.0 {
            None | Some(Value::Null) => Ok(()),
            Some(fields) => {
                Err(de::Error::invalid_type(unexpected(&fields), &"a variant without fields"))
            }
        }
    }

    fn newtype_variant_seed<T: de::DeserializeSeed<'de>>(
        self,
        seed: T,
    ) -> Result<T::Value, Failed> {
        seed.deserialize(self.there()?)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Failed> {
        de::Deserializer::deserialize_any(self.there()?, visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Failed> {
        de::Deserializer::deserialize_any(self.there()?, visitor)
    }
}

fn unexpected(value: &Value) -> Unexpected<'_> {
    match value {
        Value::Null => Unexpected::Unit,
        Value::Bool(value) => Unexpected::Bool(*value),
        Value::Number(_) => Unexpected::Other("number"),
        Value::String(text) => Unexpected::Str(text),
        Value::Bytes(bytes) => Unexpected::Bytes(bytes),
        Value::Map(_) => Unexpected::Map,
        Value::List(_) => Unexpected::Seq,
    }
}
