//! Mode `gumbel`: whole turns are sampled from the policy without replacement, and compared by sequential halving.
//!
//! A beam over the step policy finds the candidates ([`beam`]); simulations by PUCT below them tell what they are worth; the worse
//! half of them is given up time and again. The policy learns the improved policy of completed values ([`target`]).
//! (Kool, van Hoof and Welling 2019, "Stochastic beams and where to find them"; Danihelka, Guez, Schrittwieser and Silver 2022,
//! "Policy improvement by planning with Gumbel".)

mod beam;
mod compared;
mod target;

#[cfg(test)]
mod tests;

use super::SearchOptions;
use super::batch::Batch;
use super::decision::{Choice, actions_of, proven_targets};
use super::lost_turns::{Another, OtherTurn, another_turn, lost_advantage, other_turns};
use super::puct::{Arrived, Descent};
use super::stepwise::finish_by_the_rules;
use super::tree::{NodeId, NodeKind, advantage_of};
use super::turn_search::Core;
use crate::rules::{Action, History, Phase, Position, StepState, TURN_STEPS};
use arrayvec::ArrayVec;
use beam::{Beam, SlotId};
use rand::Rng;
use target::Improved;

/// Below this many evaluations there is nothing to halve.
const LEAST_BUDGET: u32 = 8;

/// Candidates where neither the options nor the budget say how many.
const USUAL_CANDIDATES: u32 = 32;

/// A whole turn that is compared with others.
#[derive(Debug)]
struct Candidate {
    /// Its place in the beam, where it was sampled.
    slot: Option<SlotId>,
    /// The start of the enemy's turn behind it.
    end: NodeId,
    /// The logarithm of its probability by the policy, all known orders together.
    log_prior: f64,
    /// What it is ranked by beside its value: the perturbed logarithm of its probability, times the noise's scale.
    rank: f64,
    /// Simulations below it.
    visits: u32,
    is_alive: bool,
    is_lost: bool,
    /// Its actions, where it was not sampled.
    actions: Option<ArrayVec<Action, 9>>,
}

/// How many candidates there are to be, and how wide the beam is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Sizes {
    candidates: u32,
    beam_width: u32,
}

impl Sizes {
    /// The beam evaluates `1 + steps · width` prefixes, steps being those before the last one, and then the candidates: together at
    /// most half of the budget.
    fn new(position: &Position, options: &SearchOptions) -> Option<Self> {
        let steps = steps_of(position) - 1;
        let is_setup = position.phase() == Phase::Setup;
        let wanted = &options.gumbel;
        let Some(budget) = options.budget.most_visits() else {
            let widest = widest_within(options);
            let candidates = wanted.candidates.unwrap_or(USUAL_CANDIDATES).min(widest);
            let beam_width = wanted.beam_width.unwrap_or(candidates);
            let beam_width = beam_width.min(widest).max(candidates);
            return Some(Self {
                candidates,
                beam_width,
            });
        };
        if budget < LEAST_BUDGET {
            return None;
        }
        let half = budget / 2;
        let halved = |most: u32| if is_setup { most.div_ceil(2) } else { most };
        let most = halved(wanted.candidates.unwrap_or(budget.isqrt()));
        let candidates = most
            .min(half / (steps + 1))
            .min(widest_within(options))
            .max(1);
        let widest = (half.saturating_sub(candidates) / steps)
            .min(widest_within(options))
            .max(1);
        let beam_width = wanted.beam_width.map_or(widest, halved);
        Some(Self {
            candidates,
            beam_width: beam_width.min(widest).max(candidates),
        })
    }
}

/// How wide a beam may be: what it holds beside the tree takes no more than half of the memory, and where time limits the search no
/// more is sampled than a search without limits does, as nobody knows how many evaluations there will be.
fn widest_within(options: &SearchOptions) -> u32 {
    let of_memory = options.budget.memory_bytes() / 2 / BEAM_BYTES;
    let of_time = match options.budget.time {
        Some(_) => USUAL_CANDIDATES as usize,
        None => usize::MAX,
    };
    of_memory.min(of_time).clamp(1, 1 << 20) as u32
}

