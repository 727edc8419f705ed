//! Live searches: each on a thread of its own. All requests for a search share its newest report.

use super::error::{ApiError, ApiResult};
use super::players::Players;
use super::registry::{ABANDONED_TIME, Entries, Kind, Registry, Work, WorkState, lock};
use super::search_messages::{Limits, SearchAnswer, SearchRequest, SearchUpdate};
use crate::worker::batch::search_to_end;
use anyhow::Context;
use arimaa::notation::TurnLabel;
use arimaa::rules::Game;
use engine::search::{Evaluator, Search};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// How long an ended search is kept.
const KEPT_TIME: Duration = Duration::from_secs(600);

/// Ended searches that keep their trees.
const MAX_TREES: usize = 2;

/// How long an ended search keeps its tree.
pub(super) const TREE_TIME: Duration = Duration::from_secs(120);

/// The time between two looks for abandoned searches and trees to drop.
const TIDY_TIME: Duration = Duration::from_secs(5);

/// The time between two reports.
const REPORT_TIME: Duration = Duration::from_millis(250);

/// All searches of a server.
pub(super) struct Searches {
    players: Arc<Players>,
    pub(super) registry: Registry<Entry>,
}

pub(super) struct Entry {
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
        let registry = Registry::new();
        let entries = Arc::downgrade(&registry.entries);
        std::thread::Builder::new()
            .name("search-trees".into())
            .spawn(move || tidy_in_time(&entries))
            .context("can't start the thread that ends abandoned searches")?;
        Ok(Self { players, registry })
    }

    /// Starts a search, and returns its number.
    pub(super) fn start(&self, request: &SearchRequest) -> ApiResult<String> {
        let limits = request.limits()?;
        let game = request.game.unfinished_game()?;
        self.players.check(&request.player)?;
        let number = self.registry.next_number();
        let label = TurnLabel::due(&game);
        let answer = SearchAnswer {
            search: number.to_string(),
            player: request.player.clone(),
            label: label.to_string(),
            state: WorkState::Running,
            error: None,
            report: None,
        };
        let entry = Arc::new(Entry {
            player: request.player.clone(),
            lines: request.lines,
            game,
            label,
            stop: Arc::default(),
            answer: watch::Sender::new(answer),
            last_use: Mutex::new(Instant::now()),
            ending: Mutex::default(),
        });
        self.registry.lock().admit(number, Arc::clone(&entry))?;
        self.run(&entry, limits, None)?;
        Ok(number.to_string())
    }

    fn run(
        &self,
        entry: &Arc<Entry>,
        limits: Limits,
        search: Option<Box<Search>>,
    ) -> ApiResult<()> {
        let players = Arc::clone(&self.players);
        let entries = Arc::clone(&self.registry.entries);
        self.registry.run(entry, move |entry| {
            let searched = entry.work(&players, limits, search);
            // A request that sees its end must find no more trees than the limit.
            let entries = lock(&entries);
            entry.end(searched);
            drop_old_trees(&entries, Instant::now());
        })
    }

    /// The newest report of a search, and the channel of those that follow.
    pub(super) fn watch(&self, id: &str) -> ApiResult<watch::Receiver<SearchAnswer>> {
        let entry = self.registry.find(id)?;
        entry.note_use();
        Ok(entry.answer.subscribe())
    }

    /// Resumes a search that has ended, in the same tree.
    pub(super) fn resume(&self, id: &str, limits: Limits) -> ApiResult<()> {
        limits.check()?;
        let entries = self.registry.lock();
        let entry = entries.find(id)?;
        entries.check_room()?;
        let mut ending = entry.ending();
        let Some(search) = ending.search.take() else {
            let state = entry.answer.borrow().state;
            return Err(ApiError::conflict(match state {
                WorkState::Running => {
                    format!("search {id} is still running: stop it before it is resumed")
                }
                WorkState::Failed => format!("search {id} has failed: start a new search"),
                WorkState::Done | WorkState::Stopped => format!(
                    "search {id} can't be resumed, because its tree was dropped after its end: start a new search"
                ),
            }));
        };
        ending.ended = None;
        entry.note_use();
        entry.stop.store(false, Relaxed);
        entry
            .answer
            .send_modify(|answer| answer.state = WorkState::Running);
        drop(ending);
        drop(entries);
        self.run(&entry, limits, Some(search))
    }

    /// Drops the trees that are too old at a moment.
    #[cfg(test)]
    pub(super) fn drop_old_trees(&self, now: Instant) {
        drop_old_trees(&self.registry.lock(), now);
    }
}

