//! The record of a game: a header, the turns in the standard notation, and remarks below them. It is written and read here.
//!
//! ```text
//! Gold: 00012 (a)
//! Silver: material (b)
//! Result: Gold wins by goal
//! Game: 0
//! Seed: 4
//! Opening: 0, random setups
//!
//! 1g Ra1 …
//! 2g Ee2n
//! # value 0.5312, 64 evaluations
//! ```

use arimaa::notation::TurnLabel;
use arimaa::rules::Side;
use engine::files::read_whole;
use std::fmt::{self, Write};
use std::io;
use std::path::Path;
use std::string::FromUtf8Error;

/// The folder of the records in a match's folder.
pub(super) const GAMES: &str = "games";

/// The most bytes of a record.
const MAX_RECORD_BYTES: u64 = 1 << 26;

/// The opening of games without one.
pub(crate) const OWN_SETUPS: &str = "the players' own setups";

/// The letters that distinguish two players.
const LETTERS: [char; 2] = ['a', 'b'];

/// The file of a game's record in the match's folder.
pub(crate) fn record_name(number: u64) -> String {
    format!("{GAMES}/{number:06}.txt")
}

/// The hash of a text, as the results hold it: the first 16 hexadecimal digits of its BLAKE3 hash.
pub(super) fn hash_of(text: &str) -> String {
    let hash = blake3::hash(text.as_bytes()).to_hex();
    hash[..16].to_owned()
}

/// The names of two players in records.
pub(super) fn lettered(names: [String; 2]) -> [String; 2] {
    let [a, b] = LETTERS;
    let [first, second] = names;
    [format!("{first} ({a})"), format!("{second} ({b})")]
}

/// A player's name without its letter.
fn without_letter(label: &str) -> &str {
    let names = LETTERS.map(|letter| label.strip_suffix(&format!(" ({letter})")));
    names.into_iter().flatten().next().unwrap_or(label)
}

/// Why a record can't be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RecordError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Text(#[from] FromUtf8Error),
    #[error("it is not the record that the results name")]
    Another,
}

/// Reads the text of a record, which must have this hash.
pub(crate) fn read_record(path: &Path, hash: &str) -> Result<String, RecordError> {
    let text = String::from_utf8(read_whole(path, MAX_RECORD_BYTES)?)?;
    if hash_of(&text) == hash {
        Ok(text)
    } else {
        Err(RecordError::Another)
    }
}

/// What a player reports about its turn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct TurnInfo {
    /// Win probability of Gold at the start of the turn.
    pub(crate) value: f32,
    /// Evaluations for the turn.
    pub(crate) evaluations: u32,
    /// Whether the turn was drawn from the policy.
    pub(crate) is_sampled: bool,
}

/// What follows the evaluations of a turn that was drawn from the policy.
const SAMPLED: &str = " without a search";

impl fmt::Display for TurnInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (value, evaluations) = (self.value, self.evaluations);
        let sampled = if self.is_sampled { SAMPLED } else { "" };
        write!(f, "# value {value:.4}, {evaluations} evaluations{sampled}")
    }
}

impl TurnInfo {
    fn read(line: &str) -> Option<Self> {
        let (value, evaluations) = line.strip_prefix("# value ")?.split_once(", ")?;
        let searched = evaluations.strip_suffix(SAMPLED);
        let evaluations = searched.unwrap_or(evaluations);
        Some(Self {
            value: value.parse().ok()?,
            evaluations: evaluations.strip_suffix(" evaluations")?.parse().ok()?,
            is_sampled: searched.is_some(),
        })
    }
}

/// The header of a record.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct RecordHeader<'a> {
    /// The players' names in the match.
    pub(super) gold: &'a str,
    pub(super) silver: &'a str,
    /// How the game ended, in words: `Gold wins by …`, `Silver wins by …`, or another text without a winner.
    pub(super) result: &'a str,
    pub(super) game: u64,
    pub(crate) seed: u64,
    pub(crate) opening: &'a str,
}

impl fmt::Display for RecordHeader<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "Gold: {}\nSilver: {}", self.gold, self.silver)?;
        writeln!(f, "Result: {}\nGame: {}", self.result, self.game)?;
        writeln!(f, "Seed: {}\nOpening: {}\n", self.seed, self.opening)
    }
}

