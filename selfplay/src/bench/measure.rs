//! The measurements of the bench in their order, and their results.

use super::report::{
    BenchPlan, RawSpeed, Recommended, SelfplaySpeed, TimeShares, Tried, WriterShares,
};
use super::worker::{Done, Worker, computed, sum};
use crate::generate::current_player::{CurrentPlayer, LoadedPlayer, locked};
use crate::generate::game_writer::{GameWriter, GameWriterOptions};
use crate::generate::starts::Starts;
use crate::generate::worker::GenerationTask;
use crate::memory::Resident;
use crate::worker::batch::Tally;
use crate::worker::devices::Devices;
use crate::worker::worker_pool::cores;
use anyhow::{Context, Result, anyhow, bail};
use engine::progress::Progress;
use engine::record::GameRecord;
use engine::run::DeviceUse;
use network::{DeviceCounters, EvaluationService};
use std::fs;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// Rounds of the bare network and self-play in turns.
const ROUNDS: u32 = 16;

/// Numbers of games in flight to try: the configuration's, times this over 4.
const TRIED_QUARTERS: [u32; 7] = [1, 2, 4, 8, 16, 32, 64];

/// How many of them are tried where workers evaluate by themselves: few games make large enough batches.
const TRIED_LOCALLY: usize = 4;

/// More games in flight take more memory. They are recommended if they are faster by more than this share.
const WORTH_IT: f64 = 0.03;

/// The bench in progress.
pub(super) struct Bench<'a> {
    plan: &'a BenchPlan,
    workers: Vec<Worker<'a>>,
    written: &'a Mutex<Written>,
    progress: Progress,
    tasks_done: u64,
    stop: &'a AtomicBool,
}

/// Self-play in several slices of time together.
#[derive(Default)]
struct Played {
    /// By worker; empty where nothing was measured.
    workers: Vec<Done>,
    /// The games that were finished, and their turns.
    games: u64,
    turns: u64,
    /// How long the writer computed.
    writer: Duration,
    devices: DeviceWork,
}

impl<'a> Bench<'a> {
    /// Measures until all is done or `stop` is set.
    pub(super) fn run(plan: &BenchPlan, stop: &AtomicBool) -> Result<SelfplaySpeed> {
        let folder = tempfile::tempdir().context("can't make a folder for the games")?;
        let config = &plan.config;
        let work = GenerationTask::new(
            config.clone(),
            LoadedPlayer::new(plan.player.clone(), 0)?,
            Starts::open(&config.selfplay.openings, None)?,
            config.selfplay.games_in_flight as usize,
        );
        let written = Mutex::default();
        let tasks = 4
            + plan.batch_sizes.len()
            + 2 * ROUNDS as usize
            + 2 * tried_quarters(&plan.devices).len();
        thread::scope(|scope| {
            let (finished, records) = channel();
            let current_player = Arc::clone(&work.current_player);
            let write = || write_games(plan, current_player, folder.path(), records, &written);
            let writer = thread::Builder::new()
                .spawn_scoped(scope, write)
                .context("can't start the thread that writes games")?;
            let workers = (0..plan.threads).map(|_| Worker::new(&work, finished.clone()));
            let workers = workers.collect::<Result<_>>()?;
            drop(finished);
            let bench = Bench {
                plan,
                workers,
                written: &written,
                progress: Progress::new("bench", tasks as u64),
                tasks_done: 0,
                stop,
            };
            // With the bench its workers end, and with them the writer.
            let report = bench.measure();
            match writer.join() {
                Ok(result) => result?,
                Err(_) => bail!("the thread that writes games panicked"),
            }
            report
        })
    }

