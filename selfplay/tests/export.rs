//! `selfplay export` from the outside.

use arimaa::notation::parse_record;
use arimaa::rules::Side;
use assert_cmd::Command;
use engine::encoding::{LegalMask, PLANES, POLICY_SIZE, SCALARS, encode};
use engine::record::{
    Ending, EvaluatorId, GameId, GameRecord, Header, POLICY_TOTAL, SearchKind, ShardName,
    ShardReader, ShardWriter, Start, TurnOrigin, digest, import, list_shards, replay,
    samples::random_game,
};
use ndarray::{Array1, Array2, Array4, s};
use ndarray_npy::{NpzReader, ReadableElement};
use std::fs::File;
use std::path::{Path, PathBuf};

fn selfplay(command: &str) -> Command {
    let mut selfplay = Command::cargo_bin("selfplay").expect("cargo has built the program");
    selfplay.arg(command);
    selfplay
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

fn id(counter: u64) -> GameId {
    GameId {
        generator: 2,
        counter,
    }
}

/// Games of every start and every end, most of them short.
fn games() -> Vec<GameRecord> {
    let mut games: Vec<GameRecord> = (0..6)
        .map(|counter| random_game(id(counter), 5, 9))
        .collect();
    games[1].ending = Ending::Resigned { winner: Side::Gold };
    games[2].ending = Ending::Forfeited { winner: Side::Gold };
    games[3].ending = Ending::Resigned {
        winner: Side::Silver,
    };
    let text = "s [r                                  Er                          R]\n2s ra8e\n";
    games[4] = import(&parse_record(text).unwrap(), None, id(4)).unwrap();
    games[5].start = Start::Fork { game: id(0) };
    games[5].turns[3].origin = TurnOrigin::Policy {
        evaluator: 0,
        network_value: 0.25,
    };
    if let TurnOrigin::Search(search) = &mut games[5].turns[4].origin {
        search.kind = SearchKind::Fast;
    }
    let won = (6..).map(|counter| random_game(id(counter), 5, 2_000));
    let won = won
        .into_iter()
        .find(|game| matches!(game.ending, Ending::Won(_)));
    games.extend(won);
    games
}

/// A shard of a folder.
fn write_shard(folder: &Path, sequence: u32, games: &[GameRecord]) -> PathBuf {
    let header = Header {
        encoding_version: 2,
        program_version: "0.1.0".into(),
        evaluator: EvaluatorId::default(),
        config_digest: digest(b""),
        generator: 2,
    };
    let name = ShardName {
        generator: 2,
        sequence,
    };
    let mut writer = ShardWriter::create(folder, name, &header).unwrap();
    games.iter().for_each(|game| writer.push(game).unwrap());
    writer.finish().unwrap()
}

/// A folder with two shards, and their games.
fn shards() -> (tempfile::TempDir, Vec<GameRecord>) {
    let folder = tempfile::tempdir().unwrap();
    let games = games();
    write_shard(folder.path(), 0, &games[..4]);
    write_shard(folder.path(), 1, &games[4..]);
    (folder, games)
}

#[test]
fn exported_text_is_imported_as_the_same_games() {
    let (folder, games) = shards();
    let text = folder.path().join("games.txt");
    let (code, report, complaints) = outcome(
        selfplay("export")
            .arg(folder.path())
            .arg("--text")
            .arg(&text),
    );
    assert_eq!(code, 0, "{complaints}");
    assert_eq!(report, format!("7 games: {}\n", text.display()));
    let again = folder.path().join("again");
    let (code, _, complaints) = outcome(selfplay("import").arg(&text).arg("--out").arg(&again));
    assert_eq!(code, 0, "{complaints}");
    let shards = list_shards(&again).unwrap();
    let imported: Vec<GameRecord> = shards
        .values()
        .flat_map(|path| ShardReader::open(path).unwrap())
        .map(|game| game.unwrap())
        .collect();
    assert_eq!(imported.len(), games.len());
    for (imported, game) in imported.iter().zip(&games) {
        assert_eq!(imported.to_game(), game.to_game());
        match game.ending {
            // The value that stands for the result is no part of the text.
            Ending::Unfinished { .. } => {
                assert_eq!(imported.ending, Ending::Unfinished { value: None });
            }
            ending => assert_eq!(imported.ending, ending),
        }
    }
    // To standard output goes the text alone.
    let (code, printed, _) = outcome(selfplay("export").arg(folder.path()).args(["--text", "-"]));
    assert_eq!(
        (code, printed),
        (0, std::fs::read_to_string(&text).unwrap())
    );
}

/// An array of numbers, one a row.
fn column<T: ReadableElement>(npz: &mut NpzReader<File>, name: &str) -> Vec<T> {
    let array: Array1<T> = npz.by_name(name).unwrap();
    array.into_raw_vec_and_offset().0
}

#[test]
fn arrays_hold_the_rows_as_a_network_sees_them() {
    let (folder, games) = shards();
    let path = folder.path().join("rows.npz");
    let (code, report, complaints) = outcome(
        selfplay("export")
            .arg(folder.path())
            .arg("--rows")
            .arg(&path),
    );
    assert_eq!(code, 0, "{complaints}");
    let mut npz = NpzReader::new(File::open(&path).unwrap()).unwrap();
    assert_eq!(npz.len(), 17);
    let planes: Array4<u8> = npz.by_name("planes").unwrap();
    let scalars: Array2<f32> = npz.by_name("scalars").unwrap();
    let legal: Array2<bool> = npz.by_name("legal").unwrap();
    let policy: Array2<f32> = npz.by_name("policy").unwrap();
    let count: usize = games
        .iter()
        .flat_map(|game| &game.turns)
        .map(|turn| turn.rows.len())
        .sum();
    assert_eq!(report, format!("{count} rows: {}\n", path.display()));
    assert_eq!(planes.dim(), (count, PLANES, 8, 8));
    assert_eq!(scalars.dim(), (count, SCALARS));
    assert_eq!(legal.dim(), (count, POLICY_SIZE));
    assert_eq!(policy.dim(), (count, POLICY_SIZE));
    let value: Vec<f32> = column(&mut npz, "value");
    let search_value: Vec<f32> = column(&mut npz, "search_value");
    let network_value: Vec<f32> = column(&mut npz, "network_value");
    let weight: Vec<f32> = column(&mut npz, "weight");
    let surprise: Vec<f32> = column(&mut npz, "surprise");
    let visits: Vec<u32> = column(&mut npz, "visits");
    let generator: Vec<u32> = column(&mut npz, "generator");
    let counter: Vec<u64> = column(&mut npz, "counter");
    let turns: Vec<u32> = column(&mut npz, "turn");
    let steps: Vec<u8> = column(&mut npz, "step");
    let sides: Vec<u8> = column(&mut npz, "side");
    let origins: Vec<u8> = column(&mut npz, "origin");
    let endings: Vec<u8> = column(&mut npz, "ending");

    let mut index = 0;
    for game in &games {
        for (number, turn) in replay(game).unwrap().iter().enumerate() {
            let side = turn.position.side();
            let of_mover = |gold: f32| if side == Side::Gold { gold } else { 1.0 - gold };
            for (row, recorded) in turn.rows.iter().zip(&game.turns[number].rows) {
                let input = encode(&row.state, turn.repetitions);
                let mut unpacked = vec![0.0; (PLANES + SCALARS) * 64];
                input.write_planes(&mut unpacked);
                let shown = planes.slice(s![index, .., .., ..]);
                assert!(
                    shown
                        .iter()
                        .map(|&bit| f32::from(bit))
                        .eq(unpacked[..PLANES * 64].iter().copied())
                );
                assert_eq!(scalars.row(index).to_vec(), input.scalars);
                let mask = LegalMask::new(&row.legal, side);
                let mut shares = row.policy.iter();
                for entry in 0..POLICY_SIZE {
                    assert_eq!(legal[[index, entry]], mask.contains(entry));
                    let share = if mask.contains(entry) {
                        f32::from(*shares.next().unwrap()) / POLICY_TOTAL as f32
                    } else {
                        0.0
                    };
                    assert_eq!(policy[[index, entry]], share);
                }
                let result = match game.ending {
                    Ending::Unfinished { value } => value.unwrap_or(0.5),
                    ending if ending.winner() == Some(Side::Gold) => 1.0,
                    _ => 0.0,
                };
                assert_eq!(value[index], of_mover(result));
                let (origin, searched, network) = match turn.origin {
                    TurnOrigin::Given => (0, None, None),
                    TurnOrigin::Policy { network_value, .. } => (1, None, Some(network_value)),
                    TurnOrigin::Search(search) => (
                        2 + u8::from(search.kind == SearchKind::Fast),
                        Some(search.value),
                        Some(search.network_value),
                    ),
                };
                for (found, expected) in [
                    (search_value[index], searched),
                    (network_value[index], network),
                ] {
                    match expected {
                        Some(gold) => assert_eq!(found, of_mover(gold)),
                        None => assert!(found.is_nan()),
                    }
                }
                assert_eq!(
                    (weight[index], surprise[index], visits[index]),
                    (row.weight, row.surprise, row.visits)
                );
                assert_eq!((generator[index], counter[index]), (2, game.id.counter));
                assert_eq!(
                    (turns[index], steps[index], sides[index]),
                    (number as u32, recorded.step, side.index() as u8)
                );
                assert_eq!(origins[index], origin);
                index += 1;
            }
        }
    }
    assert_eq!(index, count);
    assert!(
        (0..4).all(|origin| origins.contains(&origin)),
        "all origins"
    );
    let of_game = |game: u64| endings[counter.iter().position(|&of| of == game).unwrap()];
    assert_eq!([0, 1, 2, 3, 4].map(of_game), [5, 3, 4, 3, 5]);
    assert!(of_game(games[6].id.counter) < 3);
}

/// The rows of each file in a folder, by name.
fn row_files(folder: &Path) -> Vec<(String, usize)> {
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| {
            let path = entry.unwrap().path();
            let mut npz = NpzReader::new(File::open(&path).unwrap()).unwrap();
            let rows = column::<u8>(&mut npz, "step").len();
            (path.file_name().unwrap().to_str().unwrap().to_owned(), rows)
        })
        .collect();
    files.sort();
    files
}

