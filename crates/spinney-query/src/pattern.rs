//! Regular expressions of RFC 9485 (I-Regexp), matched in linear time.
//!
//! They are checked here and translated; `regex` matches them. As everybody does, and the compliance
//! suite with them, `^` and `$` outside brackets mean the beginning and the end of the text.

use regex::{Regex, RegexBuilder};
use spinney_core::error::{Error, Result};

/// Bytes of a compiled expression.
const COMPILED_LEN_MAX: usize = 1 << 20;

/// Groups within groups.
const NESTING_MAX: usize = 100;

/// The categories of characters that `\p` may name (RFC 9485, section 4).
const CATEGORIES: [&str; 36] = [
    "L", "Ll", "Lm", "Lo", "Lt", "Lu", "M", "Mc", "Me", "Mn", "N", "Nd", "Nl", "No", "P", "Pc",
    "Pd", "Pe", "Pf", "Pi", "Po", "Ps", "Z", "Zl", "Zp", "Zs", "S", "Sc", "Sk", "Sm", "So", "C",
    "Cc", "Cf", "Cn", "Co",
];

/// What of a text must match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// All of it.
    Whole,
    /// Any part.
    Part,
}

/// A compiled expression.
#[derive(Clone, Debug)]
pub struct Pattern(Regex);

/// Why a text is no expression: at which character, and what was expected there.
#[derive(Debug, PartialEq, Eq)]
pub struct Malformed {
    /// Counted from 1.
    pub character: usize,
    /// In words.
    pub expected: &'static str,
}

impl Pattern {
    /// Compiles an expression.
    ///
    /// # Errors
    /// `LimitExceeded` when it is too large; [`Malformed`] when it is none.
    pub fn new(source: &str, extent: Extent) -> Result<Result<Pattern, Malformed>> {
        let translated = match Translation::of(source) {
            Ok(translated) => translated,
            Err(Refused::Malformed(malformed)) => return Ok(Err(malformed)),
            Err(Refused::Nesting) => return Err(too_large(source)),
        };
        let whole = match extent {
            Extent::Whole => format!(r"\A(?:{translated})\z"),
            Extent::Part => translated,
        };
        match RegexBuilder::new(&whole).size_limit(COMPILED_LEN_MAX).build() {
            Ok(regex) => Ok(Ok(Pattern(regex))),
            Err(regex::Error::Syntax(_)) => {
                // The grammar is checked: what is left are ranges the wrong way round.
                let expected = "ranges that begin before they end";
                Ok(Err(Malformed { character: 1, expected }))
            }
            Err(_) => Err(too_large(source)),
        }
    }

    /// Whether the text matches.
    ///
    /// # Complexity
    /// O(length of the text).
    #[inline]
    pub fn is_match(&self, text: &str) -> bool {
        self.0.is_match(text)
    }
}

#[cold]
fn too_large(source: &str) -> Error {
    let shown: String = source.chars().take(40).collect();
    Error::limit_exceeded(format!(
        "the regular expression `{shown}` needs more than {COMPILED_LEN_MAX} bytes compiled or nests \
         deeper than {NESTING_MAX}; make its repetitions smaller"
    ))
}

enum Refused {
    Malformed(Malformed),
    Nesting,
}

/// An expression on its way from one syntax to the other.
struct Translation<'s> {
    source: &'s str,
    rest: std::str::Chars<'s>,
    out: String,
}

impl<'s> Translation<'s> {
    fn of(source: &'s str) -> Result<String, Refused> {
        let mut translation = Translation { source, rest: source.chars(), out: String::new() };
        translation.run()?;
        Ok(translation.out)
    }

