//! Wins within one turn, found exactly: by goal, by taking the enemy's last rabbits, and by immobilization. Captures of any piece,
//! likewise.
//!
//! History plays no part: a turn that wins ends in a position that can't have stood before, since the game would have ended
//! there. So a step that begins such a turn is never forbidden by repetition.

mod capture;
mod elimination;
mod field;
mod immobilization;
mod race;

use super::action::Step;
use super::bitboard::Bitboard;
use super::board::Board;
use super::history::History;
use super::piece::{Kind, Side};
use super::position::{Phase, Position};
use super::state::{Pending, StepState, TURN_STEPS};
use super::turn::Steps;
use capture::Captures;
use field::{Field, Line, Move};

/// Steps after which the turn may end with a rabbit of the side to move on its goal rank: a shortest such sequence of at most
/// `steps` steps, and of no more than are left in the turn. No steps where the turn may end so already. `None` says that there is
/// no such sequence.
///
/// Exact from every state of play, inside a turn and inside a push or a pull too: pushes and pulls, freezing, traps, rabbits that
/// never step backward, and the change that a turn needs are all kept to. Every step is legal where it is made.
///
/// ```
/// use arimaa::rules::{StepState, goal_in};
/// // The cat stands before the rabbit until the dog pulls it away.
/// let position = arimaa::notation::parse_position("g [cD      R                      r                               R]")?;
/// let state = StepState::new(&position);
/// let steps = goal_in(&state, 4).ok_or("no goal")?;
/// assert_eq!(format!("{steps:?}"), "[b8s, a8e, a7n]");
/// assert_eq!(goal_in(&state, 2), None);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn goal_in(state: &StepState, steps: u8) -> Option<Steps> {
    if state.phase() == Phase::Setup {
        return None;
    }
    let side = state.side();
    let steps = steps.min(state.steps_left());
    let won_at_start = state.start().pieces(side, Kind::Rabbit) & Bitboard::goal(side);
    if has_goal(state, side) || !won_at_start.is_empty() {
        return shortest_end(state, steps, &|next| has_goal(next, side));
    }
    shortest(state, steps, race::in_exactly)
}

/// Steps with which the enemy of the side to move would reach its goal in a whole turn, if the side to move passed: a shortest
/// such turn. `None` if there is none, and in a setup.
///
/// ```
/// use arimaa::rules::goal_threat;
/// let position = arimaa::notation::parse_position("g [                                        r                      R]")?;
/// let steps = goal_threat(&position).ok_or("no threat")?;
/// assert_eq!(format!("{steps:?}"), "[a3s, a2s]");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn goal_threat(position: &Position) -> Option<Steps> {
    if position.phase() == Phase::Setup {
        return None;
    }
    let passed = Position::in_play(*position.board(), position.side().opponent());
    goal_in(&StepState::new(&passed), TURN_STEPS)
}

/// Steps after which the turn may end with all rabbits of the enemy taken: a shortest such sequence of at most `steps` steps, and
/// of no more than are left in the turn. That wins, even where the last own rabbit is lost on the way. No steps where the turn may
/// end so already.
///
/// Exact from every state of play; `None` says that there is no such sequence. An enemy with more than two rabbits needs no look:
/// each capture takes an enemy piece's step, and a turn has at most two of them.
///
/// ```
/// use arimaa::rules::{StepState, elimination_in};
/// let position = arimaa::notation::parse_position("g [                                 H       r                     R]")?;
/// let state = StepState::new(&position);
/// // The horse pushes the last rabbit into the trap on c3.
/// let steps = elimination_in(&state, 4).ok_or("no elimination")?;
/// assert_eq!(format!("{steps:?}"), "[b3e, b4s]");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn elimination_in(state: &StepState, steps: u8) -> Option<Steps> {
    if state.phase() == Phase::Setup {
        return None;
    }
    let side = state.side();
    let steps = steps.min(state.steps_left());
    let gone = |next: &StepState| rabbits(next, side.opponent()).is_empty();
    if rabbits(state, side.opponent()).count() > 2 {
        return None;
    }
    if gone(state) {
        return shortest_end(state, steps, &gone);
    }
    shortest(state, steps, elimination::within)
}

