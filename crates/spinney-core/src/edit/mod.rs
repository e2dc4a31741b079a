//! Edits of a transaction before they become pages.
//!
//! Containers on the way to an edit are opened as [`Work`] nodes in one arena: what is stored stays
//! where it is, edits lie beside it. Nothing is encoded before the commit, so many edits of one page
//! cost one page. Children are indices, so that nothing recurses.

pub mod encode_list;
pub mod encode_map;
pub mod list;
pub mod read;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::backend::TreeId;
use crate::diff::Delta;
use crate::edit::list::{ListWork, Now};
use crate::error::{Error, Result};
use crate::key::EncodedKey;
use crate::members::Members;
use crate::node::{self, Node};
use crate::page::Page;
use crate::part::Part;
use crate::pending::Pending;
use crate::record::Head;
use crate::visit::Container;

/// An opened container.
pub struct Work {
    /// The tree that its ids belong to.
    pub tree: TreeId,
    /// Its stored members and the edits beside them.
    pub body: Body,
    /// Whether it or anything below was edited.
    pub changed: bool,
    /// Whether its changes may be part of the diff: it was in the store before the transaction.
    pub in_diff: bool,
    /// After encoding: the new encoded node without metadata; `None` when it is as stored.
    pub encoded: Option<Vec<u8>>,
    /// After encoding: what changed, for the diff.
    pub delta: Delta,
    /// Whether the diff tells what changed in it.
    pub in_written_diff: bool,
}

/// The members of an opened container.
pub enum Body {
    /// A map.
    Map(MapWork),
    /// A list.
    List(Box<ListWork>),
}

/// An opened map: what is stored, and the edits by encoded key.
pub struct MapWork {
    /// Where the stored members are.
    pub base: Base,
    /// The edits.
    pub edits: Members<Edit>,
    /// Whether it is the store's catalogue, whose members are trees.
    pub catalogue: bool,
}

impl MapWork {
    fn new(base: Base) -> MapWork {
        MapWork { base, edits: Members::default(), catalogue: false }
    }
}

/// Where the stored members of an opened container are.
#[derive(Clone, Debug)]
pub enum Base {
    /// In this page body; empty for a new container.
    Inline(Part),
    /// In pages under this id.
    Paged(u64),
}

impl Base {
    /// Whether there may be a member whose key begins with `beginning`; what lies in pages is not looked at.
    pub fn may_hold(&self, beginning: &[u8]) -> Result<bool> {
        let Base::Inline(body) = self else { return Ok(true) };
        let page = Page::parse(Container::Map, body);
        page.and_then(|page| page.has_key_like(beginning))
            .ok_or_else(|| Error::corrupted("a stored page does not read"))
    }
}

/// A member as the transaction sees it.
#[derive(Clone, Debug)]
pub enum Edit {
    /// It was removed.
    Removed,
    /// It is this encoded node.
    Set(Arc<[u8]>),
    /// It is an opened container with this metadata.
    Open {
        /// Encoded metadata.
        meta: Box<[u8]>,
        /// Index of the [`Work`].
        node: usize,
        /// Whether it was opened where it is stored, and has the metadata that it had there.
        in_place: bool,
    },
}

impl Edit {
    /// The same member for another place.
    pub fn displaced(mut self) -> Edit {
        if let Edit::Open { in_place, .. } = &mut self {
            *in_place = false;
        }
        self
    }
}

/// The tree of a member: its own in the catalogue, the container's everywhere else.
pub type MemberTree = TreeId;

/// Containers that there is room for at first: at most 1 kB, which allocators have at hand.
const NODES_USUAL: usize = 1_024 / size_of::<Work>();

/// All opened containers of a transaction; index 0 is the catalogue.
pub struct Edits {
    /// The arena.
    pub nodes: Vec<Work>,
    /// The trees of catalogue members that were touched.
    pub trees: BTreeMap<EncodedKey, TreeId>,
}

impl Edits {
    /// Opens the catalogue.
    pub fn new(pending: &Pending<'_>) -> Result<Edits> {
        let root = pending.catalogue();
        let mut edits = Edits { nodes: Vec::with_capacity(NODES_USUAL), trees: BTreeMap::new() };
        match edits.open(pending, 0, &root)? {
            Some((_, 0)) => {}
            _ => return Err(Error::corrupted("the store's root is not a map")),
        }
        if let Body::Map(map) = &mut edits.nodes[0].body {
            map.catalogue = true;
        }
        Ok(edits)
    }

    /// Opens an encoded container: its metadata and index; `None` when it is a scalar.
    pub fn open(
        &mut self,
        pending: &Pending<'_>,
        tree: TreeId,
        encoded: &Part,
    ) -> Result<Option<(Box<[u8]>, usize)>> {
        let bad = || Error::corrupted("a stored node does not read");
        let annotated = node::read(encoded).ok_or_else(bad)?;
        let (container, base) = match annotated.node {
            Node::Inline(container, body) => (container, Base::Inline(encoded.part(body))),
            Node::Paged(container, id) => (container, Base::Paged(id)),
            _ => return Ok(None),
        };
        let meta = annotated.meta.into();
        let body = match container {
            Container::Map => Body::Map(MapWork::new(base)),
            Container::List => Body::List(Box::new(ListWork::open(pending, tree, base)?)),
        };
        self.nodes.push(Work::new(tree, body, false));
        Ok(Some((meta, self.nodes.len() - 1)))
    }

