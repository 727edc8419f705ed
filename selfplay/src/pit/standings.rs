//! Scores and ratings from the games of a match, during it or at its end.

use super::external_engine::FaultKind;
use super::game::Usage;
use super::result::{End, GameSummary};
use super::schedule::Games;
use super::sprt::SequentialTest;
use engine::ratings::{EloInterval, GameResult, PairCounts, Pairs, Rating, fit_pairs};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// The results of a match's games, as they come in.
#[derive(Debug)]
pub(super) struct Results {
    games: Games,
    /// By game.
    over: Vec<Option<GameSummary>>,
    test: Option<SequentialTest>,
}

impl Results {
    /// The results with the known games of a match.
    pub(super) fn new(
        games: Games,
        known: BTreeMap<u64, GameSummary>,
        test: Option<SequentialTest>,
    ) -> Self {
        let mut over = vec![None; games.count() as usize];
        for (number, summary) in known {
            if let Some(slot) = over.get_mut(number as usize) {
                *slot = Some(summary);
            }
        }
        let mut results = Self { games, over, test };
        results.count();
        results
    }

    /// Adds a game that is over.
    pub(super) fn add(&mut self, summary: GameSummary) {
        if let Some(slot) = self.over.get_mut(summary.game as usize) {
            *slot = Some(summary);
        }
        self.count();
    }

    fn count(&mut self) {
        let Self { games, over, test } = self;
        if let Some(test) = test {
            test.count(|pair| {
                pair_of(games, over, 0, pair).map(|pair| pair.map(|game| game.result))
            });
        }
    }

    /// The games of the match.
    pub(super) fn games(&self) -> &Games {
        &self.games
    }

    /// The numbers of the games that are not over yet, in order.
    pub(super) fn missing(&self) -> Vec<u64> {
        let numbers = (0..).zip(&self.over);
        numbers
            .filter(|(_, over)| over.is_none())
            .map(|(number, _)| number)
            .collect()
    }

    /// Whether a sequential test is decided: no more games are needed.
    pub(super) fn is_decided(&self) -> bool {
        self.test.as_ref().is_some_and(SequentialTest::is_decided)
    }

    /// The sequential test, if there is one.
    pub(super) fn test(&self) -> Option<&SequentialTest> {
        self.test.as_ref()
    }

    /// The games that are over.
    pub(super) fn played(&self) -> usize {
        self.over.iter().flatten().count()
    }

    /// The pairs of a pairing that count: both games are over, and the sequential test, if there is one, has counted them.
    fn pairs(&self, pairing: usize) -> impl Iterator<Item = [&GameSummary; 2]> {
        let counted = self.test.as_ref().map(SequentialTest::pairs);
        let pairs = counted.unwrap_or(self.games.pairs).min(self.games.pairs);
        (0..pairs).filter_map(move |pair| pair_of(&self.games, &self.over, pairing, pair))
    }

    /// The games that count.
    pub(super) fn counted(&self) -> impl Iterator<Item = &GameSummary> {
        (0..self.games.pairings.len()).flat_map(|pairing| self.pairs(pairing).flatten())
    }

    /// The results of the pairs that count.
    fn results(&self, pairing: usize) -> impl Iterator<Item = [GameResult; 2]> {
        let pairs = self.pairs(pairing);
        pairs.map(|pair| pair.map(|game| game.result))
    }

    /// The score of a pairing.
    pub(super) fn score(&self, pairing: usize) -> Score {
        Score::of_pairs(self.results(pairing))
    }

    /// The pairings with their scores.
    pub(super) fn scores(&self) -> Vec<([usize; 2], Score)> {
        let pairings = self.games.pairings.iter().enumerate();
        pairings
            .map(|(pairing, players)| (*players, self.score(pairing)))
            .collect()
    }

    /// The ratings of all players that have played, fitted over all games; the first player has 0.
    pub(super) fn ratings(&self) -> BTreeMap<usize, Rating> {
        let pairings = self.games.pairings.iter().enumerate();
        let matches = pairings.map(|(pairing, &[a, b])| Pairs {
            a,
            b,
            counts: self.results(pairing).collect(),
        });
        fit_pairs(&matches.collect::<Vec<_>>(), 0)
    }

    /// By player: the usage in the games that count, and the faults by which it lost some of them. A resignation is no fault.
    pub(super) fn by_player(&self, players: usize) -> Vec<(Usage, BTreeMap<End, u64>)> {
        let mut totals = vec![<(Usage, BTreeMap<End, u64>)>::default(); players];
        for game in self.counted() {
            let Some(fixture) = self.games.get(game.game) else {
                continue;
            };
            for (player, used) in fixture.players.into_iter().zip(game.usage) {
                totals[player].0.add(used);
            }
            if is_fault(game) {
                let loser = fixture.players[usize::from(game.result == GameResult::Win)];
                *totals[loser].1.entry(game.reason).or_default() += 1;
            }
        }
        totals
    }

