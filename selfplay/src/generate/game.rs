//! One game of self-play.

use crate::batch::{InPlay, Tally};
use anyhow::{Context, Result};
use engine::config::Config;
use engine::rules::Game;
use engine::search::{Decision, Evaluation, Query, Search, SearchOptions, StateTarget};
use engine::shard::{
    Ending, Evaluator, GameId, GameRecord, RowRecord, SearchKind, SearchRecord, Start, TurnOrigin,
    TurnRecord, quantize_policy,
};
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;
use std::time::Instant;

/// A game that plays itself and keeps its record.
#[derive(Debug)]
pub(crate) struct SelfplayGame {
    config: Config,
    id: GameId,
    seed: u64,
    rng: ChaCha8Rng,
    game: Game,
    search: Search,
    evaluator: Evaluator,
    turns: Vec<TurnRecord>,
}

impl SelfplayGame {
    /// A game before its first setup. Everything in it follows from the seed, the id and the evaluator.
    pub(crate) fn new(
        config: &Config,
        evaluator: &Evaluator,
        seed: u64,
        id: GameId,
    ) -> Result<Self> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(u64::from(id.generator) << 40 ^ id.counter);
        let game = Game::new();
        let search = Search::new(game.position(), game.history(), options(config, 0))?;
        Ok(Self {
            config: config.clone(),
            id,
            seed,
            rng,
            game,
            search,
            evaluator: evaluator.clone(),
            turns: Vec::new(),
        })
    }

    /// Whether the game has ended, by the rules or by the turn limit.
    pub(crate) fn is_over(&self) -> bool {
        self.game.outcome().is_some() || self.turns.len() >= self.config.selfplay.max_turns as usize
    }

    /// The turns played so far.
    pub(crate) fn turns(&self) -> usize {
        self.turns.len()
    }

    /// The record of the game as it stands.
    pub(crate) fn into_record(self) -> GameRecord {
        let last_search = self.turns.iter().rev().find_map(TurnRecord::search);
        let value = last_search.map(|search| search.value);
        GameRecord {
            id: self.id,
            seed: self.seed,
            start: Start::Empty,
            evaluators: vec![self.evaluator],
            turns: self.turns,
            ending: match self.game.outcome() {
                Some(outcome) => Ending::Won(outcome),
                None => Ending::Unfinished { value },
            },
            resignation_waived: None,
        }
    }

    /// Plays the turn that the search has decided on, and starts it on the next one.
    fn play(&mut self, tally: &mut Tally) -> Result<()> {
        let decision = self
            .search
            .decision()
            .context("the search ended without a decision")?;
        let begun = Instant::now();
        let record = turn_record(&self.game, decision, self.config.selfplay.min_target_visits)
            .with_context(|| format!("game {}", self.id))?;
        tally.times.records += begun.elapsed();
        tally.turns += 1;
        self.game.play(&decision.turn).with_context(|| {
            format!("the search decided on an illegal turn in game {}", self.id)
        })?;
        self.turns.push(record);
        if !self.is_over() {
            let options = options(&self.config, self.turns.len());
            let (position, history) = (self.game.position(), self.game.history());
            if self.config.search.reuse_tree {
                self.search.go_on(position, history, options)?;
            } else {
                self.search.restart(position, history, options)?;
            }
        }
        Ok(())
    }
}

impl InPlay for SelfplayGame {
    fn next_queries(&mut self, tally: &mut Tally) -> Result<Option<(usize, &[Query])>> {
        while !self.is_over() {
            let history = self.game.history();
            if !self.search.leaves(history, &mut self.rng).is_empty() {
                return Ok(Some((0, self.search.leaves(history, &mut self.rng))));
            }
            self.play(tally)?;
        }
        Ok(None)
    }

    fn answer(&mut self, index: usize, evaluator: &str, evaluation: Evaluation<'_>) -> Result<()> {
        Ok(self.search.answer(index, evaluator, evaluation)?)
    }
}

/// The search of a game's turn, the first being 0: its temperature falls by half every `temperature_half_life` turns.
fn options(config: &Config, turn: usize) -> SearchOptions {
    let selfplay = &config.selfplay;
    let cooled = selfplay.temperature * (-(turn as f32) / selfplay.temperature_half_life).exp2();
    SearchOptions::exploring(&config.search, cooled.max(selfplay.final_temperature))
}

fn turn_record(game: &Game, decision: &Decision, min_target_visits: u32) -> Result<TurnRecord> {
    let side = game.position().side();
    let rows = decision
        .targets
        .iter()
        .filter(|target| target.proven || target.visits >= min_target_visits)
        .map(row_record);
    Ok(TurnRecord {
        actions: decision
            .actions
            .iter()
            .map(|action| action.index(side) as u16)
            .collect(),
        origin: TurnOrigin::Search(SearchRecord {
            evaluator: 0,
            kind: SearchKind::Full,
            budget: 0,
            evaluations: decision.evaluations,
            visits: decision.visits,
            value: decision.value,
            value_spread: 0.0,
            network_value: decision.own_value,
        }),
        rows: rows.collect::<Result<_>>()?,
    })
}

