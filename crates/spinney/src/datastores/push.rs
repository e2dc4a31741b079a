//! Operational state that connections push: each a layer of its own over `running`, which is gone when
//! its owner is.

use std::ops::{Bound, RangeBounds};

use spinney_core::read::{Children, Node, Reached, Stored};
use spinney_core::view::View;
use spinney_core::{Error, Map, Path, Result, Value, path};

use super::{Datastore, Datastores};
use crate::Transaction;
use crate::access::Right;
use crate::layers::{Finding, Layer, LayerEdit, Stack, StackId};
use crate::owners::{self, Holding, Record};
use crate::snapshot::Snapshot;
use crate::store::Committed;

/// The tree that holds what is pushed, each under its order: `name`, `owner` and `data`.
pub const PUSHED_TREE: &str = "/.pushed";

/// The name of [`PUSHED_TREE`].
pub(crate) const PUSHED_NAME: &str = ".pushed";

/// Whether a path is that of all that one owner pushes.
pub(crate) fn is_pushed(path: &str) -> bool {
    let within = path.strip_prefix(PUSHED_TREE).and_then(|rest| rest.strip_prefix('/'));
    within.and_then(|rest| rest.split_once('/')).is_some_and(|(_, what)| what == DATA)
}

/// Where in an entry of [`PUSHED_TREE`] the state is.
const DATA: &str = "data";

/// The right to push operational state; what was pushed goes with it.
pub struct Pushed {
    datastores: Datastores,
    name: String,
    order: u64,
    holding: Holding,
}

/// What one owner pushes.
struct Entry {
    order: u64,
    name: String,
    owner: Record,
}

impl Entry {
    fn place(order: u64) -> Path {
        Path::parse(PUSHED_TREE).expect("it is a path").child(order)
    }

    fn layer(&self, datastores: &Datastores) -> Result<Layer> {
        Layer::new(&*self.name, &datastores.store, &Entry::place(self.order).child(DATA))
    }
}

impl Datastores {
    /// Begins to push operational state, over `running`, over what is set in `operational` for good and
    /// over what others of a lower order push. It is there for as long as the answer is, and its process.
    /// The name is that of a layer: readers see it as the origin of values. Without an order it is the
    /// highest.
    ///
    /// # Errors
    /// `AlreadyExists` when a living owner pushes in this order or under this name; `InvalidInput` for a
    /// name that no layer can have; those of [`crate::Store::write`].
    pub fn push(&self, name: &str, order: Option<u64>) -> Result<Pushed> {
        self.require_all()?;
        self.check_name(name)?;
        let owner = self.store.owner()?;
        let holding = owner.holding();
        let order = self.write(|transaction| {
            let (living, dead) = self.pushed(&self.state_of(transaction)?, ..)?;
            forget(transaction, &dead)?;
            if let Some(taken) =
                living.iter().find(|entry| Some(entry.order) == order || entry.name == name)
            {
                return Err(Error::already_exists(format!(
                    "`{}` is pushed in the order {} by process {}; choose another name and order",
                    taken.name, taken.order, taken.owner.process
                )));
            }
            holding.begin(transaction)?;
            let next = living.last().map_or(1, |last| last.order + 1);
            let order = order.unwrap_or(next);
            let mut entry = Map::new();
            entry.insert("name", name);
            entry.insert("owner", owner.record.to_value());
            transaction.set(&Entry::place(order), &Value::Map(entry))?;
            Ok(order)
        })?;
        let (datastores, order) = (self.clone(), order.value);
        Ok(Pushed { datastores, name: name.to_owned(), order, holding })
    }

    /// What is pushed up to an order, in ascending order: by owners who live, and by those who do not.
    fn pushed(
        &self,
        state: &Snapshot,
        orders: impl RangeBounds<u64>,
    ) -> Result<(Vec<Entry>, Vec<Entry>)> {
        let (mut living, mut dead) = (Vec::new(), Vec::new());
        for entry in entries(&state.view(), orders)? {
            let owners = self.store.owners();
            match owners.is_own(entry.owner.id) || owners.is_alive(&entry.owner, &state.view())? {
                true => living.push(entry),
                false => dead.push(entry),
            }
        }
        Ok((living, dead))
    }

    /// `operational`, with what is pushed up to an order.
    fn operational_to(
        &self,
        state: &Snapshot,
        orders: impl RangeBounds<u64>,
    ) -> Result<Vec<Layer>> {
        let (living, _) = self.pushed(state, orders)?;
        let layers = living.iter().rev().map(|entry| entry.layer(self));
        let mut layers: Vec<Layer> = layers.collect::<Result<_>>()?;
        layers.push(self.layer(Datastore::Operational)?);
        layers.push(self.layer(Datastore::Running)?);
        Ok(layers)
    }

