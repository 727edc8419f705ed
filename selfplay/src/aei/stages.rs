//! The stages that a turn is searched in: each resumes the tree of the one before. Without a clock there is one. With a clock the
//! first takes half of the target; the second the rest, unless the first was clear; and while the decision is open, because the chosen
//! turn has changed or another one is as good, further ones follow up to the most that the clock allows.

use super::clock::Times;
use super::findings::Openness;
use super::messages::SearchTask;
use engine::search::Decision;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// Whether nothing is left to think about after a stage that might have gone on to `end`.
pub(super) fn is_over(job: &SearchTask, decision: &Decision, end: Duration) -> bool {
    job.flag.load(Relaxed)
        || job.evaluations.is_some()
        || decision.proven_winner.is_some()
        // Nothing but one legal turn, one candidate left, or the depth ends a stage early.
        || job.begun.elapsed() < end.mul_f64(0.9)
}

/// Until when the next stage may last, if there is to be one.
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
    // What is too short finds nothing more.
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
