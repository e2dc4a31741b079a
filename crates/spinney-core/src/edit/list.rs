//! An opened list: its pages as they are touched, and the counts above them.

use std::collections::{BTreeMap, BTreeSet};

use crate::backend::TreeId;
use crate::counts::CountTree;
use crate::edit::{Base, Edit};
use crate::error::{Error, Result};
use crate::page::Page;
use crate::part::Part;
use crate::pending::Pending;
use crate::rank::{self, Rank};
use crate::record::ContainerHead;
use crate::view::{View, open_counts};
use crate::visit::Container;

/// Elements of an opened page; a fuller one splits before it is encoded.
const PAGE_ELEMENTS_MAX: usize = 512;

/// An opened list.
pub struct ListWork {
    /// Where the stored elements are.
    pub base: Base,
    /// The id that the next new element gets.
    pub next_id: u64,
    /// What `next_id` was before the transaction: elements from here on are new.
    pub stored_next_id: u64,
    /// Counts of all pages, with the edits.
    pub counts: CountTree,
    /// Counts of the stored pages, without the edits.
    pub stored_counts: CountTree,
    /// The pages that were opened, by rank.
    pub pages: BTreeMap<Rank, OpenPage>,
    /// Bodies of stored pages that elements may still lie in.
    pub sources: Vec<Part>,
    /// The stored pages that were opened, with their source.
    pub stored: BTreeMap<Rank, usize>,
    /// Elements that were taken out and put back.
    pub moved: BTreeSet<u64>,
    tree: TreeId,
}

/// The elements of an opened page.
pub struct OpenPage {
    /// So many of the first are as they are stored under this rank, and not looked at.
    untouched: usize,
    /// The source in which they lie.
    source: usize,
    /// Those behind them, in order.
    pub touched: Vec<Element>,
    /// Whether they differ from what is stored under this rank.
    pub changed: bool,
}

impl OpenPage {
    /// Elements of which none is stored under their rank.
    pub fn new(elements: Vec<Element>) -> OpenPage {
        OpenPage { untouched: 0, source: 0, touched: elements, changed: true }
    }

    /// How many elements there are.
    pub fn len(&self) -> usize {
        self.untouched + self.touched.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// So many of the first are as they are stored under this rank.
    pub fn untouched(&self) -> usize {
        self.untouched
    }
}

/// An element as it is now.
#[derive(Clone, Copy)]
pub enum Now<'a> {
    /// As it is stored.
    Stored(&'a [u8]),
    /// Edited.
    Edited(&'a Edit),
}

/// An element of an opened list.
#[derive(Clone, Debug)]
pub struct Element {
    /// Its id.
    pub id: u64,
    /// Its value.
    pub value: ElementValue,
}

/// The value of an element of an opened list.
#[derive(Clone, Debug)]
pub enum ElementValue {
    /// As it is stored: a slice of a source.
    Stored {
        /// Index of the source.
        source: u32,
        /// Where the slice starts.
        start: u32,
        /// Where it ends.
        end: u32,
    },
    /// Edited; never [`Edit::Removed`].
    Edited(Edit),
}

impl ListWork {
    /// Opens a list.
    pub fn open(pending: &Pending<'_>, tree: TreeId, base: Base) -> Result<ListWork> {
        let mut list = ListWork {
            base: base.clone(),
            next_id: 0,
            stored_next_id: 0,
            counts: CountTree::new(tree, 0),
            stored_counts: CountTree::new(tree, 0),
            pages: BTreeMap::new(),
            sources: Vec::new(),
            stored: BTreeMap::new(),
            moved: BTreeSet::new(),
            tree,
        };
        match base {
            Base::Inline(body) => {
                let page = Page::parse(Container::List, &body).ok_or_else(damaged)?;
                list.next_id = page.next_id_or_derived().ok_or_else(damaged)?;
                let count = page.count() as u64;
                for counts in [&mut list.counts, &mut list.stored_counts] {
                    counts.insert(pending.snapshot(), rank::FIRST, count)?;
                }
                list.adopt(rank::FIRST, body)?;
            }
            Base::Paged(id) => {
                let head = ContainerHead::load(pending.snapshot(), tree, id)?;
                list.next_id = head.next_id;
                list.counts = open_counts(tree, id, &head)?;
                list.stored_counts = list.counts.clone();
            }
        }
        list.stored_next_id = list.next_id;
        Ok(list)
    }

    /// How many elements there are.
    pub fn len(&self) -> u64 {
        self.counts.total()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Opens a page from the body that is stored for it.
    fn adopt(&mut self, rank: Rank, body: Part) -> Result<()> {
        let source = self.sources.len();
        self.sources.push(body);
        self.stored.insert(rank, source);
        let untouched = self.source(source)?.count();
        let page = OpenPage { untouched, source, touched: Vec::new(), changed: false };
        self.pages.insert(rank, page);
        Ok(())
    }

    fn source(&self, source: usize) -> Result<Page<'_>> {
        Page::parse(Container::List, &self.sources[source]).ok_or_else(damaged)
    }

    /// The page in which the untouched elements of an opened one are stored.
    pub fn stored_page(&self, page: &OpenPage) -> Result<Page<'_>> {
        self.source(page.source)
    }

    /// Makes the elements of an opened page from an index on ready to be changed.
    fn loosen(&mut self, rank: Rank, index: usize) -> Result<&mut OpenPage> {
        let page = &self.pages[&rank];
        let (source, untouched) = (page.source, page.untouched);
        let mut loose = Vec::new();
        if index < untouched {
            let (stored, body) = (self.source(source)?, &self.sources[source]);
            loose.reserve(untouched - index);
            for index in index..untouched {
                let (id, value) = stored.element(index).ok_or_else(damaged)?;
                let start = (value.as_ptr() as usize - body.as_ptr() as usize) as u32;
                let end = start + value.len() as u32;
                let value = ElementValue::Stored { source: source as u32, start, end };
                loose.push(Element { id, value });
            }
        }
        let page = self.pages.get_mut(&rank).expect("it is open");
        if !loose.is_empty() {
            loose.append(&mut page.touched);
            page.touched = loose;
            page.untouched = index;
        }
        Ok(page)
    }

    /// As [`ListWork::loosen`], when they are about to change.
    fn touch(&mut self, rank: Rank, index: usize) -> Result<&mut OpenPage> {
        let page = self.loosen(rank, index)?;
        page.changed = true;
        Ok(page)
    }

    /// Takes the elements of an opened page from an index on out.
    pub fn split_off(&mut self, rank: Rank, index: usize) -> Result<OpenPage> {
        let page = self.touch(rank, index)?;
        Ok(OpenPage::new(page.touched.split_off(index - page.untouched)))
    }

    /// Takes an opened page out, with all its elements ready to lie under another rank.
    pub fn take_page(&mut self, rank: Rank) -> Result<OpenPage> {
        self.touch(rank, 0)?;
        Ok(self.pages.remove(&rank).expect("it is open"))
    }

    /// The elements of an opened page from an index on: id and value.
    pub fn elements<'a>(&'a self, page: &'a OpenPage, from: usize) -> Result<Vec<(u64, Now<'a>)>> {
        let mut elements = Vec::with_capacity(page.len().saturating_sub(from));
        if from < page.untouched {
            let stored = self.source(page.source)?;
            for index in from..page.untouched {
                let (id, value) = stored.element(index).ok_or_else(damaged)?;
                elements.push((id, Now::Stored(value)));
            }
        }
        let touched = page.touched.iter().skip(from.saturating_sub(page.untouched));
        elements.extend(touched.map(|element| (element.id, self.now(&element.value))));
        Ok(elements)
    }

