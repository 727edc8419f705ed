//! Generators that are killed at any moment, and the same command again.

use super::audit::{Audit, assert_resumes, in_flight};
use super::process::{GeneratorCommand, done_file, names};
use engine::record::journal::GameInFlight;
use engine::record::{Ending, GameId};
use engine::run::GeneratorPaths;
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use std::collections::BTreeMap;
use std::fs;
use std::thread::sleep;
use std::time::Duration;

/// Everything that may be drawn for a game, but for forks: those depend on which games are finished.
const VARIED: [&str; 12] = [
    "selfplay.search.reuse_tree=false",
    "selfplay.openings.policy_share=0.6",
    "selfplay.openings.policy_turns=4",
    "selfplay.handicap.share=0.3",
    "selfplay.handicap.evaluations=0.5",
    "selfplay.soft_resignation.turns=2",
    "selfplay.soft_resignation.threshold=0.55",
    "selfplay.resignation.turns=2",
    "selfplay.resignation.threshold=0.4",
    "selfplay.resignation.played_out_share=0.7",
    "selfplay.targets.surprise_share=0.5",
    // Most finished games wait in the journal.
    "selfplay.games_per_shard=40",
];

/// How a generator fared that was killed again and again.
#[derive(Debug, Default)]
pub(crate) struct Ordeal {
    /// How often it was killed while it ran.
    pub(crate) kills: usize,
    /// The games that were in flight at a kill, as far as they had come at the last one.
    pub(crate) begun: BTreeMap<GameId, GameInFlight>,
}

/// The bytes in the newest files of the journals, once they are others than these.
fn journal_bytes(paths: &GeneratorPaths, but: &[String]) -> Option<u64> {
    let files = names(&paths.journal);
    let is_new = |name: &&String| name.ends_with(".journal") && !but.contains(name);
    let length =
        |name: &String| fs::metadata(paths.journal.join(name)).map_or(0, |file| file.len());
    let new: Vec<u64> = files.iter().filter(is_new).map(length).collect();
    (!new.is_empty()).then(|| new.iter().sum())
}

/// Kills a command's generator so many times at most, at moments drawn from the seed, and lets it end at last. How much it has
/// done between two kills is drawn too, up to so many bytes of the journal: whatever the machine, the kills fall into its work.
pub(crate) fn kill_until_done(
    command: &GeneratorCommand,
    kills: usize,
    work: u64,
    seed: u64,
) -> Ordeal {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut ordeal = Ordeal::default();
    let paths = command.paths();
    let mut shards = BTreeMap::new();
    // It may be killed after it has reported that all is done; then the same command starts another generator.
    while !done_file(paths, 0).exists() {
        if ordeal.kills == kills {
            command.finish();
            break;
        }
        let before = names(&paths.journal);
        let mut running = command.start();
        // Before it has a plan a first start only wastes a number, and games depend on that.
        if ordeal.kills == 0 || rng.random_bool(0.8) {
            let work = rng.random_range(0..work);
            let mut begun = None;
            while !running.has_ended() {
                let bytes = journal_bytes(paths, &before);
                begun = begun.or(bytes);
                if begun
                    .zip(bytes)
                    .is_some_and(|(begun, now)| now > begun + work)
                {
                    break;
                }
                sleep(Duration::from_micros(500));
            }
            sleep(Duration::from_micros(rng.random_range(0..1_000)));
        } else {
            sleep(Duration::from_millis(rng.random_range(0..150)));
        }
        if running.has_ended() {
            let ended = running.wait();
            assert!(ended.status.success(), "{ended:?}");
            break;
        }
        running.kill();
        ordeal.kills += 1;
        let audit = Audit::of(paths);
        audit.assert_sound();
        for (name, bytes) in shards {
            assert_eq!(audit.files.get(&name), Some(&bytes), "{name} has changed");
        }
        shards = audit.files;
        for game in in_flight(paths) {
            ordeal.begun.insert(game.beginning.id, game);
        }
    }
    ordeal
}

fn assert_all_resume(ordeal: &Ordeal, audit: &Audit) {
    for (id, begun) in &ordeal.begun {
        assert_resumes(&audit.games[id], begun);
    }
}

/// What many kills have done.
#[derive(Debug, Default)]
struct Toll {
    kills: usize,
    games: usize,
    lost: usize,
    doubled: usize,
    invalid: usize,
    changed: usize,
}

impl Toll {
    /// Adds what a command has made that was killed, beside what it makes when it is spared.
    fn add(&mut self, ordeal: &Ordeal, killed: &Audit, spared: &Audit) {
        let is_lost = |id: &&GameId| !killed.games.contains_key(id);
        let lost = spared.games.keys().filter(is_lost).count();
        self.kills += ordeal.kills;
        self.games += killed.games.len();
        self.lost += lost;
        self.doubled += killed.doubled.len();
        self.invalid += killed.invalid.len();
        self.changed += spared.different_in(killed).len() - lost;
    }
}