    fn measure(mut self) -> Result<SelfplaySpeed> {
        let time = self.plan.time;
        let mut report = SelfplaySpeed::new(self.plan);
        self.perform("first turns", time / 10, Worker::play_first_turns)?;
        let warm = self.perform("warming up", time / 10, Worker::warm_up)?;
        report.rss_after_warm_up_mib = Resident::measure().now;
        for &batch in &self.plan.batch_sizes {
            let done = self.raw(batch, time / 40)?;
            report.raw.extend(RawSpeed::of(batch, false, &done));
        }
        // The evaluator alone in turns with self-play, at the mean size that self-play's batches had until then.
        let mut alone = Vec::new();
        let mut played = Played::default();
        for _ in 0..ROUNDS {
            let so_far = if played.workers.is_empty() {
                &warm
            } else {
                &played.workers
            };
            let done = self.raw(mean_batch(so_far), time / (2 * ROUNDS))?;
            add_all(&mut alone, &done);
            self.play(time / ROUNDS, &mut played)?;
        }
        let batch = mean_batch(&played.workers);
        let done = self.raw(batch, time / (2 * ROUNDS))?;
        add_all(&mut alone, &done);
        report.raw.extend(RawSpeed::of(batch, true, &alone));
        report.rss_at_end_mib = Resident::measure().now;
        let encoded = self.perform("encoding", time / 40, |worker, is_over| {
            Ok(worker.encode(is_over))
        })?;
        if !played.workers.is_empty() {
            self.report_played(&mut report, &played);
            report.time_shares = Some(time_shares(&played, &sum(&encoded)));
        }
        report.compare();
        report.batch_fill = report.batch_fill.or(played.devices.fill());
        // The next measurements may take more.
        report.peak_rss_mib = Resident::measure().peak;
        self.recommend(&mut report)?;
        report.stopped = self.stop.load(Relaxed);
        self.progress.finish("done");
        Ok(report)
    }

