//! Zobrist keys: one fixed random number a feature; the key of a state is the XOR of its features' numbers.

use super::piece::{Piece, Side};
use super::square::Square;

static PIECES: [[[u64; 64]; 6]; 2] = {
    let mut table = [[[0; 64]; 6]; 2];
    let mut state = 0x7475_736b_6572; // "tusker"
    let mut piece = 0;
    while piece < 12 {
        let mut square = 0;
        while square < 64 {
            state = next(state);
            table[piece / 6][piece % 6][square] = mix(state);
            square += 1;
        }
        piece += 1;
    }
    table
};

const SIDE_TO_MOVE: u64 = mix(next(1));
const SETUP: u64 = mix(next(2));

/// SplitMix64 (Steele, Lea and Flood 2014): the step of its counter.
const fn next(state: u64) -> u64 {
    state.wrapping_add(0x9e37_79b9_7f4a_7c15)
}

/// SplitMix64: the mix of its counter into an output; a bijection.
pub const fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[inline]
pub(super) fn piece(piece: Piece, square: Square) -> u64 {
    PIECES[piece.side.index()][piece.kind.index()][square.index() & 63]
}

#[inline]
pub(super) const fn side(side: Side) -> u64 {
    match side {
        Side::Gold => 0,
        Side::Silver => SIDE_TO_MOVE,
    }
}

#[inline]
pub(super) const fn setup(is_setup: bool) -> u64 {
    if is_setup { SETUP } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_features_share_a_number() {
        let mut all: Vec<u64> = PIECES
            .iter()
            .flatten()
            .flatten()
            .copied()
            .chain([SIDE_TO_MOVE, SETUP, 0])
            .collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 12 * 64 + 3);
    }
}
