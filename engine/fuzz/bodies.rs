//! What the fuzz targets do with their bytes. The tests of the engine run the same on bounded random input.

#[path = "../arimaa/tests/reference/mod.rs"]
#[allow(dead_code, reason = "the tests use more of it")]
mod reference;

mod journals;

use arimaa::aei::{Command, Info, Reply, StandardOption};
use arimaa::notation::{
    ArchiveReader, RecordReader, SideLetters, TurnLabel, format_board, format_board_picture,
    format_concluded_record, format_movelist, format_position, format_record, format_turn,
    parse_board, parse_board_picture, parse_position, parse_record, parse_turn,
};
use arimaa::perft::Case;
use arimaa::rules::{
    Action, Board, Direction, Game, History, Kind, Phase, Piece, Position, PositionFault, Setup,
    Side, Square, Step, StepError, StepState, Steps, Turn,
};
use engine::record::{GameId, import, replay};
use reference::{Letters, Past};
use std::collections::BTreeSet;

/// Bytes to choose by; zeros when they are used up.
struct Choices<'a> {
    bytes: std::slice::Iter<'a, u8>,
}

impl<'a> Choices<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Self {
            bytes: bytes.iter(),
        }
    }

    fn are_left(&self) -> bool {
        self.bytes.len() > 0
    }

    fn byte(&mut self) -> u8 {
        self.bytes.next().copied().unwrap_or(0)
    }

    fn side(&mut self) -> Side {
        Side::ALL[usize::from(self.byte() % 2)]
    }

    /// One of some items, of which there must be one.
    fn of<T: Copy>(&mut self, items: &[T]) -> T {
        items[usize::from(self.byte()) % items.len()]
    }
}

/// See [`journals::journal`].
pub(crate) fn journal(bytes: &[u8]) {
    journals::journal(bytes);
}

/// A record whose turns and positions texts are read in.
const RECORD: &str = "\
1g Ra1 Rb1 Rc1 Cd1 Re1 Rf1 Dg1 Rh1 Ra2 Db2 Mc2 Cd2 Ee2 Hf2 Hg2 Rh2
1s ed7 mg7 he7 df7 ce8 hb7 dc7 cd8 ra7 rh7 ra8 rb8 rc8 rf8 rg8 rh8
2g Ee2n Ee3n Ee4n
2s ed7s ra7s ra6e rb6s
3g Ee5n Ee6s he7s
3s he6n
";

