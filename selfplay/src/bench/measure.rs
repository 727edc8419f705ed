//! What the bench measures, in which order, and what follows from it.

use super::devices::{DeviceWork, Moment};
use super::members::Workers;
use super::report::{
    BenchPlan, RawSpeed, Recommended, SelfplaySpeed, Shares, TimeShares, Tried, WriterShares,
};
use super::worker::{Done, Task, computed};
use crate::generate::current_player::{CurrentPlayer, LoadedPlayer};
use crate::generate::game_writer::GameWriter;
use crate::generate::starts::Starts;
use crate::generate::worker::GenerationTask;
use crate::memory::Resident;
use crate::worker::devices::Devices;
use anyhow::{Context, Result, bail};
use engine::encoding::ENCODING_VERSION;
use engine::progress::Progress;
use engine::shard::{GameRecord, Header};
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// How often the bare network and self-play take turns.
const ROUNDS: u32 = 16;

/// What is tried for `games_in_flight`: the configuration's, times this over 4.
const TRIED_QUARTERS: [u32; 7] = [1, 2, 4, 8, 16, 32, 64];

/// So many of them where workers evaluate by themselves: their batches are large enough with few games.
const TRIED_LOCALLY: usize = 4;

/// More games in flight take more memory: they are recommended only if they are faster by more than this share.
const WORTH_IT: f64 = 0.03;

/// The measurements, as far as they have been made.
pub(super) struct Bench<'a> {
    plan: &'a BenchPlan,
    workers: Workers<'a>,
    written: &'a Written,
    progress: Progress,
    tasks_done: u64,
    stop: &'a AtomicBool,
}