    /// Opens a new, empty map.
    pub fn new_map(&mut self, tree: TreeId) -> usize {
        let map = MapWork::new(Base::Inline(Part::default()));
        let body = Body::Map(map);
        self.nodes.push(Work::new(tree, body, true));
        self.nodes.len() - 1
    }

    /// The tree that a member of a container belongs to; `None` for a tree that does not exist.
    pub fn member_tree(
        &self,
        pending: &Pending<'_>,
        node: usize,
        key: &[u8],
    ) -> Result<Option<MemberTree>> {
        let work = &self.nodes[node];
        match &work.body {
            Body::Map(map) if map.catalogue => match self.trees.get(key) {
                Some(&tree) => Ok(Some(tree)),
                None => stored_tree(pending, &map.base, key),
            },
            _ => Ok(Some(work.tree)),
        }
    }

    /// The tree of a member that is about to be written; a new tree gets its number.
    pub fn member_tree_to_write(
        &mut self,
        pending: &mut Pending<'_>,
        node: usize,
        key: &[u8],
    ) -> Result<MemberTree> {
        let tree = match self.member_tree(pending, node, key)? {
            Some(tree) => tree,
            None => TreeId::try_from(pending.new_id(0)?)
                .map_err(|_| Error::limit_exceeded("the store has no tree numbers left"))?,
        };
        if let Body::Map(MapWork { catalogue: true, .. }) = self.nodes[node].body {
            self.trees.insert(EncodedKey::from(key), tree);
            pending.head(tree)?;
        }
        Ok(tree)
    }

    /// The tree that had a name before the transaction.
    pub fn stored_tree(&self, pending: &Pending<'_>, key: &[u8]) -> Result<Option<TreeId>> {
        match &self.nodes[0].body {
            Body::Map(map) => stored_tree(pending, &map.base, key),
            Body::List(_) => Ok(None),
        }
    }

    /// Whether a map had a member before the transaction.
    pub fn was_stored(&self, pending: &Pending<'_>, node: usize, key: &[u8]) -> Result<bool> {
        let work = &self.nodes[node];
        match &work.body {
            Body::Map(map) => Ok(stored_value(pending, work.tree, &map.base, key)?.is_some()),
            Body::List(_) => Ok(false),
        }
    }

    /// The stored value of a map's member before the transaction; `None` when there was none.
    pub fn stored_member(
        &self,
        pending: &Pending<'_>,
        node: usize,
        key: &[u8],
    ) -> Result<Option<Part>> {
        let work = &self.nodes[node];
        let Body::Map(map) = &work.body else { return Ok(None) };
        if map.catalogue {
            let Some(tree) = stored_tree(pending, &map.base, key)? else { return Ok(None) };
            return stored_root(pending, tree);
        }
        stored_value(pending, work.tree, &map.base, key)
    }

    /// The tree and the stored value of a map's member that the transaction has not edited; `None` when there
    /// is none.
    pub fn unedited_member(
        &self,
        pending: &Pending<'_>,
        node: usize,
        key: &[u8],
    ) -> Result<Option<(MemberTree, Part)>> {
        let Some(tree) = self.member_tree(pending, node, key)? else { return Ok(None) };
        let stored = match &self.nodes[node].body {
            Body::Map(MapWork { catalogue: true, .. }) => stored_root(pending, tree)?,
            Body::Map(map) => stored_value(pending, tree, &map.base, key)?,
            Body::List(_) => None,
        };
        Ok(stored.map(|stored| (tree, stored)))
    }
}

/// The root of a tree before the transaction; `None` where there is none.
fn stored_root(pending: &Pending<'_>, tree: TreeId) -> Result<Option<Part>> {
    let root = Head::root(pending.snapshot(), tree)?;
    Ok(root.map(|(record, at)| Part::from(&record[at..])).filter(|root| !root.is_empty()))
}

/// The encoded node of a stored map member.
pub fn stored_value(
    pending: &Pending<'_>,
    tree: TreeId,
    base: &Base,
    key: &[u8],
) -> Result<Option<Part>> {
    let bad = || Error::corrupted("a stored page does not read");
    let find = |body: &Part| {
        let page = Page::parse(Container::Map, body).ok_or_else(bad)?;
        match page.search(key).ok_or_else(bad)? {
            Ok(index) => Ok(Some(body.part(page.value(index).ok_or_else(bad)?))),
            Err(_) => Ok(None),
        }
    };
    match base {
        Base::Inline(body) => find(body),
        Base::Paged(id) => find(&pending.map_page(tree, *id, key)?.body),
    }
}

