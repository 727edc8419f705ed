//! Writes finished games to shards, each exactly once.
//!
//! A finished game stays in the journal until its shard has its final name. A failed write is repeated; until it succeeds, no game
//! is played.

use super::current_player::CurrentPlayer;
use super::disk::RETRY;
use super::prune::{Pruning, Removed};
use anyhow::Result;
use engine::config::SelfplayConfig;
use engine::encoding::ENCODING_VERSION;
use engine::files::is_temporary;
use engine::record::journal::JournalError;
use engine::record::{
    GameId, GameRecord, Header, ShardError, ShardFault, ShardName, ShardReader, ShardWriter,
    remove_unfinished,
};
use engine::run::Generator;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

/// Writes one generator's shards.
pub(crate) struct GameWriter {
    folder: PathBuf,
    /// Of all shards but for the evaluator.
    header: Header,
    /// The games of a shard at most.
    games_per_shard: usize,
    /// A shard is closed when it has at least so many bytes.
    shard_bytes: u64,
    current_player: Arc<CurrentPlayer>,
    /// The version of the current player that the open shard belongs to.
    version: u64,
    generator: Option<Arc<Generator>>,
    pruning: Option<Pruning>,
    sequence: u32,
    /// The finished games that are in no shard with a name.
    games: Vec<GameRecord>,
    stage: Stage,
    /// Whether the shards of all games are to be closed, whatever their size.
    closes: bool,
    pub(crate) written: Written,
    trouble: Option<Trouble>,
}

/// What a generator's shards depend on.
pub(crate) struct GameWriterOptions<'a> {
    /// The folder of the shards.
    pub(crate) folder: &'a Path,
    pub(crate) config_digest: String,
    /// The sequence number of the first shard.
    pub(crate) next_shard: u32,
    pub(crate) config: &'a SelfplayConfig,
    pub(crate) current_player: Arc<CurrentPlayer>,
    /// It numbers the shards. Without one they have number 0, and nothing is journalled.
    pub(crate) generator: Option<Arc<Generator>>,
    /// None removes nothing.
    pub(crate) pruning: Option<Pruning>,
}

/// Totals since the start.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Written {
    pub(crate) shards: u64,
    pub(crate) bytes: u64,
    /// Shards that were removed: the trainer's window has moved past them.
    pub(crate) removed: Removed,
}

/// How far the shard with the first of the games is.
enum Stage {
    /// So many of them are in it.
    Open {
        writer: Option<ShardWriter>,
        pushed: usize,
    },
    /// It has its name, and so many games. The journal has no entry of it yet.
    Named { games: usize },
}

/// The last error, and its time.
struct Trouble {
    reason: String,
    since: Instant,
}

impl Written {
    /// Bytes added to the disk.
    pub(crate) fn on_disk(&self) -> i64 {
        self.bytes as i64 - self.removed.bytes as i64
    }
}

impl Stage {
    const EMPTY: Self = Self::Open {
        writer: None,
        pushed: 0,
    };
}

