//! Horizontal bars of ratios on a logarithmic axis that marks 1: to the right is better.

use super::axis::Axis;
use super::{LINE, Svg, WIDTH, series};
use crate::amount::plain_factor;
use crate::statistics::Ratio;

/// Where the names of systems end and the plot begins, and where it ends.
const PLOT: [f64; 2] = [84.0, 288.0];

/// The ratios of one row.
#[derive(Clone, Debug)]
pub struct Group {
    /// The row's name.
    pub name: String,
    /// A ratio for each system.
    pub bars: Vec<Bar>,
}

/// One system's ratio.
#[derive(Clone, Debug)]
pub struct Bar {
    /// Which colour it has.
    pub series: usize,
    /// The system.
    pub system: String,
    /// How many times better than the baseline.
    pub ratio: Ratio,
}

/// A chart of all `groups` on one axis.
pub fn draw(title: &str, baseline: &str, groups: &[Group]) -> String {
    let ratios = || groups.iter().flat_map(|group| &group.bars).map(|bar| bar.ratio.value);
    let axis = Axis::around(ratios().chain([0.5, 2.0]), PLOT[0], PLOT[1]);
    let lines: usize = groups.iter().map(|group| 1 + group.bars.len()).sum();
    let height = LINE * (lines as f64 + 1.0) + 6.0 * groups.len() as f64;
    let mut svg = Svg::new();
    for tick in axis.ticks(5) {
        let x = axis.place(tick);
        svg.line("grid", [x, LINE], [x, height]);
        svg.text("tick", [x, LINE - 4.0], &number(tick));
    }
    let one = axis.place(1.0);
    svg.line("one", [one, LINE], [one, height]);
    let mut y = LINE;
    for group in groups {
        svg.text("name", [0.0, y + 12.0], &group.name);
        y += LINE;
        for bar in &group.bars {
            draw_bar(bar, baseline, axis, y, &mut svg);
            y += LINE;
        }
        y += 6.0;
    }
    let description = format!(
        "How many times better than {baseline} each system is, on a logarithmic axis; {} rows.",
        groups.len()
    );
    svg.finish(height, title, &description)
}

fn draw_bar(bar: &Bar, baseline: &str, axis: Axis, y: f64, svg: &mut Svg) {
    let Ratio { value, low, high } = bar.ratio;
    let (one, end) = (axis.place(1.0), axis.place(value));
    let shown = if bar.ratio.is_tie() { "=" } else { "×" };
    let value_text = format!("{}{shown}", plain_factor(value));
    let hint = format!(
        "{}: {value_text} of {baseline}, 95 % between {} and {}",
        bar.system,
        plain_factor(low),
        plain_factor(high)
    );
    svg.text("system", [PLOT[0] - 6.0, y + 10.5], &shortened(&bar.system));
    let class = format!("{}{}", series(bar.series), if bar.ratio.is_tie() { " tie" } else { "" });
    svg.bar(&class, [one.min(end), one.max(end).max(one.min(end) + 1.0)], [y + 2.0, 9.0], &hint);
    let middle = y + 6.5;
    svg.line("whisker", [axis.place(low), middle], [axis.place(high), middle]);
    svg.text("value", [WIDTH, y + 10.5], &value_text);
}

/// A name as long as its place.
pub(super) fn shortened(name: &str) -> String {
    const MOST: usize = 12;
    if name.chars().count() <= MOST {
        return name.to_owned();
    }
    name.chars().take(MOST - 1).chain(['…']).collect()
}

fn number(tick: f64) -> String {
    if (1e-3..1e4).contains(&tick) { format!("{tick}×") } else { format!("{tick:e}×") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bar(system: &str, value: f64) -> Bar {
        let ratio = Ratio { value, low: value * 0.9, high: value * 1.1 };
        Bar { series: 0, system: system.to_owned(), ratio }
    }

    /// Left and right end of each bar.
    fn ends(svg: &str) -> Vec<(f64, f64)> {
        let document = roxmltree::Document::parse(svg).expect("it is XML");
        let bars = document.descendants().filter(|node| node.has_tag_name("rect"));
        let number = |node: &roxmltree::Node<'_, '_>, name: &str| -> f64 {
            node.attribute(name).expect("it has one").parse().expect("a number")
        };
        bars.map(|bar| (number(&bar, "x"), number(&bar, "x") + number(&bar, "width"))).collect()
    }

    #[test]
    fn better_is_right_of_1_and_worse_as_far_to_its_left() {
        let bars = vec![bar("fast", 4.0), bar("slow", 0.25), bar("<&\">", 2.0)];
        let groups = [Group { name: "a row & more".to_owned(), bars }];
        let svg = draw("ratios", "file", &groups);
        let ends = ends(&svg);
        let one = ends[0].0;
        assert_eq!(ends[1].1, one);
        assert!((ends[0].1 - one - (one - ends[1].0)).abs() < 0.3, "{ends:?}");
        assert!(((ends[2].1 - one) * 2.0 - (ends[0].1 - one)).abs() < 0.3, "{ends:?}");
        assert!(ends.iter().all(|(left, right)| *left >= PLOT[0] && *right <= PLOT[1] + 1.0));
        assert!(svg.contains("a row &amp; more") && svg.contains("4.00×"), "{svg}");
    }

    #[test]
    fn no_rows_are_a_chart_still() {
        assert!(ends(&draw("nothing", "file", &[])).is_empty());
    }
}
