//! A player of a match, with the settings of its own.

use super::engines::{EngineOrder, TimeControl};
use super::order::{PlayerOrder, Source};
use crate::line::Line;
use crate::output;
use crate::place::Place;
use crate::player::{Player, PlayerName};
use anyhow::{Context, Result, anyhow, bail, ensure};
use engine::config::{Config, ConfigError, SearchConfig};
use engine::search::{Budget, SearchOptions};
use std::time::Duration;

/// What holds for all players that have nothing of their own.
#[derive(Debug, Clone, Copy)]
pub(super) struct Defaults<'a> {
    pub(super) config: &'a Config,
    /// Evaluations a turn.
    pub(super) evaluations: Option<u32>,
    /// Of engines of others.
    pub(super) clock: Option<TimeControl>,
    pub(super) place: &'a Place,
}

/// A player of a match.
#[derive(Debug)]
pub(super) struct Contender {
    pub(super) player: Player,
    /// As named on the command line.
    pub(super) named: String,
    /// What to call it: the name that it was given, or else its own with the settings that it has of its own.
    pub(super) label: String,
    /// Whether that is a name that it was given.
    pub(super) is_named: bool,
    pub(super) way: Way,
}

/// How a player comes to its turns.
#[derive(Debug, Clone)]
pub(super) enum Way {
    /// By a search.
    Search(ContenderSearch),
    /// By its network's policy alone, action by action.
    Policy {
        /// 0 takes the likeliest action each time, 1 draws from the policy as it is.
        temperature: f32,
    },
    /// Any legal step is as likely as any other.
    Random,
    /// By another program.
    Engine(EngineOrder),
}

/// How a player of a match searches.
#[derive(Debug, Clone)]
pub(super) struct ContenderSearch {
    /// The settings that are its own, as given.
    pub(super) settings: Vec<String>,
    /// Everything but its budget.
    pub(super) config: SearchConfig,
    /// Evaluations a turn, if they are limited.
    pub(super) evaluations: Option<u32>,
    /// Time a turn, if it is limited.
    pub(super) time: Option<Duration>,
}

impl Contender {
    /// Checks that player `index` of a match can play as it is told to, and opens it.
    pub(super) fn new(
        index: usize,
        order: &PlayerOrder,
        defaults: Defaults,
        source: &Source,
    ) -> Result<Self> {
        let key = |name: &str| source.of_player(index, order, name);
        let name: PlayerName = match order.player.parse() {
            Ok(name) => name,
            Err(never) => match never {},
        };
        let way = Way::new(&name, order, defaults, &key)?;
        let own_place = order.device.as_deref();
        let own_place = own_place.map(|list| Place::parse(list, defaults.config, &key("device")));
        let has_network = matches!(name, PlayerName::Network(_) | PlayerName::Policy(_));
        ensure!(
            has_network || !matches!(own_place, Some(Ok(_))),
            "{}: this is for players with a network",
            key("device")
        );
        // Players of the same devices share the service there.
        let place = own_place
            .transpose()?
            .filter(|own| own.devices != defaults.place.devices);
        let place = place.as_ref().unwrap_or(defaults.place);
        let player = match &way {
            Way::Engine(engine) => {
                let named = || format!("{} {}", key("player"), order.player);
                let (identity, complaints) = engine.check().with_context(named)?;
                for complaint in complaints {
                    // It is somebody else's text.
                    let complaint = complaint.replace(char::is_control, "?");
                    output::complain(format_args!("note: {} says: {complaint}", named()));
                }
                Player::of_engine(&name, place, &identity)
            }
            _ => Player::open(&name, place).with_context(|| key("player"))?,
        };
        let label = order.name.clone().unwrap_or_else(|| {
            let settings = way.settings();
            match settings.is_empty() {
                true => player.short_name(),
                false => format!("{} ({})", player.short_name(), settings.join(", ")),
            }
        });
        // It stands in a line of every record.
        let label = label.replace(char::is_control, "?");
        Ok(Self {
            player,
            named: order.player.clone(),
            label,
            is_named: order.name.is_some(),
            way,
        })
    }

    /// A line to its evaluator for one thread; none for a player that needs none.
    pub(super) fn line(&self) -> Result<Option<Box<dyn Line>>> {
        self.player.line()
    }

