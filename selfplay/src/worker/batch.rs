//! Many games at once on one thread: the leaves of all their searches are evaluated in common batches.

use crate::worker::channel::{EvaluationChannel, at, default_groups};
use anyhow::{Context, Result, ensure};
use arimaa::rules::History;
use engine::run::WorkerTimes;
use engine::search::{Evaluation, Evaluations, Evaluator, Query, Search};
use rand::Rng;
use std::time::{Duration, Instant};

/// Evaluates the next leaves of a single search, and returns the evaluator's time; none once the search is over. `answers` is a
/// reusable buffer.
pub(crate) fn evaluate_leaves<R: Rng>(
    search: &mut Search,
    evaluator: &mut dyn Evaluator,
    history: &History,
    rng: &mut R,
    answers: &mut Evaluations,
) -> Result<Option<Duration>> {
    let queries = search.leaves(history, rng);
    let count = queries.len();
    if count == 0 {
        return Ok(None);
    }
    let begun = Instant::now();
    evaluator.evaluate(queries, answers)?;
    let took = begun.elapsed();
    ensure!(
        answers.len() == count,
        "{}: {} answers came for {count} step states",
        evaluator.name(),
        answers.len()
    );
    for (index, answer) in (0..count).filter_map(|index| Some((index, answers.get(index)?))) {
        search.answer(index, evaluator.name(), answer)?;
    }
    Ok(Some(took))
}

/// Searches until the search is over or stopped, and shows it after each batch.
pub(crate) fn search_to_end<R: Rng>(
    search: &mut Search,
    evaluator: &mut dyn Evaluator,
    history: &History,
    rng: &mut R,
    mut show: impl FnMut(&Search),
) -> Result<()> {
    let mut answers = Evaluations::default();
    while evaluate_leaves(search, evaluator, history, rng, &mut answers)?.is_some() {
        show(search);
    }
    Ok(())
}

/// A game with the search for its present turn.
pub(crate) trait InPlay {
    /// Plays until evaluations are needed, and returns their evaluator and queries; none once the game is over. While answers are
    /// missing, all queries are returned again. The work is added to `tally`.
    fn next_queries(&mut self, tally: &mut Tally) -> Result<Option<(usize, &[Query])>>;

    /// Takes the evaluation of query `index` of those that were requested.
    fn answer(&mut self, index: usize, evaluator: &str, evaluation: Evaluation<'_>) -> Result<()>;
}

/// The work of a worker.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Tally {
    /// Turns played.
    pub(crate) turns: u64,
    /// Turns that were searched.
    pub(crate) searched_turns: u64,
    /// Step states with a received evaluation.
    pub(crate) evaluations: u64,
    /// Batches of them.
    pub(crate) batches: u64,
    /// Its time by use.
    pub(crate) times: WorkerTimes,
}

impl Tally {
    /// The work since an earlier state of the same tally.
    pub(crate) fn since(&self, earlier: &Self) -> Self {
        Self {
            turns: self.turns - earlier.turns,
            searched_turns: self.searched_turns - earlier.searched_turns,
            evaluations: self.evaluations - earlier.evaluations,
            batches: self.batches - earlier.batches,
            times: self
                .times
                .zip_with(earlier.times, |now, then| now.saturating_sub(then)),
        }
    }

    /// Adds the work of another worker, or later work of the same one.
    pub(crate) fn add(&mut self, other: &Self) {
        self.turns += other.turns;
        self.searched_turns += other.searched_turns;
        self.evaluations += other.evaluations;
        self.batches += other.batches;
        self.times += other.times;
    }
}

/// The cost of an evaluator.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Cost {
    /// The worker's time for its batches: to submit them, to wait, and to pass the answers to the games.
    pub(crate) time: Duration,
    /// Evaluations that it has given.
    pub(crate) evaluations: u64,
}

/// The origin of a query.
#[derive(Debug, Clone, Copy)]
struct Origin {
    game: usize,
    /// The query's index among the game's queries.
    index: usize,
}

/// The queries of a group for one evaluator with their origins. Empty while nothing is in flight.
#[derive(Debug, Default)]
struct Pending {
    queries: Vec<Query>,
    origins: Vec<Origin>,
}

