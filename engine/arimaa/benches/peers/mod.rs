//! Distinct turns as the other engines on the registry count them, each through the quickest way that its API offers.
//!
//! Both score a dead end inside a turn as a lost game. That makes no difference here: nothing is asked but which ends a turn can
//! reach, and a dead end reaches none.

use arimaa::rules::{Piece, Position, Square};
use rustc_hash::FxHashSet;
use std::str::FromStr;

/// A position that another engine has read.
pub(crate) fn read<T: FromStr>(position: &Position) -> T {
    match picture(position).parse() {
        Ok(state) => state,
        Err(_) => panic!("{position} can't be read"),
    }
}

/// The board picture that both engines read.
fn picture(position: &Position) -> String {
    let mut text = format!("2{}\n +-----------------+\n", position.side().letter());
    for rank in (0..8).rev() {
        text += &format!("{}|", rank + 1);
        for file in 0..8 {
            let piece = position.board().piece_at(Square::at(file, rank));
            text += &format!(" {}", piece.map_or(' ', Piece::letter));
        }
        text += " |\n";
    }
    text + " +-----------------+\n   a b c d e f g h\n"
}

/// `arimaa_engine_step`: states by its own hash, which knows of steps, pushes and pulls. Without its check for repetition it is
/// half as fast again; then the turn that changes nothing must be taken out.
pub(crate) mod arimaa_engine_step {
    use super::FxHashSet;
    use arimaa_engine_step::{Action, GameState};

    pub(crate) fn count(start: &GameState, met: &mut FxHashSet<u64>) -> u64 {
        met.clear();
        let ends = follow(start, met);
        let unchanged = start.take_action(&Action::Pass).transposition_hash();
        ends - u64::from(met.contains(&unchanged))
    }

    fn follow(state: &GameState, met: &mut FxHashSet<u64>) -> u64 {
        let mut ends = 0;
        for action in state.valid_actions_no_rep() {
            let next = state.take_action(&action);
            if !met.insert(next.transposition_hash()) {
                continue;
            }
            if next.is_p1_turn_to_move() == state.is_p1_turn_to_move() {
                ends += follow(&next, met);
            } else {
                ends += 1;
            }
        }
        ends
    }
}

/// `arimaa-engine`: states by its own hash; its actions are whole paths of a piece, whole pushes and whole pulls. Without its
/// states told apart, ends alone, it is four times slower.
pub(crate) mod arimaa_engine {
    use super::FxHashSet;
    use arimaa_engine::GameState;

    pub(crate) fn count(start: &GameState, met: &mut FxHashSet<u64>) -> u64 {
        met.clear();
        follow(start, met)
    }

    fn follow(state: &GameState, met: &mut FxHashSet<u64>) -> u64 {
        let mut ends = 0;
        for action in state.valid_actions_no_exclusions() {
            let next = state.take_action(&action);
            if !met.insert(next.hash().board_state_hash()) {
                continue;
            }
            if next.is_p1_turn_to_move() == state.is_p1_turn_to_move() {
                ends += follow(&next, met);
            } else {
                ends += 1;
            }
        }
        ends
    }
}
