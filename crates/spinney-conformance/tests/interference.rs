//! Nobody learns of what is hidden from them: two stores that differ in nothing else answer a principal the
//! same, in everything.
//!
//! `SPINNEY_TEST_SEED` is the first seed, and `SPINNEY_TEST_PAIRS` says how many pairs of stores there are.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use spinney::access::{
    AccessRule, AccessRules, Effect, Permissions, Principal, Right, Rule, Standing, Subject,
};
use spinney::diff::Diff;
use spinney::difference::Change;
use spinney::expand::Contained;
use spinney::feed::Event;
use spinney::formats::{Fidelity, Layout, print};
use spinney::layers::{Layer, Stack};
use spinney::patch::Patch;
use spinney::query::{Query, QueryLimits};
use spinney::read::Node as _;
use spinney::value::ValueBuilder;
use spinney::{
    Committed, Existing, Expect, Expected, LockOptions, Map, NodeKind, OpenOptions, Path, Result,
    Snapshot, Store, Value,
};
use spinney_core::Memory;

const NAMES: [&str; 5] = ["a", "b", "c", "0", "1"];
const DEPTH_MAX: usize = 4;

/// What a layer may say of a node.
const MARKS: [&str; 5] = ["deleted", "replaces", "locked", "marks-below", "replaces marks-below"];

/// A commit that hides in both stores, so that revisions stay alike.
const HIDDEN: &str = "/hidden";

#[test]
fn two_stores_that_differ_in_what_is_hidden_answer_the_same() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let first = number("SPINNEY_TEST_SEED").unwrap_or(0);
    for seed in first..first + number("SPINNEY_TEST_PAIRS").unwrap_or(60) {
        println!("seed {seed}");
        let mut pair = Pair::new(seed);
        for step in 0..12 {
            pair.step(&format!("seed {seed}, step {step}"));
        }
    }
}

/// Two stores, and what the principal may do in both.
struct Pair {
    random: Rng,
    permissions: Permissions,
    stores: [Store; 2],
}

impl Pair {
    fn new(seed: u64) -> Pair {
        let mut random = Rng::with_seed(seed);
        let rules = random_rules(&mut random);
        let ann = Principal::new("ann");
        let permissions = rules.permissions(&ann);
        // Small pages, so that values are in pages and diffs refer to them.
        let open = || OpenOptions::new().over(Arc::new(Memory::with_sizes(256, 64, 1 << 30)), None);
        let mut pair = Pair { random, permissions, stores: [open(), open()] };
        for store in &pair.stores {
            store.set_access_rules(&rules, true).expect("rules");
        }
        for name in NAMES {
            pair.set_alike(&format!("/{name}"));
        }
        pair
    }

    fn step(&mut self, context: &str) {
        match self.random.u8(..8) {
            0 => self.set_hidden(),
            1 | 2 => {
                let path = self.random_path_in_maps();
                self.set_alike(&path);
            }
            _ => self.try_both(context),
        }
        let [one, other] = &self.stores;
        let (one, other) = (seen(one), seen(other));
        let [one_between, other_between] = self.stores.each_ref().map(seen_between);
        assert_eq!(one_between, other_between, "{context}");
        if one != other {
            let differing = one.lines().zip(other.lines()).find(|(one, other)| one != other);
            panic!("{context}: {differing:?}");
        }
    }

