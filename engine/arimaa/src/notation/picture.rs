//! The picture of a board, as arimaa.com draws it.

use super::error::{NotationError, NotationReason};
use super::position::square_at_fault;
use super::record::TurnLabel;
use super::token::{Location, Span};
use crate::rules::{Bitboard, Board, Piece, Position, Square};
use std::fmt;
use std::str::FromStr;

const FRAME: &str = " +-----------------+";
const FILES: &str = "   a b c d e f g h";

/// The picture of a position, with the number of its turn.
///
/// ```
/// use arimaa::notation::BoardPicture;
/// let position = "g [r                                  Er                          R]".parse()?;
/// let picture = BoardPicture { turn_number: 12, position };
/// let drawn = picture.to_string();
/// assert_eq!(drawn.lines().nth(6), Some("4|       E r       |"));
/// assert_eq!(drawn.parse(), Ok(picture));
/// # Ok::<(), arimaa::notation::NotationError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BoardPicture {
    /// The number of the turn, from 1.
    pub turn_number: u32,
    /// The position at the start of the turn.
    pub position: Position,
}

/// The picture, as [`format_board_picture`] draws it.
impl fmt::Display for BoardPicture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&format_board_picture(&self.position, self.turn_number))
    }
}

/// The picture, as [`parse_board_picture`] reads it.
impl FromStr for BoardPicture {
    type Err = NotationError;

    fn from_str(text: &str) -> Result<Self, NotationError> {
        let (turn_number, position) = parse_board_picture(text)?;
        Ok(Self {
            turn_number,
            position,
        })
    }
}

/// Draws a position with the number of its turn: `12g`, the ranks from 8 to 1 with `x` for an empty trap, and the files. Each
/// line ends with a line feed, and none has blanks at its end.
///
/// ```
/// use arimaa::notation::{format_board_picture, parse_position};
/// let position = parse_position("g [r                                  Er                          R]")?;
/// assert_eq!(format_board_picture(&position, 12), "\
/// 12g
///  +-----------------+
/// 8| r               |
/// 7|                 |
/// 6|     x     x     |
/// 5|                 |
/// 4|       E r       |
/// 3|     x     x     |
/// 2|                 |
/// 1|               R |
///  +-----------------+
///    a b c d e f g h
/// ");
/// # Ok::<(), arimaa::notation::NotationError>(())
/// ```
pub fn format_board_picture(position: &Position, turn_number: u32) -> String {
    let label = TurnLabel {
        number: turn_number,
        side: position.side(),
    };
    let mut text = format!("{label}\n{FRAME}\n");
    for rank in (0..8).rev() {
        text.push_str(&format!("{}|", rank + 1));
        for file in 0..8 {
            let square = Square::at(file, rank);
            text.push(' ');
            text.push(match position.board().piece_at(square) {
                Some(piece) => piece.letter(),
                None if Bitboard::TRAPS.contains(square) => 'x',
                None => ' ',
            });
        }
        text.push_str(" |\n");
    }
    text.push_str(&format!("{FRAME}\n{FILES}\n"));
    text
}

/// Reads the picture of a position: the number of its turn, and the position.
///
/// Every line of the picture must be there. Blank lines before and after it and blanks at the ends of lines don't matter; an
/// empty trap may be `x`, `X` or a blank.
pub fn parse_board_picture(text: &str) -> Result<(u32, Position), NotationError> {
    let mut lines = text
        .lines()
        .enumerate()
        .map(|(index, line)| Span {
            text: line.trim_end(),
            place: Location::of_line(index + 1),
        })
        .skip_while(|line| line.text.is_empty());
    let end = Span {
        text: "",
        place: Location::of_line(text.lines().count().max(1)),
    };
    let mut next = || lines.next().unwrap_or(end);
    let label = TurnLabel::read(next())?;
    whole_line(next(), FRAME, "the upper frame ` +-----------------+`")?;
    let mut pieces = Vec::new();
    let mut lines_of_ranks = [0; 8];
    for rank in (0..8).rev() {
        let line = next();
        lines_of_ranks[rank] = line.place.line;
        read_rank(line, rank as u8, &mut pieces)?;
    }
    whole_line(next(), FRAME, "the lower frame ` +-----------------+`")?;
    whole_line(next(), FILES, "the files `   a b c d e f g h`")?;
    if let Some(line) = lines.find(|line| !line.text.is_empty()) {
        return Err(line.expected("nothing"));
    }
    let board: Board = pieces.into_iter().collect();
    let position = Position::new(board, label.side).map_err(|error| {
        let square = square_at_fault(error.first(), &board);
        let place = Location {
            line: lines_of_ranks[usize::from(square.rank())],
            column: column_of(square.file()),
        };
        place.fault(error)
    })?;
    Ok((label.number, position))
}

fn whole_line(line: Span<'_>, wanted: &str, what: &'static str) -> Result<(), NotationError> {
    if line.text == wanted {
        Ok(())
    } else {
        Err(line.expected(what))
    }
}

