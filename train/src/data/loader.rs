//! Batches in random order, made on threads of their own while the network trains.
//!
//! The window's training games are visited in epochs: every epoch [`LoaderOptions::game_parts`] times in new random orders, game after
//! game, each time for another part of their rows, in [pools](super::pool) of about [`LoaderOptions::pool_rows`] rows. A pool's rows are
//! drawn by weight and shuffled, and batches are cut from one pool after the other. So every row of the window comes as often as it weighs
//! before the next epoch begins, and the order follows from the seed and the window alone.
//!
//! The rows of a game have its result in common. With whole games in the pools (350 games of the tiny preset at a time) the value
//! overfit each pool's results: its loss fell by 0.04 nats within a pool, and rose as much where the next began. A [`Cursor`] of three
//! numbers is the loader's position, from which another loader delivers the same batches.
//!
//! # Memory
//! The window's index, two pools (one in use, one in the making), the order of the games and a fixed number of batches are all that is
//! kept. [`MemoryBudget`] divides [`LoaderOptions::memory`] among them. The pools get the rest, and hold fewer rows if it is too little for
//! [`LoaderOptions::pool_rows`]. The trainer gives used batches back to be filled again ([`Loader::give_back`]).

use super::batch::{BYTES_PER_ROW, Batch};
use super::pool::{Cursor, LoaderOptions, Order, Pool};
use super::window::Window;
use crate::error::TrainError;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;

/// Batches that are made ahead of the trainer.
const READY_BATCHES: usize = 8;

/// Batches in memory: the ready ones, the one in the making, the next buffer, and the trainer's.
const BATCHES: u64 = READY_BATCHES as u64 + 3;

/// One part in so many of the pools' memory is left to the allocator, which keeps freed memory of games of all sizes. With glibc's, full
/// pools of 350 MiB were measured to take 23 to 30% more than their rows.
const SLACK: u64 = 3;

/// What a loader takes in memory, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MemoryBudget {
    /// The window's index, and the order of its games.
    pub(crate) index: u64,
    /// All batches together.
    pub(crate) batches: u64,
    /// The most that one of the two pools takes.
    pub(crate) pool: u64,
}

impl MemoryBudget {
    /// Shares the memory out over a window.
    ///
    /// # Errors
    /// No game has a row with a weight, or the pools would be smaller than the window's largest game or than a batch.
    pub(crate) fn new(window: &Window, options: &LoaderOptions) -> Result<Self, TrainError> {
        if window.training_rows() == 0 {
            let folder = window.folder().to_owned();
            return Err(TrainError::NoGames { folder });
        }
        let batches = BATCHES * options.batch_size as u64 * BYTES_PER_ROW as u64;
        let places = window.training_games() as u64 * u64::from(options.game_parts);
        let index = window.bytes() + places * size_of::<u32>() as u64;
        let left = options.memory.saturating_sub(batches + index);
        let budget = Self {
            index,
            batches,
            pool: (left - left.div_ceil(SLACK)) / 2,
        };
        let (largest, mean) = window.game_bytes();
        let smallest = largest.max(options.batch_size as u64 * mean);
        if budget.pool < smallest {
            let mib = |bytes: u64| bytes.div_ceil(1 << 20);
            let needed = mib(index + batches + 2 * smallest + 2 * smallest.div_ceil(SLACK - 1));
            return Err(TrainError::Other(format!(
                "train.memory_mib = {} is too little: the window's index, pools of a batch of {} rows or of the largest game, and the \
                 batches that are ready take {needed} MiB: raise it to {needed} or more",
                mib(options.memory),
                options.batch_size
            )));
        }
        Ok(budget)
    }

    /// The sum.
    pub(crate) fn total(&self) -> u64 {
        self.index + self.batches + 2 * self.pool
    }
}

/// What the batch thread sends: a batch, and the cursor after it.
type Delivery = Result<(Batch, Cursor), TrainError>;

/// Delivers batches endlessly.
#[derive(Debug)]
pub(crate) struct Loader {
    batches: Option<Receiver<Delivery>>,
    used: Sender<Batch>,
    threads: Vec<JoinHandle<()>>,
}

