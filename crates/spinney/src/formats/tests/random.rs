//! Seeded random trees and texts.

use spinney_core::{Container, Number};

use super::Event;

pub(super) struct Random {
    pub rng: fastrand::Rng,
    /// Whether bytes, metadata and keys of forms may occur.
    pub tagged: bool,
}

impl Random {
    /// One value as calls.
    pub fn tree(&mut self) -> Vec<Event> {
        let mut events = Vec::new();
        self.value(0, &mut events);
        events
    }

    fn value(&mut self, depth: usize, events: &mut Vec<Event>) {
        if self.tagged && self.rng.u8(..5) == 0 {
            for name in 0..self.rng.u8(1..4) {
                events.push(Event::Meta(format!("{name}\n"), self.text()));
            }
        }
        let kinds = if depth < 6 { 10 } else { 7 };
        let event = match self.rng.u8(..kinds) {
            0 => Event::Null,
            1 => Event::Bool(self.rng.bool()),
            2 | 3 => Event::Number(Number::parse(&self.number()).expect("it is a number")),
            4 if self.tagged => {
                let len = self.rng.usize(..8);
                Event::Bytes((0..len).map(|_| self.rng.u8(..)).collect())
            }
            4..7 => {
                let text = self.text();
                let plain = spinney_core::Text::new(&text).plain;
                Event::String(text, plain)
            }
            7 => return self.list(depth, events),
            _ => return self.map(depth, events),
        };
        events.push(event);
    }

    fn list(&mut self, depth: usize, events: &mut Vec<Event>) {
        events.push(Event::Open(Container::List));
        for _ in 0..self.rng.u8(..5) {
            self.value(depth + 1, events);
        }
        events.push(Event::Close);
    }

    fn map(&mut self, depth: usize, events: &mut Vec<Event>) {
        events.push(Event::Open(Container::Map));
        for member in 0..self.rng.u8(..5) {
            let key = match self.rng.u8(..4) {
                0 => member.to_string(),
                1 if self.tagged => {
                    let names = ["", "bytes", "meta", "value", "$spinney:", "$spinney:bytes"];
                    format!(
                        "$spinney:{}{}",
                        names[self.rng.usize(..names.len())],
                        ["", "x"][self.rng.usize(..2)]
                    )
                }
                _ => self.text() + &member.to_string(),
            };
            events.push(Event::Key(key));
            self.value(depth + 1, events);
        }
        events.push(Event::Close);
    }

    pub fn text(&mut self) -> String {
        let alphabet = [
            "a",
            "b",
            "é",
            "€",
            "😀",
            "\"",
            "\\",
            "\n",
            "\0",
            "\u{1f}",
            "/",
            " ",
            "$spinney:",
            "plain words",
        ];
        let special = self.rng.bool();
        let letters = if special { &alphabet[..] } else { &alphabet[..5] };
        (0..self.rng.usize(..12)).map(|_| letters[self.rng.usize(..letters.len())]).collect()
    }

    pub fn number(&mut self) -> String {
        let sign = ["", "-"][self.rng.usize(..2)];
        let integer = self.rng.u64(..) >> self.rng.u8(..64);
        let fraction = match self.rng.u8(..3) {
            0 => format!(".{}", self.rng.u32(..)),
            1 => format!(".{:05}", self.rng.u8(..)),
            _ => String::new(),
        };
        let exponent = match self.rng.u8(..4) {
            0 => format!("e{}", self.rng.i16(-300..300)),
            1 => format!("E+{}", self.rng.u8(..99)),
            _ => String::new(),
        };
        format!("{sign}{integer}{fraction}{exponent}")
    }

    /// Changes a few bytes of a text.
    pub fn mutate(&mut self, text: &str) -> Vec<u8> {
        let mut bytes = text.as_bytes().to_vec();
        for _ in 0..self.rng.u8(1..4) {
            let at = self.rng.usize(..=bytes.len());
            let pieces: [&[u8]; 24] = [
                b"{",
                b"}",
                b"[",
                b"]",
                b",",
                b":",
                b"\"",
                b"\\",
                b"\\u",
                b"\\ud83d",
                b"0",
                b"-",
                b"e",
                b".",
                b" ",
                b"\n",
                b"\t",
                b"\0",
                b"\x7f",
                b"\xff",
                b"\xc3",
                "é".as_bytes(),
                b"null",
                b"/",
            ];
            let piece = pieces[self.rng.usize(..pieces.len())];
            match self.rng.u8(..3) {
                0 => drop(bytes.splice(at..at, piece.iter().copied())),
                1 if at < bytes.len() => drop(bytes.splice(at..=at, piece.iter().copied())),
                _ if at < bytes.len() => drop(bytes.remove(at)),
                _ => bytes.truncate(at / 2),
            }
        }
        bytes
    }
}
