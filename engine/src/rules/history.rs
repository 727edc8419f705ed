//! How often each position has stood at the end of a turn.

use super::Position;
use rustc_hash::FxHashMap;

/// Counts positions (board and side to move) at the ends of turns. A turn may not end in a position that has stood twice.
///
/// Positions are told apart by their 64-bit Zobrist keys.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct History {
    counts: FxHashMap<u64, u8>,
    forbidden: usize,
}

impl History {
    /// How often a position has stood before.
    #[inline]
    pub fn count(&self, position: &Position) -> u8 {
        self.count_key(position.key())
    }

    #[inline]
    pub(super) fn count_key(&self, key: u64) -> u8 {
        if self.counts.is_empty() {
            0
        } else {
            self.counts.get(&key).copied().unwrap_or(0)
        }
    }

    /// Whether a turn may not end in a position, because it has stood twice before.
    #[inline]
    pub fn forbids(&self, position: &Position) -> bool {
        self.forbids_key(position.key())
    }

    #[inline]
    pub(super) fn forbids_key(&self, key: u64) -> bool {
        self.forbidden > 0 && self.count_key(key) >= 2
    }

    /// Whether any position is forbidden.
    #[inline]
    pub fn forbids_any(&self) -> bool {
        self.forbidden > 0
    }

    /// Counts one more occurrence of a position.
    pub fn push(&mut self, position: &Position) {
        let count = self.counts.entry(position.key()).or_insert(0);
        *count = count.saturating_add(1);
        if *count == 2 {
            self.forbidden += 1;
        }
    }

    /// Takes one occurrence of a position back; the inverse of [`push`](Self::push).
    pub fn pop(&mut self, position: &Position) {
        let Some(count) = self.counts.get_mut(&position.key()) else {
            return;
        };
        if *count == 2 {
            self.forbidden -= 1;
        }
        *count -= 1;
        if *count == 0 {
            self.counts.remove(&position.key());
        }
    }
}
