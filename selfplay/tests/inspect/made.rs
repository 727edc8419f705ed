//! Totals of games made by hand, small enough to be counted by eye.

use crate::{inspect, outcome, sample, write_shard};
use arimaa::rules::{Game, Outcome, Position, Reason, Side, StepState};
use engine::record::{
    Ending, EvaluatorId, GameId, GameRecord, RowRecord, SearchKind, SearchRecord, Start,
    StartPosition, TurnOrigin, TurnRecord, WaivedResignation, quantize_policy,
};
use serde_json::{Value, json};

const BEFORE_GOAL: &str = "g [        R      r                            E                   ]";

/// North from a7.
const GOAL: u16 = 48;
/// North from e3, and back.
const OUT: u16 = 20;
const BACK: u16 = 128 + 28;
/// South from h7, as Silver sees it: north from h2.
const ANSWER: u16 = 15;

fn search(kind: SearchKind, value: f32) -> TurnOrigin {
    TurnOrigin::Search(SearchRecord {
        evaluator: 0,
        kind,
        budget: if kind == SearchKind::Full { 40 } else { 10 },
        evaluations: if kind == SearchKind::Full { 30 } else { 8 },
        visits: if kind == SearchKind::Full { 20 } else { 6 },
        value,
        network_value: 0.5,
    })
}

/// A turn of one step, with a row at its start whose target is even over two actions.
fn turn(action: u16, origin: TurnOrigin, weight: Option<f32>) -> TurnRecord {
    let position: Position = BEFORE_GOAL.parse().unwrap();
    let legal = StepState::new(&position).legal_actions(Game::from_position(position).history());
    let mut shares = vec![0.0; legal.count()];
    shares[..2].fill(1.0);
    let row = |weight| RowRecord {
        step: 0,
        visits: 20,
        policy: quantize_policy(&shares).unwrap(),
        surprise: 0.5,
        weight,
    };
    TurnRecord {
        actions: vec![action],
        origin,
        rows: weight.map(row).into_iter().collect(),
    }
}

fn made(counter: u64, turns: Vec<TurnRecord>, ending: Ending) -> GameRecord {
    let position: Position = BEFORE_GOAL.parse().unwrap();
    GameRecord {
        id: GameId {
            generator: 0,
            counter,
        },
        start: Start::Position(StartPosition::new(&position)),
        evaluators: vec![
            EvaluatorId {
                name: "00007".into(),
                identity: "seven".into(),
            },
            EvaluatorId {
                name: "00008".into(),
                identity: "eight".into(),
            },
        ],
        turns,
        ending,
        ..sample(counter, 0)
    }
}

/// Four games: Gold's goal, where Gold would have resigned; Silver resigned; stopped, where Silver would have resigned; forfeited.
pub(crate) fn games() -> Vec<GameRecord> {
    let goal = Ending::Won(Outcome {
        winner: Side::Gold,
        reason: Reason::Goal,
    });
    let waived = |loser| Some(WaivedResignation { turn: 0, loser });
    let policy = TurnOrigin::Policy {
        evaluator: 1,
        network_value: 0.25,
    };
    vec![
        GameRecord {
            resignation_waived: waived(Side::Gold),
            ..made(
                0,
                vec![turn(GOAL, search(SearchKind::Full, 0.75), Some(2.0))],
                goal,
            )
        },
        made(
            1,
            vec![turn(OUT, search(SearchKind::Fast, 1.0), Some(0.0))],
            Ending::Resigned { winner: Side::Gold },
        ),
        GameRecord {
            start: Start::Fork {
                game: GameId {
                    generator: 0,
                    counter: 0,
                },
            },
            turns: Vec::new(),
            resignation_waived: waived(Side::Silver),
            ..made(2, Vec::new(), Ending::Unfinished { value: None })
        },
        made(
            3,
            vec![
                turn(OUT, policy, None),
                turn(ANSWER, TurnOrigin::Given, None),
                turn(BACK, TurnOrigin::Given, None),
            ],
            Ending::Forfeited {
                winner: Side::Silver,
            },
        ),
    ]
}

