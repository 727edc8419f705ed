//! What the tests of the program share.

// Each test program uses its part.
#![allow(dead_code)]

use assert_cmd::Command;
use engine::encoding::ENCODING_VERSION;
use engine::record::{
    EvaluatorId, GameId, Header, ShardName, ShardWriter, digest, samples::random_game,
};
use std::path::Path;

/// A run so small that a step takes milliseconds.
pub(crate) const SMALL: [&str; 14] = [
    "--set",
    "network.blocks=1",
    "--set",
    "network.channels=8",
    "--set",
    "train.batch_size=64",
    "--set",
    "train.checkpoint_steps=5",
    "--set",
    "train.pool_rows=300",
    "--set",
    "train.reuse_factor=100",
    "--set",
    "train.network_steps=20",
];

/// The program.
pub(crate) fn train() -> Command {
    Command::new(env!("CARGO_BIN_EXE_train"))
}

/// Makes a small run.
pub(crate) fn init(run: &Path) {
    init_with(run, &[]);
}

/// Makes a small run with more arguments.
pub(crate) fn init_with(run: &Path, more: &[&str]) {
    train()
        .arg("init")
        .arg("--run")
        .arg(run)
        .args(SMALL)
        .args(more)
        .assert()
        .success();
}

/// Writes a shard of short random games to a run.
pub(crate) fn write_shard(run: &Path, sequence: u32, games: u64) {
    let header = Header {
        encoding_version: ENCODING_VERSION,
        program_version: "0.0.0".into(),
        evaluator: EvaluatorId {
            name: "uniform".into(),
            identity: "uniform".into(),
        },
        config_digest: digest(b""),
        generator: 0,
    };
    let folder = run.join("shards");
    std::fs::create_dir_all(&folder).unwrap();
    let name = ShardName {
        generator: 0,
        sequence,
    };
    let mut writer = ShardWriter::create(&folder, name, &header).unwrap();
    for counter in 0..games {
        let id = GameId {
            generator: 0,
            counter: u64::from(sequence) * 1_000 + counter,
        };
        writer.push(&random_game(id, 1, 14)).unwrap();
    }
    writer.finish().unwrap();
}

/// The exit code, standard output and standard error of a command.
pub(crate) fn outcome(command: &mut Command) -> (i32, String, String) {
    let output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (
        output.status.code().unwrap_or(-1),
        text(&output.stdout),
        text(&output.stderr),
    )
}
