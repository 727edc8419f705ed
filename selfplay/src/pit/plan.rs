//! A match as resolved: its folder keeps the plan, and a match is resumed only with the same plan.

use super::part::Part;
use super::player::ResolvedPlayer;
use super::schedule::Schedule;
use super::sprt::SprtOrder;
use engine::files::ChecksumForm;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt;

/// The version of a match's folder.
pub(super) const MATCH_FORMAT: u32 = 4;

/// Keys of places. They don't distinguish matches: the hash or identity beside them does.
const PLACES: [&str; 3] = ["player", "spec", "file"];

/// Everything that determines a match's games.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MatchPlan {
    /// The version of the folder.
    pub(super) format: u32,
    /// Games of each two that meet.
    pub(super) games: u64,
    pub(super) schedule: Schedule,
    pub(super) seed: u64,
    /// The turn limit.
    pub(super) max_turns: u32,
    pub(super) openings: OpeningsPlan,
    pub(super) sprt: Option<SprtOrder>,
    /// The part of the games that is played; none for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) part: Option<Part>,
    pub(super) players: Vec<ResolvedPlayer>,
}

/// The kinds of openings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum OpeningsKind {
    /// After random setups and sampled turns.
    #[default]
    Sampled,
    /// On the empty board.
    Own,
    /// Where the games and positions of a file end.
    File,
}

impl fmt::Display for OpeningsKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// The openings of a match as resolved.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OpeningsPlan {
    pub(super) from: OpeningsKind,
    /// Sampled turns after the setups.
    pub(super) turns: u32,
    /// The identity of the player that samples them.
    pub(super) sampled_by: Option<String>,
    /// The GPUs that compute its network, if any do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) gpus: Option<String>,
    /// The file.
    pub(super) file: Option<String>,
    /// Its hash.
    pub(super) hash: Option<String>,
}

/// Why a text is no plan of this program's version.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum PlanError {
    #[error("the match has format version {0}; this program reads version {MATCH_FORMAT}")]
    Version(u32),
    #[error("{0}")]
    Damaged(String),
}

/// As the report states them.
impl fmt::Display for OpeningsPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { from, turns, .. } = self;
        match (&self.file, &self.sampled_by) {
            (Some(file), _) => f.write_str(file),
            (None, Some(_)) => write!(f, "{from}, {turns} turns by a policy"),
            (None, None) if *turns > 0 => write!(f, "{from}, {turns} random turns"),
            (None, None) => from.fmt(f),
        }
    }
}

/// Whether a device, or a list of them, is of GPUs.
pub(super) fn is_gpu(device: &str) -> bool {
    device.starts_with("cuda")
}

impl MatchPlan {
    /// Whether the games depend on the speed of the machine.
    pub(super) fn is_timed(&self) -> bool {
        let settings = self.players.iter().map(|player| &player.settings);
        settings
            .into_iter()
            .any(|settings| settings.time.is_some() || settings.clock.is_some())
    }

    /// Whether the same command plays the same games. Where time limits turns or a GPU computes a network, it may play others.
    pub(super) fn is_repeatable(&self) -> bool {
        let players = self.players.iter();
        let mut devices = players.filter_map(|player| player.settings.device.as_deref());
        let has_gpu = devices.any(is_gpu) || self.openings.gpus.is_some();
        !self.is_timed() && !has_gpu
    }

    /// The numbers of those games that the plan has.
    pub(super) fn games_of(&self, mut numbers: Vec<u64>) -> Vec<u64> {
        numbers.retain(|&number| self.part.is_none_or(|part| part.has(number)));
        numbers
    }

    /// The plan as its folder keeps it, with its checksum.
    pub(super) fn to_toml(&self) -> String {
        let text = toml::to_string(self);
        let text = text.unwrap_or_else(|error| unreachable!("a plan is always TOML: {error}"));
        ChecksumForm::Toml.sign(&text)
    }