    fn run(&mut self) -> Result<(), Refused> {
        let mut groups = 0;
        // Whether a quantifier may follow.
        let mut is_atom = false;
        while let Some(char) = self.rest.next() {
            is_atom = match char {
                '(' if groups == NESTING_MAX => return Err(Refused::Nesting),
                '(' => {
                    groups += 1;
                    self.out.push_str("(?:");
                    false
                }
                ')' if groups > 0 => {
                    groups -= 1;
                    self.out.push(')');
                    true
                }
                '*' | '+' | '?' if is_atom => {
                    self.out.push(char);
                    false
                }
                '{' if is_atom => {
                    self.repetitions()?;
                    false
                }
                ')' | '*' | '+' | '?' | '{' | ']' | '}' => {
                    return Err(self.here("something that it can follow, or `\\` before it"));
                }
                '|' | '^' | '$' => {
                    self.out.push(char);
                    false
                }
                '.' => {
                    self.out.push_str(r"[^\n\r]");
                    true
                }
                '[' => {
                    self.class()?;
                    true
                }
                '\\' => {
                    if let Some(char) = self.escape()? {
                        self.put(char);
                    }
                    true
                }
                _ => {
                    self.put(char);
                    true
                }
            };
        }
        match groups {
            0 => Ok(()),
            _ => Err(self.next("a `)`")),
        }
    }

    /// Behind `{`.
    fn repetitions(&mut self) -> Result<(), Refused> {
        let (digits, after) = match self.rest.as_str().split_once('}') {
            Some(parts) => parts,
            None => return Err(self.here("repetitions such as `{2}`, `{2,}` or `{2,5}`")),
        };
        let (least, most) = digits.split_once(',').unwrap_or((digits, digits));
        let number = |text: &str| match text.bytes().all(|byte| byte.is_ascii_digit()) {
            true => text.parse::<u32>().ok(),
            false => None,
        };
        let is_valid = match (number(least), most) {
            (Some(_), "") => digits.ends_with(','),
            (Some(least), most) => number(most).is_some_and(|most| least <= most),
            (None, _) => false,
        };
        if !is_valid {
            return Err(self.here("repetitions such as `{2}`, `{2,}` or `{2,5}`"));
        }
        self.out.push('{');
        self.out.push_str(digits);
        self.out.push('}');
        self.rest = after.chars();
        Ok(())
    }

    /// Behind `[`.
    fn class(&mut self) -> Result<(), Refused> {
        self.out.push('[');
        if self.rest.as_str().starts_with('^') {
            self.rest.next();
            self.out.push('^');
        }
        let begun = self.rest.as_str().len();
        loop {
            let is_first = self.rest.as_str().len() == begun;
            match self.rest.next() {
                Some(']') if !is_first => break,
                Some('-') if is_first || self.rest.as_str().starts_with(']') => self.put('-'),
                Some(char) if !matches!(char, '-' | '[' | ']') => self.member(char)?,
                Some(_) => return Err(self.here("a character, or `\\` before it")),
                None => return Err(self.next("a `]`")),
            }
        }
        self.out.push(']');
        Ok(())
    }

    /// A character of a class, or a range of them.
    fn member(&mut self, first: char) -> Result<(), Refused> {
        let first = match first {
            '\\' => match self.escape()? {
                Some(char) => char,
                None => return Ok(()),
            },
            char => char,
        };
        self.put(first);
        let mut ahead = self.rest.as_str().chars();
        if ahead.next() != Some('-') || matches!(ahead.next(), Some(']') | None) {
            return Ok(());
        }
        self.rest.next();
        let last = match self.rest.next() {
            Some('\\') => match self.escape()? {
                Some(char) => char,
                None => return Err(self.here("a character as the end of the range")),
            },
            Some(char) if !matches!(char, '-' | '[' | ']') => char,
            _ => return Err(self.here("a character as the end of the range")),
        };
        self.out.push('-');
        self.put(last);
        Ok(())
    }

