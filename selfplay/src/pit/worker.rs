//! A worker of a match: a thread with its own evaluators and games.

use super::external_engine::{EnginePlayer, FaultKind};
use super::game::{Chooser, PitGame};
use super::opening::Openings;
use super::player::{LoadedPlayer, PlayerKind};
use super::referee::Forfeit;
use super::referee::TurnSource;
use super::result::{GameSummary, Tags};
use super::schedule::Games;
use super::usage::Usage;
use crate::worker::batch::Batcher;
use crate::worker::channel::EvaluationChannel;
use anyhow::{Result, bail};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

/// How long finished games are held back at most. Each handing over wakes the thread that takes them, which on a busy machine costs the
/// worker its place on the core.
const HOLD: Duration = Duration::from_millis(50);

/// A worker's channels to evaluators.
type Channels = Vec<Box<dyn EvaluationChannel>>;

/// What all workers share.
#[derive(Debug)]
pub(super) struct MatchTask {
    pub(super) players: Vec<LoadedPlayer>,
    /// What they are called in records.
    pub(super) labels: Vec<String>,
    pub(super) games: Games,
    pub(super) openings: Openings,
    pub(super) max_turns: usize,
    pub(super) seed: u64,
    pub(super) games_in_flight: usize,
    /// The games to play, in order.
    pub(super) to_play: Vec<u64>,
    /// How many of these are begun.
    pub(super) begun: AtomicUsize,
    pub(super) stop: Arc<AtomicBool>,
    /// By player: games in a row in which it failed before its first turn. Only external engines can.
    pub(super) failures: Vec<AtomicU32>,
}

/// After so many games in a row in which an engine failed before its first turn it is no player.
const MOST_FAILURES: u32 = 3;

/// A game that is over.
#[derive(Debug)]
pub(super) struct Finished {
    pub(super) summary: GameSummary,
    pub(super) record: String,
}

/// What a worker leaves behind.
#[derive(Debug)]
pub(super) struct Unfinished {
    pub(super) times: WorkTimes,
    /// Games that an external engine lost before its first turn, and that it played none of since: they count unless another worker
    /// finds that it can't play at all.
    pub(super) doubtful: Vec<Finished>,
}

/// Where the workers' time went while they had games.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct WorkTimes {
    /// All of it.
    pub(super) total: Duration,
    /// Searching, evaluating or waiting for it, drawing from policies, choosing at random: what the players need by themselves.
    pub(super) players: Duration,
}

impl WorkTimes {
    pub(super) fn add(&mut self, other: Self) {
        self.total += other.total;
        self.players += other.players;
    }

    /// The share of the time that was the match's own: openings, the rules, handing games over. None where there was no time.
    pub(super) fn overhead(&self) -> Option<f64> {
        let total = self.total.as_secs_f64();
        (total > 0.0).then(|| 1.0 - (self.players.as_secs_f64() / total).min(1.0))
    }
}

