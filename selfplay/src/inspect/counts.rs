//! What can be counted of good games.

use crate::statistics::{Calibration, Share};
use arimaa::rules::{Phase, Reason, Side};
use engine::shard::{
    Ending, Evaluator, GameRecord, POLICY_TOTAL, ReplayedRow, ReplayedTurn, SearchKind,
    SearchRecord, Start, TurnOrigin,
};
use serde::Serialize;
use std::collections::BTreeMap;

/// Sums over games. They are added in the games' order, so that the same games give the same sums to the last digit.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) games: u64,
    pub(super) turns: u64,
    /// Games by their number of turns.
    pub(super) lengths: BTreeMap<u64, u64>,
    pub(super) starts: Starts,
    pub(super) endings: Endings,
    pub(super) unfinished: u64,
    /// Gold's wins among the games that someone won.
    pub(super) gold: Share,
    pub(super) origins: Origins,
    pub(super) full: Searches,
    pub(super) fast: Searches,
    /// Rows of setups, ...
    pub(super) setup_rows: Rows,
    /// ... and of all other turns.
    pub(super) play_rows: Rows,
    /// Waived resignations, and how many of them the side that would have resigned did not lose.
    pub(super) waived: Share,
    /// Those of them whose games stopped at the turn limit.
    pub(super) waived_unfinished: u64,
    pub(super) search_values: Calibration,
    pub(super) network_values: Calibration,
    pub(super) evaluators: BTreeMap<Evaluator, Judged>,
}

/// How many games began in which way.
#[derive(Debug, Default, Clone, Copy, Serialize)]
pub(super) struct Starts {
    pub(super) empty: u64,
    pub(super) fork: u64,
    pub(super) opening: u64,
    pub(super) position: u64,
}

/// How many games someone won, by the way.
#[derive(Debug, Default, Clone, Copy, Serialize)]
pub(super) struct Endings {
    pub(super) goal: u64,
    pub(super) elimination: u64,
    pub(super) immobilization: u64,
    pub(super) resigned: u64,
    pub(super) forfeited: u64,
}

/// How many turns were chosen in which way.
#[derive(Debug, Default, Clone, Copy, Serialize)]
pub(super) struct Origins {
    pub(super) given: u64,
    pub(super) policy: u64,
    pub(super) full: u64,
    pub(super) fast: u64,
}

/// Sums over searches.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Searches {
    pub(super) turns: u64,
    pub(super) visits: u64,
    /// Evaluations, and the searches whose evaluations were kept.
    pub(super) evaluations: (u64, u64),
    /// Budgets, and the searches whose budget was kept.
    pub(super) budgets: (u64, u64),
    /// Searches whose value is 0 or 1.
    pub(super) proven: u64,
}

/// Sums over rows.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Rows {
    pub(super) rows: u64,
    pub(super) weightless: u64,
    pub(super) weights: f64,
    pub(super) surprises: f64,
    pub(super) entropies: f64,
}

/// What one evaluator had a hand in.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Judged {
    pub(super) games: u64,
    pub(super) turns: u64,
}

impl Counts {
    /// Counts a game and what its replay gave.
    pub(super) fn count(&mut self, record: &GameRecord, turns: &[ReplayedTurn]) {
        self.games += 1;
        self.turns += turns.len() as u64;
        *self.lengths.entry(turns.len() as u64).or_default() += 1;
        *match record.start {
            Start::Empty => &mut self.starts.empty,
            Start::Fork { .. } => &mut self.starts.fork,
            Start::Opening => &mut self.starts.opening,
            Start::Position(_) => &mut self.starts.position,
        } += 1;
        self.count_ending(record);
        self.count_evaluators(record);
        // How a clock ran out says nothing of the positions.
        let judge = match record.ending {
            Ending::Won(_) | Ending::Resigned { .. } => record.ending.winner(),
            Ending::Unfinished { .. } | Ending::Forfeited { .. } => None,
        };
        for turn in turns {
            self.count_turn(turn);
        }
        if let Some(winner) = judge {
            self.count_values(turns, winner);
        }
    }

    fn count_values(&mut self, turns: &[ReplayedTurn], winner: Side) {
        let (mut of_searches, mut of_networks) = (Vec::new(), Vec::new());
        for turn in turns {
            match &turn.origin {
                TurnOrigin::Given => {}
                TurnOrigin::Policy { network_value, .. } => of_networks.push(*network_value),
                TurnOrigin::Search(search) => {
                    of_searches.push(search.value);
                    of_networks.push(search.network_value);
                }
            }
        }
        self.search_values.count(&of_searches, winner);
        self.network_values.count(&of_networks, winner);
    }

    fn count_ending(&mut self, record: &GameRecord) {
        let winner = record.ending.winner();
        if let Some(winner) = winner {
            self.gold.whole += 1;
            self.gold.part += u64::from(winner == Side::Gold);
        }
        *match record.ending {
            Ending::Unfinished { .. } => &mut self.unfinished,
            Ending::Resigned { .. } => &mut self.endings.resigned,
            Ending::Forfeited { .. } => &mut self.endings.forfeited,
            Ending::Won(outcome) => match outcome.reason {
                Reason::Goal => &mut self.endings.goal,
                Reason::Elimination => &mut self.endings.elimination,
                Reason::Immobilization => &mut self.endings.immobilization,
            },
        } += 1;
        if let Some(waived) = record.resignation_waived {
            self.waived.whole += 1;
            self.waived.part += u64::from(winner.is_none_or(|winner| winner == waived.loser));
            self.waived_unfinished += u64::from(winner.is_none());
        }
    }

