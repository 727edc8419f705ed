//! Many games at once on one thread: the leaves of all their searches are evaluated in common batches.

use crate::line::{Line, NoLine, default_groups};
use anyhow::{Result, ensure};
use engine::search::{Evaluation, Evaluations, Query};
use std::fmt;
use std::time::{Duration, Instant};

/// A game with the search for its present turn.
pub(crate) trait InPlay {
    /// Plays on until evaluations are needed, and says by which evaluator and of what. None once the game is over. While some are
    /// awaited, all are asked for again. What was done is added to `tally`.
    fn next_queries(&mut self, tally: &mut Tally) -> Result<Option<(usize, &[Query])>>;

    /// Takes the evaluation of query `index` of those that were asked for.
    fn answer(&mut self, index: usize, evaluator: &str, evaluation: Evaluation<'_>) -> Result<()>;
}

/// What a worker has done.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Tally {
    /// Turns played.
    pub(crate) turns: u64,
    /// Those of them that were searched with the whole budget.
    pub(crate) full_turns: u64,
    /// Step states whose evaluations were taken.
    pub(crate) evaluations: u64,
    /// Batches that they came in.
    pub(crate) batches: u64,
    pub(crate) times: Times,
}

/// Where a worker's time went.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Times {
    /// Searches and rules, and taking answers.
    pub(crate) search: Duration,
    /// Making records of what was decided, writing them to the journal, and handing over finished games. Where all cores are taken,
    /// the thread that is woken to take a game may run in place of this one, and its time is in here.
    pub(crate) records: Duration,
    /// Sending queries to an evaluator elsewhere: input rows and legal masks.
    pub(crate) encode: Duration,
    /// Waiting for an evaluator elsewhere.
    pub(crate) wait: Duration,
    /// Evaluating in this thread, the encoding included.
    pub(crate) device: Duration,
}

impl Times {
    fn map_with(self, other: Self, both: impl Fn(Duration, Duration) -> Duration) -> Self {
        Self {
            search: both(self.search, other.search),
            records: both(self.records, other.records),
            encode: both(self.encode, other.encode),
            wait: both(self.wait, other.wait),
            device: both(self.device, other.device),
        }
    }

    /// Each part with its name.
    pub(crate) fn parts(&self) -> [(&'static str, Duration); 5] {
        [
            ("search", self.search),
            ("records", self.records),
            ("encode", self.encode),
            ("wait", self.wait),
            ("device", self.device),
        ]
    }

    /// All of it.
    pub(crate) fn total(&self) -> Duration {
        self.parts().iter().map(|(_, time)| *time).sum()
    }
}

/// The shares in per cent.
impl fmt::Display for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let total = self.total().as_secs_f64().max(1e-9);
        write!(f, "workers:")?;
        for (what, time) in self.parts() {
            if !time.is_zero() {
                write!(f, " {what} {:.1}%", 100.0 * time.as_secs_f64() / total)?;
            }
        }
        Ok(())
    }
}

impl Tally {
    /// What was done since an earlier state of the same tally.
    pub(crate) fn since(&self, earlier: &Self) -> Self {
        Self {
            turns: self.turns - earlier.turns,
            full_turns: self.full_turns - earlier.full_turns,
            evaluations: self.evaluations - earlier.evaluations,
            batches: self.batches - earlier.batches,
            times: self
                .times
                .map_with(earlier.times, |now, then| now.saturating_sub(then)),
        }
    }

    /// Adds what another worker has done, or the same one later.
    pub(crate) fn add(&mut self, other: &Self) {
        self.turns += other.turns;
        self.full_turns += other.full_turns;
        self.evaluations += other.evaluations;
        self.batches += other.batches;
        self.times = self.times.map_with(other.times, |a, b| a + b);
    }
}

/// Who asked for an evaluation.
#[derive(Debug, Clone, Copy)]
struct Asker {
    game: usize,
    /// Which of the game's queries it is.
    index: usize,
}

/// What one evaluator is asked by a group, and by whom. Empty while nothing is on its way.
#[derive(Debug, Default)]
struct Asked {
    queries: Vec<Query>,
    askers: Vec<Asker>,
}

