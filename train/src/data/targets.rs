//! The targets of the heads for each row of a game: from its end, its captures, its searches and the opponent's replies.
//!
//! # The value's target
//! The game's result is unbiased but noisy; a search's value is biased towards the network's own, but less noisy. The target is
//! `(1 - λ) · result + λ · search value`, λ being [`TargetOptions::search_value_share`].
//!
//! Where a move is drawn at random later in the game ([`TurnOrigin::Policy`]), the result says little of a turn before it: in its place
//! stands the mean of the searches' values from the turn up to that move, each turn weighing less than the previous one by a factor
//! of `1 - 1 / m`: about m turns count ([`TargetOptions::short_horizon_turns`]; the short-term value targets of KataGo, Other Methods
//! Implemented in KataGo, 2020, with its final term left out).
//!
//! Without a winner on the board (a truncated game, or one that was forfeited) the search's value is the target, with a
//! weight of λ, its share in the mix. A turn that was not searched learns from the result alone.

use arimaa::rules::{Action, Bitboard, Board, Reason, Side, Square, StepState, Turn};
use engine::config::TrainConfig;
use engine::encoding::{LegalMask, POLICY_SIZE};
use engine::record::{Ending, ReplayedRow, ReplayedTurn, TurnOrigin};
use network::{END_REASONS, Head, RowWeight};

/// How results and searches become targets.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct TargetOptions {
    /// The share of the search's value in the value's target; the rest is the result's.
    pub(crate) search_value_share: f32,
    /// About how many turns of searches stand for the result where a random move follows.
    pub(crate) short_horizon_turns: f32,
}

impl From<&TrainConfig> for TargetOptions {
    fn from(config: &TrainConfig) -> Self {
        Self {
            search_value_share: config.search_value_share,
            short_horizon_turns: config.short_horizon_turns,
        }
    }
}

/// The target of a head for a row; its kind follows from the head's output and loss.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Target<'a> {
    /// A probability or a count.
    Number(f32),
    /// The number of a class.
    Class(u8),
    /// The squares that are 1, as the mover sees the board.
    Squares(u64),
    /// The share of each legal action in ascending order of the indices; the sum is
    /// [`POLICY_TOTAL`](engine::record::POLICY_TOTAL).
    LegalShares(&'a [u16]),
    /// Indices of actions with their shares, likewise; empty without a target.
    Shares(&'a [[u16; 2]]),
}

/// The targets of a game's turns.
#[derive(Debug)]
pub(super) struct GameTargets<'a> {
    turns: &'a [ReplayedTurn<'a>],
    outcomes: Vec<TurnOutcome>,
}

/// The targets of the rows of one turn.
#[derive(Debug)]
pub(super) struct TurnTargets<'a> {
    outcome: &'a TurnOutcome,
    /// Indices of the opponent's actions, as the mover sees the board, with their shares.
    reply: Vec<[u16; 2]>,
}

/// What the rest of the game says of a turn, as its mover sees it.
#[derive(Debug, Clone, Copy)]
struct TurnOutcome {
    side: Side,
    /// The mover's win probability.
    value: f32,
    value_weight: f32,
    /// The turns until the game's end, this one included.
    turns_left: f32,
    /// 0 goal, 1 elimination, 2 immobilization, where the mover wins, and the same plus 3 where the opponent does.
    ending: u8,
    outcome_weight: f32,
    /// The squares, after so many steps of the turn, of the pieces that will be captured.
    captures: [Bitboard; 5],
}

impl TurnTargets<'_> {
    /// What a head should say of a row of this turn.
    pub(super) fn of<'a>(&'a self, head: Head, row: &'a ReplayedRow) -> Target<'a> {
        match head {
            Head::Policy => Target::LegalShares(row.policy),
            Head::Value => Target::Number(self.outcome.value),
            Head::TurnsLeft => Target::Number(self.outcome.turns_left),
            Head::Ending => Target::Class(self.outcome.ending),
            Head::Captures => Target::Squares(self.outcome.captures_on(&row.state)),
            Head::Reply => Target::Shares(&self.reply),
        }
    }

    /// The weight of a row that weighs 1 and has `share` of its turn.
    pub(super) fn weight(&self, of: RowWeight, share: f32) -> f32 {
        match of {
            RowWeight::Policy => 1.0,
            RowWeight::Value => self.outcome.value_weight * share,
            RowWeight::Outcome => self.outcome.outcome_weight * share,
            RowWeight::Reply => f32::from(u8::from(!self.reply.is_empty())),
        }
    }
}

