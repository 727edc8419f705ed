//! Whole-game analysis: a search before each turn of a game, and what the turn lost against the best one.

use super::error::{ApiError, ApiResult};
use super::players::{NamedEvaluator, Players};
use super::rules::GameText;
use super::searches::{ABANDONED_TIME, Limits};
use crate::worker::batch::evaluate_leaves;
use anyhow::Result;
use arimaa::notation::{TurnLabel, format_turn};
use arimaa::rules::{Game, Phase, Side};
use engine::search::{Evaluations, Search};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use tokio::sync::watch;

/// Analyses that run at once.
const MOST_RUNNING: usize = 2;

/// Analyses that are kept.
const MOST_KEPT: usize = 8;

/// The most evaluations of each position.
const MOST_EVALUATIONS: u32 = 100_000;

/// The losses of win probability from which a turn is marked.
const MARKS: [(f32, &str); 3] = [(0.2, "blunder"), (0.1, "mistake"), (0.05, "inaccuracy")];

/// `POST /api/reviews`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ReviewRequest {
    game: GameText,
    player: String,
    evaluations: u32,
}

/// What a turn was worth. Values are none in the setup.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct ReviewedTurn {
    index: usize,
    label: String,
    turn: String,
    gold_value_before: Option<f32>,
    gold_value_after: Option<f32>,
    best: Option<String>,
    loss: Option<f32>,
    mark: Option<&'static str>,
}

/// An analysis as far as it has come.
#[derive(Debug, Clone, Default)]
pub(super) struct Progress {
    pub(super) turns: Vec<ReviewedTurn>,
    pub(super) has_ended: bool,
    /// Why it ended before the last turn.
    pub(super) error: Option<String>,
}

/// The analyses of a server.
pub(super) struct Reviews {
    players: Arc<Players>,
    entries: Mutex<BTreeMap<u64, Arc<Entry>>>,
    next: AtomicU64,
}

struct Entry {
    player: String,
    limits: Limits,
    game: Game,
    stop: Arc<AtomicBool>,
    progress: watch::Sender<Progress>,
}

impl Reviews {
    pub(super) fn new(players: Arc<Players>) -> Self {
        Self {
            players,
            entries: Mutex::default(),
            next: AtomicU64::new(1),
        }
    }

    /// Starts an analysis, and returns its number.
    pub(super) fn start(&self, request: &ReviewRequest) -> ApiResult<String> {
        if !(1..=MOST_EVALUATIONS).contains(&request.evaluations) {
            return Err(ApiError::wrong(format!(
                "evaluations are a number from 1 to {MOST_EVALUATIONS}"
            )));
        }
        self.players.check(&request.player)?;
        let entry = Arc::new(Entry {
            player: request.player.clone(),
            limits: Limits::of_evaluations(request.evaluations),
            game: request.game.game()?,
            stop: Arc::default(),
            progress: watch::Sender::new(Progress::default()),
        });
        let mut entries = self.lock();
        let is_running = |entry: &Arc<Entry>| !entry.progress.borrow().has_ended;
        if entries.values().filter(|entry| is_running(entry)).count() >= MOST_RUNNING {
            return Err(ApiError::busy(format!(
                "{MOST_RUNNING} analyses of games run at once: stop one"
            )));
        }
        while entries.len() >= MOST_KEPT
            && let Some(ended) = entries.iter().find(|(_, entry)| !is_running(entry))
        {
            let ended = *ended.0;
            entries.remove(&ended);
        }
        let id = self.next.fetch_add(1, Relaxed);
        let players = Arc::clone(&self.players);
        let to_work = Arc::clone(&entry);
        let thread = std::thread::Builder::new().name(format!("review-{id}"));
        thread
            .spawn(move || to_work.work(&players))
            .map_err(ApiError::failed)?;
        entries.insert(id, entry);
        Ok(id.to_string())
    }

    /// The turns so far, and the channel of those that follow.
    pub(super) fn watch(&self, id: &str) -> ApiResult<watch::Receiver<Progress>> {
        Ok(self.find(id)?.progress.subscribe())
    }

    /// Stops an analysis.
    pub(super) fn stop(&self, id: &str) -> ApiResult<()> {
        self.find(id)?.stop.store(true, Relaxed);
        Ok(())
    }