/// Games whose queries go into the same batches.
#[derive(Debug)]
struct Group<G> {
    games: Vec<G>,
    /// How many games it plays at once.
    size: usize,
    /// By evaluator.
    asked: Vec<Asked>,
}

/// The size of the group at a place where `size` games are split into so many groups.
fn share(size: usize, place: usize, groups: usize) -> usize {
    size / groups + usize::from(place < size % groups)
}

/// One thread's games, in groups that take turns: while the batch of one is evaluated, the next is searched.
///
/// A game's course doesn't depend on its group.
pub(crate) struct Batcher<G> {
    lines: Vec<Box<dyn Line>>,
    /// The slots in `lines` that stand empty.
    retired: Vec<usize>,
    groups: Vec<Group<G>>,
    /// The group whose turn it is, and the lane that it uses.
    next: usize,
    answers: Evaluations,
    tally: Tally,
    /// By evaluator: the time that its batches have taken.
    line_times: Vec<Duration>,
    /// By evaluator: the evaluations that it has given.
    line_evaluations: Vec<u64>,
}

impl<G: InPlay> Batcher<G> {
    /// No games yet, and room for `size` in `groups` groups, or as many as suit the evaluators.
    pub(crate) fn new(lines: Vec<Box<dyn Line>>, size: usize, groups: Option<usize>) -> Self {
        let groups = groups.unwrap_or_else(|| default_groups(&lines));
        let groups = groups.clamp(1, size.max(1));
        let group = |place: usize| Group {
            games: Vec::new(),
            size: share(size, place, groups),
            asked: lines.iter().map(|_| Asked::default()).collect(),
        };
        Self {
            groups: (0..groups).map(group).collect(),
            next: 0,
            answers: Evaluations::default(),
            tally: Tally::default(),
            line_times: vec![Duration::ZERO; lines.len()],
            line_evaluations: vec![0; lines.len()],
            retired: Vec::new(),
            lines,
        }
    }

