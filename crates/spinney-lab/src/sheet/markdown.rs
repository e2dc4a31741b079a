//! A document as Markdown: tables without charts.

use std::fmt::Write as _;

use super::{Block, Cell, Sheet, Table, Tone};

impl Sheet {
    /// The document as GitHub's Markdown.
    pub fn markdown(&self) -> String {
        let mut out = format!("# {}\n", escaped(&self.title));
        for section in &self.sections {
            write!(out, "\n## {}\n", escaped(&section.title)).expect("a `String` takes all");
            section.blocks.iter().for_each(|block| write_block(block, &mut out));
        }
        out
    }
}

fn write_block(block: &Block, out: &mut String) {
    match block {
        Block::Text(text) => *out += &format!("\n{}\n", escaped(text)),
        Block::List(items) => {
            out.push('\n');
            items.iter().for_each(|item| *out += &format!("* {}\n", escaped(item)));
        }
        Block::Facts(facts) => {
            out.push('\n');
            for (name, value) in facts {
                *out += &format!("* {}: {}\n", escaped(name), escaped(value));
            }
        }
        Block::Table(table) => write_table(table, out),
        Block::Legend(_) | Block::Charts(_) => {}
        Block::Folded(title, blocks) => {
            *out += &format!("\n### {}\n", escaped(title));
            blocks.iter().for_each(|block| write_block(block, out));
        }
    }
}

/// The table; cells that say more than their text are bold.
pub(super) fn write_table(table: &Table, out: &mut String) {
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    out.push('\n');
    *out += &line(table.header.iter().map(|name| escaped(name)).collect());
    let rules = (0..table.header.len()).map(|at| if at < table.texts { "---" } else { "--:" });
    *out += &format!("|{}|\n", rules.collect::<Vec<&str>>().join("|"));
    table.rows.iter().for_each(|row| *out += &line(row.iter().map(cell).collect()));
}

fn cell(cell: &Cell) -> String {
    match cell.tone {
        Tone::Plain | Tone::Better => escaped(&cell.text),
        Tone::Worse | Tone::Void => format!("**{}**", escaped(&cell.text)),
    }
}

/// A text whose signs mean nothing in a paragraph or a cell; `code` stays code.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\n' | '\r' => out.push(' '),
            '|' | '<' | '>' | '*' | '\\' => out.extend(['\\', letter]),
            letter => out.push(letter),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_cannot_leave_their_cell() {
        let mut table = Table::new(["a|b", "c"], 1);
        table.rows.push(vec!["x|y\n<b>".into(), Cell { text: "1".into(), tone: Tone::Void }]);
        let mut out = String::new();
        write_table(&table, &mut out);
        assert_eq!(out, "\n| a\\|b | c |\n|---|--:|\n| x\\|y \\<b\\> | **1** |\n");
    }
}
