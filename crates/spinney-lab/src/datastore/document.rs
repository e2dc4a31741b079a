//! The documents of the suite as canonical JSON text, and the path texts of their items.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::rc::Rc;

use super::rows::{SERIES_LEN, TENTH, storm_len};
use crate::canonical;

/// How many items a read by key range takes.
pub const RANGE_LEN: usize = 100;

/// A state of the store that a row starts from or ends in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// Nothing, `cont` absent.
    Empty,
    /// `cont` present without members.
    EmptyCont,
    /// N items of `lst`.
    Items,
    /// N items of `lst`, the middle one with this text as `l`.
    ItemsWith(&'static str),
    /// N items of `lst`, the middle one without `l`.
    ItemsWithout,
    /// N items of `lst`, the first and every tenth after it with `l1` as `l`.
    ItemsTenth,
    /// N items of `usr-lst`.
    Ordered,
    /// N items of `usr-lst` and item N directly after the middle one.
    OrderedInserted,
    /// N items of `usr-lst`, the last one directly after the middle one.
    OrderedMoved,
    /// N items of `usr-lst` and items N to N + N / 10 - 1, each inserted directly after the middle
    /// one.
    OrderedStorm,
    /// As `OrderedStorm`, with [`SERIES_LEN`] more items.
    OrderedSeries,
}

/// The documents of one size.
pub struct Documents {
    size: usize,
    texts: RefCell<HashMap<State, Rc<[u8]>>>,
    hashes: RefCell<HashMap<State, String>>,
}

impl Documents {
    /// The documents with `size` items, made when asked for.
    pub fn new(size: usize) -> Documents {
        Documents { size, texts: RefCell::default(), hashes: RefCell::default() }
    }

    /// N, the count of items.
    pub fn size(&self) -> usize {
        self.size
    }

    /// M = N div 2, the middle item.
    pub fn middle(&self) -> usize {
        self.size / 2
    }

    /// The canonical JSON text of `state`.
    pub fn text(&self, state: State) -> Rc<[u8]> {
        if let Some(text) = self.texts.borrow().get(&state) {
            return Rc::clone(text);
        }
        let text: Rc<[u8]> = self.generate(state).into_bytes().into();
        self.texts.borrow_mut().insert(state, Rc::clone(&text));
        text
    }

    /// The result hash of `state`.
    pub fn hash(&self, state: State) -> String {
        let known = self.hashes.borrow().get(&state).cloned();
        known.unwrap_or_else(|| {
            let hash = canonical::hash(&self.text(state));
            self.hashes.borrow_mut().insert(state, hash.clone());
            hash
        })
    }

    fn generate(&self, state: State) -> String {
        match state {
            State::Empty => "{}".to_owned(),
            State::EmptyCont => "{\"cont\":{}}".to_owned(),
            State::Items => items(self.size, |_| LeafText::Own),
            State::ItemsWith(text) => items(self.size, |i| match i == self.middle() {
                true => LeafText::Text(text),
                false => LeafText::Own,
            }),
            State::ItemsWithout => items(self.size, |i| match i == self.middle() {
                true => LeafText::Absent,
                false => LeafText::Own,
            }),
            State::ItemsTenth => items(self.size, |i| match i % TENTH {
                0 => LeafText::Text("l1"),
                _ => LeafText::Own,
            }),
            State::Ordered => ordered((0..self.size).collect()),
            State::OrderedInserted => {
                let mut order: Vec<usize> = (0..self.size).collect();
                order.insert(self.middle() + 1, self.size);
                ordered(order)
            }
            State::OrderedMoved => {
                let last = self.size - 1;
                let mut order: Vec<usize> = (0..last).collect();
                order.insert((self.middle() + 1).min(last), last);
                ordered(order)
            }
            State::OrderedStorm => self.stormed(storm_len(self.size)),
            State::OrderedSeries => self.stormed(SERIES_LEN),
        }
    }

    /// The ordered items with `count` new ones, each inserted directly after the middle one.
    fn stormed(&self, count: usize) -> String {
        let middle = self.middle();
        let new = (self.size..self.size + count).rev();
        ordered((0..=middle).chain(new).chain(middle + 1..self.size).collect())
    }

    /// The items by key range from the middle one, in the order of their keys as texts: at most
    /// [`RANGE_LEN`].
    pub fn range_text(&self) -> String {
        let first = item_key(self.middle());
        let mut members: Vec<(String, usize)> =
            (0..self.size).map(|i| (item_key(i), i)).filter(|(key, _)| *key >= first).collect();
        members.sort_unstable();
        members.truncate(RANGE_LEN);
        let mut text = String::from("{");
        push_items(&members, |_| LeafText::Own, &mut text);
        text.push('}');
        text
    }
}

