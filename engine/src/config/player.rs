//! Players of matches: one form for the command line, the files of matches and the configuration.

use super::values::{MAX_EVALUATIONS, not_allowed, value_of, within};
use garde::Validate;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use toml::{Table, Value};

/// A player of a match, with the settings of its own.
///
/// As text it is one line of words, split as a shell splits them: the player, then settings `KEY=VALUE`, in which a dot enters a
/// section: `material evaluations=64 search.mode=gumbel`, `aei:'sharp -x' clock=2s option=hash=500`. In TOML it is a table of the same
/// keys.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, Validate)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct PlayerSpec {
    /// `tusker` (the built-in network), a network's file, `policy:` and one of these, `uniform`, `material`, `random`, or `aei:` and
    /// the command of an external engine.
    pub player: String,
    /// Its name in the match.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[garde(inner(custom(plain)))]
    pub name: Option<String>,
    /// Evaluations a turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[garde(inner(custom(within(1..=MAX_EVALUATIONS))))]
    pub evaluations: Option<u32>,
    /// Seconds a turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[garde(inner(custom(within(0.001..=86_400.0))))]
    pub time: Option<f64>,
    /// Temperature of a policy without a search: at 0 the likeliest action, at 1 the policy as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[garde(inner(custom(within(0.0..=100.0))))]
    pub temperature: Option<f32>,
    /// The devices of its network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// The time control of an external engine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<String>,
    /// Options of an external engine, `NAME=VALUE`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub option: Vec<String>,
    /// Keys of `match.search` with other values.
    #[serde(default, skip_serializing_if = "Table::is_empty")]
    pub search: Table,
}

/// Settings whose value is text as it is, also where it looks like a number.
const TEXTS: [&str; 3] = ["name", "device", "clock"];

/// The settings of a player.
const KEYS: [&str; 8] = [
    "name",
    "evaluations",
    "time",
    "temperature",
    "device",
    "clock",
    "option",
    "search",
];

/// What replaced the setting `set` of earlier versions.
pub const SET_REPLACED: &str =
    "`set` was removed: keys of match.search are settings of a player, such as search.mode";

/// Why a text is no player.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlayerSpecError {
    /// The words can't be told apart.
    #[error("a quote is not closed, or the text ends with a backslash")]
    Quotes,
    /// There is no word.
    #[error("a player must be named, such as tusker or material")]
    Empty,
    /// A word that is no setting, or one of a wrong type.
    #[error("`{word}`: {reason}")]
    Word {
        /// The word.
        word: String,
        /// What is wrong with it.
        reason: String,
    },
}

fn plain(name: &String, _: &()) -> garde::Result {
    let is_plain = !name.trim().is_empty()
        && name.chars().count() <= 60
        && !name.chars().any(char::is_control);
    if is_plain {
        Ok(())
    } else {
        Err(not_allowed(format!("{name:?}"), "1 to 60 plain letters"))
    }
}

impl PlayerSpec {
    /// A player without settings of its own.
    pub fn of(player: impl Into<String>) -> Self {
        Self {
            player: player.into(),
            ..Self::default()
        }
    }

    /// The words of its options and search settings.
    pub fn own_settings(&self) -> Vec<String> {
        let options = self.option.iter();
        let mut words: Vec<String> = options
            .map(|option| format!("option={}", quoted(option)))
            .collect();
        push_settings("search", &self.search, &mut words);
        words
    }

    /// The first value out of its range: its key, and what is wrong.
    pub fn out_of_range(&self) -> Option<(String, String)> {
        let report = Validate::validate(self).err()?;
        let (key, error) = report.iter().next()?;
        Some((key.to_string(), error.message().to_owned()))
    }

