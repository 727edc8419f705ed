//! All distinct turns of a position.

use super::turn_graph::{TurnGraph, Way};
use super::{History, Phase, Position, Side, Turn};

/// Enumerates the distinct turns of one position after another, keeping its memory: about 100 bytes a turn.
///
/// Two turns are the same if they end on the same board. Boards are distinguished by their 64-bit Zobrist keys: that two of the
/// 20,000 different boards that a position's turns typically reach share a key, and one of them is missed, has odds of about
/// 1 to 10^11 a position.
///
/// ```
/// use arimaa::rules::{History, TurnEnumerator};
/// let mut enumerator = TurnEnumerator::new();
/// let position = arimaa::notation::parse_position("s [        R                                              r        ]")?;
/// let turns = enumerator.enumerate(&position, &History::default());
/// assert_eq!(turns.len(), 8);
/// let lengths: Vec<usize> = turns
///     .iter()
///     .map(|(_, turn)| match turn {
///         arimaa::rules::Turn::Steps(steps) => steps.len(),
///         arimaa::rules::Turn::Setup(_) => 0,
///     })
///     .collect();
/// assert_eq!(lengths, [1, 1, 2, 2, 3, 3, 4, 4]);
/// # Ok::<(), arimaa::notation::NotationError>(())
/// ```
#[derive(Debug, Clone)]
pub struct TurnEnumerator {
    graph: TurnGraph,
    /// The side to move after the turn.
    next: Side,
    /// The ways in the graph with which no turn may end, the start's among them.
    forbidden: usize,
}

impl Default for TurnEnumerator {
    fn default() -> Self {
        Self::new()
    }
}

impl TurnEnumerator {
    /// An enumerator that holds no turns yet.
    pub fn new() -> Self {
        Self {
            graph: TurnGraph::new(),
            next: Side::Gold,
            forbidden: 0,
        }
    }

    /// Finds the distinct turns of a position. The history holds the positions that have stood, this one among them; turns that
    /// it forbids are left out. A setup's 64,864,800 turns are not enumerated: for a setup position there are none.
    pub fn enumerate(&mut self, position: &Position, history: &History) -> DistinctTurns<'_> {
        self.enumerate_while(position, history, |_| true).0
    }

    /// [`enumerate`](Self::enumerate), while `may_continue` returns true: it is called after some hundred turns at
    /// most, with the number of turns found so far, the forbidden ones among them. Returns what was found, shorter turns first, and whether that
    /// is all.
    ///
    /// ```
    /// use arimaa::rules::{History, TurnEnumerator};
    /// let mut enumerator = TurnEnumerator::new();
    /// let position = "g [r                                  Er                          R]".parse()?;
    /// let (turns, are_all) = enumerator.enumerate_while(&position, &History::default(), |found| found < 50);
    /// assert!(!are_all && turns.len() >= 50 && turns.len() < 261);
    /// for (end, turn) in turns {
    ///     assert_eq!(position.after_turn(&turn, &History::default())?, end);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn enumerate_while(
        &mut self,
        position: &Position,
        history: &History,
        mut may_continue: impl FnMut(usize) -> bool,
    ) -> (DistinctTurns<'_>, bool) {
        self.next = position.side().opponent();
        self.forbidden = 0;
        let are_all = match position.phase() {
            Phase::Setup => {
                self.graph.clear();
                true
            }
            Phase::Play => {
                // The start is no turn.
                let may_continue = |found| may_continue(found - 1);
                let is_whole = self
                    .graph
                    .explore(position.board(), position.side(), may_continue);
                self.forbid(history);
                is_whole
            }
        };
        (DistinctTurns { all: self }, are_all)
    }

    /// Marks the ways with which no turn may end.
    fn forbid(&mut self, history: &History) {
        let next = self.next;
        let (start, others) = match self.graph.ways_mut() {
            [start, others @ ..] => (start, others),
            [] => return,
        };
        start.forbidden = true;
        self.forbidden = 1;
        if history.forbids_any() {
            for way in others {
                way.forbidden = history.forbids_key(Position::key_of(way.key, next, Phase::Play));
                self.forbidden += usize::from(way.forbidden);
            }
        }
    }
}

