//! Several generators on one run, killed and started again.

use super::audit::{Audit, assert_resumes, in_flight};
use super::process::{GeneratorCommand, Running, done_file, names};
use engine::record::list_shards;
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use std::collections::BTreeSet;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

/// Starts a command, and waits until its generator is beyond taking over what others have left.
fn start(command: &GeneratorCommand) -> Running {
    let journal = || names(&command.paths().journal);
    let before = journal();
    let mut running = command.start();
    running.wait_until("its journal is there", |_| {
        let new = |name: &String| name.ends_with(".journal") && !before.contains(name);
        journal().iter().any(new)
    });
    running
}

/// Keeps two commands' generators running on one run, kills one of them now and then, and lets both end. Returns how many it has
/// killed. With care one of them is beyond its start at any time.
fn kill_in_turns(
    command: &[GeneratorCommand; 2],
    kills: usize,
    seed: u64,
    with_care: bool,
) -> usize {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let paths = command[0].paths();
    let mut running = vec![command[0].start()];
    let has_plan = |number| {
        let plan = done_file(paths, number).with_file_name("plan.toml");
        plan.exists()
    };
    if with_care {
        // On a busy machine the first could play all its games before the second begins.
        running[0].wait_until("the first has a plan", |_| has_plan(0));
        running[0].signal("STOP");
    }
    running.push(command[1].start());
    if with_care {
        running[1].wait_until("the second has a plan", |_| has_plan(1));
        running[0].signal("CONT");
    }
    let is_done = || [0, 1].map(|number| done_file(paths, number).exists());
    let (mut killed, mut last) = (0, None);
    while killed < kills && !running.iter_mut().any(Running::has_ended) {
        let victim = rng.random_range(0..2);
        running.remove(victim).kill();
        killed += 1;
        // It may have reported that all is done; then the same command starts another generator.
        if is_done().contains(&true) {
            last = Some(&command[victim]);
            break;
        }
        running.insert(
            victim,
            if with_care {
                start(&command[victim])
            } else {
                command[victim].start()
            },
        );
        sleep(Duration::from_millis(rng.random_range(0..50)));
    }
    for generator in running {
        let ended = generator.wait();
        assert!(ended.status.success(), "{ended:?}");
    }
    // Unless it was that one that is done, and has left nothing to another.
    if let Some(command) = last
        && (!with_care || is_done().contains(&false))
    {
        command.finish();
    }
    killed
}

fn command(run: &Path, seed: &str) -> GeneratorCommand {
    let arguments = ["--games", "300", "--threads", "1", "--seed", seed];
    GeneratorCommand::for_run(run)
        .set(&["selfplay.games_per_shard=4"])
        .with(&arguments)
}

#[test]
fn two_generators_on_one_run_are_independent() {
    let folder = tempfile::tempdir().unwrap();
    for (name, seeds) in [("alike", ["21", "21"]), ("other seeds", ["22", "23"])] {
        let run = folder.path().join(name);
        let command = seeds.map(|seed| command(&run, seed));
        let killed = kill_in_turns(&command, 3, 4, true);
        assert!(killed >= 1);
        let audit = Audit::of(command[0].paths());
        audit.assert_complete(command[0].paths(), &[0, 1], 300);
        let games = audit.games.iter();
        let found: BTreeSet<_> = games.map(|(id, game)| (id.generator, game.seed)).collect();
        let mut found: Vec<String> = found.iter().map(|(_, seed)| seed.to_string()).collect();
        found.sort();
        assert_eq!(found, seeds, "one seed a generator");
    }
}

/// One that starts while the other is dead takes over its games, and the dead one's command gets another number.
#[test]
fn two_generators_killed_together_lose_no_game() {
    let folder = tempfile::tempdir().unwrap();
    let command = ["24", "25"].map(|seed| command(folder.path(), seed));
    let killed = kill_in_turns(&command, 10, 5, false);
    assert!(killed >= 1);
    let audit = Audit::of(command[0].paths());
    audit.assert_sound();
    assert_eq!(in_flight(command[0].paths()), []);
    for generator in audit.generators() {
        let counters = audit.counters(generator);
        assert_eq!(counters, (0..counters.len() as u64).collect::<Vec<_>>());
    }
    assert!(audit.games.len() >= 300);
}

#[test]
fn the_games_of_a_dead_generator_are_adopted() {
    let folder = tempfile::tempdir().unwrap();
    let order = |seed: &str, games: &str| {
        let arguments = ["--threads", "2", "--seed", seed, "--games", games];
        GeneratorCommand::for_run(folder.path())
            .set(&["selfplay.games_per_shard=6"])
            .with(&arguments)
    };
    let dead = order("31", "100000");
    let paths = dead.paths();
    let mut running = dead.start();
    running.wait_until("there are shards", |_| {
        list_shards(&paths.shards).is_ok_and(|shards| shards.len() > 1)
    });
    running.kill();
    let begun = in_flight(paths);
    assert!(!begun.is_empty());
    let before = Audit::of(paths);
    let heir = order("32", "20");
    let ended = heir.finish();
    let stderr = format!("resumes {} games in flight", begun.len());
    assert!(ended.stderr.contains(&stderr), "{}", ended.stderr);

    let audit = Audit::of(paths);
    audit.assert_sound();
    assert_eq!(in_flight(paths), []);
    for game in &begun {
        assert_resumes(&audit.games[&game.beginning.id], game);
    }
    for (id, game) in &before.games {
        assert_eq!(audit.games.get(id), Some(game));
    }
    let counters = audit.counters(0);
    assert_eq!(counters.len(), before.games.len() + begun.len());
    assert_eq!(counters, (0..counters.len() as u64).collect::<Vec<_>>());
    // They count among its own.
    let own = 20 - begun.len().min(20) as u64;
    assert_eq!(audit.counters(1), (0..own).collect::<Vec<_>>());
    // The number of the dead generator is no longer resumed.
    order("31", "100000").with(&["--hours", "0.00001"]).finish();
    assert_eq!(
        in_flight(paths)
            .iter()
            .filter(|game| game.beginning.id.generator == 0)
            .count(),
        0
    );
    let after = Audit::of(paths);
    after.assert_sound();
    assert_eq!(after.counters(0), counters);
}

#[test]
fn machines_with_blocks_of_their_own_share_no_name() {
    let folders = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let machine = |folder: &Path, block: &str| {
        GeneratorCommand::for_folder(folder)
            .set(&["selfplay.games_per_shard=4"])
            .with(&["--games", "6", "--threads", "1", "--block", block])
    };
    let together = tempfile::tempdir().unwrap();
    for (folder, block) in folders.iter().zip(["0", "9999"]) {
        machine(folder.path(), block).finish();
        // As many again: another generator of the block.
        machine(folder.path(), block).finish();
        for (name, path) in list_shards(folder.path()).unwrap() {
            let copied = std::fs::copy(path, together.path().join(name.to_string()));
            copied.unwrap();
        }
    }
    let audit = Audit::of(GeneratorCommand::for_folder(together.path()).paths());
    audit.assert_sound();
    assert_eq!(
        audit.generators(),
        BTreeSet::from([0, 1, 9_999_000, 9_999_001])
    );
    assert_eq!(audit.games.len(), 24);
    let ended = machine(together.path(), "10000").start().wait();
    assert_eq!(ended.status.code(), Some(2), "{ended:?}");
    assert!(ended.stderr.contains("10000 is not in"), "{ended:?}");
}
