//! Rows that peers win, apart by what stands between this process and both sides.

use std::collections::{HashMap, HashSet};

use super::Report;
use crate::amount::factor;
use crate::record::{Record, Status};
use crate::statistics::Ratio;
use crate::system::{Kind, Transport};

/// What the times of a backend and a peer hold besides the work. A backend that is asked is not ranked against
/// a peer that is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Standing {
    /// Both are called in this process.
    Called,
    /// The backend is called; the time of the peer holds the way to another process.
    AskedPeer,
    /// The times of both hold it.
    Asked,
}

impl Standing {
    /// All of them; the first says most of the systems themselves.
    pub const ALL: [Standing; 3] = [Standing::Called, Standing::AskedPeer, Standing::Asked];

    fn of(backend: Transport, peer: Transport) -> Option<Standing> {
        match (backend.is_apart(), peer.is_apart()) {
            (false, false) => Some(Standing::Called),
            (false, true) => Some(Standing::AskedPeer),
            (true, true) => Some(Standing::Asked),
            (true, false) => None,
        }
    }

    /// What it is, in words.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Standing::Called => "Backend and peer in this process",
            Standing::AskedPeer => "Backend in this process, peer behind a pipe or a socket",
            Standing::Asked => "Backend behind a socket, peer behind a pipe or a socket",
        }
    }
}

/// A row in which a peer was faster than a backend of spinney.
#[derive(Clone, Debug)]
pub struct Loss {
    /// The row.
    pub test: String,
    /// N.
    pub size: usize,
    /// The backend that lost.
    pub backend: String,
    /// The peer that won.
    pub peer: String,
    /// What their times hold.
    pub standing: Standing,
    /// Time of the backend by time of the peer, above 1.
    pub ratio: Ratio,
    /// Whether others used the machine.
    pub is_noisy: bool,
}

/// A row that a backend lost.
#[derive(Clone, Debug)]
pub struct Lost {
    /// Against the fastest peer.
    pub worst: Loss,
    /// How many other peers won it.
    pub others: usize,
}

impl Lost {
    /// How much slower than that peer.
    pub(crate) fn slower_by(&self) -> String {
        let noisy = if self.worst.is_noisy { "~" } else { "" };
        format!("{noisy}{}", factor(self.worst.ratio.value))
    }

    /// The fastest peer, and how many more won.
    pub(crate) fn peers(&self) -> String {
        match self.others {
            0 => self.worst.peer.clone(),
            others => format!("{} and {others} more", self.worst.peer),
        }
    }

    /// How many rows of backends are among `all`: some are lost at two standings.
    pub fn rows(all: &[Lost]) -> usize {
        let names = all.iter().map(|Lost { worst, .. }| (&worst.test, worst.size, &worst.backend));
        names.collect::<HashSet<(&String, usize, &String)>>().len()
    }
}

impl Report {
    /// Rows in which a peer beat a backend, the worst first; ties are none.
    pub fn losses(&self) -> Vec<Loss> {
        let mut losses: Vec<Loss> = Vec::new();
        for (backend, peer, standing) in self.pairs() {
            let ratio = peer.advantage(backend, self.context.order_seed);
            losses.extend(ratio.filter(|ratio| ratio.low > 1.0).map(|ratio| Loss {
                test: peer.test.clone(),
                size: peer.size,
                backend: backend.system.clone(),
                peer: peer.system.clone(),
                standing,
                ratio,
                is_noisy: [backend, peer].iter().any(|it| it.status == Status::Noisy),
            }));
        }
        losses.sort_by(|a, b| b.ratio.value.total_cmp(&a.ratio.value));
        losses
    }

    /// The losses, a row of a backend each: those of the first standing first, and of each the worst first.
    pub fn lost(&self) -> Vec<Lost> {
        let mut rows: Vec<Lost> = Vec::new();
        let mut places = HashMap::new();
        for loss in self.losses() {
            let row = (loss.standing, loss.test.clone(), loss.size, loss.backend.clone());
            match places.get(&row) {
                Some(&place) => {
                    let row: &mut Lost = &mut rows[place];
                    row.others += 1;
                }
                None => {
                    places.insert(row, rows.len());
                    rows.push(Lost { worst: loss, others: 0 });
                }
            }
        }
        rows.sort_by_key(|row| row.worst.standing);
        rows
    }

    /// How many rows of backends were measured beside peers of a standing, or of any.
    pub fn compared(&self, standing: Option<Standing>) -> usize {
        let pairs = self.pairs().filter(|(.., its)| standing.is_none_or(|wanted| *its == wanted));
        let rows: HashSet<(&str, usize, &str)> =
            pairs.map(|(backend, ..)| (&*backend.test, backend.size, &*backend.system)).collect();
        rows.len()
    }

    /// What was measured of a row on a backend and on a peer with which it is ranked.
    fn pairs(&self) -> impl Iterator<Item = (&Record, &Record, Standing)> {
        let mut backends: HashMap<(&str, usize), Vec<&Record>> = HashMap::new();
        for backend in self.of_kind(Kind::Backend) {
            backends.entry((&backend.test, backend.size)).or_default().push(backend);
        }
        self.of_kind(Kind::Peer).flat_map(move |peer| {
            let of_row = backends.get(&(&*peer.test, peer.size)).cloned().unwrap_or_default();
            of_row.into_iter().filter_map(move |backend| {
                Some((backend, peer, Standing::of(backend.transport, peer.transport)?))
            })
        })
    }

    fn of_kind(&self, kind: Kind) -> impl Iterator<Item = &Record> {
        let records = self.records.iter();
        records.filter(move |record| record.kind == kind && record.status.has_number())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::sample;

    /// A row on systems with these times.
    fn report(systems: &[(&str, Kind, Transport, f64)]) -> Report {
        let (record, context) = sample();
        let lines = systems.iter().map(|&(system, kind, transport, us)| {
            let samples = vec![us, us * 1.01, us * 1.02];
            let system = system.to_owned();
            let record = Record { system, kind, transport, samples, ..record.clone() };
            format!("{}\n", record.to_json(&context))
        });
        Report::read(&lines.collect::<String>()).expect("records").remove(0)
    }

    #[test]
    fn losses_stand_apart_by_what_lies_between_and_a_row_stands_once_in_each() {
        use {Kind::*, Transport::*};
        let report = report(&[
            ("lmdb", Backend, Embedded, 100.0),
            ("redis", Backend, Socket, 1_000.0),
            ("sqlite", Peer, Embedded, 50.0),
            ("redb", Peer, Embedded, 20.0),
            ("rocksdb", Peer, Pipe, 80.0),
            ("redis-direct", Peer, Socket, 500.0),
        ]);
        let shown = |row: &Lost| (row.worst.standing, row.worst.backend.clone(), row.peers());
        let shown: Vec<_> = report.lost().iter().map(shown).collect();
        assert_eq!(
            shown,
            [
                (Standing::Called, "lmdb".to_owned(), "redb and 1 more".to_owned()),
                (Standing::AskedPeer, "lmdb".to_owned(), "rocksdb".to_owned()),
                (Standing::Asked, "redis".to_owned(), "rocksdb and 1 more".to_owned()),
            ]
        );
        assert_eq!(Lost::rows(&report.lost()), 2, "one of each backend");
        assert_eq!(Standing::ALL.map(|standing| report.compared(Some(standing))), [1, 1, 1]);
        assert_eq!(report.compared(None), 2);
    }
}
