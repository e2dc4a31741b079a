//! Two runs side by side as text for a terminal.

use comfy_table::{Cell, Color};

use super::{line, number, table, title};
use crate::amount::{factor, grouped, in_unit, plain_factor};
use crate::compare::Comparison;
use crate::record::Record;

impl Comparison {
    /// The rows that differ, the slower ones first; print it through `anstream`.
    pub fn render(&self) -> String {
        let mut out = String::new();
        let winners = self.winners().count();
        title(&mut out, &format!("rows that differ beyond chance (95 %): {winners}"));
        if winners > 0 {
            let mut table = table(&["N", "row", "system", "old", "new", "", "95 %"]);
            for row in self.winners() {
                let shown = |record: &Record| {
                    number(
                        record.median().map_or(String::new(), |value| in_unit(value, record.unit)),
                    )
                };
                let (word, colour, ratio) = match row.ratio.value < 1.0 {
                    true => ("slower", Color::Red, 1.0 / row.ratio.value),
                    false => ("faster", Color::Green, row.ratio.value),
                };
                table.add_row([
                    number(grouped(row.new.size)),
                    Cell::new(&row.new.test),
                    Cell::new(&row.new.system),
                    shown(&row.old),
                    shown(&row.new),
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
