//! Which keywords a schema may use: the drafts and vocabularies of JSON Schema.

use std::collections::HashMap;
use std::sync::OnceLock;

use spinney_core::error::{Error, Result};
use spinney_core::{Map, Value};

/// A release of JSON Schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Draft {
    /// Draft 4 (2013).
    Draft4,
    /// Draft 6 (2017).
    Draft6,
    /// Draft 7 (2018).
    Draft7,
    /// Draft 2019-09.
    Draft201909,
    /// Draft 2020-12.
    Draft202012,
}

impl Draft {
    /// Every draft, oldest first.
    pub const ALL: [Draft; 5] =
        [Draft::Draft4, Draft::Draft6, Draft::Draft7, Draft::Draft201909, Draft::Draft202012];

    /// The URI of its metaschema.
    pub fn uri(self) -> &'static str {
        match self {
            Draft::Draft4 => "http://json-schema.org/draft-04/schema",
            Draft::Draft6 => "http://json-schema.org/draft-06/schema",
            Draft::Draft7 => "http://json-schema.org/draft-07/schema",
            Draft::Draft201909 => "https://json-schema.org/draft/2019-09/schema",
            Draft::Draft202012 => "https://json-schema.org/draft/2020-12/schema",
        }
    }

    /// The draft of a metaschema's URI. Whether it begins with `http` or `https` does not matter.
    pub fn from_uri(uri: &str) -> Option<Draft> {
        let without_scheme = |uri: &str| uri.split_once("://").map(|(_, rest)| rest.to_owned());
        let wanted = without_scheme(uri.trim_end_matches('#'))?;
        Draft::ALL.into_iter().find(|draft| without_scheme(draft.uri()).as_ref() == Some(&wanted))
    }
}

/// A draft and what of it is in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dialect {
    /// The rules that keywords follow.
    pub draft: Draft,
    /// Keywords that apply schemas: `properties`, `items`, `anyOf` and so on.
    pub applicator: bool,
    /// `unevaluatedItems` and `unevaluatedProperties`.
    pub unevaluated: bool,
    /// Keywords that assert: `type`, `required`, `pattern` and so on.
    pub validation: bool,
    /// Whether `format` asserts; otherwise it only annotates.
    pub format_assertion: bool,
}

impl Dialect {
    /// A draft as it stands. `format` asserts up to draft 7, where tools agree that it does.
    pub fn of(draft: Draft) -> Dialect {
        Dialect {
            draft,
            applicator: true,
            unevaluated: true,
            validation: true,
            format_assertion: draft <= Draft::Draft7,
        }
    }

    /// What a metaschema of an author's own puts in force by `$vocabulary`, on top of the dialect
    /// that it is written in.
    ///
    /// # Errors
    /// `Unsupported` when it requires a vocabulary that is not known.
    pub fn of_metaschema(metaschema: &Value, written_in: Dialect) -> Result<Dialect> {
        let vocabularies = match metaschema {
            Value::Map(map) if written_in.draft >= Draft::Draft201909 => map.get("$vocabulary"),
            _ => None,
        };
        let Some(Value::Map(vocabularies)) = vocabularies else { return Ok(written_in) };
        let mut dialect = Dialect {
            applicator: false,
            unevaluated: false,
            validation: false,
            format_assertion: false,
            ..written_in
        };
        for (uri, required) in vocabularies.iter() {
            let standard = ["2019-09", "2020-12"].iter().find_map(|release| {
                uri.strip_prefix(&format!("https://json-schema.org/draft/{release}/vocab/"))
            });
            match standard {
                Some("applicator") => {
                    dialect.applicator = true;
                    dialect.unevaluated |= dialect.draft == Draft::Draft201909;
                }
                Some("unevaluated") => dialect.unevaluated = true,
                Some("validation") => dialect.validation = true,
                Some("format-assertion") => dialect.format_assertion = true,
                Some("format") => dialect.format_assertion |= *required == Value::Bool(true),
                Some("core" | "meta-data" | "format-annotation" | "content") => {}
                _ if *required == Value::Bool(true) => {
                    return Err(Error::unsupported(format!(
                        "the metaschema requires the vocabulary `{uri}`, which is not known; only the standard vocabularies are"
                    )));
                }
                _ => {}
            }
        }
        Ok(dialect)
    }
}