    /// Behind `\`: the character that is meant; `None` when it was a category.
    fn escape(&mut self) -> Result<Option<char>, Refused> {
        Ok(Some(match self.rest.next() {
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some(
                char @ ('(' | ')' | '*' | '+' | '-' | '.' | '?' | '[' | '\\' | ']' | '^' | '{'
                | '|' | '}'),
            ) => char,
            Some(char @ ('p' | 'P')) => {
                let name =
                    self.rest.as_str().strip_prefix('{').and_then(|rest| rest.split_once('}'));
                let Some((name, after)) = name.filter(|(name, _)| CATEGORIES.contains(name)) else {
                    return Err(self.next("a category of characters, such as `{L}` or `{Nd}`"));
                };
                self.out.push('\\');
                self.out.push(char);
                self.out.push('{');
                self.out.push_str(name);
                self.out.push('}');
                self.rest = after.chars();
                return Ok(None);
            }
            Some(_) => {
                return Err(
                    self.here("one of `()*+-.?[]^{|}\\nrtpP` after `\\`; digits are `[0-9]`")
                );
            }
            None => return Err(self.next("a character after `\\`")),
        }))
    }

    /// Appends a character that means itself.
    fn put(&mut self, char: char) {
        match char.is_ascii_alphanumeric() || !char.is_ascii() {
            true => self.out.push(char),
            false => self.out.push_str(&format!(r"\x{{{:x}}}", u32::from(char))),
        }
    }

    /// The error of the character that was read last.
    fn here(&self, expected: &'static str) -> Refused {
        let Refused::Malformed(malformed) = self.next(expected) else { unreachable!("it is") };
        Refused::Malformed(Malformed { character: malformed.character - 1, ..malformed })
    }

    /// The error of the next character.
    fn next(&self, expected: &'static str) -> Refused {
        let read = self.source.len() - self.rest.as_str().len();
        let character = self.source[..read].chars().count() + 1;
        Refused::Malformed(Malformed { character, expected })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use spinney_core::ErrorKind;

    fn matches(source: &str, text: &str) -> bool {
        let pattern = Pattern::new(source, Extent::Whole).expect("no limit");
        pattern.unwrap_or_else(|why| panic!("{source}: {why:?}")).is_match(text)
    }

    #[test]
    fn characters_mean_what_rfc_9485_says() {
        for (source, text, expected) in [
            ("", "", true),
            ("a|b|", "", true),
            ("a()b", "ab", true),
            ("a{2}", "aa", true),
            ("a{2,}", "aaaa", true),
            ("a{1,2}", "aaa", false),
            ("[-a]", "-", true),
            ("[a-]", "-", true),
            ("[^a-c]", "d", true),
            ("[^a-c]", "b", false),
            (r"[\n\]\-]", "-", true),
            (r"[\p{Lu}\P{L}]", "É", true),
            ("[$^.]", "$", true),
            (r"\p{Nd}", "٣", true),
            (r"\(\|\}", "(|}", true),
            ("a#b ~&&c", "a#b ~&&c", true),
            ("[&&~~]", "&", true),
            (".", "\n", false),
            (".", "\u{2028}", true),
            ("^a$", "a", true),
        ] {
            assert_eq!(matches(source, text), expected, "{source} {text:?}");
        }
    }

    #[test]
    fn what_is_no_i_regexp_is_refused_where_it_breaks() {
        for (source, character) in [
            (r"\d", 2),
            (r"a\", 3),
            ("a**", 3),
            ("*", 1),
            ("a|+", 3),
            ("(a", 3),
            ("a)", 2),
            ("[]", 2),
            ("[a", 3),
            ("[a-b-c]", 5),
            ("[[a]]", 2),
            ("a{2", 2),
            ("a{,2}", 2),
            ("a{3,2}", 2),
            ("(?i)a", 2),
            (r"\p{Latin}", 3),
            (r"(a)\1", 5),
            ("a]", 2),
        ] {
            let refused = Pattern::new(source, Extent::Part).expect("no limit").expect_err(source);
            assert_eq!(refused.character, character, "{source}: {refused:?}");
        }
    }

    #[test]
    fn what_would_take_long_or_much_is_quick_or_refused() {
        let text = "a".repeat(100_000);
        assert!(!matches("(a*)*b", &text));
        assert!(!matches("(a|a)*b", &text));
        for source in ["((a{1000}){1000}){1000}".to_owned(), "(".repeat(100_000)] {
            let error = Pattern::new(&source, Extent::Part).expect_err("too large");
            assert_eq!(error.kind(), ErrorKind::LimitExceeded);
        }
    }
}