    fn count_evaluators(&mut self, record: &GameRecord) {
        let mut turns = vec![0; record.evaluators.len()];
        for place in record
            .turns
            .iter()
            .filter_map(|turn| turn.origin.evaluator())
        {
            if let Some(count) = turns.get_mut(usize::from(place)) {
                *count += 1;
            }
        }
        for (evaluator, turns) in record.evaluators.iter().zip(turns) {
            if turns > 0 {
                self.judged(evaluator).add(Judged { games: 1, turns });
            }
        }
    }

    fn judged(&mut self, evaluator: &Evaluator) -> &mut Judged {
        self.evaluators.entry(evaluator.clone()).or_default()
    }

    fn count_turn(&mut self, turn: &ReplayedTurn) {
        match &turn.origin {
            TurnOrigin::Given => self.origins.given += 1,
            TurnOrigin::Policy { .. } => self.origins.policy += 1,
            TurnOrigin::Search(search) => match search.kind {
                SearchKind::Full => {
                    self.origins.full += 1;
                    self.full.count(search);
                }
                SearchKind::Fast => {
                    self.origins.fast += 1;
                    self.fast.count(search);
                }
            },
        }
        let rows = match turn.position.phase() {
            Phase::Setup => &mut self.setup_rows,
            Phase::Play => &mut self.play_rows,
        };
        for row in &turn.rows {
            rows.count(row);
        }
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.games += other.games;
        self.turns += other.turns;
        for (length, games) in &other.lengths {
            *self.lengths.entry(*length).or_default() += games;
        }
        self.starts.empty += other.starts.empty;
        self.starts.fork += other.starts.fork;
        self.starts.opening += other.starts.opening;
        self.starts.position += other.starts.position;
        self.endings.goal += other.endings.goal;
        self.endings.elimination += other.endings.elimination;
        self.endings.immobilization += other.endings.immobilization;
        self.endings.resigned += other.endings.resigned;
        self.endings.forfeited += other.endings.forfeited;
        self.unfinished += other.unfinished;
        self.gold.part += other.gold.part;
        self.gold.whole += other.gold.whole;
        self.origins.given += other.origins.given;
        self.origins.policy += other.origins.policy;
        self.origins.full += other.origins.full;
        self.origins.fast += other.origins.fast;
        self.full.add(&other.full);
        self.fast.add(&other.fast);
        self.setup_rows.add(&other.setup_rows);
        self.play_rows.add(&other.play_rows);
        self.waived.part += other.waived.part;
        self.waived.whole += other.waived.whole;
        self.waived_unfinished += other.waived_unfinished;
        self.search_values.add(&other.search_values);
        self.network_values.add(&other.network_values);
        for (evaluator, judged) in &other.evaluators {
            self.judged(evaluator).add(*judged);
        }
    }
}

impl Searches {
    fn count(&mut self, search: &SearchRecord) {
        let kept = |number: u32| (u64::from(number), u64::from(number > 0));
        self.add(&Self {
            turns: 1,
            visits: search.visits.into(),
            evaluations: kept(search.evaluations),
            budgets: kept(search.budget),
            proven: u64::from(search.value == 0.0 || search.value == 1.0),
        });
    }

    fn add(&mut self, other: &Self) {
        self.turns += other.turns;
        self.visits += other.visits;
        self.evaluations.0 += other.evaluations.0;
        self.evaluations.1 += other.evaluations.1;
        self.budgets.0 += other.budgets.0;
        self.budgets.1 += other.budgets.1;
        self.proven += other.proven;
    }
}

impl Rows {
    fn count(&mut self, row: &ReplayedRow) {
        self.add(&Self {
            rows: 1,
            weightless: u64::from(row.weight == 0.0),
            weights: row.weight.into(),
            surprises: row.surprise.into(),
            entropies: entropy(row.policy),
        });
    }

    /// The sums of both.
    pub(super) fn and(mut self, other: &Self) -> Self {
        self.add(other);
        self
    }

    fn add(&mut self, other: &Self) {
        self.rows += other.rows;
        self.weightless += other.weightless;
        self.weights += other.weights;
        self.surprises += other.surprises;
        self.entropies += other.entropies;
    }
}

impl Judged {
    fn add(&mut self, other: Self) {
        self.games += other.games;
        self.turns += other.turns;
    }
}

/// The entropy of a policy target in nats: `-Σ p ln p`, which is `ln N - Σ n ln n / N` for parts `n` of `N`.
pub(super) fn entropy(policy: &[u16]) -> f64 {
    let total = f64::from(POLICY_TOTAL);
    // A part of 1 adds nothing, and most are 0.
    let parts = policy
        .iter()
        .filter(|&&part| part > 1)
        .map(|&part| f64::from(part));
    let sum: f64 = parts.map(|part| part * part.ln()).sum();
    (total.ln() - sum / total).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::shard::quantize_policy;

    #[test]
    fn entropies_are_those_of_the_formula() {
        assert_eq!(entropy(&[0, POLICY_TOTAL as u16, 0]), 0.0);
        let even = quantize_policy(&[1.0; 5]).unwrap();
        assert!((entropy(&even) - 5f64.ln()).abs() < 1e-6);
        let parts = [0.5f64, 0.25, 0.25];
        let expected: f64 = parts.iter().map(|part| -part * part.ln()).sum();
        let policy = quantize_policy(&parts.map(|part| part as f32)).unwrap();
        assert!((entropy(&policy) - expected).abs() < 1e-3);
    }
}
