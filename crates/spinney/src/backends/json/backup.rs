//! A copy of the newest state at another path, while the store goes on.

use std::path::Path;

use spinney_core::backend::Backend;
use spinney_core::{Error, Result};

use super::files::Files;
use super::store::Store;

impl Store {
    /// Writes the document, as a rewrite would, and what JSON cannot say to a path where nothing is.
    pub fn backup(&self, target: &Path) -> Result<()> {
        let files = Files::locate(target, false)?;
        if files.is_taken()? {
            return Err(Error::already_exists(format!(
                "backup: `{}` exists, or something of its name beside it; name a new file",
                files.file.display()
            )));
        }
        let printed = self.file();
        let tail = self.tail();
        let (snapshot, diffs) = (self.memory.snapshot()?, tail.diffs.clone());
        drop(tail);
        let known = self.known_text(&printed)?;
        let text = self.print(&printed, known.as_deref(), &*snapshot, &diffs)?;
        drop(printed);
        let side = self.place.side(&*snapshot, self.key_len_max(), text.len())?.print()?;
        // In this order: the document is what makes it a copy.
        files.put_side(&side)?;
        files.prepare(&text)?;
        files.replace()?;
        files.sync_folder()
    }
}