    /// Takes the answers of the group whose turn it is, plays its games on to their next queries, and sends these off. `begin` gives
    /// a new game wherever there is room, as long as it has some; `over` takes those that have ended.
    pub(crate) fn round(
        &mut self,
        mut begin: impl FnMut() -> Result<Option<G>>,
        mut over: impl FnMut(G) -> Result<()>,
    ) -> Result<()> {
        let lane = self.next;
        self.next = (lane + 1) % self.groups.len();
        self.take_answers(lane)?;

        let begun = Instant::now();
        let records_before = self.tally.times.records;
        let group = &mut self.groups[lane];
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
                Some((line, queries)) => {
                    let asked = &mut group.asked[line];
                    asked.queries.extend_from_slice(queries);
                    let askers = (0..queries.len()).map(|index| Asker { game, index });
                    asked.askers.extend(askers);
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
        self.send_queries(lane)
    }

    fn send_queries(&mut self, lane: usize) -> Result<()> {
        let group = &self.groups[lane];
        let lines = self.lines.iter_mut().zip(&mut self.line_times);
        for (asked, (line, line_time)) in group.asked.iter().zip(lines) {
            if asked.queries.is_empty() {
                continue;
            }
            let begun = Instant::now();
            line.submit(lane, &asked.queries)?;
            let spent = begun.elapsed();
            *line_time += spent;
            if line.is_remote() {
                self.tally.times.encode += spent;
            } else {
                self.tally.times.device += spent;
            }
        }
        Ok(())
    }

    fn take_answers(&mut self, lane: usize) -> Result<()> {
        let Group { games, asked, .. } = &mut self.groups[lane];
        let spent = self.line_times.iter_mut().zip(&mut self.line_evaluations);
        let lines = self.lines.iter_mut().zip(spent);
        for (asked, (line, (line_time, line_evaluations))) in asked.iter_mut().zip(lines) {
            if asked.queries.is_empty() {
                continue;
            }
            let begun = Instant::now();
            line.receive(lane, &mut self.answers)?;
            let received = Instant::now();
            ensure!(
                self.answers.len() == asked.queries.len(),
                "{}: {} answers came for {} step states",
                line.name(),
                self.answers.len(),
                asked.queries.len()
            );
            for (answer, asker) in asked.askers.iter().enumerate() {
                if let Some(evaluation) = self.answers.get(answer) {
                    games[asker.game].answer(asker.index, line.name(), evaluation)?;
                }
            }
            self.tally.evaluations += self.answers.len() as u64;
            *line_evaluations += self.answers.len() as u64;
            self.tally.batches += 1;
            self.tally.times.wait += received - begun;
            self.tally.times.search += received.elapsed();
            *line_time += begun.elapsed();
            asked.queries.clear();
            asked.askers.clear();
        }
        Ok(())
    }

    /// Takes the answers that are still on their way, and sends nothing: the lines are free.
    pub(crate) fn settle(&mut self) -> Result<()> {
        (0..self.groups.len()).try_for_each(|lane| self.take_answers(lane))
    }

    /// Plays so many games at once from now on, but at least one a group, and gives those back for which there is no more room.
    /// What they had on its way has been answered.
    pub(crate) fn resize(&mut self, size: usize) -> Result<Vec<G>> {
        let groups = self.groups.len();
        let mut too_many = Vec::new();
        if self.games().count() > size {
            self.settle()?;
        }
        for (place, group) in self.groups.iter_mut().enumerate() {
            group.size = share(size, place, groups).max(1);
            if group.size < group.games.len() {
                too_many.extend(group.games.drain(group.size..));
            }
        }
        Ok(too_many)
    }

    /// Adds an evaluator, and says in which slot: as games name it that ask it.
    pub(crate) fn add_line(&mut self, line: Box<dyn Line>) -> usize {
        if let Some(slot) = self.retired.pop() {
            self.lines[slot] = line;
            self.line_times[slot] = Duration::ZERO;
            self.line_evaluations[slot] = 0;
            return slot;
        }
        self.lines.push(line);
        self.line_times.push(Duration::ZERO);
        self.line_evaluations.push(0);
        for group in &mut self.groups {
            group.asked.push(Asked::default());
        }
        self.lines.len() - 1
    }

    /// Gives up an evaluator that no game asks any more. Its slot may be used again.
    pub(crate) fn retire_line(&mut self, slot: usize) {
        let is_asked = |group: &Group<G>| !group.asked[slot].queries.is_empty();
        if self.has_line(slot) && !self.groups.iter().any(is_asked) {
            self.lines[slot] = Box::new(NoLine);
            self.retired.push(slot);
        }
    }

    /// Whether there is an evaluator in a slot.
    pub(crate) fn has_line(&self, slot: usize) -> bool {
        slot < self.lines.len() && !self.retired.contains(&slot)
    }

    /// The slots that evaluators may be in.
    pub(crate) fn slots(&self) -> usize {
        self.lines.len()
    }

    /// The games in play.
    pub(crate) fn games(&self) -> impl Iterator<Item = &G> {
        self.groups.iter().flat_map(|group| &group.games)
    }

    /// How many groups there are.
    pub(crate) fn groups(&self) -> usize {
        self.groups.len()
    }

    /// What is on its way to the first evaluator, or has just been evaluated by it.
    pub(crate) fn queries(&self) -> impl Iterator<Item = &Query> {
        let asked = self.groups.iter().flat_map(|group| group.asked.first());
        asked.flat_map(|asked| &asked.queries)
    }

    /// The lines to the evaluators.
    pub(crate) fn lines_mut(&mut self) -> &mut [Box<dyn Line>] {
        &mut self.lines
    }

    /// Has others evaluate from now on, and gives back the lines that did until now. Nothing may be on its way.
    pub(crate) fn replace_lines(&mut self, lines: Vec<Box<dyn Line>>) -> Vec<Box<dyn Line>> {
        std::mem::replace(&mut self.lines, lines)
    }

    /// What has been done so far.
    pub(crate) fn tally(&self) -> &Tally {
        &self.tally
    }

    /// The evaluations that an evaluator has given so far.
    pub(crate) fn evaluations_of(&self, evaluator: usize) -> u64 {
        let evaluations = self.line_evaluations.get(evaluator);
        evaluations.copied().unwrap_or_default()
    }

    /// The time that an evaluator's batches have taken so far, those on their way elsewhere counted only where they were waited for.
    pub(crate) fn time_of(&self, evaluator: usize) -> Duration {
        self.line_times.get(evaluator).copied().unwrap_or_default()
    }
}