impl Bench<'_> {
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
        let written = Written::default();
        let tasks = 4
            + plan.batch_sizes.len()
            + 2 * ROUNDS as usize
            + 3 * tried_quarters(&plan.devices).len();
        std::thread::scope(|scope| {
            let (finished, records) = channel();
            let roster = Arc::clone(&work.roster);
            let writer = scope.spawn(|| written.write(plan, roster, folder.path(), records));
            let workers = Workers::start(scope, plan.threads, &work, stop, finished);
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
        self.perform("first turns", Task::PlayFirstTurns(time / 10))?;
        let warm = self.perform("warming up", Task::WarmUp(time / 10))?;
        report.rss_after_warm_up_mib = Resident::measure().now;
        for &batch in &self.plan.batch_sizes {
            let mut speed = RawSpeed::new(batch);
            self.raw(batch, time / 40, &mut speed)?;
            report.raw.push(speed);
        }
        // The evaluator alone in turns with self-play, at the mean size that self-play's batches had until then.
        let mut beside = RawSpeed::in_turns();
        let mut played: Vec<Done> = Vec::new();
        let mut turns_of_finished = Vec::new();
        let mut writer_time = Duration::ZERO;
        let mut in_devices = DeviceWork::default();
        for _ in 0..ROUNDS {
            let batch = self.asked_batch(if played.is_empty() { &warm } else { &played });
            self.raw(batch, time / (2 * ROUNDS), &mut beside)?;
            let (games, turns) = self.written.games();
            let before = self.written.computed();
            let devices_before = Moment::of(&self.plan.player);
            let done = self.perform("self-play", Task::Play(time / ROUNDS))?;
            in_devices.add(&devices_before, &Moment::of(&self.plan.player));
            writer_time += self.written.computed() - before;
            let (games_now, turns_now) = self.written.games();
            turns_of_finished.push((games_now - games, turns_now - turns));
            add_all(&mut played, &done);
        }
        beside.batch = self.asked_batch(&played);
        self.raw(beside.batch, time / (2 * ROUNDS), &mut beside)?;
        report.raw.push(beside);
        report.rss_at_end_mib = Resident::measure().now;
        let encoded = self.perform("encoding", Task::Encode(time / 40))?;
        self.take_played(&mut report, &played, &turns_of_finished, writer_time);
        report.compare();
        report.batch_fill = report.batch_fill.or(in_devices.fill());
        self.take_shares(&mut report, &played, &encoded, writer_time);
        if let Some(shares) = &mut report.time_shares {
            shares.devices = in_devices.shares();
        }

        // What is tried for a recommendation may take more.
        report.peak_rss_mib = Resident::measure().peak;
        self.recommend(&mut report)?;
        report.stopped = self.stop.load(Relaxed);
        self.progress.finish("done");
        Ok(report)
    }

    /// Has all workers do the same; nothing once the user wants to stop.
    fn perform(&mut self, what: &str, task: Task) -> Result<Vec<Done>> {
        self.progress.show(self.tasks_done, || what.to_owned());
        self.tasks_done += 1;
        if self.stop.load(Relaxed) {
            return Ok(Vec::new());
        }
        self.workers.perform(task)
    }

    /// Asks the evaluator alone, and adds how fast it was.
    fn raw(&mut self, batch: usize, time: Duration, speed: &mut RawSpeed) -> Result<()> {
        let what = format!("the evaluator alone, batch {batch}");
        let done = self.perform(&what, Task::Raw { batch, time })?;
        add_all(&mut speed.workers, &done);
        Ok(())
    }

    /// The mean size of batches.
    fn asked_batch(&self, done: &[Done]) -> usize {
        let sum = sum(done);
        let mean = sum.tally.evaluations as f64 / sum.tally.batches.max(1) as f64;
        (mean.round() as usize).max(1)
    }

    fn take_played(
        &self,
        report: &mut SelfplaySpeed,
        played: &[Done],
        finished: &[(u64, u64)],
        writer: Duration,
    ) {
        if played.is_empty() {
            return;
        }
        let all = sum(played);
        let speed: f64 = played.iter().map(Done::rate).sum();
        let computed = (all.computed + writer).as_secs_f64();
        let turns_per_s: f64 = played
            .iter()
            .map(|done| done.tally.turns as f64 / done.time.as_secs_f64().max(1e-9))
            .sum();
        report.selfplay_evals_per_s = Some(speed);
        report.selfplay_evals_per_cpu_s = Some(all.tally.evaluations as f64 / computed.max(1e-9));
        report.mean_batch = Some(all.tally.evaluations as f64 / all.tally.batches.max(1) as f64);
        report.turns_per_s = Some(turns_per_s);

        let games: u64 = finished.iter().map(|(games, _)| games).sum();
        let turns: u64 = finished.iter().map(|(_, turns)| turns).sum();
        if games > 0 {
            let mean = turns as f64 / games as f64;
            report.turns_per_game = Some(mean);
            report.games_per_hour = Some(3_600.0 * turns_per_s / mean);
        }
        let in_flight = self.plan.threads as u64 * u64::from(report.games_in_flight);
        report.games_finished = games;
        // Short games end first: the mean is biased until most games in flight have come to their end.
        report.games_per_hour_is_estimated = games < 2 * in_flight;
    }

    fn take_shares(
        &self,
        report: &mut SelfplaySpeed,
        played: &[Done],
        encoded: &[Done],
        writer: Duration,
    ) {
        if played.is_empty() {
            return;
        }
        let all = sum(played);
        let whole = all.time.as_secs_f64().max(1e-9);
        let share = |time: Duration| time.as_secs_f64() / whole;
        let times = all.tally.times;
        let (mut encode, mut device) = (share(times.encode), share(times.device));
        let encoding = sum(encoded);
        if times.encode.is_zero() && encoding.tally.evaluations > 0 {
            // An evaluator in the worker's own thread encodes by itself: how long that takes was measured beside it, and other work
            // on the machine slows both down alike.
            let each = encoding.computed.as_secs_f64() / encoding.tally.evaluations as f64;
            let slowed = whole / all.computed.as_secs_f64().max(1e-9);
            let rows = all.tally.evaluations as f64;
            encode = (each * rows * slowed / whole).min(device);
            device -= encode;
        }
        let wall = whole / played.len() as f64;
        report.time_shares = Some(TimeShares {
            worker: Shares {
                search: share(times.search),
                records: share(times.records),
                encode,
                wait: share(times.wait),
                device,
            },
            writer: WriterShares {
                records: writer.as_secs_f64() / wall,
            },
            devices: Vec::new(),
        });
    }

    /// Tries a few numbers of games in flight, the smallest first, as long as more of them bring something.
    fn recommend(&mut self, report: &mut SelfplaySpeed) -> Result<()> {
        let configured = report.games_in_flight;
        let is_local = self.plan.devices.is_local();
        let speed = |tried: &Tried| {
            if is_local {
                // Every worker computes all the time, so this is its speed on a machine without other work.
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
            let games = games_in_flight as usize;
            self.perform(
                &what,
                Task::Restart {
                    games_in_flight: games,
                },
            )?;
            self.perform(&what, Task::PlayFirstTurns(self.plan.time / 15))?;
            let done = self.perform(&what, Task::Play(self.plan.time / 10))?;
            if self.stop.load(Relaxed) || done.is_empty() {
                return Ok(());
            }
            let all = sum(&done);
            report.tried.push(Tried {
                games_in_flight,
                evals_per_s: done.iter().map(Done::rate).sum(),
                evals_per_cpu_s: all.tally.evaluations as f64
                    / all.computed.as_secs_f64().max(1e-9),
            });
            let speeds: Vec<f64> = report.tried.iter().map(speed).collect();
            if !is_local && is_enough(&speeds) {
                break;
            }
        }
        let best = report.tried.iter().map(speed).fold(0.0, f64::max);
        let enough = report
            .tried
            .iter()
            .find(|tried| speed(tried) >= best * (1.0 - WORTH_IT));
        report.recommended = enough.map(|tried| {
            let threads = match std::thread::available_parallelism() {
                Ok(cores) if is_local => cores.get(),
                _ => self.plan.threads,
            };
            Recommended::new(threads, tried.games_in_flight)
        });
        Ok(())
    }
}

/// What is tried there for `games_in_flight`, over 4.
fn tried_quarters(devices: &Devices) -> &'static [u32] {
    match devices.is_local() {
        true => &TRIED_QUARTERS[..TRIED_LOCALLY],
        false => &TRIED_QUARTERS,
    }
}

