//! Copying a whole state to another store, whatever the two stand on.
//!
//! The copy is one commit of the target, built ahead in bounded memory, so it is there as a whole or not
//! at all; then it is read back and compared. History does not go along: the target's begins with the
//! copy.

use std::io::{self, Write};

use sha2::{Digest, Sha256};
#[cfg(feature = "schema")]
use spinney_core::Map;
use spinney_core::backend::Revision;
use spinney_core::transaction::{Existing, Transaction};
use spinney_core::visit::StoredText;
use spinney_core::without::Without;
use spinney_core::{Container, Error, Key, Path, Result, Scalar, Value, Visitor};

use crate::datastores;
use crate::formats::{Fidelity, JsonWriter, Layout};
use crate::hash::ValueHash;
use crate::owners::RESERVED;
use crate::snapshot::Snapshot;
use crate::store::Store;

/// What was copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copied {
    /// The revision of the target that is the copy.
    pub revision: Revision,
    /// Bytes of the tagged text of everything.
    pub text_len_bytes: u64,
    /// The hash of the copy.
    pub hash: ValueHash,
}

impl Store {
    /// Makes this store, which must be empty, the copy of a state of another one: trees with the ids of
    /// their list elements, metadata, bytes, and attached schemas, wherever the two keep them. `progress`
    /// is told bytes of the text that have been read.
    ///
    /// # Errors
    /// `Denied` to who may not read all of the other store; `AlreadyExists` when this store is not empty; `Corrupted` when what was stored does not read
    /// back as the same; `InvalidInput` when the other store is a JSON file whose root is no object;
    /// those of reading there and of writing here.
    ///
    /// # Durability
    /// That of the store's writes. Whatever ends it before, this store stays empty, and the
    /// next writer gives back what was built ahead. Where trees are kept apart, those are there that
    /// were complete, each with its schemas.
    ///
    /// # Complexity
    /// O(size), three times: reading, writing, reading back; memory for buffers, and on backends that
    /// hold everything in memory for that.
    pub fn copy_from(&self, from: &Snapshot, progress: &mut dyn FnMut(u64)) -> Result<Copied> {
        from.require_whole()?;
        let schemas = Schemas::of(from)?;
        let copied = match self.forest() {
            Some(_) => {
                schemas.refuse_layers()?;
                self.copy_trees(from, &schemas, progress)?
            }
            None => {
                let is_empty = |tx: &Transaction<'_>| refuse_content(tx.count("")?);
                let copied = self.copy_node("", from, &schemas, &is_empty, progress)?;
                let (hash, _) = read_text("", &self.read()?, &schemas, &mut Nobody, &mut |_| ())?;
                if hash != copied.hash {
                    return Err(differs());
                }
                copied
            }
        };
        let copy = self.read()?;
        schemas.check(&copy)?;
        Ok(Copied { hash: copy.hash("")?.ok_or_else(differs)?, ..copied })
    }