    /// Reads a kept plan.
    ///
    /// # Errors
    ///
    /// Another format version, a wrong or missing checksum, or a text that is no plan.
    pub(super) fn parse(text: &str) -> Result<Self, PlanError> {
        #[derive(Deserialize)]
        struct Version {
            format: u32,
        }
        let damage = |reason: &dyn fmt::Display| PlanError::Damaged(reason.to_string());
        let of_toml = |error: toml::de::Error| damage(&error.message());
        let Version { format } = toml::from_str(text).map_err(of_toml)?;
        if format != MATCH_FORMAT {
            return Err(PlanError::Version(format));
        }
        match ChecksumForm::Toml.open(text) {
            Ok(Some(text)) => toml::from_str(&text).map_err(of_toml),
            Ok(None) => Err(damage(&"its last line, a checksum, is missing")),
            Err(error) => Err(damage(&error)),
        }
    }

    /// Each value in which a kept match differs from this one. More games here are no difference: a longer match begins with the
    /// games of a shorter one.
    pub(super) fn differences(&self, kept: &Self) -> Vec<String> {
        let kept_games = Self {
            games: if kept.games <= self.games {
                kept.games
            } else {
                self.games
            },
            ..self.clone()
        };
        let mut differences = Vec::new();
        let values = [kept, &kept_games].map(serde_json::to_value);
        match &values {
            [Ok(there), Ok(here)] => compare("", there, here, &mut differences),
            _ => differences.push("the two can't be compared".into()),
        }
        differences
    }
}

/// Adds the differences at and below a key.
fn compare(key: &str, there: &Value, here: &Value, found: &mut Vec<String>) {
    let below = |name: &str| match key {
        "" => name.to_owned(),
        key => format!("{key} {name}"),
    };
    match (there, here) {
        (Value::Object(there), Value::Object(here)) => {
            let names: BTreeSet<&String> = there.keys().chain(here.keys()).collect();
            for name in names
                .into_iter()
                .filter(|name| !PLACES.contains(&name.as_str()))
            {
                let [there, here] =
                    [there, here].map(|table| table.get(name).unwrap_or(&Value::Null));
                compare(&below(name), there, here, found);
            }
        }
        (Value::Array(there), Value::Array(here)) => {
            for index in 0..there.len().max(here.len()) {
                let singular = key.trim_end_matches('s');
                let key = format!("{singular} {}", index + 1);
                let [there, here] =
                    [there, here].map(|list| list.get(index).unwrap_or(&Value::Null));
                compare(&key, there, here, found);
            }
        }
        (there, here) if there != here => {
            let [there, here] = [there, here].map(in_words);
            found.push(format!("{key} is {there} there and {here} here"));
        }
        _ => {}
    }
}

