//! When two nodes are the same JSON: numbers by their mathematical value, maps in any order.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};

use spinney_core::error::Result;

use crate::decimal::Decimal;
use crate::instance::{Instance, Leaf};
use spinney_core::node::NodeKind;

/// Whether two nodes are equal.
///
/// # Complexity
/// That of the smaller one: it ends at the first difference, and counts are compared first.
pub fn equal<A: Instance, B: Instance>(a: &A, b: &B) -> Result<bool> {
    let mut pending = vec![(a.clone(), b.clone())];
    while let Some((a, b)) = pending.pop() {
        let kind = a.kind()?;
        if kind != b.kind()? {
            return Ok(false);
        }
        match kind {
            NodeKind::Map | NodeKind::List if a.count()? != b.count()? => return Ok(false),
            NodeKind::Map => {
                for member in a.members()? {
                    let (key, value) = member?;
                    match b.member(&key)? {
                        Some(other) => pending.push((value, other)),
                        None => return Ok(false),
                    }
                }
            }
            NodeKind::List => {
                for (value, other) in a.elements(0)?.zip(b.elements(0)?) {
                    pending.push((value?, other?));
                }
            }
            _ => {
                let (mut one, mut other) = (Vec::new(), Vec::new());
                if !equal_leaves(a.leaf(&mut one)?.as_ref(), b.leaf(&mut other)?.as_ref()) {
                    return Ok(false);
                }
            }
        }
    }
    Ok(true)
}

fn equal_leaves(a: Option<&Leaf<'_>>, b: Option<&Leaf<'_>>) -> bool {
    match (a, b) {
        (Some(Leaf::Number(a)), Some(Leaf::Number(b))) => a.compare(b).is_eq(),
        _ => a == b,
    }
}

/// A hash that equal nodes share.
///
/// # Complexity
/// That of the node.
pub fn hash<I: Instance>(node: &I) -> Result<u64> {
    enum Next<I: Instance> {
        Node(I),
        Members(I::Members),
        Elements(I::Elements),
    }
    let mut hasher = std::hash::DefaultHasher::new();
    let mut buffer = Vec::new();
    let mut pending = vec![Next::Node(node.clone())];
    while let Some(next) = pending.pop() {
        match next {
            Next::Members(mut members) => {
                if let Some(member) = members.next() {
                    let (key, value) = member?;
                    key.hash(&mut hasher);
                    pending.extend([Next::Members(members), Next::Node(value)]);
                }
            }
            Next::Elements(mut elements) => {
                if let Some(element) = elements.next() {
                    pending.extend([Next::Elements(elements), Next::Node(element?)]);
                }
            }
            Next::Node(node) => {
                let kind = node.kind()?;
                hasher.write_u8(kind as u8);
                match kind {
                    NodeKind::Map => {
                        hasher.write_u64(node.count()?);
                        pending.push(Next::Members(node.members()?));
                    }
                    NodeKind::List => {
                        hasher.write_u64(node.count()?);
                        pending.push(Next::Elements(node.elements(0)?));
                    }
                    _ => match node.leaf(&mut Vec::new())? {
                        Some(Leaf::Bool(value)) => value.hash(&mut hasher),
                        Some(Leaf::Number(num)) => {
                            buffer.clear();
                            Decimal::new(&num).write(&mut buffer);
                            hasher.write(&buffer);
                        }
                        Some(Leaf::String(text)) => text.hash(&mut hasher),
                        Some(Leaf::Bytes(bytes)) => bytes.hash(&mut hasher),
                        Some(Leaf::Null) | None => {}
                    },
                }
            }
        }
    }
    Ok(hasher.finish())
}

/// The positions of the first two elements of a list that are equal.
///
/// # Complexity
/// That of the whole list; 24 bytes of memory for each element.
pub fn repeated<I: Instance>(list: &I) -> Result<Option<(u64, u64)>> {
    let mut seen: HashMap<u64, Vec<u64>> = HashMap::new();
    for (position, element) in list.elements(0)?.enumerate() {
        let element = element?;
        let same_hash = seen.entry(hash(&element)?).or_default();
        for &earlier in same_hash.iter() {
            if let Some(other) = list.element(earlier)?
                && equal(&other, &element)?
            {
                return Ok(Some((earlier, position as u64)));
            }
        }
        same_hash.push(position as u64);
    }
    Ok(None)
}
