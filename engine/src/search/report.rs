//! What a search has found, for people and programs: the best turns, the principal variation, what it cost.
//!
//! A report is made at any time and changes nothing; one that is made while several leaves of the tree are out counts their
//! simulations as visits. [`Display`](std::fmt::Display) writes it as a table of about 100 columns;
//! serialised, it has the fields of [`SearchReport`].

mod line;
mod text;
mod turns;

pub use line::LineTurn;
pub use turns::Proven;

#[cfg(test)]
mod tests;

use super::state::SearchState;
use super::tree::{NodeKind, win_probability};
use super::turn_search::Search;
use crate::config::SearchMode;
use arimaa::rules::{Position, Side};
use line::principal_variation;
use serde::Serialize;
use turns::{KnownTurn, KnownTurns};

/// What a search has found so far. All numbers are finite; unknown fields are `None`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SearchReport {
    /// The position whose turn is searched.
    pub position: Position,
    /// Whose turn it is.
    pub side: Side,
    /// How turns are found: `gumbel` becomes `puct` where its budget is too small to compare turns.
    pub mode: SearchMode,
    /// Whether the turn is decided.
    pub is_decided: bool,
    /// The position's value by all simulations, or by proof: win probability of the side to move, 0 to 1.
    pub value: Option<f32>,
    /// The same as the win probability of Gold.
    pub gold_value: Option<f32>,
    /// The evaluator's own value: win probability of the side to move, 0 to 1. None without an evaluation.
    pub own_value: Option<f32>,
    /// The winner, where that is proven.
    pub proven: Option<Proven>,
    /// The best turns in their order, and the chosen one behind them where it is none of them. Turns that are proven to win come
    /// first, the shortest win first; turns that are proven to lose come last, the longest resistance first. In between the most
    /// visited come first; among equally visited ones the likeliest in mode `puct`, in mode `gumbel` those of the highest rank.
    pub turns: Vec<ReportedTurn>,
    /// How many distinct turns the search knows. In mode `gumbel` these are the turns that are compared.
    pub known_turns: usize,
    /// The visits that the turns share. In mode `puct` the simulations through the position, among them those kept from the turn
    /// before. One that started behind steps made final counts as having taken them, as long as the search keeps them. In mode
    /// `gumbel` the simulations below the turns.
    pub shared_visits: f64,
    /// Those of the shared visits that have arrived at no whole turn.
    pub unfinished_visits: f64,
    /// The turns that both sides are expected to play, as far as the search has been. It begins with the chosen turn, or with the
    /// first of the list until there is one. Then comes the most visited turn each time, or by proof the shortest win and the
    /// longest resistance. It is cut before a repetition, and after 20 turns.
    pub line: Vec<LineTurn>,
    /// Simulations.
    pub visits: u32,
    /// Evaluations.
    pub evaluations: u32,
    /// Step states that the tree holds.
    pub nodes: usize,
    /// Bytes that the tree takes.
    pub bytes: usize,
    /// Of the steps that were followed for the first time, the share that led to a step state which was there already, 0 to 1.
    pub merged_share: f64,
    /// How deep simulations went.
    pub depth: Depth,
    /// Seconds from the first leaf that was handed out to the decision, or to now.
    pub seconds: f64,
    /// Evaluations a second; 0 where no time has passed.
    pub evaluations_per_second: f64,
}

/// A turn that a search knows.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReportedTurn {
    /// Its place in the order of all known turns, from 1 on.
    pub rank: usize,
    /// The turn in standard notation, captures included.
    pub turn: String,
    /// Whether it is the turn that the search has chosen.
    pub is_chosen: bool,
    /// Simulations. In mode `puct` the turn's share of the flow of visits over distinct turns, times
    /// [`SearchReport::shared_visits`]: no whole number where several turns have a step in common. The choice goes by that flow, so
    /// turns that are proven to lose have none unless all are, nor has any other turn than the shortest wins where there is one.
    pub visits: f64,
    /// Win probability of the side to move, 0 to 1. None where nothing has been seen of the turn.
    pub value: Option<f32>,
    /// The evaluator's probability of the whole turn, all orders of its steps that were followed together, 0 to 1. None where the
    /// tree does not know the turn; an estimate where mode `gumbel` found it by the rules, all that it sampled being lost.
    pub prior: Option<f64>,
    /// Its winner, where that is proven; the turn itself is counted.
    pub proven: Option<Proven>,
    /// The line that begins with this turn, found as [`SearchReport::line`] is.
    pub line: Vec<LineTurn>,
}

/// An action at the start of the searched turn, as far as the search has tried it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FirstAction {
    /// The evaluator's probability; the sum over all legal actions is about 1.
    pub prior: f32,
    /// Simulations.
    pub visits: u32,
    /// Win probability of the side to move, 0 to 1. None without a visit.
    pub value: Option<f32>,
}

/// How deep simulations went, in turns that they completed; the turn that is searched is one of them.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Depth {
    /// The mean of all simulations.
    pub mean: f64,
    /// The most of one.
    pub deepest: u32,
}

