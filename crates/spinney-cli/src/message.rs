//! What people read on stderr: one line a message, legible without colour.

use std::error::Error as _;
use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use spinney::Error;

const NAME: Style = Style::new().bold();
const NAME_OF_ERROR: Style = AnsiColor::Red.on_default().bold();
const NAME_OF_WARNING: Style = AnsiColor::Yellow.on_default().bold();

/// Prints an error with its causes.
pub fn print_error(error: &Error) {
    print(NAME_OF_ERROR, &text(error));
}

/// Prints something that is neither data nor an error.
pub fn print_note(text: &str) {
    print(NAME, text);
}

/// Prints what spinney's libraries warn of from now on. What an engine has to say comes as an error.
pub fn print_warnings() {
    if log::set_logger(&Warnings).is_ok() {
        log::set_max_level(log::LevelFilter::Warn);
    }
}

struct Warnings;

impl log::Log for Warnings {
    fn enabled(&self, metadata: &log::Metadata<'_>) -> bool {
        metadata.level() <= log::Level::Warn && metadata.target().starts_with("spinney")
    }

    fn log(&self, record: &log::Record<'_>) {
        if self.enabled(record.metadata()) {
            print(NAME_OF_WARNING, &one_line(&format!("warning: {}", record.args())));
        }
    }

    fn flush(&self) {}
}

fn print(style: Style, text: &str) {
    // Where stderr cannot be written there is nobody to tell.
    let _ = writeln!(anstream::stderr(), "{style}spinney{style:#}: {text}");
}

/// An error and its causes in one line: `what: cause: cause of it`.
pub fn text(error: &Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let words = error.to_string();
        if !text.ends_with(&words) {
            text.push_str(": ");
            text.push_str(&words);
        }
        cause = error.source();
    }
    one_line(&text)
}

/// Writes control characters, which keys and file names may hold, as escapes.
pub fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for char in text.chars() {
        match char.is_control() {
            true => line.extend(char.escape_default()),
            false => line.push(char),
        }
    }
    line
}

/// Whether whoever read our output has read enough: `spinney list /x | head`.
pub fn is_closed_pipe(error: &Error) -> bool {
    let mut cause = error.source();
    while let Some(error) = cause {
        if error.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe)
        {
            return true;
        }
        cause = error.source();
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_stand_behind_the_error_and_are_said_once() {
        let cause = io::Error::other("the disk burns");
        let error = Error::io("cannot write").with_source(cause);
        assert_eq!(text(&error), "cannot write: the disk burns");
        let error = Error::io("cannot write: the disk burns")
            .with_source(io::Error::other("the disk burns"));
        assert_eq!(text(&error), "cannot write: the disk burns");
    }

    #[test]
    fn a_message_is_one_line() {
        assert_eq!(one_line("a\nb\u{1b}[31m\u{e9}"), "a\\nb\\u{1b}[31m\u{e9}");
    }
}
