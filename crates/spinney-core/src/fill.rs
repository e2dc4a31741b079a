//! Packing a run of entries into pages: greedy, in order, each page as full as it gets.
//!
//! It writes page records and, for lists, their counts. It does not know where the entries come from.

use std::cell::RefCell;

use crate::backend::TreeId;
use crate::counts::CountTree;
use crate::error::{Error, Result};
use crate::layout::{RecordKind, prefix};
use crate::limits::COUNT_MAX;
use crate::page::{self, Entry, Measure, common_prefix_len};
use crate::pending::Pending;
use crate::rank::{self, Rank};
use crate::record::{ContainerHead, SEAL_LEN, seal};
use crate::separator;
use crate::varint;
use crate::view::PAGE_CUT;
use crate::visit::Container;

/// Entries copied into one buffer, to become pages.
#[derive(Default)]
struct Run {
    arena: Vec<u8>,
    /// End of the key and of the value of each entry, and its element id.
    ends: Vec<(usize, usize, u64)>,
}

impl Run {
    /// Adds an entry behind the others.
    fn push(&mut self, entry: Entry<'_>) {
        self.arena.extend_from_slice(entry.key);
        let key_end = self.arena.len();
        self.arena.extend_from_slice(entry.value);
        self.ends.push((key_end, self.arena.len(), entry.id));
    }

    /// An entry.
    fn entry(&self, index: usize) -> Entry<'_> {
        let start = self.start(index);
        let (key_end, end, id) = self.ends[index];
        Entry { key: &self.arena[start..key_end], id, value: &self.arena[key_end..end] }
    }

    fn start(&self, index: usize) -> usize {
        if index == 0 { 0 } else { self.ends[index - 1].1 }
    }

    /// Drops the first entries.
    fn drop_first(&mut self, count: usize) {
        let start = self.start(count);
        self.arena.drain(..start);
        self.ends.drain(..count);
        for (key_end, end, _) in &mut self.ends {
            *key_end -= start;
            *end -= start;
        }
    }
}

/// The record of a page: seal, header, the length of the separator when the key holds only a part,
/// body.
pub fn page_record<'a>(
    container: Container,
    key: &[u8],
    cut_len: Option<usize>,
    count: usize,
    entry: impl Fn(usize) -> Entry<'a>,
) -> Vec<u8> {
    let mut record = Vec::with_capacity(PAGE_LEN);
    write_page_header(cut_len, &mut record);
    page::encode(container, count, entry, None, &mut record);
    seal(key, &mut record);
    record
}

thread_local! {
    /// A buffer as large as a page is dear to make and to give back.
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Puts the record of a page whose separator is not cut; `copy` appends the body, and nothing is put where it
/// answers false.
pub fn put_page(
    pending: &mut Pending<'_>,
    key: &[u8],
    copy: impl FnOnce(&mut Vec<u8>) -> bool,
) -> bool {
    BUFFER.with_borrow_mut(|record| {
        record.clear();
        write_page_header(None, record);
        let is_made = copy(record);
        if is_made {
            seal(key, record);
            pending.put(key, record);
        }
        is_made
    })
}

/// Appends what stands before the body of a page record; it is to be sealed.
pub fn write_page_header(cut_len: Option<usize>, record: &mut Vec<u8>) {
    record.extend_from_slice(&[0; SEAL_LEN]);
    match cut_len {
        None => record.push(0),
        Some(len) => {
            record.push(PAGE_CUT);
            varint::write(len as u64, record);
        }
    }
}

/// Bytes that are reserved for a page record, a little more than most need.
const PAGE_LEN: usize = 4096;

/// Bytes of a page record before its body, when the separator is not cut.
pub const PAGE_HEADER_LEN: usize = SEAL_LEN + 1;

/// The shortest separator between two keys: above the first, at most the second.
pub fn shortest_separator<'k>(left: &[u8], right: &'k [u8]) -> &'k [u8] {
    &right[..(common_prefix_len(left, right) + 1).min(right.len())]
}

/// Bytes of entries that are gathered before pages are made of them.
const RUN_LEN_MAX: usize = 64 << 10;