impl MatchTask {
    /// Plays games until there are none left to begin, or it is time to stop.
    pub(super) fn run(&self, finished: &Sender<Vec<Finished>>) -> Result<Unfinished> {
        let (channels, choosers) = self.channels()?;
        let mut batcher = Batcher::new(channels, self.games_in_flight, None);
        let spare: RefCell<Spare> = RefCell::default();
        let has_engines = choosers.contains(&Chooser::Engine);
        let mut thought = Duration::ZERO;
        let (mut held, mut held_since) = (Vec::new(), Instant::now());
        let mut doubtful: BTreeMap<usize, Vec<Finished>> = BTreeMap::new();
        let (mut is_received, mut is_done) = (true, false);
        let begun = Instant::now();
        while is_received && !is_done && !self.stop.load(Relaxed) {
            let costs = costs(&batcher);
            batcher.round(
                || self.begin(&choosers, &mut spare.borrow_mut()),
                |over: PitGame| {
                    let usage = over.usage();
                    thought += over.preparation();
                    thought += usage.iter().map(|usage| usage.time).sum::<Duration>();
                    if held.is_empty() {
                        held_since = Instant::now();
                    }
                    let fails = self.check_engines(&over)?;
                    if !over.is_given_up() {
                        let game = self.summarise(&over, usage, &choosers, &costs);
                        match fails {
                            // Where the player turns out to be none, the game was none.
                            Some(player) => doubtful.entry(player).or_default().push(game),
                            None => held.push(game),
                        }
                    }
                    for (player, usage) in over.fixture.players.iter().zip(usage) {
                        if usage.turns > 0 {
                            held.extend(doubtful.remove(player).unwrap_or_default());
                        }
                    }
                    // With engines the next game may last, and its end need not come; and where no evaluator is used, all
                    // games are played in one round.
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
            // The receiver may be gone since.
            let _ = finished.send(held);
        }
        let given_up = batcher.games().flat_map(PitGame::usage);
        let evaluated = (0..batcher.evaluators()).map(|slot| batcher.time_of(slot));
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

    /// A channel for each player that needs one, and how all players choose.
    fn channels(&self) -> Result<(Channels, Vec<Chooser>)> {
        let mut channels = Vec::new();
        let mut choosers = Vec::new();
        for player in &self.players {
            let evaluator = channels.len();
            channels.extend(player.channel()?);
            choosers.push(match &player.kind {
                PlayerKind::Search(search) => Chooser::Search {
                    evaluator,
                    options: search.options(),
                    reuse_tree: search.config.reuse_tree,
                },
                PlayerKind::Policy { temperature } => Chooser::Policy {
                    evaluator,
                    temperature: *temperature,
                },
                PlayerKind::Random => Chooser::Random,
                PlayerKind::Engine(_) => Chooser::Engine,
            });
        }
        Ok((channels, choosers))
    }

    /// The next game, if there is one to begin.
    fn begin(&self, choosers: &[Chooser], spare: &mut Spare) -> Result<Option<PitGame>> {
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
        let sources = sources.map(|(player, opponent)| match spare.give(player) {
            Some(TurnSource::Engine(seat)) => Some(self.seated(seat, opponent)),
            None => self.seat(player).map(|seat| self.seated(seat, opponent)),
            source => source,
        });
        Ok(Some(PitGame::new(
            fixture,
            opening,
            choosers,
            sources,
            self.seed,
            self.max_turns,
        )))
    }

    /// The seat of an external engine, if the player is one.
    fn seat(&self, player: usize) -> Option<Box<EnginePlayer>> {
        match &self.players.get(player)?.kind {
            PlayerKind::Engine(order) => {
                let stop = Arc::clone(&self.stop);
                Some(Box::new(EnginePlayer::new(order.clone(), stop)))
            }
            _ => None,
        }
    }

    fn seated(&self, mut seat: Box<EnginePlayer>, opponent: usize) -> TurnSource {
        seat.meet(self.labels.get(opponent).map_or("", String::as_str));
        TurnSource::Engine(seat)
    }

    /// Ends a match of which an engine can't play a turn: its games would all be lost, and prove nothing. Says who has failed so in
    /// this game.
    fn check_engines(&self, over: &PitGame) -> Result<Option<usize>> {
        let failed = |forfeit: &&Forfeit| {
            use FaultKind::{Crash, Hang, Rubbish};
            matches!(forfeit.fault.kind, Crash | Hang | Rubbish)
        };
        let lost_by = over.forfeit().filter(failed).map(|forfeit| forfeit.loser);
        let mut fails = None;
        let sides = [
            over.fixture.first_has(),
            over.fixture.first_has().opponent(),
        ];
        for ((side, player), usage) in sides
            .into_iter()
            .zip(over.fixture.players)
            .zip(over.usage())
        {
            let Some(failures) = self.failures.get(player) else {
                continue;
            };
            if usage.turns > 0 {
                failures.store(0, Relaxed);
            } else if lost_by == Some(side) {
                fails = Some(player);
                if failures.fetch_add(1, Relaxed) + 1 < MOST_FAILURES {
                    continue;
                }
                let name = self.labels.get(player).map_or("", String::as_str);
                let fault = over.forfeit().map(Forfeit::in_words).unwrap_or_default();
                bail!(
                    "{name} failed in {MOST_FAILURES} games in a row before its first turn; in game {}, {fault}",
                    over.fixture.number
                );
            }
        }
        Ok(fails)
    }

    fn summarise(
        &self,
        over: &PitGame,
        mut usage: [Usage; 2],
        choosers: &[Chooser],
        costs: &[f64],
    ) -> Finished {
        for (usage, player) in usage.iter_mut().zip(over.fixture.players) {
            if let Some(Chooser::Search { evaluator, .. } | Chooser::Policy { evaluator, .. }) =
                choosers.get(player)
            {
                let cost = costs.get(*evaluator).copied().unwrap_or_default();
                usage.time += Duration::from_secs_f64(usage.evaluations as f64 * cost);
            }
        }
        let opening = self.openings.describe(over.fixture.pair);
        let tags = Tags {
            players: &self.labels,
            opening: &opening,
            seed: self.seed,
        };
        let (summary, record) = GameSummary::of(over, usage, tags);
        Finished { summary, record }
    }
}

/// What players thought with in games that are over, by player: games that begin use its memory again.
#[derive(Debug, Default)]
struct Spare(BTreeMap<usize, Vec<TurnSource>>);

impl Spare {
    fn take(&mut self, over: PitGame) {
        let players = over.fixture.by_colour();
        for (player, source) in players.into_iter().zip(over.into_minds()) {
            self.0.entry(player).or_default().extend(source);
        }
    }

    fn give(&mut self, player: usize) -> Option<TurnSource> {
        self.0.get_mut(&player)?.pop()
    }
}

/// By evaluator: the seconds of an evaluation. Batches are shared by games, so that none has a time of its own.
fn costs(batcher: &Batcher<PitGame>) -> Vec<f64> {
    (0..batcher.evaluators())
        .map(|slot| {
            let time = batcher.time_of(slot).as_secs_f64();
            time / batcher.evaluations_of(slot).max(1) as f64
        })
        .collect()
}
