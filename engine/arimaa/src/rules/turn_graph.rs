//! The boards that the turns of a position can end on, each found once.
//!
//! A turn is made of own steps (one step each), pushes and pulls (two steps each). Put together like this nothing is ever
//! pending: what can follow a board depends on the board and the steps left alone. So boards are the nodes of the search, they
//! are reached level by level, a level being the steps used, and one that has been reached before needs no second look: it was
//! reached with at least as many steps left. On the last level a board's key is all that is needed, and it follows from the
//! board before by a few XORs.
//!
//! Every way to a board is legal, step by step, because it ends a legal turn there, unless the board is the start's or a
//! forbidden repetition.

use super::action::Step;
use super::bitboard::Bitboard;
use super::board::Board;
use super::key_set::KeySet;
use super::piece::{Kind, Piece, Side};
use super::square::{Direction, Square};
use super::state::TURN_STEPS;
use super::turn::Steps;
use super::zobrist;
use std::ops::Range;

/// The search, which keeps its memory from one position to the next.
#[derive(Debug, Clone)]
pub(super) struct TurnGraph {
    side: Side,
    /// The keys of the boards reached.
    reached: KeySet,
    /// The start's board, then each new board in the order in which they are reached; longer than what is in use.
    ways: Vec<Way>,
    /// How many of the ways are in use.
    count: usize,
    /// The boards of the ways, all but the last level's.
    nodes: Vec<Node>,
    /// Single steps that no trap answers, with the keys of the boards that they lead to: gathered first and looked up then, so
    /// that the look-ups don't wait for one another.
    gathered: Box<[(u64, StepCode); MAX_STEPS]>,
}

/// A board from which a turn continues.
#[derive(Debug, Clone, Copy)]
struct Node {
    board: Board,
    /// The squares from which own steps need not be made here. With the step that led here, from board P, they commute. So where
    /// such a step leads, that step leads too from the board that the other one reaches from P; and unless it was reached before,
    /// it is reached there, or by passing on in the same manner, which comes to an end because the square of the step that led
    /// to the node grows each time.
    settled: Bitboard,
}

/// How a board is reached.
#[derive(Debug, Clone, Copy)]
pub(super) struct Way {
    /// The board's key.
    pub(super) key: u64,
    /// The index of the board before.
    parent: u32,
    /// The steps from there: an own step, or the two of a push or a pull.
    steps: [StepCode; 2],
    /// How many of the two: none for the start.
    count: u8,
    /// Whether no turn may end here; for callers.
    pub(super) forbidden: bool,
}

impl Way {
    /// The way to the start's board, but for the key.
    const START: Self = Self {
        key: 0,
        parent: 0,
        steps: [StepCode(0); 2],
        count: 0,
        forbidden: false,
    };

    #[inline]
    fn new(key: u64, parent: usize, steps: &[Step]) -> Self {
        let code = |index| steps.get(index).copied().map_or(StepCode(0), StepCode::new);
        Self {
            key,
            parent: parent as u32,
            steps: [code(0), code(1)],
            count: steps.len() as u8,
            forbidden: false,
        }
    }
}

/// A step in eight bits: the square it starts from in the lower six, the direction in the upper two.
#[derive(Debug, Clone, Copy)]
struct StepCode(u8);

impl StepCode {
    #[inline]
    const fn new(step: Step) -> Self {
        Self(step.from.index() as u8 | (step.direction as u8) << 6)
    }

    const fn step(self) -> Step {
        Step::new(
            Square::wrapping(self.0),
            Direction::ALL[self.0 as usize >> 6],
        )
    }
}

/// How many single steps a side can have at most.
const MAX_STEPS: usize = 4 * 64;

/// No node leads to more boards at once: each own piece to at most 4 by stepping, and to at most 4 by pulling (so many squares
/// around it are free, so many others hold what follows); each enemy piece to at most 4 by being pushed.
const MAX_FOLLOWING: usize = 2 * MAX_STEPS;

/// Seldom more new boards lie on a level for each one of the level before; on the last, on average 7 do. To guess high takes memory,
/// to guess low takes time.
const USUAL_GROWTH: usize = 10;

impl TurnGraph {
    pub(super) fn new() -> Self {
        Self {
            side: Side::Gold,
            reached: KeySet::new(),
            ways: Vec::new(),
            count: 0,
            nodes: Vec::new(),
            gathered: Box::new([(0, StepCode(0)); MAX_STEPS]),
        }
    }

    /// Forgets everything but its memory.
    pub(super) fn clear(&mut self) {
        self.reached.clear();
        self.count = 0;
        self.nodes.clear();
    }

