//! Where revisions end in a journal, until they are durable.

use std::collections::VecDeque;

use spinney_core::backend::Revision;

use super::Position;

/// The first revision of each record that may not be durable yet, and where the record ends, in order.
#[derive(Default)]
pub struct Ends(VecDeque<(Revision, Position)>);

impl Ends {
    /// Adds what was read of others, of which nothing is known to be durable. It goes with the record
    /// before it: to sync more than a revision needs does no harm.
    pub fn read(&mut self, first: Revision, end: Position) {
        match self.0.back_mut() {
            Some((_, last)) => *last = end,
            None => self.0.push_back((first, end)),
        }
    }

    /// Adds a record, and forgets those that end before `synced`.
    pub fn push(&mut self, first: Revision, end: Position, synced: Position) {
        while self.0.front().is_some_and(|(_, end)| *end <= synced) {
            self.0.pop_front();
        }
        self.0.push_back((first, end));
    }

    /// Forgets all records.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Up to where the journal must be durable so that a revision is; `None` when it is.
    pub fn end_of(&self, revision: Revision) -> Option<Position> {
        let count = self.0.partition_point(|(first, _)| *first <= revision);
        self.0.get(count.checked_sub(1)?).map(|(_, end)| *end)
    }

    /// The first revision behind what is synced.
    pub fn first_behind(&self, synced: Position) -> Option<Revision> {
        self.0.iter().find(|(_, end)| *end > synced).map(|(first, _)| *first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_of_others_leaves_own_revisions_to_be_synced() {
        let at = |offset| Position { generation: 1, offset };
        let mut ends = Ends::default();
        ends.push(5, at(80), at(0));
        ends.read(6, at(160));
        ends.push(8, at(240), at(0));
        assert_eq!([4, 5, 7, 8, 9].map(|revision| ends.end_of(revision)), {
            [None, Some(at(160)), Some(at(160)), Some(at(240)), Some(at(240))]
        });
        assert_eq!(ends.first_behind(at(160)), Some(8));
        ends.push(9, at(320), at(240));
        assert_eq!([5, 8].map(|revision| ends.end_of(revision)), [None, None]);
    }
}