    pub(super) fn operational_stack(&self) -> Result<Stack> {
        let state = self.store.read()?;
        // Who pushes is told to whom something of it is shown.
        let end = match state.may_show(&Datastore::Operational.path())? {
            true => Bound::Unbounded,
            false => Bound::Excluded(0),
        };
        let stack = Stack::new(self.operational_to(&state, (Bound::Unbounded, end))?)?;
        // What is made on demand is not known in part.
        let provided = match self.store.permits(&Datastore::Operational.path(), Right::Read)? {
            true => self.store.providers().layers(),
            false => Vec::new(),
        };
        let stack = stack.under(provided);
        Ok(stack.found_by(finding_operational()))
    }
}

/// What is pushed up to an order, in ascending order.
fn entries(view: &View<'_>, orders: impl RangeBounds<u64>) -> Result<Vec<Entry>> {
    let mut entries = Vec::new();
    let Some(slot) = view.resolve(PUSHED_TREE)? else { return Ok(entries) };
    let pushed = Stored::new(*view, slot)?;
    let Some(mut children) = pushed.children()? else { return Ok(entries) };
    let mut child = pushed.clone();
    let mut buffer = Vec::new();
    while children.next(&mut child)? {
        let key = children.key(&mut buffer)?.map(|key| key.to_string()).unwrap_or_default();
        let order = key.parse().ok();
        if order.is_some_and(|order| !orders.contains(&order)) {
            continue;
        }
        // Not all of it: `data` may be large.
        let part = |name: &str| -> Result<Option<Value>> {
            let found = child.clone().descend(name)?.found();
            found.map(|node| Reached::Stored(node).to_value()).transpose()
        };
        let (name, owner) = (part("/name")?, part("/owner")?);
        let entry = || {
            Some(Entry {
                order: order?,
                name: name.as_ref()?.as_str()?.to_owned(),
                owner: Record::of_value(owner.as_ref()?)?,
            })
        };
        entries.push(entry().ok_or_else(|| {
            let place = Path::root().child(PUSHED_NAME).child(&key);
            Error::corrupted(format!("{} is nothing that is pushed", path::Display(&place)))
        })?);
    }
    Ok(entries)
}

/// How the layers of `operational` are found.
pub(crate) fn finding_operational() -> Finding {
    let id = StackId::Datastore(Datastore::Operational.name().to_owned());
    Finding::new(id, operational_layers)
}

/// The layers of `operational` in a state, what the dead have pushed included: whoever removes that commits it.
fn operational_layers(view: &View<'_>) -> Result<Vec<(String, Path)>> {
    let pushed = entries(view, ..)?;
    let pushed = pushed.iter().rev();
    let layers = pushed.map(|entry| (entry.name.clone(), Entry::place(entry.order).child(DATA)));
    let own = [Datastore::Operational, Datastore::Running];
    Ok(layers.chain(own.map(|own| (own.name().to_owned(), own.path()))).collect())
}

/// Removes what the dead have pushed.
fn forget(transaction: &mut Transaction<'_>, dead: &[Entry]) -> Result<()> {
    for entry in dead {
        transaction.remove(&Entry::place(entry.order))?;
        owners::forget(transaction, entry.owner.id)?;
    }
    Ok(())
}

impl Pushed {
    /// Its order.
    pub fn order(&self) -> u64 {
        self.order
    }

    /// Changes what is pushed. What is removed where lower layers have it is hidden.
    ///
    /// # Errors
    /// Those of the closure; as [`Datastores::edit`].
    pub fn edit<T>(
        &self,
        mut edit: impl FnMut(&mut LayerEdit<'_, '_>) -> Result<T>,
    ) -> Result<Committed<T>> {
        let owner = self.holding.owner().record.clone();
        let own = Entry { order: self.order, name: self.name.clone(), owner };
        self.datastores.write(|transaction| {
            let state = self.datastores.state_of(transaction)?;
            let mut layers = vec![own.layer(&self.datastores)?];
            layers.extend(self.datastores.operational_to(&state, ..self.order)?);
            edit(&mut Stack::new(layers)?.edit(&self.name, transaction)?)
        })
    }

    /// Takes back what was pushed.
    ///
    /// # Errors
    /// Those of [`crate::Store::write`]; it is not seen any more either way.
    pub fn end(self) -> Result<()> {
        self.take_back()
    }

    fn take_back(&self) -> Result<()> {
        self.datastores
            .write(|transaction| {
                transaction.remove(&Entry::place(self.order))?;
                self.holding.end(transaction)
            })
            .map(drop)
    }
}

impl Drop for Pushed {
    fn drop(&mut self) {
        // Who cannot write any more leaves it to the next, who finds the owner dead.
        let _ = self.take_back();
    }
}
