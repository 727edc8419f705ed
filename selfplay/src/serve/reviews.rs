//! Whole-game analysis: a search before each turn of a game, and what the turn lost against the best one.

use super::error::{ApiError, ApiResult};
use super::players::Players;
use super::registry::{ABANDONED_TIME, Kind, Registry, Work, WorkState};
use super::rules::GameText;
use super::search_messages::Limits;
use crate::worker::batch::search_to_end;
use anyhow::Result;
use arimaa::notation::{TurnLabel, format_turn, parse_turn};
use arimaa::rules::{Game, Phase, Side};
use engine::search::{Evaluator, Search};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// The time that an analysis may search, from its start or from where it was resumed.
pub(super) const MAX_TIME: Duration = Duration::from_secs(1_800);

/// The most evaluations of each position.
const MAX_EVALUATIONS: u32 = 100_000;

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

/// An analysis as far as it has come: `GET /api/reviews/ID`.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Progress {
    pub(super) state: WorkState,
    /// Why it ended before the last turn.
    pub(super) error: Option<String>,
    pub(super) turns: Vec<ReviewedTurn>,
}

/// The analyses of a server.
pub(super) struct Reviews {
    players: Arc<Players>,
    most_time: Duration,
    pub(super) registry: Registry<Entry>,
}

pub(super) struct Entry {
    player: String,
    limits: Limits,
    game: Game,
    stop: Arc<AtomicBool>,
    progress: watch::Sender<Progress>,
}

impl Reviews {
    pub(super) fn new(players: Arc<Players>, most_time: Duration) -> Self {
        Self {
            players,
            most_time,
            registry: Registry::new(),
        }
    }

    /// Starts an analysis, and returns its number.
    pub(super) fn start(&self, request: &ReviewRequest) -> ApiResult<String> {
        if !(1..=MAX_EVALUATIONS).contains(&request.evaluations) {
            return Err(ApiError::wrong(format!(
                "`evaluations` must be a number from 1 to {MAX_EVALUATIONS}"
            )));
        }
        self.players.check(&request.player)?;
        let entry = Arc::new(Entry {
            player: request.player.clone(),
            limits: Limits::of_evaluations(request.evaluations),
            game: request.game.game()?,
            stop: Arc::default(),
            progress: watch::Sender::new(Progress {
                state: WorkState::Running,
                error: None,
                turns: Vec::new(),
            }),
        });
        let number = self.registry.next_number();
        self.registry.lock().admit(number, Arc::clone(&entry))?;
        self.run(&entry)?;
        Ok(number.to_string())
    }

    /// Resumes an analysis behind its last finished turn.
    pub(super) fn resume(&self, id: &str) -> ApiResult<()> {
        let entries = self.registry.lock();
        let entry = entries.find(id)?;
        let why_not = match entry.progress.borrow().state {
            WorkState::Running => Some("is still running: stop it before it is resumed"),
            WorkState::Done => Some("is complete: start a new one to analyze the game again"),
            WorkState::Stopped | WorkState::Failed => None,
        };
        if let Some(why_not) = why_not {
            return Err(ApiError::conflict(format!("analysis {id} {why_not}")));
        }
        entries.check_room()?;
        entry.stop.store(false, Relaxed);
        entry.progress.send_modify(|progress| {
            (progress.state, progress.error) = (WorkState::Running, None);
        });
        self.run(&entry)
    }

    fn run(&self, entry: &Arc<Entry>) -> ApiResult<()> {
        let (players, most_time) = (Arc::clone(&self.players), self.most_time);
        let work = move |entry: &Entry| entry.work(&players, most_time);
        self.registry.run(entry, work)
    }

    /// The turns so far, and the channel of those that follow.
    pub(super) fn watch(&self, id: &str) -> ApiResult<watch::Receiver<Progress>> {
        Ok(self.registry.find(id)?.progress.subscribe())
    }
}

impl Work for Entry {
    const KIND: Kind = Kind {
        most_running: 2,
        most_kept: 8,
        name: "analysis",
        plural: "analyses of games",
        another: "a new one",
        subject: "game",
    };

