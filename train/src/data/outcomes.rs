//! What a game's end, its captures and its searches say of each of its turns.
//!
//! # The value's target
//! The game's result is true but noisy; a search's value is what the network thinks already, a little better. The target is
//! `(1 - λ) · result + λ · search value`, λ being [`TargetOptions::search_value_share`].
//!
//! Where a move is drawn at random later in the game ([`TurnOrigin::Policy`]), the result says little of a turn before it: in its place
//! stands the mean of the searches' values from the turn up to that move, each turn weighing less than the one before by a factor
//! of `1 - 1 / m`: about m turns count ([`TargetOptions::short_horizon_turns`]; the short-term value targets of KataGo, Other Methods
//! Implemented in KataGo, 2020, with its final term left out).
//!
//! Where nobody has won (a game that was broken off, or lost by something outside of it) the search's value is the target, with a
//! weight of λ: what is left of the mix. A turn that was not searched learns from the result alone.

use super::TargetOptions;
use arimaa::rules::{Bitboard, Board, Reason, Side, Square, StepState, Turn};
use engine::shard::{Ending, ReplayedTurn, TurnOrigin};

/// The targets of a game's turns.
#[derive(Debug)]
pub(super) struct Outcomes(Vec<TurnTargets>);

/// The targets that the rows of a turn have in common, as its mover sees them.
#[derive(Debug, Clone, Copy)]
pub(super) struct TurnTargets {
    side: Side,
    /// The mover's win probability.
    pub(super) value: f32,
    pub(super) value_weight: f32,
    /// The turns until the game's end, this one included.
    pub(super) turns_left: f32,
    /// As in [`HelperTargets::ending`](super::rows::HelperTargets::ending).
    pub(super) ending: u8,
    pub(super) outcome_weight: f32,
    /// The squares, after so many steps of the turn, of the pieces that will be taken.
    doomed: [Bitboard; 5],
}

impl Outcomes {
    pub(super) fn of(turns: &[ReplayedTurn], options: TargetOptions) -> Self {
        let mut targets: Vec<TurnTargets> = Vec::with_capacity(turns.len());
        let mut doomed = Bitboard::EMPTY;
        let mut horizon = Horizon::new(options.short_horizon_turns);
        for (before, turn) in turns.iter().rev().enumerate() {
            let side = turn.position.side();
            horizon.add(turn.origin);
            let squares = doomed_squares(turn, doomed);
            doomed = squares[0];
            let (value, value_weight) = value_target(turn, &horizon, options);
            let (ending, won) = match turn.ending {
                Ending::Won(outcome) => {
                    let reason = match outcome.reason {
                        Reason::Goal => 0,
                        Reason::Elimination => 1,
                        Reason::Immobilization => 2,
                    };
                    let lost = u8::from(outcome.winner != side);
                    (reason + 3 * lost, true)
                }
                _ => (0, false),
            };
            targets.push(TurnTargets {
                side,
                value: match side {
                    Side::Gold => value,
                    Side::Silver => 1.0 - value,
                },
                value_weight,
                turns_left: (before + 1) as f32,
                ending,
                outcome_weight: f32::from(u8::from(won && !horizon.is_short)),
                doomed: squares,
            });
        }
        targets.reverse();
        Self(targets)
    }

    /// The targets of a turn, counted from 0.
    pub(super) fn turn(&self, index: usize) -> &TurnTargets {
        &self.0[index]
    }
}

impl TurnTargets {
    /// The squares of the pieces on a state's board that will be taken, as the mover sees it.
    pub(super) fn taken(&self, state: &StepState) -> u64 {
        // In a setup nothing moves, and what is not placed yet is not on the board.
        let steps = match state.next_placement() {
            Some(_) => 0,
            None => usize::from(state.steps_used()),
        };
        let doomed = self.doomed.get(steps).copied().unwrap_or(Bitboard::EMPTY);
        (doomed & state.board().occupied()).seen_by(self.side).0
    }
}

/// The squares of the pieces that will be taken, after 0, 1, … steps of a turn, given those after the turn: followed backwards,
/// each piece to where it came from.
fn doomed_squares(turn: &ReplayedTurn, after: Bitboard) -> [Bitboard; 5] {
    let mut squares = [after; 5];
    let Turn::Steps(steps) = &turn.turn else {
        return squares;
    };
    let mut board = *turn.position.board();
    let mut moves: [Option<(Square, Square, Bitboard)>; 4] = [None; 4];
    for (place, step) in moves.iter_mut().zip(steps.iter()) {
        *place = step
            .to()
            .map(|to| (step.from, to, captured(&mut board, step.from, to)));
    }
    for (number, moved) in moves.into_iter().enumerate().rev() {
        squares[number] = match moved {
            None => squares[number + 1],
            Some((from, to, captured)) => {
                let doomed = squares[number + 1] | captured;
                match doomed.contains(to) {
                    true => (doomed & !Bitboard::of(to)) | Bitboard::of(from),
                    false => doomed,
                }
            }
        };
    }
    squares
}

