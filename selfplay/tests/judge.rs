//! `selfplay judge` as a user runs it.

use assert_cmd::Command;
use serde_json::Value;
use std::path::Path;

fn selfplay() -> Command {
    Command::new(env!("CARGO_BIN_EXE_selfplay"))
}

/// Plays a few games of `material` into a folder.
fn games(folder: &Path) {
    let mut command = selfplay();
    command.args([
        "generate",
        "--network",
        "material",
        "--games",
        "12",
        "--out",
    ]);
    command
        .arg(folder)
        .args(["--set", "selfplay.evaluations=12"]);
    command.assert().success();
}

fn report(folder: &Path, more: &[&str]) -> Value {
    let mut command = selfplay();
    command.arg("judge").arg(folder).args(more).arg("--json");
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn networks_are_compared_with_games() {
    let folder = tempfile::tempdir().unwrap();
    games(folder.path());
    let ignorant = report(folder.path(), &["--network", "uniform"]);
    assert_eq!(ignorant["games"], 12);
    let again = folder.path().to_str().unwrap();
    let twice = report(folder.path(), &[again, "--network", "uniform"]);
    assert_eq!(twice, ignorant, "no game is read twice");
    assert_eq!(ignorant["values"]["brier"], 0.25);
    let policy = &ignorant["policy"];
    let [loss, even] = ["loss", "even_loss"].map(|key| policy[key].as_f64().unwrap());
    assert!((loss - even).abs() < 1e-5, "{policy}");
    // The report is the same on any number of threads.
    let player = report(folder.path(), &["--network", "material", "--threads", "3"]);
    assert_ne!(player["values"], ignorant["values"]);
    assert_eq!(player["turns"], ignorant["turns"]);
    assert_eq!(
        player,
        report(folder.path(), &["--network", "material", "--threads", "1"])
    );
    let goals = |report: &Value| report["goals"]["turns"].as_u64().unwrap();
    assert!(goals(&player) >= 6, "most games end by a goal");
    assert_eq!(goals(&player), goals(&ignorant));
    // The built-in network is the default.
    assert_eq!(report(folder.path(), &[])["evaluator"]["name"], "tusker");
    let some = report(
        folder.path(),
        &["--network", "uniform", "--validation", "0.5"],
    );
    assert!((1..12).contains(&some["games"].as_u64().unwrap()));
    let said = selfplay().arg("judge").arg(folder.path()).output().unwrap();
    let said = String::from_utf8(said.stdout).unwrap();
    for part in [
        "judged      tusker (",
        "games       12, ",
        "calibration of its values, ",
        "policy      of ",
        "goals       the policy's first",
    ] {
        assert!(said.contains(part), "{said}");
    }
}

#[test]
fn bad_input_is_named() {
    let folder = tempfile::tempdir().unwrap();
    games(folder.path());
    let path = folder.path().to_str().unwrap();
    for (arguments, said) in [
        (&["nowhere"][..], "can't read nowhere"),
        (&[path, "--network", "random"], "--network random"),
        (&[path, "--network", "policy:tusker"], "without a search"),
        (
            &[path, "--network", "missing.safetensors"],
            "missing.safetensors",
        ),
        (&[path, "--validation", "0"], "--validation"),
        (
            &[path, "--validation", "0.000001"],
            "there is no game to judge by",
        ),
    ] {
        let output = selfplay().arg("judge").args(arguments).output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success(), "{arguments:?}");
        assert!(error.contains(said), "{arguments:?}: {error}");
    }
    let shard = folder.path().join("000-000000.shard");
    let mut bytes = std::fs::read(&shard).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&shard, bytes).unwrap();
    let output = selfplay()
        .args(["judge", path, "--network", "uniform"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("000-000000.shard"), "{error}");
    assert!(
        String::from_utf8(output.stdout)
            .unwrap()
            .contains("games       11")
    );
}
