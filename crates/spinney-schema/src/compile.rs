//! From a schema's document to the arena that judges documents.

use std::collections::HashMap;
use std::sync::OnceLock;

use spinney_core::Value;
use spinney_core::error::{Error, Result};

use crate::coverage;
use crate::dialect::{self, Dialect, Draft};
use crate::keywords;
use crate::resources::{Documents, Resources};
use crate::schema::{Node, NodeId, Schema};
use crate::vocabulary::{self, Constraint, ConstraintId};

/// How a schema is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Whether `format` asserts; without a word, what the dialect says: up to draft 7 it does.
    pub assert_formats: Option<bool>,
    /// Steps that are worth taking to find out whether a branch of `anyOf` or `oneOf` holds without
    /// reading all of it. Verdicts do not depend on it.
    pub glance_steps: u64,
}

impl Default for Options {
    fn default() -> Options {
        Options { assert_formats: None, glance_steps: 64 }
    }
}

impl Schema {
    /// Compiles a schema. References may lead into it, to `documents` and to the metaschemas of the
    /// drafts; nothing is fetched.
    ///
    /// # Errors
    /// `InvalidInput` when it breaks its metaschema, or a reference leads nowhere or in a circle;
    /// `Unsupported` for a reference to a document that is not here, an unknown metaschema, and
    /// regular expressions that need backtracking. The text says where.
    pub fn compile(document: &Value, documents: &Documents, options: Options) -> Result<Schema> {
        let compiler = Compiler::new(document, documents, options)?;
        compiler.check_against_metaschema(document, documents)?;
        compiler.finish(document)
    }

    /// Compiles a metaschema, which nothing can be checked against but itself.
    fn compile_metaschema(document: &Value, documents: &Documents) -> Result<Schema> {
        Compiler::new(
            document,
            documents,
            Options { assert_formats: Some(false), ..Options::default() },
        )?
        .finish(document)
    }
}

/// The compiled metaschema of a draft.
fn metaschema(draft: Draft) -> &'static Schema {
    static NONE: OnceLock<Documents> = OnceLock::new();
    static COMPILED: [OnceLock<Schema>; Draft::ALL.len()] =
        [const { OnceLock::new() }; Draft::ALL.len()];
    COMPILED[draft as usize].get_or_init(|| {
        let document = dialect::metaschema(draft.uri()).expect("every draft has one");
        Schema::compile_metaschema(document, NONE.get_or_init(Documents::new))
            .expect("the metaschemas of the drafts compile")
    })
}

/// Makes nodes of schemas as they are referred to.
pub(crate) struct Compiler<'v> {
    resources: Resources<'v>,
    options: Options,
    nodes: Vec<Node>,
    by_address: HashMap<*const Value, NodeId>,
    /// Nodes whose keywords are still to be read.
    pending: Vec<(NodeId, &'v Value)>,
    /// The names of dynamic references.
    names: Vec<String>,
    constraints: Vec<Constraint>,
}

impl<'v> Compiler<'v> {
    fn new(document: &'v Value, documents: &'v Documents, options: Options) -> Result<Self> {
        Ok(Compiler {
            resources: Resources::new(documents, document)?,
            options,
            nodes: Vec::new(),
            by_address: HashMap::new(),
            pending: Vec::new(),
            names: Vec::new(),
            constraints: Vec::new(),
        })
    }

    fn check_against_metaschema(&self, document: &Value, documents: &Documents) -> Result<()> {
        let declared = match document {
            Value::Map(map) => map.get("$schema").and_then(Value::as_str),
            _ => None,
        };
        let uri = declared.unwrap_or(Draft::Draft202012.uri()).trim_end_matches('#');
        let report = match (Draft::from_uri(uri), documents.get(uri)) {
            (Some(draft), _) => metaschema(draft).validate(&document)?,
            (None, Some(own)) => Schema::compile_metaschema(own, documents)
                .map_err(|error| error.at(format_args!("the metaschema `{uri}`")))?
                .validate(&document)?,
            (None, None) => unreachable!("the dialect of the document was found"),
        };
        match report.violations.first() {
            None => Ok(()),
            Some(first) => {
                let others = match report.count() - 1 {
                    0 => String::new(),
                    1 => " (and 1 more error)".to_owned(),
                    more => format!(" (and {more} more errors)"),
                };
                Err(Error::invalid_input(format!("the schema is invalid: {first}{others}")))
            }
        }
    }