#[test]
fn many_rows_go_to_several_files_up_to_the_limit() {
    let (folder, games) = shards();
    let export = |options: &[&str]| {
        let out = tempfile::tempdir().unwrap();
        let (code, _, complaints) = outcome(
            selfplay("export")
                .arg(folder.path())
                .arg("--rows")
                .arg(out.path().join("rows.npz"))
                .args(options),
        );
        assert_eq!(code, 0, "{complaints}");
        row_files(out.path())
    };
    let named = |names: &[(&str, usize)]| -> Vec<(String, usize)> {
        let names = names.iter();
        names.map(|&(name, rows)| (name.to_owned(), rows)).collect()
    };
    assert_eq!(export(&["--limit", "30"]), named(&[("rows.npz", 30)]));
    assert_eq!(
        export(&["--limit", "30", "--rows-per-file", "30"]),
        named(&[("rows.npz", 30)])
    );
    assert_eq!(
        export(&["--limit", "30", "--rows-per-file", "12"]),
        named(&[
            ("rows-000.npz", 12),
            ("rows-001.npz", 12),
            ("rows-002.npz", 6)
        ])
    );
    let rows = |games: &[GameRecord]| -> usize {
        let turns = games.iter().flat_map(|game| &game.turns);
        turns.map(|turn| turn.rows.len()).sum()
    };
    for (range, wanted) in [("0..2", 0..2), ("3..5", 3..5), ("5..", 5..7), ("..1", 0..1)] {
        assert_eq!(
            export(&["--games", range]),
            named(&[("rows.npz", rows(&games[wanted]))]),
            "{range}"
        );
    }
    assert_eq!(export(&["--games", "100.."]), named(&[("rows.npz", 0)]));
}