    /// One of them; `None` behind the end.
    pub fn element_of<'a>(&'a self, page: &'a OpenPage, index: usize) -> Result<Option<Now<'a>>> {
        if index < page.untouched {
            let stored = self.source(page.source)?.value(index).ok_or_else(damaged)?;
            return Ok(Some(Now::Stored(stored)));
        }
        let element = page.touched.get(index - page.untouched);
        Ok(element.map(|element| self.now(&element.value)))
    }

    /// A value as it is now.
    pub fn now<'a>(&'a self, value: &'a ElementValue) -> Now<'a> {
        match *value {
            ElementValue::Stored { source, start, end } => {
                Now::Stored(&self.sources[source as usize][start as usize..end as usize])
            }
            ElementValue::Edited(ref edit) => Now::Edited(edit),
        }
    }

    /// Opens the page of a rank, unless it is.
    pub fn open_page(&mut self, view: &View<'_>, rank: Rank) -> Result<&mut OpenPage> {
        if !self.pages.contains_key(&rank) {
            let Base::Paged(id) = self.base else {
                return Err(Error::corrupted("an inline list has one page"));
            };
            let record = view.list_page(self.tree, id, rank)?;
            self.adopt(rank, Part::from(&record.bytes[record.body]))?;
        }
        Ok(self.pages.get_mut(&rank).expect("just opened"))
    }

    /// The page that holds a position, opened, and the index in it.
    fn locate(&mut self, view: &View<'_>, position: u64) -> Result<Option<(Rank, usize)>> {
        let Some((rank, index)) = self.counts.find(view.snapshot, position)? else {
            return Ok(None);
        };
        let len = self.open_page(view, rank)?.len();
        match usize::try_from(index) {
            Ok(index) if index <= len => Ok(Some((rank, index))),
            _ => Err(Error::corrupted("a list's counts do not fit its pages")),
        }
    }

    /// An element; `None` behind the end.
    pub fn element(&mut self, view: &View<'_>, position: u64) -> Result<Option<&mut Element>> {
        if position >= self.len() {
            return Ok(None);
        }
        let Some((rank, index)) = self.locate(view, position)? else { return Ok(None) };
        let page = self.loosen(rank, index)?;
        Ok(page.touched.get_mut(index - page.untouched))
    }

    /// Notes that an element was edited.
    pub fn mark(&mut self, view: &View<'_>, position: u64) -> Result<()> {
        if let Some((rank, index)) = self.locate(view, position)? {
            self.touch(rank, index)?;
        }
        Ok(())
    }

