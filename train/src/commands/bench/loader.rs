//! The speed of the loader alone: nothing is computed with its batches.

use crate::data::{Cursor, Index, Loader, LoaderOptions, MemoryBudget, window_rows};
use crate::error::TrainError;
use crate::terminal::grouped;
use crate::trainer::plan::check_rows;
use engine::config::TrainConfig;
use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The measurements. Memory is in MiB.
#[derive(Debug, Clone, Serialize)]
pub(super) struct LoaderSpeed {
    /// Rows of the window: the mean number that an epoch draws.
    window_rows: u64,
    window_games: u64,
    batch_size: u32,
    threads: usize,
    /// Rows a second while the index was made.
    index_rows_per_second: f64,
    index_bytes_per_row: f64,
    /// Rows of the measured batches.
    rows: u64,
    rows_per_second: f64,
    /// By the CPU time of all threads.
    rows_per_second_and_core: f64,
    /// `train.memory_mib`.
    memory_given: f64,
    /// The loader's part of it, at most.
    memory_allowed: f64,
    /// The program's memory before the index was made.
    memory_before: Option<f64>,
    /// The program's peak memory since.
    memory_peak: Option<f64>,
}

/// Reads a folder's shards and delivers at least so many rows.
pub(super) fn measure(
    folder: &Path,
    config: &TrainConfig,
    deliver: u64,
) -> Result<LoaderSpeed, TrainError> {
    forget_peak();
    let memory_before = memory("VmRSS:");
    let begun = Instant::now();
    let mut index = Index::new(folder, config.validation_share);
    let names = index.list()?;
    let counts = index.count(&names)?;
    let window = index.window(&names, window_rows(config, counts.training_rows))?;
    let index_seconds = begun.elapsed().as_secs_f64();
    let index_bytes_per_row = index.bytes() as f64 / counts.training_rows.max(1) as f64;
    check_rows(&window, config, false)?;
    let options = LoaderOptions::new(config, 0, 1);
    let budget = MemoryBudget::new(&window, &options)?;
    let (window_rows, window_games) = (window.training_rows(), window.games() as u64);
    let (rows, elapsed, computed) = run(
        Loader::start(Arc::new(window), options, Cursor::default()),
        deliver,
    )?;
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    Ok(LoaderSpeed {
        window_rows,
        window_games,
        batch_size: config.batch_size,
        threads: rayon::current_num_threads(),
        index_rows_per_second: counts.training_rows as f64 / index_seconds,
        index_bytes_per_row,
        rows,
        rows_per_second: rows as f64 / elapsed.as_secs_f64(),
        rows_per_second_and_core: rows as f64 / computed.as_secs_f64(),
        memory_given: mib(options.memory),
        memory_allowed: mib(budget.total()),
        memory_before,
        memory_peak: memory("VmHWM:"),
    })
}

/// Takes batches from the end of one pool to the end of another. Returns their rows, the time for them, and the CPU time of all threads.
fn run(mut loader: Loader, deliver: u64) -> Result<(u64, Duration, Duration), TrainError> {
    let place = |cursor: Cursor| (cursor.epoch, cursor.game);
    let mut take = || {
        let (batch, cursor) = loader.next()?;
        let rows = batch.len() as u64;
        loader.give_back(batch);
        Ok::<_, TrainError>((rows, place(cursor)))
    };
    let (_, first) = take()?;
    let mut pool = take()?.1;
    while pool == first {
        pool = take()?.1;
    }
    let (begun, computed) = (Instant::now(), computed_by_all());
    let mut rows = 0;
    loop {
        let (more, next) = take()?;
        rows += more;
        if rows >= deliver && next != pool {
            return Ok((rows, begun.elapsed(), computed_by_all() - computed));
        }
        pool = next;
    }
}

/// The CPU time of all threads of the program.
fn computed_by_all() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let seconds = Duration::from_secs(u64::try_from(time.tv_sec).unwrap_or_default());
    seconds + Duration::from_nanos(u64::try_from(time.tv_nsec).unwrap_or_default())
}

/// Resets the kernel's record of peak memory (Linux, proc(5): clear_refs). Elsewhere the peak is that of the whole program.
fn forget_peak() {
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

/// A figure of this program's memory from the kernel, in MiB; none except on Linux.
fn memory(key: &str) -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(key))?;
    let kib: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib / 1_024.0)
}

impl fmt::Display for LoaderSpeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = |number: f64| grouped(number.round() as u64);
        let memory = |mib: Option<f64>| mib.map_or_else(|| "-".into(), |mib| format!("{mib:.0}"));
        writeln!(
            f,
            "window: {} games, {} rows; read through at {} rows/s; {:.2} bytes of index a row",
            grouped(self.window_games),
            grouped(self.window_rows),
            whole(self.index_rows_per_second),
            self.index_bytes_per_row
        )?;
        writeln!(
            f,
            "loader: {} rows in batches of {} on {} threads: {} rows/s, {} rows/s a core",
            grouped(self.rows),
            self.batch_size,
            self.threads,
            whole(self.rows_per_second),
            whole(self.rows_per_second_and_core)
        )?;
        write!(
            f,
            "memory: {} MiB before, {} at most; of train.memory_mib = {:.0} the loader may take {:.0}",
            memory(self.memory_before),
            memory(self.memory_peak),
            self.memory_given,
            self.memory_allowed
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::bench::generate::write_shards;
    use engine::config::Config;

    #[test]
    fn whole_pools_are_measured() {
        let folder = tempfile::tempdir().unwrap();
        write_shards(folder.path(), 1_000).unwrap();
        let config = TrainConfig {
            window_rows: 3_000,
            window_scale: 0.0,
            pool_rows: 1_000,
            memory_mib: 100,
            ..Config::default().train
        };
        let report = measure(folder.path(), &config, 2_000).unwrap();
        assert!((3_000..3_500).contains(&report.window_rows));
        assert!((2_000..3_500).contains(&report.rows), "{}", report.rows);
        assert!(report.memory_allowed <= 100.0 && report.index_bytes_per_row < 1.0);
        let text = report.to_string();
        assert!(text.contains("rows/s a core"), "{text}");
        let config = TrainConfig {
            memory_mib: 1,
            ..config
        };
        let message = measure(folder.path(), &config, 1).unwrap_err().to_string();
        assert!(
            message.starts_with("train.memory_mib = 1 is too little"),
            "{message}"
        );
        // What the message asks for does.
        let needed = message
            .split(" take ")
            .nth(1)
            .unwrap()
            .split(' ')
            .next()
            .unwrap();
        let config = TrainConfig {
            memory_mib: needed.parse().unwrap(),
            ..config
        };
        assert!(measure(folder.path(), &config, 300).is_ok());
    }
}
