//! The choice of the results that ratings come from.

use super::player::Player;
use super::results::MatchResult;
use std::collections::{BTreeMap, BTreeSet};

/// Once two networks in a row score more than this against an opponent, the next network's match against it doesn't count.
///
/// It would win nearly every game, which is little evidence, and the few losses would count too much. Bradley and Terry's model
/// gives a player 1,300 points below hardly one game of 2,000, but of 1,600 that networks of a run played against a `material` so far
/// behind, one of 80 was lost: counted, they drew all these networks together.
const ONE_SIDED: f64 = 0.9;

/// The matches, by network and opponent, that count for ratings: all but those that the last two networks' scores against the same
/// opponent predict to be [`ONE_SIDED`]. The result itself does not matter. Luck does: two lucky high scores count, and the match
/// that would have corrected them doesn't.
///
/// All matches of a network count if one of its opponents would not be linked with it otherwise: players that are linked by any
/// matches are linked by the counted ones.
pub(super) fn counted(results: &BTreeMap<(u32, Player), MatchResult>) -> BTreeSet<(u32, Player)> {
    let mut scores: BTreeMap<Player, Vec<f64>> = BTreeMap::new();
    let mut counted = BTreeSet::new();
    // In the order of the networks.
    for (&(generation, opponent), result) in results {
        let scores = scores.entry(opponent).or_default();
        let is_one_sided = match scores.as_slice() {
            [.., before, last] => before.min(*last) > ONE_SIDED,
            _ => false,
        };
        if !is_one_sided {
            counted.insert((generation, opponent));
        }
        scores.push(result.score);
    }
    let mut links = Links::default();
    for &(generation, opponent) in &counted {
        links.add(Player::Network(generation), opponent);
    }
    for &(generation, opponent) in results.keys() {
        if !links.are_linked(Player::Network(generation), opponent) {
            for (&(_, opponent), _) in of_network(results, generation) {
                links.add(Player::Network(generation), opponent);
                counted.insert((generation, opponent));
            }
        }
    }
    counted
}

/// The results of a network's own matches.
pub(super) fn of_network(
    results: &BTreeMap<(u32, Player), MatchResult>,
    generation: u32,
) -> impl Iterator<Item = (&(u32, Player), &MatchResult)> {
    results.range((generation, Player::Random)..=(generation, Player::Network(u32::MAX)))
}

/// Which players are linked, through any others.
#[derive(Debug, Default)]
struct Links {
    /// The same player for all linked ones; a player without an entry is linked with no other.
    groups: BTreeMap<Player, Player>,
}

impl Links {
    fn group(&self, player: Player) -> Player {
        self.groups.get(&player).copied().unwrap_or(player)
    }

    fn are_linked(&self, a: Player, b: Player) -> bool {
        self.group(a) == self.group(b)
    }

    fn add(&mut self, a: Player, b: Player) {
        let (group, other) = (self.group(a), self.group(b));
        for player in [a, b] {
            self.groups.entry(player).or_insert(player);
        }
        for of in self.groups.values_mut().filter(|of| **of == other) {
            *of = group;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NETWORK: fn(u32) -> Player = Player::Network;

    /// Which of these count.
    fn of(results: &[(u32, Player, f64)]) -> Vec<(u32, Player)> {
        let keyed = |&(generation, opponent, score): &(u32, Player, f64)| {
            let result = MatchResult {
                games: 20,
                unfinished: 0,
                score,
                pairs: None,
            };
            ((generation, opponent), result)
        };
        let results = results.iter().map(keyed).collect();
        counted(&results).into_iter().collect()
    }

    /// Networks that play `random` with these scores, and the one before. Which of the former count.
    fn chain(scores: &[f64]) -> Vec<u32> {
        let networks = (1..).zip(scores);
        let results: Vec<_> = networks
            .flat_map(|(network, &score)| {
                let before = (network > 1).then(|| (network, NETWORK(network - 1), 0.75));
                [Some((network, Player::Random, score)), before]
            })
            .flatten()
            .collect();
        let counted = of(&results);
        let between = |&&(_, opponent): &&(u32, Player)| opponent != Player::Random;
        assert_eq!(counted.iter().filter(between).count(), scores.len() - 1);
        let against_random = counted.iter().filter(|it| !between(it));
        against_random.map(|&(network, _)| network).collect()
    }

    #[test]
    fn matches_that_were_to_be_one_sided_do_not_count() {
        assert_eq!(chain(&[0.95, 0.91, 1.0, 0.91]), [1, 2]);
        // Their own result has no say.
        assert_eq!(chain(&[0.95, 0.91, 0.2]), [1, 2]);
        // More than nine tenths, twice.
        assert_eq!(chain(&[0.95, 0.9, 1.0, 1.0, 1.0]), [1, 2, 3, 4]);
        // A player that falls back is measured again for two networks.
        assert_eq!(chain(&[0.95, 0.95, 0.5, 0.95, 0.95, 0.95]), [1, 2, 4, 5]);
    }

    #[test]
    fn whoever_is_linked_stays_linked() {
        // A network with anchors alone keeps all of them.
        let one_sided = |network: u32, anchor: Player| (network, anchor, 0.95);
        let alone: Vec<_> = (1..=3)
            .flat_map(|network| {
                [Player::Random, Player::Material(None)].map(|anchor| one_sided(network, anchor))
            })
            .collect();
        assert_eq!(of(&alone).len(), 6);
        // Networks whose predecessors are linked with no other need what links them with the others, those after them don't.
        let mut apart: Vec<_> = (1..=2)
            .map(|network| one_sided(network, Player::Random))
            .collect();
        apart.extend([
            one_sided(8, Player::Random),
            (8, NETWORK(7), 0.75),
            one_sided(9, Player::Random),
            (9, NETWORK(8), 0.75),
        ]);
        assert_eq!(
            of(&apart),
            [
                (1, Player::Random),
                (2, Player::Random),
                (8, Player::Random),
                (8, NETWORK(7)),
                (9, NETWORK(8)),
            ]
        );
        // A new anchor alone links no player with those before.
        apart.push((10, Player::Material(None), 0.5));
        apart.push(one_sided(10, Player::Random));
        let counted = of(&apart);
        assert!(counted.contains(&(10, Player::Random)), "{counted:?}");
    }
}
