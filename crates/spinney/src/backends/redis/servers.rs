//! The servers that a URL leads to: one, or the masters of a cluster. All trees of a store share the
//! connections to them.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redis::{Client, Connection, ConnectionAddr, ConnectionInfo, RedisError, RedisResult, Value};
use spinney_core::{Error, Result};

use super::address::Address;
use super::link::{Link, is_of_server};

/// Connections to a server that are kept for the next request.
const IDLE_MAX: usize = 8;

/// Slots of a cluster.
const SLOTS: u16 = 16_384;

/// Connections to servers; opened as they are needed.
pub(super) struct Servers {
    /// How each is reached, but for its address.
    info: ConnectionInfo,
    /// Those that the URL names.
    seeds: Vec<ConnectionAddr>,
    is_cluster: bool,
    timeout: Duration,
    idle: Mutex<Vec<Link>>,
    slots: Mutex<Slots>,
}

/// Which master has which slots of a cluster, as far as it is known.
#[derive(Default)]
struct Slots {
    /// The first and the last slot, and their master.
    ranges: Vec<(u16, u16, ConnectionAddr)>,
    /// Where they have moved since.
    moved: Vec<(u16, ConnectionAddr)>,
    /// Masters that were known once; they are asked when those that the URL names are gone.
    met: Vec<ConnectionAddr>,
}

impl Servers {
    /// No connection is opened yet.
    ///
    /// # Errors
    /// `Unsupported` for TLS in a build without it.
    pub fn new(address: &Address, timeout: Duration) -> Result<Servers> {
        // The program may have chosen another one before; then that one is used.
        #[cfg(feature = "redis-tls")]
        let _ = rustls::crypto::ring::default_provider().install_default();
        let servers = Servers {
            info: address.info.clone(),
            seeds: address.seeds.clone(),
            is_cluster: address.is_cluster,
            timeout,
            idle: Mutex::default(),
            slots: Mutex::default(),
        };
        servers.client(&servers.seeds[0]).map_err(|error| {
            Error::unsupported(format!("{address}: this build cannot connect to it"))
                .with_source(error)
        })?;
        Ok(servers)
    }

    /// Whether keys lie on several servers.
    pub fn is_cluster(&self) -> bool {
        self.is_cluster
    }

    /// The masters, with how many slots each has.
    pub fn masters(&self) -> Vec<(ConnectionAddr, u32)> {
        let mut masters: Vec<(ConnectionAddr, u32)> = Vec::new();
        for (first, last, master) in &self.slots().ranges {
            let len = u32::from(last - first) + 1;
            match masters.iter_mut().find(|(known, _)| known == master) {
                Some((_, slots)) => *slots += len,
                None => masters.push((master.clone(), len)),
            }
        }
        masters
    }

    /// The server that has a slot.
    pub fn master(&self, slot: u16) -> RedisResult<ConnectionAddr> {
        if let Some(known) = self.known_master(slot) {
            return Ok(known);
        }
        self.ask_for_slots()?;
        self.known_master(slot).ok_or_else(|| {
            let text = "no master has the slot";
            RedisError::from((redis::ErrorKind::Io, text, format!("slot {slot}")))
        })
    }

    fn known_master(&self, slot: u16) -> Option<ConnectionAddr> {
        match self.is_cluster {
            true => self.slots().master(slot),
            false => self.seeds.first().cloned(),
        }
    }

    /// Asks whoever answers which master has which slots.
    pub fn ask_for_slots(&self) -> RedisResult<()> {
        let mut candidates = self.slots().met.clone();
        candidates.extend(
            self.seeds
                .iter()
                .filter(|seed| !candidates.contains(seed))
                .cloned()
                .collect::<Vec<_>>(),
        );
        let mut refused = None;
        for candidate in candidates {
            match self.slots_by(&candidate) {
                Ok(ranges) => {
                    let mut slots = self.slots();
                    slots.met = Vec::new();
                    for (_, _, master) in &ranges {
                        if !slots.met.contains(master) {
                            slots.met.push(master.clone());
                        }
                    }
                    slots.ranges = ranges;
                    slots.moved.clear();
                    return Ok(());
                }
                // What a server says against it, is more to the point than that another is gone.
                Err(error) if refused.as_ref().is_none_or(|known| !is_of_server(known)) => {
                    refused = Some(error);
                }
                Err(_) => {}
            }
        }
        Err(refused.expect("a URL names a server"))
    }

