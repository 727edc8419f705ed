//! Games as the archive of the official server holds them: out, in again, and on into records to learn from.

use arimaa::notation::{
    ArchiveReader, ArchivedGame, Conclusion, SideLetters, format_movelist, parse_record,
};
use arimaa::rules::{
    Action, Board, Game, Outcome, Phase, Piece, Position, Reason, Side, Square, StepState,
};
use engine::record::{
    Ending, GameId, ImportError, POLICY_TOTAL, Start, StartFault, StartPosition, TurnOrigin,
    import, replay, samples::random_game,
};

fn random(counter: u64, max_turns: usize) -> Game {
    let id = GameId {
        generator: 4,
        counter,
    };
    random_game(id, 6, max_turns).to_game().unwrap()
}

const ID: GameId = GameId {
    generator: 3,
    counter: 5,
};

/// A line of an archive whose columns are id, movelist, termination and result.
fn line(id: u64, game: &Game, letters: SideLetters) -> String {
    let movelist = format_movelist(game, letters);
    let (termination, result) = match game.outcome() {
        None => ("t", "w"),
        Some(Outcome { winner, reason }) => (
            match reason {
                Reason::Goal => "g",
                Reason::Elimination => "e",
                Reason::Immobilization => "m",
            },
            match (winner, letters) {
                (Side::Gold, SideLetters::Old) => "w",
                (Side::Silver, SideLetters::Old) => "b",
                (Side::Gold, SideLetters::New) => "g",
                (Side::Silver, SideLetters::New) => "s",
            },
        ),
    };
    format!("{id}\t{movelist}\t{termination}\t{result}\n")
}

#[test]
fn random_games_come_back_from_an_archive() {
    let games: Vec<Game> = (0..60)
        .map(|counter| random(counter, if counter % 2 == 0 { 2_000 } else { 40 }))
        .collect();
    let ended = games.iter().filter(|game| game.outcome().is_some()).count();
    assert!((30..60).contains(&ended), "{ended} of the games are over");
    let mut archive = "id\tmovelist\ttermination\tresult\n".to_owned();
    for (id, game) in games.iter().enumerate() {
        let letters = [SideLetters::Old, SideLetters::New][id / 2 % 2];
        archive.push_str(&line(id as u64, game, letters));
    }
    let read: Vec<ArchivedGame> = ArchiveReader::new(archive.as_bytes())
        .unwrap()
        .map(|game| game.unwrap())
        .collect();
    assert_eq!(read.len(), games.len());
    for (id, (read, game)) in read.iter().zip(&games).enumerate() {
        assert_eq!((read.id, read.line), (id as u64, id + 2));
        assert_eq!(&read.game, game);
        let winner = game.outcome().map_or(Side::Gold, |outcome| outcome.winner);
        assert_eq!(read.winner, Some(winner));
    }
}

#[test]
fn an_imported_game_is_learned_as_it_was_played() {
    for counter in 0..30 {
        let game = random(counter, if counter % 2 == 0 { 2_000 } else { 40 });
        let record = import(&game, None, ID).unwrap();
        assert_eq!((record.id, record.seed), (ID, 0));
        assert_eq!(record.to_game().unwrap(), game);
        assert_eq!((record.start, record.evaluators.len()), (Start::Empty, 0));
        let ending = match game.outcome() {
            None => Ending::Unfinished { value: None },
            Some(outcome) => Ending::Won(outcome),
        };
        assert_eq!(record.ending, ending);
        for (turn, recorded) in replay(&record).unwrap().iter().zip(&record.turns) {
            assert_eq!(turn.origin, TurnOrigin::Given);
            let side = turn.position.side();
            let is_short = turn.position.phase() == Phase::Play && recorded.actions.len() < 4;
            assert_eq!(
                turn.rows.len(),
                recorded.actions.len() + usize::from(is_short)
            );
            let mut state = StepState::new(&turn.position);
            for (index, row) in turn.rows.iter().enumerate() {
                assert_eq!((row.state, row.weight, row.surprise), (state, 1.0, 0.0));
                let played = match recorded.actions.get(index) {
                    Some(&action) => Action::from_index(action.into(), side).unwrap(),
                    None => Action::End,
                };
                for (action, &share) in row.legal.in_index_order(side).zip(row.policy) {
                    let expected = if action == played { POLICY_TOTAL } else { 0 };
                    assert_eq!(u32::from(share), expected);
                }
                if played != Action::End {
                    state = state.after(played);
                }
            }
        }
    }
}

