//! What URIs, anchors and pointers in schemas lead to.
//!
//! A document is taken apart into *resources*, each with a base URI and a dialect. Nothing is ever
//! fetched: a reference leads into the document itself, to one that the caller has handed over, or
//! to a metaschema of the drafts.

use std::borrow::Cow;
use std::collections::HashMap;

use fluent_uri::{Iri, IriRef};
use spinney_core::error::{Error, Result};
use spinney_core::{Map, Path, Value, path};

use crate::dialect::{self, Dialect, Draft};

/// What a schema without an `$id` is called in references.
const UNNAMED: &str = "spinney:///schema";

/// Documents by URI that references may lead to, beside the metaschemas of the drafts.
#[derive(Clone, Debug, Default)]
pub struct Documents {
    by_uri: HashMap<String, Value>,
}

impl Documents {
    /// None.
    pub fn new() -> Documents {
        Documents::default()
    }

    /// Adds a document under the URI that references name it by.
    ///
    /// # Errors
    /// `InvalidInput` when it is no absolute URI.
    pub fn add(&mut self, uri: &str, document: Value) -> Result<()> {
        let parsed = Iri::parse(uri).map_err(|_| {
            Error::invalid_input(format!(
                "`{uri}` is not an absolute URI such as `https://a.example/b`"
            ))
        })?;
        self.by_uri.insert(parsed.strip_fragment().to_string(), document);
        Ok(())
    }

    /// The document of a URI without a fragment.
    pub fn get(&self, uri: &str) -> Option<&Value> {
        self.by_uri.get(uri).or_else(|| dialect::metaschema(uri))
    }
}

/// An index into the resources of a schema.
pub type ResourceId = usize;

/// A document or an embedded one that has an `$id`.
pub struct Resource<'v> {
    /// Its base URI, without a fragment.
    pub uri: String,
    /// Where it begins.
    pub root: &'v Value,
    /// How its keywords are read.
    pub dialect: Dialect,
}

/// Where a schema stands.
#[derive(Clone, Debug)]
pub struct Place {
    /// The innermost resource that it is in.
    pub resource: ResourceId,
    /// From the resource's root.
    pub pointer: Path,
}

/// Everything that references may name.
pub struct Resources<'v> {
    documents: &'v Documents,
    all: Vec<Resource<'v>>,
    by_uri: HashMap<String, ResourceId>,
    anchors: HashMap<(ResourceId, String), &'v Value>,
    /// The names of `$dynamicAnchor`; the empty one stands for `$recursiveAnchor`.
    dynamic: Vec<(ResourceId, String, &'v Value)>,
    /// By address: the documents are borrowed, so nothing moves.
    places: HashMap<*const Value, Place>,
}

