//! The threads that play: each owns its games, and its channels to the evaluators.

use super::current_player::{CurrentPlayer, LoadedPlayer, locked};
use super::disk::StoppedWhileWaiting;
use super::game::{SelfplayGame, Setting};
use super::log::{GameLog, NoLog};
use super::plan::{Part, random_numbers};
use super::starts::Starts;
use crate::worker::batch::{Batcher, Tally};
use anyhow::Result;
use engine::config::Config;
use engine::record::journal::GameInFlight;
use engine::record::{GameId, GameRecord};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// How long a paused worker sleeps between checks.
const PAUSE: Duration = Duration::from_millis(20);

/// What all workers share.
pub(crate) struct GenerationTask {
    pub(crate) config: Arc<Config>,
    pub(crate) current_player: Arc<CurrentPlayer>,
    pub(crate) log: Arc<dyn GameLog>,
    pub(crate) starts: Starts,
    pub(crate) seed: u64,
    pub(crate) generator: u32,
    /// The counter that no game may reach.
    pub(crate) games: u64,
    /// The next game to begin.
    pub(crate) next_game: Mutex<NextGame>,
    /// Games to resume.
    pub(crate) suspended: Mutex<VecDeque<GameInFlight>>,
    /// How many games a worker may play at once.
    pub(crate) room: AtomicUsize,
    /// Set while no game may be played.
    pub(crate) pause: AtomicBool,
    /// Set to make the workers return, with their games unfinished.
    pub(crate) stop: Arc<AtomicBool>,
    pub(crate) counts: Counts,
}

/// The next game to begin, by its counter.
#[derive(Debug, Default)]
pub(crate) struct NextGame {
    /// The games that damage to the journal has taken: they begin again, before all others.
    pub(crate) again: Vec<u64>,
    /// The next new game.
    pub(crate) new: u64,
}

/// Totals of all workers.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    tally: Mutex<Tally>,
    /// The largest mean batch of a worker's round so far, in evaluations; 0 before the first.
    pub(crate) largest_batch: AtomicU64,
    /// Games that were played to their end.
    pub(crate) finished: AtomicU64,
    pub(crate) in_flight: AtomicUsize,
}

impl Counts {
    /// The workers' work so far.
    pub(crate) fn tally(&self) -> Tally {
        *locked(&self.tally)
    }
}

/// A worker's games, and its channels to the evaluators.
pub(crate) struct GameSlot {
    pub(crate) batcher: Batcher<SelfplayGame>,
    setting: Setting,
    /// The version of the current player that it follows.
    version: u64,
    /// Games that it may play at once.
    room: usize,
    /// Those in play when they were last counted.
    in_flight: usize,
}

impl GenerationTask {
    /// Endless self-play without a log. Each worker plays `games_in_flight` games at once. The fields can be changed afterwards.
    pub(crate) fn new(
        config: Config,
        first: LoadedPlayer,
        starts: Starts,
        games_in_flight: usize,
    ) -> Self {
        Self {
            config: Arc::new(config),
            current_player: Arc::new(CurrentPlayer::new(first)),
            log: Arc::new(NoLog),
            starts,
            seed: 0,
            generator: 0,
            games: u64::MAX,
            next_game: Mutex::default(),
            suspended: Mutex::default(),
            room: AtomicUsize::new(games_in_flight),
            pause: AtomicBool::new(false),
            stop: Arc::new(AtomicBool::new(false)),
            counts: Counts::default(),
        }
    }

    /// The games of one worker, none begun.
    pub(crate) fn new_slot(&self) -> Result<GameSlot> {
        let version = self.current_player.version();
        let newest = self.current_player.newest();
        let channels = vec![newest.channel()?];
        let room = self.room.load(Relaxed);
        let setting = Setting {
            config: Arc::clone(&self.config),
            log: Arc::clone(&self.log),
            newest: Arc::new(Mutex::new((0, Arc::new(newest.evaluator.clone())))),
        };
        // A run's first network may come later, and be the first that a GPU evaluates.
        let on_gpus = (!newest.player.devices().is_local()).then_some(2);
        Ok(GameSlot {
            batcher: Batcher::new(channels, room, self.groups().or(on_gpus)),
            setting,
            version,
            room,
            in_flight: 0,
        })
    }

    /// The groups that each worker's games are split into, if the configuration sets them.
    pub(crate) fn groups(&self) -> Option<usize> {
        let groups = self.config.selfplay.groups.fixed();
        groups.map(|groups| groups as usize)
    }

    /// Plays games until there are none left to begin, handing each to `finished` when it is over.
    pub(crate) fn run(&self, finished: &Sender<GameRecord>) -> Result<Tally> {
        let mut slot = self.new_slot()?;
        while self.advance(&mut slot, finished)? {}
        Ok(*slot.batcher.tally())
    }