    /// Whether its turns depend on how fast the machine is.
    pub(super) fn is_timed(&self) -> bool {
        match &self.way {
            Way::Search(search) => search.time.is_some(),
            Way::Engine(_) => true,
            Way::Policy { .. } | Way::Random => false,
        }
    }
}

impl Way {
    fn new(
        name: &PlayerName,
        order: &PlayerOrder,
        defaults: Defaults,
        key: &impl Fn(&str) -> String,
    ) -> Result<Self> {
        if let Some(reason) = name.without_search() {
            let searched = [
                ("set", !order.set.is_empty()),
                ("evaluations", order.evaluations.is_some()),
                ("time", order.time.is_some()),
            ];
            if let Some((given, _)) = searched.iter().find(|(_, is_given)| *is_given) {
                bail!("{}: this is for players that search: {reason}", key(given));
            }
        }
        let is_policy = matches!(name, PlayerName::Policy(_));
        ensure!(
            is_policy || order.temperature.is_none(),
            "{}: this is for `policy:NETWORK` alone",
            key("temperature")
        );
        let is_engine = matches!(name, PlayerName::Engine(_));
        for (given, is_given) in [
            ("option", !order.option.is_empty()),
            ("clock", order.clock.is_some()),
        ] {
            ensure!(
                is_engine || !is_given,
                "{}: this is for `aei:COMMAND` alone",
                key(given)
            );
        }
        Ok(match name {
            PlayerName::Random => Self::Random,
            PlayerName::Engine(command) => {
                let control = order.clock.or(defaults.clock);
                let control = control.with_context(|| {
                    format!(
                        "{} {}: an engine needs a clock: give {} or --clock, e.g. 2s for each turn, or 15s/2m with a reserve",
                        key("player"),
                        order.player,
                        key("clock")
                    )
                })?;
                let command = command
                    .parse()
                    .with_context(|| format!("{} {}", key("player"), order.player))?;
                Self::Engine(EngineOrder::new(command, order.option.clone(), control))
            }
            PlayerName::Policy(_) => Self::Policy {
                temperature: order.temperature.unwrap_or(0.0),
            },
            _ => Self::Search(ContenderSearch::new(order, defaults, key)?),
        })
    }
}

impl Way {
    /// The settings of the player's own, as given.
    fn settings(&self) -> Vec<String> {
        match self {
            Self::Search(search) => search.settings.clone(),
            Self::Engine(engine) => engine.options(),
            Self::Policy { .. } | Self::Random => Vec::new(),
        }
    }
}

impl ContenderSearch {
    fn new(order: &PlayerOrder, defaults: Defaults, key: &impl Fn(&str) -> String) -> Result<Self> {
        let time = order.time.map(Duration::from_secs_f64);
        let evaluations = match time {
            Some(_) => order.evaluations,
            None => order.evaluations.or(defaults.evaluations),
        };
        ensure!(
            evaluations.is_some() || time.is_some(),
            "{} {} searches, and nothing says how long: give {} or {}, or --evaluations for all",
            key("player"),
            order.player,
            key("evaluations"),
            key("time")
        );
        Ok(Self {
            settings: order.set.clone(),
            config: search_config(&order.set, defaults.config, key)?,
            evaluations,
            time,
        })
    }

    /// The strongest play within its budget.
    pub(super) fn options(&self) -> SearchOptions {
        let budget = Budget {
            memory_mib: self.config.memory_mib,
            evaluations: self.evaluations,
            time: self.time,
            ..Budget::unlimited()
        };
        SearchOptions::strongest_within(&self.config, budget)
    }
}