    fn slots_by(&self, server: &ConnectionAddr) -> RedisResult<Vec<(u16, u16, ConnectionAddr)>> {
        let mut link = self.link(server)?;
        let answer = redis::cmd("CLUSTER").arg("SLOTS").query(&mut link.connection)?;
        self.give_back(link);
        let Value::Array(ranges) = answer else { return Ok(Vec::new()) };
        let range = |range: Value| -> Option<(u16, u16, ConnectionAddr)> {
            let Value::Array(parts) = range else { return None };
            let [Value::Int(first), Value::Int(last), Value::Array(master), ..] = &parts[..] else {
                return None;
            };
            let [host, Value::Int(port), ..] = &master[..] else { return None };
            let host = match host {
                Value::BulkString(host) => std::str::from_utf8(host).ok()?,
                _ => "",
            };
            let master = at(server, host, u16::try_from(*port).ok()?);
            Some((u16::try_from(*first).ok()?, u16::try_from(*last).ok()?, master))
        };
        Ok(ranges.into_iter().filter_map(range).collect())
    }

    /// Takes in that a server has sent a request for a slot elsewhere.
    pub fn moved(&self, error: &RedisError, by: &ConnectionAddr) {
        let Some((node, slot)) = error.redirect_node() else { return };
        let Some((host, port)) = node.rsplit_once(':') else { return };
        let Ok(port) = port.parse() else { return };
        let mut slots = self.slots();
        slots.moved.retain(|(known, _)| *known != slot);
        slots.moved.push((slot, at(by, host, port)));
    }

    /// Forgets which master has which slots: it may have changed.
    pub fn forget_slots(&self) {
        let mut slots = self.slots();
        slots.ranges.clear();
        slots.moved.clear();
    }

    /// A connection to a server, used before or new.
    pub fn link(&self, server: &ConnectionAddr) -> RedisResult<Link> {
        let mut idle = self.idle();
        let found = idle.iter().rposition(|link| link.server == *server);
        let found = found.map(|position| idle.swap_remove(position));
        drop(idle);
        match found {
            Some(link) => Ok(link),
            None => Link::open(self.connect(server)?, server.clone()),
        }
    }

    /// Whether the server that has a slot has answered the last request, as far as is known.
    pub fn is_connected(&self, slot: u16) -> bool {
        let server = self.known_master(slot);
        server.is_some_and(|server| self.idle().iter().any(|link| link.server == server))
    }

    /// Keeps a connection that answered for the next request.
    pub fn give_back(&self, link: Link) {
        let mut idle = self.idle();
        if idle.iter().filter(|other| other.server == link.server).count() < IDLE_MAX {
            idle.push(link);
        }
    }

    /// A connection to a server was lost: others are likely to be, too, for the same reason.
    pub fn lost(&self, server: &ConnectionAddr) {
        self.idle().retain(|link| link.server != *server);
        self.forget_slots();
    }

    /// A connection of its own.
    pub fn connect(&self, server: &ConnectionAddr) -> RedisResult<Connection> {
        let connection = self.client(server)?.get_connection_with_timeout(self.timeout)?;
        connection.set_read_timeout(Some(self.timeout))?;
        connection.set_write_timeout(Some(self.timeout))?;
        Ok(connection)
    }

    fn client(&self, server: &ConnectionAddr) -> RedisResult<Client> {
        Client::open(self.info.clone().set_addr(server.clone()))
    }

    fn slots(&self) -> MutexGuard<'_, Slots> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Link>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Slots {
    fn master(&self, slot: u16) -> Option<ConnectionAddr> {
        if let Some((_, master)) = self.moved.iter().find(|(moved, _)| *moved == slot) {
            return Some(master.clone());
        }
        let of_slot = |(first, last, _): &&(u16, u16, _)| (*first..=*last).contains(&slot);
        self.ranges.iter().find(of_slot).map(|(_, _, master)| master.clone())
    }
}

/// Another server of the cluster that one belongs to; without a host, on the same one.
fn at(known: &ConnectionAddr, host: &str, port: u16) -> ConnectionAddr {
    let host = |same: &str| if host.is_empty() { same.to_owned() } else { host.to_owned() };
    match known {
        ConnectionAddr::TcpTls { host: same, insecure, tls_params, .. } => ConnectionAddr::TcpTls {
            host: host(same),
            port,
            insecure: *insecure,
            tls_params: tls_params.clone(),
        },
        ConnectionAddr::Tcp(same, _) => ConnectionAddr::Tcp(host(same), port),
        other => other.clone(),
    }
}

/// The slot of a cluster that keys with a hash tag are in: CRC-16/XMODEM of the tag, by the cluster
/// specification of Redis.
pub(super) fn slot_of(tag: &str) -> u16 {
    let crc = tag.bytes().fold(0, |crc: u16, byte| {
        (0..8).fold(crc ^ u16::from(byte) << 8, |crc, _| match crc & 0x8000 {
            0 => crc << 1,
            _ => crc << 1 ^ 0x1021,
        })
    });
    crc % SLOTS
}

#[cfg(test)]
mod tests {
    use super::slot_of;

    #[test]
    fn slots_are_those_of_the_specification() {
        // `redis-cli cluster keyslot KEY` says the same.
        assert_eq!(slot_of("123456789"), 0x31c3);
        assert_eq!(slot_of("foo"), 12_182);
        assert_eq!(slot_of(""), 0);
    }
}
