//! The policy's entries: which are legal, and which are each other's mirror.

use super::POLICY_SIZE;
use arimaa::rules::{Action, ActionSet, Bitboard, Side};
use serde::{Deserialize, Serialize};

/// The legal entries of a policy, as the side to move sees them: squares to step north, east, south and west from, squares to
/// place on, and whether the turn may end.
///
/// Serialised it is the five bitboards, bit `8 * rank + file`, and a byte: with fixed-size little-endian integers 41 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LegalMask {
    /// Entry `64 * i + square` is legal where bit `square` of bitboard `i` is set.
    pub squares: [u64; 5],
    /// Whether the last entry, the end of the turn, is legal.
    pub end: bool,
}

impl LegalMask {
    /// The mask of `side`'s legal actions.
    pub fn new(legal: &ActionSet, side: Side) -> Self {
        let seen = legal.seen_by(side);
        let [north, east, south, west] = seen.steps.map(|set| set.0);
        Self {
            squares: [north, east, south, west, seen.placements.0],
            end: seen.end,
        }
    }

    /// How many entries are legal.
    pub fn count(&self) -> usize {
        let squares: u32 = self.squares.iter().map(|set| set.count_ones()).sum();
        squares as usize + usize::from(self.end)
    }

    /// Whether an entry is legal.
    pub fn contains(&self, index: usize) -> bool {
        match self.squares.get(index / 64) {
            Some(set) => set >> (index % 64) & 1 != 0,
            None => index + 1 == POLICY_SIZE && self.end,
        }
    }

    /// The legal entries in ascending order: the order of [`ActionSet::in_index_order`].
    pub fn indices(&self) -> impl Iterator<Item = usize> + use<> {
        let end = self.end.then_some(POLICY_SIZE - 1);
        self.squares
            .into_iter()
            .enumerate()
            .flat_map(|(plane, set)| {
                Bitboard(set)
                    .into_iter()
                    .map(move |square| plane * 64 + square.index())
            })
            .chain(end)
    }

    /// East and west exchanged.
    pub fn mirror(&self) -> Self {
        let [north, east, south, west, place] = self.squares.map(|set| Bitboard(set).mirror().0);
        Self {
            squares: [north, west, south, east, place],
            end: self.end,
        }
    }
}

/// For each entry of a policy, the entry of the mirrored action. Its own inverse.
pub const MIRRORED_INDICES: [u16; POLICY_SIZE] = {
    let mut indices = [0; POLICY_SIZE];
    let mut index = 0;
    while index < POLICY_SIZE {
        if let Some(action) = Action::from_index(index, Side::Gold) {
            indices[index] = action.mirror().index(Side::Gold) as u16;
        }
        index += 1;
    }
    indices
};

/// The entry of the mirrored action; an index from 321 on stays itself.
#[inline]
pub fn mirror_index(index: usize) -> usize {
    MIRRORED_INDICES
        .get(index)
        .map_or(index, |&mirrored| usize::from(mirrored))
}

/// The policy of the mirrored state.
pub fn mirror_policy<T: Copy>(policy: &[T; POLICY_SIZE]) -> [T; POLICY_SIZE] {
    std::array::from_fn(|index| policy[mirror_index(index)])
}

#[cfg(test)]
mod tests {
    use super::super::samples::random_states;
    use super::*;
    use arimaa::rules::{Direction, History, Step};

    #[test]
    fn every_legal_action_has_an_entry_of_its_own() {
        let mut seen = [false; POLICY_SIZE];
        for sample in random_states(2, 3_000) {
            let side = sample.state.side();
            let mask = LegalMask::new(&sample.legal, side);
            let indices: Vec<usize> = mask.indices().collect();
            let actions: Vec<Action> = sample.legal.in_index_order(side).collect();
            assert_eq!(indices.len(), sample.legal.count());
            assert_eq!(mask.count(), indices.len());
            assert!(indices.is_sorted_by(|a, b| a < b), "unique and ascending");
            for (&index, &action) in indices.iter().zip(&actions) {
                assert_eq!(action.index(side), index);
                assert_eq!(Action::from_index(index, side), Some(action));
                assert!(sample.legal.contains(action));
                seen[index] = true;
            }
            assert!((0..400).all(|index| mask.contains(index) == indices.contains(&index)));
        }
        assert!(seen[320], "some turn may end");
        assert!(seen[256..272].iter().all(|&seen| seen), "placements");
        assert!(seen[..256].iter().filter(|&&seen| seen).count() > 200);
    }

    #[test]
    fn entries_are_seen_by_the_mover() {
        let mut legal = ActionSet::default();
        legal.steps[Direction::South.index()] = Bitboard::of("d7".parse().unwrap());
        legal.steps[Direction::East.index()] = Bitboard::of("a8".parse().unwrap());
        // Silver's step south from d7 is a step north from d2 in her eyes (11); east stays east, from a1 (64).
        let mask = LegalMask::new(&legal, Side::Silver);
        assert_eq!(mask.indices().collect::<Vec<_>>(), [11, 64]);
        // Mirrored: north from e2, and west from h1.
        assert_eq!(mask.mirror().indices().collect::<Vec<_>>(), [12, 199]);
    }

    #[test]
    fn masks_mirror_and_exchange_colours_with_the_state() {
        let none = History::default();
        for sample in random_states(3, 1_000) {
            let mask = |state: arimaa::rules::StepState| {
                LegalMask::new(&state.legal_actions(&none), state.side())
            };
            let original = mask(sample.state);
            assert_eq!(mask(sample.state.mirror()), original.mirror());
            assert_eq!(mask(sample.state.swap_colours()), original);
            let mut mirrored: Vec<usize> = original.indices().map(mirror_index).collect();
            mirrored.sort_unstable();
            assert_eq!(mirrored, original.mirror().indices().collect::<Vec<_>>());
        }
    }

    #[test]
    fn the_mirror_of_a_policy_moves_each_entry_to_its_mirror() {
        let policy: [usize; POLICY_SIZE] = std::array::from_fn(|index| index);
        let mirrored = mirror_policy(&policy);
        assert_eq!(mirror_policy(&mirrored), policy);
        let index = |text: &str, direction| {
            Action::Step(Step::new(text.parse().unwrap(), direction)).index(Side::Gold)
        };
        let (east, west) = (index("b3", Direction::East), index("g3", Direction::West));
        assert_eq!(mirrored[east], west);
        assert_eq!(
            mirror_index(index("a1", Direction::North)),
            index("h1", Direction::North)
        );
        assert_eq!(mirror_index(256), 263, "placing on a1 and on h1");
        assert_eq!(mirror_index(320), 320);
        assert_eq!(mirror_index(999), 999);
    }
}
