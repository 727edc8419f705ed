//! The program `perft`, from its arguments to its exit code.

use assert_cmd::Command;
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;
use tempfile::NamedTempFile;

const POSITIONS: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/tests/data/oracle/positions_public.jsonl"
);
const CASES: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/tests/data/oracle/cases_public.jsonl"
);
const SMALL: &str = "g [r                                  Er                          R]";

/// A line that agrees with the rules.
const LINE: &str = r#"{"id": "one", "position": "[                                                        R      r]", "side": "s", "distinct_turns": 4, "has_legal_turn": true, "first_steps": ["rh1w"], "turns_checksum": "34cb380f3c818744"}"#;

/// Runs the program; returns its exit code, what it wrote, and its messages.
fn perft(arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_perft"))
        .args(arguments)
        .output()
        .unwrap();
    (
        output.status.code(),
        String::from_utf8(output.stdout).unwrap(),
        String::from_utf8(output.stderr).unwrap(),
    )
}

fn file(text: &str) -> NamedTempFile {
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file
}

fn perft_on(mode: &str, text: &str) -> (Option<i32>, String, String) {
    perft(&[mode, file(text).path().to_str().unwrap()])
}

#[test]
fn positions_are_counted_in_their_order() {
    let text = format!("{LINE}\n\n{}\n", LINE.replace("one", "two"));
    let (code, out, messages) = perft_on("--positions", &text);
    let line = |id| {
        format!(
            r#"{{"id":"{id}","distinct_turns":4,"has_legal_turn":true,"first_steps":["rh1w"],"turns_checksum":"34cb380f3c818744"}}"#
        )
    };
    assert_eq!(out, format!("{}\n{}\n", line("one"), line("two")));
    assert_eq!((code, messages.as_str()), (Some(0), ""));
}

#[test]
fn counting_alone_leaves_the_checksums_out_and_reports_its_speed() {
    let name = file(&format!("{LINE}\n{}\n", LINE.replace("one", "two")));
    let (code, out, messages) = perft(&["--positions", name.path().to_str().unwrap(), "--count"]);
    let line = |id| {
        format!(
            r#"{{"id":"{id}","distinct_turns":4,"has_legal_turn":true,"first_steps":["rh1w"]}}"#
        )
    };
    assert_eq!(out, format!("{}\n{}\n", line("one"), line("two")));
    assert!(
        messages.starts_with("8 distinct turns of 2 positions in ") && messages.contains("turns/s"),
        "{messages}"
    );
    assert_eq!(code, Some(0));
}

#[test]
fn sequences_are_counted_for_each_position_of_a_file() {
    let board = &SMALL[2..];
    let small = LINE
        .replace(
            "[                                                        R      r]",
            board,
        )
        .replace("\"s\"", "\"g\"");
    let name = file(&format!("{LINE}\n{}\n", small.replace("one", "two")));
    let arguments = ["--positions", name.path().to_str().unwrap(), "--depth", "2"];
    let (code, out, messages) = perft(&arguments);
    // Gold's rabbit stands on rank 1, Silver's too: the game is over.
    let lines = [
        r#"{"id":"one","sequences":[0,0]}"#,
        r#"{"id":"two","sequences":[261,16207]}"#,
    ];
    assert_eq!(out, format!("{}\n{}\n", lines[0], lines[1]));
    assert_eq!((code, messages.as_str()), (Some(0), ""));
}

#[test]
fn check_agrees_with_the_oracle() {
    // All 300 are counted in the library's test.
    let text = std::fs::read_to_string(POSITIONS).unwrap();
    let some: String = text.split_inclusive('\n').take(30).collect();
    let (code, out, messages) = perft_on("--check", &some);
    assert_eq!(out, "30 positions, 0 different\n");
    assert_eq!((code, messages.as_str()), (Some(0), ""));
}

#[test]
fn check_finds_a_planted_difference() {
    let planted = LINE
        .replace("one", "planted")
        .replace(": 4", ": 5")
        .replace("true", "false")
        .replace("\"rh1w\"", "\"rh1w\", \"rh1e\"")
        .replace("34cb", "34cc");
    let (code, out, _) = perft_on("--check", &format!("{LINE}\n{planted}\n"));
    assert_eq!(
        out,
        "planted: distinct_turns is 4, not 5\n\
         planted: has_legal_turn is true, not false\n\
         planted: first_steps is [rh1w], not [rh1w rh1e]\n\
         planted: turns_checksum is 34cb380f3c818744, not 34cc380f3c818744\n\
         2 positions, 1 different\n"
    );
    assert_eq!(code, Some(1));
}

