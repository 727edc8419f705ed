//! The sequential test of a match: its decision and its report.

use anyhow::{Context, Result};
use engine::ratings::{GameResult, Hypothesis, PairCounts, Sprt};
use serde::{Deserialize, Serialize};
use std::fmt;

/// A sequential test as requested.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SprtOrder {
    /// The Elo difference of the first hypothesis.
    pub(super) elo0: f64,
    /// That of the second, above it.
    pub(super) elo1: f64,
    /// How often the second may be accepted although the first is true.
    #[serde(default = "default_error")]
    pub(super) alpha: f64,
    /// How often the first may be accepted although the second is true.
    #[serde(default = "default_error")]
    pub(super) beta: f64,
}

/// The default of both error rates.
fn default_error() -> f64 {
    0.05
}

impl SprtOrder {
    /// Reads two Elo differences, as in `0,10`.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let elo = text.split_once(',').and_then(|(elo0, elo1)| {
            let [elo0, elo1] = [elo0, elo1].map(|elo| elo.trim().parse().ok());
            elo0.zip(elo1)
        });
        let (elo0, elo1) = elo.ok_or("expected two numbers, as in 0,10")?;
        Ok(Self {
            elo0,
            elo1,
            alpha: default_error(),
            beta: default_error(),
        })
    }

    /// Checks the numbers; `what` names them in errors.
    pub(super) fn check(&self, what: &str) -> Result<()> {
        self.test().with_context(|| what.to_owned()).map(drop)
    }

    fn test(&self) -> Result<Sprt> {
        Ok(Sprt::new(self.elo0, self.elo1, self.alpha, self.beta)?)
    }
}

/// A running sequential test. Pairs count in the order of their numbers, a pair only after all before it: the deciding pair depends on
/// the games alone, not on their duration or on the number of threads. Counting pairs as they end would count short games first.
#[derive(Debug, Clone)]
pub(super) struct SequentialTest {
    order: SprtOrder,
    test: Sprt,
    counts: PairCounts,
    verdict: Option<Hypothesis>,
}

/// The state of a sequential test, as `--json` prints it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct SprtReport {
    #[serde(flatten)]
    order: SprtOrder,
    /// The pairs that count, in the order of their numbers.
    pairs: u64,
    /// The logarithm of how much likelier they are if the difference is `elo1`.
    llr: f64,
    /// The test accepts `H0` at or below the first, `H1` at or above the second.
    bounds: [f64; 2],
    /// The accepted hypothesis: `H0` that the difference is `elo0` or less, `H1` that it is `elo1` or more.
    verdict: Option<&'static str>,
}

impl SequentialTest {
    pub(super) fn new(order: SprtOrder) -> Result<Self> {
        Ok(Self {
            test: order.test()?,
            order,
            counts: PairCounts::default(),
            verdict: None,
        })
    }

    /// Counts pairs up to the first that is not over; none once the test is decided. `pair` gives the results of a pair of which both
    /// games are over.
    pub(super) fn count(&mut self, pair: impl Fn(u64) -> Option<[GameResult; 2]>) {
        while self.verdict.is_none()
            && let Some(results) = pair(self.pairs())
        {
            self.counts.add(results);
            self.verdict = self.test.verdict(&self.counts);
        }
    }

    /// Whether it is decided.
    pub(super) fn is_decided(&self) -> bool {
        self.verdict.is_some()
    }

    /// The pairs that count.
    pub(super) fn pairs(&self) -> u64 {
        self.counts.pairs()
    }

    pub(super) fn report(&self) -> SprtReport {
        SprtReport {
            order: self.order,
            pairs: self.pairs(),
            llr: self.test.log_likelihood_ratio(&self.counts),
            bounds: self.test.bounds(),
            verdict: self.verdict.map(|verdict| match verdict {
                Hypothesis::Zero => "H0",
                Hypothesis::One => "H1",
            }),
        }
    }

    /// The ratio and its bounds, for the line of progress.
    pub(super) fn in_short(&self) -> String {
        let SprtReport {
            llr,
            bounds: [low, high],
            ..
        } = self.report();
        format!("LLR {llr:.2} [{low:.2}, {high:.2}]")
    }
}

impl fmt::Display for SprtReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            order: SprtOrder { elo0, elo1, .. },
            pairs,
            llr,
            bounds: [low, high],
            verdict,
        } = self;
        write!(f, "SPRT of Elo {elo0} (H0) against {elo1} (H1): ")?;
        match verdict {
            Some(hypothesis) => write!(f, "{hypothesis} accepted")?,
            None => write!(f, "undecided")?,
        }
        write!(
            f,
            " after {pairs} pairs, LLR {llr:.2} [{low:.2}, {high:.2}]"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::ratings::GameResult::{Loss, Win};

    fn test() -> SequentialTest {
        let order = SprtOrder {
            elo0: 0.0,
            elo1: 100.0,
            alpha: 0.05,
            beta: 0.05,
        };
        SequentialTest::new(order).unwrap()
    }

    #[test]
    fn pairs_count_in_order_whenever_they_end() {
        let played = |pair: u64| [[Win, Win], [Win, Loss], [Win, Win]][pair as usize % 3];
        let mut at_once = test();
        at_once.count(|pair| Some(played(pair)));
        assert!(at_once.is_decided());
        let mut late = test();
        for known in [0, 1, 1, 7, 40, 400] {
            // The pair after the known ones is missing, the later ones are over.
            late.count(|pair| (pair != known).then(|| played(pair)));
            assert!(late.pairs() <= known);
        }
        assert_eq!(late.report(), at_once.report());
        let pairs = at_once.pairs();
        at_once.count(|_| Some([Loss, Loss]));
        assert_eq!(at_once.pairs(), pairs, "what is decided stays decided");
    }

    #[test]
    fn a_report_names_the_accepted_hypothesis() {
        let mut test = test();
        assert!(
            test.report()
                .to_string()
                .contains("undecided after 0 pairs")
        );
        test.count(|_| Some([Loss, Loss]));
        let report = serde_json::to_value(test.report()).unwrap();
        assert_eq!(
            (&report["verdict"], &report["elo1"]),
            (&"H0".into(), &100.0.into())
        );
        assert!(report["llr"].as_f64() <= report["bounds"][0].as_f64());
        assert!(test.report().to_string().contains("H0 accepted after"));
    }
}
