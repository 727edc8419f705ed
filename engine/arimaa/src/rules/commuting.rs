//! Steps whose order doesn't matter.

use super::{Bitboard, Direction, Square, Step};

/// After an own step: the squares before its own, in the order of their indices, from which every own step commutes with it.
/// Such a step can be made here exactly if it can be made before the own step, and both orders lead to the same board.
#[inline]
pub(super) fn commuting_before(step: Step) -> Bitboard {
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
/// (where it goes, who freezes it, who unfreezes it, the trap that it may leave or enter), and those next to that trap.
const fn depends_on(from: Square) -> u64 {
    let beside = Bitboard::around(from);
    let trap = Bitboard(beside.0 & Bitboard::TRAPS.0);
    Bitboard::of(from).0 | beside.0 | trap.neighbours().0
}

#[cfg(test)]
mod tests {
    use super::super::{Board, History, Kind, Piece, Position, Side, StepState};
    use super::*;
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