/// The search of matches, with the settings that a player has of its own.
fn search_config(
    settings: &[String],
    config: &Config,
    key: &impl Fn(&str) -> String,
) -> Result<SearchConfig> {
    let option = key("set");
    let mut config = config.clone();
    for setting in settings {
        ensure!(
            setting.trim_start().starts_with("search."),
            "{option} {setting}: a player has only keys of section `search` of its own, such as search.mode"
        );
        let whole = format!("match.{}", setting.trim_start());
        config = config.with(&whole).map_err(|error| match error {
            ConfigError::Set { reason, .. } => {
                anyhow!(
                    "{option} {setting}: {}",
                    reason.replace("match.search.", "search.")
                )
            }
            other => other.into(),
        })?;
    }
    config.validate().with_context(|| option)?;
    Ok(config.matches.search)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn search_of(settings: &[&str]) -> Result<SearchConfig> {
        let settings: Vec<String> = settings.iter().map(|&setting| setting.into()).collect();
        search_config(&settings, &Config::default(), &|name: &str| {
            Source::Pair.of_player(1, &PlayerOrder::default(), name)
        })
    }

    #[test]
    fn a_player_has_settings_of_its_own() {
        let search = search_of(&["search.reuse_tree=false", "search.puct.exploration=1"]).unwrap();
        let mut expected = Config::default().matches.search;
        expected.reuse_tree = false;
        expected.puct.exploration = 1.0;
        assert_eq!(search, expected);
    }

    #[test]
    fn faulty_settings_are_named_with_their_option() {
        for (setting, part) in [
            ("match.max_turns=5", "only keys of section `search`"),
            ("mode=gumbel", "only keys of section `search`"),
            ("search.evaluations=5", "search.evaluations is not a key"),
            ("search.dirichlet_share=0.5", "is not a key"),
            ("search.mood=5", "search.mood is not a key"),
            ("search.mode", "expected KEY=VALUE"),
            ("search.mode=best", "`gumbel`"),
            ("search.gumbel.candidates=0", "1 to 4096"),
        ] {
            let message = format!("{:#}", search_of(&[setting]).unwrap_err());
            assert!(message.starts_with("--b-set"), "{message}");
            assert!(message.contains(part), "{message}");
        }
    }

    fn contender(order: PlayerOrder, evaluations: Option<u32>) -> Result<Contender> {
        let config = Config::default();
        let place = Place::new(&[Default::default()], &config, "--device")?;
        let defaults = Defaults {
            config: &config,
            evaluations,
            clock: None,
            place: &place,
        };
        Contender::new(0, &order, defaults, &Source::File("m.toml".into()))
    }

    fn named(player: &str) -> PlayerOrder {
        PlayerOrder {
            player: player.into(),
            ..PlayerOrder::default()
        }
    }

    #[test]
    fn own_time_takes_the_place_of_everybody_s_evaluations() {
        let search = |order| match contender(order, Some(64)).unwrap().way {
            Way::Search(search) => (search.evaluations, search.time),
            other => panic!("{other:?}"),
        };
        let time = Some(0.5);
        let half = Some(Duration::from_millis(500));
        assert_eq!(search(named("uniform")), (Some(64), None));
        assert_eq!(
            search(PlayerOrder {
                time,
                ..named("uniform")
            }),
            (None, half)
        );
        let evaluations = Some(9);
        let both = PlayerOrder {
            time,
            evaluations,
            ..named("uniform")
        };
        assert_eq!(search(both), (Some(9), half));
    }

    #[test]
    fn what_does_not_go_with_a_player_is_refused_by_name() {
        let set = vec!["search.mode=puct".to_owned()];
        for (order, parts) in [
            (
                named("material"),
                ["m.toml: player 1 (material)", "nothing says how long"],
            ),
            (
                PlayerOrder {
                    time: Some(1.0),
                    ..named("random")
                },
                ["player 1 (random): time", "`random` doesn't search"],
            ),
            (
                PlayerOrder {
                    set,
                    ..named("policy:x.safetensors")
                },
                ["(policy:x.safetensors): set", "without a search"],
            ),
            (
                PlayerOrder {
                    temperature: Some(1.0),
                    ..named("random")
                },
                ["temperature", "`policy:NETWORK` alone"],
            ),
            (
                named("policy:missing.safetensors"),
                ["m.toml: player 1", "missing.safetensors"],
            ),
            (
                PlayerOrder {
                    device: Some("gpu".into()),
                    ..named("random")
                },
                ["player 1 (random): device gpu", "`gpu` is no device"],
            ),
        ] {
            let message = format!("{:#}", contender(order, None).unwrap_err());
            for part in parts {
                assert!(message.contains(part), "no `{part}` in: {message}");
            }
        }
    }
}