/// Whether the last two brought nothing: neither was faster than all before them by what is worth it.
fn is_enough(speeds: &[f64]) -> bool {
    let best = |speeds: &[f64]| speeds.iter().copied().fold(0.0, f64::max);
    match speeds.len().checked_sub(2) {
        None | Some(0) => false,
        Some(before) => best(&speeds[before..]) <= best(&speeds[..before]) * (1.0 + WORTH_IT),
    }
}

pub(super) fn sum(done: &[Done]) -> Done {
    done.iter().fold(Done::default(), |mut sum, done| {
        sum.add(done);
        sum
    })
}

/// Adds what each worker did in one more slice.
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

/// The finished games, which are written to shards as `selfplay generate` does.
#[derive(Debug, Default)]
struct Written {
    games: AtomicU64,
    turns: AtomicU64,
    /// The nanoseconds that the writer has computed.
    computed: AtomicU64,
}

impl Written {
    fn write(
        &self,
        plan: &BenchPlan,
        roster: Arc<CurrentPlayer>,
        folder: &Path,
        records: Receiver<GameRecord>,
    ) -> Result<()> {
        let header = Header {
            encoding_version: ENCODING_VERSION,
            program_version: env!("CARGO_PKG_VERSION").to_owned(),
            evaluator: plan.player.shard_evaluator(),
            config_digest: String::new(),
            generator: 0,
        };
        let config = &plan.config.selfplay;
        let mut keeper = GameWriter::new(folder, header, 0, config, roster, None, None);
        for record in records {
            self.games.fetch_add(1, Relaxed);
            self.turns.fetch_add(record.turns.len() as u64, Relaxed);
            keeper.take(record)?;
            if let Some(trouble) = keeper.trouble() {
                bail!("{trouble}");
            }
            // They will not be read: finished shards make room for others.
            let games_per_shard = u64::from(plan.config.selfplay.games_per_shard);
            if self.games.load(Relaxed).is_multiple_of(games_per_shard) {
                remove_files(folder)?;
            }
            self.computed.store(computed().as_nanos() as u64, Relaxed);
        }
        keeper.close()
    }

    /// How many games are written, and how many turns they had.
    fn games(&self) -> (u64, u64) {
        (self.games.load(Relaxed), self.turns.load(Relaxed))
    }

    fn computed(&self) -> Duration {
        Duration::from_nanos(self.computed.load(Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::config::Precision;
    use network::Device;

    #[test]
    fn trying_ends_when_two_in_a_row_bring_nothing() {
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
    fn more_games_are_tried_on_a_device_of_its_own() {
        let last = |device| {
            let devices = Devices::of(vec![device], Precision::Fp32);
            tried_quarters(&devices).last().copied()
        };
        assert_eq!(last(Device::Cpu), Some(8));
        assert_eq!(last(Device::CpuService), Some(64));
    }
}
