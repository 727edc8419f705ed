//! The short form of boards and positions.

use super::error::{NotationError, NotationReason};
use super::token::{Location, Span};
use crate::rules::{Board, Piece, Position, PositionFault, Side, Square};
use std::fmt;
use std::str::FromStr;

const SQUARES: usize = 64;

/// Reads a board: `[`, a8 to h8, a7 to h7, down to h1, `]`; a blank is an empty square, everything else a piece's letter.
/// Blanks before and after the brackets don't matter. What the pieces are is not checked.
///
/// ```
/// use arimaa::notation::{format_board, parse_board};
/// let text = "[r                                  Er                          R]";
/// let board = parse_board(text)?;
/// assert_eq!(board.piece_at("d4".parse()?), Some("E".parse()?));
/// assert_eq!(format_board(&board), text);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn parse_board(text: &str) -> Result<Board, NotationError> {
    read_board(Span::whole(text)).map(|(board, _)| board)
}

/// Reads a position: the side to move, `g` or `s`, and its board, as [`parse_board`] reads it.
///
/// ```
/// use arimaa::notation::{format_position, parse_position};
/// let text = "g [r                                  Er                          R]";
/// let position = parse_position(text)?;
/// assert_eq!(format_position(&position), text);
/// # Ok::<(), arimaa::notation::NotationError>(())
/// ```
pub fn parse_position(text: &str) -> Result<Position, NotationError> {
    read_position(Span::whole(text))
}

/// Reads a position from a part of a text.
pub(super) fn read_position(text: Span<'_>) -> Result<Position, NotationError> {
    let Span { text, place } = text.trim();
    let mut letters = text.chars();
    let side = match letters.next() {
        Some('g') => Side::Gold,
        Some('s') => Side::Silver,
        Some(other) => return Err(place.fault(NotationReason::Side(other))),
        None => return Err(place.expected("the side to move, g or s,", "")),
    };
    let (board, first) = read_board(Span {
        text: letters.as_str(),
        place: place.right(1),
    })?;
    Position::new(board, side).map_err(|error| {
        let at_fault = text_index(square_at_fault(error.first(), &board));
        first.right(at_fault).fault(error)
    })
}

/// The square that shows a fault: the trap, or the first piece beyond the full number in the order of the text.
pub(super) fn square_at_fault(fault: &PositionFault, board: &Board) -> Square {
    match *fault {
        PositionFault::Unsupported { square, .. } => square,
        PositionFault::TooMany {
            side, kind, limit, ..
        } => (0..SQUARES)
            .map(square_at)
            .filter(|&square| board.pieces(side, kind).contains(square))
            .nth(limit as usize)
            .unwrap_or(square_at(0)),
    }
}

/// Writes a board in its 64 letters between brackets, as [`parse_board`] reads it.
pub fn format_board(board: &Board) -> String {
    let mut text = String::with_capacity(SQUARES + 2);
    text.push('[');
    text.extend(board_letters(board));
    text.push(']');
    text
}

/// Writes a position in its short form, as [`parse_position`] reads it.
pub fn format_position(position: &Position) -> String {
    format!(
        "{} {}",
        position.side().letter(),
        format_board(position.board())
    )
}

/// The letters of a board from a8 to h1, blanks for empty squares.
pub(crate) fn board_letters(board: &Board) -> impl Iterator<Item = char> + '_ {
    (0..SQUARES).map(|index| board.piece_at(square_at(index)).map_or(' ', Piece::letter))
}

/// The square at an index of the text, 0 (a8) to 63 (h1).
fn square_at(index: usize) -> Square {
    Square::wrapping(index as u8).flip()
}

/// The index of a square in the text.
fn text_index(square: Square) -> usize {
    square.flip().index()
}

/// Reads a board from a part of a text; also says where its first square stands.
fn read_board(text: Span<'_>) -> Result<(Board, Location), NotationError> {
    let Span {
        text,
        place: bracket,
    } = text.trim();
    let inside = text
        .strip_prefix('[')
        .ok_or_else(|| bracket.expected("`[`", &first_letter(text)))?;
    let first = bracket.right(1);
    let (inside, after) = match inside.split_once(']') {
        Some(parts) => parts,
        None => return Err(first.right(inside.chars().count()).expected("`]`", "")),
    };
    let count = inside.chars().count();
    if !after.is_empty() {
        let place = first.right(count + 1);
        return Err(place.expected("nothing", after));
    }
    let mut pieces = Vec::new();
    for (index, letter) in inside.chars().enumerate().take(SQUARES) {
        if letter != ' ' {
            let piece = Piece::from_letter(letter)
                .ok_or_else(|| first.right(index).fault(NotationReason::Piece(letter)))?;
            pieces.push((square_at(index), piece));
        }
    }
    if count != SQUARES {
        return Err(first
            .right(count.min(SQUARES))
            .fault(NotationReason::SquareCount(count)));
    }
    Ok((pieces.into_iter().collect(), first))
}

