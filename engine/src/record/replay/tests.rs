use super::*;
use crate::record::{GameId, SearchRecord, StartPosition, WaivedResignation, samples::random_game};
use arimaa::rules::{Bitboard, Kind, Outcome, Reason, SETUP_ORDER, StepError, TurnError};

fn sample(counter: u64, max_turns: usize) -> GameRecord {
    let id = GameId {
        generator: 1,
        counter,
    };
    random_game(id, 99, max_turns)
}

/// A sample that was won by `reason`, cut nowhere.
fn won_sample(reason: Reason) -> GameRecord {
    let by_reason = |record: &GameRecord| matches!(record.ending, Ending::Won(outcome) if outcome.reason == reason);
    (0..)
        .map(|counter| sample(counter, 2_000))
        .find(by_reason)
        .unwrap()
}

const UNFINISHED: Ending = Ending::Unfinished { value: Some(0.5) };

/// The search of a sample's turn.
fn search_mut(record: &mut GameRecord, turn: usize) -> &mut SearchRecord {
    match &mut record.turns[turn].origin {
        TurnOrigin::Search(search) => search,
        other => panic!("{other:?}"),
    }
}

fn turn_fault(record: &GameRecord) -> TurnFault {
    match replay(record) {
        Err(ReplayError::Turn { fault, .. }) => fault,
        other => panic!("{other:?}"),
    }
}

fn row_fault(record: &GameRecord) -> RowFault {
    match replay(record) {
        Err(ReplayError::Row { fault, .. }) => fault,
        other => panic!("{other:?}"),
    }
}

#[test]
fn random_games_replay_whole() {
    for counter in 0..50 {
        let record = sample(counter, 400);
        let turns = replay(&record).unwrap();
        assert_eq!(turns.len(), record.turns.len());
        let game = record.to_game().unwrap();
        assert_eq!(game.turns().len(), turns.len());
        match record.ending {
            Ending::Won(outcome) => assert_eq!(game.outcome(), Some(outcome)),
            Ending::Unfinished { .. } => assert_eq!((game.outcome(), turns.len()), (None, 400)),
            other => panic!("{other:?}"),
        }
        for (turn, recorded) in turns.iter().zip(&record.turns) {
            let ended_early = turn.position.phase() == Phase::Play && recorded.actions.len() < 4;
            let states = recorded.actions.len() + usize::from(ended_early);
            assert_eq!(turn.rows.len(), states, "samples have a row a state");
            assert_eq!(turn.rows[0].state, StepState::new(&turn.position));
            for (row, action) in turn.rows.iter().zip(&recorded.actions) {
                let action = Action::from_index((*action).into(), turn.position.side()).unwrap();
                assert!(row.legal.contains(action));
            }
            assert!(!ended_early || turn.rows.last().unwrap().legal.end);
        }
    }
}

#[test]
fn the_record_decides_the_sample_and_nothing_else() {
    assert_eq!(sample(3, 60), sample(3, 60));
    assert_ne!(sample(3, 60).turns, sample(4, 60).turns);
}

#[test]
fn twins_of_a_setup_may_be_placed_in_either_order() {
    let record = sample(0, 6);
    let mut other = record.clone();
    let horse = SETUP_ORDER
        .iter()
        .position(|kind| *kind == Kind::Horse)
        .unwrap();
    other.turns[0].actions.swap(horse, horse + 1);
    assert_ne!(record, other);
    assert_eq!(
        record.to_game().unwrap().position(),
        other.to_game().unwrap().position()
    );
}

#[test]
fn repetitions_count_the_times_before() {
    // Both elephants stand in the front row (e2 and e7), step out, and come back: after four turns the position stands again.
    let setup = [12, 11, 9, 14, 10, 13, 8, 15].map(|square| 256 + square);
    let (out, back) = (12, 2 * 64 + 20);
    let turns = [&setup[..], &setup, &[out], &[out], &[back], &[back], &[out]];
    let mut record = GameRecord {
        turns: turns.map(turn_of).to_vec(),
        ending: UNFINISHED,
        ..sample(0, 0)
    };
    let turns = replay(&record).unwrap();
    let repetitions: Vec<u8> = turns.iter().map(|turn| turn.repetitions).collect();
    assert_eq!(repetitions, [0, 0, 0, 0, 0, 0, 1]);
    assert_eq!(turns[2].position, turns[6].position);

    // The third occurrence is no end of a legal turn.
    record
        .turns
        .extend([out, back, back].map(|action| turn_of(&[action])));
    let error = replay(&record).unwrap_err();
    let fifth = TurnLabel {
        number: 5,
        side: Side::Silver,
    };
    assert!(
        matches!(&error, ReplayError::Turn { turn, .. } if *turn == fifth),
        "{error}"
    );
    record.turns.pop();
    replay(&record).unwrap();
}

