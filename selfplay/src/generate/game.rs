//! One game of self-play.

use super::current_player::locked;
use super::log::GameLog;
use super::plan::{GamePlan, Part, random_numbers};
use super::resignation::{Effort, effort, resigning};
use super::starts::Begun;
use crate::worker::batch::{InPlay, Tally};
use crate::worker::turn_decider::{Decided, TurnDecider};
use anyhow::{Context, Result, bail};
use arimaa::rules::{Action, Game, Side};
use engine::config::{Config, ExplorationConfig, NetworkChange};
use engine::record::journal::{Beginning, GameInFlight};
use engine::record::{
    Ending, EvaluatorId, GameId, GameRecord, RowRecord, SearchKind, SearchRecord, Start,
    TurnOrigin, TurnRecord, WaivedResignation, quantize_policy,
};
use engine::search::{Decision, Evaluation, Query, SearchOptions, StateTarget};
use rand::rngs::ChaCha8Rng;
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// Recorded win probabilities are multiples of one over this: rounded values compress well.
const VALUE_STEPS: f32 = 65_536.0;
/// Recorded surprises are multiples of one over this, in nats.
const SURPRISE_STEPS: f32 = 4_096.0;
/// Recorded weights are multiples of one over this.
const WEIGHT_STEPS: f64 = 4_096.0;

/// What all games of a worker have in common.
#[derive(Clone)]
pub(crate) struct Setting {
    pub(crate) config: Arc<Config>,
    pub(crate) log: Arc<dyn GameLog>,
    /// The slot of the channel that evaluates new turns, and its evaluator.
    pub(crate) newest: Arc<Mutex<(usize, Arc<EvaluatorId>)>>,
}

/// A game that plays itself and keeps its record.
pub(crate) struct SelfplayGame {
    setting: Setting,
    beginning: Beginning,
    plan: GamePlan,
    /// The turns before this one are given, or drawn from the policy.
    policy_until: usize,
    game: Game,
    turns: Vec<TurnRecord>,
    evaluators: Vec<EvaluatorId>,
    /// The slot of the channel to its evaluator, and the evaluator's place in `evaluators`; none before the first turn.
    current_evaluator: Option<(usize, u16)>,
    /// The evaluator of the search's tree.
    searched_by: Option<u16>,
    rng: ChaCha8Rng,
    decider: TurnDecider,
    /// The evaluations of the present turn's search, and the weight of its rows.
    budget: u32,
    weight: f32,
    waived: Option<WaivedResignation>,
    /// The side that has resigned.
    resigned: Option<Side>,
}

impl SelfplayGame {
    /// A game before its first own turn. The seed, the id, the beginning and the evaluator determine all that follows.
    pub(crate) fn begin(setting: &Setting, seed: u64, id: GameId, begun: Begun) -> Result<Self> {
        let start = begun.start;
        let beginning = Beginning { id, seed, start };
        setting.log.begin(beginning)?;
        for (number, turn) in begun.turns.iter().enumerate() {
            setting.log.turn(id, number, turn)?;
        }
        let (evaluators, turns) = (Vec::new(), begun.turns);
        let in_flight = GameInFlight {
            beginning,
            evaluators,
            turns,
        };
        Self::resume(setting, in_flight)
    }

    /// Resumes a game whose turns so far are in the log.
    pub(crate) fn resume(setting: &Setting, in_flight: GameInFlight) -> Result<Self> {
        let GameInFlight {
            beginning,
            evaluators,
            turns,
        } = in_flight;
        let Beginning { id, seed, start } = beginning;
        let is_given = |turn: &&TurnRecord| turn.origin == TurnOrigin::Given;
        let given = turns.iter().take_while(is_given).count();
        let plan = GamePlan::draw(&setting.config.selfplay, seed, id);
        // A fork leaves its game by a turn of the policy.
        let is_fork = matches!(start, Start::Fork { .. });
        let policy_turns = plan.policy_turns.max(usize::from(is_fork));
        let mut this = Self {
            setting: setting.clone(),
            beginning,
            plan,
            policy_until: given + policy_turns,
            game: start.new_game()?,
            turns: Vec::new(),
            evaluators,
            current_evaluator: None,
            searched_by: None,
            rng: random_numbers(seed, id, Part::GamePlan),
            decider: TurnDecider::default(),
            budget: 0,
            weight: 1.0,
            waived: None,
            resigned: None,
        };
        for record in turns {
            let turn = record.turn_in(&this.game);
            this.game
                .play_unchecked(turn.with_context(|| format!("game {id}"))?);
            this.turns.push(record);
            // The game was played on after this turn: no side resigned then, whatever the present configuration says.
            this.consider_resignation();
            this.resigned = None;
        }
        this.consider_resignation();
        Ok(this)
    }

    /// The game as far as it was played, to be resumed later.
    pub(crate) fn suspend(self) -> GameInFlight {
        GameInFlight {
            beginning: self.beginning,
            evaluators: self.evaluators,
            turns: self.turns,
        }
    }

