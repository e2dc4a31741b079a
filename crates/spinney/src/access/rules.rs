//! The rules of a store, as they are written and as they are judged.

use std::fmt;
use std::str::FromStr;

use spinney_core::access::{Effect, Permissions, Right, Rule};
use spinney_core::value::List;
use spinney_core::{Error, Map, Path, Result, Value, path};

use super::Principal;
use crate::{datastores, locks, owners};

/// The most rules that a store has.
pub const RULES_MAX: usize = 10_000;

/// The trees in which the store itself keeps what it needs. Only who administers the root sees them.
const INTERNAL: &[&str] = &[
    super::NAME,
    locks::NAME,
    owners::NAME,
    ".schemas",
    ".stacks",
    datastores::NAME,
    datastores::UNCONFIRMED_NAME,
    datastores::PUSHED_NAME,
];

/// Whom a rule is about.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Subject {
    /// Everyone; it is written `*`.
    Everyone,
    /// A user, by name.
    User(String),
    /// Whoever is in a group; it is written `@GROUP`.
    Group(String),
}

impl Subject {
    fn is(&self, principal: &Principal) -> bool {
        match self {
            Subject::Everyone => true,
            Subject::User(name) => *name == principal.name,
            Subject::Group(group) => principal.groups.contains(group),
        }
    }

    /// Someone who is no more than this.
    fn example(&self) -> Principal {
        match self {
            Subject::Everyone => Principal::default(),
            Subject::User(name) => Principal::new(name),
            Subject::Group(group) => Principal::default().in_group(group),
        }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Subject::Everyone => f.write_str("*"),
            Subject::User(name) => f.write_str(name),
            Subject::Group(group) => write!(f, "@{group}"),
        }
    }
}

impl FromStr for Subject {
    type Err = Error;

    fn from_str(text: &str) -> Result<Subject> {
        match (text, text.strip_prefix('@')) {
            ("" | "@", _) => Err(Error::invalid_input(format!(
                "`{text}` names nobody; write a user, `@GROUP`, or `*` for everyone"
            ))),
            ("*", _) => Ok(Subject::Everyone),
            (_, Some(group)) => Ok(Subject::Group(group.to_owned())),
            (name, None) => Ok(Subject::User(name.to_owned())),
        }
    }
}

/// A rule and whom it is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessRule {
    /// Whom it is about.
    pub subject: Subject,
    /// What they may or may not do, and where.
    pub rule: Rule,
}

impl fmt::Display for AccessRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let AccessRule { subject, rule: Rule { path, effect } } = self;
        write!(f, "{effect} to {subject} at {path}")
    }
}

impl AccessRule {
    /// As it is stored and printed: `{"allow": "write", "to": "@staff", "path": "/people"}`.
    pub fn to_value(&self) -> Value {
        let mut members = Map::new();
        let (verb, right) = match self.rule.effect {
            Effect::Allow(right) => ("allow", right),
            Effect::Deny(right) => ("deny", right),
        };
        members.insert(verb, right.name());
        members.insert("to", self.subject.to_string());
        members.insert("path", &*self.rule.path);
        members.into()
    }

    fn of_value(value: &Value) -> Result<AccessRule> {
        let Value::Map(members) = value else { return Err(malformed()) };
        let text = |name: &str| match members.get(name) {
            None => Ok(None),
            Some(value) => value.as_str().map(Some).ok_or_else(malformed),
        };
        let right = |name: &str| text(name)?.map(Right::from_str).transpose();
        let effect = match (right("allow")?, right("deny")?) {
            (Some(right), None) => Effect::Allow(right),
            (None, Some(right)) => Effect::Deny(right),
            _ => return Err(malformed()),
        };
        if members.len() != 3 {
            return Err(malformed());
        }
        let subject = text("to")?.ok_or_else(malformed)?.parse()?;
        let path = Path::parse(text("path")?.ok_or_else(malformed)?)?;
        Ok(AccessRule { subject, rule: Rule { path, effect } })
    }
}

fn malformed() -> Error {
    Error::invalid_input(
        "it is no rule; write `{\"allow\": \"read\", \"to\": \"ann\", \"path\": \"/people\"}`, with `deny` for \
         `allow`, `read`, `write` or `admin`, and a user, `@GROUP` or `*`",
    )
}

