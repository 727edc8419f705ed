//! The index over folders that tests write.

mod details;
mod files;
mod matches;
mod pages;
mod speed;

use super::{GamesIndex, GamesQuery};
use axum::extract::Query;
use engine::encoding::ENCODING_VERSION;
use engine::files::folder_of;
use engine::record::samples::random_game;
use engine::record::{
    EvaluatorId, GameId, GameRecord, Header, ShardName, ShardWriter, TurnOrigin, digest,
};
use engine::run::RunDirectory;
use serde_json::Value;
use std::path::PathBuf;
use std::time::Duration;
use tempfile::TempDir;

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// A run in a folder of its own.
struct TestRun {
    folder: TempDir,
    run: RunDirectory,
}

impl TestRun {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let run = RunDirectory::new(folder.path());
        Self { folder, run }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a shard of generator 0.
    fn write(&self, folder: &str, sequence: u32, games: &[GameRecord]) -> PathBuf {
        let name = ShardName {
            generator: 0,
            sequence,
        };
        let header = Header {
            encoding_version: ENCODING_VERSION,
            program_version: "0".into(),
            evaluator: EvaluatorId::default(),
            config_digest: digest(b""),
            generator: 0,
        };
        std::fs::create_dir_all(self.path(folder)).unwrap();
        let mut writer = ShardWriter::create(&self.path(folder), name, &header).unwrap();
        for game in games {
            writer.push(game).unwrap();
        }
        writer.finish().unwrap()
    }

    /// Writes a file and its folder.
    fn write_file(&self, name: &str, text: &str) {
        let path = self.path(name);
        std::fs::create_dir_all(folder_of(&path)).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// An index that has read everything.
    fn index(&self) -> GamesIndex {
        let index = GamesIndex::open(&self.run).unwrap();
        assert!(index.wait_complete(PATIENCE));
        index
    }
}

/// A game of generator 0.
fn id(counter: u64) -> GameId {
    GameId {
        generator: 0,
        counter,
    }
}

/// A random game by a network.
fn game(counter: u64, turns: usize, network: &str) -> GameRecord {
    let mut game = random_game(id(counter), 7, turns);
    game.evaluators[0].name = network.into();
    game
}

/// Lets a second network choose the last turn.
fn with_another(mut game: GameRecord, network: &str) -> GameRecord {
    let mut another = game.evaluators[0].clone();
    another.name = network.into();
    game.evaluators.push(another);
    if let Some(TurnOrigin::Search(search)) = game.turns.last_mut().map(|turn| &mut turn.origin) {
        search.evaluator = 1;
    }
    game
}

/// Gives all rows of a game a surprise.
fn surprising(mut game: GameRecord, surprise: f32) -> GameRecord {
    for row in game.turns.iter_mut().flat_map(|turn| &mut turn.rows) {
        row.surprise = surprise;
    }
    game
}

/// Reads a query string.
fn query(text: &str) -> Result<GamesQuery, String> {
    let uri = format!("/?{text}").parse().unwrap();
    match Query::try_from_uri(&uri) {
        Ok(Query(query)) => Ok(query),
        Err(error) => Err(error.body_text()),
    }
}

/// The page of a query.
fn page(index: &GamesIndex, text: &str) -> Value {
    serde_json::to_value(index.page(&query(text).unwrap())).unwrap()
}

/// The ids on a page.
fn games(page: &Value) -> Vec<&str> {
    let games = page["games"].as_array().unwrap().iter();
    games.map(|game| game["game"].as_str().unwrap()).collect()
}

/// The problems on a page.
fn problems(page: &Value) -> Vec<&str> {
    let problems = page["problems"].as_array().unwrap().iter();
    problems.map(|problem| problem.as_str().unwrap()).collect()
}
