//! The search thread: it owns the evaluator and the search, takes orders, and reports what it finds.

use super::findings::Reporter;
use super::messages::{Event, Order, SearchMessage, SearchTask};
use super::no_search::known_setup;
use super::options::Setups;
use super::stages::{Openness, is_over, next_stage};
use crate::worker::batch::evaluate_leaves;
use crate::worker::devices::Devices;
use crate::worker::player::{Player, PlayerName};
use anyhow::{Context, Result};
use arimaa::aei::Info;
use arimaa::notation::format_turn;
use arimaa::rules::{History, Phase, Position, StepState, Turn};
use engine::config::SearchConfig;
use engine::search::{
    Budget, Decision, Evaluations, Evaluator, Query, Search, SearchError, SearchOptions,
};
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

/// The settings of the thread.
#[derive(Debug, Clone)]
pub(super) struct Method {
    pub(super) devices: Devices,
    /// Threads that evaluate a network on the CPU.
    pub(super) threads: usize,
    pub(super) search: SearchConfig,
    pub(super) seed: u64,
}

/// Starts the thread. It ends when the sender of its orders is dropped.
pub(super) fn start(method: Method, events: Sender<Event>) -> Result<Sender<Order>> {
    let (sender, orders) = channel();
    let work = move || {
        let _guard = Guard(events.clone());
        SearchThread::new(method, events).work(&orders);
    };
    thread::Builder::new()
        .name("search".into())
        .spawn(work)
        .context("can't start the search thread")?;
    Ok(sender)
}

/// Tells the session if the thread panics, so that it doesn't wait for an answer.
struct Guard(Sender<Event>);

impl Drop for Guard {
    fn drop(&mut self) {
        if thread::panicking() {
            let failed = SearchMessage::Failed("the search thread panicked".into());
            let _ = self.0.send(Event::SearchMessage(failed));
        }
    }
}

/// The most seconds for keeping the tree of the turns before: a `stop` has to wait for it.
const KEEPING: f64 = 0.25;
/// The largest part of a turn's target for it.
const KEEPING_PART: f64 = 0.15;
/// About the seconds for each step state of the tree, if half of it is kept: what is dropped takes little time
/// (`cargo bench -p engine --bench search`).
const KEEPING_OF_NODE: f64 = 4e-7;

/// Batches that a network evaluates before it is ready: the first ones are slow. Controllers have a limit: after a time no more are
/// begun.
const WARM_UP: [usize; 3] = [32, 1, 32];
const WARM_UP_TIME: Duration = Duration::from_secs(1);

/// The slowest batch counts half after this time: it may have waited for other work.
const SLOWEST_HALVES: Duration = Duration::from_secs(2);

struct SearchThread {
    method: Method,
    events: Sender<Event>,
    evaluator: Option<Box<dyn Evaluator>>,
    has_network: bool,
    search: Option<Search>,
    rng: ChaCha8Rng,
    /// The slowest batch, older ones counting less; and the time of its last update.
    slowest: Duration,
    slowest_at: Instant,
    /// The time of the last report.
    report_cost: Duration,
}

impl SearchThread {
    fn new(method: Method, events: Sender<Event>) -> Self {
        Self {
            rng: ChaCha8Rng::seed_from_u64(method.seed),
            method,
            events,
            evaluator: None,
            has_network: false,
            search: None,
            slowest: Duration::ZERO,
            slowest_at: Instant::now(),
            report_cost: Duration::ZERO,
        }
    }

    fn work(mut self, orders: &Receiver<Order>) {
        for order in orders {
            let message = match order {
                Order::Load(name) => match self.load(&name) {
                    Ok(()) => SearchMessage::Loaded,
                    Err(error) => SearchMessage::NotLoaded(format!("{error:#}")),
                },
                Order::Search(task) => match self.find_turn(&task) {
                    Ok((turn, is_known)) => SearchMessage::Decided {
                        number: task.number,
                        turn,
                        is_known,
                        cost: self.cost(&task),
                    },
                    Err(error) => SearchMessage::Failed(format!("{error:#}")),
                },
            };
            if self.events.send(Event::SearchMessage(message)).is_err() {
                return;
            }
        }
    }

