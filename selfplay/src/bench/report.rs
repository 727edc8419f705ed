//! The report of the bench: a table for people, and an object whose keys stay.

use super::worker::{Done, sum};
use crate::worker::devices::Devices;
use crate::worker::player::Player;
use engine::config::Config;
use engine::run::{DeviceUse, WorkerTimes};
use engine::search::SearchOptions;
use network::{Drift, MAX_CPU_BATCH, ServiceDevice};
use serde::Serialize;
use std::fmt;
use std::time::Duration;

/// What to measure.
pub(super) struct BenchPlan {
    pub(super) config: Config,
    pub(super) player: Player,
    /// What the player is called in the report.
    pub(super) evaluator: String,
    pub(super) devices: Devices,
    pub(super) threads: usize,
    /// How long self-play is measured.
    pub(super) time: Duration,
    pub(super) batch_sizes: Vec<usize>,
}

/// All measurements. None where a value is not known.
#[derive(Debug, Default, Serialize)]
pub(super) struct SelfplaySpeed {
    /// The version of the program.
    version: &'static str,
    /// What was measured: a network's file, `random:6x64`, `null`.
    evaluator: String,
    device: String,
    /// The precision of the network; several devices may differ.
    precision: Option<String>,
    /// The root mean square of the differences of win probabilities from the network in fp32, on real positions. Of several devices
    /// the largest.
    value_error: Option<f64>,
    /// The mean Kullback-Leibler divergence of the policies from those of the network in fp32, in nats. Of several devices the largest.
    policy_divergence: Option<f64>,
    /// The bare network on each device that evaluates for all workers, by batch size: on prepared inputs.
    bare: Vec<BareSpeed>,
    /// Worker threads; on a CPU each has an evaluator of its own.
    threads: usize,
    /// Of the search: `puct` or `gumbel`.
    mode: String,
    /// Evaluations a turn.
    evaluations: u32,
    /// Games that each worker plays at once.
    pub(super) games_in_flight: u32,
    /// How long self-play was to be measured.
    seconds: f64,
    /// Whether the user ended it before its time.
    pub(super) stopped: bool,
    /// The evaluators alone, all workers' side by side, by batch size; on GPUs with packing and transfers.
    pub(super) raw: Vec<RawSpeed>,
    /// The same in turns with self-play, at its mean batch size; on GPUs the bare network at the batch size that was chosen.
    raw_evals_per_s: Option<f64>,
    /// That batch size.
    raw_batch: Option<usize>,
    raw_evals_per_cpu_s: Option<f64>,
    /// Evaluations of self-play, of all workers.
    pub(super) selfplay_evals_per_s: Option<f64>,
    /// The same by the CPU time of the workers and the writer, which other work on the machine doesn't slow down.
    pub(super) selfplay_evals_per_cpu_s: Option<f64>,
    /// Self-play's over the evaluators' alone.
    ratio: Option<f64>,
    /// The same by computed seconds.
    cpu_ratio: Option<f64>,
    /// Evaluations in a batch on average.
    pub(super) mean_batch: Option<f64>,
    /// The share of the computed rows that were requested; the others fill batches up to a fixed size.
    pub(super) batch_fill: Option<f64>,
    pub(super) turns_per_s: Option<f64>,
    /// Turns a finished game had on average.
    pub(super) turns_per_game: Option<f64>,
    /// Games that were finished while self-play was measured.
    pub(super) games_finished: u64,
    /// From the turns a second and the finished games' mean length.
    pub(super) games_per_hour: Option<f64>,
    /// Whether too few games were finished for a reliable mean length.
    pub(super) games_per_hour_is_estimated: bool,
    pub(super) time_shares: Option<TimeShares>,
    /// The most memory that was resident at any moment of the run.
    pub(super) peak_rss_mib: Option<f64>,
    /// Before self-play was measured ...
    pub(super) rss_after_warm_up_mib: Option<f64>,
    /// ... and after it.
    pub(super) rss_at_end_mib: Option<f64>,
    /// What was tried for the recommendation.
    pub(super) tried: Vec<Tried>,
    pub(super) recommended: Option<Recommended>,
}

/// The evaluators alone at one batch size.
#[derive(Debug, Serialize)]
pub(super) struct RawSpeed {
    /// A mean where it was measured in turns with self-play.
    batch: usize,
    /// Whether it was measured in turns with self-play, at the mean size of its batches: what self-play is compared with.
    in_turns: bool,
    evals_per_s: f64,
    evals_per_cpu_s: f64,
}

impl RawSpeed {
    /// What each worker did at one batch size; none where nothing was measured.
    pub(super) fn of(batch: usize, in_turns: bool, workers: &[Done]) -> Option<Self> {
        (!workers.is_empty()).then(|| Self {
            batch,
            in_turns,
            evals_per_s: workers.iter().map(Done::rate).sum(),
            evals_per_cpu_s: sum(workers).cpu_rate(),
        })
    }
}

