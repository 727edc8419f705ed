//! The links of all nodes: blocks of 1, 2, 4, 8, … of them, so that a node takes the room of the edges that were followed and not
//! of all its edges. A block that a node outgrows is used again.

use super::edge::{Link, NO_CHILD};

/// Blocks hold up to 2^9 links; a step state has fewer actions.
const CLASSES: usize = 10;

/// A node's links.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Block {
    first: u32,
    /// Links in use.
    pub(super) count: u16,
    /// The block has room for `1 << class` links, if it has any.
    class: u8,
}

impl Block {
    fn capacity(self) -> usize {
        if self.count == 0 { 0 } else { 1 << self.class }
    }
}

#[derive(Debug)]
pub(super) struct Links {
    pub(super) links: Vec<Link>,
    /// The first free block of each class; each names the next one in its first link.
    free: [u32; CLASSES],
}

impl Default for Links {
    fn default() -> Self {
        Self {
            links: Vec::new(),
            free: [NO_CHILD; CLASSES],
        }
    }
}

impl Links {
    pub(super) fn clear(&mut self) {
        self.links.clear();
        self.free = [NO_CHILD; CLASSES];
    }

    pub(super) fn get(&self, block: Block) -> &[Link] {
        let first = block.first as usize;
        &self.links[first..first + usize::from(block.count)]
    }

    pub(super) fn get_mut(&mut self, block: Block) -> &mut [Link] {
        let first = block.first as usize;
        &mut self.links[first..first + usize::from(block.count)]
    }

    /// The block with its first `count` links in use, moved where it has no room for them.
    pub(super) fn grown(&mut self, block: Block, count: usize) -> Block {
        let used = usize::from(block.count);
        if count <= used {
            return block;
        }
        let mut grown = Block {
            count: count as u16,
            ..block
        };
        if count > block.capacity() {
            grown.class = count.next_power_of_two().trailing_zeros() as u8;
            grown.first = self.take_block(grown.class);
            let old = block.first as usize;
            self.links
                .copy_within(old..old + used, grown.first as usize);
            if used > 0 {
                self.release(block);
            }
        }
        self.get_mut(grown)[used..].fill(Link::EMPTY);
        grown
    }

    fn take_block(&mut self, class: u8) -> u32 {
        let free = self.free[usize::from(class)];
        if free != NO_CHILD {
            self.free[usize::from(class)] = self.links[free as usize].child;
            return free;
        }
        let first = self.links.len();
        self.links.resize(first + (1 << class), Link::EMPTY);
        first as u32
    }

    fn release(&mut self, block: Block) {
        let next = &mut self.free[usize::from(block.class)];
        self.links[block.first as usize] = Link {
            visits: 0,
            child: *next,
        };
        *next = block.first;
    }

    /// Keeps these blocks alone and closes the gaps between them. Each is given back as it lies now.
    pub(super) fn compact<'a>(&mut self, blocks: impl Iterator<Item = &'a mut Block>) {
        let mut kept: Vec<&mut Block> = blocks.filter(|block| block.count > 0).collect();
        kept.sort_unstable_by_key(|block| block.first);
        let mut end = 0;
        for block in kept {
            let first = block.first as usize;
            // No block moves up: those before it were no further up, and no larger.
            self.links
                .copy_within(first..first + usize::from(block.count), end);
            block.first = end as u32;
            end += block.capacity();
        }
        self.links.truncate(end);
        self.free = [NO_CHILD; CLASSES];
    }

    /// The first link of a block and the one behind its last, those that are not in use counted.
    #[cfg(test)]
    pub(super) fn place(&self, block: Block) -> (usize, usize) {
        let first = block.first as usize;
        assert!(first + block.capacity() <= self.links.len());
        (first, first + block.capacity())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(number: u32) -> Link {
        Link {
            visits: number,
            child: number,
        }
    }

    fn numbers(links: &Links, block: Block) -> Vec<u32> {
        links.get(block).iter().map(|link| link.visits).collect()
    }

    #[test]
    fn blocks_grow_are_used_again_and_close_up() {
        let mut links = Links::default();
        let mut blocks = [Block::default(); 3];
        for round in 1..=20_u32 {
            for (place, block) in blocks.iter_mut().enumerate() {
                *block = links.grown(*block, round as usize);
                links.get_mut(*block)[round as usize - 1] = link(100 * place as u32 + round);
            }
        }
        for (place, block) in blocks.iter().enumerate() {
            let expected: Vec<u32> = (1..=20).map(|round| 100 * place as u32 + round).collect();
            assert_eq!(numbers(&links, *block), expected);
        }
        // 3 blocks of 32, and fewer than that again in blocks outgrown.
        let before = links.links.len();
        assert!(before <= 3 * (32 + 31), "{before}");
        let small = links.grown(Block::default(), 3);
        assert_eq!(links.links.len(), before, "an outgrown block is used again");
        let mut kept = [blocks[2], blocks[0], small];
        links.compact(kept.iter_mut());
        assert_eq!(links.links.len(), 32 + 32 + 4);
        assert_eq!(numbers(&links, kept[0])[0], 201);
        assert_eq!(numbers(&links, kept[1])[19], 20);
        assert_eq!(numbers(&links, kept[2]), [0, 0, 0]);
    }
}
