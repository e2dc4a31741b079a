//! Reading one state of a store.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use spinney_core::access::{Permissions, Right, Standing};
use spinney_core::backend::{self, Revision};
use spinney_core::check::{Report, check_snapshot};
use spinney_core::history::{History, Logged};
use spinney_core::limits::KEY_LEN_MAX;
use spinney_core::node::{Node as Encoded, NodeKind};
use spinney_core::path;
use spinney_core::read::{Children, Guarded, Node, Reached, Stored};
use spinney_core::record::Head;
use spinney_core::value::ValueBuilder;
use spinney_core::view::{Passed, Slot, View, Waypoint};
use spinney_core::{Container, Error, ErrorKind, Key, Path, Result, Scalar, Value, Visitor};

use crate::access::Sight;
use crate::forest::{self, NoState, Reading};
use crate::layers::{self, Layers};

/// One consistent state of a store; it stays as it is while others write.
pub struct Snapshot {
    snapshot: Box<dyn backend::Snapshot>,
    origin: Arc<Origin>,
    made_of: MadeOf,
    /// What its reader may see; everything, without.
    sight: Option<Arc<Sight>>,
}

/// How a node is shown of which a part is seen.
type Guard<'s> =
    fn(Reached<'s>, &'s Permissions, Standing) -> Result<Option<Guarded<'s, Reached<'s>>>>;

/// How much of a node is seen.
enum Seen<'s> {
    Whole,
    /// A part; what that is, its standing tells.
    Part(&'s Permissions, Standing),
    Hidden,
}

/// What a snapshot is made of.
enum MadeOf {
    /// One state of a backend.
    State,
    /// The states of trees that are kept apart.
    Trees(Box<Reading>),
    /// Layers read as one.
    Layers(Box<Layers>),
}

/// What the snapshots of a store have in common.
pub struct Origin {
    /// The engine's longest key.
    pub key_len_max: usize,
    /// Where paths begin.
    pub base_path: Path,
    /// What the last read led through.
    pub recent: Recent,
}

/// The container in pages that the last read of a store led through, and the page of it that two
/// reads used in turn.
///
/// Reads of its members in the same state begin there, and not at the root.
#[derive(Default)]
pub struct Recent {
    way: Mutex<Option<Arc<RecentWay>>>,
    /// Where the page of the last read lay.
    page_address: AtomicUsize,
}

struct RecentWay {
    /// Of which state it is known.
    version: u64,
    path: String,
    waypoint: Waypoint,
}

impl Recent {
    /// The container, when a path leads to a member of it or below.
    #[inline]
    fn on_the_way(&self, version: u64, path: &str) -> Option<Arc<RecentWay>> {
        // Whoever would wait for another thread reads from the root instead.
        let way = self.way.try_lock().ok()?;
        let way = way.as_ref().filter(|way| way.version == version)?;
        let rest = path.strip_prefix(&*way.path)?;
        rest.starts_with('/').then(|| Arc::clone(way))
    }

    /// Notes what a read led through that began at the container `from`, or at the root.
    fn note(&self, version: u64, path: &str, passed: &Passed<'_>, from: Option<&RecentWay>) {
        if from.is_some_and(|from| from.waypoint.path_len != passed.path_len()) {
            return;
        }
        let address = passed.page_address();
        let is_again = address != 0 && self.page_address.load(Ordering::Relaxed) == address;
        self.page_address.store(address, Ordering::Relaxed);
        if (is_again || from.is_none())
            && let Ok(mut way) = self.way.try_lock()
        {
            let path = path[..passed.path_len()].to_owned();
            *way = Some(Arc::new(RecentWay { version, path, waypoint: passed.waypoint(is_again) }));
        }
    }
}

/// A member of a container, as [`Snapshot::list`] gives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// The path segment: a key or a position.
    pub segment: String,
    /// The kind of its node.
    pub kind: NodeKind,
}

impl Snapshot {
    /// A snapshot over a backend's.
    pub fn new(snapshot: Box<dyn backend::Snapshot>, origin: Arc<Origin>) -> Snapshot {
        Snapshot { snapshot, origin, made_of: MadeOf::State, sight: None }
    }

    /// A snapshot of trees that are kept apart.
    pub(crate) fn of_trees(trees: Reading, origin: Arc<Origin>) -> Snapshot {
        let snapshot = NoState::because(forest::refusal);
        Snapshot { snapshot, origin, made_of: MadeOf::Trees(Box::new(trees)), sight: None }
    }

