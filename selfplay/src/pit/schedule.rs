//! The players of each game of a match.

use arimaa::rules::Side;
use serde::{Deserialize, Serialize};

/// Which players meet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Schedule {
    /// Each player meets each other one
    #[default]
    RoundRobin,
    /// The first player meets each of the others
    FirstAgainstOthers,
}

impl Schedule {
    /// The pairings, by the players' numbers.
    pub(super) fn pairings(self, players: usize) -> Vec<[usize; 2]> {
        let all = (0..players).flat_map(|a| (a + 1..players).map(move |b| [a, b]));
        match self {
            Self::RoundRobin => all.collect(),
            Self::FirstAgainstOthers => all.filter(|[a, _]| *a == 0).collect(),
        }
    }
}

/// The games of a match by their numbers. Games 2k and 2k + 1 are a pair: the same two players from the same opening, with colours
/// swapped. The pairings take turns pair by pair, so that they are all at the same stage, and a longer match begins with the games
/// of a shorter one.
#[derive(Debug, Clone)]
pub(crate) struct Games {
    /// The pairings, by the players' numbers.
    pub(super) pairings: Vec<[usize; 2]>,
    /// Pairs of games of each pairing.
    pub(super) pairs: u64,
}

/// A game of a match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fixture {
    /// From 0.
    pub(super) number: u64,
    /// The pairing's place in the list.
    pub(super) pairing: usize,
    /// The pairing's players, the first of whom has Gold in the first game of a pair.
    pub(super) players: [usize; 2],
    /// Which pair of the pairing it is in, from 0: the opening's number.
    pub(super) pair: u64,
}

impl Games {
    pub(crate) fn new(schedule: Schedule, players: usize, games: u64) -> Self {
        Self {
            pairings: schedule.pairings(players),
            pairs: games / 2,
        }
    }

    /// Games of all pairings.
    pub(crate) fn count(&self) -> u64 {
        2 * self.pairs * self.pairings.len() as u64
    }

    /// Game `number`, if the match has so many.
    pub(super) fn get(&self, number: u64) -> Option<Fixture> {
        let pairings = self.pairings.len() as u64;
        let pair = number / 2;
        let pairing = pair.checked_rem(pairings)? as usize;
        (number < self.count()).then(|| Fixture {
            number,
            pairing,
            players: self.pairings[pairing],
            pair: pair / pairings,
        })
    }

    /// The numbers of the two games of pair `pair` of a pairing.
    pub(super) fn of_pair(&self, pairing: usize, pair: u64) -> [u64; 2] {
        let first = 2 * (pair * self.pairings.len() as u64 + pairing as u64);
        [first, first + 1]
    }
}

impl Fixture {
    /// The colour of the pairing's first player.
    pub(super) fn first_has(&self) -> Side {
        if self.number.is_multiple_of(2) {
            Side::Gold
        } else {
            Side::Silver
        }
    }

    /// The players of Gold and of Silver.
    pub(super) fn by_colour(&self) -> [usize; 2] {
        let [first, second] = self.players;
        match self.first_has() {
            Side::Gold => [first, second],
            Side::Silver => [second, first],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_players_meet_or_the_first_meets_the_others() {
        let pairings = Schedule::RoundRobin.pairings(4);
        assert_eq!(pairings, [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]]);
        let pairings = Schedule::FirstAgainstOthers.pairings(4);
        assert_eq!(pairings, [[0, 1], [0, 2], [0, 3]]);
    }

    #[test]
    fn pairs_swap_colours_and_pairings_take_turns() {
        let games = Games::new(Schedule::RoundRobin, 3, 4);
        assert_eq!(games.count(), 12);
        let all: Vec<Fixture> = (0..12).filter_map(|number| games.get(number)).collect();
        assert_eq!(games.get(12), None);
        for pair in all.chunks(2) {
            let [one, other] = [pair[0], pair[1]];
            assert_eq!((one.players, one.pair), (other.players, other.pair));
            let [gold, silver] = one.by_colour();
            assert_eq!(other.by_colour(), [silver, gold]);
            assert_eq!([gold, silver], one.players, "the first begins with Gold");
            assert_eq!(
                games.of_pair(one.pairing, one.pair),
                [one.number, other.number]
            );
        }
        let pairings: Vec<_> = all.iter().step_by(2).map(|game| game.pairing).collect();
        assert_eq!(pairings, [0, 1, 2, 0, 1, 2]);
        let longer = Games::new(Schedule::RoundRobin, 3, 8);
        assert!((0..12).all(|number| longer.get(number) == games.get(number)));
    }
}
