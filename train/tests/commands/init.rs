//! `train init` as a user runs it.

use super::*;
use network::Network;

/// What a network's file holds behind its header.
fn weights_of(path: &Path) -> Vec<u8> {
    let mut bytes = fs::read(path).unwrap();
    let header = u64::from_le_bytes(bytes[..8].try_into().unwrap());
    bytes.split_off(8 + header as usize)
}

/// A command fails with exit code 1 and a message with these parts, and does not panic.
#[test]
fn init_makes_a_run_and_never_touches_one() {
    let folder = tempfile::tempdir().unwrap();
    let run = run_of(&folder);
    init(&run);
    let config = Config::load(&run.join("config.toml")).unwrap();
    assert_eq!((config.network.blocks, config.train.batch_size), (1, 64));
    let path = run.join("networks/00000.safetensors");
    let network = Network::load(&path).unwrap();
    assert_eq!(
        (
            network.network.architecture().channels,
            &network.origin["seed"][..]
        ),
        (8, "0")
    );
    let bytes = fs::read(&path).unwrap();
    fails(
        train()
            .arg("init")
            .arg("--run")
            .arg(&run)
            .args(["--seed", "5"]),
        &["run already holds a run", "nothing was changed"],
    );
    assert_eq!(fs::read(&path).unwrap(), bytes);
    let other = folder.path().join("other");
    train()
        .arg("init")
        .arg("--run")
        .arg(&other)
        .args(SMALL)
        .args(["--seed", "5"])
        .assert()
        .success();
    assert_ne!(
        fs::read(other.join("networks/00000.safetensors")).unwrap(),
        bytes
    );
}

#[test]
fn a_run_begins_with_a_network_that_was_trained_elsewhere() {
    let folder = tempfile::tempdir().unwrap();
    let begin = |name: &str, network: &Path, more: &[&str]| {
        let run = folder.path().join(name);
        let mut command = train();
        command.arg("init").arg("--run").arg(&run);
        command.arg("--network").arg(network).args(more);
        (command, run)
    };
    let built_in = Network::built_in().unwrap();
    let size = built_in.network.architecture();
    let (mut command, run) = begin("one", Path::new("tusker"), &["--seed", "7"]);
    assert_eq!(outcome(&mut command).0, 0);
    let path = run.join("networks/00000.safetensors");
    let first = Network::load(&path).unwrap();
    let of = |key: &str| &first.origin[key][..];
    assert_eq!([of("parent"), of("seed")], [&built_in.identity[..], "7"]);
    assert_eq!([of("generation"), of("step")], ["0", "0"]);
    fails(&mut command, &["one already holds a run"]);
    // The same weights, brought from a file.
    let (mut command, run) = begin("two", &path, &[]);
    assert_eq!(outcome(&mut command).0, 0);
    assert_eq!(
        weights_of(&run.join("networks/00000.safetensors")),
        weights_of(&path)
    );
    let config = Config::load(&run.join("config.toml")).unwrap();
    assert_eq!(size, config.network.into());
    // What can't be resumed leaves nothing behind.
    let found = format!("{} blocks and {} channels", size.blocks, size.channels);
    let (mut command, run) = begin("three", &path, &SMALL);
    fails(&mut command, &[&found, "1 and 8", "--set"]);
    assert!(!run.exists());
    let small = Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs/small.toml");
    let (mut command, run) = begin("file", &path, &["--config", small.to_str().unwrap()]);
    fails(&mut command, &[&found, "3 and 32", "--set"]);
    assert!(!run.exists());
    let (mut command, run) = begin("four", &folder.path().join("none.safetensors"), &[]);
    fails(&mut command, &["none.safetensors"]);
    assert!(!run.exists());
    // Without --from nothing is trained.
    for option in ["--steps", "--threads", "--grace"] {
        let (mut command, run) = begin("five", &path, &[option, "3"]);
        let (code, _, message) = outcome(&mut command);
        assert!(code == 2 && message.contains("--from"), "{message}");
        assert!(!run.exists());
    }
}

