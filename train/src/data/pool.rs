//! Pools: the drawn and shuffled rows of some games, and which games those are.

use super::rows::{BYTES_PER_DRAW, BYTES_PER_GAME, GameRows, RowRef, draws_of, rows_of_weight};
use super::targets::TargetOptions;
use super::window::Window;
use crate::error::TrainError;
use engine::config::TrainConfig;
use rand::rngs::ChaCha8Rng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// How rows become batches.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct LoaderOptions {
    /// All randomness follows from it and the generation.
    pub(crate) seed: u64,
    /// The generation in training.
    pub(crate) generation: u32,
    /// The number of its shuffle: each window has a new one.
    pub(crate) segment: u32,
    /// Rows a batch.
    pub(crate) batch_size: usize,
    /// Rows that are shuffled together; a pool ends with the game that reaches the number. Two pools are in memory.
    pub(crate) pool_rows: u64,
    /// Into how many parts the rows of each game are split, which are drawn at different times.
    pub(crate) game_parts: u32,
    /// The bytes that the window's index, the pools and the batches may take together.
    pub(crate) memory: u64,
    /// How results and searches become targets.
    pub(crate) targets: TargetOptions,
    /// Whether each row is mirrored with a probability of one half.
    pub(crate) mirror: bool,
}

impl LoaderOptions {
    /// The configured options, for the first window of a generation.
    pub(crate) fn new(config: &TrainConfig, seed: u64, generation: u32) -> Self {
        Self {
            seed,
            generation,
            segment: 0,
            batch_size: config.batch_size as usize,
            pool_rows: config.pool_rows.into(),
            game_parts: config.game_parts,
            memory: u64::from(config.memory_mib) << 20,
            targets: config.into(),
            mirror: config.mirror,
        }
    }
}

/// The position of a loader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Cursor {
    /// How often the whole window has been used.
    pub(crate) epoch: u64,
    /// The visits of games in this epoch's order before the present pool.
    pub(crate) game: u64,
    /// The rows of the present pool that have been used.
    pub(crate) row: u64,
}

/// The order in which an epoch visits the games of a window: [`LoaderOptions::game_parts`] times, each time in another order and for
/// another part of their rows.
#[derive(Debug)]
pub(super) struct Order {
    epoch: u64,
    options: LoaderOptions,
    /// All games once, all once more, and so on.
    games: Vec<u32>,
    /// How many games there are.
    count: usize,
}

/// The rows of some games, drawn and shuffled.
#[derive(Debug)]
pub(super) struct Pool {
    epoch: u64,
    game: u64,
    games: Vec<GameRows>,
    draws: Vec<Draw>,
}

/// One drawn row: its game and row, and in the highest bit whether it is mirrored.
#[derive(Debug, Clone, Copy)]
struct Draw {
    game: u32,
    row: u32,
}

const _: () = assert!(size_of::<Draw>() == BYTES_PER_DRAW);

/// The bit of a [`Draw`] that says whether it is mirrored: no game has so many rows.
const MIRRORED: u32 = 1 << 31;

/// The uses of random numbers, each with a stream of its own.
#[derive(Debug, Clone, Copy)]
enum Use {
    /// The order of the games of an epoch.
    Order,
    /// The order of a pool's rows, and their mirroring; the pool is known by its first game's place in the epoch.
    Pool(u64),
    /// How often the rows of a game are drawn, and when.
    Draws(u64),
}

/// The random numbers of an epoch for one use.
fn random(options: &LoaderOptions, epoch: u64, of: Use) -> ChaCha8Rng {
    let (place, stream) = match of {
        Use::Order => (u64::MAX, 0),
        Use::Pool(game) => (game, 0),
        Use::Draws(game) => (game, 1),
    };
    let mut key = [0; 32];
    let window = u64::from(options.generation) << 32 | u64::from(options.segment);
    let numbers = [options.seed, window, epoch, place];
    for (part, number) in key.chunks_exact_mut(8).zip(numbers) {
        part.copy_from_slice(&number.to_le_bytes());
    }
    let mut random = ChaCha8Rng::from_seed(key);
    random.set_stream(stream);
    random
}

impl Order {
    /// The order of one epoch.
    pub(super) fn of_epoch(window: &Window, options: LoaderOptions, epoch: u64) -> Self {
        let count = window.training_games();
        let mut random = random(&options, epoch, Use::Order);
        let mut games = Vec::with_capacity(count * options.game_parts as usize);
        for part in 0..options.game_parts as usize {
            games.extend(0..count as u32);
            games[part * count..].shuffle(&mut random);
        }
        Self {
            epoch,
            options,
            games,
            count,
        }
    }

