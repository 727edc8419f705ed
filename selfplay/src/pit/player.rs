//! The players of a match with their settings.

use super::external_engine::{EngineSpec, TimeControl, set_option};
use super::spec::SpecOrigin;
use crate::worker::channel::EvaluationChannel;
use crate::worker::devices::Devices;
use crate::worker::player::{Player, PlayerName};
use anyhow::{Context, Error, Result, bail, ensure};
use engine::config::{AutoOr, Config, PlayerSpec, Precision, SearchConfig};
use engine::progress::say;
use engine::search::{Budget, SearchOptions};
use engine::stop::Stop;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use toml::Table;

/// The settings of players without their own.
#[derive(Debug, Clone, Copy)]
pub(super) struct Defaults<'a> {
    pub(super) config: &'a Config,
    /// Evaluations a turn.
    pub(super) evaluations: Option<u32>,
    /// Of external engines.
    pub(super) clock: Option<TimeControl>,
    pub(super) devices: &'a Devices,
    /// Ends the start of external engines.
    pub(super) stop: &'a Stop,
}

/// A player of a match that was found and checked.
#[derive(Debug)]
pub(super) struct LoadedPlayer {
    pub(super) player: Player,
    /// As specified.
    pub(super) spec: PlayerSpec,
    /// Its name in the match; without one, the player's name with its own settings.
    pub(super) label: String,
    pub(super) kind: PlayerKind,
}

/// A player of a match with everything that determines its games, as the match's folder and the report have it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct ResolvedPlayer {
    /// As words, with the settings that the match gave it.
    pub(super) spec: String,
    /// A network's hash, an engine's name, or the name of a player without either.
    pub(super) identity: String,
    /// The number format of its network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) precision: Option<Precision>,
    /// Its settings with all keys of its search.
    #[serde(flatten)]
    pub(super) settings: PlayerSpec,
}

/// How a player finds its turns.
#[derive(Debug, Clone)]
pub(super) enum PlayerKind {
    /// By a search.
    Search {
        /// The search's configuration.
        config: SearchConfig,
        /// The strongest play with it within the player's budget.
        options: SearchOptions,
    },
    /// By its network's policy alone, action by action.
    Policy {
        /// 0 takes the likeliest action each time, 1 draws from the policy as it is.
        temperature: f32,
    },
    /// Any legal step is as likely as any other, the end of the turn among them.
    Random,
    /// By an external engine.
    Engine(EngineSpec),
}

impl LoadedPlayer {
    /// Checks the settings of player `index` of a match, and opens it.
    pub(super) fn new(
        index: usize,
        spec: &PlayerSpec,
        defaults: Defaults,
        origin: &SpecOrigin,
    ) -> Result<Self> {
        let key = |name: &str| origin.of_player(index, spec, name);
        let Ok(name) = spec.player.parse::<PlayerName>();
        let mut kind = PlayerKind::new(&name, spec, defaults, &key)?;
        let own_devices = spec.device.as_deref();
        let own_devices =
            own_devices.map(|list| Devices::parse(list, defaults.config, &key("device")));
        let has_network = matches!(name, PlayerName::Network(_) | PlayerName::Policy(_));
        ensure!(
            has_network || !matches!(own_devices, Some(Ok(_))),
            "{}: this is for players with a network",
            key("device")
        );
        // Players of the same devices share the service there.
        let devices = own_devices
            .transpose()?
            .filter(|own| own.list != defaults.devices.list);
        let devices = devices.as_ref().unwrap_or(defaults.devices);
        let player = match &kind {
            PlayerKind::Engine(engine) => {
                let named = || key("player");
                let engine = engine.start(defaults.stop.flag()).with_context(named)?;
                for complaint in &engine.complaints {
                    // It is another program's text.
                    let complaint = complaint.replace(char::is_control, "?");
                    say(&format!("note: {} says: {complaint}", named()));
                }
                Player::of_engine(&name, devices, &engine.identity)
            }
            _ => Player::open(&name, devices).with_context(|| key("player"))?,
        };
        if let PlayerKind::Search { config, options } = &mut kind
            && options.budget.time.is_some()
            && config.parallel_leaves.fixed().is_none()
        {
            // By the clock its one game has the thread to itself: no other game fills a batch.
            options.parallel_leaves = player.leaves_at_once();
            config.parallel_leaves = AutoOr::Fixed(options.parallel_leaves);
        }
        let label = spec.name.clone().unwrap_or_else(|| {
            let settings = spec.own_settings();
            if settings.is_empty() {
                player.short_name()
            } else {
                format!("{} ({})", player.short_name(), settings.join(", "))
            }
        });
        Ok(Self {
            player,
            spec: spec.clone(),
            // Each record has it in one line.
            label: label.replace(char::is_control, "?"),
            kind,
        })
    }

