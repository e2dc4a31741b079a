//! Stacks that a store knows by name: which layers they have, and where these are.

use std::fmt;
use std::str::FromStr;

use spinney_core::read::{Reached, Stored};
use spinney_core::value::List;
use spinney_core::view::View;
use spinney_core::{Error, ErrorKind, Map, Path, Result, Value, path};

use super::finding::{Finding, StackId};
use super::{Layer, Stack, name_taken};
use crate::access::Right;
use crate::network::redacted;
use crate::snapshot::Snapshot;
use crate::store::{Committed, OpenOptions, Store};

/// The tree that holds the stacks of a store, each under its name: a list of layers, the highest
/// first, each with `name`, `path` and, in another store, `store`.
pub const TREE: &str = "/.stacks";

/// Elektra's namespaces, the highest first.
pub const CASCADE: [&str; 6] = ["spec", "proc", "dir", "user", "system", "default"];

/// The layers of Elektra's cascade, for [`Store::set_stack`]: each namespace is the tree of its name, but for those whose places are
/// given.
///
/// # Errors
/// `InvalidInput` for a place of what is no namespace, and for two of one.
///
/// # Examples
/// ```
/// use spinney::layers;
///
/// let store = spinney::open("memory:")?;
/// store.set_stack("app", &layers::cascade(&["dir=json:.app.json#".parse()?])?)?;
/// # Ok::<(), spinney::Error>(())
/// ```
pub fn cascade(places: &[LayerSpec]) -> Result<Vec<LayerSpec>> {
    if let Some(wrong) = places.iter().find(|place| !CASCADE.contains(&&*place.name)) {
        return Err(Error::invalid_input(format!(
            "`{}` is no namespace of the cascade; there are {}",
            wrong.name,
            CASCADE.join(", ")
        )));
    }
    let layer = |name: &str| {
        let mut given = places.iter().filter(|place| place.name == name);
        match (given.next(), given.next()) {
            (_, Some(_)) => Err(name_taken(name)),
            (Some(place), None) => Ok(place.clone()),
            (None, None) => {
                let path = Path::root().child(name);
                Ok(LayerSpec { name: name.to_owned(), store: None, path })
            }
        }
    };
    CASCADE.into_iter().map(layer).collect()
}

/// Where a layer is, as people write it: `NAME=PATH`, or `NAME=URL#PATH` in another store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LayerSpec {
    /// What the layer is called.
    pub name: String,
    /// The URL of the store that it is in; without one, the store that knows the stack.
    pub store: Option<String>,
    /// Where it is in its store.
    pub path: Path,
}

impl FromStr for LayerSpec {
    type Err = Error;

    fn from_str(text: &str) -> Result<LayerSpec> {
        // A `=` may be one of a URL that nobody has named.
        let named = text.split_once('=').filter(|(name, _)| !name.contains("://"));
        let Some((name, place)) = named else {
            return Err(Error::invalid_input(format!(
                "`{}` is no layer; write `NAME=PATH`, such as `user=/user`, or `NAME=URL#PATH`, such as \
                 `dir=json:app.json#`",
                redacted(text)
            )));
        };
        let (store, path) = match place.split_once('#') {
            Some((url, path)) => (Some(url.to_owned()), path),
            None => (None, place),
        };
        let path = Path::parse(path)
            .map_err(|error| error.at(format_args!("layer `{}`", redacted(text))))?;
        Ok(LayerSpec { name: name.to_owned(), store, path })
    }
}

/// Without the password that a URL may have.
impl fmt::Display for LayerSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.store {
            None => write!(f, "{}={}", self.name, &*self.path),
            Some(url) => write!(f, "{}={}#{}", self.name, redacted(url), &*self.path),
        }
    }
}

impl LayerSpec {
    fn to_value(&self) -> Value {
        let mut layer = Map::new();
        layer.insert("name", &*self.name);
        layer.insert("path", &*self.path);
        if let Some(url) = &self.store {
            layer.insert("store", &**url);
        }
        Value::Map(layer)
    }

    fn of_value(value: &Value) -> Option<LayerSpec> {
        let text = |name: &str| value.pointer(name).and_then(Value::as_str);
        let store = text("/store").map(str::to_owned);
        let path = Path::parse(text("/path")?).ok()?;
        Some(LayerSpec { name: text("/name")?.to_owned(), store, path })
    }

    /// The layer, in the store that knows the stack or in its own, which is opened.
    fn open(&self, home: &Store, options: &OpenOptions) -> Result<Layer> {
        let Some(url) = &self.store else { return Layer::new(&*self.name, home, &self.path) };
        match options.open(url) {
            Ok(store) => Layer::new(&*self.name, &store.with_seat_of(home), &self.path),
            // Where nothing may be made, what is not there has nothing.
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let mut layer = Layer::new(&*self.name, &crate::open("memory:")?, &self.path)?;
                layer.read_only = Some(error.to_string());
                Ok(layer)
            }
            Err(error) => Err(error.at(format_args!("layer `{self}`"))),
        }
    }

    /// The same, with the URL of its store as it may be shown.
    fn without_password(mut self) -> LayerSpec {
        self.store = self.store.as_deref().map(redacted);
        self
    }
}

impl Store {
    /// Keeps a stack under a name, in place of one that has it.
    ///
    /// # Errors
    /// As [`Stack::new`]; `Unsupported` in a `json:` file, which is one tree; those of [`Store::write`].
    pub fn set_stack(&self, name: &str, layers: &[LayerSpec]) -> Result<Committed<()>> {
        self.check_keeps_stacks()?;
        self.require("", Right::Admin)?;
        // Stores that layers are in need not be there yet.
        let options = OpenOptions::new().create(false).read_only(true);
        let open = |spec: &LayerSpec| spec.open(self, &options);
        let place = stack_path(name)?;
        layers.iter().map(open).collect::<Result<Vec<_>>>().and_then(Stack::new)?;
        let value: List = layers.iter().map(LayerSpec::to_value).collect();
        self.write(|transaction| transaction.set(&place, &Value::List(value.clone())))
    }

