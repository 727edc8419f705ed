//! Tests of the report.

use super::*;
use crate::config::{SearchConfig, SearchMode};
use crate::search::{
    Evaluation, Evaluations, Evaluator, EvaluatorError, Query, SearchOptions, Uniform, run_search,
};
use arimaa::notation::parse_turn;
use arimaa::rules::{Board, History, Piece, Square};
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;
use std::collections::HashSet;

const MODES: [SearchMode; 2] = [SearchMode::Puct, SearchMode::Gumbel];

/// Values by how far rabbits have come, the same for both sides; equal priors.
#[derive(Debug, Clone, Copy)]
struct Advance;

impl Evaluator for Advance {
    fn name(&self) -> &str {
        "advance"
    }

    fn evaluate(&mut self, queries: &[Query], out: &mut Evaluations) -> Result<(), EvaluatorError> {
        out.clear();
        for query in queries {
            let ranks = |side| -> i32 {
                let rabbits = query
                    .state
                    .board()
                    .pieces(side, arimaa::rules::Kind::Rabbit);
                let seen = rabbits.into_iter().map(|square| square.seen_by(side));
                seen.map(|square| square.index() as i32 / 8).sum()
            };
            // Halves of halves: nothing of it is lost in the other side's view.
            let ahead = (ranks(Side::Gold) - ranks(Side::Silver)).clamp(-60, 60);
            let count = query.legal.count();
            let priors = std::iter::repeat_n(1.0 / count as f32, count);
            out.push(0.5 + ahead as f32 / 128.0, priors);
        }
        Ok(())
    }
}

fn position(side: Side, pieces: &[&str]) -> Position {
    let pieces = pieces.iter().map(|word| {
        let (letter, square) = word.split_at(1);
        (
            square.parse::<Square>().unwrap(),
            letter.parse::<Piece>().unwrap(),
        )
    });
    Position::new(pieces.collect::<Board>(), side).unwrap()
}

/// A few pieces with captures and goals not far.
fn skirmish() -> Position {
    position(
        Side::Gold,
        &["Rb3", "Ee4", "Dg3", "Rh2", "rb7", "re5", "hf5", "rg6"],
    )
}

fn options(mode: SearchMode, evaluations: u32) -> SearchOptions {
    let mut config = SearchConfig::default();
    config.puct.exploration = 1.5;
    SearchOptions {
        mode,
        ..SearchOptions::strongest(&config, evaluations)
    }
}

fn begun(position: &Position, mode: SearchMode, evaluations: u32) -> (Search, History) {
    let mut history = History::default();
    history.push(position);
    let search = Search::new(position, &history, options(mode, evaluations)).unwrap();
    (search, history)
}

fn searched(
    evaluator: &mut dyn Evaluator,
    position: &Position,
    mode: SearchMode,
    evaluations: u32,
) -> Search {
    let (mut search, history) = begun(position, mode, evaluations);
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    run_search(&mut search, evaluator, &history, &mut rng).unwrap();
    search
}

/// Replays a line; returns where it ends.
fn replayed(position: &Position, line: &[LineTurn]) -> Position {
    let mut position = *position;
    let mut passed = HashSet::from([position]);
    for LineTurn { side, turn } in line {
        assert_eq!(*side, position.side());
        let turn = parse_turn(turn, &position).unwrap();
        position = position.after_turn(&turn, &History::default()).unwrap();
        assert!(passed.insert(position), "a repetition: {line:?}");
    }
    position
}

fn close(one: f64, other: f64) -> bool {
    (one - other).abs() < 1e-6 * (1.0 + one.abs())
}

#[test]
fn a_win_within_the_turn_is_a_proof_without_visits() {
    let goal = position(Side::Gold, &["Rd6", "Ra1", "rh2", "ce5"]);
    // Two rabbits can be shut in.
    let immobilization = position(Side::Gold, &["ra8", "rb8", "Hc8", "Ra6", "Rb6", "Rh1"]);
    for mode in MODES {
        for position in [goal, immobilization]
            .map(|gold| [gold, gold.swap_colours()])
            .concat()
        {
            let report = searched(&mut Uniform, &position, mode, 64).report(3);
            let winner = position.side();
            let proven = Some(Proven { winner, turns: 1 });
            assert_eq!((report.mode, report.proven), (mode, proven));
            assert_eq!((report.value, report.own_value), (Some(1.0), None));
            let [turn] = report.turns.as_slice() else {
                panic!("{report}");
            };
            assert!(turn.is_chosen && turn.visits == 0.0);
            assert_eq!((turn.proven, turn.value), (proven, Some(1.0)));
            let end = replayed(&position, &report.line);
            let outcome = end.outcome(&History::default());
            assert_eq!(outcome.map(|end| end.winner), Some(winner));
            let text = report.to_string();
            assert!(text.contains(&format!("proven: {winner} wins in 1 turn\n")));
            assert!(text.contains("  win in 1  "), "{text}");
        }
    }
}

