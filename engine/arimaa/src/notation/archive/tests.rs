use super::*;
use crate::notation::error::{NotationError, NotationReason};
use crate::notation::record::parse_record;
use crate::rules::{Outcome, Reason, Side, StepError, TurnError};
use std::io::{BufReader, Read};

const HEADER: &str =
    "id\twusername\tbusername\twrating\tbrating\tevent\tresult\ttermination\tmovelist";
const GOLD_SETUP: &str = "Ra1 Rb1 Rc1 Dd1 De1 Rf1 Rg1 Rh1 Ra2 Hb2 Cc2 Md2 Ee2 Cf2 Hg2 Rh2";
const SILVER_SETUP: &str = "ra8 rb8 rc8 cd8 ce8 rf8 rg8 rh8 ra7 hb7 dc7 md7 ee7 df7 hg7 rh7";
/// Gold loses a cat in the trap c3 with its second turn, Silver a dog in c6.
const OLD_TURNS: &str = "2w Ee2n Ee3n Cc2n Cc3x\\n2b dc7s dc6x ra7s";

fn setups(letters: [char; 2]) -> String {
    let [gold, silver] = letters;
    format!("1{gold} {GOLD_SETUP}\\n1{silver} {SILVER_SETUP}\\n")
}

/// A line of the columns of `HEADER`.
fn line(result: &str, termination: &str, movelist: &str) -> String {
    format!("112\tanna\tbert\t1871\t\tFriendly game\t{result}\t{termination}\t{movelist}")
}

fn read(line: &str) -> Result<ArchivedGame, NotationError> {
    let archive = format!("{HEADER}\n{line}\n");
    let mut games = ArchiveReader::new(archive.as_bytes()).unwrap();
    let game = games.next().unwrap();
    assert!(games.next().is_none());
    game
}

/// Where an error of a line is: the first word of the movelist's entry or the field, and the column in it.
fn place_of(error: &NotationError, line: &str) -> (String, usize) {
    assert_eq!(error.line, 2);
    let (end, _) = line.char_indices().nth(error.column - 1).unwrap();
    let before = line[..end].rsplit(['\t', '\n']).next().unwrap();
    let before = before.rsplit("\\n").next().unwrap();
    let entry = &line[end - before.len()..];
    let label = entry.split(['\t', '\\', ' ']).next().unwrap();
    (label.to_owned(), before.chars().count() + 1)
}

/// The error of a movelist whose setups have been made: the turn and the column in it, the reason, and the whole message.
fn movelist_fault(turns: &str) -> (String, usize, NotationReason, String) {
    let line = line("w", "r", &(setups(['w', 'b']) + turns));
    let error = read(&line).unwrap_err();
    let message = error.to_string();
    let (turn, column) = place_of(&error, &line);
    (turn, column, error.reason, message)
}

#[test]
fn old_and_new_records_are_the_same_games() {
    let old = read(&line("w", "r", &(setups(['w', 'b']) + OLD_TURNS))).unwrap();
    let turns = OLD_TURNS.replace("2w", "2g").replace("2b", "2s");
    let new = read(&line("g", "r", &(setups(['g', 's']) + &turns))).unwrap();
    assert_eq!(old, new);
    assert_eq!((old.line, old.id), (2, 112));
    assert_eq!(
        (old.gold.name.as_str(), old.gold.rating),
        ("anna", Some(1871.0))
    );
    assert_eq!(
        (old.silver.name.as_str(), old.silver.rating),
        ("bert", None)
    );
    assert_eq!(old.event, "Friendly game");
    assert_eq!(
        (old.winner, old.termination),
        (Some(Side::Gold), Termination::Resignation)
    );
    let record = format!("1g {GOLD_SETUP}\n1s {SILVER_SETUP}\n2g Ee2n Ee3n Cc2n\n2s dc7s ra7s\n");
    assert_eq!(old.game, parse_record(&record).unwrap());
    assert_eq!(old.game.turns().len(), 4);
}

