//! Whatever is written is read again as itself, and whatever is read makes no reader panic.

mod boards;

use boards::{random_game, random_position, random_turn};
use engine::notation::{
    TurnLabel, format_board, format_board_picture, format_position, format_record, format_turn,
    parse_board, parse_board_picture, parse_position, parse_record, parse_turn,
};
use engine::perft::Case;
use engine::rules::{History, Position, Turn};
use proptest::prelude::*;
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

const RECORD: &str = "\
1g Ra1 Rb1 Rc1 Cd1 Re1 Rf1 Dg1 Rh1 Ra2 Db2 Mc2 Cd2 Ee2 Hf2 Hg2 Rh2
1s ed7 mg7 he7 df7 ce8 hb7 dc7 cd8 ra7 rh7 ra8 rb8 rc8 rf8 rg8 rh8
2g Ee2n Ee3n Ee4n
2s ed7s ra7s ra6e rb6s
3g Ee5n Ee6s he7s
3s he6n
";

/// The positions that turns are read in: before either setup, and in play.
fn starts() -> Vec<Position> {
    (0..=6)
        .map(|turns| {
            let lines: String = RECORD.split_inclusive('\n').take(turns).collect();
            *parse_record(&lines).unwrap().position()
        })
        .collect()
}

/// Hands a text to every reader. Whatever is read must be written and read again as itself.
fn read_all_ways(text: &str) {
    for start in starts() {
        if let Ok(turn) = parse_turn(text, &start) {
            let written = format_turn(&turn, &start);
            assert_eq!(parse_turn(&written, &start).as_ref(), Ok(&turn));
            let _ = start.after_turn(&turn, &History::default());
        }
    }
    if let Ok(position) = parse_position(text) {
        assert_eq!(parse_position(&format_position(&position)), Ok(position));
    }
    if let Ok(board) = parse_board(text) {
        assert_eq!(parse_board(&format_board(&board)), Ok(board));
    }
    if let Ok((number, position)) = parse_board_picture(text) {
        let picture = format_board_picture(&position, number);
        assert_eq!(parse_board_picture(&picture), Ok((number, position)));
    }
    if let Ok(game) = parse_record(text) {
        assert_eq!(parse_record(&format_record(&game)), Ok(game));
    }
    if let Ok(case) = serde_json::from_str::<Case>(text) {
        let _ = case.answer();
    }
}

/// A text with one of its characters replaced, taken out or doubled.
fn damaged(text: String) -> impl Strategy<Value = String> {
    let letters: Vec<char> = text.chars().collect();
    (0..letters.len(), any::<char>(), "[ A-Za-z0-9\n]", 0..4).prop_map(
        move |(index, wild, near, kind)| {
            let mut letters = letters.clone();
            match kind {
                0 => letters[index] = wild,
                1 => letters[index] = near.chars().next().unwrap_or(' '),
                2 => {
                    letters.remove(index);
                }
                _ => letters.insert(index, letters[index]),
            }
            letters.into_iter().collect()
        },
    )
}

fn examples() -> Vec<String> {
    let game = parse_record(RECORD).unwrap();
    let start = format_position(game.position());
    let mut texts = vec![
        RECORD.to_owned(),
        start.clone(),
        format!("{start}\n2g Ee5n Ee6s he7s\n2s he6n\n"),
        format_board_picture(game.position(), 4),
    ];
    texts.extend(RECORD.lines().map(|line| line[3..].to_owned()));
    texts.extend(
        include_str!("data/oracle/cases_public.jsonl")
            .lines()
            .take(25)
            .map(str::to_owned),
    );
    texts
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_text_makes_a_reader_panic(text in any::<String>()) {
        read_all_ways(&text);
    }

    #[test]
    fn no_words_make_a_reader_panic(text in "([gs1-9]{0,2} )?([RCDHMErcdhmex][a-i][0-9][neswx]{0,3}[ \n]?){0,18}") {
        read_all_ways(&text);
    }

    #[test]
    fn no_damaged_text_makes_a_reader_panic(text in proptest::sample::select(examples()).prop_flat_map(damaged)) {
        read_all_ways(&text);
    }
}
