//! Distributions as ranges on a logarithmic axis: smallest to largest, the middle half, median, 99th
//! percentile.

use super::axis::Axis;
use super::bars::shortened;
use super::{LINE, Svg, WIDTH, series};
use crate::amount::in_unit;

const PLOT: [f64; 2] = [84.0, 272.0];

/// The distributions of one row.
#[derive(Clone, Debug)]
pub struct Group {
    /// The row's name.
    pub name: String,
    /// One for each system.
    pub ranges: Vec<Range>,
}

/// One system's distribution.
#[derive(Clone, Debug)]
pub struct Range {
    /// Which colour it has.
    pub series: usize,
    /// The system.
    pub system: String,
    /// Smallest, a quarter, median, three quarters, largest.
    pub quartiles: [f64; 5],
    /// The 99th percentile, where there are operations enough.
    pub p99: Option<f64>,
}

/// A chart of all `groups`, whose values are of `unit`, on one axis.
pub fn draw(title: &str, unit: &str, groups: &[Group]) -> String {
    let ranges = || groups.iter().flat_map(|group| &group.ranges);
    let axis = Axis::around(ranges().flat_map(|range| range.quartiles), PLOT[0], PLOT[1]);
    let lines: usize = groups.iter().map(|group| 1 + group.ranges.len()).sum();
    let height = LINE * (lines as f64 + 1.0) + 6.0 * groups.len() as f64;
    let mut svg = Svg::new();
    for tick in axis.ticks(4) {
        let x = axis.place(tick);
        svg.line("grid", [x, LINE], [x, height]);
        svg.text("tick", [x, LINE - 4.0], &in_unit(tick, unit));
    }
    let mut y = LINE;
    for group in groups {
        svg.text("name", [0.0, y + 12.0], &group.name);
        y += LINE;
        for range in &group.ranges {
            draw_range(range, unit, axis, y, &mut svg);
            y += LINE;
        }
        y += 6.0;
    }
    let description = "From the smallest to the largest value, the middle half as a box, a line at the \
                       median and a dashed one at the 99th percentile, on a logarithmic axis.";
    svg.finish(height, title, description)
}

fn draw_range(range: &Range, unit: &str, axis: Axis, y: f64, svg: &mut Svg) {
    let [min, quarter, median, three_quarters, max] = range.quartiles;
    let shown = |value: f64| in_unit(value, unit).trim_end().to_owned();
    let p99 = range.p99.map_or(String::new(), |p99| format!(", 99 % below {}", shown(p99)));
    let hint = format!(
        "{}: {} to {}, median {}{p99}",
        range.system,
        shown(min),
        shown(max),
        shown(median)
    );
    let (middle, class) = (y + 6.5, series(range.series));
    svg.text("system", [PLOT[0] - 6.0, y + 10.5], &shortened(&range.system));
    svg.line("whisker", [axis.place(min), middle], [axis.place(max), middle]);
    let (left, right) = (axis.place(quarter), axis.place(three_quarters));
    svg.bar(&class, [left, right.max(left + 1.0)], [y + 2.0, 9.0], &hint);
    svg.line("median", [axis.place(median), y + 1.0], [axis.place(median), y + 12.0]);
    if let Some(p99) = range.p99 {
        let x = axis.place(p99);
        svg.line("p99", [x, y + 3.5], [x, y + 9.5]);
    }
    svg.text("value", [WIDTH, y + 10.5], &shown(median));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartiles_stand_in_their_order() {
        let range = Range {
            series: 1,
            system: "lmdb".to_owned(),
            quartiles: [1.0, 2.0, 4.0, 8.0, 16.0],
            p99: Some(15.0),
        };
        let groups = [Group { name: "read".to_owned(), ranges: vec![range] }];
        let svg = draw("times", "us", &groups);
        let document = roxmltree::Document::parse(&svg).expect("it is XML");
        let place = |class: &str, name: &str| -> f64 {
            let mut nodes = document.descendants();
            let node = nodes.find(|node| node.attribute("class") == Some(class));
            node.expect(class).attribute(name).expect(name).parse().expect("a number")
        };
        let box_left = place("s1", "x");
        let box_right = box_left + place("s1", "width");
        let places = [
            place("whisker", "x1"),
            box_left,
            place("median", "x1"),
            box_right,
            place("p99", "x1"),
            place("whisker", "x2"),
        ];
        assert!(places.is_sorted(), "{places:?}");
        assert_eq!((places[0], places[5]), (PLOT[0], PLOT[1]));
    }
}