/// Fills the pages of a new container.
pub struct Filler {
    container: Container,
    tree: TreeId,
    id: u64,
    run: Run,
    total: u64,
    next_id: u64,
    /// The last key of the page before, in a map.
    last_key: Option<Vec<u8>>,
    /// The tie-break of the page before, while separators share the same cut.
    last_cut: Option<(Vec<u8>, Rank)>,
    last_rank: Rank,
    counts: CountTree,
    /// Whether finished pages may be written ahead of the commit.
    ahead: bool,
}

impl Filler {
    /// Starts a container under a new id.
    pub fn new(container: Container, tree: TreeId, id: u64) -> Filler {
        Filler {
            container,
            tree,
            id,
            run: Run::default(),
            total: 0,
            next_id: 0,
            last_key: None,
            last_cut: None,
            last_rank: 0,
            counts: CountTree::new(tree, id),
            ahead: true,
        }
    }

    /// Keeps all pages in memory until the commit.
    pub fn without_writing_ahead(mut self) -> Filler {
        self.ahead = false;
        self
    }

    /// Sets the id that the list's next new element gets, when it is above all elements' ids.
    pub fn set_next_id(&mut self, next_id: u64) {
        self.next_id = self.next_id.max(next_id);
    }

    /// Adds an entry behind the others; map keys must ascend.
    ///
    /// # Errors
    /// Those of writing ahead; `LimitExceeded` above [`COUNT_MAX`] members.
    pub fn push(&mut self, pending: &mut Pending<'_>, entry: Entry<'_>) -> Result<()> {
        self.run.push(entry);
        if self.run.arena.len() + self.run.ends.len() > RUN_LEN_MAX {
            self.write_run(pending, false)?;
        }
        Ok(())
    }

