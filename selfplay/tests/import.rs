//! `selfplay import` from the outside.

use arimaa::notation::{SideLetters, format_concluded_record, format_movelist, parse_record};
use arimaa::rules::{Game, Side};
use assert_cmd::Command;
use engine::encoding::ENCODING_VERSION;
use engine::record::{
    Ending, GameId, GameRecord, Header, ShardReader, Start, TurnOrigin, digest, list_shards,
    replay, samples::random_game,
};
use std::path::{Path, PathBuf};
use std::process::{self, Stdio};
use std::time::Duration;

const GOLD_SETUP: &str = "Ra1 Rb1 Rc1 Dd1 De1 Rf1 Rg1 Rh1 Ra2 Hb2 Cc2 Md2 Ee2 Cf2 Hg2 Rh2";
const SILVER_SETUP: &str = "ra8 rb8 rc8 cd8 ce8 rf8 rg8 rh8 ra7 hb7 dc7 md7 ee7 df7 hg7 rh7";
const POSITION: &str =
    "s [r                                  Er                          R]\n2s ra8e\n";

fn import() -> Command {
    let mut command = Command::cargo_bin("selfplay").expect("cargo has built the program");
    command.arg("import");
    command
}

/// Exit code, standard output and standard error.
fn outcome(command: &mut Command) -> (i32, String, String) {
    let output = command.output().unwrap();
    (
        output.status.code().expect("no signal ended it"),
        String::from_utf8(output.stdout).unwrap(),
        String::from_utf8(output.stderr).unwrap(),
    )
}

fn write(folder: &Path, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path
}

/// All shards of a folder, with their games; every game replays.
fn read(folder: &Path) -> Vec<(Header, Vec<GameRecord>)> {
    let shards = list_shards(folder).unwrap();
    let read = shards.values().map(|path| {
        let reader = ShardReader::open(path).unwrap();
        let header = reader.header().clone();
        let games: Vec<GameRecord> = reader.map(|game| game.unwrap()).collect();
        games.iter().for_each(|game| drop(replay(game).unwrap()));
        (header, games)
    });
    read.collect()
}

fn random(counter: u64, max_turns: usize) -> Game {
    let id = GameId {
        generator: 7,
        counter,
    };
    random_game(id, 3, max_turns).to_game().unwrap()
}

/// A short game, the text of its turns separated as given.
fn turns(separator: &str) -> String {
    format!("1g {GOLD_SETUP}{separator}1s {SILVER_SETUP}{separator}2g Ee2n{separator}2s ra7s")
}

fn short_game() -> Game {
    parse_record(&turns("\n")).unwrap()
}

#[test]
fn texts_become_shards() {
    let folder = tempfile::tempdir().unwrap();
    let won = (0..).map(|counter| random(counter, 2_000));
    let won = won.into_iter().find(|game| game.outcome().is_some());
    let won = won.unwrap();
    let game = turns("\n");
    let wrong = game.replace("Ee2n", "Ee2s");
    let text = format!(
        "Gold: anna\n{game}\n\n{game}\n3g resigns\n{wrong}\n{game}\n3g lost\n{POSITION}{won}"
    );
    let first = write(folder.path(), "first.txt", &text);
    let second = write(folder.path(), "second.txt", game.replace('\n', "\r\n"));
    let out = folder.path().join("out");
    let (code, report, complaints) =
        outcome(import().args([&first, &second]).arg("--out").arg(&out));
    assert_eq!(code, 0, "{complaints}");
    assert!(
        report.starts_with("7 games read, 6 imported with "),
        "{report}"
    );
    assert!(
        report.contains("left out: 1 with something wrong\n"),
        "{report}"
    );
    let named = format!("left out: {}: line 14, column ", first.display());
    assert!(complaints.starts_with(&named), "{complaints}");

    let shards = read(&out);
    assert_eq!(shards.len(), 2, "a file begins a shard");
    for ((header, _), path) in shards.iter().zip([&first, &second]) {
        assert_eq!(header.encoding_version, ENCODING_VERSION);
        assert_eq!(header.evaluator.name, "import");
        assert_eq!(
            header.evaluator.identity,
            digest(&std::fs::read(path).unwrap())
        );
        assert_eq!(header.generator, 0);
    }
    let games: Vec<&GameRecord> = shards.iter().flat_map(|(_, games)| games).collect();
    let winner = Side::Silver;
    let endings: Vec<Ending> = games.iter().map(|game| game.ending).collect();
    assert_eq!(
        endings,
        [
            Ending::Unfinished { value: None },
            Ending::Resigned { winner },
            Ending::Forfeited { winner },
            Ending::Unfinished { value: None },
            Ending::Won(won.outcome().unwrap()),
            Ending::Unfinished { value: None },
        ]
    );
    for (counter, game) in games.iter().enumerate() {
        assert_eq!(game.id.counter, counter as u64);
        assert!(
            game.turns
                .iter()
                .all(|turn| turn.origin == TurnOrigin::Given && !turn.rows.is_empty())
        );
    }
    for (index, expected) in [
        (0, short_game()),
        (2, short_game()),
        (3, parse_record(POSITION).unwrap()),
        (4, won),
        (5, short_game()),
    ] {
        assert_eq!(games[index].to_game(), Ok(expected));
    }
    assert!(matches!(games[3].start, Start::Position(_)));
}

