//! Steps and turns.

use super::error::{NotationError, NotationReason};
use super::token::{Location, Span};
use crate::rules::{
    Bitboard, Board, Direction, Phase, Piece, Position, Setup, SetupFault, Side, Square, Step,
    StepError, StepState, Steps, TURN_STEPS, Turn, TurnError,
};
use arrayvec::ArrayVec;

/// Reads a turn that is to be played in a position: sixteen placements in any order, or one to four steps.
///
/// Steps may be condensed (`Rh6nn`); a removal (`cc3x`) may stand anywhere after the step that caused it, or be left out.
///
/// Refused is what can't be replayed: steps of pieces that are not there, off the board, or onto another piece; more than
/// four steps; removals that did not happen; placements that are no setup. Whether the turn is legal is left to
/// [`Position::after_turn`] and [`Game::play`](crate::rules::Game::play).
///
/// ```
/// use arimaa::notation::{format_turn, parse_position, parse_turn};
/// let position = parse_position("g [r                                  Er                          R]")?;
/// let turn = parse_turn("re4e Ed4e Rh1nn", &position)?;
/// assert_eq!(format_turn(&turn, &position), "re4e Ed4e Rh1n Rh2n");
/// # Ok::<(), arimaa::notation::NotationError>(())
/// ```
pub fn parse_turn(text: &str, position: &Position) -> Result<Turn, NotationError> {
    read_turn(Span::whole(text), position).map(|written| written.turn)
}

/// Writes a turn as it is played in a position: a setup's sixteen placements, home rank first, or the steps, each followed by
/// the removal that it causes. Where nothing stands to make a step, its letter is `?`.
///
/// ```
/// use arimaa::notation::{format_turn, parse_position};
/// let position = parse_position("g [                                 H       r                     R]")?;
/// assert_eq!(format_turn(&"b3e b4s".parse()?, &position), "rb3e rc3x Hb4s");
/// # Ok::<(), arimaa::notation::NotationError>(())
/// ```
pub fn format_turn(turn: &Turn, position: &Position) -> String {
    let mut text = String::new();
    push_turn(&mut text, turn, position);
    text
}

/// Writes a turn behind a text. Records are written of every game that is played, so that nothing is put together on the way.
pub(super) fn push_turn(text: &mut String, turn: &Turn, position: &Position) {
    let before = text.len();
    match turn {
        Turn::Setup(setup) => {
            for (square, piece) in setup.pieces(position.side()) {
                push_gap(text, before);
                text.push(piece.letter());
                push_square(text, square);
            }
        }
        Turn::Steps(steps) => {
            let mut board = *position.board();
            for &step in steps {
                push_gap(text, before);
                push_step(text, step, &board);
                if let Some(lost) = lose(step, &mut board) {
                    push_loss(text, lost);
                }
            }
        }
    }
}

/// A blank, unless the words that are written begin here.
fn push_gap(text: &mut String, first: usize) {
    if text.len() > first {
        text.push(' ');
    }
}

fn push_square(text: &mut String, square: Square) {
    text.extend(square.letters());
}

fn push_step(text: &mut String, step: Step, board: &Board) {
    text.push(board.piece_at(step.from).map_or('?', Piece::letter));
    push_square(text, step.from);
    text.push(step.direction.letter());
}

fn push_loss(text: &mut String, (square, piece): (Square, Piece)) {
    text.push(' ');
    text.push(piece.letter());
    push_square(text, square);
    text.push('x');
}

/// Makes a step on a board, if it leads to an empty square of it, and gives what it loses.
fn lose(step: Step, board: &mut Board) -> Option<(Square, Piece)> {
    let to = step.to().filter(|&to| board.empty().contains(to))?;
    board.step(step.from, to)
}