    /// How many games from a place on make a pool: as many as reach [`LoaderOptions::pool_rows`] rows, or fit into so many bytes; at
    /// least one. None behind the last.
    pub(super) fn pool(&self, window: &Window, place: usize, bytes: u64) -> Option<usize> {
        let games = self.games.get(place..).filter(|games| !games.is_empty())?;
        let (mut weight, mut taken) = (0, 0);
        let mut count = 0;
        let parts = u64::from(self.options.game_parts);
        for &game in games {
            let game = window.game(game);
            taken += bytes_of_part(game.bytes.into(), parts);
            if count > 0 && taken > bytes {
                break;
            }
            count += 1;
            weight += u64::from(game.weight);
            if rows_of_weight(weight / parts) >= self.options.pool_rows {
                break;
            }
        }
        Some(count)
    }

    /// Reads some games from a place on, draws their rows and shuffles them.
    pub(super) fn read(
        &self,
        window: &Window,
        place: usize,
        games: usize,
    ) -> Result<Pool, TrainError> {
        let games = window.read(&self.games[place..place + games], |number, record| {
            let place = place + number;
            let (part, parts) = ((place / self.count) as u32, self.options.game_parts);
            // The same numbers each time that the game is visited: each draw falls to one of the parts.
            let of = Use::Draws(self.games[place].into());
            let mut random = random(&self.options, self.epoch, of);
            GameRows::drawn(record, self.options.targets, |weight| {
                let draws = draws_of(weight, || random.random());
                let parts = (0..draws).map(|_| random.random_range(0..parts));
                parts.filter(|&of| of == part).count() as u16
            })
        })?;
        let mut random = random(&self.options, self.epoch, Use::Pool(place as u64));
        let rows = || {
            let games = games.iter().enumerate();
            games.flat_map(|(game, rows)| {
                let draws = rows.draws().enumerate();
                draws.map(move |(row, draws)| (game as u32, row as u32, usize::from(draws)))
            })
        };
        let mut draws = Vec::with_capacity(rows().map(|(_, _, draws)| draws).sum());
        for (game, row, count) in rows() {
            draws.extend((0..count).map(|_| {
                let mirrored = self.options.mirror && random.random();
                let row = if mirrored { row | MIRRORED } else { row };
                Draw { game, row }
            }));
        }
        draws.shuffle(&mut random);
        Ok(Pool {
            epoch: self.epoch,
            game: place as u64,
            games,
            draws,
        })
    }
}

/// About the bytes of one of several parts of a game in a pool: chance may make it larger, and each turn with a drawn row keeps its
/// whole reply.
fn bytes_of_part(game: u64, parts: u64) -> u64 {
    match parts {
        1 => game,
        _ => BYTES_PER_GAME as u64 + (game + game / 4) / parts,
    }
}

impl Pool {
    /// How many rows are drawn.
    pub(super) fn len(&self) -> usize {
        self.draws.len()
    }

