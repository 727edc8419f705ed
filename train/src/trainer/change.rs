//! What may change in the configuration of a run whose training has begun, and the file in which a person changes it.

use engine::config::Config;
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

/// Keys that hold from the next step, checkpoint or generation on.
const CHANGEABLE: [&str; 26] = [
    "network.precision",
    "train.average_decay",
    "train.batch_size",
    "train.checkpoint_steps",
    "train.final_learning_rate",
    "train.game_parts",
    "train.gradient_clip",
    "train.keep_checkpoints",
    "train.learning_rate",
    "train.memory_mib",
    "train.mirror",
    "train.momentum",
    "train.network_steps",
    "train.pool_rows",
    "train.precision",
    "train.schedule",
    "train.schedule_factor",
    "train.schedule_steps",
    "train.search_value_share",
    "train.short_horizon_turns",
    "train.reuse_factor",
    "train.warmup_steps",
    "train.weight_decay",
    "train.window_exponent",
    "train.window_rows",
    "train.window_scale",
];

/// The section of the heads' loss weights: all of its keys likewise.
const HEADS: &str = "train.heads.";

/// Keys that a run keeps, and why.
const FIXED: [(&str, &str); 4] = [
    ("network.blocks", NETWORK),
    ("network.channels", NETWORK),
    (
        "train.optimizer",
        "what one optimizer remembers means nothing to another",
    ),
    (
        "train.validation_share",
        "losses would be measured on games that were trained on",
    ),
];

const NETWORK: &str = "a run's network can't change its size";

/// A key whose value has changed since the checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Change {
    /// The key with its sections.
    pub(crate) key: String,
    /// The value so far, as TOML.
    pub(crate) old: String,
    /// The value from now on, as TOML.
    pub(crate) new: String,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} = {} (was {})", self.key, self.new, self.old)
    }
}

/// A key that has another value and may not.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{} = {}, but the run was trained with {}: {reason}", change.key, change.new, change.old)]
pub(crate) struct Refusal {
    /// The key with both values.
    pub(crate) change: Change,
    /// Why it may not.
    pub(crate) reason: &'static str,
}

/// The keys of the network and of its training that differ, in alphabetical order; or the first of them that may not. Other sections
/// are none of the trainer's.
pub(crate) fn changed(old: &Config, new: &Config) -> Result<Vec<Change>, Refusal> {
    let mut changes = Vec::new();
    let mut news = values(new);
    for (key, old) in values(old) {
        let new = news.remove(&key).unwrap_or_default();
        if old == new {
            continue;
        }
        let change = Change { key, old, new };
        let known = change.key.starts_with(HEADS) || CHANGEABLE.contains(&change.key.as_str());
        let fixed = FIXED.iter().find(|(key, _)| *key == change.key);
        match fixed {
            None if known => changes.push(change),
            _ => {
                let reason = fixed.map_or("it is not known to be harmless", |(_, reason)| reason);
                return Err(Refusal { change, reason });
            }
        }
    }
    Ok(changes)
}

/// All keys of the trainer's with their values as TOML.
fn values(config: &Config) -> BTreeMap<String, String> {
    let table: toml::Table = toml::from_str(&config.to_toml()).unwrap_or_default();
    let mut values = BTreeMap::new();
    for name in ["network", "train"] {
        add(name, table.get(name), &mut values);
    }
    values
}

/// Adds a key, or those of a section.
fn add(name: &str, value: Option<&toml::Value>, values: &mut BTreeMap<String, String>) {
    match value {
        Some(toml::Value::Table(section)) => {
            for (key, value) in section {
                add(&format!("{name}.{key}"), Some(value), values);
            }
        }
        Some(value) => {
            values.insert(name.to_owned(), value.to_string());
        }
        None => {}
    }
}

/// A run's configuration file, which a person may change while the run is in training.
#[derive(Debug)]
pub(crate) struct ConfigFile {
    path: PathBuf,
    /// What it held when it was last read, or what was wrong with it.
    seen: Result<Config, String>,
}

