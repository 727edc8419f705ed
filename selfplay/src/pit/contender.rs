//! A side of a match: a player with the settings of its search.

use crate::line::Line;
use crate::player::{Player, PlayerName};
use anyhow::{Context, Result, anyhow, ensure};
use engine::config::{Config, ConfigError, SearchConfig};
use engine::search::SearchOptions;

/// Keys of section `search` that change nothing in a match: they are for exploring, and for what is learned.
const SELFPLAY_ALONE: [&str; 7] = [
    "search.lost_turn_checks",
    "search.prior_temperature",
    "search.noise_share",
    "search.noise_concentration",
    "search.policy_target",
    "search.target_value_scale",
    "search.gumbel_noise",
];

/// What is asked for one side on the command line.
#[derive(Debug, Clone, Copy)]
pub(super) struct Order<'a> {
    /// `a` or `b`: what its options begin with.
    pub(super) letter: char,
    pub(super) name: &'a PlayerName,
    /// Evaluations a turn, if they are this side's own.
    pub(super) evaluations: Option<u32>,
    /// Settings as given, `search.key=value`.
    pub(super) settings: &'a [String],
}

/// A player of a match.
#[derive(Debug)]
pub(super) struct Contender {
    pub(super) player: Player,
    /// As named on the command line.
    pub(super) name: String,
    /// How it searches; none for a player that doesn't.
    pub(super) search: Option<ContenderSearch>,
}

/// How a player of a match searches.
#[derive(Debug, Clone)]
pub(super) struct ContenderSearch {
    /// The settings that are its own, as given.
    pub(super) settings: Vec<String>,
    /// Everything, its evaluations a turn too.
    pub(super) config: SearchConfig,
}

impl Contender {
    /// Checks that the player can play as it is told to: `config` and `evaluations` hold where the order has nothing of its own.
    pub(super) fn new(
        order: Order,
        config: &Config,
        evaluations: u32,
        open: impl FnOnce(&PlayerName) -> Result<Player>,
    ) -> Result<Self> {
        let letter = order.letter;
        let search = if *order.name == PlayerName::Random {
            ensure!(
                order.settings.is_empty() && order.evaluations.is_none(),
                "--{letter}-set and --{letter}-evaluations are for players that search: `random` doesn't"
            );
            None
        } else {
            let mut config = search_config(order, config)?;
            config.evaluations = order.evaluations.unwrap_or(evaluations);
            Some(ContenderSearch {
                settings: order.settings.to_vec(),
                config,
            })
        };
        Ok(Self {
            player: open(order.name)?,
            name: order.name.to_string(),
            search,
        })
    }

    /// A line to its evaluator for one thread, and what to search with; nothing for a player that doesn't search.
    pub(super) fn searcher(&self) -> Result<Option<(Box<dyn Line>, SearchOptions)>> {
        let line = self.player.line(None)?;
        let options = self.search.as_ref().map(ContenderSearch::options);
        Ok(line.zip(options))
    }

    /// Whether its searches go on with what they found before.
    pub(super) fn reuses_tree(&self) -> bool {
        let search = self.search.as_ref();
        search.is_some_and(|search| search.config.reuse_tree)
    }

    /// What to call it while the match is played: with the settings that are its own.
    pub(super) fn label(&self) -> String {
        let name = self.player.short_name();
        match &self.search {
            Some(search) if !search.settings.is_empty() => {
                format!("{name} ({})", search.settings.join(", "))
            }
            _ => name,
        }
    }
}

impl ContenderSearch {
    fn options(&self) -> SearchOptions {
        SearchOptions::strongest(&self.config, self.config.evaluations)
    }
}

/// The configuration of a search, with the settings that an order has of its own.
fn search_config(order: Order, config: &Config) -> Result<SearchConfig> {
    let option = format!("--{}-set", order.letter);
    let mut config = config.clone();
    for setting in order.settings {
        let key = setting.split('=').next().unwrap_or_default().trim();
        ensure!(
            key.starts_with("search."),
            "{option} {setting}: a player has only keys of section `search` of its own, such as search.mode"
        );
        ensure!(
            key != "search.evaluations",
            "{option} {setting}: use --{}-evaluations",
            order.letter
        );
        ensure!(
            !SELFPLAY_ALONE.contains(&key),
            "{option} {setting}: this key is for self-play and changes nothing in a match"
        );
        config = config.with(setting).map_err(|error| match error {
            ConfigError::Set { setting, reason } => anyhow!("{option} {setting}: {reason}"),
            other => other.into(),
        })?;
    }
    config.validate().with_context(|| option)?;
    Ok(config.search)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn search_of(settings: &[&str]) -> Result<SearchConfig> {
        let settings: Vec<String> = settings.iter().map(|&setting| setting.into()).collect();
        let order = Order {
            letter: 'b',
            name: &PlayerName::Uniform,
            evaluations: None,
            settings: &settings,
        };
        search_config(order, &Config::default())
    }

    #[test]
    fn keys_that_change_nothing_in_a_match_are_the_refused_ones() {
        let options = |config: &SearchConfig| {
            let options = SearchOptions::strongest(config, 64);
            // What is learned changes no turn.
            SearchOptions {
                policy_target: engine::search::PolicyTarget::Visits,
                gumbel: engine::search::Gumbel {
                    target_value_scale: 0.0,
                    ..options.gumbel
                },
                ..options
            }
        };
        let usual = search_of(&[]).unwrap();
        for (key, other) in [
            ("mode", "puct"),
            ("memory_mib", "3"),
            ("parallel_leaves", "3"),
            ("lost_turn_checks", "3"),
            ("exploration", "3.0"),
            ("exploration_base", "3.0"),
            ("first_play_reduction", "0.7"),
            ("turns_left_weight", "0.7"),
            ("prior_temperature", "3.0"),
            ("noise_share", "0.7"),
            ("noise_concentration", "3.0"),
            ("min_turn_visits", "3"),
            ("policy_target", "visits"),
            ("target_value_scale", "3.0"),
            ("gumbel_candidates", "3"),
            ("gumbel_beam_width", "3"),
            ("gumbel_beam_value_scale", "3.0"),
            ("gumbel_visit_constant", "3.0"),
            ("gumbel_value_scale", "3.0"),
            ("gumbel_noise", "3.0"),
        ] {
            let setting = format!("search.{key}={other}");
            let changed = Config::default().with(&setting).unwrap().search;
            assert_ne!(changed, usual, "{setting}");
            let matters = options(&changed) != options(&usual);
            assert_eq!(search_of(&[&setting]).is_ok(), matters, "{setting}");
        }
        assert!(!search_of(&["search.reuse_tree=false"]).unwrap().reuse_tree);
    }

    #[test]
    fn faulty_settings_are_named_with_their_option() {
        for (setting, part) in [
            ("pit.max_turns=5", "only keys of section `search`"),
            ("mode=gumbel", "only keys of section `search`"),
            ("search.evaluations=5", "use --b-evaluations"),
            ("search.noise_share=0.5", "changes nothing in a match"),
            ("search.mood=5", "no key `search.mood`"),
            ("search.mode", "expected KEY=VALUE"),
            ("search.mode=best", "`gumbel`"),
            ("search.gumbel_candidates=0", "1 to 4096"),
        ] {
            let message = format!("{:#}", search_of(&[setting]).unwrap_err());
            assert!(message.starts_with("--b-set"), "{message}");
            assert!(message.contains(part), "{message}");
        }
    }
}
