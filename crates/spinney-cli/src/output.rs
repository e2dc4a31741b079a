//! Where data goes: stdout, or a file that is complete or not there.

use std::fs;
use std::io::{self, BufWriter, StdoutLock, Write};
use std::path::{Path as FilePath, PathBuf};

use clap::Args;
use spinney::formats::{Fidelity, JsonWriter, Layout};
use spinney::path::Display;
use spinney::{Error, ErrorKind, Path, Result, Snapshot};

/// How JSON is printed.
#[derive(Args)]
pub struct Form {
    /// A line for each member, indented
    #[arg(long)]
    pub pretty: bool,

    /// Leave metadata out and print bytes as base64 text
    #[arg(long, conflicts_with = "tagged")]
    pub lossy: bool,

    /// Keep metadata and bytes, as members that start with `$spinney:`
    #[arg(long)]
    pub tagged: bool,
}

impl Form {
    fn layout(&self) -> Layout {
        if self.pretty { Layout::Pretty } else { Layout::Compact }
    }

    fn fidelity(&self) -> Fidelity {
        match (self.lossy, self.tagged) {
            (true, _) => Fidelity::Lossy,
            (_, true) => Fidelity::Tagged,
            _ => Fidelity::Refuse,
        }
    }

    /// A printer in this form for the value at a path.
    pub fn writer<W: Write>(&self, out: W, path: Path) -> JsonWriter<W> {
        JsonWriter::new(out, self.layout(), self.fidelity()).with_base(path)
    }

    /// Prints the node at a path and a line feed, however large it is.
    pub fn print(
        &self,
        verb: &str,
        snapshot: &Snapshot,
        path: &str,
        out: &mut dyn Write,
    ) -> Result<()> {
        let mut writer = self.writer(out, path.parse().map_err(|error: Error| error.at(verb))?);
        if !snapshot.visit(path, &mut writer).map_err(|error| at(verb, path, error))? {
            return Err(no_node(verb, path));
        }
        let out = writer.finish()?;
        out.write_all(b"\n").and_then(|()| out.flush()).map_err(cannot_write)
    }
}

/// The error of a verb that needs a node where there is none.
pub fn no_node(verb: &str, path: &str) -> Error {
    let hint = if path == "/" { "; leave the path out to name the root" } else { "" };
    Error::not_found(format!("{verb} {}: there is no node{hint}", Display(path)))
}

/// Puts the verb, and the path if the error does not say it, before an error.
pub fn at(verb: &str, path: &str, error: Error) -> Error {
    let shown = Display(path).to_string();
    let (context, source) = (error.context(), std::error::Error::source(&error));
    match () {
        // A closed pipe is no error of the node.
        () if source.is_some() || context.starts_with(verb) => error,
        () if path.is_empty() || context.contains(&shown) => error.at(verb),
        () => error.at(format!("{verb} {shown}")),
    }
}

/// Stdout, in large pieces.
pub fn stdout() -> BufWriter<StdoutLock<'static>> {
    BufWriter::with_capacity(64 * 1024, io::stdout().lock())
}

/// The error of stdout.
pub fn cannot_write(error: io::Error) -> Error {
    Error::io("the output cannot be written").with_source(error)
}

/// Prints to stdout, or to a file that takes its name only once it is complete.
pub fn write_to(
    target: Option<&FilePath>,
    print: impl FnOnce(&mut dyn Write) -> Result<()>,
) -> Result<()> {
    match target {
        None => print(&mut stdout()),
        Some(path) if path == FilePath::new("-") => print(&mut stdout()),
        Some(path) => replace_file(path, print),
    }
}

fn replace_file(path: &FilePath, print: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<()> {
    let failed = |error| cannot_write_file(path, error);
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => FilePath::new("."),
    };
    // Where a link leads, so that it stays one.
    let target: PathBuf = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let mut builder = tempfile::Builder::new();
    builder.prefix(".spinney-");
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let mut file = builder.tempfile_in(target.parent().unwrap_or(folder)).map_err(failed)?;
    print(&mut file).map_err(|error| match error.kind() {
        ErrorKind::Io => error.at(format!("`{}`", path.display())),
        _ => error,
    })?;
    file.as_file().sync_all().map_err(failed)?;
    file.persist(&target).map(drop).map_err(|error| failed(error.error))
}

fn cannot_write_file(path: &FilePath, error: io::Error) -> Error {
    let text = format!("cannot write `{}`", path.display());
    match error.kind() {
        io::ErrorKind::NotFound => Error::not_found(text + ": there is no such folder"),
        io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => {
            Error::read_only(text).with_source(error)
        }
        _ => Error::io(text).with_source(error),
    }
}