impl<'a> GameTargets<'a> {
    /// The targets of a game.
    pub(super) fn new(turns: &'a [ReplayedTurn<'a>], options: TargetOptions) -> Self {
        let mut outcomes: Vec<TurnOutcome> = Vec::with_capacity(turns.len());
        let mut captures = Bitboard::EMPTY;
        let mut horizon = Horizon::new(options.short_horizon_turns);
        for (before, turn) in turns.iter().rev().enumerate() {
            let side = turn.position.side();
            horizon.add(turn.origin);
            let squares = captures_of(turn, captures);
            captures = squares[0];
            let (value, value_weight) = value_target(turn, &horizon, options);
            let (ending, won) = match turn.ending {
                Ending::Won(outcome) => {
                    let reason = match outcome.reason {
                        Reason::Goal => 0,
                        Reason::Elimination => 1,
                        Reason::Immobilization => 2,
                    };
                    let lost = u8::from(outcome.winner != side);
                    (reason + END_REASONS as u8 * lost, true)
                }
                _ => (0, false),
            };
            outcomes.push(TurnOutcome {
                side,
                value: match side {
                    Side::Gold => value,
                    Side::Silver => 1.0 - value,
                },
                value_weight,
                turns_left: (before + 1) as f32,
                ending,
                outcome_weight: f32::from(u8::from(won && !horizon.is_short)),
                captures: squares,
            });
        }
        outcomes.reverse();
        Self { turns, outcomes }
    }

    /// The targets of a turn, counted from 0.
    pub(super) fn turn(&self, index: usize) -> TurnTargets<'_> {
        let next = self.turns.get(index + 1);
        TurnTargets {
            outcome: &self.outcomes[index],
            reply: next
                .filter(|next| has_replies(next.ending))
                .map_or_else(Vec::new, reply_of),
        }
    }
}

/// Whether the rows of a game have replies as targets: those of an unfinished game have the policy and the search's value alone.
pub(super) fn has_replies(ending: Ending) -> bool {
    !matches!(ending, Ending::Unfinished { .. })
}

impl TurnOutcome {
    /// The squares of the pieces on a state's board that will be captured, as the mover sees it.
    fn captures_on(&self, state: &StepState) -> u64 {
        // In a setup no piece moves, and unplaced pieces are not on the board.
        let steps = match state.next_placement() {
            Some(_) => 0,
            None => usize::from(state.steps_used()),
        };
        let captures = self.captures.get(steps).copied();
        let squares = captures.unwrap_or(Bitboard::EMPTY) & state.board().occupied();
        squares.seen_by(self.side).0
    }
}

