//! Keywords that look at one node only.

use spinney_core::error::Result;

use super::{Evaluation, Subject, Via};
use crate::changes::{Change, Inside};
use crate::decimal;
use crate::equality;
use crate::instance::{Instance, Leaf};
use crate::report::{describe, shortened};
use crate::schema::{Assertion, Check, NodeId, Schema, Types};
use spinney_core::node::NodeKind;

impl<I: Instance> Evaluation<'_, I> {
    /// Checks the assertions of the frame that was just opened.
    pub(super) fn check_node(&mut self) -> Result<()> {
        let schema = self.schema;
        let frame = self.frame();
        let node = &schema.nodes[frame.job.node];
        if node.verdict == Some(false) {
            return self.fail("", nothing_at(&frame.job.via), None);
        }
        let inside = frame.job.before.as_ref().map(|(_, inside)| self.changes.inside(*inside));
        for Assertion { keyword, check } in &node.assertions {
            if inside.is_some_and(|inside| !check.may_break(inside)) {
                continue;
            }
            let broken = check.broken_by(&self.frame().job.subject)?;
            if let Some(Broken { expected, found }) = broken {
                self.fail(keyword, expected, found.as_deref())?;
                if self.frame().job.quiet {
                    break;
                }
            }
        }
        Ok(())
    }
}

impl Schema {
    /// Whether a node fits a schema that looks at the node alone; `None` when it may look further.
    pub(super) fn fits_at_once<I: Instance>(
        &self,
        node: NodeId,
        subject: &Subject<I>,
    ) -> Result<Option<bool>> {
        let node = &self.nodes[node];
        if !node.is_shallow() {
            return Ok(None);
        }
        for Assertion { check, .. } in &node.assertions {
            if check.broken_by(subject)?.is_some() {
                return Ok(Some(false));
            }
        }
        Ok(Some(node.verdict != Some(false)))
    }
}

/// What a schema that accepts nothing says, by the keyword that led to it.
fn nothing_at(via: &Via) -> String {
    match via.keyword {
        "additionalProperties" | "unevaluatedProperties" | "properties" | "patternProperties" => {
            "no such member".to_owned()
        }
        "items" | "additionalItems" | "unevaluatedItems" | "prefixItems" => {
            "no such element".to_owned()
        }
        "propertyNames" => "no members".to_owned(),
        _ => "nothing here".to_owned(),
    }
}

/// Why an assertion does not hold.
struct Broken {
    expected: String,
    /// What is wrong with what was found, where that is not obvious.
    found: Option<String>,
}

fn expected(expected: impl Into<String>) -> Option<Broken> {
    Some(Broken { expected: expected.into(), found: None })
}

impl Check {
    /// Whether changes inside of a container can break what held before.
    fn may_break(&self, inside: &Inside) -> bool {
        let has = |name: &String, wanted: Change| inside.members.get(name) == Some(&wanted);
        match self {
            Check::Const(_) | Check::Enum(_) => true,
            Check::MinItems(_) | Check::MaxItems(_) => inside.shifts(),
            Check::UniqueItems => !inside.put.is_empty() || !inside.touched.is_empty(),
            Check::MinProperties(_) | Check::MaxProperties(_) => true,
            Check::Required(names) => names.iter().any(|name| has(name, Change::Removed)),
            Check::DependentRequired(entries) => entries.iter().any(|(key, names)| {
                has(key, Change::Added) || names.iter().any(|name| has(name, Change::Removed))
            }),
            _ => false,
        }
    }

    /// Why it does not hold of a node.
    fn broken_by<I: Instance>(&self, subject: &Subject<I>) -> Result<Option<Broken>> {
        match (self.of_leaf(subject)?, subject.node()) {
            (None, Some(node)) => self.of_container(node),
            (broken, _) => Ok(broken),
        }
    }

