//! What is printed of all shards together. The fields are the keys of the JSON object.

use super::counts::{Counts, Endings, Origins, Rows, Searches, Starts};
use super::read::Inspected;
use super::repair::Repaired;
use crate::statistics::{CalibrationReport, mean};
use engine::shard::{Evaluator, Header, ShardError};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Everything. Null stands wherever there is nothing to take a mean or a share of.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) shards: u64,
    /// Of all shards, the faulty ones too.
    pub(super) bytes: u64,
    pub(super) bytes_per_row: Option<f64>,
    /// Games that were read and replayed without a fault; only these count below. One that is there twice counts twice.
    pub(super) games: u64,
    /// Turns of both sides, setups and given turns included.
    pub(super) turns: u64,
    /// Step states with a policy target.
    pub(super) rows: u64,
    /// Everything that was wrong: unreadable headers and frames, games that break the rules or are there twice, missing ends.
    pub(super) bad_frames: u64,
    /// Turns a game.
    pub(super) mean_turns: Option<f64>,
    pub(super) lengths: Option<Lengths>,
    pub(super) starts: Starts,
    /// The games that someone won, by the way.
    pub(super) endings: Endings,
    /// Games that stopped at the turn limit.
    pub(super) unfinished: u64,
    /// Games that Gold won.
    pub(super) gold_wins: u64,
    /// Gold's share of the games that someone won.
    pub(super) gold_share: Option<f64>,
    /// Its 95% interval (Wilson).
    pub(super) gold_share_interval: Option<[f64; 2]>,
    pub(super) resignations: Resignations,
    /// Turns by how they were chosen: given, drawn from the policy, searched in full or fast.
    pub(super) origins: Origins,
    pub(super) full_searches: SearchMeans,
    pub(super) fast_searches: SearchMeans,
    /// The rows of setups and of all other turns together ...
    pub(super) policy: RowMeans,
    /// ... and apart.
    pub(super) setup_policy: RowMeans,
    pub(super) play_policy: RowMeans,
    /// Gold's win probabilities as the searches found them, against results.
    pub(super) search_calibration: CalibrationReport,
    /// The same as the evaluators alone saw them, turns without a search too.
    pub(super) network_calibration: CalibrationReport,
    pub(super) evaluators: Vec<EvaluatorTotal>,
    pub(super) versions: Versions,
    /// What was wrong, shard by shard in the order of the file.
    pub(super) faults: Vec<Fault>,
    /// What `--repair` did.
    pub(super) repaired: Vec<Repaired>,
}

/// Turns a game. A percentile is the smallest length that at least so many of the games don't exceed.
#[derive(Debug, Serialize)]
pub(super) struct Lengths {
    pub(super) p10: u64,
    pub(super) median: u64,
    pub(super) p90: u64,
    pub(super) longest: u64,
    /// At most twelve ranges of equal width, from the first to the last that has a game.
    pub(super) distribution: Vec<LengthRange>,
}

/// The games from one length to another, both included.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct LengthRange {
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) games: u64,
}

/// How often sides gave up, and how often that would have been wrong.
#[derive(Debug, Serialize)]
pub(super) struct Resignations {
    /// Games that were resigned.
    pub(super) resigned: u64,
    /// Games that were played on where they would have been.
    pub(super) waived: u64,
    /// Those of them that the side did not lose after all, ...
    pub(super) not_lost: u64,
    /// ... among them those that stopped at the turn limit.
    pub(super) not_lost_unfinished: u64,
    /// `not_lost` of `waived`.
    pub(super) error_rate: Option<f64>,
    /// Its 95% interval (Wilson).
    pub(super) error_rate_interval: Option<[f64; 2]>,
}

/// Means a search. Evaluations and budgets are those of the searches for which they were kept.
#[derive(Debug, Serialize)]
pub(super) struct SearchMeans {
    pub(super) turns: u64,
    pub(super) visits: Option<f64>,
    pub(super) evaluations: Option<f64>,
    pub(super) budget: Option<f64>,
    /// The share of the searches whose value is 0 or 1 as it was kept: they proved who wins, or were as sure as 1 - 2^-17.
    pub(super) proven: Option<f64>,
}