    fn finish(mut self, document: &'v Value) -> Result<Schema> {
        let root = self.node(document)?;
        let mut dynamic = HashMap::new();
        let mut names_done = 0;
        loop {
            while let Some((id, schema)) = self.pending.pop() {
                let place = self.nodes[id].location.clone();
                let at = |error: Error| error.at(format_args!("the schema at `{place}`"));
                let (assertions, applicators) = keywords::read(&mut self, schema).map_err(at)?;
                if let Value::Map(map) = schema {
                    for constraint in vocabulary::read(map, &place).map_err(at)? {
                        self.nodes[id].constraints.push(self.constraints.len());
                        self.constraints.push(constraint);
                    }
                }
                self.nodes[id].assertions = assertions;
                self.nodes[id].applicators = applicators;
            }
            let resources_before = self.resources.len();
            for name in 0..self.names.len() {
                let anchored: Vec<_> = self.resources.dynamic(&self.names[name]).collect();
                for (resource, schema) in anchored {
                    let node = self.node(schema)?;
                    dynamic.insert((name, resource), node);
                }
            }
            if self.pending.is_empty()
                && names_done == self.names.len()
                && resources_before == self.resources.len()
            {
                break;
            }
            names_done = self.names.len();
        }
        self.number_constraints();
        let mut schema = Schema {
            nodes: self.nodes,
            root,
            dynamic,
            constraints: self.constraints,
            sites: vocabulary::Known::default(),
            glance_steps: self.options.glance_steps,
        };
        coverage::refuse_endless(&schema)?;
        coverage::mark(&mut schema);
        vocabulary::mark(&mut schema)?;
        Ok(schema)
    }

    /// Numbers the constraints in the order of their locations: stored indexes name them by number.
    fn number_constraints(&mut self) {
        let mut order: Vec<ConstraintId> = (0..self.constraints.len()).collect();
        order.sort_by_key(|&id| &self.constraints[id].location);
        let mut numbers = vec![0; order.len()];
        order.iter().enumerate().for_each(|(number, &id)| numbers[id] = number);
        self.constraints.sort_by(|a, b| a.location.cmp(&b.location));
        for node in &mut self.nodes {
            node.constraints.iter_mut().for_each(|id| *id = numbers[*id]);
        }
    }

    /// The node of a schema, read later.
    pub fn node(&mut self, schema: &'v Value) -> Result<NodeId> {
        let address = std::ptr::from_ref(schema);
        if let Some(&known) = self.by_address.get(&address) {
            return Ok(known);
        }
        let place = self.resources.place(schema);
        let location = self.resources.location(place);
        let verdict = match schema {
            Value::Bool(verdict) => Some(*verdict),
            Value::Map(_) => None,
            other => {
                return Err(Error::invalid_input(format!(
                    "`{location}` is a {}, not a schema; expected an object or a boolean",
                    other.kind()
                )));
            }
        };
        let id = self.nodes.len();
        self.nodes.push(Node { resource: place.resource, location, verdict, ..Node::default() });
        self.by_address.insert(address, id);
        if verdict.is_none() {
            self.pending.push((id, schema));
        }
        Ok(id)
    }

    /// How the keywords of a schema are read.
    pub fn dialect(&self, schema: &Value) -> Dialect {
        let dialect = self.resources.resource(self.resources.place(schema).resource).dialect;
        Dialect {
            format_assertion: self.options.assert_formats.unwrap_or(dialect.format_assertion),
            ..dialect
        }
    }

    /// The schema that a reference leads to.
    pub fn resolve(&mut self, from: &Value, reference: &str) -> Result<&'v Value> {
        let resource = self.resources.place(from).resource;
        self.resources.resolve(resource, reference)
    }

    /// The index of a dynamic anchor's name when `target` has that anchor itself, and so may be
    /// redirected.
    pub fn dynamic_name(&mut self, target: &'v Value, name: &str) -> Option<usize> {
        let resource = self.resources.place(target).resource;
        let bookend = self
            .resources
            .dynamic(name)
            .any(|(id, schema)| id == resource && std::ptr::eq(schema, target));
        if !bookend {
            return None;
        }
        let known = self.names.iter().position(|known| known == name);
        Some(known.unwrap_or_else(|| {
            self.names.push(name.to_owned());
            self.names.len() - 1
        }))
    }
}