    /// Finds every board that a turn of `side` can reach, the start's included, while `may_continue` returns true: it gets the
    /// number of boards after each one whose steps have been followed. Returns whether these are all.
    pub(super) fn explore(
        &mut self,
        start: &Board,
        side: Side,
        mut may_continue: impl FnMut(usize) -> bool,
    ) -> bool {
        self.clear();
        self.side = side;
        self.reserve(1);
        self.arrive::<false>(start, Bitboard::EMPTY, 0, &[]);
        // Where each level starts.
        let mut levels = [0, 1, 0, 0, 0, 0];
        for level in 1..=TURN_STEPS as usize {
            let one_before = levels[level - 1]..levels[level];
            let two_before = levels[level.saturating_sub(2)]..levels[level - 1];
            let is_whole = if level < TURN_STEPS as usize {
                self.reach_level::<false>(one_before, two_before, &mut may_continue)
            } else {
                self.reach_level::<true>(one_before, two_before, &mut may_continue)
            };
            if !is_whole {
                return false;
            }
            levels[level + 1] = self.count;
        }
        true
    }

    /// Makes single steps from the nodes one level before, pushes and pulls from those two levels before.
    fn reach_level<const LAST: bool>(
        &mut self,
        one_before: Range<usize>,
        two_before: Range<usize>,
        mut may_continue: impl FnMut(usize) -> bool,
    ) -> bool {
        self.reserve(one_before.len() * USUAL_GROWTH);
        for node in one_before {
            self.reserve(MAX_FOLLOWING);
            self.own_steps::<LAST>(node);
            if !may_continue(self.count) {
                return false;
            }
        }
        for node in two_before {
            self.reserve(MAX_FOLLOWING);
            self.pushes::<LAST>(node);
            self.pulls::<LAST>(node);
            if !may_continue(self.count) {
                return false;
            }
        }
        true
    }

    /// Makes room for so many ways more.
    #[inline]
    fn reserve(&mut self, more: usize) {
        let needed = self.count + more;
        self.reached.reserve(needed);
        if needed > self.ways.len() {
            self.ways.resize(needed.next_power_of_two(), Way::START);
        }
    }

    fn own_steps<const LAST: bool>(&mut self, node: usize) {
        let Node { board, settled } = self.nodes[node];
        let side = self.side;
        let own = board.side(side);
        let movers = own & !board.frozen(side) & !settled;
        let rabbits = board.pieces(side, Kind::Rabbit);
        let backward = Direction::South.seen_by(side);
        let empty = board.empty();
        // A trap takes something when the only piece beside it leaves a friend on it, or steps onto it.
        let held_once = traps_held_once(own);
        let holders = (held_once & own).neighbours();
        let mut gathered = 0;
        for direction in Direction::ALL {
            let back = direction.opposite();
            let mut movers = movers & empty.shift(back);
            if direction == backward {
                movers &= !rabbits;
            }
            let risky = holders | (held_once & empty).shift(back);
            for from in movers & risky {
                let step = Step::new(from, direction);
                let mut after = board;
                after.step(from, from.beside(direction));
                self.arrive::<LAST>(&after, commuting_before(step), node, &[step]);
            }
            for from in movers & !risky {
                let (to, piece) = (
                    from.beside(direction),
                    Piece::new(side, board.kind_at(from)),
                );
                let key = board.key() ^ zobrist::piece(piece, from) ^ zobrist::piece(piece, to);
                let code = StepCode::new(Step::new(from, direction));
                self.gathered[gathered % MAX_STEPS] = (key, code);
                gathered += 1;
            }
        }
        self.arrive_gathered::<LAST>(gathered, node);
    }

    /// Notes the boards that so many gathered steps lead to from a node, all but those that have been reached before.
    #[inline]
    fn arrive_gathered<const LAST: bool>(&mut self, gathered: usize, node: usize) {
        let mut count = self.count;
        for index in 0..gathered {
            let (key, code) = self.gathered[index % MAX_STEPS];
            let is_new = self.reached.insert(key);
            // Written either way, and overwritten when it is not new, which can't be predicted.
            self.ways[count] = Way {
                key,
                parent: node as u32,
                steps: [code, code],
                count: 1,
                forbidden: false,
            };
            count += usize::from(is_new);
            if !LAST && is_new {
                let step = code.step();
                let mut board = self.nodes[node].board;
                board.step(step.from, step.from.beside(step.direction));
                let settled = commuting_before(step);
                self.nodes.push(Node { board, settled });
            }
        }
        self.count = count;
    }

