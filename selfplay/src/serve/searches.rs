//! Live searches: each on a thread of its own. All requests for a search share its newest report.

use super::error::{ApiError, ApiResult};
use super::players::{NamedEvaluator, Players};
use super::rules::GameText;
use super::threads::Threads;
use crate::worker::batch::evaluate_leaves;
use anyhow::Context;
use arimaa::notation::TurnLabel;
use arimaa::rules::{Game, History, Side};
use engine::search::{Budget, Evaluations, Evaluator, Proven, Search, SearchOptions, SearchReport};
use rand::Rng;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// Searches that run at once, whole-game analyses not counted.
const MOST_RUNNING: usize = 4;

/// Searches that are kept, the ended ones included.
const MOST_KEPT: usize = 16;

/// How long an ended search is kept.
const KEPT_TIME: Duration = Duration::from_secs(600);

/// Ended searches that keep their trees.
const MOST_TREES: usize = 2;

/// How long an ended search keeps its tree.
pub(super) const TREE_TIME: Duration = Duration::from_secs(120);

/// The time between two looks for trees to drop.
const TIDY_TIME: Duration = Duration::from_secs(5);

/// A search without a listener or a request is stopped after this time: its page is closed.
pub(super) const ABANDONED_TIME: Duration = Duration::from_secs(60);

/// The limit of a search.
const MOST_TIME: Duration = Duration::from_secs(600);

/// The tree of a search, in MiB.
pub(super) const MEMORY_MIB: u32 = 64;

/// The time between two reports.
const REPORT_TIME: Duration = Duration::from_millis(250);

/// Turns that are tried before one that loses at once is accepted.
const LOSS_PROOF_LIMIT: u32 = 20_000;

/// The limits of a search in a request.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Limits {
    #[serde(default)]
    evaluations: Option<u32>,
    #[serde(default)]
    seconds: Option<f64>,
}

impl Limits {
    pub(super) fn of_evaluations(evaluations: u32) -> Self {
        Self {
            evaluations: Some(evaluations),
            seconds: None,
        }
    }

    fn check(&self) -> ApiResult<()> {
        let seconds = self.seconds.unwrap_or(1.0);
        let most = MOST_TIME.as_secs_f64();
        if !(0.001..=most).contains(&seconds) {
            return Err(ApiError::wrong(format!(
                "`seconds` must be a number from 0.001 to {most}"
            )));
        }
        if self.evaluations == Some(0) {
            return Err(ApiError::wrong("`evaluations` must be a number from 1 on"));
        }
        Ok(())
    }

    /// The options of a search within these limits.
    pub(super) fn options(&self, players: &Players, parallel_leaves: u32) -> SearchOptions {
        let config = players.search();
        let budget = Budget {
            evaluations: self.evaluations,
            visits: None,
            time: Some(self.seconds.map_or(MOST_TIME, Duration::from_secs_f64)),
            memory_mib: config.memory_mib.min(MEMORY_MIB),
            stops_when_decided: self.evaluations.is_some() || self.seconds.is_some(),
        };
        let mut options = SearchOptions {
            loss_proof_limit: Some(LOSS_PROOF_LIMIT),
            ..SearchOptions::strongest_within(config, budget)
        };
        if config.parallel_leaves.fixed().is_none() {
            options.parallel_leaves = parallel_leaves;
        }
        options
    }
}

/// `POST /api/searches`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SearchRequest {
    game: GameText,
    player: String,
    #[serde(default)]
    evaluations: Option<u32>,
    #[serde(default)]
    seconds: Option<f64>,
    #[serde(default = "usual_lines")]
    lines: usize,
}

fn usual_lines() -> usize {
    5
}

/// Where a search stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum SearchState {
    Running,
    Done,
    Stopped,
    Failed,
}

/// `GET /api/searches/ID`.
#[derive(Debug, Clone, Serialize)]
pub(super) struct SearchAnswer {
    search: String,
    player: String,
    label: String,
    pub(super) state: SearchState,
    error: Option<String>,
    report: Option<Report>,
}

#[derive(Debug, Clone, Serialize)]
struct Report {
    gold_value: Option<f32>,
    own_gold_value: Option<f32>,
    evaluations: u32,
    evaluations_per_second: f64,
    seconds: f64,
    nodes: usize,
    is_decided: bool,
    proven: Option<Proven>,
    turns: Vec<FoundTurn>,
    line: Vec<LineTurn>,
}