/// Means a row.
#[derive(Debug, Serialize)]
pub(super) struct RowMeans {
    pub(super) rows: u64,
    /// Rows that don't count in training.
    pub(super) weightless: u64,
    pub(super) weight: Option<f64>,
    /// Of the policy target, in nats.
    pub(super) entropy: Option<f64>,
    /// How far the target is from the evaluator's policy, in nats; 0 where that was not kept.
    pub(super) surprise: Option<f64>,
}

/// What one evaluator had a hand in.
#[derive(Debug, Serialize)]
pub(super) struct EvaluatorTotal {
    #[serde(flatten)]
    pub(super) evaluator: Evaluator,
    /// Games in which it was asked for a turn.
    pub(super) games: u64,
    /// The turns that it was asked for.
    pub(super) turns: u64,
}

/// What the shards were made by.
#[derive(Debug, Serialize)]
pub(super) struct Versions {
    /// Of the shard format.
    pub(super) format: Vec<Version<u32>>,
    pub(super) encoding: Vec<Version<u32>>,
    pub(super) program: Vec<Version<String>>,
    /// Digests of configurations.
    pub(super) config: Vec<Version<String>>,
}

/// One version, and what it made.
#[derive(Debug, Serialize)]
pub(super) struct Version<Name> {
    pub(super) version: Name,
    pub(super) shards: u64,
    pub(super) games: u64,
}

/// One fault.
#[derive(Debug, Serialize)]
pub(super) struct Fault {
    pub(super) file: PathBuf,
    /// Which frame, where it is one: 0 is the header, games count from 1.
    pub(super) frame: Option<u64>,
    /// The byte of the file where what is at fault begins.
    pub(super) offset: u64,
    pub(super) reason: String,
}

impl From<&ShardError> for Fault {
    fn from(error: &ShardError) -> Self {
        Self {
            file: error.path.clone(),
            frame: error.frame,
            offset: error.offset,
            reason: error.fault.to_string(),
        }
    }
}

impl Report {
    pub(super) fn new(shards: &[Inspected], repaired: Vec<Repaired>) -> Self {
        let mut counts = Counts::default();
        for shard in shards {
            counts.add(&shard.counts);
        }
        let rows = counts.setup_rows.and(&counts.play_rows);
        let bytes = shards.iter().map(|shard| shard.bytes).sum();
        let faults: Vec<Fault> = shards
            .iter()
            .flat_map(|shard| &shard.faults)
            .map(Fault::from)
            .collect();
        Self {
            shards: shards.len() as u64,
            bytes,
            bytes_per_row: mean(bytes as f64, rows.rows),
            games: counts.games,
            turns: counts.turns,
            rows: rows.rows,
            bad_frames: faults.len() as u64,
            mean_turns: mean(counts.turns as f64, counts.games),
            lengths: Lengths::new(&counts.lengths),
            starts: counts.starts,
            endings: counts.endings,
            unfinished: counts.unfinished,
            gold_wins: counts.gold.part,
            gold_share: counts.gold.value(),
            gold_share_interval: counts.gold.interval(),
            resignations: Resignations::new(&counts),
            origins: counts.origins,
            full_searches: SearchMeans::new(&counts.full),
            fast_searches: SearchMeans::new(&counts.fast),
            policy: RowMeans::new(&rows),
            setup_policy: RowMeans::new(&counts.setup_rows),
            play_policy: RowMeans::new(&counts.play_rows),
            search_calibration: counts.search_values.report(),
            network_calibration: counts.network_values.report(),
            evaluators: counts
                .evaluators
                .into_iter()
                .map(|(evaluator, judged)| EvaluatorTotal {
                    evaluator,
                    games: judged.games,
                    turns: judged.turns,
                })
                .collect(),
            versions: Versions::new(shards),
            faults,
            repaired,
        }
    }
}

impl Lengths {
    fn new(games: &BTreeMap<u64, u64>) -> Option<Self> {
        let count: u64 = games.values().sum();
        let longest = *games.keys().next_back()?;
        let percentile = |hundredths: u64| {
            let wanted = (count * hundredths).div_ceil(100);
            let mut so_far = 0;
            let reached = games.iter().find(|&(_, games)| {
                so_far += games;
                so_far >= wanted
            });
            reached.map_or(longest, |(&length, _)| length)
        };
        Some(Self {
            p10: percentile(10),
            median: percentile(50),
            p90: percentile(90),
            longest,
            distribution: distribution(games, longest),
        })
    }
}

