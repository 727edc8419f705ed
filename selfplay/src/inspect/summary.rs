//! The summary of shards: counted game by game, added over threads and shards.
//!
//! The fields are the keys of the JSON object. A mean or share of nothing is null.

use super::journals::JournalSummary;
use super::lengths::Lengths;
use super::losses;
use super::problem::Problem;
use crate::statistics::{Calibration, Mean, Share, mean};
use arimaa::rules::{Phase, Position, Reason, Side, Turn};
use engine::record::{
    Ending, EvaluatorId, FORMAT_VERSION, FrameLocation, GameId, GameRecord, Header, POLICY_TOTAL,
    ReplayedRow, ReplayedTurn, SearchKind, SearchRecord, ShardError, Start, TurnOrigin,
};
use serde::{Serialize, Serializer};
use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;

/// The summary. Sums are added in the games' order, so that the same games give the same sums to the last digit.
#[derive(Debug, Default, Serialize)]
pub(super) struct ShardSummary {
    pub(super) shards: u64,
    /// Of all shards, also damaged ones.
    pub(super) bytes: u64,
    pub(super) bytes_per_row: Option<f64>,
    /// Games that were read and replayed without a fault; only these count below. A doubled game counts twice.
    pub(super) games: u64,
    /// Turns of both sides, setups and given turns included.
    pub(super) turns: u64,
    /// Step states with a policy target.
    pub(super) rows: u64,
    /// All faults: unreadable headers and frames, games against the rules, doubled games, missing ends; damaged journals.
    pub(super) bad_frames: u64,
    /// Turns a game.
    pub(super) mean_turns: Option<f64>,
    pub(super) lengths: Option<Lengths>,
    /// Games by their number of turns.
    #[serde(skip)]
    games_by_length: BTreeMap<u64, u64>,
    pub(super) starts: Starts,
    pub(super) endings: Endings,
    /// Truncated games: they reached the turn limit.
    pub(super) unfinished: u64,
    /// Games that Gold won.
    pub(super) gold_wins: u64,
    /// Gold's share of the games with a winner.
    pub(super) gold_share: Option<f64>,
    /// Its 95% interval (Wilson).
    pub(super) gold_share_interval: Option<[f64; 2]>,
    /// Null unless they were to be counted.
    pub(super) avoidable_losses: Option<AvoidableLosses>,
    pub(super) setups: Sides<Setups>,
    pub(super) resignations: Resignations,
    pub(super) origins: Origins,
    pub(super) full_searches: Searches,
    pub(super) fast_searches: Searches,
    /// The rows of setups and of all other turns together ...
    pub(super) policy: Rows,
    /// ... and apart.
    pub(super) setup_policy: Rows,
    pub(super) play_policy: Rows,
    /// Gold's win probabilities as the searches found them, against results.
    #[serde(serialize_with = "calibration_report")]
    pub(super) search_calibration: Calibration,
    /// The same as the evaluators alone saw them, turns without a search too.
    #[serde(serialize_with = "calibration_report")]
    pub(super) network_calibration: Calibration,
    /// By name and identity.
    pub(super) evaluators: Vec<EvaluatorTotal>,
    pub(super) versions: Versions,
    pub(super) journal: JournalSummary,
    /// The faults, shard by shard in the order of the file.
    pub(super) faults: Vec<Problem>,
    /// The repairs of `--repair`.
    pub(super) repaired: Vec<Repaired>,
}

fn calibration_report<S: Serializer>(it: &Calibration, serializer: S) -> Result<S::Ok, S::Error> {
    it.report().serialize(serializer)
}

/// Games by their start.
#[derive(Debug, Default, Serialize)]
pub(super) struct Starts {
    pub(super) empty: u64,
    pub(super) fork: u64,
    pub(super) opening: u64,
    pub(super) position: u64,
}

/// Won games by their ending.
#[derive(Debug, Default, Serialize)]
pub(super) struct Endings {
    pub(super) goal: u64,
    pub(super) elimination: u64,
    pub(super) immobilization: u64,
    pub(super) resigned: u64,
    pub(super) forfeited: u64,
}