impl<'v> Resources<'v> {
    /// Takes a document apart.
    ///
    /// # Errors
    /// As [`Resources::enter`].
    pub fn new(documents: &'v Documents, document: &'v Value) -> Result<Resources<'v>> {
        let mut resources = Resources {
            documents,
            all: Vec::new(),
            by_uri: HashMap::new(),
            anchors: HashMap::new(),
            dynamic: Vec::new(),
            places: HashMap::new(),
        };
        resources.enter(UNNAMED, document, Dialect::of(Draft::Draft202012))?;
        Ok(resources)
    }

    /// The place of a schema that was found.
    pub fn place(&self, schema: &Value) -> &Place {
        &self.places[&std::ptr::from_ref(schema)]
    }

    /// The resource of an index.
    pub fn resource(&self, id: ResourceId) -> &Resource<'v> {
        &self.all[id]
    }

    /// The resources that have a dynamic anchor of a name.
    pub fn dynamic<'r>(
        &'r self,
        name: &'r str,
    ) -> impl Iterator<Item = (ResourceId, &'v Value)> + 'r {
        let named = self.dynamic.iter().filter(move |(_, anchor, _)| anchor == name);
        named.map(|(resource, _, schema)| (*resource, *schema))
    }

    /// How many resources are known by now.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// A location for people: the URI, unless the document has none, and the pointer behind `#`.
    pub fn location(&self, place: &Place) -> String {
        format!("{}#{}", shown(&self.all[place.resource].uri), &*place.pointer)
    }

    /// The schema that a reference in a resource leads to.
    ///
    /// # Errors
    /// `InvalidInput` when it is no URI reference or leads nowhere; `Unsupported` when it leads to a
    /// document that is not here.
    pub fn resolve(&mut self, from: ResourceId, reference: &str) -> Result<&'v Value> {
        let target = absolute(&self.all[from].uri, reference)?;
        let resource = self.find(from, target.strip_fragment().as_str(), reference)?;
        let fragment =
            target.fragment().map_or(Cow::Borrowed(""), |text| text.decode().to_string_lossy());
        if fragment.is_empty() {
            return Ok(self.all[resource].root);
        }
        if fragment.starts_with('/') {
            return self.walk(resource, &fragment, reference);
        }
        let anchor = self.anchors.get(&(resource, fragment.into_owned()));
        anchor.copied().ok_or_else(|| {
            Error::invalid_input(format!("`{reference}` names an anchor that does not exist"))
        })
    }

    /// The resource of a URI. A document that names no metaschema is read as the one that refers to it.
    fn find(&mut self, from: ResourceId, uri: &str, reference: &str) -> Result<ResourceId> {
        if let Some(&known) = self.by_uri.get(uri) {
            return Ok(known);
        }
        let documents = self.documents;
        let Some(document) = documents.get(uri) else {
            return Err(Error::unsupported(format!(
                "`{reference}` refers to `{}`, which is not part of the schema; nothing is fetched, so put it under `$defs` with that `$id`",
                shown(uri)
            )));
        };
        self.enter(uri, document, self.all[from].dialect)?;
        Ok(self.by_uri[uri])
    }

    fn walk(&mut self, resource: ResourceId, pointer: &str, reference: &str) -> Result<&'v Value> {
        path::check(pointer)?;
        let mut at = self.all[resource].root;
        let mut place = Place { resource, pointer: Path::root() };
        for segment in path::segments(pointer) {
            let next = match at {
                Value::Map(map) => map.get(&segment),
                Value::List(list) => path::position(&segment)
                    .and_then(|position| list.get(usize::try_from(position).ok()?)),
                _ => None,
            };
            at = next.ok_or_else(|| {
                Error::invalid_input(format!("`{reference}` leads to nothing at `{segment}`"))
            })?;
            match self.places.get(&std::ptr::from_ref(at)) {
                Some(known) => place = known.clone(),
                None => place.pointer.push(&segment),
            }
        }
        if !self.places.contains_key(&std::ptr::from_ref(at)) {
            self.discover(at, place)?;
        }
        Ok(at)
    }

    /// Takes in a document that is known by a URI and perhaps by its own `$id`.
    ///
    /// # Errors
    /// `InvalidInput` when an identifier is no URI reference, `Unsupported` when a metaschema is not
    /// known.
    fn enter(&mut self, uri: &str, document: &'v Value, default: Dialect) -> Result<()> {
        let id = self.add(uri.to_owned(), document, default);
        self.discover(document, Place { resource: id, pointer: Path::root() })
    }

    fn add(&mut self, uri: String, root: &'v Value, dialect: Dialect) -> ResourceId {
        let id = self.all.len();
        self.by_uri.insert(uri.clone(), id);
        self.all.push(Resource { uri, root, dialect });
        id
    }

    /// Finds the schemas below one, with their identifiers.
    fn discover(&mut self, schema: &'v Value, place: Place) -> Result<()> {
        let mut pending = vec![(schema, place)];
        while let Some((schema, mut place)) = pending.pop() {
            if let Value::Map(map) = schema {
                self.identify(schema, map, &mut place)
                    .map_err(|error| error.at(self.location(&place)))?;
                let draft = self.all[place.resource].dialect.draft;
                for (keyword, value) in map.iter() {
                    let below = place.pointer.child(&keyword);
                    let mut push = |schema, pointer| {
                        pending.push((schema, Place { resource: place.resource, pointer }));
                    };
                    match (Holds::of(&keyword, draft), value) {
                        (Some(Holds::Schema), Value::Map(_) | Value::Bool(_)) => push(value, below),
                        (Some(Holds::Schema | Holds::List), Value::List(list)) => {
                            for (index, element) in list.iter().enumerate() {
                                push(element, below.child(index));
                            }
                        }
                        (Some(Holds::Map), Value::Map(members)) => {
                            for (key, member) in members.iter() {
                                push(member, below.child(&key));
                            }
                        }
                        _ => {}
                    }
                }
            }
            self.places.insert(std::ptr::from_ref(schema), place);
        }
        Ok(())
    }

    /// Reads the identifiers of a schema; one with a base URI of its own becomes a resource.
    fn identify(&mut self, schema: &'v Value, map: &'v Map, place: &mut Place) -> Result<()> {
        let text = |keyword| map.get(keyword).and_then(Value::as_str);
        let at_root = place.pointer.is_empty();
        let inherited = self.all[place.resource].dialect;
        let declared = match text("$schema") {
            Some(uri) => Some(self.dialect(uri)?),
            None => None,
        };
        let dialect = declared.unwrap_or(inherited);
        let (id_keyword, hides) = match dialect.draft {
            Draft::Draft4 => ("id", true),
            Draft::Draft6 | Draft::Draft7 => ("$id", true),
            _ => ("$id", false),
        };
        let id = text(id_keyword).filter(|_| !(hides && map.get("$ref").is_some()));
        if let Some(id) = id {
            let uri = absolute(&self.all[place.resource].uri, id)?;
            let base = uri.strip_fragment().to_string();
            if !id.starts_with('#') {
                if at_root {
                    self.all[place.resource].uri.clone_from(&base);
                    self.by_uri.insert(base, place.resource);
                } else {
                    *place = Place {
                        resource: self.add(base, schema, inherited),
                        pointer: Path::root(),
                    };
                }
            }
            if let Some(anchor) = uri.fragment().filter(|text| hides && !text.is_empty()) {
                let anchor = anchor.decode().to_string_lossy().into_owned();
                self.anchors.insert((place.resource, anchor), schema);
            }
        }
        if place.pointer.is_empty() {
            self.all[place.resource].dialect = dialect;
        }
        if dialect.draft >= Draft::Draft201909
            && let Some(anchor) = text("$anchor")
        {
            self.anchors.insert((place.resource, anchor.to_owned()), schema);
        }
        if dialect.draft == Draft::Draft202012
            && let Some(anchor) = text("$dynamicAnchor")
        {
            self.anchors.insert((place.resource, anchor.to_owned()), schema);
            self.dynamic.push((place.resource, anchor.to_owned(), schema));
        }
        if dialect.draft == Draft::Draft201909
            && place.pointer.is_empty()
            && map.get("$recursiveAnchor") == Some(&Value::Bool(true))
        {
            self.dynamic.push((place.resource, String::new(), schema));
        }
        Ok(())
    }

    /// The dialect of a metaschema; one of an author's own is looked up in the documents, and the
    /// one that it is written in, at most one step further.
    fn dialect(&self, uri: &str) -> Result<Dialect> {
        let unknown = |uri: &str| {
            Error::unsupported(format!(
                "the metaschema `{uri}` is not known; use one of the drafts 4, 6, 7, 2019-09 and 2020-12"
            ))
        };
        if let Some(draft) = Draft::from_uri(uri) {
            return Ok(Dialect::of(draft));
        }
        let own = self.documents.get(uri.trim_end_matches('#')).ok_or_else(|| unknown(uri))?;
        let written_in = match own {
            Value::Map(map) => map.get("$schema").and_then(Value::as_str),
            _ => None,
        };
        let draft = match written_in {
            Some(uri) => Draft::from_uri(uri).ok_or_else(|| unknown(uri))?,
            None => Draft::Draft202012,
        };
        Dialect::of_metaschema(own, Dialect::of(draft))
    }
}

