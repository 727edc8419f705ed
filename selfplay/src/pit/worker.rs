//! A worker of a match: a thread with its own evaluators and games.

use super::external_engine::{EnginePlayer, FaultKind};
use super::game::{PitGame, Usage};
use super::opening::Openings;
use super::player::{LoadedPlayer, PlayerKind};
use super::referee::TurnSource;
use super::result::GameSummary;
use super::schedule::Games;
use crate::worker::batch::{Batcher, Cost};
use anyhow::{Result, ensure};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

/// The longest time that finished games are held back. Each message wakes the receiving thread, which on a busy machine costs the
/// worker its place on the core.
const HOLD: Duration = Duration::from_millis(50);

/// What all workers share.
#[derive(Debug)]
pub(super) struct MatchTask {
    pub(super) players: Vec<LoadedPlayer>,
    /// The players' names in records.
    pub(super) labels: Vec<String>,
    pub(super) games: Games,
    pub(super) openings: Openings,
    pub(super) max_turns: usize,
    pub(super) seed: u64,
    pub(super) games_in_flight: usize,
    /// The games to play, in order.
    pub(super) to_play: Vec<u64>,
    /// The number of these that are begun.
    pub(super) begun: AtomicUsize,
    pub(super) stop: Arc<AtomicBool>,
    /// By player: games in a row in which it failed before its first turn. Only external engines can.
    pub(super) failures: Vec<AtomicU32>,
}

/// The match ends after so many games in a row in which an engine failed before its first turn.
const MAX_FAILURES: u32 = 3;

/// A game that is over.
#[derive(Debug)]
pub(super) struct Finished {
    pub(super) summary: GameSummary,
    pub(super) record: String,
}

/// The result of a worker.
#[derive(Debug)]
pub(super) struct Unfinished {
    pub(super) times: WorkTimes,
    /// Games that an external engine lost before its first turn, without a turn since. They count unless another worker finds that the
    /// engine can't play at all.
    pub(super) doubtful: Vec<Finished>,
}

/// The workers' time while they had games.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct WorkTimes {
    /// All of it.
    pub(super) total: Duration,
    /// The players' part: searching, evaluating and waiting for it, drawing turns.
    pub(super) players: Duration,
}

impl WorkTimes {
    pub(super) fn add(&mut self, other: Self) {
        self.total += other.total;
        self.players += other.players;
    }

    /// The share of the time outside the players: openings, rules, records. None if there was no time.
    pub(super) fn overhead(&self) -> Option<f64> {
        let total = self.total.as_secs_f64();
        (total > 0.0).then(|| 1.0 - (self.players.as_secs_f64() / total).min(1.0))
    }
}

impl MatchTask {
    /// Plays games until none is left to begin, or the match stops.
    pub(super) fn run(&self, finished: &Sender<Vec<Finished>>) -> Result<Unfinished> {
        let channels = self.players.iter().map(LoadedPlayer::channel);
        let channels = channels.collect::<Result<_>>()?;
        let mut batcher = Batcher::new(channels, self.games_in_flight, None);
        let spare: RefCell<Spare> = RefCell::default();
        let mut players = self.players.iter();
        let has_engines = players.any(|player| matches!(player.kind, PlayerKind::Engine(_)));
        let mut thought = Duration::ZERO;
        let (mut held, mut held_since) = (Vec::new(), Instant::now());
        let mut doubtful: BTreeMap<usize, Vec<Finished>> = BTreeMap::new();
        let (mut is_received, mut is_done) = (true, false);
        let begun = Instant::now();
        while is_received && !is_done && !self.stop.load(Relaxed) {
            let costs = batcher.costs().to_vec();
            batcher.round(
                || self.begin(&mut spare.borrow_mut()),
                |over: PitGame| {
                    let usage = over.usage();
                    thought += over.referee.preparation;
                    thought += usage.iter().map(|usage| usage.time).sum::<Duration>();
                    if held.is_empty() {
                        held_since = Instant::now();
                    }
                    let fails = self.check_engines(&over)?;
                    if !over.referee.is_given_up {
                        let game = self.summarise(&over, usage, &costs);
                        match fails {
                            // It doesn't count if the engine turns out to be unable to play.
                            Some(player) => doubtful.entry(player).or_default().push(game),
                            None => held.push(game),
                        }
                    }
                    for (player, usage) in over.fixture.players.iter().zip(usage) {
                        if usage.turns > 0 {
                            held.extend(doubtful.remove(player).unwrap_or_default());
                        }
                    }
                    // With engines the next game may last long or never end; without evaluators one round plays all games.
                    if has_engines || held_since.elapsed() >= HOLD {
                        is_received &= finished.send(std::mem::take(&mut held)).is_ok();
                    }
                    spare.borrow_mut().take(over);
                    Ok(())
                },
            )?;
            is_done = batcher.games().next().is_none();
            if !held.is_empty() && (is_done || held_since.elapsed() >= HOLD) {
                is_received &= finished.send(std::mem::take(&mut held)).is_ok();
            }
        }
        let total = begun.elapsed();
        if is_received && !held.is_empty() {
            // The receiver may be gone by now.
            let _ = finished.send(held);
        }
        let given_up = batcher.games().flat_map(PitGame::usage);
        let evaluated = batcher.costs().iter().map(|cost| cost.time);
        Ok(Unfinished {
            times: WorkTimes {
                total,
                players: thought
                    + given_up.map(|usage| usage.time).sum::<Duration>()
                    + evaluated.sum::<Duration>(),
            },
            doubtful: doubtful.into_values().flatten().collect(),
        })
    }