    /// The owner sets a path in both, to values of which the principal sees the same.
    fn set_alike(&mut self, path: &str) {
        let value = random_value(&mut self.random, 0);
        let standing = standing(&self.permissions, path);
        let mut values = [value.clone(), value];
        for value in &mut values {
            if standing.may_some(Right::Read) {
                change_hidden(&mut self.random, &self.permissions, &standing, value);
            } else {
                *value = random_value(&mut self.random, 0);
            }
        }
        let count = self.random.u64(..);
        let marks = (self.random.u8(..3) == 0).then(|| MARKS[self.random.usize(..MARKS.len())]);
        for (at, (store, value)) in self.stores.iter().zip(&values).enumerate() {
            store
                .write(|tx| {
                    tx.set(HIDDEN, &vec![count.into(), (at as u64).into()].into())?;
                    tx.set(path, value)?;
                    let Some(marks) = marks else { return Ok(()) };
                    // What layers say counts where all above say so.
                    for (end, _) in path.match_indices('/').skip(1) {
                        tx.set_meta(&path[..end], "@layer", Some("marks-below locks-below"))?;
                    }
                    tx.set_meta(path, "@layer", Some(marks))
                })
                .expect("the owner writes");
        }
    }

    /// Something differs that the principal cannot see.
    fn set_hidden(&mut self) {
        let count = self.random.u64(..);
        for (at, store) in self.stores.iter().enumerate() {
            let value = vec![Value::from(count); self.random.usize(1..60) + at];
            store.write(|tx| tx.set(HIDDEN, &value.clone().into())).expect("the owner writes");
        }
    }

    /// The principal tries something in both.
    fn try_both(&mut self, context: &str) {
        let deed = Deed::random(&mut self.random);
        let revision = self.stores[0].read().and_then(|state| state.revision()).expect("reads");
        let tried = self.stores.each_ref().map(|store| {
            let ann = store.as_principal(Principal::new("ann"));
            told(&deed.try_in(&ann, revision), store)
        });
        assert_eq!(tried[0], tried[1], "{context}: {deed:?}");
    }

    /// A path whose way is alike in both: maps that the principal sees.
    fn random_path_in_maps(&mut self) -> String {
        let path = random_path(&mut self.random);
        let ann = self.stores[0].as_principal(Principal::new("ann"));
        let state = ann.read().expect("a state");
        let mut ends = path.match_indices('/').map(|(at, _)| at).skip(1);
        match ends.find(|&end| state.kind(&path[..end]).expect("a kind") != Some(NodeKind::Map)) {
            Some(_) => path[..2].to_owned(),
            None => path,
        }
    }
}

fn random_path(random: &mut Rng) -> String {
    let mut path = String::new();
    for _ in 0..random.usize(1..=3) {
        write!(path, "/{}", NAMES[random.usize(..NAMES.len())]).expect("writes");
    }
    path
}

fn random_rules(random: &mut Rng) -> AccessRules {
    let hidden =
        Rule { path: Path::parse(HIDDEN).expect("a path"), effect: Effect::Deny(Right::Read) };
    let mut rules = vec![AccessRule { subject: Subject::Everyone, rule: hidden }];
    for _ in 0..random.usize(1..7) {
        let mut path = Path::root();
        for _ in 0..random.usize(..4) {
            match random.u8(..4) {
                0 => path.push("*"),
                _ => path.push(NAMES[random.usize(..NAMES.len())]),
            }
        }
        let right = Right::ALL[random.usize(..2)];
        let effect = if random.u8(..3) == 0 { Effect::Deny(right) } else { Effect::Allow(right) };
        let rule = Rule { path, effect };
        rules.push(AccessRule { subject: Subject::User("ann".into()), rule });
    }
    AccessRules(rules)
}

fn random_value(random: &mut Rng, depth: usize) -> Value {
    match random.u8(..if depth < DEPTH_MAX { 8 } else { 2 }) {
        0 => random.u64(..5).into(),
        1 => "x".repeat(random.usize(..150)).into(),
        2 | 3 => {
            let len = random.usize(..4);
            (0..len).map(|_| random_value(random, depth + 1)).collect::<Vec<_>>().into()
        }
        _ => {
            let mut map = Map::new();
            for _ in 0..random.usize(..5) {
                map.insert(NAMES[random.usize(..NAMES.len())], random_value(random, depth + 1));
            }
            map.into()
        }
    }
}