/// Where the threads' time went, as shares of the time that passed.
#[derive(Debug, Serialize)]
pub(super) struct TimeShares {
    pub(super) worker: WorkerTimes<f64>,
    pub(super) writer: WriterShares,
    /// The devices of the evaluation service, where there are such.
    pub(super) devices: Vec<DeviceUse>,
}

/// The bare network on one device at one batch size.
#[derive(Debug, Serialize)]
pub(super) struct BareSpeed {
    device: String,
    batch: usize,
    evals_per_s: f64,
    /// Whether self-play's batches are of this size at most.
    is_chosen: bool,
}

/// Where the time of the thread that writes shards went; the rest of it waits for games.
#[derive(Debug, Serialize)]
pub(super) struct WriterShares {
    /// Packing and writing them.
    pub(super) records: f64,
}

/// Speed of self-play with another number of games in flight.
#[derive(Debug, Serialize)]
pub(super) struct Tried {
    pub(super) games_in_flight: u32,
    pub(super) evals_per_s: f64,
    pub(super) evals_per_cpu_s: f64,
}

/// Settings for this machine.
#[derive(Debug, Serialize)]
pub(super) struct Recommended {
    threads: usize,
    games_in_flight: u32,
    /// The same as options of `selfplay generate`.
    options: String,
}

impl Recommended {
    pub(super) fn new(threads: usize, games_in_flight: u32) -> Self {
        Self {
            threads,
            games_in_flight,
            options: format!(
                "--threads {threads} --set selfplay.games_in_flight={games_in_flight}"
            ),
        }
    }
}

impl SelfplaySpeed {
    /// Before anything is measured.
    pub(super) fn new(plan: &BenchPlan) -> Self {
        let forms = plan.player.forms();
        let selfplay = &plan.config.selfplay;
        let options = SearchOptions::strongest(&selfplay.search, selfplay.evaluations);
        let mut precisions: Vec<String> = forms
            .iter()
            .map(|form| form.precision.to_string())
            .collect();
        precisions.dedup();
        let greatest = |of: fn(&Drift) -> f64| {
            let numbers = forms.iter().map(|form| of(&form.drift));
            numbers.reduce(f64::max)
        };
        Self {
            version: env!("CARGO_PKG_VERSION"),
            evaluator: plan.evaluator.clone(),
            device: plan.devices.to_string(),
            precision: (!precisions.is_empty()).then(|| precisions.join(",")),
            value_error: greatest(|accuracy| accuracy.value_error),
            policy_divergence: greatest(|accuracy| accuracy.divergence),
            bare: bare_speeds(forms),
            threads: plan.threads,
            mode: format!("{:?}", options.mode).to_lowercase(),
            evaluations: selfplay.evaluations,
            games_in_flight: selfplay.games_in_flight,
            seconds: plan.time.as_secs_f64(),
            // Evaluators in the workers' own threads compute what they are given and nothing else.
            batch_fill: plan.devices.is_local().then_some(1.0),
            games_per_hour_is_estimated: true,
            ..Self::default()
        }
    }

    /// Compares self-play with the evaluators alone, as they were measured in turns with it.
    pub(super) fn compare(&mut self) {
        self.raw.sort_by_key(|speed| (speed.batch, speed.in_turns));
        if self.selfplay_evals_per_s.is_none() {
            return;
        }
        if let Some(speed) = self.raw.iter().find(|speed| speed.in_turns) {
            self.raw_batch = Some(speed.batch);
            self.raw_evals_per_s = Some(speed.evals_per_s);
            self.raw_evals_per_cpu_s = Some(speed.evals_per_cpu_s);
        }
        let chosen = || self.bare.iter().filter(|speed| speed.is_chosen);
        if let Some(first) = chosen().next() {
            self.raw_batch = Some(first.batch);
            self.raw_evals_per_s = Some(chosen().map(|speed| speed.evals_per_s).sum());
            self.raw_evals_per_cpu_s = None;
        }
        let ratio = |part: Option<f64>, whole: Option<f64>| {
            Some(part? / whole.filter(|&whole| whole > 0.0)?)
        };
        self.ratio = ratio(self.selfplay_evals_per_s, self.raw_evals_per_s);
        self.cpu_ratio = ratio(self.selfplay_evals_per_cpu_s, self.raw_evals_per_cpu_s);
    }
}

/// The measured batch sizes of each device that was tuned.
fn bare_speeds(forms: &[ServiceDevice]) -> Vec<BareSpeed> {
    let tuned = forms
        .iter()
        .filter_map(|form| Some((form, form.tuning.as_ref()?)));
    let speeds = tuned.flat_map(|(form, tuning)| {
        tuning.rates.iter().map(|rate| BareSpeed {
            device: form.device.to_string(),
            batch: rate.batch,
            evals_per_s: rate.evaluations_per_second,
            is_chosen: rate.batch == tuning.batch,
        })
    });
    speeds.collect()
}

