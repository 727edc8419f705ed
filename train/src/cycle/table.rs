//! What became of each generation, as a table.

use super::selfplay::{MatchResult, Opponent};
use crate::error::TrainError;
use engine::network::{Network, Origin};
use engine::run::RunDirectory;
use std::fmt;

const COLUMNS: [&str; 9] = [
    "network",
    "games",
    "rows",
    "policy loss",
    "value loss",
    "validation: policy",
    "value",
    "against the first",
    "against random",
];

/// The generations of a run, one a line: what each network was trained on, its losses, and its matches.
#[derive(Debug, PartialEq)]
pub(crate) struct Table {
    rows: Vec<[String; COLUMNS.len()]>,
}

impl Table {
    /// Reads the networks and the results of their matches.
    pub(crate) fn of_run(run: &RunDirectory) -> Result<Self, TrainError> {
        let mut rows = Vec::new();
        for (generation, path) in run.list_networks()? {
            let origin = Network::load(&path)?.origin;
            let [first, random] = Opponent::ALL
                .map(|opponent| MatchResult::load(&opponent.result_file(run, generation)));
            rows.push(row(generation, &origin, [first?, random?]));
        }
        Ok(Self { rows })
    }
}

fn row(
    generation: u32,
    origin: &Origin,
    matches: [Option<MatchResult>; 2],
) -> [String; COLUMNS.len()] {
    let number = |key: &str| origin.get(key).cloned().unwrap_or_else(|| "-".into());
    let [first, random] =
        matches.map(|result| result.map_or_else(|| "-".into(), |result| result.to_string()));
    [
        generation.to_string(),
        number("new_games"),
        number("new_rows"),
        number("policy_loss"),
        number("value_loss"),
        number("validation_policy_loss"),
        number("validation_value_loss"),
        first,
        random,
    ]
}

impl fmt::Display for MatchResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let error = (self.elo_high - self.elo_low) / 2.0;
        write!(
            f,
            "{:.1}% of {}, Elo {:+.0} ±{error:.0}",
            100.0 * self.score,
            self.games,
            self.elo
        )?;
        match self.unfinished {
            0 => Ok(()),
            stopped => write!(f, ", {stopped} stopped"),
        }
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let header = COLUMNS.map(str::to_owned);
        let width = |column: usize| {
            let rows = self.rows.iter().chain([&header]);
            rows.map(|row| row[column].chars().count())
                .max()
                .unwrap_or(0)
        };
        let widths: Vec<usize> = (0..COLUMNS.len()).map(width).collect();
        for row in [&header].into_iter().chain(&self.rows) {
            let cells: Vec<String> = row
                .iter()
                .zip(&widths)
                .map(|(cell, &width)| format!("{cell:>width$}"))
                .collect();
            writeln!(f, "{}", cells.join("  "))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_generation_has_a_line_with_all_its_numbers() {
        let origin: Origin = [
            ("new_games", "300"),
            ("new_rows", "60000"),
            ("policy_loss", "2.1"),
        ]
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into();
        let result = MatchResult {
            games: 200,
            unfinished: 3,
            score: 0.955,
            elo: 530.4,
            elo_low: 440.0,
            elo_high: 620.0,
        };
        let table = Table {
            rows: vec![
                row(0, &Origin::new(), [None, None]),
                row(1, &origin, [None, Some(result)]),
            ],
        };
        let text = table.to_string();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3);
        assert!(
            lines[0].starts_with("network  games   rows  policy loss"),
            "{text}"
        );
        assert!(
            lines[1].starts_with("      0      -      -            -"),
            "{text}"
        );
        assert!(
            lines[2].starts_with("      1    300  60000          2.1"),
            "{text}"
        );
        assert!(
            lines[2].ends_with("95.5% of 200, Elo +530 ±90, 3 stopped"),
            "{text}"
        );
        assert!(
            lines
                .iter()
                .all(|line| line.chars().count() == lines[0].chars().count()),
            "{text}"
        );
    }
}