    /// Adds a setting.
    fn set(table: &mut Table, word: &str) -> Result<(), String> {
        let (key, value) = word.split_once('=').ok_or_else(|| {
            let keys = KEYS.join(", ");
            format!("expected KEY=VALUE with one of {keys}; quote a path or command with spaces")
        })?;
        if key == "option" {
            let options = table.entry(key).or_insert_with(|| Value::Array(Vec::new()));
            if let Value::Array(options) = options {
                options.push(value.into());
            }
            return Ok(());
        }
        let value = if TEXTS.contains(&key) {
            value.into()
        } else {
            value_of(value)
        };
        let (sections, name) = match key.rsplit_once('.') {
            Some((sections, name)) => (sections.split('.').collect(), name),
            None => (Vec::new(), key),
        };
        let mut table = table;
        for section in sections {
            let inner = table.entry(section).or_insert_with(|| Table::new().into());
            table = inner.as_table_mut().ok_or("a key is not a section")?;
        }
        match table.insert(name.to_owned(), value) {
            None => Ok(()),
            Some(_) => Err("given twice".into()),
        }
    }
}

impl FromStr for PlayerSpec {
    type Err = PlayerSpecError;

    fn from_str(text: &str) -> Result<Self, PlayerSpecError> {
        let words = shlex::split(text).ok_or(PlayerSpecError::Quotes)?;
        let (player, settings) = words.split_first().ok_or(PlayerSpecError::Empty)?;
        if player.is_empty() {
            return Err(PlayerSpecError::Empty);
        }
        let mut table = Table::new();
        table.insert("player".into(), player.clone().into());
        for word in settings {
            let error = |reason| PlayerSpecError::Word {
                word: word.clone(),
                reason,
            };
            let key = word.split('=').next().unwrap_or_default();
            if key == "player" {
                return Err(error("the player is the first word".into()));
            }
            Self::set(&mut table, word).map_err(error)?;
            // One after the other, so that the error is this word's.
            Self::deserialize(table.clone()).map_err(|found| {
                let reason = found.message().trim_end();
                let section = key.split('.').next().unwrap_or_default();
                error(match section {
                    "set" => SET_REPLACED.into(),
                    section if KEYS.contains(&section) => reason.to_owned(),
                    _ => format!("unknown key: expected one of {}", KEYS.join(", ")),
                })
            })?;
        }
        Self::deserialize(table).map_err(|found| PlayerSpecError::Word {
            word: text.to_owned(),
            reason: found.message().to_owned(),
        })
    }
}

/// As [`FromStr`] reads it.
impl fmt::Display for PlayerSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut words = vec![quoted(&self.player)];
        let mut add = |key: &str, value: Option<String>| {
            words.extend(value.map(|value| format!("{key}={}", quoted(&value))));
        };
        add("name", self.name.clone());
        add("evaluations", self.evaluations.map(|it| it.to_string()));
        add("time", self.time.map(|it| it.to_string()));
        add("temperature", self.temperature.map(|it| it.to_string()));
        add("device", self.device.clone());
        add("clock", self.clock.clone());
        words.extend(self.own_settings());
        f.write_str(&words.join(" "))
    }
}

fn push_settings(section: &str, table: &Table, words: &mut Vec<String>) {
    for (name, value) in table {
        let key = format!("{section}.{name}");
        let text = match value {
            Value::Table(table) if !table.is_empty() => {
                push_settings(&key, table, words);
                continue;
            }
            // A text that looks like a number keeps its quotes.
            Value::String(text) if value_of(text) == *value => text.clone(),
            value => value.to_string(),
        };
        words.push(format!("{}={}", quoted(&key), quoted(&text)));
    }
}