    /// As [`Store::copy_from`], where trees are kept apart: one commit for each of them.
    fn copy_trees(
        &self,
        from: &Snapshot,
        schemas: &Schemas,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Copied> {
        refuse_content(self.read()?.count("")?)?;
        let mut sum = Copied { revision: 0, text_len_bytes: 0, hash: ValueHash::of(&Value::Null) };
        for tree in from.list("", None, None)?.unwrap_or_default() {
            if schemas.left_out.contains(&&*tree.segment) {
                continue;
            }
            let path = Path::root().child(&tree.segment);
            let before = sum.text_len_bytes;
            let copied = self.holding_or_new(&path)?.copy_node(
                &path,
                from,
                schemas,
                &|tx| refuse_content(Some(u64::from(tx.exists(&path)?))),
                &mut |bytes| progress(before + bytes),
            )?;
            sum.revision = sum.revision.max(copied.revision);
            sum.text_len_bytes += copied.text_len_bytes;
            if self.read()?.hash(&path)? != Some(copied.hash) {
                return Err(differs());
            }
        }
        Ok(sum)
    }

    /// Copies a node to the same path with the schemas in it, if `check` lets it, as one commit.
    fn copy_node(
        &self,
        path: &str,
        from: &Snapshot,
        schemas: &Schemas,
        check: &dyn Fn(&Transaction<'_>) -> Result<()>,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Copied> {
        let mut read = None;
        let committed = self.write(|transaction| {
            check(transaction)?;
            transaction.set_with(path, Existing::Any, |target| {
                read = Some(read_text(path, from, schemas, target, progress)?);
                Ok(())
            })?;
            if path.is_empty() && keeps_datastores(from) && self.has_several_trees() {
                datastores::carry_candidate(transaction, from)?;
            }
            schemas.attach(transaction, self.base_path(), path)
        })?;
        let (hash, text_len_bytes) = read.expect("the write has succeeded");
        Ok(Copied { revision: committed.revision, text_len_bytes, hash })
    }
}

/// What of the root does not go as content: it is of the store, or names its revisions.
fn left_out(from: &Snapshot) -> Vec<&'static str> {
    let mut names = RESERVED.to_vec();
    names.extend(keeps_datastores(from).then_some(datastores::NAME));
    names
}

/// Whether datastores may be noted in a state; a document may have a member of that name, which is content.
fn keeps_datastores(from: &Snapshot) -> bool {
    from.base_path().is_empty()
}

/// Reads a node as text and hands it to whoever builds it; its hash and its length.
fn read_text(
    path: &str,
    from: &Snapshot,
    schemas: &Schemas,
    target: &mut dyn Visitor,
    progress: &mut dyn FnMut(u64),
) -> Result<(ValueHash, u64)> {
    let counted = Counted { hash: Sha256::new(), len: 0, progress };
    let text = JsonWriter::new(counted, Layout::Compact, Fidelity::Tagged);
    let mut both = Both { target, text };
    match path.is_empty() {
        true => from.visit(path, &mut Without::new(&mut both, &schemas.left_out))?,
        false => from.visit(path, &mut both)?,
    };
    let counted = both.text.finish()?;
    Ok((ValueHash::from_bytes(counted.hash.finalize().into()), counted.len))
}

/// The schemas that go along, and what of the root does not go as content.
struct Schemas {
    #[cfg(feature = "schema")]
    entries: Vec<crate::schemas::Carried>,
    left_out: Vec<&'static str>,
}

#[cfg(feature = "schema")]
impl Schemas {
    fn of(from: &Snapshot) -> Result<Schemas> {
        use crate::schemas::{NAME, TREE, carried_by};
        let entries = carried_by(from)?;
        let mut left_out = left_out(from);
        // A document may have a member of that name, which is content.
        match !from.base_path().is_empty() && from.node(TREE)?.is_some() {
            false => left_out.push(NAME),
            true if entries.is_empty() => {}
            true => {
                return Err(Error::invalid_input(format!(
                    "the document has schemas, and besides a member `{NAME}`, in which other stores keep theirs; rename it"
                )));
            }
        }
        Ok(Schemas { entries, left_out })
    }

    fn attach(&self, transaction: &mut Transaction<'_>, base: &str, path: &str) -> Result<()> {
        crate::schemas::attach(transaction, base, path, &self.entries)
    }

    /// Refuses those of layers, for a store whose trees are kept apart.
    fn refuse_layers(&self) -> Result<()> {
        match self.entries.iter().any(|(_, entry)| crate::schemas::is_of_layers(entry)) {
            false => Ok(()),
            true => Err(Error::unsupported(
                "a schema judges several layers, and this store keeps each tree apart; remove the schema, or copy to another store",
            )),
        }
    }

