//! A set of Zobrist keys, made to take tens of thousands of them in and to be emptied again.

/// Open addressing with linear probing; at most a quarter of the slots are in use, so that the first one tried mostly settles it.
/// Emptied, it keeps its memory.
#[derive(Debug, Clone)]
pub(super) struct KeySet {
    /// A power of two of slots. Keys are random enough for their lowest bits to be the slot to start from.
    slots: Vec<u64>,
    /// The slots before the last growth.
    outgrown: Vec<u64>,
}

/// What an empty slot holds: a number that is a key no more likely than any other.
const EMPTY: u64 = 0xd1b5_4a32_d192_ed03;

/// The slots of an empty set: little to wipe for a position with few turns.
const MIN_SLOTS: usize = 1 << 11;

impl KeySet {
    pub(super) fn new() -> Self {
        Self {
            slots: vec![EMPTY; MIN_SLOTS],
            outgrown: Vec::new(),
        }
    }

    pub(super) fn clear(&mut self) {
        self.slots.truncate(MIN_SLOTS);
        self.slots.fill(EMPTY);
    }

    /// Makes room for so many keys in all.
    #[inline]
    pub(super) fn reserve(&mut self, keys: usize) {
        if 4 * keys > self.slots.len() {
            self.grow((4 * keys).next_power_of_two());
        }
    }

    #[cold]
    fn grow(&mut self, slots: usize) {
        std::mem::swap(&mut self.slots, &mut self.outgrown);
        self.slots.clear();
        self.slots.resize(slots, EMPTY);
        for index in 0..self.outgrown.len() {
            let key = self.outgrown[index];
            if key != EMPTY {
                self.insert(key);
            }
        }
    }

    /// Adds a key; says whether it is new. There must be room for it: see [`reserve`](Self::reserve).
    #[inline]
    pub(super) fn insert(&mut self, key: u64) -> bool {
        let mask = self.slots.len() - 1;
        let mut index = key as usize & mask;
        loop {
            let found = self.slots[index];
            // One of the two is zero: one branch, which is hardly ever mispredicted, where two comparisons would make two, and
            // whether a key is new is unknown.
            if (found ^ key).min(found ^ EMPTY) == 0 {
                let is_new = found != key;
                self.slots[index] = key;
                return is_new;
            }
            index = (index + 1) & mask;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_key_is_new_once_until_the_set_is_emptied() {
        let mut set = KeySet::new();
        for round in 0..3_u64 {
            let mut met = BTreeSet::new();
            for index in 0..40_000_u64 {
                // Some thirty keys to each slot that one starts from; every third key comes again.
                let again = index % 27_000;
                let key = round << 60 | again << 20 | ((again * 64) & 0xffff);
                set.reserve(met.len() + 1);
                assert_eq!(set.insert(key), met.insert(key), "{key:x}");
            }
            let used = set.slots.iter().filter(|&&key| key != EMPTY).count();
            assert_eq!(used, met.len());
            assert!(set.slots.len() >= 4 * used);
            set.clear();
            assert_eq!(set.slots.len(), MIN_SLOTS);
        }
    }
}
