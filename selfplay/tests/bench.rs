//! `selfplay bench` as a user runs it.

use assert_cmd::Command;
use serde_json::Value;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// Few evaluations and games, so that a second is enough.
const SMALL: [&str; 4] = [
    "--set",
    "selfplay.evaluations=8",
    "--set",
    "selfplay.games_in_flight=4",
];

fn bench(more: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_selfplay"));
    command.arg("bench").args(SMALL).args(more);
    command
}

fn printed(more: &[&str]) -> String {
    let output = bench(more).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{stderr}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn every_key_is_there_and_the_numbers_agree() {
    let text = printed(&[
        "--evaluator",
        "null",
        "--threads",
        "2",
        "--seconds",
        "1",
        "--batch-sizes",
        "1,8",
        "--json",
    ]);
    let report: Value = serde_json::from_str(&text).unwrap();
    let number = |key: &str| {
        let number = report[key].as_f64();
        number.unwrap_or_else(|| panic!("{key} is {}", report[key]))
    };
    for key in [
        "raw_evals_per_s",
        "selfplay_evals_per_s",
        "selfplay_evals_per_cpu_s",
        "mean_batch",
        "turns_per_s",
        "peak_rss_mib",
        "rss_after_warm_up_mib",
        "rss_at_end_mib",
    ] {
        assert!(number(key) > 0.0, "{key}");
    }
    assert_eq!(number("batch_fill"), 1.0);
    let ratio = number("selfplay_evals_per_s") / number("raw_evals_per_s");
    let in_turns: Vec<&Value> = report["raw"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|raw| raw["in_turns"] == true)
        .collect();
    assert_eq!(in_turns.len(), 1);
    assert_eq!(in_turns[0]["evals_per_s"], report["raw_evals_per_s"]);
    assert!(report["games_per_hour"].is_null() || number("games_per_hour") > 0.0);
    assert!((number("ratio") - ratio).abs() < 1e-9);
    let sizes = report["raw"].as_array().unwrap();
    let sizes: Vec<u64> = sizes
        .iter()
        .map(|raw| raw["batch"].as_u64().unwrap())
        .collect();
    assert!(sizes.contains(&1) && sizes.contains(&8), "{sizes:?}");
    assert!(sizes.contains(&report["raw_batch"].as_u64().unwrap()));
    let shares = report["time_shares"]["worker"].as_object().unwrap();
    assert_eq!(shares.len(), 5);
    let sum: f64 = shares.values().map(|share| share.as_f64().unwrap()).sum();
    assert!((0.5..=1.01).contains(&sum), "{sum}");
    let options = report["recommended"]["options"].as_str().unwrap();
    assert!(
        options.contains("--set selfplay.games_in_flight="),
        "{options}"
    );
}

#[test]
fn a_random_network_is_measured_and_printed_as_text() {
    let text = printed(&[
        "--network",
        "random:1x8",
        "--threads",
        "1",
        "--seconds",
        "1",
        "--batch-sizes",
        "4",
    ]);
    for part in [
        "random:1x8 on cpu",
        "alone, batch 4",
        "self-play",
        "ratio",
        "MiB",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn a_signal_ends_it_with_what_was_measured() {
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_selfplay"))
        .args([
            "bench",
            "--evaluator",
            "null",
            "--seconds",
            "3600",
            "--json",
        ])
        .args(SMALL)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // Before it listens for signals, one would just end it.
    let status = format!("/proc/{}/status", child.id());
    wait_until(|| {
        let status = std::fs::read_to_string(&status).unwrap();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        let caught = u64::from_str_radix(caught.unwrap().trim(), 16).unwrap();
        caught & 0b10 != 0
    });
    let signal = std::process::Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(signal.unwrap().success());
    wait_until(|| child.try_wait().unwrap().is_some());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(75));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["stopped"], true);
    assert_eq!(report["ratio"], Value::Null);
}

fn wait_until(mut done: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn faulty_arguments_are_refused_by_name() {
    for (more, parts) in [
        (["--network", "random:0x64"], ["0 blocks", "1 to 100"]),
        (["--network", "random:6x"], ["`6x`", "BLOCKSxCHANNELS"]),
        (
            ["--network", "missing.safetensors"],
            ["missing.safetensors", "error"],
        ),
        (["--evaluator", "best"], ["best", "null"]),
        (["--batch-sizes", "8,0"], ["--batch-sizes", "0"]),
        (["--seconds", "0"], ["--seconds", "0"]),
        (
            ["--set", "selfplay.groups=0"],
            ["selfplay.groups", "1 to 64"],
        ),
    ] {
        let output = bench(&more).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success(), "{more:?}");
        assert!(
            parts.iter().all(|part| stderr.contains(part)),
            "{more:?}: {stderr}"
        );
    }
}
