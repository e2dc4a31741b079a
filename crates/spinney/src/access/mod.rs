//! Access rules: who may see, change and administer what.
//!
//! The rules of a store are data, in the tree [`TREE`]: a commit changes them, and other processes see
//! them. `rules` reads them, `seat` knows what they mean for a principal. What a principal sees is the
//! business of [`spinney_core::access`]; a handle that [`Store::as_principal`] gives reads and writes
//! through it. Any other handle is the store's owner's, and may do everything.

mod guard;
mod principal;
mod rules;
mod seat;
mod seen;

use spinney_core::{Error, ErrorKind, Result, path};

use crate::Transaction;
use crate::store::{Committed, Store};

pub(crate) use guard::Guard;
pub use principal::Principal;
pub use rules::{AccessRule, AccessRules, Decision, RULES_MAX, Subject};
pub(crate) use seat::{Seat, read};
pub(crate) use seen::Sight;
pub use spinney_core::access::{Effect, Permissions, Right, Rule, Standing};

/// The tree that holds the access rules of a store.
pub const TREE: &str = "/.access";

/// The name of [`TREE`].
pub(crate) const NAME: &str = ".access";

/// Where in it they are.
const RULES: &str = "/.access/rules";

impl Store {
    /// The access rules, in their order; none where everyone may do everything.
    ///
    /// # Errors
    /// `Denied` to who does not administer the root; those of reading.
    pub fn access_rules(&self) -> Result<AccessRules> {
        self.require_administration()?;
        match self.has_several_trees() {
            true => read(&self.unrestricted().read()?.view()),
            false => Ok(AccessRules::default()),
        }
    }

    /// Replaces the access rules. With none, everyone may do everything.
    ///
    /// # Errors
    /// `InvalidInput` when nobody would administer the root any more, unless it is `forced`; `LimitExceeded`
    /// above [`RULES_MAX`]; `Denied` to who does not administer the root; `Unsupported` in a `json:` file and
    /// where trees are kept apart; those of [`Store::write`].
    pub fn set_access_rules(&self, rules: &AccessRules, forced: bool) -> Result<Committed<()>> {
        self.require_administration()?;
        if !self.has_several_trees() {
            return Err(Error::unsupported(
                "access rules are kept in a tree beside others, which this store does not have; use `lmdb:`, \
                 `fjall:`, `redis://` or `mongodb://`",
            ));
        }
        if !forced && !rules.leaves_someone() {
            return Err(Error::invalid_input(
                "nobody would administer the root any more, so nobody could change these rules; give someone \
                 `admin` with the path `\"\"`, before what denies it, or force it",
            ));
        }
        // They read back as they are written, whoever made them.
        let value = rules.to_value();
        AccessRules::of_value(&value)?;
        let set = |transaction: &mut Transaction<'_>| match rules.0.is_empty() {
            true => transaction.remove(TREE).map(drop),
            false => transaction.set(RULES, &value),
        };
        self.unrestricted().write(set)
    }

    /// What decides about a right of a principal at a path.
    ///
    /// # Errors
    /// As [`Store::access_rules`]; `InvalidInput` for a malformed path.
    pub fn test_access(&self, principal: &Principal, path: &str, right: Right) -> Result<Decision> {
        let rules = self.access_rules()?;
        let state = self.unrestricted().read()?;
        rules.decide(principal, path, right, |list| state.is_list(list))
    }

    /// Whether this handle's principal administers the root, and so the rules, whatever they say of what is
    /// below.
    ///
    /// # Errors
    /// Those of reading.
    pub fn administers(&self) -> Result<bool> {
        match (self.seat(), self.forest()) {
            (Some(_), None) => self.read()?.permits_one("", Right::Admin),
            _ => Ok(true),
        }
    }

    fn require_administration(&self) -> Result<()> {
        match self.administers()? {
            true => Ok(()),
            false => Err(Error::new(
                ErrorKind::Denied,
                "access rules are for who has the right `admin` at the root",
            )),
        }
    }

    /// Refuses what this handle's principal has not the right to do at a path and everywhere below it.
    pub(crate) fn require(&self, place: &str, right: Right) -> Result<()> {
        match self.permits(place, right)? {
            true => Ok(()),
            false => Err(Error::new(
                ErrorKind::Denied,
                format!(
                    "you need the right `{right}` at {} and everywhere below it; `access test` names the rule",
                    path::Display(place)
                ),
            )),
        }
    }

    /// Whether this handle's principal has a right at a path and everywhere below it.
    ///
    /// # Errors
    /// `InvalidInput` for a malformed path; those of reading.
    pub fn permits(&self, place: &str, right: Right) -> Result<bool> {
        path::check(place)?;
        if self.seat().is_none() || self.forest().is_some() {
            return Ok(true);
        }
        self.read()?.permits(place, right)
    }
}
