//! A worker of the bench: it plays, or evaluates without playing, for a slice of time.

use crate::generate::game::SelfplayGame;
use crate::generate::worker::{GameSlot, GenerationTask};
use crate::worker::batch::Tally;
use crate::worker::channel::{EvaluationChannel, LocalChannel};
use anyhow::Result;
use engine::encoding::{LegalMask, encode};
use engine::record::GameRecord;
use engine::search::{Evaluations, Null, Query};
use rustix::time::{ClockId, clock_gettime};
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

/// Step states of self-play that a worker keeps to measure its evaluator.
const KEPT_QUERIES: usize = 4_096;

/// Turns of each game before it is measured: both setups, and a few more in which the games fall out of step. While all searches
/// begin together, batches alternate between large and small.
const FIRST_TURNS: usize = 10;

/// A worker's work in a slice of time.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Done {
    pub(super) tally: Tally,
    /// How long it took.
    pub(super) time: Duration,
    /// The CPU time of the thread, without other work on the machine.
    pub(super) computed: Duration,
}

impl Done {
    /// How long it took, in seconds above 0.
    pub(super) fn seconds(&self) -> f64 {
        self.time.as_secs_f64().max(1e-9)
    }

    /// Evaluations a second.
    pub(super) fn rate(&self) -> f64 {
        self.tally.evaluations as f64 / self.seconds()
    }

    /// Evaluations a computed second.
    pub(super) fn cpu_rate(&self) -> f64 {
        self.tally.evaluations as f64 / self.computed.as_secs_f64().max(1e-9)
    }

    /// Adds another slice, or another worker.
    pub(super) fn add(&mut self, other: &Self) {
        self.tally.add(&other.tally);
        self.time += other.time;
        self.computed += other.computed;
    }
}

/// The work of several workers.
pub(super) fn sum(done: &[Done]) -> Done {
    done.iter().fold(Done::default(), |mut sum, done| {
        sum.add(done);
        sum
    })
}

/// One worker, between its tasks.
pub(super) struct Worker<'a> {
    work: &'a GenerationTask,
    slot: GameSlot,
    finished: Sender<GameRecord>,
    queries: Vec<Query>,
}

impl<'a> Worker<'a> {
    pub(super) fn new(work: &'a GenerationTask, finished: Sender<GameRecord>) -> Result<Self> {
        Ok(Self {
            work,
            slot: work.new_slot()?,
            finished,
            queries: Vec::new(),
        })
    }

    /// Does a task until `time` is over or `stop` is set, as the task's argument says. No evaluation is in flight afterwards.
    pub(super) fn perform(
        &mut self,
        time: Duration,
        stop: &AtomicBool,
        task: impl Fn(&mut Self, &dyn Fn() -> bool) -> Result<Tally>,
    ) -> Result<Done> {
        let (begun, computed) = (Instant::now(), computed());
        let is_over = || begun.elapsed() >= time || stop.load(Relaxed);
        let tally = task(self, &is_over)?;
        Ok(Done {
            tally,
            time: begun.elapsed(),
            computed: self::computed().saturating_sub(computed),
        })
    }

    /// Begins anew with so many games in flight.
    pub(super) fn restart(&mut self, games_in_flight: usize) {
        self.slot.restart(games_in_flight, self.work.groups());
    }

    /// Plays.
    pub(super) fn play(&mut self, is_over: &dyn Fn() -> bool) -> Result<Tally> {
        let before = *self.slot.batcher.tally();
        while !is_over() && self.work.advance(&mut self.slot, &self.finished)? {}
        self.settle(&before)
    }

    /// Waits for the evaluations in flight. The tally is since `before`.
    fn settle(&mut self, before: &Tally) -> Result<Tally> {
        self.slot.batcher.settle()?;
        Ok(self.slot.batcher.tally().since(before))
    }

    /// Plays the first turns of every game with the null evaluator: self-play is measured as it runs for hours, and large networks would
    /// take minutes for them. The tally is of the second half of them.
    pub(super) fn play_first_turns(&mut self, is_over: &dyn Fn() -> bool) -> Result<Tally> {
        let null: Box<dyn EvaluationChannel> =
            Box::new(LocalChannel::new(Box::new(Null::default())));
        let channels = self.slot.batcher.replace_channels(vec![Some(null)]);
        let mut before = *self.slot.batcher.tally();
        for turns in [FIRST_TURNS / 2, FIRST_TURNS] {
            before = *self.slot.batcher.tally();
            let mut rounds = 0;
            let is_young = |game: &SelfplayGame| game.turns() < turns;
            while !is_over()
                && (rounds < self.slot.batcher.groups() || self.slot.batcher.games().any(is_young))
                && self.work.advance(&mut self.slot, &self.finished)?
            {
                rounds += 1;
            }
        }
        let done = self.settle(&before);
        self.slot.batcher.replace_channels(channels);
        done
    }

    /// Plays, and keeps the queries.
    pub(super) fn warm_up(&mut self, is_over: &dyn Fn() -> bool) -> Result<Tally> {
        let before = *self.slot.batcher.tally();
        let mut place = 0;
        // Without queries there is nothing to measure the evaluator with.
        while (self.queries.is_empty() || !is_over())
            && self.work.advance(&mut self.slot, &self.finished)?
        {
            for query in self.slot.batcher.queries() {
                match self.queries.get_mut(place % KEPT_QUERIES) {
                    Some(old) => *old = *query,
                    None => self.queries.push(*query),
                }
                place += 1;
            }
        }
        self.settle(&before)
    }

    /// Runs the evaluator alone, in batches of so many, with as many of them in flight as self-play has.
    pub(super) fn evaluate(&mut self, batch: usize, is_over: &dyn Fn() -> bool) -> Result<Tally> {
        let slots = self.slot.batcher.groups();
        let mut tally = Tally::default();
        let Some(channel) = self.slot.batcher.first_channel() else {
            return Ok(tally);
        };
        let wanted = self.queries.len().max(batch);
        let queries: Vec<Query> = self.queries.iter().copied().cycle().take(wanted).collect();
        // Batches of different queries, over and over.
        let mut batches = queries.chunks_exact(batch).cycle();
        let mut answers = Evaluations::default();
        for slot in 0..slots {
            channel.submit(slot, batches.next().unwrap_or_default())?;
        }
        // At least one batch a slot, however little time there is.
        let mut in_flight = slots;
        while in_flight > 0 {
            let ends = is_over();
            for slot in 0..slots {
                channel.receive(slot, &mut answers)?;
                tally.evaluations += answers.len() as u64;
                tally.batches += 1;
                if ends {
                    in_flight -= 1;
                } else {
                    channel.submit(slot, batches.next().unwrap_or_default())?;
                }
            }
        }
        Ok(tally)
    }

    /// Encodes rows and masks, and nothing else.
    pub(super) fn encode(&self, is_over: &dyn Fn() -> bool) -> Tally {
        let mut tally = Tally::default();
        while !self.queries.is_empty() && !is_over() {
            for query in &self.queries {
                black_box(encode(&query.state, query.repetitions));
                black_box(LegalMask::new(&query.legal, query.side()));
            }
            tally.evaluations += self.queries.len() as u64;
        }
        tally
    }
}

/// The CPU time of this thread.
pub(super) fn computed() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let seconds = Duration::from_secs(u64::try_from(time.tv_sec).unwrap_or_default());
    seconds + Duration::from_nanos(u64::try_from(time.tv_nsec).unwrap_or_default())
}
