//! A document as one page of HTML that needs nothing else: no network, no script, no other file. It is
//! well-formed XML, too, so that a test can read it.

use std::fmt::Write as _;

use super::chart::{Escaped, bars, curves, ranges, series};
use super::{Block, Chart, Sheet, Shows, Table, Tone};

const STYLE: &str = include_str!("style.css");

impl Sheet {
    /// The document as a page of HTML.
    pub fn html(&self) -> String {
        let title = Escaped(&self.title);
        let mut out = format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
             <meta name=\"color-scheme\" content=\"light dark\"/>\n\
             <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n<h1>{title}</h1>\n"
        );
        self.write_contents(&mut out);
        for (at, section) in self.sections.iter().enumerate() {
            let title = Escaped(&section.title);
            push(&mut out, format_args!("<section>\n<h2 id=\"part{at}\">{title}</h2>\n"));
            section.blocks.iter().for_each(|block| write_block(block, &mut out));
            out += "</section>\n";
        }
        out + "</main>\n</body>\n</html>\n"
    }

    fn write_contents(&self, out: &mut String) {
        *out += "<nav aria-label=\"Contents\">\n<ul>\n";
        for (at, section) in self.sections.iter().enumerate() {
            let title = Escaped(&section.title);
            push(out, format_args!("<li><a href=\"#part{at}\">{title}</a></li>\n"));
        }
        *out += "</ul>\n</nav>\n";
    }
}

fn write_block(block: &Block, out: &mut String) {
    match block {
        Block::Text(text) => push(out, format_args!("<p>{}</p>\n", with_code(text))),
        Block::List(items) => {
            *out += "<ul>\n";
            items.iter().for_each(|item| push(out, format_args!("<li>{}</li>\n", with_code(item))));
            *out += "</ul>\n";
        }
        Block::Facts(facts) => {
            *out += "<dl>\n";
            for (name, value) in facts {
                let name = Escaped(name);
                push(out, format_args!("<dt>{name}</dt><dd>{}</dd>\n", with_code(value)));
            }
            *out += "</dl>\n";
        }
        Block::Table(table) => write_table(table, out),
        Block::Legend(names) => write_legend(names, out),
        Block::Charts(charts) => {
            *out += "<div class=\"charts\">\n";
            charts.iter().for_each(|chart| write_chart(chart, out));
            *out += "</div>\n";
        }
        Block::Folded(title, blocks) => {
            let title = Escaped(title);
            push(out, format_args!("<details>\n<summary>{title}</summary>\n"));
            blocks.iter().for_each(|block| write_block(block, out));
            *out += "</details>\n";
        }
    }
}

fn write_table(table: &Table, out: &mut String) {
    // What scrolls can be reached by the keyboard.
    *out += "<div class=\"scroll\" tabindex=\"0\">\n<table>\n<thead><tr>";
    let class = |at: usize| if at < table.texts { "text" } else { "number" };
    for (at, name) in table.header.iter().enumerate() {
        let class = class(at);
        push(out, format_args!("<th scope=\"col\" class=\"{class}\">{}</th>", Escaped(name)));
    }
    *out += "</tr></thead>\n<tbody>\n";
    for row in &table.rows {
        *out += "<tr>";
        for (at, cell) in row.iter().enumerate() {
            let tone = match cell.tone {
                Tone::Plain => "",
                Tone::Better => " better",
                Tone::Worse => " worse",
                Tone::Void => " void",
            };
            let (name, scope) = if at == 0 { ("th", " scope=\"row\"") } else { ("td", "") };
            let (class, text) = (class(at), Escaped(&cell.text));
            push(out, format_args!("<{name}{scope} class=\"{class}{tone}\">{text}</{name}>"));
        }
        *out += "</tr>\n";
    }
    *out += "</tbody>\n</table>\n</div>\n";
}

fn write_legend(names: &[String], out: &mut String) {
    *out += "<ul class=\"legend\">\n";
    for (at, name) in names.iter().enumerate() {
        let (class, mark, name) = (series(at), curves::mark(at, [6.0, 6.0]), Escaped(name));
        push(
            out,
            format_args!(
                "<li><svg viewBox=\"0 0 12 12\" aria-hidden=\"true\"><path class=\"{class}\" \
                 d=\"{mark}\"/></svg>{name}</li>\n"
            ),
        );
    }
    *out += "</ul>\n";
}

fn write_chart(chart: &Chart, out: &mut String) {
    let title = &chart.title;
    let svg = match &chart.shows {
        Shows::Bars(baseline, groups) => bars::draw(title, baseline, groups),
        Shows::Ranges(unit, groups) => ranges::draw(title, unit, groups),
        Shows::Curves(unit, curves) => curves::draw(title, unit, curves),
    };
    let title = Escaped(title);
    push(out, format_args!("<figure><figcaption>{title}</figcaption>{svg}</figure>\n"));
}

/// A text in which what stands between backquotes is code.
fn with_code(text: &str) -> String {
    let parts = text.split('`').enumerate();
    let is_paired = text.matches('`').count().is_multiple_of(2);
    if !is_paired {
        return Escaped(text).to_string();
    }
    let shown = parts.map(|(at, part)| match at % 2 {
        0 => Escaped(part).to_string(),
        _ => format!("<code>{}</code>", Escaped(part)),
    });
    shown.collect()
}

fn push(out: &mut String, part: std::fmt::Arguments<'_>) {
    out.write_fmt(part).expect("a `String` takes all");
}