/// A turn without rows.
fn turn_of(actions: &[u16]) -> TurnRecord {
    TurnRecord {
        actions: actions.to_vec(),
        origin: TurnOrigin::Given,
        rows: Vec::new(),
    }
}

#[test]
fn illegal_actions_are_refused_with_the_reason() {
    let record = sample(0, 8);
    let with_action = |turn: usize, action: usize, index: u16| {
        let mut record = record.clone();
        record.turns[turn].actions[action] = index;
        record
    };
    // North from e4, where nothing stands yet.
    assert!(matches!(
        turn_fault(&with_action(2, 0, 28)),
        TurnFault::Step {
            action: 1,
            error: StepError::NoPiece(_),
            ..
        }
    ));
    assert!(matches!(
        turn_fault(&with_action(2, 0, 256)),
        TurnFault::Placement { action: 1, .. }
    ));
    let first = record.turns[0].actions[0];
    assert!(matches!(
        turn_fault(&with_action(0, 1, first)),
        TurnFault::Placement { action: 2, .. }
    ));
    assert_eq!(
        turn_fault(&with_action(1, 2, 320)),
        TurnFault::EndRecorded { action: 3 }
    );
    let no_action = TurnFault::NoAction {
        action: 1,
        index: 321,
    };
    assert_eq!(turn_fault(&with_action(3, 0, 321)), no_action);
    let error = replay(&with_action(3, 0, 321)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "turn 2s: action 1: there is no action of index 321"
    );
}

#[test]
fn turns_of_a_wrong_length_are_refused() {
    let record = sample(0, 8);
    let mut short = record.clone();
    short.turns[0].actions.pop();
    assert_eq!(turn_fault(&short), TurnFault::SetupIncomplete { count: 7 });
    let mut long = record.clone();
    long.turns[0].actions.push(256);
    assert!(matches!(
        turn_fault(&long),
        TurnFault::Placement { action: 9, .. }
    ));
    let mut empty = record;
    empty.turns[4].actions.clear();
    assert_eq!(turn_fault(&empty), TurnFault::End(TurnError::Empty));
}

#[test]
fn a_wrong_ending_is_refused() {
    let goal = won_sample(Reason::Goal);
    let Ending::Won(outcome) = goal.ending else {
        unreachable!()
    };
    let ending_of = |ending| {
        let mut record = goal.clone();
        record.ending = ending;
        replay(&record).unwrap_err()
    };
    assert_eq!(
        ending_of(UNFINISHED),
        EndingFault::Over { played: outcome }.into()
    );
    let recorded = Outcome {
        winner: outcome.winner.opponent(),
        ..outcome
    };
    let played = outcome;
    assert_eq!(
        ending_of(Ending::Won(recorded)),
        EndingFault::Other { recorded, played }.into()
    );
    let recorded = Outcome {
        reason: Reason::Immobilization,
        ..outcome
    };
    assert_eq!(
        ending_of(Ending::Won(recorded)),
        EndingFault::Other { recorded, played }.into()
    );

    let mut cut = goal.clone();
    cut.turns.pop();
    let recorded = outcome;
    assert_eq!(
        replay(&cut).unwrap_err(),
        EndingFault::NotOver { recorded }.into()
    );
    cut.ending = UNFINISHED;
    replay(&cut).unwrap();

    let mut beyond = goal.clone();
    beyond.turns.push(goal.turns[2].clone());
    assert_eq!(turn_fault(&beyond), TurnFault::GameOver(outcome));
}

#[test]
fn rows_that_do_not_fit_are_refused() {
    let record = sample(0, 8);
    let with_row = |change: fn(&mut RowRecord)| {
        let mut record = record.clone();
        change(&mut record.turns[3].rows[1]);
        record
    };
    let longer = row_fault(&with_row(|row| row.policy.push(0)));
    assert!(
        matches!(longer, RowFault::PolicyLength { found, legal } if found == legal + 1),
        "{longer}"
    );
    assert!(matches!(
        row_fault(&with_row(|row| row.policy.clear())),
        RowFault::PolicyLength { found: 0, .. }
    ));
    assert_eq!(
        row_fault(&with_row(|row| row.policy[0] -= 1)),
        RowFault::PolicySum { sum: 65_534 }
    );
    assert_eq!(
        row_fault(&with_row(|row| row.step = 0)),
        RowFault::Order { step: 0 }
    );
    assert_eq!(
        row_fault(&with_row(|row| row.step = 4)),
        RowFault::NoState { step: 4 }
    );
    assert!(matches!(
        row_fault(&with_row(|row| row.weight = f32::NAN)),
        RowFault::Number { name: "weight", .. }
    ));
    assert_eq!(
        row_fault(&with_row(|row| row.weight = -1.0)),
        RowFault::Number {
            name: "weight",
            value: -1.0
        }
    );
    for value in [f32::INFINITY, f32::NAN, -0.1] {
        let mut record = record.clone();
        record.turns[3].rows[1].surprise = value;
        assert!(matches!(
            row_fault(&record),
            RowFault::Number {
                name: "surprise",
                ..
            }
        ));
    }

    let mut twice = record.clone();
    let row = twice.turns[3].rows[0].clone();
    twice.turns[3].rows.insert(0, row);
    assert_eq!(row_fault(&twice), RowFault::Order { step: 0 });
    let mut in_setup = record.clone();
    in_setup.turns[0].rows[7].step = 8;
    assert_eq!(row_fault(&in_setup), RowFault::NoState { step: 8 });
    let mut fewer = record;
    fewer.turns[3].rows.remove(0);
    assert_eq!(
        replay(&fewer).unwrap()[3].rows[0].state.steps_used(),
        1,
        "rows may be left out"
    );
}

