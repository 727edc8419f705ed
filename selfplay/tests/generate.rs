//! `selfplay generate` as a user runs it.

use assert_cmd::Command;
use engine::record::{GameRecord, ShardReader, list_shards, replay};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// Small games: few evaluations, few turns.
const SMALL: [&str; 8] = [
    "--set",
    "selfplay.evaluations=8",
    "--set",
    "selfplay.targets.min_visits=2",
    "--set",
    "selfplay.max_turns=30",
    "--set",
    "selfplay.games_per_shard=5",
];

fn selfplay() -> Command {
    Command::new(env!("CARGO_BIN_EXE_selfplay"))
}

fn generate(out: &Path, games: &str, more: &[&str]) -> Command {
    let mut command = selfplay();
    command
        .arg("generate")
        .arg("--out")
        .arg(out)
        .args(["--games", games, "--network", "uniform"])
        .args(SMALL)
        .args(more);
    command
}

fn records(folder: &Path) -> Vec<GameRecord> {
    let mut records: Vec<GameRecord> = list_shards(folder)
        .unwrap()
        .values()
        .flat_map(|path| {
            ShardReader::open(path)
                .unwrap()
                .map(Result::unwrap)
                .collect::<Vec<_>>()
        })
        .collect();
    records.sort_by_key(|record| record.id);
    records
}

fn message(command: &mut Command) -> (i32, String) {
    let output = command.output().unwrap();
    (
        output.status.code().unwrap(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    )
}

#[test]
fn all_games_are_written_and_valid() {
    let folder = tempfile::tempdir().unwrap();
    generate(folder.path(), "12", &["--seed", "3", "--threads", "2"])
        .assert()
        .success();
    let records = records(folder.path());
    assert_eq!(
        records
            .iter()
            .map(|record| record.id.counter)
            .collect::<Vec<_>>(),
        (0..12).collect::<Vec<_>>()
    );
    for record in &records {
        replay(record).unwrap();
        assert!(record.turns.len() <= 30);
    }
    assert_eq!(
        list_shards(folder.path()).unwrap().len(),
        3,
        "five games a shard"
    );
}

#[test]
fn the_same_seed_gives_the_same_games_on_any_number_of_threads() {
    let play = |seed: &str, threads: &str| {
        let folder = tempfile::tempdir().unwrap();
        generate(folder.path(), "9", &["--seed", seed, "--threads", threads])
            .assert()
            .success();
        records(folder.path())
    };
    let one = play("4", "1");
    assert_eq!(one, play("4", "3"));
    assert_ne!(one, play("5", "1"));
}

#[test]
fn groups_change_no_game() {
    let play = |more: &[&str]| {
        let folder = tempfile::tempdir().unwrap();
        let output = generate(folder.path(), "9", more).output().unwrap();
        assert!(output.status.success());
        (records(folder.path()), output.stderr)
    };
    let (one, printed) = play(&["--threads", "1"]);
    let printed = String::from_utf8_lossy(&printed).into_owned();
    assert!(printed.contains("workers: search "), "{printed}");
    let (other, _) = play(&["--threads", "2", "--set", "selfplay.groups=3"]);
    assert_eq!(one, other);
}

#[test]
fn the_hand_made_evaluator_plays_games() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = selfplay();
    command.arg("generate").arg("--out").arg(folder.path());
    command.args(["--games", "2", "--network", "material"]);
    command.args(SMALL).assert().success();
    for path in list_shards(folder.path()).unwrap().values() {
        let evaluator = &ShardReader::open(path).unwrap().header().evaluator.clone();
        assert_eq!(
            (evaluator.name.as_str(), evaluator.identity.as_str()),
            ("material", "material")
        );
    }
    assert!(
        records(folder.path())
            .iter()
            .all(|record| replay(record).is_ok())
    );
}

#[test]
fn a_second_generator_adds_its_own_games() {
    let folder = tempfile::tempdir().unwrap();
    for _ in 0..2 {
        generate(folder.path(), "3", &[]).assert().success();
    }
    let ids: Vec<_> = records(folder.path())
        .iter()
        .map(|record| (record.id.generator, record.id.counter))
        .collect();
    assert_eq!(ids, [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]);
}