    /// All workers do the same side by side, for a time. The result is by worker; empty once the user asked to stop.
    fn perform(
        &mut self,
        what: &str,
        time: Duration,
        task: impl Fn(&mut Worker<'a>, &dyn Fn() -> bool) -> Result<Tally> + Sync,
    ) -> Result<Vec<Done>> {
        self.progress.show(self.tasks_done, || what.to_owned());
        self.tasks_done += 1;
        let (stop, task) = (self.stop, &task);
        if stop.load(Relaxed) {
            return Ok(Vec::new());
        }
        let count = self.workers.len();
        thread::scope(|scope| {
            let started = self.workers.iter_mut().map(|worker| {
                thread::Builder::new().spawn_scoped(scope, move || worker.perform(time, stop, task))
            });
            let threads: Vec<_> = started.collect::<io::Result<_>>().map_err(|error| {
                // The others are waited for.
                stop.store(true, Relaxed);
                anyhow!("can't start {count} worker threads: {error}; set --threads lower")
            })?;
            let results = threads.into_iter().map(|thread| {
                let result = thread.join();
                result.unwrap_or_else(|_| bail!("a worker thread panicked"))
            });
            results.collect()
        })
    }

    /// The evaluator alone.
    fn raw(&mut self, batch: usize, time: Duration) -> Result<Vec<Done>> {
        let what = format!("the evaluator alone, batch {batch}");
        self.perform(&what, time, |worker, is_over| {
            worker.evaluate(batch, is_over)
        })
    }

    /// Self-play for a slice of time.
    fn play(&mut self, time: Duration, played: &mut Played) -> Result<()> {
        // None where workers evaluate by themselves.
        let service = self.plan.player.service();
        let counters = || service.map_or_else(Vec::new, EvaluationService::device_counters);
        let before = *locked(self.written);
        let (begun, devices) = (Instant::now(), counters());
        let done = self.perform("self-play", time, Worker::play)?;
        let took = begun.elapsed();
        let devices = DeviceCounters::between(&devices, &counters());
        played.devices.add(took, devices);
        let now = *locked(self.written);
        played.writer += now.computed - before.computed;
        played.games += now.games - before.games;
        played.turns += now.turns - before.turns;
        add_all(&mut played.workers, &done);
        Ok(())
    }

    fn report_played(&self, report: &mut SelfplaySpeed, played: &Played) {
        let workers = &played.workers;
        let all = sum(workers);
        let computed = (all.computed + played.writer).as_secs_f64().max(1e-9);
        let evaluations = all.tally.evaluations as f64;
        let turns = |done: &Done| done.tally.turns as f64 / done.seconds();
        let turns_per_s: f64 = workers.iter().map(turns).sum();
        report.selfplay_evals_per_s = Some(workers.iter().map(Done::rate).sum());
        report.selfplay_evals_per_cpu_s = Some(evaluations / computed);
        report.mean_batch = Some(evaluations / all.tally.batches.max(1) as f64);
        report.turns_per_s = Some(turns_per_s);
        if played.games > 0 {
            let mean = played.turns as f64 / played.games as f64;
            report.turns_per_game = Some(mean);
            report.games_per_hour = Some(3_600.0 * turns_per_s / mean);
        }
        let in_flight = self.plan.threads as u64 * u64::from(report.games_in_flight);
        report.games_finished = played.games;
        // Short games end first: the mean is biased until most games in flight have come to their end.
        report.games_per_hour_is_estimated = played.games < 2 * in_flight;
    }

    /// Tries several numbers of games in flight, the smallest first, while more of them are faster.
    fn recommend(&mut self, report: &mut SelfplaySpeed) -> Result<()> {
        let configured = report.games_in_flight;
        let is_local = self.plan.devices.is_local();
        // In a worker's own thread every worker computes all the time, so that this is its speed on a machine without other work.
        let speed = |tried: &Tried| {
            if is_local {
                tried.evals_per_cpu_s
            } else {
                tried.evals_per_s
            }
        };
        let mut numbers: Vec<u32> = tried_quarters(&self.plan.devices)
            .iter()
            .map(|quarters| (configured * quarters / 4).clamp(1, 16_384))
            .collect();
        numbers.dedup();
        for games_in_flight in numbers {
            let what = format!("{games_in_flight} games in flight");
            for worker in &mut self.workers {
                worker.restart(games_in_flight as usize);
            }
            let time = self.plan.time;
            self.perform(&what, time / 15, Worker::play_first_turns)?;
            let done = self.perform(&what, time / 10, Worker::play)?;
            if self.stop.load(Relaxed) || done.is_empty() {
                return Ok(());
            }
            report.tried.push(Tried {
                games_in_flight,
                evals_per_s: done.iter().map(Done::rate).sum(),
                evals_per_cpu_s: sum(&done).cpu_rate(),
            });
            let speeds: Vec<f64> = report.tried.iter().map(speed).collect();
            if !is_local && is_enough(&speeds) {
                break;
            }
        }
        let best = report.tried.iter().map(speed).fold(0.0, f64::max);
        let is_fast = |tried: &&Tried| speed(tried) >= best * (1.0 - WORTH_IT);
        report.recommended = report.tried.iter().find(is_fast).map(|tried| {
            let threads = if is_local { cores() } else { self.plan.threads };
            Recommended::new(threads, tried.games_in_flight)
        });
        Ok(())
    }
}

/// Where the time went. `encoded` is how long an evaluator in the worker's own thread takes for its rows, which was measured beside it.
fn time_shares(played: &Played, encoded: &Done) -> TimeShares {
    let all = sum(&played.workers);
    let whole = all.seconds();
    let share = |time: Duration| time.as_secs_f64() / whole;
    let mut worker = all.tally.times.map(share);
    if worker.encode == 0.0 && encoded.tally.evaluations > 0 {
        // Other work on the machine slows both down alike.
        let each = encoded.computed.as_secs_f64() / encoded.tally.evaluations as f64;
        let slowed = whole / all.computed.as_secs_f64().max(1e-9);
        let rows = all.tally.evaluations as f64;
        worker.encode = (each * rows * slowed / whole).min(worker.device);
        worker.device -= worker.encode;
    }
    TimeShares {
        worker,
        writer: WriterShares {
            records: share(played.writer) * played.workers.len() as f64,
        },
        devices: played.devices.shares(),
    }
}

/// The mean size of batches, to the nearest.
fn mean_batch(done: &[Done]) -> usize {
    let tally = sum(done).tally;
    let mean = tally.evaluations as f64 / tally.batches.max(1) as f64;
    (mean.round() as usize).max(1)
}

/// The numbers to try for these devices, over 4.
fn tried_quarters(devices: &Devices) -> &'static [u32] {
    if devices.is_local() {
        &TRIED_QUARTERS[..TRIED_LOCALLY]
    } else {
        &TRIED_QUARTERS
    }
}

