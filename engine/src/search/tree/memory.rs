//! The memory of a tree: what it takes, what it may take, and how its arrays grow.

use super::edge::{Edge, Link};
use super::node::{Node, NodeValue};
use super::{Tree, key_of};

impl Tree {
    /// The most bytes that the tree may take from now on. What it holds already stays.
    pub(in crate::search) fn set_bound(&mut self, most_bytes: usize) {
        self.most_bytes = most_bytes;
        if self.bytes() > most_bytes {
            self.nodes.shrink_to_fit();
            self.node_values.shrink_to_fit();
            self.edges.shrink_to_fit();
            self.links.links.shrink_to_fit();
            self.shrink_table();
        }
    }

    pub(super) fn shrink_table(&mut self) {
        let Self { nodes, table, .. } = self;
        table.shrink_to_fit(|&id| key_of(nodes, &nodes[id.index()]));
    }

    /// The bytes that the arrays take, in use or not.
    pub(in crate::search) fn bytes(&self) -> usize {
        self.nodes.capacity() * size_of::<Node>()
            + self.node_values.capacity() * size_of::<NodeValue>()
            + self.edges.capacity() * size_of::<Edge>()
            + self.links.links.capacity() * size_of::<Link>()
            + self.table.allocation_size()
    }

    /// Whether there is room for one more node with all that it may need.
    pub(in crate::search) fn has_room(&self) -> bool {
        if self.most_bytes == usize::MAX {
            return true;
        }
        let more = NODES.more(&self.nodes)
            + NODES.more(&self.node_values)
            + self.edges_to_come()
            + LINKS.more(&self.links.links)
            + self.table_growth();
        self.bytes() + more <= self.most_bytes
    }

    /// The bytes that the table takes more if it has to grow for one more node: it doubles.
    fn table_growth(&self) -> usize {
        let is_full = self.table.len() == self.table.capacity();
        if is_full {
            self.table.allocation_size().max(1_024)
        } else {
            0
        }
    }

    /// The most bytes that the edges of all unexpanded nodes and of one more can take beyond those that there are: their evaluations may
    /// all come before more room is requested.
    fn edges_to_come(&self) -> usize {
        let needed = self.edges.len() + EDGES.needed * (self.unexpanded + 1);
        if needed <= self.edges.capacity() {
            return 0;
        }
        let most = needed + needed / 4 + EDGES.least;
        (most - self.edges.capacity()) * size_of::<Edge>()
    }

    /// Makes room for one more node.
    pub(super) fn grow(&mut self) {
        NODES.make(&mut self.nodes);
        NODES.make(&mut self.node_values);
        EDGES.make(&mut self.edges);
        LINKS.make(&mut self.links.links);
    }

    /// Makes room for the edges of one node.
    pub(super) fn grow_edges(&mut self) {
        EDGES.make(&mut self.edges);
    }
}

/// How an array grows: by a quarter, which takes less memory than doubling.
struct Growth {
    /// What one more node can need.
    needed: usize,
    /// What is made room for at least.
    least: usize,
}

const NODES: Growth = Growth {
    needed: 1,
    least: 64,
};

/// More edges than all but the strangest states have.
const EDGES: Growth = Growth {
    needed: 128,
    least: 2_048,
};

/// The larger block that the node before a new one may need.
const LINKS: Growth = Growth {
    needed: 128,
    least: 256,
};

impl Growth {
    /// By how many elements an array is to grow now.
    fn elements<T>(&self, array: &Vec<T>) -> usize {
        if array.len() + self.needed <= array.capacity() {
            0
        } else {
            (array.capacity() / 4).max(self.least)
        }
    }

    /// The same in bytes.
    fn more<T>(&self, array: &Vec<T>) -> usize {
        self.elements(array) * size_of::<T>()
    }

    fn make<T>(&self, array: &mut Vec<T>) {
        let more = self.elements(array);
        if more > 0 {
            array.reserve_exact(array.capacity() - array.len() + more);
        }
    }
}
