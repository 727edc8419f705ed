//! Where a configuration comes from: a file, and `--set` on the command line.

use super::Config;
use crate::files;
use std::path::{Path, PathBuf};

/// The bytes of a configuration file; those that are there have a few thousand.
const LARGEST: u64 = 1 << 20;

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
    /// The file is no TOML, or holds an unknown key or a value of a wrong type.
    #[error("{}: {error}", path.display())]
    Parse {
        /// The file.
        path: PathBuf,
        /// Line, column and reason.
        error: Box<toml::de::Error>,
    },
    /// A `--set` that is no `key=value`, or whose key or type is wrong.
    #[error("--set {setting}: {reason}")]
    Set {
        /// As given.
        setting: String,
        /// What is wrong.
        reason: String,
    },
    /// A value out of its range.
    #[error("{key} = {value} is out of range: allowed is {allowed}")]
    OutOfRange {
        /// The key.
        key: &'static str,
        /// Its value.
        value: String,
        /// The range.
        allowed: String,
    },
    /// The same with the file that it comes from.
    #[error("{}: {error}", path.display())]
    InFile {
        /// The file.
        path: PathBuf,
        /// What is wrong in it.
        error: Box<ConfigError>,
    },
}

/// The options of every program that reads a configuration.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct ConfigArguments {
    /// The configuration; `configs/tiny.toml` explains every key
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Replace a value of the configuration, e.g. `search.evaluations=64`; may be given several times
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Print the configuration as it would be used, and stop
    #[arg(long)]
    pub print_config: bool,
}

impl ConfigArguments {
    /// Reads the named file (else `fallback`, else the defaults), applies `--set` in order, and checks every range.
    pub fn resolve(&self, fallback: Option<&Path>) -> Result<Config, ConfigError> {
        let path = self.config.as_deref().or(fallback);
        let config = match path {
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

impl Config {
    /// Reads a configuration file and checks every range.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        let text = files::read_whole(path, LARGEST)
            .and_then(|bytes| String::from_utf8(bytes).map_err(std::io::Error::other))
            .map_err(|error| ConfigError::Read {
                path: path.to_owned(),
                error,
            })?;
        let config: Self = toml::from_str(&text).map_err(|error| ConfigError::Parse {
            path: path.to_owned(),
            error: Box::new(error),
        })?;
        config.validate().map_err(|error| ConfigError::InFile {
            path: path.to_owned(),
            error: Box::new(error),
        })?;
        Ok(config)
    }

    /// The whole configuration as TOML.
    pub fn to_toml(&self) -> String {
        toml::to_string(self)
            .unwrap_or_else(|error| unreachable!("a configuration is always TOML: {error}"))
    }

    /// This configuration with one `section.key=value` replaced.
    pub fn with(&self, setting: &str) -> Result<Self, ConfigError> {
        let fault = |reason: String| ConfigError::Set {
            setting: setting.to_owned(),
            reason,
        };
        let (key, value) = setting
            .split_once('=')
            .ok_or_else(|| fault("expected KEY=VALUE".into()))?;
        let key = key.trim();
        let (section, rest) = key
            .split_once('.')
            .ok_or_else(|| fault("expected a key like search.evaluations".into()))?;
        let mut table: toml::Table =
            toml::from_str(&self.to_toml()).map_err(|error| fault(error.to_string()))?;
        let no_key = || fault(format!("there is no key `{key}`"));
        let mut slot = table.get_mut(section).ok_or_else(no_key)?;
        for name in rest.split('.') {
            slot = slot.get_mut(name).ok_or_else(no_key)?;
        }
        if slot.is_table() {
            return Err(fault(format!("`{key}` is a section, not a key")));
        }
        let value = value.trim();
        *slot = toml::from_str::<toml::Table>(&format!("value = {value}"))
            .ok()
            .filter(|parsed| parsed.len() == 1)
            .and_then(|mut parsed| parsed.remove("value"))
            .unwrap_or_else(|| toml::Value::String(value.to_owned()));
        table
            .try_into()
            .map_err(|error: toml::de::Error| fault(error.message().to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_printed_configuration_reads_back_as_itself() {
        let config = Config::default().with("search.evaluations=77").unwrap();
        assert_eq!(config.search.evaluations, 77);
        assert_eq!(toml::from_str::<Config>(&config.to_toml()).unwrap(), config);
    }

    #[test]
    fn whole_numbers_do_for_real_ones() {
        assert_eq!(
            Config::default()
                .with("search.exploration=2")
                .unwrap()
                .search
                .exploration,
            2.0
        );
    }

    #[test]
    fn faulty_settings_are_named() {
        for (setting, part) in [
            ("search.evaluations", "KEY=VALUE"),
            ("evaluations=3", "search.evaluations"),
            ("search.evalutions=3", "no key `search.evalutions`"),
            ("serch.mode=3", "no key `serch.mode`"),
            ("search.evaluations=many", "expected u32"),
            (
                "selfplay.playout_cap=1",
                "`selfplay.playout_cap` is a section",
            ),
            (
                "selfplay.playout_cap.full=1",
                "no key `selfplay.playout_cap.full`",
            ),
            (
                "selfplay.playout_cap.full_share.x=1",
                "no key `selfplay.playout_cap.full_share.x`",
            ),
            ("search.evaluations=-3", "u32"),
            ("search.mode=best", "`auto`, `puct`, `gumbel`"),
        ] {
            let message = Config::default().with(setting).unwrap_err().to_string();
            assert!(
                message.contains(setting) && message.contains(part),
                "{message}"
            );
        }
    }

    #[test]
    fn values_out_of_range_are_named_with_file_and_key() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c.toml");
        for (text, parts) in [
            (
                "[search]\nevaluations = 0",
                ["c.toml", "search.evaluations = 0", "1 to 10000000"],
            ),
            (
                "[search]\nexploration = nan",
                ["c.toml", "search.exploration = NaN", "0 to 100"],
            ),
            (
                "[search]\ngumbel_candidates = 0",
                ["c.toml", "search.gumbel_candidates = 0", "1 to 4096"],
            ),
            (
                "[search]\ngumbel_beam_width = \"wide\"",
                ["line 2", "gumbel_beam_width", "a whole number or \"auto\""],
            ),
            (
                "[search]\nmode = \"best\"",
                ["line 2", "mode", "`auto`, `puct`, `gumbel`"],
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
            ("[search]\nvisit = 3", ["c.toml", "line 2", "visit"]),
            ("[serch]\nmode = 3", ["c.toml", "line 1", "serch"]),
            (
                "[search]\nevaluations = \"x\"",
                ["c.toml", "line 2", "evaluations"],
            ),
        ] {
            std::fs::write(&path, text).unwrap();
            let message = Config::load(&path).unwrap_err().to_string();
            for part in parts {
                assert!(message.contains(part), "{part}: {message}");
            }
        }
    }
}