impl fmt::Display for SelfplaySpeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} on {}, {} threads, mode {}, {} evaluations a turn, {} games in flight a thread",
            self.evaluator,
            self.device,
            self.threads,
            self.mode,
            self.evaluations,
            self.games_in_flight
        )?;
        if let (Some(precision), Some(value_error), Some(divergence)) =
            (&self.precision, self.value_error, self.policy_divergence)
        {
            writeln!(
                f,
                "computed in {precision}: win probabilities off by {value_error:.1e} (RMS), policies by {divergence:.1e} nats"
            )?;
        }
        writeln!(f)?;
        for [what, speed, by_cpu] in self.speeds() {
            let line = format!("{what:<22} {speed:>14} {by_cpu:>20}");
            writeln!(f, "{}", line.trim_end())?;
        }
        let is_parted = self.raw.iter().any(|speed| speed.batch > MAX_CPU_BATCH);
        if is_parted && self.precision.is_some() && self.bare.is_empty() {
            writeln!(
                f,
                "A CPU evaluates batches in parts of at most {MAX_CPU_BATCH}."
            )?;
        }
        let mean_batch = number(self.mean_batch);
        write!(f, "\nbatches     {mean_batch} evaluations on average")?;
        if let Some(fill) = self.batch_fill {
            write!(f, ", filled to {:.0}%", 100.0 * fill)?;
        }
        writeln!(f)?;
        if let Some(shares) = &self.time_shares {
            write!(f, "{shares}")?;
        }
        write!(f, "games       {} turns/s", number(self.turns_per_s))?;
        if self.games_finished == 0 {
            writeln!(f, ", and none was finished")?;
        } else {
            let about = if self.games_per_hour_is_estimated {
                "about "
            } else {
                ""
            };
            writeln!(
                f,
                ", {about}{} games/h: {} turns each in {} finished games",
                number(self.games_per_hour),
                number(self.turns_per_game),
                self.games_finished
            )?;
        }
        writeln!(
            f,
            "memory      {} MiB at most, {} after the warm-up, {} after self-play",
            number(self.peak_rss_mib),
            number(self.rss_after_warm_up_mib),
            number(self.rss_at_end_mib)
        )?;
        if let Some(Recommended { options, .. }) = &self.recommended {
            let tried = self.tried.iter();
            let tried = tried.map(|it| format!("{}: {:.0}/s", it.games_in_flight, it.evals_per_s));
            let tried = tried.collect::<Vec<_>>().join(", ");
            writeln!(
                f,
                "recommended {options}  (games in flight, young games: {tried})"
            )?;
        }
        if self.stopped {
            writeln!(f, "stopped: what is missing was not measured")?;
        }
        Ok(())
    }
}

impl SelfplaySpeed {
    /// The lines of the table of speeds.
    fn speeds(&self) -> Vec<[String; 3]> {
        let line = |what: &str, speed: String, by_cpu: String| [what.to_owned(), speed, by_cpu];
        let rate = |speed: f64| number(Some(speed));
        let ratio = |ratio: Option<f64>| ratio.map_or("-".to_owned(), |it| format!("{it:.3}"));
        let mut lines = vec![line(
            "",
            "evaluations/s".to_owned(),
            "a computed second".to_owned(),
        )];
        lines.extend(self.bare.iter().map(|bare| {
            let chosen = if bare.is_chosen { "chosen" } else { "" };
            let what = format!("bare {}, batch {}", bare.device, bare.batch);
            line(&what, rate(bare.evals_per_s), chosen.to_owned())
        }));
        lines.extend(self.raw.iter().map(|raw| {
            let kind = if raw.in_turns { "in turns," } else { "batch" };
            let what = format!("alone, {kind} {}", raw.batch);
            line(&what, rate(raw.evals_per_s), rate(raw.evals_per_cpu_s))
        }));
        let (speed, by_cpu) = (self.selfplay_evals_per_s, self.selfplay_evals_per_cpu_s);
        lines.push(line("self-play", number(speed), number(by_cpu)));
        lines.push(line("ratio", ratio(self.ratio), ratio(self.cpu_ratio)));
        lines
    }
}

impl fmt::Display for TimeShares {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |share: f64| format!("{:.1}%", 100.0 * share);
        let parts = self.worker.parts();
        let parts = parts.map(|(what, share)| format!("{what} {}", percent(share)));
        writeln!(f, "workers     {}", parts.join(", "))?;
        writeln!(f, "writer      records {}", percent(self.writer.records))?;
        for device in &self.devices {
            let (busy, batch) = (percent(device.busy), number(device.mean_batch));
            let name = &device.device;
            writeln!(f, "{name:<11} busy {busy}, {batch} rows a batch")?;
        }
        Ok(())
    }
}

/// To the nearest whole number; a dash where it is not known.
fn number(number: Option<f64>) -> String {
    number.map_or("-".to_owned(), |number| format!("{number:.0}"))
}