fn first_letter(text: &str) -> String {
    text.chars().take(1).collect()
}

/// The 64 letters between brackets, as [`format_board`] writes them.
impl fmt::Display for Board {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&format_board(self))
    }
}

/// The 64 letters between brackets, as [`parse_board`] reads them.
impl FromStr for Board {
    type Err = NotationError;

    fn from_str(text: &str) -> Result<Self, NotationError> {
        parse_board(text)
    }
}

/// The short form, as [`format_position`] writes it.
impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&format_position(self))
    }
}

/// The short form, as [`parse_position`] reads it.
impl FromStr for Position {
    type Err = NotationError;

    fn from_str(text: &str) -> Result<Self, NotationError> {
        parse_position(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::{Kind, Phase};

    const ONE_EACH: &str = "[r                                  Er                          R]";

    #[test]
    fn each_square_has_its_place() {
        let board = parse_board(ONE_EACH).unwrap();
        let pieces: Vec<String> = board.iter().map(|(s, p)| format!("{p}{s}")).collect();
        assert_eq!(pieces, ["Rh1", "Ed4", "re4", "ra8"]);
        assert_eq!(format_board(&board), ONE_EACH);
        assert_eq!(format_board(&Board::EMPTY), format!("[{}]", " ".repeat(64)));
    }

    #[test]
    fn the_empty_board_is_the_first_setup() {
        let text = format!("g [{}]", " ".repeat(64));
        let position: Position = text.parse().unwrap();
        assert_eq!(position, Position::INITIAL);
        assert_eq!(position.phase(), Phase::Setup);
        assert_eq!(position.to_string(), text);
    }

    fn fault(text: &str) -> (usize, NotationReason) {
        let error = parse_position(text).unwrap_err();
        assert_eq!(error.line, 1);
        (error.column, error.reason)
    }

    #[test]
    fn faults_are_named_with_their_columns() {
        let expected = |what: &'static str, found: &str| NotationReason::Expected {
            what: what.into(),
            found: found.to_owned(),
        };
        assert_eq!(
            fault(""),
            (1, expected("the side to move, g or s,", "the end"))
        );
        assert_eq!(fault(" w []"), (2, NotationReason::Side('w')));
        assert_eq!(fault("g"), (2, expected("`[`", "the end")));
        assert_eq!(fault("g  (]"), (4, expected("`[`", "`(`")));
        assert_eq!(fault("g [  "), (4, expected("`]`", "the end")));
        assert_eq!(fault("s []"), (4, NotationReason::SquareCount(0)));
        let long = format!("s [{}]", " ".repeat(65));
        assert_eq!(fault(&long), (68, NotationReason::SquareCount(65)));
        let after = format!("s {ONE_EACH}.");
        assert_eq!(fault(&after), (69, expected("nothing", "`.`")));
        let letter = ONE_EACH.replace('E', "ä");
        assert_eq!(
            fault(&format!("s {letter}")),
            (39, NotationReason::Piece('ä'))
        );
    }

    #[test]
    fn boards_that_are_no_position_are_refused_at_the_first_piece_at_fault() {
        let unsupported = PositionFault::Unsupported {
            square: "c3".parse().unwrap(),
            piece: Piece::new(Side::Gold, Kind::Cat),
        };
        let too_many = PositionFault::TooMany {
            side: Side::Silver,
            kind: Kind::Elephant,
            count: 2,
            limit: 1,
        };
        let refused = |faults: Vec<PositionFault>| {
            NotationReason::Position(crate::rules::Faults::try_from(faults).unwrap())
        };
        let alone = format!("g [{}C{}]", " ".repeat(42), " ".repeat(21));
        assert_eq!(fault(&alone), (46, refused(vec![unsupported])));
        let twice = format!("g [e e{}]", " ".repeat(61));
        assert_eq!(fault(&twice), (6, refused(vec![too_many])));
        let both = format!("g [ee{}C{}]", " ".repeat(40), " ".repeat(21));
        assert_eq!(fault(&both), (46, refused(vec![unsupported, too_many])));
    }
}
