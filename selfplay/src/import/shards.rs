//! Where imported games go.

use anyhow::Result;
use engine::encoding::ENCODING_VERSION;
use engine::record::{EvaluatorId, GameId, GameRecord, Header, ShardName, ShardWriter, digest};
use engine::run::{RunDirectory, claim_generator, make_folder};
use std::path::{Path, PathBuf};

/// The games of a shard at most: a few MB.
const GAMES_PER_SHARD: usize = 1_000;

/// The shards of one import: under one generator number, which is claimed when the first game comes. A shard holds games of one
/// file, whose hash stands in its header.
pub(super) struct ImportedShards {
    folder: PathBuf,
    /// The folder in which generators have their numbers.
    numbers: PathBuf,
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
    /// Into a plain folder.
    pub(super) fn in_folder(folder: &Path) -> Self {
        Self::new(folder.to_owned(), folder.to_owned(), None)
    }

    /// Into a run, which is refused if it is of another format.
    pub(super) fn in_run(root: &Path) -> Result<Self> {
        let run = RunDirectory::new(root);
        run.check_format()?;
        Ok(Self::new(run.shards(), root.to_owned(), Some(run)))
    }

    fn new(folder: PathBuf, numbers: PathBuf, run: Option<RunDirectory>) -> Self {
        Self {
            folder,
            numbers,
            run,
            generator: None,
            source: String::new(),
            shards: 0,
            games: 0,
            writer: None,
        }
    }

    /// The folder of the shards.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// What follows is from a file with this hash.
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
                let name = ShardName {
                    generator,
                    sequence: self.shards,
                };
                self.shards += 1;
                let header = header(generator, &self.source);
                self.writer
                    .insert(ShardWriter::create(&self.folder, name, &header)?)
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
        make_folder(&self.folder)?;
        let generator = claim_generator(&self.numbers, &self.folder)?;
        self.generator = Some(generator);
        Ok(generator)
    }
}

/// The header of a shard of imported games: no evaluator was used, so that it is the file that they are from. There is no
/// configuration.
fn header(generator: u32, source: &str) -> Header {
    Header {
        encoding_version: ENCODING_VERSION,
        program_version: env!("CARGO_PKG_VERSION").to_owned(),
        evaluator: EvaluatorId {
            name: super::EVALUATOR.to_owned(),
            identity: source.to_owned(),
        },
        config_digest: digest(b""),
        generator,
    }
}
