//! The rules about one principal, as a tree of path segments: the first rule whose path leads to a node or
//! above it decides about a right, and without one it is denied.

use std::collections::HashMap;

use smallvec::SmallVec;

use super::Effect;
use super::rules::{ANY, Right, Rule};
use crate::error::Result;
use crate::path;

/// No rule: later than all.
const NONE: u32 = u32::MAX;

/// What one principal may do where.
#[derive(Debug)]
pub struct Permissions {
    /// The first is the root.
    junctions: Vec<Junction>,
    root: Standing,
}

/// The rules whose paths end at one place, and the way on to others.
#[derive(Debug)]
struct Junction {
    members: HashMap<Box<str>, u32>,
    any: Option<u32>,
    rules: Vec<(u32, Effect)>,
    /// The first rule strictly below that allows and that denies each right.
    below: [Firsts; 3],
}

#[derive(Clone, Copy, Debug)]
struct Firsts {
    allow: u32,
    deny: u32,
}

impl Junction {
    fn new() -> Junction {
        let below = [Firsts { allow: NONE, deny: NONE }; 3];
        Junction { members: HashMap::new(), any: None, rules: Vec::new(), below }
    }
}

/// What may be done at one node, and what is known of the nodes below it.
#[derive(Clone, Debug)]
pub struct Standing {
    /// Where the paths of rules go on.
    active: SmallVec<[u32; 4]>,
    /// The rule that decides about each right.
    decided: [u32; 3],
    /// Rights here, here and everywhere below, and here or perhaps somewhere below, as bits.
    here: u8,
    everywhere: u8,
    somewhere: u8,
}

impl Standing {
    /// Whether a right is given here.
    #[inline]
    pub fn may(&self, right: Right) -> bool {
        self.here & right.bit() != 0
    }

    /// Whether it is given here and everywhere below.
    #[inline]
    pub fn may_all(&self, right: Right) -> bool {
        self.everywhere & right.bit() != 0
    }

    /// Whether it is given here, or a rule about something below may give it there.
    #[inline]
    pub fn may_some(&self, right: Right) -> bool {
        self.somewhere & right.bit() != 0
    }

    /// Whether a node is shown; `is_map` is asked when only something below it may be read.
    ///
    /// # Errors
    /// Those of `is_map`.
    #[inline]
    pub fn shows(&self, is_map: impl FnOnce() -> Result<bool>) -> Result<bool> {
        Ok(self.may(Right::Read) || self.may_some(Right::Read) && is_map()?)
    }

    /// Whether there are rules about something below.
    #[inline]
    pub(super) fn leads_on(&self) -> bool {
        !self.active.is_empty()
    }

    /// The number of the rule that decides; `None` when none does, which is a denial.
    pub fn decided_by(&self, right: Right) -> Option<usize> {
        let rule = self.decided[right as usize];
        (rule != NONE).then_some(rule as usize)
    }
}

