//! The counters of a generator, and the facts that are known from its start.

use arimaa::rules::Side;
use engine::record::{Ending, GameRecord};
use engine::run::WorkerTimes;
use network::DeviceCounters;
use serde::Serialize;
use std::path::Path;
use std::time::Duration;

/// The state of a generator. All totals are of this start of the program and never fall; of a resumed game, only what is played since
/// the start counts.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Counters {
    /// Finished games that Gold won.
    pub(crate) gold_wins: u64,
    /// Finished games that Silver won.
    pub(crate) silver_wins: u64,
    /// Truncated games: they ended at the turn limit, without a winner.
    pub(crate) unfinished: u64,
    /// Won games that ended because the other side resigned.
    pub(crate) resigned: u64,
    /// Turns of all finished games together, the setups among them.
    pub(crate) game_turns: u64,
    /// Won games that were played on in spite of a resignation, to measure its error.
    pub(crate) resignation_checks: u64,
    /// Those of them that the resigning side won.
    pub(crate) resignation_errors: u64,
    /// Truncated games that were played on in spite of a resignation.
    pub(crate) truncated_checks: u64,
    /// Games in flight.
    pub(crate) games_in_flight: u64,
    /// Turns played, those of games in flight too.
    pub(crate) turns: u64,
    /// Those of them that were searched; the others were drawn from the policy.
    pub(crate) searched_turns: u64,
    /// Rows recorded for training.
    pub(crate) rows: u64,
    /// Step states whose evaluations were taken.
    pub(crate) evaluations: u64,
    /// Batches in which the workers requested them.
    pub(crate) batches: u64,
    /// The largest mean batch of a worker's round so far, in evaluations; 0 before the first; 0 where that is not known.
    pub(crate) largest_batch: u64,
    /// The workers' time by its use.
    pub(crate) times: WorkerTimes,
    /// Totals of the evaluation service's devices; empty where the workers evaluate by themselves.
    pub(crate) devices: Vec<DeviceCounters>,
    /// Rows that wait for such a device now; none without them.
    pub(crate) rows_waiting: Option<u64>,
    /// The network that plays.
    pub(crate) network: NetworkInUse,
    /// Networks loaded since the start, the first included.
    pub(crate) networks_loaded: u64,
    /// Shards written since the start.
    pub(crate) shards: u64,
    /// Bytes of shards that are on the disk.
    pub(crate) shard_bytes: u64,
    /// Bytes of everything in the run, or in the folder of shards.
    pub(crate) disk_used: u64,
    /// Bytes that can still be written there; none where the system doesn't report it.
    pub(crate) disk_free: Option<u64>,
    /// Bytes of resident memory; none where the system doesn't report it.
    pub(crate) memory: Option<u64>,
    /// Whether it plays.
    pub(crate) state: State,
}

impl Counters {
    /// Counts a finished game.
    pub(crate) fn count(&mut self, record: &GameRecord) {
        let winner = record.ending.winner();
        match winner {
            Some(Side::Gold) => self.gold_wins += 1,
            Some(Side::Silver) => self.silver_wins += 1,
            None => self.unfinished += 1,
        }
        self.resigned += u64::from(matches!(record.ending, Ending::Resigned { .. }));
        self.game_turns += record.turns.len() as u64;
        self.rows += record.row_count();
        if let Some(waived) = record.resignation_waived {
            match winner {
                Some(winner) => {
                    self.resignation_checks += 1;
                    self.resignation_errors += u64::from(winner == waived.loser);
                }
                None => self.truncated_checks += 1,
            }
        }
    }

    /// The last lines of a generator: what the finished games add up to, and where they are.
    pub(crate) fn report(&self, shards: &Path) -> String {
        let Self {
            game_turns: turns,
            rows,
            unfinished,
            resignation_checks: decided,
            resignation_errors: errors,
            truncated_checks: truncated,
            ..
        } = self;
        let games = self.games();
        let mut report = format!(
            "{games} games, {turns} turns, {rows} rows, {unfinished} unfinished at the turn limit"
        );
        if self.resigned > 0 {
            report.push_str(&format!(", {} resigned", self.resigned));
        }
        report.push_str(&format!(": {}\n", shards.display()));
        if decided + truncated > 0 {
            let share = 100.0 * self.resignation_error_rate().unwrap_or(0.0);
            report.push_str(&format!(
                "resignation: a side would have resigned in {} games that were played out; it won {errors} of the {decided} that were decided ({share:.1}%)",
                decided + truncated
            ));
            if *truncated > 0 {
                report.push_str(&format!(", {truncated} truncated at the turn limit"));
            }
            report.push('\n');
        }
        report
    }

