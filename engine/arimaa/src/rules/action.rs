//! What a side may do next: one step, one placement, or the end of the turn.

use super::{Bitboard, Direction, Side, Square};

/// A step: the piece on `from`, of either side, goes one square in `direction`.
///
/// ```
/// use arimaa::rules::{Direction, Step};
/// let step: Step = "d2n".parse()?;
/// assert_eq!(step, Step::new("d2".parse()?, Direction::North));
/// assert_eq!(step.to().map(|square| square.to_string()), Some("d3".to_owned()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Step {
    /// Where the piece stands.
    pub from: Square,
    /// Where it goes.
    pub direction: Direction,
}

impl Step {
    /// A step of the piece on `from`.
    #[inline]
    pub const fn new(from: Square, direction: Direction) -> Self {
        Self { from, direction }
    }

    /// The square that the piece goes to, unless that is off the board.
    #[inline]
    pub const fn to(self) -> Option<Square> {
        self.from.neighbour(self.direction)
    }

    /// East and west exchanged.
    pub const fn mirror(self) -> Self {
        Self {
            from: self.from.mirror(),
            direction: self.direction.mirror(),
        }
    }
}

impl std::fmt::Debug for Step {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{}", self.from, self.direction.letter())
    }
}

/// What a side does next inside a turn.
///
/// ```
/// use arimaa::rules::{Action, Side};
/// let action: Action = "a7s".parse()?;
/// // Silver plays north in her own eyes: from a2, which is square 8.
/// assert_eq!(action.index(Side::Silver), 8);
/// assert_eq!(Action::from_index(8, Side::Silver), Some(action));
/// # Ok::<(), arimaa::notation::NotationError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Action {
    /// One step of an own or an enemy piece.
    Step(Step),
    /// In a setup: the next piece of the fixed order goes on this square.
    Place(Square),
    /// The turn ends here, before its last step.
    End,
}

impl Action {
    /// How many actions there are, legal or not.
    pub const COUNT: usize = 5 * 64 + 1;

    const END: usize = Self::COUNT - 1;

    /// The action's index as `side` sees the board, playing north: steps north, east, south, west from each square
    /// (0 to 255), placements (256 to 319), the end of the turn (320). This is the network's policy index.
    #[inline]
    pub const fn index(self, side: Side) -> usize {
        match self {
            Self::Step(step) => {
                step.direction.seen_by(side).index() * 64 + step.from.seen_by(side).index()
            }
            Self::Place(square) => 256 + square.seen_by(side).index(),
            Self::End => Self::END,
        }
    }

    /// The action of an index as `side` sees the board; none from 321 on.
    #[inline]
    pub const fn from_index(index: usize, side: Side) -> Option<Self> {
        let square = Square::wrapping((index % 64) as u8).seen_by(side);
        match index {
            0..256 => {
                let direction = Direction::ALL[index / 64].seen_by(side);
                Some(Self::Step(Step {
                    from: square,
                    direction,
                }))
            }
            256..320 => Some(Self::Place(square)),
            Self::END => Some(Self::End),
            _ => None,
        }
    }

    /// East and west exchanged.
    pub const fn mirror(self) -> Self {
        match self {
            Self::Step(step) => Self::Step(step.mirror()),
            Self::Place(square) => Self::Place(square.mirror()),
            Self::End => Self::End,
        }
    }
}

/// A set of actions: four bitboards of squares to step from, one of squares to place on, and whether the turn may end.
///
/// ```
/// use arimaa::rules::{Action, History, Position, StepState};
/// let position: Position = "g [r                                  Er                          R]".parse()?;
/// let state = StepState::new(&position);
/// let legal = state.legal_actions(&History::default());
/// assert!(legal.contains("e4n".parse()?), "the first half of a push");
/// assert!(!legal.contains(Action::End), "a turn has at least one step");
/// assert_eq!(legal.steps().count(), legal.count());
/// # Ok::<(), arimaa::notation::NotationError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct ActionSet {
    /// The squares from which a piece steps north, east, south, west.
    pub steps: [Bitboard; 4],
    /// The squares for the next piece of a setup.
    pub placements: Bitboard,
    /// Whether the turn may end.
    pub end: bool,
}

impl ActionSet {
    /// How many actions the set holds.
    #[inline]
    pub fn count(&self) -> usize {
        let squares: u32 = self
            .steps
            .iter()
            .chain([&self.placements])
            .map(|set| set.count())
            .sum();
        squares as usize + usize::from(self.end)
    }

    /// Whether the set holds no action.
    #[inline]
    pub fn is_empty(&self) -> bool {
        !self.end && self.placements.is_empty() && self.steps.iter().all(|set| set.is_empty())
    }

    /// Whether the set holds an action.
    #[inline]
    pub fn contains(&self, action: Action) -> bool {
        match action {
            Action::Step(step) => self.steps[step.direction.index()].contains(step.from),
            Action::Place(square) => self.placements.contains(square),
            Action::End => self.end,
        }
    }

    /// Takes a step out of the set.
    #[inline]
    pub fn remove(&mut self, step: Step) {
        self.steps[step.direction.index()] &= !Bitboard::of(step.from);
    }

    /// The steps of the set: all north, then all east, south and west ones, each from a1 to h8.
    #[inline]
    pub fn steps(&self) -> impl Iterator<Item = Step> + use<> {
        let steps = self.steps;
        Direction::ALL.into_iter().flat_map(move |direction| {
            steps[direction.index()]
                .into_iter()
                .map(move |from| Step { from, direction })
        })
    }

    /// The actions of the set in the order of their indices as `side` sees the board: the order of legal masks and of
    /// recorded policy targets.
    pub fn in_index_order(&self, side: Side) -> impl Iterator<Item = Action> + use<> {
        let seen = self.seen_by(side);
        let squares = move |set: Bitboard| set.into_iter().map(move |square| square.seen_by(side));
        Direction::ALL
            .into_iter()
            .flat_map(move |direction| {
                squares(seen.steps[direction.index()]).map(move |from| {
                    Action::Step(Step {
                        from,
                        direction: direction.seen_by(side),
                    })
                })
            })
            .chain(squares(seen.placements).map(Action::Place))
            .chain(seen.end.then_some(Action::End))
    }

    /// This set as `side` sees it, playing north: itself for Gold; for Silver ranks and directions are flipped.
    /// Its own inverse.
    #[inline]
    pub fn seen_by(&self, side: Side) -> Self {
        let mut steps = [Bitboard::EMPTY; 4];
        for direction in Direction::ALL {
            steps[direction.seen_by(side).index()] = self.steps[direction.index()].seen_by(side);
        }
        Self {
            steps,
            placements: self.placements.seen_by(side),
            end: self.end,
        }
    }

    /// East and west exchanged.
    pub fn mirror(&self) -> Self {
        let mut steps = [Bitboard::EMPTY; 4];
        for direction in Direction::ALL {
            steps[direction.mirror().index()] = self.steps[direction.index()].mirror();
        }
        Self {
            steps,
            placements: self.placements.mirror(),
            end: self.end,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices_are_a_bijection_for_both_sides() {
        for side in Side::ALL {
            for index in 0..Action::COUNT {
                let action = Action::from_index(index, side).unwrap();
                assert_eq!(action.index(side), index);
            }
            assert_eq!(Action::from_index(Action::COUNT, side), None);
        }
        let north_from_a7 = Action::Step(Step::new(Square::at(0, 6), Direction::South));
        assert_eq!(
            north_from_a7.index(Side::Silver),
            8,
            "Silver's step from a7 to a6 is north from a2 in her eyes"
        );
    }
}