/// Writes a step that is made in a state: `Ed2n`. Where nothing stands, the letter is `?`.
///
/// ```
/// use arimaa::notation::{format_step, parse_position};
/// use arimaa::rules::StepState;
/// let position = parse_position("g [                                 H       r                     R]")?;
/// let state = StepState::new(&position);
/// assert_eq!(format_step("b3e".parse()?, &state), "rb3e");
/// assert_eq!(format_step("a1n".parse()?, &state), "?a1n");
/// # Ok::<(), arimaa::notation::NotationError>(())
/// ```
pub fn format_step(step: Step, state: &StepState) -> String {
    let mut text = String::new();
    push_step(&mut text, step, state.board());
    text
}

/// Writes a step that is made in a state, and what is lost by it: `cb3e cc3x`.
///
/// ```
/// use arimaa::notation::{format_step_with_capture, parse_position};
/// use arimaa::rules::StepState;
/// let position = parse_position("g [                                 H       r                     R]")?;
/// assert_eq!(format_step_with_capture("b3e".parse()?, &StepState::new(&position)), "rb3e rc3x");
/// # Ok::<(), arimaa::notation::NotationError>(())
/// ```
pub fn format_step_with_capture(step: Step, state: &StepState) -> String {
    let mut text = format_step(step, state);
    if let Some(lost) = captured(step, state) {
        push_loss(&mut text, lost);
    }
    text
}

/// The piece that is lost in a trap by a step, and the trap.
///
/// ```
/// use arimaa::notation::{captured, parse_position};
/// use arimaa::rules::StepState;
/// let position = parse_position("g [                                 H       r                     R]")?;
/// let state = StepState::new(&position);
/// assert_eq!(captured("b3e".parse()?, &state), Some(("c3".parse()?, "r".parse()?)));
/// assert_eq!(captured("h1n".parse()?, &state), None);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn captured(step: Step, state: &StepState) -> Option<(Square, Piece)> {
    lose(step, &mut state.board().clone())
}

/// A turn with the places of what it was read from.
#[derive(Debug)]
pub(super) struct WrittenTurn {
    pub(super) turn: Turn,
    /// Where its first word stands, or where it should stand.
    pub(super) place: Location,
    /// Where its steps stand.
    steps: ArrayVec<Location, { TURN_STEPS as usize }>,
}

impl WrittenTurn {
    /// The error of a turn that is illegal, at the step at fault where one is.
    pub(super) fn fault(&self, error: TurnError) -> NotationError {
        let step = match &error {
            TurnError::Step { number, .. } => number.checked_sub(1),
            TurnError::PushNotCompleted(_) => self.steps.len().checked_sub(1),
            _ => None,
        };
        step.and_then(|index| self.steps.get(index))
            .unwrap_or(&self.place)
            .fault(error)
    }
}

/// Reads a turn from a part of a text.
pub(super) fn read_turn(text: Span<'_>, position: &Position) -> Result<WrittenTurn, NotationError> {
    let place = text.words().next().map_or(text.place, |word| word.place);
    let words = text.words();
    match position.phase() {
        Phase::Setup => read_setup(words, place, position.side()),
        Phase::Play => read_steps(words, place, position),
    }
}

/// What a word of a turn says of a piece on a square.
enum Said<'a> {
    Placed,
    Removed,
    /// Stepped in directions, of which there is at least one.
    Stepped(&'a str),
}

/// Reads a word of a turn: a piece, a square, and what is said of it.
fn read_word(word: Span<'_>) -> Result<(Piece, Square, Said<'_>), NotationError> {
    let Span { text, place } = word;
    let mut letters = text.chars();
    let letter = letters.next().unwrap_or(' ');
    let piece =
        Piece::from_letter(letter).ok_or_else(|| place.fault(NotationReason::Piece(letter)))?;
    let named: String = letters.by_ref().take(2).collect();
    let square = named
        .parse::<Square>()
        .map_err(|error| place.right(1).fault(error))?;
    let said = match letters.as_str() {
        "" => Said::Placed,
        "x" => Said::Removed,
        directions => Said::Stepped(directions),
    };
    Ok((piece, square, said))
}

