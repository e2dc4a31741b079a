//! Reports as documents: a tiny run as HTML and as Markdown, from itself and from its records.

use std::collections::BTreeSet;
use std::process::Command;
use std::sync::OnceLock;

use roxmltree::{Document, Node, ParsingOptions};
use spinney_lab::{Options, Report, Sheet, run, systems};

/// A run of every system at two sizes.
fn report() -> &'static Report {
    static REPORT: OnceLock<Report> = OnceLock::new();
    REPORT.get_or_init(|| {
        let folder = tempfile::tempdir().expect("a folder");
        let options = Options {
            sizes: vec![10, 40],
            tries: Some(2),
            dir: Some(folder.path().to_owned()),
            seed: Some(7),
            count_syncs: false,
            progress: false,
            ..Options::default()
        };
        let systems = systems::all(&options.backends, &options.peers).expect("all are known");
        run(&options, systems).expect("a run")
    })
}

fn html() -> String {
    Sheet::of(std::slice::from_ref(report())).html()
}

fn parse(html: &str) -> Document<'_> {
    let options = ParsingOptions { allow_dtd: true, ..ParsingOptions::default() };
    Document::parse_with_options(html, options).expect("the page is XML, too")
}

fn elements<'a>(page: &'a Document<'a>, name: &str) -> Vec<Node<'a, 'a>> {
    page.descendants().filter(|node| node.tag_name().name() == name).collect()
}

#[test]
fn a_page_stands_alone() {
    let html = html();
    let page = parse(&html);
    for name in ["script", "link", "img", "iframe", "object"] {
        assert!(elements(&page, name).is_empty(), "`{name}`");
    }
    let is_outside = |value: &str| value.contains("//") || value.contains("url(");
    for node in page.descendants() {
        for attribute in node.attributes() {
            assert!(!is_outside(attribute.value()), "{attribute:?}");
        }
    }
    let style = elements(&page, "style")[0].text().expect("a style");
    assert!(!is_outside(style) && !style.contains("@import"), "{style}");
}

#[test]
fn losses_come_first_and_every_number_stands_in_a_table() {
    let (html, report) = (html(), report());
    let page = parse(&html);
    assert_eq!(elements(&page, "h2")[0].text(), Some("Losses"));
    let cells: Vec<String> = elements(&page, "td")
        .into_iter()
        .map(|cell| cell.text().unwrap_or_default().to_owned())
        .collect();
    let rows: Vec<&str> =
        elements(&page, "th").into_iter().filter_map(|cell| cell.text()).collect();
    for record in report.records.iter().filter(|record| record.status.has_number()) {
        assert!(rows.contains(&&*record.test), "{record:?}");
        assert!(cells.contains(&record.samples.len().to_string()), "{record:?}");
    }
    let losses = elements(&page, "section")[0].descendants();
    let shown = losses
        .filter(|node| {
            node.has_tag_name("td")
                && node.prev_sibling().is_some_and(|before| before.has_tag_name("th"))
        })
        .count();
    assert_eq!(shown, report.lost().len());
}

#[test]
fn charts_say_what_they_are_and_show_every_row() {
    let (html, report) = (html(), report());
    let page = parse(&html);
    let figures = elements(&page, "figure");
    for figure in &figures {
        let chart = figure.descendants().find(|node| node.tag_name().name() == "svg");
        let chart = chart.expect("a chart");
        assert_eq!(chart.attribute("role"), Some("img"));
        let texts: Vec<&str> = chart.children().map(|node| node.tag_name().name()).collect();
        assert_eq!(texts[..2], ["title", "desc"]);
    }
    let names = |node: &Node<'_, '_>| node.attribute("class") == Some("name");
    let named = page.descendants().filter(names).filter_map(|node| node.text());
    let named: Vec<&str> = named.collect();
    let growing: Vec<&str> =
        elements(&page, "figcaption").iter().filter_map(|node| node.text()).collect();
    for record in report.records.iter().filter(|record| record.system == "lmdb") {
        if record.status.has_number() {
            assert!(named.contains(&&*record.test), "{}", record.test);
            assert!(growing.contains(&&*record.test), "{}", record.test);
        }
    }
}

#[test]
fn records_give_the_report_again() {
    let again = Report::read(&report().json_lines()).expect("records").remove(0);
    let distributions = |report: &Report| {
        let text = Sheet::of(std::slice::from_ref(report)).markdown();
        let rows = text.lines().filter(|line| line.matches('|').count() > 12).map(str::to_owned);
        rows.collect::<BTreeSet<String>>()
    };
    // Records round to a tenth of a nanosecond, which may change a third digit once.
    let twice = Report::read(&again.json_lines()).expect("records").remove(0);
    assert_eq!(distributions(&twice), distributions(&again));
    assert_eq!(distributions(&again).len(), distributions(report()).len());
    assert!(distributions(report()).len() > report().records.len() / 2);
    assert_eq!(again.verdict(), report().verdict());
}

#[test]
fn names_cannot_leave_their_place_in_a_page() {
    let mut report = report().clone();
    report.records[0].test = "</td><script>alert(1)</script>".to_owned();
    report.context.baseline = "a\"b'&".to_owned();
    let html = Sheet::of(&[report]).html();
    assert!(elements(&parse(&html), "script").is_empty());
}

#[test]
fn a_page_fits_a_phone() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("report.html");
    let measured = "<script>document.title = [document.documentElement.scrollWidth, innerWidth, \
                    getComputedStyle(document.body).backgroundColor].join(' ')</script></body>";
    let open = html().replace("<details>", "<details open=\"\">").replace("</body>", measured);
    std::fs::write(&path, open).expect("writes");
    let browsers = ["chromium-headless-shell", "chromium", "google-chrome"];
    let shown = browsers.iter().find_map(|browser| {
        let arguments = ["--headless", "--no-sandbox", "--disable-gpu", "--window-size=390,844"];
        let mut command = Command::new(browser);
        command.args(arguments).arg(format!("--user-data-dir={}", folder.path().display()));
        command.arg("--dump-dom").arg(format!("file://{}", path.display())).output().ok()
    });
    let Some(shown) = shown.filter(|shown| shown.status.success()) else {
        println!("skipped: a page in a browser: no Chromium is installed");
        return;
    };
    let page = String::from_utf8_lossy(&shown.stdout).into_owned();
    let title = page.split("<title>").nth(1).and_then(|rest| rest.split('<').next());
    let title = title.expect("a title");
    let widths: Vec<f64> = title.split(' ').take(2).filter_map(|text| text.parse().ok()).collect();
    let [wide, window] = widths[..] else { panic!("the browser measured nothing: {title}") };
    assert!(wide <= window, "the page is {wide} wide in a window of {window}");
    assert!(title.ends_with("rgb(255, 255, 255)") || title.ends_with("rgb(15, 19, 24)"), "{title}");
}
