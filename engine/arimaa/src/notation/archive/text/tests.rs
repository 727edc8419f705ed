use super::super::*;
use crate::notation::record::parse_record;
use crate::rules::Side;
use std::io::BufReader;

const GOLD_SETUP: &str = "Ra1 Rb1 Rc1 Dd1 De1 Rf1 Rg1 Rh1 Ra2 Hb2 Cc2 Md2 Ee2 Cf2 Hg2 Rh2";
const SILVER_SETUP: &str = "ra8 rb8 rc8 cd8 ce8 rf8 rg8 rh8 ra7 hb7 dc7 md7 ee7 df7 hg7 rh7";

/// The games of a text: the line, and the count of turns or the message.
fn written(text: &str) -> Vec<Result<(usize, usize), String>> {
    RecordReader::new(BufReader::with_capacity(7, text.as_bytes()))
        .map(|game| match game {
            Ok(game) => Ok((game.line, game.game.turns().len())),
            Err(error) => Err(error.to_string()),
        })
        .collect()
}

#[test]
fn games_follow_on_each_other_in_a_text() {
    let game = format!("1g {GOLD_SETUP}\n1s {SILVER_SETUP}\n2g Ee2n\n");
    let old = game.replace("1g", "1w").replace("1s", "1b");
    let old = old.replace("2g Ee2n", "2w takeback\n1b takeback\n");
    let old = format!(
        "White: anna\r\nBlack: bert\r\n\r\n{old}{old}1w {GOLD_SETUP}\r\n# so far\n1b resigns\n"
    );
    let position =
        "s [r                                  Er                          R]\n2s ra8e\n";
    // A setup that is taken back and made again begins no game.
    let text = format!("{game}{game}{position}\n{position}{old}");
    assert_eq!(
        written(&text),
        [Ok((1, 3)), Ok((4, 3)), Ok((7, 1)), Ok((10, 1)), Ok((15, 1))]
    );
    let games: Vec<_> = RecordReader::new(text.as_bytes())
        .map(|game| game.unwrap())
        .collect();
    assert_eq!(games[0].game, parse_record(&game).unwrap());
    assert_eq!(games[2].game, parse_record(position).unwrap());
    assert_eq!(games[3].conclusion, None);
    let winner = Side::Gold;
    assert_eq!(games[4].conclusion, Some(Conclusion::Resigned { winner }));
    assert_eq!(written(""), []);
    assert_eq!(written("\n# nothing\nEvent: none\n"), []);
}

#[test]
fn a_game_that_ends_with_a_turn_taken_back_keeps_the_next_one() {
    let game = format!("1w {GOLD_SETUP}\n1b {SILVER_SETUP}\n2w Ee2n\n");
    let text = format!("{game}2b takeback\n{game}");
    assert_eq!(written(&text), [Ok((1, 2)), Ok((5, 3))]);
}

#[test]
fn positions_alone_are_games_without_turns() {
    let position = "g [r                                  Er                          R]";
    let text = format!(
        "{position}\n{position}\n\n{position}\n2g Ed4n\n{position}\n1g {GOLD_SETUP}\n1s {SILVER_SETUP}\n"
    );
    let games: Vec<_> = RecordReader::new(text.as_bytes())
        .map(|game| game.unwrap())
        .map(|game| (game.line, game.game.turns().len()))
        .collect();
    assert_eq!(games, [(1, 0), (2, 0), (4, 1), (6, 0), (7, 2)]);
}

#[test]
fn after_a_faulty_game_the_next_is_read() {
    let good = format!("1g {GOLD_SETUP}\n1s {SILVER_SETUP}\n2g Ee2n\n");
    let wrong = good.replace("Ee2n", "Ee2n Ee3s");
    let unlabelled = good.replace("2g Ee2n", "Ee2n");
    let endless = good.clone() + &"2s takeback\n".repeat(MAX_LINE_BYTES / 10);
    let long = good.clone() + &"2".repeat(MAX_LINE_BYTES + 1) + "\n";
    let text =
        format!("no game\n{good}{wrong}{unlabelled}{long}{endless}g [nowhere]\n2g Ee2n\n{good}");
    let found = written(&text);
    let message = |index: usize| found[index].clone().unwrap_err();
    assert!(
        message(0).starts_with("line 1, column 1: a turn's number"),
        "{}",
        message(0)
    );
    assert_eq!(found[1], Ok((2, 3)));
    let third = message(2);
    assert!(third.starts_with("line 7, column 4: "), "{third}");
    assert!(
        message(3).starts_with("line 10, column 1: a turn's number"),
        "{}",
        message(3)
    );
    assert!(message(4).starts_with("line 14, column 1: the line has more than"));
    assert!(message(5).starts_with("line 15, column 1: the game has more than"));
    assert!(message(6).contains(", column 4: "), "{}", message(6));
    assert!(matches!(found[7], Ok((_, 3))));
    assert_eq!(found.len(), 8);
}

#[test]
fn the_loser_by_the_last_line_has_not_won() {
    let position = "g [                R                       r                       ]\n";
    let won = format!("{position}2g Ra6n Ra7n\n");
    assert_eq!(written(&won), [Ok((1, 1))]);
    let lost = format!("{won}2s lost\n");
    assert_eq!(written(&lost), [Ok((1, 1))]);
    let game = RecordReader::new(lost.as_bytes()).next().unwrap().unwrap();
    assert_eq!(game.conclusion, None, "the rules have ended it");
    assert_eq!(
        written(&format!("{won}3g resigns\n")),
        [Err(
            "line 1, column 1: Gold resigned in the last entry, but has won".to_owned()
        )]
    );
}

#[test]
fn how_a_game_was_lost_is_written_and_read() {
    let text = format!("1g {GOLD_SETUP}\n1s {SILVER_SETUP}\n2g Ee2n\n");
    let game = parse_record(&text).unwrap();
    for (conclusion, last) in [
        (Conclusion::Resigned { winner: Side::Gold }, "2s resigns\n"),
        (
            Conclusion::Resigned {
                winner: Side::Silver,
            },
            "3g resigns\n",
        ),
        (Conclusion::Forfeited { winner: Side::Gold }, "2s lost\n"),
        (
            Conclusion::Forfeited {
                winner: Side::Silver,
            },
            "3g lost\n",
        ),
    ] {
        let written = format_concluded_record(&game, Some(conclusion));
        assert_eq!(written, format!("{text}{last}"));
        let mut games = RecordReader::new(written.as_bytes());
        let read = games.next().unwrap().unwrap();
        assert_eq!(
            (read.game, read.conclusion),
            (game.clone(), Some(conclusion))
        );
    }
    assert_eq!(format_concluded_record(&game, None), text);
}
