//! How a search is to be run.

pub use super::budget::Budget;
pub use super::root_priors::Noise;

use crate::config::{PolicyTargetKind, SearchConfig, SearchMode};

/// How to search.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SearchOptions {
    /// How turns are found.
    pub mode: Mode,
    /// What the search may use up.
    pub budget: Budget,
    /// Selection below the root's turn, and inside it in mode `puct`.
    pub puct: Puct,
    /// Mode `gumbel`'s own options.
    pub gumbel: Gumbel,
    /// Mode `puct`: whole turns are drawn once complete ones hold this many visits; until then step by step.
    pub min_turn_visits: u32,
    /// Mode `puct`: the temperature of these draws; 0 takes the best by lower confidence bound.
    pub temperature: f32,
    /// Mode `puct`: the priors at the states of the root's turn are raised to 1 over this, and normalised.
    pub prior_temperature: f32,
    /// Mode `puct`: Dirichlet noise in the priors of all states of the root's turn, if wanted.
    pub noise: Option<Noise>,
    /// What the decision says that the policy should have been. In mode `gumbel` always the improved policy.
    pub policy_target: PolicyTarget,
    /// Whether goals and eliminations within a turn are looked for wherever one starts. Off, the search finds them as it finds all
    /// else, and no turn is tried for letting the enemy win.
    pub goal_solver: bool,
    /// How many distinct turns are tried with the goal solver before a turn that lets the enemy win at once is accepted; all
    /// where there is no limit.
    pub lost_turn_checks: Option<u32>,
    /// The most leaves of the tree that are in flight at once. With 1 a simulation begins when the one before is done, but for what
    /// mode `gumbel` always hands out together: a level of its beam, or one leaf a candidate. With more, simulations go down while
    /// others wait, up to this many leaves make a batch, and no batch is larger: the search is another one then, a little weaker for
    /// the same evaluations, and one tree can use several cores or a GPU. What is decided still doesn't depend on the time or the
    /// order in which answers come. 0 counts as 1.
    pub parallel_leaves: u32,
    /// Whether states that several step orders or turns reach share one node. Off only to see what that changes.
    pub merges: bool,
}

/// How turns are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Simulations go down step by step; the turn is drawn from their flow.
    Puct,
    /// Whole turns are sampled from the policy and compared by sequential halving.
    Gumbel,
}

/// How edges are selected on the way down.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Puct {
    /// The exploration factor at few visits, for values of 0 to 1.
    pub exploration: f32,
    /// The visits at which the exploration factor has grown by ln 2.
    pub exploration_base: f32,
    /// How much lower than its state's an unvisited step's value is assumed.
    pub first_play_reduction: f32,
}

/// How mode `gumbel` samples and compares whole turns.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gumbel {
    /// The most candidates; by the budget where there is no number: its square root. Never more than half the budget can sample.
    /// In a setup half of them.
    pub candidates: Option<u32>,
    /// The beam's width, at least the number of candidates; where there is no number, as wide as half the budget allows.
    pub beam_width: Option<u32>,
    /// Visits that are added to those of the most visited candidate in σ.
    pub visit_constant: f32,
    /// What σ is scaled with: `σ(q) = (visit_constant + most visits) · value_scale · q`.
    pub value_scale: f32,
    /// σ of the policy targets: `σ(q) = target_value_scale · q`.
    pub target_value_scale: f32,
    /// What the value of a prefix weighs, for what follows it, beside the perturbed logarithm of the probability. 0 samples turns
    /// from the policy exactly.
    pub beam_value_scale: f32,
    /// The scale of the Gumbel noise: 1 samples turns from the policy, 0 takes the likeliest ones.
    pub noise: f32,
}

/// What a policy learns from a search.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum PolicyTarget {
    /// The shares of the visits.
    Visits,
    /// The priors (without noise), each times the exponential of its action's value: the improved policy of completed values.
    Improved {
        /// What a win probability of 1 weighs in the exponent.
        value_scale: f32,
    },
}

impl SearchOptions {
    /// The strongest play with so many evaluations: no noise, temperature 0, no turn that loses at once while there is another.
    pub fn strongest(config: &SearchConfig, evaluations: u32) -> Self {
        let budget = Budget {
            memory_mib: config.memory_mib,
            ..Budget::evaluations(evaluations)
        };
        Self::strongest_within(config, budget)
    }

    /// The strongest play within a budget, its memory included.
    pub fn strongest_within(config: &SearchConfig, budget: Budget) -> Self {
        Self {
            mode: match config.mode {
                SearchMode::Puct => Mode::Puct,
                SearchMode::Gumbel => Mode::Gumbel,
                SearchMode::Auto => Mode::best_within(&budget),
            },
            budget,
            puct: Puct {
                exploration: config.exploration,
                exploration_base: config.exploration_base,
                first_play_reduction: config.first_play_reduction,
            },
            gumbel: Gumbel {
                candidates: config.gumbel_candidates.number(),
                beam_width: config.gumbel_beam_width.number(),
                visit_constant: config.gumbel_visit_constant,
                value_scale: config.gumbel_value_scale,
                target_value_scale: config.target_value_scale,
                beam_value_scale: config.gumbel_beam_value_scale,
                noise: 0.0,
            },
            min_turn_visits: config.min_turn_visits,
            temperature: 0.0,
            prior_temperature: 1.0,
            noise: None,
            policy_target: match config.policy_target {
                PolicyTargetKind::Visits => PolicyTarget::Visits,
                PolicyTargetKind::Improved => PolicyTarget::Improved {
                    value_scale: config.target_value_scale,
                },
            },
            goal_solver: config.goal_solver,
            lost_turn_checks: None,
            parallel_leaves: config.parallel_leaves.number().unwrap_or(1),
            merges: true,
        }
    }

