//! Where a configuration comes from: the built-in preset, a file, and `--set` on the command line.

use super::old_keys::{drop_removed, replacement_of};
use super::search::SearchConfig;
use super::sections::Config;
use super::selfplay::NetworkChange;
use super::training_loop::LoopOrder;
use super::values::{not_allowed, value_of};
use crate::files;
use garde::Validate;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use toml::de::DeTable;
use toml::{Table, Value};

/// The default configuration: every key, explained.
const PRESET: &str = include_str!("../../../configs/small.toml");

static DEFAULT: LazyLock<(Table, Config)> = LazyLock::new(|| {
    let preset = || Some((toml::from_str(PRESET).ok()?, toml::from_str(PRESET).ok()?));
    preset().unwrap_or_else(|| unreachable!("configs/small.toml is a whole configuration"))
});

/// Size limit of a configuration file, in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// Why there is no configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file can't be read.
    #[error("can't read the configuration {}: {error}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system says.
        error: std::io::Error,
    },
    /// The text is not TOML.
    #[error("{}{error}", in_file(path.as_deref()))]
    Parse {
        /// The file, if it is one.
        path: Option<PathBuf>,
        /// Line, column and reason.
        error: Box<toml::de::Error>,
    },
    /// Unknown or old keys, values of a wrong type or out of range.
    #[error("{}", lines(path.as_deref(), problems))]
    Invalid {
        /// The file, if it is one.
        path: Option<PathBuf>,
        /// All that were found.
        problems: Vec<Problem>,
    },
    /// A `--set` that is not `key=value`, or whose key or type is wrong.
    #[error("--set {setting}: {reason}")]
    Set {
        /// As given.
        setting: String,
        /// What is wrong.
        reason: String,
    },
}

/// What is wrong with a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The key with its sections.
    key: String,
    /// The line in its file, where it stands there.
    line: Option<usize>,
    reason: String,
}

impl Problem {
    fn new(key: impl Into<String>, reason: impl Into<String>) -> Self {
        Self {
            key: key.into(),
            line: None,
            reason: reason.into(),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        write!(f, "{} {}", self.key, self.reason)
    }
}

/// Problems of a file, if it is one, a line each.
fn lines(path: Option<&Path>, problems: &[Problem]) -> String {
    let lines = problems.iter();
    let lines = lines.map(|problem| format!("{}{problem}", in_file(path)));
    lines.collect::<Vec<_>>().join("\n")
}

fn in_file(path: Option<&Path>) -> String {
    path.map_or(String::new(), |path| format!("{}: ", path.display()))
}

/// The options of every program that reads a configuration.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct ConfigArguments {
    /// Read this configuration; configs/small.toml, the default, explains every key
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Replace a value of the configuration, e.g. `selfplay.evaluations=64`; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Print the resulting configuration and exit
    #[arg(long)]
    pub print_config: bool,
}

/// The help of `--set` in commands that generate no games.
pub const MATCH_SET_HELP: &str =
    "Replace a value of the configuration, e.g. `match.search.parallel_leaves=8`; may be repeated";

/// One of these options is required, unless the configuration is only printed.
pub fn printed_or(required: impl IntoIterator<Item = &'static str>) -> clap::ArgGroup {
    let options = required.into_iter().chain(["print_config"]);
    let group = clap::ArgGroup::new("printed_or");
    group.args(options).required(true).multiple(true)
}

impl ConfigArguments {
    /// The default configuration, replaced by the named file (else `fallback`) and by `--set` in order.
    ///
    /// # Errors
    ///
    /// A file that can't be read, unknown keys, wrong types and values out of range.
    pub fn resolve(&self, fallback: Option<&Path>) -> Result<Config, ConfigError> {
        let config = match self.config.as_deref().or(fallback) {
            Some(path) => Config::load(path)?,
            None => Config::default(),
        };
        let config = self
            .set
            .iter()
            .try_fold(config, |config, setting| config.with(setting))?;
        config.validate()?;
        Ok(config)
    }
}

impl ConfigArguments {
    /// As [`resolve`](Self::resolve) without a fallback, for a command that generates no games: `--set` may name no key of self-play
    /// but those in `used`.
    ///
    /// # Errors
    ///
    /// Those of [`resolve`](Self::resolve), and other keys of self-play: they would have no effect.
    pub fn resolve_without_selfplay(&self, used: &[&str]) -> Result<Config, ConfigError> {
        for setting in &self.set {
            let key = setting.split('=').next().unwrap_or_default().trim();
            if key.starts_with("selfplay.") && !used.contains(&key) {
                return Err(ConfigError::Set {
                    setting: setting.clone(),
                    reason:
                        "this key is for self-play; matches and analysis have section match.search"
                            .into(),
                });
            }
        }
        self.resolve(None)
    }
}