    /// Some rows in the shuffled order.
    pub(super) fn rows(&self, range: Range<usize>) -> impl Iterator<Item = RowRef<'_>> {
        self.draws[range].iter().map(|draw| {
            let row = self.games[draw.game as usize].row((draw.row & !MIRRORED) as usize);
            row.mirrored(draw.row & MIRRORED != 0)
        })
    }

    /// The position of a loader that has used so many of the rows.
    pub(super) fn cursor(&self, row: usize) -> Cursor {
        Cursor {
            epoch: self.epoch,
            game: self.game,
            row: row as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Index;
    use crate::data::samples::{game, targets, write_records};
    use network::RowWeight;
    use std::path::Path;

    const OPTIONS: LoaderOptions = LoaderOptions {
        seed: 5,
        generation: 2,
        segment: 1,
        batch_size: 64,
        pool_rows: 1_000_000,
        game_parts: 1,
        memory: 1 << 30,
        targets: targets(0.0),
        mirror: false,
    };

    /// A window over games whose rows weigh 0, 0.25, 1.5 and 3 in turns.
    fn window(folder: &Path) -> Window {
        let mut records: Vec<_> = (0..20).map(|counter| game(counter, 12)).collect();
        for record in &mut records {
            let rows = record.turns.iter_mut().flat_map(|turn| &mut turn.rows);
            for (number, row) in rows.enumerate() {
                row.weight = [0.0, 0.25, 1.5, 3.0][number % 4];
            }
        }
        write_records(folder, &records);
        let mut index = Index::new(folder, 0.0);
        let names = index.list().unwrap();
        index.window(&names, u64::MAX).unwrap()
    }

    #[test]
    fn rows_are_drawn_in_proportion_to_their_weights() {
        let folder = tempfile::tempdir().unwrap();
        let window = window(folder.path());
        let mut drawn = [0u32; 4];
        let mut all = 0;
        for epoch in 0..40 {
            let order = Order::of_epoch(&window, OPTIONS, epoch);
            assert_eq!(order.pool(&window, 0, u64::MAX), Some(20));
            let pool = order.read(&window, 0, 20).unwrap();
            let drawn_rows = pool
                .games
                .iter()
                .flat_map(|game| game.rows().zip(game.draws()));
            for (row, draws) in drawn_rows {
                let (kind, allowed) = match row.weight(RowWeight::Policy) {
                    0.25 => (1, 0..=1),
                    1.5 => (2, 1..=2),
                    3.0 => (3, 3..=3),
                    weight => panic!("{weight}"),
                };
                assert!(allowed.contains(&draws));
                drawn[kind] += u32::from(draws);
            }
            for row in pool.rows(0..pool.len()) {
                assert_eq!(row.weight(RowWeight::Policy), 1.0);
            }
            all += pool.len();
        }
        assert_eq!(drawn.iter().sum::<u32>() as usize, all);
        let mut rows = [0u32; 4];
        for counter in 0..20 {
            let recorded = game(counter, 12).row_count() as usize;
            (0..recorded).for_each(|number| rows[number % 4] += 40);
        }
        assert_eq!(drawn[3], 3 * rows[3]);
        for (kind, weight) in [(1, 0.25), (2, 1.5)] {
            let mean = f64::from(drawn[kind]) / f64::from(rows[kind]);
            assert!((mean / weight - 1.0).abs() < 0.05, "{mean} for {weight}");
        }
        let expected = 40 * window.training_rows();
        assert!(
            (all as f64 / expected as f64 - 1.0).abs() < 0.02,
            "{all} of {expected}"
        );
    }

    #[test]
    fn parts_of_games_are_drawn_at_different_times_and_together_are_all_of_them() {
        let folder = tempfile::tempdir().unwrap();
        let window = window(folder.path());
        let drawn = |game_parts, games| {
            let options = LoaderOptions {
                game_parts,
                ..OPTIONS
            };
            let order = Order::of_epoch(&window, options, 3);
            let mut counts = Vec::new();
            let mut place = 0;
            while order.games.len() > place {
                let pool = order.read(&window, place, games).unwrap();
                let mut all: std::collections::HashMap<_, u32> = Default::default();
                for row in pool.rows(0..pool.len()) {
                    // Rows of weight 3 are drawn three times in any epoch.
                    *all.entry(format!("{:?} {:?}", row.input(), row.policy()))
                        .or_default() += 1;
                }
                counts.push(all);
                place += games;
            }
            counts
        };
        let whole = drawn(1, 20).remove(0);
        let parts = drawn(4, 20);
        assert_eq!(parts.len(), 4);
        let mut sum: std::collections::HashMap<String, u32> = Default::default();
        for part in &parts {
            let rows: u32 = part.values().sum();
            let all: u32 = whole.values().sum();
            assert!(
                (0.8..1.2).contains(&(4.0 * f64::from(rows) / f64::from(all))),
                "{rows} of {all}"
            );
            for (row, count) in part {
                *sum.entry(row.clone()).or_default() += count;
            }
        }
        let often = |counts: &std::collections::HashMap<String, u32>| {
            let often = counts.iter().filter(|(_, count)| **count >= 3);
            often
                .map(|(row, count)| (row.clone(), *count))
                .collect::<std::collections::BTreeMap<_, _>>()
        };
        assert!(!often(&whole).is_empty());
        assert_eq!(often(&sum), often(&whole));
    }

    #[test]
    fn pools_take_no_more_than_they_may() {
        let folder = tempfile::tempdir().unwrap();
        let window = window(folder.path());
        let (largest, _) = window.game_bytes();
        for bytes in [largest, 3 * largest, 20 * largest] {
            let order = Order::of_epoch(&window, OPTIONS, 0);
            let (mut place, mut rows, mut most) = (0, 0, 0);
            while let Some(games) = order.pool(&window, place, bytes) {
                let pool = order.read(&window, place, games).unwrap();
                let of_games: usize = pool.games.iter().map(GameRows::bytes).sum();
                let taken = of_games + pool.draws.capacity() * size_of::<Draw>();
                assert!(taken as u64 <= bytes, "{taken} of {bytes} bytes");
                most = most.max(taken as u64);
                rows += pool.len();
                place += games;
            }
            assert_eq!(place, 20);
            assert!(most > bytes.min(10 * largest) / 3, "{most} of {bytes}");
            assert!(rows as u64 > window.training_rows() * 9 / 10);
        }
    }

    #[test]
    fn a_pool_ends_with_the_game_that_reaches_its_rows() {
        let folder = tempfile::tempdir().unwrap();
        let window = window(folder.path());
        let options = LoaderOptions {
            pool_rows: 100,
            ..OPTIONS
        };
        let order = Order::of_epoch(&window, options, 1);
        let games = order.pool(&window, 3, u64::MAX).unwrap();
        let weight = |games: &[u32]| -> u64 {
            games
                .iter()
                .map(|&game| u64::from(window.game(game).weight))
                .sum()
        };
        assert!(weight(&order.games[3..3 + games]) >= 100 * 256 - 128);
        assert!(weight(&order.games[3..2 + games]) < 100 * 256 - 128);
        assert_eq!(order.pool(&window, 20, u64::MAX), None);
    }
}