#[test]
fn a_signal_stops_it_cleanly_and_keeps_what_is_finished() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_selfplay"))
        .args([
            "generate",
            "--games",
            "1000000",
            "--network",
            "uniform",
            "--threads",
            "2",
            "--out",
        ])
        .arg(folder.path())
        .args(SMALL)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_until("a shard is written", || {
        list_shards(folder.path()).is_ok_and(|shards| !shards.is_empty())
    });
    signal(&child, "-TERM");
    wait_until("the program stops", || child.try_wait().unwrap().is_some());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(75));
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(printed.contains("stopped, asked to stop: "), "{printed}");
    assert!(
        printed.contains("games in flight are in the journal"),
        "{printed}"
    );
    let records = records(folder.path());
    assert!(
        printed.starts_with(&format!("{} games, ", records.len())),
        "{printed}"
    );
    let temporary = std::fs::read_dir(folder.path()).unwrap().filter(|entry| {
        let name = entry.as_ref().unwrap().file_name();
        !name.to_string_lossy().ends_with(".shard") && name != "generators" && name != "journal"
    });
    assert_eq!(temporary.count(), 0);
}

fn signal(child: &Child, signal: &str) {
    assert!(
        std::process::Command::new("kill")
            .args([signal, &child.id().to_string()])
            .status()
            .unwrap()
            .success()
    );
}

fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "{what}: not within a minute"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Whatever this machine lacks: no GPU has this number.
#[test]
fn an_unusable_device_is_one_error_line_before_any_work() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let (code, printed) = message(&mut generate(&out, "2", &["--device", "cuda:0,cuda:999"]));
    assert_eq!(code, 1, "{printed}");
    assert!(
        printed.starts_with("error: --device: device cuda:"),
        "{printed}"
    );
    assert_eq!(printed.trim_end().lines().count(), 1, "{printed}");
    assert!(!out.exists());
    let mut pit = selfplay();
    pit.args(["pit", "--b", "tusker device=cuda:999", "--games", "2"])
        .args(["--evaluations", "2", "--out"])
        .arg(&out);
    let (code, printed) = message(&mut pit);
    assert_eq!(code, 1, "{printed}");
    assert!(
        printed.starts_with("error: --b tusker: device: device cuda:999: "),
        "{printed}"
    );
    assert!(!out.exists());
}

#[test]
fn faulty_arguments_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let config = folder.path().join("faulty.toml");
    std::fs::write(&config, "[selfplay]\nvisit = 3\n").unwrap();
    let config = config.to_str().unwrap();
    let missing = folder.path().join("missing.safetensors");
    for (more, code, parts) in [
        (
            vec!["--set", "selfplay.evaluations=0"],
            1,
            vec!["selfplay.evaluations = 0", "1 to"],
        ),
        (
            vec!["--config", config],
            1,
            vec!["faulty.toml", "line 2", "visit"],
        ),
        (vec!["--config", "missing.toml"], 1, vec!["missing.toml"]),
        (vec!["--device", "cuda:x"], 2, vec!["cuda:x"]),
        (vec!["--run", "elsewhere"], 2, vec!["--out", "--run"]),
        (vec!["--threads", "0"], 2, vec!["--threads"]),
    ] {
        let (actual, printed) = message(&mut generate(&out, "2", &more));
        assert_eq!(actual, code, "{more:?}: {printed}");
        for part in parts {
            assert!(printed.contains(part), "{more:?}: {printed}");
        }
    }
    let network = |path: &Path| {
        let mut command = selfplay();
        command
            .arg("generate")
            .arg("--out")
            .arg(&out)
            .args(["--games", "2", "--network"])
            .arg(path);
        message(&mut command)
    };
    let (code, printed) = network(&missing);
    assert!(
        code == 1 && printed.contains("missing.safetensors"),
        "{printed}"
    );
    let broken = folder.path().join("broken.safetensors");
    std::fs::write(&broken, b"nothing of a network").unwrap();
    let (code, printed) = network(&broken);
    assert!(
        code == 1 && printed.contains("broken.safetensors"),
        "{printed}"
    );
    assert!(!out.exists(), "nothing was begun");
}

#[test]
fn a_folder_that_can_t_be_made_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, b"x").unwrap();
    let (code, printed) = message(&mut generate(&file, "2", &[]));
    assert!(
        code == 1 && printed.contains(file.to_str().unwrap()),
        "{printed}"
    );
}

#[test]
fn the_resolved_configuration_is_printed() {
    let folder = tempfile::tempdir().unwrap();
    let output = generate(&folder.path().join("out"), "2", &["--print-config"])
        .output()
        .unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    let printed = engine::config::Config::parse(&printed).unwrap();
    assert_eq!(printed.selfplay.evaluations, 8);
    assert!(!folder.path().join("out").exists());
}