    /// A snapshot of layers read as one.
    pub(crate) fn of_layers(layers: Layers) -> Snapshot {
        let origin = Origin { key_len_max: 0, base_path: Path::root(), recent: Recent::default() };
        let snapshot = NoState::because(layers::refusal);
        let made_of = MadeOf::Layers(Box::new(layers));
        Snapshot { snapshot, origin: Arc::new(origin), made_of, sight: None }
    }

    /// The same state as a principal sees it.
    pub(crate) fn seen_with(self, sight: Option<Arc<Sight>>) -> Snapshot {
        Snapshot { sight, ..self }
    }

    /// How much of what is at a path is seen.
    fn seen(&self, path: &str) -> Result<Seen<'_>> {
        let Some(sight) = &self.sight else { return Ok(Seen::Whole) };
        path::check(path)?;
        let way = sight.permissions.way(path, |list| self.is_list(list))?;
        Ok(match () {
            () if way.shows_all() => Seen::Whole,
            () if way.may_show() => Seen::Part(&sight.permissions, way.standing),
            () => Seen::Hidden,
        })
    }

    /// Whether a checked path leads to a list, whoever asks.
    pub(crate) fn is_list(&self, path: &str) -> Result<bool> {
        match self.resolve(path)? {
            Some(slot) => Ok(slot.read()?.node.container() == Some(Container::List)),
            None => Ok(false),
        }
    }

    /// Whether its reader has a right at a path and everywhere below it.
    ///
    /// # Errors
    /// `InvalidInput` for a malformed path; those of reading.
    pub fn permits(&self, path: &str, right: Right) -> Result<bool> {
        path::check(path)?;
        let Some(sight) = &self.sight else { return Ok(true) };
        Ok(sight.permissions.way(path, |list| self.is_list(list))?.may_all(right))
    }

    /// Whether its reader has a right at a path from the store's root, whatever is below it.
    pub(crate) fn permits_one(&self, path: &str, right: Right) -> Result<bool> {
        let Some(sight) = &self.sight else { return Ok(true) };
        Ok(sight.permissions.way(path, |list| self.is_list(list))?.may(right))
    }

    /// Whether something at a path may be seen by its reader.
    pub(crate) fn may_show(&self, path: &str) -> Result<bool> {
        let Some(sight) = &self.sight else { return Ok(true) };
        let way = sight.permissions.way(path, |list| self.is_list(list))?;
        Ok(way.standing.may_some(Right::Read))
    }

    /// Refuses what tells of the whole store to whom may not see all of it.
    pub(crate) fn require_whole(&self) -> Result<()> {
        match self.permits("", Right::Read)? {
            true => Ok(()),
            false => Err(Error::new(
                ErrorKind::Denied,
                "this tells of everything in the store, and you may not read all of it",
            )),
        }
    }

    /// The node at a path; `None` when there is none.
    ///
    /// # Errors
    /// As [`Snapshot::get`]; `Unsupported` for the root where trees are kept apart.
    pub fn node(&self, path: &str) -> Result<Option<Reached<'_>>> {
        if self.apart(path).is_some() {
            return Err(forest::refusal());
        }
        self.reach(path)
    }

    /// As [`Snapshot::node`]; for the root where trees are kept apart, one that has the right members.
    fn reach(&self, path: &str) -> Result<Option<Reached<'_>>> {
        if let MadeOf::Layers(layers) = &self.made_of {
            return layers.node(path);
        }
        let Some(this) = self.holder(path)? else { return Ok(None) };
        this.reach_as(path, this.seen(path)?, Guarded::new)
    }

    /// The root of a layer at a path, as far as it may be read.
    pub(crate) fn layer(&self, path: &str) -> Result<Option<Reached<'_>>> {
        if self.apart(path).is_some() {
            return Err(forest::refusal());
        }
        let Some(this) = self.holder(path)? else { return Ok(None) };
        this.reach_as(path, this.seen(layers::ruled_as(path))?, Guarded::of_layer)
    }

    fn reach_as<'s>(
        &'s self,
        path: &str,
        seen: Seen<'s>,
        guard: Guard<'s>,
    ) -> Result<Option<Reached<'s>>> {
        if matches!(seen, Seen::Hidden) {
            return Ok(None);
        }
        let Some(slot) = self.resolve(path)? else { return Ok(None) };
        let node = Reached::Stored(Stored::new(self.view(), slot)?);
        match seen {
            Seen::Part(permissions, standing) => {
                let guarded = guard(node, permissions, standing)?;
                Ok(guarded.map(|guarded| Reached::Guarded(Box::new(guarded))))
            }
            Seen::Whole | Seen::Hidden => Ok(Some(node)),
        }
    }

    /// The layers, when it is made of some.
    pub(crate) fn layers(&self) -> Option<&Layers> {
        match &self.made_of {
            MadeOf::Layers(layers) => Some(layers),
            _ => None,
        }
    }

    /// Whether it is one state of one backend.
    pub(crate) fn is_one_state(&self) -> bool {
        matches!(self.made_of, MadeOf::State)
    }

    /// What answers for a path; `None` when trees are kept apart and there is none of that name.
    pub(crate) fn holder(&self, path: &str) -> Result<Option<&Snapshot>> {
        match &self.made_of {
            MadeOf::Trees(trees) => trees.holder(path),
            _ => Ok(Some(self)),
        }
    }

    /// Where the paths of users begin.
    pub(crate) fn base_path(&self) -> &str {
        &self.origin.base_path
    }

    /// The trees, when they are kept apart and a path names their root.
    pub(crate) fn apart(&self, path: &str) -> Option<&Reading> {
        match &self.made_of {
            MadeOf::Trees(trees) if path.is_empty() => Some(trees),
            _ => None,
        }
    }

    /// The node at a path; `None` when there is none.
    fn resolve(&self, path: &str) -> Result<Option<Slot<'_>>> {
        if self.origin.base_path.is_empty() {
            return self.resolve_whole(path);
        }
        path::check(path)?;
        self.resolve_whole(&[&self.origin.base_path, path].concat())
    }

    /// The nodes of this state, from the store's root, whoever reads it: access rules do not bind a view. Of layers in
    /// one store, those of that.
    pub fn view(&self) -> View<'_> {
        if let Some(state) = self.layers().and_then(Layers::only_state) {
            return state.view();
        }
        View { snapshot: &*self.snapshot, key_len_max: self.origin.key_len_max }
    }

    /// The revision that this state is.
    ///
    /// # Errors
    /// Those of the backend.
    pub fn revision(&self) -> Result<Revision> {
        match &self.made_of {
            MadeOf::Layers(layers) => layers.revision(),
            _ => Ok(Head::load(&*self.snapshot, 0)?.map_or(0, |head| head.revision)),
        }
    }

    /// The commits that led to this state, from the newest to the oldest that is kept. One of which its
    /// reader may see nothing has neither changes nor a note.
    ///
    /// # Errors
    /// Those of the backend; `Corrupted` for each one that is damaged.
    pub fn log(&self) -> Result<impl Iterator<Item = Result<Logged>> + '_> {
        Ok(self.begin_at_base(History::of(&*self.snapshot).backwards()?))
    }

    /// The commits from a revision on, in order.
    ///
    /// # Errors
    /// As [`Snapshot::log`].
    pub fn log_from(&self, first: Revision) -> Result<impl Iterator<Item = Result<Logged>> + '_> {
        Ok(self.begin_at_base(History::of(&*self.snapshot).since(first)?))
    }

    /// Makes the paths of diffs begin where paths of this store do.
    fn begin_at_base<'s>(
        &self,
        commits: impl Iterator<Item = Result<Logged>> + 's,
    ) -> impl Iterator<Item = Result<Logged>> + 's {
        let origin = Arc::clone(&self.origin);
        let sight = self.sight.clone();
        commits.map(move |logged| {
            let mut logged = match &sight {
                Some(sight) => sight.of_commit(logged?)?,
                None => logged?,
            };
            logged.entry.diff.begin_below(&origin.base_path);
            Ok(logged)
        })
    }

    /// The node at a path from the store's root; `None` when there is none.
    fn resolve_whole(&self, path: &str) -> Result<Option<Slot<'_>>> {
        let view = self.view();
        let Some(version) = self.snapshot.version() else { return view.resolve(path) };
        let known = self.origin.recent.on_the_way(version, path);
        path::check_from(path, known.as_ref().map_or(0, |known| known.path.len()))?;
        let mut passed = None;
        let found = match &known {
            Some(known) => view.descend_from(&known.waypoint, path, &mut passed),
            None => view.root().and_then(|root| view.descend(root, path, 0, &mut passed)),
        };
        let found = found.map_err(|error: Error| error.at(path::Display(path)))?;
        if let Some(passed) = &passed {
            self.origin.recent.note(version, path, passed, known.as_deref());
        }
        Ok(found)
    }

    /// The value at a path with all below it; `None` when there is none.
    ///
    /// # Errors
    /// `InvalidInput` for a malformed path, `Corrupted` for damage.
    ///
    /// # Complexity
    /// O(d log n) for depth d, and the size of the value.
    pub fn get(&self, path: &str) -> Result<Option<Value>> {
        let mut builder = ValueBuilder::default();
        if let Some(trees) = self.apart(path) {
            trees.visit(&mut builder)?;
            return Ok(builder.finish());
        }
        if self.layers().is_some() || self.sight.is_some() {
            return Ok(self.visit(path, &mut builder)?.then(|| builder.finish()).flatten());
        }
        let Some(this) = self.holder(path)? else { return Ok(None) };
        let Some(slot) = this.resolve(path)? else { return Ok(None) };
        match slot.read()?.node {
            Encoded::Scalar(scalar) => Ok(Some(scalar_value(scalar))),
            _ => {
                this.walk(path, &slot, &mut builder)?;
                Ok(builder.finish())
            }
        }
    }

    /// As [`Snapshot::get`], as a type that [`spinney_core::typed`] reads.
    ///
    /// ```
    /// #[derive(serde::Serialize, serde::Deserialize, PartialEq, Debug)]
    /// struct Person { name: String, age: u8 }
    ///
    /// # fn main() -> spinney::Result<()> {
    /// let store = spinney::open("memory:")?;
    /// let ada = Person { name: "Ada".into(), age: 36 };
    /// store.write(|tx| tx.set_as("/people/42", &ada))?;
    /// assert_eq!(store.read()?.get_as("/people/42")?, Some(ada));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Snapshot::get`]; `InvalidInput` when the value is not of that type.
    #[cfg(feature = "serde")]
    pub fn get_as<T: serde_core::de::DeserializeOwned>(&self, path: &str) -> Result<Option<T>> {
        let read = self.get(path)?.map(spinney_core::typed::read).transpose();
        read.map_err(|error| error.at(path::Display(path)))
    }

    fn walk(
        &self,
        path: &str,
        slot: &Slot<'_>,
        visitor: &mut (impl Visitor + ?Sized),
    ) -> Result<()> {
        let slot = Slot::owned(slot.tree, slot.encoded());
        self.view().walk(&slot, visitor).map_err(|error| located(error, path))
    }

    /// Drives a visitor over the node at a path; false when there is none.
    ///
    /// # Errors
    /// As [`Snapshot::get`], and the visitor's.
    pub fn visit(&self, path: &str, visitor: &mut (impl Visitor + ?Sized)) -> Result<bool> {
        if let Some(trees) = self.apart(path) {
            return trees.visit(visitor).map(|()| true);
        }
        if self.layers().is_some() || self.sight.is_some() {
            let Some(node) = self.reach(path)? else { return Ok(false) };
            return node.visit(visitor).map(|()| true).map_err(|error| located(error, path));
        }
        let Some(this) = self.holder(path)? else { return Ok(false) };
        match this.resolve(path)? {
            None => Ok(false),
            Some(slot) => this.walk(path, &slot, visitor).map(|()| true),
        }
    }

    /// The kind of the node at a path; `None` when there is none.
    ///
    /// # Errors
    /// As [`Snapshot::get`].
    pub fn kind(&self, path: &str) -> Result<Option<NodeKind>> {
        let kind = self.reach(path)?.map(|node| node.kind()).transpose();
        kind.map_err(|error| located(error, path))
    }

    /// How many members the container at a path has; `None` when there is none or it is a scalar.
    ///
    /// # Errors
    /// As [`Snapshot::get`].
    ///
    /// # Complexity
    /// That of the path; of a map that several layers share, that of its members.
    pub fn count(&self, path: &str) -> Result<Option<u64>> {
        let Some(node) = self.reach(path)? else { return Ok(None) };
        let count = node.is_container().and_then(|is_container| match is_container {
            true => node.count().map(Some),
            false => Ok(None),
        });
        count.map_err(|error| located(error, path))
    }

    /// The metadata of a node, in the order of the names; `None` when there is no node.
    ///
    /// # Errors
    /// As [`Snapshot::get`].
    pub fn meta(&self, path: &str) -> Result<Option<Vec<(String, String)>>> {
        let Some(node) = self.reach(path)? else { return Ok(None) };
        let mut entries = Vec::new();
        node.meta(&mut |name, value| entries.push((name.to_owned(), value.to_owned())))?;
        Ok(Some(entries))
    }

    /// Members of the container at a path, in order, from a key or position on; `None` when there
    /// is no node.
    ///
    /// # Errors
    /// `InvalidInput` when the node is a scalar, or `from` is no position of a list.
    ///
    /// # Complexity
    /// O(log n) to `from`, then the members.
    pub fn list(
        &self,
        path: &str,
        from: Option<&str>,
        limit: Option<u64>,
    ) -> Result<Option<Vec<Member>>> {
        let mut members = Vec::new();
        let listed = self.list_with(path, from, limit, &mut |member| {
            members.push(member);
            Ok(())
        })?;
        Ok(listed.then_some(members))
    }

    /// As [`Snapshot::list`], handing members over one by one; false when there is no node.
    ///
    /// # Errors
    /// As [`Snapshot::list`], and those of `found`.
    pub fn list_with(
        &self,
        path: &str,
        from: Option<&str>,
        limit: Option<u64>,
        found: &mut dyn FnMut(Member) -> Result<()>,
    ) -> Result<bool> {
        let Some(node) = self.reach(path)? else { return Ok(false) };
        let from = children_from(&node, from)
            .map_err(|error| error.at(format_args!("list {}", path::Display(path))))?;
        let Some((mut children, mut position)) = from else {
            return Err(Error::invalid_input(format!(
                "list {}: it is a {}, not a map or list",
                path::Display(path),
                node.kind()?.name()
            )));
        };
        let mut child = node.clone();
        let mut buffer = Vec::new();
        let mut left = limit.unwrap_or(u64::MAX);
        while left > 0 && children.next(&mut child).map_err(|error| located(error, path))? {
            let key = children.key(&mut buffer)?;
            let segment = key.map_or_else(|| position.to_string(), |key| key.to_string());
            found(Member { segment, kind: child.kind()? })?;
            position += 1;
            left -= 1;
        }
        Ok(true)
    }

    /// Reads every node and record and tells what is damaged or left over.
    ///
    /// # Errors
    /// `Denied` to who may not read everything; else only when the backend cannot be read at all.
    pub fn check(&self) -> Result<Report> {
        self.require_whole()?;
        match &self.made_of {
            MadeOf::State => check_snapshot(self.view()),
            MadeOf::Trees(trees) => trees.check(),
            MadeOf::Layers(_) => Err(layers::refusal()),
        }
    }
}