/// Games with common batches.
#[derive(Debug)]
struct Group<G> {
    games: Vec<G>,
    /// The most games at once.
    size: usize,
    /// By evaluator.
    pending: Vec<Pending>,
}

/// The size of group `place` if `size` games are divided into so many groups.
fn share(size: usize, place: usize, groups: usize) -> usize {
    size / groups + usize::from(place < size % groups)
}

/// Channels by evaluator. None stands for a closed channel, and for a player that needs no channel.
type Channels = Vec<Option<Box<dyn EvaluationChannel>>>;

/// The error of queries without a channel.
const NO_CHANNEL: &str =
    "step states came for an evaluator that was closed, or for a player without one";

/// One thread's games, in groups that take turns: while the batch of one is evaluated, the next is searched.
///
/// A game's course doesn't depend on its group, unless a GPU's answers differ in their last digits.
pub(crate) struct Batcher<G> {
    channels: Channels,
    groups: Vec<Group<G>>,
    /// The group of the next round, which is also its slot.
    next: usize,
    answers: Evaluations,
    tally: Tally,
    /// By evaluator.
    costs: Vec<Cost>,
}

impl<G: InPlay> Batcher<G> {
    /// No games yet, and room for `size` in `groups` groups, or as many as suit the evaluators.
    pub(crate) fn new(channels: Channels, size: usize, groups: Option<usize>) -> Self {
        let groups = groups.unwrap_or_else(|| default_groups(&channels));
        let groups = groups.clamp(1, size.max(1));
        let group = |place: usize| Group {
            games: Vec::new(),
            size: share(size, place, groups),
            pending: channels.iter().map(|_| Pending::default()).collect(),
        };
        Self {
            groups: (0..groups).map(group).collect(),
            next: 0,
            answers: Evaluations::default(),
            tally: Tally::default(),
            costs: vec![Cost::default(); channels.len()],
            channels,
        }
    }

    /// Receives the answers of the next group, plays its games to their next queries, and sends these. `begin` gives new games while
    /// there is room, or none; `over` takes games that are over.
    pub(crate) fn round(
        &mut self,
        mut begin: impl FnMut() -> Result<Option<G>>,
        mut over: impl FnMut(G) -> Result<()>,
    ) -> Result<()> {
        let slot = self.next;
        self.next = (slot + 1) % self.groups.len();
        self.take_answers(slot)?;

        let begun = Instant::now();
        let records_before = self.tally.times.records;
        let group = &mut self.groups[slot];
        let mut game = 0;
        loop {
            if game == group.games.len() {
                if game == group.size {
                    break;
                }
                match begin()? {
                    Some(new) => group.games.push(new),
                    None => break,
                }
            }
            match group.games[game].next_queries(&mut self.tally)? {
                Some((channel, queries)) => {
                    let pending = &mut group.pending[channel];
                    pending.queries.extend_from_slice(queries);
                    let origins = (0..queries.len()).map(|index| Origin { game, index });
                    pending.origins.extend(origins);
                    game += 1;
                }
                None => {
                    let begun = Instant::now();
                    over(group.games.remove(game))?;
                    self.tally.times.records += begun.elapsed();
                }
            }
        }
        let times = &mut self.tally.times;
        let recording = times.records - records_before;
        times.search += begun.elapsed().saturating_sub(recording);
        self.send_queries(slot)
    }

    fn send_queries(&mut self, slot: usize) -> Result<()> {
        let group = &self.groups[slot];
        let channels = self.channels.iter_mut().zip(&mut self.costs);
        for (pending, (channel, cost)) in group.pending.iter().zip(channels) {
            if pending.queries.is_empty() {
                continue;
            }
            let begun = Instant::now();
            let channel = channel.as_mut().context(NO_CHANNEL)?;
            channel.submit(slot, &pending.queries)?;
            let spent = begun.elapsed();
            cost.time += spent;
            if channel.is_remote() {
                self.tally.times.encode += spent;
            } else {
                self.tally.times.device += spent;
            }
        }
        Ok(())
    }