enum LeafText {
    Own,
    Text(&'static str),
    Absent,
}

fn items(size: usize, leaf: impl Fn(usize) -> LeafText) -> String {
    let mut members: Vec<(String, usize)> = (0..size).map(|i| (item_key(i), i)).collect();
    // The keys are ASCII, so bytes sort as UTF-16 does.
    members.sort_unstable();
    let mut text = String::with_capacity(64 * size + 24);
    text.push_str("{\"cont\":{\"lst\":{");
    push_items(&members, leaf, &mut text);
    text.push_str("}}}");
    text
}

fn push_items(members: &[(String, usize)], leaf: impl Fn(usize) -> LeafText, text: &mut String) {
    for (at, (key, i)) in members.iter().enumerate() {
        if at > 0 {
            text.push(',');
        }
        write!(text, "\"{key}\":{{\"k1\":{i},\"k2\":\"str{i}\"").expect("strings take all");
        match leaf(*i) {
            LeafText::Own => write!(text, ",\"l\":\"l{i}\"}}").expect("strings take all"),
            LeafText::Text(l) => write!(text, ",\"l\":\"{l}\"}}").expect("strings take all"),
            LeafText::Absent => text.push('}'),
        }
    }
}

fn ordered(order: Vec<usize>) -> String {
    let mut text = String::with_capacity(32 * order.len() + 24);
    text.push_str("{\"cont\":{\"usr-lst\":[");
    for (at, i) in order.into_iter().enumerate() {
        if at > 0 {
            text.push(',');
        }
        write!(text, "{{\"k\":{i},\"l\":\"l{i}\"}}").expect("strings take all");
    }
    text.push_str("]}}");
    text
}

/// The member name of item `i` in `lst`.
pub fn item_key(i: usize) -> String {
    let mut key = String::with_capacity(24);
    push_item_key(i, &mut key);
    key
}

/// The text of `l` of item `i`.
pub fn leaf_text(i: usize) -> String {
    numbered("l", i)
}

/// A number behind a prefix, without the detours of `fmt`: the rows measure stores.
pub fn numbered(prefix: &str, i: usize) -> String {
    let mut digits = itoa::Buffer::new();
    [prefix, digits.format(i)].concat()
}

/// Appends the key of item `i` of `lst`.
pub fn push_item_key(i: usize, text: &mut String) {
    let mut digits = itoa::Buffer::new();
    let digits = digits.format(i);
    text.push_str(digits);
    text.push_str(",str");
    text.push_str(digits);
}

/// Puts the JSON Pointer of item `i` of `lst` into `path`.
pub fn write_item_path(i: usize, path: &mut String) {
    path.clear();
    path.push_str("/cont/lst/");
    push_item_key(i, path);
}

/// Item `i` of `lst` below its ancestors, as row 3 reads it: five nodes by sysrepo's count.
pub fn item_tree_text(i: usize) -> String {
    format!(
        "{{\"cont\":{{\"lst\":{{\"{}\":{{\"k1\":{i},\"k2\":\"str{i}\",\"l\":\"l{i}\"}}}}}}}}",
        item_key(i)
    )
}

/// Element `i` of `usr-lst`.
pub fn element_text(i: usize) -> String {
    format!("{{\"k\":{i},\"l\":\"l{i}\"}}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Size, bytes and hash of the items, hash after row 15, bytes and hash of the ordered items.
    type Published = (usize, usize, &'static str, &'static str, usize, &'static str);

    const PUBLISHED: [Published; 4] = [
        (1_000, 48_468, "31e3485977d0728d", "621a0723bfe46f30", 20_802, "f824f106afa6a58d"),
        (10_000, 534_468, "3321dfc4e5e524bb", "b11bf185a873b64a", 227_802, "c55ee6c2fed03710"),
        (100_000, 5_844_468, "448c05577ce16efa", "9d0d7984a382735e", 2_477_802, "da56e0d9480353f1"),
        (
            1_000_000,
            63_444_468,
            "8af0db29192005ae",
            "d4b2e970d7cfc62e",
            26_777_802,
            "b5a5833296fbf5be",
        ),
    ];

    fn check(published: &Published) {
        let (size, items_bytes, items, modified, ordered_bytes, ordered) = *published;
        let documents = Documents::new(size);
        assert_eq!(documents.text(State::Items).len(), items_bytes);
        assert_eq!(documents.hash(State::Items), items);
        assert_eq!(documents.hash(State::ItemsWith("l1")), modified);
        assert_eq!(documents.text(State::Ordered).len(), ordered_bytes);
        assert_eq!(documents.hash(State::Ordered), ordered);
    }

    #[test]
    fn hashes_are_the_published_ones() {
        PUBLISHED[..3].iter().for_each(check);
        let documents = Documents::new(10);
        assert_eq!(documents.hash(State::EmptyCont), "8d26788ea39342db");
        assert_eq!(documents.hash(State::Empty), "44136fa355b3678a");
    }

    #[test]
    #[ignore = "a million items take seconds"]
    fn hashes_of_a_million_items_are_the_published_ones() {
        check(&PUBLISHED[3]);
    }

    #[test]
    fn generated_texts_are_canonical() {
        let documents = Documents::new(1_234);
        for state in [
            State::Empty,
            State::EmptyCont,
            State::Items,
            State::ItemsWith("l0"),
            State::ItemsWithout,
            State::ItemsTenth,
            State::Ordered,
            State::OrderedInserted,
            State::OrderedMoved,
            State::OrderedStorm,
            State::OrderedSeries,
        ] {
            let text = documents.text(state);
            assert_eq!(canonical::canonical(&text).expect("JSON"), *text, "{state:?}");
        }
        let range = documents.range_text();
        assert_eq!(canonical::canonical(range.as_bytes()).expect("JSON"), range.as_bytes());
    }
}