fn row_record(target: &StateTarget) -> Result<RowRecord> {
    Ok(RowRecord {
        step: target.step,
        visits: target.visits,
        policy: quantize_policy(&target.policy)?,
        surprise: 0.0,
        weight: 1.0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::Batcher;
    use crate::cache::{CachedLine, EvaluationCache};
    use crate::line::tests::SlowLine;
    use crate::line::{Line, LocalLine};
    use engine::search::{Null, Uniform};
    use std::sync::Arc;

    fn config() -> Config {
        let mut config = Config::default();
        config.search.evaluations = 16;
        config.selfplay.min_target_visits = 2;
        config.selfplay.max_turns = 40;
        config
    }

    fn play(counters: std::ops::Range<u64>) -> Vec<GameRecord> {
        play_by(&config(), counters)
    }

    fn play_by(config: &Config, counters: std::ops::Range<u64>) -> Vec<GameRecord> {
        let line = LocalLine::new(Box::new(Uniform));
        play_on(config, Box::new(line), (6, 1), counters)
    }

    /// Plays games on one thread, `in_flight` at once in `groups` groups.
    fn play_on(
        config: &Config,
        line: Box<dyn Line>,
        (in_flight, groups): (usize, usize),
        counters: std::ops::Range<u64>,
    ) -> Vec<GameRecord> {
        let mut ids = counters.map(|counter| GameId {
            generator: 1,
            counter,
        });
        let mut batcher = Batcher::new(vec![line], in_flight, Some(groups));
        let mut records: Vec<GameRecord> = Vec::new();
        let mut is_over = false;
        while !is_over {
            let mut begin = || {
                ids.next()
                    .map(|id| SelfplayGame::new(config, &Evaluator::default(), 5, id))
            };
            let over = |game: SelfplayGame| {
                records.push(game.into_record());
                Ok(())
            };
            batcher.round(|| begin().transpose(), over).unwrap();
            is_over = batcher.games().next().is_none();
        }
        let turns: usize = records.iter().map(|record| record.turns.len()).sum();
        assert_eq!(batcher.tally().turns, turns as u64);
        records.sort_by_key(|record| record.id);
        records
    }

    #[test]
    fn groups_lanes_and_where_the_evaluator_works_change_no_game() {
        let config = config();
        // Its answers differ from state to state: one that goes to another game changes that game.
        let local = || Box::new(LocalLine::new(Box::new(Null::default()))) as Box<dyn Line>;
        let expected = play_on(&config, local(), (6, 1), 0..9);
        for (in_flight, groups) in [(1, 1), (9, 2), (5, 5), (7, 3)] {
            let slow = Box::new(SlowLine::new(Null::default()));
            for line in [local(), slow] {
                let what = format!("{in_flight} in {groups}, remote: {}", line.is_remote());
                let records = play_on(&config, line, (in_flight, groups), 0..9);
                assert_eq!(records, expected, "{what}");
            }
        }
    }

    #[test]
    fn a_cache_changes_no_game() {
        let mut config = config();
        config.search.reuse_tree = false;
        let line = || Box::new(LocalLine::new(Box::new(Null::default()))) as Box<dyn Line>;
        let expected = play_on(&config, line(), (4, 1), 0..6);
        let cache = Arc::new(EvaluationCache::new(4).unwrap());
        let cached = |line| Box::new(CachedLine::new(line, Arc::clone(&cache), "null"));
        let slow = Box::new(SlowLine::new(Null::default()));
        assert_eq!(play_on(&config, cached(line()), (4, 1), 0..6), expected);
        assert_eq!(play_on(&config, cached(slow), (4, 2), 0..6), expected);
        let (asked, found) = cache.uses();
        assert!(2 * found > asked, "the second time, all was known: {found}");
    }

    #[test]
    fn records_replay_under_the_rules() {
        for record in play(0..6) {
            let turns = engine::shard::replay(&record).unwrap();
            assert_eq!(turns.len(), record.turns.len());
            assert!(
                record
                    .turns
                    .iter()
                    .all(|turn| turn.search().unwrap().visits <= 16)
            );
            assert!(
                record
                    .turns
                    .iter()
                    .skip(2)
                    .any(|turn| !turn.rows.is_empty())
            );
        }
    }

    #[test]
    fn a_game_is_the_same_in_whatever_company_it_is_played() {
        let together = play(0..6);
        let alone: Vec<_> = (0..6)
            .flat_map(|counter| play(counter..counter + 1))
            .collect();
        assert_eq!(together, alone);
        assert_ne!(together[0].turns, together[1].turns);
    }

    #[test]
    fn trees_are_kept_where_the_configuration_says_so() {
        let fresh = |mut config: Config| {
            config.search.reuse_tree = false;
            config
        };
        let [kept, fresh] = [config(), fresh(config())].map(|config| play_by(&config, 0..2));
        for record in kept.iter().chain(&fresh) {
            engine::shard::replay(record).unwrap();
        }
        for (kept, fresh) in kept.iter().zip(&fresh) {
            assert_eq!(kept.turns[0], fresh.turns[0], "there was nothing to keep");
        }
        assert_ne!(kept, fresh);
    }

    #[test]
    fn whole_turns_are_sampled_in_mode_gumbel() {
        let mut config = config();
        config.search.mode = engine::config::SearchMode::Gumbel;
        for record in play_by(&config, 0..3) {
            engine::shard::replay(&record).unwrap();
            assert!(record.turns.iter().any(|turn| !turn.rows.is_empty()));
        }
    }

    #[test]
    fn the_temperature_halves_and_stops_falling() {
        let mut config = config();
        config.selfplay.temperature = 1.0;
        config.selfplay.temperature_half_life = 10.0;
        config.selfplay.final_temperature = 0.3;
        for (turn, expected) in [(0, 1.0), (10, 0.5), (100, 0.3)] {
            assert!((options(&config, turn).temperature - expected).abs() < 1e-6);
        }
    }
}
