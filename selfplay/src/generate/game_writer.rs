//! From finished games to shards, by way of the journal: nothing is lost on the way, and nothing is kept twice.
//!
//! A finished game stays in the journal until the shard that holds it has its name. What can't be written is tried again; until then
//! no game is played.

use super::current_player::CurrentPlayer;
use super::disk::{RETRY, may_pass};
use super::prune::{Pruning, Removed};
use anyhow::Result;
use engine::config::SelfplayConfig;
use engine::run::Generator;
use engine::shard::journal::{JournalError, JournalFault};
use engine::shard::{
    GameId, GameRecord, Header, ShardError, ShardFault, ShardName, ShardWriter, remove_unfinished,
};
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
    roster: Arc<CurrentPlayer>,
    /// The roster's version that the open shard belongs to.
    version: u64,
    generator: Option<Arc<Generator>>,
    pruning: Option<Pruning>,
    sequence: u32,
    /// The finished games that are in no shard with a name.
    games: Vec<GameRecord>,
    stage: Stage,
    pub(crate) written: Written,
    trouble: Option<Trouble>,
}

/// What has been written since the start.
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
        /// Whether it is to be closed, whatever its size.
        closes: bool,
    },
    /// It has its name, and so many games. The journal has not heard of it.
    Named { games: usize },
}

/// What goes wrong at present, and when to try again.
struct Trouble {
    reason: String,
    since: Instant,
}

impl Written {
    /// What it has added to the disk.
    pub(crate) fn on_disk(&self) -> i64 {
        self.bytes as i64 - self.removed.bytes as i64
    }
}

impl Stage {
    const EMPTY: Self = Self::Open {
        writer: None,
        pushed: 0,
        closes: false,
    };
}

/// What can go wrong.
#[derive(Debug, thiserror::Error)]
enum KeepError {
    #[error(transparent)]
    Shard(#[from] ShardError),
    #[error(transparent)]
    Journal(#[from] JournalError),
}

impl KeepError {
    fn may_pass(&self) -> bool {
        match self {
            Self::Shard(error) => match &error.fault {
                ShardFault::Io(error) => may_pass(error),
                fault => matches!(fault, ShardFault::GivenUp),
            },
            Self::Journal(error) => {
                matches!(&error.fault, JournalFault::Io(error) if may_pass(error))
            }
        }
    }
}

impl GameWriter {
    /// Keeps games in a folder, under the number of the header's generator, in shards from a sequence number on.
    pub(crate) fn new(
        folder: &Path,
        header: Header,
        next_shard: u32,
        config: &SelfplayConfig,
        roster: Arc<CurrentPlayer>,
        generator: Option<Arc<Generator>>,
        pruning: Option<Pruning>,
    ) -> Self {
        Self {
            folder: folder.to_owned(),
            header,
            games_per_shard: config.games_per_shard as usize,
            shard_bytes: u64::from(config.shard_mib) << 20,
            version: roster.version(),
            roster,
            generator,
            pruning,
            sequence: next_shard,
            games: Vec::new(),
            stage: Stage::EMPTY,
            written: Written::default(),
            trouble: None,
        }
    }

    /// Takes a finished game.
    pub(crate) fn take(&mut self, record: GameRecord) -> Result<()> {
        self.games.push(record);
        self.go_on()
    }

    /// Writes what there is to write. Where it can't be written for now, it says so by [`trouble`](Self::trouble), and tries again
    /// when it is called later.
    pub(crate) fn go_on(&mut self) -> Result<()> {
        if let Some(trouble) = &self.trouble
            && trouble.since.elapsed() < RETRY
        {
            return Ok(());
        }
        match self.write() {
            Ok(()) => self.trouble = None,
            Err(error) if error.may_pass() => {
                // What was written of the shard is not known. It is written anew, from the games.
                if let Stage::Open { writer, pushed, .. } = &mut self.stage {
                    (*writer, *pushed) = (None, 0);
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

    /// Closes the shard that is open, if it has games.
    pub(crate) fn close(&mut self) -> Result<()> {
        if let Stage::Open { closes, .. } = &mut self.stage {
            *closes = true;
        }
        self.trouble = None;
        self.go_on()?;
        if self.waiting() == 0 && self.generator.is_some() {
            // Where a folder could not be written to, what had been begun could not be removed either. The next start tries it again.
            let _ = remove_unfinished(&self.folder, self.header.generator);
        }
        Ok(())
    }

    /// Why nothing can be written, if it is so.
    pub(crate) fn trouble(&self) -> Option<&str> {
        self.trouble.as_ref().map(|trouble| trouble.reason.as_str())
    }

    /// The finished games that are in no shard with a name yet.
    pub(crate) fn waiting(&self) -> usize {
        self.games.len()
    }

    fn write(&mut self) -> Result<(), KeepError> {
        loop {
            if let Stage::Named { games } = self.stage {
                self.say_closed(games)?;
                continue;
            }
            let name = self.name();
            // Another network's games begin another shard.
            let version = self.roster.version();
            let Stage::Open {
                writer,
                pushed,
                closes,
            } = &mut self.stage
            else {
                continue;
            };
            let is_full = *pushed >= self.games_per_shard
                || version != self.version
                || writer
                    .as_ref()
                    .is_some_and(|writer| writer.bytes() >= self.shard_bytes);
            if *pushed > 0 && (is_full || (*closes && *pushed == self.games.len())) {
                self.finish()?;
                continue;
            }
            let Some(game) = self.games.get(*pushed) else {
                *closes = false;
                return Ok(());
            };
            let writer = match writer {
                Some(writer) => writer,
                None => {
                    self.version = version;
                    self.header.evaluator = self.roster.newest().evaluator.clone();
                    writer.insert(ShardWriter::create(&self.folder, name, &self.header)?)
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

    /// Announces the open shard, and gives it its name.
    fn finish(&mut self) -> Result<(), KeepError> {
        let name = self.name();
        let Stage::Open { writer, pushed, .. } = &mut self.stage else {
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
            // It may have its name although the disk could not be told in time.
            Err(error) if self.folder.join(name.to_string()).exists() => {
                let is_ours = matches!(error.fault, ShardFault::Io(_));
                if !is_ours {
                    return Err(error.into());
                }
            }
            Err(error) => {
                *pushed = 0;
                return Err(error.into());
            }
        }
        self.stage = Stage::Named { games };
        Ok(())
    }

    fn say_closed(&mut self, games: usize) -> Result<(), KeepError> {
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