#[test]
fn a_lost_position_lists_losses_and_the_reply_that_wins() {
    let gold = position(Side::Gold, &["Rh1", "ra3"]);
    for mode in MODES {
        for evaluations in [8, 400] {
            let report = searched(&mut Uniform, &gold, mode, evaluations).report(4);
            let proven = Some(Proven {
                winner: Side::Silver,
                turns: 2,
            });
            assert_eq!((report.proven, report.value), (proven, Some(0.0)));
            assert!(!report.turns.is_empty());
            for turn in &report.turns {
                assert_eq!((turn.proven, turn.value), (proven, Some(0.0)));
            }
            assert_eq!(report.line.len(), 2);
            let end = replayed(&gold, &report.line);
            let winner = end.outcome_on_board().map(|end| end.winner);
            assert_eq!(winner, Some(Side::Silver));
            assert!(report.to_string().contains("  loss in 2  "), "{report}");
        }
    }
}

#[test]
fn proven_losses_come_last_and_have_no_visits_while_another_turn_is_left() {
    // Gold's dog alone keeps the rabbit from its goal, by freezing it.
    let gold = position(Side::Gold, &["Db3", "Rh1", "Cg2", "ra3", "rh8"]);
    for mode in MODES {
        let report = searched(&mut Uniform, &gold, mode, 600).report(1_000);
        let is_lost = |turn: &ReportedTurn| turn.proven.is_some();
        let first = report.turns.iter().position(is_lost).unwrap();
        let (open, lost) = report.turns.split_at(first);
        assert!(!open.is_empty() && lost.iter().all(is_lost), "{report}");
        assert!(open.is_sorted_by(|one, other| one.visits >= other.visits));
        assert!(lost.iter().all(|turn| turn.value == Some(0.0)));
        if mode == SearchMode::Puct {
            assert!(lost.iter().all(|turn| turn.visits == 0.0));
        }
        assert!(open.iter().any(|turn| turn.is_chosen));
    }
}

#[test]
fn setups_are_listed_by_their_placements() {
    let gold = Position::INITIAL;
    for mode in MODES {
        let report = searched(&mut Uniform, &gold, mode, 400).report(3);
        assert!(report.turns.len() >= 3);
        for turn in &report.turns {
            let setup = parse_turn(&turn.turn, &gold).unwrap();
            assert!(gold.after_turn(&setup, &History::default()).is_ok());
        }
        replayed(&gold, &report.line);
        let longest = report.to_string().lines().map(str::len).max();
        assert!(longest.is_some_and(|width| width <= 100), "{report}");
    }
}

#[test]
fn each_turn_has_the_line_that_it_begins() {
    let lost = position(Side::Gold, &["Rh1", "ra3"]);
    for mode in MODES {
        for (position, least) in [(skirmish(), 1), (lost, 2)] {
            let report = searched(&mut Advance, &position, mode, 400).report(4);
            assert!(report.turns.len() > 1);
            for turn in &report.turns {
                assert!(turn.line.len() >= least && turn.line[0].turn == turn.turn);
                replayed(&position, &turn.line);
                assert!(!turn.is_chosen || turn.line == report.line);
            }
        }
    }
}

#[test]
fn a_search_can_be_reported_on_from_its_start_on() {
    for mode in MODES {
        let position = skirmish();
        let (mut search, history) = begun(&position, mode, 200);
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let report = search.report(5);
        assert_eq!((report.value, report.own_value), (None, None));
        assert!(report.turns.is_empty() && report.line.is_empty());
        let text = report.to_string();
        assert!(text.contains("value     not known yet, Gold to move\n"));
        assert!(text.contains(", not decided yet: visits 0, evaluations 0, "));
        assert!(text.contains("\nturns: 0 of 0"));
        let mut answers = Evaluations::default();
        loop {
            let queries = search.leaves(&history, &mut rng);
            Uniform.evaluate(queries, &mut answers).unwrap();
            let report = search.report(5);
            check_sums(&search.report(usize::MAX));
            replayed(&position, &report.line);
            assert_eq!(report.is_decided, search.decision().is_some());
            if report.is_decided {
                break;
            }
            assert!(report.turns.iter().all(|turn| !turn.is_chosen));
            for index in 0..answers.len() {
                let evaluation = answers.get(index).unwrap_or(Evaluation::NONE);
                search.answer(index, "uniform", evaluation).unwrap();
            }
        }
        assert_eq!(search.report(0).turns.len(), 1, "the chosen turn alone");
        // On with the tree, from where the turn ends.
        let turn = search.decision().unwrap().turn.clone();
        let next = position.after_turn(&turn, &history).unwrap();
        search
            .reuse_tree(&next, &history, options(mode, 8))
            .unwrap();
        let report = search.report(5);
        assert_eq!((report.side, report.visits), (Side::Silver, 0));
        assert!(!report.is_decided);
        check_sums(&search.report(usize::MAX));
    }
}