    fn is_running(&self) -> bool {
        self.progress.borrow().state == WorkState::Running
    }

    fn stop(&self) -> &AtomicBool {
        &self.stop
    }

    fn fail(&self, reason: String) {
        self.end(WorkState::Failed, Some(reason));
    }
}

/// Why an analysis ended before the last turn.
enum Cut {
    /// A request stopped it.
    Stopped,
    /// One of the server's limits, in words.
    Limit(String),
}

/// What a search says of a position.
struct Finding {
    gold_value: f32,
    best: Option<String>,
}

impl Entry {
    fn end(&self, state: WorkState, error: Option<String>) {
        self.progress
            .send_modify(|progress| (progress.state, progress.error) = (state, error));
    }

    fn work(&self, players: &Players, most_time: Duration) {
        let reviewed = players.with(&self.player, |evaluator| {
            self.review(players, evaluator, most_time)
        });
        match reviewed {
            Ok(None) => self.end(WorkState::Done, None),
            Ok(Some(Cut::Stopped)) => self.end(WorkState::Stopped, None),
            Ok(Some(Cut::Limit(why))) => self.end(WorkState::Stopped, Some(why)),
            Err(error) => self.end(WorkState::Failed, Some(error.message())),
        }
    }

    /// Resumes after the last finished turn.
    fn review(
        &self,
        players: &Players,
        evaluator: &mut dyn Evaluator,
        most_time: Duration,
    ) -> Result<Option<Cut>> {
        let end = Instant::now() + most_time;
        let mut listened = Instant::now();
        let done = self.progress.borrow().turns.len();
        let mut game = Game::from_position(*self.game.start());
        for turn in self.game.turns().iter().take(done) {
            game.play(turn)?;
        }
        let mut before = self.find(&game, players, evaluator, end)?;
        for (index, turn) in self.game.turns().iter().enumerate().skip(done) {
            let label = TurnLabel::due(&game);
            let text = format_turn(turn, game.position());
            let is_setup = game.position().phase() == Phase::Setup;
            // Another order of its steps is the same turn.
            let best = before.as_ref().and_then(|before| before.best.as_deref());
            let best = best.and_then(|best| parse_turn(best, game.position()).ok());
            let best = best.map(|best| game.position().after_turn_unchecked(&best));
            game.play(turn)?;
            let is_best = best.as_ref() == Some(game.position());
            let after = self.find(&game, players, evaluator, end)?;
            if self.stop.load(Relaxed) {
                return Ok(Some(Cut::Stopped));
            }
            if Instant::now() >= end {
                return Ok(Some(Cut::Limit(format!(
                    "it has searched for {} minutes, the limit: resume the analysis",
                    most_time.as_secs() / 60
                ))));
            }
            let values = before.as_ref().zip(after.as_ref()).filter(|_| !is_setup);
            let loss = values.map(|(before, after)| {
                // Two searches of one turn differ by chance.
                if is_best {
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
                return Ok(Some(Cut::Limit(
                    "no page has listened for a minute: resume the analysis".into(),
                )));
            }
            before = after;
        }
        Ok(None)
    }

    /// The value of a position and its best turn; none in the setup.
    fn find(
        &self,
        game: &Game,
        players: &Players,
        evaluator: &mut dyn Evaluator,
        end: Instant,
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
        let mut options = self.limits.options(players, evaluator.leaves_at_once());
        // A search needs some time.
        let left = end.saturating_duration_since(Instant::now());
        let left = left.max(Duration::from_millis(1));
        options.budget.time = options.budget.time.map(|time| time.min(left));
        let mut search = Search::new(game.position(), game.history(), options)?;
        search.stop_with(Arc::clone(&self.stop));
        let rng = &mut rand::rng();
        search_to_end(&mut search, evaluator, game.history(), rng, |_| ())?;
        let report = search.report(1);
        let best = report.turns.iter().find(|turn| turn.is_chosen);
        let best = best.map(|turn| turn.turn.clone());
        // A stop may come before the first evaluation.
        Ok(report
            .gold_value
            .map(|gold_value| Finding { gold_value, best }))
    }
}
