//! Where revisions end in a journal, until they are durable.

use std::collections::VecDeque;

use spinney_core::backend::Revision;

use super::Position;

/// The first revision of each record that may not be durable yet, and where the record ends, in order.
#[derive(Default)]
pub struct Ends(VecDeque<(Revision, Position)>);

impl Ends {
    /// What is read of others: nothing is known to be durable.
    pub fn of(revision: Revision, end: Position) -> Ends {
        Ends([(revision, end)].into())
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
