//! Random schemas and documents over a few keys and values, so that they often meet.

use fastrand::Rng;
use serde_json::{Map, Value as Json, json};
use spinney_schema::Draft;

const KEYS: [&str; 5] = ["a", "ab", "b", "c", "0"];
const PATTERNS: [&str; 4] = ["^a", "b$", "^[a-c]$", "0"];

/// A key.
pub fn key(rng: &mut Rng) -> String {
    KEYS[rng.usize(..KEYS.len())].to_owned()
}

/// A scalar; numbers with several texts for one value.
pub fn scalar(rng: &mut Rng) -> Json {
    match rng.u32(..12) {
        0 => Json::Null,
        1 => Json::Bool(rng.bool()),
        2 => json!(1.0),
        3 => json!(0.5),
        4..=7 => json!(rng.i32(-1..4)),
        8 => json!(""),
        _ => json!(key(rng)),
    }
}

/// A document at most `depth` containers deep.
pub fn document(rng: &mut Rng, depth: u32) -> Json {
    if depth == 0 {
        return scalar(rng);
    }
    match rng.u32(..10) {
        0..=1 => scalar(rng),
        2..=6 => {
            let count = rng.usize(..5);
            Json::Object((0..count).map(|_| (key(rng), document(rng, depth - 1))).collect())
        }
        _ => {
            let count = rng.usize(..5);
            Json::Array((0..count).map(|_| document(rng, depth - 1)).collect())
        }
    }
}

/// A schema of any draft with definitions that refer to each other.
pub fn schema(rng: &mut Rng) -> Json {
    let draft = match rng.bool() {
        true => Draft::Draft202012,
        false => Draft::ALL[rng.usize(..Draft::ALL.len())],
    };
    loop {
        let schema = in_draft(newest_schema(rng), draft);
        if draft != Draft::Draft201909 || is_undisputed(&schema) {
            return schema;
        }
    }
}

/// Whether there is one opinion of a schema of 2019-09: there, what `contains` matches is not evaluated by that, which the
/// oracle takes for granted.
fn is_undisputed(schema: &Json) -> bool {
    let text = schema.to_string();
    !text.contains("\"unevaluatedItems\"") || !text.contains("\"contains\"")
}

/// One of 2020-12.
fn newest_schema(rng: &mut Rng) -> Json {
    let mut definitions = Map::new();
    for name in ["d0", "d1", "d2"] {
        let mut definition = below(rng, 2, false);
        if name == "d0"
            && let Json::Object(members) = &mut definition
        {
            members.insert("$dynamicAnchor".to_owned(), json!("node"));
        }
        definitions.insert(name.to_owned(), definition);
    }
    let mut root = match below(rng, 3, false) {
        Json::Object(members) => members,
        _ => Map::new(),
    };
    root.insert("$schema".to_owned(), json!("https://json-schema.org/draft/2020-12/schema"));
    if rng.bool() {
        root.insert("$dynamicAnchor".to_owned(), json!("node"));
    }
    root.insert("$defs".to_owned(), Json::Object(definitions));
    Json::Object(root)
}

/// A schema; `goes_down` says that it is applied to a member and so may refer dynamically.
fn below(rng: &mut Rng, depth: u32, goes_down: bool) -> Json {
    if goes_down && rng.u32(..12) == 0 {
        return json!({ "$dynamicRef": "#node" });
    }
    if rng.u32(..12) == 0 {
        return Json::Bool(rng.u32(..4) > 0);
    }
    let mut members = Map::new();
    let mut add = |keyword: &str, value: Json| {
        members.insert(keyword.to_owned(), value);
    };
    let keywords = if depth == 0 { rng.u32(1..3) } else { rng.u32(1..3 + 2 * depth) };
    for _ in 0..keywords {
        match rng.u32(..if depth == 0 { 14 } else { 34 }) {
            0..=2 => add("type", types(rng)),
            3 => add("minimum", json!(rng.i32(-1..3))),
            4 => add("exclusiveMaximum", json!(rng.i32(0..5))),
            5 => add("multipleOf", json!(0.5 * f64::from(rng.i32(1..4)))),
            6 => add("minLength", json!(rng.u32(..2))),
            7 => add("pattern", json!(PATTERNS[rng.usize(..PATTERNS.len())])),
            8 => add("enum", (0..rng.usize(3..9)).map(|_| document(rng, 1)).collect()),
            9 => add("required", json!([key(rng)])),
            10 => add("maxProperties", json!(rng.u32(1..5))),
            11 => add("minProperties", json!(rng.u32(..3))),
            12 => add("maxItems", json!(rng.u32(1..5))),
            13 => add("$ref", json!(format!("#/$defs/d{}", rng.u32(..3)))),
            14 | 15 => add("uniqueItems", json!(true)),
            16 | 17 => add("properties", named(rng, depth)),
            18 => add("patternProperties", patterned(rng, depth)),
            19 => add("additionalProperties", below(rng, depth - 1, true)),
            20 => add("propertyNames", json!({ "pattern": "^[a-c]" })),
            21 => add("dependentRequired", json!({ key(rng): [key(rng)] })),
            22 => add("dependentSchemas", json!({ key(rng): below(rng, depth - 1, false) })),
            23 => add("items", below(rng, depth - 1, true)),
            24 => add(
                "prefixItems",
                (0..rng.usize(1..4)).map(|_| below(rng, depth - 1, true)).collect(),
            ),
            25 => {
                add("contains", below(rng, depth - 1, true));
                if rng.bool() {
                    add("minContains", json!(rng.u32(..3)));
                }
                if rng.bool() {
                    add("maxContains", json!(rng.u32(1..3)));
                }
            }
            26 => add("unevaluatedProperties", below(rng, depth - 1, true)),
            27 => add("unevaluatedItems", below(rng, depth - 1, true)),
            28 => add("allOf", branches(rng, depth)),
            29 => add("anyOf", branches(rng, depth)),
            30 => add("oneOf", branches(rng, depth)),
            31 => add("not", below(rng, depth - 1, false)),
            32 => {
                add("if", below(rng, depth - 1, false));
                add("then", below(rng, depth - 1, false));
                add("else", below(rng, depth - 1, false));
            }
            _ => {
                // As people write it: the kind of a thing decides which members it has.
                let branch = |rng: &mut Rng, kind: &str| json!({ "properties": { "c": { "const": kind }, "a": below(rng, depth - 1, true) } });
                let branches = [branch(rng, "a"), branch(rng, "b")];
                add(if rng.bool() { "oneOf" } else { "anyOf" }, json!(branches));
            }
        }
    }
    Json::Object(members)
}

