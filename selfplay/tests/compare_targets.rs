//! `selfplay compare-targets` as a user runs it.

use assert_cmd::Command;
use serde_json::Value;
use std::path::Path;
use std::process::Output;

fn selfplay() -> Command {
    Command::new(env!("CARGO_BIN_EXE_selfplay"))
}

fn games(folder: &Path) {
    let mut command = selfplay();
    command.args(["generate", "--network", "material", "--games", "10"]);
    command.args(["--set", "selfplay.evaluations=12", "--out"]);
    command.arg(folder).assert().success();
}

fn compare(folder: &Path, player: &str, states: u32, more: &[&str]) -> Output {
    let mut command = selfplay();
    command.arg("compare-targets").arg(folder).args(more);
    command.args(["--network", player, "--states", &states.to_string()]);
    command.args([
        "--deep",
        "200",
        "--set",
        "selfplay.evaluations=16",
        "--json",
    ]);
    command.output().unwrap()
}

fn report(folder: &Path, more: &[&str]) -> Value {
    let output = compare(folder, "material", 10, more);
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn variants_are_compared_with_deep_searches_of_the_same_states() {
    let folder = tempfile::tempdir().unwrap();
    games(folder.path());
    let variants = [
        "--variant",
        "selfplay.evaluations=16",
        "--variant",
        "selfplay.targets.value_scale=1",
        "--variant",
        "selfplay.targets.kind=visits selfplay.evaluations=64",
    ];
    let found = report(folder.path(), &variants);
    let states = found["states"].as_u64().unwrap();
    assert!((2..=10).contains(&states), "{found}");
    let settings = |place: usize| found["variants"][place]["settings"].as_str().unwrap();
    assert_eq!([settings(0), settings(1)], ["as configured", variants[1]]);
    // A variant that changes nothing makes the same targets: each draws the same random numbers.
    let above = |place: usize| &found["variants"][place]["above_configured"];
    assert_eq!(above(1)["mean"], 0.0);
    assert_eq!(above(1)["error"], 0.0);
    assert_ne!(above(2)["mean"], 0.0);
    let surprise = |place: usize| found["variants"][place]["surprise"].as_f64().unwrap();
    assert!(surprise(2) < 0.1 * surprise(0), "{found}");
    assert!(surprise(3) > surprise(2), "{found}");
    // On any number of threads the report is the same.
    let threads = ["--threads", "1"];
    assert_eq!(
        report(folder.path(), &threads),
        report(folder.path(), &["--threads", "3"])
    );
}

#[test]
fn what_can_t_be_compared_is_named() {
    let folder = tempfile::tempdir().unwrap();
    games(folder.path());
    let refused = |player: &str, states: u32, more: &[&str], reason: &str| {
        let output = compare(folder.path(), player, states, more);
        assert!(!output.status.success(), "{output:?}");
        let message = String::from_utf8(output.stderr).unwrap();
        assert!(message.contains(reason), "{message}");
    };
    let variant = |settings| ["--variant", settings];
    let unknown = variant("selfplay.target.kind=visits");
    refused("material", 10, &unknown, "selfplay.target");
    let kind = variant("selfplay.targets.kind=best");
    refused("material", 10, &kind, "selfplay.targets.kind");
    refused("random", 10, &[], "--network random");
    let games = "there are 10 games with turns behind the setups";
    refused("material", 11, &[], games);
}
