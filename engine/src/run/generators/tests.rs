use super::*;
use crate::record::journal::{Beginning, JournalError};
use crate::record::{GameId, Start};
use std::sync::Barrier;
use tempfile::TempDir;

fn run() -> (TempDir, GeneratorPaths) {
    let root = tempfile::tempdir().unwrap();
    let paths = GeneratorPaths::from(&RunDirectory::new(root.path()));
    (root, paths)
}

fn plan(seed: u64) -> GeneratorPlan {
    plan_of("worker", seed)
}

fn plan_of(worker: &str, seed: u64) -> GeneratorPlan {
    GeneratorPlan {
        seed,
        games: Some(100),
        config_digest: "0123".into(),
        evaluator: "uniform".into(),
        worker: worker.into(),
    }
}

fn start(paths: &GeneratorPaths, seed: u64) -> (Generator, Recovery) {
    Generator::start(paths, &plan(seed)).unwrap()
}

fn begin(generator: &Generator, counter: u64) -> Result<(), JournalError> {
    generator.journal().begin(Beginning {
        id: GameId {
            generator: generator.number(),
            counter,
        },
        seed: 1,
        start: Start::Empty,
    })
}

fn ids(recovery: &Recovery) -> Vec<(u32, u64)> {
    let ids = recovery.games.iter().map(|game| game.beginning.id);
    ids.map(|id| (id.generator, id.counter)).collect()
}

#[test]
fn running_generators_are_those_whose_locks_are_held() {
    let (root, paths) = run();
    assert!(running_generators(&paths).unwrap().is_empty());
    let generators: Vec<_> = (0..3).map(|seed| start(&paths, seed).0).collect();
    assert_eq!(running_generators(&paths).unwrap(), [0, 1, 2]);
    let mut generators = generators.into_iter();
    drop(generators.next());
    assert_eq!(running_generators(&paths).unwrap(), [1, 2]);
    drop(generators);
    // A number that somebody is about to claim.
    fs::create_dir(root.path().join("generators/007")).unwrap();
    assert!(running_generators(&paths).unwrap().is_empty());
}

#[test]
fn the_same_command_resumes_and_another_takes_over() {
    let (_root, paths) = run();
    let (generator, recovery) = start(&paths, 1);
    assert_eq!((generator.number(), generator.is_resumed()), (0, false));
    assert!(recovery.games.is_empty());
    (0..3).for_each(|counter| begin(&generator, counter).unwrap());
    // The same and another beside it, while it lives.
    let (twin, recovery) = start(&paths, 1);
    assert_eq!((twin.number(), twin.is_resumed()), (1, false));
    assert!(recovery.games.is_empty());
    begin(&twin, 0).unwrap();
    // It ends, and the same is started again.
    drop(generator);
    let (generator, recovery) = start(&paths, 1);
    assert_eq!((generator.number(), generator.is_resumed()), (0, true));
    assert_eq!(ids(&recovery), [(0, 0), (0, 1), (0, 2)]);
    assert_eq!(recovery.next_counter, 3);
    // It ends, and something else is started.
    drop(generator);
    let (other, recovery) = start(&paths, 2);
    assert_eq!((other.number(), other.is_resumed()), (2, false));
    assert_eq!(ids(&recovery), [(0, 0), (0, 1), (0, 2)]);
    assert_eq!((recovery.next_counter, recovery.adopted), (0, vec![0]));
    // What was taken over is not resumed by its own command.
    let (again, recovery) = start(&paths, 1);
    assert_eq!((again.number(), again.is_resumed()), (3, false));
    assert!(recovery.games.is_empty());
    drop((twin, again));
    let (again, recovery) = start(&paths, 1);
    assert_eq!((again.number(), recovery.adopted), (1, vec![3]));
}

#[test]
fn a_look_at_its_lock_keeps_no_generator_from_resuming() {
    let (_root, paths) = run();
    let (generator, _) = start(&paths, 1);
    begin(&generator, 0).unwrap();
    drop(generator);
    let looked_at = fs::File::open(lock_path(&paths.journal, 0)).unwrap();
    looked_at.lock_shared().unwrap();
    let looking = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(10));
        drop(looked_at);
    });
    let (generator, recovery) = start(&paths, 1);
    looking.join().unwrap();
    assert_eq!((generator.number(), generator.is_resumed()), (0, true));
    assert_eq!(ids(&recovery), [(0, 0)]);
}

