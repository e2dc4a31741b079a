//! The formats that `format` names, as the RFCs that it refers to define them.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::LazyLock;

use fluent_uri::{Iri, IriRef, Uri, UriRef};
use regex::Regex;
use spinney_core::{ErrorKind, path};

use crate::dialect::Draft;
use crate::pattern::Pattern;

/// A format that is asserted. All others only annotate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Date,
    DateTime,
    Duration,
    Email,
    Hostname,
    IdnEmail,
    Ipv4,
    Ipv6,
    Iri,
    IriReference,
    JsonPointer,
    Regex,
    RelativeJsonPointer,
    Time,
    Uri,
    UriReference,
    UriTemplate,
    Uuid,
}

/// Names, what a text of the format is called, and the draft that brought it.
const FORMATS: [(Format, &str, &str, Draft); 18] = [
    (Format::Date, "date", "a date such as `2020-02-29`", Draft::Draft7),
    (Format::DateTime, "date-time", "a time such as `2020-02-29T12:00:00Z`", Draft::Draft4),
    (Format::Duration, "duration", "a duration such as `P1DT12H`", Draft::Draft201909),
    (Format::Email, "email", "an email address", Draft::Draft4),
    (Format::Hostname, "hostname", "a host name", Draft::Draft4),
    (Format::IdnEmail, "idn-email", "an email address", Draft::Draft7),
    (Format::Ipv4, "ipv4", "an IPv4 address", Draft::Draft4),
    (Format::Ipv6, "ipv6", "an IPv6 address", Draft::Draft4),
    (Format::Iri, "iri", "an IRI such as `https://a.example/ä`", Draft::Draft7),
    (Format::IriReference, "iri-reference", "an IRI or a relative one", Draft::Draft7),
    (Format::JsonPointer, "json-pointer", "a JSON Pointer such as `/a/0`", Draft::Draft6),
    (Format::Regex, "regex", "a regular expression of ECMA-262", Draft::Draft7),
    (
        Format::RelativeJsonPointer,
        "relative-json-pointer",
        "a relative JSON Pointer such as `1/a`",
        Draft::Draft7,
    ),
    (Format::Time, "time", "a time of day such as `12:00:00Z`", Draft::Draft7),
    (Format::Uri, "uri", "a URI such as `https://a.example/b`", Draft::Draft4),
    (Format::UriReference, "uri-reference", "a URI or a relative one", Draft::Draft6),
    (Format::UriTemplate, "uri-template", "a URI template of RFC 6570", Draft::Draft6),
    (Format::Uuid, "uuid", "a UUID", Draft::Draft201909),
];

impl Format {
    /// The format of a name, when the draft has it and it is asserted.
    pub fn new(name: &str, draft: Draft) -> Option<Format> {
        let known = FORMATS.iter().find(|(_, known, ..)| *known == name)?;
        (known.3 <= draft).then_some(known.0)
    }

    /// What fits it, for people.
    pub fn describe(self) -> String {
        let known = FORMATS.iter().find(|(format, ..)| *format == self);
        known.map(|(_, _, text, _)| (*text).to_owned()).unwrap_or_default()
    }

    /// Whether a text is of the format.
    pub fn fits(self, text: &str) -> bool {
        match self {
            Format::Date => is_date(text),
            Format::Time => is_time(text),
            Format::DateTime => text
                .split_once(['T', 't'])
                .is_some_and(|(date, time)| is_date(date) && is_time(time)),
            Format::Duration => DURATION.is_match(text),
            Format::Email => EMAIL.captures(text).is_some_and(|parts| is_mail_domain(&parts[1])),
            Format::IdnEmail => text
                .split_once('@')
                .is_some_and(|(name, host)| !name.is_empty() && !host.is_empty()),
            Format::Hostname => is_hostname(text),
            Format::Ipv4 => text.parse::<Ipv4Addr>().is_ok(),
            Format::Ipv6 => text.parse::<Ipv6Addr>().is_ok(),
            Format::Uri => Uri::parse(text).is_ok(),
            Format::UriReference => UriRef::parse(text).is_ok(),
            Format::Iri => Iri::parse(text).is_ok(),
            Format::IriReference => IriRef::parse(text).is_ok(),
            Format::UriTemplate => URI_TEMPLATE.is_match(text),
            Format::Uuid => UUID.is_match(text),
            Format::JsonPointer => path::check(text).is_ok(),
            Format::RelativeJsonPointer => RELATIVE_POINTER
                .captures(text)
                .is_some_and(|parts| &parts[1] == "#" || path::check(&parts[1]).is_ok()),
            // One that only a backtracking matcher understands is one, too.
            Format::Regex => Pattern::new(text)
                .map_or_else(|error| error.kind() != ErrorKind::InvalidInput, |_| true),
        }
    }
}

