//! Shares and means with their confidence intervals, and the calibration of values.

use arimaa::rules::Side;
use serde::{Serialize, Serializer};
use std::fmt::{self, Formatter};

/// A part of a whole, both counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Share {
    pub(crate) part: u64,
    pub(crate) whole: u64,
}

/// The 97.5% quantile of the normal distribution.
const QUANTILE: f64 = 1.959_964;

impl Share {
    pub(crate) fn add(&mut self, other: Self) {
        self.part += other.part;
        self.whole += other.whole;
    }

    /// The share itself, 0 to 1; none of nothing.
    pub(crate) fn value(self) -> Option<f64> {
        (self.whole > 0).then(|| self.part as f64 / self.whole as f64)
    }

    /// The 95% interval of the probability behind it (Wilson, Probable Inference, the Law of Succession, and Statistical
    /// Inference, 1927); none of nothing.
    pub(crate) fn interval(self) -> Option<[f64; 2]> {
        let share = self.value()?;
        let count = self.whole as f64;
        let square = QUANTILE * QUANTILE;
        let middle = share + square / (2.0 * count);
        let width =
            QUANTILE * (share * (1.0 - share) / count + square / (4.0 * count * count)).sqrt();
        let scale = 1.0 + square / count;
        Some([middle - width, middle + width].map(|end| (end / scale).clamp(0.0, 1.0)))
    }
}

/// A mean; none of nothing.
pub(crate) fn mean(sum: f64, count: u64) -> Option<f64> {
    (count > 0).then(|| sum / count as f64)
}

/// A mean; null of nothing.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Mean {
    sum: f64,
    count: u64,
}

impl Mean {
    pub(crate) fn count(&mut self, value: f64) {
        self.sum += value;
        self.count += 1;
    }

    /// Counts a number; 0 stands for one that was not recorded.
    pub(crate) fn count_kept(&mut self, number: u32) {
        self.sum += f64::from(number);
        self.count += u64::from(number > 0);
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.sum += other.sum;
        self.count += other.count;
    }

    pub(crate) fn value(self) -> Option<f64> {
        mean(self.sum, self.count)
    }
}

impl Serialize for Mean {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.value().serialize(serializer)
    }
}

const BINS: usize = 10;

/// Values are clamped to this and its complement: the log loss of a wrong 0 or 1 would be infinite.
const MIN_PROBABILITY: f64 = 1e-6;

/// Values of decided games against their results.
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
    /// Sums over these games of n², nd and d²: a game has n values here, and d is their sum minus the number of them won by Gold.
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

    /// Half the 95% interval of the mean value minus the share won. A game's values share one result, so games are independent, not
    /// values: the error of a ratio of sums over clusters (Cochran, Sampling Techniques, 1977, section 2.11).
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
            self.losses -= right.clamp(MIN_PROBABILITY, 1.0 - MIN_PROBABILITY).ln();
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

/// The calibration of values, as printed with `--json`.
#[derive(Debug, Serialize)]
pub(crate) struct CalibrationReport {
    /// Their number: one a turn, of games that were won by the rules or by resignation.
    pub(crate) values: u64,
    /// The mean square of value minus result (1 if Gold won, else 0): 0.25 for constant 0.5.
    pub(crate) brier: Option<f64>,
    /// The mean of -ln of the winner's probability, in nats; values are clamped to 1e-6 and its complement. 0.693 for constant 0.5.
    pub(crate) log_loss: Option<f64>,
    /// The values by tenths.
    pub(crate) bins: Vec<BinReport>,
}

/// The values of one tenth; a value on a border belongs to the upper one.
#[derive(Debug, Serialize)]
pub(crate) struct BinReport {
    pub(crate) from: f64,
    pub(crate) to: f64,
    pub(crate) values: u64,
    /// Their mean, the expected share.
    pub(crate) mean: Option<f64>,
    /// The share of them whose games Gold won.
    pub(crate) won_by_gold: Option<f64>,
    /// Half the 95% interval of the difference between the two, from its spread over games; null with fewer than two games, or if all
    /// have the same result.
    pub(crate) error: Option<f64>,
}

/// A line of a report: a name and its text.
pub(crate) fn line(f: &mut Formatter<'_>, name: &str, what: fmt::Arguments) -> fmt::Result {
    writeln!(f, "{name:<12}{what}")
}

/// A share with its 95% interval.
pub(crate) fn percent(share: f64, [low, high]: [f64; 2]) -> String {
    let [share, low, high] = [share, low, high].map(|share| 100.0 * share);
    format!("{share:.1}% ({low:.1} to {high:.1})")
}

/// The calibration of values named `whose`, as lines of a report.
pub(crate) fn write_calibration(
    f: &mut Formatter<'_>,
    whose: &str,
    report: &CalibrationReport,
) -> fmt::Result {
    let (Some(brier), Some(loss)) = (report.brier, report.log_loss) else {
        return Ok(());
    };
    let values = report.values;
    line(
        f,
        "calibration",
        format_args!(
            "of {whose} values, {values} in decided games: Brier score {brier:.4}, log loss {loss:.4} nats"
        ),
    )?;
    line(
        f,
        "",
        format_args!("  Gold wins     values   mean%    won%   error"),
    )?;
    for bin in &report.bins {
        let (from, to) = (100.0 * bin.from, 100.0 * bin.to);
        if let (Some(mean), Some(won)) = (bin.mean, bin.won_by_gold) {
            let (values, mean, won) = (bin.values, 100.0 * mean, 100.0 * won);
            let error = bin.error.map_or_else(String::new, |error| {
                format!(" {:>7}", format!("±{:.1}", 100.0 * error))
            });
            line(
                f,
                "",
                format_args!("{from:>3.0} to {to:>3.0}% {values:>9} {mean:>7.1} {won:>7.1}{error}"),
            )?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(found: [f64; 2], expected: [f64; 2]) -> bool {
        let pairs = found.into_iter().zip(expected);
        pairs
            .map(|(found, expected)| (found - expected).abs())
            .all(|difference| difference < 1e-4)
    }

    /// By hand: `(p + z²/2n ± z √(p(1-p)/n + z²/4n²)) / (1 + z²/n)`.
    #[test]
    fn intervals_are_those_of_the_formula() {
        let interval = |part, whole| Share { part, whole }.interval().unwrap();
        assert!(close(interval(5, 10), [0.2366, 0.7634]));
        assert!(close(interval(0, 10), [0.0, 0.2775]));
        assert!(close(interval(10, 10), [0.7225, 1.0]));
        assert!(close(interval(60, 100), [0.5020, 0.6906]));
    }

    #[test]
    fn without_cases_there_is_no_share() {
        let nothing = Share::default();
        assert_eq!((nothing.value(), nothing.interval()), (None, None));
        assert_eq!(mean(0.0, 0), None);
        assert_eq!(mean(3.0, 2), Some(1.5));
    }

    #[test]
    fn values_are_compared_with_results() {
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
    fn the_error_depends_on_games_and_not_on_values() {
        // Of 400 games Gold wins three quarters, as predicted: the error of a share, whatever a game's length.
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
    fn without_values_there_is_no_mean() {
        let report = Calibration::default().report();
        assert_eq!(
            (report.values, report.brier, report.log_loss),
            (0, None, None)
        );
    }
}
