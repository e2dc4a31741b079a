//! The encoding of one node: a tag byte, then what the tag says. See `docs/format.md`.
//!
//! Scalars and small containers hold their content; large ones hold the id under which it lies.

use crate::backend::TreeId;
use crate::error::{Error, Result};
use crate::few_bytes;
use crate::number::{Decimal, Num};
use crate::stretch::Stretch;
use crate::varint;
use crate::visit::{Container, Scalar, StoredText, Text, Visitor};

const NULL: u8 = 0x00;
const FALSE: u8 = 0x01;
const TRUE: u8 = 0x02;
const STRING_PLAIN: u8 = 0x03;
const STRING_ESCAPED: u8 = 0x04;
const BYTES: u8 = 0x05;
const NUMBER_TEXT: u8 = 0x06;
const LONG_STRING_PLAIN: u8 = 0x07;
const LONG_STRING_ESCAPED: u8 = 0x08;
const LONG_BYTES: u8 = 0x09;
const INLINE_MAP: u8 = 0x0a;
const INLINE_LIST: u8 = 0x0b;
const PAGED_MAP: u8 = 0x0c;
const PAGED_LIST: u8 = 0x0d;
const TREE: u8 = 0x0e;
const ANNOTATED: u8 = 0x0f;
const INT: u8 = 0x10;
const NEGATIVE_INT: u8 = 0x18;
const DECIMAL: u8 = 0x20;
const NEGATIVE_DECIMAL: u8 = 0x28;
const SMALL_INT: u8 = 0x40;
const SHORT_STRING: u8 = 0x80;
const SHORT_MAP: u8 = 0xc0;
const SHORT_LIST: u8 = 0xe8;

const SMALL_INT_MAX: i64 = (SHORT_STRING - SMALL_INT - 1) as i64;
const SHORT_STRING_LEN_MAX: usize = (SHORT_MAP - SHORT_STRING - 1) as usize;
const SHORT_MAP_LEN_MAX: usize = (SHORT_LIST - SHORT_MAP - 1) as usize;
const SHORT_LIST_LEN_MAX: usize = (0xff - SHORT_LIST) as usize;

/// A node, borrowed from its encoding.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Node<'a> {
    /// A value without members, stored in place.
    Scalar(Scalar<'a>),
    /// A long string or bytes value in chunks of its own.
    Long(Long),
    /// A small container: its page body.
    Inline(Container, &'a [u8]),
    /// A container in pages of its own, under this id.
    Paged(Container, u64),
    /// The root of another tree; only in the store's catalogue.
    Tree(TreeId),
}

/// The kind of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeKind {
    /// JSON `null`.
    Null,
    /// `true` or `false`.
    Bool,
    /// A number.
    Number,
    /// A text.
    String,
    /// Bytes.
    Bytes,
    /// A map.
    Map,
    /// A list.
    List,
}

impl NodeKind {
    /// The kind in words.
    pub fn name(self) -> &'static str {
        match self {
            NodeKind::Null => "null",
            NodeKind::Bool => "bool",
            NodeKind::Number => "number",
            NodeKind::String => "string",
            NodeKind::Bytes => "bytes",
            NodeKind::Map => "map",
            NodeKind::List => "list",
        }
    }
}

impl Node<'_> {
    /// What kind of node it is; `None` when it refers to the root of a tree.
    pub fn kind(&self) -> Option<NodeKind> {
        Some(match *self {
            Node::Scalar(Scalar::Null) => NodeKind::Null,
            Node::Scalar(Scalar::Bool(_)) => NodeKind::Bool,
            Node::Scalar(Scalar::Number(_)) => NodeKind::Number,
            Node::Scalar(Scalar::String(_)) => NodeKind::String,
            Node::Scalar(Scalar::Bytes(_)) => NodeKind::Bytes,
            Node::Long(long) if long.form == LongForm::Bytes => NodeKind::Bytes,
            Node::Long(_) => NodeKind::String,
            Node::Inline(Container::Map, _) | Node::Paged(Container::Map, _) => NodeKind::Map,
            Node::Inline(Container::List, _) | Node::Paged(Container::List, _) => NodeKind::List,
            Node::Tree(_) => return None,
        })
    }

    /// What the node is, when it is a container.
    #[inline]
    pub fn container(&self) -> Option<Container> {
        match *self {
            Node::Inline(container, _) | Node::Paged(container, _) => Some(container),
            _ => None,
        }
    }
}

