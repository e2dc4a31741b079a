//! Where a node lies: as a normalized path (RFC 9535, section 2.7) or as a JSON Pointer.

use std::fmt::{self, Write as _};

use spinney_core::Path;

/// One step from a container to a child of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// To a member of a map.
    Name(String),
    /// To an element of a list.
    Position(u64),
}

/// The place of a node below the root of a query. Its `Display` is the normalized path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Location(pub Vec<Step>);

impl Location {
    /// The same place as a JSON Pointer.
    pub fn pointer(&self) -> Path {
        let mut path = Path::root();
        for step in &self.0 {
            match step {
                Step::Name(name) => path.push(name),
                Step::Position(position) => path.push(&position.to_string()),
            }
        }
        path
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('$')?;
        for step in &self.0 {
            match step {
                Step::Position(position) => write!(f, "[{position}]")?,
                Step::Name(name) => {
                    f.write_str("['")?;
                    name.chars().try_for_each(|char| write_escaped(f, char))?;
                    f.write_str("']")?;
                }
            }
        }
        Ok(())
    }
}

fn write_escaped(f: &mut fmt::Formatter<'_>, char: char) -> fmt::Result {
    match char {
        '\'' | '\\' => write!(f, "\\{char}"),
        '\u{8}' => f.write_str("\\b"),
        '\u{c}' => f.write_str("\\f"),
        '\n' => f.write_str("\\n"),
        '\r' => f.write_str("\\r"),
        '\t' => f.write_str("\\t"),
        '\0'..' ' => write!(f, "\\u{:04x}", u32::from(char)),
        _ => f.write_char(char),
    }
}
