//! A generator that is killed, or whose machine loses its power, at random moments again and again.

use super::*;
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use std::collections::BTreeMap;

const GAME_TURNS: usize = 6;

/// What a shard in the making has come to.
enum Closing {
    Written(ShardName, Vec<GameId>, ShardWriter),
    Announced(ShardName, Vec<GameId>, ShardWriter),
    Named(ShardName, Vec<GameId>),
}

/// A generator, and what it knows of its games.
struct Model {
    root: TempDir,
    journal: Journal,
    random: ChaCha8Rng,
    next: GameId,
    next_shard: u32,
    /// The turns of each game in flight.
    turns: BTreeMap<GameId, usize>,
    /// The games whose evaluator is in their list.
    judged: BTreeSet<GameId>,
    /// The turns that had been flushed.
    flushed: BTreeMap<GameId, usize>,
    /// The games in shards.
    done: BTreeSet<GameId>,
    closing: Option<Closing>,
    /// How many games continued after a crash.
    gone_on: usize,
}

impl Model {
    fn new(seed: u64) -> Self {
        let root = run();
        let (journal, _) = open(root.path(), 0);
        Self {
            journal,
            root,
            random: ChaCha8Rng::seed_from_u64(seed),
            next: GameId {
                generator: 0,
                counter: 0,
            },
            next_shard: 0,
            turns: BTreeMap::new(),
            judged: BTreeSet::new(),
            flushed: BTreeMap::new(),
            done: BTreeSet::new(),
            closing: None,
            gone_on: 0,
        }
    }

    fn record(id: GameId) -> GameRecord {
        game(id.generator, id.counter, GAME_TURNS)
    }

    fn work(&mut self) {
        match self.random.random_range(0..12) {
            0..2 => {
                begin(&self.journal, &Self::record(self.next));
                self.turns.insert(self.next, 0);
                self.judged.insert(self.next);
                self.next.counter += 1;
            }
            2..8 => self.play_turn(),
            8..10 => self.continue_shard(),
            10 => {
                self.journal.sync().unwrap();
                self.flushed = self.turns.clone();
            }
            _ => {
                self.journal.shared.lock().large = 0;
                self.journal.shared.renew_if_large().unwrap();
                self.flushed = self.turns.clone();
            }
        }
    }

    fn play_turn(&mut self) {
        let open: Vec<GameId> = self.turns.keys().copied().collect();
        if open.is_empty() {
            return;
        }
        let id = open[self.random.random_range(0..open.len())];
        let number = self.turns[&id];
        let record = Self::record(id);
        if self.judged.insert(id) {
            self.journal.evaluator(id, &record.evaluators[0]).unwrap();
        }
        if let Some(turn) = record.turns.get(number) {
            self.journal.turn(id, number as u32, turn).unwrap();
            self.turns.insert(id, number + 1);
        }
    }

    /// The next step on the way of finished games into a shard.
    fn continue_shard(&mut self) {
        self.closing = match self.closing.take() {
            None => {
                let is_over = |(id, turns): (&GameId, &usize)| {
                    (*turns == Self::record(*id).turns.len()).then_some(*id)
                };
                let over: Vec<GameId> = self.turns.iter().filter_map(is_over).collect();
                let records: Vec<GameRecord> = over.iter().copied().map(Self::record).collect();
                let name = ShardName {
                    generator: self.next.generator,
                    sequence: self.next_shard,
                };
                let folder = self.root.path().join("shards");
                let mut writer = ShardWriter::create(&folder, name, &header()).unwrap();
                records
                    .iter()
                    .for_each(|record| writer.push(record).unwrap());
                (!over.is_empty()).then_some(Closing::Written(name, over, writer))
            }
            Some(Closing::Written(name, games, writer)) => {
                self.journal.closing(name, &games).unwrap();
                self.flushed = self.turns.clone();
                self.next_shard += 1;
                Some(Closing::Announced(name, games, writer))
            }
            Some(Closing::Announced(name, games, writer)) => {
                writer.finish().unwrap();
                assert_eq!(self.announced(), BTreeSet::from([name]));
                self.done.extend(&games);
                Some(Closing::Named(name, games))
            }
            Some(Closing::Named(name, games)) => {
                self.journal.closed(name).unwrap();
                assert_eq!(self.announced(), BTreeSet::new());
                games.iter().for_each(|id| {
                    self.turns.remove(id);
                });
                self.flushed = self.turns.clone();
                None
            }
        };
    }

