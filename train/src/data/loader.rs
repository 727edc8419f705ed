//! Batches in random order, made on threads of their own while the network trains.
//!
//! The window's training games are visited in epochs: every epoch in a new random order, game after game, in pools of about
//! [`LoaderOptions::pool_rows`] rows. A pool is whole games; its rows are shuffled, and batches are cut from one pool after the
//! other. So every row of the window comes once before any comes twice, and what comes when follows from the seed and the
//! window alone. Where the loader stands is a [`Cursor`] of three numbers, from which another one goes on with the same batches.

use super::index::rows_of_weight;
use super::{Batch, TrainingRow, Window, rows_of};
use crate::error::TrainError;
use rand::rngs::ChaCha8Rng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

/// Batches that are ready before they are asked for.
const READY_BATCHES: usize = 8;

/// How rows become batches.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct LoaderOptions {
    /// All randomness follows from it and the generation.
    pub(crate) seed: u64,
    /// The generation that is trained.
    pub(crate) generation: u32,
    /// The number of its window.
    pub(crate) segment: u32,
    /// Rows a batch.
    pub(crate) batch_size: usize,
    /// Rows that are shuffled at once; a pool ends with the game that reaches them. Two pools are in memory.
    pub(crate) pool_rows: u64,
    /// The share of the search's value in the value's target.
    pub(crate) search_value_share: f32,
    /// Whether each row is mirrored with a probability of one half.
    pub(crate) mirror: bool,
}

/// Where a loader stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Cursor {
    /// How often the whole window has been used.
    pub(crate) epoch: u64,
    /// The games of this epoch's order before the present pool.
    pub(crate) game: u64,
    /// The rows of the present pool that have been used.
    pub(crate) row: u64,
}

/// The shuffled rows of some games.
struct Pool {
    epoch: u64,
    game: u64,
    rows: Vec<TrainingRow>,
    /// The order of the rows, and whether each is mirrored.
    order: Vec<(u32, bool)>,
}

/// What the batch thread sends: a batch, and the cursor behind it.
type Delivery = Result<(Batch, Cursor), TrainError>;

/// Delivers batches without end.
#[derive(Debug)]
pub(crate) struct Loader {
    batches: Option<Receiver<Delivery>>,
    threads: Vec<JoinHandle<()>>,
}

impl Loader {
    /// Starts the threads; the first batch is the one that follows at `cursor`. The window holds at least one row.
    pub(crate) fn start(window: Arc<Window>, options: LoaderOptions, cursor: Cursor) -> Self {
        // No room in the channel: the next pool is made while the present one is used, and waits for its end.
        let (pools, received_pools) = sync_channel(0);
        let (deliveries, batches) = sync_channel(READY_BATCHES);
        let threads = vec![
            std::thread::spawn(move || make_pools(&window, options, cursor, &pools)),
            std::thread::spawn(move || {
                make_batches(&received_pools, options.batch_size, cursor.row, &deliveries);
            }),
        ];
        Self {
            batches: Some(batches),
            threads,
        }
    }

    /// The next batch, and where the loader stands after it.
    pub(crate) fn next(&mut self) -> Delivery {
        let received = self
            .batches
            .as_ref()
            .and_then(|batches| batches.recv().ok());
        received.unwrap_or(Err(TrainError::LoaderGone))
    }
}

impl Drop for Loader {
    fn drop(&mut self) {
        // Without a receiver the threads end, one after the other.
        self.batches = None;
        for thread in self.threads.drain(..) {
            // A panic has been seen as the end of the batches.
            let _ = thread.join();
        }
    }
}

/// Makes one pool after the other until nobody wants them, or a game can't be read.
fn make_pools(
    window: &Window,
    options: LoaderOptions,
    cursor: Cursor,
    pools: &SyncSender<Result<Pool, TrainError>>,
) {
    let mut game = cursor.game as usize;
    for epoch in cursor.epoch.. {
        let order = epoch_order(window.training_games(), options, epoch);
        while game < order.len() {
            let games = pool_games(window, &order[game..], options.pool_rows);
            let pool = Pool::read(window, games, options, epoch, game as u64);
            let failed = pool.is_err();
            if pools.send(pool).is_err() || failed {
                return;
            }
            game += games.len();
        }
        game = 0;
    }
}

