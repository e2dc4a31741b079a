//! What the keywords of one schema object say.

use spinney_core::error::{Error, Result};
use spinney_core::{Map, Number, Value};

use crate::compile::Compiler;
use crate::decimal::{Decimal, Divisor};
use crate::dialect::{Dialect, Draft};
use crate::format::Format;
use crate::pattern::Pattern;
use crate::schema::{Applicator, Assertion, Check, Contains, Items, NodeId, Properties, Types};
use spinney_core::node::NodeKind;

/// Reads a schema object.
///
/// # Errors
/// As [`crate::Schema::compile`], without the location.
pub(crate) fn read<'v>(
    compiler: &mut Compiler<'v>,
    schema: &'v Value,
) -> Result<(Vec<Assertion>, Vec<Applicator>)> {
    let Value::Map(map) = schema else { unreachable!("only objects have keywords") };
    let dialect = compiler.dialect(schema);
    let mut reader =
        Reader { compiler, schema, map, dialect, assertions: Vec::new(), applicators: Vec::new() };
    reader.references()?;
    // Up to draft 7, a reference hides everything beside it.
    if dialect.draft > Draft::Draft7 || reader.applicators.is_empty() {
        if dialect.validation {
            reader.numbers_and_texts()?;
            reader.containers()?;
        }
        reader.format();
        if dialect.applicator {
            reader.members()?;
            reader.branches()?;
            reader.elements()?;
        }
        if dialect.unevaluated && dialect.draft >= Draft::Draft201909 {
            reader.unevaluated()?;
        }
    }
    Ok((reader.assertions, reader.applicators))
}

struct Reader<'c, 'v> {
    compiler: &'c mut Compiler<'v>,
    schema: &'v Value,
    map: &'v Map,
    dialect: Dialect,
    assertions: Vec<Assertion>,
    applicators: Vec<Applicator>,
}