    fn pushes<const LAST: bool>(&mut self, node: usize) {
        let board = self.nodes[node].board;
        let (side, enemy) = (self.side, self.side.opponent());
        let able = board.side(side) & !board.frozen(side);
        let empty = board.empty();
        for from in board.side(enemy) & board.beside_stronger(able) {
            let kind = board.kind_at(from);
            let strong = board.stronger(side, kind) & Bitboard::around(from);
            for direction in directions_into(from, empty) {
                let push = Step::new(from, direction);
                let mut between = board;
                between.step(from, from.beside(direction));
                // A frozen piece stays so: what is pushed is too weak to freeze a pusher, and what a trap takes then is that
                // piece or stands beside `from`, so that no pusher, which stands there too, is next to it.
                for direction in directions_into(from, strong & able) {
                    let pusher = from.beside(direction);
                    let mut after = between;
                    after.step(pusher, from);
                    let steps = [push, Step::new(pusher, direction.opposite())];
                    self.arrive::<LAST>(&after, Bitboard::EMPTY, node, &steps);
                }
            }
        }
    }

    fn pulls<const LAST: bool>(&mut self, node: usize) {
        let board = self.nodes[node].board;
        let (side, enemy) = (self.side, self.side.opponent());
        let able = board.side(side) & !board.frozen(side);
        let empty = board.empty();
        for from in able & board.side(enemy).neighbours() & !board.pieces(side, Kind::Rabbit) {
            let pulled = board.weaker(enemy, board.kind_at(from)) & Bitboard::around(from);
            if pulled.is_empty() {
                continue;
            }
            for direction in directions_into(from, empty) {
                let step = Step::new(from, direction);
                let mut between = board;
                between.step(from, from.beside(direction));
                for direction in directions_into(from, pulled) {
                    let follower = from.beside(direction);
                    let mut after = between;
                    after.step(follower, from);
                    let steps = [step, Step::new(follower, direction.opposite())];
                    self.arrive::<LAST>(&after, Bitboard::EMPTY, node, &steps);
                }
            }
        }
    }

    /// Notes a board, unless it has been reached before.
    #[inline]
    fn arrive<const LAST: bool>(
        &mut self,
        board: &Board,
        settled: Bitboard,
        parent: usize,
        steps: &[Step],
    ) {
        if self.reached.insert(board.key()) {
            self.ways[self.count] = Way::new(board.key(), parent, steps);
            self.count += 1;
            if !LAST {
                self.nodes.push(Node {
                    board: *board,
                    settled,
                });
            }
        }
    }

    /// The boards reached, the start's first.
    pub(super) fn ways(&self) -> &[Way] {
        &self.ways[..self.count]
    }

    pub(super) fn ways_mut(&mut self) -> &mut [Way] {
        &mut self.ways[..self.count]
    }

    /// The board at the end of a way.
    pub(super) fn board(&self, way: &Way) -> Board {
        let mut board = self.nodes[way.parent as usize].board;
        for code in &way.steps[..way.count.into()] {
            let step = code.step();
            if let Some(to) = step.to() {
                board.step(step.from, to);
            }
        }
        board
    }

    /// The steps of a way from the start on.
    pub(super) fn steps(&self, way: &Way) -> Steps {
        let mut steps = Steps::new();
        let mut way = way;
        while way.count > 0 {
            steps.extend(
                way.steps[..way.count.into()]
                    .iter()
                    .rev()
                    .map(|code| code.step()),
            );
            way = &self.ways[way.parent as usize];
        }
        steps.reverse();
        steps
    }
}

/// The traps with exactly one of a side's pieces beside them.
#[inline]
fn traps_held_once(own: Bitboard) -> Bitboard {
    let [north, east, south, west] = Direction::ALL.map(|direction| own.shift(direction));
    let twice = (north & south) | (east & west) | ((north | south) & (east | west));
    Bitboard::TRAPS & (north | south | east | west) & !twice
}

/// The directions in which the square beside `from` is one of a set.
#[inline]
fn directions_into(from: Square, squares: Bitboard) -> impl Iterator<Item = Direction> {
    Direction::ALL.into_iter().filter(move |&direction| {
        from.neighbour(direction)
            .is_some_and(|to| squares.contains(to))
    })
}

/// After an own step: the squares before its own, in the order of their indices, from which every own step commutes with it.
/// Such a step can be made here exactly if it can be made before the own step, and both orders lead to the same board.
#[inline]
fn commuting_before(step: Step) -> Bitboard {
    BEFORE[step.direction.index()][step.from.index() & 63]
}