/// Makes a step; the square whose piece a trap took.
fn captured(board: &mut Board, from: Square, to: Square) -> Bitboard {
    let taken = board.step(from, to);
    taken.map_or(Bitboard::EMPTY, |(square, _)| Bitboard::of(square))
}

/// The mean of the searches' values ahead, up to the next random move, while a game is gone through backwards.
#[derive(Debug)]
struct Horizon {
    /// What a turn weighs of what the one before it does.
    decay: f64,
    /// Whether a random move is ahead.
    is_short: bool,
    sum: f64,
    weight: f64,
}

impl Horizon {
    fn new(turns: f32) -> Self {
        Self {
            decay: 1.0 - 1.0 / f64::from(turns),
            is_short: false,
            sum: 0.0,
            weight: 0.0,
        }
    }

    /// Goes back to a turn.
    fn add(&mut self, origin: TurnOrigin) {
        if let TurnOrigin::Policy { .. } = origin {
            (self.is_short, self.sum, self.weight) = (true, 0.0, 0.0);
            return;
        }
        self.sum *= self.decay;
        self.weight *= self.decay;
        if let Some(search) = origin.search() {
            self.sum += f64::from(search.value);
            self.weight += 1.0;
        }
    }

    /// Gold's win probability; none where nothing was searched before the random move.
    fn value(&self) -> Option<f32> {
        (self.weight > 0.0).then(|| (self.sum / self.weight) as f32)
    }
}

