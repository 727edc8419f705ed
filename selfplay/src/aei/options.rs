//! The options that a controller can set, once for `setoption` and for the manifest of the engine.

use super::clock::TurnClock;
use arimaa::aei::{OptionError, OptionKind, OptionValue, StandardOption};
use arimaa::rules::Side;
use clap::ValueEnum;
use serde::Serialize;
use serde_json::{Value, json};

/// The engine's name.
pub(super) const NAME: &str = "Tusker";
/// Its authors.
pub(super) const AUTHOR: &str = "Tusker's contributors";
/// Its version.
pub(super) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// An option of this engine: those that the protocol leaves to engines, and its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "lower")]
pub(super) enum Offered {
    Hash,
    Depth,
    Evaluations,
    MultiPv,
    Lag,
    Setups,
    Network,
}

/// How the engine chooses its setup.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Setups {
    /// By the search with a network, else one of the known setups.
    Auto,
    Search,
    Known,
}

/// The most turns that are reported with `multipv`.
const MAX_LINES: i64 = 100;

impl Offered {
    /// The name, the kind of values, and the description of an option.
    fn definition(self) -> (&'static str, OptionKind, &'static str) {
        let standard = |option: StandardOption| (option.word(), option.kind());
        let spin = |least, most| OptionKind::Spin { least, most };
        let ((name, kind), description) = match self {
            Self::Hash => (
                standard(StandardOption::Hash),
                "MiB that the search tree may take; more than 16384 count as that.",
            ),
            Self::Depth => (
                standard(StandardOption::Depth),
                "How many steps deep to search, as the mean over all simulations; 0 for no limit.",
            ),
            Self::Evaluations => (
                ("evaluations", spin(0, 1_000_000_000)),
                "Evaluations for each turn, within the time that there is; 0 for no limit.",
            ),
            Self::MultiPv => (
                ("multipv", spin(1, MAX_LINES)),
                "How many of the best turns to report.",
            ),
            Self::Lag => (
                (
                    "lag",
                    OptionKind::Float {
                        least: 0.0,
                        most: 60.0,
                    },
                ),
                "Seconds of each turn kept free, for messages in flight and a busy machine.",
            ),
            Self::Setups => (
                ("setups", OptionKind::Choice(&["auto", "search", "known"])),
                "How to set up: search, known (setups that people play), or auto (search with a network).",
            ),
            Self::Network => (
                ("network", OptionKind::File),
                "A network's file, tusker for the built-in one, or material to play without one. Not during a search.",
            ),
        };
        (name, kind, description)
    }

    pub(super) fn name(self) -> &'static str {
        self.definition().0
    }

    fn of(name: &str) -> Option<Self> {
        let mut all = Self::value_variants().iter().copied();
        all.find(|option| option.name() == name)
    }
}

/// The values of all options.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Settings {
    pub(super) clock: TurnClock,
    pub(super) memory_mib: u32,
    /// Steps.
    pub(super) depth: Option<u32>,
    /// Of each turn.
    pub(super) evaluations: Option<u32>,
    pub(super) lines: usize,
    /// Seconds.
    pub(super) lag: f64,
    pub(super) setups: Setups,
    pub(super) network: String,
}

impl Settings {
    /// The defaults with a network and the configured memory.
    pub(super) fn new(network: String, memory_mib: u32) -> Self {
        Self {
            clock: TurnClock::default(),
            memory_mib,
            depth: None,
            evaluations: None,
            lines: 1,
            lag: 0.1,
            setups: Setups::Auto,
            network,
        }
    }

    /// Sets an option, and returns the network that must be loaded for it, if one must. An option that is refused keeps its value.
    pub(super) fn set(
        &mut self,
        name: &str,
        value: Option<&str>,
    ) -> Result<Option<String>, OptionError> {
        if let Some(option) = Offered::of(name) {
            return Ok(self.set_offered(option, option.definition().1.read(value)?));
        }
        let option: StandardOption = name.parse()?;
        let value = option.kind().read(value)?;
        let number = value.number().unwrap_or(0.0);
        let clock = &mut self.clock;
        match option {
            StandardOption::TcMove => clock.of_turn = number,
            StandardOption::TcReserve => clock.begin_with(number),
            StandardOption::TcPercent => clock.percent = number,
            StandardOption::TcMax => clock.most_reserve = number,
            StandardOption::TcTotal => clock.of_game = number,
            StandardOption::TcTurns => clock.turns_of_game = number as u32,
            StandardOption::TcTurnTime => clock.most_of_turn = number,
            StandardOption::GoldReserve => clock.tell(Side::Gold, number),
            StandardOption::SilverReserve => clock.tell(Side::Silver, number),
            StandardOption::MoveUsed => clock.used = number,
            // These change nothing about a turn. Hash and depth are offered.
            StandardOption::GoldUsed
            | StandardOption::SilverUsed
            | StandardOption::LastMoveUsed
            | StandardOption::Opponent
            | StandardOption::OpponentRating
            | StandardOption::Rating
            | StandardOption::Rated
            | StandardOption::Event
            | StandardOption::Hash
            | StandardOption::Depth => {}
        }
        Ok(None)
    }

    fn set_offered(&mut self, option: Offered, value: OptionValue) -> Option<String> {
        // The option's kind has checked the range.
        let above_zero = |value: &OptionValue| match value {
            OptionValue::Spin(number) => u32::try_from(*number).ok().filter(|&number| number > 0),
            _ => None,
        };
        match (option, value) {
            (Offered::Hash, value) => {
                self.memory_mib = above_zero(&value).unwrap_or(self.memory_mib);
            }
            (Offered::Depth, value) => self.depth = above_zero(&value),
            (Offered::Evaluations, value) => self.evaluations = above_zero(&value),
            (Offered::MultiPv, value) => self.lines = above_zero(&value).unwrap_or(1) as usize,
            (Offered::Lag, value) => self.lag = value.number().unwrap_or(self.lag),
            (Offered::Setups, OptionValue::Choice(word)) => {
                self.setups = Setups::from_str(word, false).unwrap_or(self.setups);
            }
            (Offered::Network, OptionValue::Text(path)) => {
                self.network.clone_from(&path);
                return Some(path);
            }
            _ => {}
        }
        None
    }