    fn load(&mut self, name: &PlayerName) -> Result<()> {
        let evaluator = Player::open_alone(name, &self.method.devices, self.method.threads)?;
        let mut evaluator = evaluator.with_context(|| format!("{name} doesn't search"))?;
        let has_network = matches!(name, PlayerName::Network(_));
        if has_network {
            let state = StepState::new(&Position::INITIAL);
            let query = Query {
                state,
                legal: state.legal_actions(&History::default()),
                repetitions: 0,
            };
            let begun = Instant::now();
            for count in WARM_UP {
                if begun.elapsed() >= WARM_UP_TIME {
                    break;
                }
                let queries = vec![query; count];
                evaluator.evaluate(&queries, &mut Evaluations::default())?;
            }
        }
        self.evaluator = Some(evaluator);
        self.has_network = has_network;
        self.search = None;
        self.slowest = Duration::ZERO;
        Ok(())
    }

    /// The turn of a task, and whether it is a known setup.
    fn find_turn(&mut self, task: &SearchTask) -> Result<(String, bool)> {
        let sets_up = task.position.phase() == Phase::Setup;
        let knows = match task.setups {
            Setups::Known => true,
            Setups::Search => false,
            Setups::Auto => !self.has_network,
        };
        if sets_up
            && knows
            && let Some(setup) = known_setup(&task.position, &mut self.rng)
        {
            return Ok((format_turn(&Turn::Setup(setup), &task.position), true));
        }
        let mut reporter = Reporter::new(task.lines);
        let mut end = task.times.map(|times| {
            if times.saves && task.evaluations.is_none() {
                times.target / 2
            } else {
                times.target
            }
        });
        if !self.method.search.reuse_tree {
            self.search = None;
        }
        let mut before = None;
        loop {
            let time = end.map(|end| end.saturating_sub(task.begun.elapsed()));
            let options = self.options(task, time);
            let mut search = match self.search.take() {
                Some(mut search) if before.is_some() => {
                    search.resume(&task.history, options)?;
                    search
                }
                of_turn_before => Self::begin(of_turn_before, task, options)?,
            };
            let result = self.run(task, &mut search, &mut reporter);
            let search = self.search.insert(search);
            let decision = result?;
            // Another order of its steps is the same turn.
            let after = task.position.after_turn_unchecked(&decision.turn);
            let changed = before.is_some_and(|before| before != after);
            let next = match (task.times, end) {
                (Some(times), Some(end)) if end < times.most && !is_over(task, &decision, end) => {
                    let openness = Openness::of(search, changed);
                    next_stage(&times, end, task.begun.elapsed(), &openness)
                }
                _ => None,
            };
            if next.is_none() {
                self.tell_last(task, &mut reporter);
                return Ok((format_turn(&decision.turn, &task.position), false));
            }
            reporter.count(&decision);
            (before, end) = (Some(after), next);
        }
    }

    /// The options of a turn's search.
    fn options(&self, task: &SearchTask, time: Option<Duration>) -> SearchOptions {
        let budget = Budget {
            evaluations: task.evaluations,
            visits: None,
            time: time.map(|time| time.max(Duration::from_millis(1))),
            stops_when_decided: time.is_some() || task.evaluations.is_some(),
            memory_mib: task.memory_mib,
        };
        let mut options = SearchOptions::strongest_within(&self.method.search, budget);
        if self.method.search.parallel_leaves.fixed().is_none()
            && let Some(evaluator) = &self.evaluator
        {
            options.parallel_leaves = evaluator.leaves_at_once();
        }
        options
    }

