//! Goals that need no search: a rabbit that walks there by itself.

use super::{
    Bitboard, Board, Direction, Kind, Pending, Phase, Side, Square, Step, StepState, Steps,
};

/// Steps of one rabbit of the side to move that take it to its goal rank within the steps left of this turn, all other pieces
/// staying where they are; no steps where a rabbit stands there already and the turn may end. The turn that goes on with them
/// wins the game.
///
/// `None` says that no rabbit can do it alone, not that there is no goal: clearing its way first, pushing, pulling and unfreezing
/// are not looked at.
///
/// ```
/// use engine::rules::{StepState, goal_run};
/// let position = engine::notation::parse_position("g [                R                          r                   R]")?;
/// let run = goal_run(&StepState::new(&position)).ok_or("no run")?;
/// assert_eq!(format!("{run:?}"), "[a6n, a7n]");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn goal_run(state: &StepState) -> Option<Steps> {
    if state.phase() == Phase::Setup || matches!(state.pending(), Pending::Push { .. }) {
        return None;
    }
    let side = state.side();
    let rabbits = state.board().pieces(side, Kind::Rabbit);
    if !(rabbits & Bitboard::goal(side)).is_empty()
        && state.steps_used() > 0
        && state.board() != state.start()
    {
        return Some(Steps::new());
    }
    let near = rabbits & within_reach(side, state.steps_left());
    if near.is_empty() {
        return None;
    }
    let free = near & !state.board().frozen(side);
    free.into_iter().find_map(|rabbit| {
        let mut steps = Steps::new();
        walk(state.board(), side, rabbit, state.steps_left(), &mut steps).then_some(steps)
    })
}

/// The squares from which a rabbit needs no more than so many steps to its goal rank, and at least one.
fn within_reach(side: Side, steps: u8) -> Bitboard {
    let mut reach = Bitboard::EMPTY;
    let mut ranks = Bitboard::goal(side);
    for _ in 0..steps {
        ranks = ranks.shift(Direction::South.seen_by(side));
        reach |= ranks;
    }
    reach
}

/// Takes the unfrozen rabbit on `from` on to its goal rank, if it gets there within `left` steps; `steps` then holds them.
fn walk(board: &Board, side: Side, from: Square, left: u8, steps: &mut Steps) -> bool {
    let distance = 7 - from.seen_by(side).rank();
    if distance == 0 {
        return true;
    }
    if distance > left {
        return false;
    }
    for direction in [
        Direction::North.seen_by(side),
        Direction::East,
        Direction::West,
    ] {
        let Some(to) = from
            .neighbour(direction)
            .filter(|&to| board.empty().contains(to))
        else {
            continue;
        };
        let mut next = *board;
        next.step(from, to);
        let arrived = next.side(side).contains(to);
        let stuck = next.frozen(side).contains(to) && !Bitboard::goal(side).contains(to);
        if !arrived || stuck {
            continue;
        }
        steps.push(Step::new(from, direction));
        if walk(&next, side, to, left - 1, steps) {
            return true;
        }
        steps.pop();
    }
    false
}

#[cfg(test)]
mod tests {
    use super::super::{History, Piece, Position};
    use super::*;
    use rand::rngs::ChaCha8Rng;
    use rand::{RngExt, SeedableRng};

    /// Any legal steps of one rabbit alone, by the rules' own generator.
    fn can_walk(state: &StepState, rabbit: Square) -> bool {
        let history = History::default();
        let arrived = Bitboard::goal(state.side()).contains(rabbit);
        let legal = state.legal_actions(&history);
        (arrived && state.can_end(&history))
            || legal
                .steps()
                .filter(|step| step.from == rabbit)
                .any(|step| {
                    let next = state.after_step(step);
                    step.to().is_some_and(|to| {
                        next.board().side(state.side()).contains(to) && can_walk(&next, to)
                    })
                })
    }

    #[test]
    fn runs_are_found_exactly_where_one_rabbit_can_win_alone() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let (mut found, mut missing) = (0, 0);
        for _ in 0..4_000 {
            let state = StepState::new(&random_position(&mut rng));
            // Inside a turn too: after each first step.
            let firsts: Vec<Step> = state.legal_actions(&History::default()).steps().collect();
            let inside = firsts
                .iter()
                .map(|&step| state.after_step(step))
                .filter(|next| matches!(next.pending(), Pending::Nothing));
            for state in std::iter::once(state).chain(inside.take(4)) {
                let rabbits = state.board().pieces(state.side(), Kind::Rabbit);
                let expected = rabbits.into_iter().any(|rabbit| can_walk(&state, rabbit));
                let run = goal_run(&state);
                assert_eq!(run.is_some(), expected, "{state:?}");
                match run {
                    Some(run) => {
                        found += 1;
                        check(&state, &run);
                    }
                    None => missing += 1,
                }
            }
        }
        assert!(found > 1_000 && missing > 1_000, "{found} {missing}");
    }

    /// Every step of a run is legal, and the turn that ends behind it wins.
    fn check(state: &StepState, run: &Steps) {
        let history = History::default();
        let end = run.iter().fold(*state, |state, &step| {
            assert_eq!(state.check_step(step, &history), Ok(()), "{state:?}");
            state.after_step(step)
        });
        assert!(end.can_end(&history));
        assert_eq!(
            end.end().outcome_on_board().map(|outcome| outcome.winner),
            Some(state.side())
        );
    }

    fn random_position(rng: &mut ChaCha8Rng) -> Position {
        loop {
            let side = if rng.random() {
                Side::Gold
            } else {
                Side::Silver
            };
            let count = rng.random_range(2..24);
            let pieces = (0..count).map(|_| {
                let kind = if rng.random_bool(0.4) {
                    Kind::Rabbit
                } else {
                    Kind::ALL[rng.random_range(0..6)]
                };
                let of = if rng.random() {
                    Side::Gold
                } else {
                    Side::Silver
                };
                (
                    Square::wrapping(rng.random_range(0..64)),
                    Piece::new(of, kind),
                )
            });
            let board: Board = pieces.collect();
            if let Ok(position) = Position::new(board, side)
                && position.outcome_on_board().is_none()
            {
                return position;
            }
        }
    }
}
