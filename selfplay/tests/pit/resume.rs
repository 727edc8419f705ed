//! Stopped and resumed matches.

use super::{json, pit};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The records of a match by file.
fn games(folder: &Path) -> BTreeMap<String, String> {
    let entries = fs::read_dir(folder.join("games")).unwrap();
    let read = |path: std::path::PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        (name, fs::read_to_string(path).unwrap())
    };
    entries.map(|entry| read(entry.unwrap().path())).collect()
}

/// A report without the keys that depend on time and place.
fn lasting(mut report: Value) -> Value {
    for player in ["a", "b"] {
        report[player]
            .as_object_mut()
            .unwrap()
            .remove("milliseconds_per_turn");
    }
    for key in ["overhead", "seconds", "folder", "records"] {
        report.as_object_mut().unwrap().remove(key).unwrap();
    }
    report
}

fn only_match(out: &Path) -> std::path::PathBuf {
    let mut entries = fs::read_dir(out).unwrap();
    let path = entries.next().unwrap().unwrap().path();
    assert!(entries.next().is_none(), "there is one match");
    path
}

/// Games that end one after the other, so that a kill comes between them.
const MATCH: [&str; 11] = [
    "--games",
    "24",
    "--evaluations",
    "16",
    "--seed",
    "3",
    "--set",
    "match.max_turns=100",
    "--set",
    "selfplay.games_in_flight=2",
    "--json",
];

#[test]
fn a_killed_match_is_resumed_as_if_it_had_not_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let (whole, killed) = (folder.path().join("whole"), folder.path().join("killed"));
    let unstopped = json(&mut pit(&whole, "material", "uniform", &MATCH));
    let expected = games(&only_match(&whole));
    let mut child = Command::new(env!("CARGO_BIN_EXE_selfplay"))
        .args(["pit", "--a", "material", "--b", "uniform", "--out"])
        .arg(&killed)
        .args(MATCH)
        .args(["--threads", "1"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = || {
        let path = fs::read_dir(&killed).ok()?.next()?.ok()?.path();
        let text = fs::read_to_string(path.join("results.jsonl")).ok()?;
        Some(text.lines().count())
    };
    let begun = Instant::now();
    while lines().unwrap_or(0) < 3 && begun.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let path = only_match(&killed);
    let kept = fs::read_to_string(path.join("results.jsonl")).unwrap();
    let known = kept.lines().count();
    assert!((3..24).contains(&known), "{known}");
    // A power cut tears the last line, and a record.
    let torn = &kept[..kept.len() - 9];
    fs::write(path.join("results.jsonl"), torn).unwrap();
    let first: Value = serde_json::from_str(kept.lines().next().unwrap()).unwrap();
    let record = path.join(format!("games/{:06}.txt", first["game"].as_u64().unwrap()));
    fs::write(&record, &fs::read_to_string(&record).unwrap()[..50]).unwrap();
    let output = pit(&killed, "material", "uniform", &MATCH)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    assert!(
        said.contains("1 lines of results.jsonl are torn, 1 records are missing or torn"),
        "{said}"
    );
    assert!(
        said.contains(&format!(": {} games done", known - 2)),
        "{said}"
    );
    assert_eq!(games(&path), expected);
    let resumed: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(lasting(resumed), lasting(unstopped));
    // Games that are over are not played again, and a longer match begins with them.
    let mut longer = MATCH;
    longer[1] = "26";
    let output = pit(&killed, "material", "uniform", &longer)
        .arg("--resume=or-begin")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        said.contains(": 24 games done") && said.contains(" 2 games in"),
        "{said}"
    );
    assert_eq!(games(&only_match(&killed)).len(), 26);
}