/// The order in which an epoch visits the games.
fn epoch_order(games: usize, options: LoaderOptions, epoch: u64) -> Vec<u32> {
    let mut order: Vec<u32> = (0..games as u32).collect();
    order.shuffle(&mut random(options, epoch, u64::MAX));
    order
}

/// The games of the next pool: as many as reach `pool_rows` rows.
fn pool_games<'order>(window: &Window, order: &'order [u32], pool_rows: u64) -> &'order [u32] {
    let mut weight = 0;
    let enough = order.iter().position(|&game| {
        weight += u64::from(window.game(game).weight);
        rows_of_weight(weight) >= pool_rows
    });
    &order[..enough.map_or(order.len(), |last| last + 1)]
}

/// The random numbers of one pool (by its first game's place in the epoch) or, with `u64::MAX`, of the epoch's order.
fn random(options: LoaderOptions, epoch: u64, game: u64) -> ChaCha8Rng {
    let mut key = [0; 32];
    let window = u64::from(options.generation) << 32 | u64::from(options.segment);
    let numbers = [options.seed, window, epoch, game];
    for (part, number) in key.chunks_exact_mut(8).zip(numbers) {
        part.copy_from_slice(&number.to_le_bytes());
    }
    ChaCha8Rng::from_seed(key)
}

impl Pool {
    fn read(
        window: &Window,
        games: &[u32],
        options: LoaderOptions,
        epoch: u64,
        game: u64,
    ) -> Result<Self, TrainError> {
        let rows = window.read(games, |_, record| {
            rows_of(record, options.search_value_share)
        })?;
        let rows: Vec<TrainingRow> = rows.into_iter().flatten().collect();
        let mut random = random(options, epoch, game);
        let mut order: Vec<(u32, bool)> = (0..rows.len() as u32)
            .map(|row| (row, options.mirror && random.random()))
            .collect();
        order.shuffle(&mut random);
        Ok(Self {
            epoch,
            game,
            rows,
            order,
        })
    }

    /// Some rows in the shuffled order, and whether each is mirrored.
    fn rows(&self, range: Range<usize>) -> impl Iterator<Item = (&TrainingRow, bool)> {
        let order = self.order[range].iter();
        order.map(|&(row, mirrored)| (&self.rows[row as usize], mirrored))
    }

    fn cursor(&self, row: usize) -> Cursor {
        Cursor {
            epoch: self.epoch,
            game: self.game,
            row: row as u64,
        }
    }
}