/// Won games whose loser had a last turn after which the winner could not win at once.
#[derive(Debug, Default, Clone, Copy, Serialize)]
pub(super) struct AvoidableLosses {
    pub(super) games: u64,
    /// Those of them that ended by immobilization.
    pub(super) by_immobilization: u64,
    /// Games that were won on the board, the loser's last turn being searched.
    pub(super) of: u64,
    pub(super) share: Option<f64>,
    /// Its 95% interval (Wilson).
    pub(super) share_interval: Option<[f64; 2]>,
}

/// A value for each side.
#[derive(Debug, Default, Serialize)]
pub(super) struct Sides<T> {
    pub(super) gold: T,
    pub(super) silver: T,
}

/// Setups of a side that were searched or drawn from the policy.
#[derive(Debug, Default, Serialize)]
pub(super) struct Setups {
    pub(super) turns: u64,
    /// Different ones; mirrored ones are different.
    pub(super) different: u64,
    #[serde(skip)]
    known: HashSet<Turn>,
}

/// Resignations and their errors.
#[derive(Debug, Default, Serialize)]
pub(super) struct Resignations {
    /// Games that were resigned.
    pub(super) resigned: u64,
    /// Games that were played on in spite of a resignation.
    pub(super) waived: u64,
    /// Those of them that the resigning side did not lose, ...
    pub(super) not_lost: u64,
    /// ... among them those that reached the turn limit.
    pub(super) not_lost_unfinished: u64,
    /// `not_lost` of `waived`.
    pub(super) error_rate: Option<f64>,
    /// Its 95% interval (Wilson).
    pub(super) error_rate_interval: Option<[f64; 2]>,
}

/// Turns by their origin: given, drawn from the policy, searched in full or fast.
#[derive(Debug, Default, Serialize)]
pub(super) struct Origins {
    pub(super) given: u64,
    pub(super) policy: u64,
    pub(super) full: u64,
    pub(super) fast: u64,
}

/// Means a search. Evaluations and budgets are of the searches that recorded them.
#[derive(Debug, Default, Serialize)]
pub(super) struct Searches {
    pub(super) turns: u64,
    pub(super) visits: Mean,
    pub(super) evaluations: Mean,
    pub(super) budget: Mean,
    /// The share of the searches whose recorded value is 0 or 1: a proven win, or a value within 2^-17 of it.
    pub(super) proven: Mean,
}

/// Means a row.
#[derive(Debug, Default, Serialize)]
pub(super) struct Rows {
    pub(super) rows: u64,
    /// Rows that don't count in training.
    pub(super) weightless: u64,
    pub(super) weight: Mean,
    /// Of the policy target, in nats.
    pub(super) entropy: Mean,
    /// The divergence of the target from the evaluator's policy, in nats; 0 where that was not recorded.
    pub(super) surprise: Mean,
}

/// The total of one evaluator.
#[derive(Debug, Clone, Serialize)]
pub(super) struct EvaluatorTotal {
    #[serde(flatten)]
    pub(super) evaluator: EvaluatorId,
    /// Games in which it evaluated a turn.
    pub(super) games: u64,
    /// The turns that it evaluated.
    pub(super) turns: u64,
}

/// The versions in the shards' headers.
#[derive(Debug, Default, Serialize)]
pub(super) struct Versions {
    /// Of the shard format.
    pub(super) format: Vec<Version<u32>>,
    pub(super) encoding: Vec<Version<u32>>,
    pub(super) program: Vec<Version<String>>,
    /// Digests of configurations.
    pub(super) config: Vec<Version<String>>,
}

/// One version, with its shards and games.
#[derive(Debug, Serialize)]
pub(super) struct Version<Name> {
    pub(super) version: Name,
    pub(super) shards: u64,
    pub(super) games: u64,
}

/// One shard, or some games of it.
#[derive(Default)]
pub(super) struct Inspected {
    pub(super) path: PathBuf,
    pub(super) bytes: u64,
    /// None where it can't be read: then no game of the shard can.
    pub(super) header: Option<Header>,
    /// Of the games that were read and replayed without a fault.
    pub(super) summary: ShardSummary,
    /// In the order of the file.
    pub(super) faults: Vec<ShardError>,
    /// The good games.
    pub(super) ids: Vec<(GameId, FrameLocation)>,
}