#[derive(Debug, Clone, Serialize)]
struct FoundTurn {
    turn: String,
    visits: f64,
    gold_value: Option<f32>,
    prior: Option<f64>,
    is_chosen: bool,
    proven: Option<Proven>,
    line: Vec<LineTurn>,
}

#[derive(Debug, Clone, Serialize)]
struct LineTurn {
    label: String,
    turn: String,
}

impl Report {
    /// `before` holds the evaluations and the seconds before the search was resumed.
    fn new(report: SearchReport, label: TurnLabel, before: (u32, f64)) -> Self {
        let side = report.side;
        let for_gold = |value: f32| match side {
            Side::Gold => value,
            Side::Silver => 1.0 - value,
        };
        let labelled = |line: Vec<engine::search::LineTurn>| {
            let turns = line.into_iter().enumerate();
            let turns = turns.map(|(index, turn)| LineTurn {
                label: label.after(index).to_string(),
                turn: turn.turn,
            });
            turns.collect()
        };
        let turns = report.turns.into_iter().map(|turn| FoundTurn {
            turn: turn.turn,
            visits: turn.visits,
            gold_value: turn.value.map(for_gold),
            prior: turn.prior,
            is_chosen: turn.is_chosen,
            proven: turn.proven,
            line: labelled(turn.line),
        });
        Self {
            gold_value: report.gold_value,
            own_gold_value: report.own_value.map(for_gold),
            evaluations: before.0.saturating_add(report.evaluations),
            evaluations_per_second: report.evaluations_per_second,
            seconds: before.1 + report.seconds,
            nodes: report.nodes,
            is_decided: report.is_decided,
            proven: report.proven,
            turns: turns.collect(),
            line: labelled(report.line),
        }
    }
}

/// All searches of a server.
pub(super) struct Searches {
    players: Arc<Players>,
    entries: Arc<Mutex<Entries>>,
    next: AtomicU64,
    threads: Threads,
}

type Entries = BTreeMap<u64, Arc<Entry>>;

struct Entry {
    id: u64,
    player: String,
    lines: usize,
    game: Game,
    label: TurnLabel,
    stop: Arc<AtomicBool>,
    answer: watch::Sender<SearchAnswer>,
    /// When it last had a listener or a request.
    last_use: Mutex<Instant>,
    ending: Mutex<Ending>,
}

/// What an ended search leaves. It changes together with the state of the answer, under one lock.
#[derive(Default)]
struct Ending {
    search: Option<Box<Search>>,
    ended: Option<Instant>,
}

impl Searches {
    pub(super) fn new(players: Arc<Players>) -> anyhow::Result<Self> {
        let entries = Arc::default();
        let weak = Arc::downgrade(&entries);
        std::thread::Builder::new()
            .name("search-trees".into())
            .spawn(move || drop_trees_in_time(&weak))
            .context("can't start the thread that drops the trees of ended searches")?;
        Ok(Self {
            players,
            entries,
            next: first_number(),
            threads: Threads::default(),
        })
    }

    /// Starts a search, and returns its number.
    pub(super) fn start(&self, request: &SearchRequest) -> ApiResult<String> {
        let limits = Limits {
            evaluations: request.evaluations,
            seconds: request.seconds,
        };
        limits.check()?;
        if !(1..=100).contains(&request.lines) {
            return Err(ApiError::wrong("`lines` must be a number from 1 to 100"));
        }
        let game = request.game.unfinished_game()?;
        self.players.check(&request.player)?;
        let id = self.next.fetch_add(1, Relaxed);
        let label = TurnLabel::due(&game);
        let answer = SearchAnswer {
            search: id.to_string(),
            player: request.player.clone(),
            label: label.to_string(),
            state: SearchState::Running,
            error: None,
            report: None,
        };
        let entry = Arc::new(Entry {
            id,
            player: request.player.clone(),
            lines: request.lines,
            game,
            label,
            stop: Arc::default(),
            answer: watch::Sender::new(answer),
            last_use: Mutex::new(Instant::now()),
            ending: Mutex::default(),
        });
        self.admit(Arc::clone(&entry))?;
        self.run(entry, limits, None)?;
        Ok(id.to_string())
    }

    /// Makes room for a search, unless too many run.
    fn admit(&self, entry: Arc<Entry>) -> ApiResult<()> {
        let mut entries = self.lock();
        self.check_room(&entries)?;
        entries.retain(|_, old| {
            old.ending()
                .ended
                .is_none_or(|ended| ended.elapsed() < KEPT_TIME)
        });
        while entries.len() >= MOST_KEPT
            && let Some(oldest) = entries.iter().find(|(_, old)| !old.is_running())
        {
            let oldest = *oldest.0;
            entries.remove(&oldest);
        }
        entries.insert(entry.id, entry);
        Ok(())
    }

