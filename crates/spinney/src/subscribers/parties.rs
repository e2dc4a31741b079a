//! Who is asked, in which order: the subscribers of a handle, and those of other processes.

use std::borrow::Cow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use spinney_core::{Path, Result, path};

use super::SubscriberOptions;
use super::mailbox::Mailbox;
#[cfg(feature = "lmdb")]
use super::registry::{Registered, Registry};
use super::workers::Workers;
use crate::layers::Following;

/// Whom to ask, when, and for how long.
#[derive(Clone)]
pub struct Terms {
    /// From the base of the store's paths.
    pub path: Path,
    /// The same from the store's root, as segments.
    pub segments: Vec<String>,
    pub options: SubscriberOptions,
    /// The process that it is in, where that is another one.
    pub process: Option<u32>,
    /// The layers that are read as the tree that the path is in; without them, it is the store.
    pub stack: Option<Following>,
}

impl Terms {
    pub fn new(
        base_path: &str,
        path: Path,
        options: SubscriberOptions,
        process: Option<u32>,
    ) -> Terms {
        let whole = [base_path, &path].concat();
        let segments = path::segments(&whole).map(Cow::into_owned).collect();
        Terms { path, segments, options, process, stack: None }
    }

    /// Those of a subscriber to a tree that layers are read as, where paths begin at its root.
    pub fn of_stack(stack: Following, path: Path, options: SubscriberOptions) -> Terms {
        Terms { stack: Some(stack), ..Terms::new("", path, options, None) }
    }

    /// What other processes are to know: about layers they ask for each commit of the store.
    #[cfg(feature = "lmdb")]
    pub fn of_store(&self) -> Cow<'_, Terms> {
        match self.stack {
            None => Cow::Borrowed(self),
            Some(_) => Cow::Owned(Terms::new("", Path::root(), self.options.clone(), None)),
        }
    }

    /// Who it is, for errors.
    pub fn shown(&self) -> String {
        let (name, path) = (&self.options.name, path::Display(&self.path));
        match self.process {
            None => format!("the subscriber `{name}` of {path}"),
            Some(process) => format!("the subscriber `{name}` of {path} in process {process}"),
        }
    }
}

/// A subscriber of this handle.
pub struct Member {
    pub terms: Terms,
    pub mailbox: Arc<Mailbox>,
}

/// Who is asked.
#[derive(Clone)]
pub enum Party {
    Own(Arc<Member>),
    #[cfg(feature = "lmdb")]
    Other(Arc<Registered>),
}

impl Party {
    pub fn terms(&self) -> &Terms {
        match self {
            Party::Own(member) => &member.terms,
            #[cfg(feature = "lmdb")]
            Party::Other(registered) => &registered.terms,
        }
    }

    /// That of this process.
    pub fn own(&self) -> Option<&Arc<Member>> {
        match self {
            Party::Own(member) => Some(member),
            #[cfg(feature = "lmdb")]
            Party::Other(_) => None,
        }
    }

    pub fn is(&self, member: &Arc<Member>) -> bool {
        self.own().is_some_and(|own| Arc::ptr_eq(own, member))
    }
}

/// The subscribers of a store.
#[derive(Default)]
pub struct Subscribers {
    count: AtomicUsize,
    /// In the order in which they are asked.
    parties: Mutex<Arc<Vec<Party>>>,
    /// What calls those of the handle.
    pub workers: Arc<Workers>,
    #[cfg(feature = "lmdb")]
    pub registry: Option<Arc<Registry>>,
}

impl Subscribers {
    /// Those of a handle, and those that other processes have registered.
    #[cfg(feature = "lmdb")]
    pub fn with(registry: Arc<Registry>) -> Subscribers {
        Subscribers { registry: Some(registry), ..Subscribers::default() }
    }

    /// In the order in which they are asked; `None` when there are none. The caller holds the write
    /// guard.
    ///
    /// # Errors
    /// Those of reading what others have registered.
    pub fn parties(&self) -> Result<Option<Arc<Vec<Party>>>> {
        #[cfg(feature = "lmdb")]
        if let Some(registry) = &self.registry
            && let Some(others) = registry.read_if_changed()?
        {
            self.change(|parties| {
                parties.retain(|party| matches!(party, Party::Own(_)));
                others.into_iter().for_each(|other| insert(parties, Party::Other(other)));
            });
        }
        Ok((self.count.load(Ordering::Acquire) > 0).then(|| Arc::clone(&self.list())))
    }

    pub fn change(&self, change: impl FnOnce(&mut Vec<Party>)) {
        let mut list = self.list();
        let parties = Arc::make_mut(&mut list);
        change(parties);
        self.count.store(parties.len(), Ordering::Release);
    }

    fn list(&self) -> MutexGuard<'_, Arc<Vec<Party>>> {
        self.parties.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Puts one behind those that are asked before it: of equal priorities this process's own come first.
pub fn insert(parties: &mut Vec<Party>, party: Party) {
    let rank = |party: &Party| {
        let terms = party.terms();
        (std::cmp::Reverse(terms.options.priority), terms.process.is_some())
    };
    let at = parties.partition_point(|other| rank(other) <= rank(&party));
    parties.insert(at, party);
}
