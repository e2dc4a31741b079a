//! Merging three trees: what one side has changed since both began, as changes of the other side.
//!
//! Maps are merged member by member; all else is as one side has it, whole. Nothing recurses.

use super::{Change, Found, Members, below, is_same_to};
use crate::error::Result;
use crate::key::{EncodedKey, Key, not_a_key};
use crate::node::NodeKind;
use crate::path::Path;
use crate::read::{Node, Reached};

/// A place that both sides have changed since they began, to different ends. What is not there is none.
#[derive(Clone, Debug)]
pub struct Conflict<'a> {
    /// As both began.
    pub base: Option<Reached<'a>>,
    /// As the side has it whose changes are told.
    pub ours: Option<Reached<'a>>,
    /// As the other one has it.
    pub theirs: Option<Reached<'a>>,
}

/// What counts as a change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Counts {
    /// Values, and what is said of them.
    #[default]
    Metadata,
    /// Values alone: it is as if nothing had metadata.
    Values,
}

/// Decides whether a place becomes what they have.
pub type Decide<'d> = dyn FnMut(&Path, &Conflict<'_>) -> Result<bool> + 'd;

/// Hands over, as changes of `ours`, what `theirs` has changed since both were `base`. Where both have
/// changed a place, to different ends, `takes_theirs` decides.
///
/// A list that both have changed is such a place: positions do not tell which elements are meant.
///
/// # Errors
/// Those of reading, and of both closures.
///
/// # Complexity
/// O(size) of all three; a container that is the same record in `theirs` as in `base` costs nothing.
pub fn merge(
    [base, ours, theirs]: [&Reached<'_>; 3],
    counts: Counts,
    found: &mut Found<'_>,
    takes_theirs: &mut Decide<'_>,
) -> Result<()> {
    let root = Conflict {
        base: Some(base.clone()),
        ours: Some(ours.clone()),
        theirs: Some(theirs.clone()),
    };
    let mut walk = Walk { path: Path::root(), levels: Vec::new(), counts, found, takes_theirs };
    walk.enter(root)?;
    while let Some(level) = walk.levels.last_mut() {
        match level.next()? {
            Some((key, member)) => {
                walk.path.push(&Key::decode(&key).ok_or_else(not_a_key)?.text());
                if !walk.enter(member)? {
                    walk.path.pop();
                }
            }
            None => {
                walk.levels.pop();
                walk.path.pop();
            }
        }
    }
    Ok(())
}

struct Walk<'a, 'f, 'g, 'd> {
    /// Where the innermost level is.
    path: Path,
    levels: Vec<Level<'a>>,
    counts: Counts,
    found: &'f mut Found<'g>,
    takes_theirs: &'f mut Decide<'d>,
}

impl<'a> Walk<'a, '_, '_, '_> {
    /// Looks at the place of the path; true when its members come next.
    fn enter(&mut self, place: Conflict<'a>) -> Result<bool> {
        let is_map = |node: &Reached<'_>| Ok(node.kind()? == NodeKind::Map);
        match &place {
            Conflict { base: Some(base), theirs: Some(theirs), .. } if theirs.is_same(base) => {
                Ok(false)
            }
            Conflict { ours: Some(ours), theirs: Some(theirs), base }
                if is_map(ours)? && is_map(theirs)? =>
            {
                let base = base.as_ref().map(|base| Ok(is_map(base)?.then_some(base)));
                let base = base.transpose()?.flatten();
                self.merge_metadata(&place, base, ours, theirs)?;
                self.levels.push(Level {
                    base: Members::of_perhaps(base, ours)?,
                    ours: Members::of(ours)?,
                    theirs: Members::of(theirs)?,
                });
                Ok(true)
            }
            Conflict { base, ours, theirs } => {
                if self.is_as(theirs, base)? || self.is_as(theirs, ours)? {
                    return Ok(false);
                }
                if self.is_as(base, ours)? || (self.takes_theirs)(&self.path, &place)? {
                    self.take_theirs(ours, theirs)?;
                }
                Ok(false)
            }
        }
    }

    fn merge_metadata(
        &mut self,
        place: &Conflict<'a>,
        base: Option<&Reached<'a>>,
        ours: &Reached<'a>,
        theirs: &Reached<'a>,
    ) -> Result<()> {
        if self.counts == Counts::Values {
            return Ok(());
        }
        let base = base.map_or_else(|| Ok(Vec::new()), |base| base.metadata())?;
        let (ours, theirs) = (ours.metadata()?, theirs.metadata()?);
        if theirs == base || theirs == ours {
            return Ok(());
        }
        if base == ours || (self.takes_theirs)(&self.path, place)? {
            (self.found)(&self.path, Change::Annotated(ours, theirs))?;
        }
        Ok(())
    }

    fn take_theirs(
        &mut self,
        ours: &Option<Reached<'a>>,
        theirs: &Option<Reached<'a>>,
    ) -> Result<()> {
        match (ours, theirs) {
            (Some(ours), Some(theirs)) => below(self.path.clone(), ours, theirs, self.found),
            (Some(ours), None) => (self.found)(&self.path, Change::Removed(ours.clone())),
            (None, Some(theirs)) => (self.found)(&self.path, Change::Added(theirs.clone())),
            (None, None) => Ok(()),
        }
    }

    /// Whether the same is at a place in two trees, or nothing in both.
    fn is_as(&self, one: &Option<Reached<'_>>, other: &Option<Reached<'_>>) -> Result<bool> {
        match (one, other) {
            (Some(one), Some(other)) => is_same_to(self.counts, one, other),
            (None, None) => Ok(true),
            _ => Ok(false),
        }
    }
}

