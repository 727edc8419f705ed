//! The results of a run's matches, each in a file of its own: `pit/00003-against-random.json`, `pit/00003-against-material-200.json`.

use super::json;
use super::player::Player;
use crate::error::TrainError;
use engine::files::ChecksumForm;
use engine::ratings::PairCounts;
use engine::run::{RunDirectory, network_name, write_file};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The first network in the names of results.
const FIRST: &str = "first";

/// A match's result. The file holds more: what `selfplay pit --json` prints, and a checksum.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct MatchResult {
    /// Games played.
    pub(crate) games: u64,
    /// Games truncated at the turn limit, half a point each.
    pub(crate) unfinished: u64,
    /// The new network's points a game, 0 to 1.
    pub(crate) score: f64,
    /// How many pairs of games gave it 0, ½, 1, 1½ and 2 points, if the file states it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) pairs: Option<PairCounts>,
}

/// What a result's file says of itself; files of earlier versions say nothing.
#[derive(Debug, Default, Deserialize)]
struct File {
    file: Option<String>,
}

fn name_of(path: &Path) -> String {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

/// The file of a network's match.
pub(crate) fn result_file(run: &RunDirectory, generation: u32, opponent: Player) -> PathBuf {
    let opponent = match opponent {
        Player::FIRST => FIRST.to_owned(),
        // Some file systems have no colons.
        other => other.to_string().replace(':', "-"),
    };
    let network = network_name(generation);
    run.pit().join(format!("{network}-against-{opponent}.json"))
}

/// The network and its opponent, by a file's name.
fn players(name: &str) -> Option<(u32, Player)> {
    let (network, opponent) = name.strip_suffix(".json")?.split_once("-against-")?;
    let Ok(Player::Network(generation)) = network.parse() else {
        return None;
    };
    let opponent = match opponent {
        FIRST => Player::FIRST,
        name => name.replace('-', ":").parse().ok()?,
    };
    // No player plays against itself.
    (opponent != Player::Network(generation)).then_some((generation, opponent))
}

impl MatchResult {
    /// Reads what `selfplay pit --json` printed; `what` names it in errors.
    pub(crate) fn parse(text: &str, what: impl FnOnce() -> String) -> Result<Self, TrainError> {
        let parsed = serde_json::from_str(text).map_err(|error| error.to_string());
        let checked = parsed.and_then(|result: Self| {
            let are_its = |pairs: PairCounts| {
                pairs.games() == result.games && (pairs.score() - result.score).abs() < 1e-6
            };
            let is_sound = result.games > 0
                && (0.0..=1.0).contains(&result.score)
                && result.unfinished <= result.games
                && result.pairs.is_none_or(are_its);
            if is_sound {
                Ok(result)
            } else {
                Err("this is not the result of a match".to_owned())
            }
        });
        checked.map_err(|reason| TrainError::Answer {
            what: what(),
            reason,
        })
    }

    /// Reads a result that was kept; none if there is none.
    pub(crate) fn load(path: &Path) -> Result<Option<Self>, TrainError> {
        let Some(text) = json::read_text(path)? else {
            return Ok(None);
        };
        let what = || path.display().to_string();
        let File { file } = serde_json::from_str(&text).unwrap_or_default();
        match file {
            Some(file) if file != name_of(path) => Err(TrainError::Answer {
                what: what(),
                reason: format!("it holds the result of {file}: give it that name, or remove it"),
            }),
            _ => Self::parse(&text, what).map(Some),
        }
    }

    /// Keeps a result as `selfplay pit --json` printed it, with the name of its file.
    pub(crate) fn keep(path: &Path, text: &str) -> Result<(), TrainError> {
        let text = text.trim_end();
        let object = text.strip_suffix('}').unwrap_or(text);
        let text = format!("{object},\"file\":\"{}\"}}", name_of(path));
        Ok(write_file(path, ChecksumForm::Json.sign(&text).as_bytes())?)
    }
}

impl fmt::Display for MatchResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.1}% of {}", 100.0 * self.score, self.games)
    }
}

/// The files of a run's results, by network and opponent. Other files in the folder are ignored.
pub(crate) fn result_files(
    run: &RunDirectory,
) -> Result<BTreeMap<(u32, Player), PathBuf>, TrainError> {
    let folder = run.pit();
    let io = TrainError::io("read the folder", &folder);
    let entries = match std::fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(BTreeMap::new()),
        Err(error) => return Err(io(error)),
    };
    let mut files = BTreeMap::new();
    for entry in entries {
        let entry = entry.map_err(io)?;
        if let Some(players) = entry.file_name().to_str().and_then(players) {
            files.insert(players, entry.path());
        }
    }
    Ok(files)
}