/// A long value: where its chunks lie and how many bytes they hold together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Long {
    /// The id of the chunks.
    pub id: u64,
    /// Bytes of the whole value.
    pub len: u64,
    /// What the bytes are.
    pub form: LongForm,
}

/// What the bytes of a long value are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LongForm {
    /// A text that JSON can print as it is.
    PlainText,
    /// A text that JSON must escape.
    EscapedText,
    /// Bytes.
    Bytes,
}

/// A node with its metadata, in encoded form (see [`meta_entries`]).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Annotated<'a> {
    /// The metadata; empty when there is none.
    pub meta: &'a [u8],
    /// The node.
    pub node: Node<'a>,
}

/// Whether an encoded node is a scalar in place without metadata, by its first byte.
#[inline(always)]
pub fn is_scalar(encoded: &[u8]) -> bool {
    match encoded.first() {
        Some(&tag) => !matches!(tag, LONG_STRING_PLAIN..=ANNOTATED | SHORT_MAP..),
        None => false,
    }
}

/// Whether an encoded node is a container in pages, without metadata.
#[inline]
pub fn is_paged(encoded: &[u8]) -> bool {
    matches!(encoded.first(), Some(&PAGED_MAP | &PAGED_LIST))
}

/// Whether an encoded node can be one that refers to a tree; most cannot, by their first byte.
#[inline]
pub fn may_be_tree(encoded: &[u8]) -> bool {
    matches!(encoded.first(), None | Some(&TREE) | Some(&ANNOTATED))
}

/// Reads a whole node; `None` when the bytes are not exactly one.
#[inline]
pub fn read(bytes: &[u8]) -> Option<Annotated<'_>> {
    let mut at = 0;
    let mut meta: &[u8] = &[];
    if bytes.first() == Some(&ANNOTATED) {
        at = 1;
        meta = varint::read_bytes(bytes, &mut at)?;
        if meta.is_empty() {
            return None;
        }
    }
    let node = read_plain(&bytes[at..])?;
    Some(Annotated { meta, node })
}

#[inline]
fn read_plain(bytes: &[u8]) -> Option<Node<'_>> {
    if is_scalar(bytes) {
        return read_scalar(bytes).map(Node::Scalar);
    }
    let (&tag, rest) = bytes.split_first()?;
    if let Some((container, body)) = inline_body(bytes) {
        return Some(Node::Inline(container, body));
    }
    let mut at = 0;
    let node = match tag {
        PAGED_MAP => Node::Paged(Container::Map, varint::read(rest, &mut at)?),
        PAGED_LIST => Node::Paged(Container::List, varint::read(rest, &mut at)?),
        TREE => Node::Tree(TreeId::try_from(varint::read(rest, &mut at)?).ok()?),
        LONG_STRING_PLAIN | LONG_STRING_ESCAPED | LONG_BYTES => {
            let form = match tag {
                LONG_STRING_PLAIN => LongForm::PlainText,
                LONG_STRING_ESCAPED => LongForm::EscapedText,
                _ => LongForm::Bytes,
            };
            let (id, len) = (varint::read(rest, &mut at)?, varint::read(rest, &mut at)?);
            Node::Long(Long { id, len, form })
        }
        _ => return None,
    };
    (at == rest.len()).then_some(node)
}

/// Reads a scalar in place (see [`is_scalar`]); `None` when the bytes are not exactly one.
#[inline(always)]
pub fn read_scalar(bytes: &[u8]) -> Option<Scalar<'_>> {
    read_scalar_in(bytes, bytes)
}

