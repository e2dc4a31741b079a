//! The locks of a state, read once for as long as they stay the same, and which of them a change meets.

use std::collections::BTreeMap;
use std::sync::Arc;

use spinney_core::diff::{Op, Step, What};
use spinney_core::view::View;
use spinney_core::{Error, Key, Map, Path, Result, Value, path};

use super::{NAME, TREE};
use crate::owners::{Record, number_at};
use crate::tree_cache::{TreeCache, value_at};

/// A lock as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its key in the tree of locks.
    pub id: u64,
    /// From the store's root.
    pub place: Path,
    /// Empty when it has none.
    pub name: String,
    pub since_ms: u64,
    pub expires_ms: Option<u64>,
    pub owner: Record,
}

impl Entry {
    pub fn to_value(&self) -> Value {
        let mut members = Map::new();
        members.insert("path", &*self.place);
        if !self.name.is_empty() {
            members.insert("name", &*self.name);
        }
        members.insert("since", self.since_ms);
        if let Some(expires_ms) = self.expires_ms {
            members.insert("expires", expires_ms);
        }
        members.insert("owner", self.owner.to_value());
        members.into()
    }

    fn of_value(key: &str, value: &Value) -> Option<Entry> {
        let text = |path| value.pointer(path).and_then(Value::as_str);
        Some(Entry {
            id: key.parse().ok()?,
            place: Path::parse(text("/path")?).ok()?,
            name: text("/name").unwrap_or_default().to_owned(),
            since_ms: number_at(value, "/since")?,
            expires_ms: number_at(value, "/expires"),
            owner: Record::of_value(value.pointer("/owner")?)?,
        })
    }
}

/// All locks of a state, found by what they are on.
#[derive(Default)]
pub struct Table {
    entries: Vec<Entry>,
    /// The first is the store's root.
    nodes: Vec<Junction>,
}

/// The locks that an operation meets.
#[derive(Default)]
pub struct Met<'t> {
    /// Those on the node that changes, on what it is below, and on elements that it moves.
    pub held: Vec<&'t Entry>,
    /// Those below the node, which comes, goes or is replaced.
    pub below: Vec<&'t Entry>,
}

/// A node on the way to a lock.
#[derive(Default)]
struct Junction {
    children: BTreeMap<String, usize>,
    /// The locks on it.
    entries: Vec<usize>,
}

impl Table {
    /// Those of a tree of locks; what is no lock locks nothing.
    fn of_tree(tree: &Value) -> Table {
        let mut table = Table { entries: Vec::new(), nodes: vec![Junction::default()] };
        let Value::Map(tree) = tree else { return table };
        for entry in tree.iter().filter_map(|(key, entry)| Entry::of_value(&key, entry)) {
            table.add(entry);
        }
        table
    }

    fn add(&mut self, entry: Entry) {
        let mut at = 0;
        for segment in path::segments(&entry.place) {
            at = match self.nodes[at].children.get(&*segment) {
                Some(&child) => child,
                None => {
                    let child = self.nodes.len();
                    self.nodes[at].children.insert(segment.into_owned(), child);
                    self.nodes.push(Junction::default());
                    child
                }
            };
        }
        self.nodes[at].entries.push(self.entries.len());
        self.entries.push(entry);
    }