/// Reads a line like `6|   r x     x   H |`.
fn read_rank(
    line: Span<'_>,
    rank: u8,
    pieces: &mut Vec<(Square, Piece)>,
) -> Result<(), NotationError> {
    let place = line.place;
    let letters: Vec<char> = line.text.chars().collect();
    let number = char::from(b'1' + rank);
    if letters.len() != 20 || letters[..2] != [number, '|'] || letters[18..] != [' ', '|'] {
        return Err(line.expected(format!("rank {number}, `{number}| … |`,")));
    }
    for file in 0..8 {
        let column = column_of(file);
        let square = Square::at(file, rank);
        let at = place.right(column - 1);
        let (gap, letter) = (letters[column - 2], letters[column - 1]);
        if gap != ' ' {
            let place = place.right(column - 2);
            return Err(place.expected("a blank", gap.encode_utf8(&mut [0; 4])));
        }
        match letter {
            ' ' => {}
            'x' | 'X' if Bitboard::TRAPS.contains(square) => {}
            'x' | 'X' => return Err(at.fault(NotationReason::NoTrap(square))),
            letter => {
                let piece = Piece::from_letter(letter)
                    .ok_or_else(|| at.fault(NotationReason::Piece(letter)))?;
                pieces.push((square, piece));
            }
        }
    }
    Ok(())
}

/// The column of a file's squares, from 1.
fn column_of(file: u8) -> usize {
    4 + 2 * usize::from(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notation::parse_position;
    use crate::rules::{Faults, Kind, PositionFault, Side};

    const PICTURE: &str = "7s
 +-----------------+
8| r   r r   r   r |
7| m   h     e   c |
6|   r x r   x r   |
5| h   d     c   d |
4| E   H         M |
3|   R x   R H R   |
2| D   C     C   D |
1| R   R R   R   R |
 +-----------------+
   a b c d e f g h
";

    #[test]
    fn a_picture_is_read_and_drawn() {
        let short = "s [r rr r rm h  e c r r  r h d  c dE H    M R  RHR D C  C DR RR R R]";
        let position = parse_position(short).unwrap();
        assert_eq!(parse_board_picture(PICTURE), Ok((7, position)));
        assert_eq!(format_board_picture(&position, 7), PICTURE);
    }

    #[test]
    fn traps_and_blank_lines_may_be_written_otherwise() {
        let read = parse_board_picture(PICTURE).unwrap();
        let loose = format!(
            "\r\n \n{}\n\n",
            PICTURE.replace('x', "X").replace('\n', "  \r\n")
        );
        assert_eq!(parse_board_picture(&loose), Ok(read));
        assert_eq!(parse_board_picture(&PICTURE.replace('x', " ")), Ok(read));
    }

    fn fault(text: &str) -> (usize, usize, NotationReason) {
        let error = parse_board_picture(text).unwrap_err();
        (error.line, error.column, error.reason)
    }

    #[test]
    fn faults_are_named_with_line_and_column() {
        let place = |text: &str| {
            let (line, column, _) = fault(text);
            (line, column)
        };
        assert_eq!(place(""), (1, 1));
        assert_eq!(place(&PICTURE.replace("7s", "s7")), (1, 1));
        assert_eq!(
            fault(&PICTURE.replace("7s", "7w")),
            (1, 2, NotationReason::Side('w'))
        );
        assert_eq!(place(&PICTURE.replacen("--", "-", 1)), (2, 1));
        assert_eq!(place(&PICTURE.replace("5|", "4|")), (6, 1));
        assert_eq!(place(&PICTURE.replace("d     c", "d    ac")), (6, 13));
        assert_eq!(place(&PICTURE.replace("a b c", "a c b")), (12, 1));
        assert_eq!(place(&format!("{PICTURE}\nmore")), (14, 1));
        let cut: String = PICTURE
            .lines()
            .take(6)
            .map(|line| format!("{line}\n"))
            .collect();
        assert_eq!(place(&cut), (6, 1));
        assert_eq!(
            fault(&PICTURE.replace("4| E ", "4| q ")),
            (7, 4, NotationReason::Piece('q'))
        );
        assert_eq!(
            fault(&PICTURE.replace("4| E ", "4| x ")),
            (7, 4, NotationReason::NoTrap("a4".parse().unwrap()))
        );
        let unsupported = Faults::from(PositionFault::Unsupported {
            square: "f6".parse().unwrap(),
            piece: Piece::new(Side::Gold, Kind::Elephant),
        });
        assert_eq!(
            fault(
                &PICTURE
                    .replace("r x r   x r", "r x     E  ")
                    .replace("4| E ", "4|   ")
            ),
            (5, 14, NotationReason::Position(unsupported))
        );
        // The second silver elephant in the order of the text, not the first.
        let (line, column, reason) = fault(&PICTURE.replace("5| h ", "5| e "));
        assert_eq!((line, column), (6, 4));
        assert!(matches!(reason, NotationReason::Position(_)));
    }
}