impl Search {
    /// What the search has found so far, with the best `top` turns. The turn that has been chosen is always among them.
    ///
    /// ```
    /// use engine::config::SearchConfig;
    /// use arimaa::rules::History;
    /// use engine::search::{Search, SearchOptions, Uniform, run_search};
    /// use rand::SeedableRng;
    /// let position = "g [r                                  Er                          R]".parse()?;
    /// let history = History::default();
    /// let options = SearchOptions::strongest(&SearchConfig::default(), 64);
    /// let mut search = Search::new(&position, &history, options)?;
    /// run_search(&mut search, &mut Uniform, &history, &mut rand::rngs::ChaCha8Rng::seed_from_u64(1))?;
    /// let report = search.report(5);
    /// assert!(report.turns.iter().any(|turn| turn.is_chosen));
    /// assert_eq!(serde_json::to_value(&report)?["evaluations"], report.evaluations);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn report(&self, top: usize) -> SearchReport {
        let state = self.state();
        let root = state.tree.node(state.root);
        let node_value = state.tree.node_value(state.root);
        let decision = self.decision();
        let turns = KnownTurns::new(state, self.strategy(), decision);
        let gold_value = self.gold_value();
        let side = state.side();
        let seconds = self.time_to_decision().as_secs_f64();
        let spent = &state.spent;
        let (listed, line) = reported(state, &turns, top);
        SearchReport {
            position: state.position,
            side,
            mode: self.strategy().mode(),
            is_decided: decision.is_some(),
            value: gold_value.map(|value| seen_by(side, value)),
            gold_value,
            own_value: (root.kind == NodeKind::Expanded)
                .then(|| win_probability(side, root.own_value)),
            proven: node_value.proof.map(|winner| Proven {
                winner,
                turns: node_value.turns_to_end,
            }),
            turns: listed,
            known_turns: turns.len(),
            shared_visits: turns.shared_visits,
            unfinished_visits: turns.unfinished_visits,
            line,
            visits: spent.visits,
            evaluations: spent.evaluations,
            nodes: state.tree.len(),
            bytes: state.tree.bytes(),
            merged_share: state.tree.merged_share(),
            depth: self.depth(),
            seconds,
            evaluations_per_second: if seconds > 0.0 {
                f64::from(spent.evaluations) / seconds
            } else {
                0.0
            },
        }
    }

    /// The legal actions at the turn's start, in the order of [`arimaa::rules::ActionSet::in_index_order`]. None before the first
    /// evaluation.
    pub fn first_actions(&self) -> Vec<FirstAction> {
        let state = self.state();
        let (tree, root, side) = (&state.tree, state.root, state.side());
        let edges = tree.edges(root).iter().enumerate();
        let mut actions: Vec<(usize, FirstAction)> = edges
            .map(|(place, edge)| {
                let link = tree.link(root, place);
                let child = link.child().filter(|_| link.visits > 0);
                let action = FirstAction {
                    prior: edge.prior(),
                    visits: link.visits,
                    value: child.map(|child| win_probability(side, tree.node_value(child).value)),
                };
                (edge.index(), action)
            })
            .collect();
        actions.sort_unstable_by_key(|&(index, _)| index);
        actions.into_iter().map(|(_, action)| action).collect()
    }

    /// The position's value: win probability of Gold.
    fn gold_value(&self) -> Option<f32> {
        if let Some(decision) = self.decision() {
            return Some(decision.value);
        }
        let state = self.state();
        let root = state.tree.node(state.root);
        let node_value = state.tree.node_value(state.root);
        let movers = match node_value.proof {
            None => self.strategy().value(state),
            Some(_) => None,
        };
        let seen = (root.kind != NodeKind::Unexpanded)
            .then(|| win_probability(Side::Gold, node_value.value));
        movers.map(|value| seen_by(state.side(), value)).or(seen)
    }

    fn depth(&self) -> Depth {
        let state = self.state();
        let before = match state.spent.visits {
            0 => 0,
            _ => self.strategy().turns_before(),
        };
        Depth {
            mean: state.turns_deep as f64 / f64::from(state.spent.visits.max(1))
                + f64::from(before),
            deepest: state.deepest + before,
        }
    }
}

/// Gold's win probability as `side`'s, or `side`'s as Gold's.
fn seen_by(side: Side, value: f32) -> f32 {
    match side {
        Side::Gold => value,
        Side::Silver => 1.0 - value,
    }
}

/// The best turns and the chosen one, and the line from the position.
fn reported(
    state: &SearchState,
    turns: &KnownTurns,
    top: usize,
) -> (Vec<ReportedTurn>, Vec<LineTurn>) {
    let ranked = turns.iter().zip(1..);
    let listed = ranked.filter(|(turn, rank)| *rank <= top || turn.is_chosen);
    let report = |(turn, rank): (&KnownTurn, usize)| ReportedTurn {
        rank,
        turn: turns.text(turn),
        is_chosen: turn.is_chosen,
        visits: turn.visits,
        value: turn.value(state),
        prior: turn.prior,
        proven: turn.proven,
        line: principal_variation(state, turns, turn),
    };
    let listed: Vec<ReportedTurn> = listed.map(report).collect();
    let chosen = listed.iter().find(|turn| turn.is_chosen);
    let line = match chosen.or(listed.first()) {
        Some(turn) => turn.line.clone(),
        None => turns
            .iter()
            .next()
            .map_or_else(Vec::new, |turn| principal_variation(state, turns, turn)),
    };
    (listed, line)
}
