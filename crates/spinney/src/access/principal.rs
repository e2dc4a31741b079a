//! Who reads and writes.

/// A user with the groups that it is in. Who that is, the surface knows: locally the operating system.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Principal {
    /// The user's name.
    pub name: String,
    /// The names of its groups.
    pub groups: Vec<String>,
}

impl Principal {
    /// A user of no group.
    pub fn new(name: impl Into<String>) -> Principal {
        Principal { name: name.into(), groups: Vec::new() }
    }

    /// The same user in one group more.
    #[must_use]
    pub fn in_group(mut self, group: impl Into<String>) -> Principal {
        self.groups.push(group.into());
        self
    }
}