/// `scripts/kill_everything` runs this one, with the number of kills in `KILLS`.
#[test]
#[ignore = "minutes"]
fn many_kills() {
    let kills = std::env::var("KILLS").map_or(200, |kills| kills.parse().unwrap());
    let mut toll = Toll::default();
    let mut seed = 100;
    while toll.kills < kills {
        let folder = tempfile::tempdir().unwrap();
        let command = |name: &str| {
            let run = folder.path().join(name);
            let seed = seed.to_string();
            let arguments = ["--games", "300", "--threads", "3", "--seed", &seed];
            let command = GeneratorCommand::for_run(&run).with(&arguments);
            match seed.parse::<u64>().unwrap() % 3 {
                0 => command.set(&VARIED),
                1 => command.set(&[
                    "selfplay.search.reuse_tree=false",
                    "selfplay.games_per_shard=1",
                ]),
                _ => command.set(&[
                    "selfplay.search.reuse_tree=false",
                    "selfplay.games_per_shard=20",
                ]),
            }
        };
        let (killed, spared) = (command("killed"), command("spared"));
        let ordeal = kill_until_done(&killed, 25.min(kills - toll.kills), 100_000, seed);
        spared.finish();
        let audit = Audit::of(killed.paths());
        toll.add(&ordeal, &audit, &Audit::of(spared.paths()));
        assert_all_resume(&ordeal, &audit);
        assert_eq!(in_flight(killed.paths()), []);
        seed += 1;
    }
    let Toll {
        kills,
        games,
        lost,
        doubled,
        invalid,
        changed,
    } = toll;
    println!(
        "{kills} kills, {games} games: {lost} lost, {doubled} doubled, {invalid} invalid, {changed} not as without kills"
    );
    assert_eq!((lost, doubled, invalid, changed), (0, 0, 0, 0));
}

#[test]
fn a_killed_generator_resumes_all_its_games() {
    let folder = tempfile::tempdir().unwrap();
    let command = GeneratorCommand::for_folder(folder.path())
        .set(&["selfplay.games_per_shard=7"])
        .with(&["--games", "60", "--threads", "3", "--seed", "11"]);
    let ordeal = kill_until_done(&command, 6, 150_000, 1);
    assert!(ordeal.kills >= 3 && !ordeal.begun.is_empty(), "{ordeal:?}");
    let audit = Audit::of(command.paths());
    audit.assert_complete(command.paths(), &[0], 60);
    assert_all_resume(&ordeal, &audit);
    let shard = folder.path().display().to_string();
    let mut inspect = assert_cmd::Command::new(env!("CARGO_BIN_EXE_selfplay"));
    inspect.args(["inspect", &shard]).assert().success();
}

#[test]
fn kills_change_no_game() {
    let folder = tempfile::tempdir().unwrap();
    let command = |name: &str| {
        let run = folder.path().join(name);
        let arguments = ["--games", "60", "--threads", "2", "--seed", "12"];
        // Not `uniform`, which is rarely sure enough to resign.
        let command = GeneratorCommand::following(&run).with(&["--network", "material"]);
        command.set(&VARIED).with(&arguments)
    };
    let (killed, spared) = (command("killed"), command("spared"));
    let ordeal = kill_until_done(&killed, 6, 60_000, 2);
    assert!(ordeal.kills >= 3, "{ordeal:?}");
    spared.finish();
    let audit = Audit::of(killed.paths());
    audit.assert_complete(killed.paths(), &[0], 60);
    assert_all_resume(&ordeal, &audit);
    let undisturbed = Audit::of(spared.paths());
    assert_eq!(undisturbed.different_in(&audit), []);
    assert_eq!(undisturbed.bytes(), audit.bytes());
    let mut games = audit.games.values();
    assert!(games.any(|game| {
        game.resignation_waived.is_some() && matches!(game.ending, Ending::Won(_))
    }));
}

#[test]
fn kills_between_the_steps_of_tiny_shards_change_no_game() {
    let folder = tempfile::tempdir().unwrap();
    let command = |name: &str| {
        let keys = [
            "selfplay.games_per_shard=1",
            "selfplay.max_turns=6",
            "selfplay.search.reuse_tree=false",
        ];
        GeneratorCommand::for_folder(&folder.path().join(name))
            .set(&keys)
            .with(&["--games", "150", "--threads", "2", "--seed", "13"])
    };
    let (killed, spared) = (command("killed"), command("spared"));
    let ordeal = kill_until_done(&killed, 8, 60_000, 3);
    assert!(ordeal.kills >= 3, "{ordeal:?}");
    spared.finish();
    let audit = Audit::of(killed.paths());
    audit.assert_complete(killed.paths(), &[0], 150);
    assert_all_resume(&ordeal, &audit);
    let undisturbed = Audit::of(spared.paths());
    assert_eq!(undisturbed.different_in(&audit), []);
    assert_eq!(undisturbed.bytes(), audit.bytes());
}

/// Damage to a journal takes turns and beginnings, but no game: they are played again, and are the same.
#[test]
fn damage_to_a_journal_changes_no_game() {
    let folder = tempfile::tempdir().unwrap();
    let command = |name: &str| {
        let keys = [
            "selfplay.games_per_shard=5",
            "selfplay.search.reuse_tree=false",
        ];
        GeneratorCommand::for_folder(&folder.path().join(name))
            .set(&keys)
            .with(&["--games", "400", "--threads", "2", "--seed", "14"])
    };
    let (damaged, spared) = (command("damaged"), command("spared"));
    let paths = damaged.paths();
    let is_shard = |name: &String| name.ends_with(".shard");
    let mut running = damaged.start();
    running.wait_until("it has written shards", |_| {
        names(&paths.shards)
            .iter()
            .filter(|name| is_shard(name))
            .count()
            > 10
    });
    running.kill();
    let files = names(&paths.journal);
    let file = files.iter().rfind(|name| name.ends_with(".journal"));
    let file = paths.journal.join(file.unwrap());
    let mut bytes = fs::read(&file).unwrap();
    for share in [2, 3, 7] {
        let place = bytes.len() / share;
        bytes[place] ^= 1;
    }
    fs::write(&file, bytes).unwrap();
    let ended = damaged.finish();
    for part in ["are damaged and left out", ".journal.damaged"] {
        assert!(
            ended.stderr.contains(part),
            "no `{part}` in {}",
            ended.stderr
        );
    }
    spared.finish();
    let audit = Audit::of(paths);
    audit.assert_complete(paths, &[0], 400);
    assert_eq!(Audit::of(spared.paths()).different_in(&audit), []);
}