/// The repair of one damaged shard.
#[derive(Debug, Serialize)]
pub(super) struct Repaired {
    /// The damaged shard, which stays as it is.
    pub(super) file: PathBuf,
    /// The new one; none where no game could be kept.
    pub(super) written: Option<PathBuf>,
    /// The games in it.
    pub(super) kept: u64,
    /// The faults that were left out. Each but a missing end is a lost game, or several where lengths are wrong.
    pub(super) passed_over: u64,
    /// Why nothing was written.
    pub(super) reason: Option<String>,
}

impl ShardSummary {
    /// Adds shards, and computes the means and shares.
    pub(super) fn new(
        shards: &[Inspected],
        mut journal: JournalSummary,
        repaired: Vec<Repaired>,
    ) -> Self {
        let of_journal = std::mem::take(&mut journal.faults);
        let mut all = Self {
            shards: shards.len() as u64,
            journal,
            repaired,
            ..Self::default()
        };
        for shard in shards {
            all.add(&shard.summary);
            all.bytes += shard.bytes;
            all.faults.extend(shard.faults.iter().map(Problem::from));
            if let Some(header) = shard.header.clone() {
                let (versions, games) = (&mut all.versions, shard.summary.games);
                count_version(&mut versions.format, FORMAT_VERSION, games);
                count_version(&mut versions.encoding, header.encoding_version, games);
                count_version(&mut versions.program, header.program_version, games);
                count_version(&mut versions.config, header.config_digest, games);
            }
        }
        all.faults.extend(of_journal);
        all.policy.add(&all.setup_policy);
        all.policy.add(&all.play_policy);
        all.rows = all.policy.rows;
        all.bytes_per_row = mean(all.bytes as f64, all.rows);
        all.bad_frames = all.faults.len() as u64;
        all.mean_turns = mean(all.turns as f64, all.games);
        all.lengths = Lengths::new(&all.games_by_length);
        let decided = all.games - all.unfinished;
        (all.gold_share, all.gold_share_interval) = share(all.gold_wins, decided);
        for setups in [&mut all.setups.gold, &mut all.setups.silver] {
            setups.different = setups.known.len() as u64;
        }
        if let Some(it) = &mut all.avoidable_losses {
            (it.share, it.share_interval) = share(it.games, it.of);
        }
        let it = &mut all.resignations;
        it.resigned = all.endings.resigned;
        (it.error_rate, it.error_rate_interval) = share(it.not_lost, it.waived);
        all
    }

    /// Counts a game and its replayed turns.
    pub(super) fn count(&mut self, record: &GameRecord, turns: &[ReplayedTurn]) {
        self.games += 1;
        self.turns += turns.len() as u64;
        *self.games_by_length.entry(turns.len() as u64).or_default() += 1;
        *match record.start {
            Start::Empty => &mut self.starts.empty,
            Start::Fork { .. } => &mut self.starts.fork,
            Start::Opening => &mut self.starts.opening,
            Start::Position(_) => &mut self.starts.position,
        } += 1;
        self.count_ending(record);
        self.count_evaluators(record);
        let mut values = Values::default();
        for turn in turns {
            self.count_turn(turn, &mut values);
        }
        if let (Some(it), Ending::Won(outcome)) = (&mut self.avoidable_losses, record.ending) {
            let loser = outcome.winner.opponent();
            let last = turns.iter().rfind(|turn| turn.position.side() == loser);
            if last.is_some_and(|turn| turn.origin.search().is_some()) {
                let positions: Vec<Position> = turns.iter().map(|turn| turn.position).collect();
                let is_avoidable = u64::from(losses::is_avoidable(&positions, outcome));
                it.of += 1;
                it.games += is_avoidable;
                if outcome.reason == Reason::Immobilization {
                    it.by_immobilization += is_avoidable;
                }
            }
        }
        // A forfeit on time says nothing of the positions.
        let is_forfeited = matches!(record.ending, Ending::Forfeited { .. });
        if let Some(winner) = record.ending.winner().filter(|_| !is_forfeited) {
            self.search_calibration.count(&values.of_searches, winner);
            self.network_calibration.count(&values.of_networks, winner);
        }
    }