    /// Assertions about scalars, and those about any node.
    fn of_leaf<I: Instance>(&self, subject: &Subject<I>) -> Result<Option<Broken>> {
        let broken = |is_broken: bool, say: &dyn Fn() -> String| {
            Ok(if is_broken { expected(say()) } else { None })
        };
        match self {
            Check::Type(types) => {
                let fits = types.fit(subject)?;
                return broken(!fits, &|| types.describe());
            }
            Check::Const(value) => {
                return match is_equal(subject, value)? {
                    true => Ok(None),
                    false => Ok(expected(describe(&value)?)),
                };
            }
            Check::Enum(values) => {
                for value in values {
                    if is_equal(subject, value)? {
                        return Ok(None);
                    }
                }
                let shown = values.iter().take(10).map(|value| describe(&value));
                let mut shown = shown.collect::<Result<Vec<_>>>()?.join(", ");
                if values.len() > 10 {
                    shown.push_str(", …");
                }
                return broken(true, &|| format!("one of: {shown}"));
            }
            _ => {}
        }
        match subject.leaf(&mut Vec::new())? {
            Some(Leaf::Number(num)) => match self {
                Check::MultipleOf(divisor, number) => {
                    broken(!divisor.divides(&num), &|| format!("a multiple of {number}"))
                }
                Check::Minimum(limit) => broken(num.compare(&limit.as_num()).is_lt(), &|| {
                    format!("a number of at least {limit}")
                }),
                Check::Maximum(limit) => broken(num.compare(&limit.as_num()).is_gt(), &|| {
                    format!("a number of at most {limit}")
                }),
                Check::ExclusiveMinimum(limit) => {
                    broken(num.compare(&limit.as_num()).is_le(), &|| {
                        format!("a number above {limit}")
                    })
                }
                Check::ExclusiveMaximum(limit) => {
                    broken(num.compare(&limit.as_num()).is_ge(), &|| {
                        format!("a number below {limit}")
                    })
                }
                _ => Ok(None),
            },
            Some(Leaf::String(text)) => match self {
                Check::MinLength(min) => {
                    broken(len(&text) < *min, &|| format!("a string of at least {min} characters"))
                }
                Check::MaxLength(max) => {
                    broken(len(&text) > *max, &|| format!("a string of at most {max} characters"))
                }
                Check::Pattern(pattern) => broken(!pattern.is_match(&text), &|| {
                    format!("a string that matches `{}`", pattern.source)
                }),
                Check::Format(format) => broken(!format.fits(&text), &|| format.describe()),
                _ => Ok(None),
            },
            _ => Ok(None),
        }
    }

    /// Assertions about maps and lists.
    fn of_container<I: Instance>(&self, node: &I) -> Result<Option<Broken>> {
        let kind = node.kind()?;
        Ok(match (self, kind) {
            (Check::MinItems(min), NodeKind::List) if node.count()? < *min => {
                expected(format!("at least {min} elements"))
            }
            (Check::MaxItems(max), NodeKind::List) if node.count()? > *max => {
                expected(format!("at most {max} elements"))
            }
            (Check::MinProperties(min), NodeKind::Map) if node.count()? < *min => {
                expected(format!("at least {min} members"))
            }
            (Check::MaxProperties(max), NodeKind::Map) if node.count()? > *max => {
                expected(format!("at most {max} members"))
            }
            (Check::UniqueItems, NodeKind::List) => {
                equality::repeated(node)?.map(|(first, second)| Broken {
                    expected: "elements that all differ".to_owned(),
                    found: Some(format!("whose elements {first} and {second} are equal")),
                })
            }
            (Check::Required(names), NodeKind::Map) => {
                let missing = missing(node, names)?;
                (!missing.is_empty()).then(|| member_names(&missing)).and_then(expected)
            }
            (Check::DependentRequired(entries), NodeKind::Map) => {
                for (key, names) in entries {
                    if node.member(key)?.is_none() {
                        continue;
                    }
                    let missing = missing(node, names)?;
                    if !missing.is_empty() {
                        let (missing, key) = (member_names(&missing), shortened(key));
                        return Ok(expected(format!("{missing} beside `{key}`")));
                    }
                }
                None
            }
            _ => None,
        })
    }
}

fn missing<'n, I: Instance>(node: &I, names: &'n [String]) -> Result<Vec<&'n str>> {
    let mut missing = Vec::new();
    for name in names {
        if node.member(name)?.is_none() {
            missing.push(name.as_str());
        }
    }
    Ok(missing)
}

fn member_names(names: &[&str]) -> String {
    let quoted: Vec<_> = names.iter().map(|name| format!("`{}`", shortened(name))).collect();
    let what = if names.len() == 1 { "the member" } else { "the members" };
    format!("{what} {}", quoted.join(", "))
}

fn is_equal<I: Instance>(subject: &Subject<I>, value: &spinney_core::Value) -> Result<bool> {
    Ok(match subject {
        Subject::Node(node) => equality::equal(&value, node)?,
        Subject::Name(name) => value.as_str() == Some(&**name),
    })
}

/// Characters as Unicode code points, which is how JSON Schema counts them.
fn len(text: &str) -> u64 {
    text.chars().count() as u64
}

impl Types {
    fn fit<I: Instance>(&self, subject: &Subject<I>) -> Result<bool> {
        let kind = subject.kind()?;
        if self.kinds.contains(&kind) {
            return Ok(true);
        }
        Ok(match subject.leaf(&mut Vec::new())? {
            Some(Leaf::Number(num)) if self.integer && self.by_value => decimal::is_integer(&num),
            Some(Leaf::Number(num)) => self.integer && !num.to_string().contains(['.', 'e', 'E']),
            _ => false,
        })
    }

    fn describe(&self) -> String {
        let mut names: Vec<&str> = self
            .kinds
            .iter()
            .map(|kind| match kind {
                NodeKind::Null => "null",
                NodeKind::Bool => "a boolean",
                NodeKind::Number => "a number",
                NodeKind::String => "a string",
                NodeKind::Bytes => "bytes",
                NodeKind::Map => "an object",
                NodeKind::List => "a list",
            })
            .collect();
        if self.integer {
            names.push("an integer");
        }
        names.join(" or ")
    }
}
