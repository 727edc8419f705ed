//! Steps, actions, setups and turns by themselves, without the board that they are made on: no letters of pieces, no
//! removals.

use super::error::{NotationError, NotationReason};
use super::token::{Location, Span};
use crate::rules::{Action, Direction, Kind, Setup, SetupError, Square, Step, Steps, Turn};
use crate::rules::{StepError, TurnError};
use std::fmt;
use std::str::FromStr;

/// The square and the direction: `d2n`. With the piece's letter, which only a board knows, it is
/// [`format_step`](super::format_step).
impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.from, self.direction)
    }
}

/// Reads a square and a direction: `d2n`. A piece's letter before them is refused, for nothing here could check it; with a
/// board, [`parse_turn`](super::parse_turn) does.
impl FromStr for Step {
    type Err = NotationError;

    fn from_str(text: &str) -> Result<Self, NotationError> {
        read_step(Span::whole(text))
    }
}

fn read_step(word: Span<'_>) -> Result<Step, NotationError> {
    let place = word.place;
    let letters: Vec<char> = word.text.chars().collect();
    let [file, rank, direction] = letters[..] else {
        return Err(word.expected("a step by its square and direction, like `d2n`,"));
    };
    let from = [file, rank]
        .iter()
        .collect::<String>()
        .parse::<Square>()
        .map_err(|error| place.fault(error))?;
    let direction = Direction::from_letter(direction)
        .ok_or_else(|| place.right(2).fault(NotationReason::Direction(direction)))?;
    Ok(Step { from, direction })
}

/// `d2n` for a step, `d2` for a placement, `end` for the end of the turn.
impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Step(step) => step.fmt(f),
            Self::Place(square) => fmt::Display::fmt(square, f),
            Self::End => f.write_str("end"),
        }
    }
}

/// Reads `d2n` for a step, `d2` for a placement, `end` for the end of the turn.
impl FromStr for Action {
    type Err = NotationError;

    fn from_str(text: &str) -> Result<Self, NotationError> {
        match text.chars().count() {
            _ if text == "end" => Ok(Self::End),
            2 => match text.parse() {
                Ok(square) => Ok(Self::Place(square)),
                Err(error) => Err(Location::START.fault(NotationReason::Square(error))),
            },
            3 => text.parse().map(Self::Step),
            _ => Err(Location::START.expected("a step, a square, or `end`,", text)),
        }
    }
}

/// The letters of the rank in front (2 or 7) from a to h, a slash, and those of the home rank (1 or 8): `RHCEMCHR/RRRDDRRR`.
/// Upper case for both sides.
impl fmt::Display for Setup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let letters = |kinds: &[Kind]| kinds.iter().map(|kind| kind.letter()).collect::<String>();
        let (home, front) = self.kinds().split_at(8);
        write!(f, "{}/{}", letters(front), letters(home))
    }
}

/// Reads the rank in front, a slash, and the home rank: `RHCEMCHR/RRRDDRRR`. Blanks around the slash don't matter.
impl FromStr for Setup {
    type Err = NotationError;

    fn from_str(text: &str) -> Result<Self, NotationError> {
        let (front, home) = text
            .split_once('/')
            .ok_or_else(|| Location::START.expected("a setup, like `RHCEMCHR/RRRDDRRR`,", text))?;
        let mut kinds = [Kind::Rabbit; 16];
        let (home_kinds, front_kinds) = kinds.split_at_mut(8);
        read_rank(Span::whole(front), front_kinds)?;
        let place = Location::START.right(front.chars().count() + 1);
        read_rank(Span { text: home, place }, home_kinds)?;
        Self::new(kinds).map_err(|error: SetupError| Location::START.fault(error))
    }
}

/// Reads eight upper-case letters.
fn read_rank(rank: Span<'_>, kinds: &mut [Kind]) -> Result<(), NotationError> {
    let rank = rank.trim();
    let Span { text, place } = rank;
    if text.chars().count() != kinds.len() {
        return Err(rank.expected("a rank of eight letters"));
    }
    for (index, (letter, slot)) in text.chars().zip(kinds).enumerate() {
        *slot = Kind::ALL
            .into_iter()
            .find(|kind| kind.letter() == letter)
            .ok_or_else(|| place.right(index).fault(NotationReason::Piece(letter)))?;
    }
    Ok(())
}

