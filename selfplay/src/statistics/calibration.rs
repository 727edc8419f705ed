//! Whether values are what they say: Gold's win probabilities against how the games ended.

use super::share::{QUANTILE, mean};
use arimaa::rules::Side;
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
    /// Games that have any.
    games: u64,
    /// Over these games: how many values a game has here, n, and by how much they say more than came of it, d: the sums of n², nd and d².
    products: [f64; 3],
}

impl Bin {
    /// Counts a game's values.
    fn count(&mut self, values: u64, sum: f64, gold: bool) {
        let won_by_gold = if gold { values } else { 0 };
        self.values += values;
        self.sum += sum;
        self.won_by_gold += won_by_gold;
        self.games += u64::from(values > 0);
        let (count, apart) = (values as f64, sum - won_by_gold as f64);
        for (sum, product) in
            self.products
                .iter_mut()
                .zip([count * count, count * apart, apart * apart])
        {
            *sum += product;
        }
    }

    /// Half the 95% interval of the mean value minus the share won. A game's values share one result, so that it is games and not
    /// values that are independent: the error of a ratio of sums over clusters (Cochran, Sampling Techniques, 1977, section 2.11).
    fn error(&self) -> Option<f64> {
        let is_one_sided = self.won_by_gold == 0 || self.won_by_gold == self.values;
        if self.games < 2 || is_one_sided {
            return None;
        }
        let apart = mean(self.sum - self.won_by_gold as f64, self.values)?;
        let [counts, crossed, squares] = self.products;
        let squares = squares - 2.0 * apart * crossed + apart * apart * counts;
        let variance = squares.max(0.0) * self.games as f64 / (self.games - 1) as f64;
        Some(QUANTILE * variance.sqrt() / self.values as f64)
    }
}

impl Calibration {
    /// Counts a game that `winner` won: all its values, each Gold's win probability.
    pub(crate) fn count(&mut self, values: &[f32], winner: Side) {
        let gold = winner == Side::Gold;
        let mut bins = [(0, 0.0); BINS];
        for &value in values {
            let value = f64::from(value);
            let right = if gold { value } else { 1.0 - value };
            self.squares += (1.0 - right) * (1.0 - right);
            self.losses -= right.clamp(LEAST, 1.0 - LEAST).ln();
            let (count, sum) = &mut bins[((value * BINS as f64) as usize).min(BINS - 1)];
            *count += 1;
            *sum += value;
        }
        for (bin, (count, sum)) in self.bins.iter_mut().zip(bins) {
            bin.count(count, sum, gold);
        }
    }

    pub(crate) fn add(&mut self, other: &Self) {
        for (bin, other) in self.bins.iter_mut().zip(&other.bins) {
            bin.values += other.values;
            bin.sum += other.sum;
            bin.won_by_gold += other.won_by_gold;
            bin.games += other.games;
            for (sum, other) in bin.products.iter_mut().zip(other.products) {
                *sum += other;
            }
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
            error: bin.error(),
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
    /// Half the 95% interval of the difference between the two, from how far games are apart in it; null where they aren't: fewer
    /// than two games, or all with the same result.
    pub(crate) error: Option<f64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_held_against_results() {
        let mut calibration = Calibration::default();
        calibration.count(&[0.75], Side::Gold);
        let mut others = Calibration::default();
        others.count(&[0.75, 0.0, 1.0], Side::Silver);
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
        assert_eq!((report.bins[1].mean, report.bins[9].error), (None, None));
    }

    #[test]
    fn games_and_not_values_are_what_counts() {
        // Of 400 games Gold wins three quarters, as was said: the error of a share, whatever a game's length.
        let error = |turns: usize| {
            let mut calibration = Calibration::default();
            for game in 0..400 {
                let winner = if game % 4 == 0 {
                    Side::Silver
                } else {
                    Side::Gold
                };
                calibration.count(&vec![0.75; turns], winner);
            }
            calibration.report().bins[7].error.unwrap()
        };
        let share = 1.96 * (0.75f64 * 0.25 / 399.0).sqrt();
        assert!((error(1) - share).abs() < 1e-5 && (error(90) - share).abs() < 1e-5);
    }

    #[test]
    fn long_games_weigh_more() {
        let mut calibration = Calibration::default();
        calibration.count(&[0.5; 3], Side::Gold);
        calibration.count(&[0.5], Side::Silver);
        let bin = &calibration.report().bins[5];
        assert_eq!((bin.mean, bin.won_by_gold), (Some(0.5), Some(0.75)));
        // Apart by -1/4: what the games add to that is -3/2 + 3/4 and 1/2 + 1/4.
        let error = 1.96 * (2.0f64 * (2.0 * 0.75 * 0.75)).sqrt() / 4.0;
        assert!((bin.error.unwrap() - error).abs() < 1e-4);
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
