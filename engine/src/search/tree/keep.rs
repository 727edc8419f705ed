//! What is kept of a tree from one turn to the next: everything below the turn that was played.

use super::edge::NodeId;
use super::links::Block;
use super::node::{EdgeRange, NodeKind};
use super::{Tree, key_of, repetitions};
use arimaa::rules::{History, Position, StepState};

const GONE: u32 = u32::MAX;

impl Tree {
    /// Makes the start of a later turn the root: keeps what is below it, forgets the rest, and returns the root's new place; none,
    /// and an unchanged tree, where the search has not been there.
    ///
    /// What is kept moves down in the arrays, so that no second tree is needed. A node whose position has stood more often in the
    /// game than it had when it was evaluated is unexpanded again.
    pub(in crate::search) fn keep_below(
        &mut self,
        position: &Position,
        history: &History,
    ) -> Option<NodeId> {
        let root = self.find(&StepState::new(position))?;
        let places = self.mark_below(root, history);
        self.move_down(&places);
        let kinds = self.nodes.iter().map(|node| node.kind);
        self.unexpanded = kinds.filter(|&kind| kind == NodeKind::Unexpanded).count();
        (self.followed, self.merged) = (0, 0);
        Some(NodeId(places[root.index()]))
    }

    /// The new places of the nodes that can be reached from `root`.
    fn mark_below(&mut self, root: NodeId, history: &History) -> Vec<u32> {
        let mut places = vec![GONE; self.nodes.len()];
        let mut waiting = vec![root];
        places[root.index()] = 0;
        while let Some(id) = waiting.pop() {
            self.refresh(id, root, history);
            for place in 0..self.links(id).len() {
                if let Some(child) = self.links(id)[place].child()
                    && places[child.index()] == GONE
                {
                    places[child.index()] = 0;
                    waiting.push(child);
                }
            }
        }
        let kept = places.iter_mut().filter(|place| **place != GONE);
        kept.zip(0..).for_each(|(place, next)| *place = next);
        places
    }

    /// Makes a node unexpanded where the network's input for it has changed.
    fn refresh(&mut self, id: NodeId, root: NodeId, history: &History) {
        let start = self.node(id).start;
        let position = self.state(start).start_position();
        let now = repetitions(&position, history, start == root);
        let node = self.node_mut(id);
        if node.kind == NodeKind::Expanded && node.repetitions != now {
            // Its links are given up with their block: the arrays are rebuilt anyway.
            *node = super::Node::unexpanded(node.state, node.start);
            let value = self.node_value_mut(id);
            *value = value.unevaluated();
        }
    }

    fn move_down(&mut self, places: &[u32]) {
        let mut kept = places.iter().map(|&place| place != GONE);
        self.nodes.retain(|_| kept.next().unwrap_or(false));
        let mut kept = places.iter().map(|&place| place != GONE);
        self.node_values.retain(|_| kept.next().unwrap_or(false));
        let mut ranges: Vec<&mut EdgeRange> = Vec::with_capacity(self.nodes.len());
        let mut blocks: Vec<&mut Block> = Vec::with_capacity(self.nodes.len());
        for node in &mut self.nodes {
            node.start = NodeId(places[node.start.index()]);
            ranges.push(&mut node.edges);
            blocks.push(&mut node.links);
        }
        ranges.sort_unstable_by_key(|range| range.first);
        let mut end = 0;
        for range in ranges {
            let first = range.first as usize;
            let count = usize::from(range.count);
            self.edges.copy_within(first..first + count, end);
            range.first = end as u32;
            end += count;
        }
        self.edges.truncate(end);
        self.links.compact(blocks.into_iter());
        for id in 0..self.nodes.len() as u32 {
            let block = self.node(NodeId(id)).links;
            for link in self.links.get_mut(block) {
                if let Some(child) = link.child() {
                    link.child = places[child.index()];
                }
            }
        }
        let Self { nodes, table, .. } = self;
        table.clear();
        for (id, node) in (0..).map(NodeId).zip(nodes.iter()) {
            table.insert_unique(key_of(nodes, node), id, |&id| {
                key_of(nodes, &nodes[id.index()])
            });
        }
    }
}
