//! External engines as players.

use super::{json, pit};
use engine::config::PlayerSpec;
use std::path::Path;

/// An engine of shell script that sets up and then lets its first rabbits step on, one step a turn. `on_turn` is done first at each of
/// its turns; `$turn` is the turn's number in its game, from 1.
fn engine(folder: &Path, on_turn: &str) -> String {
    let text = r#"
while read -r word rest; do
  case "$word" in
    aei) echo protocol-version 1; echo id name Fake; echo id version 2; echo aeiok;;
    isready) echo readyok;;
    newgame) turn=0; side=g;;
    makemove) if [ $side = g ]; then side=s; else side=g; fi;;
    go)
      turn=$((turn + 1))
      ON_TURN
      echo info score 12
      case "$turn$side" in
        1g) echo bestmove Ra1 Rb1 Rc1 Dd1 De1 Rf1 Rg1 Rh1 Ra2 Hb2 Cc2 Ed2 Me2 Cf2 Hg2 Rh2;;
        1s) echo bestmove ra8 rb8 rc8 dd8 de8 rf8 rg8 rh8 ra7 hb7 cc7 md7 ee7 cf7 hg7 rh7;;
        2g) echo bestmove Ed2n;;
        2s) echo bestmove ee7s;;
        3g) echo bestmove Ed3n;;
        3s) echo bestmove ee6s;;
        *) echo bestmove resign;;
      esac;;
    quit) exit 0;;
  esac
done
"#;
    let path = folder.join("engine.sh");
    std::fs::write(&path, text.replace("ON_TURN", on_turn)).unwrap();
    format!("aei:sh '{}'", path.display())
}

/// Options of games that have six turns, three of each side.
fn short<'a>(games: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let short = [
        "--openings",
        "own",
        "--set",
        "match.max_turns=6",
        "--games",
        games,
    ];
    short.into_iter().chain(more.iter().copied()).collect()
}

/// A player as an argument of the command line.
fn words(player: &str) -> String {
    PlayerSpec::of(player).to_string()
}

#[test]
fn engines_play_each_other_and_their_remarks_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let command = engine(folder.path(), "");
    let options = short("2", &["--clock", "30s/1m", "--json"]);
    let first = format!("{} option=hash=5", words(&command));
    let report = json(&mut pit(folder.path(), &first, &words(&command), &options));
    assert_eq!(
        (&report["games"], &report["unfinished"]),
        (&2.into(), &2.into())
    );
    assert_eq!(report["reproducible"], false);
    assert_eq!(report["a"]["clock"], "30s/1m");
    assert_eq!(report["a"]["option"][0], "hash=5");
    assert_eq!(report["a"]["identity"], format!("{command} (Fake 2)"));
    assert_eq!(report["a"]["turns"], 6);
    let games = Path::new(report["records"].as_str().unwrap());
    let record = std::fs::read_to_string(games.join("000001.txt")).unwrap();
    assert!(record.contains("2g Ed2n\n# "), "{record}");
    assert!(record.contains(" s, score 12\n2s ee7s\n"), "{record}");
    // After an opening the engine plays its first turn again: a setup, which is illegal.
    let options = ["--games", "2", "--clock", "30s"];
    let output = pit(folder.path(), &words(&command), "random", &options)
        .output()
        .unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{errors}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("a has 0 won, 2 lost of 2"), "{text}");
    assert!(
        text.contains("; 2 games were lost not by the rules, but by: illegal turn 2\n"),
        "{text}"
    );
    assert!(
        text.contains("the first such game, 0: Gold lost by illegal turn: it played `Ra1"),
        "{text}"
    );
}