/// Whether neither of the last two was faster than all before them by more than [`WORTH_IT`].
fn is_enough(speeds: &[f64]) -> bool {
    let best = |speeds: &[f64]| speeds.iter().copied().fold(0.0, f64::max);
    match speeds.len().checked_sub(2) {
        None | Some(0) => false,
        Some(before) => best(&speeds[before..]) <= best(&speeds[..before]) * (1.0 + WORTH_IT),
    }
}

/// Adds each worker's work in another slice of time.
fn add_all(sums: &mut Vec<Done>, done: &[Done]) {
    sums.resize(done.len().max(sums.len()), Done::default());
    for (sum, done) in sums.iter_mut().zip(done) {
        sum.add(done);
    }
}

/// Empties a folder of files.
fn remove_files(folder: &Path) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        fs::remove_file(entry?.path())?;
    }
    Ok(())
}

/// The devices' work in several slices of time together.
#[derive(Debug, Default)]
struct DeviceWork {
    time: Duration,
    devices: Vec<DeviceCounters>,
}

impl DeviceWork {
    /// Adds the work in another slice of time.
    fn add(&mut self, time: Duration, done: Vec<DeviceCounters>) {
        self.time += time;
        if self.devices.is_empty() {
            self.devices = done;
        } else {
            self.devices
                .iter_mut()
                .zip(&done)
                .for_each(|(sum, more)| sum.add(more));
        }
    }

    /// The share of the computed rows that were requested.
    fn fill(&self) -> Option<f64> {
        let rows: u64 = self.devices.iter().map(|device| device.rows).sum();
        let padded: u64 = self.devices.iter().map(|device| device.padded_rows).sum();
        (padded > 0).then(|| rows as f64 / padded as f64)
    }

    fn shares(&self) -> Vec<DeviceUse> {
        let seconds = self.time.as_secs_f64();
        let devices = self.devices.iter();
        devices.map(|device| device.in_time(seconds)).collect()
    }
}

/// The finished games that are written, and their turns.
#[derive(Debug, Default, Clone, Copy)]
struct Written {
    games: u64,
    turns: u64,
    /// How long the writer has computed.
    computed: Duration,
}

/// Writes finished games to shards as `selfplay generate` does.
fn write_games(
    plan: &BenchPlan,
    current_player: Arc<CurrentPlayer>,
    folder: &Path,
    records: Receiver<GameRecord>,
    written: &Mutex<Written>,
) -> Result<()> {
    let config = &plan.config.selfplay;
    let games_per_shard = u64::from(config.games_per_shard);
    let mut writer = GameWriter::new(GameWriterOptions {
        folder,
        config_digest: String::new(),
        next_shard: 0,
        config,
        current_player,
        generator: None,
        pruning: None,
    });
    let mut so_far = Written::default();
    for record in records {
        so_far.games += 1;
        so_far.turns += record.turns.len() as u64;
        writer.take(record)?;
        if let Some(trouble) = writer.trouble() {
            bail!("{trouble}");
        }
        // The shards will not be read.
        if so_far.games.is_multiple_of(games_per_shard) {
            remove_files(folder)?;
        }
        so_far.computed = computed();
        *locked(written) = so_far;
    }
    writer.close()
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::config::Precision;
    use network::Device;

    #[test]
    fn trying_ends_when_two_in_a_row_are_not_faster() {
        for (speeds, is_over) in [
            (&[][..], false),
            (&[100.0, 100.0], false),
            (&[100.0, 101.0, 102.0], true),
            (&[100.0, 101.0, 104.0], false),
            (&[100.0, 104.0, 104.0], false),
            (&[100.0, 104.0, 104.0, 90.0], true),
            (&[100.0, 90.0, 104.0, 104.0], false),
        ] {
            assert_eq!(is_enough(speeds), is_over, "{speeds:?}");
        }
    }

    #[test]
    fn more_games_are_tried_with_a_service() {
        let last = |device| {
            let devices = Devices::of(vec![device], Precision::Fp32);
            tried_quarters(&devices).last().copied()
        };
        assert_eq!(last(Device::Cpu), Some(8));
        assert_eq!(last(Device::CpuService), Some(64));
    }
}