/// An archive of the official server's columns, as far as they matter.
fn archive(lines: &[[&str; 6]]) -> String {
    let mut text =
        "id\twusername\twrating\tbrating\tresult\ttermination\trated\tmovelist\tevents\n"
            .to_owned();
    for (id, [gold, silver, result, termination, rated, movelist]) in lines.iter().enumerate() {
        text.push_str(&format!(
            "{id}\tanna\t{gold}\t{silver}\t{result}\t{termination}\t{rated}\t{movelist}\tstart [\\n\n"
        ));
    }
    text
}

#[test]
fn an_archive_is_detected_by_its_first_line_and_filtered() {
    let folder = tempfile::tempdir().unwrap();
    let new = turns("\\n");
    let old = format_movelist(&short_game(), SideLetters::Old);
    let long = format!("{new}\\n3g Ee3n\\n3s resigns");
    let text = archive(&[
        ["1800", "1900", "w", "r", "1", &long],
        ["1700", "1900", "b", "t", "1", &old],
        ["1800", "", "b", "t", "1", &new],
        ["1800", "1900", "b", "t", "0", &old],
        ["1800", "1900", "", "a", "1", &new],
        ["1800", "1900", "b", "g", "1", &new],
        ["1800", "1900", "x", "t", "1", &new],
        ["2000", "2000", "w", "i", "1", "2g Ee2n"],
    ]);
    // A name in Latin-1, ends of lines as of Windows, a line with a field too many.
    let mut bytes = text.replace('\n', "\r\n").into_bytes();
    bytes.extend_from_slice(b"9\tRen\xe9\t1900\t1900\tw\tt\t1\t");
    bytes.extend_from_slice(format!("{old}\t\r\n10\ttoo\tmany{}\n", "\t".repeat(7)).as_bytes());
    let file = write(folder.path(), "games.tsv", bytes);
    let run = |options: &[&str]| {
        let out = tempfile::tempdir().unwrap();
        let (code, report, complaints) = outcome(
            import()
                .arg(&file)
                .arg("--out")
                .arg(out.path())
                .args(options),
        );
        assert_eq!(code, 0, "{complaints}");
        let games: Vec<GameRecord> = read(out.path())
            .into_iter()
            .flat_map(|(_, games)| games)
            .collect();
        (games, report, complaints)
    };
    let (games, report, complaints) = run(&[]);
    assert_eq!(games.len(), 6);
    assert!(
        report.starts_with("10 games read, 6 imported with "),
        "{report}"
    );
    assert!(
        report.contains("left out: 4 with something wrong\n"),
        "{report}"
    );
    for message in [
        "line 7, column 18: the archive says that the game ended by goal",
        "line 8, column 18: a result (w, b, g, s, d, n, u) was expected, not `x`",
        "line 9, column 24: turn 1g was expected, not 2g",
        "line 11, column 1: the line has 10 fields for 9 columns",
    ] {
        let named = format!("left out: {}: {message}", file.display());
        assert!(complaints.contains(&named), "{named} in {complaints}");
    }
    assert_eq!(games[0].ending, Ending::Resigned { winner: Side::Gold });
    assert_eq!(games[0].turns.len(), 5);
    assert_eq!(
        games[1].ending,
        Ending::Forfeited {
            winner: Side::Silver
        }
    );
    assert_eq!(games[4].ending, Ending::Unfinished { value: None });

    let (games, report, _) = run(&["--min-rating", "1800", "--rated-only"]);
    assert_eq!(games.len(), 3);
    assert!(
        report.contains("left out: 2 of players with a lower rating or none\n")
            && report.contains("left out: 1 not known to be rated\n"),
        "{report}"
    );
    let (games, report, _) = run(&["--min-turns", "5"]);
    assert_eq!(games.len(), 1);
    assert!(report.contains("left out: 5 too short\n"), "{report}");

    let (games, report, _) = run(&["--winner-only"]);
    assert!(
        report.contains("left out: 1 without a winner\n"),
        "{report}"
    );
    assert_eq!(games.len(), 5);
    for game in games {
        for (index, turn) in game.turns.iter().enumerate() {
            let is_winner = Some(Side::ALL[index % 2]) == game.ending.winner();
            assert_eq!(!turn.rows.is_empty(), is_winner);
        }
    }
}