/// Hands a text to every reader. None may panic, and whatever is read must be written and read again as itself.
pub(crate) fn notation(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let text = text.as_ref();
    for turns in 0..=6 {
        let lines: String = RECORD.split_inclusive('\n').take(turns).collect();
        let start = *parse_record(&lines).unwrap().position();
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
    reads_back::<Square>(text);
    reads_back::<Direction>(text);
    reads_back::<Side>(text);
    reads_back::<Kind>(text);
    reads_back::<Piece>(text);
    reads_back::<Step>(text);
    reads_back::<Action>(text);
    reads_back::<Setup>(text);
    reads_back::<Turn>(text);
    reads_back::<TurnLabel>(text);
    let _ = serde_json::from_str::<StepState>(text);
    let _ = serde_json::from_str::<History>(text);
}

/// Whatever is read from a text is written and read again as itself.
fn reads_back<
    T: std::str::FromStr<Err: std::fmt::Debug> + ToString + PartialEq + std::fmt::Debug,
>(
    text: &str,
) {
    if let Ok(value) = text.parse::<T>() {
        assert_eq!(value.to_string().parse::<T>().unwrap(), value);
    }
}

/// Hands the lines of a text to both sides of the engine protocol, and what a controller sets to the options. None may panic, and
/// whatever is read must be written on one line and read again as itself.
pub(crate) fn aei(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    for line in std::iter::once(text.as_ref()).chain(text.split('\n')) {
        reads_back::<Info>(line);
        if let Ok(reply) = line.parse::<Reply>() {
            let written = reply.to_string();
            assert!(!written.contains(['\n', '\r']), "{written:?}");
            assert_eq!(written.parse(), Ok(reply));
        }
        let Ok(command) = line.parse::<Command>() else {
            continue;
        };
        let written = command.to_string();
        assert!(!written.contains(['\n', '\r']), "{written:?}");
        assert_eq!(written.parse().as_ref(), Ok(&command));
        match &command {
            Command::SetOption { name, value } => set_option(name, value.as_deref()),
            Command::MakeMove(turn) => notation(turn.as_bytes()),
            _ => {}
        }
    }
}

/// Reads a value as that of every option; one that is accepted is what its text says.
fn set_option(name: &str, value: Option<&str>) {
    let _ = name.parse::<StandardOption>();
    for option in StandardOption::ALL {
        if let Ok(read) = option.kind().read(value)
            && let Some(number) = read.number()
        {
            assert_eq!(
                value.and_then(|text| text.trim().parse().ok()),
                Some(number)
            );
        }
    }
}

/// The columns and the first game of an archive.
const ARCHIVE: &str = "\
id\twusername\tbusername\twrating\tbrating\tevent\tresult\ttermination\tmovelist\tcorrupt
1\tanna\tbert\t1600\t\t\tw\tr\t\
1w Ra1 Rb1 Rc1 Cd1 Re1 Rf1 Dg1 Rh1 Ra2 Db2 Mc2 Cd2 Ee2 Hf2 Hg2 Rh2\\n\
1b ed7 mg7 he7 df7 ce8 hb7 dc7 cd8 ra7 rh7 ra8 rb8 rc8 rf8 rg8 rh8\\n\
2w Ee2n Ee3n Ee4n\\n2b ed7s\\n3w takeback\\n2b ed7s ra7s ra6e rb6s\\n3w Ee5n Ee6s he7s\\n3b resigns\t0
";

/// Reads bytes as an archive, as the lines behind the columns' names, and in the place of bytes of a game. Nothing may panic,
/// every line must be read, and whatever is read must be written and read again as itself, and become a record that replays.
pub(crate) fn archive(bytes: &[u8]) {
    assert_eq!(read_archive(ARCHIVE.as_bytes()), 1);
    read_archive(bytes);
    let header = ARCHIVE.lines().next().unwrap();
    read_archive(&[header.as_bytes(), b"\n", bytes].concat());
    let Some((at, rest)) = bytes.split_first_chunk::<2>() else {
        return;
    };
    let at = usize::from(u16::from_le_bytes(*at)) % ARCHIVE.len();
    let end = (at + rest.len()).min(ARCHIVE.len());
    let (before, after) = (&ARCHIVE.as_bytes()[..at], &ARCHIVE.as_bytes()[end..]);
    read_archive(&[before, rest, after].concat());
    read_archive(&[before, rest, &ARCHIVE.as_bytes()[at..]].concat());
}

/// Counts the games that could be read.
fn read_archive(bytes: &[u8]) -> usize {
    let Ok(games) = ArchiveReader::new(bytes) else {
        return 0;
    };
    let (mut line, mut count) = (1, 0);
    for game in games {
        let found = match &game {
            Ok(game) => game.line,
            Err(error) => error.line,
        };
        assert!(found > line, "line {found} comes after line {line}");
        line = found;
        let Ok(game) = game else {
            continue;
        };
        let id = GameId {
            generator: 0,
            counter: game.id,
        };
        let record = import(&game.game, game.conclusion, id).unwrap();
        assert_eq!(replay(&record).unwrap().len(), game.game.turns().len());
        assert_eq!(record.to_game().as_ref(), Ok(&game.game));
        let movelist = format_movelist(&game.game, SideLetters::New);
        let again = format!(
            "id\tresult\ttermination\tmovelist\n1\t{}\t\t{movelist}",
            match game.winner {
                Some(side) => side.letter().to_string(),
                None => String::new(),
            }
        );
        let again = ArchiveReader::new(again.as_bytes())
            .unwrap()
            .next()
            .unwrap();
        assert_eq!(again.unwrap().game, game.game);
        count += 1;
    }
    let lines = bytes.split(|&byte| byte == b'\n').count();
    assert!(line <= lines);
    count
}

/// Reads bytes as texts of games one after another, alone and behind a game. Whatever is read must be written and read again as
/// itself, and become a record that replays.
pub(crate) fn texts(bytes: &[u8]) {
    read_texts(bytes);
    let (_, movelist) = ARCHIVE.rsplit_once("\tr\t").unwrap();
    let (movelist, _) = movelist.split_once("\\n2b").unwrap();
    let game = movelist.replace("\\n", "\n") + "\n";
    let texts = [game.as_bytes(), bytes, b"\n1w\n", game.as_bytes()].concat();
    assert!(read_texts(&texts) >= 1);
}

/// Counts the games that could be read.
fn read_texts(bytes: &[u8]) -> usize {
    let mut count = 0;
    for game in RecordReader::new(bytes) {
        let Ok(game) = game else {
            continue;
        };
        let id = GameId {
            generator: 0,
            counter: game.line as u64,
        };
        let record = import(&game.game, game.conclusion, id).unwrap();
        assert_eq!(record.to_game().as_ref(), Ok(&game.game));
        let text = format_concluded_record(&game.game, game.conclusion);
        let mut again = RecordReader::new(text.as_bytes());
        let again = again.next().unwrap().unwrap();
        assert_eq!((again.game, again.conclusion), (game.game, game.conclusion));
        count += 1;
    }
    count
}

/// Puts any pieces on any squares. Exactly the impossible boards are refused, with all their faults, and what is accepted
/// reads back from every form.
pub(crate) fn positions(bytes: &[u8]) {
    let mut choices = Choices::new(bytes);
    let side = choices.side();
    let board = any_board(&mut choices);
    let expected = faults(&letters(&board));
    let position = match Position::new(board, side) {
        Ok(position) => {
            assert!(expected.is_empty(), "{board}: {expected:?}");
            position
        }
        Err(faults) => {
            let found: BTreeSet<String> = faults.iter().map(name_of).collect();
            assert_eq!((&found, found.len()), (&expected, faults.len()), "{board}");
            return;
        }
    };
    assert_eq!(parse_position(&position.to_string()), Ok(position));
    let picture = format_board_picture(&position, 7);
    assert_eq!(parse_board_picture(&picture), Ok((7, position)));
    assert_eq!(position.mirror().mirror(), position);
    if position.phase() == Phase::Play {
        assert_eq!(position.swap_colours().swap_colours(), position);
        assert_eq!(
            outcome(&position, &History::default()),
            reference::outcome(&letters(&board), side.letter(), &Past::new())
        );
    }
}

/// Pieces on squares, of which there may be far too many.
fn any_board(choices: &mut Choices<'_>) -> Board {
    let mut pieces = Vec::new();
    while choices.are_left() && pieces.len() < 64 {
        let square = Square::wrapping(choices.byte());
        let side = choices.side();
        pieces.push((square, Piece::new(side, choices.of(&Kind::ALL))));
    }
    pieces.into_iter().collect()
}

/// What is impossible about a board, by the letters.
fn faults(letters: &Letters) -> BTreeSet<String> {
    let mut faults = BTreeSet::new();
    for (letter, limit) in "RCDHMErcdhme".chars().zip([8, 2, 2, 2, 1, 1].repeat(2)) {
        let count = letters
            .iter()
            .filter(|&&other| char::from(other) == letter)
            .count();
        if count > limit {
            faults.insert(format!("{count} {letter}"));
        }
    }
    for (trap, around) in [
        (18, [10, 17, 19, 26]),
        (21, [13, 20, 22, 29]),
        (42, [34, 41, 43, 50]),
        (45, [37, 44, 46, 53]),
    ] {
        let letter = char::from(letters[trap]);
        let is_friend =
            |other: u8| other != b' ' && other.is_ascii_uppercase() == letter.is_ascii_uppercase();
        if letter != ' ' && !around.iter().any(|&next| is_friend(letters[next])) {
            faults.insert(format!("{letter} on {}", Square::wrapping(trap as u8)));
        }
    }
    faults
}

/// A fault's name, as [`faults`] has it.
fn name_of(fault: &PositionFault) -> String {
    match *fault {
        PositionFault::TooMany {
            side, kind, count, ..
        } => format!("{count} {}", Piece::new(side, kind)),
        PositionFault::Unsupported { square, piece } => format!("{piece} on {square}"),
    }
}

/// Plays a game by choices. Its record reads back; with one letter of it changed, it is refused or reads back too.
pub(crate) fn records(bytes: &[u8]) {
    let mut choices = Choices::new(bytes);
    let (damage_at, letter) = (usize::from(choices.byte()) * 8, choices.byte());
    let mut game = match choices.byte() % 2 {
        0 => Game::new(),
        _ => Game::from_position(position(&mut choices)),
    };
    while choices.are_left() && game.outcome().is_none() && game.turns().len() < 20 {
        let turn = turn(&game, &mut choices);
        let text = format_turn(&turn, game.position());
        assert_eq!(parse_turn(&text, game.position()).as_ref(), Ok(&turn));
        game = game.with_turn(turn).unwrap();
    }
    let record = game.to_string();
    assert_eq!(parse_record(&record).as_ref(), Ok(&game));
    let mut damaged: Vec<char> = record.chars().collect();
    if let Some(place) = damaged.get_mut(damage_at) {
        *place = char::from(letter);
    }
    let damaged: String = damaged.into_iter().collect();
    if let Ok(game) = parse_record(&damaged) {
        assert_eq!(parse_record(&game.to_string()), Ok(game));
    }
}

/// A legal turn by choices.
fn turn(game: &Game, choices: &mut Choices<'_>) -> Turn {
    let mut state = StepState::new(game.position());
    let mut actions = Vec::new();
    while !state.is_complete() {
        let legal: Vec<Action> = state
            .legal_actions(game.history())
            .in_index_order(state.side())
            .collect();
        let action = choices.of(&legal);
        if action == Action::End {
            break;
        }
        actions.push(action);
        state = state.after(action);
    }
    Turn::from_actions(&actions, game.position()).unwrap()
}

/// Follows a turn by choices, some ends forbidden, beside the plain generator of the tests. Before each step both name the same
/// legal ones, and the check of single steps agrees with the set, and says of what is only a dead end that it is one.
pub(crate) fn generator(bytes: &[u8]) {
    let mut choices = Choices::new(bytes);
    let start = position(&mut choices);
    let (history, past) = forbidden(&start, &mut choices);
    assert_eq!(
        outcome(&start, &history),
        reference::outcome(&letters(start.board()), start.side().letter(), &past)
    );
    let mut state = StepState::new(&start);
    let mut plain = reference::Turn::new(letters(start.board()), start.side().letter());
    let mut steps = Steps::new();
    loop {
        compare(&state, &plain, &history, &past);
        let legal: Vec<Step> = state.legal_actions(&history).steps().collect();
        if legal.is_empty() {
            break;
        }
        let step = choices.of(&legal);
        let mut turns = plain.legal_steps(&past).into_iter();
        plain = turns.find(|(name, _)| *name == step.to_string()).unwrap().1;
        state = state.play_step(step, &history).unwrap();
        steps.push(step);
        let end = start.play(&Turn::Steps(steps.clone()), &history);
        assert_eq!(end.is_ok(), plain.may_end(&past));
    }
}

/// Compares all 256 steps, and whether the turn may end.
fn compare(state: &StepState, plain: &reference::Turn, history: &History, past: &Past) {
    let legal = state.legal_actions(history);
    let expected: BTreeSet<String> = plain
        .legal_steps(past)
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    assert_eq!(letters(state.board()), plain.letters);
    assert_eq!(state.can_end(history), plain.may_end(past), "{state:?}");
    let mut possible = 0;
    for square in Square::all() {
        for direction in Direction::ALL {
            let step = Step::new(square, direction);
            let is_legal = expected.contains(&step.to_string());
            let check = state.check_step(step, history);
            assert_eq!(
                legal.contains(Action::Step(step)),
                is_legal,
                "{state:?} {step}"
            );
            assert_eq!(check.is_ok(), is_legal, "{state:?} {step}");
            possible += usize::from(is_legal || check == Err(StepError::DeadEnd));
        }
    }
    assert_eq!(possible, plain.count_possible(), "{state:?}");
}

/// Forbids the ends of up to three turns of a step or two.
fn forbidden(start: &Position, choices: &mut Choices<'_>) -> (History, Past) {
    let (mut history, mut past) = (History::default(), Past::new());
    for _ in 0..choices.byte() % 4 {
        let mut state = StepState::new(start);
        for _ in 0..=choices.byte() % 2 {
            let legal: Vec<Step> = state.legal_actions(&History::default()).steps().collect();
            if !legal.is_empty() {
                state = state.after_step(choices.of(&legal));
            }
        }
        let end = state.end();
        for _ in 0..2 {
            history.push(&end);
            past.push((letters(end.board()), end.side().letter()));
        }
    }
    (history, past)
}

/// A position of play: pieces on squares, as many as a game has at most, none alone on a trap, and a rabbit where it would be
/// a setup.
fn position(choices: &mut Choices<'_>) -> Position {
    let side = choices.side();
    let mut board = Board::EMPTY;
    for _ in 0..choices.byte() % 33 {
        let square = Square::wrapping(choices.byte());
        let piece = Piece::new(choices.side(), choices.of(&Kind::ALL));
        let count = board.pieces(piece.side, piece.kind).count();
        if board.piece_at(square).is_none() && count < piece.kind.full_count() {
            board.put(square, piece);
        }
    }
    for of in Side::ALL {
        for trap in board.unsupported(of) {
            board.take(trap);
        }
    }
    let position = Position::new(board, side).unwrap();
    if position.phase() == Phase::Play {
        return position;
    }
    board.put(Square::at(0, 7), Piece::new(Side::Silver, Kind::Rabbit));
    Position::new(board, side).unwrap()
}

fn letters(board: &Board) -> Letters {
    let mut letters = [b' '; 64];
    for (square, piece) in board.iter() {
        letters[square.index()] = piece.letter() as u8;
    }
    letters
}

/// Who has won and how, as the plain generator says it.
fn outcome(position: &Position, history: &History) -> Option<(char, &'static str)> {
    use arimaa::rules::Reason;
    let outcome = position.outcome(history)?;
    let reason = match outcome.reason {
        Reason::Goal => "goal",
        Reason::Elimination => "elimination",
        Reason::Immobilization => "immobilization",
    };
    Some((outcome.winner.letter(), reason))
}