fn standing(permissions: &Permissions, path: &str) -> Standing {
    let segments = spinney::path::segments(path);
    segments.fold(permissions.root().clone(), |at, name| permissions.member(&at, &name))
}

/// Puts something else wherever the principal sees nothing.
fn change_hidden(random: &mut Rng, permissions: &Permissions, at: &Standing, value: &mut Value) {
    if at.may_all(Right::Read) {
        return;
    }
    if !at.may(Right::Read) && !matches!(value, Value::Map(_)) {
        // Any other that is no map is hidden as well.
        *value = random_other(random);
        return;
    }
    match value {
        Value::Map(map) => {
            let mut changed = Map::new();
            for name in NAMES {
                let below = permissions.member(at, name);
                match map.get(name) {
                    Some(member)
                        if below.may(Right::Read)
                            || below.may_some(Right::Read) && is_map(member) =>
                    {
                        let mut member = member.clone();
                        change_hidden(random, permissions, &below, &mut member);
                        changed.insert(name, member);
                    }
                    _ if below.may(Right::Read) || random.bool() => {}
                    _ if below.may_some(Right::Read) => {
                        changed.insert(name, random_other(random));
                    }
                    _ => {
                        changed.insert(name, random_value(random, 2));
                    }
                }
            }
            *map = changed;
        }
        Value::List(list) => {
            let element = permissions.element(at);
            if element.may(Right::Read) {
                let mut elements: Vec<Value> = list.iter().cloned().collect();
                for value in &mut elements {
                    change_hidden(random, permissions, &element, value);
                }
                *value = elements.into();
            } else {
                let len = random.usize(..40);
                *value = (0..len).map(|_| random_value(random, 3)).collect::<Vec<_>>().into();
            }
        }
        _ => {}
    }
}

fn is_map(value: &Value) -> bool {
    matches!(value, Value::Map(_))
}

/// A value that is no map.
fn random_other(random: &mut Rng) -> Value {
    match random.bool() {
        true => vec![random_value(random, 2)].into(),
        false => random.u64(..1000).into(),
    }
}

/// What the principal tries.
#[derive(Debug)]
struct Deed {
    what: u8,
    path: String,
    other: String,
    value: Value,
}

impl Deed {
    fn random(random: &mut Rng) -> Deed {
        let path = random_path(random);
        let mut other = random_path(random);
        if random.u8(..5) == 0 {
            other.push_str("/-");
        }
        Deed { what: random.u8(..19), path, other, value: random_value(random, 2) }
    }

