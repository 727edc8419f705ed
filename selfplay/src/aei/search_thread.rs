//! The thread that thinks: it owns the evaluator and the search, takes orders, and says what it finds.

use super::findings::{Openness, Teller};
use super::messages::{Event, Order, SearchMessage, SearchTask};
use super::options::Setups;
use super::setups::known_setup;
use super::stages::{is_over, next_stage};
use crate::worker::devices::Devices;
use crate::worker::player::{Player, PlayerName};
use anyhow::{Context, Result, ensure};
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

/// How the thread works.
#[derive(Debug, Clone)]
pub(super) struct Method {
    pub(super) devices: Devices,
    /// Those that evaluate a network on the processor.
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
        .name("thinker".into())
        .spawn(work)
        .context("can't start the thinking thread")?;
    Ok(sender)
}

/// Tells the session if the thread panics: it would wait for ever.
struct Guard(Sender<Event>);

impl Drop for Guard {
    fn drop(&mut self) {
        if thread::panicking() {
            let failed = SearchMessage::Failed("the thinking thread panicked".into());
            let _ = self.0.send(Event::SearchMessage(failed));
        }
    }
}

/// How many turns are tried before one that loses at once is accepted: some ten milliseconds, and all of nearly every position.
const LOST_TURN_CHECKS: u32 = 20_000;

/// The most seconds that may go into keeping what was found on the turns before: a `stop` has to wait for it. A network takes minutes
/// to find as much as that.
const KEEPING: f64 = 0.025;
/// No more of a turn's target goes into it either.
const KEEPING_PART: f64 = 0.15;
/// Seconds for each byte, until it is known better.
const KEEPING_OF_BYTE: f64 = 1e-9;
/// Bytes of a tree that say something of how long keeping it takes.
const TELLING_BYTES: usize = 1 << 20;

/// The evaluations that a network makes before it says that it is ready: the first ones are slow. Controllers don't wait for ever:
/// after a time no more are begun.
const WARM_UP: [usize; 3] = [32, 1, 32];
const WARM_UP_TIME: Duration = Duration::from_secs(1);

/// After so long the slowest batch that was seen counts half: one that had to wait for other work says little of the next ones.
const SLOWEST_HALVES: Duration = Duration::from_secs(2);

