//! The contract of a system of this suite: one array, empty at first.
//!
//! A system stores it in its own best way; it knows nothing of clocks, tries or records.

use spinney_core::{Error, Result};

use super::Item;

/// An open store with the array. Each push is one commit, acknowledged at the level of the store on
/// return; whoever reads sees the array before or after it.
///
/// # Errors
/// All operations: whatever the store reports; `Unsupported` drops the row for this system with the
/// text as the reason.
pub trait Array {
    /// Appends an item.
    fn push(&mut self, item: &Item) -> Result<()>;

    /// The length of the array, as the last commit left it.
    fn count(&mut self) -> Result<u64>;

    /// One text of the first item.
    fn text(&mut self, position: usize) -> Result<String>;

    /// Removes all items; never measured.
    fn clear(&mut self) -> Result<()>;

    /// Appends the store as JSON text, `{"array":[...]}`, without spaces.
    fn export(&mut self, out: &mut Vec<u8>) -> Result<()>;

    /// Another client of the same array, for a thread of its own.
    fn client(&self) -> Result<Box<dyn Array + Send>> {
        Err(Error::unsupported("it has one client"))
    }

    /// Finishes all background work; never measured.
    fn settle(&mut self) -> Result<()> {
        Ok(())
    }

    /// The processes besides this one that sync what it commits.
    fn processes(&self) -> Vec<u32> {
        Vec::new()
    }

    /// The bytes of a store that keeps nothing in its folder.
    fn memory_bytes(&self) -> Option<u64> {
        None
    }
}