    /// The search at the task's position, with the tree of the turns before unless keeping it would take too long.
    fn begin(
        search: Option<Search>,
        task: &SearchTask,
        options: SearchOptions,
    ) -> Result<Search, SearchError> {
        let Some(mut search) = search else {
            let mut search = Search::new(&task.position, &task.history, options)?;
            search.stop_with(Arc::clone(&task.flag));
            return Ok(search);
        };
        search.stop_with(Arc::clone(&task.flag));
        let expected = KEEPING_OF_NODE * search.nodes() as f64;
        let allowed = task.times.map_or(KEEPING, |times| {
            KEEPING.min(KEEPING_PART * times.target.as_secs_f64())
        });
        if expected > allowed {
            search.restart(&task.position, &task.history, options)?;
        } else {
            search.reuse_tree(&task.position, &task.history, options)?;
        }
        Ok(search)
    }

    /// Searches until the turn is decided.
    fn run(
        &mut self,
        task: &SearchTask,
        search: &mut Search,
        reporter: &mut Reporter,
    ) -> Result<Decision> {
        let evaluator = self.evaluator.as_mut().context("no network is loaded")?;
        let mut answers = Evaluations::default();
        let mut is_first = reporter.is_at_first_stage();
        if is_first {
            tell_best(&self.events, task, search);
        }
        let (history, rng) = (&task.history, &mut self.rng);
        while let Some(took) =
            evaluate_leaves(search, evaluator.as_mut(), history, rng, &mut answers)?
        {
            let since = self.slowest_at.elapsed().div_duration_f64(SLOWEST_HALVES);
            let slowest = self.slowest.mul_f64((-since).exp2());
            (self.slowest, self.slowest_at) = (took.max(slowest), Instant::now());
            if std::mem::take(&mut is_first) {
                tell_best(&self.events, task, search);
            }
            let passed = task.begun.elapsed();
            let reserved = 2 * (self.slowest + self.report_cost);
            if task
                .times
                .is_some_and(|times| passed + reserved >= times.most)
            {
                search.stop();
            }
            if reporter.is_due(passed) {
                let begun = Instant::now();
                let (infos, best) = reporter.tell(search, passed);
                self.report_cost = begun.elapsed();
                reporter.wait(passed, self.report_cost);
                send_found(&self.events, task, infos, best);
            }
            if let Some(depth) = task.depth
                && reporter.is_deep(search, depth, passed)
            {
                search.stop();
            }
        }
        let decision = search.decision();
        let decision = decision.context("the search ended without a decision")?;
        Ok(decision.clone())
    }

    /// Reports the end of the search, unless the turn is needed at once.
    fn tell_last(&mut self, task: &SearchTask, reporter: &mut Reporter) {
        let Some(search) = &self.search else { return };
        let passed = task.begun.elapsed();
        let is_late = task
            .times
            .is_some_and(|times| passed + 2 * self.report_cost > times.most);
        let is_hurried = task.flag.load(Relaxed) && self.report_cost > Duration::from_millis(5);
        if is_late || is_hurried {
            return;
        }
        let (infos, best) = reporter.tell(search, passed);
        send_found(&self.events, task, infos, best);
    }

    fn cost(&self, task: &SearchTask) -> String {
        format!(
            "searched for {:.3} s, slowest batch {:.1} ms",
            task.begun.elapsed().as_secs_f64(),
            1e3 * self.slowest.as_secs_f64()
        )
    }
}

/// Tells the session the best turn before the first report is due: it may have to play it.
fn tell_best(events: &Sender<Event>, task: &SearchTask, search: &Search) {
    if let Some(best) = Reporter::best(search) {
        send_found(events, task, Vec::new(), Some(best));
    }
}

/// Sends what a search has found. A session that has ended needs nothing.
fn send_found(events: &Sender<Event>, task: &SearchTask, infos: Vec<Info>, best: Option<String>) {
    let number = task.number;
    let _ = events.send(Event::SearchMessage(SearchMessage::Found {
        number,
        infos,
        best,
    }));
}
