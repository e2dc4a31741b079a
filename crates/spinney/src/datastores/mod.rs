//! Configuration as network devices keep it (NMDA, RFC 8342): `startup`, `running`, `candidate`,
//! `operational` and `factory-default`, each a tree, read as stacks of layers.
//!
//! `candidate` is a layer of changes over `running`: it shows `running` until it is first changed, and
//! from then on `running` as it was at that moment. Who has it locked meanwhile has it alone, and it goes with the lock. `operational` is `running` under what connections
//! have pushed and what programs provide. Nothing here reads or writes pages: a datastore is what [`crate::layers`] make of trees.

mod candidate;
mod confirm;
mod notes;
mod provide;
mod push;

use std::fmt;
use std::str::FromStr;

use spinney_core::attempts::try_again;
use spinney_core::backend::Revision;
use spinney_core::{Error, Path, Result};

use crate::access::Right;
use crate::feed::{Bookmark, Changes};
use crate::layers::{Layer, LayerEdit, Stack};
use crate::snapshot::Snapshot;
use crate::store::{Committed, Durability, Store};
use crate::subscribers::{Subscriber, SubscriberOptions, Subscription};

pub use candidate::{CandidateCommit, CandidateState};
pub(crate) use candidate::{carry_candidate, carry_imported};
pub use confirm::Unconfirmed;
pub(crate) use confirm::{Timer, first_needed};
pub(crate) use notes::{NAME, UNCONFIRMED_NAME};
pub use notes::{TREE, UNCONFIRMED_TREE};
pub(crate) use provide::Providers;
pub use provide::Provision;
#[cfg(feature = "schema")]
pub(crate) use push::finding_operational;
pub(crate) use push::{PUSHED_NAME, is_pushed};
pub use push::{PUSHED_TREE, Pushed};

/// One of the datastores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Datastore {
    /// What is loaded at boot.
    Startup,
    /// What is in force.
    Running,
    /// What is being prepared.
    Candidate,
    /// What is in use: `running`, and state that connections push.
    Operational,
    /// What a reset goes back to.
    FactoryDefault,
}

impl Datastore {
    /// All of them.
    pub const ALL: [Datastore; 5] = [
        Datastore::Startup,
        Datastore::Running,
        Datastore::Candidate,
        Datastore::Operational,
        Datastore::FactoryDefault,
    ];

    /// Its name, which is that of its tree.
    pub fn name(self) -> &'static str {
        match self {
            Datastore::Startup => "startup",
            Datastore::Running => "running",
            Datastore::Candidate => "candidate",
            Datastore::Operational => "operational",
            Datastore::FactoryDefault => "factory-default",
        }
    }

    /// The path of its tree.
    pub fn path(self) -> Path {
        Path::root().child(self.name())
    }
}

impl fmt::Display for Datastore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Datastore {
    type Err = Error;

    fn from_str(text: &str) -> Result<Datastore> {
        Datastore::ALL.into_iter().find(|datastore| datastore.name() == text).ok_or_else(|| {
            let names = Datastore::ALL.map(Datastore::name).join(", ");
            Error::invalid_input(format!("`{text}` is no datastore; there are {names}"))
        })
    }
}

/// The datastores of a store. Each is read as far as its reader may, by the [rules](crate::access) of its tree; to
/// change them, and to be told of the candidate and of what waits for its confirmation, takes `read` of the whole
/// store, and is else `Denied`.
#[derive(Clone)]
pub struct Datastores {
    store: Store,
    durability: Option<Durability>,
}

impl Store {
    /// The datastores of this store.
    ///
    /// A confirmed commit whose time is up is rolled back first, whoever made it. From now on a thread of the store
    /// looks, every half second, whether somebody has made another, and rolls that back when its time is up.
    ///
    /// # Errors
    /// `Unsupported` where a store is one tree, or keeps its trees apart; those of rolling back.
    pub fn datastores(&self) -> Result<Datastores> {
        if !self.has_several_trees() {
            return Err(Error::unsupported(
                "datastores are several trees that change together, which this store does not have; use \
                 `lmdb:`, `fjall:`, `redis://` or `mongodb://`",
            ));
        }
        let of = |store| Datastores { store, durability: None };
        of(self.unrestricted()).watch_confirm()?;
        Ok(of(self.clone()))
    }
}

impl Datastores {
    /// The same, with a durability of its own for what is written.
    #[must_use]
    pub fn with_durability(mut self, durability: Durability) -> Datastores {
        self.durability = Some(durability);
        self
    }

    /// The store that they are in.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// The newest state of a datastore; paths begin at its root.
    ///
    /// # Errors
    /// `Conflict` for a candidate whose base is not kept any more; as [`Store::read`].
    pub fn read(&self, datastore: Datastore) -> Result<Snapshot> {
        if datastore != Datastore::Candidate {
            return self.stack(datastore)?.read();
        }
        try_again(|_| {
            let noted = self.noted(&self.store.read()?)?;
            let state = self.candidate_over(noted)?.read();
            let state = state.map_err(|error| candidate::base_is_gone(error, noted.base()));
            // Between the two somebody may have begun or ended the candidate.
            match self.noted(&self.store.read()?)? == noted {
                true => state.map(Some),
                false => Ok(None),
            }
        })
    }

    /// The layers that a datastore is made of, the highest first.
    ///
    /// # Errors
    /// As [`Datastores::read`].
    pub fn stack(&self, datastore: Datastore) -> Result<Stack> {
        match datastore {
            Datastore::Candidate => self.candidate_stack(),
            Datastore::Operational => self.operational_stack(),
            _ => Stack::new(vec![self.layer(datastore)?]),
        }
    }

