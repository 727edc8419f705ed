//! A report as tables.

use super::{Proven, ReportedTurn, SearchReport};
use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, ColumnConstraint, Table};
use std::fmt::{self, Display, Formatter};

impl Display for SearchReport {
    /// Lines of about 100 columns, with no line break at the end. Win probabilities, priors and shares in percent.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let facts = [
            ["position", &self.position.to_string()],
            ["value", &self.value_text()],
            ["search", &self.search_text()],
            ["tree", &self.tree_text()],
        ];
        writeln!(f, "{}", table(Table::new().add_rows(facts)))?;
        if !self.turns.is_empty() {
            write!(f, "\n{}\n", self.turn_table())?;
        }
        write!(f, "{}", self.listed_text())?;
        if !self.line.is_empty() {
            let rows = self.line.iter().enumerate().map(|(place, turn)| {
                let name = if place == 0 { "line" } else { "" };
                [name.to_owned(), turn.side.to_string(), turn.turn.clone()]
            });
            write!(f, "\n\n{}", table(Table::new().add_rows(rows)))?;
        }
        Ok(())
    }
}

impl SearchReport {
    fn value_text(&self) -> String {
        let mut text = match self.value {
            Some(value) => format!("{} wins {}%", self.side, percent(value.into(), 1)),
            None => format!("not known yet, {} to move", self.side),
        };
        if let Some(value) = self.own_value {
            text += &format!(", {}% by the evaluator", percent(value.into(), 1));
        }
        if let Some(Proven { winner, turns }) = self.proven {
            let s = if turns == 1 { "" } else { "s" };
            text += &format!("; proven: {winner} wins in {turns} turn{s}");
        }
        text
    }

    fn search_text(&self) -> String {
        let mode = format!("{:?}", self.mode).to_lowercase();
        let state = if self.is_decided {
            ""
        } else {
            ", not decided yet"
        };
        format!(
            "{mode}{state}: visits {}, evaluations {}, {:.2} s, {:.0} evaluations/s",
            self.visits, self.evaluations, self.seconds, self.evaluations_per_second
        )
    }

    fn tree_text(&self) -> String {
        format!(
            "{} nodes, {:.1} MiB, {}% merged; {:.2} turns deep, {} at most",
            self.nodes,
            self.bytes as f64 / f64::from(1 << 20),
            percent(self.merged_share, 1),
            self.depth.mean,
            self.depth.deepest
        )
    }

    fn listed_text(&self) -> String {
        let mut text = format!("turns: {} of {}", self.turns.len(), self.known_turns);
        if self.unfinished_visits > 0.0 {
            text += &format!(
                "; {:.1} of {:.1} visits ended inside the turn",
                self.unfinished_visits, self.shared_visits
            );
        }
        text
    }

    /// A row for each turn; the proofs have a column if there are any.
    fn turn_table(&self) -> String {
        let mut turns = Table::new();
        turns.set_header(["", "visits", "win%", "prior%", "proof", "turn"]);
        turns.add_rows(self.turns.iter().map(|turn| self.turn_row(turn)));
        let numbers = turns.column_iter_mut().take(4);
        numbers.for_each(|column| column.set_cell_alignment(CellAlignment::Right));
        if let Some(proofs) = turns.column_mut(4)
            && self.turns.iter().all(|turn| turn.proven.is_none())
        {
            proofs.set_constraint(ColumnConstraint::Hidden);
        }
        table(&mut turns)
    }

    fn turn_row(&self, turn: &ReportedTurn) -> [String; 6] {
        let mark = if turn.is_chosen { "> " } else { "" };
        let shown = |number: Option<String>| number.unwrap_or_else(|| "-".to_owned());
        let proof = turn.proven.map(|Proven { winner, turns }| {
            let what = if winner == self.side { "win" } else { "loss" };
            format!("{what} in {turns}")
        });
        [
            format!("{mark}{}", turn.rank),
            format!("{:.1}", turn.visits),
            shown(turn.value.map(|value| percent(value.into(), 1))),
            shown(turn.prior.map(small_percent)),
            proof.unwrap_or_default(),
            turn.turn.clone(),
        ]
    }
}

/// The table's text, without borders.
fn table(table: &mut Table) -> String {
    table.load_style(NOTHING);
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    table.trim_fmt()
}

/// A share in percent.
fn percent(share: f64, decimals: usize) -> String {
    format!("{:.decimals$}", 100.0 * share)
}

/// A share in percent that may be very small.
fn small_percent(share: f64) -> String {
    if share > 0.0 && share < 5e-5 {
        format!("{:.0e}", 100.0 * share)
    } else {
        percent(share, 2)
    }
}
