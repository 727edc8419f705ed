//! What it costs to keep games: self-play with all that `selfplay generate` writes and shows, in turns with self-play of which
//! nothing is left.
//!
//! Both play the same games, for their seeds are the same. Each pair of slices gives a ratio, and noise of the machine that lasts
//! longer than a pair hits both sides of it alike. The games that wait when a slice ends are kept before the next one begins, and
//! the time counts, for self-play that goes on could not put it off for ever. Then the journal is flushed, so that nothing is left
//! to the other side; of that the computing counts alone, by the clock of the whole program, for a generator doesn't wait for it.

use super::measure::{Plan, sum};
use super::members::Crew;
use super::worker::{Done, Task, computed_by_all};
use crate::cache::EvaluationCache;
use crate::generate::disk::WaitingRoom;
use crate::generate::keeper::{Keeper, ShardSize};
use crate::generate::log::JournalLog;
use crate::generate::roster::Fielded;
use crate::generate::starts::Starts;
use crate::generate::supervisor::Supervisor;
use crate::generate::worker::Work;
use crate::telemetry::{About, Limits, Telemetry, TelemetryArguments};
use anyhow::{Context, Result};
use engine::encoding::ENCODING_VERSION;
use engine::run::{Generator, GeneratorPlaces, GeneratorPlan};
use engine::shard::{GameRecord, Header, list_shards};
use serde::Serialize;
use std::fmt;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// About how long a slice is: several times what passes between two flushes of the journal.
const SLICE: Duration = Duration::from_secs(3);

/// Fewer pairs of slices would say nothing of their spread.
const LEAST_PAIRS: u32 = 4;

/// Between two looks at how things go while no game is finished, as in `selfplay generate`.
const TICK: Duration = Duration::from_millis(200);

/// How long the metrics are waited for.
const SCRAPE_TIME: Duration = Duration::from_secs(2);

/// Self-play that keeps its games, beside self-play that doesn't.
#[derive(Debug, Serialize)]
pub(super) struct KeepingCost {
    /// How many pairs of slices were measured ...
    pairs: usize,
    /// ... and how long each slice was to take.
    slice_seconds: f64,
    /// Evaluations a second by all workers, with journal, shards and metrics ...
    evals_per_s: f64,
    /// ... and with nothing of it.
    bare_evals_per_s: f64,
    /// The first over the second, by pairs.
    ratio: Spread,
    /// The same by the seconds that all threads of the program computed, those that write and serve among them.
    evals_per_cpu_s: f64,
    bare_evals_per_cpu_s: f64,
    cpu_ratio: Spread,
    /// Turns a second that were kept.
    turns_per_s: f64,
    /// Games that were finished and kept.
    games_finished: u64,
    /// Shards that were completed.
    shards: u64,
}

/// How numbers are spread.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
struct Spread {
    median: f64,
    lower_quartile: f64,
    upper_quartile: f64,
}

impl Spread {
    /// Of numbers in any order; none of none.
    fn of(mut numbers: Vec<f64>) -> Option<Self> {
        numbers.sort_by(f64::total_cmp);
        let last = numbers.len().checked_sub(1)?;
        let at = |share: f64| {
            let place = share * last as f64;
            let below = numbers.get(place.floor() as usize)?;
            let above = numbers.get(place.ceil() as usize)?;
            Some(below + (above - below) * place.fract())
        };
        Some(Self {
            median: at(0.5)?,
            lower_quartile: at(0.25)?,
            upper_quartile: at(0.75)?,
        })
    }
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            median,
            lower_quartile,
            upper_quartile,
        } = self;
        write!(
            f,
            "{median:.3} (the middle half {lower_quartile:.3} to {upper_quartile:.3})"
        )
    }
}

impl KeepingCost {
    /// Of pairs of slices, kept games first; none of none.
    fn of(pairs: &[(Slice, Slice)], slice: Duration, written: Written) -> Option<Self> {
        let ratios = |speed: fn(&Slice) -> f64| {
            let ratios = pairs.iter().map(|(kept, bare)| speed(kept) / speed(bare));
            Spread::of(ratios.collect())
        };
        let kept = Slice::sum(pairs.iter().map(|(kept, _)| kept));
        let bare = Slice::sum(pairs.iter().map(|(_, bare)| bare));
        Some(Self {
            pairs: pairs.len(),
            slice_seconds: slice.as_secs_f64(),
            evals_per_s: kept.speed(),
            bare_evals_per_s: bare.speed(),
            ratio: ratios(Slice::speed)?,
            evals_per_cpu_s: kept.speed_by_computing(),
            bare_evals_per_cpu_s: bare.speed_by_computing(),
            cpu_ratio: ratios(Slice::speed_by_computing)?,
            turns_per_s: kept.turns as f64 / kept.time.max(f64::MIN_POSITIVE),
            games_finished: written.games,
            shards: written.shards,
        })
    }
}

