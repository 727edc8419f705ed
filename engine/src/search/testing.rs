//! What the tests of the search try it with: evaluators that know nothing and yet have an opinion, and random positions.

use super::modes::Strategy;
use super::{
    Evaluation, Evaluations, Evaluator, EvaluatorError, Noise, Query, Search, SearchOptions,
};
use crate::config::{SearchConfig, SearchMode};
use arimaa::rules::{
    Action, Board, Game, History, Kind, Phase, Piece, Position, Side, Square, StepState, Steps,
    Turn, TurnEnumerator,
};
use rand::RngExt;
use rand::rngs::ChaCha8Rng;
use rand::seq::{IndexedRandom, IteratorRandom};

/// Options of play to learn from: noise, temperature 1, a limited proof of losses.
pub(super) fn learning(mode: SearchMode, evaluations: u32) -> SearchOptions {
    SearchOptions {
        mode,
        temperature: 1.0,
        gumbel_noise: 1.0,
        noise: Some(Noise {
            share: 0.25,
            concentration: 10.0,
        }),
        loss_proof_limit: Some(20_000),
        ..SearchOptions::strongest(&SearchConfig::default(), evaluations)
    }
}

/// The visits that a finished search has counted. None where it is fewer than there were, and no step is final: those that were
/// made final have been taken back, as their turn loses, and the simulations below them have left no count.
pub(super) fn counted_visits(search: &Search) -> Option<u32> {
    match search.strategy() {
        Strategy::Puct(turn) => {
            let state = search.state();
            let below = turn.started_below().next().map_or(0, |(_, visits)| visits);
            let counted = 1 + state.tree.edge_visits(state.root) + below;
            let visits = search.decision().unwrap().visits;
            (below > 0 || counted >= visits).then_some(counted)
        }
        Strategy::Gumbel(turn) => Some(turn.candidates().iter().map(|one| one.visits).sum()),
    }
}

/// Values and priors drawn from a hash of the state, so that a state is always judged the same.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Hashed {
    /// Said of every state in place of what the hash says.
    pub(super) value: Option<f32>,
}

impl Hashed {
    /// The value (win probability of Gold) of a state, and the priors of its legal actions.
    pub(super) fn judge(self, state: &StepState, count: usize) -> (f32, Vec<f32>) {
        let key = state.key();
        let value = 0.1 + 0.8 * unit(key) as f32;
        let weights: Vec<f64> = (1..=count as u64)
            .map(|place| (3.0 * unit(key ^ (place << 40))).exp())
            .collect();
        let sum: f64 = weights.iter().sum();
        let priors = weights.iter().map(|weight| (weight / sum) as f32);
        (self.value.unwrap_or(value), priors.collect())
    }
}

impl Evaluator for Hashed {
    fn name(&self) -> &str {
        "hashed"
    }

    fn evaluate(&mut self, queries: &[Query], out: &mut Evaluations) -> Result<(), EvaluatorError> {
        out.clear();
        for query in queries {
            let (value, priors) = self.judge(&query.state, query.legal.count());
            out.push(value, priors);
        }
        Ok(())
    }
}

/// A number from 0 to 1 for a key: the finaliser of SplitMix64 (Steele, Lea and Flood 2014).
fn unit(key: u64) -> f64 {
    let mut bits = key.wrapping_add(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    (bits ^ bits >> 31) as f64 / u64::MAX as f64
}

/// Answers the requested leaves; says whether there were any.
pub(super) fn answer(
    search: &mut Search,
    evaluator: Hashed,
    history: &History,
    rng: &mut ChaCha8Rng,
) -> bool {
    let asked: Vec<(f32, Vec<f32>)> = search
        .leaves(history, rng)
        .iter()
        .map(|query| evaluator.judge(&query.state, query.legal.count()))
        .collect();
    for (index, (value, priors)) in asked.iter().enumerate() {
        let evaluation = Evaluation {
            value: *value,
            priors,
        };
        search.answer(index, "hashed", evaluation).unwrap();
    }
    !asked.is_empty()
}

/// A position of a list of pieces: `Ra1 rh8`.
pub(super) fn position(side: Side, pieces: &str) -> Position {
    let board: Board = pieces
        .split_whitespace()
        .map(|word| {
            let piece = Piece::from_letter(word.chars().next().unwrap()).unwrap();
            (word[1..].parse::<Square>().unwrap(), piece)
        })
        .collect();
    Position::new(board, side).unwrap()
}

/// The history of a game that starts in a position.
pub(super) fn history_of(position: &Position) -> History {
    Game::from_position(*position).history().clone()
}

/// A random position of a few pieces with at most so many distinct turns, in which the mover has neither goal nor elimination. Each
/// side has a rabbit in its own half.
pub(super) fn few_turns(most: usize, rng: &mut ChaCha8Rng) -> Position {
    loop {
        let mut board = Board::EMPTY;
        for side in Side::ALL {
            let near = Square::all().filter(|square| square.seen_by(side).rank() < 4);
            board.put(near.choose(rng).unwrap(), Piece::new(side, Kind::Rabbit));
        }
        for _ in 0..rng.random_range(0..4) {
            let side = *Side::ALL.choose(rng).unwrap();
            let square = board.empty().into_iter().choose(rng).unwrap();
            board.put(square, Piece::new(side, *Kind::ALL.choose(rng).unwrap()));
        }
        for side in Side::ALL {
            for trap in board.unsupported(side) {
                board.take(trap);
            }
        }
        let side = *Side::ALL.choose(rng).unwrap();
        let Ok(position) = Position::new(board, side) else {
            continue;
        };
        let history = history_of(&position);
        if position.phase() != Phase::Play || position.outcome(&history).is_some() {
            continue;
        }
        let turns = TurnEnumerator::new().enumerate(&position, &history).len();
        if turns <= most && super::tree::decided(&StepState::new(&position)).is_none() {
            return position;
        }
    }
}

/// A random game of so many turns, setups included, or fewer where it ends before.
pub(super) fn random_game(turns: usize, rng: &mut ChaCha8Rng) -> Game {
    let mut game = Game::new();
    while game.turns().len() < turns && game.outcome().is_none() {
        let turn = random_turn(game.position(), game.history(), rng);
        game.play(&turn).unwrap();
    }
    game
}

/// A random legal turn.
pub(super) fn random_turn(position: &Position, history: &History, rng: &mut ChaCha8Rng) -> Turn {
    let mut state = StepState::new(position);
    let mut actions = Vec::new();
    while !state.is_complete() {
        let legal = state.legal_actions(history);
        let action = legal.in_index_order(state.side()).choose(rng).unwrap();
        if action == Action::End {
            break;
        }
        actions.push(action);
        state = state.after(action);
    }
    Turn::from_actions(&actions, position).unwrap_or_else(|| Turn::Steps(Steps::new()))
}