    /// Refuses a copy that lacks any.
    fn check(&self, copy: &Snapshot) -> Result<()> {
        let copied = crate::schemas::carried_by(copy)?;
        let has = |entry: &Map| copied.iter().any(|(_, other)| other == entry);
        let has_all = self.entries.iter().all(|(_, entry)| has(entry));
        if has_all { Ok(()) } else { Err(differs()) }
    }
}

/// Where nothing judges them, they are content.
#[cfg(not(feature = "schema"))]
impl Schemas {
    fn refuse_layers(&self) -> Result<()> {
        Ok(())
    }

    fn of(from: &Snapshot) -> Result<Schemas> {
        Ok(Schemas { left_out: left_out(from) })
    }

    fn attach(&self, _: &mut Transaction<'_>, _base: &str, _path: &str) -> Result<()> {
        Ok(())
    }

    fn check(&self, _copy: &Snapshot) -> Result<()> {
        Ok(())
    }
}

fn differs() -> Error {
    Error::corrupted(
        "the copy does not read back as what was copied; do not use it, and copy again",
    )
}

fn refuse_content(members: Option<u64>) -> Result<()> {
    match members {
        Some(0) => Ok(()),
        _ => Err(Error::already_exists("the target is not empty; name a new store")),
    }
}

/// Hands what it is told to the target, and prints it to be hashed.
struct Both<'t, W: Write> {
    target: &'t mut dyn Visitor,
    text: JsonWriter<W>,
}

impl<W: Write> Visitor for Both<'_, W> {
    fn open(&mut self, container: Container) -> Result<()> {
        self.text.open(container)?;
        self.target.open(container)
    }

    fn key(&mut self, key: Key<'_>) -> Result<()> {
        self.text.key(key)?;
        self.target.key(key)
    }

    fn scalar(&mut self, scalar: Scalar<'_>) -> Result<()> {
        self.text.scalar(scalar)?;
        self.target.scalar(scalar)
    }

    fn close(&mut self) -> Result<()> {
        self.text.close()?;
        self.target.close()
    }

    fn meta(&mut self, name: &str, value: &str) -> Result<()> {
        self.text.meta(name, value)?;
        self.target.meta(name, value)
    }

    fn stored_text(&mut self, text: StoredText<'_>) -> Result<()> {
        self.scalar(Scalar::String(text.check()?))
    }

    fn wants_element_ids(&self) -> bool {
        self.target.wants_element_ids()
    }

    fn element(&mut self, id: u64) {
        self.target.element(id);
    }
}

/// Builds nothing.
struct Nobody;

impl Visitor for Nobody {
    fn open(&mut self, _container: Container) -> Result<()> {
        Ok(())
    }

    fn key(&mut self, _key: Key<'_>) -> Result<()> {
        Ok(())
    }

    fn scalar(&mut self, _scalar: Scalar<'_>) -> Result<()> {
        Ok(())
    }

    fn close(&mut self) -> Result<()> {
        Ok(())
    }

    fn meta(&mut self, _name: &str, _value: &str) -> Result<()> {
        Ok(())
    }
}

/// Takes a text and keeps its hash.
struct Counted<'p> {
    hash: Sha256,
    len: u64,
    progress: &'p mut dyn FnMut(u64),
}