/// Bytes that a beam holds for each prefix of its width: in eight levels of a setup, or four of a turn, what follows a prefix, with
/// its place in a table.
const BEAM_BYTES: usize = 16 << 10;

/// How many steps, or placements, a turn has at most.
fn steps_of(position: &Position) -> u32 {
    match position.phase() {
        Phase::Setup => 8,
        Phase::Play => u32::from(TURN_STEPS),
    }
}

/// The turn in the making.
#[derive(Debug)]
pub(super) struct GumbelTurn {
    sizes: Sizes,
    beam: Beam,
    candidates: Vec<Candidate>,
    /// The descents that wait for their leaves, each with its candidate.
    descents: Vec<(usize, Descent)>,
    /// How many of them are in use.
    descending: usize,
    /// How much of the budget the sampling took, once it is done.
    sampled: Option<f64>,
    /// How often the candidates have been halved.
    halvings: u32,
    rounds: u32,
    /// How many lost candidates have others in their place, or can't have any.
    replaced: usize,
    /// Whether, with all candidates lost, no other turn is left to look at.
    none_is_left: bool,
}

impl GumbelTurn {
    /// Bytes that the beam may hold beside the tree.
    pub(super) fn beam_bytes(&self) -> usize {
        self.sizes.beam_width as usize * BEAM_BYTES
    }

    /// Whether nothing has been looked at yet.
    pub(super) fn is_new(&self) -> bool {
        !self.beam.has_begun()
    }

    /// Whether the budget is large enough to compare turns with.
    pub(super) fn fits(position: &Position, options: &SearchOptions) -> bool {
        Sizes::new(position, options).is_some()
    }

    /// The search for the turn of a position, with a budget that [`fits`](Self::fits).
    pub(super) fn new(position: &Position, options: &SearchOptions) -> Self {
        let sizes = Sizes::new(position, options).unwrap_or(Sizes {
            candidates: 1,
            beam_width: 1,
        });
        Self {
            sizes,
            beam: Beam::default(),
            candidates: Vec::new(),
            descents: Vec::new(),
            descending: 0,
            sampled: None,
            halvings: 0,
            rounds: 0,
            replaced: 0,
            none_is_left: false,
        }
    }

    /// Goes on to the next leaves, or to the turn's end.
    pub(super) fn go_on<R: Rng>(
        &mut self,
        core: &mut Core,
        batch: &mut Batch,
        history: &History,
        rng: &mut R,
    ) -> Option<Choice> {
        if self.sampled.is_none() {
            while !self.beam.is_done() {
                if core.share() >= 1.0 {
                    return Some(self.finish(core, history, rng));
                }
                if self.beam.ask(core, batch, history) {
                    return None;
                }
                self.beam.advance(core, self.sizes.beam_width as usize, rng);
            }
            for slot in self.beam.take_best(self.sizes.candidates as usize) {
                self.add(slot, core);
            }
            self.sampled = Some(core.share());
            self.rounds = (self.candidates.len().max(1) as u32)
                .next_power_of_two()
                .trailing_zeros();
        }
        loop {
            self.finish_simulations(core);
            if self.weed(core) {
                return Some(self.finish(core, history, rng));
            }
            if self.replace(core, batch, history, rng) {
                return None;
            }
            self.halve(core);
            if self.is_over(core) {
                return Some(self.finish(core, history, rng));
            }
            self.simulate(core, batch, history, rng);
            if batch.is_waiting() {
                return None;
            }
        }
    }

    fn add(&mut self, slot: SlotId, core: &Core) {
        let (end, log_prior, rank) = self.beam.ranked(slot, core);
        self.candidates.push(Candidate {
            slot: Some(slot),
            end,
            log_prior,
            rank,
            visits: 0,
            is_alive: true,
            is_lost: false,
            actions: None,
        });
    }

