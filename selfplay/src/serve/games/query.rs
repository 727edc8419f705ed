//! Pages of games: filters and orders.

use super::entry::{GameEnd, GameEntry, GameStart, IndexedFile};
use super::scan::SELFPLAY;
use super::snapshot::Snapshot;
use arimaa::rules::Side;
use serde::de::{Deserializer, Error};
use serde::{Deserialize, Serialize};

/// The most games of a page.
const MAX_GAMES: usize = 200;

/// Which games are wanted: what `GET /api/games` takes.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct GamesQuery {
    /// Only games in which this network chose turns.
    network: Option<String>,
    winner: Option<WinnerChoice>,
    ending: Option<GameEnd>,
    min_turns: Option<u32>,
    max_turns: Option<u32>,
    start: Option<GameStart>,
    /// The least mean over a game's rows, in nats.
    min_surprise: Option<f32>,
    source: String,
    sort: Order,
    offset: usize,
    #[serde(deserialize_with = "limit")]
    limit: usize,
}

impl Default for GamesQuery {
    fn default() -> Self {
        Self {
            network: None,
            winner: None,
            ending: None,
            min_turns: None,
            max_turns: None,
            start: None,
            min_surprise: None,
            source: SELFPLAY.into(),
            sort: Order::Newest,
            offset: 0,
            limit: 50,
        }
    }
}

/// The winner that is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum WinnerChoice {
    Gold,
    Silver,
    None,
}

/// The order of a page's games; equal ones have the newest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Order {
    Newest,
    Oldest,
    /// Most turns first.
    Longest,
    /// Fewest turns first.
    Shortest,
    /// Most surprise first.
    Surprise,
}

fn limit<'de, D: Deserializer<'de>>(deserializer: D) -> Result<usize, D::Error> {
    match usize::deserialize(deserializer)? {
        limit if limit <= MAX_GAMES => Ok(limit),
        limit => Err(D::Error::custom(format!(
            "limit is {limit}, and a page has at most {MAX_GAMES} games"
        ))),
    }
}

/// The answer of `GET /api/games`.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct GamesPage {
    /// The games of the source.
    total: usize,
    /// Those that the filters leave.
    matching: usize,
    is_complete: bool,
    indexed_share: f64,
    games: Vec<GameRow>,
    problems: Vec<String>,
}

/// One game of a page.
#[derive(Debug, PartialEq, Serialize)]
struct GameRow {
    game: String,
    source: String,
    networks: Vec<String>,
    winner: Option<Side>,
    ending: GameEnd,
    turns: u32,
    start: GameStart,
    surprise: Option<f32>,
    /// Of its shard, or of its match's results: seconds since 1970.
    time: f64,
}

/// A game and the file that holds it.
type Found<'a> = (&'a IndexedFile, &'a GameEntry);

impl GamesPage {
    pub(super) fn of(snapshot: &Snapshot, query: &GamesQuery) -> Self {
        let files = snapshot.files_of(&query.source);
        let total = files.iter().map(|file| file.games.len()).sum();
        // The oldest first. A vector that grows would need twice the memory.
        let mut matching: Vec<Found> = Vec::with_capacity(total);
        for file in files {
            let is_wanted = |names: &Vec<String>| {
                let network = query.network.as_ref();
                network.is_none_or(|network| names.contains(network))
            };
            let wanted: Vec<bool> = file.networks.iter().map(is_wanted).collect();
            let of_wanted = |game: &GameEntry| wanted.get(game.networks as usize) == Some(&true);
            let games = file.games.iter();
            let games = games.filter(|game| of_wanted(game) && query.matches(game));
            matching.extend(games.map(|game| (file.as_ref(), game)));
        }
        Self {
            total,
            matching: matching.len(),
            is_complete: snapshot.is_complete,
            indexed_share: snapshot.indexed_share,
            games: query
                .page_of(&matching)
                .into_iter()
                .map(GameRow::of)
                .collect(),
            problems: snapshot.problems_of(&query.source),
        }
    }
}

impl GamesQuery {
    /// Whether all filters but that of the network leave a game.
    fn matches(&self, game: &GameEntry) -> bool {
        let winner = match game.winner {
            Some(Side::Gold) => WinnerChoice::Gold,
            Some(Side::Silver) => WinnerChoice::Silver,
            None => WinnerChoice::None,
        };
        self.winner.is_none_or(|wanted| wanted == winner)
            && self.ending.is_none_or(|wanted| wanted == game.end)
            && self.start.is_none_or(|wanted| wanted == game.start)
            && self.min_turns.is_none_or(|least| game.turns >= least)
            && self.max_turns.is_none_or(|most| game.turns <= most)
            && self
                .min_surprise
                .is_none_or(|least| game.surprise.is_some_and(|it| it >= least))
    }

    /// The games of the page in order.
    fn page_of<'a>(&self, matching: &[Found<'a>]) -> Vec<Found<'a>> {
        let (offset, limit) = (self.offset, self.limit);
        let all = matching.iter().copied();
        match self.sort {
            Order::Oldest => all.skip(offset).take(limit).collect(),
            Order::Newest => all.rev().skip(offset).take(limit).collect(),
            _ => {
                // Where a game stands counts from the newest on.
                let keys = matching.iter().rev().zip(0..);
                let keys = keys.map(|((_, game), place)| (self.key(game), place));
                let places = smallest(keys.collect(), offset, limit);
                let games = places.into_iter().filter_map(|(_, place)| {
                    let index = matching.len().checked_sub(1 + place as usize)?;
                    matching.get(index).copied()
                });
                games.collect()
            }
        }
    }

    /// The games with the smallest come first.
    fn key(&self, game: &GameEntry) -> u32 {
        match self.sort {
            Order::Shortest => game.turns,
            Order::Surprise => match game.surprise {
                // The bits of floats from 0 on are in their order.
                Some(surprise) => f32::INFINITY.to_bits() - surprise.to_bits(),
                None => u32::MAX,
            },
            Order::Longest => u32::MAX - game.turns,
            Order::Newest | Order::Oldest => 0,
        }
    }
}

/// The keys from one place of their order on, in order, without ordering all.
fn smallest(mut keys: Vec<(u32, u32)>, offset: usize, limit: usize) -> Vec<(u32, u32)> {
    if offset >= keys.len() {
        return Vec::new();
    }
    keys.select_nth_unstable(offset);
    let mut keys = keys.split_off(offset);
    if limit < keys.len() {
        keys.select_nth_unstable(limit);
        keys.truncate(limit);
    }
    keys.sort_unstable();
    keys
}

impl GameRow {
    fn of((file, game): Found) -> Self {
        Self {
            game: game.id.to_string(),
            source: file.file.source.clone(),
            networks: file.networks_of(game).to_vec(),
            winner: game.winner,
            ending: game.end,
            turns: game.turns,
            start: game.start,
            surprise: game.surprise,
            time: file.file.key.time as f64 / 1e9,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_are_those_of_the_sorted_list() {
        let keys: Vec<(u32, u32)> = (0..97).map(|place| (place * 31 % 17, place)).collect();
        let mut sorted = keys.clone();
        sorted.sort_unstable();
        for (offset, limit) in [(0, 10), (0, 97), (90, 50), (40, 0), (96, 1)] {
            let end = (offset + limit).min(97);
            let found = smallest(keys.clone(), offset, limit);
            assert_eq!(found, sorted[offset..end]);
        }
        assert!(smallest(keys, 97, 1).is_empty());
    }
}
