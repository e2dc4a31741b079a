//! One open system on which rows of the suite are done: where it works, what it may keep, and in which
//! state it stands.

use std::rc::Rc;

use spinney_core::Result;

use super::operate::{self, Standing};
use super::rows::{Access, Place, ROUNDS};
use super::{Documents, Operation, Row, document::State};
use crate::options::Rules;
use crate::record::Record;
use crate::statistics;
use crate::suite::{self, Outcome};
use crate::system::System;

/// An open system between its rows.
pub struct Bench {
    system: Box<dyn System>,
    documents: Rc<Documents>,
    standing: Standing,
    /// What it was told to keep.
    access: Option<Access>,
    place: Place,
    /// Whether commits are judged and told to subscribers, and to how many at present.
    told: Option<usize>,
    /// What an import reads.
    input: Rc<[u8]>,
    /// What an export fills.
    buffer: Vec<u8>,
}

impl Bench {
    /// An empty system, for which `rules` hold from now on.
    ///
    /// # Errors
    /// What the system reports.
    pub fn new(
        mut system: Box<dyn System>,
        documents: Rc<Documents>,
        rules: Rules,
    ) -> Result<Bench> {
        let told = match rules {
            Rules::None => None,
            Rules::Model => {
                system.judge()?;
                Some(0)
            }
        };
        Ok(Bench {
            system,
            documents,
            standing: Standing::Unknown,
            access: None,
            place: Place::Running,
            told,
            input: Rc::default(),
            buffer: Vec::new(),
        })
    }
}

impl suite::Bench for Bench {
    type Row = Row;

    fn allow(&mut self, row: &Row) -> Result<()> {
        if self.place != row.place {
            self.system.subscribe(0)?;
            self.told = self.told.map(|_| 0);
            self.standing = Standing::Unknown;
            self.system.move_to(row.place)?;
            self.place = row.place;
        }
        let subscribers = row.operation.subscribers();
        if self.told.is_some_and(|told| told != subscribers) {
            self.system.subscribe(subscribers)?;
            self.told = Some(subscribers);
        }
        if self.access != Some(row.access) {
            self.system.keep(row.access == Access::Kept)?;
            self.access = Some(row.access);
        }
        Ok(())
    }

    fn prepare(&mut self, row: &Row) -> Result<()> {
        let system = &mut *self.system;
        self.standing = operate::prepare(row, system, &self.documents, self.standing)?;
        Ok(())
    }

    fn arm(&mut self, row: &Row) -> Result<()> {
        // Only the import reads its input; for others making the text would be wasted.
        self.input = match row.operation {
            Operation::Import => self.documents.text(State::Items),
            _ => Rc::default(),
        };
        // What was put back was given to the subscribers, too.
        self.system.deliveries().map(drop)
    }

    fn perform(&mut self, row: &Row) -> Result<Outcome> {
        if row.operation.writes() {
            self.standing = Standing::After(row.operation);
        }
        let Bench { system, documents, input, buffer, .. } = self;
        operate::perform(row.operation, &mut **system, documents, input, buffer)
    }

    fn check(&mut self, row: &Row, outcome: &Outcome) -> Result<()> {
        operate::check(row, &mut *self.system, &self.documents, outcome)
    }

    fn verify(&mut self, row: &Row, outcome: &Outcome) -> Result<(String, bool)> {
        let Bench { system, documents, buffer, .. } = self;
        let (hash, is_expected) = operate::verify(row, &mut **system, documents, outcome, buffer)?;
        if !is_expected {
            self.standing = Standing::Unknown;
        }
        Ok((hash, is_expected))
    }

    fn forget(&mut self) {
        self.standing = Standing::Unknown;
    }

    fn describe(&self, row: &Row, outcome: &Outcome, record: &mut Record) {
        if let Outcome::Settled(Some(bytes)) = outcome {
            record.notes.push(format!("{bytes} B were reclaimed"));
        }
        if matches!(row.operation, Operation::InsertSeries(_))
            && let Some(slowest) = statistics::max(&record.singles)
        {
            record
                .notes
                .push(format!("p99 is that of one commit, of which the slowest took {slowest} us"));
        }
    }

    fn settle(&mut self) -> Result<()> {
        self.system.settle().map(drop)
    }

    fn processes(&self) -> Vec<u32> {
        self.system.processes()
    }

    fn memory_bytes(&self) -> Option<u64> {
        self.system.memory_bytes()
    }
}

impl suite::Row for Row {
    fn id(&self) -> &str {
        self.id
    }

    fn writes(&self) -> bool {
        self.operation.writes()
    }

    fn commits(&self) -> bool {
        self.operation.commits()
    }

    fn commits_of_try(&self, _size: usize) -> usize {
        match self.operation {
            Operation::InsertSeries(len) => len,
            Operation::TellSubscribers => 2 * ROUNDS,
            _ => 1,
        }
    }

    fn short(&self) -> Row {
        match self.operation {
            Operation::InsertSeries(len) => {
                Row { operation: Operation::InsertSeries(len.min(suite::SHORT)), ..*self }
            }
            _ => *self,
        }
    }

    fn ops(&self, size: usize) -> usize {
        self.operation.ops(size)
    }

    fn is_dagger(&self) -> bool {
        Row::is_dagger(self)
    }

    fn note(&self) -> Option<&'static str> {
        (self.operation == Operation::Reclaim).then_some("background work, not a commit")
    }
}