/// `configs/small.toml`.
impl Default for Config {
    fn default() -> Self {
        DEFAULT.1.clone()
    }
}

/// The search of matches: `match.search` of the default configuration.
impl Default for SearchConfig {
    fn default() -> Self {
        DEFAULT.1.matches.search
    }
}

impl Config {
    /// Reads a configuration file: it replaces keys of the default configuration.
    ///
    /// # Errors
    ///
    /// A file that can't be read, unknown keys, wrong types and values out of range, each with its line.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        let text = files::read_whole(path, MAX_BYTES)
            .and_then(|bytes| String::from_utf8(bytes).map_err(std::io::Error::other))
            .map_err(|error| ConfigError::Read {
                path: path.to_owned(),
                error,
            })?;
        Self::parse_file(Some(path), &text)
    }

    /// Reads the text of a configuration file.
    ///
    /// # Errors
    ///
    /// As [`load`](Self::load).
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        Self::parse_file(None, text)
    }

    fn parse_file(path: Option<&Path>, text: &str) -> Result<Self, ConfigError> {
        let path = path.map(Path::to_owned);
        let table = match toml::from_str(text) {
            Ok(table) => table,
            Err(error) => {
                let error = Box::new(error);
                return Err(ConfigError::Parse { path, error });
            }
        };
        over_default(table)
            .and_then(Self::checked)
            .map_err(|mut problems| {
                for problem in &mut problems {
                    problem.line = line_of(text, &problem.key);
                }
                problems.sort_by_key(|problem| problem.line);
                ConfigError::Invalid { path, problems }
            })
    }

    /// Reads a configuration that an earlier version wrote: keys that it did not have get their defaults, and keys that were removed
    /// since are ignored.
    ///
    /// # Errors
    ///
    /// Those of the format, unknown keys and wrong types.
    pub fn deserialize_kept<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut table = Table::deserialize(deserializer)?;
        drop_removed(&mut table);
        over_default(table).map_err(|problems| D::Error::custom(lines(None, &problems)))
    }

    /// Checks the ranges of all values.
    ///
    /// # Errors
    ///
    /// All values out of range, each with its key and what is allowed.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let path = None;
        self.check()
            .map_err(|problems| ConfigError::Invalid { path, problems })
    }

    fn checked(self) -> Result<Self, Vec<Problem>> {
        self.check().map(|()| self)
    }

    fn check(&self) -> Result<(), Vec<Problem>> {
        let report = Validate::validate(self).err();
        let errors = report.iter().flat_map(|report| report.iter());
        let mut problems: Vec<Problem> = errors
            .map(|(field, error)| {
                let field = field.to_string();
                let key = field.replace("matches.", "match.");
                Problem::new(key.replace("training_loop.", "loop."), error.message())
            })
            .collect();
        // A generator that plays all the time has to load new networks.
        if self.training_loop.order != LoopOrder::InTurns
            && self.selfplay.network_change == NetworkChange::Never
        {
            let allowed =
                "\"turn\" or \"game\" where loop.order is \"side_by_side\" or \"external\"";
            let error = not_allowed("\"never\"", allowed);
            problems.push(Problem::new("selfplay.network_change", error.message()));
        }
        if problems.is_empty() {
            Ok(())
        } else {
            Err(problems)
        }
    }

    /// The whole configuration as TOML.
    pub fn to_toml(&self) -> String {
        toml::to_string(self)
            .unwrap_or_else(|error| unreachable!("a configuration is always TOML: {error}"))
    }

    /// This configuration with one `section.key=value` replaced. Its range is not checked.
    ///
    /// # Errors
    ///
    /// An unknown key or a value of a wrong type.
    pub fn with(&self, setting: &str) -> Result<Self, ConfigError> {
        let fault = |reason: String| ConfigError::Set {
            setting: setting.to_owned(),
            reason,
        };
        let (key, value) = setting
            .split_once('=')
            .ok_or_else(|| fault("expected KEY=VALUE".into()))?;
        let (section, name) = key
            .trim()
            .rsplit_once('.')
            .ok_or_else(|| fault("expected a key like selfplay.evaluations".into()))?;
        let table = Table::from_iter([(name.to_owned(), value_of(value.trim()))]);
        self.with_section(section, table)
            .map_err(|problems| fault(in_words(&problems)))
    }

    /// The search of matches with some of its keys replaced.
    ///
    /// # Errors
    ///
    /// Unknown keys, wrong types and values out of range, in words.
    pub fn match_search(&self, by: &Table) -> Result<SearchConfig, String> {
        match self
            .with_section("match.search", by.clone())
            .and_then(Self::checked)
        {
            Ok(config) => Ok(config.matches.search),
            Err(problems) => Err(in_words(&problems).replace("match.search.", "search.")),
        }
    }

    /// This configuration with some keys of a section replaced.
    fn with_section(&self, section: &str, by: Table) -> Result<Self, Vec<Problem>> {
        let nested = section.rsplit('.').fold(by, |by, name| {
            Table::from_iter([(name.to_owned(), Value::Table(by))])
        });
        let whole = Table::try_from(self);
        let whole = whole.map_err(|error| vec![Problem::new(section, error.to_string())])?;
        with_keys(whole, nested)
    }
}

