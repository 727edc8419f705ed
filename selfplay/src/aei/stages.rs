//! The stages of a turn's search. Each resumes the tree of the stage before. Without a clock there is one. With a clock the first takes
//! half of the target, and the second the rest unless the first was clear. While the decision is open, because the chosen turn has
//! changed or another is as good, further stages follow up to the most that the clock allows.

use super::clock::Times;
use super::messages::SearchTask;
use engine::search::{Decision, ReportedTurn, Search};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// The lead of the chosen turn, as a win probability, from which a decision is clear.
const CLEAR: f32 = 0.1;
/// The lead below which it is open.
const OPEN: f32 = 0.02;

/// How open a decision is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Openness {
    /// The lead of the chosen turn over the best other with enough visits to compare; none if there is no such turn.
    pub(super) gap: Option<f32>,
    /// Whether the stage before chose another turn.
    pub(super) changed: bool,
}

impl Openness {
    /// The openness of a search that has decided; `changed` if the stage before chose another turn.
    pub(super) fn of(search: &Search, changed: bool) -> Self {
        let report = search.report(4);
        let chosen = report.turns.iter().find(|turn| turn.is_chosen);
        // Where all that was searched is lost, the chosen turn may have no value.
        let Some((chosen, value)) = chosen.and_then(|chosen| Some((chosen, chosen.value?))) else {
            return Self {
                gap: Some(0.0),
                changed: true,
            };
        };
        let as_closely =
            |turn: &&ReportedTurn| !turn.is_chosen && turn.visits >= chosen.visits / 4.0;
        let others = report.turns.iter().filter(as_closely);
        let best = others.filter_map(|turn| turn.value).reduce(f32::max);
        Self {
            gap: best.map(|best| value - best),
            changed,
        }
    }

    /// Whether more search would hardly change the decision.
    pub(super) fn is_clear(&self) -> bool {
        !self.changed && self.gap.is_none_or(|gap| gap >= CLEAR)
    }

    /// Whether more search may well change the decision.
    pub(super) fn is_open(&self) -> bool {
        self.changed || self.gap.is_some_and(|gap| gap < OPEN)
    }
}

/// Whether the search is over after a stage that could have lasted until `end`.
pub(super) fn is_over(task: &SearchTask, decision: &Decision, end: Duration) -> bool {
    task.flag.load(Relaxed)
        || task.evaluations.is_some()
        || decision.proven_winner.is_some()
        // Only one legal turn, one last candidate or the depth ends a stage early.
        || task.begun.elapsed() < end.mul_f64(0.9)
}

/// The end of the next stage, if there is one.
pub(super) fn next_stage(
    times: &Times,
    end: Duration,
    passed: Duration,
    openness: &Openness,
) -> Option<Duration> {
    if end < times.target {
        return (!openness.is_clear()).then_some(times.target);
    }
    let next = (end + times.target / 2).min(times.most);
    // A shorter stage finds nothing more.
    (openness.is_open() && next > passed + times.target / 5).then_some(next)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn openness(gap: Option<f32>, changed: bool) -> Openness {
        Openness { gap, changed }
    }

    #[test]
    fn clear_decisions_save_time_and_open_ones_spend_it() {
        let seconds = Duration::from_secs_f64;
        let times = Times {
            target: seconds(10.0),
            most: seconds(18.0),
            end: seconds(20.0),
            saves: true,
        };
        let next = |end: f64, gap, changed| {
            let next = next_stage(&times, seconds(end), seconds(end), &openness(gap, changed));
            next.map(|next| next.as_secs_f64())
        };
        assert_eq!(next(5.0, Some(0.3), false), None);
        assert_eq!(next(5.0, None, false), None);
        assert_eq!(next(5.0, Some(0.05), false), Some(10.0));
        assert_eq!(next(10.0, Some(0.05), false), None);
        assert_eq!(next(10.0, Some(0.05), true), Some(15.0));
        assert_eq!(next(10.0, Some(0.01), false), Some(15.0));
        assert_eq!(next(15.0, Some(0.01), false), Some(18.0));
        assert_eq!(next(18.0, Some(0.01), false), None);
    }
}