/// Makes what a generator said last as old as that.
fn age(paths: &GeneratorPaths, generator: u32, age: Duration) {
    for name in ["plan.toml", "status.json"] {
        let file = fs::File::options()
            .append(true)
            .open(paths.folder(generator).join(name));
        if let Ok(file) = file {
            file.set_modified(SystemTime::now() - age).unwrap();
        }
    }
}

#[test]
fn another_worker_takes_over_once_a_generator_has_been_silent_for_long() {
    let (_root, paths) = run();
    let start_of = |worker| Generator::start(&paths, &plan_of(worker, 1)).unwrap();
    let (generator, _) = start_of("a");
    begin(&generator, 0).unwrap();
    drop(generator);
    let (other, recovery) = start_of("b");
    assert_eq!((other.number(), other.is_resumed()), (1, false));
    assert_eq!((ids(&recovery), recovery.adopted), (vec![], vec![]));
    assert_eq!(lost_generators(&paths).unwrap(), []);
    // It comes back, and takes up its own.
    let (generator, recovery) = start_of("a");
    assert_eq!((generator.number(), generator.is_resumed()), (0, true));
    assert_eq!(ids(&recovery), [(0, 0)]);
    // While it works, it may be silent.
    age(&paths, 0, 2 * SILENCE);
    assert_eq!(lost_generators(&paths).unwrap(), []);
    drop((generator, other));
    let lost = lost_generators(&paths).unwrap();
    let found: Vec<_> = lost
        .iter()
        .map(|one| (one.number, &one.worker[..]))
        .collect();
    assert_eq!(found, [(0, "a")]);
    assert!(lost[0].silence >= 2 * SILENCE, "{lost:?}");
    // A status since then.
    fs::write(paths.status(0), "").unwrap();
    let (other, recovery) = start_of("c");
    assert_eq!((other.number(), recovery.adopted), (2, vec![]));
    drop(other);
    // The files' clock is coarser than the system's.
    age(&paths, 0, SILENCE + Duration::from_secs(1));
    let (other, recovery) = start_of("c");
    assert_eq!((other.number(), other.is_resumed()), (2, true));
    assert_eq!((ids(&recovery), recovery.adopted), (vec![(0, 0)], vec![0]));
    assert_eq!(lost_generators(&paths).unwrap(), []);
    assert_eq!(paths.worker(0).as_deref(), Some("a"));
}

#[test]
fn another_machine_s_generator_works_while_the_copy_of_its_status_changes() {
    let (_root, paths) = run();
    fs::create_dir_all(paths.folder(2_000)).unwrap();
    assert!(running_generators(&paths).unwrap().is_empty());
    fs::write(paths.status(2_000), "{}").unwrap();
    assert_eq!(running_generators(&paths).unwrap(), [2_000]);
    assert_eq!(lost_generators(&paths).unwrap(), []);
    let (_here, _) = start(&paths, 1);
    assert_eq!(running_generators(&paths).unwrap(), [0, 2_000]);
    // Its clock is of no account, but for one that makes it newer than now.
    age(&paths, 2_000, SILENCE - Duration::from_secs(30));
    assert_eq!(running_generators(&paths).unwrap(), [0, 2_000]);
    assert_eq!(lost_generators(&paths).unwrap(), []);
    age(&paths, 2_000, SILENCE + Duration::from_secs(1));
    assert_eq!(running_generators(&paths).unwrap(), [0]);
    // Its games are in a journal elsewhere, until it is done.
    let lost = lost_generators(&paths).unwrap();
    assert!(matches!(&lost[..], [one] if one.number == 2_000 && one.is_elsewhere));
    fs::write(paths.folder(2_000).join("done"), "").unwrap();
    assert_eq!(lost_generators(&paths).unwrap(), []);
    fs::remove_file(paths.folder(2_000).join("done")).unwrap();
    // Nor does a copy of its plan make it resume here.
    fs::copy(
        paths.folder(0).join("plan.toml"),
        paths.folder(2_000).join("plan.toml"),
    )
    .unwrap();
    let (beside, _) = start(&paths, 1);
    assert_eq!((beside.number(), beside.is_resumed()), (1, false));
}