/// All results of a run, by network and opponent.
pub(super) fn read_all(
    run: &RunDirectory,
) -> Result<BTreeMap<(u32, Player), MatchResult>, TrainError> {
    let mut results = BTreeMap::new();
    for (players, path) in result_files(run)? {
        results.extend(MatchResult::load(&path)?.map(|result| (players, result)));
    }
    Ok(results)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_is_read_as_selfplay_prints_it() {
        let text = r#"{"a":{"player":"x","evaluations":32},"b":{"player":"random"},"seed":1,"games":200,"wins_a":189,"losses_a":8,
            "unfinished":3,"pairs":[0,0,4,10,86],"score":0.955,"elo":530.5,"elo_low":440.0,"elo_high":621.0,"records":"pit/x"}"#;
        let result = MatchResult::parse(text, String::new).unwrap();
        assert_eq!(
            (result.games, result.unfinished, result.score),
            (200, 3, 0.955)
        );
        assert_eq!(result.pairs, Some([0, 0, 4, 10, 86].into()));
        let fault = |text: &str| {
            MatchResult::parse(text, || "x.json".into())
                .unwrap_err()
                .to_string()
        };
        assert!(fault("{}").starts_with("x.json: missing field"));
        assert!(fault("").starts_with("x.json: "));
        let none = r#"{"games": 0, "unfinished": 0, "score": 0.5}"#;
        let more = r#"{"games": 4, "unfinished": 0, "score": 0.5, "pairs": [0, 0, 3, 0, 0]}"#;
        let other = r#"{"games": 4, "unfinished": 0, "score": 0.5, "pairs": [0, 0, 1, 0, 1]}"#;
        let stopped = r#"{"games": 4, "unfinished": 5, "score": 0.5}"#;
        for text in [none, more, other, stopped] {
            assert!(fault(text).starts_with("x.json: this is not the result of a match"));
        }
    }

    #[test]
    fn results_are_found_by_their_names() {
        let folder = tempfile::tempdir().unwrap();
        let run = RunDirectory::new(folder.path());
        assert!(read_all(&run).unwrap().is_empty());
        std::fs::create_dir(run.pit()).unwrap();
        let matches = [
            (2, Player::Random),
            (2, Player::FIRST),
            (2, Player::Network(1)),
            (10, Player::Material(None)),
            (10, Player::Material(Some(200))),
            (10, Player::Uniform(Some(64))),
        ];
        let text = r#"{"games": 4, "unfinished": 1, "score": 0.625}"#;
        for (generation, opponent) in matches {
            std::fs::write(result_file(&run, generation, opponent), text).unwrap();
        }
        for other in ["notes.json", "00003-against-00003.json"] {
            std::fs::write(run.pit().join(other), "nothing").unwrap();
        }
        let found = read_all(&run).unwrap();
        assert_eq!(found.keys().copied().collect::<Vec<_>>(), matches);
        assert!(run.pit().join("00002-against-first.json").exists());
        assert!(run.pit().join("00010-against-material-200.json").exists());
        assert_eq!(found[&matches[0]].to_string(), "62.5% of 4");
        assert_eq!(found[&matches[0]].pairs, None);
        let damaged = result_file(&run, 3, Player::Random);
        let message = || read_all(&run).unwrap_err().to_string();
        std::fs::write(&damaged, "{").unwrap();
        assert!(message().contains("00003-against-random.json"));
        MatchResult::keep(&damaged, text).unwrap();
        assert_eq!(read_all(&run).unwrap().len(), matches.len() + 1);
        std::fs::copy(&damaged, result_file(&run, 4, Player::Random)).unwrap();
        let other = "00004-against-random.json: it holds the result of 00003-against-random.json";
        assert!(message().contains(other), "{}", message());
        std::fs::remove_file(result_file(&run, 4, Player::Random)).unwrap();
        let changed = std::fs::read_to_string(&damaged).unwrap();
        std::fs::write(&damaged, changed.replace("0.625", "0.525")).unwrap();
        assert!(message().contains("00003-against-random.json: its checksum does not match"));
    }
}
