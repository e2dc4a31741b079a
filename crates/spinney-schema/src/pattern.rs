//! Regular expressions of ECMA-262, matched in linear time.

use regex::Regex;
use spinney_core::error::{Error, Result};

/// A compiled expression. It matches anywhere in a text unless it says otherwise.
#[derive(Clone, Debug)]
pub struct Pattern {
    /// As the schema has it.
    pub source: String,
    regex: Regex,
}

impl Pattern {
    /// Compiles an expression.
    ///
    /// # Errors
    /// `Unsupported` when it looks around or refers back, which no matcher does in linear time;
    /// `InvalidInput` when it is no expression at all.
    pub fn new(source: &str) -> Result<Pattern> {
        let translated = jsonschema_regex::to_rust_regex(source);
        let compiled = Regex::new(translated.as_deref().unwrap_or(source));
        match compiled {
            Ok(regex) if translated.is_ok() => Ok(Pattern { source: source.to_owned(), regex }),
            Err(regex::Error::CompiledTooBig(limit)) => Err(Error::limit_exceeded(format!(
                "the regular expression `{source}` needs more than {limit} bytes compiled; make its repetitions smaller"
            ))),
            result => Err(match unsupported(source) {
                Some(what) => Error::unsupported(format!(
                    "the regular expression `{source}` uses {what}, which cannot be matched in linear time; write it without"
                )),
                None => {
                    let error = Error::invalid_input(format!(
                        "`{source}` is not a regular expression of ECMA-262"
                    ));
                    match result {
                        Err(cause) => error.with_source(cause),
                        Ok(_) => error,
                    }
                }
            }),
        }
    }

    /// Whether a part of the text matches.
    ///
    /// # Complexity
    /// O(length of the text).
    pub fn is_match(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }
}

/// What makes an expression need backtracking, if that is what is wrong with it.
fn unsupported(source: &str) -> Option<&'static str> {
    let (mut rest, mut in_class) = (source, false);
    while let Some(first) = rest.chars().next() {
        let after = &rest[first.len_utf8()..];
        match first {
            '\\' => {
                let escaped = after.chars().next()?;
                if !in_class && (matches!(escaped, '1'..='9') || after.starts_with("k<")) {
                    return Some("a back-reference");
                }
                rest = &after[escaped.len_utf8()..];
                continue;
            }
            '[' => in_class = true,
            ']' => in_class = false,
            '(' if !in_class
                && ["?=", "?!", "?<=", "?<!"].iter().any(|open| after.starts_with(open)) =>
            {
                return Some("look-around");
            }
            _ => {}
        }
        rest = after;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use spinney_core::ErrorKind;

    #[test]
    fn what_would_backtrack_is_refused_by_name() {
        for (source, what) in [
            ("^(?!x).*$", "look-around"),
            ("(?<=a)b", "look-around"),
            (r"(a)\1", "back-reference"),
            (r"(?<q>a)\k<q>", "back-reference"),
        ] {
            let error = Pattern::new(source).expect_err(source);
            assert_eq!(error.kind(), ErrorKind::Unsupported);
            assert!(error.to_string().contains(what), "{error}");
        }
        assert_eq!(Pattern::new("a[").expect_err("open").kind(), ErrorKind::InvalidInput);
    }

    #[test]
    fn escapes_mean_what_ecma_262_says() {
        for (source, text, expected) in [
            (r"^\d$", "٣", false),
            (r"^\w$", "é", false),
            (r"^\s$", "\u{feff}", true),
            (r"^\cC$", "\u{3}", true),
            (r"^[\w-]+/\/$", "a-//", true),
            (r"^(?<word>\S+)$", "x", true),
            ("b", "abc", true),
            ("^a$", "a\n", false),
            (r"^\p{Letter}+$", "é", true),
        ] {
            assert_eq!(Pattern::new(source).expect(source).is_match(text), expected, "{source}");
        }
    }
}