    /// The first game that counts and was lost other than by the rules.
    pub(super) fn first_fault(&self) -> Option<FirstFault> {
        let faults = self.counted().filter(|game| is_fault(game));
        let faults = faults.filter_map(|game| {
            let (game, reason) = (game.game, game.fault.clone()?);
            Some(FirstFault { game, reason })
        });
        faults.min_by_key(|fault| fault.game)
    }

    /// How the games that count ended.
    pub(super) fn ends(&self) -> BTreeMap<End, u64> {
        let mut ends = BTreeMap::new();
        for game in self.counted() {
            *ends.entry(game.reason).or_default() += 1;
        }
        ends
    }

    /// The number of games that count and are no copy of another of the same players with the same colours.
    pub(super) fn distinct(&self) -> usize {
        let games = self.counted().filter_map(|game| {
            let fixture = self.games.get(game.game)?;
            Some((fixture.by_colour(), game.turns_hash.as_str()))
        });
        games.collect::<BTreeSet<_>>().len()
    }
}

/// Whether a game was lost in a way that says little about strength.
fn is_fault(game: &GameSummary) -> bool {
    matches!(game.reason, End::Fault(kind) if kind != FaultKind::Resignation)
}

/// The two games of a pair, if both are over.
fn pair_of<'a>(
    games: &Games,
    over: &'a [Option<GameSummary>],
    pairing: usize,
    pair: u64,
) -> Option<[&'a GameSummary; 2]> {
    let [first, second] = games.of_pair(pairing, pair);
    let game = |number: u64| over.get(number as usize)?.as_ref();
    Some([game(first)?, game(second)?])
}

/// A game that was lost other than by the rules.
#[derive(Debug, Serialize)]
pub(super) struct FirstFault {
    /// Its number in the match.
    pub(super) game: u64,
    /// The fault, with the engine's last lines.
    pub(super) reason: String,
}

/// The score of two players and their Elo difference.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct Score {
    /// Games that count: whole pairs.
    pub(super) games: u64,
    /// Games that the first player won.
    pub(super) wins_a: u64,
    /// Games that it lost.
    pub(super) losses_a: u64,
    /// Games truncated at the turn limit.
    pub(super) unfinished: u64,
    /// Pairs by the first player's points in them: 0, ½, 1, 1½ and 2.
    pub(super) pairs: [u64; 5],
    /// Its points a game, 0 to 1.
    pub(super) score: f64,
    /// The Elo difference of the first player to the second.
    pub(super) elo: f64,
    /// The lower end of the Elo difference's 95% interval.
    pub(super) elo_low: f64,
    /// Its upper end.
    pub(super) elo_high: f64,
    /// The likelihood that it is the stronger one.
    pub(super) los: f64,
}

impl Score {
    fn of_pairs(pairs: impl Iterator<Item = [GameResult; 2]>) -> Self {
        let mut counts = PairCounts::default();
        let (mut wins_a, mut losses_a, mut unfinished) = (0, 0, 0);
        for pair in pairs {
            counts.add(pair);
            for result in pair {
                match result {
                    GameResult::Win => wins_a += 1,
                    GameResult::Loss => losses_a += 1,
                    GameResult::Unfinished => unfinished += 1,
                }
            }
        }
        let EloInterval { elo, low, high } = counts.elo();
        Self {
            games: counts.games(),
            wins_a,
            losses_a,
            unfinished,
            pairs: counts.into(),
            score: counts.score(),
            elo,
            elo_low: low,
            elo_high: high,
            los: counts.likelihood_of_superiority(),
        }
    }
}

/// Elo in whole points. A value just below 0 is `+0`.
pub(super) fn in_whole(elo: f64) -> String {
    // The sum of -0 and 0 is 0.
    format!("{:+.0}", elo.round() + 0.0)
}

impl fmt::Display for Score {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            games,
            wins_a,
            losses_a,
            score,
            elo,
            elo_low,
            elo_high,
            ..
        } = self;
        let [elo, low, high] = [*elo, *elo_low, *elo_high].map(in_whole);
        write!(
            f,
            "{wins_a} won, {losses_a} lost of {games}: {:.1}%, Elo {elo} [{low}, {high}]",
            100.0 * score
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elo_has_a_sign_and_zero_has_only_one() {
        let shown = [-12.5, -0.4, 0.0, 0.4, f64::INFINITY].map(in_whole);
        assert_eq!(shown, ["-13", "+0", "+0", "+0", "+inf"]);
    }
}
