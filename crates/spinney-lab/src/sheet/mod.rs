//! Reports as documents: what runs found, as one page of Markdown or one of HTML.
//!
//! `content` puts together what is said, from records alone; `markdown` and `html` only say it. Nothing
//! here measures.

mod chart;
mod content;
pub(crate) mod excerpt;
mod file;
mod html;
mod markdown;
mod parts;
pub(crate) mod published;

use chart::{bars, curves, ranges};
pub use file::SheetFile;

/// A document.
#[derive(Clone, Debug, Default)]
pub struct Sheet {
    title: String,
    sections: Vec<Section>,
}

/// A part of a document with a title.
#[derive(Clone, Debug)]
struct Section {
    title: String,
    blocks: Vec<Block>,
}

/// What a section consists of. Markdown passes over charts: what they show stands in a table, too.
#[derive(Clone, Debug)]
enum Block {
    Text(String),
    List(Vec<String>),
    /// Names and what they are.
    Facts(Vec<(String, String)>),
    Table(Table),
    /// Names of systems in the order of their colours.
    Legend(Vec<String>),
    Charts(Vec<Chart>),
    /// What is shown only when it is asked for.
    Folded(String, Vec<Block>),
}

/// A chart with what stands above it.
#[derive(Clone, Debug)]
struct Chart {
    title: String,
    shows: Shows,
}

#[derive(Clone, Debug)]
enum Shows {
    /// Ratios against the baseline of this name.
    Bars(String, Vec<bars::Group>),
    /// Distributions in a unit.
    Ranges(&'static str, Vec<ranges::Group>),
    /// Medians in a unit over N.
    Curves(&'static str, Vec<curves::Curve>),
}

/// A table, whose first columns are texts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    pub(crate) header: Vec<String>,
    /// How many columns from the left are texts and not numbers.
    pub(crate) texts: usize,
    pub(crate) rows: Vec<Vec<Cell>>,
}

#[derive(Clone, Debug)]
pub(crate) struct Cell {
    pub(crate) text: String,
    tone: Tone,
}

/// What a cell says of spinney or of the baseline, besides its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tone {
    Plain,
    Better,
    Worse,
    Void,
}

impl Table {
    /// As Markdown.
    pub(crate) fn markdown(&self) -> String {
        let mut out = String::new();
        markdown::write_table(self, &mut out);
        out
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Cell {
        Cell { text, tone: Tone::Plain }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Cell {
        text.to_owned().into()
    }
}