    /// The commits after a revision that change what is at a path of a datastore, those to come included.
    ///
    /// # Errors
    /// `Unsupported` for the candidate, which rests on a state of the past; as [`Stack::changes`].
    pub fn changes(&self, datastore: Datastore, path: &str, since: Revision) -> Result<Changes> {
        self.followed(datastore)?.changes(path, since)
    }

    /// As [`Datastores::changes`], from where another feed was.
    ///
    /// # Errors
    /// As [`Datastores::changes`].
    pub fn changes_from(
        &self,
        datastore: Datastore,
        path: &str,
        bookmark: &Bookmark,
    ) -> Result<Changes> {
        self.followed(datastore)?.changes_from(path, bookmark)
    }

    /// Has a subscriber asked before each commit that changes what is at a path of a datastore, or below it.
    ///
    /// # Errors
    /// As [`Datastores::changes`] and [`Stack::before_commit`].
    pub fn before_commit(
        &self,
        datastore: Datastore,
        path: &str,
        options: SubscriberOptions,
        subscriber: impl Subscriber + 'static,
    ) -> Result<Subscription> {
        self.followed(datastore)?.before_commit(path, options, subscriber)
    }

    /// The layers of a datastore, to be followed from commit to commit.
    ///
    /// # Errors
    /// `Unsupported` for the candidate; as [`Datastores::stack`].
    pub fn followed(&self, datastore: Datastore) -> Result<Stack> {
        match datastore {
            Datastore::Candidate => Err(Error::unsupported(
                "the candidate rests on a state of the past, and is not followed; follow its changes, at \
                 `/candidate` of the store, and `running`",
            )),
            _ => self.stack(datastore),
        }
    }

    fn layer(&self, datastore: Datastore) -> Result<Layer> {
        Layer::new(datastore.name(), &self.store, &datastore.path())
    }

    /// Changes a datastore: all of it or, on any error, nothing.
    ///
    /// # Errors
    /// Those of the closure; `Invalid` when the schema that is attached to the datastore's tree does not
    /// allow it; as [`Datastores::read`] and [`Store::write`].
    pub fn edit<T>(
        &self,
        datastore: Datastore,
        mut edit: impl FnMut(&mut LayerEdit<'_, '_>) -> Result<T>,
    ) -> Result<Committed<T>> {
        if datastore == Datastore::Candidate {
            return self.edit_candidate(edit);
        }
        let stack = self.stack(datastore)?;
        self.write(|transaction| edit(&mut stack.edit(datastore.name(), transaction)?))
    }

    /// Makes a datastore what another one is, as one commit. `candidate` from `running` is a reset: it
    /// shows `running` again.
    ///
    /// # Errors
    /// `InvalidInput` to `operational`, or when both are one; as [`Datastores::edit`].
    ///
    /// # Complexity
    /// That of what is copied.
    pub fn copy(&self, from: Datastore, to: Datastore) -> Result<Committed<()>> {
        let at = |error: Error| error.at(format_args!("copy {from} to {to}"));
        if from == to || to == Datastore::Operational {
            let text = "write two datastores, of which the second can be configured";
            return Err(at(Error::invalid_input(text)));
        }
        let copied = match (from, to) {
            (Datastore::Running, Datastore::Candidate) => self.discard(),
            (Datastore::Candidate | Datastore::Operational, _) => self.replace_by_state(from, to),
            _ => self.write(|transaction| self.copy_tree(transaction, from, to)),
        };
        copied.map_err(at)
    }

    /// Makes `startup` and `running` what `factory-default` is, and discards the candidate. A commit that waits for
    /// its confirmation does so no longer: nothing of before comes back.
    ///
    /// # Errors
    /// As [`Datastores::copy`].
    pub fn reset_to_factory_default(&self) -> Result<Committed<()>> {
        self.write(|transaction| {
            self.copy_tree(transaction, Datastore::FactoryDefault, Datastore::Startup)?;
            self.copy_tree(transaction, Datastore::FactoryDefault, Datastore::Running)?;
            notes::set_confirm(transaction, None)?;
            self.forget_candidate(transaction)
        })
    }

    fn copy_tree(
        &self,
        transaction: &mut crate::Transaction<'_>,
        from: Datastore,
        to: Datastore,
    ) -> Result<()> {
        match transaction.exists(&from.path())? {
            true => transaction.copy(&from.path(), &to.path())?,
            false => drop(transaction.remove(&to.path())?),
        }
        match to {
            Datastore::Candidate => self.begin_replacement(transaction),
            _ => Ok(()),
        }
    }

    /// Refuses what is about all of them to whom may not read everything.
    fn require_all(&self) -> Result<()> {
        self.store.require("", Right::Read)
    }

    fn write<T>(
        &self,
        edit: impl FnMut(&mut crate::Transaction<'_>) -> Result<T>,
    ) -> Result<Committed<T>> {
        self.require_all()?;
        match self.durability {
            Some(durability) => self.store.write_with(durability, edit),
            None => self.store.write(edit),
        }
    }

    /// Makes a datastore what the state of a stack is.
    fn replace_by_state(&self, from: Datastore, to: Datastore) -> Result<Committed<()>> {
        self.write(|transaction| {
            let state = self.read(from)?;
            let path = to.path();
            match state.kind("")? {
                None => drop(transaction.remove(&path)?),
                Some(_) => transaction.set_with(&path, crate::Existing::Any, |visitor| {
                    state.visit("", visitor).map(drop)
                })?,
            }
            match to {
                Datastore::Candidate => self.begin_replacement(transaction),
                _ => Ok(()),
            }
        })
    }
}