impl<'v> Reader<'_, 'v> {
    fn references(&mut self) -> Result<()> {
        if let Some(reference) = self.text("$ref")? {
            let target = self.compiler.resolve(self.schema, reference)?;
            let node = self.compiler.node(target)?;
            self.applicators.push(Applicator::Ref("$ref", node));
        }
        let dynamic = match self.dialect.draft {
            Draft::Draft202012 => "$dynamicRef",
            Draft::Draft201909 => "$recursiveRef",
            _ => return Ok(()),
        };
        if let Some(reference) = self.text(dynamic)? {
            let target = self.compiler.resolve(self.schema, reference)?;
            let node = self.compiler.node(target)?;
            let name = match self.dialect.draft {
                Draft::Draft202012 => reference.split_once('#').map_or("", |(_, name)| name),
                _ => "",
            };
            let bookend = match (dynamic, name) {
                ("$dynamicRef", "") => None,
                _ => self.compiler.dynamic_name(target, name),
            };
            self.applicators.push(match bookend {
                Some(name) => Applicator::DynamicRef(dynamic, node, name),
                None => Applicator::Ref(dynamic, node),
            });
        }
        Ok(())
    }

    fn numbers_and_texts(&mut self) -> Result<()> {
        if let Some(value) = self.map.get("type") {
            let check = Check::Type(types(value, self.dialect.draft)?);
            self.assert("type", check);
        }
        if let Some(value) = self.map.get("enum") {
            let Value::List(values) = value else { return Err(expected("enum", "a list", value)) };
            self.assert("enum", Check::Enum(values.to_vec()));
        }
        if self.dialect.draft >= Draft::Draft6
            && let Some(value) = self.map.get("const")
        {
            self.assert("const", Check::Const(value.clone()));
        }
        if let Some(number) = self.number("multipleOf")? {
            let divisor = Divisor::new(&number.as_num()).ok_or_else(|| {
                Error::unsupported(format!(
                    "`multipleOf` is {number}; expected a number above 0 with at most 19 significant digits"
                ))
            })?;
            self.assert("multipleOf", Check::MultipleOf(divisor, number));
        }
        self.limits()?;
        if let Some(len) = self.size("minLength")? {
            self.assert("minLength", Check::MinLength(len));
        }
        if let Some(len) = self.size("maxLength")? {
            self.assert("maxLength", Check::MaxLength(len));
        }
        if let Some(source) = self.text("pattern")? {
            let pattern = Pattern::new(source).map_err(|error| error.at("`pattern`"))?;
            self.assert("pattern", Check::Pattern(pattern));
        }
        Ok(())
    }

    /// In draft 4, `exclusiveMinimum` is a boolean that sharpens `minimum`.
    fn limits(&mut self) -> Result<()> {
        type Limit = fn(Number) -> Check;
        let pairs: [(&'static str, Limit, &'static str, Limit); 2] = [
            ("minimum", Check::Minimum, "exclusiveMinimum", Check::ExclusiveMinimum),
            ("maximum", Check::Maximum, "exclusiveMaximum", Check::ExclusiveMaximum),
        ];
        for (keyword, inclusive, sharp_keyword, sharp) in pairs {
            let is_sharp = self.dialect.draft == Draft::Draft4
                && self.map.get(sharp_keyword) == Some(&Value::Bool(true));
            if let Some(limit) = self.number(keyword)? {
                let check = if is_sharp { sharp(limit) } else { inclusive(limit) };
                self.assert(keyword, check);
            }
            if self.dialect.draft > Draft::Draft4
                && let Some(limit) = self.number(sharp_keyword)?
            {
                self.assert(sharp_keyword, sharp(limit));
            }
        }
        Ok(())
    }

    fn containers(&mut self) -> Result<()> {
        type Size = fn(u64) -> Check;
        let sizes: [(&'static str, Size); 4] = [
            ("minItems", Check::MinItems),
            ("maxItems", Check::MaxItems),
            ("minProperties", Check::MinProperties),
            ("maxProperties", Check::MaxProperties),
        ];
        for (keyword, check) in sizes {
            if let Some(size) = self.size(keyword)? {
                self.assert(keyword, check(size));
            }
        }
        if self.map.get("uniqueItems") == Some(&Value::Bool(true)) {
            self.assert("uniqueItems", Check::UniqueItems);
        }
        if let Some(value) = self.map.get("required") {
            self.assert("required", Check::Required(names("required", value)?));
        }
        if self.dialect.draft >= Draft::Draft201909
            && let Some(dependents) = self.schemas("dependentRequired")?
        {
            let entries = dependents
                .iter()
                .map(|(key, value)| Ok((key.into_owned(), names("dependentRequired", value)?)))
                .collect::<Result<_>>()?;
            self.assert("dependentRequired", Check::DependentRequired(entries));
        }
        if let Some(dependencies) = self.schemas("dependencies")? {
            let mut entries = Vec::new();
            for (key, value) in dependencies.iter() {
                if let Value::List(_) = value {
                    entries.push((key.into_owned(), names("dependencies", value)?));
                }
            }
            if !entries.is_empty() {
                self.assert("dependencies", Check::DependentRequired(entries));
            }
        }
        Ok(())
    }

    fn format(&mut self) {
        if self.dialect.format_assertion
            && let Some(Value::String(name)) = self.map.get("format")
            && let Some(format) = Format::new(name, self.dialect.draft)
        {
            self.assert("format", Check::Format(format));
        }
    }

    fn members(&mut self) -> Result<()> {
        let mut properties = Properties::default();
        if let Some(schemas) = self.schemas("properties")? {
            for (key, schema) in schemas.iter() {
                properties.named.push((key.into_owned(), self.compiler.node(schema)?));
            }
            properties.named.sort();
        }
        if let Some(schemas) = self.schemas("patternProperties")? {
            for (source, schema) in schemas.iter() {
                let pattern =
                    Pattern::new(&source).map_err(|error| error.at("`patternProperties`"))?;
                properties.patterns.push((pattern, self.compiler.node(schema)?));
            }
        }
        properties.additional = self.schema("additionalProperties")?;
        if !properties.named.is_empty()
            || !properties.patterns.is_empty()
            || properties.additional.is_some()
        {
            self.applicators.push(Applicator::Properties(properties));
        }
        if self.dialect.draft >= Draft::Draft6
            && let Some(names) = self.schema("propertyNames")?
        {
            self.applicators.push(Applicator::PropertyNames(names));
        }
        Ok(())
    }

    fn branches(&mut self) -> Result<()> {
        type List = fn(Vec<NodeId>) -> Applicator;
        let lists: [(&str, List); 3] = [
            ("allOf", Applicator::AllOf),
            ("anyOf", Applicator::AnyOf),
            ("oneOf", Applicator::OneOf),
        ];
        for (keyword, applicator) in lists {
            if let Some(nodes) = self.list(keyword)? {
                self.applicators.push(applicator(nodes));
            }
        }
        if let Some(node) = self.schema("not")? {
            self.applicators.push(Applicator::Not(node));
        }
        if self.dialect.draft >= Draft::Draft7
            && let Some(condition) = self.schema("if")?
        {
            let (then, otherwise) = (self.schema("then")?, self.schema("else")?);
            self.applicators.push(Applicator::If { condition, then, otherwise });
        }
        let keywords = match self.dialect.draft {
            Draft::Draft201909 | Draft::Draft202012 => &["dependentSchemas", "dependencies"][..],
            _ => &["dependencies"],
        };
        for &keyword in keywords {
            let Some(dependents) = self.schemas(keyword)? else { continue };
            let mut entries = Vec::new();
            for (key, schema) in dependents.iter() {
                if !matches!(schema, Value::List(_)) {
                    entries.push((key.into_owned(), self.compiler.node(schema)?));
                }
            }
            self.applicators.push(Applicator::DependentSchemas(keyword, entries));
        }
        Ok(())
    }

    fn elements(&mut self) -> Result<()> {
        let mut items = match self.dialect.draft {
            Draft::Draft202012 => Items {
                prefix_keyword: "prefixItems",
                prefix: self.list("prefixItems")?.unwrap_or_default(),
                rest_keyword: "items",
                rest: self.schema("items")?,
            },
            _ => Items {
                prefix_keyword: "items",
                prefix: Vec::new(),
                rest_keyword: "items",
                rest: None,
            },
        };
        if self.dialect.draft < Draft::Draft202012 {
            if let Some(Value::List(_)) = self.map.get("items") {
                items.prefix = self.list("items")?.unwrap_or_default();
                items.rest_keyword = "additionalItems";
            }
            items.rest = match items.rest_keyword {
                "items" => self.schema("items")?,
                _ => self.schema("additionalItems")?,
            };
        }
        if !items.prefix.is_empty() || items.rest.is_some() {
            self.applicators.push(Applicator::Items(items));
        }
        if self.dialect.draft >= Draft::Draft6
            && let Some(node) = self.schema("contains")?
        {
            let limited = self.dialect.draft >= Draft::Draft201909 && self.dialect.validation;
            let (min, max) = match limited {
                true => (self.size("minContains")?, self.size("maxContains")?),
                false => (None, None),
            };
            let covers = self.dialect.draft >= Draft::Draft202012;
            let contains = Contains { node, min: min.unwrap_or(1), max, covers };
            self.applicators.push(Applicator::Contains(contains));
        }
        Ok(())
    }

    fn unevaluated(&mut self) -> Result<()> {
        if let Some(node) = self.schema("unevaluatedItems")? {
            self.applicators.push(Applicator::UnevaluatedItems(node));
        }
        if let Some(node) = self.schema("unevaluatedProperties")? {
            self.applicators.push(Applicator::UnevaluatedProperties(node));
        }
        Ok(())
    }

    fn assert(&mut self, keyword: &'static str, check: Check) {
        self.assertions.push(Assertion { keyword, check });
    }

    fn text(&self, keyword: &str) -> Result<Option<&'v str>> {
        match self.map.get(keyword) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(expected(keyword, "a string", other)),
        }
    }

    fn number(&self, keyword: &str) -> Result<Option<Number>> {
        match self.map.get(keyword) {
            None => Ok(None),
            Some(Value::Number(number)) => Ok(Some(number.clone())),
            Some(other) => Err(expected(keyword, "a number", other)),
        }
    }

    /// A count; one beyond 64 bits is as good as the largest.
    fn size(&self, keyword: &str) -> Result<Option<u64>> {
        let Some(number) = self.number(keyword)? else { return Ok(None) };
        let decimal = Decimal::new(&number.as_num());
        if decimal.negative || !decimal.is_integer() {
            return Err(Error::invalid_input(format!(
                "`{keyword}` is {number}; expected an integer of at least 0"
            )));
        }
        let zeros = usize::try_from(decimal.exponent).unwrap_or(usize::MAX).min(20);
        let text = format!("{}{}", String::from_utf8_lossy(&decimal.digits), "0".repeat(zeros));
        Ok(Some(match decimal.digits.is_empty() {
            true => 0,
            false => text.parse().unwrap_or(u64::MAX),
        }))
    }

    fn schema(&mut self, keyword: &str) -> Result<Option<NodeId>> {
        let schema = self.map.get(keyword);
        schema.map(|schema| self.compiler.node(self.known(keyword, schema)?)).transpose()
    }

    /// Only maps and booleans are schemas, and only those were found before.
    fn known(&self, keyword: &str, schema: &'v Value) -> Result<&'v Value> {
        match schema {
            Value::Map(_) | Value::Bool(_) => Ok(schema),
            other => Err(expected(keyword, "a schema", other)),
        }
    }

    fn list(&mut self, keyword: &str) -> Result<Option<Vec<NodeId>>> {
        match self.map.get(keyword) {
            None => Ok(None),
            Some(Value::List(schemas)) => schemas
                .iter()
                .map(|schema| self.compiler.node(schema))
                .collect::<Result<_>>()
                .map(Some),
            Some(other) => Err(expected(keyword, "a list of schemas", other)),
        }
    }

    fn schemas(&self, keyword: &str) -> Result<Option<&'v Map>> {
        match self.map.get(keyword) {
            None => Ok(None),
            Some(Value::Map(map)) => Ok(Some(map)),
            Some(other) => Err(expected(keyword, "an object", other)),
        }
    }
}

