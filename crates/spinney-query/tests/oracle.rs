//! Random queries on random documents find what another implementation of RFC 9535 finds.
//!
//! A failure prints the seed; `SPINNEY_TEST_SEED` runs one again.

use std::fmt::Write as _;

use fastrand::Rng;
use serde_json::{Value as Json, json};
use serde_json_path::JsonPath;
use spinney_core::{Number, Value};
use spinney_query::{Budget, Query};

const ROUNDS: u64 = 10_000;

/// Their order is the same in both models.
const KEYS: [&str; 5] = ["a", "b", "c", "d e", "é"];
const TEXTS: [&str; 6] = ["", "a", "ab", "b", "ba'c", "é"];
const PATTERNS: [&str; 6] = ["a", "a.*", "[a-b]+", "(a|b)c?", "", "é|b"];

fn scalar(random: &mut Rng) -> Json {
    match random.u8(..6) {
        0 => Json::Null,
        1 => random.bool().into(),
        2 => random.i64(-3..4).into(),
        // Within lists the oracle knows 1 and 1.0 apart.
        3 => json!(random.i64(-3..4) as f64 + 0.5),
        _ => random.choice(TEXTS).expect("some").into(),
    }
}

fn document(random: &mut Rng, depth: u8) -> Json {
    let len = random.usize(..5);
    match random.u8(..5) {
        _ if depth == 0 => scalar(random),
        0 | 1 => (0..len).map(|_| document(random, depth - 1)).collect(),
        2 | 3 => (0..len)
            .map(|_| (random.choice(KEYS).expect("some").to_owned(), document(random, depth - 1)))
            .collect::<serde_json::Map<_, _>>()
            .into(),
        _ => scalar(random),
    }
}

fn value(json: &Json) -> Value {
    match json {
        Json::Null => Value::Null,
        Json::Bool(value) => (*value).into(),
        Json::Number(number) => {
            Value::Number(Number::parse(&number.to_string()).expect("a number"))
        }
        Json::String(text) => (&**text).into(),
        Json::Array(elements) => elements.iter().map(value).collect::<Vec<_>>().into(),
        Json::Object(members) => {
            Value::Map(members.iter().map(|(key, json)| (key, value(json))).collect())
        }
    }
}

/// Writes random queries.
struct Writer<'r> {
    random: &'r mut Rng,
    text: String,
    /// How deep conditions and queries may still be.
    depth: u8,
}

