//! Which store is meant and how it is opened: the options that all verbs share.
//!
//! Reading never makes a store; only the verbs that put data into one do.

use clap::{Args, ValueEnum};
use spinney::backends::json::Take;
use spinney::datastores::Datastores;
use spinney::{Durability, Error, ErrorKind, OpenOptions, OwnerId, Result, Snapshot, Store};

use crate::{message, principal};

/// The environment variable that says which store is meant.
pub const STORE: &str = "SPINNEY_STORE";

/// The one that says whose locks are those of the command.
pub const OWNER: &str = "SPINNEY_OWNER";

/// Options before or after any verb.
#[derive(Args)]
pub struct Global {
    /// The store: a directory, `lmdb:DIR`, `fjall:DIR`, `json:FILE`, `redis://HOST`,
    /// `redis+cluster://HOST,HOST`, `mongodb://HOST` (in a build that has it) or `memory:`
    #[arg(
        long,
        global = true,
        env = STORE,
        hide_env_values = true,
        default_value = "spinney-store",
        value_name = "URL"
    )]
    pub store: String,

    /// Do it as this user, whom the access rules bind; for who administers the store
    #[arg(long = "as", global = true, value_name = "USER")]
    pub as_user: Option<String>,

    /// Say nothing on stderr but errors
    #[arg(long, short, global = true)]
    pub quiet: bool,
}

/// The options of all verbs that write.
#[derive(Args, Default)]
pub struct Write {
    /// What the change survives when the command returns
    #[arg(long, value_enum, default_value_t, value_name = "LEVEL")]
    pub durability: Level,

    /// Who makes the change, for the log
    #[arg(long, env = "SPINNEY_AUTHOR", value_name = "NAME", hide_env_values = true)]
    pub author: Option<String>,

    /// Why the change is made, for the log
    #[arg(long, short, value_name = "TEXT")]
    pub message: Option<String>,

    /// Change what this owner has locked, too; `spinney lock` says it to its command
    #[arg(long, env = OWNER, value_name = "ID", hide = true)]
    pub owner: Option<OwnerId>,

    /// Which one to take of a `json:` file that was edited and commits that it lacks
    #[arg(long, value_enum, value_name = "WHICH")]
    pub take: Option<Which>,
}

/// What to do with a JSON file that was edited while its journal has commits that it lacks.
#[derive(Clone, Copy, ValueEnum)]
pub enum Which {
    /// The file; the journal is kept under another name
    File,
    /// The journal, too: its commits are made again on the file
    Journal,
}

/// What a change survives.
#[derive(Clone, Copy, Default, ValueEnum)]
pub enum Level {
    /// Power loss
    #[default]
    Durable,
    /// The end of the command; power loss 50 ms later
    Process,
    /// Nothing for sure: it is written out as the command ends
    None,
}

/// Whether no commit waits that was not confirmed in time. A store without datastores has none, and of
/// a damaged one the verb tells what it cannot read.
fn is_settled(datastores: Result<Datastores>) -> Result<()> {
    match datastores {
        Err(error) if !matches!(error.kind(), ErrorKind::Unsupported | ErrorKind::Corrupted) => {
            Err(error)
        }
        _ => Ok(()),
    }
}

/// The store, without a commit that was not confirmed in time.
fn settled(store: Store) -> Result<Store> {
    is_settled(store.datastores()).map(|()| store)
}

/// How a store is opened that exists and is only read.
pub fn to_read() -> OpenOptions {
    OpenOptions::new().create(false).read_only(true)
}

/// The user who runs the command.
fn user() -> String {
    ["USER", "LOGNAME"].into_iter().find_map(|name| std::env::var(name).ok()).unwrap_or_default()
}

impl Global {
    /// The newest state of a store that exists.
    pub fn read(&self) -> Result<Snapshot> {
        self.open_to_read()?.read()
    }

    /// As [`Global::read`], to find out what is damaged. Where that is the access rules, nobody is kept from
    /// anything: who may read the files may do this.
    pub fn read_damaged(&self) -> Result<Snapshot> {
        match self.read() {
            Err(error) if error.kind() == ErrorKind::Corrupted => {
                to_read().open(&self.store)?.read()
            }
            read => read,
        }
    }

    /// A store that exists, only to read; its medium may be read-only.
    pub fn open_to_read(&self) -> Result<Store> {
        let store = to_read().open(&self.store)?;
        // A commit that was not confirmed in time is rolled back before anybody reads what it did.
        match store.datastores() {
            Err(error) if error.kind() == ErrorKind::ReadOnly => {
                drop(store);
                match self.open_to_change(&Write::default()) {
                    Err(error) if error.kind() == ErrorKind::ReadOnly => self.note(
                        "a commit that was not confirmed in time is in force, since the store cannot be written",
                    ),
                    opened => drop(opened?),
                }
                to_read().open(&self.store)
            }
            result => is_settled(result).map(|()| store),
        }
        .and_then(|store| self.seated(store))
    }

    /// A store as the user has it who runs the command, or in whose place it is run.
    pub fn seated(&self, store: Store) -> Result<Store> {
        let store = store.as_principal(principal::of_process()?);
        let Some(user) = &self.as_user else { return Ok(store) };
        match store.administers()? {
            true => Ok(store.as_principal(principal::named(user)?)),
            false => Err(Error::new(
                ErrorKind::Denied,
                "only who administers the root may take the place of another user; leave `--as` out",
            )),
        }
    }

    /// A store that exists, to change what it holds.
    pub fn open_to_change(&self, write: &Write) -> Result<Store> {
        self.seated(settled(write.options().create(false).open(&self.store)?)?)
    }

    /// A store to put data into, made if there is none.
    pub fn open_or_create(&self, write: &Write) -> Result<Store> {
        self.seated(settled(write.options().open(&self.store)?)?)
    }

    /// Tells who makes the node `/` that it is not the root, for which it is often taken.
    pub fn note_new_root(&self, store: &Store, path: &str) -> Result<()> {
        if path == "/" && store.read()?.kind(path)?.is_none() {
            self.note(
                "`/` is made, the member with an empty name; the root is the empty path: `\"\"`",
            );
        }
        Ok(())
    }

    /// Tells the user something that is not data.
    pub fn note(&self, text: &str) {
        if !self.quiet {
            message::print_note(text);
        }
    }
}

impl Write {
    /// How the library opens a store for it.
    pub fn options(&self) -> OpenOptions {
        let take = self.take.map(|which| match which {
            Which::File => Take::File,
            Which::Journal => Take::Journal,
        });
        OpenOptions::new()
            .durability(self.level())
            .take(take)
            .owner(self.owner)
            .author(self.author.clone().unwrap_or_else(user))
            .message(self.message.clone().unwrap_or_default())
    }

    /// As the library calls it.
    pub fn level(&self) -> Durability {
        match self.durability {
            Level::Durable => Durability::Durable,
            Level::Process => Durability::Process,
            Level::None => Durability::None,
        }
    }
}