fn in_words(value: &Value) -> String {
    match value {
        Value::Null => "not given".into(),
        Value::Object(table) => match table.get("name") {
            Some(Value::String(name)) => name.clone(),
            _ => "given".into(),
        },
        value => value.to_string(),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::mutation::{Mutations, cases};
    use engine::config::{PlayerSpec, SearchConfig};
    use toml::Table;

    /// A match of `uniform` against `random`.
    pub(in super::super) fn plan() -> MatchPlan {
        let player = |name: &str, evaluations: Option<u32>| ResolvedPlayer {
            spec: name.into(),
            identity: name.into(),
            precision: None,
            settings: PlayerSpec {
                name: Some(name.into()),
                evaluations,
                search: match evaluations {
                    Some(_) => Table::try_from(SearchConfig::default()).unwrap(),
                    None => Table::new(),
                },
                ..PlayerSpec::of(format!("somewhere/{name}"))
            },
        };
        MatchPlan {
            format: MATCH_FORMAT,
            games: 20,
            schedule: Schedule::RoundRobin,
            seed: 3,
            max_turns: 400,
            openings: OpeningsPlan::default(),
            sprt: None,
            part: None,
            players: vec![player("uniform", Some(64)), player("random", None)],
        }
    }

    #[test]
    fn a_match_is_repeatable_without_limits_of_time_and_gpus() {
        let with = |device: Option<&str>, time| {
            let mut plan = plan();
            plan.players[0].settings.device = device.map(str::to_owned);
            plan.players[0].settings.time = time;
            plan.is_repeatable()
        };
        assert!(with(None, None) && with(Some("cpu"), None));
        assert!(!with(Some("cpu"), Some(0.5)));
        for device in ["cuda:0", "cuda:0,cuda:1"] {
            assert!(!with(Some(device), None), "{device}");
        }
        let mut sampled = plan();
        assert!(sampled.is_repeatable());
        sampled.openings.gpus = Some("cuda:0".into());
        assert!(!sampled.is_repeatable());
    }

    #[test]
    fn any_plan_is_read_or_refused() {
        let kept = plan().to_toml();
        let text = ChecksumForm::Toml.open(&kept).unwrap().unwrap();
        let samples = [text.as_str(), "sprt = { elo0 = 0.0, elo1 = 10.0 }\n"];
        let mut changes = Mutations::new(&samples, 30);
        for _ in 0..cases(2_000) {
            let changed = changes.next();
            let changed = String::from_utf8_lossy(&changed);
            assert!(changed == text || MatchPlan::parse(&changed).is_err());
            if let Ok(plan) = MatchPlan::parse(&ChecksumForm::Toml.sign(&changed)) {
                assert_eq!(MatchPlan::parse(&plan.to_toml()), Ok(plan));
            }
        }
    }

    #[test]
    fn a_plan_is_read_back_as_it_was_kept() {
        let plan = plan();
        let kept = MatchPlan::parse(&plan.to_toml()).unwrap();
        assert_eq!(kept, plan);
        assert_eq!(plan.differences(&kept), [""; 0]);
        let old = plan.to_toml().replace("format = 4", "format = 2");
        assert_eq!(MatchPlan::parse(&old), Err(PlanError::Version(2)));
        let changed = plan.to_toml().replace("seed = 3", "seed = 4");
        let cut = plan.to_toml().replace("# checksum", "");
        for text in [changed, cut, "format = 4\n".into(), "\0".into()] {
            let error = MatchPlan::parse(&text).unwrap_err();
            assert!(matches!(error, PlanError::Damaged(_)), "{error}");
        }
    }

    #[test]
    fn differences_of_another_match_are_named() {
        let here = plan();
        let there = |change: fn(&mut MatchPlan)| {
            let mut there = plan();
            change(&mut there);
            here.differences(&there).join("; ")
        };
        assert_eq!(
            there(|plan| plan.games = 10),
            "",
            "a resumed match may be longer"
        );
        assert_eq!(
            there(|plan| plan.players[0].settings.player = "elsewhere".into()),
            ""
        );
        assert_eq!(
            there(|plan| plan.games = 40),
            "games is 40 there and 20 here"
        );
        assert_eq!(there(|plan| plan.seed = 4), "seed is 4 there and 3 here");
        assert_eq!(
            there(|plan| plan.seed = u64::MAX),
            "seed is 18446744073709551615 there and 3 here"
        );
        assert_eq!(
            there(|plan| plan.players[0].settings.evaluations = Some(32)),
            "player 1 evaluations is 32 there and 64 here"
        );
        let search = |plan: &mut MatchPlan| {
            let search = &mut plan.players[0].settings.search;
            search["puct"]["exploration"] = 0.25.into();
        };
        assert_eq!(
            there(search),
            "player 1 search puct exploration is 0.25 there and 0.5 here"
        );
        assert_eq!(
            there(|plan| plan.players[1].identity = "ab".into()),
            "player 2 identity is \"ab\" there and \"random\" here"
        );
        assert_eq!(
            there(|plan| plan.players.truncate(1)),
            "player 2 is not given there and random here"
        );
        let sprt = |plan: &mut MatchPlan| {
            let (alpha, beta) = (0.05, 0.05);
            plan.sprt = Some(SprtOrder {
                elo0: 0.0,
                elo1: 5.0,
                alpha,
                beta,
            });
        };
        assert_eq!(there(sprt), "sprt is given there and not given here");
    }
}