struct SearchThread {
    method: Method,
    events: Sender<Event>,
    evaluator: Option<Box<dyn Evaluator>>,
    has_network: bool,
    search: Option<Search>,
    rng: ChaCha8Rng,
    /// The slowest batch that was seen, older ones counting less and less; and when it was last looked at.
    slowest: Duration,
    slowest_at: Instant,
    /// What making a report took last.
    report_cost: Duration,
    /// Seconds for each byte of a tree that is kept.
    keeping: f64,
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
            keeping: KEEPING_OF_BYTE,
        }
    }

    fn work(mut self, orders: &Receiver<Order>) {
        for order in orders {
            let thought = match order {
                Order::Load(name) => match self.load(&name) {
                    Ok(()) => SearchMessage::Loaded,
                    Err(error) => SearchMessage::NotLoaded(format!("{error:#}")),
                },
                Order::Think(job) => match self.think(&job) {
                    Ok((turn, is_known)) => SearchMessage::Decided {
                        number: job.number,
                        turn,
                        is_known,
                        cost: self.cost(&job),
                    },
                    Err(error) => SearchMessage::Failed(format!("{error:#}")),
                },
            };
            if self.events.send(Event::SearchMessage(thought)).is_err() {
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

    /// A job's turn, and whether it is one of the known setups.
    fn think(&mut self, job: &SearchTask) -> Result<(String, bool)> {
        let sets_up = job.position.phase() == Phase::Setup;
        let knows = match job.setups {
            Setups::Known => true,
            Setups::Search => false,
            Setups::Auto => !self.has_network,
        };
        if sets_up
            && knows
            && let Some(setup) = known_setup(&job.position, &mut self.rng)
        {
            return Ok((format_turn(&Turn::Setup(setup), &job.position), true));
        }
        let mut teller = Teller::new(job.lines);
        let mut end = job.times.map(|times| match times.saves {
            true => times.target / 2,
            false => times.target,
        });
        let mut before = None;
        loop {
            let time = end.map(|end| end.saturating_sub(job.begun.elapsed()));
            let mut search = self.begin(job, self.options(job, time))?;
            let result = self.run(job, &mut search, &mut teller);
            let search = self.search.insert(search);
            let decision = result?;
            let turn = format_turn(&decision.turn, &job.position);
            let next = match (job.times, end) {
                (Some(times), Some(end)) if !is_over(job, &decision, end) => {
                    let openness = Openness::of(search, before.as_deref());
                    next_stage(&times, end, job.begun.elapsed(), &openness)
                }
                _ => None,
            };
            if next.is_none() {
                self.tell_last(job, &mut teller);
                return Ok((turn, false));
            }
            teller.count(&decision);
            (before, end) = (Some(turn), next);
        }
    }

    /// The only place that says how a turn is searched.
    fn options(&self, job: &SearchTask, time: Option<Duration>) -> SearchOptions {
        let budget = Budget {
            evaluations: job.evaluations,
            visits: None,
            time: time.map(|time| time.max(Duration::from_millis(1))),
            stops_when_decided: time.is_some() || job.evaluations.is_some(),
            memory_mib: job.memory_mib,
        };
        let mut options = SearchOptions {
            loss_proof_limit: Some(LOST_TURN_CHECKS),
            ..SearchOptions::strongest_within(&self.method.search, budget)
        };
        if self.method.search.parallel_leaves.number().is_none()
            && let Some(evaluator) = &self.evaluator
        {
            options.parallel_leaves = evaluator.leaves_at_once();
        }
        options
    }

    /// The search at the job's position, with what it holds of the turns before unless keeping that would take too long.
    fn begin(&mut self, job: &SearchTask, options: SearchOptions) -> Result<Search, SearchError> {
        let Some(mut search) = self.search.take() else {
            let mut search = Search::new(&job.position, &job.history, options)?;
            search.stop_with(Arc::clone(&job.flag));
            return Ok(search);
        };
        search.stop_with(Arc::clone(&job.flag));
        let bytes = search.bytes();
        let expected = self.keeping * bytes as f64;
        let allowed = job.times.map_or(KEEPING, |times| {
            KEEPING.min(KEEPING_PART * times.target.as_secs_f64())
        });
        if expected > allowed {
            search.restart(&job.position, &job.history, options)?;
            return Ok(search);
        }
        let begun = Instant::now();
        search.reuse_tree(&job.position, &job.history, options)?;
        if bytes > TELLING_BYTES {
            let seconds = begun.elapsed().as_secs_f64() / bytes as f64;
            self.keeping = seconds.max(0.8 * self.keeping);
        }
        Ok(search)
    }

    /// Searches until the turn is decided.
    fn run(
        &mut self,
        job: &SearchTask,
        search: &mut Search,
        teller: &mut Teller,
    ) -> Result<Decision> {
        let evaluator = self.evaluator.as_mut().context("no network is loaded")?;
        let mut answers = Evaluations::default();
        let mut is_first = teller.is_at_first_stage();
        if is_first {
            tell_best(&self.events, job, search);
        }
        loop {
            let queries = search.leaves(&job.history, &mut self.rng);
            let count = queries.len();
            if count == 0 {
                let decision = search.decision();
                return Ok(decision
                    .context("the search ended without a decision")?
                    .clone());
            }
            let begun = Instant::now();
            evaluator.evaluate(queries, &mut answers)?;
            let since = self.slowest_at.elapsed().div_duration_f64(SLOWEST_HALVES);
            let slowest = self.slowest.mul_f64((-since).exp2());
            (self.slowest, self.slowest_at) = (begun.elapsed().max(slowest), Instant::now());
            ensure!(
                answers.len() == count,
                "{}: {} answers came for {count} step states",
                evaluator.name(),
                answers.len()
            );
            for (index, answer) in (0..count).filter_map(|index| Some((index, answers.get(index)?)))
            {
                search.answer(index, evaluator.name(), answer)?;
            }
            if std::mem::take(&mut is_first) {
                tell_best(&self.events, job, search);
            }
            let passed = job.begun.elapsed();
            let reserved = 2 * (self.slowest + self.report_cost);
            if job
                .times
                .is_some_and(|times| passed + reserved >= times.most)
            {
                search.stop();
            }
            if teller.is_due(passed) {
                let begun = Instant::now();
                let (infos, best) = teller.tell(search, passed);
                self.report_cost = begun.elapsed();
                teller.wait(passed, self.report_cost);
                let number = job.number;
                let found = SearchMessage::Found {
                    number,
                    infos,
                    best,
                };
                // Who is gone needs nothing.
                let _ = self.events.send(Event::SearchMessage(found));
            }
            if let Some(depth) = job.depth
                && teller.is_deep(search, depth, passed)
            {
                search.stop();
            }
        }
    }

    /// Tells what the search ended with, unless that is wanted at once.
    fn tell_last(&mut self, job: &SearchTask, teller: &mut Teller) {
        let Some(search) = &self.search else { return };
        let passed = job.begun.elapsed();
        let is_late = job
            .times
            .is_some_and(|times| passed + 2 * self.report_cost > times.most);
        let is_hurried = job.flag.load(Relaxed) && self.report_cost > Duration::from_millis(5);
        if is_late || is_hurried {
            return;
        }
        let (infos, best) = teller.tell(search, passed);
        let found = SearchMessage::Found {
            number: job.number,
            infos,
            best,
        };
        let _ = self.events.send(Event::SearchMessage(found));
    }

    fn cost(&self, job: &SearchTask) -> String {
        format!(
            "thought for {:.3} s, slowest batch {:.1} ms",
            job.begun.elapsed().as_secs_f64(),
            1e3 * self.slowest.as_secs_f64()
        )
    }
}

/// Lets the session know the best turn before there is anything worth telling: it may have to play it.
fn tell_best(events: &Sender<Event>, job: &SearchTask, search: &Search) {
    if let Some(best) = Teller::best(search) {
        let found = SearchMessage::Found {
            number: job.number,
            infos: Vec::new(),
            best: Some(best),
        };
        let _ = events.send(Event::SearchMessage(found));
    }
}
