//! Step states of recorded games, on which a network's fast form is held against itself.
//!
//! The four games were played by this program with `material` for its evaluator and 64 evaluations a turn: three end with a
//! goal, one by elimination.

use arimaa::notation::{NotationError, parse_record};
use arimaa::rules::{Action, Game, History, StepState, Turn};
use engine::search::Query;

const GAMES: &str = include_str!("games.txt");

/// `count` step states, spread evenly over the games: setups, turn starts, and states inside turns, with pushes and pulls
/// pending among them. Fewer where the games have fewer (some 1,300).
pub(super) fn real_positions(count: usize) -> Result<Vec<Query>, NotationError> {
    let mut states = Vec::new();
    for text in GAMES.split("\n\n") {
        add_states(&parse_record(text)?, &mut states);
    }
    let all = states.len();
    let count = count.min(all);
    Ok((0..count)
        .map(|index| states[index * all / count])
        .collect())
}

/// Adds every step state of a game in which something was played.
fn add_states(game: &Game, out: &mut Vec<Query>) {
    let mut history = History::default();
    let mut position = *game.start();
    for turn in game.turns() {
        let repetitions = history.count(&position).saturating_sub(1);
        let mut state = StepState::new(&position);
        let end = matches!(turn, Turn::Steps(steps) if steps.len() < 4).then_some(Action::End);
        for action in turn.actions(state.side()).into_iter().chain(end) {
            out.push(Query {
                state,
                legal: state.legal_actions(&history),
                repetitions,
            });
            state = state.after(action);
        }
        position = position.after_turn_unchecked(turn);
        history.push(&position);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arimaa::rules::{Pending, Phase, Side};

    #[test]
    fn positions_of_every_kind_are_among_them() {
        for count in [64, 1_000] {
            let queries = real_positions(count).unwrap();
            assert_eq!(queries.len(), count);
            let share = |what: fn(&Query) -> bool| queries.iter().filter(|q| what(q)).count();
            assert!(share(|query| query.state.phase() == Phase::Setup) > 2);
            assert!(share(|query| query.state.steps_used() == 0) > count / 10);
            assert!(share(|query| query.state.steps_used() == 3) > count / 10);
            assert!(share(|query| matches!(query.state.pending(), Pending::Push { .. })) > 0);
            assert!(share(|query| matches!(query.state.pending(), Pending::Pull { .. })) > 0);
            assert!(share(|query| query.side() == Side::Silver) > count / 3);
            assert!(queries.iter().all(|query| query.legal.count() > 0));
        }
        assert!((1_000..2_000).contains(&real_positions(usize::MAX).unwrap().len()));
    }
}
