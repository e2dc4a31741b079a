//! Two runs side by side as text for a terminal.

use comfy_table::{Cell, Color};

use super::{factor, grouped, in_bytes, in_time, line, number, plain_factor, table, title};
use crate::compare::Comparison;

impl Comparison {
    /// The rows that differ, the slower ones first; print it through `anstream`.
    pub fn render(&self) -> String {
        let mut out = String::new();
        let winners = self.winners().count();
        title(&mut out, &format!("rows that differ beyond chance (95 %): {winners}"));
        if winners > 0 {
            let mut table = table(&["N", "row", "system", "old", "new", "", "95 %"]);
            for row in self.winners() {
                let amount = |value: f64| match &*row.unit {
                    "B" => in_bytes(value),
                    _ => in_time(value),
                };
                let (word, colour, ratio) = match row.ratio.value < 1.0 {
                    true => ("slower", Color::Red, 1.0 / row.ratio.value),
                    false => ("faster", Color::Green, row.ratio.value),
                };
                table.add_row([
                    number(grouped(usize::try_from(row.size).unwrap_or(usize::MAX))),
                    Cell::new(&row.test),
                    Cell::new(&row.system),
                    number(amount(row.old)),
                    number(amount(row.new)),
                    number(format!("{} {word}", factor(ratio))).fg(colour),
                    number(format!(
                        "{} - {}",
                        plain_factor(row.ratio.low),
                        plain_factor(row.ratio.high)
                    )),
                ]);
            }
            line(&mut out, &table.to_string());
        }
        line(&mut out, &format!("rows without a winner: {}", self.rows.len() - winners));
        if self.unmatched > 0 {
            line(&mut out, &format!("rows that one run alone has: {}", self.unmatched));
        }
        out
    }
}
