//! Where imported games go.

use crate::shard_target::{IMPORTED, ShardTarget};
use anyhow::Result;
use engine::encoding::ENCODING_VERSION;
use engine::record::{EvaluatorId, GameId, GameRecord, Header, ShardName, ShardWriter, digest};
use engine::run::{GeneratorPaths, RunDirectory, claim_generator, make_folder};
use std::path::Path;

/// The games of a shard at most: a few MB.
const GAMES_PER_SHARD: usize = 1_000;

/// The shards of one import. They have one generator number, which is claimed when the first game comes. A shard holds games of one
/// file, whose hash is in its header.
pub(super) struct ImportedShards {
    paths: GeneratorPaths,
    /// The run, if they go into one.
    run: Option<RunDirectory>,
    generator: Option<u32>,
    /// The hash of the file that is being imported.
    source: String,
    shards: u32,
    games: u64,
    writer: Option<ShardWriter>,
}

impl ImportedShards {
    /// Writes nothing yet.
    ///
    /// # Errors
    /// The run is of another format.
    pub(super) fn new(target: &ShardTarget) -> Result<Self> {
        let run = target.run();
        if let Some(run) = &run {
            run.check_format()?;
        }
        Ok(Self {
            paths: target.paths()?,
            run,
            generator: None,
            source: String::new(),
            shards: 0,
            games: 0,
            writer: None,
        })
    }

    /// The folder of the shards.
    pub(super) fn folder(&self) -> &Path {
        &self.paths.shards
    }

    /// The games that follow are from a file with this hash.
    pub(super) fn begin_file(&mut self, hash: String) -> Result<()> {
        self.finish()?;
        self.source = hash;
        Ok(())
    }

    /// Adds a game, and numbers it.
    pub(super) fn push(&mut self, mut record: GameRecord) -> Result<()> {
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
                let header = header(generator, &self.source);
                let writer = ShardWriter::create(&self.paths.shards, name, &header)?;
                self.writer.insert(writer)
            }
        };
        writer.push(&record)?;
        self.games += 1;
        if writer.len() >= GAMES_PER_SHARD {
            self.finish()?;
        }
        Ok(())
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
/// configuration.
fn header(generator: u32, source: &str) -> Header {
    Header {
        encoding_version: ENCODING_VERSION,
        program_version: env!("CARGO_PKG_VERSION").to_owned(),
        evaluator: EvaluatorId {
            name: IMPORTED.to_owned(),
            identity: source.to_owned(),
        },
        config_digest: digest(b""),
        generator,
    }
}