    /// The edits of its elements.
    pub fn edits(&self) -> impl Iterator<Item = &Edit> {
        let elements = self.pages.values().flat_map(|page| &page.touched);
        elements.filter_map(|element| match &element.value {
            ElementValue::Edited(edit) => Some(edit),
            ElementValue::Stored { .. } => None,
        })
    }

    /// A new element's id.
    pub fn new_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id - 1
    }

    /// Inserts an element before a position, or at the end.
    pub fn insert(&mut self, view: &View<'_>, position: u64, element: Element) -> Result<()> {
        let Some((rank, index)) = self.locate(view, position)? else {
            self.pages.insert(rank::FIRST, OpenPage::new(vec![element]));
            return self.counts.insert(view.snapshot, rank::FIRST, 1);
        };
        let page = self.touch(rank, index)?;
        page.touched.insert(index - page.untouched, element);
        let len = page.len();
        self.counts.set(view.snapshot, rank, len as u64)?;
        if len > PAGE_ELEMENTS_MAX {
            self.split(view, rank)?;
        }
        Ok(())
    }

    fn split(&mut self, view: &View<'_>, rank: Rank) -> Result<()> {
        let next = self.counts.next(view.snapshot, rank)?;
        let Some(right_rank) = rank_between(rank, next) else {
            return self.respread(view, rank);
        };
        let len = self.pages[&rank].len();
        // An append at the very end leaves the left page full.
        let at = match next {
            None => len - 1,
            Some(_) => len / 2,
        };
        let right = self.split_off(rank, at)?;
        let (left_len, right_len) = (at as u64, right.len() as u64);
        self.pages.insert(right_rank, right);
        self.counts.set(view.snapshot, rank, left_len)?;
        self.counts.insert(view.snapshot, right_rank, right_len)
    }

    /// Gives the pages around an exhausted gap ranks with room between them.
    ///
    /// # Complexity
    /// The window doubles until the room is wide, so a page is moved O(log n) times amortised.
    pub fn respread(&mut self, view: &View<'_>, rank: Rank) -> Result<()> {
        let mut window = vec![rank];
        loop {
            let (first, last) = (window[0], window[window.len() - 1]);
            let before = self.counts.previous(view.snapshot, first)?;
            let after = self.counts.next(view.snapshot, last)?;
            let high = match after {
                Some(high) => high,
                None => rank::after(last.max(before.unwrap_or(0))).unwrap_or(Rank::MAX),
            };
            let low = before.unwrap_or(0);
            let room = (high - low) / (window.len() as Rank + 1);
            if room >= 1 << 32
                && let Some(fresh) = rank::spread(low, high, window.len())
            {
                return self.rename(view, &window, &fresh);
            }
            if before.is_none() && after.is_none() {
                return Err(Error::limit_exceeded("a list has no ranks left"));
            }
            for _ in 0..window.len() {
                if let Some(rank) = self.counts.previous(view.snapshot, window[0])? {
                    window.insert(0, rank);
                }
                if let Some(rank) = self.counts.next(view.snapshot, window[window.len() - 1])? {
                    window.push(rank);
                }
            }
        }
    }

    fn rename(&mut self, view: &View<'_>, old: &[Rank], fresh: &[Rank]) -> Result<()> {
        let mut pages = Vec::with_capacity(old.len());
        for &rank in old {
            self.open_page(view, rank)?;
            let page = self.take_page(rank)?;
            self.counts.remove(view.snapshot, rank)?;
            pages.push(page);
        }
        for (page, &rank) in pages.into_iter().zip(fresh) {
            self.counts.insert(view.snapshot, rank, page.len() as u64)?;
            self.pages.insert(rank, page);
        }
        Ok(())
    }

    /// Takes an element out; `None` behind the end.
    pub fn remove(&mut self, view: &View<'_>, position: u64) -> Result<Option<Element>> {
        if position >= self.len() {
            return Ok(None);
        }
        let Some((rank, index)) = self.locate(view, position)? else { return Ok(None) };
        let page = self.touch(rank, index)?;
        let element = page.touched.remove(index - page.untouched);
        let len = page.len() as u64;
        if len > 0 {
            self.counts.set(view.snapshot, rank, len)?;
        } else {
            self.pages.remove(&rank);
            self.counts.remove(view.snapshot, rank)?;
        }
        Ok(Some(element))
    }
}

/// A rank for a page between a page and the next, if any.
pub fn rank_between(rank: Rank, next: Option<Rank>) -> Option<Rank> {
    match next {
        None => rank::after(rank),
        Some(next) => rank::between(rank, next),
    }
}

/// The ranks of stored pages that no longer exist under their rank.
pub fn gone_pages(list: &ListWork) -> Vec<Rank> {
    list.stored.keys().copied().filter(|rank| !list.pages.contains_key(rank)).collect()
}

/// The error for a stored list that does not read.
#[cold]
pub fn damaged() -> Error {
    Error::corrupted("a stored list does not read; run `check` to find what is damaged")
}
