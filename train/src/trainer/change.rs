//! Changes of the configuration of a run in training: which are allowed, and the file in which the user makes them.

use engine::config::Config;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Keys that a run keeps, and why.
const FIXED: [(&str, &str); 4] = [
    ("network.blocks", NETWORK),
    ("network.channels", NETWORK),
    (
        "train.optimizer",
        "the state of one optimizer does not fit another",
    ),
    (
        "train.validation_share",
        "losses would be measured on games that were trained on",
    ),
];

const NETWORK: &str = "a run's network can't change its size";

/// A key with different values in two configurations. `train info --json` names the values for a comparison with the default.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Difference {
    /// The key with its sections.
    pub(crate) key: String,
    /// The value in the second configuration.
    #[serde(rename = "value")]
    pub(crate) new: toml::Value,
    /// The value in the first one.
    #[serde(rename = "default")]
    pub(crate) old: toml::Value,
}

/// The keys with different values in two configurations, in alphabetical order. All configurations have the same keys.
pub(crate) fn differences(old: &Config, new: &Config) -> Vec<Difference> {
    let mut new = values(new);
    let found = values(old).into_iter().filter_map(|(key, old)| {
        let new = new.remove(&key).filter(|new| *new != old)?;
        Some(Difference { key, new, old })
    });
    found.collect()
}

/// What changes, in words and by key in alphabetical order. A trainer's key that may change applies from the next checkpoint, those of the
/// window and the number of steps from the next network.
///
/// # Errors
///
/// The first key that may not change, with both values and the reason.
pub(crate) fn changed(old: &Config, new: &Config) -> Result<Vec<String>, String> {
    let mut changes = Vec::new();
    for Difference { key, new, old } in differences(old, new) {
        if let Some((_, reason)) = FIXED.iter().find(|(fixed, _)| *fixed == key) {
            return Err(format!(
                "{key} = {new}, but the run was trained with {old}: {reason}"
            ));
        }
        changes.push(format!("{key} = {new} (was {old})"));
    }
    Ok(changes)
}

/// All keys of a configuration with their sections, and their values.
fn values(config: &Config) -> BTreeMap<String, toml::Value> {
    let mut values = BTreeMap::new();
    let table = toml::from_str(&config.to_toml()).unwrap_or_default();
    add("", table, &mut values);
    values
}

/// Adds the keys of a section.
fn add(section: &str, table: toml::Table, values: &mut BTreeMap<String, toml::Value>) {
    for (key, value) in table {
        let name = format!("{section}{key}");
        match value {
            toml::Value::Table(table) => add(&format!("{name}."), table, values),
            value => drop(values.insert(name, value)),
        }
    }
}

/// A run's configuration file, which the user may change during training.
#[derive(Debug, Clone)]
pub(crate) struct ConfigFile {
    path: PathBuf,
    /// Its contents when it was last read, or the error.
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

    /// Reads the file again: its contents or the error, if it is not the same as the last time.
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

    /// Keys that may change. They apply from the next checkpoint, those of the window and the number of steps from the next network.
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

    /// The trainer's sections.
    const SECTIONS: [&str; 2] = ["network.", "train."];

    /// The section of the heads' loss weights: all of its keys likewise.
    const HEADS: &str = "train.heads.";

    #[test]
    fn every_key_of_network_and_training_is_decided_on() {
        let mut decided: Vec<&str> = FIXED.iter().map(|(key, _)| *key).collect();
        decided.extend(CHANGEABLE);
        decided.sort_unstable();
        let keys = values(&Config::default());
        let keys = keys.keys().map(String::as_str);
        let own = |key: &&str| SECTIONS.iter().any(|section| key.starts_with(section));
        let keys = keys.filter(own);
        let keys: Vec<&str> = keys.filter(|key| !key.starts_with(HEADS)).collect();
        assert_eq!(decided, keys);
    }

    fn with(settings: &[&str]) -> Config {
        let set = |config: Config, setting: &&str| config.with(setting).unwrap();
        settings.iter().fold(Config::default(), set)
    }

    #[test]
    fn differences_are_found_in_every_section() {
        let config = Config::default();
        assert_eq!(differences(&config, &config), []);
        let other = with(&["train.batch_size=64", "selfplay.handicap.share=0.5"]);
        let found = differences(&config, &other);
        let found: Vec<_> = found
            .iter()
            .map(|it| (it.key.as_str(), it.old.to_string(), it.new.to_string()))
            .collect();
        let expected = [
            ("selfplay.handicap.share", "0.3", "0.5"),
            ("train.batch_size", "256", "64"),
        ];
        assert_eq!(
            found,
            expected.map(|(key, old, new)| (key, old.to_owned(), new.to_owned()))
        );
    }

    #[test]
    fn what_may_change_is_named_with_both_values() {
        let mut old = Config::default();
        old.train.schedule = ScheduleKind::Constant;
        assert_eq!(changed(&old, &old), Ok(Vec::new()));
        let new = with(&[
            "train.schedule=cosine",
            "train.learning_rate=0.05",
            "network.precision=fp32",
            "loop.generations=7",
            "selfplay.evaluations=7",
        ]);
        assert_eq!(
            changed(&old, &new).unwrap(),
            [
                "loop.generations = 7 (was 100)",
                "network.precision = \"fp32\" (was \"auto\")",
                "selfplay.evaluations = 7 (was 32)",
                "train.learning_rate = 0.05 (was 0.002)",
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
                "train.optimizer = \"sgd\", but the run was trained with \"adamw\": the state of one optimizer",
            ),
            (
                "train.validation_share=0.5",
                "train.validation_share = 0.5, but",
            ),
        ] {
            let new = with(&["train.learning_rate=0.05", setting]);
            let refusal = changed(&old, &new).unwrap_err();
            assert!(refusal.starts_with(message), "{refusal}");
        }
    }

    #[test]
    fn a_file_is_news_once_and_only_where_it_says_something_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.toml");
        let write = |text: &str| std::fs::write(&path, text).unwrap();
        write("[train]\nlearning_rate = 0.01");
        let mut file = ConfigFile::open(&path);
        assert_eq!(file.read_again(), None);
        write("# The same.\n[train]\nlearning_rate = 1e-2");
        assert_eq!(file.read_again(), None);
        write("[train]\nlearning_rate = 0.02");
        let read = file.read_again().unwrap().unwrap();
        assert_eq!(read.train.learning_rate, 0.02);
        assert_eq!(file.read_again(), None);
        write("[train]\nlearning_rate = ");
        let message = file.read_again().unwrap().unwrap_err();
        assert!(message.contains("config.toml"), "{message}");
        assert_eq!(file.read_again(), None);
        write("[train]\nlearning_rate = 0.02");
        assert!(file.read_again().unwrap().is_ok());
    }
}