    fn count_ending(&mut self, record: &GameRecord) {
        let winner = record.ending.winner();
        self.gold_wins += u64::from(winner == Some(Side::Gold));
        *match record.ending {
            Ending::Unfinished { .. } => &mut self.unfinished,
            Ending::Resigned { .. } => &mut self.endings.resigned,
            Ending::Forfeited { .. } => &mut self.endings.forfeited,
            Ending::Won(outcome) => match outcome.reason {
                Reason::Goal => &mut self.endings.goal,
                Reason::Elimination => &mut self.endings.elimination,
                Reason::Immobilization => &mut self.endings.immobilization,
            },
        } += 1;
        if let Some(waived) = record.resignation_waived {
            let is_lost = winner.is_some_and(|winner| winner != waived.loser);
            self.resignations.waived += 1;
            self.resignations.not_lost += u64::from(!is_lost);
            self.resignations.not_lost_unfinished += u64::from(winner.is_none());
        }
    }

    fn count_evaluators(&mut self, record: &GameRecord) {
        let mut turns = vec![0; record.evaluators.len()];
        let indices = record.turns.iter().filter_map(|it| it.origin.evaluator());
        for index in indices {
            if let Some(count) = turns.get_mut(usize::from(index)) {
                *count += 1;
            }
        }
        for (evaluator, turns) in record.evaluators.iter().zip(turns) {
            if turns > 0 {
                self.add_evaluator(EvaluatorTotal {
                    evaluator: evaluator.clone(),
                    games: 1,
                    turns,
                });
            }
        }
    }

    fn add_evaluator(&mut self, new: EvaluatorTotal) {
        let all = &mut self.evaluators;
        match all.binary_search_by(|it| it.evaluator.cmp(&new.evaluator)) {
            Ok(place) => {
                all[place].games += new.games;
                all[place].turns += new.turns;
            }
            Err(place) => all.insert(place, new),
        }
    }

    fn count_turn(&mut self, turn: &ReplayedTurn, values: &mut Values) {
        match &turn.origin {
            TurnOrigin::Given => self.origins.given += 1,
            TurnOrigin::Policy { network_value, .. } => {
                self.origins.policy += 1;
                values.of_networks.push(*network_value);
            }
            TurnOrigin::Search(search) => {
                let (turns, searches) = match search.kind {
                    SearchKind::Full => (&mut self.origins.full, &mut self.full_searches),
                    SearchKind::Fast => (&mut self.origins.fast, &mut self.fast_searches),
                };
                *turns += 1;
                searches.count(search);
                values.of_searches.push(search.value);
                values.of_networks.push(search.network_value);
            }
        }
        if turn.position.phase() == Phase::Setup && turn.origin != TurnOrigin::Given {
            let setups = match turn.position.side() {
                Side::Gold => &mut self.setups.gold,
                Side::Silver => &mut self.setups.silver,
            };
            setups.turns += 1;
            setups.known.insert(turn.turn.clone());
        }
        let rows = match turn.position.phase() {
            Phase::Setup => &mut self.setup_policy,
            Phase::Play => &mut self.play_policy,
        };
        for row in &turn.rows {
            rows.count(row);
        }
    }

    /// Adds the sums of other games.
    pub(super) fn add(&mut self, other: &Self) {
        self.games += other.games;
        self.turns += other.turns;
        for (length, games) in &other.games_by_length {
            *self.games_by_length.entry(*length).or_default() += games;
        }
        self.starts.empty += other.starts.empty;
        self.starts.fork += other.starts.fork;
        self.starts.opening += other.starts.opening;
        self.starts.position += other.starts.position;
        self.endings.goal += other.endings.goal;
        self.endings.elimination += other.endings.elimination;
        self.endings.immobilization += other.endings.immobilization;
        self.endings.resigned += other.endings.resigned;
        self.endings.forfeited += other.endings.forfeited;
        self.unfinished += other.unfinished;
        self.gold_wins += other.gold_wins;
        if let Some(new) = other.avoidable_losses {
            let it = self.avoidable_losses.get_or_insert_default();
            it.games += new.games;
            it.by_immobilization += new.by_immobilization;
            it.of += new.of;
        }
        self.setups.gold.add(&other.setups.gold);
        self.setups.silver.add(&other.setups.silver);
        self.resignations.waived += other.resignations.waived;
        self.resignations.not_lost += other.resignations.not_lost;
        self.resignations.not_lost_unfinished += other.resignations.not_lost_unfinished;
        self.origins.given += other.origins.given;
        self.origins.policy += other.origins.policy;
        self.origins.full += other.origins.full;
        self.origins.fast += other.origins.fast;
        self.full_searches.add(&other.full_searches);
        self.fast_searches.add(&other.fast_searches);
        self.setup_policy.add(&other.setup_policy);
        self.play_policy.add(&other.play_policy);
        self.search_calibration.add(&other.search_calibration);
        self.network_calibration.add(&other.network_calibration);
        for total in &other.evaluators {
            self.add_evaluator(total.clone());
        }
    }
}

