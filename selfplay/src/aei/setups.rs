//! Setups that people play, for evaluators that are no judges of setups.

use arimaa::rules::{Kind, Phase, Position, Setup, Side};
use rand::Rng;
use rand::seq::IndexedRandom;

/// The rank in front and the home rank, from the a-file on. The first is the one that Toby Hudson (99of9) made known, the second
/// its variant with cats and dogs exchanged, both from `Setup_Positions` of the ArimaaWiki; the third and the fourth stand in the
/// examples of `AEI_PROTOCOL.md`.
const KNOWN: [&str; 4] = [
    "RHCEMCHR/RRRDDRRR",
    "RHDEMDHR/RRRCCRRR",
    "HDCMECDH/RRRRRRRR",
    "RHDMECHR/RRRDCRRR",
];

/// One of the known setups, or its mirror image. Silver's elephant stands on the wing of Gold's camel, where it is needed.
pub(super) fn known_setup<R: Rng>(position: &Position, rng: &mut R) -> Option<Setup> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use arimaa::rules::{Game, Turn};
    use rand::SeedableRng;
    use rand::rngs::ChaCha8Rng;
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
}
