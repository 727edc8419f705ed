//! What a turn's search becomes: rows, their weights, and turns without.

use super::*;

fn searches(record: &GameRecord) -> impl Iterator<Item = (&TurnRecord, &SearchRecord)> {
    let turns = record.turns.iter();
    turns.filter_map(|turn| Some((turn, turn.search()?)))
}

#[test]
fn the_first_state_of_a_game_gives_a_row_with_any_visits() {
    let mut config = config();
    config.selfplay.search.goal_solver = false;
    config.selfplay.targets.min_visits = 10_000;
    for record in play_by(&config, 0..4) {
        let [first, others @ ..] = &record.turns[..] else {
            panic!("a game without turns");
        };
        assert_eq!(
            first.rows.iter().map(|row| row.step).collect::<Vec<_>>(),
            [0]
        );
        assert!(others.iter().all(|turn| turn.rows.is_empty()));
    }
}

#[test]
fn first_turns_are_drawn_from_the_policy_in_a_share_of_games() {
    let mut config = config();
    config.selfplay.openings.policy_share = 0.5;
    config.selfplay.openings.policy_turns = 5;
    let mut lengths = std::collections::HashMap::<usize, usize>::new();
    for record in play_by(&config, 0..24) {
        replay(&record).unwrap();
        let is_drawn = |turn: &&TurnRecord| matches!(turn.origin, TurnOrigin::Policy { .. });
        let drawn = record.turns.iter().take_while(is_drawn).count();
        assert!(
            record.turns[..drawn]
                .iter()
                .all(|turn| turn.rows.is_empty())
        );
        assert!(
            record.turns[drawn..]
                .iter()
                .all(|turn| turn.search().is_some())
        );
        *lengths.entry(drawn).or_default() += 1;
    }
    assert!(
        (4..20).contains(&lengths[&0]) && lengths.len() > 3,
        "{lengths:?}"
    );
    assert!(lengths.keys().all(|&length| length <= 5), "{lengths:?}");
}

#[test]
fn one_side_is_weaker_in_a_share_of_games() {
    let mut config = config();
    config.selfplay.handicap.share = 0.5;
    config.selfplay.handicap.evaluations = 0.25;
    let mut weaker = [0; 3];
    for record in play_by(&config, 0..24) {
        let budgets = |side: Side| -> Vec<u32> {
            let of_side = record.turns.iter().skip(side.index()).step_by(2);
            of_side.map(|turn| turn.search().unwrap().budget).collect()
        };
        let [gold, silver] = Side::ALL.map(budgets);
        assert!(gold.iter().all(|&budget| budget == gold[0]));
        assert!(silver.iter().all(|&budget| budget == silver[0]));
        match (gold[0], silver[0]) {
            (16, 16) => weaker[0] += 1,
            (4, 16) => weaker[1] += 1,
            (16, 4) => weaker[2] += 1,
            other => panic!("{other:?}"),
        }
    }
    assert!(weaker.iter().all(|&games| games > 0), "{weaker:?}");
}