#[test]
fn another_match_is_never_resumed() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let short = [
        "--games",
        "2",
        "--evaluations",
        "4",
        "--set",
        "match.max_turns=8",
    ];
    let resume_with = |settings: &str, more: &[&str]| {
        let output = pit(&out, &format!("material{settings}"), "random", &short)
            .args(more)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.success(), said)
    };
    let resume = |more: &[&str]| resume_with("", more);
    let (is_done, said) = resume(&["--resume"]);
    assert!(
        !is_done && said.contains("--resume: there is no match in"),
        "{said}"
    );
    assert!(!out.exists());
    let (is_done, said) = resume(&["--resume=or-begin"]);
    assert!(is_done && !said.contains("resuming"), "{said}");
    for (settings, more, difference) in [
        ("", &["--seed", "5"][..], "seed is 0 there and 5 here"),
        (
            " search.mode=puct",
            &[],
            "search mode is \"auto\" there and \"puct\" here",
        ),
        (
            " evaluations=8",
            &[],
            "player 1 evaluations is 4 there and 8 here",
        ),
        (
            "",
            &["--opening-turns", "1"],
            "openings turns is 0 there and 1 here",
        ),
        (
            "",
            &["--set", "match.max_turns=9"],
            "max_turns is 8 there and 9 here",
        ),
    ] {
        let (is_done, said) = resume_with(settings, &[more, &["--resume"]].concat());
        assert!(
            !is_done && said.contains(difference),
            "no `{difference}` in {said}"
        );
    }
    let (is_done, said) = resume(&["--resume"]);
    assert!(
        is_done && said.contains("resuming") && said.contains(": 2 games done"),
        "{said}"
    );
    // One that is over is played again.
    let (is_done, said) = resume(&[]);
    assert!(is_done && !said.contains("resuming"), "{said}");
    assert_eq!(fs::read_dir(&out).unwrap().count(), 2);
    // One that is not over is resumed although a later one is.
    let unfinished = out.join("material-random-4-0");
    fs::remove_file(unfinished.join("results.jsonl")).unwrap();
    let (is_done, said) = resume(&[]);
    assert!(
        is_done && said.contains("material-random-4-0: 0 games done"),
        "{said}"
    );
    // More games are another match, unless it is to be resumed.
    let mut longer = short;
    longer[1] = "4";
    let output = pit(&out, "material", "random", &longer).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && !said.contains("resuming"),
        "{said}"
    );
    assert_eq!(fs::read_dir(&out).unwrap().count(), 3);
}

#[test]
fn parts_on_several_machines_make_the_games_of_one() {
    let folder = tempfile::tempdir().unwrap();
    let (whole, parts) = (folder.path().join("whole"), folder.path().join("parts"));
    let on_one = json(&mut pit(&whole, "material", "uniform", &MATCH));
    let expected = games(&only_match(&whole));
    let play = |more: &[&str]| {
        let mut command = pit(&parts, "material", "uniform", &MATCH);
        let output = command.args(more).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code().unwrap(), said, output.stdout)
    };
    let (code, said, _) = play(&["--join"]);
    assert!(
        code == 1 && said.contains("has no part of this match"),
        "{said}"
    );
    assert!(!parts.exists(), "nothing is made");
    // One of them is of another match.
    for (part, more) in [
        ("1/5", ""),
        ("4/5", ""),
        ("2/5", "--set=match.max_turns=60"),
        ("2/5", ""),
    ] {
        let mut command = pit(&parts, "material", "uniform", &MATCH);
        let more = Some(more).filter(|more| !more.is_empty());
        let report = json(command.args(["--part", part]).args(more));
        assert!(
            (4..=6).contains(&report["games"].as_u64().unwrap()),
            "{report}"
        );
    }
    // The same part again has nothing to play.
    let (code, said, _) = play(&["--part", "1/5", "--resume"]);
    assert!(code == 0 && said.contains("6 games done"), "{said}");
    let (code, said, _) = play(&["--join", "--set=match.max_turns=50"]);
    assert!(
        code == 1 && said.contains("is another match: max_turns is"),
        "{said}"
    );
    let (code, said, report) = play(&["--join"]);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("--join: 8 games are missing: "), "{said}");
    assert_eq!(
        serde_json::from_slice::<Value>(&report).unwrap()["games"],
        16
    );
    // Twice is as good as once, and what is missing is played here or there.
    play(&["--part", "3/5"]);
    assert!(
        play(&["--join"])
            .1
            .contains("--join: 4 games are missing: ")
    );
    let joined = parts.join("material-uniform-16-3");
    let (code, said, report) = play(&["--resume"]);
    assert_eq!(code, 0, "{said}");
    assert_eq!(games(&joined), expected);
    let report: Value = serde_json::from_slice(&report).unwrap();
    assert_eq!(lasting(report), lasting(on_one));
}

#[test]
fn wrong_parts_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    for (more, code, message) in [
        (&["--part", "3/2"][..], 2, "K from 1 to N"),
        (&["--part", "1/2", "--join"], 2, "cannot be used with"),
        (
            &["--part", "1/2", "--sprt", "0,50"],
            2,
            "cannot be used with",
        ),
    ] {
        let mut command = pit(folder.path(), "material", "uniform", more);
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{said}");
        assert!(said.contains(message), "{said}");
    }
}
