//! What generators have left on the disk, and what is wrong with it.

use super::process::names;
use engine::record::journal::{Beginning, GameInFlight, Journal, JournalPlace};
use engine::record::{
    GameId, GameRecord, Header, ShardName, ShardReader, ShardWriter, TurnRecord, list_shards,
    replay,
};
use engine::run::GeneratorPaths;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// What is in the shards.
#[derive(Debug, Default)]
pub(crate) struct Audit {
    /// One of each game.
    pub(crate) games: BTreeMap<GameId, GameRecord>,
    /// Games that are there again.
    pub(crate) doubled: Vec<GameId>,
    /// Shards that can't be read to their end, and games that break the rules.
    pub(crate) invalid: Vec<String>,
    /// The shards' headers.
    pub(crate) headers: BTreeMap<ShardName, Header>,
    /// The shards' bytes.
    pub(crate) files: BTreeMap<ShardName, Vec<u8>>,
}

impl Audit {
    /// Reads all shards and replays all games.
    pub(crate) fn of(paths: &GeneratorPaths) -> Self {
        let mut audit = Self::default();
        for (name, path) in list_shards(&paths.shards).unwrap_or_default() {
            audit.files.insert(name, fs::read(&path).unwrap());
            audit.read(name, &path);
        }
        audit
    }

    fn read(&mut self, name: ShardName, path: &Path) {
        let reader = match ShardReader::open(path) {
            Ok(reader) => reader,
            Err(error) => return self.invalid.push(error.to_string()),
        };
        self.headers.insert(name, reader.header().clone());
        for record in reader {
            match record {
                Ok(record) => self.add(record),
                Err(error) => self.invalid.push(error.to_string()),
            }
        }
    }

    fn add(&mut self, record: GameRecord) {
        if let Err(error) = replay(&record) {
            self.invalid.push(format!("game {}: {error}", record.id));
        }
        if let Some(first) = self.games.insert(record.id, record) {
            self.doubled.push(first.id);
        }
    }

    /// The games of a generator, by their counters.
    pub(crate) fn counters(&self, generator: u32) -> Vec<u64> {
        let own = self.games.keys().filter(|id| id.generator == generator);
        own.map(|id| id.counter).collect()
    }

    /// The generators that have games.
    pub(crate) fn generators(&self) -> BTreeSet<u32> {
        self.games.keys().map(|id| id.generator).collect()
    }

    /// Asserts that nothing is wrong with what is there.
    pub(crate) fn assert_sound(&self) {
        assert_eq!(self.invalid, Vec::<String>::new());
        assert_eq!(self.doubled, Vec::<GameId>::new());
    }

    /// Asserts that the games are these numbers of each of these generators, that none is in flight, and that nothing else is left.
    pub(crate) fn assert_complete(&self, paths: &GeneratorPaths, generators: &[u32], games: u64) {
        self.assert_sound();
        assert_eq!(self.generators(), generators.iter().copied().collect());
        for &generator in generators {
            let counters = self.counters(generator);
            let missing = (0..games).filter(|counter| !counters.contains(counter));
            assert_eq!(missing.collect::<Vec<u64>>(), [0u64; 0], "of {generator}");
            assert_eq!(counters.len() as u64, games, "of {generator}");
        }
        assert_eq!(in_flight(paths), []);
        let temporary = names(&paths.shards);
        let temporary: Vec<&String> = temporary.iter().filter(|name| is_temporary(name)).collect();
        assert_eq!(temporary, Vec::<&String>::new());
    }

    /// All games, written to one shard by their order: what is equal here is equal in every byte.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let folder = tempfile::tempdir().unwrap();
        let name = ShardName {
            generator: 0,
            sequence: 0,
        };
        let header = self.headers.values().next().unwrap();
        let mut writer = ShardWriter::create(folder.path(), name, header).unwrap();
        for record in self.games.values() {
            writer.push(record).unwrap();
        }
        fs::read(writer.finish().unwrap()).unwrap()
    }

    /// The games that are not the same in another audit, or not there.
    pub(crate) fn different_in(&self, other: &Self) -> Vec<GameId> {
        let ids = self.games.keys().chain(other.games.keys());
        let ids: BTreeSet<&GameId> = ids.collect();
        let is_different = |id: &&GameId| self.games.get(id) != other.games.get(id);
        ids.into_iter().filter(is_different).copied().collect()
    }
}

fn is_temporary(name: &str) -> bool {
    name.ends_with(".tmp")
}

/// The games that a restart would resume while no generator runs: as a new one finds them in a copy of the journal.
pub(crate) fn in_flight(paths: &GeneratorPaths) -> Vec<GameInFlight> {
    let copy = tempfile::tempdir().unwrap();
    for name in names(&paths.journal) {
        fs::copy(paths.journal.join(&name), copy.path().join(&name)).unwrap();
    }
    let place = JournalPlace::new(copy.path(), &paths.shards, 999);
    let (_journal, recovery) = Journal::open(place).unwrap();
    assert!(recovery.left.is_empty(), "{:?}", recovery.left);
    recovery.games
}

/// Asserts that a finished game begins with the turns of one in flight: none of them was played again.
pub(crate) fn assert_resumes(finished: &GameRecord, begun: &GameInFlight) {
    let Beginning { id, seed, start } = begun.beginning;
    assert_eq!(
        (finished.id, finished.seed, finished.start),
        (id, seed, start)
    );
    assert!(finished.turns.len() >= begun.turns.len(), "game {id}");
    for (number, (now, then)) in finished.turns.iter().zip(&begun.turns).enumerate() {
        assert_eq!(bare(now), bare(then), "turn {number} of game {id}");
    }
}

/// A turn without the weights of its rows, which are only known at the game's end.
fn bare(turn: &TurnRecord) -> TurnRecord {
    let mut bare = turn.clone();
    bare.rows.iter_mut().for_each(|row| row.weight = 1.0);
    bare
}
