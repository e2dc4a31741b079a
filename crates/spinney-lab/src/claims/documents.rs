//! What is promised of documents: against the best peer of the run, in the same row, so at the same level
//! and with the same count of commits.

use super::{Judge, Side};
use crate::system::Kind;

/// Rows, and at least how many times as fast as the best peer.
const BEST: [(&str, f64); 8] = [
    ("person set whole", 1.0),
    ("person set whole by 1 000", 1.0),
    ("person set whole in one commit", 1.0),
    ("person get whole", 1.0),
    ("hello set whole", 0.5),
    ("hello set whole by 1 000", 0.5),
    ("hello set whole in one commit", 0.5),
    ("hello get whole", 0.5),
];
/// Rows, and at least how many times as fast as GT.M.
const GTM: [(&str, f64); 2] =
    [("person get (nested next)", 3.0), ("person get_q (leaf cursor)", 10.0)];

impl Judge<'_> {
    pub(super) fn documents(&mut self) {
        for size in self.report.sizes() {
            for (row, bound) in BEST {
                for level in ["", " [process]", " [none]"] {
                    let test = format!("{row}{level}");
                    let Some(own) = self.own(&test, size) else { continue };
                    let best = self
                        .report
                        .systems(Kind::Peer)
                        .filter_map(|peer| Some((self.time(peer, &test, size)?, peer)))
                        .min_by(|a, b| a.0.total_cmp(&b.0));
                    let Some((best, peer)) = best else { continue };
                    let promise = format!("speed of {test} against the best peer, {peer}");
                    self.ratio(promise, size, Some([best, own]), Side::AtLeast, bound);
                }
            }
            for (row, bound) in GTM {
                let parts = super::both(self.time("gtm", row, size), self.own(row, size));
                let promise = format!("speed of {row} against GT.M");
                self.ratio(promise, size, parts, Side::AtLeast, bound);
            }
        }
    }
}
