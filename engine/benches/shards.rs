//! How fast shards are written, read and checked, on one core: `cargo bench -p engine --no-default-features --bench shards`.
//!
//! The games are self-play of `uniform` with 32 evaluations a turn, at most 120 turns, with a row for every target, in both modes
//! of search. Before the benches stands what a row takes on the disk. Reading and replaying is what `selfplay inspect` does with
//! a game, but for counting what is in it.

use arimaa::rules::Game;
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use engine::config::{Config, SearchMode};
use engine::encoding::ENCODING_VERSION;
use engine::record::{
    Ending, EvaluatorId, GameId, GameRecord, Header, RowRecord, SearchKind, SearchRecord,
    ShardName, ShardReader, ShardWriter, Start, TurnOrigin, TurnRecord, digest, quantize_policy,
    replay,
};
use engine::search::{Decision, Search, SearchOptions, Uniform, run_search};
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;
use std::path::{Path, PathBuf};

const GAMES: u64 = 24;
const MAX_TURNS: usize = 120;

fn play(mode: SearchMode, counter: u64) -> GameRecord {
    let options = SearchOptions {
        mode,
        ..SearchOptions::exploring(&Config::default().selfplay, 32, 1.0)
    };
    let mut random = ChaCha8Rng::seed_from_u64(counter);
    let mut game = Game::new();
    let mut search = Search::new(game.position(), game.history(), options).unwrap();
    let mut turns = Vec::new();
    while game.outcome().is_none() && turns.len() < MAX_TURNS {
        search
            .restart(game.position(), game.history(), options)
            .unwrap();
        let decision = run_search(&mut search, &mut Uniform, game.history(), &mut random).unwrap();
        turns.push(turn_record(&game, &decision));
        game.play(&decision.turn).unwrap();
    }
    GameRecord {
        id: GameId {
            generator: 0,
            counter,
        },
        seed: 0,
        start: Start::Empty,
        evaluators: vec![evaluator()],
        turns,
        ending: match game.outcome() {
            Some(outcome) => Ending::Won(outcome),
            None => Ending::Unfinished { value: Some(0.5) },
        },
        resignation_waived: None,
    }
}

fn evaluator() -> EvaluatorId {
    EvaluatorId {
        name: "uniform".into(),
        identity: "uniform".into(),
    }
}

fn turn_record(game: &Game, decision: &Decision) -> TurnRecord {
    let side = game.position().side();
    let actions = decision.actions.iter();
    let rows = decision.targets.iter().map(|target| RowRecord {
        step: target.step,
        visits: target.visits,
        policy: quantize_policy(&target.policy).unwrap(),
        surprise: 0.0,
        weight: 1.0,
    });
    TurnRecord {
        actions: actions.map(|action| action.index(side) as u16).collect(),
        origin: TurnOrigin::Search(SearchRecord {
            evaluator: 0,
            kind: SearchKind::Full,
            budget: 32,
            evaluations: decision.evaluations,
            visits: decision.visits,
            value: decision.value,
            network_value: decision.own_value,
        }),
        rows: rows.collect(),
    }
}

fn write(folder: &Path, games: &[GameRecord]) -> PathBuf {
    let header = Header {
        encoding_version: ENCODING_VERSION,
        program_version: "0.1.0".into(),
        evaluator: evaluator(),
        config_digest: digest(b""),
        generator: 0,
    };
    let name = ShardName {
        generator: 0,
        sequence: 0,
    };
    let mut writer = ShardWriter::create(folder, name, &header).unwrap();
    games.iter().for_each(|game| writer.push(game).unwrap());
    writer.finish().unwrap()
}

fn shards(criterion: &mut Criterion) {
    for (name, mode) in [("puct", SearchMode::Puct), ("gumbel", SearchMode::Gumbel)] {
        let games: Vec<GameRecord> = (0..GAMES).map(|counter| play(mode, counter)).collect();
        let turns: usize = games.iter().map(|game| game.turns.len()).sum();
        let all_turns = games.iter().flat_map(|game| &game.turns);
        let rows: usize = all_turns.map(|turn| turn.rows.len()).sum();
        let folder = tempfile::tempdir().unwrap();
        let path = write(folder.path(), &games);
        let bytes = path.metadata().unwrap().len();
        println!(
            "{name}: {:.1} turns and {:.1} rows a game, {:.1} bytes a row",
            turns as f64 / GAMES as f64,
            rows as f64 / GAMES as f64,
            bytes as f64 / rows as f64
        );
        let mut group = criterion.benchmark_group(format!("shards, {name}"));
        group
            .throughput(Throughput::Elements(GAMES))
            .sample_size(20);
        group.bench_function("write", |bencher| {
            bencher.iter_batched(
                || tempfile::tempdir().unwrap(),
                |folder| {
                    write(folder.path(), &games);
                    folder
                },
                BatchSize::PerIteration,
            );
        });
        group.bench_function("read", |bencher| {
            bencher.iter(|| {
                let read = ShardReader::open(&path).unwrap();
                assert_eq!(read.map(Result::unwrap).count() as u64, GAMES);
            });
        });
        group.bench_function("read and replay", |bencher| {
            bencher.iter(|| {
                let read = ShardReader::open(&path).unwrap().map(Result::unwrap);
                let replayed: usize = read.map(|game| replay(&game).unwrap().len()).sum();
                assert_eq!(replayed, turns);
            });
        });
        group.finish();
    }
}

criterion_group!(benches, shards);
criterion_main!(benches);