/// Names the path of damage; other errors name it where they arise.
fn located(error: Error, path: &str) -> Error {
    match error.kind() {
        ErrorKind::Corrupted => error.at(path::Display(path)),
        _ => error,
    }
}

/// The children of a node from a key or position on, and the position that this is in a list; `None`
/// when it is a scalar.
fn children_from<N: Node>(node: &N, from: Option<&str>) -> Result<Option<(N::Children, u64)>> {
    let Some(from) = from else {
        return Ok(node.children()?.map(|children| (children, 0)));
    };
    if from.len() > KEY_LEN_MAX {
        return Err(Error::limit_exceeded(format!(
            "a key has {} bytes; at most {KEY_LEN_MAX}",
            from.len()
        )));
    }
    if let Some(children) = node.members_from(&Key::new(from).encoded())? {
        return Ok(Some((children, 0)));
    }
    let position = path::position(from);
    match node.elements(position.unwrap_or(0))? {
        None => Ok(None),
        Some(children) => match position {
            Some(position) => Ok(Some((children, position))),
            None => Err(Error::invalid_input(format!(
                "`{from}` is no position of a list; write a number"
            ))),
        },
    }
}

fn scalar_value(scalar: Scalar<'_>) -> Value {
    match scalar {
        Scalar::Null => Value::Null,
        Scalar::Bool(value) => Value::Bool(value),
        Scalar::Number(number) => Value::Number(number.to_owned()),
        Scalar::String(text) => Value::String(text.text.to_owned()),
        Scalar::Bytes(bytes) => Value::Bytes(bytes.to_vec()),
    }
}