fn in_words(problems: &[Problem]) -> String {
    let reasons: Vec<String> = problems.iter().map(Problem::to_string).collect();
    reasons.join("; ")
}

/// The default configuration with some keys replaced.
fn over_default(by: Table) -> Result<Config, Vec<Problem>> {
    with_keys(DEFAULT.0.clone(), by)
}

/// A whole configuration with some keys replaced. Their ranges are not checked.
fn with_keys(mut whole: Table, by: Table) -> Result<Config, Vec<Problem>> {
    let mut problems = Vec::new();
    replace(&mut whole, by, "", &mut problems);
    if !problems.is_empty() {
        return Err(problems);
    }
    serde_path_to_error::deserialize(Value::Table(whole)).map_err(|error| {
        let key = error.path().to_string();
        let reason = error.into_inner().message().trim_end().to_owned();
        vec![Problem::new(key, format!("has a wrong value: {reason}"))]
    })
}

/// Replaces keys of a whole configuration. Whatever isn't in it already is a problem.
fn replace(whole: &mut Table, by: Table, section: &str, problems: &mut Vec<Problem>) {
    for (name, value) in by {
        let key = match section {
            "" => name.clone(),
            section => format!("{section}.{name}"),
        };
        match (whole.get_mut(&name), value) {
            (Some(Value::Table(whole)), Value::Table(by)) => replace(whole, by, &key, problems),
            (Some(Value::Table(_)), _) => {
                problems.push(Problem::new(key, "is a section, not a key"));
            }
            (Some(_), Value::Table(by)) => {
                let names = by.keys().map(|name| format!("{key}.{name}"));
                problems.extend(names.map(|key| Problem::new(key, NO_KEY)));
            }
            (Some(slot), value) => *slot = value,
            (None, Value::Table(by)) => unknown(&by, &key, problems),
            (None, _) => problems.push(Problem::new(&*key, reason_of(&key))),
        }
    }
}

const NO_KEY: &str = "is not a key of the configuration";

/// Names all keys of a section that isn't one, or the section where none of them was ever one.
fn unknown(section: &Table, name: &str, problems: &mut Vec<Problem>) {
    let keys = section.keys().map(|key| format!("{name}.{key}"));
    let old: Vec<String> = keys.filter(|key| replacement_of(key).is_some()).collect();
    if old.is_empty() {
        problems.push(Problem::new(name, "is not a section of the configuration"));
    } else {
        problems.extend(old.iter().map(|key| Problem::new(key, reason_of(key))));
    }
}

fn reason_of(key: &str) -> String {
    replacement_of(key).unwrap_or_else(|| NO_KEY.into())
}