/// Steps after which the turn may end with the enemy unable to move, and so won, where no goal and no elimination decides it: a
/// shortest such sequence of at most `steps` steps, and of no more than are left in the turn. No steps where the turn may end so
/// already.
///
/// Exact from every state of play, as far as the board goes: turns that repetition forbids the enemy count as its own.
///
/// ```
/// use arimaa::rules::{StepState, immobilization_in};
/// // The horse has to come next to Silver's last piece to freeze it.
/// let position = arimaa::notation::parse_position("g [r        H                                                    R ]")?;
/// let steps = immobilization_in(&StepState::new(&position), 4).ok_or("it can move")?;
/// assert_eq!(format!("{steps:?}"), "[b7n]");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn immobilization_in(state: &StepState, steps: u8) -> Option<Steps> {
    if state.phase() == Phase::Setup {
        return None;
    }
    let side = state.side();
    let steps = steps.min(state.steps_left());
    let is_won = |board: &Board| immobilization::is_won(&Field::new(board, side));
    if is_won(state.board()) || is_won(state.start()) {
        return shortest_end(state, steps, &|next| is_won(next.board()));
    }
    immobilization::is_possible(&Field::new(state.board(), side), steps)
        .then(|| shortest(state, steps, immobilization::within))?
}

/// Steps that win the game within the turn, at most `steps` and no more than are left: those of [`goal_in`], else of
/// [`elimination_in`], else of [`immobilization_in`], each a shortest of its kind. `None` where none of the three finds a win.
///
/// ```
/// use arimaa::rules::{StepState, goal_in, win_in};
/// // No goal, but the horse pushes the last rabbit into the trap on c3.
/// let position = arimaa::notation::parse_position("g [                                 H       r                     R]")?;
/// let state = StepState::new(&position);
/// assert_eq!(goal_in(&state, 4), None);
/// let steps = win_in(&state, 4).ok_or("no win")?;
/// assert_eq!(format!("{steps:?}"), "[b3e, b4s]");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn win_in(state: &StepState, steps: u8) -> Option<Steps> {
    goal_in(state, steps)
        .or_else(|| elimination_in(state, steps))
        .or_else(|| immobilization_in(state, steps))
}

/// The enemy pieces that the side to move can capture within this turn, by the number of steps: element k holds the squares of those
/// that a sequence of at most k steps captures, after which the turn may end. Steps beyond those left in the turn add nothing. A
/// piece counts where it stands in this state, also if it is captured elsewhere. Nothing in a setup.
///
/// Exact from every state of play, inside a push or a pull too. History plays no part: no earlier position has as few pieces.
///
/// ```
/// use arimaa::rules::{StepState, captures};
/// // The horse on b4 can push the rabbit on b3 into the trap on c3.
/// let position = arimaa::notation::parse_position("g [r                                H       r                     R]")?;
/// let captured = captures(&StepState::new(&position));
/// assert_eq!(captured[1].count(), 0);
/// assert_eq!(format!("{:?} {:?}", captured[2], captured[4]), "{b3} {b3}");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn captures(state: &StepState) -> [Bitboard; TURN_STEPS as usize + 1] {
    if state.phase() == Phase::Setup || state.steps_left() == 0 {
        return Captures::default();
    }
    let (side, steps) = (state.side(), state.steps_left());
    let field = Field::new(state.board(), side);
    let mut found = Captures::default();
    // Adds what is captured after a pending step.
    let mut add = |after: Captures| {
        for (set, after) in found[1..].iter_mut().zip(after) {
            *set |= after;
        }
    };
    match state.pending() {
        Pending::Nothing => return capture::within(&field, steps).map(|set| set.seen_by(side)),
        Pending::Push { square, pushers } => {
            for piece in pushers.seen_by(side) {
                let step = Move::new(piece, square.seen_by(side));
                add(capture::within(&field.after_own(step), steps - 1));
            }
        }
        Pending::Pull { square, pulled } => {
            for piece in pulled.seen_by(side) {
                let step = Move::new(piece, square.seen_by(side));
                let next = field.after_enemy(step);
                let moved = field.enemy ^ step.from ^ step.to;
                let captured = moved & !next.enemy;
                add(capture::within(&next, steps - 1)
                    .map(|set| capture::before(set | captured, step)));
            }
            for (set, without) in found.iter_mut().zip(capture::within(&field, steps)) {
                *set |= without;
            }
        }
    }
    found.map(|set| set.seen_by(side))
}

