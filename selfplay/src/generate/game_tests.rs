use super::*;
use crate::batch::Batcher;
use crate::cache::{CachedLine, EvaluationCache};
use crate::generate::log::NoLog;
use crate::line::tests::SlowLine;
use crate::line::{Line, LocalLine};
use engine::search::{Null, Uniform};
use engine::shard::replay;
use std::sync::Mutex;

fn config() -> Config {
    let mut config = Config::default();
    config.search.evaluations = 16;
    config.selfplay.min_target_visits = 2;
    config.selfplay.max_turns = 40;
    config
}

fn named(name: &str) -> Evaluator {
    Evaluator {
        name: name.into(),
        identity: format!("identity of {name}"),
    }
}

fn setting(config: &Config, log: Arc<dyn GameLog>) -> Setting {
    Setting {
        config: Arc::new(config.clone()),
        log,
        evaluators: Arc::new(Evaluators::new(named("first"))),
    }
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
    let setting = setting(config, Arc::new(NoLog));
    let mut batcher = Batcher::new(vec![line], in_flight, Some(groups));
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
    let config = SelfplayConfig {
        temperature: 1.0,
        temperature_half_life: 10.0,
        final_temperature: 0.3,
        ..SelfplayConfig::default()
    };
    for (turn, expected) in [(0, 1.0), (10, 0.5), (100, 0.3)] {
        assert!((temperature(&config, turn) - expected).abs() < 1e-6);
    }
}

fn searches(record: &GameRecord) -> impl Iterator<Item = (&TurnRecord, &SearchRecord)> {
    let turns = record.turns.iter();
    turns.filter_map(|turn| Some((turn, turn.search()?)))
}

#[test]
fn a_share_of_turns_is_searched_in_full_and_the_others_fast() {
    let mut config = config();
    config.selfplay.playout_cap.full_share = 0.25;
    config.selfplay.playout_cap.fast_evaluations = 5;
    let records = play_by(&config, 0..10);
    let (mut full, mut all) = (0, 0);
    for record in &records {
        replay(record).unwrap();
        for (turn, search) in searches(record) {
            all += 1;
            let is_full = search.kind == SearchKind::Full;
            full += usize::from(is_full);
            assert_eq!(search.budget, if is_full { 16 } else { 5 });
            assert!(search.evaluations <= search.budget);
            assert!(is_full || turn.rows.is_empty());
        }
    }
    let share = full as f32 / all as f32;
    assert!((0.18..0.32).contains(&share), "{full} of {all}");
    config.selfplay.playout_cap.record_fast = true;
    config.selfplay.min_target_visits = 1;
    let records = play_by(&config, 0..4);
    let mut fast = records
        .iter()
        .flat_map(searches)
        .filter(|(_, search)| search.kind == SearchKind::Fast);
    assert!(fast.any(|(turn, _)| !turn.rows.is_empty()));
}

#[test]
fn what_a_game_begins_with_gives_a_row_with_any_visits() {
    let mut config = config();
    config.search.goal_solver = false;
    config.selfplay.min_target_visits = 10_000;
    for record in play_by(&config, 0..4) {
        let [first, others @ ..] = &record.turns[..] else {
            panic!("a game without turns");
        };
        assert_eq!(
            first.rows.iter().map(|row| row.step).collect::<Vec<_>>(),
            [0]
        );
        assert!(others.iter().all(|turn| turn.rows.is_empty()));
    }
}

#[test]
fn a_full_turn_of_playout_caps_does_not_build_on_what_was_there() {
    // Whether trees are kept makes no difference where all turns are full and none may keep one.
    let mut config = config();
    config.selfplay.playout_cap.full_share = 0.999_999;
    let kept = play_by(&config, 0..3);
    config.search.reuse_tree = false;
    assert_eq!(kept, play_by(&config, 0..3));
}

#[test]
fn first_turns_are_drawn_from_the_policy_in_a_share_of_games() {
    let mut config = config();
    config.selfplay.openings.policy_share = 0.5;
    config.selfplay.openings.policy_turns = 5;
    let mut lengths = std::collections::HashMap::<usize, usize>::new();
    for record in play_by(&config, 0..24) {
        replay(&record).unwrap();
        let is_drawn = |turn: &&TurnRecord| matches!(turn.origin, TurnOrigin::Policy { .. });
        let drawn = record.turns.iter().take_while(is_drawn).count();
        assert!(
            record.turns[..drawn]
                .iter()
                .all(|turn| turn.rows.is_empty())
        );
        assert!(
            record.turns[drawn..]
                .iter()
                .all(|turn| turn.search().is_some())
        );
        *lengths.entry(drawn).or_default() += 1;
    }
    assert!(
        (4..20).contains(&lengths[&0]) && lengths.len() > 3,
        "{lengths:?}"
    );
    assert!(lengths.keys().all(|&length| length <= 5), "{lengths:?}");
}