impl fmt::Display for KeepingCost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "keeping     {} of the evaluations/s, by computing {}, in {} pairs of slices of {:.1} s",
            self.ratio, self.cpu_ratio, self.pairs, self.slice_seconds
        )?;
        writeln!(
            f,
            "            {:.0} evaluations/s with journal, shards and metrics, {:.0} without; a computed second {:.0} and {:.0}",
            self.evals_per_s,
            self.bare_evals_per_s,
            self.evals_per_cpu_s,
            self.bare_evals_per_cpu_s
        )?;
        writeln!(
            f,
            "            {:.0} turns/s; {} games were finished, {} shards completed",
            self.turns_per_s, self.games_finished, self.shards
        )
    }
}

/// What one slice of time brought, by all workers together.
#[derive(Debug, Clone, Copy, Default)]
struct Slice {
    evaluations: u64,
    turns: u64,
    /// Seconds: the mean of the workers', and what the games took that were kept behind its end.
    time: f64,
    /// Seconds that all threads of the program computed.
    computed: f64,
}

impl Slice {
    fn new(done: &[Done], computed: Duration) -> Self {
        let all = sum(done);
        Self {
            evaluations: all.tally.evaluations,
            turns: all.tally.turns,
            time: all.time.as_secs_f64() / done.len().max(1) as f64,
            computed: computed.as_secs_f64(),
        }
    }

    fn sum<'a>(slices: impl Iterator<Item = &'a Self>) -> Self {
        slices.fold(Self::default(), |sum, slice| Self {
            evaluations: sum.evaluations + slice.evaluations,
            turns: sum.turns + slice.turns,
            time: sum.time + slice.time,
            computed: sum.computed + slice.computed,
        })
    }

    /// Evaluations a second.
    fn speed(&self) -> f64 {
        self.evaluations as f64 / self.time.max(f64::MIN_POSITIVE)
    }

    fn speed_by_computing(&self) -> f64 {
        self.evaluations as f64 / self.computed.max(f64::MIN_POSITIVE)
    }
}

/// What was kept while it was measured.
#[derive(Debug, Clone, Copy, Default)]
struct Written {
    games: u64,
    shards: u64,
}

/// Self-play that keeps its games.
struct Kept<'a> {
    crew: Crew<'a>,
    records: Receiver<GameRecord>,
    supervisor: Supervisor<'a>,
    generator: Arc<Generator>,
    metrics: Option<SocketAddr>,
    shards: PathBuf,
    written: Written,
}

/// Self-play that doesn't.
struct Bare<'a> {
    crew: Crew<'a>,
    records: Receiver<GameRecord>,
    work: &'a Work,
}

/// Measures for so long each. None if `stop` was set before there was anything to compare.
pub(super) fn measure(
    plan: &Plan,
    time: Duration,
    stop: &Arc<AtomicBool>,
) -> Result<Option<KeepingCost>> {
    if stop.load(Relaxed) {
        return Ok(None);
    }
    let folder = tempfile::tempdir().context("can't make a folder for the games")?;
    let places = GeneratorPlaces {
        root: folder.path().to_owned(),
        journal: folder.path().join("journal"),
        shards: folder.path().join("shards"),
    };
    let (generator, _) = Generator::start(
        &places,
        &GeneratorPlan {
            seed: 0,
            games: None,
            config_digest: String::new(),
            evaluator: plan.evaluator.clone(),
        },
    )?;
    let generator = Arc::new(generator);
    let waiting_room = Arc::new(WaitingRoom::new(Arc::clone(stop)));
    let bare_work = work(plan, stop)?;
    let mut kept_work = work(plan, stop)?;
    kept_work.generator = generator.number();
    kept_work.log = Arc::new(JournalLog {
        generator: Arc::clone(&generator),
        waiting_room: Arc::clone(&waiting_room),
    });
    let result = std::thread::scope(|scope| {
        let (finished, records) = channel();
        let (supervisor, metrics) = supervise(plan, &kept_work, &places, &generator, waiting_room)?;
        let mut kept = Kept {
            crew: Crew::start(scope, plan.threads, &kept_work, stop, finished),
            records,
            supervisor,
            generator,
            metrics,
            shards: places.shards.clone(),
            written: Written::default(),
        };
        let (finished, records) = channel();
        let mut bare = Bare {
            crew: Crew::start(scope, plan.threads, &bare_work, stop, finished),
            records,
            work: &bare_work,
        };
        let result = in_turns(&mut kept, &mut bare, time, stop);
        if result.is_err() {
            // Workers that wait for the disk would do so for ever.
            stop.store(true, Relaxed);
        }
        result
    });
    folder
        .close()
        .context("can't remove the folder of the games")?;
    result
}