    /// The value of an option, as the manifest has it.
    fn value(&self, option: Offered) -> Value {
        match option {
            Offered::Hash => json!(self.memory_mib),
            Offered::Depth => json!(self.depth.unwrap_or(0)),
            Offered::Evaluations => json!(self.evaluations.unwrap_or(0)),
            Offered::MultiPv => json!(self.lines),
            Offered::Lag => json!(self.lag),
            Offered::Setups => json!(self.setups),
            Offered::Network => json!(self.network),
        }
    }

    /// `engine.json`: what programs that offer engines need to know of this one (`ENGINE_MANIFEST.md` of Janzert/AEI, version 1). The
    /// engine is started with `arguments` and then has these settings. There are no downloads: a publisher of binaries adds theirs.
    pub(super) fn manifest(&self, arguments: &[String]) -> Value {
        json!({
            "manifest_version": 1,
            "id": "tusker",
            "name": NAME,
            "version": VERSION,
            "author": AUTHOR,
            "description": "Searches whole turns with a policy and value network that it has learned from its own games.",
            "license": "MIT OR Apache-2.0",
            "args": arguments,
            "options": self.described(),
        })
    }

    /// All options as the manifest describes them, with these settings as their defaults.
    fn described(&self) -> Vec<Value> {
        let describe = |option: Offered| {
            let (name, kind, description) = option.definition();
            let mut entry = json!({
                "name": name,
                "default": self.value(option),
                "description": description,
            });
            let (kind, more) = match kind {
                OptionKind::Check => ("check", json!({})),
                OptionKind::Spin { least, most } => ("spin", json!({"min": least, "max": most})),
                OptionKind::Float { least, most } => ("float", json!({"min": least, "max": most})),
                OptionKind::Choice(words) => ("combo", json!({ "choices": words })),
                OptionKind::Text => ("string", json!({})),
                OptionKind::File => ("file", json!({})),
                OptionKind::Button => ("button", json!({})),
            };
            entry["type"] = json!(kind);
            if let (Value::Object(entry), Value::Object(more)) = (&mut entry, more) {
                entry.extend(more);
            }
            entry
        };
        let all = Offered::value_variants().iter().copied();
        all.map(describe).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> Settings {
        Settings::new("material".into(), 256)
    }

    #[test]
    fn every_standard_option_is_accepted() {
        let mut set = settings();
        for option in StandardOption::ALL {
            assert_eq!(set.set(option.word(), Some("1")), Ok(None));
        }
        let clock = TurnClock {
            of_turn: 1.0,
            reserve: 1.0,
            percent: 1.0,
            most_reserve: 1.0,
            of_game: 1.0,
            turns_of_game: 1,
            most_of_turn: 1.0,
            reserves: [Some(1.0); 2],
            used: 1.0,
            ..TurnClock::default()
        };
        let expected = Settings {
            clock,
            memory_mib: 1,
            depth: Some(1),
            ..settings()
        };
        assert_eq!(set, expected);
    }

    #[test]
    fn a_refused_value_changes_nothing() {
        let mut set = settings();
        for (name, value, said) in [
            ("tcmove", Some("-1"), "`-1` is not a number from 0 to"),
            ("tcmove", None, "a value must follow"),
            ("hash", Some("0"), "`0` is not a whole number from 1 to"),
            ("multipv", Some("101"), "whole number from 1 to 100"),
            ("setups", Some("mine"), "one of auto, search, known"),
            ("network", Some(" "), "a file's path"),
            ("colour", Some("red"), "`colour` is not an option"),
        ] {
            let error = set.set(name, value).unwrap_err().to_string();
            assert!(error.contains(said), "{name}: {error}");
        }
        assert_eq!(set, settings());
    }

    #[test]
    fn offered_options_are_set_and_0_removes_limits() {
        let mut set = settings();
        for (name, value) in [
            ("evaluations", "500"),
            ("depth", "8"),
            ("multipv", "3"),
            ("lag", "0.5"),
            ("setups", "known"),
        ] {
            assert_eq!(set.set(name, Some(value)), Ok(None), "{name}");
        }
        assert_eq!((set.evaluations, set.depth), (Some(500), Some(8)));
        assert_eq!((set.lines, set.lag, set.setups), (3, 0.5, Setups::Known));
        set.set("evaluations", Some("0")).unwrap();
        set.set("depth", Some("-3")).unwrap();
        assert_eq!((set.evaluations, set.depth), (None, None));
        let loaded = set.set("network", Some("new one.safetensors"));
        assert_eq!(loaded, Ok(Some("new one.safetensors".into())));
    }

    #[test]
    fn options_and_ways_to_set_up_have_their_words() {
        for option in Offered::value_variants() {
            let word = option.to_possible_value().unwrap();
            assert_eq!(word.get_name(), option.name());
        }
        let mut set = settings();
        for setups in Setups::value_variants() {
            set.set("setups", json!(setups).as_str()).unwrap();
            assert_eq!(set.setups, *setups);
        }
    }

    #[test]
    fn every_described_default_is_accepted() {
        for entry in settings().described() {
            let name = entry["name"].as_str().unwrap();
            let default = match &entry["default"] {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            let mut set = settings();
            set.set(name, Some(&default)).unwrap();
            assert_eq!(set, settings(), "{name}");
        }
    }
}
