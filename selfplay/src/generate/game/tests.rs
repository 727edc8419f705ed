mod resuming;
mod rows;
mod weights;

use super::*;
use crate::generate::log::NoLog;
use crate::worker::batch::Batcher;
use crate::worker::channel::tests::SlowChannel;
use crate::worker::channel::{EvaluationChannel, LocalChannel};
use engine::config::{AutoOr, SearchConfig, SearchMode, TargetsConfig};
use engine::record::replay;
use engine::search::{Null, Uniform};

fn config() -> Config {
    let mut config = Config::default();
    let selfplay = &mut config.selfplay;
    selfplay.evaluations = 16;
    selfplay.loss_proof_limit = 20_000;
    selfplay.max_turns = 40;
    selfplay.search = SearchConfig {
        mode: AutoOr::Fixed(SearchMode::Puct),
        ..SearchConfig::default()
    };
    selfplay.exploration = ExplorationConfig {
        temperature: 1.0,
        temperature_half_life: 20.0,
        final_temperature: 0.2,
        ..selfplay.exploration
    };
    selfplay.targets = TargetsConfig {
        value_scale: 10.0,
        min_visits: 2,
        truncated_weight: 1.0,
        ..selfplay.targets
    };
    selfplay.openings.policy_share = 0.0;
    selfplay.openings.policy_turns = 4;
    selfplay.openings.sparse_share = 0.0;
    selfplay.handicap.share = 0.0;
    config
}

fn named(name: &str) -> EvaluatorId {
    EvaluatorId {
        name: name.into(),
        identity: format!("identity of {name}"),
    }
}

fn setting(config: &Config, log: Arc<dyn GameLog>) -> Setting {
    Setting {
        config: Arc::new(config.clone()),
        log,
        newest: Arc::new(Mutex::new((0, Arc::new(named("first"))))),
    }
}

fn play(counters: std::ops::Range<u64>) -> Vec<GameRecord> {
    play_by(&config(), counters)
}

fn play_by(config: &Config, counters: std::ops::Range<u64>) -> Vec<GameRecord> {
    let line = LocalChannel::new(Box::new(Uniform));
    play_on(config, Box::new(line), (6, 1), counters)
}

/// Plays games on one thread, `in_flight` at once in `groups` groups.
fn play_on(
    config: &Config,
    line: Box<dyn EvaluationChannel>,
    (in_flight, groups): (usize, usize),
    counters: std::ops::Range<u64>,
) -> Vec<GameRecord> {
    let mut ids = counters.map(|counter| GameId {
        generator: 1,
        counter,
    });
    let setting = setting(config, Arc::new(NoLog));
    let mut batcher = Batcher::new(vec![Some(line)], in_flight, Some(groups));
    let mut records: Vec<GameRecord> = Vec::new();
    let mut is_over = false;
    while !is_over {
        let mut begin = || {
            let begun = Begun {
                start: Start::Empty,
                turns: Vec::new(),
            };
            ids.next()
                .map(|id| SelfplayGame::begin(&setting, 5, id, begun))
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

/// With uneven groups, a group can have too many games though all games together are few enough.
#[test]
fn games_without_room_leave_with_nothing_in_flight() {
    let setting = setting(&config(), Arc::new(NoLog));
    let line = LocalChannel::new(Box::new(Uniform));
    let mut batcher = Batcher::new(vec![Some(Box::new(line))], 12, Some(2));
    let mut counters = 0..;
    for new in [1, 6] {
        let mut left = new;
        let begin = || {
            left -= 1;
            let Some(counter) = counters.next().filter(|_| left >= 0) else {
                return Ok(None);
            };
            let id = GameId {
                generator: 1,
                counter,
            };
            let begun = Begun {
                start: Start::Empty,
                turns: Vec::new(),
            };
            SelfplayGame::begin(&setting, 5, id, begun).map(Some)
        };
        batcher.round(begin, |_| Ok(())).unwrap();
    }
    assert_eq!(batcher.games().count(), 7);
    assert_eq!(batcher.resize(8).unwrap().len(), 2, "of the second group");
    let mut finished = 0;
    while batcher.games().next().is_some() {
        let over = |_| {
            finished += 1;
            Ok(())
        };
        batcher.round(|| Ok(None), over).unwrap();
    }
    assert_eq!(finished, 5);
}

/// Finds every state as good as won for Gold.
struct SureOfGold(f32);

impl engine::search::Evaluator for SureOfGold {
    fn name(&self) -> &str {
        "sure"
    }

    fn evaluate(
        &mut self,
        queries: &[Query],
        out: &mut engine::search::Evaluations,
    ) -> std::result::Result<(), engine::search::EvaluatorError> {
        out.clear();
        for query in queries {
            let count = query.legal.count();
            out.push(self.0, vec![1.0 / count as f32; count]);
        }
        Ok(())
    }
}

fn play_sure_of_gold(config: &Config, value: f32, games: u64) -> Vec<GameRecord> {
    let line = LocalChannel::new(Box::new(SureOfGold(value)));
    play_on(config, Box::new(line), (6, 1), 0..games)
}

#[test]
fn groups_slots_and_the_evaluators_place_change_no_game() {
    let config = config();
    // Its answers differ from state to state: one that goes to another game changes that game.
    let local =
        || Box::new(LocalChannel::new(Box::new(Null::default()))) as Box<dyn EvaluationChannel>;
    let expected = play_on(&config, local(), (6, 1), 0..9);
    for (in_flight, groups) in [(1, 1), (9, 2), (5, 5), (7, 3)] {
        let slow = Box::new(SlowChannel::new(Null::default()));
        for line in [local(), slow] {
            let what = format!("{in_flight} in {groups}, remote: {}", line.is_remote());
            let records = play_on(&config, line, (in_flight, groups), 0..9);
            assert_eq!(records, expected, "{what}");
        }
    }
}

#[test]
fn records_replay_under_the_rules() {
    for record in play(0..6) {
        let turns = engine::record::replay(&record).unwrap();
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
fn games_in_flight_together_do_not_change_each_other() {
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
        config.selfplay.search.reuse_tree = false;
        config
    };
    let [kept, fresh] = [config(), fresh(config())].map(|config| play_by(&config, 0..2));
    for record in kept.iter().chain(&fresh) {
        engine::record::replay(record).unwrap();
    }
    for (kept, fresh) in kept.iter().zip(&fresh) {
        assert_eq!(kept.turns[0], fresh.turns[0], "there was nothing to keep");
    }
    assert_ne!(kept, fresh);
}

#[test]
fn whole_turns_are_sampled_in_mode_gumbel() {
    let mut config = config();
    config.selfplay.search.mode = AutoOr::Fixed(SearchMode::Gumbel);
    for record in play_by(&config, 0..3) {
        engine::record::replay(&record).unwrap();
        assert!(record.turns.iter().any(|turn| !turn.rows.is_empty()));
    }
}

#[test]
fn the_temperature_halves_and_stops_falling() {
    let config = ExplorationConfig {
        temperature: 1.0,
        temperature_half_life: 10.0,
        final_temperature: 0.3,
        ..Config::default().selfplay.exploration
    };
    for (turn, expected) in [(0, 1.0), (10, 0.5), (100, 0.3)] {
        assert!((temperature(&config, turn) - expected).abs() < 1e-6);
    }
}