#[inline(always)]
fn read_scalar_in<'a>(record: &'a [u8], bytes: &'a [u8]) -> Option<Scalar<'a>> {
    let (&tag, rest) = bytes.split_first()?;
    let sized = |len: usize| rest.len() == len;
    let counted = || {
        let mut at = 0;
        varint::read_bytes(rest, &mut at).filter(|_| at == rest.len())
    };
    match tag {
        SHORT_STRING..SHORT_MAP if sized(usize::from(tag - SHORT_STRING)) => text(rest, true),
        SMALL_INT..SHORT_STRING if sized(0) => {
            Some(Scalar::Number(Num::Int(i64::from(tag - SMALL_INT))))
        }
        DECIMAL..0x30 => {
            let decimal = decimal(tag, Stretch::new(record, rest))?;
            Some(Scalar::Number(Num::Decimal(decimal)))
        }
        INT..DECIMAL => {
            let magnitude = read_le(Stretch::new(record, rest), usize::from(tag & 7) + 1)?;
            Some(Scalar::Number(match i64::try_from(magnitude) {
                Ok(value) if tag < NEGATIVE_INT => Num::Int(value),
                Ok(value) => Num::Int(!value),
                Err(_) if tag < NEGATIVE_INT => Num::Uint(magnitude),
                Err(_) => return None,
            }))
        }
        NULL if sized(0) => Some(Scalar::Null),
        FALSE | TRUE if sized(0) => Some(Scalar::Bool(tag == TRUE)),
        STRING_PLAIN | STRING_ESCAPED => text(counted()?, tag == STRING_PLAIN),
        BYTES => Some(Scalar::Bytes(counted()?)),
        NUMBER_TEXT => {
            let bytes = counted()?;
            match Num::scan(bytes).ok()? {
                (num @ Num::Text(_), len) if len == bytes.len() => Some(Scalar::Number(num)),
                _ => None,
            }
        }
        _ => None,
    }
}

/// Hands a scalar in place (see [`is_scalar`]), a slice of `record`, to a visitor.
///
/// Each form has a call of its own, so that a visitor that is inlined needs not tell them apart again.
///
/// # Errors
/// `Corrupted` when the bytes are not exactly one; the visitor's.
#[inline(always)]
pub fn visit_scalar(
    record: &[u8],
    bytes: &[u8],
    visitor: &mut (impl Visitor + ?Sized),
) -> Result<()> {
    let Some((&tag, rest)) = bytes.split_first() else { return Err(damaged_node()) };
    let stretch = |bytes| Stretch::new(record, bytes);
    match tag {
        SHORT_STRING..SHORT_MAP if rest.len() == usize::from(tag - SHORT_STRING) => {
            visitor.stored_text(StoredText { bytes: stretch(rest), plain: true })
        }
        SMALL_INT..SHORT_STRING if rest.is_empty() => {
            visitor.scalar(Scalar::Number(Num::Int(i64::from(tag - SMALL_INT))))
        }
        STRING_PLAIN | STRING_ESCAPED => {
            let mut at = 0;
            let text = varint::read_bytes(rest, &mut at).filter(|_| at == rest.len());
            let Some(text) = text else { return Err(damaged_node()) };
            let plain = tag == STRING_PLAIN;
            visitor.stored_text(StoredText { bytes: stretch(text), plain })
        }
        INT..NEGATIVE_INT => match read_le(stretch(rest), usize::from(tag & 7) + 1) {
            Some(value) => visitor.scalar(Scalar::Number(match i64::try_from(value) {
                Ok(value) => Num::Int(value),
                Err(_) => Num::Uint(value),
            })),
            None => Err(damaged_node()),
        },
        DECIMAL..0x30 => match decimal(tag, stretch(rest)) {
            Some(decimal) => visitor.scalar(Scalar::Number(Num::Decimal(decimal))),
            None => Err(damaged_node()),
        },
        _ => match read_scalar_in(record, bytes) {
            Some(scalar) => visitor.scalar(scalar),
            None => Err(damaged_node()),
        },
    }
}

/// The body of a container in place without metadata; `None` for any other node.
#[inline(always)]
pub fn inline_body(bytes: &[u8]) -> Option<(Container, &[u8])> {
    let (&tag, rest) = bytes.split_first()?;
    match tag {
        SHORT_MAP..SHORT_LIST if rest.len() == usize::from(tag - SHORT_MAP) => {
            Some((Container::Map, rest))
        }
        SHORT_LIST.. if rest.len() == usize::from(tag - SHORT_LIST) => {
            Some((Container::List, rest))
        }
        INLINE_MAP | INLINE_LIST => {
            let mut at = 0;
            let body = varint::read_bytes(rest, &mut at).filter(|_| at == rest.len())?;
            Some((if tag == INLINE_MAP { Container::Map } else { Container::List }, body))
        }
        _ => None,
    }
}

