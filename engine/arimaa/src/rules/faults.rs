//! Several reasons at once.

use std::fmt;

/// The set of all reasons why something is impossible: at least one, none twice, in a fixed order.
///
/// ```
/// use arimaa::rules::{Board, Piece, Position, PositionFault, Side, Square};
/// // Three silver camels, one of them alone on the trap f6.
/// let camel: Piece = "m".parse()?;
/// let squares: [Square; 3] = ["a5".parse()?, "c5".parse()?, "f6".parse()?];
/// let board: Board = squares.map(|square| (square, camel)).into_iter().collect();
/// let faults = Position::new(board, Side::Gold).unwrap_err();
/// assert_eq!(faults.len(), 2);
/// assert!(faults.iter().any(|fault| matches!(fault, PositionFault::TooMany { count: 3, limit: 1, .. })));
/// assert!(faults.contains(&PositionFault::Unsupported { square: squares[2], piece: camel }));
/// assert_eq!(
///     faults.to_string(),
///     "Silver has 3 camels, but never has more than 1; the camel of Silver on the trap f6 has no friend beside it"
/// );
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(try_from = "Vec<F>", into = "Vec<F>"))]
#[cfg_attr(
    feature = "serde",
    serde(bound(
        serialize = "F: Clone + serde::Serialize",
        deserialize = "F: PartialEq + serde::Deserialize<'de>"
    ))
)]
pub struct Faults<F> {
    faults: Vec<F>,
}

impl<F: PartialEq> Faults<F> {
    /// Fails with all reasons that there are; `Ok` where there is none. A reason that is named twice counts once.
    pub fn refuse_any(reasons: impl IntoIterator<Item = F>) -> Result<(), Self> {
        let mut faults = Vec::new();
        for reason in reasons {
            if !faults.contains(&reason) {
                faults.push(reason);
            }
        }
        if faults.is_empty() {
            Ok(())
        } else {
            Err(Self { faults })
        }
    }

    /// Whether a reason is among them.
    pub fn contains(&self, fault: &F) -> bool {
        self.faults.contains(fault)
    }
}

impl<F> Faults<F> {
    /// The first reason.
    pub fn first(&self) -> &F {
        &self.faults[0]
    }

    /// The reasons.
    pub fn iter(&self) -> std::slice::Iter<'_, F> {
        self.faults.iter()
    }

    /// How many reasons there are, at least one.
    #[allow(clippy::len_without_is_empty, reason = "it never is")]
    pub fn len(&self) -> usize {
        self.faults.len()
    }
}

/// The set of one reason.
impl<F> From<F> for Faults<F> {
    fn from(fault: F) -> Self {
        Self {
            faults: vec![fault],
        }
    }
}

/// The set of the reasons in a list, which must name one.
impl<F: PartialEq> TryFrom<Vec<F>> for Faults<F> {
    type Error = NoFault;

    fn try_from(reasons: Vec<F>) -> Result<Self, NoFault> {
        match Self::refuse_any(reasons) {
            Err(faults) => Ok(faults),
            Ok(()) => Err(NoFault),
        }
    }
}

impl<F> From<Faults<F>> for Vec<F> {
    fn from(faults: Faults<F>) -> Self {
        faults.faults
    }
}

impl<'a, F> IntoIterator for &'a Faults<F> {
    type Item = &'a F;
    type IntoIter = std::slice::Iter<'a, F>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// The reasons, with semicolons between them.
impl<F: fmt::Display> fmt::Display for Faults<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, fault) in self.faults.iter().enumerate() {
            if index > 0 {
                f.write_str("; ")?;
            }
            fault.fmt(f)?;
        }
        Ok(())
    }
}

impl<F: fmt::Debug + fmt::Display> std::error::Error for Faults<F> {}

/// An empty list of reasons.
///
/// ```
/// use arimaa::rules::{NoFault, SetupError};
/// assert_eq!(SetupError::try_from(Vec::new()), Err(NoFault));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[error("a refusal names at least one reason")]
pub struct NoFault;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_reason_is_named_twice_and_one_always() {
        assert_eq!(Faults::refuse_any([0; 0]), Ok(()));
        let faults = Faults::refuse_any([3, 1, 3]).unwrap_err();
        assert_eq!(faults.iter().copied().collect::<Vec<_>>(), [3, 1]);
        assert_eq!((faults.len(), *faults.first()), (2, 3));
        assert_eq!(faults.to_string(), "3; 1");
        assert_eq!(Faults::<u8>::try_from(Vec::new()), Err(NoFault));
        assert_eq!(Faults::from(4).to_string(), "4");
    }
}
