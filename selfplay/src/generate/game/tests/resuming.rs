//! Games that are resumed, and networks that change within them.

use super::*;

/// Keeps everything, as a journal does.
#[derive(Default)]
struct Kept(Mutex<std::collections::BTreeMap<GameId, GameInFlight>>);

impl GameLog for Kept {
    fn begin(&self, beginning: Beginning) -> Result<()> {
        let game = in_flight(beginning, Vec::new(), Vec::new());
        assert_eq!(self.0.lock().unwrap().insert(beginning.id, game), None);
        Ok(())
    }

    fn evaluator(&self, id: GameId, evaluator: &EvaluatorId) -> Result<()> {
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

fn in_flight(
    beginning: Beginning,
    evaluators: Vec<EvaluatorId>,
    turns: Vec<TurnRecord>,
) -> GameInFlight {
    GameInFlight {
        beginning,
        evaluators,
        turns,
    }
}

/// A game with seed 5, from the empty board.
fn from_empty(id: GameId) -> Beginning {
    Beginning {
        id,
        seed: 5,
        start: Start::Empty,
    }
}

/// Everything on at once.
fn varied() -> Config {
    let mut config = config();
    config.selfplay.search.reuse_tree = false;
    let selfplay = &mut config.selfplay;
    selfplay.max_turns = 30;
    selfplay.targets.surprise_share = 0.5;
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
fn a_resumed_game_equals_an_uninterrupted_one() {
    let config = varied();
    let log = Arc::new(Kept::default());
    let setting = setting(&config, log.clone());
    let whole = play_on(
        &config,
        Box::new(LocalChannel::new(Box::new(Null::default()))),
        (4, 1),
        0..8,
    );
    for record in &whole {
        replay(record).unwrap();
    }
    let finish = |game: SelfplayGame| -> GameRecord {
        let line = Box::new(LocalChannel::new(Box::new(Null::default())));
        let mut batcher = Batcher::new(vec![Some(line)], 1, Some(1));
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
            let GameRecord {
                id, seed, start, ..
            } = *expected;
            // As they stand in a journal: weights by surprise are given at the end.
            let turns = unweighed(&config, expected)[..cut].to_vec();
            let unfinished = in_flight(Beginning { id, seed, start }, evaluators, turns);
            log.0
                .lock()
                .unwrap()
                .insert(expected.id, unfinished.clone());
            let game = SelfplayGame::resume(&setting, unfinished).unwrap();
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
    config.selfplay.targets.surprise_share = 0.0;
    let line = Box::new(LocalChannel::new(Box::new(Null::default())));
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
    let unfinished = in_flight(from_empty(record.id), record.evaluators, record.turns);
    let error = format!(
        "{:#}",
        SelfplayGame::resume(&setting, unfinished).err().unwrap()
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
        let line = || Box::new(LocalChannel::new(Box::new(Uniform))) as Box<dyn EvaluationChannel>;
        let mut batcher = Batcher::new(vec![Some(line())], 2, Some(1));
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
                let slot = batcher.add_channel(line());
                *locked(&setting.newest) = (slot, Arc::new(named("second")));
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
fn a_changed_resignation_threshold_applies_to_new_turns_only() {
    // Played without resignation, and resumed where the first searches would have made Silver resign.
    let mut config = config();
    config.selfplay.max_turns = 12;
    let record = play_sure_of_gold(&config, 0.97, 1).remove(0);
    config.selfplay.resignation.turns = 4;
    config.selfplay.resignation.threshold = 0.05;
    config.selfplay.resignation.played_out_share = 0.0;
    let resume = |turns: Vec<TurnRecord>| {
        let unfinished = in_flight(from_empty(record.id), record.evaluators.clone(), turns);
        SelfplayGame::resume(&setting(&config, Arc::new(NoLog)), unfinished).unwrap()
    };
    let mut turns = record.turns[..8].to_vec();
    assert!(resume(turns.clone()).is_over(), "the last searches agree");
    if let TurnOrigin::Search(search) = &mut turns[7].origin {
        search.value = 0.5;
    }
    assert!(!resume(turns).is_over(), "the last searches disagree");
}
