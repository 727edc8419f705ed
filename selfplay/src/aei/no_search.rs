//! Turns that need no search: known setups, and a turn from the rules alone to fall back on.

use arimaa::notation::format_turn;
use arimaa::rules::{
    History, Kind, Phase, Position, Setup, Side, StepState, TURN_STEPS, Turn, TurnEnumerator,
    goal_in,
};
use rand::rngs::ChaCha8Rng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

/// The rank in front and the home rank, from the a-file on. The first is the one that Toby Hudson (99of9) made known, the second
/// its variant with cats and dogs exchanged, both from `Setup_Positions` of the ArimaaWiki; the third and the fourth stand in the
/// examples of `AEI_PROTOCOL.md`.
const KNOWN: [&str; 4] = [
    "RHCEMCHR/RRRDDRRR",
    "RHDEMDHR/RRRCCRRR",
    "HDCMECDH/RRRRRRRR",
    "RHDMECHR/RRRDCRRR",
];

/// One of the known setups, or its mirror image: a setup that people play. Silver's elephant is placed on the wing of Gold's camel.
pub(crate) fn known_setup<R: Rng>(position: &Position, rng: &mut R) -> Option<Setup> {
    if position.phase() != Phase::Setup {
        return None;
    }
    let setups = KNOWN.iter().filter_map(|text| text.parse::<Setup>().ok());
    let mut choices: Vec<Setup> = setups.flat_map(|setup| [setup.mirror(), setup]).collect();
    let camel = position.board().pieces(Side::Gold, Kind::Camel);
    if position.side() == Side::Silver
        && let Some(camel) = camel.into_iter().next()
    {
        let faces = |setup: &Setup| {
            let mut elephants = setup
                .pieces(Side::Silver)
                .filter(|(_, piece)| piece.kind == Kind::Elephant);
            elephants.all(|(square, _)| (square.file() < 4) == (camel.file() < 4))
        };
        choices.retain(faces);
    }
    choices.choose(rng).cloned()
}

/// Turns that are checked, in a millisecond or two.
const FEW_TURNS: usize = 300;

/// A legal turn for a search that is held up before it has found any: one that reaches the goal, else one of some turns that doesn't
/// let the opponent reach its goal, else any. None if there is no legal turn.
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
    use std::collections::BTreeSet;

    #[test]
    fn all_known_setups_are_setups_and_are_played() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let mut seen = BTreeSet::new();
        for _ in 0..200 {
            let mut game = Game::new();
            for side in Side::ALL {
                let setup = known_setup(game.position(), &mut rng).unwrap();
                seen.insert((side.letter(), setup.to_string()));
                game.play(&Turn::Setup(setup)).unwrap();
            }
            let file = |side, kind| {
                let pieces = game.position().board().pieces(side, kind);
                pieces.into_iter().next().unwrap().file()
            };
            assert_eq!(
                file(Side::Silver, Kind::Elephant) < 4,
                file(Side::Gold, Kind::Camel) < 4
            );
            assert_eq!(known_setup(game.position(), &mut rng), None);
        }
        assert_eq!(seen.len(), 4 * KNOWN.len(), "both images by both sides");
    }

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