#[test]
fn the_configuration_is_printed_and_nothing_made() {
    let folder = tempfile::tempdir().unwrap();
    let run = run_of(&folder);
    let (code, text, _) = outcome(
        train()
            .arg("init")
            .arg("--run")
            .arg(&run)
            .args(SMALL)
            .arg("--print-config"),
    );
    assert_eq!(code, 0);
    assert!(
        text.contains("blocks = 1\n") && text.contains("[loop]"),
        "{text}"
    );
    assert!(!run.exists());
    // The default configuration is the measured preset, and needs no run.
    for command in ["init", "loop"] {
        let print = |more: &[&str]| outcome(train().arg(command).arg("--print-config").args(more));
        let small = concat!(env!("CARGO_MANIFEST_DIR"), "/../configs/small.toml");
        let printed = print(&[]);
        assert_eq!(printed.0, 0, "{}", printed.2);
        assert_eq!(printed.1, print(&["--config", small]).1);
        assert_eq!(outcome(train().arg(command)).0, 2);
    }
}

#[test]
fn a_bad_configuration_or_command_line_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let run = run_of(&folder);
    let path = folder.path().join("bad.toml");
    for (text, parts) in [
        (
            "[train]\nbatch = 3\n",
            ["bad.toml", "train.batch is not a key"],
        ),
        (
            "[loop]\nmatch_games = 3\n",
            ["loop.match_games = 3", "an even number"],
        ),
        (
            "[loop]\npit_games = 4\n",
            ["bad.toml", "loop.pit_games is now loop.match_games"],
        ),
        ("[train]\npool_rows = 0\n", ["train.pool_rows = 0", "1 to"]),
        ("[train\n", ["bad.toml", "line 1"]),
    ] {
        fs::write(&path, text).unwrap();
        for command in ["init", "loop"] {
            fails(
                train()
                    .arg(command)
                    .arg("--run")
                    .arg(&run)
                    .arg("--config")
                    .arg(&path),
                &parts,
            );
        }
    }
    let missing = folder.path().join("missing.toml");
    fails(
        train()
            .arg("init")
            .arg("--run")
            .arg(&run)
            .arg("--config")
            .arg(&missing),
        &["missing.toml"],
    );
    assert!(!run.exists());
    for arguments in [
        &["run"][..],
        &["init", "--run"],
        &["what"],
        &["run", "--run", "x", "--steps", "0"],
        &["info"],
    ] {
        assert_eq!(outcome(train().args(arguments)).0, 2, "{arguments:?}");
    }
    let (code, _, message) = outcome(train_run(&run, &[]).args(["--device", "gpu"]));
    assert!(
        code == 2 && message.contains("expected cpu, cpu:service, cuda or cuda:N"),
        "{message}"
    );
}

#[test]
fn a_trained_network_learns_from_the_games_of_another_run() {
    let folder = tempfile::tempdir().unwrap();
    let (old, new) = (run_of(&folder), folder.path().join("new"));
    init(&old);
    write_shard(&old, 0, 12);
    let other = folder.path().join("other");
    let mut command = train();
    command.arg("init").arg("--run").arg(&other).args(SMALL);
    command.args(["--seed", "9", "--set", "network.channels=16"]);
    assert_eq!(outcome(&mut command).0, 0);
    let given = other.join("networks/00000.safetensors");
    let from = |network: &Path| {
        let mut command = train();
        command.arg("init").arg("--run").arg(&new);
        command
            .arg("--from")
            .arg(&old)
            .arg("--network")
            .arg(network);
        command.args(["--threads", "1", "--steps", "6"]);
        command
    };
    let (code, _, message) = outcome(&mut from(&given));
    assert_eq!(code, 0, "{message}");
    let [first, trained] =
        ["00000", "00001"].map(|name| new.join(format!("networks/{name}.safetensors")));
    assert_eq!(weights_of(&first), weights_of(&given));
    let network = Network::load(&trained).unwrap();
    assert_eq!(network.network.architecture().channels, 16);
    assert_eq!(network.origin["step"], "6");
    // After a stop, the same command resumes; another network is refused.
    fs::remove_file(&trained).unwrap();
    fails(
        &mut from(&old.join("networks/00000.safetensors")),
        &["network.channels"],
    );
    write_shard(&old, 1, 2);
    fails(&mut from(&first), &["new already holds a run"]);
    let mut without = train();
    without
        .arg("init")
        .arg("--run")
        .arg(&new)
        .arg("--from")
        .arg(&old);
    without.args(["--set", "network.channels=16", "--steps", "6"]);
    fails(&mut without, &["new already holds a run"]);
    assert!(!new.join("shards/000-000001.shard").exists());
    let (code, _, message) = outcome(&mut from(&given));
    assert_eq!(code, 0, "{message}");
    assert!(message.contains("resuming network 1"), "{message}");
}

