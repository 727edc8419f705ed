//! Where imported games go.

use crate::inspect::ShardGames;
use crate::shard_target::ShardTarget;
use anyhow::Result;
use engine::encoding::ENCODING_VERSION;
use engine::progress::say;
use engine::record::{
    EvaluatorId, GameId, GameRecord, Header, IMPORTED, ShardName, ShardReader, ShardWriter, digest,
    list_shards,
};
use engine::run::{GeneratorPaths, RunDirectory, claim_generator, make_folder};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// The games of a shard at most: a few MB.
const GAMES_PER_SHARD: usize = 1_000;

/// The shards of one import. They have one generator number, which is claimed when the first game comes. A shard holds games of one
/// file, whose hash is in its header. So an import that was interrupted can be repeated: games of the file that are there are not imported
/// again.
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
    /// The imported shards that are there, by the hash of their file.
    imported: Option<HashMap<String, Vec<PathBuf>>>,
    /// How often the shards hold each game of this file, beyond those that have come.
    present: HashMap<blake3::Hash, u64>,
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
            imported: None,
            present: HashMap::new(),
        })
    }

    /// The folder of the shards.
    pub(super) fn folder(&self) -> &Path {
        &self.paths.shards
    }

    /// The games that follow are from a file with this hash.
    pub(super) fn begin_file(&mut self, hash: String) -> Result<()> {
        self.finish()?;
        if self.imported.is_none() {
            self.imported = Some(imported_shards(&self.paths.shards)?);
        }
        let shards = self
            .imported
            .as_ref()
            .and_then(|imported| imported.get(&hash));
        self.present.clear();
        for path in shards.into_iter().flatten() {
            // Games that can't be read are imported again.
            let games = ShardGames::open(path)?.filter_map(|(_, game)| game.ok());
            for game in games {
                *self.present.entry(content_of(&game)?).or_default() += 1;
            }
        }
        self.source = hash;
        Ok(())
    }

    /// Adds a game, and numbers it. Returns whether it is new: the shards of an earlier import may hold it.
    pub(super) fn push(&mut self, mut record: GameRecord) -> Result<bool> {
        if !self.present.is_empty()
            && let Some(count) = self.present.get_mut(&content_of(&record)?)
            && *count > 0
        {
            *count -= 1;
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
        Ok(true)
    }

    /// Completes the shard that is being written.
    pub(super) fn finish(&mut self) -> Result<()> {
        if let Some(writer) = self.writer.take() {
            let path = writer.finish()?;
            if let Some(imported) = &mut self.imported {
                imported.entry(self.source.clone()).or_default().push(path);
            }
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
        make_folder(&self.paths.shards)?;
        let generator = claim_generator(&self.paths)?;
        self.generator = Some(generator);
        Ok(generator)
    }
}

/// The imported shards of a folder, by the hash of their file. One that can't be read is named: its games may be imported again.
fn imported_shards(folder: &Path) -> Result<HashMap<String, Vec<PathBuf>>> {
    let mut found = HashMap::<String, Vec<PathBuf>>::new();
    if !folder.exists() {
        return Ok(found);
    }
    for path in list_shards(folder)?.into_values() {
        match ShardReader::open(&path) {
            Ok(shard) if shard.header().evaluator.name == IMPORTED => {
                let source = shard.header().evaluator.identity.clone();
                found.entry(source).or_default().push(path);
            }
            Ok(_) => {}
            Err(error) => say(&format!(
                "note: {error}: which games it holds is not known; they may be imported twice"
            )),
        }
    }
    Ok(found)
}

/// A hash of a game's start, actions and ending.
fn content_of(record: &GameRecord) -> Result<blake3::Hash> {
    let turns: Vec<&[u16]> = record.turns.iter().map(|turn| &turn.actions[..]).collect();
    let content = (&record.start, turns, &record.ending);
    Ok(blake3::hash(&serde_json::to_vec(&content)?))
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
