//! Whose handle of a store it is, and what that one may do in a state.

use std::sync::Arc;

use spinney_core::access::Permissions;
use spinney_core::view::View;
use spinney_core::{Error, Result};

use super::rules::AccessRules;
use super::{NAME, Principal, RULES};
use crate::tree_cache::{TreeCache, value_at};

/// A principal, with what the rules that were read last let do.
pub(crate) struct Seat {
    pub principal: Principal,
    known: TreeCache<Option<Arc<Permissions>>>,
}

impl Seat {
    pub fn new(principal: Principal) -> Seat {
        Seat { principal, known: TreeCache::default() }
    }

    /// What the rules of a state let do; `None` where there are none.
    ///
    /// # Errors
    /// Those of reading; `Corrupted` when a rule does not read.
    pub fn permissions(&self, view: &View<'_>) -> Result<Option<Arc<Permissions>>> {
        let read = |view: &View<'_>| {
            let rules = read(view)?;
            Ok((!rules.0.is_empty()).then(|| Arc::new(rules.permissions(&self.principal))))
        };
        let known = self.known.at(view, &view.root()?, NAME, read)?;
        Ok(known.as_ref().clone())
    }
}

/// The rules of a state.
///
/// # Errors
/// Those of reading; `Corrupted` when one does not read.
pub(crate) fn read(view: &View<'_>) -> Result<AccessRules> {
    let Some(value) = value_at(view, RULES)? else { return Ok(AccessRules::default()) };
    AccessRules::of_value(&value).map_err(|error| Error::corrupted(format!("`{RULES}`: {error}")))
}
