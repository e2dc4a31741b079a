//! Replacing the whole store by an object whose members become trees.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::backend::TreeId;
use crate::build::Build;
use crate::edit::{Body, Edit};
use crate::error::{Error, Result};
use crate::key::{EncodedKey, Key};
use crate::visit::{Container, Visitor};
use crate::without::Without;

use super::{Receiver, Transaction, encoded_key};

impl Transaction<'_> {
    /// Replaces all trees by the members of an object.
    pub(super) fn set_root(
        &mut self,
        source: impl FnOnce(&mut Receiver<'_, '_>) -> Result<()>,
    ) -> Result<()> {
        self.last_parent = None;
        self.replaces_root = true;
        self.trail.clear();
        self.trail.push((0, None));
        let kept = self.kept;
        let mut members = RootMembers {
            transaction: self,
            depth: 0,
            name: None,
            tree: 0,
            fresh: Vec::new(),
            first_ids: Vec::new(),
        };
        let built = source(&mut Receiver::of_root(&mut Without::new(&mut members, kept)));
        let RootMembers { fresh, first_ids, .. } = members;
        if let Err(error) = built {
            for (tree, first_id) in first_ids {
                self.give_back(tree, first_id)?;
            }
            return Err(error);
        }
        let names: BTreeSet<&EncodedKey> = fresh.iter().map(|(name, _)| name).collect();
        let kept: Vec<EncodedKey> = kept.iter().map(|name| Key::new(name).encoded()).collect();
        for name in self.root_names()? {
            if !names.contains(&name) && !kept.contains(&name) {
                self.remove_member(0, &name)?;
            }
        }
        for (name, encoded) in fresh {
            self.put_map_member(0, &name, Edit::Set(encoded));
        }
        self.mark_changed()
    }

    pub(super) fn root_names(&self) -> Result<Vec<EncodedKey>> {
        let mut names: Vec<EncodedKey> = Vec::new();
        let view = self.pending.view();
        let mut cursor = view.cursor(&view.root()?)?.expect("the root is a map");
        let mut buffer = Vec::new();
        while cursor.advance()? {
            names.push(cursor.key(&mut buffer)?.encoded());
        }
        if let Body::Map(map) = &self.edits.nodes[0].body {
            names.extend(map.edits.iter().map(|(name, _)| name.clone()));
        }
        names.sort_unstable();
        names.dedup();
        Ok(names)
    }
}

/// The name of a tree and its encoded root node.
type FreshTree = (EncodedKey, Arc<[u8]>);

/// Builds each member of the root in its own tree.
struct RootMembers<'t, 'b> {
    transaction: &'t mut Transaction<'b>,
    depth: usize,
    name: Option<EncodedKey>,
    tree: TreeId,
    fresh: Vec<FreshTree>,
    /// The trees that were built in, with the first id used in each.
    first_ids: Vec<(TreeId, u64)>,
}

impl<'b> RootMembers<'_, 'b> {
    fn build(&mut self) -> Build<'_, 'b> {
        let t = &mut *self.transaction;
        t.builder.resume(&mut t.pending, self.tree, 1, t.scratch)
    }

    fn refuse_scalar(&self) -> Result<()> {
        match self.depth {
            0 => Err(Error::invalid_input(
                "the store's root is an object of trees; import into a path such as `/data` instead",
            )),
            _ => Ok(()),
        }
    }

    /// A member is complete.
    fn end_member(&mut self) -> Result<()> {
        let encoded = self.build().finish()?;
        let name = self.name.take().expect("a member has a name");
        if self.fresh.iter().any(|(other, _)| *other == name) {
            return Err(crate::value::duplicate_key(Key::decode(&name).unwrap_or(Key::Text("?"))));
        }
        self.fresh.push((name, encoded));
        Ok(())
    }
}

impl Visitor for RootMembers<'_, '_> {
    fn open(&mut self, container: Container) -> Result<()> {
        if self.depth == 0 {
            if container == Container::List {
                self.refuse_scalar()?;
            }
        } else {
            self.build().open(container)?;
        }
        self.depth += 1;
        Ok(())
    }

    fn key(&mut self, key: Key<'_>) -> Result<()> {
        if self.depth > 1 {
            return self.build().key(key);
        }
        let name = encoded_key(&key.text())?;
        let t = &mut *self.transaction;
        self.tree = t.edits.member_tree_to_write(&mut t.pending, 0, &name)?;
        self.first_ids.push((self.tree, t.pending.head(self.tree)?.next_id));
        t.builder.build(&mut t.pending, self.tree, 1, t.scratch);
        self.name = Some(name);
        Ok(())
    }

    fn scalar(&mut self, scalar: crate::visit::Scalar<'_>) -> Result<()> {
        self.refuse_scalar()?;
        self.build().scalar(scalar)?;
        if self.depth == 1 { self.end_member() } else { Ok(()) }
    }

    fn close(&mut self) -> Result<()> {
        self.depth -= 1;
        if self.depth == 0 {
            return Ok(());
        }
        self.build().close()?;
        if self.depth == 1 { self.end_member() } else { Ok(()) }
    }

    fn meta(&mut self, name: &str, value: &str) -> Result<()> {
        match self.depth {
            0 => Err(Error::invalid_input("the root has no metadata; annotate a tree")),
            _ => self.build().meta(name, value),
        }
    }

    fn wants_element_ids(&self) -> bool {
        true
    }

    fn element(&mut self, id: u64) {
        self.build().element(id);
    }
}