    /// The next game, if there is one to begin.
    fn begin(&self, spare: &mut Spare) -> Result<Option<PitGame<'_>>> {
        if self.stop.load(Relaxed) {
            return Ok(None);
        }
        let place = self.begun.fetch_add(1, Relaxed);
        let fixture = self
            .to_play
            .get(place)
            .and_then(|&number| self.games.get(number));
        let Some(fixture) = fixture else {
            return Ok(None);
        };
        let opening = self.openings.game(fixture.pair)?;
        let [gold, silver] = fixture.by_colour();
        let sources = [(gold, silver), (silver, gold)];
        let sources = sources.map(|(player, opponent)| {
            let spare = spare.0.get_mut(&player).and_then(Vec::pop);
            let mut source = spare.or_else(|| self.new_engine(player));
            if let Some(TurnSource::Engine(engine)) = &mut source {
                engine.meet(&self.labels[opponent]);
            }
            source
        });
        Ok(Some(PitGame::new(
            fixture,
            opening,
            fixture.by_colour().map(|player| &self.players[player].kind),
            sources,
            self.seed,
            self.max_turns,
        )))
    }

    /// An external engine that is not started yet, if the player is one.
    fn new_engine(&self, player: usize) -> Option<TurnSource> {
        match &self.players[player].kind {
            PlayerKind::Engine(spec) => {
                let engine = EnginePlayer::new(spec.clone(), Arc::clone(&self.stop));
                Some(TurnSource::Engine(Box::new(engine)))
            }
            _ => None,
        }
    }

    /// Ends the match if an engine can't play a turn: it would lose all its games, which would prove nothing. Returns the player that
    /// failed before its first turn in this game.
    fn check_engines(&self, over: &PitGame) -> Result<Option<usize>> {
        use FaultKind::{Crash, Hang, Malformed};
        let (players, usage) = (over.fixture.players, over.usage());
        for (player, usage) in players.into_iter().zip(usage) {
            if usage.turns > 0 {
                self.failures[player].store(0, Relaxed);
            }
        }
        let Some(forfeit) = &over.referee.forfeit else {
            return Ok(None);
        };
        let loser = usize::from(forfeit.loser != over.fixture.first_has());
        let has_failed = matches!(forfeit.fault.kind, Crash | Hang | Malformed);
        if !has_failed || usage[loser].turns > 0 {
            return Ok(None);
        }
        let player = players[loser];
        ensure!(
            self.failures[player].fetch_add(1, Relaxed) + 1 < MAX_FAILURES,
            "{} failed in {MAX_FAILURES} games in a row before its first turn; in game {}, {}",
            self.labels[player],
            over.fixture.number,
            forfeit.in_words()
        );
        Ok(Some(player))
    }

    fn summarise(&self, over: &PitGame, mut usage: [Usage; 2], costs: &[Cost]) -> Finished {
        for (usage, player) in usage.iter_mut().zip(over.fixture.players) {
            // Games share batches: each evaluation costs the mean time.
            let Cost { time, evaluations } = costs[player];
            usage.time += time.mul_f64(usage.evaluations as f64 / evaluations.max(1) as f64);
        }
        let opening = self.openings.describe(over.fixture.pair);
        let (summary, record) = GameSummary::of(over, usage, &self.labels, &opening, self.seed);
        Finished { summary, record }
    }
}

/// By player: the turn sources of games that are over. New games reuse their memory.
#[derive(Debug, Default)]
struct Spare(BTreeMap<usize, Vec<TurnSource>>);

impl Spare {
    fn take(&mut self, over: PitGame) {
        let players = over.fixture.by_colour();
        for (player, source) in players.into_iter().zip(over.into_sources()) {
            self.0.entry(player).or_default().extend(source);
        }
    }
}
