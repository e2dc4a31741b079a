//! How a system is asked, which its times hold.

/// What stands between this process and a system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// Nothing: it is called.
    Embedded,
    /// A pipe to a process of its own.
    Pipe,
    /// A socket of a server.
    Socket,
}

impl Transport {
    /// The name in tables and records.
    pub fn name(self) -> &'static str {
        match self {
            Transport::Embedded => "embedded",
            Transport::Pipe => "pipe",
            Transport::Socket => "socket",
        }
    }

    /// The transport of a name.
    pub fn of_name(name: &str) -> Option<Transport> {
        let all = [Transport::Embedded, Transport::Pipe, Transport::Socket];
        all.into_iter().find(|transport| transport.name() == name)
    }

    /// Whether each request waits for another process.
    pub fn is_apart(self) -> bool {
        self != Transport::Embedded
    }
}