impl Write for Counted<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.hash.update(bytes);
        self.len += bytes.len() as u64;
        (self.progress)(self.len);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use spinney_core::ErrorKind;
    use spinney_core::value::ValueBuilder;

    use super::*;

    /// Notes the ids of list elements.
    #[derive(Default)]
    struct Ids(ValueBuilder, Vec<u64>);

    impl Visitor for Ids {
        fn open(&mut self, container: Container) -> Result<()> {
            self.0.open(container)
        }
        fn key(&mut self, key: Key<'_>) -> Result<()> {
            self.0.key(key)
        }
        fn scalar(&mut self, scalar: Scalar<'_>) -> Result<()> {
            self.0.scalar(scalar)
        }
        fn close(&mut self) -> Result<()> {
            self.0.close()
        }
        fn meta(&mut self, _name: &str, _value: &str) -> Result<()> {
            Ok(())
        }
        fn wants_element_ids(&self) -> bool {
            true
        }
        fn element(&mut self, id: u64) {
            self.1.push(id);
        }
    }

    fn ids(store: &Store) -> Vec<u64> {
        let mut ids = Ids::default();
        store.read().and_then(|snapshot| snapshot.visit("", &mut ids)).expect("it reads");
        ids.1
    }

    fn numbers(len: u64) -> Value {
        (0..len).map(Value::from).collect::<Vec<_>>().into()
    }

    #[test]
    fn a_copy_has_everything_but_history() -> Result<()> {
        let (from, to) = (crate::open("memory:")?, crate::open("memory:")?);
        from.write(|tx| {
            tx.set("/paged", &numbers(3_000))?;
            tx.set("/inline", &numbers(5))?;
            tx.set("/bytes", &Value::Bytes(vec![0, 255]))?;
            tx.set_meta("/inline/3", "note", Some("odd"))
        })?;
        from.write(|tx| {
            tx.mv("/paged/7", "/paged/2900")?;
            tx.remove("/inline/1")?;
            tx.insert("/inline/0", &9.into()).map(drop)
        })?;
        let mut told = 0;
        let copied = to.copy_from(&from.read()?, &mut |len| told = len)?;
        assert_eq!((copied.revision, copied.text_len_bytes), (1, told));
        let (source, copy) = (from.read()?, to.read()?);
        assert_eq!((source.hash("")?, copy.hash("")?), (Some(copied.hash), Some(copied.hash)));
        assert_eq!(ids(&from), ids(&to));
        assert_eq!(copy.meta("/inline/3")?, source.meta("/inline/3")?);
        assert!(copy.check()?.is_sound());
        let refused = to.copy_from(&source, &mut |_| ()).expect_err("it is not empty");
        assert_eq!(refused.kind(), ErrorKind::AlreadyExists);
        to.write(|tx| tx.insert("/paged/0", &7.into()))?;
        assert!(to.read()?.check()?.is_sound());
        Ok(())
    }

    #[cfg(feature = "schema")]
    #[test]
    fn schemas_go_along_wherever_they_are_kept() -> Result<()> {
        use crate::schemas::SchemaOptions;
        let folder = tempfile::tempdir().expect("a folder");
        let file = |name: &str| format!("json:{}", folder.path().join(name).display());
        let text = crate::formats::parse(r#"{"type": "string"}"#)?;
        let first = crate::open("memory:")?;
        first.write(|tx| tx.set("/people/ada", &"Ada".into()))?;
        for path in ["/people/ada", "/people/bob", "/other"] {
            first.set_schema(path, &text, SchemaOptions::default())?;
        }
        let attached = |store: &Store| -> Result<Vec<String>> {
            Ok(store.schemas()?.into_iter().map(|entry| String::from(&*entry.path)).collect())
        };
        let stores = [first, crate::open(&file("a.json"))?, crate::open("memory:")?];
        for pair in stores.windows(2) {
            pair[1].copy_from(&pair[0].read()?, &mut |_| ())?;
            assert_eq!(attached(&pair[1])?, ["/people/ada", "/people/bob", "/other"]);
            let refused = pair[1].write(|tx| tx.set("/people/ada", &1.into())).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::Invalid);
            assert!(pair[1].read()?.check()?.is_sound());
        }
        assert_eq!(stores[1].read()?.list("", None, None)?.map(|all| all.len()), Some(1));
        assert_eq!(stores[0].read()?.hash("")?, stores[2].read()?.hash("")?);
        // One that is attached later takes the place of none.
        stores[2].set_schema("/new", &text, SchemaOptions::default())?;
        assert_eq!(attached(&stores[2])?.len(), 4);
        Ok(())
    }

    #[test]
    fn an_empty_store_copies() -> Result<()> {
        let (from, to) = (crate::open("memory:")?, crate::open("memory:")?);
        assert_eq!(to.copy_from(&from.read()?, &mut |_| ())?.revision, 0);
        Ok(())
    }
}