/// The distinct turns of a position: for each position that a legal turn can end in, one shortest turn that leads there.
///
/// ```
/// use arimaa::rules::{History, TurnEnumerator};
/// let mut enumerator = TurnEnumerator::new();
/// let position = "g [r                                  Er                          R]".parse()?;
/// let turns = enumerator.enumerate(&position, &History::default());
/// assert_eq!((turns.len(), turns.is_empty()), (261, false));
/// for (end, turn) in turns {
///     assert_eq!(position.after_turn(&turn, &History::default())?, end);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct DistinctTurns<'a> {
    all: &'a TurnEnumerator,
}

impl<'a> DistinctTurns<'a> {
    /// How many there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.all.graph.ways().len() - self.all.forbidden
    }

    /// Whether there is no legal turn.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The turns, each behind the position that it ends in; shorter turns come first. The order is always the same for a position.
    pub fn iter(&self) -> DistinctTurnsIter<'a> {
        DistinctTurnsIter {
            all: self.all,
            ways: self.all.graph.ways().iter(),
            left: self.len(),
        }
    }
}

impl<'a> IntoIterator for DistinctTurns<'a> {
    type Item = (Position, Turn);
    type IntoIter = DistinctTurnsIter<'a>;

    fn into_iter(self) -> DistinctTurnsIter<'a> {
        self.iter()
    }
}

/// Goes through [`DistinctTurns`]; a turn and its end are put together when they are requested.
///
/// ```
/// use arimaa::rules::{History, TurnEnumerator};
/// let mut enumerator = TurnEnumerator::new();
/// let position = "g [r                                  Er                          R]".parse()?;
/// let mut turns = enumerator.enumerate(&position, &History::default()).iter();
/// assert_eq!(turns.len(), 261);
/// let (end, turn) = turns.next().ok_or("no turn")?;
/// assert_eq!(position.after_turn(&turn, &History::default())?, end);
/// assert_eq!(turns.len(), 260);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct DistinctTurnsIter<'a> {
    all: &'a TurnEnumerator,
    ways: std::slice::Iter<'a, Way>,
    left: usize,
}

impl Iterator for DistinctTurnsIter<'_> {
    type Item = (Position, Turn);

    fn next(&mut self) -> Option<(Position, Turn)> {
        let way = self.ways.find(|way| !way.forbidden)?;
        self.left -= 1;
        let board = self.all.graph.board(way);
        Some((
            Position::from_parts(board, self.all.next, Phase::Play),
            Turn::Steps(self.all.graph.steps(way)),
        ))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for DistinctTurnsIter<'_> {}

/// The distinct turns of a position, each behind the position that it ends in; as [`TurnEnumerator`] finds them, which is faster
/// for many positions.
///
/// ```
/// use arimaa::rules::{History, distinct_turns};
/// let position = arimaa::notation::parse_position("g [r                                  Er                          R]")?;
/// assert!(distinct_turns(&position, &History::default()).iter().all(|(end, _)| end.board() != position.board()));
/// # Ok::<(), arimaa::notation::NotationError>(())
/// ```
pub fn distinct_turns(position: &Position, history: &History) -> Vec<(Position, Turn)> {
    let mut enumerator = TurnEnumerator::new();
    enumerator.enumerate(position, history).iter().collect()
}

/// How many [`distinct_turns`] a position has.
///
/// ```
/// use arimaa::rules::{History, count_distinct_turns};
/// let position = arimaa::notation::parse_position("g [r                                  Er                          R]")?;
/// assert_eq!(count_distinct_turns(&position, &History::default()), 261);
/// # Ok::<(), arimaa::notation::NotationError>(())
/// ```
pub fn count_distinct_turns(position: &Position, history: &History) -> u64 {
    TurnEnumerator::new().enumerate(position, history).len() as u64
}