fn read_setup<'a>(
    words: impl Iterator<Item = Span<'a>>,
    place: Location,
    side: Side,
) -> Result<WrittenTurn, NotationError> {
    let mut board = Board::EMPTY;
    for word in words {
        let place = word.place;
        let (piece, square, said) = read_word(word)?;
        if !matches!(said, Said::Placed) {
            return Err(place.fault(StepError::InSetup));
        }
        let fault = if piece.side != side {
            Some(SetupFault::OtherSide {
                square,
                piece,
                side,
            })
        } else if !Bitboard::home(side).contains(square) {
            Some(SetupFault::WrongRank { square, side })
        } else if board.piece_at(square).is_some() {
            Some(SetupFault::PlacedTwice(square))
        } else {
            one_too_many(&board, piece)
        };
        if let Some(fault) = fault {
            return Err(place.fault(fault));
        }
        board.put(square, piece);
    }
    let setup = Setup::from_board(&board, side).map_err(|error| place.fault(error))?;
    Ok(WrittenTurn {
        turn: Turn::Setup(setup),
        place,
        steps: ArrayVec::new(),
    })
}

/// Says that a board already holds as many of a piece's kind as a setup has.
fn one_too_many(board: &Board, piece: Piece) -> Option<SetupFault> {
    let (count, limit) = (
        board.pieces(piece.side, piece.kind).count(),
        piece.kind.full_count(),
    );
    (count == limit).then_some(SetupFault::WrongCount {
        kind: piece.kind,
        count: count + 1,
        limit,
    })
}

fn read_steps<'a>(
    words: impl Iterator<Item = Span<'a>>,
    place: Location,
    position: &Position,
) -> Result<WrittenTurn, NotationError> {
    let mut replay = Replay {
        state: StepState::new(position),
        steps: Steps::new(),
        places: ArrayVec::new(),
        lost: ArrayVec::new(),
    };
    for word in words {
        let place = word.place;
        let (piece, square, said) = read_word(word)?;
        match said {
            Said::Placed => return Err(place.fault(TurnError::SetupUnexpected)),
            Said::Removed => replay.say_removed(piece, square, place)?,
            Said::Stepped(directions) => {
                let mut from = square;
                for (index, letter) in directions.chars().enumerate() {
                    // The first direction belongs to the whole word, the further ones stand for themselves.
                    let at = if index == 0 {
                        place
                    } else {
                        place.right(3 + index)
                    };
                    let direction = Direction::from_letter(letter).ok_or_else(|| {
                        place
                            .right(3 + index)
                            .fault(NotationReason::Direction(letter))
                    })?;
                    from = replay.step(piece, Step::new(from, direction), at)?;
                }
            }
        }
    }
    if replay.steps.is_empty() {
        return Err(place.fault(TurnError::Empty));
    }
    Ok(WrittenTurn {
        turn: Turn::Steps(replay.steps),
        place,
        steps: replay.places,
    })
}

/// A turn while it is read.
struct Replay {
    state: StepState,
    steps: Steps,
    places: ArrayVec<Location, { TURN_STEPS as usize }>,
    /// What the steps have cost, and the text has not said yet.
    lost: ArrayVec<(Square, Piece), { TURN_STEPS as usize }>,
}

impl Replay {
    /// Makes a step of a piece; returns where the piece comes to stand.
    fn step(&mut self, piece: Piece, step: Step, place: Location) -> Result<Square, NotationError> {
        let fault = |error: StepError| Err(place.fault(error));
        if self.steps.is_full() {
            return fault(StepError::NoStepLeft);
        }
        let Some(found) = self.state.board().piece_at(step.from) else {
            return fault(StepError::NoPiece(step.from));
        };
        if found != piece {
            return Err(place.fault(NotationReason::OtherPiece {
                square: step.from,
                written: piece,
                found,
            }));
        }
        let Some(to) = step.to() else {
            return fault(StepError::OffBoard(step.from));
        };
        if let Some(blocker) = self.state.board().piece_at(to) {
            return fault(StepError::Occupied {
                square: to,
                piece: blocker,
            });
        }
        self.lost.extend(captured(step, &self.state));
        self.state = self.state.after_step(step);
        self.steps.push(step);
        self.places.push(place);
        Ok(to)
    }