#[test]
fn the_first_twenty_faulty_games_are_named_or_all() {
    let folder = tempfile::tempdir().unwrap();
    let wrong = turns("\n").replace("Ee2n", "Ee2s") + "\n";
    let text = format!("{}{}", wrong.repeat(25), turns("\n"));
    let file = write(folder.path(), "games.txt", text);
    let named = |options: &[&str]| {
        let out = tempfile::tempdir().unwrap();
        let (code, _, complaints) = outcome(
            import()
                .arg(&file)
                .arg("--out")
                .arg(out.path())
                .args(options),
        );
        assert_eq!(code, 0, "{complaints}");
        let count = complaints.matches("left out: ").count();
        (
            count,
            complaints.contains("5 more faulty games are left out"),
        )
    };
    assert_eq!(named(&[]), (20, true));
    assert_eq!(named(&["--verbose"]), (25, false));
}

#[test]
fn files_that_cannot_be_read_are_named_and_the_others_imported() {
    let folder = tempfile::tempdir().unwrap();
    let good = write(folder.path(), "good.txt", turns("\n"));
    let columns = write(folder.path(), "columns.tsv", "movelist\tresult\n");
    let missing = folder.path().join("missing.txt");
    let out = folder.path().join("out");
    let (code, report, complaints) = outcome(
        import()
            .args([&missing, &columns, &good])
            .arg(folder.path())
            .arg("--out")
            .arg(&out),
    );
    assert_eq!(code, 1);
    assert!(
        report.starts_with("1 games read, 1 imported with "),
        "{report}"
    );
    for message in [
        format!("error: can't read {}: ", missing.display()),
        format!(
            "error: {}: line 1, column 1: the first line names no column id, termination",
            columns.display()
        ),
        format!(
            "error: can't read {}: this is not a regular file",
            folder.path().display()
        ),
    ] {
        assert!(complaints.contains(&message), "{message} in {complaints}");
    }
    assert_eq!(read(&out).len(), 1);
}