/// A failed write.
#[derive(Debug, thiserror::Error)]
enum WriteError {
    #[error(transparent)]
    Shard(#[from] ShardError),
    #[error(transparent)]
    Journal(#[from] JournalError),
}

impl WriteError {
    fn is_temporary(&self) -> bool {
        match self {
            Self::Shard(error) => match &error.fault {
                ShardFault::Io(error) => is_temporary(error),
                fault => matches!(fault, ShardFault::GivenUp),
            },
            Self::Journal(error) => error.is_temporary(),
        }
    }
}

impl GameWriter {
    /// Writes nothing yet.
    pub(crate) fn new(options: GameWriterOptions) -> Self {
        let header = Header {
            encoding_version: ENCODING_VERSION,
            program_version: env!("CARGO_PKG_VERSION").to_owned(),
            evaluator: options.current_player.newest().evaluator.clone(),
            config_digest: options.config_digest,
            generator: options.generator.as_ref().map_or(0, |it| it.number()),
        };
        Self {
            folder: options.folder.to_owned(),
            header,
            games_per_shard: options.config.games_per_shard as usize,
            shard_bytes: u64::from(options.config.shard_mib) << 20,
            version: options.current_player.version(),
            current_player: options.current_player,
            generator: options.generator,
            pruning: options.pruning,
            sequence: options.next_shard,
            games: Vec::new(),
            stage: Stage::EMPTY,
            closes: false,
            written: Written::default(),
            trouble: None,
        }
    }

    /// Takes a finished game.
    pub(crate) fn take(&mut self, record: GameRecord) -> Result<()> {
        self.games.push(record);
        self.write_pending()
    }

    /// Writes the pending games. A temporary failure is kept in [`trouble`](Self::trouble), and a later call tries again.
    ///
    /// # Errors
    /// A failure that is not temporary.
    pub(crate) fn write_pending(&mut self) -> Result<()> {
        if let Some(trouble) = &self.trouble
            && trouble.since.elapsed() < RETRY
        {
            return Ok(());
        }
        match self.write() {
            Ok(()) => self.trouble = None,
            Err(error) if error.is_temporary() => {
                // The state of the unfinished shard is unknown: it is written anew.
                if let Stage::Open { .. } = self.stage {
                    self.stage = Stage::EMPTY;
                }
                self.trouble = Some(Trouble {
                    reason: error.to_string(),
                    since: Instant::now(),
                });
            }
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    /// Closes the shards of all games.
    pub(crate) fn close(&mut self) -> Result<()> {
        self.closes = true;
        self.trouble = None;
        self.write_pending()?;
        if self.waiting() == 0 && self.generator.is_some() {
            // Where this fails, the next start removes it.
            let _ = remove_unfinished(&self.folder, self.header.generator);
        }
        Ok(())
    }

    /// Why nothing can be written now, if that is so.
    pub(crate) fn trouble(&self) -> Option<&str> {
        self.trouble.as_ref().map(|trouble| trouble.reason.as_str())
    }

    /// The finished games that are in no shard with a name yet.
    pub(crate) fn waiting(&self) -> usize {
        self.games.len()
    }

    fn write(&mut self) -> Result<(), WriteError> {
        loop {
            if let Stage::Named { games } = self.stage {
                self.record_closed(games)?;
                continue;
            }
            let name = self.name();
            // Another network's games begin another shard.
            let version = self.current_player.version();
            let Stage::Open { writer, pushed } = &mut self.stage else {
                continue;
            };
            let is_full = *pushed >= self.games_per_shard
                || version != self.version
                || writer
                    .as_ref()
                    .is_some_and(|writer| writer.bytes() >= self.shard_bytes);
            if *pushed > 0 && (is_full || (self.closes && *pushed == self.games.len())) {
                self.finish()?;
                continue;
            }
            let Some(game) = self.games.get(*pushed) else {
                self.closes = false;
                return Ok(());
            };
            let writer = match writer {
                Some(writer) => writer,
                None => {
                    self.version = version;
                    self.header.evaluator = self.current_player.newest().evaluator.clone();
                    match ShardWriter::create(&self.folder, name, &self.header) {
                        Ok(created) => writer.insert(created),
                        Err(error) => {
                            let games = self.games_in(name).ok_or(error)?;
                            self.stage = Stage::Named { games };
                            continue;
                        }
                    }
                }
            };
            writer.push(game)?;
            *pushed += 1;
        }
    }

    fn name(&self) -> ShardName {
        ShardName {
            generator: self.header.generator,
            sequence: self.sequence,
        }
    }

    /// Announces the open shard in the journal, and gives it its name.
    fn finish(&mut self) -> Result<(), WriteError> {
        let name = self.name();
        let Stage::Open { writer, pushed } = &mut self.stage else {
            return Ok(());
        };
        let games = *pushed;
        if let Some(generator) = &self.generator {
            let ids: Vec<GameId> = self.games[..games].iter().map(|game| game.id).collect();
            generator.journal().closing(name, &ids)?;
        }
        let Some(writer) = writer.take() else {
            return Ok(());
        };
        match writer.finish() {
            Ok(path) => {
                self.written.bytes += std::fs::metadata(path).map_or(0, |file| file.len());
            }
            // It may have its name although the folder could not be synced, or a server's answer was lost.
            Err(error) if self.games_in(name) != Some(games) => {
                self.stage = Stage::EMPTY;
                return Err(error.into());
            }
            Err(_) => {}
        }
        self.stage = Stage::Named { games };
        Ok(())
    }

    /// How many of the first games a shard with this name holds; none unless it is there and holds nothing else.
    fn games_in(&self, name: ShardName) -> Option<usize> {
        let shard = ShardReader::open(self.folder.join(name.to_string())).ok()?;
        let ids = shard.map(|record| record.map(|record| record.id));
        let ids: Vec<GameId> = ids.collect::<Result<_, _>>().ok()?;
        let own = self.games.iter().take(ids.len()).map(|game| game.id);
        (!ids.is_empty() && own.eq(ids.iter().copied())).then_some(ids.len())
    }

    fn record_closed(&mut self, games: usize) -> Result<(), WriteError> {
        if let Some(generator) = &self.generator {
            generator.journal().closed(self.name())?;
        }
        self.games.drain(..games);
        self.sequence += 1;
        self.written.shards += 1;
        self.stage = Stage::EMPTY;
        if let Some(pruning) = &mut self.pruning {
            let removed = pruning.prune();
            self.written.removed.shards += removed.shards;
            self.written.removed.bytes += removed.bytes;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::current_player::LoadedPlayer;
    use crate::worker::devices::Devices;
    use crate::worker::player::{Player, PlayerName};
    use engine::config::{Config, Precision};
    use engine::record::list_shards;
    use engine::record::samples::random_game;
    use network::Device;

    fn game(counter: u64) -> GameRecord {
        let id = GameId {
            generator: 0,
            counter,
        };
        random_game(id, counter, 6)
    }

    /// Writes two games to a shard.
    fn writer(folder: &Path) -> GameWriter {
        let devices = Devices::of(vec![Device::Cpu], Precision::Fp32);
        let player = Player::open(&PlayerName::Uniform, &devices).unwrap();
        let mut config = Config::default().selfplay;
        config.games_per_shard = 2;
        GameWriter::new(GameWriterOptions {
            folder,
            config_digest: String::new(),
            next_shard: 0,
            config: &config,
            current_player: Arc::new(CurrentPlayer::new(LoadedPlayer::new(player, 1).unwrap())),
            generator: None,
            pruning: None,
        })
    }

    fn games_in(folder: &Path) -> Vec<Vec<u64>> {
        let counters = |path| {
            let records = ShardReader::open(path).unwrap();
            records.map(|record| record.unwrap().id.counter).collect()
        };
        list_shards(folder)
            .unwrap()
            .values()
            .map(counters)
            .collect()
    }

    #[test]
    fn the_end_closes_the_shards_of_all_games() {
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("later");
        let mut writer = writer(&missing);
        for counter in 0..5 {
            writer.take(game(counter)).unwrap();
        }
        assert!(writer.trouble().is_some() && writer.waiting() == 5);
        std::fs::create_dir(&missing).unwrap();
        writer.close().unwrap();
        assert_eq!(writer.waiting(), 0);
        assert_eq!(games_in(&missing), [vec![0, 1], vec![2, 3], vec![4]]);
    }

    #[test]
    fn a_shard_that_got_its_name_in_spite_of_an_error_is_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let mut first = writer(folder.path());
        (0..2).for_each(|counter| first.take(game(counter)).unwrap());
        assert_eq!(games_in(folder.path()), [[0, 1]]);
        // As after an answer of a server that was lost.
        let mut again = writer(folder.path());
        again.take(game(0)).unwrap_err();
        let mut again = writer(folder.path());
        again.games = vec![game(0), game(1)];
        again.take(game(2)).unwrap();
        again.close().unwrap();
        assert_eq!(games_in(folder.path()), [vec![0, 1], vec![2]]);
        // Another one's is an error.
        let mut other = writer(folder.path());
        other.games = vec![game(7)];
        assert!(other.take(game(8)).is_err());
    }
}
