//! Operational state that programs make when it is read: providers of `operational` in this process.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use spinney_core::{Error, Path, Result};

use super::{Datastore, Datastores};
use crate::access::Right;
use crate::layers::{self, Provider, Source};
use crate::store::Store;

/// Keeps a provider registered, and the store open, until it is dropped.
#[must_use = "dropping it ends the provider"]
pub struct Provision {
    store: Store,
    source: Arc<Source>,
}

impl Drop for Provision {
    fn drop(&mut self) {
        self.store.providers().all().retain(|known| !Arc::ptr_eq(known, &self.source));
    }
}

/// The providers of a store in this process.
#[derive(Default)]
pub(crate) struct Providers(Mutex<Vec<Arc<Source>>>);

impl Providers {
    /// Who may be asked now, as layers above others: the last that was registered is the highest.
    pub fn layers(&self) -> Vec<Arc<Source>> {
        let all = self.all();
        all.iter().rev().filter(|source| !source.is_own_thread()).cloned().collect()
    }

    fn all(&self) -> MutexGuard<'_, Vec<Arc<Source>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Datastores {
    /// Has a program make what is at a path of `operational` whenever somebody in this process reads what is there, below
    /// it or above it, as [`Stack::provide`](crate::layers::Stack::provide) says, until the answer is dropped. What it
    /// reads of `operational` itself is without what it provides.
    ///
    /// ```
    /// use std::time::Duration;
    /// use spinney::datastores::Datastore;
    ///
    /// let store = spinney::open("memory:")?;
    /// let datastores = store.datastores()?;
    /// let uptime = datastores.provide("clock", "/system/uptime", Duration::from_secs(1), || Ok(Some(17.into())))?;
    /// let state = datastores.read(Datastore::Operational)?;
    /// assert_eq!(state.get("/system/uptime")?, Some(17.into()));
    /// assert_eq!(state.sources("/system/uptime")?, Some(vec!["clock"]));
    /// # drop(uptime);
    /// # Ok::<(), spinney::Error>(())
    /// ```
    ///
    /// # Errors
    /// `AlreadyExists` when there is a provider of that name; `Denied` to who may not write there; as
    /// [`Stack::provide`](crate::layers::Stack::provide).
    pub fn provide(
        &self,
        name: &str,
        path: &str,
        timeout: Duration,
        provider: impl Provider + 'static,
    ) -> Result<Provision> {
        self.check_name(name)?;
        let place = [&*Datastore::Operational.path(), &*Path::parse(path)?].concat();
        self.store.require(&place, Right::Write)?;
        let mut all = self.store.providers().all();
        if all.iter().any(|known| known.name == name) {
            let text = format!("there is a provider `{name}`; choose another name");
            return Err(Error::already_exists(text));
        }
        let source = Source::start(name, path, timeout, provider)?;
        all.push(Arc::clone(&source));
        drop(all);
        Ok(Provision { store: self.store.clone(), source })
    }

    /// Refuses names that a layer of `operational` cannot have.
    pub(super) fn check_name(&self, name: &str) -> Result<()> {
        layers::check_name(name)?;
        match Datastore::ALL.iter().any(|datastore| datastore.name() == name) {
            true => Err(Error::invalid_input(format!("`{name}` is the name of a datastore"))),
            false => Ok(()),
        }
    }
}