/// The line, from 1, on which a key stands in a file.
fn line_of(text: &str, key: &str) -> Option<usize> {
    let root = DeTable::parse(text).ok()?;
    let mut table = root.get_ref();
    let mut names = key.split('.').peekable();
    loop {
        let (name, value) = table.get_key_value(names.next()?)?;
        if names.peek().is_none() {
            return Some(1 + text[..name.span().start].matches('\n').count());
        }
        table = value.get_ref().as_table()?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{AutoOr, SearchMode};

    #[test]
    fn the_printed_configuration_reads_back_as_itself() {
        let config = Config::default().with("selfplay.evaluations=77").unwrap();
        assert_eq!(config.selfplay.evaluations, 77);
        assert_eq!(Config::parse(&config.to_toml()).unwrap(), config);
    }

    #[test]
    fn a_file_replaces_keys_of_the_default() {
        let config = Config::parse("[match.search]\nmode = \"puct\"").unwrap();
        assert_eq!(config.matches.search.mode, AutoOr::Fixed(SearchMode::Puct));
        let mut expected = Config::default();
        expected.matches.search.mode = AutoOr::Fixed(SearchMode::Puct);
        assert_eq!(config, expected);
        assert_eq!(Config::parse("").unwrap(), Config::default());
    }

    #[test]
    fn whole_numbers_are_read_as_real_ones() {
        let config = Config::default().with("selfplay.search.puct.exploration=2");
        assert_eq!(config.unwrap().selfplay.search.puct.exploration, 2.0);
    }

    #[test]
    fn faulty_settings_are_named() {
        for (setting, part) in [
            ("selfplay.evaluations", "KEY=VALUE"),
            ("evaluations=3", "selfplay.evaluations"),
            (
                "selfplay.evalutions=3",
                "selfplay.evalutions is not a key of the configuration",
            ),
            ("serch.mode=3", "serch is not a section"),
            ("selfplay.evaluations=many", "expected u32"),
            ("selfplay.handicap=1", "selfplay.handicap is a section"),
            (
                "selfplay.handicap.shares=1",
                "selfplay.handicap.shares is not a key",
            ),
            (
                "selfplay.handicap.share.x=1",
                "selfplay.handicap.share.x is not a key",
            ),
            ("selfplay.evaluations=-3", "u32"),
            (
                "match.search.mode=best",
                "expected \"puct\", \"gumbel\" or \"auto\"",
            ),
        ] {
            let message = Config::default().with(setting).unwrap_err().to_string();
            assert!(
                message.contains(setting) && message.contains(part),
                "{message}"
            );
        }
    }

    #[test]
    fn old_keys_are_refused_with_what_replaced_them() {
        let text = "[search]\nmode = \"puct\"\nnoise_share = 0.1\n[train]\ntaken_weight = 1.0\n[pit]\nmax_turns = 3";
        let message = Config::parse(text).unwrap_err().to_string();
        let lines: Vec<&str> = message.lines().collect();
        assert_eq!(
            lines,
            [
                "line 2: search.mode is now selfplay.search.mode, and match.search.mode for matches",
                "line 3: search.noise_share is now selfplay.exploration.dirichlet_share",
                "line 5: train.taken_weight is now train.heads.captures",
                "line 7: pit.max_turns is now match.max_turns",
            ]
        );
        let set = Config::default().with("selfplay.cache_mib=3").unwrap_err();
        let message = set.to_string();
        assert!(message.contains("was removed"), "{message}");
    }

    #[test]
    fn values_out_of_range_are_named_with_file_and_key() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c.toml");
        for (text, parts) in [
            (
                "[selfplay]\nevaluations = 0",
                ["c.toml", "selfplay.evaluations = 0", "1 to 10000000"],
            ),
            (
                "[match.search.puct]\nexploration = nan",
                ["c.toml", "match.search.puct.exploration = NaN", "0 to 100"],
            ),
            (
                "[selfplay.search.gumbel]\ncandidates = 0",
                ["c.toml", "search.gumbel.candidates = 0", "1 to 4096"],
            ),
            (
                "[match.search.gumbel]\nbeam_width = \"wide\"",
                ["line 2", "beam_width", "a whole number or \"auto\""],
            ),
            (
                "[match.search]\nmode = \"best\"",
                [
                    "line 2",
                    "mode",
                    "expected \"puct\", \"gumbel\" or \"auto\"",
                ],
            ),
            (
                "[selfplay.openings]\nfork_share = 0.7\nfile_share = 0.7\nfile = \"x\"",
                ["c.toml", "openings.fork_share", "0 to 1"],
            ),
            (
                "[selfplay.openings]\nfile_share = 0.7",
                ["c.toml", "selfplay.openings.file =", "the name of a file"],
            ),
            (
                "[selfplay.resignation]\nthreshold = 0.5",
                ["c.toml", "selfplay.resignation.threshold = 0.5", "0 to 0.4"],
            ),
            (
                "[selfplay.resignation]\nthresold = 0.5",
                ["c.toml", "line 2", "thresold"],
            ),
            ("[match]\nvisit = 3", ["c.toml", "line 2", "visit"]),
            ("[serch]\nmode = 3", ["c.toml", "line 1", "serch"]),
            (
                "[selfplay]\nevaluations = \"x\"",
                ["c.toml", "line 2", "evaluations"],
            ),
            ("[selfplay\n", ["c.toml", "line 1", "selfplay"]),
        ] {
            std::fs::write(&path, text).unwrap();
            let message = Config::load(&path).unwrap_err().to_string();
            for part in parts {
                assert!(message.contains(part), "{part}: {message}");
            }
        }
    }
}