fn in_turns(
    kept: &mut Kept,
    bare: &mut Bare,
    time: Duration,
    stop: &AtomicBool,
) -> Result<Option<KeepingCost>> {
    for warm_up in [
        Task::PlayFirstTurns(time / 10),
        Task::Play((time / 20).min(SLICE)),
    ] {
        kept.slice(warm_up)?;
        bare.slice(warm_up)?;
    }
    kept.written = Written::default();
    let pairs = (time.as_secs_f64() / SLICE.as_secs_f64()).round() as u32;
    let pairs = pairs.max(LEAST_PAIRS);
    let slice = time / pairs;
    let mut measured = Vec::new();
    for pair in 0..pairs {
        // Neither is always the first.
        let (of_kept, of_bare) = if pair % 2 == 0 {
            let of_kept = kept.slice(Task::Play(slice))?;
            (of_kept, bare.slice(Task::Play(slice))?)
        } else {
            let of_bare = bare.slice(Task::Play(slice))?;
            (kept.slice(Task::Play(slice))?, of_bare)
        };
        if stop.load(Relaxed) {
            break;
        }
        if of_bare.evaluations > 0 {
            measured.push((of_kept, of_bare));
        }
    }
    Ok(KeepingCost::of(&measured, slice, kept.written))
}

/// What both sides have in common.
fn work(plan: &Plan, stop: &Arc<AtomicBool>) -> Result<Work> {
    let selfplay = &plan.config.selfplay;
    let mut work = Work::new(
        plan.config.clone(),
        Fielded::new(plan.player.clone(), 0, None)?,
        EvaluationCache::new(selfplay.cache_mib).map(Arc::new),
        Starts::open(&selfplay.openings, None)?,
        selfplay.games_in_flight as usize,
    );
    work.stop = Arc::clone(stop);
    Ok(work)
}

/// Who keeps the finished games and shows how it goes, and where the metrics are served.
fn supervise<'a>(
    plan: &Plan,
    work: &'a Work,
    places: &GeneratorPlaces,
    generator: &Arc<Generator>,
    waiting_room: Arc<WaitingRoom>,
) -> Result<(Supervisor<'a>, Option<SocketAddr>)> {
    let header = Header {
        encoding_version: ENCODING_VERSION,
        program_version: env!("CARGO_PKG_VERSION").to_owned(),
        evaluator: plan.player.shard_evaluator(),
        config_digest: String::new(),
        generator: generator.number(),
    };
    let keeper = Keeper::new(
        &places.shards,
        header,
        0,
        ShardSize::of(&plan.config.selfplay),
        Arc::clone(&work.roster),
        Some(Arc::clone(generator)),
        None,
    );
    let limits = Limits::default();
    let networks_loaded = Arc::new(AtomicU64::new(1));
    let mut supervisor = Supervisor::new(
        places,
        limits,
        work,
        Arc::clone(generator),
        keeper,
        waiting_room,
        &networks_loaded,
    );
    let about = About {
        program_version: env!("CARGO_PKG_VERSION").to_owned(),
        config_digest: String::new(),
        seed: work.seed,
        generator: generator.number(),
        limits,
    };
    let arguments = TelemetryArguments {
        json_log: Some(places.root.join("log.jsonl")),
        metrics: Some("127.0.0.1:0".to_owned()),
    };
    let first = supervisor.counters();
    let mut telemetry = Telemetry::start(&arguments, &about, &first)?;
    telemetry.keep_newest_in(places.status(generator.number()), &first);
    let metrics = telemetry.metrics_address();
    supervisor.show(telemetry);
    Ok((supervisor, metrics))
}

