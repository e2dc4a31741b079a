//! A `redis-server` of the lab's own on a Unix socket, with the settings of a level; for Redis itself, and for
//! stores of spinney where no server is named.

use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

use ::redis::{Client, Connection, RedisResult};
use spinney_core::Result;

use crate::server::{self, Server};
use crate::system::Durability;

/// Why one at level `none` has nothing when it is started again.
pub const FORGETS: &str = "the server keeps nothing when it ends";

const PROGRAM: &str = "redis-server";
/// The name of its socket.
const SOCKET: &str = "redis";

/// Starts one that keeps its data in `folder`.
///
/// # Errors
/// Those of [`Server::start`].
pub fn start(folder: &Path, durability: Durability) -> Result<Server> {
    let arguments = |sockets: &Path, command: &mut Command| {
        command.args(["--port", "0", "--daemonize", "no"]);
        command.arg("--unixsocket").arg(sockets.join(SOCKET)).arg("--dir").arg(folder);
        for (name, value) in options(durability) {
            command.arg(format!("--{name}")).arg(value);
        }
    };
    let answers = |sockets: &Path| connect_to(sockets).is_ok();
    Server::start(Path::new(PROGRAM), None, folder, arguments, answers)
}

/// A connection to it.
///
/// # Errors
/// Those of the client.
pub fn connect(server: &Server) -> RedisResult<Connection> {
    connect_to(server.sockets())
}

fn connect_to(sockets: &Path) -> RedisResult<Connection> {
    let mut connection = Client::open(url(sockets))?.get_connection()?;
    ::redis::cmd("PING").exec(&mut connection)?;
    Ok(connection)
}

/// Where one is whose socket stands in this folder.
pub fn url(sockets: &Path) -> String {
    format!("redis+unix:{}", sockets.join(SOCKET).display())
}

/// Its settings as name and value.
pub fn settings(durability: Durability) -> Vec<(String, String)> {
    let options = options(durability).iter();
    options.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn options(durability: Durability) -> &'static [(&'static str, &'static str)] {
    match durability {
        Durability::Durable => &[("save", ""), ("appendonly", "yes"), ("appendfsync", "always")],
        Durability::Process => &[("save", ""), ("appendonly", "yes"), ("appendfsync", "no")],
        Durability::None => &[("save", ""), ("appendonly", "no")],
    }
}

/// Its name and version.
pub fn versions() -> Vec<(String, String)> {
    let number = installed().and_then(|text| text.split("v=").nth(1)?.split(' ').next());
    number.map(|number| ("redis-server".to_owned(), number.to_owned())).into_iter().collect()
}

/// Why there is none.
pub fn lacks() -> Option<String> {
    installed()
        .is_none()
        .then(|| "not installed; `scripts/prepare` installs Debian's `redis-server`".to_owned())
}

/// What the program says of itself.
fn installed() -> Option<&'static str> {
    static VERSION: OnceLock<Option<String>> = OnceLock::new();
    VERSION.get_or_init(|| server::version(PROGRAM)).as_deref()
}