/// A text that is read back as one word; as it is, where that is so already.
fn quoted(text: &str) -> String {
    let is_plain = shlex::split(text).is_some_and(|words| words == [text]);
    match shlex::Quoter::new().allow_nul(true).quote(text) {
        Ok(quoted) if !is_plain => quoted.into_owned(),
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_settings() {
        let spec: PlayerSpec = "material evaluations=64 search.mode=gumbel name='12 34' \
                                search.puct.exploration=1.5"
            .parse()
            .unwrap();
        assert_eq!(spec.player, "material");
        assert_eq!(
            (spec.evaluations, spec.name.as_deref()),
            (Some(64), Some("12 34"))
        );
        assert_eq!(spec.search["mode"].as_str(), Some("gumbel"));
        assert_eq!(spec.search["puct"]["exploration"].as_float(), Some(1.5));
        let spec: PlayerSpec =
            "aei:'sharp -x' clock=2s option=hash=500 option='book=a b' device=cuda:1"
                .parse()
                .unwrap();
        assert_eq!(spec.player, "aei:sharp -x");
        assert_eq!(spec.clock.as_deref(), Some("2s"));
        assert_eq!(spec.option, ["hash=500", "book=a b"]);
        assert_eq!(spec.device.as_deref(), Some("cuda:1"));
    }

    #[test]
    fn a_spec_is_written_as_it_is_read() {
        for text in [
            "tusker",
            "'my nets/7.safetensors' evaluations=64 time=0.5",
            "policy:tusker temperature=0.25",
            "'aei:sharp -x' clock=15s/2m option=hash=500",
            "'a\0 b' option='\0 c'",
            "material 'search.a b'=1 search.mode='\"5\"' search.puct={}",
            "material name='a b' evaluations=9 search.mode=puct search.puct.exploration=1.5 search.reuse_tree=false",
        ] {
            let spec: PlayerSpec = text.parse().unwrap();
            assert_eq!(spec.to_string().parse(), Ok(spec.clone()), "{text}");
            let table = toml::to_string(&spec).unwrap();
            assert_eq!(
                toml::from_str::<PlayerSpec>(&table).unwrap(),
                spec,
                "{table}"
            );
        }
    }

    #[test]
    fn faults_name_their_word() {
        for (text, parts) in [
            ("", ["a player must be named", ""]),
            ("''", ["a player must be named", ""]),
            ("material 'x", ["a quote is not closed", ""]),
            (
                "material evalutions=64",
                ["`evalutions=64`: unknown key", "evaluations, time"],
            ),
            (
                "material me=64",
                ["`me=64`: unknown key", "evaluations, time"],
            ),
            (
                "material set=search.mode=puct",
                ["`set` was removed", "search.mode"],
            ),
            (
                "material evaluations=many",
                ["`evaluations=many`", "expected u32"],
            ),
            (
                "material evaluations=-1",
                ["`evaluations=-1`", "expected u32"],
            ),
            (
                "material evaluations=1 evaluations=2",
                ["`evaluations=2`", "given twice"],
            ),
            (
                "my nets/x.safetensors",
                ["`nets/x.safetensors`", "quote a path"],
            ),
            ("material player=x", ["`player=x`", "the first word"]),
            (
                "material search=gumbel",
                ["`search=gumbel`", "expected a map"],
            ),
            (
                "material option.hash=5",
                ["`option.hash=5`", "invalid type"],
            ),
        ] {
            let message = text.parse::<PlayerSpec>().unwrap_err().to_string();
            for part in parts {
                assert!(message.contains(part), "{text}: {message}");
            }
        }
    }

    #[test]
    fn values_out_of_range_are_named() {
        for (text, key, said) in [
            (
                "material evaluations=0",
                "evaluations",
                "= 0 is out of range: allowed is 1 to 10000000",
            ),
            ("material time=0", "time", "0.001 to 86400"),
            ("policy:x temperature=-1", "temperature", "0 to 100"),
            ("material name=' '", "name", "1 to 60 plain letters"),
        ] {
            let spec: PlayerSpec = text.parse().unwrap();
            let (found, message) = spec.out_of_range().unwrap();
            assert_eq!(found, key);
            assert!(message.contains(said), "{message}");
        }
        assert_eq!(PlayerSpec::of("material").out_of_range(), None);
    }
}
