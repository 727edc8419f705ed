//! The games of each network in numbers, and the games to show.

use super::entry::{GameEnd, IndexedFile};
use super::scan::SHOW;
use arimaa::rules::Side;
use engine::run::generation_of;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A network's name; the order has those without a generation first, then generations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Network<'a> {
    generation: Option<u32>,
    name: &'a str,
}

impl<'a> Network<'a> {
    fn new(name: &'a str) -> Self {
        Self {
            generation: generation_of(name),
            name,
        }
    }
}

/// Self-play's games by network, a column for each number. A game counts for each network that chose turns of it.
#[derive(Debug, Default, PartialEq, Serialize)]
pub(crate) struct GenerationColumns {
    network: Vec<String>,
    /// None for `uniform` and others, which come first.
    generation: Vec<Option<u32>>,
    games: Vec<u64>,
    mean_game_turns: Vec<f64>,
    unfinished_share: Vec<f64>,
    /// Of the games with a winner.
    gold_share: Vec<Option<f64>>,
    goal_share: Vec<f64>,
    elimination_share: Vec<f64>,
    immobilization_share: Vec<f64>,
}

/// The sums of a network's games.
#[derive(Default)]
struct Totals {
    games: u64,
    turns: u64,
    won: u64,
    won_by_gold: u64,
    goal: u64,
    elimination: u64,
    immobilization: u64,
}

impl GenerationColumns {
    pub(super) fn of(files: &[Arc<IndexedFile>]) -> Self {
        let mut totals: BTreeMap<Network, Totals> = BTreeMap::new();
        for file in files {
            for (names, of_set) in file.networks.iter().zip(totals_of_sets(file)) {
                for name in names {
                    totals.entry(Network::new(name)).or_default().add(&of_set);
                }
            }
        }
        let mut columns = Self::default();
        for (network, totals) in &totals {
            columns.push(network, totals);
        }
        columns
    }

    fn push(&mut self, network: &Network, totals: &Totals) {
        let share = |part: u64, of: u64| part as f64 / of as f64;
        let of_all = |part| share(part, totals.games);
        self.network.push(network.name.to_owned());
        self.generation.push(network.generation);
        self.games.push(totals.games);
        self.mean_game_turns.push(share(totals.turns, totals.games));
        self.unfinished_share
            .push(of_all(totals.games - totals.won));
        let by_gold = (totals.won > 0).then(|| share(totals.won_by_gold, totals.won));
        self.gold_share.push(by_gold);
        self.goal_share.push(of_all(totals.goal));
        self.elimination_share.push(of_all(totals.elimination));
        self.immobilization_share
            .push(of_all(totals.immobilization));
    }
}

/// The sums of a file's games for each of its sets of networks.
fn totals_of_sets(file: &IndexedFile) -> Vec<Totals> {
    let mut totals: Vec<Totals> = file.networks.iter().map(|_| Totals::default()).collect();
    for game in &file.games {
        let Some(it) = totals.get_mut(game.networks as usize) else {
            continue;
        };
        it.games += 1;
        it.turns += u64::from(game.turns);
        it.won += u64::from(game.winner.is_some());
        it.won_by_gold += u64::from(game.winner == Some(Side::Gold));
        it.goal += u64::from(game.end == GameEnd::Goal);
        it.elimination += u64::from(game.end == GameEnd::Elimination);
        it.immobilization += u64::from(game.end == GameEnd::Immobilization);
    }
    totals
}

impl Totals {
    fn add(&mut self, other: &Self) {
        self.games += other.games;
        self.turns += other.turns;
        self.won += other.won;
        self.won_by_gold += other.won_by_gold;
        self.goal += other.goal;
        self.elimination += other.elimination;
        self.immobilization += other.immobilization;
    }
}

/// The answer of `GET /api/show-games`.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct ShowGames {
    games: Vec<ShowGame>,
}

/// A network's game to show.
#[derive(Debug, PartialEq, Serialize)]
struct ShowGame {
    network: String,
    game: String,
    source: &'static str,
}

impl ShowGames {
    /// The newest game of each network, in the order of the networks.
    pub(super) fn of(files: &[Arc<IndexedFile>]) -> Self {
        let mut known: BTreeSet<Network> = BTreeSet::new();
        let mut games = Vec::new();
        for file in files.iter().rev() {
            for game in file.games.iter().rev() {
                for name in file.networks_of(game) {
                    let network = Network::new(name);
                    if known.insert(network) {
                        games.push((network, game.id));
                    }
                }
            }
        }
        games.sort_unstable();
        let games = games.into_iter().map(|(network, id)| ShowGame {
            network: network.name.to_owned(),
            game: id.to_string(),
            source: SHOW,
        });
        Self {
            games: games.collect(),
        }
    }
}
