//! Reads all whole games of a shard, and each fault with its place.

use super::summary::{AvoidableLosses, Inspected};
use engine::files;
use engine::record::{
    FrameLocation, GameId, GameRecord, ReplayError, ShardError, ShardFault, ShardReader, replay,
};
use rayon::prelude::*;
use rustc_hash::FxHashMap;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Games that one thread takes at once. Their sums are added in the order of the file: a shard's totals don't depend on the threads.
const GAMES_AT_ONCE: usize = 16;

/// The games and faults of a shard in order. After a frame that can't be read, the next one that can follows.
pub(crate) struct ShardGames {
    reader: ShardReader,
    /// Why no frame after the last fault can be found.
    given_up: Option<ShardError>,
}

impl ShardGames {
    pub(crate) fn open(path: &Path) -> Result<Self, ShardError> {
        Ok(Self {
            reader: ShardReader::open(path)?,
            given_up: None,
        })
    }
}

impl Iterator for ShardGames {
    type Item = (FrameLocation, Result<GameRecord, ShardError>);

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(fault) = self.given_up.take() {
            return Some((self.reader.last_location(), Err(fault)));
        }
        let game = self.reader.next()?;
        let at = self.reader.last_location();
        if game.is_err() {
            self.given_up = self.reader.resync().err();
        }
        Some((at, game))
    }
}

/// A game that was read, and its place.
pub(crate) struct FoundGame {
    pub(crate) path: PathBuf,
    pub(crate) at: FrameLocation,
    pub(crate) record: GameRecord,
}

impl FoundGame {
    /// A fault of the game, with its place.
    pub(crate) fn fault(&self, error: ReplayError) -> ShardError {
        in_frame(&self.path, self.at, error)
    }
}

/// The games of some shards in order, and each fault in its place.
pub(crate) fn games_of(
    shards: Vec<PathBuf>,
) -> impl Iterator<Item = Result<FoundGame, ShardError>> + Send {
    shards.into_iter().flat_map(|path| {
        let (games, fault) = match ShardGames::open(&path) {
            Ok(games) => (Some(games), None),
            Err(fault) => (None, Some(Err(fault))),
        };
        let games = games.into_iter().flatten().map(move |(at, game)| {
            game.map(|record| FoundGame {
                path: path.clone(),
                at,
                record,
            })
        });
        fault.into_iter().chain(games)
    })
}

impl Inspected {
    /// Reads a shard. `with_losses` counts its avoidable losses too.
    pub(super) fn of_shard(path: &Path, with_losses: bool) -> Self {
        let mut inspected = Self::empty(path);
        if with_losses {
            inspected.summary.avoidable_losses = Some(AvoidableLosses::default());
        }
        match ShardGames::open(path) {
            Ok(games) => inspected.read(games),
            Err(fault) => {
                inspected.bytes = std::fs::metadata(path).map_or(0, |metadata| metadata.len());
                inspected.faults.push(fault);
            }
        }
        inspected
    }

    fn read(&mut self, mut games: ShardGames) {
        let reader = &games.reader;
        self.bytes = reader.bytes();
        self.header = Some(reader.header().clone());
        let chunks = std::iter::from_fn(|| {
            let chunk: Vec<_> = games.by_ref().take(GAMES_AT_ONCE).collect();
            (!chunk.is_empty()).then_some(chunk)
        });
        let empty = || {
            let mut part = Self::empty(&self.path);
            part.summary.avoidable_losses = self.summary.avoidable_losses;
            part
        };
        // One thread at a time reads; all threads replay.
        let mut parts: Vec<(usize, Self)> = chunks
            .enumerate()
            .par_bridge()
            .map(|(index, chunk)| (index, empty().of_games(chunk)))
            .collect();
        parts.sort_by_key(|&(index, _)| index);
        for (_, part) in parts {
            self.summary.add(&part.summary);
            self.faults.extend(part.faults);
            self.ids.extend(part.ids);
        }
    }

    fn of_games(mut self, games: Vec<(FrameLocation, Result<GameRecord, ShardError>)>) -> Self {
        for (at, game) in games {
            if let Err(fault) = game.and_then(|record| self.count(at, &record)) {
                self.faults.push(fault);
            }
        }
        self
    }

    fn count(&mut self, at: FrameLocation, record: &GameRecord) -> Result<(), ShardError> {
        let turns = replay(record).map_err(|error| in_frame(&self.path, at, error))?;
        self.summary.count(record, &turns);
        self.ids.push((record.id, at));
        Ok(())
    }

    fn empty(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            ..Self::default()
        }
    }
}

/// A game's fault with its place.
pub(crate) fn in_frame(path: &Path, at: FrameLocation, error: ReplayError) -> ShardError {
    fault_in_frame(path, at, ShardFault::Game(error))
}

fn fault_in_frame(path: &Path, at: FrameLocation, fault: ShardFault) -> ShardError {
    ShardError {
        path: path.to_owned(),
        frame: Some(at.frame),
        offset: at.offset,
        fault,
    }
}

/// Adds a fault for each game that is a copy of one before it, in its shard or in an earlier shard of the same folder. Ids are unique
/// in a run, which keeps its shards in one folder: other folders may have the same ids.
pub(super) fn find_doubled(shards: &mut [Inspected]) {
    let mut folders: HashMap<PathBuf, FxHashMap<GameId, (usize, u64)>> = HashMap::new();
    for index in 0..shards.len() {
        let known = folders.entry(folder_of(&shards[index].path)).or_default();
        let mut doubled = Vec::new();
        for (id, at) in std::mem::take(&mut shards[index].ids) {
            match known.get(&id) {
                Some(&first) => doubled.push((id, at, first)),
                None => {
                    known.insert(id, (index, at.offset));
                }
            }
        }
        for (id, at, (first, offset)) in doubled {
            let path = shards[first].path.clone();
            let fault = ShardFault::Doubled { id, path, offset };
            let fault = fault_in_frame(&shards[index].path, at, fault);
            shards[index].faults.push(fault);
        }
        shards[index].faults.sort_by_key(|fault| fault.offset);
    }
}

/// The canonical folder of a file.
pub(super) fn folder_of(path: &Path) -> PathBuf {
    let folder = files::folder_of(path);
    folder.canonicalize().unwrap_or_else(|_| folder.to_owned())
}