#[test]
fn faults_are_named_and_the_rest_exported() {
    let (folder, games) = shards();
    let path = folder.path().join("002-000000.shard");
    let offsets = ShardReader::open(&path).unwrap().frame_offsets().unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[offsets[1] as usize + 20] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let mut illegal = games[0].clone();
    illegal.turns[2].actions = vec![0];
    write_shard(folder.path(), 2, &[illegal]);
    std::fs::write(folder.path().join("002-000003.shard"), "no shard").unwrap();
    let (code, text, complaints) =
        outcome(selfplay("export").arg(folder.path()).args(["--text", "-"]));
    assert_eq!(code, 1);
    let setups = text.lines().filter(|line| line.starts_with("1g "));
    assert_eq!(setups.count(), 5, "one starts from a position");
    for message in [
        format!(
            "002-000000.shard: frame 2 at byte {}: the checksum",
            offsets[1]
        ),
        "002-000002.shard: frame 1 at byte ".to_owned(),
        "002-000003.shard: this is not a shard".to_owned(),
    ] {
        assert!(complaints.contains(&message), "{message} in {complaints}");
    }
}

#[test]
fn nothing_is_overwritten_and_bad_arguments_are_named() {
    let (folder, _) = shards();
    let taken = folder.path().join("taken.npz");
    std::fs::write(&taken, "mine").unwrap();
    let numbered = folder.path().join("many-000.npz");
    std::fs::write(&numbered, "mine").unwrap();
    let many = folder.path().join("many.npz");
    let nowhere = folder.path().join("nowhere").join("games.txt");
    let [taken, many, nowhere] = [&taken, &many, &nowhere].map(|path| path.to_str().unwrap());
    for (arguments, code, message) in [
        (&["--text", taken][..], 1, "taken.npz exists already"),
        (&["--rows", taken], 1, "taken.npz exists already"),
        (
            &["--rows", many, "--rows-per-file", "1"],
            1,
            "many-000.npz exists already",
        ),
        (&["--rows", many], 1, "many-000.npz exists already"),
        (&["--text", nowhere], 1, "can't write "),
        (&[], 2, "--text <FILE>"),
        (&["--rows", "rows.txt"], 2, "the name must end in .npz"),
        (&["--text", "-", "--games", "5"], 2, "not a range of games"),
        (
            &["--text", "-", "--games", "5..5"],
            2,
            "there is no game in the range",
        ),
        (&["--text", "-", "--limit", "5"], 2, "--rows"),
        (
            &["--text", "-", "--rows-per-file", "5"],
            2,
            "--rows <NAME.npz>",
        ),
    ] {
        let (found, printed, complaints) =
            outcome(selfplay("export").arg(folder.path()).args(arguments));
        assert_eq!((found, printed.as_str()), (code, ""), "{arguments:?}");
        assert!(complaints.contains(message), "{message} in {complaints}");
    }
    assert_eq!(std::fs::read(taken).unwrap(), b"mine");
    let missing = folder.path().join("missing");
    let (code, _, complaints) = outcome(selfplay("export").arg(&missing).args(["--text", "-"]));
    assert_eq!(code, 1);
    assert!(complaints.contains("missing"), "{complaints}");
}

/// The example of the README, where there is a Python with numpy; that the arrays are right is tested above without it.
#[test]
fn numpy_loads_the_rows() {
    let numpy = std::process::Command::new("python3")
        .args(["-c", "import numpy"])
        .output();
    if !numpy.is_ok_and(|output| output.status.success()) {
        return;
    }
    let (folder, _) = shards();
    let path = folder.path().join("rows.npz");
    let (code, _, complaints) = outcome(
        selfplay("export")
            .arg(folder.path())
            .arg("--rows")
            .arg(&path),
    );
    assert_eq!(code, 0, "{complaints}");
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/load_rows.py");
    let (code, printed, complaints) = outcome(Command::new("python3").arg(example).arg(&path));
    assert_eq!(code, 0, "{complaints}");
    assert!(printed.starts_with("planes uint8 ("), "{printed}");
    assert!(printed.ends_with("over the legal actions\n"), "{printed}");
}