/// The visits of all turns, and those that arrived at none, are those that they share.
fn check_sums(report: &SearchReport) {
    assert_eq!(report.turns.len(), report.known_turns);
    let sum: f64 = report.turns.iter().map(|turn| turn.visits).sum();
    assert!(
        close(sum + report.unfinished_visits, report.shared_visits),
        "{report}"
    );
    let prior: f64 = report.turns.iter().filter_map(|turn| turn.prior).sum();
    assert!(prior < 1.0 + 1e-3);
    let ranks = report.turns.iter().map(|turn| turn.rank);
    assert!(ranks.eq(1..=report.known_turns));
    let turns: HashSet<&str> = report.turns.iter().map(|turn| &*turn.turn).collect();
    assert_eq!(turns.len(), report.known_turns, "all are different");
}

#[test]
fn the_turns_share_all_visits() {
    for evaluations in [4, 64, 500, 6_000] {
        let search = searched(&mut Advance, &skirmish(), SearchMode::Puct, evaluations);
        let report = search.report(usize::MAX);
        check_sums(&report);
        // All but the first continued from the position, at once or behind steps made final.
        assert_eq!(report.shared_visits, f64::from(report.visits - 1));
        let search = searched(
            &mut Advance,
            &skirmish(),
            SearchMode::Gumbel,
            evaluations.max(8),
        );
        let report = search.report(usize::MAX);
        check_sums(&report);
        assert_eq!(report.shared_visits, f64::from(report.visits));
    }
    // No turn is left unfinished where there are few.
    let few = position(Side::Gold, &["Ra2", "rh8"]);
    let report = searched(&mut Uniform, &few, SearchMode::Puct, 200).report(usize::MAX);
    let sum: f64 = report.turns.iter().map(|turn| turn.visits).sum();
    assert_eq!(report.unfinished_visits, 0.0);
    assert!(close(sum, f64::from(report.visits - 1)));
}

#[test]
fn a_turn_is_listed_once_where_its_states_are_not_merged() {
    for mode in MODES {
        let (mut search, history) = begun(&skirmish(), mode, 8);
        let options = SearchOptions {
            merges: false,
            ..options(mode, 800)
        };
        search.restart(&skirmish(), &history, options).unwrap();
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        run_search(&mut search, &mut Advance, &history, &mut rng).unwrap();
        let report = search.report(usize::MAX);
        check_sums(&report);
        assert_eq!(report.merged_share, 0.0);
        let chosen = report.turns.iter().filter(|turn| turn.is_chosen);
        assert_eq!(chosen.count(), 1);
    }
}

#[test]
fn the_line_is_legal_and_begins_with_the_chosen_turn() {
    for mode in MODES {
        for evaluations in [8, 300, 5_000] {
            let report = searched(&mut Advance, &skirmish(), mode, evaluations).report(1);
            let chosen = report.turns.iter().find(|turn| turn.is_chosen).unwrap();
            assert_eq!(report.line[0].turn, chosen.turn);
            assert!(report.line.len() <= 20);
            replayed(&skirmish(), &report.line);
            assert!(evaluations < 5_000 || report.line.len() > 1, "{report}");
        }
    }
}

/// A turn in standard notation as the other side would play it.
fn with_colours_exchanged(turn: &str) -> String {
    let exchanged = |(place, letter): (usize, char)| match (place, letter) {
        (0, letter) if letter.is_lowercase() => letter.to_ascii_uppercase(),
        (0, letter) => letter.to_ascii_lowercase(),
        (2, rank) => char::from(b'1' + b'8' - rank as u8),
        (3, 'n') => 's',
        (3, 's') => 'n',
        (_, other) => other,
    };
    let words = turn.split(' ').map(|word| -> String {
        let letters = word.chars().enumerate();
        letters.map(exchanged).collect()
    });
    words.collect::<Vec<_>>().join(" ")
}