#[inline(always)]
fn decimal(tag: u8, rest: Stretch<'_>) -> Option<Decimal> {
    let &scale = rest.bytes().first()?;
    let mantissa = read_le(rest.after_first(), usize::from(tag & 7) + 1)?;
    (scale > 0).then_some(Decimal { negative: tag >= NEGATIVE_DECIMAL, mantissa, scale })
}

#[cold]
pub(crate) fn damaged_node() -> Error {
    Error::corrupted("a stored node does not read; run `check` to find what is damaged")
}

#[inline]
fn text(bytes: &[u8], plain: bool) -> Option<Scalar<'_>> {
    Some(Scalar::String(Text { text: std::str::from_utf8(bytes).ok()?, plain }))
}

/// Reads exactly `n` bytes, 1 to 8, low ones first.
#[inline(always)]
fn read_le(stretch: Stretch<'_>, n: usize) -> Option<u64> {
    let bytes = stretch.bytes();
    if bytes.len() != n {
        return None;
    }
    if let Some(window) = stretch.window() {
        return Some(u64::from_le_bytes(*window) & u64::MAX >> (64 - 8 * n));
    }
    // Two reads that may overlap cover 4 to 8 bytes.
    if let (Some(low), Some(high)) = (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        let (low, high) = (u32::from_le_bytes(*low), u32::from_le_bytes(*high));
        return Some(u64::from(low) | u64::from(high) << (8 * (n - 4)));
    }
    Some(bytes.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte)))
}

/// Appends a scalar.
#[inline(always)]
pub fn write_scalar(scalar: Scalar<'_>, out: &mut Vec<u8>) {
    match scalar {
        Scalar::Null => out.push(NULL),
        Scalar::Bool(value) => out.push(if value { TRUE } else { FALSE }),
        Scalar::Number(num) => write_number(num, out),
        Scalar::Bytes(bytes) => {
            out.push(BYTES);
            varint::write_bytes(bytes, out);
        }
        Scalar::String(Text { text, plain }) => {
            if plain && text.len() <= few_bytes::PUSHED_LEN_MAX {
                few_bytes::push_with(SHORT_STRING + text.len() as u8, text.as_bytes(), out);
            } else if plain && text.len() <= SHORT_STRING_LEN_MAX {
                out.push(SHORT_STRING + text.len() as u8);
                out.extend_from_slice(text.as_bytes());
            } else {
                out.push(if plain { STRING_PLAIN } else { STRING_ESCAPED });
                varint::write_bytes(text.as_bytes(), out);
            }
        }
    }
}

#[inline]
fn write_number(num: Num<'_>, out: &mut Vec<u8>) {
    // Copies of fixed length need no call.
    let write_le = |tag: u8, scale: Option<u8>, value: u64, out: &mut Vec<u8>| {
        let n = (8 - value.leading_zeros() as usize / 8).max(1);
        out.push(tag + (n - 1) as u8);
        if let Some(scale) = scale {
            out.push(scale);
        }
        let end = out.len() + n;
        out.extend_from_slice(&value.to_le_bytes());
        out.truncate(end);
    };
    match num {
        Num::Int(value @ 0..=SMALL_INT_MAX) => out.push(SMALL_INT + value as u8),
        Num::Int(value) if value < 0 => write_le(NEGATIVE_INT, None, !value as u64, out),
        Num::Int(value) => write_le(INT, None, value as u64, out),
        Num::Uint(value) => write_le(INT, None, value, out),
        Num::Decimal(Decimal { negative, mantissa, scale }) => {
            write_le(if negative { NEGATIVE_DECIMAL } else { DECIMAL }, Some(scale), mantissa, out);
        }
        Num::Text(text) => {
            out.push(NUMBER_TEXT);
            varint::write_bytes(text.as_bytes(), out);
        }
    }
}

/// Appends a small container with its page body.
#[inline]
pub fn write_inline(container: Container, body: &[u8], out: &mut Vec<u8>) {
    write_inline_tag(container, body.len(), out);
    out.extend_from_slice(body);
}

/// Appends what stands before the page body of a small container.
#[inline]
pub fn write_inline_tag(container: Container, body_len: usize, out: &mut Vec<u8>) {
    let (short, short_max, tag) = match container {
        Container::Map => (SHORT_MAP, SHORT_MAP_LEN_MAX, INLINE_MAP),
        Container::List => (SHORT_LIST, SHORT_LIST_LEN_MAX, INLINE_LIST),
    };
    if body_len <= short_max {
        out.push(short + body_len as u8);
    } else {
        out.push(tag);
        varint::write(body_len as u64, out);
    }
}

