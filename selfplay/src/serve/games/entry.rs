//! What the index keeps of a game, and of the file that holds it.

use arimaa::rules::{Reason, Side};
use engine::record::{Ending, GameId, Start};
use serde::{Deserialize, Serialize};

/// The most problems that are kept of a file, and that an answer has.
pub(super) const MAX_PROBLEMS: usize = 100;

/// How a game ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum GameEnd {
    Goal,
    Elimination,
    Immobilization,
    Unfinished,
    Resigned,
    Forfeited,
}

impl From<Ending> for GameEnd {
    fn from(ending: Ending) -> Self {
        match ending {
            Ending::Won(outcome) => match outcome.reason {
                Reason::Goal => Self::Goal,
                Reason::Elimination => Self::Elimination,
                Reason::Immobilization => Self::Immobilization,
            },
            Ending::Unfinished { .. } => Self::Unfinished,
            Ending::Resigned { .. } => Self::Resigned,
            Ending::Forfeited { .. } => Self::Forfeited,
        }
    }
}

/// How a game began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum GameStart {
    Empty,
    Fork,
    Opening,
    Position,
}

impl From<Start> for GameStart {
    fn from(start: Start) -> Self {
        match start {
            Start::Empty => Self::Empty,
            Start::Fork { .. } => Self::Fork,
            Start::Opening => Self::Opening,
            Start::Position(_) => Self::Position,
        }
    }
}

/// One game of the index.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct GameEntry {
    /// Of a match's game: generator 0, and the game's number.
    pub(super) id: GameId,
    /// The first byte of the game's frame in its shard; of a match's game, the hash of its record.
    pub(super) place: u64,
    pub(super) turns: u32,
    /// The place of its networks in [`IndexedFile::networks`].
    pub(super) networks: u32,
    /// The mean over its rows, in nats: finite, 0 or more; none without rows.
    pub(super) surprise: Option<f32>,
    pub(super) end: GameEnd,
    pub(super) winner: Option<Side>,
    pub(super) start: GameStart,
}

const _: () = assert!(size_of::<GameEntry>() <= 48);

/// What a file's index depends on: with another one the file is read again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FileKey {
    pub(super) bytes: u64,
    /// When it was last written: nanoseconds since 1970.
    pub(super) time: u64,
}

/// What kind of file holds the games.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum FileKind {
    Shard,
    /// The results of a match; each game's record is a file of its own beside them.
    Results,
}

/// A file that is there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FoundFile {
    /// In the run's folder, as problems name it.
    pub(super) path: String,
    pub(super) source: String,
    pub(super) kind: FileKind,
    pub(super) key: FileKey,
}

/// The games of a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct IndexedFile {
    pub(super) file: FoundFile,
    /// The sets of networks that its games were played with: few, often one.
    pub(super) networks: Vec<Vec<String>>,
    /// In the order of the file.
    pub(super) games: Vec<GameEntry>,
    problems: Vec<String>,
    /// Those beyond the ones that are kept.
    more_problems: u64,
    /// Whether reading it failed in a way that may pass.
    #[serde(skip)]
    pub(super) may_recover: bool,
}

impl IndexedFile {
    /// No game yet.
    pub(super) fn new(file: FoundFile) -> Self {
        Self {
            file,
            networks: Vec::new(),
            games: Vec::new(),
            problems: Vec::new(),
            more_problems: 0,
            may_recover: false,
        }
    }

    /// The networks of one of its games.
    pub(super) fn networks_of(&self, game: &GameEntry) -> &[String] {
        let networks = self.networks.get(game.networks as usize);
        networks.map_or(&[], Vec::as_slice)
    }

    /// The place of a set of networks, which is added where it is new.
    pub(super) fn place_of(&mut self, names: &[&str]) -> u32 {
        let place = self.networks.iter().position(|known| known == names);
        let place = place.unwrap_or_else(|| {
            let names = names.iter().map(|&name| name.to_owned());
            self.networks.push(names.collect());
            self.networks.len() - 1
        });
        place as u32
    }

    pub(super) fn add_problem(&mut self, problem: String) {
        if self.problems.len() < MAX_PROBLEMS {
            self.problems.push(problem);
        } else {
            self.more_problems += 1;
        }
    }

    /// What is wrong with it, and how many problems were not kept.
    pub(super) fn problems(&self) -> (&[String], u64) {
        (&self.problems, self.more_problems)
    }
}
