//! Prints how fast JSON is read and printed, beside serde_json: `cargo run --release --example json_speed`.
//!
//! Each number is the best of 15 runs. Files may be given as arguments.

use std::fmt::Write as _;
use std::hint::black_box;
use std::time::Instant;

use spinney::formats::{self, Dialect, Fidelity, JsonWriter, Layout};
use spinney::{Container, Key, Num, Result, Scalar, Text, Visitor};

/// Takes everything and does nothing.
struct Sink;

impl Visitor for Sink {
    fn open(&mut self, container: Container) -> Result<()> {
        black_box(container);
        Ok(())
    }
    fn key(&mut self, key: Key<'_>) -> Result<()> {
        black_box(key);
        Ok(())
    }
    fn scalar(&mut self, scalar: Scalar<'_>) -> Result<()> {
        black_box(scalar);
        Ok(())
    }
    fn close(&mut self) -> Result<()> {
        Ok(())
    }
    fn meta(&mut self, name: &str, value: &str) -> Result<()> {
        black_box((name, value));
        Ok(())
    }
}

/// Keeps the calls, so that they can be made again at once.
#[derive(Default)]
struct Recording {
    calls: Vec<Call>,
    texts: String,
}

enum Call {
    Open(Container),
    Close,
    Key(Option<i64>, usize),
    Text(bool, usize),
    Num(spinney::Number),
    Scalar(Scalar<'static>),
}

impl Recording {
    fn play(&self, visitor: &mut impl Visitor) -> Result<()> {
        let mut texts = &*self.texts;
        let mut take = |len| {
            let (text, rest) = texts.split_at(len);
            texts = rest;
            text
        };
        for call in &self.calls {
            match call {
                Call::Open(container) => visitor.open(*container)?,
                Call::Close => visitor.close()?,
                Call::Key(Some(value), _) => visitor.key(Key::Int(*value))?,
                Call::Key(None, len) => visitor.key(Key::Text(take(*len)))?,
                Call::Text(plain, len) => {
                    visitor.scalar(Scalar::String(Text { text: take(*len), plain: *plain }))?
                }
                Call::Num(number) => visitor.scalar(Scalar::Number(number.as_num()))?,
                Call::Scalar(scalar) => visitor.scalar(*scalar)?,
            }
        }
        Ok(())
    }
}

impl Visitor for Recording {
    fn open(&mut self, container: Container) -> Result<()> {
        self.calls.push(Call::Open(container));
        Ok(())
    }
    fn key(&mut self, key: Key<'_>) -> Result<()> {
        self.calls.push(match key {
            Key::Int(value) => Call::Key(Some(value), 0),
            Key::Text(text) => {
                self.texts.push_str(text);
                Call::Key(None, text.len())
            }
        });
        Ok(())
    }
    fn scalar(&mut self, scalar: Scalar<'_>) -> Result<()> {
        self.calls.push(match scalar {
            Scalar::Null => Call::Scalar(Scalar::Null),
            Scalar::Bool(value) => Call::Scalar(Scalar::Bool(value)),
            Scalar::Number(Num::Int(value)) => Call::Scalar(Scalar::Number(Num::Int(value))),
            Scalar::Number(Num::Decimal(value)) => {
                Call::Scalar(Scalar::Number(Num::Decimal(value)))
            }
            Scalar::Number(num) => Call::Num(num.to_owned()),
            Scalar::String(text) => {
                self.texts.push_str(text.text);
                Call::Text(text.plain, text.text.len())
            }
            Scalar::Bytes(_) => unreachable!("JSON has no bytes"),
        });
        Ok(())
    }
    fn close(&mut self) -> Result<()> {
        self.calls.push(Call::Close);
        Ok(())
    }
    fn meta(&mut self, _name: &str, _value: &str) -> Result<()> {
        Ok(())
    }
}

fn main() {
    let mut inputs = vec![("item tree".to_owned(), item_tree(100_000).into_bytes())];
    let mut paths: Vec<String> = std::env::args().skip(1).collect();
    if paths.is_empty() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data/json");
        paths = ["canada", "citm_catalog", "twitter"]
            .map(|name| format!("{folder}/{name}.json"))
            .into();
    }
    for path in paths {
        match std::fs::read(&path) {
            Ok(text) => inputs.push((path.rsplit('/').next().unwrap_or_default().into(), text)),
            Err(error) => eprintln!("skipped: `{path}`: {error}"),
        }
    }
    println!(
        "{:20} {:>10} {:>10} {:>6}   {:>10} {:>10} {:>6}",
        "MB/s", "reading", "serde_json", "times", "printing", "serde_json", "times"
    );
    for (name, text) in inputs {
        row(&name, &text);
    }
}

fn row(name: &str, text: &[u8]) {
    let reading = best(|| formats::read(text, Dialect::Json, &mut Sink).expect("it is JSON"));
    let serde_reading =
        best(|| serde_json::from_slice::<serde_json::Value>(text).expect("it is JSON"));
    let value: serde_json::Value = serde_json::from_slice(text).expect("it is JSON");
    let mut recording = Recording::default();
    formats::read(text, Dialect::Json, &mut recording).expect("it is JSON");
    let printing = best(|| {
        let out = Vec::with_capacity(text.len());
        let mut writer = JsonWriter::new(out, Layout::Compact, Fidelity::Refuse);
        recording.play(&mut writer).expect("it prints");
        writer.finish().expect("it prints")
    });
    let serde_printing = best(|| serde_json::to_vec(&value).expect("it prints"));
    let speed = |seconds: f64| text.len() as f64 / seconds / 1e6;
    println!(
        "{name:20} {:10.0} {:10.0} {:6.2}   {:10.0} {:10.0} {:6.2}",
        speed(reading),
        speed(serde_reading),
        serde_reading / reading,
        speed(printing),
        speed(serde_printing),
        serde_printing / printing,
    );
}

/// Seconds of the fastest run; dropping what it made is not timed.
fn best<T>(mut run: impl FnMut() -> T) -> f64 {
    let times = (0..15).map(|_| {
        let start = Instant::now();
        let made = black_box(run());
        let seconds = start.elapsed().as_secs_f64();
        drop(made);
        seconds
    });
    times.fold(f64::INFINITY, f64::min)
}

fn item_tree(len: usize) -> String {
    let mut text = String::from(r#"{"cont":{"lst":{"#);
    for item in 0..len {
        let comma = if item == 0 { "" } else { "," };
        write!(text, r#"{comma}"{item},str{item}":{{"k1":{item},"k2":"str{item}","l":"l{item}"}}"#)
            .expect("a String takes everything");
    }
    text.push_str("}}}");
    text
}