#[test]
fn what_is_no_turn_is_understood() {
    let played = setups(['w', 'b']) + OLD_TURNS;
    let game = read(&line("b", "t", &played)).unwrap().game;
    for ending in [
        "\\n3w",
        "\\n3w ",
        "\\n",
        "\\n\\n",
        "\\n3w resigns",
        "\\n3w resign\\n3w ",
        "\\n3w \\n3w",
    ] {
        let read = read(&line("b", "t", &format!("{played}{ending}"))).unwrap();
        assert_eq!(read.game, game, "{ending}");
    }
    // Silver's turn alone is taken back, then both sides', of which Gold's was never legal; then even the setups.
    for text in [
        format!("{played}\\n3w takeback\\n2b dc7s dc6x ra7s"),
        setups(['w', 'b']) + "2w ee7n\\n2b rh7s\\n3w takeback\\n2b takeback\\n" + OLD_TURNS,
        format!("1w {GOLD_SETUP}\\n1b takeback\\n{played}"),
    ] {
        assert_eq!(read(&line("b", "t", &text)).unwrap().game, game, "{text}");
    }
}

#[test]
fn every_result_and_termination_is_read() {
    let movelist = setups(['w', 'b']);
    for (code, winner) in [
        ("w", Some(Side::Gold)),
        ("g", Some(Side::Gold)),
        ("b", Some(Side::Silver)),
        ("s", Some(Side::Silver)),
        ("d", None),
        ("n", None),
        ("u", None),
        ("", None),
    ] {
        assert_eq!(read(&line(code, "t", &movelist)).unwrap().winner, winner);
    }
    for (code, termination) in [
        ("r", Termination::Resignation),
        ("t", Termination::Time),
        ("s", Termination::Score),
        ("f", Termination::Forfeit),
        ("i", Termination::IllegalTurn),
        ("p", Termination::Repetition),
        ("a", Termination::Abandoned),
        ("z", Termination::Other("z".to_owned())),
        ("", Termination::Other(String::new())),
    ] {
        assert_eq!(
            read(&line("w", code, &movelist)).unwrap().termination,
            termination
        );
    }
}

#[test]
fn columns_may_stand_anywhere() {
    let movelist = setups(['g', 's']);
    let archive = format!(
        "\u{feff}movelist\tplycount\ttermination\tresult\tid\r\n{movelist}\t2\tt\ts\t9\r\n\r\n"
    );
    let games: Vec<_> = ArchiveReader::new(archive.as_bytes()).unwrap().collect();
    let [Ok(game)] = &games[..] else {
        panic!("{games:?}");
    };
    assert_eq!((game.id, game.winner), (9, Some(Side::Silver)));
    assert_eq!(game.gold, ArchivedPlayer::default());
    assert_eq!(game.event, "");
}

#[test]
fn a_first_line_without_the_columns_is_refused() {
    let fault = |text: &str| {
        let error = ArchiveReader::new(text.as_bytes()).unwrap_err();
        assert_eq!(error.line, 1);
        (error.column, error.reason)
    };
    let message = ArchiveReader::new(&b""[..]).unwrap_err().to_string();
    assert_eq!(
        message,
        "line 1, column 1: a line that names the columns was expected, not the end"
    );
    let missing = NotationReason::MissingColumns("id, termination, movelist".to_owned());
    assert_eq!(fault("wusername\tresult\n"), (1, missing));
    let message = ArchiveReader::new(&b"id\n"[..]).unwrap_err().to_string();
    assert_eq!(
        message,
        "line 1, column 1: the first line names no column result, termination, movelist"
    );
    let twice = format!("{HEADER}\twrating");
    let double = NotationReason::DoubleColumn("wrating".to_owned());
    assert_eq!(fault(&twice), (HEADER.len() + 2, double));
    let long = "i".repeat(MAX_LINE_BYTES + 1);
    assert!(matches!(fault(&long), (1, NotationReason::TooLong { .. })));
}

