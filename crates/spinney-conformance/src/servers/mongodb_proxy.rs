//! A connection that is cut at a chosen request: what stands between a client and a server that speaks
//! the protocol of MongoDB.

use std::io::{ErrorKind, Read, Result, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// Commands that read or change documents; the others keep the connection.
const COUNTED: [&[u8]; 4] = [b"insert", b"find", b"update", b"delete"];

/// What gets lost of the request at which the connection is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lost {
    /// The request: the server has never seen it.
    Request,
    /// The answer: the server has done it.
    Answer,
}

/// What becomes of the client after the cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// It may connect again.
    GoOn,
    /// Nothing gets through any more.
    Nothing,
}

/// Passes on what a client and a server say.
pub struct Proxy {
    port: u16,
    shared: Arc<Shared>,
}

struct Shared {
    target: u16,
    plan: Mutex<Plan>,
    cut: Condvar,
}

#[derive(Default)]
struct Plan {
    /// Requests until the cut, what gets lost then, and what comes after.
    cut: Option<(u64, Lost, Then)>,
    seen: u64,
    cuts: u64,
    is_dead: bool,
    connections: Vec<TcpStream>,
}

impl Shared {
    fn plan(&self) -> MutexGuard<'_, Plan> {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Proxy {
    /// Listens on a port of the kernel's choosing, for a server on another.
    ///
    /// # Panics
    /// When there is no port.
    pub fn start(target: u16) -> Proxy {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let shared = Arc::new(Shared { target, plan: Mutex::default(), cut: Condvar::new() });
        let accepting = Arc::clone(&shared);
        // It ends with the process: the next connection finds out that nobody wants it.
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let shared = Arc::clone(&accepting);
                thread::spawn(move || drop(pass(&shared, client)));
            }
        });
        Proxy { port, shared }
    }

    /// The port for clients.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Cuts all connections at the request that comes after `after` others from now on.
    pub fn cut(&self, after: u64, lost: Lost, then: Then) {
        let mut plan = self.shared.plan();
        plan.cut = Some((plan.seen + after, lost, then));
    }

    /// Requests that were seen.
    pub fn requests_len(&self) -> u64 {
        self.shared.plan().seen
    }

    /// Whether connections have been cut, at the latest when the time is up.
    pub fn wait_for_cut(&self, timeout: Duration) -> bool {
        let waited =
            self.shared.cut.wait_timeout_while(self.shared.plan(), timeout, |plan| plan.cuts == 0);
        waited.is_ok_and(|(plan, _)| plan.cuts > 0)
    }
}

/// Passes requests on until the client or the server ends, or the plan does.
fn pass(shared: &Arc<Shared>, mut client: TcpStream) -> Result<()> {
    if shared.plan().is_dead {
        return Ok(());
    }
    let mut server = TcpStream::connect((Ipv4Addr::LOCALHOST, shared.target))?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    {
        let mut plan = shared.plan();
        plan.connections.push(client.try_clone()?);
        plan.connections.push(server.try_clone()?);
    }
    while let Some(request) = message(&mut client)? {
        let cut = is_counted(&request).then(|| due(shared)).flatten();
        if cut.is_some_and(|(lost, _)| lost == Lost::Request) {
            cut_all(shared, cut);
            return Ok(());
        }
        server.write_all(&request)?;
        // A request that wants no answer has a bit set in its flags; no adapter sends such.
        let Some(answer) = message(&mut server)? else { break };
        if cut.is_some() {
            cut_all(shared, cut);
            return Ok(());
        }
        client.write_all(&answer)?;
    }
    // Whichever has ended, the other is to know.
    let _ = (client.shutdown(Shutdown::Both), server.shutdown(Shutdown::Both));
    Ok(())
}

/// Counts a request; what becomes of it when it is the one.
fn due(shared: &Shared) -> Option<(Lost, Then)> {
    let mut plan = shared.plan();
    let number = plan.seen;
    plan.seen += 1;
    let (_, lost, then) = plan.cut.take_if(|&mut (at, ..)| at == number)?;
    Some((lost, then))
}

fn cut_all(shared: &Shared, cut: Option<(Lost, Then)>) {
    let mut plan = shared.plan();
    plan.is_dead |= cut.is_some_and(|(_, then)| then == Then::Nothing);
    plan.cuts += 1;
    for connection in plan.connections.drain(..) {
        // Some have ended before.
        let _ = connection.shutdown(Shutdown::Both);
    }
    shared.cut.notify_all();
}

/// The next message, which begins with its length; `None` at the end.
fn message(stream: &mut TcpStream) -> Result<Option<Vec<u8>>> {
    let mut len = [0; 4];
    match stream.read_exact(&mut len) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error),
    }
    let mut message = vec![0; u32::from_le_bytes(len) as usize];
    message[..4].copy_from_slice(&len);
    stream.read_exact(&mut message[4..])?;
    Ok(Some(message))
}

/// Whether a message is a request about documents: behind the header of 16 bytes, the flags, the kind of
/// the section, the length of its document and the type of the first field lies that field's name.
fn is_counted(message: &[u8]) -> bool {
    const NAME_AT: usize = 16 + 4 + 1 + 4 + 1;
    let name = message.get(NAME_AT..).and_then(|rest| rest.split(|&byte| byte == 0).next());
    name.is_some_and(|name| COUNTED.contains(&name))
}