/// Cuts batches from the pools, the first of which has been used up to row `used`, until nobody wants them.
fn make_batches(
    pools: &Receiver<Result<Pool, TrainError>>,
    batch_size: usize,
    used: u64,
    deliveries: &SyncSender<Delivery>,
) {
    let mut used = used as usize;
    let mut left_over: Vec<(TrainingRow, bool)> = Vec::new();
    while let Ok(pool) = pools.recv() {
        let pool = match pool {
            Ok(pool) => pool,
            Err(error) => {
                // If nobody listens, nobody needs the reason.
                let _ = deliveries.send(Err(error));
                return;
            }
        };
        let mut at = used.min(pool.order.len());
        used = 0;
        while at + batch_size - left_over.len() <= pool.order.len() {
            let end = at + batch_size - left_over.len();
            let before = left_over.iter().map(|(row, mirrored)| (row, *mirrored));
            let rows: Vec<_> = before.chain(pool.rows(at..end)).collect();
            let batch = Batch::new(&rows);
            left_over.clear();
            at = end;
            if deliveries.send(Ok((batch, pool.cursor(at)))).is_err() {
                return;
            }
        }
        let rest = pool.rows(at..pool.order.len());
        left_over.extend(rest.map(|(row, mirrored)| (row.clone(), mirrored)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Index;
    use crate::data::samples::{Identities, write_games};
    use std::collections::HashSet;
    use std::path::Path;

    const OPTIONS: LoaderOptions = LoaderOptions {
        seed: 5,
        generation: 2,
        segment: 1,
        batch_size: 64,
        pool_rows: 300,
        search_value_share: 0.0,
        mirror: true,
    };

    fn window(folder: &Path, validation_share: f32) -> Arc<Window> {
        let mut index = Index::new(folder, validation_share);
        let names = index.list().unwrap();
        Arc::new(index.window(&names, u64::MAX).unwrap())
    }

    #[test]
    fn an_epoch_holds_every_training_row_once_and_no_validation_row() {
        let folder = tempfile::tempdir().unwrap();
        let records = write_games(folder.path(), 30, 12);
        let originals: Vec<_> = records
            .iter()
            .map(|record| rows_of(record, 0.0).unwrap())
            .collect();
        let identities = Identities::of(&records);
        let window = window(folder.path(), 0.2);
        let games = window.training_games();
        assert!(
            (15..30).contains(&games),
            "{games} of 30 games are trained on"
        );
        let mut loader = Loader::start(Arc::clone(&window), OPTIONS, Cursor::default());
        let epoch = window.training_rows() as usize;
        let (mut seen, mut mirrored) = (Vec::new(), 0);
        while seen.len() < 3 * epoch {
            for ((game, row), input) in identities.of_batch(&loader.next().unwrap().0) {
                let original = originals[game][row].input;
                assert!(input == original || input == original.mirror());
                mirrored += usize::from(input != original);
                seen.push((game, row));
            }
        }
        let mut visited = HashSet::new();
        for epoch in seen.chunks_exact(epoch) {
            let rows: HashSet<_> = epoch.iter().collect();
            assert_eq!(rows.len(), epoch.len(), "no row comes twice in an epoch");
            visited.extend(epoch.iter().map(|&(game, _)| game));
        }
        assert_eq!(visited.len(), games);
        let expected: usize = visited.iter().map(|&game| originals[game].len()).sum();
        assert_eq!(expected, epoch, "all rows of these games, and of no others");
        assert_ne!(seen[..epoch], seen[epoch..2 * epoch]);
        let share = mirrored as f64 / seen.len() as f64;
        assert!(
            (0.42..0.55).contains(&share),
            "{share} of the rows are mirrored"
        );

        let measured = window.validation_rows(usize::MAX, 0.0).unwrap();
        assert!(!measured.is_empty());
        let trained: HashSet<_> = seen.iter().copied().collect();
        let measured = measured.iter().map(|row| identities.of_row(row));
        assert!(measured.into_iter().all(|row| !trained.contains(&row)));
    }

    #[test]
    fn rows_that_follow_each_other_are_of_different_games() {
        let folder = tempfile::tempdir().unwrap();
        let identities = Identities::of(&write_games(folder.path(), 30, 12));
        let mut loader = Loader::start(window(folder.path(), 0.0), OPTIONS, Cursor::default());
        let rows = identities.of_batch(&loader.next().unwrap().0);
        let games: HashSet<_> = rows.iter().map(|((game, _), _)| game).collect();
        assert!(games.len() >= 5, "{games:?}");
    }

    #[test]
    fn a_loader_goes_on_at_a_cursor() {
        let folder = tempfile::tempdir().unwrap();
        write_games(folder.path(), 12, 12);
        let window = window(folder.path(), 0.0);
        let take = |cursor, count| {
            let mut loader = Loader::start(Arc::clone(&window), OPTIONS, cursor);
            (0..count)
                .map(|_| loader.next().unwrap())
                .collect::<Vec<_>>()
        };
        let count = 3 * window.training_rows() as usize / OPTIONS.batch_size;
        let all = take(Cursor::default(), count);
        assert!(all.last().unwrap().1.epoch >= 2);
        for at in (0..count - 2).step_by(3) {
            let cursor = all[at].1;
            for (delivery, expected) in take(cursor, 2).iter().zip(&all[at + 1..]) {
                assert_eq!(delivery.1, expected.1, "after batch {at}");
                assert_eq!(delivery.0, expected.0, "after batch {at}");
            }
        }
    }

    #[test]
    fn a_game_that_can_t_be_read_is_an_error_with_its_place() {
        let folder = tempfile::tempdir().unwrap();
        write_games(folder.path(), 3, 12);
        let window = window(folder.path(), 0.0);
        for entry in std::fs::read_dir(folder.path()).unwrap() {
            std::fs::remove_file(entry.unwrap().path()).unwrap();
        }
        let mut loader = Loader::start(window, OPTIONS, Cursor::default());
        let message = loader.next().unwrap_err().to_string();
        assert!(message.contains("000-000000.shard"), "{message}");
        assert!(matches!(loader.next(), Err(TrainError::LoaderGone)));
    }
}
