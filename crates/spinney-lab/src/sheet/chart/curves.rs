//! Growth over N, both axes logarithmic: one curve a system, with a mark of its own shape.

use std::fmt::Write as _;

use super::axis::Axis;
use super::{LINE, Svg, rounded, series};
use crate::amount::{grouped, in_unit};

const HEIGHT: f64 = 180.0;
const PLOT_X: [f64; 2] = [62.0, 310.0];
const PLOT_Y: [f64; 2] = [HEIGHT - 22.0, 10.0];

/// One system's medians.
#[derive(Clone, Debug)]
pub struct Curve {
    /// Which colour and mark it has.
    pub series: usize,
    /// The system.
    pub system: String,
    /// N and the median, by rising N.
    pub points: Vec<(usize, f64)>,
}

/// A chart of the curves of one row, whose values are of `unit`.
pub fn draw(title: &str, unit: &str, curves: &[Curve]) -> String {
    let points = || curves.iter().flat_map(|curve| &curve.points);
    let mut sizes: Vec<usize> = points().map(|(size, _)| *size).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let x = Axis::around(sizes.iter().map(|size| *size as f64), PLOT_X[0], PLOT_X[1]);
    let y = Axis::around(points().map(|(_, value)| *value), PLOT_Y[0], PLOT_Y[1]);
    let mut svg = Svg::new();
    for tick in y.ticks(6) {
        let at = y.place(tick);
        svg.line("grid", [PLOT_X[0], at], [PLOT_X[1], at]);
        svg.text("system", [PLOT_X[0] - 6.0, at + 4.0], in_unit(tick, unit).trim_end());
    }
    for size in &sizes {
        let at = x.place(*size as f64);
        svg.line("grid", [at, PLOT_Y[0]], [at, PLOT_Y[1]]);
        svg.text("tick", [at, PLOT_Y[0] + LINE], &grouped(*size));
    }
    for curve in curves {
        draw_curve(curve, unit, x, y, &mut svg);
    }
    let description = "Medians over the number of items, both axes logarithmic.";
    svg.finish(HEIGHT, title, description)
}

fn draw_curve(curve: &Curve, unit: &str, x: Axis, y: Axis, svg: &mut Svg) {
    let class = series(curve.series);
    let mut path = String::new();
    for (at, (size, value)) in curve.points.iter().enumerate() {
        let verb = if at == 0 { 'M' } else { 'L' };
        let [x, y] = [x.place(*size as f64), y.place(*value)].map(rounded);
        write!(path, "{verb}{x} {y}").expect("a `String` takes all");
    }
    svg.path(&format!("curve {class}"), &path, &curve.system);
    for (size, value) in &curve.points {
        let at = [x.place(*size as f64), y.place(*value)];
        let shown = in_unit(*value, unit);
        let hint = format!("{}, N = {}: {}", curve.system, grouped(*size), shown.trim_end());
        svg.path(&format!("mark {class}"), &mark(curve.series, at), &hint);
    }
}

/// The outline of the n-th mark around a place: colours are not all that tells systems apart.
pub fn mark(series: usize, [x, y]: [f64; 2]) -> String {
    const OUTLINES: [&[[f64; 2]]; 4] = [
        &[[-3.5, -3.5], [3.5, -3.5], [3.5, 3.5], [-3.5, 3.5]],
        &[[0.0, -4.5], [4.5, 3.5], [-4.5, 3.5]],
        &[[0.0, -5.0], [5.0, 0.0], [0.0, 5.0], [-5.0, 0.0]],
        &[[0.0, 4.5], [4.5, -3.5], [-4.5, -3.5]],
    ];
    let mut path = String::new();
    for (at, [dx, dy]) in OUTLINES[series % OUTLINES.len()].iter().enumerate() {
        let verb = if at == 0 { 'M' } else { 'L' };
        let [x, y] = [x + dx, y + dy].map(rounded);
        write!(path, "{verb}{x} {y}").expect("a `String` takes all");
    }
    path + "Z"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenfold_time_is_a_straight_line_upwards() {
        let points = vec![(1_000, 5.0), (10_000, 50.0), (100_000, 500.0)];
        let curve = Curve { series: 2, system: "a<b".to_owned(), points };
        let svg = draw("growth", "us", &[curve]);
        let document = roxmltree::Document::parse(&svg).expect("it is XML");
        let mut nodes = document.descendants();
        let path = nodes.find(|node| node.attribute("class") == Some("curve s2")).expect("a curve");
        let path = path.attribute("d").expect("a path").to_owned();
        let middle =
            format!("L{} {}", (PLOT_X[0] + PLOT_X[1]) / 2.0, (PLOT_Y[0] + PLOT_Y[1]) / 2.0);
        assert_eq!(
            path,
            format!("M{} {}{middle}L{} {}", PLOT_X[0], PLOT_Y[0], PLOT_X[1], PLOT_Y[1])
        );
    }
}