    /// Whether a turn that the beam brings is a candidate already, found among all turns: it is ranked by the beam then.
    fn is_compared(&mut self, slot: SlotId, core: &Core) -> bool {
        let (end, log_prior, rank) = self.beam.ranked(slot, core);
        let known = self.candidates.iter_mut().find(|one| one.end == end);
        if let Some(candidate) = known {
            candidate.slot = Some(slot);
            (candidate.log_prior, candidate.rank) = (log_prior, rank);
            return true;
        }
        false
    }

    /// Takes over what the beam has learnt of the candidates since.
    fn rank_again(&mut self, core: &Core) {
        for candidate in &mut self.candidates {
            if let Some(slot) = candidate.slot {
                let (_, log_prior, rank) = self.beam.ranked(slot, core);
                (candidate.log_prior, candidate.rank) = (log_prior, rank);
            }
        }
    }

    fn alive(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.candidates.len()).filter(|&place| self.candidates[place].is_alive)
    }

    /// Marks what is proven; says whether there is a win.
    fn weed(&mut self, core: &mut Core) -> bool {
        let side = core.side();
        let mut is_won = false;
        for candidate in &mut self.candidates {
            core.tree.judge(candidate.end);
            let proof = core.tree.worth(candidate.end).proof;
            is_won |= proof.wins(side);
            if proof.loses(side) {
                candidate.is_lost = true;
                candidate.is_alive = false;
            }
        }
        is_won
    }

    /// Puts other turns in the place of lost ones: the best of those that the beam has pruned, as long as the budget lasts; and
    /// where all were lost, those of all legal turns that are not. Says whether evaluations are awaited for it.
    fn replace<R: Rng>(
        &mut self,
        core: &mut Core,
        batch: &mut Batch,
        history: &History,
        rng: &mut R,
    ) -> bool {
        loop {
            let lost = self.candidates.iter().filter(|one| one.is_lost).count();
            let wanted = lost.saturating_sub(self.replaced);
            if wanted == 0 {
                return false;
            }
            if self.alive().next().is_none() && self.bring_back_given_up() {
                self.replaced = lost;
                continue;
            }
            if self.alive().next().is_none() && !self.none_is_left {
                self.replaced = lost;
                self.add_others(core, history);
                self.none_is_left = !self.candidates.iter().any(|one| one.is_alive);
                continue;
            }
            let left = core.spent.evaluations_left(&core.options.budget);
            let reserved = self.alive().count() as u32;
            let affordable = left.is_none_or(|left| left > reserved);
            if !affordable || core.share() >= 1.0 {
                return false;
            }
            match self.beam.best_pruned(core) {
                None => self.replaced = lost,
                Some(slot) if self.beam.is_whole(slot) => {
                    self.beam.take(slot, core);
                    if self.is_compared(slot, core) {
                        continue;
                    }
                    self.add(slot, core);
                    self.replaced += 1;
                    self.weed(core);
                }
                Some(slot) => {
                    self.beam.bring_back(slot, core);
                    if self.beam.ask(core, batch, history) {
                        return true;
                    }
                    self.beam.advance(core, 0, rng);
                    self.rank_again(core);
                }
            }
        }
    }

    /// Compares those again that were given up for others which have turned out to be lost; says whether there are any.
    fn bring_back_given_up(&mut self) -> bool {
        for candidate in &mut self.candidates {
            candidate.is_alive = !candidate.is_lost;
        }
        let count = self.alive().count();
        self.compare_again();
        count > 0
    }

    /// Halvings begin anew with those that are alive now.
    fn compare_again(&mut self) {
        self.rounds = self.halvings
            + (self.alive().count().max(1) as u32)
                .next_power_of_two()
                .trailing_zeros();
    }

    /// Makes candidates of the likeliest turns that are not known to be lost.
    fn add_others(&mut self, core: &mut Core, history: &History) {
        let (mut others, tried_all) = other_turns(core, history);
        if others.is_empty() && tried_all {
            core.tree.prove_lost(core.root);
        }
        others.sort_by(|one, other| other.log_prior.total_cmp(&one.log_prior));
        for OtherTurn {
            actions,
            end,
            log_prior,
        } in others.into_iter().take(self.sizes.candidates as usize)
        {
            // The first is a way out, whatever the memory.
            let room = core.tree.intern_if_room(&end);
            let Some(end) = room.or_else(|| {
                self.alive()
                    .next()
                    .is_none()
                    .then(|| core.tree.intern(&end))
            }) else {
                break;
            };
            self.candidates.push(Candidate {
                slot: None,
                end,
                log_prior,
                rank: log_prior,
                visits: 0,
                is_alive: true,
                is_lost: false,
                actions: Some(actions),
            });
        }
        self.compare_again();
    }

    /// Gives up the worse half as often as the budget used says: after each of as many equal parts of it as there are halvings.
    fn halve(&mut self, core: &mut Core) {
        let sampled = self.sampled.unwrap_or(0.0);
        let share = core.share();
        let used = (share - sampled) / (1.0 - sampled).max(1e-9);
        // The last halving is the choice itself.
        while self.halvings + 1 < self.rounds
            && used * f64::from(self.rounds) >= f64::from(self.halvings + 1)
        {
            self.halvings += 1;
            let mut alive: Vec<usize> = self.alive().collect();
            let scores = self.scores(core);
            alive.sort_by(|&one, &other| scores[other].total_cmp(&scores[one]));
            for &place in alive.iter().skip(alive.len().div_ceil(2)) {
                self.candidates[place].is_alive = false;
            }
        }
    }

    fn is_over(&self, core: &mut Core) -> bool {
        let budget = &core.options.budget.clone();
        let alive = self.alive().count();
        alive == 0
            || alive == 1 && budget.stops_when_decided
            || core.share() >= 1.0
            || core.spent.evaluations_left(budget) == Some(0)
    }

    /// `G + σ(q)` of every candidate: what halvings and the choice go by.
    fn scores(&self, core: &Core) -> Vec<f64> {
        let improved = Improved::new(core, &self.candidates);
        let scores = self.candidates.iter();
        scores
            .map(|candidate| candidate.rank + improved.sigma(improved.value_of(core, candidate)))
            .collect()
    }

    /// One simulation below each of those candidates that have had the fewest.
    fn simulate<R: Rng>(
        &mut self,
        core: &mut Core,
        batch: &mut Batch,
        history: &History,
        rng: &mut R,
    ) {
        let fewest = self
            .alive()
            .map(|place| self.candidates[place].visits)
            .min();
        let budget = core.options.budget;
        let mut visits_left = core.spent.visits_left(&budget).unwrap_or(u32::MAX);
        for candidate in 0..self.candidates.len() {
            let one = &self.candidates[candidate];
            if !one.is_alive || Some(one.visits) != fewest {
                continue;
            }
            if visits_left == 0 {
                break;
            }
            visits_left -= 1;
            let evaluations_left = core.spent.evaluations_left(&budget);
            if evaluations_left.is_some_and(|left| batch.len() as u32 >= left) {
                break;
            }
            if self.descending == self.descents.len() {
                self.descents.push((candidate, Descent::default()));
            }
            let (of, descent) = &mut self.descents[self.descending];
            *of = candidate;
            self.descending += 1;
            let end = self.candidates[candidate].end;
            if let Arrived::Fresh(leaf) = core.descend(descent, end, history, rng) {
                core.ask(batch, leaf, history);
            }
        }
    }

    fn finish_simulations(&mut self, core: &mut Core) {
        for (candidate, descent) in &self.descents[..self.descending] {
            descent.back_up(&mut core.tree);
            self.candidates[*candidate].visits += 1;
            core.spent.visits = core.spent.visits.saturating_add(1);
        }
        self.descending = 0;
    }

    /// Chooses among the candidates that are left.
    fn finish<R: Rng>(&mut self, core: &mut Core, history: &History, rng: &mut R) -> Choice {
        let side = core.side();
        let turns = |place: &usize| core.tree.worth(self.candidates[*place].end).turns_to_end;
        let is_won = |place: &usize| {
            core.tree
                .worth(self.candidates[*place].end)
                .proof
                .wins(side)
        };
        let all = 0..self.candidates.len();
        let won = all.clone().filter(is_won).min_by_key(turns);
        if let Some(place) = won {
            let turns = turns(&place);
            core.tree.prove(core.root, side, turns + 1);
            let actions = self.actions(place, core, rng);
            return Choice {
                targets: proven_targets(
                    &StepState::new(&core.position),
                    &actions,
                    core.spent.visits,
                    history,
                ),
                actions,
                advantage: advantage_of(side),
            };
        }
        let scores = self.scores(core);
        let best = self.alive().reduce(|best, place| {
            if scores[place] > scores[best] {
                place
            } else {
                best
            }
        });
        // With nothing left alive every candidate is lost: the longest resistance, and of equal ones what took the longest to see.
        let resistance = |place: &usize| (turns(place), self.candidates[*place].visits);
        let resisting = || {
            all.filter(|&place| self.candidates[place].is_lost)
                .max_by_key(resistance)
        };
        match best.or_else(resisting) {
            Some(place) => {
                let actions = self.actions(place, core, rng);
                self.choice(core, actions, place)
            }
            None => self.unsampled(core, history, rng),
        }
    }

    fn choice(&self, core: &Core, actions: ArrayVec<Action, 9>, chosen: usize) -> Choice {
        let improved = Improved::new(core, &self.candidates);
        let mut recursion = improved.recursion(core, &self.candidates, &self.beam);
        let is_lost = self.candidates[chosen].is_lost && core.is_proven();
        let advantage = if is_lost {
            lost_advantage(core)
        } else {
            advantage_of(core.side())
                * (2.0 * improved.expected_value(core, &self.candidates) - 1.0)
        };
        Choice {
            targets: recursion.targets(&core.nodes_along(&actions)),
            actions,
            advantage,
        }
    }

    /// The actions of a candidate: of the orders that the beam has seen, one drawn in proportion to their probability.
    fn actions<R: Rng>(&self, place: usize, core: &Core, rng: &mut R) -> ArrayVec<Action, 9> {
        let candidate = &self.candidates[place];
        match &candidate.actions {
            Some(actions) => actions.clone(),
            None => actions_of(&core.tree, &self.beam.way_to(core, candidate.end, rng)),
        }
    }

    /// The turn where the budget ended before there was a candidate: the likeliest prefix, and its end by the rules alone.
    /// If that lets the enemy win, another turn that doesn't.
    fn unsampled<R: Rng>(&self, core: &mut Core, history: &History, rng: &mut R) -> Choice {
        let prefix = self.beam.best_prefix(core);
        let way = self.beam.way_to(core, prefix, rng);
        let mut actions = actions_of(&core.tree, &way);
        let state = core.tree.state(prefix);
        let is_whole = state.steps_used() == 0 && prefix != core.root;
        if !is_whole {
            finish_by_the_rules(&state, history, &mut actions, rng);
        }
        if core.turn_is_lost(&actions)
            && let Another::Turn(other) = another_turn(core, history)
        {
            actions = other;
        }
        let root = core.tree.node(core.root);
        Choice {
            actions,
            advantage: if root.kind == NodeKind::Open {
                root.own_value
            } else {
                0.0
            },
            targets: Vec::new(),
        }
    }
}
