//! A TCP proxy that cuts connections, in the middle of what goes over them.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

/// After how many bytes a connection is cut: somewhere in one of the ranges, by chance.
#[derive(Clone, Debug)]
pub struct Cuts {
    /// Bytes to the server.
    pub requests: Range<u64>,
    /// Bytes from the server.
    pub answers: Range<u64>,
}

/// A proxy on loopback; its connections end with it.
pub struct Proxy {
    port: u16,
    cut: Arc<AtomicU64>,
    is_over: Arc<AtomicBool>,
}

impl Proxy {
    /// A proxy in front of a port of loopback.
    ///
    /// # Panics
    /// When the system has no port.
    pub fn start(target: u16, cuts: Cuts) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let proxy = Proxy { port, cut: Arc::default(), is_over: Arc::default() };
        let (cut, is_over) = (Arc::clone(&proxy.cut), Arc::clone(&proxy.is_over));
        thread::spawn(move || {
            for client in listener.incoming() {
                if is_over.load(Ordering::Acquire) {
                    return;
                }
                let Ok(client) = client else { continue };
                let Ok(server) = TcpStream::connect(("127.0.0.1", target)) else { continue };
                let is_request = fastrand::bool();
                let request_len =
                    if is_request { fastrand::u64(cuts.requests.clone()) } else { u64::MAX };
                let answer_len =
                    if is_request { u64::MAX } else { fastrand::u64(cuts.answers.clone()) };
                pass(&client, &server, request_len, &cut);
                pass(&server, &client, answer_len, &cut);
            }
        });
        proxy
    }

    /// Where it listens.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// How many connections it has cut.
    pub fn cuts_len(&self) -> u64 {
        self.cut.load(Ordering::Relaxed)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Release);
        // It waits for a connection.
        drop(TcpStream::connect(("127.0.0.1", self.port)));
    }
}

/// Passes bytes on in a thread of its own, and cuts both connections after `len` of them.
fn pass(from: &TcpStream, to: &TcpStream, len: u64, cut: &Arc<AtomicU64>) {
    let (mut from, mut to) =
        (from.try_clone().expect("a stream"), to.try_clone().expect("a stream"));
    let cut = Arc::clone(cut);
    thread::spawn(move || {
        let (mut left, mut buffer) = (len, [0; 4_096]);
        while let Ok(read @ 1..) = from.read(&mut buffer) {
            let passed = left.min(read as u64);
            if to.write_all(&buffer[..passed as usize]).is_err() {
                break;
            }
            left -= passed;
            if left == 0 {
                cut.fetch_add(1, Ordering::Relaxed);
                break;
            }
        }
        let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
    });
}