    /// Play that explores, to learn from: the configured budget and noise, and in mode `puct` draws at a temperature.
    pub fn exploring(config: &SearchConfig, temperature: f32) -> Self {
        Self::exploring_with(config, config.evaluations, temperature)
    }

    /// Play that explores, to learn from, with so many evaluations: the configured noise, and in mode `puct` draws at a temperature.
    pub fn exploring_with(config: &SearchConfig, evaluations: u32, temperature: f32) -> Self {
        let noise = Noise {
            share: config.noise_share,
            concentration: config.noise_concentration,
        };
        Self {
            prior_temperature: config.prior_temperature,
            noise: (noise.share > 0.0).then_some(noise),
            ..Self::fast(config, evaluations, temperature, config.gumbel_noise)
        }
    }

    /// Play that gets a game on between the turns that are learned from (playout cap randomisation: Wu 2019, "Accelerating Self-Play
    /// Learning in Go", section 3.1): so many evaluations, and the evaluator's priors as they are, without noise and temperature. What is
    /// left to chance is the draw of the turn: in mode `puct` at `temperature`, in mode `gumbel` by the scale of the Gumbel noise. Mode
    /// `auto` is `puct` here, the better teacher by far (`configs/README.md`).
    /// For such a turn a search may [`go_on`](super::Search::go_on), whatever it searched with before.
    pub fn fast(
        config: &SearchConfig,
        evaluations: u32,
        temperature: f32,
        gumbel_noise: f32,
    ) -> Self {
        let strongest = Self::strongest(config, evaluations);
        Self {
            mode: match config.mode {
                SearchMode::Puct | SearchMode::Auto => Mode::Puct,
                SearchMode::Gumbel => Mode::Gumbel,
            },
            temperature,
            gumbel: Gumbel {
                noise: gumbel_noise,
                ..strongest.gumbel
            },
            lost_turn_checks: Some(config.lost_turn_checks),
            ..strongest
        }
    }
}

impl Mode {
    /// The mode that plays better within a budget, as far as that was measured with `material`: `gumbel` at 64 and at 1,024 evaluations,
    /// with no difference to be seen at 256 (`engine/src/search/README.md`, where a network plays better by `puct` from 200 on).
    /// Without an end there is nothing to halve by: `puct`.
    pub fn best_within(budget: &Budget) -> Self {
        if budget.has_no_end() {
            Self::Puct
        } else {
            Self::Gumbel
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn auto_teaches_by_puct_and_plays_by_gumbel() {
        let modes = |mode| {
            let config = SearchConfig {
                mode,
                ..SearchConfig::default()
            };
            [
                SearchOptions::strongest(&config, 64).mode,
                SearchOptions::exploring(&config, 1.0).mode,
                SearchOptions::fast(&config, 64, 1.0, 0.5).mode,
            ]
        };
        let (puct, gumbel) = (Mode::Puct, Mode::Gumbel);
        assert_eq!(modes(SearchMode::Auto), [gumbel, puct, puct]);
        assert_eq!(modes(SearchMode::Puct), [puct; 3]);
        assert_eq!(modes(SearchMode::Gumbel), [gumbel; 3]);
    }

    #[test]
    fn fast_turns_keep_the_priors_and_draw_at_what_they_are_given() {
        let config = SearchConfig {
            noise_share: 0.25,
            prior_temperature: 1.5,
            gumbel_noise: 1.0,
            ..SearchConfig::default()
        };
        let fast = SearchOptions::fast(&config, 20, 0.7, 0.3);
        assert_eq!((fast.noise, fast.prior_temperature), (None, 1.0));
        assert_eq!((fast.temperature, fast.gumbel.noise), (0.7, 0.3));
        assert_eq!(fast.budget, SearchOptions::strongest(&config, 20).budget);
        let full = SearchOptions::exploring_with(&config, 20, 0.7);
        let noise = Noise {
            share: 0.25,
            concentration: config.noise_concentration,
        };
        let expected = SearchOptions {
            noise: Some(noise),
            prior_temperature: 1.5,
            gumbel: Gumbel {
                noise: 1.0,
                ..fast.gumbel
            },
            ..fast
        };
        assert_eq!(full, expected);
        let configured = SearchOptions::exploring(&config, 0.7);
        assert_eq!(
            configured,
            SearchOptions::exploring_with(&config, config.evaluations, 0.7)
        );
    }
}