    fn check_room(&self, entries: &Entries) -> ApiResult<()> {
        match entries.values().filter(|entry| entry.is_running()).count() {
            MOST_RUNNING.. => Err(ApiError::busy(format!(
                "{MOST_RUNNING} searches run already, the most at once: stop one, or wait for its end"
            ))),
            _ => Ok(()),
        }
    }

    fn run(&self, entry: Arc<Entry>, limits: Limits, search: Option<Box<Search>>) -> ApiResult<()> {
        let (players, entries) = (Arc::clone(&self.players), Arc::clone(&self.entries));
        let to_work = Arc::clone(&entry);
        let started = self.threads.start(format!("search-{}", entry.id), move || {
            let searched = to_work.work(&players, limits, search);
            // A request that sees its end must find no more trees than the limit.
            let entries = lock(&entries);
            to_work.end(searched);
            drop_old_trees(&entries, Instant::now());
        });
        started.map_err(|error| {
            let error = ApiError::failed(format!("can't start the search's thread: {error}"));
            entry.end(Err(error.message()));
            error
        })
    }

    /// The newest report of a search, and the channel of those that follow.
    pub(super) fn watch(&self, id: &str) -> ApiResult<watch::Receiver<SearchAnswer>> {
        let entry = self.find(id)?;
        entry.note_use();
        Ok(entry.answer.subscribe())
    }

    /// Stops a search.
    pub(super) fn stop(&self, id: &str) -> ApiResult<()> {
        self.find(id)?.stop.store(true, Relaxed);
        Ok(())
    }

    /// Resumes a search that has ended, in the same tree.
    pub(super) fn resume(&self, id: &str, limits: Limits) -> ApiResult<()> {
        limits.check()?;
        let entries = self.lock();
        let entry = Self::find_in(&entries, id)?;
        self.check_room(&entries)?;
        let mut ending = entry.ending();
        let Some(search) = ending.search.take() else {
            let state = entry.answer.borrow().state;
            return Err(ApiError::conflict(match state {
                SearchState::Running => {
                    format!("search {id} is still running: stop it before it is resumed")
                }
                SearchState::Failed => format!("search {id} has failed: start a new search"),
                SearchState::Done | SearchState::Stopped => format!(
                    "search {id} can't be resumed, because its tree was dropped after its end: start a new search"
                ),
            }));
        };
        ending.ended = None;
        entry.note_use();
        entry.stop.store(false, Relaxed);
        entry
            .answer
            .send_modify(|answer| answer.state = SearchState::Running);
        drop(ending);
        drop(entries);
        self.run(entry, limits, Some(search))
    }

    fn find(&self, id: &str) -> ApiResult<Arc<Entry>> {
        Self::find_in(&self.lock(), id)
    }

    /// Drops the trees that are too old at a moment.
    #[cfg(test)]
    pub(super) fn drop_old_trees(&self, now: Instant) {
        drop_old_trees(&self.lock(), now);
    }

    fn find_in(entries: &Entries, id: &str) -> ApiResult<Arc<Entry>> {
        let number = id.parse().ok();
        let found = number.and_then(|number: u64| entries.get(&number).cloned());
        found.ok_or_else(|| {
            ApiError::missing(format!(
                "there is no search {id}, or it ended long ago: start a new search"
            ))
        })
    }

    fn lock(&self) -> MutexGuard<'_, Entries> {
        lock(&self.entries)
    }
}

/// A random number, so that a page doesn't take another search for its own after the server was started again.
pub(super) fn first_number() -> AtomicU64 {
    AtomicU64::new(rand::random::<u32>().into())
}

fn lock(entries: &Mutex<Entries>) -> MutexGuard<'_, Entries> {
    entries.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Drops the trees of ended searches in time, as long as there is the server.
fn drop_trees_in_time(entries: &Weak<Mutex<Entries>>) {
    loop {
        std::thread::sleep(TIDY_TIME);
        let Some(entries) = entries.upgrade() else {
            return;
        };
        drop_old_trees(&lock(&entries), Instant::now());
    }
}