    /// In the order in which they were taken.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    pub fn find(&self, id: u64) -> Option<&Entry> {
        // Ids grow, and the tree is in their order.
        let found = self.entries.binary_search_by_key(&id, |entry| entry.id);
        found.ok().map(|index| &self.entries[index])
    }

    /// The locks on a path, above it or below it.
    ///
    /// # Complexity
    /// That of the path, and of what is found.
    pub fn around(&self, place: &str) -> Vec<&Entry> {
        let mut met = Vec::new();
        let mut at = Some(0);
        for segment in path::segments(place) {
            let Some(node) = at.and_then(|at| self.nodes.get(at)) else { break };
            met.extend(&node.entries);
            at = node.children.get(&*segment).copied();
        }
        self.below(at, &mut met);
        self.shown(met)
    }

    /// The locks whose paths an operation changes something at, above or below.
    ///
    /// # Complexity
    /// That of the operation's path, and of what is found; the elements of its list that are on the way
    /// to a lock.
    pub fn met_by(&self, op: &Op) -> Met<'_> {
        let (mut met, mut below) = (Vec::new(), Vec::new());
        let mut at = 0;
        let depth = op.path.len();
        for (index, step) in op.path.iter().enumerate() {
            let Some(node) = self.nodes.get(at) else { break };
            met.extend(&node.entries);
            let child = match step {
                Step::Key(key) => {
                    Key::decode(key).and_then(|key| node.children.get(&*key.text()).copied())
                }
                Step::Element { position, .. } => {
                    let comes_or_goes = op.old.is_none() || op.new.is_none();
                    if index + 1 == depth && comes_or_goes {
                        self.behind(node, *position, &mut met);
                        return Met { held: self.shown(met), below: Vec::new() };
                    }
                    node.children.get(&*position.to_string()).copied()
                }
            };
            match child {
                Some(child) => at = child,
                None => return Met { held: self.shown(met), below: Vec::new() },
            }
        }
        let node = self.nodes.get(at);
        met.extend(node.iter().flat_map(|node| &node.entries));
        // The metadata of what is above a lock is not what it locks.
        if let (Some(node), What::Node) = (node, op.what) {
            node.children.values().for_each(|&child| self.below(Some(child), &mut below));
        }
        Met { held: self.shown(met), below: self.shown(below) }
    }

    /// An element that comes or goes moves those behind it.
    fn behind(&self, node: &Junction, position: u64, met: &mut Vec<usize>) {
        for (name, &child) in &node.children {
            if path::position(name).is_some_and(|other| other >= position) {
                self.below(Some(child), met);
            }
        }
    }

    fn below(&self, node: Option<usize>, met: &mut Vec<usize>) {
        let mut left: Vec<usize> = node.into_iter().collect();
        while let Some(node) = left.pop().and_then(|at| self.nodes.get(at)) {
            met.extend(&node.entries);
            left.extend(node.children.values());
        }
    }

    fn shown(&self, met: Vec<usize>) -> Vec<&Entry> {
        met.into_iter().map(|index| &self.entries[index]).collect()
    }
}

/// The locks that were used last.
pub type Cache = TreeCache<Table>;

impl Cache {
    /// The locks of a committed state.
    pub fn of(&self, view: &View<'_>) -> Result<Arc<Table>> {
        self.at(view, &view.root()?, NAME, |view| Ok(Table::of_tree(&tree_of(view)?)))
    }
}

/// The locks of a state that is about to be made.
///
/// # Errors
/// `InvalidInput` when something in the tree is no lock.
pub fn read(view: &View<'_>) -> Result<Table> {
    let tree = tree_of(view)?;
    let table = Table::of_tree(&tree);
    match &tree {
        Value::Map(tree) if tree.len() == table.entries.len() => Ok(table),
        Value::Null => Ok(table),
        _ => Err(Error::invalid_input(format!(
            "`{TREE}` holds locks, and this is none; take one with `lock`"
        ))),
    }
}