#[test]
fn exchanged_colours_exchange_the_report() {
    for mode in MODES {
        for evaluations in [16, 700] {
            let of = |position: &Position| {
                let mut report = searched(&mut Advance, position, mode, evaluations).report(50);
                (report.seconds, report.evaluations_per_second) = (0.0, 0.0);
                report
            };
            let gold = of(&skirmish());
            let mut silver = of(&skirmish().swap_colours());
            assert!(gold.value.is_some_and(|value| value != 0.5));
            let near = |one: f32, other: f32| (one - other).abs() < 1e-6;
            let both = gold.gold_value.zip(silver.gold_value);
            assert!(both.is_some_and(|(gold, silver)| near(gold, 1.0 - silver)));
            let both = gold.value.zip(silver.value);
            assert!(both.is_some_and(|(gold, silver)| near(gold, silver)));
            (silver.position, silver.side) = (gold.position, gold.side);
            (silver.value, silver.gold_value) = (gold.value, gold.gold_value);
            for turn in &mut silver.turns {
                turn.turn = with_colours_exchanged(&turn.turn);
            }
            let lines = silver.turns.iter_mut().map(|turn| &mut turn.line);
            for turn in lines.chain([&mut silver.line]).flatten() {
                turn.side = turn.side.opponent();
                turn.turn = with_colours_exchanged(&turn.turn);
            }
            let winners = silver.turns.iter_mut().map(|turn| &mut turn.proven);
            for proven in winners.chain([&mut silver.proven]).flatten() {
                proven.winner = proven.winner.opponent();
            }
            assert_eq!(gold, silver);
        }
    }
}

/// The report as text, with the time that it took put at half a second.
fn text_of(position: &Position, mode: SearchMode, evaluations: u32, top: usize) -> String {
    let mut report = searched(&mut Uniform, position, mode, evaluations).report(top);
    report.seconds = 0.5;
    report.evaluations_per_second = 2.0 * f64::from(report.evaluations);
    report.to_string()
}

/// Half of the priors goes north, to three actions, and half east, to four: ends are likely by a sixth and an eighth.
#[test]
fn the_text_is_a_table() {
    let expected = "\
position  g [       r                                        R               ]
value     Gold wins 50.0%, 50.0% by the evaluator
search    gumbel: visits 10, evaluations 16, 0.50 s, 32 evaluations/s
tree      16 nodes, 0.0 MiB, 11.8% merged; 1.00 turns deep, 1 at most

     visits  win%  prior%  turn
> 1     5.0  50.0   16.67  Ra2n
  2     5.0  50.0   12.50  Ra2e
turns: 2 of 2

line  Gold  Ra2n";
    let few = position(Side::Gold, &["Ra2", "rh8"]);
    assert_eq!(text_of(&few, SearchMode::Gumbel, 16, 4), expected);
}

#[test]
fn the_text_shows_proofs() {
    let expected = "\
position  g [                                        r                      R]
value     Gold wins 0.0%, 50.0% by the evaluator; proven: Silver wins in 2 turns
search    puct: visits 39, evaluations 13, 0.50 s, 26 evaluations/s
tree      27 nodes, 0.0 MiB, 39.5% merged; 0.67 turns deep, 1 at most

     visits  win%  prior%  proof      turn
> 1     5.9   0.0   17.54  loss in 2  Rh1w Rg1n Rg2e Rh2w
  2     4.3   0.0   13.28  loss in 2  Rh1n Rh2n
turns: 2 of 14

line  Gold    Rh1w Rg1n Rg2e Rh2w
      Silver  ra3s ra2s";
    let lost = position(Side::Gold, &["Rh1", "ra3"]);
    assert_eq!(text_of(&lost, SearchMode::Puct, 200, 2), expected);
}

#[test]
fn json_has_the_documented_keys() {
    let search = searched(&mut Advance, &skirmish(), SearchMode::Puct, 300);
    let value = serde_json::to_value(search.report(3)).unwrap();
    let read: serde_json::Value = serde_json::from_str(&value.to_string()).unwrap();
    assert_eq!(read, value);
    let keys = |value: &serde_json::Value| -> String {
        let mut keys: Vec<&str> = value
            .as_object()
            .unwrap()
            .keys()
            .map(String::as_str)
            .collect();
        keys.sort_unstable();
        keys.join(" ")
    };
    assert_eq!(
        keys(&read),
        "bytes depth evaluations evaluations_per_second gold_value is_decided known_turns line merged_share mode nodes \
         own_value position proven seconds shared_visits side turns unfinished_visits value visits"
    );
    assert_eq!(
        keys(&read["turns"][0]),
        "is_chosen line prior proven rank turn value visits"
    );
    assert_eq!(keys(&read["line"][0]), "side turn");
    assert_eq!(keys(&read["depth"]), "deepest mean");
    assert_eq!(read["position"], skirmish().to_string());
    assert_eq!(
        (&read["mode"], &read["side"]),
        (&"puct".into(), &"gold".into())
    );
    let lost = position(Side::Gold, &["Rh1", "ra3"]);
    let report = searched(&mut Uniform, &lost, SearchMode::Puct, 8).report(1);
    let proven = serde_json::json!({ "winner": "silver", "turns": 2 });
    assert_eq!(serde_json::to_value(report).unwrap()["proven"], proven);
}
