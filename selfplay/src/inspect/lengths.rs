//! The lengths of games.

use serde::Serialize;
use std::collections::BTreeMap;

/// Turns a game. A percentile is the smallest length that at least that share of the games doesn't exceed.
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

impl Lengths {
    /// From the games by their number of turns; none without a game.
    pub(super) fn new(games: &BTreeMap<u64, u64>) -> Option<Self> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_lengths_of_games() {
        let games: BTreeMap<u64, u64> = (1..=10).map(|length| (length * 10, 1)).collect();
        let lengths = Lengths::new(&games).unwrap();
        let found = (lengths.p10, lengths.median, lengths.p90, lengths.longest);
        assert_eq!(found, (10, 50, 90, 100));
        let one = Lengths::new(&BTreeMap::from([(7, 3)])).unwrap();
        assert_eq!((one.p10, one.median, one.p90, one.longest), (7, 7, 7, 7));
        assert!(Lengths::new(&BTreeMap::new()).is_none());
    }

    #[test]
    fn ranges_are_few_and_cover_all_games() {
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
