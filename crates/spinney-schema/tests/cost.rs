//! What a change costs, counted in nodes that are read: the same in a small list and in a large one.

mod common;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;

use common::session::stored;
use common::value;
use serde_json::{Value as Json, json};
use spinney_core::backend::{Backend, Snapshot};
use spinney_core::error::Result;
use spinney_core::node::NodeKind;
use spinney_core::read::Stored;
use spinney_core::transaction::Transaction;
use spinney_core::view::View;
use spinney_core::{Memory, Value};
use spinney_schema::instance::{Instance, Leaf};
use spinney_schema::{Changes, Document, Documents, Options, Report, Schema};

/// An instance that counts every call.
#[derive(Clone)]
struct Counted<I> {
    inner: I,
    reads: Rc<Cell<u64>>,
}

impl<I> Counted<I> {
    fn count(&self) -> &Self {
        self.reads.set(self.reads.get() + 1);
        self
    }
}

impl<I: Instance + 'static> Instance for Counted<I>
where
    I::Members: 'static,
    I::Elements: 'static,
{
    type Members = Box<dyn Iterator<Item = Result<(String, Self)>>>;
    type Elements = Box<dyn Iterator<Item = Result<Self>>>;

    fn kind(&self) -> Result<NodeKind> {
        Counted::count(self).inner.kind()
    }
    fn leaf<'a>(&'a self, long: &'a mut Vec<u8>) -> Result<Option<Leaf<'a>>> {
        Counted::count(self).inner.leaf(long)
    }
    fn count(&self) -> Result<u64> {
        Counted::count(self).inner.count()
    }
    fn member(&self, key: &str) -> Result<Option<Self>> {
        let member = Counted::count(self).inner.member(key)?;
        Ok(member.map(|inner| Counted { inner, reads: Rc::clone(&self.reads) }))
    }
    fn element(&self, position: u64) -> Result<Option<Self>> {
        let element = Counted::count(self).inner.element(position)?;
        Ok(element.map(|inner| Counted { inner, reads: Rc::clone(&self.reads) }))
    }
    fn members(&self) -> Result<Self::Members> {
        let node = self.clone();
        Ok(Box::new(self.inner.members()?.map(move |member| {
            let (key, inner) = member?;
            Counted::count(&node);
            Ok((key, Counted { inner, reads: Rc::clone(&node.reads) }))
        })))
    }
    fn elements(&self, from: u64) -> Result<Self::Elements> {
        let node = self.clone();
        Ok(Box::new(self.inner.elements(from)?.map(move |element| {
            Counted::count(&node);
            Ok(Counted { inner: element?, reads: Rc::clone(&node.reads) })
        })))
    }
}

/// What is kept of all values that a schema's keywords are about.
type Index = BTreeMap<Vec<u8>, Vec<u8>>;

/// A store with `count` items in a list and in a map, below a discriminator.
struct Large {
    store: Memory,
    count: u64,
}

fn item(number: u64) -> Value {
    value(&json!({ "id": number, "name": format!("n{number}"), "kind": "a", "port": 80 }))
}

impl Large {
    fn new(count: u64) -> Large {
        let store = Memory::new();
        let mut transaction = Transaction::begin(&store).expect("begins");
        let list: Value = (0..count).map(item).collect::<Vec<_>>().into();
        let map = (0..count).map(|number| (format!("k{number}"), item(number))).collect();
        transaction.set("/doc/list", &list).expect("sets");
        transaction.set("/doc/map", &Value::Map(map)).expect("sets");
        transaction.set("/doc/mode", &Value::from("many")).expect("sets");
        transaction.commit(0).expect("commits");
        Large { store, count }
    }

    /// What the schema has in its index of all that is stored.
    fn index(&self, schema: &Schema) -> Index {
        let mut index = Index::new();
        if !schema.needs_index() {
            return index;
        }
        let snapshot = self.store.snapshot().expect("a snapshot");
        let document = stored(&self.store, &*snapshot);
        let entries = schema.entries(None, document.as_ref(), &Changes::everything());
        let report = entries
            .expect("reads")
            .judge(schema, |key, change| change(&[], index.entry(key.to_vec()).or_default()));
        assert!(report.expect("judges").is_valid());
        index
    }