/// Appends a reference to a container in pages of its own.
pub fn write_paged(container: Container, id: u64, out: &mut Vec<u8>) {
    out.push(match container {
        Container::Map => PAGED_MAP,
        Container::List => PAGED_LIST,
    });
    varint::write(id, out);
}

/// Appends a reference to a long value.
pub fn write_long(long: Long, out: &mut Vec<u8>) {
    out.push(match long.form {
        LongForm::PlainText => LONG_STRING_PLAIN,
        LongForm::EscapedText => LONG_STRING_ESCAPED,
        LongForm::Bytes => LONG_BYTES,
    });
    varint::write(long.id, out);
    varint::write(long.len, out);
}

/// Appends a reference to a tree.
pub fn write_tree(tree: TreeId, out: &mut Vec<u8>) {
    out.push(TREE);
    varint::write(u64::from(tree), out);
}

/// Appends the metadata of the node whose encoding follows; nothing when `meta` is empty.
#[inline]
pub fn write_meta(meta: &[u8], out: &mut Vec<u8>) {
    if !meta.is_empty() {
        out.push(ANNOTATED);
        varint::write_bytes(meta, out);
    }
}

/// Splits an encoded node into its metadata and the node itself.
pub fn split_meta(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    if bytes.first() != Some(&ANNOTATED) {
        return Some((&[], bytes));
    }
    let mut at = 1;
    let meta = varint::read_bytes(bytes, &mut at)?;
    Some((meta, &bytes[at..]))
}

/// The entries of encoded metadata, in the order of their names; an item is `None` where they are damaged.
pub fn meta_entries(meta: &[u8]) -> impl Iterator<Item = Option<(&str, &str)>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        if at >= meta.len() {
            return None;
        }
        let mut part = || {
            let bytes = varint::read_bytes(meta, &mut at)?;
            std::str::from_utf8(bytes).ok()
        };
        let entry = part().and_then(|name| Some((name, part()?)));
        if entry.is_none() {
            at = meta.len();
        }
        Some(entry)
    })
}

/// Encodes metadata entries, which must be sorted by name.
pub fn encode_meta<'a>(entries: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, value) in entries {
        varint::write_bytes(name.as_bytes(), &mut out);
        varint::write_bytes(value.as_bytes(), &mut out);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scalars_round_trip() {
        let long = "x".repeat(70);
        let numbers = [
            "0",
            "1",
            "63",
            "64",
            "255",
            "256",
            "-1",
            "-256",
            "-257",
            "9223372036854775807",
            "-9223372036854775808",
            "9223372036854775808",
            "18446744073709551615",
            "1.10",
            "-0.0",
            "-65.613616999999977",
            "-0",
            "1e400",
        ];
        let mut scalars: Vec<Scalar<'_>> =
            numbers.iter().map(|n| Scalar::Number(Num::parse(n).unwrap())).collect();
        scalars.extend([
            Scalar::Null,
            Scalar::Bool(true),
            Scalar::Bool(false),
            Scalar::Bytes(b"\0\xff"),
        ]);
        scalars.extend(["", "a", "\"", &long].map(|text| Scalar::String(Text::new(text))));
        for scalar in scalars {
            let mut out = Vec::new();
            write_scalar(scalar, &mut out);
            assert_eq!(read(&out).expect("reads").node, Node::Scalar(scalar));
            out.push(0);
            assert_eq!(read(&out), None, "{scalar:?} with a byte too many");
        }
    }

    #[test]
    fn metadata_stands_before_the_node() {
        let meta = encode_meta([("a", "1"), ("b", "")].into_iter());
        let mut out = Vec::new();
        write_meta(&meta, &mut out);
        write_paged(Container::List, 300, &mut out);
        let annotated = read(&out).expect("reads");
        assert_eq!(annotated.node, Node::Paged(Container::List, 300));
        assert_eq!(
            meta_entries(annotated.meta).collect::<Vec<_>>(),
            [Some(("a", "1")), Some(("b", ""))]
        );
        assert_eq!(split_meta(&out).expect("splits").0, &meta[..]);
    }
}
