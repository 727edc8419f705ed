//! A turn to fall back on, from the rules alone: for a search that is held up before it has found anything.

use super::setups::known_setup;
use arimaa::notation::format_turn;
use arimaa::rules::{
    History, Phase, Position, StepState, TURN_STEPS, Turn, TurnEnumerator, goal_in,
};
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;

/// The turns that are looked at: a millisecond or two.
const FEW_TURNS: usize = 300;

/// A legal turn: one that reaches the goal, else one that doesn't let the enemy reach its own if there is one among some, else any. None
/// where there is no legal turn.
pub(super) fn turn_to_fall_back_on(position: &Position, history: &History) -> Option<String> {
    if position.phase() == Phase::Setup {
        let setup = known_setup(position, &mut ChaCha8Rng::seed_from_u64(0))?;
        return Some(format_turn(&Turn::Setup(setup), position));
    }
    if let Some(steps) = goal_in(&StepState::new(position), TURN_STEPS) {
        let turn = Turn::Steps(steps);
        if position.after_turn(&turn, history).is_ok() {
            return Some(format_turn(&turn, position));
        }
    }
    let mut enumerator = TurnEnumerator::new();
    let few = enumerator
        .enumerate_while(position, history, |turns| turns < FEW_TURNS)
        .0;
    let safe = few
        .iter()
        .take(FEW_TURNS)
        .find(|(end, _)| goal_in(&StepState::new(end), TURN_STEPS).is_none());
    if let Some((_, turn)) = safe.or_else(|| few.iter().next()) {
        return Some(format_turn(&turn, position));
    }
    let (_, turn) = enumerator.enumerate(position, history).iter().next()?;
    Some(format_turn(&turn, position))
}

#[cfg(test)]
mod tests {
    use super::*;
    use arimaa::notation::parse_turn;
    use arimaa::rules::Game;

    fn fall_back(position: &str) -> (Game, String) {
        let game = Game::from_position(position.parse().unwrap());
        let text = turn_to_fall_back_on(game.position(), game.history()).unwrap();
        (game, text)
    }

    #[test]
    fn it_is_legal_in_every_phase() {
        let mut game = Game::new();
        for _ in 0..40 {
            let text = turn_to_fall_back_on(game.position(), game.history()).unwrap();
            let turn = parse_turn(&text, game.position()).unwrap();
            game.play(&turn).unwrap();
            if game.outcome().is_some() {
                break;
            }
        }
        assert!(game.turns().len() > 2);
    }

    #[test]
    fn it_wins_at_once_and_does_not_lose_at_once() {
        let (_, text) =
            fall_back("g [        R                       r                               ]");
        assert_eq!(text, "Ra7n");
        // The horse has to stop the rabbit: shorter turns lose.
        let (mut game, text) =
            fall_back("g [r                   H                       r                  R]");
        let turn = parse_turn(&text, game.position()).unwrap();
        game.play(&turn).unwrap();
        let state = StepState::new(game.position());
        assert_eq!(goal_in(&state, TURN_STEPS), None, "{text}");
    }
}