impl Loader {
    /// Starts the threads; the first batch is the one that follows at `cursor`. The window holds at least one row. With too little
    /// memory, [`next`](Self::next) returns the error.
    pub(crate) fn start(window: Arc<Window>, options: LoaderOptions, cursor: Cursor) -> Self {
        // Without a buffer: the next pool is made while the present one is used, and waits for its end.
        let (pools, received_pools) = sync_channel(0);
        let (deliveries, batches) = sync_channel(READY_BATCHES);
        let (used, buffers) = channel();
        let threads = vec![
            std::thread::spawn(move || make_pools(&window, options, cursor, &pools)),
            std::thread::spawn(move || {
                make_batches(
                    &received_pools,
                    &buffers,
                    options.batch_size,
                    cursor.row,
                    &deliveries,
                );
            }),
        ];
        Self {
            batches: Some(batches),
            used,
            threads,
        }
    }

    /// The next batch, and the loader's position after it.
    pub(crate) fn next(&mut self) -> Delivery {
        let received = self
            .batches
            .as_ref()
            .and_then(|batches| batches.recv().ok());
        received.unwrap_or(Err(TrainError::LoaderGone))
    }

    /// Takes back a used batch: the next one is written over it.
    pub(crate) fn give_back(&self, batch: Batch) {
        // The threads may have ended.
        let _ = self.used.send(batch);
    }
}

impl Drop for Loader {
    fn drop(&mut self) {
        // Without a receiver the threads end.
        self.batches = None;
        for thread in self.threads.drain(..) {
            // A panic shows as the end of the batches.
            let _ = thread.join();
        }
    }
}

/// Makes one pool after the other until the receiver is gone, or a game can't be read.
fn make_pools(
    window: &Window,
    options: LoaderOptions,
    cursor: Cursor,
    pools: &SyncSender<Result<Pool, TrainError>>,
) {
    let budget = match MemoryBudget::new(window, &options) {
        Ok(budget) => budget,
        Err(error) => {
            // Without a receiver the reason is not needed.
            let _ = pools.send(Err(error));
            return;
        }
    };
    let mut game = cursor.game as usize;
    for epoch in cursor.epoch.. {
        let order = Order::of_epoch(window, options, epoch);
        while let Some(games) = order.pool(window, game, budget.pool) {
            let pool = order.read(window, game, games);
            let failed = pool.is_err();
            if pools.send(pool).is_err() || failed {
                return;
            }
            game += games;
        }
        game = 0;
    }
}