/// The steps with blanks between them, `d2n d3n`, or the setup. With letters and removals it is
/// [`format_turn`](super::format_turn).
impl fmt::Display for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let steps = match self {
            Self::Setup(setup) => return setup.fmt(f),
            Self::Steps(steps) => steps,
        };
        for (index, step) in steps.iter().enumerate() {
            if index > 0 {
                f.write_str(" ")?;
            }
            step.fmt(f)?;
        }
        Ok(())
    }
}

/// Reads one to four steps, `d2n d3n`, or a setup, `RHCEMCHR/RRRDDRRR`.
impl FromStr for Turn {
    type Err = NotationError;

    fn from_str(text: &str) -> Result<Self, NotationError> {
        if text.contains('/') {
            return text.parse().map(Self::Setup);
        }
        let mut steps = Steps::new();
        for word in Span::whole(text).words() {
            let step = read_step(word)?;
            steps
                .try_push(step)
                .map_err(|_| word.place.fault(StepError::NoStepLeft))?;
        }
        if steps.is_empty() {
            return Err(Location::START.fault(TurnError::Empty));
        }
        Ok(Self::Steps(steps))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::{Side, SquareError};

    #[test]
    fn every_action_reads_back() {
        for index in 0..Action::COUNT {
            let action = Action::from_index(index, Side::Gold).unwrap();
            assert_eq!(action.to_string().parse(), Ok(action));
            if let Action::Step(step) = action {
                assert_eq!(step.to_string().parse(), Ok(step));
            }
        }
    }

    #[test]
    fn turns_and_setups_read_back() {
        for text in ["d2n", "d2n d3n e4s a8w", "RHCEMCHR/RRRDDRRR"] {
            assert_eq!(text.parse::<Turn>().unwrap().to_string(), text);
        }
        let setup: Setup = "RHCEMCHR / RRRDDRRR".parse().unwrap();
        assert_eq!(setup.to_string(), "RHCEMCHR/RRRDDRRR");
        assert_eq!(
            setup.kinds()[..4],
            [Kind::Rabbit, Kind::Rabbit, Kind::Rabbit, Kind::Dog]
        );
    }

    #[test]
    fn faults_are_named_with_their_columns() {
        fn fault<T: FromStr<Err = NotationError> + fmt::Debug>(
            text: &str,
        ) -> (usize, NotationReason) {
            let error = text.parse::<T>().unwrap_err();
            (error.column, error.reason)
        }
        let no_square = |text: &str| NotationReason::Square(SquareError(text.to_owned()));
        assert_eq!(fault::<Step>("i2n"), (1, no_square("i2")));
        assert_eq!(fault::<Step>("d2x"), (3, NotationReason::Direction('x')));
        assert!(matches!(
            fault::<Step>("Ed2n"),
            (1, NotationReason::Expected { .. })
        ));
        assert_eq!(fault::<Action>("d9"), (1, no_square("d9")));
        assert!(matches!(
            fault::<Action>("ends"),
            (1, NotationReason::Expected { .. })
        ));
        assert_eq!(fault::<Turn>(" "), (1, TurnError::Empty.into()));
        assert_eq!(
            fault::<Turn>("d2n  d3q"),
            (8, NotationReason::Direction('q'))
        );
        assert_eq!(
            fault::<Turn>("d2n d3n d4n d5n d6n"),
            (17, StepError::NoStepLeft.into())
        );
        assert_eq!(
            fault::<Setup>("RHCeMCHR/RRRDDRRR"),
            (4, NotationReason::Piece('e'))
        );
        assert_eq!(
            fault::<Setup>("RHCEMCHR/ RRRDDRRx"),
            (18, NotationReason::Piece('x'))
        );
        assert!(matches!(
            fault::<Setup>("RHCEMCHR/RRRDDRR"),
            (10, NotationReason::Expected { .. })
        ));
        assert!(matches!(
            fault::<Setup>("RHCEMCHRRRRDDRRR"),
            (1, NotationReason::Expected { .. })
        ));
        let (column, reason) = fault::<Turn>("RHCEECHR/RRRDDRRR");
        assert!(matches!(&reason, NotationReason::Setup(faults) if faults.len() == 2));
        assert_eq!(column, 1);
    }
}