/// Gold's win probability that a network should learn for a turn, and its weight.
fn value_target(turn: &ReplayedTurn, horizon: &Horizon, options: TargetOptions) -> (f32, f32) {
    let share = options.search_value_share;
    let searched = turn.origin.search().map(|search| search.value);
    let result = match turn.ending {
        Ending::Unfinished { .. } | Ending::Forfeited { .. } => None,
        _ if horizon.is_short => horizon.value(),
        Ending::Won(_) | Ending::Resigned { .. } => {
            let winner = turn.ending.winner();
            Some(f32::from(u8::from(winner == Some(Side::Gold))))
        }
    };
    match (result, searched) {
        (Some(result), Some(searched)) => (result + share * (searched - result), 1.0),
        (Some(result), None) => (result, 1.0),
        (None, Some(searched)) => (searched, share),
        (None, None) => (0.5, 0.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::rows_of;
    use crate::data::samples::{game, targets};
    use arimaa::rules::{Action, Game, Piece};
    use engine::encoding::plane;
    use engine::shard::{GameRecord, replay};
    use std::collections::HashMap;

    /// The pieces that are still on the board at a game's end, each called by the square where it was set up.
    type Survivors = Vec<(Square, Square)>;

    /// Plays a game with names for the pieces: where each named piece stands before each row of play, and which ones are left.
    fn follow(record: &GameRecord) -> (Vec<HashMap<Square, Square>>, Survivors) {
        let mut game = Game::new();
        let mut named: HashMap<Square, Square> = HashMap::new();
        let mut states = Vec::new();
        for turn in &record.turns {
            let side = game.position().side();
            let mut state = StepState::new(game.position());
            let mut rows = turn.rows.iter().map(|row| usize::from(row.step)).peekable();
            for step in 0..=turn.actions.len() {
                if rows.next_if_eq(&step).is_some() {
                    states.push(named.clone());
                }
                let Some(&index) = turn.actions.get(step) else {
                    continue;
                };
                let action = Action::from_index(index.into(), side).unwrap();
                state = state.after(action);
                if let Action::Step(step) = action {
                    let name = named.remove(&step.from).unwrap();
                    named.insert(step.to().unwrap(), name);
                    named.retain(|&square, _| state.board().piece_at(square).is_some());
                }
            }
            game.play(&turn.turn_in(&game).unwrap()).unwrap();
            if game.turns().len() <= 2 {
                let set_up = game.position().board().side(side);
                named.extend(set_up.into_iter().map(|square| (square, square)));
            }
        }
        (states, named.into_iter().collect())
    }

    #[test]
    fn the_pieces_that_will_be_taken_are_those_that_are_missing_at_the_end() {
        let mut taken_in_all = 0;
        for counter in 0..12 {
            let record = game(counter, 1_000);
            let (states, survivors) = follow(&record);
            let survivors: Vec<Square> = survivors.into_iter().map(|(_, name)| name).collect();
            let rows = rows_of(&record, targets(0.0)).unwrap();
            let mut replayed = replay(&record).unwrap();
            let end = record.to_game().unwrap();
            let rows_of_turns = replayed.iter_mut().flat_map(|turn| {
                let turns_rows = std::mem::take(&mut turn.rows);
                turns_rows.into_iter().map(|row| row.state)
            });
            for ((row, named), state) in rows.iter().zip(&states).zip(rows_of_turns) {
                let side = state.side();
                assert_eq!(row.helpers.pieces, state.board().occupied().seen_by(side).0);
                assert_eq!(row.helpers.taken & !row.helpers.pieces, 0);
                if state.phase() == arimaa::rules::Phase::Setup {
                    continue;
                }
                let gone = named.iter().filter(|(_, name)| !survivors.contains(name));
                let gone: Bitboard = gone.map(|(&square, _)| square).collect();
                assert_eq!(row.helpers.taken, gone.seen_by(side).0);
                // And another way: what is left of each kind.
                let taken = Bitboard(row.helpers.taken).seen_by(side);
                for piece in Piece::ALL {
                    let now = state.board().pieces(piece.side, piece.kind);
                    let left = end.position().board().pieces(piece.side, piece.kind);
                    assert_eq!((now & !taken).count(), left.count());
                }
                taken_in_all += gone.count();
            }
            // Gold's setup knows already which of its pieces will be lost.
            let gold = end.position().board().side(Side::Gold).count();
            let placed = rows[7].input.planes[plane::OWN..plane::ENEMY].iter();
            let placed: u32 = placed.map(|plane| plane.count_ones()).sum();
            assert_eq!(placed, 7);
            assert!(rows[7].helpers.taken.count_ones() <= 16 - gold);
        }
        assert!(taken_in_all > 1_000, "{taken_in_all}");
    }

    #[test]
    fn the_end_is_seen_by_the_mover_and_comes_nearer() {
        let record = game(3, 1_000);
        let Ending::Won(outcome) = record.ending else {
            panic!("{:?}", record.ending);
        };
        let mut rows = rows_of(&record, targets(0.0)).unwrap().into_iter();
        for (index, turn) in record.turns.iter().enumerate() {
            let lost = outcome.winner != Side::ALL[index % 2];
            for row in rows.by_ref().take(turn.rows.len()) {
                let helpers = row.helpers;
                assert_eq!(helpers.turns_left, (record.turns.len() - index) as f32);
                assert_eq!(helpers.ending >= 3, lost);
                assert_eq!(helpers.ending % 3, outcome.reason as u8);
                assert_eq!(helpers.outcome_weight, 1.0 / turn.rows.len() as f32);
            }
        }
    }

    #[test]
    fn before_a_random_move_searches_stand_for_the_result() {
        let mut record = game(3, 1_000);
        let last = record.turns.len() - 1;
        let value = |record: &GameRecord, turn: usize| record.turns[turn].search().unwrap().value;
        record.turns[6].origin = TurnOrigin::Policy {
            evaluator: 0,
            network_value: 0.5,
        };
        record.turns[4].origin = TurnOrigin::Given;
        let options = TargetOptions {
            search_value_share: 0.0,
            short_horizon_turns: 2.0,
        };
        let replayed = replay(&record).unwrap();
        let outcomes = Outcomes::of(&replayed, options);
        let gold = |turn: usize| match turn % 2 {
            0 => outcomes.turn(turn).value,
            _ => 1.0 - outcomes.turn(turn).value,
        };
        let close = |found: f32, expected: f32| assert!((found - expected).abs() < 1e-6);
        close(gold(5), value(&record, 5));
        // Not searched itself.
        close(gold(4), value(&record, 5));
        // Turns 3 and 5, of which the second weighs a quarter.
        close(
            gold(3),
            (value(&record, 3) + 0.25 * value(&record, 5)) / 1.25,
        );
        let sum = value(&record, 2) + 0.5 * value(&record, 3) + 0.125 * value(&record, 5);
        close(gold(2), sum / 1.625);
        for turn in 0..6 {
            assert_eq!(outcomes.turn(turn).value_weight, 1.0);
            assert_eq!(outcomes.turn(turn).outcome_weight, 0.0);
        }
        // The random turn itself has neither search nor result; behind it the result is one.
        assert_eq!(outcomes.turn(6).value_weight, 0.0);
        let won = f32::from(u8::from(record.ending.winner() == Some(Side::Gold)));
        for turn in 7..=last {
            assert_eq!((gold(turn), outcomes.turn(turn).outcome_weight), (won, 1.0));
        }
    }
}
