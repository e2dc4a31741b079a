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

    /// Why it is gone, or not closed, when it is dropped; `None` where [`Factory::array`] then finds it again.
    ///
    /// [`Factory::array`]: crate::system::Factory::array
    fn transient(&self) -> Option<&'static str> {
        None
    }

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

/// The text of a store whose items have texts of their own.
pub struct Export<'a> {
    out: &'a mut Vec<u8>,
    comma: &'static [u8],
}

impl<'a> Export<'a> {
    /// Begins it in `out`.
    pub fn begin(out: &'a mut Vec<u8>) -> Export<'a> {
        out.extend_from_slice(b"{\"array\":[");
        Export { out, comma: b"" }
    }

    /// The next item, as JSON without spaces.
    pub fn item(&mut self, json: &[u8]) {
        self.out.extend_from_slice(self.comma);
        self.out.extend_from_slice(json);
        self.comma = b",";
    }

    /// Ends it.
    pub fn end(self) {
        self.out.extend_from_slice(b"]}");
    }
}
