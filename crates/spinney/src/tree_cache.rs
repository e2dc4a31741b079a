//! What is read of a reserved tree, kept for as long as the tree stays the same.

use std::sync::{Arc, Mutex, PoisonError};

use spinney_core::backend::Revision;
use spinney_core::layout::{head_key, head_revision};
use spinney_core::node::Node;
use spinney_core::value::ValueBuilder;
use spinney_core::view::{Slot, View};
use spinney_core::{Error, Key, Result, Value};

/// What was read last of a tree, with the revision that changed it last.
pub(crate) struct TreeCache<T> {
    known: Mutex<Option<(Revision, Arc<T>)>>,
}

impl<T> Default for TreeCache<T> {
    fn default() -> TreeCache<T> {
        TreeCache { known: Mutex::new(None) }
    }
}

impl<T: Default> TreeCache<T> {
    /// What `read` makes of the tree of a name in a committed state with this root; the default when there
    /// is none.
    ///
    /// # Errors
    /// Those of reading.
    pub fn at<'s>(
        &self,
        view: &View<'s>,
        root: &Slot<'s>,
        name: &str,
        read: impl FnOnce(&View<'s>) -> Result<T>,
    ) -> Result<Arc<T>> {
        let mut entry = root.clone();
        if !view.enter_key(&mut entry, &Key::new(name).encoded())? {
            return Ok(Arc::default());
        }
        let Node::Tree(tree) = entry.read()?.node else {
            return Err(Error::corrupted(format!("`/{name}` is not a tree")));
        };
        let changed = head_revision(view.snapshot.get(&head_key(tree))?.as_deref())?;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        match &*known {
            Some((revision, content)) if *revision == changed => Ok(Arc::clone(content)),
            _ => {
                let content = Arc::new(read(view)?);
                *known = Some((changed, Arc::clone(&content)));
                Ok(content)
            }
        }
    }
}

/// The value at a path from the store's root; `None` when there is none.
///
/// # Errors
/// Those of reading.
pub(crate) fn value_at(view: &View<'_>, path: &str) -> Result<Option<Value>> {
    let Some(slot) = view.resolve(path)? else { return Ok(None) };
    let mut builder = ValueBuilder::default();
    view.walk(&slot, &mut builder)?;
    Ok(builder.finish())
}