const RECORD: &str = "\
1g Ra1 Rb1 Rc1 Dd1 De1 Rf1 Rg1 Rh1 Ra2 Hb2 Cc2 Md2 Ee2 Cf2 Hg2 Rh2
1s ra8 rb8 rc8 cd8 ce8 rf8 rg8 rh8 ra7 hb7 dc7 md7 ee7 df7 hg7 rh7
2g Ee2n Ee3n
";

#[test]
fn how_a_game_was_lost_otherwise_than_by_the_rules_is_kept() {
    let game = parse_record(RECORD).unwrap();
    let winner = Side::Silver;
    for (conclusion, ending) in [
        (None, Ending::Unfinished { value: None }),
        (
            Some(Conclusion::Resigned { winner }),
            Ending::Resigned { winner },
        ),
        (
            Some(Conclusion::Forfeited { winner }),
            Ending::Forfeited { winner },
        ),
    ] {
        let record = import(&game, conclusion, ID).unwrap();
        assert_eq!(record.ending, ending);
        assert_eq!(record.ending.conclusion(), conclusion);
        assert_eq!(record.to_game().as_ref(), Ok(&game));
    }
    let record = import(&game, None, ID).unwrap();
    // e2 and e3, northwards as Gold sees them.
    assert_eq!(record.turns[2].actions, [12, 20]);
    assert_eq!(record.turns[2].rows.len(), 3);
    assert_eq!(record.turns[2].rows[2].policy.last(), Some(&u16::MAX));
    // Elephant, camel, horses, dogs, cats: e2, d2, b2, g2, d1, e1, c2, f2.
    assert_eq!(
        record.turns[0].actions,
        [268, 267, 265, 270, 259, 260, 266, 269]
    );
}

#[test]
fn games_from_a_position_are_kept_with_it() {
    for side in ["g", "s"] {
        let turn = if side == "g" { "2g Ed4n" } else { "2s ra8e" };
        let text = format!(
            "{side} [r                                  Er                          R]\n{turn}\n"
        );
        let game = parse_record(&text).unwrap();
        let record = import(&game, None, ID).unwrap();
        assert_eq!(
            record.start,
            Start::Position(StartPosition::new(game.start()))
        );
        assert_eq!(record.to_game(), Ok(game));
        assert_eq!(record.turns[0].rows.len(), 2, "the step and the turn's end");
    }
    // Two elephants of one side can be on a board, but not in a game.
    let pieces = ["Ea1", "Eb1", "Rh1", "ra8"].map(|text| {
        let piece = Piece::from_letter(text.chars().next().unwrap()).unwrap();
        (text[1..].parse::<Square>().unwrap(), piece)
    });
    let board: Board = pieces.into_iter().collect();
    let mut game = Game::from_position(Position::in_play(board, Side::Gold));
    game.play_unchecked("a1n".parse().unwrap());
    assert!(matches!(
        import(&game, None, ID),
        Err(ImportError::Start(StartFault::Position(_)))
    ));
}

#[test]
fn what_a_record_cannot_hold_is_refused() {
    assert_eq!(import(&Game::new(), None, ID), Err(ImportError::NoTurns));
    let won = (0..).map(|counter| random(counter, 2_000));
    let won = won
        .into_iter()
        .find(|game| game.outcome().is_some())
        .unwrap();
    let played = won.outcome().unwrap();
    let winner = played.winner;
    let resigned = import(&won, Some(Conclusion::Resigned { winner }), ID).unwrap();
    assert_eq!(resigned.ending, Ending::Won(played));
    let stated = winner.opponent();
    let conclusion = Conclusion::Forfeited { winner: stated };
    let error = ImportError::OtherWinner { played, stated };
    assert_eq!(import(&won, Some(conclusion), ID), Err(error));
    for illegal in ["e2n e3n e4n e3n", "e4n e5s", "d3n"] {
        let mut game = parse_record(RECORD).unwrap();
        game.play_unchecked("a7s".parse().unwrap());
        game.play_unchecked(illegal.parse().unwrap());
        game.play_unchecked("a6s".parse().unwrap());
        let error = import(&game, None, ID).unwrap_err();
        assert_eq!(error.to_string(), "turn 3g is illegal", "{illegal}");
    }
}
