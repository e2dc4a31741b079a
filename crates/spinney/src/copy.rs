//! Copying a whole state to another store, whatever the two stand on.
//!
//! The copy is one commit of the target, built ahead in bounded memory, so it is there as a whole or not
//! at all; then it is read back and compared. History does not go along: the target's begins with the
//! copy.

use std::io::{self, Write};

use sha2::{Digest, Sha256};
use spinney_core::backend::Revision;
use spinney_core::transaction::{Existing, Transaction};
use spinney_core::visit::StoredText;
use spinney_core::without::Without;
use spinney_core::{Container, Error, Key, Path, Result, Scalar, Value, Visitor};

use crate::formats::{Fidelity, JsonWriter, Layout};
use crate::hash::ValueHash;
use crate::owners::RESERVED;
use crate::snapshot::Snapshot;
use crate::store::{Durability, Store};

/// What was copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copied {
    /// The revision of the target that is the copy.
    pub revision: Revision,
    /// Bytes of the tagged text of everything.
    pub text_len_bytes: u64,
    /// The hash of both.
    pub hash: ValueHash,
}

impl Store {
    /// Makes this store, which must be empty, the copy of a state of another one: trees with the ids of
    /// their list elements, metadata, bytes, attached schemas. `progress` is told bytes of the text that
    /// have been read.
    ///
    /// # Errors
    /// `Denied` to who may not read all of the other store; `AlreadyExists` when this store is not empty; `Corrupted` when what was stored does not read
    /// back as the same; `InvalidInput` when the other store is a JSON file whose root is no object;
    /// those of reading there and of writing here.
    ///
    /// # Durability
    /// Durable, however the store was opened. Whatever ends it before, this store stays empty, and the
    /// next writer gives back what was built ahead. Where trees are kept apart, those are there that
    /// were complete; schemas stay behind.
    ///
    /// # Complexity
    /// O(size), three times: reading, writing, reading back; memory for buffers, and on backends that
    /// hold everything in memory for that.
    pub fn copy_from(&self, from: &Snapshot, progress: &mut dyn FnMut(u64)) -> Result<Copied> {
        from.require_whole()?;
        if self.forest().is_some() {
            return self.copy_trees(from, progress);
        }
        let copied = self.copy_node("", from, &|tx| refuse_content(tx.count("")?), progress)?;
        if self.read()?.hash("")? != Some(copied.hash) {
            return Err(differs());
        }
        Ok(copied)
    }

    /// As [`Store::copy_from`], where trees are kept apart: one commit for each of them.
    fn copy_trees(&self, from: &Snapshot, progress: &mut dyn FnMut(u64)) -> Result<Copied> {
        refuse_content(self.read()?.count("")?)?;
        let mut sum = Copied { revision: 0, text_len_bytes: 0, hash: ValueHash::of(&Value::Null) };
        for tree in from.list("", None, None)?.unwrap_or_default() {
            // Schemas are attached to each tree by itself.
            #[cfg(feature = "schema")]
            if tree.segment == crate::schemas::NAME {
                continue;
            }
            if RESERVED.contains(&&*tree.segment) {
                continue;
            }
            let path = Path::root().child(&tree.segment);
            let before = sum.text_len_bytes;
            let copied = self.copy_node(
                &path,
                from,
                &|tx| refuse_content(Some(u64::from(tx.exists(&path)?))),
                &mut |bytes| progress(before + bytes),
            )?;
            sum.revision = sum.revision.max(copied.revision);
            sum.text_len_bytes += copied.text_len_bytes;
            if self.read()?.hash(&path)? != Some(copied.hash) {
                return Err(differs());
            }
        }
        sum.hash = self.read()?.hash("")?.ok_or_else(differs)?;
        Ok(sum)
    }

    /// Copies a node to the same path, if `check` lets it, as one commit.
    fn copy_node(
        &self,
        path: &str,
        from: &Snapshot,
        check: &dyn Fn(&Transaction<'_>) -> Result<()>,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Copied> {
        let mut read = None;
        let committed = self.write_with(Durability::Durable, |transaction| {
            check(transaction)?;
            transaction.set_with(path, Existing::Any, |target| {
                let counted = Counted { hash: Sha256::new(), len: 0, progress: &mut *progress };
                let text = JsonWriter::new(counted, Layout::Compact, Fidelity::Tagged);
                let mut both = Both { target, text };
                match path.is_empty() {
                    true => from.visit(path, &mut Without::new(&mut both, RESERVED))?,
                    false => from.visit(path, &mut both)?,
                };
                let counted = both.text.finish()?;
                let hash = ValueHash::from_bytes(counted.hash.finalize().into());
                read = Some((hash, counted.len));
                Ok(())
            })
        })?;
        let (hash, text_len_bytes) = read.expect("the write has succeeded");
        Ok(Copied { revision: committed.revision, text_len_bytes, hash })
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

    #[test]
    fn an_empty_store_copies() -> Result<()> {
        let (from, to) = (crate::open("memory:")?, crate::open("memory:")?);
        assert_eq!(to.copy_from(&from.read()?, &mut |_| ())?.revision, 0);
        Ok(())
    }
}