    /// Adds the last entries, without copying them when there are no others, and finishes.
    ///
    /// # Errors
    /// As [`Filler::push`].
    pub fn finish_with<'e>(
        mut self,
        pending: &mut Pending<'_>,
        count: usize,
        entry: impl Fn(usize) -> Entry<'e> + Copy,
    ) -> Result<()> {
        match self.total == 0 && self.run.ends.is_empty() {
            true => drop(self.write_pages(pending, count, entry, true)?),
            false => (0..count).try_for_each(|index| self.push(pending, entry(index)))?,
        }
        self.finish(pending)
    }

    /// Adds the elements of a list that has none yet, and finishes: they lie behind each other in `bytes`, up to
    /// ascending ends, and their ids count up from 0.
    ///
    /// # Errors
    /// As [`Filler::push`].
    pub fn finish_with_elements(
        mut self,
        pending: &mut Pending<'_>,
        count: usize,
        end: impl Fn(usize) -> usize,
        bytes: &[u8],
    ) -> Result<()> {
        let fits = pending.sizes.page_len_max - PAGE_HEADER_LEN;
        let (mut first, mut start) = (0, 0);
        while first < count {
            // As many as fit, but at least one.
            let (mut next, mut too_far) = (first + 1, count + 1);
            while too_far - next > 1 {
                let middle = next.midpoint(too_far);
                let measure = Measure::of_elements(middle - first, end(middle - 1) - start);
                match measure.body_len_max() <= fits {
                    true => next = middle,
                    false => too_far = middle,
                }
            }
            let page = &bytes[start..end(next - 1)];
            self.add(next - first)?;
            let key = self.next_page_of_list()?;
            put_page(pending, &key, |record| {
                let ends = (first..next).map(|element| end(element) - start);
                page::write_header_of_parts(ends, page.len(), first as u64, record);
                record.extend_from_slice(page);
                true
            });
            self.next_id = self.total;
            self.counts.insert(pending.snapshot(), self.last_rank, (next - first) as u64)?;
            self.written(pending)?;
            (first, start) = (next, start + page.len());
        }
        self.finish(pending)
    }

    fn write_run(&mut self, pending: &mut Pending<'_>, all: bool) -> Result<()> {
        let mut run = std::mem::take(&mut self.run);
        let written = self.write_pages(pending, run.ends.len(), |index| run.entry(index), all)?;
        run.drop_first(written);
        self.run = run;
        Ok(())
    }

    /// Writes pages as full as they get; unless `all` are to be written, the last page is left for
    /// entries that follow. Returns how many entries it wrote.
    fn write_pages<'e>(
        &mut self,
        pending: &mut Pending<'_>,
        count: usize,
        entry: impl Fn(usize) -> Entry<'e> + Copy,
        all: bool,
    ) -> Result<usize> {
        let fits = pending.sizes.page_len_max - PAGE_HEADER_LEN;
        let mut start = 0;
        while start < count {
            let first = entry(start).key;
            let mut measure = Measure::default();
            let mut end = start;
            while end < count {
                let with = measure.with(first, &entry(end));
                if end > start && with.body_len_max() > fits {
                    break;
                }
                measure = with;
                end += 1;
            }
            if end == count && !all {
                break;
            }
            self.write_page(pending, end - start, |index| entry(start + index))?;
            start = end;
        }
        Ok(start)
    }

    fn write_page<'e>(
        &mut self,
        pending: &mut Pending<'_>,
        count: usize,
        entry: impl Fn(usize) -> Entry<'e>,
    ) -> Result<()> {
        self.add(count)?;
        let (key, cut_len) = match self.container {
            Container::List => (self.next_page_of_list()?, None),
            Container::Map => {
                let separator = match &self.last_key {
                    None => Vec::new(),
                    Some(last) => shortest_separator(last, entry(0).key).to_vec(),
                };
                self.map_key(&separator, pending.sizes.key_len_max)
            }
        };
        let record = page_record(self.container, &key, cut_len, count, &entry);
        pending.put(&key, &record);
        match self.container {
            Container::Map if count > 0 => self.last_key = Some(entry(count - 1).key.to_vec()),
            Container::Map => {}
            Container::List => {
                for index in 0..count {
                    self.next_id = self.next_id.max(entry(index).id + 1);
                }
                self.counts.insert(pending.snapshot(), self.last_rank, count as u64)?;
            }
        }
        self.written(pending)
    }

    /// Counts members that are about to be written.
    fn add(&mut self, count: usize) -> Result<()> {
        self.total += count as u64;
        match self.total > COUNT_MAX {
            true => {
                Err(Error::limit_exceeded(format!("a container has more than {COUNT_MAX} members")))
            }
            false => Ok(()),
        }
    }

    /// The key of the next page of a list.
    fn next_page_of_list(&mut self) -> Result<Vec<u8>> {
        self.last_rank = rank::after(self.last_rank)
            .ok_or_else(|| Error::limit_exceeded("a list has no ranks left"))?;
        let mut key = prefix(self.tree, RecordKind::Page, self.id).to_vec();
        rank::write(self.last_rank, &mut key);
        Ok(key)
    }

    /// A page is written.
    fn written(&self, pending: &mut Pending<'_>) -> Result<()> {
        match self.ahead {
            true => pending.write_ahead(self.tree),
            false => Ok(()),
        }
    }

    /// The key of the next map page, and the length of its separator when the key holds only a part.
    fn map_key(&mut self, separator: &[u8], key_len_max: usize) -> (Vec<u8>, Option<usize>) {
        let fits = separator::len_max(key_len_max);
        if separator.len() <= fits {
            return (separator::page_key(self.tree, self.id, separator), None);
        }
        let tie = match &self.last_cut {
            Some((same, tie)) if *same == separator[..fits] => {
                rank::after(*tie).expect("fewer pages than ranks")
            }
            _ => rank::FIRST,
        };
        self.last_cut = Some((separator[..fits].to_vec(), tie));
        let key = separator::cut_key(self.tree, self.id, separator, tie, key_len_max);
        (key, Some(separator.len()))
    }

    /// Writes what is left and the container's head.
    ///
    /// # Errors
    /// As [`Filler::push`].
    pub fn finish(mut self, pending: &mut Pending<'_>) -> Result<()> {
        self.write_run(pending, true)?;
        if self.total == 0 {
            self.write_page(pending, 0, |_| unreachable!("it is empty"))?;
        }
        for (key, record) in self.counts.save() {
            pending.put(&key, &record.expect("a new tree removes nothing"));
        }
        let (height, counts) = self.counts.root();
        let head = ContainerHead {
            container: self.container,
            count: self.total,
            next_id: self.next_id,
            height,
            counts,
        };
        pending.put(&ContainerHead::key(self.tree, self.id), &head.encode(self.tree, self.id));
        Ok(())
    }
}