    /// Whether the game has ended: by the rules, by a resignation or by the turn limit.
    pub(crate) fn is_over(&self) -> bool {
        self.game.outcome().is_some()
            || self.resigned.is_some()
            || self.turns.len() >= self.config().selfplay.max_turns as usize
    }

    /// The turns played so far.
    pub(crate) fn turns(&self) -> usize {
        self.turns.len()
    }

    /// The number of the channel that evaluates its present turn; none before the first.
    pub(crate) fn slot(&self) -> Option<usize> {
        self.current_evaluator.map(|(slot, _)| slot)
    }

    /// The record of the game as it stands.
    pub(crate) fn into_record(mut self) -> GameRecord {
        let last_search = self.turns.iter().rev().find_map(TurnRecord::search);
        let value = last_search.map(|search| search.value);
        let targets = self.config().selfplay.targets;
        weigh_by_surprise(&mut self.turns, targets.surprise_share);
        let ending = match (self.game.outcome(), self.resigned) {
            (Some(outcome), _) => Ending::Won(outcome),
            (None, Some(loser)) => Ending::Resigned {
                winner: loser.opponent(),
            },
            (None, None) => {
                for row in self.turns.iter_mut().flat_map(|turn| &mut turn.rows) {
                    row.weight = rounded_weight(f64::from(row.weight * targets.truncated_weight));
                }
                Ending::Unfinished { value }
            }
        };
        let Beginning { id, seed, start } = self.beginning;
        GameRecord {
            id,
            seed,
            start,
            evaluators: self.evaluators,
            turns: self.turns,
            ending,
            resignation_waived: self.waived,
        }
    }

    fn config(&self) -> &Config {
        &self.setting.config
    }

    fn id(&self) -> GameId {
        self.beginning.id
    }

    /// Begins the next turn: its evaluator, and its search or sampler.
    fn begin_turn(&mut self) -> Result<()> {
        let number = self.turns.len();
        self.rng = random_numbers(self.beginning.seed, self.id(), Part::Turn(number));
        let evaluator = self.choose_evaluator()?;
        let config = Arc::clone(&self.setting.config);
        let selfplay = &config.selfplay;
        if number < self.policy_until {
            let temperature = selfplay.openings.policy_temperature;
            return self.decider.sample(&self.game, temperature);
        }
        let effort = effort(&self.turns, &selfplay.soft_resignation);
        self.budget = self.budget_of(effort);
        self.weight = effort.weight;
        let temperature = temperature(&selfplay.exploration, number);
        let options = SearchOptions::exploring(selfplay, self.budget, temperature);
        let is_another = self.searched_by.replace(evaluator) != Some(evaluator);
        let anew = is_another || !selfplay.search.reuse_tree;
        self.decider.search(&self.game, options, anew)
    }

    /// Chooses the evaluator of the next turn: its place in the record.
    fn choose_evaluator(&mut self) -> Result<u16> {
        let stays = self.config().selfplay.network_change == NetworkChange::Game;
        if let (Some((_, place)), true) = (self.current_evaluator, stays) {
            return Ok(place);
        }
        let (slot, evaluator) = locked(&self.setting.newest).clone();
        let known = self
            .evaluators
            .iter()
            .position(|known| *known == *evaluator);
        let place = match known {
            Some(place) => place,
            None => {
                self.setting.log.evaluator(self.id(), &evaluator)?;
                self.evaluators.push((*evaluator).clone());
                self.evaluators.len() - 1
            }
        };
        let place = u16::try_from(place)
            .with_context(|| format!("game {} has had too many networks", self.id()))?;
        self.current_evaluator = Some((slot, place));
        Ok(place)
    }

    /// The evaluations of the next turn.
    fn budget_of(&self, effort: Effort) -> u32 {
        let side = self.game.position().side();
        let config = self.config();
        let handicap = if self.plan.weaker == Some(side) {
            config.selfplay.handicap.evaluations
        } else {
            1.0
        };
        let share = f64::from(handicap) * f64::from(effort.evaluations);
        ((f64::from(config.selfplay.evaluations) * share).round() as u32).max(1)
    }

    /// Plays the turn that was decided on.
    fn play(&mut self, tally: &mut Tally) -> Result<()> {
        let begun = Instant::now();
        let (turn, record) = match self.decider.decided() {
            None => bail!("the search ended without a decision"),
            Some(Decided::Sampled(sampled)) => {
                let origin = TurnOrigin::Policy {
                    evaluator: self.current_evaluator.map_or(0, |(_, place)| place),
                    network_value: sampled.value,
                };
                let record = self.turn_record(&sampled.actions, origin, Vec::new());
                (sampled.turn.clone(), record)
            }
            Some(Decided::Searched(decision)) => {
                let record = self.searched(decision);
                let record = record.with_context(|| format!("game {}", self.id()))?;
                (decision.turn.clone(), record)
            }
        };
        let is_searched = record.search().is_some();
        self.setting
            .log
            .turn(self.id(), self.turns.len(), &record)?;
        tally.times.records += begun.elapsed();
        self.game
            .play(&turn)
            .with_context(|| format!("an illegal turn was decided on in game {}", self.id()))?;
        self.decider.finish();
        self.turns.push(record);
        self.consider_resignation();
        tally.turns += 1;
        tally.searched_turns += u64::from(is_searched);
        Ok(())
    }

