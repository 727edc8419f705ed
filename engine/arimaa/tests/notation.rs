//! Whatever is written is read again as itself.

mod boards;

use arimaa::notation::{
    TurnLabel, format_board, format_board_picture, format_position, format_record, format_turn,
    parse_board, parse_board_picture, parse_position, parse_record, parse_turn,
};
use arimaa::rules::{History, Position, Turn};
use boards::{random_game, random_position, random_turn};
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;

/// The words of a turn with the removals put last, and without them.
fn other_spellings(text: &str) -> [String; 2] {
    let (removals, steps): (Vec<&str>, Vec<&str>) = text
        .split(' ')
        .partition(|word| word.len() == 4 && word.ends_with('x'));
    let without = steps.join(" ");
    [
        [&[without.as_str()][..], &removals].concat().join(" "),
        without,
    ]
}

/// A turn in which a piece's further directions follow without repeating it.
fn condensed(turn: &Turn, position: &Position) -> String {
    let Turn::Steps(steps) = turn else {
        return format_turn(turn, position);
    };
    let [_, without] = other_spellings(&format_turn(turn, position));
    let mut text = String::new();
    let mut last = None;
    for (step, word) in steps.iter().zip(without.split(' ')) {
        if last == Some(step.from) {
            text.push_str(&word[3..]);
        } else {
            text.push_str(&format!(" {word}"));
        }
        last = step.to();
    }
    text
}

#[test]
fn turns_read_back_in_every_spelling() {
    let mut rng = ChaCha8Rng::seed_from_u64(21);
    let (mut captures, mut shorter) = (0, 0);
    for _ in 0..3_000 {
        let position = random_position(&mut rng);
        let Some(turn) = random_turn(&position, &History::default(), &mut rng) else {
            continue;
        };
        let text = format_turn(&turn, &position);
        let [last, without] = other_spellings(&text);
        let condensed = condensed(&turn, &position);
        captures += usize::from(text != without);
        shorter += usize::from(condensed.trim().len() < without.len());
        for spelling in [text, last, without, condensed] {
            assert_eq!(
                parse_turn(&spelling, &position).as_ref(),
                Ok(&turn),
                "{position}: {spelling}"
            );
        }
    }
    assert!(captures > 100 && shorter > 500, "{captures} {shorter}");
}

#[test]
fn positions_read_back() {
    let mut rng = ChaCha8Rng::seed_from_u64(22);
    for number in 2..1_000 {
        let position = random_position(&mut rng);
        let text = format_position(&position);
        assert_eq!(text.len(), 68);
        assert_eq!(parse_position(&text), Ok(position));
        let board = format_board(position.board());
        assert_eq!(parse_board(&board).as_ref(), Ok(position.board()));
        let picture = format_board_picture(&position, number);
        assert_eq!(parse_board_picture(&picture), Ok((number, position)));
    }
}

#[test]
fn records_read_back_at_every_length() {
    let mut rng = ChaCha8Rng::seed_from_u64(23);
    for turns in 0..40 {
        let game = random_game(turns, &mut rng);
        let text = format_record(&game);
        assert_eq!(text.lines().count(), game.turns().len());
        assert_eq!(parse_record(&text).as_ref(), Ok(&game));
        let label = TurnLabel::due(&game);
        assert_eq!(label.number as usize, game.turns().len() / 2 + 1);
        assert_eq!(label.side, game.position().side());
    }
}