#[test]
fn a_losing_side_resigns_except_in_games_that_are_played_out() {
    let mut config = config();
    config.selfplay.max_turns = 12;
    config.selfplay.resignation.turns = 4;
    config.selfplay.resignation.threshold = 0.05;
    config.selfplay.resignation.played_out_share = 0.4;
    let (mut resigned, mut played_out) = (0, 0);
    for record in play_sure_of_gold(&config, 0.97, 30) {
        replay(&record).unwrap();
        match (record.ending, record.resignation_waived) {
            (Ending::Resigned { winner }, None) => {
                assert_eq!((winner, record.turns.len()), (Side::Gold, 4));
                resigned += 1;
            }
            (ending, Some(waived)) => {
                assert_eq!((waived.turn, waived.loser), (4, Side::Silver));
                assert!(!matches!(ending, Ending::Resigned { .. }));
                assert!(record.turns.len() == 12 || matches!(ending, Ending::Won(_)));
                played_out += 1;
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(
        resigned > 9 && played_out > 4,
        "{resigned} and {played_out}"
    );
    // At the turn limit no side has lost, and the last search gives the value of the game.
    let unfinished = play_sure_of_gold(&config, 0.9, 1).remove(0);
    let Ending::Unfinished { value: Some(value) } = unfinished.ending else {
        panic!("{:?}", unfinished.ending);
    };
    assert_eq!(value, unfinished.turns[11].search().unwrap().value);
    assert!((value - 0.9).abs() < 0.05);
}

#[test]
fn only_rows_of_truncated_games_have_their_weight() {
    let mut config = config();
    config.selfplay.targets.truncated_weight = 0.25;
    let weights = |config: &Config| -> (Ending, Vec<f32>) {
        let record = play_sure_of_gold(config, 0.9, 1).remove(0);
        let rows = record.turns.iter().flat_map(|turn| &turn.rows);
        (record.ending, rows.map(|row| row.weight).collect())
    };
    config.selfplay.max_turns = 12;
    let (ending, truncated) = weights(&config);
    assert!(matches!(ending, Ending::Unfinished { .. }), "{ending:?}");
    assert!(truncated.len() > 12 && truncated.iter().all(|&weight| weight == 0.25));
    config.selfplay.max_turns = 1_000;
    let (ending, decided) = weights(&config);
    assert!(matches!(ending, Ending::Won(_)), "{ending:?}");
    assert!(decided.iter().all(|&weight| weight == 1.0));
    config.selfplay.resignation.turns = 4;
    config.selfplay.resignation.threshold = 0.15;
    config.selfplay.resignation.played_out_share = 0.0;
    let (ending, resigned) = weights(&config);
    assert!(matches!(ending, Ending::Resigned { .. }), "{ending:?}");
    assert!(resigned.iter().all(|&weight| weight == 1.0));
}

#[test]
fn decided_games_get_fewer_evaluations_and_less_weight() {
    let mut config = config();
    config.selfplay.max_turns = 8;
    config.selfplay.soft_resignation.turns = 3;
    config.selfplay.soft_resignation.threshold = 0.9;
    config.selfplay.soft_resignation.evaluations = 0.5;
    config.selfplay.soft_resignation.weight = 0.2;
    for record in play_sure_of_gold(&config, 0.95, 4) {
        for (number, (turn, search)) in searches(&record).enumerate() {
            // Halfway from 0.9 to certainty.
            let (budget, weight) = if number < 3 { (16, 1.0) } else { (12, 0.6) };
            assert_eq!(search.budget, budget, "turn {number}");
            assert!(
                turn.rows
                    .iter()
                    .all(|row| (row.weight - weight).abs() < 1e-4)
            );
        }
    }
}

#[test]
fn rows_weigh_by_their_surprise() {
    let mut config = config();
    let plain = play_on(
        &config,
        Box::new(LocalChannel::new(Box::new(Null::default()))),
        (2, 1),
        0..2,
    );
    config.selfplay.targets.surprise_share = 0.5;
    let weighed = play_on(
        &config,
        Box::new(LocalChannel::new(Box::new(Null::default()))),
        (2, 1),
        0..2,
    );
    for (plain, weighed) in plain.iter().zip(&weighed) {
        let rows = |record: &GameRecord| -> Vec<RowRecord> {
            record
                .turns
                .iter()
                .flat_map(|turn| turn.rows.clone())
                .collect()
        };
        let (plain, weighed) = (rows(plain), rows(weighed));
        assert!(plain.iter().all(|row| row.weight == 1.0));
        let sum: f32 = weighed.iter().map(|row| row.weight).sum();
        assert!((sum / plain.len() as f32 - 1.0).abs() < 1e-3);
        let most = weighed
            .iter()
            .max_by(|a, b| a.surprise.total_cmp(&b.surprise))
            .unwrap();
        assert!(most.surprise > 0.0 && weighed.iter().all(|row| row.weight <= most.weight));
    }
}