/// The pieces of the side to move that its enemy could capture in a whole turn, if the side to move passed: by the number of
/// steps, as [`captures`]. Nothing in a setup.
///
/// ```
/// use arimaa::rules::capture_threats;
/// let position = arimaa::notation::parse_position("g [                                 h       R                     r]")?;
/// assert_eq!(format!("{:?}", capture_threats(&position)[2]), "{b3}");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn capture_threats(position: &Position) -> [Bitboard; TURN_STEPS as usize + 1] {
    if position.phase() == Phase::Setup {
        return Captures::default();
    }
    let passed = Position::in_play(*position.board(), position.side().opponent());
    captures(&StepState::new(&passed))
}

fn rabbits(state: &StepState, side: Side) -> Bitboard {
    state.board().pieces(side, Kind::Rabbit)
}

fn has_goal(state: &StepState, side: Side) -> bool {
    !(rabbits(state, side) & Bitboard::goal(side)).is_empty()
}

/// Finds a win on a field within so many steps, and puts its steps on the line.
type Solver = fn(&Field, u8, &mut Line) -> bool;

/// The shortest steps that a solver finds, at least one and at most `steps`.
fn shortest(state: &StepState, steps: u8, solve: Solver) -> Option<Steps> {
    let side = state.side();
    let field = Field::new(state.board(), side);
    let mut line = Line::new();
    let is_found = (1..=steps).any(|count| begin(state, &field, count, &mut line, solve));
    if !is_found {
        return None;
    }
    line.iter().rev().map(|step| step.step(side)).collect()
}

/// Makes the step that is pending, if one is, and has `solve` find the others.
fn begin(state: &StepState, field: &Field, steps: u8, line: &mut Line, solve: Solver) -> bool {
    let side = state.side();
    let (square, pieces, is_push) = match state.pending() {
        Pending::Nothing => return solve(field, steps, line),
        Pending::Push { square, pushers } => (square, pushers, true),
        Pending::Pull { square, pulled } => (square, pulled, false),
    };
    let to = Bitboard::of(square).seen_by(side);
    let is_found = pieces.seen_by(side).into_iter().any(|piece| {
        let step = Move {
            from: Bitboard::of(piece),
            to,
        };
        let next = if is_push {
            field.after_own(step)
        } else {
            field.after_enemy(step)
        };
        let is_found = solve(&next, steps - 1, line);
        if is_found {
            line.push(step);
        }
        is_found
    });
    is_found || (!is_push && solve(field, steps, line))
}

/// The shortest legal steps after which the turn may end as wanted, by trying everything. Meant for states in which hardly more
/// than any end of the turn is needed.
fn shortest_end(
    state: &StepState,
    steps: u8,
    wanted: &dyn Fn(&StepState) -> bool,
) -> Option<Steps> {
    (0..=steps).find_map(|count| {
        let mut line = Vec::new();
        end_in(state, count, wanted, &mut line).then(|| line.into_iter().rev().collect())
    })
}

fn end_in(
    state: &StepState,
    steps: u8,
    wanted: &dyn Fn(&StepState) -> bool,
    line: &mut Vec<Step>,
) -> bool {
    let history = History::default();
    if steps == 0 {
        return state.can_end(&history) && wanted(state);
    }
    state.legal_actions(&history).steps().any(|step| {
        let is_found = end_in(&state.after_step(step), steps - 1, wanted, line);
        if is_found {
            line.push(step);
        }
        is_found
    })
}