#[test]
fn an_interrupted_import_is_resumed_and_a_whole_one_is_not_doubled() {
    let folder = tempfile::tempdir().unwrap();
    let games: Vec<Game> = (0..1_020).map(|counter| random(counter, 4)).collect();
    let texts: Vec<String> = games.iter().map(Game::to_string).collect();
    let file = write(folder.path(), "games.txt", texts.join("\n"));
    let out = folder.path().join("out");
    let into = |more: &[&str]| outcome(import().arg(&file).arg("--out").arg(&out).args(more));
    let (code, report, _) = into(&[]);
    assert_eq!(code, 0);
    assert!(
        report.starts_with("1020 games read, 1020 imported"),
        "{report}"
    );
    let shards: Vec<PathBuf> = list_shards(&out).unwrap().into_values().collect();
    assert_eq!(shards.len(), 2);

    // As a kill before the second shard leaves it.
    std::fs::remove_file(&shards[1]).unwrap();
    for (imported, present) in [(20, 1_000), (0, 1_020)] {
        let (code, report, complaints) = into(&[]);
        assert_eq!(code, 0, "{complaints}");
        let begins = format!("1020 games read, {imported} imported");
        let ends = format!("{present} were there already\n");
        assert!(
            report.starts_with(&begins) && report.ends_with(&ends),
            "{report}"
        );
        let there = read(&out).into_iter().flat_map(|(_, games)| games);
        let there: Vec<Game> = there.map(|game| game.to_game().unwrap()).collect();
        assert_eq!(there.len(), games.len());
        assert!(
            there
                .iter()
                .zip(&games)
                .all(|(a, b)| a.to_string() == b.to_string())
        );
    }

    // Neither another choice of the same games nor another format option doubles them.
    for more in [&["--min-turns", "2"][..], &["--format", "text"]] {
        let (code, report, _) = into(more);
        assert_eq!(code, 0);
        assert!(
            report.starts_with("1020 games read, 0 imported"),
            "{report}"
        );
    }

    // What a damaged or removed shard has lost is imported again, and nothing else.
    let bytes = std::fs::read(&shards[0]).unwrap();
    std::fs::write(&shards[0], &bytes[..bytes.len() - 50]).unwrap();
    let (_, report, _) = into(&[]);
    assert!(
        report.starts_with("1020 games read, 1 imported"),
        "{report}"
    );
    std::fs::write(&shards[0], &bytes[20..]).unwrap();
    let (_, report, complaints) = into(&[]);
    assert!(
        report.starts_with("1020 games read, 999 imported"),
        "{report}"
    );
    assert!(complaints.contains("000-000000.shard: "), "{complaints}");
    assert!(complaints.contains("may be imported twice"), "{complaints}");
    std::fs::remove_file(&shards[0]).unwrap();
    let mut there: Vec<String> = read(&out)
        .into_iter()
        .flat_map(|(_, games)| games)
        .map(|game| game.to_game().unwrap().to_string())
        .collect();
    let mut expected: Vec<String> = games.iter().map(Game::to_string).collect();
    there.sort();
    expected.sort();
    assert!(there == expected);
}

#[test]
fn a_stopped_import_leaves_whole_shards_and_the_same_command_imports_the_rest() {
    const GAMES: usize = 30_000;
    let folder = tempfile::tempdir().unwrap();
    let text = (turns("\n") + "\n").repeat(GAMES);
    let file = write(folder.path(), "games.txt", text);
    let out = folder.path().join("out");
    let mut running = process::Command::new(env!("CARGO_BIN_EXE_selfplay"))
        .arg("import")
        .arg(&file)
        .arg("--out")
        .arg(&out)
        .env("RAYON_NUM_THREADS", "1")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    while !list_shards(&out).is_ok_and(|shards| !shards.is_empty()) {
        assert_eq!(running.try_wait().unwrap(), None, "it ended by itself");
        std::thread::sleep(Duration::from_millis(1));
    }
    let process = running.id().to_string();
    let mut kill = process::Command::new("kill");
    assert!(
        kill.args(["-s", "INT", &process])
            .status()
            .unwrap()
            .success()
    );
    let stopped = running.wait_with_output().unwrap();
    assert_eq!(stopped.status.code(), Some(75), "{stopped:?}");
    let entries = std::fs::read_dir(&out).unwrap();
    let mut names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert!(names.all(|name| !name.starts_with('.')));
    let shards = list_shards(&out).unwrap().into_values();
    let kept = shards.flat_map(|path| ShardReader::open(path).unwrap());
    let kept: Vec<GameRecord> = kept.map(Result::unwrap).collect();
    let kept = kept.len();
    let report = String::from_utf8(stopped.stdout).unwrap();
    let begins = format!("{kept} games read, {kept} imported");
    assert!(report.starts_with(&begins), "{report}");

    let (code, report, complaints) = outcome(import().arg(&file).arg("--out").arg(&out));
    assert_eq!(code, 0, "{complaints}");
    let begins = format!("{GAMES} games read, {} imported", GAMES - kept);
    let ends = format!("{kept} were there already\n");
    assert!(
        report.starts_with(&begins) && report.ends_with(&ends),
        "{report}"
    );
}

