//! The one error type of spinney and the table that maps its kinds to every surface.
//!
//! The kind is the contract; the text is for people and may change.

use std::fmt;
use std::sync::Arc;

/// What went wrong, as a caller may need to tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The caller passed something malformed: JSON text, a path, an option.
    InvalidInput,
    /// A node that the operation needs does not exist.
    NotFound,
    /// A node that must not exist does.
    AlreadyExists,
    /// The store changed since the state that the operation was based on.
    Conflict,
    /// The result would violate a schema.
    Invalid,
    /// An access rule or a subscriber forbids it.
    Denied,
    /// Another process or lease is in the way; trying again may help.
    Busy,
    /// The store or its medium cannot be written.
    ReadOnly,
    /// A documented limit would be exceeded.
    LimitExceeded,
    /// This backend or build cannot do it.
    Unsupported,
    /// Stored bytes are not what was written.
    Corrupted,
    /// The store was closed, or refuses work after a failed sync.
    Closed,
    /// The operating system or the network failed.
    Io,
}

/// One row of the table that all surfaces share.
struct Surface {
    kind: ErrorKind,
    name: &'static str,
    exit_code: u8,
    http_status: u16,
    python_class: &'static str,
    node_code: &'static str,
}

#[rustfmt::skip]
const SURFACES: [Surface; 13] = [
    Surface { kind: ErrorKind::InvalidInput,  name: "invalid input",   exit_code: 2,  http_status: 400, python_class: "InvalidInputError",  node_code: "SPINNEY_INVALID_INPUT" },
    Surface { kind: ErrorKind::NotFound,      name: "not found",       exit_code: 3,  http_status: 404, python_class: "NotFoundError",      node_code: "SPINNEY_NOT_FOUND" },
    Surface { kind: ErrorKind::AlreadyExists, name: "already exists",  exit_code: 4,  http_status: 409, python_class: "AlreadyExistsError", node_code: "SPINNEY_ALREADY_EXISTS" },
    Surface { kind: ErrorKind::Conflict,      name: "conflict",        exit_code: 5,  http_status: 412, python_class: "ConflictError",      node_code: "SPINNEY_CONFLICT" },
    Surface { kind: ErrorKind::Invalid,       name: "invalid",         exit_code: 6,  http_status: 422, python_class: "ValidationError",    node_code: "SPINNEY_INVALID" },
    Surface { kind: ErrorKind::Denied,        name: "denied",          exit_code: 7,  http_status: 403, python_class: "DeniedError",        node_code: "SPINNEY_DENIED" },
    Surface { kind: ErrorKind::Busy,          name: "busy",            exit_code: 8,  http_status: 503, python_class: "BusyError",          node_code: "SPINNEY_BUSY" },
    Surface { kind: ErrorKind::ReadOnly,      name: "read-only",       exit_code: 9,  http_status: 405, python_class: "ReadOnlyError",      node_code: "SPINNEY_READ_ONLY" },
    Surface { kind: ErrorKind::LimitExceeded, name: "limit exceeded",  exit_code: 10, http_status: 413, python_class: "LimitExceededError", node_code: "SPINNEY_LIMIT_EXCEEDED" },
    Surface { kind: ErrorKind::Unsupported,   name: "unsupported",     exit_code: 11, http_status: 501, python_class: "UnsupportedError",   node_code: "SPINNEY_UNSUPPORTED" },
    Surface { kind: ErrorKind::Corrupted,     name: "corrupted",       exit_code: 12, http_status: 500, python_class: "CorruptedError",     node_code: "SPINNEY_CORRUPTED" },
    Surface { kind: ErrorKind::Closed,        name: "closed",          exit_code: 13, http_status: 503, python_class: "ClosedError",        node_code: "SPINNEY_CLOSED" },
    Surface { kind: ErrorKind::Io,            name: "input/output",    exit_code: 14, http_status: 500, python_class: "IoError",            node_code: "SPINNEY_IO" },
];

impl ErrorKind {
    /// Every kind, in the order of the table.
    pub fn all() -> impl Iterator<Item = ErrorKind> {
        SURFACES.iter().map(|surface| surface.kind)
    }

    fn surface(self) -> &'static Surface {
        &SURFACES[self as usize]
    }

    /// The kind in words, as error texts begin with it.
    pub fn name(self) -> &'static str {
        self.surface().name
    }

    /// The exit code of the command line.
    pub fn exit_code(self) -> u8 {
        self.surface().exit_code
    }

    /// The HTTP status of the server.
    pub fn http_status(self) -> u16 {
        self.surface().http_status
    }

    /// The exception class of the Python binding.
    pub fn python_class(self) -> &'static str {
        self.surface().python_class
    }

    /// The `code` of the Node binding.
    pub fn node_code(self) -> &'static str {
        self.surface().node_code
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// An error: its kind, what happened where and what to do, and the cause below it.
///
/// One pointer wide, so that results of hot calls stay in a register.
#[derive(Clone, Debug)]
pub struct Error(Box<Inner>);

#[derive(Clone, Debug)]
struct Inner {
    kind: ErrorKind,
    context: String,
    source: Option<Arc<dyn std::error::Error + Send + Sync>>,
}

/// The result of every fallible operation of spinney.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// An error of `kind`; `context` is a lower-case clause: what happened, where, what was expected.
    pub fn new(kind: ErrorKind, context: impl Into<String>) -> Self {
        Error(Box::new(Inner { kind, context: context.into(), source: None }))
    }

    /// Adds the cause, kept as a source and not flattened into the text.
    pub fn with_source(mut self, source: impl std::error::Error + Send + Sync + 'static) -> Self {
        self.0.source = Some(Arc::new(source));
        self
    }

    /// Puts `outer: ` before the text: the operation or the path where it happened.
    pub fn at(mut self, outer: impl fmt::Display) -> Self {
        self.0.context = format!("{outer}: {}", self.0.context);
        self
    }

    /// The kind, which is the contract.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The text without the sources.
    pub fn context(&self) -> &str {
        &self.0.context
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.context)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_ref().map(|source| &**source as &(dyn std::error::Error + 'static))
    }
}

macro_rules! constructors {
    ($($name:ident => $kind:ident),* $(,)?) => {
        impl Error {
            $(
                #[doc = concat!("An error of kind [`ErrorKind::", stringify!($kind), "`].")]
                #[cold]
                pub fn $name(context: impl Into<String>) -> Self {
                    Error::new(ErrorKind::$kind, context)
                }
            )*
        }
    };
}

constructors! {
    invalid_input => InvalidInput,
    not_found => NotFound,
    already_exists => AlreadyExists,
    conflict => Conflict,
    busy => Busy,
    read_only => ReadOnly,
    limit_exceeded => LimitExceeded,
    unsupported => Unsupported,
    corrupted => Corrupted,
    closed => Closed,
    io => Io,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_rows_stand_in_the_order_of_the_kinds() {
        for kind in ErrorKind::all() {
            assert_eq!(kind.surface().kind, kind);
        }
    }

    #[test]
    fn exit_codes_are_unique_and_never_zero_or_one() {
        let mut codes: Vec<u8> = ErrorKind::all().map(ErrorKind::exit_code).collect();
        codes.sort_unstable();
        codes.dedup();
        assert_eq!(codes.len(), ErrorKind::all().count());
        assert!(codes[0] >= 2);
    }
}