#[test]
fn faulty_fields_are_named() {
    let good = line("w", "r", &setups(['w', 'b']));
    assert!(read(&good).is_ok());
    for (from, to, message) in [
        (
            "112",
            "x12",
            "line 2, column 1: a game's number was expected, not `x12`",
        ),
        (
            "112",
            "-1",
            "line 2, column 1: a game's number was expected, not `-1`",
        ),
        (
            "1871",
            "inf",
            "line 2, column 15: a rating was expected, not `inf`",
        ),
        (
            "\tw\t",
            "\tx\t",
            "line 2, column 35: a result (w, b, g, s, d, n, u) was expected, not `x`",
        ),
        (
            "bert",
            "bert\t",
            "line 2, column 1: the line has 10 fields for 9 columns",
        ),
        (
            "\tbert",
            "",
            "line 2, column 1: the line has 8 fields for 9 columns",
        ),
    ] {
        let error = read(&good.replace(from, to)).unwrap_err();
        assert_eq!(error.to_string(), message);
    }
    let archive = format!("{HEADER}\tcorrupt\n{good}\t1\n{good}\t0\n");
    let games: Vec<_> = ArchiveReader::new(archive.as_bytes()).unwrap().collect();
    assert!(
        matches!(&games[0], Err(error) if error.reason == NotationReason::Corrupt && error.line == 2)
    );
    assert!(games[1].is_ok());
}

#[test]
fn turns_that_break_the_rules_are_named() {
    let (turn, column, fault, message) = movelist_fault("2w Ee2n Ee3n\\n2b ra7s ra6s ra5n");
    assert_eq!((turn.as_str(), column), ("2b", 14));
    assert!(matches!(
        fault,
        NotationReason::Turn(TurnError::Step {
            number: 3,
            error: StepError::RabbitBackward(_),
            ..
        })
    ));
    assert!(
        message.starts_with("line 2, column 202: step 3"),
        "{message}"
    );
    // Gold's cat is lost in the trap; the record says that the elephant is.
    let (turn, column, fault, _) = movelist_fault("2g Cc2n Ec3x");
    assert_eq!((turn.as_str(), column), ("2g", 9));
    assert!(matches!(fault, NotationReason::NotRemoved { .. }));
    let (_, column, fault, _) = movelist_fault("2w Ra1 Rb1");
    assert_eq!(
        (column, fault),
        (4, NotationReason::Turn(TurnError::SetupUnexpected))
    );
    let line = line("w", "r", "1w Ra1");
    let error = read(&line).unwrap_err();
    assert_eq!(place_of(&error, &line).0, "1w");
    let (_, column, fault, _) = movelist_fault("2w pass");
    assert_eq!((column, fault), (4, NotationReason::Piece('p')));
}

#[test]
fn movelists_with_gaps_are_refused() {
    for wrong in ["2b ra7s", "3w Ee2n", "1w Ee2n", "2s", "3w takeback"] {
        let (_, column, fault, message) = movelist_fault(wrong);
        assert!(matches!(fault, NotationReason::OtherTurn { .. }), "{wrong}");
        assert_eq!(column, 1);
        assert!(
            message.contains(": turn 2g was expected, not "),
            "{message}"
        );
    }
    for wrong in [
        "x",
        "2",
        "w",
        "02w Ee2n",
        "+2w",
        "2W",
        "99999999999w",
        "2é",
        "é",
    ] {
        let (turn, column, fault, _) = movelist_fault(wrong);
        assert!(wrong.starts_with(&turn), "{turn}");
        assert_eq!(column, 1);
        assert_eq!(
            fault,
            NotationReason::Expected {
                what: "a turn's number and side (w, b, g, s)".into(),
                found: format!("`{turn}`"),
            }
        );
    }
    let (turn, column, fault, _) = movelist_fault("2w resigns\\n2w Ee2n");
    assert_eq!(fault, NotationReason::AfterConclusion);
    assert_eq!((turn.as_str(), column), ("2w", 1));
    for nothing in ["", "\\n", "1w", "1w resigns"] {
        let error = read(&line("b", "r", nothing)).unwrap_err();
        assert_eq!(error.reason, NotationReason::NoTurns, "{nothing}");
    }
    let error = read(&line("b", "r", "1w takeback")).unwrap_err();
    assert_eq!(error.reason, NotationReason::NothingToTakeBack);
}