#[test]
fn a_larger_network_is_begun_with_the_games_of_another_run() {
    let folder = tempfile::tempdir().unwrap();
    let (old, new) = (run_of(&folder), folder.path().join("new"));
    let from = |more: &[&str]| {
        let mut command = train();
        command
            .arg("init")
            .arg("--run")
            .arg(&new)
            .arg("--from")
            .arg(&old);
        command
            .args(["--threads", "2", "--set", "network.channels=16"])
            .args(more);
        command
    };
    fails(&mut from(&[]), &["run is not a run", "config.toml"]);
    init(&old);
    fails(&mut from(&[]), &["shards holds no games"]);
    let damaged = old.join("shards/000-000002.shard");
    fs::create_dir_all(old.join("shards")).unwrap();
    fs::write(&damaged, "no shard").unwrap();
    fails(&mut from(&[]), &["000-000002.shard", "not a shard"]);
    assert!(!new.exists());
    fs::remove_file(&damaged).unwrap();
    write_shard(&old, 3, 12);
    let before = fs::read(old.join("shards/000-000003.shard")).unwrap();
    // Killed before the first network was there.
    fs::create_dir_all(new.join("shards")).unwrap();
    fs::hard_link(
        old.join("shards/000-000003.shard"),
        new.join("shards/000-000003.shard"),
    )
    .unwrap();
    write_shard(&old, 4, 2);
    let (code, said, message) = outcome(&mut from(&["--steps", "6", "--seed", "3"]));
    assert_eq!(code, 0, "{message}");
    assert!(
        message.contains("2 shards of ") && said.contains("00001.safetensors"),
        "{said}{message}"
    );
    assert!(
        message.contains("training network 1 from step 0 to 6: 14 games"),
        "{message}"
    );
    let network = Network::load(&new.join("networks/00001.safetensors")).unwrap();
    assert_eq!(network.network.architecture().channels, 16);
    assert_eq!(
        (&network.origin["step"][..], &network.origin["seed"][..]),
        ("6", "3")
    );
    // The rest of the configuration is the old run's.
    let config = Config::load(&new.join("config.toml")).unwrap();
    assert_eq!((config.train.batch_size, config.network.channels), (64, 16));
    assert_eq!(
        fs::read(new.join("shards/000-000003.shard")).unwrap(),
        before
    );
    assert!(!old.join("networks/00001.safetensors").exists());
    // After a stop, the same command resumes.
    fs::remove_file(new.join("networks/00001.safetensors")).unwrap();
    let (code, _, message) = outcome(&mut from(&["--steps", "6", "--seed", "3"]));
    assert!(
        code == 0 && message.contains("resuming network 1"),
        "{message}"
    );
    fails(&mut from(&[]), &["new already holds a run"]);
    // More steps than the rows may be used for.
    let other = folder.path().join("other");
    let mut command = train();
    command
        .arg("init")
        .arg("--run")
        .arg(&other)
        .arg("--from")
        .arg(&old);
    command.args([
        "--threads",
        "2",
        "--steps",
        "1000",
        "--set",
        "train.reuse_factor=1",
    ]);
    fails(
        &mut command,
        &["used as often", "other` resumes", "newest checkpoint"],
    );
    assert!(other.join("networks/00000.safetensors").exists());
}