/// Three maps whose members are being merged.
struct Level<'a> {
    base: Members<'a>,
    ours: Members<'a>,
    theirs: Members<'a>,
}

impl<'a> Level<'a> {
    /// The next key that any of them has, with what each has there.
    fn next(&mut self) -> Result<Option<(EncodedKey, Conflict<'a>)>> {
        let keys = [self.base.key(), self.ours.key(), self.theirs.key()];
        let Some(key) = keys.into_iter().flatten().min().cloned() else { return Ok(None) };
        let base = self.base.take_at(&key)?;
        let (ours, theirs) = (self.ours.take_at(&key)?, self.theirs.take_at(&key)?);
        Ok(Some((key, Conflict { base, ours, theirs })))
    }
}

impl<'a> Members<'a> {
    /// The members of a map, or none.
    fn of_perhaps(map: Option<&Reached<'a>>, other: &Reached<'a>) -> Result<Members<'a>> {
        match map {
            Some(map) => Members::of(map),
            None => Ok(Members { children: None, child: other.clone(), next: None }),
        }
    }

    /// The next member when it has this key.
    fn take_at(&mut self, key: &EncodedKey) -> Result<Option<Reached<'a>>> {
        match self.key() == Some(key) {
            true => Ok(self.take()?.map(|(_, node)| node)),
            false => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Backend;
    use crate::difference::{Metadata, PatchWriter};
    use crate::patch::{Patch, PatchReader};
    use crate::read::Stored;
    use crate::transaction::{Existing, Preview, Transaction};
    use crate::value::Map;
    use crate::view::View;
    use crate::{Memory, Value};

    /// What ours becomes, and where both have changed something.
    fn merged(base: &Value, ours: &Value, theirs: &Value, prefers: bool) -> (Value, Vec<String>) {
        let mut operations = Vec::new();
        let mut collect = |_, operation| {
            operations.push(operation);
            Ok(())
        };
        let mut conflicts = Vec::new();
        let mut reader = PatchReader::new(&mut collect);
        let mut writer = PatchWriter::new(&mut reader, Metadata::Refuse).unwrap();
        merge(
            [base, ours, theirs].map(Reached::Value).each_ref(),
            Counts::Metadata,
            &mut |path, change| writer.write(path, &change),
            &mut |path, _| {
                conflicts.push(path.to_string());
                Ok(prefers)
            },
        )
        .unwrap();
        writer.finish().unwrap();
        let backend = Memory::new();
        let mut transaction = Transaction::begin(&backend).unwrap();
        transaction.set("/t", ours).unwrap();
        transaction.patch("/t", &Patch { operations }).unwrap();
        (transaction.get("/t").unwrap().expect("it is there"), conflicts)
    }

    fn random(rng: &mut fastrand::Rng, depth: u32) -> Value {
        match rng.u8(..6) {
            0..4 if depth > 0 => {
                let keys = ["a", "b", "c"].into_iter().filter(|_| rng.bool()).collect::<Vec<_>>();
                keys.into_iter().map(|key| (key, random(rng, depth - 1))).collect::<Map>().into()
            }
            4 => vec![Value::from(rng.i64(..2)), rng.i64(..2).into()].into(),
            _ => rng.i64(..3).into(),
        }
    }

    /// The laws of a merge, on random trees: who has changed nothing takes all, who sees no change keeps all, two
    /// who did the same have it; without a conflict it does not matter who merges.
    #[test]
    fn it_keeps_the_laws_of_a_merge() {
        let mut rng = fastrand::Rng::with_seed(8);
        let mut clean = 0;
        for _ in 0..5_000 {
            let [base, ours, theirs] = [0; 3].map(|_| random(&mut rng, 3));
            assert_eq!(merged(&base, &base, &theirs, false), (theirs.clone(), Vec::new()));
            assert_eq!(merged(&base, &ours, &base, false), (ours.clone(), Vec::new()));
            assert_eq!(merged(&base, &ours, &ours, false), (ours.clone(), Vec::new()));
            let (mine, conflicts) = merged(&base, &ours, &theirs, false);
            let (yours, same) = merged(&base, &theirs, &ours, true);
            assert_eq!(conflicts, same);
            assert_eq!(mine, yours, "what one keeps, the other takes");
            clean += u32::from(conflicts.is_empty());
        }
        assert!(clean > 500, "{clean} without a conflict");
    }

    /// Maps and scalars, some with metadata, some without.
    fn set_random(
        rng: &mut fastrand::Rng,
        transaction: &mut Transaction<'_>,
        path: &str,
        depth: u32,
    ) {
        let is_map = depth > 0 && rng.u8(..3) > 0;
        let value = if is_map { Value::map() } else { rng.i64(..2).into() };
        transaction.set(path, &value).unwrap();
        for name in ["by", "why"] {
            if rng.u8(..3) == 0 {
                let text = ["x", "y"][rng.usize(..2)];
                transaction.set_meta(path, name, Some(text)).unwrap();
            }
        }
        for key in ["a", "b"] {
            if is_map && rng.bool() {
                set_random(rng, transaction, &format!("{path}/{key}"), depth - 1);
            }
        }
    }

    fn make(transaction: &mut Transaction<'_>, path: &str, change: Change<'_>) -> Result<()> {
        match change {
            Change::Added(new) | Change::Replaced(_, new) => {
                transaction.set_with(path, Existing::Any, |visitor| new.visit(visitor))
            }
            Change::Removed(_) => transaction.remove(path).map(drop),
            Change::Annotated(old, new) => {
                let gone = old.iter().map(|(name, _)| (name, None));
                let said = new.iter().map(|(name, value)| (name, Some(&**value)));
                gone.chain(said)
                    .try_for_each(|(name, value)| transaction.set_meta(path, name, value))
            }
        }
    }

    /// The same laws of stored trees, with what is said of their nodes; and without, where that does not count.
    #[test]
    fn it_keeps_the_laws_with_metadata() {
        const SIDES: [&str; 3] = ["/base", "/ours", "/theirs"];
        let mut rng = fastrand::Rng::with_seed(12);
        let mut clean = 0;
        for round in 0..2_000 {
            let backend = Memory::new();
            let mut transaction = Transaction::begin(&backend).unwrap();
            SIDES.into_iter().for_each(|side| set_random(&mut rng, &mut transaction, side, 2));
            transaction.commit(0).unwrap();
            let snapshot = backend.snapshot().unwrap();
            let key_len_max = backend.capabilities().key_len_max;
            let view = View { snapshot: &*snapshot, key_len_max };
            let [base, ours, theirs] = SIDES.map(|side| {
                let slot = view.resolve(side).unwrap().expect("it is there");
                Reached::Stored(Stored::new(view, slot).unwrap())
            });
            let [own, their] = [rng.bool(), rng.bool()];
            let merged = |counts, [base, ours, theirs]: [&Reached<'_>; 3], prefers| {
                let mut transaction = Transaction::begin(&backend).unwrap();
                let set = transaction.set_with("/merged", Existing::Any, |to| ours.visit(to));
                set.unwrap();
                let mut conflicts = Vec::new();
                let mut found = |path: &Path, change: Change<'_>| {
                    make(&mut transaction, &format!("/merged{}", &**path), change)
                };
                let mut decide = |path: &Path, _: &Conflict<'_>| {
                    conflicts.push(path.to_string());
                    Ok(prefers)
                };
                merge([base, ours, theirs], counts, &mut found, &mut decide).unwrap();
                (transaction.preview().unwrap(), conflicts)
            };
            let is_now = |merged: &Preview, expected: &Reached<'_>, counts| {
                let view = View { snapshot: &merged.state, key_len_max };
                let slot = view.resolve("/merged").unwrap().expect("it is there");
                let merged = Reached::Stored(Stored::new(view, slot).unwrap());
                is_same_to(counts, &merged, expected).unwrap()
            };
            for counts in [Counts::Metadata, Counts::Values] {
                for (sides, expected) in [
                    ([&base, &base, &theirs], &theirs),
                    ([&base, &ours, &base], &ours),
                    ([&base, &ours, &ours], &ours),
                ] {
                    let (merged, conflicts) = merged(counts, sides, own);
                    assert_eq!(conflicts, Vec::<String>::new(), "{round}");
                    assert!(is_now(&merged, expected, counts), "{round}");
                }
                let (mine, conflicts) = merged(counts, [&base, &ours, &theirs], their);
                let (yours, same) = merged(counts, [&base, &theirs, &ours], !their);
                assert_eq!(conflicts, same, "{round}");
                let view = View { snapshot: &yours.state, key_len_max };
                let slot = view.resolve("/merged").unwrap().expect("it is there");
                let yours = Reached::Stored(Stored::new(view, slot).unwrap());
                assert!(is_now(&mine, &yours, counts), "{round}: what one keeps, the other takes");
                clean += u32::from(conflicts.is_empty());
            }
        }
        assert!(clean > 200, "{clean} without a conflict");
    }
}