#[test]
fn the_end_must_be_what_the_turns_say() {
    let played = setups(['w', 'b']);
    let error = read(&line("w", "g", &played)).unwrap_err();
    assert_eq!(error.reason, NotationReason::NotOver(Reason::Goal));
    let error = read(&line("w", "r", &format!("{played}2w resigns"))).unwrap_err();
    assert_eq!(error.reason, NotationReason::LoserWon(Side::Gold));
    // Gold's rabbit walks up the h file, which Silver clears.
    let won = played
        + "2w Rh2n Rh3n Rh4n Rh5n\\n2b rh7w rh8s rh7s\\n3w takeback\\n2b hg7s hg6s rh7w rh8s\\n\
           3w Ra2n\\n3b rg7s rh7w";
    let text = format!("{won}\\n4w Rh6n Rh7n");
    match read(&line("w", "g", &text)) {
        Ok(game) => {
            let outcome = Outcome {
                winner: Side::Gold,
                reason: Reason::Goal,
            };
            assert_eq!(game.game.outcome(), Some(outcome));
        }
        Err(error) => panic!("{error}"),
    }
    // Other terminations than those of the rules do not contradict them.
    assert!(read(&line("w", "r", &text)).is_ok());
    assert!(read(&line("w", "g", &format!("{text}\\n4b"))).is_ok());
    for (result, termination) in [("b", "g"), ("", "g"), ("w", "e"), ("b", "t")] {
        let error = read(&line(result, termination, &text)).unwrap_err();
        assert!(matches!(error.reason, NotationReason::OtherEnding { .. }));
    }
    let error = read(&line("b", "m", &text)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "line 2, column 35: Gold wins by goal, but the archive says that Silver won by immobilization"
    );
    let line = line("w", "g", &format!("{text}\\n4b ra7s"));
    let error = read(&line).unwrap_err();
    assert_eq!(place_of(&error, &line), ("4b".to_owned(), 1));
    assert!(matches!(
        error.reason,
        NotationReason::Turn(TurnError::GameOver(_))
    ));
}

#[test]
fn after_a_faulty_line_the_next_is_read() {
    let good = line("w", "r", &setups(['w', 'b']));
    let mut archive = format!("{HEADER}\n{good}\n").into_bytes();
    archive.extend_from_slice(b"112\tan\n");
    archive.extend_from_slice(&vec![b'7'; 3 * MAX_LINE_BYTES]);
    archive.extend_from_slice(format!("\n{good}\nnothing\n{good}").as_bytes());
    // A small buffer, so that lines come in parts.
    let source = BufReader::with_capacity(1000, &archive[..]);
    let games: Vec<_> = ArchiveReader::new(source).unwrap().collect();
    let lines: Vec<_> = games
        .iter()
        .map(|game| game.as_ref().map(|game| game.line))
        .collect();
    assert_eq!(lines.len(), 6);
    assert!(matches!(lines[0], Ok(2)) && matches!(lines[3], Ok(5)) && matches!(lines[5], Ok(7)));
    let faults: Vec<_> = games
        .iter()
        .filter_map(|game| game.as_ref().err())
        .collect();
    assert!(matches!(
        (faults[0].line, &faults[0].reason),
        (3, NotationReason::FieldCount { found: 2, .. })
    ));
    assert!(matches!(
        (faults[1].line, &faults[1].reason),
        (4, NotationReason::TooLong { .. })
    ));
    assert!(matches!(
        (faults[2].line, &faults[2].reason),
        (6, NotationReason::FieldCount { found: 1, .. })
    ));
}

#[test]
fn the_longest_line_is_still_read() {
    let movelist = setups(['w', 'b']);
    let short = line("w", "r", &movelist);
    let event = "x".repeat(MAX_LINE_BYTES - short.len());
    let longest = short.replace("Friendly game", &format!("Friendly game{event}"));
    assert!(read(&longest).is_ok());
    assert!(read(&format!("{longest}\r")).is_ok());
    let error = read(&longest.replace("Friendly", "Friendlyx")).unwrap_err();
    assert!(matches!(error.reason, NotationReason::TooLong { .. }));
}

