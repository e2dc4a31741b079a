//! Following a path through rules, with a look at the data only where it matters whether something is a
//! list.

use super::permissions::{Permissions, Standing};
use super::rules::Right;
use crate::error::Result;
use crate::path;

/// What may be done at the end of a path and on the way.
#[derive(Clone, Debug)]
pub struct Way {
    /// At the end.
    pub standing: Standing,
    /// How many bytes of the path lead to the last container on the way that may not be written; `None`
    /// when all may.
    pub fixed_len: Option<usize>,
    is_hidden: bool,
}

impl Way {
    /// Whether the end is in a list that is not shown, or whose elements are not. It tells of what is there.
    pub fn is_hidden(&self) -> bool {
        self.is_hidden
    }

    /// Whether something may be shown at the end.
    pub fn may_show(&self) -> bool {
        !self.is_hidden && self.standing.may_some(Right::Read)
    }

    /// Whether what is at the end is shown with everything below it.
    pub fn shows_all(&self) -> bool {
        !self.is_hidden && self.standing.may_all(Right::Read)
    }

    /// Whether a right is given at the end. It tells nothing of what is there that is not shown.
    pub fn may(&self, right: Right) -> bool {
        self.standing.may(right)
    }

    /// Whether a right is given at the end and everywhere below; likewise.
    pub fn may_all(&self, right: Right) -> bool {
        self.standing.may_all(right)
    }
}

impl Permissions {
    /// Follows a checked path. `is_list` tells whether what the beginning of it leads to is a list; it is
    /// asked only where a position would be judged otherwise than a key.
    ///
    /// # Errors
    /// Those of `is_list`.
    ///
    /// # Complexity
    /// That of the path.
    pub fn way(&self, path: &str, mut is_list: impl FnMut(&str) -> Result<bool>) -> Result<Way> {
        let mut way = Way { standing: self.root().clone(), fixed_len: None, is_hidden: false };
        let mut len = 0;
        for part in path::parts(path) {
            let above = &way.standing;
            if !above.may(Right::Write) {
                way.fixed_len = Some(len);
            }
            let segment = path::unescape(part);
            let mut next = self.member(above, &segment);
            let may_be_position = segment == "-" || path::position(&segment).is_some();
            if may_be_position && above.leads_on() && above.may_some(Right::Read) {
                let element = self.element(above);
                let is_shown = above.may(Right::Read) && element.may(Right::Read);
                let matters = !is_shown || self.names(above, &segment);
                if matters && !way.is_hidden && is_list(&path[..len])? {
                    // Of a list that is not shown nobody learns that it is one.
                    if above.may(Right::Read) {
                        next = element;
                    }
                    way.is_hidden |= !is_shown;
                }
            }
            way.standing = next;
            len += 1 + part.len();
        }
        Ok(way)
    }
}