impl Writer<'_> {
    fn segments(&mut self, max: usize) {
        for _ in 0..self.random.usize(..=max) {
            match self.random.u8(..8) {
                0 => self.text.push_str(".*"),
                1 => self.text.push_str("..*"),
                2 => {
                    self.text.push_str("..");
                    self.brackets();
                }
                3 | 4 => self.shorthand(),
                _ => self.brackets(),
            }
        }
    }

    /// Without negative indexes, which the oracle does not follow in comparisons.
    fn singular(&mut self) {
        for _ in 0..self.random.usize(..3) {
            match self.random.bool() {
                true => self.shorthand(),
                false => {
                    let index = self.random.u8(..4);
                    let _ = write!(self.text, "[{index}]");
                }
            }
        }
    }

    fn shorthand(&mut self) {
        let key = self.random.choice(["a", "b", "c", "é"]).expect("some");
        let _ = write!(self.text, ".{key}");
    }

    fn brackets(&mut self) {
        self.text.push('[');
        for at in 0..self.random.usize(1..3) {
            self.text.push_str(if at > 0 { ", " } else { "" });
            self.selector();
        }
        self.text.push(']');
    }

    fn selector(&mut self) {
        match self.random.u8(..8) {
            0 => {
                let key = self.random.choice(KEYS).expect("some");
                let _ = write!(self.text, "'{key}'");
            }
            1 => {
                let index = self.random.i8(-4..5);
                let _ = write!(self.text, "{index}");
            }
            2 => self.text.push('*'),
            3 => self.slice(),
            _ if self.depth > 0 => {
                self.depth -= 1;
                self.text.push('?');
                self.condition();
                self.depth += 1;
            }
            _ => self.text.push('0'),
        }
    }

    fn slice(&mut self) {
        let bound = |writer: &mut Self| {
            if writer.random.bool() {
                let index = writer.random.i8(-5..6);
                let _ = write!(writer.text, "{index}");
            }
        };
        bound(self);
        self.text.push(':');
        bound(self);
        if self.random.bool() {
            self.text.push(':');
            bound(self);
        }
    }

    fn condition(&mut self) {
        for at in 0..self.random.usize(1..4) {
            if at > 0 {
                self.text.push_str(if self.random.bool() { " && " } else { " || " });
            }
            self.text.push_str(if self.random.u8(..5) == 0 { "!" } else { "" });
            let is_negated = self.text.ends_with('!');
            match self.random.u8(..8) {
                0 if self.depth > 0 => {
                    self.depth -= 1;
                    self.text.push('(');
                    self.condition();
                    self.text.push(')');
                    self.depth += 1;
                }
                1 => {
                    let name = if self.random.bool() { "match" } else { "search" };
                    let pattern = self.random.choice(PATTERNS).expect("some");
                    let _ = write!(self.text, "{name}(");
                    self.origin();
                    self.singular();
                    let _ = write!(self.text, ", '{pattern}')");
                }
                2 | 3 => {
                    self.origin();
                    self.segments(2);
                }
                _ if is_negated => {
                    self.text.push('@');
                    self.singular();
                }
                _ => {
                    self.comparable();
                    self.compared();
                }
            }
        }
    }

    /// The oracle takes all values of a kind for ordered; so one side has an order for certain.
    fn compared(&mut self) {
        let sign = self.random.choice(["==", "!=", "<", "<=", ">", ">="]).expect("some");
        let _ = write!(self.text, " {sign} ");
        match self.random.u8(..3) {
            _ if matches!(sign, "==" | "!=") => self.comparable(),
            0 => self.text.push_str("'b'"),
            _ => {
                let number = self.random.i8(-2..3);
                let _ = write!(self.text, "{number}");
            }
        }
    }

    fn origin(&mut self) {
        self.text.push(if self.random.u8(..4) == 0 { '$' } else { '@' });
    }

    fn comparable(&mut self) {
        match self.random.u8(..8) {
            0 | 1 => match scalar(self.random) {
                Json::String(text) => {
                    let text = text.replace('\'', "\\'");
                    let _ = write!(self.text, "'{text}'");
                }
                scalar => {
                    let _ = write!(self.text, "{scalar}");
                }
            },
            2 => {
                self.text.push_str("length(");
                self.comparable();
                self.text.push(')');
            }
            3 => {
                let name = if self.random.bool() { "count" } else { "value" };
                let _ = write!(self.text, "{name}(");
                self.origin();
                self.segments(2);
                self.text.push(')');
            }
            _ => {
                self.origin();
                self.singular();
            }
        }
    }
}

fn round(seed: u64) -> usize {
    let random = &mut Rng::with_seed(seed);
    let json = document(random, 4);
    let mut writer = Writer { random, text: "$".to_owned(), depth: 3 };
    writer.segments(4);
    let text = writer.text;
    let context = || format!("SPINNEY_TEST_SEED={seed}: {text} on {json}");
    let oracle = JsonPath::parse(&text).unwrap_or_else(|error| panic!("{}: {error}", context()));
    let query = Query::parse(&text).unwrap_or_else(|error| panic!("{}: {error}", context()));

    let root = value(&json);
    let mut matches = query.run(&root, Budget::default());
    let mut found = Vec::new();
    while let Some(node) = matches.next().unwrap_or_else(|error| panic!("{}: {error}", context())) {
        let location = matches.location().expect("it reads");
        assert_eq!(root.pointer(&location.pointer()), Some(node), "{}", context());
        found.push(location.to_string());
    }
    let located = oracle.query_located(&json);
    let mut expected: Vec<String> =
        located.iter().map(|node| node.location().to_string()).collect();
    if text.contains("..") {
        // RFC 9535 leaves a part of the order open.
        found.sort_unstable();
        expected.sort_unstable();
    }
    assert_eq!(found, expected, "{}", context());
    found.len()
}

#[test]
fn random_queries_find_what_the_oracle_finds() {
    if let Some(seed) = std::env::var_os("SPINNEY_TEST_SEED") {
        let seed = seed.to_str().and_then(|seed| seed.parse().ok()).expect("a seed is a number");
        println!("{} nodes", round(seed));
        return;
    }
    let first = Rng::new().u64(..1 << 40);
    println!("seeds from {first} on");
    let found: usize = (first..first + ROUNDS).map(round).sum();
    println!("{found} nodes in {ROUNDS} queries");
    assert!(found > ROUNDS as usize, "too few are found to say anything");
}