/// Cuts batches from the pools, the first of which has been used up to row `used`, until the receiver is gone. It fills the buffers
/// that come back.
fn make_batches(
    pools: &Receiver<Result<Pool, TrainError>>,
    buffers: &Receiver<Batch>,
    batch_size: usize,
    used: u64,
    deliveries: &SyncSender<Delivery>,
) {
    let mut used = used as usize;
    let next_buffer = || {
        let used = buffers.try_iter().find(|batch| batch.len() == batch_size);
        used.unwrap_or_else(|| Batch::with_rows(batch_size))
    };
    let mut batch = next_buffer();
    let mut filled = 0;
    while let Ok(pool) = pools.recv() {
        let pool = match pool {
            Ok(pool) => pool,
            Err(error) => {
                // Without a receiver the reason is not needed.
                let _ = deliveries.send(Err(error));
                return;
            }
        };
        let mut at = used.min(pool.len());
        used = 0;
        while at < pool.len() {
            let end = pool.len().min(at + batch_size - filled);
            let rows: Vec<_> = pool.rows(at..end).collect();
            batch.write(filled, &rows);
            filled += rows.len();
            at = end;
            if filled == batch_size {
                let full = std::mem::replace(&mut batch, next_buffer());
                filled = 0;
                if deliveries.send(Ok((full, pool.cursor(at)))).is_err() {
                    return;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::samples::{Identities, game, targets, write_games, write_records};
    use crate::data::{GameRows, Index};
    use std::collections::HashSet;
    use std::path::Path;

    const OPTIONS: LoaderOptions = LoaderOptions {
        seed: 5,
        generation: 2,
        segment: 1,
        batch_size: 64,
        pool_rows: 300,
        game_parts: 1,
        memory: 1 << 30,
        targets: crate::data::TargetOptions {
            search_value_share: 0.0,
            short_horizon_turns: 6.0,
        },
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
            .map(|record| GameRows::all(record, targets(0.0)).unwrap())
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
                let original = originals[game].rows().nth(row).unwrap();
                let original = *original.input();
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

        let measured = window.validation_rows(usize::MAX, targets(0.0)).unwrap();
        assert!(!measured.is_empty());
        let trained: HashSet<_> = seen.iter().copied().collect();
        let measured = measured.iter().flat_map(GameRows::rows);
        let mut measured = measured.map(|row| identities.of_row(&row));
        assert!(measured.all(|row| !trained.contains(&row)));
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
    fn a_loader_resumes_at_a_cursor() {
        let folder = tempfile::tempdir().unwrap();
        let mut records: Vec<_> = (0..12).map(|counter| game(counter, 12)).collect();
        let turns = records.iter_mut().flat_map(|record| &mut record.turns);
        for (number, row) in turns.flat_map(|turn| &mut turn.rows).enumerate() {
            row.weight = [0.5, 1.0, 1.75, 0.0][number % 4];
        }
        write_records(folder.path(), &records);
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
    fn with_little_memory_pools_are_smaller_and_with_less_there_is_none() {
        let folder = tempfile::tempdir().unwrap();
        write_games(folder.path(), 30, 12);
        let window = window(folder.path(), 0.0);
        let with = |memory| LoaderOptions {
            memory,
            pool_rows: 1_000_000,
            ..OPTIONS
        };
        let all = MemoryBudget::new(&window, &with(1 << 30)).unwrap();
        assert!(all.total() <= 1 << 30);
        let (largest, mean) = window.game_bytes();
        let pools = 2 * largest.max(64 * mean);
        let least = all.index + all.batches + pools * SLACK / (SLACK - 1) + 2;
        let mut loader = Loader::start(Arc::clone(&window), with(least), Cursor::default());
        let cursors: HashSet<u64> = (0..20).map(|_| loader.next().unwrap().1.game).collect();
        assert!(cursors.len() > 10, "{cursors:?}");
        let mut loader = Loader::start(Arc::clone(&window), with(least - 8), Cursor::default());
        let message = loader.next().unwrap_err().to_string();
        assert!(message.contains("train.memory_mib"), "{message}");
    }

    #[test]
    fn a_window_whose_rows_weigh_nothing_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let mut record = game(0, 12);
        let rows = record.turns.iter_mut().flat_map(|turn| &mut turn.rows);
        rows.for_each(|row| row.weight = 0.0);
        write_records(folder.path(), &[record]);
        let window = window(folder.path(), 0.0);
        let error = Loader::start(window, OPTIONS, Cursor::default()).next();
        assert!(matches!(error, Err(TrainError::NoGames { .. })));
    }

    #[test]
    fn damage_is_named_with_its_place() {
        let folder = tempfile::tempdir().unwrap();
        write_games(folder.path(), 3, 12);
        let window = window(folder.path(), 0.0);
        let path = folder.path().join("000-000000.shard");
        let mut bytes = std::fs::read(&path).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        std::fs::write(&path, bytes).unwrap();
        let message = Loader::start(window, OPTIONS, Cursor::default())
            .next()
            .unwrap_err();
        let message = message.to_string();
        assert!(
            message.contains("000-000000.shard: byte ") && message.contains("checksum"),
            "{message}"
        );
    }

    #[test]
    fn batches_that_come_back_are_filled_again() {
        let folder = tempfile::tempdir().unwrap();
        write_games(folder.path(), 12, 12);
        let window = window(folder.path(), 0.0);
        let mut plain = Loader::start(Arc::clone(&window), OPTIONS, Cursor::default());
        let mut reused = Loader::start(window, OPTIONS, Cursor::default());
        let mut buffers = HashSet::new();
        // Of another size: nothing is made of it.
        reused.give_back(Batch::with_rows(3));
        for _ in 0..60 {
            let (batch, cursor) = reused.next().unwrap();
            assert_eq!((batch.clone(), cursor), plain.next().unwrap());
            buffers.insert(batch.inputs.as_ptr());
            reused.give_back(batch);
        }
        assert!(buffers.len() <= BATCHES as usize, "{}", buffers.len());
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
