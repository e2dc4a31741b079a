//! Documents as files, whose form their ending says.

use std::path::{Path, PathBuf};

use spinney_core::{Error, Result};

use super::Sheet;
use crate::report::Report;

/// Where a document will stand, known to be writable in a form that there is.
#[derive(Clone, Debug)]
pub struct SheetFile {
    path: PathBuf,
    form: Form,
}

#[derive(Clone, Copy, Debug)]
enum Form {
    Html,
    Markdown,
}

impl SheetFile {
    /// A document at `path`, which ends in `.html` or `.md`.
    ///
    /// # Errors
    /// `InvalidInput` for another ending; `Io` when there is no such folder.
    pub fn new(path: &Path) -> Result<SheetFile> {
        let form = match path.extension().and_then(|ending| ending.to_str()) {
            Some("html" | "htm") => Form::Html,
            Some("md") => Form::Markdown,
            _ => {
                return Err(Error::invalid_input(format!(
                    "a report is a file that ends in `.html` or `.md`, not `{}`",
                    path.display()
                )));
            }
        };
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        match folder.is_dir() {
            true => Ok(SheetFile { path: path.to_owned(), form }),
            false => Err(Error::io(format!("there is no folder `{}`", folder.display()))),
        }
    }

    /// Writes what the runs found.
    ///
    /// # Errors
    /// `Io` when the file cannot be written.
    pub fn write(&self, reports: &[Report]) -> Result<()> {
        let sheet = Sheet::of(reports);
        let text = match self.form {
            Form::Html => sheet.html(),
            Form::Markdown => sheet.markdown(),
        };
        let failed = || Error::io(format!("cannot write `{}`", self.path.display()));
        std::fs::write(&self.path, text).map_err(|error| failed().with_source(error))
    }
}