#[test]
fn taking_back_costs_no_more_than_its_text() {
    // Were the game played anew at each, this would take minutes.
    let mut movelist = setups(['w', 'b']);
    while movelist.len() < MAX_LINE_BYTES - 1_000 {
        movelist.push_str("2w Ee2n\\n2b takeback\\n");
    }
    assert_eq!(
        read(&line("b", "t", &movelist)).unwrap().game.turns().len(),
        2
    );
}

#[test]
fn an_archive_that_cannot_be_read_ends() {
    struct Failing;
    impl Read for Failing {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            Err(std::io::Error::other("the disk is gone"))
        }
    }
    let source = format!("{HEADER}\n");
    let mut games = ArchiveReader::new(BufReader::new(source.as_bytes().chain(Failing))).unwrap();
    let error = games.next().unwrap().unwrap_err();
    assert_eq!(error.to_string(), "line 2, column 1: the disk is gone");
    assert!(games.next().is_none());
}

#[test]
fn what_is_no_utf_8_is_latin_1() {
    let good = line("w", "r", &setups(['w', 'b']));
    let (before, after) = good.split_once("anna").unwrap();
    let archive = [
        HEADER.as_bytes(),
        b"\n",
        before.as_bytes(),
        b"Ren\xe9",
        after.as_bytes(),
    ]
    .concat();
    let game = ArchiveReader::new(&archive[..]).unwrap().next().unwrap();
    assert_eq!(game.unwrap().gold.name, "René");
    let utf_8 = read(&good.replace("anna", "René")).unwrap();
    assert_eq!(utf_8.gold.name, "René");
}

#[test]
fn the_termination_decides_how_a_game_was_lost() {
    let movelist = setups(['w', 'b']);
    let resigned = format!("{movelist}2w resigns");
    let lost = format!("{movelist}2w lost");
    let winner = Side::Silver;
    let (resignation, forfeit) = (
        Some(Conclusion::Resigned { winner }),
        Some(Conclusion::Forfeited { winner }),
    );
    for (termination, movelist, conclusion) in [
        ("r", &movelist, resignation),
        ("r", &lost, resignation),
        ("t", &movelist, forfeit),
        ("t", &resigned, forfeit),
        ("i", &movelist, forfeit),
        ("s", &movelist, forfeit),
        ("p", &movelist, forfeit),
        ("f", &movelist, forfeit),
        ("a", &movelist, forfeit),
        ("", &movelist, forfeit),
        ("", &resigned, resignation),
        ("?", &lost, forfeit),
    ] {
        let game = read(&line("b", termination, movelist)).unwrap();
        assert_eq!(game.conclusion, conclusion, "{termination} {movelist}");
        let unknown = read(&line("u", termination, movelist)).unwrap();
        assert_eq!(unknown.conclusion, None, "no winner is known");
    }
    let archive = format!(
        "{HEADER}\trated\n{0}\t1\n{0}\t0\n{0}\t\n",
        line("b", "r", &movelist)
    );
    let rated: Vec<_> = ArchiveReader::new(archive.as_bytes())
        .unwrap()
        .map(|game| game.unwrap().is_rated)
        .collect();
    assert_eq!(rated, [Some(true), Some(false), None]);
}

#[test]
fn a_side_may_give_up_out_of_turn() {
    let movelist = setups(['w', 'b']);
    let game = read(&line("w", "", &format!("{movelist}2b resigns"))).unwrap();
    let winner = Side::Gold;
    assert_eq!(game.conclusion, Some(Conclusion::Resigned { winner }));
    for wrong in ["3w resigns", "2b", "2b Ee2n"] {
        let error = read(&line("", "", &format!("{movelist}{wrong}"))).unwrap_err();
        assert!(
            matches!(error.reason, NotationReason::OtherTurn { .. }),
            "{wrong}"
        );
    }
}