    /// Advances one group of games. Returns whether there is more to do.
    pub(crate) fn advance(
        &self,
        slot: &mut GameSlot,
        finished: &Sender<GameRecord>,
    ) -> Result<bool> {
        while self.pause.load(Relaxed) && !self.stop.load(Relaxed) {
            std::thread::sleep(PAUSE);
        }
        if self.stop.load(Relaxed) {
            return Ok(false);
        }
        slot.follow(self)?;
        slot.fit(self)?;
        let before = *slot.batcher.tally();
        let mut is_received = true;
        let GameSlot {
            batcher, setting, ..
        } = slot;
        let played = batcher.round(
            || self.begin_game(setting),
            |game| {
                // The receiver is gone only where the program is ending with an error of its own.
                is_received &= finished.send(game.into_record()).is_ok();
                self.counts.finished.fetch_add(1, Relaxed);
                Ok(())
            },
        );
        match played {
            // The resumed game plays the turn again that could not be journalled.
            Err(error) if error.is::<StoppedWhileWaiting>() => return Ok(false),
            played => played?,
        }
        let done = slot.batcher.tally().since(&before);
        locked(&self.counts.tally).add(&done);
        if let Some(size) = done.evaluations.checked_div(done.batches) {
            self.counts.largest_batch.fetch_max(size, Relaxed);
        }
        slot.count(&self.counts);
        // A game that was suspended here may find no other worker.
        let has_more = slot.in_flight > 0 || !self.suspended().is_empty();
        Ok(is_received && has_more)
    }

    /// A game to resume, or else a new one, if one is left.
    fn begin_game(&self, setting: &Setting) -> Result<Option<SelfplayGame>> {
        if self.stop.load(Relaxed) {
            return Ok(None);
        }
        // Locked until the game is in the log: a resumed generator takes all games before the last one as begun.
        let mut next = locked(&self.next_game);
        let again = next.again.last().copied();
        let waiting = match again {
            None => self.suspended().pop_front(),
            Some(_) => None,
        };
        if let Some(in_flight) = waiting {
            drop(next);
            return SelfplayGame::resume(setting, in_flight).map(Some);
        }
        if again.is_none() && next.new >= self.games {
            return Ok(None);
        }
        let id = GameId {
            generator: self.generator,
            counter: again.unwrap_or(next.new),
        };
        let mut rng = random_numbers(self.seed, id, Part::Start);
        let max_turns = self.config.selfplay.max_turns as usize;
        let begun = self.starts.draw(max_turns, &mut rng);
        let game = SelfplayGame::begin(setting, self.seed, id, begun)?;
        match again {
            Some(_) => drop(next.again.pop()),
            None => next.new += 1,
        }
        Ok(Some(game))
    }

    /// Whether there is no game left to begin.
    pub(crate) fn has_begun_all(&self) -> bool {
        let next = locked(&self.next_game);
        next.again.is_empty() && next.new >= self.games
    }

    /// The games to resume.
    pub(crate) fn suspended(&self) -> MutexGuard<'_, VecDeque<GameInFlight>> {
        locked(&self.suspended)
    }
}

impl GameSlot {
    /// Replaces its games by so many new ones, on the same channels.
    pub(crate) fn restart(&mut self, games_in_flight: usize, groups: Option<usize>) {
        let channels = self.batcher.replace_channels(Vec::new());
        self.batcher = Batcher::new(channels, games_in_flight, groups);
        self.room = games_in_flight;
    }

    /// Adds a channel to a new player, and drops those that no game uses.
    fn follow(&mut self, work: &GenerationTask) -> Result<()> {
        let version = work.current_player.version();
        let mut slot = locked(&self.setting.newest).0;
        if version != self.version {
            let newest = work.current_player.newest();
            if let Some(channel) = newest.channel()? {
                slot = self.batcher.add_channel(channel);
            }
            *locked(&self.setting.newest) = (slot, Arc::new(newest.evaluator.clone()));
            self.version = version;
        }
        self.batcher
            .retire_channels(slot, |game, old| game.slot() == Some(old));
        Ok(())
    }

    /// Suspends games beyond the allowed number.
    fn fit(&mut self, work: &GenerationTask) -> Result<()> {
        let room = work.room.load(Relaxed);
        if room == self.room {
            return Ok(());
        }
        self.room = room;
        let too_many = self.batcher.resize(room)?;
        work.suspended()
            .extend(too_many.into_iter().map(SelfplayGame::suspend));
        Ok(())
    }

    fn count(&mut self, counts: &Counts) {
        let now = self.batcher.games().count();
        counts.in_flight.fetch_add(now, Relaxed);
        counts.in_flight.fetch_sub(self.in_flight, Relaxed);
        self.in_flight = now;
    }
}