fn known(source: &str) -> Regex {
    Regex::new(source).expect("the expression is well-formed")
}

static DATE: LazyLock<Regex> = LazyLock::new(|| known("^([0-9]{4})-([0-9]{2})-([0-9]{2})$"));
static TIME: LazyLock<Regex> = LazyLock::new(|| {
    known(r"^([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.[0-9]+)?(?:[Zz]|([+-])([0-9]{2}):([0-9]{2}))$")
});
static DURATION: LazyLock<Regex> = LazyLock::new(|| {
    let time = "(?:T(?:[0-9]+H(?:[0-9]+M(?:[0-9]+S)?)?|[0-9]+M(?:[0-9]+S)?|[0-9]+S))";
    let date = "(?:[0-9]+Y(?:[0-9]+M(?:[0-9]+D)?)?|[0-9]+M(?:[0-9]+D)?|[0-9]+D)";
    known(&format!("^P(?:{date}{time}?|{time}|[0-9]+W)$"))
});
static EMAIL: LazyLock<Regex> = LazyLock::new(|| {
    let atom = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+";
    let quoted = r#""(?:[\x20\x21\x23-\x5b\x5d-\x7e]|\\[\x20-\x7e])*""#;
    known(&format!(r"^(?:{atom}(?:\.{atom})*|{quoted})@(.+)$"))
});
static URI_TEMPLATE: LazyLock<Regex> = LazyLock::new(|| {
    let character = r"(?:[A-Za-z0-9_]|%[0-9A-Fa-f]{2})";
    let name = format!(r"{character}(?:\.?{character})*(?::[1-9][0-9]{{0,3}}|\*)?");
    let expression = format!(r"\{{[+#./;?&=,!@|]?{name}(?:,{name})*\}}");
    let literal = r#"[^\x00-\x20"'<>\\^`{|}%\x7f]|%[0-9A-Fa-f]{2}"#;
    known(&format!("^(?:{literal}|{expression})*$"))
});
static UUID: LazyLock<Regex> =
    LazyLock::new(|| known("^(?i)[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"));
static RELATIVE_POINTER: LazyLock<Regex> =
    LazyLock::new(|| known("^(?:0|[1-9][0-9]*)((?s)#|(?:/.*)?)$"));

fn is_date(text: &str) -> bool {
    let Some(parts) = DATE.captures(text) else { return false };
    let [year, month, day] = [1, 2, 3].map(|part| parts[part].parse::<u32>().unwrap_or(0));
    let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let days = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if is_leap => 29,
        2 => 28,
        _ => 0,
    };
    (1..=days).contains(&day)
}

/// A leap second is the last of a day in UTC.
fn is_time(text: &str) -> bool {
    let Some(parts) = TIME.captures(text) else { return false };
    let number =
        |part| parts.get(part).map_or(0, |part| part.as_str().parse::<i32>().unwrap_or(99));
    let [hour, minute, second, offset_hour, offset_minute] = [1, 2, 3, 5, 6].map(number);
    let offset = offset_hour * 60 + offset_minute;
    let offset =
        if parts.get(4).is_some_and(|sign| sign.as_str() == "-") { -offset } else { offset };
    let in_utc = (hour * 60 + minute - offset).rem_euclid(24 * 60);
    hour < 24
        && minute < 60
        && offset_hour < 24
        && offset_minute < 60
        && (second < 60 || (second == 60 && in_utc == 24 * 60 - 1))
}

fn is_hostname(text: &str) -> bool {
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    text.len() <= 253 && text.split('.').all(is_label)
}

fn is_mail_domain(text: &str) -> bool {
    match text.strip_prefix('[').and_then(|text| text.strip_suffix(']')) {
        Some(literal) => match literal.strip_prefix("IPv6:") {
            Some(address) => address.parse::<Ipv6Addr>().is_ok(),
            None => literal.parse::<Ipv4Addr>().is_ok(),
        },
        None => is_hostname(text),
    }
}