    fn try_in(&self, ann: &Store, revision: u64) -> Result<Committed<String>> {
        let Deed { what, path, other, value } = self;
        let patch = |text: String| {
            Patch::from_value(&spinney::formats::parse(&text).expect("JSON")).expect("a patch")
        };
        ann.write(|tx| {
            let before = shown(&tx.get(path)?);
            match what {
                0 | 1 => tx.set(other, value)?,
                2 => tx.create(path, value)?,
                3 => tx.replace(path, value)?,
                4 => return tx.remove(path).map(|existed| existed.to_string()),
                5 => tx.insert(other, value)?,
                6 => tx.mv(path, other)?,
                7 => tx.copy(path, other)?,
                8 => tx.set_meta(path, "note", Some("text"))?,
                9 => tx.merge(path, value)?,
                10 => tx.expect(path, &Expected::Value(value.clone()))?,
                11 => tx.expect(path, &Expected::Absent)?,
                12 => tx.expect(path, &Expected::Unchanged(revision.saturating_sub(2)))?,
                13 => tx.patch(
                    "",
                    &patch(format!(
                        r#"[{{"op": "test", "path": "{path}", "value": {}}}]"#,
                        text(value)
                    )),
                )?,
                14 => tx.patch(
                    path,
                    &patch(format!(r#"[{{"op": "copy", "from": "", "path": "{other}"}}]"#)),
                )?,
                15 => tx.patch(
                    "",
                    &patch(format!(r#"[{{"op": "move", "from": "{path}", "path": "{other}"}}]"#)),
                )?,
                16 => {
                    let hash = spinney::hash::hash_in(tx, path)?;
                    return Ok(format!("{hash:?} {:?} {:?}", tx.count(path)?, tx.meta(path)?));
                }
                17 => {
                    let lock = ann.permits(path, Right::Write)?;
                    return Ok(format!("{lock} {:?} {:?}", tx.exists(path)?, tx.container(path)?));
                }
                _ => {
                    tx.set(other, value)?;
                    tx.set_with(path, Existing::Any, |visitor| value.visit(visitor))?;
                    tx.remove(other)?;
                }
            }
            Ok(format!("{before} {}", shown(&tx.get(path)?)))
        })
    }
}

/// What came of it, in words.
fn told(tried: &Result<Committed<String>>, store: &Store) -> String {
    match tried {
        Ok(Committed { revision, diff, value }) => {
            let rules = store.access_rules().expect("rules");
            let permissions = rules.permissions(&Principal::new("ann"));
            for op in &diff.ops {
                // Positions are not keys; what the rules say of all members holds for both.
                let standing = standing(&permissions, &op.pointer());
                let is_named = op.pointer().contains(['0', '1']);
                assert!(is_named || standing.may(Right::Write), "it wrote {}", op.pointer());
            }
            format!("{revision} {value} {}", changes(diff))
        }
        Err(error) => format!("{:?} {error}", error.kind()),
    }
}

fn changes(diff: &Diff) -> String {
    let side = |side: &Option<Arc<[u8]>>| match side {
        None => "nothing".to_owned(),
        Some(encoded) => {
            let mut builder = ValueBuilder::default();
            match Contained(encoded).visit(&mut builder) {
                Ok(()) => shown(&builder.finish()),
                Err(_) => "reference".to_owned(),
            }
        }
    };
    let op = |op: &spinney::diff::Op| {
        let is_meta = op.what == spinney::diff::What::Meta;
        match is_meta {
            true => format!("{} metadata", &*op.pointer()),
            false => format!("{} {} {}", &*op.pointer(), side(&op.old), side(&op.new)),
        }
    };
    diff.ops.iter().map(op).collect::<Vec<_>>().join("; ")
}

fn text(value: &Value) -> String {
    print(value, Layout::Compact, Fidelity::Tagged).expect("it prints")
}

fn shown(value: &Option<Value>) -> String {
    value.as_ref().map_or_else(|| "nothing".to_owned(), text)
}

/// All that the principal can find out, in words.
fn seen(store: &Store) -> String {
    let ann = store.as_principal(Principal::new("ann"));
    let mut out = String::new();
    let state = ann.read().expect("a state");
    seen_of(&state, &mut out);
    let revision = state.revision().expect("a revision");
    for logged in state.log().expect("a log") {
        let logged = logged.expect("a commit");
        let note = &logged.entry.note;
        writeln!(out, "{} {} {}", logged.revision, note.message, changes(&logged.entry.diff))
            .expect("writes");
    }
    let mut feed = ann.changes("/a", 0).expect("a feed");
    while let Some(event) = feed.next(Duration::ZERO).expect("an event") {
        match event {
            Event::Change(change) => {
                writeln!(out, "fed {} {}", change.revision, changes(&change.diff)).expect("writes");
            }
            Event::Gap(gap) => writeln!(out, "{gap:?}").expect("writes"),
        }
    }
    let layer = |path: &str| Layer::new(path, &ann, path).expect("a layer");
    let stack = Stack::new(vec![layer("/a"), layer("/b")]).expect("a stack");
    let mut logged = String::new();
    let told = stack.log("", &mut |change| {
        writeln!(logged, "layers {} {}", change.revision, changes(&change.diff)).expect("writes");
        Ok(true)
    });
    writeln!(out, "{logged}{told:?}").expect("writes");
    let layers = stack.read().expect("a state");
    seen_of(&layers, &mut out);
    let told = layers.each_source("", &mut |found, node| {
        writeln!(out, "{} of {} {:?}", found.path, found.layer, node.kind()?).expect("writes");
        Ok(())
    });
    writeln!(out, "{told:?}").expect("writes");
    let back = revision.saturating_sub(3);
    seen_of(&ann.at(back).expect("an older state"), &mut out);
    writeln!(out, "{:?}", ann.stats()).expect("writes");
    writeln!(out, "{:?}", ann.schemas()).expect("writes");
    writeln!(out, "{:?}", ann.stacks()).expect("writes");
    writeln!(out, "{:?}", ann.locks().map(|locks| locks.len())).expect("writes");
    writeln!(out, "{:?}", ann.revert(1).map(|_| ())).expect("writes");
    writeln!(out, "{:?}", ann.datastores().map(|_| ())).expect("writes");
    writeln!(out, "{:?}", ann.lock(HIDDEN, LockOptions::default()).map(|_| ())).expect("writes");
    out
}

/// What the principal sees of what commits have changed together.
fn seen_between(store: &Store) -> String {
    let revision = store.read().and_then(|state| state.revision()).expect("a revision");
    let back = revision.saturating_sub(3);
    let said = |store: &Store| -> Result<String> {
        let mut out = String::new();
        let between = store.between(back, revision)?;
        between.changes(&mut |path, change| {
            if let Change::Added(side) | Change::Removed(side) | Change::Replaced(side, _) = &change
            {
                side.to_value()?;
            }
            writeln!(out, "between {} {change:?}", &**path).expect("writes");
            Ok(())
        })?;
        Ok(out)
    };
    said(store).expect("what is between");
    said(&store.as_principal(Principal::new("ann"))).expect("what is between")
}

fn seen_of(state: &Snapshot, out: &mut String) {
    let mut paths = vec![String::new()];
    let mut from = 0;
    for _ in 0..3 {
        let to = paths.len();
        for at in from..to {
            paths.extend(NAMES.map(|name| format!("{}/{name}", paths[at])));
        }
        from = to;
    }
    paths.push(HIDDEN.to_owned());
    for path in paths {
        let value = state.get(&path).expect("a value");
        let names = state.list(&path, None, None).map_err(|error| error.to_string());
        let counted = state.count(&path).expect("a count");
        let (kind, meta) =
            (state.kind(&path).expect("a kind"), state.meta(&path).expect("metadata"));
        let hash = state.hash(&path).expect("a hash");
        let from_b = state.list(&path, Some("1"), Some(1)).map_err(|error| error.to_string());
        if let (Some(value), Some(count)) = (&value, counted) {
            let len = match value {
                Value::Map(map) => map.len(),
                Value::List(list) => list.len(),
                _ => 0,
            };
            assert_eq!(count, len as u64, "{path}: {value:?}");
            assert_eq!(names.as_ref().map(|names| names.as_ref().map(Vec::len)), Ok(Some(len)));
        }
        let line = (shown(&value), names, counted, kind, meta, hash, from_b);
        writeln!(out, "{path} {line:?}").expect("writes");
    }
    for query in ["$..a", "$.*.*", "$..[0]", "$..[-1]", "$[?count(@.*) > 1]", "$..[?@.a]"] {
        let query = Query::parse(query).expect("a query");
        let Ok(mut found) = state.query("", &query, QueryLimits::default()) else { continue };
        while let Some(node) = found.next() {
            let value = node.and_then(|node| node.value()).expect("a node");
            let location = found.location().expect("a place");
            writeln!(out, "{location} {}", text(&value)).expect("writes");
        }
        let explained = state.explain_query("", &query).expect("it explains");
        writeln!(out, "{} steps, {explained:?}", found.steps()).expect("writes");
    }
}