    fn take_answers(&mut self, slot: usize) -> Result<()> {
        let Group { games, pending, .. } = &mut self.groups[slot];
        let channels = self.channels.iter_mut().zip(&mut self.costs);
        for (pending, (channel, cost)) in pending.iter_mut().zip(channels) {
            if pending.queries.is_empty() {
                continue;
            }
            let begun = Instant::now();
            let channel = channel.as_mut().context(NO_CHANNEL)?;
            channel.receive(slot, &mut self.answers)?;
            let received = Instant::now();
            ensure!(
                self.answers.len() == pending.queries.len(),
                "{}: {} answers came for {} step states",
                channel.name(),
                self.answers.len(),
                pending.queries.len()
            );
            for (answer, origin) in pending.origins.iter().enumerate() {
                if let Some(evaluation) = self.answers.get(answer) {
                    games[origin.game].answer(origin.index, channel.name(), evaluation)?;
                }
            }
            self.tally.evaluations += self.answers.len() as u64;
            cost.evaluations += self.answers.len() as u64;
            self.tally.batches += 1;
            self.tally.times.wait += received - begun;
            self.tally.times.search += received.elapsed();
            cost.time += begun.elapsed();
            pending.queries.clear();
            pending.origins.clear();
        }
        Ok(())
    }

    /// Receives all answers in flight, and sends nothing.
    pub(crate) fn settle(&mut self) -> Result<()> {
        (0..self.groups.len()).try_for_each(|slot| self.take_answers(slot))
    }

    /// Sets the number of games at once, at least one, and returns the games without room. They have no queries in flight.
    pub(crate) fn resize(&mut self, size: usize) -> Result<Vec<G>> {
        let groups = self.groups.len();
        let mut too_many = Vec::new();
        for (place, group) in self.groups.iter_mut().enumerate() {
            group.size = share(size.max(1), place, groups);
        }
        if self
            .groups
            .iter()
            .any(|group| group.games.len() > group.size)
        {
            self.settle()?;
        }
        for group in &mut self.groups {
            if group.size < group.games.len() {
                too_many.extend(group.games.drain(group.size..));
            }
        }
        Ok(too_many)
    }

    /// Adds an evaluator, and returns its number for the games' queries.
    pub(crate) fn add_channel(&mut self, channel: Box<dyn EvaluationChannel>) -> usize {
        let free = self.channels.iter().position(Option::is_none);
        let evaluator = free.unwrap_or(self.channels.len());
        *at(&mut self.channels, evaluator) = Some(channel);
        *at(&mut self.costs, evaluator) = Cost::default();
        for group in &mut self.groups {
            at(&mut group.pending, evaluator);
        }
        evaluator
    }

    /// Closes each channel but `kept` that no game uses and that has no queries in flight. Its number may be used again.
    pub(crate) fn retire_channels(&mut self, kept: usize, is_used: impl Fn(&G, usize) -> bool) {
        for (evaluator, channel) in self.channels.iter_mut().enumerate() {
            let is_needed = |group: &Group<G>| {
                !group.pending[evaluator].queries.is_empty()
                    || group.games.iter().any(|game| is_used(game, evaluator))
            };
            if channel.is_some() && evaluator != kept && !self.groups.iter().any(is_needed) {
                *channel = None;
            }
        }
    }

    /// The games in play.
    pub(crate) fn games(&self) -> impl Iterator<Item = &G> {
        self.groups.iter().flat_map(|group| &group.games)
    }

    /// How many groups there are.
    pub(crate) fn groups(&self) -> usize {
        self.groups.len()
    }

    /// The queries in flight to the first evaluator.
    pub(crate) fn queries(&self) -> impl Iterator<Item = &Query> {
        let pending = self.groups.iter().flat_map(|group| group.pending.first());
        pending.flat_map(|pending| &pending.queries)
    }

    /// The channel to the first evaluator.
    pub(crate) fn first_channel(&mut self) -> Option<&mut Box<dyn EvaluationChannel>> {
        self.channels.first_mut()?.as_mut()
    }

    /// Replaces all channels, and returns the old ones. Nothing may be in flight.
    pub(crate) fn replace_channels(&mut self, channels: Channels) -> Channels {
        std::mem::replace(&mut self.channels, channels)
    }

    /// The work so far.
    pub(crate) fn tally(&self) -> &Tally {
        &self.tally
    }

    /// The cost of each evaluator so far.
    pub(crate) fn costs(&self) -> &[Cost] {
        &self.costs
    }
}
