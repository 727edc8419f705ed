//! The games of a match: a line of the results for each game that is over, and its record, a text, in a file of its own.
//!
//! `pit::folder` writes them. A game counts here as it does there: its line is whole, and its record has the hash that the line names.

use super::entry::{FoundFile, GameEnd, GameEntry, GameStart, IndexedFile};
use super::scan::is_absent;
use crate::pit::{
    End, FaultKind, GameSummary, MAX_RESULTS_BYTES, OWN_SETUPS, RESULTS, RecordRemarks,
    read_record, record_name,
};
use engine::files::read_whole;
use engine::record::GameId;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

impl From<End> for GameEnd {
    fn from(end: End) -> Self {
        match end {
            End::Goal => Self::Goal,
            End::Elimination => Self::Elimination,
            End::Immobilization => Self::Immobilization,
            End::TurnLimit => Self::Unfinished,
            End::Fault(FaultKind::Resignation) => Self::Resigned,
            End::Fault(_) => Self::Forfeited,
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
    let bytes = match read_whole(&root.join(&file.path), MAX_RESULTS_BYTES) {
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
        let same = same.filter(|game| hash_text(game.place) == line.record_hash);
        match (before, same) {
            (Some(before), Some(game)) => indexed.take_over(before, game),
            _ => indexed.add_match_game(root, &line),
        }
    }
    Some(indexed)
}

impl IndexedFile {
    /// The lines by game; of several lines of one game the last counts.
    fn read_lines(&mut self, bytes: &[u8]) -> BTreeMap<u64, GameSummary> {
        let mut lines = BTreeMap::new();
        for (index, line) in bytes.split_inclusive(|&byte| byte == b'\n').enumerate() {
            match GameSummary::of_line(line) {
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

    fn add_match_game(&mut self, root: &Path, line: &GameSummary) {
        let path = record_path(&self.file, line.game);
        let text = match read_record(&root.join(&path), &line.record_hash) {
            Ok(text) => text,
            Err(error) => {
                // The folder may be on its way from another machine: results first, then records.
                self.may_recover = true;
                return self.add_problem(format!("{path}: {error}"));
            }
        };
        let record = RecordRemarks::read(&text);
        let networks = self.place_of(&record.header.players());
        self.games.push(GameEntry {
            id: GameId {
                generator: 0,
                counter: line.game,
            },
            // It is the hash of this text, and so a number.
            place: u64::from_str_radix(&line.record_hash, 16).unwrap_or_default(),
            turns: u32::try_from(line.turns).unwrap_or(u32::MAX),
            networks,
            surprise: None,
            end: line.reason.into(),
            winner: record.header.winner(),
            start: start_of(&record),
        });
    }
}

fn start_of(record: &RecordRemarks) -> GameStart {
    match record.header.opening {
        _ if record.is_from_position => GameStart::Position,
        OWN_SETUPS => GameStart::Empty,
        _ => GameStart::Opening,
    }
}

/// The hash of a record in the results, from the number that the index keeps.
pub(super) fn hash_text(place: u64) -> String {
    format!("{place:016x}")
}

/// The record of a match's game, in the run's folder.
pub(super) fn record_path(results: &FoundFile, number: u64) -> String {
    let folder = results.path.trim_end_matches(RESULTS);
    folder.to_owned() + &record_name(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_says_how_its_game_began() {
        for (text, start) in [
            ("Opening: 1, random setups\n\n1g Ra1\n", GameStart::Opening),
            (
                "Opening: the players' own setups\n\n1g Ra1\n",
                GameStart::Empty,
            ),
            ("Opening: x\n\ng [r  ]\n2g Ra1n\n", GameStart::Position),
        ] {
            assert_eq!(start_of(&RecordRemarks::read(text)), start, "{text}");
        }
    }
}
