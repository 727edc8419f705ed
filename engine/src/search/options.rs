//! How a search is to be run.

pub use super::budget::Budget;

use crate::config::{
    AutoOr, GumbelConfig, PolicyTargetKind, PuctConfig, SearchConfig, SearchMode, SelfplayConfig,
};

/// The scale of the policy targets that matches compute and do not record: any value would do.
const MATCH_TARGET_VALUE_SCALE: f32 = 10.0;

/// The most evaluations for which mode `gumbel` plays better than `puct` (`engine/src/search/README.md`).
const MAX_GUMBEL_EVALUATIONS: u32 = 128;

/// Dirichlet noise in the priors.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Noise {
    /// Its share of the priors, 0 to 1.
    pub share: f32,
    /// Its concentration, spread evenly over the legal actions.
    pub concentration: f32,
}

/// How to search.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SearchOptions {
    /// How turns are found. Without a limit always by mode `puct`: there is nothing to halve by.
    pub mode: SearchMode,
    /// What the search may use up.
    pub budget: Budget,
    /// Selection below the root's turn, and inside it in mode `puct`.
    pub puct: PuctConfig,
    /// Mode `gumbel`. The candidates are at most as many as half the budget can sample, the beam at least as wide as they are many.
    pub gumbel: GumbelConfig,
    /// Mode `gumbel`: the scale of the Gumbel noise. 1 samples turns from the policy, 0 takes the likeliest.
    pub gumbel_noise: f32,
    /// Mode `puct`: the temperature of the draw of a turn from the visits; 0 takes the best by lower confidence bound.
    pub temperature: f32,
    /// Mode `puct`: the priors at the states of the root's turn are raised to 1 over this, and normalised.
    pub prior_temperature: f32,
    /// Mode `puct`: Dirichlet noise in the priors of all states of the root's turn, if wanted.
    pub noise: Option<Noise>,
    /// The policy target. In mode `gumbel` always the improved policy.
    pub policy_target: PolicyTargetKind,
    /// The improved policy target is `prior · exp(target_value_scale · q)`, normalised; `q` is a win probability.
    pub target_value_scale: f32,
    /// Whether goals and eliminations within a turn are looked for wherever one starts, and immobilizations at the root and
    /// behind the turns that the choice is among. Off, the search finds them as it finds all else, and no turn is tried for letting
    /// the enemy win.
    pub goal_solver: bool,
    /// How many distinct turns are tried with the goal solver before a turn that lets the opponent win at once is accepted; all
    /// where there is no limit.
    pub loss_proof_limit: Option<u32>,
    /// The most leaves of the tree that are in flight at once. With 1 a simulation begins when the one before is done, but for what
    /// mode `gumbel` always hands out together: a level of its beam, or one leaf a candidate. With more, simulations go down while
    /// others wait, and a batch has up to this many leaves, in mode `puct` one for each 32 visits of the root. The search then
    /// differs: it is a little weaker for the same evaluations, and one tree can use several cores or a GPU. What is decided still
    /// doesn't depend on the time or the order in which answers come. 0 counts as 1.
    pub parallel_leaves: u32,
    /// Whether states that several step orders or turns reach share one node. Off only to see what that changes.
    pub merges: bool,
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
                _ if budget.has_no_end() => SearchMode::Puct,
                AutoOr::Fixed(mode) => mode,
                AutoOr::Auto => stronger_mode(&budget),
            },
            budget,
            puct: config.puct,
            gumbel: config.gumbel,
            gumbel_noise: 0.0,
            temperature: 0.0,
            prior_temperature: 1.0,
            noise: None,
            policy_target: PolicyTargetKind::Improved,
            target_value_scale: MATCH_TARGET_VALUE_SCALE,
            goal_solver: config.goal_solver,
            loss_proof_limit: None,
            parallel_leaves: config.parallel_leaves.fixed().unwrap_or(1),
            merges: true,
        }
    }

    /// Play that explores, to learn from, with so many evaluations: the configured noise, and in mode `puct` draws at a temperature.
    pub fn exploring(config: &SelfplayConfig, evaluations: u32, temperature: f32) -> Self {
        let exploration = &config.exploration;
        let noise = Noise {
            share: exploration.dirichlet_share,
            concentration: exploration.dirichlet_concentration,
        };
        Self {
            prior_temperature: exploration.prior_temperature,
            noise: (noise.share > 0.0).then_some(noise),
            temperature,
            gumbel_noise: exploration.gumbel_noise,
            policy_target: config.targets.kind,
            target_value_scale: config.targets.value_scale,
            loss_proof_limit: Some(config.loss_proof_limit),
            ..Self::strongest(&config.search, evaluations)
        }
    }
}

/// The mode that plays better within a budget. By the clock the evaluations are unknown, and mostly more.
fn stronger_mode(budget: &Budget) -> SearchMode {
    match budget.most_visits() {
        Some(most) if most <= MAX_GUMBEL_EVALUATIONS => SearchMode::Gumbel,
        _ => SearchMode::Puct,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use std::time::Duration;

    #[test]
    fn the_mode_follows_the_budget_unless_it_is_fixed() {
        let with = |mode, budget| {
            let config = SearchConfig {
                mode,
                ..SearchConfig::default()
            };
            SearchOptions::strongest_within(&config, budget).mode
        };
        let timed = Budget {
            time: Some(Duration::from_secs(1)),
            ..Budget::unlimited()
        };
        let fixed = AutoOr::Fixed(SearchMode::Gumbel);
        for (budget, auto, gumbel) in [
            (
                Budget::evaluations(64),
                SearchMode::Gumbel,
                SearchMode::Gumbel,
            ),
            (Budget::visits(64), SearchMode::Gumbel, SearchMode::Gumbel),
            (
                Budget::evaluations(800),
                SearchMode::Puct,
                SearchMode::Gumbel,
            ),
            (timed, SearchMode::Puct, SearchMode::Gumbel),
            (Budget::unlimited(), SearchMode::Puct, SearchMode::Puct),
        ] {
            assert_eq!(with(AutoOr::Auto, budget), auto, "{budget:?}");
            assert_eq!(with(fixed, budget), gumbel, "{budget:?}");
        }
        assert_eq!(SearchConfig::default().mode, AutoOr::Auto);
    }

    #[test]
    fn exploring_play_is_the_strongest_but_for_its_noise_and_targets() {
        let mut config = Config::default().selfplay;
        config.exploration.dirichlet_share = 0.25;
        config.exploration.prior_temperature = 1.5;
        config.exploration.gumbel_noise = 0.5;
        let noise = Noise {
            share: 0.25,
            concentration: config.exploration.dirichlet_concentration,
        };
        let expected = SearchOptions {
            noise: Some(noise),
            prior_temperature: 1.5,
            gumbel_noise: 0.5,
            temperature: 0.7,
            policy_target: config.targets.kind,
            target_value_scale: config.targets.value_scale,
            loss_proof_limit: Some(config.loss_proof_limit),
            ..SearchOptions::strongest(&config.search, 20)
        };
        assert_eq!(SearchOptions::exploring(&config, 20, 0.7), expected);
        config.exploration.dirichlet_share = 0.0;
        assert_eq!(SearchOptions::exploring(&config, 20, 0.7).noise, None);
    }
}