impl Kept<'_> {
    /// Plays, keeps what is finished, and asks for the metrics once.
    fn slice(&mut self, task: Task) -> Result<Slice> {
        let computed = computed_by_all();
        let shards = self.supervisor.counters().shards;
        let mut metrics = self.metrics;
        let Self {
            crew,
            records,
            supervisor,
            written,
            ..
        } = self;
        let done = crew.perform_while(task, || {
            let record = records.recv_timeout(TICK).ok();
            written.games += u64::from(record.is_some());
            supervisor.take(record)?;
            metrics.take().map_or(Ok(()), scrape)
        })?;
        let begun = Instant::now();
        for record in records.try_iter() {
            written.games += 1;
            supervisor.take(Some(record))?;
        }
        let late = begun.elapsed();
        self.generator.journal().sync()?;
        let mut slice = Slice::new(&done, computed_by_all().saturating_sub(computed));
        slice.time += late.as_secs_f64();
        self.written.shards += self.supervisor.counters().shards - shards;
        remove_shards(&self.shards)?;
        Ok(slice)
    }
}

impl Bare<'_> {
    /// Plays, and drops what is finished.
    fn slice(&mut self, task: Task) -> Result<Slice> {
        let computed = computed_by_all();
        let done = self.crew.perform(task)?;
        for record in self.records.try_iter() {
            // Forks are no part of what is measured.
            self.work.starts.remember(&record);
        }
        Ok(Slice::new(
            &done,
            computed_by_all().saturating_sub(computed),
        ))
    }
}

/// Reads the metrics as a Prometheus server does.
fn scrape(address: SocketAddr) -> Result<()> {
    let read = || -> std::io::Result<usize> {
        let mut answer = Vec::new();
        let mut stream = TcpStream::connect_timeout(&address, SCRAPE_TIME)?;
        stream.set_read_timeout(Some(SCRAPE_TIME))?;
        write!(stream, "GET /metrics HTTP/1.1\r\nHost: {address}\r\n\r\n")?;
        stream.read_to_end(&mut answer)
    };
    read().with_context(|| format!("can't read the metrics at {address}"))?;
    Ok(())
}

/// Nobody will read them: finished shards make room for others.
fn remove_shards(folder: &Path) -> Result<()> {
    for path in list_shards(folder)?.values() {
        std::fs::remove_file(path).with_context(|| format!("can't remove {}", path.display()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartiles_are_between_numbers_where_they_must() {
        let spread = |lower_quartile, median, upper_quartile| Spread {
            median,
            lower_quartile,
            upper_quartile,
        };
        assert_eq!(Spread::of(vec![]), None);
        assert_eq!(Spread::of(vec![7.0]), Some(spread(7.0, 7.0, 7.0)));
        assert_eq!(
            Spread::of(vec![5.0, 1.0, 3.0, 2.0, 4.0]),
            Some(spread(2.0, 3.0, 4.0))
        );
        assert_eq!(
            Spread::of(vec![4.0, 1.0, 3.0, 2.0]),
            Some(spread(1.75, 2.5, 3.25))
        );
    }

    #[test]
    fn the_cost_is_of_pairs_and_the_speeds_are_of_all() {
        let slice = |evaluations, time, computed| Slice {
            evaluations,
            turns: 10,
            time,
            computed,
        };
        let pairs = [
            (slice(90, 1.0, 2.0), slice(100, 1.0, 1.0)),
            (slice(40, 1.0, 2.0), slice(50, 1.0, 2.0)),
            (slice(70, 2.0, 1.0), slice(100, 2.0, 1.0)),
        ];
        let written = Written {
            games: 3,
            shards: 1,
        };
        let cost = KeepingCost::of(&pairs, Duration::from_secs(1), written).unwrap();
        assert_eq!((cost.evals_per_s, cost.bare_evals_per_s), (50.0, 62.5));
        assert_eq!((cost.ratio.median, cost.cpu_ratio.median), (0.8, 0.7));
        assert_eq!((cost.turns_per_s, cost.pairs), (7.5, 3));
        assert!(KeepingCost::of(&[], SLICE, written).is_none());
    }
}