    fn searched(&self, decision: &Decision) -> Result<TurnRecord> {
        let selfplay = &self.config().selfplay;
        // The first state of a game has fewer visits than later ones, which keep visits of the states before them. With few evaluations
        // no game would have a row of it.
        let begins = self.turns.is_empty();
        let is_enough = |target: &&StateTarget| {
            target.proven
                || target.visits >= selfplay.targets.min_visits
                || begins && target.step == 0
        };
        let targets = decision.targets.iter().filter(is_enough);
        let rows = targets.map(|target| row_record(target, self.weight));
        let rows = rows.collect::<Result<_>>()?;
        let origin = TurnOrigin::Search(SearchRecord {
            evaluator: self.current_evaluator.map_or(0, |(_, place)| place),
            kind: SearchKind::Full,
            budget: self.budget,
            evaluations: decision.evaluations,
            visits: decision.visits,
            value: rounded(decision.value, VALUE_STEPS),
            network_value: rounded(decision.own_value, VALUE_STEPS),
        });
        Ok(self.turn_record(&decision.actions, origin, rows))
    }

    fn turn_record(
        &self,
        actions: &[Action],
        origin: TurnOrigin,
        rows: Vec<RowRecord>,
    ) -> TurnRecord {
        let side = self.game.position().side();
        TurnRecord {
            actions: actions
                .iter()
                .map(|action| action.index(side) as u16)
                .collect(),
            origin,
            rows,
        }
    }

    /// A side resigns where the last searches agree, unless the game is played out to measure their error.
    fn consider_resignation(&mut self) {
        if self.game.outcome().is_some() || self.waived.is_some() {
            return;
        }
        let Some(loser) = resigning(&self.turns, &self.config().selfplay.resignation) else {
            return;
        };
        if self.plan.is_played_out {
            self.waived = Some(WaivedResignation {
                turn: self.turns.len() as u32,
                loser,
            });
        } else {
            self.resigned = Some(loser);
        }
    }
}

impl InPlay for SelfplayGame {
    fn next_queries(&mut self, tally: &mut Tally) -> Result<Option<(usize, &[Query])>> {
        while !self.is_over() {
            if !self.decider.is_running() {
                self.begin_turn()?;
            }
            let slot = self.slot().unwrap_or_default();
            // Called twice, since the borrow of the first result would not end where it is returned.
            if !self.decider.leaves(&self.game, &mut self.rng).is_empty() {
                return Ok(Some((slot, self.decider.leaves(&self.game, &mut self.rng))));
            }
            self.play(tally)?;
        }
        Ok(None)
    }

    fn answer(&mut self, index: usize, evaluator: &str, evaluation: Evaluation<'_>) -> Result<()> {
        self.decider.answer(index, evaluator, evaluation)
    }
}

/// The temperature of a game's turn, the first being 0: it falls by half every `temperature_half_life` turns.
fn temperature(config: &ExplorationConfig, turn: usize) -> f32 {
    let cooled = config.temperature * (-(turn as f32) / config.temperature_half_life).exp2();
    cooled.max(config.final_temperature)
}

/// Distributes a share of the game's weight over its rows by surprise; the sum stays but for rounding (policy surprise weighting:
/// Wu, KataGo's methods). With former weights bᵢ, surprises kᵢ = KL(search policy ‖ prior) and the share s,
///
/// `wᵢ = (1 - s) bᵢ + s Σb · bᵢkᵢ / Σ(b k)`.
///
/// Without surprise, nothing changes.
fn weigh_by_surprise(turns: &mut [TurnRecord], share: f32) {
    let (mut weight, mut surprise) = (0.0, 0.0);
    for row in turns.iter().flat_map(|turn| &turn.rows) {
        weight += f64::from(row.weight);
        surprise += f64::from(row.weight) * f64::from(row.surprise);
    }
    if share <= 0.0 || surprise <= 0.0 {
        return;
    }
    let share = f64::from(share);
    for row in turns.iter_mut().flat_map(|turn| &mut turn.rows) {
        let by_surprise = weight * f64::from(row.surprise) / surprise;
        let weight = f64::from(row.weight) * (1.0 - share + share * by_surprise);
        row.weight = rounded_weight(weight);
    }
}

fn rounded_weight(weight: f64) -> f32 {
    ((weight * WEIGHT_STEPS).round() / WEIGHT_STEPS) as f32
}

fn rounded(number: f32, steps: f32) -> f32 {
    (number * steps).round() / steps
}

fn row_record(target: &StateTarget, weight: f32) -> Result<RowRecord> {
    Ok(RowRecord {
        step: target.step,
        visits: target.visits,
        policy: quantize_policy(&target.policy)?,
        surprise: rounded(target.surprise, SURPRISE_STEPS),
        weight,
    })
}

#[cfg(test)]
mod tests;