/// Ends abandoned searches and drops the trees of ended ones, as long as there is the server.
fn tidy_in_time(entries: &Weak<Mutex<Entries<Entry>>>) {
    loop {
        std::thread::sleep(TIDY_TIME);
        let Some(entries) = entries.upgrade() else {
            return;
        };
        let entries = lock(&entries);
        let running = entries.all().filter(|entry| entry.is_running());
        running.for_each(|entry| entry.check_listeners());
        drop_old_trees(&entries, Instant::now());
    }
}

/// Drops the trees of searches that ended too long ago, and of all but the last ones.
fn drop_old_trees(entries: &Entries<Entry>, now: Instant) {
    let mut endings: Vec<_> = entries.all().map(|entry| entry.ending()).collect();
    endings.retain(|ending| ending.search.is_some());
    endings.sort_by_key(|ending| std::cmp::Reverse(ending.ended));
    for (index, ending) in endings.iter_mut().enumerate() {
        let age = ending
            .ended
            .map(|ended| now.saturating_duration_since(ended));
        if index >= MAX_TREES || age >= Some(TREE_TIME) {
            ending.search = None;
        }
    }
}

impl Work for Entry {
    const KIND: Kind = Kind {
        most_running: 4,
        most_kept: 16,
        name: "search",
        plural: "searches",
        another: "a new search",
        subject: "position",
    };

    fn is_running(&self) -> bool {
        self.answer.borrow().state == WorkState::Running
    }

    fn stop(&self) -> &AtomicBool {
        &self.stop
    }

    fn fail(&self, reason: String) {
        self.end(Err(reason));
    }

    fn is_outdated(&self) -> bool {
        let ended = self.ending().ended;
        ended.is_some_and(|ended| ended.elapsed() >= KEPT_TIME)
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

    /// Searches on the calling thread. Answers with the tree, or with the reason of the failure.
    fn work(
        &self,
        players: &Players,
        limits: Limits,
        search: Option<Box<Search>>,
    ) -> Result<Box<Search>, String> {
        let searched = players.with(&self.player, |evaluator| {
            self.search(players, evaluator, limits, search)
        });
        searched.map_err(|error| error.message())
    }

    /// Ends the search with its tree, or with the reason of its failure.
    fn end(&self, searched: Result<Box<Search>, String>) {
        let mut ending = self.ending();
        ending.ended = Some(Instant::now());
        let (state, error) = match searched {
            Ok(search) => {
                ending.search = Some(search);
                if self.stop.load(Relaxed) {
                    (WorkState::Stopped, None)
                } else {
                    (WorkState::Done, None)
                }
            }
            Err(reason) => (WorkState::Failed, Some(reason)),
        };
        self.answer
            .send_modify(|answer| (answer.state, answer.error) = (state, error));
    }

    fn search(
        &self,
        players: &Players,
        evaluator: &mut dyn Evaluator,
        limits: Limits,
        search: Option<Box<Search>>,
    ) -> anyhow::Result<Box<Search>> {
        let (position, history) = (self.game.position(), self.game.history());
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
        let mut reported = Instant::now();
        search_to_end(
            &mut search,
            evaluator,
            history,
            &mut rand::rng(),
            |search| {
                if reported.elapsed() >= REPORT_TIME {
                    self.report(search, before);
                    reported = Instant::now();
                }
            },
        )?;
        self.report(&search, before);
        Ok(search)
    }

    fn report(&self, search: &Search, before: (u32, f64)) {
        let report = SearchUpdate::new(search.report(self.lines), self.label, before);
        self.answer
            .send_modify(|answer| answer.report = Some(report));
    }
}
