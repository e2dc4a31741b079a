//! Charts as SVG text: pure functions of what they show. Colours and fonts are classes of the page's
//! style; widths are those of a phone, and a page sets several side by side.

mod axis;
pub mod bars;
pub mod curves;
pub mod ranges;

use std::fmt::{self, Display, Write as _};

/// Width of every chart.
const WIDTH: f64 = 340.0;
/// Height of a line of text with its distance to the next one.
const LINE: f64 = 15.0;

/// A text inside XML or HTML. Characters that XML does not allow become U+FFFD.
pub struct Escaped<T>(pub T);

impl<T: AsRef<str>> Display for Escaped<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_ref().chars().try_for_each(|letter| match letter {
            '&' => out.write_str("&amp;"),
            '<' => out.write_str("&lt;"),
            '>' => out.write_str("&gt;"),
            '"' => out.write_str("&quot;"),
            '\'' => out.write_str("&#39;"),
            '\t' | '\n' | '\r' => out.write_char(letter),
            letter if letter.is_control() || matches!(letter, '\u{fffe}' | '\u{ffff}') => {
                out.write_char('\u{fffd}')
            }
            letter => out.write_char(letter),
        })
    }
}

/// An SVG that is being written.
struct Svg {
    body: String,
}

impl Svg {
    fn new() -> Svg {
        Svg { body: String::new() }
    }

    fn line(&mut self, class: &str, [x1, y1]: [f64; 2], [x2, y2]: [f64; 2]) {
        let [x1, y1, x2, y2] = [x1, y1, x2, y2].map(rounded);
        self.push(format_args!(
            r#"<line class="{class}" x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}"/>"#
        ));
    }

    /// A rectangle with a text that shows where a pointer rests on it.
    fn bar(&mut self, class: &str, [left, right]: [f64; 2], [top, height]: [f64; 2], hint: &str) {
        let [x, width, y, height] = [left, right - left, top, height].map(rounded);
        self.push(format_args!(
            r#"<rect class="{class}" x="{x}" y="{y}" width="{width}" height="{height}"><title>{}</title></rect>"#,
            Escaped(hint)
        ));
    }

    fn text(&mut self, class: &str, [x, y]: [f64; 2], text: &str) {
        let [x, y] = [x, y].map(rounded);
        self.push(format_args!(
            r#"<text class="{class}" x="{x}" y="{y}">{}</text>"#,
            Escaped(text)
        ));
    }

    fn path(&mut self, class: &str, path: &str, hint: &str) {
        self.push(format_args!(
            r#"<path class="{class}" d="{path}"><title>{}</title></path>"#,
            Escaped(hint)
        ));
    }

    fn push(&mut self, part: fmt::Arguments<'_>) {
        self.body.write_fmt(part).expect("a `String` takes all");
    }

    /// The whole, with what it is for those who do not see it.
    fn finish(self, height: f64, title: &str, description: &str) -> String {
        format!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 {WIDTH} {}"><title>{}</title><desc>{}</desc>{}</svg>"#,
            rounded(height),
            Escaped(title),
            Escaped(description),
            self.body
        )
    }
}

/// The class of the n-th system; after eight they begin again.
pub fn series(at: usize) -> String {
    format!("s{}", at % 8)
}

/// A tenth of a pixel.
fn rounded(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_cannot_leave_their_place() {
        let text = Escaped("</text><script>\"&'\u{1}").to_string();
        assert_eq!(text, "&lt;/text&gt;&lt;script&gt;&quot;&amp;&#39;\u{fffd}");
    }
}
