//! What the tests of schemas have in common.

#![allow(dead_code)]

pub mod random;
pub mod session;

use serde_json::Value as Json;
use spinney_core::{Number, Value};

/// The same value in spinney's form.
pub fn value(json: &Json) -> Value {
    match json {
        Json::Null => Value::Null,
        Json::Bool(value) => Value::Bool(*value),
        Json::Number(number) => {
            Value::Number(Number::parse(&number.to_string()).expect("a number"))
        }
        Json::String(text) => Value::from(text.as_str()),
        Json::Array(elements) => Value::from(elements.iter().map(value).collect::<Vec<_>>()),
        Json::Object(members) => {
            Value::Map(members.iter().map(|(key, member)| (key, value(member))).collect())
        }
    }
}

/// The same value in the oracle's form.
pub fn json(value: &Value) -> Json {
    match value {
        Value::Null => Json::Null,
        Value::Bool(value) => Json::Bool(*value),
        Value::Number(number) => serde_json::from_str(&number.to_string()).expect("a number"),
        Value::String(text) => Json::String(text.clone()),
        Value::Bytes(_) => unreachable!("JSON has no bytes"),
        Value::Map(map) => map.iter().map(|(key, value)| (key.into_owned(), json(value))).collect(),
        Value::List(list) => list.iter().map(json).collect(),
    }
}

/// The JSON of a file.
pub fn read(file: &std::path::Path) -> Json {
    let text = std::fs::read_to_string(file).expect("the file reads");
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}