    /// Reads and verdict of one commit, which is undone.
    fn cost(
        &self,
        schema: &Schema,
        index: &Index,
        edit: &dyn Fn(&mut Transaction<'_>, u64),
    ) -> (u64, Report) {
        let mut transaction = Transaction::begin(&self.store).expect("begins");
        edit(&mut transaction, self.count / 2);
        let before = self.store.snapshot().expect("a snapshot");
        let diff = transaction.commit(0).expect("commits").diff;
        let after = self.store.snapshot().expect("a snapshot");
        let reads = Rc::new(Cell::new(0));
        let changes = Changes::of_diff(&diff, "/doc").expect("a diff");
        // The counting wrapper lends nothing, so the snapshots must live on.
        let [before, after]: [&'static dyn Snapshot; 2] = [before, after].map(|it| &*Box::leak(it));
        let [before, after] = [before, after].map(|snapshot| {
            let view = View { snapshot, key_len_max: self.store.capabilities().key_len_max };
            let slot = view.resolve("/doc").expect("resolves").expect("is there");
            let node = Stored::new(view, slot).expect("a node");
            let inner = Document::new(node).expect("a node");
            Counted { inner, reads: Rc::clone(&reads) }
        });
        let mut report =
            schema.validate_change(Some(&before), Some(&after), &changes).expect("reads");
        let entries = schema.entries(Some(&before), Some(&after), &changes).expect("reads");
        let judged = entries.judge(schema, |key, change| {
            reads.set(reads.get() + 1);
            change(index.get(key).map_or(&[], |content| content), &mut Vec::new())
        });
        report.append(judged.expect("judges"));
        let counted = reads.get();
        let mut undo = Transaction::begin(&self.store).expect("begins");
        undo.apply(&diff.invert()).expect("applies");
        undo.commit(0).expect("commits");
        (counted, report)
    }
}

fn compile(schema: &Json) -> Schema {
    Schema::compile(&value(schema), &Documents::new(), Options::default()).expect("a schema")
}

/// Each of 100 lists fails each of 60 alternatives at the first look; what to say of that is not worth reading them all
/// 60 times.
#[test]
fn what_to_say_of_what_fits_no_alternative_costs_no_more_than_a_glance() {
    let alternative = json!({ "type": "string", "items": { "type": "number" } });
    let schema = compile(&json!({ "items": { "anyOf": vec![alternative; 60] } }));
    let row: Json = (0..200).collect();
    let store = Memory::new();
    let mut transaction = Transaction::begin(&store).expect("begins");
    transaction.set("/doc", &value(&Json::from(vec![row; 100]))).expect("sets");
    transaction.commit(0).expect("commits");
    let snapshot: &'static dyn Snapshot = &*Box::leak(store.snapshot().expect("a snapshot"));
    let view = View { snapshot, key_len_max: store.capabilities().key_len_max };
    let slot = view.resolve("/doc").expect("resolves").expect("is there");
    let reads = Rc::new(Cell::new(0));
    let inner = Document::new(Stored::new(view, slot).expect("a node")).expect("a node");
    let report = schema.validate(&Counted { inner, reads: Rc::clone(&reads) }).expect("reads");
    assert_eq!(report.violations.len(), 100);
    assert!(report.violations[0].found.contains("comes closest"), "{report}");
    println!("{} reads", reads.get());
    assert!(reads.get() < 1_000_000, "{} reads", reads.get());
}

type Edit = Box<dyn Fn(&mut Transaction<'_>, u64)>;

/// Edits that leave the document valid under the schemas below.
fn edits() -> Vec<(&'static str, Edit)> {
    let set = |path: fn(u64) -> String, json: Json| -> Edit {
        Box::new(move |transaction, at| {
            transaction.set(&format!("/doc{}", path(at)), &value(&json)).expect("sets");
        })
    };
    vec![
        ("a leaf in the list", set(|at| format!("/list/{at}/name"), json!("other"))),
        ("a leaf in the map", set(|at| format!("/map/k{at}/port"), json!(81))),
        (
            "a new member",
            set(|_| "/map/k".to_owned(), json!({ "id": 1, "name": "n", "kind": "a", "port": 1 })),
        ),
        (
            "an element put in the middle",
            Box::new(|transaction, at| {
                transaction.insert(&format!("/doc/list/{at}"), &item(at)).expect("inserts");
            }),
        ),
        (
            "an element put first",
            Box::new(|transaction, at| {
                transaction.insert("/doc/list/0", &item(at)).expect("inserts");
            }),
        ),
        (
            "an element taken out",
            Box::new(|transaction, at| {
                assert!(transaction.remove(&format!("/doc/list/{at}")).expect("removes"));
            }),
        ),
        (
            "a member removed",
            Box::new(|transaction, at| {
                assert!(transaction.remove(&format!("/doc/map/k{at}")).expect("removes"));
            }),
        ),
    ]
}

#[test]
fn one_change_costs_the_same_among_a_thousand_and_a_million() {
    let item = json!({
        "type": "object",
        "properties": {
            "id": { "type": "integer" },
            "name": { "type": "string", "pattern": "^[a-z]+[0-9]*$" },
            "kind": { "enum": ["a", "b"] },
            "port": { "minimum": 1 }
        },
        "required": ["id", "name"],
        "additionalProperties": false
    });
    let branch = json!({
        "properties": {
            "mode": { "const": "many" },
            "list": { "items": item },
            "map": { "additionalProperties": item, "propertyNames": { "pattern": "^k" } }
        }
    });
    let other = json!({ "properties": { "mode": { "const": "one" }, "list": { "maxItems": 1 } } });
    let schemas = [
        (
            "local keywords",
            json!({
                "properties": {
                    "list": { "items": item, "minItems": 1, "maxItems": 10_000_000 },
                    "map": { "patternProperties": { "^k": item }, "minProperties": 1, "additionalProperties": false }
                }
            }),
        ),
        (
            "elements of their own",
            json!({ "properties": { "list": { "prefixItems": [item, item], "items": item } } }),
        ),
        (
            "references",
            json!({
                "$defs": { "item": item, "items": { "items": { "$ref": "#/$defs/item" } } },
                "allOf": [{ "properties": { "list": { "$ref": "#/$defs/items" } } }],
                "properties": { "map": { "additionalProperties": { "$ref": "#/$defs/item" } } }
            }),
        ),
        (
            "branches of each item",
            json!({
                "properties": { "list": { "items": { "oneOf": [item, { "type": "string" }] } } }
            }),
        ),
        ("branches of the document", json!({ "oneOf": [branch, other] })),
        ("any branch of the document", json!({ "anyOf": [other, branch] })),
        (
            "a condition",
            json!({
                "if": { "properties": { "mode": { "const": "many" } } }, "then": branch, "else": other
            }),
        ),
        ("what is not", json!({ "not": other, "properties": { "list": { "items": item } } })),
        ("contains", json!({ "properties": { "list": { "contains": item } } })),
        (
            "unevaluated",
            json!({
                "allOf": [{ "properties": { "list": { "items": item } } }],
                "properties": { "map": { "unevaluatedProperties": item }, "mode": true },
                "unevaluatedProperties": false
            }),
        ),
        (
            "references and unique members",
            json!({
                "properties": {
                    "list": {
                        "items": {
                            "properties": { "port": { "x-spinney-reference": { "value": "/map/*/port" } } }
                        }
                    },
                    "map": { "x-spinney-unique": [["/name"], ["/id", "/name"]] }
                }
            }),
        ),
        ("dependent schemas", json!({ "dependentSchemas": { "mode": branch } })),
    ];
    let (small, large) = (Large::new(1_000), Large::new(1_000_000));
    for (schema_name, schema) in &schemas {
        let schema = compile(schema);
        let stores = [&small, &large].map(|store| (store, store.index(&schema)));
        for (edit_name, edit) in edits() {
            let [(few, report), (many, _)] =
                stores.each_ref().map(|(store, index)| store.cost(&schema, index, &*edit));
            let what =
                format!("{schema_name}: {edit_name}: {few} reads of 1 000, {many} of 1 000 000");
            println!("{what}");
            assert!(report.is_valid(), "{what}: {report}");
            assert!(many == few && many < 400, "{what}");
        }
    }
}
