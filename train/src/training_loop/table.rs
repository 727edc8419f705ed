//! The table of all generations.

use crate::error::TrainError;
use crate::ratings::{MatchResult, Player, RatingTable, signed};
use crate::terminal;
use engine::ratings::Rating;
use engine::run::RunDirectory;
use network::{Network, Origin};

/// The columns' names, in two lines; those of the matches against anchors come behind them.
const COLUMNS: [[&str; 2]; 10] = [
    ["", "network"],
    ["new", "games"],
    ["new", "rows"],
    ["training", "policy"],
    ["training", "value"],
    ["validation", "policy"],
    ["validation", "value"],
    ["", "rating"],
    ["against", "previous"],
    ["against", "the first"],
];

/// The last column's name.
const TRUNCATED: [&str; 2] = ["games", "truncated"];

type Row = Vec<String>;

/// The state of a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NetworkStatus {
    Plays,
    Rejected,
    Waits,
}

/// The generations of a run, one a line: what each network was trained on, its losses, its rating, and its matches.
pub(super) fn table_of(run: &RunDirectory) -> Result<String, TrainError> {
    let mut networks = Vec::new();
    for (list, standing) in [
        (run.list_networks()?, NetworkStatus::Plays),
        (run.list_rejected()?, NetworkStatus::Rejected),
        (run.list_candidates()?, NetworkStatus::Waits),
    ] {
        networks.extend(list.into_iter().map(|found| (found, standing)));
    }
    networks.sort_by_key(|((generation, _), _)| *generation);
    let ratings = RatingTable::of_run(run)?;
    let anchors = ratings.anchors();
    let mut rows = Vec::new();
    for ((generation, path), standing) in networks {
        let origin = Network::load(&path)?.origin;
        rows.push(row(generation, standing, &origin, &ratings, &anchors));
    }
    Ok(text(rows, &anchors, ratings.reference()))
}

/// Each of the anchors, the opponents that are no networks, has a column. The reference has rating 0.
fn text(rows: Vec<Row>, anchors: &[Player], reference: Option<Player>) -> String {
    let anchors = anchors.iter().map(Player::to_string);
    let columns: Vec<[String; 2]> = COLUMNS
        .into_iter()
        .map(|names| names.map(str::to_owned))
        .chain(anchors.map(|name| ["against".to_owned(), name]))
        .chain([TRUNCATED.map(str::to_owned)])
        .collect();
    let header = [0, 1].map(|line| -> Row {
        let names = columns.iter().map(|names| names[line].clone());
        names.collect()
    });
    let mut text = terminal::columns(header.into_iter().chain(rows));
    if let Some(reference) = reference {
        text += &format!(
            "Ratings are Elo points with the error of their 95% interval; {} has 0.\n",
            reference.in_words()
        );
    }
    text
}

fn row(
    generation: u32,
    standing: NetworkStatus,
    origin: &Origin,
    ratings: &RatingTable,
    anchors: &[Player],
) -> Row {
    let number = |key: &str| origin.get(key).cloned().unwrap_or_else(|| "-".into());
    let against = |opponent| score(ratings.result(generation, opponent));
    let before = ratings
        .results_of(generation)
        .filter(|(opponent, _)| matches!(opponent, Player::Network(1..)));
    let rating = ratings.rating(Player::Network(generation));
    let truncated = ratings.results_of(generation).map(|(_, it)| it.unfinished);
    let is_reference = ratings.reference() == Some(Player::Network(generation));
    let rated = |rating| {
        if is_reference {
            "0".to_owned()
        } else {
            with_error(rating)
        }
    };
    let mut row = vec![
        match standing {
            NetworkStatus::Plays => generation.to_string(),
            NetworkStatus::Rejected => format!("rejected {generation}"),
            NetworkStatus::Waits => format!("waiting {generation}"),
        },
        number("new_games"),
        number("new_rows"),
        number("policy_loss"),
        number("value_loss"),
        number("validation_policy_loss"),
        number("validation_value_loss"),
        rating.map_or_else(|| "-".into(), rated),
        score(before.last().map(|(_, result)| result)),
        against(Player::FIRST),
    ];
    row.extend(anchors.iter().map(|&anchor| against(anchor)));
    row.push(truncated.sum::<u64>().to_string());
    row
}

fn score(result: Option<&MatchResult>) -> String {
    result.map_or_else(|| "-".into(), MatchResult::to_string)
}

fn with_error(rating: Rating) -> String {
    let error = (rating.high - rating.low) / 2.0;
    format!("{} ±{error:.0}", signed(rating.elo))
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
            (11, Player::Material(Some(32))),
            (11, Player::Network(9)),
            (11, Player::Network(10)),
        ] {
            std::fs::write(result_file(&run, generation, opponent), result).unwrap();
        }
        let even = r#"{"games": 40, "unfinished": 0, "score": 0.5}"#;
        let before = result_file(&run, 11, Player::Network(10));
        std::fs::write(before, even).unwrap();
        let ratings = RatingTable::of_run(&run).unwrap();
        let origin: Origin = [
            ("new_games", "300"),
            ("new_rows", "6000000"),
            ("policy_loss", "2.1234"),
        ]
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into();
        let anchors = ratings.anchors();
        let row =
            |generation, standing, origin| row(generation, standing, origin, &ratings, &anchors);
        let rows = vec![
            row(0, NetworkStatus::Plays, &Origin::new()),
            row(11, NetworkStatus::Plays, &origin),
            row(12, NetworkStatus::Rejected, &Origin::new()),
        ];
        let text = text(rows, &anchors, ratings.reference());
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 6, "{text}");
        let words = |line: usize| lines[line].split_whitespace().collect::<Vec<_>>();
        assert_eq!(words(2)[..4], ["0", "-", "-", "-"], "{text}");
        assert_eq!(words(2)[7], "+31", "{text}");
        let against = ["100.0%", "of", "1000", "-", "3"];
        assert_eq!(words(2)[11..], against, "{text}");
        let names = words(1);
        assert_eq!(
            names[names.len() - 3..],
            ["random", "material:32", "truncated"]
        );
        assert_eq!(words(3)[..4], ["11", "300", "6000000", "2.1234"], "{text}");
        assert!(
            lines[3].contains("  50.0% of 40  100.0% of 1000  "),
            "{text}"
        );
        assert_eq!(words(3).last(), Some(&"12"), "of four matches");
        assert_eq!(words(4)[..2], ["rejected", "12"], "{text}");
        assert!(lines[5].contains("material:32 has 0"), "{text}");
        for line in &lines[..5] {
            let width = line.chars().count();
            assert_eq!(width, lines[0].chars().count(), "{text}");
            assert!(width <= 160, "{width}: {text}");
        }
    }
}