    /// Checks that a piece that is said to be lost was.
    fn say_removed(
        &mut self,
        piece: Piece,
        square: Square,
        place: Location,
    ) -> Result<(), NotationError> {
        match self.lost.iter().position(|&lost| lost == (square, piece)) {
            Some(index) => {
                self.lost.remove(index);
                Ok(())
            }
            None => Err(place.fault(NotationReason::NotRemoved { piece, square })),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notation::parse_position;
    use crate::rules::{Faults, Kind};

    const SETUP: &str = "Ra1 Rb1 Rc1 Rd1 De1 Df1 Rg1 Rh1 Ra2 Hb2 Cc2 Ed2 Me2 Cf2 Hg2 Rh2";

    /// Gold camel b4 and horse d4, silver dog b3, elephant c3 and cat d3: the first worked case of the rules.
    fn pull_and_push() -> Position {
        parse_position("g [              Er       R         M H     dec                    ]")
            .unwrap()
    }

    fn fault(text: &str, position: &Position) -> (usize, NotationReason) {
        let error = parse_turn(text, position).unwrap_err();
        assert_eq!(error.line, 1);
        (error.column, error.reason)
    }

    fn square(name: &str) -> Square {
        name.parse().unwrap()
    }

    #[test]
    fn steps_that_cannot_be_made_are_written_all_the_same() {
        let position =
            parse_position("g [                                                R       R       ]")
                .unwrap();
        let turn: Turn = "a1n a2n".parse().unwrap();
        assert_eq!(format_turn(&turn, &position), "Ra1n Ra2n");
    }

    #[test]
    fn removals_may_stand_anywhere_after_their_step_or_be_left_out() {
        let position = pull_and_push();
        let written = "Mb4e db3n cd3e ec3x Hd4s";
        let turn = parse_turn(written, &position).unwrap();
        assert_eq!(format_turn(&turn, &position), written);
        for text in [
            "Mb4e db3n cd3e Hd4s ec3x",
            "Mb4e db3n cd3e Hd4s",
            "  Mb4e\tdb3n cd3e ec3x  Hd4s ",
        ] {
            assert_eq!(parse_turn(text, &position).as_ref(), Ok(&turn), "{text}");
        }
        let refused = |piece, at| NotationReason::NotRemoved {
            piece: Piece::from_letter(piece).unwrap(),
            square: square(at),
        };
        for (text, column, reason) in [
            ("Mb4e db3n ec3x cd3e Hd4s", 11, refused('e', "c3")),
            ("Mb4e db3n cd3e ec3x Hd4s ec3x", 26, refused('e', "c3")),
            ("Mb4e db3n cd3e mc3x Hd4s", 16, refused('m', "c3")),
            ("Mb4e db3n cd3e ec6x Hd4s", 16, refused('e', "c6")),
        ] {
            assert_eq!(fault(text, &position), (column, reason), "{text}");
        }
    }

    #[test]
    fn condensed_steps_are_the_long_ones() {
        let position = pull_and_push();
        let long = parse_turn("Rh6n Rh7n Eg7n", &position);
        assert!(long.is_err(), "h7 is occupied");
        let long = parse_turn("Rh6s Rh5s Rh4w Eg7n", &position).unwrap();
        assert_eq!(parse_turn("Rh6ssw Eg7n", &position), Ok(long.clone()));
        assert_eq!(format_turn(&long, &position), "Rh6s Rh5s Rh4w Eg7n");
        assert_eq!(
            fault("Rh6sse", &position),
            (6, NotationReason::Step(StepError::OffBoard(square("h4"))))
        );
        assert_eq!(
            fault("Mb4ess", &position),
            (
                5,
                NotationReason::Step(StepError::Occupied {
                    square: square("c3"),
                    piece: Piece::new(Side::Silver, Kind::Elephant)
                })
            )
        );
    }

    #[test]
    fn what_cannot_be_replayed_is_refused() {
        let position = pull_and_push();
        for (text, column, reason) in [
            ("", 1, TurnError::Empty.into()),
            ("   ", 1, TurnError::Empty.into()),
            ("Rh6w Rf6w", 6, StepError::NoPiece(square("f6")).into()),
            ("Rh6e", 1, StepError::OffBoard(square("h6")).into()),
            ("Rh6ssssw", 8, StepError::NoStepLeft.into()),
            ("Rh6", 1, TurnError::SetupUnexpected.into()),
            ("Qh6n", 1, NotationReason::Piece('Q')),
            ("R", 2, crate::rules::SquareError(String::new()).into()),
            ("Ri6n", 2, crate::rules::SquareError("i6".to_owned()).into()),
            ("Rh6w Rg6u", 9, NotationReason::Direction('u')),
            ("Rh6wX", 5, NotationReason::Direction('X')),
            (
                "ch6w",
                1,
                NotationReason::OtherPiece {
                    square: square("h6"),
                    written: Piece::new(Side::Silver, Kind::Cat),
                    found: Piece::new(Side::Gold, Kind::Rabbit),
                },
            ),
        ] {
            assert_eq!(fault(text, &position), (column, reason), "{text}");
        }
    }

    #[test]
    fn a_setup_is_read_in_any_order() {
        let turn = parse_turn(SETUP, &Position::INITIAL).unwrap();
        assert_eq!(format_turn(&turn, &Position::INITIAL), SETUP);
        let mut words: Vec<&str> = SETUP.split(' ').collect();
        words.reverse();
        assert_eq!(
            parse_turn(&words.join(" "), &Position::INITIAL).as_ref(),
            Ok(&turn)
        );
        let silver = Position::INITIAL.after_turn_unchecked(&turn);
        let setup = "ra8 rb8 rc8 cd8 ce8 rf8 rg8 rh8 ra7 hb7 dc7 md7 ee7 df7 hg7 rh7";
        let turn = parse_turn(setup, &silver).unwrap();
        assert_eq!(format_turn(&turn, &silver), setup);
    }

    #[test]
    fn what_is_no_setup_is_refused() {
        let wrong_count = |kind, count, limit| SetupFault::WrongCount { kind, count, limit };
        let everything = Kind::ALL.map(|kind| wrong_count(kind, 0, kind.full_count()));
        for (text, column, faults) in [
            (String::new(), 1, everything.to_vec()),
            (
                SETUP.replace("Ed2 ", "").replace(" Rh2", ""),
                1,
                vec![
                    wrong_count(Kind::Rabbit, 7, 8),
                    wrong_count(Kind::Elephant, 0, 1),
                ],
            ),
            (
                SETUP.replace("Me2", "Ee2"),
                49,
                vec![wrong_count(Kind::Elephant, 2, 1)],
            ),
            (
                SETUP.replace("Rb1", "Ra1"),
                5,
                vec![SetupFault::PlacedTwice(square("a1"))],
            ),
            (
                SETUP.replace("Rb1", "Rb3"),
                5,
                vec![SetupFault::WrongRank {
                    square: square("b3"),
                    side: Side::Gold,
                }],
            ),
            (
                SETUP.replace("Rb1", "rb1"),
                5,
                vec![SetupFault::OtherSide {
                    square: square("b1"),
                    piece: Piece::new(Side::Silver, Kind::Rabbit),
                    side: Side::Gold,
                }],
            ),
        ] {
            let reason = NotationReason::Setup(Faults::try_from(faults).unwrap());
            assert_eq!(fault(&text, &Position::INITIAL), (column, reason), "{text}");
        }
        let no_square = crate::rules::SquareError("b9".to_owned()).into();
        for (text, column, reason) in [
            ("Ra1 Rb1n", 5, NotationReason::from(StepError::InSetup)),
            ("Ra1 Rb1x", 5, StepError::InSetup.into()),
            ("Ra1 Rb9", 6, no_square),
        ] {
            assert_eq!(fault(text, &Position::INITIAL), (column, reason), "{text}");
        }
    }
}
