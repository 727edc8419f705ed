//! The games of a match: a line of the results for each game that is over, and its record, a text, in a file of its own.
//!
//! `pit::folder` writes them. A game counts here as it does there: its line is whole, and its record has the hash that the line names.

use super::entry::{FoundFile, GameEnd, GameEntry, GameStart, IndexedFile};
use super::scan::{RESULTS, is_absent};
use arimaa::notation::TurnLabel;
use arimaa::rules::Side;
use engine::files::{ChecksumForm, read_whole};
use engine::record::GameId;
use rustc_hash::FxHashMap;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// The most bytes of a match's results.
const LARGEST_RESULTS: u64 = 1 << 32;

/// The most bytes of a game's record.
const LARGEST_RECORD: u64 = 1 << 26;

/// What is read of a line of the results.
#[derive(Debug, Deserialize)]
struct ResultLine {
    game: u64,
    reason: String,
    turns: u32,
    record: String,
}

impl ResultLine {
    fn read(line: &[u8]) -> Option<Self> {
        let line = std::str::from_utf8(line).ok()?;
        serde_json::from_str(&ChecksumForm::Json.open(line).ok()??).ok()
    }

    /// The record's hash as a number.
    fn hash(&self) -> Option<u64> {
        u64::from_str_radix(&self.record, 16).ok()
    }

    fn end(&self) -> GameEnd {
        match self.reason.as_str() {
            "goal" => GameEnd::Goal,
            "elimination" => GameEnd::Elimination,
            "immobilization" => GameEnd::Immobilization,
            "turn_limit" => GameEnd::Unfinished,
            "resignation" => GameEnd::Resigned,
            // The faults of an external engine.
            _ => GameEnd::Forfeited,
        }
    }
}

/// Reads a match; none where it is gone, or the index is to stop. Games that the index had before are not read again.
pub(super) fn index_match(
    root: &Path,
    file: &FoundFile,
    before: Option<&IndexedFile>,
    stop: &AtomicBool,
) -> Option<IndexedFile> {
    let mut indexed = IndexedFile::new(file.clone());
    let bytes = match read_whole(&root.join(&file.path), LARGEST_RESULTS) {
        Ok(bytes) => bytes,
        Err(error) if is_absent(&error) => return None,
        Err(error) => {
            indexed.may_recover = true;
            indexed.add_problem(format!("{}: {error}", file.path));
            return Some(indexed);
        }
    };
    let lines = indexed.read_lines(&bytes);
    let known: FxHashMap<u64, &GameEntry> = before.map_or_else(FxHashMap::default, |before| {
        let games = before.games.iter();
        games.map(|game| (game.id.counter, game)).collect()
    });
    for line in lines.into_values() {
        if stop.load(Relaxed) {
            return None;
        }
        let same = known.get(&line.game).copied();
        let same = same.filter(|game| Some(game.place) == line.hash());
        match (before, same) {
            (Some(before), Some(game)) => indexed.take_over(before, game),
            _ => indexed.add_match_game(root, &line),
        }
    }
    Some(indexed)
}

impl IndexedFile {
    /// The lines by game; of several lines of one game the last counts.
    fn read_lines(&mut self, bytes: &[u8]) -> BTreeMap<u64, ResultLine> {
        let mut lines = BTreeMap::new();
        for (index, line) in bytes.split_inclusive(|&byte| byte == b'\n').enumerate() {
            match ResultLine::read(line) {
                Some(line) => drop(lines.insert(line.game, line)),
                // It is being written.
                None if !line.ends_with(b"\n") => {}
                None => {
                    let number = index + 1;
                    let problem = format!("{}: line {number} is damaged", self.file.path);
                    self.add_problem(problem);
                }
            }
        }
        lines
    }

    /// Adds a game that an earlier index of the file has.
    fn take_over(&mut self, before: &Self, game: &GameEntry) {
        let names: Vec<&str> = before
            .networks_of(game)
            .iter()
            .map(String::as_str)
            .collect();
        let networks = self.place_of(&names);
        self.games.push(GameEntry { networks, ..*game });
    }

    fn add_match_game(&mut self, root: &Path, line: &ResultLine) {
        let path = record_path(&self.file, line.game);
        let record = read_record(root, &path);
        let record = record.and_then(|text| match line.hash() {
            Some(hash) if hash == hash_of(&text) => Ok((MatchRecord::read(&text), hash)),
            _ => Err("it is not the record that the results name".to_owned()),
        });
        match record {
            Err(reason) => self.add_problem(format!("{path}: {reason}")),
            Ok((record, place)) => {
                let networks = self.place_of(&record.players());
                self.games.push(GameEntry {
                    id: game_id(line.game),
                    place,
                    turns: line.turns,
                    networks,
                    surprise: None,
                    end: line.end(),
                    winner: record.winner,
                    start: record.start,
                });
            }
        }
    }
}

fn game_id(number: u64) -> GameId {
    GameId {
        generator: 0,
        counter: number,
    }
}

