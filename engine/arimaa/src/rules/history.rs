//! How often each position has stood at the end of a turn.

use super::position::Position;
use super::zobrist::mix;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// Counts positions (board and side to move) at the ends of turns. A turn may not end in a position that has stood twice.
///
/// Positions are distinguished by their 64-bit Zobrist keys. Serialised, a history is a map from keys to counts.
///
/// ```
/// use arimaa::rules::{History, Position};
/// let position: Position = "s [r                                  Er                          R]".parse()?;
/// let mut history = History::default();
/// history.push(&position);
/// history.push(&position);
/// assert!(history.forbids(&position), "a third time is not allowed");
/// history.pop(&position);
/// assert_eq!((history.count(&position), history.forbids_any()), (1, false));
/// assert_eq!(history.forbidden_key(), 0);
/// # Ok::<(), arimaa::notation::NotationError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(
    feature = "serde",
    serde(try_from = "BTreeMap<u64, u8>", into = "BTreeMap<u64, u8>")
)]
pub struct History {
    counts: FxHashMap<u64, u8>,
    forbidden: usize,
    /// See [`forbidden_key`](Self::forbidden_key).
    forbidden_key: u64,
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

    /// How many positions are forbidden.
    #[inline]
    pub fn forbidden_count(&self) -> usize {
        self.forbidden
    }

    /// A key of the set of forbidden positions: the exclusive or of numbers that follow from their Zobrist keys. (The keys themselves cancel
    /// out in a cycle of turns: they are exclusive ors too.)
    #[inline]
    pub fn forbidden_key(&self) -> u64 {
        self.forbidden_key
    }

    /// Counts one more occurrence of a position.
    pub fn push(&mut self, position: &Position) {
        let count = self.counts.entry(position.key()).or_insert(0);
        *count = count.saturating_add(1);
        if *count == 2 {
            self.forbidden += 1;
            self.forbidden_key ^= mix(position.key());
        }
    }

    /// Takes one occurrence of a position back; the inverse of [`push`](Self::push).
    pub fn pop(&mut self, position: &Position) {
        let Some(count) = self.counts.get_mut(&position.key()) else {
            return;
        };
        if *count == 2 {
            self.forbidden -= 1;
            self.forbidden_key ^= mix(position.key());
        }
        *count -= 1;
        if *count == 0 {
            self.counts.remove(&position.key());
        }
    }
}

impl From<History> for BTreeMap<u64, u8> {
    fn from(history: History) -> Self {
        history.counts.into_iter().collect()
    }
}

impl TryFrom<BTreeMap<u64, u8>> for History {
    type Error = EmptyCount;

    fn try_from(counts: BTreeMap<u64, u8>) -> Result<Self, EmptyCount> {
        if let Some((&key, _)) = counts.iter().find(|&(_, &count)| count == 0) {
            return Err(EmptyCount { key });
        }
        let forbidden = || counts.iter().filter(|&(_, &count)| count >= 2);
        Ok(Self {
            forbidden: forbidden().count(),
            forbidden_key: forbidden().fold(0, |all, (&key, _)| all ^ mix(key)),
            counts: counts.into_iter().collect(),
        })
    }
}

/// A count of a history that counts nothing.
///
/// ```
/// use arimaa::rules::{EmptyCount, History};
/// use std::collections::BTreeMap;
/// let counts = BTreeMap::from([(5, 1), (7, 0)]);
/// assert_eq!(History::try_from(counts), Err(EmptyCount { key: 7 }));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
#[error("position {key} occurred 0 times: a history lists only positions that occurred")]
pub struct EmptyCount {
    /// The position's Zobrist key.
    pub key: u64,
}