static BEFORE: [[Bitboard; 64]; 4] = {
    let mut table = [[Bitboard::EMPTY; 64]; 4];
    let mut index = 0;
    while index < 4 * 64 {
        let step = Step::new(
            Square::wrapping((index % 64) as u8),
            Direction::ALL[index / 64],
        );
        let mut other = 0;
        while other < step.from.index() {
            let square = Square::wrapping(other as u8);
            if commutes(step, square) {
                table[index / 64][index % 64].0 |= Bitboard::of(square).0;
            }
            other += 1;
        }
        index += 1;
    }
    table
};

/// Whether an own step commutes with all own steps from a square: neither changes what the other depends on.
const fn commutes(step: Step, other: Square) -> bool {
    let Some(to) = step.to() else { return false };
    let beside = Bitboard::around(step.from).0;
    let changes = Bitboard::of(step.from).0 | Bitboard::of(to).0 | beside & Bitboard::TRAPS.0;
    let other_changes = Bitboard::of(other).0 | Bitboard::around(other).0;
    changes & depends_on(other) == 0 && other_changes & depends_on(step.from) == 0
}

/// The squares that decide whether the piece on a square can step, and what the traps take then: its own and those next to it
/// (where it goes, what freezes it, what unfreezes it, the trap that it may leave or enter), and those next to that trap.
const fn depends_on(from: Square) -> u64 {
    let beside = Bitboard::around(from);
    let trap = Bitboard(beside.0 & Bitboard::TRAPS.0);
    Bitboard::of(from).0 | beside.0 | trap.neighbours().0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::{History, Position, StepState};
    use rand::rngs::ChaCha8Rng;
    use rand::{RngExt, SeedableRng};

    #[test]
    fn far_steps_commute_and_near_ones_do_not() {
        let before =
            |from: &str, direction| commuting_before(Step::new(from.parse().unwrap(), direction));
        let holds = |set: Bitboard, name: &str| set.contains(name.parse().unwrap());
        let set = before("d5", Direction::North);
        assert!(holds(set, "a1") && holds(set, "d2") && holds(set, "h4"));
        // The same piece, a square that it leaves or enters, and one beside them.
        for near in ["d5", "d4", "c5", "d3", "e4"] {
            assert!(!holds(set, near), "{near}");
        }
        // Each pair once: the squares after the step's own are another step's business.
        assert!(!holds(set, "h8") && !holds(set, "e5"));
        // The one may be the last to hold a piece on the trap c3 when the other has gone.
        assert!(!holds(before("d3", Direction::East), "b3"));
        assert!(holds(before("e4", Direction::East), "b3"));
        assert_eq!(before("a8", Direction::West), Bitboard::EMPTY, "no step");
    }

    #[test]
    fn commuting_steps_lead_to_the_same_board_in_both_orders() {
        let mut random = ChaCha8Rng::seed_from_u64(1);
        let history = History::default();
        let (mut pairs, mut captures) = (0, 0);
        for _ in 0..3_000 {
            let start = StepState::new(&random_position(&mut random));
            let own = start.board().side(start.side());
            let steps = start.legal_actions(&history).steps();
            for step in steps.filter(|step| own.contains(step.from)) {
                let after = start.after_step(step);
                let others = commuting_before(step) & own;
                assert_eq!(others, others & after.board().side(start.side()));
                for other in others {
                    for direction in Direction::ALL {
                        let other = Step::new(other, direction);
                        let legal = |state: &StepState| state.check_step(other, &history).is_ok();
                        assert_eq!(legal(&start), legal(&after), "{start:?} {step:?} {other:?}");
                        if !legal(&start) {
                            continue;
                        }
                        let swapped = start.after_step(other);
                        assert_eq!(swapped.check_step(step, &history), Ok(()));
                        let board = *swapped.after_step(step).board();
                        assert_eq!(*after.after_step(other).board(), board);
                        pairs += 1;
                        let count = |board: &Board| board.occupied().count();
                        captures += count(start.board()) - count(&board);
                    }
                }
            }
        }
        assert!(pairs > 50_000 && captures > 1_000, "{pairs} {captures}");
    }

    fn random_position(random: &mut ChaCha8Rng) -> Position {
        let count = random.random_range(2..40);
        let pieces = (0..count).map(|_| {
            let kind = Kind::ALL[random.random_range(0..6)];
            let side = Side::ALL[random.random_range(0..2)];
            let square = Square::wrapping(random.random_range(0..64));
            (square, Piece::new(side, kind))
        });
        let mut board: Board = pieces.collect();
        for side in Side::ALL {
            for trap in board.unsupported(side) {
                board.take(trap);
            }
        }
        Position::in_play(board, Side::ALL[random.random_range(0..2)])
    }
}