fn absolute(base: &str, reference: &str) -> Result<Iri<String>> {
    let bad = || {
        Error::invalid_input(format!(
            "`{reference}` is not a URI reference that can be resolved against `{}`",
            shown(base)
        ))
    };
    let base = Iri::parse(base).map_err(|_| bad())?;
    let reference = IriRef::parse(reference).map_err(|_| bad())?;
    reference.resolve_against(&base).map_err(|_| bad())
}

/// A URI for people: nothing for a schema that has none.
pub fn shown(uri: &str) -> &str {
    if uri == UNNAMED { "" } else { uri.strip_prefix("spinney:///").unwrap_or(uri) }
}

/// What a keyword holds schemas in.
enum Holds {
    /// It is a schema, or for `items` a list of them.
    Schema,
    /// A list of schemas.
    List,
    /// A map of schemas.
    Map,
}

impl Holds {
    fn of(keyword: &str, draft: Draft) -> Option<Holds> {
        let (holds, since, until) = match keyword {
            "additionalProperties" | "items" | "not" => {
                (Holds::Schema, Draft::Draft4, Draft::Draft202012)
            }
            "additionalItems" => (Holds::Schema, Draft::Draft4, Draft::Draft201909),
            "contains" | "propertyNames" => (Holds::Schema, Draft::Draft6, Draft::Draft202012),
            "if" | "then" | "else" => (Holds::Schema, Draft::Draft7, Draft::Draft202012),
            "contentSchema" | "unevaluatedItems" | "unevaluatedProperties" => {
                (Holds::Schema, Draft::Draft201909, Draft::Draft202012)
            }
            "allOf" | "anyOf" | "oneOf" => (Holds::List, Draft::Draft4, Draft::Draft202012),
            "prefixItems" => (Holds::List, Draft::Draft202012, Draft::Draft202012),
            "definitions" | "dependencies" | "patternProperties" | "properties" => {
                (Holds::Map, Draft::Draft4, Draft::Draft202012)
            }
            "$defs" | "dependentSchemas" => (Holds::Map, Draft::Draft201909, Draft::Draft202012),
            _ => return None,
        };
        (since <= draft && draft <= until).then_some(holds)
    }
}
