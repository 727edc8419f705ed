//! Resignation and soft resignation, by the values of the last searches.

use arimaa::rules::Side;
use engine::config::{ResignationConfig, SoftResignationConfig};
use engine::record::TurnRecord;

/// Shares of a turn's evaluations and weight that soft resignation leaves.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Effort {
    /// The share of the evaluations.
    pub(crate) evaluations: f32,
    /// The weight of the rows.
    pub(crate) weight: f32,
}

impl Effort {
    /// Without soft resignation.
    pub(crate) const WHOLE: Self = Self {
        evaluations: 1.0,
        weight: 1.0,
    };
}

/// The side that should resign after these turns, if there is one: each of the last searches gave it the threshold's win probability
/// at most. Searches of both sides count.
pub(crate) fn resigning(turns: &[TurnRecord], config: &ResignationConfig) -> Option<Side> {
    let seen = Agreement::of_last(turns, config.turns)?;
    (seen.loser_probability <= config.threshold).then(|| seen.winner.opponent())
}

/// The effort for the turn after these. Both shares fall linearly from 1 at the threshold to the configured ones at certainty, by
/// the least win probability that the last searches gave the side that they all prefer (KataGo's `reduceVisits`).
pub(crate) fn effort(turns: &[TurnRecord], config: &SoftResignationConfig) -> Effort {
    let certainty = match Agreement::of_last(turns, config.turns) {
        Some(seen) if 1.0 - seen.loser_probability > config.threshold => {
            (1.0 - seen.loser_probability - config.threshold) / (1.0 - config.threshold)
        }
        _ => return Effort::WHOLE,
    };
    let towards = |least: f32| 1.0 - certainty * (1.0 - least);
    Effort {
        evaluations: towards(config.evaluations),
        weight: towards(config.weight),
    }
}

/// The side that all of the last searches prefer.
struct Agreement {
    winner: Side,
    /// The most that one of them gives the other side.
    loser_probability: f32,
}

impl Agreement {
    /// None where `count` is 0, where there are fewer turns, and where one of them was not searched.
    fn of_last(turns: &[TurnRecord], count: u32) -> Option<Self> {
        let first = turns.len().checked_sub(count as usize)?;
        let mut last = turns[first..].iter().map(TurnRecord::search);
        let (mut least, mut most) = (last.next()??.value, 0.0f32);
        most = most.max(least);
        for search in last {
            let value = search?.value;
            (least, most) = (least.min(value), most.max(value));
        }
        Some(if least >= 0.5 {
            Self {
                winner: Side::Gold,
                loser_probability: 1.0 - least,
            }
        } else {
            Self {
                winner: Side::Silver,
                loser_probability: most,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::record::{SearchKind, SearchRecord, TurnOrigin};

    fn turns(values: &[f32]) -> Vec<TurnRecord> {
        let turn = |&value: &f32| TurnRecord {
            actions: Vec::new(),
            origin: TurnOrigin::Search(SearchRecord {
                evaluator: 0,
                kind: SearchKind::Full,
                budget: 1,
                evaluations: 1,
                visits: 1,
                value,
                network_value: 0.5,
            }),
            rows: Vec::new(),
        };
        values.iter().map(turn).collect()
    }

    #[test]
    fn a_side_resigns_when_all_of_the_last_searches_agree() {
        let config = ResignationConfig {
            turns: 3,
            threshold: 0.05,
            played_out_share: 0.0,
        };
        for (values, loser) in [
            (&[0.5, 0.04, 0.05, 0.01][..], Some(Side::Gold)),
            (&[0.97, 0.96, 0.99], Some(Side::Silver)),
            (&[0.04, 0.06, 0.01], None),
            (&[0.01, 0.01, 0.01, 0.5], None),
            (&[0.01, 0.99, 0.01], None),
            (&[0.01, 0.01], None),
            (&[], None),
        ] {
            assert_eq!(resigning(&turns(values), &config), loser, "{values:?}");
        }
        let mut unsearched = turns(&[0.0; 5]);
        unsearched[3].origin = TurnOrigin::Given;
        assert_eq!(resigning(&unsearched, &config), None);
        let never = ResignationConfig { turns: 0, ..config };
        assert_eq!(resigning(&turns(&[0.0; 9]), &never), None);
    }

    #[test]
    fn effort_falls_with_certainty() {
        let config = SoftResignationConfig {
            turns: 2,
            threshold: 0.9,
            evaluations: 0.2,
            weight: 0.1,
        };
        for (values, evaluations, weight) in [
            (&[0.5, 0.95, 1.0][..], 0.6, 0.55),
            (&[1.0, 1.0], 0.2, 0.1),
            (&[0.0, 0.05], 0.6, 0.55),
            (&[0.9, 1.0], 1.0, 1.0),
            (&[0.0, 1.0], 1.0, 1.0),
            (&[1.0], 1.0, 1.0),
        ] {
            let effort = effort(&turns(values), &config);
            assert!(
                (effort.evaluations - evaluations).abs() < 1e-5,
                "{values:?}"
            );
            assert!((effort.weight - weight).abs() < 1e-5, "{values:?}");
        }
        let never = SoftResignationConfig { turns: 0, ..config };
        assert_eq!(effort(&turns(&[1.0; 9]), &never), Effort::WHOLE);
    }
}
