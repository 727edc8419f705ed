//! The random numbers of a game, and the plan that is drawn before it begins.

use arimaa::rules::Side;
use engine::config::SelfplayConfig;
use engine::record::GameId;
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

/// The random numbers of a part of a game. Each game has its own stream, and each turn its own place in it: a resumed game draws the
/// same numbers as an uninterrupted one.
pub(crate) fn random_numbers(seed: u64, id: GameId, part: Part) -> ChaCha8Rng {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(u64::from(id.generator) << 40 ^ id.counter);
    let place = match part {
        Part::GamePlan => 0,
        Part::Start => 1,
        Part::Turn(turn) => 2 + turn as u128,
    };
    rng.set_word_pos(place << 32);
    rng
}

/// A use of random numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// The game's [`GamePlan`].
    GamePlan,
    /// Where it starts.
    Start,
    /// The turn of this number, from 0.
    Turn(usize),
}

/// The plan of a game, which the seed and the game's id determine.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct GamePlan {
    /// Turns after the given ones that are drawn from the policy alone.
    pub(crate) policy_turns: usize,
    /// The side with a handicap, if there is one.
    pub(crate) weaker: Option<Side>,
    /// Whether it is played to its end in spite of a resignation.
    pub(crate) is_played_out: bool,
}

impl GamePlan {
    /// The plan of a game. Everything is always drawn, so that no key changes the draws of another.
    pub(crate) fn draw(config: &SelfplayConfig, seed: u64, id: GameId) -> Self {
        let mut rng = random_numbers(seed, id, Part::GamePlan);
        let mut happens = |share: f32| rng.random::<f32>() < share;
        let by_policy = happens(config.openings.policy_share);
        let has_handicap = happens(config.handicap.share);
        let weaker = if happens(0.5) {
            Side::Gold
        } else {
            Side::Silver
        };
        let is_played_out = happens(config.resignation.played_out_share);
        let policy_turns = rng.random_range(1..=config.openings.policy_turns);
        Self {
            policy_turns: if by_policy { policy_turns as usize } else { 0 },
            weaker: has_handicap.then_some(weaker),
            is_played_out,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::config::Config;
    use std::collections::HashSet;

    fn id(generator: u32, counter: u64) -> GameId {
        GameId { generator, counter }
    }

    #[test]
    fn shares_are_kept_and_keys_are_independent() {
        let mut config = Config::default().selfplay;
        config.resignation.played_out_share = 0.25;
        config.openings.policy_turns = 6;
        config.openings.policy_share = 0.0;
        config.handicap.share = 0.0;
        let draw = |config: &SelfplayConfig| -> Vec<GamePlan> {
            (0..4_000)
                .map(|counter| GamePlan::draw(config, 7, id(2, counter)))
                .collect()
        };
        let off = draw(&config);
        assert!(
            off.iter()
                .all(|plan| plan.policy_turns == 0 && plan.weaker.is_none())
        );
        let played_out = off.iter().filter(|plan| plan.is_played_out).count();
        assert!((900..1_100).contains(&played_out), "{played_out} of 4,000");
        config.openings.policy_share = 0.5;
        config.handicap.share = 1.0;
        let on = draw(&config);
        let of_both = || on.iter().zip(&off);
        assert!(of_both().all(|(on, off)| on.is_played_out == off.is_played_out));
        let gold = on
            .iter()
            .filter(|plan| plan.weaker == Some(Side::Gold))
            .count();
        assert!((1_850..2_150).contains(&gold), "{gold} of 4,000");
        let lengths: HashSet<usize> = on.iter().map(|plan| plan.policy_turns).collect();
        assert_eq!(lengths, (0..=6).collect());
        let none = on.iter().filter(|plan| plan.policy_turns == 0).count();
        assert!((1_850..2_150).contains(&none), "{none} of 4,000");
    }

    #[test]
    fn each_part_of_each_game_has_its_own_numbers() {
        let parts = [
            Part::GamePlan,
            Part::Start,
            Part::Turn(0),
            Part::Turn(1),
            Part::Turn(99_999),
        ];
        let ids = [id(0, 0), id(0, 1), id(1, 0), id(99_999, 7)];
        let drawn: HashSet<u64> = ids
            .iter()
            .flat_map(|&id| parts.map(|part| random_numbers(3, id, part).random::<u64>()))
            .collect();
        assert_eq!(drawn.len(), parts.len() * ids.len());
    }

    #[test]
    fn the_numbers_are_pinned() {
        let mut rng = random_numbers(5, id(1, 2), Part::Turn(3));
        let drawn: [u32; 3] = std::array::from_fn(|_| rng.random());
        assert_eq!(drawn, [448_116_978, 1_496_007_361, 4_246_123_770]);
    }
}