#[test]
fn every_number_is_as_counted_by_hand() {
    let folder = tempfile::tempdir().unwrap();
    let path = write_shard(folder.path(), 0, &games());
    let (code, text, complaints) = outcome(inspect().arg(&path));
    assert_eq!((code, complaints.as_str()), (0, ""));
    let (sizes, rest) = text.split_once('\n').unwrap();
    assert!(sizes.starts_with("shards      1 ("), "{sizes}");
    let digest = engine::record::digest(b"");
    let expected = format!(
        "\
games       4: 1 forked, 3 from given positions
lengths     mean 1.2 turns, median 1, 10% to 90% 0 to 3, longest 3
            turns  games
                0      1  ####################
                1      2  ########################################
                2      0
                3      1  ####################
endings     1 by goal, 0 by elimination, 0 by immobilization, 1 resigned, 1 forfeited, 1 unfinished
won by Gold 2 of 3, 66.7% (20.8 to 93.9)
resignation waived in 2 games, not lost in 2 (1 unfinished), 100.0% (34.2 to 100.0)
turns       5: 1 searched in full, 1 searched fast, 1 drawn from the policy, 2 given
                  mean visits  mean evaluations  of allowed  proven
            full         20.0              30.0        40.0    0.0%
            fast          6.0               8.0        10.0  100.0%
rows        2, 1 of weight 0
                  rows  mean entropy  mean surprise  mean weight
            play     2    0.693 nats     0.500 nats        1.000
calibration of search values, 2 in decided games: Brier score 0.0312, log loss 0.1438 nats
              Gold wins     values   mean%    won%   error
             70 to  80%         1    75.0   100.0
             90 to 100%         1   100.0   100.0
calibration of network values, 2 in decided games: Brier score 0.2500, log loss 0.6931 nats
              Gold wins     values   mean%    won%   error
             50 to  60%         2    50.0   100.0
evaluator   00007 (seven): 2 turns in 2 games
evaluator   00008 (eight): 1 turns in 1 games
format      3: 4 games in 1 shards
encoding    1: 4 games in 1 shards
program     0.1.0: 4 games in 1 shards
config      {digest}: 4 games in 1 shards
bad frames  0
"
    );
    assert_eq!(rest, expected);
}

#[test]
fn the_object_has_the_same_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let path = write_shard(folder.path(), 0, &games());
    let (_, json, _) = outcome(inspect().arg(&path).arg("--json"));
    let totals: Value = serde_json::from_str(&json).unwrap();
    let bytes = path.metadata().unwrap().len();
    for (key, expected) in [
        ("bytes", json!(bytes)),
        ("bytes_per_row", json!(bytes as f64 / 2.0)),
        ("games", json!(4)),
        ("turns", json!(5)),
        ("rows", json!(2)),
        ("mean_turns", json!(1.25)),
        (
            "starts",
            json!({"empty": 0, "fork": 1, "opening": 0, "position": 3}),
        ),
        (
            "endings",
            json!({"goal": 1, "elimination": 0, "immobilization": 0, "resigned": 1, "forfeited": 1}),
        ),
        ("unfinished", json!(1)),
        ("gold_wins", json!(2)),
        ("gold_share", json!(2.0 / 3.0)),
        (
            "origins",
            json!({"given": 2, "policy": 1, "full": 1, "fast": 1}),
        ),
        (
            "full_searches",
            json!({"turns": 1, "visits": 20.0, "evaluations": 30.0, "budget": 40.0, "proven": 0.0}),
        ),
        (
            "setup_policy",
            json!({"rows": 0, "weightless": 0, "weight": null, "entropy": null, "surprise": null}),
        ),
        ("faults", json!([])),
        ("repaired", json!([])),
    ] {
        assert_eq!(totals[key], expected, "{key}");
    }
    let policy = &totals["play_policy"];
    assert_eq!(
        (&policy["weight"], &policy["weightless"]),
        (&json!(1.0), &json!(1))
    );
    assert_eq!(
        totals["lengths"]["distribution"][3],
        json!({"from": 3, "to": 3, "games": 1})
    );
    let resignations = &totals["resignations"];
    assert_eq!(
        (&resignations["waived"], &resignations["not_lost"]),
        (&json!(2), &json!(2))
    );
    assert_eq!(resignations["error_rate"], json!(1.0));
    let values = &totals["search_calibration"]["bins"][7];
    assert_eq!(
        (&values["values"], &values["mean"]),
        (&json!(1), &json!(0.75))
    );
    assert_eq!(totals["network_calibration"]["values"], json!(2));
    assert_eq!(
        totals["versions"]["encoding"],
        json!([{"version": 1, "shards": 1, "games": 4}])
    );
}