/// The tree of locks of a state; `Null` when there is none.
fn tree_of(view: &View<'_>) -> Result<Value> {
    Ok(value_at(view, TREE)?.unwrap_or(Value::Null))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Transaction;
    use crate::store::Store;

    fn table(places: &[&str]) -> Table {
        let mut table = Table::of_tree(&Value::map());
        for (id, place) in (1..).zip(places) {
            let owner = "0000000000000001".parse().expect("an id");
            let owner = Record::of_this_process(owner, "", 0, false);
            let (place, name) = (Path::parse(place).expect("a path"), String::new());
            table.add(Entry { id, place, name, since_ms: 0, expires_ms: None, owner });
        }
        table
    }

    #[test]
    fn around_a_path() {
        let table = table(&["", "/a", "/a/b", "/a/b/c", "/ab", "/a/b/~1/0"]);
        let around = |place: &str| {
            let mut ids: Vec<u64> = table.around(place).iter().map(|entry| entry.id).collect();
            ids.sort_unstable();
            ids
        };
        assert_eq!(around(""), [1, 2, 3, 4, 5, 6]);
        assert_eq!(around("/a"), [1, 2, 3, 4, 6]);
        assert_eq!(around("/a/b/c/d"), [1, 2, 3, 4]);
        assert_eq!(around("/a/x"), [1, 2]);
        assert_eq!(around("/ab"), [1, 5]);
        assert_eq!(around("/a/b/~1"), [1, 2, 3, 6]);
        assert!(Table::default().around("/a").is_empty());
        assert_eq!(table.find(3).map(|entry| &*entry.place), Some("/a/b"));
        assert!(table.find(7).is_none());
    }

    fn store() -> Store {
        let store = crate::open("memory:").expect("opens");
        let tree = r#"{"m": {"x": {"y": 1}, "~/": 2}, "l": [[0], [1], [2]], "s": 1}"#;
        let tree = crate::formats::parse(tree).expect("JSON");
        store.write(|tx| tx.set("/t", &tree)).expect("sets");
        store
    }

    /// Whether an edit meets a lock, and that `Op::relation_to` agrees.
    fn meets(place: &str, edit: impl FnMut(&mut Transaction<'_>) -> Result<()>) -> bool {
        let diff = store().write(edit).expect("writes").diff;
        let table = table(&[place]);
        let is_met = |met: Met<'_>| !met.held.is_empty() || !met.below.is_empty();
        let met = diff.ops.iter().any(|op| is_met(table.met_by(op)));
        let segments: Vec<String> = path::segments(place).map(Into::into).collect();
        let apart = spinney_core::diff::Relation::Apart;
        assert_eq!(met, diff.ops.iter().any(|op| op.relation_to(&segments) != apart), "{place}");
        met
    }

    #[test]
    fn changes_at_above_and_below() {
        type Edit = fn(&mut Transaction<'_>) -> Result<()>;
        let set_y: Edit = |tx| tx.set("/t/m/x/y", &2.into());
        for (place, yes) in [
            ("", true),
            ("/t", true),
            ("/t/m/x/y", true),
            ("/t/m/x/y/z", true),
            ("/t/m/x/z", false),
            ("/t/m/xx", false),
            ("/t/l", false),
        ] {
            assert_eq!(meets(place, set_y), yes, "{place}");
        }
        assert!(meets("/t/m/none", |tx| tx.remove("/t").map(drop)));
        assert!(meets("/t/m/~0~1", |tx| tx.set("/t/m/~0~1", &3.into())));
        let moves: Edit = |tx| tx.mv("/t/m/x", "/t/n");
        for place in ["/t/m/x/y", "/t/m/x", "/t/n", "/t/n/y", "/t"] {
            assert!(meets(place, moves), "{place}");
        }
        assert!(!meets("/t/m/~0~1", moves) && !meets("/t/s", moves));
        let meta: Edit = |tx| tx.set_meta("/t/m", "note", Some("text"));
        assert!(meets("/t/m", meta) && meets("/t", meta) && !meets("/t/m/x", meta));
    }

    #[test]
    fn positions() {
        assert!(meets("/t/l/1/0", |tx| tx.insert("/t/l/0", &9.into())));
        assert!(meets("/t/l/1", |tx| tx.remove("/t/l/1").map(drop)));
        assert!(!meets("/t/l/1", |tx| tx.remove("/t/l/2").map(drop)));
        assert!(!meets("/t/l/1", |tx| tx.insert("/t/l/3", &9.into())));
        assert!(meets("/t/l/1", |tx| tx.set("/t/l/1/0", &9.into())));
        assert!(!meets("/t/l/1", |tx| tx.set("/t/l/2/0", &9.into())));
        assert!(!meets("/t/l/x", |tx| tx.remove("/t/l/0").map(drop)));
    }
}
