//! Tables of recorded runs inside pages that people write.
//!
//! A block stands between two comments. The first one says what the block is made of and which command
//! renews it:
//!
//! ```text
//! <!-- bench:begin table=peers from=docs/measured/run.jsonl backend=lmdb size=100000 rows=20
//!      renewed by: spinney bench --splice README.md -->
//! ...
//! <!-- bench:end -->
//! ```
//!
//! `from` is relative to the page. `table` is `peers`, `losses` or `published`; `suite` is `datastore` where
//! it is not said.

use std::collections::BTreeMap;
use std::path::Path;

use spinney_core::{Error, Result};

use crate::amount::grouped;
use crate::record::Status;
use crate::report::Report;
use crate::sheet::excerpt;
use crate::sheet::published::published;

const BEGIN: &str = "<!-- bench:begin ";
const END: &str = "<!-- bench:end -->";

/// Renews the blocks of the page at `page`, from the records that they name, or from those at `from`, which
/// they name from then on. Tells whether the page changed.
///
/// # Errors
/// `InvalidInput` for a page without a block, and for a block that says no table, or one that its records do
/// not hold; `Io` when a file cannot be read or written. The page is then as it was.
pub fn splice(page: &Path, from: Option<&Path>) -> Result<bool> {
    let text = read(page)?;
    let new =
        renewed(&text, page, from).map_err(|error| error.at(format!("`{}`", page.display())))?;
    if new == text {
        return Ok(false);
    }
    let failed = || Error::io(format!("cannot write `{}`", page.display()));
    std::fs::write(page, new).map_err(|error| failed().with_source(error))?;
    Ok(true)
}

/// The text of `page` with its blocks made anew.
fn renewed(text: &str, page: &Path, from: Option<&Path>) -> Result<String> {
    let folder = page.parent().unwrap_or_else(|| Path::new(""));
    let from = from.map(|from| below(from, folder)).transpose()?;
    let (mut out, mut rest) = (String::new(), text);
    while let Some((before, block)) = rest.split_once(BEGIN) {
        let parts = block.split_once("-->").and_then(|(head, block)| {
            let (_, after) = block.split_once(END)?;
            Some((head, after))
        });
        let (head, after) = parts.ok_or_else(|| {
            Error::invalid_input(format!("a block has no end; it is a line `{END}`"))
        })?;
        let mut words = words(head);
        if let Some(from) = &from {
            words.insert("from".to_owned(), from.clone());
        }
        out += before;
        out += &block_text(&words, page, folder)?;
        rest = after;
    }
    match out.is_empty() {
        true => Err(Error::invalid_input(format!("it has no block, which begins with `{BEGIN}`"))),
        false => Ok(out + rest),
    }
}

/// `path` as a page in `folder` names it.
fn below(path: &Path, folder: &Path) -> Result<String> {
    let inside = path.strip_prefix(folder).ok().and_then(Path::to_str);
    inside.map(str::to_owned).ok_or_else(|| {
        let (path, folder) = (path.display(), folder.display());
        Error::invalid_input(format!(
            "records must lie below the folder of the page: `{path}` is not in `{folder}`"
        ))
    })
}

/// The settings of a block; what is no `name=value` is a remark.
fn words(head: &str) -> BTreeMap<String, String> {
    let head = head.split("renewed by:").next().unwrap_or_default();
    let words = head.split_whitespace().filter_map(|word| word.split_once('='));
    words.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

fn block_text(words: &BTreeMap<String, String>, page: &Path, folder: &Path) -> Result<String> {
    let word = |name: &str| words.get(name).map(String::as_str);
    let lacking = |name: &str, expected: &str| {
        Error::invalid_input(format!("a block says no `{name}=`; expected {expected}"))
    };
    let number = |name: &str| word(name).and_then(|text| text.parse::<usize>().ok());
    let from = word("from").ok_or_else(|| lacking("from", "a file of records"))?;
    let size = number("size").ok_or_else(|| lacking("size", "N"))?;
    let backend = word("backend").ok_or_else(|| lacking("backend", "a backend of the run"))?;
    let reports = reports(&folder.join(from), word("suite").unwrap_or("datastore"))?;
    let mut records = reports.iter().flat_map(|report| &report.records);
    if !records.any(|record| record.system == backend && record.size == size) {
        let what = format!("`{from}` holds nothing of `{backend}` at N = {size}");
        return Err(Error::invalid_input(what));
    }
    let rows = number("rows").unwrap_or(usize::MAX);
    let (levels, table) = match word("table") {
        Some("peers") => {
            ("durable where no level is said", excerpt::peers(&reports[0], backend, size, rows))
        }
        Some("losses") => {
            ("durable where no level is said", excerpt::losses(&reports[0], backend, size, rows))
        }
        Some("published") => {
            let table = published(&reports, &[backend], size);
            let none = || Error::invalid_input(format!("nothing was published for N = {size}"));
            ("writes at level `none`", table.ok_or_else(none)?.markdown())
        }
        _ => return Err(lacking("table", "`peers`, `losses` or `published`")),
    };
    let settings: Vec<String> =
        words.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let (settings, page) = (settings.join(" "), page.display());
    Ok(format!(
        "{BEGIN}{settings}\n     renewed by: spinney bench --splice {page} -->\n{}{table}{END}",
        origin(&reports, size, from, levels)
    ))
}

/// The runs of a suite, of which there is at least one.
fn reports(path: &Path, suite: &str) -> Result<Vec<Report>> {
    let at = |error: Error| error.at(format!("`{}`", path.display()));
    let mut reports = Report::read(&read(path)?).map_err(at)?;
    reports.retain(|report| report.context.suite == suite);
    match reports.is_empty() {
        true => Err(at(Error::invalid_input(format!("it holds no run of the suite {suite}")))),
        false => Ok(reports),
    }
}

/// Where the numbers are from, in a sentence or two.
fn origin(reports: &[Report], size: usize, from: &str, levels: &str) -> String {
    let machine = |field: &str| match &reports[0].context.machine[field] {
        serde_json::Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let mut of_size = reports.iter().flat_map(|report| &report.records);
    let noisy = match of_size.any(|record| record.size == size && record.status == Status::Noisy) {
        true => " `~`: others used the machine, and times are too high.",
        false => "",
    };
    let (cpu, cores, fs, size) = (machine("cpu"), machine("cores"), machine("fs"), grouped(size));
    format!(
        "Medians ([records]({from})) on {cpu}, {cores} cores, {fs};\nN = {size}, {levels}.{noisy}\n"
    )
}

fn read(path: &Path) -> Result<String> {
    let unread = || Error::io(format!("cannot read `{}`", path.display()));
    std::fs::read_to_string(path).map_err(|error| unread().with_source(error))
}