fn expected(keyword: &str, what: &str, found: &Value) -> Error {
    Error::invalid_input(format!("`{keyword}` is a {}; expected {what}", found.kind()))
}

fn names(keyword: &str, value: &Value) -> Result<Vec<String>> {
    let Value::List(list) = value else {
        return Err(expected(keyword, "a list of names", value));
    };
    let name = |value: &Value| match value {
        Value::String(name) => Ok(name.clone()),
        other => Err(expected(keyword, "a list of names", other)),
    };
    list.iter().map(name).collect()
}

fn types(value: &Value, draft: Draft) -> Result<Types> {
    let names = match value {
        Value::String(name) => vec![name.clone()],
        other => names("type", other)?,
    };
    let mut types = Types { by_value: draft > Draft::Draft4, ..Types::default() };
    for name in names {
        types.kinds.push(match name.as_str() {
            "null" => NodeKind::Null,
            "boolean" => NodeKind::Bool,
            "number" => NodeKind::Number,
            "string" => NodeKind::String,
            "object" => NodeKind::Map,
            "array" => NodeKind::List,
            "integer" => {
                types.integer = true;
                continue;
            }
            other => {
                return Err(Error::invalid_input(format!(
                    "`type` names `{other}`, which is no type"
                )));
            }
        });
    }
    Ok(types)
}
