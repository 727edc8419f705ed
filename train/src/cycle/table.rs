//! What became of each generation, as a table.

use crate::error::TrainError;
use crate::ratings::{MatchResult, Player, Standings};
use engine::network::{Network, Origin};
use engine::ratings::Rating;
use engine::run::RunDirectory;
use std::fmt;

/// The columns' names, in two lines.
const COLUMNS: [[&str; 2]; 13] = [
    ["", "network"],
    ["new", "games"],
    ["new", "rows"],
    ["training", "policy"],
    ["training", "value"],
    ["validation", "policy"],
    ["validation", "value"],
    ["", "rating"],
    ["against the", "one before"],
    ["against", "the first"],
    ["against", "random"],
    ["against", "material"],
    ["games", "stopped"],
];

type Row = [String; COLUMNS.len()];

/// The generations of a run, one a line: what each network was trained on, its losses, its rating, and its matches.
#[derive(Debug, PartialEq)]
pub(crate) struct Table {
    rows: Vec<Row>,
    /// Who has the rating 0.
    reference: Option<Player>,
}

/// What became of a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    Plays,
    Rejected,
    Waits,
}

impl Table {
    /// Reads the networks and the results of their matches.
    pub(crate) fn of_run(run: &RunDirectory) -> Result<Self, TrainError> {
        let mut networks = Vec::new();
        for (list, standing) in [
            (run.list_networks()?, Standing::Plays),
            (run.list_rejected()?, Standing::Rejected),
            (run.list_candidates()?, Standing::Waits),
        ] {
            networks.extend(list.into_iter().map(|found| (found, standing)));
        }
        networks.sort_by_key(|((generation, _), _)| *generation);
        let standings = Standings::of_run(run)?;
        let mut rows = Vec::new();
        for ((generation, path), standing) in networks {
            let origin = Network::load(&path)?.origin;
            rows.push(row(generation, standing, &origin, &standings));
        }
        let reference = standings.reference();
        Ok(Self { rows, reference })
    }
}

fn row(generation: u32, standing: Standing, origin: &Origin, standings: &Standings) -> Row {
    let number = |key: &str| origin.get(key).cloned().unwrap_or_else(|| "-".into());
    let against = |opponent| score(standings.result(generation, opponent));
    let before = standings
        .results_of(generation)
        .filter(|(opponent, _)| matches!(opponent, Player::Network(1..)));
    let rating = standings.rating(Player::Network(generation));
    let stopped = standings
        .results_of(generation)
        .map(|(_, it)| it.unfinished);
    [
        match standing {
            Standing::Plays => generation.to_string(),
            Standing::Rejected => format!("rejected {generation}"),
            Standing::Waits => format!("waiting {generation}"),
        },
        number("new_games"),
        number("new_rows"),
        number("policy_loss"),
        number("value_loss"),
        number("validation_policy_loss"),
        number("validation_value_loss"),
        rating.map_or_else(|| "-".into(), with_error),
        score(before.last().map(|(_, result)| result)),
        against(Player::FIRST),
        against(Player::Random),
        against(Player::Material),
        stopped.sum::<u64>().to_string(),
    ]
}

fn score(result: Option<&MatchResult>) -> String {
    result.map_or_else(|| "-".into(), MatchResult::to_string)
}

fn with_error(rating: Rating) -> String {
    let error = (rating.high - rating.low) / 2.0;
    format!("{:+.0} ±{error:.0}", rating.elo)
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let header = [0, 1].map(|line| COLUMNS.map(|names| names[line].to_owned()));
        let lines = || header.iter().chain(&self.rows);
        let width = |column: usize| {
            lines()
                .map(|row| row[column].chars().count())
                .max()
                .unwrap_or(0)
        };
        let widths: Vec<usize> = (0..COLUMNS.len()).map(width).collect();
        for row in lines() {
            let cells: Vec<String> = row
                .iter()
                .zip(&widths)
                .map(|(cell, &width)| format!("{cell:>width$}"))
                .collect();
            writeln!(f, "{}", cells.join("  "))?;
        }
        match self.reference {
            Some(reference) => writeln!(
                f,
                "Ratings are Elo points with the error of their 95% interval; {reference} has 0."
            ),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ratings::result_file;

    #[test]
    fn every_generation_has_a_line_with_all_its_numbers() {
        let folder = tempfile::tempdir().unwrap();
        let run = RunDirectory::new(folder.path());
        std::fs::create_dir(run.pit()).unwrap();
        let result = r#"{"games": 1000, "unfinished": 3, "score": 1.0}"#;
        for (generation, opponent) in [
            (0, Player::Random),
            (11, Player::FIRST),
            (11, Player::Random),
            (11, Player::Material),
            (11, Player::Network(9)),
            (11, Player::Network(10)),
        ] {
            std::fs::write(result_file(&run, generation, opponent), result).unwrap();
        }
        let even = r#"{"games": 40, "unfinished": 0, "score": 0.5}"#;
        let before = result_file(&run, 11, Player::Network(10));
        std::fs::write(before, even).unwrap();
        let standings = Standings::of_run(&run).unwrap();
        let origin: Origin = [
            ("new_games", "300"),
            ("new_rows", "6000000"),
            ("policy_loss", "2.1234"),
        ]
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into();
        let table = Table {
            rows: vec![
                row(0, Standing::Plays, &Origin::new(), &standings),
                row(11, Standing::Plays, &origin, &standings),
                row(12, Standing::Rejected, &Origin::new(), &standings),
            ],
            reference: standings.reference(),
        };
        let text = table.to_string();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 6, "{text}");
        let words = |line: usize| lines[line].split_whitespace().collect::<Vec<_>>();
        assert_eq!(words(2)[..4], ["0", "-", "-", "-"], "{text}");
        assert_eq!(words(2)[11..], ["100.0%", "of", "1000", "-", "3"], "{text}");
        assert_eq!(words(3)[..4], ["11", "300", "6000000", "2.1234"], "{text}");
        assert!(
            lines[3].contains("  50.0% of 40  100.0% of 1000  "),
            "{text}"
        );
        assert_eq!(words(3).last(), Some(&"12"), "of four matches");
        assert_eq!(words(4)[..2], ["rejected", "12"], "{text}");
        assert!(lines[5].contains("random has 0"), "{text}");
        for line in &lines[..5] {
            let width = line.chars().count();
            assert_eq!(width, lines[0].chars().count(), "{text}");
            assert!(width <= 160, "{width}: {text}");
        }
    }
}