/// What a schema of 2020-12 is in another draft, as far as that has words for it. Keywords that it does not know stay, and are
/// to be ignored.
fn in_draft(schema: Json, draft: Draft) -> Json {
    if draft == Draft::Draft202012 {
        return schema;
    }
    let mut members = match schema {
        Json::Bool(true) if draft == Draft::Draft4 => return json!({}),
        Json::Bool(false) if draft == Draft::Draft4 => return json!({ "not": {} }),
        Json::Object(members) => members,
        other => return other,
    };
    if members.contains_key("$schema") {
        members["$schema"] = json!(draft.uri());
    }
    for (keyword, value) in &mut members {
        let each = |value: &mut Json| *value = in_draft(value.take(), draft);
        match &**keyword {
            "$defs" | "properties" | "patternProperties" | "dependentSchemas" => {
                value.as_object_mut().expect("schemas by name").values_mut().for_each(each);
            }
            "allOf" | "anyOf" | "oneOf" | "prefixItems" => {
                value.as_array_mut().expect("schemas").iter_mut().for_each(each);
            }
            "additionalProperties"
            | "items"
            | "contains"
            | "not"
            | "if"
            | "then"
            | "else"
            | "unevaluatedProperties"
            | "unevaluatedItems" => each(value),
            _ => {}
        }
    }
    let mut rename = |from: &str, to: &str| {
        let value = members.remove(from);
        value.into_iter().for_each(|value| drop(members.insert(to.to_owned(), value)));
    };
    rename("items", "additionalItems");
    rename("prefixItems", "items");
    if members.get("items").is_none() {
        let rest = members.remove("additionalItems");
        rest.into_iter().for_each(|rest| drop(members.insert("items".to_owned(), rest)));
    }
    let is_dynamic = members.remove("$dynamicAnchor").is_some();
    let refers = members.remove("$dynamicRef").is_some();
    if draft == Draft::Draft201909 {
        // Only a whole document can be referred to.
        if is_dynamic && members.contains_key("$schema") {
            members.insert("$recursiveAnchor".to_owned(), json!(true));
        }
        if refers {
            members.insert("$recursiveRef".to_owned(), json!("#"));
        }
        return Json::Object(members);
    }
    if refers {
        members.insert("$ref".to_owned(), json!("#"));
    }
    if let Some(Json::String(reference)) = members.get_mut("$ref") {
        *reference = reference.replace("/$defs/", "/definitions/");
    }
    if let Some(definitions) = members.remove("$defs") {
        members.insert("definitions".to_owned(), definitions);
    }
    let mut dependencies = Map::new();
    for keyword in ["dependentRequired", "dependentSchemas"] {
        if let Some(Json::Object(found)) = members.remove(keyword) {
            dependencies.extend(found);
        }
    }
    if !dependencies.is_empty() {
        members.insert("dependencies".to_owned(), Json::Object(dependencies));
    }
    if draft == Draft::Draft4
        && let Some(maximum) = members.remove("exclusiveMaximum")
    {
        members.insert("maximum".to_owned(), maximum);
        members.insert("exclusiveMaximum".to_owned(), json!(true));
    }
    Json::Object(members)
}

fn types(rng: &mut Rng) -> Json {
    match rng.u32(..7) {
        0 => json!(["number", "object"]),
        1 => json!(["string", "array"]),
        2 => json!("array"),
        3 => json!(["integer", "null", "object"]),
        _ => json!("object"),
    }
}

fn named(rng: &mut Rng, depth: u32) -> Json {
    let count = rng.usize(1..4);
    Json::Object((0..count).map(|_| (key(rng), below(rng, depth - 1, true))).collect())
}

fn patterned(rng: &mut Rng, depth: u32) -> Json {
    json!({ PATTERNS[rng.usize(..PATTERNS.len())]: below(rng, depth - 1, true) })
}

fn branches(rng: &mut Rng, depth: u32) -> Json {
    (0..rng.usize(1..4)).map(|_| below(rng, depth - 1, false)).collect()
}