/// Gold's win probabilities in one game.
#[derive(Default)]
struct Values {
    of_searches: Vec<f32>,
    of_networks: Vec<f32>,
}

impl Setups {
    fn add(&mut self, other: &Self) {
        self.turns += other.turns;
        self.known.extend(other.known.iter().cloned());
    }
}

impl Searches {
    fn count(&mut self, search: &SearchRecord) {
        self.turns += 1;
        self.visits.count(search.visits.into());
        self.evaluations.count_kept(search.evaluations);
        self.budget.count_kept(search.budget);
        let is_proven = search.value == 0.0 || search.value == 1.0;
        self.proven.count(u8::from(is_proven).into());
    }

    fn add(&mut self, other: &Self) {
        self.turns += other.turns;
        self.visits.add(other.visits);
        self.evaluations.add(other.evaluations);
        self.budget.add(other.budget);
        self.proven.add(other.proven);
    }
}

impl Rows {
    fn count(&mut self, row: &ReplayedRow) {
        self.rows += 1;
        self.weightless += u64::from(row.weight == 0.0);
        self.weight.count(row.weight.into());
        self.entropy.count(entropy(row.policy));
        self.surprise.count(row.surprise.into());
    }

    fn add(&mut self, other: &Self) {
        self.rows += other.rows;
        self.weightless += other.weightless;
        self.weight.add(other.weight);
        self.entropy.add(other.entropy);
        self.surprise.add(other.surprise);
    }
}

/// Counts a shard and its games for a version; the list is in order.
fn count_version<Name: Ord>(versions: &mut Vec<Version<Name>>, version: Name, games: u64) {
    match versions.binary_search_by(|it| it.version.cmp(&version)) {
        Ok(place) => {
            versions[place].shards += 1;
            versions[place].games += games;
        }
        Err(place) => {
            let new = Version {
                version,
                shards: 1,
                games,
            };
            versions.insert(place, new);
        }
    }
}

/// A share with its 95% interval.
fn share(part: u64, whole: u64) -> (Option<f64>, Option<[f64; 2]>) {
    let share = Share { part, whole };
    (share.value(), share.interval())
}

/// The entropy of a policy target in nats: `-Σ p ln p`, which is `ln N - Σ n ln n / N` for parts `n` of `N`.
pub(super) fn entropy(policy: &[u16]) -> f64 {
    let total = f64::from(POLICY_TOTAL);
    // A part of 1 adds nothing, and most are 0.
    let parts = policy
        .iter()
        .filter(|&&part| part > 1)
        .map(|&part| f64::from(part));
    let sum: f64 = parts.map(|part| part * part.ln()).sum();
    (total.ln() - sum / total).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::record::quantize_policy;

    #[test]
    fn entropies_are_those_of_the_formula() {
        assert_eq!(entropy(&[0, POLICY_TOTAL as u16, 0]), 0.0);
        let even = quantize_policy(&[1.0; 5]).unwrap();
        assert!((entropy(&even) - 5f64.ln()).abs() < 1e-6);
        let parts = [0.5f64, 0.25, 0.25];
        let expected: f64 = parts.iter().map(|part| -part * part.ln()).sum();
        let policy = quantize_policy(&parts.map(|part| part as f32)).unwrap();
        assert!((entropy(&policy) - expected).abs() < 1e-3);
    }
}