/// The rules of a store, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccessRules(pub Vec<AccessRule>);

impl AccessRules {
    /// Reads a list of rules.
    ///
    /// # Errors
    /// `InvalidInput` naming the first that is none; `LimitExceeded` above [`RULES_MAX`].
    pub fn of_value(value: &Value) -> Result<AccessRules> {
        let Value::List(list) = value else {
            return Err(Error::invalid_input("access rules are a list; write `[]` for none"));
        };
        if list.len() > RULES_MAX {
            return Err(Error::limit_exceeded(format!(
                "{} access rules; a store has at most {RULES_MAX}",
                list.len()
            )));
        }
        let rule = |(at, value)| {
            AccessRule::of_value(value).map_err(|error| error.at(format_args!("rule {at}")))
        };
        (1..).zip(list.iter()).map(rule).collect::<Result<_>>().map(AccessRules)
    }

    /// As [`AccessRules::of_value`] reads them.
    pub fn to_value(&self) -> Value {
        Value::List(self.0.iter().map(AccessRule::to_value).collect::<List>())
    }

    /// What a principal may do.
    pub fn permissions(&self, principal: &Principal) -> Permissions {
        let about: Vec<(u32, &Rule)> = (0..)
            .zip(&self.0)
            .filter(|(_, rule)| rule.subject.is(principal))
            .map(|(number, rule)| (number, &rule.rule))
            .collect();
        let permissions = Permissions::new(about.iter().copied());
        if permissions.root().may(Right::Admin) {
            return permissions;
        }
        // Before all others, whose numbers stay as they are.
        let internal: Vec<Rule> = INTERNAL
            .iter()
            .map(|name| Rule { path: Path::root().child(name), effect: Effect::Deny(Right::Read) })
            .collect();
        let first = internal.iter().map(|rule| (INTERNAL_RULE, rule));
        let others = about.iter().map(|(number, rule)| (number + 1, *rule));
        Permissions::new(first.chain(others))
    }

    /// The rule that a number in a [`Permissions`] of these rules names.
    pub fn rule(&self, permissions: &Permissions, number: usize) -> Option<(usize, &AccessRule)> {
        let at = match permissions.root().may(Right::Admin) {
            true => number,
            false => number.checked_sub(1)?,
        };
        Some((at, self.0.get(at)?))
    }

    /// Whether somebody administers the root, or there are no rules.
    pub fn leaves_someone(&self) -> bool {
        let is_admin =
            |rule: &AccessRule| self.permissions(&rule.subject.example()).root().may(Right::Admin);
        self.0.is_empty() || self.0.iter().any(is_admin)
    }
}

/// The number of the rule that hides what the store itself keeps.
const INTERNAL_RULE: u32 = 0;

/// What decides about a right at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Whether it is given.
    pub is_allowed: bool,
    /// The rule that decides, with its number from 1; `None` where none is about it.
    pub rule: Option<(usize, AccessRule)>,
    /// Why, where no rule of the store decides.
    pub reason: &'static str,
}

impl AccessRules {
    /// What decides about a right of a principal at a path.
    ///
    /// # Errors
    /// `InvalidInput` for a malformed path; those of `is_list`.
    pub fn decide(
        &self,
        principal: &Principal,
        place: &str,
        right: Right,
        is_list: impl FnMut(&str) -> Result<bool>,
    ) -> Result<Decision> {
        path::check(place)?;
        if self.0.is_empty() {
            return Ok(Decision { is_allowed: true, rule: None, reason: "there are no rules" });
        }
        let permissions = self.permissions(principal);
        let way = permissions.way(place, is_list)?;
        let number = way.standing.decided_by(right);
        let rule = number.and_then(|number| self.rule(&permissions, number));
        let reason = match number {
            None => "no rule is about it",
            Some(_) if rule.is_none() => {
                "only who administers the root sees what the store keeps there"
            }
            Some(_) if way.may(right) && way.is_hidden() => {
                "the elements of the list are not shown"
            }
            Some(_) => "",
        };
        let rule = rule.map(|(at, rule)| (at + 1, rule.clone()));
        Ok(Decision { is_allowed: way.may(right) && !way.is_hidden(), rule, reason })
    }
}
