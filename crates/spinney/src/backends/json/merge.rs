//! What a person's editor has made of the file while it is open: taken over as a new revision, as
//! far as it does not meet commits that the file lacks.

use spinney_core::transaction::Transaction;
use spinney_core::value::ValueBuilder;
use spinney_core::view::View;
use spinney_core::{ErrorKind, Path, Result, Value};

use super::document::{Place, in_file};
use super::notes::{Content, Note};
use super::side::{Annotate, Side};
use super::store::{Printed, Store};
use crate::formats::{self, Dialect};
use spinney_core::backend::{Backend, Snapshot};

/// One difference between two values.
#[derive(Clone, Debug, PartialEq)]
enum Edit {
    Set(Value),
    Remove,
    /// Another middle part of a list: from a position, so many out, these in.
    Splice(usize, usize, Vec<Value>),
}

impl Store {
    /// Takes over what stands in the file instead of the known content.
    pub fn take_over(&self, printed: &mut Printed, text: Option<&[u8]>) -> Result<()> {
        self.files.settle()?;
        let known = self.tail().content.clone();
        let Some(text) = text else {
            log::warn!("`{}` is gone; it is printed anew", self.files.file.display());
            printed.on_disk = Content::new(b"", Vec::new(), 0);
            (printed.base, printed.must_print) = (None, true);
            return Ok(());
        };
        let side = Side::parse(&known.side)?;
        let theirs = parse(text, &side).map_err(|error| in_file(&self.files.file, error))?;
        printed.on_disk = Content::new(text, known.side.clone(), known.revision);
        let Some(base) = &printed.base else {
            // It is about to be printed from scratch already; what stood there is kept beside.
            return self.keep_aside(printed, text, "the file changed again");
        };
        let key_len_max = self.key_len_max();
        let value = |snapshot: &dyn Snapshot| self.place.value(snapshot, key_len_max);
        let before = value(&**base)?;
        let _guard = self.write_guard(0)?;
        let edits = differences(&before, &theirs);
        let now = self.memory.snapshot()?;
        let own = differences(&before, &value(&*now)?);
        if edits.is_empty() {
            return self.note_content(printed.on_disk.clone());
        }
        let meets = edits.iter().find(|(path, edit)| {
            own.iter().any(|(other, same)| {
                let nested = is_below(path, other) || is_below(other, path);
                nested && !(path == other && edit == same)
            })
        });
        if let Some((path, _)) = meets {
            let what = format!("{path} was changed in the file and in the store");
            return self.keep_aside(printed, text, &what);
        }

        let is_all = self.tail().revision == known.revision;
        let mut transaction = Transaction::begin(self)?;
        transaction.set_base_path(self.place.0.clone());
        edits.iter().try_for_each(|(path, edit)| apply(&mut transaction, path, edit))?;
        let content = Content { revision: known.revision + 1, ..printed.on_disk.clone() };
        let announce = || match is_all {
            true => self.tail().note(&Note::Announced(content.clone()), self.group.synced()),
            false => Ok(()),
        };
        match self.place.commit(transaction, fastrand::u128(..), announce) {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::Invalid => {
                return self.keep_aside(printed, text, error.context());
            }
            Err(error) => return Err(error),
        }
        if !is_all {
            // Both together stand in no text yet.
            (printed.base, printed.must_print) = (None, true);
            return Ok(());
        }
        let snapshot = self.memory.snapshot()?;
        let side = self.place.side(&*snapshot, key_len_max, text.len())?.print()?;
        let content = Content { side, ..content };
        printed.base = Some(snapshot);
        printed.on_disk = content.clone();
        self.tail().take_diffs();
        self.note_content(content)
    }

    fn note_content(&self, content: Content) -> Result<()> {
        let mut tail = self.tail();
        tail.content = content.clone();
        tail.note(&Note::Replaced(content), self.group.synced())?;
        drop(tail);
        self.sync_all()
    }