/// The squares of the pieces that will be captured, after 0, 1, … steps of a turn, given those after the turn: followed backwards,
/// each piece to where it came from.
fn captures_of(turn: &ReplayedTurn, after: Bitboard) -> [Bitboard; 5] {
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
                let captures = squares[number + 1] | captured;
                if captures.contains(to) {
                    (captures & !Bitboard::of(to)) | Bitboard::of(from)
                } else {
                    captures
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
    /// The weight of a turn relative to the previous one.
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

    /// Gold's win probability; none without a search before the random move.
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

/// The index of an opponent's action as the mover sees the board: ranks flipped, north and south
/// exchanged. Its own inverse.
const SEEN_BY_OPPONENT: [u16; POLICY_SIZE] = {
    let mut entries = [0; POLICY_SIZE];
    let mut index = 0;
    while index < POLICY_SIZE {
        if let Some(action) = Action::from_index(index, Side::Silver) {
            entries[index] = action.index(Side::Gold) as u16;
        }
        index += 1;
    }
    entries
};

/// The opponent's expected first action: the target of the policy at the start of the next turn, or the action
/// that was played there. Actions are as the mover of the turn before sees the board.
fn reply_of(next: &ReplayedTurn) -> Vec<[u16; 2]> {
    let side = next.position.side();
    match next.rows.first().filter(|row| row.state.steps_used() == 0) {
        Some(row) => {
            let indices = LegalMask::new(&row.legal, side).indices();
            let shares = indices.zip(row.policy.iter().copied());
            let shares = shares.filter(|&(_, share)| share > 0);
            shares
                .map(|(index, share)| [SEEN_BY_OPPONENT[index], share])
                .collect()
        }
        None => (next.turn.actions(side).first())
            .map(|action| [SEEN_BY_OPPONENT[action.index(side)], u16::MAX])
            .into_iter()
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::GameRows;
    use crate::data::samples::{game, targets};
    use arimaa::rules::{Game, Piece};
    use engine::encoding::plane;
    use engine::record::{GameRecord, replay};
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
    fn the_pieces_that_will_be_captured_are_those_that_are_missing_at_the_end() {
        let mut captured_in_all = 0;
        for counter in 0..12 {
            let record = game(counter, 1_000);
            let (states, survivors) = follow(&record);
            let survivors: Vec<Square> = survivors.into_iter().map(|(_, name)| name).collect();
            let rows = GameRows::all(&record, targets(0.0)).unwrap();
            let mut replayed = replay(&record).unwrap();
            let end = record.to_game().unwrap();
            let rows_of_turns = replayed.iter_mut().flat_map(|turn| {
                let turns_rows = std::mem::take(&mut turn.rows);
                turns_rows.into_iter().map(|row| row.state)
            });
            for ((row, named), state) in rows.rows().zip(&states).zip(rows_of_turns) {
                let side = state.side();
                let (pieces, captures) = (row.input().pieces(), row.squares(Head::Captures));
                assert_eq!(pieces, state.board().occupied().seen_by(side).0);
                assert_eq!(captures & !pieces, 0);
                if state.phase() == arimaa::rules::Phase::Setup {
                    continue;
                }
                let gone = named.iter().filter(|(_, name)| !survivors.contains(name));
                let gone: Bitboard = gone.map(|(&square, _)| square).collect();
                assert_eq!(captures, gone.seen_by(side).0);
                // And another way: what is left of each kind.
                let captures = Bitboard(captures).seen_by(side);
                for piece in Piece::ALL {
                    let now = state.board().pieces(piece.side, piece.kind);
                    let left = end.position().board().pieces(piece.side, piece.kind);
                    assert_eq!((now & !captures).count(), left.count());
                }
                captured_in_all += gone.count();
            }
            // Gold's setup knows already which of its pieces will be lost.
            let gold = end.position().board().side(Side::Gold).count();
            let eighth = rows.rows().nth(7).unwrap();
            let placed = eighth.input().planes[plane::OWN..plane::ENEMY].iter();
            let placed: u32 = placed.map(|plane| plane.count_ones()).sum();
            assert_eq!(placed, 7);
            assert!(eighth.squares(Head::Captures).count_ones() <= 16 - gold);
        }
        assert!(captured_in_all > 1_000, "{captured_in_all}");
    }

    #[test]
    fn the_end_is_seen_by_the_mover_and_comes_nearer() {
        let record = game(3, 1_000);
        let Ending::Won(outcome) = record.ending else {
            panic!("{:?}", record.ending);
        };
        let game = GameRows::all(&record, targets(0.0)).unwrap();
        let mut rows = game.rows();
        for (index, turn) in record.turns.iter().enumerate() {
            let lost = outcome.winner != Side::ALL[index % 2];
            for row in rows.by_ref().take(turn.rows.len()) {
                let turns_left = (record.turns.len() - index) as f32;
                assert_eq!(row.number(Head::TurnsLeft), turns_left);
                let ending = row.class(Head::Ending);
                assert_eq!(ending >= 3, lost);
                assert_eq!(ending % 3, outcome.reason as u8);
                let weight = row.weight(RowWeight::Outcome);
                assert_eq!(weight, 1.0 / turn.rows.len() as f32);
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
        let targets = GameTargets::new(&replayed, options);
        let outcome = |turn: usize| targets.outcomes[turn];
        let gold = |turn: usize| match turn % 2 {
            0 => outcome(turn).value,
            _ => 1.0 - outcome(turn).value,
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
            assert_eq!(outcome(turn).value_weight, 1.0);
            assert_eq!(outcome(turn).outcome_weight, 0.0);
        }
        // The random turn itself has neither search nor result; behind it the result is one.
        assert_eq!(outcome(6).value_weight, 0.0);
        let won = f32::from(u8::from(record.ending.winner() == Some(Side::Gold)));
        for turn in 7..=last {
            assert_eq!((gold(turn), outcome(turn).outcome_weight), (won, 1.0));
        }
    }
}