    /// Forgets a stack; its layers stay as they are.
    ///
    /// # Errors
    /// `NotFound` when there is none of the name; `Invalid` while it has a schema; those of [`Store::write`].
    pub fn remove_stack(&self, name: &str) -> Result<Committed<()>> {
        self.check_keeps_stacks()?;
        self.require("", Right::Admin)?;
        let place = stack_path(name)?;
        self.write(|transaction| {
            #[cfg(feature = "schema")]
            crate::schemas::refuse_stack_with_schema(transaction, name)?;
            match transaction.remove(&place)? {
                true => Ok(()),
                false => Err(no_stack(name)),
            }
        })
    }

    /// The stacks, by name, each with its layers, the highest first: those whose layers in this store may
    /// be seen. Passwords of other stores are told to who administers the root.
    ///
    /// # Errors
    /// `Corrupted` when one does not read; those of [`Store::read`].
    pub fn stacks(&self) -> Result<Vec<(String, Vec<LayerSpec>)>> {
        if !self.base_path().is_empty() {
            return Ok(Vec::new());
        }
        let state = self.unrestricted().read()?;
        let Some(Value::Map(stacks)) = state.get(TREE)? else { return Ok(Vec::new()) };
        let seen = self.read()?;
        let administers = self.administers()?;
        let mut all = Vec::new();
        for (name, value) in stacks.iter() {
            let mut layers = specs(&name, value)?;
            if !is_told(&seen, &layers)? {
                continue;
            }
            if !administers {
                layers = layers.into_iter().map(LayerSpec::without_password).collect();
            }
            all.push((name.to_string(), layers));
        }
        Ok(all)
    }

    /// The stack of a name. Layers in stores that do not exist are empty and cannot be written.
    ///
    /// # Errors
    /// `NotFound` when there is none; those of opening the stores of its layers.
    pub fn stack(&self, name: &str) -> Result<Stack> {
        self.stack_with(name, |_| OpenOptions::new().create(false))
    }

    /// As [`Store::stack`], with options for the store of each layer that is not in this one.
    ///
    /// # Errors
    /// As [`Store::stack`].
    pub fn stack_with(
        &self,
        name: &str,
        options: impl Fn(&LayerSpec) -> OpenOptions,
    ) -> Result<Stack> {
        self.check_keeps_stacks()?;
        let value = self.unrestricted().read()?.get(&stack_path(name)?)?;
        let specs = specs(name, &value.ok_or_else(|| no_stack(name))?)?;
        if !is_told(&self.read()?, &specs)? {
            return Err(no_stack(name));
        }
        let layers: Result<_> = specs.iter().map(|spec| spec.open(self, &options(spec))).collect();
        let stack =
            Stack::new(layers?).map_err(|error| error.at(format_args!("stack `{name}`")))?;
        Ok(stack.found_by(finding(name)))
    }

    fn check_keeps_stacks(&self) -> Result<()> {
        match self.base_path() {
            "" => Ok(()),
            _ => Err(Error::unsupported(
                "a `json:` file is one tree and knows no stacks; keep the stack in an `lmdb:` store, with the \
                 file as a layer: `NAME=json:FILE#`",
            )),
        }
    }
}

/// Whether something may be seen of each layer that is in the store.
fn is_told(seen: &Snapshot, layers: &[LayerSpec]) -> Result<bool> {
    let mut own = layers.iter().filter(|layer| layer.store.is_none());
    own.try_fold(true, |is_told, layer| Ok(is_told && seen.may_show(&layer.path)?))
}

fn stack_path(name: &str) -> Result<Path> {
    if name.is_empty() || name.contains(char::is_control) {
        return Err(Error::invalid_input(format!(
            "{name:?} is no name of a stack; write a word, such as `settings`"
        )));
    }
    Ok(Path::parse(TREE)?.child(name))
}

fn specs(name: &str, value: &Value) -> Result<Vec<LayerSpec>> {
    let list = match value {
        Value::List(list) => list.iter().map(LayerSpec::of_value).collect(),
        _ => None,
    };
    list.ok_or_else(|| {
        let place = format!("{TREE}{}", &*Path::root().child(name));
        Error::corrupted(format!("{} is no list of layers", path::Display(&place)))
    })
}

/// How the layers of a stack that is kept are found.
pub(crate) fn finding(name: &str) -> Finding {
    let (id, name) = (StackId::Kept(name.to_owned()), name.to_owned());
    Finding::new(id, move |view| find(&name, view))
}

/// The layers that a stack has in a state of its store; none, where there is no such stack.
fn find(name: &str, view: &View<'_>) -> Result<Vec<(String, Path)>> {
    let Some(slot) = view.resolve(&stack_path(name)?)? else { return Ok(Vec::new()) };
    let value = Reached::Stored(Stored::new(*view, slot)?).to_value()?;
    let place = |spec: LayerSpec| match spec.store {
        None => Ok((spec.name, spec.path)),
        Some(_) => Err(Error::unsupported(format!(
            "the layer `{}` of the stack `{name}` is in a store of its own, whose commits have other revisions; \
             follow each layer by itself",
            spec.name
        ))),
    };
    specs(name, &value)?.into_iter().map(place).collect()
}

fn no_stack(name: &str) -> Error {
    Error::not_found(format!("there is no stack `{name}`; make one with `stack set`"))
}