    /// Everything that determines its games.
    pub(super) fn resolved(&self) -> Result<ResolvedPlayer> {
        let has_network = !self.player.forms().is_empty();
        let devices = self.player.devices();
        let mut settings = PlayerSpec {
            device: has_network.then(|| devices.to_string()),
            ..self.spec.clone()
        };
        let mut search = Table::new();
        match &self.kind {
            PlayerKind::Search { config, options } => {
                settings.evaluations = options.budget.evaluations;
                search = Table::try_from(config)?;
            }
            PlayerKind::Policy { temperature } => settings.temperature = Some(*temperature),
            PlayerKind::Engine(engine) => settings.clock = Some(engine.control.to_string()),
            PlayerKind::Random => {}
        }
        Ok(ResolvedPlayer {
            spec: settings.to_string(),
            identity: self.player.identity().to_owned(),
            precision: has_network.then_some(devices.precision),
            settings: PlayerSpec {
                name: Some(self.label.clone()),
                search,
                ..settings
            },
        })
    }

    /// A channel to its evaluator for one thread; none for a player that needs none.
    pub(super) fn channel(&self) -> Result<Option<Box<dyn EvaluationChannel>>> {
        self.player.channel()
    }
}

impl ResolvedPlayer {
    /// Its name in the match.
    pub(super) fn name(&self) -> &str {
        let settings = &self.settings;
        settings.name.as_deref().unwrap_or(&settings.player)
    }
}

impl PlayerKind {
    fn new(
        name: &PlayerName,
        spec: &PlayerSpec,
        defaults: Defaults,
        key: &impl Fn(&str) -> String,
    ) -> Result<Self> {
        let search = name
            .without_search()
            .map(|reason| format!("players that search: {reason}"));
        let policy =
            (!matches!(name, PlayerName::Policy(_))).then(|| "`policy:NETWORK` alone".into());
        let engine = (!matches!(name, PlayerName::Engine(_))).then(|| "`aei:COMMAND` alone".into());
        for (setting, is_given, only) in [
            ("search", !spec.search.is_empty(), &search),
            ("evaluations", spec.evaluations.is_some(), &search),
            ("time", spec.time.is_some(), &search),
            ("temperature", spec.temperature.is_some(), &policy),
            ("option", !spec.option.is_empty(), &engine),
            ("clock", spec.clock.is_some(), &engine),
        ] {
            if let (true, Some(only)) = (is_given, only) {
                bail!("{}: this is for {only}", key(setting));
            }
        }
        Ok(match name {
            PlayerName::Random => Self::Random,
            PlayerName::Engine(command) => {
                let own = spec.clock.as_deref().map(str::parse::<TimeControl>);
                let own = own.transpose().with_context(|| key("clock"))?;
                let control = own.or(defaults.clock).with_context(|| {
                    format!(
                        "{}: an external engine needs a clock: set clock, or --clock for all, e.g. 2s for each turn, or 15s/2m with a \
                         reserve",
                        key("player")
                    )
                })?;
                let options = spec.option.iter().map(|option| set_option(option));
                let options: Result<_, _> = options.collect();
                Self::Engine(EngineSpec {
                    command: command.parse().with_context(|| key("player"))?,
                    options: options.with_context(|| key("option"))?,
                    control,
                })
            }
            PlayerName::Policy(_) => Self::Policy {
                temperature: spec.temperature.unwrap_or(0.0),
            },
            _ => Self::search(spec, defaults, key)?,
        })
    }

