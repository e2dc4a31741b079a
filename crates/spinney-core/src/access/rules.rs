//! One rule: what it allows or denies, and where.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};
use crate::path::Path;

/// The segment of a rule's path that stands for any one member.
pub(super) const ANY: &str = "*";

/// What may be done at a path. Who may do one of them may do those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Right {
    /// See what is there.
    Read,
    /// Change it.
    Write,
    /// Say what others may do there, and what must hold.
    Admin,
}

impl Right {
    /// All of them, the least first.
    pub const ALL: [Right; 3] = [Right::Read, Right::Write, Right::Admin];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Right::Read => "read",
            Right::Write => "write",
            Right::Admin => "admin",
        }
    }

    pub(super) fn bit(self) -> u8 {
        1 << self as u8
    }
}

impl fmt::Display for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Right {
    type Err = Error;

    fn from_str(text: &str) -> Result<Right> {
        Right::ALL.into_iter().find(|right| right.name() == text).ok_or_else(|| {
            Error::invalid_input(format!("`{text}` is no right; there are read, write and admin"))
        })
    }
}

/// What a rule says of a right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Effect {
    /// It may be done, and what lesser rights let do.
    Allow(Right),
    /// It may not be done, nor what greater rights let do.
    Deny(Right),
}

impl Effect {
    /// Whether it decides about a right.
    pub fn is_about(self, right: Right) -> bool {
        match self {
            Effect::Allow(allowed) => right <= allowed,
            Effect::Deny(denied) => right >= denied,
        }
    }

    /// Whether it allows.
    pub fn allows(self) -> bool {
        matches!(self, Effect::Allow(_))
    }
}

impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Effect::Allow(right) => write!(f, "allow {right}"),
            Effect::Deny(right) => write!(f, "deny {right}"),
        }
    }
}

/// What may or may not be done at a path and below it. The segment `*` of the path stands for any one
/// member of a map or element of a list; positions do not name elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Where it begins.
    pub path: Path,
    /// What it says.
    pub effect: Effect,
}
