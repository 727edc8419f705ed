//! Where imported games go.

use crate::shard_target::{IMPORTED, ShardTarget};
use anyhow::{Context, Result};
use engine::encoding::ENCODING_VERSION;
use engine::record::{
    EvaluatorId, GameId, GameRecord, Header, ShardName, ShardReader, ShardWriter, list_shards,
};
use engine::run::{GeneratorPaths, RunDirectory, claim_generator, make_folder};
use std::path::Path;

/// The games of a shard at most: a few MB.
const GAMES_PER_SHARD: usize = 1_000;

/// The shards of one import. They have one generator number, which is claimed when the first game comes. A shard holds games of one
/// file, whose hash is in its header, beside the digest of the choice of games. So an import that was interrupted can be repeated: games
/// that are there are not imported again.
pub(super) struct ImportedShards {
    paths: GeneratorPaths,
    /// The digest of which games are chosen, and how they are read.
    choice: String,
    /// The run, if they go into one.
    run: Option<RunDirectory>,
    generator: Option<u32>,
    /// The hash of the file that is being imported.
    source: String,
    shards: u32,
    games: u64,
    writer: Option<ShardWriter>,
    /// Games of this file that are still to come, and are in shards of an earlier import.
    present: u64,
}

impl ImportedShards {
    /// Writes nothing yet.
    ///
    /// # Errors
    /// The run is of another format.
    pub(super) fn new(target: &ShardTarget, choice: String) -> Result<Self> {
        let run = target.run();
        if let Some(run) = &run {
            run.check_format()?;
        }
        Ok(Self {
            paths: target.paths()?,
            choice,
            run,
            generator: None,
            source: String::new(),
            shards: 0,
            games: 0,
            writer: None,
            present: 0,
        })
    }

    /// The folder of the shards.
    pub(super) fn folder(&self) -> &Path {
        &self.paths.shards
    }

    /// The games that follow are from a file with this hash.
    ///
    /// # Errors
    /// A shard of an earlier import of the file has a fault: how many of its games are there is not known.
    pub(super) fn begin_file(&mut self, hash: String) -> Result<()> {
        self.finish()?;
        self.source = hash;
        self.present = self.count_present()?;
        Ok(())
    }

    /// Adds a game, and numbers it. Returns whether it is new: the shards of an earlier import hold the first games of their file.
    pub(super) fn push(&mut self, mut record: GameRecord) -> Result<bool> {
        if self.present > 0 {
            self.present -= 1;
            return Ok(false);
        }
        let generator = self.generator()?;
        record.id = GameId {
            generator,
            counter: self.games,
        };
        let writer = match &mut self.writer {
            Some(writer) => writer,
            None => {
                let sequence = self.shards;
                let name = ShardName {
                    generator,
                    sequence,
                };
                self.shards += 1;
                let header = header(generator, &self.source, &self.choice);
                let writer = ShardWriter::create(&self.paths.shards, name, &header)?;
                self.writer.insert(writer)
            }
        };
        writer.push(&record)?;
        self.games += 1;
        if writer.len() >= GAMES_PER_SHARD {
            self.finish()?;
        }
        Ok(true)
    }

    /// The games of the file in shards of an earlier import with the same choice.
    fn count_present(&self) -> Result<u64> {
        if !self.paths.shards.exists() {
            return Ok(0);
        }
        let mut games = 0;
        for path in list_shards(&self.paths.shards)?.values() {
            // What a shard without a readable header holds is not known; its readers name it.
            let Ok(shard) = ShardReader::open(path) else {
                continue;
            };
            let header = shard.header();
            let origin = (header.evaluator.name.as_str(), &header.evaluator.identity);
            if origin != (IMPORTED, &self.source) || header.config_digest != self.choice {
                continue;
            }
            for game in shard {
                game.context("this shard is of an earlier import of the same file: repair it with `selfplay inspect --repair`, or remove it")?;
                games += 1;
            }
        }
        Ok(games)
    }

    /// Completes the shard that is being written.
    pub(super) fn finish(&mut self) -> Result<()> {
        if let Some(writer) = self.writer.take() {
            writer.finish()?;
        }
        Ok(())
    }

    fn generator(&mut self) -> Result<u32> {
        if let Some(generator) = self.generator {
            return Ok(generator);
        }
        if let Some(run) = &self.run {
            run.ensure_format()?;
        }
        let GeneratorPaths { root, shards, .. } = &self.paths;
        make_folder(shards)?;
        let generator = claim_generator(root, shards)?;
        self.generator = Some(generator);
        Ok(generator)
    }
}

/// The header of a shard of imported games. They had no evaluator: its identity is the hash of their file. They had no
/// configuration: its digest is that of their choice.
fn header(generator: u32, source: &str, choice: &str) -> Header {
    Header {
        encoding_version: ENCODING_VERSION,
        program_version: env!("CARGO_PKG_VERSION").to_owned(),
        evaluator: EvaluatorId {
            name: IMPORTED.to_owned(),
            identity: source.to_owned(),
        },
        config_digest: choice.to_owned(),
        generator,
    }
}