impl<'a> RecordHeader<'a> {
    fn read_tag(&mut self, tag: &str, value: &'a str) {
        match tag {
            "Gold" => self.gold = value,
            "Silver" => self.silver = value,
            "Result" => self.result = value,
            "Game" => self.game = value.parse().unwrap_or(0),
            "Seed" => self.seed = value.parse().unwrap_or(0),
            "Opening" => self.opening = value,
            _ => {}
        }
    }

    /// The names of Gold's player and Silver's, without the letters that distinguish two players.
    pub(crate) fn players(&self) -> [&'a str; 2] {
        [self.gold, self.silver].map(without_letter)
    }

    pub(crate) fn winner(&self) -> Option<Side> {
        let (side, _) = self.result.split_once(" wins")?;
        Side::ALL
            .into_iter()
            .find(|found| format!("{found:?}") == side)
    }

    /// The record: the header and the lines of `turns`, the last `played` of which are turns. Remarks follow each turn and the last.
    pub(super) fn with_turns<'r>(
        &self,
        turns: &str,
        played: usize,
        remarks: impl Fn(usize) -> (Option<TurnInfo>, Option<&'r str>),
        ending: Option<&str>,
    ) -> String {
        // Writing to a text can't fail.
        let mut text = self.to_string();
        text.reserve(2 * turns.len());
        let positions = turns.lines().count() - played;
        for (place, line) in turns.lines().enumerate() {
            let _ = writeln!(text, "{line}");
            let (info, remark) = place.checked_sub(positions).map_or((None, None), &remarks);
            if let Some(info) = info {
                let _ = writeln!(text, "{info}");
            }
            if let Some(remark) = remark {
                let _ = writeln!(text, "# {remark}");
            }
        }
        for line in ending.into_iter().flat_map(str::lines) {
            let _ = writeln!(text, "# {line}");
        }
        text
    }
}

/// What a record says beside the turns.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct RecordRemarks<'a> {
    pub(crate) header: RecordHeader<'a>,
    /// Whether the game began from a position other than the empty board.
    pub(crate) is_from_position: bool,
    /// What the players reported, for each turn in order.
    pub(crate) turns: Vec<Option<TurnInfo>>,
}

impl<'a> RecordRemarks<'a> {
    /// Reads the header and the remarks of a record. What is missing is empty.
    pub(crate) fn read(text: &'a str) -> Self {
        let mut record = Self::default();
        let mut lines = text.lines();
        for line in lines.by_ref().take_while(|line| !line.is_empty()) {
            if let Some((tag, value)) = line.split_once(": ") {
                record.header.read_tag(tag, value);
            }
        }
        for line in lines {
            record.read_line(line);
        }
        record
    }

    fn read_line(&mut self, line: &str) {
        let first = line.split_whitespace().next().unwrap_or_default();
        if let (Some(last), Some(info)) = (self.turns.last_mut(), TurnInfo::read(line)) {
            *last = Some(info);
        } else if first.parse::<TurnLabel>().is_ok() {
            self.turns.push(None);
        } else if self.turns.is_empty() && line.contains('[') {
            self.is_from_position = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_and_remarks_are_read() {
        let text = "Gold: 00002 (b)\nSilver: uniform (c=1)\nResult: Silver wins by time of Gold\nGame: 3\nSeed: 9\n\
            Opening: 1, random setups\n\n1g Ra1\n1s ra8\n# value 0.2500, 64 evaluations\n# it spoke\n2g Ra1n\n";
        let record = RecordRemarks::read(text);
        let header = record.header;
        assert!(text.starts_with(&header.to_string()));
        assert_eq!(header.players(), ["00002", "uniform (c=1)"]);
        assert_eq!((header.seed, header.winner()), (9, Some(Side::Silver)));
        assert!(!record.is_from_position);
        let info = TurnInfo {
            value: 0.25,
            evaluations: 64,
            is_sampled: false,
        };
        assert_eq!(record.turns, [None, Some(info), None]);
        let sampled = TurnInfo {
            is_sampled: true,
            ..info
        };
        assert_eq!(TurnInfo::read(&sampled.to_string()), Some(sampled));
        assert!(RecordRemarks::read("Opening: x\n\ng [r  ]\n2g Ra1n\n").is_from_position);
        RecordRemarks::read("");
    }
}