impl Permissions {
    /// Those that rules give, in their order; each has the number by which it is known.
    pub fn new<'r>(rules: impl IntoIterator<Item = (u32, &'r Rule)>) -> Permissions {
        let root = Standing {
            active: SmallVec::new(),
            decided: [NONE; 3],
            here: 0,
            everywhere: 0,
            somewhere: 0,
        };
        let mut permissions = Permissions { junctions: vec![Junction::new()], root };
        for (number, rule) in rules {
            permissions.add(number, rule);
        }
        let mut root = permissions.root.clone();
        root.active.push(0);
        permissions.root = permissions.settled(root);
        permissions
    }

    fn add(&mut self, number: u32, rule: &Rule) {
        let mut at = 0;
        for segment in path::segments(&rule.path) {
            let junction = &mut self.junctions[at];
            for right in Right::ALL.into_iter().filter(|right| rule.effect.is_about(*right)) {
                let firsts = &mut junction.below[right as usize];
                let first = if rule.effect.allows() { &mut firsts.allow } else { &mut firsts.deny };
                *first = number.min(*first);
            }
            let known = match &*segment {
                ANY => junction.any,
                segment => junction.members.get(segment).copied(),
            };
            at = match known {
                Some(known) => known as usize,
                None => self.add_junction(at, &segment),
            };
        }
        self.junctions[at].rules.push((number, rule.effect));
    }

    fn add_junction(&mut self, parent: usize, segment: &str) -> usize {
        let at = self.junctions.len();
        self.junctions.push(Junction::new());
        let number = u32::try_from(at).expect("rules have fewer segments");
        match segment {
            ANY => self.junctions[parent].any = Some(number),
            segment => drop(self.junctions[parent].members.insert(segment.into(), number)),
        }
        at
    }

    /// Takes in the rules of a place that was just reached.
    fn settled(&self, mut standing: Standing) -> Standing {
        for &at in &standing.active {
            for (number, effect) in &self.junctions[at as usize].rules {
                for right in Right::ALL.into_iter().filter(|right| effect.is_about(*right)) {
                    let decided = &mut standing.decided[right as usize];
                    if number < decided {
                        *decided = *number;
                        standing.here &= !right.bit();
                        standing.here |= if effect.allows() { right.bit() } else { 0 };
                    }
                }
            }
        }
        (standing.everywhere, standing.somewhere) = (standing.here, standing.here);
        for right in Right::ALL {
            let decided = standing.decided[right as usize];
            for &at in &standing.active {
                let below = self.junctions[at as usize].below[right as usize];
                if below.deny < decided {
                    standing.everywhere &= !right.bit();
                }
                if below.allow < decided {
                    standing.somewhere |= right.bit();
                }
            }
        }
        standing
    }

    /// What may be done at the root.
    pub fn root(&self) -> &Standing {
        &self.root
    }

    /// What may be done at a member of a map.
    #[inline]
    pub fn member(&self, map: &Standing, name: &str) -> Standing {
        self.below(map, |junction| junction.members.get(name).copied())
    }

    /// What may be done at each element of a list.
    #[inline]
    pub fn element(&self, list: &Standing) -> Standing {
        self.below(list, |_| None)
    }

    #[inline]
    fn below(&self, above: &Standing, named: impl Fn(&Junction) -> Option<u32>) -> Standing {
        if above.active.is_empty() {
            return above.clone();
        }
        let mut active = SmallVec::new();
        for &at in &above.active {
            let junction = &self.junctions[at as usize];
            active.extend(named(junction).into_iter().chain(junction.any));
        }
        self.settled(Standing { active, decided: above.decided, ..*above })
    }

    /// Whether rules name a member of what has a standing.
    pub(super) fn names(&self, above: &Standing, name: &str) -> bool {
        above.active.iter().any(|&at| self.junctions[at as usize].members.contains_key(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::Path;

    /// The first rule that is about a right and whose path leads to a node or above it.
    fn first(rules: &[Rule], path: &str, right: Right) -> Option<usize> {
        let segments: Vec<_> = path::segments(path).collect();
        rules.iter().position(|rule| {
            let of_rule: Vec<_> = path::segments(&rule.path).collect();
            let leads = of_rule.len() <= segments.len()
                && of_rule.iter().zip(&segments).all(|(a, b)| *a == ANY || a == b);
            leads && rule.effect.is_about(right)
        })
    }

    fn standing(permissions: &Permissions, path: &str) -> Standing {
        path::segments(path)
            .fold(permissions.root().clone(), |at, name| permissions.member(&at, &name))
    }

    /// All paths of up to three segments.
    fn paths() -> Vec<String> {
        let mut paths = vec![String::new()];
        let mut from = 0;
        for _ in 0..3 {
            let to = paths.len();
            for at in from..to {
                paths.extend(["a", "b", "c"].map(|name| format!("{}/{name}", paths[at])));
            }
            from = to;
        }
        paths
    }

    fn random_rules(random: &mut fastrand::Rng) -> Vec<Rule> {
        let rule = |random: &mut fastrand::Rng| {
            let mut path = Path::root();
            for _ in 0..random.usize(..4) {
                path.push(["a", "b", "c", ANY][random.usize(..4)]);
            }
            let right = Right::ALL[random.usize(..3)];
            let effect = if random.bool() { Effect::Allow(right) } else { Effect::Deny(right) };
            Rule { path, effect }
        };
        (0..random.usize(..12)).map(|_| rule(random)).collect()
    }

    #[test]
    fn the_first_rule_that_matches_decides() {
        for seed in 0..2_000 {
            let rules = random_rules(&mut fastrand::Rng::with_seed(seed));
            let permissions = Permissions::new((0..).zip(&rules));
            for path in paths() {
                let standing = standing(&permissions, &path);
                for right in Right::ALL {
                    let first = first(&rules, &path, right);
                    assert_eq!(standing.decided_by(right), first, "seed {seed}: {right} {path}");
                    let may = first.is_some_and(|first| rules[first].effect.allows());
                    assert_eq!(standing.may(right), may, "seed {seed}: {right} {path}");
                }
            }
        }
    }

    #[test]
    fn what_is_known_of_all_below_is_true() {
        for seed in 0..2_000 {
            let rules = random_rules(&mut fastrand::Rng::with_seed(seed));
            let permissions = Permissions::new((0..).zip(&rules));
            let paths = paths();
            for path in &paths {
                let above = standing(&permissions, path);
                for below in paths.iter().filter(|below| below.starts_with(path.as_str())) {
                    let below = standing(&permissions, below);
                    for right in Right::ALL {
                        assert!(!above.may_all(right) || below.may(right), "seed {seed}: {path}");
                        assert!(!below.may(right) || above.may_some(right), "seed {seed}: {path}");
                        assert!(!above.may_all(right) || below.may_all(right), "seed {seed}");
                    }
                }
            }
        }
    }

    #[test]
    fn who_may_do_more_may_do_less() {
        for seed in 0..2_000 {
            let rules = random_rules(&mut fastrand::Rng::with_seed(seed));
            let permissions = Permissions::new((0..).zip(&rules));
            for path in paths() {
                let standing = standing(&permissions, &path);
                assert!(standing.may(Right::Read) || !standing.may(Right::Write), "seed {seed}");
                assert!(standing.may(Right::Write) || !standing.may(Right::Admin), "seed {seed}");
            }
        }
    }
}