impl ConfigFile {
    /// Reads the file for the first time.
    pub(crate) fn open(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            seen: read(path),
        }
    }

    /// The file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the file again: what it holds, or what is wrong with it, if that is not the same as the last time.
    pub(crate) fn read_again(&mut self) -> Option<Result<Config, String>> {
        let now = read(&self.path);
        if now == self.seen {
            return None;
        }
        self.seen = now.clone();
        Some(now)
    }
}

fn read(path: &Path) -> Result<Config, String> {
    Config::load(path).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::config::ScheduleKind;

    #[test]
    fn every_key_of_network_and_training_is_decided_on() {
        let mut decided: Vec<&str> = FIXED.iter().map(|(key, _)| *key).collect();
        decided.extend(CHANGEABLE);
        decided.sort_unstable();
        let keys = values(&Config::default());
        let keys = keys.keys().map(String::as_str);
        let keys: Vec<&str> = keys.filter(|key| !key.starts_with(HEADS)).collect();
        assert_eq!(decided, keys);
    }

    fn with(settings: &[&str]) -> Config {
        let set = |config: Config, setting: &&str| config.with(setting).unwrap();
        settings.iter().fold(Config::default(), set)
    }

    #[test]
    fn what_may_change_is_named_with_both_values() {
        let mut old = Config::default();
        old.train.schedule = ScheduleKind::Constant;
        assert_eq!(changed(&old, &old), Ok(Vec::new()));
        let new = with(&[
            "train.schedule=cosine",
            "train.learning_rate=0.5",
            "network.precision=fp32",
            "loop.generations=7",
            "selfplay.evaluations=7",
        ]);
        let changes = changed(&old, &new).unwrap();
        let lines: Vec<String> = changes.iter().map(Change::to_string).collect();
        assert_eq!(
            lines,
            [
                "network.precision = \"fp32\" (was \"auto\")",
                "train.learning_rate = 0.5 (was 0.001)",
                "train.schedule = \"cosine\" (was \"constant\")",
            ]
        );
    }

    #[test]
    fn what_may_not_is_refused_by_name_whatever_else_changes() {
        let old = Config::default();
        for (setting, message) in [
            (
                "network.blocks=7",
                "network.blocks = 7, but the run was trained with 3: a run's network can't change its size",
            ),
            ("network.channels=16", "network.channels = 16, but"),
            (
                "train.optimizer=sgd",
                "train.optimizer = \"sgd\", but the run was trained with \"adamw\": what one optimizer remembers",
            ),
            (
                "train.validation_share=0.5",
                "train.validation_share = 0.5, but",
            ),
        ] {
            let new = with(&["train.learning_rate=0.5", setting]);
            let refusal = changed(&old, &new).unwrap_err().to_string();
            assert!(refusal.starts_with(message), "{refusal}");
        }
    }

    #[test]
    fn a_file_is_news_once_and_only_where_it_says_something_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.toml");
        let write = |text: &str| std::fs::write(&path, text).unwrap();
        write("[train]\nlearning_rate = 0.1");
        let mut file = ConfigFile::open(&path);
        assert_eq!(file.read_again(), None);
        write("# The same.\n[train]\nlearning_rate = 1e-1");
        assert_eq!(file.read_again(), None);
        write("[train]\nlearning_rate = 0.2");
        let read = file.read_again().unwrap().unwrap();
        assert_eq!(read.train.learning_rate, 0.2);
        assert_eq!(file.read_again(), None);
        write("[train]\nlearning_rate = ");
        let message = file.read_again().unwrap().unwrap_err();
        assert!(message.contains("config.toml"), "{message}");
        assert_eq!(file.read_again(), None);
        write("[train]\nlearning_rate = 0.2");
        assert!(file.read_again().unwrap().is_ok());
    }
}