fn stored_tree(pending: &Pending<'_>, base: &Base, key: &[u8]) -> Result<Option<TreeId>> {
    let Some(encoded) = stored_value(pending, 0, base, key)? else { return Ok(None) };
    match node::read(&encoded).map(|annotated| annotated.node) {
        Some(Node::Tree(tree)) => Ok(Some(tree)),
        _ => Err(Error::corrupted("a member of the catalogue is not a tree")),
    }
}

/// What an edit makes of a member, once opened containers are encoded.
pub enum Outcome<'a> {
    /// As it is stored.
    Same,
    /// No member.
    Gone,
    /// This encoded node.
    Is(Cow<'a, [u8]>),
}

/// What an edit makes of a member, once opened containers are encoded; `stored` is what it was.
pub fn outcome<'a>(
    nodes: &'a [Work],
    edit: &'a Edit,
    stored: Option<&[u8]>,
) -> Result<Outcome<'a>> {
    let fresh: Cow<'a, [u8]> = match edit {
        Edit::Removed => {
            return Ok(if stored.is_some() { Outcome::Gone } else { Outcome::Same });
        }
        Edit::Set(encoded) => Cow::Borrowed(encoded),
        Edit::Open { meta, node, .. } => nodes[*node].fresh(meta),
    };
    Ok(if stored == Some(&*fresh) { Outcome::Same } else { Outcome::Is(fresh) })
}

impl Work {
    fn new(tree: TreeId, body: Body, changed: bool) -> Work {
        Work {
            tree,
            body,
            changed,
            in_diff: false,
            encoded: None,
            delta: Delta::default(),
            in_written_diff: false,
        }
    }

    /// The container's kind.
    pub fn container(&self) -> Container {
        match self.body {
            Body::Map(_) => Container::Map,
            Body::List(_) => Container::List,
        }
    }

    /// The edits of its members, with their keys; keys are empty in a list.
    pub fn edits(&self) -> impl Iterator<Item = (&[u8], &Edit)> {
        let (map, list) = match &self.body {
            Body::Map(map) => (Some(map), None),
            Body::List(list) => (None, Some(list)),
        };
        let members = map.into_iter().flat_map(|map| map.edits.iter());
        let elements = list.into_iter().flat_map(|list| list.edits());
        members.map(|(key, edit)| (&**key, edit)).chain(elements.map(|edit| (&[][..], edit)))
    }

    /// Takes the edits of its members out.
    pub fn take_edits(&mut self) -> Vec<Edit> {
        match &mut self.body {
            Body::Map(map) => {
                let mut edits = Vec::with_capacity(map.edits.len());
                std::mem::take(&mut map.edits).move_values_to(&mut edits);
                edits
            }
            Body::List(list) => {
                let edits = list.edits().cloned().collect();
                list.pages.clear();
                edits
            }
        }
    }

    /// Calls `found` with each encoded member that is as it was stored, or, when they are in pages,
    /// once with the container itself.
    pub fn unedited(&self, mut found: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let damaged = || Error::corrupted("a stored page does not read");
        match &self.body {
            Body::Map(MapWork { base: Base::Paged(_), .. }) => {}
            Body::List(list) if matches!(list.base, Base::Paged(_)) => {}
            Body::Map(MapWork { base: Base::Inline(body), edits, .. }) => {
                let page = Page::parse(Container::Map, body).ok_or_else(damaged)?;
                for index in 0..page.count() {
                    let mut key = Vec::new();
                    page.key_into(index, &mut key).ok_or_else(damaged)?;
                    if edits.get(&EncodedKey::from(&key[..])).is_none() {
                        found(page.value(index).ok_or_else(damaged)?)?;
                    }
                }
                return Ok(());
            }
            Body::List(list) => {
                for page in list.pages.values() {
                    for (_, element) in list.elements(page, 0)? {
                        if let Now::Stored(encoded) = element {
                            found(encoded)?;
                        }
                    }
                }
                return Ok(());
            }
        }
        let mut encoded = Vec::new();
        self.write_base(&mut encoded);
        found(&encoded)
    }

    /// The encoded node with its metadata, once it is encoded.
    pub fn fresh(&self, meta: &[u8]) -> Cow<'_, [u8]> {
        match &self.encoded {
            Some(encoded) if meta.is_empty() => Cow::Borrowed(encoded),
            encoded => {
                let mut out = Vec::new();
                node::write_meta(meta, &mut out);
                match encoded {
                    Some(encoded) => out.extend_from_slice(encoded),
                    None => self.write_base(&mut out),
                }
                out.into()
            }
        }
    }

    /// Appends the encoded node as it is stored.
    pub fn write_base(&self, out: &mut Vec<u8>) {
        let base = match &self.body {
            Body::Map(map) => &map.base,
            Body::List(list) => &list.base,
        };
        match base {
            Base::Inline(body) => node::write_inline(self.container(), body, out),
            Base::Paged(id) => node::write_paged(self.container(), *id, out),
        }
    }
}