    /// Games that were finished.
    pub(crate) fn games(&self) -> u64 {
        self.gold_wins + self.silver_wins + self.unfinished
    }

    /// Turns a finished game.
    pub(super) fn mean_game_turns(&self) -> Option<f64> {
        ratio(self.game_turns, self.games())
    }

    /// Gold's share of the games with a winner.
    pub(super) fn gold_share(&self) -> Option<f64> {
        ratio(self.gold_wins, self.gold_wins + self.silver_wins)
    }

    /// Errors a check.
    pub(super) fn resignation_error_rate(&self) -> Option<f64> {
        ratio(self.resignation_errors, self.resignation_checks)
    }

    /// Turns that were drawn from the policy, without a search.
    pub(super) fn drawn_turns(&self) -> u64 {
        self.turns.saturating_sub(self.searched_turns)
    }

    pub(super) fn known_largest_batch(&self) -> Option<u64> {
        Some(self.largest_batch).filter(|&batch| batch > 0)
    }

    /// A mean batch as a share of the largest.
    pub(super) fn batch_fill(&self, mean_batch: Option<f64>) -> Option<f64> {
        Some(mean_batch? / self.known_largest_batch()? as f64)
    }
}

/// None where the whole is 0.
pub(super) fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// To four digits behind the point.
pub(super) fn rounded(number: f64) -> f64 {
    (number * 1e4).round() / 1e4
}

/// The evaluator.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct NetworkInUse {
    /// Its name for people: `00012`, `uniform`.
    pub(crate) name: String,
    /// The identity of its weights; none without weights.
    pub(crate) identity: Option<String>,
}

/// Whether a generator plays.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) enum State {
    /// It plays.
    #[default]
    Running,
    /// It waits until it can write to the disk.
    WaitingForDisk {
        /// Why it can't write.
        reason: String,
    },
    /// It stops.
    Stopping,
    /// It has ended: these are its last figures.
    Ended,
}

impl State {
    /// All names of states.
    pub(super) const NAMES: [&str; 4] = ["running", "waiting_for_disk", "stopping", "ended"];

    /// One of [`State::NAMES`].
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::WaitingForDisk { .. } => "waiting_for_disk",
            Self::Stopping => "stopping",
            Self::Ended => "ended",
        }
    }

    /// Why it waits.
    pub(super) fn waiting_reason(&self) -> Option<&str> {
        match self {
            Self::WaitingForDisk { reason } => Some(reason),
            Self::Running | Self::Stopping | Self::Ended => None,
        }
    }
}

/// The limits of this start of the program.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub(crate) struct Limits {
    /// Games to finish.
    pub(crate) games: Option<u64>,
    /// Hours to work.
    pub(crate) hours: Option<f64>,
    /// Bytes that the run may take on the disk.
    pub(crate) disk_bytes: Option<u64>,
    /// Bytes of memory that the program may take. The estimated time left ignores it.
    pub(crate) memory_bytes: Option<u64>,
}

impl Limits {
    /// The time limit.
    pub(super) fn duration(&self) -> Option<Duration> {
        Duration::try_from_secs_f64(self.hours? * 3_600.0).ok()
    }
}

/// Facts that are known from the start.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct About {
    /// Of the program that plays.
    pub(crate) program_version: String,
    /// The digest of the resolved configuration, as in the shards' headers.
    pub(crate) config_digest: String,
    /// Of all randomness.
    pub(crate) seed: u64,
    /// The generator's number in its run.
    pub(crate) generator: u32,
    /// The name of the worker.
    pub(crate) worker: String,
    /// The name of the machine.
    pub(crate) host: String,
    /// The devices that evaluate, as on the command line.
    pub(crate) device: String,
    /// When it ends.
    pub(crate) limits: Limits,
}
