//! Whether values are what they say: Gold's win probabilities against how the games ended.

use super::share::mean;
use engine::rules::Side;
use serde::Serialize;

const BINS: usize = 10;

/// Values of 0 and 1 that turn out wrong would cost without end; they cost what this and its complement do.
const LEAST: f64 = 1e-6;

/// Values of decided games, each held against its game's result.
#[derive(Debug, Clone, Default)]
pub(crate) struct Calibration {
    bins: [Bin; BINS],
    squares: f64,
    losses: f64,
}

/// The values of one tenth.
#[derive(Debug, Clone, Copy, Default)]
struct Bin {
    values: u64,
    sum: f64,
    won_by_gold: u64,
}

impl Calibration {
    /// Counts Gold's win probability in a game that `winner` won.
    pub(crate) fn count(&mut self, value: f32, winner: Side) {
        let value = f64::from(value);
        let gold = winner == Side::Gold;
        let right = if gold { value } else { 1.0 - value };
        self.squares += (1.0 - right) * (1.0 - right);
        self.losses -= right.clamp(LEAST, 1.0 - LEAST).ln();
        let bin = &mut self.bins[((value * BINS as f64) as usize).min(BINS - 1)];
        bin.values += 1;
        bin.sum += value;
        bin.won_by_gold += u64::from(gold);
    }

    pub(crate) fn add(&mut self, other: &Self) {
        for (bin, other) in self.bins.iter_mut().zip(&other.bins) {
            bin.values += other.values;
            bin.sum += other.sum;
            bin.won_by_gold += other.won_by_gold;
        }
        self.squares += other.squares;
        self.losses += other.losses;
    }

    pub(crate) fn report(&self) -> CalibrationReport {
        let values = self.bins.iter().map(|bin| bin.values).sum();
        let bins = self.bins.iter().enumerate().map(|(index, bin)| BinReport {
            from: index as f64 / BINS as f64,
            to: (index + 1) as f64 / BINS as f64,
            values: bin.values,
            mean: mean(bin.sum, bin.values),
            won_by_gold: mean(bin.won_by_gold as f64, bin.values),
        });
        CalibrationReport {
            values,
            brier: mean(self.squares, values),
            log_loss: mean(self.losses, values),
            bins: bins.collect(),
        }
    }
}

/// How good values were.
#[derive(Debug, Serialize)]
pub(crate) struct CalibrationReport {
    /// How many there are: one a turn, of games that were won by the rules or by resignation.
    pub(crate) values: u64,
    /// The mean square of value minus result (1 where Gold won, else 0): 0.25 for knowing nothing.
    pub(crate) brier: Option<f64>,
    /// The mean of -ln of what the value gave the side that won, in nats; a value of 0 or 1 counts as 1e-6 from it. 0.693 for
    /// knowing nothing.
    pub(crate) log_loss: Option<f64>,
    /// The values by tenths.
    pub(crate) bins: Vec<BinReport>,
}

/// The values of one tenth; what stands at a border is in the upper one.
#[derive(Debug, Serialize)]
pub(crate) struct BinReport {
    pub(crate) from: f64,
    pub(crate) to: f64,
    pub(crate) values: u64,
    /// Their mean: what was expected.
    pub(crate) mean: Option<f64>,
    /// The share of them whose games Gold won: what happened.
    pub(crate) won_by_gold: Option<f64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_held_against_results() {
        let mut calibration = Calibration::default();
        calibration.count(0.75, Side::Gold);
        let mut others = Calibration::default();
        others.count(0.75, Side::Silver);
        others.count(0.0, Side::Silver);
        others.count(1.0, Side::Silver);
        calibration.add(&others);
        let report = calibration.report();
        assert_eq!(report.values, 4);
        let brier = (0.0625 + 0.5625 + 0.0 + 1.0) / 4.0;
        assert!((report.brier.unwrap() - brier).abs() < 1e-12);
        let loss = -(0.75f64.ln() + 0.25f64.ln() + (1.0f64 - 1e-6).ln() + 1e-6f64.ln()) / 4.0;
        assert!((report.log_loss.unwrap() - loss).abs() < 1e-9);
        let counts: Vec<u64> = report.bins.iter().map(|bin| bin.values).collect();
        assert_eq!(counts, [1, 0, 0, 0, 0, 0, 0, 2, 0, 1]);
        let bin = &report.bins[7];
        assert_eq!((bin.mean, bin.won_by_gold), (Some(0.75), Some(0.5)));
        assert_eq!((bin.from, bin.to), (0.7, 0.8));
        assert_eq!(report.bins[1].mean, None);
    }

    #[test]
    fn nothing_is_said_of_nothing() {
        let report = Calibration::default().report();
        assert_eq!(
            (report.values, report.brier, report.log_loss),
            (0, None, None)
        );
    }
}