#[test]
fn a_game_imported_for_its_winner_only_is_the_same_game() {
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path(), "game.txt", turns("\n") + "\n3g resigns\n");
    let out = folder.path().join("out");
    for (more, imported) in [(&[][..], 1), (&["--winner-only"], 0), (&[], 0)] {
        let (code, report, complaints) =
            outcome(import().arg(&file).arg("--out").arg(&out).args(more));
        assert_eq!(code, 0, "{complaints}");
        let begins = format!("1 games read, {imported} imported");
        assert!(report.starts_with(&begins), "{report}");
    }
    assert_eq!(read(&out)[0].1.len(), 1);
}

#[test]
fn without_imported_games_no_file_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let archive = write(
        folder.path(),
        "games.tsv",
        archive(&[["", "", "b", "t", "", &turns("\\n")]]),
    );
    for options in [&["--format", "text"][..], &["--min-rating", "1000"]] {
        let out = folder.path().join("out");
        let (code, report, complaints) =
            outcome(import().arg(&archive).arg("--out").arg(&out).args(options));
        assert_eq!(code, 1, "{report}");
        assert!(report.contains(" 0 imported"), "{report}");
        assert!(
            complaints.ends_with("error: there is no game to import\n"),
            "{complaints}"
        );
        assert!(!out.exists());
    }
}

#[test]
fn a_run_of_another_format_is_not_changed() {
    let run = tempfile::tempdir().unwrap();
    let file = write(run.path(), "games.txt", turns("\n"));
    write(run.path(), "format.toml", "format = 1000\n");
    let (code, report, complaints) = outcome(import().arg(&file).arg("--run").arg(run.path()));
    assert_eq!((code, report.as_str()), (1, ""));
    assert!(complaints.contains("format 1000"), "{complaints}");
    assert_eq!(std::fs::read_dir(run.path()).unwrap().count(), 2);
}

#[test]
fn control_characters_of_a_file_are_not_printed() {
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path(), "games.txt", "\u{1b}[31mred \u{9b}31m\n");
    let out = folder.path().join("out");
    let (code, _, complaints) = outcome(import().arg(&file).arg("--out").arg(&out));
    assert_eq!(code, 1);
    assert!(complaints.contains("not `\u{fffd}[31mred"), "{complaints}");
}

#[test]
fn threads_do_not_change_the_shards_of_a_run() {
    let folder = tempfile::tempdir().unwrap();
    let endings = [
        None,
        Some(arimaa::notation::Conclusion::Resigned { winner: Side::Gold }),
    ];
    let text: String = (0..1_300)
        .map(|counter| format_concluded_record(&random(counter, 4), endings[counter as usize % 2]))
        .collect();
    let file = write(folder.path(), "games.txt", text);
    let shards: Vec<Vec<Vec<u8>>> = ["1", "3"]
        .iter()
        .map(|threads| {
            let run = tempfile::tempdir().unwrap();
            // Another generator has been there.
            std::fs::create_dir_all(run.path().join("generators").join("000")).unwrap();
            let (code, report, complaints) = outcome(
                import()
                    .env("RAYON_NUM_THREADS", threads)
                    .arg(&file)
                    .arg("--run")
                    .arg(run.path()),
            );
            assert_eq!(code, 0, "{complaints}");
            assert!(
                report.starts_with("1300 games read, 1300 imported"),
                "{report}"
            );
            let shards = list_shards(&run.path().join("shards")).unwrap();
            let names: Vec<String> = shards.keys().map(ToString::to_string).collect();
            assert_eq!(names, ["001-000000.shard", "001-000001.shard"]);
            let games = read(&run.path().join("shards"));
            let counts: Vec<usize> = games.iter().map(|(_, games)| games.len()).collect();
            assert_eq!(counts, [1_000, 300]);
            for (counter, game) in games.iter().flat_map(|(_, games)| games).enumerate() {
                let id = GameId {
                    generator: 1,
                    counter: counter as u64,
                };
                assert_eq!(game.id, id);
                assert_eq!(game.to_game().unwrap(), random(id.counter, 4));
            }
            shards
                .values()
                .map(|path| std::fs::read(path).unwrap())
                .collect()
        })
        .collect();
    assert_eq!(shards[0], shards[1]);
}
