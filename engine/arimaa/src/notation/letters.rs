//! Sides, kinds, pieces and directions by their letters.

use super::error::{NotationError, NotationReason};
use super::token::Location;
use crate::rules::{Direction, Kind, Piece, Side};
use std::fmt;
use std::str::FromStr;

/// The only letter of a text, if it has just one.
fn only_letter(text: &str) -> Option<char> {
    let mut letters = text.chars();
    letters.next().filter(|_| letters.next().is_none())
}

/// Reads a side's letter, `g` or `s`, or its name, `Gold` or `gold`, `Silver` or `silver`.
impl FromStr for Side {
    type Err = NotationError;

    fn from_str(text: &str) -> Result<Self, NotationError> {
        match (text, only_letter(text)) {
            ("g" | "Gold" | "gold", _) => Ok(Self::Gold),
            ("s" | "Silver" | "silver", _) => Ok(Self::Silver),
            (_, Some(letter)) => Err(Location::START.fault(NotationReason::Side(letter))),
            _ => Err(Location::START.expected("a side, g or s,", text)),
        }
    }
}

/// Reads a kind's letter in upper case, like `M`, or its name, like `camel`.
impl FromStr for Kind {
    type Err = NotationError;

    fn from_str(text: &str) -> Result<Self, NotationError> {
        let letter = only_letter(text);
        Self::ALL
            .into_iter()
            .find(|kind| Some(kind.letter()) == letter || kind.to_string() == text)
            .ok_or_else(|| Location::START.expected("a kind, like `M` or `camel`,", text))
    }
}

/// Reads a piece's letter, like `M` for Gold's camel and `m` for Silver's.
impl FromStr for Piece {
    type Err = NotationError;

    fn from_str(text: &str) -> Result<Self, NotationError> {
        let letter = only_letter(text)
            .ok_or_else(|| Location::START.expected("a piece's letter, like `M`,", text))?;
        Self::from_letter(letter)
            .ok_or_else(|| Location::START.fault(NotationReason::Piece(letter)))
    }
}

/// The letter of the notation: `n`, `e`, `s` or `w`.
impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.letter())
    }
}

/// Reads a direction's letter.
impl FromStr for Direction {
    type Err = NotationError;

    fn from_str(text: &str) -> Result<Self, NotationError> {
        let letter = only_letter(text)
            .ok_or_else(|| Location::START.expected("a direction, n, e, s or w,", text))?;
        Self::from_letter(letter)
            .ok_or_else(|| Location::START.fault(NotationReason::Direction(letter)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_and_names_are_read_and_nothing_else() {
        for side in Side::ALL {
            assert_eq!(side.letter().to_string().parse(), Ok(side));
            assert_eq!(side.to_string().parse(), Ok(side));
            for kind in Kind::ALL {
                assert_eq!(kind.letter().to_string().parse(), Ok(kind));
                assert_eq!(kind.to_string().parse(), Ok(kind));
                let piece = Piece::new(side, kind);
                assert_eq!(piece.to_string().parse(), Ok(piece));
            }
        }
        for direction in Direction::ALL {
            assert_eq!(direction.to_string().parse(), Ok(direction));
        }
        let reason = |error: NotationError| error.reason;
        assert_eq!(
            "w".parse::<Side>().map_err(reason),
            Err(NotationReason::Side('w'))
        );
        assert_eq!(
            "x".parse::<Piece>().map_err(reason),
            Err(NotationReason::Piece('x'))
        );
        assert_eq!(
            "N".parse::<Direction>().map_err(reason),
            Err(NotationReason::Direction('N'))
        );
        for text in ["", "gs", " g", "GOLD", "m", "camels"] {
            assert!(text.parse::<Side>().is_err(), "{text}");
            assert!(text.parse::<Kind>().is_err(), "{text}");
            assert!(text.parse::<Direction>().is_err(), "{text}");
        }
        assert!("Mm".parse::<Piece>().is_err());
    }
}