    fn find(&self, id: &str) -> ApiResult<Arc<Entry>> {
        let number = id.parse::<u64>().ok();
        let found = number.and_then(|number| self.lock().get(&number).cloned());
        found.ok_or_else(|| {
            ApiError::missing(format!("there is no analysis {id}, or it ended long ago"))
        })
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Entry>>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Reviews {
    fn drop(&mut self) {
        for entry in self.lock().values() {
            entry.stop.store(true, Relaxed);
        }
    }
}

/// What a search says of a position.
struct Finding {
    gold_value: f32,
    best: Option<String>,
}

impl Entry {
    fn work(&self, players: &Players) {
        let _guard = EndGuard(self);
        let reviewed = players.open(&self.player).and_then(|mut evaluator| {
            let reviewed = self.review(players, &mut evaluator);
            players.give_back(evaluator);
            reviewed.map_err(ApiError::from)
        });
        let error = reviewed.err().map(|error| error.message());
        self.progress.send_modify(|progress| progress.error = error);
    }

    fn review(&self, players: &Players, evaluator: &mut NamedEvaluator) -> Result<()> {
        let mut game = Game::from_position(*self.game.start());
        let mut before = self.find(&game, players, evaluator)?;
        let mut listened = Instant::now();
        for (index, turn) in self.game.turns().iter().enumerate() {
            let label = TurnLabel::due(&game);
            let text = format_turn(turn, game.position());
            let is_setup = game.position().phase() == Phase::Setup;
            game.play(turn)?;
            let after = self.find(&game, players, evaluator)?;
            if self.stop.load(Relaxed) {
                return Ok(());
            }
            let values = before.as_ref().zip(after.as_ref()).filter(|_| !is_setup);
            let loss = values.map(|(before, after)| {
                // Two searches of one turn differ by chance.
                if before.best.as_ref() == Some(&text) {
                    return 0.0;
                }
                let gained = after.gold_value - before.gold_value;
                let lost = if label.side == Side::Gold {
                    -gained
                } else {
                    gained
                };
                lost.max(0.0)
            });
            let reviewed = ReviewedTurn {
                index,
                label: label.to_string(),
                turn: text,
                gold_value_before: values.map(|(before, _)| before.gold_value),
                gold_value_after: values.map(|(_, after)| after.gold_value),
                best: values.and_then(|(before, _)| before.best.clone()),
                mark: loss.and_then(|loss| {
                    MARKS
                        .iter()
                        .find(|(from, _)| loss >= *from)
                        .map(|(_, mark)| *mark)
                }),
                loss,
            };
            self.progress
                .send_modify(|progress| progress.turns.push(reviewed));
            if self.progress.receiver_count() > 0 {
                listened = Instant::now();
            } else if listened.elapsed() > ABANDONED_TIME {
                return Ok(());
            }
            before = after;
        }
        Ok(())
    }

    /// The value of a position and its best turn; none in the setup.
    fn find(
        &self,
        game: &Game,
        players: &Players,
        evaluator: &mut NamedEvaluator,
    ) -> Result<Option<Finding>> {
        if let Some(outcome) = game.outcome() {
            return Ok(Some(Finding {
                gold_value: if outcome.winner == Side::Gold {
                    1.0
                } else {
                    0.0
                },
                best: None,
            }));
        }
        if game.position().phase() == Phase::Setup {
            return Ok(None);
        }
        let evaluator = evaluator.evaluator.as_mut();
        let options = self.limits.options(players, evaluator.leaves_at_once());
        let mut search = Search::new(game.position(), game.history(), options)?;
        search.stop_with(Arc::clone(&self.stop));
        let (mut answers, mut rng) = (Evaluations::default(), rand::rng());
        while evaluate_leaves(
            &mut search,
            evaluator,
            game.history(),
            &mut rng,
            &mut answers,
        )?
        .is_some()
        {}
        let report = search.report(1);
        let best = report.turns.iter().find(|turn| turn.is_chosen);
        let best = best.map(|turn| turn.turn.clone());
        // A stop may come before the first evaluation.
        Ok(report
            .gold_value
            .map(|gold_value| Finding { gold_value, best }))
    }
}

/// Ends an analysis, also one whose thread panics.
struct EndGuard<'a>(&'a Entry);

impl Drop for EndGuard<'_> {
    fn drop(&mut self) {
        self.0.progress.send_modify(|progress| {
            if std::thread::panicking() {
                progress.error = Some("the analysis panicked: please report the game".into());
            }
            progress.has_ended = true;
        });
    }
}