#[test]
fn a_block_gives_the_numbers_of_new_generators_alone() {
    let (_root, paths) = run();
    let block = |block| GeneratorPaths {
        numbers: block_numbers(block),
        ..paths.clone()
    };
    assert_eq!(block_numbers(BLOCKS - 1).end, GeneratorPaths::ALL.end);
    let (generator, _) = start(&block(7), 1);
    assert_eq!(generator.number(), 7_000);
    let (second, _) = start(&block(7), 2);
    let (elsewhere, _) = start(&block(8), 3);
    let (without, _) = start(&paths, 4);
    let numbers = [&second, &elsewhere, &without].map(Generator::number);
    assert_eq!(numbers, [7_001, 8_000, 0]);
    drop(generator);
    let (resumed, _) = start(&block(9), 1);
    assert_eq!((resumed.number(), resumed.is_resumed()), (7_000, true));
    let used_up = GeneratorPaths {
        numbers: 7_000..7_002,
        ..paths
    };
    let message = Generator::start(&used_up, &plan(5))
        .err()
        .unwrap()
        .to_string();
    assert!(
        message.ends_with("generators has no free number left from 7000 to 7001"),
        "{message}"
    );
}

#[test]
fn a_generator_that_is_done_is_not_resumed() {
    let (_root, paths) = run();
    let (generator, _) = start(&paths, 1);
    begin(&generator, 0).unwrap();
    let message = generator.mark_done().unwrap_err().to_string();
    assert!(
        message.contains("generator 0 has 1 games in flight"),
        "{message}"
    );
    let shard = crate::record::ShardName {
        generator: 0,
        sequence: 0,
    };
    let game = GameId {
        generator: 0,
        counter: 0,
    };
    generator.journal().closing(shard, &[game]).unwrap();
    generator.journal().closed(shard).unwrap();
    generator.mark_done().unwrap();
    drop(generator);
    let (next, recovery) = start(&paths, 1);
    assert_eq!((next.number(), next.is_resumed()), (1, false));
    assert!(recovery.games.is_empty());
}

#[test]
fn generators_that_start_at_once_never_share_a_number() {
    let (_root, paths) = run();
    for round in 0..6 {
        let barrier = Barrier::new(8);
        let mut live: Vec<(Generator, Recovery)> = std::thread::scope(|scope| {
            let starts: Vec<_> = (0..8)
                .map(|index| {
                    let (paths, barrier) = (&paths, &barrier);
                    scope.spawn(move || {
                        barrier.wait();
                        start(paths, index % 2)
                    })
                })
                .collect();
            starts
                .into_iter()
                .map(|start| start.join().unwrap())
                .collect()
        });
        // Every game that was in flight resumes exactly once.
        let mut games: Vec<_> = live
            .iter()
            .flat_map(|(_, recovery)| ids(recovery))
            .collect();
        let count = games.len();
        games.sort_unstable();
        games.dedup();
        assert_eq!((games.len(), count), (8 * round, 8 * round));
        live.sort_by_key(|(generator, _)| generator.number());
        live.dedup_by_key(|(generator, _)| generator.number());
        assert_eq!(live.len(), 8);
        for (generator, recovery) in &live {
            begin(generator, recovery.next_counter).unwrap();
        }
    }
}

#[test]
fn a_start_that_fails_wastes_no_number() {
    let (_root, paths) = run();
    // A folder in the way of the journal's first file.
    let in_the_way = paths.journal.join("000-000000.journal.tmp");
    fs::create_dir_all(in_the_way.join("full")).unwrap();
    for _ in 0..3 {
        let message = Generator::start(&paths, &plan(1))
            .err()
            .unwrap()
            .to_string();
        assert!(message.contains("000-000000.journal.tmp"), "{message}");
    }
    fs::remove_dir_all(&in_the_way).unwrap();
    assert_eq!(start(&paths, 1).0.number(), 0);
    // What another kind of program, or an older one, has claimed is left alone.
    for name in ["001", "1", "x"] {
        fs::create_dir(paths.root.join("generators").join(name)).unwrap();
    }
    assert_eq!(start(&paths, 2).0.number(), 2);
}