/// Drops the trees of searches that ended too long ago, and of all but the last ones.
fn drop_old_trees(entries: &Entries, now: Instant) {
    let mut endings: Vec<_> = entries.values().map(|entry| entry.ending()).collect();
    endings.retain(|ending| ending.search.is_some());
    endings.sort_by_key(|ending| std::cmp::Reverse(ending.ended));
    for (index, ending) in endings.iter_mut().enumerate() {
        let age = ending
            .ended
            .map(|ended| now.saturating_duration_since(ended));
        if index >= MOST_TREES || age >= Some(TREE_TIME) {
            ending.search = None;
        }
    }
}

impl Drop for Searches {
    fn drop(&mut self) {
        for entry in self.lock().values() {
            entry.stop.store(true, Relaxed);
        }
    }
}

impl Entry {
    fn ending(&self) -> MutexGuard<'_, Ending> {
        self.ending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn last_use(&self) -> MutexGuard<'_, Instant> {
        self.last_use.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note_use(&self) {
        *self.last_use() = Instant::now();
    }

    /// Stops the search if it is abandoned.
    fn check_listeners(&self) {
        if self.answer.receiver_count() > 0 {
            self.note_use();
        }
        if self.last_use().elapsed() > ABANDONED_TIME {
            self.stop.store(true, Relaxed);
        }
    }

    fn is_running(&self) -> bool {
        self.answer.borrow().state == SearchState::Running
    }

    /// Searches on the calling thread. Answers with the tree, or with the reason of the failure.
    fn work(
        &self,
        players: &Players,
        limits: Limits,
        search: Option<Box<Search>>,
    ) -> Result<Box<Search>, String> {
        let _guard = PanicGuard(self);
        let searched = match players.open(&self.player) {
            Ok(mut evaluator) => {
                let searched = self.search(players, &mut evaluator, limits, search);
                players.give_back(evaluator);
                searched.map_err(ApiError::from)
            }
            Err(error) => Err(error),
        };
        searched.map_err(|error| error.message())
    }

    /// Ends the search with its tree, or with the reason of its failure.
    fn end(&self, searched: Result<Box<Search>, String>) {
        let mut ending = self.ending();
        ending.ended = Some(Instant::now());
        let (state, error) = match searched {
            Ok(search) => {
                ending.search = Some(search);
                match self.stop.load(Relaxed) {
                    true => (SearchState::Stopped, None),
                    false => (SearchState::Done, None),
                }
            }
            Err(reason) => (SearchState::Failed, Some(reason)),
        };
        self.answer
            .send_modify(|answer| (answer.state, answer.error) = (state, error));
    }

    fn search(
        &self,
        players: &Players,
        evaluator: &mut NamedEvaluator,
        limits: Limits,
        search: Option<Box<Search>>,
    ) -> anyhow::Result<Box<Search>> {
        let (position, history) = (self.game.position(), self.game.history());
        let evaluator = evaluator.evaluator.as_mut();
        let options = limits.options(players, evaluator.leaves_at_once());
        let mut search = match search {
            Some(mut search) => {
                search.reuse_tree(position, history, options)?;
                search
            }
            None => Box::new(Search::new(position, history, options)?),
        };
        search.stop_with(Arc::clone(&self.stop));
        let before = self
            .answer
            .borrow()
            .report
            .as_ref()
            .map_or_else(|| (0, 0.0), |report| (report.evaluations, report.seconds));
        let mut answers = Evaluations::default();
        let mut rng = rand::rng();
        let mut reported = Instant::now();
        while evaluate_leaves(&mut search, evaluator, history, &mut rng, &mut answers)?.is_some() {
            if reported.elapsed() >= REPORT_TIME {
                self.check_listeners();
                self.report(&search, before);
                reported = Instant::now();
            }
        }
        self.report(&search, before);
        Ok(search)
    }

    fn report(&self, search: &Search, before: (u32, f64)) {
        let report = Report::new(search.report(self.lines), self.label, before);
        self.answer
            .send_modify(|answer| answer.report = Some(report));
    }
}

/// Searches until the search is over or stopped.
pub(super) fn finish(
    search: &mut Search,
    evaluator: &mut dyn Evaluator,
    history: &History,
    rng: &mut impl Rng,
) -> anyhow::Result<()> {
    let mut answers = Evaluations::default();
    while evaluate_leaves(search, evaluator, history, rng, &mut answers)?.is_some() {}
    Ok(())
}

/// Ends the search of a thread that panics.
struct PanicGuard<'a>(&'a Entry);

impl Drop for PanicGuard<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let reason = "the search panicked: please report the position";
            self.0.end(Err(reason.into()));
        }
    }
}