/// The record of a match's game, in the run's folder.
pub(super) fn record_path(results: &FoundFile, number: u64) -> String {
    let folder = results.path.trim_end_matches(RESULTS);
    format!("{folder}games/{number:06}.txt")
}

/// The text of a record.
pub(super) fn read_record(root: &Path, path: &str) -> Result<String, String> {
    let bytes = read_whole(&root.join(path), LARGEST_RECORD).map_err(|error| error.to_string())?;
    String::from_utf8(bytes).map_err(|error| error.to_string())
}

/// The first eight bytes of a record's BLAKE3 hash: the digits that the results name.
pub(super) fn hash_of(record: &str) -> u64 {
    let hash = blake3::hash(record.as_bytes());
    let [a, b, c, d, e, f, g, h, ..] = *hash.as_bytes();
    u64::from_be_bytes([a, b, c, d, e, f, g, h])
}

/// What a record says beside the turns.
#[derive(Debug, PartialEq)]
pub(super) struct MatchRecord {
    gold: String,
    silver: String,
    pub(super) seed: u64,
    pub(super) winner: Option<Side>,
    pub(super) start: GameStart,
    /// What the players said of the turns, for each turn in order.
    pub(super) reports: Vec<Option<TurnReport>>,
}

/// What a player said of its turn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct TurnReport {
    /// Gold's win probability before the turn.
    pub(super) gold_value: f32,
    pub(super) evaluations: u32,
}

impl MatchRecord {
    /// Reads the tags and remarks of a record. What is missing is empty.
    pub(super) fn read(text: &str) -> Self {
        let mut record = Self {
            gold: String::new(),
            silver: String::new(),
            seed: 0,
            winner: None,
            start: GameStart::Opening,
            reports: Vec::new(),
        };
        let mut lines = text.lines();
        for line in lines.by_ref().take_while(|line| !line.is_empty()) {
            if let Some((tag, value)) = line.split_once(": ") {
                record.read_tag(tag, value);
            }
        }
        for line in lines {
            record.read_line(line);
        }
        record
    }

    fn read_tag(&mut self, tag: &str, value: &str) {
        match tag {
            "Gold" => self.gold = player_name(value),
            "Silver" => self.silver = player_name(value),
            "Seed" => self.seed = value.parse().unwrap_or(0),
            "Result" if value.starts_with("Gold wins") => self.winner = Some(Side::Gold),
            "Result" if value.starts_with("Silver wins") => self.winner = Some(Side::Silver),
            "Opening" if value == "the players' own setups" => self.start = GameStart::Empty,
            _ => {}
        }
    }

    fn read_line(&mut self, line: &str) {
        let first = line.split_whitespace().next().unwrap_or_default();
        if let (Some(last), Some(report)) = (self.reports.last_mut(), TurnReport::read(line)) {
            *last = Some(report);
        } else if first.parse::<TurnLabel>().is_ok() {
            self.reports.push(None);
        } else if self.reports.is_empty() && line.contains('[') {
            self.start = GameStart::Position;
        }
    }

    /// Gold's name and Silver's.
    pub(super) fn players(&self) -> [&str; 2] {
        [&self.gold, &self.silver]
    }
}

impl TurnReport {
    /// Reads the remark `# value V, N evaluations`.
    fn read(line: &str) -> Option<Self> {
        let (value, evaluations) = line.strip_prefix("# value ")?.split_once(", ")?;
        let evaluations = evaluations.strip_suffix(" evaluations")?;
        Some(Self {
            gold_value: value.parse().ok()?,
            evaluations: evaluations.parse().ok()?,
        })
    }
}

/// A player's name without the letter that distinguishes two players: `00012 (a)`.
fn player_name(label: &str) -> String {
    let names = [" (a)", " (b)"].map(|letter| label.strip_suffix(letter));
    let name = names.into_iter().flatten().next();
    name.unwrap_or(label).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_and_remarks_are_read() {
        let text = "Gold: 00002 (b)\nSilver: uniform (c=1)\nResult: Silver wins by time of Gold\nGame: 3\nSeed: 9\n\
            Opening: 1, random setups\n\n1g Ra1\n1s ra8\n# value 0.2500, 64 evaluations\n# it spoke\n2g Ra1n\n";
        let record = MatchRecord::read(text);
        assert_eq!(record.players(), ["00002", "uniform (c=1)"]);
        assert_eq!((record.seed, record.winner), (9, Some(Side::Silver)));
        assert_eq!(record.start, GameStart::Opening);
        let report = TurnReport {
            gold_value: 0.25,
            evaluations: 64,
        };
        assert_eq!(record.reports, [None, Some(report), None]);
        let own = MatchRecord::read("Opening: the players' own setups\n\n1g Ra1\n");
        assert_eq!(own.start, GameStart::Empty);
        let position = MatchRecord::read("Opening: x\n\ng [r  ]\n2g Ra1n\n");
        assert_eq!(position.start, GameStart::Position);
        MatchRecord::read("");
    }
}