    fn announced(&self) -> BTreeSet<ShardName> {
        announced(&self.root.path().join("journal")).unwrap()
    }

    /// Resumes from a copy of the folder as it was at this moment, and checks what is found there.
    fn crash(&mut self) {
        let crashed = copy(self.root.path());
        let (file, synced) = {
            let state = self.journal.shared.lock();
            (state.file.path.clone(), state.appender.synced as usize)
        };
        let has_power = self.random.random_bool(0.5);
        if !has_power {
            let file = crashed
                .path()
                .join("journal")
                .join(file.file_name().unwrap());
            let bytes = fs::read(&file).unwrap();
            fs::write(&file, self.without_power(bytes, synced)).unwrap();
        }
        // The same number, or another that takes it over.
        let is_same = self.random.random_bool(0.6);
        let generator = self.next.generator + u32::from(!is_same);
        let (journal, recovery) = open(crashed.path(), generator);
        assert!(recovery.left.is_empty());
        let found: BTreeMap<GameId, usize> = recovery
            .games
            .iter()
            .map(|game| {
                let record = Self::record(game.beginning.id);
                assert_eq!(game.turns, record.turns[..game.turns.len()]);
                (record.id, game.turns.len())
            })
            .collect();
        for (id, &turns) in &self.turns {
            let flushed = self.flushed.get(id).copied();
            match found.get(id) {
                _ if self.done.contains(id) => assert_eq!(found.get(id), None),
                Some(found) if has_power => assert_eq!(*found, turns),
                Some(found) => assert!(*found <= turns && *found >= flushed.unwrap_or(0)),
                None => assert!(!has_power && flushed.is_none(), "game {id} is lost"),
            }
        }
        assert!(found.keys().all(|id| self.turns.contains_key(id)));
        assert!(recovery.lost.is_empty() && recovery.cut.is_empty());
        if is_same {
            // Only what was never flushed may be begun again, and is then the same game.
            let known = |id: &&GameId| id.generator == generator;
            let last = found.keys().chain(&self.done).filter(known).max();
            assert!(last.is_none_or(|id| id.counter < recovery.next_counter));
            assert!(recovery.next_counter <= self.next.counter);
            assert_eq!(recovery.next_shard, self.next_shard);
        } else {
            assert_eq!((recovery.next_counter, recovery.next_shard), (0, 0));
            assert_eq!(recovery.adopted, [self.next.generator]);
        }
        self.next = GameId {
            generator,
            counter: recovery.next_counter,
        };
        self.next_shard = recovery.next_shard;
        self.gone_on += found.len();
        let judged = recovery.games.iter();
        let judged = judged.filter(|game| !game.evaluators.is_empty());
        self.judged = judged.map(|game| game.beginning.id).collect();
        self.closing = None;
        // Opening a journal flushes it.
        self.flushed = found.clone();
        self.turns = found;
        self.journal = journal;
        self.root = crashed;
    }

    /// What a power cut leaves of a file: of the bytes that were not flushed, some pages, and it may have any length.
    fn without_power(&mut self, mut bytes: Vec<u8>, synced: usize) -> Vec<u8> {
        let length = self.random.random_range(synced..=bytes.len());
        bytes.truncate(length);
        for page in bytes.chunks_mut(512).skip(synced.div_ceil(512)) {
            if self.random.random_bool(0.2) {
                page.fill(0);
            }
        }
        bytes
    }
}

#[test]
fn no_crash_loses_or_doubles_anything() {
    let (mut done, mut gone_on) = (0, 0);
    for seed in 0..25 {
        let mut model = Model::new(seed);
        for _ in 0..8 {
            for _ in 0..model.random.random_range(1..50) {
                model.work();
            }
            model.crash();
        }
        // Every shard that there is holds games that are done, each once.
        let mut found = Vec::new();
        for path in list_shards(&model.root.path().join("shards"))
            .unwrap()
            .values()
        {
            let reader = ShardReader::open(path).unwrap();
            found.extend(reader.map(|record| record.unwrap().id));
        }
        found.sort();
        let ids: Vec<GameId> = model.done.iter().copied().collect();
        assert_eq!(found, ids);
        done += ids.len();
        gone_on += model.gone_on;
    }
    assert!(
        done > 100 && gone_on > 500,
        "{done} done, {gone_on} resumed"
    );
}