#[test]
fn cases_are_answered() {
    let (code, out, messages) = perft(&["--cases", CASES]);
    assert_eq!(out.lines().count(), 28);
    assert!(
        out.lines()
            .all(|line| line.starts_with(r#"{"id":"tricky-"#) && line.contains(r#","pass":true,"#))
    );
    assert_eq!((code, messages.as_str()), (Some(0), ""));
    let wrong = r#"{"id": "a", "kind": "end", "position": "[                                                        R      r]", "side": "g", "winner": null, "reason": null}"#;
    let (code, out, _) = perft_on("--cases", wrong);
    assert_eq!(
        out,
        "{\"id\":\"a\",\"pass\":false,\"winner\":\"s\",\"reason\":\"goal\"}\n"
    );
    assert_eq!(code, Some(1));
}

#[test]
fn sequences_are_counted_by_depth() {
    let (code, out, messages) = perft(&["--position", SMALL, "--depth", "2"]);
    // Depth 1 is tested in the library against the oracle, depth 2 there against a count of whole games.
    assert_eq!(
        out,
        "{\"depth\":1,\"sequences\":261}\n{\"depth\":2,\"sequences\":16207}\n"
    );
    assert_eq!((code, messages.as_str()), (Some(0), ""));
}

#[test]
fn faulty_input_is_named_with_file_and_line() {
    for (text, wanted) in [
        ("{", "EOF while parsing"),
        ("{}", "missing field `id`"),
        (&LINE.replace("\"s\"", "\"b\""), "unknown variant `b`"),
        (
            &LINE.replace("[ ", "["),
            "column 65: a board has 64 squares, not 63",
        ),
        (&LINE.replace("R ", "Q "), "column 58: `Q` is not a piece"),
        (
            &LINE.replace("R      r", "RRRRRRRRR"),
            "a board has 64 squares, not 65",
        ),
        (
            &LINE.replace("         R", "RRRRRRRR R"),
            "Gold has 9 rabbits, but never has more than 8",
        ),
    ] {
        let file = file(&format!("{LINE}\n{text}\n{LINE}\n"));
        let name = file.path().to_str().unwrap();
        let (code, out, messages) = perft(&["--positions", name]);
        assert_eq!(code, Some(1), "{text}");
        assert_eq!(out.lines().count(), 1, "what comes before is written");
        assert!(messages.contains(&format!("{name}:2: ")), "{messages}");
        assert!(messages.contains(wanted), "{messages}");
    }
    let (code, _, messages) = perft_on("--check", &LINE.replace("\"first_steps\"", "\"first\""));
    assert_eq!(code, Some(1));
    assert!(
        messages.contains("missing field `first_steps`"),
        "{messages}"
    );
    let (code, _, messages) = perft_on("--cases", &LINE.replace("\"id\"", "\"kind\""));
    assert_eq!(code, Some(1));
    assert!(messages.contains("unknown variant `one`"), "{messages}");
    let (code, _, messages) = perft(&["--cases", "/no/such/file"]);
    assert_eq!(code, Some(1));
    assert!(
        messages.contains("/no/such/file: No such file"),
        "{messages}"
    );
    let (code, _, messages) = perft(&["--check", env!("CARGO_MANIFEST_DIR")]);
    assert_eq!(code, Some(1));
    assert!(messages.contains(env!("CARGO_MANIFEST_DIR")), "{messages}");
    let (code, out, messages) = perft(&["--position", "g [R]", "--depth", "1"]);
    assert_eq!((code, out.as_str()), (Some(1), ""));
    assert!(
        messages.contains("column 5: a board has 64 squares, not 1"),
        "{messages}"
    );
    let empty = format!("g [{}]", " ".repeat(64));
    let (code, _, messages) = perft(&["--position", &empty, "--depth", "1"]);
    assert_eq!(code, Some(1));
    assert!(messages.contains("setup"), "{messages}");
}

#[test]
fn wrong_usage_exits_with_2() {
    for arguments in [
        &[][..],
        &["--positions"],
        &["--positions", POSITIONS, "--check", POSITIONS],
        &["--position", SMALL],
        &["--position", SMALL, "--depth", "0"],
        &["--position", SMALL, "--depth", "x"],
        &["--cases", CASES, "--depth", "1"],
        &["--count"],
        &["--check", POSITIONS, "--count"],
        &["--positions", POSITIONS, "--count", "--depth", "1"],
        &["--nonsense"],
    ] {
        let (code, out, messages) = perft(arguments);
        assert_eq!(code, Some(2), "{arguments:?}");
        assert_eq!(out, "");
        assert!(messages.contains("--help"), "{messages}");
    }
    assert_eq!(perft(&["--help"]).0, Some(0));
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_perft"))
        .args(["--positions", POSITIONS])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut first)
        .unwrap();
    assert!(first.starts_with(r#"{"id":"public-000""#));
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
    assert!(output.status.success());
}

/// Runs the program with its output closed; returns its exit code.
#[cfg(unix)]
fn perft_unread(arguments: &[&str]) -> Option<i32> {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    std::process::Command::new(env!("CARGO_BIN_EXE_perft"))
        .args(arguments)
        .stdout(writer)
        .stderr(Stdio::null())
        .status()
        .unwrap()
        .code()
}

#[cfg(unix)]
#[test]
fn differences_set_the_exit_code_even_without_a_reader() {
    let different = file(&LINE.replace("\"distinct_turns\": 4", "\"distinct_turns\": 5"));
    let different = different.path().to_str().unwrap();
    assert_eq!(perft_unread(&["--check", POSITIONS]), Some(0));
    assert_eq!(perft_unread(&["--check", different]), Some(1));
    let cases = std::fs::read_to_string(CASES).unwrap();
    let wrong = file(&format!("{cases}{{\n"));
    assert_eq!(perft_unread(&["--cases", CASES]), Some(0));
    assert_eq!(
        perft_unread(&["--cases", wrong.path().to_str().unwrap()]),
        Some(1)
    );
}

#[cfg(target_os = "linux")]
#[test]
fn a_file_without_line_ends_does_not_fill_the_memory() {
    for mode in ["--positions", "--check", "--cases"] {
        let (code, out, messages) = perft(&[mode, "/dev/zero"]);
        assert_eq!((code, out.as_str()), (Some(1), ""));
        assert!(
            messages.contains("/dev/zero:1: the line is longer"),
            "{messages}"
        );
    }
}