#[test]
fn a_player_that_fails_loses_that_game_and_plays_the_next() {
    let folder = tempfile::tempdir().unwrap();
    // As Gold it continues.
    let on_turn = "if [ $turn$side = 3s ]; then echo no memory >&2; exit 9; fi";
    let command = engine(folder.path(), on_turn);
    let options = short("4", &["--clock", "30s", "--threads", "1", "--json"]);
    let report = json(&mut pit(
        folder.path(),
        &words(&command),
        "random",
        &options,
    ));
    assert_eq!(
        (&report["losses_a"], &report["unfinished"]),
        (&2.into(), &2.into())
    );
    assert_eq!(report["a"]["faults"]["crash"], 2);
    assert_eq!(report["ends"]["crash"], 2);
    assert_eq!(report["first_fault"]["game"], 1);
    let reason = report["first_fault"]["reason"].as_str().unwrap();
    let begins = "Silver lost by crash: it ended by itself (exit status: 9); its last lines:\n";
    assert!(
        reason.starts_with(begins) && reason.contains("\n  no memory"),
        "{reason}"
    );
    let games = Path::new(report["records"].as_str().unwrap());
    let record = std::fs::read_to_string(games.join("000001.txt")).unwrap();
    assert!(
        record.contains("Result: Gold wins by crash of Silver\n"),
        "{record}"
    );
    assert!(record.contains("\n#   no memory\n"), "{record}");
    let read = arimaa::notation::parse_record(&record).unwrap();
    assert_eq!(read.turns().len(), 5);
}

#[test]
fn a_match_s_file_gives_engines_names_options_and_clocks() {
    let folder = tempfile::tempdir().unwrap();
    let command = engine(folder.path(), "");
    let order = folder.path().join("m.toml");
    let text = format!(
        "games = 2\nopenings = \"own\"\nmax_turns = 6\nclock = \"30s\"\n\
         [[player]]\nplayer = \"random\"\n\
         [[player]]\nname = \"one\"\nplayer = {command:?}\noption = [\"hash=3\", \"clear\"]\n\
         [[player]]\nname = \"two\"\nplayer = {command:?}\nclock = \"40s/1m\"\n"
    );
    std::fs::write(&order, text).unwrap();
    let mut command = assert_cmd::Command::new(env!("CARGO_BIN_EXE_selfplay"));
    command
        .arg("pit")
        .arg("--match")
        .arg(&order)
        .arg("--out")
        .arg(folder.path());
    let report = json(command.arg("--json"));
    let players = report["players"].as_array().unwrap();
    assert_eq!(report["games"], 6);
    assert_eq!(players[1]["clock"], "30s");
    assert_eq!(players[1]["option"], serde_json::json!(["hash=3", "clear"]));
    assert_eq!(players[2]["clock"], "40s/1m");
    // The same match is resumed.
    let report = json(command.arg("--resume"));
    assert_eq!(report["games"], 6);
    let text = std::fs::read_to_string(&order)
        .unwrap()
        .replace("hash=3", "hash=4");
    std::fs::write(&order, text).unwrap();
    let output = command.output().unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success());
    assert!(
        errors.contains("player 2 option 1 is \"hash=3\" there"),
        "{errors}"
    );
}

#[test]
fn an_option_that_an_engine_refuses_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let command = engine(folder.path(), "");
    let path = folder.path().join("engine.sh");
    let text = std::fs::read_to_string(&path).unwrap();
    let refusing = text.replace(
        "    newgame)",
        "    setoption) case \"$rest\" in *foo*) echo log Warning: no option foo;; esac;;\n    newgame)",
    );
    std::fs::write(&path, refusing).unwrap();
    let options = short("2", &["--clock", "30s"]);
    let second = format!("{} option=foo=1", words(&command));
    let output = pit(folder.path(), "random", &second, &options).output();
    let output = output.unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{errors}");
    let told = errors.lines().filter(|line| line.contains("no option foo"));
    let told: Vec<_> = told.collect();
    assert_eq!(told.len(), 1, "{errors}");
    assert!(told[0].starts_with("note: --b aei:sh "), "{errors}");
}