/// The games by ranges of length.
fn distribution(games: &BTreeMap<u64, u64>, longest: u64) -> Vec<LengthRange> {
    let widths = (0..).flat_map(|power| [1, 2, 5].map(|digit| digit * 10u64.pow(power)));
    // No game is longer than a frame has bytes.
    let width = widths
        .take(30)
        .find(|width| longest / width < 12)
        .unwrap_or(longest + 1);
    let first = games.keys().next().map_or(0, |length| length / width);
    (first..=longest / width)
        .map(|range| {
            let (from, to) = (range * width, (range + 1) * width - 1);
            LengthRange {
                from,
                to,
                games: games.range(from..=to).map(|(_, games)| games).sum(),
            }
        })
        .collect()
}

impl Resignations {
    fn new(counts: &Counts) -> Self {
        Self {
            resigned: counts.endings.resigned,
            waived: counts.waived.whole,
            not_lost: counts.waived.part,
            not_lost_unfinished: counts.waived_unfinished,
            error_rate: counts.waived.value(),
            error_rate_interval: counts.waived.interval(),
        }
    }
}

impl SearchMeans {
    fn new(searches: &Searches) -> Self {
        let mean_of_kept = |(sum, kept): (u64, u64)| mean(sum as f64, kept);
        Self {
            turns: searches.turns,
            visits: mean(searches.visits as f64, searches.turns),
            evaluations: mean_of_kept(searches.evaluations),
            budget: mean_of_kept(searches.budgets),
            proven: mean(searches.proven as f64, searches.turns),
        }
    }
}

impl RowMeans {
    fn new(rows: &Rows) -> Self {
        Self {
            rows: rows.rows,
            weightless: rows.weightless,
            weight: mean(rows.weights, rows.rows),
            entropy: mean(rows.entropies, rows.rows),
            surprise: mean(rows.surprises, rows.rows),
        }
    }
}

impl Versions {
    /// Those that the headers name.
    fn new(shards: &[Inspected]) -> Self {
        fn by<Name: Ord>(
            shards: &[Inspected],
            name: impl Fn(&Inspected) -> Option<Name>,
        ) -> Vec<Version<Name>> {
            let mut counts: BTreeMap<Name, (u64, u64)> = BTreeMap::new();
            for shard in shards {
                if let Some(name) = name(shard) {
                    let count = counts.entry(name).or_default();
                    count.0 += 1;
                    count.1 += shard.counts.games;
                }
            }
            let version = |(version, (shards, games))| Version {
                version,
                shards,
                games,
            };
            counts.into_iter().map(version).collect()
        }
        fn header(shard: &Inspected) -> Option<&Header> {
            shard.header.as_ref().map(|(_, header)| header)
        }
        Self {
            format: by(shards, |shard| {
                shard.header.as_ref().map(|(format, _)| *format)
            }),
            encoding: by(shards, |shard| Some(header(shard)?.encoding_version)),
            program: by(shards, |shard| Some(header(shard)?.program_version.clone())),
            config: by(shards, |shard| Some(header(shard)?.config_digest.clone())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_lengths_that_there_are() {
        let games: BTreeMap<u64, u64> = (1..=10).map(|length| (length * 10, 1)).collect();
        let lengths = Lengths::new(&games).unwrap();
        let found = (lengths.p10, lengths.median, lengths.p90, lengths.longest);
        assert_eq!(found, (10, 50, 90, 100));
        let one = Lengths::new(&BTreeMap::from([(7, 3)])).unwrap();
        assert_eq!((one.p10, one.median, one.p90, one.longest), (7, 7, 7, 7));
        assert!(Lengths::new(&BTreeMap::new()).is_none());
    }

    #[test]
    fn ranges_are_few_and_hold_every_game() {
        for longest in [0, 1, 11, 12, 119, 120, 5_000, 16 << 20] {
            let games = BTreeMap::from([(longest / 3, 2), (longest, 1)]);
            let ranges = distribution(&games, longest);
            assert!((1..=12).contains(&ranges.len()), "{longest}: {ranges:?}");
            let counted: u64 = ranges.iter().map(|range| range.games).sum();
            assert_eq!(counted, games.values().sum::<u64>());
            assert!(ranges[0].games > 0 && ranges[ranges.len() - 1].games > 0);
        }
        let games = BTreeMap::from([(19, 1), (20, 1), (119, 1)]);
        let first = LengthRange {
            from: 10,
            to: 19,
            games: 1,
        };
        assert_eq!(distribution(&games, 119)[0], first);
    }
}