#[test]
fn a_generator_broken_off_before_its_plan_is_taken_over() {
    let (_root, paths) = run();
    let (generator, _) = start(&paths, 1);
    begin(&generator, 0).unwrap();
    drop(generator);
    fs::remove_file(paths.root.join("generators/000/plan.toml")).unwrap();
    let (next, recovery) = start(&paths, 1);
    assert_eq!((next.number(), ids(&recovery)), (1, vec![(0, 0)]));
    // Nor is a plan believed whose journal is gone.
    drop(next);
    fs::remove_file(paths.root.join("generators/001/plan.toml")).unwrap();
    let (next, recovery) = start(&paths, 1);
    assert_eq!((next.number(), ids(&recovery)), (2, vec![(0, 0)]));
    drop(next);
    fs::remove_dir_all(&paths.journal).unwrap();
    assert_eq!(start(&paths, 1).0.number(), 3);
}

#[test]
fn a_journal_that_can_t_be_read_is_an_error_for_its_plan_and_left_by_others() {
    let (_root, paths) = run();
    let (generator, _) = start(&paths, 1);
    begin(&generator, 0).unwrap();
    drop(generator);
    let path = paths.journal.join("000-000000.journal");
    let mut bytes = fs::read(&path).unwrap();
    bytes[40] ^= 1;
    fs::write(&path, &bytes).unwrap();
    // With another number all its games would be played again.
    let message = Generator::start(&paths, &plan(1))
        .err()
        .unwrap()
        .to_string();
    for part in ["000-000000.journal: byte 12: ", "move", "generators/000"] {
        assert!(message.contains(part), "no `{part}` in: {message}");
    }
    let (next, recovery) = start(&paths, 2);
    assert_eq!((next.number(), next.is_resumed()), (1, false));
    assert_eq!(recovery.left[0].path, path);
    assert_eq!(fs::read(&path).unwrap(), bytes);
    // As the message advises.
    fs::rename(&path, paths.root.join("000-000000.journal")).unwrap();
    fs::remove_dir_all(paths.root.join("generators/000")).unwrap();
    let (again, recovery) = start(&paths, 1);
    assert_eq!((again.is_resumed(), recovery.games.len()), (false, 0));
    assert_eq!(again.number(), 2, "0 was used");
    assert_eq!(claim_generator(&paths).unwrap(), 3);
}

#[test]
fn a_plan_that_can_t_be_read_is_no_other_plan() {
    let (_root, paths) = run();
    let (generator, _) = start(&paths, 1);
    begin(&generator, 0).unwrap();
    drop(generator);
    let path = paths.root.join("generators/000/plan.toml");
    let kept = fs::read_to_string(&path).unwrap();
    for damaged in ["", "seed", &kept.replace("seed = \"1\"", "seed = \"3\"")] {
        fs::write(&path, damaged).unwrap();
        let message = Generator::start(&paths, &plan(1))
            .err()
            .unwrap()
            .to_string();
        assert!(message.contains("generators/000/plan.toml"), "{message}");
    }
    for length in 1..kept.len() {
        fs::write(&path, &kept[..length]).unwrap();
        match Claimed::new(&paths, 0).read_plan() {
            Ok(found) => assert_eq!(found, Some(plan(1)), "cut at {length}"),
            Err(error) => assert!(matches!(error, RunError::GeneratorPlan { .. })),
        }
    }
    fs::write(&path, kept).unwrap();
    assert_eq!(start(&paths, 1).0.number(), 0);
}

#[test]
fn plans_are_read_as_they_were_written() {
    for games in [None, Some(u64::MAX)] {
        let plan = GeneratorPlan {
            seed: u64::MAX,
            games,
            ..plan(0)
        };
        let text = toml::to_string(&plan).unwrap();
        assert!(text.contains("seed = \"18446744073709551615\""), "{text}");
        assert_eq!(toml::from_str::<GeneratorPlan>(&text).unwrap(), plan);
    }
}

#[test]
fn each_generator_gets_a_number_of_its_own() {
    let (_root, paths) = run();
    let mut numbers: Vec<u32> = std::thread::scope(|scope| {
        let claims: Vec<_> = (0..8)
            .map(|_| scope.spawn(|| claim_generator(&paths).unwrap()))
            .collect();
        claims
            .into_iter()
            .map(|claim| claim.join().unwrap())
            .collect()
    });
    numbers.sort_unstable();
    assert_eq!(numbers, [0, 1, 2, 3, 4, 5, 6, 7]);
}