    /// The store's state takes the place of the file, whose text is kept under another name.
    fn keep_aside(&self, printed: &mut Printed, text: &[u8], what: &str) -> Result<()> {
        let aside = self.files.keep_aside(text)?;
        log::warn!(
            "`{}`: {what}; what the store has is printed, the edited file is kept as `{}`",
            self.files.file.display(),
            aside.display()
        );
        (printed.base, printed.must_print) = (None, true);
        Ok(())
    }
}

impl Place {
    fn value(&self, snapshot: &dyn Snapshot, key_len_max: usize) -> Result<Value> {
        let mut builder = ValueBuilder::default();
        self.visit(&View { snapshot, key_len_max }, &mut builder)?;
        Ok(builder.finish().expect("a walk gives one value"))
    }
}

fn parse(text: &[u8], side: &Side) -> Result<Value> {
    let mut builder = ValueBuilder::default();
    formats::read(text, Dialect::Json, &mut Annotate::new(&mut builder, side))?;
    Ok(builder.finish().expect("the reader gives one value"))
}

/// Whether a path is another one or leads below it.
fn is_below(path: &str, above: &str) -> bool {
    path.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// What makes `after` of `before`; no path leads below another one.
fn differences(before: &Value, after: &Value) -> Vec<(Path, Edit)> {
    let mut found = Vec::new();
    let mut pending = vec![(Path::root(), before, after)];
    while let Some((path, before, after)) = pending.pop() {
        match (before, after) {
            (Value::Map(old), Value::Map(new)) => {
                for (key, old) in old.iter() {
                    match new.get(&key) {
                        Some(new) => pending.push((path.child(&key), old, new)),
                        None => found.push((path.child(&key), Edit::Remove)),
                    }
                }
                for (key, new) in new.iter().filter(|(key, _)| old.get(key).is_none()) {
                    found.push((path.child(&key), Edit::Set(new.clone())));
                }
            }
            (Value::List(old), Value::List(new)) => {
                let same = |(old, new): &(&Value, &Value)| old == new;
                let first = old.iter().zip(new.iter()).take_while(same).count();
                let rest = (old.len() - first).min(new.len() - first);
                let ends = old.iter().rev().zip(new.iter().rev()).take(rest);
                let last = ends.take_while(same).count();
                let (out, into) = (old.len() - first - last, new.len() - first - last);
                if out == into {
                    for at in first..first + out {
                        pending.push((path.child(at), &old[at], &new[at]));
                    }
                } else {
                    let into = new[first..first + into].to_vec();
                    found.push((path, Edit::Splice(first, out, into)));
                }
            }
            _ if before != after => found.push((path, Edit::Set(after.clone()))),
            _ => {}
        }
    }
    found
}

fn apply(transaction: &mut Transaction<'_>, path: &Path, edit: &Edit) -> Result<()> {
    match edit {
        Edit::Set(value) => transaction.set(path, value),
        Edit::Remove => transaction.remove(path).map(drop),
        Edit::Splice(first, out, into) => {
            let place = path.child(first);
            (0..*out).try_for_each(|_| transaction.remove(&place).map(drop))?;
            into.iter().rev().try_for_each(|value| transaction.insert(&place, value))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::OpenOptions;

    #[test]
    fn differences_lead_from_one_value_to_the_other() {
        let texts = [
            "{\"a\": [1, 2, 3], \"b\": {\"c\": null}}",
            "{\"a\": [1, 3], \"b\": {\"c\": 1, \"d\": []}}",
            "{\"a\": [0, 1, 2, 3, 4]}",
            "{\"b\": {\"c\": {\"x\": 1}}, \"a\": [1, [2], 3]}",
            "{\"a\": []}",
        ];
        for from in texts {
            for to in texts {
                let (from, to) = (formats::parse(from).unwrap(), formats::parse(to).unwrap());
                let store = OpenOptions::new().open("memory:").unwrap();
                store.write(|tx| tx.set("", &from)).unwrap();
                let edits = differences(&from, &to);
                store
                    .write(|tx| edits.iter().try_for_each(|(path, edit)| apply(tx, path, edit)))
                    .unwrap();
                assert_eq!(store.read().unwrap().get("").unwrap(), Some(to));
            }
        }
    }
}