#[test]
fn one_side_is_weaker_in_a_share_of_games() {
    let mut config = config();
    config.selfplay.handicap.share = 0.5;
    config.selfplay.handicap.evaluations = 0.25;
    let mut weaker = [0; 3];
    for record in play_by(&config, 0..24) {
        let budgets = |side: Side| -> Vec<u32> {
            let of_side = record.turns.iter().skip(side.index()).step_by(2);
            of_side.map(|turn| turn.search().unwrap().budget).collect()
        };
        let [gold, silver] = Side::ALL.map(budgets);
        assert!(gold.iter().all(|&budget| budget == gold[0]));
        assert!(silver.iter().all(|&budget| budget == silver[0]));
        match (gold[0], silver[0]) {
            (16, 16) => weaker[0] += 1,
            (4, 16) => weaker[1] += 1,
            (16, 4) => weaker[2] += 1,
            other => panic!("{other:?}"),
        }
    }
    assert!(weaker.iter().all(|&games| games > 0), "{weaker:?}");
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
    let line = LocalLine::new(Box::new(SureOfGold(value)));
    play_on(config, Box::new(line), (6, 1), 0..games)
}

#[test]
fn a_hopeless_side_resigns_but_for_the_games_that_are_played_out() {
    let mut config = config();
    config.selfplay.max_turns = 12;
    config.selfplay.resignation.turns = 4;
    config.selfplay.resignation.threshold = 0.05;
    config.selfplay.resignation.played_out_share = 0.4;
    let (mut resigned, mut played_out) = (0, 0);
    for record in play_sure_of_gold(&config, 0.97, 30) {
        replay(&record).unwrap();
        match (record.ending, record.resignation_waived) {
            (Ending::Resigned { winner }, None) => {
                assert_eq!((winner, record.turns.len()), (Side::Gold, 4));
                resigned += 1;
            }
            (ending, Some(waived)) => {
                assert_eq!((waived.turn, waived.loser), (4, Side::Silver));
                assert!(!matches!(ending, Ending::Resigned { .. }));
                assert!(record.turns.len() == 12 || matches!(ending, Ending::Won(_)));
                played_out += 1;
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(
        resigned > 9 && played_out > 4,
        "{resigned} and {played_out}"
    );
    // At the turn limit nobody has lost, and the last search says what the game was worth.
    let unfinished = play_sure_of_gold(&config, 0.9, 1).remove(0);
    let Ending::Unfinished { value: Some(value) } = unfinished.ending else {
        panic!("{:?}", unfinished.ending);
    };
    assert_eq!(value, unfinished.turns[11].search().unwrap().value);
    assert!((value - 0.9).abs() < 0.05);
}

#[test]
fn decided_games_get_less_work_and_less_weight() {
    let mut config = config();
    config.selfplay.max_turns = 8;
    config.selfplay.soft_resignation.turns = 3;
    config.selfplay.soft_resignation.threshold = 0.9;
    config.selfplay.soft_resignation.evaluations = 0.5;
    config.selfplay.soft_resignation.weight = 0.2;
    for record in play_sure_of_gold(&config, 0.95, 4) {
        for (number, (turn, search)) in searches(&record).enumerate() {
            // Halfway from 0.9 to certainty.
            let (budget, weight) = if number < 3 { (16, 1.0) } else { (12, 0.6) };
            assert_eq!(search.budget, budget, "turn {number}");
            assert!(
                turn.rows
                    .iter()
                    .all(|row| (row.weight - weight).abs() < 1e-4)
            );
        }
    }
}

#[test]
fn rows_weigh_by_their_surprise() {
    let mut config = config();
    let plain = play_on(
        &config,
        Box::new(LocalLine::new(Box::new(Null::default()))),
        (2, 1),
        0..2,
    );
    config.selfplay.surprise_share = 0.5;
    let weighed = play_on(
        &config,
        Box::new(LocalLine::new(Box::new(Null::default()))),
        (2, 1),
        0..2,
    );
    for (plain, weighed) in plain.iter().zip(&weighed) {
        let rows = |record: &GameRecord| -> Vec<RowRecord> {
            record
                .turns
                .iter()
                .flat_map(|turn| turn.rows.clone())
                .collect()
        };
        let (plain, weighed) = (rows(plain), rows(weighed));
        assert!(plain.iter().all(|row| row.weight == 1.0));
        let sum: f32 = weighed.iter().map(|row| row.weight).sum();
        assert!((sum / plain.len() as f32 - 1.0).abs() < 1e-3);
        let most = weighed
            .iter()
            .max_by(|a, b| a.surprise.total_cmp(&b.surprise))
            .unwrap();
        assert!(most.surprise > 0.0 && weighed.iter().all(|row| row.weight <= most.weight));
    }
}

/// Keeps everything, as a journal does.
#[derive(Debug, Default)]
struct Kept(Mutex<std::collections::BTreeMap<GameId, Unfinished>>);

impl GameLog for Kept {
    fn begin(&self, id: GameId, seed: u64, start: Start) -> Result<()> {
        let unfinished = Unfinished {
            id,
            seed,
            start,
            evaluators: Vec::new(),
            turns: Vec::new(),
        };
        assert_eq!(self.0.lock().unwrap().insert(id, unfinished), None);
        Ok(())
    }

    fn evaluator(&self, id: GameId, evaluator: &Evaluator) -> Result<()> {
        self.0
            .lock()
            .unwrap()
            .get_mut(&id)
            .unwrap()
            .evaluators
            .push(evaluator.clone());
        Ok(())
    }

    fn turn(&self, id: GameId, number: usize, turn: &TurnRecord) -> Result<()> {
        let mut games = self.0.lock().unwrap();
        let turns = &mut games.get_mut(&id).unwrap().turns;
        assert_eq!(turns.len(), number);
        turns.push(turn.clone());
        Ok(())
    }
}

/// Everything on at once.
fn varied() -> Config {
    let mut config = config();
    config.search.reuse_tree = false;
    let selfplay = &mut config.selfplay;
    selfplay.max_turns = 30;
    selfplay.surprise_share = 0.5;
    selfplay.playout_cap.full_share = 0.3;
    selfplay.playout_cap.fast_evaluations = 6;
    selfplay.openings.policy_share = 0.5;
    selfplay.handicap.share = 0.3;
    selfplay.resignation.turns = 2;
    selfplay.resignation.threshold = 0.49;
    selfplay.resignation.played_out_share = 0.5;
    selfplay.soft_resignation.turns = 2;
    selfplay.soft_resignation.threshold = 0.6;
    config
}

#[test]
fn a_game_that_is_gone_on_with_goes_as_it_would_have_gone() {
    let config = varied();
    let log = Arc::new(Kept::default());
    let setting = setting(&config, log.clone());
    let whole = play_on(
        &config,
        Box::new(LocalLine::new(Box::new(Null::default()))),
        (4, 1),
        0..8,
    );
    for record in &whole {
        replay(record).unwrap();
    }
    let finish = |game: SelfplayGame| -> GameRecord {
        let line = Box::new(LocalLine::new(Box::new(Null::default())));
        let mut batcher = Batcher::new(vec![line as Box<dyn Line>], 1, Some(1));
        let (mut first, mut record) = (Some(game), None);
        while record.is_none() {
            let over = |game: SelfplayGame| {
                record = Some(game.into_record());
                Ok(())
            };
            batcher.round(|| Ok(first.take()), over).unwrap();
        }
        record.unwrap()
    };
    for expected in &whole {
        for cut in [0, 1, 2, expected.turns.len() / 2, expected.turns.len()] {
            let mut evaluators = expected.evaluators.clone();
            evaluators.truncate(cut);
            let unfinished = Unfinished {
                id: expected.id,
                seed: expected.seed,
                start: expected.start,
                evaluators: evaluators.clone(),
                // As they stand in a journal: weights by surprise are given at the end.
                turns: unweighed(&config, expected)[..cut].to_vec(),
            };
            log.0
                .lock()
                .unwrap()
                .insert(expected.id, unfinished.clone());
            let game = SelfplayGame::go_on(&setting, unfinished).unwrap();
            assert_eq!(&finish(game), expected, "cut at {cut}");
            let kept = &log.0.lock().unwrap()[&expected.id];
            assert_eq!(kept.turns.len(), expected.turns.len());
            assert_eq!(kept.evaluators, expected.evaluators);
        }
    }
    assert!(
        whole
            .iter()
            .any(|record| matches!(record.ending, Ending::Resigned { .. }))
    );
    assert!(
        whole
            .iter()
            .any(|record| record.resignation_waived.is_some())
    );
}

/// The turns of a game as they were before its rows were weighed by surprise.
fn unweighed(config: &Config, record: &GameRecord) -> Vec<TurnRecord> {
    let mut config = config.clone();
    config.selfplay.surprise_share = 0.0;
    let line = Box::new(LocalLine::new(Box::new(Null::default())));
    let counter = record.id.counter;
    play_on(&config, line, (1, 1), counter..counter + 1)
        .remove(0)
        .turns
}

#[test]
fn an_illegal_journal_is_an_error_that_names_the_game() {
    let setting = setting(&config(), Arc::new(NoLog));
    let mut record = play(3..4).remove(0);
    record.turns.swap(1, 2);
    let unfinished = Unfinished {
        id: record.id,
        seed: 5,
        start: Start::Empty,
        evaluators: record.evaluators,
        turns: record.turns,
    };
    let error = format!(
        "{:#}",
        SelfplayGame::go_on(&setting, unfinished).unwrap_err()
    );
    assert!(error.contains("game 1-3"), "{error}");
}

#[test]
fn a_new_network_takes_over_where_the_configuration_says() {
    for change in [NetworkChange::Turn, NetworkChange::Game] {
        let mut config = config();
        config.selfplay.network_change = change;
        config.selfplay.max_turns = 10;
        let log = Arc::new(Kept::default());
        let setting = setting(&config, log.clone());
        let line = || Box::new(LocalLine::new(Box::new(Uniform))) as Box<dyn Line>;
        let mut batcher = Batcher::new(vec![line()], 2, Some(1));
        let mut counter = 0;
        let mut records = Vec::new();
        let mut rounds = 0;
        while records.len() < 4 {
            let begin = || {
                counter += 1;
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
            let over = |game: SelfplayGame| {
                records.push(game.into_record());
                Ok(())
            };
            batcher.round(begin, over).unwrap();
            rounds += 1;
            if rounds == 40 {
                let slot = batcher.add_line(line());
                setting.evaluators.set_newest(slot, named("second"));
            }
        }
        for record in &records {
            replay(record).unwrap();
            assert_eq!(
                log.0.lock().unwrap()[&record.id].evaluators,
                record.evaluators
            );
            let of_turns = |turn: &TurnRecord| {
                let place = turn.origin.evaluator().unwrap();
                record.evaluators[usize::from(place)].name.clone()
            };
            let names: Vec<String> = record.turns.iter().map(of_turns).collect();
            assert!(names.is_sorted(), "{names:?}");
            assert_eq!(
                record.evaluators.len() > 1,
                change == NetworkChange::Turn && record.id.counter <= 2,
                "{change:?}: {names:?}"
            );
        }
        let last = records.iter().max_by_key(|record| record.id).unwrap();
        assert_eq!(last.evaluators, [named("second")]);
    }
}

#[test]
fn a_configuration_that_resigns_earlier_does_not_reach_into_the_past() {
    // Played without resignation, and gone on with where the first searches would have made Silver resign.
    let mut config = config();
    config.selfplay.max_turns = 12;
    let record = play_sure_of_gold(&config, 0.97, 1).remove(0);
    config.selfplay.resignation.turns = 4;
    config.selfplay.resignation.threshold = 0.05;
    config.selfplay.resignation.played_out_share = 0.0;
    let go_on = |turns: Vec<TurnRecord>| {
        let unfinished = Unfinished {
            id: record.id,
            seed: 5,
            start: Start::Empty,
            evaluators: record.evaluators.clone(),
            turns,
        };
        SelfplayGame::go_on(&setting(&config, Arc::new(NoLog)), unfinished).unwrap()
    };
    let mut turns = record.turns[..8].to_vec();
    assert!(go_on(turns.clone()).is_over(), "the last searches agree");
    if let TurnOrigin::Search(search) = &mut turns[7].origin {
        search.value = 0.5;
    }
    assert!(!go_on(turns).is_over(), "they do not any more");
}