/// The metaschema of a URI without a fragment, when it is one of the drafts' own.
pub fn metaschema(uri: &str) -> Option<&'static Value> {
    static PARSED: OnceLock<HashMap<&'static str, Value>> = OnceLock::new();
    let parsed = PARSED.get_or_init(|| {
        METASCHEMAS
            .iter()
            .map(|(uri, text)| {
                let json = serde_json::from_str(text).expect("the metaschemas are JSON");
                (*uri, value_of(&json))
            })
            .collect()
    });
    parsed.get(uri)
}

/// The metaschemas nest a few levels, so that recursion is no concern.
fn value_of(json: &serde_json::Value) -> Value {
    match json {
        serde_json::Value::Null => Value::Null,
        serde_json::Value::Bool(value) => Value::Bool(*value),
        serde_json::Value::Number(number) => {
            Value::from(number.as_i64().expect("the metaschemas hold small integers only"))
        }
        serde_json::Value::String(text) => Value::from(text.as_str()),
        serde_json::Value::Array(elements) => {
            Value::from(elements.iter().map(value_of).collect::<Vec<_>>())
        }
        serde_json::Value::Object(members) => {
            Value::Map(members.iter().map(|(key, value)| (key, value_of(value))).collect::<Map>())
        }
    }
}

macro_rules! metaschemas {
    ($($uri:literal: $file:literal),* $(,)?) => {
        [$(($uri, include_str!(concat!("../metaschemas/", $file)))),*]
    };
}

const METASCHEMAS: [(&str, &str); 19] = metaschemas! {
    "http://json-schema.org/draft-04/schema": "draft4.json",
    "http://json-schema.org/draft-06/schema": "draft6.json",
    "http://json-schema.org/draft-07/schema": "draft7.json",
    "https://json-schema.org/draft/2019-09/schema": "draft2019-09/schema.json",
    "https://json-schema.org/draft/2019-09/meta/applicator": "draft2019-09/meta/applicator.json",
    "https://json-schema.org/draft/2019-09/meta/content": "draft2019-09/meta/content.json",
    "https://json-schema.org/draft/2019-09/meta/core": "draft2019-09/meta/core.json",
    "https://json-schema.org/draft/2019-09/meta/format": "draft2019-09/meta/format.json",
    "https://json-schema.org/draft/2019-09/meta/meta-data": "draft2019-09/meta/meta-data.json",
    "https://json-schema.org/draft/2019-09/meta/validation": "draft2019-09/meta/validation.json",
    "https://json-schema.org/draft/2020-12/schema": "draft2020-12/schema.json",
    "https://json-schema.org/draft/2020-12/meta/applicator": "draft2020-12/meta/applicator.json",
    "https://json-schema.org/draft/2020-12/meta/content": "draft2020-12/meta/content.json",
    "https://json-schema.org/draft/2020-12/meta/core": "draft2020-12/meta/core.json",
    "https://json-schema.org/draft/2020-12/meta/format-annotation": "draft2020-12/meta/format-annotation.json",
    "https://json-schema.org/draft/2020-12/meta/format-assertion": "draft2020-12/meta/format-assertion.json",
    "https://json-schema.org/draft/2020-12/meta/meta-data": "draft2020-12/meta/meta-data.json",
    "https://json-schema.org/draft/2020-12/meta/unevaluated": "draft2020-12/meta/unevaluated.json",
    "https://json-schema.org/draft/2020-12/meta/validation": "draft2020-12/meta/validation.json",
};