#[test]
fn impossible_values_are_refused() {
    for value in [-0.001, 1.001, f32::NAN, f32::INFINITY] {
        let mut record = sample(0, 4);
        search_mut(&mut record, 1).value = value;
        assert!(matches!(
            turn_fault(&record),
            TurnFault::Value { name: "value", .. }
        ));
        let mut record = sample(0, 4);
        search_mut(&mut record, 1).network_value = value;
        assert!(matches!(
            turn_fault(&record),
            TurnFault::Value {
                name: "network value",
                ..
            }
        ));
        let mut record = sample(0, 4);
        record.turns[1].origin = TurnOrigin::Policy {
            evaluator: 0,
            network_value: value,
        };
        assert!(matches!(turn_fault(&record), TurnFault::Value { .. }));
        let mut record = sample(0, 4);
        record.ending = Ending::Unfinished { value: Some(value) };
        assert!(matches!(
            replay(&record),
            Err(ReplayError::Ending(EndingFault::Value { .. }))
        ));
    }
}

#[test]
fn an_evaluator_that_the_record_does_not_have_is_refused() {
    let mut record = sample(0, 4);
    search_mut(&mut record, 2).evaluator = 1;
    let fault = TurnFault::Evaluator {
        evaluator: 1,
        count: 1,
    };
    assert_eq!(turn_fault(&record), fault);
    let another = record.evaluators[0].clone();
    record.evaluators.push(another);
    replay(&record).unwrap();
}

#[test]
fn games_that_were_broken_off_are_not_over() {
    let goal = won_sample(Reason::Goal);
    let mut cut = goal.clone();
    cut.turns.pop();
    for winner in Side::ALL {
        for ending in [Ending::Resigned { winner }, Ending::Forfeited { winner }] {
            let with = |record: &GameRecord| GameRecord {
                ending,
                ..record.clone()
            };
            replay(&with(&cut)).unwrap();
            assert!(matches!(
                replay(&with(&goal)),
                Err(ReplayError::Ending(EndingFault::Over { .. }))
            ));
        }
    }
    let waived = |turn| WaivedResignation {
        turn,
        loser: Side::Gold,
    };
    let turns = goal.turns.len();
    let mut record = goal;
    record.resignation_waived = Some(waived(turns as u32));
    replay(&record).unwrap();
    record.resignation_waived = Some(waived(turns as u32 + 1));
    let error = replay(&record).unwrap_err().to_string();
    assert!(
        error.contains(&format!("{} turns of {turns}", turns + 1)),
        "{error}"
    );
}

#[test]
fn a_game_may_start_from_a_position_with_silver_to_move() {
    let mut game = sample(0, 9).to_game().unwrap();
    assert_eq!(game.position().side(), Side::Silver);
    let start = StartPosition::new(game.position());
    assert_eq!(start.position().unwrap(), *game.position());
    let mut record = GameRecord {
        start: Start::Position(start),
        turns: sample(0, 10).turns[9..].to_vec(),
        ending: UNFINISHED,
        ..sample(0, 0)
    };
    let turns = replay(&record).unwrap();
    assert_eq!(turns[0].position, *game.position());
    game.play(&turns[0].turn).unwrap();
    assert_eq!(record.turn_number(0).to_string(), "2s");
    assert_eq!(record.turn_number(1).to_string(), "3g");
    assert_eq!(sample(0, 1).turn_number(1).to_string(), "1s");

    let mut two = start;
    two.pieces[11] |= two.pieces[0];
    record.start = Start::Position(two);
    let square = Bitboard(two.pieces[0]).into_iter().next().unwrap();
    assert_eq!(
        replay(&record).unwrap_err(),
        ReplayError::Start(StartFault::TwoPieces(square))
    );
    let mut herd = start;
    herd.pieces[5] = !start.position().unwrap().board().occupied().0;
    record.start = Start::Position(herd);
    let error = replay(&record).unwrap_err();
    assert!(
        matches!(error, ReplayError::Start(StartFault::Position(_))),
        "{error}"
    );
}
