//! Where values come from: the command line, a file or stdin; read as a stream, never as a whole.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use spinney::formats::{self, ReadOptions};
use spinney::{Error, ErrorKind, Result, Visitor};

/// A source of text or bytes, as an argument names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// The argument itself.
    Text(String),
    /// `@FILE`.
    File(PathBuf),
    /// `-`.
    Stdin,
}

/// An input that is open.
pub struct Opened {
    /// Its bytes.
    pub reader: Box<dyn Read>,
    /// How many there are, where that is known.
    pub len: Option<u64>,
}

impl Input {
    /// `-`, `@FILE` or the value itself.
    pub fn of_value(argument: &str) -> Input {
        match argument.strip_prefix('@') {
            _ if argument == "-" => Input::Stdin,
            Some(file) => Input::File(file.into()),
            None => Input::Text(argument.to_owned()),
        }
    }

    /// `-` or a file.
    pub fn of_file(argument: &Path) -> Input {
        match argument.to_str() {
            Some("-") => Input::Stdin,
            _ => Input::File(argument.to_owned()),
        }
    }

    /// Opens it from its beginning; stdin has one only once.
    pub fn open(&self) -> Result<Opened> {
        Ok(match self {
            Input::Text(text) => Opened {
                len: Some(text.len() as u64),
                reader: Box::new(io::Cursor::new(text.clone().into_bytes())),
            },
            Input::Stdin => Opened { reader: Box::new(io::stdin().lock()), len: None },
            Input::File(path) => {
                let failed = |error| cannot_read(path, error);
                let file = File::open(path).map_err(failed)?;
                let metadata = file.metadata().map_err(failed)?;
                if metadata.is_dir() {
                    let text = format!("cannot read `{}`: it is a directory", path.display());
                    return Err(Error::invalid_input(text));
                }
                let len = metadata.is_file().then_some(metadata.len());
                Opened { reader: Box::new(file), len }
            }
        })
    }

    /// All its bytes.
    pub fn read_bytes(&self, opened: Opened) -> Result<Vec<u8>> {
        let max = spinney::limits::VALUE_LEN_MAX as u64;
        let mut bytes = Vec::new();
        opened.reader.take(max + 1).read_to_end(&mut bytes).map_err(|error| match self {
            Input::File(path) => cannot_read(path, error),
            _ => Error::io("the input cannot be read").with_source(error),
        })?;
        match bytes.len() as u64 > max {
            true => Err(Error::limit_exceeded(format!(
                "a value has more than {max} bytes, which is the most that one may have"
            ))),
            false => Ok(bytes),
        }
    }

    /// Drives the visitor over the text; errors name the file.
    pub fn parse(
        &self,
        opened: Opened,
        options: ReadOptions<'_>,
        visitor: &mut (impl Visitor + ?Sized),
    ) -> Result<()> {
        let reader = BufReader::with_capacity(formats::WINDOW_LEN, opened.reader);
        formats::read_with(reader, options, visitor).map_err(|error| match self {
            Input::Text(text) => hint_at_quotes(text, error),
            Input::File(path) => error.at(format!("`{}`", path.display())),
            Input::Stdin => error.at("stdin"),
        })
    }
}

fn cannot_read(path: &Path, error: io::Error) -> Error {
    let text = format!("cannot read `{}`", path.display());
    match error.kind() {
        io::ErrorKind::NotFound => Error::not_found(text + ": there is no such file"),
        io::ErrorKind::PermissionDenied => Error::new(ErrorKind::Denied, text).with_source(error),
        _ => Error::io(text).with_source(error),
    }
}

/// Someone who writes `set /name Ada` means a string.
fn hint_at_quotes(text: &str, error: Error) -> Error {
    let is_word = text.trim_start().starts_with(|c: char| c.is_alphabetic() || c == '_');
    if error.kind() != ErrorKind::InvalidInput || !is_word {
        return error;
    }
    let is_short = text.len() <= 40 && !text.contains(['\'', '"', '\\']);
    let example = if is_short { text } else { "text" };
    Error::invalid_input(format!(
        "{}; a string needs quotes of its own: '\"{example}\"'",
        error.context()
    ))
}