#[test]
fn an_engine_that_never_plays_ends_the_match() {
    let folder = tempfile::tempdir().unwrap();
    let command = engine(folder.path(), "exit 4");
    for (threads, where_from) in [("1", "; in game 2, "), ("3", "; in game ")] {
        let options = ["--games", "100", "--clock", "30s", "--threads", threads];
        let output = pit(folder.path(), "random", &words(&command), &options)
            .output()
            .unwrap();
        let errors = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success());
        for part in [
            "failed in 3 games in a row before its first turn",
            where_from,
            "it ended by itself (exit status: 4)",
        ] {
            assert!(errors.contains(part), "{errors}");
        }
    }
    let results = std::fs::read_dir(folder.path()).unwrap();
    let kept = results.filter_map(|entry| {
        std::fs::read_to_string(entry.unwrap().path().join("results.jsonl")).ok()
    });
    let lines: usize = kept.map(|text| text.lines().count()).sum();
    assert_eq!(lines, 0, "games that prove nothing are not kept");
}

#[test]
fn an_unplayable_match_is_an_error_before_the_first_game() {
    let folder = tempfile::tempdir().unwrap();
    for (command, more, parts) in [
        (
            "aei:/no/such/bot",
            vec!["--clock", "2s"],
            vec!["--a aei:/no/such/bot: /no/such/bot can't be started"],
        ),
        (
            r#"aei:"sh -c 'echo Traceback; exit 3'""#,
            vec!["--clock", "2s"],
            vec![
                "--a aei:sh",
                "(exit status: 3); its last lines:\n  Traceback",
            ],
        ),
        (
            "aei:bot",
            vec![],
            vec!["--a aei:bot: an external engine needs a clock: set clock, or --clock"],
        ),
        (
            r#"aei:"bot 'x""#,
            vec!["--clock", "2s"],
            vec!["--a aei:bot 'x: a quote is not closed"],
        ),
        (
            "aei:bot",
            vec!["--clock", "2"],
            vec!["--clock", "`2` has no unit: give 2s or 2m"],
        ),
        (
            "aei:bot time=2",
            vec!["--clock", "2s"],
            vec!["--a aei:bot: time: this is for players that search"],
        ),
        (
            "aei:bot option=tcmove=3",
            vec!["--clock", "2s"],
            vec!["--a aei:bot: option", "set by the match itself"],
        ),
        (
            "random",
            vec!["--clock", "2s"],
            vec!["--clock: a clock is for external engines"],
        ),
        (
            "random option=hash=3",
            vec![],
            vec!["--a random: option: this is for `aei:COMMAND` alone"],
        ),
        (
            "random clock=3s",
            vec![],
            vec!["--a random: clock: this is for `aei:COMMAND` alone"],
        ),
    ] {
        let mut options = vec!["--games", "2"];
        options.extend(more);
        let output = pit(folder.path(), command, "random", &options)
            .output()
            .unwrap();
        let errors = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success(), "{command}");
        for part in parts {
            assert!(errors.contains(part), "{command}: no `{part}` in: {errors}");
        }
    }
    assert_eq!(
        std::fs::read_dir(folder.path()).unwrap().count(),
        0,
        "no match was begun"
    );
}

#[test]
fn a_match_that_is_stopped_leaves_no_engine_behind() {
    let folder = tempfile::tempdir().unwrap();
    let pid_file = folder.path().join("pid");
    let on_turn = format!(
        "echo $$ > '{0}.part'; mv '{0}.part' '{0}'; while :; do sleep 1; done",
        pid_file.display()
    );
    let command = engine(folder.path(), &on_turn);
    let mut running = std::process::Command::new(env!("CARGO_BIN_EXE_selfplay"))
        .args([
            "pit",
            "--a",
            &words(&command),
            "--b",
            "random",
            "--games",
            "2",
        ])
        .args(["--clock", "1h", "--threads", "1", "--out"])
        .arg(folder.path())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    while !pid_file.exists() {
        assert!(running.try_wait().unwrap().is_none(), "it never played");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let signal = |signal: &str, pid: &str| {
        let mut kill = std::process::Command::new("kill");
        let kill = kill.args([signal, pid]).stderr(std::process::Stdio::null());
        kill.status().unwrap().success()
    };
    let engine = std::fs::read_to_string(&pid_file).unwrap();
    assert!(signal("-0", engine.trim()));
    assert!(signal("-INT", &running.id().to_string()));
    let output = running.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(75));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.contains("0 won, 0 lost of 0"),
        "no game was lost: {text}"
    );
    assert!(!signal("-0", engine.trim()), "the engine still runs");
}