    fn search(
        spec: &PlayerSpec,
        defaults: Defaults,
        key: &impl Fn(&str) -> String,
    ) -> Result<Self> {
        let time = spec.time.map(Duration::from_secs_f64);
        let evaluations = match time {
            Some(_) => spec.evaluations,
            None => spec.evaluations.or(defaults.evaluations),
        };
        ensure!(
            evaluations.is_some() || time.is_some(),
            "{}: this player searches, and has no limit: set evaluations or time, or --evaluations for all",
            key("player")
        );
        let config = defaults.config.match_search(&spec.search);
        let config = config.map_err(Error::msg).with_context(|| key("search"))?;
        let budget = Budget {
            memory_mib: config.memory_mib,
            evaluations,
            time,
            ..Budget::unlimited()
        };
        let options = SearchOptions::strongest_within(&config, budget);
        Ok(Self::Search { config, options })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(text: &str, evaluations: Option<u32>) -> Result<LoadedPlayer> {
        let config = Config::default();
        let devices = Devices::new(&[Default::default()], &config, "--device")?;
        let defaults = Defaults {
            config: &config,
            evaluations,
            clock: None,
            devices: &devices,
            stop: &Stop::default(),
        };
        let origin = SpecOrigin::File("m.toml".into());
        LoadedPlayer::new(0, &text.parse()?, defaults, &origin)
    }

    #[test]
    fn a_player_has_settings_of_its_own() {
        let text = "uniform evaluations=9 search.reuse_tree=false search.puct.exploration=1";
        let loaded = load(text, Some(64)).unwrap();
        let PlayerKind::Search { config, .. } = &loaded.kind else {
            panic!("{:?}", loaded.kind);
        };
        let mut expected = Config::default().matches.search;
        expected.reuse_tree = false;
        expected.puct.exploration = 1.0;
        assert_eq!(*config, expected);
        let label = "uniform (search.puct.exploration=1, search.reuse_tree=false)";
        assert_eq!(loaded.label, label);
        let resolved = loaded.resolved().unwrap();
        assert_eq!(
            resolved.spec.parse::<PlayerSpec>().unwrap(),
            text.parse().unwrap()
        );
        assert_eq!(resolved.settings.search, Table::try_from(expected).unwrap());
        let kept = toml::to_string(&resolved).unwrap();
        assert_eq!(toml::from_str::<ResolvedPlayer>(&kept).unwrap(), resolved);
        assert!(
            load("uniform", Some(64))
                .unwrap()
                .resolved()
                .unwrap()
                .spec
                .ends_with("evaluations=64")
        );
    }

    #[test]
    fn names_in_records_have_one_line() {
        let players = ["random name='two\nlines'", "random"];
        let players = players.map(|text| load(text, None).unwrap());
        assert_eq!(players[0].label, "two?lines");
        let labels = crate::pit::labels(&players, &SpecOrigin::Pair);
        assert_eq!(labels, ["two?lines (a)", "random (b)"]);
    }

    #[test]
    fn faulty_search_settings_are_named_with_their_player() {
        for (setting, part) in [
            (
                "search.evaluations=5",
                "search.evaluations is a player's setting of its own",
            ),
            (
                "search.exploration=2",
                "search.exploration is now search.puct.exploration",
            ),
            (
                "search.noise_share=0.5",
                "search.noise_share is now selfplay.exploration.dirichlet_share",
            ),
            ("search.turns_left_weight=1", "was removed"),
            ("search.dirichlet_share=0.5", "is not a key"),
            ("search.mood=5", "search.mood is not a key"),
            ("search.mode=best", "\"gumbel\""),
            ("search.gumbel.candidates=0", "1 to 4096"),
        ] {
            let message = load(&format!("uniform {setting}"), Some(8)).unwrap_err();
            let message = format!("{message:#}");
            assert!(
                message.starts_with("m.toml: player 1 (uniform): search"),
                "{message}"
            );
            assert!(message.contains(part), "{message}");
        }
    }

    #[test]
    fn own_time_replaces_the_evaluations_for_all() {
        let search = |text| match load(text, Some(64)).unwrap().kind {
            PlayerKind::Search { options, .. } => (options.budget.evaluations, options.budget.time),
            other => panic!("{other:?}"),
        };
        let half = Some(Duration::from_millis(500));
        assert_eq!(search("uniform"), (Some(64), None));
        assert_eq!(search("uniform time=0.5"), (None, half));
        assert_eq!(search("uniform time=0.5 evaluations=9"), (Some(9), half));
    }

    #[test]
    fn settings_that_do_not_fit_a_player_are_refused_by_name() {
        for (text, parts) in [
            ("material", ["m.toml: player 1 (material)", "has no limit"]),
            (
                "random time=1",
                ["player 1 (random): time", "`random` doesn't search"],
            ),
            (
                "policy:x.safetensors search.mode=puct",
                ["(policy:x.safetensors): search", "without a search"],
            ),
            (
                "random temperature=1",
                ["temperature", "`policy:NETWORK` alone"],
            ),
            ("random clock=2s", ["clock", "`aei:COMMAND` alone"]),
            ("random option=hash=3", ["option", "`aei:COMMAND` alone"]),
            (
                "policy:missing.safetensors",
                ["m.toml: player 1", "missing.safetensors"],
            ),
            (
                "random device=gpu",
                ["player 1 (random): device gpu", "`gpu` is not a device"],
            ),
        ] {
            let message = format!("{:#}", load(text, None).unwrap_err());
            for part in parts {
                assert!(message.contains(part), "no `{part}` in: {message}");
            }
        }
    }
}
