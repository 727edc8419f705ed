//! The best turns by a network's policy alone.

use super::error::{ApiError, ApiResult};
use super::players::Players;
use super::rules::GameText;
use super::search_messages::MEMORY_MIB;
use crate::worker::batch::search_to_end;
use engine::config::{AutoOr, GumbelConfig, SearchConfig, SearchMode};
use engine::search::{Budget, Search, SearchOptions};
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;
use serde::{Deserialize, Serialize};

/// The most turns of an answer.
const MAX_TURNS: u32 = 16;

/// The prefixes of turns that are followed at each step.
const BEAM_WIDTH: u32 = 48;

/// As many as that beam and the turns need ([`SearchOptions::gumbel`]).
const EVALUATIONS: u32 = 2 * (1 + 3 * BEAM_WIDTH + MAX_TURNS);

/// `POST /api/policy`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PolicyRequest {
    game: GameText,
    player: String,
    #[serde(default = "usual_turns")]
    turns: u32,
}

fn usual_turns() -> u32 {
    3
}

/// The answer to it, the likeliest turn first.
#[derive(Debug, Serialize)]
pub(super) struct PolicyAnswer {
    turns: Vec<PolicyTurn>,
}

#[derive(Debug, Serialize)]
struct PolicyTurn {
    turn: String,
    /// The probability of the turn, all orders of its steps that were followed together.
    prior: f64,
}

impl PolicyRequest {
    /// Finds the turns by a beam of the policy's likeliest prefixes.
    pub(super) fn answer(&self, players: &Players) -> ApiResult<PolicyAnswer> {
        if !(1..=MAX_TURNS).contains(&self.turns) {
            return Err(ApiError::wrong(format!(
                "`turns` must be a number from 1 to {MAX_TURNS}"
            )));
        }
        let game = self.game.unfinished_game()?;
        // The policy alone: neither goals nor losses are looked for.
        let config = SearchConfig {
            mode: AutoOr::Fixed(SearchMode::Gumbel),
            gumbel: GumbelConfig {
                candidates: AutoOr::Fixed(MAX_TURNS),
                beam_width: AutoOr::Fixed(BEAM_WIDTH),
                beam_value_scale: 0.0,
                ..players.search().gumbel
            },
            goal_solver: false,
            ..*players.search()
        };
        let budget = Budget {
            memory_mib: config.memory_mib.min(MEMORY_MIB),
            ..Budget::evaluations(EVALUATIONS)
        };
        let options = SearchOptions::strongest_within(&config, budget);
        let search = Search::new(game.position(), game.history(), options);
        let mut search = search.map_err(ApiError::failed)?;
        // The same position has the same answer.
        let mut rng = ChaCha8Rng::seed_from_u64(0);
        players.with(&self.player, |evaluator| {
            search_to_end(&mut search, evaluator, game.history(), &mut rng, |_| ())
        })?;
        let found = search.report(MAX_TURNS as usize).turns.into_iter();
        let mut turns: Vec<PolicyTurn> = found
            .filter_map(|found| {
                let (turn, prior) = (found.turn, found.prior?);
                Some(PolicyTurn { turn, prior })
            })
            .collect();
        turns.sort_by(|one, other| other.prior.total_cmp(&one.prior));
        turns.truncate(self.turns as usize);
        Ok(PolicyAnswer { turns })
    }
}
